// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What `torch.masked` has: reductions of the elements where a mask is true.
#include <varve/masked/reductions.hpp>
