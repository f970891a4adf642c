// SPDX-License-Identifier: BSL-1.0
// expect: column-major; make it RowMajor, view its transpose
#include <varve/value/tensor_ref.hpp>
namespace vv = varve;

template <bool RowMajor>
struct matrix {
  enum { RowsAtCompileTime = 2, ColsAtCompileTime = 3, IsRowMajor = RowMajor };
  float* data() const;
  int rows() const, cols() const, innerStride() const, outerStride() const;
};

auto right(matrix<true> const& m) { return vv::tensor_ref(m); }
auto strides_are_kept(matrix<false> const& m) { return vv::tensor_ref<float, vv::dyn, 3>(m); }
#ifdef FAIL
auto wrong(matrix<false> const& m) { return vv::tensor_ref(m); }
#endif
