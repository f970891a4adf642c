// SPDX-License-Identifier: BSL-1.0
#include <varve/autograd/function.hpp>
#include <varve/hop/cond.hpp>
#include <varve/indexing.hpp>
#include <varve/linalg.hpp>
#include <varve/loop/while_loop.hpp>
#include <varve/sorting.hpp>
#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::array, vv::sparsity_pattern, vv::tensor;

namespace {
constexpr auto band = sparsity_pattern::banded;
std::string picture(sparsity_pattern const& p) { return to_string(p.view()); }
constexpr auto differences = [](auto const& x) {
  auto const n = vv::index_t(vv::to_dims(vv::shape_of(x))[0]);
  (void)n;
  return vv::sin(vv::slice(x, vv::axis<0>, vv::range<1, vv::end>)) * vv::slice(x, vv::axis<0>, vv::range<0, -1>);
};
constexpr auto rosenbrock = [](auto const& x) {
  auto const a = vv::slice(x, vv::axis<0>, vv::range<0, -1>), b = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>);
  return vv::sum(100.0 * vv::square(b - a * a) + vv::square(1.0 - a));
};
tensor row(vv::index_t n) { return vv::arange(n, vv::dtype::float64) * 0.1 + 0.3; }
} // namespace

// In constant expressions.
static_assert(vv::sparsity(differences)(array<double, 6>{}) == band(5, 6, 0, 1));
static_assert(vv::hessian_sparsity(rosenbrock)(array<double, 6>{}) == band(6, 6, 1, 1));
static_assert(vv::sparsity([](auto const& x) { return vv::exp(x); })(2.0) == band(1, 1, 0, 0));
static_assert(vv::sparsity([](auto const& x, auto const& y) { return x * y; })(array<float, 3>{}, array<float, 3>{}) ==
              band(3, 3, 0, 0));
constexpr auto constant = vv::sparsity(differences, vv::spec<double, 6>);
static_assert(constant == vv::static_pattern<5, 6, 10>(band(5, 6, 0, 1)) && constant.contains(4, 5));

TEST_CASE("sparsity: tensors and arrays have one pattern", "[sparse][sparsity]") {
  CHECK(vv::sparsity(differences)(row(6)) == band(5, 6, 0, 1));
  CHECK(vv::hessian_sparsity(rosenbrock)(row(6)) == band(6, 6, 1, 1));
  double const scale = 3;
  CHECK(vv::sparsity([scale](auto const& x) { return x * scale; })(array<double, 3>{}) == band(3, 3, 0, 0));
}

TEST_CASE("sparsity: products with a known 0, known conditions and known indices", "[sparse][sparsity]") {
  auto const tridiagonal = [](auto const& x) {
    auto const a = array<double, 4, 4>{-2, 1, 0, 0, 1, -2, 1, 0, 0, 1, -2, 1, 0, 0, 1, -2};
    return vv::matmul(a, x);
  };
  static_assert(vv::sparsity(tridiagonal)(array<double, 4>{}) == band(4, 4, 1, 1));
  auto const masked = [](auto const& x) { return x * array<double, 3>{1, 0, 2}; };
  static_assert(vv::sparsity(masked)(array<double, 3>{}).count() == 2);
  auto const chosen = [](auto const& x) {
    return vv::where(array<bool, 3>{true, false, true}, x, 2.0 * vv::flip(x, vv::axis<0>));
  };
  static_assert(vv::sparsity(chosen)(array<double, 3>{}).count() == 3);
  auto const picked = [](auto const& x) {
    return vv::index_select(x, vv::axis<0>, array<std::int64_t, 4>{2, 0, 2, 1});
  };
  static_assert(vv::sparsity(picked)(array<double, 3>{}).count() == 4);
  double weight = 0; // a variable, which may be another number in the next call
  CHECK(vv::sparsity([&](tensor const& x) { return x * weight; })(row(3)).count() == 3);
  CHECK(vv::sparsity([](tensor const& x) { return vv::tril(x); })(vv::reshape(row(4), {2, 2})).count() == 3);
  tensor const from{0L, 2L, 3L}, to{1L, 3L, 0L};
  auto const edges = [&](tensor const& x) { return vv::index_select(x, 0, to) - vv::index_select(x, 0, from); };
  CHECK(picture(vv::sparsity(edges)(row(4))) == "xx..\n..xx\nx..x\n");
  auto const given = [](tensor const& x, tensor const& at) { return vv::index_select(x, 0, at); };
  CHECK(vv::sparsity(given)(row(4), from).count() == 3);
}

