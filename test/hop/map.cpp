// SPDX-License-Identifier: BSL-1.0
#include "../sample/loop.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using vv::array;
/// Rows of 2 with two arguments, one of which is not differentiated everywhere: sums of tanh(x w + b).
constexpr auto rows_of = [](auto const& xs, auto const& w, auto const& b) {
  return vv::map([](auto const& x, auto const& w, auto const& b) { return vv::tanh(x * w + b); }, xs, w, b);
};
constexpr auto score = [](auto const& xs, auto const& w, auto const& b) {
  auto const y = rows_of(xs, w, b);
  return vv::sum(y * y);
};
constexpr array<double, 3, 2> rows{0.5, -1, 0.25, 2, -0.75, 0.3};
constexpr array<double, 2> weight{0.7, -1.3}, bias{0.1, -0.2};
/// What map stands for.
template <class F, class... A>
tensor looped(F const& f, tensor const& xs, A const&... args) {
  std::vector<tensor> all;
  for (int k = 0; k < xs.sizes()[0]; ++k) all.push_back(f(at(xs, k), args...));
  return vv::stack(all, 0);
}
} // namespace

TEST_CASE("map: fused, a loop over rows and its gradient", "[hop][map][fuse]") {
  constexpr auto plain = [](auto xs, auto w, auto b) {
    auto y = vv::tanh(xs * w + b);
    return vv::sum(y * y);
  };
  CHECK(vv::fuse(score)(rows, weight, bias) == Approx(plain(rows, weight, bias)));
  auto const [gx, gw, gb] = vv::fuse(vv::grad<0, 1, 2>(score))(rows, weight, bias);
  auto const [hx, hw, hb] = vv::grad<0, 1, 2>(plain)(rows, weight, bias);
  auto const [ex, ew, eb] = vv::grad<0, 1, 2>(score)(rows, weight, bias);
  for (int k = 0; k < 6; ++k) CHECK((gx.data[k] == Approx(hx.data[k]) && ex.data[k] == Approx(hx.data[k])));
  for (int k = 0; k < 2; ++k)
    CHECK((gw[k] == Approx(hw[k]) && gb[k] == Approx(hb[k]) && ew[k] == Approx(hw[k]) && eb[k] == Approx(hb[k])));
  auto const fused = vv::fuse(rows_of)(rows, weight, bias), eager = rows_of(rows, weight, bias);
  for (int k = 0; k < 6; ++k) CHECK(fused.data[k] == Approx(eager.data[k]));
  // rows of rank 0, a tree of results, of which one is a row as it came
  auto const [u, v] = vv::fuse([](auto x) { return vv::map([](auto e) { return std::tuple(e * e, e); }, x); })(
      array<double, 5>{1, 2, 3, 4, 5});
  CHECK(vv::equal(u, array<double, 5>{1, 4, 9, 16, 25}));
  CHECK(vv::equal(v, array<double, 5>{1, 2, 3, 4, 5}));
}

