// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

namespace varve::detail {

/// Which results of a function have cotangents. A result that nothing uses has none, which is not the same as a
/// cotangent of zeros: zero times the infinite derivative of such a result would be NaN. Of more than 64 results those
/// behind count as used.
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
  /// Those behind the first result.
  constexpr used_results without_first() const {
    used_results r;
    r.bits_ = bits_ >> 1 | std::uint64_t{1} << 63;
    return r;
  }
  /// Is one of them made of an operand? `of[k]`: of which operands result k is made, bit j for the j-th.
  template <class Reach>
  constexpr bool reach(Reach const& of, int operand) const {
    if (operand >= 64) return true;
    for (int k = 0; k < static_cast<int>(of.size()); ++k)
      if ((*this)[k] && (of[static_cast<std::size_t>(k)] >> operand & 1)) return true;
    return false;
  }
  /// Of a step of a loop: those that the steps to come use too. `reach[k]`: by which values that the step is given
  /// result k may be differentiated, bit j for the j-th; the first `carried` results are what the next step is given.
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

/// What the pullback of a loop finds from step to step.
struct used_in_steps {
  used_results now, all, reached = used_results::none();
  int carried, steps = 0;
  constexpr used_in_steps(used_results const& first, int c) : now(first), all(first), carried(c) {}
  /// Operands that a step gave a cotangent: of what is carried the steps before have one for the result.
  constexpr void add(used_results const& operands) {
    for (int k = 0; k < carried; ++k) now.set(k, operands[k]);
    all = all | now, reached = reached | operands, ++steps;
  }
};

} // namespace varve::detail
