// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/boxed.hpp>
#include <varve/dispatch/static_eval.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/kernel/pointwise.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

namespace detail {
/// Returns a tensor as a kernel operand with the given strides, for kernels that walk over a broadcast shape.
inline kernel::operand operand_of(tensor const& t, index_t const* strides) {
  return {t.raw(), strides, itemsize(t.dtype())};
}

/// The real or imaginary parts of a complex tensor, or a real tensor, as an operand of a kernel.
struct part_operand {
  dims strides;
  kernel::operand of;
  part_operand(tensor const& t, bool imaginary)
      : strides(t.strides()),
        of(static_cast<unsigned char*>(t.raw()) + (imaginary ? itemsize(part_type(t.dtype())) : 0), nullptr,
           itemsize(part_type(t.dtype()))) {
    if (is_complex(t.dtype()))
      for (int k = 0; k < strides.n; ++k) strides[k] = strides[k] * 2;
    of.strides = strides.numbers();
  }
  part_operand(part_operand const&) = delete;
};
/// Returns a view of complex numbers whose last dimension, of size 2, contains their parts.
VARVE_NOINLINE inline tensor parts_in_memory(tensor const& z) {
  dims sizes = z.sizes(), strides = z.strides();
  for (int k = 0; k < strides.n; ++k) strides[k] = strides[k] * 2;
  sizes.push_back(2), strides.push_back(1);
  return z.reinterpreted({sizes, strides, z.where().offset * 2, true}, part_type(z.dtype()));
}
/// Returns a copy of a tensor converted to or from a complex dtype. The imaginary part of a real number is 0; that of a
/// complex number is lost when it becomes real. As a bool, a complex number is true if either part is.
template <class = void>
VARVE_NOINLINE tensor converted_complex(tensor const& t, dtype type) {
  tensor r = tensor::empty(t.sizes(), type);
  bool const to_complex = is_complex(type), from_complex = is_complex(t.dtype());
  if (type == dtype::bool_) { // true if either part is
    tensor const other = tensor::empty(t.sizes(), type);
    kernel::convert<>(t.sizes(), part_operand(r, false).of, type, part_operand(t, false).of, part_type(t.dtype()));
    kernel::convert<>(t.sizes(), part_operand(other, false).of, type, part_operand(t, true).of, part_type(t.dtype()));
    for (index_t k = 0, n = r.numel(); k < n; ++k) static_cast<bool*>(r.raw())[k] |= static_cast<bool*>(other.raw())[k];
    return r;
  }
  if (to_complex && !from_complex) std::memset(r.raw(), 0, static_cast<std::size_t>(r.numel() * itemsize(type)));
  for (int k = 0; k < 1 + (to_complex && from_complex); ++k)
    kernel::convert<>(t.sizes(), part_operand(r, k == 1).of, part_type(type), part_operand(t, k == 1).of,
                      part_type(t.dtype()));
  if (t.is_number()) r.mark_number();
  return r;
}
/// Returns a contiguous copy in another dtype. (A template, like its callers, only so that it costs nothing unless
/// used: it needs the conversions of all pairs of dtypes.)
template <class = void>
VARVE_NOINLINE tensor converted(tensor const& t, dtype type) {
  if (is_complex(type) != is_complex(t.dtype()) || (is_complex(type) && type != t.dtype())) {
    if (is_compact(type)) return converted(converted_complex<>(t, computed_in(type)), type);
    return converted_complex<>(is_compact(t.dtype()) ? converted(t, computed_in(t.dtype())) : t, type);
  }
  // Compact dtypes convert only from and to the dtype in which they are computed.
  if (is_compact(t.dtype()) && type != t.dtype() && type != computed_in(t.dtype()))
    return converted(converted(t, computed_in(t.dtype())), type);
  if (is_compact(type) && t.dtype() != type && t.dtype() != computed_in(type))
    return converted(converted(t, computed_in(type)), type);
  tensor r = tensor::empty(t.sizes(), type);
  kernel::convert<>(t.sizes(), operand_of(r, r.strides().numbers()), type, operand_of(t, t.strides().numbers()),
                    t.dtype());
  return r;
}
/// Returns a contiguous copy of a tensor.
tensor contiguous_copy(tensor const& t);

/// Returns what a view shows of a tensor whose strides cannot express it, as a view of a copy.
template <class R>
VARVE_NOINLINE tensor shown_of_copy(attributes const& at, tensor const& t) {
  tensor const copy = contiguous_copy(t);
  return copy.with_layout(R::layout_of(at, copy.where()), false);
}

/// The properties of an elementwise operator that the code running it needs, so that this code exists once for all
/// operators.
struct pointwise_info {
  char const* name;
  int arity;
  int conditions;
  bool floating, comparison, takes_bool;
  /// Contiguous kernels by the dtype in which they compute; null where there is none.
  kernel::loop loops[12];
  /// Kernels of float and of double operands beside one element.
  kernel::loops_beside beside[2]{};
  /// True if the result depends on the dtype itself, so that it cannot be computed in another dtype and rounded.
  bool of_own_dtype = false;
  kernel::loops_beside beside_of(dtype t) const {
    if (t == dtype::float32) return beside[0];
    if (t == dtype::float64) return beside[1];
    return {};
  }
};

template <class Tag>
struct pointwise_functor {
  template <class... V>
  VARVE_INLINE constexpr auto operator()(V const&... v) const {
    return rules<Tag>::kernel(v...);
  }
};
template <class R>
inline constexpr bool accepts_bool = !requires { requires !R::accepts_bool; };
template <class R>
inline constexpr bool is_of_own_dtype = requires { requires R::of_own_dtype; };
/// True unless the rules of an elementwise operator state that it has no kernel of a dtype.
template <class R, class T>
constexpr bool takes_dtype() {
  if constexpr (requires { R::takes(dtype_of_type<T>()); }) return R::takes(dtype_of_type<T>());
  else return true;
}
template <class Tag, class T>
constexpr kernel::loop pointwise_loop() {
  using R = rules<Tag>;
  if constexpr (!takes_dtype<R, T>()) return nullptr;
  else if constexpr (R::promote == promotion::floating && !std::is_floating_point_v<T>) return nullptr;
  else if constexpr (std::is_same_v<T, bool> && !accepts_bool<R>) return nullptr;
  else if constexpr (R::promote == promotion::comparison)
    return &kernel::contiguous<bool, T, pointwise_functor<Tag>, R::arity>;
  else return &kernel::contiguous<T, T, pointwise_functor<Tag>, R::arity>;
}
/// Returns the kernels beside one element of an operator with two operands. There are none if the operator itself takes
/// longer than to repeat the element.
template <class Tag, class T>
constexpr kernel::loops_beside pointwise_beside() {
  using R = rules<Tag>;
  if constexpr (R::arity == 2 && R::promote != promotion::comparison && !requires { requires R::is_slow; })
    return {{kernel::beside<T, pointwise_functor<Tag>, 2, 1>(), kernel::beside<T, pointwise_functor<Tag>, 2, 2>()}};
  else return {};
}
template <class Tag>
inline constexpr pointwise_info info_of{Tag::op_name,
                                        rules<Tag>::arity,
                                        rules<Tag>::conditions,
                                        rules<Tag>::promote == promotion::floating,
                                        rules<Tag>::promote == promotion::comparison,
                                        accepts_bool<rules<Tag>>,
                                        {pointwise_loop<Tag, bool>(), pointwise_loop<Tag, std::uint8_t>(),
                                         pointwise_loop<Tag, std::int32_t>(), pointwise_loop<Tag, std::int64_t>(),
                                         nullptr, nullptr, pointwise_loop<Tag, float>(), pointwise_loop<Tag, double>(),
                                         nullptr, nullptr, nullptr, nullptr},
                                        {pointwise_beside<Tag, float>(), pointwise_beside<Tag, double>()},
                                        is_of_own_dtype<rules<Tag>>};

dtype pointwise_type(pointwise_info const& f, tensor const* const* x);

template <class = void>
tensor run_pointwise(pointwise_info const& f, tensor const* const* x);

/// Runs an elementwise operator in the general case: converts operands of other dtypes and broadcasts shapes.
template <class = void>
VARVE_NOINLINE tensor run_pointwise_general(pointwise_info const& f, tensor const* const* x) {
  constexpr int most = 4;
  constexpr index_t many = 64; // with this many elements or more, converted block by block instead of copied
  kernel::loop convert[most]{};
  tensor const* in[most];
  tensor copies[most];
  dtype const t = pointwise_type(f, x);
  bool number = true;
  dims sizes;
  for (int k = 0; k < f.arity; ++k) {
    in[k] = x[k];
    number = number && x[k]->is_number();
    if (!f.takes_bool && x[k]->dtype() == dtype::bool_) refuse::dtype_is_not_supported(f.name, "bool");
    if (k < f.conditions) require_condition(f.name, x[k]->dtype());
    if (x[k]->dtype() != t) {
      if (k < f.conditions && x[k]->dtype() != dtype::bool_) // uint8 has many true values, bool one
        copies[k] = converted(*x[k], dtype::bool_), in[k] = &copies[k];
      if (in[k]->dtype() != t && in[k]->numel() >= many) convert[k] = kernel::convert_loop<>(t, in[k]->dtype());
      else if (in[k]->dtype() != t) copies[k] = converted(*in[k], t), in[k] = &copies[k];
    }
    sizes = k ? broadcast(sizes, x[k]->sizes()) : x[k]->sizes();
  }
  kernel::loop const loop = f.loops[static_cast<int>(t)];
  if (!loop) refuse::dtype_is_not_supported(f.name, name(t));
  tensor out = tensor::empty(sizes, f.comparison ? dtype::bool_ : t);
  dims strides[most];
  kernel::operand o[most];
  for (int k = 0; k < f.arity; ++k) {
    strides[k] = broadcast_strides(in[k]->sizes(), in[k]->strides(), sizes);
    o[k] = operand_of(*in[k], strides[k].numbers());
    o[k].convert = convert[k];
  }
  kernel::pointwise(sizes, operand_of(out, out.strides().numbers()), o, f.arity, loop, f.beside_of(t));
  if (number) out.mark_number();
  return out;
}
/// True if every element of a tensor is the same one: it is a plain number, or one element expanded to the shape of
/// `other`, with the same dtype.
inline bool repeats_one_element(tensor const& t, tensor const& other) {
  if (t.is_number()) return t.dim() == 0;
  if (t.dtype() != other.dtype() || !(t.sizes() == other.sizes())) return false;
  for (index_t s : t.strides())
    if (s != 0) return false;
  return t.numel() > 0;
}
/// Runs an elementwise operator on a small floating tensor beside one element: repeats the element in a buffer and
/// calls the kernel once. Returns an undefined tensor if that does not apply.
template <class = void>
VARVE_NOINLINE tensor run_beside_one_element(pointwise_info const& f, tensor const* const* x) {
  constexpr index_t most = 512; // bytes
  for (int at = 1; at >= 0; --at) {
    tensor const &one = *x[at], &other = *x[1 - at];
    dtype const t = other.dtype();
    if (!(t == dtype::float32 || t == dtype::float64) || other.is_number() || !other.is_contiguous() ||
        !repeats_one_element(one, other) || (one.dtype() == dtype::bool_ && !f.takes_bool))
      continue;
    index_t const n = other.numel();
    kernel::loop const loop = f.loops[static_cast<int>(t)];
    if (n * itemsize(t) > most || !loop) continue;
    alignas(64) unsigned char repeated[most];
    auto const repeat = [&]<class E>(E v) {
      for (index_t k = 0; k < n; ++k) reinterpret_cast<E*>(repeated)[k] = v;
    };
    if (t == dtype::float32)
      repeat(one.is_number() ? static_cast<float>(one.item<double>()) : *static_cast<float const*>(one.raw(4)));
    else repeat(one.is_number() ? one.item<double>() : *static_cast<double const*>(one.raw(8)));
    void const* p[2];
    p[at] = repeated;
    p[1 - at] = other.raw(itemsize(t));
    tensor out = tensor::empty(other.sizes(), f.comparison ? dtype::bool_ : t);
    if (n) loop(static_cast<std::size_t>(n), out.raw(0), p);
    return out;
  }
  return {};
}
/// Returns a tensor of a compact dtype converted to the dtype in which it is computed, and others as they are.
template <class T>
T widened(T const& t) {
  return is_compact(t.dtype()) ? converted(t, computed_in(t.dtype())) : t;
}
/// Runs an elementwise operator on compact operands. They are converted to the dtype of the result, then to that in
/// which it is computed. Beside float16 and bfloat16 a plain number keeps its digits, unless it is compared. Beside
/// integers it wraps around as they do.
template <class = void>
VARVE_NOINLINE tensor run_pointwise_compact(pointwise_info const& f, tensor const* const* x) {
  dtype const t = pointwise_type(f, x);
  if (!f.loops[static_cast<int>(computed_in(t))] || (f.of_own_dtype && is_compact(t)))
    refuse::dtype_is_not_supported(f.name, name(t));
  tensor in[4];
  tensor const* p[4];
  for (int k = 0; k < f.arity; ++k) {
    dtype const own = x[k]->dtype();
    bool const is_condition = k < f.conditions, is_exact = x[k]->is_number() && !f.comparison && is_floating(t);
    if (!f.takes_bool && own == dtype::bool_) refuse::dtype_is_not_supported(f.name, "bool");
    if (is_condition)
      require_condition(f.name, own), in[k] = own == dtype::bool_ ? *x[k] : converted(*x[k], dtype::bool_);
    else in[k] = widened(is_compact(t) && own != t && !is_exact ? converted(*x[k], t) : *x[k]);
    p[k] = &in[k];
  }
  tensor const y = run_pointwise(f, p);
  return f.comparison || y.dtype() == t ? y : converted(y, t);
}
/// Runs an elementwise operator if one call of the contiguous kernel does not suffice.
template <class = void>
VARVE_NOINLINE tensor run_pointwise_apart(pointwise_info const& f, tensor const* const* x) {
  for (int k = 0; k < f.arity; ++k)
    if (is_compact(x[k]->dtype())) [[unlikely]]
      return run_pointwise_compact<>(f, x);
  if (f.arity == 2) {
    tensor r = run_beside_one_element<>(f, x);
    if (r.defined()) return r;
  }
  return run_pointwise_general(f, x);
}
/// Runs an elementwise operator. Contiguous operands of one dtype and shape take one call of the kernel.
template <class>
VARVE_NOINLINE tensor run_pointwise(pointwise_info const& f, tensor const* const* x) {
  dtype const t = x[0]->dtype();
  dims const& sizes = x[0]->sizes();
  index_t const item = itemsize(t);
  kernel::loop const loop = f.loops[static_cast<int>(t)];
  void const* p[4];
  bool flat = loop && !f.conditions;
  for (int k = 0; flat && k < f.arity; ++k) {
    tensor const& in = *x[k];
    flat = in.dtype() == t && in.is_contiguous() && !in.is_number() && (k == 0 || known_equal(in.sizes(), sizes));
    if (flat) p[k] = in.raw(item);
  }
  if (!flat) return run_pointwise_apart<>(f, x);
  tensor out = tensor::empty(sizes, f.comparison ? dtype::bool_ : t);
  index_t const n = numel(sizes).number();
  int const bytes[] = {itemsize(out.dtype()), static_cast<int>(item), static_cast<int>(item), static_cast<int>(item),
                       static_cast<int>(item)};
  if (n) kernel::detail::pointwise_flat(n, out.raw(0), p, bytes, f.arity, loop);
  return out;
}

template <class T>
strided<T> strided_of(tensor const& t) {
  return {static_cast<T*>(t.raw()), t.sizes(), t.strides()};
}
/// True if an operator only moves elements of its first operand, so that it needs only their size.
template <class R>
inline constexpr bool moves_elements = requires { requires R::moves_elements; };
/// Calls `f` with the types for which `compute` is instantiated.
template <class R, class F>
void on_elements(dtype t, char const* op, F&& f) {
  if constexpr (requires { typename R::only; }) f.template operator()<typename R::only>();
  else if constexpr (requires { requires R::only_floating; }) {
    if (t == dtype::float32) return f.template operator()<float>();
    if (t == dtype::float64) return f.template operator()<double>();
    refuse::dtype_is_not_supported(op, name(t));
  } else if constexpr (moves_elements<R>)
    require_dtype(op, dims{static_cast<index_t>(t)}), kernel::on_item(itemsize(t), f);
  else on_dtype(t, op, f);
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

/// True if the elements in the rows of a large tensor are far from adjacent in memory, but adjacent along another
/// dimension.
inline bool is_turned(tensor const& t) {
  int const inner = t.dim() - 1;
  if (inner < 1 || t.numel() < 4096 || t.strides()[inner] < 8) return false;
  bool any = false;
  for (int d = 0; d < inner; ++d) any = any || (t.strides()[d] == 1 && t.sizes()[d] > 1);
  return any;
}
/// True for operators that check and then read their indices, operand 1. This is fastest if the indices are contiguous.
template <class R>
inline constexpr bool reads_indices = [] {
  if constexpr (R::kind == op_kind::indexing) return R::arity > 1;
  else return false;
}();
template <class Tag, class... X>
VARVE_NOINLINE tensor compute_tensor(attributes const& at, X const&... x) {
  if (at.any_symbol()) [[unlikely]] // kernels have numbers only
    return compute_tensor<Tag>(at.as_numbers(), x...);
  using R = rules<Tag>;
  if constexpr (reads_indices<R>)
    if (is_turned(nth<1>(x...))) {
      tensor const by_rows = contiguous_copy(nth<1>(x...));
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return compute_tensor<Tag>(at, (K == 1 ? by_rows : x)...);
      }(std::index_sequence_for<X...>{});
    }
  meta const in[] = {meta_of(x)..., meta{}};
  meta const m = R::shape(at, in, sizeof...(X));
  tensor out = tensor::empty(m.sizes, m.type);
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    on_elements<R>(nth<0>(x...).dtype(), Tag::op_name, [&]<class T>() {
      R::compute(at, strided_of<typename result_element<R, T>::type>(out),
                 strided_of<typename operand_element<R, T, K>::type const>(x)...);
    });
    return out;
  }(std::index_sequence_for<X...>{});
}
/// True if an operator computes with the elements of its operands, so that compact ones are converted.
template <class R>
inline constexpr bool computes_elements =
    !(has_layout<R> && !requires { &R::make; }) && !requires { R::takes_compact; } && R::arity > 0 &&
    R::kind != op_kind::pointwise&& R::kind != op_kind::convert&& R::kind != op_kind::factory&& R::kind !=
        op_kind::mutation&& R::kind != op_kind::random;
