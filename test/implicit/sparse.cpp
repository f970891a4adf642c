// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#if __has_include(<Eigen/SparseLU>) || __has_include(<eigen3/Eigen/SparseLU>)
#include <varve/implicit.hpp>
#include <varve/interop/eigen_sparse_lu.hpp>
#include <varve/varve.hpp>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::index_t;
using vv::tensor;

namespace {
/// A chain of springs.
constexpr auto residual = [](auto const& x, auto const& force) {
  auto const end = vv::zeros_like(vv::narrow(x, vv::ints<0>{}, vv::ints<0>{}, vv::ints<1>{}));
  auto const wide = vv::cat(std::tuple{end, x, end}, vv::ints<0>{});
  auto const n = vv::on_dims([](vv::dims const& s) { return s; }, vv::shape_of(x));
  return x * 2.0 - vv::narrow(wide, vv::ints<0>{}, vv::ints<0>{}, n) * 0.9 -
         vv::narrow(wide, vv::ints<0>{}, vv::ints<2>{}, n) + x * x * x - force;
};
varve::eigen_sparse_lu band(index_t n, bool whole = true) {
  varve::eigen_sparse_lu r;
  for (index_t k = 0; k < n; ++k) {
    r.pattern.emplace_back(k, k);
    if (k > 0) r.pattern.emplace_back(k, k - 1);
    if (k > 0 && whole) r.pattern.emplace_back(k - 1, k);
  }
  return r;
}
} // namespace

TEST_CASE("eigen_sparse_lu: roots, derivatives and lanes are those of dense equations", "[implicit][eigen]") {
  index_t const n = 12;
  tensor const force = vv::cos(vv::arange(12, vv::dtype::float64)) * 2.0;
  auto const with = [&](auto const& linear) {
    return [=](tensor const& f) {
      using L = std::remove_cvref_t<decltype(linear)>;
      return implicit::root(residual, implicit::newton<L>{.linear = linear}, linear)(vv::zeros_like(f), f);
    };
  };
  auto const sparse = with(band(n));
  auto const dense = with(implicit::dense{});
  CHECK(vv::allclose(sparse(force), dense(force)));
  auto const gradient = [](auto const& f) {
    return [f](tensor const& x) { return vv::grad([&](tensor const& v) { return vv::sum(vv::sin(f(v))); })(x); };
  };
  CHECK(vv::allclose(gradient(sparse)(force), gradient(dense)(force)));
  CHECK(vv::allclose(vv::jacrev(gradient(sparse))(force), vv::jacrev(gradient(dense))(force)));
  tensor const many = vv::stack(std::vector<tensor>{force, force * 3.0});
  CHECK(vv::allclose(vv::vmap(sparse)(many), vv::vmap(dense)(many)));
  CHECK(vv::allclose(vv::vmap(gradient(sparse))(many), vv::vmap(gradient(dense))(many)));
  CHECK_THROWS_AS(with(band(n, false))(force), implicit::convergence_error); // the pattern lacks a diagonal
  CHECK_THROWS_AS(with(band(n + 1))(force), vv::value_error);
}

TEST_CASE("eigen_sparse_lu: arrays", "[implicit][eigen]") {
  constexpr vv::array<double, 4> force{1, 2, 3, 4};
  auto const f = [](auto const& v) {
    auto const lu = band(4);
    return implicit::root(residual, implicit::newton{}, lu)(vv::array<double, 4>{}, v);
  };
  auto const g = [](auto const& v) { return implicit::root(residual)(vv::array<double, 4>{}, v); };
  CHECK(vv::allclose(vv::grad([&](auto const& v) { return vv::sum(f(v)); })(force),
                     vv::grad([&](auto const& v) { return vv::sum(g(v)); })(force)));
}
#endif
