// SPDX-License-Identifier: BSL-1.0
// expect: loop_takes_more_steps_than_its_bound
#include <varve/hop/while_loop.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

template <vv::index_t Most>
constexpr auto grow = [](auto x) { return vv::while_loop<Most>([](auto y) { return y < 10.0; }, [](auto y) { return y * y; }, x); };
static_assert(grow<2>(2.0) == 16);
#ifdef FAIL
constexpr auto wrong = grow<1>(2.0);
#endif
