// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What `torch.masked` has: reductions of the elements where a mask is true.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/masked/reductions.hpp>

#pragma GCC diagnostic pop
