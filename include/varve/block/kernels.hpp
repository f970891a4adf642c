// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/chain.hpp>
#include <varve/emit/step.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/plan/table_steps.hpp>

/// @file
/// Kernels over blocks of elements: how plans number them, and which kernel each number stands for.
namespace varve::fusion {

/// The numbers of kernels, in the order of their first request.
class kernel_numbers {
public:
  constexpr explicit kernel_numbers(block_keys& keys) : keys_(keys) {
    arithmetic_.assign(8 * dtypes, -1), convert_.assign(dtypes * dtypes, -1), fold_.assign(4 * dtypes, -1);
  }
  constexpr int arithmetic(block_op op, dtype t) {
    return numbered(arithmetic_[static_cast<int>(op) * dtypes + static_cast<int>(t)],
                    {kernel_key::kind::arithmetic, op, t, t, nullptr, 0});
  }
  /// Returns the number of an arithmetic kernel in which the operands in the bit mask `single` are single elements.
  constexpr int arithmetic(block_op op, dtype t, int single) {
    for (kernel_key const& k : keys_.kernels)
      if (k.what == kernel_key::kind::arithmetic && k.arithmetic == op && k.type == t && k.single == single)
        return static_cast<int>(&k - keys_.kernels.data());
    keys_.kernels.push_back({kernel_key::kind::arithmetic, op, t, t, nullptr, single});
    return static_cast<int>(keys_.kernels.size()) - 1;
  }
  constexpr int convert(dtype to, dtype from) {
    return numbered(convert_[static_cast<int>(to) * dtypes + static_cast<int>(from)],
                    {kernel_key::kind::convert, block_op::add, to, from, nullptr, 0});
  }
  /// Returns the number of the kernel of chains, which is the same for all links.
  constexpr int chain(dtype t) {
    return numbered(chain_[t == dtype::float64], {kernel_key::kind::chain, block_op::add, t, t, nullptr, 0});
  }
  constexpr int fold(sink_kind kind, dtype t) {
    int& number = fold_[static_cast<int>(kind) * dtypes + static_cast<int>(t)];
    if (number < 0) number = static_cast<int>(keys_.folds.size()), keys_.folds.push_back({kind, t});
    return number;
  }

protected:
  static constexpr int dtypes = 12;
  struct named {
    op_handle const* op;
    operator_class what;
    int numbers[dtypes];
  };
  /// Returns what is known about an operator, which is looked up once.
  constexpr named& entry(op_handle const* op) {
    for (named& n : ops_)
      if (n.op == op) return n;
    ops_.push_back({op, identify(*op), {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}});
    return ops_.back();
  }
  constexpr int operator_in(named& n, dtype t) {
    return numbered(n.numbers[static_cast<int>(t)], {kernel_key::kind::op, block_op::add, t, t, n.op, 0});
  }

private:
  block_keys& keys_;
  list<int> arithmetic_{}, convert_{}, fold_{};
  list<named> ops_{};
  int chain_[2]{-1, -1};
  constexpr int numbered(int& number, kernel_key const& k) {
    if (number < 0) number = static_cast<int>(keys_.kernels.size()), keys_.kernels.push_back(k);
    return number;
  }
};

/// The kernels that the compiler finds in a graph. Operators use their lane kernels, as in fused loops: in `float` if
/// all values are float or bool, in int64 if all are integers, otherwise in `double`. Sums, differences and products of
/// integers are exact.
class lane_kernels : public kernel_numbers {
public:
  using kernel_numbers::kernel_numbers;
  static constexpr bool exact_dtypes = false;
  constexpr block_operation operation(step const& s, dtype const* in) {
    named& n = entry(s.op);
    bool narrow = s.type == dtype::float32 || s.type == dtype::bool_,
         whole = !is_floating(s.type) && s.op->has_integer_lanes, same = true;
    for (int k = 0; k < s.count && k < 4; ++k) {
      whole = whole && !is_floating(in[k]);
      narrow = narrow && (in[k] == dtype::float32 || in[k] == dtype::bool_);
      same = same && in[k] == s.type;
    }
    if (n.what >= operator_class::add && n.what <= operator_class::mul && same && s.type != dtype::bool_)
      return {arithmetic(n.what == operator_class::add   ? block_op::add
                         : n.what == operator_class::sub ? block_op::sub
                                                         : block_op::mul,
                         s.type),
              s.type, s.type};
    dtype const t = narrow ? dtype::float32 : whole ? dtype::int64 : dtype::float64;
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
/// Returns the kernel of an operation. `fma` and `fnma` exist for floating dtypes, `equal` (with a bool result) for
/// int64; null otherwise.
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
/// An operand of a kernel over blocks: memory, or one element for the whole block.
template <class T, bool Single>
struct block_operand {
  T const* p;
  VARVE_INLINE kernel::batch<T> at(std::size_t i) const { return kernel::load(p + i); }
  VARVE_INLINE kernel::batch<T> first(std::size_t i, std::size_t n) const { return kernel::load_first(p + i, n); }
};
template <class T>
struct block_operand<T, true> {
  kernel::batch<T> x;
  explicit block_operand(T const* p) : x(*p) {}
  VARVE_INLINE kernel::batch<T> const& at(std::size_t) const { return x; }
  VARVE_INLINE kernel::batch<T> const& first(std::size_t, std::size_t) const { return x; }
};
// The operands are parameters, as in `kernel::detail::run`.
template <class T, class F, class... X>
VARVE_INLINE void run_single(std::size_t n, T* out, X const... x) {
  using V = kernel::batch<T>;
  F const f{};
  std::size_t i = 0;
  for (; i + kernel::lanes<T> <= n; i += kernel::lanes<T>) kernel::store(out + i, V(f(V(x.at(i))...)));
  if (i < n) kernel::store_first<T>(out + i, n - i, V(f(V(x.first(i, n - i))...)));
}
/// Computes arithmetic of floating dtypes in which the operands in the bit mask `Single` are single elements.
/// `single_loop` lists the combinations that exist.
template <block_op Op, int Single, class T>
void single_kernel(std::size_t n, void* out, void const* const* in) {
  auto operand = [&]<int K>(std::integral_constant<int, K>) {
    return block_operand<T, (Single >> K & 1) != 0>{static_cast<T const*>(in[K])};
  };
  auto const a = operand(std::integral_constant<int, 0>{});
  auto const b = operand(std::integral_constant<int, 1>{});
  if constexpr (Op == block_op::fma || Op == block_op::fnma)
    detail::run_single<T, block_functor<Op>>(n, static_cast<T*>(out), a, b, operand(std::integral_constant<int, 2>{}));
  else detail::run_single<T, block_functor<Op>>(n, static_cast<T*>(out), a, b);
}
template <class T>
kernel::loop single_loop(block_op op, int single) {
  switch (op) {
  case block_op::add:
    return &single_kernel<block_op::add, 2, T>;
  case block_op::sub:
    return single == 1 ? &single_kernel<block_op::sub, 1, T> : &single_kernel<block_op::sub, 2, T>;
  case block_op::mul:
    return &single_kernel<block_op::mul, 2, T>;
  case block_op::fma:
    return single == 2   ? &single_kernel<block_op::fma, 2, T>
           : single == 4 ? &single_kernel<block_op::fma, 4, T>
                         : &single_kernel<block_op::fma, 6, T>;
  default:
    return single == 2   ? &single_kernel<block_op::fnma, 2, T>
           : single == 4 ? &single_kernel<block_op::fnma, 4, T>
                         : &single_kernel<block_op::fnma, 6, T>;
  }
}
/// The lane kernels of an operator as one function object on elements and registers.
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

/// Returns kernel `K` of the keys of `P`, for a program that the compiler plans. No other kernel is instantiated.
template <class P, int K>
constexpr kernel::loop linked_kernel() {
  constexpr kernel_key k = P::keys.kernels[K];
  if constexpr (k.single != 0) return &detail::single_kernel<k.arithmetic, k.single, type_of<k.type>>;
  else if constexpr (k.what == kernel_key::kind::arithmetic)
    return detail::block_kernel<k.arithmetic, type_of<k.type>>();
  else if constexpr (k.what == kernel_key::kind::convert)
    return kernel::detail::conversion<type_of<k.type>, type_of<k.from>>;
  else if constexpr (k.what == kernel_key::kind::chain) return &detail::run_chain<type_of<k.type>>;
  else if constexpr (k.type == dtype::float32)
    return &kernel::contiguous<float, float, detail::lane_functor<k.op->lanes()->f32, k.op->lanes()->simd_f32>,
                               k.op->arity>;
  else if constexpr (k.type == dtype::int64)
    return &kernel::contiguous<std::int64_t, std::int64_t,
                               detail::lane_functor<k.op->lanes()->i64, k.op->lanes()->simd_i64>, k.op->arity>;
  else
    return &kernel::contiguous<double, double, detail::lane_functor<k.op->lanes()->f64, k.op->lanes()->simd_f64>,
                               k.op->arity>;
}
/// Returns fold `K` of the keys of `P`, which folds blocks. No other fold is instantiated.
template <class P, int K>
constexpr kernel::detail::reducer linked_fold() {
  constexpr fold_key k = P::keys.folds[K];
  using T = type_of<k.type>;
  if constexpr (k.kind == sink_kind::greatest) return kernel::detail::make_reducer<kernel::max_fold, T>();
  else if constexpr (k.kind == sink_kind::least) return kernel::detail::make_reducer<kernel::min_fold, T>();
  else return kernel::detail::make_reducer<kernel::sum_fold, T>();
}

/// Returns the kernel of `op` on blocks of a dtype known at run time. (A template, so that it costs nothing unless
/// used.)
template <class = void>
VARVE_NOINLINE kernel::loop block_loop(block_op op, dtype t, int single = 0) {
  if (single)
    return t == dtype::float32 ? detail::single_loop<float>(op, single) : detail::single_loop<double>(op, single);
  return on_dtype(t, "fuse", [op]<class T>() -> kernel::loop {
    switch (op) {
    case block_op::add:
      return detail::block_kernel<block_op::add, T>();
    case block_op::sub:
      return detail::block_kernel<block_op::sub, T>();
    case block_op::mul:
      return detail::block_kernel<block_op::mul, T>();
    case block_op::greatest:
      return detail::block_kernel<block_op::greatest, T>();
    case block_op::least:
      return detail::block_kernel<block_op::least, T>();
    case block_op::fma:
      return detail::block_kernel<block_op::fma, T>();
    case block_op::fnma:
      return detail::block_kernel<block_op::fnma, T>();
    default:
      return detail::block_kernel<block_op::equal, T>();
    }
  });
}
/// Returns the fold of blocks of dtype `t` into results of `kernel::reduced_dtype`.
template <class = void>
VARVE_NOINLINE kernel::detail::reducer block_reducer(sink_kind kind, dtype t) {
  return on_dtype(t, "fuse", [kind]<class T>() {
    if (kind == sink_kind::greatest) return kernel::detail::make_reducer<kernel::max_fold, T>();
    if (kind == sink_kind::least) return kernel::detail::make_reducer<kernel::min_fold, T>();
    return kernel::detail::make_reducer<kernel::sum_fold, T>();
  });
}

} // namespace varve::fusion
