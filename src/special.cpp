// SPDX-License-Identifier: BSL-1.0
// The elementwise operators of the compiled library that the umbrella header has not.
#define VARVE_DEFINES 5
#include <varve/special.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template struct library_operator<bitwise_and_t, 0>;
template struct library_operator<bitwise_or_t, 0>;
template struct library_operator<bitwise_xor_t, 0>;
template struct library_operator<bitwise_not_t, 0>;
template struct library_operator<bitwise_left_shift_t, 0>;
template struct library_operator<bitwise_right_shift_t, 0>;
template struct library_operator<gcd_t, 0>;
template struct library_operator<lcm_t, 0>;
template struct library_operator<floor_t, 0>;
template struct library_operator<ceil_t, 0>;
template struct library_operator<trunc_t, 0>;
template struct library_operator<round_half_even_t, 0>;
template struct library_operator<floor_divide_t, 0>;
template struct library_operator<fmod_t, 0>;
template struct library_operator<remainder_t, 0>;
template struct library_operator<nextafter_t, 0>;
template struct library_operator<binary_exponent_t, 0>;
template struct library_operator<tan_t, 0>;
template struct library_operator<asin_t, 0>;
template struct library_operator<acos_t, 0>;
template struct library_operator<atan_t, 0>;
template struct library_operator<atan2_t, 0>;
template struct library_operator<lgamma_t, 0>;
template struct library_operator<digamma_t, 0>;
template struct library_operator<zeta_t, 0>;
template struct library_operator<igamma_t, 0>;
template struct library_operator<igammac_t, 0>;
template struct library_operator<erfc_t, 0>;
template struct library_operator<erfcx_t, 0>;
template struct library_operator<erfinv_t, 0>;
template struct library_operator<ndtri_t, 0>;
template struct library_operator<log_ndtr_t, 0>;
template struct library_operator<i0_t, 0>;
template struct library_operator<i1_t, 0>;
template struct library_operator<i0e_t, 0>;
template struct library_operator<i1e_t, 0>;
template struct library_operator<modified_bessel_k0_t, 0>;
template struct library_operator<modified_bessel_k1_t, 0>;
template struct library_operator<scaled_modified_bessel_k0_t, 0>;
template struct library_operator<scaled_modified_bessel_k1_t, 0>;
template struct library_operator<bessel_j0_t, 0>;
template struct library_operator<bessel_j1_t, 0>;
template struct library_operator<bessel_y0_t, 0>;
template struct library_operator<bessel_y1_t, 0>;
template struct library_operator<spherical_bessel_j0_t, 0>;
template struct library_operator<airy_ai_t, 0>;
template struct library_operator<chebyshev_polynomial_t_t, 0>;
template struct library_operator<chebyshev_polynomial_u_t, 0>;
template struct library_operator<chebyshev_polynomial_v_t, 0>;
template struct library_operator<chebyshev_polynomial_w_t, 0>;
template struct library_operator<shifted_chebyshev_polynomial_t_t, 0>;
template struct library_operator<shifted_chebyshev_polynomial_u_t, 0>;
template struct library_operator<shifted_chebyshev_polynomial_v_t, 0>;
template struct library_operator<shifted_chebyshev_polynomial_w_t, 0>;
template struct library_operator<hermite_polynomial_h_t, 0>;
template struct library_operator<hermite_polynomial_he_t, 0>;
template struct library_operator<laguerre_polynomial_l_t, 0>;
template struct library_operator<legendre_polynomial_p_t, 0>;
} // namespace varve::detail
