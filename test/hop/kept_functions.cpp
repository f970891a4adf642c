// SPDX-License-Identifier: BSL-1.0
// What a graph keeps of a function besides operators: custom functions with their own rules, no_grad, random numbers.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;

namespace {
/// x, with a derivative of 3 that is not that of its text.
struct tripled : vv::function<tripled> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto x) { return x * 1.0; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 3.0; }
  static constexpr auto jvp(auto&, auto t) { return t * 3.0; }
};
/// (x, x²), of which the second has no derivative; that of the first is x, not 1.
struct half_constant : vv::function<half_constant> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto x) { return std::make_tuple(x * 1.0, x * x); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in))
        .save_for_forward(std::get<0>(in))
        .template mark_non_differentiable<1>();
  }
  static constexpr auto backward(auto& ctx, auto g, auto) { return g * std::get<0>(ctx.saved()); }
  static constexpr auto jvp(auto& ctx, auto t) {
    return std::make_tuple(t * std::get<0>(ctx.saved_for_forward()), t * 0.0);
  }
};

/// Erased, so that what runs it is compiled once for all.
using function = std::function<tensor(tensor const&)>;

double sum_of(std::vector<double> const& v) {
  double s = 0;
  for (double e : v) s += e;
  return s;
}

/// Whatever takes the gradient of f at x gives it; forward mode, which knows nothing of no_grad, gives the slope.
void gives(function const& f, tensor const& x, std::vector<double> const& gradient, double along) {
  auto const value = elements(f(x));
  auto const rows = vv::stack(std::vector{x, x}, 0);
  auto const twice = [&](std::vector<double> v) {
    v.insert(v.end(), gradient.begin(), gradient.end());
    return v;
  };
  auto const is = [&](char const* what, tensor const& g) {
    INFO(what);
    CHECK(elements(g) == gradient);
  };
  is("grad", vv::grad(f)(x));
  CHECK(elements(vv::value_and_grad(f)(x).first) == value);
  is("vjp", std::get<0>(vv::vjp(f, x).second(vv::full({}, 1.0, dtype::float64))));
  is("jacrev", vv::jacrev(f)(x));
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  f(leaf).backward();
  is("backward", leaf.grad());
  is("grad of functionalize", vv::grad(vv::functionalize(f))(x));
  is("functionalize of grad", vv::functionalize(vv::grad(f))(x));
  auto const compiled = vv::compile(vv::grad(f));
  is("compile of grad, first", compiled(x));
  is("compile of grad, second", compiled(x));
  is("grad of compile", vv::grad(vv::compile(f))(x));
  vv::graph const g = vv::make_fx(f)(x);
  CHECK(vv::verify(g));
  CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == value);
  CHECK(elements(vv::fuse(g)(vv::boxed_args(x))[0]) == value);
  auto const of_graph = [&](tensor const& v) { return tensor(vv::interpret(g, vv::boxed_args(v))[0]); };
  is("grad of a graph", vv::grad(of_graph)(x));
  is("grad of an optimized graph",
     vv::grad([o = vv::optimize(g)](tensor const& v) { return tensor(vv::interpret(o, vv::boxed_args(v))[0]); })(x));
  is("compiled grad of a graph", vv::compile(vv::grad(of_graph))(x));
  vv::graph const traced = vv::make_fx(vv::grad(f))(x);
  CHECK(vv::verify(traced));
  is("graph of grad", vv::interpret(traced, vv::boxed_args(x))[0]);
  is("fused graph of grad", vv::fuse(traced)(vv::boxed_args(x))[0]);
  vv::graph const again = vv::make_fx(of_graph)(x);
  is("grad of the graph of a graph",
     vv::grad([&](tensor const& v) { return tensor(vv::interpret(again, vv::boxed_args(v))[0]); })(x));
  CHECK(elements(vv::vmap(vv::grad(f))(rows)) == twice(gradient));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(rows)) == twice(gradient));
  CHECK(elements(vv::vmap(vv::grad(of_graph))(rows)) == twice(gradient));
  CHECK(elements(vv::compile(vv::vmap(vv::grad(f)))(rows)) == twice(gradient));
  auto const slope = [&](tensor const& v) {
    return vv::jvp(f, std::tuple(v), std::tuple(vv::full_like(v, 1.0))).second;
  };
  CHECK(sum_of(elements(vv::jacfwd(f)(x))) == Approx(along));
  CHECK(elements(slope(x))[0] == Approx(along));
  CHECK(elements(vv::linearize(f, x).second(vv::full_like(x, 1.0)))[0] == Approx(along));
  CHECK(elements(vv::interpret(vv::make_fx(slope)(x), vv::boxed_args(x))[0])[0] == Approx(along));
}

