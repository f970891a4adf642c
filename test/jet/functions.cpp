// SPDX-License-Identifier: BSL-1.0
// `jet` of operators with functions.
#include "../../examples/foldl.hpp"

#include <varve/autograd/checkpoint.hpp>
#include <varve/autograd/function.hpp>
#include <varve/compile/compile.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/jet/jet.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::tensor;

namespace {
constexpr auto third = [](auto const& f) {
  return [f](auto const& x) {
    auto const one = vv::ones_like(x), zero = vv::zeros_like(x);
    return std::get<2>(vv::jet(f, std::tuple{x}, std::tuple{one, zero, zero}).second);
  };
};
template <class F>
constexpr auto slope(F const& f) {
  return [f](auto const& x) { return vv::jvp(f, std::tuple{x}, std::tuple{vv::ones_like(x)}).second; };
}
constexpr array<double, 3> rows{0.5, -1.0, 2.0};
/// A loop over rows, whose values and rows depend on x.
constexpr auto loop = [](auto const& x) {
  auto const step = [](auto const& c, auto const& r) { return std::pair(vv::sin(c * r) + c, c * r); };
  auto const [last, all] = vv::scan(step, x, rows * x);
  return last + vv::sum(all);
};
constexpr auto mapped = [](auto const& x) {
  return vv::sum(vv::map(vv::closure([](auto const& r, auto const& c) { return vv::exp(r * c); }, x), rows * x));
};
constexpr auto until = [](auto const& x) {
  return vv::while_loop<9>([](auto const& c, auto const&) { return c < 9.0; },
                           [](auto const& c, auto const& v) { return c * v + 0.5; }, x, x);
};
/// A branch for each lane of x.
constexpr auto lanes = [](auto const& x) {
  return vv::vmap([](auto const& v) {
    return vv::cond(v > 0.6, [](auto const& u) { return u * u * u; }, [](auto const& u) { return vv::sin(u); }, v);
  })(x);
};

struct own_square : vv::function<own_square> {
  static tensor forward(tensor x) { return x * x; }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static tensor backward(auto& ctx, tensor g) {
    auto [x] = ctx.saved();
    return g * x * 2.0;
  }
};
} // namespace

// x^4: the step multiplies by x three times.
constexpr auto fourth_power = [](auto const& x) {
  return vv::scan(vv::closure([](auto const& c, auto const&, auto const& v) { return std::pair(c * v, vv::none); }, x),
                  x, array<double, 3>{})
      .first;
};
static_assert(third(fourth_power)(2.0) == 4 * 3 * 2 * 2.0);

TEST_CASE("jet: loops and branches in both worlds, as nested jvps", "[jet][hop]") {
  auto const check = [](auto const& f, auto const& x) {
    auto const right = slope(slope(slope(f)))(tensor(x));
    CHECK(vv::allclose(tensor(third(f)(x)), right));
    CHECK(vv::allclose(third(f)(tensor(x)), right));
  };
  check(loop, 1.25);
  check(mapped, 0.75);
  check(until, 1.5);
  check(lanes, array<double, 3>{0.3, 1.5, -2.0});
}

TEST_CASE("jet: loops and branches traced, compiled, mapped, differentiated", "[jet][hop]") {
  tensor const x(1.25), right = third(loop)(x);
  CHECK(vv::allclose(vv::compile(third(loop))(x), right));
  CHECK(vv::allclose(vv::interpret(vv::make_fx(third(loop))(x), vv::boxed_args(x))[0], right));
  tensor const many({1.25, 0.5});
  CHECK(vv::allclose(vv::vmap(third(loop))(many)[0], right));
  CHECK(vv::allclose(vv::grad(third(loop))(x), slope(third(loop))(x)));
  tensor const sorts({0.3, 1.5, -2.0});
  CHECK(vv::allclose(vv::compile(third(lanes))(sorts), third(lanes)(sorts)));
}

TEST_CASE("jet: calls, captures, integers that are carried", "[jet][hop]") {
  tensor const x({0.5, -1.25});
  auto const calls = [](tensor const& v) {
    auto const f = [&v](tensor const& u) { return tensor(vv::sin(u) * v); };
    return vv::checkpoint(f, v) + vv::wrap(f, tensor(v * v));
  };
  CHECK(vv::allclose(third(calls)(x), slope(slope(slope(calls)))(x)));
  auto const counts = [](tensor const& v) {
    auto const step = [&v](auto const& c, tensor const& r) {
      auto const& [y, k] = c;
      return std::pair(std::tuple(tensor(y * r + v * k), tensor(k + 1)), tensor(vv::gt(y, 0.0)));
    };
    auto const [last, all] =
        vv::scan(step, std::tuple(v, vv::zeros({}, vv::dtype::int64)), vv::stack(std::tuple{v, v * v}));
    return std::get<0>(last) * vv::to(all[1], vv::dtype::float64);
  };
  CHECK(vv::allclose(third(counts)(x), slope(slope(slope(counts)))(x)));
  auto const folds = [](tensor const& v) {
    return foldl([](tensor const& c, tensor const& r) { return c * r + c; },
                 [](tensor const& c) { return vv::sum(c) > 3.0; }, v, vv::stack(std::tuple{v, v * 2.0, v * v}));
  };
  tensor const y({0.5, 1.25});
  CHECK(vv::allclose(third(folds)(y), slope(slope(slope(folds)))(y)));
  CHECK_THROWS_WITH(third([](tensor const& v) { return own_square::apply(v); })(x),
                    Catch::Contains("custom_function_call is an operator with functions that has no rule for jet"));
  CHECK(vv::this_thread_state.transforms.top == nullptr);
}
