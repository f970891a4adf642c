// SPDX-License-Identifier: BSL-1.0
// Fused functions whose specs have symbolic sizes, against the same functions on tensors.
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>
#include <vector>
namespace vv = varve;
using vv::array, vv::tensor, vv::tensor_ref, vv::index_t, vv::spec, vv::dim, vv::dims, vv::dtype;

namespace {
constexpr index_t n = dim<"n">, m = dim<"m">;
constexpr index_t lengths[] = {0, 1, 2, 7, 16, 33, 1000};

tensor waves(dims const& sizes, double phase, dtype t = dtype::float32) {
  tensor r = tensor::empty(sizes, t);
  for (index_t k = 0; k < r.numel(); ++k) {
    double const x = std::sin(phase + 1.3 * static_cast<double>(k));
    if (t == dtype::float32) r.data<float>()[k] = static_cast<float>(x);
    else r.data<double>()[k] = x;
  }
  return r;
}
/// "" when two tensors are the same but for rounding, otherwise what differs.
std::string difference(tensor const& a, tensor const& b, double tolerance = 2e-5) {
  if (a.dtype() != b.dtype()) return "dtypes";
  if (!(a.sizes() == b.sizes())) return vv::to_string(a.sizes()) + " and " + vv::to_string(b.sizes());
  tensor const x = vv::contiguous(vv::to(a, dtype::float64)), y = vv::contiguous(vv::to(b, dtype::float64));
  for (index_t k = 0; k < a.numel(); ++k) {
    double const p = x.data<double>()[k], q = y.data<double>()[k];
    if (!(std::abs(p - q) <= tolerance * (1 + std::abs(q))) && !(p != p && q != q))
      return "element " + std::to_string(k) + ": " + std::to_string(p) + " and " + std::to_string(q);
  }
  return "";
}

constexpr auto logistic = [](auto w, auto x, auto y) {
  auto z = vv::sum(x * w, vv::axis<1>);
  return vv::mean(vv::log(1.0 + vv::exp(z)) - y * z);
};
constexpr auto logistic_gradient = vv::grad(logistic);
constexpr auto fused_logistic = vv::fuse<spec<float, 10>, spec<float, n, 10>, spec<float, n>>(logistic_gradient);

constexpr auto normal = [](auto const& x) { return 0.5 * (1.0 + vv::erf(0.70710678118654752440 * x)); };
constexpr auto price = [](auto spot, auto strike, auto time, auto rate, auto volatility) {
  auto const spread = volatility * vv::sqrt(time);
  auto const d1 = (vv::log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread;
  return spot * normal(d1) - strike * vv::exp(-rate * time) * normal(d1 - spread);
};
constexpr auto greeks = vv::vmap(vv::value_and_grad<0, 2, 3, 4>(price), vv::in_dims<0, 0, 0, vv::none, 0>);

constexpr auto example_loss = [](auto w, auto x, auto y) {
  auto const p = vv::sigmoid(vv::dot(w, x));
  return -(y * vv::log(p) + (1 - y) * vv::log(1 - p));
};
constexpr auto per_example = vv::vmap(vv::grad(example_loss), vv::in_dims<vv::none, 0, 0>);

constexpr auto rows = [](auto x) { return vv::softmax(x, vv::axis<1>); };
constexpr auto columns = [](auto x) { return vv::softmax(x, vv::axis<0>); };
constexpr auto fused_columns = vv::fuse<spec<float, n, 10>>(columns);

/// An operator that calls a fused function, with scratch memory of its own, while another one runs.
struct calls_inside_t : vv::promoting_operator<calls_inside_t> {
  static constexpr auto op_name = "calls_inside";
};
constexpr calls_inside_t calls_inside{};
double call_inside(double x) {
  tensor const t = waves({static_cast<index_t>(20000 * (1 + x)), 10}, x);
  tensor const y = fused_columns(t);
  return x + std::abs(static_cast<double>(y.data<float>()[0]) - static_cast<double>(columns(t).data<float>()[0]));
}
} // namespace
template <>
struct vv::rules<calls_inside_t> : vv::rule::pointwise<1, vv::promotion::floating> {
  static auto kernel(auto x) {
    if constexpr (vv::kernel::is_batch<decltype(x)>)
      return vv::kernel::lanewise([](auto e) { return static_cast<decltype(e)>(call_inside(e)); }, x);
    else return static_cast<decltype(x)>(call_inside(x));
  }
};

TEST_CASE("fuse with symbolic sizes: the gradient of logistic regression over n rows", "[fuse][symbolic]") {
  for (index_t const k : lengths) {
    tensor const w = waves({10}, 1), x = waves({k, 10}, 2), y = waves({k}, 3);
    CHECK(difference(fused_logistic(w, x, y), logistic_gradient(w, x, y)) == "");
  }
}
TEST_CASE("fuse with symbolic sizes: Black-Scholes with greeks over n options", "[fuse][symbolic]") {
  constexpr auto f = vv::fuse<spec<double, n>, spec<double, n>, spec<double, n>, spec<double>, spec<double, n>>(greeks);
  for (index_t const k : lengths) {
    auto const like = [&](double phase, double middle, double width) {
      return middle + width * waves({k}, phase, dtype::float64);
    };
    tensor const spot = like(1, 100, 20), strike = like(2, 100, 30), time = like(3, 1.5, 1),
                 volatility = like(4, 0.3, 0.1), rate = vv::full({}, 0.03, dtype::float64);
    auto const [value, by_spot, by_time, by_rate, by_volatility] = f(spot, strike, time, 0.03, volatility);
    auto const [expected, slopes] = greeks(spot, strike, time, rate, volatility);
    CHECK(difference(value, expected, 1e-9) == "");
    CHECK(difference(by_spot, std::get<0>(slopes), 1e-9) == "");
    CHECK(difference(by_time, std::get<1>(slopes), 1e-9) == "");
    CHECK(difference(by_rate, std::get<2>(slopes), 1e-9) == "");
    CHECK(difference(by_volatility, std::get<3>(slopes), 1e-9) == "");
  }
}
TEST_CASE("fuse with symbolic sizes: softmax of n rows, along either axis", "[fuse][symbolic]") {
  constexpr auto f = vv::fuse<spec<float, n, 10>>(rows);
  for (index_t const k : lengths) {
    tensor const x = waves({k, 10}, 1);
    CHECK(difference(f(x), rows(x)) == "");
    if (k > 0) CHECK(difference(fused_columns(x), columns(x)) == "");
  }
}
TEST_CASE("fuse with symbolic sizes: gradients per example", "[fuse][symbolic]") {
  constexpr auto f = vv::fuse<spec<float, 10>, spec<float, n, 10>, spec<float, n>>(per_example);
  for (index_t const k : lengths) {
    tensor const w = waves({10}, 1), x = waves({k, 10}, 2), y = waves({k}, 3);
    CHECK(difference(f(w, x, y), per_example(w, x, y)) == "");
  }
}

TEST_CASE("fuse with symbolic sizes: a symbol is one size, which the message names", "[fuse][symbolic][errors]") {
  CHECK_THROWS_AS(fused_logistic(waves({10}, 1), waves({7, 10}, 1), waves({8}, 1)), vv::shape_error);
  CHECK_THROWS_WITH(fused_logistic(waves({10}, 1), waves({7, 10}, 1), waves({8}, 1)),
                    ContainsText("argument 2 is float32[8], expected float32[n], where n is 7 (argument 1)"));
  CHECK_THROWS_WITH(fused_logistic(waves({10}, 1), waves({7, 11}, 1), waves({7}, 1)),
                    ContainsText("argument 1 is float32[7, 11], expected float32[n, 10]"));
  CHECK_THROWS_WITH(fused_logistic(waves({10}, 1), waves({7, 10}, 1), waves({7, 1}, 1)),
                    ContainsText("argument 2 is float32[7, 1], expected float32[n]"));
  CHECK_THROWS_WITH(fused_logistic(waves({9}, 1), waves({7, 10}, 1), waves({7}, 1)),
                    ContainsText("argument 0 is float32[9], expected float32[10]"));
  CHECK_THROWS_AS(fused_logistic(waves({10}, 1), waves({7, 10}, 1, dtype::float64), waves({7}, 1)), vv::dtype_error);
  CHECK_THROWS_AS(fused_logistic(waves({10}, 1), tensor(), waves({7}, 1)), vv::value_error);
  tensor leaf = waves({10}, 1);
  leaf.requires_grad_();
  CHECK_THROWS_AS(fused_logistic(leaf, waves({7, 10}, 1), waves({7}, 1)), vv::autograd_error);
  constexpr auto square = vv::fuse<spec<float, n, n>>([](auto x) { return x + 1.0; });
  CHECK_THROWS_WITH(square(waves({3, 4}, 1)), ContainsText("argument 0 is float32[3, 4], expected float32[n, n]"));
  // 1 is a size like any other: nothing is broadcast along a symbol
  CHECK_THROWS_AS(fused_logistic(waves({10}, 1), waves({7, 10}, 1), waves({1}, 1)), vv::shape_error);
  CHECK_THROWS_AS(fused_logistic(waves({10}, 1), waves({1, 10}, 1), waves({7}, 1)), vv::shape_error);
}
TEST_CASE("fuse with symbolic sizes: slices of a symbolic axis lie inside", "[fuse][symbolic][errors]") {
  constexpr auto rosenbrock = [](auto x) {
    auto const a = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>), b = vv::slice(x, vv::axis<0>, vv::range<0, -1>);
    return vv::sum(100.0 * vv::square(a - b * b) + vv::square(1.0 - b));
  };
  constexpr auto f = vv::fuse<spec<double, n>>(vv::grad(rosenbrock));
  for (index_t const k : {2, 3, 7, 16, 33, 1000})
    CHECK(difference(f(waves({k}, 1, dtype::float64)), vv::grad(rosenbrock)(waves({k}, 1, dtype::float64)), 1e-9) ==
          "");
  CHECK_THROWS_AS(f(waves({1}, 1, dtype::float64)), vv::shape_error);
  constexpr auto three = [](auto x) { return vv::sin(vv::slice(x, vv::axis<0>, vv::range<2, 5>)); };
  constexpr auto g = vv::fuse<spec<float, n, 3>>(three);
  CHECK(difference(g(waves({5, 3}, 1)), three(waves({5, 3}, 1))) == "");
  CHECK_THROWS_WITH(g(waves({4, 3}, 1)), ContainsText("n - 5 >= 0; it is -1"));
  constexpr auto both_ends = vv::grad([](auto x) {
    return vv::sum(vv::sin(vv::slice(x, vv::axis<0>, vv::range<0, 3>))) +
           vv::sum(vv::exp(vv::slice(x, vv::axis<0>, vv::range<-3, vv::end>)));
  });
  constexpr auto h = vv::fuse<spec<float, n>>(both_ends);
  for (index_t const k : lengths) {
    std::string found;
    try {
      found = difference(h(waves({k}, 1)), both_ends(waves({k}, 1)));
    } catch (vv::shape_error const&) { found = k < 6 ? "" : "refused"; }
    CHECK(found == "");
  }
  constexpr auto rest = [](auto x) { return vv::mean(vv::slice(x, vv::axis<0>, vv::range<5, vv::end>), vv::axis<0>); };
  constexpr auto r = vv::fuse<spec<float, n, 3>>(rest);
  for (index_t const k : {6, 7, 33, 1000}) CHECK(difference(r(waves({k, 3}, 1)), rest(waves({k, 3}, 1))) == "");
  constexpr auto last_three =
      vv::fuse<spec<float, n>>([](auto x) { return vv::slice(x, vv::axis<0>, vv::range<-3, vv::end>) * 2.0; });
  CHECK(difference(last_three(waves({3}, 1)), waves({3}, 1) * 2.0) == "");
  CHECK_THROWS_WITH(last_three(waves({2}, 1)), ContainsText("n - 3 >= 0; it is -1"));
  constexpr auto last = vv::fuse<spec<float, n, 3>>([](auto x) { return vv::select(x, 0, -1); });
  CHECK_THROWS_AS(last(waves({0, 3}, 1)), vv::shape_error);
  constexpr auto greatest = vv::fuse<spec<float, n, 3>>([](auto x) { return vv::amax(x, vv::axis<0>); });
  CHECK_THROWS_AS(greatest(waves({0, 3}, 1)), vv::shape_error);
}

