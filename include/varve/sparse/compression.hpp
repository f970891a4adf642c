// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/sparse/coloring.hpp>

/// @file
/// How the entries of a sparse matrix are read back from its compressed form. The compressed matrix has a row for each
/// color: the sum of the columns, or rows, of that color.
namespace varve {

/// How sparse derivatives are compressed.
enum class sparse_compression : unsigned char {
  fewest,       // columns or rows, whichever need fewer passes
  columns,      // forward mode, a pass for each color of columns
  rows,         // reverse mode, a pass for each color of rows
  star,         // symmetric, entries are read directly
  substitution, // symmetric by an acyclic coloring, entries are read one after the other
};

namespace detail {
/// Positions in the compressed matrix [colors, n], flattened, that are read at once. What is read is then subtracted at
/// the positions `subtract`, which has the same length or is empty.
struct recovery_step {
  list<index_t> read{}, subtract{};
};
/// A coloring and the way back. The entries are what the steps read, one after the other, in the order `order`; if that
/// is empty, there is one step, which reads the entries in their own order.
struct compression {
  sparse_compression how{};
  coloring colors{};
  list<recovery_step> steps{};
  list<index_t> order{};

  constexpr bool by_rows() const { return how == sparse_compression::rows; }
  constexpr recovery_step& add_step() {
    recovery_step const none;
    steps.push_back(none);
    return steps.back();
  }
  /// Returns the position of each entry, or null if entries are recovered step by step.
  constexpr index_t const* positions() const { return order.empty() ? steps[0].read.data() : nullptr; }
  /// Returns the seed vectors [colors, n], with a 1 where an index has the color.
  constexpr list<double> seeds() const {
    std::size_t const n = colors.of.size();
    list<double> r(n * static_cast<std::size_t>(colors.colors), 0.0);
    for (std::size_t k = 0; k < n; ++k)
      if (int const c = colors.of[static_cast<std::ptrdiff_t>(k)]; c >= 0)
        r[static_cast<std::ptrdiff_t>(static_cast<std::size_t>(c) * n + k)] = 1;
    return r;
  }
};

/// Plans that read every entry at once, in the order of the pattern.
constexpr compression compressed_columns(pattern_view const& p, coloring const& c) {
  compression plan{sparse_compression::columns, c, {}, {}};
  list<index_t>& read = plan.add_step().read;
  for (int r = 0; r < p.rows; ++r)
    for (int const* k = p.begin(r); k != p.end(r); ++k) read.push_back(index_t{c.of[*k]} * p.rows + r);
  return plan;
}
constexpr compression compressed_rows(pattern_view const& p, coloring const& c) {
  compression plan{sparse_compression::rows, c, {}, {}};
  list<index_t>& read = plan.add_step().read;
  for (int r = 0; r < p.rows; ++r)
    for (int const* k = p.begin(r); k != p.end(r); ++k) read.push_back(index_t{c.of[r]} * p.columns + *k);
  return plan;
}
/// Reads entry (i, j) in row i if no other column of j's color has an entry there, else in row j. Of a star coloring
/// one of both holds.
constexpr compression compressed_star(pattern_view const& p, coloring const& c) {
  compression plan{sparse_compression::star, c, {}, {}};
  list<index_t>& read = plan.add_step().read;
  list<int> count(static_cast<std::size_t>(c.colors), 0);
  for (int i = 0; i < p.rows; ++i) {
    for (int const* j = p.begin(i); j != p.end(i); ++j) ++count[c.of[*j]];
    for (int const* j = p.begin(i); j != p.end(i); ++j)
      read.push_back(count[c.of[*j]] == 1 ? index_t{c.of[*j]} * p.rows + i : index_t{c.of[i]} * p.rows + *j);
    for (int const* j = p.begin(i); j != p.end(i); ++j) count[c.of[*j]] = 0;
  }
  return plan;
}

/// Recovers a symmetric matrix from an acyclic coloring. Edges of two colors form trees. An edge at a leaf is read
/// directly and subtracted at its other end, which may then be a leaf; each step removes all leaves.
class substitution {
public:
  constexpr substitution(pattern_view const& p, coloring const& c)
      : p_(p), place_(static_cast<std::size_t>(p.count()), -1) {
    r_.how = sparse_compression::substitution, r_.colors = c;
    find_slots();
    list<int> leaves;
    for (int v = 0; v < p.rows; ++v)
      for (int const* w = p.begin(v); w != p.end(v); ++w)
        if (*w != v && left_[slot_[w - p.column]] == 1) leaves.push_back(static_cast<int>(w - p.column));
    while (!leaves.empty()) step(leaves);
    finish();
  }
  constexpr compression const& result() const { return r_; }

private:
  pattern_view p_;
  compression r_{};
  list<int> place_;           // where an entry is among all that is read
  list<int> slot_{}, row_{};  // of an entry: the neighbors of its row that have its column's color; its row
  list<int> left_{}, last_{}; // of such a slot: how many entries are not read yet; the exclusive or of their numbers
  int count_ = 0;

