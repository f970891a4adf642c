// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/compile/compile.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/optim/least_squares.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <tuple>

/// @file
/// Observations that depend on a few rows of the parameters, the equations of a step, and Cholesky factors to solve
/// them.
namespace varve::optim::detail {

/// Returns the row numbers in a vector of indices. Throws `value_error` if an index names no row.
inline std::vector<std::size_t> rows_in(tensor const& index, index_t rows) {
  std::vector<std::size_t> r;
  for (std::int64_t const i : index.to_vector<std::int64_t>()) {
    if (i < 0 || i >= rows)
      refuse::argument_is_invalid("sparse_least_squares", "an observation names a row that the "
                                                          "parameters do not have");
    r.push_back(static_cast<std::size_t>(i));
  }
  return r;
}

/// Observations whose residuals are computed by one function, and their derivatives at one point.
struct observations {
  struct named {
    int parameters;    // which tensor of parameters
    std::size_t width; // the width of its rows
    std::vector<std::size_t> row;
  };
  robust_loss loss{}; ///< applied to the sum of squared residuals of one observation
  std::vector<named> of{};
  std::size_t width = 0;    // residuals of one observation
  numbers r{};              // weighted by the root of the loss's slope
  std::vector<numbers> j{}; // for each of `of`: a matrix [width, row width] for each observation

  observations() = default;
  observations(observations const&) = delete;
  virtual ~observations() = default;
  std::size_t count() const { return of[0].row.size(); }
  void check() const {
    for (named const& n : of)
      if (n.row.size() != count())
        refuse::argument_is_invalid("sparse_least_squares", "indices of one kind of observations are of one length");
  }
  double cost(std::vector<tensor> const& parameters) {
    set_residuals(residuals(parameters));
    double s = 0;
    for (std::size_t k = 0; k < count(); ++k) s += loss.of_square(square(k)).loss;
    return s / 2;
  }
  /// Computes the residuals unless `cost` did for the same parameters, and their derivatives.
  void linearize(std::vector<tensor> const& parameters, bool has_residuals) {
    if (!has_residuals) set_residuals(residuals(parameters));
    j = derivatives(parameters);
    for (std::size_t k = 0; k < count() && loss.at; ++k) {
      double const weight = kernel::sqrt(loss.of_square(square(k)).slope);
      for (std::size_t i = 0; i < width; ++i) r[k * width + i] *= weight;
      for (std::size_t b = 0; b < of.size(); ++b)
        for (std::size_t i = 0; i < width * of[b].width; ++i) j[b][k * width * of[b].width + i] *= weight;
    }
  }
  double const* derivative(std::size_t block, std::size_t k) const { return &j[block][k * width * of[block].width]; }

private:
  virtual numbers residuals(std::vector<tensor> const& parameters) const = 0;
  virtual std::vector<numbers> derivatives(std::vector<tensor> const& parameters) const = 0;
  void set_residuals(numbers now) {
    r = std::move(now);
    width = count() ? r.size() / count() : 0;
  }
  double square(std::size_t k) const {
    double s = 0;
    for (std::size_t i = 0; i < width; ++i) s += r[k * width + i] * r[k * width + i];
    return s;
  }
};

/// Observations whose residuals, and derivatives by the rows that they depend on, are functions of `K` tensors of rows
/// of parameters and of data.
template <std::size_t K, class Residuals, class Derivatives, class... X>
class observed_by final : public observations {
public:
  observed_by(Residuals residuals, Derivatives derivatives, std::vector<tensor> rows, X const&... data)
      : rows_(std::move(rows)), data_(data...), residuals_(std::move(residuals)), derivatives_(std::move(derivatives)) {
  }

private:
  template <class G>
  auto called(G const& g, std::vector<tensor> const& parameters) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::apply(
          [&](auto const&... d) {
            return g(tensor(index_select(parameters[static_cast<std::size_t>(of[I].parameters)], 0, rows_[I]))...,
                     d...);
          },
          data_);
    }(std::make_index_sequence<K>{});
  }
  numbers residuals(std::vector<tensor> const& parameters) const override {
    return elements_of(called(residuals_, parameters));
  }
  std::vector<numbers> derivatives(std::vector<tensor> const& parameters) const override {
    std::vector<numbers> r;
    auto const add = [&](tensor const& t) {
      std::size_t const expected = count() * width * of[r.size()].width;
      if (static_cast<std::size_t>(t.numel()) != expected)
        refuse::argument_is_invalid("sparse_least_squares",
                                    "derivatives are tensors [observations, residuals, row width]");
      r.push_back(elements_of(t));
    };
    if constexpr (K == 1) add(called(derivatives_, parameters));
    else std::apply([&](auto const&... t) { (add(t), ...); }, called(derivatives_, parameters));
    return r;
  }
  std::vector<tensor> rows_;
  std::tuple<X...> data_;
  Residuals residuals_;
  Derivatives derivatives_;
};