TEST_CASE("fuse with symbolic sizes: views, products and reductions of two symbols", "[fuse][symbolic]") {
  constexpr auto attention = [](auto q, auto k, auto v) {
    auto const weights = vv::softmax(0.3 * vv::mm(q, vv::transpose(k, 0, 1)), vv::axis<1>);
    return std::tuple(vv::mm(weights, v), vv::logsumexp(weights, vv::axis<1>), vv::mean(weights, vv::axis<0>));
  };
  constexpr auto f = vv::fuse<spec<float, n, 8>, spec<float, m, 8>, spec<float, m, 3>>(attention);
  constexpr auto outer = [](auto x, auto y) {
    return vv::unsqueeze(x, 1) * y + vv::transpose(vv::unsqueeze(vv::exp(y), 1) * x, 0, 1);
  };
  constexpr auto g = vv::fuse<spec<float, n>, spec<float, m>>(outer);
  constexpr auto flat = [](auto x) {
    return vv::reshape(vv::select(vv::slice(x, vv::axis<0>, vv::range<1, 3>), 2, 3), dims{-1}) * 2.0;
  };
  constexpr auto h = vv::fuse<spec<float, 4, n, 5, m>>(flat);
  constexpr auto joined = [](auto x, auto y) {
    return vv::cat(std::tuple{vv::unsqueeze(y, 1), x, vv::sin(x)}, vv::axis<1>);
  };
  constexpr auto c = vv::fuse<spec<float, n, 3>, spec<float, n>>(joined);
  for (index_t const k : lengths)
    for (index_t const l : {index_t{1}, index_t{5}, index_t{40}}) {
      tensor const q = waves({k, 8}, 1), key = waves({l, 8}, 2), v = waves({l, 3}, 3), x = waves({k}, 4),
                   y = waves({l}, 5);
      auto const [a, b, d] = f(q, key, v);
      auto const [p, r, s] = attention(q, key, v);
      CHECK(difference(a, p) == "");
      CHECK(difference(b, r) == "");
      CHECK(difference(d, s) == "");
      CHECK(difference(g(x, y), outer(x, y)) == "");
      if (k <= 33) CHECK(difference(h(waves({4, k, 5, l}, 6)), flat(waves({4, k, 5, l}, 6))) == "");
      CHECK(difference(c(waves({k, 3}, 7), x), joined(waves({k, 3}, 7), x)) == "");
    }
}
TEST_CASE("fuse with symbolic sizes: sizes are read from two samples, sums of two symbols among them",
          "[fuse][symbolic]") {
  using vv::fusion::samples;
  index_t const actual[] = {11, 13, 17, 19, 23, 29};
  auto evaluate = [&](vv::fusion::size_reader const& r, index_t size) { return r.table.view().evaluate(size, actual); };
  auto check = [&](auto const& size) { // one of the six symbols
    vv::fusion::size_reader r(6);
    index_t const read = r.read(size(samples[0]), size(samples[1]));
    return !r.failed && evaluate(r, read) == size(actual);
  };
  int wrong = 0;
  for (int s = 0; s < 6; ++s)
    for (int t = 0; t < 6; ++t)
      for (index_t const a : {-3, -1, 0, 1, 2, 100})
        for (index_t const b : {1, 2, 3, 10, 44, 100, 128, 1000})
          for (index_t const c : {1, 2, 5, 37, 44, 512}) {
            wrong += !check([&](index_t const* x) { return a + b * x[s] + c * x[t]; });
            wrong += !check([&](index_t const* x) { return (a + b * x[s]) * x[t] * c; });
            wrong += s != t && !check([&](index_t const* x) { return (x[s] + c * x[t]) * x[t] * b; });
            wrong += !check([&](index_t const* x) { return a * 500 + b * x[s]; });
          }
  CHECK(wrong == 0);
  int accepted = 0; // of what is no such expression
  for (index_t const b : {1, 2, 3, 4, 7, 8})
    for (index_t const c : {1, 2, 3, 4, 7, 8})
      for (index_t const d : {1, 2, 3, 4, 7, 8}) {
        vv::fusion::size_reader r(3);
        auto const size = [&](index_t const* x) { return b * x[0] + c * x[1] + d * x[2]; };
        r.read(size(samples[0]), size(samples[1]));
        accepted += !r.failed;
      }
  CHECK(accepted == 0);
}

