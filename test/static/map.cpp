// SPDX-License-Identifier: BSL-1.0
// map of static values: eager, in every interpreter, and traced.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr array<double, 3> xs{1, 2, 3};
constexpr array<double, 2, 3> m{1, 2, 3, 4, 5, 6};
constexpr auto squares = [](auto x) { return vv::map([](auto v) { return v * v; }, x); };
static_assert(vv::equal(squares(xs), array<double, 3>{1, 4, 9}) &&
              vv::equal(squares(m), array<double, 2, 3>{1, 4, 9, 16, 25, 36}));

// trees in and out, leaves that are none, arguments of every row
constexpr auto product = [](auto x, auto w) {
  return vv::map([](auto row, auto w) { return vv::sum(row * w); }, x, w);
};
static_assert(vv::equal(product(m, xs), array<double, 2>{14, 32}));
constexpr auto trees = vv::map(
    [](auto const& x, auto const& scale) {
      auto [u, v] = x;
      auto [a, b] = scale;
      return std::tuple(u * a, vv::none, std::array{v, u * b});
    },
    std::pair{xs, 2 * xs}, std::pair(10.0, 100.0));
static_assert(vv::equal(std::get<0>(trees), array<double, 3>{10, 20, 30}) && vv::is_none<decltype(std::get<1>(trees))>);
static_assert(vv::equal(std::get<2>(trees)[0], 2 * xs) && vv::equal(std::get<2>(trees)[1], 100 * xs));
static_assert(vv::is_none<decltype(vv::map([](auto) { return vv::none; }, xs))>);

// reverse mode, forward mode, vmap, and their nesting agree with what the formula says
constexpr auto score = [](auto x, auto w) { return vv::sum(product(x * x, w)); };
static_assert(vv::equal(vv::grad(score)(m, xs), array<double, 2, 3>{2, 8, 18, 8, 20, 36}));
static_assert(vv::equal(vv::grad<1>(score)(m, xs), array<double, 3>{17, 29, 45}));
static_assert(vv::jvp(score, std::tuple(m, xs), std::tuple(m, xs)).second == 3 * score(m, xs));
static_assert(vv::equal(vv::vmap(product, vv::in_dims<vv::none, 0>)(m, array<double, 2, 3>{1, 2, 3, 1, 0, 0}),
                        array<double, 2, 2>{14, 32, 1, 4}));
static_assert(vv::equal(vv::vmap(product)(array<double, 2, 1, 3>{1, 2, 3, 4, 5, 6},
                                          array<double, 2, 3>{1, 2, 3, 1, 0, 0}),
                        array<double, 2, 1>{14, 4}));
static_assert(vv::equal(vv::vmap(vv::grad<1>(score), vv::in_dims<0, vv::none>)(array<double, 2, 1, 3>{1, 2, 3, 4, 5, 6},
                                                                               xs),
                        array<double, 2, 3>{1, 4, 9, 16, 25, 36}));
static_assert(vv::equal(vv::hessian([](auto v) { return vv::sum(vv::map([](auto x) { return x * x * x; }, v)); })(xs),
                        array<double, 3, 3>{6, 0, 0, 0, 12, 0, 0, 0, 18}));
static_assert(vv::equal(vv::grad([](auto w) {
                          return vv::sum(vv::map(vv::closure([](auto x, auto w) { return x * w * w; }, w), xs));
                        })(3.0),
                        36.0));

// a mode is given one call, and sees what the function does
struct counting : vv::dispatch_mode<counting> {
  int maps = 0, others = 0;
  constexpr auto process(auto op, auto const&... x) {
    if (std::string_view(op.name()) == "map") ++maps;
    else ++others;
    return op(x...);
  }
};
constexpr auto counted() {
  counting mode;
  auto const y = vv::with(mode, squares, xs);
  return std::tuple(y[2], mode.maps, mode.others);
}
static_assert(counted() == std::tuple(9.0, 1, 3));

// traced: one node; what it captures and its arguments are inputs of its function
constexpr auto traced = vv::trace(product, vv::spec<double, vv::dim<"n">, 3>, vv::spec<double, 3>);
static_assert(vv::verify(traced.thaw()) && traced.sizes.regions == 2 && traced.regions[1].inputs == 2 &&
              traced.nodes[2].op->name == std::string_view("map"));
static_assert(traced.nodes[traced.results[0]].out.sizes == vv::dims{traced.symbol("n")});
constexpr auto lifting = vv::trace([](auto x, auto w) { return vv::map([=](auto row) { return row * w; }, x); },
                                   vv::spec<double, 2, 3>, vv::spec<double, 3>);
static_assert(vv::verify(lifting.thaw()) && lifting.sizes.regions == 2 && lifting.regions[1].inputs == 2);
