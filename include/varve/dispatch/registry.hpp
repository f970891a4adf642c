// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <vector>
#include <varve/dispatch/schema.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>

namespace varve::detail {

/// One kernel, fallthrough, fallback or rule that a library registered. `kernel` without a call means fallthrough.
struct registration_record {
  dispatch_key key = dispatch_key::undefined;
  boxed_kernel kernel;
  interpreter_rule rule;
  std::shared_ptr<void> owner; // of what kernel.self points to
  void const* library = nullptr;
};

/// An operator that a library defined: it has a name and a schema, all else is registered.
struct defined_operator {
  std::string name, schema;
  std::atomic<dispatch_table const*> registered{nullptr};
  op_table table;
  table_entry entry;

  defined_operator(std::string n, operator_schema const& s)
      : name(std::move(n)), schema([&] { std::string t = to_string(s); return t.substr(t.find('(')); }()),
        table{name.c_str(), schema.c_str(), s.operands(), true, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &registered}, entry{&table, nullptr} {}
};

/// What all libraries of the process registered, and the tables made of it. Tables in use are never changed: a new one takes their place (DK-13), and the old ones stay
/// until the process ends, since another thread may be reading them.
class registry {
public:
  static registry& instance() {
    static registry* const r = new registry; // outlives every library, whatever the order of destruction
    return *r;
  }
  std::mutex lock;

  /// The registrations of one operator, by the slot all its tables share.
  struct entry {
    op_table const* op;
    bool defined; // by a library: nothing is built in
    std::vector<registration_record> records;
    std::vector<std::unique_ptr<dispatch_table>> tables;
  };

  entry& of(op_table const* op, bool defined = false) {
    for (auto& e : entries_)
      if (e->op->registered == op->registered) return *e;
    entries_.push_back(std::make_unique<entry>(entry{op, defined, {}, {}}));
    return *entries_.back();
  }
  op_table const* define(std::string name, operator_schema const& s) {
    definitions_.push_back(std::make_unique<defined_operator>(std::move(name), s));
    defined_operator& d = *definitions_.back();
    rebuild(of(&d.table, true));
    table_lock const held;
    d.entry.next = first_table();
    first_table() = &d.entry;
    return &d.table;
  }
  /// The operator is not found any more; what holds its handle may still call it, and is told that it has no kernel.
  void forget(op_table const* op) {
    table_lock const held;
    for (table_entry** e = &first_table(); *e; e = &(*e)->next)
      if ((*e)->table == op) {
        *e = (*e)->next;
        return;
      }
  }
  void add_fallback(registration_record r) {
    for (auto const& f : fallbacks_)
      if (f.key == r.key) throw dispatch_error((std::string("varve: a fallback for ") + name(r.key) + " is registered already").c_str());
    fallbacks_.push_back(std::move(r));
    rebuild_all();
  }
  /// Takes back what a library registered.
  void remove(void const* library) {
    std::erase_if(fallbacks_, [&](auto const& r) { return r.library == library && retire(r); });
    for (auto& e : entries_) std::erase_if(e->records, [&](auto const& r) { return r.library == library && retire(r); });
    rebuild_all();
  }
  void rebuild(entry& e) {
    auto t = std::make_unique<dispatch_table>();
    kernel_inventory fallbacks = built_in_fallbacks;
    for (auto const& f : fallbacks_) {
      fallbacks.fallthrough &= ~kernel_inventory::bit(f.key);
      fallbacks.direct &= ~kernel_inventory::bit(f.key);
      f.kernel.call ? fallbacks.add(f.key) : fallbacks.skip(f.key);
    }
    if (!e.defined) t->kernels = built_in_kernels;
    int rules = 0;
    for (auto const& r : e.records) {
      if (r.rule.call) t->rules[rules++] = r.rule;
      else if (r.kernel.call) t->kernels.add(r.key);
      else t->kernels.skip(r.key);
    }
    auto const registered_for = [&](dispatch_key k) -> boxed_kernel const* {
      for (auto const& r : e.records)
        if (r.key == k && r.kernel.call) return &r.kernel;
      return nullptr;
    };
    auto const fallback_for = [&](dispatch_key k) {
      for (auto const& f : fallbacks_)
        if (f.key == k) return f.kernel;
      return unregistered.at[static_cast<int>(k)];
    };
    for (int i = 1; i < dispatch_key_count; ++i) {
      auto const k = static_cast<dispatch_key>(i);
      boxed_kernel& f = t->at[i];
      switch (resolve(t->kernels, fallbacks, k)) {
        case resolution::direct: f = registered_for(k) ? *registered_for(k) : unregistered.at[i]; break;
        case resolution::composite_explicit_non_functional: f = *registered_for(dispatch_key::composite_explicit_non_functional); break;
        case resolution::composite_explicit: f = *registered_for(dispatch_key::composite_explicit); break;
        case resolution::composite_implicit: f = *registered_for(dispatch_key::composite_implicit); break;
        case resolution::autograd: f = *registered_for(dispatch_key::autograd); break;
        case resolution::fallback: f = fallback_for(k); break;
        case resolution::fallthrough: f = {}; break;
        default: f = {&no_kernel, t.get()}; break;
      }
    }
    t->at[0] = {&no_kernel, t.get()};
    t->stops = stops_of(t->kernels, fallbacks);
    if (boxed_kernel const* c = registered_for(dispatch_key::composite_implicit); c && e.defined) t->composite = *c;
    bool const nothing = !e.defined && e.records.empty() && fallbacks_.empty();
    e.op->registered->store(nothing ? nullptr : t.get(), std::memory_order_release);
    e.tables.push_back(std::move(t));
  }

private:
  void rebuild_all() {
    {
      table_lock const held;
      for (table_entry* t = first_table(); t; t = t->next) (void)of(t->table);
    }
    for (auto& e : entries_) rebuild(*e);
  }
  bool retire(registration_record const& r) {
    retired_.push_back(r.owner); // a call under way may still be in it
    return true;
  }
  std::vector<std::unique_ptr<entry>> entries_;
  std::vector<std::unique_ptr<defined_operator>> definitions_;
  std::vector<registration_record> fallbacks_;
  std::vector<std::shared_ptr<void>> retired_;
};

} // namespace varve::detail
