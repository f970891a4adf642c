// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/gather.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/reshape.hpp>
#include <varve/sparse/pattern.hpp>
#include <varve/trace/proxy.hpp>
#include <varve/transform/jacobian.hpp>

#include <memory>
#include <vector>

/// @file
/// Sparse matrices as results: a pattern, and the values of its entries as an ordinary value.
namespace varve {

namespace detail {
/// A pattern that matrices share.
struct shared_pattern {
  std::shared_ptr<sparsity_pattern const> of{};
  pattern_view view() const { return of->view(); }
};
/// A pattern that is a constant of the plan `P`.
template <class P>
struct constant_pattern {
  static constexpr pattern_view view() { return P::frozen.pattern.view(); }
};

/// Returns a table of numbers as a value beside `x`: a tensor, or a constant of the trace to which x belongs.
template <value X, class E>
constexpr auto table_beside(X const& x, dims const& sizes, E const* elements) {
  if constexpr (dynamic_value<X>) {
    return dependent<tensor, X>::from_data(elements, sizes);
  } else {
    graph_builder* const b = trace_of_all(x);
    if (!b)
      refuse::argument_is_invalid("sparse_jacobian", "a derivative of a constant of a trace was asked for; pass the "
                                                     "value as an argument");
    dtype const type = dtype_of_type<E>();
    return proxy{b, b->constant(type, sizes, elements), meta{type, sizes, false}, 0};
  }
}
template <value X>
constexpr auto index_beside(X const& x, list<index_t> const& index) {
  list<std::int64_t> elements; // index_t is another type on some systems
  for (index_t const k : index) elements.push_back(k);
  return table_beside(x, dims{static_cast<index_t>(index.size())}, elements.data());
}
/// Returns the positions of entries in the flattened matrix.
constexpr list<index_t> flat_positions(pattern_view const& p) {
  list<index_t> r;
  for (int row = 0; row < p.rows; ++row)
    for (int const* c = p.begin(row); c != p.end(row); ++c) r.push_back(index_t{row} * p.columns + *c);
  return r;
}
} // namespace detail

/// A sparse matrix: `values[k]` is the entry `pattern().column[k]` of its row, in compressed rows (CSR). V is a tensor,
/// an array or a traced value of shape [count].
template <class V, class P>
struct sparse_matrix {
  P structure;
  V values; ///< of the entries, row by row

  constexpr pattern_view pattern() const { return structure.view(); }
  constexpr int rows() const { return pattern().rows; }
  constexpr int columns() const { return pattern().columns; }
  /// Returns the number of stored entries.
  constexpr int count() const { return pattern().count(); }
  /// Returns the row and the column of each entry (COO).
  std::vector<matrix_entry> entries() const {
    std::vector<matrix_entry> r;
    for (int row = 0; row < rows(); ++row)
      for (int const* c = pattern().begin(row); c != pattern().end(row); ++c) r.push_back({row, *c});
    return r;
  }
  /// Returns the matrix with all of its zeros, [rows, columns].
  constexpr auto to_dense() const {
    if constexpr (is_ints<decltype(shape_of(values))>) {
      constexpr int count = decltype(shape_of(values))::to_dims()[0].number();
      constexpr index_t n = P::view().rows, m = P::view().columns;
      constexpr auto at = [] {
        array<std::int64_t, count> r{};
        list<index_t> const flat = detail::flat_positions(P::view());
        for (int k = 0; k < count; ++k) r.data[k] = flat[k];
        return r;
      }();
      return reshape(scatter_add(detail::constant_like(values, ints<n * m>{}, 0), ints<0>{}, at, values), shape<n, m>);
    } else {
      index_t const n = rows(), m = columns();
      return reshape(scatter_add(detail::constant_like(values, dims{n * m}, 0), dims{0},
                                 detail::index_beside(values, detail::flat_positions(pattern())), values),
                     dims{n, m});
    }
  }
};

} // namespace varve
