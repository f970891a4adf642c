// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/extent.hpp>
#include <varve/core/list.hpp>
#include <varve/core/message.hpp>

#include <string>

/// @file
/// Sizes as expressions of symbols. A table stores each expression once, in normal form, which is an expanded sum of
/// products. Its factors are symbols, whole numbers, and terms that are not polynomial (quotients, remainders, minima,
/// maxima). Equal polynomials are therefore one entry, and (6n) / 3 is 2n. Usable in constant expressions and at run
/// time.
namespace varve {

/// An entry of a table. For a symbol, `a` is its number and `b` its name, or 0 if it has none.
struct size_expression {
  size_op op;
  extent a, b;
};

/// The range of a size, both ends included.
struct size_range {
  static constexpr index_t unlimited = INT64_MAX;
  index_t least = -unlimited, greatest = unlimited;
  friend constexpr bool operator==(size_range const&, size_range const&) = default;
};

/// The outcome of deciding a statement.
enum class truth : unsigned char { no, yes, unknown };
/// A condition on symbols under which a program was made.
struct size_guard {
  relation is;
  extent left, right;
  extent unless = 1; // the condition need not hold where this is 0
};

namespace detail {
/// Sums and products that saturate at `unlimited`.
constexpr index_t limited_sum(index_t a, index_t b) {
  constexpr index_t most = size_range::unlimited;
  if (a == most || a == -most) return a;
  if (b == most || b == -most) return b;
  index_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return a > 0 ? most : -most;
  return r;
}
constexpr index_t limited_product(index_t a, index_t b) {
  constexpr index_t most = size_range::unlimited;
  index_t r = 0;
  if (__builtin_mul_overflow(a, b, &r) || r > most || r < -most) return (a > 0) == (b > 0) ? most : -most;
  return r;
}

/// A number times a product of entries, in their order, that are neither sums nor products.
struct size_monomial {
  static constexpr int most = 16;
  index_t times = 0;
  int count = 0, factor[most]{};

  /// Returns -1, 0 or 1. Products of more factors come first and numbers last; among equally many factors, earlier
  /// entries come first.
  constexpr int compare(size_monomial const& o) const {
    if (count != o.count) return count > o.count ? -1 : 1;
    for (int k = 0; k < count; ++k)
      if (factor[k] != o.factor[k]) return factor[k] < o.factor[k] ? -1 : 1;
    return 0;
  }
  constexpr size_monomial operator*(size_monomial const& o) const {
    if (count + o.count > most) refuse::argument_is_invalid("size", "a product of more than 16 sizes");
    size_monomial r;
    r.times = times * o.times;
    for (int i = 0, j = 0; i < count || j < o.count;)
      r.factor[r.count++] = j == o.count || (i < count && factor[i] <= o.factor[j]) ? factor[i++] : o.factor[j++];
    return r;
  }
  /// Divides by `o`. Returns false if a remainder is left.
  constexpr bool divide(size_monomial const& o, size_monomial& quotient) const {
    if (times % o.times != 0) return false;
    size_monomial q;
    q.times = times / o.times;
    int j = 0;
    for (int i = 0; i < count; ++i)
      if (j < o.count && factor[i] == o.factor[j]) ++j;
      else q.factor[q.count++] = factor[i];
    quotient = q;
    return j == o.count;
  }
};
/// Monomials in order, none of them 0, no two with the same factors.
struct size_polynomial {
  list<size_monomial> terms{};

  constexpr void add(size_monomial const& m) {
    if (m.times == 0) return;
    std::size_t at = 0;
    while (at < terms.size() && terms[at].compare(m) < 0) ++at;
    if (at < terms.size() && terms[at].compare(m) == 0) {
      terms[at].times += m.times;
      if (terms[at].times == 0) {
        for (; at + 1 < terms.size(); ++at) terms[at] = terms[at + 1];
        terms.pop_back();
      }
      return;
    }
    terms.push_back(m);
    for (std::size_t k = terms.size() - 1; k > at; --k) terms[k] = terms[k - 1];
    terms[at] = m;
  }
};
} // namespace detail

/// The expressions of a table, wherever they are stored: evaluates them and writes them as text.
class size_view {
  enum class write_as : unsigned char { term, factor, magnitude }; // magnitude: a negative value without its sign

public:
  constexpr explicit size_view(size_expression const* all) : all_(all) {}
  constexpr size_expression const& operator[](extent e) const { return all_[e.entry()]; }

