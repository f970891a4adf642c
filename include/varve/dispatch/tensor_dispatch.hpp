// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/dispatch/table.hpp>
#include <varve/dispatch/tensor_eval.hpp>
#include <varve/dispatch/thread_state.hpp>

namespace varve {

template <>
inline constexpr bool is_tensor_base<tensor> = true;

namespace detail {
/// An operand as a tensor: plain numbers and arrays are boxed.
inline tensor const& as_tensor(tensor const& t) { return t; }
template <number T>
tensor as_tensor(T v) {
  return tensor::from_number(v);
}
template <class T, index_t... D>
tensor as_tensor(array<T, D...> const& a) {
  return tensor::from_data(a.data, ints<D...>::to_dims());
}

/// Does a value belong to a transform that is still there to process it?
inline bool is_alive(layer const* transforms, tensor const& t) {
  while (transforms && transforms->id != t.layer()) transforms = transforms->below;
  return transforms;
}
/// A value of a transform that has ended behaves like what it holds, but a mapped one lost its dimension: `transform_error` (FS-10).
VARVE_COLD inline tensor unwrap_dead(layer const* transforms, tensor t) {
  while (t.defined() && t.is_wrapped() && !is_alive(transforms, t)) {
    if (!(t.sizes() == t.inner().sizes()))
      throw transform_error("varve: a value mapped by vmap was used after its vmap had returned; return it from the mapped function instead of storing it");
    t = tensor(t.inner());
  }
  return t;
}

/// The slow door: transforms, then modes, then the kernel.
VARVE_NOINLINE inline tensor call_boxed(boxed_op const& op, boxed_args const& x) {
  thread_state& s = this_thread_state;
  bool dead = false;
  for (auto const& t : x) dead = dead || (t.defined() && t.is_wrapped() && !is_alive(s.transforms, t));
  if (dead) {
    boxed_args plain;
    for (auto const& t : x) plain.push_back(unwrap_dead(s.transforms, t));
    return call_boxed(op, plain);
  }
  if (s.transforms) {
    popped const p(s.transforms);
    return p.top().process(p.top(), op, x);
  }
  if (s.modes) {
    popped const p(s.modes);
    return p.top().process(p.top(), op, x);
  }
  return op.table->eval(*op.at, x);
}
} // namespace detail

inline tensor boxed_op::operator()(boxed_args const& x) const { return detail::call_boxed(*this, x); }

/// Tensors go straight to their kernel when the thread's stack is empty; otherwise boxed through it.
template <>
struct backend<detail::tensor_base> {
  template <class Op, class... X>
  static tensor call(Op const& op, X const&... x) {
    return enter(op, detail::as_tensor(x)...);
  }
  template <class S, class T, number N>
  static tensor full(S const& sizes, T const& type, N v);
  /// 0, 1, ..., n - 1 as int64.
  template <class = void>
  static tensor arange(tensor const& like, dims const& n);

private:
  template <class Op, class... X>
  static tensor enter(Op const& op, X const&... x) {
    if (this_thread_state.quiet() && !(x.is_wrapped() || ...)) [[likely]]
      return evaluate_tensor(op, x...);
    auto const args = [&] {
      if constexpr (sizeof...(X) > 0) return boxed_args(x...);
      else return boxed_args();
    }();
    if constexpr (Op::facts == 0) {
      return detail::call_boxed({detail::registered_table<typename Op::tag, Op::facts>(), &no_attributes}, args);
    } else {
      attributes const at = op.boxed();
      return detail::call_boxed({detail::registered_table<typename Op::tag, Op::facts>(), &at}, args);
    }
  }
};

} // namespace varve
