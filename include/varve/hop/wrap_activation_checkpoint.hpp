// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/op/slice.hpp>
#include <varve/trace/region.hpp>

/// @file
/// A call of a function with the random numbers that follow from a state of the generator: what `checkpoint` is in
/// programs that are traced at run time, and how `cond` and loops whose functions draw random numbers draw the same
/// ones again when their gradient is taken (`hop/drawing_function.hpp`).
namespace varve {

/// Tag of the operator. Operand 0 is the state of the generator when the region first runs; one attribute says whether
/// it runs again.
struct wrap_activation_checkpoint_t {
  static constexpr auto op_name = "wrap_activation_checkpoint";
  static constexpr bool is_call = true;
  static constexpr hop_signature signature{
      "(GraphModule function, Tensor rng_state, Tensor[] operands, bool again) -> Tensor[]"};
};

/// Its rules are those of a call: each interpreter hands down a call of what it makes of the function. The gradient
/// keeps the operands alone.
template <>
struct rules<wrap_activation_checkpoint_t> {
  template <class I, class Op, class P, class X>
  static auto jvp(I const& in, Op const& op, P const& state, X const& x) {
    auto const d = in.open_dual(x);
    auto const y = op.with(op.dual_fn(in, op.f))(state, d.primal, op.tangent(d));
    return op.split_pairs(y, [&](auto const& v, auto const& t) { return in.close_dual(in, v, t); });
  }
  template <class I, class Op, class P, class X>
  static auto grad(I const& in, Op const& op, P const& state, X const& x) {
    auto const t = in.open_tracked(x);
    auto const y = op(state, t.primal);
    return in.record_hop(in, op, y, state, t);
  }
  template <class Op, class P, class X, class G>
  static auto pull(Op const& op, P const& state, X const& x, G const& g) {
    return op.run_again().with(op.pull_fn(op.f, x))(state, x, g);
  }
  template <class I, class Op, class P, class X>
  static auto vmap(I const& in, Op const& op, P const& state, X const& x) {
    auto const o = in.open_batched(x);
    auto const y = op.with(op.batched_fn(in, op.f, o))(state, o.value);
    return tree_map(
        [&](auto const& v) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, bool>{v, true}); },
        y);
  }
};

namespace detail {
template <class = void>
higher_order_operator& checkpoint_operator();

/// A call with its function; calling it lowers from the layer `self`.
struct boxed_checkpoint : boxed_forms {
  using tag = wrap_activation_checkpoint_t;
  static constexpr char const* backward_name = "CheckpointBackward";
  boxed_function f;
  bool again;
  layer* self = nullptr;

  boxed_checkpoint(boxed_function g, bool a, layer* l) : f(std::move(g)), again(a), self(l) {}
  boxed_checkpoint with(boxed_function g) const { return {std::move(g), again, self}; }
  boxed_checkpoint run_again() const { return {f, true, self}; }
  template <class... P>
  boxed_args operator()(boxed_args const& state, P const&... packs) const {
    return call_below(self, boxed_hop{&checkpoint_operator<>(), {f}, attributes(dims{again})}, state, packs...);
  }
};

/// What a state holds, whatever transforms see it; mapped it is the same in all lanes.
inline generator generator_of(tensor const& state) {
  tensor const* t = &state;
  while (t->is_wrapped()) t = &t->inner();
  dims const end = t->sizes().sub(t->dim() > 0 ? t->dim() - 1 : 0, t->dim());
  return as_generator(
      t->with_layout({end, t->strides().sub(t->dim() > 0 ? t->dim() - 1 : 0, t->dim()), t->where().offset, true}));
}
template <class = void>
class checkpoint_operator_rules : public higher_order_operator {
  using pack = boxed_args;

public:
  checkpoint_operator_rules()
      : higher_order_operator(wrap_activation_checkpoint_t::op_name, wrap_activation_checkpoint_t::signature) {
    mark_passing();
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, pack const& x) {
      generator const state = generator_of(x[0]);
      if (c.at[0][0] || pullbacks) {
        generator_guard const same(state);
        return c.functions[0](part(x, 1, x.size()));
      }
      default_generator = state;
      return c.functions[0](part(x, 1, x.size()));
    });
    shared("jvp", [](auto const& in, auto const& op, auto const& p, auto const& x) {
      return rules<wrap_activation_checkpoint_t>::jvp(in, op, p, x);
    });
    shared("vmap", [](auto const& in, auto const& op, auto const& p, auto const& x) {
      return rules<wrap_activation_checkpoint_t>::vmap(in, op, p, x);
    });
    shared("grad", [](auto const& in, auto op, auto const& p, auto const& x) {
      pack captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      auto const f = traced(op.f, primal, captures);
      f.refuse_writes();
      op.f = f.call;
      return rules<wrap_activation_checkpoint_t>::grad(recording_level<>{in}, op, p, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    boxed_args operator()(layer& l, boxed_hop const& c, boxed_args const& x) const {
      auto& around = *static_cast<trace_layer*>(l.object);
      attributes const at(dims{c.at[0][0] || pullbacks});
      return around.record_branches(&hop_handle<wrap_activation_checkpoint_t>, x, c.functions, at,
                                    [](auto const&, auto const& only, auto const&) { return only; });
    }
  };
  /// The state has no part in any transform.
  template <class In>
  static tensor opened_state(In const& in, tensor const& state) {
    if (!in.mine(state)) return state;
    if (state.dim() == state.inner().dim()) return state.inner();
    lowered const off;
    return select(static_cast<dependent<tensor, In> const&>(state.inner()), 0, 0);
  }
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      pack const state(opened_state(in, x[0])), operands = part(x, 1, x.size());
      return in.tied(r(in, boxed_checkpoint{c.functions[0], c.at[0][0] != 0, &l}, state, operands), operands);
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
#if VARVE_DEFINES
template <class T>
higher_order_operator& checkpoint_operator() {
  static auto* const op = new checkpoint_operator_rules<T>; // outlives every call
  (void)&known_from_start<&checkpoint_operator<T>>;
  return *op;
}
#endif
} // namespace detail

} // namespace varve
