// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Building blocks of neural networks beyond the umbrella header: activations, losses, normalizations, pooling,
/// embeddings, weight initialization, sampling, dropout.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/nn/activation.hpp>
#include <varve/nn/attention.hpp>
#include <varve/nn/dropout.hpp>
#include <varve/nn/embedding.hpp>
#include <varve/nn/init.hpp>
#include <varve/nn/interpolate.hpp>
#include <varve/nn/loss.hpp>
#include <varve/nn/normalization.hpp>
#include <varve/nn/pooling.hpp>
#include <varve/nn/sampling.hpp>

#pragma GCC diagnostic pop
