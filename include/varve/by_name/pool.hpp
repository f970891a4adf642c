// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of pooling operators.
std::span<call_row const> pools();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/indexing/scatter.hpp>
#include <varve/nn/interpolate.hpp>
#include <varve/nn/pooling.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const pool_family{&pools};

/// Returns one result, or two if the positions are requested.
inline argument::list with_places(std::pair<tensor, tensor> const& y, bool places) {
  return places ? argument::list{y.first, y.second} : argument::list{y.first};
}
template <int N>
argument::list max_pooled(tensor const& x, dims k, dims s, dims p, dims d, bool ceil, bool places) {
  return with_places(detail::max_pool_of<N>{}(x, k, s, p, d, dims{ceil}), places);
}
template <int N>
tensor avg_pooled(tensor const& x, dims k, dims s, dims p, bool ceil, bool count, std::optional<index_t> divisor) {
  if (divisor && *divisor == 0) refuse::argument_is_invalid("avg_pool", "the divisor must not be 0");
  return detail::avg_pool_of<N>{}(x, k, s, p, dims{ceil}, count, divisor.value_or(0));
}
/// Returns output sizes, in which None becomes -1.
inline dims sizes_or_none(argument const& a) {
  auto const one = [](argument const& e) {
    if (!e.is_none() && (!e.is<extent>() || e.as<extent>() < 0))
      refuse::argument_is_invalid("adaptive pooling", "a size is a whole number that is not negative, or None");
    return e.is_none() ? extent(-1) : e.as<extent>();
  };
  if (!a.is<argument::list>()) return {one(a)};
  dims r;
  for (argument const& e : a.as<argument::list>()) r.push_back(one(e));
  return r;
}
/// Returns n numbers; a single number is repeated.
inline std::vector<double> numbers_of(argument const& a, int n) {
  std::vector<double> r;
  if (a.is<argument::list>())
    for (argument const& e : a.as<argument::list>()) r.push_back(detail::parameter<double>::of(e));
  else if (!a.is_none()) r.assign(static_cast<std::size_t>(n), detail::parameter<double>::of(a));
  return r;
}
inline tensor interpolated(tensor const& x, argument const& size, argument const& factor, std::string const& mode,
                           std::optional<bool> corners, std::optional<bool> recompute, bool antialias) {
  int const n = x.dim() - 2;
  if (n < 1 || n > 3) refuse::argument_is_invalid("interpolate", "one to three spatial dimensions are expected");
  if (antialias) refuse::argument_is_invalid("interpolate", "there is no antialias");
  if (size.is_none() == factor.is_none())
    refuse::argument_is_invalid("interpolate", "either the size or the scale_factor is needed");
  std::pair<char const*, int> const linear[] = {{"linear", 1}, {"bilinear", 2}, {"trilinear", 3}};
  std::optional<interpolation> how;
  if (mode == "nearest") how = interpolation::nearest;
  if (mode == "nearest-exact") how = interpolation::nearest_exact;
  if (mode == "area") how = interpolation::area;
  if (mode == "bicubic" && n == 2) how = interpolation::cubic;
  for (auto const& [word, rank] : linear)
    if (mode == word && n == rank) how = interpolation::linear;
  if (!how) refuse::argument_is_invalid("interpolate", "this mode is unknown, or is for another number of dimensions");
  std::vector<double> factors = numbers_of(factor, n);
  dims sizes;
  if (factors.empty()) {
    for (double s : numbers_of(size, n)) sizes.push_back(static_cast<index_t>(s));
  } else {
    if (static_cast<int>(factors.size()) != n)
      refuse::argument_is_invalid("interpolate", "a factor for each dimension");
    for (int a = 0; a < n; ++a)
      sizes.push_back(static_cast<index_t>(
          std::floor(static_cast<double>(index_t(x.sizes()[a + 2])) * factors[static_cast<std::size_t>(a)])));
  }
  if (recompute.value_or(false)) factors.clear();
  return interpolate(x, sizes, *how, corners.value_or(false), factors);
}
template <int N>
tensor adaptive_avg_pooled(tensor const& x, argument const& s) {
  return detail::adaptive_avg_pool_of<N>{}(x, sizes_or_none(s));
}
template <int N>
argument::list adaptive_max_pooled(tensor const& x, argument const& s, bool places) {
  return with_places(detail::adaptive_max_pool_of<N>{}(x, sizes_or_none(s)), places);
}
/// Returns the inverse of a max pool, with 0 at all positions that were not a maximum.
template <int N>
tensor unpooled(tensor const& x, tensor const& at, dims k, dims s, dims p, std::optional<dims> size) {
  k = detail::pool_facts<N>::wide(k), s = s.n ? detail::pool_facts<N>::wide(s) : k, p = detail::pool_facts<N>::wide(p);
  if (x.dim() != N + 1 && x.dim() != N + 2) refuse::argument_is_invalid("max_unpool", "the input has another rank");
  if (!(x.sizes() == at.sizes())) refuse::shapes_do_not_match("max_unpool", x.sizes(), at.sizes());
  dims const lead = x.sizes().sub(0, x.dim() - N);
  dims spatial;
  for (int a = 0; a < N; ++a) {
    extent const least = (x.sizes()[x.dim() - N + a] - 1) * s[a] - p[a] * 2 + k[a];
    spatial.push_back(size ? (*size)[size->n - N + a] : least);
  }
  dims rows = lead, whole = lead, flat = lead;
  rows.push_back(numel(x.sizes().sub(x.dim() - N, x.dim()))), flat.push_back(numel(spatial));
  for (extent e : spatial) whole.push_back(e);
  tensor const into = new_zeros(x, flat);
  int const last = flat.n - 1;
  // Written, not added, because windows may share a maximum.
  return reshape(tensor(scatter(into, dims{last}, reshape(at, rows), reshape(x, rows))), whole);
}

