// SPDX-License-Identifier: BSL-1.0
// Normalizing operators in constant expressions: values, safety against overflow, gradients.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr bool near(double a, double b) { return a - b < 1e-14 && b - a < 1e-14; }
constexpr double third = 1.0 / 3;
constexpr auto even = vv::softmax(array<double, 3>{1000, 1000, 1000}, vv::axis<0>);
static_assert(near(even[0], third) && near(even[2], third));
constexpr auto lse = vv::logsumexp(array<double, 2>{0, 0}, vv::axis<0>);
static_assert(near(lse, 0.69314718055994530942));
static_assert(vv::logsumexp(array<double, 2>{1e5, 1e5}, vv::axis<0>) > 1e5);
constexpr double infinity = std::numeric_limits<double>::infinity();
static_assert(vv::logsumexp(array<double, 2>{-infinity, -infinity}, vv::axis<0>) == -infinity);
constexpr auto ls = vv::log_softmax(array<double, 2, 2>{0, 0, 5, 5}, vv::axis<-1>);
static_assert(near(ls.data[0], -0.69314718055994530942) && near(ls.data[3], ls.data[0]));

// the gradient of logsumexp is softmax
constexpr array<double, 3> x{0.5, -1, 2};
constexpr auto g = vv::grad([](auto v) { return vv::logsumexp(v, vv::axis<0>); })(x);
constexpr auto p = vv::softmax(x, vv::axis<0>);
static_assert(near(g[0], p[0]) && near(g[1], p[1]) && near(g[2], p[2]) && near(p[0] + p[1] + p[2], 1));
// cross entropy: softmax minus the target
constexpr auto entropy = [](auto v, auto target) { return -vv::sum(vv::log_softmax(v, vv::axis<0>) * target); };
constexpr auto d = vv::grad(entropy)(x, array<double, 3>{0, 1, 0});
static_assert(near(d[0], p[0]) && near(d[1], p[1] - 1) && near(d[2], p[2]));
// mapped along columns
static_assert(near(vv::vmap([](auto v) { return vv::softmax(v, vv::axis<0>); }, vv::in_dims<1>,
                            vv::out_dims<1>)(array<double, 2, 1>{0, 0}).data[1],
                   0.5));
