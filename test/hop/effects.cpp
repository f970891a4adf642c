// SPDX-License-Identifier: BSL-1.0
// Operators that do something outside of the program: in order, each as often as the program says, and never while it
// is traced.
#include "effects_test.hpp"

#include <varve_test.hpp>

using namespace effects_test;

TEST_CASE("print: graphs, tokens and signatures", "[hop][effects][OH-S01]") {
  printed out;
  tensor const x = vector_of({1, 2});
  vv::graph const raw = vv::make_fx(moo)(x);
  CHECK(out.take().empty()); // a trace does not act
  CHECK(names_of(raw) == lines{"placeholder", "print.0", "add", "print.0"});
  CHECK(elements(vv::interpret(raw, vv::boxed_args(x))[0]) == reals{2, 4});
  CHECK(out.take() == lines{"moo", "moo"});

  vv::exported_program const p = vv::export_program(moo)(x);
  CHECK(out.take().empty());
  vv::graph const& g = p.graph;
  REQUIRE(vv::verify(g));
  CHECK(names_of(g) == lines{"placeholder", "placeholder", "with_effects", "add", "with_effects"});
  REQUIRE(p.signature.inputs.size() == 2);
  CHECK(p.signature.inputs[0].is == vv::input_spec::kind::token);
  CHECK(p.signature.count(vv::input_spec::kind::token) == 1);
  REQUIRE(p.signature.outputs.size() == 2);
  CHECK(p.signature.outputs[0].is == vv::output_spec::kind::token);
  CHECK(p.signature.count(vv::output_spec::kind::token) == 1);
  std::vector<int> calls; // each takes the token of the one before
  for (int n = 0; n < g.regions[0].node_count; ++n)
    if (g.nodes[n].op == &vv::hop_handle<vv::with_effects_t>) calls.push_back(n);
  REQUIRE(calls.size() == 2);
  auto const first_operand = [&](int n) { return g.edges[g.nodes[n].first]; };
  CHECK(first_operand(calls[0]) == 0);
  CHECK(first_operand(first_operand(calls[1])) == calls[0]);
  CHECK(first_operand(g.results[0]) == calls[1]);
  CHECK(elements(p(x)[0]) == reals{2, 4});
  CHECK(out.take() == lines{"moo", "moo"});

  vv::exported_program const inside = vv::unlift_effect_tokens(p);
  REQUIRE(vv::verify(inside.graph));
  CHECK(names_of(inside.graph) ==
        lines{"placeholder", "_make_token", "with_effects", "add", "with_effects", "_sink_tokens"});
  CHECK(inside.signature.inputs.size() == 1);
  CHECK(inside.signature.outputs.size() == 1);
  CHECK(elements(inside(x)[0]) == reals{2, 4});
  CHECK(out.take() == lines{"moo", "moo"});
}

TEST_CASE("effects: in every kind of trace", "[hop][effects]") {
  printed out;
  tensor const x = vector_of({1, 2});
  function const f = [](tensor const& v) {
    vv::print("{}", v);
    tensor const y = vv::softmax(v, 0);
    vv::print("then {}", y);
    return vv::zeros_like(v);
  };
  lines const expected{"tensor([1, 2], dtype=float64)", "then tensor([0.2689414214, 0.7310585786], dtype=float64)"};
  for (vv::graph const& g : {vv::make_fx(f)(x), vv::make_fx(f, vv::tracing::fake)(x),
                             vv::make_fx(f, vv::tracing::symbolic)(x), vv::make_fx(f, vv::tracing::pre_dispatch)(x)}) {
    REQUIRE(vv::verify(g));
    CHECK(out.take().empty());
    for (vv::graph const& h : {g, vv::optimize(g)}) {
      CHECK(elements(vv::interpret(h, vv::boxed_args(x))[0]) == reals{0, 0});
      CHECK(out.take() == expected);
    }
    vv::graph const again = vv::make_fx([&](tensor const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; })(x);
    CHECK(out.take().empty());
    (void)vv::interpret(again, vv::boxed_args(x));
    CHECK(out.take() == expected);
    // A functional graph, under transforms and traced again.
    vv::graph const tokens = vv::with_effect_tokens(vv::optimize(g));
    auto const functional = [&](tensor const& v) {
      return vv::sum(vv::interpret(tokens, vv::boxed_args(vv::zeros(dims{0}, dtype::bool_), v))[1] * v);
    };
    CHECK(elements(vv::grad(functional)(x)) == reals{0, 0});
    CHECK(out.take() == expected);
    (void)vv::jvp(functional, std::tuple(x), std::tuple(x));
    CHECK(out.take() == expected);
    vv::graph const both = vv::make_fx(vv::grad(functional))(x);
    CHECK(out.take().empty());
    (void)vv::interpret(vv::optimize(both), vv::boxed_args(x));
    CHECK(out.take() == expected);
  }
  vv::graph const wide = vv::make_fx(f, vv::tracing::symbolic)(x);
  (void)vv::interpret(vv::with_effect_tokens(wide), vv::boxed_args(vv::zeros(dims{0}, dtype::bool_), vv::ones({3})));
  CHECK(out.take().size() == 2);
}

