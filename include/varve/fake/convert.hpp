// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/fake_mode.hpp>
#include <varve/interpreter/mirror_autograd_meta.hpp>
#include <varve/shape/environment.hpp>

/// @file
/// Fakes of real tensors: one for each tensor, and one fake memory for each real memory.
namespace varve {

namespace detail {
/// Returns a layout with symbolic sizes. Strides are computed from the sizes where they follow from them.
inline layout with_sizes(layout const& l, dims const& sizes) {
  layout r = l;
  r.sizes = sizes;
  index_t next = 1;
  extent stride = 1;
  for (unsigned done = 0; done != (1u << l.sizes.n) - 1;) { // finds the dimension with stride `next`
    int at = -1;
    for (int k = l.sizes.n - 1; k >= 0 && at < 0; --k)
      if (!(done >> k & 1) && index_t(l.strides[k]) == next) at = k;
    if (at < 0) break; // the remaining strides stay numbers
    r.strides[at] = stride;
    next *= index_t(l.sizes[at]), stride *= sizes[at];
    done |= 1u << at;
  }
  return r;
}
} // namespace detail

/// Releases tensors that are not used elsewhere.
inline void fake_mode::sweep() {
  auto& memo = state_->memo;
  for (bool again = true; again;) { // a released view may release its base
    again = false;
    for (auto e = memo.begin(); e != memo.end();) {
      tensor const& real = e->second.real;
      if (real.id()->refs.n.load(std::memory_order_acquire) > 1) {
        ++e;
        continue;
      }
      auto const memory = state_->memories.find(real.id()->store);
      if (memory != state_->memories.end() && --memory->second.users == 0) state_->memories.erase(memory);
      e = memo.erase(e);
      again = true;
    }
  }
  state_->sweep_at = 2 * memo.size() + 32;
}
inline std::size_t fake_mode::remembered() {
  sweep();
  return state_->memo.size();
}

template <class T>
tensor fake_mode::from_tensor(T const& t, std::vector<dim_dynamic> const& policy) {
  if (!t.defined() || t.is_number() || owns(t)) return t;
  if (is_fake(t))
    refuse::with<dispatch_error>(
        "varve: fake_mode: from_tensor: the tensor is a fake one of another mode; convert the real one");
  if (t.is_wrapped())
    refuse::with<transform_error>(
        "varve: fake_mode: from_tensor: the tensor is seen through a transform; convert it outside, "
        "and pass it as an argument");
  if (t.object())
    refuse::with<dispatch_error>((std::string("varve: fake_mode: from_tensor: a tensor of the subclass ") +
                                  t.object()->type().name + " cannot be made fake; convert the tensors inside of it")
                                     .c_str());
  if (auto const known = state_->memo.find(t.id()); known != state_->memo.end()) return known->second.fake;
  if (state_->memo.size() >= state_->sweep_at) sweep();
  detail::literals_as_they_are const off;
  emptied const outside(this_thread_state.transforms);
  tensor fake = converted(t, policy);
  if (t.has_history()) mirror_gradient(t, fake);
  auto& memory = state_->memories[t.id()->store];
  if (!memory.users++) memory.fake = fake;
  state_->memo.emplace(t.id(), detail::fake_state::remembered{t, fake});
  return fake;
}
/// Returns a fake without a gradient, on the memory that stands for that of the tensor.
template <class T>
tensor fake_mode::converted(T const& t, std::vector<dim_dynamic> const& policy) {
  layout const l = detail::with_sizes(t.where(), symbolic(t.sizes(), policy));
  if (t.base().defined()) {
    tensor const view = from_tensor(t.base()).with_layout(l);
    view.set_origin(t.origin()); // a view made in no_grad mode has no part in its base's history
    return view;
  }
  auto const memory = state_->memories.find(t.id()->store);
  if (memory != state_->memories.end()) return memory->second.fake.with_layout(l, false);
  tensor const fake = made(t.as_meta(), detail::backend_of(t)).with_layout(l, false);
  if (value_follower* const f = follower()) f->made(t, fake);
  return fake;
}
/// Returns symbols for sizes, by the policy.
inline dims fake_mode::symbolic(dims const& sizes, std::vector<dim_dynamic> const& policy) {
  shape_environment* const e = environment();
  if (!e) return sizes;
  if (!policy.empty() && static_cast<int>(policy.size()) != sizes.n)
    refuse::argument_is_invalid("fake_mode: from_tensor", "there must be one policy for each size");
  dims r = sizes;
  int const input = state_->inputs++;
  for (int k = 0; k < sizes.n; ++k) {
    dim_dynamic const how = policy.empty() ? dim_dynamic::duck : policy[static_cast<std::size_t>(k)];
    if (how == dim_dynamic::size_like_unbacked) r[k] = e->unbacked();
    else if (how != dim_dynamic::fixed) r[k] = e->size(sizes[k], {input, k}, how == dim_dynamic::duck);
  }
  return r;
}
template <class T>
tensor fake_mode::from_tensor_of_sizes(T const& t, dims const& sizes) {
  detail::literals_as_they_are const off;
  emptied const outside(this_thread_state.transforms);
  tensor const fake = made(t.as_meta(), detail::backend_of(t)).with_layout(detail::with_sizes(t.where(), sizes), false);
  if (value_follower* const f = follower()) f->made(t, fake);
  if (t.has_history()) mirror_gradient(t, fake);
  return fake;
}
/// Copies what the program may query about gradients: the fake of a leaf is a leaf with its gradient, that of a
/// recorded value is no leaf.
template <class T>
void fake_mode::mirror_gradient(T const& real, T const& fake) {
  mirror_autograd_meta(real, fake);
  if (!real.is_leaf()) return;
  if (T const g = real.grad(); g.defined()) fake.set_grad(from_tensor(g));
}

} // namespace varve
