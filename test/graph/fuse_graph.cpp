// SPDX-License-Identifier: BSL-1.0
#include "../sample/apart.hpp"
#include "../sample/bump.hpp"
#include "sample.hpp"

#include <varve_test.hpp>

namespace vv = varve;
using sample::apart, sample::element, sample::noting;
using vv::boxed_args;
using vv::dims;
using vv::dtype;
using vv::index_t;
using vv::tensor;

namespace {
template <class X>
void write_element(tensor const& t, index_t k, X x) {
  vv::on_dtype(t.dtype(), "test", [&]<class T>() { static_cast<T*>(t.raw())[k] = vv::kernel::cast<T>(x); });
}
tensor counting(dims const& sizes, dtype type = dtype::float32, double step = 0.25, double start = -3) {
  tensor t = tensor::empty(sizes, type);
  for (index_t k = 0; k < t.numel(); ++k) write_element(t, k, start + step * static_cast<double>(k % 97));
  return t;
}
template <class... X>
double fused_and_eager_differ(vv::graph const& g, X const&... x) {
  boxed_args const a = vv::fuse(g)(boxed_args(x...)), b = vv::interpret(g, boxed_args(x...));
  double worst = 0;
  for (int k = 0; k < a.size(); ++k) worst = std::max(worst, apart(a[k], b[k]));
  return a.size() == b.size() ? worst : 1e9;
}
/// The operators of the sample graphs, called on tensors so that the program contains them.
tensor all_operators(tensor const& x, tensor const& i) {
  tensor const a = vv::tanh(vv::neg(x + x - x * x / x)), b = vv::where(x > a, a, x),
               m = vv::matmul(vv::permute(b, dims{1, 0}), b);
  tensor const c = vv::cat(std::tuple(vv::slice(m, vv::axis<0>, 0, 1), m), vv::axis<0>);
  return vv::sum(c) + vv::amax(vv::gather(x, vv::axis<0>, i)) + vv::to(vv::argmax(x, vv::axis<0>), dtype::float32) +
         vv::sum(vv::scatter_add(x, vv::axis<0>, i, x)) + vv::sum(vv::to(vv::one_hot(i, vv::axis<5>), dtype::float32)) +
         vv::sum(vv::exp(vv::sigmoid(vv::abs(vv::maximum(x, vv::relu(x))))));
}
} // namespace

double sample::run_time_difference(graph const& g, std::vector<std::vector<double>> const& arguments,
                                   std::vector<std::vector<double>> const& expected) {
  tensor const x = counting({2, 2});
  (void)all_operators(x, tensor({std::int64_t(0), std::int64_t(1), std::int64_t(1), std::int64_t(0)}, {2, 2}));
  boxed_args in;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    in.push_back(tensor::empty(g.nodes[k].out.sizes, g.nodes[k].out.type));
    for (std::size_t e = 0; e < arguments[k].size(); ++e)
      write_element(in[static_cast<int>(k)], static_cast<index_t>(e), arguments[k][e]);
  }
  boxed_args const out = vv::fuse(g)(in);
  double worst = static_cast<std::size_t>(out.size()) == expected.size() ? 0 : 1e9;
  for (std::size_t r = 0; r < expected.size(); ++r)
    for (std::size_t e = 0; e < expected[r].size(); ++e) {
      double const d = std::fabs(element(out[static_cast<int>(r)], static_cast<index_t>(e)) - expected[r][e]) /
                       (1 + std::fabs(expected[r][e]));
      worst = d <= worst ? worst : d >= 0 ? d : 1e9;
    }
  return worst;
}

