// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/message.hpp>
#include <varve/dispatch/thread_state.hpp>

namespace varve {

/// A guard that sets the default dtype of factories on this thread until the end of the scope
/// (`torch.set_default_dtype`, which is not scoped).
///
///   default_dtype_mode const on{dtype::float64};
///   zeros({2, 3});                     // float64
///   zeros({2, 3}, dtype::float32);     // float32, as requested
///   full({2}, 1);                      // int64: the default applies to floating-point numbers only
///
/// It is no interpreter of calls, because a call does not show whether its dtype was given explicitly. Instead it
/// changes a thread-local setting that factories read; `carry` and `parallel_for` take the setting to other threads.
/// Throws `dtype_error` for a dtype that is not floating-point. (Static factories always name their dtype.)
class default_dtype_mode {
public:
  explicit default_dtype_mode(dtype type) : saved_(this_thread_state.default_type) {
    if (!is_floating(type))
      refuse::with<dtype_error>(
          (std::string("varve: the default dtype must be a floating one, not ") + name(type)).c_str());
    this_thread_state.default_type = type;
  }
  default_dtype_mode(default_dtype_mode const&) = delete;
  default_dtype_mode& operator=(default_dtype_mode const&) = delete;
  ~default_dtype_mode() { this_thread_state.default_type = saved_; }

private:
  dtype saved_;
};

} // namespace varve

#pragma GCC diagnostic pop
