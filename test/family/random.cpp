// SPDX-License-Identifier: BSL-1.0
// Random numbers: what is drawn by its moments and frequencies; seeds, generators, transforms and traces.
#include "../sample/value.hpp"

#include <varve/nn/dropout.hpp>
#include <varve/random.hpp>
#include <varve/sorting/sort.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// Mean and variance of many numbers.
std::pair<double, double> moments(tensor const& x) {
  tensor const d = vv::to(x, dtype::float64), mean = vv::mean(d);
  tensor const from_mean = d - mean;
  return {mean.item<double>(), vv::mean(tensor(from_mean * from_mean)).item<double>()};
}
/// ... are near (four standard errors of the mean; a tenth of the variance, or `loose`).
void check_moments(char const* what, tensor const& x, double mean, double variance, double loose = 0.1) {
  INFO(what);
  auto const [m, v] = moments(x);
  double const n = static_cast<double>(x.numel());
  CHECK(std::abs(m - mean) < 4 * std::sqrt(variance / n) + 1e-12);
  CHECK(std::abs(v - variance) <= loose * variance);
}
using draw = std::function<tensor(vv::generator_ref)>;
std::vector<std::pair<char const*, draw>> draws() {
  tensor const p = vv::full({2000}, 0.3), w = from({1, 0, 2, 5}, dims{4});
  auto const filled = [](auto f) {
    return [f](vv::generator_ref g) {
      tensor const x = vv::zeros({2000});
      f(x, g);
      return x;
    };
  };
  auto const by = [](vv::generator_ref g, auto f) { return g.other() ? f(*g.other()) : f(vv::default_generator); };
  return {
      {"rand", [=](auto g) { return by(g, [](vv::generator& o) -> tensor { return vv::rand({2000}, o); }); }},
      {"randn", [=](auto g) { return by(g, [](vv::generator& o) -> tensor { return vv::randn({2000}, o); }); }},
      {"randint",
       [=](auto g) { return by(g, [](vv::generator& o) -> tensor { return vv::randint(-3, 9, {2000}, o); }); }},
      {"randperm", [=](auto g) { return by(g, [](vv::generator& o) -> tensor { return vv::randperm(2000, o); }); }},
      {"rand_like", [=](auto g) { return vv::rand_like(p, g); }},
      {"randn_like", [=](auto g) { return vv::randn_like(p, g); }},
      {"randint_like", [=](auto g) { return vv::randint_like(p, 0, 9, g); }},
      {"bernoulli", [=](auto g) { return vv::bernoulli(p, g); }},
      {"bernoulli of a number", [=](auto g) { return vv::bernoulli(p, 0.25, g); }},
      {"normal", [=](auto g) { return vv::normal(p, p, g); }},
      {"normal of sizes", [=](auto g) { return vv::normal(1, 2, {2000}, g); }},
      {"poisson", [=](auto g) { return vv::poisson(vv::full({2000}, 40.0), g); }},
      {"multinomial", [=](auto g) { return vv::multinomial(w, 2000, true, g); }},
      {"multinomial without replacement", [=](auto g) { return vv::multinomial(p, 2000, false, g); }},
      {"dropout", [=](auto g) { return vv::dropout(p, 0.5, true, g); }},
      {"alpha_dropout", [=](auto g) { return vv::alpha_dropout(p, 0.5, true, g); }},
      {"gumbel_softmax", [=](auto g) { return vv::gumbel_softmax(p, 1, -1, g); }},
      {"uniform_", filled([](auto& x, auto g) { vv::uniform_(x, 2, 5, g); })},
      {"normal_", filled([](auto& x, auto g) { vv::normal_(x, 2, 5, g); })},
      {"log_normal_", filled([](auto& x, auto g) { vv::log_normal_(x, 0, 0.5, g); })},
      {"bernoulli_", filled([](auto& x, auto g) { vv::bernoulli_(x, 0.5, g); })},
      {"exponential_", filled([](auto& x, auto g) { vv::exponential_(x, 2, g); })},
      {"geometric_", filled([](auto& x, auto g) { vv::geometric_(x, 0.2, g); })},
      {"cauchy_", filled([](auto& x, auto g) { vv::cauchy_(x, 0, 1, g); })},
      {"random_", filled([](auto& x, auto g) { vv::random_(x, g); })},
  };
}
} // namespace