TEST_CASE("print: texts and values", "[hop][effects]") {
  printed out;
  vv::print("{} and {{{}}}", vector_of({1, 2}), 3);
  vv::print("{}", vv::array<float, 2>{1, 2});
  vv::print("{} {} {} {} {} {} {} {}", 1, 2.5, true, 4, 5, 6, 7, vv::sum(vector_of({8})));
  vv::print(std::string(161, 'x'));
  vv::print("naïve");
  CHECK(out.take() == lines{"tensor([1, 2], dtype=float64) and {3}", "tensor([1, 2])", "1 2.5 true 4 5 6 7 8",
                            std::string(161, 'x'), "naïve"});
  CHECK_THROWS_WITH(vv::print(std::string(162, 'x')), ContainsText("more than 161 characters"));
  CHECK_THROWS_WITH(vv::print("{}"), ContainsText("as many {} as there are values"));
  CHECK_THROWS_WITH(vv::print("x", 1), ContainsText("as many {} as there are values"));
  CHECK_THROWS_WITH(vv::print("{x}", 1), ContainsText("stands alone"));
  CHECK_THROWS_WITH(vv::print("}", 1), ContainsText("stands alone"));
  vv::print("{}", vv::to(vector_of({1, 2}), dtype::bfloat16));
  CHECK(out.take() == lines{"tensor([1, 2], dtype=bfloat16)"});
}

TEST_CASE("effects: passes keep each, in the order of the program", "[hop][effects]") {
  function const f = [](tensor const& x) {
    program::note(x);
    program::note(x); // equal ones stay two
    tensor const y = x * 1.0;
    program::note(y + 1.0); // used by nobody else
    vv::add_(y, 2.0);
    program::note(y); // as written by then
    tensor const z = vv::wrap([](tensor const& v) { return program::note(v * 3.0), v; }, y);
    return vv::sum(z);
  };
  tensor const x = vector_of({1, 2});
  reals const expected{3, 3, 5, 7, 21};
  f(x);
  CHECK(take() == expected);
  vv::graph const raw = vv::make_fx(f)(x);
  for (vv::graph const& g : {raw, vv::dce(raw), vv::optimize(raw), vv::optimize(raw, vv::purpose::values),
                             vv::functionalize(raw), vv::inline_calls(raw), vv::share_regions(raw),
                             vv::with_effect_tokens(vv::optimize(raw)), vv::dce(vv::with_effect_tokens(raw))}) {
    REQUIRE(vv::verify(g));
    CHECK(count_of(g, "note") == 5 + (g.regions.size() == 2 && count_of(g, "wrap") == 0)); // a body that nobody calls
    CHECK(take().empty());
    vv::boxed_args in(x);
    if (count_of(g, "with_effects")) in = vv::boxed_args(vv::zeros(dims{0}, dtype::bool_), x);
    (void)vv::interpret(g, in);
    CHECK(take() == expected);
  }
  vv::graph const functional = vv::make_fx(vv::functionalize(f))(x);
  CHECK_FALSE(vv::has_mutation(functional));
  (void)vv::interpret(functional, vv::boxed_args(x));
  CHECK(take() == expected);
  auto const none = [](tensor const& v) {
    program::note(v);
    return v;
  }; // nothing but the effect
  (void)vv::interpret(vv::dce(vv::make_fx(none)(x)), vv::boxed_args(x));
  CHECK(take() == reals{3});
}

