// SPDX-License-Identifier: BSL-1.0
// Values and derivatives of composites at infinities, at the ends of their domains, and where formulas meet.
#include "../sample/value.hpp"

#include <varve/nn.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr double NaN = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
/// The derivative of the sum of f, of tensors and of numbers, which must agree.
template <class F>
std::vector<double> slopes(F const& f, std::vector<double> const& at) {
  auto const all = [&](auto const& x) { return vv::sum(f(x)); };
  std::vector<double> const r = elements(vv::grad(all)(tensor(at)));
  for (std::size_t k = 0; k < at.size(); ++k) {
    double const one = vv::grad(f)(at[k]);
    CHECK((one == r[k] || (one != one && r[k] != r[k])));
  }
  return r;
}
} // namespace

TEST_CASE("areas of hyperbolas beyond the greatest square and at their ends", "[composite][special]") {
  STATIC_REQUIRE(vv::asinh(inf) == inf);
  STATIC_REQUIRE(vv::asinh(-inf) == -inf);
  STATIC_REQUIRE(vv::acosh(inf) == inf);
  double const great = 1e300;
  CHECK(difference(vv::asinh(vector_of({great, -great, 2e10, 5e9})),
                   vector_of({std::asinh(great), -std::asinh(great), std::asinh(2e10), std::asinh(5e9)}), 1e-15) == "");
  CHECK(difference(vv::acosh(vector_of({great, 2e10, 5e9})),
                   vector_of({std::acosh(great), std::acosh(2e10), std::acosh(5e9)}), 1e-15) == "");
  CHECK(vv::acosh(from({3e38}, dims{1}, dtype::float32)).item() == Approx(std::acosh(3e38)));
  CHECK(vv::asinh(from({3e38}, dims{1}, dtype::float32)).item() == Approx(std::asinh(3e38)));
  CHECK(slopes([](auto const& x) { return vv::acosh(x); }, {1, 2e10})[0] == inf);
  CHECK(slopes([](auto const& x) { return vv::asinh(x); }, {0, -0.0, 2e10, inf}) == doubles({1, 1, 5e-11, 0}));
}
TEST_CASE("an infinite leg makes an infinite hypotenuse beside NaN too", "[composite]") {
  STATIC_REQUIRE(vv::hypot(inf, NaN) == inf);
  CHECK(elements(vv::hypot(vector_of({NaN, -inf, 3}), vector_of({inf, NaN, 4}))) == doubles({inf, inf, 5}));
}
TEST_CASE("the entropy of nothing is steep", "[composite]") {
  CHECK(slopes([](auto const& x) { return vv::entr(x); }, {0, -0.0, 1}) == doubles({inf, inf, -1}));
}
