// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/loop_end.hpp>
#include <varve/loop/scan_step.hpp>
#include <varve/op/permute.hpp>
#include <varve/trace/region.hpp>

/// @file
/// Loops over static and traced values, as interpreters process them: `scan`, `map` and `while_loop`.
///
/// There is one loop with three names: `scan_call` here, `boxed_scan` on tensors. A loop that carries nothing is a
/// `map`; a loop with a condition (`loop_end.hpp`) is a `while_loop`. Rules are written on packs (`hop/pack.hpp`), and
/// every rule passes on another loop.
namespace varve {

struct scan_t;
struct map_t;
struct while_loop_t;

namespace detail {
template <class A>
struct rows_of;
template <class T, index_t N, index_t... D>
struct rows_of<array<T, N, D...>> {
  using row = static_value<T, ints<D...>>;
  static constexpr row get(array<T, N, D...> const& a, index_t i) {
    row r{};
    for (index_t k = 0; k < array<T, D...>::count; ++k) data_of(r)[k] = a.data[i * array<T, D...>::count + k];
    return r;
  }
  static constexpr void set(array<T, N, D...>& a, index_t i, row const& r) {
    for (index_t k = 0; k < array<T, D...>::count; ++k) a.data[i * array<T, D...>::count + k] = data_of(r)[k];
  }
};
/// The type of `N` rows, each like a value of type `V`.
template <index_t N, class V>
struct stack_of_rows {
  using type = array<V, N>;
};
template <index_t N, class T, index_t... D>
struct stack_of_rows<N, array<T, D...>> {
  using type = array<T, N, D...>;
};
/// True if a transform sees any value of a pack.
template <class Pack>
inline constexpr bool some_seen = false;
template <class... V>
inline constexpr bool some_seen<std::tuple<V...>> = top_level<V...> > 0;
} // namespace detail

/// A loop with its step. `f` maps (carried..., rows..., captured...) to the tuple (carried..., outputs...). The loop
/// has `C` carried operands, walks through `X` operands, makes at most `N` steps (0: any number) and ends as `End`
/// says. Without a condition it is a `scan`, or a `map` if it carries nothing.
template <class F, class C, class X, class N, class End = detail::after_rows<false>>
struct scan_call {
  using tag = std::conditional_t<End::open, while_loop_t, std::conditional_t<C::value == 0, map_t, scan_t>>;
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X scanned;
  [[no_unique_address]] N length;
  bool reverse = false;
  [[no_unique_address]] End end{};
  detail::used_results used{}, reached{};
  detail::used_in_steps* watch = nullptr;
  static constexpr bool end_is_open = End::open;
  static constexpr char const* name() { return tag::op_name; }

