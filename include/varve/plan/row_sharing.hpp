// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/program.hpp>

#include <bit>
#include <cstdint>

namespace varve::fusion {

/// A buffer with separate rows of `stride` elements each.
struct row_buffer {
  int buffer;
  index_t stride;
};
/// Loop nests of consecutive stages, `first` to `last`, that run in turns of `rows` rows. A row is one round of their
/// outermost loops, which have `extent` rounds.
struct row_group {
  int first, last;
  index_t extent, rows;
  index_t row_bytes = 0, row_points = 1,
          least_rows = 1; // of all buffers; of the longest nest; the minimum for sums over rows
  index_t own_bytes = 0;
  list<row_buffer> own{}; // buffers that no other stage uses; only `rows` rows of them are kept
};

/// A pass that shares values which several nests of a group compute, such as the product in `softmax(x * y)`. The first
/// nest keeps the value in a row, from which the others load it. A plan for loops over registers computes cheap values
/// again, because it would have to store them in memory; kernels over blocks store each value anyway. Nothing is shared
/// in groups of more than `most_steps` steps, since work is quadratic.
template <class = void>
class row_sharing {
public:
  constexpr row_sharing(program& program_, row_group& group_) : p(program_), g(group_) {}
  constexpr void run() {
    int steps = 0;
    for (int s = g.first; s <= g.last; ++s)
      if (p.stages[s].kind == stage_kind::loops) steps += p.bodies[p.stages[s].number].step_count;
    if (steps > most_steps) return;
    for (int s = g.first; s <= g.last; ++s)
      if (p.stages[s].kind == stage_kind::loops) nest(p.stages[s].number);
  }

private:
  static constexpr int most_steps = 256;
  static constexpr index_t most_bytes = 1 << 19;
  /// The key of a value; equal values have equal keys.
  struct key {
    step_kind kind;
    dtype type, from;
    op_handle const* op;
    std::uint64_t value;
    access at;
    int loops; // the first nest with the same loops
    int count;
    int in[4];
    // Where it first occurred, and the access of the row in which it is kept.
    int body, slot, row;
  };
  program& p;
  row_group& g;
  list<key> keys{};
  list<int> seen{}; // bodies

  constexpr int loops_of(int number) {
    body const& b = p.bodies[number];
    for (int o : seen) {
      body const& other = p.bodies[o];
      bool same = other.rank == b.rank;
      for (int l = 0; l < b.rank && same; ++l) same = other.extent[l] == b.extent[l];
      if (same) return o;
    }
    return number;
  }
  static constexpr bool equal(key const& a, key const& b) {
    bool same = a.kind == b.kind && a.type == b.type && a.from == b.from && a.op == b.op && a.value == b.value &&
                a.loops == b.loops && a.count == b.count && a.at.buffer == b.at.buffer && a.at.offset == b.at.offset;
    for (int l = 0; l < max_rank && same; ++l) same = a.at.stride[l] == b.at.stride[l];
    for (int k = 0; k < a.count && same; ++k) same = a.in[k] == b.in[k];
    return same;
  }
  static constexpr bool computes(step const& s) {
    return is_floating(s.type) && s.kind >= step_kind::op && s.kind != step_kind::convert && s.kind <= step_kind::fnma;
  }
  /// Returns the number of a value.
  constexpr int number(step const& s, int body, int loops, int slot, list<int> const& now, list<int> const& fixed) {
    key k{s.kind,
          s.type,
          s.from,
          s.op,
          std::bit_cast<std::uint64_t>(s.value),
          s.access >= 0 ? p.accesses[s.access] : blank_access,
          loops,
          s.count,
          {-1, -1, -1, -1},
          body,
          slot,
          -1};
    if ((s.kind == step_kind::records || s.kind == step_kind::none) && s.access >= 0) k.kind = step_kind::load;
    if (k.kind == step_kind::load) k.from = k.type, k.op = nullptr, k.value = 0;
    bool comparable = s.count <= 4 && k.kind != step_kind::none;
    for (int q = 0; q < s.count && comparable; ++q) {
      int const in = q < 3 ? s.in[q] : p.ports[s.args + q];
      k.in[q] = in >= 0 ? now[in] : fixed[~in];
    }
    if (comparable)
      for (key const& o : keys)
        if (equal(o, k)) return static_cast<int>(&o - keys.data());
    if (!comparable) k.loops = -1 - static_cast<int>(keys.size()); // different from all others
    keys.push_back(k);
    return static_cast<int>(keys.size()) - 1;
  }
  /// Returns the access of the row in which a value is kept.
  constexpr int row_of(key& k) {
    if (k.row >= 0) return k.row;
    body& b = p.bodies[k.body];
    access a = blank_access;
    index_t elements = 1;
    for (int l = b.rank - 1; l >= 0; --l) a.stride[l] = elements, elements *= b.extent[l];
    index_t const bytes = a.stride[0] * itemsize(k.type);
    if (g.row_bytes + bytes > most_bytes) return -1;
    g.row_bytes += bytes;
    a.buffer = static_cast<int>(p.buffers.size());
    p.buffers.push_back({place::arena, k.type, 0, elements, -1});
    g.own.push_back({a.buffer, a.stride[0]});
    k.row = static_cast<int>(p.accesses.size());
    p.accesses.push_back(a);
    int const first = static_cast<int>(p.sinks.size());
    for (int s = 0; s < b.sink_count; ++s) {
      sink const old = p.sinks[b.sink_first + s];
      p.sinks.push_back(old);
    }
    sink s = blank_sink;
    s.a = k.slot, s.access = k.row;
    p.sinks.push_back(s);
    b.sink_first = first, ++b.sink_count;
    return k.row;
  }
  constexpr void nest(int number_of_body) {
    body const b = p.bodies[number_of_body];
    int const loops = loops_of(number_of_body);
    seen.push_back(number_of_body);
    list<int> now, fixed, none;
    for (int k = 0; k < b.fixed_count; ++k)
      fixed.push_back(number(p.steps[b.fixed_first + k], number_of_body, loops, ~k, none, fixed));
    for (int k = 0; k < b.step_count; ++k)
      now.push_back(number(p.steps[b.step_first + k], number_of_body, loops, k, now, fixed));
    list<char> wanted(now.size(), 0);
    auto want = [&](int slot) {
      if (slot >= 0) wanted[slot] = 1;
    };
    for (int k = 0; k < b.sink_count; ++k) {
      sink const& s = p.sinks[b.sink_first + k];
      want(s.a);
      if (s.product) want(s.b);
    }
    for (int k = b.step_count - 1; k >= 0; --k) {
      step& s = p.steps[b.step_first + k];
      if (!wanted[k]) continue;
      key& v = keys[now[k]];
      if (v.body != number_of_body && v.slot >= 0 && computes(s))
        if (int const row = row_of(v); row >= 0) {
          s.kind = step_kind::load, s.access = row, s.count = 0;
          continue;
        }
      for (int q = 0; q < s.count; ++q) want(q < 3 ? s.in[q] : p.ports[s.args + q]);
    }
  }
};

} // namespace varve::fusion
