// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/interop/hana.hpp>
#include <varve/varve.hpp>

namespace hana = boost::hana;
namespace vv = varve;
using vv::array;
using vv::tensor;
using namespace hana::literals;

namespace model {
struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (vv::tensor, weight), (vv::tensor, bias));
};
struct network {
  std::vector<layer> layers;
  vv::tensor scale;
};
template <class T>
struct line {
  BOOST_HANA_DEFINE_STRUCT(line<T>, (T, slope), (T, offset));
};
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
constexpr auto w_key = BOOST_HANA_STRING("w");
constexpr auto b_key = BOOST_HANA_STRING("b");
} // namespace model
BOOST_HANA_ADAPT_STRUCT(model::network, layers, scale);

TEST_CASE("hana: structs are trees with named leaves", "[interop][tree]") {
  model::network const net{{{tensor({1.0, 2.0}), tensor({0.5, 0.5})}}, tensor({3.0, 4.0})};
  CHECK(vv::tree_names(net) == std::vector<std::string>{"layers.0.weight", "layers.0.bias", "scale"});
  auto const loss = [](model::network const& n) { return vv::sum((n.layers[0].weight + n.layers[0].bias) * n.scale); };
  model::network const g = vv::grad(loss)(net);
  CHECK(g.layers[0].weight.to_vector() == std::vector<double>{3, 4});
  CHECK(g.scale.to_vector() == std::vector<double>{1.5, 2.5});
  constexpr auto f = [](auto const& l, auto x) { return l.slope * x * x + l.offset; };
  constexpr auto d = vv::grad(f)(model::line<double>{2, 1}, 3.0);
  STATIC_REQUIRE(d.slope == 9);
  STATIC_REQUIRE(d.offset == 1);
  CHECK(vv::tree_names(d) == std::vector<std::string>{"slope", "offset"});
}

TEST_CASE("hana: tuples and maps are trees", "[interop][tree]") {
  constexpr auto f = [](auto const& t) { return t[0_c] * t[0_c] * t[1_c]; };
  constexpr auto g = vv::grad(f)(hana::make_tuple(3.0, 2.0));
  STATIC_REQUIRE(g[0_c] == 12);
  STATIC_REQUIRE(g[1_c] == 9);
  auto const m = hana::make_map(hana::make_pair(model::w_key, tensor({1.0, 2.0})),
                                hana::make_pair(model::b_key, tensor({3.0, 4.0})));
  auto const d =
      vv::grad([](auto const& p) { return vv::sum(p[model::w_key] * p[model::b_key] * p[model::b_key]); })(m);
  CHECK(d[model::w_key].to_vector() == std::vector<double>{9, 16});
  CHECK(d[model::b_key].to_vector() == std::vector<double>{6, 16});
  auto names = vv::tree_names(m);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"b", "w"});
}

TEST_CASE("hana: stacks of modes, and algorithms over stack_of", "[interop][mode]") {
  model::counting outer, inner;
  auto const f = [](auto x) {
    using X = decltype(x);
    constexpr auto is_mode = [](auto type) {
      return hana::bool_c < std::string_view(vv::kind_of<typename decltype(type)::type>) == "mode" > ;
    };
    if constexpr (vv::is_seen<X>) {
      static_assert(decltype(hana::any_of(vv::stack_of<X>, is_mode))::value);
      static_assert(hana::size(hana::filter(vv::stack_of<X>, is_mode)) == hana::size_c<2>);
      static_assert(decltype(hana::is_just(hana::find_if(vv::stack_of<X>, is_mode)))::value);
    }
    return x * x + x;
  };
  CHECK(vv::with(hana::make_tuple(std::ref(outer), std::ref(inner)), f, 3.0) == 12);
  CHECK(outer.calls == 2);
  CHECK(inner.calls == 2);
  auto const g = [&](auto x) { return vv::with(hana::make_tuple(std::ref(outer), std::ref(inner)), f, x); };
  CHECK(g(tensor({3.0, 4.0})).to_vector() == std::vector<double>{12, 20});
  CHECK(outer.calls == 4);
}
