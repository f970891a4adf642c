// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/value/storage.hpp>

namespace varve::detail {

void drop_storage(storage* s);

/// Memory that a trace of this thread runs on in place of what its function captured or was given: who asks whether
/// two tensors share memory is told as if the function ran on that itself. Until the end of the trace; what is still
/// held then, as a result of a function, is known to the trace around it.
class memory_stand_ins {
public:
  memory_stand_ins() : around_(innermost) { innermost = this; }
  memory_stand_ins(memory_stand_ins const&) = delete;
  memory_stand_ins& operator=(memory_stand_ins const&) = delete;
  ~memory_stand_ins();
  void add(storage& copy, storage& original);
  /// Is one the memory of the other, both as the program sees them?
  static bool are_one(storage const* a, storage const* b);

private:
  struct pair {
    storage *copy, *original; // shares of both
  };
  static inline constinit thread_local memory_stand_ins* innermost = nullptr;
  memory_stand_ins* around_;
  list<pair> all_;

  static storage const* original_of(storage const* s);
};

#if VARVE_DEFINES
VARVE_COLD VARVE_LIBRARY void memory_stand_ins::add(storage& copy, storage& original) {
  all_.push_back({&copy, &original});
  copy.refs.add(), original.refs.add();
  copy.stands_in = true;
}
VARVE_COLD VARVE_LIBRARY_MEMBER memory_stand_ins::~memory_stand_ins() {
  memory_stand_ins** at = &innermost; // traces that are members of others may end in any order
  while (*at != this) at = &(*at)->around_;
  *at = around_;
  for (pair const& p : all_) {
    if (around_ && p.copy->refs.n.load(std::memory_order_relaxed) > 1) {
      around_->all_.push_back(p);
      continue;
    }
    p.copy->stands_in = false;
    drop_storage(p.copy), drop_storage(p.original);
  }
}
VARVE_COLD VARVE_LIBRARY storage const* memory_stand_ins::original_of(storage const* s) {
  while (s && s->stands_in) {
    storage const* of = nullptr;
    for (memory_stand_ins const* t = innermost; t && !of; t = t->around_)
      for (pair const& p : t->all_)
        if (p.copy == s) of = p.original;
    if (!of) break; // of another thread
    s = of;
  }
  return s;
}
VARVE_COLD VARVE_LIBRARY bool memory_stand_ins::are_one(storage const* a, storage const* b) {
  return a && original_of(a) == original_of(b);
}
#endif

} // namespace varve::detail
