// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/op/all.hpp>
#include <varve/rule/linear.hpp>
#include <varve/trace/proxy.hpp>

#if !__has_include(<mpi.h>)
#error "varve/interop/mpi.hpp needs <mpi.h>: apt install libopenmpi-dev (CMake: link MPI::MPI_CXX)"
#include <varve-needs-mpi> // is nowhere: compilation ends here
#endif
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <mpi.h>
#include <string>
#include <type_traits>
#include <vector>

/// @file
/// Operators between the processes ("ranks") of MPI: sums over ranks, broadcasts, gathers and messages, with rules for
/// `jvp`, `vjp` and `vmap`, on static values and on tensors. All are linear, and derivatives are those of the program
/// as a whole: the gradient that a rank gets is that of the sum of the losses of all ranks. (`shared` and `shared_sum`
/// are for a loss that every rank has alike.) Every rank of a communicator must make the same calls in the same order,
/// and differentiate, or map, the same ones. In graphs that are made at run time these calls are effects
/// (`op_kind::effect`): they stay, each once, in the order of the text; a trace makes none, who runs the graph does, on
/// all ranks. So ranks may trace alone, and a number that was received is 0 while a function is traced. Functions that
/// the compiler traces (`trace`, `fuse`) refuse them, and so do fused programs; programs that name a communicator other
/// than the world are not saved.
namespace varve::mpi {

/// What MPI refuses, or ranks that do not make the same call.
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
/// The communicator that an attribute means: none is the world.
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

/// Ranks that call each other. Owns nothing: who made an `MPI_Comm` frees it.
class communicator {
public:
  explicit communicator(MPI_Comm comm) : fact_{static_cast<index_t>(MPI_Comm_c2f(comm))} {}
  int rank() const { return detail::rank_in(detail::comm_of(fact_)); }
  int size() const { return detail::size_of(detail::comm_of(fact_)); }
  /// Waits until every rank has come here.
  void barrier() const { detail::require(MPI_Barrier(detail::comm_of(fact_)), "barrier"); }
  dims fact() const { return fact_; }
  dims size_fact() const { return {size()}; }

private:
  dims fact_;
};

/// All ranks of the program: the communicator where none is named.
struct world_t {
  int rank() const { return detail::rank_in(MPI_COMM_WORLD); }
  int size() const { return detail::size_of(MPI_COMM_WORLD); }
  void barrier() const { detail::require(MPI_Barrier(MPI_COMM_WORLD), "barrier"); }
  static constexpr ints<> fact() { return {}; }
  dims size_fact() const { return {size()}; }
};
inline constexpr world_t world{};

/// The world as static values need it: its size, which shapes depend on, is a type. `all_gather(x, world_of<2>)`.
template <int Ranks>
struct world_of_t : world_t {
  static constexpr ints<Ranks> size_fact() { return {}; }
};
template <int Ranks>
inline constexpr world_of_t<Ranks> world_of{};

/// What stands for a communicator in a call.
template <class C>
concept ranks = requires(C const& c) {
  c.fact();
  c.size_fact();
};

/// Do the ranks compare, before each call, which call it is? On by default: calls that differ in operator, dtype or
/// number of elements throw on every rank instead of waiting forever or reading foreign memory. It costs a small
/// message to all.
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
inline void require_supported(char const* op, dtype type) {
  if (type != dtype::float32 && type != dtype::float64 && type != dtype::int32 && type != dtype::int64 &&
      type != dtype::uint8)
    refuse::dtype_is_not_supported(op, name(type));
}
inline int count(char const* op, std::size_t n) {
  if (n > static_cast<std::size_t>((std::numeric_limits<int>::max)()))
    refuse::argument_is_invalid(op, "more than 2^31 - 1 elements in one message");
  return static_cast<int>(n);
}
/// Ranks that are not about to make the same call throw, all of them.
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
inline int root_in(char const* op, MPI_Comm comm, extent root) {
  index_t const r = root.number();
  if (r < 0 || r >= size_of(comm)) refuse::index_out_of_range(op, r, size_of(comm));
  return static_cast<int>(r);
}

/// Elements in a row, as MPI wants them: where they lie, if they lie so, else a copy. (Calls on truth values are
/// compiled and refused; a vector of them is no row.)
template <class T>
class row {
  using element =
      std::conditional_t<std::is_same_v<std::remove_const_t<T>, bool>, std::uint8_t, std::remove_const_t<T>>;

public:
  explicit row(strided<T> const& x) : of_(x), size_(static_cast<std::size_t>(numel(x.sizes))) {
    in_place_ = layout{x.sizes, x.strides, 0, true}.contiguous() && sizeof(T) == sizeof(element);
    if (in_place_) return;
    copy_.reserve(size_);
    for_each_index(x.sizes, [&](dims const& i) { copy_.push_back(static_cast<element>(x.at(i))); });
  }
  std::size_t size() const { return size_; }
  auto* data() {
    if constexpr (std::is_const_v<T>) return static_cast<void const*>(in_place_ ? pointer() : copy_.data());
    else return static_cast<void*>(in_place_ ? pointer() : copy_.data());
  }
  /// Puts what was written to where it belongs.
  void finish() {
    if (in_place_) return;
    std::size_t k = 0;
    for_each_index(of_.sizes, [&](dims const& i) { of_.at(i) = static_cast<T>(copy_[k++]); });
  }

private:
  auto* pointer() const {
    if constexpr (std::is_const_v<T>) return static_cast<void const*>(of_.data);
    else return static_cast<void*>(of_.data);
  }
  strided<T> of_;
  std::size_t size_;
  std::vector<element> copy_;
  bool in_place_ = false;
};

/// Traced values, at whatever depth: refused.
template <class X>
inline constexpr bool is_traced = requires { typename base_of<X>; } && std::is_same_v<base_of<X>, proxy>;
template <class Tag, class... F, value X>
constexpr auto call(X const& x, F const&... facts) {
  if constexpr (is_traced<X>) {
    static_assert(!is_traced<X>,
                  "varve: a call between processes has no place in a graph that the compiler makes; call "
                  "it outside of what trace or fuse takes, or trace at run time (make_fx, compile)");
    return x;
  } else {
    return bind<Tag>(facts...)(x);
  }
}

/// What the operators have in common. Attributes: {communicator}, and what else each names.
template <class Tag, int Attributes>
struct between_ranks : rule::linear {
  static constexpr bool in_headers = true; // the compiled library is not linked to MPI
  static constexpr op_kind kind = op_kind::effect;
  static constexpr bool in_all_lanes = true; // ranks call for the same lanes, whichever they are
  /// May a program with this call be run by other processes?
  static constexpr bool outlives_process(attributes const& at) { return at[0].n == 0; }
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr int least_attributes = Attributes;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  static constexpr meta shape(attributes const&, meta const* in, int) { return same(in); }
  /// One call on all lanes at once.
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    return op(materialize(x, n));
  }

protected:
  static constexpr meta same(meta const* in) {
    if (!std::is_constant_evaluated()) require_supported(Tag::op_name, in[0].type);
    return {in[0].type, in[0].sizes};
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
inline constexpr auto just_first = [](dims const& s) { return dims{s[0]}; };
} // namespace detail

/// The sum over all ranks, on each of them: `all_reduce(x)`, `all_reduce(x, communicator)`. Transpose: itself.
inline constexpr struct all_reduce_t {
  static constexpr auto op_name = "mpi_all_reduce";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<all_reduce_t>(x, c.fact());
  }
} all_reduce{};
/// A value that every rank has alike, such as parameters: itself, and its cotangents are summed over the ranks. The
/// gradient of a rank's loss by `shared(w)` is that of the sum of all losses, on each rank.
inline constexpr struct shared_t {
  static constexpr auto op_name = "mpi_shared";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<shared_t>(x, c.fact());
  }
} shared{};
/// The sum over all ranks for a loss that every rank computes alike of it: its cotangent is not summed again.
inline constexpr struct shared_sum_t {
  static constexpr auto op_name = "mpi_shared_sum";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<shared_sum_t>(x, c.fact());
  }
} shared_sum{};
/// The value that one rank has, on all: `broadcast(x, 0)`; on static values `broadcast(x, ints<0>{})`. The shape is
/// that of `x` on every rank. Transpose: `reduce`.
inline constexpr struct broadcast_t {
  static constexpr auto op_name = "mpi_broadcast";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& root, C const& c = {}) const {
    return detail::call<broadcast_t>(x, c.fact(), varve::detail::as_fact(root));
  }
} broadcast{};
/// The sum over all ranks on one of them, zeros on the others. Transpose: `broadcast`.
inline constexpr struct reduce_t {
  static constexpr auto op_name = "mpi_reduce";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& root, C const& c = {}) const {
    return detail::call<reduce_t>(x, c.fact(), varve::detail::as_fact(root));
  }
} reduce{};
/// The values of all ranks, one after the other along a new axis in front: [ranks, ...]. On static values
/// `all_gather(x, world_of<2>)`. Transpose: `reduce_scatter`.
inline constexpr struct all_gather_t {
  static constexpr auto op_name = "mpi_all_gather";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<all_gather_t>(x, c.fact(), c.size_fact());
  }
} all_gather{};
/// Of values [ranks, ...] the sum over all ranks, of which each keeps its own row: [...]. Transpose: `all_gather`.
inline constexpr struct reduce_scatter_t {
  static constexpr auto op_name = "mpi_reduce_scatter";
  template <value X, ranks C = world_t>
  constexpr auto operator()(X const& x, C const& c = {}) const {
    return detail::call<reduce_scatter_t>(x, c.fact(), c.size_fact());
  }
} reduce_scatter{};
/// Sends `x` to one rank and gives what another, or the same one, sent in the same call, of the same shape and dtype:
/// `send_recv(x, to, from)`. Transpose: the way back. Where neighbours only pass values on, this is safer than `send`
/// and `recv`: nobody waits for what nobody sends.
inline constexpr struct send_recv_t {
  static constexpr auto op_name = "mpi_send_recv";
  template <value X, class D, class S, ranks C = world_t>
  constexpr auto operator()(X const& x, D const& to, S const& from, C const& c = {}) const {
    return detail::call<send_recv_t>(x, c.fact(), varve::detail::as_fact(to), varve::detail::as_fact(from));
  }
} send_recv{};
/// Sends `x` to a rank, which calls `recv`. The result is a receipt: a zero of rank 0. For derivatives it must be part
/// of what is differentiated (`loss + send(x, 1)`): the cotangent of `x` comes back through it.
inline constexpr struct send_t {
  static constexpr auto op_name = "mpi_send";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& x, R const& to, C const& c = {}) const {
    return detail::call<send_t>(x, c.fact(), varve::detail::as_fact(to));
  }
} send{};
/// What a rank sends, in the shape and dtype of `like`, which is not read otherwise. For derivatives `like` must depend
/// on what is differentiated (`recv(0 * w, 0)`): its cotangent is zero, and making it sends the result's cotangent
/// back.
inline constexpr struct recv_t {
  static constexpr auto op_name = "mpi_recv";
  template <value X, class R, ranks C = world_t>
  constexpr auto operator()(X const& like, R const& from, C const& c = {}) const {
    return detail::call<recv_t>(like, c.fact(), varve::detail::as_fact(from));
  }
} recv{};

