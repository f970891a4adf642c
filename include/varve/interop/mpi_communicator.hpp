// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/core/message.hpp>
#include <varve/core/type.hpp>

#if !__has_include(<mpi.h>)
#error "varve/interop/mpi.hpp needs <mpi.h>: apt install libopenmpi-dev (CMake: link MPI::MPI_CXX)"
#include <varve-needs-mpi> // is nowhere: compilation ends here
#endif
#include <mpi.h>
#include <string>

namespace varve::mpi {

/// An error of MPI, or ranks that do not make the same call.
struct error : varve::error {
  using varve::error::error;
};

namespace detail {
inline void require(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, text, &n);
  refuse::with<error>(
      ("varve: mpi: " + std::string(what) + ": " + std::string(text, static_cast<std::size_t>(n))).c_str());
}
/// Returns the communicator of an attribute; an empty attribute means the world.
inline MPI_Comm comm_of(dims const& fact) {
  return fact.n ? MPI_Comm_f2c(static_cast<MPI_Fint>(fact[0])) : MPI_COMM_WORLD;
}
inline int size_of(MPI_Comm comm) {
  int n = 1;
  require(MPI_Comm_size(comm, &n), "size");
  return n;
}
inline int rank_in(MPI_Comm comm) {
  int r = 0;
  require(MPI_Comm_rank(comm, &r), "rank");
  return r;
}
} // namespace detail

/// A group of ranks that call each other. It does not own the `MPI_Comm`, which its creator must free.
class communicator {
public:
  explicit communicator(MPI_Comm comm) : fact_{static_cast<index_t>(MPI_Comm_c2f(comm))} {}
  int rank() const { return detail::rank_in(detail::comm_of(fact_)); }
  int size() const { return detail::size_of(detail::comm_of(fact_)); }
  /// Waits until every rank has called it.
  void barrier() const { detail::require(MPI_Barrier(detail::comm_of(fact_)), "barrier"); }
  dims fact() const { return fact_; }
  dims size_fact() const { return {size()}; }

private:
  dims fact_;
};

/// All ranks of the program; the default communicator.
struct world_t {
  int rank() const { return detail::rank_in(MPI_COMM_WORLD); }
  int size() const { return detail::size_of(MPI_COMM_WORLD); }
  void barrier() const { detail::require(MPI_Barrier(MPI_COMM_WORLD), "barrier"); }
  static constexpr ints<> fact() { return {}; }
  dims size_fact() const { return {size()}; }
};
inline constexpr world_t world{};

/// The world with its size as part of the type, because shapes of static values depend on it:
/// `all_gather(x, world_of<2>)`.
template <int Ranks>
struct world_of_t : world_t {
  static constexpr ints<Ranks> size_fact() { return {}; }
};
template <int Ranks>
inline constexpr world_of_t<Ranks> world_of{};

/// A type that represents a communicator in calls.
template <class C>
concept ranks = requires(C const& c) {
  c.fact();
  c.size_fact();
};

} // namespace varve::mpi
