// SPDX-License-Identifier: BSL-1.0
// Fourier transforms: against their definition, their inverses and laws; PyTorch's recorded cases are in test/opinfo.
#include "../sample/value.hpp"

#include <varve/fft.hpp>
#include <varve/varve.hpp>

#include <complex>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
namespace fft = varve::fft;
using C = std::complex<double>;
using wide = std::complex<long double>;

namespace {
tensor row(std::vector<C> const& v) { return tensor::from_data(v.data(), {static_cast<index_t>(v.size())}); }
std::vector<C> drawn(std::size_t n, numbers& draw) {
  std::vector<C> v;
  for (std::size_t k = 0; k < n; ++k) {
    double const re = draw() - 0.5, im = draw() - 0.5;
    v.emplace_back(re, im);
  }
  return v;
}
/// By the definition, in long double.
std::vector<wide> transform_of(std::vector<C> const& x, bool inverse = false) {
  std::size_t const n = x.size();
  std::vector<wide> y(n);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = 0; j < n; ++j) {
      long double const turn = 2 * 3.141592653589793238462643383279502884L * static_cast<long double>(j * k % n) /
                               static_cast<long double>(n);
      y[k] += wide(x[j].real(), x[j].imag()) * std::polar(1.0L, inverse ? turn : -turn);
    }
  return y;
}
double distance(std::vector<C> const& a, std::vector<wide> const& b) {
  long double e = 0, s = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    e += std::norm(wide(a[k].real(), a[k].imag()) - b[k]), s += std::norm(b[k]);
  return static_cast<double>(std::sqrt(e / s));
}
double distance(tensor const& a, tensor const& b) {
  std::vector<wide> right;
  for (C const z : b.to_vector<C>()) right.emplace_back(z.real(), z.imag());
  REQUIRE(a.sizes() == b.sizes());
  return distance(a.to_vector<C>(), right);
}
} // namespace