TEST_CASE("fuse graph: chains, broadcasts and reductions of all sizes agree with the operators one by one",
          "[fuse][graph]") {
  auto const f = [](tensor const& x, tensor const& row, tensor const& column) {
    tensor const t = vv::tanh(x * row) * 2.0 + column;
    tensor const s = vv::sum(t, vv::axis<1>), m = vv::amax(t, vv::axis<0>);
    return std::tuple(t, s, m, vv::sum(t * x, vv::axis<0>), vv::sum(t), vv::exp(t - vv::amax(t)),
                      t - vv::permute(vv::permute(column * row, dims{1, 0}), dims{1, 0}));
  };
  for (index_t rows : {1, 2, 3, 17, 600})
    for (index_t columns : {1, 3, 31, 64, 513, 1500}) {
      tensor const x = counting({rows, columns}), r = counting({columns}, dtype::float32, 0.03),
                   c = counting({rows, 1}, dtype::float32, 0.1);
      INFO(rows << " x " << columns);
      CHECK(fused_and_eager_differ(vv::make_fx(f)(x, r, c), x, r, c) < 2e-5);
    }
}

TEST_CASE("fuse graph: no elements, one element, rank 0", "[fuse][graph]") {
  auto const f = [](tensor const& x) { return std::tuple(vv::sum(x * 2.0), x + 1.0, vv::sum(x, vv::axis<0>)); };
  for (dims const& s : {dims{0}, dims{0, 3}, dims{3, 0}, dims{1}, dims{1, 1, 1}}) {
    tensor const x = counting(s);
    CHECK(fused_and_eager_differ(vv::make_fx(f)(x), x) == 0);
  }
  tensor const number = counting({});
  CHECK(fused_and_eager_differ(vv::make_fx([](tensor const& x) { return x * x + 1.0; })(number), number) == 0);
}

TEST_CASE("fuse graph: integers and booleans are exact, dtypes are as of the operators", "[fuse][graph][dtype]") {
  tensor const i = counting({41}, dtype::int64, 1, -7), f = counting({41}, dtype::float32),
               u = counting({41}, dtype::uint8, 1, 190), d = counting({41}, dtype::float64);
  write_element(i, 3, (std::int64_t(1) << 53) + 1);
  auto const g = vv::make_fx([](tensor const& a, tensor const& b, tensor const& c, tensor const& e) {
    tensor const p = a > c;
    return std::tuple(a + 1, a * 3 - a, vv::sum(a), a + b, c * c, c + a, p, vv::where(p, b, e), p + p, vv::sum(p),
                      vv::amax(a), vv::sum(c), a / c, vv::to(e, dtype::int32), b * e);
  })(i, f, u, d);
  boxed_args const a = vv::fuse(g)(boxed_args(i, f, u, d)), b = vv::interpret(g, boxed_args(i, f, u, d));
  CHECK(a[0].data<std::int64_t>()[3] == (std::int64_t(1) << 53) + 2);
  for (int k = 0; k < a.size(); ++k) {
    INFO(k);
    CHECK(apart(a[k], b[k]) < 1e-6);
    if (!vv::is_floating(a[k].dtype()) || k == 6)
      for (index_t e = 0; e < a[k].numel(); ++e)
        CHECK(std::memcmp(static_cast<char*>(a[k].raw()) + e * vv::itemsize(a[k].dtype()),
                          static_cast<char*>(b[k].raw()) + e * vv::itemsize(a[k].dtype()),
                          static_cast<std::size_t>(vv::itemsize(a[k].dtype()))) == 0);
  }
}

TEST_CASE("fuse graph: products of bytes wrap around before they are summed up", "[fuse][graph][dtype]") {
  for (index_t const n : {3, 40}) {
    tensor const u = counting({n, n}, dtype::uint8, 1, 190);
    auto const g = vv::make_fx([](tensor const& a) {
      return std::tuple(vv::sum(a * a, dims{0}), vv::sum(a * a, dims{1}, true), vv::sum(a * a),
                        vv::sum(-(a * a), dims{1}));
    })(u);
    boxed_args const a = vv::fuse(g)(boxed_args(u)), b = vv::interpret(g, boxed_args(u));
    for (int k = 0; k < a.size(); ++k)
      for (index_t e = 0; e < a[k].numel(); ++e) CHECK(a[k].data<std::int64_t>()[e] == b[k].data<std::int64_t>()[e]);
  }
}

