// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/mode/flop_counter_mode.hpp>
#include <varve/mode/memory_tracker_mode.hpp>
#include <varve/mode/nan_check_mode.hpp>
#include <varve/varve.hpp>

#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr auto loss = [](auto const& w, auto const& x) { return vv::sum(vv::tanh(vv::mm(w, x))); };
} // namespace

TEST_CASE("flops: the counts of both worlds agree, gradients and mapped functions included", "[mode][flops]") {
  vv::array<float, 2, 3> const w{1, 2, 3, 4, 5, 6};
  vv::array<float, 3, 4> const x{};
  tensor const tw = tensor::from_data(w.data, {2, 3}), tx = vv::zeros({3, 4});
  vv::flop_counter_mode fixed(true), dynamic(true);
  (void)vv::with(fixed, vv::grad(loss), w, x);
  {
    vv::mode_guard const on{dynamic};
    (void)vv::grad(loss)(tw, tx);
  }
  CHECK(fixed.get_flop_counts("mm").flops == 2 * 48);
  CHECK(dynamic.get_flop_counts("mm").flops == 2 * 48);
  CHECK(dynamic.get_flop_counts("tanh").flops == 8);
  CHECK(dynamic.get_flop_counts("tanh").bytes_read == 32);
  CHECK(dynamic.get_total_flops() == fixed.get_total_flops());
  dynamic.reset();
  {
    vv::mode_guard const on{dynamic};
    (void)vv::vmap(vv::grad(loss), vv::in_dims<vv::none, 0>)(tw, vv::zeros({5, 3, 4}));
  }
  CHECK(dynamic.get_flop_counts("mm").flops == 5 * 2 * 48);
}

TEST_CASE("flops: convolutions, forward, transposed and both gradients", "[mode][flops]") {
  tensor const x = vv::ones({2, 4, 8, 8}), w = vv::ones({6, 2, 3, 3}), t = vv::ones({2, 4, 4, 4}),
               v = vv::ones({4, 3, 3, 3});
  vv::flop_counter_mode m;
  vv::mode_guard const on{m};
  (void)vv::conv2d(x, w, vv::none, 2, 1, 1, 2);
  CHECK(m.get_total_flops() == 2 * 2 * 16 * 6 * 2 * 9);
  m.reset();
  (void)vv::conv_transpose2d(t, v, vv::none, 2, 0, 1, 2);
  CHECK(m.get_flop_counts("convolution").flops == 2 * 2 * 16 * 4 * 3 * 9);
  m.reset();
  (void)vv::grad<0, 1>([](auto const& a, auto const& b) { return vv::sum(vv::conv2d(a, b)); })(x,
                                                                                               vv::ones({6, 4, 3, 3}));
  CHECK(m.get_flop_counts("convolution").flops == 3 * 2 * 2 * 36 * 6 * 4 * 9);
}

TEST_CASE("flops: views move nothing, what copies does, in place reads and writes", "[mode][flops]") {
  vv::flop_counter_mode m;
  tensor const x = vv::ones({2, 3}, dtype::float64);
  vv::mode_guard const on{m};
  tensor const t = vv::permute(x, dims{1, 0});
  (void)vv::reshape(x, dims{6});
  CHECK(m.get_total_bytes() == 0);
  (void)vv::reshape(t, dims{6}); // no strides can show it
  CHECK(m.get_flop_counts("reshape").bytes_written == 48);
  (void)vv::add_(x, x);
  CHECK(m.get_flop_counts("add_").bytes_read == 96);
  CHECK(m.get_flop_counts("add_").bytes_written == 48);
  (void)vv::copy_(x, x);
  CHECK(m.get_flop_counts("copy_").bytes_read == 48);
  CHECK(m.get_total_flops() == 0); // contractions only, unless asked
}

