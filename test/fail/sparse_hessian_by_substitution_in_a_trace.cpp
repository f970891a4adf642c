// SPDX-License-Identifier: BSL-1.0
// expect: by_substitution has no place in a trace
#include <varve/fuse/fuse.hpp>
#include <varve/op/all.hpp>
#include <varve/sparse.hpp>
namespace vv = varve;

constexpr auto cubes = [](auto const& v) { return vv::sum(v * v * v); };
constexpr vv::array<double, 3> x{1, 2, 3};
auto a = vv::fuse([](auto const& v) { return vv::sparse_hessian(cubes).values(v); })(x);
#ifdef FAIL
auto b = vv::fuse([](auto const& v) { return vv::sparse_hessian(cubes, vv::by_substitution).values(v); })(x);
#endif