template <class Tag, int Facts>
op_table const* registered_table();
/// Runs an operator on compact operands, converted to the dtype in which they are computed. The result is converted to
/// the dtype that the operator has for the compact operands.
template <class Table>
VARVE_NOINLINE tensor compute_compact(Table const& op, attributes const& given, tensor const* const* x) {
  attributes const at = given.any_symbol() ? given.as_numbers() : given; // kernels have numbers only
  boxed_args in, wide;
  for (int k = 0; k < op.arity; ++k) in.push_back(*x[k]), wide.push_back(widened(*x[k]));
  dtype const type = op.meta(at, in).dtype();
  tensor const y = op.eval(at, wide);
  return y.dtype() == type ? y : converted(y, type);
}
} // namespace detail

namespace detail {
/// Returns zeros: the result of an effect that does nothing.
template <class R, class... X>
VARVE_NOINLINE tensor unacted_result(attributes const& at, X const&... x) {
  meta const in[] = {meta_of(x)..., meta{}};
  meta const m = R::shape(at.as_numbers(), in, sizeof...(X));
  tensor const y = tensor::empty(m.sizes, m.type);
  if (y.numel() > 0) std::memset(y.raw(), 0, static_cast<std::size_t>(y.numel()) * itemsize(m.type));
  return y;
}
} // namespace detail

