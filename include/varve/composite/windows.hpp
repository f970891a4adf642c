// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/create.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/reshape.hpp>

/// @file
/// Sliding windows over axes, padding with numbers, and pixel shuffles.
namespace varve {

/// Windows of `size` elements along an axis, every `step` elements, as a new last dimension (`torch.Tensor.unfold`). It
/// is a view.
inline constexpr struct unfold_t : composite_operator<unfold_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "unfold";
  template <value X, class A, class N, class S>
  static constexpr auto body(X const& x, A const& axis, N const& size, S const& step) {
    auto const sizes = [](dims const& s, dims const& a, dims const& n, dims const& by) {
      int const k = wrap_axis(a[0], s.n);
      extent const all = s.n ? s[k] : extent(1);
      if (n[0] < 0 || n[0] > all) refuse::argument_is_invalid(op_name, "a window is longer than its axis");
      if (by[0] < 1) refuse::argument_is_invalid(op_name, "the step must be positive");
      dims r = s;
      if (s.n) r[k] = (all - n[0]) / by[0] + 1;
      return r.push_back(n[0]);
    };
    auto const strides = [](dims const& s, dims const& a, dims const&, dims const& by) {
      dims r = contiguous_strides(s);
      int const k = wrap_axis(a[0], s.n);
      extent const one = s.n ? r[k] : extent(1);
      if (s.n) r[k] = one * by[0];
      return r.push_back(one);
    };
    auto const s = shape_of(x);
    auto const a = detail::as_fact(axis);
    auto const n = detail::as_fact(size);
    auto const by = detail::as_fact(step);
    return detail::strided_region(x, on_dims(sizes, s, a, n, by), on_dims(strides, s, a, n, by), ints<0>{});
  }
} unfold{};

namespace detail {
/// The range {axis, from, to, 1} of axis `Axis` that remains where margins are negative. `margin_of` is the shape of an
/// added margin.
template <int Axis>
inline constexpr auto what_margins_leave = [](dims const& s, dims const& pad) {
  int const k = s.n - 1 - Axis;
  if (2 * Axis >= pad.n) return dims{k < 0 ? 0 : k, 0, k < 0 || s.n == 0 ? extent(0) : s[k], 1};
  extent const before = pad[2 * Axis], after = pad[2 * Axis + 1], n = s[k];
  extent const from = before < 0 ? -before : extent(0), to = after < 0 ? n + after : n;
  if (n + before + after < 0 || to < from) refuse::argument_is_invalid("pad", "nothing is left of an axis");
  return dims{k, from, to, 1};
};
template <int Axis, bool Behind>
inline constexpr auto margin_of = [](dims const& s, dims const& pad) {
  dims r = s;
  int const k = s.n - 1 - Axis;
  extent const n = 2 * Axis < pad.n ? pad[2 * Axis + Behind] : extent(0);
  if (k >= 0) r[k] = n < 0 ? extent(0) : n;
  return r;
};
template <int Axis, class X, class P, class N>
constexpr auto with_margins(X const& x, P const& pad, N const& v) {
  if constexpr (Axis == 4) return x;
  else {
    auto const padded = [&](auto const& u) {
      auto const kept = bind<slice_t>(on_dims(what_margins_leave<Axis>, shape_of(u), pad))(u);
      auto const before = new_full(kept, on_dims(margin_of<Axis, false>, shape_of(kept), pad), v);
      auto const after = new_full(kept, on_dims(margin_of<Axis, true>, shape_of(kept), pad), v);
      auto const axis = on_dims([](dims const& s) { return dims{s.n - 1 - Axis}; }, shape_of(kept));
      return with_margins<Axis + 1>(cat(std::make_tuple(before, kept, after), axis), pad, v);
    };
    return choose(same_fact(on_dims([](dims const& p) { return dims{2 * Axis < p.n}; }, pad), ints<1>{}), padded,
                  identity, x);
  }
}
} // namespace detail

