// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Fourier transforms (`torch.fft`), with derivatives, of complex and real tensors of any length; `varve/complex.hpp`
/// is included.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/fft/functions.hpp>

#pragma GCC diagnostic pop
