// SPDX-License-Identifier: BSL-1.0
// Results of operators that were once silently wrong.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr double NaN = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
template <class T>
tensor of(std::initializer_list<T> v) {
  return tensor::from_data(v.begin(), dims{static_cast<vv::index_t>(v.size())});
}
/// f on bytes, in every way that tensors know; and as a static value, fused too.
template <class F>
void check_bytes(F const& f, dtype type, std::vector<double> const& right) {
  tensor const x = of<std::uint8_t>({0, 128, 255});
  auto const check = [&](tensor const& y) {
    CHECK(y.dtype() == type);
    CHECK(elements(y) == right);
  };
  check(f(x));
  check(vv::vmap(f)(x));
  check(vv::reshape(vv::vmap(vv::vmap(f))(vv::reshape(x, dims{1, 3})), dims{3}));
  check(vv::compile(f)(x));
  check(vv::functionalize(f)(x));
  vv::graph const g = vv::make_fx(f)(x);
  check(vv::interpret(g, vv::boxed_args(x))[0]);
  check(vv::fuse(g)(vv::boxed_args(x))[0]);
  check(vv::fuse<vv::spec<std::uint8_t, 3>>(f)(x));
  vv::array<std::uint8_t, 3> const s{0, 128, 255};
  auto const same = [&](auto const& y) {
    for (int k = 0; k < 3; ++k) CHECK(static_cast<double>(y.data[k]) == right[static_cast<std::size_t>(k)]);
  };
  same(f(s));
  same(vv::vmap(f)(s));
  same(vv::fuse(f)(s));
  same(vv::fuse(vv::vmap(f))(s));
}
} // namespace

TEST_CASE("integers are compared with numbers of any size", "[op][integer]") {
  dtype const truth = dtype::bool_, byte = dtype::uint8;
  check_bytes([](auto const& x) { return x < 300; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return 300 > x; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x >= -1; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x == 384; }, truth, doubles({0, 0, 0})); // 128 + 256
  check_bytes([](auto const& x) { return -128 != x; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x <= 128; }, truth, doubles({1, 1, 0}));
  check_bytes([](auto const& x) { return vv::clamp(x, -1000, 1000); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 100, vv::none); }, byte, doubles({100, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 400); }, byte, doubles({255, 255, 255}));
  check_bytes([](auto const& x) { return vv::maximum(x, -5); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return vv::maximum(300, x); }, byte, doubles({255, 255, 255}));
  check_bytes([](auto const& x) { return vv::minimum(x, 300); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return x + 300; }, byte, doubles({44, 172, 43})); // arithmetic wraps

  tensor const w = of<std::int32_t>({-5, 7});
  CHECK(elements(w < 3000000000) == doubles({1, 1}));
  CHECK(elements(w < 3000000000u) == doubles({1, 1}));
  CHECK(elements(w >= -3000000000) == doubles({1, 1}));
  CHECK(elements(vv::clamp(w, -3000000000, 3000000000)) == doubles({-5, 7}));
  CHECK_THROWS_WITH(w < ~0ull, ContainsText("lt: the number is greater than int64 holds"));
  STATIC_REQUIRE(vv::equal(vv::array<int, 2>{-5, 7} < 3000000000, vv::array<bool, 2>{true, true}));
  STATIC_REQUIRE(vv::equal(vv::array<std::uint8_t, 2>{0, 44} == 300, vv::array<bool, 2>{false, false}));
  STATIC_REQUIRE(vv::equal(vv::clamp(vv::array<std::uint8_t, 2>{0, 44}, -1, 300), vv::array<std::uint8_t, 2>{0, 44}));
}

