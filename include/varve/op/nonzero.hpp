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

/// The indices of the first `size` nonzero elements in row-major order, as an int64 matrix [size, rank]. If there are
/// fewer, the remaining rows are -1 (`torch.nonzero_static`). Attributes {size}, {lanes}: the first `lanes` dimensions
/// are mapped, and each lane is searched separately.
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
        for (int k = x.sizes.n - 1; k >= 0; --k) { // the next element in row-major order
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

/// Returns the indices of all nonzero elements in row-major order, as an int64 matrix [n, rank]. It accepts tensors
/// only, because n depends on data. Under a `fake_mode`, n is a new symbol; without a shape environment it throws
/// `data_dependent_error`.
template <class T>
  requires std::is_same_v<T, tensor>
T nonzero(T const& x) {
  extent const n = item(sum(to(ne(x, 0), dtype::int64)));
  check_is_size(n);
  return nonzero_static(x, n);
}
/// Returns the elements of a tensor where a mask is true, as one row; x and mask broadcast. The gradient is 0
/// elsewhere. The size of the result depends on data, as for `nonzero`. Throws `dtype_error` if the mask is not bool.
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
