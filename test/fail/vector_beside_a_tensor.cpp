// SPDX-License-Identifier: BSL-1.0
// expect: varve: a range is no value of varve: .*a range of numbers is no value; write tensor.v. for one
#include <varve/varve.hpp>
namespace vv = varve;

inline vv::tensor right(vv::tensor const& x, std::vector<double> const& v) { return x * vv::tensor(v); }
#ifdef FAIL
inline auto wrong(vv::tensor const& x, std::vector<double> const& v) { return x * v; }
inline auto left(vv::tensor const& x, std::vector<double> const& v) { return v * x; }
#endif
