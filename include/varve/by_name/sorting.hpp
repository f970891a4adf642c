// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of scans, sorts, selections and counts.
std::span<call_row const> sorted_and_scanned();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/op/all.hpp>
#include <varve/sorting/scans.hpp>
#include <varve/sorting/sort.hpp>
#include <varve/sorting/unique.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const sorting_family{&sorted_and_scanned};
using two_results = std::tuple<tensor, tensor>;

inline tensor in_type(tensor const& x, std::optional<dtype> const& t) { return t ? tensor(to(x, *t)) : x; }
/// Returns a scan in the requested dtype, also if the operator widens integers to int64.
template <class Op>
tensor scanned(tensor const& x, index_t a, std::optional<dtype> t) {
  tensor const y = Op{}(in_type(x, t), dims{a});
  return t ? tensor(to(y, *t)) : y;
}
template <class Op>
two_results scanned_extrema(tensor const& x, index_t a) {
  return Op{}(x, dims{a});
}
inline two_results sorted(tensor const& x, index_t a, bool descending) { return sort(x, dims{a}, dims{descending}); }
inline two_results sorted_stably(tensor const& x, std::optional<bool>, index_t a, bool descending) {
  return sorted(x, a, descending);
}
inline tensor order(tensor const& x, index_t a, bool descending) { return argsort(x, dims{a}, dims{descending}); }
/// Returns the median of all elements. Equal elements share its derivative, as for `amax`.
template <class Op>
tensor middle_of_all(tensor const& x) {
  if (x.numel() == 0) return add(zeros(dims{}, x.dtype()), std::numeric_limits<double>::quiet_NaN());
  tensor const y = Op{}(ravel(x), dims{0}).first;
  if (!has_derivatives(x.dtype())) return y;
  return where(ne(y, y), y, amax(where(ne(x, y), -std::numeric_limits<double>::infinity(), x)));
}
template <class Op>
two_results middle_along(tensor const& x, index_t a, bool k) {
  return Op{}(x, dims{a}, dims{k});
}
/// Returns quantiles of all elements or along an axis. If `q` is a vector, its axis comes first.
template <bool SkipNan>
tensor quantiles(tensor const& x, tensor const& q, std::optional<index_t> a, bool k, std::string const& how) {
  using enum quantile_method;
  struct named {
    char const* name;
    quantile_method value;
  };
  static constexpr named all[] = {
      {"linear", linear}, {"lower", lower}, {"higher", higher}, {"midpoint", midpoint}, {"nearest", nearest}};
  quantile_method which = linear;
  bool found = false;
  for (named const& n : all)
    if (how == n.name) which = n.value, found = true;
  if (!found) refuse::argument_is_invalid("quantile", "unknown interpolation");
  if (q.dim() > 1) refuse::argument_is_invalid("quantile", "q is a number or a vector");
  tensor const v = a && x.dim() ? x : tensor(ravel(x));
  int const axis = a && x.dim() ? wrap_axis(*a, x.dim()) : 0;
  tensor const y = quantiles_along(v, q, dims{axis}, which, SkipNan);
  dims order{axis}, shape;
  for (int d = 0; d < v.dim(); ++d)
    if (d != axis) order.push_back(d);
  if (q.dim() == 1) shape.push_back(q.sizes()[0]);
  for (int d = 0; d < x.dim(); ++d)
    if (a && d != wrap_axis(*a, x.dim())) shape.push_back(x.sizes()[d]);
    else if (k) shape.push_back(1);
  return reshape(permute(y, order), shape);
}
template <bool SkipNan>
tensor quantiles_of_number(tensor const& x, double q, std::optional<index_t> a, bool k, std::string const& how) {
  if (!(q >= 0 && q <= 1)) refuse::argument_is_invalid("quantile", "q is in [0, 1]");
  tensor const v = add(zeros(dims{}, x.dtype()), q);
  return quantiles<SkipNan>(x, v, a, k, how);
}
inline argument::list of_unique(unique_result<tensor> const& u, bool inverse, bool counts) {
  argument::list r{u.values};
  if (inverse) r.emplace_back(u.inverse);
  if (counts) r.emplace_back(u.counts);
  return r;
}
inline tensor masked_median(tensor const& x, index_t a, bool k, std::optional<dtype> t, tensor const& mask) {
  tensor const v = in_type(x, t);
  if (!mask.defined()) return nanmedian(v, dims{a}, dims{k}).first;
  return nanmedian(where(mask, v, std::numeric_limits<double>::quiet_NaN()), dims{a}, dims{k}).first;
}
/// Returns the counts, then the edges of each column.
inline argument::list histogram_of_rows(tensor const& x, argument const& bins, argument const& range,
                                        tensor const& weight, bool density) {
  if (x.dim() < 2) refuse::argument_is_invalid("histogramdd", "rows of coordinates are expected");
  tensor const rows = reshape(x, dims{-1, x.sizes()[x.dim() - 1]});
  std::vector<tensor> edges;
  index_t const columns = rows.sizes()[1];
  argument::list const each =
      bins.is<argument::list>() ? bins.as<argument::list>() : argument::list(static_cast<std::size_t>(columns), bins);
  if (each.size() != static_cast<std::size_t>(columns))
    refuse::argument_is_invalid("histogramdd", "bins for every column are expected");
  for (std::size_t k = 0; k < each.size(); ++k)
    if (each[k].is<tensor>()) edges.push_back(each[k].as<tensor>());
    else if (index_t const n = static_cast<index_t>(detail::held<extent>(each[k], "int")); range.is_none())
      edges.push_back(edges_of(tensor(select(rows, dims{1}, dims{static_cast<index_t>(k)})), n));
    else {
      argument::list const& all = detail::held<argument::list>(range, "float[]");
      if (all.size() != 2 * each.size() || n < 1)
        refuse::argument_is_invalid("histogramdd", "there is a bin at least, and the range has two numbers per column");
      edges.push_back(linspace(detail::parameter<double>::of(all[2 * k]), detail::parameter<double>::of(all[2 * k + 1]),
                               n + 1, x.dtype()));
    }
  tensor const w = weight.defined() ? tensor(reshape(weight, dims{-1})) : weight;
  argument::list r{histogramdd(rows, edges, w, density)};
  for (tensor const& e : edges) r.emplace_back(e);
  return r;
}

