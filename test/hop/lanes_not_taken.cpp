// SPDX-License-Identifier: BSL-1.0
// Branches and steps that a lane does not take give it no derivative, write nothing, and end.
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
