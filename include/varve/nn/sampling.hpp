// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/detach.hpp>
#include <varve/special/rounding.hpp>

/// @file
/// Sampling of images at the coordinates of a grid (`torch.nn.functional.grid_sample`).
namespace varve {

/// How `grid_sample` interpolates between elements.
enum class sampling : unsigned char { linear, nearest, cubic };
/// What `grid_sample` reads outside an image.
enum class beyond_edges : unsigned char { zeros, border, reflection };

namespace detail {
/// Converts a coordinate in [-1, 1] to one in elements. With aligned corners, -1 and 1 are the centers of the first and
/// last element.
template <value V>
constexpr auto coordinate_of_grid(V const& x, index_t n, bool corners) {
  double const size = static_cast<double>(n);
  if (corners) return mul(add(x, 1), (size - 1) / 2);
  return sub(mul(add(x, 1), size / 2), 0.5);
}
/// Moves a coordinate into the range of elements, as `how` requires; `zeros` leaves it as it is.
template <value V>
constexpr auto inside_edges(V const& x, index_t n, beyond_edges how, bool corners) {
  double const last = static_cast<double>(n) - 1, low = corners ? 0 : -0.5, span = corners ? last : last + 1;
  auto const limited = [last](auto const& v) { // no derivative beyond the edges, as in PyTorch
    return where(mul(gt(v, 0), lt(v, last)), v, detach(clamp(v, 0.0, last)));
  };
  if (how == beyond_edges::zeros) return add(x, 0);
  if (how == beyond_edges::border) return add(limited(x), 0);
  if (span == 0) return add(limited(mul(x, 0)), 0);
  auto const d = abs(sub(x, low)), rest = fmod(d, span);
  auto const odd = eq(remainder(floor(div(d, span)), 2.0), 1);
  return add(limited(where(odd, sub(span + low, rest), add(rest, low))), 0);
}
/// Reads [n, channels, all elements] at integer coordinates [n, points], one for each dimension; 0 outside the image.
template <int N, value X, value V>
constexpr auto read_at(X const& rows, dims const& sizes, V const* at) {
  auto inside = mul(ge(at[0], 0), le(at[0], static_cast<double>(index_t(sizes[0]) - 1)));
  auto place = clamp(at[0], 0.0, static_cast<double>(index_t(sizes[0]) - 1));
  for (int k = 1; k < N; ++k) {
    double const last = static_cast<double>(index_t(sizes[k]) - 1);
    inside = mul(inside, mul(ge(at[k], 0), le(at[k], last)));
    place = add(mul(place, last + 1), clamp(at[k], 0.0, last));
  }
  auto const thin = on_dims([](dims const& s) { return dims{s[0], 1, s[1]}; }, shape_of(place));
  auto const wide =
      on_dims([](dims const& r, dims const& s) { return dims{s[0], r[1], s[1]}; }, shape_of(rows), shape_of(place));
  auto const index = reshape(to(place, ints<static_cast<index_t>(dtype::int64)>{}), thin);
  return where(reshape(inside, thin), gather(rows, axis<2>, expand(index, wide)), 0);
}
/// Returns the weight of neighbour k of four, for a position at distance `t` after the second.
template <value V>
constexpr auto cubic_weight(V const& t, int k) {
  constexpr double a = -0.75;
  auto const inner = [&](auto const& x) { return add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1); };
  auto const outer = [&](auto const& x) { return sub(mul(add(mul(sub(mul(x, a), 5 * a), x), 8 * a), x), 4 * a); };
  if (k == 0) return outer(add(t, 1));
  if (k == 1) return inner(t);
  if (k == 2) return inner(sub(1, t));
  return outer(sub(2, t));
}
} // namespace detail

