// SPDX-License-Identifier: BSL-1.0
// A step of training compiled ahead of time with its gradient, by three backends: losses are those of the function
// itself. What a forward pass saves is what a backward pass needs: least, where operators are computed again.
// output: by itself: first loss [0-9.]+, last loss [0-9.]+
// output: aot_eager: largest difference of a loss 0
// output: fused: largest difference of a loss [0-9.e-]+
// output: saved by default 3 values, by a least cut 1
#include <varve/aot.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

namespace vv = varve;
using vv::dims;
using vv::tensor;

namespace {
/// Two layers and the mean squared error.
tensor loss(tensor const& x, tensor const& y, std::vector<tensor> const& w) {
  tensor const hidden = vv::tanh(vv::matmul(x, w[0])), d = vv::matmul(hidden, w[1]) - y;
  return vv::mean(d * d);
}
template <class F>
std::vector<float> losses_of(F const& f) {
  vv::manual_seed(1);
  std::vector<tensor> w{vv::randn(dims{4, 16}), vv::randn(dims{16, 1}) * 0.1f};
  tensor const x = vv::randn(dims{64, 4}), y = vv::sin(vv::sum(x, vv::axis<1>, vv::keepdim));
  for (tensor& p : w) p.requires_grad_();
  std::vector<float> all;
  for (int step = 0; step < 100; ++step) {
    for (tensor& p : w) p.zero_grad();
    tensor const l = f(x, y, w);
    l.backward();
    all.push_back(l.template item<float>());
    vv::no_grad const off;
    for (tensor& p : w) vv::add_(p, p.grad() * -0.1f);
  }
  return all;
}
float apart(std::vector<float> const& a, std::vector<float> const& b) {
  float most = 0;
  for (std::size_t k = 0; k < a.size(); ++k) most = std::max(most, std::abs(a[k] - b[k]));
  return most;
}
} // namespace

int main() {
  std::vector<float> const plain = losses_of(loss);
  std::cout << "by itself: first loss " << plain.front() << ", last loss " << plain.back() << "\n";
  std::cout << "aot_eager: largest difference of a loss "
            << apart(losses_of(vv::compile(loss, vv::backends::aot_eager)), plain) << "\n";
  std::cout << "fused: largest difference of a loss " << apart(losses_of(vv::compile(loss, vv::backends::fused)), plain)
            << "\n";

  std::vector<int> saved; // by each partition
  for (bool least : {false, true}) {
    auto const cut = [&](vv::graph const& g, vv::joint_shape s) {
      vv::partition const p = least ? vv::min_cut_partition(g, s) : vv::default_partition(g, s);
      saved.push_back(p.saved());
      return p;
    };
    tensor const x = vv::ones(dims{1000});
    x.requires_grad_();
    auto const f = [](tensor const& v) { return vv::sum(vv::cos(vv::cos(vv::cos(v)))); };
    vv::aot_function(f, {.partition_fn = cut})(x).backward();
  }
  std::cout << "cos(cos(cos(x))): saved by default " << saved[0] << " values, by a least cut " << saved[1] << "\n";
}
