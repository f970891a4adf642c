// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/integer_range.hpp>

#include <initializer_list>

/// @file
/// The index of operators: all operator tags and objects, by family. Their rules are in `op/<name>.hpp`. Names,
/// argument order and defaults are those of `torch.*`.
namespace varve {

/// Base of operators on values: a call with a range of numbers fails to compile, with a message that says what to write
/// instead.
struct refusing_ranges {
  template <detail::range_of_numbers X, class = void, class... A>
  constexpr auto operator()(X const& x, A const&...) const {
    return detail::refuse_range<X>(), x;
  }
};

// --- pointwise: shapes broadcast, dtypes promote (torch.result_type)
// --------------------------------------------------------------
inline constexpr struct add_t : promoting_operator<add_t> {
  static constexpr auto op_name = "add";
} add{};
inline constexpr struct sub_t : promoting_operator<sub_t> {
  static constexpr auto op_name = "sub";
} sub{};
inline constexpr struct mul_t : promoting_operator<mul_t> {
  static constexpr auto op_name = "mul";
} mul{};
inline constexpr struct div_t : promoting_operator<div_t> {
  static constexpr auto op_name = "div";
} div{};
/// x to the power y. Integers to a negative power are refused (`value_error`), because the result would be fractions.
inline constexpr struct pow_t : promoting_operator<pow_t> {
  static constexpr auto op_name = "pow";
  using promoting_operator<pow_t>::operator();
  template <value X, std::signed_integral N>
    requires(!number<X>)
  constexpr auto operator()(X const& x, N y) const {
    if (y < 0 && !has_derivatives(dtype_of(x)))
      refuse::argument_is_invalid(op_name,
                                  "integers to a negative power are fractions; make x floating, or write 1.0 / "
                                  "pow(x, n)");
    return promoting_operator<pow_t>::operator()(x, y);
  }
} pow{};
inline constexpr struct neg_t : promoting_operator<neg_t> {
  static constexpr auto op_name = "neg";
} neg{};
inline constexpr struct abs_t : promoting_operator<abs_t> {
  static constexpr auto op_name = "abs";
} abs{};
inline constexpr struct sign_t : promoting_operator<sign_t> {
  static constexpr auto op_name = "sign";
} sign{};
inline constexpr struct exp_t : promoting_operator<exp_t> {
  static constexpr auto op_name = "exp";
} exp{};
inline constexpr struct log_t : promoting_operator<log_t> {
  static constexpr auto op_name = "log";
} log{};
inline constexpr struct expm1_t : promoting_operator<expm1_t> {
  static constexpr auto op_name = "expm1";
} expm1{};
inline constexpr struct log1p_t : promoting_operator<log1p_t> {
  static constexpr auto op_name = "log1p";
} log1p{};
inline constexpr struct sqrt_t : promoting_operator<sqrt_t> {
  static constexpr auto op_name = "sqrt";
} sqrt{};
inline constexpr struct rsqrt_t : promoting_operator<rsqrt_t> {
  static constexpr auto op_name = "rsqrt";
} rsqrt{};
inline constexpr struct reciprocal_t : promoting_operator<reciprocal_t> {
  static constexpr auto op_name = "reciprocal";
} reciprocal{};
inline constexpr struct sin_t : promoting_operator<sin_t> {
  static constexpr auto op_name = "sin";
} sin{};
inline constexpr struct cos_t : promoting_operator<cos_t> {
  static constexpr auto op_name = "cos";
} cos{};
inline constexpr struct tanh_t : promoting_operator<tanh_t> {
  static constexpr auto op_name = "tanh";
} tanh{};
inline constexpr struct sigmoid_t : promoting_operator<sigmoid_t> {
  static constexpr auto op_name = "sigmoid";
} sigmoid{};
inline constexpr struct erf_t : promoting_operator<erf_t> {
  static constexpr auto op_name = "erf";
} erf{};
inline constexpr struct log1p_exp_t : promoting_operator<log1p_exp_t> {
  static constexpr auto op_name = "log1p_exp";
} log1p_exp{};
inline constexpr struct relu_t : promoting_operator<relu_t> {
  static constexpr auto op_name = "relu";
} relu{};
inline constexpr struct maximum_t : extreme_operator<maximum_t> {
  static constexpr auto op_name = "maximum";
} maximum{};
inline constexpr struct minimum_t : extreme_operator<minimum_t> {
  static constexpr auto op_name = "minimum";
} minimum{};
inline constexpr struct where_t : promoting_operator<where_t> {
  static constexpr auto op_name = "where";
} where{};
inline constexpr struct lt_t : comparing_operator<lt_t> {
  static constexpr auto op_name = "lt";
} lt{};
inline constexpr struct le_t : comparing_operator<le_t> {
  static constexpr auto op_name = "le";
} le{};
inline constexpr struct gt_t : comparing_operator<gt_t> {
  static constexpr auto op_name = "gt";
} gt{};
inline constexpr struct ge_t : comparing_operator<ge_t> {
  static constexpr auto op_name = "ge";
} ge{};
inline constexpr struct eq_t : comparing_operator<eq_t> {
  static constexpr auto op_name = "eq";
} eq{};
inline constexpr struct ne_t : comparing_operator<ne_t> {
  static constexpr auto op_name = "ne";
} ne{};

// --- dtype
// --------------------------------------------------------------------------------------------------------------------
/// Converts the elements to a dtype: `to(x, type<float>)`, on tensors and proxies also `to(x, dtype::float32)`. Returns
/// x itself if nothing changes.
inline constexpr struct to_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "to";
  template <value X, class T>
  constexpr auto operator()(X const& x, T const& type) const;
} to{};

