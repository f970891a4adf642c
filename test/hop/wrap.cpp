// SPDX-License-Identifier: BSL-1.0
// Calls that stay calls in graphs, regions that calls share, and functions chosen by an index.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/hop/switch_case.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

namespace vv = varve;
using Catch::Matchers::Contains;
using sample::difference;
using sample::elements;
using sample::vector_of;
using vv::tensor;

namespace {
auto const body = [](tensor const& a, tensor const& b) { return vv::sin(a) * b; };
constexpr auto twice = [](auto const& v) { return v * 2.0; };
constexpr auto square = [](auto const& v) { return v * v; };
constexpr auto same = [](auto const& v) { return v * 1.0; };
/// How often a graph calls an operator, and how many functions those calls have.
std::pair<int, int> calls(vv::graph const& g, std::string const& name) {
  int count = 0;
  std::vector<int> functions;
  for (vv::node const& n : g.nodes)
    if (name == n.op->name) {
      ++count;
      if (std::find(functions.begin(), functions.end(), n.regions_first) == functions.end())
        functions.push_back(n.regions_first);
    }
  return {count, static_cast<int>(functions.size())};
}
/// An operator that computes something, anywhere in a graph.
int count(vv::graph const& g, std::string const& name) {
  int n = 0;
  for (vv::node const& nd : g.nodes) n += name == nd.op->name;
  return n;
}
tensor run(vv::graph const& g, tensor const& x, tensor const& y) { return vv::interpret(g, vv::boxed_args(x, y))[0]; }
} // namespace

TEST_CASE("calls of one region share one subgraph, in its gradient too", "[hop][aot][OH-S04]") {
  tensor const x = vector_of({1, 2}), y = vector_of({0.5, -1});
  auto const block = vv::mark_compile_region(body);
  auto const f = [&](tensor const& a, tensor const& b) { return block(block(a, b), b); };
  auto const plain = [](tensor const& a, tensor const& b) { return body(body(a, b), b); };
  CHECK(elements(f(x, y)) == elements(plain(x, y)));
  for (vv::graph const& g : {vv::make_fx(f)(x, y), vv::make_fx(f, vv::tracing::fake)(x, y)}) {
    CHECK(calls(g, "invoke_subgraph") == std::pair(2, 1));
    CHECK(count(g, "sin") == 1);
    CHECK(g.regions.size() == 2);
    CHECK(elements(run(g, x, y)) == elements(plain(x, y)));
  }
  auto const total = [](auto const& h) { return [&h](tensor const& a, tensor const& b) { return vv::sum(h(a, b)); }; };
  vv::graph const gradient = vv::make_fx(vv::grad(total(f)))(x, y);
  CHECK(calls(gradient, "invoke_subgraph") == std::pair(4, 2));
  CHECK(elements(run(gradient, x, y)) == elements(vv::grad(total(plain))(x, y)));

  std::vector<vv::graph> parts;
  auto const backend = [&](vv::graph const& g) -> vv::boxed_function {
    parts.push_back(g);
    return [g](vv::boxed_args const& in) { return vv::interpret(g, in); };
  };
  auto const trained = [&](auto const& h) {
    tensor const a = vv::clone(x), b = vv::clone(y);
    a.requires_grad_(), b.requires_grad_();
    vv::sum(h(a, b)).backward();
    return std::pair(elements(a.grad()), elements(b.grad()));
  };
  CHECK(trained(vv::compile(f, backend)) == trained(plain));
  REQUIRE(parts.size() == 2);
  for (vv::graph const& g : parts) CHECK(calls(g, "invoke_subgraph") == std::pair(2, 1));
}

TEST_CASE("several regions ahead of time give values and gradients of the functions", "[hop][aot][OH-S05]") {
  auto const first = vv::mark_compile_region(body);
  auto const second = vv::mark_compile_region([](tensor const& a) { return std::tuple(vv::tanh(a), a * a); });
  CHECK(first.identifier() != second.identifier());
  tensor const w = vector_of({2, 3}); // captured by a region
  auto const third = vv::mark_compile_region([&](std::vector<tensor> const& v) { return v[0] * w + v[1]; });
  auto const f = [&](tensor const& a, tensor const& b) {
    auto const [t, q] = second(first(a, b));
    return third(std::vector<tensor>{first(t, q), b});
  };
  auto const trained = [&](auto const& h) {
    tensor const a = vector_of({1, 2}), b = vector_of({0.5, -1});
    a.requires_grad_(), b.requires_grad_();
    tensor const y = h(a, b);
    vv::sum(y).backward();
    return std::tuple(elements(y.detach()), elements(a.grad()), elements(b.grad()));
  };
  auto const right = trained(f);
  CHECK(trained(vv::compile(f, vv::backends::aot_eager)) == right);
  auto const [y, da, db] = trained(vv::compile(f, vv::backends::fused));
  CHECK(sample::close(da[0], std::get<1>(right)[0], 1e-14));
  CHECK(sample::close(db[1], std::get<2>(right)[1], 1e-14));
  CHECK(sample::close(y[1], std::get<0>(right)[1], 1e-14));
}

