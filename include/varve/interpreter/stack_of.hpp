// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/seen.hpp>

#if VARVE_USE_HANA
#include <boost/hana/equal.hpp>
#include <boost/hana/prepend.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#endif

namespace varve {

#if VARVE_USE_HANA
namespace detail {
template <class V>
constexpr auto stack_of_type() {
  if constexpr (is_seen<V>)
    return boost::hana::prepend(stack_of_type<decltype(V::value)>(), boost::hana::type_c<typename V::interpreter>);
  else return boost::hana::tuple<>{};
}
} // namespace detail

/// The type-level stack of interpreters a value is seen through, innermost transform first, as a `boost::hana::tuple`
/// of `hana::type`s: Hana's algorithms work on it. `static_assert(hana::size(stack_of<V>) == hana::size_c<2>)`.
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
