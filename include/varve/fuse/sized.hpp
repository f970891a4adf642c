// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fuse/sized_argument.hpp>

/// @file
/// Fused functions of tensors whose specs have symbolic sizes: bound and checked once per call.
namespace varve {
namespace loop {

/// The symbols of some specs.
template <class... S>
struct symbols_of : symbol_names {
  constexpr symbols_of() { (add(S::info().sizes), ...); }
};

/// Traces `F` for the sample sizes, for `compiled`.
template <class F, class... S>
struct traced_for_samples {
  static constexpr symbols_of<S...> names{};
  static constexpr int symbols = names.count;
  static constexpr graph at(int point) { return trace_sample(F{}, names, point, S::info()...); }
};

/// Refuses sizes for which the plan does not hold.
template <class P>
void check_guards(size_values<P> const& sizes) {
  for (int k = 0; k < P::value.guard_count; ++k)
    if (size_guard const& g = P::value.guards[k]; !sizes.holds(g)) [[unlikely]]
      refuse_sizes("fuse", size_view(P::value.expressions), g, sizes.value(g.right));
}

/// All that one call knows: its arguments and sizes.
template <class Make, class P, class Numbers, class... S>
struct sized_call;
template <class Make, class P, int... K, class... S>
struct sized_call<Make, P, std::integer_sequence<int, K...>, S...> {
  bound_symbols<symbols_of<S...>> symbols;
  std::tuple<sized_argument<symbols_of<S...>, S, K>...> all;
  size_values<P> sizes;
  template <class... X>
  explicit sized_call(X const&... x)
      : all{sized_argument<symbols_of<S...>, S, K>(symbols, x)...}, sizes((symbols.value)) {
    if constexpr (P::value.guard_count > 0) check_guards<P>(sizes);
  }
  meta result(int k) const { return {P::value.results[k].type, sizes.of(P::value.results[k].sizes)}; }
  template <class... R>
  void run(R*... out) const {
    std::apply(
        [&](auto const&... a) {
          run_sized<P>(memory<sizeof...(S), sizeof...(R)>{{a.data()...}, {out...}, nullptr}, sizes);
        },
        all);
  }
};

/// Tensors to be written, waiting for the arguments: variables by reference.
template <class Call, class... R>
struct sized_writer {
  std::tuple<R...> out;
  template <class... X>
  void operator()(X const&... x) const {
    write(std::index_sequence_for<R...>{}, Call(x...));
  }

private:
  template <std::size_t... K>
  void write(std::index_sequence<K...>, Call const& call) const {
    memory_range taken[sizeof...(K) + 1]{};
    ((taken[K] = check_target({"result", static_cast<int>(K), call.result(static_cast<int>(K))},
                              plain_tensor(std::get<K>(out)), call.all, taken)),
     ...);
    call.run(std::get<K>(out).raw()...);
    (std::get<K>(out).bump_version(), ...);
  }
};

/// Tells why two plans are not one program; true when they are.
template <class P>
constexpr bool same_plans() {
  constexpr sized_problem p = P::value.problem;
  static_assert(
      p != sized_problem::value,
      "varve: fuse: a symbolic size became a number of the function; use mean, or pass the count as an argument");
  static_assert(p != sized_problem::structure, "varve: fuse: what the function does depends on a symbolic size; use "
                                               "one that does not branch on sizes, or a spec of numbers");
  static_assert(p != sized_problem::size, "varve: fuse: a size is neither a number nor made of symbols by products, "
                                          "constants and sums of two; give one of the symbols a number in the specs");
  static_assert(p != sized_problem::many,
                "varve: fuse: too many different sizes; fuse the parts of the function one by one");
  return p == sized_problem::none;
}
/// Can the function be traced? Asked before it is planned, so that a mistake is told once.
template <class Make>
struct sampled_trace {
  static constexpr std::size_t compute() {
    graph const g = Make::at(0);
    return g.nodes.size();
  }
};
/// ... and why a function cannot be traced.
template <class Make>
constexpr bool accept_plan() {
  constexpr bool traces = evaluates<sampled_trace<Make>>;
  static_assert(traces, "varve: fuse: this function cannot be traced with symbolic sizes, none of which equals a "
                        "number or another symbol; trace(f, spec<...>...) tells where");
  if constexpr (traces) return same_plans<compiled<Make>>();
  else return false;
}
} // namespace loop

/// A function compiled as a whole for declared arguments some of whose sizes are symbols: see `fuse<spec<...>...>`.
template <class F, class... S>
struct fused_sized_for {
  static_assert(std::is_empty_v<F>,
                "varve: fuse: the function must capture nothing; pass the values as arguments, or compile(f)");
  static_assert(loop::symbols_of<S...>{}.count <= loop::max_symbols,
                "varve: fuse: the specs have too many symbols; give some of them numbers");

