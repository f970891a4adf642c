// SPDX-License-Identifier: BSL-1.0
// Programs that call implicit functions, on every host: loops, traces, compilers, exports. Each host must give the
// values and the gradients of the program itself.
#include "varve_test.hpp"

#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/implicit.hpp>
#include <varve/implicit/saved_solution.hpp>
#include <varve/varve.hpp>

#include <functional>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::tensor;

namespace {
using program = std::function<tensor(tensor const&)>;
struct row {
  char const* name;
  program run;
};
tensor argument(double scale) { return tensor{1.0, 2.0, 0.5} * scale; }
constexpr auto cubic = [](tensor const& x, tensor const& a) { return x * x * x + x * vv::sum(x * x) - a; };
row const rows[] = {
    {"root", [](tensor const& a) { return implicit::root(cubic)(vv::ones_like(a), a); }},
    {"root, gmres",
     [](tensor const& a) {
       return implicit::root(cubic, implicit::newton{}, implicit::gmres<3>{.tolerance = 1e-12})(vv::ones_like(a), a);
     }},
    {"two leaves",
     [](tensor const& a) {
       auto const [x, y] = implicit::root([](auto const& v, tensor const& b) {
         auto const& [p, q] = v;
         return std::tuple(p * p * p - b, q + q * q * q - vv::sum(p));
       })(std::tuple(vv::ones_like(a), vv::sum(a)), a);
       return x * y;
     }},
    {"fixed_point",
     [](tensor const& a) {
       return implicit::fixed_point([](tensor const& x, tensor const& m) { return vv::sin(x) * 0.5 + m; })(a, a);
     }},
    {"anderson",
     [](tensor const& a) {
       return implicit::fixed_point([](tensor const& x, tensor const& m) { return vv::sin(x) * 0.5 + m; },
                                    implicit::anderson<2>{})(a, a);
     }},
    {"a loop in the function",
     [](tensor const& a) {
       return implicit::fixed_point([](tensor const& x, tensor const& m) {
         auto const filter = [](tensor const& c, tensor const& v) { return std::pair(c * 0.5 + v * 0.2, vv::sin(c)); };
         return vv::scan(filter, tensor(0.1), x).second * 0.5 + m;
       })(a, a);
     }},
    {"linear_solve, bicgstab",
     [](tensor const& a) {
       return implicit::linear_solve(
           vv::closure([](tensor const& v, tensor const& d) { return v * d + vv::sum(v) * 0.1 * d; }, a + 2.0), a * a,
           implicit::bicgstab{.tolerance = 1e-12});
     }},
};
tensor loss(program const& f, tensor const& a) { return vv::sum(vv::sin(f(a))); }
program gradient(program const& f) {
  return [f](tensor const& a) { return vv::grad([&](tensor const& v) { return loss(f, v); })(a); };
}
program interpreted(vv::graph const& g) {
  return [g](tensor const& a) { return tensor(vv::interpret(g, vv::boxed_args(a))[0]); };
}

struct host {
  char const* name;
  program (*make)(program const& f, tensor const& like);
};
host const hosts[] = {
    {"scan",
     [](program const& f, tensor const&) -> program {
       return [f](tensor const& a) {
         return std::get<1>(vv::scan([&](tensor const& c, tensor const& x) { return std::pair(c, f(x)); }, tensor(0.0),
                                     vv::unsqueeze(a, 0)))[0];
       };
     }},
    {"cond",
     [](program const& f, tensor const&) -> program {
       return [f](tensor const& a) {
         return vv::cond(
             vv::sum(a) > -100.0, [&](tensor const& x) { return f(x); }, [](tensor const& x) { return x * 2.0; }, a);
       };
     }},
    {"functionalize", [](program const& f, tensor const&) -> program { return vv::functionalize(f); }},
    {"make_fx", [](program const& f, tensor const& x) { return interpreted(vv::make_fx(f)(x)); }},
    {"make_fx, fake",
     [](program const& f, tensor const& x) { return interpreted(vv::make_fx(f, vv::tracing::fake)(x)); }},
    {"optimize", [](program const& f, tensor const& x) { return interpreted(vv::optimize(vv::make_fx(f)(x))); }},
    {"fuse",
     [](program const& f, tensor const& x) -> program {
       return [h = vv::fuse(vv::make_fx(f)(x))](tensor const& a) { return tensor(h(vv::boxed_args(a))[0]); };
     }},
    {"compile", [](program const& f, tensor const&) -> program { return vv::compile(f); }},
    {"compile, aot_eager",
     [](program const& f, tensor const&) -> program { return vv::compile(f, vv::backends::aot_eager); }},
    {"compile, fused", [](program const& f, tensor const&) -> program { return vv::compile(f, vv::backends::fused); }},
    {"aot_function", [](program const& f, tensor const&) -> program { return vv::aot_function(f); }},
    {"export",
     [](program const& f, tensor const& x) -> program {
       return [p = vv::export_program(f)(x)](tensor const& a) { return tensor(p(a)[0]); };
     }},
};
} // namespace

