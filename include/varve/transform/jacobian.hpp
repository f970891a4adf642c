// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/create.hpp>
#include <varve/op/reshape.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>

namespace varve {

namespace detail {
/// Returns the unit vectors of a value's space, in shape [numel, shape...].
template <value X>
constexpr auto basis(X const& x) {
  auto const sizes = shape_of(x);
  auto const n = on_dims([](dims const& s) { return dims{numel(s)}; }, sizes);
  auto const wide = on_dims(
      [](dims const& s) {
        dims r = s;
        return r.insert(0, numel(s));
      },
      sizes);
  if constexpr (is_ints<decltype(n)> && !dynamic_value<X> && is_ints<decltype(type_fact(x))>) {
    using T = type_of<static_cast<dtype>(decltype(type_fact(x))::to_dims()[0])>;
    return reshape(eye<T, decltype(n)::to_dims()[0]>(), wide);
  } else {
    auto const k = backend<typename decltype(base_tag<X>())::type>::arange(base_value(x), to_dims(n));
    return reshape(to(eq(reshape(k, dims{to_dims(n)[0], 1}), k), type_fact(x)), wide);
  }
}
inline constexpr auto concat = [](dims const& a, dims const& b) {
  dims r = a;
  for (int k = 0; k < b.n; ++k) r.push_back(b[k]);
  return r;
};
/// Refuses complex values, whose derivatives are not matrices of complex numbers.
template <class X>
constexpr void needs_real_tree(char const* transform, X const& x) {
  tree_for_each(
      [&](auto const& v) {
        if constexpr (value<std::remove_cvref_t<decltype(v)>>)
          if (is_complex(dtype_of(v))) refuse::dtype_is_not_supported(transform, name(dtype_of(v)));
      },
      x);
}
/// Reshapes tangents along the unit vectors of x, stacked last, to Jacobians.
template <class Y, class X>
constexpr auto as_columns(Y const& tangents, X const& x) {
  return tree_map(
      [&](auto const& c) {
        auto const rows = on_dims([](dims const& s) { return s.sub(0, s.n - 1); }, shape_of(c));
        return reshape_to(c, on_dims(concat, rows, shape_of(x)));
      },
      tangents);
}
/// The function `(v, x...)` that calls f with v in place of argument K. It serves derivatives with respect to that
/// argument.
template <class F, int K>
struct with_argument {
  [[no_unique_address]] F f;
  template <class V, class... X>
  constexpr auto operator()(V const& v, X const&... x) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto const taken = [&]<std::size_t J>(std::integral_constant<std::size_t, J>, auto const& own) -> auto const& {
        if constexpr (J == static_cast<std::size_t>(K)) return v;
        else return own;
      };
      return f(taken(std::integral_constant<std::size_t, I>{}, x)...);
    }(std::index_sequence_for<X...>{});
  }
};
template <class F, int K>
constexpr auto captures_of(with_argument<F, K> const& f) {
  return captures_of(f.f);
}
/// The Jacobians of f with respect to the arguments A. `Make` turns a function of one argument and all arguments into
/// its Jacobian.
template <class F, class Make, int... A>
struct jacobians {
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr int count = sizeof...(X);
    static_assert(argnums_are_valid<count, A...>(),
                  "varve: jacfwd, jacrev: argnums must be distinct and name existing arguments");
    if constexpr (!argnums_are_valid<count, A...>()) return nth<0>(x...);
    else if constexpr (sizeof...(A) == 1) return (by<wrap_argnum(A, count)>(x...), ...);
    else return std::tuple(by<wrap_argnum(A, count)>(x...)...);
  }

private:
  template <int K, class... X>
  constexpr auto by(X const&... x) const {
    return Make{}(with_argument<F, K>{f})(nth<K>(x...), x...);
  }
};
} // namespace detail

/// The function object that `jacfwd` returns: `jacfwd(f)(x, rest...)` computes the Jacobian by forward mode, in shape
/// [result..., x...]. It is `vmap` of `jvp` over unit vectors: one pass per element of x. `jacfwd(f, randomness::same)`
/// sets what random operators do, as for `vmap`.
template <class F, random_policy R = random_policy::error>
struct jacfwd_function {
  [[no_unique_address]] F f;
  template <class X, class... Rest>
  constexpr auto operator()(X const& x, Rest const&... rest) const {
    auto const column = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
      auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
      return jvp(closure(along, known, r...), std::tuple(at), std::tuple(e)).second;
    };
    if constexpr (!detail::require_derivative<X>()) {
      return x; // after the message: its uses cause no further ones
    } else if constexpr (detail::memory_ref<X>) {
      return (*this)(detail::viewed(x), rest...);
    } else {
      detail::needs_real_tree("jacfwd", x);
      auto const columns =
          vmap(closure(column, x, detail::captures_of(f), rest...), out_dims<-1>, randomness_t<R>{})(detail::basis(x));
      detail::needs_real_tree("jacfwd", columns);
      return detail::as_columns(columns, x);
    }
  }
};
template <random_policy R = random_policy::error, class F>
constexpr auto jacfwd(F f, randomness_t<R> = {}) {
  return jacfwd_function<F, R>{f};
}
/// Returns the Jacobian by other arguments than the first: `jacfwd<1>(f)(x...)` by argument 1, `jacfwd<0, 2>(f)(x...)`
/// by two arguments, as a tuple.
template <int... A, class F>
  requires(sizeof...(A) > 0)
