// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"
#include "varve_test.hpp"

#include <varve/varve.hpp>

#include <array>
#include <list>
#include <span>
#include <sstream>

namespace vv = varve;
using vv::array;
using vv::dims;
using vv::tensor;

namespace {
using numbers = std::vector<double>;
numbers elements(tensor const& t) { return t.to_vector(); }
template <class T, vv::index_t... D>
numbers elements(array<T, D...> const& a) {
  return numbers(a.begin(), a.end());
}
tensor cube() { return vv::reshape(vv::arange(24, vv::dtype::float64), dims{2, 3, 4}); }
} // namespace

TEST_CASE("tensors are made of vectors, spans, ranges, braces and arrays, and keep the type of numbers", "[value]") {
  std::vector<double> const v{0.1, 2, 3};
  tensor const a(v);
  CHECK(a.dtype() == vv::dtype::float64);
  CHECK(elements(a) == v);
  CHECK(elements(tensor(std::span<double const>(v))) == v);
  CHECK(tensor(std::array<float, 2>{1, 2}).dtype() == vv::dtype::float32);
  CHECK(elements(tensor(std::list<int>{3, 1})) == numbers{3, 1});
  CHECK(tensor(std::list<int>{3, 1}).dtype() == vv::dtype::int32);
  CHECK(tensor(std::vector<std::size_t>{3}).dtype() == vv::dtype::int64);
  CHECK(tensor(std::vector<bool>{true, false, true}).dtype() == vv::dtype::bool_);
  tensor const rows(std::vector<std::vector<double>>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(rows.sizes() == dims{3, 2});
  CHECK(elements(rows) == numbers{1, 2, 3, 4, 5, 6});
  CHECK(tensor(std::vector<double>{}).sizes() == dims{0});
  CHECK_THROWS_WITH(tensor(std::vector<std::vector<double>>{{1, 2}, {3}}), ContainsText("rows are not of one length"));
  CHECK(tensor({{1, 2}, {3, 4}}).sizes() == dims{2, 2});
  CHECK(tensor({{{1.0}, {2.0}}, {{3.0}, {4.0}}}).sizes() == dims{2, 2, 1});
  tensor const mixed = {0.5, -1, 2};
  CHECK(mixed.dtype() == vv::dtype::float64);
  CHECK(elements(mixed) == numbers{0.5, -1, 2});
  CHECK(elements(tensor({0.5, -1, 2})) == numbers{0.5, -1, 2});
  CHECK(elements(tensor({{0.5, 1}, {2, 3.5}})) == numbers{0.5, 1, 2, 3.5});
  CHECK(tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}.sizes() == dims{2, 2});
  CHECK(tensor{1L, 2}.dtype() == vv::dtype::int64);
  tensor const of_array(array<float, 2, 2>{1, 2, 3, 4});
  CHECK(of_array.dtype() == vv::dtype::float32);
  CHECK(vv::equal(of_array.to_array<float, 2, 2>(), array<float, 2, 2>{1, 2, 3, 4}));
  CHECK_THROWS_AS((of_array.to_array<float, 4>()), vv::shape_error);
  CHECK_THROWS_AS((of_array.to_array<double, 2, 2>()), vv::dtype_error);
  CHECK(of_array.t().to_vector<int>() == std::vector<int>{1, 3, 2, 4});
  CHECK(vv::sum(of_array).item() == 10);
  CHECK(vv::item(2.5) == 2.5);
}