  /// Returns the value for given numbers of the symbols.
  constexpr index_t evaluate(extent e, index_t const* symbols) const {
    if (e.is_number()) return e.number();
    size_expression const& x = (*this)[e];
    if (x.op == size_op::symbol) return symbols[x.a.number()];
    return combine(x.op, evaluate(x.a, symbols), evaluate(x.b, symbols));
  }
  /// Returns the result of an operation on numbers. Sizes that do not fit into 64 bits, as a file may have them, wrap
  /// around.
  static constexpr index_t combine(size_op op, index_t a, index_t b) {
    switch (op) {
    case size_op::sum:
      return static_cast<index_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case size_op::product:
      return detail::wrapping_product(a, b);
    case size_op::quotient:
      return b == -1 ? detail::wrapping_product(a, b) : detail::floor_div(a, b);
    case size_op::remainder:
      return b == -1 ? 0 : detail::floor_mod(a, b);
    case size_op::least:
      return a < b ? a : b;
    default:
      return a < b ? b : a;
    }
  }
  /// Returns the range for given ranges of the symbols; it may be wider than necessary.
  constexpr size_range range(extent e, size_range const* symbols) const {
    if (e.is_number()) return {e.number(), e.number()};
    size_expression const& x = (*this)[e];
    if (x.op == size_op::symbol) return symbols[x.a.number()];
    size_range const a = range(x.a, symbols), b = range(x.b, symbols);
    switch (x.op) {
    case size_op::sum:
      return {detail::limited_sum(a.least, b.least), detail::limited_sum(a.greatest, b.greatest)};
    case size_op::product:
      return product_of(a, b);
    case size_op::quotient:
      return quotient_of(a, b);
    case size_op::remainder:
      if (b.least < 1) return {};
      if (a.least >= 0 && a.greatest < b.least) return a;
      return {0, b.greatest == size_range::unlimited ? b.greatest : b.greatest - 1};
    case size_op::least:
      return {lesser(a.least, b.least), lesser(a.greatest, b.greatest)};
    default:
      return {greater(a.least, b.least), greater(a.greatest, b.greatest)};
    }
  }
  constexpr bool holds(size_guard const& g, index_t const* symbols) const {
    return evaluate(g.unless, symbols) == 0 ||
           detail::holds(g.is, evaluate(g.left, symbols), evaluate(g.right, symbols));
  }

  /// Returns a size as text in mathematical notation close to C++: `2*n + 3`, `(n + 1)//2`, `min(n, m)`. Symbols
  /// without a name are `s0`, `s1`.
  std::string text(extent e) const {
    std::string s;
    write(s, e);
    return s;
  }
  std::string text(size_guard const& g) const {
    constexpr char const* signs[] = {" == ", " != ", " < ", " <= "};
    return text(g.left) + signs[static_cast<int>(g.is)] + text(g.right);
  }
  /// Appends the text of a size to characters: a string or, in constant expressions, a `list<char>`.
  template <class Letters>
  constexpr void write(Letters& to, extent e, write_as how = write_as::term) const {
    if (how == write_as::factor && !is_whole(e)) {
      to.push_back('('), write(to, e), to.push_back(')');
      return;
    }
    if (e.is_number()) return write_number(to, how == write_as::magnitude ? -e.number() : e.number());
    if (e.is_name()) return write_name(to, e);
    size_expression const& x = (*this)[e];
    switch (x.op) {
    case size_op::symbol:
      if (x.b.is_name()) return write_name(to, x.b);
      to.push_back('s');
      return write_number(to, x.a.number());
    case size_op::sum: {
      bool const less = is_negative(x.b);
      write(to, x.a), write_all(to, less ? " - " : " + ");
      return write(to, x.b, less ? write_as::magnitude : write_as::term);
    }
    case size_op::product:
      if (!x.b.is_number()) return write(to, x.a), write_all(to, "*"), write(to, x.b);
      if (index_t const times = how == write_as::magnitude ? -x.b.number() : x.b.number(); times == -1)
        to.push_back('-');
      else if (times != 1) write_number(to, times), to.push_back('*');
      return write(to, x.a);
    case size_op::quotient:
    case size_op::remainder:
      write(to, x.a, write_as::factor), write_all(to, x.op == size_op::quotient ? "//" : "%");
      return write(to, x.b, write_as::factor);
    default:
      write_all(to, x.op == size_op::least ? "min(" : "max(");
      write(to, x.a), write_all(to, ", "), write(to, x.b), write_all(to, ")");
    }
  }

private:
  size_expression const* all_;

  static constexpr index_t lesser(index_t a, index_t b) { return a < b ? a : b; }
  static constexpr index_t greater(index_t a, index_t b) { return a < b ? b : a; }
  static constexpr size_range hull(index_t a, index_t b, index_t c, index_t d) {
    return {lesser(lesser(a, b), lesser(c, d)), greater(greater(a, b), greater(c, d))};
  }
  static constexpr size_range product_of(size_range const& a, size_range const& b) {
    using detail::limited_product;
    return hull(limited_product(a.least, b.least), limited_product(a.least, b.greatest),
                limited_product(a.greatest, b.least), limited_product(a.greatest, b.greatest));
  }
  static constexpr size_range quotient_of(size_range const& a, size_range const& b) {
    if (b.least < 1) return {};
    auto const end = [](index_t x, index_t y) {
      bool const unlimited = x == size_range::unlimited || x == -size_range::unlimited;
      return unlimited ? x : detail::floor_div(x, y);
    };
    return hull(end(a.least, b.least), end(a.least, b.greatest), end(a.greatest, b.least), end(a.greatest, b.greatest));
  }

