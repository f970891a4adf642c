// SPDX-License-Identifier: BSL-1.0
// expect: while_loop: reverse mode keeps what is carried at every step; say how many steps there are at most: while_loop<100>
#include <varve/loop/while_loop.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

template <vv::index_t Most>
constexpr auto grow =
    [](auto x) { return vv::while_loop<Most>([](auto y) { return y < 10.0; }, [](auto y) { return y * y; }, x); };
static_assert(vv::grad(grow<8>)(2.0) == 32);
static_assert(grow<0>(2.0) == 16);
#ifdef FAIL
constexpr auto wrong = vv::grad(grow<0>)(2.0);
#endif
