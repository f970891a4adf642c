// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/erf.hpp>
#include <varve/op/sigmoid.hpp>
#include <varve/op/tanh.hpp>
#include <varve/op/where.hpp>
#include <varve/rule/one_pass.hpp>

/// @file
/// Smooth activations. They are composites, so that fusion can share common parts of the forward and backward pass.
namespace varve {

/// How `gelu` computes the standard normal cumulative distribution function: exactly, or by tanh of a cubic polynomial.
struct approximate {
  static constexpr ints<0> none{};
  static constexpr ints<1> tanh{};
};

namespace detail {
template <class A>
struct gelu_formula {
  static constexpr auto op_name = "gelu";
  static constexpr int arity = 1;
  static bool is_built_in() { return are_built_in<mul_t, add_t, sub_t, neg_t, exp_t, erf_t, tanh_t>(); }
  template <value X>
  constexpr auto operator()(X const& x) const {
    return of(x, A{});
  }
  template <value X, class B>
  static constexpr auto of(X const& x, B const& approximation) {
    return choose(
        same_fact(as_fact(approximation), approximate::tanh),
        [](auto const& v) {
          return mul(mul(v, 0.5), add(tanh(mul(add(v, mul(mul(mul(v, v), v), 0.044715)), 0x1.9884533d43651p-1)), 1));
        },                                                                                             // sqrt(2/pi)
        [](auto const& v) { return mul(mul(v, 0.5), add(erf(mul(v, 0x1.6a09e667f3bcdp-1)), 1)); }, x); // sqrt(1/2)
  }
};
struct silu_formula {
  static constexpr auto op_name = "silu";
  static constexpr int arity = 1;
  static bool is_built_in() { return are_built_in<mul_t, add_t, sub_t, sigmoid_t>(); }
  template <value X>
  constexpr auto operator()(X const& x) const {
    return mul(x, sigmoid(x));
  }
};
struct softplus_formula {
  static constexpr auto op_name = "softplus";
  static constexpr int arity = 3;
  static bool is_built_in() { return are_built_in<mul_t, div_t, gt_t, where_t, log1p_exp_t, sigmoid_t>(); }
  template <value X, value B, value T>
  constexpr auto operator()(X const& x, B const& beta, T const& threshold) const {
    auto const scaled = mul(x, beta);
    return where(gt(scaled, threshold), x, div(log1p_exp(scaled), beta));
  }
};
} // namespace detail

/// `gelu(x)`, `gelu(x, approximate::tanh)`: x times the standard normal cumulative distribution function at x. Integers
/// are refused.
inline constexpr struct gelu_t : composite_operator<gelu_t> {
  static constexpr auto op_name = "gelu";
  template <value X, class A = ints<0>>
  static constexpr auto body(X const& x, A const& approximation = {}) {
    detail::needs_floating<gelu_t>(x);
    if constexpr (detail::is_one_tensor<X> && is_ints<A>)
      if (X y = detail::whole_function<detail::gelu_formula<A>>::call(x); y.defined()) return y;
    return detail::gelu_formula<A>::of(x, approximation);
  }
} gelu{};

/// x * sigmoid(x) (also called swish). Integers are refused.
inline constexpr struct silu_t : composite_operator<silu_t> {
  static constexpr auto op_name = "silu";
  template <value X>
  static constexpr auto body(X const& x) {
    detail::needs_floating<silu_t>(x);
    if constexpr (detail::is_one_tensor<X>)
      if (X y = detail::whole_function<detail::silu_formula>::call(x); y.defined()) return y;
    return detail::silu_formula{}(x);
  }
} silu{};

/// log(1 + e^x) without overflow.
template <>
struct rules<log1p_exp_t> : rule::pointwise<1, promotion::floating> {
  static constexpr operator_text cpp{"kernel::maximum($0, $T(0)) + kernel::log1p(kernel::exp(-kernel::abs($0)))"};
  static constexpr char const* onnx = "Softplus";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) {
    return kernel::maximum(x, decltype(x)(0)) + kernel::log1p(kernel::exp(-kernel::abs(x)));
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return sigmoid(x); }
};

/// `softplus(x, beta = 1, threshold = 20)`: log(1 + e^(beta x)) / beta, and x itself where beta x exceeds the
/// threshold. Integers are refused.
inline constexpr struct softplus_t : composite_operator<softplus_t> {
  static constexpr auto op_name = "softplus";
  template <value X, number B = int, number T = int>
  static constexpr auto body(X const& x, B const& beta = 1, T const& threshold = 20) {
    detail::needs_floating<softplus_t>(x);
    if constexpr (detail::is_one_tensor<X>)
      if (X y = detail::whole_function<detail::softplus_formula>::call(x, beta, threshold); y.defined()) return y;
    return detail::softplus_formula{}(x, beta, threshold);
  }
} softplus{};

} // namespace varve
