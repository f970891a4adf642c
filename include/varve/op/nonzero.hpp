// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/item.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/sum.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// The places of the first `size` elements that are not 0, row by row, as a matrix [size, rank] of int64; rows of -1
/// where there are fewer (`torch.nonzero_static`). Attributes {size}, {how many of the first dimensions are lanes}: of
/// each lane for itself.
inline constexpr struct nonzero_static_t {
  static constexpr auto op_name = "nonzero_static";
  template <value X, class N>
  constexpr auto operator()(X const& x, N const& size) const {
    if constexpr (std::is_same_v<N, extent>) return bind<nonzero_static_t>(dims{size}, ints<0>{})(x);
    else return bind<nonzero_static_t>(detail::as_fact(size), ints<0>{})(x);
  }
} nonzero_static{};

template <>
struct rules<nonzero_static_t> {
  static constexpr auto schema = "(Tensor self, *, SymInt size, int lanes=0) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  template <class>
  using result = std::int64_t;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n != 1 || at[1].n != 1 || at[1][0] < 0 || at[1][0] > in[0].sizes.n)
      refuse::argument_is_invalid("nonzero_static", "the number of places is one number");
    return detail::require_sizes("nonzero_static", at[0]), at;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    int const lanes = static_cast<int>(at[1][0]);
    dims s;
    for (int k = 0; k < lanes; ++k) s.push_back(in[0].sizes[k]);
    s.push_back(at[0][0]);
    s.push_back(in[0].sizes.n - lanes);
    return {dtype::int64, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    int const lanes = static_cast<int>(at[1][0]), rank = x.sizes.n - lanes;
    index_t const size = at[0][0];
    index_t count = 1, each = 1;
    for (int k = 0; k < x.sizes.n; ++k) (k < lanes ? count : each) *= index_t(x.sizes[k]);
    dims at_element = x.sizes;
    for (int k = 0; k < at_element.n; ++k) at_element[k] = 0;
    R* to = out.data;
    T const* from = x.data;
    for (index_t lane = 0; lane < count; ++lane) {
      index_t found = 0;
      for (index_t i = 0; i < each; ++i) {
        if (*from != T(0) && found < size) {
          for (int k = 0; k < rank; ++k) *to++ = R(index_t(at_element[lanes + k]));
          ++found;
        }
        for (int k = x.sizes.n - 1; k >= 0; --k) { // the next element, row by row
          from += index_t(x.strides[k]);
          if (index_t const next = at_element[k] + 1; next < index_t(x.sizes[k])) {
            at_element[k] = next;
            break;
          }
          from -= index_t(x.strides[k]) * index_t(x.sizes[k]);
          at_element[k] = 0;
        }
      }
      for (; found < size; ++found)
        for (int k = 0; k < rank; ++k) *to++ = R(-1);
    }
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<nonzero_static_t>(op.a, on_dims([](dims const& l) { return dims{l[0] + 1}; }, op.b))(o.value);
  }
};

/// The places of all elements that are not 0, as a matrix [n, rank] of int64, row by row; tensors only, since n depends
/// on data: under a `fake_mode` with a shape environment it is a new symbol, and `data_dependent_error` without one.
template <class T>
  requires std::is_same_v<T, tensor>
T nonzero(T const& x) {
  extent const n = item(sum(to(ne(x, 0), dtype::int64)));
  check_is_size(n);
  return nonzero_static(x, n);
}
/// The elements of a tensor where a mask is true, both broadcast, as one row. Its gradient is 0 elsewhere. As of
/// `nonzero`, its size depends on data. `dtype_error` for a mask that is not bool.
template <class T>
  requires std::is_same_v<T, tensor>
T masked_select(T const& x, T const& mask) {
  if (mask.dtype() != dtype::bool_)
    refuse::dtype_is_not_supported("masked_select (a bool mask expected):", name(mask.dtype()));
  dims const all = broadcast(x.sizes(), mask.sizes());
  dims const row{numel(all)};
  T const places = nonzero(T(reshape(expand(mask, all), row)));
  return gather(reshape(expand(x, all), row), 0, reshape(places, dims{places.sizes()[0]}));
}

} // namespace varve
