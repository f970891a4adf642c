// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/run.hpp>

#include <new>

namespace varve::fusion {

/// A runner of loop nests in turns (`block_group`): some rows of the first, the same rows of the second, and so on,
/// before any of the next rows. `buffer` and `scratch` are as for `block_runner`. Among the `buffers` buffers, those of
/// single rows begin in `scratch`. Threads share the rows if each row of the nests has its own results.
template <class = void>
class block_group_runner {
public:
  VARVE_NOINLINE static void run(block_view const& v, block_group const& g, std::byte* const* buffer, int buffers,
                                 std::byte* scratch) {
    if constexpr (threaded) {
      loop_parts parts(g.extent, g.rows, g.points);
      if (int const n = most_threads(); n < parts.count)
        parts.count = n; // there is memory for this many threads; results do not depend on their number
      if (parts.count > 1) return run_in_parts(v, g, buffer, buffers, scratch, parts);
    }
    by_turns(v, g, buffer, scratch, 0, g.extent, true);
  }

private:
  VARVE_NOINLINE static void run_in_parts(block_view const& v, block_group const& g, std::byte* const* buffer,
                                          int buffers, std::byte* scratch, loop_parts const& parts) {
    index_t const addresses = (static_cast<index_t>(sizeof(std::byte*)) * buffers + 63) / 64 * 64,
                  bytes = addresses + g.scratch;
    for (int k = 0; k < g.body_count; ++k)
      block_runner<>(v, v.bodies[g.body_first + k], buffer, scratch + g.own_bytes).clear_all();
    scratch_block const memory(static_cast<std::size_t>(parts.count * bytes));
    for_each_part(parts.count, [&](int k) {
      std::byte* const mine = memory.data() + k * bytes;
      auto** const at = reinterpret_cast<std::byte**>(mine);
      for (int q = 0; q < buffers; ++q) at[q] = buffer[q];
      for (int q = g.own_first; q < g.own_first + g.own_count; ++q)
        at[v.ports[q]] = mine + addresses + (buffer[v.ports[q]] - scratch);
      by_turns(v, g, at, mine + addresses, parts.begin(k), parts.begin(k + 1), false);
    });
  }
  static void by_turns(block_view const& v, block_group const& g, std::byte* const* buffer, std::byte* scratch,
                       index_t begin, index_t end, bool all) {
    using runner = block_runner<>;
    alignas(runner) std::byte room[block_group::most * sizeof(runner)]; // they need no destruction
    runner* nests[block_group::most];
    scratch += g.own_bytes;
    for (int k = 0; k < g.body_count; ++k) {
      block_body const& b = v.bodies[g.body_first + k];
      nests[k] = new (room + static_cast<std::size_t>(k) * sizeof(runner)) runner(v, b, buffer, scratch);
      if (all) nests[k]->clear_all();
      scratch += (b.scratch + 63) / 64 * 64;
    }
    for (index_t r = begin; r < end; r += g.rows)
      for (int k = 0; k < g.body_count; ++k) nests[k]->rows(r, end - r < g.rows ? end : r + g.rows);
  }
};

} // namespace varve::fusion
