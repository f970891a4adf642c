// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/role.hpp>

#include <limits>

/// @file
/// The results that the members of a loop store, and the costs by which a loop nest chooses its form.
namespace varve::fusion {

/// A result of a loop over the iteration space; `at` is its affine address in the buffer.
struct root {
  sink_kind kind = sink_kind::store;
  bool product = false, accumulate = false;
  int a = -1, b = -1; // instances
  access at = blank_access;
};

namespace detail {
constexpr bool is_integer(dtype t) { return category(t) == 1; }

/// Returns the lowest register type that represents every value exactly. Floats and booleans need floats. Integers
/// alone need integers of 32 or 64 bits, if all operators can compute in them. Otherwise doubles are used; if floats
/// are among the values, they are rounded (`wide`). Operands of `one_hot` beside floats are only compared with small
/// numbers, which rounding does not affect, and its results are 0 and 1; they fit any type.
constexpr lane lanes_for(unfolding const& u, list<root> const& roots) {
  bool f32 = false, f64 = false, integers = false;
  bool exact = true, narrow = true; // every operator computes in integer registers; all of these fit int32
  instance const* const all = u.all.data();
  node const* const nodes = u.f.g.nodes.data();
  operator_class const* const what_of = u.f.what;
  int const* const args = u.args.data();
  auto resolved = [&](int i) {
    while (all[i].as == instance::form::alias) i = args[all[i].args];
    return i;
  };
  auto type = [&](int i) { return nodes[all[i].node].out.type; };
  auto is_one_hot = [&](instance const& i) {
    return what_of[i.node] == operator_class::one_hot && i.as == instance::form::value &&
           nodes[i.node].out.sizes.back() < (1 << 24);
  };
  bool any_integer = false; // of any kind: otherwise no check is needed
  auto needs = [&](int k) {
    int const i = resolved(k);
    if (is_integer(type(i)) && !is_one_hot(all[i])) integers = true;
  };
  int const count = static_cast<int>(u.all.size());
  for (int k = 0; k < count; ++k)
    if (dtype const t = nodes[all[k].node].out.type; t != dtype::float32 && t != dtype::float64 && is_integer(t))
      any_integer = true;
  for (int k = 0; k < count; ++k) {
    instance const& i = all[k];
    if (i.as == instance::form::alias || i.as == instance::form::zero) continue;
    node const& nd = nodes[i.node];
    dtype const t = nd.out.type;
    f32 |= t == dtype::float32, f64 |= t == dtype::float64;
    operator_class const what = what_of[i.node];
    exact = exact && (i.as != instance::form::value || nd.op->has_integer_lanes || what == operator_class::convert ||
                      what == operator_class::constant || what == operator_class::arange ||
                      what == operator_class::count || what == operator_class::one_hot ||
                      (what >= operator_class::sum && what <= operator_class::amin) || what == operator_class::mm);
    narrow = narrow && t != dtype::float32 && is_narrow(t) && what != operator_class::count &&
             what != operator_class::one_hot && what != operator_class::sum && what != operator_class::mm;
    if (!any_integer || i.as != instance::form::value || is_one_hot(i)) continue;
    integers |= is_integer(t);
    for (int e = 0; e < i.count && !integers; ++e) needs(args[i.args + e]);
  }
  for (root const& r : roots) {
    if (any_integer) needs(r.a);
    if (any_integer && r.product) needs(r.b);
    narrow = narrow && r.kind != sink_kind::sum;
    integers |= r.kind == sink_kind::sum && !f32 && !is_floating(type(resolved(r.a))); // flags are counted
  }
  if (integers && exact && !f32 && !f64) return narrow ? lane::i32 : lane::i64;
  return f32 && (f64 || integers) ? lane::wide : f64 || integers ? lane::f64 : lane::f32;
}

/// Marks, if loops are vectorized, the instances that are negated products and are used by sums only.
constexpr list<char> subtracted_products(unfolding const& u, list<root> const& roots, int const* resolved,
                                         bool vectorized) {
  list<char> r(u.all.size(), 0);
  auto is = [&](int i, operator_class k) {
    return u.all[i].as == instance::form::value && u.f.what[u.all[i].node] == k;
  };
  bool any = false;
  for (root const& x : roots)
    if (int const i = resolved[x.a]; vectorized && x.kind == sink_kind::sum && !x.product &&
                                     is(i, operator_class::neg) &&
                                     is(resolved[u.args[u.all[i].args]], operator_class::mul))
      r[i] = 1, any = true;
  if (!any) return r;
  for (instance const& i : u.all)
    for (int k = 0; i.as == instance::form::value && k < i.count; ++k) r[resolved[u.args[i.args + k]]] = 0;
  for (root const& x : roots) {
    if (x.kind != sink_kind::sum || x.product) r[resolved[x.a]] = 0;
    if (x.product) r[resolved[x.b]] = 0;
  }
  return r;
}

/// Returns the cost of vectorizing loop `d`, per element: steps and memory accesses, and the waste of the last partial
/// vector.
constexpr double vector_cost(body const& b, list<access> const& acc, int d, int steps, int width) {
  double cost = steps;
  for (access const& a : acc)
    if (a.buffer >= 0) cost += a.stride[d] == 0 ? 0.3 : a.stride[d] == 1 ? 1.0 : width * 1.2;
  index_t const n = b.extent[d], vectors = (n + width - 1) / width;
  return n ? cost * static_cast<double>(vectors) / static_cast<double>(n) : cost;
}
} // namespace detail

/// Appends a stage that fills a buffer with the neutral element of a reduction.
constexpr void fill(program& p, int buffer, sink_kind kind) {
  stage s = blank_stage;
  s.kind = stage_kind::fill;
  s.out = buffer;
  double const inf = std::numeric_limits<double>::infinity();
  s.value = kind == sink_kind::sum ? 0.0 : kind == sink_kind::greatest ? -inf : inf;
  p.stages.push_back(s);
}

} // namespace varve::fusion
