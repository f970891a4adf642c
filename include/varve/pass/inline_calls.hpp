// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/rewriter.hpp>

namespace varve {

namespace detail {
class call_inliner {
public:
  constexpr explicit call_inliner(graph const& g, bool of_custom_functions, bool (*stays)(op_handle const&) = nullptr)
      : w_(g), g_(g), of_custom_functions_(of_custom_functions), stays_(stays) {}
  constexpr graph run() {
    if (!of_custom_functions_) remains_.assign(g_.regions.size(), 0), mark(0, true);
    return w_.run([&](int n) { return each(n); }, [&] { drawn_ = {}, ++region_; });
  }

private:
  constexpr node const& old(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }
  constexpr int& now(int n) { return w_.now[static_cast<std::size_t>(n)]; }
  constexpr int each(int n) {
    node const& nd = old(n);
    if (is_inlined(nd)) return call(nd);
    if (nd.op == &getitem_handle)
      if (node const& of = old(g_.edges[static_cast<std::size_t>(nd.first)]); is_inlined(of))
        return now(result(of, static_cast<int>(nd.at[0][0])));
    int const copy = w_.copy(nd);
    if (of_custom_functions_) w_.to.nodes.back().mode = recording::as_around;
    return copy;
  }
  constexpr bool is_inlined(node const& nd) const {
    return of_custom_functions_ ? nd.function >= 0 : nd.op->hop.is_call && !(stays_ && stays_(*nd.op));
  }
  /// Marks the functions that are still called after inlining.
  constexpr void mark(int r, bool called) {
    if (called) remains_[r] = 1;
    region const& f = g_.regions[static_cast<std::size_t>(r)];
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      for (int k = 0; k < old(n).regions_count; ++k) mark(old(n).regions_first + k, !is_inlined(old(n)));
  }
  constexpr int result(node const& call, int k) const {
    return g_
        .results[static_cast<std::size_t>(g_.regions[static_cast<std::size_t>(call.regions_first)].result_first + k)];
  }
  constexpr int call(node const& nd) {
    region const& f = g_.regions[static_cast<std::size_t>(nd.regions_first)];
    if (of_custom_functions_) {
      for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
        now(n) = old(n).op->kind == op_kind::placeholder ? w_.operand(nd, static_cast<int>(old(n).value)) : each(n);
      return f.result_count > 0 ? now(result(nd, 0)) : -1;
    }
    int const state = w_.operand(nd, 0);
    bool const around = again_;
    again_ = around || (nd.op->hop.draws_from_state && nd.at[0][0] != 0);
    std::size_t seen = 0; // draws from that state so far
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
      if (old(n).op->kind == op_kind::placeholder) now(n) = w_.operand(nd, 1 + static_cast<int>(old(n).value));
      else if (nd.op->hop.draws_from_state && old(n).op->kind == op_kind::random) now(n) = drawn(n, state, seen);
      else now(n) = each(n);
    }
    again_ = around;
    return f.result_count > 0 ? now(result(nd, 0)) : -1;
  }
  /// Returns the next number drawn from a state of the generator. All calls that begin with this state draw the same.
  constexpr int drawn(int n, int state, std::size_t& seen) {
    for (; seen < drawn_.size(); seen += 2)
      if (drawn_[seen] == state) {
        seen += 2;
        return drawn_[seen - 1];
      }
    if (again_ && remains_[region_] && old(n).at.count > 0)
      refuse::argument_is_invalid(
          "fuse", "random numbers that a step of a loop, or a branch of a cond, drew are drawn again for its gradient, "
                  "which fused programs cannot; run the graph by interpret, or the function as it is, or draw the "
                  "numbers outside and pass them in");
    int const made = w_.copy(old(n));
    drawn_.push_back(state), drawn_.push_back(made);
    seen = drawn_.size();
    return made;
  }

  rewriter w_;
  graph const& g_;
  bool of_custom_functions_;
  bool (*stays_)(op_handle const&);
  int region_ = -1;      // the region that is written now
  bool again_ = false;   // within a call that runs again
  list<char> remains_{}; // of the regions: true if it is called after inlining
  list<int> drawn_{};    // pairs of a state and a number drawn from it
};
} // namespace detail

/// Returns the same program in which the nodes of the functions replace calls of operators that only call functions
/// (`hop_traits::is_call`: checkpoints). Random numbers that two of them draw from the same state of the generator are
/// drawn once. The functions stay in the graph, unused. Calls of operators for which `stays` returns true are kept.
/// Linear in the nodes.
constexpr graph inline_calls(graph const& g, bool (*stays)(op_handle const&) = nullptr) {
  for (node const& n : g)
    if (n.op->hop.is_call && !(stays && stays(*n.op))) {
      detail::call_inliner i(g, false, stays); // named, as graphs are: g++ 12 loses temporaries that hold storage
      return i.run();
    }
  return g;
}

/// Returns the same program for its values alone. Custom functions are replaced by the operations of their `forward`,
/// and `no_grad` is dropped. Derivatives of the result would be wrong, since rules of custom functions are gone. Linear
/// in the nodes.
constexpr graph values_only(graph const& g) {
  for (node const& n : g)
    if (n.function >= 0 || n.mode != recording::as_around) {
      detail::call_inliner i(g, true);
      return i.run();
    }
  return g;
}

} // namespace varve
