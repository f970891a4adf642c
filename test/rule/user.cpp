// SPDX-License-Identifier: BSL-1.0
// Operators of a user: full citizens of every interpreter, by one specialization in the user's file.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace user {
/// x^2 as a pointwise operator.
inline constexpr struct square_t : varve::promoting_operator<square_t> {
  static constexpr auto op_name = "user::square";
} square{};
/// Without any rule for transforms.
inline constexpr struct opaque_t : varve::promoting_operator<opaque_t> {
  static constexpr auto op_name = "user::opaque";
} opaque{};
} // namespace user

template <>
struct varve::rules<user::square_t> : varve::rule::pointwise<1> {
  static constexpr auto kernel(auto x) { return x * x; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return 2 * x; }
};
template <>
struct varve::rules<user::opaque_t> {
  static constexpr op_kind kind = op_kind::pointwise;
  static constexpr promotion promote = promotion::arithmetic;
  static constexpr int arity = 1, conditions = 0;
  static constexpr dtype compute_type(meta const* in, int) { return in[0].type; }
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static constexpr auto kernel(auto x) { return x; }
};

using namespace sample;
namespace vv = varve;

static_assert(user::square(3.0) == 9);
static_assert(vv::grad([](auto x) { return user::square(x) * x; })(2.0) == 12);
static_assert(vv::grad(vv::grad([](auto x) { return user::square(x) * x; }))(2.0) == 12);
static_assert(vv::equal(vv::vmap(vv::grad([](auto x) { return user::square(x); }))(vv::array<double, 2>{1, 2}),
                        vv::array<double, 2>{2, 4}));
constexpr auto graph = vv::trace([](auto x) { return user::square(x); }, vv::spec<float, 3>);
static_assert(graph.count(user::square) == 1);

TEST_CASE("a user's operator: works under every transform of tensors, and is found by name", "[rule][user]") {
  tensor const x = from({1, 2, 3}, {3});
  auto cube = [](auto const& v) { return user::square(v) * v; };
  auto total = [&](auto const& v) { return vv::sum(cube(v)); };
  CHECK(elements(user::square(x)) == std::vector<double>{1, 4, 9});
  CHECK(user::square(from({2}, {1}, dtype::int64)).dtype() == dtype::int64);
  CHECK(elements(vv::grad(total)(x)) == std::vector<double>{3, 12, 27});
  CHECK(elements(vv::jvp(cube, std::tuple(x), std::tuple(vv::ones_like(x))).second) == std::vector<double>{3, 12, 27});
  CHECK(elements(vv::vmap(vv::grad(vv::grad(cube)))(x)) == std::vector<double>{6, 12, 18});
  CHECK(vv::ops::find("user::square") != nullptr);
}

TEST_CASE("a user's operator without a rule: the refusal names operator and interpreter", "[rule][user]") {
  tensor const x = from({1, 2, 3}, {3});
  auto f = [](auto const& v) { return vv::sum(user::opaque(v)); };
  CHECK(f(x).item<double>() == 6);
  CHECK_THROWS_AS(vv::grad(f)(x), vv::missing_rule);
  CHECK_THROWS_WITH(vv::grad(f)(x), ContainsText("user::opaque") && ContainsText("grad"));
  CHECK_THROWS_WITH(vv::jvp(f, std::tuple(x), std::tuple(x)), ContainsText("user::opaque") && ContainsText("jvp"));
  CHECK_THROWS_WITH(vv::vmap(f)(vv::reshape(x, dims{3, 1})), ContainsText("user::opaque") && ContainsText("vmap"));
  CHECK(vv::this_thread_state.quiet());
  // a value that no transform tracks needs no rule
  CHECK(elements(vv::grad([&](auto const& v) { return vv::sum(v * user::opaque(x)); })(x)) ==
        std::vector<double>{1, 2, 3});
}
