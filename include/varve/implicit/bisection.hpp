// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/newton.hpp>

namespace varve::implicit {

/// Halves an interval in which one unknown has a root, by signs and magnitudes first. The residual must have different
/// signs at its ends, or be 0 at one; else the call fails like one that does not converge. What the unknown is at the
/// start is not read, except its dtype and shape. Solves for one unknown; map the call by `vmap` for more. Stops when
/// the interval is `tolerance` times its greatest end; 0 stands for twice the rounding of the dtype. Throws
/// `value_error` for an interval whose ends are not in order, or whose ends or length the dtype cannot represent.
struct bisection {
  static constexpr bool solves_equations = true, reads_numbers = false;
  double low, high;
  index_t max_steps = 2000;
  double tolerance = 0;

  template <class P, class V, class Data>
  constexpr auto solve(P const& p, V const& start, Data const& data) const {
    auto const one = on_dims(
        [](dims const& s) {
          if (!(s == dims{1}))
            refuse::argument_is_invalid("implicit::bisection", "there are several unknowns; it solves for one");
          return s;
        },
        shape_of(start));
    (void)one;
    require_interval(dtype_of(start));
    auto const zero = varve::detail::constant_zeros(start);
    auto const a = add(zero, low), b = add(zero, high);
    auto const at_a = p.residual(a, data), at_b = p.residual(b, data);
    double const enough = tolerance > 0 ? tolerance : 2 * detail::rounding_of(dtype_of(start));
    double const least = detail::least_of(dtype_of(start));
    auto const goes_on = [most = max_steps, enough, least](auto const& lo, auto const& hi, auto const& k, auto const&,
                                                           auto const&) {
      auto const scale = maximum(detail::greatest(lo), detail::greatest(hi));
      return logical_and(gt(sum(sub(hi, lo)), maximum(mul(scale, enough), least)), lt(k, most));
    };
    auto const step = [p, least](auto const& lo, auto const& hi, auto const& k, auto const& sign, auto const& d) {
      auto const middle = divided(lo, hi, least);
      auto const same = gt(mul(sign, p.residual(middle, d)), 0);
      return std::make_tuple(where(same, middle, lo), where(same, hi, middle), k + 1);
    };
    auto const end = while_loop(goes_on, step, std::make_tuple(a, b, detail::no_steps_like(start)), signs(at_a), data);
    auto const middle = halfway(std::get<0>(end), std::get<1>(end));
    auto const changes = le(sum(mul(signs(at_a), signs(at_b))), 0);
    auto const left = detail::greatest(p.residual(middle, data)); // great at a pole, where the sign changes too
    auto const bound = maximum(detail::greatest(at_a), detail::greatest(at_b));
    auto const found = logical_and(lt(left, std::numeric_limits<double>::infinity()), le(left, bound));
    auto const done = logical_and(lt(std::get<2>(end), max_steps), found);
    return detail::accepted("bisection", logical_and(changes, done), middle, std::get<2>(end), left);
  }

private:
  constexpr void require_interval(dtype t) const {
    double const most = detail::largest_of(t);
    if (!(low >= -most && low <= high && high <= most))
      refuse::argument_is_invalid(
          "implicit::bisection", "the interval must be finite in the dtype of the unknown, and start at its lower end");
  }
  template <class V>
  static constexpr auto halfway(V const& lo, V const& hi) {
    return add(mul(lo, 0.5), mul(hi, 0.5)); // the sum of the ends may overflow
  }
  /// Returns where an interval is divided: between the signs, between the magnitudes, then between the numbers. So the
  /// number of steps does not depend on how small a root is.
  template <class V>
  static constexpr auto divided(V const& lo, V const& hi, double least) {
    auto const a = abs(lo), b = abs(hi);
    auto const sign = mul(add(signs(lo), signs(hi)), 0.5); // 0 if they differ, and a half if one end is 0
    auto const apart = logical_or(gt(mul(a, 0.25), b), gt(mul(b, 0.25), a));
    auto const by_magnitude = mul(sign, mul(sqrt(a), sqrt(b)));
    auto const beside_zero = mul(sign, 2 * least);
    return where(lt(abs(sign), 1), beside_zero, where(apart, by_magnitude, halfway(lo, hi)));
  }
  template <class V>
  static constexpr auto signs(V const& v) {
    return sub(to(gt(v, 0), type_fact(v)), to(lt(v, 0), type_fact(v)));
  }
};

} // namespace varve::implicit
