// SPDX-License-Identifier: BSL-1.0
// expect: of two trees, as of arguments and their tangents or of results and their cotangents, one has more values
#include <varve/op/operators.hpp>
#include <varve/transform/jvp.hpp>

#include <tuple>
namespace vv = varve;

constexpr auto product = [](auto const& t) { return std::get<0>(t) * std::get<1>(t); };
static_assert(vv::jvp(product, std::make_tuple(std::tuple(2.0, 3.0)), std::make_tuple(std::tuple(1.0, 0.0))).second ==
              3);
#ifdef FAIL
constexpr auto y = vv::jvp(product, std::make_tuple(std::tuple(2.0, 3.0)), std::make_tuple(std::tuple(1.0, 0.0, 1.0)));
#endif
