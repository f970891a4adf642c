// SPDX-License-Identifier: BSL-1.0
#include <varve/op/all.hpp>
#include <varve/sparse.hpp>

// Patterns, colorings and sparse derivatives of arrays are constants, by every compiler.
namespace vv = varve;
using vv::array, vv::sparsity_pattern;

constexpr auto band = sparsity_pattern::banded;
constexpr auto chain = [](auto const& x) {
  auto const a = vv::slice(x, vv::axis<0>, vv::range<0, -1>), b = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>);
  return vv::sum(vv::square(b - a * a));
};
constexpr auto differences = [](auto const& x) {
  return vv::slice(x, vv::axis<0>, vv::range<1, vv::end>) - vv::slice(x, vv::axis<0>, vv::range<0, -1>);
};
constexpr array<double, 5> x{1, 2, 3, 4, 5};

constexpr int colors_of_a_band() { // named variables: g++ 12 loses temporaries that own storage
  sparsity_pattern const p = band(20, 20, 1, 1);
  vv::coloring const columns = vv::color_columns(p), star = vv::star_coloring(p), acyclic = vv::acyclic_coloring(p);
  return columns.colors * 100 + star.colors * 10 + acyclic.colors;
}
static_assert(colors_of_a_band() == 332);

constexpr auto pattern = vv::sparsity(differences, vv::spec<float, 5>);
static_assert(pattern.rows == 4 && pattern.columns == 5 && pattern.count() == 8);
static_assert(pattern.contains(0, 0) && pattern.contains(0, 1) && !pattern.contains(0, 2));
constexpr auto of_hessian = vv::hessian_sparsity(chain, vv::spec<double, 5>);
static_assert(of_hessian.count() == 13 && of_hessian.contains(3, 4) && !of_hessian.contains(2, 4));

constexpr auto j = vv::sparse_jacobian(differences)(x);
static_assert(j.count() == 8 && j.values.data[0] == -1 && j.values.data[1] == 1);
constexpr auto h = vv::sparse_hessian(chain)(x);
constexpr auto dense = vv::hessian(chain)(x);
static_assert(h.count() == 13 && h.values.data[0] == dense(0, 0) && h.values.data[1] == dense(0, 1));
static_assert(h.to_dense()(4, 3) == dense(4, 3) && h.to_dense()(4, 0) == 0);
static_assert(vv::sparse_hessian(chain, vv::by_substitution).values(x).data[4] == dense(1, 2));

// by another argument than the first
constexpr auto weighted = [](auto const& w, auto const& x, auto const& shift) { return w * differences(x) + shift; };
constexpr array<double, 4> w{1, 2, 3, 4};
constexpr auto by_x = vv::sparsity<1>(weighted, vv::spec<double, 4>, vv::spec<double, 5>, vv::spec<double>);
static_assert(by_x.count() == 8 && by_x.columns == 5);
constexpr auto by_w = vv::sparsity<-3>(weighted, vv::spec<double, 4>, vv::spec<double, 5>, vv::spec<double>);
static_assert(by_w.count() == 4 && by_w.columns == 4);
static_assert(vv::sparse_jacobian<1>(weighted)(w, x, 0.0).values.data[3] == 2);
static_assert(vv::sparse_jacobian<-1>(weighted)(w, x, 0.0).count() == 4);
static_assert(vv::sparse_jacobian<1>(weighted).passes(w, x, 0.0) == 2);
constexpr auto loss = [](auto const& shift, auto const& v) { return vv::sum(vv::square(differences(v) * shift)); };
static_assert(vv::hessian_sparsity<1>(loss, vv::spec<double>, vv::spec<double, 5>).count() == 13);
static_assert(vv::sparse_hessian<1>(loss)(2.0, x).values.data[0] == 8);
