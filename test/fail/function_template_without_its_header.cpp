// SPDX-License-Identifier: BSL-1.0
// expect: varve: this function is in another header: #include <varve/random.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

vv::tensor right() { return vv::randn({2, 3}); }
#ifdef FAIL
vv::tensor wrong() { return vv::sum(vv::rand({2, 3})); }
#else
#include <varve/random.hpp>
using namespace varve;
tensor uniform() { return rand({2, 3}); } // no ambiguity with the name that stood for it
#endif
