// SPDX-License-Identifier: BSL-1.0
// A result that nothing uses, of functions on static values.
#include "unused_results_test.hpp"

namespace {
template <class F>
void check(char const* what, F const& bad, function const& good) {
  INFO(what);
  double const right = vv::grad(good)(tensor(1.5)).item();
  is(vv::grad(bad)(1.5), right);
  is(vv::fuse(vv::grad(bad))(1.5), right);
}
} // namespace

TEST_CASE("unused results: of loops and branches, static and fused", "[hop][scan][while_loop][cond]") {
  check("scan", scanned<harmful>, scanned<harmless>);
  check("scan, outputs", outputs<harmful>, outputs<harmless>);
  check("scan, chained", chained<harmful>, chained<harmless>);
  check("scan, nested", nested<harmful>, nested<harmless>);
  check("scan, in segments", in_segments<harmful>, in_segments<harmless>);
  check("while_loop", while_looped<harmful>, while_looped<harmless>);
  check("cond", branched<harmful>, branched<harmless>);
  check("map", mapped<harmful>, mapped<harmless>);
}

TEST_CASE("unused results: a step that C++ decides", "[hop][scan]") {
  double const x = 1.5;
  is(vv::grad(by_value<harmful>)(x), vv::grad(by_value<harmless>)(x));
}

TEST_CASE("unused results: of a loop, in higher orders", "[hop][scan]") {
  constexpr auto bad = scanned<harmful>;
  function const good = scanned<harmless>;
  double const x = 1.5, second = vv::grad(vv::grad(good))(tensor(x)).item();
  is(vv::grad(vv::grad(bad))(x), second);
  is(vv::fuse(vv::grad(vv::grad(bad)))(x), second);
  is(vv::jvp(vv::grad(bad), std::tuple(x), std::tuple(1.0)).second, second);
  is(vv::vmap(vv::grad(bad))(array<double, 2>{x, x})[1], vv::grad(good)(tensor(x)).item());
}
