// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/sparse/plan.hpp>
#include <varve/transform/vmap.hpp>

/// @file
/// Sparse Jacobians and Hessians by compression: columns, or rows, that share no entry share a pass. All passes run at
/// once, by `vmap`.
namespace varve {

/// How `sparse_jacobian` or `sparse_hessian` compresses, as an argument.
template <sparse_compression How>
struct compressed_by {};
/// Option of `sparse_jacobian`: forward mode only, a pass for each color of columns.
inline constexpr compressed_by<sparse_compression::columns> by_columns{};
/// Option of `sparse_jacobian`: reverse mode only, a pass for each color of rows. f needs no `jvp` rule.
inline constexpr compressed_by<sparse_compression::rows> by_rows{};
/// Option of `sparse_hessian`: an acyclic coloring, which may need fewer passes; entries are recovered by substitution.
/// The number of steps is the depth of the trees of two colors, for a band as long as the matrix: it pays off for
/// expensive functions whose pattern is no band.
inline constexpr compressed_by<sparse_compression::substitution> by_substitution{};

namespace detail {
/// The function whose Jacobian is computed: f, or the gradient of f.
template <bool OfGradient, class F>
constexpr auto differentiated(F const& f) {
  if constexpr (OfGradient) return grad(f);
  else return f;
}

template <bool OfGradient, sparse_compression How, class F, class... M>
constexpr found_pattern found_in_trace(graph_builder* outer, F const& f, M const&... m) {
  if constexpr (How == sparse_compression::rows) {
    return traced_pattern_by_rows(outer, f, m...);
  } else if constexpr (OfGradient) {
    found_pattern const found = traced_pattern(outer, f, m...);
    return with_mirror_images(found);
  } else {
    return traced_pattern(outer, f, m...);
  }
}
/// The pattern of a derivative of `F` for arguments of static kinds. `Given` is `none_t`, or returns the pattern.
template <class F, bool OfGradient, sparse_compression How, class Given, class... Kinds>
struct pattern_maker {
  static constexpr sparsity_pattern pattern() {
    if constexpr (!is_none<Given>) {
      auto const p = Given{}();
      return sparsity_pattern(static_cast<pattern_view>(p));
    } else {
      found_pattern const found =
          found_in_trace<OfGradient, How>(nullptr, differentiated<OfGradient>(F{}), Kinds::info()...);
      return found.pattern;
    }
  }
};

// --- the compressed matrix
inline constexpr auto flat_size = [](dims const& s) { return dims{numel(s)}; };
/// Returns the derivatives of f along seeds [colors, numel of x], flattened.
template <class F, class S, class X, class... R>
constexpr auto compressed_by_columns(F const& f, S const& seeds, X const& x, R const&... rest) {
  auto const column = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
    auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
    return jvp(closure(along, known, r...), std::tuple(at), std::tuple(e)).second;
  };
  auto const count = on_dims([](dims const& s) { return s.sub(0, 1); }, shape_of(seeds));
  auto const shaped = reshape_to(seeds, on_dims(concat, count, shape_of(x)));
  auto const columns = vmap(closure(column, x, captures_of(f), rest...))(shaped);
  static_assert(value<std::remove_const_t<decltype(columns)>>,
                "varve: sparsity, sparse_jacobian: the function must return one value");
  needs_real_tree("sparse_jacobian", columns);
  return reshape_to(columns, on_dims(flat_size, shape_of(columns)));
}
/// Returns the pullbacks of seeds [colors, numel of the result], flattened. `seeds` is a function of the result.
template <class F, class S, class X, class... R>
constexpr auto compressed_by_rows(F const& f, S const& seeds, X const& x, R const&... rest) {
  auto const shaped = [&](auto const& y) {
    auto const flat = seeds(y);
    auto const count = on_dims([](dims const& s) { return s.sub(0, 1); }, shape_of(flat));
    return reshape_to(flat, on_dims(concat, count, shape_of(y)));
  };
  auto const rows = [&] {
    if constexpr (std::is_same_v<X, tensor>) {
      auto const along = [&](auto const& v, auto const&...) { return f(v, rest...); };
      auto const run = vjp(closure(along, captures_of(f), rest...), x);
      needs_real_tree("sparse_jacobian", run.first);
      return vmap([&](X const& e) { return std::get<0>(run.second(e)); })(shaped(run.first));
    } else {
      auto const row = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
        auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
        return std::get<0>(vjp(closure(along, e, known, r...), at).second(e));
      };
      return vmap(closure(row, x, captures_of(f), rest...))(shaped(f(x, rest...)));
    }
  }();
  return reshape_to(rows, on_dims(flat_size, shape_of(rows)));
}

