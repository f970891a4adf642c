// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/aot/compiled_pair.hpp>
#include <varve/aot/min_cut.hpp>
#include <varve/compile/compiled_function.hpp>
#include <varve/compile/versions.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/pass/optimize.hpp>

namespace varve {

/// A function that compiles a graph without writes into a function that runs it.
using graph_compiler = shared_function<boxed_function(graph const&)>;
/// A function that cuts a joint graph in two: `default_partition`, `min_cut_partition`, or a user's function.
using partitioner = shared_function<partition(graph const&, joint_shape)>;

/// Backends of `compile(f, backend)`.
namespace backends {
/// A backend that runs both parts operator by operator (`aot_eager`).
struct aot_eager_t {
  static constexpr bool takes_symbolic_sizes = true;
  boxed_function operator()(graph const& g) const {
    return [g](boxed_args const& x) { return interpret(g, x); };
  }
};
inline constexpr aot_eager_t aot_eager{};
/// A backend that plans each part and runs it as a whole (`fuse(graph)`).
struct fused_t {
  boxed_function operator()(graph const& g) const {
    if (g.results.empty()) return [](boxed_args const&) { return boxed_args(); };
    return fuse(g);
  }
};
inline constexpr fused_t fused{};
} // namespace backends

/// Options of ahead-of-time compilation.
struct aot_options {
  graph_compiler fw_compiler = backends::aot_eager; ///< the compiler of the forward pass
  /// The compiler of the backward pass; that of the forward pass if empty.
  graph_compiler bw_compiler{};
  /// The function that cuts the joint graph in two.
  partitioner partition_fn = [](graph const& g, joint_shape s) { return default_partition(g, s); };
  /// True if a size that differs from an earlier call shall become a symbol of the graph where possible. One program
  /// then serves many sizes. The compilers must accept graphs with symbolic sizes.
  bool automatic_dynamic = false;
};

namespace detail {
/// Returns the options with which `compile(f, backend)` compiles ahead of time.
template <class B>
aot_options by_backend(B const& with) {
  aot_options how{.fw_compiler = with};
  if constexpr (requires { B::takes_symbolic_sizes; }) how.automatic_dynamic = B::takes_symbolic_sizes;
  return how;
}
/// Returns programs that are traced with their gradients and compiled ahead of time.
template <class T = tensor>
std::shared_ptr<function_programs> ahead_of_time_programs(aot_options how);
template <class T = tensor>
std::shared_ptr<function_programs> ahead_of_time_programs(); // with `aot_options{}`

#if VARVE_DEFINES_CAPTURE
/// A function compiled ahead of time: the arguments that it is valid for, and its parts.
template <class T>
struct aot_program final : compiled_program<T> {
  compiled_pair run{};
  std::vector<dims> strides{}; // of the arguments
  std::vector<char> leaves{};
  std::vector<free_sizes> free{};
  dependent<graph, T> sizes{}; // only the arguments, and conditions on their sizes

  explicit aot_program(boxed_args const& arguments) {
    for (auto const& t : arguments) {
      strides.push_back(t.strides());
      leaves.push_back(t.is_leaf());
    }
  }
  bool is_for(boxed_args const& in) const override {
    for (int k = 0; k < in.size(); ++k) {
      auto const at = static_cast<std::size_t>(k);
      bool const moves = !free.empty() && free[at]; // such arguments are row-major
      if ((!moves && !(in[k].strides() == strides[at])) || in[k].is_leaf() != static_cast<bool>(leaves[at]))
        return false;
    }
    return free.empty() || has_these_sizes(in);
  }
  /// True if the sizes of the arguments meet the guards.
  bool has_these_sizes(boxed_args const& in) const {
    auto const met = [&] {
      auto const numbers = sizes_of_call<T>::of_arguments(sizes, in);
      for (node const& n : sizes.nodes) {
        dims const found = in[static_cast<int>(n.value)].sizes();
        for (int d = 0; d < found.n; ++d)
          if (!(found[d] == (numbers ? extent(numbers->of(n.out.sizes[d])) : n.out.sizes[d]))) return false;
      }
      return true;
    };
    return attempt<error>(met, [](error const&) { return false; });
  }
};
/// True if a compiled function can be called with these tensors.
inline bool runs_ahead_of_time(boxed_args const& x) {
  for (auto const& t : x)
    if (!t.defined() || t.is_wrapped() || !t.has_data() || !t.keys().has(dispatch_key::cpu) || t.is_inference())
      return false;
  return true;
}
template <class T>
class ahead_of_time_versions final : public program_versions<T> {
public:
  explicit ahead_of_time_versions(aot_options how) : how_(std::move(how)) {}

