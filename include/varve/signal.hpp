// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Window functions (`torch.signal.windows`).
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/signal/windows.hpp>

#pragma GCC diagnostic pop
