// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/fingerprint.hpp>
#include <varve/pass/prepare.hpp>
#include <varve/pass/reciprocals.hpp>

/// @file
/// The pass of `fast_math`, `relax`. It runs after the other passes. Fingerprints determine which values are equal in
/// real arithmetic.
namespace varve {
namespace detail {
/// The state of `relax`.
struct relaxer : constant_elements {
  fingerprints const prints;
  op_handle const *mul_ = nullptr, *div_ = nullptr;
  struct entry {
    std::uint64_t value;
    double scale;
    int node; // of the new graph
  };
  list<int> table{};          // entries by value
  list<entry> seen{};         // of this region
  list<std::size_t> filled{}; // slots of this region
  list<int> inputs{};         // the first floating-point arguments of this region, old numbers
  list<int> erfs{};           // operands of erf in this region, old numbers
  list<char> nonzero{};       // old nodes by which the program divides, or whose logarithm it takes
  list<int> new_uses{};       // by new node: how often the old nodes that became it are used

  constexpr explicit relaxer(graph const& graph_) : constant_elements(graph_), prints(graph_) {
    std::size_t slot_count = 16;
    while (slot_count < 4 * g.nodes.size()) slot_count *= 2;
    table.assign(slot_count, -1);
    nonzero.assign(g.nodes.size(), 0);
    for (std::size_t n = g.nodes.size(); n-- > 0;) {
      node const& nd = g.nodes[n];
      std::string_view const name = nd.op->own ? nd.op->name : "";
      bool const divides = name == "log" || name == "reciprocal" || name == "rsqrt",
                 passes = nonzero[n] && (what[n] == operator_class::mul || what[n] == operator_class::div ||
                                         what[n] == operator_class::neg || name == "sqrt");
      for (int e = 0; e < nd.count; ++e)
        if (live[n] && (divides || passes || (what[n] == operator_class::div && e == 1)))
          nonzero[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + e)])] = 1;
    }
  }
  constexpr std::size_t slot(std::uint64_t v, meta const& out) const {
    std::size_t s = static_cast<std::size_t>(residue::mixed(1, v)) & (table.size() - 1);
    for (; table[s] >= 0; s = (s + 1) & (table.size() - 1)) {
      entry const& e = seen[static_cast<std::size_t>(table[s])];
      if (e.value == v && at(e.node).out == out) break;
    }
    return s;
  }
  constexpr void start() {
    for (std::size_t s : filled) table[s] = -1;
    filled.clear(), seen.clear(), inputs.clear(), erfs.clear();
  }
  constexpr int number(meta const& m, double x) {
    node c;
    c.op = &constant_handle, c.out = {m.type, {}}, c.value = kernel::converted(m.type, x);
    return add(c, nullptr, operator_class::constant);
  }
  /// Returns `by` times a new node that has the shape of `nd`. Moves the factor through at most `deep` nested sums with
  /// numbers.
  constexpr int scaled(node const& nd, int n, double by, int deep = 8) {
    multiple const m = factored(n);
    if (m.by != 1 && at(m.of).out == nd.out && is_moderate(by * m.by)) n = m.of, by *= m.by;
    if (by == 1) return n;
    if (by == -1) return negated(nd, n);
    if (deep > 0 && (kind(n) == operator_class::add || kind(n) == operator_class::sub) &&
        uses_of(n) == 1) // a multiple of a sum with a number is one multiplication and addition
      for (int k = 0; k < 2; ++k)
        if (is_number(input(n, k)) && at(input(n, 1 - k)).out == nd.out &&
            is_moderate(by * value[static_cast<std::size_t>(input(n, k))])) {
          node const sum = at(n);
          operator_class const how = kind(n);
          int in[2];
          in[k] = number(nd.out, by * value[static_cast<std::size_t>(input(n, k))]),
          in[1 - k] = scaled(nd, input(n, 1 - k), by, deep - 1);
          return add(sum, in, how);
        }
    return pair(mul_, operator_class::mul, nd, n, number(nd.out, by));
  }
  constexpr int uses_of(int n) const {
    return static_cast<std::size_t>(n) < new_uses.size() ? new_uses[static_cast<std::size_t>(n)] : 0;
  }

  constexpr int known_value(node const& nd, fingerprint const& f) {
    if (f.is_zero()) return splatted(nd.out, 0);
    if (f.is_number()) return splatted(nd.out, kernel::converted(nd.out.type, f.scale));
    std::size_t const s = slot(f.value, nd.out);
    if (table[s] < 0) return -1;
    entry const& e = seen[static_cast<std::size_t>(table[s])];
    double const ratio = f.scale / e.scale;
    bool const same = ratio > 1 - 1e-12 && ratio < 1 + 1e-12;
    return is_moderate(ratio) ? scaled(nd, e.node, same ? 1 : ratio) : -1;
  }
  constexpr void remember(int n, fingerprint const& f, double scale) {
    if (f.is_number()) return;
    meta const out = at(n).out; // a copy: nodes move
    std::size_t const s = slot(f.value, out);
    if (table[s] >= 0) return;
    table[s] = static_cast<int>(seen.size()), filled.push_back(s);
    seen.push_back({f.value, scale, n});
  }
  /// Returns an exponential as a known value times or divided by an input, if the two differ by such a factor. This
  /// costs one operation instead of an exponential. -1 if there is none.
  constexpr int known_multiple(node const& nd, fingerprint const& f) {
    for (int k : inputs) {
      int const by = w.now[static_cast<std::size_t>(k)];
      if (at(by).out.type != nd.out.type || (at(by).out.sizes.n > 0 && !(at(by).out.sizes == nd.out.sizes))) continue;
      for (bool divided : {true, false}) {
        if (divided && !nonzero[static_cast<std::size_t>(k)]) continue;
        fingerprint const& x = prints.of[static_cast<std::size_t>(k)];
        std::size_t const s = slot(product(f, divided ? x : inverse(x)).value, nd.out);
        if (table[s] < 0) continue;
        entry const& e = seen[static_cast<std::size_t>(table[s])];
        if (!is_moderate(f.scale / e.scale)) continue;
        return scaled(nd,
                      pair(divided ? div_ : mul_, divided ? operator_class::div : operator_class::mul, nd, e.node, by),
                      f.scale / e.scale);
      }
    }
    return -1;
  }
  /// Returns the exponent of e^(-x^2) in the form that the derivative of erf(x) uses, since the kernel of erf then
  /// shares the exponential. Returns `in` if there is no such erf, or if the square would be less exact: if x is a
  /// root, or if the exponent is no product.
  constexpr int exponent_of_erf(node const& nd, fingerprint const& f, int in) {
    if (operator_class const k = kind(factored(in).of); k != operator_class::mul && k != operator_class::div) return in;
    for (int k : erfs) {
      fingerprint const& x = prints.of[static_cast<std::size_t>(k)];
      fingerprint const square = product(x, x);
      double const ratio = square.value == f.value && f.scale != 0 ? -square.scale / f.scale : 0;
      if (int const y = w.now[static_cast<std::size_t>(k)]; ratio > 1 - 1e-12 && ratio < 1 + 1e-12 &&
                                                            at(y).out == nd.out &&
                                                            std::string_view(at(factored(y).of).op->name) != "sqrt")
        return negated(nd, pair(mul_, operator_class::mul, nd, y, y));
    }
    return in;
  }
  constexpr int product_of(node const& nd, int a, int b) {
    for (int k = 0; k < 2 && kind(a) == operator_class::div && kind(b) == operator_class::div;
         ++k, std::swap(a, b)) // x / y * (y / z)
      if (int const x = input(a, 0), z = input(b, 1); input(a, 1) == input(b, 0) && at(x).out.type == at(z).out.type &&
                                                      (at(x).out == nd.out || at(z).out == nd.out))
        return pair(div_, operator_class::div, nd, x, z);
    return pair(mul_, operator_class::mul, nd, a, b);
  }
  constexpr int quotient_of(node const& nd, int a, int b) {
    if (is_splat(a, 1.0) && kind(b) == operator_class::div && at(b).out == nd.out)
      return pair(div_, operator_class::div, nd, input(b, 1), input(b, 0));
    return pair(div_, operator_class::div, nd, a, b);
  }
  /// Moves numbers out of products, quotients and sums; -1 if there are none.
  constexpr int outwards(node const& nd, operator_class k, int const* in, fingerprint const& f) {
    if (k == operator_class::neg) return scaled(nd, in[0], -1);
    auto whole = [&](int e) { return is_number(in[1 - e]) && at(in[e]).out == nd.out; }; // the other one is a number
    if (k == operator_class::mul && whole(0)) return scaled(nd, in[0], value[static_cast<std::size_t>(in[1])]);
    if (k == operator_class::mul && whole(1)) return scaled(nd, in[1], value[static_cast<std::size_t>(in[0])]);
    if (k == operator_class::div && whole(0)) return scaled(nd, in[0], 1 / value[static_cast<std::size_t>(in[1])]);
    multiple const a = factored(in[0]), b = factored(in[1]);
    if (k == operator_class::mul || k == operator_class::div) {
      double const together = k == operator_class::mul ? a.by * b.by : a.by / b.by;
      bool const apart = is_moderate(together) && ((a.by != 1 && uses_of(in[0]) == 1) ||
                                                   (b.by != 1 && uses_of(in[1]) == 1) || (a.by != 1 && b.by != 1));
      double const by = apart ? together : 1;
      int const first = apart ? a.of : in[0], second = apart ? b.of : in[1];
      int const r = k == operator_class::mul ? product_of(nd, first, second) : quotient_of(nd, first, second);
      remember(r, f, f.scale / by);
      return scaled(nd, r, by);
    }
    if (a.by == 1 || (a.by != b.by && a.by != -b.by) || (uses_of(in[0]) > 1 && uses_of(in[1]) > 1)) return -1;
    double const sign = k == operator_class::sub ? -1 : 1;
    bool const adds = sign * b.by == a.by;
    if (!(adds ? add_ : sub_)) return -1;
    int const r = pair(adds ? add_ : sub_, adds ? operator_class::add : operator_class::sub, nd, a.of, b.of);
    remember(r, f, f.scale / a.by);
    return scaled(nd, r, a.by);
  }
  constexpr int visit(int n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    operator_class const k = what[static_cast<std::size_t>(n)];
    fingerprint const& f = prints.of[static_cast<std::size_t>(n)];
    list<int> in;
    for (int e = 0; e < nd.count; ++e) in.push_back(w.operand(nd, e));
    if (k == operator_class::data) {
      node constant = nd;
      take_constants(w.to, g, constant);
      return add(constant, nullptr, k);
    }
    if (k == operator_class::placeholder && is_floating(nd.out.type) && inputs.size() < 16) inputs.push_back(n);
    bool const pure = is_floating(nd.out.type) && nd.regions_count == 0 &&
                      (nd.op->kind == op_kind::pointwise || is_view(k) || is_reduction(k) || k == operator_class::mm);
    node plain; // an elementwise operator with this result
    plain.out = nd.out;
    int r = pure ? known_value(plain, f) : -1;
    std::string_view const name = pure && nd.op->own ? nd.op->name : "";
    if (name == "erf" && erfs.size() < 16) erfs.push_back(g.edges[static_cast<std::size_t>(nd.first)]);
    if (r < 0 && name == "exp") r = known_multiple(plain, f);
    if (r < 0 && name == "exp") in[0] = exponent_of_erf(plain, prints.operand(nd, 0), in[0]);
    bool real = pure && k >= operator_class::add && k <= operator_class::neg;
    for (int e = 0; e < nd.count; ++e) real = real && is_floating(at(in[e]).out.type);
    if (r < 0 && real) r = outwards(plain, k, in.data(), f);
    if (r < 0 && k == operator_class::sum && uses_of(in[0]) == 1)
      if (multiple const m = factored(in[0]); m.by != 1 && is_floating(nd.out.type)) {
        int const total = add(nd, &m.of, k);
        remember(total, f, f.scale / m.by);
        r = scaled(plain, total, m.by);
      }
    if (r < 0) r = add(nd, in.data(), k);
    if (is_floating(nd.out.type)) remember(r, f, f.scale);
    while (new_uses.size() < w.to.nodes.size()) new_uses.push_back(0);
    new_uses[static_cast<std::size_t>(r)] += uses[static_cast<std::size_t>(n)];
    return r;
  }
};

