// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <vector>
#include <varve/dispatch/library.hpp>

namespace varve {

/// A function among the operands of a higher-order operator: tensors to tensors. Copies share it.
using boxed_function = std::function<boxed_args(boxed_args const&)>;

class higher_order_operator;

/// A call of a higher-order operator in the dynamic world: what layers, modes and rules are given. It owns its functions (HO-19: results are flat).
struct boxed_hop {
  higher_order_operator* op;
  std::vector<boxed_function> functions;
  char const* name() const;
  /// The same call of other functions.
  boxed_hop with(std::vector<boxed_function> f) const { return {op, std::move(f)}; }
  /// Lowers: hands the call to the next interpreter of the thread.
  boxed_args operator()(boxed_args const& x) const;
};

/// A higher-order operator of the dynamic world: a name and one rule per dispatch key, kind of transform, type of mode, and type of subclass (HO-3). What has no rule
/// refuses the call with an error that names both. Registering is safe against calls on other threads.
class higher_order_operator {
public:
  explicit higher_order_operator(char const* name) : name_(name), rules_(std::make_shared<std::vector<rule> const>()) {
    table_lock_t const held(list().lock);
    list().all.push_back(this);
  }
  higher_order_operator(higher_order_operator const&) = delete;
  higher_order_operator& operator=(higher_order_operator const&) = delete;
  ~higher_order_operator() {
    table_lock_t const held(list().lock);
    std::erase(list().all, this);
  }

  char const* name() const { return name_; }
  /// Null when there is none of that name.
  static higher_order_operator* find(char const* name) {
    table_lock_t const held(list().lock);
    for (auto* o : list().all)
      if (std::strcmp(o->name_, name) == 0) return o;
    return nullptr;
  }

  /// A kernel `(boxed_hop const&, boxed_args const&)` for a key; `composite_explicit` serves every backend.
  template <class F>
  void impl(dispatch_key key, F f) {
    add({nullptr, key, [f](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); }, varve::name(key)});
  }
  /// A rule `(interpreter, boxed_hop const&, boxed_args const&)` for a kind of transform, named as `layer::kind`; the transform is on the stack while it runs: `lower` hides it.
  template <class F, class I = interpreter>
  void impl(char const* kind, F f) {
    add({nullptr, dispatch_key::transform, [f](void* l, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(I(*static_cast<layer*>(l)), op, x); }, kind});
  }
  template <class F>
  void impl(transform_type type, F f) {
    impl(varve::name(type), std::move(f));
  }
  /// A rule `(Mode&, boxed_hop const&, boxed_args const&)` for modes of exactly one type, called with the mode off the stack (HO-5).
  template <class Mode, class F>
  void impl_mode(F f) {
    add({&name_of_type<Mode>, dispatch_key::dispatch_mode, [f](void* m, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(*static_cast<Mode*>(m), op, x); },
         name_of_type<Mode>.c_str()});
  }
  /// A rule `(boxed_hop const&, boxed_args const&)` for operands of a subclass (HO-6).
  template <class F>
  void impl_subclass(subclass_type const& type, F f) {
    add({&type, dispatch_key::subclass, [f](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); }, type.name});
  }
  /// Keys that a call passes over unless something is registered for them (HO-2).
  static constexpr dispatch_key_set default_fallthrough{dispatch_key::inplace_or_view, dispatch_key::autocast, dispatch_key::transform_back};
  bool has(dispatch_key key) const {
    for (auto const& r : *snapshot())
      if (!r.type && r.key == key && r.name == varve::name(key)) return true;
    return false;
  }

  boxed_args operator()(std::vector<boxed_function> functions, boxed_args const& x) { return call({this, std::move(functions)}, x); }
  /// The call settles through function modes, pre-dispatch modes, transforms, modes, subclasses and the backend; each is given it as one call (HO-4).
  boxed_args call(boxed_hop const& op, boxed_args const& x) { return redispatch(op, detail::keys_of_call(x), x); }
  /// ... from the highest of some keys on.
  boxed_args redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x);

private:
  struct rule {
    void const* type; // of a mode or subclass
    dispatch_key key;
    std::function<boxed_args(void*, boxed_hop const&, boxed_args const&)> call;
    char const* name; // of the kind, the key or the type
  };
  using rules_t = std::shared_ptr<std::vector<rule> const>;
  using table_lock_t = std::lock_guard<std::mutex>;
  struct operators {
    std::mutex lock;
    std::vector<higher_order_operator*> all;
  };
  static operators& list() {
    static operators* const l = new operators; // outlives every operator
    return *l;
  }
  rules_t snapshot() const {
    table_lock_t const held(lock_);
    return rules_;
  }
  void add(rule r) {
    table_lock_t const held(lock_);
    for (auto const& o : *rules_)
      if (o.key == r.key && o.type == r.type && std::strcmp(o.name, r.name) == 0)
        throw dispatch_error((std::string("varve: ") + name_ + " has a rule registered for " + r.name + " already").c_str());
    auto next = std::make_shared<std::vector<rule>>(*rules_);
    next->push_back(std::move(r));
    rules_ = std::move(next);
  }
  static rule const* search(rules_t const& rules, dispatch_key key, void const* type, char const* name) {
    for (auto const& r : *rules)
      if (r.key == key && r.type == type && (type || std::strcmp(r.name, name) == 0)) return &r;
    return nullptr;
  }
  [[noreturn]] void refuse(char const* what, char const* who) const {
    throw missing_rule((std::string("varve: no rule registered for the higher-order operator ") + name_ + " and the " + what + " " + who).c_str());
  }
  boxed_args call_transform(rules_t const& rules, boxed_hop const& op, boxed_args const& x);
  boxed_args call_mode(rules_t const& rules, boxed_hop const& op, layer_stack& stack, boxed_args const& x);
  boxed_args call_subclass(rules_t const& rules, boxed_hop const& op, boxed_args const& x);

  char const* name_;
  mutable std::mutex lock_;
  rules_t rules_;
};

