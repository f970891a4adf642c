// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Indexing and scattering beyond the operators of the umbrella header: advanced indexing, `bincount`, scatters,
/// `unravel_index`.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/indexing/advanced.hpp>
#include <varve/indexing/bincount.hpp>
#include <varve/indexing/scatter.hpp>
#include <varve/indexing/unravel.hpp>

#pragma GCC diagnostic pop
