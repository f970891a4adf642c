// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/grad_mode.hpp>

#include <string>

namespace varve {

namespace detail {
inline bool is_eager_leaf(tensor const& t) {
  edge const& e = eager_history(t);
  return e && e.to()->type->is_leaf;
}
/// Changes x in place to the view of itself that `view(x)` creates, at every level and in every mode that sees it.
template <class T, class View>
tensor const& become(char const* name, T const& x, View const& view) {
  if (!x.defined()) refuse_undefined(name);
  bool const recorded = is_grad_enabled() && !this_thread_inference;
  if (x.is_inference() && !this_thread_inference)
    refuse::with<autograd_error>((std::string("varve: ") + name +
                                  ": a tensor made in inference mode cannot be changed outside of it; clone it first")
                                     .c_str());
  if (layer const* const top = this_thread_state.transforms.top;
      top && x.layer() != top->id && !x.is_made_since(top->epoch))
    refuse::with<transform_error>((std::string("varve: ") + name +
                                   ": a tensor that the function of a transform captures is " +
                                   "changed in it; pass it as an argument, or use the operator without underscore")
                                      .c_str());
  if (recorded) check_write(name, x);
  if (!recorded && x.has_history() && !is_eager_leaf(x))
    refuse::with<autograd_error>(
        (std::string("varve: ") + name +
         ": the tensor has a history, which would be one of another shape; call it in grad mode, or "
         "detach the tensor")
            .c_str());
  if (watches_renames) [[unlikely]]
    watches_renames->renaming(*watches_renames, name, x);
  T const y = view(x);
  if (!y.shares_storage(x))
    refuse::with<autograd_error>(
        (std::string("varve: ") + name + ": the memory cannot be shown in that shape").c_str());
  edge h = recorded ? edge(y.history()) : edge(x.history());
  x.become_view(y);
  if (recorded && h) change_history(x, std::move(h));
  x.bump_version();
  if (watches_renames) [[unlikely]]
    watches_renames->renamed(*watches_renames, x, y);
  return x;
}
} // namespace detail

} // namespace varve
