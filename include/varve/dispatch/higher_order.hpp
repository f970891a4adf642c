// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/at_start.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/dispatch/boxed_function.hpp>
#include <varve/dispatch/guards.hpp>
#include <varve/dispatch/library.hpp>

#include <atomic>
#include <vector>

/// @file
/// Higher-order operators for tensors. The `hop_signature` of an operator, which its handle in graphs has too, is a
/// schema without the lengths of lists; `schema_of` makes the schema of a call or node from it. `cond` and the loops
/// share the text of their rules with static values (`hop/cond.hpp`, `loop/scan.hpp`, `loop/while_loop.hpp`);
/// `hop/boxed_*.hpp` and `loop/boxed_*.hpp` contain the differences.
namespace varve {

class higher_order_operator;

namespace detail {
/// The registration that makes an operator known by name from the start of a program that contains a call of it, even
/// before `main`, so that graphs can call it. The function that makes the operator refers to it.
template <higher_order_operator& (*Operator)()>
VARVE_FIRST inline at_start const known_from_start{[] { (void)Operator(); }};
} // namespace detail

/// A call of a higher-order operator on tensors, which layers, modes and rules receive. It owns its functions. Results
/// are flat lists.
struct boxed_hop {
  higher_order_operator* op;
  std::vector<boxed_function> functions;
  attributes at{};
  char const* name() const;
  /// Returns the same call with other functions.
  template <class = void>
  boxed_hop with(std::vector<boxed_function> f) const {
    return {op, std::move(f), at};
  }
  /// Lowers the call: passes it to the next interpreter of the thread.
  template <class = void>
  boxed_args operator()(boxed_args const& x) const;
};

/// A higher-order operator for tensors: a name, and one rule per dispatch key, kind of transform, type of mode, and
/// type of subclass. Modes and subclasses without a rule process the operators inside of its functions instead.
/// Otherwise a missing rule is an error that names both.
///
/// Rules may be registered while other threads call the operator: they are a list that only grows at the front. The
/// operator must outlive its calls. (Members are templates without need so that they cost nothing unless used.)
class higher_order_operator {
public:
  /// Makes an operator. `schema_of` makes the schemas of its calls from the signature. A `!` in the signature states
  /// that the operator writes into operands.
  explicit higher_order_operator(char const* name, hop_signature const& s = {})
      : higher_order_operator(name, s, nullptr) {}
  /// Makes an operator whose calls are nodes of graphs, with the name and signature of the node.
  explicit higher_order_operator(op_handle const& node) : higher_order_operator(node.name, node.hop.signature, &node) {}
  higher_order_operator(char const* name, hop_signature const& s, op_handle const* node)
      : name_(name), signature_(s), node_(node), written_(std::strchr(s.text, '!') != nullptr) {
    operators& all = list();
    detail::spin_lock::held const on(all.lock);
    next_ = all.first;
    all.first = this;
  }
  higher_order_operator(higher_order_operator const&) = delete;
  higher_order_operator& operator=(higher_order_operator const&) = delete;
  ~higher_order_operator() {
    {
      operators& all = list();
      detail::spin_lock::held const on(all.lock);
      for (higher_order_operator** o = &all.first; *o; o = &(*o)->next_)
        if (*o == this) {
          *o = next_;
          break;
        }
    }
    for (rule* r = rules_.load(std::memory_order_acquire); r;) {
      rule* const next = r->next;
      r->destroy(r);
      r = next;
    }
  }

  char const* name() const { return name_; }
  hop_signature const& signature() const { return signature_; }
  /// Returns the handle of its calls in graphs, or null for an operator that a program defines.
  op_handle const* node() const { return node_; }
  /// Returns the operator of a name, or null if there is none.
  static higher_order_operator* find(char const* name) {
    operators& all = list();
    detail::spin_lock::held const on(all.lock);
    for (auto* o = all.first; o; o = o->next_)
      if (std::strcmp(o->name_, name) == 0) return o;
    return nullptr;
  }
  /// Calls `f(operator)` for each operator. `f` must not make operators.
  template <class F>
  static void for_each(F const& f) {
    operators& all = list();
    detail::spin_lock::held const on(all.lock);
    for (auto* o = all.first; o; o = o->next_) f(*o);
  }