/// MPI from here to the end of the scope. Where the scope is left by an exception, the other ranks, which may be
/// waiting for this one, are ended too.
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
  /// Says why on this rank's error stream, and ends all ranks.
  [[noreturn]] static void end_all(char const* why) {
    std::fprintf(stderr, "varve: mpi: rank %d of %d ends all ranks: %s\n", world.rank(), world.size(), why);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

private:
  int at_work_;
};

/// `return varve::mpi::run(argc, argv, [] { ... });` is a whole `main`: MPI is there while the function runs, and an
/// exception that leaves it on one rank is printed and ends the others.
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

namespace detail {
/// `f(elements of x, those of the result)`, both in a row; x and result have their own sizes.
template <class R, class T, class F>
void on_rows(strided<R> const& out, strided<T const> const& x, F const& f) {
  row<T const> from(x);
  row<R> to(out);
  f(from, to);
  to.finish();
}
template <class R, class T>
void sum_over_ranks(char const* op, dims const& comm_fact, strided<R> const& out, strided<T const> const& x) {
  MPI_Comm const comm = comm_of(comm_fact);
  on_rows(out, x, [&](auto& from, auto& to) {
    require_same_call(op, comm, datatype<T>(), from.size());
    require(MPI_Allreduce(from.data(), to.data(), count(op, from.size()), datatype<T>(), MPI_SUM, comm), op);
  });
}
} // namespace detail
} // namespace varve::mpi

