// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/graph/builder.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/interpreter/dynamic_level.hpp>

namespace varve {

/// Tracing as a run-time interpreter: every operator is run on the real values and written to the graph. The counterpart of calling operators on proxies; both write by
/// the same `graph_builder`.
struct trace_layer : layer {
  graph_builder builder;

  trace_layer() {
    kind = "trace";
    pushed::name(*this, this_thread_state.transforms);
    process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor { return static_cast<trace_layer&>(l).record(op, x); };
  }
  /// A value of the trace: the real tensor with its node number.
  tensor wrap(tensor const& v, int node) const { return tensor::wrap(v, id, level, tensor::from_number(static_cast<std::int64_t>(node)), nullptr, v.sizes()); }
  int node_of(tensor const& t) {
    if (t.is_wrapped() && t.layer() == id) return static_cast<int>(t.extra().item<std::int64_t>());
    if (t.is_number()) return builder.constant(t.dtype(), t.item<double>());
    refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
  }

private:
  tensor record(boxed_op const& op, boxed_args const& x) {
    boxed_args inner;
    std::vector<int> ids;
    for (auto const& t : x) {
      ids.push_back(node_of(t));
      inner.push_back(t.is_wrapped() && t.layer() == id ? t.inner() : t);
    }
    tensor const y = op(inner);
    return wrap(y, builder.emit(op.table->handle(), *op.at, ids.data(), static_cast<int>(ids.size()), {y.dtype(), y.sizes()}));
  }
};

/// `make_fx(f)(x...)`: the graph of f at the dtypes and shapes of some tensors, traced at run time below whatever transforms f applies (MX-1, "real" mode).
/// Branches of C++ control flow taken by these values are what the graph holds. Run it by `interpret`.
template <class F>
struct make_fx_function {
  [[no_unique_address]] F f;
  template <class... X>
  graph operator()(X const&... x) const {
    trace_layer l;
    std::tuple const in{l.wrap(x, l.builder.input({x.dtype(), x.sizes()}))...}; // braces: in order
    auto const y = [&] {
      pushed const on(this_thread_state.transforms, l);
      return detail::call_with(f, in);
    }();
    tree_for_each([&](auto const& v) { l.builder.result(l.node_of(v)); }, y);
    return l.builder.finish();
  }
};
template <class F>
constexpr auto make_fx(F f) {
  return make_fx_function<F>{f};
}

} // namespace varve
