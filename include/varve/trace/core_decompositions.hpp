// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/all.hpp>
#include <varve/trace/decompose.hpp>

namespace varve {

namespace detail {
/// 0, 1, ..., n - 1 as int64, of the kind of x.
template <class X>
constexpr auto counted_like(X const& x, index_t n) {
  return backend<typename decltype(base_tag<X>())::type>::arange(x, dims{n});
}
/// An int64 for each element of a shape, of the kind of x.
template <class X>
constexpr auto integers_like(X const&, dims const& sizes, index_t n) {
  return backend<typename decltype(base_tag<X>())::type>::full(sizes, dims{static_cast<index_t>(dtype::int64)}, n);
}
/// Zeros beside x: of its dtype, with another size of one axis.
template <class X>
constexpr auto zeros_beside(X const& x, int axis, index_t size) {
  dims s = shape_of(x);
  s[axis] = size;
  return constant_like(x, s, 0);
}
/// x between zeros.
template <class X>
constexpr X between_zeros(X const& x, int axis, index_t before, index_t after) {
  X r = x;
  if (before > 0) r = cat(std::tuple(zeros_beside(r, axis, before), r), dims{axis});
  if (after > 0) r = cat(std::tuple(r, zeros_beside(r, axis, after)), dims{axis});
  return r;
}
inline constexpr auto log1p_exp_in_others = [](auto const& x) {
  auto const t = is_floating(dtype_of(x)) ? dtype_of(x) : default_dtype;
  auto const v = to(x, dims{static_cast<index_t>(t)});
  return add(maximum(v, 0), log1p(exp(neg(abs(v)))));
};
inline constexpr auto one_hot_in_others = [](attributes const& at, auto const& x) {
  return to(eq(unsqueeze(x, -1), counted_like(x, at[0][0])), type<std::int64_t>);
};
inline constexpr auto slice_backward_in_others = [](attributes const& at, auto const& g) {
  auto const axis = static_cast<int>(at[1][0]);
  index_t const size = at[0][axis], start = at[1][1], step = at[1][3], room = size - start,
                taken = dims(shape_of(g))[axis];
  if (step == 1 || taken == 0) return between_zeros(g, axis, start, room - taken);
  dims rows{1, taken, 1}; // before the axis, of it, behind it
  for (int k = 0; k < at[0].n; ++k)
    if (k != axis) rows[k < axis ? 0 : 2] *= at[0][k];
  auto const spread = reshape(between_zeros(reshape(g, dims{rows[0] * taken, rows[2]}), 1, 0, (step - 1) * rows[2]),
                              dims{rows[0], taken * step, rows[2]});
  index_t const all = taken * step;
  auto const fitting = all > room ? slice(spread, 1, 0, room, 1) : spread;
  return reshape(between_zeros(fitting, 1, start, all > room ? 0 : room - all), at[0]);
};
/// Where the elements of a region of strides lie.
template <class X>
constexpr auto positions(X const& x, dims const& sizes, dims const& strides, index_t offset) {
  auto r = integers_like(x, {}, offset);
  for (int k = 0; k < sizes.n; ++k) {
    dims s;
    for (int j = k; j < sizes.n; ++j) s.push_back(j == k ? sizes[k] : extent(1));
    r = add(r, reshape(mul(counted_like(x, sizes[k]), strides[k].number()), s));
  }
  return reshape(r, dims{numel(sizes)});
}
inline constexpr auto as_strided_backward_in_others = [](attributes const& at, auto const& g) {
  dims const from = shape_of(g), flat{numel(from)};
  return reshape(scatter_add(constant_like(g, dims{numel(at[0])}, 0), dims{0}, positions(g, from, at[1], at[2][0]),
                             reshape(g, flat)),
                 at[0]);
};
/// Each element of the result looks up which element of the region it is, counted from 1; 0 is none.
inline constexpr auto as_strided_scatter_in_others = [](attributes const& at, auto const& x, auto const& source) {
  dims const sizes = shape_of(x), from = shape_of(source), all{numel(sizes)}, flat{numel(from)};
  if (flat[0] == 0) return x;
  auto const none = integers_like(x, all, 0);
  auto const which = scatter_add(none, dims{0}, positions(x, from, at[0], at[1][0]), add(counted_like(x, flat[0]), 1));
  auto const found = gather(reshape(source, flat), dims{0}, maximum(sub(which, 1), 0));
  return reshape(where(gt(which, 0), found, reshape(x, all)), sizes);
};
} // namespace detail

/// The operators that PyTorch's core set does without, and those of varve's that it does not have, in operators of that
/// set
/// (`core_aten_decompositions`): `log1p_exp` by exp and log1p, `one_hot` by a comparison (whose indices are not
/// checked: one out of range gives zeros), `slice_backward` by `cat` with zeros, `as_strided_backward` by
/// `scatter_add`, `as_strided_scatter` by `gather` and `where`. Composites are none of graphs' operators; `sigmoid`,
/// `relu`, `rsqrt` and the like are in the core set and stay.
inline constexpr struct core_decompositions_t {
  /// The table itself. (A template for the sake of units that do not decompose.)
  template <class Of = log1p_exp_t>
  static constexpr auto table() {
    return decomposition_table(decomposition<Of>(detail::log1p_exp_in_others),
                               decomposition<one_hot_t>(detail::one_hot_in_others),
                               decomposition<slice_backward_t>(detail::slice_backward_in_others),
                               decomposition<as_strided_backward_t>(detail::as_strided_backward_in_others),
                               decomposition<as_strided_scatter_t>(detail::as_strided_scatter_in_others));
  }
} core_decompositions{};

} // namespace varve
