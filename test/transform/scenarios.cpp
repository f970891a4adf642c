// SPDX-License-Identifier: BSL-1.0
// Scenarios of transforms of tensors (docs/scenarios.md) that no other test is about.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
bool agree(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
tensor counted(dims const& sizes) { return vv::to(vv::reshape(vv::arange(vv::numel(sizes)), sizes), dtype::float64); }
constexpr auto times = [](auto const& a, auto const& b) { return a * b; };
struct named {
  tensor a, b;
};
struct scaled : vv::module {
  tensor w{{2.0}};
  scaled() { register_parameter("w", w); }
};
struct tied : vv::module { // two layers that share one weight
  scaled first, second;
  tied() {
    second.w = first.w;
    register_module("first", first), register_module("second", second);
  }
  tensor operator()(tensor const& x) const { return x * first.w * second.w; }
};
} // namespace
template <>
inline constexpr bool varve::is_tree_node<named> = true;

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

TEST_CASE("grad: argnums in an order of their own", "[transform][grad][TR-S23]") {
  tensor const x = from({2}, {}), y = from({3}, {});
  auto const [dy, dx] = vv::grad<1, 0>(times)(x, y);
  CHECK(dy.item<double>() == 2);
  CHECK(dx.item<double>() == 3);
  auto const one = vv::grad(times, vv::argnums<-1>)(x, y);
  CHECK(one.item<double>() == 2);
}

TEST_CASE("grad: has_aux", "[transform][grad][TR-S25]") {
  tensor const x = counted({3});
  auto const f = [](auto const& v) { return std::pair(vv::sum(vv::sin(v)), vv::cos(v)); };
  auto const [g, aux] = vv::grad(f, vv::has_aux)(x);
  CHECK(agree(g, vv::cos(x)));
  CHECK(agree(aux, vv::cos(x)));
}

TEST_CASE("jacobians: of another number of elements than the argument", "[transform][jacobian][TR-S27]") {
  tensor const x = counted({2, 4});
  auto const f = [](auto const& v) { return vv::unsqueeze(vv::slice(vv::select(v, 0, 0), 0, 1, 4), 1); };
  std::vector<double> unit(24, 0);
  for (int k = 0; k < 3; ++k) unit[static_cast<std::size_t>(k * 8 + k + 1)] = 1;
  for (tensor const& j : {tensor(vv::jacrev(f)(x)), tensor(vv::jacfwd(f)(x))}) {
    CHECK(j.sizes() == dims{3, 1, 2, 4});
    CHECK(elements(j) == unit);
  }
}

TEST_CASE("jacobians: of what does not depend on the argument are zeros", "[transform][jacobian][TR-S31]") {
  tensor const x = counted({2, 3}), y = counted({2, 3}) + 1.0;
  auto const constant = [&](auto const&) { return y; };
  auto const second = [&](auto const&, auto const& v) { return v; };
  for (tensor const& j : {tensor(vv::jacrev(constant)(x)), tensor(vv::jacfwd(constant)(x)),
                          tensor(vv::jacrev(second)(x, y)), tensor(vv::jacfwd(second)(x, y))})
    CHECK(agree(j, vv::zeros({2, 3, 2, 3}, dtype::float64)));
  auto const first = [&](auto const& u, auto const&) { return u; };
  tensor const unit = vv::reshape(vv::eye(6, dtype::float64), dims{2, 3, 2, 3});
  CHECK(agree(vv::jacrev(first)(x, y), unit));
  CHECK(agree(vv::jacfwd(first)(x, y), unit));
}

TEST_CASE("jacobians: in chunks", "[transform][jacobian][TR-S32]") {
  tensor const x = counted({2, 3}) / 7.0;
  auto const f = [](auto const& v) { return vv::sin(v) * vv::sum(v); };
  for (index_t n : {1, 2, 3, 4, 7, 10, 1000})
    CHECK(difference(vv::jacrev(f, vv::chunk_size{n})(x), vv::jacrev(f)(x), 1e-14) == "");
  for (index_t n : {0, -2}) CHECK_THROWS_WITH(vv::chunk_size{n}, ContainsText("chunk"));
}

namespace {
struct counts_backwards : vv::function<counts_backwards> { // a backward that vmap refuses
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return x * 1.0; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, auto g) {
    auto const places = vv::nonzero(g); // of a unit vector
    CHECK(places.sizes()[0] == 1);
    return g;
  }
};
} // namespace

