// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/memory_of.hpp>
#include <varve/op/item.hpp>
#include <varve/pass/rewriter.hpp>

namespace varve {

namespace detail {
constexpr bool draws(graph const& g, int r = 0, bool any = false);

/// True if a node draws random numbers that do not follow from an operand. Later draws depend on it, even if it is not
/// used. With `any`, draws from a state of the generator that is an operand count as well.
constexpr bool draws(graph const& g, node const& n, bool any = false) {
  if (n.op->kind == op_kind::random) return n.at.count > 0; // the state of the generator has no attributes
  bool const given = n.op->hop.draws_from_state && !any && n.at[0][0] != 0 && // run again: numbers were drawn before
                     g.nodes[g.edges[n.first]].op->kind != op_kind::random;
  for (int k = 0; k < n.regions_count && !given; ++k)
    if (draws(g, n.regions_first + k, any || n.op->hop.draws_from_state)) return true;
  return false;
}
/// True if region r of a graph draws random numbers.
constexpr bool draws(graph const& g, int r, bool any) {
  region const& f = g.regions[r];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
    if (draws(g, g.nodes[n], any)) return true;
  return false;
}
/// True if a node acts outside of the program: by an effect, or by calling functions that have one.
constexpr bool acts(graph const& g, node const& n) {
  if (n.op->kind == op_kind::effect) return true;
  for (int k = 0; k < n.regions_count; ++k) {
    region const& f = g.regions[n.regions_first + k];
    for (int i = f.node_first; i < f.node_first + f.node_count; ++i)
      if (acts(g, g.nodes[i])) return true;
  }
  return false;
}
/// Returns how many nodes of the program itself act outside of it.
constexpr int count_effects(graph const& g) {
  int n = 0;
  region const& f = g.regions[0];
  for (int k = f.node_first; k < f.node_first + f.node_count; ++k) n += acts(g, g.nodes[k]);
  return n;
}
/// Returns a `composite_hop` that a graph calls, or null.
constexpr op_handle const* composite_hop_in(graph const& g) {
  for (node const& n : g.nodes)
    if (n.op->hop.is_composite) return n.op;
  return nullptr;
}
/// Returns an operator with an effect that occurs in a graph, called or not; null if there is none.
constexpr op_handle const* effect_in(graph const& g) {
  for (node const& n : g.nodes)
    if (n.op->kind == op_kind::effect) return n.op;
  return nullptr;
}
/// True if the graph has nodes that were written for shapes alone.
constexpr bool has_scaffolds(graph const& g) {
  bool any = false;
  for (node const& n : g.nodes) any = any || n.scaffold;
  return any;
}
} // namespace detail

/// Marks the nodes on which a result depends. Placeholders, mutations, draws, effects and numbers read from data count
/// as results, and so do nodes that `marks` contains already. A write by a scaffold counts only if its memory is read
/// later.
constexpr list<char> live_nodes(graph const& g, list<char> marks) {
  char* const live = marks.data();
  int const* const edges = g.edges.data();
  node const* const nodes = g.nodes.data();
  bool const effects = detail::effect_in(g) != nullptr;
  list<char> read(detail::has_scaffolds(g) ? g.nodes.size() : 0, 0); // memory that is read
  auto const reads = [&](int n) {
    live[n] = 1;
    if (read.size()) read[detail::memory_of(g, n)] = 1;
  };
  for (int r : g.results) reads(r);
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    node const& nd = nodes[n];
    bool const draws = !nd.scaffold && detail::draws(g, nd);               // a scaffold's draws are undone
    bool const tells = nd.op == &handle<local_scalar_t> && nd.at[0].n > 0; // it defines a symbol
    bool writes = nd.op->kind == op_kind::mutation;
    if (writes && nd.scaffold)
      if (int const memory = detail::memory_of(g, static_cast<int>(n)); nodes[memory].scaffold) writes = read[memory];
    if (effects && !nd.scaffold && detail::acts(g, nd)) live[n] = 1;
    if (draws || tells || nd.op->kind == op_kind::placeholder || writes) live[n] = 1;
    for (int k = 0; live[n] && k < nd.count; ++k) reads(edges[nd.first + k]);
  }
  return marks;
}
constexpr list<char> live_nodes(graph const& g) { return live_nodes(g, list<char>(g.nodes.size(), 0)); }

namespace detail {
/// True if a result of a program depends on a value that the trace did not know and replaced by zeros. An operand that
/// a function does not use does not count. Regions come after the node that has them.
constexpr bool needs_unknown(graph const& g) {
  list<char> needed(g.nodes.size(), 0), unknown(g.regions.size(), 0); // of nodes; in regions
  auto const asks_for = [&](node const& nd, int operand) {
    bool asks = nd.regions_count == 0;
    for (int r = nd.regions_first; r < nd.regions_first + nd.regions_count; ++r) {
      region const& f = g.regions[r];
      int const input = operand - (nd.count - f.inputs);
      asks = asks || input < 0 || needed[f.node_first + input];
    }
    return asks;
  };
  for (std::size_t r = g.regions.size(); r-- > 0;) {
    region const& f = g.regions[r];
    for (int k = 0; k < f.result_count; ++k) needed[g.results[f.result_first + k]] = 1;
    for (int n = f.node_first + f.node_count; n-- > f.node_first;) {
      node const& nd = g.nodes[n];
      if (!needed[n]) continue;
      unknown[r] = unknown[r] || nd.unknown;
      for (int k = 0; k < nd.regions_count; ++k) unknown[r] = unknown[r] || unknown[nd.regions_first + k];
      for (int k = 0; k < nd.count; ++k)
        if (asks_for(nd, k)) needed[g.edges[nd.first + k]] = 1;
    }
  }
  return unknown[0] != 0;
}
} // namespace detail

/// Returns the program without nodes that were written for shapes alone, and without nodes made from values that the
/// trace did not know. Throws `value_error` if a result depends on such values.
constexpr graph without_scaffolds(graph const& g) {
  list<char> part(g.nodes.size(), 0); // an operator of the program stays, used or not, and so do its operands
  list<char> unknown(g.nodes.size(), 0);
  bool any = false;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    node const& nd = g.nodes[n];
    unknown[n] = nd.unknown;
    for (int k = 0; k < nd.count; ++k) unknown[n] = unknown[n] || unknown[g.edges[nd.first + k]];
    part[n] = !nd.scaffold && !unknown[n];
    any = any || nd.unknown;
  }
  if (any && detail::needs_unknown(g))
    refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
  list<char> const live = live_nodes(g, part);
  rewriter w(g);
  return w.run(
      [&](int n) {
        if (!live[n]) return -1;
        int const mine = w.copy(g.nodes[n]);
        w.to.nodes.back().scaffold = false;
        return mine;
      },
      [] {});
}

/// Eliminates dead code: drops every operation on which no result depends. Placeholders, mutations, draws, effects and
/// all regions stay.
constexpr graph dce(graph const& g) {
  list<char> const live = live_nodes(g);
  rewriter w(g);
  return w.run([&](int n) { return live[n] ? w.copy(g.nodes[n]) : -1; }, [] {});
}

} // namespace varve
