// SPDX-License-Identifier: BSL-1.0
// Derivatives of graphs and of what is traced: branches, custom functions, traces in traces.
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
} // namespace

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
