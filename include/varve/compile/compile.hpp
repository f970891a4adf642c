// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/compile/compiled_function.hpp>
#include <varve/compile/stepped_program.hpp>
#include <varve/compile/versions.hpp>
#include <varve/dispatch/whole_call.hpp>
#include <varve/fuse/graph.hpp>
#include <varve/interpreter/mode_guard.hpp>

#include <concepts>

namespace varve {

struct fast_math_t; // fast_math.hpp

namespace detail {
/// A function that plans a graph so that it runs as a whole.
using graph_fuser = fused_graph (*)(graph const&);
/// Plans a graph by `fuse(graph)`, or by `fuse(graph, How{})`. (Dependent, so that it is compiled where it is used.)
template <class How>
fused_graph fused_by(graph const& g) {
  if constexpr (std::is_same_v<How, fast_math_t>) return fuse(static_cast<dependent<graph, How> const&>(g), How{});
  else return fuse(static_cast<dependent<graph, How> const&>(g));
}
/// The form of compiled functions: always one fused program, or the fastest of a fused program, steps that are partly
/// fused, and the function itself.
enum class program_form : unsigned char { fused, fastest };
/// Returns programs that are traced and fused.
template <class T = tensor>
std::shared_ptr<function_programs> fused_programs(graph_fuser fuser, program_form form = program_form::fused);

#if VARVE_DEFINES_CAPTURE
/// Returns the results in memory of their own: copies of those that share memory with an argument or another result.
template <class T = tensor>
boxed_args fresh_results(boxed_args const& y, boxed_args const& x) {
  boxed_args r;
  for (int k = 0; k < y.size(); ++k) {
    bool shared = false;
    for (auto const& t : x) shared = shared || y[k].shares_storage(t);
    for (int j = 0; j < k; ++j) shared = shared || y[k].shares_storage(y[j]);
    r.push_back(shared ? clone(static_cast<T const&>(y[k])) : y[k]);
  }
  return r;
}
/// Returns the arguments that a graph writes: directly, or through views, including a reshape of row-major memory.
inline list<int> arguments_written(graph const& g) {
  list<int> r;
  for (int n = 0; n < g.regions[0].node_count; ++n) {
    if (g.nodes[static_cast<std::size_t>(n)].op->kind != op_kind::mutation) continue;
    node const& base = g.nodes[static_cast<std::size_t>(memory_of(g, n))];
    if (base.op->kind == op_kind::placeholder) r.push_back(static_cast<int>(base.value));
  }
  return r;
}
/// True if a graph uses a dtype that fused loops do not support: a small or a complex one.
inline bool has_types_without_loops(graph const& g) {
  for (node const& n : g.nodes)
    if (is_compact(n.out.type) || is_complex(n.out.type)) return true;
  return false;
}
/// A fused program of a function; the new values of what it writes are further results.
template <class T>
struct fused_program final : compiled_program<T> {
  fused_graph run{nullptr};
  list<int> written{};           // arguments and captures to which the further results are copied
  list<int> touched{};           // arguments and captures that may be written; they must be row-major
  boxed_function by_operators{}; // replaces `run` if the graph has effects, or dtypes that loops do not support
  std::string described = "fused as a whole";
  bool as_it_is = false; // true if the function itself is faster
  bool records = false;  // true if it has an `enable_grad` scope of its own

  std::string how() const override { return described; }

  boxed_args operator()(boxed_args const& in) const { return by_operators ? by_operators(in) : run(in); }
  /// True if the program may replace the function for these arguments and captured tensors.
  bool fits(boxed_args const& in) const {
    if (records)
      for (auto const& t : in)
        if (t.has_history()) return false;
    for (int at : touched)
      if (!in[at].is_contiguous()) return false;
    for (int at : written) // the trace assumed separate memory
      for (int k = 0; k < in.size(); ++k)
        if (k != at && in[k].shares_storage(in[at])) return false;
    return true;
  }
};
template <class T>
class fused_program_versions final : public program_versions<T> {
public:
  fused_program_versions(graph_fuser fuser, program_form form) : fuser_(fuser), form_(form) {}

  bool run(boxed_call& call, boxed_args& results) override {
    if (!this_thread_state.quiet()) return false;
    for (int k = 0; k < call.arguments.size(); ++k)
      if (call.arguments[k].defined() && call.arguments[k].is_wrapped())
        call.arguments[k] = tensor(fusion::plain_tensor(call.arguments[k]));
    if (!run_plainly(call.arguments)) return false;
    auto const v = this->found_or_made(call);
    if (static_cast<fused_program<T> const&>(*v->made).as_it_is || !run_plainly(v->captured)) return false;
    boxed_args& in = call.arguments; // arguments, then captured tensors
    for (auto const& t : v->captured) in.push_back(t);
    auto const& p = static_cast<fused_program<T> const&>(*v->made);
    if (!p.fits(in)) return false;
    results = p(in);
    int k = results.size() - static_cast<int>(p.written.size());
    for (int at : p.written) copy_(in[at], static_cast<T const&>(results[k++]));
    call.returned = v->returned;
    return true;
  }
  void prepare(boxed_call const& call) override {
    disable_modes const unseen; // modes are on again when the function runs later
    program_versions<T>::prepare(call);
  }

private:
  graph_fuser fuser_;
  program_form form_;

