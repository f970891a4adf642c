// SPDX-License-Identifier: BSL-1.0
// Lanes: axes, constants, writes and chunks.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
bool agree(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
} // namespace

TEST_CASE("vmap: axes that an argument or a result does not have", "[transform][vmap][TR-S06][TR-S09]") {
  tensor const scalar = counted({}), matrix = counted({2, 3});
  auto const same = [](auto const& v) { return v * 1.0; };
  CHECK_THROWS_AS(vv::vmap(same)(scalar), vv::index_error);
  CHECK_THROWS_WITH((vv::vmap(same, vv::in_dims<2>)(matrix)), ContainsText("2"));
  CHECK_THROWS_AS((vv::vmap(same, vv::in_dims<-3>)(matrix)), vv::index_error);
  CHECK(agree((vv::vmap(same, vv::in_dims<-2>)(matrix)), matrix));
  CHECK_THROWS_AS((vv::vmap(same, vv::out_dims<2>)(matrix)), vv::index_error);
  CHECK_THROWS_AS((vv::vmap(same, vv::out_dims<-3>)(matrix)), vv::index_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("vmap: of a constant", "[transform][vmap][TR-S12]") {
  tensor const x = counted({3}), pi = from({3.14}, {});
  CHECK(elements(vv::vmap([&](tensor const&) { return pi; })(x)) == std::vector<double>{3.14, 3.14, 3.14});
  auto const number = [](auto const& v) { return std::pair(3.14, v); };
  CHECK(elements(vv::vmap(number)(x).first) == std::vector<double>{3.14, 3.14, 3.14});
  static_assert(vv::vmap(number)(vv::array<double, 3>{}).first.data[2] == 3.14);
  CHECK(std::get<0>(vv::fuse(vv::vmap(number))(vv::array<double, 3>{})).data[2] == 3.14);
}

TEST_CASE("vmap: an in-place operator writes into the very argument", "[transform][vmap][in_place][TR-S13]") {
  auto const sine = [](tensor const& v) { return vv::sin_(v), v; };
  tensor const x = counted({3, 2}), expected = vv::sin(x), y = vv::vmap(sine)(x);
  CHECK(agree(x, expected));
  CHECK(agree(y, expected));
  CHECK(y.shares_storage(x));
  tensor const u = counted({3, 2}), v = vv::vmap(sine, vv::out_dims<1>)(u);
  CHECK(agree(v, vv::transpose(expected, 0, 1)));
  CHECK(v.shares_storage(u));
  tensor const w = counted({3, 2}), z = vv::vmap(vv::vmap(sine))(w);
  CHECK(agree(w, expected));
  CHECK(z.shares_storage(w));
}

TEST_CASE("vmap: a write of mapped values into what is not mapped is refused by name",
          "[transform][vmap][in_place][TR-S14]") {
  tensor const x = counted({3, 2}), y = counted({3, 2}) + 1.0, one = counted({2});
  tensor const product = x * y;
  vv::vmap([](tensor const& a, tensor const& b) { return vv::mul_(a, b), a; })(x, y);
  CHECK(agree(x, product));
  auto const into_less = [](tensor const& a, tensor const& b) { return vv::mul_(a, b), a; };
  CHECK_THROWS_WITH((vv::vmap(into_less, vv::in_dims<vv::none, 0>)(one, y)), ContainsText("mul_"));
  tensor const cube = counted({2, 3, 2});
  CHECK_THROWS_WITH((vv::vmap(vv::vmap(into_less, vv::in_dims<vv::none, 0>), vv::in_dims<0, 0>)(counted({2, 2}), cube)),
                    ContainsText("mul_"));
  CHECK(agree(one, counted({2})));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("vmap: in chunks of any size, along any axis", "[transform][vmap][TR-S17]") {
  tensor const x = counted({4, 5, 6}) / 50.0;
  auto const f = [](tensor const& v) { return vv::sin(v) + vv::randn(v.sizes(), dtype::float64); };
  auto const check = [&](auto in, auto out) {
    vv::manual_seed(3);
    tensor const whole = vv::vmap(f, in, out, vv::randomness::same)(x);
    for (index_t n : {1, 2, 3, 4, 7, 10, 16, 100}) {
      vv::manual_seed(3);
      CHECK(agree(vv::vmap(f, in, out, vv::chunk_size{n}, vv::randomness::same)(x), whole));
    }
  };
  check(vv::in_dims<0>, vv::out_dims<0>), check(vv::in_dims<0>, vv::out_dims<1>),
      check(vv::in_dims<1>, vv::out_dims<0>);
  check(vv::in_dims<1>, vv::out_dims<2>), check(vv::in_dims<2>, vv::out_dims<1>),
      check(vv::in_dims<2>, vv::out_dims<2>);
}

TEST_CASE("vmap of jvp: a copy into a view changes that part alone", "[transform][vmap][jvp][in_place][TR-S39]") {
  tensor const x = counted({2, 3, 4}), y = counted({2, 3, 2}) * 10.0, dx = x + 0.5, dy = y - 0.5;
  auto const f = [](tensor const& a, tensor const& b) {
    tensor const base = a * 1.0, view = vv::slice(base, 1, 0, 4, 2);
    vv::copy_(view, b);
    return std::pair(view, base);
  };
  auto const [value, tangent] = vv::vmap([&](auto const& a, auto const& b, auto const& da, auto const& db) {
    return vv::jvp(f, std::tuple(a, b), std::tuple(da, db));
  })(x, y, dx, dy);
  auto const every_second = [](tensor const& t, index_t from) { return vv::slice(t, 2, from, 4, 2); };
  CHECK(agree(value.first, y));
  CHECK(agree(tangent.first, dy));
  CHECK(agree(every_second(value.second, 0), y));
  CHECK(agree(every_second(tangent.second, 0), dy));
  CHECK(agree(every_second(value.second, 1), every_second(x, 1)));
  CHECK(agree(every_second(tangent.second, 1), every_second(dx, 1)));
}

TEST_CASE("a region of a region in lanes of lanes is a view", "[transform][vmap]") {
  auto const f = [](tensor const& v) {
    tensor const t = vv::clone(vv::expand(v, dims{3, 2})), a = vv::as_strided(t, dims{}, dims{}, dims{1}),
                 b = vv::as_strided(a, dims{3}, dims{0}, dims{0});
    vv::mul_(a, 10.0);
    return b;
  };
  tensor const x = vector_of({1, 2, 3, 4, 5, 6, 7, 8});
  auto const lanes = [&](tensor const& v) { return vv::vmap(f)(v); };
  std::vector<double> right;
  for (double e : {2, 4, 6, 8}) right.insert(right.end(), 3, e * 10);
  CHECK(elements(vv::vmap(f)(vv::reshape(x, dims{4, 2}))) == right);
  CHECK(elements(vv::vmap(lanes)(vv::reshape(x, dims{2, 2, 2}))) == right);
  CHECK(elements(vv::vmap([&](tensor const& v) { return vv::vmap(lanes)(v); })(vv::reshape(x, dims{1, 2, 2, 2}))) ==
        right);
}
