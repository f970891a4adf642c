// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/leaf.hpp>
#include <varve/interpreter/become_view.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/reshape.hpp>

/// @file
/// Operators that change the shape of a tensor in place, not its elements (`transpose_`, `t_`, `squeeze_`,
/// `unsqueeze_`, `resize_`). The tensor becomes the view of itself that the operator without underscore returns. Levels
/// and modes that see the tensor process that operator. The version counter rises by one, so that a backward pass that
/// saved the tensor notices the change. Inside a transform the arguments of the transform do not change for its caller.
/// Throws `autograd_error` for leaves that require grad, in grad mode, and for values with a history, in no_grad mode.
/// Traces refuse to change the shape of an argument (`value_error`), because a graph cannot express that.
namespace varve {

/// Exchanges two dimensions of x in place.
inline constexpr struct transpose__t {
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x, index_t first, index_t second) const {
    return detail::become("transpose_", x, [&](T const& v) { return T(transpose(v, first, second)); });
  }
} transpose_{};
/// Exchanges the two dimensions of a matrix in place; vectors and scalars do not change.
inline constexpr struct t__t {
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x) const {
    if (x.dim() > 2) refuse::argument_is_invalid("t_", "the tensor has more than two dimensions");
    return x.dim() < 2 ? x : transpose_(x, 0, 1);
  }
} t_{};
/// Removes dimensions of size 1 in place: all of them, or the given axis if its size is 1.
inline constexpr struct squeeze__t {
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x) const {
    return detail::become("squeeze_", x, [](T const& v) { return T(squeeze(v)); });
  }
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x, index_t axis) const {
    return detail::become("squeeze_", x, [&](T const& v) { return T(squeeze(v, dims{axis})); });
  }
} squeeze_{};
/// Adds a dimension of size 1 at an axis in [-rank-1, rank] in place.
inline constexpr struct unsqueeze__t {
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x, index_t axis) const {
    return detail::become("unsqueeze_", x, [&](T const& v) { return T(unsqueeze(v, dims{axis})); });
  }
} unsqueeze_{};
/// Changes the sizes of a tensor in place, row-major over the elements as they lie in memory (`Tensor.resize_`).
/// Additional elements are not initialized; the tensor must then own its memory alone (`autograd_error`). It must not
/// require a gradient (`autograd_error`).
inline constexpr struct resize__t {
  template <class T>
    requires std::is_same_v<T, tensor>
  tensor const& operator()(T const& x, dims const& sizes) const {
    if (!x.defined()) detail::refuse_undefined("resize_");
    if (x.has_history()) detail::refuse_autograd("resize_", "a tensor that requires grad cannot be resized");
    if (x.sizes() == sizes) return x;
    if (numel(sizes) <= x.numel())
      return detail::become("resize_", x,
                            [&](T const& v) { return T(as_strided(v, sizes, contiguous_strides(sizes))); });
    if (!x.has_data() || x.is_wrapped() || x.is_view() || !x.has_own_memory())
      detail::refuse_autograd("resize_",
                              "a tensor that shares its memory, or has none of its own, cannot grow; copy it "
                              "into a greater one");
    T const more = T::empty(sizes, x.dtype());
    if (x.numel() > 0) copy_(T(as_strided(more, x.sizes(), x.strides(), dims{0})), x);
    return set_(x, more);
  }
} resize_{};

} // namespace varve
