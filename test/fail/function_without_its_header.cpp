// SPDX-License-Identifier: BSL-1.0
// expect: varve: this function is in another header: #include <varve/sorting.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

vv::tensor right(vv::tensor const& x) { return vv::amax(x); }
#ifdef FAIL
auto wrong(vv::tensor const& x) { return vv::sort(x); }
#else
#include <varve/sorting.hpp>
using namespace varve;
auto sorted(tensor const& x) { return sort(x); } // no ambiguity with the name that stood for it
#endif
