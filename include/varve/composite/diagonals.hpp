// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/counted.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/create.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/sum.hpp>
#include <varve/op/where.hpp>

/// @file
/// Diagonals and triangles of matrices, also of batches of matrices.
namespace varve {

namespace detail {
/// Sizes, strides and start of a diagonal of a row-major value. The diagonal is the last dimension.
struct diagonal_of {
  dims sizes, strides, start;
  constexpr diagonal_of(dims const& s, dims const& offset, dims const& axes) {
    int const a = wrap_axis(axes[0], s.n), b = wrap_axis(axes[1], s.n);
    if (s.n < 2 || a == b) refuse::argument_is_invalid("diagonal", "two different dimensions are needed");
    dims const all = contiguous_strides(s);
    extent const o = offset[0], rows = o < 0 ? s[a] + o : s[a], columns = o > 0 ? s[b] - o : s[b];
    extent const n = rows < columns ? rows : columns;
    for (int k = 0; k < s.n; ++k)
      if (k != a && k != b) sizes.push_back(s[k]), strides.push_back(all[k]);
    sizes.push_back(n < 0 ? extent(0) : n);
    strides.push_back(all[a] + all[b]);
    start = n > 0 ? dims{o < 0 ? -o * all[a] : o * all[b]} : dims{0};
  }
};
inline constexpr auto diagonal_sizes = [](dims const& s, dims const& o, dims const& a) {
  return diagonal_of(s, o, a).sizes;
};
inline constexpr auto diagonal_strides = [](dims const& s, dims const& o, dims const& a) {
  return diagonal_of(s, o, a).strides;
};
inline constexpr auto diagonal_start = [](dims const& s, dims const& o, dims const& a) {
  return diagonal_of(s, o, a).start;
};
inline constexpr auto two_axes = [](dims const& a, dims const& b) { return dims{a[0], b[0]}; };
} // namespace detail

/// The diagonal of two dimensions, `offset` to the right of the main diagonal, as the last dimension
/// (`torch.diagonal`). It is a view.
inline constexpr struct diagonal_t : composite_operator<diagonal_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "diagonal";
  template <value X, class O = ints<0>, class A = ints<0>, class B = ints<1>>
  static constexpr auto body(X const& x, O const& offset = {}, A const& first = {}, B const& second = {}) {
    auto const s = shape_of(x);
    auto const o = detail::as_fact(offset);
    auto const a = on_dims(detail::two_axes, detail::as_fact(first), detail::as_fact(second));
    return detail::strided_region(x, on_dims(detail::diagonal_sizes, s, o, a),
                                  on_dims(detail::diagonal_strides, s, o, a), on_dims(detail::diagonal_start, s, o, a));
  }
} diagonal{};

/// Returns a value with a diagonal replaced by `source` (`torch.diagonal_scatter`). The dtypes must be the same.
inline constexpr struct diagonal_scatter_t : composite_operator<diagonal_scatter_t> {
  static constexpr auto op_name = "diagonal_scatter";
  template <value X, value S, class O = ints<0>, class A = ints<0>, class B = ints<1>>
  static constexpr auto body(X const& x, S const& source, O const& offset = {}, A const& first = {},
                             B const& second = {}) {
    auto const s = shape_of(x);
    auto const o = detail::as_fact(offset);
    auto const a = on_dims(detail::two_axes, detail::as_fact(first), detail::as_fact(second));
    auto const fits = [](dims const& want, dims const& have) {
      if (!(want == have)) refuse::shapes_do_not_match(op_name, want, have);
      return dims{};
    };
    (void)on_dims(fits, on_dims(detail::diagonal_sizes, s, o, a), shape_of(source));
    return as_strided_scatter(contiguous(x), source, on_dims(detail::diagonal_strides, s, o, a),
                              on_dims(detail::diagonal_start, s, o, a));
  }
} diagonal_scatter{};

