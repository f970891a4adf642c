// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/varve.hpp>

#include <tuple>
#include <utility>

/// @file
/// Snavely's model of a camera, and its derivatives by hand to compare with.

/// The numbers that one observation depends on: the camera's rotation (axis times angle), translation, focal length and
/// two distortions, then the point.
inline constexpr varve::index_t reprojection_size = 12;

/// Where the camera sees the point. Rotation is p + a r x p + b r x (r x p) with a = sin(t) / t and b = (1 - cos(t)) /
/// t^2, t = |r|; for small t both are series in t^2, and the square root is taken of 1 instead: the derivative of what
/// is not chosen must be finite as well.
inline constexpr auto reproject = [](auto r1, auto r2, auto r3, auto t1, auto t2, auto t3, auto focal, auto k1, auto k2,
                                     auto x, auto y, auto z) {
  using varve::where, varve::sqrt, varve::sin, varve::cos;
  auto const tt = r1 * r1 + r2 * r2 + r3 * r3;
  auto const small = tt < 1e-6;
  auto const half = 0.5 * sqrt(where(small, 1.0, tt));
  auto const s = sin(half) / half;
  auto const a = where(small, 1 - tt * (1.0 / 6 - tt * (1.0 / 120)), s * cos(half));
  auto const b = where(small, 0.5 - tt * (1.0 / 24 - tt * (1.0 / 720)), 0.5 * s * s);
  auto const c1 = r2 * z - r3 * y, c2 = r3 * x - r1 * z, c3 = r1 * y - r2 * x;
  auto const q1 = x + a * c1 + b * (r2 * c3 - r3 * c2) + t1;
  auto const q2 = y + a * c2 + b * (r3 * c1 - r1 * c3) + t2;
  auto const q3 = z + a * c3 + b * (r1 * c2 - r2 * c1) + t3;
  auto const u = -q1 / q3, v = -q2 / q3, nn = u * u + v * v;
  auto const zoom = focal * (1 + nn * (k1 + nn * k2));
  return std::tuple{zoom * u, zoom * v};
};
/// The residual of one observation: the reprojection of a vector of 12 numbers minus the two numbers seen.
inline constexpr auto reprojection_error = [](auto const& p, auto const& seen) {
  return [&]<varve::index_t... K>(std::integer_sequence<varve::index_t, K...>) {
    auto const [u, v] = reproject(varve::select(p, varve::axis<0>, varve::axis<K>)...);
    return varve::stack(std::tuple{u, v}, varve::axis<0>) - seen;
  }(std::make_integer_sequence<varve::index_t, reprojection_size>{});
};

/// The same Jacobian by hand: from 12 numbers (or SIMD registers of them) p to 2 times 12 derivatives j, and to the two
/// numbers of the image of the point if there is a place for them.
template <class T, class V>
VARVE_INLINE void reprojection_jacobian_by_hand(V const* p, V* j, V* image = nullptr) {
  namespace k = varve::kernel;
  V const r[3] = {p[0], p[1], p[2]}, f = p[6], k1 = p[7], k2 = p[8], x[3] = {p[9], p[10], p[11]};
  V const one(T(1)), tt = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], small = V(k::lt(tt, V(T(1e-6))));
  V const t = k::sqrt(V(k::where(small, one, tt))), h = V(T(0.5)) * t, s = k::sin(h) / h, over = one / (t * t);
  // a = sin(t) / t, b = (1 - cos(t)) / t^2 and their derivatives by t^2
  V const a1 = s * k::cos(h), b1 = V(T(0.5)) * s * s;
  V const a = k::where(small, V(one - tt * (V(T(1.0 / 6)) - tt * V(T(1.0 / 120)))), a1);
  V const b = k::where(small, V(V(T(0.5)) - tt * (V(T(1.0 / 24)) - tt * V(T(1.0 / 720)))), b1);
  V const da = k::where(small, V(tt * V(T(1.0 / 60)) - V(T(1.0 / 6))), V(V(T(0.5)) * over * (one - tt * b1 - a1)));
  V const db = k::where(small, V(tt * V(T(1.0 / 360)) - V(T(1.0 / 24))), V(over * (V(T(0.5)) * a1 - b1)));

  V const c[3] = {r[1] * x[2] - r[2] * x[1], r[2] * x[0] - r[0] * x[2], r[0] * x[1] - r[1] * x[0]};
  V const rx = r[0] * x[0] + r[1] * x[1] + r[2] * x[2];
  V e[3], q[3];
  for (int i = 0; i < 3; ++i) {
    e[i] = r[i] * rx - x[i] * tt; // r x (r x p)
    q[i] = x[i] + a * c[i] + b * e[i] + p[3 + i];
  }
  V const depth = one / q[2], u = -q[0] * depth, v = -q[1] * depth, nn = u * u + v * v;
  V const d = one + nn * (k1 + nn * k2), slope = V(T(2)) * f * (k1 + V(T(2)) * nn * k2);
  if (image) image[0] = f * d * u, image[1] = f * d * v;
  V const cross = u * v * slope, by_u[2] = {f * d + u * u * slope, cross}, by_v[2] = {cross, f * d + v * v * slope};
  for (int row = 0; row < 2; ++row) {
    V const g[3] = {-by_u[row] * depth, -by_v[row] * depth, -(by_u[row] * u + by_v[row] * v) * depth},
            w = row == 0 ? u : v; // g: by q
    V const gx = g[0] * x[0] + g[1] * x[1] + g[2] * x[2], gr = g[0] * r[0] + g[1] * r[1] + g[2] * r[2];
    V const along =
        V(T(2)) * (da * (g[0] * c[0] + g[1] * c[1] + g[2] * c[2]) + db * (g[0] * e[0] + g[1] * e[1] + g[2] * e[2]));
    V const xg[3] = {x[1] * g[2] - x[2] * g[1], x[2] * g[0] - x[0] * g[2], x[0] * g[1] - x[1] * g[0]};
    V const gr_cross[3] = {g[1] * r[2] - g[2] * r[1], g[2] * r[0] - g[0] * r[2], g[0] * r[1] - g[1] * r[0]};
    V* o = j + 12 * row;
    for (int i = 0; i < 3; ++i) {
      o[i] = a * xg[i] + b * (g[i] * rx + gr * x[i] - V(T(2)) * gx * r[i]) + along * r[i];
      o[3 + i] = g[i];
      o[9 + i] = g[i] + a * gr_cross[i] + b * (gr * r[i] - g[i] * tt);
    }
    o[6] = d * w;
    o[7] = f * nn * w;
    o[8] = f * nn * nn * w;
  }
}