/// The input of a solver: observations with their derivatives, and the position of each row in the parameter vector.
struct block_equations {
  std::vector<std::unique_ptr<observations>> const& groups;
  std::vector<std::size_t> const& first; // the first element of each parameter tensor; then the total
  numbers const& gradient;

  /// Returns the position in the parameter vector of the row that observation `k` depends on.
  std::size_t place(observations const& g, std::size_t block, std::size_t k) const {
    auto const& n = g.of[block];
    return first[static_cast<std::size_t>(n.parameters)] + n.row[k] * n.width;
  }
  /// Returns the change of residual `i` of observation `k` by the step `p`, without that by the block `except`.
  double change(observations const& g, std::size_t k, std::size_t i, numbers const& p,
                std::size_t except = static_cast<std::size_t>(-1)) const {
    double s = 0;
    for (std::size_t b = 0; b < g.of.size(); ++b) {
      if (b == except) continue;
      std::size_t const n = g.of[b].width, at = place(g, b, k);
      double const* const j = g.derivative(b, k) + i * n;
      for (std::size_t c = 0; c < n; ++c) s += j[c] * p[at + c];
    }
    return s;
  }
};

/// The sparse problem in the form that the iterations use.
class block_problem final : public least_squares_problem {
public:
  using solver = std::function<numbers(block_equations const&, numbers const& damping)>;
  block_problem(std::vector<tensor> const& like, std::vector<std::unique_ptr<observations>> const& groups, solver s)
      : like_(like), groups_(groups), solver_(std::move(s)) {
    boundary = 0.4; // each damped step costs a factorization
    first_.push_back(0);
    for (tensor const& t : like) {
      first_.push_back(first_.back() + static_cast<std::size_t>(t.numel()));
      rounding = std::max<double>(rounding, rounding_of(t.dtype()));
    }
  }
  numbers start() const {
    numbers x;
    for (tensor const& t : like_)
      for (double const v : elements_of(t)) x.push_back(v);
    return x;
  }
  std::vector<tensor> tensors(numbers const& x) const {
    std::vector<tensor> r;
    for (std::size_t k = 0; k < like_.size(); ++k)
      r.push_back(to(tensor::from_data(x.data() + first_[k], like_[k].sizes()), like_[k].dtype()));
    return r;
  }
  double cost(numbers const& x) override {
    std::vector<tensor> const parameters = tensors(x);
    double s = 0;
    costs_at_.clear();
    for (auto const& g : groups_) s += g->cost(parameters);
    costs_at_ = x;
    return s;
  }
  void linearize(numbers const& x) override {
    std::vector<tensor> const parameters = tensors(x);
    gradient.assign(x.size(), 0), lengths.assign(x.size(), 0);
    double square = 0;
    bool const has_residuals = std::exchange(costs_at_, {}) == x; // losses are about to weight them
    for (auto const& g : groups_) {
      g->linearize(parameters, has_residuals);
      square += dot(g->r, g->r);
      for (std::size_t b = 0; b < g->of.size(); ++b)
        for (std::size_t k = 0; k < g->count(); ++k) add_gradient(*g, b, k);
    }
    length_of_r = kernel::sqrt(square);
    least_.clear();
    for (double& l : lengths) least_.push_back(1e-14 * l + 1e-100), l = kernel::sqrt(l);
  }
  numbers damped_step(numbers const& damping) override { return solver_({groups_, first_, gradient}, damping); }
  /// Computes the full step with damping so small that it matters only for undetermined parameters.
  numbers full_step(numbers const& fixed) override {
    numbers damping = least_;
    for (std::size_t k = 0; k < fixed.size(); ++k) damping[k] += fixed[k];
    return damped_step(damping);
  }
  double change(numbers const& p) override {
    double square = 0;
    block_equations const e{groups_, first_, gradient};
    for (auto const& g : groups_)
      for (std::size_t k = 0; k < g->count(); ++k)
        for (std::size_t i = 0; i < g->width; ++i) {
          double const change = e.change(*g, k, i, p);
          square += change * change;
        }
    return square;
  }

private:
  void add_gradient(observations const& g, std::size_t b, std::size_t k) {
    std::size_t const n = g.of[b].width, at = block_equations{groups_, first_, gradient}.place(g, b, k);
    double const* const j = g.derivative(b, k);
    for (std::size_t i = 0; i < g.width; ++i)
      for (std::size_t c = 0; c < n; ++c) {
        double const d = j[i * n + c];
        gradient[at + c] += d * g.r[k * g.width + i], lengths[at + c] += d * d;
      }
  }
  std::vector<tensor> const& like_;
  std::vector<std::unique_ptr<observations>> const& groups_;
  solver solver_;
  std::vector<std::size_t> first_{};
  numbers least_{}, costs_at_{}; // costs_at_: the parameters of the residuals that the observations hold, or empty
};

