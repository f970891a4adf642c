// SPDX-License-Identifier: BSL-1.0
#include "../sample/loop.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using vv::array;
constexpr auto body = [](auto const& c, auto const& x, auto const& w) {
  auto const n = vv::tanh(c * w + x);
  return std::pair{n, vv::sum(n * n)};
};
/// A small recurrent cell over rows of 2: a number of what it carries, what it puts out, and a parameter it captures.
constexpr auto cell = [](auto init, auto xs, auto w) {
  auto [c, y] = vv::scan(vv::closure(body, w), init, xs);
  return vv::sum(c) + vv::sum(y * y);
};
constexpr array<double, 2> init{0.1, -0.2};
constexpr array<double, 4, 2> rows{0.5, -1, 0.25, 2, -0.75, 0.3, 1.1, -0.4};
constexpr array<double, 2> weight{0.7, -1.3};
constexpr auto by_hand = [](auto c, auto const& xs, auto const& w) {
  double s = 0;
  for (int k = 0; k < 4; ++k) {
    double y = 0;
    for (int i = 0; i < 2; ++i) {
      c[i] = std::tanh(c[i] * w[i] + xs(k, i));
      y += c[i] * c[i];
    }
    s += y * y;
  }
  return s + c[0] + c[1];
};
/// The derivative along one element of one argument.
template <class G>
void check_gradient(G const& gradients) {
  double const h = 1e-6;
  auto const [gc, gx, gw] = gradients;
  for (int k = 0; k < 2; ++k) {
    auto up = init, down = init;
    up[k] += h, down[k] -= h;
    CHECK(gc[k] == Approx((by_hand(up, rows, weight) - by_hand(down, rows, weight)) / (2 * h)));
    auto wu = weight, wd = weight;
    wu[k] += h, wd[k] -= h;
    CHECK(gw[k] == Approx((by_hand(init, rows, wu) - by_hand(init, rows, wd)) / (2 * h)));
  }
  for (int k = 0; k < 8; ++k) {
    auto up = rows, down = rows;
    up.data[k] += h, down.data[k] -= h;
    CHECK(gx.data[k] == Approx((by_hand(init, up, weight) - by_hand(init, down, weight)) / (2 * h)));
  }
}
/// Three numbers that change places.
constexpr auto shifted = [](auto a, auto b, auto c, auto xs) {
  return vv::scan(
      [](auto const& u, auto x) {
        auto [p, q, r] = u;
        return std::pair{std::tuple{q, r, p}, p + x};
      },
      std::tuple{a, b, c}, xs);
};
/// 4,000 steps of a logistic map that hardly moves.
template <vv::index_t Segment>
constexpr auto orbit = [](auto x) {
  return vv::scan<0, Segment>([](auto c) { return std::pair{c + 1e-4 * c * (1.0 - c), vv::none}; }, x, vv::steps<4000>)
      .first;
};
} // namespace

TEST_CASE("scan: fused, a loop and its gradient", "[hop][scan][fuse]") {
  CHECK(vv::fuse(cell)(init, rows, weight) == Approx(by_hand(init, rows, weight)));
  check_gradient(vv::fuse(vv::grad<0, 1, 2>(cell))(init, rows, weight));
  check_gradient(vv::grad<0, 1, 2>(cell)(init, rows, weight));
  // an odd number of steps ends in the other of the two places
  auto const [p, q, r, y] = vv::fuse([](auto a, auto b, auto c, auto xs) {
    auto [u, y] = shifted(a, b, c, xs);
    return std::tuple_cat(u, std::tuple(y));
  })(1.0, 2.0, 3.0, array<double, 5>{10, 20, 30, 40, 50});
  CHECK((p == 3 && q == 1 && r == 2));
  CHECK(vv::equal(y, array<double, 5>{11, 22, 33, 41, 52}));
}

