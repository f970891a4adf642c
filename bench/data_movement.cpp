// SPDX-License-Identifier: BSL-1.0
/// @file
/// Operators on tensors that move, convert and choose elements, each beside the loop or `memcpy` of a person who writes
/// into memory that is there: `<name>/varve` and `<name>/hand` in one run, on 1e6 elements unless the name says more.
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace vv = varve;
using vv::dtype, vv::index_t, vv::tensor;

namespace {
constexpr index_t n = 1000, N = n * n;

template <class F>
void row(std::string const& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), [f](benchmark::State& state) {
    for (auto _ : state) {
      if constexpr (std::is_void_v<decltype(f())>) {
        f();
        benchmark::ClobberMemory();
      } else {
        auto const r = f();
        benchmark::DoNotOptimize(r);
      }
    }
  });
}
/// Both must agree on the first `count` elements before either is timed.
template <class T, class F, class H>
void pair(std::string const& name, F f, H hand, T const* expected, index_t count) {
  tensor const r = vv::contiguous(f());
  hand();
  bool same = r.numel() == count;
  for (index_t k = 0; same && k < count; ++k)
    same = std::fabs(static_cast<double>(r.data<T>()[k]) - static_cast<double>(expected[k])) <=
           1e-5 * std::fabs(static_cast<double>(expected[k]));
  if (!same) std::fprintf(stderr, "%s: varve and by hand differ\n", name.c_str()), std::exit(1);
  row(name + "/varve", f);
  row(name + "/hand", hand);
}
template <class T>
T* memory(index_t count) {
  static std::vector<std::unique_ptr<double[]>> all;
  auto const words = static_cast<std::size_t>(count) * sizeof(T) / sizeof(double) + 16;
  all.push_back(std::make_unique<double[]>(words));
  return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(all.back().get()) + 63) / 64 * 64);
}
tensor wave(vv::dims const& sizes) {
  tensor t = vv::empty(sizes, dtype::float32);
  for (index_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = std::sin(1.3f * static_cast<float>(k % 100003));
  return t;
}
tensor indices(vv::dims const& sizes, index_t below) {
  tensor t = vv::empty(sizes, dtype::int64);
  for (index_t k = 0; k < t.numel(); ++k) t.data<std::int64_t>()[k] = (k * 7919 + k / 13) % below;
  return t;
}

void factories(float* r, std::int64_t* whole) {
  pair("full", [] { return vv::full({N}, 0.5f); }, [=] { std::fill_n(r, N, 0.5f); }, r, N);
  pair("zeros", [] { return vv::zeros({N}); }, [=] { std::memset(r, 0, N * sizeof(float)); }, r, N);
  tensor const like = wave({N});
  pair("ones_like", [=] { return vv::ones_like(like); }, [=] { std::fill_n(r, N, 1.f); }, r, N);
  auto const count = [=] {
    for (index_t k = 0; k < N; ++k) whole[k] = k;
  };
  pair("arange", [] { return vv::arange(N); }, count, whole, N);
  auto const identity = [=] {
    std::memset(r, 0, N * sizeof(float));
    for (index_t k = 0; k < n; ++k) r[k * (n + 1)] = 1;
  };
  pair("eye", [] { return vv::eye(n); }, identity, r, N);
}
void joins(float* r) {
  tensor const a = wave({n, n}), b = wave({n, n}) * 2;
  float const *const p = a.data<float>(), *const q = b.data<float>();
  auto const two = [=] {
    std::memcpy(r, p, N * sizeof(float));
    std::memcpy(r + N, q, N * sizeof(float));
  };
  pair("cat 2 axis 0", [=] { return vv::cat(std::vector<tensor>{a, b}, 0); }, two, r, 2 * N);
  pair("stack 2", [=] { return vv::stack(std::vector<tensor>{a, b}, 0); }, two, r, 2 * N);
  auto const columns = [=] {
    for (index_t k = 0; k < n; ++k) {
      std::memcpy(r + 2 * k * n, p + k * n, n * sizeof(float));
      std::memcpy(r + 2 * k * n + n, q + k * n, n * sizeof(float));
    }
  };
  pair("cat 2 axis 1", [=] { return vv::cat(std::vector<tensor>{a, b}, 1); }, columns, r, 2 * N);
  tensor const c = wave({N / 4, 3}), d = wave({N / 4, 1});
  float const *const u = c.data<float>(), *const v = d.data<float>();
  auto const narrow = [=] {
    for (index_t k = 0; k < N / 4; ++k) {
      for (index_t j = 0; j < 3; ++j) r[4 * k + j] = u[3 * k + j];
      r[4 * k + 3] = v[k];
    }
  };
  pair("cat of 3 columns and 1", [=] { return vv::cat(std::vector<tensor>{c, d}, 1); }, narrow, r, N);
  auto const eight = [=] {
    for (int k = 0; k < 8; ++k) std::memcpy(r + k * N, k % 2 ? q : p, N * sizeof(float));
  };
  pair("cat 8 axis 0", [=] { return vv::cat(std::vector<tensor>{a, b, a, b, a, b, a, b}, 0); }, eight, r, 8 * N);
}
void by_index(float* r, std::int64_t* whole) {
  tensor const x = wave({n, n}), rows = indices({n}, n), at = indices({n, n}, n);
  float const* const p = x.data<float>();
  std::int64_t const *const one = rows.data<std::int64_t>(), *const all = at.data<std::int64_t>();
  auto const row_index = [=] { return vv::expand(vv::reshape(rows, vv::dims{n, 1}), vv::dims{n, n}); };
  auto const take_rows = [=] {
    for (index_t k = 0; k < n; ++k) std::memcpy(r + k * n, p + one[k] * n, n * sizeof(float));
  };
  pair("rows by index", [=] { return vv::gather(x, 0, row_index()); }, take_rows, r, N);
  auto const across = [=] {
    for (index_t k = 0; k < n; ++k)
      for (index_t j = 0; j < n; ++j) r[k * n + j] = p[k * n + all[k * n + j]];
  };
  pair("gather axis 1", [=] { return vv::gather(x, 1, at); }, across, r, N);
  auto const down = [=] {
    for (index_t k = 0; k < n; ++k)
      for (index_t j = 0; j < n; ++j) r[k * n + j] = p[all[k * n + j] * n + j];
  };
  pair("gather axis 0", [=] { return vv::gather(x, 0, at); }, down, r, N);
  tensor const none = vv::zeros({n, n});
  auto const add = [=] {
    std::memset(r, 0, N * sizeof(float));
    for (index_t k = 0; k < n; ++k)
      for (index_t j = 0; j < n; ++j) r[k * n + all[k * n + j]] += p[k * n + j];
  };
  pair("scatter_add axis 1", [=] { return vv::scatter_add(none, 1, at, x); }, add, r, N);
  auto const add_rows = [=] {
    std::memset(r, 0, N * sizeof(float));
    for (index_t k = 0; k < n; ++k)
      for (index_t j = 0; j < n; ++j) r[one[k] * n + j] += p[k * n + j];
  };
  pair("rows added by index", [=] { return vv::scatter_add(none, 0, row_index(), x); }, add_rows, r, N);
  auto const hot = [=] {
    std::memset(whole, 0, N * sizeof(std::int64_t));
    for (index_t k = 0; k < n; ++k) whole[k * n + one[k]] = 1;
  };
  pair("one_hot 1000x1000", [=] { return vv::one_hot(rows, n); }, hot, whole, N);
}
void views_backward(float* r) {
  tensor const x = wave({n, n}), half = wave({n, n / 2}), one = wave({n});
  float const *const p = half.data<float>(), *const q = one.data<float>();
  auto const put_half = [=] {
    std::memset(r, 0, N * sizeof(float));
    for (index_t k = 0; k < n; ++k) std::memcpy(r + k * n + 100, p + k * n / 2, n / 2 * sizeof(float));
  };
  vv::dims const range{1, 100, 100 + n / 2, 1}, column{1, 7, 8, 1};
  auto const slice_gradient = [=] { return vv::slice_backward(half, vv::dims{n, n}, range); };
  pair("slice backward", slice_gradient, put_half, r, N);
  auto const put_column = [=] {
    std::memset(r, 0, N * sizeof(float));
    for (index_t k = 0; k < n; ++k) r[k * n + 7] = q[k];
  };
  auto const select_gradient = [=] {
    return vv::slice_backward(vv::reshape(one, vv::dims{n, 1}), vv::dims{n, n}, column);
  };
  pair("select backward", select_gradient, put_column, r, N);
  auto const region = [=] { return vv::as_strided_backward(half, vv::dims{n, n}, vv::dims{n, 1}, vv::dims{100}); };
  pair("as_strided backward", region, put_half, r, N);
  float const* const all = x.data<float>();
  auto const turn = [=] {
    for (index_t i = 0; i < n; i += 8)
      for (index_t j = 0; j < n; ++j)
        for (index_t k = i; k < i + 8; ++k) r[j * n + k] = all[k * n + j];
  };
  pair("copy of a transpose", [=] { return vv::clone(vv::transpose(x)); }, turn, r, N);
  auto const second = [=] {
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n / 2; ++j) r[i * n / 2 + j] = all[i * n + 2 * j];
  };
  pair("copy of x[:, ::2]", [=] { return vv::clone(vv::slice(x, 1, 0, vv::end, 2)); }, second, r, N / 2);
  auto const spread = [=] {
    for (index_t i = 0; i < n; ++i) std::memcpy(r + i * n, q, n * sizeof(float));
  };
  pair("copy of an expanded row", [=] { return vv::clone(vv::expand(one, vv::dims{n, n})); }, spread, r, N);
}

