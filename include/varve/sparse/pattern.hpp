// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/error.hpp>
#include <varve/core/list.hpp>
#include <varve/core/message.hpp>

#include <algorithm>
#include <limits>
#include <string>

/// @file
/// Patterns of sparse matrices: which entries may be different from 0. Compressed rows, as in CSR.
namespace varve {

/// One entry of a sparse matrix.
struct matrix_entry {
  int row = 0, column = 0;
  friend constexpr bool operator==(matrix_entry const& a, matrix_entry const& b) = default;
};

/// A view of a pattern of either form. Row r has its columns, in ascending order, at `column[row_start[r] ..
/// row_start[r + 1])`.
struct pattern_view {
  int rows = 0, columns = 0;
  int const* row_start = nullptr;
  int const* column = nullptr;

  /// Returns the number of entries.
  constexpr int count() const { return row_start ? row_start[rows] : 0; }
  constexpr int const* begin(int row) const { return column + row_start[row]; }
  constexpr int const* end(int row) const { return column + row_start[row + 1]; }
  /// Returns the position of an entry among all entries, or -1. O(log of the row's length).
  constexpr int find(int row, int of_column) const {
    int const *first = begin(row), *last = end(row);
    while (first != last) {
      int const* const middle = first + (last - first) / 2;
      if (*middle < of_column) first = middle + 1;
      else last = middle;
    }
    return first != end(row) && *first == of_column ? static_cast<int>(first - column) : -1;
  }
  constexpr bool contains(int row, int of_column) const { return find(row, of_column) >= 0; }
  friend constexpr bool operator==(pattern_view const& a, pattern_view const& b) {
    bool same = a.rows == b.rows && a.columns == b.columns && a.count() == b.count();
    for (int r = 0; same && r < a.rows; ++r) same = a.row_start[r + 1] == b.row_start[r + 1];
    for (int k = 0; same && k < a.count(); ++k) same = a.column[k] == b.column[k];
    return same;
  }
};

/// A pattern of a sparse matrix: the entries that may be different from 0. A row or column is the position of an
/// element in row-major order, so that a value of any rank counts as a vector. Usable in constant expressions;
/// `static_pattern` is the form that outlives them.
struct sparsity_pattern {
  int rows = 0, columns = 0;
  list<int> row_start{}; ///< where the entries of each row begin; then the number of entries
  list<int> column{};    ///< the column of each entry, ascending in each row

  constexpr sparsity_pattern() : row_start(1, 0) {}
  /// Makes a pattern without entries.
  constexpr sparsity_pattern(int r, int c) : rows(r), columns(c), row_start(static_cast<std::size_t>(r) + 1, 0) {}
  constexpr explicit sparsity_pattern(pattern_view const& v) : rows(v.rows), columns(v.columns) {
    for (int r = 0; r <= v.rows; ++r) row_start.push_back(v.row_start[r]);
    for (int k = 0; k < v.count(); ++k) column.push_back(v.column[k]);
  }
  /// Makes a pattern of entries in any order. Equal entries count once. Throws `value_error` for entries outside of the
  /// matrix.
  static constexpr sparsity_pattern of(int rows, int columns, list<matrix_entry> const& in_any_order) {
    list<matrix_entry> entries = in_any_order;
    for (matrix_entry const& e : entries)
      if (e.row < 0 || e.row >= rows || e.column < 0 || e.column >= columns)
        refuse::argument_is_invalid("sparsity_pattern", "an entry lies outside of the matrix");
    std::sort(entries.begin(), entries.end(), [](matrix_entry const& a, matrix_entry const& b) {
      return a.row != b.row ? a.row < b.row : a.column < b.column;
    });
    sparsity_pattern p(rows, columns);
    for (std::size_t k = 0; k < entries.size(); ++k) {
      matrix_entry const& e = entries[static_cast<std::ptrdiff_t>(k)];
      if (k > 0 && e == entries[static_cast<std::ptrdiff_t>(k) - 1]) continue;
      p.column.push_back(e.column), ++p.row_start[e.row + 1];
    }
    for (int r = 0; r < rows; ++r) p.row_start[r + 1] += p.row_start[r];
    return p;
  }
  /// Makes the pattern of a band: `lower` diagonals below the main one and `upper` above it.
  static constexpr sparsity_pattern banded(int rows, int columns, int lower, int upper) {
    sparsity_pattern p(rows, columns);
    for (int r = 0; r < rows; ++r) {
      index_t const stop = index_t{r} + upper + 1;
      for (int c = r > lower ? r - lower : 0; c < stop && c < columns; ++c) p.column.push_back(c);
      p.row_start[r + 1] = static_cast<int>(p.column.size());
    }
    return p;
  }
  /// Makes the pattern of a matrix in which every entry may be different from 0.
  static constexpr sparsity_pattern dense(int rows, int columns) { return banded(rows, columns, rows, columns); }

