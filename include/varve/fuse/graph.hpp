// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/prepared.hpp>
#include <varve/fuse/tensors.hpp>

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
  return fused_graph(loop::prepare_tables<>(better));
}

} // namespace varve
