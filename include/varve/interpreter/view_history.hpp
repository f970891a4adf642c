// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>
#include <varve/interpreter/view_replay.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/permute.hpp>

/// @file
/// Writes into views: the new histories of the view and of its base.
///
/// Views point to their base. Writing into a view makes the base's history a `CopySlices`. Other views recompute their
/// history, as `as_strided` of the base, when their version is out of date. This holds at every level of `grad` and
/// `jvp`: a value seen there that is a view points to the base as seen there. The version counter belongs to the
/// memory, except for `data()` and `set_data`, whose tensors have or keep a separate one.
namespace varve::detail {

/// A view as a region of its base: strides, and the offset of its first element. For values seen through transforms
/// these are those of one slice; mapped dimensions are in front. `order` lists the dimensions of the base in memory
/// order, if that differs from their own order.
struct shown_region {
  dims strides, offset, order;
};
inline shown_region region_of(tensor const& base, tensor const& view) {
  tensor const *b = &base, *v = &view;
  int mapped = 0;
  while (b->is_wrapped() && v->is_wrapped() && !b->state()) {
    mapped += b->inner().dim() - b->dim();
    b = &b->inner();
    v = &v->inner();
  }
  layout const whole = b->state() ? b->state()->layout_shown() : b->where(),
               l = v->state() ? v->state()->layout_shown() : v->where();
  shown_region r{{}, dims{l.offset - whole.offset}, {}};
  if (!whole.contiguous()) {
    for (extent k : memory_order(whole, mapped)) r.order.push_back(k - mapped);
    if (!is_dense(whole, mapped))
      refuse::with<autograd_error>(
          "varve: the history of a view is asked for after its base, whose memory has gaps, was "
          "written into; clone the base first");
  }
  for (int k = mapped; k < l.sizes.n; ++k) r.strides.push_back(l.strides[k]);
  return r;
}
/// Returns a value of a base with its dimensions in memory order. `as_the_base` restores the order of the base.
template <class T>
T as_it_lies(T const& whole, shown_region const& r) {
  return contiguous(r.order.n ? T(permute(whole, r.order)) : whole);
}
template <class T>
T as_the_base(T const& lies, shown_region const& r) {
  return r.order.n ? T(permute(lies, inverse_permutation(r.order))) : lies;
}
template <class T = tensor>
edge history_of_view(T const& base, T const& view) {
  if (this_thread_state.view_replay && !view.is_wrapped()) [[unlikely]]
    if (edge e = view_replayer.load(std::memory_order_acquire)(base, view)) return e;
  shown_region const r = region_of(base, view);
  edge from = base.history();
  T lies = base;
  if (r.order.n) {
    attributes const at(r.order);
    boxed_op const op{registered_table<permute_t, 1>(), &at};
    dims sizes;
    for (int k = 0; k < r.order.n; ++k) sizes.push_back(base.sizes()[static_cast<int>(r.order[k])]);
    lies = T::meta(sizes, base.dtype());
    from = edge_to(operator_node::make(op, lies, boxed_args(base), [&](int) { return &base.history(); }, true));
  }
  attributes const at(view.sizes(), r.strides, r.offset);
  boxed_op const op{registered_table<as_strided_t, 3>(), &at};
  return edge_to(operator_node::make(op, view, boxed_args(lies), [&](int) { return &from; }, true));
}
/// The backward function of a base into which a view was written. Outside of the region the gradient is unchanged;
/// inside it goes through the operator that wrote there.
template <class T = tensor>
struct copy_slices {
  edge written;
  dims sizes;
  shown_region at;
  int target; // the operand that was written into
  static constexpr bool is_linear = true;
  boxed_args operator()(boxed_args const& g, bool const* wanted) const {
    if (!g[0].defined()) return {};
    T const whole = as_it_lies(static_cast<T const&>(g[0]), at);
    boxed_args inside(T(as_strided(whole, sizes, at.strides, at.offset)));
    grad_node& n = *written.to();
    boxed_args r = n.type->backward(n, inside, wanted);
    if (wanted[target]) {
      T const part = r.size() > target && r[target].defined()
                         ? T(r[target])
                         : T(detail::constant_zeros(static_cast<T const&>(inside[0])));
      while (r.size() <= target) r.push_back(tensor());
      r[target] = as_the_base(T(as_strided_scatter(whole, part, at.strides, at.offset)), at);
    }
    return r;
  }
  void release() { written.to()->type->release(*written.to()); }
};
template <class T = tensor>
edge history_of_base(T const& base, edge const& old, T const& view, grad_node* written, int target) {
  shown_region const at = region_of(base, view);
  std::vector<dependent<edge, T>> edges;
  for (int i = 0; i < written->count; ++i) edges.push_back(i == target ? old : written->next[i]);
  // The operator's own edge to the view remains: its gradient is needed if that of the base is.
  return edge_to(
      record_function(copy_slices<T>{edge(written, 0), view.sizes(), at, target}, std::move(edges), 1, "CopySlices"));
}
/// The functions that `rebase` needs, for a level of `grad`. Eager autograd has the same ones behind pointers.
template <class T = tensor>
struct level_views {
  static edge history_of_view(T const& base, T const& view) { return detail::history_of_view<T>(base, view); }
  static edge history_of_base(T const& base, edge const& old, T const& view, grad_node* written, int target) {
    return detail::history_of_base<T>(base, old, view, written, target);
  }
};
/// Returns the tangent of a view, computed from that of its base.
template <class T = tensor>
T tangent_of_view(T const& base, T const& view) {
  if (!base.extra().defined()) return {};
  shown_region const at = region_of(base, view);
  return as_strided(as_it_lies(static_cast<T const&>(base.extra()), at), view.sizes(), at.strides, at.offset);
}
/// Sets the tangent of a value. If it is a view, the tangent of its base changes, too.
template <class T = tensor>
void change_tangent(T const& self, T tangent) {
  T const base = self.base();
  bool const known = self.extra().defined() || (base.defined() && base.extra().defined());
  if (!tangent.defined() && !known) return;
  if (!tangent.defined()) tangent = detail::constant_zeros(T(self.inner()));
  if (base.defined()) {
    shown_region const at = region_of(base, self);
    T const whole = as_it_lies(
        base.extra().defined() ? static_cast<T const&>(base.extra()) : T(detail::constant_zeros(T(base.inner()))), at);
    base.set_extra(as_the_base(T(as_strided_scatter(whole, tangent, at.strides, at.offset)), at));
  }
  self.set_extra(tangent);
}

} // namespace varve::detail
