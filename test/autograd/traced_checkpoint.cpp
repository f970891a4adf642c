// SPDX-License-Identifier: BSL-1.0
// Checkpoints in programs that are traced at run time: regions that run again, with the same random numbers (CK-8).
#include "autograd_test.hpp"

using namespace autograd_test;
using vv::boxed_args;

namespace {
constexpr auto region = "wrap_activation_checkpoint";
int count_of(vv::graph const& g, std::string const& name, int again = -1) {
  int n = 0;
  for (vv::node const& nd : g) n += nd.op->name == name && (again < 0 || nd.at[0][0] == again);
  return n;
}
/// Dropout: the sine where a mask that is drawn has a one.
tensor masked(tensor const& w) {
  tensor const drawn = vv::randn(w.sizes(), dtype::float64);
  return vv::sin(w) * vv::to(vv::gt(drawn, 0.0), dtype::float64);
}
tensor some(dims const& sizes, std::uint64_t seed) {
  numbers draw(seed);
  return uniform(sizes, draw, 0.2, 1.2);
}
} // namespace

TEST_CASE("checkpoint: in a traced program a region that runs again, with the same random numbers",
          "[autograd][checkpoint][graph][CK-S10]") { // CK-8
  tensor const x = some({64}, 3);
  auto const step = vv::value_and_grad([](tensor const& u) { return vv::sum(vv::checkpoint(&masked, u * 2)); });
  vv::graph const g = vv::make_fx(step)(x);
  CHECK(vv::verify(g));
  CHECK((count_of(g, region, 0) == 1 && count_of(g, region, 1) == 1 && count_of(g, "get_rng_state") == 1));
  // The second has the operands of the first and the cotangent: nothing that the first computed.
  for (vv::node const& n : g)
    if (n.op->name == std::string(region) && n.at[0][0] == 1) CHECK(n.count == 3);
  vv::graph const better = vv::optimize(g);
  CHECK((count_of(better, region) == 2 && count_of(better, "randn") == 2)); // one in each: they are not merged
  vv::graph const flat = vv::inline_calls(g);
  CHECK(vv::verify(flat));
  auto const fused = vv::fuse(g);
  auto const fast = vv::compile(step);
  double before = 0;
  auto const consistent = [&](tensor const& value, tensor const& gradient) {
    // Where the mask is 0 the gradient is, and the value follows from the same mask.
    double sum = 0;
    for (index_t k = 0; k < 64; ++k) {
      double const d = element(gradient, k);
      if (d == 0) continue;
      CHECK(d == Approx(2 * std::cos(2 * element(x, k))));
      sum += std::sin(2 * element(x, k));
    }
    CHECK(value.item<double>() == Approx(sum));
    CHECK(sum != before); // another mask each time
    before = sum;
  };
  for (int round = 0; round < 3; ++round) {
    for (vv::graph const* p : {&g, &better}) {
      auto const r = vv::interpret(*p, boxed_args(x));
      consistent(r[0], r[1]);
    }
    auto const r = fused(boxed_args(x));
    consistent(r[0], r[1]);
    auto const [value, gradient] = fast(x);
    consistent(value, gradient);
  }
  // The numbers are those of the thread's generator, which goes on behind them, as without.
  auto const drawn = [&](auto const& f) {
    vv::manual_seed(7);
    tensor const y = f();
    return std::pair(y, vv::randn({2}, dtype::float64));
  };
  vv::graph const forward = vv::make_fx([](tensor const& u) { return vv::checkpoint(&masked, u); })(x);
  auto const plain = drawn([&] { return masked(x); }),
             traced = drawn([&] { return vv::interpret(forward, boxed_args(x))[0]; });
  CHECK((difference(plain.first, traced.first) == "" && difference(plain.second, traced.second) == ""));
  CHECK(thread_is_clean());
}

