// SPDX-License-Identifier: BSL-1.0
// Operators that write and have no functional form, where writes become values.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/hop/auto_functionalized.hpp>
#include <varve/hop/out_dtype.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace program {
/// x becomes its sine; nothing more is known of it than that it writes.
inline constexpr struct sine__t : vv::in_place<sine__t> {
  static constexpr auto op_name = "sine_";
} sine_{};
} // namespace program
template <>
struct vv::rules<program::sine__t> {
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr int arity = 1, mutated = 0;
  static constexpr auto schema = "(Tensor(a!) self) -> Tensor(a!)";
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static void require_writable(tensor const& x) { detail::check_in_place("sine_", x, x.strides()); }
  static tensor make(attributes const&, tensor const& x) { return detail::write_into(x, sin(x)); }
};

namespace {
int count_of(vv::graph const& g, std::string const& name) {
  int n = 0;
  for (vv::node const& nd : g) n += nd.op->name == name;
  return n;
}
bool can(char const* schema) { return vv::can_auto_functionalize(vv::operator_schema::parse(schema)); }
} // namespace

TEST_CASE("which schemas can be made functional by themselves", "[hop][auto_functionalized][OH-S06]") {
  CHECK(can("own::f(Tensor(a!) x) -> ()"));
  CHECK(can("own::f(Tensor(a!) x, Tensor y) -> Tensor"));
  CHECK(can("own::f(Tensor(a!) x, Tensor(b!) y) -> (Tensor, Tensor)"));
  CHECK(can("own::f(Tensor(a!)? x, int n) -> ()"));
  CHECK(can("own::f(Tensor(a!)[] x) -> ()"));
  CHECK_FALSE(can("own::f(Tensor x) -> ()"));
  CHECK_FALSE(can("own::f(Tensor x) -> Tensor"));
  CHECK_FALSE(can("own::f(Tensor(a) x) -> Tensor(a)"));
  CHECK_FALSE(can("own::f(Tensor(a!) x) -> Tensor(a!)"));
  CHECK_FALSE(can("own::f(Tensor(a!) x, Tensor(b) y) -> Tensor"));
  CHECK_FALSE(can("own::f(Tensor(a!) x, Tensor y) -> (Tensor, Tensor(a))"));
  CHECK_FALSE(can("own::f(Tensor(a!) x) -> Tensor[]"));
}

TEST_CASE("an operator that writes, on a view of what is written", "[hop][auto_functionalized][OH-S07]") {
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) {
    tensor const y = vv::clone(v);
    program::sine_(vv::reshape(y, vv::dims{3, 1}));
    return y;
  };
  auto const part = [](tensor const& v) {
    tensor const y = v * 2.0;
    program::sine_(vv::slice(y, 0, 1, 3));
    return y * y;
  };
  tensor const right = vv::sin(x);
  CHECK(elements(f(x)) == elements(right)); // once
  CHECK(elements(vv::functionalize(f)(x)) == elements(right));
  CHECK(elements(vv::functionalize(part)(x)) == elements(part(x)));
  auto const check = [&](vv::graph const& g, auto const& of) {
    CHECK(vv::verify(g));
    CHECK(count_of(g, "auto_functionalized") == 1);
    for (tensor const& t : {x, x * 3.0}) CHECK(elements(vv::interpret(g, vv::boxed_args(t))[0]) == elements(of(t)));
    vv::region const& all = g.regions[0];
    for (int n = all.node_first; n < all.node_first + all.node_count; ++n)
      CHECK(g.nodes[n].op->kind != vv::op_kind::mutation);
  };
  check(vv::make_fx(vv::functionalize(f))(x), f);
  check(vv::make_fx(vv::functionalize(part))(x), part);
  check(vv::make_fx(vv::functionalize(part), vv::tracing::fake)(x), part);
  CHECK(elements(vv::compile(part, vv::backends::aot_eager)(x)) == elements(part(x)));
  // Who would need its function itself refuses it.
  vv::graph const g = vv::make_fx(vv::functionalize(f))(x);
  CHECK_THROWS_WITH(vv::fuse(g), Catch::Contains("say `using functional = ...` in its rules"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]); })(x),
                    Catch::Contains("writes into its operand"));
  // What is given is written as without.
  auto const writes = [](tensor const& v) { return program::sine_(v), v * 1.0; };
  tensor const a = vv::clone(x), b = vv::clone(x);
  CHECK(elements(vv::functionalize(writes)(a)) == elements(writes(b)));
  CHECK(elements(a) == elements(b));
  CHECK(elements(vv::compile(writes, vv::backends::aot_eager)(a)) == elements(writes(b)));
  CHECK(elements(a) == elements(b));
}

