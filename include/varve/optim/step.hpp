// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/tree.hpp>
#include <varve/kernel/row_norm.hpp>
#include <varve/op/all.hpp>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

/// @file
/// The parts that optimizers share. Optimizers are values with their settings. They update trees of parameters:
/// numbers, arrays and structs of them (in constant expressions too), and tensors. The state between steps is a
/// separate value: `auto state = adam.init(p); ... adam.step(p, grad(loss)(p, x), state);`.
namespace varve::optim {

namespace detail {
template <class X>
inline constexpr bool is_parameter = [] {
  if constexpr (value<X>) return !std::is_integral_v<X>;
  else return false;
}();
/// The lanes of a register, which rules use like a number.
template <class T>
struct lanes {
  kernel::batch<T> v;
  static kernel::batch<T> all(double x) { return kernel::batch<T>(static_cast<T>(x)); }
  friend lanes operator+(lanes const& a, lanes const& b) { return {a.v + b.v}; }
  friend lanes operator-(lanes const& a, lanes const& b) { return {a.v - b.v}; }
  friend lanes operator*(lanes const& a, lanes const& b) { return {a.v * b.v}; }
  friend lanes operator/(lanes const& a, lanes const& b) { return {a.v / b.v}; }
  friend lanes operator+(lanes const& a, double b) { return {a.v + all(b)}; }
  friend lanes operator*(lanes const& a, double b) { return {a.v * all(b)}; }
};
template <class T>
lanes<T> root(lanes<T> const& x) {
  return {kernel::sqrt<T>(x.v)};
}
constexpr auto root(value auto const& x) { return varve::sqrt(x); }

/// True if a rule can run on these tensors in one pass. They must be plain row-major tensors in memory, of one floating
/// dtype and shape, and no mode or transform may observe the operators.
template <class T, std::size_t N>
bool are_one_pass(T const (&x)[N]) {
  tensor const* all[N];
  for (std::size_t k = 0; k < N; ++k) all[k] = &x[k];
  bool r = varve::detail::are_unwatched(x, N) && varve::detail::are_built_in<add_t, sub_t, mul_t, div_t, sqrt_t>() &&
           varve::detail::are_floats(all, N);
  for (tensor const& t : x)
    r = r && t.has_data() && t.is_contiguous() && t.sizes() == x[0].sizes() && t.keys().has(dispatch_key::cpu);
  return r;
}
template <class E, class F, std::size_t N>
VARVE_NOINLINE __attribute__((flatten)) void run_rule(F const& rule, index_t n, E const* const (&in)[N],
                                                      E* const (&out)[N - 1]) {
  [&]<std::size_t... K>(std::index_sequence<0, K...>) {
    kernel::detail::for_lanes<E>(n, [&](index_t i, index_t live) {
      auto const r = rule(lanes<E>{kernel::detail::load_live(in[0] + i, live)},
                          lanes<E>{kernel::detail::load_live(in[K] + i, live)}...);
      (kernel::detail::store_live(out[K - 1] + i, live, std::get<K - 1>(r).v), ...);
    });
  }(std::make_index_sequence<N>{});
}
/// Computes the new values of a parameter and of its state, in newly allocated memory.
template <class F, class T, std::size_t N>
void one_pass(F const& rule, T const (&x)[N], std::array<T, N - 1>& made) {
  for (T& t : made) t = T::empty(x[0].sizes(), x[0].dtype());
  varve::detail::on_floats(x[0].dtype(), [&]<class E>() {
    index_t const elements = x[0].numel();
    fusion::share(elements, 64, elements, [&](index_t from, index_t to) {
      E const* in[N];
      E* out[N - 1];
      for (std::size_t k = 0; k < N; ++k) in[k] = static_cast<E const*>(x[k].raw()) + from;
      for (std::size_t k = 0; k + 1 < N; ++k) out[k] = static_cast<E*>(made[k].raw()) + from;
      run_rule<E>(rule, to - from, in, out);
    });
  });
}

/// True if the number of leaves, or their shapes, are known only at run time.
template <class T>
consteval bool is_of_tensors() {
  if constexpr (varve::detail::is_run_time_node<T>) return true;
  else if constexpr (is_tree_node<T>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (is_of_tensors<E>() || ...);
    }(std::type_identity<varve::detail::elements_of<T>>{});
  else if constexpr (is_parameter<T>) return std::is_same_v<T, tensor>;
  else return false;
}
/// Returns a leaf of a mutable tree as a mutable reference.
template <class X>
constexpr X& written(X const& leaf) {
  return const_cast<X&>(leaf);
}
/// Returns the new values of a tensor parameter and of its state, by a rule.
template <class F, class X, class... S>
auto values_of_rule(F const& rule, X const& p, X const& g, S const&... kept) {
  X const all[]{p, g, kept...};
  std::array<X, 1 + sizeof...(S)> r;
  if (detail::are_one_pass(all)) detail::one_pass(rule, all, r);
  else r = std::apply([](auto const&... y) { return std::array<X, 1 + sizeof...(S)>{X(y)...}; }, rule(p, g, kept...));
  return r;
}
/// Updates parameters and the state kept for them, leaf by leaf. `rule(p, g, kept...)` returns the new values as a
/// tuple; it uses operators that numbers, values and `lanes` have. Leaves that are no parameters or have no gradient
/// stay unchanged. Plain tensors are updated in one pass. If it throws, nothing has changed.
template <class F, class P, class G, class... S>
constexpr void update(F const& rule, P& parameters, G const& gradients, S&... kept) {
  // Tensors are computed first, because that may throw.
  std::conditional_t<is_of_tensors<P>(), std::vector<std::array<tensor, 1 + sizeof...(S)>>, std::tuple<>> computed;
  if constexpr (is_of_tensors<P>())
    (void)tree_map(
        [&](auto const& p, auto const& g, auto const&... s) {
          using X = std::remove_cvref_t<decltype(p)>;
          if constexpr (std::is_same_v<X, tensor> && !is_none<decltype(g)>) {
            varve::detail::needs_real("optim", p, g); // the squares of gradients assume real ones
            computed.push_back(detail::values_of_rule(rule, p, X(g), s...));
          }
          return p;
        },
        parameters, gradients, std::as_const(kept)...);
  std::size_t next = 0;
  auto const values = [&](auto const& of_tensors, auto const& p, auto const& g, auto const&... s) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(p)>, tensor>) return of_tensors[next++];
    else {
      varve::detail::needs_real("optim", p, g);
      return rule(p, g, s...);
    }
  };
  parameters = tree_map(
      [&](auto const& p, auto const& g, auto const&... s) {
        if constexpr (!is_parameter<std::remove_cvref_t<decltype(p)>> || is_none<decltype(g)>) return p;
        else {
          auto const now = values(computed, p, g, s...);
          [&]<std::size_t... K>(std::index_sequence<K...>) {
            ((detail::written(s) = std::get<1 + K>(now)), ...);
          }(std::index_sequence_for<decltype(s)...>{});
          return std::get<0>(now);
        }
      },
      parameters, gradients, std::as_const(kept)...);
}
/// Returns a tree of zeros with the shapes of the parameters.
template <class P>
constexpr auto zeros(P const& parameters) {
  return tree_map(
      [](auto const& p) {
        using X = std::remove_cvref_t<decltype(p)>;
        if constexpr (number<X> && is_parameter<X>) return X(0);
        else if constexpr (is_parameter<X>) return zeros_like(p);
        else return p;
      },
      parameters);
}
/// Returns b^n.
constexpr double power(double b, int n) {
  double r = 1;
  for (; n > 0; n /= 2, b *= b)
    if (n % 2) r *= b;
  return r;
}
} // namespace detail

} // namespace varve::optim

#pragma GCC diagnostic pop
