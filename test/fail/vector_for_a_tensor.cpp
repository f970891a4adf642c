// SPDX-License-Identifier: BSL-1.0
// expect: a range of numbers is no value; write tensor.v.
#include <varve/varve.hpp>
namespace vv = varve;

#include <vector>

inline auto right(std::vector<double> const& v) { return vv::sum(vv::tensor(v)); }
#ifdef FAIL
inline auto wrong(std::vector<double> const& v) { return vv::sum(v); }
#endif
