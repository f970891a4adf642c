// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The umbrella header: the library without its optional parts. Folders such as `mode/`, `export/`, `nn/` and
/// `interop/` have headers of their own.
#include <varve/config.hpp> // first: it checks the compiler

// Warnings should concern the user's code only: here parameters share names with operators, and sizes are signed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/checkpoint.hpp>
#include <varve/autograd/function.hpp>
#include <varve/autograd/selective_checkpoint.hpp>
#include <varve/compile/compile.hpp>
#include <varve/core/message.hpp>
#include <varve/core/tree_names.hpp>
#include <varve/dispatch/thread_snapshot.hpp>
#include <varve/functional/functionalize.hpp>
#include <varve/fuse/fast_math.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/fuse/table_driven.hpp>
#include <varve/fwd.hpp>
#include <varve/graph/equal.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/named.hpp>
#include <varve/graph/print.hpp>
#include <varve/graph/schema.hpp>
#include <varve/graph/verify.hpp>
#include <varve/hop/cond.hpp>
#include <varve/hop/flex_attention.hpp>
#include <varve/interpreter/enable_mode.hpp>
#include <varve/interpreter/interpreter.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/interpreter/mode_headers.hpp>
#include <varve/interpreter/stack_of.hpp>
#include <varve/interpreter/subclass.hpp>
#include <varve/loop/associative_scan.hpp>
#include <varve/loop/map.hpp>
#include <varve/loop/scan.hpp>
#include <varve/loop/while_loop.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/static.hpp>
#include <varve/tensors.hpp>
#include <varve/trace/core_decompositions.hpp>
#include <varve/trace/decompose.hpp>
#include <varve/trace/linearize.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/trace/trace.hpp>

#include <varve/library/other_headers.hpp>

#include <varve/library/umbrella.hpp> // after all that it instantiates

#pragma GCC diagnostic pop
