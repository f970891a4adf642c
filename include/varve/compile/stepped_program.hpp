// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/graph/interpret.hpp>

#include <vector>

/// @file
/// A graph that runs in steps: operators run by their kernels on tensors, and the elementwise operators between them
/// are fused.
namespace varve::detail {

#if VARVE_DEFINES_CAPTURE
/// The division of a graph into steps. An elementwise node belongs to the first level at which all its operands are
/// available. The elementwise nodes of one level form a group. Other operators of a level run before its group.
template <class G>
class steps_of_graph {
public:
  enum class part : unsigned char { given, free, elementwise, single };
  G const& g;
  list<part> is{};
  list<int> level{};
  using nodes_of_level = dependent<std::vector<int>, G>;
  std::vector<nodes_of_level> at_level{};                     // single and elementwise nodes of each level, in order
  list<char> read_outside{};                                  // by operators or other groups, or as a result
  int singles = 0, elementwise = 0, permuted = 0, padded = 0; // numbers of nodes
  bool rearranges = true;                                     // true if all single operators only move elements
  index_t largest = 0;                                        // largest number of elements of a computed value

  explicit steps_of_graph(G const& graph_) : g(graph_), read_outside(graph_.nodes.size(), 0) {
    list<operator_class> const what = identify(g);
    for (int n = 0; n < g.regions[0].node_count; ++n) {
      is.push_back(part_of(what[n]));
      level.push_back(0);
      for (int k = 0; k < g.nodes[n].count; ++k) level[n] = std::max<int>(level[n], least_level(is[n], input(n, k)));
      for (int k = 0; k < g.nodes[n].count; ++k)
        if (int const b = base(input(n, k));
            is[n] == part::single || (is[n] == part::elementwise && level[n] != level[b]))
          read_outside[b] = 1;
      if (is[n] != part::single && is[n] != part::elementwise) continue;
      at_level.resize(std::max<std::size_t>(at_level.size(), static_cast<std::size_t>(level[n]) + 1));
      at_level[static_cast<std::size_t>(level[n])].push_back(n);
      singles += is[n] == part::single;
      elementwise += is[n] == part::elementwise;
      permuted += what[n] == operator_class::permute;
      padded += what[n] == operator_class::slice_backward;
      rearranges = rearranges && (is[n] != part::single || only_moves(what[n]));
      largest = std::max<index_t>(largest, numel(g.nodes[n].out.sizes).number());
    }
    for (int k = 0; k < g.regions[0].result_count; ++k) read_outside[base(result(k))] = 1;
  }
  int input(int n, int k) const { return g.edges[g.nodes[n].first + k]; }
  int result(int k) const { return g.results[g.regions[0].result_first + k]; }
  /// Returns the nanoseconds by which fusing the group of a level is faster than running it operator by operator. Each
  /// operator costs a call, and its result must travel to the cache and back. Rows beside columns are slower in blocks.
  /// The constants were measured on one machine; it matters that small groups do not gain.
  double gain(std::vector<int> const& of_level) const {
    double r = -250;
    for (int n : of_level) {
      if (is[n] != part::elementwise) continue;
      dims const& s = g.nodes[n].out.sizes;
      double const elements = static_cast<double>(numel(s).number()),
                   bytes = elements * static_cast<double>(itemsize(g.nodes[n].out.type)),
                   ways = bytes * (bytes > 1 << 19 ? 0.05 : 0.004);
      r += 25 + (read_outside[n] ? 0 : ways);
      for (int k = 0; k < g.nodes[n].count; ++k) {
        node const& o = g.nodes[base(input(n, k))];
        if (s.n > 1 && o.out.sizes.n > 0 && numel(o.out.sizes) != numel(s))
          r -= 8 * elements / static_cast<double>(s[s.n - 1].number());
      }
    }
    return r;
  }
  /// Returns the node whose elements a reshape or an expansion shows.
  int base(int n) const {
    while (is[n] == part::free) n = input(n, 0);
    return n;
  }

private:
  static part part_of(operator_class k) {
    if (k == operator_class::placeholder || k == operator_class::data || k == operator_class::constant)
      return part::given;
    if (k == operator_class::reshape || k == operator_class::expand) return part::free;
    return is_pointwise(k) || k == operator_class::convert ? part::elementwise : part::single;
  }
  static bool only_moves(operator_class k) {
    return k == operator_class::slice || k == operator_class::slice_backward || k == operator_class::permute ||
           k == operator_class::cat;
  }
  int least_level(part of, int operand) const {
    int const b = base(operand);
    return level[b] + (of != part::elementwise && is[b] == part::elementwise ? 1 : 0);
  }
};

/// The steps of a graph whose operators all have kernels on tensors, ready to run. (Templates, so that they cost
/// nothing unless used.)
template <class G>
class stepped_program {
  using steps = steps_of_graph<G>;
  using part = typename steps::part;

public:
  int fused = 0; // number of fused groups
  std::size_t size() const { return steps_.size(); }

