// SPDX-License-Identifier: BSL-1.0
// One file, one text, both worlds: the `process` of grad, jvp, vmap and of a user's mode.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <string_view>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
template <class V>
double number_of(V const& v) {
  if constexpr (std::is_same_v<V, tensor>) return v.template item<double>();
  else return v;
}
struct scaling : vv::dispatch_mode<scaling> { // a mode that changes values: every sine is doubled
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    auto y = op(args...);
    return std::string_view(op.name()) == "sin" ? y + y : y;
  }
};
constexpr auto f = [](auto const& x) { return vv::sin(x) * x; };
/// Runs one generic program on a number, an array and tensors.
template <class Program>
void check(Program const& program) {
  vv::array<double, 3> const s{0.5, -1, 2};
  tensor const x = from({0.5, -1, 2}, {3});
  auto const fixed = program(s);
  tensor const dynamic = program(x);
  for (index_t k = 0; k < dynamic.numel(); ++k) CHECK(element(dynamic, k) == Approx(vv::data_of(fixed)[k]));
}
} // namespace

TEST_CASE("both worlds: grad, jvp, vmap and a mode from one text", "[interpreter]") {
  auto total = [](auto const& v) { return vv::sum(f(v)); };
  check([&](auto const& x) { return vv::grad(total)(x); });
  check([&](auto const& x) { return vv::jvp(f, std::tuple(x), std::tuple(x)).second; });
  check([&](auto const& x) { return vv::vmap(f)(x); });
  check([&](auto const& x) {
    scaling m;
    auto y = vv::with(m, f, x);
    CHECK(m.calls == 2);
    return y;
  });
}

TEST_CASE("both worlds: pairs of interpreters from one text", "[interpreter]") {
  auto derivative = [](auto g) {
    return [g](auto const& v) { return vv::jvp(g, std::tuple(v), std::tuple(vv::ones_like(v))).second; };
  };
  auto total = [](auto const& v) { return vv::sum(f(v)); };
  check([&](auto const& x) { return vv::vmap(vv::grad(f))(x); });
  check([&](auto const& x) { return vv::vmap(vv::grad(vv::grad(f)))(x); });
  check([&](auto const& x) { return vv::grad([&](auto const& v) { return vv::sum(vv::vmap(vv::grad(f))(v)); })(x); });
  check([&](auto const& x) { return vv::grad([&](auto const& v) { return vv::sum(derivative(f)(v)); })(x); });
  check([&](auto const& x) { return derivative(vv::grad(total))(x); });
  check([&](auto const& x) { return vv::vmap(derivative(vv::grad(f)))(x); });
  check([&](auto const& x) { return vv::hessian(total)(x); });
  check([&](auto const& x) {
    scaling m;
    return vv::with(m, vv::grad(total), x);
  });
  check([&](auto const& x) { // a mode inside: it sees what the transform makes of the calls
    scaling m;
    return vv::vmap([&](auto const& v) { return vv::with(m, f, v); })(x);
  });
}
