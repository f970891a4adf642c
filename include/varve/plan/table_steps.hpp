// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/chains.hpp>
#include <varve/plan/tables.hpp>

namespace varve::fusion {

/// An operator as a kernel over blocks. Operands are converted to `computes`; the result has the dtype `gives`.
struct block_operation {
  int kernel;
  dtype computes, gives;
};

/// True if a short innermost loop changes places with the loop that runs in SIMD registers.
constexpr bool turns_inwards(body const& b) {
  return b.vector >= 0 && b.vector < b.rank - 1 && b.extent[b.vector] > 4 * b.extent[b.rank - 1];
}

/// A planner that turns a loop nest of a program into tables for running by blocks. Every value has its own dtype here.
/// `Kernels` numbers the kernels: of tensors, or of lanes. Work is linear in the steps.
template <class Kernels>
class block_planner {
public:
  /// Appends the tables of body `b` to `r`. `rows` is the number of rounds of the outermost loop per turn if it runs in
  /// turns with other nests.
  static constexpr void plan(program const& p, body const& b, Kernels& kernels, block_program& r, index_t rows = -1) {
    index_t room = b.rank > 1 ? most_elements : most_elements / 2; // as many elements as fit the first-level cache
    block_planner first(p, b, kernels, r, room, rows);
    first.build();
    if (first.is_all_near() && first.made.block >= room) { // blocks need not fit the first-level cache
      block_planner longer(p, b, kernels, r, several_blocks * room, rows);
      longer.build();
      return longer.leave_tables();
    }
    if (first.is_near(first.made.block) || first.made.block <= least_elements) return first.leave_tables();
    while (room > least_elements && !first.is_near(room)) room /= 2;
    block_planner again(p, b, kernels, r, room, rows);
    again.build();
    again.leave_tables();
  }

private:
  static constexpr index_t several_blocks = 8;
  static constexpr index_t most_elements = 1024, several_rows = 256, least_elements = 64, most_bytes = 16384,
                           few_constants = 8;
  /// One block of a value whose place is not decided yet.
  struct block_value {
    dtype type;
    int access; // >= 0: read from or written to memory
    bool lasts; // made in the first block and kept for all
    bool constant;
    int last; // the last step that uses it, -1: none
    int place;
    bool single;       // one element in memory, for the whole block
    int spread;        // for a single element: the value that is a block of it, -1: not needed so far
    double number = 0; // of a constant
    int last_link = 0; // of a chain that has it as an operand
  };
  program const& p;
  body const& b;
  Kernels& kernels;
  block_program& r;
  block_body made{};
  int order[max_rank]{};
  index_t slot_bytes = 0, memory_bytes = 0;
  list<int> fixed{}, now{};
  list<block_access> accesses{};
  list<block_value> values{};
  list<block_place> places{};
  list<block_step> steps{}, kept{};
  list<block_sink> sinks{};

  constexpr block_planner(program const& program_, body const& body_, Kernels& kernels_, block_program& r_,
                          index_t room, index_t rows)
      : p(program_), b(body_), kernels(kernels_), r(r_) {
    made.rank = b.rank;
    for (int l = 0; l < b.rank; ++l) order[l] = l;
    if (turns_inwards(b))
      for (int l = b.vector; l < b.rank - 1; ++l) std::swap(order[l], order[l + 1]);
    for (int l = 0; l < b.rank; ++l) made.extent[l] = b.extent[order[l]];
    if (b.rank == 0) made.rank = 1, made.extent[0] = 1;
    if (rows < 0) rows = made.extent[0];
    index_t volume = rows;
    for (int l = 1; l < made.rank; ++l) volume *= made.extent[l];
    if (index_t const all = (volume + 15) / 16 * 16; all < room) room = all;
    made.tile = made.rank - 1, made.inner = 1;
    // A block has several short rows. Of a longer row it has a part, so that a value per row is a single element.
    while (made.tile > 0 && made.inner * made.extent[made.tile] * 2 <= (room < several_rows ? room : several_rows))
      made.inner *= made.extent[made.tile--];
    bool const one = made.tile > 0 && made.inner * made.extent[made.tile] <= room;
    if (one) made.inner *= made.extent[made.tile--];
    made.chunk = made.inner && !one ? room / made.inner : 1;
    if (index_t const n = made.tile == 0 ? rows : made.extent[made.tile]; made.chunk > n) made.chunk = n;
    if (made.chunk < 1) made.chunk = 1;
    made.block = (made.chunk * made.inner + 15) / 16 * 16;
  }

