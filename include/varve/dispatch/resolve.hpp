// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>

#include <initializer_list>

namespace varve {

/// The kernels of an operator or, for fallbacks, of every operator: registered for single keys, for aliases, or as
/// fallthrough.
struct kernel_inventory {
  std::uint32_t direct = 0; ///< bit k: a kernel for runtime key k
  std::uint32_t fallthrough = 0;
  bool autograd = false, composite_implicit = false, composite_explicit = false,
       composite_explicit_non_functional = false;

  static constexpr std::uint32_t bit(dispatch_key k) { return 1u << static_cast<int>(k); }
  constexpr bool has(dispatch_key k) const { return direct & bit(k); }
  constexpr bool skips(dispatch_key k) const { return fallthrough & bit(k); }
  constexpr bool has_backend_kernel() const {
    return direct & (bit(dispatch_key::cpu) | bit(dispatch_key::other) | bit(dispatch_key::private_use) |
                     bit(dispatch_key::meta));
  }
  /// Adds a kernel for a key, aliases included.
  constexpr kernel_inventory& add(dispatch_key k) {
    if (k == dispatch_key::autograd) autograd = true;
    else if (k == dispatch_key::composite_implicit) composite_implicit = true;
    else if (k == dispatch_key::composite_explicit) composite_explicit = true;
    else if (k == dispatch_key::composite_explicit_non_functional) composite_explicit_non_functional = true;
    else direct |= bit(k);
    return *this;
  }
  constexpr kernel_inventory& skip(dispatch_key k) { return fallthrough |= bit(k), *this; }
  constexpr bool operator==(kernel_inventory const&) const = default;
};

/// The origin of the kernel of an operator for one key.
enum class resolution : std::uint8_t {
  missing,
  direct,
  composite_explicit_non_functional,
  composite_explicit,
  composite_implicit,
  autograd,
  fallback,    ///< the kernel that all operators share at the key
  fallthrough, ///< no kernel: the key is skipped
  ambiguous    ///< `autograd_other` with a composite and a backend kernel: neither is right for all
};

/// Returns the origin of an operator's kernel for a key. Static stacks and tables of tensors use this same rule.
constexpr resolution resolve(kernel_inventory const& op, kernel_inventory const& fallbacks, dispatch_key k) {
  if (op.skips(k)) return resolution::fallthrough;
  if (op.has(k)) return resolution::direct;
  if (is_backend(k)) {
    if (op.composite_explicit_non_functional) return resolution::composite_explicit_non_functional;
    if (op.composite_explicit) return resolution::composite_explicit;
  }
  if (is_backend(k) || is_autograd(k)) {
    // An autograd key uses the composite only if its backend has no kernel of its own, because that kernel would have
    // another gradient.
    dispatch_key const beneath =
        is_backend(k) ? k
                      : static_cast<dispatch_key>(static_cast<int>(dispatch_key::cpu) + static_cast<int>(k) -
                                                  static_cast<int>(dispatch_key::autograd_cpu));
    if (op.composite_implicit && k == dispatch_key::autograd_other && op.has_backend_kernel())
      return resolution::ambiguous;
    if (op.composite_implicit && !op.has(beneath) && !op.composite_explicit && !op.composite_explicit_non_functional)
      return resolution::composite_implicit;
  }
  if (is_autograd(k) && op.autograd) return resolution::autograd;
  if (fallbacks.has(k)) return resolution::fallback;
  if (fallbacks.skips(k)) return resolution::fallthrough;
  return resolution::missing;
}

/// Returns the keys at which a call of the operator stops: all except its fallthroughs.
constexpr dispatch_key_set stops_of(kernel_inventory const& op, kernel_inventory const& fallbacks) {
  dispatch_key_set s;
  for (int k = 1; k < dispatch_key_count; ++k)
    if (resolve(op, fallbacks, static_cast<dispatch_key>(k)) != resolution::fallthrough)
      s |= static_cast<dispatch_key>(k);
  return s;
}

/// The fallbacks of every operator without registration: nothing happens at the keys of the first list, and kernels
/// that all operators share run at those of the second.
inline constexpr kernel_inventory built_in_fallbacks = [] {
  kernel_inventory f;
  for (dispatch_key k : {dispatch_key::functionalize, dispatch_key::inplace_or_view, dispatch_key::autograd_cpu,
                         dispatch_key::autograd_other, dispatch_key::autograd_private_use, dispatch_key::autograd_meta,
                         dispatch_key::autocast})
    f.skip(k);
  for (dispatch_key k :
       {dispatch_key::subclass, dispatch_key::dispatch_mode, dispatch_key::transform_back, dispatch_key::transform,
        dispatch_key::complex_value, dispatch_key::pre_dispatch, dispatch_key::function_mode})
    f.add(k);
  return f;
}();
/// The kernels of an operator that is defined by its rules.
inline constexpr kernel_inventory built_in_kernels = kernel_inventory{}.add(dispatch_key::cpu).add(dispatch_key::meta);

/// Returns the key at which a call stops: the highest key of the arguments and the thread that is neither excluded nor
/// a fallthrough.
constexpr dispatch_key key_of_call(dispatch_key_set arguments, dispatch_key_set included, dispatch_key_set excluded,
                                   dispatch_key_set stops) {
  return (((arguments | included) - excluded) & stops).highest();
}

} // namespace varve
