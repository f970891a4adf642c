// SPDX-License-Identifier: BSL-1.0
// In-place code in traces: what tensors do is what the functional graph computes (FN-12), traced by the compiler and at
// run time, fused, and compiled.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <random>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

namespace {
constexpr auto matrix = vv::spec<double, 3, 4>;

// Programs of one matrix of 3 x 4, for tensors and traced values.
constexpr auto chain = [](auto const& x) {
  auto y = x * 2;
  vv::add_(y, x), vv::mul_(y, 0.5), vv::sub_(y, x * x), vv::div_(y, 3.0), vv::neg_(y), vv::exp_(y), vv::tanh_(y),
      vv::sqrt_(y), vv::sigmoid_(y), vv::abs_(y), vv::relu_(y), vv::sin_(y), vv::cos_(y);
  return y * x;
};
constexpr auto through_views = [](auto const& x) {
  auto y = x + 1;
  auto const before = vv::exp(y);
  auto const row = vv::select(y, vv::axis<0>, vv::axis<1>);
  auto const some = vv::slice(y, vv::axis<1>, vv::range<1, 3>), odd = vv::slice(y, vv::axis<1>, vv::range<0, 4, 2>);
  auto const turned = vv::transpose(y, vv::axis<0>, vv::axis<1>), flat = vv::reshape(y, vv::shape<12>);
  vv::mul_(row, 3.0);
  vv::add_(some, vv::slice(x * x, vv::axis<1>, vv::range<2, 4>) + vv::sum(some)); // the view has seen the row
  return vv::sum(before) + y * vv::sum(odd) + vv::reshape(flat * flat, vv::shape<3, 4>) +
         vv::transpose(turned * 2, vv::axis<0>, vv::axis<1>);
};
constexpr auto written_views = [](auto const& x) {
  auto y = x * 1;
  vv::copy_(vv::slice(y, vv::axis<1>, vv::range<1, 3>), vv::slice(x, vv::axis<1>, vv::range<0, 2>));
  vv::add_(vv::slice(y, vv::axis<1>, vv::range<0, 4, 3>), 10.0);
  auto const column = vv::select(vv::transpose(y, vv::axis<0>, vv::axis<1>), vv::axis<0>, vv::axis<2>);
  vv::mul_(column, vv::select(x, vv::axis<1>, vv::axis<0>));
  vv::sub_(vv::reshape(y, vv::shape<2, 6>), 1.0);
  auto const copied =
      vv::reshape(vv::transpose(y, vv::axis<0>, vv::axis<1>), vv::shape<12>); // strides cannot say it: a copy
  vv::mul_(copied, 100.0);
  vv::zero_(vv::slice(y, vv::axis<0>, vv::range<1, 1>)); // nothing
  vv::fill_(vv::select(vv::select(y, vv::axis<0>, vv::axis<2>), vv::axis<0>, vv::axis<3>), 7);
  vv::clamp_(vv::select(y, vv::axis<0>, vv::axis<0>), 0.0, 4.0);
  return y + vv::sum(copied);
};
constexpr auto buffer = [](auto const& x) {
  auto total = vv::zeros_like(x);
  for (int k = 0; k < 3; ++k) vv::add_(total, x * double(k));
  auto const same = vv::detach(total);
  vv::add_(same, 1.0);
  return total;
};
constexpr auto kept_before = [](auto const& x) {
  auto y = x * 2;
  auto const old = vv::clone(y), view = vv::detach(y);
  vv::add_(y, 1.0);
  return std::tuple(old, view, y,
                    vv::cond(
                        vv::sum(y) > 0.0,
                        [](auto const& v) {
                          auto t = v * 1;
                          vv::mul_(t, 2.0);
                          return t;
                        },
                        [](auto const& v) { return v * 1; }, y));
};

template <class T>
boxed_args flat(T const& t) {
  boxed_args r;
  vv::tree_for_each([&](auto const& v) { r.push_back(v); }, t);
  return r;
}
std::string differ(boxed_args const& a, boxed_args const& b) {
  if (a.size() != b.size()) return "counts differ";
  for (int k = 0; k < a.size(); ++k)
    if (auto const d = difference(a[k], b[k], 1e-14); d != "") return d;
  return "";
}
template <class F>
void agrees(F const& f) {
  tensor const x = from({0.5, 1, 0.25, -0.75, 2, 1.5, -1, 0.1, 0.3, 0.7, 1.1, -0.2}, {3, 4}), untouched = vv::clone(x);
  boxed_args const want = flat(f(x));
  // by the compiler
  constexpr auto g = vv::trace(F{}, matrix);
  static_assert(!vv::has_mutation(g));
  static_assert(vv::verify(g));
  CHECK(differ(vv::interpret(g.thaw(), boxed_args(x)), want) == "");
  CHECK(differ(flat(vv::fuse<matrix>(F{})(x)), want) == "");
  // at run time, below the operators that views and writes are made of
  vv::graph const recorded = vv::make_fx(f)(x);
  CHECK(vv::has_mutation(recorded));
  CHECK(differ(vv::interpret(recorded, boxed_args(x)), want) == "");
  vv::graph const pure = vv::functionalize(recorded, vv::purpose::values); // some write through detach
  CHECK(vv::verify(pure));
  CHECK_FALSE(vv::has_mutation(pure));
  CHECK(differ(vv::interpret(pure, boxed_args(x)), want) == "");
  CHECK(differ(vv::interpret(vv::optimize(recorded, vv::purpose::values), boxed_args(x)), want) == "");
  CHECK(differ(vv::fuse(recorded)(boxed_args(x)), want) == "");
  auto const fast = vv::compile(f);
  CHECK(differ(flat(fast(x)), want) == "");
  CHECK(differ(flat(fast(x)), want) == "");
  // by the transform, operator by operator
  CHECK(differ(flat(vv::functionalize(f)(x)), want) == "");
  vv::graph const without = vv::make_fx(vv::functionalize(f))(x);
  CHECK(vv::verify(without));
  CHECK_FALSE(vv::has_mutation(without));
  CHECK(differ(vv::interpret(without, boxed_args(x)), want) == "");
  CHECK(difference(x, untouched) == "");
}
} // namespace

