// SPDX-License-Identifier: BSL-1.0
// What traces and fused programs once lost, froze or touched: modes, the user's data, values read as numbers.
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

namespace {
tensor number(double v) { return vv::full({}, v, dtype::float64); }

/// A mode that doubles the results of all operators.
struct doubling {
  auto process(auto const& op, auto const&... x) { return vv::mul(op(x...), 2.0); }
};
} // namespace

TEST_CASE("a mode that a traced function switches on is in the graph, or refused", "[graph][mode]") { // A2
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& t) {
    doubling m;
    vv::mode_guard const on(m);
    return vv::sin(t) * 2.0;
  };
  auto const in_map = [f](tensor const& t) { return vv::map([f](tensor const& r) { return f(r); }, t); };
  auto const in_cond = [f](tensor const& t) { return vv::cond(vv::sum(t) > 0, f, f, t); };
  auto const is_kept = [&](auto const& g) {
    auto const eager = elements(g(x));
    CHECK(elements(vv::interpret(vv::make_fx(g)(x), boxed_args(x))[0]) == eager);
    CHECK(vv::this_thread_state.quiet());
  };
  is_kept(f);
  is_kept(in_map);
  is_kept(in_cond);
  is_kept(vv::vmap(f));
  is_kept(vv::grad([f](tensor const& t) { return vv::sum(f(t)); }));
  for (auto const& run : std::vector<std::function<void()>>{
           [&] { (void)vv::compile(f)(x); }, [&] { (void)vv::compile(in_cond)(x); },
           [&] { (void)vv::grad([&](tensor const& t) { return vv::sum(in_map(t)); })(x); },
           [&] { (void)vv::compile(vv::vmap(f))(x); }, [&] { (void)vv::linearize(f, x); }}) {
    CHECK_THROWS_WITH(run(), ContainsText("a mode was switched on"));
    CHECK(vv::this_thread_state.quiet());
  }
  // Around the call it counts.
  doubling m;
  vv::graph const g = vv::make_fx([](tensor const& t) { return vv::sin(t); })(x);
  auto const compiled = vv::compile([](tensor const& t) { return vv::sin(t); });
  vv::mode_guard const on(m);
  auto const twice = elements(vv::sin(x));
  CHECK(elements(vv::interpret(g, boxed_args(x))[0]) == twice);
  CHECK(elements(compiled(x)) == twice);
}

