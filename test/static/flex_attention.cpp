// SPDX-License-Identifier: BSL-1.0
// flex_attention of static values: in constant expressions, differentiated, mapped and traced.
#include <varve/hop/flex_attention.hpp>
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr bool near(double a, double b) { return a - b < 1e-12 && b - a < 1e-12; }
constexpr auto causal = [](auto, auto, auto i, auto j) { return i >= j; };
constexpr auto mask = vv::create_block_mask(causal, vv::shape<1, 1, 3, 3>, vv::shape<2, 1>);
static_assert(vv::equal(mask.to_dense(), array<bool, 1, 1, 2, 3>{true, true, false, true, true, true}));
static_assert(vv::equal(mask.kv_num_blocks(), array<std::int64_t, 1, 1, 2>{2, 3}));
static_assert(near(mask.sparsity(), 100 * (1 - 10 / 9.0)));
constexpr auto first = [](auto, auto, auto, auto j) { return vv::eq(j, 0); };
constexpr auto last = [](auto, auto, auto, auto j) { return vv::eq(j, 2); };
static_assert(vv::equal(vv::create_mask(vv::and_masks(causal, vv::or_masks(first, last)), vv::shape<1, 1, 3, 3>),
                        array<bool, 1, 1, 3, 3>{true, false, false, true, false, false, true, false, true}));

// with scores of 0 every row is a mean of what it sees
constexpr array<double, 1, 1, 3, 1> zero{}, v{2, 4, 9};
static_assert(vv::equal(vv::flex_attention(zero, zero, v), array<double, 1, 1, 3, 1>{5, 5, 5}));
constexpr auto means = vv::flex_attention(zero, zero, v, vv::none, mask);
static_assert(means.data[0] == 2 && means.data[1] == 3 && near(means.data[2], 5));
// ... and a row that sees nothing is 0
constexpr auto none_first =
    vv::create_block_mask([](auto, auto, auto i, auto) { return i > 0; }, vv::shape<1, 1, 3, 3>);
constexpr auto partial = vv::flex_attention(zero, zero, v, vv::none, none_first, vv::none, false, vv::return_lse);
static_assert(partial.first.data[0] == 0 && near(partial.first.data[1], 5) && partial.second.data[0] < -1e300 &&
              near(partial.second.data[1], 1.0986122886681098));

// a bias by distance, declared: with weights 1/2 each, d out / d bias is (v0 - v1) / 4 at the farther one
constexpr auto biased = [](auto s, auto, auto, auto i, auto j, auto t) { return s + vv::index(t, i - j); };
constexpr auto second_row = [](auto x, auto y, auto z, auto t) {
  return vv::sum(vv::select(vv::flex_attention(x, y, z, vv::closure(biased, t), mask), vv::axis<2>, vv::axis<1>));
};
constexpr auto slopes = vv::grad<3>(second_row)(zero, zero, v, array<double, 3>{});
static_assert(near(slopes.data[0], 0.5) && near(slopes.data[1], -0.5) && slopes.data[2] == 0);
static_assert(near(vv::jvp([](auto t) { return second_row(zero, zero, v, t); }, std::tuple(array<double, 3>{}),
                           std::tuple(array<double, 3>{0, 1, 0}))
                       .second,
                   -0.5));
constexpr auto lanes = vv::vmap(vv::grad([](auto t) { return second_row(zero, zero, v, t); }))(array<double, 2, 3>{});
static_assert(near(lanes.data[1], -0.5) && near(lanes.data[4], -0.5));
// twice: the variance of the softmax has slope 0 where both weights are 1/2
constexpr auto curvature = vv::grad([](auto t) {
  return vv::sum(vv::grad([](auto u) { return second_row(zero, zero, v, u); })(t) * array<double, 3>{0, 1, 0});
})(array<double, 3>{});
static_assert(near(curvature.data[1], 0));
constexpr auto traced = vv::trace(second_row, vv::spec<double, 1, 1, 3, 1>, vv::spec<double, 1, 1, 3, 1>,
                                  vv::spec<double, 1, 1, 3, 1>, vv::spec<double, 3>);
static_assert(vv::verify(traced.thaw()) && traced.count(vv::gather) == 1);
