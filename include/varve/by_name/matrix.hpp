// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of products of vectors and matrices.
std::span<call_row const> matrices();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/calculus.hpp>
#include <varve/composite/einsum.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/prod.hpp>
#include <varve/composite/products.hpp>
#include <varve/linalg/spectral.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const matrix_family{&matrices};

template <class Op>
tensor added(tensor const& x, tensor const& a, tensor const& b, tensor const& beta, tensor const& alpha) {
  return with_number(beta,
                     [&](auto u) { return with_number(alpha, [&](auto v) -> tensor { return Op{}(x, a, b, u, v); }); });
}

/// Returns a tensor product summed over the last n axes of `x` and the first n of `y`, or over two lists of axes.
inline tensor dotted(tensor const& x, tensor const& y, argument const& axes) {
  dims a, b;
  if (axes.is<extent>()) {
    index_t const n = axes.as<extent>();
    if (n < 0 || n > x.dim() || n > y.dim())
      refuse::argument_is_invalid("tensordot", "there are not so many dimensions");
    for (index_t k = 0; k < n; ++k) a.push_back(x.dim() - n + k), b.push_back(k);
  } else {
    argument::list const two = axes.is<argument::list>() ? axes.as<argument::list>() : argument::list();
    if (two.size() != 2 || !two[0].is<argument::list>() || !two[1].is<argument::list>())
      refuse::argument_is_invalid("tensordot", "the axes are a number, or two lists");
    a = detail::parameter<dims>::of(two[0]), b = detail::parameter<dims>::of(two[1]);
  }
  return tensordot(x, y, a, b);
}
/// Returns the cross product along the given axis, else along the first axis of size 3.
inline tensor crossed(tensor const& x, tensor const& y, std::optional<index_t> a) {
  index_t first = 0;
  while (!a && first < x.dim() && !(x.sizes()[static_cast<int>(first)] == 3)) ++first;
  return cross(x, y, dims{a.value_or(first)});
}
inline tensor covariances(tensor const& x, index_t correction, tensor const& counts, tensor const& weights) {
  auto const fits = [&](tensor const& w) {
    if (!w.defined()) return;
    if (w.dim() > 1 || w.numel() != (x.dim() == 2 ? x.sizes()[1] : extent(x.numel())))
      refuse::argument_is_invalid("cov", "weights are a vector with a number for each observation");
    // Check this only where the data can be read.
    if (detail::are_unwatched(&w, 1) && tensor(any(lt(w, 0))).item<bool>())
      refuse::argument_is_invalid("cov", "weights must not be negative");
  };
  fits(counts), fits(weights);
  if (counts.defined() && is_floating(counts.dtype()))
    refuse::dtype_is_not_supported("cov (counts of integers):", name(counts.dtype()));
  if (weights.defined() && !is_floating(weights.dtype()))
    refuse::dtype_is_not_supported("cov (floating weights):", name(weights.dtype()));
  double const c = static_cast<double>(correction);
  if (counts.defined()) return weights.defined() ? cov(x, c, counts, weights) : cov(x, c, counts);
  return weights.defined() ? tensor(cov(x, c, none, weights)) : tensor(cov(x, c));
}
/// Returns the singular values of the matrices along two axes, as the last axis.
inline tensor singular_values(tensor const& x, extent a, extent b) {
  int const r = wrap_axis(a, x.dim()), c = wrap_axis(b, x.dim());
  if (r == c) refuse::argument_is_invalid("matrix_norm", "two different axes are needed");
  return svdvals(movedim(x, dims{r, c}, dims{-2, -1}));
}
/// Returns norms of matrices; with `k` the two reduced axes are kept with size 1.
inline tensor kept_norm(tensor const& y, int rank, extent a, extent b, bool k) {
  if (!k) return y;
  int const r = wrap_axis(a, rank), c = wrap_axis(b, rank);
  return unsqueeze(tensor(unsqueeze(y, dims{(std::min)(r, c)})), dims{(std::max)(r, c)});
}
/// Returns a matrix norm: extremal sums of absolute values over columns (1) or rows (infinity), or singular values (2).
/// Negative `p` selects the least instead of the greatest.
inline tensor matrix_norm(tensor const& x, double p, extent a, extent b, bool k) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  int const r = wrap_axis(a, x.dim()), c = wrap_axis(b, x.dim());
  if (r == c) refuse::argument_is_invalid("matrix_norm", "two different axes are needed");
  double const size = std::abs(p);
  if (size == 2) {
    tensor const s = singular_values(x, a, b);
    return kept_norm(p > 0 ? tensor(amax(s, dims{-1})) : tensor(amin(s, dims{-1})), x.dim(), a, b, k);
  }
  if (size != 1 && size != infinity)
    refuse::argument_is_invalid("matrix_norm", "of matrices there are the norms 1, -1, 2, -2, inf, -inf, 'fro', 'nuc'");
  int const first = size == 1 ? r : c, second = size == 1 ? c : r;
  tensor const sums = sum(abs(x), dims{first}, keepdim);
  tensor const y = p > 0 ? tensor(amax(sums, dims{second}, keepdim)) : tensor(amin(sums, dims{second}, keepdim));
  return k ? y : tensor(squeeze(y, dims{r, c}));
}
/// Returns norms of vectors, or of matrices if there are two axes.
inline tensor norm_of(tensor const& in, std::optional<double> p, std::optional<dims> a, bool k,
                      std::optional<dtype> t) {
  tensor const x = t ? tensor(to(in, *t)) : in;
  int const n = a ? a->n : x.dim();
  if (!p || n == 1 || (!a && n != 2)) return vector_norm(x, p.value_or(2), a.value_or(dims{}), dims{k});
  if (n != 2) refuse::argument_is_invalid("norm", "one or two axes are expected");
  return matrix_norm(x, *p, a ? (*a)[0] : extent(-2), a ? (*a)[1] : extent(-1), k);
}

