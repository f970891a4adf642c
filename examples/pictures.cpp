// SPDX-License-Identifier: BSL-1.0
// The pictures of the documents: pictures [<folder>] writes them. Each shows something that derivatives are good for.
// output: wave.svg pendulum.svg spirals.svg valley.svg basins.svg fit.svg attention.svg stencil.svg roots.svg
#include "support/chart.hpp"

#include <varve/implicit.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>
namespace vv = varve;
using vv::tensor;

namespace {
std::string folder = ".";
void keep(chart const& c, char const* name) {
  c.save(folder + "/" + name);
  std::printf("%s ", name);
}
std::vector<double> range(double a, double b, int n) {
  std::vector<double> r;
  for (int k = 0; k < n; ++k) r.push_back(a + (b - a) * k / (n - 1));
  return r;
}
/// The middles of `columns` by `rows` fields, as a tensor of points.
tensor grid(double x0, double x1, double y0, double y1, int columns, int rows) {
  std::vector<double> points;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      points.push_back(x0 + (x1 - x0) * (c + 0.5) / columns);
      points.push_back(y0 + (y1 - y0) * (r + 0.5) / rows);
    }
  return tensor(points).reshape({rows * columns, 2});
}

// A function and its first two derivatives, over all points at once.
constexpr auto wave = [](auto x) { return vv::exp(-0.1 * x * x) * vv::sin(3 * x); };
void waves() {
  std::vector<double> const x = range(-4, 4, 161);
  chart c("exp(-x²/10) sin(3x), its slope, its curvature", -4, 4, -10, 10);
  c.axes("x", "");
  c.curve("f", "#333", x, vv::vmap(wave)(tensor(x)).to_vector());
  c.curve("grad(f)", "#4a80c4", x, vv::vmap(vv::grad(wave))(tensor(x)).to_vector());
  c.curve("grad(grad(f))", "#f0963c", x, vv::vmap(vv::grad(vv::grad(wave)))(tensor(x)).to_vector(), true);
  keep(c, "wave.svg");
}

// Angles of a pendulum, and the derivative of each by the first: through 200 steps of a loop.
constexpr auto swing = [](auto angle) {
  auto const step = [](auto state) {
    auto [a, speed] = state;
    speed = speed - 0.05 * vv::sin(a);
    return std::pair(std::pair(a + 0.05 * speed, speed), a);
  };
  return vv::scan(step, std::pair(angle, 0 * angle), vv::steps<200>).second;
};
void pendulum() {
  auto const [angle, by_first] = vv::jvp(swing, std::tuple{2.5}, std::tuple{1.0});
  std::vector<double> const t = range(0, 9.95, 200);
  chart c("A pendulum released at 2.5", 0, 10, -10, 6);
  c.axes("time", "");
  c.curve("angle", "#333", t, tensor(angle).to_vector());
  c.curve("d angle / d first", "#4a80c4", t, tensor(by_first).to_vector(), true);
  keep(c, "pendulum.svg");
}

// A network that tells two spirals apart: what it says of every point of the plane.
struct network {
  tensor w1, b1, w2, b2;
};
auto scores = [](network const& m, tensor const& x) { return vv::tanh(x.matmul(m.w1) + m.b1).matmul(m.w2) + m.b2; };
void spirals() {
  vv::index_t const n = 60;
  tensor const r = vv::arange(n, vv::dtype::float64) / double(n) * 3.0 + 0.2;
  auto const arm = [&](double turn) {
    return vv::stack(std::tuple{r * vv::cos(r * 2.0 + turn), r * vv::sin(r * 2.0 + turn)}, 1);
  };
  tensor const a = arm(0), b = arm(3.14159), x = vv::cat(std::tuple{a, b}, 0);
  tensor const classes = vv::cat(std::tuple{vv::zeros({n}, vv::dtype::int64), vv::ones({n}, vv::dtype::int64)}, 0);
  vv::manual_seed(2);
  network m{vv::randn({2, 24}, vv::dtype::float64), vv::zeros({24}, vv::dtype::float64),
            vv::randn({24, 2}, vv::dtype::float64) * 0.3, vv::zeros({2}, vv::dtype::float64)};
  auto const loss = [&](network const& p) { return vv::cross_entropy(scores(p, x), classes); };
  vv::optim::adam const opt{.lr = 0.03};
  auto state = opt.init(m);
  for (int k = 0; k < 300; ++k) opt.step(m, vv::grad(loss)(m), state);

  chart c("Two spirals, told apart by 24 units", -3.6, 3.6, -3.6, 3.6, 430, 430);
  tensor const say = vv::softmax(scores(m, grid(-3.6, 3.6, -3.6, 3.6, 60, 60)), 1);
  c.field(60, 60, say.at(vv::ellipsis, 1).to_vector());
  c.axes("", "");
  for (int k = 0; k < n; ++k) {
    c.point(a[k][0].item(), a[k][1].item(), "#2f5f9e");
    c.point(b[k][0].item(), b[k][1].item(), "#c9661a");
  }
  keep(c, "spirals.svg");
}

