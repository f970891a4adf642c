// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/block_plan.hpp>
#include <varve/graph/emit.hpp>
#include <varve/kernel/convert.hpp>

/// @file
/// Kernels over blocks of elements: how plans number them, and what each number is.
namespace varve::loop {

/// Numbers kernels in the order in which they are first asked for.
class kernel_numbers {
public:
  constexpr explicit kernel_numbers(block_keys& keys) : keys_(keys) {
    arithmetic_.assign(8 * dtypes, -1), convert_.assign(dtypes * dtypes, -1), fold_.assign(4 * dtypes, -1);
  }
  constexpr int arithmetic(block_op op, dtype t) {
    return numbered(arithmetic_[static_cast<int>(op) * dtypes + static_cast<int>(t)], {kernel_key::kind::arithmetic, op, t, t, nullptr});
  }
  constexpr int convert(dtype to, dtype from) {
    return numbered(convert_[static_cast<int>(to) * dtypes + static_cast<int>(from)], {kernel_key::kind::convert, block_op::add, to, from, nullptr});
  }
  constexpr int fold(sink_kind kind, dtype t) {
    int& number = fold_[static_cast<int>(kind) * dtypes + static_cast<int>(t)];
    if (number < 0) number = static_cast<int>(keys_.folds.size()), keys_.folds.push_back({kind, t});
    return number;
  }

protected:
  static constexpr int dtypes = 10;
  struct named {
    op_handle const* op;
    known what;
    int numbers[dtypes];
  };
  /// What is known of an operator: looked up once.
  constexpr named& entry(op_handle const* op) {
    for (named& n : ops_)
      if (n.op == op) return n;
    ops_.push_back({op, identify(*op), {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}});
    return ops_.back();
  }
  constexpr int operator_in(named& n, dtype t) { return numbered(n.numbers[static_cast<int>(t)], {kernel_key::kind::op, block_op::add, t, t, n.op}); }

private:
  block_keys& keys_;
  list<int> arithmetic_{}, convert_{}, fold_{};
  list<named> ops_{};
  constexpr int numbered(int& number, kernel_key const& k) {
    if (number < 0) number = static_cast<int>(keys_.kernels.size()), keys_.kernels.push_back(k);
    return number;
  }
};

/// The kernels that the compiler finds in a graph: operators by their lane kernels, in `float` where everything is, else in `double`, integers too, as in fused loops. Sums, differences
/// and products of integers are exact.
class lane_kernels : public kernel_numbers {
public:
  using kernel_numbers::kernel_numbers;
  static constexpr bool exact_dtypes = false;
  constexpr block_operation operation(step const& s, dtype const* in) {
    named& n = entry(s.op);
    bool narrow = s.type == dtype::float32 || s.type == dtype::bool_, same = true;
    for (int k = 0; k < s.count && k < 4; ++k) {
      narrow = narrow && (in[k] == dtype::float32 || in[k] == dtype::bool_);
      same = same && in[k] == s.type;
    }
    if (n.what >= known::add && n.what <= known::mul && same && s.type != dtype::bool_)
      return {arithmetic(n.what == known::add ? block_op::add : n.what == known::sub ? block_op::sub : block_op::mul, s.type), s.type, s.type};
    dtype const t = narrow ? dtype::float32 : dtype::float64;
    return {operator_in(n, t), t, t};
  }
};

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
/// `fma` and `fnma` exist for floating dtypes, `equal` (whose result is bool) for int64; null elsewhere.
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
/// The lane kernels of an operator as one function of elements.
template <auto Scalar, auto Register>
struct lane_functor {
  template <class V, class... X>
  VARVE_INLINE V operator()(V const& x, X const&... more) const {
    V const a[] = {x, more...};
    if constexpr (kernel::is_batch<V>) return Register(a);
    else return Scalar(a);
  }
};
} // namespace detail

/// Kernel `K` of the keys of `P`, for a program that the compiler plans: nothing else is instantiated.
template <class P, int K>
constexpr kernel::loop linked_kernel() {
  constexpr kernel_key k = P::keys.kernels[K];
  if constexpr (k.what == kernel_key::kind::arithmetic) return detail::block_kernel<k.arithmetic, type_of<k.type>>();
  else if constexpr (k.what == kernel_key::kind::convert) return &kernel::contiguous<type_of<k.type>, type_of<k.from>, kernel::detail::cast_element<type_of<k.type>, type_of<k.from>>, 1>;
  else if constexpr (k.type == dtype::float32) return &kernel::contiguous<float, float, detail::lane_functor<k.op->lane_f32, k.op->simd_f32>, k.op->arity>;
  else return &kernel::contiguous<double, double, detail::lane_functor<k.op->lane_f64, k.op->simd_f64>, k.op->arity>;
}
/// ... and how blocks are folded.
template <class P, int K>
constexpr kernel::detail::reducer linked_fold() {
  constexpr fold_key k = P::keys.folds[K];
  using T = type_of<k.type>;
  if constexpr (k.kind == sink_kind::greatest) return kernel::detail::make_reducer<kernel::max_fold, T>();
  else if constexpr (k.kind == sink_kind::least) return kernel::detail::make_reducer<kernel::min_fold, T>();
  else return kernel::detail::make_reducer<kernel::sum_fold, T>();
}

/// The kernel of `op` on blocks of a dtype only known now. (Templates only to cost nothing unless used.)
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

} // namespace varve::loop
