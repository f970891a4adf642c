// SPDX-License-Identifier: BSL-1.0
// Writes in functions of branches, loops and graphs, and the derivatives of what was written.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("what a recorded loop or branch was given is not written into before its gradient is taken", "[hop][grad]") {
  tensor const x = vector_of({0.5, 1, 2});
  auto const check = [&](char const* name, auto const& loop) {
    auto const f = [&](tensor const& v) {
      tensor const c = vv::cos(v), y = loop(c);
      vv::mul_(c, 2.0);
      return vv::sum(y);
    };
    auto const refused = ContainsText("operand or result of " + std::string(name));
    CHECK_THROWS_WITH(vv::grad(f)(x), refused);
    CHECK_THROWS_WITH(vv::vmap(vv::grad(f))(vv::reshape(x, dims{1, 3})), refused);
    CHECK(vv::this_thread_state.quiet());
  };
  auto const exp = [](tensor const& r) { return vv::exp(r); };
  auto const product = [](tensor const& a, tensor const& r) { return std::pair(a * r, vv::none); };
  check("map", [&](tensor const& c) { return vv::map(exp, c); });
  check("scan", [&](tensor const& c) { return vv::scan(product, vv::ones({}, dtype::float64), c).first; });
  check("while_loop",
        [&](tensor const& c) { return vv::while_loop([](tensor const& a) { return vv::sum(a) < 100.0; }, exp, c); });
  auto const lane = [&](tensor const& u) { return vv::cond(u > 0.0, exp, [](tensor const& r) { return r * r; }, u); };
  auto const lanes = [&](bool writes) { // branches that some lanes take are given copies
    return vv::grad([&, writes](tensor const& v) {
      tensor const c = vv::cos(v), y = vv::vmap(lane)(c);
      if (writes) vv::mul_(c, 2.0);
      return vv::sum(y);
    })(x);
  };
  CHECK(elements(lanes(true)) == elements(lanes(false)));
}

TEST_CASE("forward mode does not pass over a write of a graph's branch into its operand", "[hop][jvp]") {
  tensor const x = vector_of({0.5, 1, 2}), one = vector_of({1, 1, 1});
  auto const check = [&](auto const& f) {
    vv::graph const g = vv::make_fx(f)(x);
    CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == elements(f(x)));
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).second) == doubles({-2, -2, -2}));
    auto const run = [&](tensor const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; };
    CHECK_THROWS_WITH(vv::jvp(run, std::tuple(x), std::tuple(one)), ContainsText("writes into its operand"));
  };
  auto const doubles_it = [](tensor const& a) { return vv::mul_(a, 2.0), a * 1.0; };
  auto const same = [](tensor const& a) { return a * 1.0; };
  check([&](tensor const& v) {
    tensor const w = -v, z = vv::cond(vv::sum(v) > 0, doubles_it, same, w);
    return w + z * 0.0;
  });
  check([&](tensor const& v) {
    tensor const w = -v, z = vv::checkpoint(doubles_it, w);
    return w + z * 0.0;
  });
}

TEST_CASE("a branch that is traced, but not taken, writes into nothing that a level has", "[hop][jvp][grad]") {
  tensor const x = vector_of({-0.5, -1, 2}), one = vector_of({1, 1, 1});
  auto const f = [](tensor const& v) {
    tensor const w = v * 3.0;
    auto const writes = [&](tensor const& a) { return vv::sub_(w, w), a * 1.0; };
    auto const same = [](tensor const& a) { return a * 1.0; };
    (void)vv::cond(vv::select(v, 0, 0) > 0, writes, same, v);
    return w;
  };
  auto const tangent = [&](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(one)).second; };
  CHECK(elements(tangent(x)) == doubles({3, 3, 3}));
  auto const refused = ContainsText("the function of a higher-order operator writes into");
  CHECK_THROWS_WITH(vv::linearize(f, x), refused);
  auto const gradient = [&](tensor const& v) { return vv::grad([&](tensor const& u) { return vv::sum(f(u)); })(v); };
  CHECK_THROWS_WITH(vv::make_fx(gradient)(x), refused); // its graph would be for either branch
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a view whose base was written keeps its tangent when a traced branch asks for it first", "[hop][jvp]") {
  tensor const x = vector_of({-0.5, -1, 2}), one = vector_of({1, 1, 1});
  auto const f = [](tensor const& v) {
    tensor const w = vv::clone(v), all = vv::slice(w, 0, 0, 3);
    vv::mul_(w, 2.0);
    auto const uses = [all](tensor const& a) { return a * 0.5 + vv::sum(all); };
    return vv::cond(vv::select(w, 0, 0) > 0, uses, uses, v);
  };
  CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).second) == doubles({6.5, 6.5, 6.5}));
  CHECK(elements(vv::linearize(f, x).second(one)) == doubles({6.5, 6.5, 6.5}));
}