template <class To, class From>
void conversion(std::string const& name) {
  tensor const x = vv::to(wave({N}) * 100, vv::dtype_of_type<From>());
  From const* const p = x.data<From>();
  To* const r = memory<To>(N);
  auto const loop = [=] {
    for (index_t k = 0; k < N; ++k) r[k] = static_cast<To>(p[k]);
  };
  pair(name, [=] { return vv::to(x, vv::dtype_of_type<To>()); }, loop, r, N);
}
void conversions() {
  conversion<float, bool>("bool to float32");
  conversion<bool, float>("float32 to bool");
  conversion<double, float>("float32 to float64");
  conversion<float, double>("float64 to float32");
  conversion<float, std::uint8_t>("uint8 to float32");
  conversion<std::int32_t, float>("float32 to int32");
  conversion<std::int64_t, float>("float32 to int64");
  conversion<float, std::int64_t>("int64 to float32");
  conversion<float, std::int32_t>("int32 to float32");
  conversion<std::int64_t, bool>("bool to int64");
  conversion<std::int64_t, std::int32_t>("int32 to int64");
}
void choices(float* r) {
  tensor const x = wave({N}), y = wave({N}) * 3, mask = x > y;
  float const *const p = x.data<float>(), *const q = y.data<float>();
  bool const* const m = mask.data<bool>();
  auto const choose = [=] {
    for (index_t k = 0; k < N; ++k) r[k] = m[k] ? p[k] : q[k];
  };
  pair("where", [=] { return vv::where(mask, x, y); }, choose, r, N);
  auto const limit = [=] {
    for (index_t k = 0; k < N; ++k) r[k] = p[k] < -0.5f ? -0.5f : p[k] > 0.5f ? 0.5f : p[k];
  };
  pair("clamp", [=] { return vv::clamp(x, -0.5f, 0.5f); }, limit, r, N);
  auto const positive = [=] {
    for (index_t k = 0; k < N; ++k) r[k] = p[k] > 0 ? 1.f : 0.f;
  };
  pair(
      "relu gradient", [=] { return vv::grad([](auto const& v) { return vv::sum(vv::relu(v)); })(x); }, positive, r, N);
  auto const greatest = [=] {
    float g[16];
    std::copy_n(p, 16, g);
    for (index_t k = 0; k < N; k += 16)
      for (int l = 0; l < 16; ++l) g[l] = p[k + l] > g[l] ? p[k + l] : g[l];
    *r = *std::max_element(g, g + 16);
  };
  pair("amax", [=] { return vv::amax(x); }, greatest, r, 1);
  tensor const a = wave({n, n}), b = wave({n}), c = wave({n, 1});
  float const *const u = a.data<float>(), *const v = b.data<float>(), *const w = c.data<float>();
  auto const add_row = [=] {
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) r[i * n + j] = u[i * n + j] + v[j];
  };
  pair("add [1000,1000]+[1000]", [=] { return a + b; }, add_row, r, N);
  auto const add_column = [=] {
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) r[i * n + j] = u[i * n + j] + w[i];
  };
  pair("add [1000,1000]+[1000,1]", [=] { return a + c; }, add_column, r, N);
  auto const add_turned = [=] {
    for (index_t i = 0; i < n; i += 8)
      for (index_t j = 0; j < n; ++j)
        for (index_t k = i; k < i + 8; ++k) r[k * n + j] = u[k * n + j] + u[j * n + k];
  };
  pair("a + a transposed", [=] { return a + vv::transpose(a); }, add_turned, r, N);
  auto const outer = [=] {
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) r[i * n + j] = w[i] + v[j];
  };
  pair("outer sum", [=] { return c + b; }, outer, r, N);
  tensor const positive_x = vv::abs(x) + 0.1f;
  float const* const z = positive_x.data<float>();
  auto const power = [=] {
    for (index_t k = 0; k < N; ++k) r[k] = std::pow(z[k], 2.5f);
  };
  pair("pow 2.5", [=] { return vv::pow(positive_x, 2.5f); }, power, r, N);
}
void small() {
  for (index_t k : {16, 17, 64, 256, 1000}) {
    tensor const a = wave({k}), b = wave({k});
    float const *const p = a.data<float>(), *const q = b.data<float>();
    float* const r = memory<float>(k);
    auto const add = [=] {
      for (index_t i = 0; i < k; ++i) r[i] = p[i] + q[i];
    };
    pair("add of " + std::to_string(k), [=] { return a + b; }, add, r, k);
  }
}
} // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  float* const r = memory<float>(8 * N);
  std::int64_t* const whole = memory<std::int64_t>(N);
  factories(r, whole);
  joins(r);
  by_index(r, whole);
  views_backward(r);
  conversions();
  choices(r);
  small();
  benchmark::RunSpecifiedBenchmarks();
}
