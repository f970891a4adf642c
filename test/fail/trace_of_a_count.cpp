// SPDX-License-Identifier: BSL-1.0
// expect: trace: a symbolic size became a number of the function; use mean, or pass the count
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto rows = vv::spec<float, vv::dim<"n">, 3>;
constexpr auto right = vv::trace([](auto x) { return vv::mean(x, vv::axis<0>); }, rows);
#ifdef FAIL
constexpr auto average = [](auto x) {
  return vv::sum(x, vv::axis<0>) / static_cast<double>(vv::to_dims(vv::shape_of(x))[0]);
};
constexpr auto wrong = vv::trace(average, rows);
#endif
