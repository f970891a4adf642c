// SPDX-License-Identifier: BSL-1.0
// expect: a struct of fixed types cannot hold values seen through transforms; make it a template
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
template <>
inline constexpr bool vv::is_tree_node<fixed> = true;
constexpr auto line = [](auto const& l, auto x) { return l.weight * x + l.bias; };
static_assert(vv::grad(line)(layer<double>{2, 1}, 3.0).weight == 3);
#ifdef FAIL
constexpr auto g = vv::grad(line)(fixed{2, 1}, 3.0);
#endif
