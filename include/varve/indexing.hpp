// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What reads and writes by index beyond the operators of the umbrella.
#include <varve/indexing/advanced.hpp>
#include <varve/indexing/scatter.hpp>
