// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/op/randn.hpp>
#include <varve/trace/region.hpp>

/// @file
/// Operators with functions on tensors: one class registers all rules of an operator. `boxed_operator` takes them from
/// the source that static values share, `composite_hop` from what the operator computes.
namespace varve {

namespace detail {
/// Returns the generator state as seen by the layers below the current one.
template <class P>
P rng_state_below() {
  lowered const off;
  return P(get_rng_state());
}
/// Returns the values of operands one level below.
template <class In, class P>
P opened(In const& in, P const& x) {
  return tree_map([&](auto const& t) { return in.mine(t) ? t.inner() : t; }, x);
}

/// The operator of a tag on tensors. It runs the rules of the tag that static values share, on packs of operands of
/// run-time size. `Form` is a call with its functions; operators with the same form share it. It has
///
/// - `tag`: whose `rules<>` are those of `jvp` and `vmap`;
/// - `of(call, layer)`: the form of a call, which continues below the layer;
/// - `run(x)`: what the call does if no interpreter observes it;
/// - `on_packs(in, x, f)`: calls `f` with the packs of operands that the rules take;
/// - `record<Tag>(in, packs...)`: the call at a level of `grad`, with its functions as graphs;
/// - `trace<Tag>(trace, call, x)`: the call as a node of a graph.
template <class Tag, class Form>
class boxed_operator : public higher_order_operator {
  using pack = boxed_args;

public:
  explicit boxed_operator(char const* name = Tag::op_name, op_handle const* node = &hop_handle<Tag>)
      : higher_order_operator(name, Tag::signature, node) {
    if constexpr (Form::passes_results) mark_passing();
    impl(dispatch_key::composite_explicit,
         [](boxed_hop const& c, pack const& x) { return Form::of(c, nullptr).run(x); });
    transform("jvp", [](auto const& in, auto const& op, auto const&... x) {
      return rules<typename Form::tag>::jvp(in, op, x...);
    });
    transform("vmap", [](auto const& in, auto const& op, auto const&... x) {
      return rules<typename Form::tag>::vmap(in, op, x...);
    });
    transform("grad",
              [](auto const& in, auto const& op, auto const&... x) { return op.template record<Tag>(in, x...); });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      return Form::template trace<Tag>(*static_cast<trace_layer*>(l.object), c, x);
    }
  };
  template <class R>
  void transform(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, auto const& x) {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      Form const op = Form::of(c, &l);
      return in.tied(in.own(op.on_packs(in, x, [&](auto const&... packs) { return r(in, op, packs...); }), x), x);
    };
    impl<decltype(f), layer&>(kind, f);
  }
};

/// A call that is being traced: its functions become graphs on the values below the trace, and their captures operands.
template <class P>
class traced_call {
  using T = std::remove_cvref_t<decltype(std::declval<P const&>()[0])>;

public:
  traced_call(trace_layer& around, P const& x) : around_(around), operands_(x), real_(around.reals(x)) {
    around.require_kept();
  }
  /// Returns the values of the operands below the trace.
  P const& real() const { return real_; }
  /// Computes values of the trace. Effects are not performed: the graph performs them when it is run.
  template <class Body>
  auto below(Body const& body) const {
    unacted_scope const silent;
    return around_.beneath(body);
  }
  /// Returns a function as a graph. `given` are values of its operands. It runs for `lanes`.
  boxed_function graph_of(boxed_function const& f, P const& given, T const& lanes = {}) {
    return traced(f, given, captures_, around_.hidden + 1, lanes, &around_).call;
  }
  /// Writes the node of a call and returns its results. `functions` are graphs, and `given[k]` values of the operands
  /// of function k; `run` computes the results from the values of all operands.
  template <class Run>
  P record(op_handle const* node, attributes const& at, std::vector<boxed_function> const& functions,
           std::vector<P> given, Run const& run) {
    for (auto const& t : captures_) {
      if (around_.is_mode() && t.has_history() && is_grad_enabled()) // recorded calls have passed them as operands
        refuse_eager_gradient("the function of an operator", around_.kind->name);
      operands_.push_back(t);
      real_.push_back(around_.real_operand(t));
      for (P& g : given) g.push_back(real_[real_.size() - 1]);
    }
    std::vector<int> ids;
    for (auto const& t : operands_) ids.push_back(around_.node_of(t));
    trace_layer first(around_), second(around_);
    write(first, functions[0], given[0]);
    if (functions.size() > 1) write(second, functions[1], given[1]);
    int const id = around_.builder.emit_functions(node, at, ids.data(), static_cast<int>(ids.size()), first.builder,
                                                  functions.size() > 1 ? &second.builder : nullptr);
    P const y = below([&] { return run(real_); });
    around_.called(id, this_thread_state.grad_mode);
    P r;
    for (int k = 0; k < y.size(); ++k)
      r.push_back(around_.wrap_result(y[k], around_.builder.result_of(id, k, {y[k].dtype(), y[k].sizes()})));
    return r;
  }

private:
  static void write(trace_layer& inner, boxed_function const& f, P const& given) {
    generator_guard const as_before(default_generator);
    P in;
    for (auto const& t : given) in.push_back(inner.input(t));
    inner.trace_function([&] { return f(in); });
    inner.builder.close();
  }

