// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/message.hpp>
#include <varve/dispatch/thread_state.hpp>

namespace varve {

/// Factories of this thread that name no dtype give this one, until the end of the scope (`torch.set_default_dtype`,
/// which is not scoped).
///
///   default_dtype_mode const on{dtype::float64};
///   zeros({2, 3});                     // float64
///   zeros({2, 3}, dtype::float32);     // float32, as it says
///   full({2}, 1);                      // int64: a number that is no floating one decides itself
///
/// It is no interpreter of calls: there a dtype that was named cannot be told from one that was not. It is part of the
/// thread's state instead, which factories read; `carry` and `parallel_for` take it to other threads. `dtype_error` for
/// a dtype that is not floating. (Static factories name their dtype in any case.)
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
