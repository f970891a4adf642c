// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Activations, normalizations and convolutions, by name.
std::span<call_row const> networks();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const nn_family{&networks};

/// `padding` is a text in one overload of each convolution.
template <class Op>
tensor convolved(tensor const& x, tensor const& w, tensor const& b, dims stride, dims pad, dims dilation, index_t g) {
  return b.defined() ? tensor(Op{}(x, w, b, stride, pad, dilation, dims{g}))
                     : tensor(Op{}(x, w, none, stride, pad, dilation, dims{g}));
}
template <class Op>
tensor convolved_padded(tensor const& x, tensor const& w, tensor const& b, dims stride, std::string const& pad,
                        dims dilation, index_t g) {
  if (pad == "valid") return convolved<Op>(x, w, b, stride, dims{0}, dilation, g);
  if (pad != "same") refuse::argument_is_invalid(Op::op_name, "padding is 'same', 'valid' or numbers");
  return b.defined() ? tensor(Op{}(x, w, b, stride, padding::same, dilation, dims{g}))
                     : tensor(Op{}(x, w, none, stride, padding::same, dilation, dims{g}));
}
template <class Op>
tensor convolved_back(tensor const& x, tensor const& w, tensor const& b, dims stride, dims pad, dims more, index_t g,
                      dims dilation) {
  return b.defined() ? tensor(Op{}(x, w, b, stride, pad, more, dims{g}, dilation))
                     : tensor(Op{}(x, w, none, stride, pad, more, dims{g}, dilation));
}
inline tensor normalized(tensor const& x, dims s, tensor const& w, tensor const& b, double eps) {
  if (w.defined()) return b.defined() ? layer_norm(x, s, w, b, eps) : layer_norm(x, s, w, none, eps);
  return b.defined() ? layer_norm(x, s, none, b, eps) : layer_norm(x, s, none, none, eps);
}

VARVE_LIBRARY std::span<call_row const> networks() {
  using enum call_forms;
  static call_row const rows[] = {
      {"gelu(Tensor self, *, str approximate='none') -> Tensor",
       +[](tensor const& x, std::string const& a) -> tensor {
         if (a == "tanh") return gelu(x, approximate::tanh);
         if (a != "none") refuse::argument_is_invalid("gelu", "approximate is 'none' or 'tanh'");
         return gelu(x);
       },
       both, "nn.functional.gelu"},
      {"silu(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return silu(x); }, both, "nn.functional.silu"},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
       +[](tensor const& x, double beta, double threshold) -> tensor { return softplus(x, beta, threshold); }, out,
       "nn.functional.softplus"},
      {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
       "bool cudnn_enable=True) -> Tensor",
       +[](tensor const& x, dims s, tensor const& w, tensor const& b, double eps, bool) {
         return normalized(x, s, w, b, eps);
       },
       "nn.functional.layer_norm"},
      {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] "
       "dilation=1, SymInt groups=1) -> Tensor",
       convolved<conv1d_t>, "nn.functional.conv1d"},
      {"conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding='valid', "
       "SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
       convolved_padded<conv1d_t>, "nn.functional.conv1d"},
      {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] "
       "dilation=1, SymInt groups=1) -> Tensor",
       convolved<conv2d_t>, "nn.functional.conv2d"},
      {"conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding='valid', "
       "SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
       convolved_padded<conv2d_t>, "nn.functional.conv2d"},
      {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] "
       "dilation=1, SymInt groups=1) -> Tensor",
       convolved<conv3d_t>, "nn.functional.conv3d"},
      {"conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str padding='valid', "
       "SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
       convolved_padded<conv3d_t>, "nn.functional.conv3d"},
      {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
       "SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor",
       convolved_back<conv_transpose1d_t>, "nn.functional.conv_transpose1d"},
      {"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
       "padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor",
       convolved_back<conv_transpose2d_t>, "nn.functional.conv_transpose2d"},
      {"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
       "padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor",
       convolved_back<conv_transpose3d_t>, "nn.functional.conv_transpose3d"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