// --- recovery
/// Reads the entries back from the compressed matrix, step by step, by a plan whose sizes are types.
template <class P, int Step = 0, class C>
constexpr auto recovered(C const& compressed) {
  auto const now = gather(compressed, ints<0>{}, P::template read<Step>);
  if constexpr (Step + 1 == P::steps) return now;
  else
    return cat(std::tuple(now, recovered<P, Step + 1>(
                                   scatter_add(compressed, ints<0>{}, P::template subtract<Step>, neg(now)))),
               axis<0>);
}
template <class P, class C>
constexpr auto entries_of(C const& compressed) {
  auto const all = recovered<P>(compressed);
  if constexpr (P::sizes.ordered == 0) return all;
  else return gather(all, ints<0>{}, P::order());
}
/// Does the same by a plan that is data.
template <class C>
constexpr auto entries_of(C compressed, compression const& c) {
  auto const read = [&](C const& from, list<index_t> const& at) {
    return gather(from, dims{0}, index_beside(from, at));
  };
  if constexpr (std::is_same_v<C, tensor>) {
    C all;
    for (recovery_step const& s : c.steps) {
      C const now = read(compressed, s.read);
      all = all.defined() ? C(cat(std::tuple(all, now), dims{0})) : now;
      if (!s.subtract.empty())
        compressed = scatter_add(compressed, dims{0}, index_beside(compressed, s.subtract), C(neg(now)));
    }
    return c.order.empty() ? all : C(read(all, c.order));
  } else {
    return read(compressed, c.steps[0].read);
  }
}
/// Read the entries from the flattened compressed matrix.
template <class P>
struct constant_reader {
  template <class C>
  constexpr auto operator()(C const& flat) const {
    return entries_of<P>(flat);
  }
  static constexpr ints<P::colors> passes() { return {}; }
};
struct plan_reader {
  compression const& c;
  template <class C>
  constexpr auto operator()(C const& flat) const {
    return entries_of(flat, c);
  }
  constexpr dims passes() const { return {c.colors.colors}; }
};
} // namespace detail

/// The function object that `sparse_jacobian` and `sparse_hessian` return.
template <int A, class F, bool OfGradient, sparse_compression How, class Given = none_t>
class sparse_derivative {
public:
  constexpr explicit sparse_derivative(F f, Given given = {}) : f_(f), given_(given) {}

  /// Returns the derivative as a `sparse_matrix`.
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return run([](auto const& pattern, auto const& flat, auto const& read) { return matrix_of(pattern, read(flat)); },
               x...);
  }
  /// Returns the values of the entries alone, of shape [count], for code inside of transforms and compiled functions.
  template <class... X>
  constexpr auto values(X const&... x) const {
    return run([](auto const&, auto const& flat, auto const& read) { return read(flat); }, x...);
  }
  /// Returns the compressed matrix alone, [passes, rows], or [passes, columns] by reverse mode, before entries are read
  /// from it. Reading may take longer than computing a fused derivative: code with a layout of its own reads by
  /// `positions`.
  template <class... X>
  constexpr auto compressed(X const&... x) const {
    return run(
        [](auto const&, auto const& flat, auto const& read) {
          auto const of_passes = [](dims const& all, dims const& n) {
            return dims{n[0], n[0] == 0 ? extent(0) : all[0] / n[0]};
          };
          return detail::reshape_to(flat, on_dims(of_passes, shape_of(flat), read.passes()));
        },
        x...);
  }
  /// Returns the position of each entry in the flattened compressed matrix, in the order of the pattern. Throws
  /// `value_error` for `by_substitution`, where entries have no position.
  template <class... X>
  std::vector<std::int64_t> positions(X const&... x) const {
    return planned(
        [](pattern_view const& p, int, index_t const* read) {
          if (!read && p.count() > 0)
            refuse::argument_is_invalid("sparse_hessian", "entries are not positions of the compressed matrix by "
                                                          "substitution; call values, or use the star coloring");
          return std::vector<std::int64_t>(read, read + p.count());
        },
        x...);
  }
  /// Returns the pattern of the result for these arguments. Computes no derivative.
  template <class... X>
  constexpr sparsity_pattern pattern(X const&... x) const {
    return planned([](pattern_view const& p, int, index_t const*) { return sparsity_pattern(p); }, x...);
  }
  /// Returns the number of passes, which is the number of colors, for these arguments. Computes no derivative.
  template <class... X>
  constexpr int passes(X const&... x) const {
    return planned([](pattern_view const&, int colors, index_t const*) { return colors; }, x...);
  }

