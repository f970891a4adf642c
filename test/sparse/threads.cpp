// SPDX-License-Identifier: BSL-1.0
// Plans of sparse derivatives that several threads use at once.
#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <thread>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::tensor;

namespace {
tensor row(vv::index_t n, double from = 0.3) { return vv::arange(n, vv::dtype::float64) * 0.1 + from; }
tensor bratu(tensor const& x) { // u'' + e^u, with 0 at the ends
  tensor const p = vv::pad(x, vv::dims{1, 1});
  return vv::slice(p, 0, 0, x.size(0)) - 2.0 * x + vv::slice(p, 0, 2, x.size(0) + 2) + 0.1 * vv::exp(x);
}
} // namespace

TEST_CASE("sparse_jacobian: one object in several threads", "[sparse][tls]") {
  auto const j = vv::sparse_jacobian([c = 1.0](tensor const& x) { return bratu(x) * c; });
  bool ok[4]{};
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back(
        [&, k] { ok[k] = vv::allclose(j.values(row(8, k)), vv::sparse_jacobian(bratu).values(row(8, k))); });
  for (auto& t : all) t.join();
  for (bool const b : ok) CHECK(b);
}
