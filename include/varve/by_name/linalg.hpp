// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of matrix factorizations and of operators built on them.
std::span<call_row const> factorizations();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/ranges.hpp>
#include <varve/linalg/inverse.hpp>
#include <varve/linalg/ldl.hpp>
#include <varve/linalg/lu.hpp>
#include <varve/linalg/multi_dot.hpp>
#include <varve/linalg/orthogonal.hpp>
#include <varve/linalg/spectral.hpp>
#include <varve/linalg/triangular.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const linalg_family{&factorizations};
using results_of_two = std::tuple<tensor, tensor>;
using results_of_three = std::tuple<tensor, tensor, tensor>;

/// Returns int32 zeros for each matrix: no error occurred.
inline tensor no_info(tensor const& a) { return zeros(a.sizes().sub(0, a.dim() - 2), dtype::int32); }
inline void needs_no_info(char const* op, tensor const& info) {
  if (detail::are_unwatched(&info, 1) && tensor(any(ne(info, 0))).item<bool>())
    refuse::argument_is_invalid(op, "a matrix is singular");
}

inline tensor lower_of(tensor const& a, bool upper) {
  return upper ? tensor(transpose(cholesky(transpose(a)))) : tensor(cholesky(a));
}
/// Expands the batch dimensions of `a` to those of `b`. The last `own` (`own_b`) dimensions are not batch dimensions.
inline tensor with_batch_of(tensor const& a, int own, tensor const& b, int own_b) {
  if (a.dim() < own || b.dim() < own_b) refuse::shapes_do_not_match("linalg", a.sizes(), b.sizes());
  dims s = broadcast(a.sizes().sub(0, a.dim() - own), b.sizes().sub(0, b.dim() - own_b));
  for (int k = a.dim() - own; k < a.dim(); ++k) s.push_back(a.sizes()[k]);
  return expand(a, s);
}
inline tensor solved_triangle(tensor const& a, tensor const& b, bool upper, bool unit) {
  return solve_triangular(with_batch_of(a, 2, b, 2), with_batch_of(b, 2, a, 2), dims{upper}, dims{unit});
}
inline results_of_two triangular_solved(tensor const& b, tensor const& a, bool upper, bool turned, bool unit) {
  if (a.dim() < 2 || b.dim() < 2) refuse::argument_is_invalid("triangular_solve", "matrices are expected");
  return {solved_triangle(turned ? tensor(transpose(a)) : a, b, upper != turned, unit), clone(a)};
}
inline tensor solved_triangle_by_side(tensor const& a, tensor const& b, bool upper, bool left, bool unit) {
  if (left) return solved_triangle(a, b, upper, unit);
  return transpose(solved_triangle(transpose(a), transpose(b), !upper, unit));
}

inline auto factored(tensor const& a, bool pivot) {
  if (!pivot) refuse::argument_is_invalid("lu_factor", "without pivots there is no factorization on the CPU");
  return lu_factor(a);
}
inline tensor rows_by_pivots(tensor const& packed, tensor const& pivots) {
  if (packed.dim() < 2 || pivots.dim() != packed.dim() - 1 || is_floating(pivots.dtype()))
    refuse::argument_is_invalid("lu_unpack", "matrices, and for each a vector of whole numbers, are expected");
  return rows_of_pivots(pivots, dims{packed.sizes()[packed.dim() - 2]});
}
inline results_of_three unpacked(tensor const& packed, tensor const& rows) { return lu_unpack(packed, rows); }
inline tensor solved_by_lu(tensor const& packed, tensor const& pivots, tensor const& b, bool left, bool adjoint) {
  tensor const f = with_batch_of(packed, 2, b, 2), rhs = with_batch_of(b, 2, packed, 2);
  tensor const rows = rows_by_pivots(f, with_batch_of(pivots, 1, b, 2));
  if (left && !adjoint) return lu_solve(f, rows, rhs);
  if (!left && adjoint) return transpose(tensor(lu_solve(f, rows, transpose(rhs))));
  // Solve x^T p l u = b^T with the transposed factors, then restore the order of the rows.
  tensor const from = left ? rhs : tensor(transpose(rhs));
  tensor const u = solve_triangular(transpose(f), from, dims{0});
  tensor const l = solve_triangular(transpose(f), u, dims{1}, dims{1});
  tensor const p = detail::matrix_of_rows(rows, dims{static_cast<index_t>(b.dtype())});
  tensor const x = matmul(p, l);
  return left ? x : tensor(transpose(x));
}

