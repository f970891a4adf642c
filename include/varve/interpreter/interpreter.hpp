// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/library.hpp>
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/function_node.hpp>

#include <vector>

namespace varve {

/// One layer of this thread's dynamic stack, as rules and users see it (FS-14): what a rule registered for a transform
/// is given. It borrows the layer, which lives as long as its transform runs.
class interpreter {
public:
  explicit interpreter(layer& l) : layer_(&l) {}

  /// "grad", "jvp", "vmap", "trace".
  char const* kind() const { return layer_->kind->name; }
  /// Position in the stack, from 1; inner transforms have higher levels.
  int level() const { return layer_->level; }
  /// Size of the mapped dimension and policy for random operators; of `vmap` only.
  extent batch_size() const { return maps() ? batch_level::of(*layer_).batch_size : extent(0); }
  random_policy randomness() const { return maps() ? batch_level::of(*layer_).random : random_policy::error; }
  /// The keys that implement it: kernels that a `library` registered there see the calls it processes, others between
  /// `transform` and `transform_back` do not, but those at autocast (FS-3). A static interpreter says the same as
  /// `grad_interpreter<Lv>::keys`.
  dispatch_key_set keys() const { return layer_->kind->keys; }
  /// The state that decides what calls mean: kind, level, batch size, policy (FS-18).
  friend bool operator==(interpreter const& a, interpreter const& b) {
    return a.layer_->kind->is_like(*b.layer_->kind) && a.level() == b.level() &&
           known_equal(a.batch_size(), b.batch_size()) && a.randomness() == b.randomness();
  }

  /// Runs `body` with this layer off the stack and the keys of the thread as at the call (FS-4), on every exit put
  /// back: calls in it go to the next interpreter. The layer must be the top one.
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
  /// Hands a call to this interpreter's own rules: what happens when nothing is registered for the operator.
  tensor process(boxed_op const& op, boxed_args const& x) const {
    return lower([&] { return layer_->kind->process(*layer_, op, x); });
  }

  /// Is a value seen through this layer: mapped, tracked, with a tangent?
  bool owns(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == layer_->id; }
  /// The value inside. Under `vmap` a mapped value has its mapped dimension in front.
  tensor unwrap(tensor const& t) const { return owns(t) ? t.current() : t; }
  boxed_args unwrap(boxed_args const& x) const {
    boxed_args r;
    for (auto const& t : x) r.push_back(unwrap(t));
    return r;
  }
  /// `vmap`: a value whose dimension 0 is the mapped one, as the mapped function sees it.
  tensor wrap(tensor const& y) const {
    dims logical = y.sizes();
    return tensor::wrap(y, layer_->id, layer_->level, {}, {}, logical.erase(0));
  }
  /// `jvp`: the tangent of a value, undefined where it has none; and a value with a tangent.
  tensor tangent(tensor const& t) const { return owns(t) ? tensor(fresh(t).extra()) : tensor(); }
  tensor wrap(tensor const& y, tensor const& tangent) const {
    return tangent.defined() ? tensor::wrap(y, layer_->id, layer_->level, tangent, {}, y.sizes()) : y;
  }
  /// `grad`: records y as a function of operands: `pullback(g)` gives the cotangent of each, undefined where there is
  /// none. Operands this layer does not track are not asked for; without any that it tracks, y comes back as it is.
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

/// The interpreters of this thread's dynamic layer stack, outermost first; empty outside transforms.
template <class I = interpreter> // a template only to cost nothing unless used
std::vector<I> dynamic_layer_stack() {
  std::vector<I> r;
  for (layer* l = this_thread_state.transforms.top; l; l = l->below) r.insert(r.begin(), I(*l));
  return r;
}

/// Takes the innermost `count` transforms of this thread away for the life of the object; they come back in their order
/// (FS-20).
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
