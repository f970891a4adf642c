// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>

#include <cstring>

/// @file
/// Composites that compute a whole call in one or two passes over memory where nothing could tell: when nothing watches
/// the calls that their bodies are made of, or only one recorder does, which writes the call down as one node. In every
/// other case the body runs.
namespace varve::detail {

inline constinit std::atomic<dispatch_table const*> nothing_registered{nullptr};
/// Nanoseconds that calls on this thread took more because something watched them, so that they ran in operators.
/// `compile` asks it of a trace: the function itself would not lose them. An estimate, by bytes; caches end somewhere.
inline constinit thread_local double whole_time_missed = 0;

/// What a recorder needs of a whole call: how many operands it has, what its gradient reads of them, and the gradient.
/// `kind`: pointwise, or a reduction where rows are reduced on the way; the result has memory of its own.
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

/// Calls `kernel(at, x)` on the operands and has the recorder, if there is one, write that down. Undefined, and nothing
/// has happened, when something watches or the kernel does not take such operands, for which it gives an undefined
/// tensor.
tensor whole_call(op_table const& t, attributes const& at, tensor const* const* x, int n,
                  tensor (*kernel)(attributes const& at, tensor const* const* x));

/// Is there nothing but eager autograd that could watch a call on these tensors?
inline bool only_autograd_watches(tensor const* const* x, int n) {
  constexpr unsigned history = dispatch_key_set::history_bit;
  bool r = this_thread_state.quiet();
  for (int k = 0; k < n; ++k) r = r && x[k]->defined() && !(x[k]->keys().bits & watched & ~history);
  return r;
}
/// A gradient of whole calls: `kernel()` where nothing watches the operands, else `body()`, in operators. What eager
/// autograd records of that has the elements of the kernel: a gradient is the same whether it is recorded or not.
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

/// Is `X` a tensor, and no value seen through a static transform?
template <class X>
inline constexpr bool is_one_tensor = std::is_same_v<std::remove_cvref_t<X>, tensor>;

/// Are floating tensors in memory, of one dtype?
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
