// SPDX-License-Identifier: BSL-1.0
// expect: an argument is neither a tensor nor a static value of the element type and shape of its spec
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = vv::fuse<vv::spec<float, 3>, vv::spec<int>>([](auto x, auto n) { return x * n; });
vv::tensor right(vv::array<float, 3> const& x) { return f(x, 2); }
#ifdef FAIL
vv::tensor wrong(vv::array<float, 3> const& x) { return f(x, 2.7); }
#endif
