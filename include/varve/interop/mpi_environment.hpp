// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interop/mpi_communicator.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <type_traits>

namespace varve::mpi {

/// Initializes MPI and finalizes it at the end of the scope. If an exception leaves the scope, it aborts the other
/// ranks too, because they may be waiting for this one.
class environment {
public:
  environment(int& argc, char**& argv) : at_work_(std::uncaught_exceptions()) {
    int level = 0;
    detail::require(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level), "init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  environment(environment const&) = delete;
  environment& operator=(environment const&) = delete;
  ~environment() {
    if (std::uncaught_exceptions() > at_work_) end_all("an exception");
    MPI_Finalize();
  }
  /// Prints the reason to this rank's error stream and aborts all ranks.
  [[noreturn]] static void end_all(char const* why) {
    std::fprintf(stderr, "varve: mpi: rank %d of %d ends all ranks: %s\n", world.rank(), world.size(), why);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

private:
  int at_work_;
};

/// Runs a whole `main`: `return varve::mpi::run(argc, argv, [] { ... });`. MPI is initialized while the function runs.
/// An exception that leaves the function on one rank is printed, and all ranks are aborted.
template <class F>
int run(int argc, char** argv, F const& f) {
  environment const here(argc, argv);
  if (!VARVE_HAS_EXCEPTIONS()) set_error_handler([](std::exception const& e) { environment::end_all(e.what()); });
  auto const body = [&]() -> int {
    if constexpr (std::is_void_v<decltype(f())>) return f(), 0;
    else return f();
  };
  auto const any = [&] {
    return varve::detail::attempt<std::exception>(
        body, [](std::exception const& e) -> int { environment::end_all(e.what()); });
  };
  return varve::detail::attempt<void>(any,
                                      []() -> int { environment::end_all("an exception that is no std::exception"); });
}

} // namespace varve::mpi
