// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// All families of operators for calls by name (`ops::call`).
#include <varve/by_name/create.hpp>
#include <varve/by_name/fft.hpp>
#include <varve/by_name/index.hpp>
#include <varve/by_name/linalg.hpp>
#include <varve/by_name/masked.hpp>
#include <varve/by_name/matrix.hpp>
#include <varve/by_name/nn.hpp>
#include <varve/by_name/pointwise.hpp>
#include <varve/by_name/pool.hpp>
#include <varve/by_name/random.hpp>
#include <varve/by_name/reduction.hpp>
#include <varve/by_name/sampling.hpp>
#include <varve/by_name/scatter.hpp>
#include <varve/by_name/sorting.hpp>
#include <varve/by_name/special.hpp>
#include <varve/by_name/view.hpp>
