// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cmath>

namespace vv = varve;
namespace optim = varve::optim;
using vv::array;
using vv::tensor;

namespace {
template <class T>
struct line {
  T slope, offset;
};
constexpr auto loss = [](auto const& p) {
  return vv::sum((p.slope - 3.0) * (p.slope - 3.0) * 2.0) + vv::sum(p.offset * p.offset);
};
/// By the formulas of the papers, for one number with the gradient 4 (p - 3).
double adam_by_hand(double p, int steps, double lr, double decay, bool decoupled) {
  double m = 0, v = 0;
  for (int t = 1; t <= steps; ++t) {
    double g = 4 * (p - 3) + (decoupled ? 0 : decay * p);
    if (decoupled) p -= lr * decay * p;
    m = 0.9 * m + 0.1 * g, v = 0.999 * v + 0.001 * g * g;
    p -= lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  return p;
}
template <class O, class P>
constexpr auto run(O const& o, P p, int steps) {
  auto s = o.init(p);
  for (int k = 0; k < steps; ++k) o.step(p, vv::grad(loss)(p), s);
  return p;
}
template <class O>
void same_in_both_worlds(O const& o) {
  line<array<double, 2>> const a{{1, -2}, {0.5, 4}};
  line<tensor> const t{tensor(a.slope), tensor(a.offset)};
  auto const x = run(o, a, 7);
  auto const y = run(o, t, 7);
  for (vv::index_t k = 0; k < 2; ++k) {
    CHECK(y.slope[k].item() == Approx(x.slope[k]));
    CHECK(y.offset[k].item() == Approx(x.offset[k]));
    line<double> const one{a.slope[k], a.offset[k]};
    CHECK(run(o, one, 7).slope == Approx(x.slope[k]));
  }
}
} // namespace

TEST_CASE("optim: adam and adamw by their formulas", "[optim]") {
  for (double decay : {0.0, 0.1})
    for (bool decoupled : {false, true}) {
      optim::adam const o{.lr = 0.05, .weight_decay = decay, .decoupled = decoupled};
      CHECK(run(o, line<double>{1, 2}, 9).slope == Approx(adam_by_hand(1, 9, 0.05, decay, decoupled)));
    }
  CHECK(run(optim::adamw(0.05, 0.1), line<double>{1, 2}, 9).slope == Approx(adam_by_hand(1, 9, 0.05, 0.1, true)));
}

TEST_CASE("optim: sgd with momentum and nesterov, by hand", "[optim]") {
  for (bool nesterov : {false, true}) {
    optim::sgd const o{
        .lr = 0.01, .momentum = 0.9, .dampening = nesterov ? 0 : 0.5, .weight_decay = 0.1, .nesterov = nesterov};
    double p = 1, v = 0;
    for (int k = 0; k < 5; ++k) {
      double const d = 4 * (p - 3) + 0.1 * p;
      v = k == 0 ? d : 0.9 * v + (1 - o.dampening) * d;
      p -= 0.01 * (nesterov ? d + 0.9 * v : v);
    }
    CHECK(run(o, line<double>{1, 2}, 5).slope == Approx(p));
  }
  STATIC_REQUIRE(run(optim::sgd{.lr = 0.125}, line<double>{1, 2}, 1).slope == 2);
  STATIC_REQUIRE(run(optim::sgd{.lr = 0.125}, line<double>{1, 2}, 1).offset == 1.5);
}

TEST_CASE("optim: numbers, arrays and tensors take the same steps", "[optim]") {
  same_in_both_worlds(optim::adam{.lr = 0.1});
  same_in_both_worlds(optim::adamw(0.1));
  same_in_both_worlds(optim::sgd{.lr = 0.02, .momentum = 0.9, .nesterov = true});
  same_in_both_worlds(optim::rmsprop{.lr = 0.05, .weight_decay = 0.01, .momentum = 0.5});
  auto const p = run(optim::adam{.lr = 0.1}, line<double>{1, 2}, 400);
  CHECK(p.slope == Approx(3).margin(1e-3));
  CHECK(p.offset == Approx(0).margin(1e-3));
}

TEST_CASE("optim: clip_grad_norm and schedules", "[optim]") {
  line<array<double, 2>> g{{3, 0}, {0, 4}};
  CHECK(optim::clip_grad_norm(g, 10.0) == 5);
  CHECK(g.slope[0] == 3);
  CHECK(optim::clip_grad_norm(g, 1.0) == 5);
  CHECK(g.slope[0] == Approx(0.6).epsilon(1e-6));
  line<tensor> t{tensor({3.0, 0.0}), tensor({0.0, 4.0})};
  CHECK(optim::clip_grad_norm(t, 1.0) == 5);
  CHECK(t.offset[1].item() == Approx(0.8).epsilon(1e-6));
  CHECK(optim::cosine(0, 10) == 1);
  CHECK(optim::cosine(5, 10, 0.2) == Approx(0.6));
  CHECK(optim::cosine(99, 10, 0.2) == Approx(0.2));
  CHECK(optim::warmup(1, 4) == 0.25);
  CHECK(optim::warmup(9, 4) == 1);
  CHECK(optim::decay(7, 3, 0.5) == 0.25);
}

TEST_CASE("optim: tensors take one pass, or operators where something watches, to the same numbers", "[optim]") {
  optim::adam const o{.lr = 0.1, .weight_decay = 0.01};
  for (vv::dtype const t : {vv::dtype::float32, vv::dtype::float64}) {
    std::vector<tensor> p, g;
    for (vv::index_t const n : {0, 1, 7, 4099}) {
      p.push_back(vv::sin(vv::arange(n, t))), g.push_back(vv::cos(vv::arange(n, t) * 3.0));
    }
    p.push_back(vv::transpose(vv::reshape(vv::arange(6, t), {2, 3})));
    g.push_back(vv::transpose(vv::reshape(vv::arange(6, t), {2, 3})));
    auto const steps = [&](auto const& from, auto const& by) {
      auto now = from;
      auto s = o.init(now);
      for (int k = 0; k < 3; ++k) o.step(now, by, s);
      return now;
    };
    // What a trace writes down are operators.
    std::vector<tensor> right;
    for (std::size_t k = 0; k < p.size(); ++k) {
      auto const one = [&](tensor const& x, tensor const& y) { return steps(std::vector{x}, std::vector{y})[0]; };
      right.push_back(vv::interpret(vv::make_fx(one)(p[k], g[k]), vv::boxed_args(p[k], g[k]))[0]);
    }
    auto const fast = steps(p, g);
    for (std::size_t k = 0; k < p.size(); ++k) {
      CHECK(fast[k].sizes() == right[k].sizes());
      CHECK(fast[k].dtype() == t);
      CHECK(vv::allclose(fast[k], right[k], 1e-5, 1e-6));
    }
    // A parameter with a history: the step is recorded, as any computation is.
    tensor leaf = vv::clone(p[2]);
    leaf.requires_grad_();
    auto const y = steps(std::vector{leaf}, std::vector{g[2]});
    CHECK(y[0].requires_grad());
    CHECK(vv::allclose(y[0].detach(), right[2], 1e-5, 1e-6));
  }
}

TEST_CASE("optim: a step that throws leaves parameters and state as they were", "[optim]") {
  optim::sgd const o{.lr = 0.5, .momentum = 0.9};
  std::vector<tensor> p{tensor({1.0, 2.0}), tensor({3.0, 4.0, 5.0})}, g{tensor({1.0, 1.0}), tensor({1.0, 1.0})};
  auto s = o.init(p);
  CHECK_THROWS_AS(o.step(p, g, s), vv::shape_error);
  CHECK(p[0][0].item() == 1);
  CHECK(s.velocity[0][0].item() == 0);
}
