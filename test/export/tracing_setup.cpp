// SPDX-License-Identifier: BSL-1.0
// What compiling, exporting and operators with functions do to run the user's functions is seen by no mode; the
// functions themselves are seen at each run, with the modes where they were.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <stdexcept>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::compile, vv::export_program, vv::make_fx;
namespace backends = vv::backends;

namespace {
tensor data(index_t n, double from = 0.1) {
  tensor const t = tensor::empty({n}, dtype::float64);
  for (index_t k = 0; k < n; ++k) set(t, k, from + 0.3 * static_cast<double>(k % 7));
  return t;
}
std::string& shared_log() {
  static std::string log;
  return log;
}
/// Writes down what it sees, under a name.
struct parts : vv::dispatch_mode<parts> {
  std::string name, log;
  auto process(auto const& op, auto const& x) {
    log += std::string(log.empty() ? "" : " ") + op.name();
    shared_log() += name;
    return op(x);
  }
};
/// ... and takes operators with functions whole.
struct whole : vv::dispatch_mode<whole> {
  static constexpr bool supports_higher_order_operators = true;
  std::string log;
  auto process(auto const& op, auto const& x) {
    log += std::string(log.empty() ? "" : " ") + op.name();
    return op(x);
  }
};
/// Has another function in place of every operator.
struct calling : vv::dispatch_mode<calling> {
  std::function<tensor(tensor const&)> inner;
  explicit calling(auto f) : inner(f) {}
  tensor process(auto const&, auto const& x) { return inner(x[0]); }
};
template <class Mode, template <class> class Guard>
std::string seen(auto const& run) {
  Mode mode;
  {
    Guard<Mode> const on{mode};
    run();
  }
  CHECK(vv::this_thread_state.quiet());
  return mode.log;
}
/// What function modes and pre-dispatch modes see, which is the same.
std::string seen_above(auto const& run) {
  std::string const r = seen<parts, vv::function_mode_guard>(run);
  CHECK(seen<parts, vv::pre_dispatch_guard>(run) == r);
  return r;
}

auto const branches = [](tensor x) {
  return vv::cond(
      vv::gt(vv::sum(x), 0.0), [](tensor v) { return vv::exp(v); },
      [](tensor v) { return vv::softmax(v, vv::axis<0>); }, x);
};
auto const scanned = [](tensor x) {
  return vv::scan([](tensor c, tensor v) { return std::pair{c + v, c * v}; }, vv::zeros(vv::dims{}, dtype::float64), x);
};
auto const mapped = [](tensor x) { return vv::map([](tensor v) { return vv::exp(v) + v; }, x); };
auto const doubled = [](tensor x) {
  return vv::while_loop([](tensor v) { return vv::lt(vv::sum(v), 9.0); }, [](tensor v) { return v * 2.0; }, x);
};
auto const called = [](tensor x) { return vv::invoke_subgraph([](tensor v) { return vv::exp(v) + v; }, 1, x); };
} // namespace

TEST_CASE("setting up: function modes see what functions of operators do, and not what runs them",
          "[export][hop][modes][CE-2][CE-6][EX-S18]") {
  tensor const x = data(3);
  CHECK(seen_above([&] { (void)scanned(x); }) == "full add mul add mul add mul");
  CHECK(seen_above([&] { (void)mapped(x); }) == "exp add exp add exp add");
  auto const traced = [&](auto const& f) {
    std::string const r = seen_above([&] { (void)make_fx(f)(x); });
    CHECK(seen_above([&] { (void)make_fx(f, vv::tracing::fake)(x); }) == r);
    CHECK(seen_above([&] { (void)export_program(f)(x); }) == r);
    return r;
  };
  CHECK(traced(branches) == "sum gt exp softmax");
  CHECK(traced(scanned) == "full add mul");
  CHECK(traced(mapped) == "exp add");
  CHECK(traced(doubled) == "mul sum lt");
  CHECK(traced(called) == "exp add");
  // One below that takes the call whole is asked, also where one above lets it pass.
  whole below;
  parts above;
  {
    vv::function_mode_guard const on_below(below);
    vv::function_mode_guard const on_above(above);
    (void)mapped(x);
  }
  CHECK(below.log == "map exp add exp add exp add");
  CHECK(above.log == "exp add exp add exp add");
}

