// SPDX-License-Identifier: BSL-1.0
// Graphs as C99: the text of every planned kind is compiled by the C compilers of this machine, without a warning, and
// computes what the graph computes.
#include "../emit/samples.hpp"
#include "../sample/bump.hpp"
#include "c_rows.hpp"

#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/indexing.hpp>
#include <varve/linalg.hpp>
#include <varve/special.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using c_rows::check;
using c_rows::program;
using c_rows::row;
using c_rows::row_of;
using emit::counting;
using sample::c_library;
using sample::c_unit;
using sample::values;
using vv::dims;
using vv::dtype;
using vv::extent;
using vv::index_t;
using vv::tensor;

namespace {
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
tensor scalar(double x, dtype t = dtype::float64) { return sample::from({x}, {}, t); }
} // namespace

TEST_CASE("emit_c: programs of every planned kind compute what the graph computes", "[export][emit_c]") {
  std::vector<row> rows;
  for (emit::sample const& s : emit::samples()) {
    if (s.name.substr(0, 5) == "every" || s.name == "picks") continue; // operators that C lacks; places among equals
    rows.push_back(row_of(s.name, s.g, s.in));
  }
  tensor const places({std::int64_t(2), std::int64_t(0), std::int64_t(11)});
  rows.push_back(row_of("picks",
                        [](values const& x) {
                          values r;
                          std::apply([&](auto const&... y) { (r.push_back(y), ...); }, emit::picks(x[0], x[1]));
                          return r;
                        },
                        {counting({12, 30}, dtype::float32, 0.01, -0.5), places}));
  REQUIRE(rows.size() > 25);
  check(rows);
}

TEST_CASE("emit_c: every elementwise operator with a text in C", "[export][emit_c]") {
  std::vector<row> rows;
  std::string refused;
  for (dtype const t : {dtype::float64, dtype::float32, dtype::int32, dtype::int64, dtype::uint8, dtype::bool_})
    for (std::string const& name : vv::ops::names()) {
      auto const* const op = vv::ops::find(name.c_str());
      if (!op || op->kind != vv::op_kind::pointwise || op->node()->arity > 2) continue;
      bool const floats = vv::is_floating(t);
      tensor const x = floats ? counting({33}, t, 0.125, -2) : counting({33}, t, 7, -100),
                   y = floats ? counting({33}, t, 0.5, 0.5) : counting({33}, t, 1, 1);
      auto const f = [&](values const& v) {
        return values{
            (op->node()->arity == 1 ? vv::ops::call(name, {v[0]}) : vv::ops::call(name, {v[0], v[1]}))[0].as<tensor>()};
      };
      try {
        f({x, y});
      } catch (vv::error const&) { continue; } // not of this dtype
      std::string const unit = "op_" + std::to_string(rows.size());
      try {
        rows.push_back(row_of(unit, f, {x, y}));
      } catch (vv::error const& e) {
        CHECK_THAT(e.what(), ContainsText("has no text in C"));
        CHECK_THAT(e.what(), ContainsText(op->node()->name));
        if (t == dtype::float64) refused += name + " ";
      }
    }
  REQUIRE(rows.size() > 150);
  check(rows, "-O0");
  CHECK(refused.find("digamma") != std::string::npos);
  for (char const* known : {"sin ", "erf ", "acos ", "lgamma ", "floor_divide ", "copysign ", "atan2 "})
    CHECK(refused.find(known) == std::string::npos);
}

TEST_CASE("emit_c: numbers become straight-line code", "[export][emit_c]") {
  auto const f = [](values const& x) {
    tensor const s = vv::sin(x[0]), c = vv::cos(x[0]);
    return values{s * x[1] + c * x[2],  s * s - c * c,        vv::where(x[1] > x[2], s, c),
                  x[0] - (x[1] - x[2]), x[0] / (x[1] * x[2]), vv::neg(vv::neg(x[0] - x[1])),
                  x[0] * -0.5 - -2.0};
  };
  row const r = row_of("turn", f, {scalar(0.4), scalar(-1.5), scalar(2.25)});
  check({r, row_of("turn_float", f,
                   {scalar(0.4, dtype::float32), scalar(-1.5, dtype::float32), scalar(2.25, dtype::float32)})});
  CHECK_FALSE(has(r.unit.text.source, "for ("));
  CHECK(has(r.unit.text.source, "const double v0 = sin(x0[0]);"));
  CHECK(has(r.unit.text.source, "y0[0] = v0 * x1[0] + v1 * x2[0];"));
  CHECK(has(r.unit.text.source, "y3[0] = x0[0] - (x1[0] - x2[0]);"));
  CHECK(has(r.unit.text.header, "int turn(const double *x0, const double *x1, const double *x2, double *y0"));
  CHECK(r.unit.text.work == 0);
  CHECK(r.unit.text.stack == 16);
}

