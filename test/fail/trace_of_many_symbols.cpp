// SPDX-License-Identifier: BSL-1.0
// expect: trace: the specs have too many symbols; give some of them numbers
#include <varve/varve.hpp>
namespace vv = varve;
using vv::dim, vv::spec;

constexpr auto f = [](auto x, auto y) { return std::tuple(vv::sin(x), vv::cos(y)); };
constexpr auto right =
    vv::trace(f, spec<float, dim<"a">, dim<"b">, dim<"c">>, spec<float, dim<"d">, dim<"e">, dim<"f">>);
#ifdef FAIL
constexpr auto wrong =
    vv::trace(f, spec<float, dim<"a">, dim<"b">, dim<"c">, dim<"g">>, spec<float, dim<"d">, dim<"e">, dim<"f">>);
#endif
