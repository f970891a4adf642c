// SPDX-License-Identifier: BSL-1.0
// Random programs as C99 text: what can be written compiles without a warning and computes what the program computes.
#include "../sample/c_library.hpp"
#include "check.hpp"

#include <varve/trace/make_fx.hpp>

#include <varve_test.hpp>

using namespace random_programs;

TEST_CASE("random programs compute in C what they compute in varve", "[random][export][emit_c]") {
  struct written {
    std::uint64_t seed;
    bool coarse;
    sample::c_unit unit;
    values in, expected;
  };
  std::vector<written> all;
  int refused = 0;
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
    } catch (varve::error const&) { ++refused; } // of complex numbers, writes into arguments, ...
  }
  REQUIRE(all.size() > 40);
  std::vector<sample::c_unit> units;
  for (written const& w : all) units.push_back(w.unit);
  for (std::string const& compiler : sample::c_compilers()) {
    sample::c_library const library(units, compiler, "-O0");
    REQUIRE(library.failed() == "");
    for (written const& w : all) {
      INFO(compiler << ": seed " << w.seed << "\n" << w.unit.text.source);
      auto const [code, got] = library.run(w.unit, w.in, w.expected);
      CHECK(code == 0);
      CHECK(sample::greatest_difference(got, w.expected) <= (w.coarse ? 1e-4 : 1e-10));
    }
  }
}
