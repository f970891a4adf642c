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
/// Plans a graph for running as a whole.
using graph_fuser = fused_graph (*)(graph const&);
/// ... as `fuse(graph)` does, or as `fuse(graph, How{})`. (Dependent, so that it is compiled where it is used.)
template <class How>
fused_graph fused_by(graph const& g) {
  if constexpr (std::is_same_v<How, fast_math_t>) return fuse(static_cast<dependent<graph, How> const&>(g), How{});
  else return fuse(static_cast<dependent<graph, How> const&>(g));
}
/// What programs are: one fused program each, or the fastest of that, of steps of which some are fused, and of the
/// function as it is.
enum class program_form : unsigned char { fused, fastest };
/// Programs that are traced and fused.
template <class T = tensor>
std::shared_ptr<function_programs> fused_programs(graph_fuser fuser, program_form form = program_form::fused);

#if VARVE_DEFINES_CAPTURE
/// Results in memory of their own.
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
/// Which arguments a graph writes into: by themselves, or where they lie by rows through views, of which a reshape may
/// be one.
inline list<int> arguments_written(graph const& g) {
  list<int> r;
  for (int n = 0; n < g.regions[0].node_count; ++n) {
    if (g.nodes[static_cast<std::size_t>(n)].op->kind != op_kind::mutation) continue;
    node const& base = g.nodes[static_cast<std::size_t>(memory_of(g, n))];
    if (base.op->kind == op_kind::placeholder) r.push_back(static_cast<int>(base.value));
  }
  return r;
}
/// Is anything in a graph of a dtype that fused loops have not: a small or a complex one?
inline bool has_types_without_loops(graph const& g) {
  for (node const& n : g.nodes)
    if (is_compact(n.out.type) || is_complex(n.out.type)) return true;
  return false;
}
/// A fused program of a function, with what it wrote as further results.
template <class T>
struct fused_program final : compiled_program<T> {
  fused_graph run{nullptr};
  list<int> written{};           // arguments and captures that further results are written into
  list<int> touched{};           // ... and those that may be written into, where they do not lie by rows
  boxed_function by_operators{}; // in place of `run`, where the graph has effects or dtypes that loops have not
  std::string described = "fused as a whole";
  bool as_it_is = false; // the function itself is faster
  bool records = false;  // ... in a scope of `enable_grad`, whatever the mode around

  std::string how() const override { return described; }

  boxed_args operator()(boxed_args const& in) const { return by_operators ? by_operators(in) : run(in); }
  /// May it stand for the function, on these arguments and captured tensors?
  bool fits(boxed_args const& in) const {
    if (records)
      for (auto const& t : in)
        if (t.has_history()) return false;
    for (int at : touched)
      if (!in[at].is_contiguous()) return false;
    for (int at : written) // the trace took them for apart
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
        call.arguments[k] = tensor(loop::plain_tensor(call.arguments[k]));
    if (!run_plainly(call.arguments)) return false;
    auto const v = this->found_or_made(call);
    if (static_cast<fused_program<T> const&>(*v->made).as_it_is || !run_plainly(v->captured)) return false;
    boxed_args& in = call.arguments; // and captured tensors
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
    disable_modes const unseen; // what runs then has them (CE-2)
    program_versions<T>::prepare(call);
  }

private:
  graph_fuser fuser_;
  program_form form_;