/// Returns finite differences along the given axes, or all axes for None. `spacing` is one distance, a distance for
/// each axis, or coordinates for each axis.
inline std::vector<tensor> gradients(tensor const& x, argument const& spacing, argument const& axes, index_t edge) {
  dims a;
  if (axes.is<extent>()) a.push_back(axes.as<extent>());
  else if (axes.is_none())
    for (int k = 0; k < x.dim(); ++k) a.push_back(k);
  else a = detail::parameter<dims>::of(axes);
  for (int i = 0; i < a.n; ++i)
    for (int j = 0; j < i; ++j)
      if (wrap_axis(a[i], x.dim()) == wrap_axis(a[j], x.dim()))
        refuse::argument_is_invalid("gradient", "an axis is named twice");
  argument::list h(static_cast<std::size_t>(a.n), spacing.is_none() ? argument(1.0) : spacing);
  if (spacing.is<argument::list>()) {
    if (spacing.as<argument::list>().size() != h.size())
      refuse::argument_is_invalid("gradient", "there must be a distance, or coordinates, for each axis");
    h = spacing.as<argument::list>();
  }
  std::vector<tensor> r;
  for (int k = 0; k < a.n; ++k) {
    argument const& by = h[static_cast<std::size_t>(k)];
    if (by.is<tensor>()) r.push_back(gradient_over(x, dims{a[k]}, by.as<tensor>(), static_cast<int>(edge)));
    else r.push_back(gradient_along(x, dims{a[k]}, detail::parameter<double>::of(by), static_cast<int>(edge)));
  }
  return r;
}

