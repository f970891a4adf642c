// SPDX-License-Identifier: BSL-1.0
// expect: implicit: the function must return as many values as there are unknowns
#include <varve/implicit.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 2> start{1, 1};
auto const right = vv::implicit::root([](auto const& x) { return x * x - 2.0; })(start);
#ifdef FAIL
auto const wrong = vv::implicit::root([](auto const& x) { return vv::sum(x) - 2.0; })(start);
#endif
