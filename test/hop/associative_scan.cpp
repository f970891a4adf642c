// SPDX-License-Identifier: BSL-1.0
#include "../sample/loop.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using vv::array;
constexpr auto generic = vv::combine_mode::generic;
constexpr auto plus = [](auto const& a, auto const& b) { return a + b; };
constexpr auto times = [](auto const& a, auto const& b) { return a * b; };
/// A linear recurrence y = a y + b as a scan of affine maps.
constexpr auto recurrence = [](auto a, auto b) {
  return vv::associative_scan(
             [](auto const& f, auto const& g) { return std::pair{g.first * f.first, g.first * f.second + g.second}; },
             std::pair{a, b})
      .second;
};
/// What it stands for: one row after the other, of dimension 0.
template <class F>
tensor one_by_one(F const& f, tensor const& x, bool reverse) {
  int const n = static_cast<int>(x.sizes()[0]);
  std::vector<tensor> all(static_cast<std::size_t>(n), at(x, reverse ? n - 1 : 0));
  for (int k = 1; k < n; ++k) {
    int const here = reverse ? n - 1 - k : k, last = reverse ? here + 1 : here - 1;
    all[static_cast<std::size_t>(here)] = f(all[static_cast<std::size_t>(last)], at(x, here));
  }
  return vv::stack(all, 0);
}
/// Its derivative is not that of its text.
struct tripled : vv::function<tripled> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return vv::mul(x, 1.0); }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, auto g) { return vv::mul(g, 3.0); }
};
constexpr array<double, 6> decay{0.5, -1, 0.25, 2, -0.75, 0.3}, input{1, 2, -1, 0.5, 3, 1};
} // namespace

TEST_CASE("associative_scan: of any length, from either end, as one by one", "[hop][associative_scan]") {
  auto const product = [](tensor const& a, tensor const& b) { return tensor(vv::matmul(a, b)); };
  for (int n = 1; n <= 9; ++n) {
    tensor const x = vv::to(vv::sin(vv::to(vv::arange(n * 4), vv::dtype::float64)), vv::dtype::float64),
                 m = vv::reshape(x, vv::dims{n, 2, 2});
    CHECK(agree(vv::associative_scan(plus, m), one_by_one(plus, m, false)));
    CHECK(agree(vv::associative_scan<0, true>(plus, m), one_by_one(plus, m, true)));
    CHECK(agree(vv::associative_scan<0, false, generic>(product, m), one_by_one(product, m, false)));
    CHECK(agree(vv::associative_scan<0, true, generic>(product, m), one_by_one(product, m, true)));
  }
  tensor const y = vv::reshape(vv::arange(12), vv::dims{2, 3, 2});
  CHECK(
      agree(vv::associative_scan<1>(times, y), vv::transpose(one_by_one(times, vv::transpose(y, 0, 1), false), 0, 1)));
  CHECK(agree(vv::associative_scan<-1, true>(plus, y),
              vv::permute(one_by_one(plus, vv::permute(y, vv::dims{2, 0, 1}), true), vv::dims{1, 2, 0})));
  tensor const one = vv::ones({1, 2});
  CHECK_FALSE(vv::associative_scan(plus, one).shares_storage(one));
}

TEST_CASE("associative_scan: derivatives, mapped, traced and fused, in both worlds", "[hop][associative_scan][fuse]") {
  constexpr auto loss = [](auto a, auto b) {
    auto y = recurrence(a, b);
    return vv::sum(y * y);
  };
  constexpr auto by_scan = [](auto a, auto b) {
    auto y = vv::scan(
                 [](auto c, auto x) {
                   auto n = x.first * c + x.second;
                   return std::pair{n, n};
                 },
                 0.0, std::pair{a, b})
                 .second;
    return vv::sum(y * y);
  };
  tensor const a = boxed(decay), b = boxed(input);
  auto const expected = vv::grad<0, 1>(by_scan)(decay, input);
  CHECK(loss(decay, input) == Approx(by_scan(decay, input)));
  CHECK(loss(a, b).item<double>() == Approx(by_scan(decay, input)));
  auto const [ga, gb] = vv::grad<0, 1>(loss)(a, b);
  CHECK(agree(ga, boxed(std::get<0>(expected))));
  CHECK(agree(gb, boxed(std::get<1>(expected))));
  auto const [fa, fb] = vv::fuse(vv::grad<0, 1>(loss))(decay, input);
  CHECK(agree(boxed(fa), ga));
  CHECK(agree(boxed(fb), gb));
  tensor const a2 = vv::stack(std::vector{a, a + 1.0}, 0);
  auto const mapped = vv::vmap(vv::grad(loss), vv::in_dims<0, vv::none>)(a2, b);
  for (int k = 0; k < 2; ++k) CHECK(agree(at(mapped, k), vv::grad(loss)(at(a2, k), b)));
  auto const g = vv::make_fx(loss)(a, b);
  CHECK(vv::verify(g));
  CHECK(agree(vv::interpret(g, vv::boxed_args(b, a))[0], loss(b, a)));
  tensor const leaf = boxed(decay);
  leaf.requires_grad_();
  loss(leaf, b).backward();
  CHECK(agree(leaf.grad(), ga));
}