  using make = loop::traced_for_samples<F, S...>;
  /// The program, as a constant: numbers of it that are `is_run_time` stand for expressions.
  using program = loop::compiled<make>;

  /// Bytes of memory that temporaries need when the symbols have these sizes, in the order in which the specs name
  /// them: on the stack, and, where sizes matter, in scratch memory that each thread keeps.
  template <std::convertible_to<index_t>... N>
  static index_t workspace_bytes(N... sizes) {
    static_assert(sizeof...(N) == loop::symbols_of<S...>{}.count,
                  "varve: fuse: workspace_bytes needs a size for each symbol of the specs");
    index_t const symbols[] = {static_cast<index_t>(sizes)...};
    index_t piece[program::value.pieces + 1];
    return program::value.workspace + loop::size_values<program>(symbols).lay_out(piece);
  }

  /// As `fused_for`: tensors, numbers for rank 0, static values, and `tensor_ref`s with run-time extents. The first
  /// argument that has a symbol says what size it is; `shape_error` where another disagrees, or where a slice of a
  /// symbolic axis would leave it.
  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (std::is_empty_v<F> && sizeof...(X) == sizeof...(S) &&
                  loop::symbols_of<S...>{}.count <= loop::max_symbols) {
      if constexpr (loop::accept_plan<make>()) {
        call const c(x...);
        return [&]<std::size_t... K>(std::index_sequence<K...>) {
          auto made = [&](int k) { return tensor::empty(c.result(k).sizes, c.result(k).type); };
          if constexpr (sizeof...(K) == 1) {
            tensor r = made(0);
            c.run(r.raw());
            return r;
          } else {
            tensor r[] = {made(static_cast<int>(K))...};
            c.run(r[K].raw()...);
            return std::tuple{static_cast<tensor&&>(r[K])...};
          }
        }(std::make_index_sequence<program::value.used.results>{});
      }
    }
  }
  /// `f.into(out...)(x...)` writes to tensors of the sizes that the arguments give, checked as `fused_for::into` does.
  template <class... R>
    requires(std::is_same_v<std::remove_cvref_t<R>, tensor> && ...)
  auto into(R&&... r) const {
    if constexpr (loop::accept_plan<make>()) {
      static_assert(program::value.used.results == sizeof...(R),
                    "varve: fuse: into(...) needs as many tensors as the function has results");
      return loop::sized_writer<call, R...>{{static_cast<R&&>(r)...}};
    }
  }

private:
  using call = loop::sized_call<make, program, std::make_integer_sequence<int, sizeof...(S)>, S...>;
};

/// Compiles a function for tensors of sizes some of which only the call tells: `constexpr auto f = fuse<spec<float,
/// dim<"n">, 3>, spec<float, 3>>(fn);`. It is traced, optimized and planned in the compiler; loops over symbolic sizes
/// run as often as the arguments say, temporaries of symbolic size lie in scratch memory that a thread keeps. A symbol
/// is 0 or more, differs from every number and other symbol while tracing, and is never taken for 1, so that nothing is
/// broadcast along it but what has size 1 in its spec.
template <auto First, auto... Rest, class F>
  requires(loop::specs<First, Rest...> && !loop::fixed_specs<First, Rest...>)
constexpr fused_sized_for<F, std::remove_cvref_t<decltype(First)>, std::remove_cvref_t<decltype(Rest)>...>
fuse(F const&) {
  return {};
}

} // namespace varve