TEST_CASE("members of tensors are the operators", "[value]") {
  tensor const x = cube();
  CHECK(x.sum().item() == 276);
  CHECK(elements(x.sum(0).sum({0, 1})) == numbers{276});
  CHECK(x.sum(2, true).sizes() == dims{2, 3, 1});
  CHECK(x.mean().item() == 11.5);
  CHECK(x.reshape({6, -1}).sizes() == dims{6, 4});
  CHECK(x.reshape(4, 6).sizes() == dims{4, 6});
  CHECK(x.view(-1).shares_storage(x));
  CHECK(x.stride(-2) == 4);
  CHECK(x.is_floating_point());
  CHECK_FALSE(vv::ones({2}, vv::dtype::int32).is_floating_point());
  CHECK(vv::allclose(x.norm(), vv::sqrt((x * x).sum())));
  CHECK(vv::equal(x.maximum(10.0), vv::maximum(x, 10.0)));
  CHECK(vv::equal(x.minimum(10.0), vv::minimum(x, 10.0)));
  CHECK(vv::equal(x.gather(2, vv::zeros({2, 3, 1}, vv::dtype::int64)), x.narrow(2, 0, 1)));
  CHECK(vv::equal(x[0].tril() + x[0].triu(1), x[0]));
  CHECK(elements(x[0].diagonal()) == numbers{0, 5, 10});
  CHECK(vv::equal(x[0][0].outer(x[0][1]), x[0][0].unsqueeze(1) * x[0][1]));
  CHECK_FALSE(x.isnan().any());
  CHECK_THROWS_WITH(x.transpose(0, 1).view(-1), ContainsText("use reshape"));
  CHECK(x.permute({2, 0, 1}).sizes() == dims{4, 2, 3});
  CHECK(x.permute(2, 0, 1).size(0) == 4);
  CHECK(x.size() == x.sizes());
  CHECK(x.rank() == 3);
  CHECK(vv::rank(x) == 3);
  CHECK(vv::numel(x) == 24);
  CHECK(vv::numel(array<float, 2, 2>{}) == 4);
  CHECK(vv::rank(3.0) == 0);
  CHECK(x.to(vv::dtype::float32).dtype() == vv::dtype::float32);
  CHECK((x.max)().item() == 23);
  CHECK((x.min)().item() == 0);
  CHECK_FALSE(x.clone().shares_storage(x));
  CHECK_THROWS_WITH(x.t(), ContainsText("transpose(0, 1)"));
  tensor const y = x.clone();
  y.add_(1).mul_(2);
  CHECK(y.sum().item() == 2 * (276 + 24));
  CHECK(y.zero_().any().item<bool>() == false);
}

TEST_CASE("at: numbers, slices, none, ellipsis as in Python", "[value][at]") {
  tensor const x = cube();
  CHECK(elements(x[1][2]) == numbers{20, 21, 22, 23});
  CHECK(x[-1][-1][-1].item() == 23);
  CHECK(x.at(1, 2, 3).item() == 23);
  CHECK(elements(x.at(0, vv::slice(1, 3), 0)) == numbers{4, 8});
  CHECK(elements(x.at(vv::ellipsis, 1)) == numbers{1, 5, 9, 13, 17, 21});
  CHECK(x.at(vv::none, vv::ellipsis, vv::none).sizes() == dims{1, 2, 3, 4, 1});
  CHECK(x.at(vv::slice(vv::none, vv::none), vv::none, 1).sizes() == dims{2, 1, 4});
  CHECK(elements(x.at(1, vv::ellipsis, vv::slice(vv::none, vv::none, 3))) == numbers{12, 15, 16, 19, 20, 23});
  CHECK(elements(x.at(1, -1, vv::slice(-2, vv::none))) == numbers{22, 23});
  CHECK(x.at(1).shares_storage(x));
  CHECK(elements(x.at(1, vv::slice(), 0)) == numbers{12, 16, 20}); // `:`
  CHECK(x.at(vv::slice(), vv::none, vv::slice(1, 2)).sizes() == dims{2, 1, 1, 4});
  CHECK(x.at(vv::slice()).shares_storage(x));
  CHECK_THROWS_AS(x[2], vv::index_error);
  CHECK_THROWS_AS(x.at(0, 0, 0, 0), vv::index_error);
  CHECK_THROWS_WITH(x.at(0, 0, 0, 0), ContainsText("more indices than axes"));
  CHECK_THROWS_WITH(x[0][0][0][0], ContainsText("more indices than axes"));
}

TEST_CASE("cat and stack of braces are those of tuples in transforms and traces", "[value]") {
  tensor const a = {1.0, 2.0};
  auto const f = [](auto const& x) { return vv::stack({x, x * x}, vv::axis<1>); };
  CHECK(elements(vv::vmap(f)(vv::stack({a, a * 2.0}))) == numbers{1, 1, 2, 4, 2, 4, 4, 16});
  CHECK(elements(vv::grad([](auto const& x) { return vv::sum(vv::cat({x, x * x})); })(a)) == numbers{3, 5});
  CHECK(vv::trace(f, vv::spec<double, 2>).count(vv::cat) == 1);
}

