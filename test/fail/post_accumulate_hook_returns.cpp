// SPDX-License-Identifier: BSL-1.0
// expect: the hook returns something, which nobody would use; let it return nothing, and write with set_grad
#include <varve/autograd/leaf.hpp>
namespace vv = varve;

void right(vv::tensor const& x) {
  (void)x.register_post_accumulate_grad_hook([](vv::tensor const&) {});
}
#ifdef FAIL
void wrong(vv::tensor const& x) {
  (void)x.register_post_accumulate_grad_hook([](vv::tensor const& leaf) { return leaf.grad(); });
}
#endif
