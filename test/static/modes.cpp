// SPDX-License-Identifier: BSL-1.0
// Modes resolved by the compiler, and the type-level stack as Hana's algorithms see it.
#include <varve/varve.hpp>

#include <boost/hana.hpp>
namespace vv = varve;
namespace hana = boost::hana;

struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
struct shifting : vv::dispatch_mode<shifting> { // adds a number to whatever an operator gives
  double by = 1;
  constexpr auto process(auto op, auto const&... args) { return op(args...) + by; }
};
struct last_name : vv::dispatch_mode<last_name> {
  char const* last = "";
  constexpr auto process(auto op, auto const&... args) {
    last = op.name();
    return op(args...);
  }
};
constexpr bool same(char const* a, char const* b) {
  for (; *a && *a == *b; ++a, ++b) {}
  return *a == *b;
}

constexpr auto f = [](auto x) { return vv::sin(x) * x; };
constexpr int count(auto const& run) {
  counting mode;
  run(mode);
  return mode.calls;
}
struct summing : vv::dispatch_mode<summing> { // adds up all that operators and loops give
  double sum = 0;
  constexpr auto process(auto op, auto const&... args) {
    auto const y = op(args...);
    vv::for_each_value([&](auto const& v) { sum += vv::sum(v); }, y);
    return y;
  }
};
constexpr double sum_of_results() {
  summing mode;
  auto const step = [](auto const& c, auto const& x) { return std::pair(c * x, c); };
  (void)vv::with(mode, [&](auto const& x) { return vv::scan(step, x, vv::array<double, 3>{1, 2, 3}).first; }, 1.0);
  return mode.sum;
}
static_assert(sum_of_results() ==
              (1 + 2 + 6) + (6 + 1 + 1 + 2)); // three products; the loop's carried value and outputs
static_assert(count([](auto& m) { (void)vv::with(m, f, 3.0); }) == 2);
// below a transform a mode sees what the transform makes of a call: sin, mul, and for the gradient cos and products
static_assert(count([](auto& m) { (void)vv::with(m, vv::grad(f), 3.0); }) > 2);
// above a transform it sees the user's calls only
static_assert(count([](auto& m) { (void)vv::grad([&](auto x) { return vv::with(m, f, x); })(3.0); }) == 2);
static_assert(count([](auto& m) {
                (void)vv::vmap([&](auto x) { return vv::with(m, f, x); })(vv::array<double, 3>{1, 2, 3});
              }) == 2);
// while it runs a mode does not see itself; the sum it adds reaches the mode below
static_assert([] {
  counting below;
  shifting above;
  double const y = vv::with(below, [&](auto x) { return vv::with(above, [](auto u) { return u * u; }, x); }, 3.0);
  return y == 10 && below.calls == 2;
}());
static_assert([] {
  last_name m;
  (void)vv::with(m, f, 3.0);
  return same(m.last, "mul");
}());
// a mode changes values: the gradient goes through what it did
static_assert([] {
  shifting m;
  m.by = 10;
  return vv::grad([&](auto x) { return vv::with(m, [](auto u) { return u * u * u; }, x); })(2.0) ==
         12 + 10; // ((x^2 + 10) x + 10)'
}());

// the stack
template <class V>
inline constexpr auto kinds = hana::transform(
    vv::stack_of<V>, [](auto type) { return hana::bool_c<(same(decltype(type)::type::kind, "grad"))>; });
