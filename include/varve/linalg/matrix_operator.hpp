// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/diagonals.hpp>
#include <varve/kernel/matrices.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/maximum.hpp>

/// @file
/// Common parts of operators on matrices [.., m, n]. All leading dimensions are a batch. float32 and float64 are
/// computed in double; other dtypes are refused.
namespace varve::detail {

/// Family of operators on batches of matrices. The operator defines `shape` and `compute`, and derivatives if it has
/// any. Its attributes must not refer to dimensions. The leading sizes of all operands are equal.
template <class Tag, int Arity>
struct of_matrices {
  static constexpr operator_reach reach = operator_reach::matrix;
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr int arity = Arity;
  static constexpr bool only_floating = true;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  template <class Op, class N, class... O>
  static constexpr auto batch(Op const& op, N const& n, O const&... o) {
    return op(materialize(o, n)...);
  }

protected:
  static constexpr dims require_matrix(meta const& m) {
    if (!is_floating(m.type)) refuse::dtype_is_not_supported(Tag::op_name, name(m.type));
    if (m.sizes.n < 2) refuse::argument_is_invalid(Tag::op_name, "matrices are expected");
    return m.sizes;
  }
  static constexpr dims require_square(meta const& m) {
    dims const s = require_matrix(m);
    if (s[s.n - 1] != s[s.n - 2]) refuse::argument_is_invalid(Tag::op_name, "square matrices are expected");
    return s;
  }
  static constexpr void require_equal_batches(dims const& a, int a_own, dims const& b, int b_own) {
    if (!(a.sub(0, a.n - a_own) == b.sub(0, b.n - b_own))) refuse::shapes_do_not_match(Tag::op_name, a, b);
  }
  static constexpr void require_dtypes(meta const* in) {
    for (int k = 1; k < Arity; ++k)
      if (in[k].type != in[0].type) refuse::dtype_is_not_supported(Tag::op_name, name(in[k].type));
  }
  /// Returns the leading sizes of matrices, followed by the given sizes.
  template <class... E>
  static constexpr dims with_own(dims const& s, E const&... own) {
    dims r = s.sub(0, s.n - 2);
    (r.push_back(own), ...);
    return r;
  }
};

/// Calls `f(pointers...)` for each entry of a batch.
template <class F, class... T>
constexpr void for_each_of_batch(dims const& batch, F const& f, strided<T> const&... s) {
  for_each_index(batch, [&](dims const& i) {
    auto const at = [&](auto const& x) {
      index_t o = 0;
      for (int d = 0; d < i.n; ++d) o += i[d].number() * x.strides[d].number();
      return x.data + o;
    };
    f(at(s)...);
  });
}
/// Returns the batch sizes of an operand whose entries have `Own` dimensions.
template <int Own, class T>
constexpr dims batch_of(strided<T> const& x) {
  return x.sizes.sub(0, x.sizes.n - Own);
}
/// Reads the matrix at p as doubles, row by row; `write_matrix` writes one.
template <class T>
constexpr void read_matrix(strided<T const> const& x, T const* p, kernel::matrices::view to) {
  int const r = x.sizes.n;
  index_t const row = x.strides[r - 2], column = x.strides[r - 1];
  for (index_t i = 0; i < to.rows; ++i)
    kernel::vectors::read(to.columns, p + i * row, column, to.data + i * to.columns);
}
template <class T>
constexpr void write_matrix(strided<T> const& x, T* p, kernel::matrices::view from) {
  int const r = x.sizes.n;
  index_t const row = x.strides[r - 2], column = x.strides[r - 1];
  for (index_t i = 0; i < from.rows; ++i)
    kernel::vectors::write(from.columns, from.data + i * from.columns, p + i * row, column);
}
template <class T>
constexpr index_t matrix_rows(strided<T> const& x) {
  return x.sizes[x.sizes.n - 2];
}
template <class T>
constexpr index_t matrix_columns(strided<T> const& x) {
  return x.sizes[x.sizes.n - 1];
}

/// Matrix products of equal batches, where one operand may be transposed.
template <value A, value B>
constexpr auto times(A const& a, B const& b) {
  return mm(a, b);
}
template <value A, value B>
constexpr auto transposed_times(A const& a, B const& b) {
  return mm(a, b, ints<1, 0>{});
}
template <value A, value B>
constexpr auto times_transposed(A const& a, B const& b) {
  return mm(a, b, ints<0, 1>{});
}
template <value X>
constexpr auto diagonal_of_matrices(X const& x) {
  return diagonal(x, ints<0>{}, ints<-2>{}, ints<-1>{});
}
/// Returns identity matrices in the shape of a batch of square matrices.
template <value X>
constexpr auto identity_like(X const& x) {
  auto const last = [](dims const& s) {
    if (s.n < 2) refuse::argument_is_invalid("linalg", "matrices are expected");
    return dims{s[s.n - 1]};
  };
  auto const row = counted(on_dims(last, shape_of(x)), x);
  auto const column = on_dims([](dims const& s) { return dims{s[0], 1}; }, shape_of(row));
  return expand(to(eq(reshape(row, column), row), type_fact(x)), shape_of(x));
}
/// Returns half of the diagonal and the elements below it. For a symmetric product this is the derivative of its lower
/// half.
template <value X>
constexpr auto lower_half(X const& x) {
  return sub(tril(x), mul(diag_embed(diagonal_of_matrices(x)), 0.5));
}
/// Return vectors as factors of the columns, or of the rows, of matrices.
template <value X>
constexpr auto as_columns_factor(X const& s) { // [.., 1, n]
  return unsqueeze(s, axis<-2>);
}
template <value X>
constexpr auto as_rows_factor(X const& s) { // [.., n, 1]
  return unsqueeze(s, axis<-1>);
}

} // namespace varve::detail
