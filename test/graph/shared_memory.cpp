// SPDX-License-Identifier: BSL-1.0
// Traces run on copies of what they are given and of what their functions capture: who asks in a traced function what
// lies in which memory is told what the program will find.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;

namespace {
using function = std::function<tensor(tensor const&)>;
using around = std::function<function(function)>;

/// The first element, as a custom function.
struct first : vv::function<first> {
  static auto forward(auto x) { return vv::slice(x, 0, 0, 1); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return vv::cat(std::vector<tensor>{g, g * 0.0}, 0); }
  static auto jvp(auto&, auto t) { return vv::slice(t, 0, 0, 1); }
};
tensor fixed_number(double v) { return vv::full({}, v, dtype::float64); }
tensor run(vv::graph const& g, vv::boxed_args const& x) { return vv::interpret(g, x)[0]; }

function functional(function f) { return vv::functionalize(std::move(f)); }
function compiled(function f) { return vv::compile(std::move(f)); }
function gradient(function f) { return vv::grad(std::move(f)); }
function tangent(function f) {
  return [f](tensor const& a) { return vv::jvp(f, std::tuple(a), std::tuple(vv::ones_like(a))).second; };
}
function graph_of(function f) {
  return [f](tensor const& a) { return run(vv::make_fx(f)(a), vv::boxed_args(a)); };
}
function graph_on_fakes(function f) {
  return [f](tensor const& a) { return run(vv::make_fx(f, vv::tracing::fake)(a), vv::boxed_args(a)); };
}
/// As a branch, which is traced on values of a trace.
function branch(function f) {
  return [f](tensor const& a) { return vv::cond(vv::sum(a) > 0, f, [](tensor const& u) { return vv::sum(u); }, a); };
}
function both(around const& outer, around const& inner, function f) { return outer(inner(std::move(f))); }

std::vector<std::pair<char const*, function>> const& views() {
  static std::vector<std::pair<char const*, function>> const all{
      {"select", [](tensor const& w) { return vv::select(w, 0, 0); }},
      {"slice of reshape", [](tensor const& w) { return vv::slice(vv::reshape(w, dims{2, 1}), 0, 0, 1); }},
      {"slice of detach", [](tensor const& w) { return vv::slice(vv::detach(w), 0, 0, 1); }},
      {"as_strided", [](tensor const& w) { return vv::as_strided(w, dims{1, 1}, dims{2, 2}, dims{0}); }}};
  return all;
}
std::vector<std::pair<char const*, function>> const& returned_views() {
  static std::vector<std::pair<char const*, function>> const all{
      {"checkpoint", [](tensor const& w) { return vv::checkpoint(views()[1].second, w); }},
      {"cond", [](tensor const& w) { return vv::cond(vv::sum(w) > 0, views()[1].second, views()[1].second, w); }},
      {"custom", [](tensor const& w) { return first::apply(w); }}};
  return all;
}
} // namespace