TEST_CASE("fuse graph: passes keep the dtypes of a graph whose operators convert inside",
          "[fuse][graph][dtype][pass]") {
  tensor const f = vv::full({}, 1.5, dtype::float32), u = counting({2, 3}, dtype::uint8, 1, 5),
               i = vv::full({}, 300, dtype::int64);
  auto const g = vv::make_fx([](tensor const& a, tensor const& b, tensor const& c) {
    return std::tuple(a * 2.0 + 1, vv::lt(a, 0.1), vv::maximum(b, vv::expand(c, dims{1})),
                      vv::where(vv::to(a, dtype::uint8), vv::expand(c, dims{1, 1}), b));
  })(f, u, i);
  CHECK(vv::verify(g)); // a number beside a value of rank 0 raises no dtype
  boxed_args const expected = vv::interpret(g, boxed_args(f, u, i));
  CHECK(expected[2].dtype() == dtype::int64);
  for (vv::graph const& h : {vv::optimize(g), vv::fold(g), vv::cse(g), vv::dce(g)}) {
    CHECK(vv::verify(h));
    boxed_args const y = vv::interpret(h, boxed_args(f, u, i));
    for (int k = 0; k < y.size(); ++k) {
      CHECK(y[k].dtype() == expected[k].dtype());
      CHECK(apart(y[k], expected[k]) == 0);
    }
  }
}

TEST_CASE("fuse graph: what is no loop calls the kernels that exist", "[fuse][graph]") {
  tensor const x = counting({12, 9}), w = counting({9, 30}, dtype::float32, 0.01),
               i = tensor({std::int64_t(2), std::int64_t(0), std::int64_t(11)});
  auto const f = [](tensor const& a, tensor const& b, tensor const& k) {
    tensor const h = vv::tanh(vv::matmul(a, b));
    tensor const picked = vv::gather(h, vv::axis<0>, vv::expand(vv::reshape(k, dims{3, 1}), dims{3, 30}));
    return std::tuple(vv::softmax(h, vv::axis<1>), picked, vv::argmax(h, vv::axis<1>),
                      vv::cat(std::tuple(h, picked), vv::axis<0>), vv::slice(h, vv::axis<1>, 3, 21, 4));
  };
  CHECK(fused_and_eager_differ(vv::make_fx(f)(x, w, i), x, w, i) < 1e-6);
}

TEST_CASE("fuse graph: gradients, and gradients of gradients", "[fuse][graph]") {
  auto const f = [](tensor const& w, tensor const& x, tensor const& y) {
    return vv::mean(vv::logsumexp(vv::matmul(x, w), vv::axis<1>) - vv::sum(vv::matmul(x, w) * y, vv::axis<1>));
  };
  tensor const w = counting({9, 4}, dtype::float64, 0.05), x = counting({32, 9}, dtype::float64, 0.02),
               y = counting({32, 4}, dtype::float64, 0.01);
  CHECK(fused_and_eager_differ(vv::make_fx(vv::grad(f))(w, x, y), w, x, y) < 1e-12);
  auto const h = vv::vmap(vv::grad(vv::grad([](tensor const& v) { return vv::sin(v) * v; })));
  tensor const v = counting({100}, dtype::float64);
  CHECK(fused_and_eager_differ(vv::make_fx(h)(v), v) < 1e-12);
}

TEST_CASE("fuse graph: an operator of a user brings its kernel", "[fuse][graph]") {
  tensor const x = counting({700});
  auto const f = [](tensor const& v) { return vv::sum(sample::bump(v * 0.5) + v); };
  CHECK(fused_and_eager_differ(vv::make_fx(vv::grad(f))(x), x) < 1e-6);
  CHECK(vv::fuse(vv::make_fx(vv::grad(f))(x)).program().stages.size() == 1);
}

