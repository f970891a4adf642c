// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/eager.hpp>
#include <varve/op/as_strided.hpp>

/// @file
/// Writing into views: what their histories, and that of their base, become (AG-15).
namespace varve::detail {

/// A view as a region of its base: strides, and the offset of its first element.
inline std::pair<dims, dims> region_of(tensor const& base, tensor const& view) {
  if (!base.is_contiguous()) throw autograd_error("varve: the history of a view is asked for after its base, which is not contiguous, was written into; clone the base first");
  layout const l = view.where();
  dims strides = l.strides;
  strides.n = l.sizes.n;
  return {strides, dims{l.offset - base.where().offset}};
}
template <class T = tensor>
edge history_of_view(T const& base, T const& view) {
  auto const [strides, offset] = region_of(base, view);
  attributes const at(view.sizes(), strides, offset);
  boxed_op const op{registered_table<as_strided_t, 3>(), &at};
  auto* const n = operator_node::make(op, view, boxed_args(base), [&](int) { return &base.history(); }, true);
  return edge_to(n);
}
/// The gradient of a base: outside of the region as it was, inside what goes through the operator that wrote there.
template <class T = tensor>
struct copy_slices {
  edge written;
  dims sizes, strides, offset;
  int target; // which operand was written into
  boxed_args operator()(boxed_args const& g, bool const* wanted) const {
    if (!g[0].defined()) return {};
    T const whole = contiguous(static_cast<T const&>(g[0]));
    boxed_args inside(T(as_strided(whole, sizes, strides, offset)));
    grad_node& n = *written.to();
    boxed_args r = n.type->backward(n, inside, wanted);
    if (wanted[target]) {
      T const part = r.size() > target && r[target].defined() ? T(r[target]) : T(full_like(static_cast<T const&>(inside[0]), 0));
      while (r.size() <= target) r.push_back(tensor());
      r[target] = as_strided_scatter(whole, part, strides, offset);
    }
    return r;
  }
  void release() { written.to()->type->release(*written.to()); }
};
template <class T = tensor>
edge history_of_base(T const& base, edge const& old, T const& view, grad_node* written, int target) {
  auto const [strides, offset] = region_of(base, view);
  std::vector<edge> edges;
  for (int i = 0; i < written->count; ++i) edges.push_back(i == target ? old : written->next[i]);
  // The operator's own edge to the view stays: its gradient is wanted when that of the base is.
  return edge_to(record_function(copy_slices<T>{edge(written, 0), view.sizes(), strides, offset, target}, std::move(edges), 1, "CopySlices"));
}

} // namespace varve::detail
