// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/stages.hpp>
#include <varve/value/tensor_ref.hpp>

#include <tuple>

namespace varve {
namespace fusion {

/// The dtype and sizes of a static argument as the compiler traces it: a number or an `array`.
template <class A>
inline constexpr meta meta_of{dtype_of_type<A>(), {}, true};
template <class T, index_t... D>
inline constexpr meta meta_of<array<T, D...>>{dtype_of_type<T>(), ints<D...>::to_dims(), false};

/// The static value type of an argument of a fused function: the argument's own type, or the array type that a
/// `tensor_ref` of static extents views. `none_t` for all other types.
template <class A>
struct argument_type {
  using type = std::conditional_t<std::is_arithmetic_v<A> || is_array<A>, A, none_t>;
};
template <class T, index_t... D>
  requires((D != dyn) && ...)
struct argument_type<tensor_ref<T, D...>> {
  using type = static_value<std::remove_const_t<T>, ints<D...>>;
};
template <class A>
using argument = typename argument_type<A>::type;
template <class A>
inline constexpr bool can_fuse = !is_none<argument<A>>;

template <class... A>
constexpr bool accept_arguments() {
  static_assert((can_fuse<A> && ...), "varve: fuse: arguments are numbers, vv::array, and tensor_ref with extents "
                                      "known to the compiler; for tensors declare specs: fuse<spec<float, 3, 4>>(f)");
  return (can_fuse<A> && ...);
}

/// Returns the type of the static value that `into` writes through `R`: that of a variable, or of the memory that a
/// `tensor_ref` views. `none_t` for all other types.
template <class R>
consteval auto target_of() {
  using X = std::remove_cvref_t<R>;
  if constexpr (!can_fuse<X>) return none;
  else if constexpr (!std::is_same_v<argument<X>, X>) {
    using pointee = std::remove_pointer_t<decltype(data_of(std::declval<X const&>()))>;
    return std::type_identity<std::conditional_t<std::is_const_v<pointee>, none_t, argument<X>>>{};
  } else
    return std::type_identity<
        std::conditional_t<std::is_lvalue_reference_v<R> && !std::is_const_v<std::remove_reference_t<R>>, X, none_t>>{};
}
template <class R, class Result>
inline constexpr bool can_take =
    std::is_same_v<std::remove_const_t<decltype(target_of<R>())>, std::type_identity<Result>>;

template <class T>
inline constexpr bool is_tuple_of_targets = false;
template <class... T>
inline constexpr bool is_tuple_of_targets<std::tuple<T...>> = true;
/// A tuple whose elements `into` writes. Elements that are no references are written if the tuple is a variable.
template <class R>
concept tuple_of_targets = is_tuple_of_targets<std::remove_cvref_t<R>>;

/// The graph of `F` for arguments `A...`, computed by its call operator, for `compiled`.
template <class F, class... A>
struct traced {
  constexpr graph operator()() const {
    return trace_graph(F{}, meta_of<A>...);
  } // `trace_graph` is found by argument-dependent lookup: the tracer is above this layer
};

/// A trial trace. It is short beside the plan of a program.
template <class F, bool Branches, class... A>
struct trial_trace {
  static constexpr bool compute() {
    graph const g = trace_trial<Branches>(F{}, meta_of<A>...);
    return g.results.empty();
  }
};
/// The function that a gradient differentiates; other functions themselves.
template <class F>
struct undifferentiated {
  using type = F;
};
template <class F>
  requires requires { typename F::differentiated; }
struct undifferentiated<F> : undifferentiated<typename F::differentiated> {};
/// True if the compiler can trace `F` for arguments `A...`. Otherwise reports why, before a program is planned, where
/// messages are short. A call on static values, which is never made, names operands that do not fit, and the line of
/// the user.
template <class F, class... A>
constexpr bool accept_function() {
  if constexpr (evaluates<trial_trace<F, false, A...>>) return true;
  else {
    using plain = typename undifferentiated<F>::type;
    [[maybe_unused]] constexpr bool reported = std::is_invocable_v<plain const&, A const&...>;
    if constexpr (evaluates<trial_trace<F, true, A...>>) {
      static_assert(never<F>,
                    "varve: fuse: a traced value cannot steer C++ control flow: there is no if on what only a "
                    "run tells; use where, cond or while_loop");
      static_assert((traced<plain, A...>{}(), true)); // the compiler names the line
    } else if constexpr (evaluates<trial_trace<plain, false, A...>>) {
      static_assert((traced<F, A...>{}(), true),
                    "varve: fuse: this function cannot be traced, for the reason named below"); // and names it
    } else {
      static_assert(never<F>, "varve: fuse: this function cannot be traced. If no reason is named above, trace(f, "
                              "spec<...>...) names it; at a limit write long loops as scan, or pass "
                              "-fconstexpr-steps=1000000000 (clang) or -fconstexpr-ops-limit=1000000000 "
                              "-fconstexpr-loop-limit=10000000 (g++)");
    }
    return false;
  }
}

/// The type of the `K`-th result of a program.
template <class P, int K>
struct result_type_of {
  static constexpr meta m = P::value.results[K];
  template <std::size_t... D>
  static auto type(std::index_sequence<D...>) -> static_value<type_of<m.type>, ints<m.sizes.v[D].number()...>>;
  using result = decltype(type(std::make_index_sequence<static_cast<std::size_t>(m.sizes.n)>{}));
};

/// The execution of `fuse(f)`: the compiler emits code for every operation.
struct unrolled {
  template <class Make>
  using program = compiled<Make>;
};
template <class How, class F, class... A>
using program_for = typename How::template program<traced<F, A...>>;
template <class T>
concept execution = requires { typename T::template program<traced<T>>; };

template <class P, class K>
struct result_pack;
template <class P, std::size_t... K>
struct result_pack<P, std::index_sequence<K...>> {
  using tuple = std::tuple<typename result_type_of<P, static_cast<int>(K)>::result...>;
  template <class... A>
  static VARVE_PART auto call(A const&... a) {
    if constexpr (sizeof...(K) == 1) return one(a...);
    else return several(a...);
  }

private: // the result is declared in the outermost block: elsewhere g++ 12 would copy it
  template <class... A>
  static VARVE_PART auto one(A const&... a) {
    typename result_type_of<P, 0>::result r;
    P::template run<sizeof...(A), 1>({{data_of(a)...}, {data_of(r)}, nullptr});
    return r;
  }
  template <class... A>
  static VARVE_PART tuple several(A const&... a) {
    tuple r; // std::tuple zeroes its elements; into(...) writes large results without that extra pass
    P::template run<sizeof...(A), sizeof...(K)>({{data_of(a)...}, {data_of(std::get<K>(r))...}, nullptr});
    return r;
  }
};

/// The destinations of the results; a call with the arguments writes to them.
template <class F, class How, class... R>
struct writer {
  std::tuple<R...> out; // references to variables; views by value
  template <class... A>
  VARVE_WHOLE void operator()(A const&... a) const {
    if constexpr (execution<How> && std::is_empty_v<F> && accept_arguments<A...>()) {
      if constexpr (accept_function<F, argument<A>...>()) {
        using P = program_for<How, F, argument<A>...>;
        if constexpr (sizeof(P) && requires { P::value; }) {
          static_assert(P::value.used.results == sizeof...(R),
                        "varve: fuse: into(...) needs as many values as the function has results");
          write<P>(std::index_sequence_for<R...>{}, a...);
        }
      }
    }
  }

private:
  template <class P, std::size_t... K, class... A>
  VARVE_PART void write(std::index_sequence<K...>, A const&... a) const {
    static_assert((can_take<R, typename result_type_of<P, static_cast<int>(K)>::result> && ...),
                  "varve: fuse: into(...) needs variables, or tensor_ref, of the shapes and element types of the "
                  "function's results: into(a, b) or into(std::tie(a, b))");
    P::template run<sizeof...(A), sizeof...(R)>({{data_of(a)...}, {data_of(std::get<K>(out))...}, nullptr});
  }
};
} // namespace fusion

/// A function compiled as a whole: see `fuse`.
template <class F, class How = fusion::unrolled>
struct fused {
  static_assert(fusion::execution<How>,
                "varve: fuse: the second argument says how the function is executed: table_driven");
  static_assert(std::is_empty_v<F>, "varve: fuse: the function must capture nothing; pass the values as arguments, or "
                                    "include <varve/compile/compile.hpp> for calls on tensors");

