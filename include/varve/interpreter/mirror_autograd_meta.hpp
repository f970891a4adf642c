// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>

namespace varve {

/// Gives `to` the autograd status of `from`: a leaf that requires grad, or a value with a history. A backward pass that
/// reaches such a mirrored history throws `autograd_error`. Does nothing if `from` does not require grad.
template <class T = tensor>
void mirror_autograd_meta(T const& from, T const& to) {
  // A view made below autograd of memory that has a history has no history itself.
  if (!from.has_history() || !detail::eager_history(detail::where_recorded(from))) return;
  if (from.is_leaf()) {
    to.requires_grad_();
    return;
  }
  auto refuse = [](boxed_args const&, bool const*) -> boxed_args {
    refuse::with<autograd_error>(
        "varve: mirror_autograd_meta: backward reached a value that only mirrors another's history");
  };
  to.set_history(detail::edge_to(detail::record_function(refuse, std::vector<edge>{}, 1, "Error")));
}

} // namespace varve
