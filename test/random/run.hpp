// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Walks through a program, calling varve's operators.
#include "carriers.hpp"

namespace random_programs {
/// Values by number; undefined where not computed. A body gets a copy, as a lambda captures handles.
using environment = values;

values run(block const& b, environment around, values const& arguments);

/// A body as a function, of the values around it.
inline function closed(block const& b, environment const& around) {
  auto const shared = std::make_shared<block const>(b);
  return [shared, around](values const& x) { return run(*shared, around, x); };
}
inline values operands_of(statement const& s, environment const& e) {
  values x;
  for (int k : s.operands) x.push_back(e[static_cast<std::size_t>(k)]);
  return x;
}
/// Runs one statement; its results are found in the environment.
inline void run(statement const& s, environment& e) {
  if (listener) listener(s, operands_of(s, e));
  std::vector<function> bodies;
  for (block const& b : s.bodies) bodies.push_back(closed(b, e));
  values const y = s.op->run(operands_of(s, e), s, bodies);
  for (std::size_t k = 0; k < s.results.size() && k < y.size(); ++k) e[static_cast<std::size_t>(s.results[k])] = y[k];
}
inline values run(block const& b, environment around, values const& arguments) {
  for (std::size_t k = 0; k < b.parameters.size(); ++k)
    around[static_cast<std::size_t>(b.parameters[k])] = arguments.at(k);
  for (statement const& s : b.code) run(s, around);
  values y;
  for (int k : b.results) y.push_back(around[static_cast<std::size_t>(k)]);
  return y;
}
/// A program as a function of its arguments.
inline function as_function(program const& p, given const& g) {
  environment e(static_cast<std::size_t>(p.count));
  for (std::size_t k = 0; k < g.captured.size(); ++k) e[static_cast<std::size_t>(g.captured_ids[k])] = g.captured[k];
  block b = p.body;
  b.parameters = g.argument_ids;
  return closed(b, e);
}
} // namespace random_programs
