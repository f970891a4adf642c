// SPDX-License-Identifier: BSL-1.0
// expect: the function must return one value
#include <varve/op/operators.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto square = [](auto const& v) { return v * v; };
constexpr auto a = vv::sparsity(square, vv::spec<double>);
#ifdef FAIL
constexpr auto two = [](auto const& v) { return std::pair(v, v * v); };
auto b = vv::sparsity(two)(2.0);
#endif
