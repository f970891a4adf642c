// SPDX-License-Identifier: BSL-1.0
// expect: primals must be floating
#include <varve/op/operators.hpp>
#include <varve/transform/jvp.hpp>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
constexpr auto a = vv::jvp(square, std::tuple{2.0}, std::tuple{1.0});
#ifdef FAIL
constexpr auto b = vv::jvp(square, std::tuple{2}, std::tuple{1});
#endif
