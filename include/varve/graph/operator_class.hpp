// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string_view>
#include <varve/graph/graph.hpp>

namespace varve {

/// The operators that passes, planning and emission know by name. `data` is a constant of rank > 0. Every other pointwise operator is `pointwise`: its lane kernels say all there is to know.
enum class known : unsigned char {
  placeholder, constant, data, pointwise, add, sub, mul, div, neg, abs, square, cheap, convert,
  sum, amax, amin, argmax, mm, reshape, permute, expand, slice, slice_backward, cat,
  gather, scatter_add, convolution, one_hot, arange, count, cond, scan, getitem, other
};

namespace detail {
struct known_name {
  std::string_view name;
  known what;
};
inline constexpr known_name known_pointwise[] = {
    {"add", known::add}, {"sub", known::sub}, {"mul", known::mul}, {"div", known::div}, {"neg", known::neg}, {"abs", known::abs},
    {"maximum", known::cheap}, {"minimum", known::cheap}, {"where", known::cheap}, {"sign", known::cheap}, {"relu", known::cheap},
    {"square", known::square}, {"lt", known::cheap}, {"le", known::cheap}, {"gt", known::cheap}, {"ge", known::cheap}, {"eq", known::cheap},
    {"ne", known::cheap}};
/// `clone` and `detach` are expansions that expand nothing; `scan`, `map` and `while_loop` are one kind of loop.
inline constexpr known_name known_others[] = {
    {"sum", known::sum}, {"amax", known::amax}, {"amin", known::amin}, {"argmax", known::argmax}, {"mm", known::mm}, {"reshape", known::reshape},
    {"permute", known::permute}, {"expand", known::expand}, {"slice", known::slice}, {"slice_backward", known::slice_backward}, {"cat", known::cat},
    {"gather", known::gather}, {"scatter_add", known::scatter_add}, {"convolution", known::convolution}, {"one_hot", known::one_hot}, {"arange", known::arange}, {"sym_numel", known::count}, {"cond", known::cond}, {"scan", known::scan}, {"map", known::scan}, {"while_loop", known::scan}, {"getitem", known::getitem},
    {"clone", known::expand}, {"detach", known::expand}};
} // namespace detail

/// Which operator a handle is; those of other programs are known by their kind only, whatever they are called.
constexpr known identify(op_handle const& op) {
  if (op.kind == op_kind::placeholder) return known::placeholder;
  if (op.kind == op_kind::constant) return known::constant;
  if (op.kind == op_kind::convert) return known::convert;
  std::string_view const name = op.own ? op.name : "";
  if (op.kind == op_kind::pointwise) {
    for (auto const& k : detail::known_pointwise)
      if (k.name == name) return k.what;
    return known::pointwise;
  }
  for (auto const& k : detail::known_others)
    if (k.name == name) return k.what;
  return known::other;
}

/// `identify` for every node of a graph, each distinct operator looked up once.
constexpr list<known> identify(graph const& g) {
  struct entry {
    op_handle const* op;
    known what;
  };
  list<entry> seen;
  list<known> all(g.nodes.size(), known{});
  known* to = all.data();
  entry const *begin = nullptr, *end = nullptr;
  for (node const& n : g.nodes) {
    entry const* k = begin;
    while (k != end && k->op != n.op) ++k;
    if (k == end) {
      seen.push_back({n.op, identify(*n.op)});
      begin = seen.data(), end = begin + seen.size(), k = end - 1;
    }
    *to++ = k->what == known::constant && n.out.sizes.n > 0 ? known::data : k->what;
  }
  return all;
}

/// Does a node's value lie in memory before the program runs?
constexpr bool is_given(known k) { return k == known::placeholder || k == known::data; }
constexpr bool is_pointwise(known k) { return k >= known::pointwise && k <= known::cheap; }
constexpr bool is_reduction(known k) { return k >= known::sum && k <= known::amin; }
constexpr bool is_view(known k) { return k >= known::reshape && k <= known::cat; }

} // namespace varve
