// SPDX-License-Identifier: BSL-1.0
// Static values beside values of a trace: constants of the graph, whatever transform they meet in.
#include <varve/varve.hpp>

#include <limits>
#include <varve_test.hpp>
namespace vv = varve;
using vv::array, vv::dtype, vv::index_t;

namespace {
template <class A, class B>
void same(A const& a, B const& b) {
  REQUIRE(a.size() == static_cast<index_t>(b.size()));
  for (index_t k = 0; k < a.size(); ++k) CHECK(a.data[k] == Approx(b[static_cast<std::size_t>(k)]));
}
constexpr array<double, 2> one_two{1, 2};
constexpr array<double, 2, 2> square{1, 2, 3, 4};
constexpr auto miss = [](auto w, auto x, auto y) {
  auto const d = vv::dot(w, x) - y;
  return d * d;
};
constexpr auto step = [](auto c, auto x) { return std::pair(c * x + array<double, 2>{1, 0}, c); };
constexpr auto horner = [](auto p) { return vv::scan(step, p, array<double, 2>{2, 2}).first; };
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
struct scaled : vv::function<scaled> {
  static constexpr auto forward(auto x, auto c) { return vv::mul(x, c); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x, c] = ctx.saved();
    return std::tuple(vv::mul(g, c), vv::mul(g, x));
  }
};
} // namespace

