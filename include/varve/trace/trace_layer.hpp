// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/interpreter/interpreter.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/item.hpp>
#include <varve/op/randn.hpp>
#include <varve/trace/known_values.hpp>

#include <vector>

namespace varve {

namespace detail {
/// Elements of memory from the first to the last of a layout; 0 where some lie upon one another, or few in much.
index_t span_of(dims const& sizes, dims const& strides);
/// A copy that answers as the tensor does: laid out as it is, a leaf if it is one.
template <class T>
T copy_as_laid_out(T const& t) {
  if (t.is_wrapped()) return clone(t);
  no_grad const off;
  T r;
  if (index_t const span = t.is_contiguous() || !t.has_data() ? 0 : span_of(t.sizes(), t.strides()); span > 0) {
    r = T::empty(dims{span}, t.dtype()).with_layout({t.sizes(), t.strides(), 0, true}, false);
    copy_(r, t);
  } else {
    r = clone(t);
  }
  if (t.requires_grad()) r.set_history(t.history());
  return r;
}
} // namespace detail

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
  /// Layers directly below that see nothing of what the function computes; they stay on the stack, so that values of
  /// theirs that it captures are known as such.
  int hidden = 0;

  /// Operators none of whose operands is traced run, and are not written down: their results are constants (captures)
  /// of the graph. Random ones are: who runs the graph draws the same numbers in the same order.
  bool folds = false;
  /// ... and how often each of these constants was written when it was captured: it must stay as it is.
  std::vector<std::uint32_t> writes_before{};
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
    if (is_mode() && v.requires_grad()) detail::refuse_eager_gradient("the function of an operator", kind->name);
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
    auto const& tracer = *static_cast<trace_layer const*>(l->object);
    return tracer.owns(t) || tracer.has_written(t);
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
  boxed_args found_;          // of a mode: literals and captured tensors
  std::vector<int> found_nodes_;
  std::vector<std::pair<extent, int>> told_;         // symbols, and the nodes that they are numbers of
  boxed_args outside_;                               // tensors that it runs on without a copy
  boxed_args copied_;                                // pairs of a tensor from outside of an `apart` trace and its copy
  std::vector<std::uint32_t> copied_writes_;         // of each copy as it was made
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

#if VARVE_DEFINES
namespace varve {
namespace detail {
VARVE_COLD VARVE_LIBRARY index_t span_of(dims const& sizes, dims const& strides) {
  index_t span = 1, count = 1;
  for (int k = 0; k < sizes.n; ++k) {
    index_t inside = 0; // of the dimensions with smaller strides
    for (int q = 0; q < sizes.n; ++q)
      if (q != k && (strides[q] < strides[k] || (strides[q] == strides[k] && q < k)))
        inside += (sizes[q] - 1) * strides[q];
    if (sizes[k] > 1 && strides[k] <= inside) return 0;
    span += (sizes[k] - 1) * strides[k], count *= sizes[k];
  }
  return span > 2 * count ? 0 : span;
}
} // namespace detail
/// A copy is as old as the original, and in its memory: what a level knows of that holds for it as well.
VARVE_LIBRARY tensor trace_layer::standing_for(tensor const& t, tensor copied) {
  auto const memory_of = [](tensor const& v) {
    tensor const* p = &v;
    while (p->is_wrapped() && !p->id()->store) p = &p->inner();
    return p->id()->store;
  };
  if (storage *const now = memory_of(copied), *const then = memory_of(t); now != then)
    now->epoch = then->epoch, stand_ins_.add(*now, *then);
  return copied;
}
VARVE_LIBRARY tensor trace_layer::value_of(tensor const& t) {
  if (!apart || !copies || !(t.is_wrapped() || t.has_data()) || t.is_number()) return t;
  return standing_for(t, below([&] { return copy(t); }));
}
/// Modes that were on around an operator with functions, and are on again in these, are no others.
VARVE_LIBRARY bool trace_layer::sees_other_modes() const {
  layer const* l = this_thread_state.modes.top;
  while (l && l != modes_ && static_cast<std::int32_t>(l->epoch - epoch) < 0) l = l->below;
  return l != modes_;
}
VARVE_LIBRARY void trace_layer::require_kept() const {
  if (!is_mode() && sees_other_modes())
    refuse::argument_is_invalid("trace", "a mode was switched on in a function that is traced: the graph would not "
                                         "know of it; switch it on around the call of what was traced");
  if (this_thread_state.saved_hooks != hooks_)
    refuse::argument_is_invalid("trace", "saved tensor hooks were switched on in a function that is traced: the graph "
                                         "would not know of them; switch them on around the call of what was traced");
  if (builder.writes_scaffolds()) return; // the generator will be put back
  if (detail::generator_sets != sets_ || default_generator.seed != drawn_.seed ||
      default_generator.offset != drawn_.offset)
    refuse::argument_is_invalid("trace", "the random generator was set in a function that is traced (manual_seed, "
                                         "set_rng_state, generator_guard): the graph would not know of it; set it "
                                         "around the call of what was traced");
}
VARVE_LIBRARY bool trace_layer::records(boxed_args const& x, bool random) const {
  bool traced = !folds || random;
  for (auto const& t : x) traced = traced || (t.defined() && is_mine(t));
  return traced;
}
VARVE_LIBRARY void trace_layer::called(int node, bool grad_mode) {
  settle();
  if (detail::runs_text) builder.is_text(node);
  bool const now = grad_mode && !this_thread_inference;
  if (now != ambient_) builder.called_in(node, now ? recording::on : recording::off);
}
VARVE_LIBRARY tensor trace_layer::wrap(tensor const& v, int node) {
  if (is_mode()) {
    known_.remember(v, node);
    return v;
  }
  return tensor::wrap(v, id, level, tensor::from_number(static_cast<std::int64_t>(node)), {}, v.sizes());
}
/// Zeros, for the shape of what uses a value that is not of the program.
VARVE_LIBRARY int trace_layer::unknown(tensor const& t) {
  int const zero = builder.constant(t.dtype(), 0);
  attributes const at(t.sizes(), dims{static_cast<index_t>(t.dtype())});
  int const zeros = builder.emit(&handle<full_t>, at, &zero, 1, {t.dtype(), t.sizes()});
  return is_floating(t.dtype()) ? builder.is_unknown(zeros) : zeros; // states of the generator are of calls alone
}
VARVE_LIBRARY int trace_layer::node_of(tensor const& t) {
  if (!t.defined())
    refuse::argument_is_invalid("trace", "a tensor that is undefined was used in, or returned by, a function that is "
                                         "traced; return only tensors that hold something");
  if (is_mode()) {
    require_seen(t);
    int n = exact_node(t);
    bool by_outer = false;
    for (trace_layer const* l = outer; l && n < 0; l = l->outer) by_outer = by_outer || l->exact_node(t) >= 0;
    if (n < 0 && !by_outer) n = known_node(t);
    if (n >= 0) return n;
  } else if (is_mine(t)) {
    return static_cast<int>(t.extra().item<std::int64_t>());
  }
  if (t.is_number())
    return builder.constant(t.dtype(),
                            is_floating(t.dtype()) ? t.item<double>() : detail::held(t.item<std::int64_t>()));
  if (custom && outer->owns(t))
    refuse::argument_is_invalid(custom, "its forward uses a value that is being traced and is not among its "
                                        "arguments (hidden in another one, or captured); pass it to apply");
  if (int const n = literal_node(t); n >= 0) return n;
  if (outer) return from_outside(t, builder.lift(&outer->builder, outer->node_of(t), {t.dtype(), t.sizes()}));
  if (builder.writes_scaffolds() && (t.is_made_since(epoch) || (t.stands_in() && !is_mode()))) return unknown(t);
  if (!captures) refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
  for (std::size_t k = 0; k < captured_.size(); k += 2)
    if ((*captures)[captured_[k]].is(t)) return captured_[k + 1];
  int at = 0;
  while (at < captures->size() && !(*captures)[at].is(t)) ++at;
  if (at == captures->size()) {
    captures->push_back(t);
    if (folds) writes_before.push_back(t.writes());
  }
  captured_.push_back(at);
  captured_.push_back(builder.input({t.dtype(), t.sizes()}));
  return from_outside(t, captured_.back());
}
/// What another thread does to a value, or a scope that modes do not see, is not in the graph.
VARVE_LIBRARY void trace_layer::require_seen(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->known_.is_overtaken(t))
      refuse::argument_is_invalid("trace", "a value of a traced function was written into where the trace does not see "
                                           "it (by another thread, or with modes off); write into it in the function "
                                           "itself");
}
/// A graph does not keep another shape of an argument.
VARVE_LIBRARY void trace_layer::follows_renames::told_before(detail::rename_watcher& self, char const* op,
                                                             tensor const& x) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->renaming(*me.before, op, x);
  bool const mine = of.is_mode() ? of.exact_node(x) >= 0 : of.is_mine(x);
  me.knows = mine || (of.is_mode() && of.known_node(x) >= 0);
  if (mine && of.builder.written(of.node_of(x)).op == &placeholder_handle)
    refuse::argument_is_invalid(op, "a traced function changes the shape or the memory of an argument, which a graph "
                                    "does not keep; use the operator without underscore");
}
VARVE_LIBRARY void trace_layer::follows_renames::told_after(detail::rename_watcher& self, tensor const& x,
                                                            tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->renamed(*me.before, x, y);
  if (!of.is_mode()) return;
  if (y.is_wrapped()) { // seen through levels above: what they hold is a value of its own
    tensor const* v = &y;
    while (v->is_wrapped()) v = &v->inner();
    return of.known_.written(*v);
  }
  int const exact = of.exact_node(y);
  if (!me.knows && exact < 0) return;
  of.known_.remember(x, exact >= 0 ? exact : of.node_of(y));
  of.known_.written(x);
}
/// The data of a value is the value without its history (DT-10). What is written through it is not followed: refused
/// where the memory is used again, since its counter is another one. What is detached in place is its own data.
VARVE_LIBRARY void trace_layer::follows_renames::told_read(detail::rename_watcher& self, tensor const& x,
                                                           tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->read(*me.before, x, y);
  auto const detached = [&] {
    int const from = of.node_of(x);
    if (y.is(x) && of.builder.written(from).op == &placeholder_handle) // who calls the program would find it attached
      refuse::argument_is_invalid("detach_", "a function that is traced detaches its argument in place, of which the "
                                             "program would know nothing; use detach");
    return of.builder.emit(&handle<detach_t>, {}, &from, 1, {x.dtype(), x.sizes()});
  };
  if (!of.is_mode()) {
    if (y.is(x) && of.is_mine(x)) x.set_extra(tensor::from_number(static_cast<std::int64_t>(detached())));
    return;
  }
  if (of.known_node(x) < 0) {
    if (y.is(x) && x.object() && detail::exports)
      refuse::argument_is_invalid("detach_", "the program that is traced would not know of it; use detach");
    return;
  }
  of.known_.remember(y, detached());
}
VARVE_LIBRARY void trace_layer::follows_renames::told_shared(detail::rename_watcher& self, tensor const& x,
                                                             tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  if (me.before) me.before->shared(*me.before, x, y);
  if (!me.of.is_mode()) return;
  if (int const n = me.of.known_.exact(x); n >= 0) me.of.known_.remember(y, n);
}
VARVE_LIBRARY int trace_layer::from_outside(tensor const& t, int node) {
  if (is_mode()) found_.push_back(t), found_nodes_.push_back(node);
  return node;
}
/// A tensor that the function made of C++ values is a constant, made anew in each run (MX-3).
VARVE_LIBRARY int trace_layer::literal_node(tensor const& t) {
  tensor const value = literal && t.is_made_since(epoch) && !t.writes() ? literal(t) : tensor();
  if (!value.defined()) return -1;
  int n = -1;
  on_dtype(t.dtype(), "trace", [&]<class E>() {
    E const* const elements = static_cast<E const*>(value.raw());
    if (t.dim()) return void(n = builder.constant(t.dtype(), t.sizes(), elements));
    int const number = builder.constant(t.dtype(), detail::held(*elements));
    n = builder.emit(&handle<full_t>, attributes(dims{}, dims{static_cast<index_t>(t.dtype())}), &number, 1,
                     meta_of(t));
  });
  return from_outside(t, n);
}
VARVE_LIBRARY bool trace_layer::is_mine(tensor const& t) const {
  return is_mode() ? known_node(t) >= 0 : t.is_wrapped() && t.layer() == id;
}
VARVE_LIBRARY int trace_layer::exact_node(tensor const& t) const {
  if (int const n = known_.exact(t); n >= 0) return n;
  for (int k = 0; k < found_.size(); ++k)
    if (found_[k].is(t)) return found_nodes_[static_cast<std::size_t>(k)];
  return -1;
}
VARVE_LIBRARY int trace_layer::known_node(tensor const& t) const {
  if (int const n = known_.exact(t); n >= 0) return n;
  for (auto const& o : originals_)
    if (o.is(t)) return -1; // captured
  // A value and what was detached of it lie alike: what has a history is not the latter.
  return known_.alike(t, [&](int n) { return !t.requires_grad() || !is_detached(n); });
}
VARVE_LIBRARY bool trace_layer::is_detached(int n) const {
  while (builder.written(n).op->kind == op_kind::view && builder.written(n).op != &handle<detach_t>)
    n = builder.operand_of(n);
  return builder.written(n).op == &handle<detach_t>;
}
VARVE_LIBRARY bool trace_layer::owns(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->is_mine(t)) return true;
  return false;
}
VARVE_LIBRARY bool trace_layer::has_written(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    for (std::size_t k = 0; k < l->copied_writes_.size(); ++k) {
      int const at = 2 * static_cast<int>(k);
      if (l->copied_[at].shares_storage(t) && l->copied_[at + 1].writes() != l->copied_writes_[k]) return true;
    }
  return false;
}
VARVE_LIBRARY tensor trace_layer::real(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->is_mine(t)) return is_mode() ? t : t.inner();
  return t;
}
VARVE_LIBRARY boxed_args trace_layer::reals(boxed_args const& x) const {
  boxed_args r;
  for (auto const& t : x) r.push_back(real(t));
  return r;
}
/// What a mode runs on for an argument: another tensor than that, which the function may capture as well. Where it runs
/// on the values themselves it lies in the same memory.
VARVE_LIBRARY tensor trace_layer::stand_in(tensor const& of) {
  tensor const t = detail::unwrap_dead(this_thread_state.transforms.top, of); // no transform is at work
  tensor const value = value_of(t);
  if (apart && !value.is(t) && known_node(value) < 0) return value;
  if (apart) return standing_for(value, below([&] { return twin(value); }));
  if (known_node(t) >= 0) return below([&] { return twin(t); });
  originals_.push_back(t);
  tensor const r = t.alias();
  if (t.requires_grad()) r.set_history(t.history());
  return r;
}
VARVE_LIBRARY tensor trace_layer::input(tensor const& t) {
  if (!copies) outside_.push_back(t);
  tensor const value = is_mode() ? stand_in(t) : value_of(t);
  return wrap(value, builder.input({t.dtype(), value.sizes()}));
}
VARVE_LIBRARY std::vector<int> trace_layer::captured() const {
  std::vector<int> r;
  for (std::size_t k = 0; k < captured_.size(); k += 2) r.push_back(captured_[k]);
  return r;
}
VARVE_LIBRARY tensor trace_layer::run_on(tensor const& t) {
  if (!apart || is_mine(t)) return real(t);
  if (!copies) {
    tensor const value = real(t);
    if (!is_outside(value)) outside_.push_back(value);
    return value;
  }
  for (int k = 0; k < copied_.size(); k += 2)
    if (copied_[k].is(t)) return copied_[k + 1];
  tensor const copy = value_of(real(t));
  copied_.push_back(t);
  copied_.push_back(copy);
  copied_writes_.push_back(copy.writes());
  return copy;
}
VARVE_LIBRARY void trace_layer::settle() {
  if (!builder.writes_scaffolds()) drawn_ = default_generator;
}
VARVE_LIBRARY bool trace_layer::is_random(boxed_op const& op) {
  return op.table->handle && op.table->handle()->kind == op_kind::random;
}
VARVE_LIBRARY bool trace_layer::is_outside(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    for (auto const& o : l->outside_)
      if (t.shares_storage(o)) return true;
  return false;
}
VARVE_LIBRARY tensor trace_layer::run(boxed_op const& op, boxed_args const& x) const {
  if (!copies && op.table->kind == op_kind::mutation && is_outside(x[0])) refuse::with<write_met>();
  if (apart && is_random(op)) {
    emptied const alone(this_thread_state.transforms), alone_below(mode_slot());
    return op(x);
  }
  return below([&] { return op(x); });
}
VARVE_COLD VARVE_LIBRARY tensor trace_layer::record_nothing(boxed_op const& op, boxed_args const& x) {
  if (!missing_node) detail::no_rule(op.name(), "trace");
  missing_node(op.name());
  boxed_args inner;
  for (auto const& t : x) inner.push_back(t.defined() ? run_on(t) : t);
  tensor const y = run(op, inner);
  int const zero = builder.constant(y.dtype(), 0);
  attributes const at(y.sizes(), dims{static_cast<index_t>(y.dtype())});
  return wrap(y, builder.emit(&handle<full_t>, at, &zero, 1, {y.dtype(), y.sizes()}));
}
VARVE_LIBRARY tensor trace_layer::record(boxed_op const& op, boxed_args const& x) {
  require_kept();
  if (!op.table->node()) return record_nothing(op, x);
  if (!records(x, is_random(op))) {
    tensor const y = run(op, x);
    settle();
    return y;
  }
  boxed_args inner;
  std::vector<int> ids;
  for (auto const& t : x) {
    ids.push_back(node_of(t));
    inner.push_back(run_on(t));
  }
  if (op.table->kind == op_kind::mutation && x[0].origin() == detail::view_origin::other_dtype)
    refuse::argument_is_invalid("trace",
                                "what view_as_real or view_as_complex gave is a copy in a traced function, and "
                                "is written into; write into the value itself, complex(re, im)");
  bool const acts = op.table->kind == op_kind::effect;
  detail::unacted_scope const silent(acts); // who runs the graph acts
  tensor const y = run(op, inner);
  if (acts && detail::reruns > 0 && op.table->node()->only_tells) return wrap(y, builder.constant(y.dtype(), 0));
  if (is_mode() && op.table->kind == op_kind::mutation)
    for (trace_layer* l = this; l; l = l->outer) l->known_.written(inner[0]);
  attributes at = *op.at;
  if (op.table->node() == &handle<local_scalar_t> && y.object()) // the node says what the symbol is
    if (extent const* const n = y.object()->symbol_of(y)) {
      at = attributes(dims{*n});
      told(at[0][0], ids[0]);
    }
  int const node = builder.emit(op.table->node(), at, ids.data(), static_cast<int>(ids.size()), {y.dtype(), y.sizes()});
  called(node, grad_mode);
  return wrap(y, node);
}
} // namespace varve
#endif