  typename program_versions<T>::program make(boxed_call const& call, boxed_args& captured) const override {
    auto r = std::make_shared<fused_program<T>>();
    numbers_read<T> read;
    using G = dependent<graph, T>; // some compilers instantiate code that does not depend on T even if unused
    double const missed = whole_time_missed;
    std::uint64_t const layers = next_layer_id();
    G const g =
        trace_boxed<dependent<on_real_values, T>>(call, call.arguments, {}, capture_policy::collected, &captured);
    bool const transforms = next_layer_id() > layers + 2;
    double const misses = whole_time_missed - missed;
    G const values = values_only(g);
    G const pure = functionalize(values, purpose::values);
    G const whole = writes_as_results(pure, r->written);
    r->touched = arguments_written(g);
    for (node const& n : g.nodes) r->records = r->records || n.mode == recording::on;
    r->numbers = std::move(read.all);
    if (count_effects(whole) > 0 || has_types_without_loops(whole) || composite_hop_in(whole)) {
      r->described = "operator by operator";
      r->by_operators = [whole](boxed_args const& in) { return fresh_results<T>(interpret(whole, in), in); };
    } else if (form_ == program_form::fused || !choose(*r, whole, gives_fresh_results(values), transforms, misses))
      r->run = fuser_(whole);
    return r;
  }
  /// True if all results of a function as it is have memory of their own: no views of arguments or of each other.
  static bool gives_fresh_results(graph const& g) {
    int const* const results = g.results.data() + g.regions[0].result_first;
    for (int k = 0; k < g.regions[0].result_count; ++k) {
      int const n = memory_of(g, results[k]);
      if (g.nodes[n].op->kind == op_kind::placeholder || g.nodes[n].op->kind == op_kind::constant) return false;
      for (int j = 0; j < k; ++j)
        if (memory_of(g, results[j]) == n) return false;
    }
    return true;
  }
  /// Chooses steps, or the function itself, where one fused program would be slower. `fresh`: what the function returns
  /// has memory of its own. `transforms`: the function applies transforms, whose cost a program does not have.
  /// `misses`: nanoseconds that the function would save by composites that run in one kernel if it is called directly.
  static bool choose(fused_program<T>& r, graph const& whole, bool fresh, bool transforms, double misses) {
    constexpr index_t few = 1024; // elements; below this, calls cost more than passes over memory
    bool draws = false;
    for (node const& n : whole.nodes) {
      if (n.regions_count > 0 || n.function >= 0 || n.op == &sym_numel_handle || n.op == &getitem_handle) return false;
      draws = draws || n.op->kind == op_kind::random;
    }
    using G = dependent<graph, T>;
    G const better = optimize(static_cast<G const&>(whole), purpose::values);
    for (node const& n : better.nodes)
      if (n.op->kind != op_kind::placeholder && n.op->kind != op_kind::constant && !table_of(*n.op)) return false;
    steps_of_graph<G> const s(better);
    if (transforms && s.largest <= few) return false;
    // Steps would make the padded derivative of each slice; called directly, these are added in place. Axes that are
    // permuted are slower in blocks than by their kernel.
    if (transforms && s.rearranges && s.elementwise > s.singles && s.permuted <= s.padded) return false;
    double gain = 0;
    for (auto const& l : s.at_level) gain += std::max<double>(0.0, s.gain(l));
    bool const pays = gain > misses;
    if (pays && s.singles == 0) return false;
    if (!pays && (misses > 0 || !transforms) && fresh) {
      r.as_it_is = true;
      r.described = "as it is: nothing in it would be faster";
      return true;
    }
    if (draws) return false; // steps would draw in another order
    auto const steps = std::make_shared<stepped_program<G> const>(better, s);
    r.described = std::to_string(steps->size()) + " steps, of which " + std::to_string(steps->fused) + " are fused";
    r.by_operators = [steps](boxed_args const& in) { return fresh_results<T>((*steps)(in), in); };
    return true;
  }
};
template <class T>
std::shared_ptr<function_programs> fused_programs(graph_fuser fuser, program_form form) {
  return std::make_shared<fused_program_versions<T>>(fuser, form);
}
#if VARVE_COMPILED // for the library
template std::shared_ptr<function_programs> fused_programs<tensor>(graph_fuser, program_form);
#endif
#endif
} // namespace detail

/// Compiles a function of tensors at run time: `auto fast = compile(f); tensor y = fast(x);`.
///
/// The first call traces `f` for the dtypes and sizes of its arguments and makes a program, which later calls run. The
/// program is the fastest of three forms. `explain(x)` tells which one was chosen:
/// - one fused program (`fuse(graph)`);
/// - steps: operators with kernels of their own, and fused groups of elementwise operators;
/// - `f` itself at each call, if nothing else would be faster.
///
/// Other dtypes or sizes of arguments are traced anew, once. So are calls for which `is_contiguous()` or
/// `requires_grad()` of an argument, `is_grad_enabled()` or `get_default_dtype()` differs. The 64 programs that were
/// called last are kept. Arguments are tensors, or trees of them in which numbers are constants. Results may be nothing
/// or a tree of tensors, all in fresh memory.
///
/// Tensors that `f` captures are inputs, whose contents are read at each call. To change one, write into it (`copy_`):
/// a tensor that is assigned to a captured variable later may go unnoticed. So may properties of a captured tensor on
/// which no operator is called (`defined()`, sizes). If `f` reads a captured tensor as a number (`item()`, an `if`), a
/// changed number causes a new trace. Reading its memory (`data()`) is refused.
///
/// The trace runs on copies: only the program writes or draws random numbers. It writes into arguments and captured
/// tensors when everything is computed. Branches of C++ control flow are those of the trace; use `where` or `cond` if
/// they depend on elements of arguments. Functions with effects (`print`), or with intermediate values of small or
/// complex dtypes, run operator by operator.
///
/// For gradients, use `compile(grad(f))`. Under transforms, modes or autograd that must see the operators, the call
/// runs `f` itself. The first call throws the errors of `make_fx` and `fuse(graph)`. After `set_default_backend`, this
/// function is `compile(f, backend)`.
template <class F>
auto compile(F f) {
  auto const other = detail::default_programs.load(std::memory_order_acquire);
  return compiled_function<F>(
      std::move(f),
      other ? other() : detail::fused_programs<>(&detail::fused_by<dependent<void, F>>, detail::program_form::fastest));
}
/// Compiles a function with `fuse(graph, fast_math)`: `compile(f, fast_math)`. Its programs are always fused as a
/// whole.
template <class F, std::same_as<fast_math_t> How>
auto compile(F f, How) {
  return compiled_function<F>(std::move(f), detail::fused_programs<>(&detail::fused_by<How>));
}
/// Compiles a function and makes its program for these arguments at once.
template <class F, class... X>
  requires(sizeof...(X) > 0 && (std::is_same_v<X, tensor> && ...))
auto compile(F f, X const&... x) {
  auto r = compile(std::move(f));
  r.prepare(x...);
  return r;
}

/// The result of `fuse(f)` for a function that captures. Calls on tensors work as those of `compile(f)`, since captured
/// values are not known at compile time. Calls on static values do not compile.
template <class F>
class fused_with_captures : public compiled_function<F> {
public:
  using compiled_function<F>::compiled_function;

