// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/backward.hpp>
#include <varve/sparse/sparse_jacobian.hpp>

/// @file
/// Sparse derivatives: patterns, colorings, Jacobians and Hessians. Include this header yourself; varve.hpp does not.

#pragma GCC diagnostic pop
