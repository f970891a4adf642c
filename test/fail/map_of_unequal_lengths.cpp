// SPDX-License-Identifier: BSL-1.0
// expect: lengths_differ
// scenario: LP-S17
#include <varve/loop/map.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto add = [](auto const& x) { return x.first + x.second; };
constexpr auto right = vv::map(add, std::pair(vv::array<double, 3>{}, vv::array<double, 3>{}));
#ifdef FAIL
constexpr auto wrong = vv::map(add, std::pair(vv::array<double, 3>{}, vv::array<double, 4>{}));
#endif