TEST_CASE("fuse with symbolic sizes: two symbolic sizes joined along one axis", "[fuse][symbolic]") {
  constexpr auto whole = [](auto x, auto y) { return vv::cat(std::tuple{x, vv::sin(y)}, vv::axis<0>); };
  constexpr auto tails = [](auto x, auto y) {
    auto const t = vv::cat(std::tuple{vv::slice(x, 0, 1, std::numeric_limits<index_t>::max()), y}, vv::axis<0>);
    return std::tuple(vv::exp(t) * 0.5, vv::sum(t), vv::mean(t, vv::axis<0>));
  };
  constexpr auto gradient = vv::grad<0, 1>([](auto x, auto y) {
    auto const t = vv::cat(std::tuple{x, y}, vv::axis<0>);
    return vv::sum(vv::tanh(t) * t);
  });
  constexpr auto flat = [](auto x, auto y) {
    return vv::cat(std::tuple{x, vv::reshape(y, vv::shape<-1>)}, vv::axis<0>) * 2.0;
  };
  constexpr auto f = vv::fuse<spec<float, n>, spec<float, m>>(whole);
  constexpr auto g = vv::fuse<spec<float, n, 3>, spec<float, m, 3>>(tails);
  constexpr auto h = vv::fuse<spec<float, n, 3>, spec<float, m, 3>>(gradient);
  constexpr auto k = vv::fuse<spec<float, n>, spec<float, m, 44>>(flat);
  for (index_t const a : {index_t{1}, index_t{2}, index_t{7}, index_t{33}, index_t{1000}})
    for (index_t const b : {index_t{0}, index_t{1}, index_t{5}, index_t{40}}) {
      tensor const x = waves({a}, 1), y = waves({b}, 2), u = waves({a, 3}, 3), v = waves({b, 3}, 4),
                   w = waves({b, 44}, 5);
      CHECK(difference(f(x, y), whole(x, y)) == "");
      CHECK(difference(k(x, w), flat(x, w)) == "");
      auto const [p, q] = h(u, v);
      auto const [r, s] = gradient(u, v);
      CHECK(difference(p, r) == "");
      CHECK(difference(q, s) == "");
      auto const [c, d, e] = g(u, v);
      auto const [i, j, l] = tails(u, v);
      CHECK(difference(c, i) == "");
      CHECK(difference(d, j, 1e-4) == "");
      CHECK(difference(e, l) == "");
    }
}

