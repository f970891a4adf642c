// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/pad.hpp>
#include <varve/composite/repeat.hpp>
#include <varve/nn/dropout.hpp>
#include <varve/nn/normalization.hpp>

#include <cmath>
#include <utility>

namespace varve {

/// Options of `multi_head_attention` besides the attention itself. Undefined tensors are ignored. (`T` is `tensor`.)
template <class T>
struct multi_head_attention_options {
  /// The projection matrices of queries, keys and values: `weight` has all three, one below the other, [3 size, size];
  /// or there is one matrix for each.
  T weight{}, query_weight{}, key_weight{}, value_weight{};
  T bias{}; ///< the biases of all three projections: [3 size]
  /// An additional key and value, [size], for every sample.
  T more_key{}, more_value{};
  /// Keys and values used instead of the computed ones: [samples heads, source, size / heads].
  T fixed_key{}, fixed_value{};
  /// The matrix and the biases of the projection of the result.
  T result_weight{}, result_bias{};
  /// Masks. In a bool mask, true excludes a position; a floating mask is added to the scores. `padding_mask` is
  /// [samples, source]; `mask` is [target, source] or [samples heads, target, source].
  T padding_mask{}, mask{};
  bool more_zeros = false;     ///< adds a key and a value of zeros
  bool average_weights = true; ///< returns the mean of the weights of all heads
  double dropout = 0;          ///< the probability that a weight is dropped
};

namespace detail {
/// Returns a mask in the form that is added to scores.
template <class T>
T added_mask(T const& mask, dtype type) {
  if (!mask.defined() || is_floating(mask.dtype())) return mask;
  if (mask.dtype() != dtype::bool_)
    refuse::dtype_is_not_supported("multi_head_attention (a mask of bool or floats):", name(mask.dtype()));
  return where(mask, -std::numeric_limits<double>::infinity(), zeros(mask.sizes(), type));
}
template <class T>
T projected(T const& x, T const& w, T const& b) {
  return b.defined() ? T(linear(x, w, b)) : T(linear(x, w));
}
/// Computes the attention of queries [target, samples, size] to keys and values [source, samples, size].
template <class T>
class heads_of_attention {
public:
  heads_of_attention(T const& q, T const& k, T const& v, index_t heads, multi_head_attention_options<T> const& o)
      : o_(o), heads_(heads), samples_(q.sizes()[1]), size_(q.sizes()[2]), target_(q.sizes()[0]) {
    if (heads < 1 || index_t(size_) % heads != 0)
      refuse::argument_is_invalid("multi_head_attention", "the size is a multiple of the number of heads");
    bool const packed = o.weight.defined();
    bool const fit = packed ? k.sizes() == v.sizes() : k.sizes().sub(0, 2) == v.sizes().sub(0, 2);
    if (!fit || !(k.sizes()[1] == samples_)) refuse::shapes_do_not_match("multi_head_attention", k.sizes(), v.sizes());
    T const* const own[] = {&o.query_weight, &o.key_weight, &o.value_weight};
    T const* const in[] = {&q, &k, &v};
    for (int i = 0; i < 3; ++i)
      part_[i] = projected(*in[i], packed ? third(o.weight, i) : *own[i], o.bias.defined() ? third(o.bias, i) : T());
    mask_ = added_mask(o.mask, q.dtype()), padding_ = added_mask(o.padding_mask, q.dtype());
    if (mask_.defined()) {
      dims const s = mask_.sizes(), each{target_, k.sizes()[0]}, all{samples_ * heads, target_, k.sizes()[0]};
      if (!(s == each) && !(s == all)) refuse::shapes_do_not_match("multi_head_attention (mask)", s, all);
    }
  }
  std::pair<T, T> run() {
    if (o_.more_key.defined() != o_.more_value.defined() || (o_.more_key.defined() && o_.fixed_key.defined()))
      refuse::argument_is_invalid("multi_head_attention",
                                  "more_key and more_value are both there, and nothing is fixed");
    if (o_.more_key.defined()) append(dims{0}, further(o_.more_key), further(o_.more_value));
    for (T& p : part_) p = by_heads(p);
    if (o_.fixed_key.defined()) part_[1] = o_.fixed_key;
    if (o_.fixed_value.defined()) part_[2] = o_.fixed_value;
    if (o_.more_zeros) {
      dims const one{samples_ * heads_, 1, size_ / heads_};
      append(dims{1}, new_zeros(part_[1], one), new_zeros(part_[2], one));
    }
    return attended();
  }

private:
  multi_head_attention_options<T> const& o_;
  index_t heads_;
  extent samples_, size_, target_;
  T part_[3], mask_, padding_;

