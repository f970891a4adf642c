// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_names.hpp>
#include <varve/export/c_text.hpp>
#include <varve/export/cpp_text.hpp>
#include <varve/plan/planner.hpp>
#include <varve/plan/sized_program.hpp>

namespace varve::c99 {

/// The sizes of a program that are arguments of the function in C. Plans for the two sets of samples become one plan,
/// whose sizes are numbers or expressions of these arguments (`fusion::program_reader`). The object computes with such
/// sizes and writes them. In C the argument `n` of type `size_t` is the signed number `n_`.
class size_arguments {
public:
  /// The names of the symbols, in the order in which the arguments of the graph mention them.
  std::vector<std::string> names{};
  /// The conditions under which the function is valid.
  list<size_guard> guards{};

  /// Throws `value_error` for names that C does not accept.
  VARVE_COLD size_arguments(graph const& g, std::string const& function, language& words_)
      : words(words_), reader(varve::detail::names_of(g).count) {
    size_expression const* const all = g.expressions.data();
    reader.table = size_table(all, all + g.expressions.size());
    seen.assign(g.expressions.size(), 0);
    for (int k = 0; k < g.regions[0].inputs; ++k)
      for (extent const e : g.nodes[k].out.sizes) find_names(e, function);
    guard_bounds(g);
    for (std::size_t k = 0; k < g.expressions.size(); ++k)
      if (size_expression const x = g.expressions.data()[k];
          (x.op == size_op::quotient || x.op == size_op::remainder) && !x.b.is_number())
        guard({relation::unequal, x.b, 0, 1});
    for (size_guard const& asked : g.guards)
      if (!is_bound(asked)) guard(asked);
  }
  bool empty() const { return names.empty(); }

  /// Plans a function. If it has symbolic sizes, numbers of the plan may be expressions (`fusion::is_run_time`).
  VARVE_COLD fusion::program plan(graph const& f) {
    if (empty()) return fusion::plan(f);
    graph const first = varve::detail::at_sample(f, 0), second = varve::detail::at_sample(f, 1);
    fusion::program p = fusion::plan(first, true);
    fusion::program const q = fusion::plan(second, true);
    fusion::detail::program_reader both{p, q, reader};
    both.run();
    varve::detail::refuse_sizes("emit_c", both.problem);
    list<size_guard> asked;
    fusion::guard_reader{reader, asked}.asked(p.asked, q.asked);
    if (reader.failed) varve::detail::refuse_sizes("emit_c", fusion::sized_problem::size);
    for (size_guard const& a : asked) guard(a);
    return p;
  }

  // ---- arithmetic
  extent sum(extent a, extent b) { return reader.table.add(a, b); }
  extent product(extent a, extent b) { return reader.table.multiply(a, b); }
  extent quotient(extent a, extent b) { return a.is_number() && b.is_number() ? a / b : reader.table.divide(a, b); }
  extent greatest(extent a, extent b) {
    auto at_most = [&](extent x, extent y) {
      return reader.table.decide(relation::less_equal, x, y, bounds) == truth::yes;
    };
    return at_most(a, b) ? b : at_most(b, a) ? a : reader.table.greatest(a, b);
  }
  /// Returns `bytes` rounded up to a multiple of `unit`.
  extent whole_units(extent bytes, index_t unit) { return product(quotient(sum(bytes, unit - 1), unit), unit); }
  extent count(dims const& s) {
    extent n = 1;
    for (extent const d : s) n = product(n, d);
    return n;
  }
  dims strides(dims const& s) {
    dims r = s;
    extent n = 1;
    for (int k = s.n - 1; k >= 0; --k) {
      r[k] = n;
      if (!known_equal(s[k], 0)) n = product(n, s[k]);
    }
    return r;
  }

  /// Makes the number of bytes of `work` a condition, if it may exceed `ptrdiff_t`, also of 32 bits. A size alone does
  /// not: some argument has that many elements.
  void limit_work(extent bytes) {
    if (!bytes.is_number() && most(bytes, false) > INT32_MAX) work = bytes;
  }

