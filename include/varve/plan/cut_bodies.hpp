// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/kernel/records.hpp>
#include <varve/plan/program.hpp>

/// @file
/// Cuts long loop bodies into blocks. Compilers need more than linear time for a function of thousands of operations.
/// Therefore a long body becomes a sequence of functions of equal length. Values that one function computes for another
/// pass through memory, in places that are reused after their last use. Kernels of many operations, such as `exp`, are
/// functions that all blocks call. Inlined, they would fill the instruction cache and take compile time.
///
/// A body of more than 512 steps, where operators such as `exp` count as 8, is cut into blocks of 64. A body that stays
/// whole calls such kernels if it has more than 16 of them. `emit/blocks.hpp` writes the functions of blocks and
/// `emit/stages.hpp` those of stages. More than 64 stages become functions of 16. More than 128 sinks (32 in a body
/// with blocks) become functions of 32, or one loop over a table if they are alike. The steps that such a body computes
/// before its innermost loop become functions of 64 steps, too. `bench/growth` measures the compile time per node.
namespace varve::fusion {

/// Steps of a block, and of a body that stays whole, which is far more than usual programs have. An operator whose
/// kernel has many operations counts as `long_step` steps.
inline constexpr int block_steps = 64, whole_body = 512, long_step = 8;
/// Long operators that a body inlines. If there are more, they are called: each inlined one takes up to 0.03 s of
/// compile time, and saving registers around a call costs little compared with its work.
inline constexpr int inlined_operators = 16;

namespace detail {
/// A test that distinguishes operators whose kernels have many operations, such as `exp`, from those of one or two.
/// Each operator is looked up once.
class long_operators {
public:
  constexpr bool contains(step const& s) {
    if (s.kind != step_kind::op) return false;
    for (entry const& e : seen)
      if (e.op == s.op) return e.is_long;
    seen.push_back({s.op, identify(*s.op) == operator_class::pointwise});
    return seen.back().is_long;
  }

private:
  struct entry {
    op_handle const* op;
    bool is_long;
  };
  list<entry> seen{};
};
/// Calls `f(slot&)` for all operands of a step.
template <class F>
constexpr void for_each_operand(program& p, step& s, F f) {
  if (s.kind == step_kind::none) return; // the step is unused
  if (s.kind == step_kind::fma || s.kind == step_kind::fnma) {
    for (int k = 0; k < s.count; ++k) f(s.in[k]);
    return;
  }
  int* const ports = p.ports.data() + s.args;
  for (int k = 0; k < s.count; ++k) {
    f(ports[k]);
    if (k < 3) s.in[k] = ports[k];
  }
}
/// Calls `f(step)` for every long operator of a body.
template <class Steps, class F>
constexpr void for_each_long(Steps* first, body const& b, F f) {
  long_operators is_long;
  for (int k = 0; k < b.step_count; ++k)
    if (first[k].kind == step_kind::op && is_long.contains(first[k])) f(first[k]);
}
} // namespace detail

/// True if a body is compiled as a whole; longer ones are cut into blocks.
constexpr bool stays_whole(program const& p, body const& b) {
  if (b.step_count > whole_body || b.step_count * long_step <= whole_body) return b.step_count <= whole_body;
  int steps = b.step_count;
  detail::for_each_long(p.steps.data() + b.step_first, b, [&](step const&) { steps += long_step - 1; });
  return steps <= whole_body;
}

namespace detail {
/// The cutter of one body. Slots become numbers within the block. Values of other blocks are stored after those
/// computed before the innermost loop.
struct cutter {
  program& p;
  body& b;
  list<int> block_of{}, last{},
      kept{}; // of a step: its block, the last step of another block that uses it or -1, its place in memory or -1
  long_operators is_long{};

  constexpr void find_blocks() {
    int const records = b.type == lane::f32 ? fields_at_once<float> : fields_at_once<double>;
    b.block_first = static_cast<int>(p.blocks.size());
    int together = 0; // number of steps that must stay with the one before
    for (int k = 0; k < b.step_count; ++k) {
      if (k == 0 || (together <= 0 && k - (p.blocks.back().first - b.step_first) >= block_steps))
        p.blocks.push_back({b.step_first + k, 0});
      together = p.steps[b.step_first + k].kind == step_kind::records ? records - 1 : together - 1;
      ++p.blocks.back().count;
      block_of.push_back(static_cast<int>(p.blocks.size()) - 1);
    }
    b.block_count = static_cast<int>(p.blocks.size()) - b.block_first;
  }
  constexpr void find_uses() {
    last.assign(static_cast<std::size_t>(b.step_count), -1);
    for (int k = 0; k < b.step_count; ++k)
      for_each_operand(p, p.steps[b.step_first + k], [&](int& a) {
        if (a >= 0 && block_of[a] != block_of[k]) last[a] = k;
      });
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      if (p.sinks[k].a >= 0) last[p.sinks[k].a] = b.step_count;
      if (p.sinks[k].product && p.sinks[k].b >= 0) last[p.sinks[k].b] = b.step_count;
    }
  }
  /// Assigns a place to every value that leaves its block, until the last step of another block that uses it.
  constexpr void find_places() {
    kept.assign(static_cast<std::size_t>(b.step_count), -1);
    list<int> ending(static_cast<std::size_t>(b.step_count) + 1, -1), next(static_cast<std::size_t>(b.step_count), -1),
        free;
    for (int k = 0; k < b.step_count; ++k) {
      for (int ended = ending[k]; ended >= 0; ended = next[ended])
        free.push_back(kept[ended]); // read by this step before it writes
      if (last[k] < 0) continue;
      if (free.empty()) free.push_back(b.kept++);
      kept[k] = free.back();
      free.pop_back();
      next[k] = ending[last[k]], ending[last[k]] = k;
      p.steps[b.step_first + k].kept = b.fixed_count + kept[k];
    }
  }
  constexpr void run() {
    find_blocks();
    find_uses();
    find_places();
    for (int k = 0; k < b.step_count; ++k) {
      int const c = block_of[k], first = p.blocks[c].first - b.step_first;
      step& s = p.steps[b.step_first + k];
      for_each_operand(p, s, [&](int& a) {
        if (a >= 0) a = block_of[a] == c ? a - first : ~(b.fixed_count + kept[a]);
      });
      s.slot = k - first;
      s.apart = s.kind == step_kind::op && is_long.contains(s);
    }
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      sink& s = p.sinks[k];
      if (s.a >= 0) s.a = ~(b.fixed_count + kept[s.a]);
      if (s.product && s.b >= 0) s.b = ~(b.fixed_count + kept[s.b]);
    }
  }
};
} // namespace detail

namespace detail {
/// Turns the long operators of a body that stays whole into calls if there are many.
constexpr void call_many_apart(program& p, body const& b) {
  if (b.step_count <= inlined_operators) return;
  list<step*> found;
  for_each_long(p.steps.data() + b.step_first, b, [&](step& s) { found.push_back(&s); });
  if (static_cast<int>(found.size()) <= inlined_operators) return;
  for (step* s : found) s->apart = true;
}
} // namespace detail

/// Cuts the long bodies of a program into blocks, and turns long operators of other bodies into calls if there are
/// many. Linear in the number of steps and operands.
constexpr void cut_long_bodies(program& p) {
  for (body& b : p.bodies)
    if (!b.ordered && !stays_whole(p, b)) b.paired = false, detail::cutter{p, b}.run();
    else detail::call_many_apart(p, b);
}

} // namespace varve::fusion
