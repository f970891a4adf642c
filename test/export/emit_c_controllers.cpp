// SPDX-License-Identifier: BSL-1.0
// Programs for small machines as C99, in float and double: they compute what the function computes, and their text is
// not longer than one with a statement for each operation, as CasADi writes it.
#include "../sample/c_library.hpp"
#include "../sample/controllers.hpp"

#include <varve/trace/make_fx.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using namespace sample;

namespace {
struct controller {
  char const* name;
  std::function<values(values const&)> run;
  values in;
  double tolerance; // in float64
};
values ramps(std::vector<dims> const& shapes, dtype t) {
  values r;
  numbers draw(7);
  for (dims const& s : shapes) r.push_back(uniform(s, draw, -1, 1, t));
  return r;
}
std::vector<controller> controllers(dtype t) {
  std::vector<controller> all;
  for (index_t n : {2, 3, 6})
    all.push_back({n == 2 ? "arm2" : n == 3 ? "arm3" : "arm6", arm_program, ramps({{n}, {n}, {n}}, t), 1e-12});
  all.push_back(
      {"control", control_program, {from({1, 0.5}, {2}, t), from(std::vector<double>(10, 0), {10}, t)}, 1e-13});
  std::vector<double> rows;
  for (int k = 0; k < 12; ++k)
    for (double v : {0.1, 0.2, k % 3 == 2 ? 0.0 : 5 + 0.1 * k, 0.2 + 0.01 * k}) rows.push_back(v);
  all.push_back({"filter",
                 filter_program,
                 {from({4.8, 1, 0.1, 1}, {4}, t),
                  from({0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 0.2}, {4, 4}, t), from(rows, {12, 4}, t)},
                 1e-12});
  return all;
}
/// The characters of a text with a statement for each operation on numbers and for each constant, as CasADi writes a
/// function of its SX type: `  a12=(a30*a7);`, `  a3=4.2999999999999999e-01;`, `  a3=arg[0]? arg[0][2] : 0;`,
/// `  if (res[0]!=0) res[0][3]=a12;`.
std::size_t statements_text(vv::graph const& g) {
  std::size_t n = 0;
  for (vv::node const& nd : g) {
    auto const elements = static_cast<std::size_t>(vv::numel(nd.out.sizes).number());
    if (nd.op->kind == vv::op_kind::placeholder) n += elements * 29;
    else if (nd.op->kind == vv::op_kind::pointwise) n += elements * (nd.count == 1 ? 15 : 16);
    else if (nd.op->kind == vv::op_kind::constant) n += elements * 28;
  }
  for (int r : g.results) n += static_cast<std::size_t>(vv::numel(g.nodes[r].out.sizes).number()) * 32;
  return n;
}
} // namespace

TEST_CASE("emit_c: an arm, a controller and a filter compute what their functions compute", "[export][emit_c]") {
  for (dtype const t : {dtype::float64, dtype::float32}) {
    std::vector<c_unit> units;
    std::vector<values> expected;
    auto const all = controllers(t);
    for (bool const straight : {false, true})
      for (controller const& c : all) {
        vv::boxed_args constants;
        vv::graph const g = vv::make_fx(c.run).with_captures(constants, c.in);
        std::string const name = std::string(c.name) + (straight ? "_straight" : "");
        expected.push_back(c.run(c.in));
        units.push_back(
            {name, vv::emit_c(g, name, {.fast_math = straight, .unroll = straight ? 128 : 0, .constants = constants}),
             static_cast<int>(c.in.size()), static_cast<int>(expected.back().size())});
        if (straight && name.substr(0, 3) == "arm") CHECK(units.back().text.source.find("for (") == std::string::npos);
      }
    for (std::string const& compiler : c_compilers()) {
      c_library const library(units, compiler);
      REQUIRE(library.failed() == "");
      for (std::size_t k = 0; k < units.size(); ++k) {
        INFO(compiler << ": " << units[k].name);
        controller const& c = all[k % all.size()];
        auto const [code, got] = library.run(units[k], c.in, expected[k]);
        CHECK(code == 0);
        CHECK(greatest_difference(got, expected[k]) <= (t == dtype::float64 ? c.tolerance : 2e-4));
      }
    }
  }
}

TEST_CASE("emit_c: straight-line code is shorter than a statement for each operation", "[export][emit_c]") {
  for (controller const& c : controllers(dtype::float64)) {
    if (std::string(c.name).substr(0, 3) != "arm") continue;
    vv::graph const g = vv::make_fx(c.run)(c.in);
    vv::c_program const text = vv::emit_c(g, c.name, {.fast_math = true, .unroll = 128});
    vv::graph const numbers = vv::as_numbers(vv::prepare(vv::as_traced<>(vv::values_only(g))), 128),
                    same = vv::detail::relaxed<>(numbers);
    INFO(c.name);
    CHECK(same.operations() > 100);
    CHECK(text.source.size() <= statements_text(same));
    CHECK(text.work == 0);
  }
}
