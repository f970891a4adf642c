// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/tree_names.hpp>
#include <varve/interpreter/stack_of.hpp>
#include <varve/transform/with.hpp>

#include <boost/hana.hpp>

#include <functional>

/// @file
/// Boost.Hana types as trees of values: `hana::tuple`, `hana::map` with string keys, and structs adapted by
/// `BOOST_HANA_ADAPT_STRUCT` or defined by `BOOST_HANA_DEFINE_STRUCT`. Leaves of structs have the names of the members.
/// Include this header yourself; varve.hpp does not. It includes all of Hana, so that its algorithms work on
/// `stack_of<V>`.
namespace varve {

namespace detail {
template <class T>
inline constexpr bool is_hana_tuple = false;
template <class... T>
inline constexpr bool is_hana_tuple<boost::hana::tuple<T...>> = true;
template <class T>
inline constexpr bool is_hana_map = boost::hana::is_a<boost::hana::map_tag, T>;
template <class T>
concept hana_struct = boost::hana::Struct<T>::value && !is_hana_tuple<T> && !is_hana_map<T>;
/// Returns the text of a key: a Hana string, or the name of a type.
template <class K>
constexpr char const* key_name(K const&) {
  if constexpr (requires { K::c_str(); }) return K::c_str();
  else return name_of_type<K>.c_str();
}
template <class T>
constexpr auto hana_keys() {
  if constexpr (is_hana_map<T>) return decltype(boost::hana::keys(std::declval<T const&>())){};
  else return boost::hana::transform(boost::hana::accessors<T>(), boost::hana::first);
}
} // namespace detail

template <class T>
  requires detail::hana_struct<T> || detail::is_hana_tuple<T> || detail::is_hana_map<T>
inline constexpr bool is_tree_node<T> = true;

template <class... T>
struct tree_members<boost::hana::tuple<T...>> {
  template <class X, class F>
  static constexpr decltype(auto) with(X& t, F const& f) {
    return boost::hana::unpack(t, f);
  }
  static constexpr auto make(auto const&... m) { return boost::hana::make_tuple(m...); }
  static std::string name(std::size_t k) { return std::to_string(k); }
};

/// The members of a struct in order of declaration. A class template is rebuilt with its new leaf type.
template <detail::hana_struct T>
struct tree_members<T> {
  template <class X, class F>
  static constexpr decltype(auto) with(X& t, F const& f) {
    return boost::hana::unpack(boost::hana::accessors<T>(),
                               [&](auto const&... a) -> decltype(auto) { return f(boost::hana::second(a)(t)...); });
  }
  template <class... M>
  static constexpr auto make(M const&... m) {
    using R = typename detail::remade_aggregate<T, M...>::type;
    static_assert(
        requires { R{m...}; }, "varve: a struct of fixed types cannot hold values seen through transforms; "
                               "make it a template of the type of its leaves");
    return R{m...};
  }
  static std::string name(std::size_t k) {
    std::string r;
    boost::hana::for_each(detail::hana_keys<T>(), [&](auto const& key) {
      if (k-- == 0) r = detail::key_name(key);
    });
    return r;
  }
};

/// The values of a map; the keys stay unchanged.
template <class T>
  requires detail::is_hana_map<T>
struct tree_members<T> {
  template <class X, class F>
  static constexpr decltype(auto) with(X& t, F const& f) {
    return boost::hana::unpack(detail::hana_keys<T>(),
                               [&](auto const&... key) -> decltype(auto) { return f(t[key]...); });
  }
  template <class... M>
  static constexpr auto make(M const&... m) {
    return boost::hana::unpack(detail::hana_keys<T>(), [&](auto const&... key) {
      return boost::hana::make_map(boost::hana::make_pair(key, m)...);
    });
  }
  static std::string name(std::size_t k) {
    std::string r;
    boost::hana::for_each(detail::hana_keys<T>(), [&](auto const& key) {
      if (k-- == 0) r = detail::key_name(key);
    });
    return r;
  }
};

namespace detail {
template <class M>
constexpr M& mode_in(M& m) {
  return m;
}
template <class M>
constexpr M& mode_in(std::reference_wrapper<M>& m) {
  return m.get();
}
template <std::size_t K, class T, class F, class... X>
constexpr auto with_modes(T& modes, F const& f, X const&... x) {
  if constexpr (K == decltype(boost::hana::size(modes))::value) return f(x...);
  else
    return with(
        mode_in(modes[boost::hana::size_c<K>]), [&](auto const&... y) { return with_modes<K + 1>(modes, f, y...); },
        x...);
}
} // namespace detail

/// Calls f(x...) under a stack of modes, the first outermost: `with(hana::make_tuple(m1, m2), f, x...)`. To read the
/// state of a mode afterwards, name the tuple, or put `std::ref(m1)` into it.
template <class... M, class F, class... X>
  requires(sizeof...(X) > 0)
constexpr auto with(boost::hana::tuple<M...>& modes, F const& f, X const&... x) {
  return detail::with_modes<0>(modes, f, x...);
}
template <class... M, class F, class... X>
  requires(sizeof...(X) > 0)
constexpr auto with(boost::hana::tuple<M...>&& modes, F const& f, X const&... x) {
  return detail::with_modes<0>(modes, f, x...);
}

} // namespace varve

#pragma GCC diagnostic pop
