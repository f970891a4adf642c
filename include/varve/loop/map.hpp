// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/scan.hpp>

namespace varve {

/// Tag of the higher-order operator `map`.
struct map_t {
  static constexpr auto op_name = "map";
  static constexpr operator_class planned_as = operator_class::scan;
  static constexpr auto backward_name = "MapBackward";
  static constexpr int given_from = 0;
  static constexpr int carried(attributes const& at) { return static_cast<int>(at[0][0]); }
  static constexpr dims lengths(attributes const& at) { return {at[0][1]}; }
  static constexpr hop_signature signature{"(GraphModule f, Tensor[] xs, Tensor[] pos_args) -> Tensor[]", &lengths};
};

/// The rules of `map`, which is a `scan` that carries nothing; so are its mapped form and its derivatives. Its pullback
/// carries the sums of the cotangents of `args` and is a `scan` if there are any.
template <>
struct rules<map_t> : rules<scan_t> {};

namespace detail {
/// A function of rows as a step that carries nothing.
template <class F>
struct map_step {
  [[no_unique_address]] F f;
  template <class X, class... V>
  constexpr auto operator()(std::tuple<> const& nothing, X const& row, V const&... captured) const {
    return std::pair(nothing, f(row, captured...));
  }
};
} // namespace detail

/// Calls `f(x, args...)` for every row x (dimension 0) of the values of the tree `xs`. All values must have the same
/// length, which must not be 0. The args are trees of values and the same for every row. f returns a tree of values, in
/// which leaves may be `none`; the results are stacked along a new dimension 0. Unlike `vmap` it runs row after row, in
/// the memory of one row.
///
/// Every interpreter receives the call as a whole. The gradient is a loop over the rows that sums the gradients of
/// args. If f uses values of transforms, pass them as args or by `closure(f, captured...)`. A trace records one node
/// with one function; `fuse` generates a loop. Errors: lengths that differ; on static values also a length of 0; on
/// tensors also an f that writes into its operands.
///
///     map([](auto row, auto w) { return dot(row, w); }, x, w) // a matrix times a vector
template <class F, class Xs, class... A>
constexpr auto map(F const& f, Xs const& xs, A const&... args) {
  auto const& bare = detail::without_captures(f);
  using step = detail::map_step<std::remove_cvref_t<decltype(bare)>>;
  auto const rows = detail::capturing(step{bare}, detail::joined(std::tuple<A...>(args...), detail::captures_of(f)));
  if constexpr (detail::tree_is_dynamic<Xs>() ||
                detail::tree_is_dynamic<std::remove_cvref_t<decltype(rows.captures)>>())
    return detail::scan_on_tensors<0>(rows, std::tuple<>{}, xs, false).second;
  else return detail::scan_of_values<0>(rows, std::tuple<>{}, xs, false).second;
}

} // namespace varve