  trace_layer& around_;
  P operands_, real_, captures_{};
};
} // namespace detail

/// An operator with functions that is described by what it computes. Its tag says
///
///     struct twice_t {
///       static constexpr auto op_name = "twice";
///       static constexpr hop_signature signature{"(GraphModule f, Tensor x, Tensor[] captured) -> Tensor[]"};
///       static constexpr int operands = 1; // x; those behind it are what the functions captured
///       // The values that function k receives first, so that a trace can look at it. They are computed from x.
///       static boxed_args operands_of(int k, boxed_hop const& call, boxed_args const& x) { return boxed_args(x[0]); }
///       // What a call computes. It passes what was captured on to each function.
///       static boxed_args run(boxed_hop const& call, boxed_args const& x) { ... }
///     };
///     boxed_args y = hop_operator<twice_t>()({f}, x);
///
/// Transforms and modes without a rule of their own process what `run` does. Traces record the call as one node, whose
/// functions are regions, and `functionalize` calls it with functions that do not write. An operator has one or two
/// functions. Rules for more interpreters are registered on `hop_operator<Tag>()`.
template <class Tag>
class composite_hop : public higher_order_operator {
public:
  composite_hop() : higher_order_operator(hop_handle<Tag>) {
    impl(dispatch_key::composite_implicit, [](boxed_hop const& c, boxed_args const& x) { return results(c, x); });
    impl<trace_rule, layer&>("trace", trace_rule{});
    impl<grad_rule, layer&>("grad", grad_rule{});
  }

private:
  /// Runs a call. No result shares memory with an operand or another result.
  static boxed_args results(boxed_hop const& c, boxed_args const& x) {
    using T = dependent<tensor, Tag>;
    boxed_args r;
    for (auto const& t : Tag::run(c, x)) {
      bool shared = false;
      for (boxed_args const* all : {&x, static_cast<boxed_args const*>(&r)})
        for (auto const& o : *all) shared = shared || t.shares_storage(o);
      r.push_back(shared ? T(clone(static_cast<T const&>(t))) : T(t));
    }
    return r;
  }
  /// Returns values of the operands of function k.
  template <class P>
  static P given_to(int k, boxed_hop const& c, P const& x) {
    return detail::joined(P(Tag::operands_of(k, c, x)), detail::part(x, Tag::operands, x.size()));
  }
  /// A call of which nothing is differentiated stays one call below the level, also if its functions capture values of
  /// the level.
  struct grad_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      if (in.open_tracked(x).any) return results(c, x);
      P const below = detail::opened(in, x);
      P captures;
      std::vector<boxed_function> functions;
      for (int k = 0; k < static_cast<int>(c.functions.size()); ++k) {
        P const given = [&] {
          lowered const off;
          return given_to(k, c, below);
        }();
        functions.push_back(detail::traced(c.functions[static_cast<std::size_t>(k)], given, captures).call);
      }
      if (in.open_tracked(captures).any) return results(c, x);
      auto const run = [&] {
        lowered const off;
        return c.with(functions)(detail::joined(below, detail::opened(in, captures)));
      };
      return in.own(run(), x);
    }
  };
  struct trace_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      detail::traced_call<P> call(*static_cast<trace_layer*>(l.object), x);
      std::vector<boxed_function> functions;
      std::vector<P> given;
      for (int k = 0; k < static_cast<int>(c.functions.size()); ++k) {
        given.push_back(call.below([&] { return given_to(k, c, call.real()); }));
        functions.push_back(call.graph_of(c.functions[static_cast<std::size_t>(k)], given.back()));
      }
      boxed_hop const frozen = c.with(functions);
      return call.record(&hop_handle<Tag>, c.at, functions, given, [&](P const& all) { return frozen(all); });
    }
  };
};
/// Returns the operator of a tag.
template <class Tag>
higher_order_operator& hop_operator() {
  static auto* const op = new composite_hop<Tag>; // never destroyed, so that it outlives every call
  (void)&detail::known_from_start<&hop_operator<Tag>>;
  return *op;
}

} // namespace varve
