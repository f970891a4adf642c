// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/step.hpp>

#include <array>
#include <bit>
#include <limits>

/// @file
/// Partial results of the reductions of a loop body: one per lane in registers, and as numbers. Functions depend on
/// kind and lane type, not on the sink, since a program may have a thousand sinks.
namespace varve::fusion {

/// Returns the neutral element of a reduction.
template <sink_kind Kind, class T>
constexpr T neutral() {
  using limits = std::numeric_limits<T>;
  if (Kind == sink_kind::sum || Kind == sink_kind::count) return T(0);
  if constexpr (!limits::has_infinity) return Kind == sink_kind::greatest ? limits::lowest() : (limits::max)();
  else return Kind == sink_kind::greatest ? -limits::infinity() : limits::infinity();
}
/// Adds 32-bit integers that are stored in the bits of floats. The second is first shifted right by `lowest` bits.
template <class V>
VARVE_PART V sum_of_bits(V const& r, V const& x, int lowest = 0) {
  using bits = std::conditional_t<kernel::is_batch<V>, kernel::detail::beside_t<std::int32_t, float>, std::int32_t>;
  return std::bit_cast<V>(std::bit_cast<bits>(r) + (std::bit_cast<bits>(x) >> lowest));
}
/// Combines two partial results.
template <sink_kind Kind, class X>
VARVE_PART X merged(X const& r, X const& x) {
  if constexpr (Kind == sink_kind::count && std::is_same_v<kernel::element_t<X>, float>) return sum_of_bits(r, x);
  else if constexpr (Kind == sink_kind::sum && std::is_integral_v<X>) return kernel::add(r, x);
  else if constexpr (Kind == sink_kind::sum || Kind == sink_kind::count) return r + x;
  else if constexpr (Kind == sink_kind::greatest) return detail::pick_greatest(x, r);
  else return detail::pick_least(x, r);
}
/// Adds one more value, or product of two values, to a partial result.
template <sink_kind Kind, bool Product, bool Minus, class V>
VARVE_PART V with_one_more(V const& r, V const& a, V const& c) {
  if constexpr (Kind == sink_kind::count) return sum_of_bits(r, Product ? V(a * c) : a, 29); // 1.0f is 2^29 and more
  else if constexpr (Product && Minus) return detail::subtract_product<V>(a, c, r);
  else if constexpr (Product) return detail::multiply_add<V>(a, c, r);
  else return merged<Kind>(r, a);
}
/// Returns the counts in the lanes of a partial result of kind `count`.
template <class V>
VARVE_PART auto counts_of(V const& x) {
  return std::bit_cast<std::array<std::int32_t, sizeof(V) / 4>>(x);
}
/// Combines the lanes of a partial result into one number.
template <sink_kind Kind, class V>
VARVE_PART auto across(V const& x) {
  if constexpr (Kind == sink_kind::count) {
    std::int64_t n = 0;
    for (std::int32_t const one : counts_of(x)) n += one;
    return n;
  } else if constexpr (!kernel::is_batch<V>) return x;
  else if constexpr (Kind == sink_kind::sum) return kernel::reduce_sum<kernel::element_t<V>>(x);
  else return kernel::reduce_tree<kernel::element_t<V>>(x, [](V const& p, V const& q) { return merged<Kind>(p, q); });
}
/// Returns the kind as which a sink of body `B` is emitted.
template <class P, int B>
constexpr sink_kind kind_of(sink const& s) {
  constexpr body b = P::value.bodies[B];
  return counts(b, s, P::value.buffers[P::value.accesses[s.access].buffer].type) ? sink_kind::count : s.kind;
}
template <class P, int B>
inline constexpr bool any_counts = [] {
  constexpr body b = P::value.bodies[B];
  for (int s = b.sink_first; s < b.sink_first + b.sink_count; ++s)
    if (kind_of<P, B>(P::value.sinks[s]) == sink_kind::count) return true;
  return false;
}();
/// The type of a number that one part of a loop sums when threads share it. It is double for counts, since floats count
/// up to 2^24 only.
template <class P, int B, class T>
using number_of_part = std::conditional_t<any_counts<P, B>, double, T>;
/// Returns `x` in the lanes in use, `old` in the others.
template <class M, bool Apply, class V>
VARVE_PART V masked([[maybe_unused]] index_t const* i, V const& x, [[maybe_unused]] V const& old) {
  using T = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V> || !Apply || (M::live == static_cast<int>(kernel::lanes<T>) && M::first == 0)) {
    return x;
  } else {
    V const lane = detail::ramp<V>(T(1));
    if constexpr (M::first < 0) return kernel::select<T>(lane >= V(static_cast<T>(i[max_rank])), x, old);
    else if constexpr (M::first > 0) return kernel::select<T>(lane >= V(T(M::first)), x, old);
    else return kernel::select<T>(lane < V(T(live_lanes<M, V>(i))), x, old);
  }
}

/// Stores the counts of the lanes in use, or adds them to the elements in memory.
template <class M, bool Accumulate, class X, class V>
VARVE_PART void leave_counts([[maybe_unused]] index_t const* i, X* p, index_t stride, V const& x) {
  auto const n = counts_of(x);
  for (index_t l = M::first < 0 ? i[max_rank] : M::first; l < live_lanes<M, V>(i); ++l)
    p[l * stride] = static_cast<X>((Accumulate ? p[l * stride] : X(0)) + n[static_cast<std::size_t>(l)]);
}

/// The sinks of body `B` of program `P` as a table, for many sinks that are `alike`. A loop over the table at run time
/// saves the compile time of a function for each sink. Alike sinks sum (or compare) values over the whole nest, each
/// into its own temporary.
template <class P, int B>
struct sink_table {
  static constexpr body b = P::value.bodies[B];
  static constexpr sink first = P::value.sinks[b.sink_first];
  static constexpr sink_kind kind = kind_of<P, B>(first);
  static constexpr dtype type = P::value.buffers[P::value.accesses[first.access].buffer].type;
  int slot[b.sink_count], other[b.sink_count]; // the values, or the factors of the summed products
  index_t byte[b.sink_count];                  // in the arena

  static consteval bool alike() {
    if (first.kind == sink_kind::store || first.level != 0) return false;
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      sink const& s = P::value.sinks[k];
      access const& a = P::value.accesses[s.access];
      buffer const& to = P::value.buffers[a.buffer];
      if (s.kind != first.kind || kind_of<P, B>(s) != kind || s.product != first.product || s.minus != first.minus ||
          s.level != 0 || s.accumulate != first.accumulate || to.where != place::arena || to.type != type ||
          is_run_time(a.offset))
        return false;
    }
    return true;
  }
  consteval sink_table() : slot{}, other{}, byte{} {
    for (int k = 0; k < b.sink_count; ++k) {
      sink const& s = P::value.sinks[b.sink_first + k];
      access const& a = P::value.accesses[s.access];
      slot[k] = s.a, other[k] = s.product ? s.b : s.a,
      byte[k] = P::value.buffers[a.buffer].number + a.offset * itemsize(type);
    }
  }
};
template <class P, int B>
inline constexpr sink_table<P, B> table_of_sinks{};

} // namespace varve::fusion
