// SPDX-License-Identifier: BSL-1.0
#include "table_driven_test.hpp"

#include <varve_test.hpp>

using namespace table_driven_test;

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
