// SPDX-License-Identifier: BSL-1.0
// expect: associative_scan: the function must give values of the shapes and dtypes that it takes
#include <varve/loop/associative_scan.hpp>
#include <varve/op/operators.hpp>
#include <varve/op/sum.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 2> xs{};
constexpr auto total = [](auto const& a, auto const& b) { return vv::sum(a + b); };
constexpr auto right = vv::associative_scan([](auto const& a, auto const& b) { return a + b; }, xs);
#ifdef FAIL
constexpr auto wrong = vv::associative_scan<0, false, vv::combine_mode::generic>(total, xs);
#endif
