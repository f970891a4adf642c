// SPDX-License-Identifier: BSL-1.0
// Results of higher-order operators that were once silently wrong, or never came.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// sqrt(v) above 0, 2 v else: the derivative of the branch not taken is infinite at 0, and none below.
constexpr auto root_or_double = [](auto const& v) {
  return vv::cond(v > 0, [](auto const& a) { return vv::sqrt(a); }, [](auto const& a) { return a * 2.0; }, v);
};
constexpr auto total = [](auto const& x) { return vv::sum(vv::vmap(root_or_double)(x)); };
/// Doubles until 100, or until -100: neither loop ends for the lanes of the other.
template <vv::index_t Bound = 0>
constexpr auto loops = [](auto const& v) {
  auto const up = [](auto const& a) {
    return vv::while_loop<Bound>([](auto const& u) { return u < 100.0; }, [](auto const& u) { return u * 2.0; }, a);
  };
  auto const down = [](auto const& a) {
    return vv::while_loop<Bound>([](auto const& u) { return u > -100.0; }, [](auto const& u) { return u * 2.0 - 1.0; },
                                 a);
  };
  return vv::cond(v > 0, up, down, v);
};
/// A root at each step, of what is below 0 for lanes that are done.
constexpr auto roots = [](auto const& v) {
  return vv::while_loop<9>([](auto const& u) { return u > 1.0; }, [](auto const& u) { return vv::sqrt(u - 1.0); }, v);
};
} // namespace

TEST_CASE("no derivative comes of the branch that a lane does not take", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1});
  std::vector<double> const right{0.25, 2, 2}, matrix{0.25, 0, 0, 0, 2, 0, 0, 0, 2};
  auto const gradient = [](tensor const& v) { return vv::grad(total)(v); };
  CHECK(elements(gradient(x)) == right);
  CHECK(elements(std::get<0>(vv::vjp(total, x).second(vv::full({}, 1.0)))) == right);
  CHECK(elements(vv::jacrev(vv::vmap(root_or_double))(x)) == matrix);
  CHECK(elements(vv::jacfwd(vv::vmap(root_or_double))(x)) == matrix);
  CHECK(elements(vv::hessian(total)(x)) == doubles({-1. / 32, 0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(elements(vv::vmap(gradient)(vv::reshape(x, dims{1, 3}))) == right);
  CHECK(elements(vv::compile(gradient)(x)) == right);
  CHECK(elements(vv::functionalize(gradient)(x)) == right);
  CHECK(elements(vv::interpret(vv::make_fx(gradient)(x), vv::boxed_args(x))[0]) == right);
  CHECK(elements(vv::grad([](tensor const& v) { return vv::interpret(vv::make_fx(total)(v), vv::boxed_args(v))[0]; })(
            x)) == right);
  tensor const leaf = vector_of({4, 0, -1});
  leaf.requires_grad_();
  total(leaf).backward();
  CHECK(elements(leaf.grad()) == right);

  vv::array<double, 3> const s{4, 0, -1};
  CHECK(vv::equal(vv::grad(total)(s), vv::array<double, 3>{0.25, 2, 2}));
  CHECK(vv::equal(vv::fuse(vv::grad(total))(s), vv::array<double, 3>{0.25, 2, 2}));
  CHECK(elements(vv::fuse<vv::spec<double, 3>>(vv::grad(total))(x)) == right);
}

TEST_CASE("no derivative comes of what a branch that is not taken captures", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1}), one = vv::full({}, 1.0);
  auto const weighted = [&](tensor const& w) { // sqrt(v w) above 0: no number of the others
    auto const lane = [&](tensor const& v) {
      auto const root = [&](tensor const& u) { return vv::sqrt(u * w); };
      return vv::cond(v > 0, root, [](tensor const& u) { return u * 2.0; }, v);
    };
    return vv::sum(vv::vmap(lane)(x));
  };
  CHECK(vv::grad(weighted)(one).item<double>() == 1); // of 2 sqrt(w)
  CHECK(vv::grad(vv::grad(weighted))(one).item<double>() == -0.5);
  tensor const leaf = vv::full({}, 1.0);
  leaf.requires_grad_();
  weighted(leaf).backward();
  CHECK(leaf.grad().item<double>() == 1);
  auto const looped = [&](tensor const& w) { // a cond in a step
    auto const lane = [&](tensor const& v) {
      auto const step = [&](tensor const& c, tensor const& r) {
        auto const root = [&](tensor const& u) { return vv::sqrt(u * w); };
        tensor const y = vv::cond(r > 0, root, [](tensor const& u) { return u * 2.0; }, r);
        return std::pair(tensor(c + y), y);
      };
      return vv::scan(step, v, vv::reshape(v, dims{1})).first;
    };
    return vv::sum(vv::vmap(lane)(x));
  };
  CHECK(vv::grad(looped)(one).item<double>() == 1);
}

