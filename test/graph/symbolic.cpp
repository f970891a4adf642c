// SPDX-License-Identifier: BSL-1.0
// Graphs of symbolic sizes on tensors: they run as the functions do, and refuse sizes that they are not made for.
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::dim, vv::dims, vv::index_t, vv::spec, vv::tensor;

namespace {
template <class S>
tensor argument(index_t n, index_t m) {
  vv::meta const declared = S::info();
  dims sizes = declared.sizes;
  for (int k = 0; k < sizes.n; ++k)
    if (vv::is_symbol(sizes[k])) sizes[k] = sizes[k] == dim<"n"> ? n : m;
  tensor t = tensor::empty(sizes, declared.type);
  for (index_t k = 0; k < t.numel(); ++k) t.data<double>()[k] = 0.5 + 0.25 * static_cast<double>(k % 13);
  return t;
}
void check_close(tensor const& a, tensor const& b) {
  REQUIRE(a.sizes() == b.sizes());
  tensor const x = vv::clone(a), y = vv::clone(b);
  for (index_t k = 0; k < x.numel(); ++k) CHECK(x.data<double>()[k] == Approx(y.data<double>()[k]).margin(1e-12));
}
/// Runs the trace of `f`, and what passes make of it, as `f` itself.
template <class F, class... S>
void check_runs(F f, dims const& n, S...) {
  constexpr auto traced = vv::trace(F{}, S{}...);
  static_assert(vv::verify(traced));
  vv::graph const g = traced.thaw(), better = vv::optimize(g), best = vv::prepare(g);
  CHECK(vv::verify(better));
  CHECK(vv::verify(best));
  for (index_t a : n)
    for (index_t b : {2, 5}) {
      std::tuple const in{argument<S>(a, b)...};
      tensor const y = std::apply(f, in);
      auto const x = std::apply([](auto const&... t) { return vv::boxed_args(t...); }, in);
      for (vv::graph const* way : {&g, &better, &best}) check_close(vv::interpret(*way, x)[0], y);
    }
}
constexpr auto n3 = spec<double, dim<"n">, 3>;
constexpr auto n = spec<double, dim<"n">>;
constexpr auto m = spec<double, dim<"m">>;
constexpr auto average = [](auto const& x) { return vv::mean(x, vv::axis<0>); };
} // namespace

TEST_CASE("symbolic graphs: run as their functions for every size", "[graph][trace]") {
  check_runs(average, {1, 4, 9}, n3);
  check_runs([](auto const& x) { return vv::softmax(x, vv::axis<0>); }, {1, 2, 9}, n3);
  check_runs([](auto const& x, auto const& y) { return vv::cat(std::tuple(x, y), vv::axis<0>); }, {0, 1, 7}, n, m);
  check_runs([](auto const& x) { return vv::reshape(vv::sin(x), dims{-1}); }, {1, 7}, n3);
  check_runs([](auto const& x, auto const& y) { return vv::reshape(x, dims{-1, 1}) * y; }, {1, 7}, n, m);
  check_runs([](auto const& x) { return vv::slice(x, 0, 2, -1); }, {3, 7}, n);
  check_runs([](auto const& x) { return vv::matmul(x, vv::permute(x, dims{1, 0})); }, {1, 6}, n3);
  check_runs(vv::grad([](auto const& x) { return vv::mean(x * x); }), {1, 6}, n3);
  check_runs(vv::grad([](auto const& x) { return vv::sum(vv::exp(vv::slice(x, 0, 1, 3))) + vv::sum(x); }), {3, 6}, n);
  check_runs(vv::vmap(average), {1, 6}, n3);
  check_runs(
      [](auto const& x) {
        auto y = vv::clone(x);
        vv::mul_(vv::slice(y, 0, 1, 3), 3.0);
        return y + x;
      },
      {3, 8}, n);
}

TEST_CASE("symbolic graphs: functions inside know the sizes", "[graph][trace][hop]") {
  check_runs(
      [](auto const& x) {
        return vv::cond(
            vv::sum(x) > 4.0, [](auto const& v) { return v - vv::mean(v); },
            [](auto const& v) {
              return vv::cat(std::tuple(vv::slice(v, 0, 1, vv::end), vv::slice(v, 0, 0, 1)), vv::axis<0>);
            },
            x);
      },
      {1, 2, 9}, n);
  check_runs(
      [](auto const& x) {
        return vv::scan([](auto const& c, auto const& row) { return std::pair(c + row, c * row); },
                        vv::mean(x, vv::axis<0>), x)
            .second;
      },
      {1, 5}, n3);
}

TEST_CASE("symbolic graphs: printed with their symbols", "[graph][print]") {
  constexpr auto g = vv::trace(average, n3);
  CHECK(vv::to_string(g) == "%0: float64[n, 3] = placeholder(0)\n"
                            "%1: float64[3] = sum(%0, [0], [0])\n"
                            "%2: float64 = sym_numel([n])\n"
                            "%3: float64[3] = div(%1, %2)\n"
                            "return %3\n");
  constexpr auto joined = vv::trace([](auto x, auto y) { return vv::cat(std::tuple(x, y, x), vv::axis<0>); }, n, m);
  CHECK_THAT(vv::to_string(joined), ContainsText("float64[2*n + m] = cat("));
  CHECK_THAT(vv::to_dot(joined), ContainsText("float64[2*n + m]"));
}

