// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_cond.hpp>
#include <varve/hop/call_on_copy.hpp>
#include <varve/hop/out_dtype.hpp>
#include <varve/hop/run_const_graph.hpp>
#include <varve/hop/with_effects.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/hop/wrap_activation_checkpoint.hpp>
#include <varve/loop/boxed_while_loop.hpp>
#include <varve/loop/map.hpp>

namespace varve::detail {

/// Registers all higher-order operators of varve by name (`higher_order_operator::find`). Code that reads programs with
/// these operators, or runs functions on values without data, needs this.
template <class T = void>
void know_higher_order_operators() {
  (void)cond_operator<T>(), (void)checkpoint_operator<T>();
  (void)loop_operator<scan_t>(), (void)loop_operator<map_t>(), (void)loop_operator<while_loop_t>();
  (void)region_operator<wrap_t>(), (void)region_operator<invoke_subgraph_t>(), (void)region_operator<hints_wrapper_t>();
  (void)region_operator<strict_mode_t>(), (void)region_operator<out_dtype_t>();
  (void)region_operator<run_const_graph_t>(), (void)region_operator<with_effects_t>();
  (void)region_operator<auto_functionalized_t>();
  (void)&tokens_are_known<T>;
}
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template void know_higher_order_operators<void>();
#elif VARVE_COMPILED
extern template void know_higher_order_operators<void>();
#endif

} // namespace varve::detail