TEST_CASE("constants: a number is stacked onto a traced value", "[fuse][constant]") {
  auto const g = vv::fuse([](auto p) {
    return vv::grad([](auto x) { return vv::sum(x * x); })(vv::stack(std::tuple{p, 1.0}, vv::axis<0>));
  })(3.0);
  same(g, std::vector{6.0, 2.0});
  auto const c =
      vv::fuse([](auto p) { return vv::cat(std::tuple{one_two, p, one_two * 2.0}, vv::axis<0>); })(array<double, 1>{5});
  same(c, std::vector{1.0, 2.0, 5.0, 2.0, 4.0});
  auto const both = vv::fuse([](auto p) {
    return vv::vmap([](auto e) { return vv::stack(std::tuple{e, 1.0, vv::sum(one_two)}, vv::axis<0>); })(p);
  })(one_two);
  same(both, std::vector{1.0, 1.0, 3.0, 2.0, 1.0, 3.0});
}
TEST_CASE("constants: vmap over an array, beside a traced value", "[fuse][constant]") {
  array<double, 3> const p{3, 4, 5};
  auto const r = vv::fuse([](auto q) {
    return vv::vmap([](auto e, auto v) { return e * v; }, vv::in_dims<0, vv::none>)(array<double, 2>{1, 2}, q);
  })(p);
  same(r, std::vector{3.0, 4.0, 5.0, 6.0, 8.0, 10.0});
  auto const captured =
      vv::fuse([](auto q) { return vv::vmap([&](auto e) { return vv::sum(e * q + vv::exp(e)); })(one_two); })(p);
  same(captured, std::vector{12 + 3 * std::exp(1.0), 24 + 3 * std::exp(2.0)});
  auto const matrix = vv::fuse([](auto q) {
    return vv::vmap([](auto row, auto v) { return vv::dot(row, v); }, vv::in_dims<0, vv::none>)(square, q);
  })(one_two);
  same(matrix, std::vector{5.0, 11.0});
}
TEST_CASE("constants: a plain cotangent, and arguments of grad and jvp that are none of the trace",
          "[fuse][constant]") {
  CHECK(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(1.0)); })(3.0) ==
        Approx(6));
  same(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(one_two)); })(
           array<double, 2>{3, 4}),
       std::vector{6.0, 16.0});
  // float values, a double cotangent
  CHECK(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(0.5)); })(3.0f) ==
        Approx(3));
  auto const [gp, ga] = vv::fuse(
      [](auto p) { return vv::grad<0, 1>([](auto x, auto y) { return vv::sum(x * y * y); })(p, one_two); })(3.0);
  CHECK(gp == Approx(5));
  same(ga, std::vector{6.0, 12.0});
  auto const declared = vv::fuse(
      [](auto p) { return vv::grad(vv::closure([](auto x, auto q) { return vv::sum(x * x * q); }, p))(one_two); })(3.0);
  same(declared, std::vector{6.0, 12.0});
  auto const number =
      vv::fuse([](auto p) { return vv::grad<1>([](auto x, auto y) { return x * y * y; })(p, 2.0); })(3.0);
  CHECK(number == Approx(12));
  auto const [y, dy] =
      vv::fuse([](auto p) { return vv::jvp([](auto x) { return x * x; }, std::tuple(p), std::tuple(1.0)); })(3.0);
  CHECK(y == Approx(9));
  CHECK(dy == Approx(6));
  auto const along = vv::fuse([](auto p) {
    return vv::jvp([&](auto x) { return x * x * p; }, std::tuple(one_two), std::tuple(one_two)).second;
  })(3.0);
  same(along, std::vector{6.0, 24.0});
  same(vv::fuse([](auto p) { return vv::jacrev([](auto x) { return square * x; })(p); })(one_two),
       std::vector{1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0});
  same(vv::fuse([](auto p) { return vv::jacfwd([](auto x) { return vv::matmul(square, x); })(p); })(one_two),
       std::vector{1.0, 2.0, 3.0, 4.0});
  same(vv::fuse([](auto p) {
         return vv::grad(vv::closure(
             [](auto x, auto q) {
               return vv::sum(vv::vmap([](auto e, auto s) { return e * e * s; }, vv::in_dims<0, vv::none>)(x, q));
             },
             p))(one_two);
       })(3.0),
       std::vector{6.0, 12.0});
}
TEST_CASE("constants: transforms of transforms, modes and custom functions", "[fuse][constant]") {
  auto const per_sample = vv::fuse([](auto w) {
    return vv::vmap(vv::grad<0, 1>(miss), vv::in_dims<vv::none, 0, 0>)(w, square, array<double, 2>{1, -1});
  })(one_two);
  same(std::get<0>(per_sample), std::vector{8.0, 16.0, 72.0, 96.0});
  same(std::get<1>(per_sample), std::vector{8.0, 16.0, 24.0, 48.0});
  same(vv::fuse([](auto p) {
         return vv::vmap(
             [](auto a, auto b) {
               return vv::vmap([](auto q, auto w) { return q * w; }, vv::in_dims<vv::none, 0>)(a, b);
             },
             vv::in_dims<0, vv::none>)(one_two, p);
       })(one_two),
       std::vector{1.0, 2.0, 2.0, 4.0});
  same(vv::fuse([](auto p) { return vv::hessian([](auto x) { return vv::sum(x * x * x * one_two); })(p); })(one_two),
       std::vector{6.0, 0.0, 0.0, 24.0});
  auto const counted = vv::fuse([](auto p) {
    counting mode;
    return vv::with(mode, [&](auto e) { return e * p; }, one_two);
  })(3.0);
  same(counted, std::vector{3.0, 6.0});
  same(vv::fuse([](auto p) { return vv::grad([](auto x) { return vv::sum(scaled::apply(x, one_two)); })(p); })(
           array<double, 2>{3, 4}),
       std::vector{1.0, 2.0});
}
TEST_CASE("constants: arrays in every operator", "[fuse][constant]") {
  array<float, 2, 2> const x{1, 2, 3, 4};
  same(vv::fuse([](auto v) { return vv::matmul(v, array<float, 2, 2>{1, 2, 3, 4}); })(x),
       std::vector{7.0, 10.0, 15.0, 22.0});
  same(vv::fuse([](auto v) { return vv::matmul(array<float, 2>{1, 2}, v); })(x), std::vector{7.0, 10.0});
  same(vv::fuse([](auto v) { return vv::where(array<bool, 2>{true, false}, v, array<float, 2, 1>{-1, -2}); })(x),
       std::vector{1.0, -1.0, 3.0, -2.0});
  same(vv::fuse([](auto v) { return vv::gather(v, vv::axis<1>, array<std::int64_t, 2, 1>{1, 0}); })(x),
       std::vector{2.0, 3.0});
  same(vv::fuse(vv::grad([](auto v) { return vv::sum(v * array<float, 2>{5, 7}); }))(x),
       std::vector{5.0, 7.0, 5.0, 7.0});
  same(vv::fuse(vv::vmap([](auto v) { return v + array<float, 2>{5, 7}; }))(x), std::vector{6.0, 9.0, 8.0, 11.0});
  same(std::get<1>(vv::fuse([](auto v) { return std::pair(v, array<double, 3>{3, 1, 2}); })(x)),
       std::vector{3.0, 1.0, 2.0});
  CHECK(vv::fuse([](auto v) { return v + array<std::int64_t, 2>{std::int64_t(1) << 53, 3}; })(
            array<std::int64_t, 1>{0})[0] == std::int64_t(1) << 53);
  CHECK(std::signbit(vv::fuse([](auto v) { return v * array<double, 2>{0.0, -0.0}; })(1.0)[1]));
}
TEST_CASE("constants: arange stays a count", "[fuse][constant]") {
  constexpr auto f = [](auto x) { return x + vv::arange<double, 100000>; };
  constexpr auto g = vv::trace(f, vv::spec<double>);
  STATIC_REQUIRE(g.count(vv::arange_op) == 1);
  STATIC_REQUIRE(g.sizes.constants == 0);
  auto const y = std::make_unique<array<double, 100000>>();
  vv::fuse(f).into (*y)(0.5);
  CHECK((*y)[99999] == 99999.5);
}
TEST_CASE("constants: as many elements as one likes", "[fuse][constant]") {
  static constexpr auto squares = [] {
    array<double, 700> r{};
    for (index_t k = 0; k < 700; ++k) r.data[k] = static_cast<double>(k * k);
    return r;
  }();
  constexpr auto f = [](auto x) { return vv::sum(vv::tanh(x * squares)); };
  double expected = 0, derivative = 0;
  for (double s : squares)
    expected += std::tanh(1e-5 * s), derivative += s * (1 - std::tanh(1e-5 * s) * std::tanh(1e-5 * s));
  CHECK(vv::fuse(f)(1e-5) == Approx(expected));
  CHECK(vv::fuse(vv::grad(f))(1e-5) == Approx(derivative));
}
TEST_CASE("constants: inside of cond", "[fuse][constant][cond]") {
  constexpr auto f = [](auto p) {
    return vv::cond(
        p > 0.0, [](auto x, auto c) { return vv::sum(x * c * array<double, 2>{3, 5}); },
        [](auto x, auto c) { return vv::sum(c) - x; }, p, one_two);
  };
  CHECK(vv::fuse(f)(2.0) == Approx(26));
  CHECK(vv::fuse(f)(-2.0) == Approx(5));
  CHECK(vv::fuse(vv::grad(f))(2.0) == Approx(13));
  CHECK(vv::fuse([](auto p) {
          return vv::vmap(
              [](auto e, auto q) {
                return vv::cond(q > 0.0, [](auto a) { return a * 2.0; }, [](auto a) { return -a; }, e);
              },
              vv::in_dims<0, vv::none>)(one_two, p);
        })(2.0)[1] == Approx(4));
}
TEST_CASE("constants: a graph with array constants runs on tensors", "[graph][constant]") {
  constexpr auto g = vv::trace(
      [](auto x) {
        return x * array<float, 3>{1, -2, 4} +
               vv::where(array<bool, 3>{true, false, true}, x, array<float, 3>{5, 6, 7});
      },
      vv::spec<float, 2, 3>);
  vv::graph const h = g.thaw();
  vv::tensor const x{{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}};
  vv::boxed_args const y = vv::interpret(h, vv::boxed_args(x));
  vv::tensor const c{{1.0f, -2.0f, 4.0f}}, d{{5.0f, 6.0f, 7.0f}}, p{{true, false, true}};
  vv::tensor const expected = x * c + vv::where(p, x, d);
  for (int k = 0; k < 6; ++k) CHECK(y[0].data<float>()[k] == expected.data<float>()[k]);
  vv::tensor const i =
      vv::interpret(vv::trace([](auto v) { return v + array<std::int64_t, 2>{7, 3}; }, vv::spec<std::int64_t>).thaw(),
                    vv::boxed_args(vv::full({}, 1)))[0];
  CHECK(i.dtype() == vv::dtype::int64);
  CHECK(i.data<std::int64_t>()[0] == 8);
}
TEST_CASE("constants: walked through, carried and put out by scan", "[fuse][constant][scan]") {
  constexpr auto f = [](auto p) {
    return vv::sum(vv::scan([](auto c, auto x) { return std::pair(c * x, vv::none); }, p, one_two).first);
  };
  CHECK(vv::fuse(f)(3.0) == Approx(6));
  CHECK(vv::fuse(vv::grad(f))(3.0) == Approx(2));
  // the polynomial (p x + 1) x + 1 at x = 2, in the first element
  same(vv::fuse(horner)(array<double, 2>{3, 5}), std::vector{15.0, 20.0});
  same(vv::fuse(vv::grad([](auto p) { return vv::sum(horner(p)); }))(array<double, 2>{3, 5}), std::vector{4.0, 4.0});
  CHECK(vv::fuse([](auto p) {
          return vv::sum(vv::scan([](auto c, auto x) { return std::pair(c + x, x); }, 0.0, p).first);
        })(array<double, 3>{1, 2, 3}) == Approx(6));
}

