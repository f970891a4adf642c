// SPDX-License-Identifier: BSL-1.0
// The functional mode: below it nothing is written, above it a program is as it was.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <sstream>
#include <tuple>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor some_numbers() { return vector_of({1, 2, 3}); }
/// What a user mode sees.
struct calls_seen : vv::dispatch_mode<calls_seen> {
  static constexpr bool supports_higher_order_operators = true;
  std::vector<std::string> names;
  auto process(auto const& op, auto const& x) {
    names.push_back(op.name());
    return op(x);
  }
  int count(std::string const& name) const { return static_cast<int>(std::count(names.begin(), names.end(), name)); }
};
/// A derivative that is not that of its text.
struct tripled : vv::function<tripled> {
  static tensor forward(tensor x) { return x * 1.0; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return g * 3.0; }
  static auto jvp(auto&, tensor t) { return t * 3.0; }
};
/// f under a mode of its own: its result and what became of its argument.
template <class F>
auto functional(F const& f) {
  return [f](tensor const& x) {
    vv::functional_mode mode;
    vv::functional_mode_guard const on(mode);
    tensor const t = mode.to_functional_tensor(x), y = f(t);
    return std::pair(vv::is_functional_tensor(y) ? vv::from_functional_tensor(y) : y, vv::from_functional_tensor(t));
  };
}
bool writes(vv::graph const& g) {
  for (vv::node const& n : g.nodes)
    if (n.op->kind == vv::op_kind::mutation) return true;
  return false;
}
/// Under the mode a function gives what it gives without, its argument is as it was, nothing that is traced below
/// writes, and the graph gives it too.
template <class F>
vv::graph same(F const& f, tensor const& x = some_numbers()) {
  tensor const given = vv::clone(x), written = vv::clone(x);
  std::vector<double> const y = elements(f(written));
  auto const [value, argument] = functional(f)(given);
  CHECK(elements(value) == y);
  CHECK(elements(argument) == elements(written));
  CHECK(elements(given) == elements(x));
  vv::graph const g = vv::make_fx(functional(f), vv::tracing::fake)(x);
  CHECK(vv::verify(g));
  CHECK_FALSE(writes(g));
  auto const r = vv::interpret(g, vv::boxed_args(given));
  CHECK(elements(r[0]) == y);
  CHECK(elements(r[1]) == elements(written));
  CHECK(vv::this_thread_state.quiet());
  return g;
}
std::vector<std::string> operators_of(vv::graph const& g) {
  std::vector<std::string> r;
  for (vv::node const& n : g.nodes)
    if (n.op->kind != vv::op_kind::placeholder && n.op->kind != vv::op_kind::constant) r.push_back(n.op->name);
  return r;
}
using names = std::vector<std::string>;
auto const adds_to_row = [](tensor const& x) { vv::add_(vv::select(x, 0, 0), 1.0); };
} // namespace

