// SPDX-License-Identifier: BSL-1.0
// expect: into\(...\) needs variables, or tensor_ref, of the shapes and element types of the function's results
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = vv::fuse([](auto x) { return x + x; });
void right(double const* x, double* y) { f.into(vv::tensor_ref<double, 3>(y))(vv::tensor_ref<double const, 3>(x)); }
#ifdef FAIL
void wrong(double const* x, double const* y) {
  f.into(vv::tensor_ref<double const, 3>(y))(vv::tensor_ref<double const, 3>(x));
}
#endif
