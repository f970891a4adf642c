// SPDX-License-Identifier: BSL-1.0
#include <varve/compile/compile.hpp>
#include <varve/fuse/fast_math.hpp>
#include <varve/graph/verify.hpp>
#include <varve/loop/scan.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>

#include <cmath>
#include <random>
#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::axis, vv::dtype, vv::graph, vv::index_t, vv::tensor;

namespace {
/// A random program of sums, products, quotients, roots and exponentials of three arguments; it is full of terms that
/// are equal, or cancel.
template <class X>
std::vector<X> random_program(unsigned seed, X const& x, X const& y, X const& z) {
  std::mt19937 draw(seed);
  auto const pick = [&](std::size_t n) { return static_cast<std::size_t>(draw() % n); };
  std::vector<X> v{x, y, z, vv::mul(x, y)};
  for (int k = 0; k < 30; ++k) {
    X const a = v[pick(v.size())], b = v[pick(v.size())];
    double const c = static_cast<double>(1 + pick(5)) / 4 * (pick(2) ? 1 : -1);
    switch (pick(14)) {
    case 0:
      v.push_back(vv::add(a, b));
      break;
    case 1:
      v.push_back(vv::sub(a, b));
      break;
    case 2:
    case 3:
      v.push_back(vv::mul(a, b));
      break;
    case 4:
      v.push_back(vv::div(a, vv::add(vv::mul(b, b), 1.0)));
      break;
    case 5:
      v.push_back(vv::mul(a, c));
      break;
    case 6:
      v.push_back(vv::add(a, c));
      break;
    case 7:
      v.push_back(vv::neg(a));
      break;
    case 8:
      v.push_back(vv::exp(vv::mul(vv::tanh(a), c)));
      break;
    case 9:
      v.push_back(vv::sqrt(vv::add(vv::abs(a), 0.5)));
      break;
    case 10:
      v.push_back(vv::log(vv::add(vv::mul(a, a), 0.25)));
      break;
    case 11:
      v.push_back(vv::where(vv::gt(a, 0.7), b, vv::sin(a)));
      break;
    case 12:
      v.push_back(vv::div(a, c));
      break;
    default:
      v.push_back(vv::div(x, vv::mul(y, c)));
    }
    v.back() = vv::mul(v.back(), vv::div(1.0, vv::add(vv::mul(vv::mul(v.back(), v.back()), 0.01), 1.0))); // bounded
  }
  return {v.end() - 6, v.end()};
}
tensor values(unsigned seed, vv::dims const& sizes) {
  std::mt19937 draw(seed);
  tensor t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) t.data<double>()[k] = 0.25 + static_cast<double>(draw() % 1000) / 500;
  return t;
}
void close(tensor const& got, tensor const& expected, double tolerance) {
  tensor const a = vv::clone(got), b = vv::clone(expected); // a number may be repeated by strides of 0

  REQUIRE(a.is_contiguous());
  REQUIRE(a.sizes() == b.sizes());
  REQUIRE(a.dtype() == b.dtype());
  double const *const x = a.data<double>(), *const y = b.data<double>();
  for (index_t k = 0; k < a.numel(); ++k) CHECK(std::abs(x[k] - y[k]) <= tolerance * (1 + std::abs(y[k])));
}
} // namespace

TEST_CASE("fast_math: random programs and their gradients compute what they did", "[graph][fast_math]") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    INFO("seed " << seed);
    tensor const x = values(3 * seed, seed % 2 ? vv::dims(2, 3) : vv::dims(5)),
                 y = values(3 * seed + 1, seed % 2 ? vv::dims(3) : vv::dims(5)),
                 z = values(3 * seed + 2, seed % 2 ? vv::dims(2, 1) : vv::dims(5));
    auto const f = [&](tensor const& a, tensor const& b, tensor const& c) {
      auto const r = random_program(seed, a, b, c);
      return std::tuple(r[0], r[1], r[2], r[3], r[4], r[5]);
    };
    auto const total = [&](tensor const& a, tensor const& b, tensor const& c) {
      auto const r = random_program(seed, a, b, c);
      return vv::sum(vv::mul(r[5], r[3]));
    };
    auto const compare = [&](graph const& g) {
      graph const better = vv::optimize(g), fast = vv::relax(better);
      CHECK(vv::verify(fast));
      vv::boxed_args const in(x, y, z);
      vv::boxed_args const expected = vv::interpret(better, in), got = vv::interpret(fast, in),
                           fused = vv::fuse(g, vv::fast_math)(in);
      for (int k = 0; k < expected.size(); ++k) close(got[k], expected[k], 1e-9), close(fused[k], expected[k], 1e-9);
    };
    compare(vv::make_fx(f)(x, y, z));
    compare(vv::make_fx([&](auto const&... v) { return vv::grad<0, 1, 2>(total)(v...); })(x, y, z));
  }
}

