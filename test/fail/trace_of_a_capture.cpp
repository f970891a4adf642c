// SPDX-License-Identifier: BSL-1.0
// expect: the function captures values, which the compiler cannot see; pass them as arguments
#include <varve/op/operators.hpp>
#include <varve/trace/trace.hpp>
namespace vv = varve;

constexpr auto right = vv::trace([](auto x, auto k) { return x * k; }, vv::spec<float>, vv::spec<float>);
#ifdef FAIL
constexpr auto scaled(float k) {
  return [k](auto x) { return x * k; };
}
constexpr auto wrong = vv::trace(scaled(2), vv::spec<float>);
#endif