TEST_CASE("sparsity: known numbers are computed in their dtype", "[sparse][sparsity]") {
  struct known {
    vv::dtype type;
    tensor a, b;
    std::function<tensor(tensor const&, tensor const&)> f;
  };
  auto const add = [](tensor const& a, tensor const& b) { return a + b; };
  auto const sub = [](tensor const& a, tensor const& b) { return a - b; };
  auto const mul = [](tensor const& a, tensor const& b) { return a * b; };
  known const rows[] = {{vv::dtype::uint8, {1L, 200L, 3L}, {2L, 100L, 1L}, sub},
                        {vv::dtype::uint8, {1L, 200L, 3L}, {2L, 100L, 1L}, add},
                        {vv::dtype::uint8, {1L, 200L, 3L}, {0L, 0L, 0L}, [](auto const& a, auto const&) { return -a; }},
                        {vv::dtype::bool_, {1L, 0L, 1L}, {1L, 1L, 0L}, add},
                        {vv::dtype::int8, {100L, 2L, 1L}, {100L, 2L, 1L}, add},
                        {vv::dtype::int32, {65536L, 3L, 2147483647L}, {65536L, 3L, 2L}, mul},
                        {vv::dtype::int64, {4000000000L, 3L, 9007199254740993L}, {4000000000L, 3L, 1L}, mul},
                        {vv::dtype::float32, {16777216L, 2L, 1L}, {1L, 1L, 3L}, add},
                        {vv::dtype::float32, {1L, 2L, 1L}, {3L, 7L, 10L}, [](auto a, auto b) { return a / b; }}};
  for (auto const& r : rows) {
    tensor const a = vv::to(r.a, r.type), b = vv::to(r.b, r.type), y = r.f(a, b);
    auto const kept = [&](tensor const& x) { return vv::where(vv::eq(r.f(a, b), y), x, vv::flip(x, 0)); };
    sparsity_pattern const p = vv::sparsity(kept)(row(3));
    INFO(vv::name(r.type));
    for (int k = 0; k < 3; ++k) CHECK(p.contains(k, k)); // what is computed equals y
  }
}

TEST_CASE("sparsity: derivatives count as what they are", "[sparse][sparsity]") {
  CHECK(vv::sparsity([](tensor const& x) { return vv::detach(x) * vv::sum(x); })(row(3)).count() == 9);
  CHECK(vv::sparsity([](tensor const& x) { return x * vv::detach(vv::sum(x)); })(row(3)) == band(3, 3, 0, 0));
  CHECK(vv::sparsity([](tensor const& x) { return vv::to(vv::argmax(x), vv::dtype::float64) * 2.0; })(row(3)).count() ==
        0);
  CHECK(vv::sparsity([](tensor const& x) { return vv::ones_like(x); })(row(3)).count() == 0);
  CHECK(vv::sparsity([](tensor const& x) { return vv::floor(x) * 0.5 + x; })(row(3)) == band(3, 3, 0, 0));
}

TEST_CASE("sparsity: in place, views", "[sparse][sparsity]") {
  auto const writes = [](tensor const& x) {
    tensor y = vv::zeros({4}, vv::dtype::float64) + 0.0 * x;
    vv::copy_(y.at(vv::slice(0, 2)), x.at(vv::slice(2, 4)));
    return vv::clone(y);
  };
  CHECK(picture(vv::sparsity(writes)(row(4))) == "..x.\n...x\n..x.\n...x\n");
}

