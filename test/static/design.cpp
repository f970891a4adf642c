// SPDX-License-Identifier: BSL-1.0
// The compile-time half of what the library promises to look like, line by line.
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto cube = [](auto x) { return x * x * x; };
static_assert(vv::grad(cube)(2.0) == 12.0);
static_assert(vv::grad(vv::grad(cube))(2.0) == 12.0);
constexpr vv::array<double, 3> xs{1, 2, 3};
static_assert(vv::equal(vv::vmap(vv::grad(cube))(xs), vv::array<double, 3>{3, 12, 27}));

constexpr auto loss = [](auto w, auto x, auto y) { // logistic regression, one example
  auto p = vv::sigmoid(vv::dot(w, x));
  return -(y * vv::log(p) + (1 - y) * vv::log(1 - p));
};
constexpr auto step = vv::fuse(vv::vmap(vv::grad(loss), vv::in_dims<vv::none, 0, 0>)); // per-example gradients
static_assert(std::is_empty_v<decltype(step)>);
constexpr auto g = vv::trace(vv::grad(loss), vv::spec<float, 64>, vv::spec<float, 64>, vv::spec<float>);
static_assert(g.count(vv::sigmoid) == 1);
constexpr auto m = vv::sum(vv::reshape(vv::arange<double, 6>, vv::shape<2, 3>),
                           vv::axis<1>); // attributes: one spelling for both worlds; ints also on tensor and proxy
static_assert(vv::equal(m, vv::array<double, 2>{3, 12}));

constexpr auto per_example = vv::vmap(vv::grad(loss), vv::in_dims<vv::none, 0, 0>);
constexpr auto gradients =
    per_example(vv::array<double, 2>{0, 0}, vv::array<double, 3, 2>{1, 2, 3, 4, 5, 6}, vv::array<double, 3>{1, 0, 1});
static_assert(vv::equal(gradients, vv::array<double, 3, 2>{-0.5, -1, 1.5, 2, -2.5, -3}));

// The two mistakes of captures under static transforms, written with the remedy.
struct counting : vv::dispatch_mode<counting> { // a user's mode
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...); // op(args...) lowers
  }
};
constexpr double nested() {
  counting mode;
  return vv::grad([&](auto x) {
    return vv::with(
        mode, [](auto u, auto v) { return u * vv::grad(vv::closure([](auto y, auto v) { return v * y; }, v))(1.0); }, x,
        3.0);
  })(2.0);
}
static_assert(nested() == 3);
constexpr int calls() {
  counting mode;
  auto f = [](auto x) { return vv::sin(x) * x; };
  (void)vv::with(mode, f, 3.0);
  return mode.calls;
}
static_assert(calls() == 2);
