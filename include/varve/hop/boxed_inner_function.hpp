// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/higher_order.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/reached_inputs.hpp>
#include <varve/hop/pack.hpp>
#include <varve/interpreter/function_node.hpp>
#include <varve/interpreter/interpreter.hpp>
#include <varve/interpreter/used_results.hpp>
#include <varve/op/clone.hpp>
#include <varve/pass/dce.hpp>
#include <varve/trace/copy_as_laid_out.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/dynamic_scope.hpp>

/// @file
/// The functions of higher-order operators on tensors, in the form that run-time interpreters pass to lower layers, and
/// the recording of such calls.
///
/// A run-time `grad` stores graphs of the functions, not the user's closures.
namespace varve {

namespace detail {
/// Runs a function on duals: it maps (primals..., tangents...) to the primals and tangents of the results. The layer is
/// put back on the stack meanwhile, so that captured values of the layer are valid.
struct boxed_dual_fn {
  layer* self;
  boxed_function f;
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    int const n = x.size() / 2;
    std::vector<std::uint32_t> writes;
    for (int k = 0; k < n; ++k) writes.push_back(x[k].writes());
    trace_layer const* const trace = trace_layer::innermost();
    int const before = trace ? trace->builder.count() : 0;
    boxed_dual const d = in.open_dual(f(tree_map(
        [&](tensor const& p, tensor const& t) { return in.close_dual(in, p, t); }, part(x, 0, n), part(x, n, 2 * n))));
    bool changed = trace && writes_outside(trace->builder, before);
    for (int k = 0; k < n; ++k) changed = changed || x[k].writes() != writes[static_cast<std::size_t>(k)];
    if (changed)
      refuse::with<transform_error>(
          "varve: jvp: the function of a higher-order operator writes into its operand, or what it "
          "captures, whose tangent would not change with it; return the new value instead");
    lowered const off;
    return joined(d.primal, full(d));
  }
  /// Returns the tangents, with zeros for missing ones.
  template <class D>
  static boxed_args full(D const& d) {
    return tree_map([](auto const& p, auto const& t) { return t.defined() ? t : tensor(detail::constant_zeros(p)); },
                    d.primal, d.tangent);
  }
};
/// Runs a function on operands of which some are mapped. Every result is returned as mapped.
struct boxed_batched_fn {
  layer* self;
  boxed_function f;
  std::vector<bool> mapped; // whether each operand is mapped
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    P closed;
    for (int k = 0; k < x.size(); ++k)
      closed.push_back(in.close_batched(in, operand<tensor, bool>{x[k], mapped[static_cast<std::size_t>(k)]}));
    P const y = f(closed);
    lowered const off;
    P r;
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (auto const& t : y)
      r.push_back(materialize(in.mine(t) ? operand<T, bool>{t.inner(), true} : operand<T, bool>{t, false},
                              dims{batch_level::of(*self).batch_size}));
    return r;
  }
};
/// Maps (operands, cotangents of the results) to the cotangents of the operands, by running the function again in
/// reverse mode. Of the cotangents only those of used floating results are read.
struct boxed_pull_fn {
  boxed_function f;
  int operands;
  used_results used{};
  template <class P>
  P operator()(P const& x) const {
    dynamic_reverse_scope<> scope;
    P const in = tree_map([&](tensor const& t) { return has_derivatives(t.dtype()) ? scope.track(t) : t; },
                          part(x, 0, operands));
    P const y = scope.run([&] {
      rerun_scope const told;
      return f(in);
    });
    boxed_args floating, g;
    for (int k = 0; k < y.size(); ++k) {
      if (!has_derivatives(y[k].dtype()) || !used[k]) continue;
      floating.push_back(y[k]);
      g.push_back(x[operands + k]);
    }
    scope.backward(floating, g);
    return tree_map(
        [&](auto const& t, auto const& v) {
          return has_derivatives(t.dtype()) ? by_rows(scope.gradient(t)) : tensor(detail::constant_zeros(v));
        },
        in, part(x, 0, operands));
  }

private:
  /// Returns the gradient in row-major order, so that branches chosen by data return gradients of the same layout.
  template <class T>
  static T by_rows(T const& g) {
    if (!g.object() || g.is_contiguous() || trace_layer::is_traced_by_mode(g)) return g;
    return contiguous(g);
  }
};
/// The building blocks in which the rules of calls with functions are written, on tensors: wrapping functions and
/// splitting packs.
struct boxed_forms {
  used_results used{};
  list<std::uint64_t> reach{}; // of the functions if they are graphs: `reached_inputs`
  void close_used() const {}
  bool reaches(int operand) const { return reach.empty() || used.reach(reach, operand); }
  /// Passes a call on, below the layer that processes it if there is one.
  template <class Call, class... P>
  static boxed_args call_below(layer const* self, Call const& call, boxed_args const& first, P const&... packs) {
    boxed_args x = first;
    ((x = joined(std::move(x), packs)), ...);
    if (!self) return call(x);
    lowered const off;
    return call(x);
  }
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
  boxed_function pull_fn(boxed_function const& f, P const& x) const {
    return boxed_pull_fn{f, x.size(), used};
  }
  template <class D>
  static boxed_args tangent(D const& d) {
    return boxed_dual_fn::full(d);
  }
  template <class F>
  static auto spread(F const& f, boxed_args const& x) {
    return f(x);
  }
  template <class F>
  static boxed_args split_pairs(boxed_args const& y, F const& close) {
    return tree_map(close, part(y, 0, y.size() / 2), part(y, y.size() / 2, y.size()));
  }
};
/// The names of operators that write into inputs of a graph (`own`) and of the functions in it (`inner`). Null if there
/// is none.
struct operand_writes {
  char const* own = nullptr;
  char const* inner = nullptr;
};
inline operand_writes writes_into_operands(graph const& g) {
  operand_writes r;
  std::vector<bool> given_copy(g.nodes.size(), false); // placeholders of functions that receive a copy
  for (node const& nd : g) {
    if (!nd.op->hop.writes_copy) continue;
    region const& f = g.regions[static_cast<std::size_t>(nd.regions_first)];
    for (int n = f.node_first; n < f.node_first + f.inputs; ++n)
      given_copy[static_cast<std::size_t>(n)] = g.nodes[static_cast<std::size_t>(n)].value == 0;
  }
  for (node const& nd : g) {
    if (nd.op->kind != op_kind::mutation) continue;
    node const* n = &nd;
    do n = &g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(n->first)])];
    while (lies_in_operand(*n->op));
    if (n->op->kind != op_kind::placeholder || given_copy[static_cast<std::size_t>(n - g.nodes.data())]) continue;
    (n - g.nodes.data() < g.regions[0].node_first + g.regions[0].inputs ? r.own : r.inner) = nd.op->name;
  }
  return r;
}
/// A function as a graph, whether it draws random numbers, and the operators that write into its operands.
struct traced_function {
  boxed_function call;
  bool draws;
  operand_writes writes;
  list<std::uint64_t> reach; // from `reached_inputs`

