// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Functions compiled ahead of time together with their gradients (`aot_function`, `compile(f, backend)`) and joint
/// graphs (`aot_export_joint`). The umbrella header does not include them.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/aot/aot_function.hpp>
#include <varve/aot/export_joint.hpp>

#pragma GCC diagnostic pop
