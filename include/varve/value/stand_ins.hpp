// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/value/storage.hpp>

namespace varve::detail {

void drop_storage(storage* s);

/// Copies on which a trace of this thread runs in place of the memory that its function captured or received. Questions
/// whether two tensors share memory are answered for the originals. The copies are registered until the trace ends;
/// those still in use then, as results of a function, are passed to the surrounding trace.
class memory_stand_ins {
public:
  memory_stand_ins() : around_(innermost) { innermost = this; }
  memory_stand_ins(memory_stand_ins const&) = delete;
  memory_stand_ins& operator=(memory_stand_ins const&) = delete;
  ~memory_stand_ins();
  void add(storage& copy, storage& original);
  /// True if both are the same memory from the program's point of view.
  static bool are_one(storage const* a, storage const* b);

private:
  struct pair {
    storage *copy, *original; // references to both
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
  memory_stand_ins** at = &innermost; // member traces may end in any order
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
    if (!of) break; // the entry belongs to another thread
    s = of;
  }
  return s;
}
VARVE_COLD VARVE_LIBRARY bool memory_stand_ins::are_one(storage const* a, storage const* b) {
  return a && original_of(a) == original_of(b);
}
#endif

} // namespace varve::detail