TEST_CASE("functionalize in a traced function writes into what was captured", "[graph][functionalize][compile]") {
  for (auto const& named : views())
    for (around const& outer : {around(compiled), around([](function f) { return compiled(compiled(f)); })})
      for (around const& inner : {around(functional), around([](function f) { return functional(functional(f)); }),
                                  around([](function f) -> function {
                                    return
                                        [f](tensor const& a) { return vv::vmap(functional(f))(vv::unsqueeze(a, 0)); };
                                  })}) {
        auto const& name = named.first;
        auto const& view = named.second; // clang 14 captures no structured bindings
        INFO(name);
        tensor const w = vector_of({2, 3});
        function const writes = [&](tensor const& a) {
          tensor const v = view(w);
          vv::mul_(v, 10.0);
          return vv::sum(w) * a + vv::sum(v) * 1000.0;
        };
        CHECK(vv::sum(both(outer, inner, writes)(fixed_number(1))).item<double>() == 20023);
        CHECK(elements(w) == doubles({20, 3}));
      }
  // ... of a trace around, in a branch; and into what the function made by itself.
  tensor const w = vector_of({2, 3}), x = fixed_number(1);
  auto const in_branch = [](tensor const& a, tensor const& b) {
    auto const writes = [b](tensor const& u) {
      tensor const v = vv::select(b, 0, 0);
      vv::mul_(v, 10.0);
      return vv::sum(b) * u + v * 1000.0;
    };
    return vv::cond(a > 0, vv::functionalize(writes), [](tensor const& u) { return u * 1.0; }, a);
  };
  CHECK(run(vv::make_fx(in_branch)(x, vv::clone(w)), vv::boxed_args(x, w)).item<double>() == 20023);
  CHECK(elements(w) == doubles({20, 3}));
  auto const of_its_own = [](tensor const& a) {
    tensor const b = vector_of({2, 3}), v = vv::select(b, 0, 0);
    vv::mul_(v, 10.0);
    return vv::sum(b) * a;
  };
  CHECK(vv::functionalize(of_its_own)(x).item<double>() == 23);
  CHECK(vv::compile(vv::functionalize(of_its_own))(x).item<double>() == 23);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a traced function that is differentiated writes into nothing captured, through views neither",
          "[graph][transform]") { // A22
  for (auto const& named : views())
    for (around const& outer : {around([](function f) { return f; }), around(compiled), around(branch)})
      for (around const& inner :
           {around(gradient), around(tangent), around([](function f) { return gradient(functional(f)); }),
            around([](function f) { return functional([f](tensor const& a) { return vv::grad(f)(a); }); })}) {
        auto const& name = named.first;
        auto const& view = named.second; // clang 14 captures no structured bindings
        INFO(name);
        tensor const w = vector_of({2, 3});
        function const writes = [&](tensor const& a) {
          vv::mul_(view(w), 10.0);
          return vv::sum(w) * a;
        };
        CHECK_THROWS_WITH(both(outer, inner, writes)(fixed_number(1)),
                          ContainsText("mul_") && ContainsText("captured tensor"));
        CHECK(elements(w) == doubles({2, 3}));
      }
}

TEST_CASE("what a traced function returned in the memory of its operand is not written into at a level",
          "[graph][hop][transform]") {
  tensor const x = vector_of({2, 3});
  for (auto const& named : returned_views())
    for (around const& outer : {around(compiled), around(graph_of), around(graph_on_fakes),
                                around([](function f) { return graph_of(branch(f)); })})
      for (around const& inner : {around(tangent), around([](function f) -> function {
                                    return [f](tensor const& a) { return vv::sum(vv::grad(f)(a)); };
                                  })}) {
        auto const& name = named.first;
        auto const& view = named.second; // clang 14 captures no structured bindings
        INFO(name);
        auto const writes = [&](bool into_operand) -> function {
          return [&, into_operand](tensor const& a) {
            tensor const b = a * 1.0, v = view(b);
            vv::mul_(into_operand ? b : v, vv::select(a, 0, 1));
            return vv::sum(b) + vv::sum(v) * 1000.0;
          };
        };
        CHECK_THROWS_AS(both(outer, inner, writes(false))(x), vv::error);
        double seen = 5011; // of 1001 a0 a1 + a1², or refused: what is read behind the write is another value
        try {
          seen = both(outer, inner, writes(true))(x).item<double>();
        } catch (vv::error const&) {}
        CHECK(seen == 5011);
        // Read alone, or written when it is a copy, it has its derivative: of 1000 a0 + a0 + a1.
        function const reads = [&](tensor const& a) {
          tensor const b = a * 1.0, v = view(b);
          return vv::sum(b) + vv::sum(v) * 1000.0;
        };
        CHECK(both(outer, inner, reads)(x).item<double>() == 1002);
      }
  for (around const& outer : {around(compiled), around(graph_of), around(graph_on_fakes)}) {
    function const copies = [](tensor const& a) {
      auto const doubled = [](tensor const& u) { return u * 2.0; };
      tensor const b = a * 1.0, v = vv::checkpoint(doubled, b), c = vv::cond(vv::sum(b) > 0, doubled, doubled, b);
      vv::mul_(v, vv::select(a, 0, 1)), vv::mul_(c, 5.0);
      return vv::sum(v) + vv::sum(c) + vv::sum(b); // 2 a0 a1 + 2 a1² + 11 (a0 + a1)
    };
    CHECK(both(outer, tangent, copies)(x).item<double>() == 6 + 4 + 12 + 22);
    CHECK(elements(both(outer, gradient, copies)(x)) == doubles({6 + 11, 4 + 12 + 11}));
  }
}