TEST_CASE("fuse with symbolic sizes: counts of symbolic size, also of constants and integers", "[fuse][symbolic]") {
  constexpr auto bias = vv::grad([](auto b, auto x) { return vv::sum(b + x) + vv::mean(b * 3.0); });
  constexpr auto f = vv::fuse<spec<float, m>, spec<float, n, m>>(bias);
  constexpr auto positive = [](auto x) { return vv::sum(vv::to(vv::gt(x, 0.0), dtype::int64), vv::axis<0>); };
  constexpr auto g = vv::fuse<spec<float, n, m>>(positive);
  for (index_t const k : lengths) {
    tensor const b = waves({5}, 1), x = waves({k, 5}, 2);
    CHECK(difference(f(b, x), bias(b, x)) == "");
    CHECK(difference(g(x), positive(x)) == "");
  }
}

TEST_CASE("fuse with symbolic sizes: operators with loops of their own, branches and loops", "[fuse][symbolic]") {
  constexpr auto nll = vv::value_and_grad([](auto x, auto label) {
    return vv::mean(vv::neg(vv::gather(vv::log_softmax(x, vv::axis<1>), 1, vv::unsqueeze(label, 1))));
  });
  constexpr auto best = [](auto x) { return vv::argmax(x, 1); };
  constexpr auto half =
      vv::grad([](auto x) { return vv::sum(vv::sin(vv::slice(x, vv::axis<1>, vv::range<0, 6, 2>))); });
  constexpr auto recurrent = vv::value_and_grad([](auto u, auto x) {
    auto [last, all] = vv::scan(
        [](auto c, auto row) {
          auto h = vv::tanh(c + row);
          return std::pair{h, vv::softmax(h, vv::axis<0>)};
        },
        u, x);
    return vv::sum(last) + vv::sum(all * all);
  });
  constexpr auto branch = [](auto x) {
    return vv::cond(
        vv::gt(vv::sum(x), 0.0), [](auto y) { return vv::sin(y); }, [](auto y) { return vv::softmax(y, vv::axis<1>); },
        x);
  };
  constexpr auto norms = [](auto x) { return vv::map([](auto row) { return vv::sum(row * row); }, x); };
  constexpr auto f_nll = vv::fuse<spec<float, n, 3>, spec<std::int64_t, n>>(nll);
  constexpr auto f_best = vv::fuse<spec<float, n, m>>(best);
  constexpr auto f_half = vv::fuse<spec<float, n, 6>>(half);
  constexpr auto f_recurrent = vv::fuse<spec<float, m>, spec<float, n, m>>(recurrent);
  constexpr auto f_branch = vv::fuse<spec<float, n, m>>(branch);
  constexpr auto f_norms = vv::fuse<spec<float, n, m>>(norms);
  for (index_t const k : {1, 2, 7, 33})
    for (index_t const l : {1, 5, 40}) {
      tensor const x = waves({k, l}, 1), three = waves({k, 3}, 2), u = waves({l}, 3),
                   label = vv::argmax(waves({k, 3}, 4), 1);
      auto const [value, slope] = f_nll(three, label);
      auto const [expected, expected_slope] = nll(three, label);
      CHECK(difference(value, expected) == "");
      CHECK(difference(slope, expected_slope) == "");
      CHECK(difference(f_best(x), best(x)) == "");
      CHECK(difference(f_half(waves({k, 6}, 5)), half(waves({k, 6}, 5))) == "");
      auto const [total, by_u] = f_recurrent(u, x);
      auto const [plain, plain_by_u] = recurrent(u, x);
      CHECK(difference(total, plain) == "");
      CHECK(difference(by_u, plain_by_u) == "");
      CHECK(difference(f_branch(x), branch(x)) == "");
      CHECK(difference(f_norms(x), norms(x)) == "");
    }
  CHECK_THROWS_AS(f_norms(waves({0, 5}, 1)), vv::shape_error); // as map itself
}
TEST_CASE("fuse with symbolic sizes: views with run-time extents, arrays, and tensors in any order",
          "[fuse][symbolic][tensor_ref]") {
  tensor const w = waves({10}, 1), x = waves({6, 10}, 2), y = waves({6}, 3);
  tensor const expected = logistic_gradient(w, x, y);
  std::vector<float> const ys(y.data<float>(), y.data<float>() + 6);
  array<float, 6> fixed;
  for (index_t k = 0; k < 6; ++k) fixed[k] = ys[static_cast<std::size_t>(k)];
  CHECK(difference(fused_logistic(tensor_ref<float const, 10>(w), tensor_ref<float const, vv::dyn, 10>(x),
                                  tensor_ref<float const, vv::dyn>(ys)),
                   expected) == "");
  CHECK(difference(fused_logistic(w, x, fixed), expected) == "");
  tensor const turned = vv::transpose(vv::contiguous(vv::transpose(x, 0, 1)), 0, 1);
  REQUIRE(!turned.is_contiguous());
  CHECK(difference(fused_logistic(w, turned, y), expected) == "");
  CHECK(difference(fused_logistic(w, tensor_ref<float const, vv::dyn, vv::dyn>(turned), y), expected) == "");
  CHECK_THROWS_WITH(fused_logistic(w, tensor_ref<float const, vv::dyn, 10>(x), array<float, 7>{}),
                    ContainsText("argument 2 is float32[7], expected float32[n], where n is 6 (argument 1)"));
}
TEST_CASE("fuse with symbolic sizes: into writes, and refuses what overlaps", "[fuse][symbolic]") {
  tensor const x = waves({1000, 10}, 1);
  tensor out = tensor::empty({1000, 10}, dtype::float32);
  using f = decltype(fused_columns);
  CHECK(f::workspace_bytes(1000) >= f::workspace_bytes(10));
  fused_columns.into(out)(x);
  CHECK(difference(out, columns(x)) == "");
  tensor const second = tensor::empty({1000, 10}, dtype::float32);
  fused_columns.into(std::tuple{second})(x);
  CHECK(difference(second, columns(x)) == "");
  tensor wrong = tensor::empty({999, 10}, dtype::float32);
  CHECK_THROWS_WITH(fused_columns.into(wrong)(x),
                    ContainsText("result 0 is float32[999, 10], expected float32[1000, 10]"));
  tensor same = x;
  CHECK_THROWS_WITH(fused_columns.into(same)(x), ContainsText("overlaps argument 0"));
}