// --- reductions
// ---------------------------------------------------------------------------------------------------------------------
/// Sum over all elements or along axes: `sum(x)`, `sum(x, axis<1>)`, `sum(x, axis<0, 1>, keepdim)`. bool and integers
/// sum to int64.
inline constexpr struct sum_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "sum";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
  template <value X, class... A>
  constexpr auto operator()(X const& x, detail::braces axes, A const&... at) const {
    return (*this)(x, detail::dims_in(axes), at...);
  }
} sum{};
/// Greatest element along axes. The gradient is shared evenly among equal elements; NaN wins.
inline constexpr struct amax_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "amax";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
  template <value X, class... A>
  constexpr auto operator()(X const& x, detail::braces axes, A const&... at) const {
    return (*this)(x, detail::dims_in(axes), at...);
  }
} amax{};
/// Smallest element along axes. The gradient is shared evenly among equal elements; NaN wins.
inline constexpr struct amin_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "amin";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
  template <value X, class... A>
  constexpr auto operator()(X const& x, detail::braces axes, A const&... at) const {
    return (*this)(x, detail::dims_in(axes), at...);
  }
} amin{};
/// Position (int64) of the first greatest element, over all elements or along one axis.
inline constexpr struct argmax_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "argmax";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
} argmax{};

// --- contractions
// --------------------------------------------------------------------------------------------------------------------
/// The matrix product behind `matmul`. The operands have equal rank >= 2 and equal leading sizes; two flags say whether
/// an operand is stored transposed.
inline constexpr struct mm_t {
  static constexpr auto op_name = "mm";
  template <value A, value B, class... F>
  constexpr auto operator()(A const& a, B const& b, F const&... flags) const;
} mm{};
/// The convolution behind `conv1d` ... `conv_transpose3d` (`torch.convolution`). The input is [n, channels, ...], the
/// weight [out, in / groups, ...], or [in, out / groups, ...] if transposed. Attributes are one number, or one for each
/// of the one to three spatial dimensions.
inline constexpr struct convolution_t {
  static constexpr auto op_name = "convolution";
  template <value X, value W, class B, class S, class P, class D, class T, class O, class G>
  constexpr auto operator()(X const& input, W const& weight, B const& bias, S const& stride, P const& pad,
                            D const& dilation, T const& transposed, O const& output_padding, G const& groups) const;
} convolution{};