TEST_CASE("no derivative comes of the steps that a lane does not make", "[hop][while_loop]") {
  tensor const x = vector_of({9, 1, 5});
  double const first = 0.5 / std::sqrt(8.0) * 0.5 / std::sqrt(std::sqrt(8.0) - 1); // of the two steps from 9
  auto const sum_of_roots = [](auto const& v) { return vv::sum(vv::vmap(roots)(v)); };
  auto const check = [&](std::vector<double> const& g) {
    double const second = std::sqrt(std::sqrt(8.0) - 1);
    CHECK(g[0] == Approx(second > 1 ? first * 0.5 / std::sqrt(second - 1) : first));
    CHECK(g[1] == 1);
    CHECK(g[2] == Approx(0.125));
  };
  check(elements(vv::grad(sum_of_roots)(x)));
  check(elements(vv::vmap(vv::grad(roots))(x)));
  check(elements(vv::compile([&](tensor const& v) { return vv::grad(sum_of_roots)(v); })(x)));
  auto const g = vv::grad(sum_of_roots)(vv::array<double, 3>{9, 1, 5});
  check({g.data[0], g.data[1], g.data[2]});
}

TEST_CASE("a branch that only some lanes take writes into nothing that was there before it", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1});
  auto const refused = ContainsText("add_: a function that only some lanes run, as a branch of cond, cannot write");
  auto const same = [](tensor const& u) { return u * 1.0; };
  auto const into_operand = [&](tensor const& v) {
    tensor const b = v * 1.0;
    return vv::cond(v > 0, [](tensor const& u) { return vv::add_(u, 10.0) * 1.0; }, same, b);
  };
  auto const into_view = [&](tensor const& v) {
    tensor const b = v * 1.0;
    return vv::cond(v > 0, same, [](tensor const& u) { return vv::add_(vv::reshape(u, dims{1}), 10.0), u * 1.0; }, b);
  };
  auto const into_captured = [&](tensor const& v) {
    tensor const b = v * 1.0;
    return vv::cond(v > 0, [&](tensor const& u) { return vv::add_(b, 10.0), u * 1.0; }, same, v);
  };
  auto const in_loop = [&](tensor const& v) {
    tensor const b = v * 1.0;
    auto const steps = [&](tensor const& u) {
      return vv::sum(vv::map([&](tensor const& r) { return vv::add_(b, 10.0), r * 1.0; }, vv::reshape(u, dims{1})));
    };
    return vv::cond(v > 0, steps, same, v);
  };
  auto const into_outer = [&](tensor const& v) { // what is not mapped
    return vv::cond(v > 0, [&](tensor const& u) { return vv::add_(x, 1.0), u * 1.0; }, same, v);
  };
  auto const check = [&](auto const& f) {
    CHECK_THROWS_WITH(vv::vmap(f)(x), refused);
    CHECK_THROWS_WITH(vv::grad([&](tensor const& a) { return vv::sum(vv::vmap(f)(a)); })(x), refused);
    CHECK_THROWS_WITH(vv::functionalize([&](tensor const& a) { return vv::vmap(f)(a); })(x), ContainsText("write"));
    CHECK(elements(x) == doubles({4, 0, -1}));
    CHECK(x.version() == 0);
    CHECK(vv::this_thread_state.quiet());
  };
  check(into_operand);
  check(into_view);
  check(into_captured);
  check(in_loop);
  check(into_outer);
  tensor const counts = from(std::vector<double>{5, 6}, {2}, dtype::int64);
  check([&](tensor const& v) { // a view of captured integers
    return vv::cond(v > 0, [&](tensor const& u) { return vv::add_(vv::slice(counts, 0, 0, 1), 10), u * 1.0; }, same, v);
  });
  CHECK(elements(counts) == doubles({5, 6}));
  auto const own = [&](tensor const& v) { // what it made itself it may write into
    auto const write = [](tensor const& u) {
      tensor const b = u * 1.0;
      vv::add_(b, 10.0);
      vv::mul_(vv::reshape(b, dims{1}), 2.0);
      return b;
    };
    return vv::cond(v > 0, write, same, v);
  };
  CHECK(elements(vv::vmap(own)(x)) == doubles({28, 0, -1}));
  CHECK(elements(vv::grad([&](tensor const& a) { return vv::sum(vv::vmap(own)(a)); })(x)) == doubles({2, 1, 1}));
}

