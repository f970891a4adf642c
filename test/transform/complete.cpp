// SPDX-License-Identifier: BSL-1.0
// Transforms with trees of arguments, further results, chunks, linear maps and modules.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct dense {
  tensor w, b;
};
template <class T>
struct point {
  T x, y;
};
struct weight : tensor {
  using tensor::operator=;
};
struct linear : vv::module {
  tensor w;
  weight b; // a program's own type of parameters
  linear(double p, double q) : w(tensor{{p, q}}), b{tensor{{q, p}}} {
    register_parameter("w", w);
    register_parameter("b", b);
  }
  tensor operator()(tensor const& x) const { return vv::add(vv::mul(x, w), static_cast<tensor const&>(b)); }
};
struct network : vv::module {
  linear first{1.0, 2.0}, second{3.0, 4.0};
  network() {
    register_module("first", first);
    register_module("second", second);
  }
  tensor operator()(tensor const& x) const { return second(vv::tanh(first(x))); }
};
} // namespace
template <>
inline constexpr bool varve::is_tree_node<dense> = true;
template <class T>
inline constexpr bool varve::is_tree_node<point<T>> = true;

TEST_CASE("trees: vectors and aggregates of tensors, nested", "[transform][tree]") {
  std::vector<dense> const net{{tensor{{1.0, 2.0}}, tensor{{0.1, 0.2}}}, {tensor{{0.5, -1.0}}, tensor{{0.3, 0.4}}}};
  tensor const x{{0.7, 0.9}};
  auto const loss = [](auto const& layers, auto const& in) {
    tensor h = in;
    for (auto const& l : layers) h = vv::tanh(vv::add(vv::mul(h, l.w), l.b));
    return vv::sum(h);
  };
  auto const g = vv::grad(loss)(net, x);
  REQUIRE(g.size() == 2);
  auto const one = [&](tensor const& w) { return loss(std::vector<dense>{{w, net[0].b}, net[1]}, x); };
  CHECK(difference(g[0].w, vv::grad(one)(net[0].w), 1e-15) == "");
  auto const rows = vv::vmap([](auto const& v) { return std::vector<tensor>{vv::sum(v[0]), vv::mul(v[1], 2.0)}; })(
      std::vector<tensor>{vv::ones({3, 2}, dtype::float64), vv::ones({3}, dtype::float64)});
  CHECK(difference(rows[0], tensor{{2.0, 2.0, 2.0}}, 0) == "");
  CHECK(difference(rows[1], tensor{{2.0, 2.0, 2.0}}, 0) == "");
  CHECK_THROWS_AS(vv::vmap([](auto const& v) { return vv::sum(v[0]); })(
                      std::vector<tensor>{vv::ones({3}, dtype::float64), vv::ones({2}, dtype::float64)}),
                  vv::error);
  static_assert(vv::grad([](auto const& p) { return p.x * p.x * p.y; })(point<double>{2, 3}).x == 12);
  static_assert(vv::grad([](auto const& p) { return p.x * p.x * p.y; })(point<double>{2, 3}).y == 4);
}

TEST_CASE("has_aux: what comes beside the value is handed on", "[transform][grad]") { // TR-13
  tensor const x{{1.0, 2.0}};
  auto const f = [](auto const& t) {
    tensor const y = vv::mul(t, t);
    return std::pair(vv::sum(y), std::tuple(y, 7));
  };
  auto const [g, aux] = vv::grad(f, vv::has_aux)(x);
  CHECK(difference(g, tensor{{2.0, 4.0}}, 0) == "");
  CHECK_FALSE(std::get<0>(aux).is_wrapped());
  CHECK(difference(std::get<0>(aux), tensor{{1.0, 4.0}}, 0) == "");
  CHECK(std::get<1>(aux) == 7);
  auto const both = vv::value_and_grad(f, vv::has_aux)(x);
  CHECK(both.first.first.item<double>() == 5.0);
  CHECK(difference(both.second, g, 0) == "");
}

