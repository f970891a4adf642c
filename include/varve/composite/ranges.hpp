// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/create.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/nonzero.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/pow.hpp>
#include <varve/op/where.hpp>

#include <cmath>

/// @file
/// Tensors of evenly spaced numbers. (These functions are templates only so that unused ones cost nothing.)
namespace varve {

namespace detail {
/// Returns start + step * k for k below n, converted to the dtype. It computes in float64, or exactly if start and step
/// are integers.
template <class T, number A, number S>
T stepped(extent n, A start, S step, dtype type) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<S>) {
    T const k = arange(n);
    return to(T(add(T(mul(k, step)), start)), type);
  } else {
    T const k = arange(n, dtype::float64);
    return to(T(add(T(mul(k, static_cast<double>(step))), static_cast<double>(start))), type);
  }
}
} // namespace detail

/// Returns start, start + step, ... before `end` (`torch.arange`). Integer arguments yield int64, others the default
/// dtype. For an integer dtype, start and step are truncated, as are the ends of `linspace` and `logspace`. Throws
/// `value_error` for a step of 0, or one that leads away from the end.
template <number A, number B, number S = int, class T = tensor>
T arange(A start, B end, S step = 1,
         dtype type = std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<S> ? dtype::int64
                                                                                              : get_default_dtype()) {
  double const from = static_cast<double>(start), to = static_cast<double>(end), by = static_cast<double>(step);
  if (by == 0 || !std::isfinite(from) || !std::isfinite(to) || !std::isfinite(by))
    refuse::argument_is_invalid("arange", "start, end and step must be finite, and the step not 0");
  if ((by > 0) != (to >= from) && to != from) refuse::argument_is_invalid("arange", "the step leads away from the end");
  double n = std::ceil((to - from) / by);
  if (category(type) == 1 && !(std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<S>)) {
    double const first = std::trunc(from), each = std::trunc(by); // truncated, as in PyTorch
    if (each == 0) refuse::argument_is_invalid("arange", "of whole numbers the step must not be 0");
    if (type == dtype::int64) n = (std::max)(0.0, std::ceil((std::trunc(to) - first) / each));
    return detail::stepped<T>(static_cast<index_t>(n), static_cast<index_t>(first), static_cast<index_t>(each), type);
  }
  return detail::stepped<T>(static_cast<index_t>(n), start, step, type);
}

/// Returns the n x m matrix with ones on its diagonal (`torch.eye`).
template <class T = tensor>
T eye(index_t n, index_t m, dtype type = get_default_dtype()) {
  if (n < 0 || m < 0) refuse::argument_is_invalid("eye", "sizes must not be negative");
  T const rows = reshape(T(arange(n)), dims{n, 1}), columns = arange(m);
  return to(T(eq(rows, columns)), type);
}

/// Returns `steps` evenly spaced numbers from start to end, both included (`torch.linspace`). Each is computed from the
/// nearer end.
template <class T = tensor>
T linspace(double start, double end, index_t steps, dtype type = get_default_dtype()) {
  if (steps < 0) refuse::argument_is_invalid("linspace", "the number of steps must not be negative");
  if (category(type) == 1) start = std::trunc(start), end = std::trunc(end);
  double const step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  T const up = detail::stepped<T>(steps, start, step, dtype::float64);
  T const down = detail::stepped<T>(steps, end - step * static_cast<double>(steps - 1), step, dtype::float64);
  T const first = lt(T(arange(steps)), steps / 2 > 0 ? steps / 2 : index_t{1});
  return to(T(where(first, up, down)), type);
}
/// Returns `linspace` between the numbers in two tensors of rank 0. It computes in float64 and converts at the end.
template <std::same_as<tensor> T>
T linspace(T const& start, T const& end, index_t steps, dtype type = get_default_dtype()) {
  if (steps < 0) refuse::argument_is_invalid("linspace", "the number of steps must not be negative");
  if (start.dim() != 0 || end.dim() != 0)
    refuse::argument_is_invalid("linspace", "start and end are numbers, or tensors of rank 0");
  if (is_complex(start.dtype()) || is_complex(end.dtype()))
    refuse::dtype_is_not_supported("linspace", name(is_complex(start.dtype()) ? start.dtype() : end.dtype()));
  auto const exact = [&](T const& v) { // truncated for integer dtypes
    return T(to(category(type) == 1 ? T(to(v, dtype::int64)) : v, dtype::float64));
  };
  T const a = exact(start), b = exact(end), k = arange(steps, dtype::float64);
  T const step = div(T(sub(b, a)), static_cast<double>(steps > 1 ? steps - 1 : index_t{1}));
  T const up = add(T(mul(k, step)), a), down = sub(b, T(mul(T(sub(static_cast<double>(steps - 1), k)), step)));
  T const first = lt(T(arange(steps)), steps / 2 > 0 ? steps / 2 : index_t{1});
  return to(T(where(first, up, down)), type);
}
/// Returns base to the power of the numbers of `linspace` (`torch.logspace`).
template <class T = tensor>
T logspace(double start, double end, index_t steps, double base = 10, dtype type = get_default_dtype()) {
  if (category(type) == 1) start = std::trunc(start), end = std::trunc(end);
  return to(T(pow(base, T(linspace(start, end, steps, dtype::float64)))), type);
}
/// Returns `logspace` between the numbers in two tensors of rank 0.
template <std::same_as<tensor> T>
T logspace(T const& start, T const& end, index_t steps, double base = 10, dtype type = get_default_dtype()) {
  auto const exact = [&](T const& v) { return category(type) == 1 ? T(to(v, dtype::int64)) : v; };
  return to(T(pow(base, linspace(exact(start), exact(end), steps, dtype::float64))), type);
}

/// Returns the indices of the elements on and below a diagonal of a rows x columns matrix (`torch.tril_indices`). The
/// result is a matrix [2, n] of row and column indices, int64 by default. With `above`, elements on and above the
/// diagonal.
template <class T = tensor>
T tril_indices(index_t rows, index_t columns, index_t offset = 0, bool above = false, dtype type = dtype::int64) {
  if (rows < 0 || columns < 0) refuse::argument_is_invalid("tril_indices", "sizes must not be negative");
  index_t n = 0;
  for (index_t i = 0; i < rows; ++i) { // the number of elements in a row
    index_t const edge = i + offset + (above ? 0 : 1), inside = edge < 0 ? 0 : edge > columns ? columns : edge;
    n += above ? columns - inside : inside;
  }
  T const row = reshape(T(arange(rows)), dims{rows, 1}), column = arange(columns);
  T const d = sub(column, row);
  T const there = above ? T(ge(d, offset)) : T(le(d, offset));
  return to(T(clone(T(transpose(T(nonzero_static(there, n)))))), type);
}
/// Returns the indices of the elements on and above a diagonal of a matrix (`torch.triu_indices`).
template <class T = tensor>
T triu_indices(index_t rows, index_t columns, index_t offset = 0, dtype type = dtype::int64) {
  return tril_indices<T>(rows, columns, offset, true, type);
}

} // namespace varve