  /// Refuses writes, because a level would use the written value as if it were the original. Loops detect on their own
  /// what their steps write into.
  void refuse_writes(bool is_step = false) const {
    if (char const* const op = writes.inner ? writes.inner : is_step ? nullptr : writes.own)
      refuse::argument_is_invalid(op, "the function of a higher-order operator writes into its operand, or into "
                                      "what it captures; return the new value instead");
  }
};
/// Traces a function as a graph, on the operands below the current layer. The graph refers to nothing in the user's
/// closure, which may be gone when the gradient is computed. What the function captures is appended to `captures`,
/// which follow the operands of the graph's function. `hidden` layers do not see the trace. The function is run for
/// `lanes`. `around` is the current trace, if there is one.
template <class On = void>
traced_function traced(boxed_function const& f, boxed_args const& x, boxed_args& captures, int hidden = 1,
                       tensor const& lanes = {}, trace_layer* around = nullptr) {
  generator_guard const as_before(default_generator);
  auto const attempt = [&](bool copies) -> traced_function {
    boxed_args more = captures;
    trace_layer l(around ? around->host : trace_layer::own_kind);
    l.captures_of = around;
    l.copies_by(&copy_as_laid_out<dependent<tensor, On>>);
    l.lanes = lanes;
    l.captures = &more;
    l.hidden = hidden;
    l.apart = true;
    l.copies = copies;
    boxed_args in;
    for (auto const& t : x) in.push_back(l.input(t));
    l.trace_function([&] { return f(in); });
    graph g = l.builder.finish();
    if (has_scaffolds(g)) g = without_scaffolds(g);
    bool const random = draws(g);
    operand_writes const writes = writes_into_operands(g);
    auto reach = reached_inputs(g, l.captured(), x.size());
    captures = more;
    auto run = [g = std::move(g), order = l.captured(), n = x.size()](boxed_args const& all) {
      boxed_args a = part(all, 0, n);
      for (int k : order) a.push_back(all[n + k]);
      return interpret(g, a);
    };
    return {closed_function{std::move(run)}, random, writes, std::move(reach)};
  };
  generator const before = default_generator;
  // without exceptions a trace that should have copied cannot be stopped
  if (!VARVE_HAS_EXCEPTIONS()) return attempt(true);
  return detail::attempt<trace_layer::write_met>([&] { return attempt(false); },
                                                 [&](trace_layer::write_met const&) {
                                                   default_generator = before;
                                                   return attempt(true);
                                                 });
}
/// The pullback of a recorded call: it computes the cotangents of all operands at once. The arguments of the call must
/// not have been modified since.
template <class Op, class T = tensor>
struct boxed_hop_pull {
  Op op;
  boxed_args pred, y, operands;
  std::vector<std::uint32_t> versions;

