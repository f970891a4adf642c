// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/records.hpp>
#include <varve/plan/loop_form.hpp>

/// @file
/// Lowering: from the instances of an unfolding to the steps of one loop nest, its loop order and its SIMD dimension.
namespace varve::loop {

/// Appends the loop nest that computes `roots` over `u.range` to `p`. `buffer_of` gives the buffer of every stored
/// node.
constexpr void lower(unfolding const& u, int rank, list<root> const& roots, list<int> const& buffer_of, program& p) {
  graph const& g = u.f.g;
  instance const* const all = u.all.data();
  axis_index const* const maps = u.maps.data();
  int const *const args = u.args.data(), *const edges = g.edges.data(), *const head = u.head.data(),
                   *const buffer_of_ = buffer_of.data();
  node const* const nodes = g.nodes.data();
  operator_class const* const what_of = u.f.what;
  int const count = static_cast<int>(u.all.size());
  body b = blank_body;
  b.type = detail::lanes_for(u, roots);

  // Affine addresses over the iteration space: loads first, then sinks.
  list<access> acc;
  list<int> access_numbers(static_cast<std::size_t>(count), -1);
  int* const access_of = access_numbers.data();
  int steps = 0;
  for (int i = 0; i < count; ++i) {
    instance const& in = all[i];
    if (in.as == instance::form::alias || in.as == instance::form::zero) continue;
    node const& nd = nodes[in.node];
    operator_class const what = what_of[in.node];
    bool const index =
        in.as == instance::form::value && (what == operator_class::arange || what == operator_class::one_hot ||
                                           what == operator_class::count); // else it lies in memory, by another nest
    if (in.as == instance::form::value && !index) {
      steps += 1;
      continue;
    }
    access a = blank_access;
    dims const stride = contiguous_strides(nd.out.sizes);
    for (int k = 0; k < nd.out.sizes.n; ++k) {
      if (index && k + 1 < nd.out.sizes.n) continue; // the last index is the value
      axis_index const& x = maps[in.map + k];
      index_t const s = index ? 1 : stride[k];
      a.offset += x.offset * s;
      if (x.dim >= 0) a.stride[x.dim] += x.coef * s;
    }
    if (what == operator_class::count) a.offset = nd.at[0][0];
    if (!index) {
      int from = in.node;
      if (what_of[from] == operator_class::reshape && buffer_of_[from] < 0) from = edges[nd.first];
      a.buffer = buffer_of_[from];
    }
    access_of[i] = static_cast<int>(acc.size());
    acc.push_back(a);
  }
  int const first_sink = static_cast<int>(acc.size());
  for (root const& r : roots) acc.push_back(r.at);
  for (int d = 0; d < rank; ++d)
    if (u.range.lo[d] != 0)
      for (access& a : acc) a.offset += a.stride[d] * u.range.lo[d];

  // Loops: extent 1 dropped, adjacent ones that every access walks as one merged.
  for (int d = 0; d < rank; ++d) {
    index_t const n = u.range.hi[d] - u.range.lo[d];
    if (n == 1) continue;
    int const l = b.rank;
    bool merge = l > 0;
    for (access const& a : acc) merge = merge && a.stride[l - 1] == n * a.stride[d];
    if (merge) {
      for (access& a : acc) a.stride[l - 1] = a.stride[d];
      b.extent[l - 1] *= n;
    } else {
      if (l != d)
        for (access& a : acc) a.stride[l] = a.stride[d];
      b.extent[l] = n;
      ++b.rank;
    }
  }
  for (int d = b.rank; d < rank; ++d)
    for (access& a : acc) a.stride[d] = 0;

  // Loop order: what all reductions keep goes outside, so that they accumulate in registers; unless that would walk a
  // large input in columns.
  index_t volume = 1;
  for (int d = 0; d < b.rank; ++d) volume *= b.extent[d];
  int order[max_rank]{}, placed = 0;
  bool reduces = false, moves = false;
  for (root const& r : roots) reduces |= r.kind != sink_kind::store;
  auto kept = [&](int d) {
    for (std::size_t r = 0; r < roots.size(); ++r)
      if (roots[r].kind != sink_kind::store && acc[static_cast<std::size_t>(first_sink) + r].stride[d] == 0)
        return false;
    return true;
  };
  bool const reorder = reduces && volume <= 16384;
  for (int pass = reorder ? 0 : 1; pass < 2; ++pass)
    for (int d = 0; d < b.rank; ++d)
      if (reorder ? kept(d) == (pass == 0) : true) moves = moves || d != placed, order[placed++] = d;
  if (moves) {
    list<access> const old = acc;
    body const before = b;
    for (int l = 0; l < b.rank; ++l) {
      b.extent[l] = before.extent[order[l]];
      for (std::size_t k = 0; k < acc.size(); ++k) acc[k].stride[l] = old[k].stride[order[l]];
    }
  }
  if (b.type != lane::wide && b.rank > 0) {
    double best = 1e300;
    for (int d = b.rank - 1; d >= 0; --d) {
      double const c = detail::vector_cost(b, acc, d, steps, width_of(b.type));
      if (c < best) best = c, b.vector = d;
    }
    if (width_of(b.type) == 1) b.vector = -1;
    int sums = 0;
    for (root const& r : roots) sums += r.kind != sink_kind::store;
    b.paired = sums > 4 || steps > 64; // long bodies: a processor sees little beyond one of them; of shorter ones, two
                                       // cost more registers than they gain
    b.unroll = sums > 4 || steps > 24 ? 1 : sums > 2 || steps > 6 ? 2 : 4; // accumulators stay in registers
  }
  if (b.type == lane::i32 && b.vector < 0) b.type = lane::i64;
  int const inner = b.rank - 1, width = width_of(b.type);

  // Steps, in the order of the nodes; those that do not change in the innermost loop apart.
  list<int> by_node(static_cast<std::size_t>(count), 0);
  {
    std::size_t k = 0;
    for (int n = u.above(-1); n <= u.highest; n = u.above(n))
      for (int i = head[n]; i >= 0; i = all[i].next) by_node[k++] = i;
  }
  list<int> slots(static_cast<std::size_t>(count), 0), targets(static_cast<std::size_t>(count), 0),
      step_numbers(static_cast<std::size_t>(count), -1);
  int *const slot = slots.data(), *const resolved = targets.data(), *const step_of = step_numbers.data();
  list<char> exact(static_cast<std::size_t>(count), 0);
  char* const rounded = exact.data(); // used by more than additions: the product itself is needed
  for (int i : by_node) {
    instance const& in = all[i];
    resolved[i] = in.as == instance::form::alias ? resolved[args[in.args]] : i;
  }
  auto is_product = [&](int i) {
    return all[i].as == instance::form::value && what_of[all[i].node] == operator_class::mul &&
           !is_narrow(nodes[all[i].node].out.type);
  };
  auto sums_products = [&](instance const& in) { // then it is a dot product
    bool all_are = b.vector >= 0 && what_of[in.node] == operator_class::sum && in.count > 1;
    for (int k = 0; k < in.count && all_are; ++k) all_are = is_product(resolved[args[in.args + k]]);
    return all_are;
  };
  list<char> const negations = detail::subtracted_products(u, roots, resolved, b.vector >= 0); // `acc -= a * b`
  char const* const negated = negations.data();
  auto summand = [&](root const& r) {
    return negated[resolved[r.a]] ? resolved[args[all[resolved[r.a]].args]] : resolved[r.a];
  };
  for (int i = 0; i < count; ++i) {
    instance const& in = all[i];
    if (in.as != instance::form::value || negated[i]) continue;
    operator_class const what = what_of[in.node];
    if (sums_products(in)) continue;
    for (int k = 0; k < in.count; ++k) {
      int const a = resolved[args[in.args + k]];
      int const other =
          (what == operator_class::add || what == operator_class::sub) ? resolved[args[in.args + 1 - k]] : a;
      bool const sum_of_products = other != a && (k == 1 || what_of[all[other].node] != operator_class::mul);
      if (!(sum_of_products && (what == operator_class::add || k == 1))) rounded[a] = 1;
    }
  }
  for (root const& r : roots) {
    if (r.kind != sink_kind::sum || r.product || b.vector < 0) rounded[resolved[r.a]] = 1;
    if (r.product) rounded[resolved[r.b]] = 1;
  }
  list<step> fixed; // the varying ones are written where they stay
  int const step_first = static_cast<int>(p.steps.size());
  if (count > step_first) p.steps.reserve(static_cast<std::size_t>(step_first + count)); // else it doubles
  auto varying = [&] { return static_cast<int>(p.steps.size()) - step_first; };
  int const access_base = static_cast<int>(p.accesses.size());
  int const at_once = b.type == lane::f32 ? fields_at_once<float> : fields_at_once<double>;
  // Strided loads of neighbours (the fields of a record) come 16 bytes of a record at a time, which are transposed in
  // registers.
  auto records = [&](int first) {
    list<int> fields;
    access const& like = acc[access_of[first]];
    for (int i = first; i >= 0; i = all[i].next) {
      access const& a = acc[access_of[i]];
      bool same = a.buffer == like.buffer;
      for (int l = 0; l < b.rank; ++l) same = same && a.stride[l] == like.stride[l];
      if (same) fields.push_back(i);
    }
    for (std::size_t k = 1; k < fields.size(); ++k) // by address; they come nearly sorted
      for (std::size_t q = k; q > 0 && acc[access_of[fields[q]]].offset < acc[access_of[fields[q - 1]]].offset; --q)
        std::swap(fields[q], fields[q - 1]);
    int const n = static_cast<int>(fields.size());
    if (n < at_once || acc[access_of[fields.back()]].offset - acc[access_of[fields[0]]].offset != n - 1) return;
    for (int k = 0; k < n; k += at_once) {
      int const start = k + at_once <= n ? k : n - at_once; // the last ones overlap
      for (int q = 0; q < at_once; ++q) {
        step s = blank_step;
        s.kind = q ? step_kind::none : step_kind::records;
        s.type = nodes[all[first].node].out.type, s.node = all[first].node;
        s.access = access_base + access_of[fields[static_cast<std::size_t>(start + q)]];
        s.slot = varying();
        if (start + q >= k)
          slot[fields[static_cast<std::size_t>(start + q)]] = s.slot,
                                                       step_of[fields[static_cast<std::size_t>(start + q)]] = s.slot;
        p.steps.push_back(s);
      }
    }
  };
  auto factor = [&](int m, int k) { return slot[resolved[args[all[m].args + k]]]; };
  auto vanish = [&](int m) { // a product whose users multiply by themselves
    if (step_of[m] >= 0 && !rounded[m]) p.steps[step_first + step_of[m]].kind = step_kind::none;
  };
  for (int i : by_node) {
    instance const& in = all[i];
    if (in.as == instance::form::alias || step_of[i] >= 0) continue;
    if (in.as == instance::form::load && b.vector >= 0 && b.vector == inner && width > 1 && b.extent[inner] >= width) {
      dtype const t = nodes[in.node].out.type;
      if (acc[access_of[i]].stride[inner] > 1 && (t == dtype::float32) == (b.type == lane::f32) && is_floating(t) &&
          i == head[in.node])
        records(i);
      if (step_of[i] >= 0) continue;
    }
    node const& nd = nodes[in.node];
    operator_class const what = what_of[in.node];
    step s = blank_step;
    s.type = nd.out.type, s.node = in.node, s.wide = b.type == lane::wide;
    s.args = static_cast<int>(p.slots.size());
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
    bool invariant = true;
    if (int const a = access_of[i]; a >= 0) {
      s.access = access_base + a;
      invariant = inner < 0 || acc[a].stride[inner] == 0;
    }
    auto take = [&](int a) {
      p.slots.push_back(a);
      if (s.count < 3) s.in[s.count] = a;
      invariant = invariant && a < 0;
      ++s.count;
    };
    if (sums_products(in)) {
      s.kind = step_kind::dot;
      for (int k = 0; k < in.count; ++k) {
        int const m = resolved[args[in.args + k]];
        take(factor(m, 0)), take(factor(m, 1));
        vanish(m);
      }
    } else if (in.as == instance::form::value) {
      for (int k = 0; k < in.count; ++k) take(slot[resolved[args[in.args + k]]]);
    }
    // a * b + c in one instruction, when the product is used in sums only
    if ((what == operator_class::add || what == operator_class::sub) && s.kind == step_kind::op && !invariant &&
        b.vector >= 0) {
      for (int k = 1; k >= (what == operator_class::sub ? 1 : 0); --k) {
        int const m = resolved[args[in.args + k]], other = slot[resolved[args[in.args + 1 - k]]];
        if (step_of[m] < 0 || rounded[m] || !is_product(m)) continue;
        s.kind = what == operator_class::sub ? step_kind::fnma : step_kind::fma;
        s.in[0] = factor(m, 0), s.in[1] = factor(m, 1), s.in[2] = other;
        s.count = 3;
        vanish(m);
        break;
      }
    }
    bool const narrow =
        is_narrow(s.type) && !(b.type == lane::i32 && s.type == dtype::int32); // in the registers at hand
    bool const multiplies_integers =
        (what == operator_class::mul || what == operator_class::square) && s.kind == step_kind::op && narrow;
    s.wraps = multiplies_integers ||
              (narrow &&
               (s.kind == step_kind::dot || (s.kind == step_kind::op && !s.wide && what <= operator_class::square)));
    if (multiplies_integers) s.kind = step_kind::mul;
    else if (s.kind == step_kind::op && !s.wide && what >= operator_class::add && what <= operator_class::div)
      s.kind = what == operator_class::add   ? step_kind::add
               : what == operator_class::sub ? step_kind::sub
               : what == operator_class::mul ? step_kind::mul
                                             : step_kind::div;
    if (b.rank == 0) invariant = false;
    s.slot = invariant ? static_cast<int>(fixed.size()) : varying();
    slot[i] = invariant ? ~s.slot : s.slot;
    step_of[i] = invariant ? -1 : s.slot;
    (invariant ? fixed : p.steps).push_back(s);
  }
  auto multiplies = [&](root const& r) {
    return r.kind == sink_kind::sum && !r.product && b.vector >= 0 && is_product(summand(r)) && !rounded[summand(r)];
  };
  for (root const& r : roots) {
    if (!multiplies(r)) continue;
    vanish(summand(r));
    if (int const n = step_of[resolved[r.a]]; negated[resolved[r.a]] && n >= 0)
      p.steps[step_first + n].kind = step_kind::none;
  }
  b.step_first = step_first, b.step_count = varying();
  b.fixed_first = static_cast<int>(p.steps.size()), b.fixed_count = static_cast<int>(fixed.size());
  for (step const& s : fixed) p.steps.push_back(s);
  b.paired = b.paired && b.step_count <= 128;

  b.sink_first = static_cast<int>(p.sinks.size()), b.sink_count = static_cast<int>(roots.size());
  for (std::size_t r = 0; r < roots.size(); ++r) {
    sink s = blank_sink;
    s.kind = roots[r].kind, s.product = roots[r].product, s.accumulate = roots[r].accumulate;
    s.a = slot[resolved[roots[r].a]];
    if (s.product) s.b = slot[resolved[roots[r].b]];
    else if (multiplies(roots[r]))
      s.product = true, s.minus = negated[resolved[roots[r].a]], s.a = factor(summand(roots[r]), 0),
      s.b = factor(summand(roots[r]), 1);
    s.access = access_base + first_sink + static_cast<int>(r);
    if (s.kind != sink_kind::store) {
      int level = b.rank;
      while (level > 0 && acc[first_sink + static_cast<int>(r)].stride[level - 1] == 0) --level;
      s.level = level < b.rank || b.rank == 0 ? level : -1;
      bool again = s.level < 0; // an outer loop comes back to the same element
      for (int l = 0; l < level; ++l) again = again || acc[first_sink + static_cast<int>(r)].stride[l] == 0;
      if (again && !s.accumulate) fill(p, roots[r].at.buffer, s.kind), s.accumulate = true;
    }
    p.sinks.push_back(s);
  }
  for (access const& a : acc) p.accesses.push_back(a);
  stage st = blank_stage;
  st.number = static_cast<int>(p.bodies.size());
  p.bodies.push_back(b);
  p.stages.push_back(st);
}

} // namespace varve::loop
