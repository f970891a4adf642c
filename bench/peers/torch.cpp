// SPDX-License-Identifier: BSL-1.0
/// @file
/// libtorch: whole-tensor operators and eager autograd, all points in one batch, one thread. Built where libtorch-dev
/// is found.
#include "peer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <array>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

namespace {
using at::Tensor;
using namespace bench;
using tensors = std::vector<Tensor>;

Tensor on(double const* data, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<double*>(data), sizes, at::kDouble);
}
tensors backwards(Tensor const& y, tensors const& x, bool keep = false) {
  return torch::autograd::grad({y}, x, {}, keep, keep);
}

/// Of each problem the parameters, views of the numbers at x, and the value as a user of torch writes it.
Tensor value(rosenbrock_problem, tensors const& p) {
  Tensor const a = p[0].slice(0, 1), b = p[0].slice(0, 0, -1), r = a - b * b, q = 1 - b;
  return (100 * r * r + q * q).sum();
}
tensors parts(rosenbrock_problem p, double const* x) { return {on(x, {p.inputs})}; }

Tensor value(logistic_problem p, tensors const& w) {
  static Tensor const x = on(p.x.data(), {p.samples, p.inputs}), y = on(p.y.data(), {p.samples});
  Tensor const z = at::mv(x, w[0]);
  return (at::softplus(z) - y * z).mean();
}
tensors parts(logistic_problem p, double const* w) { return {on(w, {p.inputs})}; }

Tensor value(softmax_problem p, tensors const& w) {
  static Tensor const x = on(p.x.data(), {p.samples, p.features}), labels = [&] {
    Tensor const l = at::empty({p.samples}, at::kLong);
    for (int i = 0; i < p.samples; ++i) l.data_ptr<std::int64_t>()[i] = p.label(i);
    return l;
  }();
  return at::cross_entropy_loss(at::addmm(w[1], x, w[0]), labels);
}
tensors parts(softmax_problem p, double const* w) {
  return {on(w, {p.features, p.classes}), on(w + p.features * p.classes, {p.classes})};
}

Tensor value(mlp_problem p, tensors const& w) {
  static Tensor const x = on(p.x.data(), {p.samples, p.features}), y = on(p.y.data(), {p.samples, 1});
  Tensor const d = at::addmm(w[5], at::tanh(at::addmm(w[3], at::tanh(at::addmm(w[1], x, w[0])), w[2])), w[4]) - y;
  return (d * d).mean();
}
tensors parts(mlp_problem p, double const* w) {
  return {on(w, {p.features, p.hidden}), on(w + p.b1, {p.hidden}),    on(w + p.W2, {p.hidden, p.hidden}),
          on(w + p.b2, {p.hidden}),      on(w + p.W3, {p.hidden, 1}), on(w + p.b3, {1})};
}

Tensor value(layer_norm_problem p, tensors const& x) {
  static Tensor const g = on(p.cotangent.data(), {p.rows, p.size});
  return (g * at::gelu(at::layer_norm(x[0], {p.size}, x[1], x[2]))).sum();
}
tensors parts(layer_norm_problem p, double const* x) {
  return {on(x, {p.rows, p.size}), on(x + p.weight, {p.size}), on(x + p.weight + p.size, {p.size})};
}

Tensor value(attention_problem p, tensors const& x) {
  static Tensor const g = on(p.cotangent.data(), {p.n, p.n});
  return (g * at::mm(at::softmax(at::mm(x[0], x[1].t()) * 0.125, 1), x[2])).sum();
}
tensors parts(attention_problem p, double const* x) {
  return {on(x, {p.n, p.n}), on(x + p.n * p.n, {p.n, p.n}), on(x + 2 * p.n * p.n, {p.n, p.n})};
}

Tensor value(mixture_problem p, tensors const& w) {
  static Tensor const x = on(p.x.data(), {p.size, p.samples}).t().contiguous(), places = [&] {
    std::vector<std::int64_t> r; // of the columns below the diagonal, in a matrix
    for (int column = 0; column < p.size; ++column)
      for (int row = column + 1; row < p.size; ++row) r.push_back(row * p.size + column);
    return at::tensor(r);
  }();
  Tensor const logarithms = w[2].slice(1, 0, p.size), under = w[2].slice(1, p.size), diagonal = at::exp(logarithms);
  Tensor const below = at::zeros({p.components, p.size * p.size}, at::kDouble)
                           .index_add(1, places, under)
                           .view({p.components, p.size, p.size});
  Tensor const centered = x.unsqueeze(0) - w[1].unsqueeze(1); // component, sample, number
  Tensor const q = diagonal.unsqueeze(1) * centered + at::bmm(centered, below.transpose(1, 2));
  Tensor const densities = (w[0] + logarithms.sum(1)).unsqueeze(1) - 0.5 * (q * q).sum(2);
  return (at::logsumexp(densities, 0) - at::logsumexp(w[0], 0)).sum() +
         0.5 * ((diagonal * diagonal).sum() + (under * under).sum());
}
tensors parts(mixture_problem p, double const* w) {
  return {on(w, {p.components}), on(w + p.means, {p.components, p.size}), on(w + p.factors, {p.components, p.factor})};
}

