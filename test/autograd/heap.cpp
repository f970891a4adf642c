// SPDX-License-Identifier: BSL-1.0
// What a step of eager autograd takes from the heap, once a first one has been made: nothing.
#include <cstdlib>
#include <new>

#include "autograd_test.hpp"

using namespace autograd_test;

namespace {
long allocations = 0;
void* take(std::size_t n, std::size_t align) {
  ++allocations;
  if (void* const p = align > alignof(std::max_align_t) ? std::aligned_alloc(align, (n + align - 1) / align * align) : std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
} // namespace
[[gnu::noinline]] void* operator new(std::size_t n) { return take(n, 0); }
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) { return take(n, static_cast<std::size_t>(a)); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

TEST_CASE("backward: small tensors, nodes and the lists of a run are used again", "[autograd][backward]") {
  tensor const x = leaf({0.1, 0.2, 0.3, 0.4}), w = leaf({1, 2, 3, 4}), b = vec({0.5, 0.5, 0.5, 0.5});
  auto const chain = [&] {
    tensor y = x;
    for (int k = 0; k < 3; ++k) y = vv::tanh(y * w + b);
    return vv::sum(y);
  };
  // One value that many read: more than one node may run at a time.
  auto const wide = [&] {
    tensor const y = x * w;
    tensor sum = vv::sin(y);
    for (int k = 0; k < 5; ++k) sum = sum + vv::cos(y) * x;
    return vv::sum(sum);
  };
  auto const of_step = [&](auto const& f) {
    long taken = 0;
    list first;
    for (int k = 0; k < 3; ++k) {
      long const before = allocations;
      f().backward();
      taken = allocations - before;
      list const g = grad_of(x);
      if (k == 0) first = g;
      CHECK(g == first);
      x.zero_grad(), w.zero_grad();
    }
    return taken;
  };
  long const of_chain = of_step(chain), of_wide = of_step(wide);
  if (VARVE_RECYCLE_BLOCKS) { // else every block is the heap's
    CHECK(of_chain == 0);
    CHECK(of_wide == 0);
  } else {
    CHECK(of_chain > 0);
    CHECK(of_wide > 0);
  }
}
