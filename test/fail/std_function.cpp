// SPDX-License-Identifier: BSL-1.0
// expect: taken for a plain double; write auto for double .*sin.x. with using std::sin
#include <varve/varve.hpp>
namespace vv = varve;

#include <cmath>

inline auto right(double v) {
  return vv::grad([](auto x) {
    using std::sqrt;
    return sqrt(x);
  })(v);
}
#ifdef FAIL
inline auto wrong(double v) {
  return vv::grad([](auto x) { return std::sqrt(x); })(v);
}
#endif
