// SPDX-License-Identifier: BSL-1.0
// What of the compiled library is no operator: every function that headers mark `VARVE_LIBRARY`, and the templates over
// tensors alone.
#define VARVE_DEFINES 2
#include <varve/shape/environment.hpp>
#include <varve/varve.hpp>

namespace varve {
namespace detail {
template <std::size_t RegisterBytes, bool OpenMP>
void compiled_library_for_registers_of() {}
template void compiled_library_for_registers_of<sizeof(kernel::batch<float>), VARVE_USE_OPENMP>();

template struct interpreter_layer<grad_interpreter<dynamic_level>>;
template struct interpreter_layer<jvp_interpreter<dynamic_level>>;
template struct interpreter_layer<vmap_interpreter<batch_level, dims>>;
template struct interpreter_layer<functionalize_interpreter<tensor>>;
template class backward_run<tensor>;
template class registry<void>;
template tensor call_stack<dispatch_key::pre_dispatch>(void*, boxed_op const&, dispatch_key_set, boxed_args const&);
template tensor call_stack<dispatch_key::function_mode>(void*, boxed_op const&, dispatch_key_set, boxed_args const&);
template void require_grad<bool>(tensor const&, bool);
template boxed_args call_custom<void>(custom_function_ptr const&, boxed_args const&);
template std::shared_ptr<loop::prepared const> plan_of_tile<graph>(graph const&);
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
namespace loop {
template std::shared_ptr<prepared const> prepare_tables<tensor_kernels>(graph const&);
template graph typed_and_optimized<graph>(graph const&);
template void run_prepared<void>(prepared const&, void const* const*, void* const*);
} // namespace loop
template void dynamic_level::record_done<tensor>(layer&, boxed_op const&, tensor&, tensor const* const*,
                                                 tensor const* const*, int);
} // namespace varve
