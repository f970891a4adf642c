// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/varve.hpp>

#include <map>
#include <optional>

namespace vv = varve;
using vv::array;
using vv::tensor;

namespace {
struct dense { // nothing is declared
  tensor w, b;
};
struct network {
  std::vector<dense> layers;
  std::map<std::string, tensor> scales;
  std::optional<tensor> bias;
};
template <class T>
struct sixteen {
  T a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
template <class T>
struct pair_of {
  sixteen<T> inner;
  T scale;
};
struct options { // no value of a transform: passed as it is
  int steps;
  double rate;
  std::string name;
};
} // namespace

TEST_CASE("trees: structs of tensors, maps and optionals need no declaration", "[transform][tree]") {
  STATIC_REQUIRE(vv::is_tree_node<dense>);
  STATIC_REQUIRE(vv::is_tree_node<network>);
  STATIC_REQUIRE(vv::is_tree_node<sixteen<double>>);
  STATIC_REQUIRE(!vv::is_tree_node<options>);
  STATIC_REQUIRE(!vv::is_tree_node<std::string>);
  STATIC_REQUIRE(!vv::is_tree_node<array<double, 3>>);
  STATIC_REQUIRE(!vv::is_tree_node<vv::dims>);
  network const net{{{tensor({1.0, 2.0}), tensor({0.5, 0.5})}}, {{"x", tensor({3.0, 4.0})}}, tensor({0.25, 1.0})};
  auto const loss = [](network const& n, tensor const& x) {
    return vv::sum((n.layers[0].w * x + n.layers[0].b) * n.scales.at("x") + *n.bias);
  };
  tensor const x({2.0, -1.0});
  network const g = vv::grad(loss)(net, x);
  CHECK(g.layers[0].w.to_vector() == std::vector<double>{6, -4});
  CHECK(g.layers[0].b.to_vector() == std::vector<double>{3, 4});
  CHECK(g.scales.at("x").to_vector() == std::vector<double>{2.5, -1.5});
  CHECK(g.bias->to_vector() == std::vector<double>{1, 1});
  network const without{net.layers, net.scales, std::nullopt};
  auto const other = [](network const& n) { return vv::sum(n.layers[0].w) * (n.bias ? 2.0 : 3.0); };
  auto const h = vv::grad(other)(without);
  CHECK_FALSE(h.bias.has_value());
  CHECK(h.layers[0].w.to_vector() == std::vector<double>{3, 3});
  auto const sgd = vv::tree_map([](tensor const& p, tensor const& d) { return tensor(p - d * 0.5); }, net, g);
  CHECK(sgd.scales.at("x").to_vector() == std::vector<double>{1.75, 4.75});
  CHECK_THROWS_AS(vv::tree_map([](tensor const& p, tensor const&) { return p; }, net, without), vv::error);
  std::map<std::string, tensor> const one{{"a", x}}, two{{"b", x}};
  CHECK_THROWS_AS(vv::tree_map([](tensor const& p, tensor const&) { return p; }, one, two), vv::error);
}

TEST_CASE("trees: templates of their leaves, of up to sixteen members, nested", "[transform][tree]") {
  constexpr sixteen<double> s{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  constexpr auto f = [](auto const& t) { return t.a * t.p + t.h * t.h * t.n; };
  constexpr auto g = vv::grad(f)(s);
  STATIC_REQUIRE(std::is_same_v<decltype(g), sixteen<double> const>);
  STATIC_REQUIRE(g.a == 16);
  STATIC_REQUIRE(g.p == 1);
  STATIC_REQUIRE(g.h == 2 * 8 * 14);
  STATIC_REQUIRE(g.b == 0);
  constexpr auto h = vv::grad([f](auto const& q) { return f(q.inner) * q.scale; })(pair_of<double>{s, 3});
  STATIC_REQUIRE(h.inner.a == 48);
  STATIC_REQUIRE(h.scale == 16 + 8 * 8 * 14);
  auto const options_pass = [](auto const& q, options const& o) { return q.scale * q.scale * o.rate * o.steps; };
  CHECK(vv::grad(options_pass)(pair_of<double>{s, 3}, options{2, 0.5, "x"}).scale == 6);
}

TEST_CASE("trees: aggregates of varve and std are leaves", "[transform][tree]") {
  STATIC_REQUIRE(!vv::is_tree_node<vv::meta>);
  STATIC_REQUIRE(!vv::is_tree_node<vv::attributes>);
  STATIC_REQUIRE(!vv::is_tree_node<vv::operand<tensor, bool>>);
  STATIC_REQUIRE(!vv::is_tree_node<vv::slice_index>);
}
