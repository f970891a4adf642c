// SPDX-License-Identifier: BSL-1.0
// Implicit functions in constant expressions.
#include <varve/implicit.hpp>
#include <varve/varve.hpp>

namespace vv = varve;
namespace implicit = varve::implicit;

namespace {
constexpr bool is_near(double a, double b) { return a - b < 1e-9 && b - a < 1e-9; }
constexpr auto square_root = implicit::root([](auto x, auto a) { return x * x - a; });
static_assert(is_near(square_root(1.0, 2.25), 1.5));
static_assert(is_near(vv::grad<1>(square_root)(1.0, 2.25), 1 / 3.0));
constexpr auto along = [](auto a) { return square_root(1.0, a); };
static_assert(is_near(vv::grad(vv::grad(along))(4.0), -1 / 32.0));
static_assert(is_near(vv::jvp(along, std::tuple(4.0), std::tuple(2.0)).second, 0.5));

constexpr auto half = implicit::fixed_point([](auto x, auto a) { return 0.5 * x + a; });
static_assert(is_near(vv::grad<1>(half)(0.0, 3.0), 2));
constexpr auto bracketed = implicit::root([](auto x, auto a) { return x * x * x - a; }, implicit::bisection{0, 10});
static_assert(is_near(bracketed(0.0, 27.0), 3));
static_assert(is_near(vv::grad<1>(bracketed)(0.0, 27.0), 1 / 27.0));

constexpr vv::array<double, 2, 2> a{4, 1, 1, 3};
constexpr vv::array<double, 2> b{1, 2};
constexpr auto x = implicit::linear_solve(vv::closure([](auto const& v, auto const& m) { return vv::matmul(m, v); }, a),
                                          b, implicit::cg{});
static_assert(is_near(x.data[0], 1 / 11.0) && is_near(x.data[1], 7 / 11.0));
} // namespace
