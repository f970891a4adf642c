// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/schema.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>

#include <memory>
#include <vector>

namespace varve::detail {

/// A type-erased function that a library registered, kept by the registry.
struct kept_function {
  void const* type;
  void (*destroy)(kept_function*);
  /// Returns true if keeping this function is the same as registering the other one. Null for types whose values cannot
  /// be compared.
  bool (*equals)(kept_function const*, kept_function const*);
};
template <class F>
inline constexpr char type_of_function = 0; // its address identifies the type
template <class F>
struct kept_function_of : kept_function {
  F f;
  kept_function_of(F&& g, bool changes)
      : kept_function{&type_of_function<F>, [](kept_function* k) { delete static_cast<kept_function_of*>(k); },
                      nullptr},
        f(std::move(g)) {
    if constexpr (std::is_trivially_copyable_v<F>)
      if (std::is_empty_v<F> || !changes)
        equals = [](kept_function const* a, kept_function const* b) {
          return std::is_empty_v<F> || std::memcmp(&static_cast<kept_function_of const*>(a)->f,
                                                   &static_cast<kept_function_of const*>(b)->f, sizeof(F)) == 0;
        };
  }
  static F& of(void* self) { return static_cast<kept_function_of*>(static_cast<kept_function*>(self))->f; }
};
struct end_of_function {
  void operator()(kept_function* k) const { k->destroy(k); }
};
using function_owner = std::unique_ptr<kept_function, end_of_function>;

/// A kernel, fallthrough, fallback or rule that a library registered. A record without a function is a fallthrough.
struct registration_record {
  void const* library = nullptr;
  dispatch_key key = dispatch_key::undefined;
  boxed_kernel kernel;
  interpreter_rule rule;
};

/// True if an operator only computes: it writes into nothing, and its results have memory of their own.
inline bool only_computes(operator_schema const& s) {
  bool r = true;
  for (auto const* list : {&s.arguments, &s.results})
    for (auto const& a : *list) r = r && a.alias.empty() && !a.mutated;
  return r;
}

/// An operator that a library defined. It has a name and a schema; everything else is registered. If it only computes,
/// graphs can contain it, but only its kernels determine its shape.
struct defined_operator {
  std::string name, schema;
  void const* library = nullptr; // null if it has ended
  std::atomic<dispatch_table const*> registered{nullptr};
  op_handle node;
  op_table table;
  table_entry entry;

  defined_operator(std::string const& n, std::string const& s, operator_schema const& read)
      : name(n), schema(s), node{name.c_str(), op_kind::indexing, read.operands(), nullptr},
        table{.name = name.c_str(), .schema = schema.c_str(), .arity = read.operands(), .registered = &registered},
        entry{&table, nullptr} {
    node.own = false;
    if (only_computes(read)) table.defined = &node;
  }
};

/// The registrations of all libraries of the process, and the tables made from them.
///
/// Calls read tables without a lock and without leaving a trace. So nothing shows when the last reader of a table or
/// the last call of a kernel has ended. Therefore nothing that was published is changed or freed; instead it is used
/// again. The registry keeps until the process ends:
/// - every table once: operators with the same kernels share it, and registering the same again finds it;
/// - every function once: functions of equal type and bytes are one. Functions that are not trivially copyable, or that
///   calls change, are kept each time they are registered;
/// - every defined operator, once per name and schema: defining it again revives it.
///
/// A program that registers and removes the same things in a loop therefore does not grow. An operator without a
/// registration has no table, and keeps its fast path.
///
/// (A template only so that it costs nothing unless used.)
template <class T = void>
class registry {
public:
  static registry& instance();
  /// The numbers of objects that are kept, for tests.
  struct counts {
    std::size_t tables, functions, operators;
    bool operator==(counts const&) const = default;
  };
  counts kept();

  /// Defines an operator, or returns null if there is one of that name. No other thread can define it in between.
  op_table const* define(void const* library, std::string const& name, operator_schema const& s);
  /// Registers a kernel, fallthrough or rule of an operator.
  void add(op_table const* op, registration_record r, function_owner f = nullptr);
  void add_fallback(registration_record r, function_owner f = nullptr);
  /// Removes what a library registered. Code with the handle of an operator that the library defined may still call it;
  /// the call then throws an error that there is no kernel.
  void remove(void const* library);

private:
  template <class X>
  using many = std::vector<dependent<X, T>>; // dependent on T, or compilers would instantiate it unused
  using slot = std::atomic<dispatch_table const*>*;
  /// The registrations of one operator, identified by the slot that points to its current table.
  struct entry {
    slot table;
    bool defined; // by a library, so that no kernel is built in
    many<registration_record> records;
  };