TEST_CASE("symbolic graphs: traced at run time", "[graph][trace]") {
  double scale = 2;
  auto const f = [&](auto const& x) { return vv::mean(x, vv::axis<0>) * scale; };
  vv::graph const g = vv::trace_graph(f, n3.info());
  CHECK(vv::verify(g));
  tensor const x = argument<std::remove_cv_t<decltype(n3)>>(5, 0);
  check_close(vv::interpret(g, vv::boxed_args(x))[0], f(x));
  scale = 3;
  CHECK_FALSE(vv::equal(g, vv::trace_graph(f, n3.info())));
  CHECK_THROWS_WITH(
      vv::trace_graph([](auto const& v) { return v * static_cast<double>(vv::shape_of(v)[0]); }, n.info()),
      ContainsText("trace: a symbolic size became a number of the function"));
  int calls = 0;
  CHECK_THROWS_WITH(vv::trace_graph([&](auto const& v) { return ++calls == 1 ? vv::sin(v) : vv::cos(v); }, n.info()),
                    ContainsText("trace: what the function does depends on a symbolic size"));
  CHECK_THROWS_WITH(vv::trace_graph([](auto const& v) { return vv::slice(v, 0, 0, vv::end, 2); }, n.info()),
                    ContainsText("trace: a size is neither a number nor made of symbols"));
  CHECK_THROWS_WITH(
      vv::trace_graph(
          [](auto const& v) { return vv::associative_scan([](auto a, auto b) { return vv::maximum(a, b); }, v); },
          n.info()),
      ContainsText("associative_scan: the length must be known"));
}

TEST_CASE("symbolic graphs: sizes that do not fit are refused", "[graph][interpret]") {
  vv::graph const part = vv::trace([](auto x) { return vv::slice(x, 0, 2, -3); }, n).thaw();
  CHECK_THROWS_WITH(vv::interpret(part, vv::boxed_args(vv::zeros(dims{4}, vv::dtype::float64))),
                    ContainsText("graph: what the function does along a symbolic axis needs n - 5 >= 0; it is -1"));
  CHECK(vv::interpret(part, vv::boxed_args(vv::zeros(dims{5}, vv::dtype::float64)))[0].sizes() == dims{0});
  vv::graph const both = vv::trace([](auto x, auto y) { return x + y; }, n, n).thaw();
  tensor const four = vv::zeros(dims{4}, vv::dtype::float64), one = vv::zeros(dims{1}, vv::dtype::float64);
  CHECK_THROWS_WITH(vv::interpret(both, vv::boxed_args(four, one)), ContainsText("[1] and [4]"));
  CHECK_THROWS_AS(vv::interpret(both, vv::boxed_args(four)), vv::shape_error);
  // a function inside, whose argument has an expression for its size
  vv::graph const whole = vv::trace(
                              [](auto x) {
                                return vv::cond(
                                    vv::sum(x) > 0.0, [](auto v) { return v * 2.0; }, [](auto v) { return v; },
                                    vv::cat(std::tuple(x, x), vv::axis<0>));
                              },
                              n)
                              .thaw();
  vv::graph const inside = vv::function_of(whole, 1);
  CHECK_THROWS_WITH(vv::interpret(inside, vv::boxed_args(four)), ContainsText("no argument has the symbolic size n"));
}

TEST_CASE("symbolic graphs: bounds beyond the sizes of a trace are refused", "[graph][trace]") {
  auto const refuses = [](auto const& f) {
    CHECK_THROWS_WITH(vv::trace_graph(f, n.info()),
                      ContainsText("slice: a bound lies beyond all that a symbolic size is while it is traced"));
  };
  refuses([](auto const& x) { return vv::slice(x, 0, 0, 70000); });
  refuses([](auto const& x) { return vv::slice(x, 0, 0, 66000); }); // between the sizes of the two traces
  refuses([](auto const& x) { return vv::slice(x, 0, -70000, vv::end); });
  refuses([](auto const& x) { return vv::slice(x, vv::axis<0>, vv::range<70000, vv::end>); });
  refuses(vv::grad([](auto const& x) { return vv::sum(vv::slice(vv::sin(x), 0, 0, 70000)); }));
  vv::graph const inside = vv::trace_graph([](auto const& x) { return vv::slice(x, 0, 60000, vv::end); }, n.info());
  CHECK(vv::interpret(inside, vv::boxed_args(vv::zeros(dims{70000}, vv::dtype::float64)))[0].sizes() == dims{10000});
  vv::graph const number =
      vv::trace_graph([](auto const& x) { return vv::slice(x, 1, 0, 70000); }, spec<double, dim<"n">, 3>.info());
  CHECK(vv::interpret(number, vv::boxed_args(vv::zeros(dims{2, 3}, vv::dtype::float64)))[0].sizes() == dims{2, 3});
}

TEST_CASE("symbolic graphs: what cannot do them refuses by name", "[graph][fuse]") {
  vv::graph const g = vv::trace([](auto x) { return vv::slice(vv::sin(x), 0, 0, 2); }, n).thaw();
  CHECK_THROWS_WITH(vv::fuse(g), ContainsText("fuse: the graph has symbolic sizes"));
}
