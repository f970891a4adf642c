// SPDX-License-Identifier: BSL-1.0
// Complex tensors. PyTorch's recorded cases run with complex operands in test/opinfo/complex.cpp.
#include "../sample/value.hpp"

#include <varve/autograd/gradcheck.hpp>
#include <varve/complex.hpp>
#include <varve/export/safetensors.hpp>
#include <varve/varve.hpp>

#include <complex>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using C = std::complex<double>;
using F = std::complex<float>;

namespace {
tensor of(std::vector<C> const& v, dims const& sizes) { return tensor::from_data(v.data(), sizes); }
tensor row(std::vector<C> const& v) { return of(v, {static_cast<index_t>(v.size())}); }
std::vector<C> numbers_of(tensor const& t) { return t.to_vector<C>(); }
/// Empty when elements agree.
std::string apart(tensor const& t, std::vector<C> const& right, double tolerance = 1e-14) {
  auto const mine = numbers_of(t);
  if (mine.size() != right.size()) return "another number of elements";
  for (std::size_t k = 0; k < mine.size(); ++k)
    if (!(std::abs(mine[k] - right[k]) <= tolerance * (1 + std::abs(right[k]))))
      return "element " + std::to_string(k) + " is " + std::to_string(mine[k].real()) + "+" +
             std::to_string(mine[k].imag()) + "j";
  return "";
}
std::vector<C> const some{{1, 2}, {-0.5, 0.25}, {3, -1}, {-2, -1.5}};
template <class G>
std::vector<C> each(std::vector<C> const& v, G const& g) {
  std::vector<C> r;
  for (C const z : v) r.push_back(g(z));
  return r;
}
} // namespace

static_assert(vv::promote_types(dtype::complex64, dtype::float64) == dtype::complex128);
static_assert(vv::promote_types(dtype::int64, dtype::complex64) == dtype::complex64);
static_assert(vv::promote_types(dtype::float16, dtype::complex64) == dtype::complex64);
static_assert(vv::category(dtype::complex64) == 3 && !vv::is_floating(dtype::complex64));
static_assert(vv::result_type(vv::meta{dtype::float32, {2}}, vv::meta{dtype::complex128, {}}) == dtype::complex64);
static_assert(vv::result_type(vv::meta{dtype::float64, {2}}, vv::meta{dtype::complex64, {}}) == dtype::complex128);
static_assert(vv::result_type(vv::meta{dtype::complex64, {2}}, vv::meta{dtype::float64, {}, true}) == dtype::complex64);
static_assert(vv::result_type(vv::meta{dtype::int64, {2}}, vv::meta{dtype::complex128, {}, true}) == dtype::complex64);

