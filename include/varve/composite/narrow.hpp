// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/slice.hpp>

namespace varve {

/// `length` elements of an axis from `start` on (`torch.narrow`). A negative start counts from the end. The result is a
/// view. Throws `index_error` if the range exceeds the axis.
inline constexpr struct narrow_t : composite_operator<narrow_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "narrow";
  template <value X, class A, class S, class N>
  static constexpr auto body(X const& x, A const& axis, S const& start, N const& length) {
    auto const range = [](dims const& s, dims const& a, dims const& from, dims const& count) {
      if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis");
      extent const n = s[wrap_axis(a[0], s.n)], first = from[0] < 0 ? from[0] + n : from[0];
      if (first < 0 || first > n) refuse::index_out_of_range(op_name, from[0], n);
      if (count[0] < 0 || first + count[0] > n) refuse::index_out_of_range(op_name, first + count[0], n);
      return dims{wrap_axis(a[0], s.n), first, first + count[0], 1};
    };
    return bind<slice_t>(
        on_dims(range, shape_of(x), detail::as_fact(axis), detail::as_fact(start), detail::as_fact(length)))(x);
  }
} narrow{};

} // namespace varve
