// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interop/mpi_communicator.hpp>
#include <varve/interop/mpi_row.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace varve::mpi {

/// True if the ranks compare before each call which call they make. On by default. If operator, dtype, number of
/// elements or root rank differ, every rank throws instead of waiting forever or reading foreign memory. The check
/// costs a small message to all ranks.
inline bool check_calls = true;

namespace detail {
template <class T>
MPI_Datatype datatype() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  else if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  else if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return MPI_UINT8_T;
  else return MPI_INT64_T;
}
/// Throws on every rank if the ranks are about to make different calls.
inline void require_same_call(char const* op, MPI_Comm comm, MPI_Datatype type, std::size_t n, index_t root = 0) {
  if (!check_calls) return;
  std::uint64_t h = 14695981039346656037u; // FNV-1a
  auto const mix = [&](std::uint64_t v) {
    for (int k = 0; k < 64; k += 8) h = (h ^ (v >> k & 255)) * 1099511628211u;
  };
  for (char const* c = op; *c; ++c) mix(static_cast<std::uint64_t>(*c));
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  mix(n);
  mix(static_cast<std::uint64_t>(bytes) * 16 + (type == MPI_FLOAT || type == MPI_DOUBLE));
  mix(static_cast<std::uint64_t>(root));
  std::uint64_t both[2] = {h, ~h};
  require(MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT64_T, MPI_MAX, comm), op);
  if (both[0] == h && both[1] == ~h) return;
  refuse::with<error>(
      ("varve: mpi: rank " + std::to_string(rank_in(comm)) + " calls " + op + " of " + std::to_string(n) +
       " elements, another rank calls something else; all ranks must make the same calls in the same order")
          .c_str());
}
/// One MPI call on elements of type `T`, with its name for error messages.
template <class T>
struct call_on {
  char const* op;
  MPI_Comm comm;
  MPI_Datatype type = datatype<T>();

  call_on(char const* op_name, dims const& comm_fact) : op(op_name), comm(comm_of(comm_fact)) {}
  void require(int code) const { detail::require(code, op); }
  /// Returns the rank in an attribute, after checking it.
  int rank(dims const& fact) const {
    index_t const r = fact[0].number();
    if (r < 0 || r >= size_of(comm)) refuse::index_out_of_range(op, r, size_of(comm));
    return static_cast<int>(r);
  }
  /// Throws if the number of ranks in an attribute is not that of the communicator.
  void require_ranks(dims const& fact) const {
    if (index_t const n = size_of(comm); fact[0] != n) refuse::lengths_differ(op, fact, dims{n});
  }
  int count(std::size_t n) const {
    if (n > static_cast<std::size_t>((std::numeric_limits<int>::max)()))
      refuse::argument_is_invalid(op, "more than 2^31 - 1 elements in one message");
    return static_cast<int>(n);
  }
  void require_same(std::size_t n, index_t root = 0) const { require_same_call(op, comm, type, n, root); }
  /// Makes the same call on every rank: `call(elements of x, elements of the result, elements of one rank)`.
  template <class R, class F>
  void exchange(strided<R> const& out, strided<T const> const& x, F const& call, index_t root = 0) const {
    on_rows(out, x, [&](auto& from, auto& to) {
      require_same(from.size(), root);
      require(call(from.data(), to.data(), count((std::min)(from.size(), to.size()))));
    });
  }
};
} // namespace detail

} // namespace varve::mpi
