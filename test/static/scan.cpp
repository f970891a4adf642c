// SPDX-License-Identifier: BSL-1.0
// scan of static values: eager, in every interpreter, and traced.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

// sums and their squares
constexpr auto sums = [](auto init, auto xs) {
  return vv::scan(
      [](auto c, auto x) {
        auto n = c + x;
        return std::pair{n, n * n};
      },
      init, xs);
};
constexpr array<double, 3> xs{1, 2, 3};
static_assert(sums(0.0, xs).first == 6);
static_assert(vv::equal(sums(0.0, xs).second, array<double, 3>{1, 9, 36}));

// from the end: results stand where their rows do
constexpr auto suffix = [](auto xs) {
  return vv::scan([](auto c, auto x) { return std::pair{c + x, c + x}; }, 0.0, xs, true).second;
};
static_assert(vv::equal(suffix(xs), array<double, 3>{6, 5, 3}));

// along another dimension, rows that are arrays
constexpr array<double, 2, 3> m{1, 2, 3, 4, 5, 6};
constexpr auto columns = [](auto x) {
  return vv::scan<1>([](auto c, auto v) { return std::pair{c + v, vv::sum(v)}; }, array<double, 2>{0, 0}, x);
};
static_assert(vv::equal(columns(m).first, array<double, 2>{6, 15}) &&
              vv::equal(columns(m).second, array<double, 3>{5, 7, 9}));
static_assert(
    vv::equal(vv::scan<-1>([](auto c, auto v) { return std::pair{c + v, vv::none}; }, array<double, 2>{0, 0}, m).first,
              array<double, 2>{6, 15}));

// trees: what is carried, walked through and put out; a counter of integers; a number of steps
constexpr auto trees = [](auto a, auto b) {
  return vv::scan(
      [](auto const& c, auto const& x) {
        auto [n, s] = c;
        auto [u, v] = x;
        return std::pair{std::tuple{n + 1, s + u * v}, std::array{u, v}};
      },
      std::tuple{0, 0.0}, std::pair{a, b});
};
static_assert(std::get<0>(trees(xs, xs).first) == 3 && std::get<1>(trees(xs, xs).first) == 14);
static_assert(vv::equal(trees(xs, 2.0 * xs).second[1], array<double, 3>{2, 4, 6}));
constexpr auto powers = [](auto x) { return vv::scan([](auto c) { return std::pair{c * c, c}; }, x, vv::steps<3>); };
static_assert(powers(2.0).first == 256 && vv::equal(powers(2.0).second, array<double, 3>{2, 4, 16}));

// reverse mode, forward mode, vmap, and their nesting agree with what the formula says
constexpr auto score = [](auto init, auto xs) {
  auto [c, y] = sums(init, xs);
  return c * vv::sum(y);
};
static_assert(score(0.0, xs) == 6 * 46);
static_assert(vv::equal(vv::grad<1>(score)(0.0, xs), array<double, 3>{46 + 12 * 10, 46 + 12 * 9, 46 + 12 * 6}));
static_assert(vv::grad(score)(0.0, xs) == 46 + 12 * 10);
static_assert(vv::jvp(score, std::tuple(0.0, xs), std::tuple(0.0, array<double, 3>{1, 0, 0})).second == 46 + 12 * 10);
static_assert(vv::equal(vv::vmap(score)(array<double, 2>{0, 0}, array<double, 2, 3>{1, 2, 3, 2, 3, 4}),
                        array<double, 2>{276, 990}));
static_assert(vv::equal(vv::vmap(score, vv::in_dims<vv::none, 0>)(0.0, array<double, 2, 3>{1, 2, 3, 2, 3, 4}),
                        array<double, 2>{276, 990}));
static_assert(vv::equal(vv::vmap(vv::grad<1>(score), vv::in_dims<vv::none, 0>)(0.0, array<double, 1, 3>{1, 2, 3}),
                        array<double, 1, 3>{166, 154, 118}));
constexpr auto scored = [](auto xs) { return score(0.0, xs); };
static_assert(vv::equal(vv::hessian(scored)(xs), array<double, 3, 3>{76, 62, 44, 62, 60, 42, 44, 42, 36}));
static_assert(vv::equal(vv::grad([](auto v) {
                          return vv::jvp(scored, std::tuple(v), std::tuple(array<double, 3>{1, 0, 0})).second;
                        })(xs),
                        array<double, 3>{76, 62, 44}));
static_assert(vv::equal(vv::grad([](auto v) { return vv::sum(vv::grad(scored)(v) * array<double, 3>{1, 0, 0}); })(xs),
                        array<double, 3>{76, 62, 44}));

// outputs alone, in reverse order, under grad; integers pass
static_assert(vv::equal(vv::grad([](auto v) { return vv::sum(suffix(v) * suffix(v)); })(xs),
                        array<double, 3>{12, 22, 28}));
static_assert(vv::equal(vv::grad([](auto a) { return std::get<1>(trees(a, a).first); })(xs),
                        array<double, 3>{2, 4, 6}));
