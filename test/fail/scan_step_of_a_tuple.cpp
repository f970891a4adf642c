// SPDX-License-Identifier: BSL-1.0
// expect: scan: the step must give a std::pair: what is carried on, and the outputs \(or varve::none\)
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<float, 3> xs{1, 2, 3};
constexpr auto right = vv::scan([](auto c, auto x) { return std::pair(c + x, c); }, 0.0f, xs);
#ifdef FAIL
constexpr auto wrong = vv::scan([](auto c, auto x) { return std::tuple(c + x, c); }, 0.0f, xs);
#endif
