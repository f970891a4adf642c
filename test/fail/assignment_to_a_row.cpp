// SPDX-License-Identifier: BSL-1.0
// expect: cannot be assigned to; build the value of its parts, by stack, cat or where
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 2> a{1, 2, 3, 4};
static_assert(vv::equal(a[1], vv::array<double, 2>{3, 4}));
#ifdef FAIL
inline void write(vv::array<double, 2, 2>& m) { m[1] = m[0]; }
#endif
