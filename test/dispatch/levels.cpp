// SPDX-License-Identifier: BSL-1.0
// Levels of grad, jvp and vmap within one another, and what escapes them.
#include "../sample/value.hpp"

#include <varve/mode/logging_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dispatch_key;
using names = std::vector<std::string>;

TEST_CASE("scenarios: second derivatives by each pair of grad and jvp", "[dispatch][interpreter][FS-S01][FS-S25]") {
  tensor const x = from({0.5}, {}), one = from({1}, {});
  auto const sin = [](tensor const& v) -> tensor { return vv::sin(v); };
  auto const forward = [&](auto const& f) {
    return [=](tensor const& v) -> tensor { return vv::jvp(f, std::tuple(v), std::tuple(one)).second; };
  };
  auto const reverse = [&](auto const& f) { return [=](tensor const& v) -> tensor { return vv::grad(f)(v); }; };
  tensor const expected = from({-std::sin(0.5)}, {});
  CHECK(difference(forward(sin)(x), from({std::cos(0.5)}, {})) == "");
  CHECK(difference(reverse(reverse(sin))(x), expected) == "");
  CHECK(difference(forward(reverse(sin))(x), expected) == "");
  CHECK(difference(reverse(forward(sin))(x), expected) == "");
  CHECK(difference(forward(forward(sin))(x), expected) == "");
}

namespace {
/// sum as a higher-order operator, with rules for grad and for eager autograd.
struct sum_operator : vv::higher_order_operator {
  sum_operator() : higher_order_operator("mysum") {
    impl(dispatch_key::composite_explicit, [](vv::boxed_hop const&, vv::boxed_args const& x) -> vv::boxed_args {
      vv::no_grad const off;
      return vv::boxed_args(tensor(vv::sum(x[0])));
    });
    impl(dispatch_key::autograd, [this](vv::boxed_hop const& op, vv::boxed_args const& x) -> vv::boxed_args {
      vv::boxed_args const y = redispatch(op, x[0].keys().below(dispatch_key::autograd_cpu), x);
      auto pull = [n = x[0].sizes()](vv::boxed_args const& g, bool const*) -> vv::boxed_args {
        return vv::boxed_args(tensor(vv::expand(g[0], n)));
      };
      y[0].set_history(
          vv::detail::edge_to(vv::detail::record_function(pull, {vv::edge(x[0].history())}, 1, "MysumBackward")));
      return y;
    });
    impl("grad", [](vv::interpreter const& in, vv::boxed_hop const& op, vv::boxed_args const& x) -> vv::boxed_args {
      vv::boxed_args const y = in.lower([&] { return op(in.unwrap(x)); });
      return vv::boxed_args(
          in.record(y[0], x, [n = x[0].sizes()](tensor const& g) { return vv::boxed_args(tensor(vv::expand(g, n))); }));
    });
  }
};
} // namespace

TEST_CASE("scenarios: no_grad inside of grad, through a higher-order operator",
          "[dispatch][interpreter][hop][FS-S21]") {
  sum_operator mysum;
  auto const f = [&](tensor const& v) -> tensor {
    tensor const constant = [&] {
      vv::no_grad const off;
      return tensor(mysum({}, vv::boxed_args(tensor(v * v)))[0]);
    }();
    return mysum({}, vv::boxed_args(tensor(v * v)))[0] - constant;
  };
  tensor const x = from({0.5, -1, 2}, {3});
  CHECK(difference(f(x), from({0}, {})) == "");
  CHECK(difference(vv::grad(f)(x), x * 2) == "");
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(f)(v)); })(x)) ==
        std::vector<double>{2, 2, 2});
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  vv::sum(vv::grad(f)(leaf)).backward();
  CHECK(elements(leaf.grad()) == std::vector<double>{2, 2, 2});
}

TEST_CASE("scenarios: what escapes vmap is refused by every kind of operator, what escapes grad is what it holds",
          "[dispatch][interpreter][escape][FS-S04]") { // FS-10
  tensor const x = from({1, 2, 3, 4, 5, 6}, {3, 2});
  tensor kept, tracked;
  (void)vv::vmap([&](tensor const& v) { return kept = v * 2; })(x);
  auto const refused = [&](auto const& f) { CHECK_THROWS_WITH(f(), ContainsText("vmap had returned")); };
  refused([&] { return vv::sin(kept); });
  refused([&] { return vv::add_(kept, 1); });
  refused([&] { return vv::sum(kept); });
  refused([&] { return vv::amax(kept, vv::axis<0>); });
  refused([&] { return vv::reshape(kept, dims{1, 2}); });
  refused([&] { return vv::matmul(x, kept); });
  refused([&] { return vv::cat(std::tuple(kept, x), 0); });
  refused([&] { return vv::where(vv::gt(x, 0), kept, x); });
  refused([&] { return vv::softmax(kept, 0); });
  refused([&] {
    return vv::cond(
        vv::gt(vv::sum(x), 0), [](auto const& v) { return vv::sin(v); }, [](auto const& v) { return vv::cos(v); },
        kept);
  });
  // Grad's are unwrapped without a word: as operands, of a higher-order operator, inside of later transforms, and where
  // they are written.
  (void)vv::grad([&](tensor const& v) {
    tracked = v * 2;
    return vv::sum(v);
  })(x);
  CHECK(elements(vv::sum(tracked)) == std::vector<double>{42});
  CHECK(elements(vv::cond(
            vv::gt(vv::sum(tracked), 0), [](auto const& v) { return vv::sum(v); },
            [](auto const& v) { return vv::amax(v, vv::shape<0, 1>); }, tracked)) == std::vector<double>{42});
  CHECK(elements(vv::vmap([&](tensor const& v) { return vv::sum(v * tracked); })(x))[0] ==
        Approx(1 * 2 + 2 * 4 + 1 * 6 + 2 * 8 + 1 * 10 + 2 * 12));
  CHECK(difference(vv::grad([&](tensor const& v) { return vv::sum(v * tracked); })(x), x * 2) == "");
  (void)vv::add_(tracked, 1);
  CHECK(elements(vv::sum(tracked)) == std::vector<double>{48});
  // A dead mapped value inside of a dead tracked one is refused as well, a dead tracked one inside of a mapped one that
  // lives is not.
  (void)vv::vmap([&](tensor const& v) {
    (void)vv::grad([&](tensor const& u) {
      tracked = u * 2;
      return vv::sum(u);
    })(v);
    CHECK_NOTHROW(vv::sum(tracked));
    return v;
  })(x);
  refused([&] { return vv::sum(tracked); });
  CHECK(vv::this_thread_state.quiet());
}
