// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <bit>
#include <cstdint>

namespace varve {

/// The steps that may process a call before a kernel runs, lowest priority first: keys are tried from the highest down.
/// Names are PyTorch's where it has them. `dense` and autograd exist once per backend: each of their keys combines one
/// functionality and one backend.
enum class dispatch_key : std::uint8_t {
  undefined,
  cpu,            ///< kernels on memory of this process
  other,          ///< a backend without an autograd key of its own
  private_use,    ///< a backend that a program registers
  meta,           ///< shapes and dtypes without data
  subclass,       ///< wrapper types with their own `dispatch`
  dispatch_mode,  ///< user modes, then the infra modes
  transform_back, ///< active while a transform passes a call down
  functionalize,
  inplace_or_view, ///< version counters and view metadata
  autograd_cpu,
  autograd_other,
  autograd_private_use,
  autograd_meta,
  autocast,
  transform,     ///< the dynamic layer stack: `grad`, `jvp`, `vmap`, ...
  complex_value, ///< complex operands: replaces operators by those for complex numbers
  pre_dispatch,  ///< the mode stack above transforms and autograd
  function_mode, ///< modes that receive public calls, composites included
  // Functionalities without a backend, which occur in sets only.
  dense,
  autograd_functionality,
  // Aliases, which expand to several keys when a kernel is registered.
  autograd,
  composite_implicit,
  composite_explicit,
  composite_explicit_non_functional
};

/// The number of keys that have an entry in a dispatch table.
inline constexpr int dispatch_key_count = static_cast<int>(dispatch_key::function_mode) + 1;

constexpr char const* name(dispatch_key k) {
  constexpr char const* names[] = {"undefined",
                                   "cpu",
                                   "other",
                                   "private_use",
                                   "meta",
                                   "subclass",
                                   "dispatch_mode",
                                   "transform_back",
                                   "functionalize",
                                   "inplace_or_view",
                                   "autograd_cpu",
                                   "autograd_other",
                                   "autograd_private_use",
                                   "autograd_meta",
                                   "autocast",
                                   "transform",
                                   "complex_value",
                                   "pre_dispatch",
                                   "function_mode",
                                   "dense",
                                   "autograd_functionality",
                                   "autograd",
                                   "composite_implicit",
                                   "composite_explicit",
                                   "composite_explicit_non_functional"};
  return names[static_cast<int>(k)];
}
/// True if the key is an alias for other keys.
constexpr bool is_alias(dispatch_key k) { return k >= dispatch_key::autograd; }
/// True if the key combines `dense` and a backend.
constexpr bool is_backend(dispatch_key k) { return k >= dispatch_key::cpu && k <= dispatch_key::meta; }
/// True if the key is the autograd key of a backend.
constexpr bool is_autograd(dispatch_key k) {
  return k >= dispatch_key::autograd_cpu && k <= dispatch_key::autograd_meta;
}

/// A set of functionalities and a set of backends, as bits of one word. Usable in constant expressions.
struct dispatch_key_set {
  /// Bits 0-3 are cpu, other, private_use and meta. The bits from 4 on are dense, subclass, ..., function_mode. Bit 16
  /// is not a key: it is set for tensors that have or share a history, whose calls must stop at autograd.
  std::uint32_t bits = 0;

  constexpr dispatch_key_set() = default;
  /// Makes the set of one key: the functionality and the backend of a combined key, or the keys that an alias expands
  /// to.
  constexpr dispatch_key_set(dispatch_key k) : bits(bits_of(k)) {} // NOLINT: a key is a set
  template <class... K>
    requires(sizeof...(K) > 1)
  constexpr dispatch_key_set(K... k) : bits((bits_of(k) | ...)) {}
  static constexpr dispatch_key_set of_bits(unsigned b) {
    dispatch_key_set s;
    s.bits = b;
    return s;
  }
  static constexpr dispatch_key_set full() { return of_bits(all_bits); }
  static constexpr std::uint32_t history_bit = 0x10000;
  constexpr bool may_have_history() const { return bits & history_bit; }

  constexpr bool empty() const { return bits == 0; }
  /// True if the set contains the functionality and the backend of the key.
  constexpr bool has(dispatch_key k) const { return k != dispatch_key::undefined && (bits & bits_of(k)) == bits_of(k); }
  constexpr bool has_any(dispatch_key_set s) const { return (*this & s).bits & functionality_bits; }

