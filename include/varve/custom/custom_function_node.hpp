// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/boxed_custom_function.hpp>
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>

#include <algorithm>

/// @file
/// A custom function as a node of the recorded graph, at a level of `grad` or in eager autograd.
namespace varve::detail {

/// The pullback of a recorded custom function. It supplies zeros for cotangents that did not arrive and, where
/// required, a history that refuses a second derivative.
template <class T = tensor>
struct custom_pull {
  custom_function_ptr f;
  boxed_context context;
  std::vector<dependent<meta, T>> results;
  std::vector<dependent<std::uint32_t, T>> versions;
  std::string label;
  /// For each saved tensor: the index of the result or operand that it is, or that it is neither. In eager autograd,
  /// saved results are stored without their history. That history is this node, which would otherwise keep itself
  /// alive.
  std::vector<dependent<int, T>> result_of{};
  std::vector<dependent<std::shared_ptr<packed_value>, T>> packed{}; // if packed by saved_tensors_hooks
  unsigned absent = 0;                                               // results that are not tensors
  grad_node* self = nullptr;
  static constexpr bool released = true;
  static constexpr int intermediate = -1, operand = -2; // the k-th operand: operand - k

  boxed_context unpacked() const {
    boxed_context c = context;
    boxed_args& s = c.saved;
    for (int k = 0; k < s.size(); ++k) {
      auto const at = static_cast<std::size_t>(k);
      if (!packed.empty() && packed[at]) s[k] = packed[at]->unpack();
      else if (s[k].defined() && s[k].writes() != versions[at]) refuse_stale(s[k], label.c_str(), versions[at]);
      if (!self || !this_thread_state.grad_mode || !s[k].defined() || !has_derivatives(s[k].dtype())) continue;
      int const r = result_of[at];
      if (r <= operand && r != intermediate) { // a value unpacked by hooks gets the history of the argument
        if (!packed.empty() && packed[at] && self->next[operand - r]) {
          s[k] = s[k].alias();
          s[k].set_history(self->next[operand - r]);
        }
        continue;
      }
      if (r >= 0 && context.constant_results >> r & 1) continue;
      s[k] = s[k].alias();
      s[k].set_history(r >= 0 ? edge(self, static_cast<std::uint32_t>(r)) : refusal(why_intermediate));
    }
    return c;
  }
  boxed_args saved() const { return unpacked().saved; }
  /// Returns a history that refuses to be differentiated.
  edge refusal(char const* why, boxed_args const& cotangents = {}) const {
    auto refuse = [text = "varve: " + label + " " + why](boxed_args const&, bool const*) -> boxed_args {
      refuse::with<autograd_error>(text.c_str());
    };
    return edge_to(record_function(std::move(refuse), leading_to(self, cotangents), 1, "Error"));
  }

  boxed_args operator()(boxed_args const& out, bool const* wanted) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < out.size(); ++k) {
      meta const& m = results[static_cast<std::size_t>(k)];
      any = any || out[k].defined();
      bool const none = !context.materialize || (absent >> k & 1);
      g.push_back(out[k].defined() || none ? out[k] : tensor(zeros_of(m)));
    }
    if (!any && context.materialize) return {};
    if (context.once) return once(g, wanted);
    return f->backward(unpacked(), g);
  }
  /// Returns the cotangents of a backward that cannot be differentiated. Differentiating them is refused when eager
  /// autograd or a level of `grad` attempts it.
  boxed_args once(boxed_args const& g, bool const* wanted) const {
    boxed_context const c = unpacked();
    boxed_args const read = joined(g, c.saved);
    layer const* const level = differentiating(read);
    boxed_args r = [&] {
      no_grad const off;
      return f->backward(c, g);
    }();
    for (int k = 0; k < r.size(); ++k) {
      if (!r[k].defined() || !wanted[k]) continue;
      if (level) {
        r[k] = T::wrap(r[k], level->id, level->level, {}, refusal(why_once), r[k].sizes());
      } else if (this_thread_state.grad_mode && [&] {
                   for (auto const& t : read)
                     if (t.defined() && t.has_history()) return true;
                   return false;
                 }()) {
        r[k] = r[k].alias();
        r[k].set_history(refusal(why_once, g));
      }
    }
    return r;
  }
  static constexpr char const* why_intermediate =
      "saved a value that is neither an argument nor a result: a derivative of its backward would lack what that "
      "depends on; save arguments and results only";
  static constexpr char const* why_once = "is once_differentiable: its backward cannot be differentiated";
  /// Returns the current level of `grad` that would differentiate results computed from some values, or null. A level
  /// of `jvp`, which would differentiate them at once, is refused here, and so is a level below another transform.
  layer const* differentiating(boxed_args const& values) const {
    layer const* const top = this_thread_state.transforms.top;
    for (layer const* l = top; l; l = l->below)
      for (auto const& t : values)
        for (tensor const* p = &t; p->defined() && p->is_wrapped(); p = &p->inner()) {
          if (p->layer() != l->id || !(l->kind->role == layer_role::grad ? bool(p->history()) : p->extra().defined()))
            continue;
          if (l->kind->role == layer_role::grad && l == top) return l;
          if (l->kind->role == layer_role::grad || l->kind->role == layer_role::jvp)
            refuse::with<autograd_error>(("varve: " + label + " " + why_once).c_str());
        }
    return nullptr;
  }
  static T zeros_of(meta const& m) {
    return [](auto const& sizes, auto type) { return full(sizes, 0, type); }(m.sizes, m.type);
  }
  void let_go(tensor const& written) {
    for (int k = 0; k < context.saved.size(); ++k) {
      T& t = context.saved[k];
      if (t.defined() && !t.is_wrapped() && t.shares_storage(written)) t = t.alias();
    }
  }
  void release() {
    context.saved = boxed_args();
    packed.clear();
  }
};

