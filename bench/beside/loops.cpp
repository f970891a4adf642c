// SPDX-License-Identifier: BSL-1.0
/// @file
/// Some rows of bench/operators as a person writes them: plain loops into memory that is there, vectorized by the
/// compiler. The peer where libtorch is not installed.
#include "timing.hpp"

#include <cstring>
#include <vector>

namespace {
using rows::int64_t, rows::string;
using memory = std::vector<float>;

memory floats(int64_t n, double scale, double offset) {
  memory r(static_cast<std::size_t>(n));
  for (int64_t k = 0; k < n; ++k) r[static_cast<std::size_t>(k)] = rows::element(k, scale, offset);
  return r;
}
/// Times `f(result)`, which writes `n` elements.
template <class F>
void row(string const& name, int64_t n, F const& f) {
  if (!rows::wanted(name)) return;
  memory r(static_cast<std::size_t>(n));
  double const ns = rows::best([&] {
    f(r.data());
    __asm__ volatile("" ::"r"(r.data()) : "memory");
  });
  double sum = 0, magnitude = 0;
  for (std::size_t k = 0; k < r.size(); ++k)
    sum += static_cast<double>(1 + k % 7) * static_cast<double>(r[k]),
        magnitude += std::fabs(static_cast<double>(r[k]));
  rows::print_line(name, ns, sum, magnitude);
}
template <class F>
void unary(string const& name, F const& f, double scale = 4, double offset = 0) {
  for (int64_t const n : rows::sides) {
    string const size = name + " " + rows::text(n, n);
    memory const x = floats(2 * n * n, scale, offset);
    float const* const p = x.data();
    row(size + ", contiguous", n * n, [=](float* r) {
      for (int64_t k = 0; k < n * n; ++k) r[k] = f(p[k]);
    });
    row(size + ", transposed", n * n, [=](float* r) {
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < n; ++i) r[i * n + j] = f(p[j * n + i]);
    });
    row(size + ", every second", n * n, [=](float* r) {
      for (int64_t k = 0; k < n * n; ++k) r[k] = f(p[2 * k]);
    });
    row(size + ", expanded", n * n, [=](float* r) {
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) r[i * n + j] = f(p[j]);
    });
  }
}
template <class F>
void binary(string const& name, F const& f, double scale = 4, double offset = 0) {
  for (int64_t const n : rows::sides) {
    string const size = name + " " + rows::text(n, n);
    memory const x = floats(n * n, scale, offset), y = floats(2 * n * n, 0.7 * scale, offset),
                 z = floats(2 * n * n, scale, offset);
    float const *const p = x.data(), *const q = y.data(), *const v = z.data();
    auto const with = [&](char const* layout, auto const& a, auto const& b) {
      row(size + layout, n * n, [=](float* r) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) r[i * n + j] = f(a(i, j), b(i, j));
      });
    };
    auto const whole = [=](int64_t i, int64_t j) { return p[i * n + j]; };
    with(", contiguous", whole, [=](int64_t i, int64_t j) { return q[i * n + j]; });
    with(", transposed", whole, [=](int64_t i, int64_t j) { return q[j * n + i]; });
    with(", every second", whole, [=](int64_t i, int64_t j) { return v[2 * (i * n + j)]; });
    with(", a row", whole, [=](int64_t, int64_t j) { return v[j]; });
    with(", a column", whole, [=](int64_t i, int64_t) { return v[i]; });
    with(", outer", [=](int64_t i, int64_t) { return v[i]; }, [=](int64_t, int64_t j) { return q[j]; });
  }
}
void others() {
  for (int64_t const n : rows::sides) {
    string const size = " " + rows::text(n, n);
    memory const x = floats(n * n, 4, 0), w = floats(n, 1, 1), b = floats(n, 1, 0);
    float const *const p = x.data(), *const weight = w.data(), *const bias = b.data();
    row("sum axis 1" + size + ", contiguous", n, [=](float* r) {
      for (int64_t i = 0; i < n; ++i) {
        float s = 0;
        for (int64_t j = 0; j < n; ++j) s += p[i * n + j];
        r[i] = s;
      }
    });
    row("sum axis 0" + size + ", contiguous", n, [=](float* r) {
      std::memset(r, 0, static_cast<std::size_t>(n) * sizeof(float));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) r[j] += p[i * n + j];
    });
    row("softmax axis 1" + size + ", contiguous", n * n, [=](float* r) {
      for (int64_t i = 0; i < n; ++i, r += n) {
        float const* const u = p + i * n;
        float m = u[0], s = 0;
        for (int64_t j = 1; j < n; ++j) m = u[j] > m ? u[j] : m;
        for (int64_t j = 0; j < n; ++j) s += r[j] = std::exp(u[j] - m);
        for (int64_t j = 0; j < n; ++j) r[j] /= s;
      }
    });
    row("layer_norm" + size + ", contiguous", n * n, [=](float* r) {
      for (int64_t i = 0; i < n; ++i, r += n) {
        float const* const u = p + i * n;
        float m = 0, v = 0;
        for (int64_t j = 0; j < n; ++j) m += u[j];
        m /= static_cast<float>(n);
        for (int64_t j = 0; j < n; ++j) v += (u[j] - m) * (u[j] - m);
        float const scale = 1 / std::sqrt(v / static_cast<float>(n) + 1e-5f);
        for (int64_t j = 0; j < n; ++j) r[j] = (u[j] - m) * scale * weight[j] + bias[j];
      }
    });
  }
}
} // namespace

int main(int argc, char** argv) {
  rows::read_arguments(argc, argv);
  unary("neg", [](float x) { return -x; });
  unary("abs", [](float x) { return std::fabs(x); });
  unary("exp", [](float x) { return std::exp(x); });
  unary("log", [](float x) { return std::log(x); }, 1, 2);
  unary("sqrt", [](float x) { return std::sqrt(x); }, 1, 2);
  unary("reciprocal", [](float x) { return 1 / x; }, 1, 2);
  unary("tanh", [](float x) { return std::tanh(x); });
  unary("relu", [](float x) { return x > 0 ? x : 0; });
  unary("clamp", [](float x) { return x < -0.5f ? -0.5f : x > 0.5f ? 0.5f : x; });
  unary("square", [](float x) { return x * x; });
  unary("add 1.5", [](float x) { return x + 1.5f; });
  unary("clone", [](float x) { return x; });
  binary("add", [](float x, float y) { return x + y; });
  binary("sub", [](float x, float y) { return x - y; });
  binary("mul", [](float x, float y) { return x * y; });
  binary("div", [](float x, float y) { return x / y; }, 1, 2);
  binary("maximum", [](float x, float y) { return x > y ? x : y; });
  others();
}
