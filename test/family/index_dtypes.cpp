// SPDX-License-Identifier: BSL-1.0
/// @file
/// Dtypes of indices: PyTorch's, and every other one is refused by the name of the operator. Random functions that draw
/// by another operator are named themselves.
#include <varve/composite/all.hpp>
#include <varve/indexing.hpp>
#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <string>
#include <varve_test.hpp>

namespace vv = varve;
using vv::dtype, vv::tensor;

namespace {
struct reader {
  std::string name;
  bool narrow; // takes int32
  std::function<tensor(dtype)> read;
};
tensor vector(dtype t) { return vv::to(tensor(vv::arange(2)), t); }
tensor matrix(dtype t) { return vv::to(tensor(vv::zeros({3, 4}, dtype::int64)), t); }
std::vector<reader> readers() {
  tensor const x = vv::randn({3, 4}), y = vv::randn({3, 4}), s = vv::randn({2, 4}), two = vv::randn({2});
  constexpr auto most = vv::index_reduction::amax;
  return {
      {"gather", false, [=](dtype t) -> tensor { return vv::gather(x, 0, matrix(t)); }},
      {"scatter_add", false, [=](dtype t) -> tensor { return vv::scatter_add(x, 0, matrix(t), y); }},
      {"scatter", false, [=](dtype t) -> tensor { return vv::scatter(x, 0, matrix(t), y); }},
      {"scatter", false, [=](dtype t) -> tensor { return vv::scatter_reduce(x, 0, matrix(t), y, most); }},
      {"index_select", true, [=](dtype t) -> tensor { return vv::index_select(x, 0, vector(t)); }},
      {"index_add", true, [=](dtype t) -> tensor { return vv::index_add(x, 0, vector(t), s); }},
      {"index_copy", false, [=](dtype t) -> tensor { return vv::index_copy(x, 0, vector(t), s); }},
      {"index_reduce", true, [=](dtype t) -> tensor { return vv::index_reduce(x, 0, vector(t), s, most); }},
      {"take", false, [=](dtype t) -> tensor { return vv::take(x, vector(t)); }},
      {"put", false, [=](dtype t) -> tensor { return vv::put(x, vector(t), two); }},
      {"take_along_dim", false, [=](dtype t) -> tensor { return vv::take_along_dim(x, matrix(t), 0); }},
      {"embedding", true, [=](dtype t) -> tensor { return vv::embedding(vector(t), x); }},
      {"nll_loss", false, [=](dtype t) -> tensor { return vv::nll_loss(s, vector(t)); }},
      {"one_hot", false, [=](dtype t) -> tensor { return vv::one_hot(vector(t), 4); }},
  };
}
std::string refusal(std::function<tensor(dtype)> const& f, dtype t) {
  try {
    f(t);
  } catch (vv::dtype_error const& e) { return e.what(); }
  return "";
}
} // namespace

TEST_CASE("indices: int64, of some operators int32, and no other dtype", "[family]") {
  for (reader const& r : readers())
    for (dtype const t : {dtype::bool_, dtype::uint8, dtype::int8, dtype::int16, dtype::int32, dtype::int64,
                          dtype::float16, dtype::float32}) {
      INFO(r.name << " by " << vv::name(t));
      std::string const said = refusal(r.read, t);
      if (t == dtype::int64 || (r.narrow && t == dtype::int32)) {
        CHECK(said == "");
        continue;
      }
      CHECK(said.find("varve: " + r.name) == 0);
      CHECK(said.find(vv::name(t)) != std::string::npos);
    }
}
TEST_CASE("indices: of compact values as well", "[family]") {
  for (dtype const of : {dtype::int8, dtype::int16, dtype::float16, dtype::bfloat16}) {
    tensor const x = vv::to(tensor(vv::randn({3, 4})), of);
    CHECK_THROWS_AS(vv::gather(x, 0, matrix(of)), vv::dtype_error);
    CHECK_THROWS_AS(vv::gather(x, 0, matrix(dtype::int16)), vv::dtype_error);
    CHECK_THROWS_AS(vv::index_select(x, 0, vector(dtype::int8)), vv::dtype_error);
    CHECK(tensor(vv::index_select(x, 0, vector(dtype::int32))).dtype() == of);
  }
}
TEST_CASE("indices: at takes int64, int32 and masks of bool", "[family]") {
  tensor const x = vv::randn({2, 4});
  CHECK(x.at(vector(dtype::int64)).dim() == 2);
  CHECK(x.at(vector(dtype::int32)).dim() == 2);
  CHECK(x.at(vector(dtype::bool_)).sizes()[0] == 1);
  for (dtype const t : {dtype::uint8, dtype::int8, dtype::int16, dtype::float32})
    CHECK_THROWS_AS(x.at(vector(t)), vv::dtype_error);
}
TEST_CASE("vmap: refuses random functions by the name that was called", "[family]") {
  tensor const p = vv::mul(vv::ones({3, 4}), 0.5);
  auto const said = [&](auto const& f) -> std::string {
    try {
      vv::vmap(f)(p);
    } catch (vv::transform_error const& e) { return e.what(); }
    return "";
  };
  auto const names = [](std::string const& message, std::string const& name) {
    return message.find("varve: vmap: " + name + " is random") == 0;
  };
  CHECK(names(said([](auto const& v) { return vv::multinomial(v, 1, true); }), "multinomial"));
  CHECK(names(said([](auto const& v) { return vv::bernoulli(v); }), "bernoulli"));
  CHECK(names(said([](auto const& v) { return vv::poisson(v); }), "poisson"));
  CHECK(names(said([](auto const& v) { return vv::dropout(v); }), "dropout"));
  CHECK(names(said([](auto const& v) { return vv::gumbel_softmax(v); }), "gumbel_softmax"));
  CHECK(names(said([](auto const& v) { return vv::add(v, vv::randint(0, 5, {4})); }), "randint"));
  CHECK(names(said([](auto const& v) { return vv::add(v, vv::rand_like(v)); }), "rand"));
}
