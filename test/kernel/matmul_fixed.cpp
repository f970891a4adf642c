// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/matmul_fixed.hpp>

using namespace kernel_test;
namespace k = varve::kernel;

namespace {
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB>
void check() {
  std::vector<T> a(M * K), b(K * N), c(M * N + 1, T(77));
  for (auto& x : a) x = static_cast<T>(random_int(-9, 9));
  for (auto& x : b) x = static_cast<T>(random_int(-9, 9));
  k::matmul_fixed<T, M, K, N, TA, TB>(a.data(), b.data(), c.data());
  bool right = c[M * N] == 77;
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t j = 0; j < N; ++j) {
      T s = 0;
      for (std::size_t p = 0; p < K; ++p) s += a[TA ? p * M + i : i * K + p] * b[TB ? j * K + p : p * N + j];
      right = right && c[i * N + j] == s;
    }
  INFO(M << "x" << K << "x" << N << " " << TA << TB);
  CHECK(right);
}
template <class T, index_t M, index_t K, index_t N>
void check_all() {
  check<T, M, K, N, false, false>();
  check<T, M, K, N, true, false>();
  check<T, M, K, N, false, true>();
  check<T, M, K, N, true, true>();
}
} // namespace

TEST_CASE("matmul_fixed: all forms equal the plain loop", "[kernel][matmul]") {
  check_all<float, 16, 32, 32>();
  check_all<float, 13, 7, 37>();
  check_all<float, 1, 19, 5>();
  check_all<float, 5, 3, 1>();
  check_all<double, 3, 3, 3>();
  check_all<double, 9, 17, 20>();
  check_all<float, 2, 33, 18>();
  check_all<double, 1, 1, 1>();
  check_all<double, 4, 4, 4>();
  check_all<float, 4, 4, 4>();
  check_all<float, 20, 9, 8>();
}
