// SPDX-License-Identifier: BSL-1.0
#include "../sample/loop.hpp"

#include <varve/hop/flex_attention.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using vv::dims;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int B = 2, Hq = 4, H = 2, L = 70, S = 150, E = 5, V = 19; // two tiles by two, and none of them whole

struct operands {
  tensor q, k, v;
  explicit operands(dtype t = dtype::float64, index_t key_batch = B) {
    vv::manual_seed(3);
    q = vv::to(vv::randn(dims{B, Hq, L, E}, dtype::float64), t),
    k = vv::to(vv::randn(dims{key_batch, H, S, E}, dtype::float64), t),
    v = vv::to(vv::randn(dims{key_batch, H, S, V}, dtype::float64), t);
  }
  void require_grad() const {
    for (tensor const* x : {&q, &k, &v}) x->requires_grad_();
  }
};
using pair = std::pair<tensor, tensor>;
template <class F, class M>
pair formula(operands const& o, F const& f, M const& m) {
  auto const p = vv::detail::attention_formula::parts(o.q, o.k, o.v, f, m, vv::none, true);
  return {std::get<0>(p), vv::detail::attention_formula::lse(p)};
}
template <class F, class M>
pair by_call(operands const& o, F const& f, M const& m) {
  return vv::flex_attention(o.q, o.k, o.v, f, m, vv::none, true, vv::return_lse);
}
/// The greatest difference; of infinities that are the same there is none, of a NaN to a number it is infinite.
double apart(tensor const& a, tensor const& b) {
  REQUIRE(a.sizes() == b.sizes());
  std::vector<double> const x = elements(a.detach()), y = elements(b.detach());
  double most = 0;
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!(x[k] == y[k]) && !(x[k] != x[k] && y[k] != y[k]))
      most = std::fmax(most, x[k] - y[k] == x[k] - y[k] ? std::fabs(x[k] - y[k]) : infinity);
  return most;
}
/// Which of the two computed it: the gradients tell.
bool is_by_tiles(pair const& y) { return std::string(y.first.grad_fn().name()) == "FlexAttentionBackward"; }

/// Results, and gradients for cotangents of both, are those of the formula.
template <class F, class M>
void check(F const& f, M const& m, dtype t = dtype::float64, index_t key_batch = B) {
  double const tolerance = t == dtype::float64 ? 1e-12 : 1e-5;
  operands const x(t, key_batch), y(t, key_batch);
  x.require_grad(), y.require_grad();
  pair const is = by_call(x, f, m), should = formula(y, f, m);
  CHECK(is_by_tiles(is));
  CHECK(apart(is.first, should.first) < tolerance);
  CHECK(apart(is.second, should.second) < tolerance);
  tensor const g = vv::sin(should.first.detach() * 3.0 + 1.0);
  auto const loss = [&](pair const& p) {
    return vv::sum(p.first * g) + vv::sum(vv::sin(vv::where(vv::gt(p.second, -1e30), p.second, 0.0)));
  };
  loss(is).backward(), loss(should).backward();
  CHECK(apart(x.q.grad(), y.q.grad()) < 10 * tolerance);
  CHECK(apart(x.k.grad(), y.k.grad()) < 100 * tolerance);
  CHECK(apart(x.v.grad(), y.v.grad()) < 100 * tolerance);
  CHECK(apart(x.q.grad(), x.q.grad() * 0.0) > 1e-3);
}
constexpr auto causal = [](auto const&, auto const&, auto const& i, auto const& j) { return i >= j; };
template <class M>
auto masked(M const& m) {
  return vv::create_block_mask(m, vv::none, vv::none, L, S);
}
} // namespace

TEST_CASE("attention by tiles: results and gradients are those of the formula", "[hop][flex_attention]") {
  check(vv::none, vv::none);
  check(vv::none, vv::none, dtype::float32);
  check(vv::none, vv::none, dtype::float64, 1);
  check(vv::none, masked(causal));
  check([](auto const& s, auto...) { return vv::tanh(s) * 3.0; }, vv::none);
  check([](auto const& s, auto b, auto h, auto i, auto j) { return s * (1.0 + 0.1 * h) + 0.01 * (i - j) - 0.1 * b; },
        masked(causal));
  check(
      [](auto const& s, auto b, auto h, auto i, auto j) { return s * (1.0f + 0.1f * h) + 0.01f * (i - j) - 0.1f * b; },
      masked(causal), dtype::float32);
}

TEST_CASE("attention by tiles: what is captured, masks of heads, and rows of nothing", "[hop][flex_attention]") {
  vv::manual_seed(7);
  tensor const bias = vv::randn(dims{L, S}, dtype::float64), slopes = vv::randn(dims{Hq}, dtype::float64);
  auto const biased = [&](auto const& s, auto, auto h, auto i, auto j) {
    return s + vv::index(bias, i, j) * vv::index(slopes, h);
  };
  check(biased, vv::none);
  check(vv::closure([](auto const& s, auto, auto h, auto, auto, auto const& t) { return s * vv::index(t, h); }, slopes),
        vv::none);
  auto const of_heads = [](auto b, auto h, auto i, auto j) { return vv::where(i > 20, j <= i * h - 10 * b, false); };
  check(biased, masked(of_heads)); // h = 0: nothing at all
  auto const window = [](auto, auto, auto i, auto j) { return vv::where(i > 50, j > 140, false); };
  check(biased, masked(window));
  tensor const document = vv::to(vv::arange(S) > 60, dtype::int64);
  check(vv::none, masked(vv::closure([](auto, auto, auto i, auto j,
                                        auto const& d) { return vv::eq(vv::index(d, i), vv::index(d, j)); },
                                     document)));
}