TEST_CASE("flops: formulas of one's own, a table, operators of a library that has gone", "[mode][flops]") {
  vv::flop_counter_mode m;
  m.register_flop_formula("mylib::twice",
                          [](vv::call_record const& c) -> vv::index_t { return 7 * vv::numel(c.results[0].sizes); });
  {
    vv::library lib("mylib");
    lib.def("twice(Tensor x) -> Tensor");
    lib.impl("twice", vv::dispatch_key::cpu, [](tensor const& a) -> tensor { return a + a; });
    vv::mode_guard const on{m};
    (void)vv::ops::call("mylib::twice", from({1, 2}, {2}));
  }
  CHECK(m.get_total_flops() == 14);
  CHECK_THAT(m.get_table(), ContainsText(" - mylib::twice") && ContainsText("100.00%") && ContainsText("Global"));
}

TEST_CASE("flops: an exception in the middle counts what was done, and the mode is good for more",
          "[mode][flops][exception]") {
  vv::flop_counter_mode m(true);
  tensor const x = from({1, 2}, {2}), y = from({1, 2, 3}, {3});
  CHECK_THROWS_AS(vv::with(m, [&](auto const& v) { return v * v + y; }, x), vv::shape_error);
  CHECK(m.get_total_flops() == 2);
  CHECK(vv::this_thread_state.quiet());
  (void)vv::with(m, [](auto const& v) { return v * v; }, x);
  CHECK(m.get_total_flops() == 4);
}

TEST_CASE("flops: one counter on several threads", "[mode][flops][tls]") {
  vv::flop_counter_mode m(true);
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back([&] {
      vv::mode_guard const on{m};
      tensor const x = vv::ones({10});
      for (int i = 0; i < 100; ++i) (void)(x * x);
    });
  for (auto& t : all) t.join();
  CHECK(m.get_flop_counts("mul").calls == 400);
  CHECK(m.get_total_flops() == 4000);
}

TEST_CASE("finite: the operator that gave it is named, with its operands", "[mode][nan]") {
  vv::nan_check_mode check;
  tensor const x = from({1, 0, -1}, {3});
  vv::mode_guard const on{check};
  CHECK_THROWS_WITH(vv::log(x), ContainsText("log gave an infinity at element 1 of f64[3]; operands: f64[3] finite"));
  CHECK_THROWS_AS(vv::sqrt(x), vv::non_finite_error);
  CHECK_NOTHROW(vv::exp(x));
  CHECK_NOTHROW(vv::empty({100}));
  CHECK_NOTHROW(vv::gt(x, 0));
  CHECK_NOTHROW(vv::arange(3));
  tensor const bad = from({0, NAN, 1, 2}, {2, 2});
  CHECK_THROWS_WITH(bad + 1,
                    ContainsText("add gave a NaN at element 1 of f64[2, 2]; operands: f64[2, 2] not finite, 1 finite"));
  CHECK_THROWS_WITH(vv::permute(bad, dims{1, 0}), ContainsText("element 2"));
}

TEST_CASE("finite: in gradients and mapped functions, and only what is asked for", "[mode][nan]") {
  vv::nan_check_mode check, nan_only(true, false);
  tensor const x = from({1, 0}, {2});
  auto f = [](auto const& v) { return vv::sqrt(v); }; // finite, but its gradient at 0 is not
  {
    vv::mode_guard const on{check};
    CHECK_NOTHROW(vv::vmap(f)(x));
    CHECK_THROWS_AS(vv::vmap(vv::grad(f))(x), vv::non_finite_error);
    CHECK(vv::this_thread_state.transforms.top == nullptr);
    CHECK_THROWS_WITH(vv::grad([](auto const& v) { return vv::sum(vv::log(v)); })(x), ContainsText("log"));
  }
  CHECK(vv::this_thread_state.quiet());
  vv::mode_guard const on{nan_only};
  CHECK_NOTHROW(vv::log(x));
  CHECK_THROWS_WITH(vv::log(x) - vv::log(x), ContainsText("sub gave a NaN") && ContainsText("not finite"));
}