  static constexpr void write_all(auto& to, char const* text) {
    for (; *text; ++text) to.push_back(*text);
  }
  static constexpr void write_number(auto& to, index_t n) {
    if (n < 0) to.push_back('-');
    if (n / 10 != 0) write_number(to, n < 0 ? -(n / 10) : n / 10);
    to.push_back(static_cast<char>('0' + (n < 0 ? -(n % 10) : n % 10)));
  }
  static constexpr void write_name(auto& to, extent name) {
    for (int k = 48; k >= 0; k -= 8)
      if (char const c = static_cast<char>(name.number() >> k & 255)) to.push_back(c);
  }
  constexpr bool is_whole(extent e) const { return e.is_number() ? e.number() >= 0 : (*this)[e].op == size_op::symbol; }
  constexpr bool is_negative(extent e) const {
    if (e.is_entry() && (*this)[e].op == size_op::product) e = (*this)[e].b;
    return e.is_number() && e.number() < 0;
  }
};

/// A table of expressions of symbols, each stored once. Its functions take numbers and entries of the table, and return
/// the normal form.
class size_table {
public:
  constexpr size_table() = default;
  /// Copies entries that are in normal form, those of another table.
  constexpr size_table(size_expression const* from, size_expression const* to) : all_(from, to) {}
  constexpr std::size_t size() const { return all_.size(); }
  constexpr size_expression const* data() const { return all_.data(); }
  constexpr size_view view() const { return size_view(all_.data()); }
  constexpr size_expression const& operator[](extent e) const { return all_[static_cast<std::ptrdiff_t>(e.entry())]; }

  /// Returns symbol number k. Its name is that of the first request.
  constexpr extent symbol(int k, extent name = 0) {
    for (std::size_t s = 0; s < all_.size(); ++s)
      if (all_[s].op == size_op::symbol && all_[s].a.number() == k) return extent::entry(static_cast<index_t>(s));
    all_.push_back({size_op::symbol, k, name});
    return extent::entry(static_cast<index_t>(all_.size()) - 1);
  }
  /// Returns an expression of another table with the same symbols as an entry of this one.
  constexpr extent imported(size_view from, extent e) {
    if (!e.is_entry()) return e;
    size_expression const& x = from[e];
    if (x.op == size_op::symbol) return symbol(static_cast<int>(x.a.number()), x.b);
    extent const a = imported(from, x.a);
    return combine(x.op, a, imported(from, x.b));
  }
  /// Returns the result of an operation on sizes.
  constexpr extent combine(size_op op, extent a, extent b) {
    switch (op) {
    case size_op::sum:
      return add(a, b);
    case size_op::product:
      return multiply(a, b);
    case size_op::quotient:
      return divide(a, b);
    case size_op::remainder:
      return modulo(a, b);
    case size_op::least:
      return least(a, b);
    default:
      return greatest(a, b);
    }
  }
  constexpr extent add(extent a, extent b) {
    if (a.is_number() && b.is_number()) return a.number() + b.number();
    detail::size_polynomial p;
    collect(p, a, 1);
    collect(p, b, 1);
    return entry_of(p);
  }
  constexpr extent subtract(extent a, extent b) {
    detail::size_polynomial p;
    collect(p, a, 1);
    collect(p, b, -1);
    return entry_of(p);
  }
  constexpr extent multiply(extent a, extent b) {
    if (a.is_number() && b.is_number()) return a.number() * b.number();
    detail::size_polynomial x, y, p;
    collect(x, a, 1);
    collect(y, b, 1);
    for (auto const& m : x.terms)
      for (auto const& n : y.terms) p.add(m * n);
    return entry_of(p);
  }
  /// Returns a / b rounded down. Terms that b divides are divided: (4n + 3) / 2 is 2n + 1.
  constexpr extent divide(extent a, extent b) {
    detail::size_polynomial whole, rest;
    if (!split(a, b, whole, rest)) return intern({size_op::quotient, a, b});
    extent const left = entry_of(rest);
    if (left.is_number() && b.is_number()) whole.add({detail::floor_div(left.number(), b.number())});
    else if (!known_equal(left, 0)) collect(whole, intern({size_op::quotient, left, b}), 1);
    return entry_of(whole);
  }
  /// Returns a modulo b, with the sign of b.
  constexpr extent modulo(extent a, extent b) {
    detail::size_polynomial whole, rest;
    if (!split(a, b, whole, rest)) return intern({size_op::remainder, a, b});
    extent const left = entry_of(rest);
    if (left.is_number() && b.is_number()) return detail::floor_mod(left.number(), b.number());
    return known_equal(left, 0) ? extent(0) : intern({size_op::remainder, left, b});
  }
  constexpr extent least(extent a, extent b) { return choice(size_op::least, a, b); }
  constexpr extent greatest(extent a, extent b) { return choice(size_op::greatest, a, b); }

