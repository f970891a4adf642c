// SPDX-License-Identifier: BSL-1.0
#include "../sample/apart.hpp"

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;
using sample::filled;
using vv::array, vv::index_t, vv::spec, vv::table_driven, vv::tensor;

// Fused functions that stay tables: the same results as those whose operations are code.
namespace {

/// Greatest difference of two results, relative to 1 + |expected|. Of integers and booleans any difference counts as 1.
template <class T>
double apart_numbers(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    double const x = a, y = b;
    return x == y || (x != x && y != y)                  ? 0
           : std::fabs(x - y) / (1 + std::fabs(y)) < 1e9 ? std::fabs(x - y) / (1 + std::fabs(y))
                                                         : 1e9;
  } else {
    return a == b ? 0 : 1;
  }
}
template <class R>
double apart(R const& a, R const& b) {
  if constexpr (std::is_arithmetic_v<R>) {
    return apart_numbers(a, b);
  } else if constexpr (requires { R::size(); }) {
    double worst = 0;
    for (index_t i = 0; i < R::size(); ++i) worst = std::fmax(worst, apart_numbers(a.data[i], b.data[i]));
    return worst;
  } else {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      double worst = 0;
      ((worst = std::fmax(worst, apart(std::get<K>(a), std::get<K>(b)))), ...);
      return worst;
    }(std::make_index_sequence<std::tuple_size_v<R>>{});
  }
}
/// The types of the results are the same, by the parameter.
template <class F, class... X>
double forms_differ(F const& f, X const&... x) {
  return apart(vv::fuse(f, table_driven)(x...), vv::fuse(f)(x...));
}

using floats = array<float, 1003>;
using matrix = array<double, 17, 9>;
constexpr auto counts = [] {
  array<float, 40> a{};
  for (index_t k = 0; k < 40; ++k) a[k] = static_cast<float>(k);
  return a;
}();
constexpr auto functions = [](auto x, auto y) {
  return vv::exp(-(x * x)) / (1.0 + y * y) + vv::sin(x * y) - vv::log1p(vv::abs(x)) * vv::tanh(y);
};
constexpr auto softmax_loss = [](auto w, auto x, auto y) {
  return vv::mean(vv::logsumexp(vv::matmul(x, w), vv::axis<1>) - vv::sum(vv::matmul(x, w) * y, vv::axis<1>));
};
constexpr auto logistic = [](auto w, auto x, auto y) {
  auto p = vv::sigmoid(vv::dot(w, x));
  return -(y * vv::log(p) + (1 - y) * vv::log(1 - p));
};
constexpr auto rosenbrock = [](auto x) {
  auto a = vv::slice(x, vv::axis<0>, vv::range<1, 41>), b = vv::slice(x, vv::axis<0>, vv::range<0, 40>);
  auto r = a - b * b, q = 1.0 - b;
  return vv::sum(100.0 * r * r + q * q);
};
constexpr auto branches = [](auto x, auto w) {
  return vv::cond(
      vv::sum(x) > 0.0, [](auto a, auto b) { return vv::sum(vv::sin(a) * b); },
      [](auto a, auto b) {
        return vv::cond(
            vv::sum(b) > 1.0, [](auto q) { return vv::sum(q * q); }, [](auto q) { return vv::sum(vv::exp(q)); }, a);
      },
      x, w);
};
constexpr auto recurrence = [](auto c, auto xs) {
  auto const [last, ys] = vv::scan(
      [](auto u, auto x) {
        auto n = vv::tanh(u * 0.9 + x);
        return std::pair{n, n * n};
      },
      c, xs);
  return vv::sum(last) + vv::sum(ys * ys);
};
constexpr auto until = [](auto x, auto w) {
  auto const [y, n] = vv::while_loop<16>(
      [](auto y, auto, auto) { return vv::sum(y * y) < 100.0; },
      [](auto y, auto n, auto w) { return std::tuple{vv::tanh(w) * y + y * y, n + 1.0}; }, std::tuple{x, 0.0}, w);
  return vv::sum(y) + n;
};

constexpr auto chain = [](auto const& x) {
  auto y = x * 1.0f;
  for (int k = 0; k < 350; ++k) y = vv::sin(y) * 0.5f + x;
  return y;
};
} // namespace

