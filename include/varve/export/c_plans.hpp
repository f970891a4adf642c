// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_matrices.hpp>
#include <varve/plan/planner.hpp>

namespace varve::c99 {
inline constexpr dtype element_types[] = {dtype::float64, dtype::int64, dtype::float32,
                                          dtype::int32,   dtype::uint8, dtype::bool_};

/// The place of each array of a function. Temporaries of one dtype share an array where their lifetimes allow it; those
/// of symbolic size share memory whatever their dtypes are.
struct layout {
  struct piece {
    dtype type;
    extent begin, bytes; // in the memory of the function
    bool shared;         // smaller than its arrays together
  };
  std::vector<piece> pieces{};
  std::vector<index_t> at{}; // of a buffer: its first element in its piece; -1: it is no array
  std::vector<int> piece_of{};
  extent bytes = 0, aligned = 0; // aligned: as far as the memory of a function that this one calls begins behind them

  layout() = default;
  VARVE_COLD layout(fusion::program const& p, size_arguments& sizes)
      : at(p.buffers.size(), -1), piece_of(p.buffers.size(), -1) {
    for (dtype const t : element_types) {
      fusion::program own = p;
      index_t separate = 0;
      bool any = false;
      for (fusion::buffer& b : own.buffers) {
        if (b.where != fusion::place::arena) continue;
        if (b.type == t && b.elements != 1 && !fusion::is_run_time(b.elements))
          any = true, separate += b.elements * itemsize(t);
        else b.where = fusion::place::scratch;
      }
      if (!any) continue;
      fusion::place_in_arena(own);
      index_t const size = std::max<index_t>(own.workspace, itemsize(t)); // names without elements need memory too
      for (std::size_t k = 0; k < at.size(); ++k)
        if (fusion::buffer const& b = own.buffers[k]; b.where == fusion::place::arena)
          at[k] = b.number / itemsize(t), piece_of[k] = static_cast<int>(pieces.size());
      pieces.push_back({t, bytes, size, own.workspace < separate});
      bytes = sizes.sum(bytes, (size + 15) / 16 * 16);
    }
    for (index_t const size : {8, 4, 1})
      if (!sizes.empty()) of_symbolic_size(p, size, sizes);
    aligned = sizes.whole_units(bytes, 8);
  }

private:
  /// Places the arrays of symbolic size whose elements have `size` bytes, behind those with larger ones.
  void of_symbolic_size(fusion::program own, index_t size, size_arguments& sizes) {
    for (fusion::buffer& b : own.buffers)
      if (itemsize(b.type) != size) b.where = fusion::place::constant;
    int const count = fusion::detail::place_in_scratch(own), before = static_cast<int>(pieces.size());
    for (int n = 0; n < count; ++n) {
      piece all{dtype::uint8, bytes, -1, true};
      for (std::size_t k = 0; k < at.size(); ++k)
        if (fusion::buffer const& b = own.buffers[k]; b.where == fusion::place::scratch && b.number == n) {
          extent const mine = sizes.product(b.elements, size);
          at[k] = 0, piece_of[k] = before + n;
          all.bytes = known_equal(all.bytes, -1) ? mine : sizes.greatest(all.bytes, mine);
        }
      pieces.push_back(all);
      bytes = sizes.sum(bytes, all.bytes);
    }
  }
};

/// The planned functions of a graph, whose numbers are those of its regions, and their arrays.
class function_plans {
public:
  VARVE_COLD function_plans(graph const& g_, context& shared_)
      : g(g_), shared(shared_), plans(g_.regions.size()), layouts(g_.regions.size()), planned(g_.regions.size(), 0) {
    plan(0);
  }
  graph function(int r) const { return r ? function_of(g, r) : g; }
  fusion::program const& plan_of(int r) const { return plans[static_cast<std::size_t>(r)]; }
  layout const& layout_of(int r) const { return layouts[static_cast<std::size_t>(r)]; }
  /// Returns the bytes of the arrays of function `r` and of those that are active at a time below it.
  extent arrays(int r) const {
    extent below = 0;
    for (fusion::stage const& s : plan_of(r).stages)
      for (int const q : callees(plan_of(r), s)) below = shared.sizes.greatest(below, arrays(q));
    return below == 0 ? layout_of(r).bytes : shared.sizes.sum(layout_of(r).aligned, below);
  }

private:
  graph const& g;
  context& shared;
  std::vector<fusion::program> plans;
  std::vector<layout> layouts;
  std::vector<char> planned;

