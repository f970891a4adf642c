// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/program.hpp>

namespace varve::fusion {

/// The stages during which a buffer contains something, and its place in the arena.
struct life {
  int from = -1, to = -1;
  index_t begin = 0, end = 0;
};
/// Returns the lifetimes of the buffers of a program. `when` is the number of each stage; several stages may count as
/// one.
constexpr list<life> lifetimes(program const& p, list<int> const& when = {}) {
  list<life> lives(p.buffers.size(), life{});
  auto touch = [&](int b, int s) {
    if (b < 0) return;
    life& l = lives[static_cast<std::size_t>(b)];
    if (l.from < 0) l.from = s;
    l.to = s;
  };
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    stage const& st = p.stages[s];
    int const now = when.empty() ? static_cast<int>(s) : when[s];
    touch(st.out, now);
    if (st.kind == stage_kind::branch || st.kind == stage_kind::scan) {
      call_info const& c = p.calls[static_cast<std::size_t>(st.number)];
      int const results = c.results + (st.kind == stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0);
      touch(st.in[0], now);
      for (int k = 0; k < c.operands; ++k) touch(p.ports[static_cast<std::size_t>(st.in[1] + k)], now);
      for (int k = 0; k < results; ++k) touch(p.ports[static_cast<std::size_t>(st.in[2] + k)], now);
      continue;
    }
    for (int b : st.in) touch(b, now);
    if (st.kind != stage_kind::loops) continue;
    body const& b = p.bodies[static_cast<std::size_t>(st.number)];
    for (int part = 0; part < 2; ++part) {
      int const first = part ? b.step_first : b.fixed_first, count = part ? b.step_count : b.fixed_count;
      for (int k = first; k < first + count; ++k)
        if (int const a = p.steps[static_cast<std::size_t>(k)].access; a >= 0)
          touch(p.accesses[static_cast<std::size_t>(a)].buffer, now);
    }
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
      touch(p.accesses[static_cast<std::size_t>(p.sinks[static_cast<std::size_t>(k)].access)].buffer, now);
  }
  return lives;
}

/// Removes stores into temporaries that are never read. A value may have been kept for other loops in which the planner
/// later decided to recompute it.
constexpr void drop_unread(program& p) {
  list<char> read(p.buffers.size(), 0);
  auto mark = [&](int b) {
    if (b >= 0) read[static_cast<std::size_t>(b)] = 1;
  };
  auto accessed = [&](int a) {
    if (a >= 0) mark(p.accesses[static_cast<std::size_t>(a)].buffer);
  };
  for (stage const& st : p.stages) {
    if (st.kind == stage_kind::loops) {
      body const& b = p.bodies[static_cast<std::size_t>(st.number)];
      for (int k = b.fixed_first; k < b.fixed_first + b.fixed_count; ++k)
        accessed(p.steps[static_cast<std::size_t>(k)].access);
      for (int k = b.step_first; k < b.step_first + b.step_count; ++k)
        accessed(p.steps[static_cast<std::size_t>(k)].access);
      for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
        if (sink const& s = p.sinks[static_cast<std::size_t>(k)]; s.kind != sink_kind::store) accessed(s.access);
    } else if (st.kind == stage_kind::branch || st.kind == stage_kind::scan) {
      call_info const& c = p.calls[static_cast<std::size_t>(st.number)];
      mark(st.in[0]);
      for (int k = 0; k < c.operands; ++k) mark(p.ports[static_cast<std::size_t>(st.in[1] + k)]);
    } else {
      for (int b : st.in) mark(b);
    }
  }
  for (body& b : p.bodies) {
    int kept = 0;
    for (int k = 0; k < b.sink_count; ++k) {
      sink const s = p.sinks[static_cast<std::size_t>(b.sink_first + k)];
      int const to = p.accesses[static_cast<std::size_t>(s.access)].buffer;
      bool const needed = s.kind != sink_kind::store || p.buffers[static_cast<std::size_t>(to)].where != place::arena ||
                          read[static_cast<std::size_t>(to)];
      if (needed || (kept == 0 && k + 1 == b.sink_count))
        p.sinks[static_cast<std::size_t>(b.sink_first + kept++)] = s; // a loop must have at least one sink
    }
    b.sink_count = kept;
  }
}

/// Places the temporaries of a program in one arena. Two buffers may share bytes if their lifetimes, in stages, do not
/// overlap. `when` is as for `lifetimes`.
constexpr void place_in_arena(program& p, list<int> const& when = {}) {
  list<life> lives = lifetimes(p, when);
  p.workspace = 0;
  list<int> placed; // by address, so that the lowest gap is found in one pass
  placed.reserve(p.buffers.size());
  int before = -1; // the buffer placed last
  std::ptrdiff_t place_of_before = 0;
  index_t unit_before = 0;
  life* const all = lives.data();
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer& b = p.buffers[k];
    life& mine = all[k];
    if (b.where != place::arena || mine.from < 0) continue;
    index_t const bytes = b.elements * itemsize(b.type), unit = bytes >= 64 ? 64 : 16;
    b.number = 0;
    if (bytes == 0) continue; // an empty buffer fits anywhere and occupies nothing
    index_t begin = 0;
    int const from = mine.from, to = mine.to, *const last = placed.data() + placed.size();
    int const* o = placed.data();
    if (before >= 0 && all[before].from == from && all[before].to == to &&
        // one with the same lifetime found no gap below
        bytes >= all[before].end - all[before].begin && unit == unit_before) {
      begin = (all[before].end + unit - 1) / unit * unit;
      o += place_of_before + 1;
    }
    for (; o != last && all[*o].begin < begin + bytes; ++o) {
      life const& other = all[*o];
      if (other.end > begin && other.from <= to && from <= other.to) begin = (other.end + unit - 1) / unit * unit;
    }
    mine.begin = b.number = begin, mine.end = begin + bytes;
    if (mine.end > p.workspace) p.workspace = mine.end;
    auto at = static_cast<std::ptrdiff_t>(placed.size());
    placed.push_back(static_cast<int>(k));
    for (; at > 0 && all[placed[at - 1]].begin > begin; --at) placed[at] = placed[at - 1];
    placed[at] = static_cast<int>(k);
    before = static_cast<int>(k), place_of_before = at, unit_before = unit;
  }
}

} // namespace varve::fusion