TEST_CASE("scan: on tensors in every interpreter, as on static values", "[hop][scan]") {
  tensor const c = boxed(init), x = boxed(rows), w = boxed(weight);
  CHECK(cell(c, x, w).item<double>() == Approx(by_hand(init, rows, weight)));
  auto const g = vv::grad<0, 1, 2>(cell)(c, x, w);
  check_gradient(
      std::tuple{unboxed(std::get<0>(g), init), unboxed(std::get<1>(g), rows), unboxed(std::get<2>(g), weight)});
  // forward mode against reverse mode, second derivatives both ways, through the captured value as well
  auto const along =
      vv::jvp(cell, std::tuple(c, x, w), std::tuple(vv::ones_like(c), vv::ones_like(x), vv::ones_like(w))).second;
  CHECK(along.item<double>() ==
        Approx((vv::sum(std::get<0>(g)) + vv::sum(std::get<1>(g)) + vv::sum(std::get<2>(g))).item<double>()));
  auto const of_w = [&](auto const& v) { return cell(c, x, v); };
  CHECK(agree(vv::jacfwd(vv::grad(of_w))(w), vv::jacrev(vv::grad(of_w))(w)));
  CHECK(agree(vv::jacfwd(vv::grad(of_w))(w), vv::jacrev([&](auto const& v) { return vv::jacfwd(of_w)(v); })(w)));
  // mapped: each of the operands, all at once, and per-example gradients
  tensor const c2 = vv::stack(std::vector{c, c * 2.0}, 0), x2 = vv::stack(std::vector{x, x + 1.0}, 0),
               w2 = vv::stack(std::vector{w, w - 0.5}, 0);
  auto const both = vv::vmap(cell)(c2, x2, w2);
  for (int k = 0; k < 2; ++k)
    CHECK(at(both, k).item<double>() == Approx(cell(at(c2, k), at(x2, k), at(w2, k)).item<double>()));
  auto const only_x = vv::vmap(vv::grad<2>(cell), vv::in_dims<vv::none, 0, vv::none>)(c, x2, w);
  auto const only_w = vv::vmap(vv::grad<2>(cell), vv::in_dims<vv::none, vv::none, 0>)(c, x, w2);
  for (int k = 0; k < 2; ++k) {
    CHECK(agree(at(only_x, k), vv::grad<2>(cell)(c, at(x2, k), w)));
    CHECK(agree(at(only_w, k), vv::grad<2>(cell)(c, x, at(w2, k))));
  }
  // eager
  tensor const leaf = boxed(weight);
  leaf.requires_grad_();
  cell(c, x, leaf).backward();
  CHECK(agree(leaf.grad(), std::get<2>(g)));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("scan: what a step captures is differentiated, mapped and lifted", "[hop][scan]") {
  tensor const x = boxed(rows);
  auto const captured = [&](auto const& w) {
    return vv::sum(
        vv::scan([&](auto const& c, auto const& row) { return std::pair{c * w + row, vv::none}; }, vv::zeros_like(w), x)
            .first);
  };
  auto const declared = [&](auto const& w) {
    return vv::sum(
        vv::scan(vv::closure(
                     [](auto const& c, auto const& row, auto const& v) { return std::pair{c * v + row, vv::none}; }, w),
                 vv::zeros_like(w), x)
            .first);
  };
  tensor const w = boxed(weight);
  CHECK(agree(vv::grad(captured)(w), vv::grad(declared)(w)));
  CHECK(agree(vv::hessian(captured)(w), vv::hessian(declared)(w)));
  CHECK(agree(at(vv::vmap(captured)(vv::stack(std::vector{w, w}, 0)), 1), declared(w)));
}

TEST_CASE("scan: a run-time trace holds the step, nested in another, and runs", "[hop][scan][graph]") {
  tensor const c = boxed(init), x = boxed(rows), w = boxed(weight);
  auto const nested = [](auto const& c, auto const& x, auto const& w) {
    return vv::scan(
        [&](auto const& outer, auto const& row) {
          return std::pair{
              vv::scan([&](auto const& inner, auto const& e) { return std::pair{inner * w + e, vv::none}; }, outer, row)
                  .first,
              vv::sum(outer)};
        },
        c, x);
  };
  auto const flat = [&](auto const& c, auto const& x, auto const& w) {
    auto const [last, y] = nested(c, x, w);
    return vv::sum(last) + vv::sum(y);
  };
  vv::boxed_args const other(c + 1.0, x * 2.0, w - 0.25);
  auto const g = vv::make_fx(flat)(c, x, w), dg = vv::make_fx(vv::grad<2>(flat))(c, x, w);
  CHECK(vv::verify(g));
  CHECK(vv::verify(dg));
  CHECK(g.regions.size() == 3);
  CHECK(agree(vv::interpret(g, other)[0], flat(other[0], other[1], other[2])));
  CHECK(agree(vv::interpret(dg, other)[0], vv::grad<2>(flat)(other[0], other[1], other[2])));
}

TEST_CASE("scan: plain numbers in a step stay such when its gradient is traced", "[hop][scan][graph]") {
  tensor const s = vv::full({}, 1.5, vv::dtype::float32), x = vv::full({3}, 2.0, vv::dtype::float32);
  auto const f = [](auto const& c, auto const& xs) {
    return vv::scan([](auto const& v, auto const& row) { return std::pair{v * 2.0 + row, v * 0.5}; }, c, xs).first;
  };
  tensor const traced = vv::interpret(vv::make_fx(vv::grad(f))(s, x), vv::boxed_args(s, x))[0],
               compiled = vv::compile(vv::grad(f))(s, x);
  CHECK(traced.dtype() == vv::dtype::float32);
  CHECK(traced.item<float>() == 8);
  CHECK(compiled.item<float>() == 8);
  auto const thrice = [](auto const& v) { return v * 3.0 + 1; };
  auto const g = vv::make_fx(thrice)(s);
  CHECK(vv::equal(vv::make_fx([&](auto const& v) { return vv::interpret(g, vv::boxed_args(v))[0]; })(s), g));
}

TEST_CASE("scan: trees of run-time structure, the other way, another dimension, a count", "[hop][scan]") {
  tensor const x = boxed(rows);
  auto const [last, y] =
      vv::scan([](std::vector<tensor> const& c,
                  tensor const& row) { return std::pair{std::vector<tensor>{c[1], c[0] + row}, std::pair{row, c[0]}}; },
               std::vector<tensor>{vv::zeros_like(at(x, 0)), vv::zeros_like(at(x, 0))}, x, true);
  CHECK(last.size() == 2);
  CHECK(agree(y.first, x));
  CHECK(agree(last[1], at(x, 0) + at(x, 2)));
  auto const by_columns = vv::scan<1>([](tensor const& c, tensor const& v) { return std::pair{c + v, vv::none}; },
                                      vv::zeros_like(vv::sum(x, 1)), x)
                              .first;
  CHECK(agree(by_columns, vv::sum(x, 1)));
  CHECK(vv::scan([](tensor const& c) { return std::pair{c * 2.0, vv::none}; }, vv::full({}, 1.0), vv::step_count(10))
            .first.item<float>() == 1024);
  // a value that is carried unchanged is no alias of what it began as
  tensor const start = vv::ones({2});
  tensor const same = vv::scan([](tensor const& c, tensor const&) { return std::pair{c, vv::none}; }, start, x).first;
  CHECK_FALSE(same.shares_storage(start));
  // nor are two results one value, or views of one another
  auto const twice = vv::scan(
                         [](std::vector<tensor> const& c, tensor const& row) {
                           tensor const n = c[0] + row;
                           return std::pair{std::vector<tensor>{n, n, vv::reshape(n, vv::dims{2})}, vv::none};
                         },
                         std::vector<tensor>{vv::zeros_like(at(x, 0)), at(x, 0), at(x, 1)}, x)
                         .first;
  vv::add_(twice[0], 1.0);
  CHECK(agree(twice[1], twice[0] - 1.0));
  CHECK(agree(twice[2], twice[1]));
  auto const looped = vv::while_loop([](tensor const& a, tensor const&) { return vv::sum(a) < 9.0; },
                                     [](tensor const& a, tensor const&) {
                                       tensor const n = a + 1.0;
                                       return std::tuple{n, n};
                                     },
                                     std::tuple{start, start});
  CHECK_FALSE(std::get<0>(looped).shares_storage(std::get<1>(looped)));
}

TEST_CASE("scan: what is wrong is said, and leaves every stack as it was", "[hop][scan][exception]") {
  tensor const x = boxed(rows), c = boxed(init);
  auto const step = [](auto f) {
    return [=](tensor const& c, tensor const& v) { return std::pair{tensor(f(c, v)), vv::none}; };
  };
  CHECK_THROWS_AS(vv::scan(step([](auto const& c, auto const&) { return vv::sum(c); }), c, x), vv::shape_error);
  CHECK_THROWS_AS(vv::scan(step([](auto const& c, auto const&) { return vv::to(c, vv::dtype::float32); }), c, x),
                  vv::dtype_error);
  CHECK_THROWS_AS(vv::scan(step([](auto const& c, auto const&) { return c; }), c, vv::full({}, 1.0)), vv::value_error);
  CHECK(vv::scan(step([](auto const& c, auto const&) { return c; }), c, vv::zeros({0, 2})).first.sizes() == c.sizes());
  CHECK_THROWS_AS(vv::scan([](tensor const& c, std::pair<tensor, tensor> const&) { return std::pair{c, vv::none}; }, c,
                           std::pair{x, vv::zeros({3, 2})}),
                  vv::shape_error);
  auto const writes = [](tensor const& c, tensor const& v) {
    vv::add_(c, v);
    return std::pair{c + v, vv::none};
  };
  CHECK_THROWS_WITH(vv::scan(writes, vv::clone(c), x), ContainsText("writes into one of its operands"));
  auto const throws = step([](auto const& c, auto const& v) {
    if (c.dim() == 1) throw std::runtime_error("stop");
    return c + v;
  });
  CHECK_THROWS_AS(vv::vmap(vv::grad([&](auto const& a) { return vv::sum(vv::scan(throws, a, x).first); }))(
                      vv::stack(std::vector{c, c}, 0)),
                  std::runtime_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("scan: a long one in segments has the same gradient, in a small part of the memory", "[hop][scan][fuse]") {
  constexpr auto kept = vv::fuse(vv::grad(orbit<0>));
  constexpr auto again = vv::fuse(vv::grad(orbit<vv::sqrt_segments>));
  CHECK(kept(0.3) == Approx(again(0.3)));
  CHECK(kept.workspace_bytes<double> >= 4000 * 8);
  CHECK(again.workspace_bytes<double> <= 4 * 64 * 8);
  tensor const x = boxed(rows), w = boxed(weight);
  auto const by_segments = [&](auto segment) {
    return [&x](tensor const& v) {
      return vv::sum(vv::scan<0, decltype(segment)::value>(
                         [&](tensor const& c, tensor const& row) { return std::pair{vv::tanh(c * v + row), vv::none}; },
                         vv::zeros_like(v), x)
                         .first);
    };
  };
  using vv::index_t;
  tensor const g = vv::grad(by_segments(std::integral_constant<index_t, 0>{}))(w);
  CHECK(agree(vv::grad(by_segments(std::integral_constant<index_t, 3>{}))(w), g));
  CHECK(agree(vv::grad(by_segments(std::integral_constant<index_t, -1>{}))(w), g));
}

TEST_CASE("scan: fused under vmap and hessian, with constants among what is carried", "[hop][scan][fuse]") {
  constexpr auto f = [](auto xs) {
    auto [c, y] = vv::scan(
        [](auto c, auto x) {
          auto n = c + x;
          return std::pair{n, n * n};
        },
        0.0, xs);
    return c * vv::sum(y);
  };
  constexpr array<double, 2, 3> m{1, 2, 3, 2, 3, 4};
  CHECK(vv::equal(vv::fuse(vv::vmap(vv::grad(f)))(m), array<double, 2, 3>{166, 154, 118, 398, 362, 272}));
  CHECK(vv::equal(vv::fuse(vv::hessian(f))(array<double, 3>{1, 2, 3}),
                  array<double, 3, 3>{76, 62, 44, 62, 60, 42, 44, 42, 36}));
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

TEST_CASE("scan: what its step captures in a tree are further inputs", "[hop][scan][graph][LP-S12]") {
  auto const f = [](tensor const& init, tensor const& xs, tensor const& param, tensor const& bias) {
    std::pair<tensor, std::tuple<tensor>> const captured{param, {bias}};
    return vv::scan(
        [&](tensor const& c, tensor const& x) {
          tensor const y = vv::matmul(vv::matmul(c, captured.first), x) + std::get<0>(captured.second);
          return std::pair(y, y);
        },
        init, xs);
  };
  tensor const init = counted({2, 2}) / 9.0, xs = counted({3, 2, 2}) / 5.0, param = init + 0.3, bias = counted({2});
  tensor c = init;
  std::vector<tensor> rows;
  for (int k = 0; k < 3; ++k) rows.push_back(c = vv::matmul(vv::matmul(c, param), at(xs, k)) + bias);
  auto const [last, all] = f(init, xs, param, bias);
  CHECK(same(last, c));
  CHECK(same(all, vv::stack(rows, 0)));
  auto const g = vv::make_fx(f)(init, xs, param, bias);
  REQUIRE(g.regions.size() == 2);
  CHECK(g.regions[1].inputs == 4);
  CHECK(same(vv::interpret(g, vv::boxed_args(init, xs, param, bias))[1], all));
}

TEST_CASE("scan: along another dimension and backwards, results have the step in front", "[hop][scan][LP-S13]") {
  tensor const xs = counted({2, 3});
  auto const [last, ys] =
      vv::scan<1>([](tensor const& c, tensor const& x) { return std::pair(tensor(c + x), tensor(c + x)); },
                  vv::zeros({2}, dtype::float64), xs, true);
  CHECK(elements(last) == std::vector<double>{3, 12});
  CHECK(ys.sizes() == dims{3, 2});
  CHECK(elements(ys) == std::vector<double>{3, 12, 3, 9, 2, 5});
}

TEST_CASE("scan: what its step returns twice are two results", "[hop][scan][functionalize][MA-S04]") {
  tensor const x = counted({3, 2});
  auto const f = [](tensor const& v) {
    auto const [last, rows] = vv::scan([](tensor const&, tensor const& r) { return std::pair(r, r); }, at(v, 0), v);
    vv::add_(last, 10.0);
    return tensor(rows * 1.0);
  };
  CHECK(same(f(x), x));
  CHECK(same(vv::functionalize(f)(x), x));
  CHECK(same(vv::compile(f)(x), x));
  CHECK(same(x, counted({3, 2})));
}
