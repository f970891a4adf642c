// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>

#include <sstream>
#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct sin_is_cos : vv::dispatch_mode<sin_is_cos> {
  tensor process(auto op, auto const& x) {
    if (std::string(op.name()) == "sin") return vv::cos(tensor(x[0]));
    return op(x);
  }
};
/// A derivative that is not that of its text.
struct tripled : vv::function<tripled> {
  static tensor forward(tensor x) { return x * 1.0; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return g * 3.0; }
  static auto jvp(auto&, tensor t) { return t * 3.0; }
};
tensor some_numbers() { return tensor({1.0, 2.0, 3.0}); }
/// What the graph of f gives: of fakes of other numbers, and twice.
template <class F>
std::vector<double> traced(F const& f, tensor const& x = some_numbers()) {
  vv::graph const g = vv::make_fx(f, vv::tracing::fake)(vv::full(x.sizes(), 7.0, x.dtype()));
  CHECK(vv::verify(g));
  auto const run = [&] { return elements(vv::interpret(g, vv::boxed_args(x))[0]); };
  std::vector<double> const y = run();
  CHECK(run() == y);
  CHECK(vv::this_thread_state.quiet());
  return y;
}
/// ... is what f gives.
template <class F>
void traced_is_run(F const& f) {
  CHECK(traced(f) == elements(f(vv::clone(some_numbers()))));
}
template <class F>
std::string text(F const& f) {
  std::ostringstream s;
  s << vv::make_fx(f, vv::tracing::fake)(some_numbers());
  return s.str();
}
} // namespace

TEST_CASE("a tracer is below the modes that a function switches on", "[fake][make_fx][MD-5]") {
  auto const f = [](tensor const& t) {
    sin_is_cos m;
    vv::mode_guard const on(m);
    return vv::sin(t) * 2.0;
  };
  traced_is_run(f);
  CHECK(text(f).find("cos") != std::string::npos);
  CHECK(text(f).find("sin") == std::string::npos);
  traced_is_run([](tensor const& t) {
    auto const with_mode = [](tensor const& u) {
      sin_is_cos m;
      vv::mode_guard const on(m);
      return vv::sin(u);
    };
    return vv::cond(vv::sum(t) > 0.0, with_mode, [](tensor const& u) { return vv::sin(u); }, t);
  });
  sin_is_cos outside;
  vv::mode_guard const on(outside);
  CHECK(text([](tensor const& t) { return vv::sin(t); }).find("cos") != std::string::npos);
}

TEST_CASE("a tracer is below transforms and autograd", "[fake][make_fx]") {
  traced_is_run([](tensor const& t) { return vv::grad([](tensor const& u) { return vv::sum(vv::sin(u)); })(t); });
  traced_is_run([](tensor const& t) { return vv::vmap([](tensor const& u) { return vv::sin(u) * u; })(t); });
  traced_is_run([](tensor const& t) {
    return vv::jvp([](tensor const& u) { return u * u; }, std::tuple(t), std::tuple(t)).second;
  });
  traced_is_run([](tensor const& t) {
    tensor leaf = vv::detach(t);
    leaf.requires_grad_();
    tensor const y = vv::exp(leaf) * leaf;
    vv::sum(y).backward();
    return leaf.grad() + y.detach();
  });
  traced_is_run([](tensor const& t) { // of second order, through a loop
    auto const loop = [](tensor const& u) {
      auto const step = [](tensor const& c, tensor const& r) { return std::pair(c + r, c * r * r); };
      return vv::sum(vv::scan(step, vv::full({}, 0.0, dtype::float64), u).second);
    };
    return vv::grad([&](tensor const& u) { return vv::sum(vv::grad(loop)(u) * u); })(t);
  });
  traced_is_run([](tensor const& t) {
    auto const branches = [](tensor const& u) {
      return vv::cond(
          vv::sum(u) > 0.0, [](tensor const& v) { return vv::sin(v); }, [](tensor const& v) { return v * v; }, u);
    };
    return vv::grad([&](tensor const& u) { return vv::sum(branches(u)); })(t);
  });
}

TEST_CASE("graphs traced below modes keep custom functions and no_grad", "[fake][make_fx][function]") {
  auto const slope = [](auto const& f) {
    vv::graph const g = vv::make_fx(f, vv::tracing::fake)(some_numbers());
    auto const run = [&](tensor const& u) { return vv::sum(tensor(vv::interpret(g, vv::boxed_args(u))[0])); };
    return elements(vv::grad(run)(some_numbers()));
  };
  using doubles = std::vector<double>;
  CHECK(slope([](tensor const& t) { return tripled::apply(t); }) == doubles{3, 3, 3});
  CHECK(slope([](tensor const& t) { return vv::map([](tensor const& u) { return tripled::apply(u); }, t); }) ==
        doubles{3, 3, 3});
  CHECK(slope([](tensor const& t) {
          tensor c;
          {
            vv::no_grad const off;
            c = t * t;
          }
          return c * t;
        }) == doubles{1, 4, 9});
  traced_is_run(
      [](tensor const& t) { return vv::grad([](tensor const& u) { return vv::sum(tripled::apply(u)); })(t); });
  traced_is_run([](tensor const& t) {
    tensor leaf = vv::detach(t);
    leaf.requires_grad_();
    vv::sum(tripled::apply(leaf)).backward();
    return leaf.grad();
  });
}

