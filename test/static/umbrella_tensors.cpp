// SPDX-License-Identifier: BSL-1.0
// The umbrella of tensors is enough for operators, transforms and eager autograd.
#include <varve/tensors.hpp>

#include <type_traits>

namespace vv = varve;

namespace {
constexpr auto loss = [](auto const& w) { return vv::sum(vv::tanh(w * w)); };
static_assert(std::is_same_v<decltype(vv::grad(loss)(vv::tensor())), vv::tensor>);
static_assert(std::is_same_v<decltype(vv::vmap(vv::grad(loss))(vv::tensor())), vv::tensor>);

[[maybe_unused]] vv::tensor by_hand(vv::tensor w) {
  w.requires_grad_();
  loss(w).backward();
  return w.grad();
}
} // namespace