namespace {
constexpr auto spread = [](auto const& x, auto const& y) {
  return vv::exp(-0.5 * (x / y) * (x / y)) / y + vv::log(x / y) * 2.0 * 3.0;
};
constexpr auto gradient = vv::grad<0, 1>(spread);
template <index_t N>
array<double, N> numbers(double from) {
  array<double, N> x;
  for (index_t k = 0; k < N; ++k) x[k] = from + 0.25 * static_cast<double>(k % 13);
  return x;
}
template <class A>
void same(A const& a, A const& b, double tolerance = 1e-12) {
  for (index_t k = 0; k < A::size(); ++k)
    CHECK(static_cast<double>(a.data[k]) ==
          Approx(static_cast<double>(b.data[k])).epsilon(tolerance).margin(tolerance));
}
} // namespace

TEST_CASE("fast_math: as emitted loops, as tables, with symbolic sizes", "[graph][fast_math]") {
  constexpr index_t n = 37;
  using row = array<double, n>;
  constexpr auto mapped = vv::vmap(gradient);
  row const x = numbers<n>(0.5), y = numbers<n>(0.75);
  auto const [a, b] = vv::fuse(mapped)(x, y);
  auto const [c, d] = vv::fuse(mapped, vv::fast_math)(x, y);
  same(a, c), same(b, d);
  auto const [e, f] = vv::fuse(mapped, vv::table_driven, vv::fast_math)(x, y);
  same(a, e), same(b, f);
  tensor const s = values(1, vv::dims(n)), t = values(2, vv::dims(n));
  auto const [u, v] = vv::fuse<vv::spec<double, n>, vv::spec<double, n>>(mapped)(s, t);
  auto const [g, h] = vv::fuse<vv::spec<double, n>, vv::spec<double, n>>(mapped, vv::fast_math)(s, t);
  close(g, u, 1e-12), close(h, v, 1e-12);
  auto const [i, j] = vv::fuse<vv::spec<double, n>, vv::spec<double, n>>(mapped, vv::table_driven, vv::fast_math)(s, t);
  close(i, u, 1e-12), close(j, v, 1e-12);
  auto const [k, l] =
      vv::fuse<vv::spec<double, vv::dim<"n">>, vv::spec<double, vv::dim<"n">>>(mapped, vv::fast_math)(s, t);
  close(k, u, 1e-12), close(l, v, 1e-12);
  static_assert(std::is_empty_v<decltype(vv::fuse(mapped, vv::fast_math))>);
}

namespace {
constexpr auto polar = [](auto const& x) {
  auto const r = vv::select(x, axis<0>, axis<0>), a = vv::select(x, axis<0>, axis<1>);
  return vv::stack(std::tuple{r * vv::cos(a), r * vv::sin(a)}, axis<0>);
};
constexpr auto jacobians = vv::vmap(vv::jacrev(polar), vv::in_dims<1>, vv::out_dims<-1>);
} // namespace

TEST_CASE("fast_math: unit vectors leave nothing behind", "[graph][fast_math]") {
  constexpr auto kept = vv::freeze([] {
    vv::graph const traced = vv::trace_graph(jacobians, vv::meta{dtype::float64, vv::dims(2, 16), false}),
                    better = vv::prepare(traced);
    return vv::relax(better);
  });
  STATIC_REQUIRE(kept.count(vv::mul) == 2); // -r sin, r cos
  array<double, 2, 16> x;
  for (index_t k = 0; k < 32; ++k) x.data[k] = 0.125 * static_cast<double>(k);
  same(vv::fuse(jacobians, vv::fast_math)(x), vv::fuse(jacobians)(x));
}

