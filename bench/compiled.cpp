// SPDX-License-Identifier: BSL-1.0
/// @file
/// Functions of tensors run operator by operator (`eager`), traced and fused at run time (`compiled`), compiled by the
/// system's compiler at run time (`cpp`), and fused by the compiler, every operation as code (`fused`) or as a table
/// (`table`). Whole programs, as users write them: operator by operator, compiled, ahead of time (`aot`), and by the
/// system's compiler.
#include <varve/aot.hpp>
#include <varve/export/cpp_backend.hpp>
#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>

namespace vv = varve;
using vv::dims, vv::dtype, vv::index_t, vv::tensor;

namespace {
tensor waves(dims const& sizes, double phase) {
  tensor t = tensor::empty(sizes, dtype::float32);
  for (index_t k = 0; k < t.numel(); ++k)
    t.data<float>()[k] = static_cast<float>(std::sin(phase + 1.3 * static_cast<double>(k)));
  return t;
}

// ---- ten elementwise operators
constexpr auto arithmetic = [](auto const& x, auto const& y) {
  auto const a = x * y, b = a + x, c = b * y, d = c - x, e = d * a, f = e + b, g = f * c, h = g - d, i = h * e;
  return i + f;
};
constexpr auto functions = [](auto const& x, auto const& y) {
  auto const a = x * y, b = vv::tanh(a + x), c = b * b - y, d = vv::exp(-c) + 1.0;
  return x / d * b;
};
// ---- a gradient, and rows of softmax
constexpr auto gate = vv::grad<0, 1>([](auto const& x, auto const& y) { return vv::sum(vv::tanh(x * y) * x + x); });
constexpr auto rows = [](auto const& x, auto const& y) { return vv::softmax(x * y, vv::axis<1>); };

template <class F, class X>
void check(benchmark::State& state, F const& f, X const& x, X const& y) {
  auto one = [](auto const& r) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(r)>, tensor>) return r;
    else return std::get<0>(r);
  };
  tensor const a = one(vv::compile(f)(x, y)), b = one(f(x, y));
  for (index_t k = 0; k < a.numel(); ++k)
    if (!(std::fabs(a.data<float>()[k] - b.data<float>()[k]) <= 1e-5f * (1 + std::fabs(b.data<float>()[k]))))
      return state.SkipWithError("the compiled function differs");
}
template <auto F, index_t... D>
void eager(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  check(state, F, x, y);
  for (auto _ : state) benchmark::DoNotOptimize(F(x, y));
}
template <auto F, index_t... D>
void compiled(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  auto const f = vv::compile(F, x, y);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void cpp(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  auto const f = vv::compile(F, vv::backends::cpp.with({.wait = true}));
  f(x, y);
  if (vv::backends::cpp_status().fused) return state.SkipWithError("the compiler made no program");
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void fused(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  constexpr auto f = vv::fuse<vv::spec<float, D...>, vv::spec<float, D...>>(F);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void table(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  constexpr auto f = vv::fuse<vv::spec<float, D...>, vv::spec<float, D...>>(F, vv::table_driven);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void row(std::string const& name) {
  benchmark::RegisterBenchmark(("compiled/" + name + "/eager").c_str(), &eager<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/compiled").c_str(), &compiled<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/cpp").c_str(), &cpp<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/fused").c_str(), &fused<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/table").c_str(), &table<F, D...>);
}

// ---- whole programs
using program = std::function<tensor(tensor const&, tensor const&)>;
tensor normal(dims const& sizes, dtype type = dtype::float64) { return vv::to(vv::randn(sizes, dtype::float64), type); }

/// A step of a physics-informed network: second derivatives by the points in the loss, its gradient by the weights.
program pinn() {
  return [first = normal({32, 2}), last = normal({1, 32})](tensor const& points, tensor const& weight) -> tensor {
    return vv::grad([&](tensor const& w) {
      auto const u = [&](tensor const& p) {
        return vv::sum(vv::matmul(last, vv::tanh(vv::matmul(w, vv::tanh(vv::matmul(first, p))))));
      };
      auto const residual = [&](tensor const& p) {
        tensor const h = vv::jacfwd(vv::grad(u))(p);
        return vv::square(h[0][0] + h[1][1] - u(p));
      };
      return vv::mean(vv::vmap(residual)(points));
    })(weight);
  };
}
/// The gradients of the log posterior of logistic regression, of many chains.
program chains(vv::index_t n) {
  return [labels = vv::to(normal({n}) > 0.0, dtype::float64)](tensor const& chains, tensor const& data) -> tensor {
    return vv::vmap(vv::grad([&](tensor const& b) {
      tensor const z = vv::matmul(data, b);
      return vv::sum(vv::softplus(z) - labels * z) + 0.5 * vv::sum(b * b);
    }))(chains);
  };
}
/// A step of a block of a transformer over a batch of sequences.
program transformer(vv::index_t width) {
  return [=, k = normal({width, width}), v = normal({width, width}), up = normal({width, 4 * width}),
          down = normal({4 * width, width})](tensor const& batch, tensor const& query) -> tensor {
    return vv::grad([&](tensor const& q) {
      auto const one = [&](tensor const& s) {
        tensor const h = vv::layer_norm(s, dims{width});
        tensor const scores = vv::matmul(vv::matmul(h, q), vv::transpose(vv::matmul(h, k))) * 0.25;
        tensor const z = s + vv::matmul(vv::softmax(scores, 1), vv::matmul(h, v));
        tensor const inner = vv::gelu(vv::matmul(vv::layer_norm(z, dims{width}), up));
        return vv::sum(vv::square(z + vv::matmul(inner, down)));
      };
      return vv::mean(vv::vmap(one)(batch));
    })(query);
  };
}
program mean_of_vmap() {
  return [](tensor const& rows, tensor const& matrix) -> tensor {
    return vv::grad([&](tensor const& w) {
      return vv::mean(vv::vmap([&](tensor const& v) { return vv::sum(vv::tanh(vv::matmul(w, v))); })(rows));
    })(matrix);
  };
}
program jacobians_of_rows() {
  return [](tensor const& a, tensor const& b) -> tensor {
    return vv::vmap(vv::jacrev([](tensor const& p, tensor const& q) -> tensor {
      return vv::stack(std::vector<tensor>{vv::sin(p[0] * q[1]) + p[2], p[3] * vv::exp(p[1]) * q[0]});
    }))(a, b);
  };
}
/// A residual with as many outputs as inputs, whose Jacobians forwards and in reverse need the same number of passes.
constexpr auto six_of_six = [](tensor const& p, tensor const& q) -> tensor {
  tensor const s = vv::sin(p[0]), t = vv::cos(p[0]), u = p[1] * s + p[2] * t, v = p[2] * s - p[1] * t;
  return vv::stack(std::vector<tensor>{u * q[0] + p[3], v * q[1] + p[4], vv::exp(p[5]) * u - q[2], p[3] * p[4] * v,
                                       vv::sin(u * v) + p[5] * q[3], p[0] * p[1] + p[2] * p[3] * q[4]});
};
template <class F>
void run(benchmark::State& state, F const& f, tensor const& x, tensor const& y) {
  f(x, y);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
void whole(std::string const& name, tensor const& x, tensor const& y, program const& f) {
  auto const add = [&](char const* way, auto const& make) {
    benchmark::RegisterBenchmark(("compiled/" + name + "/" + way).c_str(),
                                 [=](benchmark::State& state) { run(state, make(), x, y); });
  };
  add("eager", [f] { return f; });
  add("compiled", [f] { return vv::compile(f); });
  add("aot", [f] { return vv::compile(f, vv::backends::fused); });
  add("cpp", [f] { return vv::compile(f, vv::backends::cpp.with({.wait = true})); });
}
void wholes() {
  tensor const cube = normal({64, 32, 32}), tall = normal({1024, 32, 32}), rows = normal({1024, 32}),
               big = normal({1000, 1000}, dtype::float32), other = normal({1000, 1000}, dtype::float32);
  for (int axis = 0; axis < 3; ++axis)
    for (tensor const& t : {cube, tall})
      whole("sum_" + std::to_string(t.size(0)) + "x32x32_axis_" + std::to_string(axis), t, t,
            [axis](tensor const& x, tensor const&) -> tensor { return vv::sum(x, axis); });
  for (int axis = 0; axis < 2; ++axis)
    whole("sum_1000x1000_axis_" + std::to_string(axis), big, big,
          [axis](tensor const& x, tensor const&) -> tensor { return vv::sum(x, axis); });
  whole("sum_1e6", big, big, [](tensor const& x, tensor const&) -> tensor { return vv::sum(x); });
  whole("sum_of_outer_products", rows, rows, [](tensor const& x, tensor const& y) -> tensor {
    return vv::sum(vv::unsqueeze(x, 2) * vv::unsqueeze(y, 1), 0);
  });
  whole("softmax_1024x32", rows, rows, [](tensor const& x, tensor const&) -> tensor { return vv::softmax(x, 1); });
  whole("softmax_of_product", big, other,
        [](tensor const& x, tensor const& y) -> tensor { return vv::softmax(x * y, 1); });
  whole("layer_norm_gelu", big, other,
        [](tensor const& x, tensor const& y) -> tensor { return vv::gelu(vv::layer_norm(x, dims{x.size(1)})) * y; });
  whole("logsumexp", big, other, [](tensor const& x, tensor const& y) -> tensor { return vv::logsumexp(x * y, 1); });
  whole("sum_of_arithmetic", big, other,
        [](tensor const& x, tensor const& y) -> tensor { return vv::sum(arithmetic(x, y), 0); });
  whole("pinn", normal({64, 2}), normal({32, 32}), pinn());
  whole("chains", normal({16, 65}), normal({357, 65}), chains(357));
  whole("transformer", normal({16, 24, 32}), normal({32, 32}), transformer(32));
  whole("mean_of_vmap", rows, normal({32, 32}), mean_of_vmap());
  whole("jacobians_of_rows", normal({2000, 4}), normal({2000, 4}), jacobians_of_rows());
  for (vv::index_t n : {1000, 80000}) {
    tensor const p = normal({n, 6}), q = normal({n, 6});
    whole("jacfwd_6x6_" + std::to_string(n), p, q, vv::vmap(vv::jacfwd(six_of_six)));
    whole("jacrev_6x6_" + std::to_string(n), p, q, vv::vmap(vv::jacrev(six_of_six)));
  }
}
} // namespace

int main(int argc, char** argv) {
  row<arithmetic, 1000000>("arithmetic_1e6");
  row<functions, 1000000>("functions_1e6");
  row<arithmetic, 1000>("arithmetic_1e3");
  row<functions, 1000>("functions_1e3");
  row<arithmetic, 16>("arithmetic_16");
  row<gate, 1000000>("gate_1e6");
  row<rows, 256, 1000>("softmax_256x1000");
  wholes();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