namespace detail {
/// Computes an operator, with its attributes as data, on tensors that no transform or mode watches. Elementwise
/// operators run their kernels, views share storage, and all others run `compute`.
template <class Tag, int Facts, class... X>
tensor evaluate_at(attributes const& at, X const&... x) {
  using R = rules<Tag>;
  if constexpr (R::kind == op_kind::effect)
    if (is_silent<R>()) return unacted_result<R>(at, x...);
  if constexpr (computes_elements<R>)
    if ((is_compact(x.dtype()) || ...)) [[unlikely]] {
      tensor const* const in[] = {&x...};
      return compute_compact(*registered_table<Tag, Facts>(), at, in);
    }
  if constexpr (requires { R::make(at, x...); }) {
    return R::make(at, x...);
  } else if constexpr (R::kind == op_kind::pointwise) {
    tensor const* in[] = {&x...};
    return run_pointwise(info_of<Tag>, in);
  } else if constexpr (has_layout<R>) {
    auto const& v = nth<0>(x...);
    layout l = R::layout_of(at, v.where());
    constexpr bool is_view = !constant_to_derivatives<Tag>; // the result of `detach` is none
    if (l.expressible) [[likely]]
      return v.with_layout(l, is_view);
    return shown_of_copy<R>(at, v);
  } else if constexpr (R::kind == op_kind::convert) {
    return converted(nth<0>(x...), static_cast<dtype>(at[0][0]));
  } else {
    return compute_tensor<Tag>(at, x...);
  }
}
/// Computes an operator like `evaluate_at`, on an array of pointers to the operands.
template <class Tag, int Facts>
tensor evaluate_operands(attributes const& at, tensor const* const* x) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return evaluate_at<Tag, Facts>(at, *x[K]...);
  }(std::make_index_sequence<static_cast<std::size_t>(rules<Tag>::arity)>{});
}
} // namespace detail

/// Computes a bound operator on tensors that no transform or mode watches.
template <class Op, class... X>
tensor evaluate_tensor(Op const& op, X const&... x) {
  return detail::evaluate_at<typename Op::tag, Op::facts>(op.boxed(), x...);
}

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_NOINLINE VARVE_LIBRARY tensor contiguous_copy(tensor const& t) {
  tensor r = tensor::empty(t.sizes(), t.dtype());
  kernel::copy_strided(t.sizes(), operand_of(r, r.strides().numbers()), operand_of(t, t.strides().numbers()));
  return r;
}
VARVE_NOINLINE VARVE_LIBRARY dtype pointwise_type(pointwise_info const& f, tensor const* const* x) {
  meta const first = meta_of(*x[f.conditions]);
  dtype t = first.type;
  if (f.arity - f.conditions == 2) t = result_type(first, meta_of(*x[f.conditions + 1]));
  if (f.arity - f.conditions == 3) t = result_type(first, meta_of(*x[f.conditions + 1]), meta_of(*x[f.conditions + 2]));
  return f.floating && category(t) < 2 ? default_dtype : t;
}
} // namespace varve::detail
#endif