TEST_CASE("emit_c: arrays beyond the stack lie in memory of the caller", "[export][emit_c]") {
  auto const f = [](values const& x) {
    tensor const h = vv::tanh(vv::matmul(x[0], x[1])), k = vv::amax(h, vv::axis<0>);
    auto const [last, all] = vv::scan(
        [&](tensor const& u, tensor const& v) {
          tensor const n = vv::tanh(vv::matmul(h, u) + v);
          return std::pair(n, vv::softmax(n, vv::axis<0>));
        },
        k, vv::matmul(h, h));
    return values{last, all, vv::argmax(h, vv::axis<1>)};
  };
  values const x{counting({20, 20}, dtype::float64, 0.02), counting({20, 20}, dtype::float64, 0.01)};
  row const on_stack = row_of("in_place", f, x, {.max_stack = 1 << 20}), elsewhere = row_of("with_work", f, x),
            none = row_of("no_stack", f, x, {.max_stack = 0});
  check({on_stack, elsewhere, none});
  CHECK(on_stack.unit.text.work == 0);
  CHECK(on_stack.unit.text.stack >= elsewhere.unit.text.work);
  CHECK(elsewhere.unit.text.work >= 2 * 20 * 20 * 8);
  CHECK(elsewhere.unit.text.stack < 1000);
  CHECK(
      has(elsewhere.unit.text.header, ("#define WITH_WORK_WORK " + std::to_string(elsewhere.unit.text.work)).c_str()));
  CHECK(has(elsewhere.unit.text.header, "void *work);"));
  CHECK_FALSE(has(on_stack.unit.text.header, "work"));
}

TEST_CASE("emit_c: systems of linear equations, factors and determinants", "[export][emit_c]") {
  auto const f = [](values const& x) {
    tensor const a = x[0], b = x[1], s = vv::matmul(a, vv::transpose(a, vv::axis<-2>, vv::axis<-1>)),
                 l = vv::cholesky(s);
    return values{vv::solve(a, b),
                  l,
                  vv::solve_triangular(l, b, vv::ints<0>{}),
                  vv::solve_triangular(vv::transpose(l, vv::axis<-2>, vv::axis<-1>), b, vv::ints<1>{}, vv::ints<1>{}),
                  vv::det(a),
                  vv::inverse(s)};
  };
  std::vector<row> rows;
  sample::numbers draw(3);
  for (dtype const t : {dtype::float64, dtype::float32})
    for (dims const& batch : {dims{}, dims{2}})
      for (index_t n : {1, 2, 5}) {
        dims a = batch, b = batch;
        a.push_back(n).push_back(n), b.push_back(n).push_back(3);
        for (index_t most : {0, 4096})
          rows.push_back(row_of("linear_" + std::to_string(rows.size()), f,
                                {sample::uniform(a, draw, -1, 1, t), sample::uniform(b, draw, -1, 1, t)},
                                {.max_stack = most}));
        for (row* r : {&rows.back(), &rows.back() - 1}) r->tolerance *= 1e4; // what the condition costs
      }
  check(rows);
  row const singular = row_of("inverts", [](values const& x) { return values{vv::inverse(x[0])}; },
                              {sample::from({2, 1, 1, 2}, {2, 2})});
  row const indefinite = row_of("factors", [](values const& x) { return values{vv::cholesky(x[0])}; },
                                {sample::from({2, 1, 1, 2}, {2, 2})});
  c_library const library({singular.unit, indefinite.unit}, sample::c_compilers()[0]);
  REQUIRE(library.failed() == "");
  for (row const* r : {&singular, &indefinite}) {
    CHECK(library.run(r->unit, r->in, r->expected).first == 0);
    CHECK(library.run(r->unit, {sample::from({1, 2, 2, 4}, {2, 2})}, r->expected).first == 4);
  }
}

TEST_CASE("emit_c: faults are returned", "[export][emit_c][error]") {
  row const picks = row_of("picks", [](values const& x) { return values{vv::gather(x[0], vv::axis<0>, x[1])}; },
                           {counting({7}), sample::from({6, 0, 3}, {3}, dtype::int64)});
  row const loops = row_of("loops",
                           [](values const& x) {
                             return values{vv::while_loop<5>([](tensor const& u) { return vv::sum(u) < 100.0; },
                                                             [](tensor const& u) { return tensor(u * 2.0); }, x[0])};
                           },
                           {scalar(30)});
  row const divides = row_of("divides", [](values const& x) { return values{vv::remainder(x[0], x[1]) + 1}; },
                             {counting({4}, dtype::int64, 3, -5), counting({4}, dtype::int64, 1, 1)});
  CHECK(has(picks.unit.text.header, "1: an index is out of range"));
  for (std::string const& compiler : sample::c_compilers()) {
    c_library const library({picks.unit, loops.unit, divides.unit}, compiler);
    REQUIRE(library.failed() == "");
    auto const code = [&](row const& r, values const& x) { return library.run(r.unit, x, r.expected).first; };
    CHECK(code(picks, picks.in) == 0);
    CHECK(code(picks, {picks.in[0], sample::from({6, 0, 7}, {3}, dtype::int64)}) == 1);
    CHECK(code(picks, {picks.in[0], sample::from({6, 0, -1}, {3}, dtype::int64)}) == 1);
    CHECK(code(loops, loops.in) == 0);
    CHECK(code(loops, {scalar(1)}) == 2);
    CHECK(code(divides, divides.in) == 0);
    CHECK(code(divides, {divides.in[0], counting({4}, dtype::int64, 1, -1)}) == 3);
  }
}

