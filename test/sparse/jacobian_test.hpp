// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

/// @file
/// Functions with sparse derivatives.
namespace vv = varve;
using vv::array, vv::sparsity_pattern, vv::tensor;

namespace {
using function = std::function<tensor(tensor const&)>;
inline tensor row(vv::index_t n, double from = 0.3) { return vv::arange(n, vv::dtype::float64) * 0.1 + from; }
inline bool close(tensor const& a, tensor const& b, double by = 1e-10) {
  if (!(a.sizes() == b.sizes())) return false;
  tensor const d = vv::reshape(vv::abs(vv::to(a, vv::dtype::float64) - vv::to(b, vv::dtype::float64)), {a.numel()});
  for (double const v : d.to_vector<double>())
    if (!(v <= by)) return false;
  return true;
}
inline tensor dense(function const& f, tensor const& x) {
  tensor const j = vv::jacfwd(f)(x);
  return vv::reshape(j, {j.numel() / (x.numel() ? x.numel() : 1), x.numel()});
}

constexpr auto bratu = [](auto const& x) { // u'' + e^u, with 0 at the ends
  auto const n = vv::shape_of(x);
  auto const left = vv::slice_backward(vv::slice(x, vv::axis<0>, vv::range<0, -1>), n, vv::ints<0, 1, 8, 1>{});
  auto const right = vv::slice_backward(vv::slice(x, vv::axis<0>, vv::range<1, vv::end>), n, vv::ints<0, 0, 7, 1>{});
  return left - 2.0 * x + right + 0.1 * vv::exp(x);
};
constexpr auto rosenbrock = [](auto const& x) {
  auto const a = vv::slice(x, vv::axis<0>, vv::range<0, -1>), b = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>);
  return vv::sum(100.0 * vv::square(b - a * a) + vv::square(1.0 - a));
};
inline tensor laplace(tensor const& x) { // [n, n], zeros around
  tensor const p = vv::pad(x, vv::dims{1, 1, 1, 1});
  auto const part = [&](vv::index_t i, vv::index_t j) {
    return vv::slice(vv::slice(p, 0, i, i + x.size(0)), 1, j, j + x.size(1));
  };
  return part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - 4.0 * x + vv::sin(x);
}
inline tensor arrow(tensor const& x) { // the first element and one more in each result; the first result reads all
  tensor const head = vv::slice(x, 0, 0, 1);
  return vv::cat(std::tuple(vv::reshape(vv::sum(x * x), {1}), vv::slice(x, 0, 1, x.size(0)) * head), 0);
}
} // namespace

constexpr array<double, 8> at{0.1, 0.4, -0.2, 0.3, 0.9, -0.7, 0.2, 0.5};