TEST_CASE("functionalize: in-place programs traced in both worlds compute what tensors do",
          "[graph][functionalize]") { // FN-12
  agrees(chain);
  agrees(through_views);
  agrees(written_views);
  agrees(buffer);
  agrees(kept_before);
}

TEST_CASE("functionalize: what a graph becomes", "[graph][functionalize]") {
  constexpr auto plain = vv::trace([](auto const& x) { return (x * 2 + x) * x; }, matrix);
  constexpr auto written = vv::trace(
      [](auto const& x) {
        auto y = x * 2;
        vv::add_(y, x);
        return y * x;
      },
      matrix);
  static_assert(vv::equal(plain, written)); // nothing is left of it
  // Equal operations before and after a write are not one.
  auto const twice = [](tensor const& x) {
    tensor const a = x * 2, b = x * 2, before = vv::exp(a);
    vv::add_(a, 1.0);
    return before + vv::exp(a) + vv::exp(b);
  };
  tensor const some = from({1, 2}, {2});
  CHECK(difference(vv::interpret(vv::optimize(vv::make_fx(twice)(some)), boxed_args(some))[0], twice(some)) == "");
  // A view that nobody reads again is not made again, one that is read is made once.
  constexpr auto views = vv::trace(
      [](auto const& x) {
        auto y = x * 2;
        auto const a = vv::slice(y, vv::axis<0>, vv::range<0, 1>), b = vv::slice(y, vv::axis<0>, vv::range<1, 3>);
        (void)a;
        vv::add_(y, 1.0);
        return b * b + vv::sum(y);
      },
      matrix);
  static_assert(views.count(vv::slice) == 3);
  // Dtypes: what is written has the dtype of where it is written.
  constexpr auto rounded = vv::trace(
      [](auto const& x, auto const& i) {
        auto y = x * 1;
        vv::add_(y, i), vv::add_(y, 0.1);
        return y;
      },
      vv::spec<float, 2>, vv::spec<std::int32_t, 2>);
  static_assert(rounded.nodes[rounded.results[0]].out.type == dtype::float32);
  for (vv::node const& n : rounded) CHECK(n.out.type != dtype::float64);
}

TEST_CASE("functionalize: a value keeps its derivative when it is written through detach", "[graph][functionalize]") {
  tensor const x = from({1, 2}, {2});
  auto const hidden = [](tensor const& v) {
    tensor const y = v * 5.0;
    (void)vv::mul_(vv::detach(y), 2.0);
    return y * y;
  };
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(hidden(v)); })(x)) == doubles({100, 200}));
  CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(hidden)(x)), ContainsText("written through detach"));
  CHECK_THROWS_WITH(vv::optimize(vv::make_fx(hidden)(x)), ContainsText("written through detach"));
  vv::graph const values = vv::optimize(vv::make_fx(hidden)(x), vv::purpose::values);
  CHECK(difference(vv::interpret(values, boxed_args(x))[0], hidden(x)) == "");
  auto const read_detached = [](tensor const& v) {
    tensor const y = v * 5.0, part = vv::detach(y);
    (void)vv::mul_(part, 2.0);
    return part * vv::detach(y) * v;
  };
  vv::graph const g = vv::optimize(vv::make_fx(read_detached)(x));
  auto const by_graph = [&](tensor const& v) { return vv::sum(vv::interpret(g, boxed_args(v))[0]); };
  CHECK(elements(vv::grad(by_graph)(x)) == doubles({100, 400}));
}

