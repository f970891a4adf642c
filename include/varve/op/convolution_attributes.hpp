// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/core/dtype.hpp>

/// @file
/// The attributes of convolutions as integer lists: the user's arguments, and those of gradients and mapped calls.
namespace varve::detail {

/// The attributes of a convolution besides {stride} and {padding} are one list, {dilation..., transposed, groups,
/// output_padding...}. `s` is any list with one number for each spatial dimension.
inline constexpr auto is_transposed = [](dims const& s, dims const& rest) { return dims{rest[s.n] != 0}; };
inline constexpr auto groups_of = [](dims const& s, dims const& rest) { return dims{rest[s.n + 1]}; };
inline constexpr auto dilation_of = [](dims const& s, dims const& rest) { return rest.sub(0, s.n); };
constexpr dims convolution_rest(dims const& dilation, bool transposed, index_t groups, dims const& output_padding) {
  dims r = dilation;
  r.push_back(transposed).push_back(groups);
  for (index_t p : output_padding) r.push_back(p);
  return r;
}
constexpr dims zeros_for_each(dims const& s) {
  dims r = s;
  for (int k = 0; k < r.n; ++k) r[k] = 0;
  return r;
}
inline constexpr auto with_more_groups = [](dims const& s, dims const& rest, dims const& weight) {
  dims r = rest;
  r[s.n + 1] *= weight[0];
  return r;
};
/// Returns the sizes of the result.
inline constexpr auto convolution_result = [](dims const& x, dims const& w, dims const& stride, dims const& pad,
                                              dims const& rest) {
  int const n = stride.n;
  if (x.n != n + 2 || w.n != n + 2) refuse::shapes_do_not_match("convolution", x, w);
  bool const transposed = rest[n] != 0;
  index_t const groups = rest[n + 1]; // 0 under a `vmap` over 0 lanes
  if (x[1] != (transposed ? w[0] : w[1] * groups) || (groups > 0 && w[0] % groups != 0))
    refuse::shapes_do_not_match("convolution (channels and groups)", x, w);
  dims s{x[0], transposed ? w[1] * groups : w[0]};
  for (int k = 0; k < n; ++k) {
    extent const size = x[k + 2], taps = w[k + 2], reach = rest[k] * (taps - 1) + 1, whole = size + 2 * pad[k];
    extent const out = transposed      ? (size - 1) * stride[k] - 2 * pad[k] + reach + rest[n + 2 + k]
                       : whole < reach ? extent(0)
                                       : (whole - reach) / stride[k] + 1;
    if (size < 1 || taps < 1 || out < 1)
      refuse::shapes_do_not_match("convolution (the kernel and the padded input)", x, w);
    s.push_back(out);
  }
  return s;
};
/// Returns the attribute list of the transposed convolution, which computes the input's gradient. Its output padding
/// makes up for the missing part of the input's size.
inline constexpr auto rest_of_the_other_way = [](dims const& stride, dims const& pad, dims const& rest,
                                                 dims const& input, dims const& output, dims const& weight) {
  dims more = zeros_for_each(stride);
  bool const transposed = rest[stride.n] != 0;
  for (int k = 0; k < more.n && !transposed; ++k)
    more[k] = input[k + 2] - ((output[k + 2] - 1) * stride[k] - 2 * pad[k] + rest[k] * (weight[k + 2] - 1) + 1);
  return convolution_rest(rest.sub(0, stride.n), !transposed, rest[stride.n + 1], more);
};
/// Returns the attribute list of the convolution that computes the weight's gradient. Its dilation is this
/// convolution's stride, and its stride this convolution's dilation.
inline constexpr auto rest_of_weight_gradient = [](dims const& stride, dims const& rest) {
  return convolution_rest(stride, false, rest[stride.n + 1], zeros_for_each(stride));
};

/// Returns one number for each spatial dimension of an input. Refuses numbers below `least`.
constexpr dims for_each_dimension(dims const& given, dims const& input, index_t least, char const* what) {
  int const n = input.n - 2;
  if (n < 1 || n > 3)
    refuse::argument_is_invalid("convolution", "the input has samples, channels, and one to three spatial dimensions");
  if (given.n != 1 && given.n != n)
    refuse::argument_is_invalid(
        "convolution",
        "stride, padding, dilation and output_padding are one number, or one for each spatial dimension");
  dims r;
  for (int k = 0; k < n; ++k) {
    r.push_back(given[given.n == 1 ? 0 : k]);
    if (r[k] < least) refuse::argument_is_invalid("convolution", what);
  }
  return r;
}
inline constexpr auto convolution_stride = [](dims const& s, dims const& x) {
  return for_each_dimension(s, x, 1, "the stride must be positive");
};
inline constexpr auto convolution_padding = [](dims const& p, dims const& x) {
  return for_each_dimension(p, x, 0, "the padding must not be negative");
};
inline constexpr auto all_of_convolution = [](dims const& dilation, dims const& transposed, dims const& output_padding,
                                              dims const& groups, dims const& stride, dims const& x) {
  dims const d = for_each_dimension(dilation, x, 1, "the dilation must be positive");
  dims more = for_each_dimension(output_padding, x, 0, "output_padding must not be negative");
  if (groups.n != 1 || groups[0] < 1) refuse::argument_is_invalid("convolution", "groups must be positive");
  bool const other_way = transposed[0] != 0;
  for (int k = 0; k < more.n; ++k)
    if (!other_way) more[k] = 0;
    else if (more[k] >= stride[k] && more[k] >= d[k])
      refuse::argument_is_invalid("convolution", "output_padding must be smaller than stride or dilation");
  return convolution_rest(d, other_way, groups[0], more);
};
inline constexpr auto bias_sizes = [](dims const& bias, dims const& y, dims const& bias_type, dims const& type) {
  if (bias.n != 1 || bias[0] != y[1]) refuse::shapes_do_not_match("convolution (bias and result)", bias, y);
  if (!(bias_type == type))
    refuse::dtype_is_not_supported("convolution with a bias of another dtype:", name(static_cast<dtype>(bias_type[0])));
  dims r = bias;
  for (int k = 2; k < y.n; ++k) r.push_back(1);
  return r;
};
/// True if attributes were refused at compile time; then nothing more must be instantiated.
template <class... F>
inline constexpr bool refused = (std::is_same_v<F, ints<>> || ...);

} // namespace varve::detail
