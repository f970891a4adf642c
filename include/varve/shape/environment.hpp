// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/shape_recorder.hpp>
#include <varve/shape/size_table.hpp>

#include <string>
#include <utility>
#include <vector>

/// @file
/// Symbolic sizes at run time: symbols, what is known about them, and the conditions under which a program is valid.
namespace varve {

/// Where the number of a symbol comes from when the program runs: size `axis` of input `input`, or an operator on data
/// if `input` is negative.
struct size_source {
  int input = -1, axis = -1;
  bool known() const { return input >= 0; }
  /// Returns the source as text, as in `x0.size(1)`.
  std::string text() const {
    return known() ? "x" + std::to_string(input) + ".size(" + std::to_string(axis) + ")" : "data";
  }
};

/// A symbol: its name, the number that it had when the program was traced, and its range.
struct size_symbol {
  std::string name;
  index_t hint;   // unbacked symbols have none
  bool unbacked;  // its number depends on data
  bool size_like; // a data-dependent size: at least 2 for shape rules, at least 0 when the program runs
  size_range range;
  std::vector<size_source> sources; // all have this number
  bool met = false;                 // true if the hint of an unbacked symbol is the number that data had in one run
};

/// A condition that was decided by hints. The program is valid where it holds.
struct shape_guard {
  size_guard holds;
  char const* op; // the operator that asked; null: the program itself
};
/// A condition on unbacked symbols. The program checks it when it runs, after the last of these symbols has its number.
struct shape_assertion {
  size_guard holds;
  int behind; // number of the last of its symbols
};

/// An environment of symbolic sizes (`ShapeEnv`). It creates symbols, computes with sizes in normal form, decides the
/// conditions of shape rules, and records what the decisions depend on. Once it is destroyed, its sizes cannot be used.
///
/// Symbols stand for sizes of inputs and have hints, the sizes at tracing. Sizes 0 and 1 become numbers, and symbols
/// are at least 2. Sizes with the same hint share one symbol if that is allowed. A relation that follows from ranges
/// and normal forms is decided without a guard. Any other relation is decided by the hints and becomes a guard. `a ==
/// b` replaces a symbol by the other one from then on, and `a < number` narrows its range.
///
/// Unbacked symbols have no hint. A relation that is not known for them throws `data_dependent_error`; the message
/// names the `check` that would make it known.
class shape_environment : public shape_recorder {
public:
  /// Returns a size of an input: a number for 0 and 1, otherwise a symbol. With `duck`, an existing symbol with the
  /// same hint is returned if there is one.
  extent size(index_t hint, size_source const& from = {}, bool duck = true) {
    if (hint == 0 || hint == 1) return hint;
    if (duck)
      for (std::size_t k = 0; k < symbols_.size(); ++k)
        if (!symbols_[k].unbacked && symbols_[k].hint == hint && duck_[k]) {
          symbols_[k].sources.push_back(from);
          return resolved(entry_of(k));
        }
    return add({name_of('s', backed_++), hint, false, false, {2, size_range::unlimited}, {from}}, duck);
  }
  /// Creates a separate symbol for a size of an input, with a range and a name that must be unique here.
  extent named(std::string name, index_t hint, size_range range, size_source const& from) {
    if (range.least < 2) range.least = 2;
    return add({std::move(name), hint, false, false, range, {from}}, false);
  }
  /// Returns what a size is known to be by now: itself, a number, or an expression of other symbols.
  extent known_as(extent e) const { return resolved(e); }
  /// Creates an unbacked symbol, whose number only data determine. `size_like` means a size of a result, as of
  /// `nonzero`.
  extent unbacked(bool size_like = true) {
    constexpr index_t all = size_range::unlimited;
    return add({name_of('u', unbacked_++), 0, true, size_like, {size_like ? 0 : -all, all}, {}}, false);
  }
  /// Creates an unbacked symbol for the size of a result of one of two functions, where data decide which. Its range
  /// covers both ranges.
  extent unbacked_between(size_range const& a, size_range const& b) {
    size_range const r{a.least < b.least ? a.least : b.least, a.greatest > b.greatest ? a.greatest : b.greatest};
    return add({name_of('u', unbacked_++), 0, true, true, r, {}}, false);
  }

