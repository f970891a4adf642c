// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of reductions, softmax and similar operators.
std::span<call_row const> reductions();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/linalg/spectral.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const reduction_family{&reductions};

/// Returns an operand in the requested dtype.
inline tensor in_dtype(tensor const& x, std::optional<dtype> const& t) { return t ? tensor(to(x, *t)) : x; }

/// Returns `argmax` or `argmin`, over all elements or along one axis.
template <class Op>
tensor place_of(tensor const& x, std::optional<index_t> a, bool k) {
  if (a) return Op{}(x, dims{*a}, dims{k});
  dims kept = x.sizes();
  for (int d = 0; d < kept.n; ++d) kept[d] = 1;
  return reshape(Op{}(x), k ? kept : dims{});
}
/// Returns truth values as uint8 if `x` is uint8, as PyTorch does for compatibility.
template <class Op>
tensor truth(tensor const& x, dims a, bool k) {
  tensor const y = Op{}(x, a, dims{k});
  return x.dtype() == dtype::uint8 ? tensor(to(y, dtype::uint8)) : y;
}
template <class Op>
tensor truth_of_all(tensor const& x) {
  return truth<Op>(x, {}, false);
}
template <class Op>
tensor truth_along(tensor const& x, index_t a, bool k) {
  return truth<Op>(x, {a}, k);
}
template <class Op>
tensor spread(tensor const& x, dims a, std::optional<double> c, bool k) {
  return Op{}(x, a, c.value_or(1), dims{k});
}
template <class Op>
tensor spread_unbiased(tensor const& x, dims a, bool u, bool k) {
  return Op{}(x, a, u ? 1.0 : 0.0, dims{k});
}
template <class Op>
tensor spread_of_all(tensor const& x, bool u) {
  return Op{}(x, dims{}, u ? 1.0 : 0.0);
}
using two_tensors = std::tuple<tensor, tensor>;
template <class Op>
two_tensors spread_mean(tensor const& x, dims a, std::optional<double> c, bool k) {
  return {spread<Op>(x, a, c, k), mean(x, a, dims{k})};
}
template <class Op>
two_tensors spread_mean_unbiased(tensor const& x, dims a, bool u, bool k) {
  return {spread_unbiased<Op>(x, a, u, k), mean(x, a, dims{k})};
}
template <class Op>
two_tensors spread_mean_of_all(tensor const& x, bool u) {
  return {spread_of_all<Op>(x, u), mean(x)};
}

