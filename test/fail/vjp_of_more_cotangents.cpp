// SPDX-License-Identifier: BSL-1.0
// expect: of two trees, as of arguments and their tangents or of results and their cotangents, one has more values
#include <varve/op/operators.hpp>
#include <varve/transform/vjp.hpp>

#include <tuple>
namespace vv = varve;

constexpr auto both = [](auto x) { return std::tuple(x * x, 3.0 * x); };
static_assert(std::get<0>(vv::vjp(both, 2.0).second(std::tuple(1.0, 1.0))) == 7);
#ifdef FAIL
constexpr auto g = vv::vjp(both, 2.0).second(std::tuple(1.0, 1.0, 1.0));
#endif