TEST_CASE("fft: the definition, for lengths with small and great prime factors", "[op][fft]") {
  numbers draw(1);
  for (std::size_t const n :
       {1,  2,  3,  4,  5,  6,  7,   8,   9,   10,  11,  12,  13,  15,  16,  17,  25,  30,  32,
        49, 60, 61, 64, 67, 97, 100, 121, 127, 128, 134, 143, 210, 243, 251, 256, 360, 509, 1009}) {
    INFO(n);
    auto const x = drawn(n, draw);
    tensor const z = row(x);
    CHECK(distance(fft::fft(z).to_vector<C>(), transform_of(x)) < 1e-15);
    CHECK(distance(fft::ifft(z, {}, -1, "forward").to_vector<C>(), transform_of(x, true)) < 1e-15);
    CHECK(distance(fft::ifft(fft::fft(z)), z) < 1e-15);
    CHECK(distance(fft::fft(vv::to(z, dtype::complex64)).to_vector<C>(), transform_of(x)) < 1e-7);
  }
  CHECK(fft::fft(vv::ones({3})).dtype() == dtype::complex64);
  CHECK(fft::fft(vv::ones({3}, dtype::int64)).dtype() == dtype::complex64);
  CHECK(fft::fft(vv::ones({3}, dtype::float64)).dtype() == dtype::complex128);
}
TEST_CASE("fft: real numbers, halves of spectra, norms, lengths", "[op][fft]") {
  numbers draw(2);
  for (index_t const n : {1, 2, 3, 4, 5, 8, 9, 30, 67}) {
    INFO(n);
    tensor const x = uniform({n}, draw);
    tensor const whole = fft::fft(x), half = fft::rfft(x);
    CHECK(half.sizes() == dims{n / 2 + 1});
    CHECK(distance(half, vv::slice(whole, 0, 0, n / 2 + 1)) < 1e-15);
    CHECK(difference(fft::irfft(half, n), x, 1e-14) == "");
    CHECK(difference(fft::hfft(fft::ihfft(x), n), x, 1e-14) == "");
    CHECK(distance(fft::ihfft(x), vv::div(vv::conj(half), static_cast<double>(n))) < 1e-14);
    for (char const* norm : {"backward", "ortho", "forward"}) {
      double const s = norm[0] == 'b' ? 1 : norm[0] == 'o' ? 1 / std::sqrt(n) : 1.0 / static_cast<double>(n);
      CHECK(distance(fft::fft(x, {}, -1, norm), vv::mul(whole, s)) < 1e-15);
      CHECK(distance(fft::rfft(x, {}, 0, norm), vv::mul(half, s)) < 1e-15);
      CHECK(difference(fft::irfft(fft::rfft(x, {}, 0, norm), n, 0, norm), x, 1e-14) == "");
      CHECK(difference(fft::hfft(fft::ihfft(x, {}, 0, norm), n, 0, norm), x, 1e-14) == "");
      CHECK(distance(fft::ifft(fft::fft(x, {}, 0, norm), {}, 0, norm), vv::to(x, dtype::complex128)) < 1e-14);
    }
  }
  tensor const x = uniform({6}, draw);
  CHECK(distance(fft::fft(x, 4), fft::fft(vv::slice(x, 0, 0, 4))) == 0);
  CHECK(distance(fft::fft(x, 9), fft::fft(vv::cat(std::vector<tensor>{x, vv::zeros({3}, dtype::float64)}, 0))) == 0);
  CHECK(fft::irfft(fft::rfft(x)).sizes() == dims{6});
  CHECK(fft::irfft(fft::rfft(x), 3).sizes() == dims{3});
  // imaginary parts that real numbers cannot have count for nothing
  tensor const odd = row({{1, 5}, {2, 3}, {-1, 7}}), even = row({{1, 0}, {2, 3}, {-1, 0}});
  CHECK(difference(fft::irfft(odd), fft::irfft(even), 1e-15) == "");
}
TEST_CASE("fft: several axes, in any layout", "[op][fft]") {
  numbers draw(3);
  tensor const re = uniform({3, 4, 5}, draw), z = vv::complex(re, uniform({3, 4, 5}, draw));
  tensor const two = fft::fft(fft::fft(z, {}, -1), {}, -2);
  CHECK(distance(fft::fft2(z), two) < 1e-15);
  CHECK(distance(fft::fftn(z, {}, dims{1, 2}), two) < 1e-15);
  CHECK(distance(fft::fftn(z), fft::fft(two, {}, 0)) < 1e-15);
  CHECK(distance(fft::ifftn(fft::fftn(z)), z) < 1e-15);
  CHECK(distance(fft::ifft2(fft::fft2(z, {}, dims{0, 2}), {}, dims{0, 2}), z) < 1e-15);
  CHECK(distance(fft::rfftn(re), vv::slice(fft::fftn(re), 2, 0, 3)) < 1e-15);
  CHECK(distance(fft::rfft2(re), vv::slice(fft::fft2(re), 2, 0, 3)) < 1e-15);
  CHECK(difference(fft::irfftn(fft::rfftn(re), dims{3, 4, 5}), re, 1e-14) == "");
  CHECK(difference(fft::irfft2(fft::rfft2(re), dims{4, 5}), re, 1e-14) == "");
  CHECK(difference(fft::hfftn(fft::ihfftn(re), dims{3, 4, 5}), re, 1e-14) == "");
  CHECK(difference(fft::hfft2(fft::ihfft2(re), dims{4, 5}), re, 1e-14) == "");
  CHECK(fft::fftn(z, dims{2, 6}).sizes() == dims{3, 2, 6});
  tensor const turned = vv::permute(z, dims{2, 0, 1});
  CHECK(distance(fft::fft(turned, {}, 0), vv::permute(fft::fft(z, {}, 2), dims{2, 0, 1})) == 0);
  CHECK(distance(fft::fft(vv::slice(z, 1, 0, 4, 2)), vv::slice(fft::fft(z), 1, 0, 4, 2)) == 0);
  CHECK(fft::fft(vv::zeros({0, 3})).sizes() == dims{0, 3});
}
TEST_CASE("fft: frequencies and shifts", "[op][fft]") {
  CHECK(difference(fft::fftfreq(5, 0.5, dtype::float64), vector_of({0, 0.4, 0.8, -0.8, -0.4}), 1e-15) == "");
  CHECK(difference(fft::fftfreq(4), from({0, 0.25, -0.5, -0.25}, {4}, dtype::float32), 1e-7) == "");
  CHECK(difference(fft::rfftfreq(4), from({0, 0.25, 0.5}, {3}, dtype::float32), 1e-7) == "");
  CHECK(difference(fft::rfftfreq(5, 2, dtype::float64), vector_of({0, 0.1, 0.2}), 1e-15) == "");
  CHECK(difference(fft::fftshift(vector_of({0, 1, 2, -2, -1})), vector_of({-2, -1, 0, 1, 2})) == "");
  CHECK(difference(fft::ifftshift(vector_of({-2, -1, 0, 1, 2})), vector_of({0, 1, 2, -2, -1})) == "");
  tensor const m = from({0, 1, 2, 3, 4, 5}, {2, 3});
  CHECK(difference(fft::fftshift(m), from({5, 3, 4, 2, 0, 1}, {2, 3})) == "");
  CHECK(difference(fft::fftshift(m, dims{1}), from({2, 0, 1, 5, 3, 4}, {2, 3})) == "");
  CHECK(difference(fft::ifftshift(fft::fftshift(m)), m) == "");
}
TEST_CASE("fft: derivatives, lanes and graphs", "[op][fft]") {
  numbers draw(4);
  tensor const x = uniform({6}, draw), d = uniform({6}, draw);
  auto const filtered = [](auto const& v) { // a circular convolution, through the spectrum
    auto const s = fft::rfft(v);
    return fft::irfft(s * vv::complex(vv::real(s), vv::imag(s) * 0.5), 6);
  };
  auto const loss = [&](auto const& v) { return vv::sum(vv::square(filtered(v))); };
  tensor const g = vv::grad(loss)(x);
  double const h = 1e-6;
  double const slope =
      (loss(axpy(x, h, d)).template item<double>() - loss(axpy(x, -h, d)).template item<double>()) / (2 * h);
  CHECK(inner(g, d) == Approx(slope).epsilon(1e-6));
  tensor const dy = vv::jvp(filtered, std::tuple(x), std::tuple(d)).second, w = uniform({6}, draw);
  CHECK(inner(w, dy) == Approx(inner(std::get<0>(vv::vjp(filtered, x).second(w)), d)).epsilon(1e-12));
  tensor const many = uniform({3, 6}, draw);
  for (int l = 0; l < 3; ++l)
    CHECK(difference(vv::select(vv::vmap(filtered)(many), 0, l), filtered(vv::select(many, 0, l)), 1e-14) == "");
  CHECK(difference(vv::select(vv::vmap(vv::grad(loss))(many), 0, 2), vv::grad(loss)(vv::select(many, 0, 2)), 1e-13) ==
        "");
  tensor const jac = vv::jacrev(filtered)(x);
  CHECK(difference(jac, vv::jacfwd(filtered)(x), 1e-12) == "");
  auto const traced = vv::make_fx(loss)(x);
  CHECK(difference(vv::interpret(traced, vv::boxed_args(d))[0], loss(d), 1e-14) == "");
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  loss(leaf).backward();
  CHECK(difference(leaf.grad(), g, 1e-13) == "");
  // Parseval's gradient: of |F x|^2 / n it is 2 x
  CHECK(
      difference(vv::grad([](auto const& v) { return vv::sum(vv::square(vv::abs(fft::fft(v, {}, -1, "ortho")))); })(x),
                 vv::mul(x, 2.0), 1e-14) == "");
}
TEST_CASE("fft: errors say what is wrong", "[op][fft]") {
  tensor const x = vv::ones({4, 3}), z = fft::fft(x);
  CHECK_THROWS_AS(fft::fft(vv::ones({})), vv::index_error);
  CHECK_THROWS_AS(fft::fft(x, {}, 2), vv::index_error);
  CHECK_THROWS_AS(fft::fft(x, 0), vv::value_error);
  CHECK_THROWS_AS(fft::fft(vv::ones({0})), vv::value_error);
  CHECK_THROWS_AS(fft::fft(x, {}, 0, "both"), vv::value_error);
  CHECK_THROWS_AS(fft::fftn(x, {}, dims{0, -2}), vv::value_error);
  CHECK_THROWS_AS(fft::fftn(x, dims{1, 2, 3}), vv::value_error);
  CHECK_THROWS_AS(fft::fftn(x, dims{1}, dims{0, 1}), vv::value_error);
  CHECK_THROWS_AS(fft::rfft(z), vv::dtype_error);
  CHECK_THROWS_AS(fft::ihfft(z), vv::dtype_error);
  CHECK_THROWS_AS(fft::rfftn(z), vv::dtype_error);
  CHECK_THROWS_AS(fft::irfft(vv::ones({1})), vv::value_error);
  CHECK_THROWS_AS(fft::fft(vv::ones({2}, dtype::float16)), vv::dtype_error);
  CHECK_THROWS_AS(fft::fftfreq(0), vv::value_error);
  CHECK_THROWS_AS(fft::fftfreq(3, 1, dtype::int64), vv::dtype_error);
}
