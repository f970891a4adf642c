// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/matmul.hpp>

#include <limits>
#include <vector>

namespace varve {

namespace detail {
/// The order of products in a chain of matrices that needs the fewest multiplications. For factors i to j the last
/// product multiplies those up to `at(i, j)` by the others. Matrix k has sides[k] rows and sides[k + 1] columns.
class chain_order {
public:
  explicit chain_order(std::vector<double> const& sides)
      : n_(sides.size() - 1), cost_(n_ * n_, 0.0), split_(n_ * n_, 0) {
    for (std::size_t length = 1; length < n_; ++length)
      for (std::size_t i = 0; i + length < n_; ++i) {
        std::size_t const j = i + length;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t k = i; k < j; ++k) {
          double const c = cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] + sides[i] * sides[k + 1] * sides[j + 1];
          if (c < best) best = c, split_[i * n_ + j] = k;
        }
        cost_[i * n_ + j] = best;
      }
  }
  std::size_t at(std::size_t i, std::size_t j) const { return split_[i * n_ + j]; }

private:
  std::size_t n_;
  std::vector<double> cost_;
  std::vector<std::size_t> split_;
};
template <class T>
T product_of_chain(std::vector<T> const& x, chain_order const& order, std::size_t i, std::size_t j) {
  if (i == j) return x[i];
  std::size_t const k = order.at(i, j);
  return matmul(product_of_chain(x, order, i, k), product_of_chain(x, order, k + 1, j));
}
template <class T>
void require_chain(std::vector<T> const& x) {
  if (x.size() < 2) refuse::argument_is_invalid("multi_dot", "at least two values are expected");
  for (std::size_t k = 0; k < x.size(); ++k) {
    bool const at_end = k == 0 || k + 1 == x.size();
    if (rank_of(x[k]) != 2 && !(at_end && rank_of(x[k]) == 1))
      refuse::argument_is_invalid("multi_dot", "matrices are expected, of which the first and the last may be vectors");
    if (dtype_of(x[k]) != dtype_of(x[0]))
      refuse::dtypes_differ("multi_dot", name(dtype_of(x[0])), name(dtype_of(x[k])));
  }
}
} // namespace detail

/// The product of several matrices, in the order that needs the fewest multiplications (`torch.linalg.multi_dot`). The
/// first and the last may be vectors: a row and a column. Values in a tuple are multiplied from left to right.
inline constexpr struct multi_dot_t {
  template <value X, value Y, value... Z>
  constexpr auto operator()(std::tuple<X, Y, Z...> const& values) const {
    return std::apply([](auto const&... v) { return chained(v...); }, values);
  }
  template <value T>
  auto operator()(std::vector<T> const& values) const {
    detail::require_chain(values);
    std::vector<double> sides;
    auto const side = [](extent e) { return e.is_number() ? static_cast<double>(e.number()) : 1.0; };
    for (std::size_t k = 0; k < values.size(); ++k) {
      dims const s = to_dims(shape_of(values[k]));
      if (k == 0) sides.push_back(s.n == 2 ? side(s[0]) : 1.0);
      sides.push_back(s.n == 2 || k == 0 ? side(s[s.n - 1]) : 1.0);
    }
    return detail::product_of_chain(values, detail::chain_order(sides), 0, values.size() - 1);
  }

private:
  template <class X>
  static constexpr auto chained(X const& x) {
    return x;
  }
  template <class X, class Y, class... Z>
  static constexpr auto chained(X const& x, Y const& y, Z const&... z) {
    return chained(matmul(x, y), z...);
  }
} multi_dot{};

} // namespace varve
