// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <type_traits>

/// @file
/// When operators with effects (`op_kind::effect`) do nothing. While a function is traced, none of them acts: running
/// the graph does. While a function runs again for its gradient, effects on whose result nothing depends (`only_tells`)
/// do not act: they did the first time.
namespace varve::detail {

/// The number of traces on this thread that currently run an operator with an effect only for its shape.
inline constinit thread_local int unacted = 0;
/// The number of functions on this thread that currently run again.
inline constinit thread_local int reruns = 0;

/// A scope that increments a counter. It does nothing in constant expressions, where there are no threads.
template <int& (*Counter)()>
class silence {
public:
  constexpr explicit silence(bool on = true) : on_(on) {
    if (!std::is_constant_evaluated()) Counter() += on_;
  }
  silence(silence const&) = delete;
  silence& operator=(silence const&) = delete;
  constexpr ~silence() {
    if (!std::is_constant_evaluated()) Counter() -= on_;
  }

private:
  bool on_;
};
inline int& count_of_unacted() { return unacted; }
inline int& count_of_reruns() { return reruns; }
using unacted_scope = silence<&count_of_unacted>;
using rerun_scope = silence<&count_of_reruns>;

/// True if nothing depends on the result of an effect with these rules.
template <class R>
inline constexpr bool only_tells = requires { requires R::only_tells; };
/// True if an effect with these rules does nothing now.
template <class R>
bool is_silent() {
  return unacted > 0 || (only_tells<R> && reruns > 0);
}

} // namespace varve::detail
