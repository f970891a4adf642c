// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/narrow.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/expm1.hpp>
#include <varve/op/gelu.hpp>
#include <varve/op/softmax.hpp>

/// @file
/// Activations of `torch.nn.functional`, elementwise except `glu` and `softmin`. Those that multiply by a floating
/// number refuse integers.
namespace varve {

/// x where it is positive, `negative_slope` times x elsewhere.
inline constexpr struct leaky_relu_t : composite_operator<leaky_relu_t> {
  static constexpr auto op_name = "leaky_relu";
  template <value X, number S = double>
  static constexpr auto body(X const& x, S const& negative_slope = 0.01) {
    detail::needs_floating<leaky_relu_t>(x);
    return where(gt(x, 0), x, mul(x, negative_slope));
  }
} leaky_relu{};

/// `leaky_relu` with learned slopes: one for all, or one for each channel. Channels are axis 1, or axis 0 of a vector.
inline constexpr struct prelu_t : composite_operator<prelu_t> {
  static constexpr auto op_name = "prelu";
  template <value X, value W>
  static constexpr auto body(X const& x, W const& weight) {
    auto const channels = [](dims const& w, dims const& s) {
      dims r;
      if (w.n > 1 || (numel(w) != 1 && (s.n == 0 || numel(w) != s[s.n > 1])))
        refuse::shapes_do_not_match(op_name, s, w);
      if (numel(w) == 1) return dims{};
      for (int k = 0; k < s.n; ++k) r.push_back(k == (s.n > 1) ? s[k] : extent(1));
      return r;
    };
    auto const slopes = reshape(weight, on_dims(channels, shape_of(weight), shape_of(x)));
    auto const positive = gt(x, 0);
    return where(positive, x, mul(slopes, where(positive, 0, x))); // avoids infinities, whose product with 0 is NaN
  }
} prelu{};

/// `scale * x` where x is positive, `scale * alpha * (e^(x input_scale) - 1)` elsewhere.
inline constexpr struct elu_t : composite_operator<elu_t> {
  static constexpr auto op_name = "elu";
  template <value X, number A = double, number S = double, number I = double>
  static constexpr auto body(X const& x, A const& alpha = 1.0, S const& scale = 1.0, I const& input_scale = 1.0) {
    detail::needs_floating<elu_t>(x);
    auto const below = expm1(mul(clamp(x, none, 0), input_scale)); // avoids infinities, whose product with 0 is NaN
    return where(gt(x, 0), mul(x, scale), mul(below, alpha * scale));
  }
} elu{};

/// x where it is positive, `alpha * (e^(x / alpha) - 1)` elsewhere.
inline constexpr struct celu_t : composite_operator<celu_t> {
  static constexpr auto op_name = "celu";
  template <value X, number A = double>
  static constexpr auto body(X const& x, A const& alpha = 1.0) {
    if (alpha == 0) refuse::argument_is_invalid(op_name, "alpha must not be 0");
    return elu(x, alpha, 1.0, 1.0 / alpha);
  }
} celu{};

/// `elu` with the constants that preserve mean and variance.
inline constexpr struct selu_t : composite_operator<selu_t> {
  static constexpr auto op_name = "selu";
  template <value X>
  static constexpr auto body(X const& x) {
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
  }
} selu{};

/// x limited to [min, max]. The derivative is 0 already at the bounds. For integers the bounds are truncated.
inline constexpr struct hardtanh_t : composite_operator<hardtanh_t> {
  static constexpr auto op_name = "hardtanh";
  template <value X, number Lo = int, number Hi = int>
  static constexpr auto body(X const& x, Lo const& min = -1, Hi const& max = 1) {
    dtype const t = dtype_of(x);
    auto const low = static_cast<double>(min), high = static_cast<double>(max);
    if (t == dtype::bool_) refuse::dtype_is_not_supported(op_name, name(t));
    if (low > high) refuse::argument_is_invalid(op_name, "min must not be greater than max");
    if (t == dtype::uint8 && (low < 0 || high < 0))
      refuse::argument_is_invalid(op_name, "the bounds of uint8 must not be negative");
    auto const limited = [](auto const& v, auto const& lo, auto const& hi) {
      return where(le(v, lo), lo, where(ge(v, hi), hi, v));
    };
    return detail::with_number_in_dtype_of(x, min, [&](auto const& v, auto const& lo) {
      return detail::with_number_in_dtype_of(v, max, [&](auto const& u, auto const& hi) { return limited(u, lo, hi); });
    });
  }
} hardtanh{};

/// x limited to [0, 6].
inline constexpr struct relu6_t : composite_operator<relu6_t> {
  static constexpr auto op_name = "relu6";
  template <value X>
  static constexpr auto body(X const& x) {
    return hardtanh(x, 0, 6);
  }
} relu6{};

/// relu6(x + 3) / 6.
inline constexpr struct hardsigmoid_t : composite_operator<hardsigmoid_t> {
  static constexpr auto op_name = "hardsigmoid";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<hardsigmoid_t>(x);
    return div(relu6(add(x, 3)), 6);
  }
} hardsigmoid{};

