// SPDX-License-Identifier: BSL-1.0
// expect: count: this operator is made of others, and what stands in a graph are those
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto g = vv::trace([](auto const& x) { return vv::softmax(x, vv::ints<0>{}); }, vv::spec<float, 3>);
static_assert(g.count(vv::exp) == 1);
#ifdef FAIL
static_assert(g.count(vv::softmax) == 1);
#endif
