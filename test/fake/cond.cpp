// SPDX-License-Identifier: BSL-1.0
// Branches on fake tensors.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;
using vv::extent;
using vv::relation;

TEST_CASE("cond on fakes: sizes of data, and of different branches, are one new size", "[fake][hop][cond][CD-S10]") {
  vv::shape_environment e;
  vv::fake_mode mode{{.environment = &e}};
  tensor const a = mode.from_tensor(vv::full({}, 3, dtype::int64)), b = mode.from_tensor(vv::full({}, 4, dtype::int64)),
               p = mode.from_tensor(vv::full({}, true)), x = mode.from_tensor(counted({5, 3}));
  vv::fake_mode_guard const on(mode);
  auto const of = [&](tensor const& n) { return [n, &mode](tensor) { return vv::zeros(dims{mode.item(n), 3}); }; };
  tensor const y = vv::cond(p, of(a), of(b), x);
  extent const n = y.sizes()[0];
  REQUIRE(n.is_entry());
  CHECK(e.depends_on_data(n));
  CHECK_FALSE(vv::known_equal(n, mode.item(a)));
  CHECK_FALSE(vv::known_equal(n, mode.item(b)));
  CHECK(y.sizes()[1] == 3);
  CHECK(vv::known_equal(vv::reshape(y, dims{n, 3, 1}).sizes()[0], n));
  // Sizes of arguments that differ too; the same ones are kept.
  auto const rows = [](index_t from) { return [from](tensor v) { return vv::slice(v, 0, from, vv::end); }; };
  tensor const z = vv::cond(p, rows(1), rows(2), x);
  CHECK(e.depends_on_data(z.sizes()[0]));
  CHECK(vv::known_equal(z.sizes()[1], x.sizes()[1]));
  tensor const same = vv::cond(p, [](tensor v) { return v * 2.0; }, [](tensor v) { return v + 1.0; }, x);
  CHECK((vv::known_equal(same.sizes()[0], x.sizes()[0]) && vv::known_equal(same.sizes()[1], x.sizes()[1])));
  CHECK_THROWS_AS(vv::cond(p, [](tensor v) { return v; }, [](tensor v) { return vv::sum(v, 0); }, x), vv::shape_error);
  CHECK_THROWS_AS(vv::cond(p, [](tensor v) { return v; }, [](tensor v) { return vv::gt(v, 0.0); }, x), vv::error);
}

TEST_CASE("cond on fakes: strides of both branches", "[fake][hop][cond][exception][CD-S14]") {
  vv::fake_mode mode;
  tensor const p = mode.from_tensor(vv::full({}, true)), x = mode.from_tensor(counted({2, 3})),
               wide = mode.from_tensor(counted({2, 6}));
  vv::fake_mode_guard const on(mode);
  auto const strided = [](dims const& strides) {
    return [strides](tensor, tensor w) { return vv::as_strided(w, dims{2, 3}, strides, dims{0}); };
  };
  CHECK_THROWS_WITH(vv::cond(p, strided({3, 1}), strided({1, 2}), x, wide), Catch::Contains("make both contiguous"));
  tensor const y = vv::cond(p, strided({3, 1}), strided({6, 2}), x, wide);
  CHECK(y.strides() == dims{3, 1});
  CHECK(vv::cond(p, strided({1, 2}), strided({1, 4}), x, wide).strides() == dims{1, 2});
}