/// Returns the histogram of all elements in `bins` equal parts of a range; by default the range of the elements.
inline two_results histogram_of_parts(tensor const& x, index_t bins, argument const& range, tensor const& weight,
                                      bool density) {
  if (range.is_none()) {
    auto const h = histogram(x, bins, weight, density);
    return {h.counts, h.edges};
  }
  argument::list const& ends = detail::held<argument::list>(range, "float[]");
  if (ends.size() != 2 || bins < 1)
    refuse::argument_is_invalid("histogram", "there is a bin at least, and the range has two numbers");
  double low = detail::parameter<double>::of(ends[0]), high = detail::parameter<double>::of(ends[1]);
  if (!(high >= low && high - low < std::numeric_limits<double>::infinity()))
    refuse::argument_is_invalid("histogram", "the ends of the range are finite, and ascend");
  if (low == high) low -= 0.5, high += 0.5;
  auto const h = histogram(x, tensor(linspace(low, high, bins + 1, x.dtype())), weight, density);
  return {h.counts, h.edges};
}
inline two_results histogram_between(tensor const& x, tensor const& edges, tensor const& weight, bool density) {
  auto const h = histogram(x, edges, weight, density);
  return {h.counts, h.edges};
}

VARVE_LIBRARY std::span<call_row const> sorted_and_scanned() {
  using enum call_forms;
  static call_row const rows[] = {
      {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scanned<cumsum_t>, both},
      {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", scanned<cumprod_t>, both},
      {"cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", scanned_extrema<cummax_t>},
      {"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", scanned_extrema<cummin_t>},
      {"logcumsumexp(Tensor self, int dim) -> Tensor",
       +[](tensor const& x, index_t a) -> tensor { return logcumsumexp(x, dims{a}); }, out},
      {"cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
       +[](tensor const& y, tensor const& x, index_t a) -> tensor {
         if (x.dim() != 1) return cumulative_trapezoid(y, dims{a}, diff(x, dims{a}));
         dims column{-1};
         for (int d = wrap_axis(a, y.dim()) + 1; d < y.dim(); ++d) column.push_back(1);
         return cumulative_trapezoid(y, dims{a}, reshape(diff(x), column));
       }},
      {"cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
       +[](tensor const& y, double dx, index_t a) -> tensor { return cumulative_trapezoid(y, dims{a}, dx); }},
      {"masked.cumsum(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       +[](tensor const& x, index_t a, std::optional<dtype> t, tensor const& m) -> tensor {
         return scanned<cumsum_t>(m.defined() ? tensor(where(m, x, zeros_like(x))) : x, a, t);
       }},
      {"masked.cumprod(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       +[](tensor const& x, index_t a, std::optional<dtype> t, tensor const& m) -> tensor {
         return scanned<cumprod_t>(m.defined() ? tensor(where(m, x, ones_like(x))) : x, a, t);
       }},

      {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", sorted},
      {"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
       "indices)",
       sorted_stably},
      {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", order},
      {"argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
       +[](tensor const& x, bool, index_t a, bool d) { return order(x, a, d); }},
      {"msort(Tensor self) -> Tensor", of_one<msort_t>, out},
      {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
       "indices)",
       +[](tensor const& x, extent k, index_t a, bool largest, bool) -> two_results {
         return topk(x, dims{k}, dims{a}, dims{largest});
       }},
      {"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
       +[](tensor const& x, extent k, index_t a, bool keep) -> two_results {
         return kthvalue(x, dims{k}, dims{a}, dims{keep});
       }},
      {"median(Tensor self) -> Tensor", middle_of_all<median_t>},
      {"median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       middle_along<median_t>},
      {"nanmedian(Tensor self) -> Tensor", middle_of_all<nanmedian_t>},
      {"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       middle_along<nanmedian_t>},
      {"mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", middle_along<mode_t>},
      {"quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
       quantiles<false>, out_of_its_dtype},
      {"quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
       "Tensor",
       quantiles_of_number<false>, out_of_its_dtype},
      {"nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
       "Tensor",
       quantiles<true>, out_of_its_dtype},
      {"nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
       "Tensor",
       quantiles_of_number<true>, out_of_its_dtype},
      {"masked.median(Tensor input, int dim, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) -> "
       "Tensor",
       masked_median},

      {"unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
       "Tensor[]",
       +[](tensor const& x, bool, bool inverse, bool counts, std::optional<index_t> a) -> argument::list {
         return of_unique(a ? unique(x, *a) : unique(x), inverse, counts);
       }},
      {"unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
       "Tensor[]",
       +[](tensor const& x, bool inverse, bool counts, std::optional<index_t> a) -> argument::list {
         return of_unique(a ? unique_consecutive(x, *a) : unique_consecutive(x), inverse, counts);
       }},
      {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
       +[](tensor const& x, index_t n, double low, double high) { return histc(x, n, low, high); }, out},
      {"histogramdd(Tensor input, Any bins, Any range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
       histogram_of_rows},
      {"histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
       "Tensor bin_edges)",
       histogram_between},
      {"histogram.bin_ct(Tensor self, int bins=100, *, Any range=None, Tensor? weight=None, bool density=False) -> "
       "(Tensor hist, Tensor bin_edges)",
       histogram_of_parts},
  };
  return rows;
}
} // namespace varve::by_name
#endif