TEST_CASE("reshape, permute and expand take sizes and axes in braces", "[value]") {
  tensor const x = vv::reshape(vv::arange(6), {2, -1});
  CHECK(x.sizes() == dims{2, 3});
  CHECK(vv::permute(x, {1, 0}).sizes() == dims{3, 2});
  CHECK(vv::expand(x, {4, 2, 3}).sizes() == dims{4, 2, 3});
  CHECK(vv::layer_norm(vv::to(x, vv::dtype::float64), {3}).sizes() == dims{2, 3});
  CHECK(vv::equal(vv::flip(x, {0, 1}), vv::flip(x, dims{0, 1})));
  CHECK(vv::equal(vv::roll(x, {1}, {0}), vv::roll(x, dims{1}, dims{0})));
  CHECK(vv::equal(vv::repeat(x, {2, 1}), vv::cat({x, x})));
  CHECK(vv::equal(vv::movedim(x, {0}, {1}), x.t()));
  CHECK(vv::unflatten(x, 1, {3, 1}).sizes() == dims{2, 3, 1});
  CHECK(vv::equal(vv::tensordot(x, x, {1}, {1}), vv::matmul(x, x.t())));
  CHECK(vv::pad(x, {1, 2}).sizes() == dims{2, 6});
  tensor const image = vv::ones({1, 2, 4, 4}), taps = vv::ones({3, 2, 3, 3});
  CHECK(vv::conv2d(image, taps, vv::none, {2, 1}).sizes() == dims{1, 3, 1, 2});
  CHECK(vv::conv2d(image, taps, vv::none, {2, 1}, {1, 0}).sizes() == dims{1, 3, 2, 2});
  CHECK(elements(vv::sum(x, {0, 1})) == numbers{15});
  CHECK(vv::amax(x, {0, 1}, true).sizes() == dims{1, 1});
  CHECK(elements(vv::mean(vv::to(x, vv::dtype::float64), {0, 1})) == numbers{2.5});
  auto const sums = [](auto const& v) { return vv::sum(vv::reshape(v, {3, 1}), vv::axis<1>); };
  CHECK(elements(vv::vmap(sums)(x)) == numbers{0, 1, 2, 3, 4, 5});
}

TEST_CASE("at: tensors of integers and truth values", "[value][at]") {
  tensor const x = cube();
  tensor const i = {1, 0, -1};
  CHECK(x.at(i).sizes() == dims{3, 3, 4});
  CHECK(elements(x.at(i, 0, 0)) == numbers{12, 0, 12});
  CHECK(elements(x.at(0, vv::ellipsis, i)) == numbers{1, 0, 3, 5, 4, 7, 9, 8, 11});
  // neighbours stay where they are; what is apart goes to the front
  tensor const two = {0, 1};
  CHECK(x.at(vv::slice(0, 2), two, two).sizes() == dims{2, 2});
  CHECK(elements(x.at(vv::slice(0, 2), two, two)) == numbers{0, 5, 12, 17});
  CHECK(x.at(two, vv::slice(0, 3), two).sizes() == dims{2, 3});
  CHECK(elements(x.at(two, vv::slice(0, 3), two)) == numbers{0, 4, 8, 13, 17, 21});
  CHECK(x.at(tensor({{0}, {1}}), two).sizes() == dims{2, 2, 4});
  CHECK(elements(x.at(tensor({{0}, {1}}), two, 0)) == numbers{0, 4, 12, 16});
  CHECK(elements(x.at(x > 21)) == numbers{22, 23});
  CHECK(x.at(tensor({true, false})).sizes() == dims{1, 3, 4});
  CHECK(x.at(0, tensor({true, false, true})).sizes() == dims{2, 4});
  tensor const m({{true, false, false}, {false, false, true}});
  CHECK(elements(x.at(m)) == numbers{0, 1, 2, 3, 20, 21, 22, 23});
  CHECK_THROWS_AS(x.at(tensor({5, 0})), vv::index_error);
  CHECK_THROWS_AS(x.at(vv::slice(0, 2), tensor({3, 0}), two), vv::index_error);
  CHECK_THROWS_AS(x.at(tensor({0.5, 1.0})), vv::dtype_error);
  CHECK_THROWS_AS(x.at(tensor({true, false, true})), vv::index_error);
  CHECK_THROWS_AS(x.at(vv::slice(0, 1), m), vv::value_error);
  tensor const copy = x.at(i);
  CHECK_FALSE(copy.shares_storage(x));
  CHECK(x.at(i).sum().item() == vv::sum(x.at(i)).item());
  CHECK((x.at(i) * 2.0).sizes() == dims{3, 3, 4});
}

