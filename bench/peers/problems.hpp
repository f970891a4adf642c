// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The problems on which varve is compared with other packages for derivatives: each as one text over numbers of any
/// type, which all tapes share, and the derivatives by varve. Everything is in double precision, since most packages
/// know nothing else.
#include <cmath>
#include <vector>

namespace bench {
/// What is asked for at each point: the gradient of one number, the Jacobian of several, or a price with delta, gamma,
/// vega, theta and rho.
enum class wanted { gradient, jacobian, greeks };

/// Hooks that a package replaces by an overload found by argument-dependent lookup: a choice that a tape may keep, and
/// the normal distribution where `erf` is missing.
template <class T>
T where_less(T const& a, double b, T const& then, T const& otherwise) {
  return a < b ? then : otherwise;
}
template <class T>
T normal_distribution(T const& x) {
  using std::erf;
  T const scaled = 0.70710678118654752440 * x;
  return 0.5 * (1.0 + erf(scaled));
}

/// Numbers in (-0.5, 0.5) * scale.
inline std::vector<double> waves(int n, double phase, double scale = 1, double offset = 0) {
  std::vector<double> r;
  for (int k = 0; k < n; ++k) r.push_back(offset + scale * 0.5 * std::sin(phase + 1.3 * k));
  return r;
}

struct rosenbrock_problem {
  static constexpr char const* name = "rosenbrock";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int inputs = 100, outputs = 1, points = 1, block = 1;
  static std::vector<double> at() { return waves(inputs, 0); }
  template <class T>
  static void value(T const* x, T* y) {
    T sum = 0.0;
    for (int k = 0; k + 1 < inputs; ++k) {
      T const r = x[k + 1] - x[k] * x[k], q = 1.0 - x[k];
      sum += 100.0 * r * r + q * q;
    }
    y[0] = sum;
  }
};

struct logistic_problem {
  static constexpr char const* name = "logistic";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int samples = 100, inputs = 10, outputs = 1, points = 1, block = 1;
  static std::vector<double> at() { return waves(inputs, 0); }
  static inline std::vector<double> const x = waves(samples * inputs, 1), y = waves(samples, 2);
  template <class T>
  static void value(T const* w, T* loss) {
    using std::exp, std::log;
    T sum = 0.0;
    for (int i = 0; i < samples; ++i) {
      T z = 0.0;
      for (int j = 0; j < inputs; ++j) z += x[static_cast<std::size_t>(i * inputs + j)] * w[j];
      T const e = exp(z);
      sum += log(1.0 + e) - y[static_cast<std::size_t>(i)] * z;
    }
    loss[0] = sum / double(samples);
  }
};

struct softmax_problem { // weights, then biases
  static constexpr char const* name = "softmax_regression";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int samples = 100, features = 64, classes = 10, inputs = features * classes + classes, outputs = 1,
                       points = 1, block = 1;
  static std::vector<double> at() { return waves(inputs, 0, 0.3); }
  static inline std::vector<double> const x = waves(samples * features, 2, 2);
  static constexpr int label(int i) { return i * 7 % classes; }
  template <class T>
  static void value(T const* w, T* loss) {
    using std::exp, std::log;
    T sum = 0.0;
    for (int i = 0; i < samples; ++i) {
      T score[classes], all = 0.0;
      for (int c = 0; c < classes; ++c) {
        score[c] = w[features * classes + c];
        for (int f = 0; f < features; ++f)
          score[c] += x[static_cast<std::size_t>(i * features + f)] * w[f * classes + c];
        T const e = exp(score[c]);
        all += e;
      }
      sum += log(all) - score[label(i)];
    }
    loss[0] = sum / double(samples);
  }
};

struct mlp_problem { // W1, b1, W2, b2, W3, b3
  static constexpr char const* name = "mlp";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int samples = 16, features = 16, hidden = 32, outputs = 1, points = 1, block = 1;
  static constexpr int b1 = features * hidden, W2 = b1 + hidden, b2 = W2 + hidden * hidden, W3 = b2 + hidden,
                       b3 = W3 + hidden, inputs = b3 + 1;
  static std::vector<double> at() { return waves(inputs, 0, 0.8); }
  static inline std::vector<double> const x = waves(samples * features, 6, 0.8), y = waves(samples, 7, 0.8);
  template <class T>
  static void value(T const* w, T* loss) {
    using std::tanh;
    T sum = 0.0;
    for (int i = 0; i < samples; ++i) {
      T h1[hidden], h2[hidden], d = w[b3] - y[static_cast<std::size_t>(i)];
      for (int j = 0; j < hidden; ++j) {
        T s = w[b1 + j];
        for (int k = 0; k < features; ++k) s += x[static_cast<std::size_t>(i * features + k)] * w[k * hidden + j];
        h1[j] = tanh(s);
      }
      for (int j = 0; j < hidden; ++j) {
        T s = w[b2 + j];
        for (int k = 0; k < hidden; ++k) s += h1[k] * w[W2 + k * hidden + j];
        h2[j] = tanh(s);
      }
      for (int k = 0; k < hidden; ++k) d += h2[k] * w[W3 + k];
      sum += d * d;
    }
    loss[0] = sum / double(samples);
  }
};

struct layer_norm_problem { // the values, then weight and bias
  static constexpr char const* name = "layer_norm";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int rows = 64, size = 256, weight = rows * size, inputs = weight + 2 * size, outputs = 1, points = 1,
                       block = 1;
  static std::vector<double> at() { return waves(inputs, 0, 2); }
  static inline std::vector<double> const cotangent = waves(rows * size, 1);
  template <class T>
  static void value(T const* x, T* total) {
    using std::sqrt;
    T all = 0.0;
    for (int i = 0; i < rows; ++i) {
      T const* const row = x + i * size;
      T sum = 0.0, squares = 0.0;
      for (int j = 0; j < size; ++j) sum += row[j];
      T const mean = sum * (1.0 / size);
      for (int j = 0; j < size; ++j) {
        T const c = row[j] - mean;
        squares += c * c;
      }
      T const scale = 1.0 / sqrt(squares * (1.0 / size) + 1e-5);
      for (int j = 0; j < size; ++j) {
        T const z = (row[j] - mean) * scale * x[weight + j] + x[weight + size + j];
        all += cotangent[static_cast<std::size_t>(i * size + j)] * (z * normal_distribution(z));
      }
    }
    total[0] = all;
  }
};

struct attention_problem { // query, key and value
  static constexpr char const* name = "attention";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int n = 64, inputs = 3 * n * n, outputs = 1, points = 1, block = 1;
  static std::vector<double> at() { return waves(inputs, 0, 2); }
  static inline std::vector<double> const cotangent = waves(n * n, 1);
  template <class T>
  static void value(T const* query, T* total) {
    using std::exp;
    T const *const key = query + n * n, *const v = key + n * n;
    T sum = 0.0, p[n];
    for (int i = 0; i < n; ++i) {
      T all = 0.0;
      for (int j = 0; j < n; ++j) {
        T s = 0.0;
        for (int k = 0; k < n; ++k) s += query[i * n + k] * key[j * n + k];
        p[j] = exp(0.125 * s);
        all += p[j];
      }
      for (int k = 0; k < n; ++k) {
        T out = 0.0;
        for (int j = 0; j < n; ++j) out += p[j] * v[j * n + k];
        sum += cotangent[static_cast<std::size_t>(i * n + k)] * (out / all);
      }
    }
    total[0] = sum;
  }
};

struct mixture_problem { // of each component the logarithm of its weight, then its mean, then its factor, as in
                         // functions.hpp
  static constexpr char const* name = "mixture";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int size = 10, components = 25, samples = 100, factor = size * (size + 1) / 2, means = components,
                       factors = means + components * size, inputs = factors + components * factor, outputs = 1,
                       points = 1, block = 1;
  static std::vector<double> at() { return waves(inputs, 0, 0.8); }
  static inline std::vector<double> const x = waves(size * samples, 2, 2); // number by number
  template <class T>
  static void value(T const* p, T* likelihood) {
    using std::exp, std::log;
    std::vector<T> diagonal(components * size), shift(components);
    T weights = 0.0, sum = 0.0;
    for (int c = 0; c < components; ++c) {
      T const* const f = p + factors + c * factor;
      shift[static_cast<std::size_t>(c)] = p[c];
      for (int r = 0; r < size; ++r) {
        T const d = exp(f[r]);
        diagonal[static_cast<std::size_t>(c * size + r)] = d;
        shift[static_cast<std::size_t>(c)] += f[r];
        sum += 0.5 * d * d;
      }
      for (int k = size; k < factor; ++k) sum += 0.5 * f[k] * f[k];
      T const weight = exp(p[c]);
      weights += weight;
    }
    for (int i = 0; i < samples; ++i) {
      T all = 0.0, centered[size], q[size];
      for (int c = 0; c < components; ++c) {
        T const *const mean = p + means + c * size, *f = p + factors + c * factor + size;
        for (int r = 0; r < size; ++r) {
          centered[r] = x[static_cast<std::size_t>(r * samples + i)] - mean[r];
          q[r] = diagonal[static_cast<std::size_t>(c * size + r)] * centered[r];
        }
        for (int column = 0; column < size; ++column)
          for (int r = column + 1; r < size; ++r) q[r] += *f++ * centered[column];
        T squares = 0.0;
        for (int r = 0; r < size; ++r) squares += q[r] * q[r];
        T const density = exp(shift[static_cast<std::size_t>(c)] - 0.5 * squares);
        all += density;
      }
      sum += log(all);
    }
    likelihood[0] = sum - double(samples) * log(weights);
  }
};

struct lorenz_problem { // x, y, z, sigma, rho, beta
  static constexpr char const* name = "lorenz";
  static constexpr wanted kind = wanted::gradient;
  static constexpr int steps = 1000, inputs = 6, outputs = 1, points = 1, block = 1;
  static std::vector<double> at() { return {1, 1, 1, 10, 28, 8.0 / 3}; }
  template <class T>
  static void rate(T const* u, T const* p, T* r) {
    r[0] = p[0] * (u[1] - u[0]);
    r[1] = u[0] * (p[1] - u[2]) - u[1];
    r[2] = u[0] * u[1] - p[2] * u[2];
  }
  template <class T>
  static void value(T const* in, T* last) {
    constexpr double dt = 1e-3;
    T u[3] = {in[0], in[1], in[2]}, v[3], k1[3], k2[3], k3[3], k4[3];
    T const* const p = in + 3;
    for (int step = 0; step < steps; ++step) {
      rate(u, p, k1);
      for (int c = 0; c < 3; ++c) v[c] = u[c] + dt / 2 * k1[c];
      rate(v, p, k2);
      for (int c = 0; c < 3; ++c) v[c] = u[c] + dt / 2 * k2[c];
      rate(v, p, k3);
      for (int c = 0; c < 3; ++c) v[c] = u[c] + dt * k3[c];
      rate(v, p, k4);
      for (int c = 0; c < 3; ++c) u[c] += dt / 6 * (k1[c] + 2.0 * k2[c] + 2.0 * k3[c] + k4[c]);
    }
    last[0] = u[0];
  }
};

struct greeks_problem { // spot, strike, time, rate, volatility
  static constexpr char const* name = "black_scholes";
  static constexpr wanted kind = wanted::greeks;
  static constexpr int inputs = 5, outputs = 1, points = 10000, block = points;
  static std::vector<double> at() {
    std::vector<double> r;
    for (int k = 0; k < points; ++k) {
      double const t = 1.3 * k;
      for (double const number : {100 + 20 * std::sin(t), 100 + 20 * std::sin(1 + t), 1 + 0.9 * std::sin(2 + t), 0.03,
                                  0.3 + 0.2 * std::sin(3 + t)})
        r.push_back(number);
    }
    return r;
  }
  template <class T>
  static void value(T const* x, T* price) {
    using std::exp, std::log, std::sqrt;
    T const &spot = x[0], &strike = x[1], &time = x[2], &rate = x[3], &volatility = x[4];
    T const root = sqrt(time), spread = volatility * root, ratio = spot / strike;
    T const d1 = (log(ratio) + (rate + 0.5 * volatility * volatility) * time) / spread, d2 = d1 - spread,
            decay = -rate * time;
    price[0] = spot * normal_distribution(d1) - strike * exp(decay) * normal_distribution(d2);
  }
};

struct bundle_problem { // the camera's rotation, translation, focal length and distortions, then the point
  static constexpr char const* name = "bundle";
  static constexpr wanted kind = wanted::jacobian;
  static constexpr int inputs = 12, outputs = 2, points = 1024, block = 64;
  static std::vector<double> at() {
    std::vector<double> r;
    for (int k = 0; k < points; ++k) {
      std::vector<double> const v = waves(inputs, 0.7 * k, 0.4);
      for (int c = 0; c < inputs; ++c)
        r.push_back(c == 5             ? v[5] - 3
                    : c == 6           ? 400 + 100 * v[6]
                    : c == 7 || c == 8 ? 1e-2 * v[static_cast<std::size_t>(c)]
                                       : v[static_cast<std::size_t>(c)]);
    }
    return r;
  }
  template <class T>
  static void value(T const* in, T* out) {
    using std::sqrt, std::sin, std::cos;
    T const *const r = in, *const t = in + 3, *const x = in + 9, &focal = in[6], &k1 = in[7], &k2 = in[8];
    T const one = 1.0, tt = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], chosen = where_less(tt, 1e-6, one, tt),
            root = sqrt(chosen), half = 0.5 * root;
    T const s = sin(half) / half, c = cos(half), near_a = 1.0 - tt * (1.0 / 6 - tt * (1.0 / 120)),
            near_b = 0.5 - tt * (1.0 / 24 - tt * (1.0 / 720)), far_a = s * c, far_b = 0.5 * s * s;
    T const a = where_less(tt, 1e-6, near_a, far_a), b = where_less(tt, 1e-6, near_b, far_b);
    T const c1 = r[1] * x[2] - r[2] * x[1], c2 = r[2] * x[0] - r[0] * x[2], c3 = r[0] * x[1] - r[1] * x[0];
    T const q1 = x[0] + a * c1 + b * (r[1] * c3 - r[2] * c2) + t[0];
    T const q2 = x[1] + a * c2 + b * (r[2] * c1 - r[0] * c3) + t[1];
    T const q3 = x[2] + a * c3 + b * (r[0] * c2 - r[1] * c1) + t[2];
    T const u = -q1 / q3, v = -q2 / q3, nn = u * u + v * v, zoom = focal * (1.0 + nn * (k1 + nn * k2));
    out[0] = zoom * u;
    out[1] = zoom * v;
  }
};

