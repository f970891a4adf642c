// SPDX-License-Identifier: BSL-1.0
// Selections find what whole sorts find, ties and NaN included.
#include "../sample/value.hpp"

#include <varve/sorting.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("topk: the first places of the sorted order, for any count, axis and layout", "[family][topk]") {
  numbers draw(4);
  for (memory const m : {memory::row_major, memory::transposed, memory::stepped}) {
    tensor const x = blank({7, 40}, dtype::float64, m);
    for (index_t k = 0; k < x.numel(); ++k) {
      double const v = std::floor(draw() * 12) - 6; // many ties
      set(x, k, v == 5 ? std::nan("") : v);
    }
    for (int const axis : {0, 1})
      for (int const largest : {0, 1})
        for (index_t const count : {0, 1, 2, 3, 6, 7, 19, 20, 40}) {
          if (axis == 0 && count > 7) continue;
          auto const [values, places] = vv::topk(x, dims{count}, dims{axis}, dims{largest});
          tensor const order = vv::narrow(vv::argsort(x, dims{axis}, dims{largest}), dims{axis}, dims{0}, dims{count});
          CHECK(difference(places, order, 0) == "");
          CHECK(difference(values, vv::gather(x, axis, order), 0) == "");
        }
  }
  tensor const x = uniform({3, 30}, draw);
  auto const f = [](tensor const& r) { return vv::topk(r, dims{4}).second; };
  CHECK(difference(vv::vmap(f)(x), f(x), 0) == "");
  tensor const row = vv::select(x, 0, 0), other = vv::select(x, 0, 1);
  CHECK(difference(vv::interpret(vv::make_fx(f)(row), vv::boxed_args(other))[0], f(other), 0) == "");
  auto const best = [](tensor const& r) { return vv::sum(vv::topk(r, dims{2}).first); };
  CHECK(elements(vv::grad(best)(vector_of({1, 4, 2, 9, 3}))) == doubles({0, 1, 0, 1, 0}));
  CHECK_THROWS_AS(vv::topk(x, dims{31}), vv::value_error);
  constexpr vv::array<double, 5> s{{1, 5, 2, 5, 3}};
  constexpr auto first = vv::topk(s, vv::ints<2>{});
  STATIC_REQUIRE((first.second[0] == 1 && first.second[1] == 3));
}