TEST_CASE("fused functions refuse to run under a mode", "[fuse][mode]") { // A3
  tensor const x = number(0);
  auto const f = [](auto const& v) { return vv::exp(v) + 1.0; };
  constexpr auto fixed = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v) + 1.0; });
  constexpr auto tables = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v) + 1.0; }, vv::table_driven);
  auto const of_graph = vv::fuse(vv::make_fx(f)(x));
  CHECK(elements(fixed(x)) == doubles({2}));
  doubling m;
  tensor const y = vv::with(m, [&](tensor const& v) { return f(v); }, x);
  CHECK(elements(y) == doubles({6}));
  CHECK(elements(vv::with(m, [&](tensor const& v) { return vv::compile(f)(v); }, x)) == doubles({6}));
  CHECK_THROWS_WITH(vv::with(m, fixed, x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(
      vv::with(m, [&](tensor const& v) { return of_graph(boxed_args(v))[0]; }, x), ContainsText("mode is on"));
  vv::mode_guard const on(m);
  CHECK_THROWS_WITH(fixed(x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(tables(x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(of_graph(boxed_args(x)), ContainsText("mode is on"));
  vv::no_dispatch const unseen;
  CHECK(elements(fixed(x)) == doubles({2}));
}

TEST_CASE("a trace touches nothing of the user's", "[graph][compile]") { // A4
  tensor const x = vector_of({1, 2, 3}), w = vector_of({1, 1, 1});
  auto const branches = [&](tensor const& v) {
    return vv::cond(
        vv::full({}, true), [](tensor const& u) { return vv::sin(u); },
        [&](tensor const& u) {
          vv::add_(u, u);
          vv::add_(w, 1.0);
          return u * 1.0;
        },
        v);
  };
  (void)vv::make_fx([&](tensor const& v, tensor const& z) {
    return vv::cond(
        vv::full({}, true), [](tensor const& u, tensor const&) { return vv::sin(u); },
        [](tensor const& u, tensor const& a) {
          vv::add_(u, u);
          vv::add_(a, 1.0);
          return u * 1.0;
        },
        v, z);
  })(x, w);
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK_THROWS(vv::compile(branches)(x)); // such a branch has no functional form
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  auto const fails = vv::compile([&](tensor const& v) {
    vv::add_(v, 1.0);
    vv::add_(w, 1.0);
    (void)vv::randn({3});
    if (v.dim() == 1) throw std::runtime_error("mine");
    return v * 1.0;
  });
  vv::manual_seed(3);
  tensor const next = vv::randn({});
  vv::manual_seed(3);
  CHECK_THROWS_WITH(fails(x), "mine");
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK((x.version() == 0 && w.version() == 0));
  CHECK(elements(vv::randn({})) == elements(next));
  // prepare writes into nothing that is captured either; a call does, once.
  auto const counts = vv::compile([&](tensor const& v) {
    vv::add_(w, 1.0);
    return v * w;
  });
  counts.prepare(x);
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK(elements(counts(x)) == doubles({2, 4, 6}));
  CHECK(elements(counts(x)) == doubles({3, 6, 9}));
  CHECK(elements(w) == doubles({3, 3, 3}));
  // A step that may not write into what it captures has not done so while it was traced.
  auto const sums = [&](tensor const& v) {
    return vv::sum(vv::map(
        [&](tensor const& r) {
          vv::add_(w, 1.0);
          return r * vv::sum(w);
        },
        v));
  };
  CHECK_THROWS(vv::grad(sums)(x));
  CHECK(elements(vv::slice(w, 0, 0, 1, 1))[0] <= 4); // the loop is refused when it has made a step
}

TEST_CASE("compile reads captured tensors anew", "[compile]") { // A10
  tensor const x = vector_of({1, 2, 3}), w = number(1);
  auto const by_number = vv::compile([&](tensor const& v) { return v * w.item<double>(); });
  auto const by_truth = vv::compile([&](tensor const& v) { return (w > 0.5 ? v * 2.0 : v * 3.0); });
  auto const deep = vv::compile(vv::grad([&](tensor const& v) {
    return vv::sum(vv::map([&](tensor const& r) { return static_cast<bool>(w) ? r * 2.0 : r * 3.0; }, v));
  }));
  CHECK(elements(by_number(x)) == doubles({1, 2, 3}));
  CHECK(elements(deep(x)) == doubles({2, 2, 2}));
  vv::fill_(w, 0);
  CHECK(elements(by_number(x)) == doubles({0, 0, 0}));
  CHECK(elements(deep(x)) == doubles({3, 3, 3}));
  vv::fill_(w, 4);
  CHECK(elements(by_number(x)) == doubles({4, 8, 12}));
  CHECK(elements(deep(x)) == doubles({2, 2, 2}));
  CHECK(by_number.versions() == 1);
  CHECK_THROWS_AS(by_truth(x), vv::transform_error); // an operator's result is a value of the trace
  CHECK_THROWS_WITH(vv::compile([&](tensor const& v) { return v * w.data<double>()[0]; })(x),
                    ContainsText("memory of a tensor"));
  constexpr auto fused = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v); });
  CHECK_THROWS_WITH(vv::compile([&](tensor const& v) { return v * fused(w); })(x), ContainsText("being compiled"));
  // What it asks of arguments.
  auto const layout = vv::compile([](tensor const& v) { return v.is_contiguous() ? v * 1.0 : v * 2.0; });
  tensor const m = from({1, 1, 1, 1}, {2, 2}, dtype::float64);
  CHECK(elements(layout(m)) == doubles({1, 1, 1, 1}));
  CHECK(elements(layout(vv::transpose(m, 0, 1))) == doubles({2, 2, 2, 2}));
  auto const mode = vv::compile([](tensor const& v) { return vv::is_grad_enabled() ? v * 1.0 : v * 2.0; });
  CHECK(elements(mode(x)) == doubles({1, 2, 3}));
  vv::no_grad const off;
  CHECK(elements(mode(x)) == doubles({2, 4, 6}));
  auto const leaf_or_not = vv::compile([](tensor const& v) { return v.requires_grad() ? v * 1.0 : v * 2.0; });
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK(elements(leaf_or_not(x)) == doubles({2, 4, 6}));
  CHECK(elements(leaf_or_not(leaf)) == doubles({1, 2, 3}));
  CHECK(elements(leaf_or_not(x)) == doubles({2, 4, 6}));
}

TEST_CASE("the first call of a compiled function is as all others", "[compile][random]") { // A11
  tensor const x = vector_of({1, 2, 3});
  auto const noisy = [](tensor const& v) { return v * vv::randn({3}, dtype::float64); };
  vv::manual_seed(5);
  auto const a = elements(noisy(x)), b = elements(noisy(x));
  auto const fast = vv::compile(noisy);
  vv::manual_seed(5);
  CHECK(elements(fast(x)) == a);
  CHECK(elements(fast(x)) == b);
  auto const doubled = vv::compile([](tensor v) {
    vv::mul_(v, 2.0);
    return v;
  });
  for (double want : {2.0, 4.0}) {
    tensor const y = vector_of({want / 2});
    tensor const z = doubled(y);
    CHECK(elements(z) == doubles({want}));
    CHECK(elements(y) == doubles({want}));
    CHECK_FALSE(z.shares_storage(y));
  }
}

TEST_CASE("undefined tensors in traced functions are refused", "[graph]") { // B2
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& v) { return v.dim() == 1 ? tensor() : v; };
  CHECK_THROWS_WITH(vv::make_fx(f)(x), ContainsText("undefined"));
  CHECK_THROWS_WITH(vv::compile(f)(x), ContainsText("undefined"));
  CHECK_THROWS_WITH(vv::make_fx([](tensor const& v) { return vv::sin(tensor()) + v; })(x), ContainsText("undefined"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("eager autograd in a traced function is in the graph, its hooks are refused", "[graph][autograd]") {
  tensor const x = vector_of({1, 2, 3});
  auto const hooked = [](tensor const& v) {
    auto const pack = [](tensor const& t) { return t; };
    vv::saved_tensors_hooks const hooks(pack, pack);
    return vv::sum(v * v);
  };
  CHECK_THROWS_WITH(vv::make_fx(hooked)(x), ContainsText("saved tensor hooks"));
  CHECK_THROWS_WITH(vv::compile(hooked)(x), ContainsText("saved tensor hooks"));
  auto const records = [](tensor const& v) {
    tensor const u = vv::detach(v * 1.0);
    u.requires_grad_();
    vv::sum(u * u).backward();
    return u.grad();
  };
  CHECK(elements(vv::interpret(vv::make_fx(records)(x), boxed_args(x))[0]) == elements(records(x)));
  CHECK_THROWS_WITH(vv::compile(records)(x), ContainsText("requires_grad_"));
  vv::library lib("faults");
  lib.def("twice(Tensor(a!) x) -> Tensor(a!)");
  lib.impl("twice", vv::dispatch_key::cpu, [](tensor const& t) -> tensor { return vv::mul_(t, 2.0); });
  auto const calls = [](tensor const& v) { return vv::ops::call("faults::twice", v * 1.0); };
  CHECK(elements(calls(x)) == doubles({2, 4, 6}));
  CHECK_THROWS_WITH(vv::make_fx(calls)(x), ContainsText("faults::twice") && ContainsText("trace"));
  CHECK_THROWS_WITH(vv::compile(calls)(x), ContainsText("faults::twice"));
}

TEST_CASE("the generator may not be set in a traced function", "[graph][random]") {
  tensor const x = vector_of({1, 2, 3});
  auto const seeds = [](tensor const& v) {
    vv::manual_seed(1);
    return v * vv::randn({}, dtype::float64);
  };
  CHECK_THROWS_WITH(vv::make_fx(seeds)(x), ContainsText("manual_seed"));
  CHECK_THROWS_WITH(vv::compile(seeds)(x), ContainsText("manual_seed"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::map(seeds, v)); })(x),
                    ContainsText("manual_seed"));
}

namespace {
/// x² above 1.5, else 3x, chosen by a `cond` that lies in the body of another operator.
constexpr auto chosen = [](tensor const& r) {
  return vv::cond(vv::sum(r) > 1.5, [](tensor const& v) { return v * v; }, [](tensor const& v) { return v * 3.0; }, r);
};
template <class F>
void has_gradient(F const& f, tensor const& x, std::vector<double> const& gradient) {
  CHECK(elements(vv::grad(f)(x)) == gradient);
  CHECK(elements(vv::compile(vv::grad(f))(x)) == gradient);
  CHECK(elements(vv::interpret(vv::make_fx(vv::grad(f))(x), boxed_args(x))[0]) == gradient);
  auto const pulled = [&](tensor const& v) { return std::get<0>(vv::vjp(f, v).second(number(1))); };
  CHECK(elements(vv::compile(pulled)(x)) == gradient);
  CHECK(elements(vv::compile(vv::jacrev(f))(x)) == gradient);
  auto const bent = vv::hessian(f);
  CHECK(elements(vv::interpret(vv::make_fx(bent)(x), boxed_args(x))[0]) == elements(bent(x)));
  CHECK(elements(vv::compile(bent)(x)) == elements(bent(x)));
}
} // namespace

TEST_CASE("gradients of cond within other operators are traced", "[graph][cond]") { // C1
  tensor const x = vector_of({1, 2, 3});
  std::vector<double> const gradient = {3, 4, 6}, together = {2, 4, 6};
  SECTION("map") {
    has_gradient([](tensor const& v) { return vv::sum(vv::map(chosen, v)); }, x, gradient);
  }
  SECTION("scan") {
    auto const step = [](tensor const& c, tensor const& r) { return std::pair(c + chosen(r), vv::none); };
    has_gradient([step](tensor const& v) { return vv::scan(step, number(0), v).first; }, x, gradient);
  }
  SECTION("while_loop") {
    auto const more = [](tensor const& k, tensor const&, tensor const&) { return k < 1.0; };
    auto const step = [](tensor const& k, tensor const&, tensor const& v) {
      return std::tuple(k + 1.0, vv::sum(chosen(v)));
    };
    has_gradient(
        [=](tensor const& v) {
          return std::get<1>(vv::while_loop<3>(more, step, std::tuple(number(0), number(0)), v));
        },
        x, together);
  }
  SECTION("cond") {
    auto const f = [](tensor const& v) {
      auto const body = [](tensor const& u) { return vv::sum(chosen(u)); };
      return vv::cond(vv::sum(v) > -5.0, body, body, v);
    };
    has_gradient(f, x, together);
  }
  SECTION("checkpoint") {
    has_gradient([](tensor const& v) { return vv::checkpoint([](tensor const& u) { return vv::sum(chosen(u)); }, v); },
                 x, together);
  }
}

TEST_CASE("compile and make_fx take trees and numbers, and functions that return nothing", "[compile][make_fx]") { // C7
  tensor const x = vector_of({1, 2, 3}), y = vector_of({1, 1, 1});
  auto const affine = [](std::vector<tensor> const& l, double k, std::pair<tensor, int> const& p) {
    return std::tuple(l[0] * k + l[1], p.first * p.second);
  };
  auto const fast = vv::compile(affine);
  for (double k : {2.0, 3.0, 2.0}) {
    auto const [a, b] = fast(std::vector{x, y}, k, std::pair(x, 4));
    CHECK(elements(a) == doubles({k + 1, 2 * k + 1, 3 * k + 1}));
    CHECK(elements(b) == doubles({4, 8, 12}));
  }
  CHECK(fast.versions() == 2);
  (void)fast(std::vector{x, y, y}, 2.0, std::pair(x, 4));
  CHECK(fast.versions() == 3);
  vv::graph const g = vv::make_fx(affine)(std::vector{x, y}, 2.0, std::pair(x, 4));
  CHECK(vv::verify(g));
  CHECK(elements(vv::interpret(g, boxed_args(x, y, x))[0]) == doubles({3, 5, 7}));
  auto const writes = [](tensor const& v, double k) { vv::add_(v, k); };
  auto const step = vv::compile(writes);
  step(y, 1.0), step(y, 2.0);
  CHECK(elements(y) == doubles({4, 4, 4}));
  tensor const z = vector_of({0, 0, 0});
  (void)vv::interpret(vv::make_fx(writes)(vv::clone(z), 1.0), boxed_args(z));
  CHECK(elements(z) == doubles({1, 1, 1}));
  // A graph has no place for what a function captures: compile makes it an input, make_fx refuses it.
  auto const captures = [&](tensor const& v) { return v * z; };
  CHECK(elements(vv::compile(captures)(x)) == doubles({1, 2, 3}));
  CHECK_THROWS_WITH(vv::make_fx(captures)(x), ContainsText("captures a tensor; pass it as an argument"));
}

TEST_CASE("optimized graphs have the derivatives of the function", "[graph][optimize][grad]") {
  tensor const x = vector_of({1, -2});
  auto const gradient_of = [&](vv::graph const& g) {
    return elements(vv::grad([&](tensor const& v) { return vv::sum(vv::interpret(g, boxed_args(v))[0]); })(x));
  };
  vv::graph const cut = vv::make_fx([](tensor const& v) { return v * vv::detach(v); })(x);
  vv::graph const chosen = vv::make_fx([](tensor const& v) { return vv::where(v > 0.0, v, vv::detach(v)); })(x);
  vv::graph const soft = vv::make_fx([](tensor const& v) { return vv::softmax(v, 0) * v; })(x);
  CHECK(gradient_of(cut) == doubles({1, -2}));
  CHECK(gradient_of(vv::optimize(cut)) == doubles({1, -2}));
  CHECK(gradient_of(vv::fold(cut)) == doubles({1, -2}));
  CHECK(gradient_of(vv::optimize(chosen)) == doubles({1, 0}));
  std::vector<double> const want = gradient_of(soft), got = gradient_of(vv::optimize(soft));
  for (std::size_t k = 0; k < want.size(); ++k) CHECK(got[k] == Approx(want[k]));
  // For values alone nothing is kept for derivatives.
  CHECK(vv::optimize(cut).count(vv::detach) == 1);
  CHECK(vv::optimize(cut, vv::purpose::values).count(vv::detach) == 0);
  CHECK(vv::prepare(cut).count(vv::detach) == 0);
}

namespace {
/// x, with a derivative of 3 that is not that of its text.
struct tripled_text : vv::function<tripled_text> {
  static constexpr auto forward(auto x) { return x * 1.0; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 3.0; }
};
constexpr auto text_graph = vv::trace([](auto x) { return tripled_text::apply(x) + x * 1.0; }, vv::spec<double, 2>);
} // namespace
TEST_CASE("the text of a custom function stays what it is in optimized graphs", "[graph][optimize][custom]") {
  tensor const x = vector_of({1, -2});
  vv::graph const g = text_graph.thaw();
  for (vv::graph const& h : {g, vv::fold(g), vv::cse(g), vv::optimize(g)}) {
    CHECK(elements(vv::interpret(h, boxed_args(x))[0]) == doubles({2, -4}));
    CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::sum(vv::interpret(h, boxed_args(v))[0]); })(x),
                    vv::transform_error);
  }
}

