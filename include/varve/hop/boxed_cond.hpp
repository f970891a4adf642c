// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/higher_order.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/make_fx.hpp>
#include <varve/hop/cond.hpp>
#include <varve/interpreter/interpreter.hpp>

/// @file
/// `cond` on tensors: operands come in packs of run-time size and functions are erased, else the rules are those of `rules<cond_t>`.
namespace varve {

namespace detail {
inline boxed_args part(boxed_args const& x, int from, int to) {
  boxed_args r;
  for (int k = from; k < to; ++k) r.push_back(x[k]);
  return r;
}
inline boxed_args joined(boxed_args x, boxed_args const& y) {
  for (auto const& t : y) x.push_back(t);
  return x;
}
} // namespace detail
/// A pack as a flat tree.
template <class F, class... P>
  requires(std::is_same_v<P, boxed_args> && ...)
boxed_args tree_map(F const& f, boxed_args const& a, P const&... p) {
  boxed_args r;
  ((p.size() == a.size() ? void() : refuse::shapes_do_not_match("higher-order operator (number of values)", dims{a.size()}, dims{p.size()})), ...);
  for (int k = 0; k < a.size(); ++k) r.push_back(f(a[k], p[k]...));
  return r;
}

namespace detail {
template <class = void>
higher_order_operator& cond_operator();

/// Runs a branch on duals: (primals..., tangents...) to the same of its results. The layer is put back around what runs, so that what the branch captures of it is alive.
struct boxed_dual_fn {
  layer* self;
  boxed_function f;
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    int const n = x.size() / 2;
    boxed_dual const d = in.open_dual(f(tree_map([&](tensor const& p, tensor const& t) { return in.close_dual(in, p, t); }, part(x, 0, n), part(x, n, 2 * n))));
    lowered const off;
    return joined(d.primal, full(d));
  }
  /// Tangents, zeros where there are none.
  template <class D>
  static boxed_args full(D const& d) {
    return tree_map([](auto const& p, auto const& t) { return t.defined() ? t : tensor(zeros_like(p)); }, d.primal, d.tangent);
  }
};
/// Runs a branch on operands some of which are mapped; every result comes out mapped.
struct boxed_batched_fn {
  layer* self;
  boxed_function f;
  std::vector<bool> mapped; // which operands are
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    P closed;
    for (int k = 0; k < x.size(); ++k) closed.push_back(in.close_batched(in, operand<tensor, bool>{x[k], mapped[static_cast<std::size_t>(k)]}));
    P const y = f(closed);
    lowered const off;
    P r;
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (auto const& t : y) r.push_back(materialize(in.mine(t) ? operand<T, bool>{t.inner(), true} : operand<T, bool>{t, false}, dims{self->batch_size}));
    return r;
  }
};
/// (operands, cotangents of the floating results) to the cotangents of the operands, by running the branch again in reverse mode.
struct boxed_pull_fn {
  boxed_function f;
  int operands;
  template <class P>
  P operator()(P const& x) const {
    dynamic_reverse_scope<> scope;
    P const in = tree_map([&](tensor const& t) { return is_floating(t.dtype()) ? scope.track(t) : t; }, part(x, 0, operands));
    P const y = scope.run([&] { return f(in); });
    boxed_args floating;
    for (auto const& t : y)
      if (is_floating(t.dtype())) floating.push_back(t);
    scope.backward(floating, part(x, operands, x.size()));
    return tree_map([&](auto const& t, auto const& v) { return is_floating(t.dtype()) ? scope.gradient(t) : tensor(zeros_like(v)); }, in, part(x, 0, operands));
  }
};
/// A branch as a graph, traced on the operands below the layer that is at work: it keeps nothing of the user's closure, which may be gone when the gradient is taken.
/// What the branch captures joins `captures`, which stand behind the operands of the graph's function.
template <class = void>
boxed_function traced(boxed_function const& f, boxed_args const& x, boxed_args& captures) {
  trace_layer l;
  l.captures = &captures;
  l.hidden = 1;
  boxed_args in;
  for (auto const& t : x) in.push_back(l.wrap(t, l.builder.input({t.dtype(), t.sizes()})));
  pushed const on(this_thread_state.transforms, l);
  for (auto const& t : f(in)) l.builder.result(l.node_of(t));
  return [g = l.builder.finish(), order = l.captured(), n = x.size()](boxed_args const& all) {
    boxed_args a = part(all, 0, n);
    for (int k : order) a.push_back(all[n + k]);
    return interpret(g, a);
  };
}

/// A call with its functions; calling it lowers from the layer `self`.
struct boxed_cond {
  using tag = cond_t;
  boxed_function on_true, on_false;
  layer* self = nullptr;

  boxed_cond with(boxed_function t, boxed_function f) const { return {std::move(t), std::move(f), self}; }
  template <class I>
  static boxed_function dual_fn(I const& in, boxed_function const& f) {
    return boxed_dual_fn{in.self, f};
  }
  template <class I>
  static boxed_function batched_fn(I const& in, boxed_function const& f, boxed_operands const& o) {
    std::vector<bool> mapped;
    for (int k = 0; k < o.value.size(); ++k) mapped.push_back(!o.value[k].is((*o.from)[k]));
    return boxed_batched_fn{in.self, f, std::move(mapped)};
  }
  template <class P>
  static boxed_function pull_fn(boxed_function const& f, P const& x) {
    return boxed_pull_fn{f, x.size()};
  }
  template <class D>
  static boxed_args tangent(D const& d) {
    return boxed_dual_fn::full(d);
  }
  static tensor const& predicate(boxed_args const& p) { return p[0]; }
  template <class F>
  static auto spread(F const& f, boxed_args const& x) {
    return f(x);
  }
  template <class F>
  static boxed_args split_pairs(boxed_args const& y, F const& close) {
    return tree_map(close, part(y, 0, y.size() / 2), part(y, y.size() / 2, y.size()));
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    boxed_args x = first;
    ((x = joined(std::move(x), packs)), ...);
    boxed_hop const call{&cond_operator<>(), {on_true, on_false}};
    if (!self) return call(x);
    lowered const off;
    return call(x);
  }
};