TEST_CASE("loops in a branch do not wait for lanes that take the other", "[hop][cond][while_loop]") {
  tensor const x = vector_of({4, 0, -1});
  std::vector<double> const right{128, -127, -127}, slopes{32, 128, 64};
  auto const all = [](tensor const& v) { return vv::sum(vv::vmap(loops<>)(v)); };
  CHECK(elements(vv::vmap(loops<>)(x)) == right);
  CHECK(elements(vv::grad(all)(x)) == slopes);
  CHECK(elements(vv::vmap(vv::grad(loops<>))(x)) == slopes);
  CHECK(elements(vv::vmap(vv::vmap(loops<>))(vv::reshape(x, dims{3, 1}))) == right);
  CHECK(elements(vv::jacfwd(vv::vmap(loops<>))(x)) == doubles({32, 0, 0, 0, 128, 0, 0, 0, 64}));
  CHECK(elements(vv::compile(vv::vmap(loops<>))(x)) == right);
  CHECK(elements(vv::compile([](tensor const& v) { return vv::vmap(vv::grad(loops<9>))(v); })(x)) == slopes);
  CHECK(elements(vv::functionalize([](tensor const& v) { return vv::vmap(loops<>)(v); })(x)) == right);
  auto const over_rows = [](tensor const& v) { // loops without a condition
    auto const steps = [](tensor const& u) {
      auto const twice = [](tensor const& c, tensor const& r) { return std::pair(c * 2.0 + r, vv::none); };
      auto const same = [](tensor const& r) { return r * 3.0; };
      tensor const last = vv::scan(twice, u, vv::zeros(dims{2}, dtype::float64)).first;
      return last + vv::sum(vv::map(same, vv::reshape(u, dims{1})));
    };
    return vv::cond(v > 0, steps, [](tensor const& u) { return u * u; }, v);
  };
  CHECK(elements(vv::vmap(over_rows)(x)) == doubles({28, 0, 1}));
  CHECK(elements(vv::vmap(vv::grad(over_rows))(x)) == doubles({7, 0, -2}));
  CHECK(elements(vv::compile(vv::vmap(vv::grad(over_rows)))(x)) == doubles({7, 0, -2}));
  auto const nested = [](tensor const& v) { // a loop that lanes of its own are done with
    auto const body = [](tensor const& u) {
      return vv::while_loop([](tensor const& w) { return w != 8.0; }, [](tensor const& w) { return w + 1.0; }, u) + 1.0;
    };
    return vv::while_loop([](tensor const& u) { return u < 8.0; }, body, v);
  };
  CHECK(elements(vv::vmap(nested)(vector_of({3, 20, 8}))) == doubles({9, 20, 8}));
  CHECK(elements(vv::vmap(vv::grad(nested))(vector_of({3, 20, 8}))) == doubles({1, 1, 1}));
}