TEST_CASE("effects: derivatives pass by", "[hop][effects]") {
  function const f = [](tensor const& x) {
    tensor const y = x * x;
    program::note(y);
    return vv::sum(y);
  };
  tensor const x = vector_of({1, 2}), one = vector_of({1, 1});
  CHECK(elements(vv::grad(f)(x)) == reals{2, 4});
  CHECK(take() == reals{5});
  CHECK(vv::jvp(f, std::tuple(x), std::tuple(one)).second.item<double>() == 6);
  CHECK(take() == reals{5});
  auto const linear = vv::linearize(f, x);
  CHECK(take() == reals{5}); // of the primal, now
  (void)linear.second(one);
  CHECK(take().empty());
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(f)(v)); })(x)) == reals{2, 2});
  CHECK(take() == reals{5});
  tensor const w = vector_of({1, 2}).requires_grad_();
  f(w).backward();
  CHECK(take() == reals{5});
  CHECK(elements(w.grad()) == reals{2, 4});
  vv::graph const g = vv::make_fx(vv::grad(f))(x);
  CHECK(count_of(g, "note") == 1);
  CHECK(take().empty());
  // On static values.
  auto const s = [](auto x) { return program::note(x * x), x * x; };
  CHECK(vv::grad(s)(3.0) == 6);
  CHECK(vv::jvp(s, std::tuple(3.0), std::tuple(1.0)).second == 6);
  CHECK(take() == reals{9, 9});
  printed out;
  auto const p = [](auto x) { return vv::print("{}", x * x), x * x; };
  CHECK(vv::grad(vv::grad(p))(3.0) == 2);
  CHECK(out.take() == lines{"9"});
}

TEST_CASE("effects: in branches and loops, once for each run", "[hop][effects]") {
  auto const step = [](tensor const& c, tensor const& row) {
    program::note(row);
    tensor const n = c * row;
    program::note(n);
    return std::pair{n, vv::sum(n)};
  };
  function const scanned = [&](tensor const& x) {
    return vv::sum(vv::scan(step, vv::ones(dims{2}, x.dtype()), x).first);
  };
  function const mapped = [](tensor const& x) {
    return vv::sum(vv::map([](tensor const& r) { return program::note(r), r * r; }, x));
  };
  function const branched = [](tensor const& x) {
    auto const on_true = [](tensor const& v) { return program::note(v), vv::sum(v * v); };
    auto const on_false = [](tensor const& v) { return program::note(v * -1.0), vv::sum(v); };
    return vv::cond(vv::gt(vv::sum(x), 0.0), on_true, on_false, x);
  };
  function const looped = [](tensor const& x) {
    return vv::sum(
        vv::while_loop<9>([](tensor const& v) { return program::note(vv::sum(v)), vv::lt(vv::sum(v), 100.0); },
                          [](tensor const& v) { return program::note(v), v * 2.0; }, x));
  };
  auto const check = [](function const& f, tensor const& x, bool ahead_of_time = true) {
    take();
    tensor const y = f(x);
    reals const expected = take();
    REQUIRE(!expected.empty());
    tensor const g = vv::grad(f)(x); // not again for the gradient
    CHECK(take() == expected);
    tensor const w = vv::clone(x).requires_grad_();
    f(w).backward();
    CHECK(take() == expected);
    CHECK(elements(w.grad()) == elements(g));
    vv::graph const raw = vv::make_fx(f)(x), both = vv::make_fx(vv::grad(f))(x);
    CHECK(take().empty());
    for (vv::graph const& k : {raw, vv::optimize(raw), vv::dce(raw)}) {
      REQUIRE(vv::verify(k));
      CHECK(elements(vv::interpret(k, vv::boxed_args(x))[0]) == elements(y));
      CHECK(take() == expected);
    }
    for (vv::graph const& k : {both, vv::optimize(both)}) {
      CHECK(elements(vv::interpret(k, vv::boxed_args(x))[0]) == elements(g));
      CHECK(take() == expected);
    }
    (void)vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x)));
    CHECK(take() == expected);
    vv::exported_program const p = vv::export_program(f)(x);
    REQUIRE(vv::verify(p.graph));
    CHECK(p.tokens() == 1);
    CHECK(take().empty());
    CHECK(elements(p(x)[0]) == elements(y));
    CHECK(take() == expected);
    CHECK(elements(vv::unlift_effect_tokens(p)(x)[0]) == elements(y));
    CHECK(take() == expected);
    vv::exported_program const q = vv::program_from_text(vv::to_text(p));
    CHECK(vv::equal(p.graph, q.graph));
    CHECK(elements(q(x)[0]) == elements(y));
    CHECK(take() == expected);
    auto const a = vv::aot_function(f);
    tensor const v = vv::clone(x).requires_grad_();
    if (ahead_of_time) {
      tensor const z = a(v);
      CHECK(take() == expected);
      z.backward();
      CHECK(take().empty());
      CHECK(elements(v.grad()) == elements(g));
    }
    auto const c = vv::compile(f);
    for (int k = 0; k < 2; ++k) {
      CHECK(elements(c(x)) == elements(y));
      CHECK(take() == expected);
    }
    CHECK(elements(vv::compile(vv::grad(f))(x)) == elements(g));
    CHECK(take() == expected);
  };
  SECTION("scan") { check(scanned, rows()); }
  SECTION("map") { check(mapped, rows()); }
  SECTION("cond, taken") { check(branched, rows()); }
  SECTION("cond, not taken") { check(branched, vv::neg(rows())); }
  SECTION("while_loop") { check(looped, rows(), false); } // has no gradient ahead of time
  SECTION("a branch of a step") {
    check([&](tensor const& x) { return vv::sum(vv::map(branched, x)); }, vv::sub(rows(), 3.0));
  }
  SECTION("a step of a branch") {
    check([&](tensor const& x) { return vv::cond(vv::gt(vv::sum(x), 0.0), scanned, mapped, x); }, rows());
  }
}

