// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/shape/size_table.hpp>

/// @file
/// Sizes that are known only when a program runs. A function with symbolic sizes is traced and planned twice, for two
/// sets of sample sizes, which are large primes. Every number that differs between the two plans is read back as an
/// expression of the symbols. Tracing and planning therefore compute with plain numbers. They treat a symbolic size as
/// a large size that equals no other.
///
/// An expression consists of constants, products, and sums of the form `c + n * (...)` and `c + a n + b m`. `mean` and
/// sums of constants divide and multiply by a node `sym_numel`.
namespace varve::fusion {

/// The maximum number of symbols of one function.
inline constexpr int max_symbols = 6;
/// The sizes that stand for the symbols in the first and in the second plan. Products of three of them leave room for a
/// static factor of a few thousand. All are 15 modulo 16, and both rows have the same order, so that estimates that
/// count registers prefer the same symbols in both plans.
///
/// No two columns are nearly proportional. Therefore `a + b n + c m` with a constant below two million equals no other
/// such expression in both plans. (The determinant of each pair, divided by the factor 16 that all differences share,
/// is more than twice that.)
inline constexpr index_t samples[2][max_symbols] = {{65551, 70207, 75391, 80527, 86239, 92383},
                                                    {66239, 72431, 79087, 85439, 92639, 100847}};

/// Returns the size from which on the sizes of a function traced for samples `point` are symbolic. It is half a sample,
/// so that the remainder of a symbolic axis after a slice counts as well.
constexpr index_t least_sample(int point) { return samples[point][0] / 2; }
/// True if a number stands for a symbol.
constexpr bool is_sample(index_t size) {
  for (auto const& row : samples)
    for (index_t s : row)
      if (s == size) return true;
  return false;
}

/// Returns the number that stands for entry `k` of the table of sizes in a finished plan.
constexpr index_t run_time_size(int k) { return extent::entry(k).number(); }
constexpr bool is_run_time(extent size) { return size.is_entry(); }
constexpr int entry_of(extent size) { return static_cast<int>(size.entry()); }

/// The names of the symbols of a list of arguments, in order of first occurrence; one more than allowed at most.
struct symbol_names {
  static constexpr int most = max_symbols + 1;
  index_t names[most]{};
  int count = 0;

  constexpr void add(dims const& s) {
    for (extent d : s)
      if (d.is_name() && count < most && find(d.number()) == count) names[count++] = d.number();
  }
  constexpr int find(index_t name) const {
    int k = 0;
    while (k < count && names[k] != name) ++k;
    return k;
  }
  /// Returns sizes with samples in place of names.
  constexpr dims sampled(dims s, int point) const {
    for (int k = 0; k < s.n; ++k)
      if (s[k].is_name()) s[k] = samples[point][find(s[k].number())];
    return s;
  }
};

/// Why the results for the first and the second samples cannot be merged. `writes` means that the function writes into
/// its arguments and was not planned.
enum class sized_problem : unsigned char { none, value, structure, size, many, writes };

/// A reader of pairs of numbers, which become entries of a table. The first entries are the symbols themselves.
struct size_reader {
  size_table table{};
  int symbols;
  bool failed = false; // true after a pair that is no expression of the symbols

  /// A pair that may be read, with its expression. If a table has more than sums and products, only known pairs are
  /// read: at the samples, other expressions may look like sums and products. `is` is no entry if two expressions have
  /// the same pair.
  struct known_pair {
    index_t first, second;
    extent is;
  };
  list<known_pair> known{};
  bool only_known = false;

  constexpr explicit size_reader(int symbols_, index_t const* names = nullptr) : symbols(symbols_) {
    for (int s = 0; s < symbols; ++s) table.symbol(s, names ? names[s] : 0);
  }
  /// Returns the number itself if both are equal, otherwise a number that satisfies `is_run_time`.
  constexpr index_t read(extent first, extent second) {
    if (known_equal(first, second) && !is_run_time(first)) return first.number();
    index_t const found =
        only_known ? known_as(first.number(), second.number()) : expression(first.number(), second.number(), 0);
    failed = failed || found == none;
    return found;
  }
  constexpr void know(index_t first, index_t second, extent is) {
    for (known_pair& k : known)
      if (k.first == first && k.second == second) {
        if (!known_equal(k.is, is)) k.is = none;
        return;
      }
    known.push_back({first, second, is});
  }
  constexpr void read(dims& first, dims const& second) {
    failed = failed || first.n != second.n;
    for (int k = 0; k < first.n && k < second.n; ++k) first[k] = read(first[k], second[k]);
  }

private:
  static constexpr index_t none = -1;
  constexpr index_t known_as(index_t a, index_t b) const {
    for (known_pair const& k : known)
      if (k.first == a && k.second == b) return k.is.is_entry() ? run_time_size(entry_of(k.is)) : none;
    return none;
  }
  /// The greatest constants that are added to an expression of one symbol, of two, of more, and of two in one sum.
  /// Within these limits other numbers are not mistaken for such expressions.
  static constexpr index_t greatest_constant = index_t{1} << 24, great_constant = index_t{1} << 21,
                           moderate_constant = index_t{1} << 16, small_constant = 512;