/// Zeros, with the last dimension of x as a diagonal of the dimensions `first` and `second` of the result
/// (`torch.diag_embed`).
inline constexpr struct diag_embed_t : composite_operator<diag_embed_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "diag_embed";
  template <value X, class O = ints<0>, class A = ints<-2>, class B = ints<-1>>
  static constexpr auto body(X const& x, O const& offset = {}, A const& first = {}, B const& second = {}) {
    auto const o = detail::as_fact(offset);
    auto const a = on_dims(detail::two_axes, detail::as_fact(first), detail::as_fact(second));
    auto const whole = [](dims const& s, dims const& offset, dims const& axes) {
      if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no dimension");
      int const i = wrap_axis(axes[0], s.n + 1), j = wrap_axis(axes[1], s.n + 1);
      if (i == j) refuse::argument_is_invalid(op_name, "two different dimensions are needed");
      extent const n = s[s.n - 1] + (offset[0] < 0 ? -offset[0] : offset[0]);
      dims r = s.sub(0, s.n - 1);
      r.insert(i < j ? i : j, n);
      return r.insert(i < j ? j : i, n);
    };
    auto const sizes = on_dims(whole, shape_of(x), o, a);
    return as_strided_backward(x, sizes, on_dims(detail::diagonal_strides, sizes, o, a),
                               on_dims(detail::diagonal_start, sizes, o, a));
  }
} diag_embed{};

/// The diagonal of a matrix, or a matrix with a vector as its diagonal (`torch.diag`).
inline constexpr struct diag_t : composite_operator<diag_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "diag";
  template <value X, class O = ints<0>>
  static constexpr auto body(X const& x, O const& offset = {}) {
    auto const rank = on_dims(
        [](dims const& s) {
          if (s.n < 1 || s.n > 2) refuse::argument_is_invalid(op_name, "a vector or a matrix is expected");
          return dims{s.n};
        },
        shape_of(x));
    return choose(
        same_fact(rank, ints<2>{}), [&](auto const& v) { return diagonal(v, offset); },
        [&](auto const& v) { return diag_embed(v, offset); }, x);
  }
} diag{};

/// The trace of a matrix: the sum of its diagonal.
inline constexpr struct trace_of_matrix_t : composite_operator<trace_of_matrix_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "trace";
  template <value X>
  static constexpr auto body(X const& x) {
    if (rank_of(x) != 2) refuse::argument_is_invalid(op_name, "a matrix is expected");
    return sum(diagonal(x));
  }
} trace_of_matrix{};

namespace detail {
template <int FromEnd>
inline constexpr auto side_of_matrices = [](dims const& s) {
  if (s.n < 2) refuse::argument_is_invalid("tril or triu", "matrices are expected");
  return dims{s[s.n - FromEnd]};
};
/// Returns matrices whose elements are 0 unless `keep(column - row)` is true.
template <value X, class F>
constexpr auto triangle(X const& x, F const& keep) {
  auto const rows = counted(on_dims(side_of_matrices<2>, shape_of(x)), x);
  auto const columns = counted(on_dims(side_of_matrices<1>, shape_of(x)), x);
  auto const column = on_dims([](dims const& s) { return dims{s[0], 1}; }, shape_of(rows));
  return where(keep(sub(columns, reshape(rows, column))), x, new_zeros(x, ints<>{}));
}
} // namespace detail

/// Matrices with zeros above the diagonal that is `offset` to the right of the main one (`torch.tril`).
inline constexpr struct tril_t : composite_operator<tril_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "tril";
  template <value X>
  static constexpr auto body(X const& x, index_t offset = 0) {
    return detail::triangle(x, [&](auto const& d) { return le(d, offset); });
  }
} tril{};
/// Matrices with zeros below the diagonal that is `offset` to the right of the main one (`torch.triu`).
inline constexpr struct triu_t : composite_operator<triu_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "triu";
  template <value X>
  static constexpr auto body(X const& x, index_t offset = 0) {
    return detail::triangle(x, [&](auto const& d) { return ge(d, offset); });
  }
} triu{};

} // namespace varve
