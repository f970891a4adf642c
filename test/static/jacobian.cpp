// SPDX-License-Identifier: BSL-1.0
// Jacobians and second derivatives as compositions.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto square = [](auto x) { return x * x; };
constexpr auto total = [](auto x) { return vv::sum(x * x * x); };
constexpr array<double, 3> xs{1, 2, 3};
constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};

static_assert(vv::equal(vv::jacfwd(square)(xs), array<double, 3, 3>{2, 0, 0, 0, 4, 0, 0, 0, 6}));
static_assert(vv::equal(vv::jacrev(square)(xs), vv::jacfwd(square)(xs)));
static_assert(vv::equal(vv::hessian(total)(xs), array<double, 3, 3>{6, 0, 0, 0, 12, 0, 0, 0, 18}));
constexpr auto product = [](auto x, auto y) { return vv::matmul(x, y); };
static_assert(vv::equal(vv::jacfwd(product)(a, xs), array<double, 2, 2, 3>{1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3}));
static_assert(vv::equal(vv::jacrev(product)(a, xs), vv::jacfwd(product)(a, xs)));
static_assert(vv::hessian(cube)(2.0) == 12);
static_assert(vv::grad(vv::hessian(cube))(2.0) == 6);