  template <class... A>
  auto operator()(A const&... a) const {
    if constexpr ((std::is_same_v<A, tensor> && ...)) return compiled_function<F>::operator()(a...);
    else if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(detail::viewed(a))>, tensor> && ...))
      return compiled_function<F>::operator()(detail::viewed(a)...); // memory with `dyn` extents
    else {
      static_assert(never<A...>, "varve: fuse: the function must capture nothing, but for calls on tensors alone; pass "
                                 "the values as arguments, or compile(f)");
      return nth<0>(a...); // gives the result a type, so that its uses cause no further error messages
    }
  }
  template <class... R>
  compiled_function<F> const& into(R&&...) const {
    static_assert(never<R...>, "varve: fuse: the function must capture nothing to write its results into(...); pass "
                               "the values as arguments, or take the results that calls return");
    return *this;
  }
};

/// Fuses a function that captures, for calls on tensors: `auto fast = fuse([&](auto const& x) { return x * w; });`. It
/// is planned at its first call, with the rules of `compile(f)`: captured tensors are inputs of every call, captured
/// numbers are constants of the first. Calls on static values do not compile.
template <class F>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f) {
  return fused_with_captures<F>(f, detail::fused_programs<>(&detail::fused_by<dependent<void, F>>));
}
/// Fuses a function that captures: `fuse(f, table_driven)`. Programs made at run time are always tables, so `How`
/// changes nothing.
template <class F, fusion::execution How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fuse(f);
}

/// Fuses a function that captures, with relaxed floating-point rules: `fuse(f, fast_math)`.
template <class F, std::same_as<fast_math_t> How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F>(f, detail::fused_programs<>(&detail::fused_by<How>));
}

} // namespace varve