  constexpr int access_of(int number) {
    access const& from = p.accesses[number];
    block_access a{
        from.buffer, from.buffer < 0 ? 8 : itemsize(p.buffers[from.buffer].type), from.offset, {}, 0, false, true,
        false};
    a.own = from.buffer >= 0 && p.buffers[from.buffer].where == place::scratch;
    for (int l = 0; l < b.rank; ++l) a.stride[l] = from.stride[order[l]];
    int l = made.rank - 1;
    index_t adjacent = 1;
    for (; l >= made.tile && (a.stride[l] == adjacent || (l == made.tile ? made.chunk : made.extent[l]) == 1); --l)
      adjacent *= made.extent[l];
    a.all = l < made.tile;
    bool repeats = true;
    for (int k = made.tile + (made.chunk == 1); k <= l; ++k) repeats = repeats && a.stride[k] == 0;
    a.period = a.all ? made.chunk * made.inner : repeats ? adjacent : 0;
    for (int k = 0; k <= made.tile; ++k) a.once = a.once && (a.stride[k] == 0 || made.extent[k] == 1);
    accesses.push_back(a);
    return static_cast<int>(accesses.size()) - 1;
  }
  constexpr int value(dtype t, int access = -1, bool lasts = false, bool constant = false) {
    values.push_back({t, access, lasts, constant, -1, -1, false, -1});
    return static_cast<int>(values.size()) - 1;
  }
  constexpr dtype type(int v) const { return values[v].type; }
  constexpr int number(dtype t, double x) {
    int const v = value(t, -1, false, true);
    values[v].number = x;
    steps.push_back({block_step::kind::fill, t, false, -1, v, -1, 0, {}, x});
    return v;
  }
  template <class... In>
  constexpr int call(int kernel, dtype out, In... in) {
    int const v = value(out);
    steps.push_back({block_step::kind::call, out, false, kernel, v, -1, static_cast<int>(sizeof...(In)), {in...}, 0});
    return v;
  }
  /// Marks the call just made with its operation in chains, if its dtype has chains.
  constexpr int chained(int v, chain_op op, int single = 0) {
    if (type(v) == dtype::float32 || type(v) == dtype::float64)
      steps.back().op = op, steps.back().single = static_cast<char>(single);
    return v;
  }
  constexpr int chained(int v, block_op op, int single = 0) {
    return chained(v,
                   op == block_op::add    ? chain_op::add
                   : op == block_op::sub  ? chain_op::sub
                   : op == block_op::mul  ? chain_op::mul
                   : op == block_op::fma  ? chain_op::fma
                   : op == block_op::fnma ? chain_op::fnma
                                          : chain_op::none,
                   single);
  }
  constexpr int converted(int v, dtype t) { return type(v) == t ? v : call(kernels.convert(t, type(v)), t, v); }
  constexpr int combined(block_op op, dtype t, int x, int y) {
    int const a = converted(x, t), c = converted(y, t);
    return chained(call(kernels.arithmetic(op, t), t, a, c), op);
  }
  /// Computes c + a b, or c - a b; with one rounding if the dtype is floating.
  constexpr int multiplied(block_op op, dtype t, int x, int y, int c) {
    if (!is_floating(t))
      return combined(op == block_op::fma ? block_op::add : block_op::sub, t, c, combined(block_op::mul, t, x, y));
    int const a = converted(x, t), d = converted(y, t), e = converted(c, t);
    return chained(call(kernels.arithmetic(op, t), t, a, d, e), op);
  }
  constexpr int single_or_slot(int s) const { return s >= 0 ? now[s] : fixed[~s]; }
  constexpr int slot(int s) {
    int const v = single_or_slot(s);
    if (!values[v].single) return v;
    if (values[v].spread < 0)
      values[v].spread = filled(block_step::kind::copy, type(v), values[v].access); // the right side first: values move
    return values[v].spread;
  }
  constexpr int operand(step const& s, int k) { return slot(k < 3 ? s.in[k] : p.ports[s.args + k]); }

