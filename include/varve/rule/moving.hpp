// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/strided.hpp>
#include <varve/value/strided.hpp>

#include <cstring>
#include <type_traits>

/// @file
/// Parts of operators that write elements to places, for static values and tensors.
namespace varve::detail {

/// Sets all elements of a fresh result to 0.
template <class R>
constexpr void clear(strided<R> const& out) {
  index_t const n = numel(out.sizes);
  if (std::is_constant_evaluated())
    for (index_t k = 0; k < n; ++k) out.data[k] = R{};
  else if (n > 0) std::memset(static_cast<void*>(out.data), 0, static_cast<std::size_t>(n) * sizeof(R));
}
template <class R>
constexpr void assign_row(index_t n, row_of<R> out, row_of<R const> x) {
  if (!std::is_constant_evaluated() && out.step == 1 && x.step == 1)
    std::memcpy(static_cast<void*>(out.data), x.data, static_cast<std::size_t>(n) * sizeof(R));
  else
    for (index_t i = 0; i < n; ++i) out[i] = x[i];
}
/// Writes the elements of `x` to those of `out`, which has the same sizes. They must not overlap.
template <class R>
constexpr void assign(strided<R> const& out, strided<R const> const& x) {
  for_each_row(x.sizes, [](index_t n, auto to, auto from) { detail::assign_row<R>(n, to, from); }, out, x);
}
/// Writes the elements of a tensor to those of another one of the same sizes. They must not overlap.
template <int Bytes>
void assign(strided<kernel::item<Bytes>> const& out, strided<kernel::item<Bytes> const> const& x) {
  index_t to[max_rank], from[max_rank];
  for (int d = 0; d < x.sizes.n; ++d) to[d] = out.strides[d], from[d] = x.strides[d];
  kernel::copy_strided(x.sizes, {static_cast<void*>(out.data), to, Bytes},
                       {static_cast<void const*>(x.data), from, Bytes});
}
/// Adds the elements of `x` to those of `out`, one after the other.
template <class R>
constexpr void add_row(index_t n, row_of<R> out, row_of<R const> x) {
  index_t i = 0;
  if constexpr (kernel::lane<R>)
    if (!std::is_constant_evaluated() && out.step == 1 && x.step == 1)
      for (constexpr index_t L = kernel::lanes<R>; i + L <= n; i += L)
        kernel::store(out.data + i, kernel::batch<R>(kernel::load(out.data + i) + kernel::load(x.data + i)));
  for (; i < n; ++i) out[i] = kernel::add<R>(out[i], x[i]);
}
} // namespace varve::detail
