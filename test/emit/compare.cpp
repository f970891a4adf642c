// SPDX-License-Identifier: BSL-1.0
#include "constants.hpp"
#include "convolved.hpp"
#include "convolved_double.hpp"
#include "elementwise.hpp"
#include "elementwise_double.hpp"
#include "every.hpp"
#include "every_double.hpp"
#include "every_integer.hpp"
#include "exact.hpp"
#include "functions.hpp"
#include "functions_even.hpp"
#include "hessian.hpp"
#include "integers.hpp"
#include "layers.hpp"
#include "layers_double.hpp"
#include "lone.hpp"
#include "mixed.hpp"
#include "narrow.hpp"
#include "narrow_wide.hpp"
#include "neighbours.hpp"
#include "neighbours_double.hpp"
#include "nothing.hpp"
#include "picks.hpp"
#include "reductions.hpp"
#include "reductions_double.hpp"
#include "repeated.hpp"
#include "repeated_never.hpp"
#include "small.hpp"
#include "smooth.hpp"
#include "smooth_double.hpp"
#include "whole.hpp"
#include "wide_layer.hpp"
// The emitted headers come first: they must stand alone.
#include "../sample/bump.hpp"
#include "samples.hpp"

#include <varve_test.hpp>

using namespace emit;

namespace {
std::vector<emit::sample> const& all() {
  static std::vector<emit::sample> const s = samples();
  return s;
}
/// Calls an emitted function on untyped memory.
template <class... A>
void call(void (*f)(A...), std::vector<void*> const& memory) {
  REQUIRE(memory.size() == sizeof...(A));
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    f(static_cast<A>(memory[K])...);
  }(std::make_index_sequence<sizeof...(A)>{});
}
long double element(tensor const& t, index_t k) { // any integer of 64 bits
  return vv::on_dtype(t.dtype(), "test",
                      [&]<class T>() { return static_cast<long double>(static_cast<T const*>(t.raw())[k]); });
}
/// Greatest difference between what an emitted function computes and the operators one by one, relative to 1 +
/// |expected|.
template <class F>
double difference(F* f, char const* name) {
  for (emit::sample const& s : all()) {
    if (s.name != name) continue;
    vv::boxed_args const expected = vv::interpret(s.g, s.in);
    vv::boxed_args got;
    std::vector<void*> memory;
    for (tensor const& x : s.in) memory.push_back(x.raw());
    for (tensor const& y : expected) {
      got.push_back(tensor::empty(y.sizes(), y.dtype()));
      memory.push_back(got[got.size() - 1].raw());
    }
    call(f, memory);
    double worst = 0;
    for (int r = 0; r < got.size(); ++r) {
      tensor const y = expected[r].is_contiguous() ? expected[r] : vv::detail::contiguous_copy(expected[r]);
      for (index_t k = 0; k < y.numel(); ++k) {
        long double const a = element(got[r], k), b = element(y, k), d = std::fabs(a - b) / (1 + std::fabs(b));
        bool const same = a == b || (a != a && b != b);
        if (!same && !(d <= worst)) worst = d >= 0 && d < 1e300 ? static_cast<double>(d) : 1e9;
      }
    }
    return worst;
  }
  return 1e9;
}
constexpr double ulp = 1.2e-7, ulp_double = 2.3e-16;
} // namespace

