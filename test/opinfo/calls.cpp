// SPDX-License-Identifier: BSL-1.0
#include "calls.hpp"

#include <varve/op/all.hpp>

namespace vv = varve;
using namespace opinfo;
using at_t = std::vector<dims> const&;
using in_t = values const&;

namespace {
/// A call whose optional third attribute is the dtype to compute in (`dtype=`).
template <class Op>
tensor reduced(Op const& op, in_t x, at_t at) {
  return op(at.size() > 2 ? tensor(vv::to(x[0], at[2])) : x[0], at[0], at[1]);
}
template <class Op>
tensor normalized(Op const& op, in_t x, at_t at) {
  return op(at.size() > 1 ? tensor(vv::to(x[0], at[1])) : x[0], at[0]);
}
/// Attributes: stride, padding, dilation, groups, output_padding, and whether the padding is "same".
template <class Op>
tensor convolved(Op const& op, in_t x, at_t at) {
  auto const with = [&](auto const& bias) -> tensor {
    return at[5][0] ? op(x[0], x[1], bias, at[0], vv::padding::same, at[2], at[3])
                    : op(x[0], x[1], bias, at[0], at[1], at[2], at[3]);
  };
  return x.size() > 2 ? with(x[2]) : with(vv::none);
}
template <class Op>
tensor convolved_back(Op const& op, in_t x, at_t at) {
  return x.size() > 2 ? tensor(op(x[0], x[1], x[2], at[0], at[1], at[4], at[3], at[2]))
                      : tensor(op(x[0], x[1], vv::none, at[0], at[1], at[4], at[3], at[2]));
}
dims moved(dims const& sizes, int from, int to) { // flatten(from, to)
  dims r;
  index_t n = 1;
  int const a = vv::wrap_axis(from, sizes.n), b = vv::wrap_axis(to, sizes.n);
  if (sizes.n == 0) return {1};
  for (int k = 0; k < sizes.n; ++k) {
    n *= sizes[k];
    if (k < a || k >= b) r.push_back(n), n = 1;
  }
  return r;
}
} // namespace

