// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

#include <string_view>

/// @file
/// Passes go by the names of varve's operators; those of programs are known by their rules alone, whatever they are
/// called (`op_handle::own`).
namespace varve {

/// The operators that passes, planning and emission know by name. `data` is a constant of rank > 0. Every other
/// pointwise operator is `pointwise`: its lane kernels say all there is to know.
enum class operator_class : unsigned char {
  placeholder,
  constant,
  data,
  pointwise,
  add,
  sub,
  mul,
  div,
  neg,
  abs,
  square,
  cheap,
  convert,
  sum,
  amax,
  amin,
  argmax,
  mm,
  reshape,
  permute,
  expand,
  slice,
  slice_backward,
  cat,
  gather,
  scatter_add,
  convolution,
  one_hot,
  arange,
  count,
  cond,
  scan,
  getitem,
  other
};

namespace detail {
struct known_name {
  std::string_view name;
  operator_class what;
};
inline constexpr known_name known_pointwise[] = {
    {"add", operator_class::add},       {"sub", operator_class::sub},       {"mul", operator_class::mul},
    {"div", operator_class::div},       {"neg", operator_class::neg},       {"abs", operator_class::abs},
    {"maximum", operator_class::cheap}, {"minimum", operator_class::cheap}, {"where", operator_class::cheap},
    {"sign", operator_class::cheap},    {"relu", operator_class::cheap},    {"square", operator_class::square},
    {"lt", operator_class::cheap},      {"le", operator_class::cheap},      {"gt", operator_class::cheap},
    {"ge", operator_class::cheap},      {"eq", operator_class::cheap},      {"ne", operator_class::cheap}};
/// `clone` and `detach` are expansions that expand nothing; `scan`, `map` and `while_loop` are one kind of loop.
inline constexpr known_name known_others[] = {{"sum", operator_class::sum},
                                              {"amax", operator_class::amax},
                                              {"amin", operator_class::amin},
                                              {"argmax", operator_class::argmax},
                                              {"mm", operator_class::mm},
                                              {"reshape", operator_class::reshape},
                                              {"permute", operator_class::permute},
                                              {"expand", operator_class::expand},
                                              {"slice", operator_class::slice},
                                              {"slice_backward", operator_class::slice_backward},
                                              {"cat", operator_class::cat},
                                              {"gather", operator_class::gather},
                                              {"scatter_add", operator_class::scatter_add},
                                              {"convolution", operator_class::convolution},
                                              {"one_hot", operator_class::one_hot},
                                              {"arange", operator_class::arange},
                                              {"sym_numel", operator_class::count},
                                              {"cond", operator_class::cond},
                                              {"scan", operator_class::scan},
                                              {"map", operator_class::scan},
                                              {"while_loop", operator_class::scan},
                                              {"getitem", operator_class::getitem},
                                              {"clone", operator_class::expand},
                                              {"detach", operator_class::expand}};
} // namespace detail

/// Which operator a handle is; those of other programs are known by their kind only, whatever they are called.
constexpr operator_class identify(op_handle const& op) {
  if (op.kind == op_kind::placeholder) return operator_class::placeholder;
  if (op.kind == op_kind::constant) return operator_class::constant;
  if (op.kind == op_kind::convert) return operator_class::convert;
  std::string_view const name = op.own ? op.name : "";
  if (op.kind == op_kind::pointwise) {
    for (auto const& k : detail::known_pointwise)
      if (k.name == name) return k.what;
    return operator_class::pointwise;
  }
  for (auto const& k : detail::known_others)
    if (k.name == name) return k.what;
  return operator_class::other;
}

/// `identify` for every node of a graph, each distinct operator looked up once.
constexpr list<operator_class> identify(graph const& g) {
  struct entry {
    op_handle const* op;
    operator_class what;
  };
  list<entry> seen;
  list<operator_class> all(g.nodes.size(), operator_class{});
  operator_class* to = all.data();
  entry const *begin = nullptr, *end = nullptr;
  for (node const& n : g.nodes) {
    entry const* k = begin;
    while (k != end && k->op != n.op) ++k;
    if (k == end) {
      seen.push_back({n.op, identify(*n.op)});
      begin = seen.data(), end = begin + seen.size(), k = end - 1;
    }
    *to++ = k->what == operator_class::constant && n.out.sizes.n > 0 ? operator_class::data : k->what;
  }
  return all;
}

/// Does a node's value lie in memory before the program runs?
constexpr bool is_given(operator_class k) { return k == operator_class::placeholder || k == operator_class::data; }
/// Is every element of the result one of the operands' elements at the same place?
constexpr bool is_pointwise(operator_class k) { return k >= operator_class::pointwise && k <= operator_class::cheap; }
/// Does it fold elements along axes?
constexpr bool is_reduction(operator_class k) { return k >= operator_class::sum && k <= operator_class::amin; }
/// Does it only change where elements are looked up?
constexpr bool is_view(operator_class k) { return k >= operator_class::reshape && k <= operator_class::cat; }

} // namespace varve
