// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of integer operators, roundings, angles and special functions.
std::span<call_row const> special_functions();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/op/all.hpp>
#include <varve/special/angles.hpp>
#include <varve/special/bessel.hpp>
#include <varve/special/error_functions.hpp>
#include <varve/special/gamma.hpp>
#include <varve/special/integers.hpp>
#include <varve/special/polynomials.hpp>
#include <varve/special/rounding.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const special_family{&special_functions};

/// Returns the quotient, rounded as the mode says.
inline tensor quotient(tensor const& x, tensor const& y, std::optional<std::string> const& mode) {
  if (!mode) return div(x, y);
  if (*mode == "floor") return floor_divide(x, y);
  if (*mode == "trunc") return trunc_divide(x, y);
  refuse::argument_is_invalid("div", "the rounding mode is None, 'trunc' or 'floor'");
}

/// Calls `polygamma` with order and value in either sequence, since PyTorch's tensor method has the value first.
inline tensor derivative_of_digamma(argument const& n, argument const& x) {
  if (n.is<tensor>() && x.is<extent>()) return derivative_of_digamma(x, n);
  return polygamma(static_cast<index_t>(detail::held<extent>(n, "int")), detail::held<tensor>(x, "Tensor"));
}

VARVE_LIBRARY std::span<call_row const> special_functions() {
  using enum call_forms;
  static call_row const rows[] = {
      {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_and_t>, both, "__and__"},
      {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_and_t>, both, "__and__"},
      {"bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_and_t>},
      {"__rand__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_and_t>},
      {"__rand__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_and_t>},
      {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_or_t>, both, "__or__"},
      {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_or_t>, both, "__or__"},
      {"bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_or_t>},
      {"__ror__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_or_t>},
      {"__ror__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_or_t>},
      {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_xor_t>, both, "__xor__"},
      {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_xor_t>, both, "__xor__"},
      {"bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_xor_t>},
      {"__rxor__.Tensor(Tensor self, Tensor other) -> Tensor", of_two_turned<bitwise_xor_t>},
      {"__rxor__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<bitwise_xor_t>},
      {"bitwise_not(Tensor self) -> Tensor", of_one<bitwise_not_t>, both},
      {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_left_shift_t>, both,
       "__lshift__"},
      {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_left_shift_t>, both,
       "__lshift__"},
      {"bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_left_shift_t>},
      {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", of_two<bitwise_right_shift_t>, both,
       "__rshift__"},
      {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", of_two<bitwise_right_shift_t>, both,
       "__rshift__"},
      {"bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<bitwise_right_shift_t>},
      {"gcd(Tensor self, Tensor other) -> Tensor", of_two<gcd_t>, both},
      {"lcm(Tensor self, Tensor other) -> Tensor", of_two<lcm_t>, both},

      {"floor(Tensor self) -> Tensor", of_one<floor_t>, both},
      {"ceil(Tensor self) -> Tensor", of_one<ceil_t>, both},
      {"trunc(Tensor self) -> Tensor", of_one<trunc_t>, both, "fix"},
      {"frac(Tensor self) -> Tensor", of_one<frac_t>, both},
      {"round.decimals(Tensor self, *, int decimals=0) -> Tensor",
       +[](tensor const& x, index_t d) -> tensor { return round(x, static_cast<int>(d)); }, both,
       "special_round special.round"},
      {"floor_divide(Tensor self, Tensor other) -> Tensor", of_two<floor_divide_t>, both, "__floordiv__"},
      {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", of_two<floor_divide_t>, in_place, "__floordiv__"},
      {"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", quotient, both, "divide"},
      {"div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", quotient, in_place, "divide"},
      {"fmod.Tensor(Tensor self, Tensor other) -> Tensor", of_two<fmod_t>, both},
      {"fmod.Scalar(Tensor self, Scalar other) -> Tensor", of_two<fmod_t>, both},
      {"remainder.Tensor(Tensor self, Tensor other) -> Tensor", of_two<remainder_t>, both, "__mod__"},
      {"remainder.Scalar(Tensor self, Scalar other) -> Tensor", of_two<remainder_t>, both, "__mod__"},
      {"remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", of_two<remainder_t>},
      {"__rmod__(Tensor self, Tensor other) -> Tensor", of_two_turned<remainder_t>},
      {"__rmod__.Scalar(Tensor self, Scalar other) -> Tensor", of_two_turned<remainder_t>},
      {"nextafter(Tensor self, Tensor other) -> Tensor", of_two<nextafter_t>, both},
      {"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
       +[](tensor const& x) -> std::tuple<tensor, tensor> { return frexp(x); }},

      {"tan(Tensor self) -> Tensor", of_one<tan_t>, both},
      {"asin(Tensor self) -> Tensor", of_one<asin_t>, both, "arcsin"},
      {"acos(Tensor self) -> Tensor", of_one<acos_t>, both, "arccos"},
      {"atan(Tensor self) -> Tensor", of_one<atan_t>, both, "arctan"},
      {"atan2(Tensor self, Tensor other) -> Tensor", of_two<atan2_t>, both, "arctan2"},
      {"sinh(Tensor self) -> Tensor", of_one<sinh_t>, both},
      {"asinh(Tensor self) -> Tensor", of_one<asinh_t>, both, "arcsinh"},
      {"atanh(Tensor self) -> Tensor", of_one<atanh_t>, both, "arctanh"},

      {"lgamma(Tensor self) -> Tensor", of_one<lgamma_t>, both, "special_gammaln special.gammaln"},
      {"digamma(Tensor self) -> Tensor", of_one<digamma_t>, both,
       "special_digamma special.digamma special_psi special.psi"},
      {"polygamma(int n, Tensor self) -> Tensor", +[](index_t n, tensor const& x) -> tensor { return polygamma(n, x); },
       out},
      {"special_polygamma(int n, Tensor self) -> Tensor",
       +[](index_t n, tensor const& x) -> tensor { return polygamma(n, x); }, out},
      {"special.polygamma(Any n, Any self) -> Tensor", derivative_of_digamma},
      {"mvlgamma(Tensor self, int p) -> Tensor", +[](tensor const& x, index_t p) -> tensor { return mvlgamma(x, p); },
       both, "special_multigammaln special.multigammaln"},
      {"igamma(Tensor self, Tensor other) -> Tensor", of_two<igamma_t>, both, "special_gammainc special.gammainc"},
      {"igammac(Tensor self, Tensor other) -> Tensor", of_two<igammac_t>, both, "special_gammaincc special.gammaincc"},
      {"special_zeta(Tensor self, Tensor other) -> Tensor", of_two<zeta_t>, out, "special.zeta"},
      {"special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", of_two<zeta_t>, out, "special.zeta"},
      {"special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", of_two<zeta_t>, out, "special.zeta"},

      {"erfc(Tensor self) -> Tensor", of_one<erfc_t>, both, "special_erfc special.erfc"},
      {"erfinv(Tensor self) -> Tensor", of_one<erfinv_t>, both, "special_erfinv special.erfinv"},
      {"special_erfcx(Tensor self) -> Tensor", of_one<erfcx_t>, out, "special.erfcx"},
      {"special_ndtri(Tensor self) -> Tensor", of_one<ndtri_t>, out, "special.ndtri"},
      {"special_log_ndtr(Tensor self) -> Tensor", of_one<log_ndtr_t>, out, "special.log_ndtr"},

      {"i0(Tensor self) -> Tensor", of_one<i0_t>, both, "special_i0 special.i0"},
      {"special_modified_bessel_i0(Tensor self) -> Tensor", of_one<i0_t>, out, "special.modified_bessel_i0"},
      {"special_modified_bessel_i1(Tensor self) -> Tensor", of_one<i1_t>, out, "special.modified_bessel_i1"},
      {"special_i0e(Tensor self) -> Tensor", of_one<i0e_t>, out, "special.i0e"},
      {"special_i1(Tensor self) -> Tensor", of_one<i1_t>, out, "special.i1"},
      {"special_i1e(Tensor self) -> Tensor", of_one<i1e_t>, out, "special.i1e"},
      {"special_modified_bessel_k0(Tensor self) -> Tensor", of_one<modified_bessel_k0_t>, out,
       "special.modified_bessel_k0"},
      {"special_modified_bessel_k1(Tensor self) -> Tensor", of_one<modified_bessel_k1_t>, out,
       "special.modified_bessel_k1"},
      {"special_scaled_modified_bessel_k0(Tensor x) -> Tensor", of_one<scaled_modified_bessel_k0_t>, out,
       "special.scaled_modified_bessel_k0"},
      {"special_scaled_modified_bessel_k1(Tensor x) -> Tensor", of_one<scaled_modified_bessel_k1_t>, out,
       "special.scaled_modified_bessel_k1"},
      {"special_bessel_j0(Tensor self) -> Tensor", of_one<bessel_j0_t>, out, "special.bessel_j0"},
      {"special_bessel_j1(Tensor self) -> Tensor", of_one<bessel_j1_t>, out, "special.bessel_j1"},
      {"special_bessel_y0(Tensor self) -> Tensor", of_one<bessel_y0_t>, out, "special.bessel_y0"},
      {"special_bessel_y1(Tensor self) -> Tensor", of_one<bessel_y1_t>, out, "special.bessel_y1"},
      {"special_spherical_bessel_j0(Tensor x) -> Tensor", of_one<spherical_bessel_j0_t>, out,
       "special.spherical_bessel_j0"},
      {"special_airy_ai(Tensor x) -> Tensor", of_one<airy_ai_t>, out, "special.airy_ai"},

      {"special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_t_t>, out,
       "special.chebyshev_polynomial_t"},
      {"special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_t_t>, out,
       "special.chebyshev_polynomial_t"},
      {"special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<chebyshev_polynomial_t_t>, out,
       "special.chebyshev_polynomial_t"},
      {"special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_u_t>, out,
       "special.chebyshev_polynomial_u"},
      {"special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_u_t>, out,
       "special.chebyshev_polynomial_u"},
      {"special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<chebyshev_polynomial_u_t>, out,
       "special.chebyshev_polynomial_u"},
      {"special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_v_t>, out,
       "special.chebyshev_polynomial_v"},
      {"special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_v_t>, out,
       "special.chebyshev_polynomial_v"},
      {"special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<chebyshev_polynomial_v_t>, out,
       "special.chebyshev_polynomial_v"},
      {"special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_w_t>, out,
       "special.chebyshev_polynomial_w"},
      {"special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<chebyshev_polynomial_w_t>, out,
       "special.chebyshev_polynomial_w"},
      {"special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<chebyshev_polynomial_w_t>, out,
       "special.chebyshev_polynomial_w"},
      {"special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", of_two<shifted_chebyshev_polynomial_t_t>,
       out, "special.shifted_chebyshev_polynomial_t"},
      {"special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_t_t>, out, "special.shifted_chebyshev_polynomial_t"},
      {"special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_t_t>, out, "special.shifted_chebyshev_polynomial_t"},
      {"special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", of_two<shifted_chebyshev_polynomial_u_t>,
       out, "special.shifted_chebyshev_polynomial_u"},
      {"special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_u_t>, out, "special.shifted_chebyshev_polynomial_u"},
      {"special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_u_t>, out, "special.shifted_chebyshev_polynomial_u"},
      {"special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", of_two<shifted_chebyshev_polynomial_v_t>,
       out, "special.shifted_chebyshev_polynomial_v"},
      {"special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_v_t>, out, "special.shifted_chebyshev_polynomial_v"},
      {"special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_v_t>, out, "special.shifted_chebyshev_polynomial_v"},
      {"special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", of_two<shifted_chebyshev_polynomial_w_t>,
       out, "special.shifted_chebyshev_polynomial_w"},
      {"special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_w_t>, out, "special.shifted_chebyshev_polynomial_w"},
      {"special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor",
       of_two<shifted_chebyshev_polynomial_w_t>, out, "special.shifted_chebyshev_polynomial_w"},
      {"special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", of_two<hermite_polynomial_h_t>, out,
       "special.hermite_polynomial_h"},
      {"special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<hermite_polynomial_h_t>, out,
       "special.hermite_polynomial_h"},
      {"special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<hermite_polynomial_h_t>, out,
       "special.hermite_polynomial_h"},
      {"special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", of_two<hermite_polynomial_he_t>, out,
       "special.hermite_polynomial_he"},
      {"special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<hermite_polynomial_he_t>, out,
       "special.hermite_polynomial_he"},
      {"special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<hermite_polynomial_he_t>, out,
       "special.hermite_polynomial_he"},
      {"special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", of_two<laguerre_polynomial_l_t>, out,
       "special.laguerre_polynomial_l"},
      {"special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<laguerre_polynomial_l_t>, out,
       "special.laguerre_polynomial_l"},
      {"special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<laguerre_polynomial_l_t>, out,
       "special.laguerre_polynomial_l"},
      {"special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", of_two<legendre_polynomial_p_t>, out,
       "special.legendre_polynomial_p"},
      {"special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor", of_two<legendre_polynomial_p_t>, out,
       "special.legendre_polynomial_p"},
      {"special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor", of_two<legendre_polynomial_p_t>, out,
       "special.legendre_polynomial_p"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
