// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs without writes, as a transform (`functionalize`) and as a mode below other modes (`functional_mode`), which
/// the umbrella leaves out.
#include <varve/functional/functional_mode.hpp>
#include <varve/functional/functionalize.hpp>
