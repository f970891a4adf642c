// SPDX-License-Identifier: BSL-1.0
// Operators with functions around values whose sizes depend on data.
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/sorting.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::dtype, vv::tensor;

namespace {
tensor count(std::int64_t n) { return vv::full({}, n, dtype::int64); }
auto size_of(tensor const& n) {
  auto const k = vv::item(n);
  vv::check_is_size(k);
  return k;
}
/// What a program of symbolic sizes gives, saved and loaded too.
template <class F>
void check(F const& f, tensor const& x, std::vector<std::int64_t> const& counts) {
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(x, count(counts[0]));
  vv::exported_program const p = vv::program_from_text(to_text(vv::export_program(f)(x, count(counts[0]))));
  for (auto const n : counts)
    for (tensor const& v : {x, tensor(-x)}) {
      tensor const right = f(v, count(n));
      CHECK(vv::allclose(vv::interpret(g, vv::boxed_args(v, count(n)))[0], right));
      CHECK(vv::allclose(p(v, count(n))[0], right));
    }
}
tensor const x{1.0, 2.0, 3.0};
} // namespace

TEST_CASE("cond on a value of data-dependent size, in a step", "[hop][cond][symbolic]") { // CD-9
  auto const f = [](tensor const& v, tensor const& n) {
    tensor const r = vv::ones({size_of(n)}, dtype::float64);
    return vv::map(
        [&](tensor const& e) {
          return vv::sum(r + vv::cond(
                                 vv::gt(e, 1.0), [](tensor const& u) { return u * 0.5; },
                                 [](tensor const& u) { return u + 1.0; }, r));
        },
        v);
  };
  check(f, x, {3, 5});
}

TEST_CASE("cond: each branch reads a size of its own", "[hop][cond][symbolic]") { // CD-8
  auto const ones = [](tensor const& w, tensor const& n) {
    return vv::ones({size_of(n)}, dtype::float64) + vv::sum(w);
  };
  auto const twice = [](tensor const& w, tensor const& n) {
    return vv::zeros({size_of(n) * 2}, dtype::float64) + vv::sum(w * w);
  };
  check([&](tensor const& v, tensor const& n) { return vv::sum(vv::cond(vv::gt(vv::sum(v), 0.0), ones, ones, v, n)); },
        x, {3, 4});
  check(
      [&](tensor const& v, tensor const& n) {
        tensor const y = vv::cond(vv::gt(vv::sum(v), 0.0), ones, twice, v, n);
        return vv::sum(y * vv::sum(y));
      },
      x, {3, 4});
}

TEST_CASE("gradients of a loop whose step captures a value of data-dependent size", "[hop][scan][symbolic]") {
  auto const f = [](tensor const& v, tensor const& n) {
    tensor const r = vv::ones({size_of(n)}, dtype::float64);
    return vv::grad([&](tensor const& z) {
      return vv::sum(vv::map([&](tensor const& e) { return vv::sum(r * vv::sin(e)); }, z));
    })(v);
  };
  check(f, x, {3, 5});
}

TEST_CASE("a size that a traced step reads of its own data is refused, whatever is around it", "[hop][map]") {
  auto const first = [](tensor const& r) { return vv::sum(vv::slice(r, 0, 0, size_of(vv::count_nonzero(r > 0.0)))); };
  auto const f = [&](tensor const& v) { return vv::sum(vv::map(first, v)); };
  tensor const rows({{1.0, -2.0, 3.0}, {1.0, 2.0, 3.0}});
  CHECK(vv::allclose(f(rows), tensor(5.0)));
  auto const message = Catch::Contains("being traced cannot become a number");
  CHECK_THROWS_WITH(vv::grad(f)(rows), message);
  CHECK_THROWS_WITH(vv::functionalize([&](tensor const& v) { return vv::grad(f)(v); })(rows), message);
  CHECK_THROWS_WITH(vv::functionalize([&](tensor const& v) { return vv::vjp(f, v).first; })(rows), message);
  vv::functional_mode mode;
  vv::functional_mode_guard const on(mode);
  CHECK_THROWS_WITH(vv::grad(f)(mode.to_functional_tensor(rows)), message);
}

