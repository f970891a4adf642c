// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/reshape.hpp>
#include <varve/op/sum.hpp>

namespace varve {

namespace detail {
/// Resolves the sizes of `expand`: -1 keeps a size, and the operand's shape must broadcast to the result.
inline constexpr auto resolve_expand = [](dims const& sizes, dims const& from) {
  dims r = sizes;
  int const shift = sizes.n - from.n;
  if (shift < 0) refuse::shapes_do_not_match("expand", from, sizes);
  for (int k = 0; k < r.n; ++k) {
    if (r[k] == -1 && k >= shift) r[k] = from[k - shift];
    if (r[k] < 0 || (k >= shift && from[k - shift] != 1 && from[k - shift] != r[k]))
      refuse::shapes_do_not_match("expand", from, sizes);
  }
  return r;
};
} // namespace detail

/// Repeats dimensions of size 1 and adds leading dimensions to reach a shape. The result is a view with strides 0.
/// Attribute {shape}.
template <>
struct rules<expand_t> : rule::view {
  static constexpr operator_class planned_as = operator_class::expand;
  static constexpr auto schema = "(Tensor(a) self, int[] size) -> Tensor(a)";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    return attributes(detail::resolve_expand(at[0], in[0].sizes));
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0], in[0].number}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    return {at[0], broadcast_strides(in.sizes, in.strides, at[0]), in.offset, true};
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return detail::sum_to_shape(g, shape_of(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return expand(align(o, on_dims([](dims const& s) { return dims{s.n}; }, op.a)), on_dims(detail::prepend, op.a, n));
  }
};

template <value X, class S>
constexpr auto expand_t::operator()(X const& x, S const& sizes) const {
  return bind<expand_t>(on_dims(detail::resolve_expand, detail::as_fact(sizes), shape_of(x)))(x);
}

} // namespace varve