namespace varve {

template <>
struct rules<mpi::all_reduce_t> : mpi::detail::between_ranks<mpi::all_reduce_t, 1> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    mpi::detail::sum_over_ranks("all_reduce", at[0], out, x);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return op(g);
  }
};
template <>
struct rules<mpi::shared_t> : mpi::detail::between_ranks<mpi::shared_t, 1> {
  static constexpr op_kind kind = op_kind::contraction; // nobody is called, but for the gradient
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> x) {
    varve::detail::assign(out, x);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::shared_sum_t>(op.a)(g);
  }
};
template <>
struct rules<mpi::shared_sum_t> : mpi::detail::between_ranks<mpi::shared_sum_t, 1> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    mpi::detail::sum_over_ranks("shared_sum", at[0], out, x);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::shared_t>(op.a)(g);
  }
};

/// Attributes {communicator}, {root}.
template <>
struct rules<mpi::broadcast_t> : mpi::detail::between_ranks<mpi::broadcast_t, 2> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    int const root = mpi::detail::root_in("broadcast", comm, at[1][0]);
    varve::detail::assign(out, x);
    mpi::detail::row<R> row(out);
    mpi::detail::require_same_call("broadcast", comm, mpi::detail::datatype<T>(), row.size(), root);
    mpi::detail::require(
        MPI_Bcast(row.data(), mpi::detail::count("broadcast", row.size()), mpi::detail::datatype<T>(), root, comm),
        "broadcast");
    row.finish();
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::reduce_t>(op.a, op.b)(g);
  }
};
/// Attributes {communicator}, {root}.
template <>
struct rules<mpi::reduce_t> : mpi::detail::between_ranks<mpi::reduce_t, 2> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    int const root = mpi::detail::root_in("reduce", comm, at[1][0]);
    for_each_index(out.sizes, [&](dims const& i) { out.at(i) = R{}; }); // where MPI writes nothing
    mpi::detail::on_rows(out, x, [&](auto& from, auto& to) {
      mpi::detail::require_same_call("reduce", comm, mpi::detail::datatype<T>(), from.size(), root);
      mpi::detail::require(MPI_Reduce(from.data(), to.data(), mpi::detail::count("reduce", from.size()),
                                      mpi::detail::datatype<T>(), MPI_SUM, root, comm),
                           "reduce");
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::broadcast_t>(op.a, op.b)(g);
  }
};

