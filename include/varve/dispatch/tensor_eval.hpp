// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <varve/dispatch/static_eval.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/kernel/pointwise.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

namespace detail {
/// How the elements of a tensor are laid out, for kernels that walk over a broadcast shape.
inline kernel::operand operand_of(tensor const& t, index_t const* strides) { return {t.raw(), strides, itemsize(t.dtype())}; }

/// A copy in another dtype, contiguous.
VARVE_NOINLINE inline tensor converted(tensor const& t, dtype type) {
  tensor r = tensor::empty(t.sizes(), type);
  kernel::convert<>(t.sizes(), operand_of(r, r.strides().v), type, operand_of(t, t.strides().v), t.dtype());
  return r;
}
/// The tensor itself when its elements follow one another, else a copy.
VARVE_NOINLINE inline tensor contiguous_copy(tensor const& t) {
  tensor r = tensor::empty(t.sizes(), t.dtype());
  kernel::copy_strided(t.sizes(), operand_of(r, r.strides().v), operand_of(t, t.strides().v));
  return r;
}

/// What the driver of elementwise operators needs to know of one, so that it exists once for all.
struct pointwise_info {
  char const* name;
  int arity;
  int conditions;
  bool floating, comparison;
  /// Contiguous kernel for a computing dtype.
  kernel::loop (*loop)(dtype);
};

template <class Tag>
struct pointwise_functor {
  template <class... V>
  VARVE_INLINE constexpr auto operator()(V const&... v) const {
    return rules<Tag>::kernel(v...);
  }
};
template <class Tag>
VARVE_COLD kernel::loop pointwise_loop(dtype t) {
  return on_dtype(t, Tag::op_name, []<class T>() -> kernel::loop {
    using R = rules<Tag>;
    if constexpr (R::promote == promotion::floating && !std::is_floating_point_v<T>) return nullptr;
    else if constexpr (R::promote == promotion::comparison) return &kernel::contiguous<bool, T, pointwise_functor<Tag>, R::arity>;
    else return &kernel::contiguous<T, T, pointwise_functor<Tag>, R::arity>;
  });
}
template <class Tag>
inline constexpr pointwise_info info_of{Tag::op_name,
                                        rules<Tag>::arity,
                                        rules<Tag>::conditions,
                                        rules<Tag>::promote == promotion::floating,
                                        rules<Tag>::promote == promotion::comparison,
                                        &pointwise_loop<Tag>};

VARVE_NOINLINE inline dtype pointwise_type(pointwise_info const& f, tensor const* const* x) {
  meta const first = meta_of(*x[f.conditions]);
  dtype t = first.type;
  if (f.arity - f.conditions == 2) t = result_type(first, meta_of(*x[f.conditions + 1]));
  if (f.arity - f.conditions == 3) t = result_type(first, meta_of(*x[f.conditions + 1]), meta_of(*x[f.conditions + 2]));
  return f.floating && category(t) < 2 ? default_dtype : t;
}

/// Runs an elementwise operator: promotion, broadcasting, allocation, one call of the contiguous kernel where shapes allow. `loops` caches kernels by dtype.
VARVE_NOINLINE inline tensor run_pointwise(pointwise_info const& f, kernel::loop* loops, tensor const* const* x) {
  constexpr int most = 4;
  tensor const* in[most];
  tensor copies[most];
  dtype t = x[0]->dtype();
  bool same = true, number = x[0]->is_number();
  for (int k = 1; k < f.arity; ++k) {
    same = same && x[k]->dtype() == t;
    number = number && x[k]->is_number();
  }
  if (!same || f.conditions || (f.floating && category(t) < 2)) t = pointwise_type(f, x);
  for (int k = 0; k < f.arity; ++k) {
    in[k] = x[k];
    if (x[k]->dtype() != t) {
      copies[k] = converted(*x[k], t);
      in[k] = &copies[k];
    }
  }
  dims sizes = in[0]->sizes();
  bool flat = in[0]->is_contiguous();
  for (int k = 1; k < f.arity; ++k) {
    flat = flat && in[k]->sizes() == sizes && in[k]->is_contiguous();
    if (!flat) sizes = broadcast(sizes, in[k]->sizes());
  }
  kernel::loop& loop = loops[static_cast<int>(t)];
  if (!loop) loop = f.loop(t);
  tensor out = tensor::empty(sizes, f.comparison ? dtype::bool_ : t);
  if (flat) {
    void const* p[most];
    for (int k = 0; k < f.arity; ++k) p[k] = in[k]->raw();
    if (index_t const n = out.numel()) loop(static_cast<std::size_t>(n), out.raw(), p);
  } else {
    dims strides[most];
    kernel::operand o[most];
    for (int k = 0; k < f.arity; ++k) {
      strides[k] = broadcast_strides(in[k]->sizes(), in[k]->strides(), sizes);
      o[k] = operand_of(*in[k], strides[k].v);
    }
    kernel::pointwise(sizes, operand_of(out, out.strides().v), o, f.arity, loop);
  }
  if (number) out.mark_number();
  return out;
}

template <class T>
strided<T> strided_of(tensor const& t) {
  return {static_cast<T*>(t.raw()), t.sizes(), t.strides()};
}
template <class R, class T, std::size_t K>
struct operand_element {
  using type = T;
};
template <class R, class T, std::size_t K>
  requires(R::kind == op_kind::indexing && R::arity > 1 && K == 1)
struct operand_element<R, T, K> {
  using type = std::int64_t;
};
template <class R, class T>
struct result_element {
  using type = T;
};
template <class R, class T>
  requires requires { typename R::template result<T>; }
struct result_element<R, T> {
  using type = typename R::template result<T>;
};

template <class Tag, class... X>
VARVE_NOINLINE tensor compute_tensor(attributes const& at, X const&... x) {
  using R = rules<Tag>;
  meta const in[] = {meta_of(x)..., meta{}};
  meta const m = R::shape(at, in, sizeof...(X));
  tensor out = tensor::empty(m.sizes, m.type);
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    on_dtype(nth<0>(x...).dtype(), Tag::op_name, [&]<class T>() {
      R::compute(at, strided_of<typename result_element<R, T>::type>(out), strided_of<typename operand_element<R, T, K>::type const>(x)...);
    });
    return out;
  }(std::index_sequence_for<X...>{});
}
} // namespace detail

/// Computes an operator on tensors that no transform or mode watches: elementwise operators by their kernels, views by sharing storage, all others by `compute`.
template <class Op, class... X>
tensor evaluate_tensor(Op const& op, X const&... x) {
  using tag = typename Op::tag;
  using R = rules<tag>;
  if constexpr (requires { R::make(op.boxed(), x...); }) {
    return R::make(op.boxed(), x...);
  } else if constexpr (R::kind == op_kind::pointwise) {
    static std::array<kernel::loop, 10> loops{};
    tensor const* in[] = {&x...};
    return detail::run_pointwise(detail::info_of<tag>, loops.data(), in);
  } else if constexpr (detail::has_layout<R>) {
    attributes const at = op.boxed();
    auto const& v = nth<0>(x...);
    layout l = R::layout_of(at, v.where());
    if (l.expressible) return v.with_layout(l);
    tensor const copy = detail::contiguous_copy(v);
    return copy.with_layout(R::layout_of(at, copy.where()));
  } else if constexpr (R::kind == op_kind::convert) {
    return detail::converted(nth<0>(x...), static_cast<dtype>(op.a[0]));
  } else {
    return detail::compute_tensor<tag>(op.boxed(), x...);
  }
}

} // namespace varve
