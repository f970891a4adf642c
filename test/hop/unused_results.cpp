// SPDX-License-Identifier: BSL-1.0
// A result that nothing uses, of functions on tensors.
#include "unused_results_test.hpp"

#include <varve/aot.hpp>

namespace {
void check_tensors(char const* what, function const& bad, function const& good) {
  INFO(what);
  tensor const x(1.5), right = vv::grad(good)(x), second = vv::grad(vv::grad(good))(x);
  is(vv::grad(bad)(x), right);
  is(vv::grad(vv::grad(bad))(x), second);
  is(vv::jvp(vv::grad(bad), std::tuple(x), std::tuple(vv::ones_like(x))).second, second);
  is(vv::select(vv::vmap(vv::grad(bad))(vv::stack(std::vector{x, x})), 0, 1), right);
  is(vv::compile(vv::grad(bad))(x), right);
  is(vv::interpret(vv::make_fx(vv::grad(bad))(x), vv::boxed_args(x))[0], right);
  for (function const& run :
       {bad, function(vv::compile(bad, vv::backends::fused)), function(vv::compile(bad, vv::backends::aot_eager))}) {
    tensor const leaf = vv::clone(x).requires_grad_();
    run(leaf).backward();
    is(leaf.grad(), right);
  }
}
} // namespace

TEST_CASE("unused results: of loops and branches, on tensors", "[hop][scan][while_loop][cond]") {
  check_tensors("scan", scanned<harmful>, scanned<harmless>);
  check_tensors("scan, outputs", outputs<harmful>, outputs<harmless>);
  check_tensors("scan, chained", chained<harmful>, chained<harmless>);
  check_tensors("scan, nested", nested<harmful>, nested<harmless>);
  check_tensors("scan, in segments", in_segments<harmful>, in_segments<harmless>);
  check_tensors("while_loop", while_looped<harmful>, while_looped<harmless>);
  check_tensors("cond", branched<harmful>, branched<harmless>);
  check_tensors("map", mapped<harmful>, mapped<harmless>);
}
