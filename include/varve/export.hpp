// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Whole programs as values: `export_program`, `save`, `load`. The umbrella leaves them out.
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
