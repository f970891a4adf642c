// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/block/kernels.hpp>
#include <varve/block/run_graph.hpp>
#include <varve/core/scratch_memory.hpp>
#include <varve/fuse/fuse.hpp>
#include <varve/pass/join_slices.hpp>
#include <varve/plan/tables_of_graph.hpp>

/// @file
/// Fused functions that stay tables: the compiler traces, optimizes and plans, but emits no code for single operations.
///
/// The planner of blocks (`plan_blocks`) and the runner are those of `fuse(graph)`. Operators run the lane kernels of
/// their handles, in `float`, `int64` or `double`, as in emitted loops. The tables are part of the executable. The
/// names of the kernels are a separate constant that is not part of it: they would pull in every named handle with all
/// its kernels. Each node costs the compiler only tracing and planning. At run time a table takes 1.2 to 7 times as
/// long as emitted loops.
namespace varve {
namespace fusion {

/// The array sizes of frozen tables.
struct block_sizes {
  std::size_t buffers, ports, stages, calls, bodies, groups, accesses, places, steps, sinks, functions, constants,
      arguments, results, kernels, folds, callees;
  static constexpr block_sizes of(block_program const& p) {
    return {p.buffers.size(),    p.ports.size(),       p.stages.size(),    p.calls.size(),   p.bodies.size(),
            p.groups.size(),     p.accesses.size(),    p.places.size(),    p.steps.size(),   p.sinks.size(),
            p.functions.size(),  p.constants.size(),   p.arguments.size(), p.results.size(), p.keys.kernels.size(),
            p.keys.folds.size(), p.keys.callees.size()};
  }
  constexpr bool holds(block_sizes const& o) const {
    return buffers >= o.buffers && ports >= o.ports && stages >= o.stages && calls >= o.calls && bodies >= o.bodies &&
           groups >= o.groups && accesses >= o.accesses && places >= o.places && steps >= o.steps && sinks >= o.sinks &&
           functions >= o.functions && constants >= o.constants && arguments >= o.arguments && results >= o.results &&
           kernels >= o.kernels && folds >= o.folds && callees >= o.callees;
  }
};

/// The names of kernels in arrays. Only the compiler uses them, so that no operator's kernels are in the executable
/// just because a table names it.
template <block_sizes S>
struct static_block_keys {
  kernel_key kernels[S.kernels + 1]{};
  fold_key folds[S.folds + 1]{};
  callee_key callees[S.callees + 1]{};
};
/// Tables in arrays, stored in the executable.
template <block_sizes S>
struct static_block_program {
  buffer buffers[S.buffers + 1]{};
  int ports[S.ports + 1]{};
  stage stages[S.stages + 1]{};
  block_call calls[S.calls + 1]{};
  block_body bodies[S.bodies + 1]{};
  block_group groups[S.groups + 1]{};
  block_access accesses[S.accesses + 1]{};
  block_place places[S.places + 1]{};
  block_step steps[S.steps + 1]{};
  block_sink sinks[S.sinks + 1]{};
  block_function functions[S.functions + 1]{};
  alignas(64) unsigned char constants[S.constants + 1]{};
  meta arguments[S.arguments + 1]{}, results[S.results + 1]{};
  block_sizes used{};
  /// Bytes of stack.
  index_t workspace = 0;
  bool writes_arguments = false;
};

namespace detail {
template <class T>
constexpr void copy(T* to, T const* from, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) to[k] = from[k];
}
template <class T>
constexpr void copy(T* to, list<T> const& from, std::size_t) {
  for (T const& x : from) *to++ = x;
}
/// Copies tables of any form `P` into arrays; `n` are their used sizes. Returns empty arrays if `S` is too small.
template <block_sizes S, class P>
constexpr static_block_program<S> frozen(P const& p, block_sizes const& n) {
  static_block_program<S> r;
  r.used = n;
  if (!S.holds(n)) return r;
  copy(r.buffers, p.buffers, n.buffers), copy(r.ports, p.ports, n.ports), copy(r.stages, p.stages, n.stages),
      copy(r.calls, p.calls, n.calls);
  copy(r.bodies, p.bodies, n.bodies), copy(r.groups, p.groups, n.groups), copy(r.accesses, p.accesses, n.accesses),
      copy(r.places, p.places, n.places), copy(r.steps, p.steps, n.steps);
  copy(r.sinks, p.sinks, n.sinks), copy(r.functions, p.functions, n.functions),
      copy(r.constants, p.constants, n.constants);
  copy(r.arguments, p.arguments, n.arguments), copy(r.results, p.results, n.results);
  for (std::size_t k = 0; k < n.calls; ++k)
    r.calls[k].info.op = nullptr; // only used calls are written: zeros that are never touched cost the compiler nothing
  r.workspace = p.functions[0].memory, r.writes_arguments = p.writes_arguments;
  return r;
}
template <block_sizes S, class P>
constexpr static_block_keys<S> frozen_keys(P const& p, block_sizes const& n) {
  static_block_keys<S> r;
  if (!S.holds(n)) return r;
  copy(r.kernels, p.kernels, n.kernels), copy(r.folds, p.folds, n.folds), copy(r.callees, p.callees, n.callees);
  return r;
}
/// Tables and names in arrays of size `S`.
template <class Make, block_sizes S>
struct planned_blocks {
  struct both {
    static_block_program<S> program;
    static_block_keys<S> keys;
  };
  static constexpr both build() { // every graph is a named object: g++ 12 loses temporaries that hold storage
    dependent<graph, Make> const traced = Make{}();
    dependent<block_program, Make> p;
    if (has_mutation(traced)) {
      p.writes_arguments = true; // refused later, where the error message is short
      p.functions.push_back({});
    } else {
      auto better = optimize(traced, purpose::values);
      join_slices(better);
      p = plan_blocks<lane_kernels>(better);
    }
    return {frozen<S>(p, block_sizes::of(p)), frozen_keys<S>(p.keys, block_sizes::of(p))};
  }
  static constexpr both value = build();
};
inline constexpr block_sizes usual_blocks{
    4096, 4096, 4096,  128, 1024, 256,  32768, 32768, 32768,
    4096, 256,  65536, 64,  128,  1024, 64,    64}; // few calls and results: an unused one is not all zeros, so each
                                                    // costs compile time
template <class Make, class First = planned_blocks<Make, usual_blocks>>
using planned_once_or_twice = std::conditional_t<usual_blocks.holds(First::value.program.used), First,
                                                 planned_blocks<Make, First::value.program.used>>;

template <class T>
void multiply_blocks(block_callee const&, call_info const& c, std::byte* const* in, std::byte* out) {
  int const rank = c.out.sizes.n;
  bool const ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
  index_t const m = c.out.sizes[rank - 2], n = c.out.sizes[rank - 1], k = c.in[0].sizes[rank - (ta ? 2 : 1)];
  auto const *a = reinterpret_cast<T const*>(in[0]), *b = reinterpret_cast<T const*>(in[1]);
  auto* r = reinterpret_cast<T*>(out);
  for (index_t e = m * n > 0 ? numel(c.out.sizes).number() / (m * n) : 0; e > 0;
       --e, a += m * k, b += k * n, r += m * n)
    kernel::matmul<T>(m, n, k, {a, ta ? 1 : k, ta ? m : 1}, {b, tb ? 1 : n, tb ? k : 1}, {r, n, 1});
}
template <operator_class What, class T, class O>
void call_blocks(block_callee const&, call_info const& c, std::byte* const* in, std::byte* out) {
  auto* const r = reinterpret_cast<T*>(out);
  if constexpr (What == operator_class::slice_backward)
    detail::slice_backward(slice_backward_facts(c), reinterpret_cast<T const*>(in[0]), r);
  else if constexpr (What == operator_class::gather)
    detail::gather(gather_facts(c), reinterpret_cast<T const*>(in[0]), reinterpret_cast<O const*>(in[1]), r);
  else if constexpr (What == operator_class::scatter_add)
    detail::scatter_add(scatter_add_facts(c), reinterpret_cast<T const*>(in[0]), reinterpret_cast<O const*>(in[1]),
                        reinterpret_cast<T const*>(in[2]), r);
  else if constexpr (What == operator_class::convolution)
    kernel::convolve<T>(convolution_facts(c), reinterpret_cast<T const*>(in[0]), reinterpret_cast<T const*>(in[1]), r);
  else detail::argmax(argmax_facts(c), reinterpret_cast<O const*>(in[0]), r);
}
/// Returns callee `K` of the keys of `P`.
template <class P, int K>
constexpr block_callee linked_callee() {
  constexpr callee_key k = P::keys.callees[K];
  using T = type_of<k.type>;
  if constexpr (k.what == operator_class::mm) {
    static_assert(k.type != dtype::bool_, "varve: fuse: mm of booleans; convert first");
    return {&multiply_blocks<T>, nullptr};
  } else if constexpr (k.what == operator_class::slice_backward || k.what == operator_class::gather ||
                       k.what == operator_class::scatter_add || k.what == operator_class::convolution ||
                       k.what == operator_class::argmax) {
    return {&call_blocks<k.what, T, type_of<k.other>>, nullptr};
  } else {
    static_assert(k.what == operator_class::mm, "varve: fuse: this operator has no emission; use it outside of fuse");
    return {};
  }
}
} // namespace detail

/// The tables of the graph that `Make{}()` computes, as a constant `value`, linked: each kernel, fold and callee that
/// the tables name is instantiated once.
template <class Make>
struct tabulated {
private:
  using planned = detail::planned_once_or_twice<Make>;
  static constexpr block_sizes sizes = planned::value.program.used;

public:
  static constexpr static_block_program<sizes> value = detail::frozen<sizes>(planned::value.program, sizes);
  static constexpr static_block_keys<sizes> keys = detail::frozen_keys<sizes>(planned::value.keys, sizes);

