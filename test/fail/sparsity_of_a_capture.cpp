// SPDX-License-Identifier: BSL-1.0
// expect: sparsity: for specs the function must capture nothing
#include <varve/op/operators.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto square = [](auto const& v) { return v * v; };
constexpr auto a = vv::sparsity(square, vv::spec<double, 3>);
#ifdef FAIL
auto b = vv::sparsity([c = 2.0](auto const& v) { return v * c; }, vv::spec<double, 3>);
#endif