  // ---- text
  /// Returns a size in C, in parentheses if it is a factor and needs them.
  std::string operator()(extent n, bool factor = false) const {
    return within(written(n), factor ? binding::product : binding::choice);
  }
  /// Returns the parameters of a function: `size_t n` of the one that is called from outside, `ptrdiff_t n_` of others.
  /// Without types: the arguments of a call, those that `mentioned` says.
  std::string list_of(std::string const& type, bool inner, std::string const* mentioned = nullptr) const {
    std::string s;
    for (std::string const& n : names)
      if (!mentioned || cpp::mentions(*mentioned, n + "_"))
        s += (s.empty() ? "" : ", ") + type + n + (inner ? "_" : "");
    return s;
  }
  /// Returns the name of the parameter for size `n` where a function with this body is defined.
  static std::string parameter(std::string const& n, std::string const& body) {
    return cpp::mentions(body, n) ? n + "_given" : n;
  }
  /// Writes the variables that a body mentions, and the checks of the guards, with the value that is returned if one
  /// fails.
  void begin(std::string const& body, int refused, cpp::writer& out) const {
    cpp::writer rest;
    rest.indent();
    for (size_guard const& g : guards) rest.line("if (" + failure(g) + ") return " + text(refused) + ";");
    if (!known_equal(work, 0))
      rest.line("if (" + in_doubles(work).text + " >= (double)PTRDIFF_MAX) return " + text(refused) + ";");
    for (std::string const& n : names)
      if (bool const used = cpp::mentions(body + rest.text, n + "_"); !used)
        out.line("(void)" + parameter(n, body) + ";");
      else out.line("const ptrdiff_t " + n + "_ = (ptrdiff_t)" + parameter(n, body) + ";");
    out.text += rest.text;
  }
  /// Returns the guards as text for users: "2 <= n, n <= m".
  std::string conditions() const {
    std::string s;
    for (size_guard const& g : guards)
      s += (s.empty() ? "" : ", ") + (known_equal(g.unless, 1) ? "" : view().text(g.unless) + " == 0 or ") +
           view().text(g);
    return s +
           (!known_equal(work, 0) ? std::string(s.empty() ? "" : ", ") + "work has less than PTRDIFF_MAX bytes" : "");
  }
  /// Returns a graph whose sizes are entries of this table, for its text.
  graph shown(graph g) const {
    g.expressions = reader.table;
    return g;
  }

private:
  language& words;
  fusion::size_reader reader;
  size_range bounds[fusion::max_symbols]{};
  extent work = 0;          // its bytes, if they are a condition
  std::vector<char> seen{}; // the expressions, among them the symbols, that arguments mention

