// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interop/mpi_rule.hpp>
#include <varve/op/expand.hpp>

/// @file
/// Operators that send messages from one rank to another.
namespace varve::mpi {

/// Sends `x` to rank `to` and returns the value that rank `from` sends in the same call: `send_recv(x, to, from)`. Both
/// have the same shape and dtype; the ranks may be equal. The transpose sends in the opposite direction. To pass values
/// between neighbours, prefer it to `send` and `recv`, which can deadlock.
inline constexpr struct send_recv_t {
  static constexpr auto op_name = "mpi_send_recv";
  template <value X, class D, class S, ranks C = world_t>
  constexpr auto operator()(X const& x, D const& to, S const& from, C const& c = {}) const {
    return detail::call<send_recv_t>(x, c.fact(), varve::detail::as_fact(to), varve::detail::as_fact(from));
  }
} send_recv{};
/// Sends `x` to a rank, which must call `recv`. The result is a receipt: a zero of rank 0. For derivatives, add the
/// receipt to the loss (`loss + send(x, 1)`): the cotangent of `x` comes back through it.
inline constexpr struct send_t {
  static constexpr auto op_name = "mpi_send";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& to, C const& c = {}) const {
    return detail::call<send_t>(x, c.fact(), varve::detail::as_fact(to));
  }
} send{};
/// Returns the value that a rank sends. Only the shape and dtype of `like` are used. For derivatives `like` must depend
/// on the differentiated value (`recv(0 * w, 0)`). Its cotangent is zero; computing it sends the result's cotangent
/// back.
inline constexpr struct recv_t {
  static constexpr auto op_name = "mpi_recv";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& like, R const& from, C const& c = {}) const {
    return detail::call<recv_t>(like, c.fact(), varve::detail::as_fact(from));
  }
} recv{};

namespace detail {
inline constexpr auto just_first = [](dims const& s) { return dims{s[0]}; };
} // namespace detail
} // namespace varve::mpi

namespace varve {

/// The attributes are {communicator}, {to}, {from}.
template <>
struct rules<mpi::send_recv_t> : mpi::detail::between_ranks<mpi::send_recv_t, 3> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    int const to_rank = c.rank(at[1]), from_rank = c.rank(at[2]);
    c.exchange(out, x, [&](auto* from, auto* to, int n) {
      return MPI_Sendrecv(from, n, c.type, to_rank, 0, to, n, c.type, from_rank, 0, c.comm, MPI_STATUS_IGNORE);
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::send_recv_t>(op.a, op.c, op.b)(g);
  }
};

/// The attributes are {communicator}, {to}.
template <>
struct rules<mpi::send_t> : mpi::detail::between_ranks<mpi::send_t, 2, mpi::recv_t> {
  static constexpr meta shape(attributes const&, meta const* in, int) {
    meta m = same(in);
    m.sizes = {};
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    int const to = c.rank(at[1]);
    mpi::detail::row<T const> row(x);
    c.require(MPI_Send(row.data(), c.count(row.size()), c.type, to, 0, c.comm));
    *out.data = R{};
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return bind<mpi::recv_t>(op.a, op.b)(expand(g, shape_of(x)));
  }
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    return expand(op(materialize(x, n)), on_dims(mpi::detail::just_first, n)); // a receipt for each lane
  }
};
/// The attributes are {communicator}, {from}.
template <>
struct rules<mpi::recv_t> : mpi::detail::between_ranks<mpi::recv_t, 2, mpi::send_t> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    int const from = c.rank(at[1]);
    mpi::detail::on_rows(out, x, [&](auto&, auto& to) {
      MPI_Status status;
      int n = c.count(to.size()), came = 0;
      c.require(MPI_Probe(from, 0, c.comm, &status));
      MPI_Get_count(&status, c.type, &came);
      if (came != n) refuse::lengths_differ("recv", dims{n}, dims{came});
      c.require(MPI_Recv(to.data(), n, c.type, from, 0, c.comm, MPI_STATUS_IGNORE));
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return expand(bind<mpi::send_t>(op.a, op.b)(g), shape_of(g));
  }
};

} // namespace varve
