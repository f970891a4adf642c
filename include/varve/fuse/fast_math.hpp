// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fuse/graph.hpp>
#include <varve/fuse/sized.hpp>
#include <varve/fuse/table_driven.hpp>
#include <varve/op/add.hpp>
#include <varve/op/mul.hpp>
#include <varve/pass/real_arithmetic.hpp>

namespace varve {

namespace fusion {
/// A function that is fused with `fast_math`.
template <class F>
struct relaxed {
  [[no_unique_address]] F f;
};
template <class F, class... A>
struct traced<relaxed<F>, A...> {
  constexpr graph operator()() const {
    graph const g = traced<F, A...>{}();
    if (has_mutation(g)) return g;
    graph const better = varve::prepare(g);
    return varve::detail::relaxed<dependent<mul_t, F>>(better);
  }
};
template <class F, bool Branches, class... A>
struct trial_trace<relaxed<F>, Branches, A...> : trial_trace<F, Branches, A...> {};
template <class F>
struct undifferentiated<relaxed<F>> : undifferentiated<F> {};
template <class F, class... S>
struct traced_for_samples<relaxed<F>, S...> : traced_for_samples<F, S...> {
  static constexpr graph at(int point) {
    graph const g = traced_for_samples<F, S...>::at(point);
    if (has_mutation(g)) return g;
    graph const better = varve::prepare(g);
    return varve::detail::relaxed<dependent<mul_t, F>>(better);
  }
};
} // namespace fusion

/// The type of `fast_math`.
struct fast_math_t {};
/// A tag that lets the fused program compute any expression that is equal in real arithmetic, instead of following IEEE
/// arithmetic operation by operation: `fuse(f, fast_math)`, `fuse(f, table_driven, fast_math)`, `fuse<spec<float,
/// dim<"n">>>(f, fast_math)`.
///
/// Sums and products may be reordered, divisions may become multiplications by reciprocals, products with 0 become 0,
/// and terms that cancel are removed. The program assumes that no operation produces an infinity or NaN, even where its
/// result is not selected. The sign of a zero is assumed not to matter.
///
/// This goes beyond `-ffast-math` of compilers. Expressions that are equal as functions of the inputs are computed
/// once, however they are written, including exponentials and roots. This removes work that reverse mode repeats in
/// another form. Constants that agree to 12 digits count as equal. Compile time grows two- to threefold (g++ 12: 3.5 ms
/// more per node in graphs of thousands of nodes).
inline constexpr fast_math_t fast_math{};

template <class F>
  requires std::is_empty_v<F>
constexpr fused<fusion::relaxed<F>> fuse(F const&, fast_math_t) {
  return {};
}
namespace detail {
/// Instantiates the tensor tables of the operators that `relax` writes, since the program itself may call none of them.
template <class G>
void relaxed_operators() {
  (void)registered_table<dependent<add_t, G>, 0>(), (void)registered_table<dependent<sub_t, G>, 0>(),
      (void)registered_table<dependent<mul_t, G>, 0>(), (void)registered_table<dependent<div_t, G>, 0>(),
      (void)registered_table<dependent<neg_t, G>, 0>(), (void)registered_table<dependent<expand_t, G>, 1>();
}
} // namespace detail

/// Plans a graph made at run time for running as a whole, with the freedoms of `fast_math`. Errors are those of
/// `fuse(graph)`.
template <class G>
  requires std::is_same_v<G, graph>
fused_graph fuse(G const& g, fast_math_t) {
  detail::relaxed_operators<G>();
  G const better = fusion::typed_and_optimized(g);
  G const relaxed = detail::relaxed<>(better);
  return fused_graph(fusion::prepare_tables<>(relaxed));
}
template <class F, class How>
constexpr fused<fusion::relaxed<F>, How> fuse(F const&, How, fast_math_t) {
  return {};
}
template <auto First, auto... Rest, class F>
  requires fusion::specs<First, Rest...>
constexpr auto fuse(F const& f, fast_math_t) {
  return fuse<First, Rest...>(fusion::relaxed<F>{f});
}
template <auto First, auto... Rest, class F, class How>
  requires fusion::specs<First, Rest...>
constexpr auto fuse(F const& f, How how, fast_math_t) {
  return fuse<First, Rest...>(fusion::relaxed<F>{f}, how);
}

} // namespace varve
