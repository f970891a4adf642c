// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_operator.hpp>
#include <varve/op/slice.hpp>

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

  static constexpr bool passes_results = true;
  static boxed_region_call of(boxed_hop const& c, layer* l) { return {c.functions[0], c.at[0][0] != 0, l}; }
  boxed_args run(boxed_args const& x) const { return Tag::run(x[0], again, f, part(x, 1, x.size())); }
  /// Calls `f` with operand 0 below the level, on which no transform acts, and the operands of the function.
  template <class In, class F>
  static auto on_packs(In const& in, boxed_args const& x, F const& f) {
    return f(boxed_args(opened_lead(in, x[0])), part(x, 1, x.size()));
  }
  template <class Own, class In, class P>
  P record(In const& in, P const& lead, P const& x) const {
    if constexpr (requires { Tag::writes_copy; }) // what it writes is not an operand
      if (auto const t = in.open_tracked(x); !t.any) return (*this)(lead, t.primal);
    P captures;
    auto const g = traced(f, opened(in, x), captures);
    g.refuse_writes();
    boxed_region_call const op = with(g.call);
    P const all = joined(x, captures);
    if constexpr (requires { Tag::with_state(op); }) // the gradient draws the same numbers
      if (g.draws)
        return varve::rule::region_call::grad(recording_level<>{in}, Tag::with_state(op), rng_state_below<P>(), all);
    return rules<Own>::grad(recording_level<>{in}, op, lead, all);
  }
  template <class Own, class P>
  static P trace(trace_layer& around, boxed_hop const& c, P const& x) {
    attributes const at(dims{c.at[0][0] != 0});
    return around.record_branches(&hop_handle<Own>, x, c.functions, at,
                                  [](auto const&, auto const& only, auto const&) { return only; });
  }

private:
  template <class In, class T>
  static T opened_lead(In const& in, T const& lead) {
    if (!in.mine(lead)) return lead;
    if (lead.dim() == lead.inner().dim()) return T(lead.inner());
    lowered const off;
    return T(select(static_cast<T const&>(lead.inner()), 0, 0));
  }
};

/// The operator. `Tag::run(lead, again, f, x)` is its behavior when no interpreter observes the call.
template <class Tag>
using region_operator_rules = boxed_operator<Tag, boxed_region_call<Tag>>;
template <class Tag>
higher_order_operator& region_operator() {
  if constexpr (requires { Tag::template in_library<>(); }) {
    return Tag::template in_library<>();
  } else {
    static auto* const op = new region_operator_rules<Tag>; // never destroyed, so that it outlives every call
    (void)&known_from_start<&region_operator<Tag>>;
    return *op;
  }
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
