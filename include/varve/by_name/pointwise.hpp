// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of elementwise operators, their in-place forms, and conversions.
std::span<call_row const> pointwise();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/arithmetic.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const pointwise_family{&pointwise};

template <dtype T>
tensor converted_to(tensor const& x) {
  return to(x, T);
}
/// Returns `alpha * y`, as `add` and `sub` need it.
inline tensor times_alpha(char const* op, tensor const& x, tensor const& y, tensor const& alpha) {
  bool const floats = has_derivatives(x.dtype()) || has_derivatives(y.dtype());
  if (is_floating(alpha.dtype()) && !floats)
    refuse::argument_is_invalid(op, "of integers alpha must not be a floating number");
  if (alpha.dtype() == dtype::bool_ && (x.dtype() != dtype::bool_ || y.dtype() != dtype::bool_))
    refuse::argument_is_invalid(op, "alpha may be bool for bool operands only");
  if (alpha.item<double>() == 1) return y;
  return mul(y, alpha);
}
inline tensor clamped(tensor const& x, tensor const& low, tensor const& high) {
  if (!low.defined() && !high.defined())
    refuse::argument_is_invalid("clamp", "at least one of min and max must be given");
  if (!low.defined()) return clamp(x, none, high);
  return high.defined() ? tensor(clamp(x, low, high)) : tensor(clamp(x, low));
}

/// Returns truth values as uint8 if `x` is uint8, as PyTorch does for compatibility.
inline tensor in_uint8_as(tensor const& x, tensor const& y) {
  return x.dtype() == dtype::uint8 ? tensor(to(y, dtype::uint8)) : y;
}
inline tensor filled_where(tensor const& x, tensor const& mask, tensor const& v) {
  if (mask.dtype() != dtype::bool_) refuse::dtype_is_not_supported("masked_fill (a bool mask):", name(mask.dtype()));
  if (v.dim() != 0) refuse::argument_is_invalid("masked_fill", "the value has one element, of rank 0");
  if (is_complex(v.dtype()) && !is_complex(x.dtype()))
    refuse::dtype_does_not_fit("masked_fill", name(v.dtype()), name(x.dtype()));
  return where(mask, as_element("masked_fill", x, v), x);
}
inline tensor without_nan(tensor const& x, std::optional<double> nan, std::optional<double> high,
                          std::optional<double> low) {
  double const n = nan.value_or(0);
  if (high && low) return nan_to_num(x, n, *high, *low);
  if (high) return nan_to_num(x, n, *high);
  return low ? tensor(nan_to_num(x, n, none, *low)) : tensor(nan_to_num(x, n));
}
/// Returns a power with a plain number as exponent, with the results and errors of `pow(x, n)` in C++.
inline tensor to_power(tensor const& x, tensor const& n) {
  bool const whole = !has_derivatives(x.dtype()) && !has_derivatives(n.dtype());
  return whole ? pow(x, n.item<std::int64_t>()) : pow(x, n);
}
/// Returns a selection; if it is of two floating numbers, the result has the default dtype.
inline tensor one_of_numbers(tensor const& mask, tensor const& a, tensor const& b) {
  tensor const r = where(mask, a, b);
  return is_floating(r.dtype()) ? tensor(to(r, get_default_dtype())) : r;
}
template <class Op>
tensor with_value(tensor const& x, tensor const& a, tensor const& b, tensor const& v) {
  return Op{}(x, a, b, v);
}