  template <class G, class C2, class X2>
  constexpr auto with(G const& g, C2 const& c, X2 const& x, bool backwards) const {
    return with(g, c, x, backwards, end);
  }
  template <class G, class C2, class X2, class E>
  constexpr auto with(G const& g, C2 const& c, X2 const& x, bool backwards, E const& e) const {
    return scan_call<G, C2, X2, N, E>{g, c, x, length, backwards, e};
  }
  // The forms in which the rules are written; tensors have their own.
  template <class I>
  constexpr auto on_duals(I const& in) const {
    using dual = detail::scan_dual<detail::dual_fn<I, F>, C, X>;
    return with(dual{{in, f}, carried, scanned}, carried + carried, scanned + scanned, reverse,
                end.on_duals(in, carried));
  }
  template <class I>
  constexpr auto reentering(I const& in) const {
    return with(detail::reentering_fn<I, F>{in, f}, carried, scanned, reverse, end.reentering(in));
  }
  /// Returns the loop that counts its steps and stores the carried values before each.
  constexpr auto saving() const {
    constexpr bool bounded = !std::is_same_v<N, ints<0>>;
    static_assert(bounded, "varve: while_loop: reverse mode keeps what is carried at every step; say how many steps "
                           "there are at most: while_loop<100>(...)");
    using step = detail::counting_step<detail::scan_saving<F, C>>;
    using room = std::conditional_t<bounded, N, ints<1000>>; // after the message the compiler goes on
    using ends = decltype(end.behind_count());
    return scan_call<step, decltype(carried + detail::count_t<1>{}), X, room, ends>{
        step{{f, carried}}, {}, {}, room{}, reverse, end.behind_count()};
  }
  /// Returns the loop that continues only in lanes in which the last captured value holds.
  constexpr auto for_lanes() const {
    using step = detail::step_without_last<F>;
    return with(step{f}, carried, scanned, reverse, end.for_lanes());
  }
  /// Returns the call at the current level (on tensors: instead of below it).
  constexpr auto const& here() const { return *this; }
  static constexpr std::tuple<index_t> no_steps() { return {0}; }
  /// Returns the loop over a number of rows that is an operand.
  constexpr auto over_count() const {
    using step = detail::step_without_count<F, C>;
    auto r = with(step{f, carried}, carried, scanned, reverse, detail::after_rows<true>{});
    r.used = used, r.watch = watch;
    return r;
  }
  /// Completes the set of results that have cotangents: later steps also supply cotangents for carried values. A run of
  /// the pullback, whose results are discarded, finds which operands are reached. In a trace it is repeated until
  /// nothing changes, because one run shows one step only.
  template <class S, class P, class... G>
  constexpr void close_used(S const& saved, P const& operands, G const&... g) {
    if constexpr (C::value > 0) {
      if (used.all()) return;
      for (bool grown = true; grown;) {
        detail::used_in_steps found(used, C::value);
        scan_call watched = *this;
        watched.watch = &found;
        (void)rules<tag>::pull(watched, saved, operands, g...);
        grown = found.all != used && found.steps == 1;
        used = found.all, reached = found.reached;
      }
    }
  }
  /// True if an operand can have a cotangent, given the used results.
  constexpr bool reaches(int operand) const {
    // the pullback of a while_loop receives the count after the carried values
    constexpr int counts = End::open ? 1 : 0;
    return operand < C::value ? used[operand] : reached[operand + counts];
  }
  template <class... V>
  constexpr auto pull_fn(std::tuple<V...> const&) const {
    return detail::pull_fn<sizeof...(V), F>{f, used, watch};
  }
  template <class... D>
  static constexpr auto tangents(D const&... d) {
    return detail::pack(detail::full_tangent(d)...);
  }
  template <class V, class A>
  static constexpr auto is_differentiable(V const& v, A const& close) {
    if constexpr (detail::static_and_not_floating<V>()) return v;
    else return close(v);
  }
  /// True if the lanes of a mapped call end at different rows.
  template <class I, class... V>
  static constexpr auto ends_apart(I const& in, V const&... v) {
    if constexpr (End::counted) return in.is_mapped(nth<C::value + X::value>(v...));
    else return std::false_type{};
  }
  /// Returns the greatest number of steps of all lanes.
  template <class I, class... V>
  constexpr auto most_steps(I const& in, V const&... v) const {
    return detail::greatest_or_zero(in.open_batched(nth<C::value + X::value>(v...)).value);
  }
  /// Returns 0, 1, ..., n - 1 as an operand to walk through.
  template <class... V>
  constexpr auto row_numbers(V const&...) const {
    array<index_t, N::to_dims()[0]> r{};
    for (index_t k = 0; k < r.count; ++k) r.data[k] = k;
    return std::tuple(r);
  }
  template <class I, class... V, class... Flag>
  constexpr auto mapped(I const& in, operand<V, Flag> const&... o) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t c = C::value, last = C::value + X::value;
      auto const value = [&]<std::size_t Q, class W, class G>(std::integral_constant<std::size_t, Q>,
                                                              operand<W, G> const& w) {
        if constexpr (Q < c) return materialize(w, in.n);
        else if constexpr (Q < last && G::value) return transpose(w.value, ints<0>{}, ints<1>{});
        else return w.value;
      };
      auto const step = [&] {
        if constexpr (End::open) return detail::keeping_step<decltype(end.condition), F, C>{end.condition, f, carried};
        else return f;
      }();
      using inner =
          detail::batched_fn<I, std::remove_const_t<decltype(step)>, std::bool_constant<(K < c) || Flag::value>...>;
      return with(inner{in, step}, carried, scanned, reverse,
                  end.template mapped<std::bool_constant<(K < c) || Flag::value>...>(in))(
          value(std::integral_constant<std::size_t, K>{}, o)...);
    }(std::index_sequence_for<V...>{});
  }

  template <class First, class... V>
  constexpr auto operator()(First const& first, V const&... v) const {
    if constexpr (detail::is_pack<First>) return detail::spread(*this, detail::joined(first, v...));
    else if constexpr (detail::some_traced<First, V...>)
      return (*this)(detail::all_traced(first, first, v...), detail::all_traced(v, first, v...)...);
    else if constexpr (top_level<First, V...> > 0) return innermost(first, v...).process(*this, first, v...);
    else if constexpr (is_proxy_base<base_of<First>> || (is_proxy_base<base_of<V>> || ...))
      return trace_loop(tag{}, *this, first, v...);
    else return run(detail::pack(detail::plain(first), detail::plain(v)...));
  }

