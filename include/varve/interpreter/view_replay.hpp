// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/interpreter/eager.hpp>

#include <atomic>
#include <concepts>
#include <vector>

/// @file
/// View replay: after its base was written into, the history of a view is found by making the view again.
///
/// If a program enables this, the operators in the view's old history that lead from the base to the same elements are
/// called again.
namespace varve {

namespace detail {
/// Returns the operators that made a view, found in its history, the last one first. Operators that made its base may
/// follow.
template <class T>
list<dependent<operator_node, T>*> view_operators(T const& view) {
  list<dependent<operator_node, T>*> r;
  for (grad_node* n = view.history().to(); n && n->type == &operator_node::type_; n = n->next[0].to()) {
    auto* const op = static_cast<operator_node*>(n);
    if (op->table->kind != op_kind::view || op->operands != 1) break;
    r.push_back(op);
  }
  return r;
}
inline bool same_place(tensor const& a, tensor const& b) {
  layout const x = a.where(), y = b.where();
  return a.shares_storage(b) && a.dtype() == b.dtype() && x.sizes == y.sizes && x.strides == y.strides &&
         x.offset == y.offset;
}
/// Replays the operators that lead from the base to the view, and records them after the base's current history. The
/// history does not tell which operator began at the base. The function tries the last operator, then the last two, and
/// so on, until they lead to the same elements. Returns an empty edge if there is none.
template <class T = tensor>
edge replayed_history(T const& base, T const& view) {
  auto const ops = view_operators(view);
  std::vector<T> made;
  dims from = view.sizes();
  for (std::size_t count = 1; count <= ops.size(); ++count) {
    if (ops.data()[count - 1]->kept) { // else its operand has the sizes of its result
      T const& operand = ops.data()[count - 1]->saved()->value;
      if (!operand.defined()) break;
      from = operand.sizes();
    }
    if (!(from == base.sizes())) continue;
    made.assign(1, base);
    for (std::size_t k = count; k-- > 0;)
      made.push_back(ops.data()[k]->table->eval(ops.data()[k]->attributes_of(), boxed_args(made.back())));
    if (!same_place(made.back(), view)) continue;
    edge e = base.history();
    for (std::size_t k = count; k-- > 0;) {
      attributes const at = ops.data()[k]->attributes_of();
      boxed_op const op{ops.data()[k]->table, &at};
      T const &x = made[count - 1 - k], &y = made[count - k];
      e = edge_to(operator_node::make(op, y, boxed_args(x), [&](int) { return &e; }, true));
    }
    return e;
  }
  return {};
}
/// `replayed_history`, once a program has enabled it; null before.
inline constinit std::atomic<edge (*)(tensor const& base, tensor const& view)> view_replayer{nullptr};
} // namespace detail

namespace autograd {
/// True if this thread finds histories of views by view replay.
inline bool is_view_replay_enabled() { return this_thread_state.view_replay; }

/// Sets, for the lifetime of the object, how the history of a view is found after its base, or the view, was written
/// into (`torch.autograd._force_original_view_tracking`). With `true` the operators that made the view are called
/// again, and its `grad_fn` is the last of them. With `false`, the default, the view is treated as a region of its base
/// (`as_strided`). Gradients are the same. A view that was made while nothing was recorded, or that is seen through a
/// transform, is a region in both cases.
class force_original_view_tracking {
public:
  template <std::same_as<bool> On> // a template, so that the header alone instantiates nothing
  explicit force_original_view_tracking(On on) : before_(this_thread_state.view_replay) {
    if (on) detail::view_replayer.store(&detail::replayed_history<dependent<tensor, On>>, std::memory_order_release);
    this_thread_state.view_replay = on;
  }
  force_original_view_tracking(force_original_view_tracking const&) = delete;
  force_original_view_tracking& operator=(force_original_view_tracking const&) = delete;
  ~force_original_view_tracking() { this_thread_state.view_replay = before_; }

private:
  bool before_;
};
} // namespace autograd

} // namespace varve
