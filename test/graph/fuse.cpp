// SPDX-License-Identifier: BSL-1.0
#include <varve/fuse/fuse.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <memory>
#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::index_t;

namespace {
constexpr auto gate = [](auto x, auto w) { return vv::sum(vv::tanh(x * w) * x + x); };
constexpr auto gate_gradient = vv::fuse(vv::grad<0, 1>(gate));
constexpr auto chain = [](auto x, auto y) { return vv::exp(-(x * x)) / (1.0 + y * y) + vv::sin(x * y); };
constexpr auto rosenbrock = [](auto x) {
  auto a = vv::slice(x, vv::axis<0>, vv::range<1, 11>), b = vv::slice(x, vv::axis<0>, vv::range<0, 10>);
  auto r = a - b * b, q = 1.0 - b;
  return vv::sum(100.0 * r * r + q * q);
};
constexpr auto branches = [](auto x, auto w) {
  return vv::cond(
      vv::sum(x) > 0.0, [](auto a, auto b) { return vv::sum(vv::sin(a) * b); },
      [](auto a, auto b) { return vv::sum(a * b * b); }, x, w);
};
constexpr auto nested = [](auto x) {
  return vv::cond(
      x > 0.0,
      [](auto a) {
        return vv::cond(a > 1.0, [](auto q) { return q * q; }, [](auto q) { return vv::exp(q); }, a) + 1.0;
      },
      [](auto a) { return a * 3.0; }, x * 2.0);
};
constexpr auto negated = [](auto x, auto y) {
  auto const kept = -(x * x), product = vv::sin(x) * y;
  return std::tuple(vv::sum(-(x * y), vv::axis<1>), vv::sum(-(y * vv::exp(y))), vv::sum(kept), kept, vv::sum(-product),
                    product, vv::sum(-(vv::cos(x) * y)) + vv::sum(vv::abs(-(vv::cos(x) * y))));
};
} // namespace

TEST_CASE("fuse: the gradient of a reduction in one pass, without workspace", "[fuse]") {
  constexpr index_t n = 1003;
  array<float, n> x, w;
  for (index_t i = 0; i < n; ++i)
    x[i] = std::sin(0.1f * static_cast<float>(i)), w[i] = std::cos(0.3f * static_cast<float>(i));
  auto const [gx, gw] = gate_gradient(x, w);
  for (index_t i = 0; i < n; i += 17) {
    double const t = std::tanh(static_cast<double>(x[i]) * w[i]), d = (1 - t * t) * x[i];
    CHECK(gx[i] == Approx(d * w[i] + t + 1).epsilon(1e-5).margin(1e-6));
    CHECK(gw[i] == Approx(d * x[i]).epsilon(1e-5).margin(1e-6));
  }
  STATIC_REQUIRE(decltype(gate_gradient)::workspace_bytes<array<float, n>, array<float, n>> == 0);
}
TEST_CASE("fuse: large results are written in place", "[fuse]") {
  constexpr index_t n = 1000000;
  using large = array<float, n>;
  auto const x = std::make_unique<large>(), w = std::make_unique<large>(), gx = std::make_unique<large>(),
             gw = std::make_unique<large>();
  for (index_t i = 0; i < n; ++i) (*x)[i] = 0.5f, (*w)[i] = 1.0f;
  gate_gradient.into(*gx, *gw)(*x, *w);
  double const t = std::tanh(0.5);
  CHECK((*gx)[0] == Approx((1 - t * t) * 0.5 + t + 1));
  CHECK((*gx)[n - 1] == (*gx)[0]);
  CHECK((*gw)[n - 1] == Approx((1 - t * t) * 0.25));
}
TEST_CASE("fuse: scalars go in and come out as plain numbers", "[fuse]") {
  constexpr auto f = vv::fuse(chain);
  constexpr auto g = vv::fuse(vv::grad<0, 1>(chain));
  double const x = 0.7, y = -0.3, u = std::exp(-x * x), d = 1 / (1 + y * y);
  CHECK(f(x, y) == Approx(u * d + std::sin(x * y)));
  auto const [gx, gy] = g(x, y);
  CHECK(gx == Approx(-2 * x * u * d + y * std::cos(x * y)));
  CHECK(gy == Approx(-2 * y * d * d * u + x * std::cos(x * y)));
}
TEST_CASE("fuse: neighbours are read by shifted loads", "[fuse]") {
  array<double, 11> x, g;
  for (index_t i = 0; i < 11; ++i) x[i] = 0.3 * static_cast<double>(i) - 1;
  vv::fuse(vv::grad(rosenbrock)).into(g)(x);
  for (index_t i = 0; i < 11; ++i) {
    double r = 0;
    if (i > 0) r += 200 * (x[i] - x[i - 1] * x[i - 1]);
    if (i < 10) r += -400 * x[i] * (x[i + 1] - x[i] * x[i]) - 2 * (1 - x[i]);
    CHECK(g[i] == Approx(r));
  }
  STATIC_REQUIRE(vv::fused<decltype(vv::grad(rosenbrock))>::workspace_bytes<array<double, 11>> == 0);
}
TEST_CASE("fuse: cond becomes a branch, nested and under grad", "[fuse][cond]") {
  array<double, 5> x{1, 2, 3, 4, 5}, w{1, 1, 1, 1, 2}, y{-1, -2, -3, -4, -5};
  constexpr auto f = vv::fuse(branches);
  CHECK(f(x, w) == Approx(std::sin(1) + std::sin(2) + std::sin(3) + std::sin(4) + 2 * std::sin(5)));
  CHECK(f(y, w) == Approx(-30));
  auto const [gx, gw] = vv::fuse(vv::grad<0, 1>(branches))(y, w);
  CHECK(gx[4] == Approx(4));
  CHECK(gw[4] == Approx(-20));
  constexpr auto g = vv::fuse(nested);
  CHECK(g(1.0) == Approx(5));
  CHECK(g(0.2) == Approx(std::exp(0.4) + 1));
  CHECK(g(-1.0) == Approx(-6));
}