  static_assert(!value.writes_arguments,
                "varve: fuse: the function writes into its argument; write into a clone of it, and return that");

  /// Executes the program. Temporaries are on the stack if they need at most `most_on_stack` bytes.
  template <int Arguments, int Results>
  static VARVE_NOINLINE void run(memory<Arguments, Results> const& mem) {
    temporaries<static_cast<std::size_t>(value.workspace) + 64> workspace;
    block_graph_runner<>::run(view, 0, mem.argument, mem.result, workspace.data());
  }

private:
  template <class, class, class>
  struct pointers;
  template <std::size_t... K, std::size_t... F, std::size_t... C>
  struct pointers<std::index_sequence<K...>, std::index_sequence<F...>, std::index_sequence<C...>> {
    static constexpr kernel::loop kernels[sizeof...(K) + 1]{linked_kernel<tabulated, static_cast<int>(K)>()...};
    static constexpr kernel::detail::reducer folds[sizeof...(F) + 1]{linked_fold<tabulated, static_cast<int>(F)>()...};
    static constexpr block_callee callees[sizeof...(C) + 1]{detail::linked_callee<tabulated, static_cast<int>(C)>()...};
  };
  using linked = pointers<std::make_index_sequence<sizes.kernels>, std::make_index_sequence<sizes.folds>,
                          std::make_index_sequence<sizes.callees>>;
  static constexpr block_view view{value.buffers,   value.ports,     value.stages,    value.calls,   value.bodies,
                                   value.groups,    value.accesses,  value.places,    value.steps,   value.sinks,
                                   value.functions, value.constants, linked::kernels, linked::folds, linked::callees};
};

} // namespace fusion

/// The execution of `fuse(f, table_driven)`.
struct table_driven_t {
  template <class Make>
  using program = fusion::tabulated<Make>;
};
/// A tag that keeps a fused function as a table: `constexpr auto step = fuse(grad(loss), table_driven);`,
/// `fuse<spec<float, 64>>(f, table_driven)`. The compiler traces, optimizes and plans it, but the loop kernels of
/// run-time fusion execute it, on blocks that stay in the first-level cache. The compiler emits no code for single
/// operations, so each node costs it only tracing and planning. Use it for graphs of thousands of operations and for
/// code that runs rarely. Results equal those of `fuse(f)`, except that sums may add in another order.
inline constexpr table_driven_t table_driven{};

} // namespace varve
