// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/counted.hpp>
#include <varve/composite/flatten.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/where.hpp>

#include <string>

/// @file
/// Indexed reads beyond `gather`. Indices are int64; `index_select` also accepts int32. An index out of range throws
/// `index_error`.
namespace varve {

namespace detail {
inline constexpr auto thin_index = [](dims const& s, dims const& i, dims const& a) {
  if (i.n > 1) refuse::argument_is_invalid("index_select", "the index is a vector");
  if (s.n == 0 && !(numel(i) == 1)) refuse::argument_is_invalid("index_select", "a value of rank 0 has one element");
  dims r = s;
  for (int k = 0; k < r.n; ++k) r[k] = 1;
  if (r.n) r[wrap_axis(a[0], s.n)] = numel(i);
  return r;
};
inline constexpr auto whole_index = [](dims const& s, dims const& i, dims const& a) {
  dims r = s;
  if (r.n) r[wrap_axis(a[0], s.n)] = numel(i);
  return r;
};
template <class = void>
[[noreturn]] VARVE_NOINLINE void refuse_index(char const* op, bool narrow, dtype t) {
  std::string const what = std::string(op) + (narrow ? " (an index of int64 or int32)" : " (an index of int64)");
  refuse::dtype_is_not_supported(what.c_str(), name(t));
}
/// Refuses an index whose dtype is not int64, or int32 if `narrow`.
template <value I>
constexpr void require_index(char const* op, I const& index, bool narrow = false) {
  dtype const t = dtype_of(index);
  if (t != dtype::int64 && !(narrow && t == dtype::int32)) refuse_index(op, narrow, t);
}
/// Expands an index vector so that `gather` reads whole slices: to the shape of the value, but with the vector's length
/// along the axis.
template <value X, value I, class A>
constexpr auto index_of_slices(char const* op, X const& x, I const& index, A const& axis, bool narrow = true) {
  require_index(op, index, narrow);
  return expand(reshape(to(index, ints<static_cast<index_t>(dtype::int64)>{}),
                        on_dims(thin_index, shape_of(x), shape_of(index), axis)),
                on_dims(whole_index, shape_of(x), shape_of(index), axis));
}
} // namespace detail

/// Selects slices of an axis by a vector of indices, which may repeat (`torch.index_select`).
inline constexpr struct index_select_t : composite_operator<index_select_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "index_select";
  template <value X, class A, value I>
  static constexpr auto body(X const& x, A const& axis, I const& index) {
    auto const a = detail::as_fact(axis);
    return gather(x, a, detail::index_of_slices(op_name, x, index, a));
  }
} index_select{};

/// Selects elements of the flattened x by indices (`torch.take`). Negative indices count from the end. The result has
/// the shape of the index.
inline constexpr struct take_t : composite_operator<take_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "take";
  template <value X, value I>
  static constexpr auto body(X const& x, I const& index) {
    detail::require_index(op_name, index);
    auto const row = ravel(x);
    auto const n = index_t(to_dims(shape_of(row))[0]);
    auto const at = ravel(where(lt(index, 0), add(index, n), index));
    return detail::reshape_to(gather(row, ints<0>{}, at), shape_of(index));
  }
} take{};

/// `gather` whose operands broadcast, except along the axis (`torch.take_along_dim`).
inline constexpr struct take_along_dim_t : composite_operator<take_along_dim_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "take_along_dim";
  template <value X, value I, class A>
  static constexpr auto body(X const& x, I const& index, A const& axis) {
    detail::require_index(op_name, index);
    auto const with = [](dims const& s, dims const& i, dims const& a) {
      if (s.n != i.n) refuse::shapes_do_not_match(op_name, s, i);
      int const k = wrap_axis(a[0], s.n);
      dims u = s, v = i;
      if (s.n) u[k] = v[k] = 1;
      dims r = broadcast(u, v);
      if (s.n) r[k] = s[k];
      return r;
    };
    auto const a = detail::as_fact(axis);
    auto const whole = on_dims(with, shape_of(x), shape_of(index), a);
    auto const at = on_dims(with, shape_of(index), shape_of(x), a);
    return gather(expand(x, whole), a, expand(index, at));
  }
} take_along_dim{};

