// SPDX-License-Identifier: BSL-1.0
// expect: sparse_jacobian: on arrays the function
#include <varve/op/operators.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr vv::array<double, 3> x{1, 2, 3};
constexpr auto square = [](auto const& v) { return v * v; };
constexpr auto a = vv::sparse_jacobian(square)(x);
#ifdef FAIL
double by = 2;
auto b = vv::sparse_jacobian([c = by](auto const& v) { return v * c; })(x);
#endif
