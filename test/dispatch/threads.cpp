// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/dispatch/parallel_for.hpp>
#include <varve/varve.hpp>

#include <atomic>
#include <chrono>
#include <future>
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
        good =
            good && difference(vv::vmap(vv::grad([](auto const& v) { return v * v; }))(x), from({1, -2, 4}, {3})) == "";
      }
    }
    if (good && vv::this_thread_state.quiet()) ++right;
  });
  CHECK(right == 8);
  CHECK(mine.calls == 0);
}

TEST_CASE("threads: tensors are shared, and freed by whoever is last", "[dispatch][tls]") {
  std::vector<tensor> shared;
  for (int k = 0; k < 64; ++k)
    shared.push_back(
        vv::full({k % 5 * 20 + 1}, static_cast<double>(k), dtype::float64)); // within the block and outside
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

TEST_CASE("threads: a value of a transform at work is used on another thread with that thread's state, or not at all",
          "[dispatch][tls]") {
  tensor const x = from({1, 2, 3}, {3});
  auto const elsewhere = [](auto const& f) { return std::async(std::launch::async, f).get(); };
  CHECK_THROWS_AS(vv::vmap([&](tensor const& v) {
                    return elsewhere([&] { return vv::vmap([&](tensor const& u) { return u + v; })(x); });
                  })(x),
                  vv::transform_error);
  // A gradient would be missing without a word.
  auto const square = [&](tensor const& v) { return vv::sum(elsewhere([&] { return v * v; })); };
  CHECK_THROWS_AS(vv::grad(square)(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::grad(square)(x), ContainsText("another thread") && ContainsText("carry"));
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) {
                    return vv::sum(
                        elsewhere([&] { return vv::grad([&](tensor const& u) { return vv::sum(u * v); })(x); }));
                  })(x),
                  vv::transform_error);
  CHECK_THROWS_AS(
      vv::jvp([&](tensor const& v) { return elsewhere([&] { return v * v; }); }, std::tuple(x), std::tuple(x)),
      vv::transform_error);
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(elsewhere(vv::carry([&] { return v * v; }))); })(x)) ==
        std::vector<double>{2, 4, 6});
  // With a level of its own on top, and again after that.
  CHECK(elements(vv::grad([&](tensor const& v) {
          tensor const inner =
              elsewhere(vv::carry([&] { return vv::grad([&](tensor const& u) { return vv::sum(u * u * v); })(v); }));
          CHECK_THROWS_AS(elsewhere([&] { return v + 1; }), vv::transform_error);
          return vv::sum(inner);
        })(x)) == std::vector<double>{4, 8, 12});
  // Its constants have nothing to lose.
  CHECK(elements(vv::grad([&](tensor const& v) {
          tensor const two = vv::full({3}, 2.0, dtype::float64), six = elsewhere([&] { return two * 3; });
          return vv::sum(v * six);
        })(x)) == std::vector<double>{6, 6, 6});
  // A value that another thread's transform has left behind is what it holds.
  tensor left;
  elsewhere([&] { return vv::grad([&](tensor const& v) { return vv::sum(left = v * 2); })(x); });
  CHECK(elements(left + 1) == std::vector<double>{3, 5, 7});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("threads: first use of an operator on several at once", "[dispatch][tls]") {
  std::atomic<int> right{0};
  on_threads(2, [&](int k) {
    vv::manual_seed(static_cast<std::uint64_t>(k));
    counting m;
    vv::mode_guard const on{m};
    tensor const r = vv::randn({10}, dtype::float64);
    if (element(vv::logsumexp(vv::cat(std::vector<tensor>{r, r}, 0), 0), 0) > element(vv::logsumexp(r, 0), 0) &&
        m.calls > 3)
      ++right;
  });
  CHECK(right == 2);
}

namespace {
struct shared_counting : vv::dispatch_mode<shared_counting> { // bears calls from several threads
  std::atomic<int> calls{0};
  tensor process(vv::boxed_op op, vv::boxed_args const& args) {
    ++calls;
    return op(args);
  }
};
} // namespace

