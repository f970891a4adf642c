// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/emit.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/kernel/matmul_fixed.hpp>

/// @file
/// Operators with loops of their own: products of matrices, and what addresses memory by values.
namespace varve::loop {

namespace detail {
/// Start of a slice of one axis: sizes before, of and after the axis.
struct split_axis {
  index_t outer = 1, size = 1, inner = 1;
  constexpr split_axis(dims const& s, index_t axis) {
    for (int k = 0; k < s.n; ++k) (k < axis ? outer : k == axis ? size : inner) *= s.v[k];
  }
};
} // namespace detail

/// c[M, N] = a b for sizes known to the compiler; `TA`, `TB`: the operand is stored transposed. Large products go to the blocked kernel.
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB>
VARVE_NOINLINE void multiply(T const* a, T const* b, T* c) {
  static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  if constexpr (!std::is_floating_point_v<T> || M * K * N > 1 << 18) kernel::matmul<T>(M, N, K, {a, TA ? 1 : K, TA ? M : 1}, {b, TB ? 1 : N, TB ? K : 1}, {c, N, 1});
  else kernel::matmul_fixed<T, M, K, N, TA, TB>(a, b, c);
}

/// ... for sizes of which some are known at run time, as many products as make up `total` elements. Where that is the number of rows alone, blocks of them are products of fixed size.
template <class P, index_t M, index_t K, index_t N, bool TA, bool TB, class T>
VARVE_NOINLINE void multiply_sized(auto const& mem, T const* a, T const* b, T* c, index_t total) {
  static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  index_t const m = number_of<M>(mem), k = number_of<K>(mem), n = number_of<N>(mem);
  constexpr bool by_rows = std::is_floating_point_v<T> && is_run_time(M) && !is_run_time(K) && !is_run_time(N) && !TA;
  for (index_t e = 0; e < total; e += m * n, a += m * k, b += k * n) {
    index_t row = 0;
    constexpr index_t some = TB ? 48 : 12; // which fill the registers once or twice; more where B is transposed each time
    if constexpr (by_rows && some * (by_rows ? K * N : 0) <= 1 << 18)
      for (; row + some <= m; row += some) kernel::matmul_fixed<T, some, K, N, TA, TB>(a + row * k, b, c + e + row * n);
    kernel::matmul<T>(m - row, n, k, {a + row * k, TA ? 1 : k, TA ? m : 1}, {b, TB ? 1 : n, TB ? k : 1}, {c + e + row * n, n, 1});
  }
}

/// Operators that address memory by values or in steps.
namespace detail {
/// What is known of a call: a constant, or the values of this run.
template <class P, int S>
struct constant_call {
  static constexpr bool fixed = true;
  static constexpr call_info info = P::value.calls[P::value.stages[S].number];
};
struct bound_call {
  static constexpr bool fixed = false;
  call_info info;

