// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/all.hpp>
#include <varve/trace/decompose.hpp>

namespace varve {

namespace detail {
/// Returns 0, 1, ..., n - 1 as int64, as the kind of value that x is.
template <class X>
constexpr auto counted_like(X const& x, index_t n) {
  return backend<typename decltype(base_tag<X>())::type>::arange(x, dims{n});
}
/// Returns an array filled with the int64 `n`, as the kind of value that x is.
template <class X>
constexpr auto integers_like(X const&, dims const& sizes, index_t n) {
  return backend<typename decltype(base_tag<X>())::type>::full(sizes, dims{static_cast<index_t>(dtype::int64)}, n);
}
/// Returns zeros to join with x: of its dtype, and its shape except for the size of one axis.
template <class X>
constexpr auto zeros_beside(X const& x, int axis, index_t size) {
  dims s = shape_of(x);
  s[axis] = size;
  return constant_like(x, s, 0);
}
/// Returns x padded with zeros along an axis.
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
  dims rows{1, taken, 1}; // before the axis, along it, after it
  for (int k = 0; k < at[0].n; ++k)
    if (k != axis) rows[k < axis ? 0 : 2] *= at[0][k];
  auto const spread = reshape(between_zeros(reshape(g, dims{rows[0] * taken, rows[2]}), 1, 0, (step - 1) * rows[2]),
                              dims{rows[0], taken * step, rows[2]});
  index_t const all = taken * step;
  auto const fitting = all > room ? slice(spread, 1, 0, room, 1) : spread;
  return reshape(between_zeros(fitting, 1, start, all > room ? 0 : room - all), at[0]);
};
/// Returns the positions of the elements of a strided region.
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
/// Writes a strided region. Each element of the result looks up the index of its element in the region, counted from 1;
/// 0 means none.
inline constexpr auto as_strided_scatter_in_others = [](attributes const& at, auto const& x, auto const& source) {
  dims const sizes = shape_of(x), from = shape_of(source), all{numel(sizes)}, flat{numel(from)};
  if (flat[0] == 0) return x;
  auto const none = integers_like(x, all, 0);
  auto const which = scatter_add(none, dims{0}, positions(x, from, at[0], at[1][0]), add(counted_like(x, flat[0]), 1));
  auto const found = gather(reshape(source, flat), dims{0}, maximum(sub(which, 1), 0));
  return reshape(where(gt(which, 0), found, reshape(x, all)), sizes);
};
} // namespace detail

/// Decompositions into PyTorch's core operators (`core_aten_decompositions`), for operators that the core set omits or
/// that only varve has. `log1p_exp` becomes exp and log1p, and `one_hot` a comparison; its indices are not checked, and
/// one out of range yields zeros. `slice_backward` becomes `cat` with zeros, `as_strided_backward` becomes
/// `scatter_add`, and `as_strided_scatter` becomes `gather` and `where`. Graphs contain no composites; `sigmoid`,
/// `relu`, `rsqrt` and similar operators are in the core set and remain.
inline constexpr struct core_decompositions_t {
  /// Returns the table. It is a template so that translation units that do not decompose need not instantiate it.
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
