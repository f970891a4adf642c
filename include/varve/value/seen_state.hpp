// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/strided.hpp>

namespace varve {

class tensor;

/// What a transform keeps of one value that it sees, beside what the value holds: `functionalize` the memory that it
/// stands for. Deleted with the value.
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
  virtual layout const& layout_shown() const = 0;
};

} // namespace varve
