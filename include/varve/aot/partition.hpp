// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/pass/dce.hpp>

/// @file
/// Cuts the joint graph of a function and its gradient in two: a forward pass, and a backward pass that uses values
/// saved by the forward pass (`torch/_functorch/partitioners.py`).
namespace varve {

/// The form of a joint graph. Its arguments are primals, then tangents; its results are those of the forward pass, then
/// gradients.
struct joint_shape {
  int primals = 0, forward_results = 0;
};

/// The two graphs of a joint one. `forward` maps the primals to its results, the saved values and the saved sizes.
/// `backward` maps saved values, saved sizes and tangents to the gradients. A size is saved as an integer of rank 0,
/// never as a tensor of that size.
struct partition {
  graph forward, backward;
  int saved_values = 0, saved_sizes = 0;
  int saved() const { return saved_values + saved_sizes; }
};

namespace detail {
/// Marks the nodes of the program (region 0) on which the marked nodes depend. The search stops at `known` nodes.
constexpr list<char> needed_for(graph const& g, list<char> marks, list<char> const& known) {
  region const& f = g.regions[0];
  for (int n = f.node_first + f.node_count; n-- > f.node_first;)
    if (marks[n] && !known[n])
      for (int k = 0; k < g.nodes[n].count; ++k) marks[g.edges[g.nodes[n].first + k]] = 1;
  return marks;
}
/// Marks the nodes that depend on an argument after the primals.
constexpr list<char> of_tangents(graph const& g, int primals) {
  list<char> marks(g.nodes.size(), 0);
  region const& f = g.regions[0];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[n];
    bool any = nd.op->kind == op_kind::placeholder && static_cast<int>(nd.value) >= primals;
    for (int k = 0; k < nd.count; ++k) any = any || marks[g.edges[nd.first + k]];
    marks[n] = any;
  }
  return marks;
}
constexpr bool is_constant(node const& n) { return n.op->kind == op_kind::constant; }
constexpr bool is_getitem(node const& n) { return n.op == &getitem_handle; }

/// The symbols of sizes that a graph uses (`needed`), and those that an argument has as a size of its own (`bound`).
struct symbols_of_graph {
  list<char> needed, bound; // by entry of the table

  constexpr symbols_of_graph(graph const& g, list<char> const& nodes) : needed(g.expressions.size(), 0), bound(needed) {
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      if (nodes[n]) mention(g, g.nodes[n]);
  }
  /// Adds the symbols of a node. An argument binds those that are one of its sizes.
  constexpr void mention(graph const& g, node const& n) {
    for (int k = 0; k < n.out.sizes.n; ++k) {
      extent const e = n.out.sizes[k];
      need(g, e);
      if (n.op->kind == op_kind::placeholder && e.is_entry() && g.expressions[e].op == size_op::symbol)
        bound[static_cast<std::size_t>(e.entry())] = 1;
    }
    bool const reads = n.op == &handle<local_scalar_t> && n.at[0].n > 0 && n.at[0][0].is_entry();
    if (reads) bound[static_cast<std::size_t>(n.at[0][0].entry())] = 1;
    for (int k = 0; k < n.at.count; ++k)
      for (int d = 0; d < n.at[k].n; ++d) need(g, n.at[k][d]);
  }

private:
  constexpr void need(graph const& g, extent e) {
    if (!e.is_entry()) return;
    size_expression const& x = g.expressions[e];
    if (x.op == size_op::symbol) {
      needed[static_cast<std::size_t>(e.entry())] = 1;
    } else {
      need(g, x.a);
      need(g, x.b);
    }
  }
};

/// A part of a program, from some of its nodes, which become the arguments, to others.
struct part_of_graph {
  graph const& whole;
  list<char> given, inside; // arguments; all nodes of the part
  graph to{};

