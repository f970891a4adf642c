// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/emit.hpp>

/// @file
/// Long loop bodies in blocks. Compilers need more than linear time for a function of thousands of operations, so a long body becomes a row of functions of equal length; what one of
/// them computes for another passes through memory, in places that are used again when their value has died. Kernels of many operations, such as `exp`, are functions that all blocks
/// call: they would fill the instruction cache, and take the compiler's time.
namespace varve::loop {

/// Steps of a block, and of a body that stays whole: usual programs are far below. An operator whose kernel has many operations counts as `long_step` of them.
inline constexpr int block_steps = 64, whole_body = 512, long_step = 8;

namespace detail {
/// Tells operators whose kernels have many operations, such as `exp`, from those of one or two. Asks each operator once.
class long_operators {
public:
  constexpr bool contains(step const& s) {
    if (s.kind != step_kind::op) return false;
    for (entry const& e : seen)
      if (e.op == s.op) return e.is_long;
    seen.push_back({s.op, identify(*s.op) == known::pointwise});
    return seen.back().is_long;
  }

private:
  struct entry {
    op_handle const* op;
    bool is_long;
  };
  list<entry> seen{};
};
} // namespace detail

/// Is a body compiled as a whole? Long ones are cut into blocks.
constexpr bool stays_whole(program const& p, body const& b) {
  if (b.step_count > whole_body || b.step_count * long_step <= whole_body) return b.step_count <= whole_body;
  detail::long_operators is_long;
  int steps = b.step_count;
  for (int k = 0; k < b.step_count; ++k) steps += is_long.contains(p.steps[b.step_first + k]) ? long_step - 1 : 0;
  return steps <= whole_body;
}

namespace detail {
/// Cuts one body. Slots become numbers within the block; values of other blocks are found behind those computed before the innermost loop.
struct cutter {
  program& p;
  body& b;
  list<int> block_of{}, last{}, kept{}; // of a step: its block, the last block that uses it (none: -1), its place in memory (-1)
  long_operators is_long{};

  static constexpr bool listed(step const& s) { return s.kind != step_kind::fma && s.kind != step_kind::fnma; }
  /// Calls `f(slot&)` for all operands of a step.
  template <class F>
  constexpr void operands(step& s, F f) {
    if (s.kind == step_kind::none) return; // nothing of it is left
    int* const slots = p.slots.data() + s.args;
    if (listed(s))
      for (int k = 0; k < s.count; ++k) f(slots[k]);
    for (int k = 0; k < s.count && k < 3; ++k)
      if (listed(s)) s.in[k] = slots[k];
      else f(s.in[k]);
  }
  constexpr void find_blocks() {
    int const records = b.type == lane::f32 ? fields_at_once<float> : fields_at_once<double>;
    b.block_first = static_cast<int>(p.blocks.size());
    int together = 0; // steps that may not be parted from the one before
    for (int k = 0; k < b.step_count; ++k) {
      if (k == 0 || (together <= 0 && k - (p.blocks.back().first - b.step_first) >= block_steps)) p.blocks.push_back({b.step_first + k, 0, 0, 0});
      together = p.steps[b.step_first + k].kind == step_kind::records ? records - 1 : together - 1;
      ++p.blocks.back().count;
      block_of.push_back(static_cast<int>(p.blocks.size()) - 1);
    }
    b.block_count = static_cast<int>(p.blocks.size()) - b.block_first;
  }
  constexpr void find_uses() {
    last.assign(static_cast<std::size_t>(b.step_count), -1);
    for (int k = 0; k < b.step_count; ++k)
      operands(p.steps[b.step_first + k], [&](int& a) {
        if (a >= 0 && block_of[a] != block_of[k]) last[a] = block_of[k];
      });
    int const end = static_cast<int>(p.blocks.size());
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      if (p.sinks[k].a >= 0) last[p.sinks[k].a] = end;
      if (p.sinks[k].product && p.sinks[k].b >= 0) last[p.sinks[k].b] = end;
    }
  }
  /// Gives every value that leaves its block a place, from its block until the last that uses it.
  constexpr void find_places() {
    kept.assign(static_cast<std::size_t>(b.step_count), -1);
    list<int> ending(static_cast<std::size_t>(b.block_count) + 1, -1), next(static_cast<std::size_t>(b.step_count), -1), free;
    for (int c = b.block_first; c < b.block_first + b.block_count; ++c) {
      block& now = p.blocks[c];
      for (int k = ending[c - b.block_first]; k >= 0; k = next[k]) free.push_back(kept[k]); // read in this block, before it writes
      now.export_first = static_cast<int>(p.slots.size());
      for (int q = 0; q < now.count; ++q) {
        int const k = now.first - b.step_first + q;
        if (last[k] < 0) continue;
        if (free.empty()) free.push_back(b.kept++);
        kept[k] = free.back();
        free.pop_back();
        next[k] = ending[last[k] - b.block_first], ending[last[k] - b.block_first] = k;
        p.slots.push_back(q), p.slots.push_back(b.fixed_count + kept[k]);
        ++now.export_count;
      }
    }
  }
  constexpr void run() {
    find_blocks();
    find_uses();
    find_places();
    for (int k = 0; k < b.step_count; ++k) {
      int const c = block_of[k], first = p.blocks[c].first - b.step_first;
      step& s = p.steps[b.step_first + k];
      operands(s, [&](int& a) {
        if (a >= 0) a = block_of[a] == c ? a - first : ~(b.fixed_count + kept[a]);
      });
      s.slot = k - first;
      s.apart = is_long.contains(s);
    }
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      sink& s = p.sinks[k];
      if (s.a >= 0) s.a = ~(b.fixed_count + kept[s.a]);
      if (s.product && s.b >= 0) s.b = ~(b.fixed_count + kept[s.b]);
    }
  }
};
} // namespace detail

