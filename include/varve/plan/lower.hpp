// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/records.hpp>
#include <varve/plan/loop_order.hpp>

/// @file
/// Lowering: turns the instances of an unfolding into the steps of one loop nest.
namespace varve::fusion {

/// The writer of a loop nest into a program: its steps, in the order of the nodes, and its sinks.
class nest_writer : nest_loops {
public:
  constexpr explicit nest_writer(unfolding const& u_, int rank_, list<root> const& roots_, int const* buffer_of,
                                 program& p_)
      : nest_loops(u_, rank_, roots_, buffer_of), p(p_), inner(b.rank - 1), width(width_of(b.type)),
        at_once(b.type == lane::f32 ? fields_at_once<float> : fields_at_once<double>),
        access_base(static_cast<int>(p_.accesses.size())), step_first(static_cast<int>(p_.steps.size())),
        numbers_by_node(u_.all.size(), 0), targets(u_.all.size(), 0), ports(u_.all.size(), 0),
        step_numbers(u_.all.size(), -1), marks(u_.all.size(), 0), by_node(numbers_by_node.data()),
        resolved(targets.data()), slot(ports.data()), step_of(step_numbers.data()), needed_alone(marks.data()) {}

  constexpr void write() {
    resolve_aliases();
    list<char> const subtractions = detail::subtracted_products(u, roots, resolved, b.vector >= 0);
    subtracted = subtractions.data();
    products_needed_alone();
    steps();
    products_of_sums();
    fixed_steps();
    sinks();
    for (access const& a : accesses) p.accesses.push_back(a);
    stage st = blank_stage;
    st.number = static_cast<int>(p.bodies.size());
    p.bodies.push_back(b);
    p.stages.push_back(st);
  }

private:
  program& p;
  int inner, width; // the innermost loop; elements of a register
  int at_once;      // fields of a record that are loaded together
  int access_base, step_first;
  // Lists with one element per instance; below are pointers to their data.
  list<int> numbers_by_node, targets, ports, step_numbers;
  list<char> marks;
  int *by_node, *resolved;          // instances in the order of the nodes; the instance for which an alias stands
  int *slot, *step_of;              // step_of: -1 if it has no step in the innermost loop
  char* needed_alone;               // used by more than additions, so that the product itself is needed
  char const* subtracted = nullptr; // `acc -= a * b`
  // steps that do not change in the innermost loop; the others are written to the program directly
  list<step> fixed{};

  constexpr int varying() const { return static_cast<int>(p.steps.size()) - step_first; }
  constexpr void resolve_aliases() {
    int* next = by_node;
    for (int n = u.above(-1); n <= u.highest; n = u.above(n))
      for (int i = head[n]; i >= 0; i = all[i].next) *next++ = i;
    for (int const* k = by_node; k != next; ++k) {
      instance const& in = all[*k];
      resolved[*k] = in.as == instance::form::alias ? resolved[args[in.args]] : *k;
    }
  }

  // ---- products and the sums that use them
  constexpr bool is_product(int i) const {
    return all[i].as == instance::form::value && what_of[all[i].node] == operator_class::mul &&
           !is_narrow(nodes[all[i].node].out.type);
  }
  constexpr bool sums_products(instance const& in) const { // the sum is then a dot product
    bool all_are = b.vector >= 0 && what_of[in.node] == operator_class::sum && in.count > 1;
    for (int k = 0; k < in.count && all_are; ++k) all_are = is_product(resolved[args[in.args + k]]);
    return all_are;
  }
  constexpr int factor(int product, int k) const { return slot[resolved[args[all[product].args + k]]]; }
  /// Returns what a root adds up, without the sign.
  constexpr int summand(root const& r) const {
    int const a = resolved[r.a];
    return subtracted[a] ? resolved[args[all[a].args]] : a;
  }
  /// True if a root sums products, each of which is multiplied when it is added.
  constexpr bool multiplies(root const& r) const {
    return r.kind == sink_kind::sum && !r.product && b.vector >= 0 && is_product(summand(r)) &&
           !needed_alone[summand(r)];
  }
  /// Removes the step of a product whose users perform the multiplication.
  constexpr void vanish(int product) {
    if (step_of[product] >= 0 && !needed_alone[product]) p.steps[step_first + step_of[product]].kind = step_kind::none;
  }
  constexpr void products_needed_alone() {
    for (int i = 0; i < count; ++i) {
      instance const& in = all[i];
      if (in.as != instance::form::value || subtracted[i]) continue;
      operator_class const what = what_of[in.node];
      if (sums_products(in)) continue;
      for (int k = 0; k < in.count; ++k) {
        int const a = resolved[args[in.args + k]];
        int const other =
            (what == operator_class::add || what == operator_class::sub) ? resolved[args[in.args + 1 - k]] : a;
        bool const sum_of_products = other != a && (k == 1 || what_of[all[other].node] != operator_class::mul);
        if (!(sum_of_products && (what == operator_class::add || k == 1))) needed_alone[a] = 1;
      }
    }
    for (root const& r : roots) {
      if (r.kind != sink_kind::sum || r.product || b.vector < 0) needed_alone[resolved[r.a]] = 1;
      if (r.product) needed_alone[resolved[r.b]] = 1;
    }
  }
  constexpr void products_of_sums() {
    for (root const& r : roots) {
      if (!multiplies(r)) continue;
      vanish(summand(r));
      if (int const n = step_of[resolved[r.a]]; subtracted[resolved[r.a]] && n >= 0)
        p.steps[step_first + n].kind = step_kind::none;
    }
  }

