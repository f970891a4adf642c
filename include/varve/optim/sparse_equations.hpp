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
  void linearize(std::vector<tensor> const& parameters) {
    set_residuals(residuals(parameters));
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

template <class F, class Indices>
struct mapped_over;
template <class F, std::size_t... K>
struct mapped_over<F, std::index_sequence<K...>> {
  static auto residuals(F const& f) { return compile(vmap(f)); }
  static auto derivatives(F const& f) { return compile(vmap(jacrev<static_cast<int>(K)...>(f))); }
};
/// Observations whose residuals are a function of `K` rows of parameters and of rows of data.
template <class F, std::size_t K, class... X>
class observed_by final : public observations {
  using mapped = mapped_over<F, std::make_index_sequence<K>>;

public:
  observed_by(F const& f, std::vector<tensor> rows, X const&... data)
      : rows_(std::move(rows)), data_(data...), residuals_(mapped::residuals(f)), derivatives_(mapped::derivatives(f)) {
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
    auto const add = [&](tensor const& t) { r.push_back(elements_of(t)); };
    if constexpr (K == 1) add(called(derivatives_, parameters));
    else std::apply([&](auto const&... t) { (add(t), ...); }, called(derivatives_, parameters));
    return r;
  }
  std::vector<tensor> rows_;
  std::tuple<X...> data_;
  decltype(mapped::residuals(std::declval<F const&>())) residuals_;
  decltype(mapped::derivatives(std::declval<F const&>())) derivatives_;
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
};

/// The sparse problem in the form that the iterations use.
class block_problem final : public least_squares_problem {
public:
  using solver = std::function<numbers(block_equations const&, numbers const& damping)>;
  block_problem(std::vector<tensor> const& like, std::vector<std::unique_ptr<observations>> const& groups, solver s)
      : like_(like), groups_(groups), solver_(std::move(s)) {
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
    for (auto const& g : groups_) s += g->cost(parameters);
    return s;
  }
  void linearize(numbers const& x) override {
    std::vector<tensor> const parameters = tensors(x);
    gradient.assign(x.size(), 0), lengths.assign(x.size(), 0);
    double square = 0;
    for (auto const& g : groups_) {
      g->linearize(parameters);
      square += dot(g->r, g->r);
      for_each_row(*g, [&](double const* j, std::size_t at, std::size_t width, double r) {
        for (std::size_t c = 0; c < width; ++c) gradient[at + c] += j[c] * r, lengths[at + c] += j[c] * j[c];
      });
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
    for (auto const& g : groups_) {
      numbers all(g->r.size(), 0.0);
      std::size_t row = 0; // the rows of each block come in order
      for_each_row(*g, [&](double const* j, std::size_t at, std::size_t width, double) {
        for (std::size_t c = 0; c < width; ++c) all[row % all.size()] += j[c] * p[at + c];
        ++row;
      });
      square += dot(all, all);
    }
    return square;
  }

private:
  template <class Visit>
  void for_each_row(observations const& g, Visit const& visit) const {
    block_equations const e{groups_, first_, gradient};
    for (std::size_t b = 0; b < g.of.size(); ++b)
      for (std::size_t k = 0; k < g.count(); ++k)
        for (std::size_t i = 0; i < g.width; ++i)
          visit(g.derivative(b, k) + i * g.of[b].width, e.place(g, b, k), g.of[b].width, g.r[k * g.width + i]);
  }
  std::vector<tensor> const& like_;
  std::vector<std::unique_ptr<observations>> const& groups_;
  solver solver_;
  std::vector<std::size_t> first_{};
  numbers least_{};
};

/// Adds factor * a^T b to c, where `a` has `rows` rows of n numbers and `b` has `rows` rows of m numbers.
inline void add_product(double* c, std::size_t stride, double const* a, std::size_t n, double const* b, std::size_t m,
                        std::size_t rows, double factor = 1) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t p = 0; p < n; ++p) {
      double const v = factor * a[i * n + p];
      for (std::size_t q = 0; q < m; ++q) c[p * stride + q] += v * b[i * m + q];
    }
}
/// Cholesky factor of a symmetric positive matrix, computed in place. If a pivot is lost in rounding errors, its
/// unknown is 0.
class cholesky_factor {
public:
  cholesky_factor(numbers a, std::size_t n) : n_(n), l_(std::move(a)) {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t k = 0; k <= i; ++k) {
        double s = l_[i * n_ + k];
        double const own = s;
        for (std::size_t c = 0; c < k; ++c) s -= l_[i * n_ + c] * l_[k * n_ + c];
        if (k < i) l_[i * n_ + k] = l_[k * n_ + k] > 0 ? s / l_[k * n_ + k] : 0;
        else l_[i * n_ + i] = s > 1e-15 * own ? kernel::sqrt(s) : 0;
      }
  }
  void solve(double* x) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t c = 0; c < i; ++c) x[i] -= l_[i * n_ + c] * x[c];
      x[i] = divided(x[i], i);
    }
    for (std::size_t i = n_; i-- > 0;) {
      x[i] = divided(x[i], i);
      for (std::size_t c = 0; c < i; ++c) x[c] -= l_[i * n_ + c] * x[i];
    }
  }

private:
  double divided(double v, std::size_t i) const { return l_[i * n_ + i] > 0 ? v / l_[i * n_ + i] : 0; }
  std::size_t n_;
  numbers l_;
};

} // namespace varve::optim::detail

#pragma GCC diagnostic pop
