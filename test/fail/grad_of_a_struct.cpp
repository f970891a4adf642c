// SPDX-License-Identifier: BSL-1.0
// expect: is no value and no tree of values; make it a struct of tensors, or a template of the type of its leaves
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

template <class T>
struct layer {
  T weight, bias;
};
struct fixed {
  double weight, bias;
};
constexpr auto line = [](auto const& l, auto x) { return l.weight * x + l.bias; };
static_assert(vv::grad(line)(layer<double>{2, 1}, 3.0).weight == 3);
#ifdef FAIL
constexpr auto g = vv::grad(line)(fixed{2, 1}, 3.0);
#endif
