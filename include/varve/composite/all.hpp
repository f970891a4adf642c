// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Includes all composite operators of the umbrella header.
#include <varve/composite/arithmetic.hpp>
#include <varve/composite/at.hpp>
#include <varve/composite/calculus.hpp>
#include <varve/composite/diagonals.hpp>
#include <varve/composite/einsum.hpp>
#include <varve/composite/flatten.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/pad.hpp>
#include <varve/composite/prod.hpp>
#include <varve/composite/products.hpp>
#include <varve/composite/ranges.hpp>
#include <varve/composite/repeat.hpp>
#include <varve/composite/stacks.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/composite/windows.hpp>
#include <varve/composite/xlogy.hpp>
