// SPDX-License-Identifier: BSL-1.0
// Operators with functions as C99 text: all rows are one library of each C compiler.
#include "../sample/c_library.hpp"
#include "hop_law.hpp"

#include <varve/varve.hpp>

using namespace hop_law;
namespace vv = varve;

TEST_CASE("all operators with functions: the emitted C computes what the program computes", "[laws][hop][export]") {
  std::vector<std::pair<hop_row const*, c_unit>> emitted;
  for (hop_row const& r : hop_rows())
    law(r, "emit_c", [&] {
      std::string const name = "row_" + std::to_string(emitted.size());
      values const x = make(r, 1);
      vv::c_program text = vv::emit_c(vv::make_fx(r.run)(x), name);
      emitted.emplace_back(
          &r, c_unit{name, std::move(text), static_cast<int>(x.size()), static_cast<int>(r.run(x).size())});
      return std::string();
    });
  REQUIRE(emitted.size() > 15);
  std::vector<c_unit> units;
  for (auto const& [r, unit] : emitted) units.push_back(unit);
  for (std::string const& compiler : c_compilers()) {
    c_library const library(units, compiler, "-O0");
    REQUIRE(library.failed() == "");
    for (auto const& [r, unit] : emitted) {
      INFO(compiler << ": " << r->describe() << "\n" << unit.text.source);
      for (std::uint64_t seed : {1, 2, 3}) {
        values const x = make(*r, seed), y = r->run(x);
        auto const [code, got] = library.run(unit, x, y);
        CHECK(code == 0);
        CHECK(difference(got, y) == "");
      }
    }
  }
}
