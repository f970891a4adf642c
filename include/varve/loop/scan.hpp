// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/scan_call.hpp>
#include <varve/loop/trees_of_loop.hpp>

namespace varve {

/// Tag of the higher-order operator `scan`.
struct scan_t {
  static constexpr auto op_name = "scan";
  static constexpr operator_class planned_as = operator_class::scan;
  static constexpr auto backward_name = "ScanBackward";
  static constexpr int given_from = 0;
  static constexpr int carried(attributes const& at) { return static_cast<int>(at[0][0]); }
  static constexpr dims lengths(attributes const& at) { return {at[0][0], at[0][1]}; }
  static constexpr hop_signature signature{
      "(GraphModule combine_fn, Tensor[] init, Tensor[] xs, bool reverse, Tensor[] additional_inputs) -> Tensor[]",
      &lengths};
};

/// How each interpreter processes a loop: it passes on another loop over more values. Static values and tensors share
/// this source, for `scan`, `map` and, except for its gradient, `while_loop`. Operands are the carried values, the
/// values walked through (dimension 0), and the captures of the step. Results are the final carried values and the
/// outputs of all steps.
template <>
struct rules<scan_t> {
  template <class I, class Op, class... V>
  static constexpr auto jvp(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... d) {
      auto const p = detail::pack(d.primal...);
      auto const t = op.tangents(d...);
      auto const c = op.carried;
      auto const x = op.scanned;
      auto const zero = c - c;
      auto const n = detail::count_of(p);
      auto const y = op.on_duals(in)(detail::part(p, zero, c), detail::part(t, zero, c), detail::part(p, c, c + x),
                                     detail::part(t, c, c + x), detail::part(p, c + x, n), detail::part(t, c + x, n));
      auto const at = c + c;
      auto const outputs = detail::half(detail::count_of(y) - at);
      auto const end = at + outputs;
      return tree_map(
          [&](auto const& u, auto const& du) {
            return op.is_differentiable(u, [&](auto const& w) { return in.close_dual(in, w, du); });
          },
          detail::joined(detail::part(y, zero, c), detail::part(y, at, end)),
          detail::joined(detail::part(y, c, at), detail::part(y, end, end + outputs)));
    }(in.open_dual(v)...);
  }
  /// Stores the carried values before each step for reverse mode.
  template <class I, class Op, class... V>
  static constexpr auto grad(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... t) {
      auto const saving = detail::scan_saving<decltype(op.f), decltype(op.carried)>{op.f, op.carried};
      auto const y = op.with(saving, op.carried, op.scanned, op.reverse)(detail::pack(t.primal...));
      auto const zero = op.carried - op.carried;
      auto const n = detail::count_of(y);
      auto const results = n - op.carried;
      return in.record_hop(in, op, detail::part(y, zero, results), detail::part(y, results, n), t...);
    }(in.open_tracked(v)...);
  }
  /// Computes the cotangents of all operands by a scan in the other direction.
  template <class Op, class S, class P, class... G>
  static constexpr auto pull(Op const& op, S const& saved, P const& operands, G const&... g) {
    auto const all = detail::pack(g...);
    auto const c = op.carried;
    auto const x = op.scanned;
    auto const zero = c - c;
    auto const n = detail::count_of(operands);
    auto const v = n - c - x;
    auto const results = detail::count_of(all);
    auto const captured = detail::part(operands, c + x, n);
    auto const sums = tree_map([](auto const& t) { return detail::constant_zeros(t); }, captured);
    using pull_t = detail::scan_pull<decltype(op.pull_fn(operands)), decltype(op.carried), decltype(op.scanned),
                                     std::remove_const_t<decltype(v)>>;
    auto const r = op.with(pull_t{op.pull_fn(operands), c, x, v}, c + v, x + results,
                           !op.reverse)(detail::part(all, zero, c), sums, saved, detail::part(operands, c, c + x),
                                        detail::part(all, c, results), captured);
    return detail::joined(detail::part(r, zero, c), detail::part(r, c + v, c + v + x), detail::part(r, c, c + v));
  }
  /// Maps all carried values. The mapped dimension of a value walked through becomes its second dimension, after the
  /// one that is walked. If lanes end at different rows, all walk to the last of these rows.
  template <class I, class Op, class... V>
  static constexpr auto vmap(I const& in, Op const& op, V const&... v) {
    return choose(
        op.ends_apart(in, v...), [&](auto const& o) { return together(in, o, v...); },
        [&](auto const& o) { return mapped(in, o, v...); }, op);
  }
  template <class I, class Op, class... V>
  static constexpr auto mode(I const& in, Op const& op, V const&... v) {
    auto const y = in.mode->process(op.reentering(in), in.open_plain(v)...);
    return tree_map([&](auto const& u) { return in.close(in, u); }, y);
  }

private:
  template <class I, class Op, class... V>
  static constexpr auto together(I const& in, Op const& op, V const&... v) {
    auto const p = detail::pack(v...);
    auto const c = op.carried;
    auto const at = c + op.scanned;
    using step = detail::ending_step<decltype(op.f), decltype(op.carried), decltype(op.scanned)>;
    return op.here().with(step{op.f, c, op.scanned}, c, op.scanned + detail::one_of(at),
                          op.reverse)(detail::part(p, c - c, at), op.row_numbers(v...),
                                      detail::pack(op.most_steps(in, v...)), detail::part(p, at, detail::count_of(p)));
  }
  template <class I, class Op, class... V>
  static constexpr auto mapped(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... o) {
      auto const y = op.mapped(in, o...);
      auto const close = [&](auto const& u) {
        return in.close_batched(in, operand<std::remove_cvref_t<decltype(u)>, std::true_type>{u, {}});
      };
      auto const c = op.carried;
      auto const zero = c - c;
      return detail::joined(tree_map(close, detail::part(y, zero, c)),
                            tree_map([&](auto const& u) { return close(transpose(u, ints<0>{}, ints<1>{})); },
                                     detail::part(y, c, detail::count_of(y))));
    }(in.open_batched(v)...);
  }
};