TEST_CASE("branches of cond return vectors in every world of tensors", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1}), rows = vv::stack(std::vector<tensor>{x, x * -1.0}, 0);
  auto const f = [](tensor const& v) {
    std::vector<tensor> const r = vv::cond(
        vv::sum(v) > 0, [](tensor const& a) { return std::vector<tensor>{a * 2.0, a + 1.0}; },
        [](tensor const& a) { return std::vector<tensor>{a, a}; }, v);
    return vv::sum(r.at(0) * r.at(1));
  };
  CHECK(f(x).item<double>() == 40);
  CHECK(vv::compile(f)(x).item<double>() == 40);
  CHECK(vv::functionalize(f)(x).item<double>() == 40);
  CHECK(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0].item<double>() == 40);
  CHECK(elements(vv::vmap(f)(rows)) == doubles({40, 17}));
  CHECK(elements(vv::vmap(vv::grad(f))(rows)) == doubles({18, 2, -2, -8, 0, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(rows)) ==
        doubles({18, 2, -2, -8, 0, 2}));
  auto const uneven = [](tensor const& v) {
    return vv::cond(
               vv::sum(v) > 0, [](tensor const& a) { return std::vector<tensor>{a * 2.0, a + 1.0}; },
               [](tensor const& a) { return std::vector<tensor>{a}; }, v)
        .at(0);
  };
  auto const refused = ContainsText("cond: both functions must return the same number of values: 2 and 1");
  CHECK_THROWS_WITH(vv::make_fx(uneven)(x), refused);
  CHECK_THROWS_WITH(vv::compile(uneven)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(uneven)(rows), ContainsText("number of values"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a branch of cond returns a plain number", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1});
  auto const f = [](auto const& v) {
    return vv::cond(v > 0, [](auto const& a) { return a * 2.0; }, [](auto const&) { return 0.0; }, v);
  };
  auto const total = [&](auto const& v) { return vv::sum(vv::vmap(f)(v)); };
  CHECK(f(vv::sum(x)).item<double>() == 6);
  CHECK_FALSE(f(vv::sum(x) * -1.0).is_number());
  CHECK(elements(vv::vmap(f)(x)) == doubles({8, 0, 0}));
  CHECK(elements(vv::grad(total)(x)) == doubles({2, 0, 0}));
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({2, 0, 0}));
  CHECK(elements(vv::jvp(vv::vmap(f), std::tuple(x), std::tuple(x)).second) == doubles({8, 0, 0}));
  CHECK(elements(vv::compile(f)(vv::sum(x) * -1.0)) == doubles({0}));
  CHECK(elements(vv::compile(vv::vmap(f))(x)) == doubles({8, 0, 0}));
  CHECK(elements(vv::functionalize(f)(vv::sum(x))) == doubles({6}));
  CHECK(elements(vv::interpret(vv::make_fx(f)(vv::sum(x)), vv::boxed_args(vv::sum(x) * -1.0))[0]) == doubles({0}));
  auto const signs = [](tensor const& v) {
    return vv::cond(v > 0, [](tensor const&) { return 1.0; }, [](tensor const&) { return -1.0; }, v);
  };
  CHECK(elements(vv::vmap(signs)(x)) == doubles({1, -1, -1}));
  auto const pair = [](tensor const& v) {
    return std::get<1>(vv::cond(
        v > 0, [](tensor const& a) { return std::tuple(a, 1.0); }, [](tensor const& a) { return std::tuple(0.0, a); },
        v));
  };
  CHECK(elements(vv::vmap(pair)(x)) == doubles({1, 0, -1}));
  vv::array<double, 3> const s{4, 0, -1};
  CHECK(vv::equal(vv::vmap(f)(s), vv::array<double, 3>{8, 0, 0}));
  CHECK(vv::equal(vv::grad(total)(s), vv::array<double, 3>{2, 0, 0}));
}

TEST_CASE("loops over rows of length 0 give what they began with", "[hop][scan]") {
  tensor const none = vv::zeros({0, 2}, dtype::float64), some = vv::ones({2, 2}, dtype::float64);
  auto const step = [](tensor const& c, tensor const& r) {
    tensor const y = c + vv::sum(r);
    return std::pair(y, tensor(y * 2.0));
  };
  auto const f = [&](tensor const& rows) {
    auto const [c, o] = vv::scan(step, vv::sum(rows) + 1.0, rows);
    return vv::cat(std::vector<tensor>{vv::reshape(c, dims{1}), o}, 0);
  };
  CHECK(elements(f(some)) == doubles({9, 14, 18}));
  CHECK(elements(f(none)) == doubles({1}));
  CHECK(vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(none).sizes() == dims{0, 2});
  CHECK(elements(vv::vmap(f)(vv::zeros({3, 0, 2}, dtype::float64))) == doubles({1, 1, 1}));
  CHECK(elements(vv::jvp(f, std::tuple(none), std::tuple(none)).second) == doubles({0}));
  CHECK(elements(vv::functionalize(f)(none)) == doubles({1}));
  CHECK(elements(vv::compile(f)(none)) == doubles({1}));
  CHECK(elements(vv::interpret(vv::make_fx(f)(none), vv::boxed_args(none))[0]) == doubles({1}));
  auto const of_start = [&](tensor const& start) {
    auto const [c, o] = vv::scan(step, start, none);
    return c * c + vv::sum(o);
  };
  tensor const three = vv::full({}, 3.0, dtype::float64);
  CHECK(vv::grad(of_start)(three).item<double>() == 6);
  CHECK(vv::grad(vv::grad(of_start))(three).item<double>() == 2);
  CHECK(vv::compile([&](tensor const& v) { return vv::grad(of_start)(v); })(three).item<double>() == 6);
  auto const doubled = [](tensor const& rows) { return vv::map([](tensor const& r) { return r * 2.0; }, rows); };
  CHECK(doubled(none).sizes() == dims{0, 2});
  CHECK(vv::grad([&](tensor const& v) { return vv::sum(doubled(v)); })(none).sizes() == dims{0, 2});
  CHECK(vv::vmap(doubled)(vv::zeros({3, 0, 2}, dtype::float64)).sizes() == dims{3, 0, 2});
  CHECK(vv::compile(doubled)(none).sizes() == dims{0, 2});
}

TEST_CASE("what a recorded loop or branch was given is not written into before its gradient is taken", "[hop][grad]") {
  tensor const x = vector_of({0.5, 1, 2});
  auto const check = [&](char const* name, auto const& loop) {
    auto const f = [&](tensor const& v) {
      tensor const c = vv::cos(v), y = loop(c);
      vv::mul_(c, 2.0);
      return vv::sum(y);
    };
    auto const refused = ContainsText("operand or result of " + std::string(name));
    CHECK_THROWS_WITH(vv::grad(f)(x), refused);
    CHECK_THROWS_WITH(vv::vmap(vv::grad(f))(vv::reshape(x, dims{1, 3})), refused);
    CHECK(vv::this_thread_state.quiet());
  };
  auto const exp = [](tensor const& r) { return vv::exp(r); };
  auto const product = [](tensor const& a, tensor const& r) { return std::pair(a * r, vv::none); };
  check("map", [&](tensor const& c) { return vv::map(exp, c); });
  check("scan", [&](tensor const& c) { return vv::scan(product, vv::ones({}, dtype::float64), c).first; });
  check("while_loop",
        [&](tensor const& c) { return vv::while_loop([](tensor const& a) { return vv::sum(a) < 100.0; }, exp, c); });
  auto const lane = [&](tensor const& u) { return vv::cond(u > 0.0, exp, [](tensor const& r) { return r * r; }, u); };
  auto const lanes = [&](bool writes) { // branches that some lanes take are given copies
    return vv::grad([&, writes](tensor const& v) {
      tensor const c = vv::cos(v), y = vv::vmap(lane)(c);
      if (writes) vv::mul_(c, 2.0);
      return vv::sum(y);
    })(x);
  };
  CHECK(elements(lanes(true)) == elements(lanes(false)));
}

TEST_CASE("a loop that makes no step writes nothing and draws nothing", "[hop][while_loop][scan]") {
  tensor const x = vector_of({0.5, 1, 2});
  auto const none = [](tensor const& v) {
    auto const never = [](tensor const& k, tensor const&) { return k < 0; };
    auto const step = [](tensor const& k, tensor const& u) {
      vv::mul_(u, 2.0);
      return std::tuple(k + 1, u * 1.0);
    };
    return std::get<1>(vv::while_loop(never, step, std::tuple(vv::zeros({}, dtype::int64), v)));
  };
  CHECK(elements(none(x)) == elements(x));
  CHECK(elements(vv::vjp(none, x).first) == doubles({0.5, 1, 2}));
  CHECK(elements(vv::jvp(none, std::tuple(x), std::tuple(x)).first) == doubles({0.5, 1, 2}));
  CHECK((elements(x) == doubles({0.5, 1, 2}) && x.version() == 0));
  vv::manual_seed(3);
  tensor const next = vv::randn({2});
  vv::manual_seed(3);
  auto const noisy = [](tensor const& r) { return r + vv::randn({}, dtype::float64); };
  CHECK(vv::map(noisy, vv::zeros({0}, dtype::float64)).sizes() == dims{0});
  CHECK(elements(vv::randn({2})) == elements(next));
}

TEST_CASE("forward mode does not pass over a write of a graph's branch into its operand", "[hop][jvp]") {
  tensor const x = vector_of({0.5, 1, 2}), one = vector_of({1, 1, 1});
  auto const check = [&](auto const& f) {
    vv::graph const g = vv::make_fx(f)(x);
    CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == elements(f(x)));
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).second) == doubles({-2, -2, -2}));
    auto const run = [&](tensor const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; };
    CHECK_THROWS_WITH(vv::jvp(run, std::tuple(x), std::tuple(one)), ContainsText("writes into its operand"));
  };
  auto const doubles_it = [](tensor const& a) { return vv::mul_(a, 2.0), a * 1.0; };
  auto const same = [](tensor const& a) { return a * 1.0; };
  check([&](tensor const& v) {
    tensor const w = -v, z = vv::cond(vv::sum(v) > 0, doubles_it, same, w);
    return w + z * 0.0;
  });
  check([&](tensor const& v) {
    tensor const w = -v, z = vv::checkpoint(doubles_it, w);
    return w + z * 0.0;
  });
}