TEST_CASE("setting up: modes are off while a program is made, and on in each run", "[export][modes][CE-2][CE-3]") {
  tensor const x = data(3);
  auto const f = [](tensor v) { return vv::softmax(vv::sin(v) * 2.0, vv::axis<0>); };
  auto const c = compile(f);
  auto const prepares = [&] {
    compile(f).prepare(x);
    (void)compile(f, x);
    c.prepare(x);
  };
  CHECK(seen_above(prepares) == "");
  CHECK(seen<parts, vv::mode_guard>(prepares) == "");
  CHECK(c.versions() == 1);
  for (int run = 0; run < 2; ++run) CHECK(seen_above([&] { (void)c(x); }) == "sin mul softmax");
  // At their positions: the last one that was switched on is asked first, in each run.
  parts outer, inner;
  outer.name = "o", inner.name = "i";
  for (int run = 0; run < 2; ++run) {
    shared_log().clear();
    vv::function_mode_guard const on_outer(outer);
    vv::pre_dispatch_guard const on_inner(inner);
    (void)compile([](tensor v) { return vv::sin(v); })(x);
    CHECK(shared_log() == "oi");
  }
}

TEST_CASE("setting up: a compiled function in an export is part of the program",
          "[export][modes][CE-1][CE-5][EX-S17]") {
  tensor const x = data(3), w = data(3, -0.4);
  int compiled = 0;
  auto const backend = [&](vv::graph const& g) -> vv::boxed_function {
    ++compiled;
    return [g](vv::boxed_args const& in) { return vv::interpret(g, in); };
  };
  auto const inner = [](tensor v) { return vv::sin(v) * 2.0; };
  auto const by_backend = compile(inner, backend), by_default = compile(inner, backends::aot_eager);
  auto const f = [&](tensor v, tensor u) {
    auto const captures = compile([&](tensor a) { return a * u; }, backends::fused); // a value of the export
    tensor const a = by_backend(v), b = by_default(v), c = captures(v);
    return a + b + c;
  };
  vv::exported_program p;
  CHECK(seen_above([&] { p = export_program(f)(x, w); }) == "sin mul sin mul mul add add");
  CHECK(compiled == 0);
  CHECK(p.graph.count(vv::sin) >= 1);
  CHECK(difference(p(data(3, 2), w)[0], f(data(3, 2), w), 1e-14) == "");
  CHECK(compiled == 1); // outside it compiles as ever
}

TEST_CASE("setting up: nothing is left behind by an exception", "[export][exception][CE-4][CE-9]") {
  tensor const x = data(3);
  struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  bool fails = true;
  auto const backend = [&](vv::graph const& g) -> vv::boxed_function {
    if (fails) throw failure("backend");
    return [g](vv::boxed_args const& in) { return vv::interpret(g, in); };
  };
  auto const by_backend = compile([](tensor v) { return vv::sin(v) * 2.0; }, backend);
  auto const throws = [&](tensor v) {
    auto const y = vv::cond(
        vv::gt(vv::sum(v), 0.0),
        [&](tensor a) {
          if (fails) throw failure("branch");
          return vv::exp(a);
        },
        [](tensor a) { return a * 3.0; }, v);
    return vv::map([](tensor a) { return a + 1.0; }, y);
  };
  auto const clean = [&] {
    CHECK(vv::this_thread_state.quiet());
    CHECK(vv::is_grad_enabled());
    auto const c = compile([](tensor v) { return vv::cos(v) + v; });
    CHECK(difference(c(x), vv::cos(x) + x, 1e-14) == "");
    CHECK(c.versions() == 1); // compiled, and not run as it is
    auto const aot = compile([](tensor v) { return vv::cos(v) + v; }, backends::aot_eager);
    (void)aot(x);
    CHECK(aot.versions() == 1);
  };
  auto const fails_in = [&](auto const& run) {
    CHECK_THROWS_AS(run(), failure);
    clean();
    parts function, above;
    {
      vv::function_mode_guard const on(function);
      vv::pre_dispatch_guard const on_above(above);
      CHECK_THROWS_AS(run(), failure);
      (void)vv::neg(x);
    }
    CHECK(function.log.substr(function.log.rfind(' ') + 1) == "neg"); // both are where they were
    CHECK(above.log.substr(above.log.rfind(' ') + 1) == "neg");
    clean();
  };
  CHECK_THROWS_AS(by_backend(x), failure);
  clean();
  CHECK(by_backend.versions() == 0);
  fails_in([&] { (void)throws(x); });
  fails_in([&] { (void)make_fx(throws)(x); });
  fails_in([&] { (void)make_fx(throws, vv::tracing::fake)(x); });
  fails_in([&] { (void)export_program(throws)(x); });
  fails_in([&] { compile(throws).prepare(x); });
  fails_in([&] { (void)export_program([&](tensor v) { return compile(throws)(v); })(x); });
  fails = false;
  CHECK(difference(by_backend(x), vv::sin(x) * 2.0, 1e-14) == "");
  CHECK(by_backend.versions() == 1);
  CHECK(difference(export_program(throws)(x)(x)[0], throws(x), 1e-14) == "");
}