TEST_CASE("associative_scan: what is wrong is said", "[hop][associative_scan][exception][LP-S16]") {
  tensor const x = vv::ones({4, 2, 2}), captured = vv::ones({2, 2});
  CHECK_THROWS_WITH(vv::associative_scan([](tensor const& a, tensor const& b) { return tensor(vv::matmul(a, b)); }, x),
                    ContainsText("the function is not pointwise, it calls mm"));
  CHECK_THROWS_AS((vv::associative_scan<0, false, generic>(
                      [](tensor const& a, tensor const& b) { return tensor(vv::sum(a + b)); }, x)),
                  vv::shape_error);
  CHECK_THROWS_AS(vv::associative_scan(
                      [](tensor const& a, tensor const& b) { return tensor(vv::to(a + b, vv::dtype::float64)); }, x),
                  vv::dtype_error);
  CHECK_THROWS_WITH(vv::associative_scan(plus, vv::zeros({0, 2})),
                    ContainsText("associative_scan") && ContainsText("the length is 0"));
  CHECK_THROWS_AS(vv::associative_scan([](auto const& a, auto const&) { return a; }, std::pair{x, vv::ones({3})}),
                  vv::shape_error);
  CHECK_THROWS_AS(vv::associative_scan(plus, vv::full({}, 1.0)), vv::value_error);
  CHECK(agree(vv::associative_scan([&](tensor const& a, tensor const& b) { return tensor(a + b * captured - b); }, x),
              vv::ones({4, 2, 2}))); // what it captures is no operator
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("associative_scan: functions in what combines are called by row, or refused", "[hop][associative_scan]") {
  tensor const x = vector_of({0.5, -1.25, 2}), seen = vector_of({7, 7});
  auto const custom = [](tensor const& a, tensor const& b) { return tripled::apply(a) * b; };
  auto const branches = [](tensor const& a, tensor const& b) {
    auto const product = [](tensor const& u, tensor const& v) { return u * v; };
    return vv::cond(vv::sum(a) > 0.0, product, product, a, b);
  };
  auto const recomputed = [](tensor const& a, tensor const& b) {
    return vv::checkpoint([](tensor const& u, tensor const& v) { return u * v; }, a, b);
  };
  auto const writes = [&](tensor const& a, tensor const& b) { return vv::add_(seen, 1.0), a * b; };
  auto const all = [](auto const& f) {
    return [f](tensor const& v) { return vv::associative_scan<0, false, generic>(f, v); };
  };
  CHECK(elements(all(custom)(x)) == doubles({0.5, -0.625, -1.25}));
  CHECK(elements(all(branches)(x)) == doubles({0.5, -0.625, -1.25}));
  CHECK(elements(all(recomputed)(x)) == doubles({0.5, -0.625, -1.25}));
  // x0 + x0 x1 + x0 x1 x2, of which each call triples the derivative by what is before
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(all(custom)(v)); })(x)) ==
        doubles({1 + 3 * -1.25 + 9 * -2.5, 0.5 + 3 * 0.5 * 2, -0.625}));
  auto const reason = ContainsText("the function is not pointwise");
  CHECK_THROWS_WITH(vv::associative_scan(custom, x), reason);
  CHECK_THROWS_WITH(vv::associative_scan(branches, x), reason);
  CHECK_THROWS_WITH(vv::associative_scan(recomputed, x), reason);
  CHECK_THROWS_WITH(vv::compile([&](tensor const& v) { return vv::associative_scan(custom, v); })(x), reason);
  CHECK_THROWS_WITH(vv::associative_scan(writes, x), reason);
  CHECK(elements(seen) == doubles({7, 7}));
}

TEST_CASE("associative_scan: sums and products along every dimension", "[hop][associative_scan][LP-S14]") {
  auto const plus = [](tensor const& a, tensor const& b) { return tensor(a + b); };
  auto const times = [](tensor const& a, tensor const& b) { return tensor(a * b); };
  tensor const one_to_four = counted({4}) + 1.0;
  CHECK(elements(vv::associative_scan(plus, one_to_four)) == std::vector<double>{1, 3, 6, 10});
  CHECK(elements(vv::associative_scan<0, true>(plus, one_to_four)) == std::vector<double>{10, 9, 7, 4});
  tensor const x = counted({2, 3, 2}) * 0.1 + 0.5;
  auto const check = [&](auto axis, auto backwards, auto const& f) {
    constexpr int d = decltype(axis)::value;
    tensor const y = vv::associative_scan<d, decltype(backwards)::value>(f, x);
    int const n = static_cast<int>(index_t(x.sizes()[d]));
    tensor sum;
    for (int k = 0; k < n; ++k) {
      int const here = backwards ? n - 1 - k : k;
      tensor const row = vv::select(x, d, here);
      sum = k ? f(sum, row) : row;
      CHECK(same(vv::select(y, d, here), sum));
    }
  };
  auto const both = [&](auto axis) {
    check(axis, std::false_type{}, plus), check(axis, std::true_type{}, plus);
    check(axis, std::false_type{}, times), check(axis, std::true_type{}, times);
  };
  both(std::integral_constant<int, 0>{}), both(std::integral_constant<int, 1>{}),
      both(std::integral_constant<int, 2>{});
}
