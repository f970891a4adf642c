// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/overlap.hpp>

/// @file
/// Orders the steps of a loop body. Compilers keep the order that they receive. It therefore determines how many values
/// are alive at once, and how many of them are spilled from registers.
///
/// Spilling is limited here where registers do not suffice. Steps are moved forward (`overlap.hpp`) if a body is longer
/// than a processor's look-ahead. Its longest chain of dependent steps must also take more than half the time in which
/// all can begin. Short bodies run for two vectors step by step, so that one vector has work while the other waits. So
/// do long ones with more accumulators than registers, which are then loaded and stored once for both vectors.
namespace varve::fusion {

/// Registers for values, excluding those that operators of many instructions need themselves.
inline constexpr int registers = sizeof(kernel::batch<float>) == 64 ? 24 : 14;

namespace detail {
/// A scheduler of one body. Operators of many instructions come first, since values alive beside them are spilled. Then
/// the scheduler goes depth first from the sinks, and visits first the operand of a step that needs most registers. A
/// value is stored as soon as it is computed. Long chains are then interleaved (`overlapper`).
struct scheduler {
  program& p;
  body const& b;
  list<int> order{}, position{}; // old numbers; the new number of a step
  list<int> need{}, first_sink{}, next_sink{}, waits{}, pending{};
  long_operators is_long{};

