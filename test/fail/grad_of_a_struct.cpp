// SPDX-License-Identifier: BSL-1.0
// expect: is no value and no tree of values; declare its type one: template <> inline constexpr bool varve::is_tree_node
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

template <class T>
struct layer {
  T weight, bias;
};
template <class T>
struct undeclared {
  T weight, bias;
};
template <class T>
inline constexpr bool vv::is_tree_node<layer<T>> = true;
constexpr auto line = [](auto const& l, auto x) { return l.weight * x + l.bias; };
static_assert(vv::grad(line)(layer<double>{2, 1}, 3.0).weight == 3);
#ifdef FAIL
constexpr auto g = vv::grad(line)(undeclared<double>{2, 1}, 3.0);
#endif
