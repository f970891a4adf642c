// SPDX-License-Identifier: BSL-1.0
// Backward from several threads (semantics AG-7).
#include "autograd_test.hpp"

#include <atomic>
#include <thread>

using namespace autograd_test;

namespace {
template <class F>
void in_threads(int n, F const& f) {
  std::vector<std::thread> all;
  for (int k = 0; k < n; ++k) all.emplace_back([&f, k] { f(k); });
  for (auto& t : all) t.join();
}
} // namespace

TEST_CASE("threads: leaves that graphs of several threads share collect the exact sum", "[autograd][tls]") {
  constexpr int threads = 4, runs = 50;
  tensor const x = leaf({1, 2}), w = leaf(3);
  in_threads(threads, [&](int k) {
    for (int i = 0; i < runs; ++i) vv::sum(x * w * static_cast<double>(k + 1)).backward();
  });
  CHECK(grad_of(x) == list{3.0 * runs * 10, 3.0 * runs * 10});
  CHECK(grad_of(w) == list{3.0 * runs * 10});
}

TEST_CASE("threads: one graph run from several threads", "[autograd][tls]") {
  constexpr int threads = 4, runs = 25;
  tensor const x = leaf({0.5, 1});
  tensor const shared = vv::exp(x) * x; // recorded once
  tensor const y = vv::sum(shared * shared);
  tensor const expected = vv::autograd::grad<>({y}, {x}, {}, {.retain_graph = true})[0];
  std::vector<int> wrong(threads, 0);
  in_threads(threads, [&](int k) {
    for (int i = 0; i < runs; ++i) {
      tensor const g = vv::autograd::grad<>({y}, {x}, {}, {.retain_graph = true})[0];
      wrong[static_cast<std::size_t>(k)] += elements(g) != elements(expected);
      y.backward({}, true);
      tensor const own = vv::sum(shared * static_cast<double>(k)); // grown further by each thread
      own.backward({}, true);
    }
  });
  CHECK(wrong == std::vector<int>(threads, 0));
  auto const per = elements(vv::autograd::grad<>({vv::sum(shared)}, {x})[0]);
  for (index_t k = 0; k < 2; ++k)
    CHECK(element(x.grad(), k) ==
          Approx(threads * runs * element(expected, k) + 6 * runs * per[static_cast<std::size_t>(k)]));
}

TEST_CASE("threads: grad mode is the thread's own, and a graph may be freed elsewhere", "[autograd][tls]") {
  tensor const x = leaf(2);
  tensor far;
  {
    vv::no_grad const off;
    std::thread([&] {
      far = x;
      for (int k = 0; k < 1000; ++k) far = far * 1;
    }).join();
    CHECK_FALSE(vv::is_grad_enabled());
  }
  CHECK(far.requires_grad());
  far.backward();
  CHECK(grad_of(x) == list{1});
  std::thread([f = std::move(far)]() mutable { f = tensor(); }).join();
  CHECK(thread_is_clean());
}

TEST_CASE("threads: hooks run in the thread of the run, nested runs meet on one leaf", "[autograd][tls][hook]") {
  constexpr int threads = 4;
  tensor const x = leaf(1), w = leaf(1);
  std::vector<int> own(threads, 0);
  in_threads(threads, [&](int k) {
    auto const id = std::this_thread::get_id();
    for (int i = 0; i < 20; ++i) {
      tensor const a = x * 2;
      a.register_hook([&](tensor const&) {
        own[static_cast<std::size_t>(k)] += std::this_thread::get_id() == id;
        vv::enable_grad const on;
        (w * 3).backward();
      });
      (a * 1).backward();
    }
  });
  CHECK(own == std::vector<int>(threads, 20));
  CHECK(grad_of(x) == list{2 * 20 * threads});
  CHECK(grad_of(w) == list{3 * 20 * threads});
}

TEST_CASE("threads: the history of a view is found by whoever asks first", "[autograd][tls][view]") { // AG-7, AG-15
  constexpr int threads = 4;
  for (int round = 0; round < 50; ++round) {
    tensor const x = leaf({1, 2, 3, 4});
    tensor const a = x * 1, v = vv::slice(a, 0, 1, 3), w = vv::slice(v, 0, 0, 1);
    vv::mul_(a, 3); // the views do not know yet
    std::vector<std::string> names(threads);
    std::vector<int> right(threads, 0);
    in_threads(threads, [&](int k) {
      auto& ok = right[static_cast<std::size_t>(k)];
      ok = v.requires_grad() && !v.is_leaf() && !w.is_leaf() && v.output_nr() == 0;
      names[static_cast<std::size_t>(k)] = v.grad_fn().name();
      auto const g = vv::autograd::grad<>({vv::sum(v * v) + vv::sum(w)}, {x}, {}, {.retain_graph = true})[0];
      ok = ok && elements(g) == list{0, 2 * 9 * 2 + 3, 2 * 9 * 3, 0};
    });
    CHECK(right == std::vector<int>(threads, 1));
    CHECK(names == std::vector<std::string>(threads, names[0]));
  }
}

namespace {
/// Looks at the gradient of a leaf at every operator, and adds to it once.
struct meddling : vv::dispatch_mode<meddling> {
  tensor const& leaf;
  tensor const more = vv::sum(leaf * 100); // recorded beforehand: below autograd nothing is
  bool added = false;
  explicit meddling(tensor const& l) : leaf(l) {}
  auto process(auto op, auto const&... args) {
    (void)leaf.grad();
    if (!added && std::string(op.name()).substr(0, 3) == "add") {
      added = true;
      more.backward();
    }
    return op(args...);
  }
};
} // namespace

TEST_CASE("threads: what sees the addition to a gradient may ask for it and add to it",
          "[autograd][tls][hook]") { // AG-7, AG-8
  constexpr int threads = 4;
  for (bool create : {false, true}) {
    tensor const x = leaf({1, 2});
    std::atomic<int> defined = 0;
    x.register_post_accumulate_grad_hook(
        [&](tensor const& l) { defined += l.grad().defined(); }); // hooks run when the lock is free again
    std::vector<int> looked(threads, 0);
    vv::sum(x).backward();
    in_threads(threads, [&](int k) {
      meddling m(x);
      vv::mode_guard const on{m};
      for (int i = 0; i < 10; ++i) vv::sum(x * 2).backward({}, false, create);
      looked[static_cast<std::size_t>(k)] = m.added;
    });
    CHECK(looked == std::vector<int>(threads, 1));
    CHECK(defined == 1 + threads * 11);
    CHECK(elements(x.grad().detach()) == list{1 + threads * (10 * 2 + 100), 1 + threads * (10 * 2 + 100)});
    x.zero_grad();
  }
}
