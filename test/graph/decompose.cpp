// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args, vv::graph;

namespace decompose_test {
/// Operators of the user's: x + 3 y, and k x for an attribute k.
inline constexpr struct plus_thrice_t : vv::promoting_operator<plus_thrice_t> {
  static constexpr auto op_name = "plus_thrice";
} plus_thrice{};
inline constexpr struct times_t {
  static constexpr auto op_name = "times";
  template <vv::value X, class K>
  constexpr auto operator()(X const& x, K const& k) const {
    return vv::bind<times_t>(k)(x);
  }
} times{};
} // namespace decompose_test
using decompose_test::plus_thrice, decompose_test::plus_thrice_t, decompose_test::times, decompose_test::times_t;

template <>
struct varve::rules<plus_thrice_t> : varve::rule::pointwise<2> {
  static constexpr auto kernel(auto x, auto y) { return x + y + y + y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const&) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&, auto const&) { return 3; }
};
template <>
struct varve::rules<times_t> : varve::rule::linear {
  static constexpr op_kind kind = op_kind::join;
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, in[0].sizes}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for_each_index(x.sizes, [&](dims const& i) {
      out.at(i) = static_cast<R>(static_cast<double>(x.at(i)) * static_cast<double>(at[0][0]));
    });
  }
};

namespace {
constexpr auto by_exp =
    vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::reciprocal(vv::add(vv::exp(vv::neg(x)), 1)); });
constexpr auto in_others = vv::decomposition_table(
    vv::decomposition<plus_thrice_t>(
        [](auto const& x, auto const& y) { return vv::sub(times(vv::add(x, y), dims{3}), vv::mul(x, 2)); }),
    vv::decomposition<times_t>([](vv::attributes const& at, auto const& x) { return vv::mul(x, at[0][0]); }));

/// Greatest difference, relative to 1 + |b|; 1e9 of tensors of another kind.
double apart(tensor const& a, tensor const& b) {
  if (!(vv::meta_of(a) == vv::meta_of(b))) return 1e9;
  double worst = 0;
  for (index_t k = 0; k < a.numel(); ++k) {
    double const x = element(a, k), y = element(b, k);
    if (x == y || (x != x && y != y)) continue;
    double const d = std::fabs(x - y) / (1 + std::fabs(y));
    worst = d >= worst ? d : d == d ? worst : 1e9;
  }
  return worst;
}
/// How much a graph and what it is decomposed into differ, interpreted and fused, on these arguments.
double decomposed_differs(graph const& g, graph const& d, boxed_args const& in) {
  boxed_args const a = vv::interpret(g, in), b = vv::interpret(d, in), c = vv::fuse(d)(in);
  double worst = a.size() == b.size() ? 0 : 1e9;
  for (int k = 0; k < a.size(); ++k) worst = std::max({worst, apart(b[k], a[k]), apart(c[k], a[k])});
  return worst;
}
} // namespace

TEST_CASE("decompose: what make_fx records, gradients too, and what it is decomposed into give the same",
          "[graph][decompose]") {
  tensor const x = from({0.5, -1, 2, 3, -0.25, 1}, {2, 3}, dtype::float64);
  auto const loss = [](auto const& v) {
    return vv::sum(vv::sigmoid(vv::slice(v, 1, 0, 3, 2)) * vv::softplus(vv::slice(v, 1, 1, 3)));
  };
  graph const g = vv::make_fx(vv::grad(loss))(x), d = vv::decompose(g, vv::core_decompositions, by_exp);
  CHECK(g.count(vv::sigmoid) > 0);
  CHECK(g.count(vv::slice_backward) == 2);
  CHECK(d.count(vv::sigmoid) + d.count(vv::slice_backward) + d.count(vv::log1p_exp) == 0);
  CHECK(decomposed_differs(g, d, boxed_args(x)) < 1e-14);
  CHECK(apart(vv::interpret(d, boxed_args(x))[0], vv::grad(loss)(x)) < 1e-14);
  // decomposing first and differentiating then is the same
  graph const forward = vv::decompose(vv::make_fx(loss)(x), vv::core_decompositions, by_exp);
  tensor const gradient = vv::grad([&](tensor const& v) { return vv::interpret(forward, boxed_args(v))[0]; })(x);
  CHECK(apart(gradient, vv::grad(loss)(x)) < 1e-14);
  // with a table of its own
  graph const at_once = vv::make_fx(vv::grad(loss), vv::core_decompositions, by_exp)(x);
  CHECK(vv::equal(at_once, d));
}

