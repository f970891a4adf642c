// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/kernels.hpp>
#include <varve/block/run_graph.hpp>
#include <varve/dispatch/table.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/pass/inline_calls.hpp>
#include <varve/pass/optimize.hpp>
#include <varve/pass/written_conversions.hpp>
#include <varve/plan/tables_of_graph.hpp>

#include <memory>
#include <string>
#include <vector>

/// @file
/// Graphs made at run time, planned and linked to the kernels of tensors. `fuse(graph)` runs them, and so do other
/// kernels that apply the user's functions to blocks.
namespace varve::fusion {

/// The kernels of tensors, which operators use when they are called on tensors, found by name. Every value has its own
/// dtype, so that integers are exact.
class tensor_kernels : public kernel_numbers {
public:
  using kernel_numbers::kernel_numbers;
  static constexpr bool exact_dtypes = true;
  static varve::detail::pointwise_info const& info(op_handle const& op) {
    op_table const* const table = varve::detail::table_of(op);
    if (!table || !table->pointwise)
      refuse::with<missing_rule>((std::string("varve: fuse: operator ") + op.name +
                                  " is not known for tensors; call it on a tensor anywhere in the program")
                                     .c_str());
    return *table->pointwise;
  }
  block_operation operation(step const& s, dtype const* in) {
    varve::detail::pointwise_info const& f = info(*s.op);
    dtype const t = f.comparison ? in[s.count - 1] : s.type;
    if (!f.loops[static_cast<int>(t)]) refuse::dtype_is_not_supported(f.name, name(t));
    return {operator_in(entry(s.op), t), t, f.comparison ? dtype::bool_ : t};
  }
};

/// A planned graph ready to run. It is immutable, so that threads may share it.
struct prepared {
  block_program p;
  std::vector<kernel::loop> kernels;
  std::vector<kernel::detail::reducer> folds;
  std::vector<block_callee> callees;

  block_view view() const {
    return {p.buffers.data(),   p.ports.data(),     p.stages.data(), p.calls.data(), p.bodies.data(),
            p.groups.data(),    p.accesses.data(),  p.places.data(), p.steps.data(), p.sinks.data(),
            p.functions.data(), p.constants.data(), kernels.data(),  folds.data(),   callees.data()};
  }
};

/// Calls from planned graphs: matrix products of any dtype, and operators that have only a tensor implementation.
template <class = void>
struct any_call {
  static void multiply(block_callee const&, call_info const& c, std::byte* const* in, std::byte* out) {
    int const rank = c.out.sizes.n;
    bool const ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    index_t const m = c.out.sizes[rank - 2], n = c.out.sizes[rank - 1], k = c.in[0].sizes[rank - (ta ? 2 : 1)],
                  size = itemsize(c.out.type);
    index_t const count = m * n > 0 ? numel(c.out.sizes).number() / (m * n) : 0;
    for (index_t e = 0; e < count; ++e)
      kernel::matmul<>(c.out.type, m, n, k, {in[0] + e * m * k * size, ta ? 1 : k, ta ? m : 1},
                       {in[1] + e * k * n * size, tb ? 1 : n, tb ? k : 1}, {out + e * m * n * size, n, 1});
  }
  /// Returns the result of an operator of a `library` from its CPU kernel. Its shape is only known afterwards, and must
  /// be the traced one.
  VARVE_COLD static tensor defined_by_library(boxed_op const& op, call_info const& c, boxed_args const& x) {
    tensor const y = redispatch(op, default_keys.below(dispatch_key::inplace_or_view), x);
    if (!(y.sizes() == c.out.sizes)) refuse::shapes_do_not_match(op.name(), y.sizes(), c.out.sizes);
    if (y.dtype() != c.out.type) refuse::dtype_is_not_supported(op.name(), name(y.dtype()));
    return y;
  }
  static void evaluate(block_callee const& callee, call_info const& c, std::byte* const* in, std::byte* out) {
    boxed_args x;
    for (int k = 0; k < c.operands; ++k)
      x.push_back(tensor::from_blob(in[k], c.in[k].sizes, contiguous_strides(c.in[k].sizes), c.in[k].type));
    auto const& op = *static_cast<op_table const*>(callee.table);
    tensor const y = op.eval ? op.eval(c.at, x) : defined_by_library(boxed_op{&op, &c.at}, c, x);
    dims const strides = contiguous_strides(c.out.sizes);
    kernel::copy_strided(c.out.sizes, {static_cast<void*>(out), strides.numbers(), itemsize(c.out.type)},
                         varve::detail::operand_of(y, y.strides().numbers()));
  }
};

/// Plans a graph and links it to kernels. Throws `missing_rule` for operators that have no tensor table, and
/// `value_error` for graphs that write into their arguments.
template <class Kernels = tensor_kernels>
std::shared_ptr<prepared const> prepare_tables(graph const& g);

/// Returns a run-time graph in the form that the planner takes. Throws `value_error` for graphs with symbolic sizes or
/// effects.
template <class G>
G typed_and_optimized(G const& g);

/// Runs a prepared program on the addresses of its arguments and results.
template <class = void>
void run_prepared(prepared const& r, void const* const* arguments, void* const* results);

} // namespace varve::fusion

