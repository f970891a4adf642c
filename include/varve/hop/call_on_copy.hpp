// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap.hpp>

/// @file
/// The operator to which `hop/auto_functionalized.hpp` converts calls. Including this header alone does not enable that
/// conversion.
namespace varve {

/// Tag of the operator: a call whose function writes into its first operand and receives a copy of that operand. It is
/// never replaced by its function: fused programs refuse it, and so do derivatives by its operands.
struct auto_functionalized_t : detail::plain_call {
  static constexpr auto op_name = "auto_functionalized", backward_name = "AutoFunctionalizedBackward";
  static constexpr bool is_call = false, writes_copy = true;
  static constexpr int given_from = 1;
  template <class X = boxed_args>
  static X run(tensor const&, bool, boxed_function const& f, X const& x) {
    X in = x;
    in[0] = clone(static_cast<dependent<tensor, X> const&>(x[0]));
    return f(in);
  }
};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& detail::region_operator<auto_functionalized_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& detail::region_operator<auto_functionalized_t>();
#endif

} // namespace varve
