// SPDX-License-Identifier: BSL-1.0
// Higher-order operators and eager autograd: the rule at the autograd key is for calls that have a gradient to record.
#include "../sample/value.hpp"

#include <varve/mode/call_log.hpp>
#include <varve/mode/logging_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;
using vv::boxed_hop;

namespace {
/// Doubles its operand; its autograd rule logs and records the doubling.
struct doubling : vv::higher_order_operator {
  int ruled = 0, computed = 0;
  doubling() : higher_order_operator("doubling") {
    impl(vv::dispatch_key::composite_explicit, [this](boxed_hop const&, boxed_args const& x) -> boxed_args {
      ++computed;
      vv::no_grad const off;
      return boxed_args(tensor(vv::mul(x[0], 2.0)));
    });
    impl(vv::dispatch_key::autograd, [this](boxed_hop const& op, boxed_args const& x) -> boxed_args {
      ++ruled;
      boxed_args const y = redispatch(op, x[0].keys().below(vv::dispatch_key::autograd_cpu), x);
      auto pull = [](boxed_args const& g, bool const*) -> boxed_args { return boxed_args(tensor(vv::mul(g[0], 2.0))); };
      y[0].set_history(
          vv::detail::edge_to(vv::detail::record_function(pull, {vv::edge(x[0].history())}, 1, "DoublingBackward")));
      return y;
    });
    impl("grad", [](vv::interpreter const& in, boxed_hop const& op, boxed_args const& x) -> boxed_args {
      boxed_args const y = in.lower([&] { return op(in.unwrap(x)); });
      return boxed_args(in.record(y[0], x, [](tensor const& g) { return boxed_args(tensor(vv::mul(g, 2.0))); }));
    });
  }
};
} // namespace

TEST_CASE("hop: the autograd rule runs only where a gradient is recorded", "[hop][autograd][HO-S07]") { // HO-9
  doubling op;
  tensor const x{{1.0, 2.0}};
  auto const call = [&](tensor const& t) { return tensor(op({}, boxed_args(t))[0]); };
  tensor const plain = call(x);
  CHECK(op.ruled == 0);
  CHECK_FALSE(plain.requires_grad());
  x.requires_grad_();
  {
    vv::no_grad const off;
    tensor const y = call(x);
    CHECK(op.ruled == 0);
    CHECK_FALSE(y.requires_grad());
    CHECK(difference(y, plain, 0) == "");
  }
  tensor const y = call(x);
  CHECK(op.ruled == 1);
  CHECK(y.requires_grad());
  CHECK(difference(y.detach(), plain, 0) == "");
  vv::sum(y).backward();
  CHECK(difference(x.grad(), tensor{{2.0, 2.0}}, 0) == "");
}

TEST_CASE("hop: inside of grad the transform's rule runs, and below it the rule is passed", "[hop][autograd][HO-S08]") {
  doubling op;
  tensor const g =
      vv::grad([&](tensor const& t) { return vv::sum(tensor(op({}, boxed_args(t))[0])); })(tensor{{1.0, 2.0}});
  CHECK(difference(g, tensor{{2.0, 2.0}}, 0) == "");
  CHECK(op.ruled == 0);
  CHECK(op.computed == 1);
}

TEST_CASE("hop: one that writes into operands is refused where a gradient is recorded",
          "[hop][autograd][HO-S09]") { // HO-10
  doubling op;
  op.mark_written();
  tensor const x{{1.0}};
  CHECK_NOTHROW(op({}, boxed_args(x)));
  x.requires_grad_();
  CHECK_THROWS_WITH(op({}, boxed_args(x)), ContainsText("writes into operands"));
  vv::no_grad const off;
  CHECK_NOTHROW(op({}, boxed_args(x)));
}

TEST_CASE("cond: more operands and captures than lie in place anywhere", "[hop][cond]") {
  tensor const p = vv::ones({}, dtype::bool_);
  std::vector<tensor> captured;
  for (int k = 0; k < 12; ++k) captured.push_back(tensor{{1.0 + k, 2.0}});
  auto const all = [&](auto const& a, auto const& b, auto const& c, auto const& d, auto const& e, auto const& f,
                       auto const& g, auto const& h, auto const& i, auto const& j) {
    tensor r = a + b * 2.0 + c * 3.0 + d + e + f + g + h + i * j;
    for (auto const& t : captured) r = r * 1.0 + t * a;
    return r;
  };
  auto const none_of = [](auto const& a, auto const&...) { return tensor(a); };
  tensor const x{{0.5, 0.25}};
  auto const plain = [&](tensor const& t) { return vv::sum(all(t, t, t, t, t, t, t, t, t, t)); };
  auto const branched = [&](tensor const& t) {
    return vv::sum(vv::cond(p, all, none_of, t, t, t, t, t, t, t, t, t, t));
  };
  CHECK(difference(branched(x), plain(x), 0) == "");
  CHECK(difference(vv::grad(branched)(x), vv::grad(plain)(x), 1e-14) == "");
  CHECK(difference(vv::jvp(branched, std::tuple{x}, std::tuple{x}).second,
                   vv::jvp(plain, std::tuple{x}, std::tuple{x}).second, 1e-14) == "");
  tensor const xs = vv::stack(std::vector<tensor>{x, x, x});
  tensor const ps = vv::to(tensor{{1.0, 0.0, 1.0}}, dtype::bool_);
  auto const mapped = [&](tensor const& q, tensor const& t) {
    return vv::sum(vv::cond(q, all, none_of, t, t, t, t, t, t, t, t, t, t));
  };
  auto const gradients = vv::vmap(vv::grad<1>(mapped))(ps, xs);
  CHECK(difference(slice_of(gradients, 0, 0), vv::grad(plain)(x), 1e-13) == "");
  CHECK(difference(slice_of(gradients, 0, 1), vv::ones({2}, dtype::float64), 0) == "");
  CHECK(difference(vv::grad([&](tensor const& t) { return vv::sum(vv::mul(vv::grad(branched)(t), t)); })(x),
                   vv::grad([&](tensor const& t) { return vv::sum(vv::mul(vv::grad(plain)(t), t)); })(x), 1e-13) == "");
}

TEST_CASE("hop: a mode changes nothing of what eager autograd records inside", "[hop][autograd][mode]") {
  vv::call_log log;
  vv::logging_mode mode{log};
  auto const f = [](tensor const& u) { return vv::sin(u); };
  auto const chosen = [&](tensor const& x) { return vv::cond(vv::sum(x) > 0.0, f, f, x); };
  auto const rows = [&](tensor const& x) { return vv::map(f, x); };
  auto const check = [&](auto const& program) {
    tensor const x{{1.0, 2.0}}, y{{1.0, 2.0}};
    x.requires_grad_(), y.requires_grad_();
    vv::sum(program(x)).backward();
    tensor const seen = vv::with(mode, program, y);
    CHECK(seen.requires_grad());
    vv::sum(seen).backward();
    CHECK(elements(y.grad()) == elements(x.grad()));
  };
  check(chosen);
  check(rows);
}
