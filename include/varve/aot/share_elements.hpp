// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/tensor.hpp>

#include <cstdint>

namespace varve::detail {

/// True if two tensors may share elements: the ranges of memory that they span overlap.
inline bool share_elements(tensor const& a, tensor const& b) {
  if (!a.defined() || !b.defined() || !a.shares_storage(b)) return false;
  auto const span = [](tensor const& t) {
    index_t last = 0;
    for (int k = 0; k < t.dim(); ++k) {
      if (t.sizes()[k] == 0) return index_t{0};
      last += (t.sizes()[k] - 1) * t.strides()[k];
    }
    return (last + 1) * static_cast<index_t>(itemsize(t.dtype()));
  };
  auto const from = [](tensor const& t) { return reinterpret_cast<std::uintptr_t>(t.raw()); };
  return from(a) < from(b) + static_cast<std::uintptr_t>(span(b)) &&
         from(b) < from(a) + static_cast<std::uintptr_t>(span(a));
}

} // namespace varve::detail