TEST_CASE("at: what is assigned to a part is written", "[value][at]") {
  tensor const x = cube();
  x[0] = 1.0;
  x.at(1, vv::ellipsis, vv::slice(0, 2)) = tensor({-1.0, -2.0});
  CHECK(elements(x[0]) == numbers(12, 1.0));
  CHECK(elements(x[1]) == numbers{-1, -2, 14, 15, -1, -2, 18, 19, -1, -2, 22, 23});
  x[0][0] += tensor({1.0, 2.0, 3.0, 4.0});
  x[0][1] *= 3;
  CHECK(elements(x[0]) == numbers{2, 3, 4, 5, 3, 3, 3, 3, 1, 1, 1, 1});
  x.at(x < 0) = 0;
  CHECK(x.min().item() == 0);
  x.at(tensor({1, 0}), 0) = tensor({{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}});
  CHECK(elements(x[1][0]) == numbers{1, 2, 3, 4});
  CHECK(elements(x[0][0]) == numbers{5, 6, 7, 8});
  x.at(tensor({0, 1}), vv::slice(0, 3), tensor({3, 2})) = 9.0;
  CHECK(elements(x.at(vv::ellipsis, 2)) == numbers{7, 3, 1, 9, 9, 9});
  CHECK(elements(x.at(vv::ellipsis, 3)) == numbers{9, 9, 9, 4, 19, 23});
  x.at(tensor({0}), 0, 0) += 1.0;
  CHECK(x[0][0][0].item() == 6);
  x.at(x == 9.0) = tensor({1., 2., 3., 4., 5., 6.});
  CHECK(elements(x.at(vv::ellipsis, 3)) == numbers{1, 2, 3, 4, 19, 23});
  CHECK_THROWS_AS((x[0] = tensor({1.0, 2.0, 3.0})), vv::shape_error);
  tensor y = x[0]; // a name is bound anew
  y = tensor({1.0, 1.0});
  CHECK(x[0].sizes() == dims{3, 4});
}

TEST_CASE("at: gradients pass, of reads and of writes", "[value][at]") {
  tensor const w = tensor({1.0, 2.0, 3.0}).requires_grad_();
  tensor const y = w * 2.0;
  y[0] = 5.0;
  y.at(tensor({2})) = w[0] * w[1];
  vv::sum(y * y).backward();
  CHECK(elements(w.grad()) == numbers{2 * 2 * 2, 2 * 4 * 2 + 2 * 2 * 1, 0});
  auto const f = [](auto x) { return x[0] * x[1] + vv::sum(x.at(tensor({2, 2}))); };
  CHECK(elements(vv::grad(f)(tensor({2.0, 3.0, 4.0}))) == numbers{3, 2, 2});
  auto const g = [](auto x) { return vv::sum(x[0] * x[vv::index<1>]); };
  CHECK(elements(vv::vmap(g)(cube())) ==
        numbers{0 * 4 + 1 * 5 + 2 * 6 + 3 * 7.0, 12 * 16 + 13 * 17 + 14 * 18 + 15 * 19});
}