TEST_CASE("emit_c: a self-test repeats what was recorded", "[export][emit_c]") {
  tensor const x = counting({5}, dtype::float64, 0.3), w = counting({40, 5}, dtype::float64, 0.02);
  vv::graph const g = vv::make_fx([](tensor const& a, tensor const& b) {
    tensor const h = vv::tanh(vv::mv(b, a));
    return std::tuple(vv::sum(h * h), vv::argmax(h, vv::axis<0>),
                      vv::mv(vv::transpose(b, vv::axis<0>, vv::axis<1>), h));
  })(x, w);
  vv::graph const sized = vv::make_fx(
      [](tensor const& a, tensor const& b) {
        tensor const h = vv::tanh(vv::mv(b, a));
        return std::tuple(vv::sum(h * h), vv::mv(vv::transpose(b, vv::axis<0>, vv::axis<1>), h));
      },
      vv::tracing::symbolic)(x, w);
  tensor const y = counting({3}, dtype::float64, 0.3), v = counting({7, 3}, dtype::float64, 0.02);
  std::string name = (std::filesystem::temp_directory_path() / "varve_c_XXXXXX").string();
  std::filesystem::path const at = ::mkdtemp(name.data());
  auto const exits = [&](vv::c_program const& c, std::string const& source, std::string const& compiler) {
    std::ofstream(at / "gate.h") << c.header;
    std::ofstream(at / "gate.c") << source;
    std::ofstream(at / "test.c") << c.test;
    std::string const how = compiler == "tcc" ? "-std=c99 -Wall -Werror" : c_library::strict;
    return std::system(
        ("cd " + at.string() + " && " + compiler + " " + how + " gate.c test.c -lm -o test 2>log && ./test >out")
            .c_str());
  };
  vv::graph const extreme = vv::make_fx(
      [](tensor const& a, tensor const& i) { return std::tuple(vv::exp(a), i + 9007199254740992); })(x, vv::arange(3));
  tensor const large = sample::from({1000, -1000, 0, NAN, INFINITY}, {5});
  struct tested {
    vv::c_program c;
    std::string is, becomes;
  };
  vv::c_program const limits = vv::emit_c(extreme, "gate", {.test = vv::boxed_args(large, vv::arange(3))});
  for (auto const& [c, is, becomes] :
       {tested{vv::emit_c(g, "gate", {.max_stack = 0, .test = vv::boxed_args(x, w)}), "tanh(", "atan("},
        tested{vv::emit_c(sized, "gate", {.test = vv::boxed_args(y, v)}), "tanh(", "atan("},
        tested{limits, "exp(x0[i0])", "fmin(exp(x0[i0]), 1e300)"}, // where infinity was recorded
        tested{limits, "9007199254740992", "9007199254740993"}})   // as a double it would be the same
    for (std::string const& compiler : sample::c_compilers()) {
      CHECK(exits(c, c.source, compiler) == 0);
      std::string wrong = c.source;
      REQUIRE(has(wrong, is.c_str()));
      wrong.replace(wrong.find(is), is.size(), becomes);
      CHECK(exits(c, wrong, compiler) != 0);
    }
  for (char const* called : {"k", "bad", "differs", "differs_whole", "in0", "out0", "memory", "y", "most", "rounds"}) {
    vv::c_program c = vv::emit_c(sized, called, {.test = vv::boxed_args(y, v)});
    std::ofstream(at / (std::string(called) + ".h")) << c.header;
    CHECK(exits(c, c.source, sample::c_compilers()[0]) == 0);
  }
  std::filesystem::remove_all(at);
  CHECK_THROWS_WITH(vv::emit_c(extreme, "gate", {.test = vv::boxed_args(vv::zeros({5}), vv::arange(3))}),
                    ContainsText("argument 0 of the self-test is float32, where the program takes float64"));
  CHECK(vv::emit_c(g, "gate").test.empty());
}

namespace {
/// x * x + 1, as a program's own operator says it in C.
struct rise_t : vv::promoting_operator<rise_t> {
  static constexpr auto op_name = "rise";
};
constexpr rise_t rise{};
} // namespace
template <>
struct varve::rules<rise_t> : varve::rule::pointwise<1> {
  static constexpr char const* c99 = "$0 * $0 + 1";
  static constexpr auto kernel(auto x) { return x * x + decltype(x)(1); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return 2.0 * x; }
};

TEST_CASE("emit_c: an operator of the program's own says what it is in C", "[export][emit_c]") {
  row const r =
      row_of("own", [](values const& x) { return values{rise(vv::sin(x[0])) * 2.0}; }, {counting({6}, dtype::float64)});
  check({r});
  CHECK(has(r.unit.text.source, "(v0 * v0 + 1) * 2.0"));
}

