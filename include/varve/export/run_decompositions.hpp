// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/exported_program.hpp>
#include <varve/trace/core_decompositions.hpp>

namespace varve {

/// `run_decompositions(p, decomposition<sigmoid_t>(f), ...)`: the same program with each operator of a table in others,
/// in functions of operators too (EX-13): inputs, outputs, state, ranges of sizes and guards are those of `p`, whose
/// state it shares. Without a table it is `core_decompositions`: what PyTorch's core set of operators does without.
/// Custom functions stay calls; their text for values is decomposed. Errors: those of `decompose`.
template <class... D>
exported_program run_decompositions(exported_program const& p, D const&... table) {
  exported_program r = p;
  if constexpr (sizeof...(D) == 0) r.graph = decompose(p.graph, core_decompositions);
  else r.graph = decompose(p.graph, table...);
  return r;
}

} // namespace varve

#pragma GCC diagnostic pop