TEST_CASE("at: static and traced values, in the text that tensors have", "[value][at]") {
  constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
  STATIC_REQUIRE(vv::equal(a[1], array<double, 3>{4, 5, 6}));
  STATIC_REQUIRE(vv::equal(a[vv::index<-1>], array<double, 3>{4, 5, 6}));
  STATIC_REQUIRE(vv::equal(a.at(vv::range<0, 1>, vv::none, vv::range<1, 3>), array<double, 1, 1, 2>{2, 3}));
  STATIC_REQUIRE(vv::equal(a.at(vv::ellipsis, array<std::int64_t, 2>{2, 0}), array<double, 2, 2>{3, 1, 6, 4}));
  STATIC_REQUIRE(vv::equal(a.at(vv::slice(), vv::index<1>), array<double, 2>{2, 5}));
  auto const column = [](auto m) { return vv::sum(m.at(vv::slice(), vv::index<1>) * m.at(vv::slice(), vv::index<2>)); };
  CHECK(elements(vv::grad(column)(a)) == numbers{0, 3, 2, 0, 6, 5});
  CHECK(elements(vv::fuse(vv::grad(column))(a)) == numbers{0, 3, 2, 0, 6, 5});
  CHECK(elements(vv::grad(column)(tensor(a))) == numbers{0, 3, 2, 0, 6, 5});
  auto const f = [](auto m) { return vv::sum(m[0] * m[1]) + m[1][2] * m.at(0, vv::index<1>); };
  numbers const want{4, 11, 6, 1, 2, 5};
  CHECK(elements(vv::grad(f)(a)) == want);
  CHECK(elements(vv::grad(f)(tensor(a))) == want);
  CHECK(elements(vv::fuse(vv::grad(f))(a)) == want);
  auto const written = [](auto m) {
    auto const y = m * 1.0;
    auto z = y;
    z[0] = 3.0;
    return z;
  };
  CHECK(elements(vv::fuse(written)(a)) == numbers{3, 3, 3, 4, 5, 6});
  auto const loop = [](auto x) {
    auto s = 0 * x[0];
    for (int k = 0; k < 3; ++k) s += x[k] * x[k];
    return s;
  };
  CHECK(elements(vv::grad(loop)(array<double, 3>{1, 2, 3})) == numbers{2, 4, 6});
  CHECK_THROWS_AS(vv::grad(loop)(array<double, 2>{1, 2}), vv::index_error);
  auto const traced = vv::make_fx([](tensor const& x) { return x[0] * x.at(1, vv::slice(0, 2)).sum(); })(tensor(a));
  CHECK(elements(vv::interpret(traced, vv::boxed_args{tensor(a)})[0]) == numbers{9, 18, 27});
}

TEST_CASE("arrays, shapes and dtypes print", "[value][print]") {
  std::ostringstream out;
  out << array<double, 2, 2>{1, 2, 3, 4} << dims{2, 3} << vv::shape<4> << vv::dtype::int32;
  CHECK(out.str() == "array([[1, 2],\n       [3, 4]], dtype=float64)[2, 3][4]int32");
  std::string text;
  auto const f = [&](auto x) { return text = vv::to_string(x), x * x; };
  CHECK(vv::grad(f)(2.0) == 4);
  CHECK(text == "grad(level=1, value=2)");
}

TEST_CASE("a part by indices is the result of a function", "[value][indexing]") {
  tensor const m = vv::reshape(vv::arange(6, vv::dtype::float64), vv::dims{2, 3}),
               at = vv::to(tensor({2.0, 0.0}), vv::dtype::int64);
  auto const f = [](tensor const& a, tensor const& i) { return a.at(vv::ellipsis, i); };
  std::vector<double> const right{2, 0, 5, 3};
  CHECK(sample::elements(vv::interpret(vv::make_fx(f)(m, at), vv::boxed_args(m, at))[0]) == right);
  CHECK(sample::elements(vv::compile(f)(m, at)) == right);
  CHECK(sample::elements(vv::vmap([&](tensor const& row) { return f(row, at); })(m)) == right);
  auto const total = [&](tensor const& a) { return vv::sum(f(a, at)); };
  CHECK(sample::elements(vv::grad(total)(m)) == std::vector<double>{1, 0, 1, 1, 0, 1});
  auto const writes = [](tensor const& a, tensor const& i) {
    tensor const y = a * 1.0;
    return y.at(i) = 7.0, y;
  };
  CHECK_THROWS_WITH(vv::functionalize(writes)(m, at - 1), Catch::Contains("use where, scatter, or index_put"));
}
