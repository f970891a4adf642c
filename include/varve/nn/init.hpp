// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/constant_math.hpp>
#include <varve/op/erf.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/randn.hpp>

/// @file
/// Random initial weights (`torch.nn.init`), returned as values: `xavier_uniform({64, 32})` makes a tensor with this
/// thread's generator, `xavier_uniform<float, 64, 32>(g)` an array. Sizes are PyTorch's {out, in, kernel...}. For
/// weights stored as {in, out}, as in `x.matmul(w)`, `fan::out` counts the inputs.
namespace varve {

/// Which number of connections a `kaiming` initializer scales by: the inputs of a result (`in`), or the results that an
/// input contributes to (`out`).
enum class fan { in, out };

namespace detail {
/// Returns the number of inputs of one result, or the number of results that one input contributes to.
constexpr index_t fan_of(dims const& sizes, fan f) {
  if (sizes.n < 2) refuse::argument_is_invalid("init", "weights have two dimensions or more");
  index_t field = 1;
  for (int k = 2; k < sizes.n; ++k) field *= sizes[k].number();
  return sizes[f == fan::in ? 1 : 0].number() * field;
}
/// Returns the standard deviation by Glorot and Bengio; `kaiming_deviation` returns that by He et al.
constexpr double xavier_deviation(dims const& sizes, double gain) {
  auto const both = static_cast<double>(fan_of(sizes, fan::in) + fan_of(sizes, fan::out));
  return both > 0 ? gain * kernel::constant::sqrt(2 / both) : 0;
}
constexpr double kaiming_deviation(dims const& sizes, fan f, double slope) {
  auto const n = static_cast<double>(fan_of(sizes, f));
  return n > 0 ? kernel::constant::sqrt(2 / ((1 + slope * slope) * n)) : 0;
}
/// Transforms standard normal numbers to uniform numbers in [-1, 1] times `bound`.
template <class X>
constexpr auto as_uniform(X const& normal, double bound) {
  return mul(erf(mul(normal, 0.70710678118654752440)), bound);
}
inline constexpr double root_of_three = 1.7320508075688772935; // the uniform bound for a standard deviation of 1
} // namespace detail

/// Returns normal weights that on average preserve the variance of values and gradients (`xavier_normal_`).
template <std::same_as<tensor> T = tensor>
T xavier_normal(dims const& sizes, double gain = 1, dtype type = get_default_dtype()) {
  return mul(T(randn(sizes, type)), detail::xavier_deviation(sizes, gain));
}
template <class T, index_t... D>
constexpr array<T, D...> xavier_normal(generator& g, double gain = 1) {
  return mul(randn<T, D...>(g), detail::xavier_deviation(dims{D...}, gain));
}
/// Returns uniform weights that on average preserve the variance of values and gradients (`xavier_uniform_`).
template <std::same_as<tensor> T = tensor>
T xavier_uniform(dims const& sizes, double gain = 1, dtype type = get_default_dtype()) {
  return detail::as_uniform(T(randn(sizes, type)), detail::root_of_three * detail::xavier_deviation(sizes, gain));
}
template <class T, index_t... D>
constexpr array<T, D...> xavier_uniform(generator& g, double gain = 1) {
  return detail::as_uniform(randn<T, D...>(g), detail::root_of_three * detail::xavier_deviation(dims{D...}, gain));
}
/// Returns normal weights for layers before `relu`, or before `leaky_relu` with the given slope (`kaiming_normal_`).
template <std::same_as<tensor> T = tensor>
T kaiming_normal(dims const& sizes, fan f = fan::in, double slope = 0, dtype type = get_default_dtype()) {
  return mul(T(randn(sizes, type)), detail::kaiming_deviation(sizes, f, slope));
}
template <class T, index_t... D>
constexpr array<T, D...> kaiming_normal(generator& g, fan f = fan::in, double slope = 0) {
  return mul(randn<T, D...>(g), detail::kaiming_deviation(dims{D...}, f, slope));
}
/// Returns uniform weights for layers before `relu`, or before `leaky_relu` with the given slope (`kaiming_uniform_`).
template <std::same_as<tensor> T = tensor>
T kaiming_uniform(dims const& sizes, fan f = fan::in, double slope = 0, dtype type = get_default_dtype()) {
  return detail::as_uniform(T(randn(sizes, type)), detail::root_of_three * detail::kaiming_deviation(sizes, f, slope));
}
template <class T, index_t... D>
constexpr array<T, D...> kaiming_uniform(generator& g, fan f = fan::in, double slope = 0) {
  return detail::as_uniform(randn<T, D...>(g), detail::root_of_three * detail::kaiming_deviation(dims{D...}, f, slope));
}

} // namespace varve
