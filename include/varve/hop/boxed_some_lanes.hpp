// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/hop/some_lanes.hpp>

#include <cstring>

/// @file
/// Functions that only some lanes run, on tensors. A layer above the `vmap` separates the values that such a function
/// computes from values that existed before it, including captured tensors. The latter are detached in the other lanes
/// wherever a derivative could be taken, and may not be written.
namespace varve::detail {

/// Returns the lanes (undefined = all) in which the predicate also holds. If the predicate is the same for all lanes,
/// returns `lanes`.
template <class P>
  requires std::is_same_v<P, tensor>
P lanes_where(P const& lanes, P const& predicate, bool holds = true) {
  if (!backend<tensor_base>::is_mapped(predicate)) return lanes;
  P const own = holds ? P(ne(predicate, 0)) : P(eq(predicate, 0));
  return lanes.defined() ? P(varve::where(lanes, own, false)) : own;
}
/// Returns a loop's condition, if there is one, such that it does not wait for lanes outside of `lanes`.
template <class T>
  requires std::is_same_v<T, tensor>
boxed_function for_lanes(boxed_function const& condition, T const& lanes) {
  if (!condition || !lanes.defined()) return condition;
  return [condition, lanes](boxed_args const& a) {
    return tree_map([&](T const& go) { return T(varve::where(lanes, go, false)); }, condition(a));
  };
}

/// The layer that separates values. A value of this layer is an operand or was computed by the function; any other
/// value is captured.
template <class On = void>
struct lanes_layer : layer {
  using T = dependent<tensor, On>;
  T which;                                      // one truth value per lane
  boxed_args before;                            // the values that existed before, operands first
  boxed_args seen_as;                           // the values of `before` as the function sees them
  std::vector<dependent<std::uint64_t, On>> in; // the function, inside this one, that saw each value of `before`
  bool differentiable;                          // whether derivatives of what the `vmap` computes may be taken
  bool grad_mode = this_thread_state.grad_mode; // around the call
  static layer_kind const own_kind;

  explicit lanes_layer(T const& lanes)
      : layer(own_kind, this), which(lanes), differentiable(is_watched(this_thread_state.transforms.top->below)) {
    pushed::name(*this, this_thread_state.transforms);
  }
  static bool is_watched(varve::layer const* l) {
    while (l && l->kind->role == layer_role::vmap) l = l->below;
    return l || trace_layer::mode_at_work(); // the graph may be differentiated when it is run
  }
  bool mine(T const& t) const { return t.defined() && t.is_wrapped() && t.layer() == id; }
  T wrap(T const& t) const { return t.defined() && !t.is_number() ? T::wrap(t, id, level, {}, {}, t.sizes()) : t; }
  boxed_args wrap(boxed_args const& x) const {
    return tree_map([&](T const& t) { return wrap(t); }, x);
  }
  T open(T const& t) const { return mine(t) ? T(t.inner()) : t; }
  boxed_args open(boxed_args const& x) const {
    return tree_map([&](T const& t) { return open(t); }, x);
  }
  static bool requires_grad(T const& t) { return t.is_wrapped() ? requires_grad(t.inner()) : t.has_history(); }
  /// Returns an id of the layers below. A value computed while tracing the body of an inner loop is valid only in that
  /// body.
  static std::uint64_t function_at_work() {
    std::uint64_t r = 0;
    for (varve::layer const* l = this_thread_state.transforms.top; l; l = l->below)
      r = (r ^ l->id) * 0x9E3779B97F4A7C15u;
    return r;
  }
  /// Returns a value that existed before, as the function sees it. Must be called while this layer is off the stack.
  T seen(T const& t) {
    if (!t.defined() || t.is_number()) return t;
    std::uint64_t const here = function_at_work();
    for (int k = 0; k < before.size(); ++k)
      if (before[k].is(t) && in[static_cast<std::size_t>(k)] == here) return seen_as[k];
    before.push_back(t);
    in.push_back(here);
    // the function may use the value first inside a grad-mode scope of its own
    set_grad_enabled const as_called(grad_mode);
    seen_as.push_back(has_derivatives(t.dtype()) && (differentiable || requires_grad(t)) ? T(cut_elsewhere(which, t))
                                                                                         : t);
    return seen_as[seen_as.size() - 1];
  }
  [[noreturn]] VARVE_COLD static void refuse_write(char const* op) {
    refuse::with<transform_error>(
        (std::string("varve: vmap: ") + op +
         ": a function that only some lanes run, as a branch of cond, cannot write into what was there "
         "before it: the others would be written too; return the new value instead")
            .c_str());
  }
  [[noreturn]] VARVE_COLD static void refuse_effect(char const* op) {
    refuse::with<transform_error>(
        (std::string("varve: vmap: ") + op +
         ": a function that only some lanes run, as a branch of cond, cannot do something outside of "
         "the program: it would do so for the others too; call it outside, on the result")
            .c_str());
  }
  void require_own(char const* op, T const& t) const {
    if (!mine(t)) refuse_write(op);
    for (boxed_args const* all : {&before, &seen_as})
      for (auto const& b : *all)
        if (b.defined() && t.inner().shares_storage(b)) refuse_write(op);
  }

