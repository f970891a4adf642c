// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Everything but the optional adapters of `interop/`.
#include <varve/config.hpp>
#include <varve/core/message.hpp>
#include <varve/fwd.hpp>
#include <varve/graph/fuse.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/make_fx.hpp>
#include <varve/graph/print.hpp>
#include <varve/graph/trace.hpp>
#include <varve/graph/verify.hpp>
#include <varve/hop/cond.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/interpreter/stack_of.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>
#include <varve/transform/with.hpp>
#include <varve/value/tensor_ref.hpp>