struct arm_problem { // seven angles; the arm of functions.hpp, from the tool to the base
  static constexpr char const* name = "robot_arm";
  static constexpr wanted kind = wanted::jacobian;
  static constexpr int inputs = 7, outputs = 3, points = 1024, block = 64;
  static constexpr double length[inputs] = {0.34, 0, 0.4, 0, 0.4, 0, 0.126};
  static constexpr int quarter[inputs] = {-1, 1, 1, -1, -1, 1, 0};
  static std::vector<double> at() { return waves(inputs * points, 0, 3); }
  template <class T>
  static void value(T const* angle, T* p) {
    using std::sin, std::cos;
    T x = 0.08 * cos(angle[inputs - 1]), y = 0.08 * sin(angle[inputs - 1]), z = length[inputs - 1];
    for (int j = inputs - 2; j >= 0; --j) {
      T const ty = quarter[j] > 0 ? T(-z) : z, tz = quarter[j] > 0 ? T(y + length[j]) : T(length[j] - y);
      T const c = cos(angle[j]), s = sin(angle[j]), tx = x;
      x = c * tx - s * ty;
      y = s * tx + c * ty;
      z = tz;
    }
    p[0] = x, p[1] = y, p[2] = z;
  }
};

/// Numbers that are wanted at each point.
template <class P>
inline constexpr int results = P::kind == wanted::greeks ? 6 : P::inputs * P::outputs;

/// The derivatives by varve (`derivatives.cpp`), of all points. In and out lie in blocks, each number by number: first
/// the first number of all points of the block.
template <class P>
void derivatives(double const* x, double* d);
} // namespace bench
