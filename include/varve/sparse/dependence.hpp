// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/where.hpp>
#include <varve/sparse/known_elements.hpp>
#include <varve/sparse/set_rules.hpp>

/// @file
/// Carries sets of indices through a graph: for each element of a value, the elements of one input on which it may
/// depend. Rules follow the classes of operators (`planned_as`) and what their rules state (`operator_reach`). An
/// operator with neither may read every element. Integers and booleans carry nothing, because no derivative passes
/// through them.
namespace varve::detail {

/// The sets of all results of a node with functions. If `all` is not -1, every element of every result has that set.
struct call_sets {
  list<element_sets> of{};
  int all = -1;
};

/// Carries sets through a graph. `run` returns the sets of each result.
class dependence {
public:
  /// Makes a walk of a graph with sets of the numbers below `n`.
  constexpr dependence(graph const& g, int n, floating_constants numbers)
      : sets(n), g_(g), what_(identify(g)), numbers_(numbers), rule_{sets} {}
  index_sets sets;

  /// Returns the sets of the results. `inputs` are the sets of the inputs, and `known` the inputs whose elements are
  /// known.
  constexpr list<element_sets> run(list<element_sets> const& inputs, list<known_elements> const& known) {
    return of_region(g_.regions[0], inputs, known);
  }

private:
  /// One run of a function: the sets of its nodes, each either its own or those of another node.
  struct frame {
    constexpr frame(graph const& g, region const& r_, list<operator_class> const& what,
                    list<known_elements> const& inputs, floating_constants numbers)
        : r(r_), known(g, r_, what, inputs, numbers) {}
    region const& r;
    constant_values known;
    list<element_sets> of{};
    list<int> same{}; // the node whose sets a node has; -1 for none
    list<call_sets> calls{};
    list<int> call_of{};
  };
  graph const& g_;
  list<operator_class> what_;
  floating_constants numbers_;
  set_rules rule_;
  static constexpr index_t most_visits = 2'000'000; // of nodes, for a loop that is followed step by step

  constexpr node const& at(int n) const { return g_.nodes[n]; }
  constexpr int operand(node const& nd, int k) const { return g_.edges[nd.first + k]; }
  constexpr dims const& sizes(int n) const { return g_.nodes[n].out.sizes; }
  static constexpr element_sets const* sets_of(frame const& f, int n) {
    int const s = f.same[n - f.r.node_first];
    return s < 0 ? nullptr : &f.of[s];
  }

  constexpr list<element_sets> of_region(region const& r, list<element_sets> const& inputs,
                                         list<known_elements> const& known) {
    frame f(g_, r, what_, known, numbers_);
    f.of.resize(static_cast<std::size_t>(r.node_count));
    f.same.assign(static_cast<std::size_t>(r.node_count), -1);
    f.call_of.assign(static_cast<std::size_t>(r.node_count), -1);
    for (int n = r.node_first; n < r.node_first + r.node_count; ++n) visit(f, n, inputs);
    list<element_sets> results;
    element_sets const none;
    for (int k = 0; k < r.result_count; ++k) {
      element_sets const* const s = sets_of(f, g_.results[r.result_first + k]);
      if (s) results.push_back(*s);
      else results.push_back(none);
    }
    return results;
  }
  constexpr void visit(frame& f, int n, list<element_sets> const& inputs) {
    node const& nd = at(n);
    int const k = n - f.r.node_first;
    if (nd.op == &placeholder_handle) {
      auto const which = static_cast<std::ptrdiff_t>(nd.value);
      if (which < static_cast<std::ptrdiff_t>(inputs.size()) && !inputs[which].empty())
        f.of[k] = inputs[which], f.same[k] = k;
      return;
    }
    if (nd.op == &getitem_handle) return take_result(f, n, f.call_of[operand(nd, 0) - f.r.node_first]);
    bool any = false;
    for (int e = 0; e < nd.count; ++e) any = any || sets_of(f, operand(nd, e));
    if (!any) return;
    if (nd.regions_count > 0 || nd.function >= 0) {
      f.call_of[k] = static_cast<int>(f.calls.size());
      call_sets const call = of_call(f, nd);
      f.calls.push_back(call);
      if (f.calls.back().of.size() < 2) take_result(f, n, f.call_of[k]);
      return;
    }
    if (nd.op->kind == op_kind::mutation) {
      if (&f.r == &g_.regions[0]) return; // a functional graph writes into its inputs at its end
      refuse::argument_is_invalid("sparsity", "a function of an operator (a loop or a branch) writes in place, which "
                                              "cannot be followed; write it without");
    }
    if (!has_derivatives(nd.out.type)) return;
    require_numbers(nd.out.sizes);
    if (keeps_order(nd, what_[n])) {
      f.same[k] = f.same[operand(nd, 0) - f.r.node_first];
      return;
    }
    element_sets now = of_operator(f, n);
    f.of[k].swap(now);
    if (!f.of[k].empty()) f.same[k] = k;
  }
  static constexpr void require_numbers(dims const& s) {
    for (int d = 0; d < s.n; ++d) (void)count_of_rows(s[d]);
  }
  constexpr void take_result(frame& f, int n, int call) {
    node const& nd = at(n);
    if (call < 0 || !has_derivatives(nd.out.type)) return;
    call_sets const& c = f.calls[call];
    int const k = n - f.r.node_first;
    index_t const which = nd.op == &getitem_handle ? nd.at[0][0].number() : 0;
    require_numbers(nd.out.sizes);
    if (c.all >= 0) f.of[k].assign(static_cast<std::size_t>(numel(nd.out.sizes).number()), c.all);
    else if (which < static_cast<index_t>(c.of.size())) f.of[k] = c.of[which];
    if (!f.of[k].empty() && static_cast<index_t>(f.of[k].size()) != numel(nd.out.sizes))
      refuse::argument_is_invalid("sparsity", "the number of steps of a loop, and so a size, depends on data");
    if (!f.of[k].empty()) f.same[k] = k;
  }