  static tensor process(layer& l, boxed_op const& op, boxed_args const& x) {
    auto& self = static_cast<lanes_layer&>(l);
    if (op.table->kind == op_kind::effect && !op.table->handle()->in_all_lanes) refuse_effect(op.name());
    bool const writes = x.size() && (op.table->kind == op_kind::mutation || std::strchr(op.schema(), '!'));
    if (writes) self.require_own(op.name(), x[0]);
    boxed_args in;
    for (auto const& t : x) in.push_back(self.mine(t) ? t.inner() : self.seen(t));
    T const y = op(in);
    return writes ? x[0] : self.wrap(y);
  }
  /// Processes a higher-order operator by calling it one level below. A loop does not wait for lanes that do not run
  /// it.
  static boxed_args process_hop(layer& l, boxed_hop const& call, boxed_args const& x) {
    auto& self = static_cast<lanes_layer&>(l);
    std::vector<boxed_function> functions;
    for (auto const& f : call.functions) {
      bool const decides = functions.size() == 1 && std::strcmp(call.name(), "while_loop") == 0;
      functions.push_back([&self, f, decides](boxed_args const& a) {
        reentered const on(this_thread_state.transforms, self);
        boxed_args y = f(self.wrap(a));
        lowered const off;
        y = self.open(y);
        return decides ? tree_map([&](T const& go) { return T(varve::where(self.which, go, false)); }, y) : y;
      });
    }
    return self.below(x, call.name(), call.with(std::move(functions)));
  }
  /// Runs a call whose functions are wrapped for this layer, one level below.
  template <class Call>
  boxed_args below(boxed_args const& x, char const* name, Call const& call) {
    lowered const off;
    boxed_args in;
    std::vector<dependent<std::uint32_t, On>> versions;
    for (auto const& t : x) {
      in.push_back(mine(t) ? t.inner() : seen(t));
      versions.push_back(t.defined() ? in[in.size() - 1].writes() : 0);
    }
    boxed_args y = call(in);
    for (int i = 0; i < x.size(); ++i)
      if (x[i].defined() && in[i].writes() != versions[static_cast<std::size_t>(i)]) require_own(name, x[i]);
    for (int k = 0; k < y.size(); ++k) {
      int same = -1;
      for (int i = 0; i < x.size(); ++i)
        if (mine(x[i]) && y[k].is(in[i])) same = i;
      y[k] = same >= 0 ? x[same] : wrap(y[k]);
    }
    return y;
  }
};
template <class On>
inline constexpr layer_kind lanes_layer<On>::own_kind{.name = "lanes",
                                                      .role = layer_role::lanes,
                                                      .process = &lanes_layer::process,
                                                      .process_hop = &lanes_layer::process_hop};

template <class F, class P>
boxed_args on_lanes(F const& f, P const& which, boxed_args const& x) {
  lanes_layer<> l(which);
  boxed_args in;
  for (auto const& t : x) in.push_back(l.wrap(l.seen(t)));
  pushed const on(this_thread_state.transforms, l);
  return l.open(f(in));
}

} // namespace varve::detail
