// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/amax.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/sum.hpp>

#include <limits>

/// @file
/// Logical operators on values, which count as true where they are not 0, and comparisons. All return bool and have
/// derivatives of zero.
namespace varve {

namespace detail {
inline constexpr auto truth_of = [](auto const& x) { return ne(x, 0); };
} // namespace detail

/// True where x and y are both true.
inline constexpr struct logical_and_t : composite_operator<logical_and_t> {
  static constexpr auto op_name = "logical_and";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return mul(detail::truth_of(x), detail::truth_of(y));
  }
} logical_and{};
/// True where x or y is true.
inline constexpr struct logical_or_t : composite_operator<logical_or_t> {
  static constexpr auto op_name = "logical_or";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return maximum(detail::truth_of(x), detail::truth_of(y));
  }
} logical_or{};
/// True where exactly one of x and y is true.
inline constexpr struct logical_xor_t : composite_operator<logical_xor_t> {
  static constexpr auto op_name = "logical_xor";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y) {
    return ne(detail::truth_of(x), detail::truth_of(y));
  }
} logical_xor{};
/// True where x is 0.
inline constexpr struct logical_not_t : composite_operator<logical_not_t> {
  static constexpr auto op_name = "logical_not";
  template <value X>
  static constexpr auto body(X const& x) {
    return eq(x, 0);
  }
} logical_not{};

/// True if any element along axes is true; false without elements. (For uint8 PyTorch returns uint8; here it is bool.)
inline constexpr struct any_t : composite_operator<any_t> {
  static constexpr auto op_name = "any";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    return ne(sum(detail::truth_of(x), at...), 0);
  }
} any{};
/// True if all elements along axes are true; true without elements.
inline constexpr struct all_t : composite_operator<all_t> {
  static constexpr auto op_name = "all";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    return eq(sum(eq(x, 0), at...), 0);
  }
} all{};
/// The number of nonzero elements along axes, as int64 (`torch.count_nonzero`).
inline constexpr struct count_nonzero_t : composite_operator<count_nonzero_t> {
  static constexpr auto op_name = "count_nonzero";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    return sum(detail::truth_of(x), at...);
  }
} count_nonzero{};

/// True where an element is neither infinite nor NaN; all integers are finite.
inline constexpr struct isfinite_t : composite_operator<isfinite_t> {
  static constexpr auto op_name = "isfinite";
  template <value X>
  static constexpr auto body(X const& x) {
    return choose(
        detail::is_floating_fact(x), [](auto const& v) { return lt(abs(v), std::numeric_limits<double>::infinity()); },
        [](auto const& v) { return eq(v, v); }, x);
  }
} isfinite{};
/// True where an element is infinite, of either sign.
inline constexpr struct isinf_t : composite_operator<isinf_t> {
  static constexpr auto op_name = "isinf";
  template <value X>
  static constexpr auto body(X const& x) {
    return choose(
        detail::is_floating_fact(x), [](auto const& v) { return eq(abs(v), std::numeric_limits<double>::infinity()); },
        [](auto const& v) { return ne(v, v); }, x);
  }
} isinf{};
/// True where an element is NaN.
inline constexpr struct isnan_t : composite_operator<isnan_t> {
  static constexpr auto op_name = "isnan";
  template <value X>
  static constexpr auto body(X const& x) {
    return ne(x, x);
  }
} isnan{};

/// True where |x - y| <= atol + rtol |y|, or x equals y. With `equal_nan`, NaN is close to NaN. The dtypes must be the
/// same; tensors may be complex.
inline constexpr struct isclose_t : composite_operator<isclose_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "isclose";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
    if (rtol < 0 || atol < 0) refuse::argument_is_invalid(op_name, "tolerances must not be negative");
    if (dtype_of(x) != dtype_of(y)) refuse::dtypes_differ("isclose", name(dtype_of(x)), name(dtype_of(y)));
    constexpr double infinity = std::numeric_limits<double>::infinity();
    auto const is_near = [&](auto const& u, auto const& v) {
      auto const finite = mul(lt(abs(u), infinity), lt(abs(v), infinity));
      auto const same = maximum(eq(u, v), mul(finite, le(abs(sub(u, v)), add(mul(abs(v), rtol), atol))));
      return equal_nan ? maximum(same, mul(ne(u, u), ne(v, v))) : same;
    };
    if constexpr (std::derived_from<X, tensor>)
      if (is_complex(dtype_of(x))) return is_near(x, y);
    auto const of_numbers = [&](auto const& u, auto const& v) {
      using wide = ints<static_cast<index_t>(dtype::float64)>;
      return is_near(to(u, wide{}), to(v, wide{}));
    };
    return choose(detail::is_floating_fact(x), is_near, of_numbers, x, y);
  }
} isclose{};
/// True if all elements are close, as a C++ bool (`torch.allclose`). Shapes broadcast, as in `isclose`. Traced or
/// mapped values have no such bool; write `all(isclose(x, y))` there.
inline constexpr struct allclose_t {
  template <value X, value Y>
  constexpr bool operator()(X const& x, Y const& y, double rtol = 1e-5, double atol = 1e-8,
                            bool equal_nan = false) const {
    return static_cast<bool>(all(isclose(x, y, rtol, atol, equal_nan)));
  }
} allclose{};
/// True if two tensors have the same shape, dtype and elements (`torch.equal`). NaN is not equal to itself.
template <std::derived_from<tensor> X, std::derived_from<tensor> Y>
bool equal(X const& x, Y const& y) {
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() && static_cast<bool>(all(eq(x, y)));
}

} // namespace varve
