// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// One operator with inputs to try it on: what the laws of `test/laws` run over. The rows stand in `op.hpp`.
#include "value.hpp"

namespace sample {
/// Which numbers an operand may hold. `flag` is bool, `index` int64 in {0, 1, 2}; the others are float64.
enum class domain { real, positive, nonzero, flag, index };

struct row {
  char const* name;
  std::vector<domain> operands;
  /// The call, on operands of any shape listed.
  tensor (*call)(tensor const* x);
  /// Shapes of the operands, one entry per sample.
  std::vector<std::vector<dims>> shapes;
  /// The result is a constant to derivatives (comparisons, `detach`).
  bool constant = false;

  tensor operator()(values const& x) const { return call(x.data()); }
  /// Positions of the operands that derivatives exist for.
  std::vector<std::size_t> real() const {
    std::vector<std::size_t> r;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (operands[k] != domain::flag && operands[k] != domain::index) r.push_back(k);
    return r;
  }
};

inline tensor make(domain d, dims const& sizes, numbers& draw, memory m = memory::row_major) {
  if (d == domain::flag || d == domain::index) {
    tensor r = blank(sizes, d == domain::flag ? dtype::bool_ : dtype::int64, m);
    for (index_t k = 0; k < r.numel(); ++k) set(r, k, std::floor(draw() * (d == domain::flag ? 2 : 3)));
    return r;
  }
  tensor r = d == domain::positive ? uniform(sizes, draw, 0.5, 2, dtype::float64, m)
                                   : uniform(sizes, draw, -2, 2, dtype::float64, m);
  if (d == domain::nonzero)
    for (index_t k = 0; k < r.numel(); ++k) set(r, k, element(r, k) + (element(r, k) < 0 ? -0.3 : 0.3));
  return r;
}
/// The operands of one sample; the memory layouts take turns.
inline values make(row const& r, std::vector<dims> const& shapes, std::uint64_t seed) {
  numbers draw(seed);
  values x;
  for (std::size_t k = 0; k < r.operands.size(); ++k)
    x.push_back(make(r.operands[k], shapes[k], draw, static_cast<memory>((seed + k) % 3)));
  return x;
}
inline std::string describe(row const& r, std::vector<dims> const& shapes) {
  std::string s = r.name;
  for (dims const& d : shapes) s += " " + varve::to_string(d);
  return s;
}

/// Every row. Defined by the one file of a program that includes `op.hpp`.
std::vector<row> const& rows();

/// Calls `f(row, shapes, seed)` for every sample of every row.
template <class F>
void for_each_sample(F const& f) {
  std::uint64_t seed = 1;
  for (row const& r : rows())
    for (auto const& s : r.shapes) f(r, s, seed++);
}
} // namespace sample
