// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/transform/transform_of.hpp>
#include <varve/varve.hpp>

/// Interval arithmetic as a transform: which results can a function have if each argument lies between two bounds? The
/// value is the lower bound, the payload the upper one.
struct interval_bounds : varve::transform_of<interval_bounds> {
  static constexpr auto name = "interval_bounds";

  /// How the bounds of a result follow from those of the operands.
  enum class kind { increasing, decreasing, difference, product, unknown };
  static constexpr int kinds = 5;
  static constexpr kind kind_of(varve::op_handle const& op) {
    using varve::handle, varve::op_kind;
    if (op.kind == op_kind::view || op.kind == op_kind::convert || op.kind == op_kind::join) return kind::increasing;
    for (auto const* o : {&handle<varve::add_t>, &handle<varve::exp_t>, &handle<varve::log_t>, &handle<varve::tanh_t>,
                          &handle<varve::sqrt_t>, &handle<varve::sum_t>, &handle<varve::amax_t>,
                          &handle<varve::maximum_t>, &handle<varve::clone_t>})
      if (&op == o) return kind::increasing;
    if (&op == &handle<varve::neg_t>) return kind::decreasing;
    if (&op == &handle<varve::sub_t>) return kind::difference;
    if (&op == &handle<varve::mul_t>) return kind::product;
    return kind::unknown;
  }

  static constexpr auto lower = [](auto const& x) { return x.value; };
  static constexpr auto upper = [](auto const& x) {
    if constexpr (requires { x.payload.defined(); }) return x.payload.defined() ? x.payload : x.value;
    else if constexpr (varve::is_none<std::remove_cvref_t<decltype(x.payload)>>) return x.value;
    else return x.payload;
  };
  static constexpr auto payload_of_constant(auto const& v) { return v; }

  static constexpr auto rule(varve::transform_kind<kind::increasing>, auto const& call) {
    return varve::with_payload{call.on(lower), call.on(upper)};
  }
  static constexpr auto rule(varve::transform_kind<kind::decreasing>, auto const& call) {
    return varve::with_payload{call.on(upper), call.on(lower)};
  }
  static constexpr auto rule(varve::transform_kind<kind::difference>, auto const& call) {
    auto const& a = call.template operand<0>();
    auto const& b = call.template operand<1>();
    return varve::with_payload{call(lower(a), upper(b)), call(upper(a), lower(b))};
  }
  static constexpr auto rule(varve::transform_kind<kind::product>, auto const& call) {
    auto const& a = call.template operand<0>();
    auto const& b = call.template operand<1>();
    auto const p = call(lower(a), lower(b)), q = call(lower(a), upper(b)), r = call(upper(a), lower(b)),
               s = call(upper(a), upper(b));
    return varve::with_payload{varve::minimum(varve::minimum(p, q), varve::minimum(r, s)),
                               varve::maximum(varve::maximum(p, q), varve::maximum(r, s))};
  }
};

/// Returns bounds of f(x) for all x between `low` and `high`, as `with_payload{lower, upper}`.
template <class F, class X>
constexpr auto bounds(F const& f, X const& low, X const& high) {
  return interval_bounds::run(f, varve::with_payload{low, high});
}