TEST_CASE("emit_c: constants, and the state of an exported program, are part of the text", "[export][emit_c]") {
  struct {
    tensor w = counting({4, 3}, dtype::float64, 0.07), b = counting({4}, dtype::float64, 0.2);
  } m;
  auto const f = [&m](tensor const& x) { return vv::tanh(vv::mv(m.w, x) + m.b); };
  tensor const x = counting({3}, dtype::float64, 0.4);
  vv::boxed_args constants;
  vv::graph const g = vv::make_fx(f).with_captures(constants, x);
  vv::exported_program const p = vv::export_program(f, {.state = {vv::parameter("w", m.w), vv::buffer("b", m.b)}})(x);
  tensor const y = f(x);
  row captured{{"captured", vv::emit_c(g, "captured", {.constants = constants}), 1, 1}, {x}, {y}, 1e-14},
      exported{{"exported", vv::emit_c(p, "exported", {.test = vv::boxed_args(x)}), 1, 1}, {x}, {y}, 1e-14};
  check({captured, exported});
  CHECK(has(exported.unit.text.header, "int exported(const double *x0, double *y0);"));
  CHECK(has(exported.unit.text.test, "exported(exported_in0, exported_out0)"));
  auto const rows = [&m](tensor const& v) {
    return vv::tanh(vv::matmul(v, vv::transpose(m.w, vv::axis<0>, vv::axis<1>)) + m.b);
  };
  vv::exported_program const batches = vv::export_program(
      rows, {.dynamic_shapes = {{vv::dynamic_dim("n"), vv::dim_static}},
             .state = {vv::parameter("w", m.w), vv::buffer("b", m.b)}})(counting({5, 3}, dtype::float64));
  c_unit const batch{"batches", vv::emit_c(batches, "batches"), 1, 1};
  c_library const library({batch}, sample::c_compilers()[0]);
  REQUIRE(library.failed() == "");
  for (index_t n : {2, 5, 17}) {
    tensor const v = counting({n, 3}, dtype::float64);
    auto const [code, got] = library.run(batch, {v}, {rows(v)}, {static_cast<std::size_t>(n)});
    CHECK(code == 0);
    CHECK(sample::greatest_difference(got, {rows(v)}) < 1e-14);
  }
  vv::graph const open =
      vv::make_fx([](tensor const& v, tensor const& w) { return vv::mv(w, v); }, vv::tracing::symbolic)(x, m.w);
  CHECK_THROWS_WITH(vv::emit_c(open, "open", {.constants = vv::boxed_args(m.w)}),
                    ContainsText("a constant has a symbolic size"));
  auto const counts = [&m](tensor const& v) {
    vv::add_(m.b, 1.0);
    return v * 2.0;
  };
  CHECK_THROWS_WITH(vv::emit_c(vv::export_program(counts, {.state = {vv::buffer("b", m.b)}})(x), "counts"),
                    ContainsText("writes into its state"));
  CHECK_THROWS_WITH(vv::emit_c(g, "f", {.constants = vv::boxed_args(x, x, x, x)}), ContainsText("more constants"));
  CHECK_THROWS_WITH(vv::emit_c(g, "f", {.constants = vv::boxed_args(x)}), ContainsText("another dtype or shape"));
}

TEST_CASE("emit_c: small arrays become numbers if asked", "[export][emit_c]") {
  auto const f = [](values const& x) { // a rotation, which has zeros and ones
    tensor const c = vv::reshape(vv::cos(x[0]), dims{1}), s = vv::reshape(vv::sin(x[0]), dims{1}),
                 zero = vv::zeros({1}, dtype::float64), one = vv::ones({1}, dtype::float64);
    tensor const r = vv::reshape(
        vv::cat(std::vector<tensor>{c, vv::neg(s), zero, s, c, zero, zero, zero, one}, vv::axis<0>), dims{3, 3});
    tensor const y = vv::mv(r, x[1]), b = vv::to(y > 0.0, dtype::int32);
    return values{y,
                  vv::amax(y),
                  vv::sum(b),
                  vv::sum(vv::matmul(r, r), vv::axis<0>),
                  vv::transpose(r, 0, 1),
                  vv::slice(vv::arange(6), vv::axis<0>, 1, 6, 2) * b,
                  vv::grad([&](tensor const& v) {
                    return vv::sum(vv::slice(v, vv::axis<0>, 1, 3) *
                                   vv::slice(vv::reshape(r, dims{9}), vv::axis<0>, 0, 2));
                  })(vv::ones({3}, dtype::float64))};
  };
  values const x{scalar(0.3), sample::from({1, -2, 0.5}, {3})};
  row const loops = row_of("loops", f, x), numbers = row_of("numbers", f, x, {.unroll = 16}),
            fast = row_of("fast", f, x, {.fast_math = true, .unroll = 16}), some = row_of("some", f, x, {.unroll = 3});
  check({loops, numbers, fast, some});
  CHECK_FALSE(has(fast.unit.text.source, "for ("));
  CHECK(fast.unit.text.source.size() < numbers.unit.text.source.size());
  for (emit::sample const& s : emit::samples()) // of every kind of operator, some of its arrays
    if (s.name == "reductions_double" || s.name == "narrow" || s.name == "functions" || s.name == "hessian") {
      row const r = row_of(s.name, s.g, s.in, {.max_stack = 1 << 20, .unroll = 200});
      check({r}, "-O0");
    }
}

TEST_CASE("emit_c: the text names the nodes of its graph if asked", "[export][emit_c]") {
  vv::graph const g = vv::make_fx([](tensor const& x) { return vv::tanh(x) * vv::tanh(x) + x; })(counting({40}));
  vv::c_program const c = vv::emit_c(g, "gate", {.graph = true});
  CHECK(has(c.source, "%1: float32[40] = tanh(%0)"));
  CHECK(has(c.source, "const float v1 = tanhf(x0[i0]);"));
  CHECK(has(c.header, "(float32[40]) -> (float32[40])"));
  CHECK_FALSE(has(vv::emit_c(g, "gate").source, "%1"));
}

