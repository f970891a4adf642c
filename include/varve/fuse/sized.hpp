// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fuse/sized_argument.hpp>

/// @file
/// Fused functions of tensors whose specs have symbolic sizes. Each call binds the symbols and checks the sizes once.
namespace varve {
namespace fusion {

/// The distinct symbols of a list of specs.
template <class... S>
struct symbols_of : symbol_names {
  constexpr symbols_of() { (add(S::info().sizes), ...); }
};

/// The graphs of `F` for the sample sizes, traced by `at`, for `compiled`.
template <class F, class... S>
struct traced_for_samples {
  static constexpr symbols_of<S...> names{};
  static constexpr int symbols = names.count;
  static constexpr graph at(int point) { return trace_sample(F{}, names, point, S::info()...); }
};

/// Throws `shape_error` for sizes for which the plan does not hold.
template <class P>
void check_guards(size_values<P> const& sizes) {
  for (int k = 0; k < P::value.guard_count; ++k)
    if (size_guard const& g = P::value.guards[k]; !sizes.holds(g)) [[unlikely]]
      refuse_sizes("fuse", size_view(P::value.expressions), g, sizes.value(g.right));
}

/// The state of one call: its checked arguments and its sizes.
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

/// The tensors to be written, variables by reference; a call with the arguments writes to them.
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

/// True if the plans for both sample sizes are the same program. Otherwise a `static_assert` states why not.
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
/// A trial trace of the function, before it is planned, so that an error is reported only once.
template <class Make>
struct sampled_trace {
  static constexpr std::size_t compute() {
    graph const g = Make::at(0);
    return g.nodes.size();
  }
};
/// True if the function can be traced and planned. Otherwise a `static_assert` states why not.
template <class Make>
constexpr bool accept_plan() {
  constexpr bool traces = evaluates<sampled_trace<Make>>;
  static_assert(traces, "varve: fuse: this function cannot be traced with symbolic sizes, none of which equals a "
                        "number or another symbol; trace(f, spec<...>...) tells where");
  if constexpr (traces) return same_plans<compiled<Make>>();
  else return false;
}
} // namespace fusion

/// A function compiled as a whole for declared arguments with symbolic sizes: see `fuse<spec<...>...>`.
template <class F, class... S>
struct fused_sized_for {
  static_assert(std::is_empty_v<F>,
                "varve: fuse: the function must capture nothing; pass the values as arguments, or compile(f)");
  static_assert(fusion::symbols_of<S...>{}.count <= fusion::max_symbols,
                "varve: fuse: the specs have too many symbols; give some of them numbers");

  using make = fusion::traced_for_samples<F, S...>;
  /// The program, as a constant. Numbers in it that satisfy `is_run_time` stand for expressions.
  using program = fusion::compiled<make>;

  /// Returns the bytes of memory that temporaries need for these sizes of the symbols, in the order in which the specs
  /// name them. The sum covers the stack and, for temporaries of symbolic size, scratch memory that each thread keeps.
  template <std::convertible_to<index_t>... N>
  static index_t workspace_bytes(N... sizes) {
    static_assert(sizeof...(N) == fusion::symbols_of<S...>{}.count,
                  "varve: fuse: workspace_bytes needs a size for each symbol of the specs");
    index_t const symbols[] = {static_cast<index_t>(sizes)...};
    index_t piece[program::value.pieces + 1];
    return program::value.workspace + fusion::size_values<program>(symbols).lay_out(piece);
  }

  /// Runs on tensors, numbers for specs of rank 0, static values, and `tensor_ref`s with run-time extents, as
  /// `fused_for` does. The first argument that has a symbol defines its size. Throws `shape_error` if another argument
  /// disagrees, or if a slice would leave a symbolic axis.
  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (std::is_empty_v<F> && sizeof...(X) == sizeof...(S) &&
                  fusion::symbols_of<S...>{}.count <= fusion::max_symbols) {
      if constexpr (fusion::accept_plan<make>()) {
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
  /// Writes to tensors of the sizes that result from the arguments: `f.into(out...)(x...)`. The checks are those of
  /// `fused_for::into`.
  template <class... R>
    requires(std::is_same_v<std::remove_cvref_t<R>, tensor> && ...)
  auto into(R&&... r) const {
    if constexpr (fusion::accept_plan<make>()) {
      static_assert(program::value.used.results == sizeof...(R),
                    "varve: fuse: into(...) needs as many tensors as the function has results");
      return fusion::sized_writer<call, R...>{{static_cast<R&&>(r)...}};
    }
  }
  /// Writes the results to the tensors of a tuple: `f.into(std::tuple{a, b})(x...)`.
  template <fusion::tuple_of_targets R>
  auto into(R&& r) const {
    return std::apply([this](auto&&... one) { return into(static_cast<decltype(one)>(one)...); }, static_cast<R&&>(r));
  }

private:
  using call = fusion::sized_call<make, program, std::make_integer_sequence<int, sizeof...(S)>, S...>;
};

/// Compiles a function for tensors some of whose sizes are only known at the call: `constexpr auto f = fuse<spec<float,
/// dim<"n">, 3>, spec<float, 3>>(fn);`. The compiler traces, optimizes and plans it. Loops over symbolic sizes run as
/// often as the arguments require. Temporaries of symbolic size are placed in scratch memory that each thread keeps. A
/// symbol is 0 or more. While tracing it differs from every number and every other symbol, and it never counts as 1.
/// Broadcasting along it therefore works only for values whose spec has size 1 there.
template <auto First, auto... Rest, class F>
  requires(fusion::specs<First, Rest...> && !fusion::fixed_specs<First, Rest...>)
constexpr fused_sized_for<F, std::remove_cvref_t<decltype(First)>, std::remove_cvref_t<decltype(Rest)>...>
fuse(F const&) {
  return {};
}
/// Compiles a function for specs that are types: `using row = spec_t<float, 3>; fuse<row>(f)`.
template <class First, class... Rest, class F>
  requires(fusion::is_spec<First> && (fusion::is_spec<Rest> && ...))
constexpr auto fuse(F const& f) {
  return fuse<First{}, Rest{}...>(f);
}

} // namespace varve
