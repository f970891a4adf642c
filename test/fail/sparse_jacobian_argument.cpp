// SPDX-License-Identifier: BSL-1.0
// expect: sparse_jacobian: the number of an argument must name an existing one
#include <varve/op/operators.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto product = [](auto const& a, auto const& x) { return a * x; };
constexpr vv::array<double, 2> v{1, 2};
constexpr auto a = vv::sparse_jacobian<1>(product)(2.0, v);
#ifdef FAIL
auto b = vv::sparse_jacobian<2>(product)(2.0, v);
#endif
