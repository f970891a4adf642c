// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/op/randn.hpp>
#include <varve/op/slice.hpp>
#include <varve/trace/region.hpp>

/// @file
/// Calls of one function that stay calls in graphs: `wrap_activation_checkpoint`, and `wrap`, `invoke_subgraph`,
/// `hints_wrapper`, `strict_mode` (`hop/wrap.hpp`). Operand 0 is not an operand of the function: it is the generator
/// state, or a number that identifies the call. One attribute says whether a gradient runs the function.
namespace varve {

namespace rule {
/// The rules of such a call. Each interpreter wraps the function and passes the call on. The gradient stores nothing
/// but the operands.
struct region_call {
  template <class I, class Op, class P, class X>
  static auto jvp(I const& in, Op const& op, P const& lead, X const& x) {
    auto const d = in.open_dual(x);
    auto const y = op.with(op.dual_fn(in, op.f))(lead, d.primal, op.tangent(d));
    return op.split_pairs(y, [&](auto const& v, auto const& t) { return in.close_dual(in, v, t); });
  }
  template <class I, class Op, class P, class X>
  static auto grad(I const& in, Op const& op, P const& lead, X const& x) {
    auto const t = in.open_tracked(x);
    auto const y = op(lead, t.primal);
    return in.record_hop(in, op, y, lead, t);
  }
  template <class Op, class P, class X, class G>
  static auto pull(Op const& op, P const& lead, X const& x, G const& g) {
    return op.run_again().with(op.pull_fn(op.f, x))(lead, x, g);
  }
  template <class I, class Op, class P, class X>
  static auto vmap(I const& in, Op const& op, P const& lead, X const& x) {
    auto const o = in.open_batched(x);
    auto const y = op.with(op.batched_fn(in, op.f, o))(lead, o.value);
    return tree_map(
        [&](auto const& v) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, bool>{v, true}); },
        y);
  }
};
} // namespace rule

namespace detail {
template <class Tag>
higher_order_operator& region_operator();

/// A call with its function. Calling it continues below the layer `self`.
template <class Tag>
struct boxed_region_call : boxed_forms {
  using tag = Tag;
  static constexpr char const* backward_name = Tag::backward_name;
  boxed_function f;
  bool again;
  layer* self = nullptr;

  boxed_region_call(boxed_function g, bool a, layer* l) : f(std::move(g)), again(a), self(l) {}
  boxed_region_call with(boxed_function g) const { return {std::move(g), again, self}; }
  boxed_region_call run_again() const { return {f, true, self}; }
  template <class... P>
  boxed_args operator()(boxed_args const& lead, P const&... packs) const {
    return call_below(self, boxed_hop{&region_operator<Tag>(), {f}, attributes(dims{again})}, lead, packs...);
  }
};

/// Returns the generator state as seen by the layers below the current one.
template <class P>
P rng_state_below() {
  lowered const off;
  return P(get_rng_state());
}

/// The operator. `Tag::run(lead, again, f, x)` is its behavior when no interpreter observes the call.
template <class Tag>
class region_operator_rules : public higher_order_operator {
  using pack = boxed_args;

public:
  region_operator_rules() : region_operator_rules(Tag::op_name, &hop_handle<Tag>) {}
  /// Creates an operator with a name of its own; graphs represent it by the node `node`.
  explicit region_operator_rules(char const* name, op_handle const* node = nullptr)
      : higher_order_operator(name, Tag::signature, node) {
    mark_passing();
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, pack const& x) {
      return Tag::run(x[0], c.at[0][0] != 0, c.functions[0], part(x, 1, x.size()));
    });
    shared("jvp",
           [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<Tag>::jvp(in, op, p, x); });
    shared("vmap",
           [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<Tag>::vmap(in, op, p, x); });
    shared("grad", [](auto const& in, auto op, auto const& p, auto const& x) {
      if constexpr (requires { Tag::writes_copy; }) // what it writes is not an operand
        if (auto const t = in.open_tracked(x); !t.any) return op(p, t.primal);
      pack captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      auto const f = traced(op.f, primal, captures);
      f.refuse_writes();
      op.f = f.call;
      if constexpr (requires { Tag::with_state(op); }) // the gradient draws the same numbers
        if (f.draws)
          return varve::rule::region_call::grad(recording_level<>{in}, Tag::with_state(op), rng_state_below<pack>(),
                                                joined(x, captures));
      return rules<Tag>::grad(recording_level<>{in}, op, p, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    boxed_args operator()(layer& l, boxed_hop const& c, boxed_args const& x) const {
      auto& around = *static_cast<trace_layer*>(l.object);
      attributes const at(dims{c.at[0][0] != 0});
      return around.record_branches(&hop_handle<Tag>, x, c.functions, at,
                                    [](auto const&, auto const& only, auto const&) { return only; });
    }
  };
  /// Returns operand 0 below the level; no transform acts on it.
  template <class In>
  static tensor opened_lead(In const& in, tensor const& lead) {
    if (!in.mine(lead)) return lead;
    if (lead.dim() == lead.inner().dim()) return lead.inner();
    lowered const off;
    return select(static_cast<dependent<tensor, In> const&>(lead.inner()), 0, 0);
  }
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      pack const lead(opened_lead(in, x[0])), operands = part(x, 1, x.size());
      return in.tied(r(in, boxed_region_call<Tag>{c.functions[0], c.at[0][0] != 0, &l}, lead, operands), operands);
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
template <class Tag>
higher_order_operator& region_operator() {
  if constexpr (requires { Tag::template in_library<>(); }) return Tag::template in_library<>();
  static auto* const op = new region_operator_rules<Tag>; // never destroyed, so that it outlives every call
  (void)&known_from_start<&region_operator<Tag>>;
  return *op;
}

/// Runs a function that returns tensors or numbers; numbers become tensors.
template <class F, class... X>
boxed_args run_region(boxed_call const& c, boxed_args const& in) {
  auto const x = arguments_with<X...>(c.trees, in);
  return results_of(c, tensors_of(call_with(*static_cast<F const*>(c.function), x)));
}
/// Returns the call as a function of those of its arguments that are defined tensors.
inline boxed_function region_of(boxed_call const& c) {
  return [&c](boxed_args const& defined) {
    boxed_args in = c.arguments;
    int k = 0;
    for (int i = 0; i < in.size(); ++i)
      if (in[i].defined()) in[i] = defined[k++];
    return c(in);
  };
}
inline boxed_args operands_of(boxed_call const& c) {
  boxed_args r;
  for (tensor const& t : c.arguments)
    if (t.defined()) r.push_back(t);
  return r;
}
/// Turns a call of `f` on trees of arguments into a call of a function of tensors. `call` receives that function and
/// the tensors among the arguments, and returns the function's results.
template <class Call, class F, class... X>
auto call_of_trees(Call const& call, F const& f, X const&... x) {
  if constexpr (std::is_function_v<F>) {
    return call_of_trees(call, &f, x...);
  } else {
    using Y = decltype(tensors_of(std::declval<result_of_call<F, X...>>()));
    boxed_call_with<X...> const c(&f, &run_region<F, X...>, x...);
    boxed_args const y = call(region_of(c), operands_of(c));
    return returned_tree<Y>(c.returned, y);
  }
}
} // namespace detail

} // namespace varve
