// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/boxed_scan.hpp>
#include <varve/loop/while_loop.hpp>

/// @file
/// `while_loop` on tensors. Operands come in packs of run-time size and the types of the functions are erased;
/// otherwise the rules are those of `rules<while_loop_t>`.
namespace varve {

namespace detail {
template <index_t MaxSteps, class W, class B, class Carried, class Behind>
auto while_loop_on_tensors(W const& condition, B const& body, Carried const& carried, Behind const& behind) {
  static_assert(leaf_level<Carried>() == 0 && leaf_level<Behind>() == 0,
                "varve: while_loop: tensors and values of a static transform cannot be mixed; pass tensors alone");
  auto const first = as_tensors(carried);
  auto const more = as_tensors(behind);
  boxed_args const start = flatten(first);
  if (start.size() == 0) refuse::argument_is_invalid(while_loop_t::op_name, "what is carried holds no value");
  auto const box = [&](auto const& f) -> boxed_function {
    return [&](boxed_args const& a) {
      int at = 0;
      auto const now = filled(first, a, at);
      auto const y = f.call(now, filled(more, a, at));
      return flatten(y);
    };
  };
  using Y = decltype(body.call(first, more));
  static_assert(std::is_same_v<decltype(as_tensors(std::declval<Y>())), std::remove_const_t<decltype(first)>>,
                "varve: while_loop: the body must give a tree of the structure of what is carried");
  boxed_args const y =
      boxed_scan{
          &loop_operator<while_loop_t>(), box(body), box(condition), start.size(), 0, false, false, MaxSteps, false}(
          joined(start, flatten(more)));
  int at = 0;
  return filled(first, y, at);
}
} // namespace detail

} // namespace varve