  /// Registers a kernel `(boxed_hop const&, boxed_args const&)` for a key. `composite_explicit` serves every backend.
  /// `composite_implicit` also serves every transform and mode without a rule: these process what the kernel does.
  template <class F>
  void impl(dispatch_key key, F f) {
    add({key, nullptr, varve::name(key)},
        [f = std::move(f)](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); });
  }
  /// Registers a rule `(interpreter, boxed_hop const&, boxed_args const&)` for a kind of transform, named as
  /// `layer_kind::name`. The transform is on the stack while the rule runs; `lower` hides it.
  template <class F, class I = interpreter>
  void impl(char const* kind, F f) {
    add({dispatch_key::transform, nullptr, kind},
        [f = std::move(f)](void* l, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args {
          return f(I(*static_cast<layer*>(l)), op, x);
        });
  }
  template <class F>
  void impl(transform_type type, F f) {
    impl(varve::name(type), std::move(f));
  }
  /// Registers a rule `(Mode&, boxed_hop const&, boxed_args const&)` for modes of exactly one type. It is called with
  /// the mode off the stack.
  template <class Mode, class F>
  void impl_mode(F f) {
    add({dispatch_key::dispatch_mode, &name_of_type<Mode>, name_of_type<Mode>.c_str()},
        [f = std::move(f)](void* m, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args {
          return f(*static_cast<Mode*>(m), op, x);
        });
  }
  /// True if there is a rule for modes of a type.
  template <class Mode>
  bool has_mode() const {
    return search({dispatch_key::dispatch_mode, &name_of_type<Mode>, ""});
  }
  /// Registers a rule `(boxed_hop const&, boxed_args const&)` for operands of a subclass or of one derived from it.
  template <class F>
  void impl_subclass(subclass_type const& type, F f) {
    add({dispatch_key::subclass, &type, type.name},
        [f = std::move(f)](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); });
  }
  /// States that the operator writes into some of its operands. It is then refused where a gradient would be recorded.
  void mark_written() { written_ = true; }
  /// States that results may be what its functions return: operands of the functions, and views of those.
  void mark_passing() { passes_ = true; }
  bool passes_results() const { return passes_; }
  /// States that modes process the operators of its functions. Only a mode that takes whole programs receives a call,
  /// with its functions as they are.
  void mark_transparent() { transparent_ = true; }
  /// The keys that a call skips unless something is registered for them.
  static constexpr dispatch_key_set default_fallthrough{dispatch_key::inplace_or_view, dispatch_key::autocast,
                                                        dispatch_key::transform_back};
  /// Runs the `composite_implicit` kernel of a call, in place of the operator.
  boxed_args decompose(boxed_hop const& op, boxed_args const& x) { return (*composite())(nullptr, op, x); }
  bool has(dispatch_key key) const { return search({key, nullptr, varve::name(key)}); }

  template <class = void>
  boxed_args operator()(std::vector<boxed_function> functions, boxed_args const& x, attributes const& at = {}) {
    return call({this, std::move(functions), at}, x);
  }
  /// Dispatches a call through function modes, pre-dispatch modes, transforms, modes, subclasses and the backend. Each
  /// of them receives it as one call.
  template <class = void>
  boxed_args call(boxed_hop const& op, boxed_args const& x) {
    return redispatch(op, detail::keys_of_call(x), x);
  }
  /// Continues a call at the highest of some keys.
  template <class = void>
  boxed_args redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x);

private:
  /// The target of a rule: a key, with a kind of transform by name, or with a mode or subclass by the identity of its
  /// type.
  struct asker {
    dispatch_key key;
    void const* type;
    char const* name;
    bool is(asker const& o) const { return key == o.key && type == o.type && (type || std::strcmp(name, o.name) == 0); }
  };
  struct rule {
    asker whom;
    boxed_args (*call)(rule*, void* who, boxed_hop const&, boxed_args const&);
    void (*destroy)(rule*);
    rule* next;
    boxed_args operator()(void* who, boxed_hop const& op, boxed_args const& x) { return call(this, who, op, x); }
  };
  template <class F>
  struct rule_of : rule {
    F f;
    rule_of(asker const& a, F&& g) : rule{a, &run, &end, nullptr}, f(std::move(g)) {}
    static boxed_args run(rule* r, void* who, boxed_hop const& op, boxed_args const& x) {
      return static_cast<rule_of*>(r)->f(who, op, x);
    }
    static void end(rule* r) { delete static_cast<rule_of*>(r); }
  };
  struct operators {
    detail::spin_lock lock;
    higher_order_operator* first = nullptr;
  };
  static operators& list() {
    static operators* const l = new operators; // outlives every operator
    return *l;
  }
  template <class F>
  void add(asker const& whom, F f) {
    if (rule* const r = new rule_of<F>(whom, std::move(f)); !publish(r)) {
      r->destroy(r);
      refuse::with<dispatch_error>((std::string("varve: the higher-order operator ") + name_ + " has a rule for " +
                                    whom.name + " already; a call can follow one only")
                                       .c_str());
    }
  }
  bool publish(rule* r) {
    detail::spin_lock::held const on(lock_);
    if (search(r->whom)) return false;
    r->next = rules_.load(std::memory_order_relaxed);
    rules_.store(r, std::memory_order_release);
    return true;
  }
  rule* search(asker const& whom) const {
    rule* r = rules_.load(std::memory_order_acquire);
    while (r && !r->whom.is(whom)) r = r->next;
    return r;
  }
  [[noreturn]] VARVE_COLD void refuse(char const* what, char const* who, std::string const& remedy) const {
    refuse::with<missing_rule>((std::string("varve: no rule registered for the higher-order operator ") + name_ +
                                " and the " + what + " " + who + "; " + remedy)
                                   .c_str());
  }
  template <class = void>
  boxed_args call_transform(boxed_hop const& op, boxed_args const& x);
  template <class = void>
  boxed_args call_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x);
  template <class = void>
  boxed_args call_program_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x);
  /// Returns the stack of the mode that receives a call at a key, or null.
  layer_stack* mode_at(dispatch_key k) const;
  rule* rule_of_subclass(boxed_args const& x) const;
  /// Returns the rule of a mode. A trace that is a mode uses the rule of traces.
  rule* rule_of_mode(layer_kind const& mode) const {
    if (mode.is_trace()) return search({dispatch_key::transform, nullptr, "trace"});
    return search({dispatch_key::dispatch_mode, mode.mode_type, ""});
  }
  bool processes(layer_kind const& mode) const { return mode.process_hop || rule_of_mode(mode); }
  /// Returns the kernel that is run by whatever has no rule of its own, or null.
  rule* composite() const {
    return search({dispatch_key::composite_implicit, nullptr, varve::name(dispatch_key::composite_implicit)});
  }

  char const* name_;
  hop_signature signature_;
  op_handle const* node_;
  bool written_;
  bool passes_ = false, transparent_ = false;
  higher_order_operator* next_ = nullptr;
  detail::spin_lock lock_; // held while a rule is added
  std::atomic<rule*> rules_{nullptr};
};