TEST_CASE("sparsity: sorts, running sums, matrices, convolutions", "[sparse][sparsity]") {
  CHECK(vv::sparsity([](tensor const& x) { return vv::sort(x, 0).first; })(row(3)).count() == 9);
  CHECK(vv::sparsity([](tensor const& x) { return vv::sort(x, 1).first; })(vv::reshape(row(6), {2, 3})).count() == 18);
  CHECK(vv::sparsity([](tensor const& x) { return vv::cumsum(x, 0); })(row(4)) == band(4, 4, 4, 0));
  CHECK(vv::sparsity([](tensor const& x) { return vv::inverse(x); })(vv::reshape(row(8), {2, 2, 2})).count() == 32);
  tensor const w = vv::ones({1, 1, 3}, vv::dtype::float64);
  auto const smooth = [&](tensor const& x) { return vv::conv1d(vv::reshape(x, {1, 1, 6}), w, vv::none, 1, 1); };
  CHECK(vv::sparsity(smooth)(row(6)) == band(6, 6, 1, 1));
  auto const taps = [](tensor const& v) {
    return vv::conv1d(vv::ones({1, 1, 3}, vv::dtype::float64), v, vv::none, 1, 1);
  };
  CHECK(picture(vv::sparsity(taps)(vv::reshape(row(3), {1, 1, 3}))) == ".xx\nxxx\nxx.\n");
  auto const wide = [](tensor const& x) {
    return vv::conv_transpose1d(vv::reshape(x, {1, 2, 3}), vv::ones({2, 1, 2}, vv::dtype::float64), vv::none, 2);
  };
  CHECK(picture(vv::sparsity(wide)(row(6))) == "x..x..\nx..x..\n.x..x.\n.x..x.\n..x..x\n..x..x\n");
}

TEST_CASE("sparsity: a function that writes into its arguments", "[sparse][sparsity]") {
  auto const writes = [](tensor const& x) {
    vv::mul_(x, 2.0);
    return vv::sin(x) * vv::sum(vv::detach(x));
  };
  tensor const x = row(3);
  CHECK(vv::sparsity(writes)(x) == band(3, 3, 0, 0));
  CHECK(x.to_vector() == row(3).to_vector()); // the trace runs on fakes
  auto const into_a_view = [](tensor const& v) {
    vv::copy_(vv::select(v, 0, 0), vv::select(v, 0, 1));
    return v * 2.0;
  };
  CHECK(picture(vv::sparsity(into_a_view)(row(3))) == ".x.\n.x.\n..x\n");
}

TEST_CASE("sparsity: functions of loops and branches use captured tensors", "[sparse][sparsity]") {
  tensor const c{1.0, 2.0, 3.0};
  auto const step = [c](tensor const& s, tensor const& v) {
    return std::pair(s + vv::sum(c), v * vv::sum(vv::sin(c)));
  };
  CHECK(vv::sparsity([=](tensor const& x) { return vv::scan(step, tensor(1.0), x).second; })(row(3)) ==
        band(3, 3, 0, 0));
  auto const over_c = [c](tensor const& x) {
    return x * vv::scan([](tensor const& s, tensor const& v) { return std::pair(s + v, s); }, tensor(0.0), c).second;
  };
  CHECK(vv::sparsity(over_c)(row(3)) == band(3, 3, 0, 0));
  auto const nested = [c](tensor const& x) {
    return vv::map([c](tensor const& v) { return v * vv::map([c](tensor const& w) { return w + vv::sum(c); }, c); }, x);
  };
  CHECK(vv::sparsity(nested)(row(2)) ==
        vv::sparsity([](tensor const& x) { return vv::expand(vv::unsqueeze(x, 1), {2, 3}); })(row(2)));
  auto const of_c = [c](tensor const& x) {
    return x * vv::cond(
                   vv::sum(c) > 0.0, [](tensor const& v) { return vv::sin(v); },
                   [](tensor const& v) { return v * 2.0; }, c);
  };
  CHECK(vv::sparsity(of_c)(row(3)) == band(3, 3, 0, 0));
  CHECK(vv::sparse_jacobian(over_c, vv::by_rows).pattern(row(3)) == band(3, 3, 0, 0));
  CHECK(vv::hessian_sparsity([=](tensor const& x) { return vv::sum(x * over_c(x)); })(row(3)) == band(3, 3, 0, 0));
}