// --- views
// --------------------------------------------------------------------------------------------------------------------
inline constexpr struct reshape_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "reshape";
  template <value X, class S = dims>
  constexpr auto operator()(X const& x, S const& sizes) const;
} reshape{};
inline constexpr struct permute_t : refusing_ranges {
  using refusing_ranges::operator();
  static constexpr auto op_name = "permute";
  template <value X, class S = dims>
  constexpr auto operator()(X const& x, S const& axes) const;
} permute{};
inline constexpr struct expand_t {
  static constexpr auto op_name = "expand";
  template <value X, class S = dims>
  constexpr auto operator()(X const& x, S const& sizes) const;
} expand{};
/// Bounds of an axis as an index, as returned by `slice(1, 5)`.
struct slice_index {
  dims range;
};
namespace detail {
template <class T>
concept slice_bound_type = one_size<T> || is_none<T>;
}
/// `slice(x, axis, start, stop, step)`, for static values `slice(x, axis<0>, range<1, 5>)`. With bounds only it returns
/// an index, as in Python: `x.at(slice(1, 5))`, `slice(none, -1)`, `slice(none, none, 2)`. `slice()` is Python's `:`.
inline constexpr struct slice_t {
  static constexpr auto op_name = "slice";
  template <value X, class A, class... R>
    requires(!detail::slice_bound_type<X>)
  constexpr auto operator()(X const& x, A const& axis, R const&... range) const;
  template <detail::slice_bound_type A, detail::slice_bound_type B, detail::slice_bound_type C = none_t>
  constexpr slice_index operator()(A start, B stop, C step = {}) const {
    dims r;
    if constexpr (is_none<A>) r.push_back(0);
    else r.push_back(start);
    if constexpr (is_none<B>) r.push_back(INT64_MAX); // to the end
    else r.push_back(stop);
    if constexpr (!is_none<C>) r.push_back(step);
    return {r};
  }
  constexpr ints<0, INT64_MAX> operator()() const { return {}; } // a type, so that static values accept it too
} slice{};
/// Zeros of a shape with `g` written at the slice: the transpose of `slice` (aten::slice_backward).
inline constexpr struct slice_backward_t {
  static constexpr auto op_name = "slice_backward";
  template <value G, class S, class R>
  constexpr auto operator()(G const& g, S const& sizes, R const& range) const;
} slice_backward{};

/// `as_strided(x, size, stride, storage_offset)`: a strided region of a row-major value. `as_strided_backward` is its
/// transpose; `as_strided_scatter` returns the value with such a region replaced.
inline constexpr struct as_strided_t {
  static constexpr auto op_name = "as_strided";
  template <value X, class S, class T, class O = ints<0>>
  constexpr auto operator()(X const& x, S const& size, T const& stride, O const& storage_offset = {}) const;
} as_strided{};
inline constexpr struct as_strided_backward_t {
  static constexpr auto op_name = "as_strided_backward";
  template <value G, class S, class T, class O = ints<0>>
  constexpr auto operator()(G const& g, S const& input_size, T const& stride, O const& storage_offset = {}) const;
} as_strided_backward{};
inline constexpr struct as_strided_scatter_t {
  static constexpr auto op_name = "as_strided_scatter";
  template <value X, value S, class T, class O = ints<0>>
  constexpr auto operator()(X const& x, S const& src, T const& stride, O const& storage_offset = {}) const;
} as_strided_scatter{};

// --- joins, indexing
// --------------------------------------------------------------------------------------------------------------------
inline constexpr struct cat_t {
  static constexpr auto op_name = "cat";
  template <class X, class A>
  constexpr auto operator()(X const& values, A const& axis) const;
  template <class X>
  constexpr auto operator()(X const& values) const;
  template <value X, class A = ints<0>>
  constexpr auto operator()(std::initializer_list<X> values, A const& axis = {}) const;
} cat{};
inline constexpr struct gather_t {
  static constexpr auto op_name = "gather";
  template <value X, class A, value I>
  constexpr auto operator()(X const& x, A const& axis, I const& index) const;
} gather{};
inline constexpr struct scatter_add_t {
  static constexpr auto op_name = "scatter_add";
  template <value X, class A, value I, value S>
  constexpr auto operator()(X const& x, A const& axis, I const& index, S const& source) const;
} scatter_add{};
inline constexpr struct one_hot_t {
  static constexpr auto op_name = "one_hot";
  template <value X, class N>
  constexpr auto operator()(X const& x, N const& num_classes) const;
} one_hot{};

/// The dtype of an element type as a compile-time constant, for `to(x, type<double>)` and factories.
template <class T>
inline constexpr ints<static_cast<index_t>(dtype_of_type<T>())> type{};
/// Keeps reduced dimensions with size 1: `sum(x, axis<1>, keepdim)`.
inline constexpr ints<1> keepdim{};

} // namespace varve
