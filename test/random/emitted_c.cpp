// SPDX-License-Identifier: BSL-1.0
// Random programs as C99 text: what can be written compiles without a warning and computes what the program computes.
#include "../sample/c_library.hpp"
#include "check.hpp"

#include <varve/fake.hpp>

#include <varve_test.hpp>

using namespace random_programs;

namespace {
struct written {
  std::uint64_t seed;
  bool coarse;
  sample::c_unit unit;
  values in, expected;
  std::vector<std::size_t> sizes{};
};
void check(std::vector<written> const& all) {
  std::vector<sample::c_unit> units;
  for (written const& w : all) units.push_back(w.unit);
  for (std::string const& compiler : sample::c_compilers()) {
    sample::c_library const library(units, compiler, "-O0");
    REQUIRE(library.failed() == "");
    for (written const& w : all) {
      INFO(compiler << ": seed " << w.seed << "\n" << w.unit.text.source);
      auto const [code, got] = library.run(w.unit, w.in, w.expected, w.sizes);
      CHECK(code == 0);
      CHECK(sample::greatest_difference(got, w.expected) <= (w.coarse ? 1e-4 : 1e-10));
    }
  }
}
} // namespace

TEST_CASE("random programs compute in C what they compute in varve", "[random][export][emit_c]") {
  std::vector<written> all;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    program const p = make_program(seed);
    if (p.draws || p.special) continue;
    given const g = inputs_of(p);
    function const f = as_function(p, g);
    try {
      values const y = f(g.arguments);
      held const before(g.arguments);
      std::string const name = "program_" + std::to_string(seed);
      varve::c_program text = varve::emit_c(varve::make_fx(f)(g.arguments), name,
                                            {.max_stack = seed % 3 ? 4096 : 0, .unroll = seed % 2 ? 0 : 64});
      all.push_back({seed,
                     is_coarse(p),
                     {name, std::move(text), static_cast<int>(g.arguments.size()), static_cast<int>(y.size())},
                     inputs_of(p).arguments,
                     y});
    } catch (varve::error const&) {} // of complex numbers, writes into arguments, ...
  }
  REQUIRE(all.size() > 40);
  check(all);
}

TEST_CASE("random programs with sizes as arguments compute in C what they compute in varve",
          "[random][export][emit_c]") {
  std::vector<written> all;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    program const p = make_program(seed);
    if (p.draws || p.special) continue;
    given const g = inputs_of(p);
    function const f = as_function(p, g);
    try {
      values const y = f(g.arguments);
      held const before(g.arguments);
      std::string const name = "sized_" + std::to_string(seed);
      varve::graph const traced = varve::make_fx(f, varve::tracing::symbolic)(g.arguments);
      varve::c_program text = varve::emit_c(traced, name);
      if (text.sizes.empty()) continue;
      varve::boxed_args in;
      for (auto const& t : g.arguments) in.push_back(t);
      std::vector<std::size_t> sizes;
      for (varve::index_t n : varve::c99::sizes_in(traced, in, text.sizes))
        sizes.push_back(static_cast<std::size_t>(n));
      all.push_back({seed,
                     is_coarse(p),
                     {name, std::move(text), static_cast<int>(g.arguments.size()), static_cast<int>(y.size())},
                     inputs_of(p).arguments,
                     y,
                     sizes});
    } catch (varve::error const&) {} // sizes that are divided, complex numbers, writes into arguments, ...
  }
  REQUIRE(all.size() > 15);
  check(all);
}
