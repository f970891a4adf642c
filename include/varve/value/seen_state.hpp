// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/tensor.hpp>

namespace varve {

/// What a transform keeps of one value that it sees, beside what the value holds: `functionalize` the memory that it stands for. Deleted with the value.
class seen_state {
public:
  seen_state() = default;
  seen_state(seen_state const&) = delete;
  seen_state& operator=(seen_state const&) = delete;
  virtual ~seen_state() = default;
  /// What the value holds once all that was written into its memory is done.
  virtual tensor current(tensor const& of) = 0;
  /// What the value holds has no history from now on (`detach_`).
  virtual void detach_(tensor const& of) = 0;
  /// How it lies in the memory that it stands for.
  layout shown{};
};

namespace detail {
/// What a tensor seen through a transform holds instead of memory.
struct wrapping {
  tensor value;
  tensor extra;
  std::uint64_t layer = 0;
  int level = 0;
  seen_state* state = nullptr;

  wrapping(tensor&& v, tensor&& e, std::uint64_t l, int n) : value(static_cast<tensor&&>(v)), extra(static_cast<tensor&&>(e)), layer(l), level(n) {}
  wrapping(wrapping const&) = delete;
  wrapping& operator=(wrapping const&) = delete;
  ~wrapping() {
    if (state) [[unlikely]]
      delete state;
  }
};
} // namespace detail

} // namespace varve
