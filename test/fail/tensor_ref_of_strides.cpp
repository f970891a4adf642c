// SPDX-License-Identifier: BSL-1.0
// expect: tensor_ref: what has strides is not taken for row-major memory; pass its pointer
#include <varve/value/tensor_ref.hpp>
namespace vv = varve;

struct tensor_of_somebody {
  float* data() const;
  std::size_t size() const;
  std::ptrdiff_t const* strides() const;
};

auto right(tensor_of_somebody const& t, vv::dims const& sizes) {
  return vv::tensor_ref<float, vv::dyn, vv::dyn>(t.data(), sizes, {t.strides()[0], t.strides()[1]});
}
#ifdef FAIL
auto wrong(tensor_of_somebody const& t) { return vv::tensor_ref<float, 2, 3>(t); }
#endif