namespace {
constexpr auto normalized = [](auto const& x, auto const& w) {
  auto const z = vv::mm(x * 2.0f, w) / 3.0f, e = vv::exp(z - vv::detach(vv::amax(z, axis<1>, vv::keepdim)));
  return e / vv::sum(e, axis<1>, vv::keepdim);
};
constexpr auto loss = [](auto const& x, auto const& w) { return vv::sum(normalized(x, w) * normalized(x, w)); };
constexpr auto step = [](auto const& c, auto const& k) {
  auto const n = c * k / k + k * 0.0 + vv::sin(c) * 2.0 * 0.25;
  return std::pair(n, n);
};
constexpr auto loop = [](auto const& x, auto const& a) {
  return vv::scan(vv::closure(step, a), x, vv::steps<9>).first;
};
} // namespace

TEST_CASE("fast_math: reductions, matrices, loops, float32", "[graph][fast_math]") {
  array<float, 5, 4> x;
  array<float, 4, 19> w;
  for (index_t k = 0; k < x.size(); ++k) x.data[k] = 0.125f * static_cast<float>(k % 7) - 0.25f;
  for (index_t k = 0; k < w.size(); ++k) w.data[k] = 0.25f * static_cast<float>(k % 5) - 0.5f;
  auto const [a, b] = vv::fuse(vv::grad<0, 1>(loss))(x, w);
  auto const [c, d] = vv::fuse(vv::grad<0, 1>(loss), vv::fast_math)(x, w);
  same(a, c, 1e-5), same(b, d, 1e-5);

  double const p = 0.5, q = 1.25;
  CHECK(vv::fuse(loop, vv::fast_math)(p, q) == Approx(vv::fuse(loop)(p, q)).epsilon(1e-13));
  auto const [g, h] = vv::fuse(vv::grad<0, 1>(loop))(p, q);
  auto const [r, s] = vv::fuse(vv::grad<0, 1>(loop), vv::fast_math)(p, q);
  CHECK(r == Approx(g).epsilon(1e-12));
  CHECK(s == Approx(h).margin(1e-12));
}

TEST_CASE("fast_math: integers, comparisons and infinities are what they were", "[graph][fast_math]") {
  constexpr auto f = [](auto const& x, auto const& n) {
    return std::tuple(n + n - n, vv::where(n > 2, x, x + std::numeric_limits<double>::infinity()),
                      vv::to(n, vv::type<double>) * 2.0 * 0.5);
  };
  array<double, 6> const x = numbers<6>(-1);
  array<std::int64_t, 6> const n{0, 1, 2, 3, -4, 5};
  auto const [a, b, c] = vv::fuse(f, vv::fast_math)(x, n);
  array<float, 6> y;
  for (index_t k = 0; k < 6; ++k) y[k] = 1e-20f * static_cast<float>(k);
  same(vv::fuse([](auto const& x) { return (x * 1e15f) * 1e15f * 1e-15f * 1e-15f + x * 1e11f * 1e11f * 1e-11f; },
                vv::fast_math)(y),
       vv::fuse([](auto const& x) { return x + x * 1e11f; })(y), 1e-6);
  for (index_t k = 0; k < 6; ++k) {
    CHECK(a[k] == n[k]);
    CHECK(b[k] == (n[k] > 2 ? x[k] : std::numeric_limits<double>::infinity()));
    CHECK(c[k] == static_cast<double>(n[k]));
  }
}

