// SPDX-License-Identifier: BSL-1.0
// expect: varve: print: it does something outside of the program, which has no place in a graph that the
#include <varve/hop/print.hpp>
#include <varve/op/operators.hpp>
#include <varve/trace/trace.hpp>
namespace vv = varve;

constexpr auto twice = [](auto const& x) {
#ifdef FAIL
  vv::print("{}", x);
#endif
  return x + x;
};
constexpr auto g = vv::trace(twice, vv::spec<double, 2>);
