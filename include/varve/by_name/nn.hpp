// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of activations, losses, normalizations, attention and convolutions.
std::span<call_row const> networks();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/nn/activation.hpp>
#include <varve/nn/attention.hpp>
#include <varve/nn/loss.hpp>
#include <varve/nn/normalization.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const nn_family{&networks};

/// Calls a convolution. In another overload `padding` is a text (`convolved_padded`).
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
  for (tensor const& p : {w, b})
    if (p.defined() && !(p.sizes() == s)) refuse::shapes_do_not_match("layer_norm", s, p.sizes());
  if (w.defined()) return b.defined() ? layer_norm(x, s, w, b, eps) : layer_norm(x, s, w, none, eps);
  return b.defined() ? layer_norm(x, s, none, b, eps) : layer_norm(x, s, none, none, eps);
}

/// Returns the result of `normalized` with the means and the inverse standard deviations.
inline std::tuple<tensor, tensor, tensor> normalized_and_kept(tensor const& x, dims s, tensor const& w, tensor const& b,
                                                              double eps) {
  dims const axes = detail::normalized_axes(x.sizes(), s);
  auto const inverse_deviation = [&](tensor const& v) -> tensor {
    return rsqrt(add(mean(square(sub(v, mean(v, axes, keepdim))), axes, keepdim), eps));
  };
  return {normalized(x, s, w, b, eps), mean(x, axes, keepdim), detail::halves_in_float(inverse_deviation, x)};
}

/// Returns a loss reduction by name.
inline dims reduced_by(char const* op, std::string const& how) {
  char const* const names[] = {"none", "mean", "sum", "batchmean"};
  for (int k = 0; k < 4; ++k)
    if (how == names[k] && (k < 3 || std::string_view(op) == "kl_div")) return dims{k};
  refuse::argument_is_invalid(op, "the reduction is 'mean', 'sum' or 'none'");
}
/// Calls `f(w)`, or `f(none)` for None.
template <class F>
tensor with_optional(tensor const& w, F const& f) {
  if (w.defined()) return f(w);
  return f(none);
}
/// The type of `size_average` and `reduce`, which PyTorch has deprecated for `reduction`. Their values are ignored.
using none_flag = std::optional<bool>;
template <class Op>
tensor lost_as_before(tensor const& x, tensor const& y, none_flag, none_flag, std::string const& how) {
  return Op{}(x, y, reduced_by(Op::op_name, how));
}

