// SPDX-License-Identifier: BSL-1.0
// expect: a symbolic size became a number of the function; use mean, or pass the count
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto rows = vv::spec<float, vv::dim<"n">, 3>;
constexpr auto average = [](auto x) {
  return vv::sum(x, vv::axis<0>) / static_cast<double>(vv::to_dims(vv::shape_of(x))[0]);
};
vv::tensor right(vv::tensor const& x) {
  return vv::fuse<rows>([](auto y) { return vv::mean(y, vv::axis<0>); })(x);
}
#ifdef FAIL
void wrong(vv::tensor const& x) { (void)vv::fuse<rows>(average)(x); }
#endif
