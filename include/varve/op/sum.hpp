// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/full_like.hpp>
#include <varve/rule/reduction.hpp>

namespace varve {

/// Sum over axes, by default all; attributes {axes, {keepdim}}. bool and integers sum to int64.
template <>
struct rules<sum_t> : rule::reduction {
  static constexpr operator_class planned_as = operator_class::sum;
  static constexpr complex_rule of_complex = complex_rule::by_parts;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr bool sums = true;
  template <class T>
  using result = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    meta m = reduction::shape(at, in, n);
    if (category(m.type) < 2) m.type = dtype::int64;
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for (index_t k = 0, all = numel(out.sizes); k < all; ++k) out.data[k] = R(0);
    detail::for_each_reduced(at, out, x, [](R& r, T v) {
      if constexpr (std::is_integral_v<R>) r = kernel::add<R>(r, v);
      else r += static_cast<R>(v);
    });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) {
    return detail::reduce_tensor<sum_t>(at, x, &detail::fold_for<kernel::sum_fold>);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&) {
    return op(d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    using S = decltype(shape_of(g));
    if constexpr (std::is_same_v<S, ints<>>) {
      return broadcast_to(g, shape_of(x)); // one element broadcasts to any shape
    } else {
      if constexpr (!is_ints<S>)
        if (rank_of(g) == 0) return broadcast_to(g, shape_of(x));
      return broadcast_to(detail::keep_reduced(op, g, x), shape_of(x));
    }
  }
};

template <value X, class... A>
constexpr auto sum_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<sum_t>(x, at...);
}

namespace detail {
/// Returns how many elements of sizes `from` are reduced to one of `to`: a number, or for traced values possibly an
/// expression of a symbolic size.
template <class X>
constexpr auto count_reduced(X const& x, dims const& from, dims const& to) {
  if constexpr (traced_value<X>) return backend<typename decltype(base_tag<X>())::type>::count(base_value(x), from, to);
  else if constexpr (std::is_same_v<X, tensor>) return backend<tensor_base>::count(x, from, to);
  else return numel_per(from, to);
}
} // namespace detail

/// Arithmetic mean over axes. Integers are refused as in PyTorch: convert first. Decomposes into `sum` and a division.
inline constexpr struct mean_t : composite_operator<mean_t> {
  static constexpr auto op_name = "mean";
  static constexpr bool keeps_dtype_of_out = true, takes_complex = true;
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    if (!has_derivatives(dtype_of(x))) refuse::dtype_is_not_supported("mean", name(dtype_of(x)));
    auto const s = sum(x, at...);
    return div(s, detail::count_reduced(x, to_dims(shape_of(x)), to_dims(shape_of(s))));
  }
} mean{};

} // namespace varve
