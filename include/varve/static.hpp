// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The part of the umbrella header for programs of static values: operators, transforms and `fuse`. It leaves out
/// loops, `cond`, custom functions, graphs and eager autograd; their headers can be included in addition.
#include <varve/config.hpp> // first: it checks the compiler

#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/composite/all.hpp>
#include <varve/fuse/fuse.hpp>
#include <varve/fuse/sized.hpp>
#include <varve/fuse/tensors.hpp>
#include <varve/library/other_headers.hpp>
#include <varve/op/all.hpp>
#include <varve/special/bitwise.hpp>
#include <varve/transform/chunked.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/functional_call.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>
#include <varve/transform/with.hpp>
#include <varve/value/print.hpp>

#pragma GCC diagnostic pop