TEST_CASE("a branch that is traced, but not taken, writes into nothing that a level has", "[hop][jvp][grad]") {
  tensor const x = vector_of({-0.5, -1, 2}), one = vector_of({1, 1, 1});
  auto const f = [](tensor const& v) {
    tensor const w = v * 3.0;
    auto const writes = [&](tensor const& a) { return vv::sub_(w, w), a * 1.0; };
    auto const same = [](tensor const& a) { return a * 1.0; };
    (void)vv::cond(vv::select(v, 0, 0) > 0, writes, same, v);
    return w;
  };
  auto const tangent = [&](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(one)).second; };
  CHECK(elements(tangent(x)) == doubles({3, 3, 3}));
  auto const refused = ContainsText("the function of a higher-order operator writes into");
  CHECK_THROWS_WITH(vv::linearize(f, x), refused);
  auto const gradient = [&](tensor const& v) { return vv::grad([&](tensor const& u) { return vv::sum(f(u)); })(v); };
  CHECK_THROWS_WITH(vv::make_fx(gradient)(x), refused); // its graph would be for either branch
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a view whose base was written keeps its tangent when a traced branch asks for it first", "[hop][jvp]") {
  tensor const x = vector_of({-0.5, -1, 2}), one = vector_of({1, 1, 1});
  auto const f = [](tensor const& v) {
    tensor const w = vv::clone(v), all = vv::slice(w, 0, 0, 3);
    vv::mul_(w, 2.0);
    auto const uses = [all](tensor const& a) { return a * 0.5 + vv::sum(all); };
    return vv::cond(vv::select(w, 0, 0) > 0, uses, uses, v);
  };
  CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).second) == doubles({6.5, 6.5, 6.5}));
  CHECK(elements(vv::linearize(f, x).second(one)) == doubles({6.5, 6.5, 6.5}));
}

TEST_CASE("forward mode does not pass over a write of a traced branch into what it captures", "[hop][jvp]") {
  tensor const x = vector_of({0.5, 1}), zero = vv::zeros({}, dtype::int64);
  auto const f = [](tensor const& v, tensor const& which) { // the operand is the captured tensor
    tensor const w = v * 1.0;
    return vv::cond(
        which, [&](tensor const& a) { return vv::clone(a); },
        [&](tensor const& a) { return vv::fill_(w, -1.0), a * 2.0; }, w);
  };
  auto const along = [&](tensor const& v, tensor const& which) {
    return vv::jvp([&](tensor const& u) { return f(u, which); }, std::tuple(v), std::tuple(v)).second;
  };
  CHECK(elements(along(x, zero)) == doubles({0, 0}));
  auto const refused = ContainsText("writes into its operand, or what it captures, whose tangent would not change");
  CHECK_THROWS_WITH(vv::make_fx(along)(x, zero), refused);
  CHECK_THROWS_WITH(vv::compile(along)(x, zero), ContainsText("return the new value instead"));
}

TEST_CASE("the tangent of a view that a function of a function asks for first is that of the program", "[hop][jvp]") {
  using values = std::vector<tensor>;
  tensor const x = vector_of({-1.25, -1}), one = vector_of({1, 0});
  auto const steps = [](tensor const& start, auto const& body) {
    vv::while_loop([](values const& c) { return c[0] < 2; },
                   [&](values const& c) { return body(), values{c[0] + 1, vv::clone(c[1])}; },
                   values{vv::zeros({}, dtype::int64), start});
  };
  auto const f = [&](tensor const& v) {
    tensor const whole = vv::clone(v), view = vv::slice(whole, 0, 0, 2);
    vv::fill_(vv::select(whole, 0, 1), 1.0);
    steps(v, [&] { steps(view, [] {}); });
    return vv::sum(vv::sin(view));
  };
  double const right = std::cos(-1.25);
  CHECK(vv::linearize(f, x).second(one).item<double>() == Approx(right));
  auto const along = [&](tensor const& v, tensor const& t) { return vv::jvp(f, std::tuple(v), std::tuple(t)).second; };
  CHECK(along(x, one).item<double>() == Approx(right));
  CHECK(vv::interpret(vv::make_fx(along)(x, one), vv::boxed_args(x, one))[0].item<double>() == Approx(right));
  CHECK(vv::compile(along)(x, one).item<double>() == Approx(right));
}

