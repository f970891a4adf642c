// SPDX-License-Identifier: BSL-1.0
#include <varve/export/emit_cpp.hpp>
#include <varve/mode/deterministic_mode.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <string>
#include <varve_test.hpp>

namespace vv = varve;

// Operators of a program that are called like those of varve, and like one another: passes may not go by their names.
namespace one {
struct mul_t : vv::promoting_operator<mul_t> {
  static constexpr auto op_name = "mul";
};
inline constexpr mul_t mul{};
struct exp_t : vv::promoting_operator<exp_t> {
  static constexpr auto op_name = "exp";
};
inline constexpr exp_t exp{};
struct getitem_t : vv::promoting_operator<getitem_t> {
  static constexpr auto op_name = "getitem";
};
inline constexpr getitem_t getitem{};
struct empty_t : vv::promoting_operator<empty_t> {
  static constexpr auto op_name = "empty";
};
inline constexpr empty_t empty{};
} // namespace one
namespace two {
struct mul_t : vv::promoting_operator<mul_t> {
  static constexpr auto op_name = "mul";
};
inline constexpr mul_t mul{};
} // namespace two
template <>
struct vv::rules<one::mul_t> : vv::rule::pointwise<2> { // x y + 1
  static constexpr auto kernel(auto x, auto y) { return decltype(x)(x * y + decltype(x)(1)); }
  static constexpr auto partial(vv::arg_t<0>, auto const&, auto const&, auto const& y) { return y; }
  static constexpr auto partial(vv::arg_t<1>, auto const&, auto const& x, auto const&) { return x; }
};
template <>
struct vv::rules<two::mul_t> : vv::rule::pointwise<2> { // x - y
  static constexpr auto kernel(auto x, auto y) { return decltype(x)(x - y); }
  static constexpr auto partial(vv::arg_t<0>, auto const&, auto const&, auto const&) { return 1.0; }
  static constexpr auto partial(vv::arg_t<1>, auto const&, auto const&, auto const&) { return -1.0; }
};
struct doubled : vv::rule::pointwise<1> {
  static constexpr auto kernel(auto x) { return decltype(x)(x + x); }
  static constexpr auto partial(vv::arg_t<0>, auto const&, auto const&) { return 2.0; }
};
template <>
struct vv::rules<one::exp_t> : doubled {
  struct mul_t {}; // a program's own, though in a template of varve
};
template <>
struct vv::rules<one::getitem_t> : doubled {};
template <>
struct vv::rules<one::empty_t> : doubled {};

namespace {
constexpr auto f = [](auto const& x, auto const& y) {
  return one::mul(x, y) * 2.0f + two::mul(x, y) + one::exp(x + y) / (one::exp(x) * one::exp(y));
};
constexpr auto total = [](auto const& x, auto const& y) { return vv::sum(f(x, y)); };
using numbers = vv::array<float, 5>;
constexpr numbers xs{{1, 2, 3, 4, 5}}, ys{{5, 3, 1, 2, 4}};

constexpr float expected(float x, float y) { return 2 * (x * y + 1) + (x - y) + 2 * (x + y) / (4 * x * y); }
void check(auto const& y) {
  for (int k = 0; k < 5; ++k) CHECK(y(k) == Approx(expected(xs.data[k], ys.data[k])));
}
constexpr auto of = [](numbers const& y) { return [y](int k) { return y.data[k]; }; };
auto of_tensor = [](vv::tensor const& y) { return [y](int k) { return y.data<float>()[k]; }; };
} // namespace

static_assert(vv::handle<vv::mul_t>.own && !vv::handle<one::mul_t>.own && !vv::handle<two::mul_t>.own);
static_assert(!vv::declared::by_varve<vv::rules<one::exp_t>::mul_t>());
static_assert(vv::identify(vv::handle<one::mul_t>) == vv::operator_class::pointwise &&
              vv::identify(vv::handle<vv::mul_t>) == vv::operator_class::mul);

TEST_CASE("operators called like those of varve are themselves in static programs", "[graph][fuse]") {
  check(of(f(xs, ys)));
  check(of(vv::fuse(f)(xs, ys)));
  check(of(vv::fuse(f, vv::table_driven)(xs, ys)));
  check(of(vv::fuse(f, vv::fast_math)(xs, ys)));
  numbers const slope = vv::fuse(vv::grad(total))(xs, ys), fast = vv::fuse(vv::grad(total), vv::fast_math)(xs, ys),
                eager = vv::grad(total)(xs, ys);
  for (int k = 0; k < 5; ++k) {
    CHECK(slope.data[k] == Approx(eager.data[k]));
    CHECK(fast.data[k] == Approx(eager.data[k]));
  }
}

TEST_CASE("... and in programs made at run time", "[graph][compile]") {
  vv::tensor const x(xs.data), y(ys.data);
  check(of_tensor(f(x, y)));
  check(of_tensor(vv::compile(f, x, y)(x, y)));
  check(of_tensor(vv::compile(f, vv::fast_math)(x, y)));
  vv::graph const g = vv::make_fx(f)(x, y);
  check(of_tensor(vv::interpret(g, vv::boxed_args{x, y})[0]));
  check(of_tensor(vv::fuse(g)(vv::boxed_args{x, y})[0]));
  CHECK(vv::ops::find("mul")->handle() == &vv::handle<vv::mul_t>);
  CHECK_THROWS_WITH(vv::emit_cpp(g, "f"), ContainsText("is none of varve's elementwise operators"));
}

TEST_CASE("graphs of operators that have their names in common differ", "[graph]") {
  constexpr auto theirs = vv::trace([](auto const& x) { return one::mul(x, x); }, vv::spec<float, 3>),
                 varves = vv::trace([](auto const& x) { return vv::mul(x, x); }, vv::spec<float, 3>);
  STATIC_REQUIRE(vv::equal(theirs, theirs));
  constexpr auto others = vv::trace([](auto const& x) { return two::mul(x, x); }, vv::spec<float, 3>);
  STATIC_REQUIRE(!vv::equal(theirs, varves));
  STATIC_REQUIRE(!vv::equal(theirs, others));
}

TEST_CASE("an operator called getitem or empty is no getitem, no empty", "[graph][mode]") {
  vv::tensor const x(xs.data);
  vv::graph const g = vv::make_fx([](vv::tensor const& v) { return one::empty(one::getitem(v)); })(x);
  CHECK(vv::interpret(g, vv::boxed_args{x})[0].data<float>()[1] == 8);
  vv::deterministic_mode mode;
  vv::mode_guard const on(mode);
  vv::tensor const y = one::empty(x);
  CHECK(y.data<float>()[1] == 4);
}