  stepped_program(G const& g, steps const& s) : slots_(s.is.size()) {
    inputs_ = g.regions[0].inputs;
    for (int n = 0; n < g.regions[0].node_count; ++n)
      if (g.nodes[n].op->kind == op_kind::constant)
        constants_.push_back({n, constant_of<dependent<tensor, G>>(g, g.nodes[n])});
    list<char> made(s.is.size(), 0);
    for (auto const& of_level : s.at_level) {
      for (int n : of_level)
        if (s.is[n] == part::single) add(s, n, made);
      if (s.gain(of_level) > 0) add_group(s, of_level, made);
      else
        for (int n : of_level) add(s, n, made);
    }
    for (int k = 0; k < g.regions[0].result_count; ++k) {
      int const r = s.result(k);
      results_.push_back(r);
      add(s, r, made);
      shows_constant_.push_back(g.nodes[memory_of(g, r)].op->kind == op_kind::constant);
    }
    free_early();
  }
  boxed_args operator()(boxed_args const& in) const {
    std::vector<boxed_args> values(slots_);
    for (int k = 0; k < inputs_; ++k) values[static_cast<std::size_t>(k)].push_back(in[k]);
    for (auto const& [n, c] : constants_) values[static_cast<std::size_t>(n)].push_back(c);
    for (step const& s : steps_) {
      boxed_args x;
      for (int n : s.in) x.push_back(values[static_cast<std::size_t>(n)][0]);
      if (!s.table) {
        boxed_args const y = s.fused(x);
        for (int k = 0; k < y.size(); ++k)
          values[static_cast<std::size_t>(s.out[static_cast<std::size_t>(k)])].push_back(y[k]);
      } else values[static_cast<std::size_t>(s.out[0])].push_back(boxed_op{s.table, &s.at}(x));
      for (int n : s.last) values[static_cast<std::size_t>(n)] = boxed_args();
    }
    boxed_args y;
    for (std::size_t k = 0; k < results_.size(); ++k) {
      auto const& v = static_cast<dependent<tensor, G> const&>(values[static_cast<std::size_t>(results_[k])][0]);
      y.push_back(shows_constant_[k] ? clone(v) : v);
    }
    return y;
  }

private:
  struct step {
    fused_graph fused{nullptr};      // for a group
    op_table const* table = nullptr; // for an operator
    attributes at{};
    std::vector<int> in{}, out{}, last{}; // values that are read, computed, and used for the last time
  };
  std::size_t slots_;
  int inputs_ = 0;
  std::vector<std::pair<int, tensor>> constants_{};
  std::vector<int> results_{};
  std::vector<char> shows_constant_{}; // results that are constants of the program, or views of them
  std::vector<step> steps_{};

  /// Adds an operator as a step of its own, after the views that make its operands.
  void add(steps const& s, int n, list<char>& made) {
    if (made[n] || s.is[n] == part::given) return;
    node const& nd = s.g.nodes[n];
    step one;
    for (int k = 0; k < nd.count; ++k) {
      add(s, s.input(n, k), made);
      one.in.push_back(s.input(n, k));
    }
    one.table = table_of(*nd.op);
    one.at = nd.at;
    one.out.push_back(n);
    made[n] = 1;
    steps_.push_back(std::move(one));
  }
  void add_group(steps const& s, std::vector<int> const& of_level, list<char>& made) {
    graph_builder b;
    list<int> now(s.is.size(), -1);
    step one;
    for (int n : of_level)
      if (s.is[n] == part::elementwise)
        for (int k = 0; k < s.g.nodes[n].count; ++k) add_input(s, s.input(n, k), s.level[n], made, now, b, one);
    for (int n : of_level) {
      if (s.is[n] != part::elementwise) continue;
      write(s, n, now, b);
      if (!s.read_outside[n]) continue;
      b.result(now[n]);
      one.out.push_back(n);
      made[n] = 1;
    }
    one.fused = fuse(static_cast<dependent<graph, G>>(static_cast<graph_builder&&>(b).finish()));
    ++fused;
    steps_.push_back(std::move(one));
  }
  /// Makes a value that the group reads from outside an argument of the group. Reshapes and expansions become part of
  /// the group.
  void add_input(steps const& s, int n, int of_level, list<char>& made, list<int>& now, graph_builder& b, step& one) {
    int const from = s.base(n);
    node const& nd = s.g.nodes[from];
    if (now[from] >= 0 || nd.op->kind == op_kind::constant) return;
    if (s.is[from] == part::elementwise && s.level[from] == of_level) return; // belongs to the group
    add(s, from, made);
    now[from] = b.input(nd.out);
    one.in.push_back(from);
  }
  /// Writes a node of a group, with the constants, reshapes and expansions that lead to it.
  int write(steps const& s, int n, list<int>& now, graph_builder& b) {
    if (now[n] >= 0) return now[n];
    node const& nd = s.g.nodes[n];
    if (is_array_constant(nd))
      return now[n] =
                 b.constant(nd.out.type, nd.out.sizes, s.g.constants.data() + static_cast<std::ptrdiff_t>(nd.value));
    if (nd.op->kind == op_kind::constant) return now[n] = b.constant(nd.out.type, nd.value);
    list<int> in;
    for (int k = 0; k < nd.count; ++k) in.push_back(write(s, s.input(n, k), now, b));
    return now[n] = b.add_node(nd.op, nd.at, in.data(), nd.count, nd.out);
  }
  /// Notes after which step each value can be released.
  void free_early() {
    std::vector<char> seen(slots_);
    for (int r : results_) seen[static_cast<std::size_t>(r)] = 1;
    for (auto s = steps_.rbegin(); s != steps_.rend(); ++s)
      for (auto const* all : {&s->in, &s->out})
        for (int n : *all)
          if (!std::exchange(seen[static_cast<std::size_t>(n)], char(1))) s->last.push_back(n);
  }
};
#endif

} // namespace varve::detail
