// SPDX-License-Identifier: BSL-1.0
// expect: the sizes of a spec must be numbers here; symbolic ones are for trace
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto twice = [](auto x) { return x + x; };
vv::tensor right(vv::tensor const& x) { return vv::fuse<vv::spec<float, 3>>(twice)(x); }
#ifdef FAIL
vv::tensor wrong(vv::tensor const& x) { return vv::fuse<vv::spec<float, vv::dim<"n">>>(twice)(x); }
#endif
