// SPDX-License-Identifier: BSL-1.0
// expect: decompose: no node of a graph is this operator: a composite is what its body calls
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right =
    vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::reciprocal(vv::add(vv::exp(vv::neg(x)), 1)); });
#ifdef FAIL
constexpr auto wrong = vv::decomposition<vv::gelu_t>([](auto const& x) { return x; });
#endif
