// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/constant_math.hpp>
#include <varve/pass/constant_elements.hpp>
#include <varve/pass/residue.hpp>

#include <string_view>

/// @file
/// Decides which values are equal as functions of the inputs, however they are written. Normal forms of sums and
/// products grow without bound, so each node is evaluated at a random point modulo a prime of 61 bits instead.
///
/// e^x is a power of a random square modulo p = 2q + 1; its exponent is evaluated modulo q. The logarithms of inputs
/// are known, and those of products as far as signs allow; so are roots of inputs (`residue.hpp`). All other operators
/// are unknown functions of their operands' fingerprints. Constants are separate factors in double precision.
///
/// Roots of sums and products stay unknown, since the root of a square is not a rational function. So do exponentials
/// of logarithms of products, unless their factors may be assumed positive (`signs`).
namespace varve::detail {

/// A floating-point node as a function of the inputs in real arithmetic. It is a number times a rational function of
/// the inputs and of exponentials, roots and other functions, evaluated at one random point modulo large primes. Nodes
/// with equal `value`s are equal up to their `scale`s. Different functions agree by accident with a probability of
/// 2^-60 per pair (Schwartz, 1980).
struct fingerprint {
  double scale = 1;
  std::uint64_t value = 1;     // modulo p, without the scale
  std::uint64_t exponent = 1;  // the same function modulo q, for its exponential
  std::uint64_t logarithm = 0; // base^logarithm is the value
  std::uint64_t root = 1;      // its square is the exponent
  bool has_logarithm = true, has_root = true;

  /// Returns the fingerprint of a number.
  static constexpr fingerprint of(double x) { return {x}; }
  /// Returns the fingerprint of an input, or of a function of which only the arguments are known, hashed as `what`.
  static constexpr fingerprint unknown(std::uint64_t what) {
    fingerprint f;
    f.logarithm = residue::mixed(what, 1) % residue::q, f.root = residue::mixed(what, 2) % residue::q;
    f.value = residue::power<residue::p>(residue::base, f.logarithm),
    f.exponent = residue::times<residue::q>(f.root, f.root);
    return f;
  }
  constexpr bool is_zero() const { return scale == 0 || value == 0; }
  constexpr bool is_number() const { return is_zero() || (value == 1 && exponent == 1); }
  /// Returns a hash of value and scale.
  constexpr std::uint64_t hash() const { return residue::mixed(value, residue::of<residue::p>(scale)); }
};

constexpr fingerprint product(fingerprint const& a, fingerprint const& b) {
  fingerprint r;
  r.scale = a.scale * b.scale, r.value = residue::times<residue::p>(a.value, b.value),
  r.exponent = residue::times<residue::q>(a.exponent, b.exponent);
  r.has_logarithm = a.has_logarithm && b.has_logarithm, r.has_root = false;
  if (r.has_logarithm) r.logarithm = residue::plus<residue::q>(a.logarithm, b.logarithm);
  return r;
}
constexpr fingerprint inverse(fingerprint const& a) {
  fingerprint r;
  r.scale = 1 / a.scale, r.value = residue::inverse<residue::p>(a.value),
  r.exponent = residue::inverse<residue::q>(a.exponent);
  r.has_logarithm = a.has_logarithm, r.logarithm = residue::minus<residue::q>(0, a.logarithm), r.has_root = false;
  return r;
}
/// Returns the fingerprint of a + sign * b.
constexpr fingerprint weighted_sum(fingerprint const& a, fingerprint b, double sign) {
  b.scale *= sign;
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  fingerprint r;
  auto close = [](double x, double y) {
    return kernel::constant::magnitude(x - y) <= 1e-12 * kernel::constant::magnitude(x);
  };
  if (a.value == b.value) { // like terms
    r = a;
    r.scale = close(a.scale, -b.scale) ? 0 : a.scale + b.scale;
    return r;
  }
  bool const same = close(a.scale, b.scale), opposite = close(a.scale, -b.scale);
  if (same || opposite) r.scale = a.scale, b.scale = same ? 1 : -1;
  double const first = same || opposite ? 1 : a.scale;
  r.value = residue::plus<residue::p>(residue::times<residue::p>(residue::of<residue::p>(first), a.value),
                                      residue::times<residue::p>(residue::of<residue::p>(b.scale), b.value));
  r.exponent = residue::plus<residue::q>(residue::times<residue::q>(residue::of<residue::q>(first), a.exponent),
                                         residue::times<residue::q>(residue::of<residue::q>(b.scale), b.exponent));
  r.has_logarithm = r.has_root = false;
  return r;
}
constexpr fingerprint exponential(fingerprint const& a) {
  std::uint64_t const power =
      a.is_zero() ? 0 : residue::times<residue::q>(residue::of<residue::q>(a.scale), a.exponent);
  fingerprint r = fingerprint::unknown(residue::mixed(3, power)); // its exponent and its root are unknown
  r.logarithm = power, r.value = residue::power<residue::p>(residue::base, power);
  return r;
}
/// Returns the fingerprint of a logarithm. `positive`: the factors of `a` are positive, or may be assumed to be.
constexpr fingerprint logarithm(fingerprint const& a, bool positive) {
  fingerprint r = fingerprint::unknown(residue::mixed(5, a.has_logarithm && a.scale == 1 ? a.logarithm : a.hash()));
  if (a.has_logarithm && a.scale == 1 && positive) r.exponent = a.logarithm, r.has_root = false;
  return r;
}
/// Returns the fingerprint of a root, which is known for inputs and unknown functions only: a square may be the square
/// of a negative number.
constexpr fingerprint square_root(fingerprint const& a) {
  if (!a.has_root || !a.has_logarithm || !(a.scale > 0)) return fingerprint::unknown(residue::mixed(7, a.hash()));
  fingerprint r;
  r.scale = kernel::constant::sqrt(a.scale),
  r.logarithm = residue::times<residue::q>(a.logarithm, (residue::q + 1) / 2);
  r.value = residue::power<residue::p>(residue::base, r.logarithm), r.exponent = a.root, r.has_root = false;
  return r;
}

/// The factors of logarithms, and which of them may be assumed positive. e^(log(x y) / 2) is the root of x y. It is the
/// product of the roots of x and y only if both are positive. If both are negative, the program computes the same
/// function of -x and -y, unless another logarithm joins the two. For example, log(x y) and log(x / y) add up to the
/// logarithm of the square of x, whose root is |x|. The factors of logarithms therefore form a forest, and the trees
/// that contain a single factor are positive.
struct signs {
  struct factor {
    std::uint64_t logarithm;
    int above; // in its tree; the first entry stands for positive values
  };
  list<factor> all{};

