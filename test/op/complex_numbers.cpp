// SPDX-License-Identifier: BSL-1.0
#include <varve/complex.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;
using complex = std::complex<double>;

namespace {
std::vector<complex> elements(tensor const& t) { return t.to_vector<complex>(); }
} // namespace

TEST_CASE("tensors and numbers of std::complex", "[op][complex]") {
  complex const i(0, 1), c(2, -1);
  tensor const x = {1.0, 2.0};
  CHECK(elements(x * c) == std::vector<complex>{c, 2.0 * c});
  CHECK(elements(c * x) == std::vector<complex>{c, 2.0 * c});
  CHECK(elements(x + c) == std::vector<complex>{1.0 + c, 2.0 + c});
  CHECK(elements(c + x) == std::vector<complex>{1.0 + c, 2.0 + c});
  CHECK(elements(x - c) == std::vector<complex>{1.0 - c, 2.0 - c});
  CHECK(elements(c - x) == std::vector<complex>{c - 1.0, c - 2.0});
  CHECK(elements(x / i) == std::vector<complex>{-i, -2.0 * i});
  CHECK(elements(i / x) == std::vector<complex>{i, 0.5 * i});
  CHECK(elements((x * c) * i) == std::vector<complex>{c * i, 2.0 * c * i});
}

TEST_CASE("numbers of std::complex raise no precision", "[op][complex]") {
  complex const i(0, 1);
  CHECK((tensor{1.0f, 2.0f} * i).dtype() == vv::dtype::complex64);
  CHECK((tensor{1.0, 2.0} * std::complex<float>(0, 1)).dtype() == vv::dtype::complex128);
  CHECK((tensor{1, 2} * i).dtype() == vv::dtype::complex64);
  CHECK((tensor(0.5f) * i).dtype() == vv::dtype::complex64);
  CHECK((i * (tensor{1.0f, 2.0f} * i)).dtype() == vv::dtype::complex64);
}

TEST_CASE("numbers of std::complex in gradients, batches and graphs", "[op][complex]") {
  complex const i(0, 1);
  auto const f = [&](tensor const& t) { return vv::sum(vv::real(vv::exp(i * t) * complex(1, 1))); };
  tensor const t = {0.3, 0.5};
  auto const slope = [](double x) { return -std::sin(x) - std::cos(x); };
  CHECK(vv::allclose(vv::grad(f)(t), tensor{slope(0.3), slope(0.5)}));
  CHECK(vv::allclose(vv::vmap(vv::grad(f))(t), tensor{slope(0.3), slope(0.5)}));
  vv::graph const g = vv::make_fx(vv::grad(f))(t);
  CHECK(vv::allclose(vv::interpret(g, vv::boxed_args(t * 2.0))[0], tensor{slope(0.6), slope(1.0)}));
}
