// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/operator.hpp>
#include <varve/interop/mpi_call.hpp>
#include <varve/rule/linear.hpp>
#include <varve/trace/proxy.hpp>

#include <type_traits>

namespace varve::mpi::detail {

inline void require_supported(char const* op, dtype type) {
  if (type != dtype::float32 && type != dtype::float64 && type != dtype::int32 && type != dtype::int64 &&
      type != dtype::uint8)
    refuse::dtype_is_not_supported(op, name(type));
}
/// True if a value is traced, at any nesting level. Calls on such values do not compile.
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

/// The common base of the rules. The attributes are {communicator}, then those of the operator. The transpose has the
/// same attributes.
template <class Tag, int Attributes, class Transpose = Tag>
struct between_ranks : rule::linear {
  static constexpr bool in_headers = true; // the compiled library does not link MPI
  static constexpr op_kind kind = op_kind::effect;
  static constexpr bool in_all_lanes = true; // all ranks must call for the same lanes
  /// True if other processes may run a program with this call.
  static constexpr bool outlives_process(attributes const& at) { return at[0].n == 0; }
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr int least_attributes = Attributes;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  static constexpr meta shape(attributes const&, meta const* in, int) { return same(in); }
  /// Makes one call for all lanes.
  template <class Op, class N, class X>
  static constexpr auto batch(Op const& op, N const& n, X const& x) {
    return op(materialize(x, n));
  }

  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, auto const&...) {
    if constexpr (Attributes == 1) return bind<Transpose>(op.a)(g);
    else return bind<Transpose>(op.a, op.b)(g);
  }

protected:
  /// Returns the MPI call of the operator.
  template <class T>
  static call_on<T> call(attributes const& at) {
    return {Tag::op_name + 4, at[0]}; // without "mpi_"
  }
  static constexpr meta same(meta const* in) {
    if (!std::is_constant_evaluated()) require_supported(Tag::op_name, in[0].type);
    return {in[0].type, in[0].sizes};
  }
};

} // namespace varve::mpi::detail
