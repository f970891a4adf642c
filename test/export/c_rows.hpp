// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs beside the C that `emit_c` writes of them, which are compiled and compared.
#include "../sample/c_library.hpp"

#include <varve/trace/make_fx.hpp>

#include <functional>
#include <varve_test.hpp>

namespace c_rows {
namespace vv = varve;
using namespace sample;
using vv::dtype;

/// A program beside its text, and what it must compute.
struct row {
  c_unit unit;
  values in, expected;
  double tolerance;
};
inline row row_of(std::string const& name, vv::graph const& g, vv::boxed_args const& in,
                  vv::c_options const& how = {}) {
  row r{{name, vv::emit_c(g, name, how), in.size(), 0}, {}, {}, 0};
  for (tensor const& t : in) r.in.push_back(t);
  for (tensor const& t : vv::interpret(g, in)) r.expected.push_back(t);
  r.unit.results = static_cast<int>(r.expected.size());
  bool wide = true;
  for (tensor const& t : r.expected) wide = wide && t.dtype() != dtype::float32;
  for (tensor const& t : r.in) wide = wide && t.dtype() != dtype::float32;
  r.tolerance = 100 * (wide ? 2.3e-16 : 1.2e-7);
  return r;
}
using program = std::function<values(values const&)>;
inline row row_of(std::string const& name, program const& f, values const& in, vv::c_options const& how = {}) {
  vv::graph const g = vv::make_fx(f)(in);
  vv::boxed_args x;
  for (tensor const& t : in) x.push_back(t);
  return row_of(name, g, x, how);
}
/// Compiles programs by each compiler, and compares.
inline void check(std::vector<row> const& rows, std::string const& flags = "-O1") {
  auto const compilers = c_compilers();
  REQUIRE_FALSE(compilers.empty());
  std::vector<c_unit> units;
  for (row const& r : rows) units.push_back(r.unit);
  for (std::string const& compiler : compilers) {
    c_library const library(units, compiler, flags);
    REQUIRE(library.failed() == "");
    for (row const& r : rows) {
      INFO(compiler << ": " << r.unit.name << "\n" << r.unit.text.source.substr(0, 3000));
      auto const [code, got] = library.run(r.unit, r.in, r.expected);
      CHECK(code == 0);
      CHECK(greatest_difference(got, r.expected) <= r.tolerance);
    }
  }
}
} // namespace c_rows
