// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/constant_math.hpp>
#include <varve/op/erf.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/randn.hpp>

/// @file
/// Random weights to start from (`torch.nn.init`), as values: `xavier_uniform({64, 32})` of tensors by this thread's
/// generator, `xavier_uniform<float, 64, 32>(g)` of arrays. Sizes are PyTorch's, {out, in, kernel...}; for weights kept
/// as {in, out}, as in `x.matmul(w)`, `fan::out` counts what is read.
namespace varve {

/// Which numbers of neighbours a `kaiming` initializer keeps the variance for: those that are read, or written.
enum class fan { in, out };

namespace detail {
/// The number of elements that one result is computed of, and into how many results one goes.
constexpr index_t fan_of(dims const& sizes, fan f) {
  if (sizes.n < 2) refuse::argument_is_invalid("init", "weights have two dimensions or more");
  index_t field = 1;
  for (int k = 2; k < sizes.n; ++k) field *= sizes[k].number();
  return sizes[f == fan::in ? 1 : 0].number() * field;
}
/// The standard deviation by Glorot and Bengio, and by He.
constexpr double xavier_deviation(dims const& sizes, double gain) {
  auto const both = static_cast<double>(fan_of(sizes, fan::in) + fan_of(sizes, fan::out));
  return both > 0 ? gain * kernel::constant::sqrt(2 / both) : 0;
}
constexpr double kaiming_deviation(dims const& sizes, fan f, double slope) {
  auto const n = static_cast<double>(fan_of(sizes, f));
  return n > 0 ? kernel::constant::sqrt(2 / ((1 + slope * slope) * n)) : 0;
}
/// Normal numbers as numbers that are uniform in [-1, 1] times `bound`.
template <class X>
constexpr auto as_uniform(X const& normal, double bound) {
  return mul(erf(mul(normal, 0.70710678118654752440)), bound);
}
inline constexpr double root_of_three = 1.7320508075688772935; // a uniform bound for a deviation of 1
} // namespace detail

/// Normal, of a variance that keeps that of values and gradients on average (`xavier_normal_`).
template <std::same_as<tensor> T = tensor>
T xavier_normal(dims const& sizes, double gain = 1, dtype type = get_default_dtype()) {
  return mul(T(randn(sizes, type)), detail::xavier_deviation(sizes, gain));
}
template <class T, index_t... D>
constexpr array<T, D...> xavier_normal(generator& g, double gain = 1) {
  return mul(randn<T, D...>(g), detail::xavier_deviation(dims{D...}, gain));
}
/// ... uniform (`xavier_uniform_`).
template <std::same_as<tensor> T = tensor>
T xavier_uniform(dims const& sizes, double gain = 1, dtype type = get_default_dtype()) {
  return detail::as_uniform(T(randn(sizes, type)), detail::root_of_three * detail::xavier_deviation(sizes, gain));
}
template <class T, index_t... D>
constexpr array<T, D...> xavier_uniform(generator& g, double gain = 1) {
  return detail::as_uniform(randn<T, D...>(g), detail::root_of_three * detail::xavier_deviation(dims{D...}, gain));
}
/// Normal, of a variance for layers before `relu`, or `leaky_relu` of that slope (`kaiming_normal_`).
template <std::same_as<tensor> T = tensor>
T kaiming_normal(dims const& sizes, fan f = fan::in, double slope = 0, dtype type = get_default_dtype()) {
  return mul(T(randn(sizes, type)), detail::kaiming_deviation(sizes, f, slope));
}
template <class T, index_t... D>
constexpr array<T, D...> kaiming_normal(generator& g, fan f = fan::in, double slope = 0) {
  return mul(randn<T, D...>(g), detail::kaiming_deviation(dims{D...}, f, slope));
}
/// ... uniform (`kaiming_uniform_`).
template <std::same_as<tensor> T = tensor>
T kaiming_uniform(dims const& sizes, fan f = fan::in, double slope = 0, dtype type = get_default_dtype()) {
  return detail::as_uniform(T(randn(sizes, type)), detail::root_of_three * detail::kaiming_deviation(sizes, f, slope));
}
template <class T, index_t... D>
constexpr array<T, D...> kaiming_uniform(generator& g, fan f = fan::in, double slope = 0) {
  return detail::as_uniform(randn<T, D...>(g), detail::root_of_three * detail::kaiming_deviation(dims{D...}, f, slope));
}

} // namespace varve