TEST_CASE("a write in no_grad mode within a trace is not read as a constant", "[hop][functionalize]") {
  tensor const x = vector_of({1, 2});
  auto const f = [](tensor const& v) {
    tensor const w = v * 2.0;
    vv::no_grad const off;
    vv::fill_(w, 3.0);
    return w;
  };
  auto const total = [](auto const& g) { return [g](tensor const& v) { return vv::sum(vv::map(g, v)); }; };
  CHECK(elements(vv::functionalize(f)(x)) == doubles({3, 3}));
  CHECK(elements(vv::grad(total(f))(x)) == doubles({2, 2})); // the write left the derivative as it was
  CHECK_THROWS_WITH(vv::grad(total(vv::functionalize(f)))(x), ContainsText("no_grad mode"));
}

TEST_CASE("reverse mode does not pass over a write of a graph's function into what it was given", "[hop][grad]") {
  tensor const x = vector_of({0.75, -0.5});
  auto const refused = ContainsText("the function of a higher-order operator writes into its operand, or into what it "
                                    "captures; return the new value instead");
  auto const captured = [](tensor const& v) { // a branch within the body of a loop, which becomes a graph
    tensor const w = v * 2.0;
    auto const same = [](tensor const& a) { return tensor(vv::clone(a)); };
    auto const writes = [w](tensor const& a) { return vv::fill_(w, 7.0), tensor(vv::clone(a)); };
    (void)vv::cond(w > 0, same, writes, v);
    return w;
  };
  CHECK(elements(vv::map(captured, x)) == doubles({1.5, 7}));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::map(captured, v)); })(x), refused);
  auto const operand = [](tensor const& v) {
    tensor const w = v * 2.0;
    auto const same = [](tensor const& a) { return tensor(vv::clone(a)); };
    auto const writes = [](tensor const& a) { return vv::mul_(a, 3.0), tensor(vv::clone(a)); };
    return tensor(vv::cond(vv::sum(v) > 0, writes, same, w) + w);
  };
  auto const gradient = vv::grad([&](tensor const& v) { return vv::sum(operand(v)); });
  CHECK(elements(gradient(x)) == doubles({12, 12}));
  CHECK_THROWS_WITH(vv::make_fx(gradient)(x), refused);
  CHECK_THROWS_WITH(vv::compile(gradient)(x), refused);
  vv::graph const g = vv::make_fx(operand)(x);
  auto const run = [&](tensor const& v) { return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]); };
  CHECK_THROWS_WITH(vv::grad(run)(x), refused);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("what a branch first asks for under no_grad has its gradient where it asks again", "[hop][cond][grad_mode]") {
  tensor const x = vector_of({-0.5, 1, 2});
  auto const f = [](tensor const& v) {
    tensor const w = v * v;
    auto const below = [&](tensor const& a) {
      tensor c;
      {
        vv::no_grad const off;
        c = w * 2.0;
      }
      return w * c + a;
    };
    return vv::cond(v > 0, [](tensor const& a) { return a * 2.0; }, below, v);
  };
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({-0.5 * 2 * 0.5 + 1, 2, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) ==
        doubles({-0.5 * 2 * 0.5 + 1, 2, 2}));
}

