// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/exp.hpp>
#include <varve/op/in_place.hpp>
#include <varve/random/distributions.hpp>
#include <varve/special/angles.hpp>
#include <varve/special/rounding.hpp>

/// @file
/// Operators that fill a tensor with random numbers (`Tensor.uniform_`, ...). They draw a tensor and write it with
/// `copy_`, which makes its usual checks.
namespace varve {

namespace detail {
/// Returns the dtype in which the numbers for a tensor are drawn.
constexpr dtype drawn_for(dtype t) { return is_floating(t) ? computed_in(t) : dtype::float64; }
/// Returns uniform numbers in the open interval (0, 1), whose logarithms are finite.
template <class T>
T open_uniform(dims const& sizes, dtype t) {
  return maximum(T(rand(sizes, t)), t == dtype::float64 ? 0x1p-54 : 0x1p-25);
}
template <class T, class F>
T const& filled_with(T const& x, generator_ref g, F const& f) {
  copy_(x, drawn_from(g, [&]() -> tensor { return f(x.sizes(), drawn_for(x.dtype())); }));
  return x;
}
} // namespace detail

/// Fills x with uniform numbers in [low, high) (`Tensor.uniform_`).
inline constexpr struct uniform__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double low = 0, double high = 1, generator_ref g = {}) const {
    detail::require_floating("uniform_", x.dtype());
    if (!(low <= high)) refuse::argument_is_invalid("uniform_", "the interval [low, high) must not be turned");
    return detail::filled_with(
        x, g, [&](dims const& s, dtype t) -> tensor { return add(T(mul(T(rand(s, t)), high - low)), low); });
  }
} uniform_{};
/// Fills x with normally distributed numbers (`Tensor.normal_`).
inline constexpr struct normal__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double mean = 0, double deviation = 1, generator_ref g = {}) const {
    detail::require_floating("normal_", x.dtype());
    return detail::filled_with(x, g,
                               [&](dims const& s, dtype t) -> tensor { return normal(mean, deviation, s, {}, t); });
  }
} normal_{};
/// Fills x with e^z for normally distributed z (`Tensor.log_normal_`).
inline constexpr struct log_normal__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double mean = 1, double deviation = 2, generator_ref g = {}) const {
    detail::require_floating("log_normal_", x.dtype());
    return detail::filled_with(
        x, g, [&](dims const& s, dtype t) -> tensor { return exp(T(normal(mean, deviation, s, {}, t))); });
  }
} log_normal_{};
/// Fills x with 1 with probability p, else with 0 (`Tensor.bernoulli_`).
inline constexpr struct bernoulli__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double p = 0.5, generator_ref g = {}) const {
    detail::needs_real("bernoulli_", x);
    if (!(p >= 0 && p <= 1)) refuse::argument_is_invalid("bernoulli_", "a probability is in [0, 1]");
    return detail::filled_with(x, g, [&](dims const& s, dtype) -> tensor { return lt(T(rand(s, dtype::float64)), p); });
  }
} bernoulli_{};
/// Fills x with exponentially distributed numbers (`Tensor.exponential_`).
inline constexpr struct exponential__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double rate = 1, generator_ref g = {}) const {
    detail::require_floating("exponential_", x.dtype());
    if (!(rate > 0)) refuse::argument_is_invalid("exponential_", "the rate must be positive");
    return detail::filled_with(x, g, [&](dims const& s, dtype t) -> tensor {
      return mul(T(log1p(T(neg(T(detail::open_uniform<T>(s, t)))))), -1 / rate);
    });
  }
} exponential_{};
/// Fills x with the number of trials up to and including the first success, 1, 2, ..., where p is the probability of
/// success (`Tensor.geometric_`).
inline constexpr struct geometric__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double p, generator_ref g = {}) const {
    detail::needs_real("geometric_", x);
    if (!(p > 0 && p < 1)) refuse::argument_is_invalid("geometric_", "the probability is in (0, 1)");
    return detail::filled_with(x, g, [&](dims const& s, dtype) -> tensor {
      T const trials = mul(T(log1p(T(neg(T(rand(s, dtype::float64)))))), 1 / std::log1p(-p));
      return add(T(floor(trials)), 1);
    });
  }
} geometric_{};
/// Fills x with numbers of the Cauchy distribution (`Tensor.cauchy_`).
inline constexpr struct cauchy__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, double median = 0, double width = 1, generator_ref g = {}) const {
    detail::require_floating("cauchy_", x.dtype());
    if (!(width > 0)) refuse::argument_is_invalid("cauchy_", "the width must be positive");
    return detail::filled_with(x, g, [&](dims const& s, dtype) -> tensor {
      T const turned = mul(T(sub(T(detail::open_uniform<T>(s, dtype::float64)), 0.5)), 3.14159265358979323846);
      return add(T(mul(T(tan(turned)), width)), median);
    });
  }
} cauchy_{};
/// Fills x with integers in [low, high) (`Tensor.random_`). Without a range these are all non-negative integers of the
/// dtype; for floating dtypes, those up to which all are exact: 2^53, 2^24, 2^11 and 2^8.
inline constexpr struct random__t {
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, std::int64_t low, std::int64_t high, generator_ref g = {}) const {
    return detail::filled_with(x, g, [&](dims const& s, dtype) -> tensor { return randint(low, high, s, x.dtype()); });
  }
  template <std::same_as<tensor> T>
  T const& operator()(T const& x, generator_ref g = {}) const {
    dtype const t = x.dtype();
    if (is_complex(t)) refuse::dtype_is_not_supported("random_", name(t));
    std::int64_t const most = t == dtype::bool_      ? 1
                              : t == dtype::float64  ? INT64_C(1) << 53
                              : t == dtype::float32  ? INT64_C(1) << 24
                              : t == dtype::float16  ? INT64_C(1) << 11
                              : t == dtype::bfloat16 ? INT64_C(1) << 8
                              : t == dtype::int64    ? INT64_MAX - 1
                                                     : detail::greatest_of(t);
    return (*this)(x, 0, most + 1, g);
  }
} random_{};

} // namespace varve
