// SPDX-License-Identifier: BSL-1.0
// The first sentence says what does not fit, with the sizes; the user's line follows.
// expect: varve: these attributes or operands do not fit these shapes
// expect: ints<3, 4>.*ints<3>
// expect: fuse_of_a_gradient_of_other_shapes.cpp:9:
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto loss = [](auto const& w, auto const& x) { return vv::sum(vv::tanh(vv::matmul(w, x))); };
vv::tensor right(vv::tensor const& w, vv::tensor const& x) {
  return vv::fuse<vv::spec<double, 3, 4>, vv::spec<double, 4>>(vv::grad(loss))(w, x);
}
#ifdef FAIL
vv::tensor wrong(vv::tensor const& w, vv::tensor const& x) {
  return vv::fuse<vv::spec<double, 3, 4>, vv::spec<double, 3>>(vv::grad(loss))(w, x);
}
#endif
