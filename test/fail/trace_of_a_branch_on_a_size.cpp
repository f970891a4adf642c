// SPDX-License-Identifier: BSL-1.0
// expect: trace: what the function does depends on a symbolic size; use one that does not branch on sizes
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = vv::trace([](auto x) { return vv::sin(x); }, vv::spec<float, vv::dim<"n">>);
#ifdef FAIL
constexpr auto branch = [](auto x) {
  return vv::to_dims(vv::shape_of(x))[0] % 3 == 1 ? vv::sin(x) : vv::cos(vv::exp(x));
};
constexpr auto wrong = vv::trace(branch, vv::spec<float, vv::dim<"n">>);
#endif