  // --- operators
  constexpr element_sets of_operator(frame& f, int n) {
    node const& nd = at(n);
    operator_class const k = what_[n];
    int const first = operand(nd, 0);
    element_sets const* const x = sets_of(f, first);
    if (is_pointwise(k) || nd.op->reach == operator_reach::element) return elementwise(f, n);
    if (is_reduction(k)) return rule_.reduced(*x, sizes(first), mask_of(nd.at[0]));
    if (view_map const v = view_of(nd, k, sizes(first)); v.is)
      return set_rules::read(*x, nd.out.sizes, v.strides, v.offset);
    switch (k) {
    case operator_class::slice_backward:
      return written(*x, nd.out.sizes, sizes(first), place_of_slice(nd));
    case operator_class::cat:
      return joined(f, nd);
    case operator_class::gather:
      if (!x) return {};
      return rule_.gathered(*x, sizes(first), axis_of(nd), nd.out.sizes, f.known.of(operand(nd, 1)));
    case operator_class::scatter_add:
      return scattered(f, nd);
    case operator_class::mm:
      return product(f, nd);
    case operator_class::convolution:
      return rule_.convolution(x, sets_of(f, operand(nd, 1)), sizes(first), sizes(operand(nd, 1)), nd.out.sizes, nd.at);
    case operator_class::one_hot:
    case operator_class::argmax:
    case operator_class::arange:
    case operator_class::count:
      return {};
    default:
      return of_reach(f, n);
    }
  }
  static constexpr int axis_of(node const& nd) { return static_cast<int>(nd.at[0][0].number()); }
  static constexpr unsigned mask_of(dims const& axes) {
    unsigned r = 0;
    for (extent a : axes) r |= 1u << a.number();
    return r;
  }
  /// The elements at the same place of each operand. A product with a known 0 depends on nothing there; of `where`, a
  /// known condition selects one operand.
  constexpr element_sets elementwise(frame& f, int n) {
    node const& nd = at(n);
    element_sets r;
    int dependent = -1, operands = 0;
    for (int e = 0; e < nd.count; ++e)
      if (sets_of(f, operand(nd, e))) dependent = e, ++operands;
    if (nd.op == &handle<where_t> && f.known.are_known(operand(nd, 0)))
      if (known_elements const& which = f.known.of(operand(nd, 0))) return selected(f, nd, which);
    for (int e = 0; e < nd.count; ++e)
      if (element_sets const* const x = sets_of(f, operand(nd, e))) {
        element_sets const part = set_rules::broadcast(*x, sizes(operand(nd, e)), nd.out.sizes);
        rule_.unite_into(r, part);
      }
    if (what_[n] == operator_class::mul && operands == 1 && f.known.are_known(operand(nd, 1 - dependent)))
      if (known_elements const& by = f.known.of(operand(nd, 1 - dependent)))
        for_each_position(nd.out.sizes, broadcast_strides(sizes(operand(nd, 1 - dependent)), nd.out.sizes), 0,
                          [&](index_t i, index_t p) { r[i] = by[p] == 0 ? index_sets::empty : r[i]; });
    return r;
  }
  constexpr element_sets selected(frame& f, node const& nd, known_elements const& which) {
    element_sets r(static_cast<std::size_t>(numel(nd.out.sizes).number()), 0);
    list<char> first;
    for_each_position(nd.out.sizes, broadcast_strides(sizes(operand(nd, 0)), nd.out.sizes), 0,
                      [&](index_t, index_t p) { first.push_back(which[p] != 0); });
    for (int e = 1; e < 3; ++e)
      if (element_sets const* const x = sets_of(f, operand(nd, e)))
        for_each_position(nd.out.sizes, broadcast_strides(sizes(operand(nd, e)), nd.out.sizes), 0,
                          [&](index_t k, index_t p) { r[k] = (e == 1) == (first[k] != 0) ? (*x)[p] : r[k]; });
    return r;
  }
  /// Elements at a region of a value of which the others depend on nothing. Elements at one place are united.
  constexpr element_sets written(element_sets const& part, dims const& out, dims const& sizes, view_map const& to) {
    element_sets r(static_cast<std::size_t>(numel(out).number()), index_sets::empty);
    for_each_position(sizes, to.strides, to.offset, [&](index_t k, index_t p) { r[p] = sets.unite(r[p], part[k]); });
    return r;
  }
  /// The first operand with a region replaced by the second; either may depend on nothing.
  constexpr element_sets replaced(frame const& f, node const& nd) {
    element_sets const *const x = sets_of(f, operand(nd, 0)), *const part = sets_of(f, operand(nd, 1));
    element_sets r;
    if (x) r = *x;
    else r.assign(static_cast<std::size_t>(numel(nd.out.sizes).number()), index_sets::empty);
    for_each_position(sizes(operand(nd, 1)), nd.at[0], nd.at[1][0].number(),
                      [&](index_t k, index_t p) { r[p] = part ? (*part)[k] : index_sets::empty; });
    return r;
  }
  constexpr element_sets joined(frame const& f, node const& nd) {
    dims const strides = contiguous_strides(nd.out.sizes);
    int const axis = axis_of(nd);
    element_sets r = set_rules::all_of(numel(nd.out.sizes), index_sets::empty);
    index_t offset = 0;
    for (int e = 0; e < nd.count; ++e) {
      dims const& s = sizes(operand(nd, e));
      if (element_sets const* const x = sets_of(f, operand(nd, e)))
        for_each_position(s, strides, offset, [&](index_t k, index_t p) { r[p] = (*x)[k]; });
      offset += s[axis].number() * strides[axis].number();
    }
    return r;
  }
  constexpr element_sets scattered(frame& f, node const& nd) {
    int const index = operand(nd, 1), source = operand(nd, 2);
    return rule_.scattered(sets_of(f, operand(nd, 0)), sets_of(f, source), nd.out.sizes, sizes(source), axis_of(nd),
                           sizes(index), f.known.of(index));
  }
  constexpr element_sets product(frame& f, node const& nd) {
    int const a = operand(nd, 0), b = operand(nd, 1);
    return rule_.product({sets_of(f, a), &f.known.of(a), sizes(a), nd.at[0][0] != 0},
                         {sets_of(f, b), &f.known.of(b), sizes(b), nd.at[0][1] != 0}, nd.out.sizes);
  }
  /// Operators without a class, by what their rules state.
  constexpr element_sets of_reach(frame& f, int n) {
    node const& nd = at(n);
    dims const& out = nd.out.sizes;
    element_sets const* const x = sets_of(f, operand(nd, 0));
    if (nd.op == &handle<as_strided_backward_t>)
      return written(*x, out, sizes(operand(nd, 0)), {true, nd.at[1], nd.at[2][0].number()});
    if (nd.op == &handle<as_strided_scatter_t>) return replaced(f, nd);
    if (nd.op->reach == operator_reach::scattered) return scattered(f, nd);
    element_sets r;
    for (int e = 0; e < nd.count; ++e)
      if (element_sets const* const v = sets_of(f, operand(nd, e))) {
        element_sets const part = of_operand(nd, *v, sizes(operand(nd, e)), sizes(operand(nd, 0)));
        rule_.unite_into(r, part);
      }
    return r;
  }
  constexpr element_sets of_operand(node const& nd, element_sets const& x, dims const& s, dims const& first) {
    dims const& out = nd.out.sizes;
    bool const lines = nd.at.count > 0 && nd.at[0].n == 1 && s.n > 0 && known_equal(s, out);
    if (nd.op->reach == operator_reach::axis && lines) return rule_.spread(x, s, 1u << axis_of(nd), out);
    if (nd.op->reach == operator_reach::earlier && lines)
      return rule_.running(x, s, axis_of(nd), nd.at.count > 1 && nd.at[1].n > 0 && nd.at[1][0] != 0);
    int const leading = first.n - 2;
    if (nd.op->reach == operator_reach::matrix && leading >= 0 && s.n >= leading && out.n >= leading &&
        known_equal(s.sub(0, leading), out.sub(0, leading)))
      return of_matrices(x, s, leading, out);
    int const whole = rule_.everything(x);
    return set_rules::all_of(numel(out), whole);
  }
  constexpr element_sets of_matrices(element_sets const& x, dims const& s, int leading, dims const& out) {
    index_t const batches = numel(s.sub(0, leading)).number();
    element_sets r;
    if (batches == 0) return r;
    index_t const each = static_cast<index_t>(x.size()) / batches, made = numel(out).number() / batches;
    for (index_t b = 0; b < batches; ++b) {
      int const whole = sets.unite(x.data() + b * each, x.data() + (b + 1) * each);
      for (index_t k = 0; k < made; ++k) r.push_back(whole);
    }
    return r;
  }