inline tensor inverse_of(tensor const& a) { return inverse(a); }
inline tensor solved(tensor const& a, tensor const& b, bool left, bool check) {
  if (left) return solve(a, b, dims{check});
  if (b.dim() < 2) refuse::argument_is_invalid("solve", "from the right, matrices are expected");
  return transpose(tensor(solve(transpose(a), transpose(b), dims{check})));
}
inline tensor inverted_tensor(tensor const& x, index_t ind) {
  if (ind < 1 || ind > x.dim()) refuse::argument_is_invalid("tensorinv", "ind is a positive number of dimensions");
  int const k = static_cast<int>(ind);
  dims const front = x.sizes().sub(0, k), back = x.sizes().sub(k, x.dim());
  if (!(numel(front) == numel(back))) refuse::shapes_do_not_match("tensorinv", front, back);
  dims shape = back;
  for (extent e : front) shape.push_back(e);
  return reshape(tensor(inverse(reshape(x, dims{numel(front), numel(back)}))), shape);
}
inline tensor solved_tensor(tensor const& a, tensor const& b, std::optional<dims> const& axes) {
  tensor x = a;
  if (axes) {
    dims order;
    for (int d = 0; d < a.dim(); ++d) order.push_back(d);
    for (extent e : *axes) {
      int const k = wrap_axis(e, a.dim());
      for (int d = 0; d < order.n; ++d)
        if (order[d] == k) {
          order.erase(d);
          break;
        }
      order.push_back(k);
    }
    x = permute(a, order);
  }
  if (b.dim() > x.dim() || !(numel(b.sizes()) * numel(b.sizes()) == numel(x.sizes())))
    refuse::shapes_do_not_match("tensorsolve", a.sizes(), b.sizes());
  dims const shape = x.sizes().sub(b.dim(), x.dim());
  extent const n = numel(b.sizes());
  return reshape(tensor(solve(reshape(x, dims{n, n}), reshape(b, dims{n}))), shape);
}

inline results_of_two reflectors_apart(tensor const& a) {
  tensor const all = reflectors(a);
  extent const m = a.sizes()[a.dim() - 2], n = a.sizes()[a.dim() - 1], k = m < n ? m : n;
  tensor const last = squeeze(narrow(all, dims{-2}, dims{m}, dims{1}), dims{-2});
  return {clone(narrow(all, dims{-2}, dims{0}, dims{m})), clone(narrow(last, dims{-1}, dims{0}, dims{k}))};
}
inline results_of_two factored_qr(tensor const& a, std::string const& mode) {
  if (a.dim() < 2) refuse::argument_is_invalid("qr", "matrices are expected");
  if (mode == "reduced" || mode == "r") {
    auto const [q, r] = qr(a);
    return {mode == "r" ? zeros(dims{0}, a.dtype()) : tensor(q), tensor(r)};
  }
  if (mode != "complete") refuse::argument_is_invalid("qr", "the mode is 'reduced', 'complete' or 'r'");
  auto const [packed, tau] = reflectors_apart(a);
  extent const m = a.sizes()[a.dim() - 2];
  dims square = a.sizes();
  square[square.n - 1] = m;
  tensor const one = add(expand(eye(index_t(m), index_t(m), a.dtype()), square), 0);
  return {apply_reflectors(packed, tau, one, false), triu(packed)};
}

