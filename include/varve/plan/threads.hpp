// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/threads.hpp>
#include <varve/plan/program.hpp>
#include <varve/shape/sample.hpp>

/// @file
/// Loops of fused programs that threads share, if threads are enabled (`VARVE_USE_OPENMP`, `VARVE_USE_THREADS`).
/// Otherwise this file adds nothing to a program.
///
/// The outermost loop of a nest is cut into at most 64 parts of whole vectors. The nest must have 2^15 points, and each
/// of the loop's steps must write its own elements, or all must add to numbers in registers. Such numbers are kept once
/// per part and combined in the order of the parts, so that results do not depend on the number of threads. Loops whose
/// steps add to the same elements of an array (sums of columns) stay on one thread, as do products of matrices and
/// calls. Blocks of run-time programs are shared in the same way, with scratch memory for each thread.
namespace varve::fusion {

/// True if parts of the outermost loop of a body may run at the same time: each of its steps writes its own elements,
/// or all add to numbers in registers.
template <class P>
constexpr bool can_share(body const& b) {
  index_t points = b.rank > 0 && b.sink_count <= 32 ? 1 : 0;
  for (int l = 0; l < b.rank; ++l) points *= is_run_time(b.extent[l]) ? shared_points : b.extent[l];
  for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
    sink const& s = P::value.sinks[k];
    if (P::value.accesses[s.access].stride[0] == 0 && (s.kind == sink_kind::store || s.level != 0)) return false;
  }
  return points >= shared_points;
}

} // namespace varve::fusion