TEST_CASE("calls in graphs are the function under every transform", "[hop][wrap]") {
  tensor const x = vector_of({1, 2, -0.5}), y = vector_of({0.5, -1, 2});
  using function = std::function<tensor(tensor const&, tensor const&)>;
  std::vector<function> const all{
      [](tensor const& a, tensor const& b) { return vv::wrap(body, a, b); },
      [](tensor const& a, tensor const& b) { return vv::invoke_subgraph(body, 3, a, b); },
      [](tensor const& a, tensor const& b) { return vv::hints_wrapper(body, {{"fuse", false}, {"tile", 32}}, a, b); }};
  auto const alike = [&](function const& f) {
    std::vector<std::pair<function, function>> r;
    auto const both = [&](auto const& make) { r.emplace_back(make(f), make(function(body))); };
    both([](function const& h) { return h; });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) {
        return vv::grad([&](tensor const& v) { return vv::sum(vv::tanh(h(v, b))); })(a);
      };
    });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) {
        return vv::jvp([&](tensor const& v) { return h(v, b); }, std::tuple(a), std::tuple(b)).second;
      };
    });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) { return vv::vmap(h)(a, b); };
    });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) { return vv::jacrev([&](tensor const& v) { return h(v, b); })(a); };
    });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) {
        return vv::hessian([&](tensor const& v) { return vv::sum(h(v, b)); })(a);
      };
    });
    both([](function const& h) -> function {
      return [h](tensor const& a, tensor const& b) {
        return vv::functionalize([&](tensor const& v, tensor const& w) { return h(v, w); })(a, b);
      };
    });
    return r;
  };
  for (function const& f : all)
    for (auto const& [with, without] : alike(f)) {
      std::vector<double> const right = elements(vv::contiguous(without(x, y)));
      CHECK(elements(vv::contiguous(with(x, y))) == right);
      CHECK(elements(vv::contiguous(run(vv::make_fx(with)(x, y), x, y))) == right);
      CHECK(elements(vv::contiguous(run(vv::make_fx(with, vv::tracing::fake)(x, y), x, y))) == right);
      CHECK(difference(vv::compile(with)(x, y), without(x, y), 1e-14) == "");
      CHECK(difference(vv::fuse(vv::make_fx(with)(x, y))(vv::boxed_args(x, y))[0], without(x, y), 1e-14) == "");
    }
}

TEST_CASE("a call that draws random numbers has the gradient of what it drew", "[hop][wrap]") {
  tensor const x = vector_of({1, 2});
  auto const noisy = [](tensor const& v) { return v * vv::randn({2}, vv::dtype::float64); };
  auto const f = [&](tensor const& v) { return vv::wrap(noisy, v); };
  auto const both = [&](tensor const& v) {
    auto const [y, pull] = vv::vjp(f, v);
    return std::tuple(y, std::get<0>(pull(vv::ones_like(y))));
  };
  vv::graph const g = vv::make_fx(both)(x);
  vv::manual_seed(5);
  vv::boxed_args const r = vv::interpret(g, vv::boxed_args(x));
  CHECK(elements(r[0]) == elements(r[1] * x));
  vv::manual_seed(5);
  CHECK(elements(r[0]) == elements(noisy(x)));
}

TEST_CASE("hints are told of nodes, and shared regions are saved", "[hop][wrap][export]") {
  tensor const x = vector_of({1, 2}), y = vector_of({0.5, -1});
  vv::hints const some{{"tile", 32}, {"name", std::string("inner")}, {"scale", 0.5}, {"fuse", false}};
  vv::graph const g =
      vv::make_fx([&](tensor const& a, tensor const& b) { return vv::hints_wrapper(body, some, a, b); })(x, y);
  int told = 0;
  for (vv::node const& n : g.nodes)
    if (vv::hints const* const h = vv::hints_of(g, n)) told += *h == some;
  CHECK(told == 1);
  auto const two = [](tensor const& a, tensor const& b) {
    return vv::invoke_subgraph(body, 7, vv::invoke_subgraph(body, 7, a, b), b);
  };
  auto const p = vv::export_program(two)(x, y);
  auto const again = vv::program_from_text(vv::to_text(p));
  CHECK(calls(again.graph, "invoke_subgraph") == std::pair(2, 1));
  CHECK(elements(again(x, y)[0]) == elements(two(x, y)));
}

TEST_CASE("a function is chosen by an index", "[hop][switch_case]") {
  static_assert(vv::switch_case(1, std::tuple(twice, square, same), 3.0) == 9.0);
  static_assert(vv::switch_case(-5, std::tuple(twice, square, same), 3.0) == 6.0);
  static_assert(vv::switch_case(5, std::tuple(twice, square, same), 3.0) == 3.0);
  static_assert(vv::grad([](auto const& v) { return vv::switch_case(1, std::tuple(twice, square), v); })(3.0) == 6.0);
  auto const all = std::tuple(twice, square, same);
  tensor const x = vector_of({1, -2});
  auto const index = [](vv::index_t k) { return vv::full({}, static_cast<double>(k), vv::dtype::int64); };
  auto const f = [&](tensor const& k, tensor const& v) { return vv::switch_case(k, all, v); };
  vv::graph const g = vv::make_fx(f)(index(0), x);
  for (vv::index_t k = -1; k < 4; ++k) {
    tensor const right = k <= 0 ? twice(x) : k == 1 ? square(x) : same(x);
    CHECK(elements(f(index(k), x)) == elements(right));
    CHECK(elements(run(g, index(k), x)) == elements(right));
    CHECK(elements(vv::fuse(g)(vv::boxed_args(index(k), x))[0]) == elements(right));
  }
  tensor const rows = vv::stack(std::vector<tensor>{x, x, x});
  CHECK(elements(vv::vmap(f)(vv::arange(3), rows)) == sample::doubles({2, -4, 1, 4, 1, -2}));
}
