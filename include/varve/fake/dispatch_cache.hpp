// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/boxed.hpp>
#include <varve/value/tensor.hpp>

#include <cstring>
#include <utility>
#include <vector>

namespace varve {

/// Statistics of a cache of results on fake tensors: calls whose metadata was found, calls that were computed, and
/// calls that are never cached, by reason.
struct dispatch_cache_info {
  std::size_t hits = 0, misses = 0, size = 0;
  std::vector<std::pair<char const*, std::size_t>> bypasses{}; // reason and number of calls
  std::size_t bypassed(char const* reason) const {
    for (auto const& b : bypasses)
      if (std::strcmp(b.first, reason) == 0) return b.second;
    return 0;
  }
};

namespace detail {
/// The metadata of results, by operator, attributes and metadata of the operands; for plain numbers by dtype and value.
/// Views and writes are not cached, because their results depend on the given operands.
class dispatch_cache {
public:
  dispatch_cache_info info{};

  /// Returns the metadata of a call. Null if it is not known, or is never cached; `keeps()` is true in the first case.
  meta const* find(boxed_op const& op, boxed_args const& x, dtype default_type) {
    char const* const why = reason_against(op, x);
    kept_ = !why;
    if (why) {
      bypass(why);
      return nullptr;
    }
    write_key(op, x, default_type);
    if (entry const& e = slot(); !e.key.empty() && e.key == key_) {
      ++info.hits;
      return &e.result;
    }
    ++info.misses;
    return nullptr;
  }
  bool keeps() const { return kept_; }
  /// Stores the result of the call that was looked up last.
  void keep(meta const& result) {
    entry& e = slot();
    info.size += e.key.empty();
    e.key = key_, e.result = result;
  }

private:
  struct entry {
    std::vector<std::int64_t> key{};
    meta result{};
  };
  static char const* reason_against(boxed_op const& op, boxed_args const& x) {
    if (op.table->kind == op_kind::mutation) return "mutation";
    if (op.table->kind == op_kind::view) return "view";
    for (auto const& t : x)
      if (!t.defined()) return "undefined operand";
      else
        for (extent const s : t.sizes())
          if (!s.is_number()) return "symbolic sizes";
    return nullptr;
  }
  void write_key(boxed_op const& op, boxed_args const& x, dtype default_type) {
    key_.clear();
    key_.push_back(reinterpret_cast<std::intptr_t>(op.table));
    key_.push_back(static_cast<std::int64_t>(default_type) * 16 + op.at->count);
    for (int k = 0; k < op.at->count; ++k) add((*op.at)[k]);
    for (auto const& t : x) {
      key_.push_back(static_cast<std::int64_t>(t.dtype()) * 2 + t.is_number());
      if (t.is_number()) std::memcpy(&key_.emplace_back(0), t.raw(), static_cast<std::size_t>(itemsize(t.dtype())));
      else add(t.sizes());
    }
    hash_ = 0;
    for (std::int64_t const n : key_)
      hash_ = (hash_ ^ static_cast<std::uint64_t>(n)) * 0x9E3779B97F4A7C15u, hash_ ^= hash_ >> 29;
  }
  void add(dims const& d) {
    key_.push_back(d.n);
    for (int k = 0; k < d.n; ++k) key_.push_back(d[k].bits);
  }
  entry& slot() { return entries_[hash_ % entries_.size()]; }
  void bypass(char const* why) {
    for (auto& b : info.bypasses)
      if (b.first == why) return void(++b.second);
    info.bypasses.emplace_back(why, 1);
  }
  std::vector<entry> entries_ = std::vector<entry>(251); // a colliding entry replaces the old one
  std::vector<std::int64_t> key_;                        // of the call that was looked up last
  std::uint64_t hash_ = 0;
  bool kept_ = false;
};
} // namespace detail

} // namespace varve
