// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/windows.hpp>
#include <varve/op/abs.hpp>

namespace varve {

/// What `pad` fills margins with: a number (`constant`), the elements mirrored at the edge (`reflect`), the edge
/// element (`replicate`), or the elements of the opposite end (`circular`).
namespace pad_mode {
inline constexpr ints<0> constant{};
inline constexpr ints<1> reflect{};
inline constexpr ints<2> replicate{};
inline constexpr ints<3> circular{};
} // namespace pad_mode

namespace detail {
/// Returns {axis, size, margin before, margin after, size with both} of one axis.
template <int Axis>
inline constexpr auto padded_axis = [](dims const& s, dims const& pad, dims const& mode) {
  int const k = s.n - 1 - Axis;
  extent const n = s[k], before = pad[2 * Axis], after = pad[2 * Axis + 1], all = n + before + after;
  if (n < 1 || all < (mode[0] == 3 ? 0 : 1)) refuse::argument_is_invalid("pad", "nothing is left of an axis");
  if (mode[0] == 1 && (before >= n || after >= n))
    refuse::argument_is_invalid("pad", "a margin that reflects is smaller than its axis");
  extent const cut = (before < 0 ? -before : extent(0)) + (after < 0 ? -after : extent(0));
  if (mode[0] == 3 && (before > n - cut || after > n - cut))
    refuse::argument_is_invalid("pad", "a circular margin is not greater than what is left of its axis");
  return dims{k, n, before, after, all};
};
/// Returns the index of the source element for each position j, margins included.
template <value J>
constexpr auto reflected_index(J const& j, index_t n) {
  return sub(n - 1, abs(sub(n - 1, abs(j))));
}
template <value J>
constexpr auto replicated_index(J const& j, index_t n) {
  auto const first = where(lt(j, 0), 0, j);
  return where(gt(first, n - 1), n - 1, first);
}
template <value J>
constexpr auto circular_index(J const& j, index_t n, index_t before, index_t after) {
  index_t const first = before < 0 ? -before : 0, last = after < 0 ? n + after : n, all = last - first;
  return where(lt(j, first), add(j, all), where(ge(j, last), sub(j, all), j));
}
template <int Axis, class X, class P, class M>
constexpr auto with_elements_in_margins(X const& x, P const& pad, M const& mode) {
  if constexpr (Axis == 3) return x;
  else {
    auto const padded = [&](auto const& v) {
      auto const of = on_dims(padded_axis<Axis>, shape_of(v), pad, mode);
      dims const f = to_dims(of);
      index_t const n = index_t(f[1]), before = index_t(f[2]), after = index_t(f[3]);
      auto const place = sub(counted(on_dims([](dims const& d) { return dims{d[4]}; }, of), v), before);
      auto const reflected = [&](auto const& j) { return reflected_index(j, n); };
      auto const replicated = [&](auto const& j) { return replicated_index(j, n); };
      auto const circular = [&](auto const& j) { return circular_index(j, n, before, after); };
      auto const others = [&](auto const& j) {
        return choose(same_fact(mode, pad_mode::replicate), replicated, circular, j);
      };
      auto const index = choose(same_fact(mode, pad_mode::reflect), reflected, others, place);
      auto const axis = on_dims([](dims const& d) { return dims{d[0]}; }, of);
      return with_elements_in_margins<Axis + 1>(index_select(v, axis, index), pad, mode);
    };
    return choose(same_fact(on_dims([](dims const& p) { return dims{2 * Axis < p.n}; }, pad), ints<1>{}), padded,
                  identity, x);
  }
}
} // namespace detail

/// Adds margins to a value, {before, after} of the last axis, then of the one before it, and so on
/// (`torch.nn.functional.pad`). Negative margins cut: `pad(x, {1, 2}, pad_mode::reflect)`. Modes other than `constant`
/// need margins of one to three axes, preceded by channels and an optional batch dimension.
inline constexpr struct pad_t : composite_operator<pad_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "pad";
  template <value X, class P, class M = ints<0>, number V = int>
  static constexpr auto body(X const& x, P const& margins, M const& mode = {}, V const& value = 0) {
    auto const pad = detail::as_fact(margins);
    auto const how = detail::as_fact(mode);
    auto const check = [](dims const& s, dims const& p, dims const& m) {
      if (m.n != 1 || m[0] < 0 || m[0] > 3) refuse::argument_is_invalid(op_name, "the mode is one of pad_mode");
      int const axes = p.n / 2;
      if (m[0] != 0 && (p.n % 2 || axes < 1 || axes > 3 || (s.n != axes + 1 && s.n != axes + 2)))
        refuse::argument_is_invalid(op_name, "there are two margins for each of one to three axes, which stand behind "
                                             "channels and maybe samples");
      return dims{};
    };
    (void)on_dims(check, shape_of(x), pad, how);
    return choose(
        same_fact(how, pad_mode::constant), [&](auto const& v) { return constant_pad_nd(v, pad, value); },
        [&](auto const& v) { return detail::with_elements_in_margins<0>(v, pad, how); }, x);
  }
} pad{};

} // namespace varve