namespace detail {
template <int K, class X, class A>
constexpr auto flipped(X const& x, A const& axes) {
  if constexpr (K == max_rank) return x;
  else {
    auto const turn = [&](auto const& v) {
      auto const axis =
          on_dims([](dims const& a, dims const& s) { return dims{wrap_axis(a[K], s.n)}; }, axes, shape_of(v));
      auto const n =
          on_dims([](dims const& a, dims const& s) { return dims{s.n ? s[static_cast<int>(a[0])] : extent(1)}; }, axis,
                  shape_of(v));
      auto const turned = index_select(v, axis, sub(index_t(to_dims(n)[0]) - 1, counted(n, v)));
      return flipped<K + 1>(turned, axes);
    };
    return choose(same_fact(on_dims([](dims const& a) { return dims{K < a.n}; }, axes), ints<1>{}), turn, identity, x);
  }
}
} // namespace detail
/// Reverses the order of elements along axes (`torch.flip`). The result is a copy.
inline constexpr struct flip_t : composite_operator<flip_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "flip";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axes) {
    auto const once = [](dims const& a, dims const& s) {
      dims seen;
      for (extent e : a) {
        int const k = wrap_axis(e, s.n);
        if (seen.contains(k)) refuse::argument_is_invalid(op_name, "an axis is named twice");
        seen.push_back(k);
      }
      return dims{};
    };
    (void)on_dims(once, detail::as_fact(axes), shape_of(x));
    return detail::flipped<0>(clone(x), detail::as_fact(axes));
  }
} flip{};

/// Rotates by quarter turns in the plane of two axes, from the first axis to the second (`torch.rot90`).
inline constexpr struct rot90_t : composite_operator<rot90_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "rot90";
  template <value X, class N = ints<1>, class A = ints<0, 1>>
  static constexpr auto body(X const& x, N const& quarters = {}, A const& axes = {}) {
    auto const a = detail::as_fact(axes);
    auto const check = [](dims const& k, dims const& two, dims const& s) {
      if (two.n != 2 || s.n < 2 || wrap_axis(two[0], s.n) == wrap_axis(two[1], s.n))
        refuse::argument_is_invalid(op_name, "two different axes are needed");
      return dims{(index_t(k[0]) % 4 + 4) % 4};
    };
    auto const k = on_dims(check, detail::as_fact(quarters), a, shape_of(x));
    auto const first = on_dims([](dims const& two) { return dims{two[0]}; }, a);
    auto const second = on_dims([](dims const& two) { return dims{two[1]}; }, a);
    auto const is = [&](auto const& n) { return same_fact(k, n); };
    auto const one = [&](auto const& v) { return flip(transpose(v, first, second), first); };
    auto const three = [&](auto const& v) { return flip(transpose(v, first, second), second); };
    auto const two_or_three = [&](auto const& v) {
      return choose(is(ints<2>{}), [&](auto const& u) { return flip(u, a); }, three, v);
    };
    auto const turned = [&](auto const& v) { return choose(is(ints<1>{}), one, two_or_three, v); };
    return choose(is(ints<0>{}), [](auto const& v) { return clone(v); }, turned, x);
  }
} rot90{};

/// Repeats each slice of an axis the same number of times in a row (`torch.repeat_interleave` with a number).
inline constexpr struct repeat_interleave_t : composite_operator<repeat_interleave_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "repeat_interleave";
  template <value X, class N, class A>
  static constexpr auto body(X const& x, N const& repeats, A const& axis) {
    auto const a = detail::as_fact(axis);
    auto const n = detail::as_fact(repeats);
    auto const apart = [](dims const& s, dims const& at, dims const&) {
      dims r = s;
      return r.insert(s.n ? wrap_axis(at[0], s.n) + 1 : 0, 1);
    };
    auto const wide = [](dims const& s, dims const& at, dims const& k) {
      if (k[0] < 0) refuse::argument_is_invalid(op_name, "repeats must not be negative");
      dims r = s;
      return r.insert(s.n ? wrap_axis(at[0], s.n) + 1 : 0, k[0]);
    };
    auto const joined = [](dims const& s, dims const& at, dims const& k) {
      dims r = s;
      if (s.n == 0) return dims{k[0]};
      r[wrap_axis(at[0], s.n)] *= k[0];
      return r;
    };
    auto const s = shape_of(x);
    return clone(
        reshape(expand(reshape(x, on_dims(apart, s, a, n)), on_dims(wide, s, a, n)), on_dims(joined, s, a, n)));
  }
} repeat_interleave{};

} // namespace varve