  // ---- loads of records
  /// Loads neighbours with a stride (the fields of a record) together: 16 bytes of a record at a time, transposed in
  /// registers.
  constexpr void records(int first) {
    list<int> numbers;
    access const& like = address[access_of[first]];
    for (int i = first; i >= 0; i = all[i].next) {
      access const& a = address[access_of[i]];
      bool same = a.buffer == like.buffer;
      for (int l = 0; l < b.rank; ++l) same = same && a.stride[l] == like.stride[l];
      if (same) numbers.push_back(i);
    }
    int* const fields = numbers.data();
    int const n = static_cast<int>(numbers.size());
    auto offset = [&](int k) { return address[access_of[fields[k]]].offset; };
    for (int k = 1; k < n; ++k) // by address; they come nearly sorted
      for (int q = k; q > 0 && offset(q) < offset(q - 1); --q) std::swap(fields[q], fields[q - 1]);
    if (n < at_once || offset(n - 1) - offset(0) != n - 1) return;
    for (int k = 0; k < n; k += at_once) {
      int const start = k + at_once <= n ? k : n - at_once; // the last ones overlap
      for (int q = 0; q < at_once; ++q) {
        int const field = fields[start + q];
        step s = blank_step;
        s.kind = q ? step_kind::none : step_kind::records;
        s.type = nodes[all[first].node].out.type, s.node = all[first].node;
        s.access = access_base + access_of[field];
        s.slot = varying();
        if (start + q >= k) slot[field] = step_of[field] = s.slot;
        p.steps.push_back(s);
      }
    }
  }
  constexpr bool may_be_field(int i) const {
    instance const& in = all[i];
    if (in.as != instance::form::load || b.vector < 0 || b.vector != inner || width <= 1 || b.extent[inner] < width)
      return false;
    dtype const t = nodes[in.node].out.type;
    return address[access_of[i]].stride[inner] > 1 && (t == dtype::float32) == (b.type == lane::f32) &&
           is_floating(t) && i == head[in.node];
  }

