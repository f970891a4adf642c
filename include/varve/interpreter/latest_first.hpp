// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>

#include <cstdint>

namespace varve::detail {

/// A heap of tasks that may run, with the task whose node was made last on top. A single task, as in a chain, costs no
/// more than its place.
template <class Task = std::uint32_t>
class latest_first {
public:
  bool empty() const { return waiting_.empty(); }
  void clear() { waiting_.clear(); }
  void push(std::uint64_t sequence, Task task) {
    auto at = static_cast<std::ptrdiff_t>(waiting_.size());
    waiting_.push_back({sequence, task});
    for (; at > 0 && waiting_[(at - 1) / 2].sequence < sequence; at = (at - 1) / 2)
      waiting_[at] = waiting_[(at - 1) / 2];
    waiting_[at] = {sequence, task};
  }
  Task take() {
    entry const last = waiting_.back();
    waiting_.pop_back();
    if (waiting_.empty()) return last.task;
    Task const task = waiting_[0].task;
    std::ptrdiff_t at = 0;
    auto const size = static_cast<std::ptrdiff_t>(waiting_.size());
    for (std::ptrdiff_t child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && waiting_[child].sequence < waiting_[child + 1].sequence) ++child;
      if (last.sequence >= waiting_[child].sequence) break;
      waiting_[at] = waiting_[child];
    }
    waiting_[at] = last;
    return task;
  }
  void swap(latest_first& o) { waiting_.swap(o.waiting_); }

private:
  struct entry {
    std::uint64_t sequence;
    Task task;
  };
  list<entry> waiting_;
};

} // namespace varve::detail