  /// Makes the part of a graph from `arguments` to `results`. `kept` nodes belong to it even if unused.
  constexpr part_of_graph(graph const& g, list<int> const& arguments, list<int> const& results,
                          list<int> const& kept = {})
      : whole(g), given(g.nodes.size(), 0), inside(given) {
    for (int n : arguments) given[n] = 1;
    for (int n : results) inside[n] = 1;
    for (int n : kept) inside[n] = 1;
    inside = needed_for(g, inside, given);
    for (region const& f : g.regions)
      if (&f != &g.regions[0])
        for (int n = f.node_first; n < f.node_first + f.node_count; ++n) inside[n] = 1;
  }
  /// Returns the part as a graph. `sizes`: symbols that become integer arguments after the others. `told`: symbols that
  /// become results.
  constexpr graph cut(list<int> const& arguments, list<int> const& results, list<int> const& sizes,
                      list<int> const& told, std::size_t sizes_at) const {
    graph with = whole; // with the requested results
    region const& f = whole.regions[0];
    with.results.clear();
    for (region& r : with.regions) {
      bool const first = &r == &with.regions[0];
      int const from = r.result_first;
      r.result_first = static_cast<int>(with.results.size());
      if (first)
        for (int n : results) with.results.push_back(n);
      else
        for (int k = 0; k < r.result_count; ++k) with.results.push_back(whole.results[from + k]);
      if (first) r.result_count = static_cast<int>(results.size());
    }
    rewriter w(with);
    int inputs = 0;
    bool begun = false;
    auto const argument = [&](meta const& m) {
      node n;
      n.op = &placeholder_handle, n.out = m, n.value = inputs++;
      n.out.number = false;
      return w.append(n, nullptr);
    };
    auto const start = [&] {
      if (begun) return;
      begun = true;
      list<int> numbers;
      for (std::size_t k = 0; k <= arguments.size(); ++k) {
        if (k == sizes_at)
          for (int s : sizes) (void)s, numbers.push_back(argument({dtype::int64, {}}));
        if (k < arguments.size()) w.now[arguments[k]] = argument(whole.nodes[arguments[k]].out);
      }
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        node n;
        n.op = &handle<local_scalar_t>, n.out = {dtype::int64, {}}, n.count = 1;
        n.at = attributes(dims{extent::entry(sizes[k])});
        w.append(n, &numbers[k]);
      }
    };
    int const last = f.node_first + f.node_count;
    graph g = w.run(
        [&](int n) {
          int const mine = !inside[n] ? -1 : n < last && given[n] ? w.now[n] : w.copy(whole.nodes[n]);
          if (mine >= 0) w.to.nodes[mine].mode = recording::as_around;
          return mine;
        },
        start);
    g.regions[0].inputs = inputs;
    tell(g, told);
    return g;
  }

private:
  /// Adds sizes as further results. Their nodes come after those of the program and before its inner functions.
  static constexpr void tell(graph& g, list<int> const& told) {
    if (told.empty()) return;
    int const at = g.regions[0].node_first + g.regions[0].node_count, n = static_cast<int>(told.size());
    auto const later = [&](int k) { return k >= at ? k + n : k; };
    list<node> nodes;
    for (int k = 0; k < at; ++k) nodes.push_back(g.nodes[k]);
    for (int s : told) {
      node size;
      size.op = &sym_numel_handle, size.out = {dtype::int64, {}}, size.at = attributes(dims{extent::entry(s)});
      nodes.push_back(size);
    }
    for (std::size_t k = static_cast<std::size_t>(at); k < g.nodes.size(); ++k) nodes.push_back(g.nodes[k]);
    g.nodes = nodes;
    for (int& e : g.edges) e = later(e);
    list<int> results;
    for (region& r : g.regions) {
      bool const first = &r == &g.regions[0];
      int const from = r.result_first;
      r.result_first = static_cast<int>(results.size());
      for (int k = 0; k < r.result_count; ++k) results.push_back(later(g.results[from + k]));
      if (!first) continue;
      for (int k = 0; k < n; ++k) results.push_back(at + k);
      r.result_count += n;
    }
    for (region& r : g.regions)
      if (&r == &g.regions[0]) r.node_count += n;
      else r.node_first += n;
    g.results = results;
  }
};

/// Returns the graph with a table of sizes that contains only those it uses.
constexpr graph with_own_sizes(graph g) {
  size_table own;
  auto const take = [&](dims& d) {
    for (int k = 0; k < d.n; ++k) d[k] = own.imported(g.expressions.view(), d[k]);
  };
  for (node& n : g.nodes) {
    take(n.out.sizes);
    for (int k = 0; k < n.at.count; ++k) take(n.at.fact[k]);
  }
  for (size_guard& s : g.guards) {
    s.left = own.imported(g.expressions.view(), s.left), s.right = own.imported(g.expressions.view(), s.right);
    s.unless = own.imported(g.expressions.view(), s.unless);
  }
  g.expressions = own;
  return g;
}