TEST_CASE("functionalize: arguments that are written", "[graph][functionalize][compile]") {
  auto const f = [](tensor const& x, tensor const& y) {
    vv::add_(x, y);
    tensor const row = vv::select(y, 0, 0);
    vv::mul_(row, 2.0);
    return std::pair{x * y, row};
  };
  tensor const a = from({1, 2, 3, 4}, {2, 2}), b = from({0.5, 0.25, -1, 2}, {2, 2});
  auto const copies = [&] { return std::pair{vv::clone(a), vv::clone(b)}; };
  auto const [wx, wy] = copies();
  auto const want = f(wx, wy);
  vv::graph const pure = vv::functionalize(vv::make_fx(f)(vv::clone(a), vv::clone(b)));
  CHECK(pure.count(vv::copy_) == 2);
  CHECK(vv::verify(pure));
  auto const [gx, gy] = copies();
  CHECK(difference(vv::interpret(pure, boxed_args(gx, gy))[0], want.first) == "");
  CHECK((difference(gx, wx) == "" && difference(gy, wy) == ""));
  CHECK_THROWS_WITH(vv::fuse(pure), ContainsText("writes into its argument") && ContainsText("clone"));
  // compiled: at the trace, and by the program, once each; versions rise
  auto const fast = vv::compile(f);
  auto const [px, py] = copies();
  fast.prepare(px, py);
  CHECK((difference(px, a) == "" && difference(py, b) == ""));
  auto const unprepared = vv::compile(f);
  for (auto const& c : {fast, unprepared, unprepared}) {
    auto const [x, y] = copies();
    auto const before = x.version();
    auto const got = c(x, y);
    CHECK((difference(got.first, want.first) == "" && difference(got.second, want.second) == ""));
    CHECK((difference(x, wx) == "" && difference(y, wy) == ""));
    CHECK(x.version() > before);
  }
  // arguments that share memory run operator by operator
  auto const [s, unused] = copies();
  auto const [t, unused2] = copies();
  auto const shared = fast(s, s), one_by_one = f(t, t);
  CHECK((difference(shared.first, one_by_one.first) == "" && difference(s, t) == ""));
  // and so do those that are written and not row-major, whose reshaped form is a copy
  auto const flat_write = [](tensor const& x) { return vv::add_(vv::reshape(x, dims{4}), 1.0) * 1; };
  auto const fast_flat = vv::compile(flat_write);
  for (int round = 0; round < 2; ++round) {
    tensor const m = vv::transpose(vv::clone(a), 0, 1), row_major = vv::clone(a);
    CHECK(difference(fast_flat(m), vv::reshape(vv::transpose(a, 0, 1), dims{4}) + 1.0) == "");
    CHECK(difference(m, vv::transpose(a, 0, 1)) == "");
    (void)fast_flat(row_major);
    CHECK(difference(row_major, a + 1.0) == "");
  }
  // captured tensors
  tensor const count = vv::zeros({}, dtype::float64);
  auto const counting = vv::compile([&](tensor const& x) {
    vv::add_(count, 1.0);
    return x * count;
  });
  for (int k = 1; k <= 3; ++k) {
    CHECK(difference(counting(a), a * double(k)) == "");
    CHECK(count.item<double>() == k);
  }
  (void)vv::compile([&](tensor const& x) { return x * vv::add_(count, 1.0); }, a);
  CHECK(count.item<double>() == 3); // a trace writes nothing
  // the gradient of a function that writes
  auto const gradient = vv::grad([](tensor const& x) {
    tensor const y = vv::clone(x);
    vv::mul_(vv::select(y, 0, 0), vv::select(x, 0, 1));
    vv::sin_(vv::select(y, 0, 1));
    return vv::sum(y * x);
  });
  auto const fast_gradient = vv::compile(gradient);
  CHECK(difference(fast_gradient(a), gradient(a), 1e-14) == "");
  CHECK(difference(fast_gradient(b), gradient(b), 1e-14) == "");
}