TEST_CASE("what a function wrote before its call was refused stays written, and nothing else is", "[hop][error]") { // D
  tensor const x = vector_of({1, 2}), yes = vv::full({}, true);
  auto const refused = [&](auto const& call) {
    tensor const w = vector_of({5, 5});
    vv::generator const before = vv::default_generator;
    CHECK_THROWS_WITH(call([&](auto const&...) -> tensor {
                        vv::add_(w, 1.0);
                        throw std::runtime_error("mine");
                      }),
                      "mine");
    CHECK(elements(w) == doubles({6, 6})); // once, and its version says so
    CHECK(w.version() == 1);
    CHECK(elements(x) == doubles({1, 2}));
    CHECK(x.version() == 0);
    CHECK(vv::default_generator.offset == before.offset);
    CHECK(vv::this_thread_state.quiet());
  };
  auto const same = [](tensor const& u) { return u * 1.0; };
  refused([&](auto const& f) { return vv::cond(yes, f, same, x); });
  refused([&](auto const& f) { return vv::map(f, x); });
  refused([&](auto const& f) {
    return vv::scan([&](tensor const& c, tensor const& r) { return std::pair(c, f(r)); }, x, x).first;
  });
  refused([&](auto const& f) { return vv::while_loop([](tensor const&) { return vv::full({}, true); }, f, x); });
  refused([&](auto const& f) { return vv::checkpoint(f, x); });
  refused([&](auto const& f) { return vv::associative_scan<0, false, vv::combine_mode::generic>(f, x); });
  refused([&](auto const& f) { return vv::vmap(f)(x); });
  // Refused for what a step returns, when it has been made.
  tensor const w = vector_of({5, 5});
  auto const other_shape = [&](tensor const& u) {
    vv::add_(w, 1.0);
    return vv::cat(std::vector<tensor>{u, u}, 0);
  };
  CHECK_THROWS_AS(vv::while_loop([](tensor const& u) { return vv::sum(u) < 9; }, other_shape, x), vv::shape_error);
  CHECK(w.version() == static_cast<std::uint32_t>(vv::select(w, 0, 0).item<double>() - 5));
  // What is checked before the function runs has not run it.
  std::uint32_t const version = w.version();
  CHECK_THROWS_AS(vv::map([&](auto const& u) { return vv::add_(w, 1.0), u.first; }, std::pair(x, vector_of({1, 2, 3}))),
                  vv::error);
  CHECK_THROWS_AS(vv::cond(x, other_shape, other_shape, x), vv::error);
  CHECK_THROWS_AS(vv::scan([&](tensor const& c, tensor const& r) { return vv::add_(w, 1.0), std::pair(c, r); }, x,
                           vv::full({}, 1.0, dtype::float64)),
                  vv::error);
  CHECK(w.version() == version);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("what is detached in place is detached at every level, and in functions that become graphs", "[hop][grad]") {
  tensor const x = vector_of({3, 4});
  auto const f = [](tensor const& a) {
    tensor y = a * a;
    return y.detach_(), y * a;
  };
  auto const total = [](auto const& h) { return [h](tensor const& v) { return vv::sum(h(v)); }; };
  auto const mapped = [&](tensor const& v) { return vv::map(f, v); };
  auto const carried = [&](tensor const& v) {
    auto const step = [&](tensor const& c, tensor const& r) { return std::pair(c, f(r)); };
    return vv::scan(step, vv::zeros({}, dtype::float64), v).second;
  };
  auto const branched = [&](tensor const& v) { return vv::cond(vv::sum(v) > 0.0, f, f, v); };
  std::vector<double> const right{9, 16};
  CHECK(elements(vv::grad(total(f))(x)) == right);
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) == right);
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == right);
  for (std::function<tensor(tensor const&)> const& h :
       {std::function<tensor(tensor const&)>(mapped), std::function<tensor(tensor const&)>(carried),
        std::function<tensor(tensor const&)>(branched)}) {
    CHECK(elements(vv::grad(total(h))(x)) == right);
    CHECK(elements(vv::interpret(vv::make_fx(vv::grad(total(h)))(x), vv::boxed_args(x))[0]) == right);
    CHECK(elements(vv::compile(vv::grad(total(h)))(x)) == right);
    CHECK(elements(vv::jvp(h, std::tuple(x), std::tuple(x)).second) == doubles({27, 64}));
    CHECK(elements(vv::linearize(h, x).second(x)) == doubles({27, 64}));
    tensor const a = vv::clone(x);
    a.requires_grad_();
    vv::sum(h(a)).backward();
    CHECK(elements(a.grad()) == right);
  }
  CHECK(elements(vv::jvp([&](tensor const& v) { return vv::vmap(f)(v); }, std::tuple(x), std::tuple(x)).second) ==
        doubles({27, 64}));
  // A leaf outside of a transform stays one.
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  auto const own = [](tensor v) { return v.detach_(), vv::sum(v); };
  CHECK_THROWS_WITH(vv::grad(own)(leaf), ContainsText("stays a leaf; use detach"));
  CHECK(leaf.requires_grad());
  // An argument would stay attached for who calls the program.
  CHECK_THROWS_WITH(vv::make_fx(own)(x), ContainsText("detaches its argument in place"));
  CHECK_THROWS_WITH(vv::compile(own)(x), ContainsText("detaches its argument in place"));
}

TEST_CASE("hooks of a gradient that is to come are not traced", "[hop][make_fx]") {
  tensor const x = vector_of({1, 2});
  x.requires_grad_();
  auto const hooked = [](tensor const& v) {
    tensor const y = v * v;
    y.register_hook([](tensor const& g) { return g * 10.0; });
    return vv::sin(y);
  };
  CHECK_THROWS_WITH(vv::make_fx(hooked)(x), ContainsText("hooks were registered in a function that is traced"));
  auto const inner = [](tensor const& v) { // the gradient is in the graph
    tensor const a = v.detach();
    a.requires_grad_();
    tensor const y = a * a;
    y.register_hook([](tensor const& g) { return g * 10.0; });
    return vv::autograd::grad({vv::sum(vv::sin(y))}, {a})[0];
  };
  tensor const plain = x.detach();
  CHECK(elements(vv::interpret(vv::make_fx(inner)(plain), vv::boxed_args(plain))[0]) == elements(inner(plain)));
}

TEST_CASE("a condition has no tangent that a product with an infinite value would make none", "[hop][jvp]") {
  tensor const xs = vv::full({1}, HUGE_VAL, dtype::float64), yes = vv::full({}, true);
  auto const tangent = [&](tensor const& u) {
    auto const chosen = [&](tensor const& v) {
      return vv::checkpoint([&](tensor const&, tensor const& c) { return vv::where(c, v, u); }, v, yes);
    };
    return vv::jvp(chosen, std::tuple(u), std::tuple(u * 0.5)).second;
  };
  auto const total = [&](tensor const& a) {
    return vv::sum(vv::map([&](tensor const& u) { return vv::maximum(tangent(u), 0.5); }, a));
  };
  CHECK(elements(vv::grad(total)(xs)) == doubles({0.5}));
  CHECK(elements(vv::jvp([&](tensor const& a) { return vv::where(a > 0.0, a, 1.0); }, std::tuple(xs),
                         std::tuple(vv::ones_like(xs)))
                     .second) == doubles({1}));
}