Tensor value(lorenz_problem p, tensors const& in) {
  using state = std::array<Tensor, 3>;
  constexpr double dt = 1e-3;
  state u{in[0], in[1], in[2]};
  auto const rate = [&](state const& v) {
    return state{in[3] * (v[1] - v[0]), v[0] * (in[4] - v[2]) - v[1], v[0] * v[1] - in[5] * v[2]};
  };
  auto const along = [&](double h, state const& k) {
    return state{at::add(u[0], k[0], h), at::add(u[1], k[1], h), at::add(u[2], k[2], h)};
  };
  for (int step = 0; step < p.steps; ++step) {
    state const k1 = rate(u), k2 = rate(along(dt / 2, k1)), k3 = rate(along(dt / 2, k2)), k4 = rate(along(dt, k3));
    for (std::size_t c = 0; c < 3; ++c) u[c] = at::add(u[c], at::add(k1[c] + k4[c], k2[c] + k3[c], 2), dt / 6);
  }
  return u[0];
}
tensors parts(lorenz_problem p, double const* x) {
  tensors r;
  for (int k = 0; k < p.inputs; ++k) r.push_back(on(x + k, {}));
  return r;
}

Tensor value(greeks_problem, tensors const& x) {
  Tensor const &spot = x[0], &strike = x[1], &time = x[2], &rate = x[3], &volatility = x[4];
  auto const normal = [](Tensor const& u) { return 0.5 * (1 + at::erf(0.70710678118654752440 * u)); };
  Tensor const spread = volatility * at::sqrt(time),
               d1 = (at::log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread;
  return spot * normal(d1) - strike * at::exp(-rate * time) * normal(d1 - spread);
}
tensors outputs(bundle_problem, tensors const& x) {
  Tensor const &r1 = x[0], &r2 = x[1], &r3 = x[2], tt = r1 * r1 + r2 * r2 + r3 * r3, small = tt < 1e-6,
               half = 0.5 * at::sqrt(at::where(small, at::ones_like(tt), tt));
  Tensor const s = at::sin(half) / half, a = at::where(small, 1 - tt * (1.0 / 6 - tt * (1.0 / 120)), s * at::cos(half)),
               b = at::where(small, 0.5 - tt * (1.0 / 24 - tt * (1.0 / 720)), 0.5 * s * s);
  Tensor const c1 = r2 * x[11] - r3 * x[10], c2 = r3 * x[9] - r1 * x[11], c3 = r1 * x[10] - r2 * x[9];
  Tensor const q1 = x[9] + a * c1 + b * (r2 * c3 - r3 * c2) + x[3],
               q2 = x[10] + a * c2 + b * (r3 * c1 - r1 * c3) + x[4],
               q3 = x[11] + a * c3 + b * (r1 * c2 - r2 * c1) + x[5];
  Tensor const u = -q1 / q3, v = -q2 / q3, nn = u * u + v * v, zoom = x[6] * (1 + nn * (x[7] + nn * x[8]));
  return {zoom * u, zoom * v};
}
tensors outputs(arm_problem p, tensors const& angle) {
  Tensor x = 0.08 * at::cos(angle[6]), y = 0.08 * at::sin(angle[6]), z = at::full_like(x, p.length[6]);
  for (int j = p.inputs - 2; j >= 0; --j) {
    Tensor const ty = p.quarter[j] > 0 ? -z : z, tz = p.quarter[j] > 0 ? y + p.length[j] : p.length[j] - y,
                 c = at::cos(angle[static_cast<std::size_t>(j)]), s = at::sin(angle[static_cast<std::size_t>(j)]),
                 tx = x;
    x = c * tx - s * ty, y = s * tx + c * ty, z = tz;
  }
  return {x, y, z};
}

template <class P>
struct by_torch {
  static void run(benchmark::State& state) {
    data<P> d;
    tensors x, found;
    if constexpr (P::points == 1) {
      x = parts(P{}, d.x.data());
    } else {
      Tensor const all = on(d.x.data(), {P::points, P::inputs}).t().contiguous();
      for (int k = 0; k < P::inputs; ++k) x.push_back(all[k].detach());
    }
    for (Tensor& t : x) t.requires_grad_();
    measure<P>(
        state, d,
        [&] {
          if constexpr (P::kind == wanted::gradient) {
            found = backwards(value(P{}, x), x);
          } else if constexpr (P::kind == wanted::greeks) {
            Tensor const price = value(P{}, x);
            tensors const first = backwards(price.sum(), x, true);
            found = {price.detach(),    first[0].detach(),  backwards(first[0].sum(), tensors{x[0]})[0],
                     first[4].detach(), -first[2].detach(), first[3].detach()};
          } else {
            found.clear();
            for (Tensor const& y : outputs(P{}, x))
              for (Tensor const& g : torch::autograd::grad({y.sum()}, x, {}, true, false, true))
                found.push_back(g.defined() ? g : at::zeros({P::points}, at::kDouble));
          }
        },
        [&] {
          Tensor all;
          if constexpr (P::points == 1) {
            for (Tensor& t : found) t = t.flatten();
            all = at::cat(found);
          } else {
            all = at::stack(found).view({results<P>, -1, P::block}).transpose(0, 1).contiguous();
          }
          return std::vector<double>(all.data_ptr<double>(), all.data_ptr<double>() + all.numel());
        });
  }
};
} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  add<by_torch, rosenbrock_problem, logistic_problem, softmax_problem, mlp_problem, layer_norm_problem,
      attention_problem, mixture_problem, lorenz_problem, greeks_problem, bundle_problem, arm_problem>("torch");
  return run_all(argc, argv);
}
