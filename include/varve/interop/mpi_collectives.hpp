// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interop/mpi_rule.hpp>
#include <varve/op/permute.hpp>

/// @file
/// Operators that all ranks of a communicator call together: sums, broadcasts, gathers.
namespace varve::mpi {

/// Returns the sum over all ranks, on every rank: `all_reduce(x)`, `all_reduce(x, communicator)`. Its transpose is
/// itself.
inline constexpr struct all_reduce_t {
  static constexpr auto op_name = "mpi_all_reduce";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<all_reduce_t>(x, c.fact());
  }
} all_reduce{};
/// Returns `x`, a value that is the same on every rank, such as parameters. Its cotangents are summed over the ranks:
/// the gradient of each rank's loss by `shared(w)` is that of the sum of all losses. Its transpose is `shared_sum`.
inline constexpr struct shared_t {
  static constexpr auto op_name = "mpi_shared";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<shared_t>(x, c.fact());
  }
} shared{};
/// Returns the sum over all ranks, for a loss that every rank computes equally from it. Its cotangent is not summed
/// again. Its transpose is `shared`.
inline constexpr struct shared_sum_t {
  static constexpr auto op_name = "mpi_shared_sum";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<shared_sum_t>(x, c.fact());
  }
} shared_sum{};
/// Returns the value of one rank on all ranks: `broadcast(x, 0)`; for static values `broadcast(x, ints<0>{})`. `x` must
/// have the same shape on every rank. Its transpose is `reduce`.
inline constexpr struct broadcast_t {
  static constexpr auto op_name = "mpi_broadcast";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& root, C const& c = {}) const {
    return detail::call<broadcast_t>(x, c.fact(), varve::detail::as_fact(root));
  }
} broadcast{};
/// Returns the sum over all ranks on one of them, and zeros on the others. Its transpose is `broadcast`.
inline constexpr struct reduce_t {
  static constexpr auto op_name = "mpi_reduce";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& root, C const& c = {}) const {
    return detail::call<reduce_t>(x, c.fact(), varve::detail::as_fact(root));
  }
} reduce{};
/// Returns the values of all ranks, stacked along a new first axis: [ranks, ...]. For static values use
/// `all_gather(x, world_of<2>)`. Its transpose is `reduce_scatter`.
inline constexpr struct all_gather_t {
  static constexpr auto op_name = "mpi_all_gather";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<all_gather_t>(x, c.fact(), c.size_fact());
  }
} all_gather{};
/// Sums values [ranks, ...] over all ranks, and returns to each rank its own row: [...]. Its transpose is `all_gather`.
inline constexpr struct reduce_scatter_t {
  static constexpr auto op_name = "mpi_reduce_scatter";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<reduce_scatter_t>(x, c.fact(), c.size_fact());
  }
} reduce_scatter{};

namespace detail {
/// The rules of a sum over all ranks that every rank receives.
template <class Tag, class Transpose>
struct sum_over_ranks : between_ranks<Tag, 1, Transpose> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = sum_over_ranks::template call<T>(at);
    c.exchange(out, x,
               [&](auto* from, auto* to, int n) { return MPI_Allreduce(from, to, n, c.type, MPI_SUM, c.comm); });
  }
};
inline constexpr auto first_two_swapped = [](dims const& s) {
  dims r = s;
  for (int k = 0; k < s.n; ++k) r[k] = k < 2 ? 1 - k : k;
  return r;
};
inline constexpr auto with_ranks_in_front = [](dims const& s, dims const& ranks) {
  dims r{ranks[0]};
  for (int k = 0; k < s.n; ++k) r.push_back(s[k]);
  return r;
};
} // namespace detail
} // namespace varve::mpi

namespace varve {

template <>
struct rules<mpi::all_reduce_t> : mpi::detail::sum_over_ranks<mpi::all_reduce_t, mpi::all_reduce_t> {};
template <>
struct rules<mpi::shared_sum_t> : mpi::detail::sum_over_ranks<mpi::shared_sum_t, mpi::shared_t> {};
template <>
struct rules<mpi::shared_t> : mpi::detail::between_ranks<mpi::shared_t, 1, mpi::shared_sum_t> {
  static constexpr op_kind kind = op_kind::contraction; // only the gradient communicates
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> x) {
    varve::detail::assign(out, x);
  }
};

/// The attributes are {communicator}, {root}.
template <>
struct rules<mpi::broadcast_t> : mpi::detail::between_ranks<mpi::broadcast_t, 2, mpi::reduce_t> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    int const root = c.rank(at[1]);
    varve::detail::assign(out, x);
    mpi::detail::row<R> row(out);
    c.require_same(row.size(), root);
    c.require(MPI_Bcast(row.data(), c.count(row.size()), c.type, root, c.comm));
    row.finish();
  }
};
/// The attributes are {communicator}, {root}.
template <>
struct rules<mpi::reduce_t> : mpi::detail::between_ranks<mpi::reduce_t, 2, mpi::broadcast_t> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    int const root = c.rank(at[1]);
    for_each_index(out.sizes, [&](dims const& i) { out.at(i) = R{}; }); // MPI does not write to these ranks
    auto const reduce = [&](auto* from, auto* to, int n) {
      return MPI_Reduce(from, to, n, c.type, MPI_SUM, root, c.comm);
    };
    c.exchange(out, x, reduce, root);
  }
};

/// The attributes are {communicator}, {ranks}.
template <>
struct rules<mpi::all_gather_t> : mpi::detail::between_ranks<mpi::all_gather_t, 2, mpi::reduce_scatter_t> {
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    meta m = same(in);
    m.sizes = mpi::detail::with_ranks_in_front(m.sizes, at[1]);
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    c.require_ranks(at[1]);
    c.exchange(out, x,
               [&](auto* from, auto* to, int n) { return MPI_Allgather(from, n, c.type, to, n, c.type, c.comm); });
  }
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    auto const all = op(materialize(x, n)); // [ranks, lanes, ...]
    return permute(all, on_dims(mpi::detail::first_two_swapped, shape_of(all)));
  }
};
/// The attributes are {communicator}, {ranks}.
template <>
struct rules<mpi::reduce_scatter_t> : mpi::detail::between_ranks<mpi::reduce_scatter_t, 2, mpi::all_gather_t> {
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    meta m = same(in);
    if (m.sizes.n == 0 || !(m.sizes[0] == at[1][0])) refuse::lengths_differ("reduce_scatter", m.sizes, at[1]);
    m.sizes = m.sizes.sub(1, m.sizes.n);
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    auto const c = call<T>(at);
    c.require_ranks(at[1]);
    c.exchange(out, x, [&](auto* from, auto* to, int n) {
      return MPI_Reduce_scatter_block(from, to, n, c.type, MPI_SUM, c.comm);
    });
  }
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    auto const all = materialize(x, n); // [lanes, ranks, ...]
    return op(permute(all, on_dims(mpi::detail::first_two_swapped, shape_of(all))));
  }
};

} // namespace varve