/// Cuts the long bodies of a program into blocks. Linear in the number of steps and operands.
constexpr void cut_long_bodies(program& p) {
  for (body& b : p.bodies)
    if (!b.ordered && !stays_whole(p, b)) b.paired = false, detail::cutter{p, b}.run();
}

namespace detail {
template <class P, int First, int From, int Vector, class M, class V, int... K>
VARVE_INLINE void run_some_steps(auto const& mem, index_t const* i, V const* fixed, V* now, std::integer_sequence<int, K...>) {
  (compute<form_of<P>(First + From + K), P, Vector, M>(mem, i, fixed, now, places_of<P>(First + From + K, From + K)), ...);
}
template <class P, int First, int Count, int Vector, class M, class V, int... C>
VARVE_INLINE void run_rows_of_steps(auto const& mem, index_t const* i, V const* fixed, V* now, std::integer_sequence<int, C...>) {
  (run_some_steps<P, First, C * 64, Vector, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count - C * 64 < 64 ? Count - C * 64 : 64)>{}), ...);
}
template <class V, class P, int First, int... X>
VARVE_INLINE void export_values(V* fixed, V const* now, std::integer_sequence<int, X...>) {
  ((fixed[P::value.slots[First + 2 * X + 1]] = now[P::value.slots[First + 2 * X]]), ...);
}
/// One block of a body, a function of its own. `M` matters to what is loaded only: the full vectors and the last one share it.
template <class P, int Block, int Vector, class M, class Mem, class V>
VARVE_NOINLINE void run_block(Mem const& mem, index_t const* i, V* fixed) {
  constexpr block b = P::value.blocks[Block];
  V now[b.count];
  run_some_steps<P, b.first, 0, Vector, M>(mem, i, static_cast<V const*>(fixed), now, std::make_integer_sequence<int, b.count>{});
  export_values<V, P, b.export_first>(fixed, now, std::make_integer_sequence<int, b.export_count>{});
}
template <class P, int First, int Vector, class M, class Mem, class V, int... C>
VARVE_INLINE void run_row(Mem const& mem, index_t const* i, V* fixed, std::integer_sequence<int, C...>) {
  (run_block<P, First + C, Vector, M>(mem, i, fixed), ...);
}
} // namespace detail

/// Computes steps `[First, First + Count)` into `now`, all in the caller.
template <class P, int First, int Count, int Vector, class M, class V>
VARVE_INLINE void run_steps([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now) {
  if constexpr (Count > 0) detail::run_rows_of_steps<P, First, Count, Vector, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count + 63) / 64>{}); // folds are limited to 256 elements
}

/// Runs blocks `[First, First + Count)` at one point of the iteration space; any number of them.
template <class P, int First, int Count, int Vector, class M, class Mem, class V>
VARVE_INLINE void run_blocks_of_body(Mem const& mem, index_t const* i, V* fixed) {
  constexpr int now = Count < 128 ? Count : 128; // folds are limited to 256 elements
  detail::run_row<P, First, Vector, lanes_in_use<M::live>>(mem, i, fixed, std::make_integer_sequence<int, now>{});
  if constexpr (now < Count) run_blocks_of_body<P, First + now, Count - now, Vector, M>(mem, i, fixed);
}

} // namespace varve::loop
