// SPDX-License-Identifier: BSL-1.0
// expect: sparse_jacobian: x must be one value
#include <varve/op/operators.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto product = [](auto const& v) { return std::get<0>(v) * std::get<1>(v); };
constexpr auto square = [](auto const& v) { return v * v; };
constexpr auto a = vv::sparsity(square, vv::spec<double>);
#ifdef FAIL
auto b = vv::sparsity(product)(std::tuple(2.0, 3.0));
#endif
