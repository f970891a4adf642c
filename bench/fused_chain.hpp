// SPDX-License-Identifier: BSL-1.0
#pragma once
// Part of fused.cpp, inside its namespace; `sh bench/assembly` compares the machine code of these.

// ---- 1. a chain of scalars
// --------------------------------------------------------------------------------------------------------------------
constexpr auto chain = [](auto x, auto y) {
  auto t = x * y + vv::sin(x);
  auto u = vv::exp(-(t * t));
  return u / (1.0 + y * y) + vv::tanh(t) * x;
};
constexpr auto chain_gradient = vv::fuse(vv::grad<0, 1>(chain));

KEEP chain_fused(double x, double y, double& gx, double& gy) { chain_gradient.into(gx, gy)(x, y); }
KEEP chain_hand(double x, double y, double& gx, double& gy) {
  double const t = x * y + k::sin(x), u = k::exp(-(t * t)), d = 1.0 / (1.0 + y * y), h = k::tanh(t);
  double const gt = (1.0 - h * h) * x - 2.0 * t * (u * d);
  gx = gt * (y + k::cos(x)) + h;
  gy = gt * x - u * d * d * 2.0 * y;
}

// ---- 2. one pass over two arrays
// --------------------------------------------------------------------------------------------------------------------
constexpr auto gate = [](auto x, auto w) { return vv::sum(vv::tanh(x * w) * x + x); };
constexpr auto gate_gradient = vv::fuse(vv::grad<0, 1>(gate));

template <index_t N>
KEEP gate_fused(array<float, N> const& x, array<float, N> const& w, array<float, N>& gx, array<float, N>& gw) {
  gate_gradient.into(gx, gw)(x, w);
}
template <index_t N>
KEEP gate_hand(array<float, N> const& x, array<float, N> const& w, array<float, N>& gx, array<float, N>& gw) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  V const one(1.0f);
  index_t i = 0;
  for (; i + W <= N; i += W) {
    V const a = k::load(x.data + i), b = k::load(w.data + i), t = k::tanh(V(a * b));
    V const d = k::fnma<float>(t, t, one) * a;
    k::store<float>(gx.data + i, k::fma<float>(d, b, t) + one);
    k::store<float>(gw.data + i, d * a);
  }
  for (; i < N; ++i) {
    float const t = k::tanh(x[i] * w[i]), d = (1 - t * t) * x[i];
    gx[i] = d * w[i] + t + 1;
    gw[i] = d * x[i];
  }
}