  constexpr pattern_view view() const { return {rows, columns, row_start.data(), column.data()}; }
  constexpr operator pattern_view() const { return view(); }
  /// Returns the number of entries.
  constexpr int count() const { return view().count(); }
  constexpr bool contains(int row, int of_column) const { return view().contains(row, of_column); }
  friend constexpr bool operator==(sparsity_pattern const& a, sparsity_pattern const& b) {
    return a.view() == b.view();
  }
};

/// A pattern of fixed size, which may be the value of a constant.
template <int Rows, int Columns, int Count>
struct static_pattern {
  static constexpr int rows = Rows, columns = Columns;
  int row_start[Rows + 1]{};
  int column[Count ? Count : 1]{};

  constexpr static_pattern() = default;
  constexpr explicit static_pattern(pattern_view const& p) {
    for (int r = 0; r <= Rows; ++r) row_start[r] = p.row_start[r];
    for (int k = 0; k < Count; ++k) column[k] = p.column[k];
  }
  constexpr pattern_view view() const { return {Rows, Columns, row_start, column}; }
  constexpr operator pattern_view() const { return view(); }
  static constexpr int count() { return Count; }
  constexpr bool contains(int row, int of_column) const { return view().contains(row, of_column); }
  friend constexpr bool operator==(static_pattern const& a, static_pattern const& b) { return a.view() == b.view(); }
};

/// Returns the pattern of the transposed matrix. O(entries + rows + columns).
constexpr sparsity_pattern transposed(pattern_view const& p) {
  sparsity_pattern t(p.columns, p.rows);
  for (int k = 0; k < p.count(); ++k) ++t.row_start[p.column[k] + 1];
  for (int r = 0; r < p.columns; ++r) t.row_start[r + 1] += t.row_start[r];
  list<int> next = t.row_start;
  t.column.assign(static_cast<std::size_t>(p.count()), 0);
  for (int r = 0; r < p.rows; ++r)
    for (int const* c = p.begin(r); c != p.end(r); ++c) t.column[next[*c]++] = r;
  return t;
}
/// Returns the pattern of the entries of both matrices. Throws `shape_error` if the sizes differ.
constexpr sparsity_pattern united(pattern_view const& a, pattern_view const& b) {
  if (a.rows != b.rows || a.columns != b.columns)
    refuse::shapes_do_not_match("sparsity_pattern", dims{a.rows, a.columns}, dims{b.rows, b.columns});
  sparsity_pattern r(a.rows, a.columns);
  for (int k = 0; k < a.rows; ++k) {
    int const *x = a.begin(k), *y = b.begin(k);
    while (x != a.end(k) || y != b.end(k)) {
      bool const from_x = x != a.end(k) && (y == b.end(k) || *x <= *y);
      if (from_x && y != b.end(k) && *x == *y) ++y;
      r.column.push_back(from_x ? *x++ : *y++);
    }
    r.row_start[k + 1] = static_cast<int>(r.column.size());
  }
  return r;
}
/// True if a matrix is square and each entry has its mirror image.
constexpr bool is_symmetric(pattern_view const& p) {
  sparsity_pattern const t = transposed(p); // a named variable: g++ 12 loses temporaries that own storage
  return p.rows == p.columns && t.view() == p;
}

/// Returns a picture of a pattern: a line for each row, with `x` for entries and `.` for zeros.
inline std::string to_string(pattern_view const& p) {
  std::string r;
  for (int row = 0; row < p.rows; ++row) {
    std::string line(static_cast<std::size_t>(p.columns), '.');
    for (int const* c = p.begin(row); c != p.end(row); ++c) line[static_cast<std::size_t>(*c)] = 'x';
    r += line + "\n";
  }
  return r;
}

namespace detail {
/// Returns a number of elements as an `int`. Throws `value_error` for a matrix that has too many rows or columns.
constexpr int count_of_rows(extent n) {
  if (is_symbol(n) || n.number() > (std::numeric_limits<int>::max)() - 2)
    refuse::argument_is_invalid("sparsity", "a matrix has less than 2^31 rows and columns, and as many as the shapes "
                                            "of values say, which must not depend on data");
  return static_cast<int>(n.number());
}
} // namespace detail

} // namespace varve