/// Applies `relax` to a graph that is already optimized.
template <class Mul = mul_t, class Div = div_t, class Add = add_t, class Sub = sub_t, class Neg = neg_t,
          class Expand = expand_t>
constexpr graph relaxed(graph const& g) {
  if (has_mutation(g)) return g;
  relaxer first(g);
  first.expand = &handle<Expand>, first.add_ = &handle<Add>, first.sub_ = &handle<Sub>, first.neg_ = &handle<Neg>,
  first.mul_ = &handle<Mul>, first.div_ = &handle<Div>;
  graph const simple = first.w.run([&](int n) { return first.live[static_cast<std::size_t>(n)] ? first.visit(n) : -1; },
                                   [&] { first.start(); });
  graph const better = optimize(simple, purpose::values);
  graph const inverted = share_reciprocals<Mul>(better);
  return optimize(inverted, purpose::values);
}
} // namespace detail

/// Simplifies a graph by the rules of real arithmetic: see `fast_math`. Values that are multiples of one another, as
/// functions of the inputs, are computed once (`fingerprint.hpp`). Values that are always zero or a number become
/// constants. Numbers move out of products, quotients and sums to where they cost least. A value that divides several
/// others is inverted once.
///
/// Expected work per node is constant. Graphs that write into their arguments are only optimized, because a result that
/// is an argument would be read after the write. The result is for values alone (`purpose::values`). A template, so
/// that units which do not fuse do not depend on the operators that it writes.
template <class Mul = mul_t>
constexpr graph relax(graph const& g) {
  graph const ready = optimize(g, purpose::values);
  return detail::relaxed<Mul>(ready);
}

} // namespace varve