namespace {
/// A program of two sizes, and its arguments.
struct sized_program {
  std::string name;
  program f;
  std::function<values(index_t n, index_t m)> make;
  /// The sizes of arguments that stay numbers: axes of each argument.
  std::vector<std::vector<int>> numbers{};
};
tensor draws(dims const& sizes, dtype t = dtype::float64) {
  static sample::numbers draw(11);
  return sample::uniform(sizes, draw, -1, 1, t);
}
/// Compiles programs by each compiler for all sizes, and compares with eager results.
void check_sizes(std::vector<sized_program> const& all, std::string const& flags = "-O1") {
  std::vector<c_unit> units;
  std::vector<vv::graph> graphs;
  for (sized_program const& p : all) {
    INFO(p.name);
    values const in = p.make(5, 7);
    std::vector<std::vector<vv::dim_dynamic>> policies;
    for (tensor const& t : in) policies.emplace_back(static_cast<std::size_t>(t.dim()), vv::dim_dynamic::duck);
    for (std::size_t k = 0; k < p.numbers.size(); ++k)
      for (int axis : p.numbers[k]) policies[k][static_cast<std::size_t>(axis)] = vv::dim_dynamic::fixed;
    graphs.push_back(vv::make_fx(p.f, vv::tracing::symbolic(policies))(in));
    units.push_back(
        {p.name, vv::emit_c(graphs.back(), p.name), static_cast<int>(in.size()), static_cast<int>(p.f(in).size())});
  }
  for (std::string const& compiler : sample::c_compilers()) {
    c_library const library(units, compiler, flags);
    REQUIRE(library.failed() == "");
    for (std::size_t k = 0; k < all.size(); ++k)
      for (auto const& [n, m] : {std::pair<index_t, index_t>{5, 7}, {2, 3}, {8, 2}, {33, 50}}) {
        INFO(compiler << ": " << all[k].name << " of " << n << " and " << m << "\n"
                      << units[k].text.source.substr(0, 4000));
        values const in = all[k].make(n, m), expected = all[k].f(in);
        std::vector<std::size_t> sizes;
        vv::boxed_args x;
        for (tensor const& t : in) x.push_back(t);
        for (index_t s : vv::c99::sizes_in(graphs[k], x, units[k].text.sizes))
          sizes.push_back(static_cast<std::size_t>(s));
        bool const narrow = std::any_of(in.begin(), in.end(), [](auto& t) { return t.dtype() == dtype::float32; });
        auto const [code, got] = library.run(units[k], in, expected, sizes);
        CHECK(code == 0);
        CHECK(sample::greatest_difference(got, expected) <= (narrow ? 1e-5 : 1e-12));
      }
  }
}
values pair(tensor const& a, tensor const& b) { return {a, b}; }
} // namespace

TEST_CASE("emit_c: sizes are arguments: loops", "[export][emit_c]") {
  auto const matrix = [](dtype t) { return [t](index_t n, index_t m) { return values{draws({n, m}, t)}; }; };
  auto const vectors = [](index_t n, index_t m) { return pair(draws({n}), draws({m})); };
  program const softmax = [](values const& x) { return values{vv::softmax(x[0], vv::axis<1>)}; };
  check_sizes({
      {"broadcasts", [](values const& x) { return values{vv::tanh(x[0]) * x[1] + x[2], x[1] - 0.5}; },
       [](index_t n, index_t m) { return values{draws({n, m}), draws({m}), draws({n, 1})}; }},
      {"sums",
       [](values const& x) {
         tensor const y = x[0] * x[0];
         return values{vv::sum(y, vv::axis<0>),
                       vv::sum(y, vv::axis<1>),
                       vv::sum(y),
                       vv::mean(x[0], vv::axis<0>),
                       vv::logsumexp(x[0], vv::axis<1>),
                       vv::layer_norm(x[0], dims{x[0].sizes()[1]})};
       },
       matrix(dtype::float64)},
      {"rows", softmax, matrix(dtype::float64)},
      {"narrow_rows", softmax, matrix(dtype::float32)},
      {"greatest",
       [](values const& x) {
         tensor const y = vv::sin(x[0]);
         return values{vv::amax(y, vv::axis<0>), vv::amin(y), vv::argmax(y, vv::axis<1>), vv::argmax(y, vv::axis<0>)};
       },
       matrix(dtype::float32)},
      {"joins",
       [](values const& x) {
         tensor const tail = vv::slice(x[1], vv::axis<0>, 1, x[1].sizes()[0]), both = vv::cat(std::tuple(x[0], tail));
         return values{both * 2.0, vv::slice(both, vv::axis<0>, 1, x[0].sizes()[0])};
       },
       vectors},
      {"views",
       [](values const& x) {
         extent const n = x[0].sizes()[0], m = x[0].sizes()[1];
         tensor const y = vv::transpose(vv::exp(x[0]), vv::axis<0>, vv::axis<1>);
         return values{vv::reshape(y, dims{n * m}),
                       vv::reshape(vv::expand(vv::reshape(x[0], dims{n, 1, m}), dims{n, 2, m}), dims{2 * n, m}) + 1.0};
       },
       matrix(dtype::float64)},
      {"counts",
       [](values const& x) {
         extent const n = x[0].sizes()[0];
         return values{vv::arange(n) * vv::to(x[0] > 0.0, dtype::int64), vv::sum(vv::to(x[0] > 0.0, dtype::int32)),
                       x[0] / vv::scalar_tensor(n), vv::ones({n}, dtype::float64)};
       },
       vectors},
      {"picks",
       [](values const& x) {
         tensor const i = vv::to(vv::abs(x[1]) * 1.9, dtype::int64), y = vv::tanh(x[0]);
         return values{vv::gather(y, vv::axis<0>, i), vv::scatter_add(y, vv::axis<0>, i, x[1])};
       },
       vectors},
      {"slopes",
       [](values const& x) {
         return values{vv::grad([&](tensor const& v) {
           extent const n = v.sizes()[0];
           tensor const d = vv::slice(v, vv::axis<0>, 1, n) - vv::slice(v, vv::axis<0>, 0, n - 1);
           return vv::sum(d * d * d) + vv::sum(vv::slice(v, vv::axis<0>, 1, n - 1) * 2.0);
         })(x[0])};
       },
       vectors},
  });
}

