// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/arena.hpp>
#include <varve/plan/row_sharing.hpp>
#include <varve/plan/table_steps.hpp>
#include <varve/plan/threads.hpp>

/// @file
/// Runs loop nests in turns. Softmax, for example, is a maximum, a sum and a quotient for each row. If each nest ran
/// over all rows before the next one, it would find none of them in the first-level cache.
///
/// A turn covers a few rows. Softmax becomes one stage, and the memory between its nests has room for those rows only,
/// not for the whole array. The value of a row is an operand of one element. Values that several nests compute are kept
/// once (`row_sharing.hpp`).
namespace varve::fusion {

/// True if the rounds of the outermost loop add to the same elements.
constexpr bool folds_rows(program const& p, body const& b) {
  for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
    if (p.sinks[k].kind != sink_kind::store && p.accesses[p.sinks[k].access].stride[0] == 0) return true;
  return false;
}

/// A search for the loop nests of a program that can run in turns. They can if values that one nest writes and another
/// reads are separate for each row. A nest then only needs what the others did in this row. Work is linear in the
/// steps.
template <class = void>
class row_planner {
public:
  constexpr explicit row_planner(program& program_) : p(program_) {
    place_of.assign(p.buffers.size(), -1), place_here.assign(p.buffers.size(), -1);
  }

  /// Returns the groups, in order. In the program, the loops of their nests then begin with the loop over rows, and
  /// fills come before them. The memory of a buffer stays reserved while its group runs.
  constexpr list<row_group> run() {
    list<row_group> groups;
    int const count = static_cast<int>(p.stages.size());
    for (int s = 0; s < count;) {
      row_group g = longest(s);
      s = g.last + 1;
      if (g.last > g.first) groups.push_back(static_cast<row_group&&>(g));
    }
    if (!groups.empty()) settle(groups);
    return groups;
  }

private:
  static constexpr int ahead = 4; // nests that use no data of the others, before one that does
  // Bytes of rows per turn; bytes of all rows that are near enough without turns; bytes of the longest rows; and
  // elements that a sum over rows takes at a time.
  static constexpr index_t cached = 65536, near_bytes = 1 << 17, most_bytes = 1 << 19, least_fold = 1024;
  /// How the nests use a buffer. `by_rows`: its rows are separate, `stride` elements each.
  struct use {
    int buffer;
    bool written, by_rows;
    index_t stride;
    bool filled, seen; // filled before the nests; used by one of them
  };
  enum class verdict { apart, beside, together };
  program& p;
  list<int> place_of, place_here; // of a buffer: its index in `uses` and in `here`
  list<use> uses{}, here{};
  index_t row_bytes = 0, row_points = 1, least_rows = 1;
  bool shared = false; // true if threads share the rows

