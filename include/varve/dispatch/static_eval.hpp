// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/operator.hpp>
#include <varve/dispatch/silence.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/value/strided.hpp>

namespace varve {

namespace detail {
template <class V>
struct static_meta_of;
template <number T>
struct static_meta_of<T> {
  static constexpr meta value{dtype_of_type<T>(), {}, true};
};
template <class T, index_t... D>
struct static_meta_of<array<T, D...>> {
  static constexpr meta value{dtype_of_type<T>(), ints<D...>::to_dims(), false};
};
template <class Op, class... X>
struct static_shape {
  static constexpr meta compute() {
    meta const in[] = {static_meta_of<X>::value..., meta{}};
    return rules<typename Op::tag>::shape(Op{}.boxed(), in, sizeof...(X));
  }
};
template <class Op, class... X>
struct static_result {
  static constexpr meta value = static_shape<Op, X...>::compute();
  struct sizes {
    constexpr dims operator()() const { return value.sizes; }
  };
  using shape = decltype(ints_from<sizes{}>(std::make_index_sequence<static_cast<std::size_t>(value.sizes.n)>{}));
  using element = type_of<value.type>;
  using type = static_value<element, shape>;
};
} // namespace detail

/// The type of the result of an operator on static values: its `shape` rule, evaluated at compile time.
template <class Op, class... X>
using static_result = detail::static_result<Op, X...>;

namespace detail {
template <class R>
concept has_kernel = !requires { &probe<R>::kernel; };
template <class R>
concept has_layout = requires(attributes at, layout l) { R::layout_of(at, l); };

template <class V>
constexpr auto strided_of(V const& v) {
  using S = static_meta_of<V>;
  return strided<element_of<V> const>{data_of(v), S::value.sizes, contiguous_strides(S::value.sizes)};
}
template <class V>
constexpr auto strided_of(V& v) {
  using S = static_meta_of<V>;
  return strided<element_of<V>>{data_of(v), S::value.sizes, contiguous_strides(S::value.sizes)};
}

/// Returns element `i` of an operand. The element of an operand that has only one is repeated.
template <class V>
constexpr auto flat_element(V const& v, index_t i) {
  if constexpr (number<V>) return v;
  else return v.data[V::count == 1 ? 0 : i];
}

/// Calls the kernel of an operator whose first operand is a condition. The condition becomes a bool first, so that 0.5
/// is true beside integers too.
template <class R, class C, class E, class P, class... X>
constexpr E kernel_of_condition(P const& p, X const&... x) {
  return static_cast<E>(R::kernel(static_cast<C>(static_cast<bool>(p)), static_cast<C>(x)...));
}
template <class Op, class... X>
constexpr auto evaluate_pointwise(X const&... x) {
  using R = rules<typename Op::tag>;
  using result = static_result<Op, X...>;
  constexpr meta metas[] = {static_meta_of<X>::value...};
  using C = type_of<R::compute_type(metas, sizeof...(X))>;
  typename result::type r;
  auto* out = data_of(r);
  auto kernel = [](auto const&... e) {
    if constexpr (R::conditions == 1) return kernel_of_condition<R, C, typename result::element>(e...);
    else return static_cast<typename result::element>(R::kernel(static_cast<C>(e)...));
  };
  constexpr bool flat =
      ((static_meta_of<X>::value.sizes == result::value.sizes || numel(static_meta_of<X>::value.sizes) == 1) && ...);
  if constexpr (flat) {
    constexpr index_t all = numel(result::value.sizes);
    for (index_t i = 0; i < all; ++i) out[i] = kernel(flat_element(x, i)...);
  } else {
    index_t k = 0;
    for_each_index(result::value.sizes, [&](dims const& i) {
      auto element = [&](auto const& s) {
        auto const at = broadcast_strides(s.sizes, s.strides, result::value.sizes);
        index_t o = 0;
        for (int d = 0; d < i.n; ++d) o += i[d].bits * at[d].bits;
        return s.data[o];
      };
      out[k++] = kernel(element(strided_of(x))...);
    });
  }
  return r;
}
} // namespace detail

/// Computes an operator on static values, in constant expressions or at run time. Elementwise operators run their
/// `kernel`, views copy along their `layout_of`, and all others run `compute(attributes, result, operands...)`.
template <class Op, class... X>
constexpr auto evaluate_static(Op const&, X const&... x) {
  using R = rules<typename Op::tag>;
  if constexpr (!evaluates<detail::static_shape<Op, X...>>) {
    static_assert(never<Op, X...>, "varve: these operands do not fit this operator: the operator and its operands are "
                                   "named above, the refusal below");
    static_assert((detail::static_shape<Op, X...>::compute(), true)); // the compiler reports why, and continues
    return nth<0>(x...);
  } else if constexpr (R::kind == op_kind::pointwise) {
    return detail::evaluate_pointwise<Op>(x...);
  } else {
    using result = static_result<Op, X...>;
    constexpr attributes at = Op{}.boxed();
    typename result::type r;
    if constexpr (R::kind == op_kind::effect)
      if (!std::is_constant_evaluated() && detail::is_silent<R>()) return typename result::type{};
    if constexpr (detail::has_layout<R>) {
      auto const& v = nth<0>(x...);
      constexpr layout l =
          R::layout_of(at, contiguous_layout(detail::static_meta_of<std::remove_cvref_t<decltype(v)>>::value.sizes));
      auto const* in = data_of(v) + l.offset.bits;
      auto* out = data_of(r);
      if constexpr (l.contiguous()) {
        constexpr index_t all = numel(l.sizes);
        for (index_t i = 0; i < all; ++i) out[i] = in[i];
      } else {
        strided<element_of<std::remove_cvref_t<decltype(v)>> const> const s{in, l.sizes, l.strides};
        for_each_index(l.sizes, [&, k = index_t{0}](dims const& i) mutable { out[k++] = s.at(i); });
      }
    } else if constexpr (R::kind == op_kind::convert) {
      constexpr index_t all = numel(result::value.sizes);
      for (index_t i = 0; i < all; ++i)
        data_of(r)[i] = kernel::cast<typename result::element>(data_of(nth<0>(x...))[i]);
    } else {
      R::compute(at, detail::strided_of(r), detail::strided_of(x)...);
    }
    return r;
  }
}

} // namespace varve