  constexpr int color(int v) const { return r_.colors.of[v]; }
  constexpr void find_slots() {
    list<int> of_color(static_cast<std::size_t>(r_.colors.colors), -1), seen = of_color;
    for (int v = 0; v < p_.rows; ++v)
      for (int const* w = p_.begin(v); w != p_.end(v); ++w) {
        int const c = color(*w);
        if (seen[c] != v)
          seen[c] = v, of_color[c] = static_cast<int>(left_.size()), left_.push_back(0), last_.push_back(0);
        row_.push_back(v), slot_.push_back(of_color[c]);
        if (*w != v) ++left_[of_color[c]], last_[of_color[c]] ^= static_cast<int>(w - p_.column);
      }
  }
  /// Reads the entries at leaves, and replaces them by those that are at leaves now.
  constexpr void step(list<int>& leaves) {
    recovery_step s;
    list<int> touched;
    for (int const e : leaves) {
      if (place_[e] >= 0) continue; // its mirror image was read in this step
      int const v = row_[e], w = p_.column[e], mirror = p_.find(w, v);
      place_[e] = place_[mirror] = count_++;
      s.read.push_back(index_t{color(w)} * p_.rows + v);
      s.subtract.push_back(index_t{color(v)} * p_.rows + w);
      remove(e), remove(mirror);
      touched.push_back(slot_[mirror]);
    }
    if (!s.read.empty()) r_.steps.push_back(s);
    leaves.clear();
    for (int const slot : touched)
      if (left_[slot] == 1) leaves.push_back(last_[slot]);
  }
  constexpr void remove(int e) { --left_[slot_[e]], last_[slot_[e]] ^= e; }
  constexpr void finish() {
    recovery_step diagonal;
    for (int v = 0; v < p_.rows; ++v)
      if (int const e = p_.find(v, v); e >= 0) {
        place_[e] = count_++;
        diagonal.read.push_back(index_t{color(v)} * p_.rows + v);
      }
    if (!diagonal.read.empty() || r_.steps.empty()) r_.steps.push_back(diagonal);
    for (int const k : place_) r_.order.push_back(k);
  }
};

constexpr int longest_row(pattern_view const& p) {
  int r = 0;
  for (int k = 0; k < p.rows; ++k)
    r = p.row_start[k + 1] - p.row_start[k] > r ? p.row_start[k + 1] - p.row_start[k] : r;
  return r;
}
/// Colors in a given order, or in the natural order and, if that needs more than `bound` colors, also by
/// `smallest_last` and `largest_first`; returns the coloring with the fewest colors. Grids and bands are often best in
/// their own order, long chains with some ties in that of their degrees.
template <class Color>
constexpr coloring least_coloring(Color const& color, pattern_view const& p, coloring_order const* order, int bound) {
  coloring const first = color(p, order ? *order : coloring_order::natural);
  if (order || first.colors <= bound) return first;
  coloring const second = color(p, coloring_order::smallest_last);
  if (second.colors <= bound) return second;
  coloring const third = color(p, coloring_order::largest_first);
  if (third.colors < first.colors && third.colors < second.colors) return third;
  if (second.colors < first.colors) return second;
  return first;
}
constexpr coloring least_columns(pattern_view const& p, coloring_order const* order, int bound) {
  return least_coloring([](pattern_view const& q, coloring_order o) { return color_columns(q, o); }, p, order, bound);
}
/// Colors a pattern and plans how to recover it. Colorings are named variables: g++ 12 loses temporaries that own
/// storage.
constexpr compression compress(pattern_view const& p, sparse_compression how, coloring_order const* order = nullptr) {
  if (how == sparse_compression::star) {
    auto const color = [](pattern_view const& q, coloring_order o) { return star_coloring(q, o); };
    coloring const c = least_coloring(color, p, order, 2);
    return compressed_star(p, c);
  }
  if (how == sparse_compression::substitution) {
    auto const color = [](pattern_view const& q, coloring_order o) { return acyclic_coloring(q, o); };
    coloring const c = least_coloring(color, p, order, 2);
    substitution const s(p, c);
    return s.result();
  }
  sparsity_pattern const t = transposed(p);
  int const row = longest_row(p), column = longest_row(t.view()); // the fewest colors of columns and of rows
  bool const any = how == sparse_compression::fewest;
  if (how == sparse_compression::columns || (any && row <= column)) {
    coloring const c = least_columns(p, order, row);
    if (!any || c.colors <= column) return compressed_columns(p, c);
    coloring const other = least_columns(t.view(), order, column);
    if (other.colors < c.colors) return compressed_rows(p, other);
    return compressed_columns(p, c);
  }
  coloring const c = least_columns(t.view(), order, column);
  if (!any || c.colors <= row) return compressed_rows(p, c);
  coloring const other = least_columns(p, order, row);
  if (other.colors <= c.colors) return compressed_columns(p, other);
  return compressed_rows(p, c);
}
} // namespace detail

} // namespace varve
