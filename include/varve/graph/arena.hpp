// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/program.hpp>

namespace varve::loop {

/// Places the temporaries of a program in one arena: two buffers share bytes when their lifetimes, in stages, do not meet.
constexpr void place_in_arena(program& p) {
  struct life {
    int from = -1, to = -1;
    index_t begin = 0, end = 0;
  };
  list<life> lives(p.buffers.size(), life{});
  auto touch = [&](int b, int s) {
    if (b < 0) return;
    life& l = lives[static_cast<std::size_t>(b)];
    if (l.from < 0) l.from = s;
    l.to = s;
  };
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    stage const& st = p.stages[s];
    int const now = static_cast<int>(s);
    touch(st.out, now);
    if (st.kind == stage_kind::branch || st.kind == stage_kind::scan) {
      call_info const& c = p.calls[static_cast<std::size_t>(st.number)];
      int const results = c.results + (st.kind == stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0);
      touch(st.in[0], now);
      for (int k = 0; k < c.operands; ++k) touch(p.slots[static_cast<std::size_t>(st.in[1] + k)], now);
      for (int k = 0; k < results; ++k) touch(p.slots[static_cast<std::size_t>(st.in[2] + k)], now);
      continue;
    }
    for (int b : st.in) touch(b, now);
    if (st.kind != stage_kind::loops) continue;
    body const& b = p.bodies[static_cast<std::size_t>(st.number)];
    for (int part = 0; part < 2; ++part) {
      int const first = part ? b.step_first : b.fixed_first, count = part ? b.step_count : b.fixed_count;
      for (int k = first; k < first + count; ++k)
        if (int const a = p.steps[static_cast<std::size_t>(k)].access; a >= 0) touch(p.accesses[static_cast<std::size_t>(a)].buffer, now);
    }
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
      touch(p.accesses[static_cast<std::size_t>(p.sinks[static_cast<std::size_t>(k)].access)].buffer, now);
  }
  p.workspace = 0;
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer& b = p.buffers[k];
    life& mine = lives[k];
    if (b.where != place::arena || mine.from < 0) continue;
    index_t const bytes = b.elements * itemsize(b.type), unit = bytes >= 64 ? 64 : 16;
    mine.begin = 0;
    for (bool moved = true; moved;) {
      moved = false;
      mine.begin = (mine.begin + unit - 1) / unit * unit;
      mine.end = mine.begin + bytes;
      for (std::size_t o = 0; o < p.buffers.size(); ++o) {
        life const& other = lives[o];
        bool const meets = o < k && p.buffers[o].where == place::arena && other.from >= 0 && other.from <= mine.to && mine.from <= other.to;
        if (meets && other.begin < mine.end && mine.begin < other.end) mine.begin = other.end, moved = true;
        if (moved) break;
      }
    }
    b.number = mine.begin;
    if (mine.end > p.workspace) p.workspace = mine.end;
  }
}

} // namespace varve::loop
