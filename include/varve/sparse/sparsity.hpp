// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/make_fx.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/sparse/argument.hpp>
#include <varve/sparse/dependence.hpp>
#include <varve/trace/trace.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

#include <vector>

/// @file
/// The pattern of a derivative is that of the program which computes it: the graph of `jvp(f, x, dx)`, in which sets of
/// elements of dx are carried from node to node. Derivatives of your own, `detach`, and operators without a derivative
/// therefore count as what they are. The graph is traced by the compiler for static values and at run time for tensors;
/// the walk is the same.
namespace varve {

namespace detail {
/// The function `(x, dx, rest...)` that computes the derivative of f along dx.
template <class F>
struct tangent_program {
  [[no_unique_address]] F f;
  template <class X, class D, class... R>
  constexpr auto operator()(X const& x, D const& dx, R const&... rest) const {
    auto const along = [&](auto const& v, auto const&...) { return f(v, rest...); };
    auto const dy = jvp(closure(along, captures_of(f), rest...), std::tuple(x), std::tuple(dx)).second;
    constexpr bool one = value<std::remove_const_t<decltype(dy)>>;
    static_assert(one, "varve: sparsity, sparse_jacobian: the function must return one value");
    return dy;
  }
};
/// The function `(x, gy, rest...)` that pulls the cotangent gy back.
template <class F>
struct cotangent_program {
  [[no_unique_address]] F f;
  template <class X, class G, class... R>
  constexpr auto operator()(X const& x, G const& gy, R const&... rest) const {
    auto const along = [&](auto const& v, auto const&...) { return f(v, rest...); };
    return std::get<0>(vjp(closure(along, gy, captures_of(f), rest...), x).second(gy));
  }
};

/// What the trace of a derivative shows: its pattern, and the dtype and sizes of the function's result.
struct found_pattern {
  sparsity_pattern pattern{};
  meta result{};
};
/// Returns the pattern of the first result of a graph as a function of its input 1. The graph writes into nothing but,
/// at its end, into its inputs.
constexpr found_pattern pattern_of_functional(graph const& g, list<known_elements> const& known,
                                              floating_constants numbers) {
  auto const size_of = [&](int n) { return count_of_rows(numel(g.nodes[n].out.sizes)); };
  int input = -1;
  for (int n = 0; n < g.regions[0].node_count; ++n)
    if (g.nodes[n].op == &placeholder_handle && static_cast<int>(g.nodes[n].value) == 1) input = n;
  int const columns = input < 0 ? 0 : size_of(input);
  dependence walk(g, columns, numbers);
  element_sets const none;
  list<element_sets> inputs(2, none);
  for (int k = 0; k < columns; ++k) inputs[1].push_back(index_sets::single(k));
  list<element_sets> const results = walk.run(inputs, known);
  element_sets const& sets = results[0];
  sparsity_pattern p(size_of(g.results[0]), columns);
  index_t all = 0;
  for (int const s : sets) all += walk.sets.size(s);
  (void)count_of_rows(all);
  for (int r = 0; r < p.rows; ++r) {
    if (!sets.empty())
      for (int const* e = walk.sets.begin(sets[r]); e != walk.sets.end(sets[r]); ++e) p.column.push_back(*e);
    p.row_start[r + 1] = static_cast<int>(p.column.size());
  }
  found_pattern found;
  found.pattern = p, found.result = g.nodes[g.results[0]].out;
  return found;
}
constexpr found_pattern pattern_of(graph const& g, list<known_elements> const& known, floating_constants numbers) {
  if (!has_mutation(g)) return pattern_of_functional(g, known, numbers);
  graph const functional = functionalized(g); // a named variable: g++ 12 loses temporaries that own storage
  return pattern_of_functional(functional, known, numbers);
}
constexpr found_pattern with_mirror_images(found_pattern const& f) {
  sparsity_pattern const t = transposed(f.pattern), both = united(f.pattern, t);
  found_pattern r;
  r.pattern = both, r.result = f.result;
  return r;
}

/// Returns the pattern of the Jacobian of a function of values with these metas. `outer` is the trace in which it is
/// asked for, or null.
template <class F, class... M>
constexpr found_pattern traced_pattern(graph_builder* outer, F const& f, meta const& x, M const&... rest) {
  graph_builder b(outer);
  graph const g = trace_graph_into(b, tangent_program<F>{f}, x, x, rest...);
  list<known_elements> const nothing;
  return pattern_of(g, nothing, floating_constants::known);
}
constexpr found_pattern of_transposed(found_pattern const& f, meta const& result) {
  sparsity_pattern const t = transposed(f.pattern);
  found_pattern r;
  r.pattern = t, r.result = result;
  return r;
}
/// Does the same by reverse mode.
template <class F, class... M>
constexpr found_pattern traced_pattern_by_rows(graph_builder* outer, F const& f, meta const& x, M const&... rest) {
  meta const y = [&] {
    graph_builder b(outer);
    graph const g = trace_graph_into(b, f, x, rest...);
    return g.nodes[g.results[0]].out;
  }();
  graph_builder b(outer);
  graph const g = trace_graph_into(b, cotangent_program<F>{f}, x, y, rest...);
  list<known_elements> const nothing;
  found_pattern const r = pattern_of(g, nothing, floating_constants::known);
  return of_transposed(r, y);
}

/// True if the elements of a tensor are known while a program is traced.
inline bool has_known_elements(tensor const& t) {
  return t.defined() && category(t.dtype()) < 2 && !is_compact(t.dtype()) && t.has_data() && !t.is_wrapped() &&
         !trace_layer::is_traced_by_mode(t);
}
/// Returns the elements of a tensor that has known ones.
inline std::vector<std::int64_t> known_numbers(tensor const& t) {
  if (watches_reads)
    watches_reads->memory(t, {"sparsity, sparse_jacobian: the pattern depends on the elements of a captured tensor",
                              "give the pattern: sparse_jacobian(f, sparsity(f)(x))"});
  return t.to_vector<std::int64_t>();
}
template <class T>
known_elements elements_if_known(T const& t) {
  if (!has_known_elements(t)) return {};
  list<double> r;
  for (std::int64_t const v : known_numbers(t)) r.push_back(static_cast<double>(v));
  return known_elements::each(r);
}
/// The captured tensors that a traced program reads.
struct captured_tensors {
  std::vector<tensor> known; ///< those on whose elements the pattern depends
  bool any = false;          ///< whether there are others, too
};
/// Returns the pattern of a program `(x, dx, rest...)` on tensors, which is traced on tensors without data.
template <class Program, class T, class... R>
found_pattern found_on_tensors(captured_tensors& read, Program const& program, T const& x, T const& dx,
                               R const&... rest) {
  boxed_args captured;
  dependent<graph, Program> const g = make_fx(program, tracing::fake).with_captures(captured, x, dx, rest...);
  list<known_elements> known(2, known_elements());
  boxed_args const others = tensors_among(rest...);
  for (auto const& t : others) known.push_back(elements_if_known(t));
  for (auto const& t : captured) {
    known.push_back(elements_if_known(t));
    if (has_known_elements(t)) read.known.push_back(t);
    read.any = true;
  }
  return pattern_of(g, known, floating_constants::unknown);
}
/// Returns a tensor of the same dtype and shape that no transform sees. Symbolic sizes become numbers.
template <class T>
T stand_in(T const& x) {
  return T::empty(x.sizes().as_numbers(), x.dtype());
}
template <class F, class T, class... R>
found_pattern tensor_pattern(captured_tensors& read, F const& f, T const& x, R const&... rest) {
  T const like = stand_in(x);
  return found_on_tensors(read, tangent_program<F>{f}, like, stand_in(x), rest...);
}
/// Does the same by reverse mode.
template <class F, class T, class... R>
found_pattern tensor_pattern_by_rows(captured_tensors& read, F const& f, T const& x, R const&... rest) {
  T const like = stand_in(x);
  boxed_args captured;
  dependent<graph, F> const g = make_fx(f, tracing::fake).with_captures(captured, like, rest...);
  meta const y = g.nodes[g.results[0]].out;
  found_pattern const r = found_on_tensors(read, cotangent_program<F>{f}, like, T::empty(y.sizes, y.type), rest...);
  return of_transposed(r, y);
}

/// Calls `call(f, rest...)` with the captures that a closure declares as further arguments.
template <class F, class Call, class... R>
constexpr auto with_open_captures(F const& f, Call const& call, R const&... rest) {
  if constexpr (std::is_same_v<decltype(captures_of(f)), std::tuple<>>) return call(f, rest...);
  else return std::apply([&](auto const&... c) { return call(without_captures(f), rest..., c...); }, captures_of(f));
}
template <class X>
constexpr bool can_have_pattern() {
  constexpr bool one = value<X>;
  static_assert(one, "varve: sparsity, sparse_jacobian: x must be one value; flatten a tree into a vector");
  if constexpr (one) return require_derivative<X>();
  else return false;
}
template <class F, class X, class... R>
constexpr found_pattern jacobian_pattern(F const& f, X const& x, R const&... rest) {
  if constexpr (memory_ref<X>) {
    return jacobian_pattern(f, viewed(x), rest...);
  } else if constexpr (!can_have_pattern<X>()) {
    return {};
  } else if constexpr (dynamic_value<X>) {
    captured_tensors read;
    return tensor_pattern(read, f, x, rest...);
  } else {
    return with_open_captures(
        f,
        [&](auto const& g, auto const&... r) {
          return traced_pattern(trace_of_all(x, r...), g, meta_of(x), meta_of(r)...);
        },
        rest...);
  }
}
} // namespace detail

/// The function object that `sparsity` returns.
template <int A, class F>
struct sparsity_function {
  [[no_unique_address]] F f;
  template <class... X>
  constexpr sparsity_pattern operator()(X const&... x) const {
    if constexpr (!detail::require_argument<A, sizeof...(X)>()) return {};
    else
      return detail::with_argument_first<A>(
          f,
          [](auto const& g, auto const&... v) {
            detail::found_pattern const found = detail::jacobian_pattern(g, v...);
            return found.pattern;
          },
          x...);
  }
};
/// Returns the pattern of the Jacobian of f: `sparsity(f)(x, rest...)` has a row for each element of the result and a
/// column for each element of x. It contains every entry that the Jacobian may have for any elements of x; it may
/// contain others. It depends on shapes and dtypes, on constants of f, and on the elements of integer and bool tensors
/// among `rest` and the captures, such as indices. Elements of x are not read. A floating 0 among the constants counts
/// for static values only, because a tensor's function may read it from a variable.
///
/// `sparsity<1>(f)(a, x)` is the pattern of the Jacobian by argument 1; negative numbers count from the last argument.
///
/// Works on static values, also in constant expressions, and on tensors. `f` is traced once, with its derivative. Loops
/// are followed step by step, or until nothing grows if the number of steps is unknown; of branches both count.
///
/// Errors: what cannot be traced; `value_error` if a size depends on data.
template <int A = 0, class F>
constexpr sparsity_function<A, F> sparsity(F f) {
  return {f};
}
namespace detail {
/// The pattern that `Make{}()` finds, as a constant.
template <class Make>
struct pattern_constant {
  struct extents {
    int rows, columns, count;
  };
  static constexpr extents compute() {
    found_pattern const f = Make{}();
    return {f.pattern.rows, f.pattern.columns, f.pattern.count()};
  }
  static constexpr auto make() {
    constexpr extents e = compute();
    found_pattern const f = Make{}();
    return static_pattern<e.rows, e.columns, e.count>(f.pattern.view());
  }
};
template <int A, class F, class... S>
consteval bool require_specs() {
  constexpr bool possible = std::is_empty_v<F> && (S::fixed && ...);
  static_assert(possible, "varve: sparsity: for specs the function must capture nothing, and sizes must be numbers");
  return require_argument<A, sizeof...(S)>() && possible;
}
} // namespace detail
/// Returns the pattern as a constant: `constexpr auto p = sparsity(f, spec<double, 100>)`. `f` must capture nothing.
template <int A = 0, class F, class... S>
  requires(sizeof...(S) > 0)
constexpr auto sparsity(F, S...) {
  if constexpr (detail::require_specs<A, F, S...>()) {
    constexpr auto make = [] {
      return detail::with_argument_first<A>(
          F{}, [](auto const& g, auto const&... m) { return detail::traced_pattern(nullptr, g, m...); }, S::info()...);
    };
    return detail::pattern_constant<decltype(make)>::make();
  } else {
    return static_pattern<0, 0, 0>{};
  }
}

/// The function object that `hessian_sparsity` returns.
template <int A, class F>
struct hessian_sparsity_function {
  [[no_unique_address]] F f;
  template <class... X>
  constexpr sparsity_pattern operator()(X const&... x) const {
    if constexpr (!detail::require_argument<A, sizeof...(X)>()) return {};
    else
      return detail::with_argument_first<A>(
          f,
          [](auto const& g, auto const&... v) {
            detail::found_pattern const found = detail::jacobian_pattern(grad(g), v...);
            detail::found_pattern const both = detail::with_mirror_images(found);
            return both.pattern;
          },
          x...);
  }
};
/// Returns the pattern of the Hessian of a function with a scalar result: `hessian_sparsity(f)(x, rest...)`, or
/// `hessian_sparsity<1>(f)(a, x)` for the second derivatives by argument 1. It is the pattern of the Jacobian of the
/// gradient, with the mirror image of each entry.
template <int A = 0, class F>
constexpr hessian_sparsity_function<A, F> hessian_sparsity(F f) {
  return {f};
}
/// Returns the pattern of the Hessian as a constant, as `sparsity` does: `hessian_sparsity(f, spec<double, 100>)`.
template <int A = 0, class F, class... S>
  requires(sizeof...(S) > 0)
constexpr auto hessian_sparsity(F, S...) {
  if constexpr (detail::require_specs<A, F, S...>()) {
    constexpr auto make = [] {
      return detail::with_argument_first<A>(
          F{},
          [](auto const& g, auto const&... m) {
            detail::found_pattern const f = detail::traced_pattern(nullptr, grad(g), m...);
            return detail::with_mirror_images(f);
          },
          S::info()...);
    };
    return detail::pattern_constant<decltype(make)>::make();
  } else {
    return static_pattern<0, 0, 0>{};
  }
}

} // namespace varve
