// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/memory_of.hpp>

#include <cstdint>

/// @file
/// Determines with respect to which of its inputs each result of a graph can be differentiated. Sets of inputs are
/// masks, with bit j for input j. Inputs after the 64th are not tracked.
namespace varve::detail {

using input_masks = list<std::uint64_t>;

inline input_masks masks_of_results(graph const& g, region const& f, input_masks const& given);

/// Returns the input sets of the results of an operator with functions. If the operator does not declare which operands
/// its functions receive, every result depends on every operand.
inline input_masks masks_of_call(graph const& g, node const& nd, input_masks const& operands) {
  std::uint64_t all = 0;
  for (auto const m : operands) all |= m;
  region const* const first = g.regions.data() + nd.regions_first;
  bool const is_loop = nd.op->hop.carried != nullptr;
  std::size_t const from =
      nd.op->hop.given_from < 0 ? operands.size() : static_cast<std::size_t>(nd.op->hop.given_from);
  if (nd.op->hop.given_from < 0 || nd.regions_count == 0 ||
      static_cast<std::size_t>(first->inputs) + from > operands.size())
    return input_masks(64, all);
  input_masks in(operands.begin() + from, operands.end());
  input_masks r = masks_of_results(g, *first, in);
  if (!is_loop) {
    for (int k = 1; k < nd.regions_count; ++k) {
      input_masks const other = masks_of_results(g, first[k], in);
      for (std::size_t q = 0; q < r.size() && q < other.size(); ++q) r[q] |= other[q];
    }
    return r;
  }
  auto const carried = static_cast<std::size_t>(nd.op->hop.carried(nd.at));
  for (bool grown = true; grown; r = masks_of_results(g, *first, in)) {
    grown = false;
    for (std::size_t k = 0; k < carried && k < r.size(); ++k) {
      grown = grown || (r[k] & ~in[k]) != 0;
      in[k] |= r[k];
    }
  }
  for (std::size_t k = 0; k < carried && k < r.size(); ++k) r[k] |= in[k];
  return r;
}
/// Returns the input sets of the results of a function whose inputs have the sets `given`. Dependence through integers
/// and booleans does not count.
inline input_masks masks_of_results(graph const& g, region const& f, input_masks const& given) {
  auto const at = [&](int n) { return static_cast<std::size_t>(n - f.node_first); }; // edges stay within the function
  input_masks of(static_cast<std::size_t>(f.node_count), 0);
  list<input_masks> calls(static_cast<std::size_t>(f.node_count), input_masks());
  auto const mask = [&](int n) { return of[at(n)] | of[at(memory_of(g, n))]; };
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    auto& mine = of[at(n)];
    if (nd.op == &placeholder_handle) mine = given[static_cast<std::size_t>(nd.value)];
    input_masks operands;
    for (int k = 0; k < nd.count; ++k) operands.push_back(mask(g.edges[static_cast<std::size_t>(nd.first + k)]));
    if (nd.op == &getitem_handle) {
      auto const& call = calls[at(g.edges[static_cast<std::size_t>(nd.first)])];
      auto const k = static_cast<std::size_t>(static_cast<index_t>(nd.at[0][0]));
      mine = k < call.size() ? call[k] : operands[0];
    } else {
      for (auto const m : operands) mine |= m;
      if (nd.regions_count > 0) {
        auto& call = calls[at(n)] = masks_of_call(g, nd, operands);
        if (call.size() == 1) mine = call[0];
      }
    }
    bool const several = calls[at(n)].size() > 1;
    if (!several && !has_derivatives(nd.out.type)) mine = 0;
    if (nd.op->kind == op_kind::mutation) of[at(memory_of(g, n))] |= mine;
  }
  input_masks r;
  for (int k = 0; k < f.result_count; ++k) r.push_back(mask(g.results[static_cast<std::size_t>(f.result_first + k)]));
  return r;
}
/// Returns the input sets of the results of a graph whose input `first + k` is operand `first + captured[k]` of a call.
/// Bit j stands for operand j.
template <class Order>
input_masks reached_inputs(graph const& g, Order const& captured, int first) {
  region const& program = g.regions[0];
  input_masks given(static_cast<std::size_t>(program.inputs), 0);
  for (int k = 0; k < program.inputs; ++k) {
    auto const at = static_cast<std::size_t>(k - first);
    int const operand = k < first || at >= captured.size() ? k : first + static_cast<int>(captured[at]);
    if (operand < 64) given[static_cast<std::size_t>(k)] = std::uint64_t{1} << operand;
  }
  return masks_of_results(g, program, given);
}

} // namespace varve::detail
