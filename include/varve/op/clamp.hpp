// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

namespace varve {

/// `clamp(x, min, max)`: x limited to [min, max]; either bound may be `none`. NaN stays; max wins where min > max. A
/// bound beyond the range of an integer dtype counts as the end of the range. The derivative passes inside and at the
/// bounds (torch.clamp).
inline constexpr struct clamp_t : composite_operator<clamp_t> {
  static constexpr auto op_name = "clamp";
  template <value X, class Lo, class Hi = none_t>
  static constexpr auto body(X const& x, Lo const& low, Hi const& high = {}) {
    static_assert(!(is_none<Lo> && is_none<Hi>), "varve: clamp needs at least one of min and max");
    auto raise = [](auto const& v, auto const& lo) {
      return where(lt(v, lo), detail::within_range_of(op_name, v, lo), v);
    };
    auto lower = [](auto const& v, auto const& hi) {
      return where(gt(v, hi), detail::within_range_of(op_name, v, hi), v);
    };
    if constexpr (is_none<Lo>) return lower(x, high);
    else if constexpr (is_none<Hi>) return raise(x, low);
    else return lower(raise(x, low), high);
  }
} clamp{};

} // namespace varve