namespace detail {
[[noreturn]] VARVE_COLD inline void refuse_eager_gradient(char const* op, char const* mode) {
  refuse::with<autograd_error>(
      (std::string("varve: ") + op + ": an operand requires a gradient of eager autograd, which under " + mode +
       " does not know of the operator; use grad or vjp, whose derivative of it is part of the "
       "program, or detach the operand")
          .c_str());
}
/// The function that records a call with functions for eager autograd, above a mode that processes the call as a whole.
/// Null if the program does not contain `transform/recorded_hop.hpp`.
inline std::atomic<boxed_args (*)(boxed_hop const&, boxed_args const&)> records_hops{nullptr};
/// True on a thread that separates a function from its gradient. Calls are then recorded even if only their functions
/// may have captured a tensor that requires a gradient.
inline constinit thread_local bool records_captures = false;
} // namespace detail
inline char const* boxed_hop::name() const { return op->name(); }
template <class>
boxed_args boxed_hop::operator()(boxed_args const& x) const {
  return op->call(*this, x);
}

#if VARVE_DEFINES
template <class>
boxed_args higher_order_operator::call_transform(boxed_hop const& op, boxed_args const& x) {
  layer& top = *this_thread_state.transforms.top;
  boxed_args alive;
  for (auto const& t : x) alive.push_back(detail::unwrap_dead(&top, t));
  layer_kind const& kind = *top.kind;
  if (rule* const r = search({dispatch_key::transform, nullptr, kind.name})) return (*r)(&top, op, alive);
  if (kind.process_hop) return kind.process_hop(top, op, alive);
  if (rule* const r = composite()) return (*r)(nullptr, op, alive);
  refuse("transform", kind.name, std::string("register one with op.impl(\"") + kind.name + "\", rule)");
}

