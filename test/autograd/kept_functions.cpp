// SPDX-License-Identifier: BSL-1.0
// Custom functions and checkpoints in graphs: what was once lost, or refused though right.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

namespace {
/// Writes 2x over its operand; the derivative is said to be 5.
struct doubled_in_place : vv::function<doubled_in_place> {
  static tensor forward(tensor x) {
    vv::mul_(x, 2.0);
    return x;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, tensor g) { return g * 5.0; }
  static auto jvp(auto&, tensor t) { return t * 5.0; }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) { return std::pair(doubled_in_place::apply(x), true); }
};
/// Scales by a number, its derivative by another, both of which are no tensors; a third argument may be none.
struct scaled : vv::function<scaled> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(tensor const& x, double by, double slope, tensor const& shift) {
    (void)slope;
    return shift.defined() ? x * by + shift : x * by;
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.keep(std::get<2>(in)); }
  static auto backward(auto& ctx, tensor const& g) {
    return std::tuple(g * std::get<0>(ctx.kept()), vv::none, vv::none, vv::none);
  }
};
/// Two results, of which the second is no tensor at all where the argument says so.
struct with_hole : vv::function<with_hole> {
  static std::tuple<tensor, tensor> forward(tensor const& x, bool both) { return {x * 1.0, both ? x * x : tensor()}; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor const& g, tensor const&) { return std::tuple(g * 7.0, vv::none); }
};
/// A custom function whose forward calls another: derivatives are its own, 11.
struct outer_call : vv::function<outer_call> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(tensor const& x) { return scaled::apply(x, 2.0, 3.0, tensor()); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor const& g) { return g * 11.0; }
};
/// x², whose backward is written with operators: derivatives of any order, the first of them 3x².
struct odd_square : vv::function<odd_square> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto const& x) { return x * x; }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto const& g) {
    auto const [x] = ctx.saved();
    return g * x * x * 3.0;
  }
};
/// One that fills its context in forward, as the older form does.
struct combined : vv::function<combined> {
  static tensor forward(vv::dynamic_function_context& c, tensor const& x) {
    c.save_for_backward(x);
    return x * 1.0;
  }
  static auto backward(vv::dynamic_function_context& c, tensor const& g) { return g * c.saved()[0] * 4.0; }
};
/// Hides a tensor in an argument that is no tree.
struct box {
  tensor const* of;
};
struct reads_hidden : vv::function<reads_hidden> {
  static auto forward(tensor const& x, box const& b) { return x * *b.of; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor const& g) { return std::tuple(g, vv::none); }
};
struct view_and_sum : vv::function<view_and_sum> {
  static std::tuple<tensor, tensor> forward(tensor a) {
    vv::mul_(a, 2.0);
    return {a, vv::sum(a)};
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, tensor const& g, tensor const& h) { return (g + h) * 2.0; }
};

/// The gradient of a sum of f of rows, whatever way it is taken.
template <class F>
void gives(F const& f, std::vector<double> const& values, std::vector<double> const& gradient) {
  tensor const x = vector_of({1, 2, 3});
  auto const loss = [f](tensor const& v) { return vv::sum(f(v)); };
  auto const mapped = [f](tensor const& v) { return vv::map([f](tensor const& r) { return f(r); }, v); };
  auto const sum_of_map = [mapped](tensor const& v) { return vv::sum(mapped(v)); };
  vv::graph const g = vv::make_fx(f)(vv::clone(x)), m = vv::make_fx(mapped)(vv::clone(x));
  CHECK((vv::verify(g) && vv::verify(m)));
  auto const runs = [](vv::graph const& p) {
    return [p](tensor const& v) { return tensor(vv::interpret(p, boxed_args(v))[0]); };
  };
  CHECK(elements(f(vv::clone(x))) == values);
  CHECK(elements(runs(g)(vv::clone(x))) == values);
  CHECK(elements(runs(m)(vv::clone(x))) == values);
  CHECK(elements(vv::fuse(g)(boxed_args(x))[0]) == values);
  CHECK(elements(vv::compile(f)(vv::clone(x))) == values);
  CHECK(elements(vv::compile(mapped)(x)) == values);
  CHECK(elements(vv::grad(loss)(x)) == gradient);
  CHECK(elements(vv::grad(sum_of_map)(x)) == gradient);
  CHECK(elements(vv::compile(vv::grad(sum_of_map))(x)) == gradient);
  for (auto const& p : {g, m}) {
    auto const of_graph = [&](tensor const& v) { return vv::sum(runs(p)(v)); };
    CHECK(elements(vv::grad(of_graph)(x)) == gradient);
    CHECK(elements(vv::compile(vv::grad(of_graph))(x)) == gradient);
    CHECK(elements(vv::interpret(vv::make_fx(vv::grad(of_graph))(x), boxed_args(x))[0]) == gradient);
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    of_graph(leaf).backward();
    CHECK(elements(leaf.grad()) == gradient);
  }
}
} // namespace