/// The functions of higher-order operators: each is handed to every operator, alone and within another one.
function in_map(function const& body) {
  return [body](tensor const& x) { return vv::sum(vv::map([body](tensor const& r) { return body(r); }, x)); };
}
function in_scan(function const& body) {
  return [body](tensor const& x) {
    auto const step = [body](tensor const& c, tensor const& r) { return std::pair(c + body(r), vv::none); };
    return vv::scan(step, vv::full({}, 0.0, dtype::float64), x).first;
  };
}
function in_while(function const& body) {
  return [body](tensor const& x) {
    auto const more = [](tensor const& k, tensor const&, tensor const&) { return k < 1.0; };
    auto const step = [body](tensor const& k, tensor const&, tensor const& v) {
      return std::tuple(k + 1.0, body(v) * 1.0);
    };
    auto const zero = vv::full({}, 0.0, dtype::float64);
    return vv::sum(std::get<1>(vv::while_loop<3>(more, step, std::tuple(zero, x * 0.0), x)));
  };
}
function in_cond(function const& body) {
  return [body](tensor const& x) {
    auto const other = [](tensor const& v) { return vv::sum(v) * 100.0; };
    return vv::cond(vv::sum(x) > -1000.0, [body](tensor const& v) { return vv::sum(body(v)); }, other, x);
  };
}
function in_checkpoint(function const& body) {
  return [body](tensor const& x) { return vv::checkpoint([body](tensor const& v) { return vv::sum(body(v)); }, x); };
}
void gives_everywhere(function const& body, tensor const& x, std::vector<double> const& gradient, double along) {
  SECTION("map") { gives(in_map(body), x, gradient, along); }
  SECTION("scan") { gives(in_scan(body), x, gradient, along); }
  SECTION("while_loop") { gives(in_while(body), x, gradient, along); }
  SECTION("cond") { gives(in_cond(body), x, gradient, along); }
  SECTION("checkpoint") { gives(in_checkpoint(body), x, gradient, along); }
}
void gives_two_deep(function const& body, tensor const& x, std::vector<double> const& gradient, double along) {
  SECTION("cond in map") { gives(in_map(in_cond(body)), x, gradient, along); }
  SECTION("checkpoint in scan") { gives(in_scan(in_checkpoint(body)), x, gradient, along); }
  SECTION("map in checkpoint") { gives(in_checkpoint(in_map(body)), x, gradient, along); }
  SECTION("while_loop in cond") { gives(in_cond(in_while(body)), x, gradient, along); }
}

constexpr auto calls_tripled = [](auto const& r) { return tripled::apply(r); };
constexpr auto calls_half_constant = [](auto const& r) {
  auto const [a, b] = half_constant::apply(r);
  return a + b * r; // derivative x + x², where the text has 1 + 3 x²
};
constexpr auto without_gradient = [](auto const& r) {
  tensor c;
  {
    vv::no_grad const off;
    c = r * r;
  }
  return r * r * r - c * r; // 3 x² - x²
};
} // namespace

TEST_CASE("custom functions in graphs keep their derivatives", "[graph][function]") {
  gives_everywhere(calls_tripled, vector_of({1, 2, 3}), {3, 3, 3}, 9);
}
TEST_CASE("custom functions with constant results in graphs", "[graph][function]") {
  gives_everywhere(calls_half_constant, vector_of({1, 2, 3}), {2, 6, 12}, 20);
}
TEST_CASE("custom functions two operators deep", "[graph][function]") {
  gives_two_deep(calls_tripled, vector_of({1, 2, 3}), {3, 3, 3}, 9);
}
TEST_CASE("no_grad in graphs", "[graph][grad_mode]") {
  gives_everywhere(without_gradient, vector_of({1, 2, 3}), {2, 8, 18}, 0);
}
TEST_CASE("no_grad two operators deep", "[graph][grad_mode]") {
  gives_two_deep(without_gradient, vector_of({1, 2, 3}), {2, 8, 18}, 0);
}

