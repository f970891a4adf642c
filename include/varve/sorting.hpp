// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Scans, sorts and what is made of them: running sums and products, selections, medians, quantiles, distinct elements.
#include <varve/sorting/scans.hpp>
#include <varve/sorting/sort.hpp>
#include <varve/sorting/unique.hpp>
