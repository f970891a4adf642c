// SPDX-License-Identifier: BSL-1.0
// expect: varve: item: a value seen through a transform is no plain number; compute with the value itself
#include <varve/varve.hpp>
namespace vv = varve;

inline double right(double v) {
  return vv::grad([](auto x) { return x * x; })(v);
}
#ifdef FAIL
inline double wrong(double v) {
  return vv::grad([](auto x) { return x * x.item(); })(v);
}
#endif