TEST_CASE("fast_math, optimize: signs stay where the dtype changes", "[graph][fast_math]") {
  vv::tensor const u = vv::full(vv::dims(2), 3, vv::dtype::uint8),
                   least = vv::full(vv::dims(2), -2147483648.0, vv::dtype::int32),
                   f = vv::full(vv::dims(2), 2.5, vv::dtype::float32);
  auto const first = [](vv::tensor const& t) { return vv::to(t, vv::dtype::float64).data<double>()[0]; };
  auto const same = [&](auto const& function, vv::tensor const& a, vv::tensor const& b) {
    vv::graph const g = vv::make_fx(function)(a, b);
    double const eager = first(function(a, b));
    vv::boxed_args const arguments(a, b);
    CHECK(first(vv::interpret(vv::optimize(g), arguments)[0]) == eager);
    CHECK(first(vv::interpret(vv::relax(g), arguments)[0]) == eager);
    CHECK(first(vv::fuse(g)(arguments)[0]) == eager);
  };
  same([](auto const& a, auto const& b) { return -a * b; }, u, f);
  same([](auto const& a, auto const& b) { return -a / b; }, u, f);
  same([](auto const& a, auto const& b) { return b - (-a) + b; }, u, f);
  same([](auto const& a, auto const& b) { return b + (-a) - b; }, u, f);
  same([](auto const& a, auto const& b) { return -a * -b; }, u, f);
  same([](auto const& a, auto const& b) { return -a * b; }, least, f);
  same([](auto const& a, auto const& b) { return -a * b - a; }, u, u);
}
TEST_CASE("fast_math: compile(f, fast_math), with captured tensors", "[graph][fast_math]") {
  tensor const w = values(5, vv::dims(7)), x = values(6, vv::dims(7));
  auto const f = [&](auto const& v) { return vv::exp(v + w) / vv::exp(w) * (w - w + 1.0); };
  auto const fast = vv::compile(f, vv::fast_math);
  close(fast(x), f(x), 1e-13);
  close(vv::fuse(f, vv::fast_math)(x), f(x), 1e-13);
  close(fast(w), f(w), 1e-13);
  CHECK(fast.versions() == 1);
}

TEST_CASE("fast_math: roots by logarithms of negative numbers, e is not 4, results that are arguments written into",
          "[graph][fast_math]") {
  tensor const x = vv::sub(values(7, vv::dims(50)), 1.25), y = vv::sub(values(8, vv::dims(50)), 1.2505);
  auto const f = [](auto const& x, auto const& y) {
    auto const p = x * y, q = p * p;
    return std::tuple(vv::exp(0.5 * vv::log(x * x + 0.0) + 0.5 * vv::log(y * y)),
                      vv::exp(0.5 * vv::log(vv::square(y))) + x, vv::exp(0.5 * (vv::log(q / x * x) + vv::log(q))),
                      vv::exp(x + 1.0) + y - (4.0 * vv::exp(x) + y), vv::exp(x - x + 2.0) + y - (y + 16.0),
                      vv::exp(x + 0.5) + y - (y - 2.0 * vv::exp(x)));
  };
  auto const [a, b, c, d, e, g] = f(x + 0.0003, y);
  auto const got = vv::fuse(vv::make_fx(f)(x, y), vv::fast_math)(vv::boxed_args(x + 0.0003, y));
  close(got[0], a, 1e-12), close(got[1], b, 1e-12), close(got[2], c, 1e-12), close(got[3], d, 1e-12),
      close(got[4], e, 1e-12), close(got[5], g, 1e-12);

  tensor const z = vv::clone(x), w = vv::clone(x);
  auto const writes = [](tensor const& v) {
    tensor const before = vv::clone(v);
    vv::add_(v, 1.0);
    return before + 0.0 * before;
  };
  graph const traced = vv::make_fx(writes)(vv::clone(x)), fast = vv::relax(traced);
  close(vv::interpret(fast, vv::boxed_args(z))[0], x, 0);
  close(z, x + 1.0, 0);
  close(vv::compile(writes, vv::fast_math)(w), x, 0);
  close(w, x + 1.0, 0);
}

TEST_CASE("fast_math: operators that the program does not call", "[graph][fast_math]") {
  tensor const x = values(9, vv::dims(7));
  auto const f = [](auto const& v) {
    return vv::mul(vv::exp(v), 2.0) + vv::mul(vv::log(v), -2.0);
  }; // becomes a difference
  close(vv::compile(f, vv::fast_math)(x), f(x), 1e-13);
}