namespace {
constexpr auto put_together = [](auto x, auto y) {
  auto const rows = vv::stack(std::tuple{vv::stack(std::tuple{vv::sin(x), x * y}, vv::axis<0>),
                                         vv::stack(std::tuple{vv::exp(y), x - y}, vv::axis<0>)},
                              vv::axis<0>);
  return std::tuple(
      vv::permute(rows, vv::axis<2, 0, 1>),
      vv::cat(std::tuple{vv::reshape(x, vv::shape<1, 19>), vv::unsqueeze(vv::cos(y), vv::axis<0>)}, vv::axis<1>));
};
constexpr auto labelled = [](auto w, auto y) { return vv::sum(w * vv::one_hot(y, vv::ints<5>{})); };
constexpr auto two_products = [](auto a, auto b) { return vv::transpose(vv::mm(a, b)); };
constexpr auto product_wanted_twice = [](auto a, auto b) {
  auto const m = vv::mm(a, b);
  return std::tuple(vv::transpose(m), vv::sum(m));
};
template <class F, class... A>
constexpr int stages(F const&, vv::fusion::stage_kind kind) {
  auto const& p = F::template program<A...>::value;
  int n = 0;
  for (std::size_t k = 0; k < p.used.stages; ++k) n += p.stages[k].kind == kind;
  return n;
}
} // namespace