/// Calls `f(w, b)`; either may be None.
template <class F>
tensor with_two_optional(tensor const& w, tensor const& b, F const& f) {
  return with_optional(w, [&](auto const& v) { return with_optional(b, [&](auto const& u) { return f(v, u); }); });
}
/// Updates the running statistics.
inline void keep_running(tensor const& x, tensor const& mean_, tensor const& var_, double momentum) {
  dims const axes = detail::all_but_channels(x.sizes());
  if (mean_.defined())
    copy_(mean_, add(mul(mean_, 1 - momentum), mul(tensor(mean(detach(x), axes, dims{0})), momentum)));
  if (var_.defined()) copy_(var_, add(mul(var_, 1 - momentum), mul(tensor(var(detach(x), axes, 1)), momentum)));
}
inline tensor batch_normalized(tensor const& x, tensor const& w, tensor const& b, tensor const& m, tensor const& v,
                               bool training, double momentum, double eps) {
  detail::needs_real("batch_norm", x, w, b, m, v);
  for (extent n : x.sizes())
    if (known_equal(n, 0)) return clone(x); // running statistics stay unchanged
  if (training) {
    if (x.dim() < 2 || x.numel() == index_t(x.sizes()[1]))
      refuse::argument_is_invalid("batch_norm", "more than one value for each channel is expected when training");
    keep_running(x, m, v, momentum);
    return with_two_optional(
        w, b, [&](auto const& p, auto const& q) -> tensor { return batch_norm(x, none, none, p, q, eps); });
  }
  if (!m.defined() || !v.defined())
    refuse::argument_is_invalid("batch_norm", "outside of training running_mean and running_var are needed");
  return with_two_optional(w, b,
                           [&](auto const& p, auto const& q) -> tensor { return batch_norm(x, m, v, p, q, eps); });
}
inline tensor instance_normalized(tensor const& x, tensor const& w, tensor const& b, tensor const& m, tensor const& v,
                                  bool use_input, double momentum, double eps) {
  detail::needs_real("instance_norm", x, w, b, m, v);
  if (!use_input) return batch_normalized(x, w, b, m, v, false, momentum, eps);
  if (m.defined() || v.defined()) {
    dims axes;
    for (int k = 2; k < x.dim(); ++k) axes.push_back(k);
    auto const kept = [&](tensor const& old, tensor const& now) {
      if (old.defined()) copy_(old, add(mul(old, 1 - momentum), mul(tensor(mean(now, dims{0})), momentum)));
    };
    kept(m, mean(detach(x), axes, dims{0}));
    kept(v, var(detach(x), axes, 1));
  }
  return with_two_optional(w, b, [&](auto const& p, auto const& q) -> tensor { return instance_norm(x, p, q, eps); });
}
/// Returns a batch normalization with the values that its gradient would keep.
inline std::tuple<tensor, tensor, tensor> batch_normalized_and_saved(tensor const& x, tensor const& w, tensor const& b,
                                                                     tensor const& m, tensor const& v, bool training,
                                                                     double momentum, double eps) {
  detail::needs_real("batch_norm", x, w, b, m, v);
  dims const axes = detail::all_but_channels(x.sizes());
  auto const none_kept = [&] { return tensor(zeros(dims{0}, x.dtype())); };
  tensor const mean_ = training ? tensor(mean(x, axes, dims{0})) : none_kept();
  tensor const inverse = training ? tensor(rsqrt(add(tensor(var(x, axes, 0)), eps))) : none_kept();
  return {batch_normalized(x, w, b, m, v, training, momentum, eps), mean_, inverse};
}
inline tensor attended(tensor const& q, tensor const& k, tensor const& v, tensor const& mask, double dropout,
                       bool causal, std::optional<double> scale, bool gqa) {
  if (dropout != 0 || gqa)
    refuse::argument_is_invalid("scaled_dot_product_attention", "there is neither dropout nor grouping here");
  if (causal && mask.defined())
    refuse::argument_is_invalid("scaled_dot_product_attention", "is_causal and a mask exclude each other");
  return with_optional(mask, [&](auto const& m) -> tensor {
    if (scale) return scaled_dot_product_attention(q, k, v, m, causal, *scale);
    return scaled_dot_product_attention(q, k, v, m, causal);
  });
}

