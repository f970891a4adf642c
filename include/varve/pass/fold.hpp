// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/apart_from_writes.hpp>
#include <varve/pass/constant_elements.hpp>

namespace varve {
namespace detail {
/// Simplifies arithmetic without changing any IEEE result; -1 if nothing applies.
constexpr int constant_elements::arithmetic(node const& nd, operator_class k, int const* in) {
  auto keeps = [&](int a) { return at(a).out == nd.out; };
  int const a = in[0], b = nd.count > 1 ? in[1] : in[0];
  bool const number = is_floating(nd.out.type);
  if (is_splat(a) && is_splat(b) && number) {
    double x = value[static_cast<std::size_t>(a)], y = value[static_cast<std::size_t>(b)];
    auto moderate = [](double z) { return z > -1e15 && z < 1e15; }; // an overflow is not a constant expression
    if (!moderate(x) || !moderate(y) || (k == operator_class::div && y > -1e-15 && y < 1e-15)) return -1;
    x = operand(nd, a, x), y = operand(nd, b, y);
    if (k == operator_class::add) return splatted(nd.out, kernel::converted(nd.out.type, x + y));
    if (k == operator_class::sub) return splatted(nd.out, kernel::converted(nd.out.type, x - y));
    if (k == operator_class::mul) return splatted(nd.out, kernel::converted(nd.out.type, x * y));
    if (k == operator_class::div) return splatted(nd.out, kernel::converted(nd.out.type, x / y));
    if (k == operator_class::neg) return splatted(nd.out, -x);
  }
  if (k >= operator_class::abs && k <= operator_class::cheap && nd.count <= 3 && !compares_dtypes(nd, in)) {
    double x[4]{};
    bool all = true;
    for (int e = 0; e < nd.count; ++e) {
      x[e] = is_splat(in[e]) ? value[static_cast<std::size_t>(in[e])] : 0;
      all = all && is_splat(in[e]) && x[e] > -1e15 && x[e] < 1e15;
      if (all) x[e] = operand(nd, in[e], x[e]);
    }
    if (double const y = all ? nd.op->lane_f64(x) : 0; all && (number || (y > -1e15 && y < 1e15)))
      return splatted(nd.out, kernel::converted(nd.out.type, y));
  }
  if (k == operator_class::mul && is_splat(b, 1) && keeps(a)) return a;
  if (k == operator_class::mul && is_splat(a, 1) && keeps(b)) return b;
  if (k == operator_class::mul && is_splat(b, -1) && keeps(a) && number && neg_) return negated(nd, a);
  if (k == operator_class::mul && is_splat(a, -1) && keeps(b) && number && neg_) return negated(nd, b);
  if (k == operator_class::div && is_splat(b, 1) && keeps(a)) return a;
  if (k == operator_class::sub && is_splat(b, 0.0) && keeps(a))
    return a; // x - 0 is x, x + -0 is x, x + 0 is not when x is -0
  if (k == operator_class::add && (is_splat(b, -0.0) || (!number && is_splat(b, 0.0))) && keeps(a)) return a;
  if (k == operator_class::add && (is_splat(a, -0.0) || (!number && is_splat(a, 0.0))) && keeps(b)) return b;
  // where with equal branches
  if (k == operator_class::cheap && nd.count == 3 && in[1] == in[2] && keeps(in[1])) return in[1];
  if (k == operator_class::neg && kind(a) == operator_class::neg) return input(a, 0);
  if (k == operator_class::add && kind(a) == operator_class::mul &&
      kind(b) == operator_class::mul) // n x + n x is 2n x for an integer n: exact, since multiples of the least number
                                      // do not round
    if (multiple const x = factored(a), y = factored(b);
        x.of == y.of && x.by == y.by && x.by != 1 && x.by > -1e4 && x.by < 1e4 && x.by == static_cast<int>(x.by))
      if (int const twice = splatted({nd.out.type, {}}, 2 * x.by); twice >= 0)
        return pair(at(a).op, operator_class::mul, nd, twice, x.of);
  // Signs move outwards, where additions absorb them. This is exact, including zeros. They do not pass a change of
  // dtype: -u of a uint8 u is not its negative in another dtype.
  auto const negative = [&](int n) { return kind(n) == operator_class::neg && at(n).out.type == nd.out.type; };
  if (k == operator_class::add && negative(a) && negative(b) && equal(input(a, 0), input(b, 0)))
    return negated(nd, pair(nd.op, k, nd, input(a, 0), input(a, 0)));
  if (k == operator_class::add && negative(b) && sub_) return pair(sub_, operator_class::sub, nd, a, input(b, 0));
  if (k == operator_class::add && negative(a) && sub_) return pair(sub_, operator_class::sub, nd, b, input(a, 0));
  if (k == operator_class::sub && negative(b) && add_) return pair(add_, operator_class::add, nd, a, input(b, 0));
  if (k == operator_class::mul && negative(a) && negative(b)) return pair(nd.op, k, nd, input(a, 0), input(b, 0));
  if ((k == operator_class::mul || k == operator_class::div) && negative(a) && neg_)
    return negated(nd, pair(nd.op, k, nd, input(a, 0), b));
  if ((k == operator_class::mul || k == operator_class::div) && negative(b) && neg_)
    return negated(nd, pair(nd.op, k, nd, a, input(b, 0)));
  return -1;
}

/// Simplifies slices of a whole axis and slices of repeated values. The slice moves before the repetition, where it may
/// be a slice of a constant. -1 if nothing applies.
constexpr int constant_elements::slice(node nd, int a) {
  dims const& r = nd.at[0];
  if (r[3] == 1 && at(a).out.sizes == nd.out.sizes) return a;
  if (kind(a) != operator_class::expand || at(a).at.count != 1) return -1;
  int from = input(a, 0);
  node const repeat = at(a);
  dims const& s = at(from).out.sizes;
  int const axis = static_cast<int>(r[0]) - (nd.out.sizes.n - s.n);
  if (axis >= 0 && s[axis] != 1) {
    node part = nd;
    part.at = attributes(dims{axis, r[1], r[2], r[3]});
    part.out.sizes = s, part.out.sizes[axis] = nd.out.sizes[static_cast<int>(r[0])];
    from = evaluates(part, operator_class::slice, &from) ? evaluated(part, operator_class::slice, &from)
                                                         : add(part, &from, operator_class::slice);
  }
  node e = repeat;
  e.out = nd.out, e.at = attributes(nd.out.sizes);
  return add(e, &from, operator_class::expand);
}

/// True if each size of `whole` is the product of sizes of `parts` that follow each other. Symbolic sizes are not
/// multiplied: a graph has entries for its own sizes only.
constexpr bool splits(dims const& parts, dims const& whole) {
  int p = 0;
  for (int k = 0; k < whole.n; ++k) {
    extent product = 1;
    for (; p < parts.n && !known_equal(product, whole[k]); ++p) {
      if (known_equal(parts[p], 1)) continue;
      if (!known_equal(product, 1) && !(product.is_number() && parts[p].is_number())) return false;
      product = known_equal(product, 1) ? parts[p] : product * parts[p];
    }
    if (!known_equal(product, whole[k])) return false;
  }
  for (; p < parts.n; ++p)
    if (!known_equal(parts[p], 1)) return false;
  return true;
}
/// True if a reshape of a reshape shares memory with the operand of both exactly if one reshape does. That is so where
/// the first only splits axes and thus never copies, or splits axes of the second and thus copies only if one does.
constexpr bool shares_as_one(dims const& from, dims const& between, dims const& to) {
  return splits(between, from) || splits(between, to);
}

/// Simplifies views of views, and views that change nothing; -1 if nothing applies.
constexpr int constant_elements::view(node nd, operator_class k, int const* in, bool shows) {
  int const a = in[0];
  if (k == operator_class::permute) {
    dims perm = nd.at[0];
    int from = a;
    if (kind(a) == operator_class::permute) {
      for (int d = 0; d < perm.n; ++d) perm[d] = at(a).at[0][static_cast<int>(nd.at[0][d])];
      from = input(a, 0);
    }
    bool same = true;
    for (int d = 0; d < perm.n; ++d) same = same && perm[d] == d;
    if (same) return from;
    int const old = g.edges[static_cast<std::size_t>(nd.first)];
    if (what[static_cast<std::size_t>(old)] == operator_class::mm && kind(a) == operator_class::mm &&
        uses[static_cast<std::size_t>(old)] == 1 && swaps(perm)) { // the product of the transposes, in opposite order
      int const factors[] = {input(from, 1), input(from, 0)};
      node product = at(from);
      product.out = nd.out;
      product.at = attributes(dims{!product.at[0][1], !product.at[0][0]});
      return add(product, factors, operator_class::mm);
    }
    if (from == a) return -1;
    nd.at = attributes(perm);
    return add(nd, &from, k);
  }
  if (k == operator_class::slice) return slice(nd, a);
  if (at(a).out.sizes == nd.out.sizes) return a; // expand and reshape
  if (kind(a) == k) {
    int const from = input(a, 0);
    if (shows && k == operator_class::reshape && !shares_as_one(at(from).out.sizes, at(a).out.sizes, nd.out.sizes))
      return -1;
    if (at(from).out.sizes == nd.out.sizes) return from;
    return add(nd, &from, k);
  }
  if (k == operator_class::reshape && is_splat(a)) return splatted(nd.out, value[static_cast<std::size_t>(a)]);
  return -1;
}

constexpr int constant_elements::visit(int n) {
  node nd = g.nodes[static_cast<std::size_t>(n)];
  operator_class const k = what[static_cast<std::size_t>(n)];
  int place[4]{}; // most nodes need no memory of their own, which costs compile time
  list<int> many(nd.count > 4 ? static_cast<std::size_t>(nd.count) : 0, 0);
  int* const in = nd.count > 4 ? many.data() : place;
  for (int e = 0; e < nd.count; ++e) in[e] = w.operand(nd, e);
  if (nd.mode != recording::as_around || (what_for == purpose::derivatives && is_for_derivatives(nd, k)))
    return add(nd, in, operator_class::other);
  nd.text = false;
  numbers = nd.out.sizes.n > 0 || may_be_number(n, k, in);
  int same = -1;
  if (k == operator_class::data) take_constants(w.to, g, nd);
  else if (evaluates(nd, k, in)) same = evaluated(nd, k, in);
  if (same >= 0) return same;
  if (is_pointwise(k)) {
    same = arithmetic(nd, k, in);
    if (same >= 0) return same;
    for (int e = 0; e < nd.count && nd.count > 1;
         ++e) { // if another operand has the shape, the operator itself broadcasts
      int& o = in[e];
      if (kind(o) != operator_class::expand) continue;
      dims shape = at(input(o, 0)).out.sizes;
      if (shape.n == 0 && raises_dtype(nd, in, e)) continue;
      for (int q = 0; q < nd.count; ++q)
        if (q != e) shape = broadcast(shape, at(in[q]).out.sizes);
      if (shape == nd.out.sizes) o = input(o, 0);
    }
  } else if (k == operator_class::convert) {
    if (at(in[0]).out.type == nd.out.type) return in[0];
    if (is_splat(in[0]) && is_floating(nd.out.type))
      same = splatted(nd.out, kernel::converted(nd.out.type, value[static_cast<std::size_t>(in[0])]));
  } else if (k >= operator_class::reshape && k <= operator_class::slice) {
    same = view(nd, k, in, seen.size() && seen[n]);
  } else if (k == operator_class::mm) { // a transposed operand is read transposed
    dims flags = nd.at[0];
    for (int e = 0; e < 2; ++e) {
      int& o = in[e];
      if (kind(o) != operator_class::permute) continue;
      if (!swaps(at(o).at[0])) continue;
      o = input(o, 0);
      flags[e] = !flags[e];
    }
    nd.at = attributes(flags);
  }
  return same >= 0 ? same : add(nd, in, k);
}
} // namespace detail

/// Folds constants (also constants that are broadcast) and simplifies without changing any IEEE result: `x * 1`, `x /
/// 1`, `x - 0`, `x + -0`, `neg(neg x)`, `where(c, x, x)`. Signs move into additions and transposes into `mm`. Views of
/// views, views that change nothing, slices of repeated values, and expansions that a pointwise operator performs
/// itself are simplified.
///
/// Unless both operands are known, x + 0 stays, because it turns -0 into 0. So does x * 0, because it is NaN for
/// infinite x. Arithmetic, comparisons, conversions and views of array constants are computed up to 64 elements. Nodes
/// on which no result depends are dropped. Each node has one bounded visit. For `purpose::values`, `detach` is removed
/// too, and nodes of the traced body of a custom function are folded like any other. A result such as `x * 1` becomes
/// the argument; `optimize` gives it memory of its own again.
constexpr graph fold(graph const& g, purpose what_for = purpose::derivatives) {
  detail::constant_elements f(g);
  f.what_for = what_for;
  if (what_for == purpose::derivatives) detail::mark_views_seen(g, f.seen);
  graph const r = f.w.run([&](int n) { return f.live[n] ? f.visit(n) : -1; }, [] {});
  return detail::with_results_apart(r);
}

} // namespace varve
