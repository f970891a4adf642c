// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/kernels.hpp>
#include <varve/block/run_graph.hpp>
#include <varve/dispatch/table.hpp>
#include <varve/fuse/tensors.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/pass/inline_calls.hpp>
#include <varve/pass/written_conversions.hpp>
#include <varve/plan/tables_of_graph.hpp>

#include <memory>
#include <vector>

/// @file
/// Fused execution of graphs made at run time: the planner of `fuse` runs now, and its loops are run block by block by
/// kernels that exist.
///
/// Used by `fuse(graph)`, `compile`, and `fuse(f)` of a function that captures, which the compiler cannot trace. Values
/// keep their own dtypes, so integers are exact. Elementwise operators run by the contiguous kernels that tensors run
/// by (`op_table::pointwise`); beside them there are `fma`, folds and conversions (`block/kernels.hpp`). Operators
/// without a nest or kernel of their own go to `op_table::eval`. `as_traced` first writes out the conversions that
/// operators on tensors do inside. A memory-bound chain gains what it no longer stores; what fits the second cache, or
/// is dominated by functions such as `exp`, gains little.
namespace varve {
namespace loop {

/// The kernels of tensors: those that operators run by when they are called on tensors, found by name. Every value is
/// of its own dtype, so that integers are exact.
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

/// A planned graph ready to run. Immutable, so that threads may share it.
struct prepared {
  block_program p;
  std::vector<kernel::loop> kernels;
  std::vector<kernel::detail::reducer> folds;
  std::vector<block_callee> callees;

  block_view view() const {
    return {p.buffers.data(),   p.slots.data(),     p.stages.data(), p.calls.data(), p.bodies.data(),
            p.groups.data(),    p.accesses.data(),  p.places.data(), p.steps.data(), p.sinks.data(),
            p.functions.data(), p.constants.data(), kernels.data(),  folds.data(),   callees.data()};
  }
};

/// Products of matrices of any dtype, and operators that only tensors know.
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
  static void evaluate(block_callee const& callee, call_info const& c, std::byte* const* in, std::byte* out) {
    boxed_args x;
    for (int k = 0; k < c.operands; ++k)
      x.push_back(tensor::from_blob(in[k], c.in[k].sizes, contiguous_strides(c.in[k].sizes), c.in[k].type));
    tensor const y = static_cast<op_table const*>(callee.table)->eval(c.at, x);
    dims const strides = contiguous_strides(c.out.sizes);
    kernel::copy_strided(c.out.sizes, {static_cast<void*>(out), strides.numbers(), itemsize(c.out.type)},
                         varve::detail::operand_of(y, y.strides().numbers()));
  }
};

/// Plans a graph and makes it ready. Errors: `missing_rule` for operators that tensors do not know, `value_error` for
/// what writes into arguments.
template <class Kernels = tensor_kernels>
std::shared_ptr<prepared const> prepare(graph const& g);

/// A run-time graph as the planner takes it.
template <class G>
G typed_and_optimized(G const& g);

/// Runs a prepared program on the addresses of its arguments and results.
template <class = void>
void run_prepared(prepared const& r, void const* const* arguments, void* const* results);

} // namespace loop

/// A graph planned for running as a whole: see `fuse(graph)`. Copies share the plan.
class fused_graph {
public:
  explicit fused_graph(std::shared_ptr<loop::prepared const> plan) : plan_(std::move(plan)) {}
  /// dtypes and sizes of the arguments and of the results.
  list<meta> const& arguments() const { return plan_->p.arguments; }
  list<meta> const& results() const { return plan_->p.results; }
  /// What the planner made of the graph.
  loop::block_program const& program() const { return plan_->p; }
  /// Runs on tensors; the results are fresh. dtype and sizes of each argument are checked first (`dtype_error`,
  /// `shape_error`: its number, expected and found), and that no transform or autograd would miss the call
  /// (`transform_error`, `autograd_error`). Tensors whose elements are not in row-major order are copied.
  template <class T = tensor>
  boxed_args operator()(boxed_args const& x) const {
    return call<T>(x, [&](void const* const* in, void* const* out) { loop::run_prepared<>(*plan_, in, out); });
  }
  /// ... by another program for these arguments: `run(arguments, results)`, of addresses.
  template <class T = tensor, class Run>
  boxed_args call(boxed_args const& x, Run const& run) const {
    if (x.size() != static_cast<int>(arguments().size()))
      refuse::shapes_do_not_match("fuse (number of arguments)", dims{x.size()},
                                  dims{static_cast<index_t>(arguments().size())});
    std::vector<dependent<void const*, T>> in;
    std::vector<dependent<void*, T>> out;
    boxed_args kept, y;
    for (int k = 0; k < x.size(); ++k) {
      tensor const& t = loop::plain_tensor(x[k]);
      loop::check_tensor({"argument", k, arguments()[k]}, t);
      if (!t.is_contiguous()) kept.push_back(detail::contiguous_copy(t));
      in.push_back((t.is_contiguous() ? t : kept[kept.size() - 1]).raw());
    }
    for (meta const& m : results()) {
      y.push_back(T::empty(m.sizes, m.type));
      out.push_back(y[y.size() - 1].raw());
    }
    run(in.data(), out.data());
    return y;
  }

private:
  std::shared_ptr<loop::prepared const> plan_;
};

/// Plans a graph, made by `make_fx` or `trace`, for running as a whole: `auto run = fuse(make_fx(f)(x)); tensor y =
/// run(boxed_args(x))[0];`. The same optimization and plan as of functions that the compiler fuses; what checkpoints
/// compute is kept or not as the plan has it; its loops run in blocks that stay in the first cache, elementwise
/// operators by the kernels of tensors. Products of sums may be rounded once where operator by operator they are
/// rounded twice, and sums have another order; all else is equal to the bit. Kernels registered at run time are not
/// asked. Errors: `value_error` for symbolic sizes, and for graphs that write into their arguments, `missing_rule` for
/// operators that tensors do not know.
template <class G>
  requires std::is_same_v<G, graph>
fused_graph fuse(G const& g) {
  G const better = loop::typed_and_optimized(g);
  return fused_graph(loop::prepare<>(better));
}

} // namespace varve

#if VARVE_DEFINES
namespace varve::loop {
template <class Kernels>
VARVE_COLD std::shared_ptr<prepared const> prepare(graph const& g) {
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
    if (k.what != operator_class::mm && (!table || !table->eval))
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
  for (auto const& n : g.nodes)
    if (is_compact(n.out.type)) refuse::dtype_is_not_supported("fuse", name(n.out.type));
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
} // namespace varve::loop
#endif
