// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Replaces in-place writes by operators without side effects: as a transform (`functionalize`) and as a mode below
/// other modes (`functional_mode`). The umbrella header includes only the transform.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/functional/functional_mode.hpp>
#include <varve/functional/functionalize.hpp>

#pragma GCC diagnostic pop
