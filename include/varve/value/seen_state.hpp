// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/strided.hpp>

namespace varve {

class tensor;

/// The state that a transform stores for one of its values in addition to the inner value: for `functionalize`, the
/// memory that the value represents. Deleted with the value.
class seen_state {
public:
  seen_state() = default;
  seen_state(seen_state const&) = delete;
  seen_state& operator=(seen_state const&) = delete;
  virtual ~seen_state() = default;
  /// Returns the inner value after all pending writes into its memory are done.
  virtual tensor current(tensor const& of) = 0;
  /// Removes the history of the inner value (`detach_`).
  virtual void detach_(tensor const& of) = 0;
  /// Returns the layout of the value in the memory that it represents.
  virtual layout const& layout_shown() const = 0;
};

} // namespace varve