  std::vector<size_symbol> const& symbols() const { return symbols_; }
  std::vector<shape_guard> const& guards() const { return guards_; }
  /// Returns the condition by which a symbol became a number, or null.
  shape_guard const* made_number(extent symbol) const {
    for (shape_guard const& g : guards_)
      if (g.holds.is == relation::equal &&
          (mentions(g.holds.left, theirs(symbol)) || mentions(g.holds.right, theirs(symbol))))
        return &g;
    return nullptr;
  }
  std::vector<shape_assertion> const& assertions() const { return assertions_; }
  /// Returns the number that a size had when it was traced. Throws `data_dependent_error` if it depends on data.
  index_t hint(extent e) const {
    extent const x = resolved(e);
    if (has_unbacked(x)) refuse_data_dependent("hint", text(x) + " has no number yet");
    return table_.view().evaluate(theirs(x), hints_.data());
  }
  /// Records the number that an unbacked symbol had in one run, on which decisions may be based (`draft_export`).
  void meet(extent symbol, index_t number) {
    std::size_t const k = index_of(theirs(symbol));
    symbols_[k].met = true, symbols_[k].hint = hints_[k] = number;
  }
  /// True if the number that a size had in that run is known; `number_met` returns it.
  bool is_met(extent e) const {
    extent const x = theirs(resolved(e));
    for (std::size_t k = 0; k < symbols_.size(); ++k)
      if (symbols_[k].unbacked && !symbols_[k].met && mentions(x, extent::entry(places_[k]))) return false;
    return true;
  }
  index_t number_met(extent e) const { return table_.view().evaluate(theirs(resolved(e)), hints_.data()); }
  bool depends_on_data(extent e) const { return has_unbacked(resolved(e)); }
  /// True if it depends on unbacked symbols that are not among the first `known` symbols.
  bool depends_on_data(extent e, std::size_t known) const { return has_unbacked(resolved(e), known); }
  /// Returns the range of a size.
  size_range range(extent e) const { return table_.view().range(theirs(resolved(e)), ranges(false).data()); }

  /// True if a relation is known to hold for all values of the symbols. Records nothing.
  bool statically_known_true(relation is, extent a, extent b) {
    return known(is, resolved(a), resolved(b), false) == truth::yes;
  }
  /// States that a relation holds (`torch._check`). If it follows from known facts, nothing happens. If it depends on
  /// inputs only, it becomes a guard; `value_error` is thrown if it does not hold. If it depends on data, it is checked
  /// when the program runs, and counts as known from then on.
  void check(relation is, extent a, extent b) override;
  /// States that a number is a size: not negative, and for shape rules at least 2 (`torch._check_is_size`).
  void check_is_size(extent a) override;

  /// True if the guards would hold for other numbers of the symbols, in their order. Those of unbacked symbols are
  /// ignored.
  bool hold(index_t const* numbers) const {
    size_view const view = table_.view();
    for (auto const& g : guards_)
      if (!view.holds(g.holds, numbers)) return false;
    for (std::size_t k = 0; k < symbols_.size(); ++k)
      if (!symbols_[k].unbacked && (numbers[k] < symbols_[k].range.least || numbers[k] > symbols_[k].range.greatest))
        return false;
    return true;
  }
  /// Returns the guards in C++, in terms of the sources of their symbols: `x0.size(0) == x1.size(1)`.
  std::vector<std::string> guards_in_cpp() const;

  /// Returns the equalities among the guards that mention a symbol and are not part of the sizes: `n*m == 12`.
  std::vector<std::string> equalities_of(extent symbol) const;

  /// Returns a size as an entry of another table, which receives the symbols that it needs. Such a size may outlive the
  /// environment.
  extent import_into(size_table& to, extent e) const { return imported(to, theirs(resolved(e))); }
  /// Returns a size as an entry of another table without what is known about it. Used for numbers that are read in each
  /// run and may differ there.
  extent import_unresolved(size_table& to, extent e) const { return imported(to, theirs(e)); }
  /// Returns all conditions on which a program depends, as entries of another table: the guards, and that symbols are
  /// at least 2.
  std::vector<size_guard> conditions(size_table& to) const;

  // Operations of `extent`.
  extent combine(size_op op, extent a, extent b) override {
    return ours(table_.combine(op, theirs(resolved(a)), theirs(resolved(b))));
  }
  bool decide(relation is, extent a, extent b) override;
  index_t specialize(extent a) override;
  std::string text(extent a) const override { return table_.view().text(theirs(a)); }

