// SPDX-License-Identifier: BSL-1.0
// Values and derivatives of composites at infinities, at the ends of their domains, and where formulas meet.
#include "../sample/value.hpp"

#include <varve/indexing.hpp>
#include <varve/linalg.hpp>
#include <varve/nn.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr double NaN = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
/// The derivative of the sum of f, of tensors and of numbers, which must agree.
template <class F>
std::vector<double> slopes(F const& f, std::vector<double> const& at) {
  auto const all = [&](auto const& x) { return vv::sum(f(x)); };
  std::vector<double> const r = elements(vv::grad(all)(tensor(at)));
  for (std::size_t k = 0; k < at.size(); ++k) {
    double const one = vv::grad(f)(at[k]);
    CHECK((one == r[k] || (one != one && r[k] != r[k])));
  }
  return r;
}
} // namespace

TEST_CASE("areas of hyperbolas beyond the greatest square and at their ends", "[composite][special]") {
  STATIC_REQUIRE(vv::asinh(inf) == inf);
  STATIC_REQUIRE(vv::asinh(-inf) == -inf);
  STATIC_REQUIRE(vv::acosh(inf) == inf);
  double const great = 1e300;
  CHECK(difference(vv::asinh(vector_of({great, -great, 2e10, 5e9})),
                   vector_of({std::asinh(great), -std::asinh(great), std::asinh(2e10), std::asinh(5e9)}), 1e-15) == "");
  CHECK(difference(vv::acosh(vector_of({great, 2e10, 5e9})),
                   vector_of({std::acosh(great), std::acosh(2e10), std::acosh(5e9)}), 1e-15) == "");
  CHECK(vv::acosh(from({3e38}, dims{1}, dtype::float32)).item() == Approx(std::acosh(3e38)));
  CHECK(vv::asinh(from({3e38}, dims{1}, dtype::float32)).item() == Approx(std::asinh(3e38)));
  CHECK(slopes([](auto const& x) { return vv::acosh(x); }, {1, 2e10})[0] == inf);
  CHECK(slopes([](auto const& x) { return vv::asinh(x); }, {0, -0.0, 2e10, inf}) == doubles({1, 1, 5e-11, 0}));
}
TEST_CASE("an infinite leg makes an infinite hypotenuse beside NaN too", "[composite]") {
  CHECK(vv::hypot(inf, NaN) == inf); // at run time: clang knows no constant that is computed from NaN
  CHECK(elements(vv::hypot(vector_of({NaN, -inf, 3}), vector_of({inf, NaN, 4}))) == doubles({inf, inf, 5}));
}
TEST_CASE("the entropy of nothing is steep", "[composite]") {
  CHECK(slopes([](auto const& x) { return vv::entr(x); }, {0, -0.0, 1}) == doubles({inf, inf, -1}));
}
TEST_CASE("losses that are squares near 0 are curved at 0", "[composite][nn]") {
  auto const huber = [](auto const& x) { return vv::huber_loss(x, 0.0, vv::reduction::none, 2.0); };
  auto const smooth = [](auto const& x) { return vv::smooth_l1_loss(x, 0.0, vv::reduction::none, 2.0); };
  auto const slope = [](auto const& f) { return [f](auto const& x) { return vv::grad(f)(x); }; };
  STATIC_REQUIRE(vv::grad(vv::grad([](auto x) { return vv::huber_loss(x, 0.0); }))(0.0) == 1);
  CHECK(slope(slope(huber))(0.0) == 1);
  CHECK(slope(slope(smooth))(0.0) == 0.5);
  CHECK(elements(vv::hessian([&](auto const& x) { return vv::sum(huber(x)); })(vector_of({0, 3}))) ==
        doubles({1, 0, 0, 0}));
}
TEST_CASE("the cross entropy of certain probabilities has the derivative of PyTorch", "[composite][nn]") {
  auto const of = [](auto const& x, auto const& y) {
    return vv::binary_cross_entropy(x, y, vv::none, vv::reduction::sum);
  };
  tensor const p = vector_of({0, 0, 1, 1, 1e-50, 0.25}), t = vector_of({0, 1, 0, 1, 1, 1});
  auto const [x, y] = vv::grad(of, vv::argnums<0, 1>)(p, t);
  CHECK(difference(x, vector_of({0, -1e12, 1e12, 0, -1e12, -4}), 1e-12) == "");
  CHECK(difference(y, vector_of({100, 100, -100, -100, 100, -std::log(1. / 3)}), 1e-12) == "");
  CHECK(vv::grad(of)(1.0, 1.0) == 0);
  CHECK(vv::grad(vv::grad(of))(0.25, 1.0) == 16);
}
TEST_CASE("classes exactly at the margin have no derivative", "[composite][nn]") {
  tensor const x = vector_of({1, 2, 0.5}), y = from({1}, dims{}, dtype::int64);
  auto const of = [&](auto const& v) { return vv::multi_margin_loss(v, y); };
  CHECK(difference(vv::grad(of)(x), vector_of({0, 0, 0}), 0) == "");
  auto const many = [&](auto const& v) {
    return vv::multilabel_margin_loss(v, from({1, -1, 0}, dims{3}, dtype::int64));
  };
  CHECK(difference(vv::grad(many)(x), vector_of({0, 0, 0}), 0) == "");
}
TEST_CASE("the product of vectors of integers keeps their dtype", "[composite]") {
  tensor const x = from({1, 2, 3}, dims{3}, dtype::int16);
  CHECK(vv::dot(x, x).dtype() == dtype::int16);
  CHECK(vv::dot(x, x).item() == 14);
  STATIC_REQUIRE(vv::dtype_of(vv::dot(vv::array<std::int32_t, 2>{1, 2}, vv::array<std::int32_t, 2>{3, 4})) ==
                 dtype::int32);
}
TEST_CASE("pools and images of other sizes read what lies in their windows alone", "[composite][nn]") {
  tensor const x = from({1, 2, inf, 4, NaN, 6, 7, 8, -9, 10}, dims{1, 1, 10});
  auto const finite = [&](auto const& f) {
    std::vector<double> r;
    for (double e : elements(f(x))) r.push_back(std::isfinite(e) ? e : 0);
    return r;
  };
  CHECK(finite([](auto const& v) { return vv::adaptive_avg_pool1d(v, vv::dims{5}); }) ==
        doubles({1.5, 0, 0, 7.5, 0.5}));
  CHECK(finite([](auto const& v) { return vv::adaptive_avg_pool1d(v, vv::dims{3}); }) == doubles({0, 0, 4}));
  CHECK(finite([](auto const& v) { return vv::interpolate(v, vv::dims{5}, vv::interpolation::area); }) ==
        doubles({1.5, 0, 0, 7.5, 0.5}));
  CHECK(finite([](auto const& v) { return vv::interpolate(v, vv::dims{5}, vv::interpolation::linear); }) ==
        doubles({1.5, 0, 0, 7.5, 0.5}));
  auto const cubic = finite([](auto const& v) { return vv::interpolate(v, vv::dims{5}, vv::interpolation::cubic); });
  CHECK(cubic[0] == 0);
  CHECK(cubic[4] != 0);
  auto const pooled = [](auto const& v) {
    return vv::sum(vv::slice(vv::adaptive_avg_pool1d(v, vv::dims{5}), 2, 3, 5));
  };
  CHECK(elements(vv::grad(pooled)(x)) == doubles({0, 0, 0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5}));
  auto const uneven = [](auto const& v) { return vv::sum(vv::adaptive_avg_pool1d(v, vv::dims{4})); };
  CHECK(
      difference(vv::grad(uneven)(x),
                 from({1. / 3, 1. / 3, 2. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 2. / 3, 1. / 3, 1. / 3}, dims{1, 1, 10}),
                 1e-15) == "");
}
TEST_CASE("compact images are rounded once", "[composite][nn]") {
  tensor const x = from({1, 1.0078125}, dims{1, 1, 1, 2}, dtype::bfloat16);
  tensor const single = vv::to(x, dtype::float32);
  for (auto how : {vv::interpolation::linear, vv::interpolation::cubic})
    CHECK(difference(vv::interpolate(x, vv::dims{3, 5}, how),
                     vv::to(vv::interpolate(single, vv::dims{3, 5}, how), dtype::bfloat16)) == "");
}
TEST_CASE("the derivatives of a product by index by two zeros know of each other", "[indexing]") {
  tensor const at = from({0, 0, 1}, dims{3}, dtype::int64);
  auto const of = [&](tensor const& x, tensor const& s) {
    return vv::sum(vv::scatter_reduce(x, vv::axis<0>, at, s, vv::index_reduction::prod));
  };
  for (auto const& [x, s] : {std::pair(doubles({0, 5}), doubles({0, 3, 7})), // x0 s0 s1 + x1 s2
                             std::pair(doubles({2, 0}), doubles({0, 4, 0}))}) {
    tensor const u(x), v(s);
    auto const by_source = [&](tensor const& y) {
      return vv::sum(vv::grad([&](tensor const& z) { return of(y, z); })(v));
    };
    auto const by_self = [&](tensor const& z) {
      return vv::sum(vv::grad([&](tensor const& y) { return of(y, z); })(u));
    };
    CHECK(elements(vv::grad(by_source)(u)) == std::vector<double>{s[0] + s[1], 1});
    CHECK(elements(vv::grad(by_self)(v)) == std::vector<double>{s[1], s[0], 1});
  }
  auto const twice = [&](tensor const& z) {
    return vv::sum(
        vv::mul(vv::grad([&](tensor const& y) { return of(tensor({2.0, 1.0}), y); })(z), tensor({1.0, 10.0, 0.0})));
  };
  CHECK(elements(vv::grad(twice)(tensor({0.0, 0.0, 1.0}))) == doubles({20, 2, 0}));
}
TEST_CASE("embeddings divide the gradients of rows by how often they were read", "[nn]") {
  tensor const w = from({1, 2, inf, 4, 5, 6}, dims{3, 2}), at = from({1, 0, 1, 1}, dims{4}, dtype::int64);
  auto const sums = [&](tensor const& v) { return vv::sum(vv::embedding(at, v, {}, {}, 2, true)); };
  CHECK(elements(vv::embedding(at, w, {}, {}, 2, true)) == elements(vv::embedding(at, w)));
  tensor const finite = vv::where(vv::isfinite(w), w, 3);
  CHECK(difference(vv::grad(sums)(finite), from({1, 1, 1, 1, 0, 0}, dims{3, 2}), 1e-15) == "");
  auto const bags = [&](tensor const& v) {
    return vv::sum(vv::embedding_bag(vv::reshape(at, dims{2, 2}), v, tensor(), vv::bag_rule::sum, tensor(), false, {},
                                     {}, 2, true));
  };
  CHECK(difference(vv::grad(bags)(finite), from({1, 1, 1, 1, 0, 0}, dims{3, 2}), 1e-15) == "");
}
TEST_CASE("places on the edges of an image have no derivative where they are limited to it", "[nn]") {
  tensor const x = from({1, 2, 4, 8}, dims{1, 1, 1, 4});
  auto const of = [&](vv::beyond_edges beyond) {
    return elements(vv::grad([&](tensor const& g) {
      return vv::sum(vv::grid_sample<2>(x, g, vv::sampling::linear, beyond, true));
    })(from({-1, 0, 1, 0, 0, 0, 2, 0}, dims{1, 1, 4, 2})));
  };
  CHECK(of(vv::beyond_edges::border) == doubles({0, 0, 0, 0, 3, 0, 0, 0}));
  CHECK(of(vv::beyond_edges::reflection) == doubles({0, 0, 0, 0, 3, 0, -3, 0}));
}
TEST_CASE("whole parts keep the sign of a zero whatever the registers", "[special]") {
  std::vector<double> const v{-0.0, -0.5, 0.5, -0.0, -1e-20, 1e-20, -0.9, 0.0, -0.25};
  auto const negative = [&](auto const& f, dtype t) {
    std::vector<bool> r;
    for (double e : elements(f(from(v, dims{9}, t)))) r.push_back(std::signbit(e));
    return r;
  };
  for (dtype t : {dtype::float32, dtype::float64}) {
    std::vector<bool> const of_v{true, true, false, true, true, false, true, false, true};
    CHECK(negative([](tensor const& x) { return vv::ceil(x); }, t) == of_v);
    CHECK(negative([](tensor const& x) { return vv::trunc(x); }, t) == of_v);
    CHECK(negative([](tensor const& x) { return vv::floor(x); }, t) == of_v);
  }
}
TEST_CASE("extrema beside NaN pass derivatives to both operands", "[op]") {
  auto const of = [](auto const& f) {
    auto const [x, y] = vv::grad([&](auto const& a, auto const& b) { return vv::sum(f(a, b)); },
                                 vv::argnums<0, 1>)(vector_of({NaN, 1, 2, 3}), vector_of({1, NaN, 2, 1}));
    std::vector<double> r = elements(x), s = elements(y);
    r.insert(r.end(), s.begin(), s.end());
    return r;
  };
  CHECK(of([](auto const& a, auto const& b) { return vv::maximum(a, b); }) == doubles({1, 1, 0.5, 1, 1, 1, 0.5, 0}));
  CHECK(of([](auto const& a, auto const& b) { return vv::minimum(a, b); }) == doubles({1, 1, 0.5, 0, 1, 1, 0.5, 1}));
}
TEST_CASE("prelu has a derivative by its slope beside an infinity", "[nn]") {
  auto const of = [](auto const& w) { return vv::sum(vv::prelu(vector_of({inf, -2, 3}), w)); };
  CHECK(elements(vv::grad(of)(vector_of({0.5}))) == doubles({-2}));
}
TEST_CASE("cholesky_inverse does not read what is above the diagonal", "[linalg]") {
  tensor const l = from({2, NaN, 1, 3}, dims{2, 2}), same = from({2, 0, 1, 3}, dims{2, 2});
  auto const of = [](tensor const& v) { return vv::cholesky_inverse(v); };
  CHECK(difference(of(l), of(same)) == "");
  auto const slope = [&](tensor const& v) { return vv::grad([&](tensor const& u) { return vv::sum(of(u)); })(v); };
  CHECK(difference(vv::tril(slope(l)), vv::tril(slope(same))) == "");
}
TEST_CASE("extrema by index of truth values without those that were there", "[indexing]") {
  tensor const x = from({0, 1, 1}, dims{3}, dtype::bool_), s = from({1, 0, 0}, dims{3}, dtype::bool_);
  tensor const at = from({0, 1, 1}, dims{3}, dtype::int64);
  auto const of = [&](vv::index_reduction how) {
    return elements(vv::scatter_reduce(x, vv::axis<0>, at, s, how, false));
  };
  CHECK(of(vv::index_reduction::amax) == doubles({1, 0, 1}));
  CHECK(of(vv::index_reduction::amin) == doubles({1, 0, 1}));
  tensor const i = from({3, 5}, dims{2}, dtype::int64), low = from({-7}, dims{1}, dtype::int64);
  CHECK(elements(vv::scatter_reduce(i, vv::axis<0>, vv::zeros({1}, dtype::int64), low, vv::index_reduction::amax,
                                    false)) == doubles({-7, 5}));
}