TEST_CASE("threads that call a compiled function first together make its program once", "[graph][compile][threads]") {
  std::atomic<int> traced = 0;
  auto const f = vv::compile([&](tensor const& v) {
    ++traced;
    return v * 2.0 + 1.0;
  });
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> threads;
  for (auto& r : results) threads.emplace_back([&] { r = elements(f(vector_of({1, 2}))); });
  for (auto& t : threads) t.join();
  for (auto const& r : results) CHECK(r == doubles({3, 5}));
  CHECK(traced == 1);
  CHECK(f.versions() == 1);
}
TEST_CASE("compile keeps the programs that were called last", "[graph][compile]") {
  int traced = 0;
  auto const f = vv::compile([&](tensor const& v) {
    ++traced;
    return vv::sum(v);
  });
  auto const call = [&](int n) { return f(vv::ones(vv::dims{n}, dtype::float64)).item<double>(); };
  for (int n = 1; n <= 64; ++n) CHECK(call(n) == n);
  CHECK((traced == 64 && f.versions() == 64));
  CHECK(call(1) == 1);
  CHECK(call(65) == 65); // in place of that for 2
  CHECK((traced == 65 && f.versions() == 64));
  CHECK(call(1) == 1);
  CHECK(traced == 65);
  CHECK(call(2) == 2);
  CHECK(traced == 66);
}

