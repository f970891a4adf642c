// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string_view>
#include <varve/graph/graph.hpp>

namespace varve {

/// The operators that passes, planning and emission know by name. Every other pointwise operator is `pointwise`: its lane kernels say all there is to know.
enum class known : unsigned char {
  placeholder, constant, pointwise, add, sub, mul, div, neg, cheap, convert,
  sum, amax, amin, argmax, mm, reshape, permute, expand, slice, slice_backward, cat,
  gather, scatter_add, one_hot, arange, cond, other
};

namespace detail {
struct known_name {
  op_kind kind;
  std::string_view name;
  known what;
};
inline constexpr known_name known_names[] = {
    {op_kind::pointwise, "add", known::add},         {op_kind::pointwise, "sub", known::sub},
    {op_kind::pointwise, "mul", known::mul},         {op_kind::pointwise, "div", known::div},
    {op_kind::pointwise, "neg", known::neg},         {op_kind::pointwise, "abs", known::cheap},
    {op_kind::pointwise, "maximum", known::cheap},   {op_kind::pointwise, "minimum", known::cheap},
    {op_kind::pointwise, "where", known::cheap},     {op_kind::pointwise, "sign", known::cheap},
    {op_kind::pointwise, "relu", known::cheap},      {op_kind::pointwise, "square", known::cheap},
    {op_kind::pointwise, "lt", known::cheap},        {op_kind::pointwise, "le", known::cheap},
    {op_kind::pointwise, "gt", known::cheap},        {op_kind::pointwise, "ge", known::cheap},
    {op_kind::pointwise, "eq", known::cheap},        {op_kind::pointwise, "ne", known::cheap},
    {op_kind::reduction, "sum", known::sum},         {op_kind::reduction, "amax", known::amax},
    {op_kind::reduction, "amin", known::amin},       {op_kind::reduction, "argmax", known::argmax},
    {op_kind::contraction, "mm", known::mm},         {op_kind::view, "reshape", known::reshape},
    {op_kind::view, "permute", known::permute},      {op_kind::view, "expand", known::expand},
    {op_kind::view, "slice", known::slice},          {op_kind::view, "slice_backward", known::slice_backward},
    {op_kind::join, "cat", known::cat},              {op_kind::indexing, "gather", known::gather},
    {op_kind::indexing, "scatter_add", known::scatter_add}, {op_kind::indexing, "one_hot", known::one_hot},
    {op_kind::factory, "arange", known::arange},     {op_kind::hop, "cond", known::cond}};
} // namespace detail

/// Which operator a handle is.
constexpr known identify(op_handle const& op) {
  if (op.kind == op_kind::placeholder) return known::placeholder;
  if (op.kind == op_kind::constant) return known::constant;
  if (op.kind == op_kind::convert) return known::convert;
  std::string_view const name = op.name;
  for (auto const& k : detail::known_names)
    if ((k.kind == op.kind || op.kind == op_kind::view || op.kind == op_kind::indexing) && k.name == name) return k.what;
  return op.kind == op_kind::pointwise ? known::pointwise : known::other;
}

/// `identify` for every node of a graph, each distinct operator looked up once.
constexpr std::vector<known> identify(graph const& g) {
  std::vector<op_handle const*> seen;
  std::vector<known> what, all;
  all.reserve(g.nodes.size());
  for (node const& n : g.nodes) {
    std::size_t k = 0;
    while (k < seen.size() && seen[k] != n.op) ++k;
    if (k == seen.size()) {
      seen.push_back(n.op);
      what.push_back(identify(*n.op));
    }
    all.push_back(what[k]);
  }
  return all;
}

constexpr bool is_pointwise(known k) { return k >= known::pointwise && k <= known::cheap; }
constexpr bool is_reduction(known k) { return k >= known::sum && k <= known::amin; }
constexpr bool is_view(known k) { return k >= known::reshape && k <= known::cat; }

} // namespace varve
