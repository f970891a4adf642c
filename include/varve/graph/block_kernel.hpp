// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/emit.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/kernel/reduce.hpp>

/// @file
/// The arithmetic that planning makes of operators, as kernels over blocks of elements. Operators themselves bring their own kernels (`op_table::pointwise`).
/// All is templates, so that a program which runs no graph contains none of it.
namespace varve::loop {

/// What a block is combined by.
enum class block_op : unsigned char { add, sub, mul, greatest, least, fma, fnma, equal };

namespace detail {
template <block_op Op>
struct block_functor {
  template <class V>
  VARVE_INLINE V operator()(V const& a, V const& b) const
    requires(Op <= block_op::least)
  {
    if constexpr (Op == block_op::add) return kernel::add(a, b);
    else if constexpr (Op == block_op::sub) return kernel::sub(a, b);
    else if constexpr (Op == block_op::mul) return kernel::mul(a, b);
    else if constexpr (Op == block_op::greatest) return kernel::maximum(a, b);
    else return kernel::minimum(a, b);
  }
  template <class V>
  VARVE_INLINE bool operator()(V const& a, V const& b) const
    requires(Op == block_op::equal)
  {
    return a == b;
  }
  template <class V>
  VARVE_INLINE V operator()(V const& a, V const& b, V const& c) const
    requires(Op == block_op::fma || Op == block_op::fnma)
  {
    if constexpr (Op == block_op::fma) return detail::multiply_add(a, b, c);
    else return detail::subtract_product(a, b, c);
  }
};
template <block_op Op, class T>
constexpr kernel::loop block_kernel() {
  if constexpr (Op == block_op::fma || Op == block_op::fnma) {
    if constexpr (std::is_floating_point_v<T>) return &kernel::contiguous<T, T, block_functor<Op>, 3>;
    else return nullptr;
  } else if constexpr (Op == block_op::equal) {
    if constexpr (std::is_same_v<T, std::int64_t>) return &kernel::contiguous<bool, T, block_functor<Op>, 2>;
    else return nullptr;
  } else {
    return &kernel::contiguous<T, T, block_functor<Op>, 2>;
  }
}
} // namespace detail

/// The kernel of `op` on blocks of dtype `t`. `fma` and `fnma` exist for floating dtypes, `equal` (whose result is bool) for int64; null elsewhere.
template <class = void>
VARVE_NOINLINE kernel::loop block_loop(block_op op, dtype t) {
  return on_dtype(t, "fuse", [op]<class T>() -> kernel::loop {
    switch (op) {
    case block_op::add: return detail::block_kernel<block_op::add, T>();
    case block_op::sub: return detail::block_kernel<block_op::sub, T>();
    case block_op::mul: return detail::block_kernel<block_op::mul, T>();
    case block_op::greatest: return detail::block_kernel<block_op::greatest, T>();
    case block_op::least: return detail::block_kernel<block_op::least, T>();
    case block_op::fma: return detail::block_kernel<block_op::fma, T>();
    case block_op::fnma: return detail::block_kernel<block_op::fnma, T>();
    default: return detail::block_kernel<block_op::equal, T>();
    }
  });
}

/// How blocks of dtype `t` are folded into results of `kernel::reduced_dtype`.
template <class = void>
VARVE_NOINLINE kernel::detail::reducer block_reducer(sink_kind kind, dtype t) {
  return on_dtype(t, "fuse", [kind]<class T>() {
    if (kind == sink_kind::greatest) return kernel::detail::make_reducer<kernel::max_fold, T>();
    if (kind == sink_kind::least) return kernel::detail::make_reducer<kernel::min_fold, T>();
    return kernel::detail::make_reducer<kernel::sum_fold, T>();
  });
}

/// Fills `n` elements of dtype `t` with a number.
template <class = void>
VARVE_NOINLINE void fill_elements(dtype t, void* out, index_t n, double value) {
  on_dtype(t, "fuse", [&]<class T>() {
    for (index_t k = 0; k < n; ++k) static_cast<T*>(out)[k] = kernel::cast<T>(value);
  });
}

} // namespace varve::loop
