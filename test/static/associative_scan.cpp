// SPDX-License-Identifier: BSL-1.0
// associative_scan of static values: eager, in every interpreter, and traced.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto add = [](auto const& a, auto const& b) { return a + b; };
constexpr auto mul = [](auto const& a, auto const& b) { return a * b; };
constexpr array<double, 4> xs{1, 2, 3, 4};
static_assert(vv::equal(vv::associative_scan(add, xs), array<double, 4>{1, 3, 6, 10}));
static_assert(vv::equal(vv::associative_scan<0, true>(add, xs), array<double, 4>{10, 9, 7, 4}));
static_assert(vv::equal(vv::associative_scan(mul, array<int, 7>{1, 2, 3, 1, 2, 1, 5}),
                        array<int, 7>{1, 2, 6, 6, 12, 12, 60}));
static_assert(vv::equal(vv::associative_scan<0, true>(mul, array<int, 7>{1, 2, 3, 1, 2, 1, 5}),
                        array<int, 7>{60, 60, 30, 10, 10, 5, 5}));
static_assert(vv::equal(vv::associative_scan(add, array<double, 1>{5}), array<double, 1>{5}) &&
              vv::equal(vv::associative_scan(add, array<double, 2>{5, 6}), array<double, 2>{5, 11}));
constexpr array<double, 2, 3> m{1, 2, 3, 4, 5, 6};
static_assert(vv::equal(vv::associative_scan<1>(add, m), array<double, 2, 3>{1, 3, 6, 4, 9, 15}) &&
              vv::equal(vv::associative_scan<-1>(mul, m), array<double, 2, 3>{1, 2, 6, 4, 20, 120}));

// not commutative: affine maps y = a x + b one after the other, and products of matrices
constexpr auto after = [](auto const& f, auto const& g) {
  return std::pair(g.first * f.first, g.first * f.second + g.second);
};
constexpr auto chain =
    vv::associative_scan(after, std::pair(array<double, 5>{2, 3, 1, -1, 2}, array<double, 5>{1, 0, 2, 1, 3}));
static_assert(vv::equal(chain.first, array<double, 5>{2, 6, 6, -6, -12}) &&
              vv::equal(chain.second, array<double, 5>{1, 3, 5, -4, -5}));
constexpr auto product = [](auto const& a, auto const& b) { return vv::matmul(a, b); };
constexpr array<double, 3, 2, 2> steps{1, 1, 0, 1, 2, 0, 0, 1, 1, 0, 1, 1};
static_assert(vv::equal(vv::associative_scan<0, false, vv::combine_mode::generic>(product, steps),
                        array<double, 3, 2, 2>{1, 1, 0, 1, 2, 1, 0, 1, 3, 1, 1, 1}));

// in every interpreter
constexpr auto total = [](auto x) { return vv::sum(vv::associative_scan(mul, x)); }; // a + ab + abc + abcd
static_assert(vv::equal(vv::grad(total)(xs), array<double, 4>{33, 16, 10, 6}));
static_assert(vv::jvp(total, std::tuple(xs), std::tuple(array<double, 4>{0, 1, 0, 0})).second == 16);
static_assert(vv::equal(vv::vmap(total)(array<double, 2, 4>{1, 2, 3, 4, 1, 1, 1, 1}), array<double, 2>{33, 4}));
static_assert(vv::equal(vv::vmap(vv::grad([](auto x) {
                          return vv::sum(vv::associative_scan<0, false, vv::combine_mode::generic>(mul, x));
                        }))(array<double, 1, 3>{1, 2, 3}),
                        array<double, 1, 3>{9, 4, 2}));
constexpr auto traced = vv::trace(total, vv::spec<double, 5>);
static_assert(vv::verify(traced.thaw()) && traced.count(vv::mul) == 3);
