// SPDX-License-Identifier: BSL-1.0
// Gradients and tangents: argnums, trees, constants and modules.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
bool agree(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
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

namespace varve {
template <>
inline constexpr bool is_tree_node<::named> = true;
} // namespace varve

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