TEST_CASE("decompose: a user's operator by its attributes, between numbers, integers and other shapes",
          "[graph][decompose]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float32), i = from({1, -2, 3}, {3}, dtype::int64),
               s = from({2}, {}, dtype::float32);
  auto const f = [](tensor const& a, tensor const& b, tensor const& c) {
    return std::tuple(plus_thrice(a, b), plus_thrice(b, 2), plus_thrice(c, 0.5),
                      times(plus_thrice(plus_thrice(a, a), c), dims{-2}), plus_thrice(b, c));
  };
  graph const g = vv::make_fx(f)(x, i, s), d = vv::decompose(g, in_others);
  CHECK(g.count(plus_thrice) == 6);
  CHECK(d.count(plus_thrice) + d.count(times) == 0);
  CHECK(decomposed_differs(g, d, boxed_args(x, i, s)) == 0);
  CHECK(vv::interpret(d, boxed_args(x, i, s))[1].dtype() == dtype::int64);
  CHECK(vv::interpret(d, boxed_args(x, i, s))[2].dtype() == dtype::float32); // a number does not make it double
}

TEST_CASE("decompose: in functions of cond and scan, and with functions of its own", "[graph][decompose]") {
  tensor const x = from({0.5, -1, 2, 0.25}, {4}, dtype::float64),
               minus = from({-0.5, -1, -2, 0.25}, {4}, dtype::float64);
  auto const branch = vv::decomposition<vv::sigmoid_t>([](auto const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0), [](auto const& w) { return vv::reciprocal(vv::add(vv::exp(vv::neg(w)), 1)); },
        [](auto const& w) { return vv::div(vv::exp(w), vv::add(vv::exp(w), 1)); }, v);
  });
  auto const f = [](auto const& v) {
    auto const chosen = vv::cond(
        vv::gt(vv::sum(v), 0), [&](auto const& w) { return vv::sigmoid(w) * v; },
        [](auto const& w) { return vv::sigmoid(vv::sigmoid(w)); }, v);
    auto const walked = vv::scan(
        [](auto const& c, auto const& e) { return std::pair{vv::sigmoid(c + e), vv::softplus(c)}; }, vv::sum(v), v);
    return std::tuple(chosen, walked.first, walked.second);
  };
  graph const g = vv::make_fx(f)(x);
  for (graph const& d :
       {vv::decompose(g, by_exp), vv::decompose(g, branch), vv::decompose(g, vv::core_decompositions, branch)}) {
    CHECK(d.count(vv::sigmoid) == 0);
    for (tensor const& v : {x, minus}) {
      boxed_args const a = vv::interpret(g, boxed_args(v)), b = vv::interpret(d, boxed_args(v));
      for (int k = 0; k < 3; ++k) CHECK(apart(b[k], a[k]) < 1e-14);
    }
    CHECK(decomposed_differs(g, d, boxed_args(minus)) < 1e-14);
  }
  CHECK(vv::decompose(g, branch).regions.size() ==
        g.regions.size() + 2u * static_cast<std::size_t>(g.count(vv::sigmoid)));
}

TEST_CASE("decompose: graphs of in-place code, constants, nothing to do", "[graph][decompose]") {
  tensor const x = from({0.5, -1, 2}, {3}, dtype::float64);
  auto const f = [](tensor const& v) {
    tensor const y = vv::clone(v);
    vv::add_(vv::slice(y, 0, 0, 2), vv::slice(vv::sigmoid(v), 0, 1, 3));
    return y * vv::sigmoid(y);
  };
  graph const g = vv::make_fx(f)(x), d = vv::decompose(g, by_exp);
  CHECK(vv::has_mutation(g));
  CHECK(!vv::has_mutation(d));
  CHECK(apart(vv::interpret(d, boxed_args(x))[0], f(x)) < 1e-14);
  graph const pure = vv::functionalize(g);
  CHECK(vv::equal(vv::decompose(pure, in_others), pure));
  CHECK(vv::equal(vv::decompose(pure), pure));
  // an operand itself, a constant
  graph const same = vv::decompose(pure, vv::decomposition<vv::sigmoid_t>([](auto const& v) { return v; }));
  CHECK(vv::interpret(same, boxed_args(x))[0].data<double>()[2] == 4);
  graph const ones =
      vv::decompose(pure, vv::decomposition<vv::sigmoid_t>([](auto const& v) { return vv::ones_like(v); }));
  CHECK(elements(vv::interpret(ones, boxed_args(x))[0]) == std::vector<double>{1.5, 0, 2});
  CHECK(ones.count(vv::sigmoid) == 0);
}

TEST_CASE("decompose: what is no decomposition is refused", "[graph][decompose]") {
  tensor const x = from({0.5, -1, 2}, {3}, dtype::float32);
  graph const g = vv::make_fx([](tensor const& v) { return vv::sigmoid(v); })(x);
  auto const with = [&](auto const& f) {
    return vv::decompose(g, vv::decomposition<vv::sigmoid_t>(f),
                         vv::decomposition<vv::tanh_t>([](auto const& v) { return vv::sigmoid(v); }));
  };
  CHECK_THROWS_AS(with([](auto const& v) { return vv::add(vv::sigmoid(vv::mul(v, 2)), 0); }), vv::value_error);
  CHECK_THROWS_WITH(with([](auto const& v) { return vv::add(vv::tanh(v), 1); }),
                    ContainsText("the decomposition of sigmoid calls sigmoid again, itself or through another "
                                 "decomposition; write it in other operators"));
  CHECK_THROWS_AS(with([](auto const& v) { return vv::to(v, vv::type<double>); }), vv::dtype_error);
  CHECK_THROWS_AS(with([](auto const& v) { return vv::sum(v); }), vv::shape_error);
  CHECK_THROWS_WITH(with([](auto const& v) { return vv::unsqueeze(v, 0); }),
                    ContainsText("gives float32[1, 3], the operator gives float32[3]"));
  CHECK_THROWS_AS(with([](auto const& v) { return vv::exp_(v); }), vv::value_error);
  CHECK_NOTHROW(with([](auto const& v) { return vv::exp(v); })); // tanh, whose decomposition calls sigmoid, is not met
}