TEST_CASE("attention by tiles: infinite scores and NaN", "[hop][flex_attention]") {
  operands const o;
  for (double odd : {infinity, -infinity, std::nan("")}) {
    auto const f = [&](auto const& s, auto, auto, auto i, auto j) {
      return vv::where(vv::eq(i, 60), vv::where(vv::eq(j, 140), odd, s), s);
    };
    pair const is = by_call(o, f, vv::none), should = formula(o, f, vv::none);
    CHECK(apart(is.first, should.first) < 1e-12);
    CHECK(apart(is.second, should.second) < 1e-12);
  }
  auto const none_left = [&](auto const& s, auto...) { return s - infinity; };
  CHECK(apart(by_call(o, none_left, vv::none).first, vv::zeros(dims{B, Hq, L, V}, dtype::float64)) == 0);
  CHECK(apart(by_call(o, none_left, vv::none).second, vv::full(dims{B, Hq, L}, -infinity)) == 0);
}

TEST_CASE("attention by tiles: second derivatives are those of the formula", "[hop][flex_attention][autograd]") {
  vv::manual_seed(7);
  auto const bias = std::make_unique<tensor>(vv::randn(dims{L, S}, dtype::float64));
  auto const twice = [&](auto const& attend) {
    operands const o;
    o.require_grad();
    tensor const y = [&] {
      tensor const mine = *bias * 1.0; // which the gradient outlives
      auto const f = [&](auto const& s, auto, auto, auto i, auto j) { return vv::tanh(s) * vv::index(mine, i, j); };
      pair const p = attend(o, f, masked(causal));
      tensor const r = vv::sum(vv::sin(p.first)) + vv::sum(p.second);
      vv::mul_(mine, 0.0); // ... with what it was
      return r;
    }();
    std::vector<tensor> const g = vv::autograd::grad({y}, {o.q, o.k, o.v}, {}, {.create_graph = true});
    (vv::sum(vv::square(g[0])) + vv::sum(g[1] * g[2].sizes()[3] * 0.1) + vv::sum(vv::square(g[2]))).backward();
    return std::vector{g[0].detach(), g[1].detach(), g[2].detach(), o.q.grad(), o.k.grad(), o.v.grad()};
  };
  auto const is = twice([](auto const& o, auto const& f, auto const& m) { return by_call(o, f, m); });
  auto const should = twice([](auto const& o, auto const& f, auto const& m) { return formula(o, f, m); });
  for (std::size_t k = 0; k < is.size(); ++k) {
    CHECK(apart(is[k], should[k]) < 1e-9);
    CHECK(apart(is[k], is[k] * 0.0) > 1e-3);
  }
}

TEST_CASE("attention by tiles: what is left to the formula, and what is refused", "[hop][flex_attention]") {
  operands const o;
  o.require_grad();
  tensor const slopes = from({0.5, 0.25, 0.1, 0.7}, {Hq});
  slopes.requires_grad_();
  auto const sloped = [&](auto const& s, auto, auto h, auto i, auto j) { return s + vv::index(slopes, h) * (j - i); };
  CHECK_FALSE(is_by_tiles(by_call(o, sloped, vv::none))); // the captured tensor wants a gradient
  {
    vv::no_grad const off;
    CHECK(apart(by_call(o, sloped, vv::none).first, formula(o, sloped, vv::none).first) < 1e-12);
  }
  auto const beyond = [&](auto const& s, auto, auto, auto i, auto) { return s + vv::index(slopes, i); };
  CHECK_THROWS_AS(by_call(o, beyond, vv::none), vv::error);
  auto const beyond_later = [t = vv::randn(dims{60}, dtype::float64)](auto const& s, auto, auto, auto i, auto) {
    return s + vv::index(t, i);
  };
  CHECK_THROWS_AS(formula(o, beyond_later, vv::none), vv::error);
  CHECK_THROWS_AS(by_call(o, beyond_later, vv::none), vv::error); // in the second tile of rows
  auto const writes = [](auto s, auto...) { return vv::add_(s, 1.0); };
  CHECK_THROWS_WITH(by_call(o, writes, vv::none), ContainsText("score_mod writes into its score"));

  pair const y = by_call(o, vv::none, vv::none);
  CHECK(is_by_tiles(y));
  {
    vv::no_grad const off;
    vv::add_(o.k, 1.0);
  }
  CHECK_THROWS_WITH(vv::sum(y.first).backward(), ContainsText("modified by an in-place operator"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("attention by tiles: a function means what it means when it is called", "[hop][flex_attention]") {
  operands const o;
  double by = 1;
  tensor const bias = vv::zeros(dims{S}, dtype::float64);
  auto const f = [&](auto const& s, auto, auto, auto, auto j) { return s * by + vv::index(bias, j); };
  tensor const before = by_call(o, f, vv::none).first;
  by = 2, vv::add_(bias, vv::arange(S) * 0.1);
  tensor const after = by_call(o, f, vv::none).first;
  CHECK(apart(after, formula(o, f, vv::none).first) < 1e-12);
  CHECK(apart(after, before) > 1e-2);
}
