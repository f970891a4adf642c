// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/sized_program.hpp>

#include <utility>

/// @file
/// Where a program's buffers are while it runs: every index and stride is a constant. `P` is a type with `static
/// constexpr auto value`, a `static_program`.
namespace varve::fusion {

/// The addresses of arguments, results and the arena while a program runs.
template <int Arguments, int Results>
struct memory {
  void const* argument[Arguments ? Arguments : 1];
  void* result[Results ? Results : 1];
  std::byte* arena;
};

/// The elements of a constant of program `P`, with their type, as read-only data of the executable.
template <class P, int Buffer>
struct table {
  static constexpr buffer b = P::value.buffers[Buffer];
  type_of<b.type> elements[b.elements > 0 ? b.elements : 1];
  constexpr table() : elements{} {
    for (index_t k = 0; k < b.elements; ++k)
      elements[k] = static_cast<type_of<b.type>>(P::value.constants[b.number + k]);
  }
};
template <class P, int Buffer>
alignas(64) inline constexpr table<P, Buffer> table_of{};

namespace detail {
/// Returns the address of a buffer: of the arena at byte `number`, or of the `number`-th argument or result.
template <place Where, class T>
VARVE_PART auto* base(auto const& mem, index_t number) {
  if constexpr (Where == place::arena) return reinterpret_cast<T*>(mem.arena + number);
  else if constexpr (Where == place::argument) return static_cast<T const*>(mem.argument[number]);
  else return static_cast<T*>(mem.result[number]);
}
} // namespace detail

/// Returns the first element of a buffer, with its type.
template <class P, int Buffer>
VARVE_PART auto* address(auto const& mem) {
  constexpr buffer b = P::value.buffers[Buffer];
  using T = type_of<b.type>;
  if constexpr (b.where == place::constant) return static_cast<T const*>(table_of<P, Buffer>.elements);
  else if constexpr (b.where == place::scratch) return reinterpret_cast<T*>(mem.scratch + mem.piece[b.number]);
  else return detail::base<b.where, T>(mem, b.number);
}

namespace detail {
/// Returns the number of loops from the outermost to the innermost one on which an access of these strides depends.
constexpr int depth_of(index_t const* stride) {
  int n = max_rank;
  while (n > 0 && stride[n - 1] == 0) --n;
  return n;
}
template <class P, int A, int... L>
VARVE_PART index_t position([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i,
                            std::integer_sequence<int, L...>) {
  constexpr access a = P::value.accesses[A];
  if constexpr (sized<P>)
    return (number_of<a.offset>(mem) + ... + (a.stride[L] != 0 ? number_of<a.stride[L]>(mem) * i[L] : 0));
  else return (a.offset + ... + (a.stride[L] != 0 ? a.stride[L] * i[L] : 0));
}
template <class P, int A>
VARVE_PART index_t position(auto const& mem, index_t const* i) {
  return position<P, A>(mem, i, std::make_integer_sequence<int, depth_of(P::value.accesses[A].stride)>{});
}
} // namespace detail

} // namespace varve::fusion