namespace {
/// r · noise, whatever the number of draws: linear, so that value and derivative agree at 1 where they are of one draw.
constexpr auto drawing = [](auto const& r) {
  return r * vv::randn({}, dtype::float64) + r * vv::randn({}, dtype::float64);
};
/// The gradient is of the numbers that the value is of, and what is drawn afterwards is what it would be without it.
void same_draws(function const& f) {
  tensor const ones = vv::full({3}, 1.0, dtype::float64);
  auto const agree = [&](std::function<std::pair<tensor, tensor>()> const& run, double plain, double next) {
    vv::manual_seed(7);
    auto const [v, g] = run();
    CHECK(element(v, 0) == Approx(plain));
    CHECK(sum_of(elements(g)) == Approx(plain));
    CHECK(element(vv::randn({}, dtype::float64), 0) == next);
  };
  vv::manual_seed(7);
  double const plain = element(f(ones), 0), next = element(vv::randn({}, dtype::float64), 0);
  auto const once = [&](tensor const& v) { return vv::value_and_grad(f)(v); };
  agree([&] { return once(ones); }, plain, next);
  agree(
      [&] {
        tensor const leaf = vv::clone(ones);
        leaf.requires_grad_();
        tensor const y = f(leaf);
        y.backward();
        return std::pair(vv::detach(y), leaf.grad());
      },
      plain, next);
  agree(
      [&] {
        auto const [y, pull] = vv::vjp(f, ones);
        return std::pair(y, std::get<0>(pull(vv::full({}, 1.0, dtype::float64))));
      },
      plain, next);
  agree([&] { return std::pair<tensor, tensor>(vv::jvp(f, std::tuple(ones), std::tuple(ones))); }, plain, next);
  agree(
      [&] {
        auto const [y, df] = vv::linearize(f, ones);
        return std::pair(y, df(ones));
      },
      plain, next);
  vv::graph const traced = vv::make_fx([&](tensor const& v) { return once(v); })(ones);
  CHECK(vv::verify(traced));
  agree(
      [&] {
        auto const y = vv::interpret(traced, vv::boxed_args(ones));
        return std::pair(y[0], y[1]);
      },
      plain, next);
  vv::graph const values = vv::make_fx(f)(ones);
  agree(
      [&] {
        return vv::value_and_grad([&](tensor const& v) { return tensor(vv::interpret(values, vv::boxed_args(v))[0]); })(
            ones);
      },
      plain, next);
  // f² has the derivative 2 f f', and that of its sum is 2 (Σ f')²: all of one draw.
  vv::manual_seed(7);
  auto const slope = [&](tensor const& v) {
    return vv::sum(vv::grad([&](tensor const& u) {
      tensor const y = f(u);
      return y * y;
    })(v));
  };
  CHECK(sum_of(elements(vv::grad(slope)(ones))) == Approx(2 * plain * plain));
  vv::manual_seed(7);
  auto const lanes = vv::vmap(once, vv::randomness::same)(vv::stack(std::vector{ones, ones}, 0));
  CHECK(sum_of(elements(lanes.first)) == Approx(2 * plain));
  CHECK(sum_of(elements(lanes.second)) == Approx(2 * plain));
  auto const apart = vv::vmap(once, vv::randomness::different)(vv::stack(std::vector{ones, ones}, 0));
  for (int k : {0, 1}) { CHECK(element(apart.first, k) == Approx(sum_of(elements(vv::select(apart.second, 0, k))))); }
  CHECK(element(apart.first, 0) != element(apart.first, 1));
}
} // namespace

TEST_CASE("random numbers in graphs: value and derivative are of one draw", "[graph][random]") {
  SECTION("map") { same_draws(in_map(drawing)); }
  SECTION("scan") { same_draws(in_scan(drawing)); }
  SECTION("while_loop") { same_draws(in_while(drawing)); }
  SECTION("cond") { same_draws(in_cond(drawing)); }
  SECTION("checkpoint") { same_draws(in_checkpoint(drawing)); }
  SECTION("cond in map") { same_draws(in_map(in_cond(drawing))); }
  SECTION("checkpoint in map") { same_draws(in_map(in_checkpoint(drawing))); }
  SECTION("map in checkpoint") { same_draws(in_checkpoint(in_map(drawing))); }
  SECTION("while_loop in cond") { same_draws(in_cond(in_while(drawing))); }
}