TEST_CASE("jacobians: in chunks of one where vmap refuses", "[transform][jacobian][exception][TR-S33]") {
  tensor const x = counted({3});
  auto const f = [](tensor const& v) { return tensor(counts_backwards::apply(v)); };
  CHECK(agree(vv::jacrev(f, vv::chunk_size{1})(x), vv::eye(3, dtype::float64)));
  CHECK_THROWS_WITH(vv::jacrev(f, vv::chunk_size{2})(x), ContainsText("vmap"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("jacobians: beside an argument that is a plain number", "[transform][jacobian][TR-S35]") {
  tensor const x = counted({3, 3}), unit = vv::reshape(vv::eye(9, dtype::float64), dims{3, 3, 3, 3});
  auto const f = [](auto const& v, int k) { return v + k; };
  CHECK(agree(vv::jacrev(f)(x, 3), unit));
  CHECK(agree(vv::jacfwd(f)(x, 3), unit));
}

TEST_CASE("jacobians: of a function that draws numbers", "[transform][jacobian][random][TR-S21]") {
  tensor const x = counted({3});
  auto const f = [](tensor const& v) { return v + vv::randn({3}, dtype::float64); };
  CHECK_THROWS_WITH(vv::jacfwd(f)(x), ContainsText("randomness"));
  CHECK(agree(vv::jacfwd(f, vv::randomness::same)(x), vv::eye(3, dtype::float64)));
  CHECK(agree(vv::jacfwd(f, vv::randomness::different)(x), vv::eye(3, dtype::float64)));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("jvp: what does not depend on the argument has a tangent of zeros, unless it is strict",
          "[transform][jvp][TR-S37]") {
  tensor const x = counted({3}), y = counted({3}) + 1.0;
  auto const t = vv::jvp([&](auto const& v) { return std::pair(v * 1.0, y); }, std::tuple(x), std::tuple(x)).second;
  CHECK(agree(t.first, x));
  CHECK(agree(t.second, vv::zeros({3}, dtype::float64)));
  CHECK_THROWS_WITH(
      vv::jvp([&](auto const& v) { return std::pair(v * 1.0, y); }, std::tuple(x), std::tuple(x), vv::strict),
      ContainsText("strict"));
  CHECK(agree(vv::jvp([](auto const& v) { return v * v; }, std::tuple(x), std::tuple(x), vv::strict).second,
              x * x * 2.0));
  static_assert(vv::jvp([](auto v) { return v * v; }, std::tuple(3.0), std::tuple(1.0), vv::strict).second == 6);
  CHECK(vv::this_thread_state.quiet());
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

TEST_CASE("grad: of a tree of which a part is not used", "[transform][grad][TR-S41]") {
  named const p{counted({2}) + 1.0, counted({3})};
  auto const g = vv::grad([](named const& t) { return vv::sum(t.a * t.a); })(p);
  CHECK(agree(g.a, p.a * 2.0));
  CHECK(agree(g.b, vv::zeros({3}, dtype::float64)));
}

TEST_CASE("grad: what is no scalar, and what has no derivative", "[transform][grad][TR-S43]") {
  auto const same = [](tensor const& v) { return v; };
  CHECK_THROWS_WITH(vv::grad(same)(counted({1})), ContainsText("scalar") && ContainsText("[1]"));
  CHECK_THROWS_AS(vv::grad(same)(from({1}, {}, dtype::int64)), vv::dtype_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("functional_call: parameters that share one weight", "[transform][module][TR-S46]") {
  tied m;
  tensor const one{{1.0}}, three{{3.0}}, four{{4.0}};
  auto const call = [&](vv::parameter_dict const& p, bool tie) {
    return vv::functional_call(m, std::vector<vv::parameter_dict>{p}, false, tie, one);
  };
  CHECK(elements(call({{"first.w", three}}, true)) == std::vector<double>{9});
  CHECK(elements(call({{"first.w", three}}, false)) == std::vector<double>{6});
  CHECK_THROWS_AS(call({{"first.w", three}, {"second.w", four}}, true), vv::value_error);
  struct refuses : tied {
    tensor operator()(tensor const&) const { throw std::runtime_error("no"); }
  } r;
  CHECK_THROWS_AS(vv::functional_call(r, std::vector<vv::parameter_dict>{{{"first.w", three}}}, false, true, one),
                  std::runtime_error);
  CHECK(elements(r.first.w) == std::vector<double>{2});
  CHECK(r.second.w.shares_storage(r.first.w));
}
