// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/accumulators.hpp>
#include <varve/emit/blocks.hpp>
#include <varve/plan/threads.hpp>

/// @file
/// Loops run over SIMD registers of `float` or `double`, or of `int32` or `int64` if there are only integers. Lane
/// kernels are called through constant function pointers of `op_handle` and inline completely. All are `VARVE_INLINE`,
/// even a `where` of a few instructions. A translation unit with many of them would otherwise call them, and a call
/// makes all SIMD registers unavailable. Kernels of a program's own operators may be `VARVE_INLINE` too. The code
/// around them is `VARVE_PART` of a `VARVE_WHOLE` (`config.hpp`).
namespace varve::fusion {

/// The emitted form of loop nest `B` of program `P`: loops around one straight-line body. Bounds are constants, except
/// run-time sizes.
template <class P, int B>
struct nest {
  static constexpr body b = P::value.bodies[B];
  using T = lane_t<b.type>;
  using V = std::conditional_t<(b.vector >= 0), kernel::batch<T>, T>;
  static constexpr int width = b.vector >= 0 ? static_cast<int>(kernel::lanes<T>) : 1;
  static constexpr int sinks = b.sink_count;
  static constexpr int inner = b.rank - 1;
  static constexpr bool vector_inside = b.vector >= 0 && b.vector == inner;
  /// Vectors computed side by side, which hides the latency of accumulators and short dependency chains.
  static constexpr int side_by_side =
      vector_inside && b.extent[inner >= 0 ? inner : 0] >= 2 * width * b.unroll ? b.unroll : 1;
  /// True if two vectors are computed step by step with common accumulators, which hides the latency of long dependency
  /// chains.
  static constexpr bool paired = vector_inside && b.paired && b.extent[inner >= 0 ? inner : 0] >= 2 * width;
  /// True if threads share the outermost loop.
  static constexpr bool shared = threaded && can_share<P>(b);
  template <class Mem>
  static VARVE_PART void run(Mem const& mem) {
    if constexpr (shared) {
      run_in_parts(mem, std::make_integer_sequence<int, b.rank>{});
    } else {
      index_t i[max_rank + sized<P>]; // after the indices: a number for `lanes_counted`
      for (index_t& x : i) x = 0;
      V sum[side_by_side * sinks];
      V fixed[b.fixed_count + b.kept + 1];
      level<0, lanes_in_use<width>>(mem, i, sum, fixed);
    }
  }

private:
  template <int S>
  static constexpr sink sink_at = P::value.sinks[b.sink_first + S];
  template <int S>
  static constexpr sink_kind kind_at = kind_of<P, B>(sink_at<S>);
  template <int S>
  static constexpr access target = P::value.accesses[sink_at<S>.access];
  template <int S>
  static constexpr index_t target_stride = b.vector >= 0 ? target<S>.stride[b.vector >= 0 ? b.vector : 0] : 0;
  template <int L, int S>
  static constexpr bool accumulates = sink_at<S>.kind != sink_kind::store && sink_at<S>.level == L;
  template <int L>
  static constexpr bool any_accumulates = [] {
    bool any = false;
    for (int s = b.sink_first; s < b.sink_first + sinks; ++s)
      any = any || (P::value.sinks[s].kind != sink_kind::store && P::value.sinks[s].level == L);
    return any;
  }();
  /// What happens to sinks: registers receive their neutral elements, values of the body are stored, or registers
  /// become results.
  enum class act : unsigned char { start, leave, finish };
  /// The number of sinks in one function. Many sinks are split into several functions, as many steps are. Sinks of a
  /// body with blocks read their values from memory in any case.
  static constexpr int at_once = sinks <= (b.block_count > 0 ? 32 : 128) ? sinks : 32;
  static constexpr bool alike = [] {
    if constexpr (sinks > at_once) return sink_table<P, B>::alike();
    else return false;
  }();
  template <int From>
  using row = std::make_integer_sequence<int, (sinks - From < at_once ? sinks - From : at_once)>;

