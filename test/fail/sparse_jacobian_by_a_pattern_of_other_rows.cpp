// SPDX-License-Identifier: BSL-1.0
// expect: the given pattern needs a row for each element of the result
#include <varve/op/all.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto squares = [](auto const& v) { return v * v; };
constexpr vv::array<double, 3> x{1, 2, 3};
auto a = vv::sparse_jacobian(squares, [] { return vv::sparsity_pattern(3, 3); })(x);
#ifdef FAIL
auto b = vv::sparse_jacobian(squares, [] { return vv::sparsity_pattern(4, 3); })(x);
#endif
