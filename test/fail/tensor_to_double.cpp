// SPDX-License-Identifier: BSL-1.0
// expect: a tensor was taken for a double; write x.item
#include <varve/varve.hpp>
namespace vv = varve;

inline double right(vv::tensor const& t) { return vv::sum(t).item(); }
#ifdef FAIL
inline double wrong(vv::tensor const& t) { return vv::sum(t); }
#endif
