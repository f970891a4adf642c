// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/inner_function.hpp>
#include <varve/loop/scan_step.hpp>
#include <varve/op/amax.hpp>
#include <varve/op/sum.hpp>

/// @file
/// When a loop over static or traced values ends. This distinguishes `scan` and `map` from `while_loop`, and each
/// interpreter transforms it.
///
/// The functions that rules derive from a loop's condition take packs in the order (carried..., captured...) and return
/// a pack of one value.
namespace varve::detail {

/// A loop's condition on values and tangents side by side. `f` takes first all values, then all tangents, and returns
/// both for its result; the tangents are dropped.
template <class F, class C>
struct dual_condition {
  F f;
  [[no_unique_address]] C carried;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const y = spread(f, duals_apart(p, carried, carried - carried));
    auto const n = count_of(y);
    return part(y, n - n, half(n));
  }
};
/// A loop's condition that skips the first operand, which counts the steps.
template <class F>
struct condition_behind_count {
  [[no_unique_address]] F f;
  template <class First, class... V>
  constexpr auto operator()(First const& first, V const&... v) const {
    auto const p = pack(first, v...);
    auto const n = count_of(p);
    return spread(f, part(p, one_of(n), n));
  }
};
/// A loop's condition in the lanes in which the last captured value holds; false in other lanes.
template <class F>
struct condition_of_lanes {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const n = count_of(p);
    auto const last = n - one_of(n);
    return tree_map([&](auto const& go) { return where(first_of(part(p, last, n)), go, false); },
                    spread(f, part(p, n - n, last)));
  }
};
/// Returns the greatest elements along dimension 0, such as those of all lanes; 0 or false if it is of size 0.
template <class V>
constexpr auto greatest_or_zero(V const& v) {
  auto const is_empty = [&] {
    using S = std::remove_const_t<decltype(shape_of(v))>;
    if constexpr (is_ints<S>) return std::bool_constant<S::to_dims()[0] == 0>{};
    else return known_equal(to_dims(shape_of(v))[0], 0);
  }();
  return choose(
      is_empty, [](auto const& x) { return to(sum(x, axis<0>), type_fact(x)); },
      [](auto const& x) { return amax(x, axis<0>); }, v);
}
/// A loop's condition that is true if it is true in at least one lane. Lanes are dimension 0.
template <class F>
struct some_lane {
  F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    return tree_map([](auto const& go) { return greatest_or_zero(go); }, spread(f, pack(v...)));
  }
};

/// The end of a loop after the last row or, if `Counted`, after the number of rows in the first captured value.
template <bool Counted>
struct after_rows {
  static constexpr bool open = false, counted = Counted;
  template <class I, class C>
  constexpr auto on_duals(I const&, C const&) const {
    return *this;
  }
  template <class... Flag, class I>
  constexpr auto mapped(I const&) const {
    return *this;
  }
  template <class I>
  constexpr auto reentering(I const&) const {
    return *this;
  }
};
/// The end of a loop when a function of the carried and captured values no longer returns true.
template <class F>
struct unless_true {
  static constexpr bool open = true, counted = false;
  [[no_unique_address]] F condition;
  template <class I, class C>
  constexpr auto on_duals(I const& in, C const& carried) const {
    using both = dual_condition<dual_fn<I, F>, C>;
    return unless_true<both>{both{{in, condition}, carried}};
  }
  template <class... Flag, class I>
  constexpr auto mapped(I const& in) const {
    using lanes = some_lane<batched_fn<I, F, Flag...>>;
    return unless_true<lanes>{lanes{{in, condition}}};
  }
  template <class I>
  constexpr auto reentering(I const& in) const {
    return unless_true<reentering_fn<I, F>>{{in, condition}};
  }
  constexpr auto for_lanes() const { return unless_true<condition_of_lanes<F>>{{condition}}; }
  constexpr auto behind_count() const { return unless_true<condition_behind_count<F>>{{condition}}; }
};

} // namespace varve::detail