/// Adds margins filled with a number. `margins` are {before, after} of the last axis, then of the one before it, and so
/// on; negative ones cut (`torch.nn.functional.pad`). At most four axes.
inline constexpr struct constant_pad_nd_t : composite_operator<constant_pad_nd_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "constant_pad_nd";
  template <value X, class P, number V = int>
  static constexpr auto body(X const& x, P const& margins, V const& value = 0) {
    auto const pad = detail::as_fact(margins);
    auto const check = [](dims const& s, dims const& p) {
      if (p.n % 2 || p.n > 2 * s.n)
        refuse::argument_is_invalid(op_name, "there must be two margins for each of the last axes");
      return dims{};
    };
    (void)on_dims(check, shape_of(x), pad);
    return detail::with_margins<0>(clone(x), pad, value);
  }
} constant_pad_nd{};

namespace detail {
/// The sizes that split the channels of an image into those of finer pixels: {.., channels, r, r, height, width}.
/// `with_coarse_pixels` splits the sides of an image instead.
inline constexpr auto with_fine_pixels = [](dims const& s, dims const& r) {
  if (s.n < 3) refuse::argument_is_invalid("pixel_shuffle", "at least three dimensions are expected");
  extent const f = r[0], c = s[s.n - 3];
  if (f < 1 || c % (f * f) != 0)
    refuse::argument_is_invalid("pixel_shuffle", "the channels cannot be divided by the square of the factor");
  dims t = s.sub(0, s.n - 3);
  return t.push_back(c / (f * f)).push_back(f).push_back(f).push_back(s[s.n - 2]).push_back(s[s.n - 1]);
};
inline constexpr auto with_coarse_pixels = [](dims const& s, dims const& r) {
  if (s.n < 3) refuse::argument_is_invalid("pixel_unshuffle", "at least three dimensions are expected");
  extent const f = r[0];
  if (f < 1 || s[s.n - 1] % f != 0 || s[s.n - 2] % f != 0)
    refuse::argument_is_invalid("pixel_unshuffle", "the sides cannot be divided by the factor");
  dims t = s.sub(0, s.n - 2);
  return t.push_back(s[s.n - 2] / f).push_back(f).push_back(s[s.n - 1] / f).push_back(f);
};
/// An order of dimensions: the leading ones, then the last ones in order K.
template <int... K>
inline constexpr auto order_behind = [](dims const& s) {
  dims r;
  int const lead = s.n - static_cast<int>(sizeof...(K));
  for (int k = 0; k < lead; ++k) r.push_back(k);
  (r.push_back(lead + K), ...);
  return r;
};
} // namespace detail
/// Rearranges channels into finer pixels: [.., c r r, h, w] becomes [.., c, h r, w r] (`torch.pixel_shuffle`).
inline constexpr struct pixel_shuffle_t : composite_operator<pixel_shuffle_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "pixel_shuffle";
  template <value X, class R>
  static constexpr auto body(X const& x, R const& factor) {
    auto const apart = reshape(x, on_dims(detail::with_fine_pixels, shape_of(x), detail::as_fact(factor)));
    auto const mixed = permute(apart, on_dims(detail::order_behind<0, 3, 1, 4, 2>, shape_of(apart)));
    auto const joined = [](dims const& s) {
      dims r = s.sub(0, s.n - 4);
      return r.push_back(s[s.n - 4] * s[s.n - 3]).push_back(s[s.n - 2] * s[s.n - 1]);
    };
    return reshape(mixed, on_dims(joined, shape_of(mixed)));
  }
} pixel_shuffle{};
/// Rearranges pixels into channels: [.., c, h r, w r] becomes [.., c r r, h, w] (`torch.pixel_unshuffle`).
inline constexpr struct pixel_unshuffle_t : composite_operator<pixel_unshuffle_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "pixel_unshuffle";
  template <value X, class R>
  static constexpr auto body(X const& x, R const& factor) {
    auto const apart = reshape(x, on_dims(detail::with_coarse_pixels, shape_of(x), detail::as_fact(factor)));
    auto const mixed = permute(apart, on_dims(detail::order_behind<0, 2, 4, 1, 3>, shape_of(apart)));
    auto const joined = [](dims const& s) {
      dims r = s.sub(0, s.n - 5);
      return r.push_back(s[s.n - 5] * s[s.n - 4] * s[s.n - 3]).push_back(s[s.n - 2]).push_back(s[s.n - 1]);
    };
    return reshape(mixed, on_dims(joined, shape_of(mixed)));
  }
} pixel_unshuffle{};

} // namespace varve
