// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/table.hpp>
#include <varve/graph/block_body.hpp>
#include <varve/graph/block_kernel.hpp>

namespace varve::loop {

/// Makes a loop nest of a program ready for running by blocks. Every value has its own dtype here, and operators compute by the very kernels that tensors use.
/// Errors: `missing_rule` when an operator is not known for tensors. Work is linear in the steps. (A template only to cost nothing unless used.)
template <class = void>
class block_planner {
public:
  static block_body plan(program const& p, body const& b) {
    for (index_t room = most_elements;; room /= 2) {
      block_planner planner(p, b, room);
      planner.build();
      if (planner.r.scratch <= most_bytes || room <= 64) return std::move(planner.r);
    }
  }

private:
  static constexpr index_t most_elements = 512, most_bytes = 16384;
  using place = block_value::place;
  program const& p;
  body const& b;
  block_body r;
  int order[max_rank]{};
  std::vector<int> fixed, now;

  block_planner(program const& program_, body const& body_, index_t room) : p(program_), b(body_) {
    r.rank = b.rank;
    for (int l = 0; l < b.rank; ++l) order[l] = l;
    int const last = b.rank - 1; // a short innermost loop gives its place to the one that SIMD registers run along
    if (b.vector >= 0 && b.vector < last && b.extent[b.vector] > 4 * b.extent[last]) move_last(order + b.vector, order + last);
    for (int l = 0; l < b.rank; ++l) r.extent[l] = b.extent[order[l]];
    if (b.rank == 0) r.rank = 1, r.extent[0] = 1;
    index_t volume = 1;
    for (int l = 0; l < r.rank; ++l) volume *= r.extent[l];
    if (index_t const all = (volume + 15) / 16 * 16; all < room) room = all;
    r.tile = r.rank - 1;
    while (r.tile > 0 && r.inner * r.extent[r.tile] * 2 <= room) r.inner *= r.extent[r.tile--];
    r.chunk = r.inner ? room / r.inner : 1;
    if (r.chunk > r.extent[r.tile]) r.chunk = r.extent[r.tile];
    if (r.chunk < 1) r.chunk = 1;
    r.block = (r.chunk * r.inner + 15) / 16 * 16;
  }

  static void move_last(int* from, int* to) {
    for (; from < to; ++from) std::swap(from[0], from[1]);
  }
  int access_of(int number) {
    access const& from = p.accesses[number];
    block_access a{from.buffer, from.buffer < 0 ? 8 : itemsize(p.buffers[from.buffer].type), from.offset, {}, 0, false, true};
    for (int l = 0; l < b.rank; ++l) a.stride[l] = from.stride[order[l]];
    int l = r.rank - 1;
    index_t adjacent = 1;
    for (; l >= r.tile && (a.stride[l] == adjacent || (l == r.tile ? r.chunk : r.extent[l]) == 1); --l) adjacent *= r.extent[l];
    a.all = l < r.tile;
    bool repeats = true;
    for (int k = r.tile; k <= l; ++k) repeats = repeats && a.stride[k] == 0;
    a.period = a.all ? r.chunk * r.inner : repeats ? adjacent : 0;
    for (int k = 0; k <= r.tile; ++k) a.once = a.once && (a.stride[k] == 0 || r.extent[k] == 1);
    r.accesses.push_back(a);
    return static_cast<int>(r.accesses.size()) - 1;
  }
  int value(dtype t, place where, int access = -1, double number = 0) {
    r.values.push_back({where, t, access, 0, number});
    return static_cast<int>(r.values.size()) - 1;
  }
  dtype type(int v) const { return r.values[static_cast<std::size_t>(v)].type; }
  template <class... In>
  int call(kernel::loop f, dtype out, In... in) {
    int const v = value(out, place::scratch);
    r.steps.push_back({block_step::kind::call, f, v, -1, static_cast<int>(sizeof...(In)), {in...}});
    return v;
  }
  int converted(int v, dtype t) {
    if (type(v) == t) return v;
    if (r.values[static_cast<std::size_t>(v)].where == place::constant && t != dtype::bool_ && is_floating(t)) return value(t, place::constant, -1, r.values[static_cast<std::size_t>(v)].number);
    return call(kernel::convert_loop<>(t, type(v)), t, v);
  }
  int combined(block_op op, dtype t, int x, int y) { return call(block_loop<>(op, t), t, converted(x, t), converted(y, t)); }
  /// c + a b, or c - a b; in one rounding where the dtype has it.
  int multiplied(block_op op, dtype t, int x, int y, int c) {
    if (kernel::loop const f = block_loop<>(op, t)) return call(f, t, converted(x, t), converted(y, t), converted(c, t));
    return combined(op == block_op::fma ? block_op::add : block_op::sub, t, c, combined(block_op::mul, t, x, y));
  }
  int slot(int s) const { return s >= 0 ? now[static_cast<std::size_t>(s)] : fixed[static_cast<std::size_t>(~s)]; }
  int operand(step const& s, int k) const { return slot(k < 3 ? s.in[k] : p.slots[s.args + k]); }

