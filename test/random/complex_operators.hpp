// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Rows of the table for complex numbers: made of two real values, computed with, and taken apart again. Some programs
/// draw from them.
#include "operators.hpp"

#include <varve/complex.hpp>

namespace random_programs {
inline std::vector<row> const& complex_rows() {
  using enum kind;
  static std::vector<row> const rows{
      {"complex", pointwise, "ff", true, "vv::complex({0}, vv::to({1}, {0}.dtype()))", nullptr,
       [](values const& x, statement const&, std::vector<function> const&) {
         return values{vv::complex(x[0], vv::to(x[1], x[0].dtype()))};
       }},
      {"polar", pointwise, "f", true, "vv::polar(1.5 + {0} * {0}, {0})"},
      {"neg of complex", pointwise, "c", true, "-{0}"},
      {"conj", pointwise, "c", true, "vv::conj({0})"},
      {"exp of complex", pointwise, "c", true, "vv::exp({0})"},
      {"sin of complex", pointwise, "c", true, "vv::sin({0})"},
      {"square of complex", pointwise, "c", true, "vv::square({0})"},
      {"add of complex", pointwise, "cc", true, "{0} + {1}"},
      {"sub of complex", pointwise, "cn", true, "{0} - {1}"},
      {"mul of complex", pointwise, "cc", true, "{0} * {1}"},
      {"mul of complex by a real", pointwise, "cf", true, "{1} * {0}"},
      {"div of complex", pointwise, "cf", true, "{0} / (1.5 + {1} * {1})"},
      {"matmul of complex", pointwise, "cc", true, "vv::matmul({0}, {1})"},
      {"where of complex", pointwise, "bcc", true, "vv::where({0}, {1}, {2})"},
      {"complex by a number", number, "c", true, "{0} * {n0}", choices::any_number},
      {"sum of complex", reduction, "c", true, "vv::sum({0}, {a0}, {k1})", choices::reduce},
      {"mean of complex", reduction, "c", true, "vv::mean({0}, {a0}, {k1})", choices::reduce},
      {"cat of complex", join, "cc", true, "vv::cat(values{{0}, {1}}, {i0})", choices::axis},
      {"real", pointwise, "c", true, "vv::clone(vv::real({0}))"},
      {"imag", pointwise, "c", true, "vv::clone(vv::imag({0}))"},
      {"abs of complex", pointwise, "c", false, "vv::abs({0})"},
      {"angle", pointwise, "c", false, "vv::angle({0})"},
      {"view_as_real", join, "c", true, "vv::clone(vv::view_as_real({0}))"},
  };
  return rows;
}
} // namespace random_programs