TEST_CASE("forward mode does not pass over a write of a traced branch into what it captures", "[hop][jvp]") {
  tensor const x = vector_of({0.5, 1}), zero = vv::zeros({}, dtype::int64);
  auto const f = [](tensor const& v, tensor const& which) { // the operand is the captured tensor
    tensor const w = v * 1.0;
    return vv::cond(
        which, [&](tensor const& a) { return vv::clone(a); },
        [&](tensor const& a) { return vv::fill_(w, -1.0), a * 2.0; }, w);
  };
  auto const along = [&](tensor const& v, tensor const& which) {
    return vv::jvp([&](tensor const& u) { return f(u, which); }, std::tuple(v), std::tuple(v)).second;
  };
  CHECK(elements(along(x, zero)) == doubles({0, 0}));
  auto const refused = ContainsText("writes into its operand, or what it captures, whose tangent would not change");
  CHECK_THROWS_WITH(vv::make_fx(along)(x, zero), refused);
  CHECK_THROWS_WITH(vv::compile(along)(x, zero), ContainsText("return the new value instead"));
}

TEST_CASE("the tangent of a view that a function of a function asks for first is that of the program", "[hop][jvp]") {
  using values = std::vector<tensor>;
  tensor const x = vector_of({-1.25, -1}), one = vector_of({1, 0});
  auto const steps = [](tensor const& start, auto const& body) {
    vv::while_loop([](values const& c) { return c[0] < 2; },
                   [&](values const& c) { return body(), values{c[0] + 1, vv::clone(c[1])}; },
                   values{vv::zeros({}, dtype::int64), start});
  };
  auto const f = [&](tensor const& v) {
    tensor const whole = vv::clone(v), view = vv::slice(whole, 0, 0, 2);
    vv::fill_(vv::select(whole, 0, 1), 1.0);
    steps(v, [&] { steps(view, [] {}); });
    return vv::sum(vv::sin(view));
  };
  double const right = std::cos(-1.25);
  CHECK(vv::linearize(f, x).second(one).item<double>() == Approx(right));
  auto const along = [&](tensor const& v, tensor const& t) { return vv::jvp(f, std::tuple(v), std::tuple(t)).second; };
  CHECK(along(x, one).item<double>() == Approx(right));
  CHECK(vv::interpret(vv::make_fx(along)(x, one), vv::boxed_args(x, one))[0].item<double>() == Approx(right));
  CHECK(vv::compile(along)(x, one).item<double>() == Approx(right));
}

TEST_CASE("a write in no_grad mode within a trace is not read as a constant", "[hop][functionalize]") {
  tensor const x = vector_of({1, 2});
  auto const f = [](tensor const& v) {
    tensor const w = v * 2.0;
    vv::no_grad const off;
    vv::fill_(w, 3.0);
    return w;
  };
  auto const total = [](auto const& g) { return [g](tensor const& v) { return vv::sum(vv::map(g, v)); }; };
  CHECK(elements(vv::functionalize(f)(x)) == doubles({3, 3}));
  CHECK(elements(vv::grad(total(f))(x)) == doubles({2, 2})); // the write left the derivative as it was
  CHECK_THROWS_WITH(vv::grad(total(vv::functionalize(f)))(x), ContainsText("no_grad mode"));
}

TEST_CASE("reverse mode does not pass over a write of a graph's function into what it was given", "[hop][grad]") {
  tensor const x = vector_of({0.75, -0.5});
  auto const refused = ContainsText("the function of a higher-order operator writes into its operand, or into what it "
                                    "captures; return the new value instead");
  auto const captured = [](tensor const& v) { // a branch within the body of a loop, which becomes a graph
    tensor const w = v * 2.0;
    auto const same = [](tensor const& a) { return tensor(vv::clone(a)); };
    auto const writes = [w](tensor const& a) { return vv::fill_(w, 7.0), tensor(vv::clone(a)); };
    (void)vv::cond(w > 0, same, writes, v);
    return w;
  };
  CHECK(elements(vv::map(captured, x)) == doubles({1.5, 7}));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::map(captured, v)); })(x), refused);
  auto const operand = [](tensor const& v) {
    tensor const w = v * 2.0;
    auto const same = [](tensor const& a) { return tensor(vv::clone(a)); };
    auto const writes = [](tensor const& a) { return vv::mul_(a, 3.0), tensor(vv::clone(a)); };
    return tensor(vv::cond(vv::sum(v) > 0, writes, same, w) + w);
  };
  auto const gradient = vv::grad([&](tensor const& v) { return vv::sum(operand(v)); });
  CHECK(elements(gradient(x)) == doubles({12, 12}));
  CHECK_THROWS_WITH(vv::make_fx(gradient)(x), refused);
  CHECK_THROWS_WITH(vv::compile(gradient)(x), refused);
  vv::graph const g = vv::make_fx(operand)(x);
  auto const run = [&](tensor const& v) { return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]); };
  CHECK_THROWS_WITH(vv::grad(run)(x), refused);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("what a branch first asks for under no_grad has its gradient where it asks again", "[hop][cond][grad_mode]") {
  tensor const x = vector_of({-0.5, 1, 2});
  auto const f = [](tensor const& v) {
    tensor const w = v * v;
    auto const below = [&](tensor const& a) {
      tensor c;
      {
        vv::no_grad const off;
        c = w * 2.0;
      }
      return w * c + a;
    };
    return vv::cond(v > 0, [](tensor const& a) { return a * 2.0; }, below, v);
  };
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({-0.5 * 2 * 0.5 + 1, 2, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) ==
        doubles({-0.5 * 2 * 0.5 + 1, 2, 2}));
}