  static T third(T const& w, int i) {
    extent const n = w.sizes()[0] / 3;
    return narrow(w, dims{0}, dims{n * i}, dims{n});
  }
  T further(T const& b) const { return expand(reshape(b, dims{1, 1, size_}), dims{1, samples_, size_}); }
  void append(dims const& axis, T const& key, T const& value) {
    part_[1] = cat(std::vector<T>{part_[1], key}, axis), part_[2] = cat(std::vector<T>{part_[2], value}, axis);
    if (mask_.defined()) mask_ = constant_pad_nd(mask_, dims{0, 1});
    if (padding_.defined()) padding_ = constant_pad_nd(padding_, dims{0, 1});
  }
  /// Reshapes [length, samples, size] to [samples heads, length, size / heads].
  T by_heads(T const& x) const {
    return transpose(T(reshape(x, dims{x.sizes()[0], samples_ * heads_, size_ / heads_})), dims{0}, dims{1});
  }
  std::pair<T, T> attended() const {
    extent const source = part_[1].sizes()[1];
    double const width = static_cast<double>(index_t(size_) / heads_);
    T scores = mm(T(mul(part_[0], std::sqrt(1 / width))), part_[1], dims{0, 1});
    if (mask_.defined()) scores = add(scores, mask_);
    if (padding_.defined()) {
      T const each = expand(T(reshape(padding_, dims{samples_, 1, 1, source})), dims{samples_, heads_, 1, source});
      scores = add(scores, T(reshape(each, dims{samples_ * heads_, 1, source})));
    }
    T weights = softmax(scores, axis<-1>);
    if (o_.dropout > 0) weights = dropout(weights, o_.dropout);
    T const seen = transpose(T(mm(weights, part_[2])), dims{0}, dims{1});
    T const y = projected(T(reshape(seen, dims{target_, samples_, size_})), o_.result_weight, o_.result_bias);
    T const shares = reshape(weights, dims{samples_, heads_, target_, source});
    return {y, o_.average_weights ? T(mean(shares, dims{1}, dims{0})) : shares};
  }
};
} // namespace detail

/// Multi-head attention: each head attends within its own part of the projected inputs
/// (`torch.nn.functional.multi_head_attention_forward`). Queries are [target, samples, size], keys and values [source,
/// samples, size]; all three may lack the dimension of samples.
///
/// Returns the result and the weights. The weights are averaged over the heads, [samples, target, source], or returned
/// for each head.
template <std::same_as<tensor> T>
std::pair<T, T> multi_head_attention(T const& query, T const& key, T const& value, index_t heads,
                                     multi_head_attention_options<T> const& o) {
  detail::needs_real("multi_head_attention", query, key, value);
  if (query.dim() < 2 || query.dim() > 3 || key.dim() != query.dim() || value.dim() != query.dim())
    refuse::argument_is_invalid("multi_head_attention", "two or three dimensions are expected, of all the same number");
  if (query.dim() == 3) return detail::heads_of_attention<T>(query, key, value, heads, o).run();
  auto const one = [](T const& x, index_t a) { return x.defined() ? T(unsqueeze(x, dims{a})) : x; };
  multi_head_attention_options<T> of_one = o;
  of_one.padding_mask = one(o.padding_mask, 0);
  auto const [y, weights] =
      detail::heads_of_attention<T>(one(query, 1), one(key, 1), one(value, 1), heads, of_one).run();
  return {squeeze(y, dims{1}), squeeze(weights, dims{0})};
}

} // namespace varve
