// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/ranges.hpp>
#include <varve/indexing/scatter.hpp>
#include <varve/op/nonzero.hpp>

#include <vector>

/// @file
/// Indices of several dimensions at once, as NumPy and PyTorch have them: tensors only. (Templates only to cost nothing
/// unless used.)
namespace varve {

namespace detail {
/// Index tensors as whole numbers: masks are their places, one for each of their dimensions.
template <class T>
std::vector<T> whole_indices(T const& x, std::vector<T> const& indices) {
  std::vector<T> r;
  for (T const& i : indices) {
    if (!i.defined()) {
      r.push_back(i);
    } else if (i.dtype() == dtype::bool_ || i.dtype() == dtype::uint8) {
      int const first = static_cast<int>(r.size());
      for (int k = 0; k < i.dim(); ++k)
        if (first + k >= x.dim() || i.sizes()[k] != x.sizes()[first + k])
          refuse::shapes_do_not_match("index (a mask)", i.sizes(), x.sizes());
      if (i.dim() == 0) refuse::argument_is_invalid("index", "a mask has dimensions");
      T const places = nonzero(i);
      for (int k = 0; k < i.dim(); ++k) r.push_back(select(places, axis<1>, dims{k}));
    } else {
      detail::require_index("index", i, true);
      r.push_back(to(i, dtype::int64));
    }
  }
  if (static_cast<int>(r.size()) > x.dim())
    refuse::argument_is_invalid("index", "there are more indices than dimensions");
  r.resize(static_cast<std::size_t>(x.dim()));
  return r;
}
/// The place, among all elements of x in a row, of each element of what indices choose; -1 where one is out of range.
/// Dimensions without an index stay; those of the indices, which broadcast, stand where the first is, or in front when
/// a dimension that stays lies between indices.
template <class T>
T places_of(T const& x, std::vector<T> const& indices, bool clamp_them = false) {
  std::vector<T> const at = whole_indices(x, indices);
  dims const stride = contiguous_strides(x.sizes());
  dims chosen;
  int first = -1, last = -1, count = 0;
  for (int k = 0; k < x.dim(); ++k)
    if (T const& i = at[static_cast<std::size_t>(k)]; i.defined()) {
      chosen = count++ ? broadcast(chosen, i.sizes()) : i.sizes();
      first = first < 0 ? k : first, last = k;
    }
  if (count == 0) return reshape(T(arange(numel(x.sizes()))), x.sizes());
  int const front = last - first + 1 == count ? first : 0;
  dims shape;
  for (int k = 0, kept = 0; k < x.dim() || kept <= front; ++k) {
    if (kept == front) {
      for (extent e : chosen) shape.push_back(e);
      ++kept;
    }
    if (k < x.dim() && !at[static_cast<std::size_t>(k)].defined()) shape.push_back(x.sizes()[k]), ++kept;
    if (k >= x.dim()) break;
  }
  T place = zeros(dims{}, dtype::int64), wrong;
  for (int k = 0, kept = 0; k < x.dim(); ++k) {
    T const& i = at[static_cast<std::size_t>(k)];
    index_t const n = x.sizes()[k]; // tensors only: a symbolic size is asked for here
    dims thin;                      // this index (or the numbers of this dimension) in the shape of the result
    for (int d = 0; d < shape.n; ++d) thin.push_back(1);
    T own;
    if (i.defined()) {
      for (int d = 0; d < i.dim(); ++d) thin[front + chosen.n - i.dim() + d] = i.sizes()[d];
      T const from_front = where(lt(i, 0), add(i, n), i);
      own = clamp_them ? T(clamp(from_front, 0, n - 1)) : from_front;
      T const out = reshape(T(logical_or(lt(from_front, 0), ge(from_front, n))), thin);
      wrong = wrong.defined() ? T(logical_or(wrong, out)) : out;
    } else {
      int const d = kept < front ? kept : kept + chosen.n;
      thin[d] = n, own = arange(n), ++kept;
    }
    place = add(place, T(mul(T(reshape(own, thin)), index_t(stride[k]))));
  }
  return expand(clamp_them ? place : T(where(wrong, -1, place)), shape);
}
} // namespace detail

/// The elements that indices of the first dimensions choose: tensors of whole numbers, which broadcast and may count
/// from the end, masks, or undefined ones where a dimension stays (`x[i, :, mask]`, `torch.ops.aten.index`). Repeated
/// elements add up in the gradient. Errors: `index_error`, `shape_error`, `dtype_error` for floating indices.
template <class T>
  requires std::is_same_v<T, tensor>
T index_by(T const& x, std::vector<T> const& indices) {
  T const at = detail::places_of(x, indices);
  return reshape(T(gather(T(ravel(x)), axis<0>, T(ravel(at)))), at.sizes());
}
/// x with values, which broadcast, written (or added) where indices say (`torch.index_put`).
template <class T>
  requires std::is_same_v<T, tensor>
T index_put(T const& x, std::vector<T> const& indices, T const& values, bool accumulate = false) {
  if (x.dtype() != values.dtype()) refuse::dtypes_differ("index_put", name(x.dtype()), name(values.dtype()));
  T const at = detail::places_of(x, indices);
  T const source = ravel(T(contiguous(T(expand(values, at.sizes())))));
  T const row = ravel(x), place = ravel(at);
  return reshape(accumulate ? T(scatter_add(row, axis<0>, place, source)) : T(scatter(row, axis<0>, place, source)),
                 x.sizes());
}
/// ... where a mask is true, else a number; indices beyond the range are moved into it.
template <class T>
  requires std::is_same_v<T, tensor>
T masked_index(T const& x, T const& mask, std::vector<T> const& indices, T const& fill) {
  T const at = detail::places_of(x, indices, true);
  T const y = reshape(T(gather(T(ravel(x)), axis<0>, T(ravel(at)))), at.sizes());
  return where(mask, y, T(to(fill, x.dtype())));
}
/// x with values added where indices say and a mask is true; indices beyond the range are moved into it.
template <class T>
  requires std::is_same_v<T, tensor>
T masked_index_put(T const& x, T const& mask, std::vector<T> const& indices, T const& values) {
  T const at = detail::places_of(x, indices, true);
  T const masked = where(mask, values, T(zeros(dims{}, values.dtype())));
  T const source = ravel(T(contiguous(T(expand(masked, at.sizes())))));
  return reshape(T(scatter_add(T(ravel(x)), axis<0>, T(ravel(at)), source)), x.sizes());
}

} // namespace varve