TEST_CASE("an operator that writes, in branches and loops ahead of time", "[hop][auto_functionalized][aot]") {
  tensor const x = vv::reshape(vv::arange(6, dtype::float64), dims{3, 2});
  auto const body = [](tensor const& r) {
    tensor const y = r * 2.0;
    program::sine_(y);
    return y;
  };
  auto const mapped = [&](tensor const& v) { return vv::map(body, v); };
  auto const branched = [&](tensor const& v) {
    return vv::cond(vv::gt(vv::sum(v), 0.0), body, [](tensor const& u) { return u * 1.0; }, v);
  };
  auto const scanned = [&](tensor const& v) {
    auto const step = [&](tensor const& c, tensor const& r) { return std::pair(c + body(r), r); };
    return vv::scan(step, vv::ones({2}, dtype::float64), v).first;
  };
  auto const check = [&](auto const& f) {
    CHECK(elements(vv::functionalize(f)(x)) == elements(f(x)));
    auto const ahead = vv::compile(f, vv::backends::aot_eager);
    CHECK(elements(ahead(x)) == elements(f(x)));
    CHECK(elements(ahead(x * 2.0)) == elements(f(x * 2.0)));
    vv::graph const g = vv::make_fx(vv::functionalize(f), vv::tracing::fake)(x);
    CHECK(count_of(g, "auto_functionalized") == 1);
    CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == elements(f(x)));
    tensor const w = vv::clone(x).requires_grad_(); // it has no derivative
    CHECK_THROWS_WITH(vv::sum(ahead(w)).backward(), ContainsText("sine_"));
  };
  SECTION("map") { check(mapped); }
  SECTION("cond") { check(branched); }
  SECTION("scan") { check(scanned); }
}

TEST_CASE("strict_mode is a call that stays one", "[hop][wrap]") {
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) { return vv::strict_mode([](tensor const& u) { return u * vv::sin(u); }, v); };
  vv::graph const g = vv::make_fx(f)(x);
  CHECK(count_of(g, "strict_mode") == 1);
  CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == elements(f(x)));
  CHECK(elements(vv::fuse(g)(vv::boxed_args(x))[0]) == elements(f(x)));
}

TEST_CASE("out_dtype computes in the dtype of its result", "[hop][out_dtype]") {
  tensor const x = vv::full({2, 3}, 100, vv::dtype::uint8), y = vv::full({3, 2}, 2, vv::dtype::uint8);
  auto const f = [](tensor const& a, tensor const& b) { return vv::out_dtype(vv::mm, vv::dtype::int32, a, b); };
  CHECK(f(x, y).dtype() == vv::dtype::int32);
  CHECK(elements(f(x, y)) == sample::doubles({600, 600, 600, 600})); // 88 in 8 bits
  CHECK(elements(vv::mm(x, y)) == sample::doubles({88, 88, 88, 88}));
  vv::graph const g = vv::make_fx(f)(x, y);
  CHECK(count_of(g, "out_dtype") == 1);
  CHECK(elements(vv::interpret(g, vv::boxed_args(x, y))[0]) == elements(f(x, y)));
  CHECK(elements(vv::fuse(g)(vv::boxed_args(x, y))[0]) == elements(f(x, y)));
  tensor const z = vector_of({0.5, 2});
  CHECK(elements(vv::grad([](tensor const& a) { return vv::sum(vv::out_dtype(vv::mul, vv::dtype::float64, a, a)); })(
            z)) == elements(z * 2.0));
}