TEST_CASE("effects: a value of the world, which gradients ask for again", "[hop][effects]") {
  function const f = [](tensor const& x) { return vv::sum(program::ask(x) * x); };
  tensor const x = vector_of({1, 2});
  program::asked = 0;
  CHECK(f(x).item<double>() == 1 * 2 + 2 * 3);
  CHECK(program::asked == 1);
  vv::graph const g = vv::make_fx(vv::grad(f))(x);
  CHECK(program::asked == 1);
  CHECK(count_of(g, "ask") == 1);
  CHECK(elements(vv::interpret(vv::optimize(g), vv::boxed_args(x))[0]) == reals{1 + 1 + 2, 2 + 2 + 2});
  CHECK(program::asked == 2);
  auto const a =
      vv::aot_function(f, {.partition_fn = [](auto const& h, auto s) { return vv::min_cut_partition(h, s); }});
  tensor const w = vector_of({1, 2}).requires_grad_();
  tensor const y = a(w);
  CHECK(program::asked == 3);
  y.backward();
  CHECK(program::asked == 3); // its value was saved
  CHECK(elements(w.grad()) == reals{1 + 1 + 3, 2 + 2 + 3});
}

namespace {
struct noting : vv::function<noting> {
  static auto forward(tensor const& x) { return program::note(x), x * x; }
  static auto setup_context(auto ctx, auto const& inputs, auto const&) {
    return ctx.save_for_backward(std::get<0>(inputs));
  }
  static auto backward(auto& ctx, tensor const& g) {
    program::note(std::get<0>(ctx.saved()) * 10.0); // of no tangent
    program::note(g * 100.0);
    return 2.0 * g * std::get<0>(ctx.saved());
  }
};
} // namespace