TEST_CASE("core_decompositions: every one of them gives what its operator gives", "[graph][decompose]") {
  double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  auto const same = [](auto const& f, double tolerance, auto const&... x) {
    graph const g = vv::make_fx(f)(x...), d = vv::decompose(g, vv::core_decompositions);
    CHECK(g.count(vv::log1p_exp) + g.count(vv::one_hot) + g.count(vv::slice_backward) +
              g.count(vv::as_strided_backward) + g.count(vv::as_strided_scatter) >
          0);
    CHECK(d.count(vv::log1p_exp) + d.count(vv::one_hot) + d.count(vv::slice_backward) +
              d.count(vv::as_strided_backward) + d.count(vv::as_strided_scatter) ==
          0);
    CHECK(decomposed_differs(g, d, boxed_args(x...)) <= tolerance);
  };
  for (dtype t : {dtype::float32, dtype::float64})
    same([](tensor const& v) { return vv::log1p_exp(v); }, t == dtype::float32 ? 1e-6 : 1e-15,
         from({0, -3, 700, -700, inf, -inf, nan}, {7}, t));
  for (dtype t : {dtype::int64, dtype::uint8, dtype::bool_})
    same([](tensor const& v) { return vv::log1p_exp(v); }, 1e-6, from({0, 1, 1}, {3}, t));
  same([](tensor const& v) { return vv::log1p_exp(v); }, 1e-15, from({1.5}, {}, dtype::float64));
  same([](tensor const& v) { return vv::one_hot(v, vv::axis<4>); }, 0, from({0, 3, 1, 2}, {2, 2}, dtype::int64));
  same([](tensor const& v) { return vv::one_hot(v, vv::axis<2>); }, 0, from({1}, {}, dtype::int64));
  same([](tensor const& v) { return vv::one_hot(v, vv::axis<2>); }, 0, tensor::empty({0, 3}, dtype::int64));
  for (dtype t : {dtype::float32, dtype::int64, dtype::bool_, dtype::uint8})
    for (dims const& range : {dims{0, 5, 1}, dims{1, 4, 1}, dims{0, 5, 2}, dims{1, 5, 2}, dims{1, 5, 3}, dims{4, 5, 7},
                              dims{2, 2, 1}, dims{3, 3, 2}})
      for (int axis : {0, 1, 2}) {
        dims sizes{2, 3, 2}, part = sizes;
        sizes[axis] = 5;
        part[axis] = (range[1] - range[0] + range[2] - 1) / range[2];
        tensor const g = vv::to(vv::reshape(vv::arange(vv::numel(part)), part), dims{static_cast<index_t>(t)});
        same([&](tensor const& v) { return vv::slice_backward(v, sizes, dims{axis, range[0], range[1], range[2]}); }, 0,
             g);
      }
  same([](tensor const& v) { return vv::slice_backward(v, dims{2, 2, 1, 1, 1, 1, 1, 3}, dims{7, 0, 3, 2}); }, 0,
       from({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 1, 1, 1, 1, 1, 2})); // no dimension is to spare
  same([](tensor const& v) { return vv::as_strided_backward(v, dims{2, 4}, dims{1, 2}, dims{1}); }, 0,
       from({1, 2, 3, 4, 5, 6}, {2, 3})); // some elements twice
  same([](tensor const& v) { return vv::as_strided_backward(v, dims{5}, dims{0}, dims{4}); }, 0, from({1, 2, 3}, {3}));
  same([](tensor const& v) { return vv::as_strided_backward(v, dims{5}, dims{}, dims{4}); }, 0, from({1}, {}));
  auto const scatter = [](tensor const& x, tensor const& s) {
    return vv::as_strided_scatter(x, s, dims{1, 2}, dims{1});
  };
  for (dtype t : {dtype::float32, dtype::float64, dtype::int64, dtype::bool_})
    same(scatter, 0, from({1, 0, 3, 4, 5, 6, 7, 8}, {2, 4}, t), from({0, 7, 1, 0}, {2, 2}, t));
  same(scatter, 0, from({1, nan, 3, 4, 5, 6, 7, inf}, {2, 4}), from({nan, -inf, 0, 7, 8, 9}, {2, 3}));
  same(scatter, 0, from({1, 2, 3}, {3}), tensor::empty({2, 0}, dtype::float64));
}
