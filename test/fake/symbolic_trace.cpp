// SPDX-License-Identifier: BSL-1.0
// Graphs traced on fake tensors of symbolic sizes: for every size that their guards admit.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <tuple>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;
using vv::dim_dynamic;

namespace {
tensor rows(index_t n, index_t columns) {
  return vv::sin(vv::reshape(vv::arange(n * columns, dtype::float64), dims{n, columns}));
}
/// Traced at 5 rows, run at others, and compared with the function.
template <class F>
void check_for_all_sizes(F const& f, index_t least = 2) {
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(rows(5, 3));
  CHECK(vv::verify(g));
  for (index_t n : {least, least + 1, index_t(5), index_t(11)})
    for (index_t columns : {2, 3, 7}) {
      tensor const x = rows(n, columns);
      CHECK(difference(vv::interpret(g, boxed_args(x))[0], f(x), 1e-14) == "");
    }
}
} // namespace

TEST_CASE("symbolic traces: one graph for all sizes", "[fake][shape][make_fx]") {
  check_for_all_sizes([](tensor const& x) { return vv::softmax(x, 1) * 2.0; });
  check_for_all_sizes([](tensor const& x) { return vv::sum(vv::transpose(x, 0, 1), 1); });
  check_for_all_sizes([](tensor const& x) { return vv::reshape(vv::cat(std::vector{x, x * 2.0}, 0), dims{-1}); });
  check_for_all_sizes([](tensor const& x) { return vv::slice(x, 0, 1) - vv::slice(x, 0, 0, -1); }, 3);
  check_for_all_sizes(vv::grad([](tensor const& x) { return vv::sum(vv::logsumexp(x * x, 1)); }));
  check_for_all_sizes(vv::vmap([](tensor const& r) { return vv::sin(r) * vv::sum(r); }));
  check_for_all_sizes(vv::vmap(vv::grad([](tensor const& r) { return vv::sum(vv::exp(r)); })));
  check_for_all_sizes([](tensor const& x) { return vv::matmul(x, vv::transpose(x, 0, 1)); });
  check_for_all_sizes([](tensor const& x) {
    return vv::jvp([](tensor const& v) { return vv::tanh(v); }, std::tuple(x), std::tuple(x)).second;
  });
  check_for_all_sizes(vv::functionalize([](tensor const& x) {
                        tensor const y = x * 1.0;
                        vv::mul_(vv::select(y, 0, 1), 3.0);
                        return y;
                      }),
                      3); // a write at 1 of more than 2
  check_for_all_sizes([](tensor const& x) {
    return vv::cond(
        vv::sum(x) > 0.0, [](tensor const& v) { return vv::sin(v); }, [](tensor const& v) { return v * 2.0; }, x);
  });
}

TEST_CASE("symbolic traces: guards say for which sizes a graph is", "[fake][shape][make_fx]") {
  auto const f = [](tensor const& x) { return x.sizes()[0] > 3 ? vv::sum(x) : vv::sum(x * 2.0); };
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(rows(5, 3));
  CHECK(elements(vv::interpret(g, boxed_args(rows(4, 2)))[0]) == elements(f(rows(4, 2))));
  CHECK_THROWS_WITH(vv::interpret(g, boxed_args(rows(3, 2))), ContainsText("s0 >= 4") || ContainsText("4 <= s0"));
  CHECK_THROWS_AS(vv::interpret(g, boxed_args(rows(1, 3))), vv::error);
  auto const h = [](tensor const& x) { // takes the number
    index_t const n = x.size(0);
    return n > 3 ? vv::sum(x) : vv::sum(x * 2.0);
  };
  vv::graph const of_five = vv::make_fx(h, vv::tracing::symbolic)(rows(5, 3));
  CHECK(elements(vv::interpret(of_five, boxed_args(rows(5, 7)))[0]) == elements(h(rows(5, 7))));
  CHECK_THROWS_AS(vv::interpret(of_five, boxed_args(rows(4, 7))), vv::error);
}

TEST_CASE("symbolic traces: sizes that are equal, and policies", "[fake][shape][make_fx]") {
  auto const f = [](tensor const& a, tensor const& b) { return vv::sum(a * b); };
  vv::graph const duck = vv::make_fx(f, vv::tracing::symbolic)(rows(5, 3), rows(5, 3));
  CHECK(elements(vv::interpret(duck, boxed_args(rows(7, 2), rows(7, 2)))[0]) == elements(f(rows(7, 2), rows(7, 2))));
  CHECK_THROWS_AS(vv::interpret(duck, boxed_args(rows(7, 2), rows(6, 2))), vv::error);
  std::vector<dim_dynamic> const policy{dim_dynamic::dynamic, dim_dynamic::fixed};
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic({policy, policy}))(rows(5, 3), rows(5, 3));
  CHECK(elements(vv::interpret(g, boxed_args(rows(7, 3), rows(7, 3)))[0]) == elements(f(rows(7, 3), rows(7, 3))));
  CHECK_THROWS_AS(vv::interpret(g, boxed_args(rows(7, 3), rows(6, 3))), vv::error);
  CHECK_THROWS_AS(vv::interpret(g, boxed_args(rows(7, 2), rows(7, 2))), vv::error);
}