  friend constexpr bool operator==(dispatch_key_set, dispatch_key_set) = default;
  friend constexpr dispatch_key_set operator|(dispatch_key_set a, dispatch_key_set b) {
    return of_bits(a.bits | b.bits);
  }
  friend constexpr dispatch_key_set operator&(dispatch_key_set a, dispatch_key_set b) {
    return of_bits(a.bits & b.bits);
  }
  /// Removes functionalities and keeps all backends, so that excluding `autograd_cpu` does not exclude the CPU.
  friend constexpr dispatch_key_set operator-(dispatch_key_set a, dispatch_key_set b) {
    return of_bits(a.bits & (backend_bits | ~b.bits));
  }
  constexpr dispatch_key_set& operator|=(dispatch_key_set b) { return *this = *this | b; }
  constexpr dispatch_key_set& operator-=(dispatch_key_set b) { return *this = *this - b; }
  /// Removes the backend of a key and keeps all functionalities.
  constexpr dispatch_key_set without_backend(dispatch_key k) const {
    return of_bits(bits & ~(bits_of(k) & backend_bits));
  }
  /// Returns the keys of strictly lower priority, with all backends: where a redispatch continues.
  constexpr dispatch_key_set below(dispatch_key k) const {
    unsigned const f = bits_of(k) & functionality_bits;
    return of_bits(bits & (history_bit | backend_bits | (f ? std::bit_floor(f) - 1 : 0)));
  }
  /// Returns the keys of strictly higher priority.
  constexpr dispatch_key_set above(dispatch_key k) const {
    unsigned const f = bits_of(k) & functionality_bits;
    return of_bits(bits & functionality_bits & ~(std::bit_floor(f) * 2 - 1));
  }
  /// Returns the key that is tried first: the highest functionality, combined with the highest backend if it exists per
  /// backend.
  constexpr dispatch_key highest() const {
    unsigned const f = bits & functionality_bits;
    if (!f) return dispatch_key::undefined;
    int const bit = std::bit_width(f) - 1;
    if (bit != dense_bit && bit != autograd_bit)
      return static_cast<dispatch_key>(bit < autograd_bit
                                           ? static_cast<int>(dispatch_key::subclass) + bit - dense_bit - 1
                                           : static_cast<int>(dispatch_key::autocast) + bit - autograd_bit - 1);
    unsigned const b = bits & backend_bits;
    if (!b) return dispatch_key::undefined;
    return static_cast<dispatch_key>(
        (bit == dense_bit ? static_cast<int>(dispatch_key::cpu) : static_cast<int>(dispatch_key::autograd_cpu)) +
        std::bit_width(b) - 1);
  }

private:
  static constexpr int dense_bit = 4, autograd_bit = 10;
  static constexpr unsigned backend_bits = 0xF, all_bits = 0xFFFF, functionality_bits = all_bits & ~backend_bits;
  static constexpr std::uint32_t bits_of(dispatch_key k) {
    unsigned const v = static_cast<unsigned>(k);
    auto const bit = [](unsigned n) { return 1u << n; };
    if (k == dispatch_key::undefined) return 0;
    if (is_backend(k)) return bit(dense_bit) | bit(v - 1);
    if (k < dispatch_key::autograd_cpu) return bit(dense_bit + 1 + v - static_cast<unsigned>(dispatch_key::subclass));
    if (is_autograd(k)) return bit(autograd_bit) | bit(v - static_cast<unsigned>(dispatch_key::autograd_cpu));
    if (k < dispatch_key::dense) return bit(autograd_bit + 1 + v - static_cast<unsigned>(dispatch_key::autocast));
    if (k == dispatch_key::dense) return bit(dense_bit);
    if (k == dispatch_key::autograd_functionality) return bit(autograd_bit);
    return backend_bits | (k == dispatch_key::autograd ? bit(autograd_bit) : bit(dense_bit));
  }
};

/// The keys of an ordinary tensor in this process's memory: its kernel, view bookkeeping and autograd.
inline constexpr dispatch_key_set default_keys{dispatch_key::cpu, dispatch_key::inplace_or_view,
                                               dispatch_key::autograd_cpu};

} // namespace varve
