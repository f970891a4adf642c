// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Arrays and functions whose constants meet values of a trace.
#include <varve/varve.hpp>

#include <limits>
#include <varve_test.hpp>

namespace constants_test {
namespace vv = varve;
using vv::array, vv::dtype, vv::index_t;
template <class A, class B>
void same(A const& a, B const& b) {
  REQUIRE(a.size() == static_cast<index_t>(b.size()));
  for (index_t k = 0; k < a.size(); ++k) CHECK(a.data[k] == Approx(b[static_cast<std::size_t>(k)]));
}
inline constexpr array<double, 2> one_two{1, 2};
inline constexpr array<double, 2, 2> square{1, 2, 3, 4};
inline constexpr auto miss = [](auto w, auto x, auto y) {
  auto const d = vv::dot(w, x) - y;
  return d * d;
};
inline constexpr auto step = [](auto c, auto x) { return std::pair(c * x + array<double, 2>{1, 0}, c); };
inline constexpr auto horner = [](auto p) { return vv::scan(step, p, array<double, 2>{2, 2}).first; };
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
struct scaled : vv::function<scaled> {
  static constexpr auto forward(auto x, auto c) { return vv::mul(x, c); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x, c] = ctx.saved();
    return std::tuple(vv::mul(g, c), vv::mul(g, x));
  }
};
} // namespace constants_test
