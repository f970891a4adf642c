// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/sparse/pattern.hpp>

/// @file
/// Colorings of sparsity patterns. Rows or columns of one color share a seed vector, so that a derivative costs as many
/// passes as there are colors.
///
/// Sources: Curtis, Powell and Reid (1974) for columns; Gebremedhin, Manne and Pothen, "What color is your Jacobian?"
/// (2005) for the graph problems; Gebremedhin, Tarafdar, Manne and Pothen, "New acyclic and star coloring algorithms"
/// (2007) and Gebremedhin, Tarafdar, Pothen and Walther (2009) for symmetric matrices and their recovery.
namespace varve {

/// The order in which a greedy coloring visits vertices. `smallest_last` removes a vertex of least degree again and
/// again and visits them in reverse; it often needs the fewest colors.
enum class coloring_order : unsigned char { natural, largest_first, smallest_last };

/// A color for each row or column: 0, 1, ..., `colors` - 1, or -1 where the pattern has no entry.
struct coloring {
  list<int> of{};
  int colors = 0;
};

namespace detail {
/// Neighbors of vertices: of the columns of a matrix by the rows that they share, or of an index of a symmetric matrix.
struct column_graph {
  pattern_view by_row;
  pattern_view by_column; // the transposed pattern

  constexpr int vertices() const { return by_row.columns; }
  template <class F>
  constexpr void for_each_neighbor(int v, F const& f) const {
    for (int const* r = by_column.begin(v); r != by_column.end(v); ++r)
      for (int const* w = by_row.begin(*r); w != by_row.end(*r); ++w)
        if (*w != v) f(*w);
  }
  constexpr bool is_used(int v) const { return by_column.begin(v) != by_column.end(v); }
};
struct symmetric_graph {
  pattern_view p;
  constexpr int vertices() const { return p.rows; }
  template <class F>
  constexpr void for_each_neighbor(int v, F const& f) const {
    for (int const* w = p.begin(v); w != p.end(v); ++w)
      if (*w != v) f(*w);
  }
  constexpr bool is_used(int v) const { return p.begin(v) != p.end(v); }
};

/// Vertices in buckets of their degree, as doubly linked lists.
class degree_buckets {
public:
  constexpr degree_buckets(list<int> const& degrees, int greatest)
      : degree_(degrees), first_(static_cast<std::size_t>(greatest) + 1, -1), next_(degree_.size(), -1),
        before_(degree_.size(), -1) {
    for (int v = static_cast<int>(degree_.size()); v-- > 0;) link(v);
  }
  constexpr int take_least() {
    while (first_[least_] < 0) ++least_;
    int const v = first_[least_];
    unlink(v);
    degree_[v] = -1;
    return v;
  }
  constexpr void lower(int v) {
    if (degree_[v] <= 0) return;
    unlink(v);
    --degree_[v];
    link(v);
    if (degree_[v] < least_) least_ = degree_[v];
  }

private:
  list<int> degree_, first_, next_, before_;
  int least_ = 0;
  constexpr void link(int v) {
    int const head = first_[degree_[v]];
    next_[v] = head, before_[v] = -1;
    if (head >= 0) before_[head] = v;
    first_[degree_[v]] = v;
  }
  constexpr void unlink(int v) {
    if (before_[v] >= 0) next_[before_[v]] = next_[v];
    else first_[degree_[v]] = next_[v];
    if (next_[v] >= 0) before_[next_[v]] = before_[v];
  }
};

/// Returns the vertices in an order. A neighbor that is reached on several ways counts once.
template <class G>
constexpr list<int> ordered(G const& g, coloring_order order) {
  int const n = g.vertices();
  list<int> r, degree, mark(static_cast<std::size_t>(n), -1);
  for (int v = 0; v < n; ++v) r.push_back(v);
  if (order == coloring_order::natural) return r;
  int greatest = 0;
  for (int v = 0; v < n; ++v) {
    int d = 0;
    g.for_each_neighbor(v, [&](int w) { d += mark[w] != v, mark[w] = v; });
    degree.push_back(d);
    greatest = d > greatest ? d : greatest;
  }
  if (order == coloring_order::largest_first) {
    std::sort(r.begin(), r.end(), [&](int a, int b) { return degree[a] != degree[b] ? degree[a] > degree[b] : a < b; });
    return r;
  }
  degree_buckets left(degree, greatest);
  mark.assign(static_cast<std::size_t>(n), -1);
  for (int k = n; k-- > 0;) {
    int const v = r[k] = left.take_least();
    g.for_each_neighbor(v, [&](int w) {
      if (mark[w] != v) left.lower(w);
      mark[w] = v;
    });
  }
  return r;
}

/// Colors that the vertex that is being colored must not get.
class forbidden_colors {
public:
  constexpr void forbid(int color, int vertex) {
    if (color < 0) return;
    while (static_cast<int>(by_.size()) <= color) by_.push_back(-1);
    by_[color] = vertex;
  }
  constexpr bool is_forbidden(int color, int vertex) const {
    return color < static_cast<int>(by_.size()) && by_[color] == vertex;
  }
  constexpr int least(int vertex) const {
    int c = 0;
    while (is_forbidden(c, vertex)) ++c;
    return c;
  }

private:
  list<int> by_{}; // for each color, the last vertex for which it was forbidden
};
constexpr void give_color(coloring& to, int v, int color) {
  to.of[v] = color;
  to.colors = color >= to.colors ? color + 1 : to.colors;
}
constexpr void require_symmetric(pattern_view const& p) {
  if (!is_symmetric(p))
    refuse::argument_is_invalid("coloring",
                                "the pattern of a symmetric matrix is expected: square, and with the mirror "
                                "image of each entry");
}
} // namespace detail

/// Colors columns so that two columns of one color have no row in common (distance-2 coloring of the columns). Greedy.
/// Costs the sum of the squares of the rows' lengths.
constexpr coloring color_columns(pattern_view const& p, coloring_order order = coloring_order::smallest_last) {
  sparsity_pattern const t = transposed(p);
  detail::column_graph const g{p, t.view()};
  coloring r;
  r.of.assign(static_cast<std::size_t>(p.columns), -1);
  detail::forbidden_colors colors;
  list<int> const vertices = detail::ordered(g, order);
  for (int const v : vertices) {
    if (!g.is_used(v)) continue;
    g.for_each_neighbor(v, [&](int w) { colors.forbid(r.of[w], v); });
    detail::give_color(r, v, colors.least(v));
  }
  return r;
}
/// Colors rows so that two rows of one color have no column in common.
constexpr coloring color_rows(pattern_view const& p, coloring_order order = coloring_order::smallest_last) {
  sparsity_pattern const t = transposed(p);
  return color_columns(t.view(), order);
}

namespace detail {
/// A symmetric pattern whose off-diagonal entries are edges: both mirror images of an entry have the same number.
class numbered_edges {
public:
  constexpr explicit numbered_edges(pattern_view const& p) : p_(p), number_(static_cast<std::size_t>(p.count()), -1) {
    for (int v = 0; v < p.rows; ++v)
      for (int const* w = p.begin(v); w != p.end(v); ++w)
        if (*w > v) number_[w - p.column] = number_[p.find(*w, v)] = count_++;
  }
  constexpr int count() const { return count_; }
  /// Calls `f(neighbor, edge)` for each neighbor that has a color.
  template <class F>
  constexpr void for_each_colored(int v, coloring const& c, F const& f) const {
    for (int const* w = p_.begin(v); w != p_.end(v); ++w)
      if (*w != v && c.of[*w] >= 0) f(*w, number_[w - p_.column]);
  }

private:
  pattern_view p_;
  list<int> number_;
  int count_ = 0;
};

/// The stars of two colors while a star coloring is made (algorithm 4.1 of the paper of 2007). A star has a hub, the
/// vertex that all of its edges share; a single edge has none yet.
class two_colored_stars {
public:
  constexpr explicit two_colored_stars(numbered_edges const& e)
      : edges_(e), star_(static_cast<std::size_t>(e.count()), -1) {}
  constexpr bool is_hub(int edge, int v) const { return hub_[star_[edge]] == v; }
  /// Adds the edges from a vertex that has just got its color to its neighbors.
  constexpr void add(int v, coloring const& c) {
    list<int> first(static_cast<std::size_t>(c.colors), -1);
    edges_.for_each_colored(v, c, [&](int w, int edge) {
      int beyond = -1;
      edges_.for_each_colored(w, c, [&](int x, int e) { beyond = x != v && c.of[x] == c.of[v] ? e : beyond; });
      int& same = first[c.of[w]];
      if (beyond >= 0) join(edge, beyond, w);
      else if (same >= 0) join(edge, same, v);
      else star_[edge] = static_cast<int>(hub_.size()), hub_.push_back(-1);
      same = same < 0 ? edge : same;
    });
  }

private:
  numbered_edges const& edges_;
  list<int> star_, hub_{};
  constexpr void join(int edge, int with, int hub) {
    star_[edge] = star_[with];
    hub_[star_[edge]] = hub;
  }
};

/// Sets of edges that are connected and have two colors: trees, while an acyclic coloring is made.
class two_colored_trees {
public:
  constexpr explicit two_colored_trees(int edges)
      : seen_by_(static_cast<std::size_t>(edges), -1), seen_from_(seen_by_) {
    for (int e = 0; e < edges; ++e) parent_.push_back(e);
  }
  constexpr int root(int e) {
    while (parent_[e] != e) e = parent_[e] = parent_[parent_[e]];
    return e;
  }
  constexpr void join(int a, int b) { parent_[root(a)] = root(b); }
  /// True if vertex v reached the tree of an edge before by another neighbor than w.
  constexpr bool closes_a_cycle(int edge, int v, int w) {
    int const t = root(edge);
    if (seen_by_[t] == v) return seen_from_[t] != w;
    seen_by_[t] = v, seen_from_[t] = w;
    return false;
  }

private:
  list<int> parent_{}, seen_by_, seen_from_;
};
} // namespace detail

/// Colors a symmetric pattern so that neighbors differ and every path of four vertices has three colors (star
/// coloring). Each entry can then be read from the compressed matrix. Throws `value_error` if the pattern is not
/// symmetric. Costs the number of pairs of a vertex and a neighbor of its neighbors.
constexpr coloring star_coloring(pattern_view const& p, coloring_order order = coloring_order::smallest_last) {
  detail::require_symmetric(p);
  detail::symmetric_graph const g{p};
  detail::numbered_edges const edges(p);
  detail::two_colored_stars stars(edges);
  coloring r;
  r.of.assign(static_cast<std::size_t>(p.rows), -1);
  detail::forbidden_colors colors, once, twice; // of v; of its neighbors: met once, met twice
  list<int> const vertices = detail::ordered(g, order);
  for (int const v : vertices) {
    if (!g.is_used(v)) continue;
    edges.for_each_colored(v, r, [&](int w, int) {
      (once.is_forbidden(r.of[w], v) ? twice : once).forbid(r.of[w], v);
      colors.forbid(r.of[w], v);
    });
    edges.for_each_colored(v, r, [&](int w, int) {
      bool const paired = twice.is_forbidden(r.of[w], v);
      edges.for_each_colored(w, r, [&](int x, int edge) {
        if (paired || stars.is_hub(edge, x)) colors.forbid(r.of[x], v);
      });
    });
    detail::give_color(r, v, colors.least(v));
    stars.add(v, r);
  }
  return r;
}

/// Colors a symmetric pattern so that neighbors differ and every cycle has three colors (acyclic coloring). It needs
/// fewer colors than a star coloring, but entries are recovered by substitution, one after the other. Throws
/// `value_error` if the pattern is not symmetric.
constexpr coloring acyclic_coloring(pattern_view const& p, coloring_order order = coloring_order::smallest_last) {
  detail::require_symmetric(p);
  detail::symmetric_graph const g{p};
  detail::numbered_edges const edges(p);
  detail::two_colored_trees trees(edges.count());
  coloring r;
  r.of.assign(static_cast<std::size_t>(p.rows), -1);
  detail::forbidden_colors colors;
  list<int> const vertices = detail::ordered(g, order);
  for (int const v : vertices) {
    if (!g.is_used(v)) continue;
    edges.for_each_colored(v, r, [&](int w, int) { colors.forbid(r.of[w], v); });
    edges.for_each_colored(v, r, [&](int w, int) {
      edges.for_each_colored(w, r, [&](int x, int edge) {
        if (!colors.is_forbidden(r.of[x], v) && trees.closes_a_cycle(edge, v, w)) colors.forbid(r.of[x], v);
      });
    });
    detail::give_color(r, v, colors.least(v));
    list<int> first(static_cast<std::size_t>(r.colors), -1);
    edges.for_each_colored(v, r, [&](int w, int edge) {
      if (int& same = first[r.of[w]]; same >= 0) trees.join(edge, same);
      else same = edge;
      edges.for_each_colored(w, r, [&](int x, int e) {
        if (x != v && r.of[x] == r.of[v]) trees.join(edge, e);
      });
    });
  }
  return r;
}

} // namespace varve
