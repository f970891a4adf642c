// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/error.hpp>
#include <varve/value/math.hpp>

#include <concepts>

namespace varve {

class tensor;
// The operators that are also members.
struct at_t;
struct copy__t;
struct fill__t;
struct zero__t;
struct add__t;
struct sub__t;
struct mul__t;
struct div__t;
struct clamp__t;
struct to_t;
struct clone_t;
struct contiguous_t;
struct reshape_t;
struct permute_t;
struct transpose_t;
struct expand_t;
struct squeeze_t;
struct unsqueeze_t;
struct flatten_t;
struct select_t;
struct narrow_t;
struct index_select_t;
struct unbind_t;
struct split_t;
struct chunk_t;
struct flip_t;
struct repeat_t;
struct sum_t;
struct mean_t;
struct prod_t;
struct var_t;
struct std_t;
struct amax_t;
struct amin_t;
struct argmax_t;
struct argmin_t;
struct all_t;
struct any_t;
struct softmax_t;
struct log_softmax_t;
struct logsumexp_t;
struct matmul_t;
struct mm_t;
struct dot_t;
struct abs_t;
struct neg_t;
struct exp_t;
struct log_t;
struct sqrt_t;
struct square_t;
struct sin_t;
struct cos_t;
struct tanh_t;
struct sigmoid_t;
struct relu_t;
struct pow_t;
struct vector_norm_t;
struct gather_t;
struct maximum_t;
struct minimum_t;
struct outer_t;
struct diagonal_t;
struct tril_t;
struct triu_t;
struct isnan_t;
struct logical_and_t;
struct logical_or_t;
struct logical_xor_t;
struct logical_not_t;
struct bitwise_and_t;
struct bitwise_or_t;
struct bitwise_xor_t;
struct bitwise_not_t;
struct clamp_t;

/// Common operators as members of a tensor, with PyTorch's names and arguments: `x.sum(1)`, `x.reshape({2, -1})`,
/// `x.add_(y)`. Generic code that must also accept numbers and arrays calls the functions instead: `sum(x)`. varve.hpp
/// declares all operators as functions.
struct member_operators : math::functions {
  /// Returns the part that indices select (`at`): `x[i]`, `x.at(i, j)`. It is a view, or a copy if an index is a
  /// tensor.
  template <class I>
  auto operator[](I const& i) const {
    return call<at_t>(i);
  }
  template <class... I>
  auto at(I const&... i) const {
    return call<at_t>(i...);
  }
  template <class T>
  auto to(T const& type) const {
    return call<to_t>(type);
  }
  template <class... A>
  auto clone(A const&... a) const {
    return call<clone_t>(a...);
  }
  template <class... A>
  auto contiguous(A const&... a) const {
    return call<contiguous_t>(a...);
  }
  template <class... A>
  auto transpose(A const&... a) const {
    return call<transpose_t>(a...);
  }
  template <class... A>
  auto squeeze(A const&... a) const {
    return call<squeeze_t>(a...);
  }
  template <class... A>
  auto unsqueeze(A const&... a) const {
    return call<unsqueeze_t>(a...);
  }
  template <class... A>
  auto flatten(A const&... a) const {
    return call<flatten_t>(a...);
  }
  template <class... A>
  auto select(A const&... a) const {
    return call<select_t>(a...);
  }
  template <class... A>
  auto narrow(A const&... a) const {
    return call<narrow_t>(a...);
  }
  template <class... A>
  auto index_select(A const&... a) const {
    return call<index_select_t>(a...);
  }
  template <class... A>
  auto unbind(A const&... a) const {
    return call<unbind_t>(a...);
  }
  template <class... A>
  auto split(A const&... a) const {
    return call<split_t>(a...);
  }
  template <class... A>
  auto chunk(A const&... a) const {
    return call<chunk_t>(a...);
  }
  template <class... A>
  auto flip(A const&... a) const {
    return call<flip_t>(a...);
  }
  template <class... A>
  auto repeat(A const&... a) const {
    return call<repeat_t>(a...);
  }
  template <class... A>
  auto sum(A const&... a) const {
    return call<sum_t>(a...);
  }
  template <class T = tensor>
  T sum(dims const& axes, bool keepdim = false) const {
    return call<dependent<sum_t, T>>(axes, keepdim);
  }
  template <class... A>
  auto mean(A const&... a) const {
    return call<mean_t>(a...);
  }
  template <class T = tensor>
  T mean(dims const& axes, bool keepdim = false) const {
    return call<dependent<mean_t, T>>(axes, keepdim);
  }
  template <class... A>
  auto prod(A const&... a) const {
    return call<prod_t>(a...);
  }
  template <class... A>
  auto var(A const&... a) const {
    return call<var_t>(a...);
  }
  template <class... A>
  auto std(A const&... a) const {
    return call<std_t>(a...);
  }
  template <class... A>
  auto amax(A const&... a) const {
    return call<amax_t>(a...);
  }
  template <class... A>
  auto amin(A const&... a) const {
    return call<amin_t>(a...);
  }
  template <class... A>
  auto argmax(A const&... a) const {
    return call<argmax_t>(a...);
  }
  template <class... A>
  auto argmin(A const&... a) const {
    return call<argmin_t>(a...);
  }
  template <class... A>
  auto all(A const&... a) const {
    return call<all_t>(a...);
  }
  template <class... A>
  auto any(A const&... a) const {
    return call<any_t>(a...);
  }
  template <class... A>
  auto softmax(A const&... a) const {
    return call<softmax_t>(a...);
  }
  template <class... A>
  auto log_softmax(A const&... a) const {
    return call<log_softmax_t>(a...);
  }
  template <class... A>
  auto logsumexp(A const&... a) const {
    return call<logsumexp_t>(a...);
  }
  template <class... A>
  auto matmul(A const&... a) const {
    return call<matmul_t>(a...);
  }
  template <class... A>
  auto mm(A const&... a) const {
    return call<mm_t>(a...);
  }
  template <class... A>
  auto dot(A const&... a) const {
    return call<dot_t>(a...);
  }
  template <class... A>
  auto abs(A const&... a) const {
    return call<abs_t>(a...);
  }
  template <class... A>
  auto neg(A const&... a) const {
    return call<neg_t>(a...);
  }
  template <class... A>
  auto exp(A const&... a) const {
    return call<exp_t>(a...);
  }
  template <class... A>
  auto log(A const&... a) const {
    return call<log_t>(a...);
  }
  template <class... A>
  auto sqrt(A const&... a) const {
    return call<sqrt_t>(a...);
  }
  template <class... A>
  auto square(A const&... a) const {
    return call<square_t>(a...);
  }
  template <class... A>
  auto sin(A const&... a) const {
    return call<sin_t>(a...);
  }
  template <class... A>
  auto cos(A const&... a) const {
    return call<cos_t>(a...);
  }
  template <class... A>
  auto tanh(A const&... a) const {
    return call<tanh_t>(a...);
  }
  template <class... A>
  auto sigmoid(A const&... a) const {
    return call<sigmoid_t>(a...);
  }
  template <class... A>
  auto relu(A const&... a) const {
    return call<relu_t>(a...);
  }
  template <class... A>
  auto pow(A const&... a) const {
    return call<pow_t>(a...);
  }
  template <class... A>
  auto clamp(A const&... a) const {
    return call<clamp_t>(a...);
  }
  template <class... A>
  auto norm(A const&... a) const {
    return call<vector_norm_t>(a...);
  }
  template <class... A>
  auto gather(A const&... a) const {
    return call<gather_t>(a...);
  }
  template <class... A>
  auto maximum(A const&... a) const {
    return call<maximum_t>(a...);
  }
  template <class... A>
  auto minimum(A const&... a) const {
    return call<minimum_t>(a...);
  }
  template <class... A>
  auto outer(A const&... a) const {
    return call<outer_t>(a...);
  }
  template <class... A>
  auto diagonal(A const&... a) const {
    return call<diagonal_t>(a...);
  }
  template <class... A>
  auto tril(A const&... a) const {
    return call<tril_t>(a...);
  }
  template <class... A>
  auto triu(A const&... a) const {
    return call<triu_t>(a...);
  }
  template <class... A>
  auto isnan(A const&... a) const {
    return call<isnan_t>(a...);
  }
  template <class... A>
  auto logical_and(A const&... a) const {
    return call<logical_and_t>(a...);
  }
  template <class... A>
  auto logical_or(A const&... a) const {
    return call<logical_or_t>(a...);
  }
  template <class... A>
  auto logical_xor(A const&... a) const {
    return call<logical_xor_t>(a...);
  }
  template <class... A>
  auto logical_not(A const&... a) const {
    return call<logical_not_t>(a...);
  }
  template <class... A>
  auto bitwise_and(A const&... a) const {
    return call<bitwise_and_t>(a...);
  }
  template <class... A>
  auto bitwise_or(A const&... a) const {
    return call<bitwise_or_t>(a...);
  }
  template <class... A>
  auto bitwise_xor(A const&... a) const {
    return call<bitwise_xor_t>(a...);
  }
  template <class... A>
  auto bitwise_not(A const&... a) const {
    return call<bitwise_not_t>(a...);
  }
  template <class... A>
  tensor const& copy_(A const&... a) const {
    return write<copy__t>(a...);
  }
  template <class... A>
  tensor const& fill_(A const&... a) const {
    return write<fill__t>(a...);
  }
  template <class... A>
  tensor const& zero_(A const&... a) const {
    return write<zero__t>(a...);
  }
  template <class... A>
  tensor const& add_(A const&... a) const {
    return write<add__t>(a...);
  }
  template <class... A>
  tensor const& sub_(A const&... a) const {
    return write<sub__t>(a...);
  }
  template <class... A>
  tensor const& mul_(A const&... a) const {
    return write<mul__t>(a...);
  }
  template <class... A>
  tensor const& div_(A const&... a) const {
    return write<div__t>(a...);
  }
  template <class... A>
  tensor const& clamp_(A const&... a) const {
    return write<clamp__t>(a...);
  }
  /// Returns the elements in another shape. One size may be -1.
  template <class T = tensor>
  T reshape(dims const& sizes) const {
    return call<dependent<reshape_t, T>>(sizes);
  }
  template <std::convertible_to<index_t>... I>
    requires(sizeof...(I) > 1)
  auto reshape(I const&... sizes) const {
    return call<dependent<reshape_t, I...>>(dims(sizes...));
  }
  /// Returns a view in another shape, like `reshape` but never a copy. Throws `value_error` if the strides do not allow
  /// a view.
  template <class T = tensor>
  T view(dims const& sizes) const {
    T const r = call<dependent<reshape_t, T>>(sizes);
    if (!r.shares_storage(static_cast<T const&>(*this)))
      refuse::argument_is_invalid("view", "the elements do not lie as the shape asks for; use reshape");
    return r;
  }
  template <std::convertible_to<index_t>... I>
    requires(sizeof...(I) > 1)
  auto view(I const&... sizes) const {
    return view<dependent<tensor, I...>>(dims(sizes...));
  }
  template <class T = tensor>
  T permute(dims const& axes) const {
    return call<dependent<permute_t, T>>(axes);
  }
  template <std::convertible_to<index_t>... I>
    requires(sizeof...(I) > 1)
  auto permute(I const&... axes) const {
    return call<dependent<permute_t, I...>>(dims(axes...));
  }
  template <class T = tensor>
  T expand(dims const& sizes) const {
    return call<dependent<expand_t, T>>(sizes);
  }
  template <std::convertible_to<index_t>... I>
    requires(sizeof...(I) > 1)
  auto expand(I const&... sizes) const {
    return call<dependent<expand_t, I...>>(dims(sizes...));
  }
  /// Returns the transpose of a matrix. A tensor with fewer than two dimensions is returned unchanged.
  template <class T = tensor>
  T t() const {
    auto const& self = static_cast<T const&>(*this);
    if (self.dim() > 2) refuse::argument_is_invalid("t", "it is for matrices; use transpose(0, 1)");
    return self.dim() < 2 ? self : T(call<dependent<transpose_t, T>>(0, 1));
  }
  /// Returns matrices with rows and columns exchanged (`x.mT`).
  template <class T = tensor>
  T mT() const {
    if (static_cast<T const&>(*this).dim() < 2)
      refuse::argument_is_invalid("mT", "it is for matrices and batches of them");
    return call<dependent<transpose_t, T>>(-2, -1);
  }
  /// Return the largest and the smallest of all elements.
  template <class T = tensor>
  T(max)() const {
    return call<dependent<amax_t, T>>();
  }
  template <class T = tensor>
  T(min)() const {
    return call<dependent<amin_t, T>>();
  }

protected:
  template <class Op, class... A>
  decltype(auto) call(A const&... a) const {
    return Op{}(static_cast<dependent<tensor, Op> const&>(*this), a...);
  }
  /// Calls an operator that writes into this tensor, and returns the tensor.
  template <class Op, class... A>
  auto& write(A const&... a) const {
    call<Op>(a...);
    return static_cast<dependent<tensor, Op> const&>(*this);
  }
};

} // namespace varve