  entry& of(slot s);
  defined_operator* definition(op_table const* t);
  /// Keeps the function of a record: the given one, or an equal one that is kept already.
  void keep(registration_record& r, function_owner& f);
  /// Returns the one table with that content, which is kept until the process ends.
  dispatch_table const* shared(dispatch_table const& t);
  void rebuild_all();
  void rebuild(entry& e);
  dispatch_table table_of_records(entry const& e) const;
  static kernel_inventory kernels_of_records(entry const& e);
  kernel_inventory fallbacks_of_all() const;
  static boxed_kernel const* registered(entry const& e, dispatch_key k);
  /// Returns the kernel of a key for which `resolve` returned `where`.
  boxed_kernel kernel_of(entry const& e, dispatch_key k, resolution where) const;

  many<std::unique_ptr<entry>> entries_;
  many<std::unique_ptr<dependent<defined_operator, T>>> definitions_;
  many<registration_record> fallbacks_;
  many<function_owner> functions_, single_functions_; // those that can be compared, and the others
  many<std::unique_ptr<dependent<dispatch_table, T> const>> tables_;
};

} // namespace varve::detail

#if VARVE_DEFINES
namespace varve::detail {
template <class T>
registry<T>& registry<T>::instance() {
  static registry* const r = new registry; // outlives every library, whatever the order of destruction
  return *r;
}
template <class T>
auto registry<T>::kept() -> counts {
  spin_lock::held const on(lock_of_tables);
  return {tables_.size(), functions_.size() + single_functions_.size(), definitions_.size()};
}
template <class T>
op_table const* registry<T>::define(void const* library, std::string const& name, operator_schema const& s) {
  std::string schema = to_string(s);
  schema.erase(0, schema.find('('));
  spin_lock::held const on(lock_of_tables);
  if (table_named(name.c_str())) return nullptr;
  defined_operator* d = nullptr;
  for (auto const& o : definitions_)
    if (!o->library && o->name == name && o->schema == schema) d = o.get();
  if (!d) {
    definitions_.push_back(std::make_unique<dependent<defined_operator, T>>(name, schema, s));
    d = definitions_.back().get();
    of(&d->registered).defined = true;
  }
  d->library = library;
  rebuild(of(&d->registered));
  d->entry.next = first_table();
  first_table() = &d->entry;
  return &d->table;
}
template <class T>
void registry<T>::add(op_table const* op, registration_record r, function_owner f) {
  spin_lock::held const on(lock_of_tables);
  entry& e = of(op->registered);
  int rules = 0;
  for (auto const& o : e.records) {
    rules += o.rule.call != nullptr;
    if (r.rule.call ? o.rule.call && std::strcmp(o.rule.kind, r.rule.kind) == 0 : !o.rule.call && o.key == r.key)
      refuse::with<dispatch_error>((std::string("varve: operator ") + op->name + " has a " +
                                    (r.rule.call ? "rule" : "kernel") + " registered for " +
                                    (r.rule.call ? r.rule.kind : name(r.key)) +
                                    " already; the library that registered it must end first")
                                       .c_str());
  }
  if (r.rule.call && rules == dispatch_table::most_rules)
    refuse::with<dispatch_error>((std::string("varve: operator ") + op->name + " has rules for " +
                                  std::to_string(rules) + " kinds of transform, and no room for " + r.rule.kind +
                                  "; process it by a kernel for dispatch_key::transform")
                                     .c_str());
  keep(r, f);
  e.records.push_back(r);
  rebuild(e);
}
template <class T>
void registry<T>::add_fallback(registration_record r, function_owner f) {
  spin_lock::held const on(lock_of_tables);
  for (auto const& f : fallbacks_)
    if (f.key == r.key)
      refuse::with<dispatch_error>((std::string("varve: a fallback for ") + name(r.key) +
                                    " is registered already; the library that registered it must end first")
                                       .c_str());
  keep(r, f);
  fallbacks_.push_back(r);
  rebuild_all();
}
template <class T>
void registry<T>::remove(void const* library) {
  spin_lock::held const on(lock_of_tables);
  for (table_entry** t = &first_table(); *t;) {
    defined_operator* const d = definition((*t)->table);
    if (d && d->library == library) *t = (*t)->next;
    else t = &(*t)->next;
  }
  for (auto const& d : definitions_)
    if (d->library == library) d->library = nullptr;
  auto const mine = [&](registration_record const& r) { return r.library == library; };
  bool const all = std::erase_if(fallbacks_, mine);
  for (auto const& e : entries_)
    if (std::erase_if(e->records, mine) && !all) rebuild(*e);
  if (all) rebuild_all();
}
template <class T>
auto registry<T>::of(slot s) -> entry& {
  for (auto const& e : entries_)
    if (e->table == s) return *e;
  entries_.push_back(std::unique_ptr<entry>(new entry{s, false, {}}));
  return *entries_.back();
}
template <class T>
defined_operator* registry<T>::definition(op_table const* t) {
  for (auto const& d : definitions_)
    if (&d->table == t) return d.get();
  return nullptr;
}
template <class T>
void registry<T>::keep(registration_record& r, function_owner& f) {
  if (!f) return;
  void*& self = r.rule.call ? r.rule.self : r.kernel.self;
  if (f->equals)
    for (auto const& k : functions_)
      if (k->type == f->type && k->equals(k.get(), f.get())) {
        self = k.get();
        return;
      }
  self = f.get();
  (f->equals ? functions_ : single_functions_).push_back(std::move(f));
}
template <class T>
dispatch_table const* registry<T>::shared(dispatch_table const& t) {
  for (auto const& k : tables_)
    if (*k == t) return k.get();
  tables_.push_back(std::make_unique<dependent<dispatch_table, T> const>(t));
  return tables_.back().get();
}
template <class T>
void registry<T>::rebuild_all() {
  for (table_entry* t = first_table(); t; t = t->next) (void)of(t->table->registered);
  for (auto const& e : entries_) rebuild(*e);
}
template <class T>
void registry<T>::rebuild(entry& e) {
  bool const nothing = !e.defined && e.records.empty() && fallbacks_.empty();
  e.table->store(nothing ? nullptr : shared(table_of_records(e)), std::memory_order_release);
}
template <class T>
dispatch_table registry<T>::table_of_records(entry const& e) const {
  dispatch_table t;
  int rules = 0;
  for (auto const& r : e.records)
    if (r.rule.call) t.rules[rules++] = r.rule;
  t.kernels = kernels_of_records(e);
  kernel_inventory const fallbacks = fallbacks_of_all();
  for (int i = 1; i < dispatch_key_count; ++i) {
    auto const k = static_cast<dispatch_key>(i);
    t.at[i] = kernel_of(e, k, resolve(t.kernels, fallbacks, k));
  }
  t.at[0] = {&no_kernel};
  t.stops = stops_of(t.kernels, fallbacks);
  if (boxed_kernel const* c = registered(e, dispatch_key::composite_implicit); c && e.defined) t.composite = *c;
  return t;
}
template <class T>
kernel_inventory registry<T>::kernels_of_records(entry const& e) {
  kernel_inventory kernels;
  if (!e.defined) kernels = built_in_kernels;
  for (auto const& r : e.records) {
    if (r.rule.call) continue;
    r.kernel.call ? kernels.add(r.key) : kernels.skip(r.key);
  }
  // varve's own operators have gradients; fallbacks at autograd are for operators of libraries.
  if (!e.defined && !kernels.autograd && !kernels.composite_implicit)
    for (int i = 1; i < dispatch_key_count; ++i)
      if (auto const k = static_cast<dispatch_key>(i); is_autograd(k) && !kernels.has(k)) kernels.skip(k);
  return kernels;
}
template <class T>
kernel_inventory registry<T>::fallbacks_of_all() const {
  kernel_inventory fallbacks = built_in_fallbacks;
  for (auto const& f : fallbacks_) {
    fallbacks.fallthrough &= ~kernel_inventory::bit(f.key);
    fallbacks.direct &= ~kernel_inventory::bit(f.key);
    f.kernel.call ? fallbacks.add(f.key) : fallbacks.skip(f.key);
  }
  return fallbacks;
}
template <class T>
boxed_kernel const* registry<T>::registered(entry const& e, dispatch_key k) {
  for (auto const& r : e.records)
    if (r.key == k && r.kernel.call) return &r.kernel;
  return nullptr;
}
template <class T>
boxed_kernel registry<T>::kernel_of(entry const& e, dispatch_key k, resolution where) const {
  switch (where) {
  case resolution::direct:
    if (boxed_kernel const* own = registered(e, k)) return *own;
    return unregistered.at[static_cast<int>(k)];
  case resolution::composite_explicit_non_functional:
    return *registered(e, dispatch_key::composite_explicit_non_functional);
  case resolution::composite_explicit:
    return *registered(e, dispatch_key::composite_explicit);
  case resolution::composite_implicit:
    return *registered(e, dispatch_key::composite_implicit);
  case resolution::autograd:
    return *registered(e, dispatch_key::autograd);
  case resolution::fallback:
    for (auto const& f : fallbacks_)
      if (f.key == k) return f.kernel;
    return unregistered.at[static_cast<int>(k)];
  case resolution::fallthrough:
    return {};
  default:
    return {&no_kernel};
  }
}
} // namespace varve::detail
#endif
