// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/reshape.hpp>

/// @file
/// The same elements in other shapes or with reordered dimensions. The results are views where the strides allow it.
namespace varve {

/// Joins the dimensions from `start` to `end`, both included (`torch.flatten`). Rank 0 becomes one dimension of size 1.
inline constexpr struct flatten_t : composite_operator<flatten_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "flatten";
  template <value X, class A = ints<0>, class B = ints<-1>>
  static constexpr auto body(X const& x, A const& start = {}, B const& end = {}) {
    auto const joined = [](dims const& s, dims const& from, dims const& to) {
      int const a = wrap_axis(from[0], s.n), b = wrap_axis(to[0], s.n);
      if (a > b) refuse::argument_is_invalid(op_name, "the first dimension comes after the last");
      if (s.n == 0) return dims{1};
      dims r;
      extent n = 1;
      for (int k = 0; k < s.n; ++k) {
        n = k > a && k <= b ? n * s[k] : s[k];
        if (k < a || k >= b) r.push_back(n);
      }
      return r;
    };
    return detail::reshape_to(x, on_dims(joined, shape_of(x), detail::as_fact(start), detail::as_fact(end)));
  }
} flatten{};

/// Flattens all dimensions into one (`torch.ravel`).
inline constexpr struct ravel_t : composite_operator<ravel_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "ravel";
  template <value X>
  static constexpr auto body(X const& x) {
    return detail::reshape_to(x, on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(x)));
  }
} ravel{};

/// Splits a dimension into several; one of the sizes may be -1 (`torch.unflatten`).
inline constexpr struct unflatten_t : composite_operator<unflatten_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "unflatten";
  template <value X, class A, class S>
  static constexpr auto body(X const& x, A const& axis, S const& sizes) {
    auto const parted = [](dims const& s, dims const& a, dims const& parts) {
      int const k = wrap_axis(a[0], s.n);
      if (s.n == 0 || parts.n == 0)
        refuse::argument_is_invalid(op_name, "there is no dimension, or there are no sizes");
      dims const in = detail::resolve_shape(parts, dims{s[k]});
      dims r = s.sub(0, k);
      for (extent e : in) r.push_back(e);
      for (int d = k + 1; d < s.n; ++d) r.push_back(s[d]);
      return r;
    };
    return reshape(x, on_dims(parted, shape_of(x), detail::as_fact(axis), detail::as_fact(sizes)));
  }
} unflatten{};

/// Moves dimensions to other positions; the others keep their order (`torch.movedim`).
inline constexpr struct movedim_t : composite_operator<movedim_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "movedim";
  template <value X, class A, class B>
  static constexpr auto body(X const& x, A const& source, B const& destination) {
    auto const order = [](dims const& s, dims const& from, dims const& to) {
      if (from.n != to.n) refuse::argument_is_invalid(op_name, "as many destinations as sources are needed");
      dims r = s, taken, used;
      for (int k = 0; k < s.n; ++k) r[k] = -1;
      for (int k = 0; k < from.n; ++k) {
        int const a = wrap_axis(from[k], s.n), b = wrap_axis(to[k], s.n);
        if (taken.contains(a) || used.contains(b)) refuse::argument_is_invalid(op_name, "a dimension is named twice");
        taken.push_back(a), used.push_back(b);
        if (s.n) r[b] = a;
      }
      for (int k = 0, next = 0; k < s.n; ++k) {
        if (!known_equal(r[k], -1)) continue;
        while (taken.contains(next)) ++next;
        r[k] = next++;
      }
      return r;
    };
    return permute(x, on_dims(order, shape_of(x), detail::as_fact(source), detail::as_fact(destination)));
  }
} movedim{};

namespace detail {
template <int Rank>
inline constexpr auto shape_at_least = [](dims const& s) {
  if (s.n >= Rank) return s;
  dims r = s;
  while (r.n < (Rank < 2 ? Rank : 2)) r.insert(0, 1);
  if (Rank == 3 && s.n < 3) r.push_back(1);
  return r;
};
} // namespace detail
/// Reshapes a value to at least one, two or three dimensions (`torch.atleast_1d` ... `torch.atleast_3d`). Missing
/// dimensions of size 1 are added in front; `atleast_3d` adds the third at the end.
inline constexpr struct atleast_1d_t : composite_operator<atleast_1d_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "atleast_1d";
  template <value X>
  static constexpr auto body(X const& x) {
    return detail::reshape_to(x, on_dims(detail::shape_at_least<1>, shape_of(x)));
  }
} atleast_1d{};
inline constexpr struct atleast_2d_t : composite_operator<atleast_2d_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "atleast_2d";
  template <value X>
  static constexpr auto body(X const& x) {
    return detail::reshape_to(x, on_dims(detail::shape_at_least<2>, shape_of(x)));
  }
} atleast_2d{};
inline constexpr struct atleast_3d_t : composite_operator<atleast_3d_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "atleast_3d";
  template <value X>
  static constexpr auto body(X const& x) {
    return detail::reshape_to(x, on_dims(detail::shape_at_least<3>, shape_of(x)));
  }
} atleast_3d{};

} // namespace varve
