// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What `torch.signal` has: windows.
#include <varve/signal/windows.hpp>