inline bool reads_upper(std::string const& part) {
  if (part != "U" && part != "L") refuse::argument_is_invalid("eigh", "UPLO is 'L' or 'U'");
  return part == "U";
}
/// Returns a numeric limit, or nothing for None.
inline std::optional<double> number_of_limit(argument const& a) {
  return a.is_none() ? std::optional<double>() : detail::parameter<double>::of(a);
}
inline tensor pseudoinverted(tensor const& a, argument const& atol, argument const& rtol, bool hermitian) {
  if (a.dim() < 2) refuse::argument_is_invalid("linalg_pinv", "matrices are expected");
  for (argument const& l : {atol, rtol})
    if (l.is<tensor>()) detail::needs_real("linalg_pinv", l.as<tensor>());
  if (!atol.is<tensor>() && !rtol.is<tensor>())
    return pinv(a, number_of_limit(atol).value_or(0), number_of_limit(rtol).value_or(-1), dims{hermitian});
  dims const batch = a.sizes().sub(0, a.dim() - 2);
  auto const limit = [&](argument const& l, double without) {
    tensor const t = l.is<tensor>() ? tensor(to(l.as<tensor>(), a.dtype()))
                                    : tensor(add(zeros(dims{}, a.dtype()), number_of_limit(l).value_or(without)));
    return tensor(expand(t, batch));
  };
  tensor const both =
      stack(std::vector<tensor>{limit(atol, 0), limit(rtol, atol.is_none() ? detail::least_relative(a) : 0)}, dims{-1});
  return pseudoinverse(a, both, dims{hermitian});
}
/// Returns the number of singular values that exceed both limits.
inline tensor rank_of_matrix(tensor const& a, argument const& atol, argument const& rtol, bool hermitian) {
  if (a.dim() < 2) refuse::argument_is_invalid("matrix_rank", "matrices are expected");
  tensor const s = hermitian ? tensor(abs(eigvalsh(a))) : tensor(svdvals(a));
  extent const k = s.sizes()[s.dim() - 1];
  if (k == 0) return zeros(a.sizes().sub(0, a.dim() - 2), dtype::int64);
  auto const limit = [&](argument const& l, double without) {
    if (l.is<tensor>()) return tensor(to(l.as<tensor>(), a.dtype()));
    return tensor(add(zeros(dims{}, a.dtype()), number_of_limit(l).value_or(without)));
  };
  double const least =
      !atol.is_none() && (atol.is<tensor>() || *number_of_limit(atol) > 0) ? 0 : detail::least_relative(a);
  tensor const relative = mul(limit(rtol, least), tensor(amax(s, dims{-1})));
  tensor const most = maximum(limit(atol, 0), relative);
  return sum(gt(s, unsqueeze(most, dims{-1})), dims{-1});
}
inline tensor condition(tensor const& a, argument const& p) {
  double const ord = p.is<std::string>() ? 0 : number_of_limit(p).value_or(2);
  if (!p.is<std::string>() && std::abs(ord) == 2) {
    tensor const s = svdvals(a);
    tensor const greatest = select(s, dims{-1}, dims{0}), least = select(s, dims{-1}, dims{-1});
    return ord > 0 ? tensor(div(greatest, least)) : tensor(div(least, greatest));
  }
  auto const norm = [&](tensor const& x) -> tensor {
    if (p.is<std::string>() && p.as<std::string>() == "nuc") return sum(svdvals(x), dims{-1});
    if (p.is<std::string>() && p.as<std::string>() == "fro") return vector_norm(x, 2, dims{-2, -1});
    if (p.is<std::string>()) refuse::argument_is_invalid("cond", "of the named norms there are 'fro' and 'nuc'");
    tensor const sums = sum(abs(x), dims{std::abs(ord) == 1 ? -2 : -1});
    return ord > 0 ? tensor(amax(sums, dims{-1})) : tensor(amin(sums, dims{-1}));
  };
  return mul(norm(a), norm(inverse(a)));
}
/// Returns the solution, residuals, ranks and singular values; a driver may leave some empty.
inline std::tuple<tensor, tensor, tensor, tensor>
least_squares(tensor const& a, tensor const& b, std::optional<double> rcond, std::optional<std::string> const& driver) {
  std::string const by = driver.value_or("gelsy");
  if (by != "gels" && by != "gelsy" && by != "gelsd" && by != "gelss")
    refuse::argument_is_invalid("lstsq", "the driver is 'gels', 'gelsy', 'gelsd' or 'gelss'");
  if (a.dim() < 2) refuse::argument_is_invalid("lstsq", "matrices are expected");
  if (a.dtype() != b.dtype()) refuse::dtypes_differ("lstsq", name(a.dtype()), name(b.dtype()));
  bool const vectors = b.dim() == a.dim() - 1;
  tensor const rhs = vectors ? tensor(unsqueeze(b, dims{-1})) : b;
  if (rhs.dim() < 2 || rhs.sizes()[rhs.dim() - 2] != a.sizes()[a.dim() - 2])
    refuse::shapes_do_not_match("lstsq", a.sizes(), b.sizes());
  tensor const x = matmul(pinv(a, 0, rcond.value_or(-1)), rhs);
  tensor residuals = zeros(dims{0}, a.dtype()), rank = zeros(dims{0}, dtype::int64), s = zeros(dims{0}, a.dtype());
  bool const tall = a.sizes()[a.dim() - 2] > a.sizes()[a.dim() - 1];
  if (tall && by != "gelsy") residuals = sum(square(sub(matmul(a, x), rhs)), dims{-2});
  if (by != "gels") rank = rank_of_matrix(detach(a), none, rcond ? argument(*rcond) : argument(), false);
  if (by == "gelsd" || by == "gelss") s = svdvals(detach(a));
  return {vectors ? tensor(squeeze(x, dims{-1})) : x, residuals, rank, s};
}
inline results_of_two ldl_apart(tensor const& a) {
  tensor const all = ldl_factors(a);
  extent const n = a.sizes()[a.dim() - 1];
  tensor const last = squeeze(narrow(all, dims{-2}, dims{n}, dims{1}), dims{-2});
  return {tril(narrow(all, dims{-2}, dims{0}, dims{n})), to(last, dtype::int32)};
}
inline tensor solved_by_ldl(tensor const& factors, tensor const& pivots, tensor const& b, bool) {
  tensor const whole = cat(std::vector<tensor>{factors, unsqueeze(to(pivots, factors.dtype()), dims{-2})}, dims{-2});
  return ldl_solve(with_batch_of(whole, 2, b, 2), with_batch_of(b, 2, whole, 2));
}
inline results_of_three singular_triple(tensor const& a, bool some, bool vectors) {
  if (a.dim() < 2) refuse::argument_is_invalid("svd", "matrices are expected");
  extent const m = a.sizes()[a.dim() - 2], n = a.sizes()[a.dim() - 1];
  auto const [u, s, v] = svd(a);
  auto const whole = [&](tensor const& w, extent size) { // completed to an orthonormal basis
    dims square = w.sizes();
    extent const k = square[square.n - 1];
    if (k == size) return w;
    square[square.n - 1] = size;
    tensor const q = std::get<0>(factored_qr(detach(w), "complete"));
    return tensor(cat(std::vector<tensor>{w, narrow(q, dims{-1}, dims{k}, dims{size - k})}, dims{-1}));
  };
  if (!vectors) return {zeros_like(whole(u, m)), s, zeros_like(whole(v, n))};
  return {some ? u : whole(u, m), s, some ? v : whole(v, n)};
}

