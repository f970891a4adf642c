// SPDX-License-Identifier: BSL-1.0
// expect: jet: this operator with functions has no rule for jet
#include <varve/jet/jet.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 3> xs{1, 2, 3};
constexpr auto step = [](auto const& c, auto const& x) { return std::pair(c * x, vv::none); };
constexpr auto square = [](auto const& x) { return x * x; };
constexpr auto a = vv::jet(square, std::tuple{2.0}, std::tuple{1.0});
#ifdef FAIL
constexpr auto product = [](auto const& x) { return vv::scan(step, x, xs).first; };
constexpr auto b = vv::jet(product, std::tuple{2.0}, std::tuple{1.0});
#endif
