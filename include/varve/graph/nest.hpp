// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <limits>
#include <varve/graph/block.hpp>

namespace varve::loop {

/// Emission of loop nest `B` of program `P`: loops around one straight-line body, with constant bounds but for run-time sizes.
template <class P, int B>
struct nest {
  static constexpr body b = P::value.bodies[B];
  using T = std::conditional_t<b.type == lane::f32, float, double>;
  using V = std::conditional_t<(b.vector >= 0), kernel::batch<T>, T>;
  static constexpr int width = b.vector >= 0 ? static_cast<int>(kernel::lanes<T>) : 1;
  static constexpr int sinks = b.sink_count;
  static constexpr int inner = b.rank - 1;
  static constexpr bool vector_inside = b.vector >= 0 && b.vector == inner;
  /// Vectors computed side by side: hides the latency of accumulators and short dependency chains.
  static constexpr int side_by_side = vector_inside && b.extent[inner >= 0 ? inner : 0] >= 2 * width * b.unroll ? b.unroll : 1;
  /// Two vectors computed step by step, with accumulators in common: hides the latency of long dependency chains.
  static constexpr bool paired = vector_inside && b.paired && b.extent[inner >= 0 ? inner : 0] >= 2 * width;

  template <class Mem>
  static VARVE_INLINE void run(Mem const& mem) {
    index_t i[max_rank + sized<P>]; // behind the indices: `lanes_counted`
    for (index_t& x : i) x = 0;
    V sum[side_by_side * sinks];
    V fixed[b.fixed_count + b.kept + 1];
    level<0, lanes_in_use<width>>(mem, i, sum, fixed);
  }

private:
  template <int S>
  static constexpr sink sink_at = P::value.sinks[b.sink_first + S];
  template <int S>
  static constexpr access target = P::value.accesses[sink_at<S>.access];
  template <int S>
  static constexpr index_t target_stride = b.vector >= 0 ? target<S>.stride[b.vector >= 0 ? b.vector : 0] : 0;

  template <int L, int S>
  static constexpr bool accumulates = sink_at<S>.kind != sink_kind::store && sink_at<S>.level == L;
  template <int L>
  static constexpr bool any_accumulates = [] {
    bool any = false;
    for (int s = b.sink_first; s < b.sink_first + sinks; ++s) any = any || (P::value.sinks[s].kind != sink_kind::store && P::value.sinks[s].level == L);
    return any;
  }();
  /// Sinks in one function: many of them are several, as many steps are.
  static constexpr int at_once = sinks <= 128 ? sinks : 32;
  template <int From>
  using row = std::make_integer_sequence<int, (sinks - From < at_once ? sinks - From : at_once)>;

