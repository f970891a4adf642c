// SPDX-License-Identifier: BSL-1.0
// expect: a call between processes has no place in a graph that the compiler makes
#include <varve/interop/mpi.hpp>
#include <varve/trace/trace.hpp>
namespace vv = varve;

double on_numbers(double x) { return vv::mpi::all_reduce(x); }
#ifdef FAIL
constexpr auto g = vv::trace([](auto x) { return vv::mpi::all_reduce(x) * 2; }, vv::spec<double>);
#endif