template <class>
boxed_args higher_order_operator::call_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  bool const whole = stack.top->kind->is_trace() || stack.top->kind->takes_programs;
  bool const last = stack.key == dispatch_key::dispatch_mode;
  if (last && &stack != &this_thread_state.modes && !processes(*stack.top->kind)) // it sees what the operator does
    if (rule* const r = composite()) return (*r)(nullptr, op, x);
  // Unlike the mode, eager autograd does not process the whole call.
  if (layer_kind const& kind = *stack.top->kind;
      whole && s.grad_mode && !s.excluded.has(dispatch_key::autograd_functionality)) {
    auto const recorded = detail::records_hops.load(std::memory_order_acquire);
    bool needs = false, captures = false;
    for (auto const& t : x) needs = needs || (t.defined() && t.has_history());
    if (detail::records_captures)
      for (auto const& f : op.functions) captures = captures || !f.template holds<closed_function>();
    if (needs && !recorded) detail::refuse_eager_gradient(name_, kind.name);
    if (recorded && (needs || captures)) return recorded(op, x);
  }
  // Keys above without a rule for the operator were skipped by the operator alone: the operators inside of its
  // functions still meet them, as without a mode.
  dispatch_key_set done = s.excluded;
  for (int k = static_cast<int>(dispatch_key::dispatch_mode) + 1; k < static_cast<int>(dispatch_key::dense); ++k)
    if (auto const key = static_cast<dispatch_key>(k); key != dispatch_key::transform)
      if (has(key) || (is_autograd(key) && has(dispatch_key::autograd)))
        done |= is_autograd(key) ? dispatch_key::autograd_functionality : key;
  dispatch_key_set const modes_above(dispatch_key::function_mode, dispatch_key::pre_dispatch);
  dispatch_key_set const passed = whole ? dispatch_key::autograd_functionality : dispatch_key_set{};
  key_guard const off(s.included, (last ? done | modes_above : s.excluded) | passed);
  popped const p(stack);
  layer& mode = p.top();
  bool const traces = mode.kind->is_trace();
  rule* const r = rule_of_mode(*mode.kind);
  bool const passes = !r && !mode.kind->process_hop; // a mode without a rule processes what the functions do
  if (passes && last && &stack != &s.modes)          // infra modes must process whole programs
    refuse("mode", mode.kind->name, "register one with op.impl_mode<mode>(rule)");
  std::vector<boxed_function> inside;
  for (auto const& f : op.functions)
    inside.push_back([f, done, &stack, &mode, sees = !r](boxed_args const& a) {
      key_guard const as_before(this_thread_state.included, done);
      if (!sees) return f(a);                  // the rule decides whether the mode is on
      detail::reentered const on(stack, mode); // the mode processes what the functions do, as on static values
      return f(a);
    });
  boxed_hop const within = op.with(std::move(inside));
  if (passes) return call(within, x); // the mode processes what the functions do, but not what runs them
  return r ? (*r)(traces ? &mode : mode.object, within, x) : mode.kind->process_hop(mode, within, x);
}