TEST_CASE("setting up: user modes", "[export][modes][CE-7][CE-8]") {
  tensor const x = data(3);
  auto const c = compile([](tensor v) { return vv::sin(v) * 2.0; });
  CHECK(seen<parts, vv::mode_guard>([&] { (void)c(x); }) == "sin mul");
  CHECK(c.versions() == 0); // compiling is skipped
  // Operators with functions ask modes, in traces and in exports; one that says nothing sees what the functions do.
  vv::exported_program p;
  CHECK(seen<parts, vv::mode_guard>([&] { p = export_program(mapped)(x); }) == "exp add");
  CHECK(p.graph.count(vv::exp) == 1);
  CHECK(seen<whole, vv::mode_guard>([&] { p = export_program(mapped)(x); }) == "map exp add");
  CHECK(p.graph.count(vv::exp) == 1);
  CHECK(difference(p(data(3, -2))[0], mapped(data(3, -2)), 1e-14) == "");
  // What a handler calls is seen by the modes below it alone.
  calling handler([&](tensor const& v) { return c(v); });
  parts below;
  {
    vv::mode_guard const on_below(below);
    vv::mode_guard const on(handler);
    (void)vv::cos(x);
  }
  CHECK(below.log == "sin mul");
  CHECK(c.versions() == 0);
  {
    vv::mode_guard const on(handler); // nobody is below
    tensor const y = vv::cos(x);
    vv::disable_modes const off;
    CHECK(difference(y, vv::sin(x) * 2.0, 1e-14) == "");
  }
  CHECK(below.log == "sin mul");
}

TEST_CASE("setting up: what is done below is not in a trace above composites", "[export][CE-10]") {
  tensor const x = data(3);
  auto const c = compile([](tensor v) { return vv::softmax(v, vv::axis<0>) * 2.0; });
  auto const f = [&](tensor v) {
    vv::no_grad const off;
    tensor const y = c(v);
    vv::enable_grad const on;
    return branches(y);
  };
  vv::graph const g = make_fx(f, vv::tracing::pre_dispatch)(x);
  std::string names;
  vv::region const& whole_program = g.regions[0];
  for (int n = whole_program.node_first; n < whole_program.node_first + whole_program.node_count; ++n)
    names += std::string(names.empty() ? "" : " ") + g.nodes[n].op->name;
  CHECK(names == "placeholder constant softmax constant mul sum constant gt cond");
  for (int n = whole_program.node_first; n < whole_program.node_first + whole_program.node_count; ++n) {
    std::string const name = g.nodes[n].op->name;
    bool const off = name == "softmax" || name == "mul";
    if (off || name == "cond") CHECK((g.nodes[n].mode == vv::recording::off) == off);
  }
  CHECK(difference(vv::interpret(g, vv::boxed_args(x))[0], f(x), 1e-14) == "");
}

TEST_CASE("setting up: programs of nothing, and many programs", "[export][CE-4]") {
  tensor const x = data(3);
  auto const nothing = compile([](tensor v) { return v; });
  CHECK(elements(nothing(x)) == elements(x));
  CHECK(nothing.versions() == 1);
  CHECK(elements(compile([](tensor v) { return v; }, backends::aot_eager)(x)) == elements(x));
  auto const same = [](tensor v) {
    return vv::cond(vv::gt(vv::sum(v), 0.0), [](tensor a) { return a; }, [](tensor a) { return a; }, v);
  };
  CHECK(elements(export_program(same)(x)(data(3, -5))[0]) == elements(data(3, -5)));
  auto const c = compile([](tensor v) { return v * 2.0; });
  for (index_t n = 2; n < 90; ++n) CHECK(c(data(n)).size(0) == n);
  CHECK(c.versions() == 64);
}
