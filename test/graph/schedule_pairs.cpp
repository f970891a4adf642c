// SPDX-License-Identifier: BSL-1.0
// Long bodies that compute two vectors step by step.
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
template <class T, index_t N>
void weights_of_a_form() {
  array<T, 49> w;
  array<T, N> x;
  for (index_t k = 0; k < 49; ++k) w[k] = static_cast<T>(k % 7 - 3) / 8;
  for (index_t k = 0; k < N; ++k) x[k] = static_cast<T>(k % 11 - 4) / 16;
  constexpr auto fused = vv::fuse(vv::grad<0, 1>(form));
  constexpr auto& program = std::remove_cvref_t<decltype(fused)>::template program<array<T, 49>, array<T, N>>::value;
  int in_pairs = 0;
  for (std::size_t b = 0; b < program.used.bodies; ++b)
    in_pairs += program.bodies[b].step_count > 128 && runs_in_pairs(program.bodies[b]);
  CHECK(in_pairs == (N >= 2 * vv::kernel::lanes<T> ? 1 : 0));
  auto const [a, b] = fused(w, x);
  auto const [c, d] = vv::grad<0, 1>(form)(w, x);
  double const tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;
  for (index_t k = 0; k < 49; ++k)
    CHECK(static_cast<double>(a[k]) == Approx(static_cast<double>(c[k])).epsilon(tolerance));
  for (index_t k = 0; k < N; ++k)
    CHECK(static_cast<double>(b[k]) == Approx(static_cast<double>(d[k])).epsilon(tolerance).margin(tolerance));
}
} // namespace

TEST_CASE("schedule: a long body with more sums than registers computes two vectors step by step", "[graph]") {
  weights_of_a_form<float, 101>(); // pairs, and a last vector that overlaps
  weights_of_a_form<float, 112>(); // on 16 lanes: three pairs and one vector
  weights_of_a_form<double, 56>();
}