  // ---- steps
  /// Writes the steps in the order of the nodes. Those that do not change in the innermost loop are kept separately.
  constexpr void steps() {
    // otherwise its capacity doubles
    if (count > step_first) p.steps.reserve(static_cast<std::size_t>(step_first + count));
    for (int k = 0; k < count; ++k) {
      int const i = by_node[k];
      if (all[i].as == instance::form::alias || step_of[i] >= 0) continue;
      if (may_be_field(i)) {
        records(i);
        if (step_of[i] >= 0) continue;
      }
      one_step(i);
    }
  }
  constexpr void one_step(int i) {
    instance const& in = all[i];
    operator_class const what = what_of[in.node];
    step s = blank_step;
    s.type = nodes[in.node].out.type, s.node = in.node, s.wide = b.type == lane::wide;
    s.args = static_cast<int>(p.ports.size());
    set_kind(s, in, what);
    bool invariant = true;
    if (int const a = access_of[i]; a >= 0) {
      s.access = access_base + a;
      invariant = inner < 0 || address[a].stride[inner] == 0;
    }
    if (in.as == instance::form::value && !operands(s, in)) invariant = false;
    if ((what == operator_class::add || what == operator_class::sub) && s.kind == step_kind::op && !invariant &&
        b.vector >= 0)
      multiply_and_add(s, in, what);
    arithmetic(s, what);
    if (b.rank == 0) invariant = false;
    s.slot = invariant ? static_cast<int>(fixed.size()) : varying();
    slot[i] = invariant ? ~s.slot : s.slot;
    step_of[i] = invariant ? -1 : s.slot;
    (invariant ? fixed : p.steps).push_back(s);
  }
  constexpr void set_kind(step& s, instance const& in, operator_class what) const {
    node const& nd = nodes[in.node];
    if (in.as == instance::form::zero) s.kind = step_kind::constant;
    else if (in.as == instance::form::load) s.kind = step_kind::load;
    else if (what == operator_class::constant) s.kind = step_kind::constant, s.value = nd.value;
    else if (what == operator_class::arange || what == operator_class::one_hot || what == operator_class::count)
      s.kind = step_kind::index;
    else if (what == operator_class::convert) s.kind = step_kind::convert, s.from = nodes[edges[nd.first]].out.type;
    else if (what == operator_class::sum) s.kind = step_kind::sum;
    else if (what == operator_class::amax) s.kind = step_kind::greatest;
    else if (what == operator_class::amin) s.kind = step_kind::least;
    else if (what == operator_class::mm) s.kind = step_kind::dot;
    else
      s.kind = step_kind::op, s.op = nd.op, s.from = nd.count ? nodes[edges[nd.first + nd.count - 1]].out.type : s.type;
  }
  /// Sets the operands of a value. Returns false if one of them changes in the innermost loop.
  constexpr bool operands(step& s, instance const& in) {
    bool invariant = true;
    auto take = [&](int a) {
      p.ports.push_back(a);
      if (s.count < 3) s.in[s.count] = a;
      invariant = invariant && a < 0;
      ++s.count;
    };
    if (!sums_products(in)) {
      for (int k = 0; k < in.count; ++k) take(slot[resolved[args[in.args + k]]]);
      return invariant;
    }
    s.kind = step_kind::dot;
    for (int k = 0; k < in.count; ++k) {
      int const m = resolved[args[in.args + k]];
      take(factor(m, 0)), take(factor(m, 1));
      vanish(m);
    }
    return invariant;
  }
  /// Uses one instruction for a * b + c if the product is used in sums only.
  constexpr void multiply_and_add(step& s, instance const& in, operator_class what) {
    for (int k = 1; k >= (what == operator_class::sub ? 1 : 0); --k) {
      int const m = resolved[args[in.args + k]], other = slot[resolved[args[in.args + 1 - k]]];
      if (step_of[m] < 0 || needed_alone[m] || !is_product(m)) continue;
      s.kind = what == operator_class::sub ? step_kind::fnma : step_kind::fma;
      s.in[0] = factor(m, 0), s.in[1] = factor(m, 1), s.in[2] = other;
      s.count = 3;
      vanish(m);
      break;
    }
  }
  /// Decides whether a result must wrap around in its type, and selects arithmetic that needs no kernel.
  constexpr void arithmetic(step& s, operator_class what) const {
    bool const narrow =
        is_narrow(s.type) && !(b.type == lane::i32 && s.type == dtype::int32); // in the registers of this body
    bool const multiplies_integers = what == operator_class::mul && s.kind == step_kind::op && narrow;
    s.wraps =
        multiplies_integers ||
        (narrow && (s.kind == step_kind::dot || (s.kind == step_kind::op && !s.wide && what <= operator_class::abs)));
    if (multiplies_integers) s.kind = step_kind::mul;
    else if (s.kind == step_kind::op && !s.wide && what >= operator_class::add && what <= operator_class::div)
      s.kind = what == operator_class::add   ? step_kind::add
               : what == operator_class::sub ? step_kind::sub
               : what == operator_class::mul ? step_kind::mul
                                             : step_kind::div;
  }
  /// Records the steps of the innermost loop, which are written already, and appends those before the loop.
  constexpr void fixed_steps() {
    b.step_first = step_first, b.step_count = varying();
    b.fixed_first = static_cast<int>(p.steps.size()), b.fixed_count = static_cast<int>(fixed.size());
    for (step const& s : fixed) p.steps.push_back(s);
    b.paired = b.paired && b.step_count <= 128;
  }

  // ---- sinks
  constexpr void sinks() {
    b.sink_first = static_cast<int>(p.sinks.size()), b.sink_count = static_cast<int>(roots.size());
    int number = first_sink;
    for (root const& r : roots) {
      sink s = blank_sink;
      s.kind = r.kind, s.product = r.product, s.accumulate = r.accumulate;
      s.a = slot[resolved[r.a]];
      if (s.product) s.b = slot[resolved[r.b]];
      else if (multiplies(r))
        s.product = true, s.minus = subtracted[resolved[r.a]], s.a = factor(summand(r), 0), s.b = factor(summand(r), 1);
      s.access = access_base + number;
      if (s.kind != sink_kind::store) accumulator(s, address[number], r.at.buffer);
      p.sinks.push_back(s);
      ++number;
    }
  }
  /// Decides where the accumulator of a reduction is stored.
  constexpr void accumulator(sink& s, access const& a, int buffer) {
    int level = b.rank;
    while (level > 0 && a.stride[level - 1] == 0) --level;
    s.level = level < b.rank || b.rank == 0 ? level : -1;
    bool again = s.level < 0; // an outer loop returns to the same element
    for (int l = 0; l < level; ++l) again = again || a.stride[l] == 0;
    if (again && !s.accumulate) fill(p, buffer, s.kind), s.accumulate = true;
  }
};

/// Appends the loop nest that computes `roots` over `u.range` to `p`. `buffer_of` is the buffer of every stored node.
constexpr void lower(unfolding const& u, int rank, list<root> const& roots, list<int> const& buffer_of, program& p) {
  nest_writer nest(u, rank, roots, buffer_of.data(), p);
  nest.write();
}

} // namespace varve::fusion
