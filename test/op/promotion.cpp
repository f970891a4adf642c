// SPDX-License-Identifier: BSL-1.0
// Dtypes of results, and dtypes and numbers that are refused.
#include "op_test.hpp"

#include <varve_test.hpp>

using namespace op_test;

TEST_CASE("a value of rank 0 in its lane decides no dtype", "[op][vmap]") {
  tensor const x = of({1.1, 2.2, 3.3}), f = of({1.f, 2.f}),
               rows = vv::reshape(of({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}), dims{3, 2});
  auto const check = [&](auto const& op) {
    std::vector<tensor> lanes, both;
    for (int k = 0; k < 3; ++k) {
      lanes.push_back(op(vv::select(x, 0, k), f));
      both.push_back(op(vv::select(x, 0, k), vv::select(rows, 0, k)));
    }
    tensor const right = vv::stack(lanes, 0), right_of_both = vv::stack(both, 0);
    auto const captures = [&](tensor const& a) { return op(a, f); };
    auto const same = [](tensor const& y, tensor const& loop) {
      CHECK(y.dtype() == loop.dtype());
      CHECK(elements(y) == elements(loop));
    };
    same(vv::vmap(captures)(x), right);
    same(vv::vmap(op)(x, rows), right_of_both);
    same(vv::vmap([&](tensor const& a, tensor const& b) { return op(b, a); })(rows, x), right_of_both);
    same(vv::reshape(vv::vmap(vv::vmap(captures))(vv::reshape(x, dims{3, 1})), right.sizes()), right);
    same(vv::compile([&](tensor const& v) { return vv::vmap(captures)(v); })(x), right);
    same(vv::functionalize([&](tensor const& v) { return vv::vmap(captures)(v); })(x), right);
    same(vv::jvp([&](tensor const& v) { return vv::vmap(captures)(v); }, std::tuple(x), std::tuple(x)).first, right);
    tensor const leaf = x * 1.0;
    leaf.requires_grad_();
    same(vv::vmap(captures)(leaf), right);
  };
  check([](tensor const& a, tensor const& b) { return a + b; });
  check([](tensor const& a, tensor const& b) { return b * a; });
  check([](tensor const& a, tensor const& b) { return a / b; });
  check([](tensor const& a, tensor const& b) { return vv::maximum(b, a); });
  check([](tensor const& a, tensor const& b) { return b < a; });
  check([](tensor const& a, tensor const& b) { return vv::where(b > 1.5, a, b); });
  check([](tensor const& a, tensor const& b) { return vv::clamp(b, a, a); });
  check([](tensor const& a, tensor const& b) {
    tensor const c = b * 1.0f;
    return vv::mul_(c * vv::to(a, dtype::float32), a);
  });
  CHECK(elements(vv::grad([&](tensor const& v) {
          return vv::sum(vv::vmap([&](tensor const& a) { return a * f; })(v));
        })(x)) == doubles({3, 3, 3}));
  CHECK(elements(vv::vmap(vv::grad([&](tensor const& a) { return vv::sum(a * f); }))(x)) == doubles({3, 3, 3}));
  // Values of one class promote as ever; a byte beside a wide rank-0 value stays one.
  CHECK(vv::vmap([&](tensor const& a, tensor const& b) { return a + b; })(x, vv::to(x, dtype::float32)).dtype() ==
        dtype::float64);
  CHECK(vv::vmap([&](tensor const& a, tensor const& b) { return vv::reshape(a, dims{1}) + b; })(
            of<std::uint8_t>({1, 2}), vv::full({2}, 300))
            .dtype() == dtype::uint8);
  auto const add = [](auto const& a, auto const& b) { return a + b; };
  vv::array<double, 3> const s{1.1, 2.2, 3.3};
  vv::array<float, 2> const t{1, 2};
  STATIC_REQUIRE(std::is_same_v<decltype(vv::vmap(add, vv::in_dims<0, vv::none>)(s, t)), vv::array<float, 3, 2>>);
  STATIC_REQUIRE(
      std::is_same_v<decltype(vv::fuse(vv::vmap(add, vv::in_dims<0, vv::none>))(s, t)), vv::array<float, 3, 2>>);
}

