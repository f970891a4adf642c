// SPDX-License-Identifier: BSL-1.0
// expect: table_driven: the sizes of a spec must be numbers
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto twice = [](auto x) { return x + x; };
vv::tensor right(vv::tensor const& x) { return vv::fuse<vv::spec<float, 3>>(twice, vv::table_driven)(x); }
#ifdef FAIL
vv::tensor wrong(vv::tensor const& x) { return vv::fuse<vv::spec<float, vv::dim<"n">>>(twice, vv::table_driven)(x); }
#endif
