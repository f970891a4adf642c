// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/convolution.hpp>

/// @file
/// `torch.nn.functional.conv1d` and its siblings. Attributes are one number, or one for each spatial dimension. The
/// input may lack the batch dimension.
namespace varve {

/// Padding of `conv1d`, `conv2d` and `conv3d` by name. `valid` pads nothing; `same` pads so that the result has the
/// sizes of the input. An odd padding puts one more element at the end than at the start. `same` requires strides of 1.
struct padding {
  static constexpr ints<0> valid{};
  static constexpr ints<INT64_MIN> same{};
};

namespace detail {
/// Returns whether the input is a single sample of `N` spatial dimensions, without a batch dimension.
template <class Tag, int N>
struct is_one_sample {
  constexpr dims operator()(dims const& x, dims const& w) const {
    if (w.n != N + 2 || (x.n != N + 1 && x.n != N + 2)) refuse::shapes_do_not_match(Tag::op_name, x, w);
    return {x.n == N + 1};
  }
};
/// Total padding of "same" in one dimension, at both ends together.
constexpr extent same_padding(dims const& dilation, dims const& w, int k) {
  return dilation[dilation.n == 1 ? 0 : k] * (w[k + 2] - 1);
}
inline constexpr auto before_same = [](dims const& dilation, dims const& w, dims const& stride) {
  dims r;
  for (int k = 0; k + 2 < w.n; ++k) r.push_back(same_padding(dilation, w, k) / 2);
  for (index_t s : stride)
    if (s != 1) refuse::argument_is_invalid("convolution", "padding::same is for strides of 1");
  if (dilation.n != 1 && dilation.n != r.n)
    refuse::argument_is_invalid("convolution", "dilation is one number, or one for each spatial dimension");
  return r;
};
inline constexpr auto grown_for_same = [](dims const& dilation, dims const& w, dims const& x) {
  dims r = x;
  for (int k = 0; k + 2 < w.n; ++k) r[k + 2] += same_padding(dilation, w, k) % 2;
  return r;
};
/// Appends zeros along each axis that is shorter than wanted.
template <int Axis, value V, fact S>
constexpr auto grown(V const& v, S const& sizes) {
  if constexpr (Axis == 5) return v;
  else {
    auto const whole = on_dims(
        [](dims const& have, dims const& want) {
          dims r = have;
          if (Axis < r.n) r[Axis] = want[Axis];
          return r;
        },
        shape_of(v), sizes);
    auto const range = on_dims(
        [](dims const& have) {
          int const axis = Axis < have.n ? Axis : have.n - 1;
          return dims{axis, 0, have[axis], 1};
        },
        shape_of(v));
    return grown<Axis + 1>(
        choose(
            same_fact(shape_of(v), whole), identity, [&](auto const& u) { return slice_backward(u, whole, range); }, v),
        sizes);
  }
}

/// The implementation shared by the public functions.
template <class Tag, int N, bool Transposed>
struct convolution_of : composite_operator<Tag> {
  using composite_operator<Tag>::operator();
  template <class X, class W, class B, class... A>
  constexpr auto operator()(X const& x, W const& w, B const& bias, braces stride, A const&... more) const {
    return (*this)(x, w, bias, dims_in(stride), more...);
  }
  template <class X, class W, class B, class... A>
  constexpr auto operator()(X const& x, W const& w, B const& bias, braces stride, braces pad, A const&... more) const {
    return (*this)(x, w, bias, dims_in(stride), dims_in(pad), more...);
  }

protected:
  template <class X, class W, class B, class S, class P, class D, class O, class G>
  static constexpr auto run(X const& x, W const& w, B const& bias, S const& stride, P const& pad, D const& dilation,
                            O const& output_padding, G const& groups) {
    auto const alone = on_dims(is_one_sample<Tag, N>{}, shape_of(x), shape_of(w));
    if constexpr (refused<std::remove_const_t<decltype(alone)>>) return x;
    else {
      auto const one = same_fact(alone, ints<1>{});
      auto const samples =
          choose(one, [](auto const& v) { return reshape(v, on_dims(prepend, shape_of(v), ints<1>{})); }, identity, x);
      auto const y = [&] {
        if constexpr (std::is_same_v<P, ints<INT64_MIN>>) return run_same(samples, w, bias, stride, dilation, groups);
        else return convolution(samples, w, bias, stride, pad, dilation, ints<Transposed>{}, output_padding, groups);
      }();
      return choose(one, [](auto const& v) { return reshape(v, on_dims(drop_first, shape_of(v))); }, identity, y);
    }
  }

private:
  template <class X, class W, class B, class S, class D, class G>
  static constexpr auto run_same(X const& x, W const& w, B const& bias, S const& stride, D const& dilation,
                                 G const& groups) {
    auto const before = on_dims(before_same, as_fact(dilation), shape_of(w), as_fact(stride));
    return convolution(grown<2>(x, on_dims(grown_for_same, as_fact(dilation), shape_of(w), shape_of(x))), w, bias,
                       stride, before, dilation, ints<0>{}, ints<0>{}, groups);
  }
};
template <class Tag, int N>
struct conv_of : convolution_of<Tag, N, false> {
  template <value X, value W, class B = none_t, class S = ints<1>, class P = ints<0>, class D = ints<1>,
            class G = ints<1>>
  static constexpr auto body(X const& input, W const& weight, B const& bias = {}, S const& stride = {},
                             P const& pad = {}, D const& dilation = {}, G const& groups = {}) {
    return conv_of::run(input, weight, bias, stride, pad, dilation, ints<0>{}, groups);
  }
};
template <class Tag, int N>
struct conv_transpose_of : convolution_of<Tag, N, true> {
  template <value X, value W, class B = none_t, class S = ints<1>, class P = ints<0>, class O = ints<0>,
            class G = ints<1>, class D = ints<1>>
  static constexpr auto body(X const& input, W const& weight, B const& bias = {}, S const& stride = {},
                             P const& pad = {}, O const& output_padding = {}, G const& groups = {},
                             D const& dilation = {}) {
    return conv_transpose_of::run(input, weight, bias, stride, pad, dilation, output_padding, groups);
  }
};
} // namespace detail

/// `conv1d(input, weight, bias = none, stride = 1, padding = 0, dilation = 1, groups = 1)`: input [n, in, length] or
/// [in, length], weight [out, in / groups, taps], bias [out]. The dtypes must be equal. Static values take attributes
/// as types: `conv1d(x, w, none, ints<2>{}, padding::same)`.
inline constexpr struct conv1d_t : detail::conv_of<conv1d_t, 1> {
  static constexpr auto op_name = "conv1d";
} conv1d{};
/// `conv2d(input, weight, bias = none, stride = 1, padding = 0, dilation = 1, groups = 1)`: input [n, in, height,
/// width] or [in, height, width], weight [out, in / groups, height, width].
inline constexpr struct conv2d_t : detail::conv_of<conv2d_t, 2> {
  static constexpr auto op_name = "conv2d";
} conv2d{};
/// `conv3d(input, weight, bias = none, stride = 1, padding = 0, dilation = 1, groups = 1)`: the convolution with three
/// spatial dimensions.
inline constexpr struct conv3d_t : detail::conv_of<conv3d_t, 3> {
  static constexpr auto op_name = "conv3d";
} conv3d{};
/// `conv_transpose1d(input, weight, bias = none, stride = 1, padding = 0, output_padding = 0, groups = 1, dilation =
/// 1)`: the transpose of `conv1d` with respect to its input. The weight is [in, out / groups, taps]. The result has
/// (length - 1) stride - 2 padding + dilation (taps - 1) + output_padding + 1 elements.
inline constexpr struct conv_transpose1d_t : detail::conv_transpose_of<conv_transpose1d_t, 1> {
  static constexpr auto op_name = "conv_transpose1d";
} conv_transpose1d{};
/// `conv_transpose1d` with two spatial dimensions.
inline constexpr struct conv_transpose2d_t : detail::conv_transpose_of<conv_transpose2d_t, 2> {
  static constexpr auto op_name = "conv_transpose2d";
} conv_transpose2d{};
/// `conv_transpose1d` with three spatial dimensions.
inline constexpr struct conv_transpose3d_t : detail::conv_transpose_of<conv_transpose3d_t, 3> {
  static constexpr auto op_name = "conv_transpose3d";
} conv_transpose3d{};

} // namespace varve
