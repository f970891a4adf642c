// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/op/add.hpp>

/// @file
/// The step functions that the rules of `scan` make of a step: all take packs in the order (carried, rows, captured) and give them in the order
/// (carried, outputs).
namespace varve::detail {

/// ... which also gives the carried values it was called with.
template <class F, class C>
struct scan_saving {
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    return joined(spread(f, p), part(p, carried - carried, carried));
  }
};
/// ... on values and tangents side by side; `f` takes and gives first all values, then all tangents.
template <class F, class C, class X>
struct scan_dual {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const c = carried;
    auto const x = rows;
    auto const zero = c - c;
    auto const n = count_of(p);
    auto const at = c + c;
    auto const captured = at + x + x;
    auto const half_of_captured = half(n - captured);
    auto const y = spread(f, joined(part(p, zero, c), part(p, at, at + x), part(p, captured, captured + half_of_captured), part(p, c, at),
                                    part(p, at + x, captured), part(p, captured + half_of_captured, n)));
    auto const m = half(count_of(y));
    return joined(part(y, zero, c), part(y, m, m + c), part(y, c, m), part(y, m + c, m + m));
  }
};
/// ... backwards: carried are the cotangents of what is carried and those of what is captured, rows the carried values before each step, the rows and
/// the cotangents of the outputs. `f` takes operands and cotangents of the results, and gives cotangents of the operands.
template <class F, class C, class X, class V>
struct scan_pull {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  [[no_unique_address]] V captured;
  template <class... P>
  constexpr auto operator()(P const&... a) const {
    auto const p = pack(a...);
    auto const c = carried;
    auto const x = rows;
    auto const zero = c - c;
    auto const n = count_of(p);
    auto const at = c + captured;
    auto const outputs = at + c + x;
    auto const end = n - captured;
    auto const d = spread(f, joined(part(p, at, outputs), part(p, end, n), part(p, zero, c), part(p, outputs, end)));
    auto const sums = tree_map([](auto const& sum, auto const& g) { return add(sum, g); }, part(p, c, at), part(d, c + x, c + x + captured));
    return joined(part(d, zero, c), sums, part(d, c, c + x));
  }
};

} // namespace varve::detail