  /// The scope of the operator whose shape rule is running, for guards and messages.
  class asking {
  public:
    asking(shape_environment* e, char const* op) : of_(e), before_(e ? std::exchange(e->op_, op) : nullptr) {}
    asking(asking const&) = delete;
    asking& operator=(asking const&) = delete;
    ~asking() {
      if (of_) of_->op_ = before_;
    }

  private:
    shape_environment* of_;
    char const* before_;
  };

protected:
  static size_guard opposite(relation is, extent a, extent b) {
    using enum relation;
    if (is == equal || is == unequal) return {is == equal ? unequal : equal, a, b};
    return {is == less ? less_equal : less, b, a};
  }

private:
  static extent theirs(extent a) { return a.is_entry() ? extent::entry(a.entry()) : a; }
  extent ours(extent a) const { return a.is_entry() ? here(a.entry()) : a; }
  static std::string name_of(char letter, int k) { return letter + std::to_string(k); }
  extent entry_of(std::size_t k) const { return here(places_[k]); }
  std::size_t index_of(extent symbol) const { return static_cast<std::size_t>(table_[symbol].a.number()); }
  extent add(size_symbol s, bool duck);
  /// Returns a size in which symbols are replaced by what they were found equal to.
  extent resolved(extent e) const {
    if (e.is_entry() && e.environment() != environment()) [[unlikely]]
      refuse_foreign();
    return ours(resolved_here(theirs(e)));
  }
  [[noreturn]] static void refuse_foreign();
  extent resolved_here(extent e) const;
  /// Returns a size in which symbols are replaced by what they equal, except unbacked ones, which are read in each run.
  extent told(extent e) const;
  extent imported(size_table& to, extent e) const;
  bool has_unbacked(extent e, std::size_t first = 0) const;
  /// Decides a relation from ranges and normal forms. For shape rules, sizes that depend on data are at least 2.
  truth known(relation is, extent a, extent b, bool for_shapes) const;
  /// Decides a relation as `known` does, or from relations that were stated or decided before. (A condition of the
  /// program follows from itself, so conditions are judged by `known`.)
  truth known_or_stated(relation is, extent a, extent b, bool for_shapes) const;
  extent difference(extent a, extent b, std::vector<size_range> const& symbols) const;
  size_range range_by_stated(extent apart, std::vector<size_range> const& symbols) const;
  std::vector<size_range> ranges(bool for_shapes) const;
  /// Returns the k-th condition that is known to hold: first those decided by hints, then the stated ones.
  size_guard const& stated(std::size_t k) const {
    return k < guards_.size() ? guards_[k].holds : assertions_[k - guards_.size()].holds;
  }
  std::string condition(size_guard const& g) const { return table_.view().text(g); }
  void guard(size_guard const& g);
  std::string cpp(extent e) const;
  std::string cpp(size_guard const& g) const;
  void learn(relation is, extent a, extent b);
  bool is_symbol(extent e) const { return e.is_entry() && table_[theirs(e)].op == size_op::symbol; }
  struct linear_part {
    extent symbol;
    index_t times, plus;
  };
  linear_part linear(extent e) const;
  bool mentions(extent e, extent symbol) const;
  bool replace(extent symbol, extent by);
  void narrow(extent symbol, index_t least, index_t greatest);
  [[noreturn]] void refuse_data_dependent(char const* op, std::string const& what) const;

