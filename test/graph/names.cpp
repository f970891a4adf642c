// SPDX-License-Identifier: BSL-1.0
// Names of arguments and results: given to graphs of either form, kept by passes, shown to readers.
#include <varve/export/emit_cpp.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>
namespace vv = varve;

namespace {
constexpr auto loss = [](auto w, auto x) {
  auto const y = vv::tanh(w * x) * 1.0f;
  return std::tuple(vv::sum(y * y), y);
};
constexpr auto plain = vv::trace(loss, vv::spec<float, 4>, vv::spec<float, 4>);
constexpr auto g = vv::named<"w", "x", "loss">(plain);
static_assert(vv::verify(g) && vv::equal(g, plain));
constexpr char const* text = "%w: float32[4] = placeholder(0)\n"
                             "%x: float32[4] = placeholder(1)\n"
                             "%2: float32[4] = mul(%w, %x)\n"
                             "%3: float32[4] = tanh(%2)\n"
                             "%4: float32[4] = mul(%3, %3)\n"
                             "%5: float32 = sum(%4, [0], [0])\n"
                             "return loss = %5, %3\n";
} // namespace

TEST_CASE("names: arguments and results are printed by name, after passes too", "[graph][print]") {
  constexpr auto o = vv::freeze([] {
    vv::graph const thawed = g.thaw();
    return vv::optimize(thawed);
  });
  CHECK(vv::to_string(o) == text);
  CHECK(vv::to_string(vv::optimize(
            vv::named<"w", "x", "loss">(vv::make_fx(loss)(vv::ones(vv::dims(4)), vv::ones(vv::dims(4)))))) == text);
  CHECK(vv::to_string(g).find("%4: float32 = constant(1)") != std::string::npos);
  CHECK(vv::to_string(vv::named<"w">(plain)).find("mul(%w, %1)") != std::string::npos);
  std::string const dot = vv::to_dot(g);
  CHECK(dot.find("[label=\"placeholder w\\nfloat32[4]\"") != std::string::npos);
  CHECK(dot.find("[label=\"result loss\"") != std::string::npos);
  CHECK(dot.find("[label=\"result 1\"") != std::string::npos);
}
TEST_CASE("names: every pass keeps them", "[graph][pass]") {
  vv::graph const h = g.thaw();
  for (vv::graph const& p : {vv::fold(h), vv::cse(h), vv::dce(h), vv::functionalize(h), vv::relax(h), vv::decompose(h),
                             vv::prepare(h), vv::inline_calls(h)}) {
    CHECK(p.names.count == 3);
    CHECK(vv::verify(p));
  }
}
TEST_CASE("names: those of the program are not those of functions inside it", "[graph][print]") {
  constexpr auto branches = [](auto p, auto x) {
    return vv::cond(vv::sum(p) > 0.0f, [](auto v) { return vv::sin(v); }, [](auto v) { return vv::cos(v); }, x);
  };
  constexpr auto c = vv::named<"p", "x", "y">(vv::trace(branches, vv::spec<float, 2>, vv::spec<float, 2>));
  std::string const s = vv::to_string(c);
  INFO(s);
  CHECK(s.find("%p: float32[2] = placeholder(0)") == 0);
  CHECK(s.find("return y = %") != std::string::npos);
  CHECK(s.find("placeholder(0)") != s.rfind("placeholder(0)")); // of a branch
  CHECK(s.find("\n  %p: ") == std::string::npos);
}
TEST_CASE("names: emitted code tells them", "[emit]") {
  CHECK(vv::emit_cpp(g, "named").find("/// (w: float32[4], x: float32[4]) -> (loss: float32, float32[4]), row-major") !=
        std::string::npos);
  CHECK(vv::emit_cpp(g, "named").find("//   %0: float32[4] = placeholder(0)") !=
        std::string::npos); // by the numbers that the code carries
  CHECK(vv::emit_cpp(plain, "plain").find("/// (float32[4], float32[4]) -> (float32, float32[4]), row-major") !=
        std::string::npos);
}
TEST_CASE("names: more than there are values are refused", "[graph]") {
  CHECK_THROWS_WITH(vv::named<"a">(vv::graph{}), Catch::Contains("more names than arguments and results"));
  CHECK_THROWS_WITH((vv::named<"a", "b", "c", "d", "e">(g.thaw())),
                    Catch::Contains("named") && Catch::Contains("more names than arguments and results"));
}
