// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace varve {

/// The type of `none`, which stands for absence: no tangent, no cotangent, not mapped (`in_dims<none, 0>`).
struct none_t {
  friend constexpr bool operator==(none_t, none_t) { return true; }
};
inline constexpr none_t none{};

/// True if a type is that of `none`.
template <class T>
inline constexpr bool is_none = std::is_same_v<std::remove_cvref_t<T>, none_t>;

/// The position of an operand in rules: `jvp(arg<1>, ...)` is the rule of the second operand.
template <std::size_t I>
struct arg_t {};
template <std::size_t I>
inline constexpr arg_t<I> arg{};

/// The partial derivatives 1 and -1, as types, so that linear operators multiply nothing.
struct one_t {};
struct minus_one_t {};
inline constexpr one_t one{};
inline constexpr minus_one_t minus_one{};

/// Returns the K-th of several arguments.
template <std::size_t K, class X, class... R>
constexpr auto const& nth(X const& x, R const&... r) {
  if constexpr (K == 0) return x;
  else return nth<K - 1>(r...);
}

/// Returns the name of a type as the compiler spells it, cut after 127 characters, for run-time messages.
template <class T>
constexpr auto type_name() {
  struct text {
    char v[128]{};
    constexpr char const* c_str() const { return v; }
  } r;
  char const* p = __PRETTY_FUNCTION__;
  while (*p && !(p[0] == 'T' && p[1] == ' ' && p[2] == '=')) ++p;
  if (*p) p += 4;
  for (int k = 0; k < 127 && *p && *p != ']' && *p != ';'; ++k) r.v[k] = *p++;
  return r;
}
/// The name of a type as the compiler spells it (`type_name`).
template <class T>
inline constexpr auto name_of_type = type_name<T>();
/// Tests for the scope that declares a type, needed because programs may name their operators like those of varve. The
/// functions have a class of their own, because g++ omits a scope that both the function and the type are in.
struct declared {
  /// True if the name of a type begins with a scope, such as "std::".
  template <class T>
  static constexpr bool in(char const* scope) {
    char const* p = __PRETTY_FUNCTION__;
    while (*p && !(p[0] == 'T' && p[1] == ' ' && p[2] == '=')) ++p;
    if (*p) p += 4;
    for (; *scope; ++scope, ++p)
      if (*p != *scope) return false;
    return true;
  }
  template <class T>
  static constexpr bool by_varve() {
    char const* p = __PRETTY_FUNCTION__;
    while (*p && !(p[0] == 'T' && p[1] == ' ' && p[2] == '=')) ++p;
    if (*p) p += 4;
    for (char const* own = "varve::"; *own; ++own, ++p)
      if (*p != *own) return false;
    for (; *p && *p != ']' && *p != ';'; ++p)
      if (*p == '<') return false; // a template of varve, which may contain a program's type
    return true;
  }
};

namespace detail {
template <class T, class...>
struct depends {
  using type = T;
};
} // namespace detail
/// The type `T`, dependent on `On`: expressions of this type inside of a template are checked and instantiated only
/// when the template is used.
template <class T, class... On>
using dependent = typename detail::depends<T, On...>::type;

/// False for every type: for `static_assert` in branches that may not be instantiated.
template <class...>
inline constexpr bool never = false;

/// Calls one of two generic lambdas with the same values. If the flag is data, both must return one type. If it is a
/// type, only the chosen one is instantiated.
template <class Flag, class F, class G, class... V>
constexpr auto choose(Flag flag, F const& f, G const& g, V const&... v) {
  if constexpr (std::is_same_v<Flag, bool>) {
    if (flag) return f(v...);
    return g(v...);
  } else if constexpr (Flag::value) {
    return f(v...);
  } else {
    return g(v...);
  }
}

} // namespace varve