  mutable size_table table_;
  std::vector<size_symbol> symbols_;
  std::vector<bool> duck_;
  std::vector<index_t> places_; // of symbols, their entries in the table
  std::vector<index_t> hints_;
  std::vector<std::pair<index_t, extent>> replaced_; // entries of symbols, and what replaces them
  std::vector<shape_guard> guards_;
  std::vector<shape_assertion> assertions_;
  char const* op_ = nullptr;
  int backed_ = 0, unbacked_ = 0;
};

#if VARVE_DEFINES
VARVE_LIBRARY extent shape_environment::add(size_symbol s, bool duck) {
  extent const e = table_.symbol(static_cast<int>(symbols_.size()), symbol(s.name.c_str()));
  places_.push_back(e.entry());
  hints_.push_back(s.hint);
  duck_.push_back(duck);
  symbols_.push_back(std::move(s));
  return ours(e);
}
VARVE_LIBRARY extent shape_environment::resolved_here(extent e) const {
  if (e.is_number() || replaced_.empty()) return e;
  size_expression const x = table_[e];
  if (x.op != size_op::symbol) {
    extent const a = resolved_here(x.a), b = resolved_here(x.b);
    return known_equal(a, x.a) && known_equal(b, x.b) ? e : table_.combine(x.op, a, b);
  }
  for (auto const& [place, by] : replaced_)
    if (place == e.entry()) return resolved_here(by);
  return e;
}
VARVE_LIBRARY extent shape_environment::told(extent e) const {
  if (e.is_number()) return e;
  size_expression const x = table_[e];
  if (x.op == size_op::symbol) return symbols_[index_of(e)].unbacked ? e : resolved_here(e);
  extent const a = told(x.a), b = told(x.b);
  return known_equal(a, x.a) && known_equal(b, x.b) ? e : table_.combine(x.op, a, b);
}
VARVE_LIBRARY extent shape_environment::imported(size_table& to, extent e) const {
  if (!e.is_entry()) return e;
  size_expression const& x = table_[e];
  if (x.op != size_op::symbol) {
    extent const a = imported(to, x.a);
    return to.combine(x.op, a, imported(to, x.b));
  }
  int symbols = 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    size_expression const& known = to.data()[k];
    if (known.op == size_op::symbol && known_equal(known.b, x.b)) return extent::entry(static_cast<index_t>(k));
    symbols += known.op == size_op::symbol;
  }
  return to.symbol(symbols, x.b);
}
VARVE_LIBRARY bool shape_environment::mentions(extent e, extent symbol) const {
  if (e.is_number()) return false;
  size_expression const& x = table_[e];
  if (x.op == size_op::symbol) return known_equal(e, symbol);
  return mentions(x.a, symbol) || mentions(x.b, symbol);
}
VARVE_LIBRARY bool shape_environment::has_unbacked(extent e, std::size_t first) const {
  for (std::size_t k = first; k < symbols_.size(); ++k)
    if (symbols_[k].unbacked && mentions(theirs(e), extent::entry(places_[k]))) return true;
  return false;
}
VARVE_LIBRARY std::vector<size_range> shape_environment::ranges(bool for_shapes) const {
  std::vector<size_range> r;
  for (auto const& s : symbols_) {
    r.push_back(s.range);
    if (for_shapes && s.size_like && r.back().least < 2 && r.back().greatest >= 2) r.back().least = 2;
  }
  return r;
}
VARVE_LIBRARY truth shape_environment::known(relation is, extent a, extent b, bool for_shapes) const {
  std::vector<size_range> const r = ranges(for_shapes);
  truth const t = table_.decide(is, theirs(a), theirs(b), r.data());
  if (t != truth::unknown) return t;
  extent const apart = difference(theirs(a), theirs(b), r);
  return table_.decide(is, apart, 0, r.data());
}
VARVE_LIBRARY truth shape_environment::known_or_stated(relation is, extent a, extent b, bool for_shapes) const {
  if (truth const t = known(is, a, b, for_shapes); t != truth::unknown) return t;
  std::vector<size_range> const r = ranges(for_shapes);
  extent const apart = difference(theirs(a), theirs(b), r);
  if (truth const u = size_table::beside_zero(is, range_by_stated(apart, r)); u != truth::unknown) return u;
  bool const asks_equality = is == relation::equal || is == relation::unequal;
  for (std::size_t k = 0; k < guards_.size() + assertions_.size() && asks_equality; ++k) {
    size_guard const& g = stated(k);
    if (g.is != relation::unequal || !known_equal(g.unless, 1)) continue;
    extent const said = difference(resolved_here(g.left), resolved_here(g.right), r);
    if (known_equal(said, apart) || known_equal(table_.add(said, apart), 0))
      return is == relation::unequal ? truth::yes : truth::no;
  }
  return truth::unknown;
}
/// Divides a difference of sizes by its positive factors. Its relation to 0 stays the same.
VARVE_LIBRARY extent shape_environment::difference(extent a, extent b, std::vector<size_range> const& symbols) const {
  extent apart = table_.subtract(a, b);
  for (std::size_t k = 0; k < symbols_.size(); ++k)
    while (symbols[k].least > 0 && !known_equal(apart, 0) &&
           known_equal(table_.modulo(apart, extent::entry(places_[k])), 0))
      apart = table_.divide(apart, extent::entry(places_[k]));
  return apart;
}
/// Returns the range of a difference of sizes that follows from stated or decided conditions. The difference is written
/// as a stated difference, or its negative, plus a remainder with a known range.
VARVE_LIBRARY size_range shape_environment::range_by_stated(extent apart,
                                                            std::vector<size_range> const& symbols) const {
  using enum relation;
  constexpr index_t all = size_range::unlimited;
  size_range r;
  auto const at_most = [&](index_t n, index_t bound) {
    if (n != all && n + bound < r.greatest) r.greatest = n + bound;
  };
  auto const at_least = [&](index_t n, index_t bound) {
    if (n != -all && n - bound > r.least) r.least = n - bound;
  };
  for (std::size_t k = 0; k < guards_.size() + assertions_.size(); ++k) {
    size_guard const& g = stated(k);
    if (g.is == unequal || !known_equal(g.unless, 1)) continue;
    extent const said = difference(resolved_here(g.left), resolved_here(g.right), symbols); // at most `bound`
    index_t const bound = g.is == less ? -1 : 0;
    extent const rest_of = table_.subtract(apart, said), other_of = table_.add(apart, said); // the table may grow
    size_range const rest = table_.view().range(rest_of, symbols.data()),
                     other = table_.view().range(other_of, symbols.data());
    at_most(rest.greatest, bound), at_least(other.least, bound);
    if (g.is == equal) at_least(rest.least, 0), at_most(other.greatest, 0);
  }
  return r;
}

