// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/cut_bodies.hpp>

/// @file
/// Interleaves steps that depend on each other with steps that do not. Processors look ahead themselves, but only by
/// some hundred instructions. If a long body consists of chains written one after the other, they wait. `schedule`
/// calls this for bodies whose longest chain takes a large part of their time.
namespace varve::fusion::detail {

/// A pass that moves steps of an ordered body forward into the time in which the steps before them would wait. Times
/// are half cycles: two steps begin in each cycle, or one memory access by a sink.
class overlapper {
  struct times {
    int issue, latency;
  };
  static constexpr int at_sink = 2, look_ahead = 200;

  static constexpr bool rides_along(step const& s) {
    return s.kind == step_kind::load || s.kind == step_kind::constant;
  }
  /// Calls `f(step)` for all operands of a step or sink that are computed in the body. Defined above its uses, because
  /// clang 14 instantiates later member templates too late for constant expressions.
  template <class F>
  constexpr void operands(int item, F f) {
    auto const call = [&](int a) {
      if (a >= 0) f(a);
    };
    if (item >= 0) {
      for_each_operand(p, p.steps[b.step_first + item], call);
    } else {
      sink const& s = p.sinks[b.sink_first + ~item];
      call(s.a);
      if (s.product) call(s.b);
    }
  }

public:
  /// `order` contains the old numbers of steps, and `~s` where sink `s` takes its value.
  constexpr overlapper(program& p, body const& b, list<int> const& order)
      : p(p), b(b), before(order), cost(static_cast<std::size_t>(b.step_count), times{0, 0}) {
    long_operators is_long;
    for (int k = 0; k < b.step_count; ++k) {
      step const& s = p.steps[b.step_first + k];
      if (is_long.contains(s)) cost[k] = {24, 64};
      else if (!rides_along(s)) cost[k] = {1, s.kind == step_kind::div ? 32 : 8};
    }
  }
  /// True if interleaving is worthwhile. The body must be longer than the processor's look-ahead. Its longest chain of
  /// dependent steps must take more than half the time in which all steps can begin. Otherwise the processor finds
  /// enough by itself, also in the next iteration, and it is better to keep fewer values alive.
  constexpr bool is_worthwhile() {
    list<int> there(cost.size(), 0);
    int issue = 0, longest = 0;
    for (int item : before) {
      if (item < 0) {
        issue += at_sink;
        continue;
      }
      int& t = there[item];
      operands(item, [&](int a) { t = there[a] > t ? there[a] : t; });
      t += cost[item].latency, issue += cost[item].issue;
      longest = t > longest ? t : longest;
    }
    return issue > look_ahead && 2 * longest > issue;
  }
  /// Returns the new order. It always takes the first step of the old order whose operands are ready, or else the one
  /// that is ready soonest. Memory and constants are read where the first step needs them.
  constexpr list<int> run() {
    find_users();
    list<int> order;
    order.reserve(before.size());
    list<int> there(cost.size(), 0);
    list<char> placed(cost.size(), 0);
    int now = 0;
    while (first >= 0) {
      int const place = take_next(now), item = before[place];
      now = when[place] > now ? when[place] : now;
      operands(item, [&](int a) {
        if (!placed[a]) placed[a] = 1, order.push_back(a);
      });
      order.push_back(item);
      if (item < 0) {
        now += at_sink;
        continue;
      }
      placed[item] = 1, there[item] = now + cost[item].latency;
      now += cost[item].issue;
      for (int u = first_user[item]; u >= 0; u = next_user[u]) {
        if (--missing[user[u]] > 0) continue;
        int t = 0;
        operands(before[user[u]], [&](int a) { t = there[a] > t ? there[a] : t; });
        when[user[u]] = t;
        put(user[u], -1);
      }
    }
    return order;
  }

private:
  /// Inserts a place whose operands are known among the others, in their order; `from` is one before it, or -1.
  constexpr void put(int place, int from) {
    int* const after = next.data();
    int at = from >= 0 ? after[from] : first;
    while (at >= 0 && at < place) from = at, at = after[at];
    after[place] = at;
    (from >= 0 ? after[from] : first) = place;
  }
  /// Takes the first place whose operands are ready, or else the one that waits least.
  constexpr int take_next(int now) {
    int best = first, before_best = -1, previous = -1;
    for (int at = first; at >= 0; previous = at, at = next[at]) {
      if (when[at] < when[best]) best = at, before_best = previous;
      if (when[best] <= now) break;
    }
    (before_best >= 0 ? next[before_best] : first) = next[best];
    return best;
  }
  /// Finds the users of each step; steps that wait for nothing are ready.
  constexpr void find_users() {
    next.assign(before.size(), -1), when.assign(before.size(), 0);
    int last = -1;
    missing.assign(before.size(), 0), first_user.assign(cost.size(), -1);
    for (int q = 0; q < static_cast<int>(before.size()); ++q) {
      if (before[q] >= 0 && rides_along(p.steps[b.step_first + before[q]])) continue;
      operands(before[q], [&](int a) {
        if (rides_along(p.steps[b.step_first + a])) return;
        ++missing[q];
        user.push_back(q), next_user.push_back(first_user[a]), first_user[a] = static_cast<int>(user.size()) - 1;
      });
      if (missing[q] == 0) put(q, last), last = q;
    }
  }

  program& p;
  body const& b;
  list<int> const& before;
  list<times> cost;
  list<int> missing{}, first_user{}, user{}, next_user{};
  int first = -1; // first ready place, in their order
  list<int> next{}, when{};
};

} // namespace varve::fusion::detail
