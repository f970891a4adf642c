// SPDX-License-Identifier: BSL-1.0
/// @file
/// Fused loops over integers beside loops that the compiler vectorizes: a blend of two images of bytes under a mask,
/// and a hash of 32-bit numbers, which wraps around.
#include "measure.hpp"

#include <varve/varve.hpp>

#include <cstdint>

namespace vv = varve;
using vv::array, vv::index_t;

namespace {
constexpr index_t N = 1 << 16;
using bytes = array<std::uint8_t, N>;
using words = array<std::int32_t, N>;
constexpr auto blend = [](auto a, auto b, auto mask) { return vv::where(mask > 127, vv::maximum(a, b), a - b); };
constexpr auto hash = [](auto x, auto y) {
  auto const h = x * 31 + y;
  return h * h * 17 + vv::abs(y);
};
constexpr auto fused_blend = vv::fuse(blend);
constexpr auto fused_hash = vv::fuse(hash);

#define KEEP __attribute__((noinline)) void
KEEP blend_fused(bytes const& a, bytes const& b, bytes const& mask, bytes& r) { fused_blend.into(r)(a, b, mask); }
KEEP blend_hand(bytes const& a, bytes const& b, bytes const& mask, bytes& r) {
  for (index_t i = 0; i < N; ++i)
    r[i] = mask[i] > 127 ? (a[i] > b[i] ? a[i] : b[i]) : static_cast<std::uint8_t>(a[i] - b[i]);
}
KEEP hash_fused(words const& x, words const& y, words& r) { fused_hash.into(r)(x, y); }
KEEP hash_hand(words const& x, words const& y, words& r) {
  for (index_t i = 0; i < N; ++i) {
    auto const a = static_cast<std::uint32_t>(x[i]), b = static_cast<std::uint32_t>(y[i]), h = a * 31 + b;
    r[i] = static_cast<std::int32_t>(h * h * 17 + (y[i] < 0 ? 0 - b : b));
  }
}

void bench_blend(benchmark::State& state, void (*f)(bytes const&, bytes const&, bytes const&, bytes&)) {
  static bytes a, b, mask, r, expected;
  bench::fill(a, 0, 250, 128), bench::fill(b, 1, 250, 128), bench::fill(mask, 2, 250, 128);
  f(a, b, mask, r), blend_hand(a, b, mask, expected);
  bench::agree(state, r, expected, 0);
  bench::measure(state, [&] { f(a, b, mask, r); });
}
void bench_hash(benchmark::State& state, void (*f)(words const&, words const&, words&)) {
  static words x, y, r, expected;
  bench::fill(x, 0, 4e9), bench::fill(y, 1, 4e9);
  f(x, y, r), hash_hand(x, y, expected);
  bench::agree(state, r, expected, 0);
  bench::measure(state, [&] { f(x, y, r); });
}
BENCHMARK_CAPTURE(bench_blend, fused, blend_fused);
BENCHMARK_CAPTURE(bench_blend, hand, blend_hand);
BENCHMARK_CAPTURE(bench_hash, fused, hash_fused);
BENCHMARK_CAPTURE(bench_hash, hand, hash_hand);
} // namespace

BENCHMARK_MAIN();
