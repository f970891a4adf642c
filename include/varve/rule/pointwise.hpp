// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/handle.hpp>
#include <varve/rule/broadcasting.hpp>

namespace varve {

namespace detail {
/// Returns what dtype promotion needs from a mapped operand: {dtype, rank in a lane, rank, whether it is a plain
/// number}.
template <class V, class F>
constexpr auto lane_fact(operand<V, F> const& o) {
  auto const number_fact = [&] {
    if constexpr (is_ints<decltype(type_fact(o.value))>) return ints<number<V>>{};
    else return dims{meta_of(o.value).number};
  }();
  return on_dims([](dims const& type, dims const& rank, dims const& sizes,
                    dims const& n) { return dims{type[0], rank[0], sizes.n, n[0]}; },
                 type_fact(o.value), logical_rank_fact(o), shape_of(o.value), number_fact);
}
/// Returns the dtype in which an elementwise operator computes in a lane, or an empty list if it is the same for all
/// lanes together. A value of rank 0 in its lane does not decide the dtype beside one with dimensions, but with the
/// mapped dimension it would.
template <class R>
inline constexpr auto dtype_of_lanes = [](auto const&... o) {
  auto const seen_as = [](dims const& f, index_t rank) {
    meta m{static_cast<dtype>(f[0]), {}, f[3] != 0};
    for (index_t k = 0; k < rank; ++k) m.sizes.push_back(1);
    return m;
  };
  meta const lanes[] = {seen_as(o, o[1])...}, all[] = {seen_as(o, o[2])...};
  dtype const t = R::compute_type(lanes, sizeof...(o));
  return t == R::compute_type(all, sizeof...(o)) ? dims{} : dims{static_cast<index_t>(t)};
};
/// Returns `dtype_of_lanes` of operands. Operands of one dtype, the common case, need no facts.
template <class R, class... O>
constexpr auto computed_in_lanes(O const&... o) {
  using found = decltype(on_dims(dtype_of_lanes<R>, lane_fact(o)...));
  if constexpr (std::is_same_v<found, dims>) {
    dtype const types[] = {dtype_of(o.value)...};
    bool alike = true;
    for (dtype t : types) alike = alike && t == types[0];
    if (alike) return dims{};
  }
  return on_dims(dtype_of_lanes<R>, lane_fact(o)...);
}
template <bool Promotes, class V, class T>
constexpr auto in_dtype_of_lanes(V&& v, T const& type) {
  if constexpr (!Promotes || number<std::remove_cvref_t<V>>) return std::forward<V>(v);
  else if constexpr (!is_ints<T>) return type.n ? to(v, type) : std::forward<V>(v);
  else if constexpr (T::size() == 0) return std::forward<V>(v);
  else return to(v, type);
}
} // namespace detail

} // namespace varve

namespace varve::rule {

/// Family of operators that compute each element from the elements at the same place, without derivatives. To
/// differentiate one is an error, except that comparisons are constants. The operator provides `kernel(x...)` on
/// scalars or SIMD lanes; the shape and batch rules follow from it.
template <int Arity, promotion P = promotion::arithmetic, int Conditions = 0>
struct elementwise {
  static constexpr op_kind kind = op_kind::pointwise;
  static constexpr auto schema = Conditions   ? "(Tensor condition, Tensor self, Tensor other) -> Tensor"
                                 : Arity == 1 ? "(Tensor self) -> Tensor"
                                 : Arity == 2 ? "(Tensor self, Tensor other) -> Tensor"
                                              : "(Tensor self, Tensor other, Tensor third) -> Tensor";
  static constexpr int arity = Arity;
  static constexpr promotion promote = P;
  /// The number of leading operands that are truth values and take no part in promotion (`where`).
  static constexpr int conditions = Conditions;
  static constexpr bool differentiable = P != promotion::comparison;

  /// Returns the dtype in which the kernel computes.
  static constexpr dtype compute_type(meta const* in, int) {
    dtype t{};
    if constexpr (Arity - Conditions == 1) t = in[Conditions].type;
    else if constexpr (Arity - Conditions == 2) t = result_type(in[Conditions], in[Conditions + 1]);
    else t = result_type(in[Conditions], in[Conditions + 1], in[Conditions + 2]);
    if (P == promotion::floating && category(t) < 2) t = default_dtype;
    return t;
  }
  static constexpr meta shape(attributes const&, meta const* in, int count) {
    dims s = in[0].sizes;
    bool numbers = in[0].number;
    for (int k = 1; k < Arity; ++k) {
      s = broadcast(s, in[k].sizes);
      numbers = numbers && in[k].number;
    }
    return {P == promotion::comparison ? dtype::bool_ : compute_type(in, count), s, numbers};
  }

  template <class Op, class N, class... O>
  static constexpr auto batch(Op const& op, N const&, O const&... o) {
    auto rank = on_dims(
        [](auto const&... r) {
          dims m{0};
          ((m[0] = r[0] > m[0] ? r[0] : m[0]), ...);
          return m;
        },
        logical_rank_fact(o)...);
    auto const type = detail::computed_in_lanes<rules<typename Op::tag>>(o...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return op(detail::in_dtype_of_lanes<(I >= Conditions)>(align(o, rank), type)...);
    }(std::index_sequence_for<O...>{});
  }
};

/// Family of elementwise operators with derivatives. The operator provides `kernel(x...)` and `partial(arg<I>, y,
/// x...)`, the derivative of the result by operand I; jvp and vjp follow from it. The partial derivatives `one` and
/// `minus_one` cost nothing.
template <int Arity, promotion P = promotion::arithmetic, int Conditions = 0>
struct pointwise : elementwise<Arity, P, Conditions> {
  template <std::size_t I, class Op, value D, value Y, value... X>
  static constexpr auto jvp(arg_t<I> a, Op const&, D const& d, Y const& y, X const&... x) {
    using R = rules<typename Op::tag>;
    using partial = decltype(R::partial(a, y, x...));
    if constexpr (std::is_same_v<partial, one_t>) return detail::match(d, y);
    else if constexpr (std::is_same_v<partial, minus_one_t>) return detail::match(neg(d), y);
    else return detail::match(mul(R::partial(a, y, x...), d), y);
  }
  template <std::size_t I, class Op, value G, value Y, value... X>
  static constexpr auto vjp(arg_t<I> a, Op const&, G const& g, Y const& y, X const&... x) {
    using R = rules<typename Op::tag>;
    using partial = decltype(R::partial(a, y, x...));
    auto const& operand = nth<I>(x...);
    if constexpr (std::is_same_v<partial, one_t>) return detail::unmatch(g, operand);
    else if constexpr (std::is_same_v<partial, minus_one_t>) return detail::unmatch(neg(g), operand);
    else return detail::unmatch(mul(g, R::partial(a, y, x...)), operand);
  }
};

} // namespace varve::rule