TEST_CASE("MX-S01 literals of a traced function are made anew in each run", "[fake][make_fx][MX-S01]") {
  traced_is_run([](tensor const& t) {
    tensor v({1.0}, dims{});
    vv::add_(v, 2.0);
    return v * t + v.item<double>();
  });
  traced_is_run([](tensor const& t) {
    tensor v({1.0, 2.0, 5.0});
    vv::add_(v, t);
    vv::mul_(vv::slice(v, 0, 0, 2), 2.0);
    return v;
  });
  traced_is_run([](tensor const& t) { // in functions of higher-order operators
    return vv::map([](tensor const& r) { return tensor({1.0, 2.0}) * r; }, t);
  });
}

TEST_CASE("MX-S02 a number that is drawn steers no trace", "[fake][make_fx][MX-S02]") {
  CHECK_THROWS_AS(traced([](tensor const& t) {
                    tensor v({2.0}, dims{});
                    vv::copy_(v, vv::randn({}, dtype::float64));
                    return static_cast<bool>(v > 2.1) ? t : t * 2.0;
                  }),
                  vv::data_dependent_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("MX-S03 a trace inside of another one is no part of it", "[fake][make_fx][MX-S03]") {
  auto const inner = [](tensor const& u) { return vv::sin(u) + vv::randn({}, dtype::float64) * 0.0; };
  auto const traces = [&](tensor const& t) {
    (void)vv::make_fx(inner, vv::tracing::fake)(t);
    return vv::cos(t);
  };
  auto const runs = [&](tensor const& t) {
    vv::graph const g = vv::make_fx(inner, vv::tracing::fake)(t);
    return vv::cos(tensor(vv::interpret(g, vv::boxed_args(t))[0]));
  };
  CHECK(text(traces).find("sin") == std::string::npos);
  CHECK(text(traces).find("randn") == std::string::npos);
  CHECK(text(runs).find("sin") != std::string::npos);
  traced_is_run(runs);
}

TEST_CASE("an argument that is given twice is two arguments", "[fake][make_fx]") {
  auto const f = [](tensor const& a, tensor const& b) {
    tensor la = vv::detach(a), lb = vv::detach(b);
    la.requires_grad_(), lb.requires_grad_();
    vv::sum(vv::exp(la) * lb).backward();
    return vv::cond(
               vv::sum(a) > 0.0, [](tensor const& u, tensor const& v, tensor const& w) { return u * 2.0 - v * w; },
               [](tensor const& u, tensor const&, tensor const&) { return u * 1.0; }, a, a, b) +
           la.grad() * lb.grad();
  };
  tensor const x = some_numbers(), y = x * 3.0;
  auto const check = [&](vv::graph const& g) {
    CHECK(elements(vv::interpret(g, vv::boxed_args(x, y))[0]) == elements(f(x, y)));
  };
  check(vv::make_fx(f, vv::tracing::fake)(x, x));
  check(vv::make_fx(f)(x, x));
  check(vv::make_fx(f, vv::tracing::symbolic)(x, x));
}

TEST_CASE("writes that a trace does not see are refused", "[fake][make_fx]") {
  auto const hidden = [](tensor const& t) {
    tensor const y = t * 2.0;
    {
      vv::disable_modes const off;
      vv::mul_(y, 3.0);
    }
    return y + 1.0;
  };
  auto const elsewhere = [](tensor const& t) {
    tensor const y = t * 2.0;
    std::thread([&] { vv::mul_(y, 3.0); }).join();
    return y + 1.0;
  };
  tensor const x = some_numbers();
  CHECK_THROWS_WITH(vv::make_fx(hidden)(x), Catch::Contains("does not see"));
  CHECK_THROWS_WITH(vv::make_fx(elsewhere)(x), Catch::Contains("does not see"));
  CHECK_THROWS_WITH(vv::make_fx(elsewhere, vv::tracing::fake)(x), Catch::Contains("does not see"));
  CHECK(elements(x) == std::vector<double>{1, 2, 3});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a tracer leaves no value behind, and lets go of those that nobody holds", "[fake][make_fx]") {
  auto const many = [](tensor const& t) {
    tensor y = t;
    for (int k = 0; k < 300; ++k) y = vv::sin(y) + t;
    return y;
  };
  traced_is_run(many);
  vv::fake_mode mode;
  tensor const x = mode.from_tensor(vv::full({1000}, 1.0));
  std::size_t const before = mode.live_bytes();
  {
    vv::fake_mode_guard const on(mode);
    (void)vv::make_fx(many, vv::tracing::fake)(x);
  }
  CHECK(mode.live_bytes() == before);
  CHECK(mode.peak_bytes() < before + 300 * 4000);
}
