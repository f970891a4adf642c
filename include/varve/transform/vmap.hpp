// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/permute.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// The dimension of each argument that is mapped, as in `in_dims<none, 0, 1>`. A single entry serves all arguments.
/// Negative numbers count from the last dimension.
template <auto... D>
struct in_dims_t {};
template <auto... D>
inline constexpr in_dims_t<D...> in_dims{};
/// The dimension of each result at which the mapped dimension appears. A single entry serves all results.
template <auto... D>
struct out_dims_t {};
template <auto... D>
inline constexpr out_dims_t<D...> out_dims{};

namespace detail {
template <std::size_t I, auto First, auto... Rest>
constexpr auto dim_at() {
  if constexpr (sizeof...(Rest) == 0 || I == 0) return First;
  else return dim_at<I - 1, Rest...>();
}
inline constexpr auto to_front = [](dims const& s, dims const& axis) {
  if (s.n == 0) refuse::a_value_of_rank_0_has_no_axis_to_map();
  int const a = wrap_axis(axis[0], s.n);
  dims p{a};
  for (int k = 0; k < s.n; ++k)
    if (k != a) p.push_back(k);
  return p;
};
inline constexpr auto from_front = [](dims const& s, dims const& axis) {
  int const a = wrap_axis(axis[0], s.n);
  dims p;
  for (int k = 1; k < s.n; ++k) p.push_back(k);
  return p.insert(a, 0);
};
inline constexpr auto already_ordered = [](dims const& p) {
  for (int k = 0; k < p.n; ++k)
    if (p[k] != k) return dims{0};
  return dims{1};
};
/// Permutes unless the dimensions are already in that order.
inline constexpr auto permute_to = [](auto const& x, auto const& p) {
  return choose(
      same_fact(on_dims(already_ordered, p), ints<1>{}), identity, [&](auto const& v) { return permute(v, p); }, x);
};
inline constexpr auto first_size = [](dims const& s) { return dims{s[0]}; };

/// Returns the sizes of the mapped dimensions of one argument, as a tuple of facts.
template <auto D, class T>
constexpr auto mapped_sizes(T const& t) {
  if constexpr (is_none<decltype(D)>) {
    return std::tuple<>{};
  } else if constexpr (is_run_time_node<T>) {
    static_assert(tree_is_dynamic<T>(), "varve: vmap: a vector of static values cannot be mapped; use std::array");
    dims n;
    bool first = true;
    tree_for_each(
        [&](auto const& v) {
          if (v.dim() == 0) refuse::a_value_of_rank_0_has_no_axis_to_map();
          dims const m{v.sizes()[wrap_axis(D, v.dim())]};
          if (!first && !(m == n)) refuse::mapped_sizes_differ(n, m);
          first = false;
          n = m;
        },
        t);
    return std::make_tuple(n);
  } else if constexpr (is_tree_node<T> && !tuple_node<T>) {
    return mapped_sizes<D>(members_of(t));
  } else if constexpr (is_tree_node<T>) {
    return detail::call_with([](auto const&... e) { return detail::joined(mapped_sizes<D>(e)...); }, t);
  } else {
    static_assert(value<T>, "varve: vmap: an argument that is not a value cannot be mapped; give it in_dims none");
    auto size = [](dims const& s, dims const& a) {
      if (s.n == 0) refuse::a_value_of_rank_0_has_no_axis_to_map();
      return dims{s[wrap_axis(a[0], s.n)]};
    };
    return std::make_tuple(on_dims(size, shape_of(t), ints<D>{}));
  }
}
/// False if the type of an argument shows that it has no dimension to map.
template <auto D, class T>
inline constexpr bool has_dimension = true;
template <auto D, value T>
  requires(!is_none<decltype(D)>)
inline constexpr bool has_dimension<D, T> =
    !std::is_same_v<std::remove_cvref_t<decltype(shape_of(std::declval<T const&>()))>, ints<>>;
/// True unless the compiler knows that the mapped sizes differ.
template <class S>
inline constexpr bool sizes_agree = false;
template <class N, class... M>
inline constexpr bool sizes_agree<std::tuple<N, M...>> =
    !(is_ints<N> && (is_ints<M> && ...)) || (std::is_same_v<N, M> && ...);

template <class N, class... M>
constexpr auto common_size(std::tuple<N, M...> const& sizes) {
  if constexpr (is_ints<N> && (is_ints<M> && ...)) {
    return N{};
  } else {
    dims const n = to_dims(std::get<0>(sizes));
    detail::call_with(
        [&](auto const&... s) { ((to_dims(s) == n ? void() : refuse::mapped_sizes_differ(n, to_dims(s))), ...); },
        sizes);
    return n;
  }
}

/// The scope of `vmap` on static values: arguments mapped at a static level.
template <int N, class Tag, class Size>
struct static_batch_scope {
  using interpreter = vmap_interpreter<static_level<N, Tag>, Size>;
  static constexpr bool on_tensors = false;
  Size n;
  constexpr Size size() const { return n; }
  template <class V>
  constexpr auto map(V const& v) const {
    interpreter in{};
    in.n = n;
    return seen<interpreter, V>{v, in, {}};
  }
  template <class Body>
  constexpr auto run(Body const& body) const {
    return body();
  }
  template <class Y>
  static constexpr auto mapped(Y const&) {
    check_exit<N, Y>();
    return std::bool_constant<at_level<Y, N>>{};
  }
  template <class Y>
  static constexpr auto unmapped(Y const& y) {
    return y.value;
  }
};
template <class F, class Size, class... X>
constexpr auto batch_scope([[maybe_unused]] F const& f, Size const& n, [[maybe_unused]] random_policy random) {
  if constexpr (any_dynamic<X...>) return dynamic_batch_scope<>(to_dims(n)[0], random);
  else return static_batch_scope<next_level<F, X...>, F, Size>{n};
}

template <auto D, class Scope, class T>
constexpr auto map_tree(Scope const& scope, T const& t) {
  if constexpr (is_none<decltype(D)>) return t;
  else
    return tree_map(
        [&](auto const& v) { return scope.map(permute_to(plain(v), on_dims(to_front, shape_of(v), ints<D>{}))); }, t);
}
/// Returns a value that is the same in every lane, repeated n times.
template <class V, class N>
constexpr auto repeated(V const& v, N const& n) {
  if constexpr (number<V> && !is_ints<N>)
    return backend<dependent<traced_base, V>>::full(n, dims{static_cast<index_t>(dtype_of_type<V>())}, v);
  else return expand(v, on_dims(prepend, shape_of(v), n));
}
template <auto D, class Scope, class Y>
constexpr auto collect(Scope const& scope, Y const& y) {
  static_assert(value<Y>, "varve: vmap: the mapped function must return values");
  if constexpr (is_none<decltype(D)>) {
    auto const mapped = scope.mapped(y);
    if constexpr (std::is_same_v<std::remove_const_t<decltype(mapped)>, bool>) {
      if (mapped) refuse::result_is_mapped_but_out_dims_says_none();
    } else {
      static_assert(!decltype(mapped)::value,
                    "varve: vmap: a result is mapped although out_dims says none; give it a dimension");
    }
    return y;
  } else if constexpr (number<Y> && Scope::on_tensors) {
    return collect<D>(scope, as_tensor(y));
  } else {
    auto const front = choose(
        scope.mapped(y), [&](auto const& v) { return scope.unmapped(v); },
        [&](auto const& v) { return repeated(v, scope.size()); }, y);
    return permute_to(front, on_dims(from_front, shape_of(front), ints<D>{}));
  }
}
/// True if out_dims has one entry, which serves all results, or one entry per result.
template <std::size_t Dims, class Y>
consteval bool counts_results() {
  if constexpr (Dims == 1) {
    return true;
  } else if constexpr (tuple_node<Y>) {
    static_assert(same_number<Dims, std::tuple_size_v<Y>>,
                  "varve: vmap: out_dims must have one entry, or one per result");
    return Dims == std::tuple_size_v<Y>;
  } else {
    static_assert(same_number<Dims, 1>, "varve: vmap: out_dims must have one entry, since there is one result");
    return false;
  }
}
template <auto... D, class Scope, class Y>
constexpr auto collect_tree(Scope const& scope, Y const& y) {
  if constexpr (!counts_results<sizeof...(D), Y>()) {
    return none; // instantiate nothing more after the message
  } else if constexpr (is_tree_node<Y> && !tuple_node<Y>) {
    return tree_map([&](auto const& v) { return collect<dim_at<0, D...>()>(scope, v); }, y);
  } else if constexpr (is_tree_node<Y>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return remake(std::type_identity<Y>{}, collect_tree<dim_at<K, D...>()>(scope, std::get<K>(y))...);
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  } else {
    return collect<dim_at<0, D...>()>(scope, y);
  }
}
} // namespace detail

