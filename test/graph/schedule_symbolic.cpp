// SPDX-License-Identifier: BSL-1.0
// A long body that computes two vectors step by step, for a number of points that is a symbol.
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::index_t, vv::tensor;
using namespace vv::fusion;

namespace {
/// A quadratic form of seven values of each point; of its derivative each of the 49 weights has its own sum over the
/// points: more sums than registers.
constexpr auto form = [](auto const& w, auto const& x) {
  return [&]<int... K>(std::integer_sequence<int, K...>) {
    std::tuple const v{(x * x + 0.125 * K)...};
    auto const row = [&]<int I>(std::integral_constant<int, I>) {
      return ((vv::select(w, vv::axis<0>, vv::axis<7 * I + K>) * std::get<K>(v)) + ...);
    };
    return vv::sum(((std::get<K>(v) * row(std::integral_constant<int, K>{})) + ...));
  }(std::make_integer_sequence<int, 7>{});
};
} // namespace

TEST_CASE("schedule: so does one whose number of points is a symbol", "[graph]") {
  constexpr auto fused = vv::fuse<vv::spec<double, 49>, vv::spec<double, vv::dim<"n">>>(vv::grad<0, 1>(form));
  tensor const w = vv::sin(vv::to(vv::arange(49), vv::dtype::float64));
  for (index_t n : {0, 1, 15, 16, 48, 101}) {
    tensor const x = vv::cos(vv::to(vv::arange(n), vv::dtype::float64));
    auto const [a, b] = fused(w, x);
    auto const [c, d] = vv::grad<0, 1>(form)(w, x);
    for (index_t k = 0; k < 49; ++k)
      CHECK(a.data<double>()[k] == Approx(c.data<double>()[k]).epsilon(1e-12).margin(1e-12));
    for (index_t k = 0; k < n; ++k)
      CHECK(b.data<double>()[k] == Approx(d.data<double>()[k]).epsilon(1e-12).margin(1e-12));
  }
}
