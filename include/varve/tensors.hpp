// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The part of the umbrella header for programs of tensors: operators, transforms and eager autograd. It leaves out
/// graphs, fused functions, loops, custom functions and checkpoints; their headers can be included in addition.
#include <varve/config.hpp> // first: it checks the compiler

#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/allow_mutation.hpp>
#include <varve/autograd/backward.hpp>
#include <varve/autograd/forward_ad.hpp>
#include <varve/autograd/gradcheck.hpp>
#include <varve/autograd/in_place_views.hpp>
#include <varve/autograd/multi_grad_hook.hpp>
#include <varve/autograd/saved_tensors_hooks.hpp>
#include <varve/autograd/version.hpp>
#include <varve/composite/all.hpp>
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
#include <varve/value/tensor_ref.hpp>

#pragma GCC diagnostic pop