// Three ways down a narrow valley.
constexpr auto rosenbrock = [](auto const& p) {
  auto const x = p[0], y = p[1];
  return (1 - x) * (1 - x) + 20.0 * (y - x * x) * (y - x * x);
};
void valley() {
  chart c("Down a valley: 150 steps, or 6 of Newton's", -1.6, 1.6, -0.6, 1.6);
  tensor const values = vv::vmap(rosenbrock)(grid(-1.6, 1.6, -0.6, 1.6, 64, 44));
  c.field(64, 44, (vv::log1p(values) / 5.2).to_vector());
  c.axes("x", "y");
  auto const walk = [&](char const* name, char const* color, int steps, auto const& step) {
    tensor p = {-1.3, 0.9};
    std::vector<double> x, y;
    for (int k = 0; k <= steps; ++k) {
      x.push_back(p[0].item()), y.push_back(p[1].item());
      p = step(p);
    }
    c.curve(name, color, x, y);
    c.point(x.back(), y.back(), color, 4);
  };
  walk("descent", "#333", 150, [](tensor const& p) { return p - 0.008 * vv::grad(rosenbrock)(p); });
  tensor speed = {0.0, 0.0};
  walk("with momentum", "#c0392b", 150, [&](tensor const& p) {
    speed = 0.9 * speed - 0.002 * vv::grad(rosenbrock)(p);
    return p + speed;
  });
  walk("Newton", "#1e7d46", 6, [](tensor const& p) {
    tensor const h = vv::hessian(rosenbrock)(p), g = vv::grad(rosenbrock)(p);
    tensor const det = h[0][0] * h[1][1] - h[0][1] * h[1][0];
    return p - vv::stack(std::tuple{h[1][1] * g[0] - h[0][1] * g[1], h[0][0] * g[1] - h[1][0] * g[0]}) / det;
  });
  keep(c, "valley.svg");
}

// Which root of z³ = 1 Newton's method finds, from every point: one batch of Jacobians per step.
constexpr auto z_cubed_less_one = [](auto const& p) {
  auto const x = p[0], y = p[1];
  return vv::stack(std::tuple{x * x * x - 3 * x * y * y - 1, 3 * x * x * y - y * y * y});
};
constexpr auto newton = [](auto const& p) {
  auto const j = vv::jacfwd(z_cubed_less_one)(p), r = z_cubed_less_one(p);
  auto const det = j[0][0] * j[1][1] - j[0][1] * j[1][0];
  return p - vv::stack(std::tuple{j[1][1] * r[0] - j[0][1] * r[1], j[0][0] * r[1] - j[1][0] * r[0]}) / det;
};
void basins() {
  int const n = 96;
  tensor p = grid(-1.5, 1.5, -1.5, 1.5, n, n);
  auto const step = vv::vmap(newton);
  for (int k = 0; k < 30; ++k) p = step(p);
  std::vector<double> which;
  for (double y : p.at(vv::ellipsis, 1).to_vector()) which.push_back(y > 0.5 ? 0.0 : y < -0.5 ? 1.0 : 0.5);
  chart c("Where Newton's method for z³ = 1 ends", -1.5, 1.5, -1.5, 1.5, 430, 430);
  c.field(n, n, which);
  c.axes("", "");
  for (double a : {0.0, 2.0943951, -2.0943951}) c.point(std::cos(a), std::sin(a), "#333", 4);
  keep(c, "basins.svg");
}

// A curve through noisy points by Gauss and Newton, with the band that the Jacobian gives.
void fit() {
  int const n = 40;
  tensor const t = tensor(range(0, 8, n));
  auto const curve = [](auto const& p, auto const& at) { return p[0] * vv::exp(p[1] * at) * vv::cos(2 * at) + p[2]; };
  vv::manual_seed(4);
  tensor const truth = {2.0, -0.3, 0.5}, y = curve(truth, t) + vv::randn({n}, vv::dtype::float64) * 0.15;
  auto const residuals = [&](tensor const& p) { return curve(p, t) - y; };
  tensor p = {1.0, -0.1, 0.0}, covariance;
  for (int k = 0; k < 15; ++k) {
    tensor const j = vv::jacfwd(residuals)(p), r = residuals(p);
    tensor const jj = vv::matmul(j.t(), j), step = vv::matmul(j.t(), r);
    // a 3 by 3 system, by Cramer
    auto const det = [](tensor const& a) {
      return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
             a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
    };
    tensor d = vv::zeros({3}, vv::dtype::float64);
    for (int i = 0; i < 3; ++i) {
      tensor a = jj.clone();
      a.at(vv::ellipsis, i) = step;
      d[i] = det(a) / det(jj);
    }
    p = p - d;
  }
  chart c("A damped wave through 40 points", 0, 8, -2.4, 3.2);
  c.axes("t", "y");
  std::vector<double> const fine = range(0, 8, 161);
  c.curve("fitted", "#4a80c4", fine, curve(p, tensor(fine)).to_vector());
  c.curve("truth", "#333", fine, curve(truth, tensor(fine)).to_vector(), true);
  for (int k = 0; k < n; ++k) c.point(t[k].item(), y[k].item(), "#f0963c");
  keep(c, "fit.svg");
}

