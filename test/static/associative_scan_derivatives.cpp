// SPDX-License-Identifier: BSL-1.0
// associative_scan where combining changes how a row is seen: lanes, tangents and gradients.
#include <varve/loop/associative_scan.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>

#include <tuple>

namespace vv = varve;

namespace {
constexpr vv::array<double, 3> x{1, 2, 3}, one{1, 1, 1};
constexpr vv::array<double, 2, 3> rows{1, 2, 3, 4, 5, 6};
constexpr auto product = [](auto const& a, auto const& b) { return a * b; };
constexpr auto products = [](auto const& v) { return vv::associative_scan<0>(product, v); };
/// q[k] = q[k - 1] v[k] + 1: of the pairs that are combined one part alone depends on v.
constexpr auto recurrence = [](auto const& v) {
  return std::get<1>(vv::associative_scan<0>(
      [](auto const& a, auto const& b) {
        auto const& [p, q] = a;
        auto const& [r, s] = b;
        return std::tuple(p * r, q * r + s);
      },
      std::tuple(v, one)));
};
constexpr auto last_of_recurrence = [](auto const& v) { return vv::sum(recurrence(v)); };
constexpr auto scaled = [](auto const& w) {
  auto const times = [](auto const& a, auto const& b, auto const& s) { return a * b * s; };
  return vv::sum(vv::associative_scan<0>(vv::closure(times, vv::sum(w)), x));
};
} // namespace

static_assert(vv::equal(vv::jacfwd(products)(x), vv::array<double, 3, 3>{1, 0, 0, 2, 1, 0, 6, 3, 2}));
static_assert(vv::equal(vv::vmap(vv::jacfwd(products))(rows),
                        vv::array<double, 2, 3, 3>{1, 0, 0, 2, 1, 0, 6, 3, 2, 1, 0, 0, 5, 4, 0, 30, 24, 20}));
static_assert(vv::equal(vv::jacfwd(vv::jacfwd(products))(x),
                        vv::array<double, 3, 3, 3>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0,
                                                   0, 0, 0, 0, 0, 3, 2, 3, 0, 1, 2, 1, 0}));
static_assert(vv::equal(vv::grad(scaled)(one), vv::array<double, 3>{38, 38, 38}));
static_assert(vv::equal(recurrence(x), vv::array<double, 3>{1, 3, 10}));
static_assert(vv::equal(vv::grad(last_of_recurrence)(x), vv::array<double, 3>{0, 4, 3}));
static_assert(vv::jvp(last_of_recurrence, std::tuple(x), std::tuple(one)).second == 7);
static_assert(vv::equal(vv::vmap(recurrence)(rows), vv::array<double, 2, 3>{1, 3, 10, 1, 6, 37}));
