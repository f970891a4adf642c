// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/convert_batch.hpp>
#include <varve/kernel/math.hpp>
#include <varve/kernel/simd.hpp>

#include <type_traits>

/// @file
/// Operations on contiguous rows of doubles that matrix algorithms use. They run in registers at run time, and element
/// by element in constant expressions.
namespace varve::kernel::vectors {

namespace detail {
using pack = batch<double>;
inline constexpr auto width = static_cast<index_t>(lanes<double>);

/// Converts and copies whole registers of elements, and returns the index of the first remaining element, as do the
/// following functions.
template <class T>
index_t read(index_t n, T const* from, double* to) {
  index_t i = 0;
  for (; i + width <= n; i += width) kernel::store<double>(to + i, kernel::load_converted<double>(from + i));
  return i;
}
template <class T>
index_t write(index_t n, double const* from, T* to) {
  index_t i = 0;
  for (; i + width <= n; i += width) kernel::store_converted<true>(to + i, kernel::load(from + i));
  return i;
}
inline index_t dot(index_t n, double const* x, double const* y, double& sum) {
  index_t i = 0;
  pack a(0.), b(0.), c(0.), d(0.);
  for (; i + 4 * width <= n; i += 4 * width) {
    a = kernel::fma<double>(kernel::load(x + i), kernel::load(y + i), a);
    b = kernel::fma<double>(kernel::load(x + i + width), kernel::load(y + i + width), b);
    c = kernel::fma<double>(kernel::load(x + i + 2 * width), kernel::load(y + i + 2 * width), c);
    d = kernel::fma<double>(kernel::load(x + i + 3 * width), kernel::load(y + i + 3 * width), d);
  }
  for (; i + width <= n; i += width) a = kernel::fma<double>(kernel::load(x + i), kernel::load(y + i), a);
  if (i > 0) sum = kernel::reduce_sum<double>(pack(pack(a + b) + pack(c + d)));
  return i;
}
inline index_t add_multiple(index_t n, double f, double const* x, double* y) {
  index_t i = 0;
  pack const g(f);
  for (; i + width <= n; i += width)
    kernel::store(y + i, kernel::fma<double>(g, kernel::load(x + i), kernel::load(y + i)));
  return i;
}
inline index_t divide(index_t n, double* x, double d) {
  index_t i = 0;
  pack const by(d);
  for (; i + width <= n; i += width) kernel::store<double>(x + i, kernel::load(x + i) / by);
  return i;
}
inline index_t rotate(index_t n, double c, double s, double* x, double* y) {
  index_t i = 0;
  pack const cosine(c), sine(s);
  for (; i + width <= n; i += width) {
    pack const u = kernel::load(x + i), v = kernel::load(y + i);
    kernel::store<double>(x + i, kernel::fnma<double>(sine, v, cosine * u));
    kernel::store<double>(y + i, kernel::fma<double>(cosine, v, sine * u));
  }
  return i;
}
/// Subtracts one multiple or, if `Two`, two multiples from a row, and computes its dot product with `with`.
template <bool Two>
inline index_t less_and_dot(index_t n, double f, double const* x, double g, double const* y, double* row,
                            double const* with, double& sum) {
  index_t i = 0;
  pack const p(f), q(g);
  pack a(0.), b(0.);
  auto const first = [&](index_t k) -> pack {
    if constexpr (Two) return kernel::fnma<double>(q, kernel::load(y + k), kernel::load(row + k));
    else return kernel::load(row + k);
  };
  auto const next = [&](index_t k) {
    pack const r = kernel::fnma<double>(p, kernel::load(x + k), first(k));
    kernel::store<double>(row + k, r);
    return r;
  };
  for (; i + 2 * width <= n; i += 2 * width) {
    a = kernel::fma<double>(next(i), kernel::load(with + i), a);
    b = kernel::fma<double>(next(i + width), kernel::load(with + i + width), b);
  }
  for (; i + width <= n; i += width) a = kernel::fma<double>(next(i), kernel::load(with + i), a);
  if (i > 0) sum = kernel::reduce_sum<double>(pack(a + b));
  return i;
}
inline index_t less_and_add(index_t n, double f, double const* x, double* row, double g, double* to) {
  index_t i = 0;
  pack const p(f), q(g);
  for (; i + width <= n; i += width) {
    pack const r = kernel::fnma<double>(p, kernel::load(x + i), kernel::load(row + i));
    kernel::store<double>(row + i, r);
    kernel::store<double>(to + i, kernel::fma<double>(q, r, kernel::load(to + i)));
  }
  return i;
}
} // namespace detail

/// Copies floating-point elements at distance `step` and converts them to double.
template <class T>
constexpr void read(index_t n, T const* from, index_t step, double* to) {
  index_t i = std::is_constant_evaluated() || step != 1 ? 0 : detail::read(n, from, to);
  for (; i < n; ++i) to[i] = static_cast<double>(from[i * step]);
}
/// Copies doubles to elements at distance `step` and rounds them to the type there.
template <class T>
constexpr void write(index_t n, double const* from, T* to, index_t step) {
  index_t i = std::is_constant_evaluated() || step != 1 ? 0 : detail::write(n, from, to);
  for (; i < n; ++i) to[i * step] = constant::narrow<T>(from[i]);
}
/// Returns the sum of x[i] y[i].
constexpr double dot(index_t n, double const* x, double const* y) {
  double s = 0;
  index_t i = std::is_constant_evaluated() ? 0 : detail::dot(n, x, y, s);
  for (; i < n; ++i) s += x[i] * y[i];
  return s;
}
/// Computes y += f x.
constexpr void add_multiple(index_t n, double f, double const* x, double* y) {
  index_t i = std::is_constant_evaluated() ? 0 : detail::add_multiple(n, f, x, y);
  for (; i < n; ++i) y[i] += f * x[i];
}
/// Computes x /= d.
constexpr void divide(index_t n, double* x, double d) {
  index_t i = std::is_constant_evaluated() ? 0 : detail::divide(n, x, d);
  for (; i < n; ++i) x[i] /= d;
}
/// Replaces x and y by c x - s y and s x + c y.
constexpr void rotate(index_t n, double c, double s, double* x, double* y) {
  index_t i = std::is_constant_evaluated() ? 0 : detail::rotate(n, c, s, x, y);
  for (; i < n; ++i) {
    double const u = x[i], v = y[i];
    x[i] = c * u - s * v, y[i] = s * u + c * v;
  }
}
/// Computes row -= f x + g y, and returns the sum of row[i] with[i].
constexpr double two_less_and_dot(index_t n, double f, double const* x, double g, double const* y, double* row,
                                  double const* with) {
  double s = 0;
  index_t i = std::is_constant_evaluated() ? 0 : detail::less_and_dot<true>(n, f, x, g, y, row, with, s);
  for (; i < n; ++i) row[i] -= f * x[i] + g * y[i], s += row[i] * with[i];
  return s;
}
/// Computes row -= f x, and returns the sum of row[i] with[i].
constexpr double less_and_dot(index_t n, double f, double const* x, double* row, double const* with) {
  double s = 0;
  index_t i = std::is_constant_evaluated() ? 0 : detail::less_and_dot<false>(n, f, x, 0, nullptr, row, with, s);
  for (; i < n; ++i) row[i] -= f * x[i], s += row[i] * with[i];
  return s;
}
/// Computes row -= f x, and then to += g row.
constexpr void less_and_add(index_t n, double f, double const* x, double* row, double g, double* to) {
  index_t i = std::is_constant_evaluated() ? 0 : detail::less_and_add(n, f, x, row, g, to);
  for (; i < n; ++i) row[i] -= f * x[i], to[i] += g * row[i];
}

/// Reflector 1 - tau v v^T (v[0] = 1) that maps x to a multiple of the first basis vector.
struct reflector {
  double beta; ///< that multiple
  double tau;  ///< 0 if there is nothing to reflect
};
/// Returns the reflector for x, and replaces all but the first element of x by those of v.
constexpr reflector reflect(index_t n, double* x) {
  double scale = 0;
  for (index_t i = 1; i < n; ++i) {
    double const a = x[i] < 0 ? -x[i] : x[i];
    scale = a > scale ? a : scale;
  }
  double const alpha = x[0];
  if (scale == 0) {
    for (index_t i = 1; i < n; ++i)
      if (x[i] != x[i]) return {x[i], x[i]}; // NaN
    return {alpha, 0};
  }
  double const own = alpha < 0 ? -alpha : alpha;
  scale = own > scale ? own : scale;
  double unit = 1; // numbers close to 0 have few bits, but their ratios many
  if (!(scale > 1e-140 && scale < 1e140)) {
    unit = scale;
    for (index_t i = 0; i < n; ++i) x[i] /= unit;
  }
  double const first = x[0], norm = kernel::sqrt(dot(n, x, x)), beta = first < 0 ? norm : -norm;
  divide(n - 1, x + 1, first - beta);
  return {beta * unit, (beta - first) / beta};
}

} // namespace varve::kernel::vectors
