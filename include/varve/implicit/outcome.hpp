// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/op/where.hpp>
#include <varve/trace/trace_layer.hpp>

#include <cstdint>
#include <limits>
#include <string>

/// @file
/// What a solver does when it ends without a solution. It throws `convergence_error` if the outcome can be read: on
/// numbers, arrays and tensors in memory. Inside of `vmap`, and in programs that are traced, the outcome is data. There
/// the elements of a solution that was not found are NaN.
namespace varve::implicit {

/// A solver of `varve::implicit` ended without a solution. The text names the solver, the number of its steps and the
/// residual. Raise the number of steps, loosen the tolerance, or start closer to the solution.
struct convergence_error : error {
  using error::error;
};

namespace detail {
[[noreturn]] VARVE_COLD inline void no_solution_was_found(char const* solver, double steps, double residual) {
  refuse::with<convergence_error>(("varve: implicit::" + std::string(solver) + " found no solution in " +
                                   std::to_string(static_cast<std::int64_t>(steps)) + " steps; what is left is " +
                                   std::to_string(residual))
                                      .c_str());
}
/// True if the elements of a tensor are in memory, and no transform or trace depends on them.
inline bool is_readable(tensor const& t) {
  return t.has_data() && !t.is_wrapped() && !t.object() && !trace_layer::innermost();
}
/// Returns a solution `y` for which `ok` holds. Otherwise it throws, or returns NaN, as the top of this file says.
template <class Ok, class Y, class K, class E>
constexpr auto accepted(char const* solver, Ok const& ok, Y const& y, K const& steps, E const& residual) {
  if constexpr (std::is_same_v<Ok, bool>) {
    if (!ok) no_solution_was_found(solver, static_cast<double>(steps), static_cast<double>(residual));
    return y;
  } else {
    if constexpr (std::is_same_v<Ok, tensor>)
      if (is_readable(ok)) {
        if (ok.item() == 0) no_solution_was_found(solver, steps.item(), residual.item());
        return y;
      }
    return where(ok, y, std::numeric_limits<double>::quiet_NaN());
  }
}

/// Returns the distance between 1 and the next number of a dtype.
constexpr double rounding_of(dtype t) {
  return t == dtype::float64 ? 2.3e-16 : t == dtype::float32 ? 1.2e-7 : t == dtype::float16 ? 9.8e-4 : 7.9e-3;
}
/// Returns the greatest number of a dtype.
constexpr double largest_of(dtype t) {
  return t == dtype::float64   ? (std::numeric_limits<double>::max)()
         : t == dtype::float32 ? static_cast<double>((std::numeric_limits<float>::max)())
         : t == dtype::float16 ? 65504
                               : 3.3895313892515355e38;
}
/// Returns the least number of a dtype that has all its digits.
constexpr double least_of(dtype t) {
  return t == dtype::float64 ? (std::numeric_limits<double>::min)() : t == dtype::float16 ? 6.2e-5 : 1.2e-38;
}
/// Returns a user's tolerance, or, for 0, the given power of the rounding of a dtype.
constexpr double tolerance_or(double given, dtype t, double power) {
  return given > 0 ? given : kernel::constant::pow(rounding_of(t), power);
}
} // namespace detail

} // namespace varve::implicit