TEST_CASE("fuse graph: cond is a branch, scan a loop", "[fuse][graph][cond][scan]") {
  auto const f = [](tensor const& v, tensor const& w) {
    tensor const s = v * w;
    return vv::cond(
        vv::sum(v) > 0.0, [&](tensor const& a) { return a * s; }, [&](tensor const& a) { return a - w; }, v);
  };
  tensor const a = counting({5}), b = counting({5}, dtype::float32, 0.5, 1);
  auto const g = vv::make_fx(f)(a, b);
  CHECK(fused_and_eager_differ(g, a, b) < 1e-6);
  CHECK(fused_and_eager_differ(g, b, a) < 1e-6); // the other branch
  auto const loop = [](tensor const& c, tensor const& xs) {
    auto const [last, ys] = vv::scan(
        [&](tensor const& u, tensor const& x) {
          tensor const n = vv::tanh(u * 0.9 + x);
          return std::pair(n, n * n + c);
        },
        c, xs);
    return std::tuple(last, ys);
  };
  for (index_t n : {1, 2, 7}) {
    tensor const xs = counting({n, 5}, dtype::float32, 0.1);
    CHECK(fused_and_eager_differ(vv::make_fx(loop)(a, xs), a, xs) < 1e-6);
  }
  tensor const xs = counting({6, 5}, dtype::float32, 0.1);
  auto const total = [&](tensor const& c, tensor const& x) { return vv::sum(std::get<1>(loop(c, x))); };
  CHECK(fused_and_eager_differ(vv::make_fx(vv::grad<0, 1>(total))(a, xs), a, xs) < 1e-5);
}

TEST_CASE("fuse graph: while_loop and its gradient are loops", "[fuse][graph][while_loop]") {
  auto const loop = [](tensor const& x, tensor const& w) {
    auto const [n, y] =
        vv::while_loop<16>([](auto const&, auto const& y, auto const&) { return vv::sum(y * y) < 100.0; },
                           [](auto const& n, auto const& y, auto const& w) {
                             return std::tuple(tensor(n + 1), tensor(vv::tanh(w) * y + y * y));
                           },
                           std::tuple(vv::zeros({}, dtype::int64), x), w);
    return std::tuple(y, n);
  };
  auto const total = [&](tensor const& x, tensor const& w) { return vv::sum(std::get<0>(loop(x, w)) * w); };
  tensor const w = counting({5}, dtype::float32, 0.1, 0.2);
  for (double from : {0.9, 2.0, 20.0}) { // many steps, few, none
    tensor const x = counting({5}, dtype::float32, 0.05, from);
    CHECK(fused_and_eager_differ(vv::make_fx(loop)(counting({5}), w), x, w) < 1e-5);
    CHECK(fused_and_eager_differ(vv::make_fx(vv::grad<0, 1>(total))(counting({5}), w), x, w) < 1e-4);
  }
  auto const endless = vv::fuse(vv::make_fx(loop)(counting({5}), w));
  CHECK_THROWS_AS(endless(boxed_args(vv::zeros({5}), w)), vv::step_limit_error);
}

TEST_CASE("fuse graph: a graph of the compiler's tracer runs too, array constants as tables", "[fuse][graph]") {
  constexpr auto g = vv::trace([](auto x) { return vv::sum(x * vv::array<float, 3>{1, 2, 4} + 1.0f, vv::axis<1>); },
                               vv::spec<float, 40, 3>);
  tensor const x = counting({40, 3});
  CHECK(apart(vv::fuse(g.thaw())(boxed_args(x))[0], vv::sum(x * tensor({1.0f, 2.0f, 4.0f}) + 1.0, vv::axis<1>)) < 1e-6);
}

TEST_CASE("fuse graph: arguments are checked, and brought into row-major order", "[fuse][graph][error]") {
  auto const g = vv::make_fx([](tensor const& x, tensor const& y) { return x * y; })(counting({4, 3}), counting({3}));
  auto const run = vv::fuse(g);
  tensor const x = counting({3, 4}), y = counting({3});
  CHECK(apart(run(boxed_args(vv::permute(x, dims{1, 0}), y))[0], vv::permute(x, dims{1, 0}) * y) == 0);
  CHECK_THROWS_WITH(run(boxed_args(x, y)), "varve: fuse: argument 0 is float32[3, 4], expected float32[4, 3]");
  CHECK_THROWS_AS(run(boxed_args(counting({4, 3}), counting({3}, dtype::float64))), vv::dtype_error);
  CHECK_THROWS_AS(run(boxed_args(counting({4, 3}))), vv::shape_error);
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::sum(run(boxed_args(v, y))[0]); })(counting({4, 3})),
                  vv::transform_error);
  CHECK_THROWS_AS(
      vv::fuse(vv::trace_graph([](auto v) { return v + 1.0f; }, vv::meta{dtype::float32, {vv::symbol("n")}})),
      vv::value_error);
  CHECK_THROWS_AS(vv::fuse(vv::make_fx([](tensor const& v) { return vv::add_(v, 1.0); })(vv::clone(y))),
                  vv::value_error);
}

