// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/type.hpp>

#include <tuple>

/// @file
/// Names similar to those of modes with separate headers. If a program uses such a mode without its header, compilers
/// suggest the name declared here and show its line, which names the header.
namespace varve {

namespace detail {
/// A base whose construction is a compile error.
struct in_a_header {
  template <class... A>
  explicit in_a_header(A const&...) {
    static_assert(never<std::tuple<A...>>, "varve: this mode has a header of its own, which the umbrella leaves out: "
                                           "#include <varve/mode/...>, as its name here says");
  }
};
} // namespace detail
struct default_dtype_mode_hpp : detail::in_a_header {};  // #include <varve/mode/default_dtype_mode.hpp>
struct deterministic_mode_hpp : detail::in_a_header {};  // #include <varve/mode/deterministic_mode.hpp>
struct flop_counter_mode_hpp : detail::in_a_header {};   // #include <varve/mode/flop_counter_mode.hpp>
struct logging_mode_hpp : detail::in_a_header {};        // #include <varve/mode/logging_mode.hpp>
struct memory_tracker_mode_hpp : detail::in_a_header {}; // #include <varve/mode/memory_tracker_mode.hpp>
struct nan_check_mode_hpp : detail::in_a_header {};      // #include <varve/mode/nan_check_mode.hpp>
struct profiler_mode_hpp : detail::in_a_header {};       // #include <varve/mode/profiler_mode.hpp>
struct schema_check_mode_hpp : detail::in_a_header {};   // #include <varve/mode/schema_check_mode.hpp>

} // namespace varve
