// SPDX-License-Identifier: BSL-1.0
// What `fast_math` makes of a graph, in the compiler.
#include <varve/fuse/fast_math.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

template <class F, class... S>
constexpr auto relaxed(F, S...) {
  return vv::freeze([] {
    vv::graph const traced = vv::trace_graph(F{}, S::info()...), better = vv::prepare(traced);
    return vv::relax(better);
  });
}
constexpr auto v = vv::spec<double, 8>;
constexpr auto scalar = vv::spec<double>;
template <class F, class... S>
constexpr int operations(F f, S... s) {
  return relaxed(f, s...).operations();
}

// Residues: inverses, powers and numbers.
template <std::uint64_t M>
constexpr bool residues_are_a_field() {
  namespace r = vv::residue;
  std::uint64_t x = 5;
  bool all = r::inverse<M>(0) == 0 && r::inverse<M>(1) == 1 && r::inverse<M>(M - 1) == M - 1 && r::power<M>(0, 0) == 1;
  for (int k = 0; k < 50; ++k, x = r::mixed(x, 7))
    all = all && r::times<M>(x % M, r::inverse<M>(x % M)) == 1 && r::power<M>(x % M, M - 2) == r::inverse<M>(x % M);
  for (double n : {1.0, -1.0, 0.375, 1e9, -3.0, 7.450580596923828125e-09})
    all = all && r::times<M>(r::of<M>(n), r::of<M>(8)) == r::of<M>(8 * n) && r::plus<M>(r::of<M>(n), r::of<M>(-n)) == 0;
  return all;
}
static_assert(residues_are_a_field<vv::residue::p>() && residues_are_a_field<vv::residue::q>());

// Sums and products as in algebra.
static_assert(operations([](auto x, auto y) { return (x + y) - y; }, v, v) == 0);
static_assert(operations([](auto x, auto y) { return x * y / y; }, v, v) == 0);
static_assert(operations([](auto x) { return x * 0.0 + x; }, v) == 0);
static_assert(operations([](auto x) { return (x * 2.0) * 3.0; }, v) == 1);
static_assert(operations([](auto x) { return x + x + x; }, v) == 1);
static_assert(operations([](auto x) { return x / 3.0; }, v) == 1 &&
              relaxed([](auto x) { return x / 3.0; }, v).count(vv::div) == 0);
static_assert(operations([](auto x, auto y) { return (x + y) * (x - y) - x * x + y * y; }, v, v) ==
              1); // zeros, expanded
static_assert(operations([](auto x, auto y) { return std::tuple((x + y) * (x + y), x * x + 2.0 * x * y + y * y); }, v,
                         v) <= 6); // one of them
static_assert(relaxed([](auto x, auto y, auto z) { return std::tuple(x / z, y / z); }, v, v, v).count(vv::div) == 1);
static_assert(relaxed([](auto x, auto s) { return x / s; }, v, scalar).nodes[0].out.sizes.n == 1);
static_assert(relaxed([](auto x) { return vv::sum(2.0 * x); }, v).nodes[1].op ==
              &vv::handle<vv::sum_t>); // the number comes after the sum
// Exponentials, logarithms and roots.
static_assert(operations([](auto x) { return vv::exp(vv::log(x)); }, v) == 0);
static_assert(relaxed([](auto x, auto y) { return vv::exp(x + y) - vv::exp(x) * vv::exp(y); }, v, v).count(vv::exp) ==
              0);
static_assert(operations([](auto x) { return vv::sqrt(x) * vv::sqrt(x); }, v) == 0);
static_assert(relaxed([](auto x) { return vv::sqrt(x * x); }, v).count(vv::sqrt) == 1); // |x|
static_assert(relaxed([](auto x) { return vv::log(x * x) - vv::log(x); }, v).count(vv::log) == 2);
static_assert(relaxed([](auto x, auto y) { return vv::exp(vv::log(x / y) - vv::log(x)); }, v, v).count(vv::exp) == 0);
// Roots by logarithms are those of positive numbers: of x * x the root is |x|.
static_assert(relaxed([](auto x) { return vv::exp(0.5 * vv::log(x * x)); }, v).count(vv::exp) == 1);
static_assert(
    relaxed([](auto x, auto y) { return vv::exp(0.5 * (vv::log(x / y) + vv::log(x * y))); }, v, v).count(vv::exp) == 1);
static_assert(relaxed([](auto x) { return vv::exp(0.5 * vv::log(x * x)) + vv::log(x); }, v).count(vv::log) == 2);
// e is no number that a program writes down.
static_assert(
    relaxed([](auto x, auto y) { return vv::exp(x + 1.0) + y - (4.0 * vv::exp(x) + y); }, v, v).count(vv::exp) > 0);
static_assert(
    relaxed([](auto x, auto y) { return vv::exp(x + 0.5) + y - (y - 2.0 * vv::exp(x)); }, v, v).count(vv::exp) > 0);