namespace {
/// A function as it is, fused as loops and as a table: to the bit.
template <class F, class X>
void computes_alike(F const& f, X const& x) {
  auto const want = f(x);
  auto const loops = vv::fuse(f)(x);
  auto const table = vv::fuse(f, vv::table_driven)(x);
  for (index_t k = 0; k < want.size(); ++k) {
    CHECK(std::bit_cast<std::uint64_t>(static_cast<double>(loops[k])) ==
          std::bit_cast<std::uint64_t>(static_cast<double>(want[k])));
    CHECK(std::bit_cast<std::uint64_t>(static_cast<double>(table[k])) ==
          std::bit_cast<std::uint64_t>(static_cast<double>(want[k])));
  }
}
constexpr auto filled = [](auto const& x, auto n) { return vv::full_like(x, n); };
constexpr auto as_int = [](auto const& x) { return vv::to(x, vv::type<int>); };
constexpr auto as_double = [](auto const& x) { return vv::to(x, vv::type<double>); };
constexpr int least = std::numeric_limits<int>::min(), greatest = std::numeric_limits<int>::max();
constexpr auto given = [](auto const& x, int a, int b) { return vv::maximum(filled(x, least), array<int, 2>{a, b}); };
} // namespace

TEST_CASE("constants: what a trace computes of constants has the value that their dtype holds", "[fuse][constant]") {
  array<float, 2> const f{1, 2};
  array<std::uint8_t, 2> const u{1, 2};
  computes_alike([](auto x) { return as_double(filled(x, 0.1)) + as_double(x); }, f);
  computes_alike([](auto x) { return as_double(vv::exp(filled(x, 0.1) * 3)) + as_double(x); }, f);
  computes_alike([](auto x) { return x + (filled(x, 0.1) == 0.1); }, f);
  computes_alike([](auto x) { return as_double(vv::sum(filled(x, 0.1f))) + as_double(x); }, f);
  computes_alike([](auto x) { return as_double(filled(x, 1e30) * filled(x, 1e30)) + as_double(x); }, f);
  computes_alike([](auto x) { return as_int(filled(x, 200) + filled(x, 200)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(-filled(x, 200)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(vv::square(filled(x, 200)) - filled(x, 100)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(filled(x, -212)) + as_int(x); }, u);
  computes_alike([](auto x) { return x < 300; }, u);
  computes_alike([](auto x) { return as_int(filled(x, 2)) + as_int(x); }, array<bool, 2>{true, false});
  computes_alike([](auto x) { return filled(x, 2.7) * 2 + x; }, array<int, 2>{1, 2});
  array<int, 2> const i{1, 2};
  computes_alike([](auto x) { return vv::square(given(x, greatest, -70000)) + x; }, i);
  computes_alike([](auto x) { return as_double(vv::abs(given(x, least, -3))) + as_double(x); }, i);
  computes_alike([](auto x) { return as_int(vv::to(given(x, 300, -1), vv::type<std::uint8_t>)) + x; }, i);
  computes_alike(
      [](auto x) { return as_int(vv::maximum(filled(as_double(x), -4e9), array<double, 2>{3e9, -2.5})) + x; }, i);
}
TEST_CASE("fuse: bytes wrap around on the way", "[fuse][dtype]") {
  array<std::uint8_t, 3> const u{200, 150, 3};
  computes_alike([](auto x) { return (x + x) < 100; }, u);
  computes_alike([](auto x) { return vv::maximum(x * x, x); }, u);
  computes_alike([](auto x) { return as_double(-x) * as_double(vv::square(x)); }, u);
  computes_alike([](auto x) { return vv::sum(x * x) + vv::sum(as_double(x - 201)) + as_double(x); }, u);
}
TEST_CASE("constants: a sum of zeros of a trace is no negative zero", "[fuse][constant]") {
  computes_alike([](auto x) { return x / vv::sum(filled(x, -0.0)); }, array<double, 2>{1, 2});
  computes_alike([](auto x) { return (vv::sum(x, vv::axis<1>) + 1.0) / vv::sum(filled(x, -1.0), vv::axis<1>); },
                 array<double, 2, 0>{});
}
TEST_CASE("constants: an array that counts only after conversion is none", "[fuse][constant]") {
  computes_alike([](auto x) { return x + array<bool, 3>{false, true, true}; }, array<int, 3>{1, 2, 3});
  [[maybe_unused]] static constexpr auto wrapped = [] {
    array<std::uint8_t, 300> r{};
    for (index_t k = 0; k < 300; ++k) r[k] = static_cast<std::uint8_t>(k);
    return r;
  }();
  computes_alike([](auto x) { return x + wrapped; }, array<int, 300>{});
}
TEST_CASE("constants: integers that no double is are refused by traces at run time", "[graph][constant]") {
  vv::tensor const x = vv::full({2}, 1, vv::dtype::int64);
  [[maybe_unused]] static constexpr index_t odd = (index_t{1} << 53) + 1, even = index_t{1} << 60;
  CHECK_THROWS_WITH(vv::make_fx([](auto const& v) { return v + odd; })(x), ContainsText("beyond 2^53"));
  CHECK_THROWS_WITH(vv::trace_graph([](auto const& v) { return v * odd; }, vv::meta{vv::dtype::int64, {2}}),
                    ContainsText("beyond 2^53"));
  CHECK(vv::compile([](auto const& v) { return v + even; })(x).template data<index_t>()[1] == even + 1);
}

namespace {
/// The results of `f` on the tensor `x`, of type `T`, fused in the compiler and at run time, are to the bit those of
/// its operators one by one.
template <class T, class F>
void computed_alike(F const& f, vv::tensor const& x) {
  auto const equal = [](vv::tensor const& a, vv::tensor const& b) {
    REQUIRE(a.dtype() == b.dtype());
    REQUIRE(a.sizes() == b.sizes());
    auto const p = vv::to(a, vv::type<double>), q = vv::to(b, vv::type<double>);
    for (index_t k = 0; k < p.numel(); ++k) {
      double const found = p.template data<double>()[k], expected = q.template data<double>()[k];
      CHECK((found == expected || (found != found && expected != expected)));
    }
  };
  constexpr auto fused = vv::fuse<vv::spec<T, 3>>(F{});
  constexpr auto table = vv::fuse<vv::spec<T, 3>>(F{}, vv::table_driven);
  auto const expected = f(x), found = fused(x), looked_up = table(x);
  auto const traced = vv::fuse(vv::trace(F{}, vv::spec<T, 3>).thaw())(vv::boxed_args(x));
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (equal(std::get<K>(found), std::get<K>(expected)), ...);
    (equal(std::get<K>(looked_up), std::get<K>(expected)), ...);
    (equal(traced[static_cast<int>(K)], std::get<K>(expected)), ...);
  }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(expected)>>>{});
}
constexpr auto results = [](auto const&... y) { return std::tuple{y...}; };
} // namespace

TEST_CASE("constants: are elements of their dtype", "[fuse][constant][dtype]") {
  auto const bytes = [](auto x) {
    auto const a = vv::full_like(x, 200), b = vv::full_like(x, 100), c = vv::full_like(x, -212);
    return results(x + c, (a + b) > 50, vv::to(a + b, vv::type<float>), vv::to(vv::neg(b), vv::type<int>), c * 1.0);
  };
  computed_alike<std::uint8_t>(bytes, vv::to(vv::full({3}, 5), dtype::uint8));
  auto const integers = [](auto x) {
    auto const a = vv::full_like(x, 3.7), b = vv::full_like(x, 2000000000);
    return results(x + a, a * 1.0, vv::to(a + a, vv::type<double>), b + b, (b + b) < 0, vv::to(b + b, vv::type<double>),
                   vv::sum(b));
  };
  computed_alike<std::int32_t>(integers, vv::to(vv::full({3}, 5), dtype::int32));
  auto const flags = [](auto x) {
    auto const a = vv::full_like(x, 2);
    return results(a, a * 1.0, vv::eq(a, x), vv::sum(a), vv::to(a + a, vv::type<int>));
  };
  computed_alike<bool>(flags, vv::ones({3}, dtype::bool_));
  auto const singles = [](auto x) {
    auto const a = vv::full_like(x, 0.1), big = vv::full_like(x, 1e8);
    return results(vv::to(a, vv::type<double>), vv::to(a * 3.0, vv::type<double>), (big + 1.0) - big,
                   vv::full_like(x, 1e-200), vv::to(x, vv::type<double>) * a);
  };
  computed_alike<float>(singles, vv::full({3}, 0.3));
}
TEST_CASE("fuse: results between operators are elements of their dtype", "[fuse][dtype]") {
  auto const sums = [](auto x) {
    auto const y = vv::reshape(x, vv::shape<1, 3>), product = y * y, twice = y + y;
    return results(vv::sum(product), vv::sum(product, vv::axis<0>), vv::sum(product, vv::axis<1>), vv::sum(twice),
                   vv::sum(twice, vv::axis<0>), vv::amax(twice, vv::axis<0>), vv::sum(product + y, vv::axis<1>),
                   vv::to(twice, vv::type<double>));
  };
  vv::tensor const x = vv::arange(3) + 127;
  computed_alike<std::uint8_t>(sums, vv::to(x, dtype::uint8));
  computed_alike<std::int32_t>(sums, vv::to(x * 400000, dtype::int32));
  computed_alike<std::int32_t>(
      [](auto y) { return results(vv::neg(y) > 0, (y - 5) > 0, vv::sum(vv::neg(y), vv::axis<0>)); },
      vv::full({3}, std::numeric_limits<int>::min(), dtype::int32));
  auto const powers = [](auto y) {
    auto const s = vv::square(y);
    return results(s, vv::to(s, vv::type<double>), vv::to(vv::abs(y), vv::type<double>),
                   vv::to(vv::pow(vv::maximum(vv::minimum(y, 50000), -50000), 2), vv::type<double>), (s + y) < y,
                   vv::dot(s, y), vv::to(y * y * y, vv::type<double>) * 1.0f);
  };
  for (int const y : {std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 50000, -65537, 0})
    computed_alike<std::int32_t>(powers, vv::full({3}, y, dtype::int32) + vv::to(vv::arange(3), dtype::int32));
  computed_alike<std::uint8_t>(powers, vv::to(x + 70, dtype::uint8));
  auto const whole = [](auto y) {
    auto const i = vv::to(y, vv::type<int>);
    return results(i, vv::to(y, vv::type<std::uint8_t>), vv::to(y, vv::type<std::int64_t>), i < 5,
                   vv::to(i, vv::type<double>) * 0.5, vv::amax(i));
  };
  for (double const y : {1e10, -1e30, std::numeric_limits<double>::quiet_NaN(), -1.9})
    computed_alike<double>(whole, vv::full({3}, y, dtype::float64)), computed_alike<float>(whole, vv::full({3}, y));
  computed_alike<bool>(
      [](auto y) { return results(vv::sum(y + y), vv::sum(y * y), vv::to(y + y, vv::type<float>), vv::eq(y + y, y)); },
      vv::ones({3}, dtype::bool_));
}
TEST_CASE("constants: what no constant expression may compute is computed at run time", "[fuse][constant]") {
  auto const f = [](auto x) {
    auto const zero = vv::zeros_like(x), infinite = 1.0 / zero,
               great = vv::full_like(vv::to(x, vv::type<double>), 1e300);
    return results(x + infinite, zero / zero, vv::reciprocal(zero), infinite - infinite, infinite * 0.0, great * great,
                   vv::full_like(x, 3e38) / vv::full_like(x, 1e-38));
  };
  computed_alike<float>(f, vv::full({3}, 0.3));
}
TEST_CASE("constants: a mean of nothing", "[fuse][constant]") {
  constexpr auto f = [](auto x) { return results(vv::mean(x), vv::mean(x, vv::axis<0>), vv::mean(x, vv::axis<1>)); };
  constexpr auto fused = vv::fuse<vv::spec<float, 0, 4>>(f);
  auto const [all, down, across] = fused(vv::ones({0, 4}));
  CHECK(vv::ne(all, all).item<bool>());
  CHECK(vv::sum(vv::ne(down, down)).item<std::int64_t>() == 4);
  CHECK(across.sizes() == vv::dims(0));
  CHECK(std::get<2>(f(array<float, 0, 4>{})).size() == 0);
}
