// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/rule/linear.hpp>
#include <varve/rule/reduction.hpp>

namespace varve {

namespace detail {
inline constexpr auto inverse_permutation = [](dims const& p) {
  dims r = p;
  for (int k = 0; k < p.n; ++k) r[static_cast<int>(p[k])] = k;
  return r;
};
inline constexpr auto batched_permutation = [](dims const& p) {
  dims r{0};
  for (int k = 0; k < p.n; ++k) r.push_back(p[k] + 1);
  return r;
};
inline constexpr auto normalize_permutation = [](dims const& p, dims const& sizes) {
  dims r;
  for (int k = 0; k < p.n; ++k) {
    int const a = wrap_axis(p[k], sizes.n);
    if (r.contains(a)) refuse::argument_is_invalid("permute", "an axis is named twice");
    r.push_back(a);
  }
  if (p.n != sizes.n) refuse::argument_is_invalid("permute", "every axis must be named once");
  return r;
};
} // namespace detail

/// Reorders dimensions: dimension k of the result is dimension axes[k] of the operand. A view. Attribute {axes}.
template <>
struct rules<permute_t> : rule::view {
  static constexpr operator_class planned_as = operator_class::permute;
  static constexpr auto schema = "(Tensor(a) self, int[] dims) -> Tensor(a)";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    return attributes(detail::normalize_permutation(at[0], in[0].sizes));
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) { return detail::view_shape<rules>(at, in); }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    layout r = in;
    for (int k = 0; k < at[0].n; ++k) {
      r.sizes[k] = in.sizes[static_cast<int>(at[0][k])];
      r.strides[k] = in.strides[static_cast<int>(at[0][k])];
    }
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&) {
    return permute(g, on_dims(detail::inverse_permutation, op.a));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return permute(o.value, on_dims(detail::batched_permutation, op.a));
  }
};

template <value X, class S>
constexpr auto permute_t::operator()(X const& x, S const& axes) const {
  return bind<permute_t>(on_dims(detail::normalize_permutation, detail::as_fact(axes), shape_of(x)))(x);
}

/// Exchanges two dimensions; `transpose(x)` exchanges the last two.
inline constexpr struct transpose_t : composite_operator<transpose_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "transpose";
  template <value X, class A = ints<-2>, class B = ints<-1>>
  static constexpr auto body(X const& x, A const& first = {}, B const& second = {}) {
    auto exchange = [](dims const& s, dims const& a, dims const& b) {
      dims r = s;
      for (int k = 0; k < s.n; ++k) r[k] = k;
      if (s.n == 0) return r;
      int const i = wrap_axis(a[0], s.n), j = wrap_axis(b[0], s.n);
      r[i] = j;
      r[j] = i;
      return r;
    };
    return permute(x, on_dims(exchange, shape_of(x), detail::as_fact(first), detail::as_fact(second)));
  }
} transpose{};

} // namespace varve
