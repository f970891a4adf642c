// SPDX-License-Identifier: BSL-1.0
#pragma once
// Part of fused.cpp, inside its namespace: a network 16-32-32-1 with tanh, 16 samples, mean squared error, gradient
// with respect to all weights.

// ---- 5. a small network
// --------------------------------------------------------------------------------------------------------------------
constexpr index_t batch_size = 16, inputs = 16, hidden = 32;
constexpr auto mlp_gradient = vv::fuse(vv::grad<0, 1, 2, 3, 4, 5>(bench::mlp<batch_size>));

struct mlp_gradients {
  alignas(64) array<float, inputs, hidden> W1;
  alignas(64) array<float, hidden> b1;
  alignas(64) array<float, hidden, hidden> W2;
  alignas(64) array<float, hidden> b2;
  alignas(64) array<float, hidden, 1> W3;
  alignas(64) array<float, 1> b3;
};
struct mlp_values : mlp_gradients {
  alignas(64) array<float, batch_size, inputs> x;
  alignas(64) array<float, batch_size, 1> y;
  void fill() {
    auto one = [](auto& a, double phase) {
      for (index_t i = 0; i < a.size(); ++i)
        a.data[i] = static_cast<float>(0.4 * std::sin(phase + 1.3 * static_cast<double>(i)));
    };
    one(W1, 0), one(b1, 1), one(W2, 2), one(b2, 3), one(W3, 4), one(b3, 5), one(x, 6), one(y, 7);
  }
};

KEEP mlp_fused(mlp_values const& v, mlp_gradients& g) {
  mlp_gradient.into(g.W1, g.b1, g.W2, g.b2, g.W3, g.b3)(v.W1, v.b1, v.W2, v.b2, v.W3, v.b3, v.x, v.y);
}

/// Register blocks of 6 x 2 vectors; `f(row, column, vector)` takes each finished vector, so that bias and tanh need no
/// pass of their own.
template <int Rows, int K, class F>
VARVE_INLINE void block(float const* a, index_t a_row, index_t a_col, float const* b, index_t b_row, F f) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  V s[Rows][2];
  for (int r = 0; r < Rows; ++r) s[r][0] = s[r][1] = V(0.0f);
  for (int p = 0; p < K; ++p) {
    V const x = k::load(b + p * b_row), y = k::load(b + p * b_row + W);
    for (int r = 0; r < Rows; ++r) {
      V const q(a[r * a_row + p * a_col]);
      s[r][0] = k::fma<float>(q, x, s[r][0]);
      s[r][1] = k::fma<float>(q, y, s[r][1]);
    }
  }
  for (int r = 0; r < Rows; ++r) f(r, 0, s[r][0]), f(r, W, s[r][1]);
}
template <int M, int K, int N, class F>
VARVE_INLINE void blocks(float const* a, index_t a_row, index_t a_col, float const* b, F f) {
  for (index_t j = 0; j < N; j += 2 * static_cast<index_t>(k::lanes<float>)) {
    index_t i = 0;
    for (; i + 6 <= M; i += 6)
      block<6, K>(a + i * a_row, a_row, a_col, b + j, N, [&](index_t r, index_t c, auto v) { f(i + r, j + c, v); });
    if constexpr (M % 6 != 0)
      block<M % 6, K>(a + i * a_row, a_row, a_col, b + j, N, [&](index_t r, index_t c, auto v) { f(i + r, j + c, v); });
  }
}
KEEP mlp_hand(mlp_values const& p, mlp_gradients& g) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>, H = hidden, B = batch_size, per_row = H / W;
  alignas(64) float h1[B * H], h2[B * H], ga2[B * H], ga1[B * H], transposed[H * H];
  V const one(1.0f);
  blocks<B, inputs, H>(p.x.data, inputs, 1, p.W1.data, [&](index_t i, index_t j, V v) {
    k::store<float>(h1 + i * H + j, k::tanh(V(v + k::load(p.b1.data + j))));
  });
  blocks<B, H, H>(h1, H, 1, p.W2.data, [&](index_t i, index_t j, V v) {
    k::store<float>(h2 + i * H + j, k::tanh(V(v + k::load(p.b2.data + j))));
  });
  V w3[per_row], gw3[per_row], gb2[per_row];
  for (index_t j = 0; j < per_row; ++j) w3[j] = k::load(p.W3.data + j * W), gw3[j] = gb2[j] = V(0.0f);
  float gb3 = 0;
  for (index_t i = 0; i < B; ++i) { // output layer, forwards and backwards, in one pass over h2
    V h[per_row], s(0.0f);
    for (index_t j = 0; j < per_row; ++j) {
      h[j] = k::load(h2 + i * H + j * W);
      s = k::fma<float>(h[j], w3[j], s);
    }
    float const d = (k::reduce_sum<float>(s) + p.b3[0] - p.y.data[i]) * (2.0f / B);
    gb3 += d;
    for (index_t j = 0; j < per_row; ++j) {
      gw3[j] = k::fma<float>(V(d), h[j], gw3[j]);
      V const a = V(d) * w3[j] * k::fnma<float>(h[j], h[j], one);
      gb2[j] += a;
      k::store<float>(ga2 + i * H + j * W, a);
    }
  }
  for (index_t j = 0; j < per_row; ++j)
    k::store<float>(g.W3.data + j * W, gw3[j]), k::store<float>(g.b2.data + j * W, gb2[j]);
  g.b3[0] = gb3;
  blocks<H, B, H>(h1, 1, H, ga2, [&](index_t i, index_t j, V v) { k::store<float>(g.W2.data + i * H + j, v); });
  for (index_t i = 0; i < H; i += W)
    for (index_t j = 0; j < H; j += W) {
      V r[W];
      for (index_t q = 0; q < W; ++q) r[q] = k::load(p.W2.data + (i + q) * H + j);
      k::transpose<float>(r);
      for (index_t q = 0; q < W; ++q) k::store<float>(transposed + (j + q) * H + i, r[q]);
    }
  blocks<B, H, H>(ga2, H, 1, transposed, [&](index_t i, index_t j, V v) {
    V const h = k::load(h1 + i * H + j);
    k::store<float>(ga1 + i * H + j, v * k::fnma<float>(h, h, one));
  });
  for (index_t j = 0; j < H; j += W) {
    V s(0.0f);
    for (index_t i = 0; i < B; ++i) s += k::load(ga1 + i * H + j);
    k::store<float>(g.b1.data + j, s);
  }
  blocks<inputs, B, H>(p.x.data, 1, inputs, ga1,
                       [&](index_t i, index_t j, V v) { k::store<float>(g.W1.data + i * H + j, v); });
}
