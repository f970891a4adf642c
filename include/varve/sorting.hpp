// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Scans, sorting and functions built on them: cumulative sums and products, selection, medians, quantiles, unique
/// elements.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/sorting/scans.hpp>
#include <varve/sorting/sort.hpp>
#include <varve/sorting/unique.hpp>

#pragma GCC diagnostic pop
