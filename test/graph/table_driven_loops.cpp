// SPDX-License-Identifier: BSL-1.0
// Fused functions that stay tables: transforms of programs, branches and loops.
#include "table_driven_test.hpp"

#include <varve_test.hpp>

using namespace table_driven_test;

TEST_CASE("table driven: transforms of whole programs", "[fuse][table]") {
  CHECK(forms_differ(vv::grad(softmax_loss), filled<array<double, 9, 4>>(0), filled<array<double, 32, 9>>(1),
                     filled<array<double, 32, 4>>(2)) < 1e-13);
  CHECK(forms_differ(vv::vmap(vv::grad(logistic), vv::in_dims<vv::none, 0, 0>), filled<array<float, 9>>(0),
                     filled<array<float, 50, 9>>(1), filled<array<float, 50>>(2)) < 1e-5);
  CHECK(forms_differ(vv::hessian(rosenbrock), filled<array<double, 41>>(0)) < 1e-10);
}

TEST_CASE("table driven: cond, scan and while_loop, and their gradients", "[fuse][table][cond][scan][while_loop]") {
  auto const x = filled<array<double, 5>>(0), w = filled<array<double, 5>>(2);
  auto minus = x;
  for (index_t k = 0; k < 5; ++k) minus[k] = -x[k];
  for (auto const& v : {x, minus}) {
    CHECK(forms_differ(branches, v, w) < 1e-14);
    CHECK(forms_differ(vv::grad<0, 1>(branches), v, w) < 1e-13);
  }
  auto const xs = filled<array<double, 7, 5>>(1);
  CHECK(forms_differ(recurrence, x, xs) < 1e-13);
  CHECK(forms_differ(vv::grad<0, 1>(recurrence), x, xs) < 1e-12);
  for (double from : {0.9, 2.0, 20.0}) {
    array<double, 5> start{};
    for (index_t k = 0; k < 5; ++k) start[k] = from + 0.05 * static_cast<double>(k);
    CHECK(forms_differ(until, start, w) < 1e-12);
    CHECK(forms_differ(vv::grad<0>(until), start, w) < 1e-10);
  }
  CHECK_THROWS_AS(vv::fuse(until, table_driven)(array<double, 5>{}, w), vv::step_limit_error);
}