  /// The program for arguments of the given types, as a constant: its stages and its workspace.
  template <class... A>
  using program = fusion::program_for<How, F, fusion::argument<A>...>;
  /// Bytes of stack that temporaries need; 0 for purely pointwise functions and reductions.
  template <class... A>
  static constexpr index_t workspace_bytes = program<A...>::value.workspace;

  /// Runs on numbers, arrays, and memory that a `tensor_ref` of static extents views, in place. A result of rank 0 is a
  /// plain number; other results are arrays. Several results are returned as a `std::tuple`; if they are large, prefer
  /// `into`.
  template <class... A>
  VARVE_WHOLE auto operator()(A const&... a) const {
    if constexpr (fusion::execution<How> && std::is_empty_v<F> &&
                  fusion::accept_arguments<A...>()) { // after a failed assertion nothing more is instantiated
      if constexpr (fusion::accept_function<F, fusion::argument<A>...>()) {
        using P = program<A...>;
        if constexpr (sizeof(P) && requires { P::value; })
          return fusion::result_pack<P, std::make_index_sequence<P::value.used.results>>::call(a...);
        else return nth<0>(a...);
      } else return nth<0>(a...);
    } else if constexpr (sizeof...(A) > 0) {
      return nth<0>(a...); // gives the result a type, so that its uses cause no further error messages
    }
  }
  /// Writes results to variables or `tensor_ref`s: `f.into(r...)(x...)` writes to `r...` and avoids copies of large
  /// arrays. No result may overlap an argument.
  template <class... R>
  constexpr fusion::writer<F, How, R...> into(R&&... r) const {
    return {{static_cast<R&&>(r)...}};
  }
  /// Writes results to the elements of a tuple: `f.into(std::tie(a, b))(x...)`.
  template <fusion::tuple_of_targets R>
  constexpr auto into(R&& r) const {
    return std::apply([this](auto&&... one) { return into(static_cast<decltype(one)>(one)...); }, static_cast<R&&>(r));
  }
};

/// Compiles a function of numbers, arrays and `tensor_ref`s of static extents (over tensors, vectors, spans, pointers):
/// `constexpr auto step = fuse(grad(loss)); auto g = step(w, x);`.
///
/// For each set of argument types the compiler traces, optimizes and plans the function. It then emits loops over SIMD
/// registers without heap, thread-local state or indirect calls. Constants in the function, including arrays, become
/// part of the program.
///
/// For tensors use `fuse<spec<float, 3, 4>>(f)` (`tensors.hpp`). A function with captures is fused for tensors at run
/// time (`compile.hpp`).
///
/// Throws `index_error` if `gather` or `scatter_add` meets an index out of range, as without `fuse`; the destinations
/// may then be partly written. `one_hot` writes zeros for such an index.
template <class F>
constexpr fused<F> fuse(F const&) {
  return {};
}
/// Compiles a function for another way of execution: `fuse(f, table_driven)` keeps it as a table (`table_driven.hpp`).
template <class F, class How>
constexpr fused<F, How> fuse(F const&, How) {
  return {};
}

} // namespace varve
