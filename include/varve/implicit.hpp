// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Implicit functions: roots, fixed points, minima and solutions of linear equations, differentiated by the implicit
/// function theorem instead of through the steps of a solver.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/implicit/bisection.hpp>
#include <varve/implicit/fixed_point.hpp>
#include <varve/implicit/krylov.hpp>
#include <varve/implicit/linear_solve.hpp>
#include <varve/implicit/minimize.hpp>
#include <varve/implicit/newton.hpp>
#include <varve/implicit/root.hpp>

#pragma GCC diagnostic pop
