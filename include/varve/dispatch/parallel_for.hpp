// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/threads.hpp>
#include <varve/dispatch/thread_snapshot.hpp>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace varve {

/// Calls `f(begin, end)` for parts of [begin, end) on several threads, by default as many as the machine has
/// (`at::parallel_for`). There is at most one part per thread, and at most one per `grain` elements, rounded up. Each
/// part runs under the modes, keys and transforms of the caller; modes that are on must allow calls from several
/// threads. Under a transform that records (`grad`, `make_fx`) everything runs on the calling thread.
///
/// If parts throw, rethrows the exception of the first of them in order, after all have ended. Not part of the umbrella
/// header, because it needs <thread>.
template <class F>
void parallel_for(index_t begin, index_t end, index_t grain, F const& f,
                  unsigned threads = std::thread::hardware_concurrency()) {
  index_t const n = end - begin;
  if (n <= 0) return;
  index_t const parts = std::min<index_t>(std::max<index_t>(threads, 1),
                                          (n + std::max<index_t>(grain, 1) - 1) / std::max<index_t>(grain, 1));
  thread_snapshot const state;
  if (parts <= 1 || state.records()) return f(begin, end);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(parts));
  auto const run = [&](index_t k) {
    auto const part = [&] {
      restored const here(state);
      f(begin + n * k / parts, begin + n * (k + 1) / parts);
    };
    bool const before = std::exchange(fusion::runs_a_part, true); // operators inside are not shared again
    detail::attempt<void>(part, [&] { thrown[static_cast<std::size_t>(k)] = std::current_exception(); });
    fusion::runs_a_part = before;
  };
  {
    std::vector<std::jthread> others; // joined at the end, even if starting one fails
    for (index_t k = 1; k < parts; ++k) others.emplace_back(run, k);
    run(0);
  }
  for (auto const& e : thrown)
    if (e) std::rethrow_exception(e);
}

} // namespace varve
