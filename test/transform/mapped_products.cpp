// SPDX-License-Identifier: BSL-1.0
// Products of mapped values and one matrix: values, and derivatives by both, beside a loop.
#include "../sample/value.hpp"

#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using product = std::function<tensor(tensor const&, tensor const&)>;
constexpr int lanes = 7;
/// `f(one, x)` for each of `all`.
tensor in_turn(product const& f, tensor const& one, tensor const& all) {
  std::vector<tensor> r;
  for (int k = 0; k < lanes; ++k) r.push_back(f(one, all[k]));
  return vv::stack(r, 0);
}
tensor mapped(product const& f, tensor const& one, tensor const& all) {
  return vv::vmap(f, vv::in_dims<vv::none, 0>)(one, all);
}
void check(tensor const& found, tensor const& right) { CHECK(difference(found, right, 1e-12) == ""); }
void check(product const& f, tensor const& one, tensor const& all) {
  check(mapped(f, one, all), in_turn(f, one, all));
  auto const loss = [&](auto const& run) {
    return [&f, run](tensor const& o, tensor const& a) { return vv::sum(vv::sin(run(f, o, a))); };
  };
  auto const fast = loss(mapped), slow = loss(in_turn);
  auto const [by_one, by_all] = vv::grad<0, 1>(fast)(one, all);
  auto const [right_one, right_all] = vv::grad<0, 1>(slow)(one, all);
  check(by_one, right_one);
  check(by_all, right_all);
  auto const of_lane = [&](tensor const& o, tensor const& a) { return vv::sum(vv::sin(f(o, a))); };
  check(vv::vmap(vv::grad<1>(of_lane), vv::in_dims<vv::none, 0>)(one, all), right_all);
  check(vv::sum(vv::vmap(vv::grad(of_lane), vv::in_dims<vv::none, 0>)(one, all), 0), right_one);
  auto const twice = [&](auto const& l) {
    return vv::grad([&](tensor const& o) { return vv::sum(vv::square(vv::grad(l)(o, all))); })(one);
  };
  check(twice(fast), twice(slow));
  check(vv::jvp([&](tensor const& o) { return fast(o, all); }, std::tuple(one), std::tuple(one * 0.5)).second,
        vv::sum(right_one * one * 0.5));
}
} // namespace

TEST_CASE("vmap: products with one matrix for all lanes", "[transform][vmap]") {
  vv::manual_seed(5);
  auto const d = dtype::float64;
  tensor const w = vv::randn({5, 4}, d);
  auto const transposed = [](tensor const& t) -> tensor { return vv::transpose(t); };
  check([](tensor const& a, tensor const& x) { return vv::matmul(a, x); }, w, vv::randn({lanes, 4}, d));
  check([](tensor const& a, tensor const& x) { return vv::matmul(x, a); }, w, vv::randn({lanes, 5}, d));
  check([&](tensor const& a, tensor const& x) { return vv::matmul(x, transposed(a)); }, w, vv::randn({lanes, 4}, d));
  check([&](tensor const& a, tensor const& x) { return vv::matmul(transposed(a), x); }, w, vv::randn({lanes, 5}, d));
  check([](tensor const& a, tensor const& x) { return vv::matmul(a, x); }, w, vv::randn({lanes, 4, 3}, d));
  check([](tensor const& a, tensor const& x) { return vv::matmul(x, a); }, w, vv::randn({lanes, 6, 5}, d));
  check([&](tensor const& a, tensor const& x) { return vv::matmul(transposed(x), transposed(a)); }, w,
        vv::randn({lanes, 4, 3}, d));
  check([](tensor const& a,
           tensor const& x) { return vv::matmul(vv::vmap([&](tensor const& r) { return vv::matmul(a, r); })(x), a); },
        vv::randn({4, 4}, d), vv::randn({lanes, 3, 4}, d));
  tensor const none = vv::vmap([&](tensor const& x) { return vv::matmul(w, x); })(vv::zeros({0, 4}, d));
  CHECK(none.sizes() == dims{0, 5});
  // No matrix for each lane: the gradient is one product.
  vv::graph const g = vv::make_fx(vv::grad([](tensor const& a, tensor const& x) {
    return vv::sum(vv::vmap([&](tensor const& r) { return vv::tanh(vv::matmul(a, r)); })(x));
  }))(w, vv::randn({lanes, 4}, d));
  for (vv::node const& n : g) CHECK(vv::numel(n.out.sizes) <= lanes * 5);
}
