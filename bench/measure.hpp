// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What programs that set fused code beside code by hand share: both must agree before either is timed, both are kept
/// out of line, and every row counts its heap allocations. Included once in a program: it replaces `operator new`.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <new>

namespace bench {
inline long allocations = 0;

/// Runs `f` and counts what it allocates; `bench/report` refuses a fused row that allocates.
template <class F>
void measure(benchmark::State& state, F f) {
  f();
  long const before = allocations;
  for (auto _ : state) {
    f();
    benchmark::ClobberMemory();
  }
  state.counters["allocations"] = static_cast<double>(allocations - before);
}
/// The i-th of all elements, by rows.
template <class A>
decltype(auto) element(A& a, long i) {
  if constexpr (requires { a.begin(); }) return (a.begin()[i]);
  else return a[i];
}
/// Whether the elements agree, relative to the greatest of them.
template <class A>
void agree(benchmark::State& state, A const& a, A const& b, double tolerance) {
  double greatest = 0;
  for (long i = 0; i < static_cast<long>(A::size()); ++i)
    greatest = std::fmax(greatest, std::fabs(static_cast<double>(element(b, i))));
  for (long i = 0; i < static_cast<long>(A::size()); ++i)
    if (!(std::fabs(static_cast<double>(element(a, i)) - static_cast<double>(element(b, i))) <= tolerance * greatest))
      return state.SkipWithError("fused and by hand differ");
}
/// Numbers in (-0.5, 0.5) * scale.
template <class A>
void fill(A& a, double phase, double scale = 1, double offset = 0) {
  for (long i = 0; i < static_cast<long>(A::size()); ++i)
    element(a, i) =
        static_cast<typename A::value_type>(offset + scale * 0.5 * std::sin(phase + 1.3 * static_cast<double>(i)));
}
} // namespace bench

[[gnu::noinline]] void* operator new(std::size_t n) {
  ++bench::allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  ++bench::allocations;
  std::size_t const unit = static_cast<std::size_t>(a);
  if (void* p = std::aligned_alloc(unit, (n + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