inline char const* boxed_hop::name() const { return op->name(); }
inline boxed_args boxed_hop::operator()(boxed_args const& x) const { return op->call(*this, x); }

namespace detail {
/// Puts a layer back on its stack around a function that it handed down, as it stood before.
class reentered {
public:
  reentered(layer_stack& stack, layer& l) : stack_(stack), layer_(l), top_(stack.top), below_(l.below) {
    if (l.below != stack.top) l.below = stack.top; // another thread may be reading it
    set_top(stack_, &l);
  }
  reentered(reentered const&) = delete;
  reentered& operator=(reentered const&) = delete;
  ~reentered() {
    if (layer_.below != below_) layer_.below = below_;
    set_top(stack_, top_);
  }

private:
  layer_stack& stack_;
  layer& layer_;
  layer *top_, *below_;
};
} // namespace detail

inline boxed_args higher_order_operator::call_transform(rules_t const& rules, boxed_hop const& op, boxed_args const& x) {
  layer_stack& stack = this_thread_state.transforms;
  boxed_args alive;
  for (auto const& t : x) alive.push_back(detail::unwrap_dead(stack.top, t));
  rule const* r = search(rules, dispatch_key::transform, nullptr, stack.top->kind);
  if (!r) refuse("transform", stack.top->kind);
  return r->call(stack.top, op, alive);
}

inline boxed_args higher_order_operator::call_mode(rules_t const& rules, boxed_hop const& op, layer_stack& stack, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) - dispatch_key_set(dispatch_key::transform);
  key_guard const off(s.included, stack.key == dispatch_key::dispatch_mode ? s.excluded | above : s.excluded);
  popped const p(stack);
  layer& mode = p.top();
  if (rule const* r = search(rules, dispatch_key::dispatch_mode, mode.type, "")) return r->call(mode.object, op, x);
  if (!mode.process_hop) refuse("mode", mode.kind);
  // What the functions do is seen by the mode as well, as on static values.
  std::vector<boxed_function> inside;
  for (auto const& f : op.functions)
    inside.push_back([f, &stack, &mode](boxed_args const& a) {
      detail::reentered const on(stack, mode);
      return f(a);
    });
  return mode.process_hop(mode, op.with(std::move(inside)), x);
}

inline boxed_args higher_order_operator::call_subclass(rules_t const& rules, boxed_hop const& op, boxed_args const& x) {
  char const* tried = "";
  for (auto const& t : x) {
    if (!t.defined() || !t.object()) continue;
    for (auto const* type = &t.object()->type(); type; type = type->base)
      if (rule const* r = search(rules, dispatch_key::subclass, type, "")) return r->call(nullptr, op, x);
    tried = t.object()->type().name;
  }
  refuse("subclass", tried);
}

inline boxed_args higher_order_operator::redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  rules_t const rules = snapshot();
  while (true) {
    dispatch_key const k = keys.highest();
    if (k == dispatch_key::undefined) refuse("backend", varve::name(k));
    layer_stack* const stack = k == dispatch_key::function_mode ? &s.functions : k == dispatch_key::pre_dispatch ? &s.pre_dispatch : k == dispatch_key::dispatch_mode ? s.next_mode() : nullptr;
    if (stack && stack->top && (k == dispatch_key::dispatch_mode || stack->top->process_hop)) return call_mode(rules, op, *stack, x);
    if (k == dispatch_key::transform) {
      bool wrapped = false;
      for (auto const& t : x) wrapped = wrapped || (t.defined() && t.is_wrapped());
      if (s.transforms.top) return call_transform(rules, op, x);
      if (wrapped) {
        boxed_args plain;
        for (auto const& t : x) plain.push_back(detail::unwrap_dead(nullptr, t));
        return call(op, plain);
      }
    }
    if (k == dispatch_key::subclass) return call_subclass(rules, op, x);
    if (rule const* r = search(rules, k, nullptr, varve::name(k))) return r->call(nullptr, op, x);
    if (is_backend(k)) {
      if (rule const* r = search(rules, dispatch_key::composite_explicit, nullptr, varve::name(dispatch_key::composite_explicit))) return r->call(nullptr, op, x);
      refuse("backend", varve::name(k));
    }
    keys = keys.below(k);
  }
}

} // namespace varve
