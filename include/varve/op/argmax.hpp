// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/reshape.hpp>
#include <varve/rule/reduction.hpp>

namespace varve {

/// Index (int64) of the first greatest element along one axis; NaN counts as greatest. Attributes {{axis}, {keepdim}}.
template <>
struct rules<argmax_t> : rule::reduction {
  static constexpr operator_class planned_as = operator_class::argmax;
  static constexpr bool differentiable = false;
  static constexpr int least_attributes = 1;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    bool const no_axis_to_take = at[0].n == 0 && in[0].sizes.n == 0;
    if (at[0].n != 1 && !no_axis_to_take)
      refuse::argument_is_invalid("argmax", "one axis is needed; reshape to rank 1 for all elements");
    return reduction::checked(at, in);
  }
  static constexpr auto schema = "(Tensor self, int dim, bool keepdim=False) -> Tensor";
  template <class T>
  using result = std::int64_t;
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    if (at[0].n > 0 && in[0].sizes[static_cast<int>(at[0][0])] == 0)
      refuse::argument_is_invalid("argmax", "an axis of size 0 has no greatest element");
    meta m = reduction::shape(at, in, n);
    m.type = dtype::int64;
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for (index_t k = 0, all = numel(out.sizes); k < all; ++k) out.data[k] = 0;
    if (at[0].n == 0) return; // rank 0, or a batch of such values
    int const a = static_cast<int>(at[0][0]);
    dims first = x.sizes;
    first[a] = 1;
    auto greater = [](T v, T r) { return v > r || (v != v && r == r); };
    detail::for_each_reduced(at, out, strided<T const>{x.data, first, x.strides}, [&](R& r, T const& v) {
      T const* p = &v;
      for (index_t k = 1; k < x.sizes[a]; ++k)
        if (greater(p[k * x.strides[a]], p[r * x.strides[a]])) r = k;
    });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) {
    meta const in[] = {meta_of(x)};
    T r = tensor::empty(shape(at, in, 1).sizes, dtype::int64);
    auto* out = static_cast<std::int64_t*>(r.raw());
    if (at[0].n == 0)
      for (index_t k = 0; k < r.numel(); ++k) out[k] = 0;
    else
      kernel::arg_reduce<>(true, x.dtype(), x.sizes(), detail::operand_of(x, x.strides().numbers()),
                           static_cast<int>(at[0][0]), out);
    return r;
  }
};

template <value X, class... A>
constexpr auto argmax_t::operator()(X const& x, A const&... at) const {
  if constexpr (sizeof...(A) == 0) return detail::reduce<argmax_t>(reshape(x, shape<-1>), axis<0>);
  else return detail::reduce<argmax_t>(x, at...);
}

} // namespace varve
