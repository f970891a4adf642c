// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/flatten.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/sum.hpp>

namespace varve {

namespace detail {
inline constexpr auto size_of_axis = [](dims const& s, dims const& a) { return dims{s[wrap_axis(a[0], s.n)]}; };
/// Multiplies the two halves of an axis elementwise, repeatedly, until one element remains. Derivatives are exact also
/// at zeros.
template <value X, class A>
constexpr auto product_along(X const& x, A const& axis) {
  auto const n = on_dims(size_of_axis, shape_of(x), axis);
  auto const part = [&](auto const& v, auto const& from, auto const& count) { return narrow(v, axis, from, count); };
  auto const fold = [&](auto const& v, auto const& n) {
    auto const half = on_dims([](dims const& m) { return dims{m[0] / 2}; }, n);
    auto const pairs = mul(part(v, ints<0>{}, half), part(v, half, half));
    auto const rest = [&](auto const& u) { // an odd last element is multiplied into the first pair
      auto const last = on_dims([](dims const& m) { return dims{m[0] - 1}; }, n);
      auto const others = on_dims([](dims const& m) { return dims{m[0] / 2 - 1}; }, n);
      auto const first = mul(part(u, ints<0>{}, ints<1>{}), part(v, last, ints<1>{}));
      return cat(std::make_tuple(first, part(u, ints<1>{}, others)), axis);
    };
    return choose(same_fact(on_dims([](dims const& m) { return dims{m[0] % 2}; }, n), ints<1>{}), rest, identity,
                  pairs);
  };
  if constexpr (is_ints<std::remove_cvref_t<decltype(n)>>) {
    if constexpr (std::remove_cvref_t<decltype(n)>::to_dims()[0] <= 1) return x;
    else return product_along(fold(x, n), axis);
  } else {
    auto v = x;
    for (dims m = n; m[0] > 1; m = size_of_axis(to_dims(shape_of(v)), to_dims(axis))) v = fold(v, m);
    return v;
  }
}
} // namespace detail

/// The product of all elements, or of those along an axis (`torch.prod`). Without elements it is 1. bool and integers
/// become int64.
inline constexpr struct prod_t : composite_operator<prod_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "prod";
  template <value X, class A = none_t, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axis = {}, K const& keep = {}) {
    if constexpr (is_none<A>) return body(ravel(x), ints<0>{});
    else {
      auto const a = detail::as_fact(axis);
      auto const whole = [](auto const& v) { return to(v, ints<static_cast<index_t>(dtype::int64)>{}); };
      return along(choose(detail::is_floating_fact(x), detail::identity, whole, x), a, detail::as_fact(keep));
    }
  }

private:
  template <class X, class A, class K>
  static constexpr auto along(X const& x, A const& a, K const& keep) {
    auto const kept = [](dims const& s, dims const& at, dims const& k) {
      dims r = s;
      if (s.n == 0) return wrap_axis(at[0], s.n), r;
      if (k[0] != 0) r[wrap_axis(at[0], s.n)] = 1;
      else r.erase(wrap_axis(at[0], s.n));
      return r;
    };
    auto const shape = on_dims(kept, shape_of(x), a, keep);
    auto const number = on_dims([](dims const& s) { return dims{s.n == 0}; }, shape_of(x));
    auto const nothing = [&](auto const& v) {
      return on_dims([](dims const& s, dims const& at) { return dims{s.n > 0 && s[wrap_axis(at[0], s.n)] == 0}; },
                     shape_of(v), a);
    };
    auto const itself = [](auto const& v) { return mul(v, 1); }; // with its own memory
    auto const product = [&](auto const& v) {
      auto const one_factor = same_fact(on_dims(detail::size_of_axis, shape_of(v), a), ints<1>{});
      return reshape(choose(one_factor, itself, [&](auto const& u) { return detail::product_along(u, a); }, v), shape);
    };
    auto const one = [&](auto const& v) {
      return add(new_full(detach(v), shape, 1), detail::reshape_to(mul(sum(v), 0), ints<>{}));
    };
    auto const of_axis = [&](auto const& v) { return choose(same_fact(nothing(v), ints<1>{}), one, product, v); };
    return choose(same_fact(number, ints<1>{}), itself, of_axis, x);
  }
} prod{};

} // namespace varve