  template <int L, class M, class Mem>
  static VARVE_INLINE void level(Mem const& mem, index_t* i, V* sum, V* fixed) {
    if constexpr (any_accumulates<L>) start_all<L, 0>(sum);
    if constexpr (L == inner) steps<b.fixed_first, b.fixed_count, M>(mem, i, fixed, fixed);
    if constexpr (L == b.rank) {
      point<M>(mem, i, sum, fixed);
    } else if constexpr (L == b.vector && is_run_time(b.extent[L])) {
      index_t const n = number_of<b.extent[L]>(mem);
      constexpr index_t block = width * (paired ? 2 : side_by_side);
      for (index_t const blocks = n / block * block; i[L] < blocks; i[L] += block) {
        if constexpr (paired) pair<M>(mem, i, sum, fixed);
        else for_each_vector<L, M>(mem, i, sum, fixed, std::make_integer_sequence<int, side_by_side>{});
      }
      if (n >= width) {
        for (index_t at = i[L]; at < n; at += width) { // the last vector overlaps the one before
          i[L] = at + width <= n ? at : n - width;
          i[max_rank] = at - i[L];
          level<L + 1, lanes_overlapping<width>>(mem, i, sum, fixed);
        }
      } else if (n > 0) {
        i[max_rank] = n;
        level<L + 1, lanes_counted>(mem, i, sum, fixed);
      }
      i[L] = 0;
    } else if constexpr (L == b.vector) {
      constexpr index_t n = b.extent[L];
      constexpr index_t whole = n / width * width, block = width * (paired ? 2 : side_by_side), blocks = whole / block * block;
      if constexpr (blocks > 0)
        for (i[L] = 0; i[L] < blocks; i[L] += block) {
          if constexpr (paired) pair<M>(mem, i, sum, fixed);
          else for_each_vector<L, M>(mem, i, sum, fixed, std::make_integer_sequence<int, side_by_side>{});
        }
      if constexpr (block > width && blocks < whole)
        for (i[L] = blocks; i[L] < whole; i[L] += width) level<L + 1, M>(mem, i, sum, fixed);
      if constexpr (whole < n && n < width) {
        i[L] = 0;
        level<L + 1, lanes_in_use<static_cast<int>(n)>>(mem, i, sum, fixed);
      } else if constexpr (whole < n) { // the last vector overlaps the one before
        i[L] = n - width;
        level<L + 1, lanes_in_use<width, static_cast<int>(width - (n - whole))>>(mem, i, sum, fixed);
      }
      i[L] = 0;
    } else {
      for (i[L] = 0; i[L] < number_of<b.extent[L]>(mem); ++i[L]) level<L + 1, M>(mem, i, sum, fixed);
      i[L] = 0;
    }
    if constexpr (any_accumulates<L>) finish_all<L, 0, M>(mem, i, sum);
  }
  template <int L, class M, class Mem, int... U>
  static VARVE_INLINE void for_each_vector([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t* i, [[maybe_unused]] V* sum, [[maybe_unused]] V* fixed, std::integer_sequence<int, U...>) {
    index_t const start = i[L];
    ((i[L] = start + U * width, level<L + 1, M>(mem, i, sum + U * sinks, fixed)), ...);
    i[L] = start;
  }

  /// One point of the iteration space, or one vector of points.
  template <class M, class Mem>
  static VARVE_INLINE void point(Mem const& mem, index_t const* i, V* sum, V* fixed) {
    if constexpr (b.block_count > 0) {
      run_blocks_of_body<P, b.block_first, b.block_count, b.vector, M>(mem, i, fixed);
      leave_all<0, M>(mem, i, sum, fixed, fixed);
    } else {
      V now[b.step_count + 1];
      if constexpr (b.ordered) ordered<M>(mem, i, sum, fixed, now, std::make_integer_sequence<int, (b.step_count + 63) / 64>{});
      else steps<b.step_first, b.step_count, M>(mem, i, fixed, now), leave_all<0, M>(mem, i, sum, fixed, now);
    }
  }
  template <class M, class Mem>
  static VARVE_INLINE void pair(Mem const& mem, index_t const* i, V* sum, V const* fixed) {
    V now[b.step_count + 1], next[b.step_count + 1];
    index_t j[max_rank];
    for (int l = 0; l < max_rank; ++l) j[l] = i[l] + (l == inner ? width : 0);
    pair_steps<M>(mem, i, j, sum, fixed, now, next, std::make_integer_sequence<int, b.step_count>{});
    if constexpr (!b.ordered) leave_all<0, M>(mem, i, sum, fixed, now), leave_all<0, M>(mem, j, sum, fixed, next);
  }
  template <class M, class Mem, int... K>
  static VARVE_INLINE void pair_steps(Mem const& mem, index_t const* i, index_t const* j, V* sum, V const* fixed, V* now, V* next, std::integer_sequence<int, K...>) {
    ((take<K, M>(mem, i, sum, fixed, now), take<K, M>(mem, j, sum, fixed, next)), ...);
  }
  /// One step of the body: a value, or what a sink does with one.
  template <int K, class M, class Mem>
  static VARVE_INLINE void take([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, V const* fixed, V* now) {
    if constexpr (constexpr step s = P::value.steps[b.step_first + K]; s.kind == step_kind::leave) leave<s.slot, M>(mem, i, sum, fixed, now);
    else compute<P, b.step_first + K, K, b.vector, M>(mem, i, fixed, now);
  }
  template <class M, class Mem, int... C> // folds are limited to 256 elements
  static VARVE_INLINE void ordered([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now, std::integer_sequence<int, C...>) {
    (ordered_block<C * 64, M>(mem, i, sum, fixed, now, std::make_integer_sequence<int, (b.step_count - C * 64 < 64 ? b.step_count - C * 64 : 64)>{}), ...);
  }
  template <int From, class M, class Mem, int... K>
  static VARVE_INLINE void ordered_block(Mem const& mem, index_t const* i, V* sum, V const* fixed, V* now, std::integer_sequence<int, K...>) {
    (take<From + K, M>(mem, i, sum, fixed, now), ...);
  }
  template <int From, class M, class Mem>
  static VARVE_INLINE void leave_all([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now) {
    if constexpr (sinks <= at_once) leave_row<From, M>(mem, i, sum, fixed, now, row<From>{});
    else leave_apart<From, M>(mem, i, sum, fixed, now);
    if constexpr (From + at_once < sinks) leave_all<From + at_once, M>(mem, i, sum, fixed, now);
  }
  template <int From, class M, class Mem>
  static VARVE_NOINLINE void leave_apart(Mem const& mem, index_t const* i, V* sum, V const* fixed, V const* now) {
    leave_row<From, M>(mem, i, sum, fixed, now, row<From>{});
  }
  template <int From, class M, class Mem, int... S>
  static VARVE_INLINE void leave_row([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now, std::integer_sequence<int, S...>) {
    (leave<From + S, M>(mem, i, sum, fixed, now), ...);
  }
  /// Stores or accumulates one value of the body.
  template <int S, class M, class Mem>
  static VARVE_INLINE void leave(Mem const& mem, index_t const* i, V* sum, V const* fixed, V const* now) {
    constexpr sink s = sink_at<S>;
    V const& a = s.a >= 0 ? now[s.a >= 0 ? s.a : 0] : fixed[s.a >= 0 ? 0 : ~s.a];
    if constexpr (s.kind == sink_kind::store) {
      auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(mem, i);
      if constexpr (sized<P>) detail::store_sized<M, target_stride<S>>(mem, i, p, a);
      else detail::store_lanes<M, target_stride<S>>(p, a);
    } else {
      V const& c = s.product ? (s.b >= 0 ? now[s.b >= 0 ? s.b : 0] : fixed[s.b >= 0 ? 0 : ~s.b]) : a;
      if constexpr (s.level >= 0) {
        sum[S] = masked<M, (b.vector >= s.level)>(i, combine<S>(sum[S], a, c), sum[S]);
      } else {
        auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(mem, i);
        if constexpr (b.vector >= 0 && target_stride<S> == 0) {
          V const zero = V(neutral<S>());
          *p = detail::narrow<std::remove_reference_t<decltype(*p)>>(merge<S>(static_cast<T>(*p), across<S>(masked<M, true>(i, combine<S>(zero, a, c), zero))));
        } else {
          V const old = held<S, M>(mem, i, p);
          hold<S, M>(mem, i, p, masked<M, true>(i, combine<S>(old, a, c), old));
        }
      }
    }
  }
  /// What memory holds of a reduction.
  template <int S, class M, class Mem, class X>
  static VARVE_INLINE V held([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, X const* p) {
    if constexpr (sized<P>) return detail::load_sized<V, M, target_stride<S>>(mem, i, p);
    else return detail::load_lanes<V, M, target_stride<S>>(p);
  }
  template <int S, class M, class Mem, class X>
  static VARVE_INLINE void hold([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, X* p, V const& v) {
    if constexpr (sized<P>) detail::store_sized<M, target_stride<S>>(mem, i, p, v);
    else detail::store_lanes<M, target_stride<S>>(p, v);
  }
  template <int L, int From>
  static VARVE_INLINE void start_all(V* sum) {
    if constexpr (sinks <= at_once) start_row<L, From>(sum, row<From>{});
    else start_apart<L, From>(sum);
    if constexpr (From + at_once < sinks) start_all<L, From + at_once>(sum);
  }
  template <int L, int From>
  static VARVE_NOINLINE void start_apart(V* sum) {
    start_row<L, From>(sum, row<From>{});
  }
  template <int L, int From, int... S>
  static VARVE_INLINE void start_row(V* sum, std::integer_sequence<int, S...>) {
    (start<L, From + S>(sum), ...);
  }
  template <int L, int S>
  static VARVE_INLINE void start(V* sum) {
    if constexpr (accumulates<L, S>)
      for (int u = 0; u < side_by_side; ++u) sum[u * sinks + S] = V(neutral<S>());
  }
  template <int L, int From, class M, class Mem>
  static VARVE_INLINE void finish_all(Mem const& mem, index_t const* i, V* sum) {
    if constexpr (sinks <= at_once) finish_row<L, From, M>(mem, i, sum, row<From>{});
    else finish_apart<L, From, M>(mem, i, sum);
    if constexpr (From + at_once < sinks) finish_all<L, From + at_once, M>(mem, i, sum);
  }
  template <int L, int From, class M, class Mem>
  static VARVE_NOINLINE void finish_apart(Mem const& mem, index_t const* i, V* sum) {
    finish_row<L, From, M>(mem, i, sum, row<From>{});
  }
  template <int L, int From, class M, class Mem, int... S>
  static VARVE_INLINE void finish_row(Mem const& mem, index_t const* i, V* sum, std::integer_sequence<int, S...>) {
    (finish_at<L, From + S, M>(mem, i, sum), ...);
  }
  template <int L, int S, class M, class Mem>
  static VARVE_INLINE void finish_at(Mem const& mem, index_t const* i, V* sum) {
    if constexpr (accumulates<L, S>) finish<S, M>(mem, i, sum);
  }
  template <int S, class M, class Mem>
  static VARVE_INLINE void finish(Mem const& mem, index_t const* i, V* sum) {
    constexpr sink s = sink_at<S>;
    V total = sum[S];
    for (int u = 1; u < side_by_side; ++u) total = merge<S>(total, sum[u * sinks + S]);
    auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(mem, i);
    if constexpr (b.vector >= s.level) {
      T r = across<S>(total);
      if constexpr (s.accumulate) r = merge<S>(static_cast<T>(*p), r);
      *p = detail::narrow<std::remove_reference_t<decltype(*p)>>(r);
    } else {
      if constexpr (s.accumulate) total = merge<S>(held<S, M>(mem, i, p), total);
      hold<S, M>(mem, i, p, total);
    }
  }

  template <int First, int Count, class M, class Mem>
  static VARVE_INLINE void steps(Mem const& mem, index_t const* i, V const* fixed, V* now) {
    if constexpr (Count > 0) blocks<First, Count, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count + 63) / 64>{});
  }
  template <int First, int Count, class M, class Mem, int... C>
  static VARVE_INLINE void blocks([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now, std::integer_sequence<int, C...>) { // folds are limited to 256 elements
    (block<First, C * 64, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count - C * 64 < 64 ? Count - C * 64 : 64)>{}), ...);
  }
  template <int First, int From, class M, class Mem, int... K>
  static VARVE_INLINE void block([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now, std::integer_sequence<int, K...>) {
    (compute<P, First + From + K, From + K, b.vector, M>(mem, i, fixed, now), ...);
  }
  template <int S>
  static constexpr T neutral() {
    constexpr auto k = sink_at<S>.kind;
    return k == sink_kind::sum ? T(0) : k == sink_kind::greatest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  template <int S, class X>
  static VARVE_INLINE X merge(X const& r, X const& x) {
    if constexpr (sink_at<S>.kind == sink_kind::sum) return r + x;
    else if constexpr (sink_at<S>.kind == sink_kind::greatest) return detail::pick_greatest(x, r);
    else return detail::pick_least(x, r);
  }
  template <int S>
  static VARVE_INLINE V combine(V const& r, V const& a, V const& c) {
    if constexpr (sink_at<S>.product && sink_at<S>.minus) return detail::subtract_product<V>(a, c, r);
    else if constexpr (sink_at<S>.product) return detail::multiply_add<V>(a, c, r);
    else return merge<S>(r, a);
  }
  template <int S>
  static VARVE_INLINE T across(V const& x) {
    if constexpr (!kernel::is_batch<V>) return x;
    else if constexpr (sink_at<S>.kind == sink_kind::sum) return kernel::reduce_sum<T>(x);
    else return kernel::reduce_tree<T>(x, [](V const& p, V const& q) { return merge<S>(p, q); });
  }
  /// `x` in the lanes that count, `old` in the others.
  template <class M, bool Apply>
  static VARVE_INLINE V masked([[maybe_unused]] index_t const* i, V const& x, V const& old) {
    if constexpr (!kernel::is_batch<V> || !Apply || (M::live == width && M::first == 0)) {
      return x;
    } else {
      V const lane = detail::ramp<V>(T(1));
      if constexpr (M::first < 0) return kernel::select<T>(lane >= V(static_cast<T>(i[max_rank])), x, old);
      else if constexpr (M::first > 0) return kernel::select<T>(lane >= V(T(M::first)), x, old);
      else return kernel::select<T>(lane < V(T(live_lanes<M, V>(i))), x, old);
    }
  }
};

} // namespace varve::loop