VARVE_LIBRARY bool shape_environment::decide(relation is, extent a, extent b) {
  a = resolved(a), b = resolved(b);
  truth t = known_or_stated(is, a, b, true);
  // Assuming that a data-dependent size is at least 2 may prove sizes different, but never equal: no run would check
  // it.
  bool const makes_one = (is == relation::equal && t == truth::yes) || (is == relation::unequal && t == truth::no);
  if (makes_one) t = known_or_stated(is, a, b, false);
  if (t != truth::unknown) return t == truth::yes;
  size_guard const asked{is, theirs(a), theirs(b)}, other = opposite(is, theirs(a), theirs(b));
  if (has_unbacked(a) || has_unbacked(b))
    refuse_data_dependent(op_, "whether " + condition(asked) +
                                   " depends on data that are not there; say before it that " + condition(asked) +
                                   " or that " + condition(other) + " (check of the shape environment)");
  bool const holds = detail::holds(is, hint(a), hint(b));
  guard(holds ? asked : other);
  return holds;
}
VARVE_LIBRARY index_t shape_environment::specialize(extent a) {
  a = resolved(a);
  if (a.is_number()) return a.number();
  if (has_unbacked(a))
    refuse_data_dependent(op_,
                          "the size " + text(a) + " is taken for a number, and depends on data that are not there");
  index_t const n = hint(a);
  guard({relation::equal, theirs(a), n});
  return n;
}
VARVE_LIBRARY_MEMBER void shape_environment::check(relation is, extent a, extent b) {
  a = resolved(a), b = resolved(b);
  truth const t = known_or_stated(is, a, b, false);
  if (t == truth::yes) return;
  size_guard const g{is, theirs(a), theirs(b)};
  bool const by_data = has_unbacked(a) || has_unbacked(b);
  if (t == truth::no || (!by_data && !detail::holds(is, hint(a), hint(b))))
    refuse::with<value_error>(("varve: check: " + condition(g) + " does not hold").c_str());
  if (!by_data) return guard(g);
  int last = -1;
  for (std::size_t k = 0; k < symbols_.size(); ++k)
    if (symbols_[k].unbacked &&
        (mentions(g.left, extent::entry(places_[k])) || mentions(g.right, extent::entry(places_[k]))))
      last = static_cast<int>(k);
  assertions_.push_back({g, last});
  learn(is, g.left, g.right);
}
VARVE_LIBRARY void shape_environment::check_is_size(extent a) {
  check(relation::less_equal, 0, a);
  extent const x = theirs(resolved(a));
  if (is_symbol(x)) symbols_[index_of(x)].size_like = true;
}

