// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/graph/builder.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/interpreter/interpreter.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/item.hpp>
#include <varve/op/randn.hpp>
#include <varve/trace/known_values.hpp>

#include <vector>

namespace varve {

/// Tracing as a run-time interpreter: every operator is run on the real values and written to the graph. The
/// counterpart of calling operators on proxies; both write by the same `graph_builder`.
///
/// A tracer has one of two hosts. Among the transforms it sees calls before modes and autograd do, and its values are
/// the real ones with their nodes as payload. As a mode, in the proxy slot below all user modes and the functional one
/// (MD-5), it sees what transforms, autograd and modes have made of a call; its values are the real ones themselves,
/// and a table says their nodes.
struct trace_layer : layer {
  graph_builder builder;
  trace_layer* outer = nullptr;
  /// Where tensors that the function captures are collected: they become inputs behind its arguments. Null: they are
  /// refused.
  boxed_args* captures = nullptr;

  /// Operators none of whose operands is traced run, and are not written down: their results are constants (captures)
  /// of the graph. Random ones are: who runs the graph draws the same numbers in the same order.
  bool folds = false;
  /// ... and how often each of these constants was written when it was captured: it must stay as it is.
  list<std::uint32_t> writes_before{};
  void require_unwritten() const {
    for (std::size_t k = 0; k < writes_before.size(); ++k)
      if ((*captures)[static_cast<int>(k)].writes() != writes_before[k])
        refuse::argument_is_invalid("linearize", "a value that the derivative needs was written into in place; use the "
                                                 "functional operator");
  }

  /// The values it runs on are copies: what the function writes reaches nothing of the user's, and random numbers are
  /// drawn where no other layer sees it. The caller puts the generator back.
  bool apart = false;
  /// ... or, for a trace that happens at every call, the values themselves, as long as nothing writes into them: what
  /// would throws `write_met`, and is to be traced again on copies.
  bool copies = true;
  struct write_met {};
  /// How copies are made: `detail::copy_as_laid_out`, or a fake tensor in place of one. (A pointer, so that the header
  /// alone instantiates no operator.)
  tensor (*copy)(tensor const&) = nullptr;
  /// Of a mode: another tensor like one, for an argument that is given twice.
  tensor (*twin)(tensor const&) = nullptr;
  /// Of a mode on fake tensors: what a tensor that was made of C++ values holds; undefined of others.
  tensor (*literal)(tensor const&) = nullptr;
  /// Told of an operator that no graph can call, whose results are then zeros in it. Null: it is refused.
  void (*missing_node)(char const* op) = nullptr;
  /// Of a mode: the trace whose values the function may capture, which stays a function of them.
  trace_layer const* captures_of = nullptr;
  /// The custom function whose `forward` it is: that may use of the traced values those it is given.
  char const* custom = nullptr;
  /// Of a function that only some lanes of a `vmap` below run: which, one truth value for each. Loops that are run to
  /// be traced do not wait for the others. Undefined: all.
  tensor lanes;