TEST_CASE("chunks: the result of the whole, piece by piece", "[transform][vmap]") { // TR-9, TR-18
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(15), dtype::float64)), dims{5, 3}),
               y = vv::reshape(vv::cos(vv::to(vv::arange(15), dtype::float64)), dims{3, 5});
  int calls = 0;
  auto const f = [&](auto const& a, auto const& b) {
    ++calls;
    return std::tuple(vv::mul(a, b), vv::sum(vv::mul(a, b)));
  };
  auto const whole = vv::vmap(f, vv::in_dims<0, 1>, vv::out_dims<1, 0>)(x, y);
  for (index_t n : {1, 2, 4, 5, 9}) {
    calls = 0;
    auto const parts = vv::vmap(f, vv::in_dims<0, 1>, vv::out_dims<1, 0>, vv::chunk_size{n})(x, y);
    CHECK(calls == (5 + n - 1) / n);
    CHECK(difference(std::get<0>(parts), std::get<0>(whole), 0) == "");
    CHECK(difference(std::get<1>(parts), std::get<1>(whole), 0) == "");
  }
  CHECK_THROWS_AS(vv::chunk_size{0}, vv::value_error);
  auto const noisy = [](auto const& a) { return vv::mul(a, vv::randn({3}, dtype::float64)); };
  vv::manual_seed(5);
  tensor const same = vv::vmap(noisy, vv::randomness::same)(x);
  vv::manual_seed(5);
  CHECK(difference(vv::vmap(noisy, vv::chunk_size{2}, vv::randomness::same)(x), same, 0) == "");
  auto const g = [](auto const& t) { return vv::mul(vv::sin(t), vv::sum(t)); };
  tensor const p{{0.1, 0.2, 0.3}};
  CHECK(difference(vv::jacrev(g, vv::chunk_size{2})(p), vv::jacrev(g)(p), 1e-15) == "");
  for (index_t n : {1, 2, 3, 7}) {
    int passes = 0;
    auto const counted = [&](auto const& t, auto const& scale) {
      ++passes;
      return vv::mul(g(t), scale);
    };
    CHECK(difference(vv::jacfwd(counted, vv::chunk_size{n})(p, 2.0), vv::mul(vv::jacfwd(g)(p), 2.0), 1e-15) == "");
    CHECK(passes == (3 + n - 1) / n);
    auto const s = [&](auto const& t) { return vv::sum(vv::mul(g(t), t)); };
    CHECK(difference(vv::hessian(s, vv::chunk_size{n})(p), vv::hessian(s)(p), 1e-14) == "");
    CHECK(difference(vv::hessian(g, vv::chunk_size{n})(p), vv::hessian(g)(p), 1e-14) == ""); // of several results
  }
  tensor const wide = vv::reshape(x, dims{3, 5});
  auto const two = [](auto const& t) {
    return std::tuple(vv::sum(vv::sin(t), dims{0}), vv::sum(t));
  }; // a tree of results, of a matrix
  auto const [a, b] = vv::jacfwd(two, vv::chunk_size{4})(wide);
  auto const [c, d] = vv::jacfwd(two)(wide);
  CHECK((a.sizes() == dims{5, 3, 5} && b.sizes() == dims{3, 5}));
  CHECK(difference(a, c, 1e-15) == "");
  CHECK(difference(b, d, 1e-15) == "");
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("linearize: the derivative as a linear map", "[transform][linearize][TR-S38]") { // TR-20
  tensor const x{{0.4, 1.1}}, w{{2.0, 3.0}};
  int runs = 0;
  auto const f = [&](auto const& a, auto const& b) {
    ++runs;
    return std::tuple(vv::mul(vv::sin(a), b), vv::sum(vv::exp(a)));
  };
  auto const [y, df] = vv::linearize(f, x, w);
  CHECK(runs == 2);
  CHECK(difference(std::get<0>(y), vv::mul(vv::sin(x), w), 0) == "");
  for (int k = 0; k < 3; ++k) {
    tensor const t{{0.5 + k, 1.0}}, s{{-1.0, 2.0 * k}};
    auto const exact = vv::jvp(f, std::tuple{x, w}, std::tuple{t, s}).second;
    auto const got = df(t, s);
    CHECK(difference(std::get<0>(got), std::get<0>(exact), 1e-15) == "");
    CHECK(difference(std::get<1>(got), std::get<1>(exact), 1e-15) == "");
  }
  CHECK(runs == 5);
  CHECK(to_string(df.program()).find("sin") == std::string::npos); // only what is linear runs again
  CHECK_THROWS_AS(df(x), vv::value_error);
  CHECK_THROWS_AS(df(x, vv::ones({3}, dtype::float64)), vv::shape_error);
  CHECK_THROWS_AS(df(x, vv::ones({2}, dtype::float32)), vv::dtype_error);
  auto const& map = df;
  CHECK(
      difference(std::get<1>(vv::vmap([&](auto const& t) { return map(t, w); })(vv::stack(std::vector<tensor>{x, w}))),
                 vv::stack(std::vector<tensor>{tensor(std::get<1>(map(x, w))), tensor(std::get<1>(map(w, w)))}),
                 1e-15) == "");
}

