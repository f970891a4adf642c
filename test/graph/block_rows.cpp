// SPDX-License-Identifier: BSL-1.0
#include "../sample/apart.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::array, vv::boxed_args, vv::dims, vv::dtype, vv::index_t, vv::spec, vv::tensor;

// Loop nests of run-time programs, and of tables, that take turns row by row.
namespace {
using sample::apart, sample::element;
constexpr auto x0 = vv::axis<0>;
constexpr auto x1 = vv::axis<1>;

tensor waves(dims const& sizes, double phase, dtype type = dtype::float32, double scale = 1) {
  tensor t = tensor::empty(sizes, type);
  vv::on_dtype(type, "test", [&]<class T>() {
    for (index_t k = 0; k < t.numel(); ++k)
      static_cast<T*>(t.raw())[k] = static_cast<T>(scale * std::sin(phase + 1.3 * static_cast<double>(k)));
  });
  return t;
}
double apart(boxed_args const& a, boxed_args const& b) {
  double worst = a.size() == b.size() ? 0 : 1e9;
  for (int k = 0; k < a.size() && k < b.size(); ++k) worst = std::fmax(worst, apart(a[k], b[k]));
  return worst;
}
struct ran {
  double apart;
  int groups, nests, own, stages;
  index_t memory;
};
/// Runs a function fused and operator by operator.
template <class F, class... X>
ran run(F const& f, X const&... x) {
  vv::graph const g = vv::make_fx(f)(x...);
  auto const fused = vv::fuse(g);
  auto const& p = fused.program();
  ran r{apart(fused(boxed_args(x...)), vv::interpret(g, boxed_args(x...))),
        static_cast<int>(p.groups.size()),
        0,
        0,
        p.functions[0].stage_count,
        p.functions[0].memory};
  for (auto const& group : p.groups) r.nests += group.body_count, r.own += group.own_count;
  return r;
}
tensor column(tensor const& row_values) { return vv::unsqueeze(row_values, x1); }

constexpr auto softmax = [](auto const& x, auto const& y) { return vv::softmax(x * y, x1); };
constexpr auto log_softmax = [](auto const& x, auto const& y) { return vv::log_softmax(x * y, x1); };
constexpr auto logsumexp = [](auto const& x, auto const& y) { return vv::logsumexp(x * y, x1); };
constexpr auto attention = [](auto const& x, auto const& y) { return vv::sum(vv::softmax(x * y, x1) * vv::tanh(y)); };
constexpr auto unit = [](auto const& x, auto const& y) {
  auto const a = x * y + x;
  return a / vv::sqrt(vv::unsqueeze(vv::sum(a * a, x1), x1));
};
} // namespace

TEST_CASE("rows: what needs of the others only the same row takes turns with them", "[fuse][graph][rows]") {
  tensor const x = waves({256, 1000}, 0.1), y = waves({256, 1000}, 0.7);
  ran const s = run(softmax, x, y);
  CHECK(s.apart < 1e-6);
  CHECK(s.groups == 1);
  CHECK(s.nests >= 3);
  CHECK(s.stages == 1);
  CHECK(s.memory < 32768); // a few rows instead of 256
  CHECK(run(log_softmax, x, y).apart < 1e-6);
  CHECK(run(log_softmax, x, y).stages == 1);
  CHECK(run(logsumexp, x, y).apart < 1e-6);
  CHECK(run(logsumexp, x, y).stages == 1);
  CHECK(run(unit, x, y).apart < 1e-6);
  CHECK(run(unit, x, y).stages == 1);
  ran const g = run(vv::grad<0, 1>(attention), x, y);
  CHECK(g.apart < 1e-5);
  CHECK(g.stages == 1);
  CHECK(g.memory < 65536);
  tensor const w = waves({1000}, 0.3), b = waves({1000}, 0.5);
  auto const norm = [](tensor const& a, tensor const& c, tensor const& d) {
    return vv::layer_norm(a, vv::shape<1000>, c, d);
  };
  ran const n = run(norm, x, w, b);
  CHECK(n.apart < 1e-5);
  CHECK(n.stages == 1);
  ran const dn = run(vv::grad<0, 1, 2>([&](tensor const& a, tensor const& c, tensor const& d, tensor const& e) {
                       return vv::sum(norm(a, c, d) * e);
                     }),
                     x, w, b, y);
  CHECK(dn.apart < 1e-3); // columns of 256 sums
  CHECK(dn.groups >= 1);
}