TEST_CASE("symbolic traces: a size that became another one keeps its range", "[fake][shape][make_fx]") {
  auto const f = [](tensor const& x, tensor const& y) { // y of at least 2, and then one shorter than x
    tensor const z = y.sizes()[0] == 1 ? y * 2.0 : y * 1.0;
    return vv::slice(x, 0, 1) + z;
  };
  auto const row = [](index_t n) { return vv::arange(n, dtype::float64); };
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(row(5), row(4));
  CHECK(elements(vv::interpret(g, boxed_args(row(3), row(2)))[0]) == elements(f(row(3), row(2))));
  CHECK_THROWS_AS(vv::interpret(g, boxed_args(row(2), row(1))), vv::shape_error);
  auto const half = [](tensor const& x, tensor const& y) { return vv::slice(x, 0, 0, vv::end, 2) + vv::squeeze(y); };
  vv::graph const h = vv::make_fx(half, vv::tracing::symbolic)(row(6), row(3));
  CHECK(elements(vv::interpret(h, boxed_args(row(4), row(2)))[0]) == elements(half(row(4), row(2))));
  CHECK_THROWS_AS(vv::interpret(h, boxed_args(row(2), row(1))), vv::shape_error);
}

TEST_CASE("writes into values whose strides are symbols", "[fake][symbolic]") {
  auto const f = [](tensor const& v) {
    tensor const part = vv::clone(vv::slice(v, 1, 2, 6, 2));
    vv::fill_(part, 0.5);
    return part * v;
  };
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(rows(2, 3));
  CHECK(elements(vv::interpret(g, vv::boxed_args(rows(2, 3)))[0]) == elements(f(rows(2, 3))));
}

TEST_CASE("a symbolic trace inside of what another trace differentiates stays apart from it", "[fake][make_fx]") {
  using function = std::function<tensor(tensor)>;
  auto const traced = [](function f) -> function {
    return [f](tensor v) { return vv::interpret(vv::make_fx(f, vv::tracing::symbolic)(v), boxed_args(v))[0]; };
  };
  auto const value = [](function f) -> function {
    return [f](tensor v) { return vv::jvp(f, std::tuple(v), std::tuple(vv::ones_like(v))).first; };
  };
  auto const tangent = [](function f) -> function {
    return [f](tensor v) { return vv::jvp(f, std::tuple(v), std::tuple(vv::ones_like(v))).second; };
  };
  auto const gradient = [](function f) -> function {
    return [f](tensor v) { return vv::grad([f](tensor u) { return vv::sum(f(u)); })(v); };
  };
  auto const lanes = [](function f) -> function { return [f](tensor v) { return vv::vmap(f)(v); }; };
  auto const map = [](function f) -> function { return [f](tensor v) { return vv::map(f, v); }; };
  function const twice = [](tensor v) { return vv::sin(v) * 2.0; }, same = [](tensor v) { return v; };
  tensor const x = rows(2, 3);
  for (function const& leaf : {twice, same})
    for (function const& f : {value(traced(leaf)), tangent(traced(leaf)), gradient(traced(leaf)), lanes(traced(leaf)),
                              map(value(traced(leaf))), map(map(value(traced(leaf)))), map(map(gradient(traced(leaf)))),
                              lanes(map(tangent(traced(leaf))))}) {
      auto const right = elements(f(x));
      CHECK(elements(vv::interpret(vv::make_fx(f)(x), boxed_args(x))[0]) == right);
      CHECK(elements(vv::compile(f)(x)) == right);
      CHECK(vv::this_thread_state.quiet());
    }
}

TEST_CASE("symbolic traces inside of one another are refused", "[fake][shape][make_fx]") {
  auto const inner = [](tensor const& u) { return vv::sin(u) * vv::slice(u, 0, 0, 1); };
  auto const f = [&](tensor const& v) {
    return vv::interpret(vv::make_fx(inner, vv::tracing::symbolic)(v), boxed_args(v))[0];
  };
  CHECK_THROWS_AS(vv::make_fx(f, vv::tracing::symbolic)(rows(5, 3)), vv::dispatch_error);
  CHECK(vv::this_thread_state.quiet());
  vv::shape_environment one, two;
  vv::extent const s = one.size(5);
  CHECK_THROWS_AS(two.hint(s), vv::size_error);
  CHECK_THROWS_AS(two.check(vv::relation::less, 2, s), vv::size_error);
}