  /// The trace of a function inside another traced one, whose values it lifts to inputs.
  explicit trace_layer(trace_layer& around) : trace_layer(around.host, &around.builder) {
    outer = &around;
    hidden = around.hidden + 1;
    apart = true;
    lanes = around.lanes;
    copies = !around.apart || around.copies;
    copy = around.copy;
    twin = around.twin;
    literal = around.literal;
    missing_node = around.missing_node;
  }
  trace_layer() : trace_layer(own_kind) {}
  explicit trace_layer(layer_kind const& host_, graph_builder* around = nullptr)
      : layer(host_, this), builder(around), host(host_) {
    pushed::name(*this, stack());
  }
  static layer_kind const own_kind, mode_kind;
  layer_kind const& host; // one of these; `kind` is another one while a call is processed
  bool is_mode() const { return &host == &mode_kind; }
  static layer_stack& mode_slot() { return this_thread_state.infra[static_cast<int>(infra_mode::proxy)]; }
  layer_stack& stack() const { return is_mode() ? mode_slot() : this_thread_state.transforms; }
  /// Runs what works on the real values, with this layer off the stack. (A mode is off while it is asked.)
  template <class Body>
  auto below(Body const& body) const {
    if (is_mode()) return body();
    temporarily_popped const off(hidden);
    scaffolding const for_shapes(apart);
    return body();
  }
  /// ... for rules of higher-order operators, which are called with a transform on its stack.
  template <class Body>
  auto beneath(Body const& body) const {
    if (is_mode()) return body();
    lowered const off;
    return below(body);
  }
  /// An argument or captured tensor as the trace runs on it, with this layer off the stack.
  tensor value_of(tensor const& t);
  /// What a thread's trace cannot keep: refused by name.
  void require_kept() const;
  /// Is a call on these written down, or does it fold?
  bool records(boxed_args const& x, bool random = false) const;
  /// Says how a node was called, which this thread has just done.
  void called(int node, bool grad_mode);
  /// A value of the trace: the real tensor with its node number.
  tensor wrap(tensor const& v, int node);
  /// ... that a higher-order operator or custom function gave: of a mode another one than they were given, which
  /// functions may return.
  tensor wrap_result(tensor const& v, int node) {
    if (is_mode() && v.has_history()) detail::refuse_eager_gradient("the function of an operator", kind->name);
    return wrap(distinct(v), node);
  }
  /// Values of a trace around, and captured ones, are lifted where they are used.
  tensor distinct(tensor const& v) {
    if (!is_mode() || (!owns(v) && v.is_made_since(epoch))) return v;
    return standing_for(v, below([&] { return twin(v); }));
  }
  int node_of(tensor const& t);
  /// Is it a value of this trace?
  bool is_mine(tensor const& t) const;
  /// ... or of one around it?
  bool owns(tensor const& t) const;
  /// Has the function written into a tensor from outside, of which the trace has a copy?
  bool has_written(tensor const& t) const;
  /// Is a tensor a value of the trace that is a mode of this thread, or made of what that has written?
  static bool is_traced_by_mode(tensor const& t) {
    layer const* const l = mode_at_work();
    if (!l) return false;
    for (auto const* tracer = static_cast<trace_layer const*>(l->object); tracer; tracer = tracer->captures_of)
      if (tracer->owns(t) || tracer->has_written(t)) return true;
    return false;
  }
  /// The tracer that is a mode of this thread.
  static layer* mode_at_work() { return mode_slot().top; }
  /// Of what this thread runs now; null: nothing is traced.
  static trace_layer* innermost() {
    for (layer* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->kind->is_trace()) return static_cast<trace_layer*>(l->object);
    return mode_at_work() ? static_cast<trace_layer*>(mode_at_work()->object) : nullptr;
  }
  /// The real tensor behind a value of this trace or one around it.
  tensor real(tensor const& t) const;
  boxed_args reals(boxed_args const& x) const;
  /// Writes a higher-order operator with one or two functions: each is traced into a region of its own, on the real
  /// operands. `choose` makes one of the real results of both, `prepare` is given both traces.
  template <class Choose, class Prepare = void (*)(trace_layer&, trace_layer&)>
  boxed_args record_branches(
      op_handle const* handle, boxed_args const& x, std::vector<boxed_function> const& functions, attributes const& at,
      Choose const& choose, Prepare const& prepare = [](trace_layer&, trace_layer&) {}) {
    require_kept();
    std::vector<int> ids;
    for (auto const& t : x) ids.push_back(node_of(t));
    std::vector<boxed_args> values;
    generator const before = default_generator;
    auto const trace_into = [&](trace_layer& l, std::size_t k) {
      boxed_args in;
      for (int i = 1; i < x.size(); ++i) in.push_back(l.input(real(x[i])));
      values.push_back(l.trace_function([&] { return functions[k](in); }));
      l.builder.close();
      default_generator = before;
    };
    trace_layer on_true(*this), on_false(*this);
    prepare(on_true, on_false);
    trace_into(on_true, 0);
    bool const one = functions.size() == 1;
    if (!one) trace_into(on_false, 1);
    if (!one && values[0].size() != values[1].size())
      refuse::with<shape_error>((std::string("varve: ") + handle->name +
                                 ": both functions must return the same number of values: " +
                                 std::to_string(values[0].size()) + " and " + std::to_string(values[1].size()))
                                    .c_str());
    int const node = builder.emit_functions(handle, at, ids.data(), static_cast<int>(ids.size()), on_true.builder,
                                            one ? nullptr : &on_false.builder);
    called(node, this_thread_state.grad_mode);
    boxed_args r;
    for (int k = 0; k < values[0].size(); ++k) {
      tensor v = one ? values[0][k] : choose(real(x[0]), values[0][k], values[1][k]);
      for (std::size_t f = 0; f < values.size(); ++f) v = as_returned(v, values[f][k], x);
      r.push_back(wrap_result(v, builder.result_of(node, k, {v.dtype(), v.sizes()})));
    }
    return r;
  }

