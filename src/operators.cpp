// SPDX-License-Identifier: BSL-1.0
// The operators of the compiled library, each with the number of its attributes.
#define VARVE_DEFINES 1
#include <varve/varve.hpp>

namespace varve::detail {
// elementwise, of one operand, and those that write in place
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
// elementwise, of several operands
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
// views, factories, reductions, products, movements of data
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
