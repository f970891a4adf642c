// SPDX-License-Identifier: BSL-1.0
// What of the compiled library is no operator: every function that headers mark `VARVE_LIBRARY`, and the templates over
// tensors alone.
#define VARVE_DEFINES 2
#include <varve/shape/environment.hpp>
#include <varve/varve.hpp>
