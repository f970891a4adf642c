// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/by_name/all.hpp>
#include <varve/nn/dropout.hpp>
#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::argument;
using vv::ops;

TEST_CASE("call: random numbers are those of the functions", "[call][random]") {
  tensor const p = vv::full({3, 4}, 0.5, dtype::float64);
  auto const same = [](char const* name, std::vector<argument> const& in, std::vector<vv::named_argument> const& named,
                       auto f) {
    INFO(name);
    vv::manual_seed(3);
    tensor const right = f();
    vv::manual_seed(3);
    auto const y = ops::call(name, std::span<argument const>(in), std::span<vv::named_argument const>(named));
    REQUIRE(y.size() == 1);
    CHECK(difference(y[0].as<tensor>(), right, 0) == "");
  };
  same("rand", {dims{2, 3}}, {}, [] { return vv::rand({2, 3}); });
  same("rand", {dims{2, 3}}, {{"dtype", dtype::float64}}, [] { return vv::rand({2, 3}, dtype::float64); });
  same("randint", {7, dims{5}}, {}, [] { return vv::randint(0, 7, {5}); });
  same("randint", {-2, 7, dims{5}}, {}, [] { return vv::randint(-2, 7, {5}); });
  same("randperm", {9}, {}, [] { return vv::randperm(9); });
  same("rand_like", {p}, {}, [&] { return vv::rand_like(p); });
  same("randn_like", {p}, {{"dtype", dtype::float32}}, [&] { return vv::randn({3, 4}); });
  same("randint_like", {p, 2, 5}, {}, [&] { return vv::randint_like(p, 2, 5); });
  same("bernoulli", {p}, {{"generator", vv::none}}, [&] { return vv::bernoulli(p); });
  same("bernoulli", {p, 0.25}, {}, [&] { return vv::bernoulli(p, 0.25); });
  same("normal", {p, p}, {}, [&] { return vv::normal(p, p); });
  same("normal", {p, 2.0}, {}, [&] { return vv::normal(p, 2.0); });
  same("normal", {1.0, 2.0, dims{4}}, {}, [&] { return vv::normal(1, 2, {4}); });
  same("poisson", {p}, {}, [&] { return vv::poisson(p); });
  same("multinomial", {p, 6}, {{"replacement", true}}, [&] { return vv::multinomial(p, 6, true); });
  same("nn.functional.dropout", {p, 0.25}, {}, [&] { return vv::dropout(p, 0.25); });
  same("nn.functional.dropout2d", {p}, {}, [&] { return vv::feature_dropout(p); });
  same("alpha_dropout", {p, 0.5, true}, {}, [&] { return vv::alpha_dropout(p); });
  for (char const* const name :
       {"uniform_", "normal_", "log_normal_", "bernoulli_", "exponential_", "cauchy_", "random_"}) {
    INFO(name);
    tensor const x = vv::zeros({100});
    CHECK(ops::call(name, {x})[0].as<tensor>().shares_storage(x));
    CHECK(vv::amax(vv::abs(x), vv::axis<0>).item<double>() > 0);
  }
  tensor const x = vv::zeros({100}, dtype::int64);
  (void)ops::call("random_", {x, 4});
  CHECK(vv::amax(x, vv::axis<0>).item<std::int64_t>() == 3);
  (void)ops::call("geometric_", {x, 0.5});
  CHECK(vv::amin(x, vv::axis<0>).item<std::int64_t>() == 1);
}