static_assert(relaxed([](auto x, auto y) { return vv::exp(x - x + 2.0) + y - (y + 16.0); }, v, v).count(vv::exp) > 0);
// What agrees in part only is left alone.
static_assert(relaxed([](auto x) { return vv::abs(x) - x; }, v).count(vv::abs) == 1);
static_assert(relaxed([](auto x, auto y) { return vv::maximum(x, y) - x; }, v, v).count(vv::maximum) == 1);
static_assert(relaxed([](auto x, auto y) { return vv::where(x > y, x, y) - vv::where(y > x, x, y); }, v, v)
                  .count(vv::where) == 2);
static_assert(
    relaxed([](auto x) { return vv::sum(x, vv::axis<0>) - vv::sum(vv::reshape(x, vv::shape<2, 4>), vv::axis<0>); }, v)
        .count(vv::sum) == 2);
static_assert(relaxed([](auto x) { return vv::exp(x * 1.0000001) - vv::exp(x); }, v).count(vv::exp) == 2);

// The derivative of erf(y) is written with e^-(y y), which the kernel of erf has computed, and not with a multiple of
// what y is a multiple of.
constexpr auto bells = relaxed([](auto x) { return vv::erf(0.7 * x) + vv::exp(-0.49 * x * x) * x; }, v);
template <class G>
constexpr bool shares_the_exponential(G const& g) {
  int of_erf = -1, of_exp = -1;
  for (vv::node const& n : g) {
    if (n.op == &vv::handle<vv::erf_t>) of_erf = g.view().operand(n, 0);
    if (n.op == &vv::handle<vv::exp_t>) of_exp = g.view().operand(n, 0);
  }
  if (of_erf < 0 || of_exp < 0 || g.nodes[of_exp].op != &vv::handle<vv::neg_t>) return false;
  vv::node const& square = g.nodes[g.view().operand(g.nodes[of_exp], 0)];
  return square.op == &vv::handle<vv::mul_t> && g.view().operand(square, 0) == of_erf &&
         g.view().operand(square, 1) == of_erf;
}
static_assert(bells.count(vv::exp) == 1 && shares_the_exponential(bells));
static_assert(!shares_the_exponential(relaxed([](auto x) { return vv::erf(0.7 * x) + vv::exp(-0.5 * x * x) * x; }, v)));
static_assert(!shares_the_exponential(relaxed([](auto x) { return vv::erf(0.7 * x) + vv::exp(0.49 * x * x) * x; }, v)));
static_assert(!shares_the_exponential(relaxed([](auto u) { return vv::erf(vv::sqrt(u)) + vv::exp(-u); },
                                              v))); // -u is exact, the square of a root is not
static_assert(!shares_the_exponential(
    relaxed([](auto u, auto w) { return vv::erf(vv::sqrt(u * w)) + vv::exp(-(u * w)); }, v, v)));
static_assert(shares_the_exponential(relaxed(vv::vmap(vv::value_and_grad([](auto u) { return vv::erf(0.7 * u); })),
                                             v)));

// The price of an option and its derivatives: what reverse mode computes in two ways cancels (spot * density(d1) is
// strike * e^(-rate time) * density(d2)), and the formulas of the textbook are left.
constexpr auto normal = [](auto const& x) { return 0.5 * (1.0 + vv::erf(0.70710678118654752440 * x)); };
constexpr auto price = [](auto spot, auto strike, auto time, auto rate, auto volatility) {
  auto const spread = volatility * vv::sqrt(time);
  auto const d1 = (vv::log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread;
  return spot * normal(d1) - strike * vv::exp(-rate * time) * normal(d1 - spread);
};
constexpr auto greeks = [](auto s, auto k, auto t, auto r, auto sigma) {
  return std::tuple(vv::value_and_grad<0, 2, 3, 4>(price)(s, k, t, r, sigma),
                    vv::grad(vv::grad(price))(s, k, t, r, sigma));
};
constexpr auto mapped = vv::vmap(greeks, vv::in_dims<0, 0, 0, vv::none, 0>);
constexpr auto traced = vv::trace(mapped, v, v, v, scalar, v);
constexpr auto textbook = relaxed(mapped, v, v, v, scalar, v);
static_assert(textbook.count(vv::exp) == 2 && textbook.count(vv::erf) == 2 && textbook.count(vv::log) == 1 &&
              textbook.count(vv::sqrt) == 1 && textbook.count(vv::div) <= 4);
static_assert(2 * textbook.operations() < traced.operations());

// A long chain of sums with numbers takes no deep recursion.
constexpr auto chain = [](auto x) {
  auto r = x * x;
  for (int k = 0; k < 600; ++k) r = r + static_cast<double>(k % 3);
  return r * 3.0;
};
static_assert(operations(chain, v) <= 610);
