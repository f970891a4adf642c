// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/trace.hpp>

/// @file
/// Functions of higher-order operators are regions of the graph. An outer value that is used inside becomes an input of
/// the region, once. Branches share one list of such inputs: the union over all branches, in one order.
namespace varve {

namespace refuse {
/// Throws one error that lists all values whose shape or dtype differs.
VARVE_COLD inline void values_must_keep_shape_and_dtype(char const* op, meta const* before, meta const* after,
                                                        int count) {
  std::string text = "varve: " + std::string(op) + ": the function must give values of the same metadata as it takes;";
  bool shapes = false;
  for (int k = 0; k < count; ++k) {
    meta const &a = before[k], &b = after[k];
    if (a == b) continue;
    text += " value " + std::to_string(k) + ":";
    if (!(a.sizes == b.sizes))
      text += " sizes " + to_string(a.sizes) + " became " + to_string(b.sizes) + (a.type == b.type ? ";" : ",");
    if (a.type != b.type) text += std::string(" dtype ") + name(a.type) + " became " + name(b.type) + ";";
    shapes = shapes || !(a.sizes == b.sizes);
  }
  text.back() = '.';
  if (shapes) refuse::with<shape_error>(text.c_str());
  refuse::with<dtype_error>(text.c_str());
}
} // namespace refuse

namespace detail {
template <class Tag>
constexpr op_handle make_hop_handle() {
  op_handle h{Tag::op_name, op_kind::hop, -1, &no_shape};
  h.hop.signature = Tag::signature, h.own = declared::by_varve<Tag>();
  if constexpr (requires { Tag::is_call; }) h.hop.is_call = Tag::is_call, h.hop.given_from = Tag::is_call ? 1 : -1;
  if constexpr (requires { Tag::given_from; }) h.hop.given_from = Tag::given_from;
  if constexpr (requires { &Tag::carried; }) h.hop.carried = &Tag::carried;
  if constexpr (requires { Tag::shares_region; }) h.hop.shares_region = Tag::shares_region;
  if constexpr (requires { &Tag::operands_of; }) h.hop.is_composite = true;
  if constexpr (requires { Tag::writes_copy; }) h.hop.writes_copy = Tag::writes_copy;
  if constexpr (requires { Tag::draws_from_state; }) h.hop.draws_from_state = Tag::draws_from_state;
  if constexpr (requires { Tag::planned_as; }) h.planned_as = Tag::planned_as;
  return h;
}
} // namespace detail
/// The handle of a higher-order operator in graphs.
template <class Tag>
inline constexpr op_handle hop_handle = detail::make_hop_handle<Tag>();

namespace detail {
/// Requires that the results of both branches of a `cond` have the same shape and dtype.
constexpr void require_alike(meta const& a, meta const& b) {
  if (!(a.sizes == b.sizes)) refuse::shapes_do_not_match("cond (results of the branches)", a.sizes, b.sizes);
  if (a.type != b.type)
    refuse::dtype_is_not_supported("cond (results of the branches, of different dtypes)", name(b.type));
}
/// Traces a function of values with the given metas into an open builder. Returns the tree of metas of its results.
template <class F, std::size_t... K>
constexpr auto trace_into(graph_builder& b, F const& f, meta const* metas, std::index_sequence<K...>) {
  std::tuple const in{
      proxy{&b, b.input(metas[K]), meta{metas[K].type, metas[K].sizes, false}, 0}...}; // braces: evaluated in order
  auto const y = call_with(f, in);
  tree_for_each(
      [&](auto const& v) {
        if constexpr (level_of<std::remove_cvref_t<decltype(v)>> > 0)
          static_assert(level_of<std::remove_cvref_t<decltype(v)>> < 0,
                        "varve: a function of this operator captures a value that a transform sees; pass it as an "
                        "operand or through closure(f, captured...)");
        else b.result(node_in(b, as_proxy(v, &b)));
      },
      y);
  return tree_map([](auto const& v) { return meta_of(v); }, y);
}
} // namespace detail

/// Traces the two functions of a call into regions of the graph and writes one node with them. What the functions
/// capture of the functions around them become further operands: the union over both, in the same order for both.
template <class Tag, class Op, class P, class... X>
constexpr auto trace_branches(Tag, Op const& op, P const& p, X const&... x) {
  graph_builder& outer = detail::as_proxy(p).builder->current();
  int const pred = detail::node_in(outer, detail::as_proxy(p));
  meta const metas[] = {meta_of(x)..., meta{}};
  graph_builder on_true(&outer);
  auto const shapes = detail::trace_into(on_true, op.on_true, metas, std::index_sequence_for<X...>{});
  on_true.close();
  graph_builder on_false(&outer);
  auto const other = detail::trace_into(on_false, op.on_false, metas, std::index_sequence_for<X...>{});
  on_false.close();
  static_assert(std::is_same_v<decltype(shapes), decltype(other)>,
                "varve: cond: both functions must return the same number of values");
  tree_map([](meta const& a, meta const& b) { return detail::require_alike(a, b), 0; }, shapes, other);
  int operands[1 + sizeof...(X)] = {pred, detail::node_in(outer, detail::as_proxy(x, &outer))...};
  int const id =
      outer.emit_functions(&hop_handle<Tag>, {}, operands, 1 + static_cast<int>(sizeof...(X)), on_true, &on_false);
  int k = 0;
  return tree_map([&](meta const& m) { return proxy{&outer, outer.result_of(id, k++, m), m, 0}; }, shapes);
}

/// Traces the step of a loop. `op.carried` operands are carried, `op.scanned` are walked through along dimension 0, and
/// the rest are captured. If the loop has a condition, it is a second function of the carried and captured values. The
/// attributes of the node are {carried, scanned, reverse, whether it ends after a count}, {greatest number of steps or
/// 0, whether it has outputs}.
template <class Tag, class Op, class... X>
constexpr auto trace_loop(Tag, Op const& op, X const&... x) {
  graph_builder* const nearest = detail::trace_of_all(x...);
  if (!nearest)
    refuse::argument_is_invalid("trace",
                                "a loop over constants alone was met while tracing; pass one of them as an argument");
  graph_builder& outer = *nearest;
  constexpr int carried = decltype(op.carried)::value, scanned = decltype(op.scanned)::value;
  meta metas[] = {meta_of(x)...};
  index_t const n = to_dims(op.length)[0];
  for (int k = 0; k < static_cast<int>(sizeof...(X)); ++k) {
    metas[k].number = false;
    if (k >= carried && k < carried + scanned) metas[k].sizes.erase(0);
  }
  graph_builder step(&outer);
  auto const shapes = detail::trace_into(step, op.f, metas, std::index_sequence_for<X...>{});
  step.close();
  list<meta> after;
  tree_for_each([&](meta const& m) { after.push_back(m); }, shapes);
  if (after.size() < static_cast<std::size_t>(carried))
    refuse::argument_is_invalid(Tag::op_name, "the step gave fewer values than are carried");
  for (int k = 0; k < carried; ++k)
    if (!(after[static_cast<std::size_t>(k)] == metas[k]))
      refuse::values_must_keep_shape_and_dtype(Tag::op_name, metas, after.data(), carried);
  int at = 0;
  auto const result = tree_map(
      [&](meta const& m) {
        int const k = at++;
        if (k < carried) return metas[k];
        meta all = m;
        all.sizes.insert(0, n);
        return all;
      },
      shapes);
  attributes const how(dims{carried, scanned, op.reverse, op.end.counted},
                       dims{n, static_cast<int>(after.size()) > carried});
  int const operands[] = {detail::node_in(outer, detail::as_proxy(x, &outer))...};
  int id = -1;
  if constexpr (Op::end_is_open) {
    graph_builder condition(&outer);
    auto const [go] = detail::trace_into(condition, op.end.condition, metas, std::index_sequence_for<X...>{});
    condition.close();
    if (go.type != dtype::bool_ || go.sizes.n)
      refuse::argument_is_invalid(Tag::op_name, "the condition must give one bool");
    id = outer.emit_functions(&hop_handle<Tag>, how, operands, static_cast<int>(sizeof...(X)), step, &condition);
  } else {
    id = outer.emit_functions(&hop_handle<Tag>, how, operands, static_cast<int>(sizeof...(X)), step);
  }
  int k = 0;
  return tree_map([&](meta const& m) { return proxy{&outer, outer.result_of(id, k++, m), m, 0}; }, result);
}

} // namespace varve
