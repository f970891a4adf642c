// SPDX-License-Identifier: BSL-1.0
/// @file
/// Programs as tables whose arithmetic is done by chains, beside the same operators one by one. Elements are whole
/// numbers that stay exact, so that products and sums may be rounded once or twice.
#include <varve/varve.hpp>

#include <cstring>
#include <random>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims, vv::dtype, vv::index_t, vv::tensor;

namespace {
/// One operator of a random program: of earlier values, or of one and a number.
struct line {
  int what, a, b;
  double number;
};
struct program {
  std::vector<line> lines;
  std::vector<int> results;

  program(std::mt19937& random, int inputs, int length, double limit) {
    std::vector<double> most(static_cast<std::size_t>(inputs), 1.0); // the greatest magnitude of each value
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    while (static_cast<int>(lines.size()) < length) {
      int const n = static_cast<int>(most.size()), near = n < 6 ? n : 6;
      line l{pick(9), random() % 3 ? n - 1 - pick(near) : pick(n), pick(n), static_cast<double>(1 + pick(2))};
      double const u = most[static_cast<std::size_t>(l.a)], v = most[static_cast<std::size_t>(l.b)];
      double const bound = l.what == 3 ? u * v : l.what == 4 ? 2 * u : l.what < 3 ? u + v : u + 2;
      if (bound > limit) continue;
      lines.push_back(l), most.push_back(bound);
    }
    for (int k = 0; k < 3; ++k) results.push_back(inputs + length - 1 - pick(length < 20 ? length : 20));
  }
  std::vector<tensor> operator()(std::vector<tensor> v) const {
    for (line const& l : lines) {
      tensor const &x = v[static_cast<std::size_t>(l.a)], &y = v[static_cast<std::size_t>(l.b)];
      v.push_back(l.what == 0   ? x + y
                  : l.what == 1 ? x - y
                  : l.what == 2 ? y - x
                  : l.what == 3 ? x * y
                  : l.what == 4 ? x * l.number
                  : l.what == 5 ? l.number - x
                  : l.what == 6 ? x + l.number
                  : l.what == 7 ? vv::relu(x)
                                : (x * 2.0) / 2.0);
    }
    std::vector<tensor> r;
    for (int k : results) r.push_back(v[static_cast<std::size_t>(k)]);
    r.push_back(vv::sum(r[0]));
    return r;
  }
};
tensor signs(dims const& sizes, dtype type, unsigned seed) {
  tensor const t = vv::empty(sizes, dtype::float64);
  std::mt19937 random(seed);
  for (index_t k = 0; k < t.numel(); ++k) t.data<double>()[k] = static_cast<double>(random() % 3) - 1;
  return vv::to(t, type);
}
void check(program const& p, std::vector<tensor> const& x) {
  auto const f = [&](tensor const& a, tensor const& b, tensor const& c) {
    std::vector<tensor> const r = p({a, b, c});
    return std::tuple(r[0], r[1], r[2], r[3]);
  };
  std::vector<tensor> const expected = p(x);
  vv::boxed_args arguments;
  for (tensor const& t : x) arguments.push_back(t);
  vv::boxed_args const got = vv::fuse(vv::make_fx(f)(x[0], x[1], x[2]))(arguments);
  for (int k = 0; k < 4; ++k) {
    tensor const e = vv::contiguous(expected[static_cast<std::size_t>(k)]);
    REQUIRE(got[k].sizes() == e.sizes());
    bool same = true; // -0 is 0: a product that is added is not rounded to it
    for (index_t i = 0; i < e.numel(); ++i)
      same = same && (e.dtype() == dtype::float32 ? got[k].data<float>()[i] == e.data<float>()[i]
                                                  : got[k].data<double>()[i] == e.data<double>()[i]);
    CHECK(same);
  }
}
} // namespace

