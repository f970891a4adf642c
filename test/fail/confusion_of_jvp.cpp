// SPDX-License-Identifier: BSL-1.0
// expect: perturbation confusion
#include <varve/dispatch/dispatch.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/jvp.hpp>
namespace vv = varve;

constexpr auto right = [](auto x) {
  return x * vv::jvp(vv::closure([](auto y, auto x) { return x + y; }, x), std::tuple{1.0}, std::tuple{1.0}).second;
};
static_assert(vv::jvp(right, std::tuple{1.0}, std::tuple{1.0}).second == 1);
#ifdef FAIL
constexpr auto wrong = [](auto x) {
  return x * vv::jvp([x](auto y) { return x + y; }, std::tuple{1.0}, std::tuple{1.0}).second;
};
constexpr auto y = vv::jvp(wrong, std::tuple{1.0}, std::tuple{1.0}).second;
#endif
