// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/sparse_least_squares.hpp>

/// @file
/// Steps of problems in which each observation depends on at most one row of certain parameters, such as the point that
/// a camera observes. These rows are eliminated one after another.
namespace varve::optim {

/// Solves the equations of a step by the Schur complement: eliminates the rows of `eliminated`, whose blocks are small
/// and many. The remaining n parameters form dense equations, which cost O(n^3). Throws `value_error` if an observation
/// depends on two rows of `eliminated`.
struct schur {
  parameter_rows eliminated;

  detail::numbers operator()(detail::block_equations const& e, detail::numbers const& damping) const {
    detail::numbers p = damping;
    reduction r(e, damping, static_cast<std::size_t>(eliminated.at));
    r.reduce();
    r.solve(p);
    return p;
  }

private:
  using numbers = detail::numbers;
  struct entry { // an observation that depends on an eliminated row
    detail::observations const* g;
    std::size_t block, k;
  };
  class reduction {
  public:
    reduction(detail::block_equations const& e, numbers const& damping, std::size_t which)
        : e_(e), damping_(damping), which_(which), first_(e.first[which]), last_(e.first[which + 1]),
          n_(e.first.back() - (last_ - first_)), s_(n_ * n_, 0.0), b_(n_, 0.0) {
      gather();
    }
    /// Builds the dense equations of the kept parameters and subtracts the contributions of the eliminated rows.
    void reduce() {
      for (std::size_t k = 0; k < e_.first.back(); ++k)
        if (k < first_ || k >= last_) s_[kept(k) * n_ + kept(k)] = damping_[k], b_[kept(k)] = -e_.gradient[k];
      for (auto const& g : e_.groups) add_kept(*g);
      for (std::size_t row = 0; row < of_row_.size(); ++row) eliminate(row);
    }
    void solve(numbers& p) {
      detail::cholesky_factor(std::move(s_), n_).solve(b_.data());
      for (std::size_t k = 0; k < p.size(); ++k)
        if (k < first_ || k >= last_) p[k] = b_[kept(k)];
      for (std::size_t row = 0; row < of_row_.size(); ++row) {
        double* const x = p.data() + first_ + row * width_;
        for (std::size_t c = 0; c < width_; ++c) x[c] = -e_.gradient[first_ + row * width_ + c];
        for_each_coupling(row, [&](double const* w, std::size_t at, std::size_t n) {
          for (std::size_t i = 0; i < n; ++i)
            for (std::size_t c = 0; c < width_; ++c) x[c] -= w[i * width_ + c] * p[at + i];
        });
        factor_of(row).solve(x);
      }
    }

  private:
    std::size_t kept(std::size_t k) const { return k < first_ ? k : k - (last_ - first_); }
    void gather() {
      for (auto const& g : e_.groups)
        for (std::size_t b = 0; b < g->of.size(); ++b)
          if (static_cast<std::size_t>(g->of[b].parameters) == which_) width_ = g->of[b].width;
      of_row_.resize(width_ ? (last_ - first_) / width_ : 0);
      for (auto const& g : e_.groups) {
        std::size_t times = 0;
        for (std::size_t b = 0; b < g->of.size(); ++b) {
          if (static_cast<std::size_t>(g->of[b].parameters) != which_) continue;
          if (++times > 1)
            refuse::argument_is_invalid("schur", "an observation depends on two rows of the eliminated parameters; "
                                                 "eliminate others, or use eigen_sparse_cholesky");
          for (std::size_t k = 0; k < g->count(); ++k) of_row_[g->of[b].row[k]].push_back({g.get(), b, k});
        }
      }
    }
    void add_kept(detail::observations const& g) {
      for (std::size_t b = 0; b < g.of.size(); ++b)
        for (std::size_t c = 0; c < g.of.size(); ++c) {
          if (static_cast<std::size_t>(g.of[b].parameters) == which_ ||
              static_cast<std::size_t>(g.of[c].parameters) == which_)
            continue;
          for (std::size_t k = 0; k < g.count(); ++k)
            detail::add_product(&s_[kept(e_.place(g, b, k)) * n_ + kept(e_.place(g, c, k))], n_, g.derivative(b, k),
                                g.of[b].width, g.derivative(c, k), g.of[c].width, g.width);
        }
    }
    detail::cholesky_factor factor_of(std::size_t row) const {
      numbers c(width_ * width_, 0.0);
      for (std::size_t i = 0; i < width_; ++i) c[i * width_ + i] = damping_[first_ + row * width_ + i];
      for (entry const& o : of_row_[row]) {
        double const* const j = o.g->derivative(o.block, o.k);
        detail::add_product(c.data(), width_, j, width_, j, width_, o.g->width);
      }
      return {std::move(c), width_};
    }
    /// Calls `visit` with the product of the derivatives by each kept row and by the eliminated row.
    template <class Visit>
    void for_each_coupling(std::size_t row, Visit const& visit) const {
      for (entry const& o : of_row_[row])
        for (std::size_t b = 0; b < o.g->of.size(); ++b) {
          if (b == o.block) continue;
          numbers w(o.g->of[b].width * width_, 0.0);
          detail::add_product(w.data(), width_, o.g->derivative(b, o.k), o.g->of[b].width,
                              o.g->derivative(o.block, o.k), width_, o.g->width);
          visit(w.data(), e_.place(*o.g, b, o.k), o.g->of[b].width);
        }
    }
    void eliminate(std::size_t row) {
      detail::cholesky_factor const c = factor_of(row);
      std::vector<numbers> w, cw; // the couplings by columns, and the solutions for them
      std::vector<std::size_t> at;
      for_each_coupling(row, [&](double const* first, std::size_t place, std::size_t n) {
        at.push_back(kept(place));
        w.emplace_back(n * width_, 0.0), cw.emplace_back(n * width_, 0.0);
        numbers x(width_, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
          std::copy_n(first + i * width_, width_, x.data());
          for (std::size_t k = 0; k < width_; ++k) w.back()[k * n + i] = x[k];
          c.solve(x.data());
          for (std::size_t k = 0; k < width_; ++k) cw.back()[k * n + i] = x[k];
        }
      });
      double const* const g = &e_.gradient[first_ + row * width_];
      for (std::size_t a = 0; a < w.size(); ++a) {
        std::size_t const n = w[a].size() / width_;
        detail::add_product(&b_[at[a]], 1, cw[a].data(), n, g, 1, width_);
        for (std::size_t b = 0; b < w.size(); ++b)
          if (at[b] <= at[a]) // only this triangle is read
            detail::add_product(&s_[at[a] * n_ + at[b]], n_, cw[a].data(), n, w[b].data(), w[b].size() / width_, width_,
                                -1);
      }
    }

    detail::block_equations const& e_;
    numbers const& damping_;
    std::size_t which_, first_, last_, n_, width_ = 0;
    numbers s_, b_;
    std::vector<std::vector<entry>> of_row_{};
  };
};

} // namespace varve::optim

#pragma GCC diagnostic pop
