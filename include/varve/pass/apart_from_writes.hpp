// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/clone.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/view_inverse.hpp>
#include <varve/pass/rewriter.hpp>

namespace varve::detail {

/// True if a call with functions may return one of its operands. A loop returns copies; a branch, a call and a custom
/// function may return operands.
constexpr bool may_return_operands(node const& nd) {
  constexpr char cond[] = "cond";
  int k = 0;
  while (k < 5 && nd.op->name[k] == cond[k]) ++k;
  return nd.op->hop.is_call || nd.function >= 0 || (nd.op->own && k == 5);
}
/// A pass that copies results of a graph which share memory with an argument that the graph writes at its end. It
/// likewise copies values written into arguments. All of these must keep their elements from before the writes. Such
/// sharing arises where `x` replaced `clone(x)`. The graph has no in-place operators other than these writes. Linear in
/// the nodes, and in operands times results of calls with functions.
class apart_from_writes {
public:
  constexpr explicit apart_from_writes(graph const& g)
      : g_(g), w_(g), written_(g.nodes.size(), 0), shows_(g.nodes.size(), not_asked), copies_(g.nodes.size(), -1) {}

  constexpr graph run() {
    region const all = g_.regions[0];
    bool done = false;
    for (int n = all.node_first; n < all.node_first + all.node_count; ++n)
      if (is_write(n)) written_[at(operand(n, 0))] = 1;
    graph r = w_.run(
        [&](int n) {
          if (!is_write(n)) return w_.copy(old(n));
          if (!done) copy_all(all);
          done = true;
          int const source = operand(n, 1), in[] = {w_.now[at(operand(n, 0))], now(source)};
          return w_.append(old(n), in);
        },
        [] {});
    for (int k = all.result_first; done && k < all.result_first + all.result_count; ++k)
      r.results[at(k)] = now(g_.results[at(k)]);
    return r;
  }

private:
  static constexpr std::size_t at(int n) { return static_cast<std::size_t>(n); }
  constexpr node const& old(int n) const { return g_.nodes[at(n)]; }
  /// Writes within functions that write into a copy of their operand (`auto_functionalized`) do not count.
  constexpr bool is_write(int n) const {
    return n < g_.regions[0].node_first + g_.regions[0].node_count && old(n).op == &handle<copy__t>;
  }
  constexpr int operand(int n, int k) const { return g_.edges[at(old(n).first + k)]; }
  constexpr int now(int n) const { return copies_[at(n)] >= 0 ? copies_[at(n)] : w_.now[at(n)]; }

  constexpr void copy_all(region const& all) {
    for (int k = 0; k < all.result_count; ++k) copy(g_.results[at(all.result_first + k)]);
    for (int n = all.node_first; n < all.node_first + all.node_count; ++n)
      if (is_write(n) && operand(n, 0) != operand(n, 1)) copy(operand(n, 1));
  }
  constexpr void copy(int n) {
    if (copies_[at(n)] >= 0 || !shows_written(n)) return;
    node nd;
    nd.op = &handle<clone_t>, nd.out = old(n).out, nd.count = 1;
    copies_[at(n)] = w_.append(nd, &w_.now[at(n)]);
  }
  /// Returns the node whose memory a view uses.
  constexpr int base(int n) const {
    while (is_invertible_view(old(n).op)) n = operand(n, 0);
    return n;
  }
  constexpr bool shows_written(int n) {
    char& known = shows_[at(base(n))];
    if (known == not_asked) known = finds_written(base(n)) ? yes : no;
    return known == yes;
  }
  constexpr bool finds_written(int n) {
    node const& nd = old(n);
    if (nd.op->kind == op_kind::placeholder) return written_[at(n)] != 0;
    if (nd.op == &getitem_handle) return shows_written(operand(n, 0));
    if (nd.regions_count == 0 || !may_return_operands(nd)) return false;
    int const first = nd.function < 0; // after a predicate, or the state of the generator
    for (int r = 0; r < nd.regions_count; ++r) {
      region const& f = g_.regions[at(nd.regions_first + r)];
      for (int k = 0; k < f.result_count; ++k) {
        node const& by = old(base(g_.results[at(f.result_first + k)]));
        bool const whatever = by.op == &getitem_handle || (by.regions_count > 0 && may_return_operands(by));
        for (int i = first; i < nd.count; ++i)
          if ((whatever || (by.op->kind == op_kind::placeholder && by.value == i - first)) &&
              shows_written(operand(n, i)))
            return true;
      }
    }
    return false;
  }

  graph const& g_;
  rewriter w_;
  enum answer : char { not_asked, no, yes };
  list<char> written_; // arguments that are written at the end
  list<char> shows_;   // cached answers: nested branches repeat the same questions
  list<int> copies_;   // for an old node: its new copy in separate memory
};
/// Returns the graph with such copies; the graph itself if it writes nothing, or not by `copy_` alone.
constexpr graph with_results_apart(graph const& g) {
  if (!has_mutation(g)) return g;
  bool any = false;
  region const& all = g.regions[0];
  for (int n = all.node_first; n < all.node_first + all.node_count; ++n) {
    op_handle const* const op = g.nodes[static_cast<std::size_t>(n)].op;
    if (op->kind != op_kind::mutation) continue;
    if (op != &handle<copy__t>) return g;
    any = true;
  }
  if (!any) return g;
  apart_from_writes a(g);
  return a.run();
}

} // namespace varve::detail