  /// The type of the sums of a part of the outermost loop; sums are combined in the order of the parts.
  using number = number_of_part<P, B, T>;
  template <class Mem, int... L>
  static VARVE_PART void run_in_parts(Mem const& mem, std::integer_sequence<int, L...>) {
    loop_parts const parts(number_of<b.extent[0]>(mem), b.vector == 0 ? width * (paired ? 2 : side_by_side) : 1,
                           (number_of<b.extent[L]>(mem) * ...));
    constexpr bool sums = any_accumulates<0>;
    number partial[sums ? loop_parts::most : 1][sinks];
    for_each_part(parts.count,
                  [&](int k) { run_part(mem, parts.begin(k), parts.begin(k + 1), partial[sums ? k : 0], row<0>{}); });
    if constexpr (sums) put_together(mem, partial, parts.count, row<0>{});
  }
  static constexpr int part_begin = max_rank + sized<P>, part_end = part_begin + 1;
  template <class Mem, int... S>
  static VARVE_NOINLINE VARVE_WHOLE void run_part(Mem const& mem, index_t begin, index_t end,
                                                  [[maybe_unused]] number* partial, std::integer_sequence<int, S...>) {
    Mem const own = mem; // a private copy, so that addresses are read once
    index_t i[part_end + 1];
    for (index_t& x : i) x = 0;
    i[part_begin] = begin, i[part_end] = end;
    V sum[side_by_side * sinks];
    V fixed[b.fixed_count + b.kept + 1];
    level<0, lanes_in_use<width>>(own, i, sum, fixed);
    ((accumulates<0, S> ? void(partial[S] = static_cast<number>(across<kind_at<S>>(total<S>(sum)))) : void()), ...);
  }
  template <class Mem, int... S>
  static VARVE_PART void put_together(Mem const& mem, number (*partial)[sinks], int parts,
                                      std::integer_sequence<int, S...>) {
    constexpr index_t i[max_rank]{};
    for (int k = 1; k < parts; ++k)
      ((partial[0][S] = accumulates<0, S> ? merged<kind_at<S>>(partial[0][S], partial[k][S]) : number(0)), ...);
    ((accumulates<0, S>
          ? leave_number<S>(address<P, target<S>.buffer>(mem) + detail::position<P, sink_at<S>.access>(mem, i),
                            partial[0][S])
          : void()),
     ...);
  }
  /// Returns where this part of loop `L` begins; `ends` returns where it ends, at most `limit`.
  template <int L>
  static VARVE_PART index_t begins(index_t const* i) {
    return shared && L == 0 ? i[part_begin] : 0;
  }
  template <int L>
  static VARVE_PART index_t ends(index_t const* i, index_t limit) {
    return shared && L == 0 && i[part_end] < limit ? i[part_end] : limit;
  }

