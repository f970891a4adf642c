// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/hooks.hpp>

#include <cstdlib>
#include <string>
#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#endif

namespace varve {

/// A scope for finding faults in backward passes; it is slow. Every recorded operator stores the C++ call stack that
/// recorded it. A backward pass that fails in the scope, or finds a NaN if `check_nan` is set, names the operator and
/// that stack. If the operator was recorded during another backward pass, it names that too. Function names appear in
/// programs linked with `-rdynamic`; otherwise addresses, for `addr2line`.
class anomaly_mode {
public:
  explicit anomaly_mode(bool check_nan = true) : before_{this_thread_state.anomaly, this_thread_state.check_nan} {
    this_thread_state.anomaly = true;
    this_thread_state.check_nan = check_nan;
  }
  anomaly_mode(anomaly_mode const&) = delete;
  anomaly_mode& operator=(anomaly_mode const&) = delete;
  ~anomaly_mode() {
    this_thread_state.anomaly = before_[0];
    this_thread_state.check_nan = before_[1];
  }

private:
  bool before_[2];
};

namespace detail {
/// Returns the call stack, one line per call.
template <class = void>
std::string call_site() {
  std::string r;
#if defined(__has_include)
#if __has_include(<execinfo.h>)
  void* frames[32];
  int const n = ::backtrace(frames, 32);
  char** const names = ::backtrace_symbols(frames, n);
  for (int k = 1; names && k < n; ++k) r += std::string("\n    ") + names[k];
  std::free(static_cast<void*>(names));
#endif
#endif
  return r.empty() ? std::string(" (unknown on this platform)") : r;
}
/// Stores in a new node where it was recorded, and during whose backward pass.
template <class T = tensor>
void note_call(grad_node& n) {
  std::string where = call_site<>();
  if (grad_node const* const parent = backward_run<T>::this_node()) {
    where += "\n  while " + autograd::node(const_cast<grad_node*>(parent)).name() + " ran backward";
    if (parent->extra) where += std::string(", which was recorded at") + parent->extra->call();
  }
  node_extra<T>::of(n).where = where;
}
} // namespace detail

} // namespace varve