TEST_CASE("compile: one program for each set of dtypes and sizes", "[compile]") {
  int traced = 0;
  auto const fast = vv::compile([&](tensor const& x, tensor const& y) {
    traced += vv::detail::watches_reads != nullptr; // not where the function runs as it is
    return std::pair(x * y + 1.0, vv::sum(x));
  });
  for (int round = 0; round < 3; ++round)
    for (dims const& s : {dims{4}, dims{2, 4}}) {
      tensor const x = counting(s), y = counting({4});
      auto const [a, b] = fast(x, y);
      CHECK(apart(a, x * y + 1.0) == 0);
      CHECK(apart(b, vv::sum(x)) < 1e-6);
    }
  CHECK(traced == 2);
  CHECK(fast.versions() == 2);
  (void)fast(counting({4}, dtype::float64), counting({4}));
  CHECK(fast.versions() == 3);
  CHECK(vv::compile([](tensor const& x) { return vv::exp(x); }, counting({3})).versions() == 1);
  // numbers: zeros of two signs are two, NaN is one
  auto const quotient = vv::compile([](tensor const& x, double by) { return x / by; });
  tensor const one = vv::ones(dims{1}, dtype::float64);
  for (double by : {0.0, -0.0, 0.0}) CHECK(quotient(one, by).data<double>()[0] == 1 / by);
  for (int round = 0; round < 3; ++round) CHECK(std::isnan(quotient(one, std::nan("")).data<double>()[0]));
  CHECK(quotient.versions() == 3);
}

TEST_CASE("compile: captured tensors are inputs", "[compile]") {
  tensor w = counting({3});
  auto const fast = vv::compile([&](tensor const& x) { return vv::sum(x * w + w); });
  tensor const x = counting({3}, dtype::float32, 0.5);
  CHECK(apart(fast(x), vv::sum(x * w + w)) < 1e-6);
  vv::add_(w, 10.0); // in place: the program sees it
  CHECK(apart(fast(x), vv::sum(x * w + w)) < 1e-6);
  w.requires_grad_(); // now autograd must see the operators
  tensor const y = fast(x);
  REQUIRE(y.requires_grad());
  y.backward();
  CHECK(apart(w.grad(), x + 1.0) < 1e-6);
  CHECK(fast.versions() == 1);
}

TEST_CASE("compile: transforms, modes and autograd see the operators of the function", "[compile]") {
  auto const fast = vv::compile([](tensor const& x) { return vv::sum(vv::sin(x) * x); });
  tensor const x = counting({6}, dtype::float64, 0.3);
  tensor const expected = vv::cos(x) * x + vv::sin(x);
  CHECK(apart(vv::grad(fast)(x), expected) < 1e-12);
  CHECK(vv::vmap(fast)(counting({4, 6})).sizes() == dims{4});
  noting n;
  {
    vv::mode_guard const on{n};
    (void)fast(x);
  }
  CHECK(n.calls == 3);
  tensor const leaf = counting({6}, dtype::float64, 0.3).requires_grad_();
  fast(leaf).backward();
  CHECK(apart(leaf.grad(), expected) < 1e-12);
  CHECK(fast.versions() == 0); // nothing was fused so far
  auto const gradient = vv::compile(vv::grad([](tensor const& v) { return vv::sum(vv::sin(v) * v); }));
  CHECK(apart(gradient(x), expected) < 1e-12);
  CHECK(gradient.versions() == 1);
}