TEST_CASE("emit_c: sizes are arguments: products, loops of functions, branches, gradients", "[export][emit_c]") {
  program const loss = [](values const& x) { // inputs [n, 3], targets [n], weights
    auto const f = [&](tensor const& w, tensor const& v, tensor const& b) {
      tensor const h = vv::tanh(vv::matmul(x[0], w) + b), e = vv::mv(h, v) - x[1];
      return vv::mean(e * e);
    };
    auto const [dw, dv, db] = vv::grad(f, vv::argnums<0, 1, 2>)(x[2], x[3], x[4]);
    return values{f(x[2], x[3], x[4]), dw, dv, db};
  };
  auto const network = [](dtype t) {
    return [t](index_t n, index_t) {
      return values{draws({n, 3}, t), draws({n}, t), draws({3, 4}, t), draws({4}, t), draws({4}, t)};
    };
  };
  check_sizes({
      {"products", [](values const& x) { return values{vv::tanh(vv::matmul(x[0], x[1])), vv::matmul(x[0], x[2])}; },
       [](index_t n, index_t m) { return values{draws({n, 4}), draws({4, m}), draws({4})}; }},
      {"batches",
       [](values const& x) {
         return values{vv::matmul(x[0], vv::transpose(x[0], vv::axis<-2>, vv::axis<-1>)), vv::matmul(x[0], x[1])};
       },
       [](index_t n, index_t m) { return values{draws({n, 3, m}, dtype::float32), draws({m, 4}, dtype::float32)}; }},
      {"network", loss, network(dtype::float64), {{1}, {}, {0, 1}, {0}, {0}}},
      {"free_network", loss, network(dtype::float32)},
      {"steps",
       [](values const& x) {
         auto const [last, all] = vv::scan(
             [&](tensor const& u, tensor const& v) {
               tensor const w = vv::tanh(u + v) * 0.5;
               return std::pair(w, vv::sum(w) * u);
             },
             x[1], x[0]);
         return values{last, all};
       },
       [](index_t n, index_t m) { return values{draws({n, m}), draws({m})}; }},
      {"back",
       [](values const& x) {
         return values{vv::grad([&](tensor const& c) {
           return vv::sum(vv::scan(
                              [](tensor const& u, tensor const& v) {
                                tensor const w = vv::sin(u * v);
                                return std::pair(w, w);
                              },
                              c, x[0])
                              .first);
         })(x[1])};
       },
       [](index_t n, index_t m) { return values{draws({n, m}), draws({m})}; }},
      {"branches",
       [](values const& x) {
         return values{vv::cond(
             vv::sum(x[0]) > 0.0, [](tensor const& a, tensor const& b) { return vv::tanh(vv::matmul(a, b)); },
             [](tensor const& a, tensor const& b) { return vv::matmul(vv::exp(a), vv::softmax(b, vv::axis<1>)); }, x[0],
             x[1])};
       },
       [](index_t n, index_t m) { return values{draws({n, m}), draws({m, n})}; }},
      {"repeats",
       [](values const& x) {
         return values{vv::while_loop<9>([](tensor const& u) { return vv::sum(u * u) < 100.0; },
                                         [](tensor const& u) { return tensor(u * 2.0 + 0.5); }, x[0])};
       },
       [](index_t n, index_t) { return values{draws({n})}; }},
      {"fields",
       [](values const& x) { return values{vv::relu(vv::conv2d(x[0], x[1], x[2], 2, 1))}; },
       [](index_t n, index_t) { return values{draws({n, 2, 6, 5}), draws({3, 2, 3, 3}), draws({3})}; },
       {{1, 2, 3}, {0, 1, 2, 3}, {0}}},
      {"slopes_of_fields",
       [](values const& x) {
         return values{vv::relu(vv::conv1d(x[0], x[1])), vv::grad([&](tensor const& v) {
                         return vv::sum(vv::sin(vv::conv1d(v, x[1], vv::none, 2, 1)));
                       })(x[0])};
       },
       [](index_t n, index_t) { return values{draws({n, 2, 7}), draws({4, 2, 3})}; },
       {{1, 2}, {0, 1, 2}}},
      {"systems",
       [](values const& x) {
         tensor const a = x[0] + 4.0 * x[2];
         return values{vv::solve(a, x[1]), vv::det(a)};
       },
       [](index_t n, index_t m) {
         return values{draws({n, 3, 3}), draws({n, 3, m}), sample::from({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3})};
       },
       {{1, 2}, {1}, {0, 1}}},
  });
}