  template <int L, class M, class Mem>
  static VARVE_PART void level(Mem const& mem, index_t* i, V* sum, V* fixed) {
    if constexpr (any_accumulates<L>) all_sinks<act::start, L, 0, M>(mem, i, sum, fixed, fixed);
    if constexpr (L == inner) run_fixed_steps<P, B, M>(mem, i, fixed);
    if constexpr (L == b.rank) {
      point<M>(mem, i, sum, fixed);
    } else if constexpr (L == b.vector && is_run_time(b.extent[L])) {
      index_t const n = number_of<b.extent[L]>(mem);
      constexpr index_t block = width * (paired ? 2 : side_by_side);
      i[L] = begins<L>(i);
      for (index_t const blocks = ends<L>(i, n / block * block); i[L] < blocks; i[L] += block) {
        if constexpr (paired) pair<M>(mem, i, sum, fixed);
        else for_each_vector<L, M>(mem, i, sum, fixed, std::make_integer_sequence<int, side_by_side>{});
      }
      if (ends<L>(i, n) < n) {
        // the remainder belongs to the last part
      } else if (n >= width) {
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
      constexpr index_t whole = n / width * width, block = width * (paired ? 2 : side_by_side),
                        blocks = whole / block * block;
      if constexpr (blocks > 0)
        for (i[L] = begins<L>(i); i[L] < ends<L>(i, blocks); i[L] += block) {
          if constexpr (paired) pair<M>(mem, i, sum, fixed);
          else for_each_vector<L, M>(mem, i, sum, fixed, std::make_integer_sequence<int, side_by_side>{});
        }
      if (ends<L>(i, n) == n) {
        if constexpr (block > width && blocks < whole)
          for (i[L] = blocks; i[L] < whole; i[L] += width) level<L + 1, M>(mem, i, sum, fixed);
        if constexpr (whole < n && n < width) {
          i[L] = 0;
          level<L + 1, lanes_in_use<static_cast<int>(n)>>(mem, i, sum, fixed);
        } else if constexpr (whole < n) { // the last vector overlaps the one before
          i[L] = n - width;
          level<L + 1, lanes_in_use<width, static_cast<int>(width - (n - whole))>>(mem, i, sum, fixed);
        }
      }
      i[L] = 0;
    } else {
      for (i[L] = begins<L>(i); i[L] < ends<L>(i, number_of<b.extent[L]>(mem)); ++i[L])
        level<L + 1, M>(mem, i, sum, fixed);
      i[L] = 0;
    }
    if constexpr (any_accumulates<L> && !(shared && L == 0)) all_sinks<act::finish, L, 0, M>(mem, i, sum, fixed, fixed);
  }
  template <int L, class M, class Mem, int... U>
  static VARVE_PART void for_each_vector([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t* i,
                                         [[maybe_unused]] V* sum, [[maybe_unused]] V* fixed,
                                         std::integer_sequence<int, U...>) {
    index_t const start = i[L];
    ((i[L] = start + U * width, level<L + 1, M>(mem, i, sum + U * sinks, fixed)), ...);
    i[L] = start;
  }
  /// One vector of points, or one point: its indices and the values of its steps.
  struct vector_at {
    index_t const* i;
    V* now;
  };
  using rows_of_steps = std::make_integer_sequence<int, (b.step_count + 63) / 64>; // folds are limited to 256
  template <class M, class Mem>
  static VARVE_PART void point(Mem const& mem, index_t const* i, V* sum, V* fixed) {
    if constexpr (b.block_count > 0) {
      run_blocks_of_body<P, b.block_first, b.block_count, b.vector, M>(mem, i, fixed);
      all_sinks<act::leave, 0, 0, M>(mem, i, sum, fixed, fixed);
    } else {
      V now[b.step_count + 1];
      if constexpr (b.ordered) step_by_step<M>(rows_of_steps{}, mem, sum, fixed, vector_at{i, now});
      else
        run_steps<P, b.step_first, b.step_count, b.vector, M>(mem, i, fixed, now),
            all_sinks<act::leave, 0, 0, M>(mem, i, sum, fixed, now);
    }
  }
  template <class M, class Mem>
  static VARVE_PART void pair(Mem const& mem, index_t const* i, V* sum, V* fixed) {
    V now[b.step_count + 1], next[b.step_count + 1];
    index_t j[max_rank];
    for (int l = 0; l < max_rank; ++l) j[l] = i[l] + (l == inner ? width : 0);
    step_by_step<M>(rows_of_steps{}, mem, sum, fixed, vector_at{i, now}, vector_at{j, next});
    if constexpr (!b.ordered)
      all_sinks<act::leave, 0, 0, M>(mem, i, sum, fixed, now), all_sinks<act::leave, 0, 0, M>(mem, j, sum, fixed, next);
  }
  template <class M, int... C, class... At>
  static VARVE_PART void step_by_step(std::integer_sequence<int, C...>, [[maybe_unused]] auto const& mem,
                                      [[maybe_unused]] V* sum, [[maybe_unused]] V* fixed, [[maybe_unused]] At... at) {
    (row_of_steps<C * 64, M>(
         std::make_integer_sequence<int, (b.step_count - C * 64 < 64 ? b.step_count - C * 64 : 64)>{}, mem, sum, fixed,
         at...),
     ...);
  }
  template <int From, class M, int... K, class... At>
  static VARVE_PART void row_of_steps(std::integer_sequence<int, K...>, auto const& mem, V* sum, V* fixed, At... at) {
    (take<From + K, M>(mem, sum, fixed, at...), ...);
  }
  /// Executes one step of the body, for one vector or two: computes a value, or lets a sink take one.
  template <int K, class M, class Mem, class... At>
  static VARVE_PART void take([[maybe_unused]] Mem const& mem, [[maybe_unused]] V* sum, V* fixed, At... at) {
    if constexpr (constexpr step s = P::value.steps[b.step_first + K]; s.kind == step_kind::leave)
      (leave<s.slot, M>(mem, at.i, sum, fixed, at.now), ...);
    else
      (compute<detail::form_of<P>(b.step_first + K), P, b.vector, M>(
           mem, at.i, fixed, at.now, detail::places_of<P, b.step_first, 0, b.step_count>.at[K]),
       ...);
  }
  template <act A, int L, int From, class M, class Mem>
  static VARVE_PART void all_sinks([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i,
                                   [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed,
                                   [[maybe_unused]] V const* now) {
    if constexpr (alike) {
      sinks_alike<A, M>(mem, i, sum, fixed, now);
    } else {
      if constexpr (sinks <= at_once) some_sinks<A, L, From, M>(mem, i, sum, fixed, now, row<From>{});
      else sinks_apart<A, L, From, M>(mem, i, sum, fixed, now);
      if constexpr (From + at_once < sinks) all_sinks<A, L, From + at_once, M>(mem, i, sum, fixed, now);
    }
  }
  template <act A, class M, class Mem>
  static VARVE_NOINLINE VARVE_WHOLE void sinks_alike([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i,
                                                     V* sum, [[maybe_unused]] V const* fixed,
                                                     [[maybe_unused]] V const* now) {
    using table = sink_table<P, B>;
    for (int s = 0; s < sinks; ++s) {
      if constexpr (A == act::start) {
        for (int u = 0; u < side_by_side; ++u) sum[u * sinks + s] = V(neutral<table::kind, T>());
      } else if constexpr (A == act::leave) {
        V const &x = detail::pick(fixed, now, table_of_sinks<P, B>.slot[s]),
                &y = detail::pick(fixed, now, table_of_sinks<P, B>.other[s]);
        sum[s] = masked<M, true>(i, with_one_more<table::kind, table::first.product, table::first.minus>(sum[s], x, y),
                                 sum[s]);
      } else {
        V all = sum[s];
        for (int u = 1; u < side_by_side; ++u) all = merged<table::kind>(all, sum[u * sinks + s]);
        leave_number<0>(reinterpret_cast<type_of<table::type>*>(mem.arena + table_of_sinks<P, B>.byte[s]),
                        across<table::kind>(all));
      }
    }
  }
  template <act A, int L, int From, class M, class Mem>
  static VARVE_NOINLINE VARVE_WHOLE void sinks_apart(Mem const& mem, index_t const* i, V* sum, V const* fixed,
                                                     V const* now) {
    some_sinks<A, L, From, M>(mem, i, sum, fixed, now, row<From>{});
  }
  template <act A, int L, int From, class M, class Mem, int... S>
  static VARVE_PART void some_sinks([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i,
                                    [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed,
                                    [[maybe_unused]] V const* now, std::integer_sequence<int, S...>) {
    if constexpr (A == act::leave) (leave<From + S, M>(mem, i, sum, fixed, now), ...);
    else if constexpr (A == act::start) (start<L, From + S>(sum), ...);
    else (finish<L, From + S, M>(mem, i, sum), ...);
  }
  /// Stores or accumulates one value of the body.
  template <int S, class M, class Mem>
  static VARVE_PART void leave(Mem const& mem, index_t const* i, V* sum, V const* fixed, V const* now) {
    constexpr sink s = sink_at<S>;
    V const& a = s.a >= 0 ? now[s.a >= 0 ? s.a : 0] : fixed[s.a >= 0 ? 0 : ~s.a];
    if constexpr (s.kind == sink_kind::store) {
      hold<S, M>(mem, i, address<P, target<S>.buffer>(mem) + detail::position<P, sink_at<S>.access>(mem, i), a);
    } else {
      V const& c = s.product ? (s.b >= 0 ? now[s.b >= 0 ? s.b : 0] : fixed[s.b >= 0 ? 0 : ~s.b]) : a;
      if constexpr (s.level >= 0) {
        sum[S] =
            masked<M, (b.vector >= s.level)>(i, with_one_more<kind_at<S>, s.product, s.minus>(sum[S], a, c), sum[S]);
      } else {
        auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, sink_at<S>.access>(mem, i);
        if constexpr (b.vector >= 0 && target_stride<S> == 0) {
          V const zero = V(neutral<s.kind, T>());
          leave_number<S>(
              p, across<s.kind>(masked<M, true>(i, with_one_more<s.kind, s.product, s.minus>(zero, a, c), zero)));
        } else {
          V const old = held<S, M>(mem, i, p);
          hold<S, M>(mem, i, p, masked<M, true>(i, with_one_more<s.kind, s.product, s.minus>(old, a, c), old));
        }
      }
    }
  }
  /// Loads the partial result of a reduction from memory.
  template <int S, class M, class Mem, class X>
  static VARVE_PART V held([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, X const* p) {
    if constexpr (sized<P>) return detail::load_sized<V, M, target_stride<S>>(mem, i, p);
    else return detail::load_lanes<V, M, target_stride<S>>(p);
  }
  template <int S, class M, class Mem, class X>
  static VARVE_PART void hold([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, X* p, V const& v) {
    if constexpr (sized<P>) detail::store_sized<M, target_stride<S>, sink_at<S>.kind == sink_kind::store>(mem, i, p, v);
    else detail::store_lanes<M, target_stride<S>, sink_at<S>.kind == sink_kind::store>(p, v);
  }
  template <int L, int S>
  static VARVE_PART void start([[maybe_unused]] V* sum) {
    if constexpr (accumulates<L, S>)
      for (int u = 0; u < side_by_side; ++u) sum[u * sinks + S] = V(neutral<kind_at<S>, T>());
  }
  template <int L, int S, class M, class Mem>
  static VARVE_PART void finish([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i,
                                [[maybe_unused]] V const* sum) {
    constexpr sink s = sink_at<S>;
    if constexpr (accumulates<L, S>) {
      V const r = total<S>(sum);
      auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, sink_at<S>.access>(mem, i);
      if constexpr (b.vector >= s.level) leave_number<S>(p, across<kind_at<S>>(r));
      else if constexpr (kind_at<S> == sink_kind::count)
        leave_counts<M, s.accumulate>(i, p, number_of<target_stride<S>>(mem), r);
      else if constexpr (s.accumulate) hold<S, M>(mem, i, p, merged<s.kind>(held<S, M>(mem, i, p), r));
      else hold<S, M>(mem, i, p, r);
    }
  }
  /// Combines the sums of the vectors that are computed side by side.
  template <int S>
  static VARVE_PART V total(V const* sum) {
    V r = sum[S];
    for (int u = 1; u < side_by_side; ++u) r = merged<kind_at<S>>(r, sum[u * sinks + S]);
    return r;
  }
  /// Writes the final number of a reduction, or adds it to the number in memory.
  template <int S, class X, class R>
  static VARVE_PART void leave_number(X* p, R r) {
    if constexpr (sink_at<S>.accumulate) r = merged<sink_at<S>.kind>(static_cast<R>(*p), r);
    *p = kernel::wrapped<X>(r);
  }
};

} // namespace varve::fusion
