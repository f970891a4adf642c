// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The modes that come with varve. varve.hpp does not include them: include the header of the mode you use.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/mode/default_dtype_mode.hpp>
#include <varve/mode/deterministic_mode.hpp>
#include <varve/mode/flop_counter_mode.hpp>
#include <varve/mode/logging_mode.hpp>
#include <varve/mode/memory_tracker_mode.hpp>
#include <varve/mode/nan_check_mode.hpp>
#include <varve/mode/profiler_mode.hpp>
#include <varve/mode/schema_check_mode.hpp>

#pragma GCC diagnostic pop
