// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Whole programs as values: `export_program`, `save`, `load`. The umbrella leaves them out.
#include <varve/export/export_program.hpp>
#include <varve/export/safetensors.hpp>
