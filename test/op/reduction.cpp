// SPDX-License-Identifier: BSL-1.0
#include "op_test.hpp"

#include <varve/op/all.hpp>

#include <limits>
#include <varve_test.hpp>

using namespace op_test;

namespace {
constexpr dtype all_types[] = {dtype::bool_, dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64};

/// Folds the elements along axes with a plain loop.
template <class F>
tensor folded(tensor const& x, dims const& axes, bool keep, dtype type, F const& f) {
  dims kept = x.sizes();
  for (int k = 0; k < x.dim(); ++k)
    for (index_t a : axes)
      if (vv::wrap_axis(a, x.dim()) == k || axes.empty()) kept[k] = 1;
  if (axes.empty())
    for (int k = 0; k < kept.n; ++k) kept[k] = 1;
  tensor r = blank(kept, type);
  std::vector<std::vector<double>> parts(static_cast<std::size_t>(r.numel()));
  for (index_t p = 0; p < x.numel(); ++p) {
    index_t rest = p, at = 0, step = 1;
    for (int k = x.dim() - 1; k >= 0; --k) {
      if (kept[k] != 1) at += rest % x.sizes()[k] * step;
      rest /= x.sizes()[k];
      step *= kept[k];
    }
    parts[static_cast<std::size_t>(at)].push_back(element(x, p));
  }
  for (index_t k = 0; k < r.numel(); ++k) set(r, k, f(parts[static_cast<std::size_t>(k)]));
  dims final;
  for (int k = 0; k < kept.n; ++k) {
    bool reduced = axes.empty();
    for (index_t a : axes) reduced = reduced || vv::wrap_axis(a, x.dim()) == k;
    if (!reduced || keep) final.push_back(kept[k]);
  }
  return from(elements(r), final, type);
}
double total(std::vector<double> const& v) {
  double s = 0;
  for (double e : v) s += e;
  return s;
}
double greatest(std::vector<double> const& v) {
  double m = v[0];
  for (double e : v) m = e > m ? e : m;
  return m;
}
double first_greatest(std::vector<double> const& v) {
  std::size_t m = 0;
  for (std::size_t k = 0; k < v.size(); ++k)
    if (v[k] > v[m]) m = k;
  return static_cast<double>(m);
}
} // namespace

TEST_CASE("reductions: any dtype, shape, layout and axes agree with a plain loop", "[op][sum]") {
  struct sample_of {
    dims shape;
    std::vector<dims> axes;
  };
  std::vector<sample_of> const samples{{{}, {{}, {0}, {-1}}},
                                       {{7}, {{}, {0}, {-1}}},
                                       {{0}, {{}, {0}}},
                                       {{2, 3}, {{}, {0}, {1}, {-2}, {1, 0}}},
                                       {{3, 0, 2}, {{1}, {0, 2}, {-1}}},
                                       {{2, 3, 5}, {{0}, {1}, {2}, {0, 2}, {-1, 0}, {1, 2}, {0, 1, 2}}},
                                       {{40, 3}, {{0}, {1}, {}}},
                                       {{2, 1, 3, 2}, {{1}, {3, 1}}}};
  std::uint64_t seed = 1;
  for (auto t : all_types)
    for (auto const& s : samples)
      for (auto const& a : s.axes)
        for (int keep = 0; keep < 2; ++keep) {
          numbers draw(++seed);
          tensor const x = uniform(s.shape, draw, 0, 5, t, static_cast<memory>(seed % 3));
          INFO(vv::name(t) << vv::to_string(s.shape) << " axes " << vv::to_string(a) << " keepdim " << keep);
          double const tol = t == dtype::float32 ? 1e-5 : 1e-12;
          CHECK(difference(vv::sum(x, a, keep), folded(x, a, keep, vv::is_floating(t) ? t : dtype::int64, total),
                           tol) == "");
          bool nothing = x.numel() == 0;
          for (index_t k : a) nothing = nothing && (s.shape.n == 0 || s.shape[vv::wrap_axis(k, s.shape.n)] != 0);
          bool const has_elements = x.numel() > 0 || (nothing && !a.empty());
          if (has_elements) {
            CHECK(difference(vv::amax(x, a, keep), folded(x, a, keep, t, greatest)) == "");
            if (vv::is_floating(t))
              CHECK(difference(vv::amin(x, a, keep), vv::neg(folded(vv::neg(x), a, keep, t, greatest))) == "");
            if (a.n == 1)
              CHECK(difference(vv::argmax(x, a, keep), folded(x, a, keep, dtype::int64, first_greatest)) == "");
          } else {
            CHECK_THROWS_AS(vv::amax(x, a, keep), vv::value_error);
          }
          if (vv::is_floating(t))
            CHECK(difference(
                      vv::mean(x, a, keep),
                      folded(x, a, keep, t, [](auto const& v) { return total(v) / static_cast<double>(v.size()); }),
                      tol) == "");
          else CHECK_THROWS_AS(vv::mean(x, a, keep), vv::dtype_error);
        }
}

