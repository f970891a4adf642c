// SPDX-License-Identifier: BSL-1.0
// expect: tensor_ref: the view has other extents than the tensor_ref
#include <varve/value/tensor_ref.hpp>
namespace vv = varve;

struct span {
  static constexpr std::size_t rank() { return 2; }
  static constexpr std::size_t static_extent(std::size_t r) { return r == 0 ? 2 : static_cast<std::size_t>(-1); }
  float* data_handle() const;
  int extents() const;
  std::size_t extent(std::size_t) const, stride(std::size_t) const;
};

auto right(span const& s) { return vv::tensor_ref<float, 2, 5>(s); }
#ifdef FAIL
auto wrong(span const& s) { return vv::tensor_ref<float, 5, 2>(s); }
#endif