TEST_CASE("finite: under a pre-dispatch guard through the transforms, and for static values", "[mode][nan]") {
  vv::nan_check_mode check;
  {
    vv::pre_dispatch_guard const on{check};
    CHECK_THROWS_WITH(vv::vmap([](auto const& v) { return vv::log(v); })(from({1, 0}, {2})),
                      ContainsText("log gave an infinity at element 1 of f64[]@1"));
  }
  CHECK_THROWS_WITH(vv::with(
                        check, [](auto v) { return vv::log(v); }, vv::array<double, 2>{1, 0}),
                    ContainsText("log gave an infinity at element 1 of f64[2]"));
}

TEST_CASE("memory: live and peak bytes of what operators allocate, until it is freed", "[mode][memory]") {
  vv::memory_tracker_mode memory;
  tensor const before = vv::ones({1000}, dtype::float64);
  tensor kept;
  {
    vv::mode_guard const on{memory};
    kept = vv::ones({1000}, dtype::float64);
    CHECK(memory.memory_allocated() == 8000);
    {
      tensor const a = kept + kept, view = vv::reshape(a, dims{10, 100});
      CHECK(memory.memory_allocated() == 16000);
      tensor const b = vv::exp(view);
    }
    CHECK(memory.memory_allocated() == 8000);
    CHECK(memory.max_memory_allocated() == 24000);
    CHECK(memory.peak_operator() == "exp");
    (void)vv::add_(kept, before);
    CHECK(memory.max_memory_allocated() == 24000);
    memory.reset_peak_memory_stats();
    (void)vv::sum(kept); // small ones count, too: 8 bytes
    CHECK(memory.max_memory_allocated() == 8008);
    CHECK(memory.peak_operator() == "sum");
  }
  tensor const unseen = kept + kept;
  CHECK(memory.memory_allocated() == 8000);
  CHECK(memory.total_allocated() == 24008);
  kept = tensor();
  CHECK(memory.memory_allocated() == 0);
  CHECK_THAT(memory.table(), ContainsText("exp") && ContainsText("live 0 bytes"));
}

TEST_CASE("memory: what a storage outlives, who frees it, and nested trackers", "[mode][memory][tls]") {
  tensor survivor, given;
  {
    vv::memory_tracker_mode outer, inner;
    {
      vv::mode_guard const a{outer};
      given = vv::zeros({200});
      vv::mode_guard const b{inner};
      vv::mode_guard const twice{inner};
      survivor = vv::ones({100});
    }
    CHECK(outer.memory_allocated() == 1200);
    CHECK(inner.memory_allocated() == 400);
    std::thread([&] { given = tensor(); }).join();
    CHECK(outer.memory_allocated() == 400);
    {
      vv::mode_guard const b{inner}; // the other way round
      vv::mode_guard const a{outer};
      given = vv::zeros({200});
    }
    CHECK(outer.memory_allocated() == 1200);
    CHECK(inner.memory_allocated() == 1200);
  }
  survivor = given = tensor(); // the modes have gone: nothing is touched that has
  CHECK(vv::this_thread_storage_observer == nullptr);
}

TEST_CASE("memory: under transforms, after an exception, on several threads", "[mode][memory][tls][exception]") {
  vv::memory_tracker_mode memory;
  tensor const x = vv::ones({100, 8}), y = from({1, 2, 3}, {3});
  {
    vv::mode_guard const on{memory};
    (void)vv::vmap(vv::grad([](auto const& v) { return vv::sum(vv::exp(v) * v); }))(x);
    CHECK(memory.memory_allocated() == 0);
    CHECK(memory.max_memory_allocated() >= 3 * 3200);
    CHECK_THROWS_AS(vv::exp(x) + y, vv::shape_error);
    CHECK(vv::this_thread_storage_observer == nullptr);
  }
  CHECK(memory.memory_allocated() == 0);
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back([&] {
      vv::mode_guard const on{memory};
      for (int i = 0; i < 50; ++i) (void)vv::exp(vv::exp(x));
    });
  for (auto& t : all) t.join();
  CHECK(memory.memory_allocated() == 0);
  CHECK(memory.total_allocated() >= 4 * 50 * 2 * 3200);
}
