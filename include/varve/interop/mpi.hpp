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
/// Operators between the processes ("ranks") of MPI: sums over ranks, broadcasts, gathers and messages, on static
/// values and on tensors. All are linear and have rules for `jvp`, `vjp` and `vmap`.
///
/// Derivatives are those of the program as a whole: the gradient on a rank is that of the sum of the losses of all
/// ranks. If all ranks compute the same loss, use `shared` and `shared_sum`. Every rank of a communicator must make the
/// same calls in the same order, and differentiate or map the same calls.
///
/// In graphs traced at run time these calls are effects (`op_kind::effect`): the graph keeps each call once, in program
/// order. Tracing does not communicate; running the graph does, on all ranks. A rank may therefore trace alone, and a
/// received number is 0 while a function is traced. Functions traced by the compiler (`trace`, `fuse`) and fused
/// programs refuse these calls. A program that uses a communicator other than the world cannot be saved.
/// than the world are not saved.

#pragma GCC diagnostic pop
