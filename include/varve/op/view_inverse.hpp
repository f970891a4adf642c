// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/table.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/slice.hpp>
#include <varve/op/where.hpp>

/// @file
/// The inverse of each view. With it, a write into a view becomes an operator on the base value. The code serves both
/// graphs and tensors through a writer `w`. `w.add_node<Tag, k>(attributes, result, operands...)` calls operators,
/// `w.meta_of(v)` returns dtype and shape of a value, and `w.ones(meta)` makes ones.
namespace varve::detail {

/// One call of a view operator: the operator, its attributes, and dtype and shape of its operand and of its result.
struct view_call {
  op_handle const* op;
  attributes const& at;
  meta const& of;
  meta const& shows;
  template <class Tag>
  constexpr bool is() const {
    return op == &handle<Tag>;
  }
};
/// True if a view shows elements more than once. After a write into a part of such a view, the base cannot be computed
/// from the view; the part is instead written to its region of the memory.
constexpr bool repeats_elements(op_handle const* op, attributes const& at, meta const& of, meta const& shows) {
  return (op == &handle<expand_t> && numel(shows.sizes) != numel(of.sizes)) ||
         (op == &handle<as_strided_t> && varve::repeats_elements(at[0], at[1]));
}
/// True if the inverse of the view operator is known.
constexpr bool is_invertible_view(op_handle const* op) {
  return op == &handle<slice_t> || op == &handle<reshape_t> || op == &handle<permute_t> || op == &handle<expand_t> ||
         op == &handle<as_strided_t> || op == &handle<detach_t>;
}

template <class W, class Base>
constexpr auto piece_of_base(W& w, view_call const& view, int axis, extent from, extent to, Base const& base) {
  meta m = view.of;
  m.sizes[axis] = to - from;
  return w.template add_node<slice_t, 1>(attributes(dims{axis, from, to, 1}), m, base());
}
template <class W, class V>
constexpr V beside(W& w, int axis, extent size, V const& first, V const& second, meta m) {
  m.sizes[axis] = size;
  return w.template add_node<cat_t, 1>(attributes(dims{axis}), m, first, second);
}
/// Writes into a slice with a step. A mask selects the elements: the slice of zeros, with ones written into it.
template <class W, class Base, class V>
constexpr V put_among(W& w, view_call const& view, Base const& base, V const& v) {
  meta const part = w.meta_of(v), mask{dtype::bool_, view.of.sizes};
  attributes const where(view.of.sizes, view.at[0]);
  V const there = w.template add_node<to_t, 1>(attributes(dims{static_cast<index_t>(dtype::bool_)}), mask,
                                               w.template add_node<slice_backward_t, 2>(where, view.of, w.ones(part)));
  V const wide = w.template add_node<slice_backward_t, 2>(where, view.of, v);
  return w.template add_node<where_t, 0>(no_attributes, view.of, there, wide, base());
}
template <class W, class Base, class V>
constexpr V put_slice(W& w, view_call const& view, Base const& base, V v) {
  dims const& r = view.at[0];
  int const axis = static_cast<int>(r[0]);
  extent const size = view.of.sizes[axis], parts = slice_count(r);
  if (parts == 0) return base();
  if (parts == size) return v;
  if (r[3] != 1 && parts > 1) return put_among(w, view, base, v);
  extent const last = r[1] + 1 + (parts - 1) * r[3];
  if (r[1] > 0) v = beside(w, axis, last, piece_of_base(w, view, axis, 0, r[1], base), v, view.of);
  if (last < size) v = beside(w, axis, size, v, piece_of_base(w, view, axis, last, size, base), view.of);
  return v;
}
/// Returns the base of a view after the view became `v`; `base()` is the base before.
template <class W, class Base, class V>
constexpr V put_back(W& w, view_call const& view, Base const& base, V const& v) {
  meta const& m = view.of;
  if (view.is<detach_t>()) return v;
  if (view.is<reshape_t>()) return w.template add_node<reshape_t, 1>(attributes(m.sizes), m, v);
  if (view.is<permute_t>()) return w.template add_node<permute_t, 1>(attributes(inverse_permutation(view.at[0])), m, v);
  if (view.is<as_strided_t>())
    return w.template add_node<as_strided_scatter_t, 2>(attributes(view.at[1], view.at[2]), m, base(), v);
  if (view.is<expand_t>() && numel(view.shows.sizes) == numel(m.sizes))
    return w.template add_node<reshape_t, 1>(attributes(m.sizes), m, v);
  if (!view.is<slice_t>())
    refuse::argument_is_invalid("functionalize",
                                "an expanded value repeats its elements and cannot be written into; clone it first");
  return put_slice(w, view, base, v);
}

} // namespace varve::detail
