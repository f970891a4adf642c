// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/step.hpp>
#include <varve/plan/cut_bodies.hpp>

/// @file
/// Loop bodies as functions: sequences of steps in the caller, blocks of a long body as separate functions, and the
/// steps before the innermost loop.
namespace varve::fusion {

namespace detail {
template <class P, int First, int From, int Vector, class M, class V, int... K>
VARVE_PART void run_some_steps(auto const& mem, index_t const* i, V* fixed, V* now, std::integer_sequence<int, K...>) {
  (compute<form_of<P>(First + From + K), P, Vector, M>(mem, i, fixed, now,
                                                       places_of<P, First + From, From, sizeof...(K)>.at[K]),
   ...);
}
template <class P, int First, int Count, int Vector, class M, class V, int... C>
VARVE_PART void run_rows_of_steps(auto const& mem, index_t const* i, V* fixed, V* now,
                                  std::integer_sequence<int, C...>) {
  (run_some_steps<P, First, C * 64, Vector, M>(
       mem, i, fixed, now, std::make_integer_sequence<int, (Count - C * 64 < 64 ? Count - C * 64 : 64)>{}),
   ...);
}
/// Runs one block of a body, as a separate function. `M` matters for loads only: full vectors and the last one share
/// the function.
template <class P, int Block, int Vector, class M, class Mem, class V>
VARVE_NOINLINE VARVE_WHOLE void run_block(Mem const& mem, index_t const* i, V* fixed) {
  constexpr block b = P::value.blocks[Block];
  V now[b.count];
  run_some_steps<P, b.first, 0, Vector, M>(mem, i, fixed, now, std::make_integer_sequence<int, b.count>{});
}
template <class P, int First, int Vector, class M, class Mem, class V, int... C>
VARVE_PART void run_row(Mem const& mem, index_t const* i, V* fixed, std::integer_sequence<int, C...>) {
  (run_block<P, First + C, Vector, M>(mem, i, fixed), ...);
}
} // namespace detail

/// Computes steps `[First, First + Count)` into `now`, all in the caller.
template <class P, int First, int Count, int Vector, class M, class V>
VARVE_PART void run_steps([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i,
                          [[maybe_unused]] V* fixed, [[maybe_unused]] V* now) {
  if constexpr (Count > 0)
    detail::run_rows_of_steps<P, First, Count, Vector, M>(
        mem, i, fixed, now, std::make_integer_sequence<int, (Count + 63) / 64>{}); // folds are limited to 256 elements
}

namespace detail {
template <class P, int First, int From, int Count, int Vector, class M, class Mem, class V>
VARVE_NOINLINE VARVE_WHOLE void run_row_apart(Mem const& mem, index_t const* i, V* fixed) {
  run_some_steps<P, First, From, Vector, M>(mem, i, fixed, fixed, std::make_integer_sequence<int, Count>{});
}
template <class P, int First, int From, int Count, int Vector, class M, class Mem, class V>
VARVE_PART void run_rows_apart(Mem const& mem, index_t const* i, V* fixed) {
  if constexpr (From < Count) {
    run_row_apart<P, First, From, (Count - From < block_steps ? Count - From : block_steps), Vector, M>(mem, i, fixed);
    run_rows_apart<P, First, From + block_steps, Count, Vector, M>(mem, i, fixed);
  }
}
} // namespace detail

/// Computes into `fixed` what does not change in the innermost loop of body `B`, before that loop. If the body is cut
/// into blocks, this happens in separate functions.
template <class P, int B, class M, class Mem, class V>
VARVE_PART void run_fixed_steps(Mem const& mem, index_t const* i, V* fixed) {
  constexpr body b = P::value.bodies[B];
  if constexpr (b.block_count > 0)
    detail::run_rows_apart<P, b.fixed_first, 0, b.fixed_count, b.vector, M>(mem, i, fixed);
  else run_steps<P, b.fixed_first, b.fixed_count, b.vector, M>(mem, i, fixed, fixed);
}

/// Runs blocks `[First, First + Count)` at one point of the iteration space; there may be any number of them.
template <class P, int First, int Count, int Vector, class M, class Mem, class V>
VARVE_PART void run_blocks_of_body(Mem const& mem, index_t const* i, V* fixed) {
  constexpr int now = Count < 128 ? Count : 128; // folds are limited to 256 elements
  detail::run_row<P, First, Vector, lanes_in_use<M::live>>(mem, i, fixed, std::make_integer_sequence<int, now>{});
  if constexpr (now < Count) run_blocks_of_body<P, First + now, Count - now, Vector, M>(mem, i, fixed);
}

} // namespace varve::fusion
