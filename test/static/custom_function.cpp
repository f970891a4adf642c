// SPDX-License-Identifier: BSL-1.0
// Custom functions on static values, in constant evaluation. On tensors: test/autograd/function.cpp.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

namespace {
struct cube : vv::function<cube> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto x) { return x * x * x; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return g * x * x * 3;
  }
  static constexpr auto jvp(auto& ctx, auto t) {
    auto [x] = ctx.saved_for_forward();
    return t * x * x * 3;
  }
};
constexpr auto f = [](auto x) { return cube::apply(x); };
constexpr array<double, 3> xs{1, 2, 3};
static_assert(f(2.0) == 8);
static_assert(vv::grad(f)(2.0) == 12);
static_assert(vv::grad(vv::grad(f))(2.0) == 12);
static_assert(vv::grad(vv::grad(vv::grad(f)))(2.0) == 6);
static_assert(vv::jvp(f, std::tuple(2.0), std::tuple(10.0)) == std::pair(8.0, 120.0));
static_assert(vv::jvp([](auto v) { return vv::jvp(f, std::tuple(v), std::tuple(1.0)).second; }, std::tuple(2.0),
                      std::tuple(1.0)) == std::pair(12.0, 12.0));
static_assert(vv::jvp(vv::grad(f), std::tuple(2.0), std::tuple(1.0)) == std::pair(12.0, 12.0));
static_assert(vv::grad([](auto v) { return vv::jvp(f, std::tuple(v), std::tuple(1.0)).second; })(2.0) == 12);
static_assert(vv::equal(vv::vmap(f)(xs), array<double, 3>{1, 8, 27}));
static_assert(vv::equal(vv::vmap(vv::grad(f))(xs), array<double, 3>{3, 12, 27}));
static_assert(vv::equal(vv::vmap(vv::grad(vv::grad(f)))(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::grad([](auto v) { return vv::sum(vv::vmap(f)(v)); })(xs), array<double, 3>{3, 12, 27}));
static_assert(vv::equal(vv::grad([](auto v) {
                          return vv::sum(vv::grad([](auto u) { return vv::sum(vv::vmap(f)(u)); })(v));
                        })(xs),
                        array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::jvp(vv::vmap(f), std::tuple(xs), std::tuple(xs)).second, array<double, 3>{3, 24, 81}));

// The gradient of the function is its own, not that of its text.
struct lies : vv::function<lies> {
  static constexpr auto forward(auto x) { return x * x; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 100; }
};
static_assert(vv::grad([](auto x) { return lies::apply(x); })(3.0) == 100);
static_assert(vv::grad([](auto x) { return lies::apply(x * x) + x; })(3.0) == 601);

// Several operands and results; needs_input_grad; one operand twice.
struct mul_and_add : vv::function<mul_and_add> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto x, auto y) { return std::tuple(x * y, x + y); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in)).save_for_forward(std::get<0>(in), std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto gp, auto gs) {
    auto [x, y] = ctx.saved();
    return std::tuple(gp * y + gs, gp * x + gs);
  }
  static constexpr auto jvp(auto& ctx, auto tx, auto ty) {
    auto [x, y] = ctx.saved_for_forward();
    return std::tuple(tx * y + x * ty, tx + ty);
  }
};
constexpr auto both = [](auto x, auto y) {
  auto const [p, s] = mul_and_add::apply(x, y);
  return p * s;
};
static_assert(both(2.0, 3.0) == 30);
static_assert(vv::grad<0, 1>(both)(2.0, 3.0) == std::tuple(21.0, 16.0)); // 2xy + y^2, x^2 + 2xy
static_assert(vv::grad<0>(vv::grad<1>(both))(2.0, 3.0) == 10);
static_assert(vv::jvp(both, std::tuple(2.0, 3.0), std::tuple(1.0, 0.0)).second == 21);
static_assert(vv::grad([](auto x) { return both(x, x); })(2.0) == 24);
static_assert(vv::grad([](auto x) { return std::get<0>(mul_and_add::apply(x, 5.0)); })(2.0) == 5);
static_assert(vv::equal(vv::vmap([](auto x) { return both(x, 3.0); })(xs), array<double, 3>{12, 30, 54}));
static_assert(vv::equal(vv::vmap(vv::grad([](auto x) { return both(x, 3.0); }))(xs), array<double, 3>{15, 21, 27}));
// The gradient of an operand that is not mapped is the sum over the batch.
static_assert(vv::grad([](auto y) { return vv::sum(vv::vmap(both, vv::in_dims<0, vv::none>)(xs, y)); })(3.0) ==
              1 + 4 + 9 + 6 * 6);

// Arguments that are no values, and what is kept of them.
struct power : vv::function<power> {
  static constexpr auto forward(auto x, int n) {
    auto r = x;
    for (int k = 1; k < n; ++k) r = r * x;
    return r;
  }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).keep(std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    auto [n] = ctx.kept();
    return std::tuple(g * n * forward(x, n - 1), vv::none);
  }
};
static_assert(vv::grad([](auto x) { return power::apply(x, 4); })(2.0) == 32);

// A result that is constant to derivatives.
struct with_constant : vv::function<with_constant> {
  static constexpr auto forward(auto x) { return std::tuple(x + 1, x + 2); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) {
    return ctx.template mark_non_differentiable<0>();
  }
  static constexpr auto backward(auto&, auto, auto g) { return g * 7; }
};
static_assert(vv::grad([](auto x) {
                return std::get<0>(with_constant::apply(x)) * std::get<1>(with_constant::apply(x));
              })(2.0) == 3 * 7);
static_assert(vv::grad([](auto x) { return std::get<0>(with_constant::apply(x)); })(2.0) == 0);

// A vmap of its own.
struct counted : vv::function<counted> {
  static constexpr auto forward(auto x) { return x * 2; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 2; }
  static constexpr auto vmap(vv::vmap_info const& info, auto const&, auto x) {
    return std::pair(x * static_cast<double>(info.batch_size), true);
  }
};
static_assert(vv::equal(vv::vmap([](auto x) { return counted::apply(x); })(xs), array<double, 3>{3, 6, 9}));
// ... whose results are not mapped, all or one of them.
struct unmapped_results : vv::function<unmapped_results> {
  static constexpr auto forward(auto x) { return std::tuple(x * 0, x * 2); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto vmap(vv::vmap_info const&, auto const&, auto x) {
    return std::pair(std::tuple(7.0, x * 2), std::tuple(vv::none, true));
  }
};
static_assert(vv::equal(std::get<0>(vv::vmap([](auto x) { return unmapped_results::apply(x); })(xs)),
                        array<double, 3>{7, 7, 7}));
static_assert(vv::equal(std::get<1>(vv::vmap([](auto x) { return unmapped_results::apply(x); })(xs)),
                        array<double, 3>{2, 4, 6}));

// A gradient of more elements than the operand is summed to its shape, and has its dtype.
struct broadcasts : vv::function<broadcasts> {
  static constexpr auto forward(auto x, auto y) { return x * y; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x, y] = ctx.saved();
    return std::tuple(g * y, g * x);
  }
};
static_assert(vv::grad([](auto s) { return vv::sum(broadcasts::apply(s, xs)); })(2.0) == 6);
static_assert(
    std::is_same_v<decltype(vv::grad([](auto s) { return vv::sum(broadcasts::apply(s, xs)); })(2.0f)), float>);
} // namespace