TEST_CASE("rows: where a later nest needs all rows, none takes turns", "[fuse][graph][rows]") {
  tensor const x = waves({300, 400}, 0.1), y = waves({300, 400}, 0.7);
  auto const columns = [](tensor const& a, tensor const& b) { return vv::softmax(a * b, x0); };
  ran const c = run(columns, x, y);
  CHECK(c.apart < 1e-6);
  auto const all = [](tensor const& a, tensor const& b) {
    tensor const t = vv::exp(a * b);
    return t / vv::sum(t);
  };
  ran const a = run(all, x, y);
  CHECK(a.apart < 1e-6);
  CHECK(a.stages > 1);
  auto const turned = [](tensor const& a, tensor const& b) { // rows of one are columns of the other
    tensor const s = vv::softmax(a * b, x1);
    return vv::softmax(vv::permute(s, dims{1, 0}) * 3.0, x1);
  };
  CHECK(run(turned, x, y).apart < 1e-6);
  CHECK(
      run([](tensor const& a, tensor const& b) { return a * column(vv::sum(b, x1)) + vv::sum(a * vv::sum(b, x0), x0); },
          x, y)
          .apart < 1e-4);
  tensor const square = waves({300, 300}, 0.2);
  CHECK(run(
            [](tensor const& a, tensor const& b) { // what is stored by rows is read by columns
              tensor const s = column(vv::sum(vv::exp(a * b), x1));
              return s + vv::permute(s, dims{1, 0}) * a;
            },
            square, square)
            .apart < 1e-4);
}

TEST_CASE("rows: short and long rows, few and many, empty ones", "[fuse][graph][rows]") {
  auto const f = [](tensor const& x, tensor const& y) {
    tensor const t = vv::tanh(x * y), s = vv::softmax(t, x1), m = vv::sum(s * t, x1);
    return std::tuple(s, m, s - column(m) * y, vv::amax(t * s, x1), vv::sum(column(m) * t, x0), vv::sum(vv::exp(m)));
  };
  for (index_t rows : {0, 1, 2, 7, 100, 1025})
    for (index_t columns : {1, 2, 3, 10, 33, 513}) {
      if (rows * columns > 60000) continue;
      tensor const x = waves({rows, columns}, 0.1, dtype::float64), y = waves({rows, columns}, 0.7, dtype::float64);
      INFO(rows << " x " << columns);
      CHECK(run(f, x, y).apart < 1e-11);
    }
  tensor const wide = waves({4, 150000}, 0.1), other = waves({4, 150000}, 0.7);
  CHECK(run(softmax, wide, other).apart < 1e-6); // rows that fill the second cache
  auto const empty = [](tensor const& x, tensor const& y) { return vv::sum(x * y, x1) * 2.0; };
  CHECK(run(empty, waves({600, 0}, 0), waves({600, 0}, 0)).apart == 0);
}

TEST_CASE("rows: more axes, and loops that are longer than rows", "[fuse][graph][rows]") {
  tensor const x = waves({40, 30, 50}, 0.1, dtype::float64), y = waves({40, 30, 50}, 0.7, dtype::float64);
  CHECK(run([](tensor const& a, tensor const& b) { return vv::softmax(a * b, vv::axis<2>); }, x, y).apart < 1e-12);
  CHECK(run([](tensor const& a, tensor const& b) { return vv::softmax(a * b, vv::axis<1>); }, x, y).apart < 1e-12);
  CHECK(run([](tensor const& a, tensor const& b) { return vv::softmax(a * b, vv::axis<0>); }, x, y).apart < 1e-12);
  auto const mixed = [](tensor const& a,
                        tensor const& b) { // one nest runs over pairs of indices as one loop, others not
    tensor const e = vv::exp(a * b), last = vv::sum(e, vv::axis<2>), both = vv::sum(last, x1),
                 whole = e / vv::reshape(both, dims{40, 1, 1});
    return std::tuple(whole, last, vv::sum(whole * a, vv::axis<2>), vv::amax(whole, vv::axis<1>));
  };
  CHECK(run(mixed, x, y).apart < 1e-12);
  CHECK(run(vv::grad<0, 1>([&](tensor const& a, tensor const& b) {
              return vv::sum(std::get<0>(mixed(a, b)) * b) + vv::sum(std::get<3>(mixed(a, b)));
            }),
            x, y)
            .apart < 1e-11);
}

