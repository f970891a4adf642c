// SPDX-License-Identifier: BSL-1.0
// Fused functions that several threads call at once.
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <cmath>
#include <thread>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::index_t;

namespace {
constexpr auto columns = [](auto x) { return vv::softmax(x, vv::axis<0>); };
constexpr auto fused_columns = vv::fuse<vv::spec<float, vv::dim<"n">, 10>>(columns);
tensor waves(dims const& sizes, double phase) {
  tensor r = tensor::empty(sizes, dtype::float32);
  for (index_t k = 0; k < r.numel(); ++k)
    r.data<float>()[k] = static_cast<float>(std::sin(phase + 1.3 * static_cast<double>(k)));
  return r;
}
} // namespace

TEST_CASE("fuse with symbolic sizes: threads have scratch memory of their own", "[fuse][symbolic][tls]") {
  std::vector<std::thread> all;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    all.emplace_back([t, &wrong] {
      for (index_t k = 1; k < 300; k += 37 + t) {
        tensor const x = waves({k, 10}, t);
        wrong[static_cast<std::size_t>(t)] += !(apart(fused_columns(x), columns(x)) <= 2e-5);
      }
    });
  for (std::thread& t : all) t.join();
  for (int const w : wrong) CHECK(w == 0);
}

TEST_CASE("fuse: a function that captures is shared by threads", "[fuse][compile][tls]") {
  tensor const x = from({1, 2, 3}, {3}, dtype::float64), w = from({0.5, -1, 2}, {3}, dtype::float64);
  auto const f = vv::fuse([w](auto const& v) { return vv::exp(v * w); });
  std::vector<double> const expected = elements(vv::exp(x * w));
  std::vector<double> found[3];
  std::vector<std::thread> all;
  for (auto& r : found) all.emplace_back([&] { r = elements(f(x)); });
  for (auto& t : all) t.join();
  for (auto const& r : found)
    for (std::size_t k = 0; k < 3; ++k) CHECK(r[k] == Approx(expected[k]).epsilon(1e-14));
}
