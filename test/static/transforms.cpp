// SPDX-License-Identifier: BSL-1.0
// grad, jvp, vmap and vjp, alone and inside one another.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto square = [](auto x) { return x * x; };
constexpr auto total = [](auto x) { return vv::sum(x * x * x); };
constexpr array<double, 3> xs{1, 2, 3};

// reverse mode
static_assert(vv::grad(vv::grad(vv::grad(cube)))(2.0) == 6);
static_assert(vv::equal(vv::grad(total)(xs), array<double, 3>{3, 12, 27}));
static_assert(vv::value_and_grad(total)(xs).first == 36);
constexpr auto mixed = [](auto x, auto y, auto z) { return x * y + y * z; };
static_assert(vv::grad<1>(mixed)(2.0, 3.0, 5.0) == 7);
static_assert(vv::grad<0, 2>(mixed)(2.0, 3.0, 5.0) == std::tuple(3.0, 3.0));
static_assert(vv::grad(mixed, vv::argnums<-1>)(2.0, 3.0, 5.0) == 3);
static_assert(vv::grad([](auto) { return 1.0; })(2.0) == 0); // unrelated arguments get zeros
static_assert(std::is_same_v<decltype(vv::grad(cube)(2.0f)), float>);
constexpr auto branch = [](auto x) { // ordinary control flow on scalars
  auto r = x;
  while (r < 100) r = r * x;
  return r;
};
static_assert(vv::grad(branch)(5.0) == 75);
constexpr auto of_tree = [](auto t) { return std::get<0>(t) * std::get<1>(t)[0] * std::get<1>(t)[1]; };
static_assert(vv::grad(of_tree)(std::tuple(2.0, std::array{3.0, 5.0})) == std::tuple(15.0, std::array{10.0, 6.0}));
constexpr double by_pullback() {
  auto [y, pull] = vv::vjp([](auto a, auto b) { return std::pair(a * b, a + b); }, 2.0, 3.0);
  auto [ga, gb] = pull(std::pair(1.0, 10.0));
  auto [ha, hb] = pull(std::pair(0.0, 1.0)); // may be called many times
  return y.first + 100 * ga + 10000 * gb + ha * 1e6 + hb * 1e7;
}
static_assert(by_pullback() == 6 + 1300 + 120000 + 11e6);

// forward mode
static_assert(vv::jvp(cube, std::tuple{2.0}, std::tuple{1.0}) == std::pair(8.0, 12.0));
static_assert(vv::equal(vv::jvp(square, std::tuple{xs}, std::tuple{array<double, 3>{1, 0, 2}}).second, array<double, 3>{2, 0, 12}));
static_assert(vv::jvp([](auto) { return 1.0; }, std::tuple{2.0}, std::tuple{1.0}).second == 0);
constexpr auto derivative = [](auto f) { return [f](auto x) { return vv::jvp(f, std::tuple{x}, std::tuple{1.0}).second; }; };
static_assert(derivative(derivative(cube))(2.0) == 12);
static_assert(vv::grad(derivative(cube))(2.0) == 12);
static_assert(derivative(vv::grad(cube))(2.0) == 12);
static_assert(derivative(vv::grad(derivative(cube)))(2.0) == 6);

// batches
constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
static_assert(vv::equal(vv::vmap([](auto row) { return vv::sum(row); })(a), array<double, 2>{6, 15}));
static_assert(vv::equal(vv::vmap([](auto column) { return vv::sum(column); }, vv::in_dims<1>)(a), array<double, 3>{5, 7, 9}));
static_assert(vv::equal(vv::vmap([](auto column) { return column * 2; }, vv::in_dims<-1>, vv::out_dims<-1>)(a), array<double, 2, 3>{2, 4, 6, 8, 10, 12}));
static_assert(vv::equal(vv::vmap([](auto row) { return row; }, vv::out_dims<1>)(a), array<double, 3, 2>{1, 4, 2, 5, 3, 6}));
static_assert(vv::equal(vv::vmap([](auto x, auto y) { return x - y; }, vv::in_dims<0, vv::none>)(xs, 1.0), array<double, 3>{0, 1, 2}));
static_assert(vv::equal(vv::vmap([](auto) { return 7.0; })(xs), array<double, 3>{7, 7, 7}));
static_assert(vv::vmap([](auto) { return 7.0; }, vv::out_dims<vv::none>)(xs) == 7);
static_assert(vv::equal(vv::vmap([](auto x, auto y) { return vv::dot(x, y); })(a, a), array<double, 2>{14, 77}));
static_assert(vv::equal(vv::vmap(vv::vmap(square))(a), array<double, 2, 3>{1, 4, 9, 16, 25, 36}));
static_assert(vv::equal(vv::vmap([](auto x) { return vv::vmap([](auto p, auto q) { return p * q; }, vv::in_dims<0, vv::none>)(x, x); })(a), // outer product by rows
                        array<double, 2, 3, 3>{1, 2, 3, 2, 4, 6, 3, 6, 9, 16, 20, 24, 20, 25, 30, 24, 30, 36}));

// transforms inside one another
static_assert(vv::equal(vv::grad([](auto x) { return vv::sum(vv::vmap(vv::grad(cube))(x)); })(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::vmap(vv::grad(vv::grad(cube)))(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::vmap(vv::vmap(vv::grad(cube)))(a), array<double, 2, 3>{3, 12, 27, 48, 75, 108}));
static_assert(vv::equal(vv::vmap(derivative(vv::grad(cube)))(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::jvp(vv::vmap(vv::grad(cube)), std::tuple{xs}, std::tuple{array<double, 3>{1, 1, 2}}).second, array<double, 3>{6, 12, 36}));

// Jacobians
static_assert(vv::equal(vv::jacfwd(square)(xs), array<double, 3, 3>{2, 0, 0, 0, 4, 0, 0, 0, 6}));
static_assert(vv::equal(vv::jacrev(square)(xs), vv::jacfwd(square)(xs)));
static_assert(vv::equal(vv::hessian(total)(xs), array<double, 3, 3>{6, 0, 0, 0, 12, 0, 0, 0, 18}));
constexpr auto product = [](auto x, auto y) { return vv::matmul(x, y); };
static_assert(vv::equal(vv::jacfwd(product)(a, xs), array<double, 2, 2, 3>{1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3}));
static_assert(vv::equal(vv::jacrev(product)(a, xs), vv::jacfwd(product)(a, xs)));
static_assert(vv::hessian(cube)(2.0) == 12);
static_assert(vv::grad(vv::hessian(cube))(2.0) == 6);
