// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/handle.hpp>
#include <varve/dispatch/tensor_eval.hpp>
#include <varve/kernel/reduce.hpp>
#include <varve/rule/broadcasting.hpp>

namespace varve {

namespace detail {
/// Returns nonnegative axes in ascending order. An empty list means all axes. Duplicates are refused.
inline constexpr auto normalize_axes = [](dims const& axes, dims const& sizes) {
  dims r;
  if (axes.n == 0)
    for (int k = 0; k < sizes.n; ++k) r.push_back(k);
  for (int k = 0; k < axes.n; ++k) {
    int const a = wrap_axis(axes[k].bits, sizes.n);
    if (r.contains(a)) refuse::argument_is_invalid("reduction", "an axis is named twice");
    int at = r.n;
    while (at > 0 && r[at - 1].bits > a) --at;
    if (sizes.n > 0) r.insert(at, a);
  }
  return r;
};
constexpr dims reduced(dims const& sizes, dims const& axes, bool keep) {
  dims r;
  for (int k = 0; k < sizes.n; ++k) {
    if (!axes.contains(k)) r.push_back(sizes[k]);
    else if (keep) r.push_back(1);
  }
  return r;
}
inline constexpr auto kept_shape = [](dims const& sizes, dims const& axes) { return reduced(sizes, axes, true); };
/// True if a large tensor should be copied before its columns are reduced. If no dimension is adjacent in memory, each
/// element that is read costs a whole cache line, again and again.
inline bool reads_columns_apart(tensor const& x, unsigned axes) {
  constexpr index_t large = 4096;
  int const last = x.dim() - 1;
  if (last < 1 || (axes >> last & 1u) != 0 || x.numel() < large) return false;
  for (int d = 0; d <= last; ++d)
    if (index_t const s = x.strides()[d].bits; x.sizes()[d] != 1 && (s == 0 || s == 1)) return false;
  return true;
}
/// Reduces a tensor by a SIMD fold of `kernel/reduce.hpp`.
template <class Tag>
VARVE_NOINLINE tensor reduce_tensor(attributes const& at, tensor const& x, kernel::detail::reducer (*fold)(dtype)) {
  meta const in[] = {meta_of(x)};
  meta const m = rules<Tag>::shape(at, in, 1);
  tensor r = tensor::empty(m.sizes, m.type);
  unsigned axes = 0;
  for (extent a : at[0]) axes |= 1u << a.bits;
  tensor const in_order = reads_columns_apart(x, axes) ? contiguous_copy(x) : x;
  kernel::detail::run_reduction(fold(x.dtype()), x.sizes(), operand_of(in_order, in_order.strides().numbers()), axes,
                                r.raw());
  return r;
}
template <class Fold>
kernel::detail::reducer fold_for(dtype t) {
  return on_dtype(t, "reduction", []<class T>() { return kernel::detail::make_reducer<Fold, T>(); });
}
} // namespace detail

namespace rule {
/// Family of reductions over axes. The attributes are {axes in ascending order, {keepdim}}. The operator provides
/// `compute`, `jvp` and `vjp`.
struct reduction {
  static constexpr op_kind kind = op_kind::reduction;
  static constexpr auto schema = "(Tensor self, int[] dim, bool keepdim=False) -> Tensor";
  static constexpr int arity = 1;
  /// The least number of attributes of a call: axes may be omitted, which means all axes, and so may keepdim.
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    return attributes(detail::normalize_axes(at.count > 0 ? at[0] : dims{}, in[0].sizes),
                      dims{at.count > 1 && at[1].n > 0 && at[1][0] != 0});
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    return {in[0].type, detail::reduced(in[0].sizes, at[0], at[1][0] != 0), in[0].number};
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    using tag = typename Op::tag;
    auto const along_axes = [&](auto const& v) {
      return bind<tag>(on_dims(detail::shifted, fact_of<0>(op)), fact_of<1>(op))(v);
    };
    auto const of_numbers = [](auto const& v) { // numbers have no axis: each is a row of one element
      auto const column = [](dims s) { return s.push_back(1), s; };
      return bind<tag>(ints<1>{}, ints<0>{})(reshape(v, on_dims(column, shape_of(v))));
    };
    auto const count = [](dims const& axes) { return dims{axes.n}; };
    return choose(same_fact(on_dims(count, fact_of<0>(op)), ints<0>{}), of_numbers, along_axes, o.value);
  }
};
} // namespace rule

namespace detail {
/// Returns a reduced value with its reduced dimensions restored, with size 1.
template <class Op, value V, value X>
constexpr auto keep_reduced(Op const& op, V const& v, X const& x) {
  return reshape(v, on_dims(kept_shape, shape_of(x), fact_of<0>(op)));
}
/// Calls `f(result element, element)` for every element of `x`. Reductions without a faster kernel run this way.
template <class R, class T, class F>
constexpr void for_each_reduced(attributes const& at, strided<R> out, strided<T const> x, F f) {
  dims step = x.sizes; // strides of the result along the operand's dimensions, 0 along reduced ones
  int k_out = 0;
  for (int k = 0; k < x.sizes.n; ++k) {
    bool const gone = at[0].contains(k);
    step[k] = gone ? extent(0) : out.strides[k_out];
    if (!gone || at[1][0]) ++k_out;
  }
  for_each_index(x.sizes, [&](dims const& i) {
    index_t o = 0;
    for (int k = 0; k < i.n; ++k) o += i[k].bits * step[k].bits;
    f(out.data[o], static_cast<T const&>(x.at(i)));
  });
}
/// Applies a reduction to `x`, `axes` and `keep`: the common front end of reductions.
template <class Tag, value X, class A = ints<>, class K = ints<0>>
constexpr auto reduce(X const& x, A const& axes = {}, K const& keep = {}) {
  return bind<Tag>(on_dims(normalize_axes, as_fact(axes), shape_of(x)), as_fact(keep))(x);
}
} // namespace detail

} // namespace varve
