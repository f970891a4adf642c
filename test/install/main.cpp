// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

static_assert(VARVE_VERSION_MAJOR >= 0 && VARVE_VERSION_MINOR >= 0 && VARVE_VERSION_PATCH >= 0);
static_assert(VARVE_USE_XSIMD == 0 || VARVE_USE_XSIMD == 1);

int main() {}