  size_view view() const { return reader.table.view(); }
  std::string name_of(extent symbol) const { return view().text(symbol); }
  void find_names(extent e, std::string const& function) {
    if (!e.is_entry() || seen[static_cast<std::size_t>(e.entry())]) return;
    seen[static_cast<std::size_t>(e.entry())] = 1;
    size_expression const x = reader.table[e];
    if (x.op != size_op::symbol) return find_names(x.a, function), find_names(x.b, function);
    std::string const n = name_of(e);
    bool fits = can_be_name(n) && n != function && (n.size() < 2 || n.substr(n.size() - 2) != "_t");
    fits = fits && n != "work";
    if (n.size() > 1 && (n[0] == 'x' || n[0] == 'y')) fits = fits && n.find_first_not_of("0123456789", 1) != n.npos;
    if (!fits)
      refuse::argument_is_invalid(
          "emit_c", ("\"" + n + "\" cannot be the name of a size in C; give the size another name").c_str());
    names.push_back(n);
  }
  /// Adds a guard, unless it holds for all sizes within their bounds.
  void guard(size_guard g) {
    for (extent const e : {g.left, g.right, g.unless}) check_told(e);
    if (reader.table.decide(g.is, g.left, g.right, bounds) == truth::yes) return;
    if (known_equal(g.left, 0)) g.left = part(g.right, true), g.right = part(g.right, false); // n <= m, not 0 <= m - n
    fusion::add_guard(guards, g);
  }
  /// Returns the sum of the terms that are subtracted in a size, or of the others.
  extent part(extent e, bool subtracted) {
    size_expression const x = e.is_entry() ? reader.table[e] : size_expression{size_op::symbol, 0, 0};
    if (x.op == size_op::sum) return sum(part(x.a, subtracted), part(x.b, subtracted));
    return is_negative(e) != subtracted ? extent(0) : subtracted ? product(e, -1) : e;
  }
  /// Refuses a condition on a size that is no argument.
  void check_told(extent e) const {
    if (!e.is_entry()) return;
    size_expression const& x = reader.table[e];
    if (x.op != size_op::symbol) return check_told(x.a), check_told(x.b);
    if (auto const k = static_cast<std::size_t>(e.entry()); k >= seen.size() || !seen[k])
      refuse::argument_is_invalid("emit_c", ("a condition of the program is about the size " + name_of(e) +
                                             ", which data decide; leave its check out of the graph")
                                                .c_str());
  }
  bool is_symbol(extent e) const { return e.is_entry() && reader.table[e].op == size_op::symbol; }
  bool is_bound(size_guard const& g) const {
    return g.is == relation::less_equal && known_equal(g.unless, 1) &&
           ((g.left.is_number() && is_symbol(g.right)) || (is_symbol(g.left) && g.right.is_number()));
  }
  /// Adds the guards that bound a symbol. Without one, a number beyond the range of `ptrdiff_t` is refused.
  void guard_bounds(graph const& g) {
    for (size_guard const& asked : g.guards)
      if (is_bound(asked)) {
        bool const least = asked.left.is_number();
        size_range& r = bounds[reader.table[least ? asked.right : asked.left].a.number()];
        if (least) r.least = (std::max)(r.least, asked.left.number());
        else r.greatest = (std::min)(r.greatest, asked.right.number());
      }
    for (std::size_t k = 0; k < g.expressions.size(); ++k) {
      extent const own = extent::entry(static_cast<index_t>(k));
      if (!is_symbol(own) || !seen[k]) continue;
      size_range& r = bounds[reader.table[own].a.number()];
      r.least = (std::max)(r.least, index_t{0});
      guards.push_back({relation::less_equal, r.least, own, 1});
      if (r.greatest != size_range::unlimited) guards.push_back({relation::less_equal, own, r.greatest, 1});
    }
  }
  expression written(extent e, bool negated = false) const {
    if (e.is_number()) {
      index_t const n = negated ? -e.number() : e.number();
      return {text(n), n < 0 ? binding::unary : binding::atom};
    }
    size_expression const& x = reader.table[e];
    if (negated && (x.op != size_op::product || !x.b.is_number()))
      return {"-" + within(written(e), binding::atom), binding::unary};
    auto both = [&](char const* sign, binding own, binding right) {
      return expression{within(written(x.a), own) + sign + within(written(x.b), right), own};
    };
    switch (x.op) {
    case size_op::symbol:
      return {name_of(e) + "_"};
    case size_op::sum: {
      bool const less = is_negative(x.b);
      return {written(x.a).text + (less ? " - " : " + ") + within(written(x.b, less), binding::product), binding::sum};
    }
    case size_op::product: {
      if (!x.b.is_number()) return both(" * ", binding::product, binding::unary);
      index_t const times = negated ? -x.b.number() : x.b.number();
      if (times == 1) return written(x.a);
      if (times == -1) return {"-" + within(written(x.a), binding::atom), binding::unary};
      return {text(times) + " * " + within(written(x.a), binding::product), binding::product};
    }
    case size_op::quotient:
    case size_op::remainder: {
      bool const divides = x.op == size_op::quotient;
      if (is_natural(x.a, 0) && is_natural(x.b, 1))
        return {both(divides ? " / " : " % ", binding::product, binding::unary).text, binding::sum};
      std::string const f =
          words.own(divides ? "quotient" : "modulo", "ptrdiff_t", dtype::int64, "ptrdiff_t a, ptrdiff_t b",
                    divides ? "return a / b - (a % b != 0 && (a < 0) != (b < 0));"
                            : "return a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b;");
      return {f + "(" + written(x.a).text + ", " + written(x.b).text + ")"};
    }
    default: {
      std::string const a = within(written(x.a), binding::sum), b = within(written(x.b), binding::sum);
      return {"(" + a + (x.op == size_op::least ? " < " : " > ") + b + " ? " + a + " : " + b + ")"};
    }
    }
  }
  /// Returns what a number of bytes cannot exceed. Sizes that are multiplied may be as large as their conditions allow,
  /// others count as 2^16.
  double most(extent e, bool multiplied) const {
    if (e.is_number()) return std::abs(static_cast<double>(e.number()));
    size_expression const& x = reader.table[e];
    switch (x.op) {
    case size_op::symbol: {
      auto const greatest = static_cast<double>(bounds[x.a.number()].greatest);
      return multiplied ? greatest : (std::min)(greatest, 0x1p16);
    }
    case size_op::product:
      multiplied = multiplied || !x.b.is_number();
      return most(x.a, multiplied) * most(x.b, multiplied);
    case size_op::quotient:
    case size_op::remainder:
      return most(x.a, multiplied);
    default:
      return most(x.a, multiplied) + most(x.b, multiplied);
    }
  }
  /// Returns a number of bytes in floating point, which does not overflow. No part of it is greater: terms are added
  /// even where they are subtracted.
  expression in_doubles(extent e) const {
    if (e.is_number()) return {text(std::abs(e.number()))};
    size_expression const& x = reader.table[e];
    if (x.op == size_op::symbol) return {"(double)" + name_of(e) + "_", binding::unary};
    if (x.op == size_op::quotient || x.op == size_op::remainder) return in_doubles(x.a);
    if (x.op != size_op::product) return {in_doubles(x.a).text + " + " + in_doubles(x.b).text, binding::sum};
    if (x.a.is_entry() && reader.table[x.a].op == size_op::quotient && known_equal(reader.table[x.a].b, x.b))
      return in_doubles(x.a); // whole units
    std::string const a = within(in_doubles(x.a), binding::product);
    if (known_equal(x.b, 1) || known_equal(x.b, -1)) return {a, binding::product};
    std::string const b = within(in_doubles(x.b), binding::product);
    return {x.b.is_number() ? b + " * " + a : a + " * " + b, binding::product};
  }
  bool is_negative(extent e) const {
    if (e.is_entry() && reader.table[e].op == size_op::product) e = reader.table[e].b;
    return e.is_number() && e.number() < 0;
  }
  bool is_natural(extent e, index_t least) const { return view().range(e, bounds).least >= least; }
  std::string failure(size_guard const& g) const {
    std::string const a = within(written(g.left), binding::sum), b = within(written(g.right), binding::sum);
    bool const turned = g.left.is_number(); // 2 <= n fails if n < 2
    std::string const s = g.is == relation::equal     ? a + " != " + b
                          : g.is == relation::unequal ? a + " == " + b
                          : turned                    ? b + (g.is == relation::less ? " <= " : " < ") + a
                                                      : a + (g.is == relation::less ? " >= " : " > ") + b;
    return known_equal(g.unless, 1) ? s : within(written(g.unless), binding::sum) + " != 0 && " + s;
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
