// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/softmax.hpp>
#include <varve/random/distributions.hpp>

/// @file
/// Random dropping of elements during training (`torch.nn.functional.dropout`, ...). If `training` is false, functions
/// return the value itself. Derivatives pass through the kept elements.
namespace varve {

namespace detail {
/// Returns a mask of a shape: each element is 1 with probability 1 - p, otherwise 0.
template <class T>
T kept_by_chance(char const* op, T const& x, dims const& sizes, double p, generator_ref g) {
  if (!(p >= 0 && p <= 1)) refuse::argument_is_invalid(op, "the probability to drop is in [0, 1]");
  require_floating(op, x.dtype());
  return drawn_from(g, [&]() -> T { return to(T(ge(T(rand(sizes, dtype::float64)), p)), x.dtype()); }, op);
}
/// Returns the shape that has one element for each channel of [batch, channels, ...].
inline dims one_per_channel(char const* op, dims s) {
  if (s.n < 2) refuse::argument_is_invalid(op, "a value of [batch, channels, ...] is expected");
  for (int k = 2; k < s.n; ++k) s[k] = 1;
  return s;
}
template <class T>
T dropped(char const* op, T const& x, dims const& sizes, double p, generator_ref g) {
  T const kept = kept_by_chance(op, x, sizes, p, g);
  return mul(x, T(mul(kept, p < 1 ? 1 / (1 - p) : 0.0)));
}
/// Replaces dropped elements by the saturation value of `selu`, and scales so that mean and variance are preserved.
template <class T>
T alpha_dropped(char const* op, T const& x, dims const& sizes, double p, generator_ref g) {
  constexpr double saturated = -1.7580993408473766;
  T const kept = kept_by_chance(op, x, sizes, p, g);
  if (p == 1) return mul(x, kept);
  double const a = 1 / std::sqrt((1 - p) * (1 + p * saturated * saturated)), b = -a * saturated * p;
  return add(T(mul(T(mul(x, kept)), a)), T(add(T(mul(T(sub(1, kept)), a * saturated)), b)));
}
} // namespace detail

/// Sets elements to 0 with probability p and divides the others by 1 - p.
template <std::same_as<tensor> T>
T dropout(T const& x, double p = 0.5, bool training = true, generator_ref g = {}) {
  return training ? detail::dropped("dropout", x, x.sizes(), p, g) : x;
}
/// Sets whole channels of [batch, channels, ...] to 0 with probability p (`dropout1d`, `dropout2d`, `dropout3d`).
template <std::same_as<tensor> T>
T feature_dropout(T const& x, double p = 0.5, bool training = true, generator_ref g = {}) {
  return training ? detail::dropped("feature_dropout", x, detail::one_per_channel("feature_dropout", x.sizes()), p, g)
                  : x;
}
/// Sets elements to the saturation value of `selu` with probability p, preserving mean and variance
/// (`torch.nn.functional.alpha_dropout`).
template <std::same_as<tensor> T>
T alpha_dropout(T const& x, double p = 0.5, bool training = true, generator_ref g = {}) {
  detail::needs_real("alpha_dropout", x);
  return training ? detail::alpha_dropped("alpha_dropout", x, x.sizes(), p, g) : x;
}
template <std::same_as<tensor> T>
T feature_alpha_dropout(T const& x, double p = 0.5, bool training = true, generator_ref g = {}) {
  constexpr auto op = "feature_alpha_dropout";
  detail::needs_real(op, x);
  return training ? detail::alpha_dropped(op, x, detail::one_per_channel(op, x.sizes()), p, g) : x;
}
/// Draws one category by logits, softened by a temperature so that the result is differentiable
/// (`torch.nn.functional.gumbel_softmax`).
template <std::same_as<tensor> T>
T gumbel_softmax(T const& logits, double temperature = 1, index_t axis = -1, generator_ref g = {}) {
  detail::require_floating("gumbel_softmax", logits.dtype());
  if (!(temperature > 0)) refuse::argument_is_invalid("gumbel_softmax", "the temperature must be positive");
  T const u = detail::drawn_from(
      g, [&]() -> T { return maximum(T(rand(logits.sizes(), logits.dtype())), 0x1p-25); }, "gumbel_softmax");
  T const gumbel = neg(T(log(T(neg(T(log(u)))))));
  return softmax(T(mul(T(add(logits, gumbel)), 1 / temperature)), dims{axis});
}

} // namespace varve
