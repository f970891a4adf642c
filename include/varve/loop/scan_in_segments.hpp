// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/scan.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/slice.hpp>

/// @file
/// A long `scan` as a scan of scans. Reverse mode stores the carried values between segments only, and runs a segment
/// again when the backward pass reaches it.
namespace varve {

namespace detail {
/// Returns {rows before the first whole segment, segments, steps in each}.
inline constexpr auto segments_of = [](dims const& length, dims const& steps) {
  index_t const n = length[0];
  index_t k = steps[0];
  if (k <= 0)
    for (k = 1; k * k < n;) ++k;
  if (k > n && n > 0) k = n;
  return dims{n % k, n / k, k};
};
inline constexpr auto entry = [](dims const& s, dims const& k) { return dims{s[static_cast<int>(k[0])]}; };
template <index_t N>
constexpr steps_t<N> steps_of(ints<N>) {
  return {};
}
constexpr step_count steps_of(dims const& n) { return step_count(n[0]); }

/// One segment as a step.
template <class F>
struct segment_step {
  [[no_unique_address]] F f;
  bool reverse;
  template <class C, class X, class... V>
  constexpr auto operator()(C const& carried, X const& rows, V const&... captured) const {
    return scan(closure(f, captured...), carried, rows, reverse);
  }
};
/// One segment as a step, for a scan that walks through nothing.
template <class F, class N>
struct counted_segment_step {
  [[no_unique_address]] F f;
  [[no_unique_address]] N steps;
  template <class C, class... V>
  constexpr auto operator()(C const& carried, V const&... captured) const {
    return scan(closure(f, captured...), carried, steps);
  }
};
/// Maps `f` over trees of outputs; `none` stays `none`.
template <class F, class T, class... R>
constexpr auto map_outputs(F const& f, T const& t, R const&... r) {
  if constexpr (is_none<T>) return none;
  else return tree_map(f, t, r...);
}

/// Returns the rows before the first whole segment.
template <class Xs, class Split>
constexpr auto rows_before_segments(Xs const& xs, Split const& split) {
  return tree_map(
      [&](auto const& x) {
        return bind<slice_t>(on_dims([](dims const& s) { return dims{0, 0, s[0], 1}; }, split))(x);
      },
      xs);
}
/// Returns the rows of the whole segments, with a dimension of segments in front of that of the rows in each.
template <class Xs, class Split, class Length>
constexpr auto rows_by_segments(Xs const& xs, Split const& split, Length const& length) {
  return tree_map(
      [&](auto const& x) {
        auto const bounds = on_dims([](dims const& s, dims const& n) { return dims{0, s[0], n[0], 1}; }, split, length);
        auto const part = bind<slice_t>(bounds)(x);
        auto const cut = [](dims const& s, dims const& sizes) {
          dims r{s[1], s[2]};
          for (int k = 1; k < sizes.n; ++k) r.push_back(sizes[k]);
          return r;
        };
        return reshape(part, on_dims(cut, split, shape_of(part)));
      },
      xs);
}

template <index_t Segment, class F, class Init, class Xs>
constexpr auto scan_in_segments(F const& f, Init const& init, Xs const& xs, bool reverse) {
  auto const length = [&] {
    if constexpr (is_steps<Xs>) return length_of(xs);
    else return on_dims(walked_size, shape_of(std::get<0>(tree_leaves(xs))));
  }();
  auto const split = on_dims(segments_of, length, ints<Segment>{});
  auto const& bare = without_captures(f);
  using bare_t = std::remove_cvref_t<decltype(bare)>;
  auto const rest = [&](auto const& carried) { // the rows before the first whole segment
    if constexpr (is_steps<Xs>) return scan(f, carried, steps_of(on_dims(entry, split, ints<0>{})));
    else return scan(f, carried, rows_before_segments(xs, split), reverse);
  };
  auto const whole = [&](auto const& carried) {
    auto const y = [&] {
      if constexpr (is_steps<Xs>) {
        auto const k = steps_of(on_dims(entry, split, ints<2>{}));
        return scan(capturing(counted_segment_step<bare_t, std::remove_const_t<decltype(k)>>{bare, k}, captures_of(f)),
                    carried, steps_of(on_dims(entry, split, ints<1>{})));
      } else {
        return scan(capturing(segment_step<bare_t>{bare, reverse}, captures_of(f)), carried,
                    rows_by_segments(xs, split, length), reverse);
      }
    }();
    auto const join = [](dims const& sizes) {
      dims r{sizes[0] * sizes[1]};
      for (int k = 2; k < sizes.n; ++k) r.push_back(sizes[k]);
      return r;
    };
    return std::pair(y.first,
                     map_outputs([&](auto const& v) { return reshape(v, on_dims(join, shape_of(v))); }, y.second));
  };
  auto const both = [&] {
    auto const joined = [](auto const& last, auto const& a, auto const& b) {
      return std::pair(
          last, map_outputs([](auto const& u, auto const& v) { return cat(std::tuple{u, v}, ints<0>{}); }, a, b));
    };
    if (reverse) {
      auto const b = whole(init);
      auto const a = rest(b.first);
      return joined(a.first, a.second, b.second);
    }
    auto const a = rest(init);
    auto const b = whole(a.first);
    return joined(b.first, a.second, b.second);
  };
  if constexpr (is_ints<decltype(split)>) {
    if constexpr (std::remove_const_t<decltype(split)>::to_dims()[0] > 0) return both();
    else return whole(init);
  } else {
    if (split[0] > 0) return both();
    return whole(init);
  }
}
} // namespace detail

} // namespace varve
