// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/interpreter/eager.hpp>

#include <atomic>
#include <concepts>
#include <vector>

/// @file
/// The history of a view whose base was written into, found by making the view again (AG-18).
///
/// Where that is asked for: the operators that the view's old history names are called again, as many as lead from the
/// base to the same elements.
namespace varve {

namespace detail {
/// The operators that made a view, as its history tells them: the one that gave the view itself first. Those that made
/// its base may follow.
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
/// Calls the last of some operators that lead from the base to the view once more, and records them behind the history
/// that the base has now. Which of them began at the base is not written down: they did if they lead to the same
/// elements. Null where none do: the history does not tell the view, or there is none.
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
/// `replayed_history`, from when a program first asks for it on.
inline constinit std::atomic<edge (*)(tensor const& base, tensor const& view)> view_replayer{nullptr};
} // namespace detail

namespace autograd {
/// Are histories of views found by view replay on this thread?
inline bool is_view_replay_enabled() { return this_thread_state.view_replay; }

/// Says, for the life of the object, how the history of a view is found after its base, or the view, was written into
/// (`torch.autograd._force_original_view_tracking`): `true` calls the operators that made the view once more, so that
/// its `grad_fn` is the last of them; `false`, the default, takes it for a region of its base (`as_strided`). Gradients
/// are the same. A view that was made where nothing is recorded, or that is seen through a transform, is a region in
/// either case.
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