TEST_CASE("reductions: NaN wins an extremum, and is the position of the greatest", "[op][amax]") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  for (auto t : {dtype::float32, dtype::float64}) {
    tensor const x = from({1, nan, 3, 4, 5, 2}, {2, 3}, t);
    CHECK(difference(vv::amax(x, 1), from({nan, 5}, {2}, t)) == "");
    CHECK(difference(vv::amin(x, 1), from({nan, 2}, {2}, t)) == "");
    CHECK(difference(vv::argmax(x, 1), from({1, 1}, {2}, dtype::int64)) == "");
  }
  CHECK(vv::argmax(from({3, 5, 5, 1}, {4})).item<int>() == 1); // the first of equals
}

TEST_CASE("reductions: wrong axes are refused", "[op][sum]") {
  numbers draw(1);
  tensor const x = uniform({2, 3}, draw);
  CHECK_THROWS_AS(vv::sum(x, 2), vv::index_error);
  CHECK_THROWS_AS(vv::sum(x, -3), vv::index_error);
  CHECK_THROWS_AS(vv::sum(x, dims{0, -2}), vv::value_error);
  CHECK_THROWS_WITH(vv::sum(x, 2), ContainsText("axis 2 is out of range for rank 2"));
  CHECK_THROWS_AS(vv::argmax(uniform({2, 0}, draw), 1), vv::value_error);
}

TEST_CASE("softmax: rows sum to one, far from zero as well", "[op][softmax]") {
  tensor const x = from({1000, 1001, -1000, 0, 0, 0}, {2, 3});
  CHECK(difference(vv::sum(vv::softmax(x, -1), -1), from({1, 1}, {2}), 1e-14) == "");
  CHECK(difference(vv::log(vv::softmax(from({1, 2, 3}, {3}), 0)), vv::log_softmax(from({1, 2, 3}, {3}), 0), 1e-14) ==
        "");
  CHECK(element(vv::log_softmax(x, -1), 2) == Approx(-2001.3132616875));
  CHECK(vv::softmax(from({}, {2, 0}), 1).sizes() == dims{2, 0});
}

TEST_CASE("logsumexp of integers does not wrap around", "[op][softmax]") {
  constexpr auto of_bytes = vv::logsumexp(vv::array<std::uint8_t, 3>{1, 2, 3}, vv::axis<0>);
  STATIC_REQUIRE(std::is_same_v<decltype(of_bytes), float const>);
  STATIC_REQUIRE((of_bytes > 3.4f && of_bytes < 3.41f));
  tensor const x = of<std::uint8_t>({1, 2, 3});
  for (dtype type : {dtype::uint8, dtype::int32, dtype::int64}) {
    auto const f = [](tensor const& v) { return vv::logsumexp(v, vv::axis<0>); };
    CHECK(std::abs(f(vv::to(x, type)).item<double>() - 3.407605964) < 1e-6);
    CHECK(std::abs(vv::compile(f)(vv::to(x, type)).item<double>() - 3.407605964) < 1e-6);
  }
  CHECK(std::abs(vv::logsumexp(x > 1, vv::axis<0>).item<double>() - 1.862) < 1e-3);
  CHECK(std::abs(vv::logsumexp(of<std::int32_t>({2147483647, -5}), vv::axis<0>).item<double>() - 2147483648.0) < 1);
}

TEST_CASE("sum_to_size sums integers and truth values to int64, also where nothing is summed", "[op][sum]") {
  tensor const x = of({1.0, 2.0, 3.0}), truth = x > 1.5;
  for (tensor const& t : {truth, vv::to(x, dtype::int32), vv::to(x, dtype::uint8)}) {
    CHECK(vv::sum_to_size(t, dims{3}).dtype() == dtype::int64);
    CHECK(vv::sum_to_size(t, dims{1}).dtype() == dtype::int64);
  }
  CHECK(elements(vv::sum_to_size(truth, dims{3})) == doubles({0, 1, 1}));
  CHECK(vv::sum_to_size(x, dims{3}).is(x));
  STATIC_REQUIRE(
      std::is_same_v<decltype(vv::sum_to_size(vv::array<bool, 3>{}, vv::shape<3>)), vv::array<vv::index_t, 3>>);
}