TEST_CASE("effects: ahead of time, in both passes", "[hop][effects][aot]") {
  function const f = [](tensor const& x) {
    tensor const y = noting::apply(x);
    program::note(y);
    return vv::sum(y);
  };
  tensor const x = vector_of({1, 2});
  tensor const w = vector_of({1, 2}).requires_grad_();
  f(w).backward();
  reals const forward{3, 5}, backward{30, 200};
  CHECK(take() == reals{3, 5, 30, 200});
  std::vector<vv::partitioner> const cuts{
      [](auto const& g, auto s) { return vv::default_partition(g, s); },
      [](auto const& g, auto s) { return vv::min_cut_partition(g, s); },
      [](auto const& g, auto s) { return vv::min_cut_partition(g, s, {.memory_budget = 0}); }};
  for (auto const& cut : cuts) {
    std::vector<vv::graph> parts;
    auto const keep = [&](vv::graph const& g) -> vv::boxed_function {
      parts.push_back(g);
      return vv::backends::aot_eager(g);
    };
    auto const a = vv::aot_function(f, {.fw_compiler = keep, .partition_fn = cut});
    tensor const v = vector_of({1, 2}).requires_grad_();
    tensor const y = a(v);
    CHECK(take() == forward);
    y.backward();
    CHECK(take() == backward);
    CHECK(elements(v.grad()) == reals{2, 4});
    REQUIRE(parts.size() == 2);
    for (vv::graph const& g : parts) {
      REQUIRE(vv::verify(g));
      CHECK(count_of(g, "with_effects") == 2);
    }
    CHECK(parts[0].nodes[0].out == vv::meta{dtype::bool_, dims{0}}); // tokens: the first argument and result
    CHECK(parts[0].nodes[parts[0].results[0]].out == vv::meta{dtype::bool_, dims{0}});
    (void)a(x); // no gradient
    CHECK(take() == forward);
  }
  auto const fused = vv::aot_function(f, {.fw_compiler = vv::backends::fused});
  CHECK_THROWS_WITH(fused(w), ContainsText("note: it does something outside of the program"));
  CHECK(take().empty());
  auto const only_backward = vv::aot_function([](tensor const& v) {
    tensor const y = v * v;
    if (y.requires_grad()) y.register_hook([](tensor const& g) { return program::note(g), g; });
    return vv::sum(y);
  });
  tensor const v = vector_of({1, 2}).requires_grad_();
  tensor const y = only_backward(v);
  CHECK(take().empty());
  y.backward();
  CHECK(take() == reals{2});
}

TEST_CASE("effects: under vmap", "[hop][effects]") {
  printed out;
  function const f = [](tensor const& x) {
    vv::print("row {} of {}", x, 3);
    vv::print("all");
    return vv::sum(x);
  };
  (void)vv::vmap(f)(rows());
  lines const expected{"row tensor([1, 2], dtype=float64) of 3", "row tensor([3, 4], dtype=float64) of 3",
                       "row tensor([5, 6], dtype=float64) of 3", "all"};
  CHECK(out.take() == expected);
  vv::graph const g = vv::make_fx(vv::vmap(f))(rows());
  CHECK(out.take().empty());
  (void)vv::interpret(g, vv::boxed_args(rows()));
  CHECK(out.take() == expected);
  (void)vv::vmap(vv::vmap([](tensor const& x) { return vv::print("{}", x), x; }))(rows());
  CHECK(out.take() == lines{"1", "2", "3", "4", "5", "6"});
  (void)vv::vmap(vv::grad([](tensor const& x) { return vv::print("{}", x), x * x; }))(vector_of({1, 2}));
  CHECK(out.take() == lines{"1", "2"});
  CHECK_THROWS_WITH(vv::vmap([](tensor const& x) { return program::note(x), x; })(rows()),
                    ContainsText("note has no rule for vmap"));
  CHECK(take().empty());
  // Lanes that do not take a branch would print too.
  auto const on_true = [](tensor const& x) { return vv::print("yes {}", x), x; };
  auto const on_false = [](tensor const& x) { return x * 2.0; };
  function const branched = [&](tensor const& x) { return vv::cond(vv::gt(x, 1.0), on_true, on_false, x); };
  CHECK_THROWS_WITH(vv::vmap(branched)(vector_of({1, 2})),
                    ContainsText("print.1: a function that only some lanes run"));
  function const looped = [](tensor const& x) {
    return vv::while_loop<9>([](tensor const& v) { return vv::lt(v, 4.0); },
                             [](tensor const& v) { return vv::print("step"), v * 2.0; }, x);
  };
  CHECK_THROWS_WITH(vv::vmap(looped)(vector_of({1, 2})), ContainsText("print.0: a function that only some lanes run"));
  CHECK(out.take().empty());
}

