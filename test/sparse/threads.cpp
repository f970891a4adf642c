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
  auto const n = vv::shape_of(x);
  tensor const left = vv::slice_backward(vv::slice(x, vv::axis<0>, vv::range<0, -1>), n, vv::ints<0, 1, 8, 1>{});
  tensor const right = vv::slice_backward(vv::slice(x, vv::axis<0>, vv::range<1, vv::end>), n, vv::ints<0, 0, 7, 1>{});
  return left - 2.0 * x + right + 0.1 * vv::exp(x);
}
} // namespace

TEST_CASE("sparse_jacobian: one object in several threads", "[sparse][tls]") {
  auto const j = vv::sparse_jacobian([c = 1.0](tensor const& x) { return bratu(x) * c; });
  bool ok[4]{};
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back([&, k] {
      ok[k] = vv::allclose(j.values(row(8, k)), vv::sparse_jacobian(bratu).values(row(8, k)), 0.0, 1e-10);
    });
  for (auto& t : all) t.join();
  for (bool const b : ok) CHECK(b);
}