  static constexpr std::ptrdiff_t most = 64; // factors: each is searched among all
  constexpr int root(int k) const {
    while (all[k].above != k) k = all[k].above;
    return k;
  }
  /// Returns the tree of a factor; -1 if there are too many factors.
  constexpr int tree(std::uint64_t logarithm) {
    int const n = static_cast<int>(all.size());
    for (int k = 1; k < n; ++k)
      if (all[k].logarithm == logarithm) return root(k);
    if (n == 0) all.push_back({0, 0});
    if (all.size() >= static_cast<std::size_t>(most)) return -1;
    int const k = static_cast<int>(all.size());
    all.push_back({logarithm, k});
    return k;
  }
  /// Records the logarithm of a product of two factors, or of one and something positive (-1). Returns false if the
  /// factors are joined already.
  constexpr bool join(int a, int b) {
    int const x = b < 0 ? 0 : b;
    if (a == x) return a == 0;
    all[a > x ? a : x].above = a > x ? x : a; // the entry of positive values stays a root
    return true;
  }
};

/// The fingerprints of all nodes of a graph, in order.
struct fingerprints {
  graph const& g;
  list<operator_class> const what;
  list<fingerprint> of{};
  signs factors{};
  list<std::uint64_t> granted{};      // logarithms of products that are known
  list<op_handle const*> strangers{}; // operators of other programs: two may have the same name

  constexpr explicit fingerprints(graph const& graph_) : g(graph_), what(identify(graph_)) {
    of.reserve(g.nodes.size());
    for (node const& nd : g.nodes)
      if (!nd.op->own) add_stranger(nd.op);
    for (std::size_t n = 0; n < g.nodes.size(); ++n) of.push_back(compute(static_cast<int>(n)));
  }
  constexpr fingerprint const& operand(node const& nd, int k) const {
    return of[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])];
  }

