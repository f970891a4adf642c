// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/mode/call_record.hpp>
#include <varve/mode/memory_account.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace varve {

/// A mode that counts live and peak bytes of the storages that operators allocate under it, including temporary ones,
/// in total and by operator. A storage counts until it is freed, by any thread, also after the mode is off.
///
///   memory_tracker_mode memory;
///   { mode_guard const on{memory}; loss = train_step(w, x); }
///   memory.max_memory_allocated();     // bytes; memory.peak_operator() names the operator
///
/// Names are those of `torch.cuda`. Static values allocate nothing.
class memory_tracker_mode : public dispatch_mode<memory_tracker_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  /// Bytes that the calls of one operator allocated, including those freed since.
  struct row {
    std::string name;
    long long calls = 0;
    std::size_t bytes = 0;
  };
  memory_tracker_mode() = default;
  memory_tracker_mode(memory_tracker_mode const&) = delete;
  memory_tracker_mode& operator=(memory_tracker_mode const&) = delete;
  ~memory_tracker_mode() { account_->drop(); }

  std::size_t memory_allocated() const { return account_->live.load(std::memory_order_relaxed); }
  std::size_t max_memory_allocated() const { return account_->peak.load(std::memory_order_relaxed); }
  std::size_t total_allocated() const { return account_->total.load(std::memory_order_relaxed); }
  /// Restarts the measurement of the peak.
  void reset_peak_memory_stats() {
    lock_([&] {
      account_->peak.store(memory_allocated(), std::memory_order_relaxed);
      peak_seen_ = memory_allocated();
      peak_operator_.clear();
    });
  }
  /// Returns the operator during which the peak was reached.
  std::string peak_operator() {
    std::string r;
    lock_([&] { r = peak_operator_; });
    return r;
  }
  std::vector<row> rows() {
    std::vector<row> r;
    lock_([&] { r = rows_; });
    return r;
  }
  /// Returns a table for a terminal.
  std::string table() {
    char s[128];
    std::snprintf(s, sizeof s, "live %zu bytes, peak %zu bytes at %s\n", memory_allocated(), max_memory_allocated(),
                  peak_operator().c_str());
    std::string r = s;
    for (row const& o : rows()) {
      std::snprintf(s, sizeof s, "%-24s %8lld %14zu\n", o.name.c_str(), o.calls, o.bytes);
      r += s;
    }
    return r;
  }

  constexpr auto process(auto const& op, auto const&... args) {
    if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(args)>, boxed_args> || ...)) return tracked(op, args...);
    else return op(args...);
  }

private:
  template <class Op>
  auto tracked(Op const& op, boxed_args const& x) {
    std::size_t const before = total_allocated();
    detail::observed_scope const on(*account_);
    auto y = op(x);
    lock_([&] {
      row& r = row_of(op.name());
      ++r.calls;
      if constexpr (!std::is_same_v<Op, boxed_hop>)
        r.bytes += total_allocated() - before; // the operators of its functions count theirs
      if (max_memory_allocated() > peak_seen_) {
        peak_seen_ = max_memory_allocated();
        peak_operator_ = op.name();
      }
    });
    return y;
  }
  row& row_of(char const* name) {
    for (row& r : rows_)
      if (r.name == name) return r;
    rows_.push_back({name});
    return rows_.back();
  }
  detail::memory_account* account_ = new detail::memory_account;
  std::size_t peak_seen_ = 0;
  std::string peak_operator_;
  std::vector<row> rows_;
  detail::spin_lock lock_; // `parallel_for` and `carry` share one mode between threads
};

} // namespace varve

#pragma GCC diagnostic pop
