// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/complex/parts.hpp>
#include <varve/special/angles.hpp>

#include <complex>

/// @file
/// Functions of complex numbers that cannot be computed for real and imaginary parts separately: products, quotients,
/// powers, elementary functions with C's branch cuts, and the absolute value. One operator carries all functions of one
/// number, another all functions of two.
namespace varve {

namespace detail {
enum class complex_pair : std::uint8_t { mul, div, pow };

/// Multiplies without C's special cases for infinite parts, as PyTorch does.
template <class T>
std::complex<T> product(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// Returns exp(z) - 1 without cancellation for small z.
template <class T>
std::complex<T> expm1(std::complex<T> z) {
  T const e = std::expm1(z.real()), half = std::sin(z.imag() / 2), c = std::cos(z.imag());
  return {e * c - 2 * half * half, (e + 1) * std::sin(z.imag())};
}
/// Returns log(1 + z). For small z the squared magnitude is computed as 1 + x (2 + x) + y^2.
template <class T>
std::complex<T> log1p(std::complex<T> z) {
  T const x = z.real(), y = z.imag();
  if (std::abs(x) > T(0.5) || std::abs(y) > T(0.5)) return std::log(T(1) + z);
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}
/// Returns a^b. Integer powers are computed by multiplication, so that squares are exact where possible.
template <class T>
std::complex<T> power(std::complex<T> a, std::complex<T> b) {
  if (b == std::complex<T>(0)) return 1;
  T const n = b.real();
  if (b.imag() == 0 && n == std::trunc(n) && std::abs(n) <= 64) {
    std::complex<T> r = 1, square = a;
    for (int rest = std::abs(static_cast<int>(n)); rest; rest /= 2) {
      if (rest % 2) r = product(r, square);
      if (rest > 1) square = product(square, square);
    }
    return n < 0 ? T(1) / r : r;
  }
  if (a == std::complex<T>(0) && n > 0) return 0;
  return std::exp(product(b, std::log(a)));
}
template <class T>
std::complex<T> value_of(complex_rule f, std::complex<T> z) {
  switch (f) {
  case complex_rule::exp:
    return std::exp(z);
  case complex_rule::expm1:
    return detail::expm1(z);
  case complex_rule::log:
    return std::log(z);
  case complex_rule::log1p:
    return detail::log1p(z);
  case complex_rule::sqrt:
    return std::sqrt(z);
  case complex_rule::reciprocal:
    return T(1) / z;
  case complex_rule::sin:
    return std::sin(z);
  case complex_rule::cos:
    return std::cos(z);
  case complex_rule::tan:
    return std::tan(z);
  case complex_rule::asin:
    return std::asin(z);
  case complex_rule::acos:
    return std::acos(z);
  case complex_rule::atan:
    return std::atan(z);
  case complex_rule::sinh:
    return std::sinh(z);
  case complex_rule::cosh:
    return std::cosh(z);
  case complex_rule::tanh:
    return std::tanh(z);
  case complex_rule::asinh:
    return std::asinh(z);
  case complex_rule::acosh:
    return std::acosh(z);
  default:
    return std::atanh(z);
  }
}
template <class T>
std::complex<T> value_of(complex_pair f, std::complex<T> a, std::complex<T> b) {
  return f == complex_pair::mul ? product(a, b) : f == complex_pair::div ? a / b : power(a, b);
}
template <class T>
void each_of_one(complex_rule f, index_t n, void* to, void const* from) {
  auto* const y = static_cast<std::complex<T>*>(to);
  auto const* const x = static_cast<std::complex<T> const*>(from);
  for (index_t k = 0; k < n; ++k) y[k] = value_of<T>(f, x[k]);
}
template <class T>
void each_of_two(complex_pair f, index_t n, void* to, void const* first, void const* second) {
  auto* const y = static_cast<std::complex<T>*>(to);
  auto const *const a = static_cast<std::complex<T> const*>(first), *const b =
                                                                        static_cast<std::complex<T> const*>(second);
  for (index_t k = 0; k < n; ++k) y[k] = value_of<T>(f, a[k], b[k]);
}
template <class T>
void each_size(index_t n, void* to, void const* from) {
  auto* const y = static_cast<T*>(to);
  auto const* const x = static_cast<std::complex<T> const*>(from);
  for (index_t k = 0; k < n; ++k) y[k] = std::abs(x[k]);
}
inline tensor in_a_row(tensor const& x) { return x.is_contiguous() ? x : contiguous_copy(x); }
} // namespace detail

/// A function of one complex number. Attribute {which} selects it.
inline constexpr struct complex_map_t {
  static constexpr auto op_name = "complex_map";
  template <std::same_as<tensor> X>
  X operator()(X const& z, complex_rule f) const {
    return bind<complex_map_t>(dims{static_cast<index_t>(f)})(z);
  }
} complex_map_op{};
/// A function of two complex numbers of the same shape and dtype. Attribute {which} selects it.
inline constexpr struct complex_pair_t {
  static constexpr auto op_name = "complex_pair";
  template <std::same_as<tensor> X>
  X operator()(X const& a, X const& b, detail::complex_pair f) const {
    return bind<complex_pair_t>(dims{static_cast<index_t>(f)})(a, b);
  }
} complex_pair_op{};
/// The absolute value of complex numbers; its derivative at 0 is 0.
inline constexpr struct complex_abs_t {
  static constexpr auto op_name = "complex_abs";
  template <std::same_as<tensor> X>
  X operator()(X const& z) const {
    return bound<complex_abs_t>{}(z);
  }
} complex_abs{};

namespace detail {
/// Refuses an attribute {which} that selects no function, as a call by name may pass.
constexpr void require_which(char const* op, attributes const& at, index_t greatest) {
  if (at[0].n != 1 || at[0][0] < 0 || at[0][0] > greatest) refuse::argument_is_invalid(op, "there is no such function");
}
/// Returns f'(z), composed of operators; y is f(z).
template <std::size_t, std::same_as<tensor> T>
T derivative_of(complex_rule f, T const& y, T const& z) {
  auto const one = [](T const& v, double minus) { return T(add(mul(mul(v, v), minus), 1)); }; // 1 + minus v^2
  switch (f) {
  case complex_rule::exp:
    return y;
  case complex_rule::expm1:
    return add(y, 1);
  case complex_rule::log:
    return reciprocal(z);
  case complex_rule::log1p:
    return reciprocal(T(add(z, 1)));
  case complex_rule::sqrt:
    return mul(reciprocal(y), 0.5);
  case complex_rule::reciprocal:
    return neg(mul(y, y));
  case complex_rule::sin:
    return cos(z);
  case complex_rule::cos:
    return neg(sin(z));
  case complex_rule::tan:
    return one(y, 1);
  case complex_rule::asin:
    return reciprocal(sqrt(one(z, -1)));
  case complex_rule::acos:
    return neg(reciprocal(sqrt(one(z, -1))));
  case complex_rule::atan:
    return reciprocal(one(z, 1));
  case complex_rule::sinh:
    return complex_map_op(z, complex_rule::cosh);
  case complex_rule::cosh:
    return complex_map_op(z, complex_rule::sinh);
  case complex_rule::tanh:
    return one(y, -1);
  case complex_rule::asinh:
    return reciprocal(sqrt(one(z, 1)));
  case complex_rule::acosh:
    return reciprocal(mul(sqrt(sub(z, 1)), sqrt(add(z, 1))));
  default:
    return reciprocal(one(z, -1));
  }
}
/// Returns 1 where a flag is true, 0 elsewhere, in a complex dtype.
template <std::same_as<tensor> T>
T as_factor(T const& flag, dtype t) {
  return to(flag, t);
}
/// Returns the derivative of a function of two numbers with respect to operand I; y is its value. Where the exponent
/// (for the base) or the base (for the exponent) is 0, the derivative of a power is 0.
template <std::size_t I, std::same_as<tensor> T>
T derivative_of(complex_pair f, T const& y, T const& a, T const& b) {
  if (f == complex_pair::mul) return I == 0 ? b : a;
  if (f == complex_pair::div) return I == 0 ? T(reciprocal(b)) : T(neg(div(div(a, b), b))); // y may be written into
  if constexpr (I == 0) {
    T const none = eq(b, 0);
    return where(none, T(constant_zeros(b)), T(mul(b, pow(a, sub(b, 1)))));
  } else {
    T const none = eq(a, 0);
    return where(none, T(constant_zeros(y)), T(mul(y, log(T(where(none, T(constant_ones(a)), a))))));
  }
}
/// Base of the rules of operators whose attribute {which} selects a function. Derivatives multiply by a complex
/// derivative for each operand.
template <class Which>
struct named_function {
  static constexpr operator_reach reach = operator_reach::element;
  static constexpr bool takes_complex = true;
  static constexpr op_kind kind = op_kind::contraction;
  template <std::size_t I, class Op, std::same_as<tensor> T, std::same_as<T>... X>
  static T jvp(arg_t<I>, Op const& op, T const& d, T const& y, X const&... x) {
    return mul(derivative_of<I>(which(op), y, x...), d);
  }
  template <std::size_t I, class Op, std::same_as<tensor> T, std::same_as<T>... X>
  static T vjp(arg_t<I>, Op const& op, T const& g, T const& y, X const&... x) {
    return mul(g, conj(derivative_of<I>(which(op), y, x...)));
  }

private:
  template <class Op>
  static Which which(Op const& op) {
    return static_cast<Which>(to_dims(op.a)[0].number());
  }
};
/// Returns z / |z|, and 0 at 0, where its derivative is 0, too.
template <std::same_as<tensor> T>
T direction(T const& z, T const& size) {
  T const zero = eq(size, 0);
  return where(zero, 0, T(div(z, T(where(zero, 1, size)))));
}
} // namespace detail

template <>
struct rules<complex_map_t> : detail::named_function<complex_rule> {
  static constexpr auto schema = "(Tensor self, int which) -> Tensor";
  static constexpr int arity = 1;
  /// The operand or result that `derivative_of` reads.
  static constexpr saved_values saved_by(attributes const& at) {
    using enum complex_rule;
    auto const f = static_cast<complex_rule>(at[0][0].number());
    bool const of_result = f == exp || f == expm1 || f == sqrt || f == reciprocal || f == tan || f == tanh;
    return {{of_result ? saved_values::result : saved_values::operand(0)}};
  }
  static constexpr attributes checked(attributes const& at, meta const*) {
    return detail::require_which("complex_map", at, static_cast<index_t>(complex_rule::atanh)), at;
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    detail::needs_complex<complex_map_t>(in[0]);
    return in[0];
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& z) {
    auto const f = static_cast<complex_rule>(at[0][0].number());
    T const x = detail::in_a_row(z);
    T y = tensor::empty(x.sizes(), x.dtype());
    if (x.dtype() == dtype::complex64) detail::each_of_one<float>(f, x.numel(), y.raw(), x.raw());
    else detail::each_of_one<double>(f, x.numel(), y.raw(), x.raw());
    if (z.is_number()) y.mark_number();
    return y;
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};
template <>
struct rules<complex_pair_t> : detail::named_function<detail::complex_pair> {
  static constexpr auto schema = "(Tensor self, Tensor other, int which) -> Tensor";
  static constexpr int arity = 2;
  /// The operands and results that `derivative_of` reads.
  static constexpr saved_values saved_by(attributes const& at) {
    auto const f = static_cast<detail::complex_pair>(at[0][0].number());
    constexpr auto a = saved_values::operand(0), b = saved_values::operand(1), y = saved_values::result;
    if (f == detail::complex_pair::mul) return {{b, a}};
    if (f == detail::complex_pair::div) return {{b, a | b}};
    return {{a | b, a | y}};
  }
  static constexpr attributes checked(attributes const& at, meta const*) {
    return detail::require_which("complex_pair", at, static_cast<index_t>(detail::complex_pair::pow)), at;
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    for (int k = 0; k < 2; ++k) detail::needs_complex<complex_pair_t>(in[k]);
    if (in[0].type != in[1].type) refuse::dtypes_differ("complex_pair", name(in[0].type), name(in[1].type));
    if (!(in[0].sizes == in[1].sizes)) refuse::shapes_do_not_match("complex_pair", in[0].sizes, in[1].sizes);
    return {in[0].type, in[0].sizes, in[0].number && in[1].number};
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& first, T const& second) {
    meta const in[] = {meta_of(first), meta_of(second)};
    meta const m = shape(at, in, 2);
    auto const f = static_cast<detail::complex_pair>(at[0][0].number());
    T const a = detail::in_a_row(first), b = detail::in_a_row(second);
    T y = tensor::empty(m.sizes, m.type);
    if (m.type == dtype::complex64) detail::each_of_two<float>(f, y.numel(), y.raw(), a.raw(), b.raw());
    else detail::each_of_two<double>(f, y.numel(), y.raw(), a.raw(), b.raw());
    if (m.number) y.mark_number();
    return y;
  }
  template <class Op, class N, class A, class B>
  static constexpr auto batch(Op const& op, N const& n, A const& a, B const& b) {
    return op(materialize(a, n), materialize(b, n));
  }
};
template <>
struct rules<complex_abs_t> {
  static constexpr operator_reach reach = operator_reach::element;
  static constexpr bool takes_complex = true;
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr int arity = 1;
  static constexpr saved_values saved{{saved_values::operand(0)}}; // the result may be written into
  static constexpr meta shape(attributes const&, meta const* in, int) {
    detail::needs_complex<complex_abs_t>(in[0]);
    return {part_type(in[0].type), in[0].sizes, in[0].number};
  }
  template <std::same_as<tensor> T>
  static T make(attributes const&, T const& z) {
    T const x = detail::in_a_row(z);
    T y = tensor::empty(x.sizes(), part_type(x.dtype()));
    if (x.dtype() == dtype::complex64) detail::each_size<float>(x.numel(), y.raw(), x.raw());
    else detail::each_size<double>(x.numel(), y.raw(), x.raw());
    if (z.is_number()) y.mark_number();
    return y;
  }
  template <class Op, std::same_as<tensor> T>
  static T jvp(arg_t<0>, Op const& size, T const& d, T const&, T const& z) {
    return real_part(T(mul(conj(detail::direction(z, T(size(z)))), d)));
  }
  template <class Op, std::same_as<tensor> T>
  static T vjp(arg_t<0>, Op const& size, T const& g, T const&, T const& z) {
    return mul(detail::direction(z, T(size(z))), g);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

/// Returns the angle in the complex plane, from -pi to pi (`torch.angle`). For real numbers it is 0 or pi, and NaN for
/// NaN.
template <std::same_as<tensor> T>
T angle(T const& z) {
  if (is_complex(z.dtype())) return atan2(imaginary_part(z), real_part(z));
  T const x = has_derivatives(z.dtype()) ? z : T(to(z, default_dtype));
  return where(ne(x, x), x, T(mul(to(T(lt(x, 0)), x.dtype()), 3.14159265358979323846)));
}
/// Returns z / |z|, and 0 at 0; for real numbers the sign (`torch.sgn`).
template <std::same_as<tensor> T>
T sgn(T const& z) {
  return is_complex(z.dtype()) ? detail::direction(z, T(complex_abs(z))) : T(sign(z));
}

} // namespace varve
