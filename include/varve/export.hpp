// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs captured as one object: `export_program`, `save`, `load`. The umbrella header does not include them.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/saved_function.hpp>
#include <varve/export/draft_export.hpp>
#include <varve/export/export_program.hpp>
#include <varve/export/run_decompositions.hpp>
#include <varve/export/safetensors.hpp>

#pragma GCC diagnostic pop
