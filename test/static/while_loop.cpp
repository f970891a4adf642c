// SPDX-License-Identifier: BSL-1.0
// while_loop of static values: eager and in every interpreter.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto near = [](double a, double b) { return a - b < 1e-9 && b - a < 1e-9; };

// what is carried: one value, a tuple handed over as arguments, other trees as one; no step at all
static_assert(vv::while_loop([](auto x) { return x < 100.0; }, [](auto x) { return x * 3; }, 1.0) == 243);
constexpr auto collatz = [](int n) {
  return std::get<1>(vv::while_loop([](auto n, auto) { return n != 1; },
                                    [](auto n, auto k) { return std::tuple(n % 2 ? 3 * n + 1 : n / 2, k + 1); },
                                    std::tuple(n, 0)));
};
static_assert(collatz(27) == 111 && collatz(1) == 0);
constexpr auto pairs = vv::while_loop([](auto const& c) { return c.first > 0; },
                                      [](auto const& c) { return std::pair(c.first - 1, c.second * 2.0); },
                                      std::pair(3, array<double, 2>{1, 2}));
static_assert(pairs.first == 0 && vv::equal(pairs.second, array<double, 2>{8, 16}));
static_assert(vv::while_loop([](auto) { return false; }, [](auto x) { return x * 2; }, 7) == 7);
static_assert(vv::while_loop([](auto x, auto limit) { return x < limit; }, [](auto x, auto) { return x + 1; }, 0, 10) ==
              10);

// loops within loops
constexpr auto nested =
    vv::while_loop([](auto i, auto, auto, auto) { return i > 0; },
                   [](auto i, auto j, auto a, auto b) {
                     auto [k, u, v] =
                         vv::while_loop([](auto j, auto, auto) { return j > 0; },
                                        [](auto j, auto u, auto v) { return std::tuple(j - 1, u + 3.14, v - 2.71); },
                                        std::tuple(j, a, b));
                     return std::tuple(i - 1, k, u * 2, v / 2);
                   },
                   std::tuple(2, 2, 1.0, 1.0));
static_assert(std::get<0>(nested) == 0 && std::get<1>(nested) == 0 && near(std::get<2>(nested), 29.12) &&
              near(std::get<3>(nested), -1.105));

// x -> x^2 until it is at least 10: of 2 two squarings, so x^4; of 1.5 three; of 20 none
constexpr auto grow = [](auto x) {
  return vv::while_loop<8>([](auto y) { return y < 10.0; }, [](auto y) { return y * y; }, x);
};
static_assert(grow(2.0) == 16 && vv::grad(grow)(2.0) == 4 * 8 && vv::grad(grow)(20.0) == 1);
static_assert(near(vv::grad(grow)(1.5), 8 * 1.5 * 1.5 * 1.5 * 1.5 * 1.5 * 1.5 * 1.5));
static_assert(vv::jvp(grow, std::tuple(2.0), std::tuple(1.0)).second == 32);
static_assert(vv::grad(vv::grad(grow))(2.0) == 12 * 4);
static_assert(vv::jvp(vv::grad(grow), std::tuple(2.0), std::tuple(1.0)).second == 48);
static_assert(vv::grad([](auto v) { return vv::jvp(grow, std::tuple(v), std::tuple(1.0)).second; })(2.0) == 48);
// a lane that is done keeps its value, whatever the others do
static_assert(vv::equal(vv::vmap(grow)(array<double, 3>{2, 20, 4}), array<double, 3>{16, 20, 16}));
static_assert(vv::equal(vv::vmap(vv::grad(grow))(array<double, 3>{2, 20, 4}), array<double, 3>{32, 1, 8}));
static_assert(vv::equal(vv::grad([](auto x) { return vv::sum(vv::vmap(grow)(x)); })(array<double, 3>{2, 20, 4}),
                        array<double, 3>{32, 1, 8}));

// additional values and captured ones are differentiated
constexpr auto root = [](auto a) {
  return vv::while_loop<60>([](auto x, auto a) { return vv::abs(x * x - a) > 1e-12 * a; },
                            [](auto x, auto a) { return 0.5 * (x + a / x); }, a, a);
};
static_assert(near(root(9.0), 3) && near(vv::grad(root)(9.0), 1.0 / 6));
constexpr auto closed = [](auto k) {
  return vv::while_loop<9>([](auto x) { return x < 50.0; }, vv::closure([](auto x, auto k) { return x * k; }, k), 1.0);
};
static_assert(closed(4.0) == 64 && vv::grad(closed)(4.0) == 48);
static_assert(vv::equal(vv::vmap(vv::grad(closed))(array<double, 2>{4, 60}), array<double, 2>{48, 1}));

// a mode is given one call, and sees what both functions do
struct counting : vv::dispatch_mode<counting> {
  int loops = 0, products = 0, others = 0;
  constexpr auto process(auto op, auto const&... x) {
    std::string_view const name = op.name();
    if (name == "while_loop") ++loops;
    else if (name == "mul") ++products;
    else ++others;
    return op(x...);
  }
};
constexpr auto counted() {
  counting mode;
  double const y = vv::with(mode, grow, 2.0);
  return std::tuple(y, mode.loops, mode.products, mode.others);
}
static_assert(counted() == std::tuple(16.0, 1, 2, 3));