  bool run(boxed_call& call, boxed_args& results) override {
    // A compiled program is used only if no transform or mode would see the operators; eager autograd may.
    if (!this_thread_state.quiet() || !runs_ahead_of_time(call.arguments)) return false;
    auto const v = this->found_or_made(call);
    boxed_args& in = call.arguments; // arguments, then captured tensors
    for (auto const& t : v->captured) in.push_back(t);
    auto const& p = static_cast<aot_program<T> const&>(*v->made);
    if (!runs_ahead_of_time(in) || p.run.writes_into_others(in)) return false;
    results = p.run(in);
    call.returned = v->returned;
    return true;
  }

private:
  aot_options how_;
  using program = typename program_versions<T>::program;

  bool leaves_free() const override { return how_.automatic_dynamic; }
  program make(boxed_call const& call, boxed_args& captured) const override {
    auto r = std::make_shared<aot_program<T>>(call.arguments);
    numbers_read<T> read;
    r->run.of = trace_ahead_of_time<on_fake_values<dependent<fake_mode, T>>>(call, call.arguments);
    captured = r->run.of.captured;
    r->numbers = std::move(read.all);
    compile(r->run, how_);
    return r;
  }
  /// Returns null if C++ code or a call needs the numbers of sizes.
  program make_free(boxed_call const& call, std::vector<free_sizes>& which, boxed_args& captured) const override {
    boxed_args const& in = call.arguments;
    auto r = std::make_shared<aot_program<T>>(in);
    tracing::symbolic_t how{{}, true};
    for (std::size_t k = 0; k < which.size(); ++k) {
      how.policies.emplace_back(in[static_cast<int>(k)].dim(), dim_dynamic::fixed);
      for (std::size_t d = 0; d < how.policies[k].size(); ++d)
        if (which[k] >> d & 1) how.policies[k][d] = dim_dynamic::dynamic;
    }
    auto const made = [&]() -> program {
      numbers_read<T> read;
      r->run.of = trace_ahead_of_time<on_symbolic_values<dependent<fake_mode, T>>>(call, in, how);
      captured = r->run.of.captured;
      r->numbers = std::move(read.all);
      r->sizes = arguments_of(r->run.of.joint, in.size());
      bool any = false;
      for (node const& n : r->sizes.nodes)
        for (int d = 0; d < n.out.sizes.n; ++d) {
          free_sizes const bit = 1u << d;
          auto& here = which[static_cast<std::size_t>(n.value)];
          if (n.out.sizes[d].is_number()) here &= ~bit;
          any = any || here & bit;
        }
      if (!any || shows_symbols(r->run.of) || !r->has_these_sizes(in)) return nullptr;
      r->free = which;
      compile(r->run, how_);
      return r;
    };
    return attempt<error>(made, [](error const&) { return program(); });
  }
  static void compile(compiled_pair& p, aot_options const& how) {
    using G = dependent<graph, T>;
    G const pure = optimize(p.of.joint, purpose::values);
    p.of.joint = G();
    if (count_effects(pure) > 0) return compile_effects(p, how, pure);
    G const& g = pure;
    if (!p.of.has_backward()) {
      p.forward = how.fw_compiler(share_regions(g));
      return;
    }
    partition const parts = how.partition_fn(g, p.of.shape);
    p.saved_values = parts.saved_values;
    p.forward = how.fw_compiler(share_regions(parts.forward));
    p.backward = (how.bw_compiler ? how.bw_compiler : how.fw_compiler)(share_regions(parts.backward));
  }
  /// Compiles a graph with effects, whose order tokens preserve. Tokens of the forward pass come first, those of the
  /// backward pass last.
  template <class G>
  static void compile_effects(compiled_pair& p, aot_options const& how, G const& pure) {
    bool const early = p.of.forward_effects > 0, late = count_effects(pure) > p.of.forward_effects;
    G const g = with_effect_tokens(pure, p.of.forward_effects);
    auto const with_token = [](boxed_function f) -> boxed_function {
      return [f = std::move(f)](boxed_args const& x) {
        boxed_args const y = f(joined(boxed_args(token()), x));
        return part(y, 1, y.size());
      };
    };
    if (!p.of.has_backward()) {
      p.forward = with_token(how.fw_compiler(share_regions(g)));
      return;
    }
    joint_shape const shape{p.of.shape.primals + early, p.of.shape.forward_results + early};
    partition const parts = how.partition_fn(g, shape);
    p.saved_values = parts.saved_values;
    p.forward = how.fw_compiler(share_regions(parts.forward));
    if (early) p.forward = with_token(p.forward);
    p.backward = (how.bw_compiler ? how.bw_compiler : how.fw_compiler)(share_regions(parts.backward));
    if (late)
      p.backward = [f = p.backward](boxed_args const& x) {
        boxed_args const y = f(joined(x, boxed_args(token())));
        return part(y, 0, y.size() - 1);
      };
  }
  template <class G>
  static G arguments_of(G const& g, int count) {
    G r;
    r.expressions = g.expressions, r.guards = g.guards;
    for (int k = 0; k < g.regions[0].inputs; ++k)
      if (count > g.nodes[k].value) r.nodes.push_back(g.nodes[k]);
    int const n = static_cast<int>(r.nodes.size());
    r.regions.push_back({0, n, n, 0, 0});
    return r;
  }
  /// True if a call would have to make views whose sizes are symbols of the trace.
  static bool shows_symbols(joint_graph const& g) {
    auto const symbolic = [](view_chain const& views) {
      bool any = false;
      for (view_step const* s = views.get(); s; s = s->before.get()) {
        for (int k = 0; k < s->at.count; ++k)
          for (extent const e : s->at[k]) any = any || !e.is_number();
        for (meta const* m : {&s->of, &s->shows})
          for (extent const e : m->sizes) any = any || !e.is_number();
      }
      return any;
    };
    bool any = false;
    for (aot_output const& o : g.outputs) any = any || symbolic(o.views);
    for (aot_input const& i : g.inputs) any = any || symbolic(i.reshaped) || symbolic(i.set_views);
    return any;
  }
};
template <class T>
std::shared_ptr<function_programs> ahead_of_time_programs(aot_options how) {
  return std::make_shared<ahead_of_time_versions<T>>(std::move(how));
}
template <class T>
std::shared_ptr<function_programs> ahead_of_time_programs() {
  return ahead_of_time_programs<T>(aot_options{});
}
#if VARVE_COMPILED // for the library
template std::shared_ptr<function_programs> ahead_of_time_programs<tensor>(aot_options);
template std::shared_ptr<function_programs> ahead_of_time_programs<tensor>();
#endif
#endif
} // namespace detail

/// Compiles a function and its gradient ahead of time: `auto step = aot_function(f, {.fw_compiler =
/// backends::fused});`.
///
/// The first call traces `f` and its gradient into one graph without writes. It uses fake tensors: no argument is read
/// or written, and no random number is drawn. The graph is cut into a forward and a backward part, which the compilers
/// turn into functions. Calls run these functions. Results, gradients, writes into arguments and the aliasing of
/// results are those of `f`. If no argument or captured tensor requires a gradient, or in `no_grad` mode, there is only
/// a forward part. The gradient of a result that nothing uses is zeros, as in AOTAutograd: times an infinite derivative
/// they give NaN, where `f` itself gives no gradient.
///
/// Other dtypes, default dtypes, sizes, strides or requirements of gradients are traced anew; 64 programs are kept.
/// Captured tensors are inputs of the graph and have gradients. If one is read as a number (`item()`), a changed number
/// causes a new trace. A tensor that is assigned to a captured variable later is not noticed, as with `compile`. Calls
/// under modes and transforms run `f` itself. So do calls in which a written argument shares elements with another.
///
/// With `automatic_dynamic` (as by `compile(f, backends::aot_eager)`), a size that differs from an earlier call becomes
/// a symbol of the next program. That program serves all sizes for which its guards hold. If C++ code asks for the
/// number, or a result is a view that depends on it, each size has its own program.
///
/// Throws `autograd_error` for second derivatives of the compiled function and for writes into captured tensors and
/// into gradients. The first call also throws the errors of `make_fx` and of the compilers.
template <class F>
auto aot_function(F f) {
  return compiled_function<F>(std::move(f), detail::ahead_of_time_programs<>());
}
template <class F>
auto aot_function(F f, aot_options how) {
  return compiled_function<F>(std::move(f), detail::ahead_of_time_programs<>(std::move(how)));
}
/// Compiles a function ahead of time with a backend: `compile(f, backends::aot_eager)`. The backend is one of
/// `backends`, or any function that maps a graph to a function of tensors.
template <class F, class B>
  requires std::is_invocable_r_v<boxed_function, B const&, graph const&>
auto compile(F f, B const& with) {
  return aot_function(std::move(f), detail::by_backend(with));
}

/// Makes `compile(f)` equivalent to `compile(f, backend)` from now on, in all threads
/// (`torch.compiler.set_default_backend`). Functions that were compiled before do not change.
/// `set_default_backend(nullptr)` restores the default.
template <class B>
  requires std::is_invocable_r_v<boxed_function, B const&, graph const&>
void set_default_backend(B const& backend) {
  static std::shared_ptr<B const> chosen;
  static detail::spin_lock lock;
  detail::spin_lock::held const on(lock);
  chosen = std::make_shared<B const>(backend);
  detail::default_programs.store(
      [] {
        detail::spin_lock::held const here(lock);
        return detail::ahead_of_time_programs<>(detail::by_backend(*chosen));
      },
      std::memory_order_release);
}
inline void set_default_backend(std::nullptr_t) { detail::default_programs.store(nullptr, std::memory_order_release); }

} // namespace varve