  static bool calls(fusion::stage const& s) {
    return s.kind == fusion::stage_kind::branch || s.kind == fusion::stage_kind::scan;
  }
  static std::vector<int> callees(fusion::program const& p, fusion::stage const& s) {
    if (!calls(s)) return {};
    fusion::call_info const& c = p.calls[s.number];
    if (s.kind == fusion::stage_kind::branch) return {c.region, c.region + 1};
    return c.condition >= 0 ? std::vector<int>{c.region, c.condition} : std::vector<int>{c.region};
  }
  /// Plans function `r` and those that it calls.
  void plan(int r) {
    auto const k = static_cast<std::size_t>(r);
    if (planned[k]) return;
    planned[k] = 1;
    fusion::program p = shared.sizes.plan(function(r));
    drop_unread(p);
    for (fusion::stage& s : p.stages) matrix_writer::add_temporaries(p, s, shared.sizes);
    int const first = g.regions[r].node_first; // names use the node numbers of the whole graph
    auto counts_to = [&](index_t n) {
      if (n > INT16_MAX) shared.index = "ptrdiff_t";
    };
    for (fusion::buffer& b : p.buffers) {
      b.node += b.node < 0 ? 0 : first;
      type_text(b.type); // refuses dtypes that C lacks
      counts_to(b.elements);
    }
    for (fusion::step& s : p.steps) s.node += first;
    for (fusion::body const& b : p.bodies)
      for (int l = 0; l < b.rank; ++l) counts_to(b.extent[l]);
    layouts[k] = layout(p, shared.sizes);
    for (fusion::stage const& s : p.stages)
      for (int const q : callees(p, s)) plan(q);
    plans[k] = std::move(p);
  }
  static bool scatters(fusion::program const& p, fusion::stage const& s) {
    return s.kind == fusion::stage_kind::call && p.calls[s.number].what == operator_class::scatter_add;
  }
  /// True for a `scatter_add` without indices, which is a copy.
  static bool adds_nothing(fusion::program const& p, fusion::stage const& s) {
    return scatters(p, s) && p.buffers[s.in[1]].elements == 0;
  }
  /// Marks the buffers that the text of a stage reads.
  void mark_reads(fusion::program const& p, fusion::stage const& s, std::vector<char>& read) const {
    auto mark = [&](int k) {
      if (k >= 0) read[static_cast<std::size_t>(k)] = 1;
    };
    if (s.kind == fusion::stage_kind::loops) return loop_writer::mark_reads(shared, p, p.bodies[s.number], read);
    if (adds_nothing(p, s)) return mark(s.in[0]);
    if (!calls(s)) return void(std::for_each(s.in, s.in + 3, mark));
    fusion::call_info const& c = p.calls[s.number];
    int const carried = s.kind == fusion::stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0;
    mark(s.in[0]);
    for (int k = 0; k < c.operands; ++k) mark(p.ports[s.in[1] + k]);
    for (int k = 0; k < c.results + carried; ++k) mark(p.ports[s.in[2] + k]);
  }
  /// Removes results that are temporaries which no text reads, because compilers warn of them. The planner keeps them
  /// if a step reads them, even if nothing uses the step. Also removes what writes to arrays without elements, except
  /// for a `scatter_add`, whose indices are checked.
  void drop_unread(fusion::program& p) const {
    for (bool again = true; again;) {
      std::vector<char> read(p.buffers.size(), 0);
      for (fusion::stage const& s : p.stages) mark_reads(p, s, read);
      auto const is_needed = [&](int k) {
        return p.buffers[k].where != fusion::place::arena || read[static_cast<std::size_t>(k)];
      };
      list<fusion::stage> kept;
      again = false;
      for (fusion::stage const& s : p.stages) {
        bool needed = calls(s);
        if (s.kind == fusion::stage_kind::loops) {
          fusion::body& b = p.bodies[s.number];
          int count = 0;
          for (int k = 0; k < b.sink_count; ++k)
            if (fusion::sink const sink = p.sinks[b.sink_first + k];
                is_needed(p.accesses[sink.access].buffer) && p.buffers[p.accesses[sink.access].buffer].elements != 0)
              p.sinks[b.sink_first + count++] = sink;
          again = again || (count > 0 && count != b.sink_count);
          needed = count > 0, b.sink_count = count;
        } else if (!needed) {
          needed = is_needed(s.out) && (p.buffers[s.out].elements != 0 || scatters(p, s));
        }
        if (needed) kept.push_back(s);
      }
      again = again || kept.size() != p.stages.size();
      p.stages = kept;
    }
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
