// SPDX-License-Identifier: BSL-1.0
/// @file
/// Gradients of many slices of one value are added up in place: right values, and nothing else that could be told.
#include <varve/varve.hpp>

#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims, vv::index_t, vv::tensor;

namespace {
tensor ramp(dims const& sizes) {
  tensor t = vv::empty(sizes, vv::dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) t.data<double>()[k] = 0.25 * static_cast<double>(k % 13) - 1;
  return t;
}
struct part {
  int axis;
  index_t from, to, step;
};
std::vector<part> const parts{{0, 0, 3, 1}, {1, 1, 7, 2}, {0, 2, 6, 3}, {1, 0, 7, 1}, {0, 5, 6, 1}, {0, 1, 1, 1}};

/// The sum over the parts of (k + 1) p^2 / 2, and perhaps the value itself: its gradient is the sum of (k + 1) x there.
constexpr auto f = [](auto const& x, bool itself) {
  auto s = vv::sum(vv::slice(x, 0, 0, 0));
  for (std::size_t k = 0; k < parts.size(); ++k) {
    auto const p = vv::slice(x, parts[k].axis, parts[k].from, parts[k].to, parts[k].step);
    s = s + vv::sum(p * p) * (0.5 * static_cast<double>(k + 1));
    if (itself && k == 2) s = s + vv::sum(vv::transpose(x) * 3.0);
  }
  return s;
};
tensor expected(tensor const& x, bool itself) {
  tensor g = vv::zeros(x.sizes(), x.dtype());
  index_t const cols = x.sizes()[1];
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (index_t i = 0; i < x.numel(); ++i) {
      index_t const at = parts[k].axis == 0 ? i / cols : i % cols;
      if (at >= parts[k].from && at < parts[k].to && (at - parts[k].from) % parts[k].step == 0)
        g.data<double>()[i] += static_cast<double>(k + 1) * x.data<double>()[i];
    }
  if (itself)
    for (index_t i = 0; i < x.numel(); ++i) g.data<double>()[i] += 3;
  return g;
}
double difference(tensor const& a, tensor const& b) {
  return a.sizes() == b.sizes() ? vv::amax(vv::abs(a - b)).item<double>() : 1e30;
}
} // namespace

TEST_CASE("slices: gradients of many parts of one value", "[autograd][slices]") {
  tensor const x = ramp({6, 7});
  for (bool itself : {false, true}) {
    tensor const want = expected(x, itself);
    CHECK(difference(vv::grad([=](auto const& v) { return f(v, itself); })(x), want) < 1e-12);
    tensor leaf = vv::clone(x);
    leaf.requires_grad_();
    tensor const y = f(leaf, itself);
    y.backward({}, true);
    CHECK(difference(leaf.grad(), want) < 1e-12);
    y.backward(); // the graph was kept; gradients accumulate
    CHECK(difference(leaf.grad(), want * 2.0) < 1e-12);
    CHECK_THROWS_AS(y.backward(), vv::autograd_error);
    // of what no leaf is, with another use, and under vmap
    auto const inner = [=](auto const& v) { return f(v * 1.0, itself); };
    CHECK(difference(vv::grad(inner)(x), want) < 1e-12);
    tensor const both = vv::stack(std::vector<tensor>{x, x * 2.0}, 0);
    tensor const rows = vv::vmap(vv::grad(inner))(both);
    CHECK(difference(vv::select(rows, 0, 0), want) < 1e-12);
    CHECK(difference(vv::select(rows, 0, 1), expected(x * 2.0, itself)) < 1e-12);
    // second derivatives: along v the gradient changes by the same weights
    tensor const v = ramp({6, 7}) * 0.5;
    auto const g = vv::grad([=](auto const& u) { return f(u, itself); });
    auto const [value, tangent] = vv::jvp(g, std::tuple{x}, std::tuple{v});
    CHECK(difference(tangent, expected(v, false)) < 1e-12);
    auto const twice = vv::grad([&](auto const& u) { return vv::sum(g(u) * v); })(x);
    CHECK(difference(twice, expected(v, false)) < 1e-12);
  }
}
TEST_CASE("slices: a cotangent that others hold is not written into", "[autograd][slices]") {
  tensor x = ramp({6, 7});
  x.requires_grad_();
  tensor const whole = x * 1.0, row = vv::slice(whole, 0, 1, 2);
  tensor const seed = vv::ones({6, 7}, vv::dtype::float64);
  std::vector<tensor> seen;
  auto const h = whole.register_hook([&](tensor const& g) { seen.push_back(g); });
  auto const r = row.register_hook([&](tensor const& g) { seen.push_back(g); });
  tensor const y = vv::sum(row * 2.0) + vv::sum(vv::slice(whole, 0, 1, 3)) + vv::sum(whole * seed);
  y.backward();
  CHECK(difference(seed, vv::ones({6, 7}, vv::dtype::float64)) == 0);
  REQUIRE(seen.size() == 2);
  CHECK(difference(seen[0], vv::full({1, 7}, 2.0, vv::dtype::float64)) == 0);
  for (index_t k = 0; k < 42; ++k) {
    double const want = 1 + (k / 7 == 1 ? 3 : 0) + (k / 7 == 2 ? 1 : 0);
    CHECK(x.grad().data<double>()[k] == want);
    CHECK(seen[1].data<double>()[k] == want);
  }
}
TEST_CASE("slices: registered kernels add them up", "[autograd][slices][dispatch]") {
  auto const run = [] {
    tensor x = ramp({6, 7});
    x.requires_grad_();
    tensor const whole = x * 1.0;
    (vv::sum(vv::slice(whole, 0, 0, 2)) + vv::sum(vv::slice(whole, 0, 1, 3))).backward();
    return x.grad();
  };
  tensor const expected = run();
  int calls = 0;
  vv::library lib("aten");
  lib.impl("slice_backward", vv::dispatch_key::cpu, [&](tensor const& g, dims const& sizes, dims const& r) -> tensor {
    ++calls;
    tensor whole = vv::zeros(sizes, g.dtype());
    tensor const part = vv::slice(whole, static_cast<int>(r[0]), r[1], r[2], r[3]);
    vv::copy_(part, g);
    return whole;
  });
  CHECK(difference(run(), expected) == 0);
  CHECK(calls == 2);
}
TEST_CASE("slices: memory of the user is not added to", "[autograd][slices]") {
  std::vector<double> mine(42, 1.0);
  auto const given = [&](tensor const& g) {
    return tensor::from_blob(mine.data(), g.sizes(), vv::contiguous_strides(g.sizes()), vv::dtype::float64);
  };
  tensor x = ramp({6, 7});
  x.requires_grad_();
  tensor const whole = x * 1.0, row = vv::slice(whole, 0, 1, 2), more = whole + 1.0;
  auto const h = more.register_hook(given);
  (vv::sum(row) + vv::sum(more)).backward();
  tensor const leaf = x + 0.0;
  auto const l = leaf.register_hook(given);
  x.zero_grad();
  vv::sum(leaf).backward();
  vv::sum(x * 2.0).backward();
  CHECK(difference(x.grad(), vv::full({6, 7}, 3.0, vv::dtype::float64)) == 0);
  CHECK(mine == std::vector<double>(42, 1.0));
}
