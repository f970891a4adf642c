// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/program.hpp>
#include <varve/shape/sample.hpp>
#if VARVE_USE_OPENMP
#ifndef _OPENMP
#error "varve: VARVE_USE_OPENMP needs a compiler that is told to use OpenMP: -fopenmp"
#endif
#include <omp.h>
#endif

/// @file
/// Loops of fused programs on the threads of OpenMP, where it is on (`VARVE_USE_OPENMP`). Without it nothing of this
/// file is left in a program.
///
/// The outermost loop of a nest is cut into at most 64 parts of whole vectors when it has 2^15 points, and each of its
/// steps leaves elements of its own, or all add to numbers in registers. Such numbers are kept one for each part and
/// put together in the order of the parts, so that results do not depend on the number of threads. Loops whose steps
/// add to the same elements of an array (sums of columns) stay on one thread, as do products of matrices and calls.
/// Blocks of run-time programs are shared likewise, with scratch memory for each thread.
namespace varve::loop {

/// Whether threads share loops.
inline constexpr bool threaded = VARVE_USE_OPENMP;
/// Points of the iteration space that a loop must have before threads share it, and that a part must have.
inline constexpr index_t shared_points = 1 << 15, part_points = 1 << 12;

/// A loop in parts of whole `unit`s (vectors, say); the last one has what is left beyond them. How many there are
/// depends on the sizes alone, and so does what the parts sum up.
struct loop_parts {
  static constexpr int most = 64;
  index_t extent, unit, units;
  int count;
  constexpr loop_parts(index_t extent_, index_t unit_, index_t points)
      : extent(extent_), unit(unit_), units(extent / unit), count(1) {
    if (points < shared_points) return;
    index_t n = points / part_points < most ? points / part_points : most;
    if (units < n) n = units;
    if (n > 1) count = static_cast<int>(n);
  }
  /// Where part `k` begins, and the one before it ends.
  constexpr index_t begin(int k) const { return k == count ? extent : units * k / count * unit; }
};

/// Whether the outermost loop of a body may be walked in parts at the same time: each of its steps leaves elements of
/// its own behind, or all add to numbers in registers.
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

/// Calls `f(k)` for parts 0, 1, ..., each on one of the threads; inside of a parallel region of the caller on the
/// calling one. `f` must not throw.
template <class F>
VARVE_INLINE void for_each_part(int parts, F const& f) {
#if VARVE_USE_OPENMP
#pragma omp parallel for schedule(static) if (parts > 1)
#endif
  for (int k = 0; k < parts; ++k) f(k);
}
/// The threads that parts may run on at the same time.
inline int most_threads() {
#if VARVE_USE_OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

} // namespace varve::loop