VARVE_LIBRARY std::span<call_row const> pointwise() {
  using enum call_forms;
  static call_row const rows[] = {
      {"neg(Tensor self) -> Tensor", of_one<neg_t>, both, "negative"},
      {"abs(Tensor self) -> Tensor", of_one<abs_t>, both, "absolute"},
      {"sign(Tensor self) -> Tensor", of_one<sign_t>, both},
      {"exp(Tensor self) -> Tensor", of_one<exp_t>, both},
      {"log(Tensor self) -> Tensor", of_one<log_t>, both},
      {"expm1(Tensor self) -> Tensor", of_one<expm1_t>, both, "special_expm1 special.expm1"},
      {"log1p(Tensor self) -> Tensor", of_one<log1p_t>, both, "special_log1p special.log1p"},
      {"sqrt(Tensor self) -> Tensor", of_one<sqrt_t>, both},
      {"rsqrt(Tensor self) -> Tensor", of_one<rsqrt_t>, both},
      {"reciprocal(Tensor self) -> Tensor", of_one<reciprocal_t>, both},
      {"sin(Tensor self) -> Tensor", of_one<sin_t>, both},
      {"cos(Tensor self) -> Tensor", of_one<cos_t>, both},
      {"tanh(Tensor self) -> Tensor", of_one<tanh_t>, both, "nn.functional.tanh"},
      {"sigmoid(Tensor self) -> Tensor", of_one<sigmoid_t>, both, "nn.functional.sigmoid special_expit special.expit"},
      {"erf(Tensor self) -> Tensor", of_one<erf_t>, both, "special_erf special.erf"},
      {"relu(Tensor self) -> Tensor", of_one<relu_t>, both, "nn.functional.relu"},
      {"square(Tensor self) -> Tensor", of_one<square_t>, both},

      {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor { return add(x, times_alpha("add", x, y, a)); },
       both, "__add__"},
      {"add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor { return add(x, times_alpha("add", x, y, a)); },
       in_place, "__add__ __radd__"},
      {"__radd__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<add_t>},
      {"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor { return sub(x, times_alpha("sub", x, y, a)); },
       both, "subtract __sub__"},
      {"sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor { return sub(x, times_alpha("sub", x, y, a)); },
       in_place, "subtract __sub__"},
      {"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor {
         return sub(y, times_alpha("rsub", y, x, a));
       },
       "__rsub__"},
      {"rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& a) -> tensor {
         return sub(y, times_alpha("rsub", y, x, a));
       },
       "__rsub__"},
      {"mul.Tensor(Tensor self, Tensor other) -> Tensor", of_two<mul_t>, both, "multiply __mul__"},
      {"mul.Scalar(Tensor self, Scalar other) -> Tensor", of_two<mul_t>, in_place, "multiply __mul__ __rmul__"},
      {"__rmul__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<mul_t>},
      {"div.Tensor(Tensor self, Tensor other) -> Tensor", of_two<div_t>, both,
       "divide true_divide __div__ __truediv__"},
      {"div.Scalar(Tensor self, Scalar other) -> Tensor", of_two<div_t>, in_place,
       "divide true_divide __div__ __truediv__"},
      {"__rdiv__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<div_t>, "__rtruediv__"},
      {"__rdiv__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<div_t>, "__rtruediv__"},
      {"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", of_two<pow_t>, both, "__pow__"},
      {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", to_power, both, "__pow__"},
      {"pow.Scalar(Scalar self, Tensor exponent) -> Tensor", of_two<pow_t>, out},
      {"__rpow__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<pow_t>},
      {"__rpow__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<pow_t>},
      {"maximum(Tensor self, Tensor other) -> Tensor", of_two<maximum_t>, out},
      {"max.other(Tensor self, Tensor other) -> Tensor", of_two<maximum_t>, out},
      {"minimum(Tensor self, Tensor other) -> Tensor", of_two<minimum_t>, out},
      {"min.other(Tensor self, Tensor other) -> Tensor", of_two<minimum_t>, out},

      {"lt.Tensor(Tensor self, Tensor other) -> Tensor", of_two<lt_t>, both, "less"},
      {"lt.Scalar(Tensor self, Scalar other) -> Tensor", of_two<lt_t>, both, "less"},
      {"le.Tensor(Tensor self, Tensor other) -> Tensor", of_two<le_t>, both, "less_equal"},
      {"le.Scalar(Tensor self, Scalar other) -> Tensor", of_two<le_t>, both, "less_equal"},
      {"gt.Tensor(Tensor self, Tensor other) -> Tensor", of_two<gt_t>, both, "greater"},
      {"gt.Scalar(Tensor self, Scalar other) -> Tensor", of_two<gt_t>, both, "greater"},
      {"ge.Tensor(Tensor self, Tensor other) -> Tensor", of_two<ge_t>, both, "greater_equal"},
      {"ge.Scalar(Tensor self, Scalar other) -> Tensor", of_two<ge_t>, both, "greater_equal"},
      {"eq.Tensor(Tensor self, Tensor other) -> Tensor", of_two<eq_t>, both},
      {"eq.Scalar(Tensor self, Scalar other) -> Tensor", of_two<eq_t>, both},
      {"ne.Tensor(Tensor self, Tensor other) -> Tensor", of_two<ne_t>, both, "not_equal"},
      {"ne.Scalar(Tensor self, Scalar other) -> Tensor", of_two<ne_t>, both, "not_equal"},
      {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", of_three<where_t>, out},
      {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", of_three<where_t>},
      {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", of_three<where_t>},
      {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", one_of_numbers},
      {"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamped, both, "clip"},
      {"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamped, both, "clip"},
      {"clamp_min(Tensor self, Scalar min) -> Tensor",
       +[](tensor const& x, tensor const& low) -> tensor { return clamp(x, low); }, both},
      {"clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
       +[](tensor const& x, tensor const& low) -> tensor { return clamp(x, low); }, both},
      {"clamp_max(Tensor self, Scalar max) -> Tensor",
       +[](tensor const& x, tensor const& high) -> tensor { return clamp(x, none, high); }, both},
      {"clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
       +[](tensor const& x, tensor const& high) -> tensor { return clamp(x, none, high); }, both},

      {"logical_and(Tensor self, Tensor other) -> Tensor", of_two<logical_and_t>, both},
      {"logical_or(Tensor self, Tensor other) -> Tensor", of_two<logical_or_t>, both},
      {"logical_xor(Tensor self, Tensor other) -> Tensor", of_two<logical_xor_t>, both},
      {"logical_not(Tensor self) -> Tensor", of_one<logical_not_t>, both},
      {"isfinite(Tensor self) -> Tensor", of_one<isfinite_t>},
      {"isinf(Tensor self) -> Tensor", of_one<isinf_t>},
      {"isnan(Tensor self) -> Tensor", of_one<isnan_t>},
      {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
       +[](tensor const& x, tensor const& y, double r, double a, bool nan) -> tensor {
         return isclose(x, y, r, a, nan);
       }},
      {"allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
       +[](tensor const& x, tensor const& y, double r, double a, bool nan) {
         return tensor(all(isclose(x, y, r, a, nan))).item<bool>();
       }},
      {"equal(Tensor self, Tensor other) -> bool",
       +[](tensor const& x, tensor const& y) { return x.sizes() == y.sizes() && tensor(all(eq(x, y))).item<bool>(); }},
      {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
       +[](tensor const& x, tensor const& a, tensor const& b, tensor const& v) {
         return with_number(v, [&](auto n) -> tensor { return addcmul(x, a, b, n); });
       },
       both},
      {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", with_value<addcdiv_t>,
       both},
      {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", of_three<lerp_t>, both},
      {"lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", of_three<lerp_t>, both},
      {"fmax(Tensor self, Tensor other) -> Tensor", of_two<fmax_t>, out},
      {"fmin(Tensor self, Tensor other) -> Tensor", of_two<fmin_t>, out},
      {"sinc(Tensor self) -> Tensor", of_one<sinc_t>, both, "special_sinc special.sinc"},
      {"cosh(Tensor self) -> Tensor", of_one<cosh_t>, both},
      {"acosh(Tensor self) -> Tensor", of_one<acosh_t>, both, "arccosh"},
      {"exp2(Tensor self) -> Tensor", of_one<exp2_t>, both, "special_exp2 special.exp2"},
      {"log2(Tensor self) -> Tensor", of_one<log2_t>, both},
      {"log10(Tensor self) -> Tensor", of_one<log10_t>, both},
      {"logaddexp(Tensor self, Tensor other) -> Tensor", of_two<logaddexp_t>, out},
      {"logaddexp2(Tensor self, Tensor other) -> Tensor", of_two<logaddexp2_t>, out},
      {"hypot(Tensor self, Tensor other) -> Tensor", of_two<hypot_t>, both},
      {"ldexp.Tensor(Tensor self, Tensor other) -> Tensor", of_two<ldexp_t>, both},
      {"float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", of_two<float_power_t>, out},
      {"float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", of_two<float_power_t>, out},
      {"float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", of_two<float_power_t>, out},
      {"xlogy.Tensor(Tensor self, Tensor other) -> Tensor", of_two<xlogy_t>, both, "special_xlogy special.xlogy"},
      {"xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", of_two<xlogy_t>, out, "special_xlogy special.xlogy"},
      {"xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", of_two<xlogy_t>, both, "special_xlogy special.xlogy"},
      {"special_xlog1py(Tensor self, Tensor other) -> Tensor", of_two<xlog1py_t>, out, "special.xlog1py"},
      {"special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", of_two<xlog1py_t>, out, "special.xlog1py"},
      {"special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", of_two<xlog1py_t>, out, "special.xlog1py"},
      {"heaviside(Tensor self, Tensor values) -> Tensor", of_two<heaviside_t>, both},
      {"logit(Tensor self, float? eps=None) -> Tensor",
       +[](tensor const& x, std::optional<double> eps) -> tensor {
         return eps ? tensor(logit(x, *eps)) : tensor(logit(x));
       },
       both, "special_logit special.logit"},
      {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", without_nan, both},
      {"special_entr(Tensor self) -> Tensor", of_one<entr_t>, out, "special.entr"},
      {"special_ndtr(Tensor self) -> Tensor", of_one<ndtr_t>, out, "special.ndtr"},
      {"fill.Scalar(Tensor self, Scalar value) -> Tensor",
       +[](tensor const& x, tensor const& v) -> tensor { return add(zeros_like(x), as_element("fill", x, v)); }},
      {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", filled_where, in_place},
      {"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", filled_where, in_place},

      {"copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
       +[](tensor const& x, tensor const& y, bool) { return copy_(x, y); }},
      {"fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
       +[](tensor const& x, tensor const& v) { return copy_(x, as_element("fill_", x, v)); }},
      {"fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
       +[](tensor const& x, tensor const& v) {
         if (v.dim() != 0) refuse::argument_is_invalid("fill_", "the value has one element, of rank 0");
         return copy_(x, v);
       }},
      {"zero_(Tensor(a!) self) -> Tensor(a!)", +[](tensor const& x) { return zero_(x); }},
      {"set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
       +[](tensor const& x, tensor const& y) { return set_(x, y); }},

      {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       +[](tensor const& x, dtype t, bool, bool copy) -> tensor {
         tensor const y = to(x, t);
         return copy && t == x.dtype() ? tensor(clone(y)) : y;
       }},
      {"to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       +[](tensor const& x, tensor const& o, bool, bool copy) -> tensor {
         tensor const y = to(x, o.dtype());
         return copy && o.dtype() == x.dtype() ? tensor(clone(y)) : y;
       }},
      {"type_as(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& x, tensor const& o) -> tensor { return to(x, o.dtype()); }},
      {"float(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::float32>},
      {"double(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::float64>},
      {"int(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::int32>},
      {"long(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::int64>},
      {"bool(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::bool_>},
      {"half(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::float16>},
      {"bfloat16(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::bfloat16>},
      {"char(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::int8>},
      {"short(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::int16>},
      {"byte(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", converted_to<dtype::uint8>},
      {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", of_one<clone_t>},
      {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
       of_one<contiguous_t>},
      {"detach(Tensor(a) self) -> Tensor(a)", of_one<detach_t>},
  };
  return rows;
}
} // namespace varve::by_name
#endif