  constexpr int loaded(step const& s) {
    int const a = access_of(s.access);
    if (!accesses[a].all && accesses[a].period != 1) return filled(block_step::kind::copy, s.type, a);
    int const v = value(s.type, a);
    values[v].single = !accesses[a].all;
    return v;
  }
  /// Writes sums, differences and products with a single element, for which there are kernels; otherwise returns -1.
  constexpr int with_single(step const& s) {
    int const count = s.kind >= step_kind::fma ? 3 : 2;
    bool const sum = s.kind == step_kind::add, difference = s.kind == step_kind::sub,
               product = s.kind == step_kind::mul, fused = s.kind == step_kind::fma || s.kind == step_kind::fnma;
    if (!(sum || difference || product || fused) || s.count != count ||
        (s.type != dtype::float32 && s.type != dtype::float64))
      return -1;
    int in[3]{-1, -1, -1}, single = 0;
    for (int k = 0; k < count; ++k) {
      in[k] = single_or_slot(s.in[k]);
      if (type(in[k]) != s.type) return -1;
    }
    if (!difference && values[in[0]].single && !values[in[1]].single) std::swap(in[0], in[1]);
    for (int k = difference ? 0 : 1; k < count; ++k)
      if (values[in[k]].single) single |= 1 << k;
    if (single == 0 || values[in[0]].single != (single == 1)) return -1;
    if (difference && single == 3) return -1;
    block_op const op = sum                        ? block_op::add
                        : difference               ? block_op::sub
                        : product                  ? block_op::mul
                        : s.kind == step_kind::fma ? block_op::fma
                                                   : block_op::fnma;
    int const kernel = kernels.arithmetic(op, s.type, single);
    return chained(fused ? call(kernel, s.type, in[0], in[1], in[2]) : call(kernel, s.type, in[0], in[1]), op, single);
  }
  constexpr int filled(block_step::kind what, dtype t, int a) {
    bool const once = what == block_step::kind::copy && accesses[a].once;
    int const v = value(t, -1, once);
    steps.push_back({what, t, once, -1, v, a, 0, {}, 0});
    return v;
  }
  constexpr int operation(step const& s) {
    dtype in[4]{};
    for (int k = 0; k < s.count && k < 4; ++k) in[k] = type(operand(s, k));
    block_operation const o = kernels.operation(s, in);
    block_step out{block_step::kind::call, o.gives, false, o.kernel, value(o.gives), -1, s.count, {}, 0};
    for (int k = 0; k < s.count && k < 4; ++k) out.in[k] = converted(operand(s, k), o.computes);
    steps.push_back(out);
    if (s.count == 2 && o.computes == o.gives)
      (void)chained(out.out, s.kind == step_kind::add   ? chain_op::add
                             : s.kind == step_kind::sub ? chain_op::sub
                             : s.kind == step_kind::mul ? chain_op::mul
                             : s.kind == step_kind::div ? chain_op::divide
                                                        : chain_op::none);
    if (Kernels::exact_dtypes || s.type == o.gives || (s.type == dtype::bool_ && in[0] != dtype::bool_)) return out.out;
    return converted(is_narrow(s.type) ? converted(out.out, dtype::int64) : out.out, s.type); // integers wrap around
  }
  constexpr int computed(step const& s) {
    auto chain = [&](block_op op) {
      int v = converted(operand(s, 0), s.type);
      for (int k = 1; k < s.count; ++k) v = combined(op, s.type, v, operand(s, k));
      return v;
    };
    if (int const v = with_single(s); v >= 0) return v;
    switch (s.kind) {
    case step_kind::none:
      return s.access < 0 ? -1 : loaded(s);
    case step_kind::load:
    case step_kind::records:
      return loaded(s);
    case step_kind::constant:
      return number(s.type, s.value);
    case step_kind::index: {
      if (s.count == 0) return filled(block_step::kind::index, s.type, access_of(s.access));
      int const i = filled(block_step::kind::index, dtype::int64, access_of(s.access)),
                x = converted(operand(s, 0), dtype::int64);
      return converted(call(kernels.arithmetic(block_op::equal, dtype::int64), dtype::bool_, x, i), s.type);
    }
    case step_kind::convert:
      return converted(operand(s, 0), s.type);
    case step_kind::sum:
      return s.count ? chain(block_op::add) : number(s.type, 0);
    case step_kind::greatest:
      return chain(block_op::greatest);
    case step_kind::least:
      return chain(block_op::least);
    case step_kind::dot: {
      if (s.count == 0) return number(s.type, 0);
      int v = combined(block_op::mul, s.type, operand(s, 0), operand(s, 1));
      for (int k = 2; k < s.count; k += 2) v = multiplied(block_op::fma, s.type, operand(s, k), operand(s, k + 1), v);
      return v;
    }
    case step_kind::fma:
    case step_kind::fnma:
      return multiplied(s.kind == step_kind::fma ? block_op::fma : block_op::fnma, s.type, operand(s, 0), operand(s, 1),
                        operand(s, 2));
    default:
      return s.kind == step_kind::mul && s.count == 1 ? combined(block_op::mul, s.type, operand(s, 0), operand(s, 0))
                                                      : operation(s); // `square` of integers; op, add, sub, mul, div
    }
  }
  constexpr void leave(sink const& s) {
    int const a = access_of(s.access);
    dtype const t = p.buffers[accesses[a].buffer].type;
    int v = slot(s.a);
    if (s.product && s.minus) v = multiplied(block_op::fnma, type(v), v, slot(s.b), number(type(v), 0));
    else if (s.product) v = combined(block_op::mul, type(v), v, slot(s.b));
    block_sink out{s.kind, s.kind != sink_kind::store && !s.accumulate, -1, 0, a, -1};
    if (s.kind == sink_kind::store) {
      v = converted(v, t);
      if (block_value& x = values[v]; x.access < 0 && !x.lasts && !x.constant && accesses[a].all) { // written in place
        x.access = a;
        return; // nothing remains to be done
      }
    } else {
      kernel::reduction const k = s.kind == sink_kind::sum        ? kernel::reduction::sum
                                  : s.kind == sink_kind::greatest ? kernel::reduction::max
                                                                  : kernel::reduction::min;
      if (kernel::reduced_dtype(k, type(v)) != t) v = converted(v, t);
      out.fold = kernels.fold(s.kind, type(v));
    }
    out.from = v, out.itemsize = itemsize(type(v));
    sinks.push_back(out);
  }
  constexpr void build() {
    for (int k = 0; k < b.fixed_count; ++k) fixed.push_back(computed(p.steps[b.fixed_first + k]));
    for (int k = 0; k < b.step_count; ++k) now.push_back(computed(p.steps[b.step_first + k]));
    for (int k = 0; k < b.sink_count; ++k) leave(p.sinks[b.sink_first + k]);
    join();
    allocate();
  }
  constexpr index_t header() const {
    return block_header(static_cast<int>(places.size()), made.memory_count, static_cast<int>(sinks.size()));
  }
  constexpr index_t bytes_for(index_t elements) const { return header() + slot_bytes * elements; }
  /// True if blocks of this length stay in the first-level cache. Long blocks count with the memory they read and
  /// write.
  constexpr bool is_near(index_t elements) const {
    return bytes_for(elements) + (elements > most_elements / 2 ? memory_bytes * elements - most_bytes / 2 : 0) <=
           most_bytes;
  }
  /// True if chains do everything, and all that they need is in memory or near.
  constexpr bool is_all_near() const {
    for (int k = 0; k < static_cast<int>(kept.size()); ++k)
      if (kept[k].what != block_step::kind::chain && kept[k].what != block_step::kind::link) return false;
    return sinks.empty() && !kept.empty() && static_cast<int>(places.size()) == made.memory_count;
  }
  constexpr int scratch_place(dtype t) {
    places.push_back({-1, static_cast<int>(slot_bytes)});
    slot_bytes += itemsize(t);
    return static_cast<int>(places.size()) - 1;
  }
  /// Returns which values the sinks need.
  constexpr list<char> needed() const {
    list<char> r(values.size(), 0);
    for (block_sink const& s : sinks) r[static_cast<std::size_t>(s.from)] = 1;
    for (int k = static_cast<int>(steps.size()) - 1; k >= 0; --k) {
      block_step const& s = steps[k];
      bool const out = s.out < 0 || r[static_cast<std::size_t>(s.out)] || values[s.out].access >= 0 ||
                       s.what == block_step::kind::link;
      if (!out || s.what == block_step::kind::chain) continue;
      if (s.out >= 0) r[static_cast<std::size_t>(s.out)] = 1;
      for (int q = 0; q < s.count; ++q)
        if (s.in[q] >= 0) r[static_cast<std::size_t>(s.in[q])] = 1;
    }
    return r;
  }
  /// Drops unneeded steps, and joins calls into chains.
  constexpr void join() {
    list<char> need = needed();
    for (int v = 0; v < static_cast<int>(values.size()); ++v)
      if (need[static_cast<std::size_t>(v)] && values[v].constant) need[static_cast<std::size_t>(v)] = 2;
    steps = chain_maker<Kernels>::joined(steps, need, kernels);
    for (block_step& s : steps)
      for (int q = 0; q < s.count && s.what == block_step::kind::link; ++q)
        if (block_value const& v = values[s.in[q] < 0 ? 0 : s.in[q]]; v.constant && (q == 0 || s.in[0] != in_link))
          s.value = v.number, s.in[q] = in_link;
    need = needed();
    list<block_step> left;
    for (block_step const& s : steps)
      if (s.what != block_step::kind::fill || need[static_cast<std::size_t>(s.out)]) left.push_back(s);
    steps = left;
  }
  /// Returns the last step that runs together with this one: for a chain, which accesses its values until it ends, its
  /// last link.
  constexpr int end_of(int k) const { return steps[k].what == block_step::kind::chain ? k + steps[k].count : k; }
  /// Assigns scratch memory to each value while it is needed: few blocks, which are reused.
  constexpr void allocate() {
    int const to_the_end = static_cast<int>(steps.size());
    block_value* const all = values.data();
    for (block_sink const& s : sinks) all[s.from].last = to_the_end;
    int constants = 0;
    for (int k = 0; k < to_the_end; k = end_of(k) + 1)
      for (int j = k; j <= end_of(k); ++j) {
        block_step const& s = steps[j];
        if (s.out >= 0 && all[s.out].access >= 0) all[s.out].last = to_the_end; // written in place
        constants += s.what == block_step::kind::fill;
        for (int q = 0; q < s.count && s.what != block_step::kind::chain; ++q)
          if (s.in[q] >= 0 && all[s.in[q]].last < end_of(k)) all[s.in[q]].last = end_of(k);
      }
    for (block_value& v : values)
      if (v.access >= 0 && v.last >= 0) {
        v.place = static_cast<int>(places.size());
        places.push_back({v.access, 0}), memory_bytes += itemsize(v.type);
      }
    made.memory_count = static_cast<int>(places.size());
    list<int> unused[9]{};
    for (int k = 0; k < to_the_end; k = end_of(k) + 1)
      if (steps[k].what == block_step::kind::chain) place_chain(k, unused);
      else {
        block_step s = steps[k];
        if (s.what == block_step::kind::fill && constants <= few_constants) s.once = all[s.out].lasts = true;
        for (int q = 0; q < s.count; ++q) s.in[q] = all[s.in[q]].place;
        free_operands(steps[k], k, unused);
        s.out = place_for(all[s.out], unused);
        kept.push_back(s);
      }
    for (block_sink& s : sinks) s.from = all[s.from].place;
    made.scratch = bytes_for(made.block);
  }
  /// Assigns places in a chain: values that only the chain itself needs stay in registers, or near.
  constexpr void place_chain(int first, list<int>* unused) {
    int const end = end_of(first);
    int near_until[most_near]{}, kept_until[most_kept]{}, kept_value[most_kept]{-1, -1};
    kept.push_back(steps[first]);
    for (int k = first + 1; k <= end; ++k)
      for (int q = 0; q < steps[k].count; ++q)
        if (steps[k].in[q] >= 0) values[steps[k].in[q]].last_link = k;
    for (int k = first + 1; k <= end; ++k) {
      block_step s = steps[k];
      for (int q = 0; q < s.count; ++q) {
        if (s.in[q] < 0) continue;
        s.in[q] = values[steps[k].in[q]].place;
        for (int r = 0; r < most_kept; ++r)
          if (kept_value[r] == steps[k].in[q] && kept_until[r] >= k) s.in[q] = ~(most_near + r);
      }
      int const held = s.op == chain_op::load ? steps[k].in[0] : s.out;
      int const until = held < 0 || values[held].last_link < k ? k : values[held].last_link;
      bool in_registers = until == k;
      for (int r = 0; r < most_kept && !in_registers; ++r)
        if (kept_until[r] <= k) {
          kept_until[r] = until, kept_value[r] = held, s.keep = static_cast<char>(1 + r);
          in_registers = true;
        }
      block_value& v = values[s.out < 0 ? 0 : s.out];
      if (s.out < 0 || v.last < 0) {
        s.out = no_place;
      } else if (v.last == end && v.access < 0) {
        int place = 0;
        while (place < most_near && near_until[place] > k) ++place;
        if (in_registers) v.last = static_cast<int>(steps.size()), s.out = no_place;
        else if (place < most_near)
          near_until[place] = until, v.last = static_cast<int>(steps.size()), s.out = v.place = ~place;
        else s.out = place_for(v, unused);
      } else {
        s.out = place_for(v, unused);
      }
      kept.push_back(s);
    }
    for (int k = first + 1; k <= end; ++k) free_operands(steps[k], end, unused);
  }
  /// Frees the memory of operands whose last use is this step.
  constexpr void free_operands(block_step const& s, int step, list<int>* unused) {
    for (int q = 0; q < s.count; ++q) {
      if (s.in[q] < 0) continue;
      block_value& v = values[s.in[q]];
      if (v.access < 0 && v.last == step && !v.lasts)
        unused[itemsize(v.type)].push_back(v.place), v.last = static_cast<int>(steps.size()); // free it once
    }
  }
  constexpr int place_for(block_value& v, list<int>* unused) {
    if (v.access >= 0) return v.place;
    list<int>& free = unused[itemsize(v.type)];
    if (free.empty() || v.lasts) v.place = scratch_place(v.type);
    else v.place = free.back(), free.pop_back();
    return v.place;
  }
  template <class T>
  static constexpr int append(list<T>& to, list<T> const& from) {
    int const first = static_cast<int>(to.size());
    for (T const& x : from) to.push_back(x);
    return first;
  }
  constexpr void leave_tables() {
    made.access_first = append(r.accesses, accesses);
    made.place_first = append(r.places, places), made.place_count = static_cast<int>(places.size());
    made.step_first = append(r.steps, kept), made.step_count = static_cast<int>(kept.size());
    made.sink_first = append(r.sinks, sinks), made.sink_count = static_cast<int>(sinks.size());
    r.bodies.push_back(made);
  }
};

} // namespace varve::fusion
