// SPDX-License-Identifier: BSL-1.0
// Functions that return what they were given, or write into it, in graphs.
#include "../sample/loop.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("functions of cond and loops may not write into operands, in a branch of a branch or through a view",
          "[hop][functionalize][exception][MA-S03][MA-S06]") {
  tensor const x = counted({2, 2});
  auto const inner_writes = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0),
        [](tensor const& u) {
          return vv::cond(
              vv::gt(vv::sum(u), 1.0), [](tensor const& w) { return tensor(vv::add_(w, 1.0) * 1.0); },
              [](tensor const& w) { return tensor(w * 1.0); }, u);
        },
        [](tensor const& u) { return tensor(u * 1.0); }, v);
  };
  auto const through_a_view = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0),
        [](tensor const& u) {
          tensor const row = vv::reshape(u, dims{-1});
          vv::add_(row, 1.0);
          return tensor(vv::sum(row));
        },
        [](tensor const& u) { return tensor(vv::sum(u)); }, v);
  };
  CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(inner_writes))(vv::clone(x)), ContainsText("writes into"));
  CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(through_a_view))(vv::clone(x)), ContainsText("writes into"));
  CHECK(vv::this_thread_state.quiet());
}

namespace {
/// What a branch returns is its operand, or one tensor twice, and then one of them is written into.
template <class Branch, class After>
auto written_after(Branch const& branch, After const& after) {
  return [=](tensor const& x) {
    tensor const own = x * 1.0;
    auto const y = vv::cond(
        vv::gt(vv::sum(x), 0.0), branch, [](tensor const& u) { return std::pair(tensor(u * 2.0), tensor(u * 3.0)); },
        own);
    return tensor(after(own, y));
  };
}
} // namespace

TEST_CASE("cond: a trace refuses to write where a branch may have returned an operand, or one tensor twice",
          "[hop][cond][functionalize][exception][MA-S02][MA-S07]") {
  auto const passes = [](tensor const& u) { return std::pair(u, tensor(u * 3.0)); };
  auto const a_view = [](tensor const& u) { return std::pair(tensor(vv::reshape(u, dims{2, 2})), tensor(u * 3.0)); };
  auto const twice = [](tensor const& u) {
    tensor const own = u * 2.0;
    return std::pair(own, own);
  };
  auto const writes = [](tensor const& own, auto const& y) { return vv::add_(y.first, 1.0), own * y.second; };
  auto const writes_operand = [](tensor const& own, auto const& y) { return vv::add_(own, 1.0), y.first * 1.0; };
  auto const keeps = [](tensor const& own, auto const& y) { return vv::copy_(own, y.first), own * 2.0; };
  auto const reads = [](tensor const& own, auto const& y) { return own * y.first + y.second; };
  tensor const x = counted({2, 2}) + 1.0;
  auto const refused = [&](auto const& f) {
    CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(f))(x), ContainsText("cond returned"));
    CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(f)(x)), ContainsText("branch of cond"));
    CHECK_THROWS_WITH(vv::compile(f)(x), ContainsText("branch of cond"));
    CHECK(same(vv::functionalize(f)(x), f(x))); // without a trace the branch is run as it stands
    CHECK(vv::this_thread_state.quiet());
  };
  auto const as_it_is = [&](auto const& f) {
    CHECK(same(vv::interpret(vv::make_fx(vv::functionalize(f))(x), vv::boxed_args(x))[0], f(x)));
    CHECK(same(vv::compile(f)(x), f(x)));
  };
  refused(written_after(passes, writes)), refused(written_after(a_view, writes)), refused(written_after(twice, writes));
  refused(written_after(passes, writes_operand)), refused(written_after(a_view, writes_operand));
  as_it_is(written_after(passes, reads)), as_it_is(written_after(a_view, reads)), as_it_is(written_after(twice, reads));
  as_it_is(written_after(twice, writes_operand));
  as_it_is(written_after(passes, keeps)), as_it_is(written_after(a_view, keeps)); // nobody reads it afterwards
}

namespace {
struct unchanged : vv::function<unchanged> {
  static tensor forward(tensor x) { return x; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, auto g) { return g; }
};
struct first_row : vv::function<first_row> {
  static tensor forward(tensor x) { return vv::select(x, 0, 0); }
  static auto setup_context(auto c, auto const& in, auto const&) { return c.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& c, auto g) { return vv::zeros_like(std::get<0>(c.saved())) + g; }
};
} // namespace

