// SPDX-License-Identifier: BSL-1.0
// Static values give what tensors give.
#include "../sample/optional_op.hpp"

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
template <class O>
auto static_operand(O, tensor const& t) {
  using E = std::conditional_t<O::values == domain::flag, bool,
                               std::conditional_t<O::values == domain::index, std::int64_t, double>>;
  typename O::template array<E> r{};
  for (index_t k = 0; k < t.numel(); ++k) r.data[static_cast<std::size_t>(k)] = static_cast<E>(element(t, k));
  return r;
}
template <vv::value Y>
tensor as_tensor(Y const& y) {
  if constexpr (vv::number<Y>) return from({static_cast<double>(y)}, dims{}, vv::dtype_of_type<Y>());
  else return tensor::from_data(y.data, vv::to_dims(vv::shape_of(y)));
}
auto const agree = []<class F, class... O>(char const* name, F f, bool, shapes const&, O... o) {
  INFO(name);
  numbers draw(7);
  values x;
  (x.push_back(make(O::values, O::shape(), draw)), ...);
  std::size_t k = 0;
  auto const mine = [&]<std::size_t... K>(std::index_sequence<K...>) {
    return f(static_operand(o, x[K])...);
  }(std::index_sequence_for<O...>{});
  tensor const theirs = [&]<std::size_t... K>(std::index_sequence<K...>) -> tensor {
    return f(x[K]...);
  }(std::index_sequence_for<O...>{});
  (void)k;
  CHECK(difference(as_tensor(mine), theirs, 1e-12) == "");
};
} // namespace

TEST_CASE("operators beside the umbrella: static values give what tensors give", "[family]") {
  visit_special(agree);
  visit_rows(agree);
  visit_matrices(agree);
}

TEST_CASE("operators beside the umbrella: constants are computed by the compiler", "[family]") {
  constexpr vv::array<double, 4> v{{3, 1, 2, 1}};
  constexpr auto sorted = vv::sort(v).first;
  STATIC_REQUIRE(sorted.data[0] == 1);
  STATIC_REQUIRE(sorted.data[3] == 3);
  constexpr auto sums = vv::cumsum(v, vv::axis<0>);
  STATIC_REQUIRE(sums.data[3] == 7);
  constexpr vv::array<double, 2, 2> m{{4, 2, 2, 3}};
  constexpr auto l = vv::cholesky(m);
  STATIC_REQUIRE(l.data[0] == 2);
  constexpr auto d = vv::det(m);
  STATIC_REQUIRE(d == 8);
  STATIC_REQUIRE(vv::bitwise_xor(6, 3) == 5);
  STATIC_REQUIRE(vv::gcd(12, -18) == 6);
  STATIC_REQUIRE(vv::lgamma(1.0) == 0);
  STATIC_REQUIRE(vv::floor_divide(-7, 2) == -4);
}