TEST_CASE("rows: slices, joins, reversed rows and broadcast operands", "[fuse][graph][rows]") {
  tensor const x = waves({500, 60}, 0.1, dtype::float64), y = waves({500, 60}, 0.7, dtype::float64),
               w = waves({60}, 0.4, dtype::float64);
  auto const parts = [](tensor const& a, tensor const& b, tensor const& c) {
    tensor const s = vv::softmax(a * c, x1), left = vv::slice(s, x1, 0, 30), right = vv::slice(vv::exp(b), x1, 30, 60);
    tensor const both = vv::cat(std::tuple(right, left), x1), sum = vv::sum(both * a, x1);
    return std::tuple(both / column(sum), vv::slice(s, x0, 1, 500) - vv::slice(s, x0, 0, 499),
                      vv::cat(std::tuple(s, both), x0), vv::sum(both, x0));
  };
  CHECK(run(parts, x, y, w).apart < 1e-11);
  CHECK(run(vv::grad<0, 1, 2>([&](tensor const& a, tensor const& b, tensor const& c) {
              return vv::sum(std::get<0>(parts(a, b, c))) +
                     vv::sum(std::get<1>(parts(a, b, c)) * vv::slice(b, x0, 0, 499));
            }),
            x, y, w)
            .apart < 1e-10);
  auto const shifted = [](tensor const& a, tensor const& b, tensor const&) { // a row needs the row before it
    tensor const s = vv::softmax(a * b, x1),
                 before = vv::cat(std::tuple(vv::slice(b, x0, 0, 1), vv::slice(s, x0, 0, 499)), x0);
    return vv::softmax(s + before, x1);
  };
  CHECK(run(shifted, x, y, w).apart < 1e-12);
  auto const halves =
      [](tensor const& a, tensor const& b,
         tensor const&) { // one half of a buffer is read 250 rows on from where the other is written, and between both
        tensor const e = vv::exp(a * b), low = vv::reshape(vv::slice(e, x0, 0, 250), dims{250, 60}),
                     high = vv::slice(e, x0, 250, 500), both = vv::slice(e, x0, 125, 375);
        tensor const s = vv::softmax(low, x1), t = vv::cat(std::tuple(s, vv::tanh(high + s)), x0),
                     u = vv::slice(t, x0, 125, 375);
        return std::tuple(t, u * vv::reshape(vv::sum(u, x1), dims{250, 1}), vv::softmax(both, x1), e,
                          vv::softmax(vv::slice(e, x0, 1, 251) * s, x1));
      };
  CHECK(run(halves, x, y, w).apart < 1e-12);
}

TEST_CASE("rows: dtypes of their own, integers to the bit", "[fuse][graph][rows][dtype]") {
  tensor const i = waves({700, 90}, 0.1, dtype::int64, 1000), k = waves({700, 90}, 0.7, dtype::int32, 50),
               u = waves({700, 90}, 0.4, dtype::uint8, 0.5);
  auto const whole = [](tensor const& a, tensor const& b, tensor const& c) {
    tensor const p = a * b + c, most = column(vv::amax(p, x1)), total = column(vv::sum(p - most, x1));
    return std::tuple(p * 3 - total, most, vv::sum(p > most - 100, x1), total + b, vv::amin(p - total, x1));
  };
  ran const r = run(whole, i, k, u);
  CHECK(r.apart == 0);
  CHECK(r.groups > 0);
  tensor const f = waves({700, 90}, 0.2), d = waves({700, 90}, 0.5, dtype::float64);
  auto const mixed = [](tensor const& a, tensor const& b, tensor const& c) {
    tensor const s = vv::softmax(a, x1), t = column(vv::sum(s * b, x1)), most = column(vv::amax(c, x1));
    return std::tuple(s * t, vv::where(c == most, s, t), vv::to(s * 100.0, dtype::int32) + c);
  };
  ran const m = run(mixed, f, d, k);
  CHECK(m.apart < 1e-5);
  CHECK(m.groups > 0);
}