TEST_CASE("table driven: pointwise functions of arrays, numbers and what broadcasts", "[fuse][table]") {
  CHECK(forms_differ(functions, filled<floats>(0), filled<floats>(1)) < 1e-6);
  CHECK(forms_differ(functions, filled<array<double, 1003>>(0), filled<array<double, 1003>>(1)) < 1e-13);
  CHECK(forms_differ(functions, 0.7, -0.3) < 1e-15);
  CHECK(forms_differ(functions, 0.7f, filled<array<float, 5>>(2)) < 1e-6);
  CHECK(forms_differ(functions, filled<array<float, 40, 1>>(0), filled<array<float, 70>>(1)) < 1e-6);
  CHECK(forms_differ(functions, filled<array<float, 3, 1, 5>>(0), filled<array<float, 4, 1>>(1)) < 1e-6);
  CHECK(forms_differ(vv::grad<0, 1>([](auto x, auto y) { return vv::sum(functions(x, y)); }), filled<floats>(0),
                     filled<floats>(1)) < 1e-6);
  CHECK(forms_differ([](auto x) { return x; }, filled<floats>(0)) == 0);
  CHECK(forms_differ([](auto x) { return std::pair{x, x + x}; }, filled<array<float, 1>>(0)) == 0);
  CHECK(forms_differ([](auto x) { return vv::sum(x * 2.0f); }, array<float, 0>{}) == 0);
}
TEST_CASE("table driven: integers, booleans and mixtures have the dtypes of the unrolled form",
          "[fuse][table][dtype]") {
  array<std::int64_t, 41> i{};
  array<std::uint8_t, 41> u{};
  array<int, 41> s{};
  for (index_t k = 0; k < 41; ++k)
    i[k] = 3 * k - 40, u[k] = static_cast<std::uint8_t>(190 + 2 * k), s[k] = static_cast<int>(k) - 20;
  auto const f = filled<array<float, 41>>(0);
  auto const d = filled<array<double, 41>>(1);
  constexpr auto mix = [](auto a, auto b, auto c, auto e, auto n) {
    auto p = a > c;
    return std::tuple{a + 1,
                      a * 3 - a,
                      vv::sum(a),
                      a + b,
                      c + a,
                      p,
                      vv::where(p, b, e),
                      vv::sum(p),
                      vv::amax(a),
                      vv::amin(a),
                      vv::sum(c),
                      a / (c + 1),
                      vv::to(e * 20.0, vv::type<int>),
                      b * e,
                      vv::where(p, n, n * n),
                      vv::neg(n),
                      vv::abs(n),
                      vv::maximum(n, 3),
                      b > 0.1f};
  };
  CHECK(forms_differ(mix, i, f, u, d, s) < 1e-6);
  CHECK(forms_differ(
            [](auto a, auto b) {
              return std::tuple{a == b, vv::where(a == b, 1.0f, 2.0f), vv::to(a < b, vv::type<float>),
                                vv::sum(vv::to(a < b, vv::type<std::int64_t>))};
            },
            s, i) == 0);
  i[3] = (std::int64_t(1) << 53) + 1;
  CHECK(vv::fuse([](auto a) { return a + 1; }, table_driven)(i)[3] ==
        (std::int64_t(1) << 53) + 2); // sums of integers are exact here
}
TEST_CASE("table driven: reductions over all axes and their gradients", "[fuse][table]") {
  auto const x = filled<array<float, 6, 20, 9>>(0);
  CHECK(forms_differ(
            [](auto v) {
              return std::tuple{vv::sum(v),
                                vv::sum(v, vv::axis<0>),
                                vv::sum(v, vv::axis<1>),
                                vv::sum(v, vv::axis<2>),
                                vv::sum(v, vv::axis<0, 2>),
                                vv::amax(v, vv::axis<1>),
                                vv::amin(v),
                                vv::mean(v, vv::axis<2>),
                                vv::argmax(v, vv::axis<1>)};
            },
            x) < 1e-6);
  CHECK(forms_differ([](auto v) { return vv::softmax(v, vv::axis<1>); }, filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ([](auto v) { return vv::log_softmax(v, vv::axis<0>); }, filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ(vv::grad([](auto v) { return vv::sum(vv::logsumexp(v * v, vv::axis<1>)); }), filled<matrix>(0)) <
        1e-14);
}
TEST_CASE("table driven: products of matrices, views, joins and tables", "[fuse][table]") {
  CHECK(forms_differ(
            [](auto a, auto b) {
              return std::tuple{vv::matmul(a, b), vv::matmul(vv::transpose(a), a), vv::tanh(vv::matmul(a, b)) * 2.0};
            },
            filled<array<double, 13, 21>>(0), filled<array<double, 21, 10>>(1)) < 1e-13);
  CHECK(forms_differ(
            [](auto a) {
              return vv::cat(std::tuple{vv::slice(a, vv::axis<1>, vv::range<2, 8, 3>), a, vv::tanh(a)}, vv::axis<1>);
            },
            filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ(vv::grad(rosenbrock), filled<array<double, 41>>(0)) < 1e-12);
  CHECK(forms_differ([](auto x) { return vv::sum(x * array<float, 3>{1, 2, 4} + 1.0f, vv::axis<1>) * counts; },
                     filled<array<float, 40, 3>>(0)) < 1e-5);
  array<std::int64_t, 5, 9> index{};
  for (index_t k = 0; k < 45; ++k) index.data[k] = k * 7 % 17;
  CHECK(forms_differ([](auto x, auto i) { return vv::gather(x, vv::axis<0>, i); }, filled<matrix>(0), index) == 0);
  CHECK(forms_differ(vv::grad([](auto x, auto i) { return vv::sum(vv::exp(vv::gather(x, vv::axis<0>, i))); }),
                     filled<matrix>(0), index) < 1e-14);
}
TEST_CASE("table driven: transforms of whole programs", "[fuse][table]") {
  CHECK(forms_differ(vv::grad(softmax_loss), filled<array<double, 9, 4>>(0), filled<array<double, 32, 9>>(1),
                     filled<array<double, 32, 4>>(2)) < 1e-13);
  CHECK(forms_differ(vv::vmap(vv::grad(logistic), vv::in_dims<vv::none, 0, 0>), filled<array<float, 9>>(0),
                     filled<array<float, 50, 9>>(1), filled<array<float, 50>>(2)) < 1e-5);
  CHECK(forms_differ(vv::hessian(rosenbrock), filled<array<double, 41>>(0)) < 1e-10);
}
TEST_CASE("table driven: cond, scan and while_loop, and their gradients", "[fuse][table][cond][scan][while_loop]") {
  auto const x = filled<array<double, 5>>(0), w = filled<array<double, 5>>(2);
  auto minus = x;
  for (index_t k = 0; k < 5; ++k) minus[k] = -x[k];
  for (auto const& v : {x, minus}) {
    CHECK(forms_differ(branches, v, w) < 1e-14);
    CHECK(forms_differ(vv::grad<0, 1>(branches), v, w) < 1e-13);
  }
  auto const xs = filled<array<double, 7, 5>>(1);
  CHECK(forms_differ(recurrence, x, xs) < 1e-13);
  CHECK(forms_differ(vv::grad<0, 1>(recurrence), x, xs) < 1e-12);
  for (double from : {0.9, 2.0, 20.0}) {
    array<double, 5> start{};
    for (index_t k = 0; k < 5; ++k) start[k] = from + 0.05 * static_cast<double>(k);
    CHECK(forms_differ(until, start, w) < 1e-12);
    CHECK(forms_differ(vv::grad<0>(until), start, w) < 1e-10);
  }
  CHECK_THROWS_AS(vv::fuse(until, table_driven)(array<double, 5>{}, w), vv::step_limit_error);
}
TEST_CASE("table driven: memory is read and written in place", "[fuse][table]") {
  constexpr auto step = vv::fuse(vv::grad<0, 1>(recurrence), table_driven);
  auto const c = filled<array<double, 5>>(0);
  auto const xs = filled<array<double, 7, 5>>(1);
  array<double, 5> dc{};
  array<double, 7, 5> dxs{};
  double memory[35]{};
  step.into(dc, dxs)(c, xs);
  step.into(dc, vv::tensor_ref<double, 7, 5>(memory))(vv::tensor_ref<double const, 5>(c.data), xs);
  for (index_t k = 0; k < 35; ++k) CHECK(memory[k] == dxs.data[k]);
}
TEST_CASE("table driven: tensors under specs", "[fuse][table][tensor]") {
  constexpr auto f = vv::fuse<spec<float, 64>, spec<double>>(
      [](auto x, auto a) { return std::pair{vv::to(x * a, vv::type<float>), vv::sum(x)}; }, table_driven);
  tensor const x = vv::arange(64);
  auto const [y, s] = f(vv::to(x, vv::dtype::float32), 0.5);
  CHECK(y.data<float>()[10] == 5);
  CHECK(s.data<float>()[0] == 2016);
  tensor const out = tensor::empty({64}, vv::dtype::float32), total = tensor::empty({}, vv::dtype::float32);
  f.into(out, total)(vv::to(x, vv::dtype::float32), vv::full({}, 2.0, vv::dtype::float64));
  CHECK(out.data<float>()[10] == 20);
  CHECK_THROWS_AS(f(vv::to(vv::arange(63), vv::dtype::float32), 0.5), vv::shape_error);
}
TEST_CASE("table driven: a thousand operations", "[fuse][table]") {
  auto const x = filled<array<float, 67>>(0);
  constexpr auto fast = vv::fuse(chain, table_driven);
  using program = decltype(fast)::program<array<float, 67>>;
  STATIC_REQUIRE(program::value.used.steps >= 2 * 350);
  STATIC_REQUIRE(program::value.used.kernels <= 4); // sin, fma, mul
  STATIC_REQUIRE(program::value.used.places <= 6);  // few blocks, used again and again
  STATIC_REQUIRE(program::value.workspace <= 4096);
  auto const y = fast(x), expected = chain(x);
  CHECK(apart(y, expected) < 1e-5);
}
