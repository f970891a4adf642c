// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <atomic>
#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
template <class F>
void on_threads(int n, F const& f) {
  std::vector<std::thread> all;
  for (int k = 0; k < n; ++k) all.emplace_back([&f, k] { f(k); });
  for (auto& t : all) t.join();
}
} // namespace

TEST_CASE("threads: each has its own modes and transforms", "[dispatch][tls]") {
  tensor const x = from({0.5, -1, 2}, {3}); // shared by all
  auto f = [](auto const& v) { return vv::sum(vv::sin(v) * v); };
  tensor const want = vv::grad(f)(x);
  std::atomic<int> right{0};
  counting mine;
  vv::mode_guard const on{mine};
  on_threads(8, [&](int k) {
    if (!vv::this_thread_state.quiet()) return; // another thread's mode is not here
    counting m;
    bool good = true;
    for (int round = 0; round < 50; ++round) {
      if (k % 2) {
        int const before = m.calls;
        vv::mode_guard const guard{m};
        good = good && difference(vv::grad(f)(x), want) == "" && m.calls > before;
      } else {
        good = good && difference(vv::vmap(vv::grad([](auto const& v) { return v * v; }))(x), from({1, -2, 4}, {3})) == "";
      }
    }
    if (good && vv::this_thread_state.quiet()) ++right;
  });
  CHECK(right == 8);
  CHECK(mine.calls == 0);
}

TEST_CASE("threads: tensors are shared, and freed by whoever is last", "[dispatch][tls]") {
  std::vector<tensor> shared;
  for (int k = 0; k < 64; ++k) shared.push_back(vv::full({k % 5 * 20 + 1}, static_cast<double>(k), dtype::float64)); // within the block and outside
  std::atomic<int> right{0};
  on_threads(8, [&](int) {
    std::vector<tensor> mine;
    for (int round = 0; round < 20; ++round) {
      mine = shared;
      for (auto& t : mine) t = vv::slice(t, 0, 0, 1) + 1;
    }
    bool good = true;
    for (int k = 0; k < 64; ++k) good = good && element(mine[static_cast<std::size_t>(k)], 0) == k + 1;
    if (good) ++right;
  });
  CHECK(right == 8);
  // made by one thread, freed by another after the first has ended
  std::vector<tensor> made;
  std::thread([&] {
    for (int k = 0; k < 300; ++k) made.push_back(vv::ones({k % 3 + 1}));
  }).join();
  for (auto const& t : made) CHECK(element(t, 0) == 1);
  made.clear();
}

TEST_CASE("threads: a value of one thread's transform is no value of another's", "[dispatch][tls]") {
  tensor const x = from({1, 2, 3}, {3});
  bool refused = false, plain = false;
  (void)vv::vmap([&](auto const& v) {
    std::thread([&] {
      try {
        (void)vv::vmap([&](auto const& u) { return u + v; })(x);
      } catch (vv::transform_error const&) { refused = true; }
    }).join();
    return v;
  })(x);
  (void)vv::grad([&](auto const& v) {
    std::thread([&] { plain = elements(vv::grad([&](auto const& u) { return vv::sum(u * v); })(x)) == std::vector<double>{1, 2, 3}; }).join();
    return vv::sum(v);
  })(x);
  CHECK(refused);
  CHECK(plain);
}

TEST_CASE("threads: first use of an operator on several at once", "[dispatch][tls]") {
  std::atomic<int> right{0};
  on_threads(2, [&](int k) {
    vv::manual_seed(static_cast<std::uint64_t>(k));
    counting m;
    vv::mode_guard const on{m};
    tensor const r = vv::randn({10}, dtype::float64);
    if (element(vv::logsumexp(vv::cat(std::vector<tensor>{r, r}, 0), 0), 0) > element(vv::logsumexp(r, 0), 0) && m.calls > 3) ++right;
  });
  CHECK(right == 2);
}
