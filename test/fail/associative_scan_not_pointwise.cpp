// SPDX-License-Identifier: BSL-1.0
// expect: associative_scan: this function is not pointwise; use combine_mode::generic
// scenario: LP-S16
#include <varve/loop/associative_scan.hpp>
#include <varve/op/matmul.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 2, 2> xs{1, 1, 0, 1, 2, 0, 0, 1};
constexpr auto product = [](auto const& a, auto const& b) { return vv::matmul(a, b); };
constexpr auto right = vv::associative_scan<0, false, vv::combine_mode::generic>(product, xs);
#ifdef FAIL
constexpr auto wrong = vv::associative_scan(product, xs);
#endif
