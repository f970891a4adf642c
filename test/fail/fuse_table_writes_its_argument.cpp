// SPDX-License-Identifier: BSL-1.0
// expect: the function writes into its argument; write into a clone of it, and return that
#include <varve/varve.hpp>
namespace vv = varve;

template <bool Clone>
constexpr auto doubled = [](auto const& x) {
  auto y = Clone ? vv::clone(x) : x;
  return vv::mul_(y, 2.0);
};
vv::tensor right(vv::tensor const& x) { return vv::fuse<vv::spec<double, 3>>(doubled<true>, vv::table_driven)(x); }
#ifdef FAIL
vv::tensor wrong(vv::tensor const& x) { return vv::fuse<vv::spec<double, 3>>(doubled<false>, vv::table_driven)(x); }
#endif