VARVE_LIBRARY std::span<call_row const> reductions() {
  using enum call_forms;
  using type = std::optional<dtype>;
  using axes = dims; // none or [] means all axes
  static call_row const rows[] = {
      {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return sum(in_dtype(x, t)); }, out},
      {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, axes a, bool k, type t) -> tensor { return sum(in_dtype(x, t), a, dims{k}); }, out},
      {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return mean(in_dtype(x, t)); }, out_of_its_dtype},
      {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, axes a, bool k, type t) -> tensor { return mean(in_dtype(x, t), a, dims{k}); },
       out_of_its_dtype},
      {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return amax(x, a, dims{k}); }, out_of_its_dtype},
      {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return amin(x, a, dims{k}); }, out_of_its_dtype},
      {"max(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return amax(x); }},
      {"min(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return amin(x); }},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", place_of<argmax_t>, out_of_its_dtype},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", place_of<argmin_t>, out_of_its_dtype},
      {"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       +[](tensor const& x, index_t a, bool k) -> two_tensors { return max_along(x, dims{a}, dims{k}); }},
      {"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       +[](tensor const& x, index_t a, bool k) -> two_tensors { return min_along(x, dims{a}, dims{k}); }},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
       +[](tensor const& x, std::optional<index_t> a, bool k) -> two_tensors {
         dims const axes = a ? dims{*a} : dims{};
         return {amin(x, axes, dims{k}), amax(x, axes, dims{k})};
       }},
      {"any(Tensor self) -> Tensor", truth_of_all<any_t>, out},
      {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", truth_along<any_t>, out},
      {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", truth<any_t>, out},
      {"all(Tensor self) -> Tensor", truth_of_all<all_t>, out},
      {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", truth_along<all_t>, out},
      {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", truth<all_t>, out},
      {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
       +[](tensor const& x, dims a) -> tensor { return count_nonzero(x, a, dims{0}); }},
      {"count_nonzero(Tensor self, int? dim=None) -> Tensor",
       +[](tensor const& x, std::optional<index_t> a) -> tensor {
         return count_nonzero(x, a ? dims{*a} : dims{}, dims{0});
       }},
      {"nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, dims a, bool k, type t) -> tensor { return nansum(in_dtype(x, t), a, dims{k}); }, out},
      {"nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, dims a, bool k, type t) -> tensor { return nanmean(in_dtype(x, t), a, dims{k}); }, out},
      {"var(Tensor self, bool unbiased=True) -> Tensor", spread_of_all<var_t>},
      {"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", spread_unbiased<var_t>,
       out},
      {"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       spread<var_t>, out},
      {"std(Tensor self, bool unbiased=True) -> Tensor", spread_of_all<std_t>},
      {"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", spread_unbiased<std_t>,
       out},
      {"std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
       spread<std_t>, out},
      {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", spread_mean_of_all<var_t>},
      {"var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       spread_mean_unbiased<var_t>},
      {"var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
       "(Tensor, Tensor)",
       spread_mean<var_t>},
      {"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", spread_mean_of_all<std_t>},
      {"std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       spread_mean_unbiased<std_t>},
      {"std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
       "(Tensor, Tensor)",
       spread_mean<std_t>},
      {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       +[](tensor const& x, double p, dims a, bool k, type t) -> tensor {
         return vector_norm(in_dtype(x, t), p, a, dims{k});
       },
       out, "linalg.vector_norm"},
      {"norm.Scalar(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False) -> Tensor",
       +[](tensor const& x, std::optional<double> p, dims a, bool k) -> tensor {
         return vector_norm(x, p.value_or(2), a, dims{k});
       }},
      {"norm(Tensor input, str p='fro', int[1]? dim=None, bool keepdim=False) -> Tensor",
       +[](tensor const& x, std::string const& p, dims a, bool k) -> tensor {
         if (p == "nuc") { // the sum of singular values of matrices
           if (a.n != 2 && !(a.n == 0 && x.dim() == 2)) refuse::argument_is_invalid("norm", "'nuc' is of two axes");
           dims const two = a.n ? a : dims{0, 1};
           tensor const y = sum(svdvals(movedim(x, two, dims{-2, -1})), dims{-1});
           if (!k) return y;
           int const r = wrap_axis(two[0], x.dim()), c = wrap_axis(two[1], x.dim());
           return unsqueeze(tensor(unsqueeze(y, dims{(std::min)(r, c)})), dims{(std::max)(r, c)});
         }
         if (p != "fro") refuse::argument_is_invalid("norm", "of the named norms there are 'fro' and 'nuc'");
         return vector_norm(x, 2, a, dims{k});
       }},
      {"dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
       +[](tensor const& x, tensor const& y, double p) -> tensor { return dist(x, y, p); }},
      {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
       +[](tensor const& x, double p, index_t a, double m) -> tensor { return renorm(x, p, dims{a}, m); }, both},
      {"pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
       +[](tensor const& x, tensor const& y, double p, double e, bool k) -> tensor {
         return pairwise_distance(x, y, p, e, dims{k});
       },
       "nn.functional.pairwise_distance"},
      {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
       +[](tensor const& x, tensor const& y, index_t a, double eps) -> tensor {
         return cosine_similarity(x, y, dims{a}, eps);
       },
       "nn.functional.cosine_similarity"},
      {"pdist(Tensor self, float p=2) -> Tensor", +[](tensor const& x, double p) -> tensor { return pdist(x, p); },
       "nn.functional.pdist"},
      {"cdist(Tensor x1, Tensor x2, float p=2, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
       +[](tensor const& x, tensor const& y, double p, std::string const&) -> tensor { return cdist(x, y, p); }},
      {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return logsumexp(x, a, dims{k}); }, out,
       "special_logsumexp special.logsumexp"},
      {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, type t) -> tensor { return softmax(in_dtype(x, t), dims{a}); }, out_of_its_dtype,
       "nn.functional.softmax special.softmax"},
      {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, type t) -> tensor { return log_softmax(in_dtype(x, t), dims{a}); },
       out_of_its_dtype, "nn.functional.log_softmax special.log_softmax"},
      {"sum_to_size(Tensor self, int[] size) -> Tensor",
       +[](tensor const& x, dims s) -> tensor {
         return sum_to_size(x.dtype() == dtype::bool_ ? tensor(to(x, dtype::int64)) : x, s);
       }},
  };
  return rows;
}
} // namespace varve::by_name
#endif