TEST_CASE("random numbers that a fused program would have to draw again are refused", "[graph][random][fuse]") {
  tensor const ones = vv::full({3}, 1.0, dtype::float64);
  CHECK_THROWS_WITH(vv::compile(vv::grad(in_map(drawing)))(ones), Catch::Contains("drawn again"));
  CHECK_THROWS_WITH(vv::compile(vv::grad(in_map(in_checkpoint(drawing))))(ones), Catch::Contains("drawn again"));
  auto const g = vv::make_fx(vv::grad(in_scan(drawing)))(ones);
  CHECK_THROWS_WITH(vv::fuse(g), Catch::Contains("interpret"));
  // Not where nothing is drawn again: values alone, and checkpoints of the whole.
  vv::manual_seed(7);
  double const plain = element(in_map(drawing)(ones), 0);
  vv::manual_seed(7);
  CHECK(element(vv::compile(in_map(drawing))(ones), 0) == Approx(plain));
  auto const both = vv::compile(vv::value_and_grad(in_checkpoint(drawing)));
  for (int round : {0, 1}) {
    INFO(round);
    auto const [value, gradient] = both(ones);
    CHECK(sum_of(elements(gradient)) == Approx(element(value, 0)));
  }
}

namespace {
/// As `tripled`, with a vmap of its own.
struct tripled_by_hand : vv::function<tripled_by_hand> {
  static tensor forward(tensor x) { return x * 1.0; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return g * 3.0; }
  static auto jvp(auto&, tensor t) { return t * 3.0; }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) { return std::pair(tripled_by_hand::apply(x), true); }
};
constexpr auto calls_by_hand = [](auto const& r) { return tripled_by_hand::apply(r); };
constexpr auto tripled_squared = [](auto const& r) { return tripled::apply(r) * tripled::apply(r); };
function summed_map(function const& body) {
  return [body](tensor const& v) { return vv::sum(vv::map(body, v)); };
}
} // namespace

TEST_CASE("custom functions in graphs: transforms inside of bodies, and of second order", "[graph][function]") {
  tensor const x = vector_of({1, 2, 3});
  auto const is = [&](function const& f, double slope) {
    CHECK(elements(vv::grad(f)(x)) == doubles({slope, slope, slope}));
    CHECK(elements(vv::compile(vv::grad(f))(x)) == doubles({slope, slope, slope}));
  };
  is(summed_map([](tensor const& r) { return vv::vmap(calls_tripled)(vv::reshape(r, dims{1})); }), 3);
  is(summed_map([](tensor const& r) { return vv::vmap(calls_by_hand)(vv::reshape(r, dims{1})); }), 3);
  is(
      [](tensor const& v) {
        return vv::sum(vv::vmap([](tensor const& e) { return vv::cond(e > 1.5, calls_tripled, calls_tripled, e); })(v));
      },
      3);
  is(summed_map([](tensor const& r) { return vv::grad(tripled_squared)(r); }), 18);
  auto const slope = vv::grad(summed_map(tripled_squared));
  CHECK(elements(vv::jvp(slope, std::tuple(x), std::tuple(vv::full_like(x, 1.0))).second) == doubles({18, 18, 18}));
  auto const bent = vv::hessian(summed_map(tripled_squared));
  CHECK(elements(bent(x)) == doubles({18, 0, 0, 0, 18, 0, 0, 0, 18}));
  CHECK(elements(vv::compile(bent)(x)) == doubles({18, 0, 0, 0, 18, 0, 0, 0, 18}));
}

TEST_CASE("grad modes in graphs: nested, by other guards, and around the trace", "[graph][grad_mode]") {
  tensor const x = vector_of({1, 2, 3});
  auto const in_inference = [](tensor const& r) {
    tensor c;
    {
      vv::inference_mode const off;
      c = r * r;
    }
    return r * r * r - c * r;
  };
  CHECK(elements(vv::grad(summed_map(in_inference))(x)) == doubles({2, 8, 18}));
  auto const on_again = [](tensor const& r) {
    vv::no_grad const off;
    tensor const c = r * 5.0;
    vv::enable_grad const on;
    return r * 3.0 + c;
  };
  auto const f = summed_map(on_again);
  vv::graph const g = vv::make_fx(f)(x);
  CHECK(elements(vv::grad(f)(x)) == doubles({3, 3, 3}));
  CHECK(elements(vv::grad([&](tensor const& v) { return tensor(vv::interpret(g, vv::boxed_args(v))[0]); })(x)) ==
        doubles({3, 3, 3}));
  // The mode around the trace is not the function's.
  vv::graph const quiet = [&] {
    vv::no_grad const off;
    return vv::make_fx([](tensor const& v) { return vv::sum(v * v); })(x);
  }();
  CHECK(elements(vv::grad([&](tensor const& v) { return tensor(vv::interpret(quiet, vv::boxed_args(v))[0]); })(x)) ==
        doubles({2, 4, 6}));
  auto const map_without = [](tensor const& v) {
    tensor c;
    {
      vv::no_grad const off;
      c = vv::map(calls_tripled, v);
    }
    return vv::sum(c * v);
  };
  CHECK(elements(vv::grad(map_without)(x)) == doubles({1, 2, 3}));
  CHECK(elements(vv::compile(vv::grad(map_without))(x)) == doubles({1, 2, 3}));
}