private:
  static constexpr bool is_data = std::is_same_v<Given, sparsity_pattern>; // a pattern given at run time
  static constexpr bool is_constant = std::is_empty_v<F> && !is_data;
  [[no_unique_address]] F f_;
  [[no_unique_address]] Given given_;
  [[no_unique_address]] std::conditional_t<is_constant, none_t, detail::shared_plans> plans_{};

  template <class G, class... X>
  using pattern_of_kinds = detail::pattern_maker<G, OfGradient, How, Given, detail::static_kind_of<X>...>;
  template <class G, class X, class... R>
  using static_plan_of = detail::static_plan<pattern_of_kinds<G, X, R...>, How>;
  template <class G>
  static constexpr bool require_constant() {
    constexpr bool fits = std::is_empty_v<G> && !is_data;
    static_assert(fits, "varve: sparse_jacobian: on arrays the function, and the function that returns a pattern, must "
                        "capture nothing; pass values as arguments or through closure(f, captured...)");
    return fits;
  }

  template <class P, class V>
  static constexpr sparse_matrix<V, P> matrix_of(P const& pattern, V const& values) {
    return {pattern, values};
  }
  /// Calls `call(g, x, rest...)` with the argument x to differentiate first, open captures and views.
  template <class Call, class... X>
  constexpr auto opened(Call const& call, X const&... all) const {
    return detail::with_argument_first<A>(
        f_,
        [&]<class V>(auto const& g, V const& x, auto const&... rest) {
          auto const with = [&](auto const& v) {
            return detail::with_open_captures(
                g, [&](auto const& h, auto const&... r) { return call(h, v, r...); }, rest...);
          };
          if constexpr (detail::memory_ref<V>) return with(detail::viewed(x));
          else return with(x);
        },
        all...);
  }
  template <class Give, class... X>
  constexpr auto run(Give const& give, X const&... x) const {
    if constexpr (!detail::require_argument<A, sizeof...(X)>()) return none;
    else
      return opened(
          [&]<class V>(auto const& g, V const& v, auto const&... r) {
            if constexpr (!detail::can_have_pattern<V>()) {
              return none; // instantiate nothing more after the message
            } else {
              detail::needs_real_tree("sparse_jacobian", v);
              if constexpr (std::is_same_v<V, tensor>) return on_tensors(give, g, v, r...);
              else if constexpr (traced_value<V>) return on_traced(give, g, v, r...);
              else return on_arrays(give, g, v, r...);
            }
          },
          x...);
  }
  template <class Give, class... X>
  constexpr auto planned(Give const& give, X const&... x) const {
    if constexpr (!detail::require_argument<A, sizeof...(X)>()) return give(pattern_view{}, 0, nullptr);
    else
      return opened(
          [&]<class V>(auto const& g, V const& v, auto const&... r) {
            if constexpr (!detail::can_have_pattern<V>()) {
              return give(pattern_view{}, 0, nullptr);
            } else if constexpr (std::is_same_v<V, tensor>) {
              auto const p = tensor_plan(g, v, r...);
              return give(p->pattern, p->c.colors.colors, p->c.positions());
            } else if constexpr (traced_value<V>) {
              auto const p = traced_plan<How>(g, v, r...);
              return give(p.pattern, p.c.colors.colors, p.c.positions());
            } else if constexpr (require_constant<std::remove_cvref_t<decltype(g)>>()) {
              using P = static_plan_of<std::remove_cvref_t<decltype(g)>, V, std::remove_cvref_t<decltype(r)>...>;
              return give(P::frozen.pattern, P::colors, P::sizes.ordered == 0 ? P::frozen.read : nullptr);
            } else {
              return give(pattern_view{}, 0, nullptr);
            }
          },
          x...);
  }

  // --- arrays: the plan is a constant
  /// Refuses a given pattern that does not fit the result.
  template <class P, class D, class... X>
  static constexpr bool fits_statically() {
    if constexpr (is_none<Given>) {
      return true;
    } else {
      using shape = decltype(shape_of(std::declval<D const&>()(std::declval<X const&>()...)));
      constexpr bool fits = numel(shape::to_dims()) == P::sizes.rows;
      static_assert(fits, "varve: sparse_jacobian: the given pattern needs a row for each element of the result");
      return fits;
    }
  }
  template <class Give, class G, class X, class... R>
  static constexpr auto on_arrays(Give const& give, G const& g, X const& x, R const&... rest) {
    if constexpr (!require_constant<G>()) {
      return none;
    } else {
      using P = static_plan_of<G, X, R...>;
      auto const f = detail::differentiated<OfGradient>(g);
      if constexpr (!fits_statically<P, decltype(f), X, R...>()) {
        return none;
      } else if constexpr (P::by_rows) {
        using type = decltype(type_fact(f(x, rest...)));
        using T = type_of<static_cast<dtype>(type::to_dims()[0].number())>;
        return give(detail::constant_pattern<P>{},
                    detail::compressed_by_rows(
                        f, [](auto const&) { return P::template seeds<T>; }, x, rest...),
                    detail::constant_reader<P>{});
      } else {
        using T = type_of<static_cast<dtype>(decltype(type_fact(x))::to_dims()[0].number())>;
        return give(detail::constant_pattern<P>{}, detail::compressed_by_columns(f, P::template seeds<T>, x, rest...),
                    detail::constant_reader<P>{});
      }
    }
  }

  // --- traced values: the plan is made while the compiler traces
  template <sparse_compression Way, class G, class X, class... R>
  constexpr detail::sparse_plan traced_plan(G const& g, X const& x, R const&... rest) const {
    detail::found_pattern found;
    if constexpr (is_data) {
      found.pattern = given_;
    } else if constexpr (!is_none<Given>) {
      auto const p = given_();
      sparsity_pattern const own(static_cast<pattern_view>(p));
      found.pattern = own;
    } else {
      detail::found_pattern const traced = detail::found_in_trace<OfGradient, How>(
          detail::trace_of_all(x, rest...), detail::differentiated<OfGradient>(g), meta_of(x), meta_of(rest)...);
      found.pattern = traced.pattern, found.result = traced.result;
    }
    return detail::sparse_plan(found, Way);
  }
  template <class Give, class G, class X, class... R>
  constexpr auto on_traced(Give const& give, G const& g, X const& x, R const&... rest) const {
    static_assert(How != sparse_compression::substitution,
                  "varve: sparse_hessian: by_substitution has no place in a trace of the compiler (fuse, trace); leave "
                  "it out there");
    auto const f = detail::differentiated<OfGradient>(g);
    auto const seeds_of = [&](detail::sparse_plan const& plan, auto const& like) {
      list<double> const all = plan.c.seeds();
      auto const n = static_cast<index_t>(plan.c.colors.of.size());
      return to(detail::table_beside(x, dims{plan.c.colors.colors, n}, all.data()), type_fact(like));
    };
    auto const by_rows = [&](detail::sparse_plan const& plan) {
      return fitting(plan, detail::compressed_by_rows(f, [&](auto const& y) { return seeds_of(plan, y); }, x, rest...));
    };
    auto const by_columns = [&](detail::sparse_plan const& plan) {
      return fitting(plan, detail::compressed_by_columns(f, seeds_of(plan, x), x, rest...));
    };
    if constexpr (How == sparse_compression::rows) {
      auto const plan = traced_plan<How>(g, x, rest...);
      return give(plan.pattern, by_rows(plan), detail::plan_reader{plan.c});
    } else if constexpr (How == sparse_compression::fewest) {
      auto const plan = traced_plan<How>(g, x, rest...);
      using by_column = decltype(by_columns(plan));
      if constexpr (std::is_same_v<by_column, decltype(by_rows(plan))>) {
        return give(plan.pattern, plan.c.by_rows() ? by_rows(plan) : by_columns(plan), detail::plan_reader{plan.c});
      } else { // seen through a transform as another type
        auto const other = traced_plan<sparse_compression::columns>(g, x, rest...);
        return give(other.pattern, by_columns(other), detail::plan_reader{other.c});
      }
    } else {
      auto const plan = traced_plan<How>(g, x, rest...);
      return give(plan.pattern, by_columns(plan), detail::plan_reader{plan.c});
    }
  }

  // --- tensors: plans are kept
  detail::plan_cache* kept_plans() const {
    if constexpr (is_constant) {
      static detail::plan_cache of_this_type;
      return &of_this_type;
    } else {
      return plans_.get();
    }
  }
  template <class G, class T, class... R>
  std::shared_ptr<detail::sparse_plan const> tensor_plan(G const& g, T const& x, R const&... rest) const {
    detail::plan_cache* const kept = kept_plans();
    detail::plan_key key;
    key.add({x.dtype(), x.sizes().as_numbers(), false});
    detail::boxed_call_with<R...> const call(nullptr, nullptr, rest...);
    if constexpr (is_none<Given>) // a given pattern is that for any arguments
      for (auto const& t : call.arguments) key.add(t);
    if (auto plan = kept ? kept->find(key, call) : nullptr) return plan;
    auto const f = detail::differentiated<OfGradient>(g);
    detail::captured_tensors read;
    detail::found_pattern found;
    if constexpr (is_data) found.pattern = given_;
    else if constexpr (!is_none<Given>) found.pattern = sparsity_pattern(static_cast<pattern_view>(given_()));
    else if constexpr (How == sparse_compression::rows) found = detail::tensor_pattern_by_rows(read, f, x, rest...);
    else found = detail::tensor_pattern(read, f, x, rest...);
    if constexpr (OfGradient && is_none<Given>) found = detail::with_mirror_images(found);
    if (index_t const n = x.numel(); n != found.pattern.columns)
      refuse::shapes_do_not_match("sparse_jacobian (the pattern's columns and the elements of x)",
                                  dims{found.pattern.columns}, dims{n});
    auto plan = std::make_shared<detail::sparse_plan const>(found, How);
    // an object without captures shares its plans with later ones, for which a variable may have another tensor
    if (kept && !(is_constant && read.any)) kept->add(key, call, read.known, plan);
    return plan;
  }
  template <class Give, class G, class T, class... R>
  auto on_tensors(Give const& give, G const& g, T const& x, R const&... rest) const {
    auto const plan = tensor_plan(g, x, rest...);
    auto const f = detail::differentiated<OfGradient>(g);
    detail::shared_pattern const pattern{{plan, &plan->pattern}};
    if (plan->pattern.count() == 0) return without_entries(give, f, *plan, pattern, x, rest...);
    auto const seeds = [&](T const& like) {
      list<double> const all = plan->c.seeds();
      auto const n = static_cast<index_t>(plan->c.colors.of.size());
      return T(to(detail::table_beside(x, dims{plan->c.colors.colors, n}, all.data()), like.dtype()));
    };
    auto const result = [&](T const& flat) {
      require_fit(*plan, flat.numel());
      return give(pattern, flat, reader_on<T>{plan->c});
    };
    if constexpr (How == sparse_compression::rows) {
      return result(detail::compressed_by_rows(f, seeds, x, rest...));
    } else if constexpr (How == sparse_compression::fewest) {
      if (plan->c.by_rows()) return result(detail::compressed_by_rows(f, seeds, x, rest...));
    }
    if constexpr (How != sparse_compression::rows)
      return result(detail::compressed_by_columns(f, seeds(x), x, rest...));
  }
  /// Reads entries, of which there may be none.
  template <class T>
  struct reader_on {
    detail::compression const& c;
    T operator()(T const& flat) const { return c.colors.colors == 0 ? flat : T(detail::plan_reader{c}(flat)); }
    dims passes() const { return {c.colors.colors}; }
  };
  /// Returns the result for a pattern without entries. A given one is compared with the result of f.
  template <class Give, class D, class Pattern, class T, class... R>
  static auto without_entries(Give const& give, D const& f, detail::sparse_plan const& plan, Pattern const& pattern,
                              T const& x, R const&... rest) {
    dtype type = plan.result.type;
    if constexpr (!is_none<Given>) {
      T const y = detail::as_tensor(detail::plain(f(x, rest...)));
      if (index_t const n = y.numel(); n != plan.pattern.rows) refuse_rows(plan.pattern.rows, n);
      type = y.dtype();
    }
    return give(pattern, T::empty({0}, type), reader_on<T>{plan.c});
  }
  /// Refuses a given pattern that does not fit the result.
  static constexpr void require_fit(detail::sparse_plan const& plan, index_t have) {
    index_t const n = plan.c.by_rows() ? plan.pattern.columns : plan.pattern.rows;
    if (have != n * plan.c.colors.colors) refuse_rows(n, have / plan.c.colors.colors);
  }
  template <class C>
  static constexpr C fitting(detail::sparse_plan const& plan, C const& flat) {
    if (extent const have = numel(to_dims(shape_of(flat))); have.is_number()) require_fit(plan, have.number());
    return flat;
  }
  [[noreturn]] static constexpr void refuse_rows(index_t rows, index_t elements) {
    refuse::shapes_do_not_match("sparse_jacobian (the pattern's rows and the elements of the result)", dims{rows},
                                dims{elements});
  }
};