TEST_CASE("clamp takes bounds that are NaN, or of another category than the other", "[op][clamp]") {
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 400.5); }, dtype::float32, doubles({300, 300, 300}));
  check_bytes([](auto const& x) { return vv::clamp(x, -5, 200.5); }, dtype::float32, doubles({0, 128, 200.5}));
  check_bytes([](auto const& x) { return vv::clamp(x, 2.5, 300); }, dtype::float32, doubles({2.5, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 200.5); }, dtype::float32, doubles({200.5, 200.5, 200.5}));
  check_bytes([](auto const& x) { return vv::clamp(x, -inf, inf); }, dtype::float32, doubles({0, 128, 255}));

  tensor const x = of({-1.0, NaN, 3.0}), bounds = of({NaN, 0.0, 1.0}), none_of_these = of({NaN, NaN, NaN});
  auto const check = [](auto const& f, tensor const& v, tensor const& right) {
    CHECK(difference(f(v), right) == "");
    CHECK(difference(vv::vmap(f)(v), right) == "");
    CHECK(difference(vv::compile(f)(v), right) == "");
    CHECK(difference(vv::fuse<vv::spec<double, 3>>(f)(v), right) == "");
  };
  check([](auto const& v) { return vv::clamp(v, NaN, 5.0); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, 0.0, NaN); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, NaN, vv::none); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, v * 0.0, vv::none); }, x, of({-0.0, NaN, 3.0}));
  CHECK(difference(vv::clamp(x, bounds, vv::none), of({NaN, NaN, 3.0})) == "");
  CHECK(difference(vv::clamp(x, vv::none, bounds), of({NaN, NaN, 1.0})) == "");
  CHECK(difference(vv::vmap([](tensor const& a, tensor const& b) { return vv::clamp(a, b, 2.0); })(x, bounds),
                   of({NaN, NaN, 2.0})) == "");
  tensor const y = of({0.5, 0.5, 0.5});
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::clamp(v, bounds, vv::none)); })(y)) ==
        doubles({0, 1, 0}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::clamp(v, NaN, 1.0)); })(y)) == doubles({0, 0, 0}));
  constexpr auto s = vv::clamp(vv::array<double, 2>{1, 2}, vv::array<double, 2>{NaN, 3}, vv::none);
  STATIC_REQUIRE(s.data[0] != s.data[0]);
  STATIC_REQUIRE(s.data[1] == 3);
  STATIC_REQUIRE(vv::clamp(1.0, NaN, 2.0) != vv::clamp(1.0, NaN, 2.0));
}

TEST_CASE("integers are compared with values of rank 0 of a wider dtype", "[op][integer]") {
  tensor const x = of<std::uint8_t>({0, 128, 255}), n = vv::full({}, 300), many = vv::full({3}, 300);
  CHECK(elements(x < n) == doubles({1, 1, 1}));
  CHECK(elements(vv::maximum(x, n)) == doubles({255, 255, 255}));
  CHECK(elements(vv::vmap([&](tensor const& a) { return x < a; })(many)) == std::vector<double>(9, 1));
  auto const less = [](auto const& a, auto const& b) { return a < b; };
  auto const greatest = [](auto const& a, auto const& b) { return vv::maximum(a, b); };
  CHECK(elements(vv::compile(less)(x, n)) == doubles({1, 1, 1}));
  vv::array<std::uint8_t, 3> const s{0, 128, 255};
  CHECK(vv::equal(vv::fuse(less)(s, 300), vv::array<bool, 3>{true, true, true}));
  CHECK(vv::equal(vv::fuse(greatest)(s, -5), s));
}

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

