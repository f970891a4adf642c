// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/some_lanes.hpp>
#include <varve/op/add.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/where.hpp>
#include <varve/trace/region.hpp>

/// @file
/// The step functions that the rules of `scan` derive from a step. All take packs in the order (carried, rows,
/// captured) and return packs in the order (carried, outputs).
namespace varve::detail {

/// A step that also returns the carried values with which it was called.
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
/// Returns all values, then all tangents, of operands in the order (carried, their tangents, rows, their tangents,
/// captured, their tangents).
template <class P, class C, class X>
constexpr auto duals_apart(P const& p, C const& c, X const& x) {
  auto const zero = c - c;
  auto const n = count_of(p);
  auto const at = c + c;
  auto const captured = at + x + x;
  auto const middle = captured + half(n - captured);
  return joined(part(p, zero, c), part(p, at, at + x), part(p, captured, middle), part(p, c, at),
                part(p, at + x, captured), part(p, middle, n));
}
/// A step on values and tangents side by side. `f` takes and returns first all values, then all tangents.
template <class F, class C, class X>
struct scan_dual {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const c = carried;
    auto const zero = c - c;
    auto const y = spread(f, duals_apart(pack(v...), c, rows));
    auto const m = half(count_of(y));
    return joined(part(y, zero, c), part(y, m, m + c), part(y, c, m), part(y, m + c, m + m));
  }
};
/// A step of the pullback, which runs backwards. It carries the cotangents of the carried values and those of the
/// captured ones. Its rows are the carried values before each step, the rows, and the cotangents of the outputs. `f`
/// takes operands and cotangents of the results, and returns cotangents of the operands.
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
    auto const sums = tree_map([](auto const& sum, auto const& g) { return add(sum, g); }, part(p, c, at),
                               part(d, c + x, c + x + captured));
    return joined(part(d, zero, c), sums, part(d, c, c + x));
  }
};

/// A step that counts the steps in its first carried value.
template <class F>
struct counting_step {
  [[no_unique_address]] F f;
  template <class First, class... V>
  constexpr auto operator()(First const& first, V const&... v) const {
    auto const p = pack(first, v...);
    auto const n = count_of(p);
    auto const one = one_of(n);
    return joined(tree_map([](auto const& k) { return add(k, 1); }, part(p, one - one, one)),
                  spread(f, part(p, one, n)));
  }
};
/// A step that receives the number of steps as its first captured value and does not read it.
template <class F, class At>
struct step_without_count {
  [[no_unique_address]] F f;
  [[no_unique_address]] At count; // its position
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    return spread(f, joined(part(p, count - count, count), part(p, count + one_of(count), count_of(p))));
  }
};
/// A step that receives a last captured value and does not read it.
template <class F>
struct step_without_last {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const n = count_of(p);
    return spread(f, part(p, n - n, n - one_of(n)));
  }
};
/// A step of lanes that end at different rows. After the rows it receives the row number, the greatest number of steps
/// of all lanes, and the number of steps of its lane. When a lane is finished, its carried values stay and its outputs
/// are 0.
template <class F, class C, class X>
struct ending_step {
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const zero = carried - carried;
    auto const at = carried + rows;
    auto const row = at + one_of(at);
    auto const own = row + one_of(at);
    auto const going = lt(first_of(part(p, at, row)), first_of(part(p, own, own + one_of(at))));
    auto const y = on_lanes(f, going, joined(part(p, zero, at), part(p, own, count_of(p))));
    return joined(tree_map([&](auto const& now, auto const& before) { return where(going, now, before); },
                           part(y, zero, carried), part(p, zero, carried)),
                  tree_map([&](auto const& now) { return where(going, now, detail::constant_zeros(now)); },
                           part(y, carried, count_of(y))));
  }
};
/// Refuses a body that returns values of other shapes or dtypes than it received; `where` would broadcast and promote
/// them. For static values the compiler checks this.
template <class P, class Q>
constexpr void require_kept(P const& before, Q const& now) {
  list<meta> took, gave;
  bool same = true;
  tree_map(
      [&](auto const& b, auto const& n) {
        if constexpr (!is_ints<decltype(shape_of(b))> || !is_ints<decltype(shape_of(n))>) {
          took.push_back({dtype_of(b), to_dims(shape_of(b))}), gave.push_back({dtype_of(n), to_dims(shape_of(n))});
          same = same && took.back() == gave.back();
        }
        return b;
      },
      before, now);
  if (!same)
    refuse::values_must_keep_shape_and_dtype("while_loop", took.data(), gave.data(), static_cast<int>(took.size()));
}
/// A step of lanes of which some are finished: these keep their carried values.
template <class W, class F, class C>
struct keeping_step {
  [[no_unique_address]] W condition;
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const zero = carried - carried;
    auto const going = detail::as_condition(first_of(spread(condition, p)));
    auto const y = on_lanes(f, going, p);
    auto const before = part(p, zero, carried);
    auto const now = part(y, zero, carried);
    require_kept(before, now);
    return joined(tree_map([&](auto const& n, auto const& b) { return where(going, n, b); }, now, before),
                  part(y, carried, count_of(y)));
  }
};

} // namespace varve::detail
