// SPDX-License-Identifier: BSL-1.0
// expect: a range is no value .*loop over its elements, or pass an array or a tensor
#include <varve/varve.hpp>
namespace vv = varve;

#include <vector>

inline auto right(std::vector<double> const& v) {
  return vv::grad([](auto const& x) {
    auto s = 0 * x[0];
    for (auto const& e : x) s += e * e;
    return s;
  })(v);
}
#ifdef FAIL
inline auto wrong(std::vector<double> const& v) {
  return vv::grad([](auto const& x) { return vv::sum(x * x); })(v);
}
#endif
