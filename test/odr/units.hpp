// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What both units look at, each with its own instantiations.
#include "../before_main.hpp"

#include <varve/varve.hpp>

#include <array>

namespace vv = varve;

struct report {
  std::array<void const*, 5> objects;
  std::array<void const*, 3> tables;
  void const* handle;
  void const* state;
  double fixed, dynamic;
};
report observe_b();
std::vector<double> before_main_of_b();

struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};

namespace {
std::vector<double> const early = before_main::results();
report observe() {
  auto square = [](auto const& x) { return vv::sum(vv::mul(x, vv::sin(x))); };
  vv::tensor const x({1.0, 2.0});
  vv::tensor const g = vv::grad(square)(x);
  return {{&vv::add, &vv::mul, &vv::sum, &vv::sin, &vv::softmax},
          {vv::ops::find("mul"), vv::ops::find("sum"), vv::ops::find("sin")},
          &vv::handle<vv::mul_t>,
          &vv::this_thread_state,
          vv::grad(square)(vv::array<double, 2>{1, 2})[1],
          vv::sum(g).item<double>()};
}
} // namespace