constexpr auto jacfwd(F f) {
  constexpr auto make = [](auto g) { return jacfwd_function<decltype(g)>{g}; };
  return detail::jacobians<F, decltype(make), A...>{f};
}

/// The function object that `jacrev` returns: `jacrev(f)(x, rest...)` computes the same Jacobian as `jacfwd`, by
/// reverse mode. It is `vmap` of the pullback over unit vectors of the result: one pass per element of the result.
template <class F>
struct jacrev_function {
  [[no_unique_address]] F f;
  template <class X, class... R>
  constexpr auto operator()(X const& x, R const&... rest) const {
    if constexpr (!detail::require_derivative<X>()) return x;
    else if constexpr (std::is_same_v<X, tensor>) return recorded_once(x, rest...);
    else return recorded_for_each_row(x, rest...);
  }

private:
  template <class... R>
  auto recorded_once(tensor const& x, R const&... rest) const {
    auto const run =
        vjp(closure([&](auto const& v, auto const&...) { return f(v, rest...); }, detail::captures_of(f), rest...), x);
    auto const& y = run.first;
    detail::needs_real_tree("jacrev", x);
    detail::needs_real_tree("jacrev", y);
    static_assert(value<std::remove_cvref_t<decltype(y)>>, "varve: jacrev: the function must return one value");
    auto const rows = vmap([&](tensor const& e) { return std::get<0>(run.second(e)); })(detail::basis(y));
    return detail::reshape_to(rows, on_dims(detail::concat, shape_of(y), shape_of(x)));
  }
  /// Records inside the mapped function, because static tapes must know the types of their cotangents when they record.
  template <class X, class... R>
  constexpr auto recorded_for_each_row(X const& x, R const&... rest) const {
    auto const y = f(x, rest...);
    static_assert(value<std::remove_cvref_t<decltype(y)>>, "varve: jacrev: the function must return one value");
    auto const row = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
      auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
      return std::get<0>(vjp(closure(along, e, known, r...), at).second(e));
    };
    auto const rows = vmap(closure(row, x, detail::captures_of(f), rest...))(detail::basis(y));
    return detail::reshape_to(rows, on_dims(detail::concat, shape_of(y), shape_of(x)));
  }
};
template <class F>
constexpr auto jacrev(F f) {
  return jacrev_function<F>{f};
}

/// Returns the Jacobian by chosen arguments, as `jacfwd` does: `jacrev<1>(f)(x...)`, `jacrev<0, 2>(f)(x...)`.
template <int... A, class F>
  requires(sizeof...(A) > 0)
constexpr auto jacrev(F f) {
  constexpr auto make = [](auto g) { return jacrev_function<decltype(g)>{g}; };
  return detail::jacobians<F, decltype(make), A...>{f};
}

/// The function object that `jacobian` returns: `jacobian(f)(x, rest...)` computes the Jacobian by the mode that needs
/// fewer passes: `jacrev` if the result has fewer elements than x, else `jacfwd`. If a shape is known only at run time,
/// as for tensors, f is called once more to find the size of its result.
template <class F>
struct jacobian_function {
  [[no_unique_address]] F f;
  template <class X, class... R>
  constexpr auto operator()(X const& x, R const&... rest) const {
    if constexpr (!detail::require_derivative<X>()) return x;
    else if constexpr (detail::memory_ref<X>) return (*this)(detail::viewed(x), rest...);
    else {
      constexpr auto fewer = [](dims const& y, dims const& v) { return numel(y) < numel(v); };
      using of_y = decltype(shape_of(f(x, rest...)));
      using of_x = decltype(shape_of(x));
      if constexpr (!is_ints<of_y> || !is_ints<of_x>)
        return fewer(to_dims(shape_of(f(x, rest...))), to_dims(shape_of(x))) ? jacrev(f)(x, rest...)
                                                                             : jacfwd(f)(x, rest...);
      else if constexpr (fewer(of_y::to_dims(), of_x::to_dims())) return jacrev(f)(x, rest...);
      else return jacfwd(f)(x, rest...);
    }
  }
};
template <class F>
constexpr auto jacobian(F f) {
  return jacobian_function<F>{f};
}
/// Returns the Jacobian by chosen arguments, as `jacfwd` does: `jacobian<1>(f)(x...)`, `jacobian<0, 2>(f)(x...)`. The
/// mode is chosen for each argument separately.
template <int... A, class F>
  requires(sizeof...(A) > 0)
constexpr auto jacobian(F f) {
  constexpr auto make = [](auto g) { return jacobian_function<decltype(g)>{g}; };
  return detail::jacobians<F, decltype(make), A...>{f};
}

/// Returns `jacfwd(jacrev(f))`: `hessian(f)(x, rest...)` computes the second derivatives with respect to x, in shape
/// [result..., x..., x...].
template <class F>
constexpr auto hessian(F f) {
  return jacfwd(jacrev(f));
}

} // namespace varve
