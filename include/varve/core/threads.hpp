// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/core/extent.hpp>
#include <varve/core/thread_pool.hpp>

#include <cstddef>
#include <exception>
#include <type_traits>
#if VARVE_USE_OPENMP
#ifndef _OPENMP
#error "varve: VARVE_USE_OPENMP needs a compiler that is told to use OpenMP: -fopenmp"
#endif
#include <omp.h>
#endif

/// @file
/// Work that threads share. The threads are OpenMP's if `VARVE_USE_OPENMP` is on, else those of a pool of the library
/// if `VARVE_USE_THREADS` is on. Without either, programs contain none of this.
///
/// Shared work whose results depend on its parts (sums) is cut by its sizes alone, so that results do not depend on the
/// number of threads. Inside of a parallel region of the caller everything runs on the calling thread.
namespace varve {

/// Sets the number of threads that share long work, at least 1 (`torch.set_num_threads`). With OpenMP it applies to
/// work that the calling thread starts, with the library's pool to all work. Does nothing without either.
inline void set_num_threads([[maybe_unused]] int n) {
#if VARVE_USE_OPENMP
  omp_set_num_threads(n > 1 ? n : 1);
#elif VARVE_USE_THREADS
  fusion::thread_pool::of_process().resize(n);
#endif
}
/// Returns the number of threads that share long work (`torch.get_num_threads`), at first as many as the machine has.
/// Is 1 without OpenMP and without the library's pool.
inline int get_num_threads() {
#if VARVE_USE_OPENMP
  return omp_get_max_threads();
#elif VARVE_USE_THREADS
  return fusion::thread_pool::of_process().size();
#else
  return 1;
#endif
}

namespace fusion {

/// The owner of the threads that share loops.
enum class threads { none, of_openmp, of_pool };
inline constexpr threads threads_of_this_build = VARVE_USE_OPENMP    ? threads::of_openmp
                                                 : VARVE_USE_THREADS ? threads::of_pool
                                                                     : threads::none;
inline constexpr bool threaded = threads_of_this_build != threads::none;
/// The number of points of the iteration space that a loop must have before threads share it, and the number that a
/// part must have.
inline constexpr index_t shared_points = 1 << 15, part_points = 1 << 12;

/// A loop divided into parts of whole `unit`s (vectors, for example). The last part also contains the remainder. The
/// number of parts depends on the sizes alone, and therefore so do sums by parts.
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
  /// Returns where part `k` begins, which is where part `k - 1` ends.
  constexpr index_t begin(int k) const { return k == count ? extent : units * k / count * unit; }
};

#if VARVE_USE_OPENMP || !VARVE_USE_THREADS
/// True while this thread runs a part of a shared loop. Loops inside of the part are then not shared again.
inline constinit thread_local bool runs_a_part = false;
#endif
/// Calls `f(k)` for parts 0, 1, ..., each on one of the threads, or all on the calling thread inside of a parallel
/// region of the caller. If parts throw (an integer divided by 0), rethrows the exception of the one with the lowest
/// number after all have ended.
template <class F>
VARVE_INLINE void for_each_part(int parts, F const& f) {
#if VARVE_USE_OPENMP
  if (parts > 1 && !runs_a_part) {
    std::exception_ptr thrown;
    int by = parts;
#pragma omp parallel for schedule(static)
    for (int k = 0; k < parts; ++k)
      varve::detail::attempt<void>([&] { f(k); },
                                   [&] {
#pragma omp critical(varve_thrown)
                                     if (k < by) by = k, thrown = std::current_exception();
                                   });
    if (thrown) std::rethrow_exception(thrown);
    return;
  }
#elif VARVE_USE_THREADS
  if (parts > 1 && !runs_a_part)
    return thread_pool::of_process().run(parts, [](void const* data, int k) { (*static_cast<F const*>(data))(k); }, &f);
#endif
  for (int k = 0; k < parts; ++k) f(k);
}
/// Returns the number of threads on which parts may run at the same time.
inline int most_threads() {
#if VARVE_USE_OPENMP
  return runs_a_part || omp_in_parallel() ? 1 : omp_get_max_threads();
#elif VARVE_USE_THREADS
  return runs_a_part ? 1 : get_num_threads();
#else
  return 1;
#endif
}
/// Calls `f(from, to)` for parts that together cover 0 to `extent`, if the work of `points` elements is worth sharing;
/// otherwise once. All parts but the last consist of whole `unit`s.
template <class F>
VARVE_INLINE constexpr void share(index_t extent, index_t unit, index_t points, F const& f) {
  if constexpr (threaded) {
    if (std::is_constant_evaluated()) return f(index_t{0}, extent);
    if (loop_parts const parts(extent, unit, points); parts.count > 1 && most_threads() > 1) [[unlikely]]
      return for_each_part(parts.count, [&](int k) { f(parts.begin(k), parts.begin(k + 1)); });
  }
  f(index_t{0}, extent);
}
/// Like `share`, in at most as many parts as there are threads. For work of which each part repeats something. Only for
/// work whose results do not depend on how it is cut into parts.
template <class F>
VARVE_INLINE void share_coarsely(index_t extent, index_t unit, index_t points, F const& f) {
  if constexpr (threaded) {
    loop_parts parts(extent, unit, points);
    if (int const most = most_threads(); parts.count > most) parts.count = most;
    if (parts.count > 1) [[unlikely]]
      return for_each_part(parts.count, [&](int k) { f(parts.begin(k), parts.begin(k + 1)); });
  }
  f(index_t{0}, extent);
}

} // namespace fusion

} // namespace varve