TEST_CASE("custom functions of every form are kept by graphs", "[function][graph]") { // A1
  tensor const x = vector_of({1, 2, 3});
  SECTION("written over its operand") {
    gives([](tensor const& v) { return doubled_in_place::apply(v * 1.0); }, {2, 4, 6}, {5, 5, 5});
    auto const f = [](tensor const& v) {
      tensor const w = v * 1.0;
      tensor const y = doubled_in_place::apply(w);
      return w * y; // both are 2x, whose derivative is said to be 5
    };
    gives(f, {4, 16, 36}, {20, 40, 60});
    tensor const y = vv::clone(x);
    auto const g = vv::make_fx([](tensor const& v) { return doubled_in_place::apply(v); })(y);
    CHECK(elements(y) == doubles({2, 4, 6})); // as operators in place do
    tensor const z = vv::clone(x);
    (void)vv::interpret(g, boxed_args(z));
    CHECK(elements(z) == doubles({2, 4, 6}));
    auto const c = vv::compile([](tensor const& v) { return doubled_in_place::apply(v); });
    tensor const u = vv::clone(x);
    CHECK(elements(c(u)) == doubles({2, 4, 6}));
    CHECK(elements(u) == doubles({2, 4, 6}));
  }
  SECTION("with arguments that are no tensors, or none") {
    gives([](tensor const& v) { return scaled::apply(v, 2.0, 9.0, tensor()); }, {2, 4, 6}, {9, 9, 9});
    tensor const shift = vv::full({}, 1.0, dtype::float64);
    auto const f = [](tensor const& v) { return scaled::apply(v, 2.0, 9.0, vv::full({}, 1.0, dtype::float64)); };
    gives(f, {3, 5, 7}, {9, 9, 9});
  }
  SECTION("with a result that is none") {
    gives([](tensor const& v) { return std::get<0>(with_hole::apply(v, false)); }, {1, 2, 3}, {7, 7, 7});
    gives([](tensor const& v) { return std::get<0>(with_hole::apply(v, true)); }, {1, 2, 3}, {7, 7, 7});
  }
  SECTION("within one another") {
    gives([](tensor const& v) { return outer_call::apply(v); }, {2, 4, 6}, {11, 11, 11});
  }
  SECTION("its context filled in forward") {
    auto const f = [](tensor const& v) { return combined::apply(v); };
    vv::graph const g = vv::make_fx(f)(x);
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    vv::sum(vv::interpret(g, boxed_args(leaf))[0]).backward();
    CHECK(elements(leaf.grad()) == doubles({4, 8, 12}));
    CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::interpret(g, boxed_args(v))[0]); })(x),
                      Catch::Contains("setup_context"));
  }
}

TEST_CASE("second derivatives of custom functions in graphs", "[function][graph]") { // A1
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& v) {
    return vv::sum(vv::map([](tensor const& r) { return odd_square::apply(r); }, v));
  };
  auto const slope = [&](tensor const& v) { return vv::sum(vv::grad(f)(v)); };
  CHECK(elements(vv::grad(f)(x)) == doubles({3, 12, 27}));
  CHECK(elements(vv::grad(slope)(x)) == doubles({6, 12, 18}));
  CHECK(elements(vv::compile(vv::grad(slope))(x)) == doubles({6, 12, 18}));
  vv::graph const g = vv::make_fx(slope)(x);
  auto const of_graph = [&](tensor const& v) { return tensor(vv::interpret(g, boxed_args(v))[0]); };
  CHECK(elements(vv::grad(of_graph)(x)) == doubles({6, 12, 18}));
}

TEST_CASE("a traced value hidden in an argument of a custom function is refused", "[function][graph]") { // A1, C9
  tensor const x = vector_of({1, 2, 3});
  auto const hides = [](tensor const& v) {
    tensor const w = v * 2.0;
    return reads_hidden::apply(v, box{&w});
  };
  CHECK_THROWS_WITH(vv::make_fx(hides)(x), Catch::Contains("reads_hidden") && Catch::Contains("among its arguments"));
  CHECK_THROWS_WITH(vv::compile(hides)(x), Catch::Contains("reads_hidden"));
  CHECK(vv::this_thread_state.quiet());
  // A tensor of the program is what it is.
  auto const captures = vv::compile([&](tensor const& v) { return reads_hidden::apply(v, box{&x}); });
  CHECK(elements(captures(x)) == doubles({1, 4, 9}));
}

namespace {
/// x², of which 5 is said to be the derivative: for static values.
struct five : vv::function<five> {
  static constexpr auto forward(auto const& x) { return x * x; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto const& g) { return g * 5.0; }
  static constexpr auto jvp(auto&, auto const& t) { return t * 5.0; }
};
} // namespace