/// Returns the Jacobian of f as a sparse matrix: `auto const jacobian = sparse_jacobian(f); auto const j = jacobian(x,
/// rest...)`. A row is an element of the result, a column an element of x, both in row-major order. `j.values` are the
/// entries in CSR order of `j.pattern()`; `jacobian.values(x)` returns them alone, for use under `vmap`, `grad`,
/// `compile` and `fuse`.
///
/// The pattern (`sparsity`) is found and colored once for each set of shapes, dtypes and elements of integer tensors;
/// copies of the object share it. Columns of one color are computed by one forward pass, or rows of one color by one
/// reverse pass, whichever need fewer; `by_columns` and `by_rows` choose. All passes run at once by `vmap`. For arrays
/// all of this happens in the compiler, and f must capture nothing.
///
/// `sparse_jacobian<1>(f)(a, x)` differentiates by argument 1; negative numbers count from the last argument.
///
/// If a tensor that f captures is replaced by another one, make a new object; integers that were written into are
/// noticed. A function that captures nothing but reads tensors of global variables is traced in each call. Other global
/// variables are not noticed: what f reads must be an argument or a capture.
///
/// Errors: those of `sparsity`, `jvp` and `vjp`; `value_error` for more than one result.
///
/// Anchors: `jacfwd`, `jacrev` of sparsejac (JAX), `sparse_jac_for` of CppAD, SparseDiffTools.jl.
template <int A = 0, sparse_compression How = sparse_compression::fewest, class F>
constexpr auto sparse_jacobian(F f, compressed_by<How> = {}) {
  return sparse_derivative<A, F, false, How>(f);
}
/// Returns the Jacobian by a pattern of yours: a `sparsity_pattern`, or for arrays a function object without captures
/// that returns one. Entries that the pattern does not have are lost, and corrupt others. Throws `shape_error` for
/// patterns of another size.
template <int A = 0, sparse_compression How = sparse_compression::fewest, class F, class P>
  requires(std::is_same_v<P, sparsity_pattern> || requires(P p) { static_cast<pattern_view>(p()); })
