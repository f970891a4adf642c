// SPDX-License-Identifier: BSL-1.0
// The elementwise operators of the compiled library that the umbrella header has not.
#define VARVE_DEFINES 1
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
} // namespace varve::detail
