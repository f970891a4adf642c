// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/grad_mode.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/in_place.hpp>

namespace varve::detail {

/// Returns the number of elements from the first to the last one of a layout. Returns 0 if elements overlap, or if the
/// layout is sparse.
index_t span_of(dims const& sizes, dims const& strides);
/// Returns a copy with the same layout and history, which is a leaf if the original is one.
template <class T>
T copy_as_laid_out(T const& t) {
  if (t.is_wrapped()) return clone(t);
  no_grad const off;
  T r;
  if (index_t const span = t.is_contiguous() || !t.has_data() ? 0 : span_of(t.sizes(), t.strides()); span > 0) {
    r = T::empty(dims{span}, t.dtype()).with_layout({t.sizes(), t.strides(), 0, true}, false);
    copy_(r, t);
  } else {
    r = clone(t);
  }
  if (t.has_history()) r.set_history(t.history());
  return r;
}

#if VARVE_DEFINES
VARVE_COLD VARVE_LIBRARY index_t span_of(dims const& sizes, dims const& strides) {
  index_t span = 1, count = 1;
  for (int k = 0; k < sizes.n; ++k) {
    index_t inside = 0; // of the dimensions with smaller strides
    for (int q = 0; q < sizes.n; ++q)
      if (q != k && (strides[q] < strides[k] || (strides[q] == strides[k] && q < k)))
        inside += (sizes[q] - 1) * strides[q];
    if (sizes[k] > 1 && strides[k] <= inside) return 0;
    span += (sizes[k] - 1) * strides[k], count *= sizes[k];
  }
  return span > 2 * count ? 0 : span;
}
#endif

} // namespace varve::detail
