// SPDX-License-Identifier: BSL-1.0
// A tour of compile time: every line marked by static_assert was checked by the compiler; the program only tells about
// it.
// output: the compiler checked 16 statements
#include <varve/varve.hpp>

#include <boost/hana/equal.hpp>
#include <boost/hana/integral_constant.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <cstdio>

namespace vv = varve;
namespace hana = boost::hana;

// 1. Derivatives of ordinary functions, to any order.
constexpr auto cube = [](auto x) { return x * x * x; };
static_assert(vv::grad(cube)(2.0) == 12.0);
static_assert(vv::grad(vv::grad(cube))(2.0) == 12.0);
static_assert(vv::jvp(cube, std::tuple{2.0}, std::tuple{1.0}).second == 12.0); // forward mode agrees

// 2. Arrays have shapes in their types; attributes are types too.
constexpr vv::array<double, 3> xs{1, 2, 3};
constexpr auto m = vv::sum(vv::reshape(vv::arange<double, 6>, vv::shape<2, 3>), vv::axis<1>);
static_assert(vv::equal(m, vv::array<double, 2>{3, 12}));
static_assert(vv::equal(vv::matmul(vv::array<double, 2, 2>{1, 2, 3, 4}, vv::array<double, 2>{1, 1}),
                        vv::array<double, 2>{3, 7}));

// 3. Transforms compose: per-example gradients, Jacobians, Hessians.
static_assert(vv::equal(vv::vmap(vv::grad(cube))(xs), vv::array<double, 3>{3, 12, 27}));
constexpr auto squares = [](auto x) { return x * x; };
static_assert(vv::equal(vv::jacfwd(squares)(xs), vv::jacrev(squares)(xs)));
static_assert(vv::hessian([](auto x) { return vv::sum(x * x * x); })(xs)(2, 2) == 18);

// 4. Control flow: a plain if under grad, cond where a batch must choose.
constexpr auto hinge = [](auto x) { return x > 1.0 ? x * 0.0 : 1.0 - x; };
static_assert(vv::grad(hinge)(0.5) == -1.0);
constexpr auto branch = [](auto x) {
  return vv::cond(x > 0, [](auto v) { return v * v; }, [](auto v) { return -v; }, x);
};
static_assert(vv::equal(vv::vmap(vv::grad(branch))(vv::array<double, 2>{3, -3}), vv::array<double, 2>{6, -1}));

// 5. The stack of interpreters a value is seen through is a type; Hana's algorithms work on it.
constexpr auto depth_two = [](auto x) {
  static_assert(hana::size(vv::stack_of<decltype(x)>) == hana::size_c<2>);
  return x * x;
};
static_assert(vv::grad(vv::grad(depth_two))(1.0) == 2.0);

// 6. A mode of one's own, resolved by the compiler.
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
constexpr int operators_of_the_gradient = [] {
  counting c;
  (void)vv::with(c, vv::grad(cube), 2.0);
  return c.calls;
}();
static_assert(operators_of_the_gradient > 2);

// 7. What a transform captures is declared; perturbation confusion is a compile error, this is its remedy.
constexpr double nested = vv::grad([](auto x) {
  auto const inner = vv::closure([](auto y, auto captured) { return captured * y; }, x);
  return x * vv::grad(inner)(1.0);
})(3.0);
static_assert(nested == 6.0);

// 8. Programs are values: trace, count, assert.
constexpr auto loss = [](auto w, auto x, auto y) {
  auto p = vv::sigmoid(vv::dot(w, x));
  return -(y * vv::log(p) + (1 - y) * vv::log(1 - p));
};
constexpr auto g = vv::trace(vv::grad(loss), vv::spec<float, 64>, vv::spec<float, 64>, vv::spec<float>);
static_assert(g.count(vv::sigmoid) == 1);
constexpr auto any_length = vv::trace([](auto x) { return vv::tanh(x) * x; }, vv::spec<float, vv::dim<"n">>);
static_assert(any_length.operations() == 2);

int main() {
  std::printf("the compiler checked 16 statements; the traced gradient of the loss:\n%s", vv::to_string(g).c_str());
  auto const fused = vv::fuse(vv::vmap(vv::grad(cube))); // and what it would run
  auto const d = fused(xs);
  std::printf("fused per-element gradients of x^3 at 1, 2, 3: %g %g %g\n", d[0], d[1], d[2]);
}
