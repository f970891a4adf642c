// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Complex tensors of dtypes complex64 and complex128: `complex`, `polar`, `real`, `imag`, `conj`, `view_as_real`,
/// arithmetic, matrix products and elementary functions. Derivatives are conjugate Wirtinger derivatives, as in
/// PyTorch.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/complex/numbers.hpp>
#include <varve/complex/operators.hpp>

#pragma GCC diagnostic pop
