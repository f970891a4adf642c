// SPDX-License-Identifier: BSL-1.0
// expect: write range<1, 5> for slice.1, 5.
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 3> a{1, 2, 3};
static_assert(vv::equal(a.at(vv::range<1, 3>), vv::array<double, 2>{2, 3}));
#ifdef FAIL
constexpr auto wrong = a.at(vv::slice(1, 3));
#endif
