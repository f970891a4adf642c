// SPDX-License-Identifier: BSL-1.0
// Branches on static values and in fused programs.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// log(v) above 0, v * v below: the branch not taken has no value there.
auto const piecewise = [](auto const& v) {
  return vv::cond(v > 0.0, [](auto const& a) { return vv::log(a); }, [](auto const& a) { return a * a; }, v);
};
} // namespace

TEST_CASE("cond: forwards over reverse, and results of any structure, where the predicate is traced or mapped",
          "[hop][cond][fuse]") {
  vv::array<double, 3> const a{0.5, -1, 2};
  auto const twice = vv::vmap(vv::jacfwd(vv::grad(piecewise)))(a),
             fused = vv::fuse(vv::vmap(vv::hessian(piecewise)))(a);
  for (int k = 0; k < 3; ++k) CHECK((twice[k] == vv::grad(vv::grad(piecewise))(a[k]) && fused[k] == twice[k]));
  constexpr auto in_loop = [](auto x) { // a branch of one operand inside of a step
    auto const [c, none] = vv::scan(
        [](auto c, auto r) {
          return std::pair(
              c * r + vv::cond(r > 0.0, [](auto v) { return vv::sin(v); }, [](auto v) { return v * v; }, r), vv::none);
        },
        vv::sum(x), x);
    return c;
  };
  auto const h = vv::fuse(vv::hessian(in_loop))(vv::array<double, 2>{1, -2});
  tensor const g = vv::hessian(in_loop)(from({1, -2}, {2}));
  for (int k = 0; k < 4; ++k) CHECK(h.data[k] == Approx(g.data<double>()[k]));
  // a tuple of one stays a tuple, a pair with an array in it a pair
  static constexpr auto one = [](auto x) {
    return vv::cond(x > 0.0, [](auto v) { return std::tuple(vv::sin(v)); }, [](auto v) { return std::tuple(v); }, x);
  };
  static constexpr auto tree = [](auto x) {
    return vv::cond(
        x > 0.0, [](auto v) { return std::pair(v * v, std::array{v, 2.0 * v}); },
        [](auto v) { return std::pair(v, std::array{v * v, v}); }, x);
  };
  constexpr auto all = [](auto x) {
    auto const [o, d] = vv::jvp(one, std::tuple(x), std::tuple(x));
    auto const [t, dt] = vv::jvp(tree, std::tuple(x), std::tuple(x));
    return std::get<0>(o) + std::get<0>(d) * t.first + dt.second[0] * t.second[1];
  };
  auto const mine = vv::fuse(vv::vmap(vv::value_and_grad(all)))(a);
  auto const tensors = vv::vmap(vv::value_and_grad(all))(from({0.5, -1, 2}, {3}));
  for (int k = 0; k < 3; ++k) {
    CHECK(std::get<0>(mine)[k] == Approx(elements(tensors.first)[static_cast<std::size_t>(k)]));
    CHECK(std::get<1>(mine)[k] == Approx(elements(tensors.second)[static_cast<std::size_t>(k)]));
  }
}