  /// Runs operators that are part of the program, for rules of higher-order operators.
  template <class Body>
  auto within(Body const& body) {
    if (!is_mode()) return body();
    detail::reentered const on(stack(), *this);
    return body();
  }

  /// A further argument of the function.
  tensor input(tensor const& t);
  /// Of a mode: a captured tensor as a value of the trace.
  tensor captured_value(tensor const& t) {
    int const scaffolds = builder.scaffolds(); // an input of the program, also where it is first met for a shape
    builder.count_scaffolds(-scaffolds);
    int const node = node_of(t);
    builder.count_scaffolds(scaffolds);
    return wrap(value_of(t), node);
  }
  /// ... a value of the trace in memory of its own.
  tensor in_own_memory(tensor const& v) {
    int const node = node_of(v);
    return wrap(below([&] { return twin(v); }), node);
  }
  /// Runs the function, whose results become those of the graph: the real ones.
  template <class Body>
  boxed_args trace_function(Body const& body) {
    auto const trace = [&] {
      pushed const on(stack(), *this);
      boxed_args const y = body();
      boxed_args values;
      for (auto const& t : y) {
        builder.result(node_of(t));
        values.push_back(real(t));
      }
      require_kept();
      return values;
    };
    if (!is_mode()) return trace();
    emptied const alone(stack()); // a trace inside of one is none of that (MX-8)
    return trace();
  }

  /// Indices in `captures` of the inputs behind the arguments, in their order.
  std::vector<int> captured() const;

private:
  /// What runs below on behalf of an `apart` trace is for shapes alone: other traces may drop it.
  struct scaffolding {
    bool on;
    explicit scaffolding(bool really) : on(really) { count(1); }
    scaffolding(scaffolding const&) = delete;
    scaffolding& operator=(scaffolding const&) = delete;
    ~scaffolding() { count(-1); }
    void count(int by) const {
      for (layer* l = on ? this_thread_state.transforms.top : nullptr; l; l = l->below)
        if (l->kind->is_trace()) static_cast<trace_layer*>(l->object)->builder.count_scaffolds(by);
      layer* const mode = on ? mode_at_work() : nullptr;
      for (auto* l = mode ? static_cast<trace_layer*>(mode->object) : nullptr; l; l = l->outer)
        l->builder.count_scaffolds(by);
    }
  };
  detail::known_values known_; // of a mode
  /// What a traced function changes in place but for its elements (`transpose_`).
  struct follows_renames : detail::rename_watcher {
    explicit follows_renames(trace_layer& t)
        : rename_watcher{&told_before, &told_after, &told_read, &told_shared, nullptr}, of(t),
          before(std::exchange(detail::watches_renames, this)) {}
    follows_renames(follows_renames const&) = delete;
    follows_renames& operator=(follows_renames const&) = delete;
    ~follows_renames() { detail::watches_renames = before; }
    static void told_before(detail::rename_watcher& self, char const* op, tensor const& x);
    static void told_after(detail::rename_watcher& self, tensor const& x, tensor const& y);
    static void told_read(detail::rename_watcher& self, tensor const& x, tensor const& y);
    static void told_shared(detail::rename_watcher& self, tensor const& x, tensor const& y);
    trace_layer& of;
    detail::rename_watcher* before;
    bool knows = false; // what is just renamed, which is found by its memory
  };
  follows_renames follows_{*this};

public:
  /// How copies are made that lie as what they are of: all that a trace on real values needs to run apart from them.
  template <class T>
  void copies_by(T (*make)(T const&)) {
    copy = twin = make;
    detaches<T>();
  }
  /// Has what reads the data of a value (`tensor::data`) ask for it by an operator.
  template <class T>
  void detaches() {
    follows_.detach = [](tensor const& x) -> tensor { return varve::detach(static_cast<T const&>(x)); };
  }

private:
  /// The node of a value of a mode; -1: none.
  int unknown(tensor const& t);
  int known_node(tensor const& t) const;
  bool is_detached(int node) const;
  int exact_node(tensor const& t) const; // ... by its handle alone, tensors from outside too
  int from_outside(tensor const& t, int node);
  void require_seen(tensor const& t) const;