/// Adds the gradient of each window to the element that was its maximum.
inline tensor spread_over_greatest(tensor const& g, tensor const& x, tensor const& at) {
  if (!(g.sizes() == at.sizes()) || x.dim() < 3 || g.dim() != x.dim())
    refuse::shapes_do_not_match("max_pool2d_with_indices_backward", g.sizes(), at.sizes());
  auto const flat = [](tensor const& t) -> tensor {
    dims s = t.sizes().sub(0, t.dim() - 2);
    return reshape(t, s.push_back(numel(t.sizes().sub(t.dim() - 2, t.dim()))));
  };
  tensor const into = new_zeros(detach(x), flat(x).sizes());
  return reshape(tensor(scatter_add(into, dims{into.dim() - 1}, flat(at), flat(g))), x.sizes());
}

VARVE_LIBRARY std::span<call_row const> pools() {
  static call_row const rows[] = {
      {"nn.functional.interpolate(Tensor input, Any size=None, Any scale_factor=None, str mode='nearest', bool? "
       "align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
       interpolated},
      {"im2col(Tensor self, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
       +[](tensor const& x, dims k, dims d, dims p, dims s) -> tensor { return im2col(x, k, d, p, s); },
       call_forms::out, "nn.functional.unfold"},
      {"nn.functional.upsample_nearest(Tensor input, Any size=None, Any scale_factor=None) -> Tensor",
       +[](tensor const& x, argument const& s, argument const& f) {
         return interpolated(x, s, f, "nearest", {}, {}, false);
       }},
      {"nn.functional.upsample_bilinear(Tensor input, Any size=None, Any scale_factor=None) -> Tensor",
       +[](tensor const& x, argument const& s, argument const& f) {
         return interpolated(x, s, f, "bilinear", true, {}, false);
       }},
      {"nn.functional.max_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] "
       "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor[]",
       max_pooled<1>},
      {"avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, "
       "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       avg_pooled<1>, "nn.functional.avg_pool1d"},
      {"adaptive_avg_pool1d(Tensor self, Any output_size) -> Tensor", adaptive_avg_pooled<1>,
       "nn.functional.adaptive_avg_pool1d"},
      {"nn.functional.adaptive_max_pool1d(Tensor input, Any output_size, bool return_indices=False) -> Tensor[]",
       adaptive_max_pooled<1>},
      {"nn.functional.max_unpool1d(Tensor input, Tensor indices, int[1] kernel_size, int[1]? stride=None, int[1] "
       "padding=0, int[]? output_size=None) -> Tensor",
       unpooled<1>},
      {"nn.functional.max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] "
       "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor[]",
       max_pooled<2>},
      {"max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
       "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       +[](tensor const& g, tensor const& x, dims, dims, dims, dims, bool, tensor const& at) {
         return spread_over_greatest(g, x, at);
       },
       call_forms::out},
      {"max_pool2d_with_indices_backward.of_ones(Tensor self, *, int[2] kernel_size, int[2]? stride=None, int[2] "
       "padding=0, int[2] dilation=1, bool ceil_mode=False, bool return_indices=True) -> Tensor",
       +[](tensor const& x, dims k, dims s, dims p, dims d, bool ceil, bool) -> tensor {
         auto const [y, at] = detail::max_pool_of<2>{}(detach(x), k, s, p, d, dims{ceil});
         return spread_over_greatest(ones_like(y), x, at);
       }},
      {"avg_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, bool ceil_mode=False, "
       "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       avg_pooled<2>, "nn.functional.avg_pool2d"},
      {"adaptive_avg_pool2d(Tensor self, Any output_size) -> Tensor", adaptive_avg_pooled<2>,
       "nn.functional.adaptive_avg_pool2d"},
      {"nn.functional.adaptive_max_pool2d(Tensor input, Any output_size, bool return_indices=False) -> Tensor[]",
       adaptive_max_pooled<2>},
      {"nn.functional.max_unpool2d(Tensor input, Tensor indices, int[2] kernel_size, int[2]? stride=None, int[2] "
       "padding=0, int[]? output_size=None) -> Tensor",
       unpooled<2>},
      {"nn.functional.max_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] "
       "dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor[]",
       max_pooled<3>},
      {"avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, bool ceil_mode=False, "
       "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       avg_pooled<3>, "nn.functional.avg_pool3d"},
      {"adaptive_avg_pool3d(Tensor self, Any output_size) -> Tensor", adaptive_avg_pooled<3>,
       "nn.functional.adaptive_avg_pool3d"},
      {"nn.functional.adaptive_max_pool3d(Tensor input, Any output_size, bool return_indices=False) -> Tensor[]",
       adaptive_max_pooled<3>},
      {"nn.functional.max_unpool3d(Tensor input, Tensor indices, int[3] kernel_size, int[3]? stride=None, int[3] "
       "padding=0, int[]? output_size=None) -> Tensor",
       unpooled<3>},
  };
  return rows;
}
} // namespace varve::by_name
#endif
