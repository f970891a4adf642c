// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Tools for training and fitting, for trees of static or dynamic parameters: optimizers, schedules, batches, gradient
/// clipping, least squares, progress.
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/adam.hpp>
#include <varve/optim/batches.hpp>
#include <varve/optim/clip_grad_norm.hpp>
#include <varve/optim/lbfgs.hpp>
#include <varve/optim/least_squares.hpp>
#include <varve/optim/progress.hpp>
#include <varve/optim/rmsprop.hpp>
#include <varve/optim/schedules.hpp>
#include <varve/optim/sgd.hpp>

#pragma GCC diagnostic pop
