// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <type_traits>

/// @file
/// When operators with effects (`op_kind::effect`) do nothing: while a function is traced, since who runs the graph
/// acts, and, of those that only tell, while a function runs again for its gradient, since they told the first time.
namespace varve::detail {

/// How many traces of this thread are running an operator with an effect for its shape.
inline constinit thread_local int unacted = 0;
/// How many functions of this thread run again what has run before.
inline constinit thread_local int reruns = 0;

/// Counts one of these for its life; the compiler, which has no threads, does not.
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

/// Does an effect with these rules only tell: does nothing depend on what it gives?
template <class R>
inline constexpr bool only_tells = requires { requires R::only_tells; };
/// Does an effect with these rules do nothing now?
template <class R>
bool is_silent() {
  return unacted > 0 || (only_tells<R> && reruns > 0);
}

} // namespace varve::detail