TEST_CASE("effects: compile runs them in each call", "[hop][effects][compile]") {
  printed out;
  tensor const b = vector_of({1, 1});
  auto const f = vv::compile([&](tensor const& x) {
    vv::print("before {}", b);
    vv::add_(b, x);
    vv::print("after {}", b);
    return std::pair{x, vv::reshape(x, dims{2, 1})};
  });
  tensor const x = vector_of({1, 2});
  auto const y = f(x);
  CHECK(out.take() == lines{"before tensor([1, 1], dtype=float64)", "after tensor([2, 3], dtype=float64)"});
  CHECK_FALSE(y.first.shares_storage(x));
  CHECK_FALSE(y.second.shares_storage(x));
  (void)f(x);
  CHECK(out.take() == lines{"before tensor([2, 3], dtype=float64)", "after tensor([3, 5], dtype=float64)"});
  CHECK(elements(b) == reals{3, 5});
  CHECK(f.versions() == 1);
}

TEST_CASE("effects: what is fused or emitted refuses them by name", "[hop][effects]") {
  tensor const x = vector_of({1, 2});
  vv::graph const g = vv::make_fx(moo)(x);
  CHECK_THROWS_WITH(vv::fuse(g), ContainsText("print.0: it does something outside of the program"));
  CHECK_THROWS_WITH(vv::fuse(vv::with_effect_tokens(vv::optimize(g))),
                    ContainsText("print.0: it does something outside of the program"));
  CHECK_THROWS_WITH(vv::emit_cpp(g, "moo"), ContainsText("print.0: it does something outside of the program"));
}

TEST_CASE("effects: saved programs need nothing of the process that made them", "[hop][effects][save]") {
  printed out;
  tensor w = vector_of({2, 3}).requires_grad_();
  tensor count = vector_of({0, 0});
  function const f = [&](tensor const& x) {
    vv::print("x \"{}\"\n\\", vv::sum(x));
    vv::add_(count, 1.0);
    vv::print("count {}", count);
    return x * w;
  };
  vv::exported_program const p =
      vv::export_program(f, {.state = {vv::parameter("w", w), vv::buffer("count", count)}})(vector_of({1, 2}));
  CHECK(out.take().empty());
  CHECK(p.state_of("count").is(count));
  auto const path = (std::filesystem::temp_directory_path() / "varve_effects").string();
  vv::save(p, path);
  vv::exported_program const q = vv::load(path);
  CHECK(vv::equal(p.graph, q.graph));
  CHECK(q.state[0].requires_grad());
  std::filesystem::remove(path), std::filesystem::remove(path + ".safetensors");
  lines const expected{"x \"3\"", "\\", "count tensor([1, 1], dtype=float64)"};
  CHECK(elements(p(vector_of({1, 2}))[0]) == reals{2, 6});
  CHECK(out.take() == expected);
  CHECK(elements(q(vector_of({1, 2}))[0]) == reals{2, 6});
  CHECK(out.take() == expected);
  CHECK(elements(q.state_of("count")) == reals{1, 1});
  CHECK_THROWS_WITH(q(vector_of({1, 2}), vector_of({1, 2})), ContainsText("there are 1 inputs, not 2"));
  std::string text = vv::to_text(p);
  for (auto const& [from, to] : {std::pair<std::string, std::string>{"output token", "output user_output"},
                                 {"input token", "input buffer"},
                                 {"input parameter", "input token"}}) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    CHECK_THROWS_AS(vv::program_from_text(other), vv::value_error);
  }
}

TEST_CASE("effects: a checkpoint that runs again does not act again", "[hop][effects]") {
  tensor const x = vector_of({1, 2}).requires_grad_();
  function const f = [](tensor const& v) { return program::note(v), vv::sin(v) * v; };
  vv::sum(vv::checkpoint(f, x)).backward();
  CHECK(take() == reals{3});
  function const whole = [&](tensor const& v) { return vv::sum(vv::checkpoint(f, v)); };
  vv::graph const g = vv::make_fx(vv::grad(whole))(vector_of({1, 2}));
  CHECK(take().empty());
  (void)vv::interpret(g, vv::boxed_args(vector_of({1, 2})));
  CHECK(take() == reals{3});
}

