// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/higher_order.hpp>
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>
#include <varve/transform/dynamic_scope.hpp>

#include <memory>

/// @file
/// Calls with functions (such as `cond`) in the recorded graph of eager autograd, where a mode below autograd processes
/// such calls as a whole: the functional mode and traces.
namespace varve::detail {

/// The backward function of such a call: it pulls back through the level of `grad` that recorded the call.
template <class T>
struct recorded_hop_pull {
  std::shared_ptr<dynamic_reverse_scope<>> scope;
  boxed_args operands, results; // values at the level
  std::vector<char> passed;     // results that were also recorded below the level, through captures of the functions
  char const* name;
  std::vector<edge> of{}; // the edges of the operands

  boxed_args operator()(boxed_args const& g, bool const*) const {
    boxed_args floating, cotangents, r;
    for (int k = 0; k < results.size(); ++k)
      if (results[k].defined() && g[k].defined()) floating.push_back(results[k]), cotangents.push_back(g[k]);
    scope->backward(floating, cotangents);
    for (auto const& t : operands) r.push_back(t.defined() ? scope->gradient(static_cast<T const&>(t)) : T());
    for (int k = 0; k < r.size() && is_grad_enabled(); ++k)
      if (r[k].defined()) r[k] = once(static_cast<T const&>(r[k]));
    for (int k = 0; k < results.size(); ++k)
      if (passed[static_cast<std::size_t>(k)]) r.push_back(g[k]);
    return r;
  }
  void release() { operands = results = boxed_args(), of.clear(); }
  static constexpr bool released = true;

private:
  /// Returns g with a node that refuses to be differentiated by the operands: the level treated them as constants.
  T once(T const& g) const {
    T const r = g.alias();
    std::vector<edge> edges(1, g.has_history() ? edge(eager_history(g)) : edge());
    edges.insert(edges.end(), of.begin(), of.end());
    auto const count = edges.size();
    r.set_history(edge_to(record_function(
        [n = name, count](boxed_args const& t, bool const* wanted) -> boxed_args {
          for (std::size_t k = 1; k < count; ++k)
            if (wanted[k])
              refuse::with<autograd_error>(
                  (std::string("varve: ") + n +
                   ": under a mode the gradient of eager autograd cannot be differentiated again by "
                   "the operands; take the first one by grad or vjp there")
                      .c_str());
          return boxed_args(t[0]);
        },
        std::move(edges), 1, name)));
    return r;
  }
};

/// Returns an alias of t without history. A trace that is recording treats it as the same value as t.
template <class T>
T without_history(T const& t) {
  T const r = t.alias();
  if (watches_renames) watches_renames->shared(*watches_renames, t, r);
  return r;
}
/// Runs the call on operands tracked by a `grad` level, which supplies its gradient; their own history is left out.
/// What the functions capture is recorded by the call that this level makes; that node becomes an input of this one.
template <class T>
boxed_args record_hop(boxed_hop const& op, boxed_args const& x) {
  auto const scope = std::make_shared<dynamic_reverse_scope<>>();
  boxed_args in, tracked;
  std::vector<edge> edges;
  for (auto const& t : x) {
    bool const needs = t.defined() && t.has_history();
    edges.push_back(needs ? edge(eager_history(t)) : edge());
    in.push_back(needs ? scope->track(without_history(static_cast<T const&>(t))) : T(t));
    tracked.push_back(needs ? in[in.size() - 1] : T());
  }
  boxed_args const y = scope->run([&] { return op(in); });
  boxed_args values; // one by one: trees of boxed values are known only above this layer
  for (auto const& t : y) values.push_back(scope->primal(static_cast<T const&>(t)));
  recorded_hop_pull<T> pull{scope,     tracked, y, std::vector<char>(static_cast<std::size_t>(y.size()), 0),
                            op.name(), edges};
  for (int k = 0; k < y.size(); ++k)
    if (values[k].defined() && values[k].has_history()) {
      pull.passed[static_cast<std::size_t>(k)] = 1;
      edges.push_back(edge(eager_history(values[k])));
    }
  bool by_operands = false;
  for (auto const& t : tracked) by_operands = by_operands || t.defined();
  std::vector<char> const passed = pull.passed;
  edge const n = edge_to(record_function(std::move(pull), std::move(edges), y.size(), op.name()));
  boxed_args r;
  for (int k = 0; k < y.size(); ++k) {
    bool const recorded = values[k].defined() && has_derivatives(values[k].dtype()) &&
                          (by_operands || passed[static_cast<std::size_t>(k)]);
    T v = recorded ? T(values[k].alias()) : T(values[k]);
    for (int i = 0; recorded && i < x.size() && !v.base().defined(); ++i) // as `dynamic_level::tied` does
      if (x[i].defined() && !x[i].is_wrapped() && v.shares_storage(x[i]))
        v.set_base(x[i].base().defined() ? x[i].base() : x[i], view_origin::function);
    if (recorded) v.set_history(edge(n.to(), static_cast<std::uint32_t>(k)));
    r.push_back(v);
  }
  return r;
}
/// Installs `record_hop` for all later calls.
template <class T = tensor>
void record_hops() {
  records_hops.store(&record_hop<T>, std::memory_order_release);
}

} // namespace varve::detail
