// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/whole_call.hpp>
#include <varve/kernel/row_norm.hpp>

/// @file
/// Tensors as rows along their last axes, for composites that normalize them in one call (`whole_call.hpp`).
namespace varve::detail {

/// Calls `f.operator()<T>()` for float or double.
template <class F>
void on_floats(dtype t, F const& f) {
  if (t == dtype::float32) f.template operator()<float>();
  else f.template operator()<double>();
}
template <class T>
T const* floats_of(tensor const& t) {
  return static_cast<T const*>(t.raw(sizeof(T)));
}
/// True if a tensor of float32 or float64 has elements, and rows of `n` are not too long for the kernels.
inline bool has_rows(tensor const& x, index_t n) {
  tensor const* const all[] = {&x};
  return n > 0 && n <= kernel::longest_row && are_floats(all, 1) && numel(x.sizes()).bits > 0;
}
/// True if a tensor of float32 or float64 can be normalized along one axis in the first cache: it has at most 2048
/// elements.
inline bool has_short_columns(tensor const& x, dims const& axis) {
  tensor const* const all[] = {&x};
  int const rank = x.dim();
  if (axis.n != 1 || axis[0] < -rank || axis[0] >= rank || !are_floats(all, 1)) return false;
  index_t n = 1;
  for (extent const size : x.sizes()) n = is_symbol(size) || size.bits > 2048 ? 0 : n * size.bits;
  return n > 0 && n <= 2048;
}
/// Returns the size of an axis if it is the last one and not symbolic, else -1.
inline index_t size_of_last(tensor const& x, dims const& axis) {
  int const rank = x.dim();
  if (axis.n != 1 || rank == 0 || wrap_axis(axis[0], rank) != rank - 1 || is_symbol(x.sizes()[rank - 1])) return -1;
  return x.sizes()[rank - 1].bits;
}
inline tensor contiguous_or_copy(tensor const& x) { return x.is_contiguous() ? x : contiguous_copy(x); }
/// Calls `f(first, last)` for rows of `n` elements of a tensor, in threads that share them if there are many.
template <class F>
void share_rows(index_t n, tensor const& x, F const& f) {
  index_t const all = numel(x.sizes()).bits;
  fusion::share(all / n, 1, all, f);
}
/// Returns the result that `Kernel::run<T>(rows, n, x..., result)` computes from tensors of one shape, which are copied
/// unless they are contiguous.
template <class Kernel, class... X>
tensor map_rows(index_t n, tensor const& x, X const&... more) {
  tensor const all[] = {contiguous_or_copy(x), contiguous_or_copy(more)...};
  tensor r = tensor::empty(x.sizes(), x.dtype());
  on_floats(x.dtype(), [&]<class T>() {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      T const* const in[] = {floats_of<T>(all[K])...};
      T* const out = static_cast<T*>(r.raw());
      share_rows(n, x, [&](index_t from, index_t to) {
        Kernel::template run<T>(to - from, n, (in[K] + from * n)..., out + from * n);
      });
    }(std::make_index_sequence<1 + sizeof...(X)>{});
  });
  return r;
}
/// True if a cotangent is defined and has the shape and floating dtype of the tensor that it belongs to, so that one
/// kernel can read both.
inline bool are_alike(tensor const& g, tensor const& like) {
  tensor const* const all[] = {&g, &like};
  return g.defined() && are_floats(all, 2) && g.sizes() == like.sizes();
}
} // namespace varve::detail
