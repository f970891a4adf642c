// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/nn/pooling.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/mul.hpp>

#include <vector>

/// @file
/// Resizing of images (`torch.nn.functional.interpolate`), one axis after the other: each step selects elements or adds
/// weighted selections.
namespace varve {

/// How `interpolate` computes elements between others.
enum class interpolation : unsigned char { nearest, nearest_exact, linear, cubic, area };

namespace detail {
/// The positions of the elements of a new axis on an old one of `size` elements.
struct resampling {
  index_t size;
  double scale;
  bool corners;
  constexpr resampling(index_t n, index_t m, bool align_corners, double factor)
      : size(n), scale(factor > 0 ? 1 / factor : static_cast<double>(n) / static_cast<double>(m)),
        corners(align_corners) {
    if (corners) scale = m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0;
  }
  template <value K>
  constexpr auto place(K const& k) const {
    auto const at = to(k, ints<static_cast<index_t>(dtype::float64)>{});
    double const shift = corners ? 0 : 0.5 * scale - 0.5;
    return add(mul(at, scale), shift);
  }
  /// Returns the nearest elements, computed in float32 whatever the dtype, as in PyTorch.
  template <value K>
  constexpr auto nearest(K const& k, bool exact) const {
    auto const at = to(k, ints<static_cast<index_t>(dtype::float32)>{});
    auto const place = mul(add(at, exact ? 0.5f : 0.0f), static_cast<float>(scale));
    return minimum(to(place, ints<static_cast<index_t>(dtype::int64)>{}), size - 1);
  }
};
/// Returns Keys' cubic convolution kernel with a = -3/4, as a function of the distance.
template <value D>
constexpr auto cubic_weight(D const& distance) {
  constexpr double a = -0.75;
  auto const d = abs(distance);
  auto const inner = add(mul(mul(sub(mul(d, a + 2), a + 3), d), d), 1);
  auto const outer = sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
  return where(le(d, 1), inner, where(lt(d, 2), outer, 0));
}
/// The shape of the weights along an axis: a vector followed by dimensions of size 1 for the later axes.
inline constexpr auto behind_axis = [](dims const& s, dims const& axis) {
  dims r{s[static_cast<int>(axis[0])]};
  for (int k = static_cast<int>(axis[0]) + 1; k < s.n; ++k) r.push_back(1);
  return r;
};
template <value X, class A, value K, value W>
constexpr auto neighbour_share(X const& x, A const& axis, K const& places, W const& weights) {
  auto const chosen = index_select(x, axis, places);
  return mul(chosen, reshape(to(weights, type_fact(x)), on_dims(behind_axis, shape_of(chosen), axis)));
}
/// Interpolates linearly between two neighbours at the positions `at` along an axis of `size` elements. It reads only
/// these neighbours, so that infinities and NaN elsewhere have no effect.
template <value X, class A, value P>
constexpr auto linearly_between(X const& x, A const& axis, P const& at, index_t size) {
  using whole = ints<static_cast<index_t>(dtype::int64)>;
  auto const inside = clamp(at, 0);
  auto const first = minimum(to(inside, whole{}), size - 1);
  auto const rest = clamp(sub(inside, first), 0, 1);
  return add(neighbour_share(x, axis, first, sub(1, rest)),
             neighbour_share(x, axis, minimum(add(first, 1), size - 1), rest));
}
/// Interpolates between four neighbours by a cubic. Beyond the ends the outer elements are repeated.
template <value X, class A, value P>
constexpr auto cubically_between(X const& x, A const& axis, P const& at, index_t size) {
  using whole = ints<static_cast<index_t>(dtype::int64)>;
  auto const first = sub(to(add(at, size), whole{}), size); // the floor, for numbers above -size
  auto const rest = sub(at, first);
  auto const share = [&](index_t j) {
    return neighbour_share(x, axis, clamp(add(first, j), 0, size - 1), cubic_weight(sub(rest, j)));
  };
  return add(add(share(-1), share(0)), add(share(1), share(2)));
}
inline constexpr auto resampled_axis = [](dims const& s, dims const& k) { return dims{s[static_cast<int>(k[0]) + 2]}; };
template <int A, value X, class S>
constexpr auto resampled(X const& x, S const& sizes, interpolation how, bool corners, double const* factors) {
  constexpr ints<A> k{};
  auto const more = [&](auto const& v) {
    auto const have = on_dims(resampled_axis, shape_of(v), k);
    auto const want = on_dims([](dims const& s, dims const& a) { return dims{s[static_cast<int>(a[0])]}; }, sizes, k);
    index_t const n = to_dims(have)[0], m = to_dims(want)[0];
    resampling const r(n, m, corners, factors ? factors[A] : 0);
    auto const next = [&] {
      auto const at = r.place(counted(want, v));
      return how == interpolation::linear ? linearly_between(v, ints<A + 2>{}, at, n)
                                          : cubically_between(v, ints<A + 2>{}, at, n);
    };
    auto const chosen = [&] {
      return index_select(v, ints<A + 2>{}, r.nearest(counted(want, v), how == interpolation::nearest_exact));
    };
    bool const selects = how == interpolation::nearest || how == interpolation::nearest_exact;
    auto const y = selects ? contiguous(chosen()) : contiguous(next());
    return resampled<A + 1>(y, sizes, how, corners, factors);
  };
  if constexpr (A == 3) return x;
  else
    return choose(
        same_fact(on_dims([](dims const& s, dims const& a) { return dims{a[0] < s.n}; }, sizes, k), ints<1>{}), more,
        identity, x);
}
/// The dtype in which sums of elements are computed.
inline constexpr auto type_of_sums = [](dims const& type) {
  return dims{static_cast<index_t>(computed_in(static_cast<dtype>(index_t(type[0]))))};
};
inline constexpr auto require_image = [](dims const& s, dims const& sizes) {
  if (s.n < 3 || s.n > 5 || sizes.n != s.n - 2)
    refuse::argument_is_invalid("interpolate", "a size for each of one to three spatial dimensions is expected");
  for (int a = 0; a < sizes.n; ++a)
    if (sizes[a] < 1 || s[a + 2] < 1) refuse::argument_is_invalid("interpolate", "sizes must be positive");
  return dims{sizes.n};
};
} // namespace detail

/// `interpolate(x, sizes, how, align_corners = false, factors = {})`: resizes `x` [n, channels, ...] to other spatial
/// sizes. If `factors` are given, the scale factors that the sizes came from, they determine the positions of elements.
/// With `align_corners` the outermost elements of both grids coincide (linear and cubic only).
inline constexpr struct interpolate_t : composite_operator<interpolate_t> {
  static constexpr auto op_name = "interpolate";
  template <value X, class S>
  static constexpr auto body(X const& x, S const& sizes, interpolation how, bool align_corners = false,
                             std::vector<double> const& factors = {}) {
    auto const s = detail::as_fact(sizes);
    auto const n = on_dims(detail::require_image, shape_of(x), s);
    bool const selects = how == interpolation::nearest || how == interpolation::nearest_exact;
    if (!selects) detail::needs_floating<interpolate_t>(x);
    if (how != interpolation::area) {
      auto const sums = on_dims(detail::type_of_sums, type_fact(x)); // compact numbers are rounded once
      double const* const scales = factors.empty() ? nullptr : factors.data();
      return contiguous(to(detail::resampled<0>(to(x, sums), s, how, align_corners, scales), type_fact(x)));
    }
    auto const of_three = [&](auto const& v) { return contiguous(adaptive_avg_pool3d(v, s)); };
    auto const of_two = [&](auto const& v) { return contiguous(adaptive_avg_pool2d(v, s)); };
    auto const of_one = [&](auto const& v) { return contiguous(adaptive_avg_pool1d(v, s)); };
    auto const several = [&](auto const& v) { return choose(same_fact(n, ints<2>{}), of_two, of_three, v); };
    return choose(same_fact(n, ints<1>{}), of_one, several, x);
  }
} interpolate{};

} // namespace varve