TEST_CASE("complex: made, read, printed, converted", "[op][complex]") {
  tensor const z = of(some, {2, 2});
  CHECK(z.dtype() == dtype::complex128);
  CHECK(vv::is_complex(z));
  CHECK(numbers_of(z) == some);
  CHECK(z.data<C>()[2] == C(3, -1));
  CHECK(vv::select(vv::select(z, 0, 1), 0, 0).item<C>() == C(3, -1));
  CHECK_THROWS_AS(vv::select(vv::select(z, 0, 1), 0, 0).item(), vv::dtype_error);
  CHECK_THROWS_AS(z.to_vector<double>(), vv::dtype_error);
  CHECK_THROWS_AS(z.data<double>(), vv::dtype_error);
  CHECK(vv::to_string(z) == "tensor([[1+2j, -0.5+0.25j],\n        [3-1j, -2-1.5j]], dtype=complex128)");
  F const one[] = {{1.5f, -2}};
  tensor const c = tensor::from_data(one, {1});
  CHECK(c.dtype() == dtype::complex64);
  CHECK(c.item<C>() == C(1.5, -2));
  CHECK(vv::to(z, dtype::complex64).dtype() == dtype::complex64);
  CHECK(apart(vv::to(vv::to(z, dtype::complex64), dtype::complex128), some) == "");
  CHECK(difference(vv::to(z, dtype::float32), from({1, -0.5, 3, -2}, {2, 2}, dtype::float32)) == "");
  CHECK(difference(vv::to(row({{0, 1}, {0, 0}, {2, 0}}), dtype::bool_), from({1, 0, 1}, {3}, dtype::bool_)) == "");
  CHECK(apart(vv::to(from({1, 2}, {2}, dtype::float16), dtype::complex64), {1, 2}) == "");
  CHECK(apart(vv::to(from({-1, 2}, {2}, dtype::int64), dtype::complex128), {-1, 2}) == "");
  CHECK(apart(vv::zeros({2}, dtype::complex64), {0, 0}) == "");
  CHECK(apart(vv::full({2}, 2.5, dtype::complex128), {2.5, 2.5}) == "");
  CHECK(apart(vv::ones_like(z), {1, 1, 1, 1}) == "");
  CHECK(apart(vv::eye(2, dtype::complex64), {1, 0, 0, 1}) == "");
  CHECK_THROWS_AS(vv::arange(3, dtype::complex64), vv::dtype_error);
  CHECK_THROWS_AS(vv::randn({3}, dtype::complex64), vv::dtype_error);
}
TEST_CASE("complex: parts, and the views of them", "[op][complex]") {
  tensor const z = of(some, {2, 2});
  CHECK(difference(vv::real(z), from({1, -0.5, 3, -2}, {2, 2})) == "");
  CHECK(difference(vv::imag(z), from({2, 0.25, -1, -1.5}, {2, 2})) == "");
  CHECK(vv::real(vv::ones({2})).dtype() == dtype::float32);
  CHECK_THROWS_AS(vv::imag(vv::ones({2})), vv::dtype_error);
  CHECK(apart(vv::complex(vv::real(z), vv::imag(z)), some) == "");
  CHECK(apart(vv::complex(vector_of({1, 2}), from({3}, {})), {{1, 3}, {2, 3}}) == "");
  CHECK_THROWS_AS(vv::complex(vector_of({1}), vv::ones({1})), vv::dtype_error);
  CHECK_THROWS_AS(vv::complex(vv::ones({1}, dtype::int64), vv::ones({1}, dtype::int64)), vv::dtype_error);
  CHECK(apart(vv::conj(z), each(some, [](C v) { return std::conj(v); })) == "");
  CHECK(apart(vv::adjoint(z), {{1, -2}, {3, 1}, {-0.5, -0.25}, {-2, 1.5}}) == "");
  CHECK(apart(vv::polar(vector_of({2, 1}), vector_of({0.5, -1})), {std::polar(2.0, 0.5), std::polar(1.0, -1.0)}) == "");
  CHECK(difference(vv::angle(z),
                   from({std::arg(some[0]), std::arg(some[1]), std::arg(some[2]), std::arg(some[3])}, {2, 2}),
                   1e-15) == "");
  CHECK(difference(vv::angle(vector_of({-1, 2, NAN})), vector_of({M_PI, 0, NAN}), 1e-15) == "");
  CHECK(apart(vv::sgn(row({{3, 4}, {0, 0}})), {{0.6, 0.8}, {0, 0}}) == "");
  auto const of_real = [](tensor const& r) { return vv::sum(vv::real(vv::sgn(vv::complex(r, r)))); };
  CHECK(elements(vv::grad(of_real)(vector_of({0, 0}))) == doubles({0, 0}));

  tensor const own = vv::clone(z), v = vv::view_as_real(own);
  CHECK(v.sizes() == dims{2, 2, 2});
  CHECK(v.shares_storage(own));
  vv::mul_(v, 2);
  CHECK(apart(own, each(some, [](C a) { return 2.0 * a; })) == "");
  CHECK(elements(vv::view_as_real(vv::transpose(z))) == doubles({1, 2, 3, -1, -0.5, 0.25, -2, -1.5}));
  tensor const back = vv::view_as_complex(v);
  CHECK(back.shares_storage(own));
  CHECK(apart(back, numbers_of(own)) == "");
  CHECK_THROWS_AS(vv::view_as_complex(vv::ones({3})), vv::value_error);
  CHECK_THROWS_AS(vv::view_as_complex(vv::transpose(vv::ones({2, 4}))), vv::value_error);
  CHECK_THROWS_AS(vv::view_as_complex(vv::ones({2}, dtype::int64)), vv::dtype_error);
}
TEST_CASE("complex: views, copies, writes and layouts", "[op][complex]") {
  std::vector<C> all;
  for (int k = 0; k < 12; ++k) all.emplace_back(k, -k);
  for (dtype const t : {dtype::complex64, dtype::complex128}) {
    INFO(vv::name(t));
    tensor const z = vv::to(of(all, {3, 4}), t);
    tensor const turned = vv::transpose(z);
    CHECK(turned.shares_storage(z));
    CHECK(apart(vv::select(vv::contiguous(turned), 0, 1), {{1, -1}, {5, -5}, {9, -9}}) == "");
    CHECK(apart(vv::slice(z, 1, 1, 4, 2), {{1, -1}, {3, -3}, {5, -5}, {7, -7}, {9, -9}, {11, -11}}) == "");
    CHECK(apart(vv::cat(std::vector<tensor>{vv::slice(z, 0, 0, 1), vv::slice(z, 0, 2, 3)}, 1),
                {{0, 0}, {1, -1}, {2, -2}, {3, -3}, {8, -8}, {9, -9}, {10, -10}, {11, -11}}) == "");
    CHECK(apart(vv::gather(z, 1, vv::full({3, 1}, 2)), {{2, -2}, {6, -6}, {10, -10}}) == "");
    CHECK(apart(vv::flip(vv::select(z, 0, 0), dims{0}), {{3, -3}, {2, -2}, {1, -1}, {0, 0}}) == "");
    CHECK(apart(vv::expand(vv::slice(z, 1, 0, 1), dims{3, 2}), {{0, 0}, {0, 0}, {4, -4}, {4, -4}, {8, -8}, {8, -8}}) ==
          "");
    tensor const large = vv::expand(vv::reshape(z, dims{12, 1}), dims{12, 40});
    CHECK(apart(vv::select(vv::contiguous(vv::transpose(large)), 0, 39), all) == "");
    tensor const w = vv::clone(z);
    vv::mul_(vv::select(w, 0, 1), vv::complex_scalar(C(0, 1)));
    CHECK(apart(vv::select(w, 0, 1), {{4, 4}, {5, 5}, {6, 6}, {7, 7}}) == "");
    CHECK(w.version() == 1);
    vv::add_(vv::select(w, 0, 0), 1);
    CHECK(apart(vv::select(w, 0, 0), {{1, 0}, {2, -1}, {3, -2}, {4, -3}}) == "");
    vv::copy_(vv::select(w, 0, 2), vv::ones({4}));
    CHECK(apart(vv::select(w, 0, 2), {1, 1, 1, 1}) == "");
    vv::zero_(w);
    CHECK(apart(vv::sum(w), {0}) == "");
    CHECK(w.dtype() == t);
  }
  CHECK_THROWS_AS(vv::add_(vv::ones({2}), row({1, 2})), vv::dtype_error);
  CHECK_THROWS_AS(vv::sub_(row({1, 2}), vv::ones({3})), vv::shape_error);
}
TEST_CASE("complex: arithmetic, with real numbers too", "[op][complex]") {
  tensor const a = row(some), b = row({{0.5, 1}, {2, -1}, {-1, 0.25}, {0, 3}});
  auto const two = [&](auto const& g) {
    std::vector<C> r;
    for (std::size_t k = 0; k < some.size(); ++k) r.push_back(g(some[k], numbers_of(b)[k]));
    return r;
  };
  CHECK(apart(vv::add(a, b), two([](C x, C y) { return x + y; })) == "");
  CHECK(apart(vv::sub(a, b), two([](C x, C y) { return x - y; })) == "");
  CHECK(apart(vv::mul(a, b), two([](C x, C y) { return x * y; })) == "");
  CHECK(apart(vv::div(a, b), two([](C x, C y) { return x / y; })) == "");
  CHECK(apart(vv::pow(a, b), two([](C x, C y) { return std::pow(x, y); }), 1e-13) == "");
  CHECK(apart(a * 2.0 + 1, each(some, [](C x) { return x * 2.0 + 1.0; })) == "");
  CHECK(apart(1 / a, each(some, [](C x) { return 1.0 / x; })) == "");
  CHECK(apart(3 - a, each(some, [](C x) { return 3.0 - x; })) == "");
  CHECK(apart(vv::pow(a, 2), each(some, [](C x) { return x * x; }), 0) == "");
  CHECK(apart(vv::pow(a, -2), each(some, [](C x) { return 1.0 / (x * x); })) == "");
  CHECK(apart(vv::pow(row({{0, 0}, {0, 0}}), row({{0, 0}, {2.5, 1}})), {1, 0}) == "");
  CHECK(apart(vv::mul(a, vv::complex_scalar(C(0, 1))), each(some, [](C x) { return x * C(0, 1); })) == "");
  tensor const real = vector_of({1, -2, 0.5, 4});
  auto const factor = [&](C x) { // that stands beside it
    for (std::size_t k = 0; k < some.size(); ++k)
      if (some[k] == x) return element(real, static_cast<index_t>(k));
    return 0.0;
  };
  CHECK(apart(vv::mul(real, a), two([&](C x, C) { return x * factor(x); })) == "");
  CHECK(apart(vv::div(real, a), two([&](C x, C) { return factor(x) / x; })) == "");
  CHECK(apart(vv::div(a, real), two([&](C x, C) { return x / factor(x); })) == "");
  tensor const single = vv::to(a, dtype::complex64);
  CHECK(vv::mul(single, real).dtype() == dtype::complex128);
  CHECK(vv::mul(single, 2.0).dtype() == dtype::complex64);
  CHECK(vv::add(single, vv::ones({4}, dtype::int64)).dtype() == dtype::complex64);
  CHECK(vv::mul(vv::ones({4}), vv::complex_scalar(C(0, 1))).dtype() == dtype::complex64);
  CHECK(vv::add(vv::reshape(a, dims{4, 1}), b).sizes() == dims{4, 4});
  CHECK(apart(vv::neg(a), each(some, [](C x) { return -x; })) == "");
  CHECK(apart(vv::dot(a, b), {some[0] * C(0.5, 1) + some[1] * C(2, -1) + some[2] * C(-1, 0.25) + some[3] * C(0, 3)}) ==
        "");
  CHECK(apart(vv::sum(a), {some[0] + some[1] + some[2] + some[3]}) == "");
  CHECK(apart(vv::mean(a), {(some[0] + some[1] + some[2] + some[3]) / 4.0}) == "");
  CHECK(apart(vv::prod(a), {some[0] * some[1] * some[2] * some[3]}) == "");
  CHECK(difference(vv::abs(a), vector_of({std::abs(some[0]), std::abs(some[1]), std::abs(some[2]), std::abs(some[3])}),
                   1e-15) == "");
  CHECK(difference(vv::eq(a, row({{1, 2}, {-0.5, 1}, {3, -1}, {0, -1.5}})), from({1, 0, 1, 0}, {4}, dtype::bool_)) ==
        "");
  CHECK(difference(vv::ne(a, vv::real(a)), from({1, 1, 1, 1}, {4}, dtype::bool_)) == "");
  CHECK(apart(vv::where(vv::gt(vv::real(a), 0), a, 0), {some[0], 0, some[2], 0}) == "");
  std::vector<C> m, product(6);
  for (int k = 0; k < 12; ++k) m.emplace_back(k % 5 - 2, k % 3);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) product[static_cast<std::size_t>(i * 3 + j)] += m[i * 2 + k] * m[4 + k * 3 + j];
  tensor const left = of({m.begin(), m.begin() + 4}, {2, 2}), right = of({m.begin() + 4, m.begin() + 10}, {2, 3});
  CHECK(apart(vv::matmul(left, right), product) == "");
  CHECK_THROWS_AS(vv::matmul(left, vv::real(right)), vv::dtype_error);
}
TEST_CASE("complex: elementary functions are those of C", "[op][complex]") {
  std::vector<C> points = some;
  for (C const z : {C(0.3, 0), C(-2.5, 0.0), C(-2.5, -0.0), C(0, 1.5), C(0, -0.5), C(1e-9, 2e-9), C(20, 1), C(-30, 2)})
    points.push_back(z);
  tensor const z = row(points);
  auto const agrees = [&](char const* what, tensor const& mine, C (*f)(C const&)) {
    INFO(what);
    CHECK(apart(mine, each(points, [&](C v) { return f(v); }), 1e-13) == "");
  };
  agrees("exp", vv::exp(z), [](C const& v) { return std::exp(v); });
  agrees("log", vv::log(z), [](C const& v) { return std::log(v); });
  agrees("sqrt", vv::sqrt(z), [](C const& v) { return std::sqrt(v); });
  agrees("rsqrt", vv::rsqrt(z), [](C const& v) { return 1.0 / std::sqrt(v); });
  agrees("reciprocal", vv::reciprocal(z), [](C const& v) { return 1.0 / v; });
  agrees("sin", vv::sin(z), [](C const& v) { return std::sin(v); });
  agrees("cos", vv::cos(z), [](C const& v) { return std::cos(v); });
  agrees("tan", vv::tan(z), [](C const& v) { return std::tan(v); });
  agrees("asin", vv::asin(z), [](C const& v) { return std::asin(v); });
  agrees("acos", vv::acos(z), [](C const& v) { return std::acos(v); });
  agrees("atan", vv::atan(z), [](C const& v) { return std::atan(v); });
  agrees("sinh", vv::sinh(z), [](C const& v) { return std::sinh(v); });
  agrees("cosh", vv::cosh(z), [](C const& v) { return std::cosh(v); });
  agrees("tanh", vv::tanh(z), [](C const& v) { return std::tanh(v); });
  agrees("asinh", vv::asinh(z), [](C const& v) { return std::asinh(v); });
  agrees("atanh", vv::atanh(z), [](C const& v) { return std::atanh(v); });
  agrees("sigmoid", vv::sigmoid(z), [](C const& v) { return 1.0 / (1.0 + std::exp(-v)); });
  agrees("log2", vv::log2(z), [](C const& v) { return std::log(v) / std::log(2.0); });
  agrees("exp2", vv::exp2(z), [](C const& v) { return std::exp(v * std::log(2.0)); });
  agrees("expm1", vv::expm1(z), [](C const& v) { return std::exp(v) - 1.0; });
  agrees("log1p", vv::log1p(z), [](C const& v) { return std::log(1.0 + v); });
  CHECK(numbers_of(vv::expm1(row({{1e-12, 2e-9}})))[0].real() == Approx(1e-12 - 2e-18).epsilon(1e-12));
  CHECK(numbers_of(vv::log1p(row({{1e-12, 2e-9}})))[0].real() == Approx(1e-12 + 2e-18).epsilon(1e-12));
}
TEST_CASE("complex: gradients are dL/dx + i dL/dy, and fit to tangents and differences", "[op][complex]") {
  tensor const z = row(some);
  auto const size = [](auto const& v) { return vv::sum(vv::square(vv::abs(v))); };
  CHECK(apart(vv::grad(size)(z), each(some, [](C v) { return 2.0 * v; })) == "");
  CHECK(apart(vv::grad([](auto const& v) { return vv::sum(vv::real(v)); })(z), {1, 1, 1, 1}) == "");
  CHECK(apart(vv::grad([](auto const& v) { return vv::sum(vv::imag(v)); })(z), each(some, [](C) { return C(0, 1); })) ==
        "");
  CHECK(apart(vv::grad([](auto const& v) { return vv::sum(vv::real(vv::conj(v) * v)); })(z),
              each(some, [](C v) { return 2.0 * v; })) == "");
  CHECK(apart(vv::grad([](auto const& v) { return vv::sum(vv::abs(v)); })(row({{3, 4}, {0, 0}})), {{0.6, 0.8}, 0}) ==
        "");
  // a real operand of a complex function gets a real gradient: the real part
  tensor const x = vector_of({1, 2, 3, 4});
  tensor const gx = vv::grad([&](auto const& v) { return vv::sum(vv::real(vv::mul(v, z))); })(x);
  CHECK(difference(gx, vv::real(z)) == "");
  CHECK_THROWS_AS(vv::grad([](auto const& v) { return vv::sum(v); })(z), vv::dtype_error);

  // eager autograd
  tensor const leaf = vv::clone(z);
  leaf.requires_grad_();
  tensor const l = vv::sum(vv::real(vv::exp(leaf * leaf)));
  l.backward();
  tensor const right = vv::grad([](auto const& v) { return vv::sum(vv::real(vv::exp(v * v))); })(z);
  CHECK(apart(leaf.grad(), numbers_of(right), 1e-15) == "");
  CHECK_THROWS_AS(vv::sum(leaf).backward(), vv::autograd_error);
  vv::sum(leaf).backward(row({{0, 1}}).reshape(dims{}));
  CHECK(apart(vv::sub(leaf.grad(), right), each(some, [](C) { return C(0, 1); }), 1e-13) == "");
  // written in place, and what may not be written through
  tensor const again = vv::clone(z);
  again.requires_grad_();
  tensor const y = vv::clone(again);
  vv::mul_(y, vv::complex_scalar(C(0, 2)));
  vv::sum(vv::imag(y)).backward();
  CHECK(apart(again.grad(), {2, 2, 2, 2}) == "");
  tensor const plain = vv::clone(z);
  CHECK_THROWS_AS(vv::mul_(vv::view_as_real(plain), vv::to(vv::real(again), dtype::float64).reshape({4, 1})),
                  vv::autograd_error);
  // in transforms too, where the view is a copy
  auto const through = [](auto const& v) {
    auto const w = vv::clone(v);
    vv::mul_(vv::view_as_real(w), 3);
    return vv::sum(vv::abs(w));
  };
  CHECK_THROWS_AS(vv::grad(through)(z), vv::transform_error);
  CHECK_THROWS_AS(vv::jvp(through, std::tuple(z), std::tuple(z)), vv::transform_error);
  CHECK_THROWS_AS(vv::vmap(through)(z), vv::transform_error);
  CHECK_THROWS_AS(vv::functionalize(through)(z), vv::transform_error);
  CHECK_THROWS_AS(vv::make_fx(through)(z), vv::value_error);
  CHECK(apart(vv::grad([](auto const& v) { return vv::sum(vv::square(vv::view_as_real(vv::clone(v)))); })(z),
              each(some, [](C v) { return 2.0 * v; })) == "");
  // second derivatives: of |z|^4 along d
  auto const slope = [&](auto const& v) {
    return vv::sum(vv::real(vv::conj(vv::grad([&](auto const& u) { return vv::square(size(u)); })(v)) * v));
  };
  CHECK(apart(vv::grad(slope)(z), each(some, [&](C v) { return 16.0 * size(z).item() * v; }), 1e-13) == "");
}
TEST_CASE("complex: results that no gradient reads may be written into", "[op][complex][in_place]") {
  tensor const z = row({{0.5, 1}, {-0.5, 0.25}}), by = row({{2, -1}, {1, 1}});
  auto const same = [&](auto const& f) {
    auto const twice = [&](auto const& v) {
      auto const y = f(v);
      vv::mul_(y, 2.0);
      return vv::sum(vv::is_complex(y.dtype()) ? tensor(vv::real(y * by)) : tensor(y));
    };
    auto const apart_from_it = [&](auto const& v) {
      tensor const y = f(v) * 2.0;
      return vv::sum(vv::is_complex(y.dtype()) ? tensor(vv::real(y * by)) : y);
    };
    tensor const x = vv::clone(z);
    x.requires_grad_();
    auto const right = numbers_of(vv::grad(apart_from_it)(z));
    twice(x).backward();
    CHECK(apart(x.grad(), right) == "");
    CHECK(apart(vv::grad(twice)(z), right) == "");
  };
  same([&](auto const& v) { return v * by; });
  same([&](auto const& v) { return by * v * v; });
  same([&](auto const& v) { return v / by; });
  same([&](auto const& v) { return by / v; });
  same([&](auto const& v) { return vv::pow(v, by); });
  same([](auto const& v) { return vv::sin(v); });
  same([](auto const& v) { return vv::log(v); });
  same([](auto const& v) { return vv::abs(v); });
  tensor const x = vv::clone(z);
  x.requires_grad_();
  tensor const y = vv::exp(x);
  vv::mul_(y, 2.0);
  CHECK_THROWS_AS(vv::sum(vv::abs(y)).backward(), vv::autograd_error);
  tensor const factor = vv::clone(by), product = x * factor; // a factor whose gradient nobody asks for is kept
  vv::mul_(factor, 2.0);
  CHECK_THROWS_AS(vv::sum(vv::abs(product)).backward(), vv::autograd_error);
}
TEST_CASE("complex: Jacobians are of real functions of real values", "[op][complex][TR-S34]") {
  tensor const z = row(some), x = vector_of({1, 2});
  auto const itself = [](auto const& v) { return v; };
  auto const made = [](auto const& v) { return vv::complex(v, v); };
  CHECK_THROWS_AS(vv::jacrev(itself)(z), vv::dtype_error);
  CHECK_THROWS_AS(vv::jacfwd(itself)(z), vv::dtype_error);
  CHECK_THROWS_AS(vv::jacrev(made)(x), vv::dtype_error);
  CHECK_THROWS_AS(vv::jacfwd(made)(x), vv::dtype_error);
  CHECK(vv::this_thread_state.quiet());
}
TEST_CASE("complex: lanes, graphs and writes in functions", "[op][complex]") {
  tensor const z = of(some, {2, 2});
  auto const f = [](auto const& v) { return vv::sum(vv::real(vv::exp(v) * vv::conj(v)), 0); };
  tensor const lanes = vv::vmap(f)(z);
  CHECK(difference(vv::select(lanes, 0, 1), f(vv::select(z, 0, 1)), 1e-15) == "");
  tensor const gradients = vv::vmap(vv::grad(f))(z);
  CHECK(apart(vv::select(gradients, 0, 0), numbers_of(vv::grad(f)(vv::select(z, 0, 0))), 1e-15) == "");
  tensor const first = vv::select(z, 0, 0);
  auto const g = vv::make_fx(f)(first);
  CHECK(difference(vv::interpret(g, vv::boxed_args(vv::select(z, 0, 1)))[0], f(vv::select(z, 0, 1)), 1e-15) == "");
  CHECK_THROWS_AS(vv::fuse(g), vv::dtype_error);
  CHECK(difference(vv::compile(f)(first), f(first), 1e-15) == "");
  auto const writes = [](auto const& v) {
    auto const w = vv::clone(v);
    vv::mul_(w, w);
    return w;
  };
  CHECK(apart(vv::functionalize(writes)(first), numbers_of(vv::mul(first, first))) == "");
}
TEST_CASE("complex: what is not there is refused by name", "[op][complex]") {
  tensor const z = row(some);
  auto const refused = [](char const* name, auto const& f) {
    INFO(name);
    try {
      (void)f();
      FAIL("accepted");
    } catch (vv::dtype_error const& e) { CHECK(std::string(e.what()).find(name) != std::string::npos); }
    CHECK(vv::this_thread_state.quiet());
  };
  refused("lt", [&] { return vv::lt(z, z); });
  refused("ge", [&] { return vv::ge(z, 1); });
  refused("maximum", [&] { return vv::maximum(z, z); });
  refused("sign", [&] { return vv::sign(z); });
  refused("relu", [&] { return vv::relu(z); });
  refused("erf", [&] { return vv::erf(z); });
  refused("amax", [&] { return vv::amax(z); });
  refused("argmax", [&] { return vv::argmax(z); });
  refused("softmax", [&] { return vv::softmax(z, 0); });
  refused("layer_norm", [&] { return vv::layer_norm(z, dims{4}); });
  refused("var", [&] { return vv::var(z); });
  refused("clamp", [&] { return vv::clamp(z, 0, 1); });
  refused("logsumexp", [&] { return vv::logsumexp(z, 0); });
  refused("gelu", [&] { return vv::gelu(z); });
  refused("isnan", [&] { return vv::isnan(z); });
  refused("vector_norm", [&] { return vv::vector_norm(z); });
  refused("conv", [&] { return vv::conv1d(vv::reshape(z, dims{1, 1, 4}), vv::reshape(z, dims{1, 1, 4})); });
  CHECK_THROWS_AS(vv::gradcheck([](std::vector<tensor> const& v) { return vv::exp(v[0]); },
                                std::vector<tensor>{vv::clone(z).requires_grad_()}),
                  vv::error);
}