/// Attributes {communicator}, {ranks}.
template <>
struct rules<mpi::all_gather_t> : mpi::detail::between_ranks<mpi::all_gather_t, 2> {
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    meta m = same(in);
    m.sizes = mpi::detail::with_ranks_in_front(m.sizes, at[1]);
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    if (index_t const n = mpi::detail::size_of(comm); at[1][0] != n)
      refuse::lengths_differ("all_gather", at[1], dims{n});
    mpi::detail::on_rows(out, x, [&](auto& from, auto& to) {
      int const n = mpi::detail::count("all_gather", from.size());
      MPI_Datatype const type = mpi::detail::datatype<T>();
      mpi::detail::require_same_call("all_gather", comm, type, from.size());
      mpi::detail::require(MPI_Allgather(from.data(), n, type, to.data(), n, type, comm), "all_gather");
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::reduce_scatter_t>(op.a, op.b)(g);
  }
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    auto const all = op(materialize(x, n)); // [ranks, lanes, ...]
    return permute(all, on_dims(mpi::detail::first_two_swapped, shape_of(all)));
  }
};
/// Attributes {communicator}, {ranks}.
template <>
struct rules<mpi::reduce_scatter_t> : mpi::detail::between_ranks<mpi::reduce_scatter_t, 2> {
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    meta m = same(in);
    if (m.sizes.n == 0 || !(m.sizes[0] == at[1][0])) refuse::lengths_differ("reduce_scatter", m.sizes, at[1]);
    m.sizes = m.sizes.sub(1, m.sizes.n);
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    if (index_t const n = mpi::detail::size_of(comm); at[1][0] != n)
      refuse::lengths_differ("reduce_scatter", at[1], dims{n});
    mpi::detail::on_rows(out, x, [&](auto& from, auto& to) {
      MPI_Datatype const type = mpi::detail::datatype<T>();
      mpi::detail::require_same_call("reduce_scatter", comm, type, from.size());
      mpi::detail::require(MPI_Reduce_scatter_block(from.data(), to.data(),
                                                    mpi::detail::count("reduce_scatter", to.size()), type, MPI_SUM,
                                                    comm),
                           "reduce_scatter");
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::all_gather_t>(op.a, op.b)(g);
  }
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    auto const all = materialize(x, n); // [lanes, ranks, ...]
    return op(permute(all, on_dims(mpi::detail::first_two_swapped, shape_of(all))));
  }
};