constexpr auto two_grads = [](auto x) {
  using X = decltype(x);
  static_assert(hana::size(vv::stack_of<X>) == hana::size_c<2>);
  static_assert(hana::all(kinds<X>));
  static_assert(decltype(+vv::stack_of<X>[hana::size_c<0>])::type::level == 2);
  return x * x;
};
static_assert(vv::grad(vv::grad(two_grads))(1.0) == 2);
constexpr auto grad_in_vmap = [](auto x) {
  using X = decltype(x);
  static_assert(same(vv::kind_of<typename decltype(+hana::front(vv::stack_of<X>))::type>, "grad")); // innermost first
  static_assert(same(vv::kind_of<typename decltype(+hana::back(vv::stack_of<X>))::type>, "vmap"));
  static_assert(hana::count_if(vv::stack_of<X>, [](auto t) { return hana::bool_c<(decltype(t)::type::level > 1)>; }) ==
                hana::size_c<1>);
  static_assert(hana::reverse(hana::reverse(vv::stack_of<X>)) == vv::stack_of<X>);
  return x * x;
};
static_assert(vv::equal(vv::vmap(vv::grad(grad_in_vmap))(vv::array<double, 2>{1, 2}), vv::array<double, 2>{2, 4}));
static_assert(hana::is_empty(vv::stack_of<double>));
static_assert(vv::level_of<double> == 0);

// factories: a scope carries the modes it was handed through
static_assert([] {
  counting outer, inner;
  last_name named;
  auto const y = vv::with(
      outer,
      [&](auto s, auto x) {
        auto const a = x + s.ones(vv::shape<2>, vv::type<double>);
        return vv::with(
            inner,
            [&](auto t, auto u) {
              return vv::with(named, [](auto r, auto v) { return v * r.full(vv::shape<2>, 3.0); }, t, u);
            },
            s, a);
      },
      vv::scope(), vv::array<double, 2>{1, 2});
  return vv::equal(y, vv::array<double, 2>{6, 9}) && outer.calls == 4 && inner.calls == 2 && same(named.last, "mul");
}());
static_assert(vv::equal(vv::scope().zeros(vv::shape<2, 1>), vv::zeros<float, 2, 1>()));
// under a transform what a scope makes is a constant
static_assert([] {
  counting m;
  double const g = vv::with(
      m,
      [](auto s, auto x) {
        return vv::grad([&](auto v) { return vv::sum(s.ones(vv::shape<3>, vv::type<double>) * v * v); })(x);
      },
      vv::scope(), 2.0);
  return g == 12;
}());

// a mode that declines leaves the call to what is below it
struct declining : vv::dispatch_mode<declining> {
  int asked = 0;
  constexpr auto process(auto, auto const&...) {
    ++asked;
    return vv::not_implemented;
  }
};
static_assert([] {
  declining m;
  return vv::with(m, f, 0.0) == 0 && m.asked == 2;
}());

// with(mode, f) is a function like any other: modes and transforms interleave in any order, which the stack shows
template <class V>
constexpr auto order_of = [] {
  struct text {
    char v[9]{};
  } r;
  int n = 0;
  hana::for_each(vv::stack_of<V>, [&](auto type) { r.v[n++] = decltype(type)::type::kind[0]; });
  return r;
}();
template <class V>
constexpr bool stack_is(char const* letters) {
  return same(order_of<V>.v, letters);
}
constexpr auto under_all = [](auto x) {
  static_assert(stack_is<decltype(x)>("mgvm")); // innermost first: mode, grad, vmap, mode
  return x * x;
};
static_assert([] {
  counting outer, inner;
  auto const y = vv::with(outer, vv::vmap(vv::grad(vv::with(inner, under_all))))(vv::array<double, 3>{1, 2, 3});
  return vv::equal(y, vv::array<double, 3>{2, 4, 6}) && inner.calls == 1 && outer.calls > 1;
}());
static_assert([] {
  counting a, b;
  auto const look = [](auto x) {
    static_assert(stack_is<decltype(x)>("gmjm"));
    return x * x * x;
  };
  double const y = vv::with(
      a, [&](auto x) { return vv::jvp(vv::with(b, vv::grad(look)), std::tuple(x), std::tuple(1.0)).second; })(2.0);
  return y == 12 && a.calls > b.calls && b.calls > 2;
}());
static_assert([] {
  counting one, two;
  return vv::with(one, vv::with(two, f))(0.0) == 0 && one.calls == 2 && two.calls == 2;
}());
