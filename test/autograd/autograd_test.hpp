// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Leaves for tests of eager autograd.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace autograd_test {
using namespace sample;
namespace vv = varve;
using list = std::vector<double>;

inline tensor leaf(list const& v, dims const& sizes, dtype type = dtype::float64) {
  return from(v, sizes, type).requires_grad_();
}
inline tensor leaf(double v) { return leaf({v}, {}); }
inline tensor number(double v) { return from({v}, {}); }
inline tensor vec(list const& v) { return from(v, {static_cast<index_t>(v.size())}); }
inline tensor leaf(list const& v) { return vec(v).requires_grad_(); }
/// The collected gradient; empty when there is none.
inline list grad_of(tensor const& t) { return t.grad().defined() ? elements(t.grad()) : list{}; }
/// Nothing of a run may stay behind on the thread.
inline bool thread_is_clean() {
  auto const& s = vv::this_thread_state;
  return s.quiet() && s.grad_mode && !vv::this_thread_inference && !s.transforms.top &&
         !vv::detail::backward_run<>::current() && !vv::detail::backward_run<>::this_node();
}
} // namespace autograd_test