TEST_CASE("threads: a snapshot carries modes, keys and transforms to another thread and back",
          "[dispatch][tls]") { // DK-10, MD-4
  tensor const x = from({1, 2, 3}, {3});
  shared_counting m;
  auto f = [&] { return vv::sum(x * x); };
  {
    vv::mode_guard const on{m};
    vv::exclude_keys const off(vv::dispatch_key::autocast);
    CHECK(std::async(std::launch::async, f).get().item<double>() == 14); // without: not seen
    CHECK(m.calls == 0);
    CHECK(std::async(std::launch::async, vv::carry(f)).get().item<double>() == 14);
    CHECK(m.calls == 2);
    bool excluded = false, after = false;
    vv::thread_snapshot const s;
    std::thread([&] {
      try {
        vv::restored const here(s);
        excluded = vv::this_thread_state.excluded.has(vv::dispatch_key::autocast) && vv::is_mode_active();
        throw 1;
      } catch (int) {}
      after = vv::this_thread_state.quiet();
    }).join();
    CHECK(excluded);
    CHECK(after);
  }
  // A value mapped here is known there.
  tensor const y = vv::vmap(
      [](tensor const& v) { return std::async(std::launch::async, vv::carry([&] { return v * v; })).get(); })(x);
  CHECK(elements(y) == std::vector<double>{1, 4, 9});
}

TEST_CASE("threads: parallel_for runs its parts under the caller's state", "[dispatch][tls]") {
  tensor const x = from({1, 2, 3}, {3});
  shared_counting m;
  std::vector<int> hits(1000, 0);
  {
    vv::mode_guard const on{m};
    vv::parallel_for(
        0, 1000, 10,
        [&](vv::index_t from, vv::index_t to) {
          for (auto k = from; k < to; ++k) {
            ++hits[static_cast<std::size_t>(k)];
            if (k % 100 == 0) (void)(x + x);
          }
        },
        4);
  }
  CHECK(std::count(hits.begin(), hits.end(), 1) == 1000);
  CHECK(m.calls == 10);
  CHECK_THROWS_WITH(vv::parallel_for(
                        0, 8, 1,
                        [](vv::index_t from, vv::index_t) {
                          if (from) throw std::runtime_error("part " + std::to_string(from));
                        },
                        4),
                    ContainsText("part 2"));
  int calls = 0;
  vv::parallel_for(3, 3, 1, [&](auto, auto) { ++calls; });
  CHECK(calls == 0);
  // A tape is written by one thread only.
  CHECK(elements(vv::grad([&](tensor const& v) {
          std::vector<tensor> parts(4);
          vv::parallel_for(
              0, 4, 1,
              [&](vv::index_t from, vv::index_t to) {
                for (auto k = from; k < to; ++k) parts[static_cast<std::size_t>(k)] = vv::sum(v * v);
              },
              4);
          return parts[0] + parts[1] + parts[2] + parts[3];
        })(x)) == std::vector<double>{8, 16, 24});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("threads: different modes around shared tensors, while kernels come and go", "[dispatch][tls]") {
#if defined(__SANITIZE_THREAD__)
  constexpr auto duration = std::chrono::seconds(10);
#else
  constexpr auto duration = std::chrono::milliseconds(300);
#endif
  std::vector<tensor> shared;
  for (int k = 0; k < 8; ++k) shared.push_back(from({1.0 * k, 2}, {2}));
  auto const end = std::chrono::steady_clock::now() + duration;
  std::atomic<int> right{0};
  std::atomic<long> rounds{0};
  (void)(shared[0] * shared[1]);
  on_threads(8, [&](int k) {
    bool good = true;
    for (int round = 0; good && std::chrono::steady_clock::now() < end; ++round, ++rounds) {
      tensor const &a = shared[static_cast<std::size_t>((k + round) % 8)], &b = shared[static_cast<std::size_t>(k)];
      counting one, two;
      {
        vv::mode_guard const outer{one};
        if (round % 3 == 0) {
          vv::infra_mode_guard const infra{vv::infra_mode::fake, two};
          good = good && element(vv::grad([&](tensor const& v) { return vv::sum(v * a); })(b), 1) == 2;
        } else if (round % 3 == 1) {
          vv::disable_modes const none;
          good = good && element(a + b, 1) == 4;
        } else {
          vv::mode_guard const inner{two};
          good = good && element(vv::vmap([](tensor const& v) { return v + 1; })(a), 1) == 3 && two.calls == one.calls;
        }
      }
      if (k == 0 && round % 16 == 0) { // registering is safe against calls on other threads
        vv::library lib("aten");
        lib.impl("mul", vv::dispatch_key::inplace_or_view,
                 [](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& x) -> tensor {
                   return vv::redispatch(op, keys.below(vv::dispatch_key::inplace_or_view), x);
                 });
        good = good && element(a * b, 1) == 4;
      }
      good = good && vv::this_thread_state.quiet();
    }
    if (good) ++right;
  });
  CHECK(right == 8);
  CHECK(rounds > 8);
}
