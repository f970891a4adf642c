// SPDX-License-Identifier: BSL-1.0
// Operators with functions: every host runs them as the program does. Hosts trace, compile, save or write a program.
#include "hop_law.hpp"

#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/export/cpp_backend.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/hop/print.hpp>
#include <varve/varve.hpp>

#include <sstream>

using namespace hop_law;
namespace vv = varve;

namespace {
vv::boxed_args boxed(values const& v) {
  vv::boxed_args b;
  for (tensor const& t : v) b.push_back(t);
  return b;
}
values unboxed(vv::boxed_args const& b) { return values(b.begin(), b.end()); }
/// The results of a call, and the lines that it printed.
struct outcome {
  values results;
  std::string printed;
};
outcome observed(program const& f, values const& x) {
  std::ostringstream to;
  vv::print_to const here(to);
  values const y = f(x);
  return {y, to.str()};
}
std::string difference(outcome const& a, outcome const& b) {
  auto const d = hop_law::difference(a.results, b.results);
  return d.empty() && a.printed != b.printed ? "printed \"" + a.printed + "\" instead of \"" + b.printed + "\"" : d;
}
program interpreted(vv::graph const& g) {
  return [g](values const& x) { return unboxed(vv::interpret(g, boxed(x))); };
}
values joined(values a, values const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// The pullback of a program: of its `n` arguments and the cotangents of its results.
program pullback(program const& f, std::size_t n) {
  return [f, n](values const& all) {
    auto const at = all.begin() + static_cast<std::ptrdiff_t>(n);
    return values(std::get<0>(vv::vjp(f, values(all.begin(), at)).second(values(at, all.end()))));
  };
}
int calls_of(vv::graph const& g, std::string const& name) {
  int n = 0;
  for (vv::node const& nd : g.nodes) n += name == nd.op->name;
  return n;
}
vv::exported_program saved(vv::exported_program const& p) {
  std::string const text = vv::to_text(p);
  vv::exported_program q = vv::program_from_text(text);
  CHECK(vv::to_text(q) == text);
  q.state = p.state;
  return q;
}
struct watching {
  static constexpr bool supports_higher_order_operators = true;
  auto process(auto const& op, auto const&... x) { return op(x...); }
};
values below_functional_mode(program const& f, values const& x) {
  vv::functional_mode mode;
  values in, y;
  vv::functional_mode_guard const on(mode);
  for (tensor const& t : x) in.push_back(mode.to_functional_tensor(t));
  for (tensor const& t : f(in)) y.push_back(vv::is_functional_tensor(t) ? vv::from_functional_tensor(t) : t);
  return y;
}

/// A way to make another program of a program, for arguments like these.
struct host {
  char const* name;
  program (*make)(program const& f, values const& like);
};
host const hosts[] = {
    {"functionalize",
     [](program const& f, values const&) -> program {
       return [h = vv::functionalize(f)](values const& x) { return h(x); };
     }},
    {"functional mode",
     [](program const& f, values const&) -> program {
       return [f](values const& x) { return below_functional_mode(f, x); };
     }},
    {"watching mode",
     [](program const& f, values const&) -> program {
       return [f](values const& x) {
         watching m;
         vv::mode_guard const on(m);
         return f(x);
       };
     }},
    {"compile", [](program const& f, values const&) -> program { return vv::compile(f); }},
    {"compile, aot_eager",
     [](program const& f, values const&) -> program { return vv::compile(f, vv::backends::aot_eager); }},
    {"compile, fused", [](program const& f, values const&) -> program { return vv::compile(f, vv::backends::fused); }},
    {"make_fx", [](program const& f, values const& x) { return interpreted(vv::make_fx(f)(x)); }},
    {"make_fx, fake",
     [](program const& f, values const& x) { return interpreted(vv::make_fx(f, vv::tracing::fake)(x)); }},
    {"make_fx, symbolic",
     [](program const& f, values const& x) { return interpreted(vv::make_fx(f, vv::tracing::symbolic)(x)); }},
    {"optimize", [](program const& f, values const& x) { return interpreted(vv::optimize(vv::make_fx(f)(x))); }},
    {"functional graph",
     [](program const& f, values const& x) { return interpreted(vv::functionalize(vv::make_fx(f)(x))); }},
    {"inlined", [](program const& f, values const& x) { return interpreted(vv::inline_calls(vv::make_fx(f)(x))); }},
    {"fuse",
     [](program const& f, values const& x) -> program {
       return [h = vv::fuse(vv::make_fx(f)(x))](values const& a) { return unboxed(h(boxed(a))); };
     }},
    {"export",
     [](program const& f, values const& x) -> program {
       return [p = vv::export_program(f)(x)](values const& a) { return values(p(a)); };
     }},
    {"save",
     [](program const& f, values const& x) -> program {
       return [p = saved(vv::export_program(f)(x))](values const& a) { return values(p(a)); };
     }},
};
} // namespace

TEST_CASE("all operators with functions: every host gives what the program gives", "[laws][hop][aot][export]") {
  for (hop_row const& r : hop_rows()) {
    INFO(r.describe());
    CHECK(observed(r.run, make(r, 1)).printed.empty() != r.is(prints));
  }
  for (host const& h : hosts)
    for (hop_row const& r : hop_rows())
      law(r, h.name, [&] {
        program const made = h.make(r.run, make(r, 1));
        for (std::uint64_t seed : {1, 2, 3, 4}) { // other data take other branches
          values const x = make(r, seed);
          auto const d = difference(observed(made, x), observed(r.run, x));
          if (!d.empty()) return "arguments " + std::to_string(seed) + ": " + d;
        }
        return std::string();
      });
}

TEST_CASE("all operators with functions: their pullbacks are programs for every host", "[laws][hop][aot][export]") {
  for (host const& h : hosts)
    for (hop_row const& r : hop_rows()) {
      if (r.is(constant)) continue;
      std::ostringstream to;
      vv::print_to const here(to);
      program const pull = pullback(r.run, r.shapes.size());
      law(r, h.name + std::string(" of vjp"), [&] {
        auto const sample = [&](std::uint64_t seed) {
          values const x = make(r, seed);
          return joined(x, like(r.run(x), seed + 7));
        };
        program const made = h.make(pull, sample(1));
        for (std::uint64_t seed : {1, 2, 3}) {
          auto const d = hop_law::difference(made(sample(seed)), pull(sample(seed)), 1e-11);
          if (!d.empty()) return "arguments " + std::to_string(seed) + ": " + d;
        }
        return std::string();
      });
    }
}

TEST_CASE("all operators with functions: gradients of compiled programs", "[laws][hop][aot]") {
  for (host const& h : hosts) {
    if (std::string(h.name).find("compile") == std::string::npos) continue;
    for (hop_row const& r : hop_rows()) {
      if (r.is(constant)) continue;
      std::ostringstream to;
      vv::print_to const here(to);
      values const x = make(r, 1), g = like(r.run(x), 7);
      program const pull = pullback(r.run, x.size());
      law(r, h.name + std::string(", backward"), [&] {
        program const made = h.make(r.run, x);
        for (std::uint64_t seed : {1, 2, 3}) {
          values leaves;
          for (tensor const& t : make(r, seed)) leaves.push_back(vv::clone(t).requires_grad_());
          values const y = made(leaves);
          std::vector<vv::autograd::target> const outputs(y.begin(), y.end()), inputs(leaves.begin(), leaves.end());
          values const c = vv::autograd::grad<>(outputs, inputs, g, {}, vv::autograd::unused::zeros);
          auto const d = hop_law::difference(c, pull(joined(make(r, seed), g)), 1e-11);
          if (!d.empty()) return "arguments " + std::to_string(seed) + ": " + d;
        }
        return std::string();
      });
    }
  }
}

TEST_CASE("all operators with functions: graphs keep the call, and text keeps it too", "[laws][hop][export]") {
  for (hop_row const& r : hop_rows()) {
    std::string const name = r.op;
    if (name.empty()) continue;
    INFO(r.describe());
    values const x = make(r, 1);
    vv::exported_program const p = vv::export_program(r.run)(x);
    CHECK(calls_of(p.graph, name) > 0);
    CHECK(vv::verify(p.graph));
    if (!r.is(when_exported)) {
      vv::graph const g = vv::make_fx(r.run)(x);
      CHECK(vv::verify(g));
      CHECK(calls_of(g, name) > 0);
    }
    law(r, "save", [&] { return calls_of(saved(p).graph, name) > 0 ? "" : "the text has the parts of the call"; });
  }
}

TEST_CASE("all operators with functions: fake tensors have the metadata of the results", "[laws][hop][fake]") {
  for (hop_row const& r : hop_rows())
    law(r, "fake", [&]() -> std::string {
      vv::fake_mode mode;
      values const x = make(r, 1), y = observed(r.run, x).results;
      values const fakes = vv::with_fake(mode, r.run, x);
      if (fakes.size() != y.size()) return std::to_string(fakes.size()) + " results";
      for (std::size_t k = 0; k < y.size(); ++k)
        if (!vv::is_fake(fakes[k]) || fakes[k].dtype() != y[k].dtype() || !(fakes[k].sizes() == y[k].sizes()))
          return "result " + std::to_string(k) + " is " + vv::to_string(fakes[k]);
      // What a graph of the program calls runs on fakes as well.
      vv::graph const g = vv::make_fx(r.run)(x);
      values const again = vv::with_fake(mode, interpreted(g), x);
      for (std::size_t k = 0; k < y.size(); ++k)
        if (again[k].dtype() != y[k].dtype() || !(again[k].sizes() == y[k].sizes()))
          return "result " + std::to_string(k) + " of the graph is " + vv::to_string(again[k]);
      return "";
    });
}
