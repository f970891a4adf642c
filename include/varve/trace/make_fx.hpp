// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/pass/dce.hpp>
#include <varve/pass/share_regions.hpp>
#include <varve/pass/unread_states.hpp>
#include <varve/trace/boxed_call.hpp>
#include <varve/trace/copy_as_laid_out.hpp>
#include <varve/trace/trace_layer.hpp>
#include <varve/transform/recorded_hop.hpp>

/// @file
/// `make_fx` records the operators that remain below the transforms that a function applies. `interpret`
/// (`graph/interpret.hpp`) runs the resulting graph on tensors.
namespace varve {

namespace detail {
/// Traces on real values: operators run on the given values, or on copies of those that must not be written. The trace
/// is a mode below all others. Inside a transform, whose values a mode would not see, it is a transform instead.
/// Reading the elements of traced values is refused, because the program would be valid for these values only.
class on_real_values : read_watcher, literal_lifter {
public:
  struct options {};
  static constexpr bool apart = false;
  explicit on_real_values(options const&) : before_(watches_reads), around_(at_work), lifts_(lifts_literals) {
    watches_reads = this, at_work = this;
    if (!lifts_ || lifts_ == around_) lifts_literals = this;
  }
  on_real_values(on_real_values const&) = delete;
  on_real_values& operator=(on_real_values const&) = delete;
  ~on_real_values() { watches_reads = before_, at_work = around_, lifts_literals = lifts_; }
  static layer_kind const& host() {
    return this_thread_state.transforms.top ? trace_layer::own_kind : trace_layer::mode_kind;
  }
  /// Returns a tensor that the function made from C++ values, which is its own literal; returns an undefined tensor for
  /// others.
  static tensor literal(tensor const& t) {
    if (!at_work || !is_among(at_work->literals_, t)) return {};
    if (!is_among(at_work->used_, t)) at_work->used_.push_back(t);
    return t;
  }
  /// Processes the graph at the end of the trace.
  template <class G>
  static void finish(G&) {}
  template <class T>
  static T value(T const& t) {
    return copy_as_laid_out(t);
  }
  template <class T>
  static T twin(T const& t) {
    return copy_as_laid_out(t);
  }

private:
  static void refuse_traced(tensor const& t) {
    if (trace_layer::is_traced_by_mode(t)) refuse_traced_number();
  }
  void number(tensor const& t) override {
    refuse_traced(t);
    if (before_) before_->number(t);
  }
  void memory(tensor const& t, memory_reader const& by) override {
    refuse_traced(t);
    if (is_among(used_, t))
      refuse::argument_is_invalid("trace", "the memory of a tensor that the function made of C++ values was asked for "
                                           "after an operator had used it; fill it first, or write by operators");
    if (before_) before_->memory(t, by);
  }
  tensor lifted(tensor const& t) override {
    literals_.push_back(t);
    return t;
  }
  static bool is_among(boxed_args const& all, tensor const& t) {
    for (int k = all.size(); k-- > 0;)
      if (all[k].is(t)) return true;
    return false;
  }
  static inline constinit thread_local on_real_values* at_work = nullptr;
  read_watcher* before_;
  on_real_values* around_;
  literal_lifter* lifts_;
  boxed_args literals_, used_;
};
} // namespace detail

namespace detail {
/// How a trace treats tensors that the function captures.
enum class capture_policy : unsigned char {
  refused,    // captures are refused, and so are hooks on results
  collected,  // traced as a transform, on copies; the generator is restored, since the graph writes and draws
  by_function // traced as a mode; the function calls `trace_layer::captured_value` for each
};
/// Traces a function on some tensors. Captured tensors become inputs after them, each once, and are appended to
/// `captured`. `On` defines how the tensors become values of the trace.
template <class On>
graph trace_boxed(boxed_function_ref f, boxed_args const& x, typename On::options const& how,
                  capture_policy captures = capture_policy::refused, boxed_args* captured = nullptr);
} // namespace detail

/// The function object that `make_fx` returns: `make_fx(f)(x...)` is the graph of f for the dtypes and shapes of some
/// tensors. It traces at run time, below whatever transforms f applies ("real" mode). The graph contains the branches
/// of C++ control flow that these values take. Arguments may be trees; numbers in them become constants of the graph.
/// Run the graph by `interpret`. Throws `value_error` for what a graph cannot represent: tensors that the function
/// captures, undefined tensors, modes that it switches on, and setting the random generator.
template <class F, class On = detail::on_real_values>
struct make_fx_function {
  [[no_unique_address]] F f;
  [[no_unique_address]] typename On::options how{};
  constexpr explicit make_fx_function(F f_, typename On::options h = {}) : f(f_), how(h) {}

