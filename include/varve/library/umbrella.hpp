// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/backward.hpp>
#include <varve/autograd/checkpoint.hpp>
#include <varve/autograd/function.hpp>
#include <varve/compile/compile.hpp>
#include <varve/composite/all.hpp>
#include <varve/functional/functionalize.hpp>
#include <varve/fuse/tensors.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/hop/cond.hpp>
#include <varve/hop/flex_attention.hpp>
#include <varve/loop/map.hpp>
#include <varve/loop/scan.hpp>
#include <varve/loop/while_loop.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>

/// @file
/// Instantiations that a compiled library provides, so that other units of the program need not make them: templates
/// over tensors, and the operators of varve.hpp, each with the number of its attributes. `src/` and the unit that
/// defines VARVE_IMPLEMENTATION instantiate them; in other units this header is empty.
#if VARVE_DEFINES_FUNCTIONS()
namespace varve {
namespace detail {
template <std::size_t RegisterBytes, fusion::threads Threads>
void compiled_library_for_registers_of() {}
template void compiled_library_for_registers_of<sizeof(kernel::batch<float>), fusion::threads_of_this_build>();

template struct interpreter_layer<grad_interpreter<dynamic_level>>;
template struct interpreter_layer<jvp_interpreter<dynamic_level>>;
template struct interpreter_layer<vmap_interpreter<batch_level, dims>>;
template struct interpreter_layer<functionalize_interpreter<tensor>>;
template class backward_run<tensor>;
template class registry<void>;
template tensor call_stack<dispatch_key::pre_dispatch>(void*, boxed_op const&, dispatch_key_set, boxed_args const&);
template tensor call_stack<dispatch_key::function_mode>(void*, boxed_op const&, dispatch_key_set, boxed_args const&);
template void require_grad<bool>(tensor const&, bool);
template higher_order_operator& custom_function_operator<void>();
template boxed_args call_custom<void>(custom_function_ptr const&, boxed_args const&);
template std::shared_ptr<fusion::prepared const> plan_of_tile<graph>(graph const&);
template struct checkpoint_region<tensor>;
template std::shared_ptr<checkpoint_region<tensor>> begin_checkpoint<tensor>(bool);
template higher_order_operator& cond_operator<void>();
template higher_order_operator& checkpoint_operator<void>();
template higher_order_operator& scan_operator<void>();
template higher_order_operator& loop_operator<scan_t>();
template higher_order_operator& loop_operator<map_t>();
template higher_order_operator& loop_operator<while_loop_t>();
} // namespace detail
namespace autograd {
template void backward<tensor>(std::vector<target> const&, std::vector<tensor> const&, options,
                               std::vector<tensor> const&);
template std::vector<tensor> grad<tensor>(std::vector<target> const&, std::vector<target> const&,
                                          std::vector<tensor> const&, options, unused);
} // namespace autograd
template void tensor::backward<tensor>(tensor const&, bool, bool) const;
template boxed_args interpret<tensor>(graph const&, boxed_args const&);
template boxed_args higher_order_operator::redispatch<void>(boxed_hop const&, dispatch_key_set, boxed_args const&);
namespace fusion {
template std::shared_ptr<prepared const> prepare_tables<tensor_kernels>(graph const&);
template graph typed_and_optimized<graph>(graph const&);
template void run_prepared<void>(prepared const&, void const* const*, void* const*);
} // namespace fusion
template void dynamic_level::record_done<tensor>(layer&, boxed_op const&, tensor&, tensor const* const*,
                                                 tensor const* const*, int);
} // namespace varve
#endif

#if VARVE_DEFINES == 4 || VARVE_DEFINES == 6
namespace varve::detail {
// elementwise operators with one operand, and those that write in place
template struct library_operator<abs_t, 0>;
template struct library_operator<exp_t, 0>;
template struct library_operator<expm1_t, 0>;
template struct library_operator<log_t, 0>;
template struct library_operator<log1p_t, 0>;
template struct library_operator<log1p_exp_t, 0>;
template struct library_operator<sin_t, 0>;
template struct library_operator<cos_t, 0>;
template struct library_operator<tanh_t, 0>;
template struct library_operator<sigmoid_t, 0>;
template struct library_operator<relu_t, 0>;
template struct library_operator<sqrt_t, 0>;
template struct library_operator<rsqrt_t, 0>;
template struct library_operator<reciprocal_t, 0>;
template struct library_operator<sign_t, 0>;
template struct library_operator<neg_t, 0>;
template struct library_operator<erf_t, 0>;
template struct library_operator<abs__t, 0>;
template struct library_operator<cos__t, 0>;
template struct library_operator<exp__t, 0>;
template struct library_operator<log__t, 0>;
template struct library_operator<neg__t, 0>;
template struct library_operator<relu__t, 0>;
template struct library_operator<sigmoid__t, 0>;
template struct library_operator<sin__t, 0>;
template struct library_operator<sqrt__t, 0>;
template struct library_operator<tanh__t, 0>;
template struct library_operator<add__t, 0>;
template struct library_operator<sub__t, 0>;
template struct library_operator<mul__t, 0>;
template struct library_operator<div__t, 0>;
template struct library_operator<copy__t, 0>;
// elementwise operators with several operands
template struct library_operator<add_t, 0>;
template struct library_operator<sub_t, 0>;
template struct library_operator<mul_t, 0>;
template struct library_operator<div_t, 0>;
template struct library_operator<pow_t, 0>;
template struct library_operator<maximum_t, 0>;
template struct library_operator<minimum_t, 0>;
template struct library_operator<eq_t, 0>;
template struct library_operator<ne_t, 0>;
template struct library_operator<lt_t, 0>;
template struct library_operator<le_t, 0>;
template struct library_operator<gt_t, 0>;
template struct library_operator<ge_t, 0>;
template struct library_operator<copysign_t, 0>;
template struct library_operator<where_t, 0>;
// views, factories, reductions, products, and operators that move data
template struct library_operator<as_strided_t, 3>;
template struct library_operator<detach_t, 0>;
template struct library_operator<expand_t, 1>;
template struct library_operator<permute_t, 1>;
template struct library_operator<reshape_t, 1>;
template struct library_operator<slice_t, 1>;
template struct library_operator<amax_t, 2>;
template struct library_operator<amin_t, 2>;
template struct library_operator<arange_t, 2>;
template struct library_operator<argmax_t, 2>;
template struct library_operator<as_strided_backward_t, 3>;
template struct library_operator<as_strided_scatter_t, 2>;
template struct library_operator<cat_t, 1>;
template struct library_operator<clone_t, 0>;
template struct library_operator<convolution_t, 3>;
template struct library_operator<empty_t, 2>;
template struct library_operator<full_t, 2>;
template struct library_operator<gather_t, 1>;
template struct library_operator<get_rng_state_t, 0>;
template struct library_operator<mm_t, 1>;
template struct library_operator<new_full_t, 2>;
template struct library_operator<one_hot_t, 1>;
template struct library_operator<local_scalar_t, 1>;
template struct library_operator<scalar_tensor_t, 1>;
template struct library_operator<nonzero_static_t, 2>;
template struct library_operator<places_in_order_t, 1>;
template struct library_operator<randn_t, 2>;
template struct library_operator<scatter_add_t, 1>;
template struct library_operator<slice_backward_t, 2>;
template struct library_operator<sum_t, 2>;
template struct library_operator<to_t, 1>;
} // namespace varve::detail
#endif
