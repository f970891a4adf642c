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

/// Tracing as a run-time interpreter: every operator runs on the real values and is written to the graph. Calling
/// operators on proxies is the static counterpart; both write by the same `graph_builder`.
///
/// A tracer is either a transform or a mode (its `host`). As a transform it sees calls before modes and autograd do,
/// and its values are the real ones with their nodes as payload. As a mode, it is in the proxy slot below all user
/// modes and the functional mode. It then sees what transforms, autograd and modes have made of a call. Its values are
/// the real tensors themselves, and a table stores their nodes.
struct trace_layer : layer {
  graph_builder builder;
  trace_layer* outer = nullptr;
  /// The list to which tensors that the function captures are appended; they become inputs after its arguments. Null:
  /// captures are refused.
  boxed_args* captures = nullptr;

  /// True if operators without a traced operand are run but not recorded; their results are constants (captures) of the
  /// graph. Random operators are always recorded, so that running the graph draws the same numbers in the same order.
  bool folds = false;
  /// The number of writes into each of these constants when it was captured. The constants must not be written
  /// afterwards.
  list<std::uint32_t> writes_before{};
  void require_unwritten() const {
    for (std::size_t k = 0; k < writes_before.size(); ++k)
      if ((*captures)[static_cast<int>(k)].writes() != writes_before[k])
        refuse::argument_is_invalid("linearize", "a value that the derivative needs was written into in place; use the "
                                                 "functional operator");
  }

  /// True if the trace runs on copies of its values, so that the function writes into none of the user's tensors.
  /// Random numbers are drawn where no other layer sees it. The caller restores the generator.
  bool apart = false;
  /// False for a trace that is repeated at every call and runs on the values themselves. A write into one of them then
  /// throws `write_met`, and the function must be traced again on copies.
  bool copies = true;
  struct write_met {};
  /// How copies are made: `detail::copy_as_laid_out`, or a function that returns a fake tensor. This is a pointer so
  /// that including the header alone instantiates no operator.
  tensor (*copy)(tensor const&) = nullptr;
  /// For a mode: creates another tensor like a given one, for an argument that is passed twice.
  tensor (*twin)(tensor const&) = nullptr;
  /// For a mode on fake tensors: returns the elements of a tensor that was made from C++ values; undefined for other
  /// tensors.
  tensor (*literal)(tensor const&) = nullptr;
  /// Called with the name of an operator that no graph can call; its results are zeros in the graph. Null: such
  /// operators are refused.
  void (*missing_node)(char const* op) = nullptr;
  /// The trace around an operator whose function is traced here. The function may capture its values, and remains a
  /// function of them. Other tensors that the function captures are what that trace has in place of them.
  trace_layer* captures_of = nullptr;
  /// The name of the custom function whose `forward` is traced, or null. It may use only those traced values that are
  /// its arguments.
  char const* custom = nullptr;
  /// For a function that only some lanes of a `vmap` below run: one truth value per lane. Loops that run while they are
  /// traced do not wait for the other lanes. Undefined: all lanes.
  tensor lanes;