TEST_CASE("checkpoint: traced under every transform, nested, with captures and trees",
          "[autograd][checkpoint][graph]") {
  tensor const x = some({4}, 5), xs = some({3, 4}, 6), weight = some({4}, 7);
  auto const nested = [](tensor const& v, tensor const& w) {
    return vv::checkpoint(
               [&](tensor const& a, double s) {
                 tensor const inner = vv::checkpoint([&](tensor const& b) { return vv::exp(b * w); }, a * s);
                 return std::pair(inner * a, inner);
               },
               v, 0.5)
        .first;
  };
  auto const plain = [](tensor const& v, tensor const& w) { return vv::exp(v * 0.5 * w) * v; };
  auto const same = [&](char const* what, auto const& run, tensor const& at) {
    INFO(what);
    auto const of = [&](auto const& f) {
      return [&](tensor const& v, tensor const& w) { return run([&](tensor const& u) { return tensor(f(u, w)); })(v); };
    };
    vv::graph const g = vv::make_fx(of(nested))(at, weight);
    CHECK(vv::verify(g));
    CHECK(count_of(g, region) > 0);
    tensor const want = of(plain)(at, weight);
    CHECK(difference(of(nested)(at, weight), want, 1e-12) == "");
    CHECK(difference(vv::interpret(g, boxed_args(at, weight))[0], want, 1e-12) == "");
    CHECK(difference(vv::interpret(vv::optimize(g), boxed_args(at, weight))[0], want, 1e-12) == "");
    vv::graph const flat = vv::inline_calls(g);
    CHECK(vv::verify(flat));
    CHECK(difference(vv::interpret(flat, boxed_args(at, weight))[0], want, 1e-12) == "");
    CHECK(difference(vv::fuse(g)(boxed_args(at, weight))[0], want, 1e-12) == "");
    CHECK(thread_is_clean());
  };
  auto const scalar = [](auto const& f) { return [f](tensor const& v) { return vv::sum(f(v) * f(v)); }; };
  same("value", [](auto const& f) { return f; }, x);
  same("grad", [&](auto const& f) { return vv::grad(scalar(f)); }, x);
  same(
      "grad of grad",
      [&](auto const& f) { return vv::grad([=](tensor const& v) { return vv::sum(vv::grad(scalar(f))(v)); }); }, x);
  same(
      "jvp",
      [&](auto const& f) {
        return [=](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(v * 2)).second; };
      },
      x);
  same(
      "jvp of grad",
      [&](auto const& f) {
        return [=](tensor const& v) { return vv::jvp(vv::grad(scalar(f)), std::tuple(v), std::tuple(v * 2)).second; };
      },
      x);
  same("vmap", [&](auto const& f) { return vv::vmap(f); }, xs);
  same("vmap of grad", [&](auto const& f) { return vv::vmap(vv::grad(scalar(f))); }, xs);
  same(
      "grad of vmap",
      [&](auto const& f) { return vv::grad([=](tensor const& v) { return vv::sum(vv::vmap(f)(v) * v); }); }, xs);
  same("functionalize of grad", [&](auto const& f) { return vv::functionalize(vv::grad(scalar(f))); }, x);
}

TEST_CASE("checkpoint: traced, of integers, nothing, rank 0, empty and strided values, and one that throws",
          "[autograd][checkpoint][graph]") {
  tensor const index = from({2, 0, 1}, {3}, dtype::int64);
  for (tensor const& x : {some({3}, 1), some({}, 2), some({0}, 3), from({1, 2, 3}, {3}, dtype::float32),
                          vv::select(some({3, 2}, 4), 1, 1)}) {
    auto const f = [](tensor const& v, tensor const& i, tensor const& nothing) {
      auto const body = [](tensor const& a, tensor const& k, tensor const& none) {
        return none.defined() ? a : vv::sin(a * a) * vv::sum(vv::to(k, a.dtype()));
      };
      return std::pair(vv::checkpoint(body, v, i, nothing), body(v, i, nothing));
    };
    auto const run = [&](bool kept) {
      return [&, kept](tensor const& v, tensor const& i) {
        return vv::grad([&](tensor const& u) {
          auto const y = f(u, i, tensor());
          return vv::sum(kept ? y.first : y.second);
        })(v);
      };
    };
    vv::graph const g = vv::make_fx(run(true))(x, index);
    CHECK(count_of(g, region) == 2);
    CHECK(difference(vv::interpret(g, boxed_args(x, index))[0], run(false)(x, index), 1e-12) == "");
    CHECK(difference(vv::fuse(g)(boxed_args(x, index))[0], run(false)(x, index), 1e-6) == "");
  }
  auto const throws = [](tensor const& v) {
    return vv::checkpoint(
        [](tensor const& a) -> tensor {
          (void)vv::randn({2});
          return throw std::runtime_error("mine"), a;
        },
        v * 2);
  };
  tensor const x = some({3}, 1);
  CHECK_THROWS_WITH(vv::make_fx(throws)(x), ContainsText("mine"));
  CHECK_THROWS_WITH(
      vv::make_fx([&](tensor const& v) { return vv::grad([&](tensor const& u) { return vv::sum(throws(u)); })(v); })(x),
      ContainsText("mine"));
  CHECK(thread_is_clean());
}

TEST_CASE("the state of the generator: one for all that vmap maps", "[autograd][checkpoint][random]") {
  CHECK(difference(vv::vmap([&](tensor const& v) { return v + vv::get_rng_state(); },
                            vv::randomness::different)(vv::zeros({3, 2}, dtype::int64)),
                   vv::stack(std::vector<tensor>(3, vv::get_rng_state()), 0)) == "");
}

