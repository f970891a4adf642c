// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Elementwise functions beyond the umbrella header: integer and bitwise functions, rounding, angles, special
/// functions.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/special/angles.hpp>
#include <varve/special/bessel.hpp>
#include <varve/special/bitwise.hpp>
#include <varve/special/error_functions.hpp>
#include <varve/special/gamma.hpp>
#include <varve/special/integers.hpp>
#include <varve/special/polynomials.hpp>
#include <varve/special/rounding.hpp>

#pragma GCC diagnostic pop
