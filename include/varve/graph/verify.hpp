// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>
#include <varve/graph/read_sizes.hpp>

namespace varve {

/// What is wrong with a graph.
enum class flaw : unsigned char {
  fine,
  operator_missing,
  operand_out_of_range,
  operand_count,
  operand_of_another_region,
  placeholder_after_operation,
  meta_differs,
  result_out_of_range,
  region_out_of_range,
  function_out_of_range,
  constant_out_of_range,
  size_out_of_range,
  attributes_malformed
};

/// The result of `verify`: the flaw and the node where it was found. Converts to true if there is no flaw.
struct verdict {
  flaw what = flaw::fine;
  int node = -1;
  constexpr explicit operator bool() const { return what == flaw::fine; }
};

namespace detail {
/// The numbers with which symbolic sizes are checked: none, or two sets of samples.
struct checked_sizes {
  size_numbers at[2]{};
  bool admitted[2] = {true, true}; // whether the guards of the graph hold for the samples

  constexpr explicit checked_sizes(graph_view const& g) {
    for (int k = 0; k < 2; ++k) {
      at[k] = sampled_sizes(g, k);
      for (std::size_t i = 0; i < g.sizes.guards; ++i) admitted[k] = admitted[k] && at[k].holds(g.guards[i]);
    }
  }
  constexpr bool knows(node const& n) const {
    bool r = true;
    for (extent s : n.out.sizes) r = r && at[0].knows(s);
    for (int k = 0; k < n.at.count; ++k)
      for (extent s : n.at[k]) r = r && at[0].knows(s);
    return r;
  }
  /// True if `f(attributes, operands, result)` holds for the recorded sizes or, if these are symbolic, for every set of
  /// samples that the guards admit. Defined before its callers because clang requires it.
  template <class F>
  constexpr bool holds(node const& n, list<meta> const& in, F const& f) const {
    if (at[0].empty()) return f(n.at, in.data(), n.out);
    bool r = true;
    for (int k = 0; k < 2; ++k) {
      if (!admitted[k]) continue;
      size_numbers const& sizes = at[k];
      list<meta> numbers = in;
      for (meta& m : numbers) m.sizes = sizes.of(m.sizes);
      r = r && f(sizes.of(n.at), numbers.data(), meta{n.out.type, sizes.of(n.out.sizes)});
    }
    return r;
  }
  /// True if the shape rule of an operator agrees with the recorded meta.
  constexpr bool fits(node const& n, list<meta> const& in) const {
    return holds(
        n, in, [&](attributes const& a, meta const* x, meta const& out) { return n.op->shape(a, x, n.count) == out; });
  }
  /// True if the attributes are as the operator writes them.
  constexpr bool writes(node const& n, list<meta> const& in) const {
    return holds(n, in, [&](attributes const& a, meta const* x, meta const&) { return n.op->checked(a, x) == a; });
  }
};
} // namespace detail

/// Checks a graph of either form: `static_assert(verify(g))` is an ordinary test.
///
/// Operands must come before their users and belong to the same region, and arities must fit. Attributes must be as
/// operators write them. Every operator's own shape rule must agree with the recorded meta. Placeholders must come
/// first and refer to existing arguments, and constants must have elements. Symbolic sizes must be expressions of the
/// graph's table. They must fit for each of two sets of samples that its guards admit.
constexpr verdict verify(graph_view g) {
  int const nodes = static_cast<int>(g.sizes.nodes);
  list<meta> in;
  detail::checked_sizes const sizes(g);
  list<char> number(g.sizes.nodes, 0); // plain numbers and values computed from them alone, which raise no dtype
  for (region const* at = g.regions; at != g.regions + g.sizes.regions; ++at) {
    region const& r = *at;
    if (r.node_first < 0 || r.node_first + r.node_count > nodes || r.result_first < 0 ||
        r.result_first + r.result_count > static_cast<int>(g.sizes.results))
      return {flaw::region_out_of_range, -1};
    for (int n = r.node_first; n < r.node_first + r.node_count; ++n) {
      node const& nd = g.nodes[n];
      if (!nd.op) return {flaw::operator_missing, n};
      if (!sizes.knows(nd)) return {flaw::size_out_of_range, n};
      bool const input = n < r.node_first + r.inputs;
      if (input != (nd.op->kind == op_kind::placeholder)) return {flaw::placeholder_after_operation, n};
      if (input && !(nd.value >= 0 && nd.value < r.inputs)) return {flaw::operand_out_of_range, n};
      if (nd.op->arity >= 0 && nd.op->kind != op_kind::hop && nd.count != nd.op->arity) return {flaw::operand_count, n};
      if (nd.first < 0 || nd.count < 0 || nd.first + nd.count > static_cast<int>(g.sizes.edges))
        return {flaw::operand_out_of_range, n};
      in.clear();
      bool numbers = nd.op->kind == op_kind::constant ? nd.out.sizes.n == 0 : nd.op->kind == op_kind::pointwise;
      for (int k = 0; k < nd.count; ++k) {
        int const o = g.operand(nd, k);
        if (o < 0 || o >= n) return {flaw::operand_out_of_range, n};
        if (o < r.node_first) return {flaw::operand_of_another_region, n};
        in.push_back(g.nodes[o].out);
        in.back().number = number[o] != 0;
        numbers = numbers && number[o];
      }
      number[n] = numbers;
      if (nd.regions_count < 0 || nd.regions_first + nd.regions_count > static_cast<int>(g.sizes.regions))
        return {flaw::region_out_of_range, n};
      if (nd.function >= static_cast<int>(g.function_count) || (nd.function >= 0 && nd.regions_count != 1))
        return {flaw::function_out_of_range, n};
      if (is_array_constant(nd) &&
          !(detail::are_numbers(nd.out.sizes) && nd.value >= 0 &&
            nd.value + static_cast<double>(numel(nd.out.sizes)) <= static_cast<double>(g.sizes.constants)))
        return {flaw::constant_out_of_range, n};
      if (nd.op->checked && !sizes.writes(nd, in)) return {flaw::attributes_malformed, n};
      op_kind const k = nd.op->kind;
      if (nd.op->shape && k != op_kind::placeholder && k != op_kind::constant && k != op_kind::hop &&
          nd.op != &sym_numel_handle && !sizes.fits(nd, in))
        return {flaw::meta_differs, n};
    }
    for (int k = 0; k < r.result_count; ++k) {
      int const o = g.results[r.result_first + k];
      if (o < r.node_first || o >= r.node_first + r.node_count) return {flaw::result_out_of_range, o};
    }
  }
  return {};
}

} // namespace varve
