// SPDX-License-Identifier: BSL-1.0
// Every operator mutates and aliases what its schema declares, and nothing else.
#include "../sample/row.hpp"

#include <varve/mode/schema_check_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("schema: every operator does what it declares, in every memory layout", "[laws][schema]") {
  vv::schema_check_mode check;
  int samples = 0;
  vv::mode_guard const on{check};
  for_each_sample([&](row const& r, std::vector<dims> const& shapes, std::uint64_t seed) {
    for (std::uint64_t layout = 0; layout < 3; ++layout) { // the operands' layouts take turns
      INFO(describe(r, shapes));
      values const x = make(r, shapes, seed * 3 + layout);
      CHECK_NOTHROW(r(x));
    }
    ++samples;
  });
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  CHECK_NOTHROW(vv::add_(x, x));
  CHECK_NOTHROW(vv::mul_(vv::permute(x, dims{1, 0}), 2));
  CHECK_NOTHROW(vv::copy_(x, vv::ones({2})));
  CHECK_NOTHROW(vv::vmap(vv::grad([](auto const& v) { return vv::sum(vv::softmax(v, 0) * v); }))(x));
  CHECK(samples > 100);
  CHECK(check.checked() > samples);
  CHECK(check.unchecked() == 0);
}