TEST_CASE("rows: the value of a row is an operand of one element", "[fuse][graph][rows]") {
  for (dtype const type : {dtype::float32, dtype::float64})
    for (index_t columns : {300, 517, 1031}) { // whole vectors, and what is left
      tensor const x = waves({40, columns}, 0.1, type), y = waves({40, columns}, 0.7, type),
                   r = waves({40, 1}, 0.3, type), q = waves({40, 1}, 0.5, type);
      std::set<std::pair<int, int>> kernels;
      auto agrees = [&](auto const& f) {
        vv::graph const g = vv::make_fx(f)(x, y, r, q);
        auto const fused = vv::fuse(g);
        for (auto const& k : fused.program().keys.kernels)
          if (k.single) kernels.insert({static_cast<int>(k.arithmetic), k.single});
        CHECK(apart(fused(boxed_args(x, y, r, q)), vv::interpret(g, boxed_args(x, y, r, q))) <
              (type == dtype::float64 ? 1e-15 : 1e-6));
      };
      INFO(columns);
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const& d) {
        return std::tuple(a + c, c + b, a - c, c - b, a * c, d * b, c - d, vv::tanh(c) * a - c);
      });
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const&) { return a * c + b; });
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const&) { return c * a + b; });
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const&) { return a * b + c; });
      agrees([](tensor const& a, tensor const&, tensor const& c, tensor const& d) { return a * c + d; });
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const&) { return b - a * c; });
      agrees([](tensor const& a, tensor const& b, tensor const& c, tensor const&) { return c - a * b; });
      agrees([](tensor const& a, tensor const&, tensor const& c, tensor const& d) { return d - c * a; });
      agrees([](tensor const& a, tensor const&, tensor const& c, tensor const& d) { return c * d + a; });
      CHECK(kernels.size() == 10);
    }
}

TEST_CASE("rows: not a number, infinities, and rows of them", "[fuse][graph][rows]") {
  tensor const x = waves({300, 100}, 0.1), y = waves({300, 100}, 0.7);
  float const inf = std::numeric_limits<float>::infinity();
  x.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[1234] = inf;
  for (int k = 0; k < 100; ++k) x.data<float>()[2000 + k] = -inf, y.data<float>()[2000 + k] = 1;
  CHECK(run(softmax, x, y).apart < 1e-6);
  CHECK(run(logsumexp, x, y).apart < 1e-6);
  CHECK(run(vv::grad<0, 1>(attention), x, y).apart < 1e-5);
}

TEST_CASE("rows: inside of branches and loops", "[fuse][graph][rows][cond][scan]") {
  tensor const x = waves({120, 200}, 0.1, dtype::float64), y = waves({120, 200}, 0.7, dtype::float64);
  auto const branch = [](tensor const& a, tensor const& b) {
    return vv::cond(
        vv::sum(a) > 0.0, [&](tensor const& t) { return vv::softmax(t * b, x1); },
        [&](tensor const& t) { return vv::log_softmax(t + b, x1); }, a);
  };
  CHECK(run(branch, x, y).apart < 1e-12);
  CHECK(run(branch, vv::clone(-x), y).apart < 1e-12);
  auto const loop = [](tensor const& c, tensor const& rows) {
    auto const [last, all] = vv::scan(
        [](tensor const& t, tensor const& r) {
          tensor const s = vv::softmax(t * 2.0 + r, x1);
          return std::pair(s, vv::sum(s * r, x1));
        },
        c, rows);
    return std::tuple(last, all);
  };
  CHECK(run(loop, waves({60, 150}, 0.1, dtype::float64), waves({12, 60, 150}, 0.7, dtype::float64)).apart < 1e-11);
}

TEST_CASE("rows: tables of the compiler take the same turns", "[fuse][table][rows]") {
  tensor const x = waves({100, 300}, 0.1), y = waves({100, 300}, 0.7);
  constexpr auto f = vv::fuse<spec<float, 100, 300>, spec<float, 100, 300>>(softmax, vv::table_driven);
  CHECK(apart(f(x, y), softmax(x, y)) < 1e-6);
  using matrix = array<float, 100, 300>;
  using program = decltype(vv::fuse(softmax, vv::table_driven))::program<matrix, matrix>;
  STATIC_REQUIRE(program::value.used.groups == 1);
  STATIC_REQUIRE(program::value.used.stages == 1);
  STATIC_REQUIRE(program::value.workspace < 65536);
  constexpr auto g =
      vv::fuse<spec<float, 100, 300>, spec<float, 100, 300>>(vv::grad<0, 1>(attention), vv::table_driven);
  auto const [dx, dy] = g(x, y);
  auto const [ex, ey] = vv::grad<0, 1>(attention)(x, y);
  CHECK(apart(dx, ex) < 1e-5);
  CHECK(apart(dy, ey) < 1e-5);
  tensor const out = tensor::empty({100, 300}, dtype::float32);
  f.into(out)(x, y);
  CHECK(apart(out, softmax(x, y)) < 1e-6);
  CHECK_THROWS_AS(f.into(x)(x, y), vv::value_error); // nothing is written over what is still read
}