TEST_CASE("under functionalize what a function returned of a captured tensor is not written into",
          "[graph][functionalize][hop]") {
  tensor const w = vector_of({2, 3});
  for (auto const& named : returned_views()) {
    auto const& name = named.first;
    auto const& view = named.second; // clang 14 captures no structured bindings
    INFO(name);
    function const writes = [&](tensor const& a) {
      tensor const v = view(w);
      vv::mul_(v, 10.0);
      return vv::sum(w) * a + vv::sum(v);
    };
    function const captures = [&](tensor const& a) {
      auto const same = [&](tensor const&) { return w; };
      tensor const v = vv::cond(a > 0, same, same, a);
      vv::mul_(v, 10.0);
      return vv::sum(w) * a;
    };
    for (function const& f : {writes, captures}) {
      CHECK_THROWS_AS(compiled(functional(f))(fixed_number(1)), vv::error);
      vv::functional_mode mode;
      vv::functional_mode_guard const on(mode);
      if (f.target_type() == writes.target_type() && std::string(name) == "checkpoint") continue; // runs as it is
      CHECK_THROWS_AS(functional(f)(mode.to_functional_tensor(fixed_number(1))), vv::error);
    }
    CHECK(elements(w) == doubles({2, 3}));
  }
}

TEST_CASE("a trace within a loop that is traced leaves nothing of what it ran for shapes", "[graph][fake][loop]") {
  tensor const x = from({-1.25, 0.5, -1.5, 1.75, -1.75, 2.0, 1, 2, 3, 4, 5, 6}, {2, 2, 3}, dtype::float64),
               s = from({0.5, -0.25}, {2}, dtype::float64);
  auto const write = [](tensor const& a, tensor const& b) {
    tensor const u = vv::clone(a), v = vv::as_strided(u, dims{2, 2}, dims{3, 1}, dims{0});
    vv::copy_(v, b);
    return vv::sum(u) * b;
  };
  auto const walk = [](tensor const& rows, tensor const& start) {
    return vv::scan([](tensor const&, tensor const& r) { return std::pair(r, r * 2.0); },
                    vv::select(rows, 0, 0) * start, rows)
        .second;
  };
  auto const check = [&](auto const& f) {
    auto const traced = [&](tensor const& a, tensor const& b) {
      return run(vv::make_fx(f, vv::tracing::fake)(a, b), vv::boxed_args(a, b));
    };
    std::vector<double> const right = elements(vv::vmap(f)(x, s));
    auto const mapped = [&](tensor const& a, tensor const& b) {
      return vv::map([&](auto const& row) { return traced(row.first, row.second); }, std::pair(a, b));
    };
    CHECK(elements(mapped(x, s)) == right);
    CHECK(elements(vv::compile(mapped)(x, s)) == right);
    CHECK(elements(run(vv::make_fx(mapped)(x, s), vv::boxed_args(x, s))) == right);
    CHECK(elements(run(vv::make_fx(mapped, vv::tracing::fake)(x, s), vv::boxed_args(x, s))) == right);
    auto const total = [&](tensor const& a) { return vv::sum(mapped(a, s)); };
    auto const plain = [&](tensor const& a) { return vv::sum(vv::vmap(f)(a, s)); };
    CHECK(elements(vv::grad(total)(x)) == elements(vv::grad(plain)(x)));
    CHECK(elements(vv::compile(vv::grad(total))(x)) == elements(vv::grad(plain)(x)));
  };
  check(write);
  check(walk);
}