TEST_CASE("functionalize: what cannot be written", "[graph][functionalize]") {
  tensor const x = from({1, 2}, {2});
  auto const in_branch = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return vv::mul_(u, 2.0) * 1; },
        [](tensor const& u) { return u * 1; }, v);
  };
  CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(in_branch)(x)),
                    ContainsText("mul_") && ContainsText("return the new value"));
  // by the tracer of static values, whose messages the compiler shows
  auto const traced = [](auto const& f) { return vv::trace_graph(f, vv::meta{dtype::float32, {3}}); };
  CHECK_THROWS_WITH(traced([](auto v) { return vv::mul_(vv::expand(v, vv::shape<2, 3>), 2.0); }),
                    ContainsText("mul_") && ContainsText("more than once") && ContainsText("clone"));
  CHECK_THROWS_WITH(traced([](auto v) {
                      return vv::select(
                          vv::mul_(vv::transpose(vv::expand(v, vv::shape<2, 3>), vv::axis<0>, vv::axis<1>), 2.0),
                          vv::axis<1>, vv::axis<0>);
                    }),
                    ContainsText("more than once"));
  CHECK_NOTHROW(traced([](auto v) { return vv::mul_(vv::expand(v * 1, vv::shape<1, 3>), 2.0); }));
  CHECK_THROWS_AS(traced([](auto v) { return vv::add_(v * 1, vv::expand(v, vv::shape<2, 3>)); }), vv::shape_error);
  CHECK_THROWS_WITH(traced([](auto v) { return vv::exp_(vv::to(v, vv::type<int>)); }),
                    ContainsText("exp_") && ContainsText("convert"));
  CHECK(traced([](auto v) { return v * vv::add_(vv::zeros_like(v), v); }).count(vv::add) == 1);
  CHECK_THROWS_WITH(traced([](auto v) {
                      auto const zeros = vv::zeros_like(v);
                      return vv::add_(zeros, v);
                    }),
                    ContainsText("variable"));
}

namespace {
/// A random program of writes and reads of views of one buffer.
struct random_program {
  unsigned seed;
  tensor operator()(tensor const& x) const {
    std::mt19937 pick(seed);
    auto const some = [&](int n) { return n > 0 ? static_cast<int>(pick() % static_cast<unsigned>(n)) : 0; };
    std::vector<tensor> all{x * 1, x + 1};
    tensor sum = vv::sum(x);
    for (int step = 0; step < 14; ++step) {
      tensor const v = all[static_cast<std::size_t>(some(static_cast<int>(all.size())))];
      int const d = v.dim() ? some(v.dim()) : 0;
      int const size = v.dim() ? static_cast<int>(v.sizes()[d]) : 1;
      switch (some(8)) {
      case 0:
        if (v.dim() > 1 && size > 0) all.push_back(vv::select(v, d, some(size)));
        break;
      case 1:
        if (v.dim()) {
          int const from = some(size);
          all.push_back(vv::slice(v, d, from, from + some(size - from + 1), 1 + some(2)));
        }
        break;
      case 2:
        if (v.dim() > 1) all.push_back(vv::transpose(v, d, some(v.dim())));
        break;
      case 3:
        all.push_back(vv::reshape(v, dims{v.numel()}));
        break;
      case 4:
        vv::mul_(v, 0.5 + some(3));
        break;
      case 5:
        vv::add_(v, sum);
        break;
      case 6: {
        tensor const other = all[static_cast<std::size_t>(some(static_cast<int>(all.size())))];
        if (other.sizes() == v.sizes()) vv::copy_(v, other * 1 + 0.25);
        break;
      }
      default:
        sum = sum * 0.5 + vv::sum(vv::sin(v));
        break;
      }
    }
    for (tensor const& v : all) sum = sum + vv::sum(vv::cos(v));
    return sum + all[0] + all[1];
  }
};
} // namespace

TEST_CASE("functionalize: random programs on views of two buffers", "[graph][functionalize]") {
  tensor const x = from({0.5, 1, 0.25, -0.75, 2, 1.5, -1, 0.1, 0.3, 0.7, 1.1, -0.2}, {3, 4});
  int with_writes = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    INFO(seed);
    random_program const f{seed};
    tensor const want = f(x);
    vv::graph const pure = vv::functionalize(vv::make_fx(f)(x));
    REQUIRE_FALSE(vv::has_mutation(pure));
    with_writes += vv::has_mutation(vv::make_fx(f)(x));
    CHECK(difference(vv::interpret(pure, boxed_args(x))[0], want, 1e-14) == "");
    CHECK(difference(vv::fuse(pure)(boxed_args(x))[0], want, 1e-12) == "");
    CHECK(difference(vv::functionalize(f)(x), want, 1e-14) == "");
  }
  CHECK(with_writes > 100);
}
