// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/kernel/pointwise.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/factory.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/to.hpp>

#include <cstdint>
#include <cstring>

namespace varve {

namespace detail {
/// What may follow the first of several sizes that are arguments of their own: further ones, then perhaps a dtype, as
/// in `zeros(3, 4, dtype::float64)`.
template <class... A>
consteval bool are_listed_sizes() {
  bool const is_size[] = {one_size<A>..., false}, is_dtype[] = {std::is_same_v<A, dtype>..., false};
  std::size_t k = 0;
  while (is_size[k]) ++k;
  return k > 0 && (k == sizeof...(A) || (k + 1 == sizeof...(A) && is_dtype[k]));
}
template <class... A>
concept listed_sizes = are_listed_sizes<A...>();
struct sizes_and_dtype {
  dims sizes;
  dtype type = get_default_dtype();
  template <class... A>
  explicit sizes_and_dtype(A... a) {
    (take(a), ...);
  }

private:
  void take(extent n) { sizes.push_back(n); }
  void take(dtype t) { type = t; }
};
} // namespace detail

/// A tensor with uninitialized memory. Attributes {shape, {dtype}}.
inline constexpr struct empty_t {
  static constexpr auto op_name = "empty";
  template <class = void>
  tensor operator()(dims const& sizes, dtype type = get_default_dtype()) const;
  template <class = void, detail::one_size N, class... A>
    requires detail::listed_sizes<A...>
  tensor operator()(N n, A... more) const;
} empty{};
/// A tensor filled with a number, which is an operand. Attributes {shape, {dtype}}.
inline constexpr struct full_t {
  static constexpr auto op_name = "full";
} full_op{};
/// 0, 1, ..., n - 1. Attributes {{n}, {dtype}}.
inline constexpr struct arange_t {
  static constexpr auto op_name = "arange";
} arange_op{};

/// An integer as an int64 tensor of rank 0. Attribute {number}, which may be a symbolic size.
inline constexpr struct scalar_tensor_t {
  static constexpr auto op_name = "scalar_tensor";
} scalar_tensor_op{};

namespace detail {
/// Returns uninitialized memory for a factory, after checking the user's sizes.
inline tensor fresh(dims const& sizes, dtype type) {
  require_sizes("factory", sizes);
  return tensor::empty(sizes, type);
}
template <class T>
VARVE_VECTORIZED void count_up(index_t n, T* to) {
  for (index_t k = 0; k < n; ++k) to[k] = static_cast<T>(k);
}
struct factory {
  static constexpr auto schema = "(int[] size, ScalarType dtype) -> Tensor";
  static constexpr op_kind kind = op_kind::factory;
  static constexpr int arity = 0;
  static constexpr bool differentiable = false;
  static constexpr attributes checked(attributes const& at, meta const*) {
    require_sizes("factory", at[0]);
    require_dtype("factory", at[1]);
    return at;
  }
  static constexpr meta shape(attributes const& at, meta const*, int) { return {static_cast<dtype>(at[1][0]), at[0]}; }
};
/// True if a factory makes a compact dtype. `made_compact` then computes in a wider dtype and converts.
inline bool is_made_compact(attributes const& at) { return is_compact(static_cast<dtype>(at[1][0])); }
template <class R, class... X>
VARVE_NOINLINE tensor made_compact(attributes at, X const&... x) {
  auto const type = static_cast<dtype>(at[1][0]);
  at.fact[1] = dims{static_cast<index_t>(computed_in(type))};
  return converted(R::make(at, x...), type);
}
/// Calls a factory through the thread's interpreter stack, although there is no operand to find it by.
template <class Op, class... X>
tensor create(Op const& op, X const&... x) {
  return backend<tensor_base>::call(op, x...);
}
} // namespace detail

template <>
struct rules<empty_t> : detail::factory {
  static tensor make(attributes const& at) { return detail::fresh(at[0], static_cast<dtype>(at[1][0])); }
};
template <>
struct rules<arange_t> : detail::factory {
  static constexpr operator_class planned_as = operator_class::arange;
  template <class A>
  static tensor make(A const& at) {
    if (detail::is_made_compact(at)) return detail::made_compact<rules>(at);
    tensor r = detail::fresh(at[0], static_cast<dtype>(at[1][0]));
    on_dtype(r.dtype(), "arange", [&]<class T>() { detail::count_up(r.numel(), static_cast<T*>(r.raw())); });
    return r;
  }
};
template <>
struct rules<scalar_tensor_t> {
  static constexpr auto schema = "(Scalar s) -> Tensor";
  static constexpr op_kind kind = op_kind::factory;
  static constexpr int arity = 0;
  static constexpr bool differentiable = false;
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at[0].n != 1) refuse::argument_is_invalid("scalar_tensor", "it holds one number");
    return at;
  }
  static constexpr meta shape(attributes const&, meta const*, int) { return {dtype::int64, {}}; }
  static tensor make(attributes const& at) {
    tensor const r = detail::fresh({}, dtype::int64);
    *static_cast<std::int64_t*>(r.raw()) = at[0][0];
    return r;
  }
};
template <>
struct rules<full_t> : rule::linear {
  static constexpr bool takes_complex = true;
  static constexpr attributes checked(attributes const& at, meta const* in) { return detail::factory::checked(at, in); }
  static constexpr auto schema = "(int[] size, Scalar fill_value, ScalarType dtype) -> Tensor";
  static constexpr op_kind kind = op_kind::factory;
  static constexpr meta shape(attributes const& at, meta const*, int) { return {static_cast<dtype>(at[1][0]), at[0]}; }
  /// Fills static values, which a `scope` makes.
  static constexpr void compute(attributes const&, auto const& out, auto const& v) {
    for (index_t k = 0, n = numel(out.sizes); k < n; ++k)
      out.data[k] = kernel::cast<std::remove_cvref_t<decltype(out.data[k])>>(v.data[0]);
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& v) {
    if (detail::is_made_compact(at)) return detail::made_compact<rules>(at, v);
    T r = detail::fresh(at[0], static_cast<dtype>(at[1][0]));
    if (is_complex(v.dtype()) && !is_complex(r.dtype()))
      refuse::dtype_does_not_fit("full", name(v.dtype()), name(r.dtype()));
    if (is_complex(r.dtype())) {
      kernel::fill(r.raw(), detail::converted(v, r.dtype()).raw(), r.numel(), itemsize(r.dtype()));
      return r;
    }
    bool const real = is_floating(v.dtype());
    double const in_real = real ? v.template item<double>() : 0;
    std::int64_t const whole = real ? 0 : v.template item<std::int64_t>();
    alignas(8) unsigned char one[8];
    on_dtype(r.dtype(), "full", [&]<class E>() {
      E const e = real ? kernel::cast<E>(in_real) : kernel::cast<E>(whole);
      std::memcpy(one, &e, sizeof e);
    });
    kernel::fill(r.raw(), one, r.numel(), itemsize(r.dtype()));
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return to(sum(g), type_fact(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return expand(to(align(o, dims{op.a.n}), op.b), on_dims(detail::prepend, op.a, n));
  }
};

template <>
struct rules<new_full_t> : detail::factory {
  static constexpr bool takes_complex = true;
  static constexpr auto schema = "(Tensor self, int[] size, Scalar fill_value, ScalarType dtype) -> Tensor";
  static constexpr int arity = 2;
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const&, T const& v) {
    return rules<full_t>::make(at, v);
  }
  /// Makes a value that is not mapped by this `vmap`; an outer `vmap` may map it.
  template <class Op, class O>
  static auto batch(Op const& op, dims const& n, O const& like, O const& v) {
    dims const sizes = detail::prepend(op.a, n);
    return is_floating(v.value.dtype()) ? new_full(like.value, sizes, v.value.template item<double>())
                                        : new_full(like.value, sizes, v.value.template item<std::int64_t>());
  }
};

template <class>
tensor empty_t::operator()(dims const& sizes, dtype type) const {
  return detail::create(bind<empty_t>(sizes, dims{static_cast<index_t>(type)}));
}
template <class, detail::one_size N, class... A>
  requires detail::listed_sizes<A...>
tensor empty_t::operator()(N n, A... more) const {
  detail::sizes_and_dtype const all(n, more...);
  return (*this)(all.sizes, all.type);
}
/// Returns a tensor filled with a number (`torch.full`). The dtype follows the number: the default dtype, int64 or
/// bool.
template <number N>
tensor full(dims const& sizes, N v,
            dtype type = std::is_same_v<N, bool> ? dtype::bool_
                         : std::is_integral_v<N> ? dtype::int64
                                                 : get_default_dtype()) {
  detail::require_element("full", v, type);
  return detail::create(bind<full_t>(sizes, dims{static_cast<index_t>(type)}), v);
}
/// Returns a tensor of zeros: `zeros({3, 4})`, `zeros(3, 4)`. (These functions are templates only so that unused ones
/// cost nothing.)
template <class = void>
tensor zeros(dims const& sizes, dtype type = get_default_dtype()) {
  return full(sizes, 0, type);
}
template <class = void, detail::one_size N, class... A>
  requires detail::listed_sizes<A...>
tensor zeros(N n, A... more) {
  detail::sizes_and_dtype const all(n, more...);
  return full(all.sizes, 0, all.type);
}
/// Returns a tensor of ones: `ones({3, 4})`, `ones(3, 4)`.
template <class = void>
tensor ones(dims const& sizes, dtype type = get_default_dtype()) {
  return full(sizes, 1, type);
}
template <class = void, detail::one_size N, class... A>
  requires detail::listed_sizes<A...>
tensor ones(N n, A... more) {
  detail::sizes_and_dtype const all(n, more...);
  return full(all.sizes, 1, all.type);
}
/// Returns 0, 1, ..., n - 1.
template <class = void>
tensor arange(extent n, dtype type = dtype::int64) {
  return detail::create(bind<arange_t>(dims{n}, dims{static_cast<index_t>(type)}));
}
/// Returns the n x n identity matrix.
template <class T = tensor>
T eye(index_t n, dtype type = get_default_dtype()) {
  if (detail::are_unwatched(nullptr, 0) &&
      detail::are_built_in<full_t, arange_t, reshape_t, eq_t, to_t, as_strided_backward_t>())
    return as_strided_backward(T(full(dims{n}, 1, type)), dims{n, n}, dims{n + 1}, dims{0}); // without n^2 comparisons
  T const i = arange(n);
  return to(eq(reshape(i, dims{n, 1}), i), type);
}

/// Returns a number or a symbolic size as an int64 tensor of rank 0 (`torch.scalar_tensor` of a SymInt). With it,
/// `scalar_tensor(n) * x` of a symbolic size n is an operator of the graph.
template <class = void>
tensor scalar_tensor(extent n) {
  return detail::create(bind<scalar_tensor_t>(dims{n}));
}

template <class T>
T backend<detail::tensor_base>::count(T const&, dims const& from, dims const& to) {
  extent const all = numel(from), some = numel(to), each = all / (known_equal(some, 0) ? extent(1) : some);
  if (!each.is_number() && known_equal(some * each, all)) return varve::scalar_tensor(each);
  return T::from_number(numel_per(from, to));
}
template <class>
tensor backend<detail::tensor_base>::arange(tensor const&, dims const& n) {
  return detail::create(bind<arange_t>(n, dims{static_cast<index_t>(dtype::int64)})); // a symbolic size stays symbolic
}
template <class S, class T, number N>
tensor backend<detail::tensor_base>::full(S const& sizes, T const& type, N v) {
  return varve::full(to_dims(sizes), v, static_cast<dtype>(to_dims(type)[0]));
}

} // namespace varve
