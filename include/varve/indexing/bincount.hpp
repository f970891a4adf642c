// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/all.hpp>

#include <algorithm>

namespace varve {

/// Counts how often each of 0, 1, ... occurs in a vector of integers (`torch.bincount`), or sums the `weights` of its
/// occurrences. The result has at least `minlength` elements of int64 or the dtype of `weights`. Throws `value_error`
/// for negative integers. The size of the result depends on data, so traced and mapped values are not supported.
inline constexpr struct bincount_t {
  template <std::same_as<tensor> T>
  T operator()(T const& x, index_t minlength = 0) const {
    return (*this)(x, T(), minlength);
  }
  template <std::same_as<tensor> T>
  T operator()(T const& x, T const& weights, index_t minlength = 0) const {
    if (x.dim() != 1 || is_floating(x.dtype()) || minlength < 0)
      refuse::argument_is_invalid("bincount", "a vector of integers, and a length that is not negative, are expected");
    if (x.numel() == 0) return zeros(dims{minlength}, dtype::int64);
    if (item(amin(x)) < 0) refuse::argument_is_invalid("bincount", "integers must not be negative");
    index_t const n = (std::max)(index_t(item(amax(x))) + 1, minlength);
    T const each = weights.defined() ? weights : ones(x.sizes(), dtype::int64);
    return scatter_add(zeros(dims{n}, each.dtype()), dims{0}, to(x, dtype::int64), each);
  }
} bincount{};

} // namespace varve