/// x * hardsigmoid(x).
inline constexpr struct hardswish_t : composite_operator<hardswish_t> {
  static constexpr auto op_name = "hardswish";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<hardswish_t>(x);
    return div(mul(x, relu6(add(x, 3))), 6);
  }
} hardswish{};

/// x, or 0 where x is in [-lambd, lambd].
inline constexpr struct hardshrink_t : composite_operator<hardshrink_t> {
  static constexpr auto op_name = "hardshrink";
  template <value X, number L = double>
  static constexpr auto body(X const& x, L const& lambd = 0.5) {
    detail::needs_floating<hardshrink_t>(x);
    return where(le(abs(x), lambd), 0, x);
  }
} hardshrink{};

/// x moved towards 0 by `lambd`, which must not be negative; 0 where x is in [-lambd, lambd].
inline constexpr struct softshrink_t : composite_operator<softshrink_t> {
  static constexpr auto op_name = "softshrink";
  template <value X, number L = double>
  static constexpr auto body(X const& x, L const& lambd = 0.5) {
    detail::needs_floating<softshrink_t>(x);
    if (!(lambd >= 0)) refuse::argument_is_invalid(op_name, "lambd must not be negative");
    return where(gt(x, lambd), sub(x, lambd), where(lt(x, -lambd), add(x, lambd), mul(x, 0)));
  }
} softshrink{};

/// x / (1 + |x|).
inline constexpr struct softsign_t : composite_operator<softsign_t> {
  static constexpr auto op_name = "softsign";
  template <value X>
  static constexpr auto body(X const& x) {
    return div(x, add(abs(x), 1));
  }
} softsign{};

/// x - tanh(x).
inline constexpr struct tanhshrink_t : composite_operator<tanhshrink_t> {
  static constexpr auto op_name = "tanhshrink";
  template <value X>
  static constexpr auto body(X const& x) {
    return sub(x, tanh(x));
  }
} tanhshrink{};

/// x where it exceeds `threshold`, `value` elsewhere. For integers both are truncated.
inline constexpr struct threshold_t : composite_operator<threshold_t> {
  static constexpr auto op_name = "threshold";
  template <value X, number T, number V>
  static constexpr auto body(X const& x, T const& threshold, V const& value) {
    return detail::with_number_in_dtype_of(x, threshold, [&](auto const& v, auto const& least) {
      return detail::with_number_in_dtype_of(v, value, [&](auto const& u, auto const& other) {
        return where(le(u, least), detail::within_range_of(op_name, u, other), u);
      });
    });
  }
} threshold{};

/// x tanh(softplus(x)).
inline constexpr struct mish_t : composite_operator<mish_t> {
  static constexpr auto op_name = "mish";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<mish_t>(x);
    return mul(x, tanh(log1p_exp(x)));
  }
} mish{};

/// log(sigmoid(x)) without overflow.
inline constexpr struct logsigmoid_t : composite_operator<logsigmoid_t> {
  static constexpr auto op_name = "log_sigmoid";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<logsigmoid_t>(x);
    return neg(log1p_exp(neg(x)));
  }
} logsigmoid{};

/// The first half of an axis times the sigmoid of the second half. The axis must have an even size.
inline constexpr struct glu_t : composite_operator<glu_t> {
  static constexpr auto op_name = "glu";
  template <value X, class A = ints<-1>>
  static constexpr auto body(X const& x, A const& axis = {}) {
    detail::needs_floating<glu_t>(x);
    auto const half = on_dims(
        [](dims const& s, dims const& a) {
          if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis");
          extent const n = s[wrap_axis(a[0], s.n)];
          if (n % 2 != 0) refuse::argument_is_invalid(op_name, "the axis must have an even size");
          return dims{n / 2};
        },
        shape_of(x), detail::as_fact(axis));
    return mul(narrow(x, axis, ints<0>{}, half), sigmoid(narrow(x, axis, half, half)));
  }
} glu{};

/// `softmax` of -x.
inline constexpr struct softmin_t : composite_operator<softmin_t> {
  static constexpr auto op_name = "softmin";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    return softmax(neg(x), axis);
  }
} softmin{};

} // namespace varve