TEST_CASE("emit_c: conditions on sizes are checked, and nothing is written if one fails", "[export][emit_c][error]") {
  vv::dim_spec const n = vv::dynamic_dim("n", 3, 40), m = vv::dynamic_dim("m");
  auto const f = [](tensor const& x, tensor const& y) {
    return vv::slice(x, vv::axis<0>, 2, x.sizes()[0]) * vv::sum(y);
  };
  vv::exported_program const p = vv::export_program(f, {.dynamic_shapes = {{n}, {m, n + 1}}})(
      counting({5}, dtype::float64), counting({3, 6}, dtype::float64));
  vv::c_program const c = vv::emit_c(
      p, "tails", {.test = vv::boxed_args(counting({9}, dtype::float64), counting({4, 10}, dtype::float64))});
  CHECK(c.sizes == std::vector<std::string>{"n", "m"});
  CHECK(has(c.header, "int tails(size_t n, size_t m, const double *x0, const double *x1, double *y0"));
  CHECK(has(c.header, "(float64[n], float64[m, n + 1]) -> (float64[n - 2])"));
  CHECK(has(c.header, "unless 3 <= n, n <= 40, 2 <= m"));
  CHECK(has(c.test, "tails(9, 4, tails_in0, tails_in1, tails_out0"));
  c_unit const u{"tails", c, 2, 1};
  for (std::string const& compiler : sample::c_compilers()) {
    c_library const library({u}, compiler);
    REQUIRE(library.failed() == "");
    for (index_t size : {3, 7, 40}) {
      tensor const x = counting({size}, dtype::float64), y = counting({2, size + 1}, dtype::float64), r = f(x, y);
      auto const [code, got] = library.run(u, {x, y}, {r}, {static_cast<std::size_t>(size), 2});
      CHECK(code == 0);
      CHECK(sample::greatest_difference(got, {r}) < 1e-13);
    }
    tensor const some = counting({50}, dtype::float64);
    for (auto const& sizes : std::vector<std::vector<std::size_t>>{{2, 2}, {41, 2}, {7, 1}, {7, SIZE_MAX}, {0, 0}})
      CHECK(library.run(u, {some, some}, {some}, sizes).first == 5);
  }
}

TEST_CASE("emit_c: a size may be named as anything in the text", "[export][emit_c]") {
  auto const f = [](tensor const& x) {
    auto const [last, all] = vv::scan([](tensor const& u, tensor const& v) { return std::pair(vv::sin(u + v), u * v); },
                                      vv::sum(x, vv::axis<0>), x);
    return vv::matmul(all, vv::softmax(last, vv::axis<0>));
  };
  tensor const x = counting({4, 3}, dtype::float64, 0.1);
  std::vector<c_unit> units;
  for (char const* n : {"e", "i", "i0", "sin", "exp", "t1", "t3", "v0", "r0", "s3", "s4", "s5", "s6", "row", "memcpy"})
    for (auto const& [first, second] : {std::pair(n, "n"), {"n_", n}, {n, "n"}}) {
      std::string const name = "named_" + std::to_string(units.size());
      vv::dim_spec const a = vv::dynamic_dim(first), b = vv::dynamic_dim(second);
      units.push_back({name, vv::emit_c(vv::export_program(f, {.dynamic_shapes = {{a, b}}})(x), name), 1, 1});
      CHECK(has(units.back().text.header, (name + "(size_t " + first + ", size_t " + second + ", ").c_str()));
    }
  c_library const library(units, sample::c_compilers()[0]);
  REQUIRE(library.failed() == "");
  for (c_unit const& u : units) {
    auto const [code, got] = library.run(u, {x}, {f(x)}, {4, 3});
    CHECK(code == 0);
    CHECK(sample::greatest_difference(got, {f(x)}) < 1e-13);
  }
}