TEST_CASE("a graph of the compiler has the text of custom functions, and refuses its derivative", "[function][graph]") {
  constexpr auto traced = vv::trace([](auto const& x) { return vv::sum(five::apply(x) + x); }, vv::spec<double, 3>);
  vv::graph const g = traced.thaw();
  tensor const x = vector_of({1, 2, 3});
  auto const run = [&](tensor const& v) { return tensor(vv::interpret(g, boxed_args(v))[0]); };
  CHECK(elements(run(x)) == doubles({20}));
  CHECK_THROWS_WITH(vv::grad(run)(x), Catch::Contains("custom function") && Catch::Contains("make_fx"));
  CHECK_THROWS_WITH(vv::jvp(run, std::tuple(x), std::tuple(x)), Catch::Contains("custom function"));
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK_THROWS_WITH(run(leaf), Catch::Contains("custom function"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(run)(vv::reshape(v, dims{1, 3}))); })(x),
                    Catch::Contains("custom function"));
  vv::graph const again = vv::make_fx(run)(x);
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return tensor(vv::interpret(again, boxed_args(v))[0]); })(x),
                    Catch::Contains("custom function"));
  // Differentiated first, it is all there.
  constexpr auto slope =
      vv::trace(vv::grad([](auto const& x) { return vv::sum(five::apply(x) + x); }), vv::spec<double, 3>);
  CHECK(elements(vv::interpret(slope.thaw(), boxed_args(x))[0]) == doubles({6, 6, 6}));
  // The derivative of a checkpoint is that of its text.
  constexpr auto kept =
      vv::trace([](auto const& x) { return vv::sum(vv::checkpoint([](auto const& v) { return v * v; }, x)); },
                vv::spec<double, 3>);
  vv::graph const k = kept.thaw();
  CHECK(elements(vv::grad([&](tensor const& v) { return tensor(vv::interpret(k, boxed_args(v))[0]); })(x)) ==
        doubles({2, 4, 6}));
}

TEST_CASE("graphs show custom functions and grad modes, and tell them apart", "[graph][print]") {
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& v) { return outer_call::apply(v); };
  vv::graph const g = vv::make_fx(f)(x), h = vv::make_fx(f)(x);
  CHECK(vv::to_string(g).find("custom_function_call[") != std::string::npos);
  CHECK(vv::to_string(g).find("outer_call") != std::string::npos);
  CHECK(vv::equal(g, g));
  CHECK_FALSE(vv::equal(g, h)); // what their functions keep cannot be compared
  auto const constant = [](tensor const& v) {
    vv::no_grad const off;
    return v * v;
  };
  auto const both = [&](tensor const& v) { return constant(v) + v * v; };
  vv::graph const q = vv::make_fx(both)(x);
  CHECK(vv::to_string(q).find("mul(%0, %0) in no_grad") != std::string::npos);
  CHECK_FALSE(vv::equal(vv::make_fx(constant)(x), vv::make_fx([](tensor const& v) { return v * v; })(x)));
  CHECK(vv::cse(q).count(vv::mul) == 2); // equal values, of different derivatives
  CHECK(vv::fuse(q).results().size() == 1);
  vv::graph const values = vv::values_only(q);
  CHECK(vv::cse(values).count(vv::mul) == 1);
  auto const written = [](tensor const& v) {
    tensor const y = v * 1.0;
    vv::no_grad const off;
    vv::mul_(y, 2.0);
    return y;
  };
  CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(written)(x)), Catch::Contains("no_grad"));
  CHECK(elements(vv::compile(written)(x)) == doubles({2, 4, 6}));
}

TEST_CASE("gradients within a checkpoint", "[autograd][checkpoint]") { // C4
  auto const inner = [](tensor const& v) {
    tensor const y = vv::sum(vv::sin(v) * v * v);
    std::vector<tensor> const none;
    return vv::autograd::grad({y}, {v}, none, vv::autograd::options{.create_graph = true})[0] * v;
  };
  tensor const a = vector_of({1, 2, 3}), b = vector_of({1, 2, 3});
  a.requires_grad_(), b.requires_grad_();
  vv::sum(inner(a)).backward();
  vv::sum(vv::checkpoint(inner, b)).backward();
  for (int k : {0, 1, 2}) CHECK(element(b.grad(), k) == Approx(element(a.grad(), k)));
}

TEST_CASE("a view that is marked dirty beside another result is refused when it is written", "[function]") { // C8
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& v) {
    tensor const y = v * 1.0;
    auto const [a, s] = view_and_sum::apply(vv::slice(y, 0, 0, 2, 1));
    return vv::sum(a) + s;
  };
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK_THROWS_WITH(f(leaf), Catch::Contains("several results"));
  bool returned = false;
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) {
                      tensor const y = f(v);
                      returned = true;
                      return y;
                    })(x),
                    Catch::Contains("several results"));
  CHECK_FALSE(returned);
}