TEST_CASE("what a function inside of others makes of what it captures is in the graph", "[graph][hop]") {
  using vv::dims;
  tensor const xs = vector_of({-2, 1, 3}), vector = vector_of({2, -1}), number = vv::full({}, -1.0, dtype::float64);
  // A view, or a value, of what is captured from outside of all functions, used in the innermost one.
  std::vector<std::function<tensor(tensor const&)>> const uses{
      [](tensor const& c) { return vv::reshape(c.sizes().n ? vv::slice(c, 0, 1, 2) : c, dims{}); },
      [](tensor const& c) { return vv::squeeze(c.sizes().n ? vv::select(c, 0, 0) : c); },
      [](tensor const& c) { return vv::sum(c); }, [](tensor const& c) { return vv::sum(vv::unsqueeze(c, 0)); }};
  using binary = std::function<tensor(tensor const&, tensor const&)>;
  for (auto const& use : uses) {
    std::vector<binary> const inner{
        [&](tensor const& u, tensor const& c) {
          return vv::checkpoint([&](tensor t) { return vv::maximum(t, 0.5) * use(c); }, u);
        },
        [&](tensor const& u, tensor const& c) {
          return vv::cond(
              vv::gt(u, 0.0), [&](tensor t) { return t * use(c); }, [&](tensor t) { return t + use(c); }, u);
        },
        [&](tensor const& u, tensor const& c) {
          return vv::sum(vv::map([&](tensor t) { return t * use(c); }, vv::unsqueeze(u, 0)));
        }};
    for (binary const& body : inner) {
      auto const gradient = [&](tensor const& r, tensor const& c) {
        return vv::grad([&](tensor u, std::vector<tensor> rest) { return vv::sin(body(u, rest[0])); })(
            r, std::vector<tensor>{c});
      };
      std::vector<binary> const whole{
          [&](tensor const& x, tensor const& c) { return vv::map([&](tensor r) { return gradient(r, c); }, x); },
          [&](tensor const& x, tensor const& c) {
            return vv::scan([&](tensor s, tensor r) { return std::pair{s + r, gradient(r, c) * s}; }, vv::sum(c), x)
                .second;
          },
          [&](tensor const& x, tensor const& c) {
            return vv::cond(
                vv::gt(vv::sum(x), 0.0), [&](tensor v) { return gradient(vv::select(v, 0, 1), c); },
                [&](tensor v) { return gradient(vv::select(v, 0, 0), c); }, x);
          }};
      for (binary const& f : whole)
        for (tensor const& w : {vector, number}) {
          auto const want = elements(f(xs, w));
          CHECK(elements(vv::interpret(vv::make_fx(f)(xs, w), vv::boxed_args(xs, w))[0]) == want);
          CHECK(elements(vv::interpret(vv::make_fx(f, vv::tracing::fake)(xs, w), vv::boxed_args(xs, w))[0]) == want);
          CHECK(difference(vv::compile(f)(xs, w), f(xs, w), 1e-14) == "");
        }
    }
  }
}

