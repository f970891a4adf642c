// SPDX-License-Identifier: BSL-1.0
// Fused functions that stay tables: reductions, products, views and joins.
#include "table_driven_test.hpp"

#include <varve_test.hpp>

using namespace table_driven_test;

TEST_CASE("table driven: reductions over all axes and their gradients", "[fuse][table]") {
  auto const x = filled<array<float, 6, 20, 9>>(0);
  CHECK(forms_differ(
            [](auto v) {
              return std::tuple{vv::sum(v),
                                vv::sum(v, vv::axis<0>),
                                vv::sum(v, vv::axis<1>),
                                vv::sum(v, vv::axis<2>),
                                vv::sum(v, vv::axis<0, 2>),
                                vv::amax(v, vv::axis<1>),
                                vv::amin(v),
                                vv::mean(v, vv::axis<2>),
                                vv::argmax(v, vv::axis<1>)};
            },
            x) < 1e-6);
  CHECK(forms_differ([](auto v) { return vv::softmax(v, vv::axis<1>); }, filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ([](auto v) { return vv::log_softmax(v, vv::axis<0>); }, filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ(vv::grad([](auto v) { return vv::sum(vv::logsumexp(v * v, vv::axis<1>)); }), filled<matrix>(0)) <
        1e-14);
}

TEST_CASE("table driven: products of matrices, views, joins and tables", "[fuse][table]") {
  CHECK(forms_differ(
            [](auto a, auto b) {
              return std::tuple{vv::matmul(a, b), vv::matmul(vv::transpose(a), a), vv::tanh(vv::matmul(a, b)) * 2.0};
            },
            filled<array<double, 13, 21>>(0), filled<array<double, 21, 10>>(1)) < 1e-13);
  CHECK(forms_differ(
            [](auto a) {
              return vv::cat(std::tuple{vv::slice(a, vv::axis<1>, vv::range<2, 8, 3>), a, vv::tanh(a)}, vv::axis<1>);
            },
            filled<matrix>(0)) < 1e-14);
  CHECK(forms_differ(vv::grad(rosenbrock), filled<array<double, 41>>(0)) < 1e-12);
  CHECK(forms_differ([](auto x) { return vv::sum(x * array<float, 3>{1, 2, 4} + 1.0f, vv::axis<1>) * counts; },
                     filled<array<float, 40, 3>>(0)) < 1e-5);
  array<std::int64_t, 5, 9> index{};
  for (index_t k = 0; k < 45; ++k) index.data[k] = k * 7 % 17;
  CHECK(forms_differ([](auto x, auto i) { return vv::gather(x, vv::axis<0>, i); }, filled<matrix>(0), index) == 0);
  CHECK(forms_differ(vv::grad([](auto x, auto i) { return vv::sum(vv::exp(vv::gather(x, vv::axis<0>, i))); }),
                     filled<matrix>(0), index) < 1e-14);
}
