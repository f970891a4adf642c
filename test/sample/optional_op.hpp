// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Samples of the operators that the umbrella header has not: special functions, scans, sorts, scatters and
/// factorizations.
/// PyTorch's recorded cases say what they give; the laws run over these.
#include "op.hpp"

#include <varve/indexing/scatter.hpp>
#include <varve/linalg.hpp>
#include <varve/nn/sampling.hpp>
#include <varve/sorting/scans.hpp>
#include <varve/sorting/sort.hpp>
#include <varve/special.hpp>

namespace sample {
/// Elementwise functions.
template <class V>
void visit_special(V const& visit) {
  using enum domain;
  auto const unary = [&](char const* name, auto f, auto operand, bool constant = false) {
    visit(name, f, constant, shapes{{dims{}}, {dims{0}}, {dims{2, 3}}}, operand);
  };
  auto const binary = [&](char const* name, auto f, auto a, auto b, bool constant = false) {
    visit(name, f, constant, shapes{{dims{}, dims{}}, {dims{2, 1}, dims{3}}, {dims{0, 3}, dims{1}}}, a, b);
  };
  on<real, 2, 3> const x;
  on<positive, 2, 3> const p;
  on<nonzero, 2, 3> const z;
  on<positive, 3> const q;
  unary("tan", [](auto const& a) { return vv::tan(vv::mul(a, 0.5)); }, x);
  unary("asin", [](auto const& a) { return vv::asin(vv::mul(a, 0.4)); }, x);
  unary("acos", [](auto const& a) { return vv::acos(vv::mul(a, 0.4)); }, x);
  unary("atan", [](auto const& a) { return vv::atan(a); }, x);
  unary("sinh", [](auto const& a) { return vv::sinh(a); }, x);
  unary("asinh", [](auto const& a) { return vv::asinh(a); }, z);
  unary("atanh", [](auto const& a) { return vv::atanh(vv::mul(a, 0.4)); }, x);
  unary("floor", [](auto const& a) { return vv::floor(a); }, x, true);
  unary("ceil", [](auto const& a) { return vv::ceil(a); }, x, true);
  unary("trunc", [](auto const& a) { return vv::trunc(a); }, x, true);
  unary("round", [](auto const& a) { return vv::round(a, 1); }, x, true);
  unary("frac", [](auto const& a) { return vv::frac(a); }, p);
  unary("mantissa", [](auto const& a) { return vv::frexp(a).first; }, p);
  unary("lgamma", [](auto const& a) { return vv::lgamma(a); }, p);
  unary("digamma", [](auto const& a) { return vv::digamma(a); }, p);
  unary("polygamma", [](auto const& a) { return vv::polygamma(2, a); }, p);
  unary("mvlgamma", [](auto const& a) { return vv::mvlgamma(vv::add(a, 1), 3); }, p);
  unary("erfc", [](auto const& a) { return vv::erfc(a); }, x);
  unary("erfcx", [](auto const& a) { return vv::erfcx(a); }, x);
  unary("erfinv", [](auto const& a) { return vv::erfinv(vv::mul(a, 0.4)); }, x);
  unary("ndtri", [](auto const& a) { return vv::ndtri(vv::mul(a, 0.4)); }, p);
  unary("log_ndtr", [](auto const& a) { return vv::log_ndtr(vv::mul(a, 2)); }, x);
  unary("i0", [](auto const& a) { return vv::i0(a); }, x);
  unary("i1", [](auto const& a) { return vv::i1(a); }, x);
  unary("i0e", [](auto const& a) { return vv::i0e(a); }, z);
  unary("i1e", [](auto const& a) { return vv::i1e(a); }, z);
  unary("k0", [](auto const& a) { return vv::modified_bessel_k0(a); }, p);
  unary("k1", [](auto const& a) { return vv::modified_bessel_k1(a); }, p);
  unary("k0e", [](auto const& a) { return vv::scaled_modified_bessel_k0(a); }, p);
  unary("k1e", [](auto const& a) { return vv::scaled_modified_bessel_k1(a); }, p);
  unary("j0", [](auto const& a) { return vv::bessel_j0(vv::mul(a, 3)); }, x);
  unary("j1", [](auto const& a) { return vv::bessel_j1(vv::mul(a, 3)); }, z);
  unary("y0", [](auto const& a) { return vv::bessel_y0(a); }, p);
  unary("y1", [](auto const& a) { return vv::bessel_y1(a); }, p);
  unary("spherical_j0", [](auto const& a) { return vv::spherical_bessel_j0(a); }, z);
  binary("atan2", [](auto const& a, auto const& b) { return vv::atan2(a, b); }, z, q);
  binary("fmod", [](auto const& a, auto const& b) { return vv::fmod(a, vv::add(b, 2)); }, z, q);
  binary("remainder", [](auto const& a, auto const& b) { return vv::remainder(a, vv::add(b, 2)); }, z, q);
  binary("floor_divide", [](auto const& a, auto const& b) { return vv::floor_divide(a, b); }, x, q, true);
  binary("nextafter", [](auto const& a, auto const& b) { return vv::nextafter(a, b); }, x, q, true);
  unary("igamma", [](auto const& a) { return vv::igamma(1.75, a); }, p);
  unary("igammac", [](auto const& a) { return vv::igammac(1.75, a); }, p);
  unary("zeta", [](auto const& a) { return vv::zeta(2.5, a); }, p);
}

/// Scans, sorts and what writes by index.
template <class V>
void visit_rows(V const& visit) {
  using enum domain;
  on<real, 2, 3> const m;
  on<index, 2, 3> const i;
  auto const rows = shapes{{dims{}}, {dims{4}}, {dims{0}}, {dims{2, 3, 2}}};
  auto const some_rows = shapes{{dims{}}, {dims{4}}, {dims{2, 3, 2}}};
  auto const along = [&](char const* name, auto f, shapes const& s, bool constant = false) {
    visit(name, f, constant, s, m);
  };
  along("cumsum", [](auto const& x) { return vv::cumsum(x, vv::axis<0>); }, rows);
  along("cumprod", [](auto const& x) { return vv::cumprod(x, vv::axis<-1>); }, rows);
  along("cummax", [](auto const& x) { return vv::cummax(x, vv::axis<-1>).first; }, some_rows);
  along("cummin", [](auto const& x) { return vv::cummin(x, vv::axis<0>).first; }, some_rows);
  along("logcumsumexp", [](auto const& x) { return vv::logcumsumexp(x, vv::axis<-1>); }, rows);
  along("argsort", [](auto const& x) { return vv::argsort(x, vv::axis<-1>); }, rows, true);
  along(
      "kth_place", [](auto const& x) { return vv::kth_place(x, vv::axis<-1>, vv::ints<1>{}); },
      shapes{{dims{4}}, {dims{2, 3, 2}}}, true);
  along("sort", [](auto const& x) { return vv::sort(x, vv::axis<0>, vv::ints<1>{}).first; }, rows);
  along("topk", [](auto const& x) { return vv::topk(x, vv::ints<1>{}, vv::axis<-1>).first; }, some_rows);
  along("kthvalue", [](auto const& x) { return vv::kthvalue(x, vv::ints<1>{}, vv::axis<-1>).first; }, some_rows);
  along("median", [](auto const& x) { return vv::median(x, vv::axis<-1>).first; }, some_rows);
  along("nanmedian", [](auto const& x) { return vv::nanmedian(x, vv::axis<0>, vv::keepdim).first; }, some_rows);
  along("mode", [](auto const& x) { return vv::mode(x, vv::axis<-1>).first; }, some_rows);
  visit(
      "recurrence", [](auto const& a, auto const& b) { return vv::recurrence(a, b, vv::axis<-1>, vv::ints<1>{}); },
      false, shapes{{dims{4}, dims{4}}, {dims{3, 0}, dims{3, 0}}}, m, m);
  auto const written = [&](char const* name, auto f) {
    visit(name, f, false, shapes{{dims{3}, dims{3}, dims{3}}, {dims{3, 3}, dims{2, 1}, dims{2, 1}}}, on<real, 2, 3>{},
          i, m);
  };
  written("scatter_by", [](auto const& x, auto const& at, auto const& s) {
    return vv::scatter_by(x, vv::axis<-1>, at, s, vv::by_rule<vv::scatter_rule::multiply>);
  });
  written("scatter_by", [](auto const& x, auto const& at, auto const& s) {
    return vv::scatter_by(x, vv::axis<-1>, at, s, vv::by_rule<vv::scatter_rule::greatest>);
  });
  written("scatter_reduce", [](auto const& x, auto const& at, auto const& s) {
    return vv::scatter_reduce(x, vv::axis<-1>, at, s, vv::index_reduction::mean, false);
  });
}

inline constexpr auto good = [](auto const& x) { // positive, and far from singular
  return vv::add(vv::detail::times_transposed(x, x), vv::mul(vv::detail::identity_like(x), 2));
};
inline constexpr auto regular = [](auto const& x) { return vv::add(x, vv::mul(vv::detail::identity_like(x), 6)); };
inline constexpr auto symmetric = [](auto const& x) { return vv::add(x, vv::transpose(x)); };
/// Factorizations. What they need of a matrix, these functions make of any.
template <class V>
void visit_matrices(V const& visit) {
  using enum domain;
  on<real, 3, 3> const a;
  auto const square = shapes{{dims{1, 1}}, {dims{0, 0}}, {dims{2, 3, 3}}};
  auto const some_squares = shapes{{dims{1, 1}}, {dims{2, 3, 3}}};
  auto const of = [&](char const* name, auto f, shapes const& s) { visit(name, f, false, s, a); };
  of("cholesky", [](auto const& x) { return vv::cholesky(good(x)); }, square);
  of("cholesky_inverse", [](auto const& x) { return vv::cholesky_inverse(vv::tril(regular(x))); }, square);
  of("cholesky_solve", [](auto const& x) { return vv::cholesky_solve(x, vv::tril(regular(x))); }, square);
  of("cholesky_ex", [](auto const& x) { return vv::cholesky_ex(good(x)).first; }, square);
  of("multi_dot", [](auto const& x) { return vv::multi_dot(std::tuple{x, vv::transpose(x), x}); }, square);
  of("lu_factor", [](auto const& x) { return vv::lu_factor(regular(x)).packed; }, square);
  of("slogdet", [](auto const& x) { return vv::slogdet(regular(x)).second; }, square);
  of("inverse", [](auto const& x) { return vv::inverse(regular(x)); }, square);
  of("det", [](auto const& x) { return vv::det(regular(x)); }, square);
  of("matrix_exp", [](auto const& x) { return vv::matrix_exp(x); }, square);
  of("matrix_power", [](auto const& x) { return vv::matrix_power(vv::mul(regular(x), 0.2), 3); }, square);
  of("q", [](auto const& x) { return vv::qr(regular(x)).first; }, square);
  of("r", [](auto const& x) { return vv::qr(regular(x)).second; }, square);
  of("eigvalsh", [](auto const& x) { return vv::eigvalsh(symmetric(x)); }, some_squares);
  of("eigenvectors", [](auto const& x) { return vv::square(vv::eigenvectors(symmetric(x))); }, some_squares);
  of("svdvals", [](auto const& x) { return vv::svdvals(regular(x)); }, some_squares);
  of(
      "svd",
      [](auto const& x) {
        auto const [u, s, v] = vv::svd(regular(x));
        return vv::add(vv::square(u), vv::detail::times_transposed(u, v));
      },
      some_squares);
  of("pinv", [](auto const& x) { return vv::pinv(regular(x)); }, square);
  visit(
      "solve", [](auto const& x, auto const& b) { return vv::solve(regular(x), b); }, false,
      shapes{{dims{3, 3}, dims{3}}, {dims{2, 3, 3}, dims{3, 2}}}, a, on<real, 3, 2>{});
  visit(
      "solve_triangular",
      [](auto const& x, auto const& b) { return vv::solve_triangular(regular(x), b, vv::ints<1>{}); }, false,
      shapes{{dims{1, 1}, dims{1, 0}}, {dims{2, 3, 3}, dims{2, 3, 2}}}, a, on<real, 3, 2>{});
  visit(
      "lu_in_place", [](auto const& x) { return vv::pinv(x); }, false, shapes{{dims{2, 4}}, {dims{4, 3}}},
      on<real, 2, 3>{});
}
} // namespace sample
