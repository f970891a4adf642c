// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/run_rows.hpp>

namespace varve::fusion {

/// A runner of a function of linked tables, on the addresses of its arguments and results. `memory` must have room for
/// `function.memory` bytes and begin at a multiple of 64. No other memory is needed.
template <class = void>
class block_graph_runner {
public:
  VARVE_NOINLINE static void run(block_view const& v, int number, void const* const* arguments, void* const* results,
                                 std::byte* memory) {
    block_graph_runner{v, v.functions[number], arguments, results, memory}.stages();
  }

private:
  block_view const& v;
  block_function const& f;
  std::byte **at, **handed; // addresses of buffers, and room for those that are passed to functions
  std::byte *arena, *scratch;

  block_graph_runner(block_view const& view, block_function const& function, void const* const* arguments,
                     void* const* results, std::byte* memory)
      : v(view), f(function), at(reinterpret_cast<std::byte**>(memory)), handed(at + f.buffer_count),
        arena(memory + f.addresses), scratch(arena + (f.workspace + 63) / 64 * 64) {
    for (int k = 0; k < f.buffer_count; ++k) {
      buffer const& b = v.buffers[f.buffer_first + k];
      if (b.where == place::argument)
        at[k] = static_cast<std::byte*>(const_cast<void*>(arguments[b.number])); // it is only read
      else if (b.where == place::result) at[k] = static_cast<std::byte*>(results[b.number]);
      else if (b.where == place::constant)
        at[k] = reinterpret_cast<std::byte*>(const_cast<unsigned char*>(v.constants + b.number));
      else at[k] = (b.where == place::scratch ? scratch : arena) + b.number;
    }
  }
  void stages() const {
    for (stage const *s = v.stages + f.stage_first, *const end = s + f.stage_count; s != end; ++s) {
      if (s->kind == stage_kind::loops) block_runner<>::run(v, v.bodies[s->number], at, scratch);
      else if (s->kind == stage_kind::rows)
        block_group_runner<>::run(v, v.groups[s->number], at, f.buffer_count, scratch);
      else if (s->kind == stage_kind::fill) fill(*s);
      else if (s->kind == stage_kind::branch) branch(*s, v.calls[s->number].info);
      else if (s->kind == stage_kind::scan) scan(*s, v.calls[s->number].info);
      else call(*s, v.calls[s->number]);
    }
  }
  buffer const& buffer_of(int k) const { return v.buffers[f.buffer_first + k]; }
  void fill(stage const& s) const {
    v.folds[s.number].clear(buffer_of(s.out).elements, at[s.out]); // exact for integers too
  }
  void call(stage const& s, block_call const& c) const {
    std::byte* const in[] = {at[s.in[0] < 0 ? 0 : s.in[0]], at[s.in[1] < 0 ? 0 : s.in[1]],
                             at[s.in[2] < 0 ? 0 : s.in[2]]};
    block_callee const& callee = v.callees[c.callee];
    callee.run(callee, c.info, in, at[s.out]);
  }
  void function(int number, std::byte* const* in, std::byte* const* out) const {
    run(v, number, reinterpret_cast<void const* const*>(in), reinterpret_cast<void* const*>(out), scratch);
  }
  /// Writes the addresses of the buffers in `count` slots to `to`. Returns the position after them.
  std::byte** put(std::byte** to, int first, int count) const {
    for (int k = 0; k < count; ++k) *to++ = at[v.ports[first + k]];
    return to;
  }
  void branch(stage const& s, call_info const& c) const {
    bool const chosen = *reinterpret_cast<bool const*>(at[s.in[0]]);
    std::byte** const out = put(handed, s.in[1], c.operands);
    put(out, s.in[2], c.results);
    function(c.region + (chosen ? 0 : 1), handed, out);
  }
  /// Runs a loop. Inputs per step and outputs per step advance by one row from step to step. Carried values alternate
  /// between two buffers. Outputs of steps that are not executed are 0.
  void scan(stage const& s, call_info const& c) const {
    int const carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]);
    bool const open = c.condition >= 0, counted = c.at[0][3] != 0;
    index_t const n = c.at[1][0];
    auto from = [&](int k) { return at[v.ports[s.in[1] + k]]; };
    auto to = [&](int k) { return at[v.ports[s.in[2] + k]]; };
    auto bytes = [&](int slot) {
      buffer const& b = buffer_of(v.ports[slot]);
      return static_cast<std::size_t>(b.elements * itemsize(b.type));
    };
    auto row_bytes = [&](int slot) { return static_cast<index_t>(bytes(slot)) / (n ? n : 1); };
    std::byte** const in = handed;
    std::byte** const out = put(in, s.in[1], c.operands);
    std::byte** here = put(out, s.in[2], c.results);
    std::byte** there = put(here, s.in[2], carried);
    put(there, s.in[2] + c.results, carried);
    // so that the last step leaves its result in the right buffer
    if (n % 2 && !open && !counted) std::swap(here, there);
    for (int k = 0; k < carried; ++k) std::memcpy(here[k], from(k), bytes(s.in[1] + k));
    index_t steps = n;
    if (counted)
      on_dtype(buffer_of(v.ports[s.in[1] + walked]).type, "scan",
               [&]<class T>() { steps = static_cast<index_t>(*reinterpret_cast<T const*>(from(walked))); });
    auto goes_on = [&](index_t step) {
      if (!open) return step < steps;
      put(in, s.in[1], c.operands);
      for (int k = 0; k < carried; ++k) in[k] = here[k];
      function(c.condition, in, &at[s.in[0]]);
      bool const go = *reinterpret_cast<bool const*>(at[s.in[0]]);
      if (go && n > 0 && step == n) refuse::loop_takes_more_steps_than_its_bound("while_loop", n);
      return go;
    };
    index_t step = 0;
    for (; goes_on(step); ++step) {
      index_t const row = c.at[0][2] ? steps - 1 - step : step;
      for (int k = 0; k < walked; ++k) in[k] = k < carried ? here[k] : from(k) + row * row_bytes(s.in[1] + k);
      for (int k = 0; k < c.results; ++k) out[k] = k < carried ? there[k] : to(k) + row * row_bytes(s.in[2] + k);
      function(c.region, in, out);
      std::swap(here, there);
    }
    if (!open && !counted) return;
    for (int k = 0; k < carried; ++k)
      if (here[k] != to(k)) std::memcpy(to(k), here[k], bytes(s.in[2] + k));
    for (int k = carried; k < c.results; ++k)
      std::memset(to(k) + step * row_bytes(s.in[2] + k), 0,
                  static_cast<std::size_t>((n - step) * row_bytes(s.in[2] + k)));
  }
};

} // namespace varve::fusion
