// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

namespace varve::detail {

/// Calls a function before objects of programs are initialized: `VARVE_FIRST inline at_start const known{f};`.
struct at_start {
  explicit at_start(void (*f)()) { f(); }
};

} // namespace varve::detail
