// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>

#include <cstring>

/// @file
/// Composites that compute a whole call in one or two passes over memory where this makes no visible difference. Either
/// nothing watches the calls in their bodies, or only one recorder does, which records the call as one node. In every
/// other case the body runs.
namespace varve::detail {

inline constinit std::atomic<dispatch_table const*> nothing_registered{nullptr};
/// An estimate of the nanoseconds that calls on this thread lost because something watched them, so that their bodies
/// ran. `compile` reads it after a trace, because the function itself would not lose them. It is computed from bytes,
/// with a higher rate for data that exceed the caches.
inline constinit thread_local double whole_time_missed = 0;

/// Returns what a recorder needs of a whole call: how many operands it has, which values its gradient reads, and the
/// gradient. `kind` is pointwise, or a reduction if rows are reduced on the way. The result has memory of its own.
constexpr op_table whole_table(char const* name, int arity, saved_values const& saved, decltype(op_table::vjp) gradient,
                               op_kind kind = op_kind::pointwise) {
  return {.name = name,
          .schema = "",
          .arity = arity,
          .differentiable = true,
          .eval = nullptr,
          .jvp = nullptr,
          .vjp = gradient,
          .batch = nullptr,
          .handle = nullptr,
          .meta = nullptr,
          .registered = &nothing_registered,
          .saved = saved,
          .kind = kind};
}

/// Calls `kernel(at, x)` on the operands and makes the recorder, if there is one, record the call. Returns an undefined
/// tensor, and does nothing, if something else watches or if the kernel returns one because it does not support the
/// operands.
tensor whole_call(op_table const& t, attributes const& at, tensor const* const* x, int n,
                  tensor (*kernel)(attributes const& at, tensor const* const* x));

/// True if nothing but eager autograd could watch a call on these tensors.
inline bool only_autograd_watches(tensor const* const* x, int n) {
  constexpr unsigned history = dispatch_key_set::history_bit;
  bool r = this_thread_state.quiet();
  for (int k = 0; k < n; ++k) r = r && x[k]->defined() && !(x[k]->keys().bits & watched & ~history);
  return r;
}
/// Returns the gradient of a whole call: `kernel()` if nothing watches the operands, else `body()`, in operators. If
/// only eager autograd records it, its elements are those of the kernel. So a gradient is the same whether it is
/// recorded or not.
template <class Kernel, class Body>
tensor whole_gradient(tensor const* const* x, int n, Kernel const& kernel, Body const& body) {
  bool unwatched = true;
  for (int k = 0; k < n; ++k) unwatched = unwatched && are_unwatched(x[k], 1);
  if (unwatched) return kernel();
  tensor const r = body();
  if (!only_autograd_watches(x, n)) return r;
  tensor const same = kernel();
  if (r.is_contiguous() && r.dtype() == same.dtype() && r.sizes() == same.sizes() && !r.is_wrapped() && r.has_data())
    std::memcpy(r.raw(), same.raw(), static_cast<std::size_t>(r.numel() * itemsize(r.dtype())));
  return r;
}

/// True if `X` is a tensor, and not a value seen through a static transform.
template <class X>
inline constexpr bool is_one_tensor = std::is_same_v<std::remove_cvref_t<X>, tensor>;

/// True if all tensors have one dtype, float32 or float64, and none is a plain number.
inline bool are_floats(tensor const* const* x, int n) {
  dtype const t = x[0]->dtype();
  bool fits = t == dtype::float32 || t == dtype::float64;
  for (int k = 0; k < n; ++k) fits = fits && x[k]->dtype() == t && !x[k]->is_number();
  return fits;
}
} // namespace varve::detail

#if VARVE_DEFINES
namespace varve::detail {
VARVE_LIBRARY tensor whole_call(op_table const& t, attributes const& at, tensor const* const* x, int n,
                                tensor (*kernel)(attributes const& at, tensor const* const* x)) {
  tensor const* below[saved_values::most];
  bool unwatched = true;
  for (int k = 0; k < n; ++k) {
    if (!x[k]->defined()) return {};
    below[k] = x[k];
    unwatched = unwatched && are_unwatched(x[k], 1);
  }
  if (!unwatched && !opened_for_one_recorder(below, n)) {
    extent const elements = numel(x[0]->sizes());
    double const bytes = elements.is_number() ? static_cast<double>(elements.number() * itemsize(x[0]->dtype())) : 0;
    whole_time_missed += 1 + bytes * (bytes > 1 << 19 ? 0.25 : 0.03) * (t.kind == op_kind::reduction ? 1 : 0.7);
    return {};
  }
  tensor y = kernel(at, below);
  if (y.defined() && !unwatched) record_done({&t, &at}, y, x, below, n);
  return y;
}
} // namespace varve::detail
#endif
