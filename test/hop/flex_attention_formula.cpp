// SPDX-License-Identifier: BSL-1.0
// Attention against the formula, in every host.
#include "flex_attention_test.hpp"

#include <varve_test.hpp>

using namespace flex_attention_test;

TEST_CASE("flex_attention: results and gradients are those of the formula, in both worlds", "[hop][flex_attention]") {
  auto const [out, lse] = attend(q, k, v, bias);
  CHECK(agree(boxed(out), boxed(right.out)));
  CHECK(agree(boxed(lse), boxed(right.lse)));
  CHECK(are_right(gradients(q, k, v, bias, g, g_lse)));
  tensors const t;
  auto const [y, s] = attend(t.q, t.k, t.v, t.bias);
  CHECK(agree(y, boxed(right.out)));
  CHECK(agree(s, boxed(right.lse)));
  CHECK(are_right(gradients(t.q, t.k, t.v, t.bias, t.g, t.g_lse)));
}

TEST_CASE("flex_attention: fused, traced, compiled, functionalized and by eager autograd",
          "[hop][flex_attention][fuse]") {
  CHECK(are_right(vv::fuse(gradients)(q, k, v, bias, g, g_lse)));
  tensors const t;
  auto const made = vv::make_fx(gradients)(t.q, t.k, t.v, t.bias, t.g, t.g_lse);
  CHECK(vv::verify(made));
  auto const run = vv::interpret(made, vv::boxed_args(t.q, t.k, t.v, t.bias, t.g, t.g_lse));
  CHECK(are_right(std::tuple(run[0], run[1], run[2], run[3])));
  CHECK(are_right(vv::compile(gradients)(t.q, t.k, t.v, t.bias, t.g, t.g_lse)));
  CHECK(are_right(vv::functionalize(gradients)(t.q, t.k, t.v, t.bias, t.g, t.g_lse)));
  for (tensor const* x : {&t.q, &t.k, &t.v, &t.bias}) x->requires_grad_();
  loss(t.q, t.k, t.v, t.bias, t.g, t.g_lse).backward();
  CHECK(are_right(std::tuple(t.q.grad(), t.k.grad(), t.v.grad(), t.bias.grad())));
}
