// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Attention of static values and of tensors, and the same in numbers.
#include "../sample/loop.hpp"

#include <varve/fake.hpp>
#include <varve/hop/flex_attention.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

namespace flex_attention_test {
using namespace sample;
namespace vv = varve;
using vv::array;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr int B = 2, Hq = 4, H = 2, L = 5, S = 6, E = 3, V = 2;
using queries = array<double, B, Hq, L, E>;
using keys = array<double, B, H, S, E>;
using vectors = array<double, B, H, S, V>;
using table = array<double, Hq, L + S - 1>;

template <class A>
A numbered(double step) {
  A a{};
  for (index_t k = 0; k < A::count; ++k) a.data[k] = std::sin(step * static_cast<double>(k + 1));
  return a;
}
inline queries const q = numbered<queries>(0.7);
inline keys const k = numbered<keys>(1.3);
inline vectors const v = numbered<vectors>(2.1);
inline table const bias = numbered<table>(0.31);
inline array<double, B, Hq, L, V> const g = numbered<array<double, B, Hq, L, V>>(0.9);
inline array<double, B, Hq, L> const g_lse = numbered<array<double, B, Hq, L>>(0.17);

// A bias by head and distance, and a window in front of the query, of which the first two see nothing.
inline constexpr auto with_table = [](auto s, auto, auto h, auto i, auto j, auto t) {
  return s + vv::index(t, h, j - i + (L - 1)); // distances from 1 - L to S - 1
};
inline constexpr auto window = [](auto, auto, auto i, auto j) { return vv::where(i > 1, j <= i, false); };
inline constexpr double scale = 0.6;

inline constexpr auto attend = [](auto x, auto y, auto z, auto t) {
  auto const allowed = [](auto b, auto h, auto i, auto j) { return window(b, h, i, j); };
  auto const mask = vv::create_block_mask(allowed, vv::shape<1, 1, L, S>, vv::shape<2, 2>);
  return vv::flex_attention(x, y, z, vv::closure(with_table, t), mask, scale, true, vv::return_lse);
};
/// A number that depends on all of the result; rows of nothing have no logarithm to use.
inline constexpr auto loss = [](auto x, auto y, auto z, auto t, auto c, auto d) {
  auto const [out, lse] = attend(x, y, z, t);
  return vv::sum(out * c) + vv::sum(vv::where(lse > -1e300, lse, 0.0) * d);
};

/// The same in numbers: results, and the gradients of `loss`.
struct in_numbers {
  array<double, B, Hq, L, V> out{};
  array<double, B, Hq, L> lse{};
  queries dq{};
  keys dk{};
  vectors dv{};
  table dt{};
};
inline constexpr int place(int n1, int n2, int n3, int b, int h, int i, int e) {
  return ((b * n1 + h) * n2 + i) * n3 + e;
}
inline constexpr int of_q(int b, int h, int i, int e) { return place(Hq, L, E, b, h, i, e); }
inline constexpr int of_k(int b, int h, int j, int e) { return place(H, S, E, b, h / (Hq / H), j, e); }
inline constexpr int of_v(int b, int h, int j, int e) { return place(H, S, V, b, h / (Hq / H), j, e); }
inline constexpr int of_out(int b, int h, int i, int e) { return place(Hq, L, V, b, h, i, e); }
inline constexpr bool may_look(int i, int j) { return i > 1 && j <= i; }

inline void attend_row(in_numbers& r, int b, int h, int i) {
  double p[S] = {}, dp[S] = {}, sum = 0, mean = 0;
  for (int j = 0; j < S; ++j) {
    double s = bias.data[h * (L + S - 1) + j - i + L - 1];
    for (int e = 0; e < E; ++e) s += scale * q.data[of_q(b, h, i, e)] * k.data[of_k(b, h, j, e)];
    sum += p[j] = may_look(i, j) ? std::exp(s) : 0;
  }
  int const row = (b * Hq + h) * L + i;
  r.lse.data[row] = sum > 0 ? std::log(sum) : -infinity;
  for (int j = 0; j < S && sum > 0; ++j) {
    p[j] /= sum;
    for (int e = 0; e < V; ++e) {
      r.out.data[of_out(b, h, i, e)] += p[j] * v.data[of_v(b, h, j, e)];
      r.dv.data[of_v(b, h, j, e)] += p[j] * g.data[of_out(b, h, i, e)];
      dp[j] += g.data[of_out(b, h, i, e)] * v.data[of_v(b, h, j, e)];
    }
    mean += p[j] * dp[j];
  }
  for (int j = 0; j < S; ++j) {
    double const ds = p[j] * (dp[j] - mean + g_lse.data[row]);
    r.dt.data[h * (L + S - 1) + j - i + L - 1] += ds;
    for (int e = 0; e < E; ++e) {
      r.dq.data[of_q(b, h, i, e)] += scale * ds * k.data[of_k(b, h, j, e)];
      r.dk.data[of_k(b, h, j, e)] += scale * ds * q.data[of_q(b, h, i, e)];
    }
  }
}
inline in_numbers const right = [] {
  in_numbers r;
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < Hq; ++h)
      for (int i = 0; i < L; ++i) attend_row(r, b, h, i);
  return r;
}();
template <class D>
inline bool are_right(D const& d) {
  auto const as_tensor = [](auto const& x) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, tensor>) return x;
    else return boxed(x);
  };
  return agree(as_tensor(std::get<0>(d)), boxed(right.dq)) && agree(as_tensor(std::get<1>(d)), boxed(right.dk)) &&
         agree(as_tensor(std::get<2>(d)), boxed(right.dv)) && agree(as_tensor(std::get<3>(d)), boxed(right.dt));
}
inline constexpr auto gradients = vv::grad<0, 1, 2, 3>(loss);
struct tensors {
  tensor q = boxed(flex_attention_test::q), k = boxed(flex_attention_test::k), v = boxed(flex_attention_test::v),
         bias = boxed(flex_attention_test::bias), g = boxed(flex_attention_test::g),
         g_lse = boxed(flex_attention_test::g_lse);
};
inline bool everywhere(tensor const& x) { return vv::sum(x).item<index_t>() == x.numel(); }
inline double greatest(tensor const& x) { return vv::amax(vv::abs(x), vv::dims{}).item<double>(); }
/// Queries that may look at keys not behind them, in `n` positions.
inline constexpr auto causal = [](auto const&, auto const&, auto const& i, auto const& j) { return i >= j; };
} // namespace flex_attention_test
