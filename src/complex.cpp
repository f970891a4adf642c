// SPDX-License-Identifier: BSL-1.0
// The operators of complex numbers, and the Fourier transform, of the compiled library.
#define VARVE_DEFINES 5
#include <varve/fft.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template struct library_operator<real_part_t, 0>;
template struct library_operator<imaginary_part_t, 0>;
template struct library_operator<complex_t, 0>;
template struct library_operator<complex_map_t, 1>;
template struct library_operator<complex_pair_t, 1>;
template struct library_operator<complex_abs_t, 0>;
template struct library_operator<fft_c2c_t, 2>;
} // namespace varve::detail