TEST_CASE("dtypes that PyTorch refuses are refused", "[op][dtype]") {
  tensor const x = of({1.0, 2.0, 3.0}), truth = x > 1.5, whole = vv::to(x, dtype::int64);
  auto const check = [](auto const& f, tensor const& v, char const* text) {
    CHECK_THROWS_WITH(f(v), ContainsText(text));
    CHECK_THROWS_WITH(vv::vmap(f)(vv::reshape(v, dims{1, 3})), ContainsText(text));
    CHECK_THROWS_WITH(vv::make_fx(f)(v), ContainsText(text));
    CHECK_THROWS_WITH(vv::compile(f)(v), ContainsText(text));
    CHECK(vv::this_thread_state.quiet());
  };
  check([](auto const& v) { return v - (v > 1.5); }, x, "sub: dtype bool");
  check([](auto const& v) { return (v > 1.5) - v; }, x, "sub: dtype bool");
  check([](auto const& v) { return v - true; }, x, "sub: dtype bool");
  check([](auto const& v) { return vv::relu(v); }, truth, "relu: dtype bool");
  check([](auto const& v) { return vv::abs(v); }, truth, "abs: dtype bool");
  check([](auto const& v) { return vv::softmax(v, vv::axis<0>); }, whole, "softmax: dtype int64");
  check([](auto const& v) { return vv::log_softmax(v, vv::axis<0>); }, whole, "log_softmax: dtype int64");
  CHECK_THROWS_AS(vv::sub_(x, truth), vv::dtype_error);
  CHECK_THROWS_AS(vv::relu_(truth), vv::dtype_error);
  CHECK(x.version() == 0);
  CHECK(elements(vv::abs(whole) - vv::relu(whole)) == doubles({0, 0, 0}));

  auto const refused = ContainsText("vjp: the results of the function have no derivative");
  CHECK_THROWS_WITH(vv::vjp([](tensor const& v) { return vv::to(v, dtype::int64); }, x), refused);
  CHECK_THROWS_WITH(vv::vjp([](tensor const& v) { return v > 1.5; }, x), refused);
  CHECK_THROWS_WITH(vv::jacrev([](tensor const& v) { return vv::argmax(v, vv::axis<0>); })(x), refused);
  auto const both = [](tensor const& v) { return std::tuple<tensor, tensor>(v > 1.5, v * 2.0); };
  CHECK(elements(std::get<0>(vv::vjp(both, x).second(both(x)))) == doubles({4, 8, 12}));
}

TEST_CASE("numbers beyond the range of a dtype are no elements of it", "[op][factory]") {
  tensor const b = vv::zeros({3}, dtype::int8), u = vv::zeros({3}, dtype::uint8), h = vv::zeros({3}, dtype::float16);
  auto const fills = [](tensor const& x, auto n) { // full_like, or what it is refused with
    try {
      return elements(vv::full_like(x, n))[0];
    } catch (vv::value_error const&) { return -1000.0; }
  };
  double const no = -1000;
  CHECK(fills(b, 300) == no);
  CHECK(fills(b, -129) == no);
  CHECK(fills(b, NaN) == no);
  CHECK(fills(b, inf) == no);
  CHECK(fills(b, 126.9) == 126);
  CHECK(fills(b, -128) == -128);
  CHECK(fills(u, -1) == 255); // wraps around, as in PyTorch
  CHECK(fills(u, -0.5) == no);
  CHECK(fills(u, 256) == no);
  CHECK(fills(h, 70000) == no);
  CHECK(fills(h, inf) == inf);
  CHECK(fills(vv::zeros({1}), 1e39) == no);
  CHECK(fills(vv::zeros({1}, dtype::bool_), 1e39) == 1);
  CHECK(fills(vv::zeros({1}, dtype::int64), 1e19) == no);
  CHECK_THROWS_AS(vv::full({2}, ~std::uint64_t{0}), vv::value_error);
  CHECK_THROWS_AS(vv::full({2}, 300, dtype::int8), vv::value_error);
  CHECK_THROWS_AS(vv::fill_(b, 300), vv::value_error);
  CHECK_THROWS_AS(b[0] = 300, vv::value_error);
  CHECK_THROWS_AS(b.at(vv::eq(b, 0)) = 300, vv::value_error);
  CHECK_THROWS_AS(b.at(vv::slice(0, 2)) = 300, vv::value_error);
  CHECK_THROWS_AS(vv::constant_pad_nd(b, dims{1, 1}, 300), vv::value_error);
  CHECK_THROWS_AS(vv::vmap([](auto const& x) { return vv::full_like(x, 300); })(b), vv::value_error);
  CHECK_THROWS_AS(vv::full_like(vv::array<std::uint8_t, 2>{}, 300), vv::value_error);
  CHECK(b.version() == 0);
  CHECK(elements(b) == doubles({0, 0, 0}));
}

TEST_CASE("integers to a negative power are refused", "[dispatch]") {
  tensor const i = vv::tensor({1, 2, 3}), none = vv::zeros({0}, dtype::uint8), x = from({1, 2}, {2}, dtype::float64);
  CHECK_THROWS_WITH(vv::pow(i, -1), ContainsText("make x floating"));
  CHECK_THROWS_AS(vv::pow(none, -2), vv::value_error);
  CHECK_THROWS_AS(vv::vmap([](tensor const& v) { return vv::pow(v, -1); })(i), vv::value_error);
  CHECK(elements(vv::pow(i, 2)) == doubles({1, 4, 9}));
  CHECK(elements(vv::pow(x, -1)) == doubles({1, 0.5}));
  CHECK(elements(vv::grad([](tensor const& v) { return vv::sum(vv::pow(v, -1)); })(x)) == doubles({-1, -0.25}));
  static_assert(vv::pow(vv::array<double, 2>{1, 2}, -1).data[1] == 0.5);
}