namespace {
/// sin x, of derivative x.
struct sine_by_argument : vv::function<sine_by_argument> {
  static auto forward(auto const& x) { return vv::sin(x); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto const& g) {
    auto [x] = ctx.saved();
    return g * x;
  }
};
} // namespace

TEST_CASE("a trace in a trace leaves nothing that uses what was left out", "[graph][function]") {
  tensor const x = vector_of({1, 2, 3});
  auto const unused = [](tensor const& v) {
    (void)vv::sigmoid(sine_by_argument::apply(v));
    return v * 2.0;
  };
  auto const check = [&](auto const& f) {
    auto const traced = [&](tensor const& v) { return vv::interpret(vv::make_fx(f)(v), boxed_args(v))[0]; };
    vv::graph const g = vv::make_fx(traced)(x);
    CHECK(vv::verify(g));
    CHECK(elements(vv::interpret(g, boxed_args(x))[0]) == elements(f(x)));
    CHECK(elements(vv::interpret(vv::optimize(g), boxed_args(x))[0]) == elements(f(x)));
  };
  check(unused);
  check([](tensor const& v) {
    (void)vv::exp(vv::checkpoint([](tensor const& a) { return vv::sin(a); }, v));
    return v * 2.0;
  });
  check([](tensor const& v) {
    (void)vv::exp(vv::map([](tensor const& a) { return sine_by_argument::apply(a); }, v));
    return v * 2.0;
  });
}