  /// Creates the trace of a function inside another traced one, whose values it lifts to inputs.
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
  layer_kind const& host; // one of these; `kind` differs while a call is processed
  bool is_mode() const { return &host == &mode_kind; }
  static layer_stack& mode_slot() { return this_thread_state.infra[static_cast<int>(infra_mode::proxy)]; }
  layer_stack& stack() const { return is_mode() ? mode_slot() : this_thread_state.transforms; }
  /// Runs code that works on the real values, with this layer off the stack. A mode is off already while it processes a
  /// call.
  template <class Body>
  auto below(Body const& body) const {
    if (is_mode()) return body();
    temporarily_popped const off(hidden);
    scaffolding const for_shapes(apart);
    return body();
  }
  /// Runs code as `below` does, for rules of higher-order operators, which are called while a transform is on its
  /// stack.
  template <class Body>
  auto beneath(Body const& body) const {
    if (is_mode()) return body();
    lowered const off;
    return below(body);
  }
  /// Returns an argument or captured tensor as the trace runs on it, with the layers of the innermost trace off the
  /// stack.
  tensor value_of(tensor const& t) { return value_of(t, *this); }
  tensor value_of(tensor const& t, trace_layer const& at_work);
  /// Throws `value_error` if modes, saved-tensor hooks or the generator were changed in a way that a graph cannot
  /// represent.
  void require_kept() const;
  /// True if a call with these operands is recorded; false if it folds to a constant.
  bool records(boxed_args const& x, bool random = false) const;
  /// Records how this thread has just called a node.
  void called(int node, bool grad_mode);
  /// Returns a value of the trace: the real tensor with its node number.
  tensor wrap(tensor const& v, int node);
  /// Returns the result of a higher-order operator or custom function as a value of the trace. In a mode it differs
  /// from the operands, which functions may return.
  tensor wrap_result(tensor const& v, int node) {
    if (is_mode() && v.has_history()) detail::refuse_eager_gradient("the function of an operator", kind->name);
    return wrap(distinct(v), node);
  }
  /// Returns v or, in a mode, another tensor for it if it is a value of this or an outer trace, or was captured.
  tensor distinct(tensor const& v) {
    if (!is_mode() || (!owns(v) && v.is_made_since(epoch))) return v;
    return standing_for(v, below([&] { return twin(v); }));
  }
  int node_of(tensor const& t);
  /// True if a tensor is a value of this trace.
  bool is_mine(tensor const& t) const;
  /// True if a tensor is a value of this trace or of one around it.
  bool owns(tensor const& t) const;
  /// True if the function has written into an outside tensor of which the trace has a copy.
  bool has_written(tensor const& t) const;
  /// True if a tensor is a value of the trace that is a mode of this thread, or if that trace has written into it.
  static bool is_traced_by_mode(tensor const& t) {
    layer const* const l = mode_at_work();
    if (!l) return false;
    for (auto const* tracer = static_cast<trace_layer const*>(l->object); tracer; tracer = tracer->captures_of)
      if (tracer->owns(t) || tracer->has_written(t)) return true;
    return false;
  }
  /// Returns the tracer that is a mode of this thread, or null.
  static layer* mode_at_work() { return mode_slot().top; }
  /// Returns the innermost trace of the code that this thread is running, or null if nothing is traced.
  static trace_layer* innermost() {
    for (layer* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->kind->is_trace()) return static_cast<trace_layer*>(l->object);
    return mode_at_work() ? static_cast<trace_layer*>(mode_at_work()->object) : nullptr;
  }
  /// Returns the real tensor behind a value of this trace or of one around it.
  tensor real(tensor const& t) const;
  /// Returns the tensors on which an operator with functions runs in place of its operands. A transform that is `apart`
  /// has copies of captured ones, as for other operators.
  boxed_args reals(boxed_args const& x);
  tensor real_operand(tensor const& t) { return is_mode() ? real(t) : run_on(t); }
  /// Records a higher-order operator with one or two functions. Each function is traced into a region of its own, on
  /// the real operands. `choose` combines the real results of both functions; `prepare` receives both traces.
  template <class Choose, class Prepare = void (*)(trace_layer&, trace_layer&)>
  boxed_args record_branches(
      op_handle const* handle, boxed_args const& x, std::vector<boxed_function> const& functions, attributes const& at,
      Choose const& choose, Prepare const& prepare = [](trace_layer&, trace_layer&) {}) {
    require_kept();
    std::vector<int> ids;
    for (auto const& t : x) ids.push_back(node_of(t));
    boxed_args const given = reals(x);
    std::vector<boxed_args> values;
    generator const before = default_generator;
    auto const trace_into = [&](trace_layer& l, std::size_t k) {
      boxed_args in;
      for (int i = 1; i < x.size(); ++i) in.push_back(l.input(given[i]));
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
      tensor v = one ? values[0][k] : choose(given[0], values[0][k], values[1][k]);
      for (std::size_t f = 0; f < values.size(); ++f) v = as_returned(v, values[f][k], given);
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

  /// Adds an argument of the function and returns its value in the trace.
  tensor input(tensor const& t);
  /// Returns a captured tensor as a value of the trace, for a mode.
  tensor captured_value(tensor const& t) {
    int const scaffolds = builder.scaffolds(); // an input of the program, even if first used for a shape
    builder.count_scaffolds(-scaffolds);
    int const node = node_of(t);
    builder.count_scaffolds(scaffolds);
    tensor value = value_of(t);
    if (known_.exact(value) >= 0) value = below([&] { return twin(value); }); // the same tensor is an argument
    return wrap(value, node);
  }
  /// Returns a value of the trace in separate memory, with the same node.
  tensor in_own_memory(tensor const& v) {
    int const node = node_of(v);
    return wrap(below([&] { return twin(v); }), node);
  }
  /// Runs the function; its results become those of the graph. Returns the real results.
  template <class Body>
  boxed_args trace_function(Body const& body) {
    auto const trace = [&] {
      pushed const on(stack(), *this);
      boxed_args const y = body();
      boxed_args values;
      for (auto const& t : y) {
        builder.result(node_of(t));
        values.push_back(real_operand(t));
      }
      require_kept();
      return values;
    };
    if (!is_mode()) return trace();
    emptied const alone(stack()); // a nested trace must not be recorded by the outer one
    return trace();
  }

  /// Returns the indices in `captures` of the inputs after the arguments, in their order.
  std::vector<int> captured() const;

private:
  /// Marks code that runs below on behalf of an `apart` trace as needed for shapes only, so that other traces may drop
  /// it.
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
  detail::known_values known_; // for a mode
  /// Follows in-place changes of a tensor other than of its elements, such as `transpose_`.
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
    bool knows = false; // whether the renamed tensor is known by its memory
  };
  follows_renames follows_{*this};

public:
  /// Sets the function that copies tensors with their layout. A trace on real values needs nothing else to run
  /// separately from them.
  template <class T>
  void copies_by(T (*make)(T const&)) {
    copy = twin = make;
    detaches<T>();
  }
  /// Records an operator `detach` for code that reads the data of a value (`tensor::data`).
  template <class T>
  void detaches() {
    follows_.detach = [](tensor const& x) -> tensor { return varve::detach(static_cast<T const&>(x)); };
  }

private:
  /// Returns a node of zeros for a value that is not part of the program, whose shape is needed.
  int unknown(tensor const& t);
  /// Returns the node of a value of a mode, or -1.
  int known_node(tensor const& t) const;
  bool is_detached(int node) const;
  int exact_node(tensor const& t) const; // by its handle only; outside tensors too
  int from_outside(tensor const& t, int node);
  void require_seen(tensor const& t) const;

  detail::memory_stand_ins stand_ins_;
  std::vector<int> captured_; // pairs of an index in `captures` and its node
  boxed_args originals_;      // arguments of which the trace runs on an alias
  boxed_args found_;          // literals; for a mode captured tensors too
  std::vector<int> found_nodes_;
  struct number_told {
    extent symbol;
    int by; // the node whose number it is
  };
  list<number_told> told_;
  boxed_args outside_;                               // outside tensors used without a copy
  boxed_args copied_;                                // pairs of an outside tensor of an `apart` trace and its copy
  list<std::uint32_t> copied_writes_;                // of each copy when it was made
  layer const* modes_ = this_thread_state.modes.top; // when the trace began
  bool on_fakes_ = this_thread_state.infra[static_cast<int>(infra_mode::fake)].top != nullptr; // when it began
  saved_hooks_scope const* hooks_ = this_thread_state.saved_hooks;
  std::uint64_t sets_ = detail::generator_sets;
  generator drawn_ = default_generator; // as the trace left it
  bool ambient_ = is_grad_enabled();    // when the trace began

  tensor stand_in(tensor const& of);
  tensor standing_for(tensor const& t, tensor copied);
  /// Places a result in the memory of an operand if one of the functions returned a value in that memory.
  tensor as_returned(tensor const& v, tensor const& returned, boxed_args const& given) {
    for (int i = 1; i < given.size(); ++i)
      if (tensor const& t = given[i]; returned.shares_storage(t) && !v.shares_storage(t))
        if (!v.stands_in() && v.is_made_since(epoch) && !owns(v)) return standing_for(t, v);
    return v;
  }
  int literal_node(tensor const& t);
  int captured_node(tensor const& t);
  static bool can_be_constant(tensor const& t); // by its dtype and elements
  tensor record_nothing(boxed_op const& op, boxed_args const& x);
  bool sees_other_modes() const;
  /// Notes that a symbol is the number read from node `by`. A symbol may be the number of one node only.
  void told(extent symbol, int by) {
    for (auto const& [known, node] : told_)
      if (known_equal(known, symbol) && node != by)
        refuse::with<data_dependent_error>(
            "varve: trace: a traced function that reads a number of data runs twice in one "
            "program, on other data; read the number outside of it, and pass it");
    told_.push_back({symbol, by});
  }
  /// Returns the tensor on which an operator runs in place of t.
  tensor run_on(tensor const& t) { return run_on(t, *this); }
  tensor run_on(tensor const& t, trace_layer const& at_work);
  static bool is_random(boxed_op const& op);
  /// Notes that the random numbers drawn so far were drawn by traced operators.
  void settle();
  /// True if the memory of a tensor existed before the trace.
  bool is_outside(tensor const& t) const;
  tensor run(boxed_op const& op, boxed_args const& x) const;
  tensor record(boxed_op const& op, boxed_args const& x);
};
namespace detail {
/// True if a trace is active on this thread.
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
