// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/ranges.hpp>
#include <varve/indexing/scatter.hpp>
#include <varve/op/nonzero.hpp>

#include <vector>

/// @file
/// Indexing by several dimensions at once, as in NumPy and PyTorch, for tensors only. (The functions are templates so
/// that unused ones cost nothing.)
namespace varve {

namespace detail {
/// Converts indices to int64, one for each dimension of x. A mask becomes the indices of its true elements, one tensor
/// for each of its dimensions.
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
/// Returns the index into the flattened x of each selected element. An index out of range gives -1 or, with
/// `clamp_them`, is clamped. Dimensions without an index stay. The dimensions of the indices, which broadcast, stand
/// where the first index is. If a remaining dimension lies between indices, they stand in front.
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
    index_t const n = x.sizes()[k]; // tensors only: this fixes a symbolic size
    dims thin;                      // shape that aligns this index (or this dimension) with the result
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

/// Returns the elements that indices of the first dimensions select (`x[i, :, mask]`, `torch.ops.aten.index`). An index
/// is a tensor of integers, which broadcast and may be negative to count from the end, a mask, or undefined to keep a
/// dimension. Gradients of elements selected repeatedly add up. Throws `index_error`, `shape_error`, or `dtype_error`
/// for floating-point indices.
template <class T>
  requires std::is_same_v<T, tensor>
T index_by(T const& x, std::vector<T> const& indices) {
  T const at = detail::places_of(x, indices);
  return reshape(T(gather(T(ravel(x)), axis<0>, T(ravel(at)))), at.sizes());
}
/// Returns a copy of x with values, which broadcast, written (or added) at indices (`torch.index_put`).
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
/// Returns the elements that indices select where a mask is true, and `fill` elsewhere. Indices out of range are
/// clamped.
template <class T>
  requires std::is_same_v<T, tensor>
T masked_index(T const& x, T const& mask, std::vector<T> const& indices, T const& fill) {
  T const at = detail::places_of(x, indices, true);
  T const y = reshape(T(gather(T(ravel(x)), axis<0>, T(ravel(at)))), at.sizes());
  return where(mask, y, T(to(fill, x.dtype())));
}
/// Returns a copy of x with values added at indices where a mask is true. Indices out of range are clamped.
template <class T>
  requires std::is_same_v<T, tensor>
T masked_index_put(T const& x, T const& mask, std::vector<T> const& indices, T const& values) {
  T const at = detail::places_of(x, indices, true);
  T const masked = where(mask, values, T(zeros(dims{}, values.dtype())));
  T const source = ravel(T(contiguous(T(expand(masked, at.sizes())))));
  return reshape(T(scatter_add(T(ravel(x)), axis<0>, T(ravel(at)), source)), x.sizes());
}

} // namespace varve