  bound_call(call_info const& c, auto const& mem) : info(c) {
    auto bind = [&](dims& d) {
      for (int k = 0; k < d.n; ++k)
        if (is_run_time(d[k])) d[k] = mem.size[term_of(d[k])];
    };
    for (meta& m : info.in) bind(m.sizes);
    bind(info.out.sizes);
    for (dims& d : info.at.fact) bind(d);
  }
};
/// `F` of it: by the compiler where it can.
template <class C, class F>
VARVE_INLINE constexpr auto fact_of_call([[maybe_unused]] C const& c, F f) {
  if constexpr (C::fixed) {
    constexpr auto v = F{}(C::info);
    return v;
  } else return f(c.info);
}
template <class T>
VARVE_INLINE void put_slice(auto const& call, auto const* a, T* out) {
  auto const x = fact_of_call(call, [](call_info const& c) { return split_axis(c.out.sizes, c.at[1][0]); });
  auto const range = fact_of_call(call, [](call_info const& c) { return dims{c.at[1][1], c.at[1][3], c.in[0].sizes[static_cast<int>(c.at[1][0])], numel(c.out.sizes)}; });
  index_t const start = range[0], step = range[1], count = range[2], total = range[3];
  for (index_t e = 0; e < total; ++e) out[e] = T(0);
  for (index_t o = 0; o < x.outer; ++o)
    for (index_t q = 0; q < count; ++q)
      for (index_t i = 0; i < x.inner; ++i) out[(o * x.size + start + q * step) * x.inner + i] = a[(o * count + q) * x.inner + i];
}
template <class T>
VARVE_INLINE void take_by_index(auto const& call, auto const* a, auto const* index, T* out) {
  auto const in_stride = fact_of_call(call, [](call_info const& c) { return contiguous_strides(c.in[0].sizes); });
  auto const sizes = fact_of_call(call, [](call_info const& c) { return c.out.sizes; }), out_stride = fact_of_call(call, [](call_info const& c) { return contiguous_strides(c.out.sizes); });
  auto const axis = fact_of_call(call, [](call_info const& c) { return static_cast<int>(c.at[0][0]); });
  auto const total = fact_of_call(call, [](call_info const& c) { return numel(c.out.sizes); });
  for (index_t e = 0; e < total; ++e) {
    index_t at = static_cast<index_t>(index[e]) * in_stride[axis];
    for (int d = 0; d < sizes.n; ++d)
      if (d != axis) at += e / out_stride[d] % sizes[d] * in_stride[d];
    out[e] = a[at];
  }
}
template <class T>
VARVE_INLINE void add_by_index(auto const& call, auto const* a, auto const* index, auto const* src, T* out) {
  auto const out_stride = fact_of_call(call, [](call_info const& c) { return contiguous_strides(c.out.sizes); }), src_stride = fact_of_call(call, [](call_info const& c) { return contiguous_strides(c.in[1].sizes); });
  auto const full = fact_of_call(call, [](call_info const& c) { return contiguous_strides(c.in[2].sizes); }), sizes = fact_of_call(call, [](call_info const& c) { return c.in[1].sizes; });
  auto const axis = fact_of_call(call, [](call_info const& c) { return static_cast<int>(c.at[0][0]); });
  auto const total = fact_of_call(call, [](call_info const& c) { return numel(c.out.sizes); }), added = fact_of_call(call, [](call_info const& c) { return numel(c.in[1].sizes); });
  for (index_t e = 0; e < total; ++e) out[e] = a[e];
  for (index_t e = 0; e < added; ++e) {
    index_t at = static_cast<index_t>(index[e]) * out_stride[axis], from = 0;
    for (int d = 0; d < sizes.n; ++d) {
      index_t const q = e / src_stride[d] % sizes[d];
      from += q * full[d];
      if (d != axis) at += q * out_stride[d];
    }
    out[at] += src[from];
  }
}
template <class T>
VARVE_INLINE void place_of_greatest(auto const& call, auto const* a, T* out) {
  auto const x = fact_of_call(call, [](call_info const& c) { return split_axis(c.in[0].sizes, c.at[0][0]); });
  for (index_t o = 0; o < x.outer; ++o)
    for (index_t i = 0; i < x.inner; ++i) {
      index_t best = 0;
      auto const* p = a + o * x.size * x.inner + i;
      for (index_t q = 1; q < x.size; ++q) { // the first greatest; NaN is greatest
        auto const v = p[q * x.inner], w = p[best * x.inner];
        if (v > w || (v != v && w == w)) best = q;
      }
      out[o * x.inner + i] = static_cast<T>(best);
    }
}
template <class P, int S>
VARVE_INLINE void call_by_index(auto const& mem, auto const& c, auto const* a, auto* out) {
  constexpr stage s = P::value.stages[S];
  constexpr known what = P::value.calls[s.number].what;
  if constexpr (what == known::slice_backward) put_slice(c, a, out);
  else if constexpr (what == known::gather) take_by_index(c, a, address<P, s.in[1]>(mem), out);
  else if constexpr (what == known::scatter_add) add_by_index(c, a, address<P, s.in[1]>(mem), address<P, s.in[2]>(mem), out);
  else if constexpr (what == known::argmax) place_of_greatest(c, a, out);
  else static_assert(what == known::mm, "varve: fuse: this operator has no emission; use it outside of fuse");
}
} // namespace detail

/// Executes the call stage `S` of program `P`.
template <class P, int S>
VARVE_INLINE void call(auto const& mem) {
  constexpr stage s = P::value.stages[S];
  constexpr call_info c = P::value.calls[s.number];
  auto* out = address<P, s.out>(mem);
  using T = std::remove_reference_t<decltype(*out)>;
  auto const* a = address<P, s.in[0]>(mem);
  if constexpr (c.what == known::mm) {
    constexpr bool ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    constexpr int r = c.out.sizes.n;
    constexpr index_t m = c.out.sizes[r - 2], n = c.out.sizes[r - 1], k = c.in[0].sizes[r - (ta ? 2 : 1)];
    auto const* b = address<P, s.in[1]>(mem);
    if constexpr (sized<P>) {
      multiply_sized<P, m, k, n, ta, tb>(mem, a, b, out, number_of<P::value.buffers[s.out].elements>(mem));
    } else {
      constexpr index_t total = numel(c.out.sizes);
      for (index_t e = 0; e < (m * n > 0 ? total / (m * n) : 0); ++e) multiply<T, m, k, n, ta, tb>(a + e * m * k, b + e * k * n, out + e * m * n);
    }
  } else if constexpr (sized<P>) {
    detail::call_by_index<P, S>(mem, detail::bound_call(c, mem), a, out);
  } else {
    detail::call_by_index<P, S>(mem, detail::constant_call<P, S>{}, a, out);
  }
}

} // namespace varve::loop
