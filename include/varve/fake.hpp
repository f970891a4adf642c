// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Fake tensors: they have shape, dtype and aliasing but no data, so that programs run without computing. The umbrella
/// header does not include them.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/backward.hpp>
#include <varve/fake/fake_mode.hpp>
#include <varve/fake/make_fx.hpp>
#include <varve/fake/pre_dispatch.hpp>
#include <varve/fake/tracing_context.hpp>
#include <varve/shape/sym_bool.hpp>

#pragma GCC diagnostic pop