TEST_CASE("rows: what a function writes into its argument is written when all is read", "[fuse][graph][rows]") {
  auto const f = [](tensor const& a, tensor const& b) {
    tensor const s = vv::softmax(a * b, x1);
    vv::copy_(a, s);
    return vv::sum(s * a, x1);
  };
  tensor const x = waves({256, 300}, 0.1), y = waves({256, 300}, 0.7), again = vv::clone(x);
  auto const fast = vv::compile(f, x, y);
  CHECK(apart(fast(x, y), f(again, y)) < 1e-6);
  CHECK(apart(x, again) < 1e-6);
}

TEST_CASE("rows: random chains of pointwise operators and reductions agree with the operators one by one",
          "[fuse][graph][rows]") {
  unsigned state = 1;
  auto pick = [&](int n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 10) % static_cast<unsigned>(n));
  };
  struct shape {
    index_t rows, columns;
  };
  int groups = 0, own = 0;
  for (shape const s : {shape{3, 5}, shape{64, 64}, shape{150, 70}, shape{900, 7}, shape{20, 900}, shape{60, 513}})
    for (int seed = 0; seed < (s.rows * s.columns > 10000 ? 6 : 16); ++seed) {
      dtype const type = seed % 3 ? dtype::float64 : dtype::float32;
      tensor const x = waves({s.rows, s.columns}, 0.1, type), y = waves({s.rows, s.columns}, 0.7, type),
                   row = waves({s.columns}, 0.2, type), rest = waves({s.rows, 1}, 0.3, type);
      auto const f = [&](tensor const& a, tensor const& b, tensor const& c, tensor const& d) {
        std::vector<tensor> v{a, b, c, d};
        auto any = [&] { return v[static_cast<std::size_t>(pick(static_cast<int>(v.size())))]; };
        auto whole = [&] {
          tensor const t = any();
          return t + v[static_cast<std::size_t>(pick(2))] * 0.5;
        };
        for (int k = 0; k < 12; ++k) {
          tensor const p = any(), q = any(), w = whole();
          switch (pick(14)) {
          case 0:
            v.push_back(p + q);
            break;
          case 1:
            v.push_back(p * q * 0.5);
            break;
          case 2:
            v.push_back(vv::tanh(p - q));
            break;
          case 3:
            v.push_back(vv::exp(-vv::abs(p)));
            break;
          case 4:
            v.push_back(p / (1.0 + vv::abs(q)));
            break;
          case 5:
            v.push_back(vv::softmax(w, x1));
            break;
          case 6:
            v.push_back(w - column(vv::amax(w, x1)));
            break;
          case 7:
            v.push_back(column(vv::mean(w * w, x1)));
            break;
          case 8:
            v.push_back(vv::unsqueeze(vv::mean(w, x0), x0));
            break;
          case 9:
            v.push_back(vv::where(p > q, p, q));
            break;
          case 10:
            v.push_back(vv::mean(w));
            break;
          case 11:
            v.push_back(vv::tanh(vv::softmax(w, x0) * static_cast<double>(s.rows)));
            break;
          case 12:
            v.push_back(vv::tanh(w) * column(vv::sum(vv::tanh(w), x1)) * (1.0 / static_cast<double>(s.columns)));
            break;
          default:
            v.push_back(vv::maximum(p, q * 0.9));
            break;
          }
        }
        tensor const one = any(), two = any();
        return std::tuple(v.back(), one, two, vv::sum(whole(), x1), vv::sum(whole(), x0));
      };
      unsigned const from = state;
      vv::graph const g = vv::make_fx(f)(x, y, row, rest);
      auto const fused = vv::fuse(g);
      for (auto const& group : fused.program().groups) ++groups, own += group.own_count;
      INFO("seed " << seed << " (" << from << ") of " << s.rows << " x " << s.columns);
      CHECK(apart(fused(boxed_args(x, y, row, rest)), vv::interpret(g, boxed_args(x, y, row, rest))) <
            (type == dtype::float64 ? 1e-10 : 1e-4));
    }
  CHECK(groups > 25);
  CHECK(own > 50);
}