private:
  template <class P>
  constexpr auto run(P const& p) const {
    constexpr detail::count_t<0> zero{};
    constexpr index_t n = N::to_dims()[0];
    auto now = detail::part(p, zero, carried);
    auto const walked = detail::part(p, carried, carried + scanned);
    auto const captured = detail::part(p, carried + scanned, detail::count_of(p));
    index_t steps = n;
    if constexpr (End::counted) steps = static_cast<index_t>(detail::first_of(captured));
    auto const goes_on = [&](index_t k, auto const& c) {
      if constexpr (End::open) {
        auto const go = detail::plain(detail::first_of(detail::spread(end.condition, detail::joined(c, captured))));
        static_assert(std::is_same_v<std::remove_const_t<decltype(go)>, bool>,
                      "varve: while_loop: the condition must give one bool");
        if (go && n > 0 && k == n) refuse::loop_takes_more_steps_than_its_bound(name(), n);
        return go;
      } else {
        return k < steps;
      }
    };
    auto const step = [&](auto const& c, index_t i) {
      auto const rows = tree_map([&]<class A>(A const& a) { return detail::rows_of<A>::get(a, i); }, walked);
      return tree_map(
          [](auto const& v) { return static_cast<std::remove_cvref_t<decltype(detail::plain(v))>>(detail::plain(v)); },
          detail::spread(f, detail::joined(c, rows, captured)));
    };
    using result = decltype(step(now, 0));
    constexpr bool captures = detail::some_seen<result>;
    static_assert(!captures, "varve: the function of a loop captures a value that a transform sees; pass it through "
                             "closure(f, captured...), which calls f(x..., captured...)");
    if constexpr (!captures && std::tuple_size_v<result> >= static_cast<std::size_t>(C::value)) {
      using carry = decltype(detail::part(std::declval<result>(), zero, carried));
      static_assert(std::is_same_v<carry, decltype(now)> || End::open,
                    "varve: scan: the step must give carried values of the shapes and dtypes that it took; convert "
                    "what init holds, or what the step gives");
      static_assert(std::is_same_v<carry, decltype(now)> || !End::open,
                    "varve: while_loop: the body must give carried values of the shapes and dtypes that it took; "
                    "convert what is carried at first, or what the body gives");
    }
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::tuple<typename detail::stack_of_rows<n, std::tuple_element_t<C::value + K, result>>::type...> out{};
      for (index_t k = 0; goes_on(k, now); ++k) {
        index_t const i = reverse ? steps - 1 - k : k;
        auto const y = step(now, i);
        now = detail::part(y, zero, carried);
        (detail::rows_of<std::remove_cvref_t<decltype(std::get<K>(out))>>::set(std::get<K>(out), i,
                                                                               std::get<C::value + K>(y)),
         ...);
      }
      return detail::joined(now, out);
    }(std::make_index_sequence<std::tuple_size_v<result> - C::value>{});
  }
};
template <class F, class C, class X, class N, class End>
inline constexpr bool is_hop<scan_call<F, C, X, N, End>> = true;

} // namespace varve
