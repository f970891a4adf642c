// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

namespace varve::detail {

/// The set of results of a function that have cotangents. A result that nothing uses has none. That differs from a
/// cotangent of zeros: zero times an infinite derivative would be NaN. Results from the 65th on always count as used.
class used_results {
public:
  constexpr bool operator[](int k) const { return k >= 64 || (bits_ >> k & 1) != 0; }
  constexpr void set(int k, bool used) {
    if (k >= 64) return;
    auto const bit = std::uint64_t{1} << k;
    bits_ = used ? bits_ | bit : bits_ & ~bit;
  }
  constexpr bool all() const { return bits_ == ~std::uint64_t{0}; }
  static constexpr used_results none() {
    used_results r;
    r.bits_ = 0;
    return r;
  }
  constexpr used_results operator|(used_results const& o) const {
    used_results r;
    r.bits_ = bits_ | o.bits_;
    return r;
  }
  friend constexpr bool operator==(used_results const&, used_results const&) = default;
  /// Returns the set for the results after the first one.
  constexpr used_results without_first() const {
    used_results r;
    r.bits_ = bits_ >> 1 | std::uint64_t{1} << 63;
    return r;
  }
  /// True if a used result depends on an operand. Bit j of `of[k]` is set if result k depends on operand j.
  template <class Reach>
  constexpr bool reach(Reach const& of, int operand) const {
    if (operand >= 64) return true;
    for (int k = 0; k < static_cast<int>(of.size()); ++k)
      if ((*this)[k] && (of[static_cast<std::size_t>(k)] >> operand & 1)) return true;
    return false;
  }
  /// Returns the results of a step of a loop that are used, including uses by later steps. Bit j of `reach[k]` is set
  /// if result k may be differentiated by the step's operand j. The first `carried` results are the operands of the
  /// next step.
  template <class Reach>
  constexpr used_results in_steps(int carried, Reach const& reach) const {
    used_results r = *this;
    for (bool grown = !all(); grown;) {
      grown = false;
      for (int k = 0; k < static_cast<int>(reach.size()); ++k) {
        if (!r[k]) continue;
        for (int j = 0; j < carried; ++j) {
          if (r[j] || !(reach[static_cast<std::size_t>(k)] >> j & 1)) continue;
          r.set(j, true), grown = true;
        }
      }
    }
    return r;
  }

private:
  std::uint64_t bits_ = ~std::uint64_t{0};
};

/// The used results that the pullback of a loop finds from step to step.
struct used_in_steps {
  used_results now, all, reached = used_results::none();
  int carried, steps = 0;
  constexpr used_in_steps(used_results const& first, int c) : now(first), all(first), carried(c) {}
  /// Adds the operands to which a step gave a cotangent. For carried operands, these are the used results of the
  /// previous step.
  constexpr void add(used_results const& operands) {
    for (int k = 0; k < carried; ++k) now.set(k, operands[k]);
    all = all | now, reached = reached | operands, ++steps;
  }
};

} // namespace varve::detail