TEST_CASE("a size of data that may be 2 is not taken for 2", "[symbolic]") {
  auto const beside_two = [](tensor const& v) {
    auto const k = size_of(vv::count_nonzero(vv::sum(v, vv::dims{-1}) > 0.0));
    vv::check(vv::relation::less_equal, k, v.sizes()[0]);
    return vv::slice(v, 0, 0, k) + v; // of one row, or of two
  };
  tensor const one({{1.25, -2.0}, {0.25, 1.0}}), both({{1.25, 2.0}, {0.25, 1.0}});
  CHECK(vv::allclose(beside_two(one), tensor({{2.5, -4.0}, {1.5, -1.0}})));
  for (tensor const& v : {one, both}) CHECK_THROWS_WITH(vv::export_program(beside_two)(v), Catch::Contains("u0 == 2"));
}

TEST_CASE("a size of data that is smaller than the program needs is refused", "[symbolic]") {
  auto const positive = [](tensor const& v) { return vv::index_select(v, 0, vv::squeeze(vv::nonzero(v > 0.0), 1)); };
  auto const exported = [](auto const& f) { return vv::program_from_text(to_text(vv::export_program(f)(x))); };
  tensor const none = -x, one{1.0, -2.0, -3.0}, two{1.0, 2.0, -3.0};
  auto const products = exported([&](tensor const& v) { return vv::cumprod(positive(v), 0); }),
             first = exported([&](tensor const& v) { return vv::select(positive(v), 0, 0); }),
             first_two = exported([&](tensor const& v) { return vv::slice(positive(v), 0, 0, 2); }),
             steps = exported([&](tensor const& v) {
               tensor const y = positive(v);
               return vv::slice(y, 0, 1, vv::end) - vv::slice(y, 0, 0, -1);
             });
  auto const message = ContainsText("a size that depends on data is 0 or 1, or smaller than the program needs");
  CHECK_THROWS_WITH(products(none), message); // a product of nothing would be nothing
  CHECK_THROWS_WITH(first(none), message);
  CHECK_THROWS_WITH(first_two(none), message);
  CHECK_THROWS_WITH(first_two(one), message);
  CHECK_THROWS_AS(first(none), vv::shape_error);
  CHECK(products(one)[0].to_vector<double>() == std::vector{1.0});
  CHECK(products(x)[0].to_vector<double>() == std::vector{1.0, 2.0, 6.0});
  CHECK(first(one)[0].item() == 1);
  CHECK(first_two(two)[0].to_vector<double>() == std::vector{1.0, 2.0});
  for (tensor const& v : {none, one}) CHECK(steps(v)[0].numel() == 0);
  CHECK(steps(two)[0].to_vector<double>() == std::vector{1.0});
}

TEST_CASE("a size of data that is read under functionalize is a size of the graph", "[symbolic][functionalize]") {
  auto const first = [](tensor const& v) {
    auto const k = vv::item(vv::count_nonzero(v > 0.0));
    vv::check_is_size(k);
    vv::check(vv::relation::less_equal, k, v.sizes()[0]);
    return vv::clone(vv::slice(v, 0, 0, k));
  };
  auto const wrapped = [=](tensor const& v) { return vv::wrap(first, v); };
  auto const by_graph = [](auto const& f) {
    return
        [f](tensor const& v) { return vv::interpret(vv::make_fx(f, vv::tracing::symbolic)(v), vv::boxed_args(v))[0]; };
  };
  for (tensor const& v : {x, tensor(-x), tensor{2.0, -1.0, 3.0}, tensor{1.75}}) {
    auto const right = first(v).to_vector<double>();
    CHECK(vv::functionalize(by_graph(first))(v).to_vector<double>() == right);
    CHECK(vv::functionalize(by_graph(wrapped))(v).to_vector<double>() == right);
    CHECK(vv::vmap(vv::functionalize(by_graph([](tensor const& u) { return u * 2.0; })))(v).size(0) == v.size(0));
  }
}