/// Records a condition that was decided by hints. What it implies for a single symbol is known from then on.
VARVE_LIBRARY void shape_environment::guard(size_guard const& g) {
  for (auto const& old : guards_)
    if (old.holds.is == g.is && known_equal(old.holds.left, g.left) && known_equal(old.holds.right, g.right)) return;
  guards_.push_back({g, op_});
  learn(g.is, g.left, g.right);
}
VARVE_LIBRARY void shape_environment::learn(relation is, extent a, extent b) {
  using enum relation;
  if (is == equal && (replace(a, b) || replace(b, a))) return;
  // d.times * d.symbol + d.plus, compared with 0
  if (linear_part const d = linear(table_.subtract(a, b)); d.times != 0) {
    constexpr index_t all = size_range::unlimited;
    index_t const t = d.times, c = d.plus, at = detail::floor_div(-c, t);
    size_range const& r = symbols_[index_of(d.symbol)].range;
    bool const exact = at * t == -c;
    if (is == equal && exact) replace(d.symbol, at);
    if (is == unequal && exact) narrow(d.symbol, r.least == at ? at + 1 : -all, r.greatest == at ? at - 1 : all);
    if (is != less && is != less_equal) return;
    index_t const zero = is == less ? c + 1 : c; // t * symbol + zero <= 0
    if (t > 0) narrow(d.symbol, -all, detail::floor_div(-zero, t));
    else narrow(d.symbol, -detail::floor_div(-zero, -t), all);
  }
}
/// Splits a size into a multiple of one symbol plus a number; `times` is 0 if it has another form.
VARVE_LIBRARY shape_environment::linear_part shape_environment::linear(extent e) const {
  linear_part r{e, 1, 0};
  if (r.symbol.is_entry() && table_[r.symbol].op == size_op::sum && table_[r.symbol].b.is_number())
    r.plus = table_[r.symbol].b.number(), r.symbol = table_[r.symbol].a;
  if (r.symbol.is_entry() && table_[r.symbol].op == size_op::product && table_[r.symbol].b.is_number())
    r.times = table_[r.symbol].b.number(), r.symbol = table_[r.symbol].a;
  if (!is_symbol(r.symbol)) r.times = 0;
  return r;
}
/// Replaces a symbol by an expression that it equals: a number, an earlier symbol, or a size without unbacked symbols.
/// An unbacked symbol may also be replaced by any backed one.
VARVE_LIBRARY bool shape_environment::replace(extent symbol, extent by) {
  if (!is_symbol(symbol) || mentions(by, symbol)) return false;
  size_symbol const& s = symbols_[index_of(symbol)];
  bool fits = by.is_number() || !has_unbacked(by);
  if (is_symbol(by)) {
    bool const unbacked = symbols_[index_of(by)].unbacked;
    fits = s.unbacked == unbacked ? index_of(by) < index_of(symbol) : s.unbacked;
  }
  if (!fits) return false;
  if (is_symbol(by)) narrow(by, s.range.least, s.range.greatest);
  replaced_.emplace_back(symbol.entry(), by);
  return true;
}
VARVE_LIBRARY void shape_environment::narrow(extent symbol, index_t least, index_t greatest) {
  size_range& r = symbols_[index_of(symbol)].range;
  if (least > r.least) r.least = least;
  if (greatest < r.greatest) r.greatest = greatest;
}
VARVE_COLD VARVE_LIBRARY void shape_environment::refuse_foreign() {
  refuse::with<size_error>(
      "varve: a symbolic size was given to a shape environment that did not make it: a symbolic trace or "
      "fake mode inside of another one; use its environment, or trace inside by make_fx(f)");
}
VARVE_COLD VARVE_LIBRARY void shape_environment::refuse_data_dependent(char const* op, std::string const& what) const {
  refuse::with<data_dependent_error>(
      (std::string("varve: ") + (op ? op : "a program of symbolic sizes") + ": " + what).c_str());
}