TEST_CASE("chains: random programs, of all lengths", "[fuse][graph][chain]") {
  std::mt19937 random(7);
  dims const shapes[] = {{1}, {5}, {16}, {127}, {128}, {129}, {700}, {5000}, {9, 300}, {300, 9}, {40, 40}, {3, 2, 70}};
  for (int round = 0; round < 96; ++round) {
    dims const& s = shapes[round % 12];
    bool const narrow = round % 2 == 0;
    dtype const type = narrow ? dtype::float32 : dtype::float64;
    program const p(random, 3, round % 3 == 0 ? 6 : round % 3 == 1 ? 30 : 150, narrow ? 1e6 : 1e12);
    unsigned const seed = static_cast<unsigned>(round);
    INFO(vv::to_string(s) << ", round " << round);
    tensor const whole = signs(s, type, seed), other = signs(s, type, seed + 100);
    check(p, {whole, other, signs(s, type, seed + 200)});
    if (s.n < 2) continue;
    dims column = s, row = s.sub(s.n - 1, s.n);
    column[s.n - 1] = 1;
    check(p, {whole, signs(column, type, seed + 300), signs(row, type, seed + 400)}); // one element a row, and a row
    check(p, {vv::transpose(signs({s[1], s[0]}, type, seed)), signs({}, type, seed), signs({1, 1}, type, seed + 1)});
  }
}
TEST_CASE("chains: what no other step needs is in no block", "[fuse][graph][chain]") {
  tensor const x = signs({5000}, dtype::float32, 1), y = signs({5000}, dtype::float32, 2);
  auto const f = [](tensor const& u, tensor const& v) {
    tensor const a = u * v, b = a + u, c = b * v - 1.5, d = c - a;
    return d * c + b;
  };
  auto const g = vv::fuse(vv::make_fx(f)(x, y));
  REQUIRE(g.program().bodies.size() == 1);
  auto const& body = g.program().bodies[0];
  CHECK(g.program().steps[0].what == vv::fusion::block_step::kind::chain);
  CHECK(g.program().steps[0].count + 1 == body.step_count); // one chain is all there is
  CHECK(body.place_count == body.memory_count);             // x, y and the result
  tensor const got = g(vv::boxed_args(x, y))[0], expected = f(x, y);
  CHECK(std::memcmp(got.raw(), expected.raw(), 5000 * sizeof(float)) == 0);
}
TEST_CASE("chains: NaN, infinities and quotients as by operators", "[fuse][graph][chain]") {
  double const values[] = {0.0, -0.0, 1.5, -2.25, 1e300, -1e-300, 3.0, -7.0};
  tensor const x = vv::empty({64}, dtype::float64), y = vv::empty({64}, dtype::float64);
  for (index_t k = 0; k < 64; ++k) x.data<double>()[k] = values[k / 8], y.data<double>()[k] = values[k % 8];
  auto const f = [](tensor const& u, tensor const& v) {
    tensor const q = u / v, r = v / (u - v), s = q - r;
    return std::tuple(q, s, (s / 3.0) - q, 2.0 / (s + 1.0));
  };
  auto const [a, b, c, d] = f(x, y);
  tensor const expected[] = {a, b, c, d};
  vv::boxed_args const got = vv::fuse(vv::make_fx(f)(x, y))(vv::boxed_args(x, y));
  for (int k = 0; k < 4; ++k)
    for (index_t i = 0; i < 64; ++i) {
      double const u = got[k].data<double>()[i], v = expected[k].data<double>()[i];
      CHECK((u == v || (u != u && v != v)));
    }
}
TEST_CASE("chains: more numbers and single elements than one has room for", "[fuse][graph][chain]") {
  for (dtype type : {dtype::float32, dtype::float64})
    for (index_t n : {3, 100, 5000}) {
      tensor const x = signs({n}, type, 1), one = signs({}, type, 2), column = signs({1}, type, 3);
      auto const f = [](tensor const& u, tensor const& a, tensor const& b) {
        tensor v = u;
        for (int k = 0; k < 50; ++k) {
          v = v + static_cast<double>(k % 7 - 3);
          v = k % 2 ? v - a : b + v;
          if (k % 5 == 0) v = v * -1.0;
        }
        return v;
      };
      tensor const got = vv::fuse(vv::make_fx(f)(x, one, column))(vv::boxed_args(x, one, column))[0],
                   expected = f(x, one, column);
      REQUIRE(got.dtype() == expected.dtype());
      CHECK(std::memcmp(got.raw(), expected.raw(), static_cast<std::size_t>(n * vv::itemsize(type))) == 0);
    }
}