VARVE_LIBRARY std::span<call_row const> factorizations() {
  using enum call_forms;
  static call_row const rows[] = {
      {"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", lower_of, out, "linalg.cholesky"},
      {"cholesky(Tensor self, bool upper=False) -> Tensor", lower_of, out},
      {"linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
       +[](tensor const& a, bool upper, bool check) -> results_of_two {
         auto const [l, info] = cholesky_ex(upper ? tensor(transpose(a)) : a);
         if (check && detail::are_unwatched(&info, 1) && tensor(any(ne(info, 0))).item<bool>())
           refuse::argument_is_invalid("cholesky_ex", "a matrix is not positive definite");
         return {upper ? tensor(transpose(l)) : tensor(l), info};
       },
       "linalg.cholesky_ex"},
      {"cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
       +[](tensor const& b, tensor const& l, bool upper) -> tensor {
         if (b.dtype() != l.dtype()) refuse::dtypes_differ("cholesky_solve", name(b.dtype()), name(l.dtype()));
         return cholesky_solve(b, upper ? tensor(transpose(l)) : l);
       },
       out},
      {"linalg_multi_dot(Tensor[] tensors) -> Tensor",
       +[](std::vector<tensor> const& x) -> tensor { return multi_dot(x); }, out, "linalg.multi_dot"},
      {"cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
       +[](tensor const& l, bool upper) -> tensor { return cholesky_inverse(upper ? tensor(transpose(l)) : l); }, out},
      {"linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
       "Tensor",
       solved_triangle_by_side, out, "linalg.solve_triangular"},
      {"triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
       "(Tensor solution, Tensor cloned_coefficient)",
       triangular_solved},

      {"linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
       +[](tensor const& a, bool pivot) -> results_of_two {
         auto const f = factored(a, pivot);
         needs_no_info("lu_factor", f.info);
         return {f.packed, f.pivots};
       },
       "linalg.lu_factor"},
      {"linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
       "Tensor "
       "info)",
       +[](tensor const& a, bool pivot, bool check) -> results_of_three {
         auto const f = factored(a, pivot);
         if (check) needs_no_info("lu_factor", f.info);
         return {f.packed, f.pivots, f.info};
       },
       "linalg.lu_factor_ex"},
      {"lu(Tensor A, bool pivot=True, bool get_infos=False) -> Tensor[]",
       +[](tensor const& a, bool pivot, bool infos) -> argument::list {
         auto const f = factored(a, pivot);
         return infos ? argument::list{f.packed, f.pivots, f.info} : argument::list{f.packed, f.pivots};
       }},
      {"linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
       +[](tensor const& a, bool pivot) -> results_of_three {
         auto const f = factored(a, pivot);
         return unpacked(f.packed, f.rows);
       },
       "linalg.lu"},
      {"lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
       "Tensor "
       "L, Tensor U)",
       +[](tensor const& f, tensor const& p, bool data, bool pivots) -> results_of_three {
         tensor const nothing = zeros(dims{0}, f.dtype());
         auto const [order, l, u] = unpacked(f, rows_by_pivots(f, p));
         return {pivots ? order : nothing, data ? l : nothing, data ? u : nothing};
       }},
      {"lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
       +[](tensor const& b, tensor const& f, tensor const& p) { return solved_by_lu(f, p, b, true, false); }, out},
      {"linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
       solved_by_lu, out, "linalg.lu_solve"},

      {"linalg_inv(Tensor A) -> Tensor", inverse_of, out, "linalg.inv"},
      {"inverse(Tensor self) -> Tensor", inverse_of, out},
      {"linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
       +[](tensor const& a, bool check) -> results_of_two {
         return {inverse(a, dims{check}), lu_factor(detach(a)).info};
       },
       "linalg.inv_ex"},
      {"linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
       +[](tensor const& a, tensor const& b, bool left) { return solved(a, b, left, true); }, out, "linalg.solve"},
      {"linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
       "info)",
       +[](tensor const& a, tensor const& b, bool left, bool check) -> results_of_two {
         return {solved(a, b, left, check), lu_factor(detach(a)).info};
       },
       "linalg.solve_ex"},
      {"linalg_tensorinv(Tensor self, int ind=2) -> Tensor", inverted_tensor, out, "linalg.tensorinv"},
      {"linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", solved_tensor, out,
       "linalg.tensorsolve"},
      {"linalg_det(Tensor A) -> Tensor", of_one<det_t>, out, "linalg.det det"},
      {"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
       +[](tensor const& a) -> results_of_two { return slogdet(a); }, "linalg.slogdet slogdet"},
      {"logdet(Tensor self) -> Tensor", +[](tensor const& a) -> tensor { return logdet(a); }},
      {"linalg_matrix_power(Tensor self, int n) -> Tensor",
       +[](tensor const& a, index_t n) -> tensor { return matrix_power(a, n); }, out,
       "linalg.matrix_power matrix_power"},
      {"linalg_matrix_exp(Tensor self) -> Tensor", of_one<matrix_exp_t>, "linalg.matrix_exp matrix_exp"},

      {"geqrf(Tensor self) -> (Tensor a, Tensor tau)", reflectors_apart},
      {"linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", factored_qr, "linalg.qr"},
      {"qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
       +[](tensor const& a, bool some) { return factored_qr(a, some ? "reduced" : "complete"); }},
      {"linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
       +[](tensor const& a, tensor const& t) { return householder_product(a, t); }, out,
       "linalg.householder_product orgqr"},
      {"ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
       +[](tensor const& a, tensor const& t, tensor const& c, bool left, bool turned) {
         return ormqr(a, t, c, left, turned);
       },
       out},

      {"linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
       +[](tensor const& a, std::string const& part) -> results_of_two { return eigh(a, dims{reads_upper(part)}); },
       "linalg.eigh"},
      {"linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
       +[](tensor const& a, std::string const& part) -> tensor { return eigvalsh(a, dims{reads_upper(part)}); }, out,
       "linalg.eigvalsh"},
      {"linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
       +[](tensor const& a, std::optional<std::string> const&) -> tensor { return svdvals(a); }, out, "linalg.svdvals"},
      {"svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", singular_triple},
      {"linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
       +[](tensor const& a, bool full, std::optional<std::string> const&) -> results_of_three {
         auto const [u, s, v] = singular_triple(a, !full, true);
         return {u, s, transpose(v)};
       },
       "linalg.svd"},
      {"linalg_pinv.atol_rtol_tensor(Tensor self, *, Any atol=None, Any rtol=None, bool hermitian=False) -> Tensor",
       pseudoinverted, out},
      {"linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
       +[](tensor const& a, double rcond, bool hermitian) -> tensor { return pinv(a, 0, rcond, dims{hermitian}); },
       out},
      {"linalg.pinv(Tensor input, *, Any atol=None, Any rtol=None, bool hermitian=False) -> Tensor", pseudoinverted,
       out},
      {"pinverse(Tensor self, float rcond=1e-15) -> Tensor",
       +[](tensor const& a, double rcond) -> tensor { return pinv(a, 0, rcond); }},
      {"linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Any atol=None, Any rtol=None, bool hermitian=False) -> "
       "Tensor",
       rank_of_matrix, out, "linalg.matrix_rank"},
      {"linalg_cond(Tensor self, Any p=None) -> Tensor", condition, out, "linalg.cond"},
      {"linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
       "residuals, Tensor rank, Tensor singular_values)",
       least_squares, "linalg.lstsq"},

      {"linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
       +[](tensor const& a, bool) { return ldl_apart(a); }, "linalg.ldl_factor"},
      {"linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor "
       "pivots, Tensor info)",
       +[](tensor const& a, bool, bool) -> results_of_three {
         auto const [f, p] = ldl_apart(a);
         return {f, p, no_info(a)};
       },
       "linalg.ldl_factor_ex"},
      {"linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", solved_by_ldl, out,
       "linalg.ldl_solve"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