TEST_CASE("random: one seed gives the same numbers, by the thread's generator and by another", "[family][random]") {
  for (auto const& [name, f] : draws()) {
    INFO(name);
    vv::manual_seed(11);
    tensor const a = f({}), b = f({});
    vv::manual_seed(11);
    CHECK(difference(f({}), a, 0) == "");
    CHECK(difference(a, b, 0) != "");
    vv::generator g{11};
    vv::generator const thread = vv::default_generator;
    CHECK(difference(f(g), a, 0) == "");
    CHECK(difference(f(g), b, 0) == "");
    CHECK((vv::default_generator.seed == thread.seed && vv::default_generator.offset == thread.offset));
    CHECK(g.offset > 0);
    vv::generator other{12};
    CHECK(difference(f(other), a, 0) != "");
    // a generator that a refused call used is given back
    CHECK_THROWS(vv::multinomial(vv::full({2}, -1.0), 1, true, g));
    CHECK((vv::default_generator.seed == thread.seed && vv::default_generator.offset == thread.offset));
  }
}
TEST_CASE("random: static arrays have the numbers of tensors", "[family][random][static]") {
  constexpr auto drawn = [] {
    vv::generator g{5};
    auto const u = vv::rand<float, 3>(g);
    auto const i = vv::randint<std::int64_t, 4>(-2, 7, g);
    auto const p = vv::randperm<std::int32_t, 5>(g);
    return std::tuple(u, i, p, g);
  };
  constexpr auto at_compile_time = drawn();
  auto const [u, i, p, g] = at_compile_time;
  vv::generator t{5};
  CHECK(difference(vv::rand({3}, t), tensor(u), 0) == "");
  CHECK(difference(vv::randint(-2, 7, {4}, t), tensor(i), 0) == "");
  CHECK(difference(vv::randperm(5, t, dtype::int32), tensor(p), 0) == "");
  CHECK(t.offset == g.offset);
}
TEST_CASE("random: means and variances", "[family][random]") {
  constexpr vv::index_t n = 40000;
  vv::manual_seed(1);
  for (dtype const t : {dtype::float32, dtype::float64}) {
    check_moments("rand", vv::rand({n}, t), 0.5, 1 / 12.);
    tensor x = vv::zeros({n}, t);
    check_moments("uniform_", vv::uniform_(x, -2, 4), 1, 3);
    check_moments("normal_", vv::normal_(x, 3, 2), 3, 4);
    check_moments("exponential_", vv::exponential_(x, 4), 0.25, 1 / 16.);
    CHECK(vv::amin(x, vv::axis<0>).item<double>() > 0);
    check_moments("geometric_", vv::geometric_(x, 0.25), 4, 12);
    CHECK(vv::amin(x, vv::axis<0>).item<double>() == 1);
    check_moments("log_normal_", vv::log_normal_(x, 0.5, 0.5), std::exp(0.625), std::exp(1.25) * (std::exp(0.25) - 1));
    check_moments("bernoulli_", vv::bernoulli_(x, 0.2), 0.2, 0.16);
    vv::cauchy_(x, 1, 2); // has no moments: half of it lies within one width of the median
    tensor const near = vv::lt(vv::abs(x - 1.0), 2.0);
    check_moments("cauchy_", near, 0.5, 0.25);
    check_moments("bernoulli", vv::bernoulli(vv::full({n}, 0.7, t)), 0.7, 0.21);
    for (double const rate : {0.5, 3.0, 9.9, 10.1, 50.0, 4000.0})
      check_moments("poisson", vv::poisson(vv::full({n}, rate, t)), rate, rate);
    check_moments("normal", vv::normal(vv::full({n}, 2.0, t), vv::full({1}, 3.0, t)), 2, 9);
    check_moments("normal", vv::normal(2.0, vv::full({n}, 3.0, t)), 2, 9);
    check_moments("normal", vv::normal(vv::full({n}, 2.0, t), 3.0), 2, 9);
    check_moments("dropout", vv::dropout(vv::full({n}, 2.0, t), 0.2), 2, 4 / 0.8 - 4);
    check_moments("alpha_dropout", vv::alpha_dropout(vv::randn({n}, t), 0.3), 0, 1);
  }
  check_moments("randint", vv::randint(-5, 6, {n}), 0, 10);
  check_moments("randint", vv::randint(0, 2, {n}, dtype::bool_), 0.5, 0.25);
  check_moments("randint", vv::randint(0, 256, {n}, dtype::uint8), 127.5, (65536 - 1) / 12.);
  tensor all = vv::zeros({n}, dtype::int64);
  check_moments("random_", vv::div(vv::random_(all), 0x1p63), 0.5, 1 / 12.);
  check_moments("random_", vv::div(vv::random_(all, INT64_MIN, INT64_MAX), 0x1p63), 0, 1 / 3.);
  for (auto const& [type, most] : {std::pair{dtype::float16, 0x1p11}, std::pair{dtype::bfloat16, 0x1p8}}) {
    tensor const half = vv::to(vv::random_(vv::zeros({2000}, type)), dtype::float64);
    CHECK(vv::amax(half).item() <= most);
    CHECK(vv::amax(half).item() > most / 2);
    CHECK(vv::amin(half).item() >= 0);
  }
}
TEST_CASE("poisson: frequencies on both sides of the change of method", "[family][random]") {
  constexpr vv::index_t n = 100000;
  vv::manual_seed(4);
  for (double const rate : {2.5, 12.0}) {
    std::vector<double> const x = elements(vv::poisson(vv::full({n}, rate, dtype::float64)));
    std::vector<double> count(60, 0.0);
    for (double const v : x) {
      REQUIRE((v >= 0 && v < 60 && v == std::floor(v)));
      ++count[static_cast<std::size_t>(v)];
    }
    double p = std::exp(-rate), squares = 0;
    int cells = 0;
    for (int k = 0; k < 60; p *= rate / ++k)
      if (p * n >= 10) squares += std::pow(count[static_cast<std::size_t>(k)] - p * n, 2) / (p * n), ++cells;
    CHECK(squares < cells + 5 * std::sqrt(2. * cells));
  }
}
TEST_CASE("randperm: permutations, all equally often", "[family][random]") {
  vv::manual_seed(2);
  for (vv::index_t const n : {0, 1, 2, 7, 100, 1001}) {
    tensor const p = vv::randperm(n);
    CHECK(difference(vv::sort(p).first, vv::arange(n), 0) == "");
  }
  std::vector<int> count(6, 0);
  for (int k = 0; k < 6000; ++k) {
    std::vector<double> const p = elements(vv::randperm(3));
    ++count[static_cast<std::size_t>(2 * p[0] + (p[1] > p[2]))];
  }
  for (int const c : count) CHECK(std::abs(c - 1000) < 150);
  CHECK(vv::randperm(3, dtype::float32).dtype() == dtype::float32);
  CHECK_THROWS_AS(vv::randperm(300, dtype::uint8), vv::value_error);
  CHECK_THROWS_AS(vv::randperm(-1), vv::value_error);
}
TEST_CASE("multinomial: frequencies, order, and what is never drawn", "[family][random]") {
  vv::manual_seed(6);
  constexpr vv::index_t n = 20000;
  tensor const w = from({1, 0, 3, 4, 0, 2, 0, 0, 5, 0}, dims{2, 5}); // sums of 8 and 7
  tensor const again = vv::multinomial(w, n, true);
  CHECK(again.sizes() == dims{2, n});
  CHECK(again.dtype() == dtype::int64);
  for (int row = 0; row < 2; ++row)
    for (int k = 0; k < 5; ++k) {
      double const p = element(w, row * 5 + k) / (row == 0 ? 8 : 7);
      tensor const share = vv::mean(vv::to(vv::eq(vv::select(again, 0, row), k), dtype::float64));
      INFO(row << " " << k);
      if (p == 0) CHECK(share.item<double>() == 0);
      else CHECK(std::abs(share.item<double>() - p) < 4 * std::sqrt(p * (1 - p) / n));
    }
  // Without replacement: the first is drawn by the weights, the second by those that are left.
  tensor const many = vv::expand(from({1, 2, 0, 5}, dims{4}), dims{n, 4});
  std::vector<double> const pairs = elements(vv::multinomial(many, 2));
  double first_is_3 = 0, then_1 = 0;
  for (std::size_t k = 0; k < pairs.size(); k += 2) {
    REQUIRE((pairs[k] != pairs[k + 1] && pairs[k] != 2 && pairs[k + 1] != 2));
    first_is_3 += pairs[k] == 3;
    then_1 += pairs[k] == 3 && pairs[k + 1] == 1;
  }
  CHECK(first_is_3 / n == Approx(0.625).margin(0.015));
  CHECK(then_1 / n == Approx(0.625 * 2 / 3).margin(0.015));
  CHECK(vv::multinomial(from({1, 1, 0}, dims{3}), 2).sizes() == dims{2});
  CHECK_THROWS_AS(vv::multinomial(from({1, 1, 0}, dims{3}), 3), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({1, 1}, dims{2}), 3), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({0, 0}, dims{2}), 1, true), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({1, -1}, dims{2}), 1, true), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({1, std::nan("")}, dims{2}), 1, true), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({1, INFINITY}, dims{2}), 1), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(from({1, 1}, dims{2}), 0, true), vv::value_error);
  CHECK_THROWS_AS(vv::multinomial(vv::ones({2}, dtype::int64), 1), vv::dtype_error);
  CHECK_THROWS_AS(vv::multinomial(vv::ones({2, 2, 2}), 1), vv::value_error);
}
TEST_CASE("random: what is refused", "[family][random][error]") {
  tensor const x = vv::zeros({3}), whole = vv::zeros({3}, dtype::int64);
  CHECK_THROWS_AS(vv::rand({3}, dtype::int64), vv::dtype_error);
  CHECK_THROWS_AS(vv::rand({-1}), vv::error);
  CHECK_THROWS_AS(vv::randint(3, 3, {2}), vv::value_error);
  CHECK_THROWS_AS(vv::randint(0, 257, {2}, dtype::uint8), vv::value_error);
  CHECK_THROWS_AS(vv::randint(0, 3, {2}, dtype::bool_), vv::value_error);
  CHECK_NOTHROW(vv::randint(0, 256, {2}, dtype::uint8));
  CHECK_THROWS_AS(vv::bernoulli(vv::full({2}, 1.5)), vv::value_error);
  CHECK_THROWS_AS(vv::bernoulli(vv::full({2}, std::nan(""))), vv::value_error);
  CHECK_THROWS_AS(vv::bernoulli(whole), vv::dtype_error);
  CHECK_THROWS_AS(vv::bernoulli(x, -0.1), vv::value_error);
  CHECK_THROWS_AS(vv::normal(0, -1, {2}), vv::value_error);
  CHECK_THROWS_AS(vv::normal(0, vv::full({2}, -1.0)), vv::value_error);
  CHECK_THROWS_AS(vv::poisson(vv::full({2}, -1.0)), vv::value_error);
  CHECK_THROWS_AS(vv::dropout(x, 1.5), vv::value_error);
  CHECK_THROWS_AS(vv::dropout(whole, 0.5), vv::dtype_error);
  CHECK_THROWS_AS(vv::feature_dropout(x, 0.5), vv::value_error);
  CHECK_THROWS_AS(vv::uniform_(x, 2, 1), vv::value_error);
  CHECK_THROWS_AS(vv::uniform_(whole), vv::dtype_error);
  CHECK_THROWS_AS(vv::exponential_(x, 0), vv::value_error);
  CHECK_THROWS_AS(vv::geometric_(x, 1), vv::value_error);
  CHECK_THROWS_AS(vv::cauchy_(x, 0, 0), vv::value_error);
  CHECK(elements(x) == doubles({0, 0, 0}));
  tensor const leaf = vv::zeros({3}, dtype::float64);
  leaf.requires_grad_();
  CHECK_THROWS_AS(vv::uniform_(leaf), vv::autograd_error);
}
TEST_CASE("dropout: derivatives of what was kept, whole channels, and none at rest", "[family][random]") {
  vv::manual_seed(8);
  tensor const x = vv::randn({4, 6, 5}, dtype::float64), leaf = vv::clone(x);
  leaf.requires_grad_();
  tensor const y = vv::dropout(leaf, 0.4);
  vv::sum(y).backward();
  CHECK(difference(tensor(leaf.grad() * x), vv::detach(y)) == "");
  for (double const g : elements(leaf.grad())) CHECK((g == 0 || g == Approx(1 / 0.6)));
  vv::manual_seed(8);
  (void)vv::randn({4, 6, 5}, dtype::float64);
  CHECK(difference(vv::grad([](tensor const& v) { return vv::sum(vv::dropout(v, 0.4)); })(x), leaf.grad()) == "");
  CHECK(vv::dropout(x, 0.4, false).is(x));
  CHECK(elements(vv::dropout(x, 0)) == elements(x));
  for (double const v : elements(vv::dropout(x, 1))) CHECK(v == 0);
  tensor const by_channel = vv::div(vv::feature_dropout(x, 0.5), x);
  for (vv::index_t k = 0; k < 24; ++k)
    for (vv::index_t j = 1; j < 5; ++j) CHECK(element(by_channel, 5 * k + j) == Approx(element(by_channel, 5 * k)));
  for (double const v : elements(vv::sum(vv::gumbel_softmax(x), vv::axis<-1>))) CHECK(v == Approx(1));
}
TEST_CASE("random under vmap: an error, the same, or different numbers", "[family][random][vmap]") {
  tensor const x = vv::full({3, 40}, 0.5, dtype::float64);
  using function = tensor (*)(tensor const&);
  std::pair<char const*, function> const all[] = {
      {"rand", [](tensor const&) -> tensor { return vv::rand({40}, dtype::float64); }},
      {"randint", [](tensor const&) -> tensor { return vv::randint(0, 100, {40}); }},
      {"randperm", [](tensor const&) -> tensor { return vv::randperm(40); }},
      {"bernoulli", [](tensor const& v) { return vv::bernoulli(v); }},
      {"normal", [](tensor const& v) { return vv::normal(v, v); }},
      {"poisson", [](tensor const& v) { return vv::poisson(v); }},
      {"multinomial", [](tensor const& v) { return vv::multinomial(v, 40); }},
      {"multinomial again", [](tensor const& v) { return vv::multinomial(v, 60, true); }},
      {"dropout", [](tensor const& v) { return vv::dropout(v); }},
      {"uniform_",
       [](tensor const& v) {
         tensor const w = v * 1.0;
         vv::uniform_(w);
         return w;
       }},
  };
  for (auto const& [name, f] : all) {
    INFO(name);
    CHECK_THROWS_WITH(vv::vmap(f)(x), ContainsText("randomness"));
    vv::manual_seed(9);
    tensor const same = vv::vmap(f, vv::randomness::same)(x);
    vv::manual_seed(9);
    tensor const one = f(vv::select(x, 0, 0));
    for (vv::index_t k = 0; k < 3; ++k) CHECK(difference(vv::select(same, 0, k), one, 0) == "");
    vv::manual_seed(9);
    tensor const different = vv::vmap(f, vv::randomness::different)(x);
    REQUIRE(different.sizes() == same.sizes());
    CHECK(difference(vv::select(different, 0, 0), vv::select(different, 0, 1), 0) != "");
    CHECK(difference(vv::select(different, 0, 1), vv::select(different, 0, 2), 0) != "");
    vv::manual_seed(9);
    CHECK(difference(vv::vmap(f, vv::randomness::different)(x), different, 0) == "");
    vv::manual_seed(9);
    tensor const nested =
        vv::vmap(vv::vmap(f, vv::randomness::different), vv::randomness::different)(vv::reshape(x, dims{1, 3, 40}));
    CHECK(difference(vv::select(nested, 0, 0), different, 0) == "");
  }
  tensor const p = vv::vmap([](tensor const&) -> tensor { return vv::randperm(40); }, vv::randomness::different)(x);
  CHECK(difference(vv::sort(p).first, vv::expand(vv::arange(40), dims{3, 40}), 0) == "");
  // a generator of its own moves on once
  vv::generator g{1}, h{1};
  tensor const mine =
      vv::vmap([&](tensor const& v) { return v + vv::rand({40}, g, dtype::float64); }, vv::randomness::different)(x);
  CHECK(difference(mine, tensor(x + vv::rand({3, 40}, h, dtype::float64)), 0) == "");
  CHECK(g.offset == h.offset);
}
TEST_CASE("random, traced: the graph draws anew, from the thread's generator alone", "[family][random][trace]") {
  tensor const x = vv::full({50}, 0.5, dtype::float64);
  auto const f = [](tensor const& v) {
    tensor const kept = vv::dropout(v, 0.3) + vv::bernoulli(v);
    tensor const drawn = vv::to(vv::multinomial(v, 50), dtype::float64) + vv::to(vv::randperm(50), dtype::float64);
    tensor const w = v * 0.0;
    vv::exponential_(w);
    return kept + drawn + w + vv::poisson(v) + vv::normal(v, v);
  };
  vv::graph const g = vv::make_fx(f)(x);
  for (int k = 0; k < 2; ++k) {
    vv::manual_seed(static_cast<std::uint64_t>(k));
    tensor const right = f(x);
    vv::generator const after = vv::default_generator;
    vv::manual_seed(static_cast<std::uint64_t>(k));
    CHECK(difference(vv::interpret(g, vv::boxed_args(x))[0], right, 0) == "");
    CHECK(vv::default_generator.offset == after.offset);
    vv::manual_seed(static_cast<std::uint64_t>(k));
    CHECK(difference(vv::compile(f)(x), right) == "");
  }
  vv::generator own{4};
  auto const with_own = [&](tensor const& v) { return v + vv::rand({50}, own, dtype::float64); };
  CHECK_THROWS_WITH(vv::make_fx(with_own)(x), ContainsText("generator"));
  auto const in_a_loop = [&](tensor const& v) {
    return vv::scan(
               [&](tensor const& c, tensor const& r) { return std::pair(c + vv::rand({}, own, dtype::float64), r); },
               vv::full({}, 0.0, dtype::float64), v)
        .first;
  };
  CHECK_THROWS_WITH(vv::make_fx(in_a_loop)(x), ContainsText("generator"));
}