/// The function object that `vmap` returns.
template <class F, class In, class Out, random_policy R = random_policy::error>
struct vmap_function;
template <class F, auto... In, auto... Out, random_policy R>
struct vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> {
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr bool counted = sizeof...(In) == 1 || sizeof...(In) == sizeof...(X);
    static_assert(counted, "varve: vmap: in_dims must have one entry, or one per argument");
    if constexpr (counted) return check(std::index_sequence_for<X...>{}, x...);
    else return none;
  }

private:
  template <std::size_t... K, class... X>
  constexpr auto check(std::index_sequence<K...> all, X const&... x) const {
    constexpr bool have_dimensions = (detail::has_dimension<detail::dim_at<K, In...>(), X> && ...);
    static_assert(have_dimensions,
                  "varve: vmap: a number has no dimension that could be mapped; say none for it, as in "
                  "vmap(f, in_dims<0, none>)");
    if constexpr (have_dimensions) return call(all, x...);
    else return nth<0>(x...);
  }
  template <std::size_t... K, class... X>
  constexpr auto call(std::index_sequence<K...>, X const&... x) const {
    auto sizes = detail::joined(detail::mapped_sizes<detail::dim_at<K, In...>()>(x)...);
    using S = decltype(sizes);
    static_assert(std::tuple_size_v<S> != 0, "varve: vmap: at least one argument must be mapped");
    static_assert(std::tuple_size_v<S> == 0 || detail::sizes_agree<S>,
                  "varve: vmap: the mapped dimensions of the arguments have different sizes");
    if constexpr (detail::sizes_agree<S>) {
      auto scope = detail::batch_scope<F, decltype(detail::common_size(sizes)), X...>(f, detail::common_size(sizes), R);
      auto const in = std::make_tuple(detail::map_tree<detail::dim_at<K, In...>()>(scope, x)...);
      auto const y = scope.run([&] { return detail::call_with(f, in, std::index_sequence<K...>{}); });
      return detail::collect_tree<Out...>(scope, y);
    } else {
      return nth<0>(x...); // after the message: its uses cause no further ones
    }
  }
};

/// Returns a function that maps f: `vmap(f)(x...)` applies f to slices of its arguments as one batched program and
/// stacks the results. The result equals that of a loop over the slices. It is an error if the mapped sizes differ, or
/// if a result is mapped although `out_dims` says none. Random operators on tensors inside f are refused unless
/// `randomness` says what they do.
template <class F, auto... In, auto... Out, random_policy R = random_policy::error>
constexpr auto vmap(F f, in_dims_t<In...>, out_dims_t<Out...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R>{f};
}
template <class F, auto... In, random_policy R = random_policy::error>
constexpr auto vmap(F f, in_dims_t<In...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<In...>, out_dims_t<0>, R>{f};
}
template <class F, auto... Out, random_policy R = random_policy::error>
constexpr auto vmap(F f, out_dims_t<Out...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<0>, out_dims_t<Out...>, R>{f};
}
template <random_policy R = random_policy::error, class F>
constexpr auto vmap(F f, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<0>, out_dims_t<0>, R>{f};
}

} // namespace varve