TEST_CASE("emit: elementwise operators agree to the last bits", "[emit]") {
  CHECK(difference(elementwise::run, "elementwise") <= 1.5 * ulp);
  CHECK(difference(elementwise_double::run, "elementwise_double") <= 1.5 * ulp_double);
  CHECK(difference(small::run, "small") <= ulp_double);
}
TEST_CASE("emit: every elementwise operator", "[emit]") {
  CHECK(difference(every::run, "every") <= 4 * ulp);
  CHECK(difference(every_double::run, "every_double") <= 4 * ulp_double);
  CHECK(difference(every_integer::run, "every_integer") <= 4 * ulp);
}
TEST_CASE("emit: integers, booleans and mixtures", "[emit]") { CHECK(difference(mixed::run, "mixed") <= ulp); }
TEST_CASE("emit: narrow integers and booleans wrap around, and are summed as int64", "[emit]") {
  CHECK(difference(narrow::run, "narrow") == 0);
  CHECK(difference(narrow_wide::run, "narrow_wide") == 0);
  CHECK(difference(integers::run, "integers") == 0);
  CHECK(difference(whole::run, "whole") == 0);
  CHECK(difference(exact::run, "exact") == 0);
}
TEST_CASE("emit: reductions", "[emit]") {
  CHECK(difference(reductions::run, "reductions") <= 40 * ulp);
  CHECK(difference(reductions_double::run, "reductions_double") <= 40 * ulp_double);
  CHECK(difference(nothing::run, "nothing") == 0);
}
TEST_CASE("emit: products of matrices, and gradients through them", "[emit]") {
  CHECK(difference(layers::run, "layers") <= 40 * ulp);
  CHECK(difference(layers_double::run, "layers_double") <= 40 * ulp_double);
  CHECK(difference(wide_layer::run, "wide_layer") <= 10 * ulp);
}
TEST_CASE("emit: convolutions, and their gradients", "[emit]") {
  CHECK(difference(convolved::run, "convolved") <= 10 * ulp);
  CHECK(difference(convolved_double::run, "convolved_double") <= 10 * ulp_double);
}
TEST_CASE("emit: slices, joins and their gradients", "[emit]") {
  CHECK(difference(neighbours::run, "neighbours") <= 4 * ulp);
  CHECK(difference(neighbours_double::run, "neighbours_double") <= 4 * ulp_double);
  CHECK(difference(hessian::run, "hessian") <= 4 * ulp_double);
}
TEST_CASE("emit: elements addressed by values", "[emit]") { CHECK(difference(picks::run, "picks") <= 2 * ulp); }
TEST_CASE("emit: axes alone, and values without elements", "[emit]") {
  CHECK(difference(lone::run, "lone") == 0);
  float const x[7]{}, a = 0;
  std::int64_t const outside[] = {6, 0, 7}, zero = 0;
  float y[32];
  std::int64_t k[3];
  CHECK_THROWS_AS(lone::run(x, outside, nullptr, &a, &zero, k, k + 1, k + 2, y, y + 3, y + 10, y + 17, y + 18),
                  std::out_of_range);
}
TEST_CASE("emit: cond is a branch, scan a loop", "[emit]") {
  CHECK(difference(functions::run, "functions") <= 4 * ulp);
  CHECK(difference(functions_even::run, "functions_even") <= 4 * ulp);
}
TEST_CASE("emit: smooth functions and their gradients", "[emit]") {
  CHECK(difference(smooth::run, "smooth") <= 40 * ulp);
  CHECK(difference(smooth_double::run, "smooth_double") <= 40 * ulp_double);
}
TEST_CASE("emit: while_loop is a loop, its gradient one back", "[emit]") {
  CHECK(difference(repeated::run, "repeated") <= 40 * ulp_double);
  CHECK(difference(repeated_never::run, "repeated_never") <= 40 * ulp_double);
}
TEST_CASE("emit: array constants are tables", "[emit]") { CHECK(difference(constants::run, "constants") <= 4 * ulp); }

TEST_CASE("emit: the text names what it needs, and the nodes", "[emit]") {
  std::string const s =
      vv::emit_cpp(vv::make_fx([](tensor const& x) { return vv::tanh(x) * 2.0; })(counting({40})), "gate");
  auto has = [&](char const* part) { return s.find(part) != std::string::npos; };
  CHECK(has("//   %1: float32[40] = tanh(%0)"));
  CHECK(has("namespace gate {"));
  CHECK(has("inline void run(float const* x0, float* __restrict y0)"));
  CHECK(has("batch<float> const v1 = kernel::tanh(v0);"));
  CHECK(has("#include <varve/kernel/vector_loop.hpp>"));
  CHECK_FALSE(has("dispatch"));
  CHECK_FALSE(has("matmul"));
  CHECK_FALSE(has("tensor"));
}
TEST_CASE("emit: what cannot be written is refused by name", "[emit][error]") {
  auto const symbolic = vv::trace_graph([](auto v) { return v + 1.0f; }, vv::meta{dtype::float32, {vv::symbol("n")}});
  CHECK_THROWS_AS(vv::emit_cpp(symbolic, "f"), vv::value_error);
  auto const in_place = vv::make_fx([](tensor const& v) { return vv::add_(v, 1.0); })(counting({3}));
  CHECK_THROWS_WITH(vv::emit_cpp(vv::make_fx([](tensor const& v) { return ::sample::bump(v); })(counting({3})), "f"),
                    ContainsText("operator bump"));
  CHECK_THROWS_WITH(vv::emit_cpp(in_place, "f"), ContainsText("writes into its argument"));
}
