// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// A program that calls an operator with functions, as an erased function of tensors: what the laws of
/// `test/laws/hop*.cpp` run over. The rows stand in `hop.hpp`.
#include "value.hpp"

#include <functional>
#include <string>

namespace sample {
/// A function of tensors. Every law calls it through this type, so that no law is compiled once for each row.
using program = std::function<values(values const&)>;

/// What holds of a row beside the laws.
enum fact : unsigned {
  plain = 0,
  /// It prints. Each host must print what the program prints, in its order.
  prints = 1,
  /// The operator appears only after writes or effects became values: it is looked for in the exported graph.
  when_exported = 2,
  /// Its results do not depend on its arguments smoothly: no derivative is taken.
  constant = 4
};

/// Laws that a row does not obey, by name (of `*x` all whose names end with x), and a part of the error text that it
/// throws instead.
struct refusal {
  char const* text;
  std::vector<std::string> laws;
  bool holds_of(std::string const& law) const {
    for (std::string const& l : laws)
      if (l == law || (l[0] == '*' && law.ends_with(l.substr(1)))) return true;
    return false;
  }
};

/// One operator with a program that calls it.
struct hop_row {
  /// The operator that a graph of the program must call; empty for a composite.
  char const* op;
  /// What the program does with it.
  char const* what;
  program run;
  /// Shapes of the arguments, which are random numbers of `types` (float64 where there are none).
  std::vector<dims> shapes;
  unsigned facts = plain;
  std::vector<refusal> refused{};
  std::vector<dtype> types{};

  bool is(unsigned f) const { return (facts & f) != 0; }
  /// Part of the error text with which the row refuses a law; null if the law holds.
  char const* refuses(std::string const& law) const {
    for (refusal const& f : refused)
      if (f.holds_of(law)) return f.text;
    return nullptr;
  }
  std::string describe() const { return std::string(op) + " (" + what + ")"; }
};
/// Arguments of a row. Different seeds give different numbers of the same shapes.
inline values make(hop_row const& r, std::uint64_t seed) {
  numbers draw(seed);
  values x;
  for (std::size_t k = 0; k < r.shapes.size(); ++k) {
    dtype const type = r.types.empty() ? dtype::float64 : r.types[k];
    bool const floating = type == dtype::float64;
    x.push_back(uniform(r.shapes[k], draw, floating ? -1.5 : 0, floating ? 1.5 : 40, type,
                        static_cast<memory>((seed + k) % 3)));
  }
  return x;
}

/// Every row. Defined by the one file of a program that includes `hop.hpp`.
std::vector<hop_row> const& hop_rows();
} // namespace sample