  typename program_versions<T>::program make(boxed_call const& call, boxed_args& captured) const override {
    auto r = std::make_shared<fused_program<T>>();
    numbers_read<T> read;
    using G = dependent<graph, T>; // what is known without T compilers may instantiate without a use
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
    if (count_effects(whole) > 0 || has_types_without_loops(whole)) {
      r->described = "operator by operator";
      r->by_operators = [whole](boxed_args const& in) { return fresh_results<T>(interpret(whole, in), in); };
    } else if (form_ == program_form::fused || !choose(*r, whole, transforms, misses)) r->run = fuser_(whole);
    return r;
  }
  /// Are its results values of their own, no views of arguments nor of each other?
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
  /// Takes steps, or the function as it is, where one fused program would be slower. `transforms`: the function applies
  /// some, which a program has behind it. `misses`: nanoseconds of calls that take fewer passes than their operators.
  static bool choose(fused_program<T>& r, graph const& whole, bool transforms, double misses) {
    constexpr index_t few = 1024; // elements, for which calls cost more than passes
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
    double gain = 0;
    for (auto const& l : s.at_level) gain += std::max<double>(0.0, s.gain(l));
    bool const pays = gain > misses;
    if (pays && s.singles == 0) return false;
    if (!pays && (misses > 0 || !transforms) && gives_fresh_results(whole)) {
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

/// `auto fast = compile(f); tensor y = fast(x);`: traces `f` at the dtypes and sizes of its first arguments and makes a
/// program of it, which runs from then on. A program is what is fastest: fused as a whole (`fuse(graph)`); steps, which
/// are operators by their own kernels and groups of elementwise ones that are fused; or, where nothing would be faster,
/// `f` itself at each call. `explain(x)` says which. Arguments of other dtypes or sizes are traced anew, once, and so
/// where `is_contiguous()`, `requires_grad()` or `is_grad_enabled()` would answer otherwise: the 64 programs that were
/// called last are kept. Arguments are tensors, or trees of them in which numbers are constants; results may be a tree
/// of tensors, all fresh, or nothing. Tensors that `f` captures are inputs: what is in them counts at each call, not at
/// the first; write into them (`copy_`), for another tensor that is assigned to a captured variable later need not be
/// seen, nor what `f` asks of a captured tensor that no operator is called on (`defined()`, sizes). Where it reads a
/// captured tensor as a number (`item()`, an `if`), it is traced again when that has changed; reading its memory
/// (`data()`) is refused. The trace runs on copies: nothing is written or drawn but by the program, and what it writes
/// into arguments and captured tensors is written when all is computed. Branches of C++ control flow are those of the
/// trace: use `where` or `cond` where they depend on values of arguments. Functions with effects (`print`), or with
/// values of small or complex dtypes on the way, run operator by operator. Gradients: `compile(grad(f))`.
/// Where transforms, modes or autograd watch, the call runs `f` itself, operator by operator. Errors: those of
/// `make_fx` and `fuse(graph)` at the first call. `set_default_backend` has it do what `compile(f, backend)` does.
template <class F>
auto compile(F f) {
  auto const other = detail::default_programs.load(std::memory_order_acquire);
  return compiled_function<F>(
      std::move(f),
      other ? other() : detail::fused_programs<>(&detail::fused_by<dependent<void, F>>, detail::program_form::fastest));
}
/// ... fused in another way: `compile(f, fast_math)`.
template <class F, std::same_as<fast_math_t> How>
auto compile(F f, How) {
  return compiled_function<F>(std::move(f), detail::fused_programs<>(&detail::fused_by<How>));
}
/// ... and makes the program for these arguments at once.
template <class F, class... X>
  requires(sizeof...(X) > 0 && (std::is_same_v<X, tensor> && ...))
auto compile(F f, X const&... x) {
  auto r = compile(std::move(f));
  r.prepare(x...);
  return r;
}

/// What `fuse(f)` gives of a function that captures: on tensors `compile(f)`, since the compiler cannot see what is
/// captured; static values are refused.
template <class F>
class fused_with_captures : public compiled_function<F> {
public:
  using compiled_function<F>::compiled_function;

  template <class... A>
  auto operator()(A const&... a) const {
    if constexpr ((std::is_same_v<A, tensor> && ...)) return compiled_function<F>::operator()(a...);
    else if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(detail::viewed(a))>, tensor> && ...))
      return compiled_function<F>::operator()(detail::viewed(a)...); // memory with `dyn` extents
    else
      static_assert(never<A...>, "varve: fuse: the function must capture nothing, but for calls on tensors alone; pass "
                                 "the values as arguments, or compile(f)");
  }
  template <class... R>
  compiled_function<F> const& into(R&&...) const {
    static_assert(never<R...>, "varve: fuse: the function must capture nothing to write its results into(...); pass "
                               "the values as arguments, or take the results that calls return");
    return *this;
  }
};

/// `auto fast = fuse([&](auto const& x) { return x * w; });`: a function that captures, for calls on tensors: it is
/// planned at its first call, as by `compile(f)`. What holds there holds here: captured tensors are inputs of every
/// call, captured numbers constants of the first. On static values it is refused by the compiler.
template <class F>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f) {
  return fused_with_captures<F>(f, detail::fused_programs<>(&detail::fused_by<dependent<void, F>>));
}
/// ... `fuse(f, table_driven)`: programs made at run time are tables always.
template <class F, loop::execution How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fuse(f);
}

/// ... `fuse(f, fast_math)`, likewise.
template <class F, std::same_as<fast_math_t> How>
  requires(!std::is_empty_v<F> && !std::is_same_v<F, graph>)
auto fuse(F const& f, How) {
  return fused_with_captures<F>(f, detail::fused_programs<>(&detail::fused_by<How>));
}

} // namespace varve