TEST_CASE("emit_c: decisions by sizes and equal sizes are conditions", "[export][emit_c][error]") {
  auto const f = [](tensor const& x, tensor const& y) { // even sizes, of which one decides
    if (x.sizes()[0] % 2 == 0 && x.sizes()[0] > y.sizes()[0]) return vv::sum(x) * y;
    return vv::sum(y) * y;
  };
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(counting({8}), counting({5}));
  c_unit const u{"even", vv::emit_c(g, "even"), 2, 1};
  c_library const library({u}, sample::c_compilers()[0]);
  REQUIRE(library.failed() == "");
  tensor const some = counting({50});
  for (auto const& [n, m, code] : {std::array{8, 5, 0}, {6, 2, 0}, {40, 39, 0}, {7, 5, 5}, {6, 6, 5}, {6, 7, 5}}) {
    tensor const x = counting({n}), y = counting({m});
    auto const [found, got] = library.run(u, {x, y}, {y}, {static_cast<std::size_t>(n), static_cast<std::size_t>(m)});
    CHECK(found == code);
    if (code == 0) CHECK(sample::greatest_difference(got, {f(x, y)}) < 1e-5);
  }
  // the plan orders the parts of a joined axis
  vv::graph const joined = vv::make_fx(
      [](tensor const& x, tensor const& y) {
        return vv::slice(vv::cat(std::tuple(x, y)), vv::axis<0>, 0, y.sizes()[0]) * 2.0;
      },
      vv::tracing::symbolic)(counting({5}), counting({7}));
  CHECK(has(vv::emit_c(joined, "joined").header, "unless 2 <= s0, 2 <= s1, s0 <= s1."));
  // a graph traced by the compiler also admits 0 and 1
  vv::graph const sums =
      vv::trace_graph([](auto v) { return vv::sum(v * 2.0f); }, vv::meta{dtype::float32, {vv::symbol("n"), 3}});
  c_unit const any{"any", vv::emit_c(sums, "any"), 1, 1};
  c_library const second({any}, sample::c_compilers()[0]);
  REQUIRE(second.failed() == "");
  for (index_t n : {0, 1, 6}) {
    tensor const x = counting({n, 3});
    auto const [found, got] = second.run(any, {x}, {vv::sum(x)}, {static_cast<std::size_t>(n)});
    CHECK(found == 0);
    CHECK(sample::greatest_difference(got, {vv::sum(x) * 2.0}) < 1e-5);
  }
  // differences in the number of bytes
  program const tail = [](values const& x) {
    tensor const h = vv::exp(vv::slice(x[0], vv::axis<0>, 4, x[0].sizes()[0]));
    return values{h / vv::sum(h), vv::amax(h)};
  };
  c_unit const rest{"rest", vv::emit_c(vv::make_fx(tail, vv::tracing::symbolic)(values{counting({9})}), "rest"), 1, 2};
  CHECK(rest.text.work == -1);
  c_library const third({rest}, sample::c_compilers()[0]);
  REQUIRE(third.failed() == "");
  for (index_t n : {3, 5, 9, 20}) {
    values const x{counting({n})}, y = tail(n > 4 ? x : values{counting({9})});
    auto const [found, got] = third.run(rest, x, y, {static_cast<std::size_t>(n)});
    CHECK(found == (n > 4 ? 0 : 5));
    if (n > 4) CHECK(sample::greatest_difference(got, y) < 1e-6);
  }
  // sizes with the same example are one argument
  vv::graph const same = vv::make_fx([](tensor const& x, tensor const& y) { return x * y; },
                                     vv::tracing::symbolic)(counting({8}), counting({8}));
  CHECK(vv::emit_c(same, "same").sizes.size() == 1);
}

TEST_CASE("emit_c: what cannot be written is refused by name", "[export][emit_c][error]") {
  auto const traced = [](auto const& f) { return vv::make_fx(f)(counting({3})); };
  auto const same = [](tensor const& v) { return v * 2.0; };
  auto const sized = [](auto const& f, char const* name) {
    return vv::trace_graph(f, vv::meta{dtype::float32, {vv::symbol(name)}});
  };
  struct refusal {
    vv::graph g;
    char const* name;
    char const* text;
  };
  for (refusal const& r : std::vector<refusal>{
           {sized([](auto v) { return v + 1.0f; }, "x0"), "f", "\"x0\" cannot be the name of a size"},
           {sized([](auto v) { return v + 1.0f; }, "int"), "f", "\"int\" cannot be the name of a size"},
           {sized([](auto v) { return v + 1.0f; }, "f"), "f", "\"f\" cannot be the name of a size"},
           {vv::make_fx([](tensor const& v) { return vv::conv1d(v, vv::ones(1, 1, 2)); },
                        vv::tracing::symbolic)(counting({1, 1, 9})),
            "f", "operator convolution cannot be written with symbolic sizes"},
           {vv::make_fx([](tensor const& v) { return vv::slice(v, vv::axis<0>, 0, v.sizes()[0], 2); },
                        vv::tracing::symbolic)(counting({8})),
            "f", "operator slice has the size"},
           {vv::make_fx([](tensor const& v) { return vv::nonzero(v) * 2; }, vv::tracing::symbolic)(counting({5})), "f",
            "has the size u0, which data decide"},
           {traced([](tensor const& v) { return vv::add_(v, 1.0); }), "f", "writes into its argument"},
           {traced([](tensor const& v) { return sample::bump(v); }), "f", "operator bump"},
           {traced([](tensor const& v) { return vv::digamma(v); }), "f", "operator digamma has no text in C"},
           {traced([](tensor const& v) { return vv::to(v, dtype::float16); }), "f", "float16"},
           {traced([](tensor const& v) { return v + vv::randn({3}); }), "f", "randn"},
           {traced(same), "2f", "cannot be the name"},
           {traced(same), "double", "cannot be the name"},
           {traced(same), "", "cannot be the name"},
           {traced([](tensor const& v) { return vv::sin(v); }), "sinf", "choose another name"},
           {traced([](tensor const& v) { return vv::sin(v); }), "i0",
            "the text gives the name i0 to something else"}}) {
    CHECK_THROWS_WITH(vv::emit_c(r.g, r.name), ContainsText(r.text));
  }
  for (char const* name : {"round", "roundf", "erfl", "hypot", "remainder", "printf", "malloc", "true", "NAN",
                           "INFINITY", "size_t", "int128_t", "INT8_MAX", "isnan", "class", "asm", "_Bool", "__f"})
    CHECK_THROWS_WITH(vv::emit_c(traced(same), name), ContainsText("cannot be the name of a function in C"));
}