TEST_CASE("checkpoint of a function that returns a vector is traced", "[autograd][checkpoint]") {
  tensor const x = some({3}, 1);
  auto const f = [](tensor const& v) {
    auto const body = [](tensor const& a) { return std::vector<tensor>{a * 2.0, vv::sin(a)}; };
    std::vector<tensor> const y = vv::checkpoint(body, v);
    return vv::sum(y.at(0) * y.at(1));
  };
  tensor const right = f(x);
  CHECK(difference(vv::interpret(vv::make_fx(f)(x), boxed_args(x))[0], right) == "");
  CHECK(difference(vv::compile(f)(x), right, 1e-12) == "");
  CHECK(difference(vv::compile(vv::grad(f))(x), vv::grad(f)(x), 1e-12) == "");
}

TEST_CASE("checkpoint: a region that draws nothing is not given the state of the generator",
          "[autograd][checkpoint][graph]") {
  tensor const x = some({8}, 4);
  auto const graph_of = [&](auto const& body) {
    return vv::make_fx(vv::value_and_grad([&](tensor const& u) { return vv::sum(vv::checkpoint(body, u * 2)); }))(x);
  };
  auto const still = [](tensor const& u) { return vv::sin(u) * u; };
  vv::graph const g = graph_of(still);
  CHECK(vv::verify(g));
  CHECK((count_of(g, region, 0) == 1 && count_of(g, region, 1) == 1 && count_of(g, "get_rng_state") == 0));
  auto const around = [&](tensor const& u) { return vv::checkpoint(still, u) * vv::checkpoint(&masked, u); };
  vv::graph const both = graph_of(around);
  CHECK(vv::verify(both));
  CHECK(count_of(both, "get_rng_state") == 3); // of the region, and of the one in it that draws, run and run again
  auto const want = vv::value_and_grad([&](tensor const& u) { return vv::sum(still(u * 2)); })(x);
  vv::manual_seed(11);
  tensor const next = vv::randn({2}, dtype::float64);
  vv::manual_seed(11);
  auto const y = vv::interpret(g, boxed_args(x));
  CHECK(difference(vv::randn({2}, dtype::float64), next) == "");
  CHECK(difference(y[0], want.first, 1e-14) == "");
  CHECK(difference(y[1], want.second, 1e-14) == "");
  CHECK(difference(vv::fuse(g)(boxed_args(x))[1], want.second, 1e-14) == "");
  tensor const lanes =
      vv::vmap([&](tensor const& v) { return vv::interpret(g, boxed_args(v))[1]; })(vv::stack(std::vector{x, x}, 0));
  CHECK(difference(lanes, vv::stack(std::vector{want.second, want.second}, 0), 1e-14) == "");
  CHECK(thread_is_clean());
}

TEST_CASE("checkpoint: what is drawn behind an inner one is the same when the outer one runs again",
          "[autograd][checkpoint][graph][random]") {
  tensor const x = some({8}, 4);
  auto const noisy = [](tensor const& u) { return tensor(u * u * vv::randn(u.sizes(), dtype::float64)); };
  auto const nested = [&](tensor const& u) {
    return vv::checkpoint(
        [&](tensor const& v) {
          tensor const inner = vv::checkpoint(noisy, v), by = vv::randn(v.sizes(), dtype::float64);
          return tensor(inner * by);
        },
        u);
  };
  auto const both = vv::value_and_grad([&](tensor const& u) { return vv::sum(nested(u)); });
  auto const fits = [&](auto const& run) { // y = c x² with the gradient 2 y / x, whatever was drawn
    vv::manual_seed(5);
    tensor const plain = nested(x);
    vv::manual_seed(5);
    auto const [value, gradient] = run();
    CHECK(difference(value, vv::sum(plain), 1e-13) == "");
    CHECK(difference(gradient, plain * 2.0 / x, 1e-12) == "");
  };
  fits([&] { return both(x); });
  vv::graph const g = vv::make_fx(both)(x);
  auto const pair = [](boxed_args const& y) { return std::pair<tensor, tensor>(y[0], y[1]); };
  fits([&] { return pair(vv::interpret(g, boxed_args(x))); });
  fits([&] { return pair(vv::interpret(vv::optimize(g), boxed_args(x))); });
  fits([&] { return pair(vv::fuse(g)(boxed_args(x))); });
  auto const in_rows = [&](tensor const& u) {
    return vv::sum(vv::map([&](tensor const& v) { return nested(v); }, vv::reshape(u, dims{2, 4})));
  };
  CHECK_THROWS_WITH(vv::compile(vv::grad(in_rows))(x), ContainsText("drawn again"));
  CHECK(thread_is_clean());
}
