// SPDX-License-Identifier: BSL-1.0
// A function of tensors, traced at run time: run as a whole, and written as C++ for the program of tomorrow.
#include <varve/export/emit_cpp.hpp>
#include <varve/varve.hpp>

#include <iostream>

namespace vv = varve;
using vv::tensor;

int main() {
  // One step of logistic regression: the mean loss of 32 examples, and its gradient. The examples are captured.
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(32 * 8), vv::dtype::float32)), vv::dims{32, 8});
  tensor const y = vv::to(vv::sum(x, vv::axis<1>) > 0.0, vv::dtype::float32);
  auto const loss = [&](tensor const& w) {
    tensor const z = vv::sum(x * w, vv::axis<1>);
    return vv::mean(vv::log(1.0 + vv::exp(z)) - y * z);
  };

  // Traced at the first call and fused from then on: one pass over the examples.
  auto const step = vv::compile(vv::value_and_grad(loss));
  tensor w = vv::zeros({8});
  for (int k = 0; k < 200; ++k) {
    auto const [value, gradient] = step(w);
    if (k % 100 == 0) std::cout << "loss " << value.item<float>() << '\n';
    w = w - 0.5 * gradient;
  }
  std::cout << "loss " << loss(w).item<float>() << ", programs made: " << step.versions() << "\n\n";
  // output: loss 0\.693
  // output: loss 0\.[01][0-9]+, programs made: 1

  // The same program as source: loops over SIMD batches, which need varve/kernel only.
  auto const gate = [](tensor const& v, tensor const& u) { return vv::sum(vv::tanh(v * u) * v + v); };
  std::cout << vv::emit_cpp(vv::make_fx(vv::grad<0, 1>(gate))(vv::ones({1000}), vv::ones({1000})), "gate_gradient");
  // output: inline void run\(float const\* x0, float const\* x1, float\* __restrict y0, float\* __restrict y1\)
  // output: kernel::for_vectors<float, 1000>
  // output: = kernel::tanh\(v
}