TEST_CASE("fuse: what a result is put together from is computed in place, in one loop", "[fuse]") {
  using row = array<double, 19>;
  row x, y;
  for (index_t i = 0; i < 19; ++i) x[i] = 0.1 * static_cast<double>(i) - 1, y[i] = 0.3 + 0.05 * static_cast<double>(i);
  constexpr auto f = vv::fuse(put_together);
  auto const [r, c] = f(x, y);
  for (index_t i = 0; i < 19; ++i) {
    CHECK(r(i, 0, 0) == Approx(std::sin(x[i])));
    CHECK(r(i, 0, 1) == Approx(x[i] * y[i]));
    CHECK(r(i, 1, 0) == Approx(std::exp(y[i])));
    CHECK(r(i, 1, 1) == Approx(x[i] - y[i]));
    CHECK(c(0, i) == x[i]);
    CHECK(c(0, 19 + i) == Approx(std::cos(y[i])));
  }
  STATIC_REQUIRE(decltype(f)::workspace_bytes<row, row> == 0);
  STATIC_REQUIRE(stages<decltype(f), row, row>(f, vv::fusion::stage_kind::loops) == 1);
}
TEST_CASE("fuse: labels are compared in the registers of the floats beside them", "[fuse]") {
  using scores = array<float, 33, 5>;
  using labels = array<std::int64_t, 33>;
  scores w;
  labels y;
  double expected = 0;
  for (index_t i = 0; i < 33; ++i) {
    y[i] = i % 7 == 6 ? (index_t{1} << 32) + 1
                      : i % 5; // a label out of range matches nothing, also when only its low bits would
    for (index_t c = 0; c < 5; ++c) w(i, c) = static_cast<float>(i * 5 + c);
    if (y[i] < 5) expected += static_cast<double>(w(i, y[i]));
  }
  constexpr auto f = vv::fuse(labelled);
  CHECK(f(w, y) == Approx(expected));
  STATIC_REQUIRE(decltype(f)::program<scores, labels>::value.bodies[0].type == vv::fusion::lane::f32);
}
TEST_CASE("fuse: the transpose of a product is a product, unless both are wanted", "[fuse]") {
  using left = array<double, 6, 7>;
  using right = array<double, 7, 9>;
  left a;
  right b;
  for (index_t i = 0; i < 42; ++i) a.data[i] = 0.3 * static_cast<double>(i % 11) - 1;
  for (index_t i = 0; i < 63; ++i) b.data[i] = 0.2 * static_cast<double>(i % 13) - 1;
  constexpr auto f = vv::fuse(two_products);
  constexpr auto g = vv::fuse(product_wanted_twice);
  auto const t = f(a, b);
  auto const [u, total] = g(a, b);
  double sum = 0;
  for (index_t i = 0; i < 6; ++i)
    for (index_t j = 0; j < 9; ++j) {
      double s = 0;
      for (index_t k = 0; k < 7; ++k) s += a(i, k) * b(k, j);
      CHECK(t(j, i) == Approx(s).margin(1e-12));
      CHECK(u(j, i) == Approx(s).margin(1e-12));
      sum += s;
    }
  CHECK(total == Approx(sum));
  STATIC_REQUIRE(decltype(f)::program<left, right>::value.used.stages == 1);
  STATIC_REQUIRE(stages<decltype(g), left, right>(g, vv::fusion::stage_kind::matmul) == 1);
}
TEST_CASE("fuse: sums of negated products subtract, where neither the product nor its opposite is wanted", "[fuse]") {
  using values = array<double, 5, 19>;
  values x, y;
  for (index_t i = 0; i < 95; ++i)
    x.data[i] = std::sin(0.7 * static_cast<double>(i)), y.data[i] = std::cos(0.3 * static_cast<double>(i));
  constexpr auto f = vv::fuse(negated);
  auto const fused = f(x, y), plain = negated(x, y);
  auto const agree = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
    auto const &a = std::get<K>(fused), &b = std::get<K>(plain);
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(a)>>) CHECK(a == Approx(b).margin(1e-13));
    else
      for (index_t i = 0; i < a.size(); ++i) CHECK(a.data[i] == Approx(b.data[i]).margin(1e-13));
  };
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (agree(std::integral_constant<std::size_t, K>{}), ...);
  }(std::make_index_sequence<7>{});
#if VARVE_USE_XSIMD
  constexpr auto const& p = decltype(f)::program<values, values>::value;
  int subtracted = 0;
  for (std::size_t k = 0; k < p.used.sinks; ++k) subtracted += p.sinks[k].minus;
  CHECK(subtracted == (vv::kernel::lanes<double> > 1 ? 2 : 0));
#endif
}
