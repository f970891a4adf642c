// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/memory_of.hpp>
#include <varve/pass/rewriter.hpp>

namespace varve::detail {

/// The graph `now`, into which passes made `g`, with copies of results that lay in memory of their own, and do not any
/// more: a clone that became its operand, or two equal results that became one.
constexpr graph results_apart(graph const& g, graph const& now) {
  auto const at = [](int k) { return static_cast<std::size_t>(k); };
  region const was = g.regions[0], is = now.regions[0];
  auto const before = [&](int k) { return memory_of(g, g.results[at(was.result_first + k)]); };
  auto const after = [&](int k) { return memory_of(now, now.results[at(is.result_first + k)]); };
  list<int> copied;
  for (int k = 0; k < is.result_count; ++k) {
    int first = 0; // of the results that lie there now: it may stay
    while (after(first) != after(k)) ++first;
    bool const in_argument = now.nodes[at(after(k))].op->kind == op_kind::placeholder,
               was_in_argument = g.nodes[at(before(k))].op->kind == op_kind::placeholder;
    if (in_argument ? !was_in_argument : before(k) != before(first)) copied.push_back(k);
  }
  if (copied.empty()) return now;
  rewriter w(now);
  list<int> copies;
  graph r = w.run(
      [&](int n) {
        int const m = w.copy(now.nodes[at(n)]);
        if (n != is.node_first + is.node_count - 1) return m;
        for (int k : copied) {
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