TEST_CASE("functional_call: other parameters for one call", "[transform][module]") { // TR-21, TR-22
  network const fresh;
  network m;
  tensor const x{{0.2, 0.4}}, before = m(x);
  auto const names = m.named_parameters();
  REQUIRE(names.size() == 4);
  CHECK(names[2].first == "second.w");
  tensor const zero{{0.0, 0.0}};
  CHECK(difference(vv::functional_call(m, vv::parameter_dict{{"second.w", zero}}, x), m.second.b, 0) == "");
  CHECK(difference(m(x), before, 0) == "");
  CHECK_THROWS_WITH(vv::functional_call(m, vv::parameter_dict{{"third.w", zero}}, x), ContainsText("third.w"));
  CHECK_THROWS_WITH(
      vv::functional_call(m, std::vector<vv::parameter_dict>{{{"first.w", zero}}, {{"first.w", zero}}}, false, true, x),
      ContainsText("two dictionaries"));
  CHECK_THROWS_WITH(vv::functional_call(m, std::vector<vv::parameter_dict>{{{"first.w", zero}}}, true, true, x),
                    ContainsText("first.b"));
  CHECK_THROWS_AS(vv::functional_call(m, vv::parameter_dict{{"first.w", vv::ones({3}, dtype::float64)}}, x),
                  vv::shape_error);
  CHECK(difference(m(x), before, 0) == "");
  // A gradient with respect to one parameter, and an ensemble.
  auto const g = vv::grad([&](tensor const& w) {
    return vv::sum(vv::functional_call(m, vv::parameter_dict{{"first.w", w}}, x));
  })(m.first.w);
  m.first.w.requires_grad_();
  vv::sum(m(x)).backward();
  CHECK(difference(m.first.w.grad(), g, 1e-15) == "");
  linear a(1.0, 2.0), b(-1.0, 0.5);
  auto const state = vv::stack_module_state(std::vector<linear*>{&a, &b});
  tensor const both = vv::vmap([&](tensor const& w, tensor const& c) {
    return vv::functional_call(a, vv::parameter_dict{{"w", w}, {"b", c}}, x);
  })(state[0].second, state[1].second);
  CHECK(difference(both, vv::stack(std::vector<tensor>{a(x), b(x)}), 1e-15) == "");
  CHECK_THROWS_AS(vv::stack_module_state(std::vector<linear*>{}), vv::value_error);
  // Tied parameters follow one another.
  linear tied(1.0, 2.0);
  tied.b = tied.w;
  CHECK(difference(vv::functional_call(tied, vv::parameter_dict{{"w", zero}}, x), zero, 0) == "");
  CHECK(difference(vv::functional_call(tied, std::vector<vv::parameter_dict>{{{"w", zero}}}, false, false, x), tied.b,
                   0) == "");
}

TEST_CASE("chunks: a function that returns a vector, or an aggregate", "[transform][vmap]") { // TR-9
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(15), dtype::float64)), dims{5, 3});
  auto const f = [](tensor const& a) { return std::vector<tensor>{a * 2.0, vv::sum(a)}; };
  std::vector<tensor> const whole = vv::vmap(f)(x);
  for (index_t n : {1, 2, 5}) {
    std::vector<tensor> const parts = vv::vmap(f, vv::chunk_size{n})(x);
    CHECK(parts.size() == 2);
    CHECK(difference(parts.at(0), whole.at(0), 0) == "");
    CHECK(difference(parts.at(1), whole.at(1), 0) == "");
  }
  auto const nested = [](tensor const& a) { return std::pair(std::vector<tensor>{a, a + 1.0}, a * 3.0); };
  auto const [pair, single] = vv::vmap(nested, vv::chunk_size{2})(x);
  CHECK(difference(pair.at(1), x + 1.0, 0) == "");
  CHECK(difference(single, x * 3.0, 0) == "");
}
