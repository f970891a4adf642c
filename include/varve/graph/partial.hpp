// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <limits>
#include <varve/graph/emit.hpp>

/// @file
/// Partial results of the reductions of a loop body: in registers, one in each lane, and as numbers. By kind and lane type, not by sink: a program may have a thousand sinks.
namespace varve::loop {

/// What a reduction begins with.
template <sink_kind Kind, class T>
constexpr T neutral() {
  using limits = std::numeric_limits<T>;
  if (Kind == sink_kind::sum) return T(0);
  if constexpr (!limits::has_infinity) return Kind == sink_kind::greatest ? limits::lowest() : limits::max();
  else return Kind == sink_kind::greatest ? -limits::infinity() : limits::infinity();
}
/// Two partial results in one.
template <sink_kind Kind, class X>
VARVE_INLINE X merged(X const& r, X const& x) {
  if constexpr (Kind == sink_kind::sum) return r + x;
  else if constexpr (Kind == sink_kind::greatest) return detail::pick_greatest(x, r);
  else return detail::pick_least(x, r);
}
/// A partial result and one more value, or product of two.
template <sink_kind Kind, bool Product, bool Minus, class V>
VARVE_INLINE V with_one_more(V const& r, V const& a, V const& c) {
  if constexpr (Product && Minus) return detail::subtract_product<V>(a, c, r);
  else if constexpr (Product) return detail::multiply_add<V>(a, c, r);
  else return merged<Kind>(r, a);
}
/// The lanes of a partial result as one number.
template <sink_kind Kind, class V>
VARVE_INLINE auto across(V const& x) {
  if constexpr (!kernel::is_batch<V>) return x;
  else if constexpr (Kind == sink_kind::sum) return kernel::reduce_sum<kernel::element_t<V>>(x);
  else return kernel::reduce_tree<kernel::element_t<V>>(x, [](V const& p, V const& q) { return merged<Kind>(p, q); });
}
/// `x` in the lanes that count, `old` in the others.
template <class M, bool Apply, class V>
VARVE_INLINE V masked([[maybe_unused]] index_t const* i, V const& x, [[maybe_unused]] V const& old) {
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

/// The sinks of body `B` of program `P` as a table, for walking through many that are `alike` at run time, where a function for each would take the compiler's time: values that are all
/// summed up (or compared) over the whole nest, each into a temporary of its own.
template <class P, int B>
struct sink_table {
  static constexpr body b = P::value.bodies[B];
  static constexpr sink first = P::value.sinks[b.sink_first];
  static constexpr dtype type = P::value.buffers[P::value.accesses[first.access].buffer].type;
  int slot[b.sink_count], other[b.sink_count]; // the values, or the factors of what is summed up
  index_t byte[b.sink_count]; // in the arena

  static consteval bool alike() {
    if (first.kind == sink_kind::store || first.level != 0) return false;
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k) {
      sink const& s = P::value.sinks[k];
      access const& a = P::value.accesses[s.access];
      buffer const& to = P::value.buffers[a.buffer];
      if (s.kind != first.kind || s.product != first.product || s.minus != first.minus || s.level != 0 || s.accumulate != first.accumulate || to.where != place::arena || to.type != type || is_run_time(a.offset)) return false;
    }
    return true;
  }
  consteval sink_table() : slot{}, other{}, byte{} {
    for (int k = 0; k < b.sink_count; ++k) {
      sink const& s = P::value.sinks[b.sink_first + k];
      access const& a = P::value.accesses[s.access];
      slot[k] = s.a, other[k] = s.product ? s.b : s.a, byte[k] = P::value.buffers[a.buffer].number + a.offset * itemsize(type);
    }
  }
};
template <class P, int B>
inline constexpr sink_table<P, B> table_of_sinks{};

} // namespace varve::loop