TEST_CASE("effects: on fake tensors nothing happens", "[hop][effects][fake]") {
  vv::fake_mode mode;
  tensor const x = mode.from_tensor(vector_of({1, 2}));
  vv::fake_mode_guard const on(mode);
  printed out;
  program::note(x);
  vv::print("{}", x);
  CHECK(take().empty());
  CHECK(out.take().empty());
}

TEST_CASE("effects: loops in segments, and second derivatives", "[hop][effects]") {
  take();
  auto const step = [](tensor const& c, tensor const& row) { return program::note(row), std::pair{c * row, c}; };
  function const f = [&](tensor const& x) { return vv::scan<0, 2>(step, vv::sum(x), x).first; };
  tensor const x = vector_of({1, 2, 3, 4});
  reals const expected{1, 2, 3, 4};
  CHECK(f(x).item<double>() == 240);
  CHECK(take() == expected);
  (void)vv::grad(f)(x);
  CHECK(take() == expected);
  (void)vv::hessian(f)(x);
  CHECK(take() == expected);
  (void)vv::jacrev([&](tensor const& v) { return vv::reshape(f(v), dims{1}); })(x);
  CHECK(take() == expected);
  tensor const w = vv::clone(x).requires_grad_();
  vv::sum(vv::grad(f)(w)).backward();
  CHECK(take() == expected);
}

TEST_CASE("effects: programs without results, and sizes that change", "[hop][effects][aot]") {
  printed out;
  auto const told = [](tensor const& x) { vv::print("x {}", x); };
  tensor const x = vector_of({1, 2});
  lines const expected{"x tensor([1, 2], dtype=float64)"};
  vv::aot_function(told)(x);
  CHECK(out.take() == expected);
  vv::compile(told)(x);
  CHECK(out.take() == expected);
  auto const p = vv::export_program([](tensor const& v) { return vv::print("x {}", v), std::vector<tensor>(); })(x);
  CHECK(p(x).empty());
  CHECK(out.take() == expected);
  CHECK(vv::unlift_effect_tokens(p)(x).empty());
  CHECK(out.take() == expected);

  function const f = [](tensor const& v) {
    vv::print("sum {}", vv::sum(v));
    return vv::sum(noting::apply(v));
  };
  auto const any = vv::compile(f, vv::backends::aot_eager);
  for (int n : {2, 3, 4, 5}) {
    tensor const w = vv::ones({n}, dtype::float64).requires_grad_();
    tensor const y = any(w);
    CHECK(out.take() == lines{"sum " + std::to_string(n)});
    CHECK(take() == reals{double(n)});
    y.backward();
    CHECK(take() == reals{10.0 * n, 100.0 * n});
  }
  CHECK(any.versions() <= 2);
}

TEST_CASE("effects: exported programs under transforms", "[hop][effects][export]") {
  printed out;
  auto const p =
      vv::export_program([](tensor const& v) { return vv::print("{}", v), vv::sum(v * v); })(vector_of({1, 2}));
  function const f = [&](tensor const& v) { return p(v)[0]; };
  CHECK(elements(vv::grad(f)(vector_of({1, 2}))) == reals{2, 4});
  CHECK(out.take() == lines{"tensor([1, 2], dtype=float64)"});
  CHECK(elements(vv::vmap(f)(rows())) == reals{5, 25, 61});
  CHECK(out.take() ==
        lines{"tensor([1, 2], dtype=float64)", "tensor([3, 4], dtype=float64)", "tensor([5, 6], dtype=float64)"});
  CHECK(elements(vv::vmap(vv::grad(f))(rows())) == reals{2, 4, 6, 8, 10, 12});
  CHECK(out.take().size() == 3);
  CHECK_THROWS_WITH(vv::unlift_effect_tokens(vv::make_fx(moo)(vector_of({1, 2}))),
                    ContainsText("the first argument and the first result are no token"));
}
