// SPDX-License-Identifier: BSL-1.0
/// @file
/// `clamp` of tensors that nothing watches is one pass; what gradients are recorded of is the composition: the same.
#include <varve/varve.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

namespace {
template <class T>
tensor numbers(vv::dims const& sizes) {
  tensor t = vv::empty(sizes, vv::dtype_of_type<T>());
  T const special[] = {T(0),
                       T(-0.0),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       T(1),
                       T(-1),
                       T(0.5)};
  for (vv::index_t k = 0; k < t.numel(); ++k)
    t.data<T>()[k] = k % 3 == 0 ? special[k / 3 % 8] : static_cast<T>(3 * std::sin(static_cast<double>(k)));
  return t;
}
bool same(tensor const& a, tensor const& b) {
  tensor const x = vv::contiguous(vv::detach(a)), y = vv::contiguous(vv::detach(b));
  if (!(x.sizes() == y.sizes()) || x.dtype() != y.dtype()) return false;
  bool r = true;
  vv::on_dtype(x.dtype(), "same", [&]<class T>() {
    for (vv::index_t k = 0; k < x.numel(); ++k) {
      T const u = x.data<T>()[k], v = y.data<T>()[k];
      r = r && ((u == v && std::signbit(static_cast<double>(u)) == std::signbit(static_cast<double>(v))) ||
                (u != u && v != v));
    }
  });
  return r;
}
template <class T>
void check(tensor const& x) {
  tensor recorded = vv::clone(x);
  recorded.requires_grad_();
  double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  double const bounds[] = {-1, 0, -0.0, 0.5, 2, inf, -inf, nan, 1e300};
  for (double low : bounds) {
    CHECK(same(vv::clamp(x, low), vv::clamp(recorded, low)));
    CHECK(same(vv::clamp(x, vv::none, low), vv::clamp(recorded, vv::none, low)));
    for (double high : bounds) CHECK(same(vv::clamp(x, low, high), vv::clamp(recorded, low, high)));
    CHECK(same(vv::clamp(x, low, 1), vv::clamp(recorded, low, 1)));
    CHECK(same(vv::clamp(x, -1, static_cast<float>(low)), vv::clamp(recorded, -1, static_cast<float>(low))));
  }
}
} // namespace

TEST_CASE("clamp: one pass equals the composition", "[op][clamp]") {
  for (vv::dims const& sizes : {vv::dims{}, vv::dims{0}, vv::dims{7}, vv::dims{16}, vv::dims{300}, vv::dims{5, 70}}) {
    check<float>(numbers<float>(sizes));
    check<double>(numbers<double>(sizes));
  }
  check<float>(vv::transpose(numbers<float>({9, 40})));
  check<double>(vv::slice(numbers<double>({9, 40}), 1, 1, 40, 3));
}
