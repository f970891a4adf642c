// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/make_fx.hpp>
#include <varve/hop/wrap.hpp>

/// @file
/// Traces above composite functions: `make_fx(f, tracing::pre_dispatch)`.
namespace varve {

namespace tracing {
/// Option of `make_fx`: the trace keeps composites, such as `softmax`, as calls.
struct pre_dispatch_t {};
inline constexpr pre_dispatch_t pre_dispatch{};
} // namespace tracing

namespace detail {
/// A composite that stays a call. Its name is a number among the operands until the trace is finished.
struct composite_call_t : plain_call {
  static constexpr auto op_name = "composite", backward_name = "CompositeBackward";
};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& region_operator<composite_call_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& region_operator<composite_call_t>();
#endif
/// The composites of this process by name: handles for graphs, and operators that run them there. A composite whose
/// name is that of a higher-order operator is called `composite`. (A template, so that only traces instantiate it.)
template <class T = void>
class known_composites {
public:
  index_t number_of(char const* name) {
    std::lock_guard const on(lock_);
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (std::strcmp(all_[k].name, name) == 0) return static_cast<index_t>(k);
    bool const taken = higher_order_operator::find(name);
    if (!taken) new region_operator_rules<dependent<composite_call_t, T>>(name); // outlives every graph
    all_.push_back(hop_handle<composite_call_t>);
    if (!taken) all_.back().name = name;
    return static_cast<index_t>(all_.size()) - 1;
  }
  op_handle const* at(double number) {
    std::lock_guard const on(lock_);
    return &all_[static_cast<std::size_t>(number)];
  }
  static known_composites& here() {
    static auto* const all = new known_composites;
    return *all;
  }

private:
  known_composites() { register_fake_rule<dependent<fake_mode, T>>(region_operator<dependent<composite_call_t, T>>()); }

  std::mutex lock_;
  std::deque<op_handle> all_;
};

/// A policy that runs a trace on real values, with a mode above transforms and autograd that keeps composites.
template <class Mode = tensor>
class on_composites : public on_real_values {
public:
  explicit on_composites(options const& o) : on_real_values(o), on_(this_thread_state.pre_dispatch, keeps_) {}
  template <class G>
  static void finish(G& g) {
    for (node& n : g.nodes)
      if (n.op == &hop_handle<composite_call_t>)
        n.op = known_composites<dependent<void, Mode>>::here().at(
            g.nodes[static_cast<std::size_t>(g.edges[n.first])].value);
  }

private:
  static tensor process(layer&, boxed_op const& op, boxed_args const& x) {
    if (op.table->handle || op.table->eval) return {}; // an operator, which continues below
    auto const run = [&op](boxed_args const& a) -> boxed_args { return boxed_args(op(a)); };
    tensor const name = tensor::from_number(known_composites<dependent<void, Mode>>::here().number_of(op.table->name));
    return region_operator<dependent<composite_call_t, Mode>>()({boxed_function(run)}, joined(boxed_args(name), x),
                                                                attributes(dims{0}))[0];
  }
  static boxed_args process_hop(layer&, boxed_hop const& op, boxed_args const& x) { return op(x); }
  static constexpr layer_kind kind{
      .name = "pre_dispatch", .role = layer_role::mode, .process = &process, .process_hop = &process_hop};
  layer keeps_{kind, nullptr};
  pushed on_;
};
} // namespace detail

/// Traces a function and keeps composites: `make_fx(f, tracing::pre_dispatch)(x...)`. It works as `make_fx(f)`, but
/// each composite that f calls on tensors, such as `softmax` or `matmul`, is one node. The node has the name of the
/// composite, and the operators it consists of are its subgraph. Composites called by transforms of f or by other
/// composites are recorded as operators. Each operator keeps the grad mode in which it was called. `inline_calls`
/// replaces the nodes by their subgraphs. Throws the errors of `make_fx`.
template <class F>
auto make_fx(F f, tracing::pre_dispatch_t) {
  return make_fx_function<F, detail::on_composites<>>(static_cast<F&&>(f));
}

#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
namespace detail {
template graph trace_boxed<on_composites<>>(boxed_function_ref, boxed_args const&, on_composites<>::options const&,
                                            capture_policy, boxed_args*);
} // namespace detail
#endif

} // namespace varve
