// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/sum.hpp>
#include <varve/op/where.hpp>

namespace varve {

namespace detail {
template <class Tag>
struct extremum : rule::reduction {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    for (int k = 0; k < at[0].n; ++k)
      if (in[0].sizes[static_cast<int>(at[0][k])] == 0)
        refuse::argument_is_invalid(Tag::op_name, "an axis of size 0 has no extremum");
    return reduction::shape(at, in, n);
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    dims first = x.sizes;
    for (int k = 0; k < first.n; ++k)
      if (at[0].contains(k)) first[k] = 1;
    if (numel(x.sizes) == 0) return;
    for_each_reduced(at, out, strided<T const>{x.data, first, x.strides}, [](R& r, T v) { r = v; });
    for_each_reduced(at, out, x, [](R& r, T v) {
      if (v != v || rules<Tag>::better(v, r)) r = v;
    });
  }
  /// Returns weights that spread a derivative evenly over the elements equal to the extremum.
  template <class Op, value Y, value X>
  static constexpr auto weights(Op const& op, Y const& y, X const& x) {
    auto const hit = to(eq(x, keep_reduced(op, y, x)), type_fact(x));
    return div(hit, bind<sum_t>(fact_of<0>(op),
                                keepdim)(hit)); // not sum(hit, axes): a batch of rank-0 values has no axes to reduce
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& y, value auto const& x) {
    return bind<sum_t>(fact_of<0>(op), fact_of<1>(op))(mul(weights(op, y, x), d));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& y, value auto const& x) {
    return mul(weights(op, y, x), keep_reduced(op, g, x));
  }
};
} // namespace detail

/// Greatest element along axes.
template <>
struct rules<amax_t> : detail::extremum<amax_t> {
  static constexpr operator_class planned_as = operator_class::amax;
  static constexpr bool better(auto v, auto r) { return v > r; }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) {
    return detail::reduce_tensor<amax_t>(at, x, &detail::fold_for<kernel::max_fold>);
  }
};
/// Smallest element along axes.
template <>
struct rules<amin_t> : detail::extremum<amin_t> {
  static constexpr operator_class planned_as = operator_class::amin;
  static constexpr bool better(auto v, auto r) { return v < r; }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) {
    return detail::reduce_tensor<amin_t>(at, x, &detail::fold_for<kernel::min_fold>);
  }
};

template <value X, class... A>
constexpr auto amax_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<amax_t>(x, at...);
}
template <value X, class... A>
constexpr auto amin_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<amin_t>(x, at...);
}

} // namespace varve
