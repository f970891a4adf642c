// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/sparse_least_squares.hpp>

#include <algorithm>
#include <memory>
#include <numeric>

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
    return reduction(static_cast<std::size_t>(eliminated.at)).step(e, damping);
  }
  /// Returns the solver of one problem, which keeps its memory from step to step.
  auto prepared() const {
    return [r = std::make_shared<reduction>(static_cast<std::size_t>(eliminated.at))](
               detail::block_equations const& e, detail::numbers const& damping) { return r->step(e, damping); };
  }

private:
  using numbers = detail::numbers;
  struct entry { // an observation that depends on an eliminated row
    detail::observations const* g;
    std::size_t block, k;
  };
  struct coupling { // of an eliminated row with a kept row of n numbers, which starts at `at`: n columns of `y_`
    std::size_t at, n, column;
  };
  class reduction {
  public:
    explicit reduction(std::size_t which) : which_(which) {}
    numbers step(detail::block_equations const& e, numbers const& damping) {
      if (first_entry_.empty()) gather(e);
      reduce(e, damping);
      return solved(e);
    }

  private:
    std::size_t kept(std::size_t k) const { return k < first_ ? k : k - (last_ - first_); }
    std::size_t rows() const { return width_ ? (last_ - first_) / width_ : 0; }
    double* factor(std::size_t row) { return factors_.data() + row * width_ * width_; }
    template <class Visit>
    void for_each_entry(std::size_t row, Visit const& visit) const {
      for (std::size_t i = first_entry_[row]; i < first_entry_[row + 1]; ++i) visit(entries_[i]);
    }
    /// Sorts the observations by the eliminated row that they depend on.
    void gather(detail::block_equations const& e) {
      first_ = e.first[which_], last_ = e.first[which_ + 1], n_ = e.first.back() - (last_ - first_);
      for (auto const& g : e.groups)
        for (auto const& of : g->of)
          if (static_cast<std::size_t>(of.parameters) == which_) width_ = of.width;
      first_entry_.assign(rows() + 1, 0);
      for_each_of_eliminated(e, [&](detail::observations const& g, std::size_t b) {
        for (std::size_t const row : g.of[b].row) ++first_entry_[row + 1];
      });
      std::partial_sum(first_entry_.begin(), first_entry_.end(), first_entry_.begin());
      entries_.resize(first_entry_.back());
      std::vector<std::size_t> next = first_entry_;
      for_each_of_eliminated(e, [&](detail::observations const& g, std::size_t b) {
        for (std::size_t k = 0; k < g.count(); ++k) entries_[next[g.of[b].row[k]]++] = {&g, b, k};
      });
    }
    template <class Visit>
    void for_each_of_eliminated(detail::block_equations const& e, Visit const& visit) const {
      for (auto const& g : e.groups) {
        std::size_t times = 0;
        for (std::size_t b = 0; b < g->of.size(); ++b) {
          if (static_cast<std::size_t>(g->of[b].parameters) != which_) continue;
          if (++times > 1)
            refuse::argument_is_invalid("schur", "an observation depends on two rows of the eliminated parameters; "
                                                 "eliminate others, or use eigen_sparse_cholesky");
          visit(*g, b);
        }
      }
    }
    /// Builds the dense equations of the kept parameters and subtracts the contributions of the eliminated rows.
    void reduce(detail::block_equations const& e, numbers const& damping) {
      s_.assign(n_ * n_, 0), b_.assign(n_, 0), factors_.assign(rows() * width_ * width_, 0);
      for (std::size_t k = 0; k < e.first.back(); ++k)
        if (k < first_ || k >= last_) s_[kept(k) * n_ + kept(k)] = damping[k], b_[kept(k)] = -e.gradient[k];
      for (auto const& g : e.groups) add_kept(e, *g);
      for (std::size_t row = 0; row < rows(); ++row) {
        compute_factor(row, damping);
        eliminate(e, row);
      }
    }
    void add_kept(detail::block_equations const& e, detail::observations const& g) {
      for (std::size_t k = 0; k < g.count(); ++k)
        for (std::size_t b = 0; b < g.of.size(); ++b)
          for (std::size_t c = 0; c < g.of.size(); ++c) {
            if (static_cast<std::size_t>(g.of[b].parameters) == which_ ||
                static_cast<std::size_t>(g.of[c].parameters) == which_)
              continue;
            std::size_t const row = kept(e.place(g, b, k)), column = kept(e.place(g, c, k)), n = g.of[b].width,
                              m = g.of[c].width;
            if (column <= row) // only this triangle is read
              detail::add_product(&s_[row * n_ + column], n_, {g.derivative(b, k), n, n}, {g.derivative(c, k), m, m},
                                  g.width);
          }
    }
    /// Computes the matrix of an eliminated row and its Cholesky factor.
    void compute_factor(std::size_t row, numbers const& damping) {
      double* const c = factor(row);
      for (std::size_t i = 0; i < width_; ++i) c[i * width_ + i] = damping[first_ + row * width_ + i];
      for_each_entry(row, [&](entry const& o) {
        detail::columns const j{o.g->derivative(o.block, o.k), width_, width_};
        detail::add_product(c, width_, j, j, o.g->width);
      });
      detail::cholesky_in_place(c, width_);
    }
    /// With the factor L, the couplings W and the gradient g of an eliminated row, subtracts y^T y of y = L^-1 W from
    /// the equations, and -y^T L^-1 g from the right side.
    void eliminate(detail::block_equations const& e, std::size_t row) {
      couple(e, row);
      detail::cholesky_forward(factor(row), width_, y_.data(), columns_);
      double* const g = y_.data() + width_ * columns_;
      std::copy_n(&e.gradient[first_ + row * width_], width_, g);
      detail::cholesky_forward(factor(row), width_, g, 1);
      for (coupling const& a : couplings_) {
        detail::columns const left{&y_[a.column], a.n, columns_};
        detail::add_product(&b_[a.at], 1, left, {g, 1, 1}, width_);
        for (coupling const& b : couplings_)
          if (b.at <= a.at) // only this triangle is read
            detail::add_product(&s_[a.at * n_ + b.at], n_, left, {&y_[b.column], b.n, columns_}, width_, -1);
      }
    }
    /// Computes the couplings of an eliminated row as a matrix [width, columns] in `y_`, before room for a vector.
    void couple(detail::block_equations const& e, std::size_t row) {
      couplings_.clear(), columns_ = 0;
      for_each_entry(row, [&](entry const& o) {
        for (std::size_t b = 0; b < o.g->of.size(); ++b) {
          if (b == o.block) continue;
          couplings_.push_back({kept(e.place(*o.g, b, o.k)), o.g->of[b].width, columns_});
          columns_ += o.g->of[b].width;
        }
      });
      y_.assign(width_ * (columns_ + 1), 0);
      auto c = couplings_.begin();
      for_each_entry(row, [&](entry const& o) {
        for (std::size_t b = 0; b < o.g->of.size(); ++b)
          if (b != o.block) {
            detail::add_product(&y_[c->column], columns_, {o.g->derivative(o.block, o.k), width_, width_},
                                {o.g->derivative(b, o.k), c->n, c->n}, o.g->width);
            ++c;
          }
      });
    }
    numbers solved(detail::block_equations const& e) {
      numbers p(e.first.back(), 0.0);
      detail::cholesky_in_place(s_.data(), n_);
      detail::cholesky_solve(s_.data(), n_, b_.data());
      for (std::size_t k = 0; k < p.size(); ++k)
        if (k < first_ || k >= last_) p[k] = b_[kept(k)];
      for (std::size_t row = 0; row < rows(); ++row) {
        double* const x = p.data() + first_ + row * width_;
        for (std::size_t c = 0; c < width_; ++c) x[c] = -e.gradient[first_ + row * width_ + c];
        for_each_entry(row, [&](entry const& o) {
          double const* const j = o.g->derivative(o.block, o.k);
          for (std::size_t i = 0; i < o.g->width; ++i) {
            double const change = e.change(*o.g, o.k, i, p, o.block);
            for (std::size_t c = 0; c < width_; ++c) x[c] -= j[i * width_ + c] * change;
          }
        });
        detail::cholesky_solve(factor(row), width_, x);
      }
      return p;
    }

    std::size_t which_, first_ = 0, last_ = 0, n_ = 0, width_ = 0;
    std::vector<entry> entries_{}; // by eliminated rows, the first of each in `first_entry_`
    std::vector<std::size_t> first_entry_{};
    numbers s_{}, b_{}, factors_{};
    std::vector<coupling> couplings_{}; // of one eliminated row
    std::size_t columns_ = 0;
    numbers y_{};
  };
};

} // namespace varve::optim

#pragma GCC diagnostic pop
