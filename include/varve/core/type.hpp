// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace varve {

/// Absence as a type: no tangent, no cotangent, not mapped (`in_dims<none, 0>`).
struct none_t {
  friend constexpr bool operator==(none_t, none_t) { return true; }
};
inline constexpr none_t none{};

/// Is a type that of `none`?
template <class T>
inline constexpr bool is_none = std::is_same_v<std::remove_cvref_t<T>, none_t>;

/// Names an operand by position in rules: `jvp(arg<1>, ...)` is the rule of the second.
template <std::size_t I>
struct arg_t {};
template <std::size_t I>
inline constexpr arg_t<I> arg{};

/// The partial derivatives 1 and -1, so that linear operators multiply nothing.
struct one_t {};
struct minus_one_t {};
inline constexpr one_t one{};
inline constexpr minus_one_t minus_one{};

/// The K-th of several arguments.
template <std::size_t K, class X, class... R>
constexpr auto const& nth(X const& x, R const&... r) {
  if constexpr (K == 0) return x;
  else return nth<K - 1>(r...);
}

/// The name of a type as the compiler spells it: for run-time messages.
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
/// The name of a type, as the compiler writes it.
template <class T>
inline constexpr auto name_of_type = type_name<T>();
/// Tells types that are declared by varve: programs may call their own operators like those of varve. (Functions of a
/// scope of their own: g++ leaves out the scope that both are in.)
struct declared {
  /// Does the name of a type begin with a scope, as "std::"?
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
      if (*p == '<') return false; // what a program puts into a template of varve
    return true;
  }
};

namespace detail {
template <class T, class...>
struct depends {
  using type = T;
};
} // namespace detail
/// The type `T`, known only when `On` is: what is written in it inside of a template is instantiated when the template
/// is used, and not before.
template <class T, class... On>
using dependent = typename detail::depends<T, On...>::type;

/// False for every type: for `static_assert` in branches that may not be instantiated.
template <class...>
inline constexpr bool never = false;

/// Runs one of two generic lambdas that take the same values; both must give one type when the flag is data, only the
/// chosen one is instantiated when it is a type.
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
