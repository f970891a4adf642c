// SPDX-License-Identifier: BSL-1.0
// expect: this operator has no emission; use it outside of fuse
#include <varve/varve.hpp>
namespace vv = varve;

using four = vv::array<float, 4>;
constexpr auto right_rows = [](auto x) { return vv::reshape(x, vv::shape<2, 2>); };
auto right(four const& x) { return vv::fuse(right_rows, vv::table_driven)(x); }
#ifdef FAIL
constexpr auto wrong_rows = [](auto x) { return vv::as_strided(x, vv::shape<2, 2>, vv::shape<2, 1>); };
auto wrong(four const& x) { return vv::fuse(wrong_rows, vv::table_driven)(x); }
#endif
