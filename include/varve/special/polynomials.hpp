// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/recurrences.hpp>
#include <varve/rule/pointwise.hpp>

/// @file
/// Orthogonal polynomials of degree n at x, elementwise in both: `legendre_polynomial_p(x, n)`. The degrees are
/// integers of any dtype; a polynomial of negative degree is 0. A polynomial takes O(n) steps; those of Chebyshev take
/// O(1) within [-1, 1]. They have no derivatives, as in PyTorch; differentiating them is an error. Integers give
/// floating-point results.
namespace varve {

/// Chebyshev polynomial T_n(x) of the first kind.
inline constexpr struct chebyshev_polynomial_t_t : promoting_operator<chebyshev_polynomial_t_t> {
  static constexpr auto op_name = "special_chebyshev_polynomial_t";
} chebyshev_polynomial_t{};
/// Chebyshev polynomial U_n(x) of the second kind.
inline constexpr struct chebyshev_polynomial_u_t : promoting_operator<chebyshev_polynomial_u_t> {
  static constexpr auto op_name = "special_chebyshev_polynomial_u";
} chebyshev_polynomial_u{};
/// Chebyshev polynomial V_n(x) of the third kind.
inline constexpr struct chebyshev_polynomial_v_t : promoting_operator<chebyshev_polynomial_v_t> {
  static constexpr auto op_name = "special_chebyshev_polynomial_v";
} chebyshev_polynomial_v{};
/// Chebyshev polynomial W_n(x) of the fourth kind.
inline constexpr struct chebyshev_polynomial_w_t : promoting_operator<chebyshev_polynomial_w_t> {
  static constexpr auto op_name = "special_chebyshev_polynomial_w";
} chebyshev_polynomial_w{};
/// Shifted Chebyshev polynomial T_n(2x - 1) of the first kind.
inline constexpr struct shifted_chebyshev_polynomial_t_t : promoting_operator<shifted_chebyshev_polynomial_t_t> {
  static constexpr auto op_name = "special_shifted_chebyshev_polynomial_t";
} shifted_chebyshev_polynomial_t{};
/// Shifted Chebyshev polynomial U_n(2x - 1) of the second kind.
inline constexpr struct shifted_chebyshev_polynomial_u_t : promoting_operator<shifted_chebyshev_polynomial_u_t> {
  static constexpr auto op_name = "special_shifted_chebyshev_polynomial_u";
} shifted_chebyshev_polynomial_u{};
/// Shifted Chebyshev polynomial V_n(2x - 1) of the third kind.
inline constexpr struct shifted_chebyshev_polynomial_v_t : promoting_operator<shifted_chebyshev_polynomial_v_t> {
  static constexpr auto op_name = "special_shifted_chebyshev_polynomial_v";
} shifted_chebyshev_polynomial_v{};
/// Shifted Chebyshev polynomial W_n(2x - 1) of the fourth kind.
inline constexpr struct shifted_chebyshev_polynomial_w_t : promoting_operator<shifted_chebyshev_polynomial_w_t> {
  static constexpr auto op_name = "special_shifted_chebyshev_polynomial_w";
} shifted_chebyshev_polynomial_w{};
/// Physicists' Hermite polynomial H_n(x).
inline constexpr struct hermite_polynomial_h_t : promoting_operator<hermite_polynomial_h_t> {
  static constexpr auto op_name = "special_hermite_polynomial_h";
} hermite_polynomial_h{};
/// Probabilists' Hermite polynomial He_n(x).
inline constexpr struct hermite_polynomial_he_t : promoting_operator<hermite_polynomial_he_t> {
  static constexpr auto op_name = "special_hermite_polynomial_he";
} hermite_polynomial_he{};
/// Laguerre polynomial L_n(x).
inline constexpr struct laguerre_polynomial_l_t : promoting_operator<laguerre_polynomial_l_t> {
  static constexpr auto op_name = "special_laguerre_polynomial_l";
} laguerre_polynomial_l{};
/// Legendre polynomial P_n(x).
inline constexpr struct legendre_polynomial_p_t : promoting_operator<legendre_polynomial_p_t> {
  static constexpr auto op_name = "special_legendre_polynomial_p";
} legendre_polynomial_p{};

namespace detail {
struct polynomial_of_degree : rule::elementwise<2, promotion::floating> {
  static constexpr bool is_slow = true;
};
} // namespace detail

template <>
struct rules<chebyshev_polynomial_t_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_t(a, n); }, x, degree);
  }
};
template <>
struct rules<chebyshev_polynomial_u_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_u(a, n); }, x, degree);
  }
};
template <>
struct rules<chebyshev_polynomial_v_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_v(a, n); }, x, degree);
  }
};
template <>
struct rules<chebyshev_polynomial_w_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_w(a, n); }, x, degree);
  }
};
template <>
struct rules<shifted_chebyshev_polynomial_t_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_t(a + a - 1, n); }, x, degree);
  }
};
template <>
struct rules<shifted_chebyshev_polynomial_u_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_u(a + a - 1, n); }, x, degree);
  }
};
template <>
struct rules<shifted_chebyshev_polynomial_v_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_v(a + a - 1, n); }, x, degree);
  }
};
template <>
struct rules<shifted_chebyshev_polynomial_w_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::chebyshev_w(a + a - 1, n); }, x, degree);
  }
};
template <>
struct rules<hermite_polynomial_h_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::hermite_h(a, n); }, x, degree);
  }
};
template <>
struct rules<hermite_polynomial_he_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::hermite_he(a, n); }, x, degree);
  }
};
template <>
struct rules<laguerre_polynomial_l_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::laguerre(a, n); }, x, degree);
  }
};
template <>
struct rules<legendre_polynomial_p_t> : detail::polynomial_of_degree {
  static VARVE_INLINE constexpr auto kernel(auto x, auto degree) {
    return kernel::polynomials::of_degree(
        []<class T>(T a, std::int64_t n) { return kernel::polynomials::legendre(a, n); }, x, degree);
  }
};

} // namespace varve
