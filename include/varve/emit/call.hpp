// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>
#include <varve/emit/step.hpp>
#include <varve/kernel/convolution.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/kernel/matmul_fixed.hpp>

/// @file
/// Operators with loops of their own: matrix products, convolutions, and operators that address memory by values.
namespace varve::fusion {

/// The shape facts that `slice_backward` needs; they are constants if the compiler knows the sizes.
struct slice_backward_facts {
  index_t outer = 1, size = 1, inner = 1; // of the sliced axis: sizes before, of and after it
  index_t start, step, count, total;
  constexpr explicit slice_backward_facts(call_info const& c)
      : start(c.at[1][1]), step(c.at[1][3]), count(c.in[0].sizes[static_cast<int>(c.at[1][0])]),
        total(numel(c.out.sizes)) {
    for (int k = 0; k < c.out.sizes.n; ++k)
      (k < c.at[1][0] ? outer : k == c.at[1][0] ? size : inner) *= c.out.sizes.v[k];
  }
};
struct gather_facts {
  int rank, axis;
  index_t total, size; // size: number of elements that an index selects from
  dims sizes, stride, in_stride;
  constexpr explicit gather_facts(call_info const& c)
      : rank(c.out.sizes.n), axis(static_cast<int>(c.at[0][0])), total(numel(c.out.sizes)),
        size(rank ? c.in[0].sizes[axis].number() : 1), sizes(c.out.sizes), stride(contiguous_strides(sizes)),
        in_stride(contiguous_strides(c.in[0].sizes)) {}
};
struct scatter_add_facts {
  int rank, axis;
  index_t total, count, size;                    // size: as in gather_facts
  dims sizes, stride, source_stride, out_stride; // of the indices; of the added values; of the result
  constexpr explicit scatter_add_facts(call_info const& c)
      : rank(c.in[1].sizes.n), axis(static_cast<int>(c.at[0][0])), total(numel(c.out.sizes)),
        count(numel(c.in[1].sizes)), size(rank ? c.out.sizes[axis].number() : 1), sizes(c.in[1].sizes),
        stride(contiguous_strides(sizes)), source_stride(contiguous_strides(c.in[2].sizes)),
        out_stride(contiguous_strides(c.out.sizes)) {}
};
struct convolution_facts : kernel::convolution_sizes {
  constexpr explicit convolution_facts(call_info const& c)
      : convolution_sizes(c.at, c.in[0].sizes, c.in[1].sizes, c.out.sizes) {}
};
struct argmax_facts {
  index_t outer = 1, size = 1, inner = 1;
  constexpr explicit argmax_facts(call_info const& c) {
    for (int k = 0; k < c.in[0].sizes.n; ++k)
      (k < c.at[0][0] ? outer : k == c.at[0][0] ? size : inner) *= c.in[0].sizes.v[k];
  }
};

namespace detail {
template <class T>
VARVE_INLINE void slice_backward(slice_backward_facts const& x, T const* a, T* out) {
  for (index_t e = 0; e < x.total; ++e) out[e] = T(0);
  for (index_t o = 0; o < x.outer; ++o)
    for (index_t q = 0; q < x.count; ++q)
      for (index_t i = 0; i < x.inner; ++i)
        out[(o * x.size + x.start + q * x.step) * x.inner + i] = a[(o * x.count + q) * x.inner + i];
}
/// Throws `index_error` for indices out of range, as the operators do, before any of them addresses memory. This is a
/// separate pass, which compilers vectorize.
template <class I>
VARVE_INLINE void check_indices(char const* op, I const* index, index_t count, index_t size) {
  auto const outside = [&](index_t e) {
    return static_cast<std::uint64_t>(index[e]) >= static_cast<std::uint64_t>(size);
  }; // negative ones too
  bool any = false;
  for (index_t e = 0; e < count; ++e) any |= outside(e);
  for (index_t e = 0; any && e < count; ++e)
    if (outside(e)) refuse::index_out_of_range(op, static_cast<index_t>(index[e]), size);
}
template <class T, class I>
VARVE_INLINE void gather(gather_facts const& x, T const* a, I const* index, T* out) {
  check_indices("gather", index, x.total, x.size);
  for (index_t e = 0; e < x.total; ++e) {
    index_t at = static_cast<index_t>(index[e]) * x.in_stride[x.axis].number();
    for (int d = 0; d < x.rank; ++d)
      if (d != x.axis) at += e / x.stride[d].number() % x.sizes[d].number() * x.in_stride[d].number();
    out[e] = a[at];
  }
}
template <class T, class I>
VARVE_INLINE void scatter_add(scatter_add_facts const& x, T const* a, I const* index, T const* source, T* out) {
  check_indices("scatter_add", index, x.count, x.size);
  for (index_t e = 0; e < x.total; ++e) out[e] = a[e];
  for (index_t e = 0; e < x.count; ++e) {
    index_t at = static_cast<index_t>(index[e]) * x.out_stride[x.axis].number(), from = 0;
    for (int d = 0; d < x.rank; ++d) {
      index_t const q = e / x.stride[d].number() % x.sizes[d].number();
      from += q * x.source_stride[d].number();
      if (d != x.axis) at += q * x.out_stride[d].number();
    }
    out[at] += source[from];
  }
}
template <class T, class A>
VARVE_INLINE void argmax(argmax_facts const& x, A const* a, T* out) {
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
} // namespace detail

/// Computes c[M, N] = a b for sizes known at compile time. `TA`, `TB`: the operand is stored transposed. Large products
/// use the blocked kernel.
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB>
VARVE_NOINLINE void multiply(T const* a, T const* b, T* c) {
  static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  if constexpr (!std::is_floating_point_v<T> || M * K * N > 1 << 18)
    kernel::matmul<T>(M, N, K, {a, TA ? 1 : K, TA ? M : 1}, {b, TB ? 1 : N, TB ? K : 1}, {c, N, 1});
  else kernel::matmul_fixed<T, M, K, N, TA, TB>(a, b, c);
}

/// Computes c = a b for sizes some of which are known at run time only, for as many products as make up `total`
/// elements. If only the number of rows is unknown, blocks of rows are products of fixed size.
template <class P, index_t M, index_t K, index_t N, bool TA, bool TB, class T>
VARVE_NOINLINE void multiply_sized(auto const& mem, T const* a, T const* b, T* c, index_t total) {
  static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  index_t const m = number_of<M>(mem), k = number_of<K>(mem), n = number_of<N>(mem);
  constexpr bool by_rows = std::is_floating_point_v<T> && is_run_time(M) && !is_run_time(K) && !is_run_time(N) && !TA;
  for (index_t e = 0; e < total; e += m * n, a += m * k, b += k * n) {
    index_t row = 0;
    constexpr index_t some =
        TB ? 48 : 12; // rows that fill the registers once or twice; more if B is transposed for each block
    if constexpr (by_rows && some * (by_rows ? K * N : 0) <= 1 << 18)
      for (; row + some <= m; row += some) kernel::matmul_fixed<T, some, K, N, TA, TB>(a + row * k, b, c + e + row * n);
    kernel::matmul<T>(m - row, n, k, {a + row * k, TA ? 1 : k, TA ? m : 1}, {b, TB ? 1 : n, TB ? k : 1},
                      {c + e + row * n, n, 1});
  }
}

namespace detail {
/// Returns a call with the sizes of this run.
VARVE_INLINE call_info bound_call(call_info c, auto const& mem) {
  auto bind = [&](dims& d) {
    for (int k = 0; k < d.n; ++k)
      if (is_run_time(d[k])) d[k] = mem.size[entry_of(d[k])];
  };
  for (meta& m : c.in) bind(m.sizes);
  bind(c.out.sizes);
  for (dims& d : c.at.fact) bind(d);
  return c;
}
/// Returns the shape facts of a call, computed at compile time if `Fixed`.
template <class Facts, class P, int S, bool Fixed>
VARVE_INLINE auto facts_of([[maybe_unused]] auto const& mem) {
  constexpr call_info c = P::value.calls[P::value.stages[S].number];
  if constexpr (Fixed) {
    constexpr Facts x(c);
    return x;
  } else return Facts(bound_call(c, mem));
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
  if constexpr (c.what == operator_class::mm) {
    constexpr bool ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    constexpr int r = c.out.sizes.n;
    constexpr index_t m = c.out.sizes[r - 2].number(), n = c.out.sizes[r - 1].number(),
                      k = c.in[0].sizes[r - (ta ? 2 : 1)].number();
    auto const* b = address<P, s.in[1]>(mem);
    if constexpr (sized<P>)
      multiply_sized<P, m, k, n, ta, tb>(mem, a, b, out, number_of<P::value.buffers[s.out].elements>(mem));
    else
      for (index_t e = 0; e < (m * n > 0 ? numel(c.out.sizes).number() / (m * n) : 0); ++e)
        multiply<T, m, k, n, ta, tb>(a + e * m * k, b + e * k * n, out + e * m * n);
  } else if constexpr (c.what == operator_class::slice_backward) {
    detail::slice_backward(detail::facts_of<slice_backward_facts, P, S, !sized<P>>(mem), a, out);
  } else if constexpr (c.what == operator_class::gather) {
    detail::gather(detail::facts_of<gather_facts, P, S, !sized<P>>(mem), a, address<P, s.in[1]>(mem), out);
  } else if constexpr (c.what == operator_class::scatter_add) {
    detail::scatter_add(detail::facts_of<scatter_add_facts, P, S, !sized<P>>(mem), a, address<P, s.in[1]>(mem),
                        address<P, s.in[2]>(mem), out);
  } else if constexpr (c.what == operator_class::convolution) {
    kernel::convolve<T>(detail::facts_of<convolution_facts, P, S, !sized<P>>(mem), a, address<P, s.in[1]>(mem), out);
  } else if constexpr (c.what == operator_class::argmax) {
    detail::argmax(detail::facts_of<argmax_facts, P, S, !sized<P>>(mem), a, out);
  } else {
    static_assert(c.what == operator_class::mm, "varve: fuse: this operator has no emission; use it outside of fuse");
  }
}

} // namespace varve::fusion
