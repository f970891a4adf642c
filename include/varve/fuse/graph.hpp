// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/prepared.hpp>
#include <varve/fuse/tensors.hpp>

/// @file
/// Fused execution of graphs made at run time. The planner of `fuse` runs at run time, and existing kernels execute its
/// loops block by block.
///
/// It is used by `fuse(graph)`, `compile`, and by `fuse(f)` for functions with captures, which the compiler cannot
/// trace. Values keep their own dtypes, so integers are exact. Elementwise operators run the contiguous kernels that
/// tensors use (`op_table::pointwise`). For `fma`, folds and conversions there are further kernels
/// (`block/kernels.hpp`). Operators without a loop nest or kernel of their own call `op_table::eval`. Before planning,
/// `as_traced` makes the conversions explicit that operators on tensors do internally. Chains limited by memory
/// bandwidth gain most, because they no longer store intermediate results. Data that fit the second-level cache, and
/// functions such as `exp`, gain little.
namespace varve {

/// A graph planned for running as a whole: see `fuse(graph)`. Copies share the plan.
class fused_graph {
public:
  explicit fused_graph(std::shared_ptr<fusion::prepared const> plan) : plan_(std::move(plan)) {}
  /// The dtypes and sizes of the arguments; those of the results are `results()`.
  list<meta> const& arguments() const { return plan_->p.arguments; }
  list<meta> const& results() const { return plan_->p.results; }
  /// The program that the planner made of the graph.
  fusion::block_program const& program() const { return plan_->p; }
  /// Runs on tensors and returns new tensors. The dtype and sizes of each argument are checked first (`dtype_error`,
  /// `shape_error`, with the number of the argument, expected and found). `transform_error` or `autograd_error` is
  /// thrown if a transform or autograd would miss the call. Tensors whose elements are not in row-major order are
  /// copied.
  template <class T = tensor>
  boxed_args operator()(boxed_args const& x) const {
    return call<T>(x, [&](void const* const* in, void* const* out) { fusion::run_prepared<>(*plan_, in, out); });
  }
  /// Runs another program for these arguments, `run(arguments, results)` on addresses, after the same checks and copies
  /// as `operator()`.
  template <class T = tensor, class Run>
  boxed_args call(boxed_args const& x, Run const& run) const {
    if (x.size() != static_cast<int>(arguments().size()))
      refuse::shapes_do_not_match("fuse (number of arguments)", dims{x.size()},
                                  dims{static_cast<index_t>(arguments().size())});
    std::vector<dependent<void const*, T>> in;
    std::vector<dependent<void*, T>> out;
    boxed_args kept, y;
    for (int k = 0; k < x.size(); ++k) {
      tensor const& t = fusion::plain_tensor(x[k]);
      fusion::check_tensor({"argument", k, arguments()[k]}, t);
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
  std::shared_ptr<fusion::prepared const> plan_;
};

/// Plans a graph, made by `make_fx` or `trace`, for running as a whole: `auto run = fuse(make_fx(f)(x)); tensor y =
/// run(boxed_args(x))[0];`. Optimization and plan are the same as for functions that the compiler fuses. The planner
/// decides which results inside checkpoints are kept. Loops run in blocks that stay in the first-level cache;
/// elementwise operators use the kernels of tensors.
///
/// A product that is added to something may be rounded once (`fma`) instead of twice, and sums may add in another
/// order; all other results are equal bit for bit. Kernels registered at run time are not used. Throws `value_error`
/// for symbolic sizes and for graphs that write into their arguments, and `missing_rule` for operators that have no
/// tensor table.
template <class G>
  requires std::is_same_v<G, graph>
fused_graph fuse(G const& g) {
  G const better = fusion::typed_and_optimized(g);
  return fused_graph(fusion::prepare_tables<>(better));
}

} // namespace varve
