// SPDX-License-Identifier: BSL-1.0
// A library that dlpack.py loads: tensors go to NumPy and come from it by DLPack.
#include <varve/interop/dlpack.hpp>
#include <varve/varve.hpp>

namespace vv = varve;

namespace {
vv::tensor shared; // what both sides see
}

extern "C" {
/// The odd columns of 0 ... 11 in three rows, transposed.
DLManagedTensor* varve_give() {
  shared = vv::reshape(vv::arange(12, vv::dtype::float32), vv::dims{3, 4});
  return vv::to_dlpack(vv::tensor(vv::slice(shared, vv::axis<1>, 1, 4, 2).t()));
}
double varve_element(int row, int column) { return shared[row][column].item(); }
/// Takes an array, doubles it where it lies, and gives its sum; -1 when it is refused.
double varve_take(DLManagedTensor* m) {
  try {
    vv::tensor const x = vv::from_dlpack(m);
    vv::mul_(x, 2);
    return vv::sum(x).item();
  } catch (vv::error const&) { return -1; }
}
}
