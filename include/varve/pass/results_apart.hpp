// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/memory_of.hpp>
#include <varve/pass/rewriter.hpp>

namespace varve::detail {

/// Returns the node in whose memory a node is, through calls whose functions return an operand. Of several functions
/// the first that does so counts. (A loop returns no operand.)
constexpr int memory_through_calls(graph const& g, int n) {
  for (;;) {
    n = memory_of(g, n);
    node const* call = &g.nodes[n];
    int const k = call->op == &getitem_handle ? static_cast<int>(call->at[0][0].number()) : 0;
    if (call->op == &getitem_handle) call = &g.nodes[g.edges[call->first]];
    if (call->regions_count == 0 || call->op->hop.given_from < 0 || call->op->hop.carried || call->op->hop.writes_copy)
      return n;
    int passed = -1;
    for (int r = 0; r < call->regions_count && passed < 0; ++r) {
      region const& f = g.regions[call->regions_first + r];
      node const& given = g.nodes[memory_through_calls(g, g.results[f.result_first + k])];
      if (given.op->kind == op_kind::placeholder) passed = static_cast<int>(given.value) + call->op->hop.given_from;
    }
    if (passed < 0 || passed >= call->count) return n;
    n = g.edges[call->first + passed];
  }
}
/// Returns the graph `now`, into which passes turned `g`, with copies of results that had separate memory in `g` and no
/// longer do. Examples are a clone that became its operand, and two equal results that became one.
constexpr graph results_apart(graph const& g, graph const& now) {
  auto const at = [](int k) { return static_cast<std::size_t>(k); };
  region const was = g.regions[0], is = now.regions[0];
  auto const before = [&](int k) { return memory_through_calls(g, g.results[at(was.result_first + k)]); };
  auto const after = [&](int k) { return memory_through_calls(now, now.results[at(is.result_first + k)]); };
  list<int> copied;
  for (int k = 0; k < is.result_count; ++k) {
    int first = 0; // the first of the results in this memory may stay
    while (after(first) != after(k)) ++first;
    bool const in_argument = now.nodes[at(after(k))].op->kind == op_kind::placeholder,
               was_in_argument = g.nodes[at(before(k))].op->kind == op_kind::placeholder;
    if (in_argument ? !was_in_argument : before(k) != before(first)) copied.push_back(k);
  }
  if (copied.empty()) return now;
  auto const copied_before = [&](int k) { // a result that is returned twice is copied once
    for (int c = 0; copied[c] != k; ++c)
      if (now.results[at(is.result_first + copied[c])] == now.results[at(is.result_first + k)] &&
          before(copied[c]) == before(k))
        return c;
    return -1;
  };
  rewriter w(now);
  list<int> copies;
  graph r = w.run(
      [&](int n) {
        int const m = w.copy(now.nodes[at(n)]);
        if (n != is.node_first + is.node_count - 1) return m;
        for (int k : copied) {
          if (int const same = copied_before(k); same >= 0) {
            copies.push_back(copies[same]);
            continue;
          }
          int const result = now.results[at(is.result_first + k)], in = result == n ? m : w.now[at(result)];
          node nd;
          nd.op = &handle<clone_t>, nd.out = now.nodes[at(result)].out, nd.count = 1;
          copies.push_back(w.append(nd, &in));
        }
        return m;
      },
      [] {});
  for (std::size_t k = 0; k < copied.size(); ++k) r.results[at(is.result_first + copied[k])] = copies[k];
  return r;
}

} // namespace varve::detail