  constexpr index_t expression(index_t a, index_t b, int depth) {
    if (a == b || depth > 4) return none;
    index_t const most = symbols > 2 ? moderate_constant : symbols > 1 ? great_constant : greatest_constant;
    index_t found = one(a, b, depth, 0); // products first, then the smallest constants
    if (found == none) found = one(a, b, depth, small_constant);
    for (bool const differences : {false, true})
      for (int s = 0; s < symbols && found == none; ++s)
        for (int t = s + 1; t < symbols && found == none; ++t) found = sum(a, b, s, t, differences);
    return found == none ? one(a, b, depth, most) : found;
  }
  /// Returns `r + s (...)` with a constant of at most `most`, if the pair has this form.
  constexpr index_t one(index_t a, index_t b, int depth, index_t most) {
    for (int s = 0; s < symbols; ++s) {
      index_t const p = samples[0][s], q = samples[1][s], r = most == 0 ? 0 : remainder(a, p, b, q);
      if (r > most || r < -most || (a - r) % p != 0 || (b - r) % q != 0) continue;
      index_t const x = (a - r) / p, y = (b - r) / q;
      if (x == y) return kept(r, s, x, 0);
      if (index_t const inner = expression(x, y, depth + 1); inner != none) return kept(r, s, inner, 0);
    }
    return none;
  }
  /// Returns `c + x s + y t`, if the pair has this form.
  constexpr index_t sum(index_t a, index_t b, int s, int t, bool differences) {
    constexpr index_t most = index_t{1} << 40;
    if (a > most || a < -most || b > most || b < -most || (b - a) % 16 != 0) return none;
    index_t const p = samples[0][s], q = samples[0][t], d = (samples[1][s] - p) / 16, e = (samples[1][t] - q) / 16,
                  n = (b - a) / 16; // x d + y e = n
    index_t x = n % e * (inverse(d, e) % e) % e;
    index_t y = (n - x * d) / e;
    index_t const step = e * p - d * q; // change of the constant from one solution to the next
    index_t const c = a - x * p - y * q, k = (2 * c + (c < 0 ? -1 : 1) * (step < 0 ? -step : step)) / (2 * step);
    x += k * e, y -= k * d;
    index_t const r = a - x * p - y * q;
    if (r > small_constant || r < -small_constant || x == 0 || y == 0 || x > great_constant || x < -great_constant ||
        y > great_constant || y < -great_constant)
      return none;
    if (!differences && (x < 0 || y < 0)) return none;
    return kept(r, s, x, table.multiply(table.symbol(t), y));
  }
  /// Returns the inverse of `x` modulo `m`, which are coprime.
  static constexpr index_t inverse(index_t x, index_t m) {
    index_t r = m, next = x % m, u = 0, v = 1;
    while (next != 0) {
      index_t const k = r / next, rest = r - k * next, w = u - k * v;
      r = next, next = rest, u = v, v = w;
    }
    return (u % m + m) % m;
  }
  /// Returns the number of least magnitude that is congruent to `a` modulo the prime `p` and to `b` modulo the prime
  /// `q`.
  static constexpr index_t remainder(index_t a, index_t p, index_t b, index_t q) {
    auto modulo = [](index_t x, index_t m) { return (x % m + m) % m; };
    index_t inverse = 1, base = modulo(p, q); // of p modulo q: p^(q - 2)
    for (index_t e = q - 2; e > 0; e /= 2, base = base * base % q)
      if (e % 2) inverse = inverse * base % q;
    index_t const start = modulo(a, p), r = start + p * (modulo(b - start, q) * inverse % q);
    return 2 * r > p * q ? r - p * q : r;
  }
  /// Returns the entry of `constant + symbol * scale + plus`.
  constexpr index_t kept(index_t constant, int symbol, extent scale, extent plus) {
    extent const product = table.multiply(table.symbol(symbol), scale), sum = table.add(product, plus);
    return run_time_size(static_cast<int>(table.add(sum, constant).entry()));
  }
};

/// Throws `shape_error` for sizes for which the result for samples is not valid.
[[noreturn]] VARVE_COLD inline void refuse_sizes(char const* what, size_view all, size_guard const& g, index_t size) {
  std::string const needs = known_equal(g.left, 0) && g.is == relation::less_equal
                                ? all.text(g.right) + " >= 0; it is " + std::to_string(size)
                                : all.text(g) + "; for these arguments it is not so";
  refuse::with<shape_error>(
      (std::string("varve: ") + what + ": what the function does along a symbolic axis needs " + needs).c_str());
}

} // namespace varve::fusion
