// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

namespace varve::detail {

/// A global whose constructor calls a function before a program's own globals are initialized: `VARVE_FIRST inline
/// at_start const known{f};`.
struct at_start {
  explicit at_start(void (*f)()) { f(); }
};

} // namespace varve::detail