TEST_CASE("temporaries without elements share no place with others", "[fuse][plan]") {
  tensor const x = vector_of({0.5, 1, 2}), nothing = vv::zeros({3, 0}, dtype::float64),
               bytes = vv::zeros({3}, dtype::uint8);
  auto const first = [&](tensor const& v) { // its pullback gives what nobody reads for all others
    auto const row = [](std::vector<tensor> const& r) { return r[0]; };
    return vv::map(row, std::vector<tensor>{v, nothing, bytes, x});
  };
  auto const jacobian = vv::jacrev(first, vv::chunk_size{2});
  CHECK(elements(vv::compile([&](tensor const& v) { return jacobian(v); })(x)) == doubles({1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST_CASE("a value of rank 0 that a number was written into is no number", "[graph][optimize]") {
  tensor const x = vector_of({1.5, 0.25}), y = vv::to(x, dtype::float32);
  auto const f = [](tensor const& v) {
    tensor const s = vv::select(v * 1.0, 0, 0);
    vv::fill_(s, 1.5);
    return vv::erf(vv::exp(s) * 0.5) + 1.0;
  };
  vv::graph const g = vv::optimize(vv::make_fx(f)(y));
  CHECK(vv::interpret(g, vv::boxed_args(y))[0].dtype() == dtype::float32);
  CHECK(vv::compile(f)(y).dtype() == dtype::float32);
  CHECK(difference(vv::interpret(g, vv::boxed_args(y))[0], f(y), 1e-6) == "");
}

TEST_CASE("draws that no result uses are made all the same: those behind them are as they were", "[graph][random]") {
  tensor const x = vector_of({1, 2, 3});
  auto const check = [&](auto const& f) {
    auto const drawn = [&](auto const& g) {
      vv::manual_seed(7);
      std::vector<double> r = elements(g());
      r.push_back(static_cast<double>(vv::default_generator.offset));
      return r;
    };
    std::vector<double> const eagerly = drawn([&] { return f(x); });
    vv::graph const g = vv::make_fx(f)(x);
    auto const run = vv::fuse(g);
    auto const compiled = vv::compile(f);
    compiled.prepare(x);
    CHECK(drawn([&] { return compiled(x); }) == eagerly);
    CHECK(drawn([&] { return run(boxed_args(x))[0]; }) == eagerly);
    for (vv::graph const& h : {g, vv::dce(g), vv::cse(g), vv::optimize(g)})
      CHECK(drawn([&] { return vv::interpret(h, boxed_args(x))[0]; }) == eagerly);
  };
  auto const draw = [](dims const& sizes) { return vv::randn(sizes, dtype::float64); };
  check([&](tensor const& v) {
    (void)draw({5});
    return v + draw({3});
  });
  check([&](tensor const& v) {
    (void)vv::cond(
        vv::sum(v) > 0.0, [&](tensor const& u) { return u * draw({3}); }, [](tensor const& u) { return u; }, v);
    return v + draw({3});
  });
  check([&](tensor const& v) {
    (void)vv::scan([&](tensor const& c, tensor const&) { return std::pair(c + draw({}), c); }, vv::sum(v), v);
    return v + draw({3});
  });
}

TEST_CASE("a predicate of cond that is no truth value is one in programs too", "[graph][cond]") {
  auto const f = [](tensor const& p, tensor const& v) {
    return vv::cond(p, [](tensor const& a) { return a * 3.0; }, [](tensor const& a) { return a * 2.0; }, v);
  };
  tensor const x = vector_of({1, 2});
  for (double v : {-0.75, 0.25, 1.0, 2.0, 256.0, 0.0, -0.0})
    for (dtype t : {dtype::float64, dtype::float32, dtype::int64, dtype::int32, dtype::uint8, dtype::bool_}) {
      tensor const p = vv::to(number(v), t);
      INFO(v << " " << vv::name(t));
      std::vector<double> const right = elements(f(p, x));
      CHECK(right == (static_cast<bool>(p) ? doubles({3, 6}) : doubles({2, 4})));
      vv::graph const g = vv::make_fx(f)(p, x);
      CHECK(elements(vv::compile(f)(p, x)) == right);
      CHECK(elements(vv::fuse(g)(boxed_args(p, x))[0]) == right);
      CHECK(elements(vv::interpret(g, boxed_args(p, x))[0]) == right);
      auto const gradient = [&](tensor const& q, tensor const& w) {
        return vv::grad([&](tensor const& u) { return vv::sum(f(q, u)); })(w);
      };
      CHECK(elements(vv::compile(gradient)(p, x)) == elements(gradient(p, x)));
    }
}

TEST_CASE("folding: a tensor of rank 0 counts in dtypes as before", "[graph][optimize]") {
  tensor const x = from({0.25, 1.25, 1.75}, {3}, dtype::float64);
  auto const by = [&](auto const& one) {
    auto const f = [one](tensor const& v) { return v * (one() / vv::count_nonzero(v)); };
    vv::graph const g = vv::make_fx(f)(x);
    CHECK(difference(vv::interpret(vv::optimize(g), vv::boxed_args(x))[0], f(x)) == "");
    CHECK(difference(vv::compile(f)(x), f(x)) == "");
  };
  by([] { return vv::to(vv::reshape(vv::arange(1), vv::dims{}) == 0, dtype::float64); });
  by([] { return vv::reshape(vv::ones({1}, dtype::float64), vv::dims{}); });
  by([] { return vv::to(vv::reshape(vv::ones({1, 1}), vv::dims{}), dtype::float64); });
  by([] { return vv::full({}, 1.0, dtype::float64); });
}

TEST_CASE("what a graph returns, or writes into an argument, is as it was before it writes into others",
          "[graph][optimize][functionalize]") {
  auto const same = [](auto const& f) {
    auto const arguments = [] { return std::vector{vector_of({-1, 2, -3, 4}), vector_of({5, -6, 7, -8})}; };
    auto const a = arguments(), traced = arguments();
    tensor const y = f(a[0], a[1]);
    vv::graph const g = vv::make_fx(f)(traced[0], traced[1]);
    for (vv::graph const& h :
         {vv::functionalize(g), vv::fold(vv::functionalize(g)), vv::optimize(g), vv::optimize(vv::optimize(g))}) {
      auto const b = arguments();
      CHECK(vv::verify(h));
      CHECK(elements(vv::interpret(h, boxed_args(b[0], b[1]))[0]) == elements(y));
      CHECK(elements(b[0]) == elements(a[0]));
      CHECK(elements(b[1]) == elements(a[1]));
    }
  };
  auto const after = [&](auto const& old) { // a copy of an argument, which is written then
    same([old](tensor const& v, tensor const& w) {
      tensor const r = old(v);
      vv::relu_(v), vv::add_(w, 1.0);
      return r;
    });
  };
  after([](tensor const& v) { return vv::clone(v); });
  after([](tensor const& v) { return v * 1.0; });
  after([](tensor const& v) { return v / 1.0; });
  after([](tensor const& v) { return -(-v); });
  after([](tensor const& v) { return vv::where(v > 0.0, v, v); });
  after([](tensor const& v) { return vv::reshape(vv::clone(vv::slice(v, 0, 1, 3)), dims{2, 1}); });
  after([](tensor const& v) { return vv::copy_(vv::zeros(dims{4}, dtype::float64), v); });
  after([](tensor const& v) {
    auto const g = [](tensor const& u) { return u * 1.0; };
    return vv::cond(vv::sum(v) > 0.0, g, g, v);
  });
  same([](tensor const& v, tensor const& w) { // each becomes the other
    tensor const old = vv::clone(v);
    vv::copy_(v, w), vv::copy_(w, old);
    return old;
  });
  same([](tensor const& v, tensor const& w) { // the value of another argument, which is written later
    vv::copy_(v, w), vv::mul_(w, 2.0);
    return v;
  });
  // What nobody writes is no copy.
  vv::graph const g = vv::optimize(vv::make_fx([](tensor const& v, tensor const& w) {
    vv::add_(v, 1.0);
    return w * 1.0;
  })(vector_of({1}), vector_of({2})));
  for (auto const& n : g.nodes) CHECK(std::string(n.op->name) != "clone");
}

TEST_CASE("optimize: branches behind branches are asked once each what they show", "[graph][optimize]") {
  tensor const x = from({0.5, -1.5}, {2}), written = from({1, 2}, {2});
  auto const f = [](tensor const& v, tensor const& w, tensor const& z) {
    tensor a = v, b = w;
    for (int k = 0; k < 60; ++k) { // 2^60 ways from the result to the arguments
      auto const [c, d] = vv::cond(
          vv::sum(a) > 0.0, [](tensor const& p, tensor const& q) { return std::tuple(p * 1.0, q * 1.0); },
          [](tensor const& p, tensor const& q) { return std::tuple(q * 1.0, p * 1.0); }, a, b);
      a = c, b = d;
    }
    vv::mul_(z, 2.0);
    return a;
  };
  vv::graph const g = vv::optimize(vv::make_fx(f)(x, x * 2.0, vv::clone(written)));
  tensor const one = vv::clone(written), two = vv::clone(written);
  CHECK(difference(vv::interpret(g, vv::boxed_args(x, tensor(x * 2.0), one))[0], f(x, x * 2.0, two)) == "");
  CHECK(difference(one, two) == "");
}
