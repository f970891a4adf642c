// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/anomaly.hpp>
#include <varve/core/owner_lock.hpp>
#include <varve/interpreter/function_node.hpp>
#include <varve/interpreter/mirror_autograd_meta.hpp>
#include <varve/interpreter/view_history.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/in_place.hpp>

/// @file
/// Leaves: tensors whose gradient the user requested.
namespace varve {

namespace detail {
/// The node at the end of a graph (AccumulateGrad), which collects the gradient of a leaf. The leaf and the graphs that
/// lead to the node own it.
struct accumulate_grad : grad_node {
  tensor grad;
  /// The leaf without its history, which hooks receive. The leaf owns the node, so the node must not own the leaf.
  tensor memory;
  owner_lock busy; // backward passes of several threads may reach this node

  static grad_node_type const type_;
  /// The function that adds gradients; set when there is a leaf.
  static inline constinit std::atomic<void (*)(tensor& sum, tensor const& g)> add_to{nullptr};

  accumulate_grad() : grad_node(&type_) { sequence = ~std::uint64_t{0}; }
  tensor get() {
    owner_lock::held const on(busy);
    return grad;
  }
  void set(tensor g) {
    owner_lock::held const on(busy);
    tensor old = static_cast<tensor&&>(grad);
    grad = static_cast<tensor&&>(g);
    g = static_cast<tensor&&>(old);
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const*) {
    if (!g[0].defined()) return {};
    auto& self = static_cast<accumulate_grad&>(n);
    if (program_leaves) [[unlikely]]
      program_leaves->adding(n);
    // Modes may see the addition and run arbitrary code, which may read this gradient or add to it.
    owner_lock::held const on(self.busy);
    tensor before;
    do {
      before = self.grad;
      tensor sum = before;
      add_to.load(std::memory_order_acquire)(sum, static_cast<tensor const&>(g[0]));
      if (self.grad.is(before)) {
        self.grad = static_cast<tensor&&>(sum);
        return {};
      }
    } while (true);
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<accumulate_grad*>(n);
  }
};
inline constexpr grad_node_type accumulate_grad::type_{
    &accumulate_grad::backward, [](grad_node&) {}, &accumulate_grad::destroy,
    [](grad_node const&, char* out) { std::strcpy(out, "AccumulateGrad"); }, true};

inline accumulate_grad* leaf_of(tensor const& t) {
  grad_node* const n = t.defined() ? t.history().to() : nullptr;
  return n && n->type == &accumulate_grad::type_ ? static_cast<accumulate_grad*>(n) : nullptr;
}
/// Adds a gradient to that of a leaf, in place unless the sum needs a history. A first gradient that nobody else uses
/// is stored without a copy; others are copied, so that no two leaves share one.
template <class T = tensor>
void add_to_gradient(T& sum, T const& g) {
  bool const recorded = this_thread_state.grad_mode;
  if (!sum.defined())
    sum = !recorded && g.is_unique() && g.is_contiguous() && !g.has_history() ? g
                                                                              : T(clone(recorded ? g : T(g.detach())));
  else if (recorded || sum.has_history() || !sum.is_contiguous() || sum.is_wrapped() || g.is_wrapped())
    sum = T(add(sum, g));
  else add_(sum, g);
}
/// Clones a value that has no memory of its own, or that is in a trace, by the operator below autograd. A clone in
/// `no_grad` mode would be recorded in a graph as a constant for derivatives.
template <class T>
tensor copy_by_operator(T const& t) {
  key_guard const off(this_thread_state.included,
                      this_thread_state.excluded | dispatch_key_set(dispatch_key::autograd_functionality));
  return clone(t);
}
/// The functions of eager autograd, which the first leaf installs.
template <class On>
inline constexpr autograd_hooks eager_autograd{
    &record_eagerly,
    &record_eagerly_done,
    &history_of_view<dependent<tensor, On>>,
    &history_of_base<dependent<tensor, On>>,
    [](edge const& e) { node_extra<dependent<tensor, On>>::of(*e.to()).retain(e.nr()); },
    &note_call<dependent<tensor, On>>,
    &copy_by_operator<dependent<tensor, On>>};

[[noreturn]] VARVE_COLD inline void refuse_autograd(char const* what, char const* why) {
  refuse::with<autograd_error>((std::string("varve: ") + what + ": " + why).c_str());
}
VARVE_COLD inline void refuse_inside_transform(char const* what, tensor const& t) {
  if (t.is_wrapped())
    refuse::with<transform_error>(
        (std::string("varve: ") + what +
         " was called inside of a transform, on a value seen through it; transforms differentiate by grad, vjp and jvp")
            .c_str());
}
/// Refuses hooks on a tensor that a traced function captures: the trace would register one, and each call another.
VARVE_COLD inline void refuse_captured(char const* what, tensor const& t) {
  for (layer const* l = t.is_wrapped() ? nullptr : this_thread_state.transforms.top; l; l = l->below)
    if (l->kind->is_trace())
      refuse_autograd(what, "a function that is traced captures the tensor, and each call would register the hook "
                            "again; register it outside of the function");
}
/// True if a value comes from a transform that has ended; it then stands for its inner value.
inline bool is_left_over(tensor const& t) { return t.is_wrapped() && !is_alive(this_thread_state.transforms.top, t); }
inline tensor outside(tensor const& t) { return unwrap_dead(this_thread_state.transforms.top, t); }
} // namespace detail

namespace detail {
/// Implements `requires_grad_`. (A template, so that the header alone instantiates no operator.)
template <class On>
void require_grad(tensor const& t, bool on);
} // namespace detail
template <class T>
tensor const& tensor::requires_grad_(T on) const {
  detail::require_grad<dependent<bool, T>>(*this, static_cast<bool>(on));
  return *this;
}
inline bool tensor::is_leaf() const {
  tensor const* t = &detail::where_recorded(*this);
  while (t->is_wrapped() && !t->history()) t = &t->inner(); // mapped, or with a tangent
  return !t->requires_grad() || detail::eager_history(*t).to()->type->is_leaf;
}

template <class T>
void tensor::retain_grad() const {
  tensor const& t = detail::where_recorded(*this);
  detail::refuse_inside_transform("retain_grad", t);
  if (!t.requires_grad()) detail::refuse_autograd("retain_grad", "the tensor does not require grad");
  if (t.is_leaf()) return;
  edge const& e = detail::eager_history(t);
  detail::node_extra<dependent<tensor, T>>::of(*e.to()).retain(e.nr());
}
template <class T>
T tensor::grad_fn() const {
  if (!defined()) return T();
  edge const& e = detail::eager_history(detail::where_recorded(*this));
  return e && !e.to()->type->is_leaf ? T(e.to()) : T();
}
inline int tensor::output_nr() const {
  if (!defined()) detail::refuse_undefined("output_nr");
  return static_cast<int>(detail::eager_history(detail::where_recorded(*this)).nr());
}
template <class F>
hook_handle tensor::register_hook(F f) const {
  if (!requires_grad()) detail::refuse_autograd("register_hook", "the tensor does not require grad");
  edge const& e = detail::eager_history(detail::where_recorded(*this));
  if (!e)
    detail::refuse_autograd("register_hook",
                            "the tensor has a history only below the transform through which it is seen");
  detail::refuse_captured("register_hook", detail::where_recorded(*this));
  auto& l = detail::node_extra<dependent<tensor, F>>::of(*e.to()).hooks;
  ++detail::hooks_registered;
  auto call = [f = std::move(f)](tensor const& g) mutable -> tensor {
    if constexpr (std::is_void_v<decltype(f(g))>) return f(g), tensor();
    else return f(g);
  };
  l->tensors.push_back({l->next, e.nr(), tensor_hook(std::move(call))});
  return {l, l->next++};
}
template <class F>
hook_handle tensor::register_post_accumulate_grad_hook(F f) const {
  static_assert(std::is_void_v<decltype(f(*this))>,
                "varve: register_post_accumulate_grad_hook: the hook returns something, which nobody would use; let it "
                "return nothing, and write with set_grad");
  auto* const leaf = detail::leaf_of(*this);
  if (!leaf)
    detail::refuse_autograd("register_post_accumulate_grad_hook",
                            "only leaves that require grad have a gradient that is added to");
  detail::refuse_captured("register_post_accumulate_grad_hook", detail::where_recorded(*this));
  auto& l = detail::node_extra<dependent<tensor, F>>::of(*leaf).hooks;
  leaf->memory = alias();
  auto call = [f = std::move(f)](grad_node& n) mutable {
    tensor const self = static_cast<detail::accumulate_grad&>(n).memory.alias();
    self.set_history(edge(&n, 0));
    f(self);
  };
  l->accumulated.push_back({l->next, shared_function<void(grad_node&)>(std::move(call))});
  return {l, l->next++};
}

template <class T>
T tensor::detach() const {
  return varve::detach(T(*this));
}
inline tensor const& tensor::detach_() const {
  if (!defined()) detail::refuse_undefined("detach_");
  if (base().defined()) detail::refuse_autograd("detach_", "a view cannot be detached in place; use detach");
  if (is_wrapped() && !inner().is_wrapped() && inner().has_history() && inner().is_leaf())
    detail::refuse_autograd("detach_", "an argument of a transform, or what it captures, stays a leaf; use detach");
  if (state()) state()->detach_(*this);
  set_history({});
  if (is_wrapped() && !state()) { // levels below store other histories, and tangents
    auto const* const l = detail::layer_at_work(layer());
    if (l && l->kind->role == layer_role::jvp) set_extra({});
    if (l && !l->kind->is_trace() && (inner().is_wrapped() || inner().has_history())) inner().detach_();
  }
  if (detail::watches_renames) [[unlikely]]
    detail::watches_renames->read(*detail::watches_renames, *this, *this);
  return *this;
}
inline tensor tensor::data() const {
  if (!defined()) detail::refuse_undefined("data");
  if (detail::is_left_over(*this)) return detail::outside(*this).data();
  if (is_wrapped())
    refuse::with<transform_error>("varve: data was read inside of a transform, of a value seen through it; use detach");
  // An object that represents other memory, such as a functional tensor, records `detach` itself in a graph.
  bool const says_so = detail::watches_renames && object() && detail::watches_renames->detach;
  tensor r = says_so ? detail::watches_renames->detach(*this) : alias();
  r.own_version();
  if (detail::watches_renames && !says_so) [[unlikely]]
    detail::watches_renames->read(*detail::watches_renames, *this, r);
  return r;
}
inline void tensor::set_data(tensor const& y) const {
  if (detail::is_left_over(*this) || detail::is_left_over(y))
    return detail::outside(*this).set_data(detail::outside(y));
  if (is_wrapped() || y.is_wrapped())
    refuse::with<transform_error>("varve: set_data was called inside of a transform, with a value seen through it");
  bool const objects = object() && y.object() && &object()->type() == &y.object()->type();
  if (!objects && (!has_data() || !y.has_data()))
    refuse::with<dtype_error>("varve: set_data: incompatible tensor type; both tensors must have memory of their own");
  if (has_history() && !has_derivatives(y.dtype()))
    refuse::with<dtype_error>(
        (std::string("varve: set_data: a tensor that requires grad cannot hold ") + name(y.dtype())).c_str());
  auto* const leaf = detail::leaf_of(*this);
  bool const other_type = y.dtype() != dtype();
  if (detail::watches_renames) [[unlikely]]
    detail::watches_renames->renaming(*detail::watches_renames, "set_data", *this);
  if (objects) become_alias(y);
  else take_memory_of(y);
  if (detail::watches_renames) [[unlikely]]
    detail::watches_renames->renamed(*detail::watches_renames, *this, y);
  if (leaf && other_type) {
    // As in PyTorch, the accumulator is replaced. Graphs recorded before keep the old one.
    auto* const fresh = new detail::accumulate_grad;
    fresh->extra = leaf->extra;
    leaf->extra = nullptr;
    if (leaf->memory.defined()) fresh->memory = alias();
    set_history(detail::edge_to(fresh));
  } else if (leaf && leaf->memory.defined()) {
    leaf->memory = alias();
  }
}

#if VARVE_DEFINES
template <class On>
void detail::require_grad(tensor const& t, bool on) {
  if (!t.defined()) refuse_undefined("requires_grad_");
  if (is_left_over(t)) return require_grad<On>(outside(t), on);
  refuse_inside_transform("requires_grad_", t);
  if (inside_transform())
    refuse::with<transform_error>(
        "varve: requires_grad_ was called inside of a transform; transforms differentiate by grad, vjp and jvp");
  autograd_kernels.store(&eager_autograd<On>, std::memory_order_release);
  accumulate_grad::add_to.store(&add_to_gradient<dependent<tensor, On>>, std::memory_order_release);
  if (!t.is_leaf()) {
    if (!on)
      refuse_autograd("requires_grad_",
                      "only leaves can stop to require gradients; use detach for a value that does not");
    return;
  }
  if (on == t.history().operator bool()) return;
  if (on && !has_derivatives(t.dtype()))
    refuse::with<dtype_error>(
        (std::string("varve: requires_grad_: only floating tensors have gradients, not ") + name(t.dtype())).c_str());
  if (on && t.is_inference() && !this_thread_inference)
    refuse_autograd("requires_grad_", "the tensor was made in inference mode; clone it first, or ask for it there");
  if (on) t.set_history(edge_to(new accumulate_grad));
  else t.set_history({});
  // Views of t have the same base as t, which has no record of this leaf. A write through such a view would replace the
  // history of t and lose the leaf's gradient.
  if (t.base().defined() && (on ? t.origin() == view_origin::usual : t.origin() == view_origin::leaf))
    t.set_origin(on ? view_origin::leaf : view_origin::usual);
}
#endif

} // namespace varve