TEST_CASE("random numbers in graphs: every loop, mapped, and of second order", "[graph][random]") {
  tensor const ones = vv::full({4}, 1.0, dtype::float64), zero = vv::full({}, 0.0, dtype::float64);
  auto const linear = [&](function const& f) {
    vv::manual_seed(7);
    auto const [value, gradient] = vv::value_and_grad(f)(ones);
    CHECK(sum_of(elements(gradient)) == Approx(element(value, 0)));
    CHECK(element(value, 0) != 0);
  };
  auto const step = [](tensor const& c, tensor const& r) { return std::pair(c + drawing(r), vv::none); };
  linear([&](tensor const& v) { return vv::scan(step, zero, v, true).first; });
  linear([&](tensor const& v) { return vv::scan<0, 2>(step, zero, v).first; });
  linear([&](tensor const& v) { // carried noise
    auto const noisy = [](tensor const& c, tensor const& r) {
      return std::pair(c * vv::randn({}, dtype::float64) + r * 0.0, vv::none);
    };
    return vv::scan(noisy, vv::sum(v), v).first;
  });
  auto const few = [](tensor const& k, tensor const&, tensor const&) { return k < 3.0; };
  auto const add_noise = [](tensor const& k, tensor const& a, tensor const& u) {
    return std::tuple(k + 1.0, a + drawing(u));
  };
  auto const loop = [&](tensor const& v) {
    return vv::sum(std::get<1>(vv::while_loop(few, add_noise, std::tuple(zero, v * 0.0), v)));
  };
  linear(loop);
  auto const lanes = [&](function const& f) {
    linear([f](tensor const& v) { return vv::sum(vv::vmap(f, vv::randomness::different)(v)); });
    linear([f](tensor const& v) { return vv::sum(vv::vmap(f, vv::randomness::same)(v)); });
  };
  lanes([](tensor const& e) { return vv::sum(vv::map(drawing, vv::reshape(e, dims{1}))); });
  lanes([](tensor const& e) { return vv::cond(e > 0.0, drawing, drawing, e); });
  lanes([&](tensor const& e) { return std::get<1>(vv::while_loop<4>(few, add_noise, std::tuple(zero, e * 0.0), e)); });
  CHECK_THROWS_WITH(
      vv::grad([](tensor const& v) {
        return vv::sum(vv::vmap([](tensor const& e) { return vv::sum(vv::map(drawing, vv::reshape(e, dims{1}))); })(v));
      })(ones),
      Catch::Contains("randn is random"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) {
                      auto const more = [](tensor const& k, tensor const&) {
                        return k + vv::randn({}, dtype::float64) < 0.0;
                      };
                      auto const twice = [](tensor const& k, tensor const& a) { return std::tuple(k + 1.0, a * 2.0); };
                      return vv::sum(std::get<1>(vv::while_loop<4>(more, twice, std::tuple(zero, v))));
                    })(ones),
                    Catch::Contains("condition draws"));
  // n² v² has the gradient 2 n² v, which at 1 is its second derivative.
  auto const f = summed_map([](tensor const& r) {
    tensor const n = vv::randn({}, dtype::float64);
    return n * n * r * r;
  });
  auto const seeded = [](std::function<tensor()> const& run) {
    vv::manual_seed(3);
    return elements(run());
  };
  auto const want = seeded([&] { return vv::grad(f)(ones); });
  auto const slope = [&](tensor const& v) { return vv::sum(vv::grad(f)(v)); };
  auto const along = [&](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(ones)).second; };
  CHECK(seeded([&] { return vv::grad(slope)(ones); }) == want);
  CHECK(seeded([&] { return vv::jvp(vv::grad(f), std::tuple(ones), std::tuple(ones)).second; }) == want);
  CHECK(seeded([&] { return vv::grad(along)(ones); }) == want);
}
