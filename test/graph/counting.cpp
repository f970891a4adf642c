// SPDX-License-Identifier: BSL-1.0
// Flags that fused loops of floats count: integers, however many they are.
#include <varve/varve.hpp>

#include <varve_test.hpp>
namespace vv = varve;
using vv::index_t;

namespace {
constexpr auto count = [](auto x) {
  return std::tuple(vv::sum(x > 0.0), vv::sum(vv::ne(x, 0.0) * (x < 2.0)), vv::sum(x * 2.0));
};
constexpr auto count_axes = [](auto x) {
  return std::tuple(vv::sum(x > 0.0, vv::axis<0>), vv::sum(x < 0.5, vv::axis<1>),
                    vv::sum(vv::cat(std::tuple(x, x * 2.0), vv::axis<0>) > 0.0, vv::axis<0>), vv::sum(x, vv::axis<1>));
};

/// Ones, of which every seventh is -1.
vv::tensor ones(vv::dims const& sizes) {
  vv::tensor const x = vv::full(sizes, 1.0, vv::dtype::float32);
  for (index_t k = 0; k < x.numel(); k += 7) x.data<float>()[k] = -1;
  return x;
}
void alike(vv::tensor const& found, vv::tensor const& expected) {
  REQUIRE(found.dtype() == expected.dtype());
  CHECK(vv::sum(vv::ne(found, expected)).item<int>() == 0);
}
} // namespace

TEST_CASE("fuse: flags beside floats are counted beyond what a float counts", "[fuse][dtype]") {
  index_t const n = 4099 * 4099, negative = (n + 6) / 7; // 2^24 and more
  vv::tensor const x = ones({n});
  constexpr auto sized = vv::fuse<vv::spec<float, vv::dim<"n">>>(count);
  constexpr auto fixed = vv::fuse<vv::spec<float, 4099, 4099>>(count);
  auto const right = [&](auto const& found) {
    CHECK(std::get<0>(found).template item<std::int64_t>() == n - negative);
    CHECK(std::get<1>(found).template item<std::int64_t>() == n);
  };
  right(count(x)), right(sized(x)), right(fixed(vv::reshape(x, vv::dims{4099, 4099}))), right(vv::compile(count)(x));
  vv::tensor const flags = vv::ne(x, 0.0);
  constexpr auto of_flags = vv::fuse<vv::spec<bool, vv::dim<"n">>>([](auto f) { return vv::sum(f); });
  CHECK(of_flags(flags).item<std::int64_t>() == n);
}
TEST_CASE("fuse: flags are counted along axes of symbolic sizes", "[fuse][dtype]") {
  constexpr auto rows = vv::fuse<vv::spec<float, vv::dim<"n">, 19>>(count_axes);
  constexpr auto columns = vv::fuse<vv::spec<float, 19, vv::dim<"n">>>([](auto x) {
    return std::tuple(vv::sum(x > 0.0, vv::axis<0>), vv::sum(x < 0.5, vv::axis<1>), vv::sum(x > 0.0));
  });
  for (index_t n : {1, 5, 16, 37, 150}) {
    vv::tensor const x = ones({n, 19}), y = ones({19, n});
    auto const a = rows(x), b = count_axes(x);
    alike(std::get<0>(a), std::get<0>(b)), alike(std::get<1>(a), std::get<1>(b)), alike(std::get<2>(a), std::get<2>(b));
    auto const c = columns(y);
    alike(std::get<0>(c), vv::sum(y > 0.0, 0)), alike(std::get<1>(c), vv::sum(y < 0.5, 1)),
        alike(std::get<2>(c), vv::sum(y > 0.0));
  }
}
