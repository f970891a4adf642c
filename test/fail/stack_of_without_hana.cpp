// SPDX-License-Identifier: BSL-1.0
// expect: varve: stack_of gives a tuple of Boost.Hana, whose definition is not here: include <boost/hana/tuple.hpp>
#include <varve/varve.hpp>

#ifndef FAIL
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#endif
constexpr auto none_at_all = varve::stack_of<double>;
