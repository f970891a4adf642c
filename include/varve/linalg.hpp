// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Matrix factorizations and functions built on them (`torch.linalg`). They are batched, for float32 and float64, and
/// use plain O(n^3) algorithms for small and medium sizes.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/linalg/inverse.hpp>
#include <varve/linalg/ldl.hpp>
#include <varve/linalg/lu.hpp>
#include <varve/linalg/multi_dot.hpp>
#include <varve/linalg/names.hpp>
#include <varve/linalg/orthogonal.hpp>
#include <varve/linalg/spectral.hpp>
#include <varve/linalg/triangular.hpp>

#pragma GCC diagnostic pop
