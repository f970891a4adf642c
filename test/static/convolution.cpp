// SPDX-License-Identifier: BSL-1.0
// Convolutions of static values in constant expressions.
#include <varve/op/conv.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>
#include <varve/value/array.hpp>
namespace vv = varve;
using vv::array, vv::ints;

constexpr array<double, 1, 1, 4> line{1, 2, 3, 4};
constexpr array<double, 1, 1, 2> pair{1, 10};
constexpr bool same(auto const& a, auto const& b) {
  static_assert(std::is_same_v<decltype(a), decltype(b)>);
  for (vv::index_t k = 0; k < a.size(); ++k)
    if (a.data[k] != b.data[k]) return false;
  return true;
}

static_assert(same(vv::conv1d(line, pair), array<double, 1, 1, 3>{21, 32, 43}));
static_assert(same(vv::conv1d(line, pair, array<double, 1>{100}, ints<2>{}, ints<1>{}),
                   array<double, 1, 1, 3>{110, 132, 104}));
static_assert(same(vv::conv1d(array<double, 1, 4>{1, 2, 3, 4}, pair, vv::none, ints<1>{}, vv::padding::same),
                   array<double, 1, 4>{21, 32, 43, 4}));
static_assert(same(vv::conv1d(array<int, 2, 3>{1, 2, 3, 4, 5, 6}, array<int, 2, 1, 2>{1, -1, 2, 0}, vv::none, ints<1>{},
                              ints<0>{}, ints<2>{}, ints<2>{}),
                   array<int, 2, 1>{-2, 8}));
static_assert(same(vv::conv_transpose1d(line, pair), array<double, 1, 1, 5>{1, 12, 23, 34, 40}));
static_assert(same(vv::conv_transpose1d(line, pair, vv::none, ints<3>{}, ints<1>{}, ints<2>{}),
                   array<double, 1, 1, 11>{10, 0, 2, 20, 0, 3, 30, 0, 4, 40, 0}));
static_assert(std::is_same_v<decltype(vv::conv2d(array<float, 8, 3, 32, 32>{}, array<float, 16, 3, 3, 3>{}, vv::none,
                                                 ints<2>{}, ints<1>{})),
                             array<float, 8, 16, 16, 16>>);
static_assert(std::is_same_v<decltype(vv::conv3d(array<float, 2, 4, 5, 6>{}, array<float, 3, 2, 1, 2, 3>{},
                                                 array<float, 3>{}, ints<1, 1, 2>{})),
                             array<float, 3, 4, 4, 2>>);

// gradients, tangents, mapped functions
constexpr auto total = [](auto const& x, auto const& w) { return vv::sum(vv::conv1d(x, w)); };
static_assert(same(vv::grad(total)(line, pair), array<double, 1, 1, 4>{1, 11, 11, 10}));
static_assert(same(vv::grad<1>(total)(line, pair), array<double, 1, 1, 2>{6, 9}));
static_assert(vv::jvp(total, std::tuple(line, pair), std::tuple(line, array<double, 1, 1, 2>{})).second == 96);
static_assert(same(vv::vmap([](auto const& w) { return vv::conv1d(line, w); })(array<double, 2, 1, 1, 1>{1, 3}),
                   array<double, 2, 1, 1, 4>{1, 2, 3, 4, 3, 6, 9, 12}));
static_assert(same(vv::grad([](auto const& w, auto const& x) { return vv::sum(vv::grad(total)(x, w)); })(pair, line),
                   array<double, 1, 1, 2>{3, 3}));