private:
  constexpr void add_stranger(op_handle const* op) {
    for (op_handle const* s : strangers)
      if (s == op) return;
    strangers.push_back(op);
  }
  /// True for arithmetic on floating-point numbers.
  constexpr bool is_real(node const& nd) const {
    bool r = is_floating(nd.out.type);
    for (int k = 0; k < nd.count; ++k)
      r = r && is_floating(g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])].out.type);
    return r;
  }
  constexpr fingerprint compute(int n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    operator_class const k = what[static_cast<std::size_t>(n)];
    bool const other = k == operator_class::placeholder || k == operator_class::data || nd.regions_count > 0 ||
                       nd.op->kind == op_kind::random || nd.op->kind == op_kind::mutation ||
                       nd.op->kind == op_kind::hop || nd.op->kind == op_kind::effect;
    if (other || (k == operator_class::constant && nd.value != 0 && !is_moderate(nd.value)))
      return fingerprint::unknown(residue::mixed(11, static_cast<std::uint64_t>(n)));
    if (k == operator_class::constant) return fingerprint::of(nd.value);
    if (!is_real(nd)) return unknown(nd, k);
    fingerprint const& a = operand(nd, 0);
    if (is_pointwise(k)) return pointwise(nd, k, a);
    bool const passes =
        (k == operator_class::expand || k == operator_class::sum || k == operator_class::reshape ||
         k == operator_class::permute || k == operator_class::slice || k == operator_class::slice_backward) &&
        nd.count == 1;
    if (k == operator_class::expand && passes) return a; // element by element: as pointwise operators broadcast
    fingerprint r = unknown(nd, k, passes);
    if (passes) r.scale = a.is_zero() ? 0 : a.scale;
    return r;
  }
  constexpr fingerprint pointwise(node const& nd, operator_class k, fingerprint const& a) {
    fingerprint const& b = operand(nd, nd.count - 1);
    std::string_view const name = nd.op->own ? nd.op->name : "";
    bool const divides = k == operator_class::div || name == "reciprocal" || name == "rsqrt";
    if (divides && b.is_zero()) return unknown(nd, k);
    fingerprint r;
    if (k == operator_class::add) r = weighted_sum(a, b, 1);
    else if (k == operator_class::sub) r = weighted_sum(a, b, -1);
    else if (k == operator_class::mul) r = product(a, b);
    else if (k == operator_class::div) r = product(a, inverse(b));
    else if (k == operator_class::neg) r = a, r.scale = -a.scale;
    else if (name == "square") r = product(a, a);
    else if (name == "reciprocal") r = inverse(a);
    else if (name == "sqrt" && !a.is_zero()) r = square_root(a);
    else if (name == "rsqrt") r = inverse(square_root(a));
    else if (name == "exp") r = exponential(a);
    else if (name == "log" && !a.is_zero()) r = logarithm(a, a.has_logarithm && a.scale == 1 && is_positive(nd));
    else r = unknown(nd, k);
    return r.scale == 0 || is_moderate(r.scale) ? r : unknown(nd, k);
  }
  /// True if the factors of the operand of a logarithm are positive, or may be assumed to be (`signs`). Examines at
  /// most 16 operations.
  constexpr bool is_positive(node const& log) {
    std::uint64_t const whole = operand(log, 0).logarithm;
    for (std::uint64_t l : granted)
      if (l == whole) return true;
    int open[32]{g.edges[static_cast<std::size_t>(log.first)]}, count = 1, apart[2]{-1, -1}, found = 0;
    for (int looked = 0; count > 0; ++looked) {
      int const n = open[--count];
      node const& nd = g.nodes[static_cast<std::size_t>(n)];
      fingerprint const& f = of[static_cast<std::size_t>(n)];
      operator_class const k = what[static_cast<std::size_t>(n)];
      std::string_view const name = nd.op->own ? nd.op->name : "";
      if (looked == 16) return false;
      if (f.is_number() || name == "exp" || name == "sqrt" || name == "rsqrt") continue;
      if ((k >= operator_class::mul && k <= operator_class::neg) || (k == operator_class::expand && nd.count == 1) ||
          name == "reciprocal") {
        for (int e = 0; e < nd.count; ++e) open[count++] = g.edges[static_cast<std::size_t>(nd.first + e)];
        continue;
      }
      if (!f.has_root || !f.has_logarithm) return false;
      int const t = factors.tree(f.logarithm);
      if (t == 0) continue;
      if (t < 0 || found == 2) return false;
      apart[found++] = t;
    }
    bool const positive = found == 0 || factors.join(apart[0], apart[1]);
    if (positive && granted.size() < static_cast<std::size_t>(signs::most)) granted.push_back(whole);
    return positive;
  }
  /// Returns an unknown function of the operands. Sizes count if an operator reads more than one element. With
  /// `linear`, the scale of the operand becomes that of the result.
  constexpr fingerprint unknown(node const& nd, operator_class k, bool linear = false) const {
    std::uint64_t h = residue::mixed(13, nd.op->kind == op_kind::convert ? static_cast<std::uint64_t>(nd.out.type) : 0);
    for (char const* c = nd.op->name; *c; ++c) h = residue::mixed(h, static_cast<unsigned char>(*c));
    for (std::size_t s = 0; !nd.op->own && s < strangers.size(); ++s)
      if (strangers[s] == nd.op) h = residue::mixed(h, s + 1);
    for (int j = 0; j < nd.at.count; ++j, h = residue::mixed(h, 17))
      for (extent x : nd.at[j]) h = residue::mixed(h, static_cast<std::uint64_t>(x.bits));
    for (int j = 0; j < nd.count; ++j) {
      fingerprint const& f = operand(nd, j);
      h = residue::mixed(h, linear ? f.value : f.hash());
      if (is_pointwise(k) || k == operator_class::convert) continue;
      for (extent x : g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + j)])].out.sizes)
        h = residue::mixed(h, static_cast<std::uint64_t>(x.bits));
    }
    return fingerprint::unknown(h);
  }
};

} // namespace varve::detail