TEST_CASE("gather and scatter_add take rank 0 as rank 1, in lanes too", "[op][gather]") {
  tensor const x = of({1.0, 2.0, 3.0}), six = vv::sum(x), zero = vv::full({}, 0, dtype::int64),
               zeros = vv::zeros({3}, dtype::int64);
  auto const f = [&](tensor const& v) { return vv::gather(v, 0, zero) * 2.0; };
  CHECK(elements(f(six)) == doubles({12}));
  CHECK(elements(vv::vmap(f)(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::vmap([](tensor const& a, tensor const& i) { return vv::gather(a, 0, i); })(x, zeros)) ==
        doubles({1, 2, 3}));
  CHECK(elements(vv::vmap([&](tensor const& i) { return vv::gather(six, 0, i); })(zeros)) == doubles({6, 6, 6}));
  CHECK(elements(vv::grad(f)(six)) == doubles({2}));
  CHECK(elements(vv::jacrev(f)(six)) == doubles({2}));
  CHECK(elements(vv::jacfwd(f)(six)) == doubles({2}));
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({2, 2, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) == doubles({2, 2, 2}));
  CHECK(elements(vv::hessian([&](tensor const& v) { return f(v) * f(v); })(six)) == doubles({8}));
  CHECK(elements(vv::compile([&](tensor const& v) { return vv::vmap(f)(v); })(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::vmap([&](tensor const& v) { return vv::scatter_add(v, 0, zero, v); })(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::gather(six, 0, vv::zeros({2}, dtype::int64))) == doubles({6, 6}));
  CHECK(elements(vv::gather(x, 0, vv::full({}, 2, dtype::int64))) == doubles({3}));
  CHECK_THROWS_AS(vv::gather(six, 0, vv::full({}, 1, dtype::int64)), vv::index_error);
}

TEST_CASE("an index without elements is asked for neither dtype nor rank", "[op][gather]") {
  tensor const x = of({1.0, 2.0, 3.0});
  for (dtype type : {dtype::float32, dtype::int32, dtype::bool_, dtype::int64}) {
    tensor const flat = vv::zeros({0}, type), wide = vv::zeros({2, 0}, type);
    auto const f = [&](tensor const& v) { return vv::gather(v, 0, wide); };
    CHECK(vv::gather(x, 0, flat).sizes() == dims{0});
    CHECK(f(x).sizes() == dims{2, 0});
    CHECK(f(x).dtype() == dtype::float64);
    CHECK(f(vv::sum(x)).sizes() == dims{2, 0});
    CHECK(vv::vmap(f)(vv::reshape(x, dims{1, 3})).sizes() == dims{1, 2, 0});
    CHECK(vv::compile(f)(x).sizes() == dims{2, 0});
    CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(x)) == doubles({0, 0, 0}));
    CHECK(elements(vv::scatter_add(x, 0, wide, wide)) == doubles({1, 2, 3}));
    CHECK_THROWS_AS(vv::gather(x, 3, flat), vv::index_error);
  }
  CHECK_THROWS_AS(vv::gather(x, 0, vv::zeros({1}, dtype::int32)), vv::dtype_error);
  CHECK_FALSE(vv::scatter_add(x, 0, vv::zeros({0}, dtype::int64), x).shares_storage(x));
}

TEST_CASE("a source greater than the index has gradients of its own shape", "[op][gather]") {
  tensor const source = vv::reshape(of({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), dims{2, 3}),
               index = vv::reshape(of<std::int64_t>({0, 1, 1, 0}), dims{2, 2}), none = source * 0.0,
               right = of({1.0, 5.0, 0.0, 4.0, 2.0, 0.0});
  auto const f = [&](tensor const& s) { return vv::scatter_add(none, 0, index, s); };
  auto const weighted = [&](tensor const& s) { return vv::sum(f(s) * source); };
  CHECK(elements(f(source)) == elements(right));
  CHECK(elements(vv::compile(f)(source)) == elements(right));
  CHECK(elements(vv::vmap(f)(vv::reshape(source, dims{1, 2, 3}))) == elements(right));
  CHECK(elements(f(vv::permute(vv::contiguous(vv::permute(source, dims{1, 0})), dims{1, 0}))) == elements(right));
  CHECK(vv::grad(weighted)(source).sizes() == dims{2, 3});
  CHECK(elements(vv::grad(weighted)(source)) == doubles({1, 5, 0, 4, 2, 0}));
  CHECK(elements(vv::compile(vv::grad(weighted))(source)) == doubles({1, 5, 0, 4, 2, 0}));
  CHECK(elements(vv::vmap(vv::grad(weighted))(vv::reshape(source, dims{1, 2, 3}))) == doubles({1, 5, 0, 4, 2, 0}));
  tensor const x = of({1.0, 2.0, 3.0});
  CHECK(elements(vv::grad([](tensor const& v) {
          return vv::scatter_add(vv::sum(v), 0, vv::zeros({2}, dtype::int64), v);
        })(x)) == doubles({2, 2, 1}));
  auto const of_arrays = [](auto const& s) {
    return vv::sum(vv::scatter_add(s, vv::axis<0>, vv::array<std::int64_t, 2>{0, 2}, s * 2.0) * s);
  };
  constexpr vv::array<double, 3> y{1, 2, 3};
  auto const slope = vv::grad(of_arrays)(y);
  for (int k = 0; k < 3; ++k)
    CHECK(slope.data[k] == elements(vv::grad(of_arrays)(of({1.0, 2.0, 3.0})))[static_cast<std::size_t>(k)]);
  CHECK(slope.data[0] == 6); // y0^2 + 2 y0 y0 + y1^2 + y2^2 + 2 y1 y2
}

TEST_CASE("logsumexp of integers does not wrap around", "[op][softmax]") {
  constexpr auto of_bytes = vv::logsumexp(vv::array<std::uint8_t, 3>{1, 2, 3}, vv::axis<0>);
  STATIC_REQUIRE(std::is_same_v<decltype(of_bytes), float const>);
  STATIC_REQUIRE((of_bytes > 3.4f && of_bytes < 3.41f));
  tensor const x = of<std::uint8_t>({1, 2, 3});
  for (dtype type : {dtype::uint8, dtype::int32, dtype::int64}) {
    auto const f = [](tensor const& v) { return vv::logsumexp(v, vv::axis<0>); };
    CHECK(std::abs(f(vv::to(x, type)).item<double>() - 3.407605964) < 1e-6);
    CHECK(std::abs(vv::compile(f)(vv::to(x, type)).item<double>() - 3.407605964) < 1e-6);
  }
  CHECK(std::abs(vv::logsumexp(x > 1, vv::axis<0>).item<double>() - 1.862) < 1e-3);
  CHECK(std::abs(vv::logsumexp(of<std::int32_t>({2147483647, -5}), vv::axis<0>).item<double>() - 2147483648.0) < 1);
}

TEST_CASE("sizes and regions that overflow are refused", "[op][view]") {
  constexpr vv::index_t much = vv::index_t{1} << 62, half = vv::index_t{1} << 40;
  tensor const x = of({1.0, 2.0, 3.0});
  CHECK_THROWS_AS(vv::as_strided(x, dims{much}, dims{4}, dims{0}), vv::value_error);
  CHECK_THROWS_AS(vv::as_strided(x, dims{much, 4}, dims{0, 0}, dims{0}), vv::value_error);
  CHECK_THROWS_AS(vv::ops::call("as_strided", x, dims{much}, dims{4}, dims{0}), vv::value_error);
  CHECK_THROWS_WITH(vv::empty(dims{half, half}), ContainsText("the sizes are greater than any memory"));
  CHECK(vv::empty(dims{half, 0}).sizes() == dims{half, 0});
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

TEST_CASE("sum_to_size sums integers and truth values to int64, also where nothing is summed", "[op][sum]") {
  tensor const x = of({1.0, 2.0, 3.0}), truth = x > 1.5;
  for (tensor const& t : {truth, vv::to(x, dtype::int32), vv::to(x, dtype::uint8)}) {
    CHECK(vv::sum_to_size(t, dims{3}).dtype() == dtype::int64);
    CHECK(vv::sum_to_size(t, dims{1}).dtype() == dtype::int64);
  }
  CHECK(elements(vv::sum_to_size(truth, dims{3})) == doubles({0, 1, 1}));
  CHECK(vv::sum_to_size(x, dims{3}).is(x));
  STATIC_REQUIRE(
      std::is_same_v<decltype(vv::sum_to_size(vv::array<bool, 3>{}, vv::shape<3>)), vv::array<vv::index_t, 3>>);
}

TEST_CASE("out= of what reduces, contracts or gathers has the very dtype", "[op][out]") {
  tensor const x = of({1.0, 2.0, 3.0}), three = vv::zeros({3}, dtype::float32), one = vv::zeros({}, dtype::float32);
  auto const refused = ContainsText("cannot be written into float32");
  CHECK_THROWS_WITH(vv::out(three)(vv::gather, x, 0, vv::zeros({3}, dtype::int64)), refused);
  CHECK_THROWS_WITH(vv::out(one)(vv::mean, x), refused);
  CHECK_THROWS_WITH(vv::out(one)(vv::amax, x), refused);
  CHECK_THROWS_WITH(vv::out(vv::zeros({}, dtype::int32))(vv::argmax, x), ContainsText("argmax"));
  CHECK_THROWS_WITH(vv::out(three)(vv::softmax, x, vv::axis<0>), refused);
  CHECK_THROWS_WITH(
      vv::out(vv::zeros({1, 1}, dtype::float32))(vv::matmul, vv::reshape(x, dims{1, 3}), vv::reshape(x, dims{3, 1})),
      refused);
  CHECK(one.version() == 0);
  CHECK(three.version() == 0);
  CHECK(elements(vv::out(one)(vv::sum, x)) == doubles({6}));
  CHECK(elements(vv::out(three)(vv::add, x, x)) == doubles({2, 4, 6}));
  CHECK(vv::out(vv::zeros({}, dtype::float64))(vv::mean, x).item<double>() == 2);
}

TEST_CASE("slice takes a bound beyond any size for the end", "[op][slice]") {
  tensor const x = vector_of({1, 2, 3});
  CHECK(elements(vv::slice(x, 0, 1, index_t{1} << 62)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, 1, INT64_MAX)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, 1, std::uint64_t{1} << 62)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, -(index_t{1} << 62), 2)) == doubles({1, 2}));
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
