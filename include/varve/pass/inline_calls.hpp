// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/rewriter.hpp>

namespace varve {

namespace detail {
class call_inliner {
public:
  constexpr explicit call_inliner(graph const& g) : w_(g), g_(g) {}
  constexpr graph run() {
    return w_.run([&](int n) { return each(n); }, [&] { drawn_ = {}; });
  }

private:
  constexpr node const& old(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }
  constexpr int& now(int n) { return w_.now[static_cast<std::size_t>(n)]; }
  constexpr int each(int n) {
    node const& nd = old(n);
    if (nd.op->is_call) return call(nd);
    if (nd.op == &getitem_handle)
      if (node const& of = old(g_.edges[static_cast<std::size_t>(nd.first)]); of.op->is_call)
        return now(result(of, static_cast<int>(nd.at[0][0])));
    return w_.copy(nd);
  }
  constexpr int result(node const& call, int k) const {
    return g_
        .results[static_cast<std::size_t>(g_.regions[static_cast<std::size_t>(call.regions_first)].result_first + k)];
  }
  constexpr int call(node const& nd) {
    region const& f = g_.regions[static_cast<std::size_t>(nd.regions_first)];
    int const state = w_.operand(nd, 0);
    std::size_t seen = 0; // of what was drawn from that state
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
      if (old(n).op->kind == op_kind::placeholder) now(n) = w_.operand(nd, 1 + static_cast<int>(old(n).value));
      else if (old(n).op->kind == op_kind::random) now(n) = drawn(n, state, seen);
      else now(n) = each(n);
    }
    return now(result(nd, 0));
  }
  /// The next number drawn from a state of the generator: the same in every call that begins there.
  constexpr int drawn(int n, int state, std::size_t& seen) {
    for (; seen < drawn_.size(); seen += 2)
      if (drawn_[seen] == state) {
        seen += 2;
        return drawn_[seen - 1];
      }
    int const made = w_.copy(old(n));
    drawn_.push_back(state), drawn_.push_back(made);
    seen = drawn_.size();
    return made;
  }

  rewriter w_;
  graph const& g_;
  list<int> drawn_{}; // pairs of a state and what was drawn from it
};
} // namespace detail

/// The same program with what functions compute in the place of the operators that call them (`op_handle::is_call`:
/// checkpoints). Random numbers that two of them draw from one state of the generator are drawn once. The functions
/// stay in the graph, unused. Linear in the nodes.
constexpr graph inline_calls(graph const& g) {
  for (node const& n : g)
    if (n.op->is_call) {
      detail::call_inliner i(g); // named, as graphs are: g++ 12 loses temporaries that hold storage
      return i.run();
    }
  return g;
}

} // namespace varve