TEST_CASE("a region of mapped values is a view along their axes, else a copy: refused where it is written",
          "[graph][hop]") {
  tensor const x = vector_of({1.25, -0.25});
  auto const f = [&](bool clones) {
    return [clones](tensor const& v) {
      return vv::map(
          [&](tensor const& u) {
            tensor const w = vv::map([&](tensor const&) { return vv::clone(u); }, v);
            tensor const part = vv::as_strided(clones ? vv::clone(w) : w, dims{2}, dims{0}, dims{1});
            if (!clones) (void)vv::mul_(w, part);
            return part;
          },
          v);
    };
  };
  CHECK(elements(f(false)(x)) == doubles({1.5625, 1.5625, 0.0625, 0.0625}));
  CHECK_THROWS_WITH(vv::jacrev(f(false))(x), ContainsText("clone the base first"));
  CHECK(elements(vv::jacrev(vv::functionalize(f(false)))(x)) == doubles({2.5, 0, 2.5, 0, 0, -0.5, 0, -0.5}));
  CHECK(elements(vv::jacrev(f(true))(x)) == doubles({1, 0, 1, 0, 0, 1, 0, 1}));
  auto const reads = [](index_t stride) {
    return [stride](tensor const& v) { return vv::as_strided(v, dims{2}, dims{stride}, dims{1}) * 2.0; };
  };
  auto const writes = [](index_t stride) {
    return [stride](tensor const& v) {
      tensor const part = vv::as_strided(v, dims{2}, dims{stride}, dims{1});
      (void)vv::mul_(v, 3.0);
      return part * 2.0;
    };
  };
  tensor const turned = vv::transpose(from({1, 2, 3, 4}, {2, 2}, dtype::float64), vv::axis<0>, vv::axis<1>);
  auto const by_graph = [](auto const& g) {
    return [g](tensor const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; };
  };
  CHECK(elements(vv::vmap(by_graph(vv::make_fx(reads(0))(x)))(turned)) == doubles({6, 6, 8, 8}));
  CHECK(elements(vv::vmap(by_graph(vv::make_fx(writes(0))(x)))(turned)) == doubles({18, 18, 24, 24}));
  CHECK(elements(turned) == doubles({3, 9, 6, 12}));
  tensor const squares = vv::permute(from({1, 3, 2, 4, 5, 7, 6, 8}, {2, 2, 2}, dtype::float64), dims{0, 2, 1});
  tensor const square = vv::zeros({2, 2}, dtype::float64);
  CHECK(elements(vv::vmap(by_graph(vv::make_fx(reads(1))(square)))(squares)) == doubles({4, 6, 12, 14}));
  CHECK_THROWS_WITH(vv::vmap(by_graph(vv::make_fx(writes(1))(square)))(squares), ContainsText("take it of clone(x)"));
  CHECK(elements(squares) == doubles({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_CASE("a trace tells a value from what was detached of it, though both lie alike", "[graph][fake][autograd]") {
  tensor const x = from({1, 2, 3, 4}, {2, 2}, dtype::float64);
  x.requires_grad_();
  auto const both = [](auto const& hop) {
    return [hop](tensor const& v) {
      tensor const d = vv::permute(vv::detach(v), dims{1, 0}), t = vv::permute(v, dims{1, 0});
      return vv::sum(hop(d, t) * vv::exp(t));
    };
  };
  auto const map = [](tensor const& a, tensor const& b) {
    return vv::map([](auto const& r) { return r.first * vv::sin(r.second); }, std::pair(a, b));
  };
  auto const scan = [](tensor const& a, tensor const& b) {
    auto const step = [](tensor const& c, auto const& r) { return std::pair(c * 0.5 + r.second, c * r.first); };
    return vv::scan(step, vv::zeros({2}, dtype::float64), std::pair(a, b)).second;
  };
  auto const cond = [](tensor const& a, tensor const& b) {
    auto const f = [](tensor const& u, tensor const& v) { return u * vv::sin(v); };
    return vv::cond(vv::sum(a) > 0.0, f, [](tensor const& u, tensor const& v) { return u + v; }, a, b);
  };
  auto const again = [](tensor const& a, tensor const& b) {
    return vv::checkpoint([](tensor const& u, tensor const& v) { return u * vv::sin(v); }, a, b);
  };
  auto const plain = [](tensor const& a, tensor const& b) { return a * vv::sin(b); };
  auto const lanes = [map](tensor const& a, tensor const& b) {
    return vv::vmap(map)(vv::unsqueeze(a, 0), vv::unsqueeze(b, 0));
  };
  auto const check = [&](auto const& hop) {
    auto const f = both(hop);
    auto const gradient = [&](auto const& g) { return vv::autograd::grad({g(x)}, {x})[0]; };
    auto const by = [](vv::graph const& g) {
      return [g](tensor const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; };
    };
    tensor const right = gradient(f);
    auto const far = [&](tensor const& g) { return difference(g, right, 1e-12); };
    CHECK(far(gradient(by(vv::make_fx(f)(x)))) == "");
    CHECK(far(gradient(by(vv::make_fx(f, vv::tracing::fake)(x)))) == "");
    CHECK(far(gradient(by(vv::make_fx(f, vv::tracing::symbolic)(x)))) == "");
    CHECK(far(gradient(vv::compile(f))) == "");
    CHECK(far(gradient(vv::aot_function(f))) == "");
  };
  check(map), check(scan), check(cond), check(again), check(plain), check(lanes);
}

TEST_CASE("shared memory: compiled functions write through reshapes of arguments that do not lie by rows",
          "[compile][graph]") {
  tensor const m({{1.0, 2.0}, {3.0, 4.0}});
  using writer = tensor (*)(tensor const&);
  for (writer const f : {writer([](tensor const& a) {
                           tensor const r = vv::reshape(vv::permute(a, vv::dims{1, 0}), vv::dims{-1});
                           vv::mul_(r, 10.0);
                           return tensor(vv::sum(r));
                         }),
                         writer([](tensor const& a) {
                           tensor const r = vv::flatten(vv::transpose(vv::detach(a), 0, 1));
                           vv::mul_(vv::slice(r, 0, 1, 3), 10.0);
                           return tensor(vv::sum(a * r[0]));
                         }),
                         writer([](tensor const& a) { // a copy, where a lies by rows
                           vv::mul_(vv::reshape(vv::permute(a, vv::dims{1, 0}), vv::dims{-1}), 10.0);
                           return tensor(a + 0.0);
                         })})
    for (bool turned : {false, true})
      for (auto const& host :
           {around(compiled), around(functional), around([](function g) { return vv::aot_function(std::move(g)); })}) {
        tensor const w = vv::clone(m), v = vv::clone(m);
        auto const seen = [&](tensor const& t) { return turned ? tensor(vv::permute(t, vv::dims{1, 0})) : t; };
        tensor const right = f(seen(w)), found = host(f)(seen(v));
        CHECK(elements(found) == elements(right));
        CHECK(elements(v) == elements(w));
      }
}
TEST_CASE("shared memory: results of an optimized graph lie apart where they did", "[graph][optimize]") {
  auto const f = [](tensor const& x) {
    tensor const y = x + 1.0, z = x + 1.0, v = vv::slice(x, 0, 0, 1);
    return std::tuple(vv::clone(x), y, z, vv::clone(y), y, v, vv::slice(y, 0, 1, 2));
  };
  tensor const x({1.0, 2.0});
  vv::boxed_args const y = vv::interpret(vv::optimize(vv::make_fx(f)(x)), vv::boxed_args(x));
  std::string shared;
  for (int k = 0; k < y.size(); ++k) {
    shared += y[k].shares_storage(x) ? 'x' : '.';
    for (int j = 0; j < k; ++j)
      if (y[k].shares_storage(y[j])) shared += std::to_string(j);
  }
  CHECK(shared == ".....1x.14"); // eager: results 1, 4 and 6 lie in one memory, result 5 in the argument's
}
TEST_CASE("shared memory: what a reshape of a reshape copies, an optimized graph copies too", "[graph][optimize]") {
  using vv::reshape;
  using several = std::function<std::vector<tensor>(tensor const&)>;
  std::vector<several> const all{
      [](tensor const& x) { return std::vector{tensor(reshape(reshape(x, dims{2, 3}), dims{3, 2}))}; },
      [](tensor const& x) { return std::vector{tensor(reshape(reshape(x, dims{2, 1, 3}), dims{3, 1, 2}))}; },
      [](tensor const& x) { return std::vector{tensor(reshape(reshape(x, dims{6}), dims{1, 3, 2}))}; },
      [](tensor const& x) { return std::vector{tensor(reshape(reshape(x, dims{3, 1, 2}), dims{6}))}; },
      [](tensor const& x) { return std::vector{tensor(vv::slice(reshape(reshape(x, dims{6}), dims{3, 2}), 0, 0, 1))}; },
      [](tensor const& x) { return std::vector{tensor(reshape(x, dims{6})), tensor(reshape(x, dims{6}))}; },
      [](tensor const& x) { return std::vector{tensor(vv::contiguous(x)), tensor(vv::contiguous(x))}; },
      [](tensor const& x) {
        tensor const y = vv::exp(x), flat = reshape(y, dims{6});
        return std::vector{tensor(vv::slice(flat, 0, 0, 2)), tensor(vv::slice(flat, 0, 1, 3)),
                           tensor(reshape(reshape(y, dims{2, 3}), dims{3, 2})), y,
                           tensor(vv::exp(reshape(x, dims{6})))};
      },
      [](tensor const& x) {
        auto const same = [](tensor const& u) { return u; };
        return std::vector{tensor(vv::wrap(same, tensor(reshape(reshape(x, dims{2, 3}), dims{3, 2})))), x};
      }};
  auto const shared = [](tensor const& x, std::vector<tensor> const& y) {
    std::string r;
    for (std::size_t k = 0; k < y.size(); ++k) {
      r += y[k].shares_storage(x) ? 'x' : '.';
      for (std::size_t j = 0; j < k; ++j)
        if (y[k].shares_storage(y[j])) r += std::to_string(j);
    }
    return r;
  };
  tensor const rows = from({1, 2, 3, 4, 5, 6}, {3, 2}, dtype::float64),
               columns = vv::permute(from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float64), dims{1, 0});
  tensor const stepped = vv::slice(from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4}, dtype::float64), 1, 0, 4, 2);
  for (std::size_t k = 0; k < all.size(); ++k)
    for (tensor const& x : {rows, columns, stepped}) {
      INFO(k << " of " << vv::to_string(x.strides()));
      auto const g = vv::optimize(vv::make_fx(all[k])(x));
      vv::boxed_args const y = vv::interpret(g, vv::boxed_args(x));
      std::vector<tensor> found;
      for (int r = 0; r < y.size(); ++r) found.push_back(y[r]);
      std::vector<tensor> const right = all[k](x);
      CHECK(shared(x, found) == shared(x, right));
      for (std::size_t r = 0; r < right.size(); ++r) CHECK(elements(found[r]) == elements(right[r]));
    }
  // Sizes may be symbols of the graph, which are not computed with.
  for (auto const& f : std::vector<function>{[](tensor const& x) {
                                               auto const n = x.sizes()[0], m = x.sizes()[1];
                                               return reshape(reshape(x, dims{m, n}), dims{n, m});
                                             },
                                             [](tensor const& x) {
                                               auto const n = x.sizes()[0], m = x.sizes()[1];
                                               return reshape(reshape(x, dims{m, n, 1}), dims{m * n, 1});
                                             },
                                             [](tensor const& x) {
                                               auto const n = x.sizes()[0], m = x.sizes()[1];
                                               return reshape(reshape(x, dims{n, 1, m}), dims{n * m});
                                             }}) {
    vv::graph const g = vv::optimize(vv::make_fx(f, vv::tracing::symbolic)(rows));
    for (tensor const& x : {rows, columns, stepped, vv::ones({4, 5}, dtype::float64)}) {
      vv::boxed_args const y = vv::interpret(g, vv::boxed_args(x));
      CHECK(shared(x, {tensor(y[0])}) == shared(x, {f(x)}));
      CHECK(elements(y[0]) == elements(f(x)));
    }
  }
  // What shares the same memory in any case is one view, and nothing else is written twice.
  auto const flat = [](tensor const& x) { return reshape(reshape(x, dims{3, 1, 2}), dims{6}); };
  auto const inside = [](tensor const& x) { return vv::exp(reshape(reshape(x, dims{2, 3}), dims{3, 2})); };
  CHECK(vv::optimize(vv::make_fx(flat)(rows)).nodes.size() == 2);
  CHECK(vv::optimize(vv::make_fx(inside)(rows)).nodes.size() == 2);
}
TEST_CASE("shared memory: ... through functions, where a whole was written, and where one is given twice",
          "[graph][optimize][functionalize]") {
  tensor const x({1.0, 2.0}), y({3.0, 4.0});
  auto const copied = [](tensor const& a) {
    tensor const r = vv::wrap([](tensor const& u) { return vv::clone(u); }, a);
    return std::tuple(r, vv::clone(r));
  };
  vv::boxed_args const c = vv::interpret(vv::optimize(vv::make_fx(copied)(x)), vv::boxed_args(x));
  CHECK(!c[0].shares_storage(x));
  CHECK(!c[1].shares_storage(x));
  CHECK(!c[1].shares_storage(c[0]));
  auto const written = [](tensor const& a, tensor const& b) {
    tensor const r = a * 1.0;
    vv::copy_(r, b);
    return r;
  };
  vv::graph const g = vv::functionalize(vv::make_fx(written)(x, y));
  CHECK(!vv::interpret(g, vv::boxed_args(x, y))[0].shares_storage(y));
  auto const repeated = [](tensor const& a) {
    tensor const r = vv::clone(a);
    return std::tuple(r, r);
  };
  vv::boxed_args const r = vv::interpret(vv::optimize(vv::make_fx(repeated)(x)), vv::boxed_args(x));
  CHECK(!r[0].shares_storage(x));
  CHECK(r[0].shares_storage(r[1]));
}
TEST_CASE("shared memory: a write through a reshape of an argument that does not lie by rows", "[graph][optimize]") {
  auto const f = [](tensor const& a) {
    vv::mul_(vv::reshape(a, dims{4}), 10.0);
    return vv::sum(a);
  };
  tensor const w = vv::reshape(tensor{1.0, 2.0, 3.0, 4.0}, dims{2, 2}), turned = vv::permute(vv::clone(w), dims{1, 0});
  vv::graph const g = vv::optimize(vv::make_fx(f)(vv::clone(w)));
  CHECK(vv::interpret(g, vv::boxed_args(w))[0].item<double>() == 100);
  CHECK_THROWS_WITH(vv::interpret(g, vv::boxed_args(turned)), ContainsText("pass one that does"));
  CHECK_THROWS_WITH(vv::interpret(vv::optimize(g), vv::boxed_args(turned)), ContainsText("pass one that does"));
  CHECK_THROWS_AS(vv::fuse(g)(vv::boxed_args(turned)), vv::error);
  CHECK(elements(turned) == std::vector<double>{1, 3, 2, 4});
}
TEST_CASE("a value of a step that an inner loop captures is no number", "[graph][hop][map]") {
  auto const f = [](tensor const& x) {
    return vv::map(
        [&](tensor const& outer) {
          return vv::map([&](tensor const& inner) { return inner * outer.item<double>(); }, x);
        },
        x);
  };
  tensor const x({1.0, 2.0});
  CHECK_THROWS_WITH(vv::make_fx(f)(x), ContainsText("cannot become a number"));
  CHECK_THROWS_WITH(vv::make_fx(f, vv::tracing::symbolic)(x), ContainsText("number"));
}
