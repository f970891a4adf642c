// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/at_start.hpp>
#include <varve/dispatch/schema.hpp>
#include <varve/hop/call_on_copy.hpp>
#include <varve/interpreter/functional_core.hpp>

/// @file
/// Functional forms of user operators that write into an operand and have no functional variant. `functionalize`, the
/// functional mode and ahead-of-time programs turn writes into values; there, each such call becomes a call of a
/// function that writes into a copy of the operand. Including this header enables this.
namespace varve {

/// True if calls of an operator with this schema can be made functional automatically. It must write into at least one
/// argument. Its results must be new tensors: no list of tensors, and none that shares memory with an argument.
inline bool can_auto_functionalize(operator_schema const& s) {
  bool fits = s.mutates();
  for (auto const& a : s.arguments) fits = fits && (a.mutated || a.alias.empty());
  for (auto const& r : s.results) fits = fits && r.type == "Tensor" && r.alias.empty();
  return fits;
}

namespace detail {
/// Returns what an operator writes into its first operand, computed on a copy of that operand.
template <class T = tensor>
T written_into_copy(boxed_op const& op, boxed_args const& x) {
  boxed_function const region = [table = op.table, at = *op.at](boxed_args const& a) {
    boxed_op{table, &at}(a);
    return boxed_args(T(a[0]));
  };
  return region_operator<auto_functionalized_t>()({region}, joined(boxed_args(T::from_number(std::int64_t{0})), x),
                                                  attributes(dims{0}))[0];
}
VARVE_FIRST inline at_start const auto_functionalizes{[] {
  writes_into_copy.store([](boxed_op const& op, boxed_args const& x) -> tensor { return written_into_copy<>(op, x); },
                         std::memory_order_release);
}};
} // namespace detail

} // namespace varve