  detail::memory_stand_ins stand_ins_;
  std::vector<int> captured_; // pairs of an index in `captures` and its node
  boxed_args originals_;      // arguments of which it runs on an alias
  boxed_args found_;          // literals, of a mode captured tensors too
  std::vector<int> found_nodes_;
  struct number_told {
    extent symbol;
    int by; // the node whose number it is
  };
  list<number_told> told_;
  boxed_args outside_;                               // tensors that it runs on without a copy
  boxed_args copied_;                                // pairs of a tensor from outside of an `apart` trace and its copy
  list<std::uint32_t> copied_writes_;                // of each copy as it was made
  layer const* modes_ = this_thread_state.modes.top; // as the trace began
  saved_hooks_scope const* hooks_ = this_thread_state.saved_hooks;
  std::uint64_t sets_ = detail::generator_sets;
  generator drawn_ = default_generator; // as the trace left it
  bool ambient_ = is_grad_enabled();    // as the trace began

  tensor stand_in(tensor const& of);
  tensor standing_for(tensor const& t, tensor copied);
  /// A result is in the memory of an operand where what one of the functions returned is.
  tensor as_returned(tensor const& v, tensor const& returned, boxed_args const& x) {
    for (int i = 1; i < x.size(); ++i)
      if (tensor const t = real(x[i]); returned.shares_storage(t) && !v.shares_storage(t))
        if (!v.stands_in() && v.is_made_since(epoch) && !owns(v)) return standing_for(t, v);
    return v;
  }
  int literal_node(tensor const& t);
  int captured_node(tensor const& t);
  static bool can_be_constant(tensor const& t); // its dtype and its elements
  tensor record_nothing(boxed_op const& op, boxed_args const& x);
  bool sees_other_modes() const;
  /// A symbol is the number in one value only.
  void told(extent symbol, int by) {
    for (auto const& [known, node] : told_)
      if (known_equal(known, symbol) && node != by)
        refuse::with<data_dependent_error>(
            "varve: trace: a traced function that reads a number of data runs twice in one "
            "program, on other data; read the number outside of it, and pass it");
    told_.push_back({symbol, by});
  }
  /// What an operator is run on.
  tensor run_on(tensor const& t);
  static bool is_random(boxed_op const& op);
  /// What was drawn until now was drawn by what is traced.
  void settle();
  /// Is it memory that was there before the trace?
  bool is_outside(tensor const& t) const;
  tensor run(boxed_op const& op, boxed_args const& x) const;
  tensor record(boxed_op const& op, boxed_args const& x);
};
namespace detail {
/// Is a trace at work on this thread?
inline bool inside_trace() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (l->kind->is_trace()) return true;
  return trace_layer::mode_at_work();
}
} // namespace detail
inline constexpr layer_kind trace_layer::own_kind{
    .name = "trace",
    .role = layer_role::trace,
    .process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor {
      return static_cast<trace_layer&>(l).record(op, x);
    },
    .records = true};
inline constexpr layer_kind trace_layer::mode_kind{.name = "proxy_mode",
                                                   .role = layer_role::trace,
                                                   .mode_type = &trace_layer::own_kind,
                                                   .process = trace_layer::own_kind.process,
                                                   .records = true};

} // namespace varve

#include <varve/trace/traced_calls.hpp> // the members
#include <varve/trace/traced_nodes.hpp>
#include <varve/trace/traced_renames.hpp>
#include <varve/trace/traced_values.hpp>