TEST_CASE("what a function wrote before its call was refused stays written, and nothing else is", "[hop][error]") { // D
  tensor const x = vector_of({1, 2}), yes = vv::full({}, true);
  auto const refused = [&](auto const& call) {
    tensor const w = vector_of({5, 5});
    vv::generator const before = vv::default_generator;
    CHECK_THROWS_WITH(call([&](auto const&...) -> tensor {
                        vv::add_(w, 1.0);
                        throw std::runtime_error("mine");
                      }),
                      "mine");
    CHECK(elements(w) == doubles({6, 6})); // once, and its version says so
    CHECK(w.version() == 1);
    CHECK(elements(x) == doubles({1, 2}));
    CHECK(x.version() == 0);
    CHECK(vv::default_generator.offset == before.offset);
    CHECK(vv::this_thread_state.quiet());
  };
  auto const same = [](tensor const& u) { return u * 1.0; };
  refused([&](auto const& f) { return vv::cond(yes, f, same, x); });
  refused([&](auto const& f) { return vv::map(f, x); });
  refused([&](auto const& f) {
    return vv::scan([&](tensor const& c, tensor const& r) { return std::pair(c, f(r)); }, x, x).first;
  });
  refused([&](auto const& f) { return vv::while_loop([](tensor const&) { return vv::full({}, true); }, f, x); });
  refused([&](auto const& f) { return vv::checkpoint(f, x); });
  refused([&](auto const& f) { return vv::associative_scan<0, false, vv::combine_mode::generic>(f, x); });
  refused([&](auto const& f) { return vv::vmap(f)(x); });
  // Refused for what a step returns, when it has been made.
  tensor const w = vector_of({5, 5});
  auto const other_shape = [&](tensor const& u) {
    vv::add_(w, 1.0);
    return vv::cat(std::vector<tensor>{u, u}, 0);
  };
  CHECK_THROWS_AS(vv::while_loop([](tensor const& u) { return vv::sum(u) < 9; }, other_shape, x), vv::shape_error);
  CHECK(w.version() == static_cast<std::uint32_t>(vv::select(w, 0, 0).item<double>() - 5));
  // What is checked before the function runs has not run it.
  std::uint32_t const version = w.version();
  CHECK_THROWS_AS(vv::map([&](auto const& u) { return vv::add_(w, 1.0), u.first; }, std::pair(x, vector_of({1, 2, 3}))),
                  vv::error);
  CHECK_THROWS_AS(vv::cond(x, other_shape, other_shape, x), vv::error);
  CHECK_THROWS_AS(vv::scan([&](tensor const& c, tensor const& r) { return vv::add_(w, 1.0), std::pair(c, r); }, x,
                           vv::full({}, 1.0, dtype::float64)),
                  vv::error);
  CHECK(w.version() == version);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("writes: forward derivatives of functions that write into their own copies, in every host", "[hop][writes]") {
  tensor const x({1.0, 2.0});
  auto const own = [](tensor const& u) {
    tensor const w = vv::clone(u);
    vv::mul_(w, 2.0), vv::add_(vv::slice(w, 0, 0, 1), u[1]);
    return w;
  };
  auto const thrice = [](tensor const& u) { return u * 3.0; };
  using program = std::function<tensor(tensor const&)>;
  for (program const& f :
       {program([&](tensor const& v) { return vv::cond(vv::gt(vv::sum(v), 0.0), own, thrice, v); }),
        program([&](tensor const& v) {
          return vv::map([&](tensor const& r) { return own(r * v); }, vv::stack(std::vector<tensor>{v, v}, 0));
        }),
        program([&](tensor const& v) {
          return vv::cond(
              vv::gt(vv::sum(v), 0.0),
              [&](tensor const& u) { return vv::cond(vv::gt(vv::sum(u), 0.0), own, thrice, u); }, thrice, v);
        })}) {
    auto const tangent = [&](tensor const& v) { return tensor(vv::jvp(f, std::tuple(v), std::tuple(v)).second); };
    std::vector<double> const right = tangent(x).to_vector();
    CHECK(tensor(vv::interpret(vv::make_fx(tangent)(x), vv::boxed_args(x))[0]).to_vector() == right);
    CHECK(vv::compile(tangent)(x).to_vector() == right);
    CHECK(vv::functionalize(tangent)(x).to_vector() == right);
    CHECK(vv::jvp(tangent, std::tuple(x), std::tuple(x)).second.sizes() == tangent(x).sizes());
  }
}