  constexpr step& at(int k) { return p.steps[b.step_first + k]; }
  /// Returns the maximum number of values alive at once, where sinks come last unless the body is ordered.
  constexpr int most_alive() {
    list<int> last(static_cast<std::size_t>(b.step_count), -1);
    auto const leave_at = [&](int s, int k) {
      if (p.sinks[s].a >= 0) last[p.sinks[s].a] = k;
      if (p.sinks[s].product && p.sinks[s].b >= 0) last[p.sinks[s].b] = k;
    };
    for (int k = 0; k < b.step_count; ++k) {
      if (at(k).kind == step_kind::leave) leave_at(b.sink_first + at(k).slot, k);
      else
        for_each_operand(p, at(k), [&](int& a) {
          if (a >= 0) last[a] = k;
        });
    }
    for (int s = b.sink_first; s < b.sink_first + b.sink_count && !b.ordered; ++s) leave_at(s, b.step_count);
    list<int> ending(static_cast<std::size_t>(b.step_count) + 1, 0);
    int alive = 0, most = 0;
    for (int k = 0; k < b.step_count; ++k) {
      if (last[k] >= 0) ++alive, ++ending[last[k]];
      most = alive > most ? alive : most;
      alive -= ending[k];
    }
    return most;
  }
  /// Counts the registers that a step needs including its operands, assuming that none of them is used twice.
  constexpr void count_needs() {
    need.assign(static_cast<std::size_t>(b.step_count), 1);
    for (int k = 0; k < b.step_count; ++k) {
      if (at(k).kind == step_kind::none) continue;
      int most = 0, second = 0, alive = 0;
      for_each_operand(p, at(k), [&](int& a) {
        if (a < 0) return;
        int const n = need[a];
        ++alive;
        if (n > most) second = most, most = n;
        else if (n > second) second = n;
      });
      int const own = most == second ? most + 1 : most;
      need[k] = own > alive ? own : alive;
    }
  }
  constexpr void leave(int k) {
    for (int s = first_sink[k]; s >= 0;) {
      int const other = next_sink[s];
      if (--waits[s / 2] == 0) order.push_back(~(s / 2));
      s = other;
    }
  }
  constexpr void visit(int from) {
    int* const place = position.data();
    pending.push_back(from);
    while (!pending.empty()) {
      int const k = pending.back();
      if (k < 0) { // its operands are ready
        pending.pop_back();
        if (place[~k] >= 0) continue;
        place[~k] = static_cast<int>(order.size());
        order.push_back(~k);
        leave(~k);
        continue;
      }
      if (place[k] >= 0) {
        pending.pop_back();
        continue;
      }
      pending.back() = ~k;
      std::size_t const first = pending.size();
      for_each_operand(p, at(k), [&](int& a) {
        if (a >= 0 && place[a] < 0) pending.push_back(a);
      });
      for (std::size_t q = first + 1; q < pending.size(); ++q) // the greatest need last: it comes first
        for (std::size_t r = q; r > first && need[pending[r]] < need[pending[r - 1]]; --r)
          std::swap(pending[r], pending[r - 1]);
    }
  }
  /// Appends the steps of the body in their new order. Returns their number.
  constexpr int run(list<step>& to) {
    count_needs();
    position.assign(static_cast<std::size_t>(b.step_count), -1),
        first_sink.assign(static_cast<std::size_t>(b.step_count), -1);
    next_sink.assign(static_cast<std::size_t>(2 * b.sink_count), -1),
        waits.assign(static_cast<std::size_t>(b.sink_count), 0);
    for (int s = b.sink_count - 1; s >= 0; --s)
      for (int e = 1; e >= 0; --e) {
        sink const& x = p.sinks[b.sink_first + s];
        int const a = e == 0 ? x.a : x.product ? x.b : -1;
        if (a < 0) continue;
        next_sink[2 * s + e] = first_sink[a], first_sink[a] = 2 * s + e;
        ++waits[s];
      }
    for (int k = 0; k < b.step_count; ++k)
      if (is_long.contains(at(k))) visit(k);
    for (int s = 0; s < b.sink_count; ++s) {
      sink const& x = p.sinks[b.sink_first + s];
      if (x.a < 0 && !(x.product && x.b >= 0)) order.push_back(~s);
      if (x.a >= 0) visit(x.a);
      if (x.product && x.b >= 0) visit(x.b);
    }
    if (overlapper waiting{p, b, order}; waiting.is_worthwhile()) {
      order = waiting.run();
      for (std::size_t k = 0; k < order.size(); ++k)
        if (order[k] >= 0) position[order[k]] = static_cast<int>(k);
    }
    for (int k : order) {
      if (k < 0) {
        step s = blank_step;
        s.kind = step_kind::leave, s.slot = ~k;
        to.push_back(s);
        continue;
      }
      step s = at(k);
      for_each_operand(p, s, [&](int& a) {
        if (a >= 0) a = position[a];
      });
      s.slot = position[k];
      to.push_back(s);
    }
    for (int s = b.sink_first; s < b.sink_first + b.sink_count; ++s) {
      sink& x = p.sinks[s];
      if (x.a >= 0) x.a = position[x.a];
      if (x.product && x.b >= 0) x.b = position[x.b];
    }
    return static_cast<int>(order.size());
  }
};
} // namespace detail

/// True if the loop around a body computes two vectors step by step. The two calls of each long operator then overlap;
/// another order would separate them.
constexpr bool runs_in_pairs(body const& b) {
  return b.paired && b.vector >= 0 && b.vector == b.rank - 1 && b.extent[b.vector] >= 2 * width_of(b.type);
}

/// True if a body has more accumulators than registers. Two vectors step by step then load and store each of them once.
/// It is false if the values of one vector alone need too many registers: that would cost more than it saves.
constexpr bool gains_by_pairs(program& p, body const& b) {
  int sums = 0;
  for (int s = b.sink_first; s < b.sink_first + b.sink_count; ++s)
    sums += p.sinks[s].kind != sink_kind::store && p.sinks[s].level >= 0;
  return sums > registers && stays_whole(p, b) && detail::scheduler{p, b}.most_alive() <= registers;
}

namespace detail {
constexpr void reorder(program& p, list<char> const& which) {
  list<step> all;
  all.reserve(p.steps.size() + p.sinks.size());
  for (std::size_t n = 0; n < p.bodies.size(); ++n) {
    body& b = p.bodies[n];
    int const fixed = static_cast<int>(all.size());
    for (int k = 0; k < b.fixed_count; ++k) all.push_back(p.steps[b.fixed_first + k]);
    int const first = static_cast<int>(all.size());
    if (which[n]) {
      b.step_count = detail::scheduler{p, b}.run(all);
      b.ordered = true;
    } else {
      for (int k = 0; k < b.step_count; ++k) all.push_back(p.steps[b.step_first + k]);
    }
    b.fixed_first = fixed, b.step_first = first;
  }
  p.steps = static_cast<list<step>&&>(all);
}
} // namespace detail

/// Orders the steps of all bodies that are compiled as a whole and have more values alive at once than `room`. Decides
/// which bodies run in pairs of vectors because of their accumulators. Linear in the number of steps and operands.
constexpr void schedule(program& p, int room = registers) {
  list<char> reorders(p.bodies.size(), 0);
  bool any = false; // otherwise no step needs copying
  for (std::size_t k = 0; k < p.bodies.size(); ++k) {
    body& b = p.bodies[k];
    if (b.sink_count > 128 || runs_in_pairs(b) || !stays_whole(p, b)) continue;
    bool whole = true;
    for (int s = 0; s < b.step_count && whole; ++s) whole = p.steps[b.step_first + s].kind != step_kind::records;
    if (whole && detail::scheduler{p, b}.most_alive() > room) reorders[k] = 1, any = true;
  }
  if (any) detail::reorder(p, reorders);
  for (body& b : p.bodies) b.paired = b.paired || gains_by_pairs(p, b);
}

} // namespace varve::fusion
