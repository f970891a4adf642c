// SPDX-License-Identifier: BSL-1.0
// Version and feature macros, as programs ask for them.
#include <varve/config.hpp>

#if VARVE_VERSION < 100 || VARVE_VERSION / 10000 != VARVE_VERSION_MAJOR || VARVE_VERSION % 100 != VARVE_VERSION_PATCH
#error "the version is not the number of its parts"
#endif
#if VARVE_HAS_XSIMD() != VARVE_USE_XSIMD || VARVE_HAS_OPENMP() > 1 || !VARVE_HAS_EXCEPTIONS() || VARVE_HAS_HANA() > 1
#error "a feature is neither there nor not there"
#endif

namespace {
constexpr bool version_is_its_text() { // "0.1.0"
  int parts[3] = {}, k = 0;
  for (char const* c = VARVE_VERSION_STRING; *c; ++c)
    if (*c == '.') ++k;
    else parts[k] = parts[k] * 10 + (*c - '0');
  return k == 2 && parts[0] * 10000 + parts[1] * 100 + parts[2] == VARVE_VERSION;
}
static_assert(version_is_its_text());
} // namespace
