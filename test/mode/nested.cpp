// SPDX-License-Identifier: BSL-1.0
// Every mode around every other, over two levels of transforms, thrown through and used again.
#include "../sample/value.hpp"

#include <varve/mode/deterministic_mode.hpp>
#include <varve/mode/flop_counter_mode.hpp>
#include <varve/mode/logging_mode.hpp>
#include <varve/mode/memory_tracker_mode.hpp>
#include <varve/mode/nan_check_mode.hpp>
#include <varve/mode/profiler_mode.hpp>
#include <varve/mode/schema_check_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct interrupted {};
struct throwing : vv::dispatch_mode<throwing> {
  int left = 0;
  tensor process(vv::boxed_op const& op, vv::boxed_args const& args) {
    if (left-- == 0) throw interrupted{};
    return op(args);
  }
};
tensor program(tensor const& x) {
  auto f = [](auto const& v) { return vv::sum(vv::softmax(v * v, 0) * v) + vv::sum(vv::ones({2})); };
  return vv::vmap(vv::grad(f))(x);
}
/// All modes of this folder, and what they have counted.
struct every_mode {
  vv::call_log log{nullptr, false};
  vv::logging_mode<vv::call_log> logging{log};
  vv::flop_counter_mode flops{true};
  vv::profiler_mode profiler;
  vv::nan_check_mode finite;
  vv::schema_check_mode schema;
  vv::deterministic_mode deterministic;
  vv::memory_tracker_mode memory;

  template <class F>
  void for_each(F const& f) {
    f(logging), f(flops), f(profiler), f(finite), f(schema), f(deterministic), f(memory);
  }
};
} // namespace

TEST_CASE("modes in use: each around each other over vmap of grad changes nothing", "[mode][nested]") {
  every_mode a, b;
  tensor const x = from({0.5, -1, 2, 1, 0, 3}, {2, 3}), want = program(x);
  int pairs = 0;
  a.for_each([&](auto& outer) {
    b.for_each([&](auto& inner) {
      vv::mode_guard const on{outer};
      vv::mode_guard const too{inner};
      CHECK(difference(program(x), want) == "");
      ++pairs;
    });
  });
  CHECK(pairs == 49);
  CHECK(vv::this_thread_state.quiet());
  CHECK(vv::this_thread_storage_observer == nullptr);
  CHECK(a.log.lines.size() == b.log.lines.size());
  CHECK(a.flops.get_total_flops() == b.flops.get_total_flops());
  CHECK(a.schema.checked() == b.schema.checked());
  CHECK(a.memory.total_allocated() == b.memory.total_allocated());
  CHECK(a.memory.memory_allocated() == 0);
  CHECK(a.profiler.key_averages().size() == b.profiler.key_averages().size());
}

TEST_CASE("modes in use: all at once, thrown through at every operator, and used again", "[mode][nested][exception]") {
  every_mode all;
  tensor const x = from({0.5, -1, 2, 1, 0, 3}, {2, 3}), want = program(x);
  auto const run = [&](throwing* t) {
    vv::mode_guard const a{all.memory};
    vv::mode_guard const b{all.schema};
    throwing never;
    never.left = -1;
    vv::mode_guard const c{t ? *t : never};
    vv::mode_guard const d{all.logging};
    vv::mode_guard const e{all.flops};
    vv::mode_guard const f{all.profiler};
    vv::mode_guard const g{all.finite};
    vv::mode_guard const h{all.deterministic};
    return program(x);
  };
  int n = 0;
  for (bool thrown = true; thrown; ++n) {
    throwing t;
    t.left = n;
    thrown = false;
    try {
      tensor const y = run(&t);
      CHECK(difference(y, want) == "");
    } catch (interrupted const&) { thrown = true; }
    REQUIRE(vv::this_thread_state.quiet());
    REQUIRE(vv::this_thread_storage_observer == nullptr);
  }
  CHECK(n > 10);
  all.log.clear();
  all.flops.reset();
  CHECK(difference(run(nullptr), want) == "");
  CHECK(static_cast<int>(all.log.lines.size()) == n - 1);
  CHECK(all.flops.total().calls == n - 1);
  CHECK(all.memory.memory_allocated() == 0);
}

TEST_CASE("modes in use: cond reaches each as one call", "[mode][nested]") {
  every_mode all;
  tensor const x = from({1, 2}, {2});
  all.for_each([&](auto& m) {
    vv::mode_guard const on{m};
    auto f = [](auto const& v) {
      return vv::cond(vv::gt(vv::sum(v), 0), [](auto const& u) { return u * u; }, [](auto const& u) { return u; }, v);
    };
    CHECK(elements(f(x)) == std::vector<double>{1, 4});
    CHECK(elements(vv::grad([&](auto const& v) { return vv::sum(f(v)); })(x)) == std::vector<double>{2, 4});
  });
  CHECK(all.flops.get_flop_counts("cond").calls >= 2);
}
