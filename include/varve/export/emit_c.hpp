// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/c_planned_sizes.hpp>
#include <varve/export/c_program.hpp>
#include <varve/export/c_self_test.hpp>
#include <varve/export/element_graph.hpp>
#include <varve/fuse/fast_math.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/pass/inline_calls.hpp>
#include <varve/pass/prepare.hpp>
#include <varve/pass/written_conversions.hpp>

/// @file
/// Graphs as C99 source for machines without varve: no library but `math.h`, no allocation, no state.
///
/// The text is the plan of a fused program, as that of `emit_cpp`, with plain loops in place of SIMD batches. A program
/// of numbers becomes straight-line code.
namespace varve {

namespace c99 {

/// Returns a graph in which inputs `first`, `first + 1`, ... are constants. Throws `value_error` for integers that a
/// double does not represent, and if there are fewer inputs.
template <class G, class Boxed>
VARVE_COLD G with_constants(G const& g, int first, Boxed const& values) {
  int const count = values.size(), inputs = g.regions[0].inputs;
  if (count == 0) return g;
  if (first < 0 || first + count > inputs)
    refuse::argument_is_invalid("emit_c", "there are more constants than arguments of the graph");
  G r = g;
  std::vector<int> now(static_cast<std::size_t>(inputs)); // constants come after the other inputs
  for (int k = 0; k < inputs; ++k) {
    bool const is_constant = k >= first && k < first + count;
    int const to = is_constant ? inputs - count + (k - first) : k < first ? k : k - count;
    now[static_cast<std::size_t>(k)] = to;
    node n = g.nodes[k];
    n.value = static_cast<double>(to);
    if (is_constant) {
      auto const& given = values[k - first];
      if (!varve::detail::are_numbers(n.out.sizes))
        refuse::argument_is_invalid("emit_c", "a constant has a symbolic size in the graph; trace it with "
                                              "dim_dynamic::fixed, or as state of export_program");
      if (given.dtype() != n.out.type || !(given.sizes() == n.out.sizes))
        refuse::argument_is_invalid("emit_c", "a constant has another dtype or shape than the argument");
      auto const v = given.is_contiguous() ? given : varve::detail::contiguous_copy(given);
      n.op = &constant_handle, n.value = static_cast<double>(r.constants.size());
      on_dtype(n.out.type, "emit_c", [&]<class T>() {
        auto const* const x = static_cast<T const*>(v.raw());
        for (index_t e = 0; e < v.numel(); ++e) {
          auto const d = static_cast<double>(x[e]);
          if constexpr (std::is_integral_v<T>)
            if (kernel::cast<T>(d) != x[e])
              refuse::argument_is_invalid("emit_c", "a constant is an integer that a double does not represent");
          if (n.out.sizes.n == 0) n.value = d;
          else r.constants.push_back(d);
        }
      });
    }
    r.nodes[to] = n;
  }
  auto const moved = [&](int& n) {
    if (n < inputs) n = now[static_cast<std::size_t>(n)];
  };
  for (int& e : r.edges) moved(e);
  for (int& e : r.results) moved(e);
  r.regions[0].inputs -= count;
  if (first + count < inputs) r.names = {}; // they would be those of other inputs
  return r;
}
/// Returns a graph of numeric sizes as the planner needs it.
template <class G>
VARVE_COLD G ready(G const& g, c_options const& how) {
  G counted = g;
  for (auto& n : counted.nodes)
    if (n.op == &handle<scalar_tensor_t>) n.op = &sym_numel_handle;
  G const values = values_only(counted);
  G const flat = inline_calls(values);
  G const pure = functionalize(flat, purpose::values);
  if (has_mutation(pure))
    refuse::argument_is_invalid("emit_c",
                                "the graph writes into its argument; write into a clone of it, and return that");
  G const typed = as_traced<>(pure);
  G const ready = prepare(typed);
  G const numbers = how.unroll > 0 ? as_numbers(ready, how.unroll) : ready;
  return how.fast_math ? varve::detail::relaxed<>(numbers) : numbers;
}
} // namespace c99

/// Returns a graph as C99: `c_program const c = emit_c(make_fx(f)(x), "gate");` writes the function `int gate(const
/// float *x0, ..., float *y0, ...)`. It is the program that `fuse` would make of the graph, as plain loops.
///
/// The text needs nothing but `math.h`. It allocates nothing, has no state, and compiles as C99 with `-Wall -Wextra
/// -pedantic`. Values are computed in their own dtype. Results agree with those of `interpret` up to rounding, since
/// sums may be reordered; compile with `-ffp-contract=off` to exclude the compiler's own contractions.
///
/// Symbolic sizes (`make_fx(f, tracing::symbolic)`, `export_program` with `dynamic_shapes`) are the first arguments:
/// `int gate(size_t n, const float *x0, ..., float *y0, ...)`, one for each symbol, in the order of their first
/// appearance. The function checks the conditions on sizes that the trace recorded, and returns 5 if one fails.
///
/// Throws `value_error` for sizes that data decide, for graphs that write into their arguments, for operators that
/// cannot be written as C, and for names that C cannot have; `dtype_error` for dtypes other than bool, uint8, int32,
/// int64, float32 and float64. An operator of another program needs `rules<>::c99`.
template <class G>
  requires std::is_same_v<G, graph>
c_program emit_c(G const& g, std::string const& name, c_options const& how = {}) {
  int const last = g.regions[0].inputs - how.constants.size();
  G const whole = c99::with_constants(g, how.first_constant < 0 ? last : how.first_constant, how.constants);
  bool const is_sized = varve::detail::is_symbolic(whole);
  G better = !is_sized ? c99::ready(whole, how)
                       : varve::detail::on_samples("emit_c", c99::planned_sizes::of(whole),
                                                   [&how](graph const& of, int) { return c99::ready(of, how); });
  if (is_sized) c99::planned_sizes::add_guards(better, whole);
  c_program r = c99::file_writer::write(better, name, how);
  if (how.test.size() > 0) {
    c99::check_dtypes(whole, how.test);
    r.test = c99::self_test(how.test, interpret(whole, how.test), name, r, c99::sizes_in(whole, how.test, r.sizes));
  }
  return r;
}
/// Returns an exported program (`varve/export.hpp`) as C99. Its parameters, buffers and constants become constants of
/// the text; its user inputs are the arguments. Throws `value_error` also for programs that write into their state or
/// have effects.
template <class P>
  requires requires(P const& p) {
    p.state;
    p.signature.outputs;
  }
c_program emit_c(P const& p, std::string const& name, c_options how = {}) {
  for (auto const& out : p.signature.outputs)
    if (out.is != std::remove_cvref_t<decltype(out)>::kind::user_output)
      refuse::argument_is_invalid("emit_c", "the program writes into its state or its arguments, or has effects, for "
                                            "which C has no place; return the values");
  how.constants = {}, how.first_constant = 0;
  for (auto const& t : p.state) how.constants.push_back(t);
  return emit_c(p.graph, name, how);
}
/// Returns a graph traced by the compiler as C99.
template <graph_sizes S>
c_program emit_c(static_graph<S> const& g, std::string const& name, c_options const& how = {}) {
  return emit_c(g.thaw(), name, how);
}

} // namespace varve

#pragma GCC diagnostic pop