  /// Decides whether a relation holds for all values of the symbols within their ranges.
  constexpr truth decide(relation is, extent a, extent b, size_range const* symbols) {
    extent const apart_by = subtract(a, b); // before the view, because the table may grow
    return beside_zero(is, view().range(apart_by, symbols));
  }
  /// Decides whether a value relates to 0 as stated, for all values in its range.
  static constexpr truth beside_zero(relation is, size_range const& r) {
    bool const equal = r.least == 0 && r.greatest == 0, apart = r.least > 0 || r.greatest < 0;
    switch (is) {
    case relation::equal:
      return equal ? truth::yes : apart ? truth::no : truth::unknown;
    case relation::unequal:
      return equal ? truth::no : apart ? truth::yes : truth::unknown;
    case relation::less:
      return r.greatest < 0 ? truth::yes : r.least >= 0 ? truth::no : truth::unknown;
    default:
      return r.greatest <= 0 ? truth::yes : r.least > 0 ? truth::no : truth::unknown;
    }
  }

private:
  list<size_expression> all_{};

  constexpr extent intern(size_expression const& x) {
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (all_[k].op == x.op && known_equal(all_[k].a, x.a) && known_equal(all_[k].b, x.b))
        return extent::entry(static_cast<index_t>(k));
    all_.push_back(x);
    return extent::entry(static_cast<index_t>(all_.size()) - 1);
  }
  /// Returns the monomial of a product or of any other entry that is no sum.
  constexpr detail::size_monomial monomial(extent e) const {
    detail::size_monomial m;
    m.times = e.is_number() ? e.number() : 1;
    if (e.is_number()) return m;
    if (size_expression const& x = (*this)[e]; x.op == size_op::product) return monomial(x.a) * monomial(x.b);
    m.factor[m.count++] = static_cast<int>(e.entry());
    return m;
  }
  /// Adds `times` times an expression to a polynomial.
  constexpr void collect(detail::size_polynomial& p, extent e, index_t times) const {
    if (!e.is_number() && (*this)[e].op == size_op::sum) {
      collect(p, (*this)[e].a, times);
      collect(p, (*this)[e].b, times);
      return;
    }
    detail::size_monomial m = monomial(e);
    m.times *= times;
    p.add(m);
  }
  constexpr extent entry_of(detail::size_monomial const& m) {
    if (m.count == 0) return m.times;
    extent e = extent::entry(m.factor[0]);
    for (int k = 1; k < m.count; ++k) e = intern({size_op::product, e, extent::entry(m.factor[k])});
    return m.times == 1 ? e : intern({size_op::product, e, m.times});
  }
  constexpr extent entry_of(detail::size_polynomial const& p) {
    if (p.terms.empty()) return 0;
    extent e = entry_of(p.terms[0]);
    for (std::size_t k = 1; k < p.terms.size(); ++k) e = intern({size_op::sum, e, entry_of(p.terms[k])});
    return e;
  }
  /// Splits `a` into terms that `b` divides, as quotients, and the remaining terms. Returns false if `b` is a sum or 0.
  constexpr bool split(extent a, extent b, detail::size_polynomial& whole, detail::size_polynomial& rest) const {
    if (known_equal(b, 0) || (!b.is_number() && (*this)[b].op == size_op::sum)) return false;
    detail::size_monomial const divisor = monomial(b);
    detail::size_polynomial p;
    collect(p, a, 1);
    for (auto const& m : p.terms) {
      detail::size_monomial q;
      if (m.divide(divisor, q)) whole.add(q);
      else if (divisor.count == 0) { // 7n is 2 * 3n + n
        whole.add(scaled(m, detail::floor_div(m.times, divisor.times)));
        rest.add(scaled(m, detail::floor_mod(m.times, divisor.times)));
      } else rest.add(m);
    }
    return true;
  }
  static constexpr detail::size_monomial scaled(detail::size_monomial m, index_t times) {
    m.times = times;
    return m;
  }
  constexpr extent choice(size_op op, extent a, extent b) {
    extent const apart = subtract(a, b);
    if (apart.is_number()) return (apart.number() < 0) == (op == size_op::least) ? a : b;
    bool const in_order = !a.is_number() && (b.is_number() || a.entry() < b.entry());
    return in_order ? intern({op, a, b}) : intern({op, b, a});
  }
};

} // namespace varve
