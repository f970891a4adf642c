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
constexpr auto stack_of_type() { // by what Hana declares: what it defines would be a tenth of the umbrella
  using tuple = boost::hana::tuple<boost::hana::type<Outer>...>;
  if constexpr (is_seen<V>) return stack_of_type<decltype(V::value), Outer..., typename V::interpreter>();
  else if constexpr (requires { sizeof(tuple); }) return tuple{};
  else
    static_assert(never<V>, "varve: stack_of gives a tuple of Boost.Hana, whose definition is not here: include "
                            "<boost/hana/tuple.hpp> and <boost/hana/type.hpp>, or <varve/interop/hana.hpp>");
}
} // namespace detail

/// The type-level stack of interpreters a value is seen through, innermost transform first, as a `boost::hana::tuple`
/// of `hana::type`s, whose headers the program includes, as those of the algorithms that it calls on it (all of them:
/// `varve/interop/hana.hpp`). `static_assert(hana::size(stack_of<V>) == hana::size_c<2>)`.
template <class V>
inline constexpr auto stack_of = detail::stack_of_type<std::remove_cvref_t<V>>();
#else
/// Without Boost there are no tuples of Hana's to hold it.
template <class V>
inline constexpr auto stack_of = [] {
  static_assert(never<V>, "varve: stack_of gives a tuple of Boost.Hana, which is not here: install Boost "
                          "(apt install libboost-dev, brew install boost)");
  return 0;
}();
#endif

/// The word of an interpreter: "grad", "jvp", "vmap", "mode".
template <class I>
inline constexpr char const* kind_of = I::kind;

} // namespace varve