/// The pullback of a recorded call: the cotangents of all operands at once (HO-12).
template <class T = tensor>
struct boxed_hop_pull {
  boxed_cond op;
  boxed_args pred, y, operands;

  boxed_args operator()(boxed_args const& out, bool const*) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < y.size(); ++k) {
      any = any || out[k].defined();
      if (is_floating(y[k].dtype())) g.push_back(out[k].defined() ? T(out[k]) : T(zeros_like(static_cast<T const&>(y[k]))));
    }
    if (!any) return {};
    return [&](auto const& o) -> boxed_args { return rules<cond_t>::pull(o, pred, operands, g); }(op); // no return type to be deduced here
  }
  void release() { pred = y = operands = boxed_args(); }
  static constexpr bool released = true; // its values are freed
};
/// A run-time `grad` that records such calls.
template <class = void>
struct recording_level : dynamic_level {
  template <class I, class Y> // not boxed_args const& y: compilers instantiate what does not depend on a parameter, used or not
  boxed_args record_hop(I const&, boxed_cond const& op, Y const& y, boxed_args const& p, boxed_tracked const& t) const {
    if (!t.any || !records()) return y;
    std::vector<edge> edges;
    for (auto const& x : *t.of) edges.push_back(mine(x) ? x.history() : edge());
    edge const n = edge_to(record_function(boxed_hop_pull<>{boxed_cond{op.on_true, op.on_false}, p, y, t.primal}, std::move(edges), y.size(), "CondBackward"));
    std::uint32_t k = 0;
    return tree_map([&](tensor const& v) { edge const e(n.to(), k++); return is_floating(v.dtype()) ? tracked_value(v, e) : v; }, y);
  }
};

/// The rules of `cond`, one per interpreter, from the text they share with static values.
template <class = void>
class boxed_cond_operator : public higher_order_operator {
public:
  boxed_cond_operator() : higher_order_operator(cond_t::op_name) {
    using pack = boxed_args;
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, pack const& x) { return c.functions[static_cast<bool>(x[0]) ? 0 : 1](part(x, 1, x.size())); });
    shared("jvp", [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<cond_t>::jvp(in, op, p, x); });
    shared("vmap", [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<cond_t>::vmap(in, op, p, x); });
    shared("grad", [](auto const& in, auto op, auto const& p, auto const& x) {
      pack captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      op.on_true = traced(op.on_true, primal, captures);
      op.on_false = traced(op.on_false, primal, captures);
      return rules<cond_t>::grad(recording_level<>{in}, op, p, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    boxed_args operator()(layer& l, boxed_hop const& c, boxed_args const& x) const { return static_cast<trace_layer*>(l.object)->record_branches(&hop_handle<cond_t>, x, c.functions); }
  };
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      return r(*static_cast<dynamic_level*>(l.object), boxed_cond{c.functions[0], c.functions[1], &l}, part(x, 0, 1), part(x, 1, x.size()));
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
template <class>
higher_order_operator& cond_operator() {
  static auto* const op = new boxed_cond_operator<>; // outlives every call
  return *op;
}

template <class Y>
boxed_args flatten(Y const& y) {
  boxed_args r;
  tree_for_each([&](auto const& v) { r.push_back(as_tensor(plain(v))); }, y);
  return r;
}
/// Does anything watch the call but transforms for whom the predicate has one value? Then the branch can run as C++ would run it.
inline bool is_decided(tensor const& p) {
  if (p.is_wrapped()) return p.sizes() == p.inner().sizes() && is_decided(p.inner());
  return p.has_data();
}
inline bool only_transforms_watch() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (std::strcmp(l->kind, "trace") == 0) return false;
  return this_thread_state.excluded.empty() && (this_thread_state.included - dispatch_key_set(dispatch_key::transform)).empty();
}
template <class T, class F, class... X>
auto cond_on_tensors(tensor const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  constexpr bool seen_statically = ((level_of<X> > 0) || ...);
  bool subclass = false;
  auto const look = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) subclass = subclass || v.object();
  };
  (look(x), ...);
  if (seen_statically || (only_transforms_watch() && is_decided(pred) && !subclass)) return static_cast<bool>(pred) ? true_fn(x...) : false_fn(x...);
  if constexpr (seen_statically) {
    return true_fn(x...);
  } else {
    using Y = decltype(true_fn(as_tensor(plain(x))...));
    static_assert(std::is_same_v<Y, decltype(false_fn(as_tensor(plain(x))...))>, "varve: cond: both functions must return the same tree of values");
    auto const box = []<class G>(G const& f) -> boxed_function {
      return [&f](boxed_args const& a) { return [&]<std::size_t... K>(std::index_sequence<K...>) { return flatten(f(a[static_cast<int>(K)]...)); }(std::index_sequence_for<X...>{}); };
    };
    boxed_args const y = cond_operator<>()({box(true_fn), box(false_fn)}, boxed_args(pred, as_tensor(plain(x))...));
    int k = 0;
    return tree_map([&](auto const&) { return y[k++]; }, Y{});
  }
}
} // namespace detail

/// The boxed `cond`: rules for further interpreters, modes and subclasses are registered on it.
template <class = void>
higher_order_operator& cond_operator() {
  return detail::cond_operator<>();
}

} // namespace varve