TEST_CASE("implicit functions: every host gives the values", "[implicit][aot][export]") {
  for (row const& r : rows)
    for (host const& h : hosts) {
      INFO(r.name << " in " << h.name);
      program const made = h.make(r.run, argument(1));
      for (double scale : {1.0, 1.7}) CHECK(vv::allclose(made(argument(scale)), r.run(argument(scale)), 1e-8, 1e-10));
    }
}

TEST_CASE("implicit functions: gradients in every host, and of every host", "[implicit][aot][export]") {
  for (row const& r : rows) {
    tensor const expected = gradient(r.run)(argument(1.7));
    double const step = 1e-5; // central differences of the loss
    for (int k = 0; k < 3; ++k) {
      tensor const d =
          vv::to(vv::eq(vv::arange(3, vv::dtype::float64), static_cast<double>(k)), vv::dtype::float64) * step;
      double const slope = (loss(r.run, argument(1.7) + d) - loss(r.run, argument(1.7) - d)).item() / (2 * step);
      CHECK(expected[k].item() == Approx(slope).epsilon(1e-6));
    }
    for (host const& h : hosts) {
      INFO(r.name << " in " << h.name);
      CHECK(vv::allclose(h.make(gradient(r.run), argument(1))(argument(1.7)), expected, 1e-7, 1e-9));
      if (std::string(h.name) == "export" || std::string(h.name) == "fuse") continue; // called without gradients
      tensor const leaf = argument(1.7).requires_grad_();
      loss(h.make(r.run, argument(1)), leaf).backward();
      CHECK(vv::allclose(leaf.grad(), expected, 1e-7, 1e-9));
    }
  }
}

TEST_CASE("implicit functions: second derivatives and lanes", "[implicit]") {
  for (row const& r : rows) {
    INFO(r.name);
    tensor const a = argument(1.3);
    auto const g = [&](tensor const& v) { return vv::grad([&](tensor const& w) { return loss(r.run, w); })(v); };
    tensor const h = vv::jacrev(g)(a);
    double const step = 1e-5;
    for (int k = 0; k < 3; ++k) {
      tensor const d =
          vv::to(vv::eq(vv::arange(3, vv::dtype::float64), static_cast<double>(k)), vv::dtype::float64) * step;
      CHECK(vv::allclose(h[k], (g(a + d) - g(a - d)) / (2 * step), 1e-5, 1e-7));
    }
    CHECK(vv::allclose(vv::jacfwd(g)(a), h, 1e-6, 1e-8));
    tensor const many = vv::stack(std::vector<tensor>{a, a * 0.5, a * 40.0}); // other numbers of steps
    tensor const y = vv::vmap([&](tensor const& v) { return r.run(v); })(many), dy = vv::vmap(g)(many);
    for (int k = 0; k < 3; ++k) {
      CHECK(vv::allclose(y[k], r.run(many[k]), 1e-8, 1e-10));
      CHECK(vv::allclose(dy[k], g(many[k]), 1e-6, 1e-8));
    }
  }
}

TEST_CASE("implicit functions: programs are saved by the name of a function, and refused without one",
          "[implicit][export]") {
  auto const solver = implicit::root([](auto const& v, tensor const& a, double power) {
    auto const& [p, q] = v;
    return std::tuple(p * p * p - a * power, q + q * q * q - vv::sum(p));
  });
  program const f = [&](tensor const& a) {
    auto const [x, y] = solver(std::tuple(vv::ones_like(a), vv::sum(a)), a, 1.5);
    return x * y;
  };
  for (program const& g : {f, gradient(f)}) {
    auto const p = vv::export_program(g)(argument(1));
    CHECK_THROWS_WITH(vv::to_text(p), ContainsText("implicit::root"));
    implicit::saved_solution<decltype(solver), std::tuple<tensor, tensor>, tensor, double> const known("two", solver);
    std::string const text = vv::to_text(p);
    auto q = vv::program_from_text(text);
    CHECK(vv::to_text(q) == text);
    q.state = p.state;
    CHECK(vv::allclose(tensor(q(argument(2))[0]), g(argument(2))));
    CHECK_THROWS_AS(
        (implicit::saved_solution<decltype(solver), std::tuple<tensor, tensor>, tensor, double>("b", solver)),
        vv::value_error);
  }
}
