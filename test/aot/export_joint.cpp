// SPDX-License-Identifier: BSL-1.0
// Joint graphs that are exported: the order of their results, and what they cannot say.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k % 5));
  return t;
}
tensor parameter(dims const& sizes, double from = 0.1) {
  tensor const t = data(sizes, from);
  t.requires_grad_();
  return t;
}
/// A convolution, a batch norm in training and a relu, with its statistics as buffers.
auto const module = [](tensor x, tensor weight, tensor bias, tensor gamma, tensor beta, tensor mean, tensor var,
                       tensor batches) {
  tensor const y = vv::conv2d(x, weight, bias);
  auto const over = vv::dims{0, 2, 3};
  tensor const m = vv::mean(y, over), centred = y - vv::reshape(m, vv::dims{1, 2, 1, 1});
  tensor const v = vv::mean(centred * centred, over);
  vv::add_(batches, 1.0);
  {
    vv::no_grad const off;
    vv::copy_(mean, mean * 0.9 + m * 0.1);
    vv::copy_(var, var * 0.9 + v * 0.1);
  }
  tensor const normal = centred * vv::reshape(vv::rsqrt(v + 1e-5), vv::dims{1, 2, 1, 1});
  tensor const out =
      vv::relu(normal * vv::reshape(gamma, vv::dims{1, 2, 1, 1}) + vv::reshape(beta, vv::dims{1, 2, 1, 1}));
  return std::pair{vv::sum(out), vv::mul(out.detach(), 2.0)};
};
} // namespace

TEST_CASE("aot_export: a module with its loss", "[aot][AO-S21]") {
  tensor const x = data({2, 1, 4, 4}), w = parameter({2, 1, 3, 3}), b = parameter({2}), gamma = parameter({2}, 1),
               beta = parameter({2}), mean = data({2}), var = data({2}, 1), batches = vv::zeros(vv::dims{});
  vv::exported_joint const g = vv::aot_export_joint(module, 0)(x, w, b, gamma, beta, mean, var, batches);
  CHECK(g.joint.regions[0].result_count == 9);
  CHECK(g.signature.written == std::vector<int>{5, 6, 7});
  CHECK(g.signature.gradients == std::vector<int>{1, 2, 3, 4});
  CHECK(g.signature.outputs == 2);
  CHECK(!vv::has_mutation(g.joint));
  CHECK(elements(mean) == elements(data({2}))); // nothing was written

  vv::boxed_args y;
  {
    vv::no_grad const off;
    y = vv::interpret(g.joint, vv::boxed_args(x, w, b, gamma, beta, mean, var, batches));
  }
  auto const [loss, out] = module(x, w, b, gamma, beta, mean, var, batches);
  loss.backward();
  CHECK(difference(y[0], mean, 1e-12) == "");
  CHECK(difference(y[1], var, 1e-12) == "");
  CHECK(difference(y[2], batches, 1e-12) == "");
  CHECK(difference(y[3], loss.detach(), 1e-12) == "");
  CHECK(difference(y[4], out, 1e-12) == "");
  CHECK(difference(y[5], w.grad(), 1e-9) == "");
  CHECK(difference(y[6], b.grad(), 1e-9) == "");
  CHECK(difference(y[7], gamma.grad(), 1e-9) == "");
  CHECK(difference(y[8], beta.grad(), 1e-9) == "");

  vv::exported_joint const inference = vv::aot_export_joint(module)(x, w, b, gamma, beta, mean, var, batches);
  CHECK(inference.joint.regions[0].result_count == 5);
}

TEST_CASE("aot_export: what it refuses", "[aot][exception][AO-S22][AO-S23]") {
  tensor const x = data({4}), p = parameter({4});
  CHECK_THROWS_WITH(
      vv::aot_export_joint([](tensor a, tensor b) { return vv::add_(a, 1.0) + b; })(x, vv::slice(x, 0, 0, 4)),
      Catch::Contains("shares memory with argument 1"));
  CHECK_THROWS_WITH(vv::aot_export_joint([](tensor a) {
                      vv::no_grad const off;
                      vv::add_(a, 1.0);
                      return vv::sum(a * 1.0);
                    })(p),
                    Catch::Contains("argument 0"));
  tensor const m = data({2, 3});
  CHECK_THROWS_WITH(vv::aot_export_joint([](tensor a) { return vv::t_(a) * 2.0; })(m),
                    Catch::Contains("metadata mutation of an input"));
  CHECK(m.sizes() == vv::dims{2, 3});
  CHECK_THROWS_WITH(vv::aot_export_joint([](tensor a) { return std::pair{vv::sum(a), a * 2.0}; }, 0)(p),
                    Catch::Contains("result 1 requires a gradient"));
  CHECK_THROWS_WITH(vv::aot_export_joint([](tensor a) { return vv::sum(a); }, 0)(x),
                    Catch::Contains("does not require a gradient"));
  CHECK_THROWS_WITH(vv::aot_export_joint([](tensor a) { return vv::slice(a, 0, 0, 2); })(x),
                    Catch::Contains("clone it"));
}

TEST_CASE("aot_export: cond whose branches write", "[aot][hop][AO-S25]") {
  auto const f = [](tensor x) {
    return vv::cond(
        vv::gt(vv::sum(x), 4.0),
        [](tensor a) {
          tensor const y = vv::clone(a);
          vv::add_(y, 3.0);
          return y + 0.0;
        },
        [](tensor a) {
          tensor const y = vv::clone(a);
          vv::add_(y, 4.0);
          return y + 0.0;
        },
        x);
  };
  vv::exported_joint const g = vv::aot_export_joint(f)(data({3}));
  CHECK(!vv::has_mutation(g.joint));
  CHECK(g.joint.regions.size() == 3);
  for (double from : {0.1, 3.0}) {
    tensor const x = data({3}, from);
    CHECK(difference(vv::interpret(g.joint, vv::boxed_args(x))[0], f(x)) == "");
  }
}
