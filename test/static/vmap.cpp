// SPDX-License-Identifier: BSL-1.0
// Batches.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto square = [](auto x) { return x * x; };
constexpr array<double, 3> xs{1, 2, 3};
constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
static_assert(vv::equal(vv::vmap([](auto row) { return vv::sum(row); })(a), array<double, 2>{6, 15}));
static_assert(vv::equal(vv::vmap([](auto column) { return vv::sum(column); }, vv::in_dims<1>)(a),
                        array<double, 3>{5, 7, 9}));
static_assert(vv::equal(vv::vmap([](auto column) { return column * 2; }, vv::in_dims<-1>, vv::out_dims<-1>)(a),
                        array<double, 2, 3>{2, 4, 6, 8, 10, 12}));
static_assert(vv::equal(vv::vmap([](auto row) { return row; }, vv::out_dims<1>)(a),
                        array<double, 3, 2>{1, 4, 2, 5, 3, 6}));
static_assert(vv::equal(vv::vmap([](auto x, auto y) { return x - y; }, vv::in_dims<0, vv::none>)(xs, 1.0),
                        array<double, 3>{0, 1, 2}));
static_assert(vv::equal(vv::vmap([](auto) { return 7.0; })(xs), array<double, 3>{7, 7, 7}));
static_assert(vv::vmap([](auto) { return 7.0; }, vv::out_dims<vv::none>)(xs) == 7);
static_assert(vv::equal(vv::vmap([](auto x, auto y) { return vv::dot(x, y); })(a, a), array<double, 2>{14, 77}));
static_assert(vv::equal(vv::vmap(vv::vmap(square))(a), array<double, 2, 3>{1, 4, 9, 16, 25, 36}));
static_assert(vv::equal(vv::vmap([](auto x) {
                          return vv::vmap([](auto p, auto q) { return p * q; }, vv::in_dims<0, vv::none>)(x, x);
                        })(a), // outer product by rows
                        array<double, 2, 3, 3>{1, 2, 3, 2, 4, 6, 3, 6, 9, 16, 20, 24, 20, 25, 30, 24, 30, 36}));