TEST_CASE("a graph of mapped branches and loops has no derivative of what a lane does not run", "[hop][make_fx]") {
  tensor const x = vector_of({0.5, -1.25, 2}), started = vector_of({1, 7, 30});
  auto const run = [](vv::graph const& g) {
    return [g](tensor const& v) { return tensor(vv::interpret(g, vv::boxed_args(v))[0]); };
  };
  auto const slope = [](auto f, tensor const& at) {
    return vv::grad([f](tensor const& v) { return vv::sum(f(v)); })(at);
  };
  auto const branched = [](tensor const& v) { return vv::vmap(root_or_double)(v); };
  auto const looped = [](tensor const& v) { return vv::vmap(roots)(v); };
  auto const slopes = [&](tensor const& v) { return slope(branched, v); };
  auto const in_lanes = [](tensor const& v) { return vv::vmap(vv::grad(root_or_double))(v); };
  auto const by_hand = [&](auto f, tensor const& at) {
    std::vector<double> r;
    for (int k = 0; k < 3; ++k) r.push_back(slope(f, at[k]).item());
    return tensor(r);
  };
  CHECK(difference(slope(run(vv::make_fx(branched)(x)), x), by_hand(root_or_double, x), 1e-12) == "");
  CHECK(difference(slope(run(vv::make_fx(looped)(started)), started), by_hand(roots, started), 1e-12) == "");
  for (auto const& f : {std::function<tensor(tensor const&)>(slopes), std::function<tensor(tensor const&)>(in_lanes)}) {
    tensor const right = by_hand(vv::grad(root_or_double), x);
    CHECK(difference(slope(f, x), right, 1e-12) == "");
    CHECK(difference(slope(run(vv::make_fx(f)(x)), x), right, 1e-12) == "");
    CHECK(difference(vv::compile([&](tensor const& v) { return slope(f, v); })(x), right, 1e-12) == "");
  }
}

TEST_CASE("a function that is traced for its gradient does not know what needs one", "[hop][loop]") {
  tensor const x = vector_of({0.5, -1.25, 2});
  auto const asks = [](tensor const& r) {
    tensor const u = r * 2.0;
    return u.requires_grad() ? tensor(u * r) : u;
  };
  auto const mapped = [&](tensor const& v) { return vv::sum(vv::map(asks, v)); };
  CHECK(mapped(x).item() == 2.5);
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK(mapped(leaf).item() == 11.625);
  CHECK(vv::compile(mapped)(leaf).item() == 11.625);
  CHECK_THROWS_WITH(vv::grad(mapped)(x), ContainsText("requires_grad: the function of a higher-order operator"));
  auto const hooked = [](tensor const& v) {
    return vv::sum(vv::map(
        [](tensor const& r) {
          tensor const u = r * 2.0;
          u.register_hook([](tensor const& g) { return g * 10.0; });
          return u;
        },
        v));
  };
  CHECK_THROWS_WITH(vv::grad(hooked)(x), ContainsText("requires_grad: the function of a higher-order operator"));
  // Truth values need none; functions that run as they are know it.
  auto const truth = [](tensor const& r) { return (r > 0.0).requires_grad() ? r : tensor(r * r); };
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::map(truth, v)); })(x)) == doubles({1, -2.5, 4}));
  auto const chosen = [&](tensor const& v) { return vv::sum(vv::cond(vv::sum(v) > 0.0, asks, asks, v)); };
  CHECK(elements(vv::grad(chosen)(x)) == doubles({2, -5, 8}));
}

TEST_CASE("writes through detach in a function that is traced for its gradient are refused", "[hop][functionalize]") {
  tensor const x = vector_of({0.5, -1.25, 2});
  auto const writes = [](tensor const& v) {
    tensor const u = v * 2.0;
    vv::mul_(vv::detach(u), 3.0);
    return u * 1.0;
  };
  auto const functional = [&](tensor const& v) { return vv::functionalize(writes)(v); };
  CHECK(elements(vv::map(functional, x)) == doubles({3, -7.5, 12}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::map(writes, v)); })(x)) == doubles({2, 2, 2}));
  auto const mapped = [&](tensor const& v) { return vv::sum(vv::map(functional, v)); };
  auto const scanned = [&](tensor const& v) {
    return vv::scan([&](tensor const& c, tensor const& r) { return std::pair(c + functional(r), vv::none); },
                    vv::sum(v) * 0.0, v)
        .first;
  };
  auto const looped = [&](tensor const& v) {
    return vv::sum(vv::while_loop<3>([](tensor const& c) { return vv::sum(c) < 10.0; }, functional, v));
  };
  auto const reason = ContainsText("is read after it was written in no_grad mode or through detach");
  CHECK_THROWS_WITH(vv::grad(mapped)(x), reason);
  CHECK_THROWS_WITH(vv::grad(scanned)(x), reason);
  CHECK_THROWS_WITH(vv::grad(looped)(x), reason);
  CHECK_THROWS_WITH(vv::compile(vv::grad(mapped))(x), reason);
}