  template <class... X>
  graph operator()(X const&... x) const {
    detail::boxed_call_with<X...> const call(&f, &detail::run_boxed<F, X...>, x...);
    return detail::trace_boxed<On>(call, call.arguments, how);
  }
  /// Returns the graph of a function that captures tensors. These are appended to `captured` and become inputs after
  /// the arguments, each once. The function runs on copies, and the generator is restored, because the graph will write
  /// and draw random numbers when it runs.
  template <class... X>
  graph with_captures(boxed_args& captured, X const&... x) const {
    detail::boxed_call_with<X...> const call(&f, &detail::run_boxed<F, X...>, x...);
    return detail::trace_boxed<On>(call, call.arguments, how, detail::capture_policy::collected, &captured);
  }
};
template <class F>
constexpr auto make_fx(F f) {
  return make_fx_function<F>(f);
}

#if VARVE_DEFINES_CAPTURE
namespace detail {
/// Refuses hooks that a traced function registered on values of a future gradient, because they are not in the graph.
inline void refuse_hooks(unsigned before, boxed_args const& y) {
  if (hooks_registered == before) return;
  for (tensor const& t : y)
    if (t.defined() && t.has_history())
      refuse::argument_is_invalid("trace", "hooks were registered in a function that is traced, whose results "
                                           "require gradients: the graph would not know of them; register them on "
                                           "what the graph gives");
}
template <class On>
graph trace_boxed(boxed_function_ref f, boxed_args const& x, typename On::options const& how, capture_policy captures,
                  boxed_args* captured) {
  using T = dependent<tensor, On>;
  On const values(how);
  bool const as_transform = captures == capture_policy::collected; // else autograd treats writes as done
  trace_layer l(as_transform ? trace_layer::own_kind : On::host());
  l.captures = captured;
  l.apart = as_transform || On::apart;
  l.copy = &On::template value<T>;
  l.twin = &On::template twin<T>;
  l.template detaches<T>();
  l.literal = On::literal;
  if constexpr (requires { On::missing_node; })
    if (captures == capture_policy::by_function) l.missing_node = &On::missing_node;
  record_hops<T>(); // for a trace that is a mode, below eager autograd
  generator const before = default_generator;
  unsigned const hooks = hooks_registered;
  boxed_args in;
  for (tensor const& t : x) in.push_back(l.input(t));
  auto const trace = [&] {
    l.trace_function([&] {
      boxed_args const y = f(in);
      if (captures == capture_policy::refused) refuse_hooks(hooks, y);
      return y;
    });
  };
  if (as_transform) {
    generator_guard const as_before(before);
    trace();
  } else {
    trace();
  }
  if (l.captures) l.builder.inputs_first();
  dependent<graph, On> g = l.builder.finish();
  values.finish(g);
  g = without_scaffolds(g);
  return share_regions(without_unread_states(g));
}
#if VARVE_COMPILED // for the library
template graph trace_boxed<on_real_values>(boxed_function_ref, boxed_args const&, on_real_values::options const&,
                                           capture_policy, boxed_args*);
#endif
} // namespace detail
#endif

} // namespace varve
