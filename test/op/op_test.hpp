// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Tensors of numbers, and functions of bytes in every way that tensors know.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace op_test {
using namespace sample;
namespace vv = varve;
inline constexpr double NaN = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
template <class T>
tensor of(std::initializer_list<T> v) {
  return tensor::from_data(v.begin(), dims{static_cast<vv::index_t>(v.size())});
}
/// f on bytes, in every way that tensors know; and as a static value, fused too.
template <class F>
void check_bytes(F const& f, dtype type, std::vector<double> const& right) {
  tensor const x = of<std::uint8_t>({0, 128, 255});
  auto const check = [&](tensor const& y) {
    CHECK(y.dtype() == type);
    CHECK(elements(y) == right);
  };
  check(f(x));
  check(vv::vmap(f)(x));
  check(vv::reshape(vv::vmap(vv::vmap(f))(vv::reshape(x, dims{1, 3})), dims{3}));
  check(vv::compile(f)(x));
  check(vv::functionalize(f)(x));
  vv::graph const g = vv::make_fx(f)(x);
  check(vv::interpret(g, vv::boxed_args(x))[0]);
  check(vv::fuse(g)(vv::boxed_args(x))[0]);
  check(vv::fuse<vv::spec<std::uint8_t, 3>>(f)(x));
  vv::array<std::uint8_t, 3> const s{0, 128, 255};
  auto const same = [&](auto const& y) {
    for (int k = 0; k < 3; ++k) CHECK(static_cast<double>(y.data[k]) == right[static_cast<std::size_t>(k)]);
  };
  same(f(s));
  same(vv::vmap(f)(s));
  same(vv::fuse(f)(s));
  same(vv::fuse(vv::vmap(f))(s));
}
} // namespace op_test
