// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/pass/dce.hpp>
#include <varve/pass/share_regions.hpp>
#include <varve/pass/unread_states.hpp>
#include <varve/trace/copy_as_laid_out.hpp>
#include <varve/trace/trace_layer.hpp>
#include <varve/transform/recorded_hop.hpp>

/// @file
/// `make_fx` writes below the transforms that a function applies; `interpret` (`graph/interpret.hpp`) runs the graph on
/// tensors.
namespace varve {

namespace detail {
/// What a trace runs operators on: the values it is given, and of those that must not be written copies. As a mode
/// below all others (MD-5), but inside of a transform, whose values it would not see, as a transform. What values of
/// the trace hold is not to be asked for: the program would be the one for these values.
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
  /// The elements of a tensor that the function made of C++ values; undefined of others.
  static tensor literal(tensor const& t) {
    if (!at_work || !is_among(at_work->literals_, t)) return {};
    if (!is_among(at_work->used_, t)) at_work->used_.push_back(t);
    return t;
  }
  /// What becomes of the graph at the end.
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
  void memory(tensor const& t) override {
    refuse_traced(t);
    if (is_among(used_, t))
      refuse::argument_is_invalid("trace", "the memory of a tensor that the function made of C++ values was asked for "
                                           "after an operator had used it; fill it first, or write by operators");
    if (before_) before_->memory(t);
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
/// Hooks that a traced function gave to values of a gradient that is to come are not in the graph.
template <class Y>
void refuse_hooks(unsigned before, Y const& y) {
  if (hooks_registered == before) return;
  tree_for_each(
      [](tensor const& t) {
        if (t.defined() && t.has_history())
          refuse::argument_is_invalid("trace", "hooks were registered in a function that is traced, whose results "
                                               "require gradients: the graph would not know of them; register them on "
                                               "what the graph gives");
      },
      y);
}
} // namespace detail

/// `make_fx(f)(x...)`: the graph of f at the dtypes and shapes of some tensors, traced at run time below whatever
/// transforms f applies (MX-1, "real" mode). Branches of C++ control flow taken by these values are what the graph
/// holds. Arguments may be trees; numbers among them are constants of the graph. Run it by `interpret`. Errors
/// (`value_error`): what a graph could not keep, namely tensors that the function captures, undefined tensors, modes
/// that it switches on, and setting the random generator.
template <class F, class On = detail::on_real_values>
struct make_fx_function {
  [[no_unique_address]] F f;
  [[no_unique_address]] typename On::options how{};
  constexpr explicit make_fx_function(F f_, typename On::options h = {}) : f(f_), how(h) {}

  template <class... X>
  graph operator()(X const&... x) const {
    On const values(how);
    trace_layer l(On::host());
    l.apart = On::apart;
    unsigned const hooks = detail::hooks_registered;
    return trace(values, l, [hooks](auto const&... y) { (detail::refuse_hooks(hooks, y), ...); }, x...);
  }
  /// The same, as a transform, of a function that captures tensors: these are collected, as inputs behind the
  /// arguments, each once. It runs on copies, and the generator is put back: what it writes and draws, the graph will.
  /// `returned` is told what the function returned, which may be nothing.
  template <class R, class... X>
  graph with_captures(boxed_args& captured, R const& returned, X const&... x) const {
    On const values(how);
    trace_layer l; // not below autograd, which would take what is written into captured tensors for done
    l.captures = &captured;
    l.apart = true;
    generator_guard const as_before(default_generator);
    return trace(values, l, returned, x...);
  }

  /// As a mode, of a function that collects what it captures itself (`trace_layer::captured_value`).
  template <class... X>
  graph with_captures_of_its_own(boxed_args& captured, X const&... x) const {
    On const values(how);
    trace_layer l(On::host());
    l.captures = &captured;
    l.apart = On::apart;
    if constexpr (requires { On::missing_node; }) l.missing_node = &On::missing_node;
    return trace(values, l, [](auto const&...) {}, x...);
  }

private:
  template <class R, class... X>
  graph trace(On const& values, trace_layer& l, R const& returned, X const&... x) const {
    l.copy = &On::template value<dependent<tensor, R>>;
    l.twin = &On::template twin<dependent<tensor, R>>;
    l.template detaches<dependent<tensor, R>>();
    detail::record_hops<dependent<tensor, R>>(); // where it is a mode, below eager autograd
    l.literal = On::literal;
    [[maybe_unused]] auto const argument = [&](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return l.input(v);
      else return v;
    };
    std::tuple const in{tree_map(argument, x)...}; // braces: in order
    l.trace_function([&] {
      boxed_args results;
      if constexpr (std::is_void_v<decltype(detail::call_with(f, in))>) {
        detail::call_with(f, in);
        returned();
      } else {
        auto const y = detail::call_with(f, in);
        tree_for_each(
            [&](auto const& v) {
              static_assert(std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>,
                            "varve: make_fx: what a traced function returns must be a tree of tensors");
              results.push_back(v);
            },
            y);
        returned(y);
      }
      return results;
    });
    if (l.captures) l.builder.inputs_first();
    dependent<graph, F> g = l.builder.finish();
    values.finish(g);
    g = without_scaffolds(g);
    return share_regions(without_unread_states(g));
  }
};
template <class F>
constexpr auto make_fx(F f) {
  return make_fx_function<F>(f);
}

} // namespace varve
