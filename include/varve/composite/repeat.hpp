// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/narrow.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/permute.hpp>

namespace varve {

/// Repeats a value along its axes and along new leading axes (`torch.Tensor.repeat`). The result is a copy. There is
/// one number of repeats for each dimension of the result. Throws `value_error` if there are fewer than dimensions of
/// x, or for negative ones.
inline constexpr struct repeat_t : composite_operator<repeat_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "repeat";
  template <value X, class R>
  static constexpr auto body(X const& x, R const& repeats) {
    auto const r = detail::as_fact(repeats);
    return contiguous(along<7>(align_to(x, r), r));
  }

private:
  template <class X, class R>
  static constexpr auto align_to(X const& x, R const& r) {
    auto const wide = [](dims const& s, dims const& n) {
      if (n.n < s.n) refuse::argument_is_invalid(op_name, "there must be a number for each dimension");
      for (extent e : n)
        if (e < 0) refuse::argument_is_invalid(op_name, "repeats must not be negative");
      dims t = s;
      while (t.n < n.n) t.insert(0, 1);
      return t;
    };
    return reshape(x, on_dims(wide, shape_of(x), r));
  }
  /// Repeats one axis after the other, from the last one, because each needs a temporary dimension.
  template <int Axis, class X, class R>
  static constexpr auto along(X const& x, R const& r) {
    if constexpr (Axis < 0) return x;
    else {
      auto const apart = [](dims const& s, dims const& n) {
        dims t = s;
        if (Axis < n.n) t[Axis] = s[Axis] * n[Axis];
        return t;
      };
      auto const wanted = on_dims(apart, shape_of(x), r);
      auto const before = [](dims const& s, dims const&) { // [outer, 1, axis and inner]
        extent outer = 1, inner = 1;
        for (int k = 0; k < s.n; ++k) (k < Axis ? outer : inner) *= s[k];
        return dims{outer, 1, inner};
      };
      auto const after = [](dims const& s, dims const& n) {
        extent outer = 1, inner = 1;
        for (int k = 0; k < s.n; ++k) (k < Axis ? outer : inner) *= s[k];
        return dims{outer, Axis < n.n ? n[Axis] : extent(1), inner};
      };
      auto const repeated = [&](auto const& v) {
        return reshape(expand(reshape(v, on_dims(before, shape_of(v), r)), on_dims(after, shape_of(v), r)), wanted);
      };
      return along<Axis - 1>(choose(same_fact(shape_of(x), wanted), detail::identity, repeated, x), r);
    }
  }
} repeat{};

/// `repeat` of the last axes if there are fewer repeats than axes; the other axes are not repeated (`torch.tile`).
inline constexpr struct tile_t : composite_operator<tile_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "tile";
  template <value X, class R>
  static constexpr auto body(X const& x, R const& repeats) {
    auto const whole = [](dims const& s, dims const& n) {
      dims r = n;
      while (r.n < s.n) r.insert(0, 1);
      return r;
    };
    return repeat(x, on_dims(whole, shape_of(x), detail::as_fact(repeats)));
  }
} tile{};

/// Shifts elements along axes; elements shifted beyond the end reappear at the start (`torch.roll`). Without axes, the
/// flattened elements are shifted.
inline constexpr struct roll_t : composite_operator<roll_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "roll";
  template <value X, class S, class A = ints<>>
  static constexpr auto body(X const& x, S const& shifts, A const& axes = {}) {
    auto const a = detail::as_fact(axes);
    auto const s = detail::as_fact(shifts);
    auto const in_a_row = [&](auto const& v) {
      auto const row = reshape(v, on_dims([](dims const& t) { return dims{numel(t)}; }, shape_of(v)));
      return reshape(one<0>(row, s, ints<0>{}), shape_of(v));
    };
    auto const check = [](dims const& n, dims const& at) {
      if (n.n == 0 || (at.n != n.n && !(at.n == 0 && n.n == 1)))
        refuse::argument_is_invalid(op_name, "there must be a shift for each axis");
      return dims{at.n == 0};
    };
    return choose(
        same_fact(on_dims(check, s, a), ints<1>{}), in_a_row, [&](auto const& v) { return all<0>(v, s, a); }, x);
  }

private:
  template <int K, class X, class S, class A>
  static constexpr auto all(X const& x, S const& s, A const& a) {
    if constexpr (K == max_rank) return x;
    else
      return choose(
          same_fact(on_dims([](dims const& at) { return dims{K < at.n}; }, a), ints<1>{}),
          [&](auto const& v) { return all<K + 1>(one<K>(v, s, a), s, a); }, detail::identity, x);
  }
  template <int K, class X, class S, class A>
  static constexpr auto one(X const& x, S const& s, A const& a) {
    auto const start = [](dims const& t, dims const& n, dims const& at) { // where the result begins
      if (t.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis; leave the axes out");
      int const k = wrap_axis(at[K], t.n);
      extent const size = t[k];
      return dims{k, size == 0 ? extent(0) : ((size - n[K]) % size + size) % size};
    };
    auto const place = on_dims(start, shape_of(x), s, a);
    auto const moved = [&](auto const& v) {
      auto const back =
          on_dims([](dims const& p, dims const& t) { return dims{p[0], p[1], t[int(p[0])], 1}; }, place, shape_of(v));
      auto const front = on_dims([](dims const& p) { return dims{p[0], 0, p[1], 1}; }, place);
      return cat(std::make_tuple(bind<slice_t>(back)(v), bind<slice_t>(front)(v)),
                 on_dims([](dims const& p) { return dims{p[0]}; }, place));
    };
    return choose(same_fact(on_dims([](dims const& p) { return dims{p[1] == 0}; }, place), ints<1>{}), detail::identity,
                  moved, x);
  }
} roll{};

} // namespace varve
