// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// All families of operators for calls by name (`ops::call`).
#include <varve/call/create.hpp>
#include <varve/call/fft.hpp>
#include <varve/call/index.hpp>
#include <varve/call/linalg.hpp>
#include <varve/call/masked.hpp>
#include <varve/call/matrix.hpp>
#include <varve/call/nn.hpp>
#include <varve/call/pointwise.hpp>
#include <varve/call/pool.hpp>
#include <varve/call/random.hpp>
#include <varve/call/reduction.hpp>
#include <varve/call/sampling.hpp>
#include <varve/call/scatter.hpp>
#include <varve/call/sorting.hpp>
#include <varve/call/special.hpp>
#include <varve/call/view.hpp>
