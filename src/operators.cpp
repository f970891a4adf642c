// SPDX-License-Identifier: BSL-1.0
// The operators of the compiled library that the umbrella header has.
#define VARVE_DEFINES 4
#include <varve/varve.hpp>
