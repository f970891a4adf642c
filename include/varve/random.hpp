// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Random numbers beyond `randn`: uniform and whole ones, permutations, distributions, draws by weights, tensors filled
/// in place, and generators as arguments of all.
#include <varve/random/distributions.hpp>
#include <varve/random/factories.hpp>
#include <varve/random/in_place.hpp>