constexpr auto sparse_jacobian(F f, P pattern, compressed_by<How> = {}) {
  return sparse_derivative<A, F, false, How, P>(f, pattern);
}

/// Returns the Hessian of a function with a scalar result as a sparse matrix: `sparse_hessian(f)(x, rest...)`. It has
/// both mirror images of each entry. Products of the Hessian with seed vectors are computed by forward over reverse
/// mode, one for each color of a star coloring, or of an acyclic coloring (`by_substitution`). The Hessian is assumed
/// to be symmetric; a derivative of your own that makes it asymmetric gives wrong entries. `sparse_hessian<1>(f)` is
/// that by argument 1. Everything else is as for `sparse_jacobian`.
template <int A = 0, sparse_compression How = sparse_compression::star, class F>
constexpr auto sparse_hessian(F f, compressed_by<How> = {}) {
  return sparse_derivative<A, F, true, How>(f);
}
/// Returns the Hessian by a pattern of yours, which must be symmetric.
template <int A = 0, sparse_compression How = sparse_compression::star, class F, class P>
  requires(std::is_same_v<P, sparsity_pattern> || requires(P p) { static_cast<pattern_view>(p()); })
constexpr auto sparse_hessian(F f, P pattern, compressed_by<How> = {}) {
  return sparse_derivative<A, F, true, How, P>(f, pattern);
}

} // namespace varve
