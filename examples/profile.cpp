// SPDX-License-Identifier: BSL-1.0
// The modes that come with varve, on one training step of a small network: what it calls, what it costs, how long it
// takes. The trace opens in https://ui.perfetto.dev.
// output: \$[0-9]+: f32\[16, 8\] = mm\(\$[0-9]+, \$[0-9]+
// output: \$[0-9]+ = add_\(\$[0-9]+, \$[0-9]+\)   # writes \$[0-9]+
// output: mm +5 +2816 +100
// output: peak [0-9]+ bytes
// output: backward .* 3
// output: profile.json: [1-9][0-9]+ events
// output: caught: varve: log gave an infinity at element 0 of f32\[\]; operands: f32\[\] finite
#include <varve/mode/flop_counter_mode.hpp>
#include <varve/mode/logging_mode.hpp>
#include <varve/mode/memory_tracker_mode.hpp>
#include <varve/mode/nan_check_mode.hpp>
#include <varve/mode/profiler_mode.hpp>
#include <varve/varve.hpp>

#include <cstdio>
#include <fstream>
#include <string>

namespace vv = varve;

constexpr auto loss = [](auto const& w, auto const& v, auto const& x, auto const& y) {
  auto const e = vv::sub(vv::mm(vv::tanh(vv::mm(x, w)), v), y);
  return vv::mean(vv::mul(e, e));
};

int main() {
  vv::manual_seed(1);
  vv::tensor const w = vv::randn({4, 8}), v = vv::randn({8, 1}), x = vv::randn({16, 4}), y = vv::randn({16, 1});
  auto const step = [&] {
    auto const [dw, dv] = vv::grad(loss, vv::argnums<0, 1>)(w, v, x, y);
    vv::add_(w, vv::mul(dw, -0.1));
    vv::add_(v, vv::mul(dv, -0.1));
  };

  // Which operators? Every line is one call; tensors have numbers.
  vv::call_log log;
  vv::logging_mode logging{log};
  {
    vv::mode_guard const on{logging};
    step();
  }
  std::fputs(log.text().c_str(), stdout);

  // What do they cost? Modes nest.
  vv::flop_counter_mode flops;
  vv::memory_tracker_mode memory;
  {
    vv::mode_guard const counting{flops};
    vv::mode_guard const tracking{memory};
    step();
  }
  std::printf("\n%s\n%s\n", flops.get_table().c_str(), memory.table().c_str());

  // How long do they take?
  {
    vv::profiler_mode profiler("profile.json", {.record_shapes = true, .with_flops = true});
    vv::mode_guard const on{profiler};
    for (int k = 0; k < 3; ++k) {
      auto const span = profiler.record_function("backward");
      step();
    }
    std::printf("%s", profiler.key_averages_table().c_str());
  }
  std::ifstream trace("profile.json");
  int events = 0;
  for (std::string line; std::getline(trace, line);) events += line.rfind("{\"name\":", 0) == 0;
  std::printf("profile.json: %d events\n", events);

  // Where does the first number go wrong?
  try {
    vv::nan_check_mode check;
    vv::mode_guard const on{check};
    (void)vv::grad([](auto const& u) { return vv::log(vv::sum(u)); })(vv::zeros({3}));
  } catch (vv::non_finite_error const& e) { std::printf("caught: %s\n", e.what()); }
}
