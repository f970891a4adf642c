// SPDX-License-Identifier: BSL-1.0
// expect: all arguments need derivatives up to the same order
#include <varve/jet/jet.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto product = [](auto x, auto y) { return x * y; };
constexpr auto a = vv::jet(product, std::tuple{2.0, 3.0}, std::tuple{std::tuple{1.0, 0.0}, std::tuple{1.0, 0.0}});
#ifdef FAIL
constexpr auto b = vv::jet(product, std::tuple{2.0, 3.0}, std::tuple{std::tuple{1.0, 0.0}, std::tuple{1.0}});
#endif