  // --- operators with functions
  /// Unites the results of all functions. A loop is followed step by step if it is short and always makes all steps;
  /// else until no set grows. A call with a derivative of its own may depend on everything.
  constexpr call_sets of_call(frame& f, node const& nd) {
    call_sets r;
    int const from = nd.op->hop.given_from;
    region const* const first = g_.regions.data() + nd.regions_first;
    if (nd.function >= 0 || from < 0 || nd.regions_count == 0 || first->inputs + from > nd.count) {
      int all = index_sets::empty;
      for (int e = 0; e < nd.count; ++e)
        if (element_sets const* const x = sets_of(f, operand(nd, e))) all = sets.unite(all, rule_.everything(*x));
      r.all = all;
      return r;
    }
    list<element_sets> in;
    list<known_elements> known;
    element_sets const none; // named, as all lists are: g++ 12 loses temporaries that own storage
    known_elements const unknown;
    for (int e = from; e < nd.count; ++e) {
      element_sets const* const x = sets_of(f, operand(nd, e));
      if (x) in.push_back(*x);
      else in.push_back(none);
      if (f.known.are_known(operand(nd, e))) known.push_back(f.known.of(operand(nd, e)));
      else known.push_back(unknown);
    }
    if (nd.op->hop.carried) {
      list<element_sets> of_steps = of_loop(nd, *first, in, known);
      r.of.swap(of_steps);
      return r;
    }
    list<element_sets> of_first = of_region(*first, in, known);
    r.of.swap(of_first);
    for (int k = 1; k < nd.regions_count; ++k) {
      list<element_sets> const other = of_region(first[k], in, known);
      for (std::ptrdiff_t q = 0; q < static_cast<std::ptrdiff_t>(r.of.size()); ++q) unite_results(r.of[q], other[q]);
    }
    return r;
  }
  constexpr void unite_results(element_sets& a, element_sets const& b) {
    if (!b.empty()) rule_.unite_into(a, b);
  }
  struct loop_form {
    int carried, scanned;
    index_t steps; // 0 if a walk of the rows may end early
    bool reverse;
  };
  constexpr list<element_sets> of_loop(node const& nd, region const& step, list<element_sets> const& in,
                                       list<known_elements> known) {
    loop_form l{static_cast<int>(nd.at[0][0].number()), static_cast<int>(nd.at[0][1].number()), 0,
                nd.at[0].n > 2 && nd.at[0][2] != 0};
    bool const counted = nd.at[0].n > 3 && nd.at[0][3] != 0;
    if (nd.at.count > 1 && !counted && nd.regions_count == 1 && l.scanned > 0) l.steps = nd.at[1][0].number();
    known_elements const unknown;
    for (int k = 0; k < l.carried + l.scanned && k < static_cast<int>(known.size()); ++k) known[k] = unknown;
    if (l.steps > 0 && l.steps * step.node_count <= most_visits) return by_steps(step, l, in, known);
    return by_growth(step, l, in, known, nd.at.count > 1 ? nd.at[1][0] : extent(0));
  }
  /// Returns row `k` of `n` of the sets of a value.
  static constexpr element_sets row(element_sets const& x, index_t k, index_t n) {
    index_t const length = static_cast<index_t>(x.size()) / n;
    return element_sets(x.data() + k * length, x.data() + (k + 1) * length);
  }
  constexpr list<element_sets> by_steps(region const& step, loop_form const& l, list<element_sets> const& in,
                                        list<known_elements> const& known) {
    list<element_sets> now = in, r(static_cast<std::size_t>(step.result_count), element_sets());
    for (index_t k = 0; k < l.steps; ++k) {
      index_t const at_row = l.reverse ? l.steps - 1 - k : k;
      for (int e = l.carried; e < l.carried + l.scanned; ++e)
        if (!in[e].empty()) {
          element_sets part = row(in[e], at_row, l.steps);
          now[e].swap(part);
        }
      list<element_sets> const y = of_region(step, now, known);
      for (int q = 0; q < l.carried; ++q) now[q] = y[q];
      for (int q = l.carried; q < step.result_count; ++q) put_row(r[q], y[q], at_row, l.steps);
    }
    for (int q = 0; q < l.carried; ++q) r[q] = now[q];
    return r;
  }
  static constexpr void put_row(element_sets& all, element_sets const& x, index_t k, index_t n) {
    if (x.empty()) return;
    index_t const length = static_cast<index_t>(x.size());
    if (all.empty()) all.assign(static_cast<std::size_t>(length * n), index_sets::empty);
    for (index_t e = 0; e < length; ++e) all[k * length + e] = x[e];
  }
  constexpr list<element_sets> by_growth(region const& step, loop_form const& l, list<element_sets> const& in,
                                         list<known_elements> const& known, extent rows) {
    list<element_sets> now = in, r;
    for (int e = l.carried; e < l.carried + l.scanned; ++e)
      if (!in[e].empty()) {
        element_sets rows_of = of_all_rows(step, e, in[e]);
        now[e].swap(rows_of);
      }
    for (bool grown = true; grown;) {
      grown = false;
      list<element_sets> next = of_region(step, now, known);
      r.swap(next);
      for (int q = 0; q < l.carried; ++q) {
        element_sets const before = now[q];
        unite_results(now[q], r[q]);
        grown = grown || !same(before, now[q]);
      }
    }
    for (int q = 0; q < l.carried; ++q) r[q] = now[q];
    index_t const n = rows.is_number() ? rows.number() : 0;
    for (int q = l.carried; q < step.result_count; ++q) {
      element_sets const one = r[q];
      r[q].clear();
      for (index_t k = 0; k < n; ++k)
        for (int const s : one) r[q].push_back(s);
    }
    return r;
  }
  /// Unites the rows of a value that a loop walks through; an input of the step has the size of a row.
  constexpr element_sets of_all_rows(region const& step, int input, element_sets const& x) {
    index_t length = 0;
    for (int n = step.node_first; n < step.node_first + step.node_count; ++n)
      if (at(n).op == &placeholder_handle && static_cast<int>(at(n).value) == input) length = numel(sizes(n));
    set_sums r(length);
    for (index_t k = 0; length > 0 && k < static_cast<index_t>(x.size()); ++k) r.add(k % length, x[k]);
    return r.finish(sets);
  }
  static constexpr bool same(element_sets const& a, element_sets const& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
};

} // namespace varve::detail
