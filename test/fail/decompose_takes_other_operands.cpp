// SPDX-License-Identifier: BSL-1.0
// expect: decompose: the function must take the operands of its operator, or attributes const& and the operands
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto g = vv::trace([](auto x) { return vv::sub(x, 1); }, vv::spec<float, 3>);
constexpr auto right = vv::freeze([] {
  return vv::decompose(
      g, vv::decomposition<vv::sub_t>([](auto const& x, auto const& y) { return vv::add(x, vv::neg(y)); }));
});
#ifdef FAIL
constexpr auto wrong =
    vv::freeze([] { return vv::decompose(g, vv::decomposition<vv::sub_t>([](auto const& x) { return x; })); });
#endif
