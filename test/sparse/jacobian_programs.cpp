// SPDX-License-Identifier: BSL-1.0
// Sparse derivatives under transforms, traced, compiled and fused.
#include "jacobian_test.hpp"

TEST_CASE("sparse_jacobian: under transforms and in programs", "[sparse]") {
  auto const f = [](tensor const& x) { return bratu(x); };
  auto const j = vv::sparse_jacobian(f);
  tensor const many = vv::reshape(row(24), {3, 8});
  auto const values = [&](tensor const& x) { return j.values(x); };
  tensor const each = vv::vmap(values)(many);
  for (int k = 0; k < 3; ++k) CHECK(close(vv::select(each, 0, k), j.values(vv::select(many, 0, k))));
  CHECK(close(vv::compile(values)(row(8)), j.values(row(8))));
  auto const norm = [&](tensor const& x) { return vv::sum(vv::square(j.values(x))); };
  auto const norm_of_dense = [&](tensor const& x) { return vv::sum(vv::square(vv::jacfwd(f)(x))); };
  CHECK(close(vv::grad(norm)(row(8)), vv::grad(norm_of_dense)(row(8))));
  CHECK(close(vv::jvp(norm, std::tuple(row(8)), std::tuple(row(8))).second,
              vv::jvp(norm_of_dense, std::tuple(row(8)), std::tuple(row(8))).second));
  CHECK(close(vv::interpret(vv::make_fx(values)(row(8)), vv::boxed_args(row(8, 0.7)))[0], j.values(row(8, 0.7))));
  tensor x = row(8);
  x.requires_grad_();
  vv::sum(vv::square(j.values(x))).backward();
  CHECK(close(x.grad(), vv::grad(norm_of_dense)(row(8))));
  CHECK(close(vv::vmap(vv::grad(norm))(many), vv::vmap(vv::grad(norm_of_dense))(many)));
  auto const fresh =
      vv::sparse_jacobian([c = 2.0](tensor const& v) { return bratu(v) * c; }); // the plan is made inside
  CHECK(close(vv::vmap([&](tensor const& v) { return fresh.values(v); })(many), 2.0 * each));
}

TEST_CASE("sparse_jacobian: fused", "[sparse]") {
  auto const h = vv::fuse([](auto const& x) { return vv::sparse_hessian(rosenbrock).values(x); });
  auto const j = vv::fuse([](auto const& x) { return vv::sparse_jacobian(bratu).values(x); });
  auto const a = h(at), b = vv::sparse_hessian(rosenbrock).values(at);
  for (int k = 0; k < 22; ++k) CHECK(a.data[k] == Approx(b.data[k]));
  constexpr array<double, 2, 8> many{0.1, 0.4, -0.2, 0.3, 0.9, -0.7, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 8};
  constexpr auto values = [](auto const& x) { return vv::sparse_hessian(rosenbrock).values(x); };
  constexpr auto by_hand = vv::vmap(values)(many);
  auto const batch = vv::fuse(vv::vmap(values))(many);
  for (int k = 0; k < 44; ++k) CHECK(batch.data[k] == Approx(by_hand.data[k]));
  for (int k = 0; k < 22; ++k) CHECK(by_hand.data[k] == Approx(b.data[k]));
  constexpr auto norm = [](auto const& x) { return vv::sum(vv::square(vv::sparse_jacobian(bratu).values(x))); };
  constexpr auto norm_of_dense = [](auto const& x) { return vv::sum(vv::square(vv::jacfwd(bratu)(x))); };
  auto const g = vv::fuse(vv::grad(norm))(at), g2 = vv::grad(norm)(at), g3 = vv::grad(norm_of_dense)(at);
  for (int k = 0; k < 8; ++k) CHECK(g.data[k] == Approx(g3.data[k]).margin(1e-12));
  for (int k = 0; k < 8; ++k) CHECK(g2.data[k] == Approx(g3.data[k]).margin(1e-12));
  auto const c = j(at), d = vv::sparse_jacobian(bratu).values(at);
  for (int k = 0; k < 22; ++k) CHECK(c.data[k] == Approx(d.data[k]));
}
