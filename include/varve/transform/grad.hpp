// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/static_level.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// The arguments to differentiate, as in `grad(f, argnums<0, 2>)`. Negative numbers count from the last argument.
template <int... A>
struct argnums_t {};
template <int... A>
inline constexpr argnums_t<A...> argnums{};

/// A tag for functions that return a pair (value, auxiliary data). `grad(f, has_aux)` returns (gradient, auxiliary
/// data); `value_and_grad(f, has_aux)` returns ((value, auxiliary data), gradient).
struct has_aux_t {};
inline constexpr has_aux_t has_aux{};

namespace detail {
constexpr int wrap_argnum(int a, int count) { return a < 0 ? a + count : a; }
template <int Count, int... A>
constexpr bool argnums_are_valid() {
  int const n[] = {Count, wrap_argnum(A, Count)...};
  for (int i = 1; i <= static_cast<int>(sizeof...(A)); ++i) {
    if (n[i] < 0 || n[i] >= Count) return false;
    for (int j = 1; j < i; ++j)
      if (n[i] == n[j]) return false;
  }
  return sizeof...(A) > 0;
}
} // namespace detail

/// The function object that `grad` and `value_and_grad` return.
template <bool WithValue, bool Aux, class F, int... A>
struct grad_function {
  using differentiated = F;
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr int count = sizeof...(X);
    static_assert(detail::argnums_are_valid<count, A...>(),
                  "varve: grad: argnums must be distinct and name existing arguments, one at least");
    if constexpr (differentiates<std::tuple<X...>>()) {
      auto scope = reverse_scope<F, X...>(f, x...);
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto track = [&]<std::size_t I>(std::integral_constant<std::size_t, I>, auto const& v) {
          if constexpr (((detail::wrap_argnum(A, count) == static_cast<int>(I)) || ...)) return scope.track(v);
          else return scope.give(v), v;
        };
        scope.give(detail::captures_of(f));
        auto const in = std::make_tuple(track(std::integral_constant<std::size_t, K>{}, x)...);
        auto const out = scope.run([&] { return detail::call_with(f, in, std::index_sequence<K...>{}); });
        if constexpr (Aux)
          static_assert(
              requires {
                out.first;
                out.second;
              }, "varve: grad with has_aux: the function must return a pair of its value and anything else");
        auto const& y = result(out);
        scope.backward_from_scalar(y);
        auto gradients = [&] {
          if constexpr (sizeof...(A) == 1)
            return (scope.gradient(std::get<static_cast<std::size_t>(detail::wrap_argnum(A, count))>(in)), ...);
          else
            return std::make_tuple(
                scope.gradient(std::get<static_cast<std::size_t>(detail::wrap_argnum(A, count))>(in))...);
        };
        if constexpr (WithValue) return std::pair(scope.primal(out), gradients());
        else if constexpr (Aux) return std::pair(gradients(), scope.primal(out.second));
        else return gradients();
      }(std::index_sequence_for<X...>{});
    } else if constexpr (count > 0) {
      return after_message(nth<0>(x...));
    }
  }

private:
  template <class X>
  static consteval bool differentiates() {
    constexpr int count = static_cast<int>(std::tuple_size_v<X>);
    if constexpr (detail::argnums_are_valid<count, A...>())
      return (detail::require_derivative<
                  std::tuple_element_t<static_cast<std::size_t>(detail::wrap_argnum(A, count)), X>>() &&
              ...);
    else return false;
  }
  /// Returns what a call returns after a failed assertion: a result of the usual form, so that its uses cause no
  /// further messages.
  template <class X>
  static constexpr auto after_message(X const& x) {
    auto const gradients = [&] {
      if constexpr (sizeof...(A) == 1) return x;
      else return std::tuple((static_cast<void>(A), x)...);
    };
    if constexpr (WithValue) return std::pair(x, gradients());
    else if constexpr (Aux) return std::pair(gradients(), x);
    else return gradients();
  }
  static constexpr auto const& result(auto const& out) {
    if constexpr (Aux) return out.first;
    else return out;
  }
};

/// Returns the gradient of a scalar function as a function: `grad(f)(x...)` is the derivative with respect to argument
/// 0, by reverse mode. `grad<0, 2>(f)` and `grad(f, argnums<0, 2>)` compute a tuple of derivatives with respect to
/// these arguments. Arguments may be trees (`std::tuple`, `std::pair`, `std::array`). An argument that does not affect
/// the result gets zeros; one without a floating value is refused. Calls nest to any order. The cost is a small
/// multiple of that of f.
template <int... A, class F>
constexpr auto grad(F f) {
  if constexpr (sizeof...(A) == 0) return grad_function<false, false, F, 0>{f};
  else return grad_function<false, false, F, A...>{f};
}
template <class F, int... A>
constexpr auto grad(F f, argnums_t<A...>) {
  return grad_function<false, false, F, A...>{f};
}

template <int... A, class F>
constexpr auto grad(F f, has_aux_t) {
  if constexpr (sizeof...(A) == 0) return grad_function<false, true, F, 0>{f};
  else return grad_function<false, true, F, A...>{f};
}

/// Returns a function like `grad(f)` that returns the pair (value, gradient).
template <int... A, class F>
constexpr auto value_and_grad(F f) {
  if constexpr (sizeof...(A) == 0) return grad_function<true, false, F, 0>{f};
  else return grad_function<true, false, F, A...>{f};
}
template <class F, int... A>
constexpr auto value_and_grad(F f, argnums_t<A...>) {
  return grad_function<true, false, F, A...>{f};
}

template <int... A, class F>
constexpr auto value_and_grad(F f, has_aux_t) {
  if constexpr (sizeof...(A) == 0) return grad_function<true, true, F, 0>{f};
  else return grad_function<true, true, F, A...>{f};
}

} // namespace varve
