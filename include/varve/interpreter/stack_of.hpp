// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/seen.hpp>

#if VARVE_USE_HANA
#include <boost/hana/fwd/tuple.hpp>
#include <boost/hana/fwd/type.hpp>
#endif

namespace varve {

#if VARVE_USE_HANA
namespace detail {
template <class V, class... Outer>
// needs Hana's declarations only; its definitions would be a tenth of the umbrella header
constexpr auto stack_of_type() {
  using tuple = boost::hana::tuple<boost::hana::type<Outer>...>;
  if constexpr (is_seen<V>) return stack_of_type<decltype(V::value), Outer..., typename V::interpreter>();
  else if constexpr (requires { sizeof(tuple); }) return tuple{};
  else
    static_assert(never<V>, "varve: stack_of gives a tuple of Boost.Hana, whose definition is not here: include "
                            "<boost/hana/tuple.hpp> and <boost/hana/type.hpp>, or <varve/interop/hana.hpp>");
}
} // namespace detail

/// The type-level stack of interpreters through which a value is seen, innermost transform first, as a
/// `boost::hana::tuple` of `hana::type`s. The program includes the headers of these types and of the algorithms that it
/// calls; `varve/interop/hana.hpp` includes all of them. Example: `static_assert(hana::size(stack_of<V>) ==
/// hana::size_c<2>)`.
template <class V>
inline constexpr auto stack_of = detail::stack_of_type<std::remove_cvref_t<V>>();
#else
/// A compile error without Boost, because the stack is a tuple of Boost.Hana.
template <class V>
inline constexpr auto stack_of = [] {
  static_assert(never<V>, "varve: stack_of gives a tuple of Boost.Hana, which is not here: install Boost "
                          "(apt install libboost-dev, brew install boost)");
  return 0;
}();
#endif

/// The name of an interpreter: "grad", "jvp", "vmap", "mode".
template <class I>
inline constexpr char const* kind_of = I::kind;

} // namespace varve