std::map<std::string, call> const& opinfo::calls() {
  static std::map<std::string, call> const table{
      {"add", [](in_t x, at_t) -> tensor { return vv::add(x[0], x.size() > 2 ? tensor(vv::mul(x[1], x[2])) : x[1]); }},
      {"sub", [](in_t x, at_t) -> tensor { return vv::sub(x[0], x.size() > 2 ? tensor(vv::mul(x[1], x[2])) : x[1]); }},
      {"mul", [](in_t x, at_t) -> tensor { return vv::mul(x[0], x[1]); }},
      {"div", [](in_t x, at_t) -> tensor { return vv::div(x[0], x[1]); }},
      {"pow", [](in_t x, at_t) -> tensor { return vv::pow(x[0], x[1]); }},
      {"maximum", [](in_t x, at_t) -> tensor { return vv::maximum(x[0], x[1]); }},
      {"minimum", [](in_t x, at_t) -> tensor { return vv::minimum(x[0], x[1]); }},
      {"clamp_min", [](in_t x, at_t) -> tensor { return vv::clamp(x[0], x[1], vv::none); }},
      {"clamp_max", [](in_t x, at_t) -> tensor { return vv::clamp(x[0], vv::none, x[1]); }},
      {"clamp",
       [](in_t x, at_t at) -> tensor {
         return at[0][0] && at[0][1] ? vv::clamp(x[0], x[1], x[2])
                : at[0][0]           ? vv::clamp(x[0], x[1])
                                     : vv::clamp(x[0], vv::none, x[1]);
       }},
      {"ge", [](in_t x, at_t) -> tensor { return vv::ge(x[0], x[1]); }},
      {"gt", [](in_t x, at_t) -> tensor { return vv::gt(x[0], x[1]); }},
      {"le", [](in_t x, at_t) -> tensor { return vv::le(x[0], x[1]); }},
      {"lt", [](in_t x, at_t) -> tensor { return vv::lt(x[0], x[1]); }},
      {"eq", [](in_t x, at_t) -> tensor { return vv::eq(x[0], x[1]); }},
      {"ne", [](in_t x, at_t) -> tensor { return vv::ne(x[0], x[1]); }},
      {"neg", [](in_t x, at_t) -> tensor { return vv::neg(x[0]); }},
      {"exp", [](in_t x, at_t) -> tensor { return vv::exp(x[0]); }},
      {"log", [](in_t x, at_t) -> tensor { return vv::log(x[0]); }},
      {"cos", [](in_t x, at_t) -> tensor { return vv::cos(x[0]); }},
      {"sigmoid", [](in_t x, at_t) -> tensor { return vv::sigmoid(x[0]); }},
      {"relu", [](in_t x, at_t) -> tensor { return vv::relu(x[0]); }},
      {"reciprocal", [](in_t x, at_t) -> tensor { return vv::reciprocal(x[0]); }},
      {"rsqrt", [](in_t x, at_t) -> tensor { return vv::rsqrt(x[0]); }},
      {"square", [](in_t x, at_t) -> tensor { return vv::square(x[0]); }},
      {"gelu", [](in_t x, at_t at) -> tensor { return vv::gelu(x[0], at[0]); }},
      {"silu", [](in_t x, at_t) -> tensor { return vv::silu(x[0]); }},
      {"softplus", [](in_t x, at_t) -> tensor { return vv::softplus(x[0], x[1].item<int>(), x[2].item<double>()); }},
      {"layer_norm",
       [](in_t x, at_t at) -> tensor {
         double const eps = x.back().item<double>();
         if (at[1][0] && at[1][1]) return vv::layer_norm(x[0], at[0], x[1], x[2], eps);
         return at[1][0]   ? vv::layer_norm(x[0], at[0], x[1], vv::none, eps)
                : at[1][1] ? vv::layer_norm(x[0], at[0], vv::none, x[1], eps)
                           : vv::layer_norm(x[0], at[0], vv::none, vv::none, eps);
       }},
      {"conv1d", [](in_t x, at_t at) -> tensor { return convolved(vv::conv1d, x, at); }},
      {"conv3d", [](in_t x, at_t at) -> tensor { return convolved(vv::conv3d, x, at); }},
      {"conv_transpose1d", [](in_t x, at_t at) -> tensor { return convolved_back(vv::conv_transpose1d, x, at); }},
      {"conv_transpose2d", [](in_t x, at_t at) -> tensor { return convolved_back(vv::conv_transpose2d, x, at); }},
      {"sum", [](in_t x, at_t at) -> tensor { return reduced(vv::sum, x, at); }},
      {"mean", [](in_t x, at_t at) -> tensor { return reduced(vv::mean, x, at); }},
      {"amax", [](in_t x, at_t at) -> tensor { return reduced(vv::amax, x, at); }},
      {"logsumexp", [](in_t x, at_t at) -> tensor { return reduced(vv::logsumexp, x, at); }},
      {"argmax",
       [](in_t x, at_t at) -> tensor {
         if (!at[0].empty()) return vv::argmax(x[0], at[0], at[1]);
         dims kept = x[0].sizes();
         for (int k = 0; k < kept.n; ++k) kept[k] = 1;
         return vv::reshape(vv::argmax(x[0]), at[1][0] ? kept : dims{});
       }},
      {"softmax", [](in_t x, at_t at) -> tensor { return normalized(vv::softmax, x, at); }},
      {"log_softmax", [](in_t x, at_t at) -> tensor { return normalized(vv::log_softmax, x, at); }},
      {"matmul", [](in_t x, at_t) -> tensor { return vv::matmul(x[0], x[1]); }},
      {"mm", [](in_t x, at_t) -> tensor { return vv::mm(x[0], x[1]); }},
      {"dot", [](in_t x, at_t) -> tensor { return vv::dot(x[0], x[1]); }},
      {"reshape", [](in_t x, at_t at) -> tensor { return vv::reshape(x[0], at[0]); }},
      {"view", [](in_t x, at_t at) -> tensor { return vv::reshape(x[0], at[0]); }},
      {"flatten",
       [](in_t x, at_t at) -> tensor {
         return vv::reshape(x[0], moved(x[0].sizes(), static_cast<int>(at[0][0]), static_cast<int>(at[1][0])));
       }},
      {"permute", [](in_t x, at_t at) -> tensor { return vv::permute(x[0], at[0]); }},
      {"transpose", [](in_t x, at_t at) -> tensor { return vv::transpose(x[0], at[0], at[1]); }},
      {"t", [](in_t x, at_t) -> tensor { return x[0].dim() < 2 ? x[0] : tensor(vv::permute(x[0], dims{1, 0})); }},
      {"squeeze",
       [](in_t x, at_t at) -> tensor {
         return at[0][0] ? (at[1].empty() ? x[0] : tensor(vv::squeeze(x[0], at[1]))) : tensor(vv::squeeze(x[0]));
       }},
      {"unsqueeze", [](in_t x, at_t at) -> tensor { return vv::unsqueeze(x[0], at[0]); }},
      {"expand", [](in_t x, at_t at) -> tensor { return vv::expand(x[0], at[0]); }},
      {"sum_to_size", [](in_t x, at_t at) -> tensor { return vv::sum_to_size(x[0], at[0]); }},
      {"slice", [](in_t x, at_t at) -> tensor { return vv::slice(x[0], at[0], at[1][0], at[1][1], at[1][2]); }},
      {"narrow",
       [](in_t x, at_t at) -> tensor {
         index_t const n = x[0].size(at[0][0]), start = at[1][0] < 0 ? at[1][0] + n : at[1][0];
         return vv::slice(x[0], at[0], start, start + at[2][0]);
       }},
      {"cat", [](in_t x, at_t at) -> tensor { return vv::cat(x, at[0]); }},
      {"stack", [](in_t x, at_t at) -> tensor { return vv::stack(x, at[0]); }},
      {"scatter_add", [](in_t x, at_t at) -> tensor { return vv::scatter_add(x[0], at[0], x[1], x[2]); }},
      {"zeros", [](in_t, at_t at) -> tensor { return vv::zeros(at[0], static_cast<dtype>(at[1][0])); }},
      {"ones", [](in_t, at_t at) -> tensor { return vv::ones(at[0], static_cast<dtype>(at[1][0])); }},
      {"full",
       [](in_t x, at_t at) -> tensor { return vv::full(at[0], x[0].item<double>(), static_cast<dtype>(at[1][0])); }},
      {"arange", [](in_t, at_t at) -> tensor { return vv::arange(at[0][0], static_cast<dtype>(at[1][0])); }},
      {"zeros_like", [](in_t x, at_t) -> tensor { return vv::zeros_like(x[0]); }},
      {"ones_like", [](in_t x, at_t) -> tensor { return vv::ones_like(x[0]); }},
      {"full_like", [](in_t x, at_t) -> tensor { return vv::full_like(x[0], x[1].item<double>()); }},
      {"clone", [](in_t x, at_t) -> tensor { return vv::clone(x[0]); }},
      {"contiguous", [](in_t x, at_t) -> tensor { return vv::contiguous(x[0]); }},
      {"float", [](in_t x, at_t) -> tensor { return vv::to(x[0], dtype::float32); }},
      {"double", [](in_t x, at_t) -> tensor { return vv::to(x[0], dtype::float64); }},
      {"int", [](in_t x, at_t) -> tensor { return vv::to(x[0], dtype::int32); }},
      {"long", [](in_t x, at_t) -> tensor { return vv::to(x[0], dtype::int64); }},
      {"bool", [](in_t x, at_t) -> tensor { return vv::to(x[0], dtype::bool_); }},
  };
  return table;
}