VARVE_LIBRARY std::span<call_row const> matrices() {
  using enum call_forms;
  static call_row const rows[] = {
      {"matmul(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor { return matmul(a, b); }, out_of_its_dtype,
       "linalg_matmul linalg.matmul __matmul__"},
      {"__rmatmul__(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor { return matmul(b, a); }},
      {"mm(Tensor self, Tensor mat2) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor {
         if (a.dim() != 2 || b.dim() != 2) refuse::shapes_do_not_match("mm", a.sizes(), b.sizes());
         return mm(a, b);
       },
       out_of_its_dtype},
      {"dot(Tensor self, Tensor tensor) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor {
         if (a.dtype() != b.dtype()) refuse::dtypes_differ("dot", name(a.dtype()), name(b.dtype()));
         return dot(a, b);
       },
       out_of_its_dtype},
      {"tensordot(Tensor a, Tensor b, Any dims=2) -> Tensor", dotted},
      {"einsum(str equation, Tensor[] tensors) -> Tensor",
       +[](std::string const& e, std::vector<tensor> const& x) { return einsum(e, x); }},
      {"einsum.operands_first(Tensor[] tensors, str equation) -> Tensor",
       +[](std::vector<tensor> const& x, std::string const& e) { return einsum(e, x); }},
      {"linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
       +[](tensor const& x, tensor const& y, index_t a) -> tensor { return cross(x, y, dims{a}); }, out,
       "linalg.cross"},
      {"cross(Tensor self, Tensor other, int? dim=None) -> Tensor", crossed, out},
      {"cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", covariances},
      {"corrcoef(Tensor self) -> Tensor", of_one<corrcoef_t>},
      {"linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
       +[](tensor const& x, std::optional<extent> n) -> tensor {
         tensor const v = atleast_1d(has_derivatives(x.dtype()) ? x : tensor(to(x, dtype::int64)));
         return vander(v, dims{n ? *n : v.sizes()[v.dim() - 1]});
       },
       "linalg.vander"},
      {"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
       "Tensor",
       norm_of, out, "linalg.norm"},
      {"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) "
       "-> Tensor",
       +[](tensor const& x, double p, dims a, bool k, std::optional<dtype> t) { return norm_of(x, p, a, k, t); }, out,
       "linalg.matrix_norm"},
      {"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       +[](tensor const& x, std::string const& p, dims a, bool k, std::optional<dtype> t) -> tensor {
         if (p == "nuc" && a.n == 2)
           return kept_norm(sum(singular_values(t ? tensor(to(x, *t)) : x, a[0], a[1]), dims{-1}), x.dim(), a[0], a[1],
                            k);
         if (p != "fro") refuse::argument_is_invalid("matrix_norm", "of the named norms there are 'fro' and 'nuc'");
         return vector_norm(t ? tensor(to(x, *t)) : x, 2, a, dims{k});
       },
       out, "linalg.matrix_norm"},
      {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, std::optional<dtype> t) -> tensor { return prod(t ? tensor(to(x, *t)) : x); }},
      {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, bool k, std::optional<dtype> t) -> tensor {
         return prod(t ? tensor(to(x, *t)) : x, dims{a}, dims{k});
       },
       out},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
       +[](tensor const& x, index_t n, index_t a, tensor const& before, tensor const& after) -> tensor {
         std::vector<tensor> parts;
         for (tensor const& t : {before, x, after})
           if (t.defined()) parts.push_back(t);
         if (n < 0) refuse::argument_is_invalid("diff", "the order must not be negative");
         if (n == 0) return clone(x); // nothing is joined in this case
         tensor y = parts.size() > 1 ? tensor(cat(parts, dims{a})) : x;
         for (index_t k = 0; k < n; ++k) y = diff(y, dims{a});
         return y;
       },
       out},
      {"gradient(Tensor self, *, Any spacing=None, Any dim=None, int edge_order=1) -> Tensor[]", gradients},
      {"trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
       +[](tensor const& y, tensor const& x, index_t a) -> tensor {
         if (x.dim() != 1) return trapezoid(y, dims{a}, diff(x, dims{a}));
         dims column{-1};
         for (int d = wrap_axis(a, y.dim()) + 1; d < y.dim(); ++d) column.push_back(1);
         return trapezoid(y, dims{a}, reshape(diff(x), column));
       },
       "trapz"},
      {"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
       +[](tensor const& y, double dx, index_t a) -> tensor { return trapezoid(y, dims{a}, dx); }, "trapz"},
      {"copysign.Tensor(Tensor self, Tensor other) -> Tensor", of_two<copysign_t>, both},
      {"copysign.Scalar(Tensor self, Scalar other) -> Tensor", of_two<copysign_t>, both},
      {"outer(Tensor self, Tensor vec2) -> Tensor", of_two<outer_t>, out, "ger"},
      {"mv(Tensor self, Tensor vec) -> Tensor", of_two<mv_t>, out_of_its_dtype},
      {"bmm(Tensor self, Tensor mat2) -> Tensor", of_two<bmm_t>, out_of_its_dtype},
      {"inner(Tensor self, Tensor other) -> Tensor", of_two<inner_t>, out},
      {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
       +[](tensor const& a, tensor const& b, index_t axis) -> tensor { return vecdot(a, b, dims{axis}); }, out,
       "linalg.vecdot"},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addmm_t>,
       both},
      {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addmv_t>, both},
      {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addr_t>, both},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       added<baddbmm_t>, both},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addbmm_t>,
       both},
  };
  return rows;
}
} // namespace varve::by_name
#endif
