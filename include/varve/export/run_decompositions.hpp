// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/exported_program.hpp>
#include <varve/trace/core_decompositions.hpp>

namespace varve {

/// Returns the same program with operators replaced by their decompositions:
/// `run_decompositions(p, decomposition<sigmoid_t>(f), ...)`. Functions of higher-order operators are included. Inputs,
/// outputs, ranges of sizes and guards are those of `p`; the state is shared with `p`. Without a table it uses
/// `core_decompositions`, which removes the operators that PyTorch's core set lacks. Custom functions stay calls; the
/// bodies that compute their values are decomposed. Errors are those of `decompose`.
template <class... D>
exported_program run_decompositions(exported_program const& p, D const&... table) {
  exported_program r = p;
  if constexpr (sizeof...(D) == 0) r.graph = decompose(p.graph, core_decompositions);
  else r.graph = decompose(p.graph, table...);
  return r;
}

} // namespace varve

#pragma GCC diagnostic pop
