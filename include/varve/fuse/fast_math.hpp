// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fuse/graph.hpp>
#include <varve/fuse/sized.hpp>
#include <varve/fuse/table_driven.hpp>
#include <varve/op/add.hpp>
#include <varve/op/mul.hpp>
#include <varve/pass/real_arithmetic.hpp>

namespace varve {

namespace loop {
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
template <class F, class... S>
struct traced_for_samples<relaxed<F>, S...> : traced_for_samples<F, S...> {
  static constexpr graph at(int point) {
    graph const g = traced_for_samples<F, S...>::at(point);
    if (has_mutation(g)) return g;
    graph const better = varve::prepare(g);
    return varve::detail::relaxed<dependent<mul_t, F>>(better);
  }
};
} // namespace loop

/// The type of `fast_math`.
struct fast_math_t {};
/// `fuse(f, fast_math)`, `fuse(f, table_driven, fast_math)`, `fuse<spec<float, dim<"n">>>(f, fast_math)`: the program
/// may compute what is equal in real arithmetic instead of what IEEE arithmetic says operation by operation: sums and
/// products in another order, reciprocals, 0 for products with 0, what cancels left out. It takes for granted that no
/// operation, also one whose result is not chosen, gives an infinity or NaN, and that the sign of a zero does not
/// matter. As `-ffast-math` of compilers, and beyond: equal functions of the inputs are found however they are written,
/// exponentials and roots included, so that what reverse mode computes twice in different words is computed once.
/// Constants that agree to 12 digits are taken for equal. Compilers need two to three times the time (g++ 12: 3.5 ms
/// more for each node of thousands).
inline constexpr fast_math_t fast_math{};

template <class F>
  requires std::is_empty_v<F>
constexpr fused<loop::relaxed<F>> fuse(F const&, fast_math_t) {
  return {};
}
namespace detail {
/// Makes the operators that `relax` writes with known to tensors: the program may call none of them.
template <class G>
void relaxed_operators() {
  (void)registered_table<dependent<add_t, G>, 0>(), (void)registered_table<dependent<sub_t, G>, 0>(),
      (void)registered_table<dependent<mul_t, G>, 0>(), (void)registered_table<dependent<div_t, G>, 0>(),
      (void)registered_table<dependent<neg_t, G>, 0>(), (void)registered_table<dependent<expand_t, G>, 1>();
}
} // namespace detail

/// A graph made at run time.
template <class G>
  requires std::is_same_v<G, graph>
fused_graph fuse(G const& g, fast_math_t) {
  detail::relaxed_operators<G>();
  G const better = loop::typed_and_optimized(g);
  G const relaxed = detail::relaxed<>(better);
  return fused_graph(loop::prepare_tables<>(relaxed));
}
template <class F, class How>
constexpr fused<loop::relaxed<F>, How> fuse(F const&, How, fast_math_t) {
  return {};
}
template <auto First, auto... Rest, class F>
  requires loop::specs<First, Rest...>
constexpr auto fuse(F const& f, fast_math_t) {
  return fuse<First, Rest...>(loop::relaxed<F>{f});
}
template <auto First, auto... Rest, class F, class How>
  requires loop::specs<First, Rest...>
constexpr auto fuse(F const& f, How how, fast_math_t) {
  return fuse<First, Rest...>(loop::relaxed<F>{f}, how);
}

} // namespace varve
