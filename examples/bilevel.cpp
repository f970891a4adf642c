// SPDX-License-Identifier: BSL-1.0
// How strong should a ridge be? Weights are fitted to training data, and the ridge's strength to validation data. The
// derivative of the fitted weights by the strength comes from the implicit function theorem: the steps of the fit are
// not differentiated. The fit has a closed form here, so that both derivatives can be compared.
// output: at strength 1: validation loss [0-9.]+, slope by implicit functions equals that of the closed form: yes
// output: second derivative equals that of the closed form: yes
// output: best strength [0-9.]+: slope there is 0: yes, closed form agrees: yes
#include <varve/implicit.hpp>
#include <varve/linalg.hpp>
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::tensor;

/// Measurements of a line in six directions, of which few matter, with errors.
struct measured {
  tensor x, y;
};
measured measure(vv::index_t rows, double seed) {
  tensor const k = vv::reshape(vv::arange(rows * 6, vv::dtype::float64), vv::dims{rows, 6});
  tensor const x = vv::sin(k * k * 0.37 + seed), w{1.0, -0.5, 0.25, 0.0, 0.0, 0.0};
  return {x, vv::matmul(x, w) + vv::cos(vv::arange(rows, vv::dtype::float64) * 5.1 + seed) * 0.8};
}

int main() {
  measured const train = measure(12, 0.3), validation = measure(40, 1.9);
  // the residuals of the data and of the ridge, whose strength is exp(s)
  auto const fit = implicit::least_squares([](tensor const& w, tensor const& x, tensor const& y, tensor const& s) {
    return std::tuple(vv::matmul(x, w) - y, w * vv::exp(s * 0.5));
  });
  auto const fitted = [&](tensor const& s) {
    return fit(vv::zeros(vv::dims{6}, vv::dtype::float64), train.x, train.y, s);
  };
  auto const closed = [&](tensor const& s) {
    tensor const t = vv::transpose(train.x);
    tensor const unit = vv::eye(6, vv::dtype::float64);
    return vv::solve(vv::matmul(t, train.x) + unit * vv::exp(s), vv::matmul(t, train.y));
  };
  auto const loss_of = [&](auto const& weights) {
    return [&](tensor const& s) { return vv::mean(vv::square(vv::matmul(validation.x, weights(s)) - validation.y)); };
  };
  auto const loss = loss_of(fitted);
  auto const exact = loss_of(closed);
  auto const equal = [](tensor const& a, tensor const& b) { return vv::allclose(a, b, 1e-8, 1e-10) ? "yes" : "no"; };

  tensor const zero(0.0);
  std::printf("at strength 1: validation loss %.6f, slope by implicit functions equals that of the closed form: %s\n",
              loss(zero).item(), equal(vv::grad(loss)(zero), vv::grad(exact)(zero)));
  std::printf("second derivative equals that of the closed form: %s\n",
              equal(vv::grad(vv::grad(loss))(zero), vv::grad(vv::grad(exact))(zero)));

  tensor s(0.0); // the outer problem, with the inner one inside of its loss
  vv::optim::lbfgs{}.minimize(loss, s);
  tensor best(0.0);
  vv::optim::lbfgs{}.minimize(exact, best);
  std::printf("best strength %.4f: slope there is 0: %s, closed form agrees: %s\n", std::exp(s.item()),
              std::fabs(vv::grad(loss)(s).item()) < 1e-6 ? "yes" : "no",
              std::fabs(s.item() - best.item()) < 1e-4 ? "yes" : "no");
}