namespace detail {
template <int Dim, class F, class Init, class Xs>
constexpr auto scan_of_values(F const& f, Init const& init, Xs const& xs, bool reverse) {
  using captures = std::remove_cvref_t<decltype(captures_of(f))>;
  constexpr char const* who = std::is_same_v<Init, std::tuple<>> ? "map" : "scan";
  auto const front = [&] {
    if constexpr (is_steps<Xs>) return std::tuple<>{};
    else if constexpr (Dim == 0) return flat_values(xs);
    else
      return tree_map([](auto const& v) { return permute(v, on_dims(axis_to_front, shape_of(v), ints<Dim>{})); },
                      flat_values(xs));
  }();
  auto const carried = flat_values(init);
  auto const captured = flat_values(captures_of(f));
  auto const& bare = without_captures(f);
  using step = flat_step<std::remove_cvref_t<decltype(bare)>, Init, Xs, captures>;
  auto const length = [&] {
    if constexpr (is_steps<Xs>) return length_of(xs);
    else return on_dims(walked_size, shape_of(std::get<0>(front)));
  }();
  same_lengths(who, length, front);
  using C = count_t<static_cast<int>(std::tuple_size_v<decltype(carried)>)>;
  using X = count_t<static_cast<int>(std::tuple_size_v<decltype(front)>)>;
  static_assert(C::value > 0 || std::is_same_v<Init, std::tuple<>>,
                "varve: scan: init holds no value; a step must carry one at least");
  using structure = decltype(step{bare}.call(detail::joined(std::declval<tree_alike<false, decltype(carried)>>(),
                                                            std::declval<tree_alike<true, decltype(front)>>(),
                                                            std::declval<tree_alike<false, decltype(captured)>>())));
  static_assert(gives_pair<structure>,
                "varve: scan: the step must give a std::pair: what is carried on, and the outputs (or varve::none)");
  if constexpr (gives_pair<structure>) {
    auto const y = scan_call<step, C, X, std::remove_const_t<decltype(length)>>{step{bare}, {}, {}, length, reverse}(
        carried, front, captured);
    return std::pair(tree_unflatten<Init>(y),
                     outputs_from<typename structure::second_type, static_cast<std::size_t>(C::value)>(y));
  }
}

/// Runs `scan` in segments. Defined in scan_in_segments.hpp.
template <index_t Segment, class F, class Init, class Xs>
constexpr auto scan_in_segments(F const& f, Init const& init, Xs const& xs, bool reverse);
/// Runs `scan` by the boxed operator. Defined in boxed_scan.hpp.
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse);
} // namespace detail

/// A segment length for `scan`: the square root of the number of steps.
inline constexpr index_t sqrt_segments = -1;

/// Walks through dimension `Dim` of the values of the tree `xs`: `auto [carry, ys] = scan(f, init, xs)`. Each step
/// calls `f(carry, x)` with the carried values, at first `init`, and one row of each value. f returns a pair: the next
/// carried values, a tree with the structure, shapes and dtypes of `init`, and a tree of outputs (or `none`). Outputs
/// are stacked along a new dimension 0. `reverse` walks from the end; an output then has the index of its row.
/// `steps<n>` in place of `xs` only counts (`step_count(n)` on tensors).
///
/// Every interpreter receives the call as a whole. Reverse mode stores the carried values of all steps, and a scan in
/// the other direction pulls back through them. With `Segment` = k it stores only those before every k-th step, and
/// runs each segment again during the backward pass: at most n / k + k carried values are stored at once.
/// `sqrt_segments` chooses k = √n. If f uses values of transforms, pass them by `closure(f, captured...)`. A trace
/// records one node with one function; `fuse` generates a loop.
///
/// Errors: a step that returns other structures, shapes or dtypes than it received; lengths that differ; on static
/// values also a length of 0; on tensors also a step that writes into its operands.
template <int Dim = 0, index_t Segment = 0, class F, class Init, class Xs>
constexpr auto scan(F const& f, Init const& init, Xs const& xs, bool reverse = false) {
  static_assert(!std::is_same_v<Init, std::tuple<>>,
                "varve: scan: init holds no value; a step must carry one at least, or be a map");
  using captures = std::remove_cvref_t<decltype(detail::captures_of(f))>;
  if constexpr (Segment != 0 && !detail::is_steps<Xs> && Dim != 0)
    return detail::scan_in_segments<Segment>(
        f, init,
        tree_map([](auto const& v) { return permute(v, on_dims(detail::axis_to_front, shape_of(v), ints<Dim>{})); },
                 xs),
        reverse);
  else if constexpr (Segment != 0) return detail::scan_in_segments<Segment>(f, init, xs, reverse);
  else if constexpr (detail::tree_is_dynamic<Init>() || detail::tree_is_dynamic<Xs>() ||
                     detail::tree_is_dynamic<captures>())
    return detail::scan_on_tensors<Dim>(f, init, xs, reverse);
  else return detail::scan_of_values<Dim>(f, init, xs, reverse);
}

} // namespace varve

#include <varve/loop/boxed_scan.hpp> // the same operator on tensors
#include <varve/loop/scan_in_segments.hpp>
