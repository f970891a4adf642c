// SPDX-License-Identifier: BSL-1.0
// expect: this function stands beside the umbrella: include varve/special.hpp
#include <varve/varve.hpp>

#include <cmath>
namespace vv = varve;

inline double right(double v) {
  return vv::grad([](auto x) {
    using std::tan;
    return tan(x);
  })(v);
}
#ifdef FAIL
inline double wrong(double v) {
  return vv::grad([](auto x) {
    using std::atan;
    return atan(x);
  })(v);
}
#endif
