// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Masked reductions (`torch.masked`): reductions of the elements where a mask is true.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/masked/reductions.hpp>

#pragma GCC diagnostic pop