// Attention with a function of positions: causal, and weaker with distance.
void attention() {
  vv::index_t const n = 24;
  vv::manual_seed(5);
  tensor const q = vv::randn({1, 1, n, 8}), k = vv::randn({1, 1, n, 8});
  auto const distance = [](auto const& score, auto const&, auto const&, auto const& at, auto const& to) {
    return vv::where(at >= to, score - 0.3 * (at - to), -1e9);
  };
  tensor const rows = vv::flex_attention(q, k, vv::eye(n).reshape({1, 1, n, n}), distance).reshape({n, n});
  std::vector<double> shown;
  for (vv::index_t r = n - 1; r >= 0; --r)
    for (double w : rows[r].to_vector()) shown.push_back(0.5 + 0.5 * std::sqrt(w));
  chart c("Attention to the near past", 0, double(n), 0, double(n), 430, 430);
  c.field(static_cast<int>(n), static_cast<int>(n), shown);
  c.axes("looked at", "from the last position up to the first");
  keep(c, "attention.svg");
}

// The Jacobian of an equation on a grid: columns of one color share no row, and are computed as one column.
void stencil() {
  constexpr int side = 5, n = side * side;
  auto const laplacian = [](tensor const& u) {
    tensor const p = vv::pad(u, vv::dims{1, 1, 1, 1});
    auto const neighbors = [&](int i, int j) { return vv::slice(vv::slice(p, 0, i, i + side), 1, j, j + side); };
    return neighbors(0, 1) + neighbors(2, 1) + neighbors(1, 0) + neighbors(1, 2) - 4.0 * u;
  };
  auto const jacobian = vv::sparse_jacobian(laplacian, vv::by_columns);
  tensor const u = vv::zeros({side, side}, vv::dtype::float64);
  vv::sparsity_pattern const pattern = jacobian.pattern(u);
  std::vector<std::int64_t> const positions = jacobian.positions(u); // of each entry in [passes, n]
  int const passes = jacobian.passes(u), gap = 4;
  std::string const colors[] = {"#4a80c4", "#f0963c", "#1e7d46", "#c0392b", "#8e6bbf", "#d4b106", "#48a9a6", "#333"};
  chart c("25 columns in " + std::to_string(passes) + " passes", 0, n + gap + passes, 0, n + 2, 640, 500);
  for (int r = 0, e = 0; r < n; ++r)
    for (; e < pattern.row_start[r + 1]; ++e) {
      int const color = static_cast<int>(positions[static_cast<std::size_t>(e)]) / n, column = pattern.column[e];
      std::string const& fill = colors[color % 8];
      c.rectangle(column + 0.1, n - r - 0.9, column + 0.9, n - r - 0.1, fill);
      c.rectangle(n + gap + color + 0.1, n - r - 0.9, n + gap + color + 0.9, n - r - 0.1, fill);
    }
  c.rectangle(0, 0, n, n);
  c.rectangle(n + gap, 0, n + gap + passes, n);
  c.text(n / 2.0, n + 0.6, "the Jacobian, a color for each pass");
  c.text(n + gap / 2.0, n / 2.0, "←");
  c.text(n + gap + passes / 2.0, n + 0.6, "what is computed");
  keep(c, "stencil.svg");
}

// The three roots of an equation as functions of a number in it. The slopes come from the equation at the root.
constexpr auto root = vv::implicit::root([](auto const& x, auto const& a) { return x * x * x - 3 * x - a; });
void roots() {
  chart c("x³ − 3x = a: three roots and their slopes", -4, 4, -3, 4);
  c.axes("a", "x");
  auto const branch = [&](char const* name, char const* stroke, double start, std::vector<double> const& a,
                          std::vector<double> const& at) {
    auto const x = [start](tensor const& v) { return root(tensor(start), v); };
    c.curve(name, stroke, a, vv::vmap(x)(tensor(a)).to_vector());
    std::vector<double> const y = vv::vmap(x)(tensor(at)).to_vector(),
                              slope = vv::vmap(vv::grad(x))(tensor(at)).to_vector();
    for (std::size_t k = 0; k < at.size(); ++k) {
      double const half = 1.1 / std::sqrt(1 + 1.4 * slope[k] * slope[k]); // about as long on the picture
      c.curve("", "#f0963c", {at[k] - half, at[k] + half}, {y[k] - half * slope[k], y[k] + half * slope[k]});
      c.point(at[k], y[k], "#333");
    }
  };
  branch("from 4", "#4a80c4", 4, range(-1.99, 4, 81), {-1.8, -1, 2});
  branch("from 0", "#1e7d46", 0, range(-1.99, 1.99, 81), {-1.7, 0, 1.7});
  branch("from −4", "#c0392b", -4, range(-4, 1.99, 81), {-2, 1, 1.8});
  keep(c, "roots.svg");
}
} // namespace

int main(int argc, char** argv) {
  if (argc > 1) folder = argv[1];
  waves();
  pendulum();
  spirals();
  valley();
  basins();
  fit();
  attention();
  stencil();
  roots();
  std::puts("");
}
