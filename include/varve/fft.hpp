// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Fourier transforms (`torch.fft`) of complex and real tensors of any length, with derivatives. Includes
/// `varve/complex.hpp`.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/fft/functions.hpp>

#pragma GCC diagnostic pop
