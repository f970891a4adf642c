// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/library.hpp>
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/function_node.hpp>

#include <vector>

namespace varve {

/// One layer of this thread's dynamic stack, as rules and users see it. A rule registered for a transform receives it.
/// The interpreter borrows the layer, which lives as long as its transform runs.
class interpreter {
public:
  explicit interpreter(layer& l) : layer_(&l) {}

  /// Returns the kind: "grad", "jvp", "vmap", "trace".
  char const* kind() const { return layer_->kind->name; }
  /// Returns the position in the stack, from 1. Inner transforms have higher levels.
  int level() const { return layer_->level; }
  /// Returns the size of the mapped dimension, 0 for kinds other than `vmap`. `randomness` returns the policy for
  /// random operators.
  extent batch_size() const { return maps() ? batch_level::of(*layer_).batch_size : extent(0); }
  random_policy randomness() const { return maps() ? batch_level::of(*layer_).random : random_policy::error; }
  /// Returns the dispatch keys of this interpreter. Kernels that a `library` registers at these keys see the calls that
  /// it processes. Kernels at other keys between `transform` and `transform_back` do not, except those at autocast.
  /// `grad_interpreter<Lv>::keys` is the static equivalent.
  dispatch_key_set keys() const { return layer_->kind->keys; }
  /// Compares the state that decides what calls mean: kind, level, batch size, policy.
  friend bool operator==(interpreter const& a, interpreter const& b) {
    return a.layer_->kind->is_like(*b.layer_->kind) && a.level() == b.level() &&
           known_equal(a.batch_size(), b.batch_size()) && a.randomness() == b.randomness();
  }

  /// Runs `body` with this layer off the stack and with the keys that the thread had at the call; both are restored on
  /// every exit. Calls in `body` go to the next interpreter. Throws `transform_error` if the layer is not the top one.
  template <class F>
  auto lower(F const& body) const {
    layer const* const top = this_thread_state.transforms.top;
    if (!top || top->id != layer_->id)
      refuse::with<transform_error>(
          (std::string("varve: interpreter ") + kind() + " is not the innermost one; only that can be lowered")
              .c_str());
    lowered const off;
    return body();
  }
  /// Passes a call to this interpreter's own rules, as happens when nothing is registered for the operator.
  tensor process(boxed_op const& op, boxed_args const& x) const {
    return lower([&] { return layer_->kind->process(*layer_, op, x); });
  }

  /// True if a value is seen through this layer: mapped, tracked, or with a tangent.
  bool owns(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == layer_->id; }
  /// Returns the value inside. Under `vmap`, a mapped value has its mapped dimension in front.
  tensor unwrap(tensor const& t) const { return owns(t) ? t.current() : t; }
  boxed_args unwrap(boxed_args const& x) const {
    boxed_args r;
    for (auto const& t : x) r.push_back(unwrap(t));
    return r;
  }
  /// Returns a value whose dimension 0 is the mapped one, as the mapped function sees it (`vmap` only).
  tensor wrap(tensor const& y) const {
    dims logical = y.sizes();
    return tensor::wrap(y, layer_->id, layer_->level, {}, {}, logical.erase(0));
  }
  /// Returns the tangent of a value, undefined if it has none (`jvp` only). `wrap(y, tangent)` returns y with a
  /// tangent, or y itself if the tangent is undefined.
  tensor tangent(tensor const& t) const { return owns(t) ? tensor(fresh(t).extra()) : tensor(); }
  tensor wrap(tensor const& y, tensor const& tangent) const {
    return tangent.defined() ? tensor::wrap(y, layer_->id, layer_->level, tangent, {}, y.sizes()) : y;
  }
  /// Records y as a function of operands (`grad` only). `pullback(g)` returns the cotangent of each operand, undefined
  /// where there is none. Cotangents of operands that this layer does not track are ignored. If it tracks none of them,
  /// y is returned unchanged. Throws `transform_error` if the interpreter records no gradients.
  template <class F>
  tensor record(tensor const& y, boxed_args const& operands, F pullback) const;

private:
  bool maps() const { return layer_->kind->role == layer_role::vmap; }
  tensor const& fresh(tensor const& t) const {
    return t.base().defined() ? static_cast<dynamic_level const*>(layer_->object)->fresh(t) : t;
  }
  layer* layer_;
};

template <class F>
tensor interpreter::record(tensor const& y, boxed_args const& operands, F pullback) const {
  if (!layer_->kind->records || !layer_->object)
    refuse::with<transform_error>(
        (std::string("varve: interpreter ") + kind() + " records no gradients; record is for rules of grad").c_str());
  std::vector<edge> edges;
  bool any = false;
  for (auto const& t : operands) {
    edges.push_back(owns(t) ? fresh(t).history() : edge());
    any = any || edges.back();
  }
  if (!any || !layer_->grad_mode || !has_derivatives(y.dtype())) return y;
  int const count = static_cast<int>(edges.size());
  auto pull = [pullback = std::move(pullback), count](boxed_args const& g, bool const*) -> boxed_args {
    if (!g[0].defined()) return {};
    auto r = pullback(static_cast<tensor const&>(g[0]));
    if (r.size() != count)
      refuse::with<transform_error>(("varve: a pullback gave " + std::to_string(r.size()) + " cotangents for " +
                                     std::to_string(count) + " operands")
                                        .c_str());
    return r;
  };
  return tensor::wrap(y, layer_->id, layer_->level, {},
                      detail::edge_to(detail::record_function(std::move(pull), std::move(edges), 1, "CustomBackward")),
                      y.sizes());
}

/// Returns the interpreters of this thread's dynamic layer stack, outermost first. Empty outside transforms.
template <class I = interpreter> // a template, so that it costs nothing unless used
std::vector<I> dynamic_layer_stack() {
  std::vector<I> r;
  for (layer* l = this_thread_state.transforms.top; l; l = l->below) r.insert(r.begin(), I(*l));
  return r;
}

/// Removes the innermost `count` transforms of this thread from the stack for the lifetime of the object, and then
/// restores them in their order. Throws `transform_error` if fewer transforms are active.
class temporarily_popped {
public:
  explicit temporarily_popped(int count) : saved_(this_thread_state.transforms.top) {
    layer* l = saved_;
    for (int k = 0; k < count; ++k) {
      if (!l) refuse::with<transform_error>("varve: fewer transforms are at work than are to be popped");
      l = l->below;
    }
    detail::set_top(this_thread_state.transforms, l);
  }
  temporarily_popped(temporarily_popped const&) = delete;
  temporarily_popped& operator=(temporarily_popped const&) = delete;
  ~temporarily_popped() { detail::set_top(this_thread_state.transforms, saved_); }

private:
  layer* saved_;
};

} // namespace varve