TEST_CASE("scratch memory: blocks nest, keep their places when more is needed, and are kept for the next",
          "[fuse][symbolic][scratch]") {
  using vv::fusion::scratch_block;
  std::byte* place = nullptr;
  {
    scratch_block const a(100);
    place = a.data();
    CHECK(reinterpret_cast<std::uintptr_t>(place) % 64 == 0);
    a.data()[0] = std::byte{1}, a.data()[99] = std::byte{2};
    try {
      scratch_block const b(std::size_t{1} << 22); // does not fit: elsewhere
      b.data()[(std::size_t{1} << 22) - 1] = std::byte{3};
      scratch_block const c(200);
      CHECK((c.data() >= b.data() + (std::size_t{1} << 22) || c.data() + 200 <= b.data()));
      throw 1;
    } catch (int) {}
    CHECK(a.data() == place);
    CHECK((a.data()[0] == std::byte{1} && a.data()[99] == std::byte{2}));
    scratch_block const d(100);
    CHECK(d.data() != a.data());
  }
  std::byte* kept = nullptr;
  for (int round = 0; round < 2; ++round) {
    scratch_block const a(std::size_t{1} << 22); // the larger memory has stayed
    scratch_block const b(1000);
    if (round == 0) kept = a.data();
    CHECK(a.data() == kept);
    CHECK(b.data() == a.data() + (std::size_t{1} << 22));
  }
}
TEST_CASE("fuse with symbolic sizes: a fused function may call another in its middle", "[fuse][symbolic][scratch]") {
  constexpr auto plain = [](auto x) {
    return vv::softmax(vv::sum(vv::exp(vv::softmax(x, vv::axis<0>)), vv::axis<1>), vv::axis<0>);
  };
  constexpr auto nested = [](auto x) {
    return vv::softmax(vv::sum(vv::exp(calls_inside(vv::softmax(x, vv::axis<0>))), vv::axis<1>), vv::axis<0>);
  };
  constexpr auto f = vv::fuse<spec<double, n, 3>>(nested);
  CHECK(decltype(f)::workspace_bytes(5) > 0);
  tensor const x = waves({5, 3}, 1, dtype::float64);
  CHECK(difference(f(x), plain(x), 1e-6) == "");
}