VARVE_LIBRARY std::vector<size_guard> shape_environment::conditions(size_table& to) const {
  std::vector<size_guard> r;
  auto const is_used = [&](std::size_t k) { // sizes of a base that is no argument imply nothing
    for (std::size_t e = 0; e < to.size(); ++e)
      if (to.data()[e].op == size_op::symbol && known_equal(to.data()[e].b, table_[extent::entry(places_[k])].b))
        return true;
    return false;
  };
  for (std::size_t k = 0; k < symbols_.size(); ++k) {
    extent const own = extent::entry(places_[k]), size = resolved_here(own); // replaced ones had a range as well
    if (symbols_[k].unbacked || (known_equal(size, own) && !is_used(k))) continue;
    auto const must = [&](extent a, extent b) {
      if (known_equal(size, own) || known(relation::less_equal, a, b, false) != truth::yes)
        r.push_back({relation::less_equal, imported(to, a), imported(to, b)});
    };
    must(symbols_[k].range.least, size);
    if (symbols_[k].range.greatest != size_range::unlimited) must(size, symbols_[k].range.greatest);
  }
  for (auto const& g : guards_) { // equalities that replaced a symbol are part of the sizes
    extent const left = resolved_here(g.holds.left), right = resolved_here(g.holds.right);
    if (known(g.holds.is, left, right, false) != truth::yes)
      r.push_back({g.holds.is, imported(to, left), imported(to, right)});
  }
  for (std::size_t k = 0; k < symbols_.size(); ++k)
    if (symbols_[k].unbacked && symbols_[k].size_like && is_used(k))
      r.push_back({relation::less_equal, 0, imported(to, extent::entry(places_[k]))});
  for (auto const& a : assertions_) {
    extent const left = told(a.holds.left), right = told(a.holds.right);
    bool all = true;
    for (std::size_t k = 0; k < symbols_.size(); ++k) {
      extent const symbol = extent::entry(places_[k]);
      all = all && (is_used(k) || !(mentions(left, symbol) || mentions(right, symbol)));
    }
    if (all) r.push_back({a.holds.is, imported(to, left), imported(to, right)});
  }
  return r;
}
VARVE_LIBRARY std::string shape_environment::cpp(extent e) const {
  if (e.is_number()) return std::to_string(e.number());
  size_expression const& x = table_[e];
  auto const call = [&](char const* f) { return std::string(f) + "(" + cpp(x.a) + ", " + cpp(x.b) + ")"; };
  switch (x.op) {
  case size_op::symbol: {
    size_symbol const& s = symbols_[index_of(e)];
    return s.sources.empty() || !s.sources[0].known() ? s.name : s.sources[0].text();
  }
  case size_op::sum:
    return "(" + cpp(x.a) + " + " + cpp(x.b) + ")";
  case size_op::product:
    return cpp(x.a) + " * " + cpp(x.b);
  case size_op::quotient:
    return call("floor_div");
  case size_op::remainder:
    return call("floor_mod");
  case size_op::least:
    return call("min");
  default:
    return call("max");
  }
}
VARVE_LIBRARY std::string shape_environment::cpp(size_guard const& g) const {
  constexpr char const* signs[] = {" == ", " != ", " < ", " <= "};
  return cpp(g.left) + signs[static_cast<int>(g.is)] + cpp(g.right);
}
VARVE_LIBRARY std::vector<std::string> shape_environment::equalities_of(extent symbol) const {
  std::vector<std::string> r;
  for (auto const& g : guards_) {
    extent const left = resolved_here(g.holds.left), right = resolved_here(g.holds.right), s = theirs(symbol);
    if (g.holds.is == relation::equal && (mentions(left, s) || mentions(right, s)) &&
        known(relation::equal, left, right, false) != truth::yes)
      r.push_back(condition({relation::equal, left, right}));
  }
  return r;
}
VARVE_LIBRARY std::vector<std::string> shape_environment::guards_in_cpp() const {
  std::vector<std::string> r;
  for (std::size_t k = 0; k < symbols_.size(); ++k) {
    size_symbol const& s = symbols_[k];
    if (s.unbacked) continue;
    std::string const place = cpp(extent::entry(places_[k]));
    for (std::size_t q = 1; q < s.sources.size(); ++q) r.push_back(s.sources[q].text() + " == " + place);
    extent const own = extent::entry(places_[k]), size = resolved_here(own);
    if (!known_equal(size, own) && known(relation::less_equal, s.range.least, size, false) == truth::yes &&
        (s.range.greatest == size_range::unlimited ||
         known(relation::less_equal, size, s.range.greatest, false) == truth::yes))
      continue; // its guard defines it
    r.push_back(std::to_string(s.range.least) + " <= " + place);
    if (s.range.greatest != size_range::unlimited) r.push_back(place + " <= " + std::to_string(s.range.greatest));
  }
  for (auto const& g : guards_) {
    bool const a_range = (is_symbol(g.holds.left) && g.holds.right.is_number()) ||
                         (g.holds.left.is_number() && is_symbol(g.holds.right));
    if (!a_range || g.holds.is == relation::equal || g.holds.is == relation::unequal) r.push_back(cpp(g.holds));
  }
  return r;
}
#endif

} // namespace varve