/// The nodes of the arguments and results of a joint graph.
struct joint_ends {
  list<int> primals, tangents, forward, gradients;
  constexpr joint_ends(graph const& g, joint_shape s) {
    region const& f = g.regions[0];
    for (int n = f.node_first; n < f.node_first + f.inputs; ++n)
      (static_cast<int>(g.nodes[n].value) < s.primals ? primals : tangents).push_back(n);
    for (int k = 0; k < f.result_count; ++k)
      (k < s.forward_results ? forward : gradients).push_back(g.results[f.result_first + k]);
  }
};
/// Returns the nodes with effects in the backward pass, used or not.
constexpr list<int> acting_after(graph const& g, joint_shape s) {
  list<char> const late = of_tangents(g, s.primals);
  list<int> r;
  region const& f = g.regions[0];
  for (int n = f.node_first; n < f.node_first + f.node_count && effect_in(g); ++n)
    if (late[n] && acts(g, g.nodes[n])) r.push_back(n);
  return r;
}
/// Returns the nodes with effects or random draws in the forward pass. Later draws depend on them, even if they are
/// unused.
constexpr list<int> drawn_before(graph const& g, joint_shape s) {
  list<char> const late = of_tangents(g, s.primals);
  list<int> r;
  region const& f = g.regions[0];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
    if (!late[n] && (draws(g, g.nodes[n]) || acts(g, g.nodes[n]))) r.push_back(n);
  return r;
}
/// Registers the operator that reads saved sizes, so that programs that run the parts contain it.
inline void have_size_reader() { (void)registered_table<local_scalar_t, 1>(); }
/// Cuts a joint graph at the given saved values.
constexpr partition partition_at(graph const& g, joint_shape s, list<int> const& saved) {
  joint_ends const ends(g, s);
  list<int> given = saved;
  for (int n : ends.tangents) given.push_back(n);
  part_of_graph const after(g, given, ends.gradients, acting_after(g, s));
  // The forward pass has checked the guards. A symbol that no saved value has as a size is saved separately.
  symbols_of_graph sizes(g, [&] {
    list<char> computed = after.inside;
    for (int n : given) computed[n] = 0;
    return computed;
  }());
  for (int n : given) {
    node as_argument = g.nodes[n];
    as_argument.op = &placeholder_handle, as_argument.at = no_attributes;
    sizes.mention(g, as_argument);
  }
  list<int> told;
  for (std::size_t k = 0; k < sizes.needed.size(); ++k)
    if (sizes.needed[k] && !sizes.bound[k]) told.push_back(static_cast<int>(k));
  if (!std::is_constant_evaluated() && !told.empty()) have_size_reader();
  partition p;
  p.saved_values = static_cast<int>(saved.size()), p.saved_sizes = static_cast<int>(told.size());
  p.backward = after.cut(given, ends.gradients, told, {}, saved.size());
  p.backward.guards.clear();
  list<int> results = ends.forward;
  for (int n : saved) results.push_back(n);
  part_of_graph const before(g, ends.primals, results, drawn_before(g, s));
  p.forward = before.cut(ends.primals, results, {}, told, ends.primals.size());
  p.forward = with_own_sizes(p.forward), p.backward = with_own_sizes(p.backward);
  return p;
}
} // namespace detail

namespace detail {
/// Returns the values that the forward pass computes for its results and the backward pass uses.
constexpr list<int> saved_by_default(graph const& g, joint_shape s) {
  joint_ends const ends(g, s);
  list<char> none(g.nodes.size(), 0), forward = none, backward = none;
  region const& f = g.regions[0];
  for (int n : ends.forward) forward[n] = 1;
  for (int n : ends.primals) forward[n] = 1;
  for (int n : drawn_before(g, s)) forward[n] = 1; // in the order in which they are drawn
  forward = needed_for(g, forward, none);
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) // parts of available results
    if (is_getitem(g.nodes[n]) && forward[g.edges[g.nodes[n].first]]) forward[n] = 1;
  for (int n : ends.gradients) backward[n] = 1;
  for (int n : acting_after(g, s)) backward[n] = 1;
  backward = needed_for(g, backward, forward);
  list<char> used = none;
  for (int n : ends.gradients) used[n] = 1;
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
    if (backward[n] && !forward[n])
      for (int k = 0; k < g.nodes[n].count; ++k) used[g.edges[g.nodes[n].first + k]] = 1;
  list<int> saved;
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
    if (used[n] && forward[n] && !is_constant(g.nodes[n])) saved.push_back(n);
  return saved;
}
} // namespace detail

/// Cuts a joint graph without recomputation. The forward pass computes everything that its results need and saves what
/// the backward pass uses of that. The rest is the backward pass. Constants are in both.
constexpr partition default_partition(graph const& g, joint_shape s) {
  return detail::partition_at(g, s, detail::saved_by_default(g, s));
}

} // namespace varve
