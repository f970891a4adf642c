// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/to.hpp>
#include <varve/rule/linear.hpp>

namespace varve {

namespace detail {
/// Returns the strides that show `from` in another shape without moving elements. Dimensions adjacent in memory form
/// chunks; each new dimension must lie within one chunk.
constexpr layout reshaped(layout const& from, dims const& sizes) {
  layout r = contiguous_layout(sizes);
  r.offset = from.offset;
  if (from.contiguous() || numel(sizes) == 0) return r;
  int t = sizes.n - 1;
  extent chunk = 1, filled = 1, step = from.strides.back();
  for (int f = from.sizes.n - 1; f >= 0; --f) {
    chunk *= from.sizes[f];
    if (f > 0 && (from.sizes[f - 1] == 1 || from.strides[f - 1] == chunk * step)) continue;
    for (; t >= 0 && (filled < chunk || sizes[t] == 1); --t) {
      r.strides[t] = filled * step;
      filled *= sizes[t];
    }
    if (filled != chunk) {
      r.expressible = false;
      return r;
    }
    if (f > 0) step = from.strides[f - 1];
    chunk = filled = 1;
  }
  return r;
}

/// Replaces a -1 in the requested shape by the missing size. Refuses shapes with another number of elements.
inline constexpr auto resolve_shape = [](dims const& sizes, dims const& from) {
  auto const resolved = [&](auto const& wanted, auto const& present) {
    auto const all = numel(present);
    std::remove_const_t<decltype(all)> known = 1;
    int unknown = -1;
    for (int k = 0; k < wanted.n; ++k) {
      if (wanted[k] < -1) refuse::shapes_do_not_match("reshape", from, sizes);
      if (!known_equal(wanted[k], -1)) known = wrapping_product(known, wanted[k]);
      else if (unknown >= 0) refuse::argument_is_invalid("reshape", "only one size may be -1");
      else unknown = k;
    }
    bool const fits = unknown < 0 ? known == all : known != 0 && all % known == 0;
    if (!fits) refuse::shapes_do_not_match("reshape", from, sizes);
    dims r = sizes;
    if (unknown >= 0) r[unknown] = all / known;
    return r;
  };
  return on_sizes(resolved, sizes, from);
};
} // namespace detail

/// The same elements in row-major order in another shape: a view if the strides allow it, otherwise a copy. Attribute
/// {shape}.
template <>
struct rules<reshape_t> : rule::view {
  static constexpr operator_class planned_as = operator_class::reshape;
  static constexpr auto schema = "(Tensor(a) self, int[] shape) -> Tensor(a)";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    return attributes(detail::resolve_shape(at[0], in[0].sizes));
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0], in[0].number}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) { return detail::reshaped(in, at[0]); }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return reshape(g, shape_of(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return reshape(o.value, on_dims(detail::prepend, op.a, n));
  }
};

template <value X, class S>
constexpr auto reshape_t::operator()(X const& x, S const& sizes) const {
  return bind<reshape_t>(on_dims(detail::resolve_shape, detail::as_fact(sizes), shape_of(x)))(x);
}

namespace detail {
/// Reshapes, or returns the value itself if it has the shape already.
inline constexpr auto reshape_to = [](auto const& x, auto const& sizes) {
  return choose(same_fact(shape_of(x), sizes), identity, [&](auto const& v) { return reshape(v, sizes); }, x);
};
} // namespace detail

/// Adds a dimension of size 1 at an axis in [-rank-1, rank].
inline constexpr struct unsqueeze_t : composite_operator<unsqueeze_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "unsqueeze";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    auto with = [](dims const& s, dims const& a) {
      dims r = s;
      return r.insert(wrap_axis(a[0], s.n + 1), 1);
    };
    return reshape(x, on_dims(with, shape_of(x), detail::as_fact(axis)));
  }
} unsqueeze{};

/// Removes dimensions of size 1: all of them, or those among the given axes.
inline constexpr struct squeeze_t : composite_operator<squeeze_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "squeeze";
  template <value X, class A = ints<>>
  static constexpr auto body(X const& x, A const& axes = {}) {
    auto without = [](dims const& s, dims const& a) {
      dims gone, r;
      for (int k = 0; k < a.n; ++k) gone.push_back(wrap_axis(a[k], s.n));
      for (int k = 0; k < s.n; ++k)
        if (s[k] != 1 || (a.n > 0 && !gone.contains(k))) r.push_back(s[k]);
      return r;
    };
    return reshape(x, on_dims(without, shape_of(x), detail::as_fact(axes)));
  }
} squeeze{};

} // namespace varve
