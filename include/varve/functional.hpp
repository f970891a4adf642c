// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs without writes, as a transform (`functionalize`) and as a mode below other modes (`functional_mode`), which
/// the umbrella leaves out.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/functional/functional_mode.hpp>
#include <varve/functional/functionalize.hpp>

#pragma GCC diagnostic pop