/// `grid_sample<N>(x, grid, how, beyond, corners)` for N = 2 or 3 spatial dimensions. x is [n, channels, ...]. The grid
/// is [n, ..., N]; its coordinates start with that of the last dimension. The result is [n, channels, ...] with the
/// spatial sizes of the grid. Cubic sampling is for N = 2 only. Nearest sampling has no derivative with respect to the
/// grid.
template <int N>
struct grid_sample_t {
  template <value X, value G>
  constexpr auto operator()(X const& x, G const& grid, sampling how = sampling::linear,
                            beyond_edges beyond = beyond_edges::zeros, bool corners = false) const {
    detail::needs_real("grid_sample", x, grid);
    return detail::halves_in_float([&](auto const& v, auto const& g) { return of(v, g, how, beyond, corners); }, x,
                                   grid);
  }

private:
  template <value X, value G>
  static constexpr auto of(X const& x, G const& grid, sampling how, beyond_edges beyond, bool corners) {
    auto const check = [](dims const& s, dims const& g) {
      if (s.n != N + 2 || g.n != N + 2 || g[N + 1] != N || s[0] != g[0])
        refuse::shapes_do_not_match("grid_sample", s, g);
      for (int k = 2; k < s.n; ++k)
        if (s[k] == 0) refuse::argument_is_invalid("grid_sample", "the input has no elements");
      return dims{};
    };
    (void)on_dims(check, shape_of(x), shape_of(grid));
    if (how == sampling::cubic && N != 2) refuse::argument_is_invalid("grid_sample", "cubic sampling is of images");
    dims sizes;
    for (int k = 0; k < N; ++k) sizes.push_back(to_dims(shape_of(x))[k + 2]);
    auto const points = [](dims const& g) {
      extent n = 1;
      for (int k = 1; k <= N; ++k) n *= g[k];
      return dims{g[0], n, N};
    };
    auto const rows =
        reshape(x, on_dims([](dims const& s) { return dims{s[0], s[1], numel(s.sub(2, s.n))}; }, shape_of(x)));
    auto const list = reshape(grid, on_dims(points, shape_of(grid)));
    auto const along = [&](int k) { // the coordinate of spatial dimension k
      auto const v = select(list, axis<2>, dims{N - 1 - k});
      return detail::coordinate_of_grid(v, index_t(sizes[k]), corners);
    };
    using V = std::remove_cvref_t<decltype(along(0))>;
    V at[N]{};
    for (int k = 0; k < N; ++k) at[k] = along(k);
    auto const y = sampled(rows, sizes, at, how, beyond, corners);
    auto const shape = [](dims const& s, dims const& g) {
      dims r{s[0], s[1]};
      for (int k = 1; k <= N; ++k) r.push_back(g[k]);
      return r;
    };
    return reshape(y, on_dims(shape, shape_of(x), shape_of(grid)));
  }

private:
  template <value X, value V>
  static constexpr auto sampled(X const& rows, dims const& sizes, V const* at, sampling how, beyond_edges beyond,
                                bool corners) {
    V p[N]{}, whole[N]{};
    auto const within = [&](V const& v, int k) { return detail::inside_edges(v, index_t(sizes[k]), beyond, corners); };
    auto const thin = [](V const& w) {
      return reshape(w, on_dims([](dims const& s) { return dims{s[0], 1, s[1]}; }, shape_of(w)));
    };
    if (how == sampling::nearest) {
      for (int k = 0; k < N; ++k) p[k] = round_half_even(within(at[k], k));
      return detail::read_at<N>(rows, sizes, p);
    }
    bool const cubic = how == sampling::cubic;
    int const taps = cubic ? 4 : 2;
    for (int k = 0; k < N; ++k) p[k] = cubic ? at[k] : within(at[k], k), whole[k] = floor(p[k]);
    auto const term = [&](int combination) {
      V place[N]{}, weight = detail::constant_ones(p[0]);
      for (int k = 0, c = combination; k < N; ++k, c /= taps) {
        int const tap = c % taps;
        V const here = add(whole[k], static_cast<double>(cubic ? tap - 1 : tap)), t = sub(p[k], whole[k]);
        place[k] = cubic ? V(within(here, k)) : here;
        weight = mul(weight, cubic ? V(detail::cubic_weight(t, tap)) : tap ? V(add(t, 0)) : V(sub(1, t)));
      }
      return mul(detail::read_at<N>(rows, sizes, place), thin(weight));
    };
    int all = 1;
    for (int k = 0; k < N; ++k) all *= taps;
    auto sum = term(0);
    for (int c = 1; c < all; ++c) sum = add(sum, term(c));
    return sum;
  }
};
template <int N>
inline constexpr grid_sample_t<N> grid_sample{};

} // namespace varve
