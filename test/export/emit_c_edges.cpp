// SPDX-License-Identifier: BSL-1.0
// Programs at the edges of what C can say: names that could meet, axes without elements, numbers that are none.
#include "c_rows.hpp"

#include <varve/by_name/all.hpp>
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/indexing.hpp>
#include <varve/linalg.hpp>
#include <varve/sorting.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

namespace vv = varve;
using namespace c_rows;
using vv::dims;
using vv::index_t;

namespace {
tensor draws(dims const& sizes) {
  static numbers draw(5);
  return uniform(sizes, draw, -1, 1);
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
} // namespace

TEST_CASE("emit_c: convolutions of any rank beside what uses their results", "[export][emit_c]") {
  std::vector<row> rows;
  auto const add = [&](program const& f, values const& x) {
    rows.push_back(row_of("field_" + std::to_string(rows.size()), f, x));
  };
  program const line = [](values const& x) { return values{vv::relu(vv::conv1d(x[0], x[1]))}; };
  program const plane = [](values const& x) { return values{vv::tanh(vv::conv2d(x[0], x[1]) * 2.0)}; };
  program const back = [](values const& x) {
    return values{vv::sin(vv::conv_transpose1d(x[0], x[1], vv::none, 2, 1))};
  };
  program const slopes = [](values const& x) {
    auto const [dx, dw] = vv::grad([](tensor const& v, tensor const& w) { return vv::sum(vv::sin(vv::conv1d(v, w))); },
                                   vv::argnums<0, 1>)(x[0], x[1]);
    return values{vv::exp(dx), vv::exp(dw)};
  };
  for (index_t n : {3, 5}) { // one place, and three
    add(line, {draws({1, 1, n}), draws({1, 1, 3})});
    add(plane, {draws({1, 2, n, n}), draws({2, 2, 3, 2})});
    add(back, {draws({2, 2, n - 2}), draws({2, 1, 3})});
    add(slopes, {draws({2, 1, n}), draws({2, 1, 3})});
  }
  check(rows);
}

TEST_CASE("emit_c: divisors of the least integers", "[export][emit_c]") {
  std::vector<row> rows;
  program const f = [](values const& x) {
    tensor const y = vv::reshape(x[0], {x[0].numel(), 1});
    return values{vv::gcd(x[0], y), vv::lcm(x[0], y)};
  };
  for (dtype const t : {dtype::int32, dtype::int64, dtype::uint8}) {
    double const least = t == dtype::int32   ? -0x1p31
                         : t == dtype::int64 ? -0x1p63
                                             : 0,
                 one = t == dtype::uint8 ? 255 : -1;
    values const x{from({least, one, 0, 1, 5, 15, 127}, {7}, t)};
    rows.push_back(row_of("divisors_" + std::to_string(rows.size()), f, x));
    vv::boxed_args const fused = vv::fuse(vv::make_fx(f)(x))(vv::boxed_args(x[0]));
    CHECK(greatest_difference(values(fused.begin(), fused.end()), f(x)) == 0);
  }
  check(rows);
}

TEST_CASE("emit_c: matrices with zeros, infinities and NaN", "[export][emit_c]") {
  numbers draw(9);
  std::vector<double> all, regular; // matrices [3, 3]; those that `solve` accepts
  std::vector<double> const some{0, 0, 1, 2, -1, INFINITY, NAN};
  tensor const b = from({1, 0, 2, INFINITY, -1, 1}, {3, 2});
  for (int k = 0; k < 600; ++k) {
    std::vector<double> a;
    for (int e = 0; e < 9; ++e) a.push_back(some[static_cast<std::size_t>(draw() * (k % 2 ? 5 : 7))]);
    all.insert(all.end(), a.begin(), a.end());
    try {
      vv::solve(from(a, {3, 3}), b);
      regular.insert(regular.end(), a.begin(), a.end());
    } catch (vv::error const&) {}
  }
  auto const stacked = [](std::vector<double> const& a) { return from(a, {static_cast<index_t>(a.size()) / 9, 3, 3}); };
  values const x{stacked(all), stacked(regular), b};
  REQUIRE(x[1].sizes()[0] > 100);
  program const f = [](values const& v) {
    tensor const right = vv::expand(v[2], {v[0].sizes()[0], 3, 2});
    return values{vv::det(v[0]), vv::solve(v[1], vv::expand(v[2], {v[1].sizes()[0], 3, 2})),
                  vv::solve_triangular(v[0], right, vv::ints<0>{}), vv::solve_triangular(v[0], right, vv::ints<1>{}),
                  vv::solve_triangular(v[0], right, vv::ints<1>{}, vv::ints<1>{})};
  };
  check({row_of("odd", f, x)});
}

TEST_CASE("emit_c: axes without elements", "[export][emit_c]") {
  auto const other = [](tensor const& x) { return vv::transpose(x, vv::axis<-2>, vv::axis<-1>); };
  std::vector<std::pair<program, std::vector<dims>>> const all{
      {[](values const& x) { return values{vv::inverse(x[0]), vv::det(x[0]), vv::det(vv::tanh(x[0]))}; },
       {{2, 0, 0}, {0, 3, 3}}},
      {[&](values const& x) {
         tensor const y = vv::tanh(x[0]), z = vv::softmax(vv::exp(x[0]) * y, vv::axis<1>);
         return values{vv::matmul(y, other(z)), vv::matmul(other(z), y), vv::sum(y * z), vv::mean(z, vv::axis<0>)};
       },
       {{2, 0}, {0, 2}, {0, 0}, {1, 0}}},
      {[](values const& x) { // a value before the loop, which the loop alone reads
         tensor const rows = vv::sin(vv::slice(vv::ones({5, 1}) * 2.0, vv::axis<0>, 0, x[0].sizes()[0]));
         return values{vv::sum(x[0] * rows, vv::axis<1>), vv::sum(x[0] * vv::exp(vv::sum(rows))), x[0] + rows};
       },
       {{3, 0}, {0, 3}}},
      {[](values const& x) {
         tensor const y = vv::tanh(vv::ones({4}) * 2.0), i = vv::to(vv::reshape(x[0], {0}), dtype::int64);
         return values{vv::gather(y, vv::axis<0>, i), vv::scatter_add(y, vv::axis<0>, i, vv::exp(y)),
                       vv::cat(std::vector<tensor>{x[0], vv::tanh(x[0])}, vv::axis<0>),
                       vv::conv1d(vv::reshape(x[0], {0, 1, 5}), vv::ones({2, 1, 3}, dtype::float64) * y[0])};
       },
       {{0, 3}, {3, 0}}},
      {[&](values const& x) {
         auto const [last, all_] = vv::scan([](tensor const& u, tensor const& v) { return std::pair(u + v, u * v); },
                                            vv::sum(x[0], vv::axis<0>), x[0]);
         return values{last, all_, vv::grad([&](tensor const& v) { return vv::sum(vv::matmul(v, other(v))); })(x[0])};
       },
       {{0, 2}, {2, 0}}}};
  std::vector<row> rows;
  for (auto const& [f, shapes] : all)
    for (dims const& s : shapes)
      for (index_t most : {0, 4096})
        rows.push_back(row_of("empty_" + std::to_string(rows.size()), f, {draws(s)}, {.max_stack = most}));
  for (char const* flags : {"-O0", "-O2"}) check(rows, flags);
}

TEST_CASE("emit_c: work of more bytes than there are addresses is refused", "[export][emit_c][error]") {
  auto const table = [](tensor const& x, tensor const& y) {
    tensor const h = vv::exp(vv::reshape(x, dims{x.sizes()[0], 1}) * y);
    return h / vv::sum(h);
  };
  auto const wide = [&](char const* name, index_t most) {
    vv::dim_spec const n = vv::dynamic_dim("n", 2, most), m = vv::dynamic_dim("m", 2, most);
    tensor const x = draws({5}), y = draws({7});
    vv::exported_program const p = vv::export_program(table, {.dynamic_shapes = {{n}, {m}}})(x, y);
    return c_unit{name, vv::emit_c(p, name), 2, 1};
  };
  c_unit const huge = wide("huge", INT64_MAX), fits = wide("fits", 5000);
  CHECK_FALSE(has(fits.text.header + fits.text.source, "PTRDIFF_MAX"));
  CHECK(has(huge.text.header, "work has less than PTRDIFF_MAX bytes"));
  CHECK(has(huge.text.source, "if (8 * (double)n_ * (double)m_ >= (double)PTRDIFF_MAX) return 0;"));
  for (std::string const& compiler : c_compilers()) {
    c_library const library({huge, fits}, compiler);
    REQUIRE(library.failed() == "");
    auto const side = [](int bits) { return std::vector<std::size_t>(2, std::size_t{1} << bits); };
    CHECK(library.bytes(huge, side(20)) == std::size_t{8} << 40);
    for (int bits : {30, 31, 32, 62}) {
      CHECK(library.bytes(huge, side(bits)) == 0);
      CHECK(library.run(huge, {draws({1}), draws({1})}, {draws({1})}, side(bits)).first == 5);
    }
  }
}

namespace {
tensor called(char const* name, tensor const& x) { return vv::ops::call(name, {x})[0].as<tensor>(); }
} // namespace

TEST_CASE("emit_c: running sums and products, diagonals, and their derivatives", "[export][emit_c]") {
  program const running = [](values const& x) {
    return values{vv::cumsum(x[0], vv::axis<0>), vv::cumprod(x[0], vv::axis<-1>)};
  };
  program const slopes = [](values const& x) {
    return values{vv::grad([](tensor const& v) {
      return vv::sum(vv::sin(vv::cumprod(v, vv::axis<-1>))) + vv::sum(vv::square(vv::cumsum(v, vv::axis<0>)));
    })(x[0])};
  };
  program const diagonals = [](values const& x) {
    tensor const y = vv::transpose(vv::tanh(x[0]), vv::axis<0>, vv::axis<1>);
    return values{called("diagonal", x[0]), called("trace", y), called("diag_embed", y),
                  vv::grad([](tensor const& v) { return vv::sum(vv::square(called("diagonal", v))); })(y)};
  };
  std::vector<row> rows;
  auto const add = [&](program const& f, tensor const& x) {
    rows.push_back(row_of("line_" + std::to_string(rows.size()), f, {x}));
  };
  for (dims const& s : {dims{1}, dims{5}, dims{3, 4}, dims{2, 3, 2}, dims{0, 2}})
    add(running, draws(s)), add(slopes, draws(s));
  for (dims const& s : {dims{1, 1}, dims{3, 4}, dims{4, 3}}) add(diagonals, draws(s));
  for (dtype const t : {dtype::int32, dtype::uint8, dtype::bool_, dtype::float32})
    add(running, from({100, 0, 90, 3, 7, 2}, {2, 3}, t));
  add(running, from({INFINITY, 0, -1, NAN, -0.0, 2}, {2, 3}));
  check(rows);
  // of any size
  tensor const x = draws({3, 4});
  for (program const& f : {running, slopes, diagonals}) {
    c_unit const u{"sized", vv::emit_c(vv::make_fx(f, vv::tracing::symbolic)(values{x}), "sized"), 1,
                   static_cast<int>(f({x}).size())};
    c_library const library({u}, c_compilers()[0]);
    REQUIRE(library.failed() == "");
    for (dims const& s : {dims{2, 3}, dims{5, 9}}) {
      tensor const y = draws(s);
      auto const [code, got] = library.run(
          u, {y}, f({y}), {static_cast<std::size_t>(s[0].number()), static_cast<std::size_t>(s[1].number())});
      CHECK(code == 0);
      CHECK(greatest_difference(got, f({y})) < 1e-13);
    }
  }
  CHECK_THROWS_WITH(
      vv::emit_c(vv::make_fx([](tensor const& v) { return vv::cummax(v, vv::axis<0>).first; })(x), "f"),
      ContainsText("operator running_place (a part of cummax, cummin and logcumsumexp) cannot be written"));
}