TEST_CASE("custom functions and checkpoints that return an operand: the same in a trace",
          "[hop][functionalize][function][exception]") {
  tensor const x = counted({2, 2}) + 1.0;
  auto const overtaken = [](auto const& call) {
    return [=](tensor const& v) {
      tensor const own = v * 1.0, y = call(own);
      vv::add_(own, 1.0);
      return tensor(y * 1.0);
    };
  };
  auto const refused = [&](auto const& call, char const* name) {
    auto const f = overtaken(call);
    CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(f))(x), ContainsText(name) && ContainsText("written into since"));
    CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(f)(x)), ContainsText("written into since"));
    CHECK(vv::this_thread_state.quiet());
  };
  auto const identity = [](tensor const& v) { return tensor(unchanged::apply(v)); };
  auto const row = [](tensor const& v) { return tensor(first_row::apply(v)); };
  auto const again = [](tensor const& v) { return tensor(vv::checkpoint([](tensor const& u) { return u; }, v)); };
  auto const twice = [](tensor const& v) { // one after the other, and one in the other
    auto const keeps = [](tensor const& u) {
      return vv::cond(
          vv::gt(vv::sum(u), 0.0), [](tensor const& w) { return w; }, [](tensor const& w) { return tensor(w * 2.0); },
          u);
    };
    return tensor(keeps(keeps(v)));
  };
  auto const nested = [](tensor const& v) {
    auto const inner = [](tensor const& u) {
      return vv::cond(
          vv::gt(vv::sum(u), 1.0), [](tensor const& w) { return w; }, [](tensor const& w) { return tensor(w * 2.0); },
          u);
    };
    return tensor(vv::cond(vv::gt(vv::sum(v), 0.0), inner, [](tensor const& u) { return tensor(u * 2.0); }, v));
  };
  refused(twice, "cond"), refused(nested, "cond");
  refused(identity, "unchanged"), refused(row, "first_row"), refused(again, "wrap_activation_checkpoint");
  CHECK_THROWS_WITH(vv::functionalize(overtaken(row))(x), ContainsText("first_row returned"));
  CHECK(same(vv::functionalize(overtaken(identity))(x), x + 1.0));
  CHECK(same(vv::compile(overtaken(identity))(x), x + 1.0)); // inlined, for values alone
  CHECK(same(vv::compile(overtaken(row))(x), at(x, 0) + 1.0));
}

TEST_CASE("a function that returns what it was given leaves that what it is, in a trace",
          "[hop][cond][function][make_fx]") {
  auto const captured = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [&](tensor const&) { return w; }, [](tensor const& u) { return tensor(u * 2.0); }, v);
    return tensor(w * 10.0 + y);
  };
  auto const operand = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return u; }, [](tensor const& u) { return tensor(u * 2.0); }, w);
    return tensor(w * 10.0 + y);
  };
  auto const written = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return u; }, [](tensor const& u) { return tensor(u * 2.0); }, w);
    vv::add_(w, 1.0);
    return tensor(y * 1.0);
  };
  tensor const x = counted({2}) + 1.0, y = vv::neg(x);
  auto const check = [&](auto const& f) {
    for (tensor const& at : {x, y})
      for (auto const& g : {vv::make_fx(f)(at), vv::make_fx(f, vv::tracing::fake)(at)})
        for (tensor const& v : {x, y}) CHECK(same(vv::interpret(g, vv::boxed_args(v))[0], f(v)));
  };
  auto const deep = [](tensor const& v) { // of a trace around the one of the branch
    tensor const w = v * 1.0;
    return vv::cond(
        vv::gt(vv::sum(v), -100.0),
        [&](tensor const& u) {
          tensor const z = vv::cond(
              vv::gt(vv::sum(u), 0.0), [&](tensor const&) { return w; },
              [](tensor const& a) { return tensor(a * 2.0); }, u);
          return tensor(w * 10.0 + z);
        },
        [](tensor const& u) { return tensor(u * 1.0); }, v);
  };
  auto const in_a_loop = [](tensor const& v) {
    tensor const w = vv::select(v, 0, 0) * 1.0;
    return vv::map(
        [&](tensor const& u) {
          tensor const z = vv::cond(
              vv::gt(vv::sum(u), 0.0), [&](tensor const&) { return w; },
              [](tensor const& a) { return tensor(a * 2.0); }, u);
          return tensor(w * 10.0 + z);
        },
        v);
  };
  check(captured), check(operand), check(written), check(deep), check(in_a_loop);
  auto const fast = vv::compile(captured);
  for (tensor const& v : {x, y}) CHECK(same(fast(v), captured(v)));
  // what a custom function returned is used there alone: its derivative is not that of all uses
  auto const through = [](tensor const& v) {
    tensor const w = v * 1.0, u = first_row::apply(vv::stack(std::vector{w, w}, 0)), same_w = unchanged::apply(w);
    return tensor(w * 10.0 + u + same_w);
  };
  for (auto const& g : {vv::make_fx(through)(x), vv::make_fx(through, vv::tracing::fake)(x)}) {
    int products = 0;
    for (auto const& n : g)
      if (n.op == &vv::handle<vv::mul_t> && n.count == 2)
        products += g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(n.first)])].function < 0;
    CHECK(products >= 2); // of v and of w, not of what the function gave
    CHECK(same(vv::interpret(g, vv::boxed_args(y))[0], through(y)));
  }
}