  constexpr void forget() {
    for (use const& u : uses) place_of[u.buffer] = -1;
    uses.clear();
    row_bytes = 0, row_points = 1, least_rows = 1;
  }
  static constexpr index_t common(index_t a, index_t b) {
    index_t const few = a < b ? a : b;
    return few > 1 && (a + b - few) % few == 0 ? few : 0;
  }
  static constexpr bool has_rows(body const& b, index_t extent) {
    for (int l = 0; l < b.rank; ++l)
      if (b.extent[l] == 0) return false;
    return b.extent[0] == extent ? !(b.vector == 0 && turns_inwards(b)) : b.rank < max_rank;
  }
  /// Records an access of the nest that is examined.
  constexpr void note(body const& b, int number, index_t extent, bool writes) {
    access const& a = p.accesses[number];
    if (a.buffer < 0) return;
    index_t const rounds = b.extent[0] / extent; // of the outermost loop in a row
    index_t low = a.offset, high = a.offset;
    for (int l = 0; l < b.rank; ++l) (a.stride[l] < 0 ? low : high) += a.stride[l] * ((l ? b.extent[l] : rounds) - 1);
    index_t const stride = a.stride[0] * rounds;
    bool const by_rows = low >= 0 && high < stride;
    if (int& k = place_here[a.buffer]; k < 0) {
      k = static_cast<int>(here.size());
      here.push_back({a.buffer, writes, by_rows, stride, false, true});
    } else {
      use& u = here[k];
      u.written = u.written || writes, u.by_rows = u.by_rows && by_rows && u.stride == stride;
    }
  }
  /// Adds a stage to the group if possible. The verdict says whether it uses a buffer that others of the group use.
  constexpr verdict add(stage const& s, index_t extent) {
    if (s.kind == stage_kind::fill) {
      if (place_of[s.out] >= 0) return verdict::apart;
      keep({s.out, false, false, 0, true, false});
      return verdict::beside;
    }
    if (s.kind != stage_kind::loops) return verdict::apart;
    body const& b = p.bodies[s.number];
    if (!has_rows(b, extent)) return verdict::apart;
    for (use const& u : here) place_here[u.buffer] = -1;
    here.clear();
    for (int k = b.fixed_first; k < b.fixed_first + b.fixed_count; ++k)
      if (p.steps[k].access >= 0) note(b, p.steps[k].access, extent, false);
    for (int k = b.step_first; k < b.step_first + b.step_count; ++k)
      if (p.steps[k].access >= 0) note(b, p.steps[k].access, extent, false);
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) note(b, p.sinks[k].access, extent, true);
    bool const folds = folds_rows(p, b);
    index_t bytes = row_bytes, points = b.extent[0] / extent;
    bool sees = false;
    for (use const& u : here) {
      if (place_of[u.buffer] < 0) {
        if (u.by_rows) bytes += u.stride * itemsize(p.buffers[u.buffer].type);
        continue;
      }
      use const& o = uses[place_of[u.buffer]];
      if (o.seen && (u.written || o.written) && !(u.by_rows && o.by_rows && u.stride == o.stride))
        return verdict::apart;
      sees = sees || o.seen;
    }
    for (int l = 1; l < b.rank; ++l) points *= b.extent[l];
    index_t rows = least_rows;
    if (folds && points * rows < least_fold)
      rows = (least_fold + points - 1) / points; // shorter blocks would sum less exactly
    if (rows > extent) rows = extent;
    if (bytes * rows > most_bytes) return verdict::apart;
    if constexpr (threaded) {
      if (!uses.empty() && shared == folds) return verdict::apart;
      shared = !folds;
    }
    row_bytes = bytes, least_rows = rows;
    if (points > row_points) row_points = points;
    for (use const& u : here) keep(u);
    return sees ? verdict::together : verdict::beside;
  }
  constexpr void keep(use const& u) {
    int& k = place_of[u.buffer];
    if (k < 0) {
      k = static_cast<int>(uses.size());
      uses.push_back(u);
    } else {
      use& o = uses[k];
      o.by_rows = u.by_rows && (!o.seen || (o.by_rows && o.stride == u.stride));
      o.stride = u.stride, o.written = o.written || u.written, o.seen = true;
    }
  }
  constexpr verdict add_all(int first, int last, index_t extent) {
    forget();
    verdict r = verdict::apart;
    for (int t = first; t <= last; ++t)
      if (r = add(p.stages[t], extent); r == verdict::apart) break;
    return r;
  }
  constexpr row_group longest(int s) {
    row_group g{s, s, 0, 1};
    if (p.stages[s].kind != stage_kind::loops) return g;
    index_t extent = p.bodies[p.stages[s].number].extent[0];
    if (p.bodies[p.stages[s].number].rank == 0 || extent < 2 || add_all(s, s, extent) == verdict::apart) return g;
    int nests = 1, strangers = 0;
    for (int t = s + 1; t < static_cast<int>(p.stages.size()) && strangers <= ahead && nests < block_group::most; ++t) {
      stage const& st = p.stages[t];
      index_t e = extent;
      if (st.kind == stage_kind::loops) {
        body const& b = p.bodies[st.number];
        e = b.rank ? common(extent, b.extent[0]) : 0;
        if (!e) break;
        ++nests, ++strangers;
      }
      verdict const v = e == extent ? add(st, e) : add_all(s, t, e);
      if (v == verdict::apart) break;
      extent = e;
      if (v == verdict::together) g.last = t, g.extent = e, strangers = 0;
    }
    if (g.last == s) return g;
    (void)add_all(s, g.last, g.extent);
    g.row_bytes = row_bytes, g.row_points = row_points, g.least_rows = least_rows;
    if (g.row_bytes * g.extent <= near_bytes || (choose_rows(g), g.rows == g.extent)) g.last = s;
    for (use const& u : uses)
      if (u.by_rows && u.written && !u.filled && p.buffers[u.buffer].where == place::arena)
        g.own.push_back({u.buffer, u.stride});
    return g;
  }
  static constexpr void choose_rows(row_group& g) {
    g.rows = g.row_bytes ? cached / g.row_bytes : g.extent;
    if (index_t const whole = least_fold / g.row_points; whole > 0 && g.rows > whole)
      g.rows -= g.rows % whole; // so many rows that they fill blocks
    if (g.rows < g.least_rows) g.rows = g.least_rows;
    if (g.rows > g.extent) g.rows = g.extent;
  }
  /// Splits the outermost loop of a nest so that each of its rounds is one row.
  constexpr void split(body& b, index_t extent) {
    index_t const rounds = b.extent[0] / extent;
    int first = -1, last = -1;
    auto touch = [&](int a) {
      if (a < 0) return;
      if (first < 0 || a < first) first = a;
      if (a > last) last = a;
    };
    for (int k = b.fixed_first; k < b.fixed_first + b.fixed_count; ++k) touch(p.steps[k].access);
    for (int k = b.step_first; k < b.step_first + b.step_count; ++k) touch(p.steps[k].access);
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) touch(p.sinks[k].access);
    for (int l = b.rank; l > 0; --l) b.extent[l] = b.extent[l - 1];
    b.extent[0] = extent, b.extent[1] = rounds;
    ++b.rank;
    if (b.vector >= 0) ++b.vector;
    for (int k = first; k >= 0 && k <= last; ++k) { // all accesses from `first` to `last` belong to this nest
      access& a = p.accesses[k];
      for (int l = b.rank - 1; l > 0; --l) a.stride[l] = a.stride[l - 1];
      a.stride[0] = a.stride[1] * rounds;
    }
  }
  constexpr void settle(list<row_group>& groups) {
    list<life> const lives = lifetimes(p);
    list<int> when;
    for (std::size_t s = 0; s < p.stages.size(); ++s) when.push_back(static_cast<int>(s));
    for (row_group& g : groups) {
      list<stage> fills, loops;
      for (int s = g.first; s <= g.last; ++s) {
        stage const& st = p.stages[s];
        when[s] = g.first;
        (st.kind == stage_kind::fill ? fills : loops).push_back(st);
        if (st.kind == stage_kind::loops)
          if (body& b = p.bodies[st.number]; b.extent[0] != g.extent) split(b, g.extent);
      }
      row_sharing<>(p, g).run();
      choose_rows(g);
      auto mine = [&](int k) {
        return k >= static_cast<int>(lives.size()) || (lives[k].from >= g.first && lives[k].to <= g.last);
      };
      list<row_buffer> own;
      for (row_buffer const& o : g.own)
        if (mine(o.buffer)) {
          buffer& b = p.buffers[o.buffer];
          b.where = place::scratch, b.number = g.own_bytes, b.elements = o.stride * g.rows;
          g.own_bytes += (b.elements * itemsize(b.type) + 63) / 64 * 64;
          own.push_back(o);
        }
      g.own = own;
      int s = g.first;
      g.first += static_cast<int>(fills.size());
      for (stage const& st : fills) p.stages[s++] = st;
      for (stage const& st : loops) p.stages[s++] = st;
    }
    place_in_arena(p, when);
  }
};

} // namespace varve::fusion