/// Attributes {communicator}, {to}, {from}.
template <>
struct rules<mpi::send_recv_t> : mpi::detail::between_ranks<mpi::send_recv_t, 3> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    int const to_rank = mpi::detail::root_in("send_recv", comm, at[1][0]),
              from_rank = mpi::detail::root_in("send_recv", comm, at[2][0]);
    mpi::detail::on_rows(out, x, [&](auto& from, auto& to) {
      int const n = mpi::detail::count("send_recv", from.size());
      MPI_Datatype const type = mpi::detail::datatype<T>();
      mpi::detail::require_same_call("send_recv", comm, type, from.size());
      mpi::detail::require(
          MPI_Sendrecv(from.data(), n, type, to_rank, 0, to.data(), n, type, from_rank, 0, comm, MPI_STATUS_IGNORE),
          "send_recv");
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return bind<mpi::send_recv_t>(op.a, op.c, op.b)(g);
  }
};

/// Attributes {communicator}, {to}.
template <>
struct rules<mpi::send_t> : mpi::detail::between_ranks<mpi::send_t, 2> {
  static constexpr meta shape(attributes const&, meta const* in, int) {
    meta m = same(in);
    m.sizes = {};
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    int const to = mpi::detail::root_in("send", comm, at[1][0]);
    mpi::detail::row<T const> row(x);
    mpi::detail::require(
        MPI_Send(row.data(), mpi::detail::count("send", row.size()), mpi::detail::datatype<T>(), to, 0, comm), "send");
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
/// Attributes {communicator}, {from}.
template <>
struct rules<mpi::recv_t> : mpi::detail::between_ranks<mpi::recv_t, 2> {
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    MPI_Comm const comm = mpi::detail::comm_of(at[0]);
    int const from = mpi::detail::root_in("recv", comm, at[1][0]);
    mpi::detail::on_rows(out, x, [&](auto&, auto& to) {
      MPI_Status status;
      int n = mpi::detail::count("recv", to.size()), came = 0;
      MPI_Datatype const type = mpi::detail::datatype<T>();
      mpi::detail::require(MPI_Probe(from, 0, comm, &status), "recv");
      MPI_Get_count(&status, type, &came);
      if (came != n) refuse::lengths_differ("recv", dims{n}, dims{came});
      mpi::detail::require(MPI_Recv(to.data(), n, type, from, 0, comm, MPI_STATUS_IGNORE), "recv");
    });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    return expand(bind<mpi::send_t>(op.a, op.b)(g), shape_of(g));
  }
};

} // namespace varve

#pragma GCC diagnostic pop
