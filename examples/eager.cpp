// SPDX-License-Identifier: BSL-1.0
// Eager autograd: parameters that collect gradients, a function with a gradient of its own, a checkpoint, hooks, and
// what writes into memory does to gradients.
// output: loss 0: [0-9.]+, loss 299: 0\.0[0-9]+
// output: the classes of 8 points: 8 right
// output: straight through: value 1 0 1, gradient 1 1 1; under vmap\(grad\) 1 1 1; on numbers at compile time 1
// output: checkpoint: f ran 2 times, gradients equal: 1
// output: a hook saw 2 0\.5 and halved it: 1 0\.25
// output: what the memory holds counts: 12 2; the history: tensor\(\[6, 1\], dtype=float64, grad_fn=<CopySlices>\)
// output: refused: .*modified by an in-place operator.*version 1; expected version 0
// output: second derivative of x\^3 at 2: 12
#include <varve/varve.hpp>

#include <cstdio>

namespace vv = varve;
using vv::tensor;

// Rounds in the forward pass; its gradient passes as if it had not (a "straight-through estimator"). The same text
// serves numbers, arrays and tensors, under every transform.
struct rounded : vv::function<rounded> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto x) { return vv::where(vv::gt(x, 0.5), vv::ones_like(x), vv::zeros_like(x)); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g; }
};
static_assert(vv::grad([](auto x) { return rounded::apply(x); })(0.7) == 1.0);

int main() {
  // The exclusive or, by a network of one hidden layer and plain gradient descent.
  vv::manual_seed(3);
  tensor const x({0., 0., 0., 1., 1., 0., 1., 1., .1, .1, .1, .9, .9, .1, .9, .9}, {8, 2}),
      y({0., 1., 1., 0., 0., 1., 1., 0.}, {8, 1});
  tensor w1 = vv::randn({2, 8}, vv::dtype::float64), b1 = vv::zeros({8}, vv::dtype::float64),
         w2 = vv::randn({8, 1}, vv::dtype::float64), b2 = vv::zeros({1}, vv::dtype::float64);
  tensor const parameters[] = {w1, b1, w2, b2};
  for (auto const& p : parameters) p.requires_grad_();
  auto const network = [&] { return vv::matmul(vv::tanh(vv::matmul(x, w1) + b1), w2) + b2; };
  for (int step = 0; step < 300; ++step) {
    tensor const error = network() - y, loss = vv::sum(error * error) * 0.5;
    loss.backward();
    if (step == 0) std::printf("loss 0: %.5f, ", loss.item<double>());
    if (step == 299) std::printf("loss 299: %.5f\n", loss.item<double>());
    vv::no_grad const off; // the step itself is not recorded
    for (auto const& p : parameters) {
      vv::sub_(p, p.grad() * 0.1);
      p.zero_grad();
    }
  }
  std::printf("the classes of 8 points: %d right\n",
              static_cast<int>(vv::sum(vv::eq(vv::gt(network(), 0.5), vv::gt(y, 0.5))).item<double>()));

  tensor const v({0.7, 0.2, 0.9});
  v.requires_grad_();
  tensor const r = rounded::apply(v);
  vv::sum(r).backward();
  tensor const each = vv::contiguous(vv::vmap(vv::grad([](auto const& t) { return rounded::apply(t); }))(v.detach()));
  std::printf(
      "straight through: value %g %g %g, gradient %g %g %g; under vmap(grad) %g %g %g; on numbers at compile time 1\n",
      r.data<double>()[0], r.data<double>()[1], r.data<double>()[2], v.grad().data<double>()[0],
      v.grad().data<double>()[1], v.grad().data<double>()[2], each.data<double>()[0], each.data<double>()[1],
      each.data<double>()[2]);

  // Nothing inside of a checkpoint is kept: it runs again when its gradient is taken.
  int runs = 0;
  auto const f = [&](tensor const& t) {
    ++runs;
    return vv::sum(vv::sin(vv::exp(t * t)));
  };
  tensor const a({0.3, 0.4});
  a.requires_grad_();
  vv::checkpoint(f, a).backward();
  int const ran = runs;
  tensor const by_checkpoint = a.grad();
  a.zero_grad();
  f(a).backward();
  std::printf("checkpoint: f ran %d times, gradients equal: %d\n", ran,
              vv::sum(vv::ne(by_checkpoint, a.grad())).item<int>() == 0);

  tensor const h({1.0, 2.0});
  h.requires_grad_();
  h.register_hook([](tensor const& g) {
    std::printf("a hook saw %g %g and halved it: ", g.data<double>()[0], g.data<double>()[1]);
    return g * 0.5;
  });
  vv::sum(h * h * tensor({1.0, 0.125})).backward();
  std::printf("%g %g\n", h.grad().data<double>()[0], h.grad().data<double>()[1]);

  // Writing into a view is writing into what it shows; gradients follow.
  tensor const u({2.0, 1.0});
  u.requires_grad_();
  tensor const c = vv::clone(u);
  vv::mul_(vv::slice(c, 0, 0, 1), 3.0);
  vv::sum(c * tensor({4.0, 2.0})).backward();
  std::printf("what the memory holds counts: %g %g; the history: %s\n", u.grad().data<double>()[0],
              u.grad().data<double>()[1], vv::to_string(c).c_str());

  try {
    tensor const e = vv::exp(u), s = vv::sum(e); // exp's gradient is its result ...
    vv::add_(e, 1.0);                            // ... which is gone now
    s.backward();
    vv::sum(e).backward();
  } catch (vv::autograd_error const& error) { std::printf("refused: %s\n", error.what()); }

  tensor const q({2.0});
  q.requires_grad_();
  tensor const first = vv::autograd::grad({vv::sum(q * q * q)}, {q}, {}, {.create_graph = true})[0];
  std::printf("second derivative of x^3 at 2: %g\n", vv::autograd::grad({vv::sum(first)}, {q})[0].item<double>());
}
