// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of embeddings and grid samplings.
std::span<call_row const> samplings();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/nn/embedding.hpp>
#include <varve/nn/sampling.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const sampling_family{&samplings};

inline tensor sampled_at(tensor const& x, tensor const& grid, std::string const& mode, std::string const& padding,
                         std::optional<bool> corners) {
  sampling how = sampling::linear;
  if (mode == "nearest") how = sampling::nearest;
  else if (mode == "bicubic") how = sampling::cubic;
  else if (mode != "bilinear")
    refuse::argument_is_invalid("grid_sample", "the mode is 'bilinear', 'nearest' or 'bicubic'");
  beyond_edges beyond = beyond_edges::zeros;
  if (padding == "border") beyond = beyond_edges::border;
  else if (padding == "reflection") beyond = beyond_edges::reflection;
  else if (padding != "zeros")
    refuse::argument_is_invalid("grid_sample", "the padding mode is 'zeros', 'border' or 'reflection'");
  if (x.dim() == 5) return grid_sample<3>(x, grid, how, beyond, corners.value_or(false));
  return grid_sample<2>(x, grid, how, beyond, corners.value_or(false));
}
/// Calls `embedding_bag`, with index and weight in either order, as in PyTorch.
inline tensor bags(tensor const& index, tensor const& weight, tensor const& offsets, std::optional<double> most,
                   double p, bool by_count, std::string const& mode, bool sparse, tensor const& each, bool with_end,
                   std::optional<index_t> padding) {
  if (is_floating(index.dtype()) && !is_floating(weight.dtype()))
    return bags(weight, index, offsets, most, p, by_count, mode, sparse, each, with_end, padding);
  bag_rule how = bag_rule::mean;
  if (mode == "sum") how = bag_rule::sum;
  else if (mode == "max") how = bag_rule::max;
  else if (mode != "mean") refuse::argument_is_invalid("embedding_bag", "the mode is 'sum', 'mean' or 'max'");
  return embedding_bag(index, weight, offsets, how, each, with_end, padding, most, p, by_count);
}

VARVE_LIBRARY std::span<call_row const> samplings() {
  static call_row const rows[] = {
      {"nn.functional.grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? "
       "align_corners=None) -> Tensor",
       sampled_at},
      {"nn.functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float "
       "norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
       +[](tensor const& i, tensor const& w, std::optional<index_t> padding, std::optional<double> most, double p,
           bool by_count, bool) {
         return is_floating(i.dtype()) ? embedding(w, i, padding, most, p, by_count)
                                       : embedding(i, w, padding, most, p, by_count);
       }},
      {"nn.functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float "
       "norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? "
       "per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
       bags},
      {"broadcast_shapes(Any a, Any b=None, Any c=None, Any d=None) -> Any",
       +[](argument const& a, argument const& b, argument const& c, argument const& d) -> argument {
         dims r;
         for (argument const* s : {&a, &b, &c, &d})
           r = broadcast(r, s->is<extent>() ? dims{s->as<extent>()} : detail::parameter<dims>::of(*s));
         return r;
       }},
  };
  return rows;
}
} // namespace varve::by_name
#endif
