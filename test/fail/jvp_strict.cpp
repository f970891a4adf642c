// SPDX-License-Identifier: BSL-1.0
// expect: strict: a result does not depend on the arguments
// scenario: TR-S37
#include <varve/op/operators.hpp>
#include <varve/transform/jvp.hpp>
namespace vv = varve;

constexpr auto constant = [](auto) { return 2.0; };
static_assert(vv::jvp(constant, std::tuple(1.0), std::tuple(1.0)).second == 0);
#ifdef FAIL
constexpr auto y = vv::jvp(constant, std::tuple(1.0), std::tuple(1.0), vv::strict);
#endif
