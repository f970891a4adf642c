// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/graph/builder.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/interpreter/interpreter.hpp>

#include <vector>

/// @file
/// `make_fx` writes below the transforms that a function applies; `interpret` (`graph/interpret.hpp`) runs the graph on
/// tensors.
namespace varve {

/// Tracing as a run-time interpreter: every operator is run on the real values and written to the graph. The
/// counterpart of calling operators on proxies; both write by the same `graph_builder`.
struct trace_layer : layer {
  graph_builder builder;
  trace_layer* outer = nullptr;
  /// Where tensors that the function captures are collected: they become inputs behind its arguments. Null: they are
  /// refused.
  boxed_args* captures = nullptr;
  /// Layers directly below that see nothing of what the function computes; they stay on the stack, so that values of
  /// theirs that it captures are known as such.
  int hidden = 0;

  /// Operators none of whose operands is traced run, and are not written down: their results are constants (captures)
  /// of the graph.
  bool folds = false;

  /// The trace of a function inside another traced one, whose values it lifts to inputs.
  explicit trace_layer(trace_layer& around) : trace_layer(&around.builder) {
    outer = &around;
    hidden = around.hidden + 1;
  }
  trace_layer() : trace_layer(static_cast<graph_builder*>(nullptr)) {}
  explicit trace_layer(graph_builder* around) : layer(own_kind, this), builder(around) {
    pushed::name(*this, this_thread_state.transforms);
  }
  static layer_kind const own_kind;
  /// A value of the trace: the real tensor with its node number.
  tensor wrap(tensor const& v, int node) const {
    return tensor::wrap(v, id, level, tensor::from_number(static_cast<std::int64_t>(node)), {}, v.sizes());
  }
  int node_of(tensor const& t) {
    if (t.is_wrapped() && t.layer() == id) return static_cast<int>(t.extra().item<std::int64_t>());
    if (t.is_number())
      return builder.constant(t.dtype(),
                              is_floating(t.dtype()) ? t.item<double>() : detail::held(t.item<std::int64_t>()));
    if (outer) return builder.lift(&outer->builder, outer->node_of(t), {t.dtype(), t.sizes()});
    if (!captures) refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
    for (std::size_t k = 0; k < captured_.size(); k += 2)
      if ((*captures)[captured_[k]].is(t)) return captured_[k + 1];
    int at = 0;
    while (at < captures->size() && !(*captures)[at].is(t)) ++at;
    if (at == captures->size()) captures->push_back(t);
    captured_.push_back(at);
    captured_.push_back(builder.input({t.dtype(), t.sizes()}));
    return captured_.back();
  }
  /// The real tensor behind a value of this trace or one around it.
  tensor real(tensor const& t) const {
    for (trace_layer const* l = this; l; l = l->outer)
      if (t.is_wrapped() && t.layer() == l->id) return t.inner();
    return t;
  }
  /// Writes a higher-order operator with one or two functions: each is traced into a region of its own, on the real
  /// operands. `choose` makes one of the real results of both.
  template <class Choose>
  boxed_args record_branches(op_handle const* handle, boxed_args const& x, std::vector<boxed_function> const& functions,
                             attributes const& at, Choose const& choose) {
    std::vector<int> ids;
    for (auto const& t : x) ids.push_back(node_of(t));
    std::vector<boxed_args> values;
    auto const trace_into = [&](trace_layer& l, std::size_t k) {
      pushed const on(this_thread_state.transforms, l);
      boxed_args in;
      for (int i = 1; i < x.size(); ++i)
        in.push_back(l.wrap(real(x[i]), l.builder.input({x[i].dtype(), x[i].sizes()})));
      boxed_args const y = functions[k](in);
      values.emplace_back();
      for (auto const& t : y) {
        l.builder.result(l.node_of(t));
        values.back().push_back(l.real(t));
      }
      l.builder.close();
    };
    trace_layer on_true(*this), on_false(*this);
    trace_into(on_true, 0);
    bool const one = functions.size() == 1;
    if (!one) trace_into(on_false, 1);
    int const node = builder.emit_functions(handle, at, ids.data(), static_cast<int>(ids.size()), on_true.builder,
                                            one ? nullptr : &on_false.builder);
    boxed_args r;
    for (int k = 0; k < values[0].size(); ++k) {
      tensor const v = one ? values[0][k] : choose(real(x[0]), values[0][k], values[1][k]);
      r.push_back(wrap(v, builder.result_of(node, k, {v.dtype(), v.sizes()})));
    }
    return r;
  }

  /// Indices in `captures` of the inputs behind the arguments, in their order.
  std::vector<int> captured() const {
    std::vector<int> r;
    for (std::size_t k = 0; k < captured_.size(); k += 2) r.push_back(captured_[k]);
    return r;
  }

private:
  std::vector<int> captured_; // pairs of an index in `captures` and its node
  tensor record(boxed_op const& op, boxed_args const& x) {
    if (folds) {
      bool traced = false;
      for (auto const& t : x) traced = traced || (t.defined() && t.is_wrapped() && t.layer() == id);
      if (!traced) {
        temporarily_popped const off(hidden);
        return op(x);
      }
    }
    boxed_args inner;
    std::vector<int> ids;
    for (auto const& t : x) {
      ids.push_back(node_of(t));
      inner.push_back(real(t));
    }
    temporarily_popped const off(hidden);
    tensor const y = op(inner);
    return wrap(
        y, builder.emit(op.table->handle(), *op.at, ids.data(), static_cast<int>(ids.size()), {y.dtype(), y.sizes()}));
  }
};
inline constexpr layer_kind trace_layer::own_kind{
    .name = "trace",
    .role = layer_role::trace,
    .process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor {
      return static_cast<trace_layer&>(l).record(op, x);
    },
    .records = true};

/// `make_fx(f)(x...)`: the graph of f at the dtypes and shapes of some tensors, traced at run time below whatever
/// transforms f applies (MX-1, "real" mode). Branches of C++ control flow taken by these values are what the graph
/// holds. Run it by `interpret`.
template <class F>
struct make_fx_function {
  [[no_unique_address]] F f;
  constexpr explicit make_fx_function(F f_) : f(f_) {}

  template <class... X>
  graph operator()(X const&... x) const {
    trace_layer l;
    return trace(l, [](auto const&) {}, x...);
  }
  /// The same of a function that captures tensors: these are collected, as inputs behind the arguments, each once.
  /// `returned` is told what the function returned.
  template <class R, class... X>
  graph with_captures(boxed_args& captured, R const& returned, X const&... x) const {
    trace_layer l;
    l.captures = &captured;
    return trace(l, returned, x...);
  }

private:
  template <class R, class... X>
  graph trace(trace_layer& l, R const& returned, X const&... x) const {
    std::tuple const in{l.wrap(x, l.builder.input({x.dtype(), x.sizes()}))...}; // braces: in order
    auto const y = [&] {
      pushed const on(this_thread_state.transforms, l);
      return detail::call_with(f, in);
    }();
    tree_for_each([&](auto const& v) { l.builder.result(l.node_of(v)); }, y);
    returned(y);
    if (l.captures) l.builder.inputs_first();
    return l.builder.finish();
  }
};
template <class F>
constexpr auto make_fx(F f) {
  return make_fx_function<F>(f);
}

} // namespace varve
