// SPDX-License-Identifier: BSL-1.0
#pragma once
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#endif

namespace varve::detail {

/// True if the process certainly has one thread only, so that it needs no locked instructions. Known with glibc only.
inline bool single_threaded() {
#if defined(__GLIBC__) && __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

} // namespace varve::detail