  boxed_hop_pull(Op const& o, boxed_args const& p, boxed_args const& results, boxed_args const& x)
      : op(o), pred(p), y(results), operands(x) {
    for (boxed_args const* saved : {&pred, &operands})
      for (auto const& t : *saved) versions.push_back(t.defined() ? t.writes() : 0);
  }
  void require_unchanged() const {
    std::size_t k = 0;
    for (boxed_args const* saved : {&pred, &operands})
      for (auto const& t : *saved)
        if (std::uint32_t const v = versions[k++]; t.defined() && t.writes() != v) refuse_stale(t, Op::tag::op_name, v);
  }

  boxed_args operator()(boxed_args const& out, bool const*) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < y.size(); ++k) {
      any = any || out[k].defined();
      g.push_back(out[k].defined() ? T(out[k]) : T(detail::constant_zeros(static_cast<T const&>(y[k]))));
    }
    if (!any) return {};
    require_unchanged();
    return [&](auto o) -> boxed_args {
      if constexpr (requires { o.used; }) {
        for (int k = 0; k < y.size(); ++k) o.used.set(k, out[k].defined());
        o.close_used();
      }
      boxed_args r = rules<typename Op::tag>::pull(o, pred, operands, g);
      if constexpr (requires { o.used; })
        for (int k = 0; k < r.size(); ++k)
          if (!o.reaches(k)) r[k] = T();
      return r;
    }(op); // so that no return type is deduced here
  }
  void release() { pred = y = operands = boxed_args(); }
  static constexpr bool released = true; // its values are freed
};
/// A run-time `grad` level that records calls of higher-order operators.
template <class = void>
struct recording_level : dynamic_level {
  template <class I, class Op,
            class Y> // not boxed_args: compilers instantiate what depends on no parameter, even if unused
  boxed_args record_hop(I const&, Op op, Y const& y, boxed_args const& p, boxed_tracked const& t) const {
    if (!t.any || !records()) return y;
    std::vector<edge> edges;
    for (auto const& x : *t.of) edges.push_back(mine(x) ? x.history() : edge());
    op.self = nullptr; // the pull runs after the layer is gone
    edge const n =
        edge_to(record_function(boxed_hop_pull<Op>(op, p, y, t.primal), std::move(edges), y.size(), Op::backward_name));
    std::uint32_t k = 0;
    return tree_map(
        [&](tensor const& v) {
          edge const e(n.to(), k++);
          return has_derivatives(v.dtype()) ? tracked_value(v, e) : v;
        },
        y);
  }
};
/// Returns the tree of tensors that a function returned; plain numbers in it become tensors.
template <class Y>
auto tensors_of(Y const& y) {
  return tree_map(
      []<class V>(V const& v) {
        if constexpr (std::is_same_v<V, tensor>) return v;
        else return tensor(as_tensor(plain(v)));
      },
      y);
}
/// Returns the leaves of a tree as operands.
template <class Y>
boxed_args flatten(Y const& y) {
  boxed_args r;
  tree_for_each([&](auto const& v) { r.push_back(as_tensor(plain(v))); }, y);
  return r;
}
} // namespace detail

} // namespace varve