template <class>
boxed_args higher_order_operator::call_program_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  constexpr dispatch_key_set above =
      dispatch_key_set::full().above(dispatch_key::dispatch_mode) - dispatch_key_set(dispatch_key::transform);
  key_guard const off(s.included, s.excluded | above);
  popped const p(stack);
  layer& mode = p.top();
  rule* const r = rule_of_mode(*mode.kind);
  if (!r) return mode.kind->process_hop(mode, op, x);
  return (*r)(mode.kind->is_trace() ? &mode : mode.object, op, x);
}

VARVE_LIBRARY layer_stack* higher_order_operator::mode_at(dispatch_key k) const {
  thread_state& s = this_thread_state;
  if (transparent_) {
    if (k != dispatch_key::dispatch_mode) return nullptr;
    for (infra_mode const slot : {infra_mode::functional, infra_mode::proxy}) {
      layer_stack& here = s.infra[static_cast<int>(slot)];
      if (here.top && (here.top->kind->is_trace() || here.top->kind->takes_programs)) return &here;
    }
    return nullptr;
  }
  layer_stack* const stack = k == dispatch_key::function_mode   ? &s.functions
                             : k == dispatch_key::pre_dispatch  ? s.next_pre_dispatch()
                             : k == dispatch_key::dispatch_mode ? s.next_mode()
                                                                : nullptr;
  return stack && stack->top ? stack : nullptr;
}

VARVE_LIBRARY higher_order_operator::rule* higher_order_operator::rule_of_subclass(boxed_args const& x) const {
  for (auto const& t : x) {
    if (!t.defined() || !t.object()) continue;
    for (auto const* type = &t.object()->type(); type; type = type->base)
      if (rule* const r = search({dispatch_key::subclass, type, ""})) return r;
  }
  return nullptr;
}

template <class>
boxed_args higher_order_operator::redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  auto const rule_for = [&](dispatch_key k) { return search({k, nullptr, varve::name(k)}); };
  auto const kernel = [&] {
    rule* const r = rule_for(dispatch_key::composite_explicit);
    return r ? r : composite();
  };
  while (true) {
    dispatch_key const k = keys.highest();
    if (k == dispatch_key::undefined)
      refuse("backend", varve::name(k), "no key of the call is left: redispatch to lower keys only");
    if (layer_stack* const stack = mode_at(k))
      return transparent_ ? call_program_mode(op, *stack, x) : call_mode(op, *stack, x);
    if (k == dispatch_key::transform) {
      bool wrapped = false;
      for (auto const& t : x) wrapped = wrapped || (t.defined() && t.is_wrapped());
      if (s.transforms.top) return call_transform(op, x);
      if (wrapped) {
        boxed_args plain;
        for (auto const& t : x) plain.push_back(detail::unwrap_dead(nullptr, t));
        return call(op, plain);
      }
    }
    if (k == dispatch_key::subclass) { // a subclass without a rule processes what the functions do
      if (rule* const r = rule_of_subclass(x)) return (*r)(nullptr, op, x);
      keys = keys.below(k);
      if (rule* const r = keys.empty() ? kernel() : nullptr) return (*r)(nullptr, op, x);
      continue;
    }
    if (is_autograd(k)) {
      // The rule is for calls whose gradient is recorded; all others skip it.
      bool recorded = false;
      for (auto const& t : x) recorded = recorded || (s.grad_mode && t.defined() && t.has_history());
      if (recorded && written_)
        refuse::with<autograd_error>(
            (std::string("varve: ") + name_ + " writes into operands, which cannot be recorded; call it under no_grad")
                .c_str());
      rule* r = recorded ? rule_for(k) : nullptr;
      if (recorded && !r) r = rule_for(dispatch_key::autograd);
      if (r) return (*r)(nullptr, op, x);
      keys = keys.below(k);
      continue;
    }
    if (rule* const r = rule_for(k)) return (*r)(nullptr, op, x);
    if (is_backend(k)) {
      if (rule* const r = kernel()) return (*r)(nullptr, op, x);
      refuse("backend", varve::name(k),
             std::string("register one with op.impl(dispatch_key::") + varve::name(k) +
                 ", rule), or for all backends with dispatch_key::composite_explicit");
    }
    keys = keys.below(k);
  }
}
#endif

} // namespace varve
