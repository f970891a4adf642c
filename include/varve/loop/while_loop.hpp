// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/scan.hpp>

/// @file
/// The gradient first counts the steps, in an additional carried value. It is then a `scan` backwards over as many rows
/// as that count, which is an operand. Under `vmap` each lane has its own count: all lanes walk to the greatest one,
/// and a lane does nothing beyond its own. For static values the stored rows lie in one block of static size, which is
/// why a bound is needed. On tensors there are as many rows as there were steps.
namespace varve {

/// Tag of the higher-order operator `while_loop`.
struct while_loop_t {
  static constexpr auto op_name = "while_loop";
  static constexpr operator_class planned_as = operator_class::scan;
  static constexpr auto backward_name = "WhileLoopBackward";
  static constexpr int given_from = 0;
  static constexpr int carried(attributes const& at) { return static_cast<int>(at[0][0]); }
  static constexpr dims lengths(attributes const& at) { return {at[0][0]}; }
  static constexpr hop_signature signature{
      "(GraphModule cond_fn, GraphModule body_fn, Tensor[] carried_inputs, Tensor[] additional_inputs) -> Tensor[]",
      &lengths};
};

/// The rules of `while_loop`, which is a `scan` that walks through nothing and ends when its condition says so. `jvp`
/// runs one loop of values and tangents. `vmap` continues while any lane does; lanes that are finished keep their
/// values. Reverse mode stores the carried values before each step and the number of steps. The pullback is a backward
/// scan over as many rows, possibly none.
template <>
struct rules<while_loop_t> : rules<scan_t> {
  template <class I, class Op, class... V>
  static constexpr auto grad(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... t) {
      // (steps, carried..., outputs..., stored...)
      auto const y = op.saving()(op.no_steps(), detail::pack(t.primal...));
      auto const n = detail::count_of(y);
      auto const one = detail::one_of(n);
      auto const kept = n - op.carried;
      return in.record_hop(in, op, detail::part(y, one, kept),
                           detail::joined(detail::part(y, one - one, one), detail::part(y, kept, n)), t...);
    }(in.open_tracked(v)...);
  }
  template <class Op, class S, class P, class... G>
  static constexpr auto pull(Op const& op, S const& saved, P const& operands, G const&... g) {
    auto const c = op.carried;
    auto const zero = c - c;
    auto const one = detail::one_of(c);
    auto const n = detail::count_of(operands);
    auto const r = rules<scan_t>::pull(
        op.over_count(), detail::part(saved, one, one + c),
        detail::joined(detail::part(operands, zero, c), detail::part(saved, zero, one), detail::part(operands, c, n)),
        g...);
    return detail::joined(detail::part(r, zero, c), detail::part(r, c + one, n + one));
  }
};

namespace detail {
/// One of the two functions of `while_loop`, on flat values. After the carried values both functions receive
/// (additional..., captures of the condition..., captures of the body...). This function passes on the first
/// `Additional` of these, and `Own` from `From` on.
template <class F, class Carried, class Behind, std::size_t Additional, std::size_t From, std::size_t Own>
struct flat_loop_function {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y =
        call(tree_unflatten<Carried>(std::tie(v...)), tree_unflatten<Behind, leaf_count<Carried>()>(std::tie(v...)));
    return copied(tree_leaves(y));
  }
  /// Calls the function. The elements of a `std::tuple` of carried values are passed as separate arguments.
  template <class C, class B>
  constexpr auto call(C const& carried, B const& behind) const {
    return [&]<std::size_t... A, std::size_t... O>(std::index_sequence<A...>, std::index_sequence<O...>) {
      auto const with = [&](auto const&... c) {
        return f(c..., std::get<A>(behind)..., std::get<From + O>(behind)...);
      };
      if constexpr (is_tuple<Carried>) return call_with(with, carried);
      else return with(carried);
    }(std::make_index_sequence<Additional>{}, std::make_index_sequence<Own>{});
  }

private:
  template <class... V>
  static constexpr std::tuple<V...> copied(std::tuple<V const&...> const& t) {
    return t;
  }
};
template <std::size_t Additional, std::size_t From, std::size_t Own, class Carried, class Behind, class F>
constexpr auto loop_function(F const& f) {
  return flat_loop_function<F, Carried, Behind, Additional, From, Own>{f};
}