  int loaded(step const& s) {
    int const a = access_of(s.access);
    if (r.accesses[static_cast<std::size_t>(a)].all) return value(s.type, place::memory, a);
    return filled(block_step::kind::copy, s.type, a);
  }
  int filled(block_step::kind what, dtype t, int a) {
    int const v = value(t, place::scratch, a);
    r.steps.push_back({what, nullptr, v, a, 0, {}});
    return v;
  }
  int operation(step const& s) {
    op_table const* const table = ops::find(s.op->name);
    if (!table || !table->pointwise)
      throw missing_rule((std::string("varve: fuse: operator ") + s.op->name + " is not known for tensors; call it on a tensor anywhere in the program").c_str());
    varve::detail::pointwise_info const& f = *table->pointwise;
    dtype const t = f.comparison ? type(operand(s, s.count - 1)) : s.type;
    kernel::loop const loop = f.loops[static_cast<int>(t)];
    if (!loop) refuse::dtype_is_not_supported(f.name, name(t));
    int const v = value(f.comparison ? dtype::bool_ : t, place::scratch);
    block_step out{block_step::kind::call, loop, v, -1, s.count, {}};
    for (int k = 0; k < s.count; ++k) out.in[k] = converted(operand(s, k), t);
    r.steps.push_back(out);
    return v;
  }
  int computed(step const& s) {
    auto chain = [&](block_op op) {
      int v = converted(operand(s, 0), s.type);
      for (int k = 1; k < s.count; ++k) v = combined(op, s.type, v, operand(s, k));
      return v;
    };
    switch (s.kind) {
    case step_kind::none: return s.access < 0 ? -1 : loaded(s);
    case step_kind::load:
    case step_kind::records: return loaded(s);
    case step_kind::constant: return value(s.type, place::constant, -1, s.value);
    case step_kind::index: {
      if (s.count == 0) return filled(block_step::kind::index, s.type, access_of(s.access));
      int const i = filled(block_step::kind::index, dtype::int64, access_of(s.access));
      return converted(call(block_loop<>(block_op::equal, dtype::int64), dtype::bool_, converted(operand(s, 0), dtype::int64), i), s.type);
    }
    case step_kind::convert: return converted(operand(s, 0), s.type);
    case step_kind::sum: return s.count ? chain(block_op::add) : value(s.type, place::constant);
    case step_kind::greatest: return chain(block_op::greatest);
    case step_kind::least: return chain(block_op::least);
    case step_kind::dot: {
      if (s.count == 0) return value(s.type, place::constant);
      int v = combined(block_op::mul, s.type, operand(s, 0), operand(s, 1));
      for (int k = 2; k < s.count; k += 2) v = multiplied(block_op::fma, s.type, operand(s, k), operand(s, k + 1), v);
      return v;
    }
    case step_kind::fma:
    case step_kind::fnma: return multiplied(s.kind == step_kind::fma ? block_op::fma : block_op::fnma, s.type, operand(s, 0), operand(s, 1), operand(s, 2));
    default: return operation(s); // op, add, sub, mul, div
    }
  }
  void leave(sink const& s) {
    int const a = access_of(s.access);
    dtype const t = p.buffers[r.accesses[static_cast<std::size_t>(a)].buffer].type;
    block_sink out{s.kind, slot(s.a), a, s.kind != sink_kind::store && !s.accumulate, {}};
    if (s.product && s.minus) out.value = multiplied(block_op::fnma, type(out.value), out.value, slot(s.b), value(type(out.value), place::constant));
    else if (s.product) out.value = combined(block_op::mul, type(out.value), out.value, slot(s.b));
    if (s.kind == sink_kind::store) {
      out.value = converted(out.value, t);
      block_value& v = r.values[static_cast<std::size_t>(out.value)];
      if (v.where == place::scratch && v.access < 0 && r.accesses[static_cast<std::size_t>(a)].all) v.where = place::memory, v.access = a, out.value = -1;
    } else {
      kernel::reduction const k = s.kind == sink_kind::sum ? kernel::reduction::sum : s.kind == sink_kind::greatest ? kernel::reduction::max : kernel::reduction::min;
      if (kernel::reduced_dtype(k, type(out.value)) != t) out.value = converted(out.value, t);
      out.fold = block_reducer<>(s.kind, type(out.value));
    }
    r.sinks.push_back(out);
  }
  void build() {
    for (int k = 0; k < b.fixed_count; ++k) fixed.push_back(computed(p.steps[b.fixed_first + k]));
    for (int k = 0; k < b.step_count; ++k) now.push_back(computed(p.steps[b.step_first + k]));
    for (int k = 0; k < b.sink_count; ++k) leave(p.sinks[b.sink_first + k]);
    allocate();
  }
  /// Is a value copied for the first block and kept for all?
  bool lasts(block_value const& v) const { return v.where == place::scratch && v.access >= 0 && r.accesses[static_cast<std::size_t>(v.access)].once; }
  /// Drops what nobody needs and gives each value scratch memory while it is needed: few blocks, used again and again.
  void allocate() {
    int const forever = static_cast<int>(r.steps.size());
    std::vector<int> last(r.values.size(), -1);
    for (block_sink const& s : r.sinks)
      if (s.value >= 0) last[static_cast<std::size_t>(s.value)] = forever;
    for (std::size_t v = 0; v < r.values.size(); ++v) // written in place
      if (r.values[v].where == place::memory) last[v] = forever;
    std::vector<block_step> kept;
    for (int k = forever - 1; k >= 0; --k) {
      block_step const& s = r.steps[static_cast<std::size_t>(k)];
      if (last[static_cast<std::size_t>(s.out)] < 0) continue;
      for (int q = 0; q < s.count; ++q) if (int& l = last[static_cast<std::size_t>(s.in[q])]; l < k) l = k;
    }
    index_t const table = (static_cast<index_t>(r.values.size() * sizeof(void*)) + 63) / 64 * 64;
    index_t top = 0, constants = 0;
    std::vector<index_t> free_[9];
    for (int k = 0; k < forever; ++k) {
      block_step const& s = r.steps[static_cast<std::size_t>(k)];
      if (last[static_cast<std::size_t>(s.out)] < 0) continue;
      for (int q = 0; q < s.count; ++q) {
        block_value const& v = r.values[static_cast<std::size_t>(s.in[q])];
        bool again = false;
        for (int e = 0; e < q; ++e) again = again || s.in[e] == s.in[q];
        if (v.where == place::scratch && last[static_cast<std::size_t>(s.in[q])] == k && !again && !lasts(v)) free_[itemsize(v.type)].push_back(v.byte);
      }
      block_value& v = r.values[static_cast<std::size_t>(s.out)];
      if (v.where == place::scratch) {
        auto& list = free_[itemsize(v.type)];
        if (list.empty() || lasts(v)) v.byte = top, top += itemsize(v.type);
        else v.byte = list.back(), list.pop_back();
      }
      kept.push_back(s);
    }
    r.steps = std::move(kept);
    for (std::size_t k = 0; k < r.values.size(); ++k)
      if (block_value& v = r.values[k]; v.where == place::constant && last[k] >= 0) v.byte = constants, constants += itemsize(v.type);
    r.scratch = table + top * r.block;
    r.constants = tensor::empty({constants * r.block}, dtype::uint8);
    for (std::size_t k = 0; k < r.values.size(); ++k)
      if (block_value const& v = r.values[k]; v.where == place::constant && last[k] >= 0)
        fill_elements<>(v.type, static_cast<std::byte*>(r.constants.raw()) + v.byte * r.block, r.block, v.number);
  }
};

} // namespace varve::loop