/// Returns the result of multi-head attention and, if wanted, the weights.
inline argument::list attended_by_heads(tensor const& q, tensor const& k, tensor const& v, index_t size, index_t heads,
                                        tensor const& w, tensor const& b, tensor const& bias_k, tensor const& bias_v,
                                        bool add_zero, double dropped, tensor const& out_w, tensor const& out_b,
                                        bool training, tensor const& padding, bool weights, tensor const& mask,
                                        bool apart, tensor const& q_w, tensor const& k_w, tensor const& v_w,
                                        tensor const& static_k, tensor const& static_v, bool average, bool causal) {
  constexpr auto op = "multi_head_attention_forward";
  if (q.dim() < 2 || !(q.sizes()[q.dim() - 1] == size))
    refuse::argument_is_invalid(op, "embed_dim_to_check is the last size of the query");
  if (causal && !mask.defined())
    refuse::argument_is_invalid(op, "is_causal is a hint about attn_mask, which is missing");
  if (apart ? !q_w.defined() || !k_w.defined() || !v_w.defined() : !w.defined())
    refuse::argument_is_invalid(op, "in_proj_weight or, with use_separate_proj_weight, the three others are needed");
  multi_head_attention_options<tensor> o;
  if (apart) o.query_weight = q_w, o.key_weight = k_w, o.value_weight = v_w;
  else o.weight = w;
  o.bias = b, o.more_key = bias_k, o.more_value = bias_v, o.fixed_key = static_k, o.fixed_value = static_v;
  o.result_weight = out_w, o.result_bias = out_b, o.padding_mask = padding, o.mask = mask;
  o.more_zeros = add_zero, o.average_weights = average, o.dropout = training ? dropped : 0;
  auto const [y, shares] = multi_head_attention(q, k, v, heads, o);
  return argument::list{y, weights ? argument(shares) : argument()};
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
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
       +[](tensor const& x, double s) -> tensor { return leaky_relu(x, s); }, both, "nn.functional.leaky_relu"},
      {"prelu(Tensor self, Tensor weight) -> Tensor",
       +[](tensor const& x, tensor const& w) -> tensor { return prelu(x, w); }, "nn.functional.prelu"},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
       +[](tensor const& x, double a, double s, double i) -> tensor { return elu(x, a, s, i); }, both,
       "nn.functional.elu"},
      {"celu(Tensor self, Scalar alpha=1.0) -> Tensor", +[](tensor const& x, double a) -> tensor { return celu(x, a); },
       in_place, "nn.functional.celu"},
      {"selu(Tensor self) -> Tensor", of_one<selu_t>, in_place, "nn.functional.selu"},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
       +[](tensor const& x, tensor const& lo, tensor const& hi) -> tensor {
         return with_number(
             lo, [&](auto l) { return with_number(hi, [&](auto h) -> tensor { return hardtanh(x, l, h); }); });
       },
       both, "nn.functional.hardtanh"},
      {"relu6(Tensor self) -> Tensor", of_one<relu6_t>, in_place, "nn.functional.relu6"},
      {"hardsigmoid(Tensor self) -> Tensor", of_one<hardsigmoid_t>, both, "nn.functional.hardsigmoid"},
      {"hardswish(Tensor self) -> Tensor", of_one<hardswish_t>, both, "nn.functional.hardswish"},
      {"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       +[](tensor const& x, double l) -> tensor { return hardshrink(x, l); }, out, "nn.functional.hardshrink"},
      {"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       +[](tensor const& x, double l) -> tensor { return softshrink(x, l); }, out, "nn.functional.softshrink"},
      {"nn.functional.softsign(Tensor input) -> Tensor", of_one<softsign_t>},
      {"nn.functional.tanhshrink(Tensor input) -> Tensor", of_one<tanhshrink_t>},
      {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
       +[](tensor const& x, tensor const& t, tensor const& v) -> tensor {
         return with_number(
             t, [&](auto a) { return with_number(v, [&](auto b) -> tensor { return threshold(x, a, b); }); });
       },
       both, "nn.functional.threshold"},
      {"mish(Tensor self) -> Tensor", of_one<mish_t>, both, "nn.functional.mish"},
      {"log_sigmoid(Tensor self) -> Tensor", of_one<logsigmoid_t>, out, "nn.functional.logsigmoid"},
      {"glu(Tensor self, int dim=-1) -> Tensor", +[](tensor const& x, index_t a) -> tensor { return glu(x, dims{a}); },
       out, "nn.functional.glu"},
      {"nn.functional.softmin(Tensor input, int dim, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, index_t, std::optional<dtype> t) -> tensor {
         return softmin(t ? tensor(to(x, *t)) : x, dims{a});
       }},
      {"nn.functional.mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean') -> Tensor",
       lost_as_before<mse_loss_t>},
      {"nn.functional.l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean') -> Tensor",
       lost_as_before<l1_loss_t>},
      {"nn.functional.soft_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean') -> Tensor",
       lost_as_before<soft_margin_loss_t>},
      {"nn.functional.multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
       "str "
       "reduction='mean') -> Tensor",
       lost_as_before<multilabel_margin_loss_t>},
      {"_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       +[](tensor const& g, tensor const& y, index_t a, dtype t) -> tensor {
         detail::needs_real("_softmax_backward_data", g, y);
         return to(sub(mul(g, y), mul(y, sum(mul(g, y), dims{a}, keepdim))), t);
       },
       out},
      {"nn.functional.smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean', float beta=1.0) -> Tensor",
       +[](tensor const& x, tensor const& y, none_flag, none_flag, std::string const& how, double b) -> tensor {
         return smooth_l1_loss(x, y, reduced_by("smooth_l1_loss", how), b);
       }},
      {"nn.functional.huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0) -> Tensor",
       +[](tensor const& x, tensor const& y, std::string const& how, double d) -> tensor {
         return huber_loss(x, y, reduced_by("huber_loss", how), d);
       }},
      {"nn.functional.binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
       "bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, none_flag, none_flag, std::string const& how) -> tensor {
         return with_optional(w, [&](auto const& v) -> tensor {
           return binary_cross_entropy(x, y, v, reduced_by("binary_cross_entropy", how));
         });
       }},
      {"nn.functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, none_flag, none_flag, std::string const& how,
           tensor const& p) -> tensor {
         return with_optional(w, [&](auto const& v) -> tensor {
           return with_optional(p, [&](auto const& q) -> tensor {
             return binary_cross_entropy_with_logits(x, y, v, reduced_by("binary_cross_entropy_with_logits", how), q);
           });
         });
       }},
      {"nn.functional.kl_div(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
       "reduction='mean', bool log_target=False) -> Tensor",
       +[](tensor const& x, tensor const& y, none_flag, none_flag, std::string const& how, bool logs) -> tensor {
         return kl_div(x, y, reduced_by("kl_div", how), dims{logs});
       }},
      {"nn.functional.poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? "
       "size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, bool logs, bool full, none_flag, double eps, none_flag,
           std::string const& how) -> tensor {
         return poisson_nll_loss(x, y, logs, full, eps, reduced_by("poisson_nll_loss", how));
       }},
      {"nn.functional.gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, "
       "str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& v, bool full, double eps, std::string const& how) -> tensor {
         return gaussian_nll_loss(x, y, v, full, eps, reduced_by("gaussian_nll_loss", how));
       }},
      {"nn.functional.hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, bool? size_average=None, "
       "bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, double m, none_flag, none_flag, std::string const& how) -> tensor {
         return hinge_embedding_loss(x, y, m, reduced_by("hinge_embedding_loss", how));
       }},
      {"nn.functional.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& t, double m, none_flag, none_flag, std::string const& how)
           -> tensor { return margin_ranking_loss(x, y, t, m, reduced_by("margin_ranking_loss", how)); }},
      {"nn.functional.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& t, double m, none_flag, none_flag, std::string const& how)
           -> tensor { return cosine_embedding_loss(x, y, t, m, reduced_by("cosine_embedding_loss", how)); }},
      {"nn.functional.multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
       "size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, none_flag, none_flag, std::string const& how) -> tensor {
         return with_optional(w, [&](auto const& v) -> tensor {
           return multilabel_soft_margin_loss(x, y, v, reduced_by("multilabel_soft_margin_loss", how));
         });
       }},
      {"nn.functional.multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "
       "bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, index_t p, double m, tensor const& w, none_flag, none_flag,
           std::string const& how) -> tensor {
         return with_optional(w, [&](auto const& v) -> tensor {
           return multi_margin_loss(x, y, static_cast<int>(p), m, v, reduced_by("multi_margin_loss", how));
         });
       }},
      {"nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
       "ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, none_flag, index_t i, none_flag,
           std::string const& how) -> tensor {
         return with_optional(
             w, [&](auto const& v) -> tensor { return nll_loss(x, y, v, reduced_by("nll_loss", how), i); });
       }},
      {"nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
       "ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, none_flag, index_t i, none_flag, std::string const& how,
           double s) -> tensor {
         return with_optional(w, [&](auto const& v) -> tensor {
           return cross_entropy(x, y, v, reduced_by("cross_entropy", how), i, s);
         });
       }},
      {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
       "bool cudnn_enable=True) -> Tensor",
       +[](tensor const& x, dims s, tensor const& w, tensor const& b, double eps, bool) {
         return normalized(x, s, w, b, eps);
       },
       "nn.functional.layer_norm"},
      {"native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, Tensor, Tensor)",
       normalized_and_kept},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
       +[](tensor const& x, tensor const& w, tensor const& b) {
         return with_optional(b, [&](auto const& c) -> tensor { return linear(x, w, c); });
       },
       out, "nn.functional.linear"},
      {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
       +[](tensor const& x, tensor const& y, tensor const& w, tensor const& b) {
         return with_optional(b, [&](auto const& c) -> tensor { return bilinear(x, y, w, c); });
       },
       "nn.functional.bilinear"},
      {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
       +[](tensor const& x, dims s, tensor const& w, std::optional<double> eps) {
         return with_optional(w, [&](auto const& v) -> tensor {
           return eps ? tensor(rms_norm(x, s, v, *eps)) : tensor(rms_norm(x, s, v));
         });
       },
       "nn.functional.rms_norm"},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
       "cudnn_enabled=True) -> Tensor",
       +[](tensor const& x, index_t g, tensor const& w, tensor const& b, double eps, bool) {
         return with_two_optional(
             w, b, [&](auto const& p, auto const& q) -> tensor { return group_norm(x, dims{g}, p, q, eps); });
       },
       "nn.functional.group_norm"},
      {"nn.functional.batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
       "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
       +[](tensor const& x, tensor const& m, tensor const& v, tensor const& w, tensor const& b, bool t, double mo,
           double eps) { return batch_normalized(x, w, b, m, v, t, mo, eps); }},
      {"nn.functional.instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
       "weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
       +[](tensor const& x, tensor const& m, tensor const& v, tensor const& w, tensor const& b, bool t, double mo,
           double eps) { return instance_normalized(x, w, b, m, v, t, mo, eps); }},
      {"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       batch_normalized_and_saved},
      {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
       "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       batch_normalized_and_saved},
      {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
       "float eps) -> (Tensor, Tensor, Tensor)",
       +[](tensor const& x, tensor const& w, tensor const& b, bool t, double mo, double eps) {
         return batch_normalized_and_saved(x, w, b, {}, {}, t, mo, eps);
       }},
      {"nn.functional.local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> "
       "Tensor",
       +[](tensor const& x, index_t n, double a, double b, double k) -> tensor {
         return local_response_norm(x, dims{n}, a, b, k);
       }},
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
       attended, "nn.functional.scaled_dot_product_attention"},
      {"nn.functional.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float "
       "p=2, "
       "float eps=1e-06, bool swap=False, bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor",
       +[](tensor const& a, tensor const& p, tensor const& n, double m, double o, double eps, bool swap, none_flag,
           none_flag, std::string const& how) -> tensor {
         return triplet_margin_loss(a, p, n, m, o, eps, swap, reduced_by("triplet_margin_loss", how));
       }},
      {"nn.functional.triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, Any "
       "distance_function=None, float margin=1.0, bool swap=False, str reduction='mean') -> Tensor",
       +[](tensor const& a, tensor const& p, tensor const& n, argument const& f, double m, bool swap,
           std::string const& how) -> tensor {
         constexpr auto op = "triplet_margin_with_distance_loss";
         if (!f.is_none())
           refuse::argument_is_invalid(op, "by name there is the pairwise distance alone; call it in C++");
         return triplet_margin_with_distance_loss(a, p, n, pairwise_distance, m, swap, reduced_by(op, how));
       }},
      {"nn.functional.multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int "
       "num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, "
       "float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, bool training=True, Tensor? "
       "key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, "
       "Tensor? q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, "
       "Tensor? static_v=None, bool average_attn_weights=True, bool is_causal=False) -> Tensor[]",
       attended_by_heads, "multi_head_attention_forward"},
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
