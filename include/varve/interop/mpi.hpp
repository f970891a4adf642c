// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/interop/mpi_collectives.hpp>
#include <varve/interop/mpi_communicator.hpp>
#include <varve/interop/mpi_environment.hpp>
#include <varve/interop/mpi_messages.hpp>
#include <varve/op/all.hpp>

/// @file
/// Operators between the processes ("ranks") of MPI: sums over ranks, broadcasts, gathers and messages, with rules for
/// `jvp`, `vjp` and `vmap`, on static values and on tensors. All are linear, and derivatives are those of the program
/// as a whole: the gradient that a rank gets is that of the sum of the losses of all ranks. (`shared` and `shared_sum`
/// are for a loss that every rank has alike.) Every rank of a communicator must make the same calls in the same order,
/// and differentiate, or map, the same ones. In graphs that are made at run time these calls are effects
/// (`op_kind::effect`): they stay, each once, in the order of the text; a trace makes none, who runs the graph does, on
/// all ranks. So ranks may trace alone, and a number that was received is 0 while a function is traced. Functions that
/// the compiler traces (`trace`, `fuse`) refuse them, and so do fused programs; programs that name a communicator other
/// than the world are not saved.

#pragma GCC diagnostic pop