/// Refuses to save an operand that is returned unchanged and not marked dirty. Such an operand becomes a view of
/// itself, and the saved tensor would be neither.
inline void refuse_saved_as_is(boxed_custom_function const& f, boxed_context const& c, boxed_args const& x,
                               boxed_args const& y) {
  for (int k = 0; k < y.size(); ++k)
    for (int i = 0; i < x.size(); ++i)
      for (auto const& t : c.saved)
        if (y[k].is(x[i]) && t.is(y[k]) && !(c.dirty_operands >> i & 1))
          refuse::with<autograd_error>(
              (std::string("varve: ") + f.name() +
               ": an input that is returned as-is was saved; return a clone or a view of it, or mark_dirty it")
                  .c_str());
}
/// Wraps a value saved at a level that is neither an argument nor a result, so that differentiating it is refused. It
/// is refused where the arguments are differentiated: by the next outer level, or by eager autograd.
template <class T>
void refuse_derivatives_of(tensor& s, boxed_args const& x, char const* name) {
  std::string const text = std::string("varve: ") + name + " " + custom_pull<T>::why_intermediate;
  auto const refusal = [&text](std::vector<edge> to) {
    auto refuse = [text](boxed_args const&, bool const*) -> boxed_args { refuse::with<autograd_error>(text.c_str()); };
    return edge_to(record_function(std::move(refuse), std::move(to), 1, "Error"));
  };
  std::vector<dependent<edge, T>> to;
  for (layer const* l = this_thread_state.transforms.top; l && to.empty(); l = l->below) {
    for (auto const& t : x)
      for (tensor const* p = &t; p->defined() && p->is_wrapped(); p = &p->inner()) {
        if (p->layer() != l->id) continue;
        if (l->kind->role == layer_role::jvp && p->extra().defined()) refuse::with<autograd_error>(text.c_str());
        if (l->kind->role == layer_role::grad && p->history()) to.push_back(p->history());
      }
    if (!to.empty()) s = T::wrap(s, l->id, l->level, {}, refusal(to), s.sizes());
  }
  if (!to.empty()) return;
  for (auto const& t : x)
    if (t.defined() && !t.is_wrapped() && t.has_history()) to.push_back(eager_history(t));
  if (to.empty()) return;
  s = s.alias();
  s.set_history(refusal(to));
}
/// Records a call at a level, or in eager autograd if `E`. `close(y, edge)` creates the value seen there.
template <class T, bool E, class Close>
boxed_args record_custom(custom_function_ptr const& f, boxed_context c, std::vector<edge> edges, boxed_args const& x,
                         boxed_args const& y, Close const& close) {
  // autograd names its nodes so
  std::string const label = std::string(f->name()) + (E ? "Backward" : "GeneratedBackward");
  refuse_saved_as_is(*f, c, x, y);
  std::vector<dependent<int, T>> result_of;
  std::vector<dependent<std::shared_ptr<packed_value>, T>> packed;
  std::vector<dependent<std::uint32_t, T>> versions;
  for (int j = 0; j < c.saved.size(); ++j) {
    tensor& s = c.saved[j];
    versions.push_back(s.defined() ? s.writes() : 0);
    if (!E) {
      auto const is_s = [&](tensor const& v) { return s.is(v); };
      if (s.defined() && has_derivatives(s.dtype()) && std::none_of(x.begin(), x.end(), is_s) &&
          std::none_of(y.begin(), y.end(), is_s))
        refuse_derivatives_of<T>(s, x, f->name());
      continue;
    }
    refuse_inference(s, f->name());
    int from = custom_pull<T>::intermediate;
    for (int k = 0; k < x.size(); ++k)
      if (s.defined() && s.is(x[k])) from = custom_pull<T>::operand - k;
    for (int k = 0; k < y.size(); ++k)
      if (s.defined() && s.is(y[k])) from = k;
    result_of.push_back(from);
    if (from >= 0) s = s.alias();
    else if (s.defined() && !s.is_wrapped()) s.note_kept();
    if (auto* const hooks = s.defined() ? this_thread_state.saved_hooks : nullptr; hooks && !hooks->at_level) {
      packed.resize(static_cast<std::size_t>(c.saved.size()));
      packed[static_cast<std::size_t>(j)].reset(operator_node::pack(*hooks, s));
      s = tensor();
    }
  }
  std::vector<dependent<meta, T>> results;
  unsigned absent = 0;
  for (int k = 0; k < y.size(); ++k) {
    results.push_back(y[k].defined() ? meta_of(y[k]) : dependent<meta, T>{});
    absent |= y[k].defined() ? 0u : 1u << k;
  }
  unsigned const constant = c.constant_results | absent;
  edge const n = edge_to(record_function(custom_pull<T>{f, std::move(c), std::move(results), std::move(versions), label,
                                                        std::move(result_of), std::move(packed), absent},
                                         std::move(edges), y.size(), label.c_str()));
  if (E) static_cast<function_node<custom_pull<T>>*>(n.to())->pullback.self = n.to();
  if (this_thread_state.anomaly)
    if (auto const* const h = autograd_kernels.load(std::memory_order_acquire)) h->note(*n.to());
  boxed_args r;
  for (int k = 0; k < y.size(); ++k)
    r.push_back(!(constant >> k & 1) && has_derivatives(y[k].dtype())
                    ? close(y[k], edge(n.to(), static_cast<std::uint32_t>(k)))
                    : y[k]);
  return r;
}
/// Refuses a dirty view if the function has several results: the history of a view is found through one result.
inline void refuse_one_of_several(char const* name, tensor const& dirty, int results) {
  if (dirty.base().defined() && results > 1)
    refuse_write(name, "an operand marked dirty is a view, and the function has several results; give it one, or a "
                       "tensor that is no view");
}
/// Records a call of a custom function whose results `y` were computed below eager autograd.
template <class T = tensor>
boxed_args record_custom_eagerly(custom_function_ptr const& f, boxed_args const& x, boxed_args const& y) {
  std::vector<dependent<edge, T>> edges;
  std::vector<dependent<bool, T>> needs;
  for (auto const& t : x) {
    edges.push_back(t.defined() ? edge(eager_history(t)) : edge());
    needs.push_back(static_cast<bool>(edges.back()));
  }
  no_grad const off;
  boxed_context const c = f->context(needs, x, y);
  return record_custom<T, true>(f, c, std::move(edges), x, y, [&](tensor const& v, edge const& e) {
    for (int i = 0; i < x.size(); ++i)
      if (v.is(x[i])) {
        if (!(c.dirty_operands >> i & 1)) break;
        check_write(f->name(), v);
        refuse_one_of_several(f->name(), v, y.size());
        let_go_of(v, e);
        rebase(*autograd_kernels.load(std::memory_order_acquire), v, e, i);
        return v;
      }
    // Results that are operands, that occur twice, or that are views get separate handles. If they share memory with an
    // operand or another result, they may not be written into.
    auto const lies_in = [&](tensor const& t) {
      return t.defined() && !t.is_wrapped() && !v.is_wrapped() && t.shares_storage(v);
    };
    int shares = 0, same = 0;
    for (auto const& t : x) shares += lies_in(t);
    for (auto const& t : y) shares += lies_in(t) && !t.is(v), same += t.is(v);
    shares += same > 1;
    // A result that is a view of a temporary only takes its place, since the temporary has no history that a write
    // could change.
    tensor r = shares ? v.with_layout(v.where()) : v.base().defined() && !v.is_wrapped() ? v.alias() : v;
    if (shares) r.set_origin(view_origin::custom);
    r.set_history(e);
    return r;
  });
}
} // namespace varve::detail