/// Runs `while_loop` by the boxed operator. Defined in boxed_while_loop.hpp.
template <index_t MaxSteps, class W, class B, class Carried, class Behind>
auto while_loop_on_tensors(W const& condition, B const& body, Carried const& carried, Behind const& behind);
} // namespace detail

/// Repeats a step as long as cond_fn(carried..., additional...) returns true. A step replaces carried by
/// body_fn(carried..., additional...), which must return values with the structure, shapes and dtypes of carried.
/// `carried` is a tree of values; the elements of a `std::tuple` are passed as separate arguments, as in PyTorch.
/// `additional` are trees of values that are the same in every step. cond_fn returns one bool. Returns the final
/// carried values; without any step, copies of the initial ones.
///
/// Every interpreter receives the call as a whole. Under `vmap` the loop continues while any lane does; lanes that are
/// finished keep their values. Reverse mode stores the carried values of every step. On tensors it stores as many as
/// there are steps; static values need a bound, as in `while_loop<100>(...)`, which reserves memory for 100 steps. A
/// loop that needs more steps than its bound throws `step_limit_error`, on static values and on tensors. A trace
/// records one node with two functions, body and condition; `fuse` generates a loop. If the functions use values of
/// transforms, pass them as additional or by `closure(f, captured...)`.
///
/// Errors: a body that returns other metadata than it received (one message lists all differences); a condition that is
/// not one bool; on tensors also functions that write into their operands.
///
///     // Newton's iteration for the square root of a, up to rounding
///     while_loop<60>([](auto x, auto a) { return abs(x * x - a) > 1e-12 * a; },
///                    [](auto x, auto a) { return 0.5 * (x + a / x); }, a, a)
template <index_t MaxSteps = 0, class W, class B, class Carried, class... A>
constexpr auto while_loop(W const& cond_fn, B const& body_fn, Carried const& carried, A const&... additional) {
  static_assert(MaxSteps >= 0,
                "varve: while_loop: the bound on the steps is a number from 1 on; without one it is not given");
  using W_captures = std::remove_cvref_t<decltype(detail::captures_of(cond_fn))>;
  using B_captures = std::remove_cvref_t<decltype(detail::captures_of(body_fn))>;
  using behind = decltype(detail::joined(std::tuple<A...>(additional...), detail::captures_of(cond_fn),
                                         detail::captures_of(body_fn)));
  constexpr std::size_t a = sizeof...(A), w = std::tuple_size_v<W_captures>, b = std::tuple_size_v<B_captures>;
  behind const more =
      detail::joined(std::tuple<A...>(additional...), detail::captures_of(cond_fn), detail::captures_of(body_fn));
  auto const condition = detail::loop_function<a, a, w, Carried, behind>(detail::without_captures(cond_fn));
  auto const body = detail::loop_function<a, a + w, b, Carried, behind>(detail::without_captures(body_fn));
  if constexpr (detail::tree_is_dynamic<Carried>() || detail::tree_is_dynamic<behind>()) {
    return detail::while_loop_on_tensors<MaxSteps>(condition, body, carried, more);
  } else {
    auto const first = detail::flat_values(carried);
    using C = detail::count_t<static_cast<int>(std::tuple_size_v<std::remove_const_t<decltype(first)>>)>;
    static_assert(C::value > 0, "varve: while_loop: what is carried holds no value");
    using end = detail::unless_true<std::remove_const_t<decltype(condition)>>;
    scan_call<std::remove_const_t<decltype(body)>, C, detail::count_t<0>, ints<MaxSteps>, end> const loop{
        body, {}, {}, {}, false, end{condition}};
    return tree_unflatten<Carried>(loop(first, detail::flat_values(more)));
  }
}

} // namespace varve

#include <varve/loop/boxed_while_loop.hpp> // the same operator on tensors
