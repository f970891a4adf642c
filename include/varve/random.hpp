// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Random numbers beyond `randn`: uniform numbers, integers, permutations, distributions, weighted sampling and
/// in-place filling. All accept a generator as an argument.
#include <varve/random/distributions.hpp>
#include <varve/random/factories.hpp>
#include <varve/random/in_place.hpp>