TEST_CASE("map: on tensors in every interpreter, as a loop and as on static values", "[hop][map]") {
  tensor const x = boxed(rows), w = boxed(weight), b = boxed(bias);
  auto const one = [](tensor const& x, tensor const& w, tensor const& b) { return tensor(vv::tanh(x * w + b)); };
  CHECK(agree(rows_of(x, w, b), looped(one, x, w, b)));
  auto const g = vv::grad<0, 1, 2>(score)(x, w, b);
  auto const s = vv::grad<0, 1, 2>(score)(rows, weight, bias);
  CHECK(agree(std::get<0>(g), boxed(std::get<0>(s))));
  CHECK(agree(std::get<1>(g), boxed(std::get<1>(s))));
  CHECK(agree(std::get<2>(g), boxed(std::get<2>(s))));
  auto const along =
      vv::jvp(score, std::tuple(x, w, b), std::tuple(vv::ones_like(x), vv::ones_like(w), vv::ones_like(b))).second;
  CHECK(along.item<double>() ==
        Approx((vv::sum(std::get<0>(g)) + vv::sum(std::get<1>(g)) + vv::sum(std::get<2>(g))).item<double>()));
  auto const of_w = [&](auto const& v) { return score(x, v, b); };
  CHECK(agree(vv::jacfwd(vv::grad(of_w))(w), vv::jacrev(vv::grad(of_w))(w)));
  // mapped once more: each operand, and per-example gradients
  tensor const x2 = vv::stack(std::vector{x, x + 1.0}, 0), w2 = vv::stack(std::vector{w, w - 0.5}, 0);
  auto const both = vv::vmap(rows_of, vv::in_dims<0, 0, vv::none>)(x2, w2, b),
             inner = vv::vmap(rows_of, vv::in_dims<vv::none, 0, vv::none>)(x, w2, b);
  auto const gw = vv::vmap(vv::grad<1>(score), vv::in_dims<0, vv::none, vv::none>)(x2, w, b);
  for (int k = 0; k < 2; ++k) {
    CHECK(agree(at(both, k), rows_of(at(x2, k), at(w2, k), b)));
    CHECK(agree(at(inner, k), rows_of(x, at(w2, k), b)));
    CHECK(agree(at(gw, k), vv::grad<1>(score)(at(x2, k), w, b)));
  }
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("map: eager gradients, of rows alone and of arguments too", "[hop][map][LP-S19][LP-S22]") {
  // one row's worth of the argument gets the sum over rows; what needs no gradient gets none
  tensor const xs = vv::zeros({2, 3}), y = vv::ones({3});
  xs.requires_grad_(), y.requires_grad_();
  auto const product = [](tensor const& x, tensor const& y) { return tensor(x * y); };
  vv::sum(vv::map(product, xs, y)).backward();
  CHECK(agree(xs.grad(), vv::ones({2, 3})));
  CHECK(agree(y.grad(), vv::zeros({3})));
  tensor const x = boxed(rows), w = boxed(weight), leaf = boxed(rows);
  leaf.requires_grad_();
  auto const f = [](tensor const& x, tensor const& w) { return tensor(vv::cos(vv::sin(x)) * vv::sin(vv::cos(w))); };
  vv::sum(vv::map(f, leaf, w)).backward();
  CHECK_FALSE(w.grad().defined());
  tensor const same = boxed(rows);
  same.requires_grad_();
  vv::sum(looped(f, same, w)).backward();
  CHECK(agree(leaf.grad(), same.grad()));
}

TEST_CASE("map: a run-time trace holds its function, lifts what it captures, and runs", "[hop][map][graph]") {
  tensor const x = boxed(rows), w = boxed(weight), b = boxed(bias);
  auto const nested = [](auto const& x, auto const& w, auto const& b) {
    return vv::map(
        [&](auto const& row, auto const& v) {
          return vv::map([&](auto const& e) { return e * vv::sum(v) + b; }, row) * vv::sum(w);
        },
        x, w);
  };
  auto const flat = [&](auto const& x, auto const& w, auto const& b) { return vv::sum(vv::sin(nested(x, w, b))); };
  auto const g = vv::make_fx(flat)(x, w, b), dg = vv::make_fx(vv::grad<1>(flat))(x, w, b);
  CHECK(vv::verify(g));
  CHECK(vv::verify(dg));
  CHECK(g.regions.size() == 3);
  vv::boxed_args const other(x * 2.0, w - 0.25, b + 1.0);
  CHECK(agree(vv::interpret(g, other)[0], flat(other[0], other[1], other[2])));
  CHECK(agree(vv::interpret(dg, other)[0], vv::grad<1>(flat)(other[0], other[1], other[2])));
}

TEST_CASE("map: trees, of run-time structure too, and leaves that are none", "[hop][map][LP-S18]") {
  tensor const x = boxed(rows);
  auto const y = vv::map(
      [](std::vector<tensor> const& v, std::pair<tensor, tensor> const& c) {
        return std::tuple{v[0] * c.first, vv::none, std::vector<tensor>{v[1] + c.second, v[0]}};
      },
      std::vector<tensor>{x, x + 1.0}, std::pair{vv::full({}, 2.0), vv::full({}, 10.0)});
  CHECK(agree(std::get<0>(y), x * 2.0));
  CHECK(std::get<2>(y).size() == 2);
  CHECK(agree(std::get<2>(y)[0], x + 11.0));
  CHECK_FALSE(std::get<2>(y)[1].shares_storage(x));
}

TEST_CASE("map: what is wrong is said, and leaves every stack as it was", "[hop][map][exception][LP-S17][LP-S20]") {
  tensor const x = boxed(rows);
  auto const same = [](tensor const& v) { return v; };
  CHECK_THROWS_WITH(vv::map(same, vv::full({}, 1.0)), ContainsText("no dimension to walk through"));
  CHECK(vv::map(same, vv::zeros({0, 2})).sizes() == dims{0, 2});
  CHECK_THROWS_AS(vv::map([](std::pair<tensor, tensor> const& v) { return v.first; },
                          std::pair{vv::zeros({3, 2}), vv::zeros({4, 2})}),
                  vv::shape_error);
  auto const writes = [](tensor const& v, tensor const& y) {
    vv::add_(y, 4);
    return tensor(v + y);
  };
  CHECK_THROWS_WITH(vv::map(writes, x, vv::ones({2})),
                    ContainsText("map") && ContainsText("writes into one of its operands"));
  auto const through_a_view = [](tensor const& v) {
    vv::add_(vv::reshape(v, vv::dims{2, 1}), 1);
    return tensor(vv::sum(v));
  };
  CHECK_THROWS_WITH(vv::map(through_a_view, vv::clone(x)), ContainsText("writes into one of its operands"));
  CHECK(agree(vv::map(
                  [](tensor const& v) {
                    tensor const own = vv::clone(v);
                    vv::add_(own, 1);
                    return own;
                  },
                  x),
              x + 1.0)); // what is its own it may write
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("map: rows of which one tree asks for a gradient", "[hop][map][LP-S19]") {
  tensor const x = counted({3, 2}), y = counted({3, 2}) + 1.0;
  auto const f = [](std::pair<tensor, tensor> const& v) {
    return tensor(vv::cos(vv::sin(v.first)) * vv::sin(vv::cos(v.second)));
  };
  x.requires_grad_();
  tensor const mapped = vv::map(f, std::pair{x, y});
  vv::sum(mapped).backward();
  tensor const again = x.detach() * 1.0;
  again.requires_grad_();
  std::vector<tensor> rows;
  for (int k = 0; k < 3; ++k) rows.push_back(f({at(again, k), at(y, k)}));
  CHECK(same(mapped.detach(), vv::stack(rows, 0).detach()));
  vv::sum(vv::stack(rows, 0)).backward();
  CHECK(same(x.grad(), again.grad()));
  CHECK_FALSE(y.grad().defined());
}