TEST_CASE("FN-S23 functional mode: a traced write through a view", "[functional][FN-S23]") {
  auto const f = [](tensor const& x) {
    tensor const v = vv::reshape(x, dims{-1});
    vv::mul_(x, 2.0);
    return v + 1.0;
  };
  CHECK(operators_of(same(f, vector_of({1, 2}))) == names{"reshape", "mul", "reshape", "add"});
  CHECK(elements(functional(f)(vector_of({1, 2})).first) == std::vector<double>{3, 5});
}
TEST_CASE("FN-S01, FN-S02, FN-S10 functional mode: views of what is written", "[functional][FN-S01][FN-S02][FN-S10]") {
  tensor const ones = vv::full({4, 2}, 1.0, dtype::float64);
  same(
      [&](tensor const& x) {
        tensor const y = vv::reshape(x, dims{2, 4});
        vv::add_(y, vv::full({2, 4}, 1.0, dtype::float64));
        (void)(x * x);
        return y;
      },
      ones);
  same(
      [](tensor const& x) {
        tensor const y = vv::reshape(x, dims{8});
        vv::add_(x, 1.0);
        return y;
      },
      ones);
  same([](tensor const& x) {
    tensor const y = vv::reshape(x, dims{-1}), z = vv::reshape(x, dims{-1});
    vv::add_(x, 1.0);
    return z + 1.0 + y;
  });
}
TEST_CASE("FN-S09, FN-S11, FN-S12 functional mode: selections, dead views, dtypes", "[functional][FN-S09][FN-S11]") {
  tensor const square = vv::full({2, 2}, 1.0, dtype::float64);
  same([](tensor const&) {
    tensor const t = vv::zeros({10}, dtype::float64);
    vv::fill_(vv::select(t, 0, 5), 1.0);
    return t;
  });
  vv::graph const g = same([](tensor const& x) { return adds_to_row(x), x + x; }, square);
  CHECK(operators_of(g).back() == "add");
}
TEST_CASE("functional mode: chains of views, overlapping writes", "[functional]") {
  same([](tensor const& x) {
    tensor const c = vv::clone(x);
    vv::mul_(vv::slice(c, 0, 1, 3), 2.0);
    vv::add_(vv::select(vv::slice(c, 0, 1, 3), 0, 1), 5.0);
    vv::mul_(vv::detach(c), 3.0);
    vv::copy_(vv::slice(c, 0, 0, 2), vv::slice(x, 0, 1, 3));
    return c;
  });
  same([](tensor const& x) {
    tensor const m = vv::clone(vv::expand(vv::reshape(x, dims{1, 3}), dims{3, 3}));
    vv::mul_(vv::permute(m, dims{1, 0}), vv::reshape(x, dims{3, 1}));
    vv::add_(vv::as_strided(m, dims{3}, dims{4}), x);
    return m;
  });
}
TEST_CASE("functional mode: autograd and transforms around it", "[functional]") {
  auto const writes_views = [](tensor const& l) {
    tensor const c = vv::clone(l);
    vv::mul_(vv::slice(c, 0, 1, 3), vv::slice(l, 0, 0, 2));
    return vv::sum(c * c * l);
  };
  same([&](tensor const& x) { return vv::grad(writes_views)(x); });
  same([&](tensor const& x) {
    return vv::grad([&](tensor const& u) { return vv::sum(vv::grad(writes_views)(u)); })(x);
  });
  same([&](tensor const& x) {
    tensor leaf = vv::detach(x);
    leaf.requires_grad_();
    writes_views(leaf).backward();
    return leaf.grad();
  });
  same([](tensor const& x) {
    return vv::vmap([](tensor const& l) {
      tensor const c = vv::clone(l);
      vv::mul_(c, l);
      return c;
    })(x);
  });
  same([&](tensor const& x) { return vv::jvp(writes_views, std::tuple(x), std::tuple(x)).second; });
  same([&](tensor const& x) { return vv::functionalize(vv::grad(writes_views))(x); });
}
TEST_CASE("functional mode: functions of higher-order operators, custom functions", "[functional]") {
  auto const doubled = [](tensor const& u) {
    tensor const c = vv::clone(u);
    vv::add_(c, u);
    return c;
  };
  same(
      [&](tensor const& x) { return vv::cond(vv::sum(x) > 0.0, doubled, [](tensor const& u) { return u * 1.0; }, x); });
  same([](tensor const& x) {
    auto const step = [](tensor const& c, tensor const& r) {
      tensor const d = vv::clone(c);
      vv::add_(d, r);
      return std::pair(d, c * r);
    };
    return vv::scan(step, vv::full({}, 0.0, dtype::float64), x).second;
  });
  same([&](tensor const& x) { return vv::map(doubled, x); });
  vv::graph const g = same([](tensor const& x) { return tripled::apply(x); });
  auto const run = [&](tensor const& x) { return vv::sum(tensor(vv::interpret(g, vv::boxed_args(x))[0])); };
  CHECK(elements(vv::grad(run)(some_numbers())) == std::vector<double>{3, 3, 3});
  same([](tensor const& x) { return vv::grad([](tensor const& u) { return vv::sum(tripled::apply(u)); })(x); });
  auto const writes_operand = [](tensor const& u) { return vv::add_(u, 1.0), u * 1.0; };
  CHECK_THROWS_AS(functional([&](tensor const& x) { return vv::cond(vv::sum(x) > 0.0, writes_operand, doubled, x); })(
                      some_numbers()),
                  vv::transform_error);
}
TEST_CASE("FN-30, FN-32 functional mode: user modes see the program, those below what is left", "[functional][MD-5]") {
  calls_seen above;
  auto const f = [&](tensor const& x) {
    vv::mode_guard const on(above);
    return adds_to_row(x), x * 2.0;
  };
  vv::graph const g = vv::make_fx(functional(f), vv::tracing::fake)(some_numbers());
  CHECK(above.count("add_") == 1);
  CHECK(above.count("mul") == 1);
  CHECK_FALSE(writes(g));
  vv::functional_mode mode, other;
  vv::functional_mode_guard const on(mode), again(mode);
  CHECK(vv::current_modes().size() == 1);
  CHECK_THROWS_AS(vv::functional_mode_guard(other), vv::dispatch_error);
}
TEST_CASE("FN-S17, FN-S26 functional mode: beside plain tensors", "[functional][FN-S17][FN-S26]") {
  tensor const plain = some_numbers(), before = vv::clone(plain);
  vv::functional_mode mode, other;
  tensor const t = mode.to_functional_tensor(vv::clone(plain));
  vv::functional_mode_guard const on(mode);
  tensor const y = plain + t;
  vv::add_(y, 1.0);
  CHECK(vv::is_functional_tensor(y));
  CHECK(elements(vv::from_functional_tensor(y)) == std::vector<double>{3, 5, 7});
  CHECK_THROWS_AS(vv::add_(plain, t), vv::transform_error);
  tensor const lifted = mode.to_functional_tensor(plain);
  CHECK_FALSE(lifted.shares_storage(plain));
  vv::mul_(lifted, 3.0);
  CHECK(elements(plain) == elements(before));
  vv::add_(plain, 1.0); // no functional operand: as ever
  CHECK(elements(plain) == std::vector<double>{2, 3, 4});
  CHECK_THROWS_AS(mode.to_functional_tensor(t), vv::value_error);
  CHECK_THROWS_AS(t + other.to_functional_tensor(plain), vv::dispatch_error);
}
TEST_CASE("FN-S32, FN-S33 functional tensors without their mode", "[functional][FN-S32][FN-S33]") {
  tensor const x = some_numbers();
  vv::functional_mode mode;
  tensor const t = mode.to_functional_tensor(x);
  {
    vv::functional_mode_guard const on(mode);
    vv::mul_(t, 2.0);
  }
  CHECK_THROWS_WITH(t + 1.0, Catch::Contains("functional_mode_guard"));
  vv::sync(t); // by nobody's mode
  auto const synced = [](tensor const& v) {
    tensor const y = v * 2.0, row = vv::select(y, 0, 0);
    vv::mul_(y, 3.0);
    vv::sync(row);
    return tensor(row * 1.0);
  };
  CHECK(vv::functionalize(synced)(tensor{1.0, 2.0}).item<double>() == 6);
  CHECK(elements(vv::from_functional_tensor(t)) == std::vector<double>{2, 4, 6});
  CHECK(elements(x) == std::vector<double>{1, 2, 3});
  CHECK_THROWS_AS(vv::sync(x), vv::value_error);
  CHECK_THROWS_AS(vv::from_functional_tensor(x), vv::value_error);
  {
    vv::functional_mode_guard const on(mode);
    vv::add_(t, 1.0);
    vv::sync(t);
    CHECK(vv::current_modes().size() == 1); // back in its slot
    CHECK(vv::sum(t).item<double>() == 15);
  }
  CHECK(vv::this_thread_state.quiet());
}
TEST_CASE("FN-15, FN-20 functional mode: what was written, and what may not be", "[functional]") {
  vv::functional_mode mode;
  tensor const t = mode.to_functional_tensor(some_numbers()), u = mode.to_functional_tensor(some_numbers());
  vv::functional_mode_guard const on(mode);
  CHECK_FALSE(vv::mutations_of(t).any());
  {
    vv::no_grad const off;
    adds_to_row(t);
  }
  CHECK(vv::mutations_of(t).all_without_grad());
  std::uint32_t const version = t.version();
  vv::mul_(vv::slice(t, 0, 0, 2), 2.0);
  CHECK(t.version() == version + 1);
  CHECK(vv::mutations_of(t).all == 2);
  CHECK_FALSE(vv::mutations_of(t).all_without_grad());
  CHECK_FALSE(vv::mutations_of(u).any());
  vv::sync(t); // regeneration is no write
  CHECK(vv::mutations_of(t).all == 2);
  tensor const part = vv::slice(t, 0, 0, 1);
  vv::freeze_functional_tensor(part);
  CHECK_THROWS_WITH(vv::add_(t, 1.0), Catch::Contains("frozen"));
  CHECK(elements(vv::from_functional_tensor(t)) == std::vector<double>{4, 4, 3});
}
TEST_CASE("FN-35 functional tensors stand as what they hold does in autograd", "[functional]") {
  vv::functional_mode mode;
  tensor leaf = some_numbers();
  leaf.requires_grad_();
  tensor const inside = leaf * 2.0, none = some_numbers();
  CHECK(mode.to_functional_tensor(leaf).is_leaf());
  CHECK(mode.to_functional_tensor(leaf).requires_grad());
  CHECK_FALSE(mode.to_functional_tensor(inside).is_leaf());
  CHECK(mode.to_functional_tensor(inside).requires_grad());
  CHECK_FALSE(mode.to_functional_tensor(none).requires_grad());
  vv::functional_mode_guard const on(mode);
  CHECK_THROWS_AS(vv::sum(mode.to_functional_tensor(inside)).backward(), vv::autograd_error);
  tensor const t = mode.to_functional_tensor(leaf);
  vv::sum(t * t).backward();
  CHECK(elements(vv::from_functional_tensor(t.grad())) == std::vector<double>{2, 4, 6});
  CHECK_FALSE(leaf.grad().defined());
}
TEST_CASE("functional mode: tensors in one memory are not written into", "[functional]") {
  tensor const x = some_numbers();
  vv::functional_mode mode;
  vv::functional_mode_guard const on(mode);
  {
    tensor const whole = mode.to_functional_tensor(x), part = mode.to_functional_tensor(vv::slice(x, 0, 0, 2));
    CHECK(elements(vv::from_functional_tensor(whole + 1.0)) == std::vector<double>{2, 3, 4});
    CHECK_THROWS_WITH(vv::add_(whole, 1.0), Catch::Contains("take views of it"));
    CHECK_THROWS_WITH(vv::add_(part, 1.0), Catch::Contains("take views of it"));
  }
  tensor const alone = mode.to_functional_tensor(x);
  vv::add_(alone, 1.0);
  CHECK(elements(vv::from_functional_tensor(alone)) == std::vector<double>{2, 3, 4});
  CHECK(elements(x) == std::vector<double>{1, 2, 3});
}
TEST_CASE("functional mode: ranks, empty shapes, strides and dtypes", "[functional]") {
  same([](tensor const& x) { return vv::mul_(x, 3.0), x + 1.0; }, vv::full({}, 2.0, dtype::float64));
  same([](tensor const& x) { return vv::add_(x, x), x * 2.0; }, vv::zeros({0, 3}, dtype::float64));
  same([](tensor const& x) { return vv::add_(vv::select(x, 1, 0), 7), x * 2; }, vv::reshape(vv::arange(6), dims{2, 3}));
  same([](tensor const& x) { return vv::copy_(x, vv::gt(x, 1.0)), x; }, some_numbers());
  tensor const columns = vv::permute(vv::reshape(vv::to(vv::arange(6), dtype::float64), dims{2, 3}), dims{1, 0});
  auto const f = [](tensor const& x) { return vv::mul_(vv::slice(x, 0, 1, 3), 2.0), vv::reshape(x, dims{-1}); };
  CHECK(elements(functional(f)(columns).first) == elements(f(vv::clone(columns))));
}
TEST_CASE("functional mode: a loop whose gradient is traced writes into nothing", "[functional][hop]") {
  auto const f = [](tensor const& a, tensor const& b) {
    auto const last = vv::while_loop([](values const& v) { return tensor(v[0] < 0.0); },
                                     [](values const& v) {
                                       vv::tanh_(v[1]);
                                       return values{v[0] + 1.0, vv::clone(v[1])};
                                     },
                                     values{b, b});
    return vv::sum(last[1]) + vv::sum(a);
  };
  tensor const a(-2.0), b(0.25); // the loop ends before its first step
  vv::functional_mode mode;
  tensor const fa = mode.to_functional_tensor(a), fb = mode.to_functional_tensor(b);
  {
    vv::functional_mode_guard const on(mode);
    (void)vv::jacrev([&](tensor const& v) { return f(v, fb); })(fa);
    (void)vv::jvp([&](tensor const& v) { return f(v, fb); }, std::tuple(fa), std::tuple(fa));
  }
  CHECK(vv::from_functional_tensor(fb).item() == 0.25);
  CHECK(!vv::mutations_of(fb).any());
}
TEST_CASE("functional mode: errors leave values and modes as they were", "[functional]") {
  vv::functional_mode mode;
  tensor const t = mode.to_functional_tensor(some_numbers());
  vv::functional_mode_guard const on(mode);
  std::uint32_t const version = t.version();
  CHECK_THROWS_AS(vv::add_(t, vector_of({1, 2})), vv::shape_error);
  CHECK_THROWS_AS(vv::add_(vv::expand(vv::reshape(t, dims{1, 3}), dims{2, 3}), 1.0), vv::error);
  CHECK(t.version() == version);
  CHECK(elements(vv::from_functional_tensor(t)) == std::vector<double>{1, 2, 3});
  CHECK(vv::current_modes().size() == 1);
}