/// Columns of a matrix: `n` of the numbers of each row, which starts `stride` after the row before.
struct columns {
  double const* at;
  std::size_t n, stride;
};
/// Adds factor * a^T b to c, for `Rows` rows of `a` and `b` and b.n = m. Nothing overlaps with c.
template <std::size_t Rows>
VARVE_INLINE void add_product_of(double* __restrict c, std::size_t stride, columns const& a, columns const& b,
                                 std::size_t m, double factor) {
  double const* __restrict const right = b.at;
  for (std::size_t p = 0; p < a.n; ++p) {
    double v[Rows];
    for (std::size_t i = 0; i < Rows; ++i) v[i] = factor * a.at[i * a.stride + p];
    for (std::size_t q = 0; q < m; ++q) {
      double s = c[p * stride + q];
      for (std::size_t i = 0; i < Rows; ++i) s += v[i] * right[i * b.stride + q];
      c[p * stride + q] = s;
    }
  }
}
/// The same with loops of known length for the widths of points, poses and cameras.
template <std::size_t Rows>
VARVE_NOINLINE void add_product_by(double* c, std::size_t stride, columns const& a, columns const& b, double factor) {
  if (b.n == 9) add_product_of<Rows>(c, stride, a, b, 9, factor);
  else if (b.n == 6) add_product_of<Rows>(c, stride, a, b, 6, factor);
  else if (b.n == 3) add_product_of<Rows>(c, stride, a, b, 3, factor);
  else add_product_of<Rows>(c, stride, a, b, b.n, factor);
}
/// Adds factor * a^T b to c for any number of rows. Reads and writes `c` once for every four of them.
inline void add_product(double* c, std::size_t stride, columns a, columns b, std::size_t rows, double factor = 1) {
  for (; rows > 4; rows -= 4, a.at += 4 * a.stride, b.at += 4 * b.stride) add_product_by<4>(c, stride, a, b, factor);
  if (rows == 4) add_product_by<4>(c, stride, a, b, factor);
  else if (rows == 3) add_product_by<3>(c, stride, a, b, factor);
  else if (rows == 2) add_product_by<2>(c, stride, a, b, factor);
  else if (rows == 1) add_product_by<1>(c, stride, a, b, factor);
}
/// Computes the Cholesky factor of a symmetric positive n x n matrix in place of its lower triangle. If a pivot is lost
/// in rounding errors, it is 0 and so is its unknown.
inline void cholesky_in_place(double* l, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k <= i; ++k) {
      double const *const u = l + i * n, *const v = l + k * n, own = u[k];
      double s[4] = {}; // four sums, whose additions need not wait for each other
      std::size_t c = 0;
      for (; c + 4 <= k; c += 4)
        for (std::size_t j = 0; j < 4; ++j) s[j] += u[c + j] * v[c + j];
      for (; c < k; ++c) s[0] += u[c] * v[c];
      double const rest = own - (s[0] + s[1] + s[2] + s[3]);
      if (k < i) l[i * n + k] = v[k] > 0 ? rest / v[k] : 0;
      else l[i * n + i] = rest > 1e-15 * own ? kernel::sqrt(rest) : 0;
    }
}
/// Solves L y = x for the Cholesky factor L and the `m` columns of `x`, in place.
inline void cholesky_forward(double const* l, std::size_t n, double* x, std::size_t m) {
  for (std::size_t i = 0; i < n; ++i) {
    double* const own = x + i * m;
    for (std::size_t c = 0; c < i; ++c) {
      double const factor = l[i * n + c];
      for (std::size_t q = 0; q < m; ++q) own[q] -= factor * x[c * m + q];
    }
    double const scale = l[i * n + i] > 0 ? 1 / l[i * n + i] : 0;
    for (std::size_t q = 0; q < m; ++q) own[q] = scale > 0 ? own[q] * scale : 0;
  }
}
/// Solves the equations of a Cholesky factor in place of the right side.
inline void cholesky_solve(double const* l, std::size_t n, double* x) {
  cholesky_forward(l, n, x, 1);
  for (std::size_t i = n; i-- > 0;) {
    x[i] = l[i * n + i] > 0 ? x[i] / l[i * n + i] : 0;
    for (std::size_t c = 0; c < i; ++c) x[c] -= l[i * n + c] * x[i];
  }
}

} // namespace varve::optim::detail

#pragma GCC diagnostic pop