#if VARVE_DEFINES
namespace varve::fusion {
template <class Kernels>
VARVE_COLD std::shared_ptr<prepared const> prepare_tables(graph const& g) {
  auto r = std::make_shared<dependent<prepared, Kernels>>();
  r->p = plan_blocks<Kernels>(g);
  for (kernel_key const& k : r->p.keys.kernels) {
    if (k.what == kernel_key::kind::chain) r->kernels.push_back(chain_loop<>(k.type));
    else if (k.what == kernel_key::kind::op) r->kernels.push_back(Kernels::info(*k.op).loops[static_cast<int>(k.type)]);
    else
      r->kernels.push_back(k.what == kernel_key::kind::convert ? kernel::convert_loop<>(k.type, k.from)
                                                               : block_loop<>(k.arithmetic, k.type, k.single));
  }
  for (fold_key const& k : r->p.keys.folds) r->folds.push_back(block_reducer<>(k.kind, k.type));
  for (block_call const& c : r->p.calls)
    if (c.callee >= 0 && c.info.operands > 3)
      refuse::argument_is_invalid("fuse", (std::string("operator ") + c.info.op->name +
                                           " has more than three operands; call it outside of the fused function")
                                              .c_str());
  for (callee_key const& k : r->p.keys.callees) {
    op_table const* const table = k.what == operator_class::mm ? nullptr : varve::detail::table_of(*k.op);
    if (k.what != operator_class::mm && (!table || !(table->eval || table->defined)))
      refuse::with<missing_rule>((std::string("varve: fuse: operator ") + k.op->name +
                                  " is not known for tensors; call it on a tensor anywhere in the program")
                                     .c_str());
    r->callees.push_back({k.what == operator_class::mm ? &any_call<>::multiply : &any_call<>::evaluate, table});
  }
  return r;
}
template <class G>
VARVE_COLD G typed_and_optimized(G const& g) {
  if (varve::detail::is_symbolic(g))
    refuse::argument_is_invalid("fuse", "the graph has symbolic sizes; trace it with the sizes of the arguments");
  for (node const& n : g.nodes)
    if (n.op->hop.writes_copy)
      refuse::argument_is_invalid(n.op->name,
                                  "an operator that writes and has no functional form is called, which fused "
                                  "programs cannot; say `using functional = ...` in its rules");
  if (op_handle const* const hop = varve::detail::composite_hop_in(g))
    refuse::argument_is_invalid(hop->name, "it is made of other operators when it is called, which fused programs "
                                           "cannot; compile(f), or interpret(graph, x), runs it operator by operator");
  if (op_handle const* const effect = varve::detail::effect_in(g))
    refuse::argument_is_invalid(effect->name, "it does something outside of the program, which fused programs cannot; "
                                              "compile(f), or interpret(graph, x), runs it in its place");
  for (auto const& n : g.nodes)
    if (is_compact(n.out.type) || is_complex(n.out.type)) refuse::dtype_is_not_supported("fuse", name(n.out.type));
  G const values = values_only(g);
  G const flat = inline_calls(values);
  G const pure = functionalize(flat, purpose::values);
  G const typed = as_traced<>(pure);
  return optimize(typed, purpose::values);
}
template <class>
VARVE_NOINLINE void run_prepared(prepared const& r, void const* const* arguments, void* const* results) {
  constexpr index_t usual = 1 << 15;
  index_t const bytes = r.p.functions[0].memory;
  if (bytes <= usual) {
    alignas(64) std::byte memory[usual];
    block_graph_runner<>::run(r.view(), 0, arguments, results, memory);
  } else {
    tensor const memory = tensor::empty({bytes}, dtype::uint8);
    block_graph_runner<>::run(r.view(), 0, arguments, results, static_cast<std::byte*>(memory.raw()));
  }
}
} // namespace varve::fusion
#endif