TEST_CASE("sparsity: functions return captured tensors, and use them within others", "[sparse][sparsity]") {
  tensor const c{1.0, 2.0, 3.0};
  auto const returned = [c](tensor const&) { return c; };
  auto const used = [c](tensor const& v) { return tensor(v * vv::sum(c)); };
  for (auto const& f : std::vector<std::function<tensor(tensor const&)>>{
           [=](tensor const& x) { return x * vv::checkpoint(returned, x); },
           [=](tensor const& x) { return x * vv::wrap(returned, x); },
           [=](tensor const& x) { return x * vv::cond(vv::sum(x) > 0.0, returned, used, x); },
           [=](tensor const& x) { return vv::map([=](tensor const& v) { return v * vv::checkpoint(used, v); }, x); },
           [=](tensor const& x) {
             return vv::map([=](tensor const& v) { return vv::sum(vv::wrap(returned, v)) * v; }, x);
           },
           [=](tensor const& x) {
             auto const step = [=](tensor const& s, tensor const& v) { return std::pair(s, vv::wrap(used, v) * v); };
             return vv::scan(step, tensor(0.0), x).second;
           }})
    CHECK(vv::sparsity(f)(row(3)) == band(3, 3, 0, 0));
}

TEST_CASE("sparsity: branches and loops", "[sparse][sparsity]") {
  auto const branch = [](auto const& x) {
    return vv::cond(
        vv::sum(x) > 0.0, [](auto const& v) { return v * 2.0; }, [](auto const& v) { return vv::flip(v, vv::axis<0>); },
        x);
  };
  CHECK(picture(vv::sparsity(branch)(row(3))) == "x.x\n.x.\nx.x\n");
  static_assert(vv::sparsity(branch)(array<double, 3>{}).count() == 5);
  auto const filter = [](auto const& x) {
    return vv::scan([](auto const& c, auto const& v) { return std::pair(c * 0.5 + v, vv::sin(c)); }, 0.0 * vv::sum(x),
                    x)
        .second;
  };
  // step by step: output k depends on inputs before k, and on all by the start
  CHECK(vv::sparsity(filter)(row(4)).contains(3, 2));
  auto const running = [](tensor const& x) {
    tensor const start = vv::zeros({}, vv::dtype::float64);
    return vv::scan([](tensor const& c, tensor const& v) { return std::pair(c * 0.5 + v, vv::sin(c)); }, start, x)
        .second;
  };
  CHECK(vv::sparsity(running)(row(4)) == band(4, 4, 4, -1));
  auto const shifts = [](tensor const& x) {
    return vv::while_loop([](tensor const& v) { return vv::sum(v) > 100.0; },
                          [](tensor const& v) { return vv::roll(v, 1, 0) * 0.5; }, x);
  };
  CHECK(vv::sparsity(shifts)(row(3)).count() == 9);
}

namespace {
/// A step function with the derivative of the identity.
struct rounded : vv::function<rounded> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return vv::floor(x); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return g; }
  static auto jvp(auto&, auto d) { return d; }
};
} // namespace
TEST_CASE("sparsity: a function with a derivative of its own", "[sparse][sparsity]") {
  CHECK(vv::sparsity([](tensor const& x) { return rounded::apply(x); })(row(3)) == band(3, 3, 0, 0));
}

TEST_CASE("sparsity: empty shapes, rank 0, refusals", "[sparse][sparsity]") {
  auto const twice = [](auto const& x) { return x * 2.0; };
  CHECK(vv::sparsity(twice)(vv::zeros({0}, vv::dtype::float64)).count() == 0);
  CHECK(vv::sparsity(twice)(vv::zeros({2, 0}, vv::dtype::float32)).rows == 0);
  CHECK(vv::sparsity(twice)(tensor(2.0)) == band(1, 1, 0, 0));
  CHECK(vv::sparsity([](tensor const& x) { return vv::sum(x); })(vv::zeros({2, 2}, vv::dtype::float32)).count() == 4);
  auto const by_data = [](tensor const& x) { return x.at(x > 0.0) * 2.0; };
  CHECK_THROWS_AS(vv::sparsity(by_data)(row(3)), vv::error);
  auto const branches = [](tensor const& x) { return vv::sum(x).item() > 0 ? x : x * 2.0; };
  CHECK_THROWS_AS(vv::sparsity(branches)(row(3)), vv::error);
  CHECK_THROWS_AS(vv::sparsity(twice)(tensor{1L, 2L}), vv::error);
}
