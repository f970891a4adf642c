// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Fake tensors: programs on shapes, dtypes and aliasing alone. The umbrella leaves them out.
#include <varve/autograd/backward.hpp>
#include <varve/fake/fake_mode.hpp>
#include <varve/fake/make_fx.hpp>
#include <varve/fake/pre_dispatch.hpp>
#include <varve/fake/tracing_context.hpp>
#include <varve/shape/sym_bool.hpp>
