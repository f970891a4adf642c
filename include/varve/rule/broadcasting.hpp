// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/fwd.hpp>

namespace varve {

/// Returns whether two facts are equal: as a type if both are types, else as a `bool`.
template <fact A, fact B>
constexpr auto same_fact(A const& a, B const& b) {
  if constexpr (is_ints<A> && is_ints<B>) return std::bool_constant<(A::to_dims() == B::to_dims())>{};
  else return to_dims(a) == to_dims(b);
}

namespace detail {
/// Returns an attribute that a user passed (`axis<1>`, an integer, a list, a flag, a dtype) as a fact.
template <class T>
constexpr auto as_fact(T const& t) {
  if constexpr (fact<T>) return t;
  else if constexpr (std::is_enum_v<T>) return dims{static_cast<index_t>(t)};
  else return dims(t);
}
inline constexpr auto identity = [](auto const& v) { return viewed(v); };

/// Returns the axes of `from` along which a broadcast from `to` repeated elements, including leading axes.
inline constexpr auto repeated_axes = [](dims const& from, dims const& to) {
  dims r;
  int const shift = from.n - to.n;
  for (int k = 0; k < from.n; ++k)
    if (k < shift || (!known_equal(to[k - shift], from[k]) && to[k - shift] == 1 && from[k] != 1)) r.push_back(k);
  return r;
};
} // namespace detail

namespace detail {
/// Sums a value to a shape as `sum_to_size` does, but returns a value that has the shape and dtype already as it is,
/// even for rank 0.
inline constexpr struct sum_to_shape_t {
  template <value G, fact S>
  constexpr auto operator()(G const& g, S const& sizes) const {
    auto const type = on_dims(
        [](dims const& t) {
          return category(static_cast<dtype>(t[0])) < 2 ? dims{static_cast<index_t>(dtype::int64)} : t;
        },
        type_fact(g));
    return choose(
        same_fact(shape_of(g), sizes), [&](auto const& v) { return to(detail::viewed(v), type); },
        [&](auto const& v) {
          return reshape(sum(v, on_dims(detail::repeated_axes, shape_of(v), sizes), keepdim), sizes);
        },
        g);
  }
} sum_to_shape{};
inline constexpr auto rank_of_sizes = [](dims const& s) { return dims{s.n}; };
} // namespace detail

/// Sums a value to a shape that broadcasts to its own (`Tensor.sum_to_size`): the transpose of broadcasting. Like `sum`
/// it returns int64 for integers and bool, even if there is nothing to sum. A result of rank 0 is always a new value.
/// Otherwise a value that has the shape and that dtype already is returned as it is.
inline constexpr struct sum_to_size_t {
  template <value G, fact S>
  constexpr auto operator()(G const& g, S const& sizes) const {
    return choose(
        same_fact(on_dims(detail::rank_of_sizes, sizes), ints<0>{}),
        [](auto const& v) { return dependent<clone_t, decltype(v)>{}(detail::sum_to_shape(v, ints<>{})); },
        [&](auto const& v) { return detail::sum_to_shape(v, sizes); }, g);
  }
} sum_to_size{};

/// Expands a value to a shape. Returns the value itself if it has the shape already.
inline constexpr struct broadcast_to_t {
  template <value X, fact S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    return choose(same_fact(shape_of(x), sizes), detail::identity, [&](auto const& v) { return expand(v, sizes); }, x);
  }
} broadcast_to{};

namespace detail {
/// Both operands are tensors, so that `alike` can detect the common case, one dtype and shape, without copying either.
template <class A, class B>
concept both_tensors = std::is_same_v<A, tensor> && std::is_same_v<B, tensor>;
template <class A, class B>
bool alike(A const& a, B const& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes();
}
/// Returns a tangent in the dtype and shape of the result that it belongs to.
template <value D, value Y>
constexpr auto match(D const& d, Y const& y) {
  if constexpr (both_tensors<D, Y>) {
    if (alike(d, y)) return d;
  }
  return broadcast_to(to(d, type_fact(y)), shape_of(y));
}
/// Returns a cotangent in the dtype and shape of the operand that it belongs to, summed over repeated axes.
template <value G, value X>
constexpr auto unmatch(G const& g, X const& x) {
  if constexpr (both_tensors<G, X>) {
    if (alike(g, x)) return g;
  }
  return to(detail::sum_to_shape(g, shape_of(x)), type_fact(x));
}
} // namespace detail

namespace detail {
/// Returns the rank of an operand as its rule sees it, without the mapped dimension.
template <class V, class F>
constexpr int logical_rank(operand<V, F> const& o) {
  return rank_of(o.value) - static_cast<int>(static_cast<bool>(o.batched));
}
inline constexpr auto pad_after_batch = [](dims const& sizes, dims const& rank) {
  dims r{sizes[0]};
  for (int k = sizes.n - 1; k < rank[0]; ++k) r.push_back(1);
  for (int k = 1; k < sizes.n; ++k) r.push_back(sizes[k]);
  return r;
};
inline constexpr auto prepend = [](dims const& sizes, dims const& n) {
  dims r = sizes;
  return r.insert(0, n[0]);
};
/// Returns axes increased by 1, for a value whose mapped dimension was moved to the front.
inline constexpr auto shifted = [](dims const& axes) {
  dims r = axes;
  for (int k = 0; k < r.n; ++k) ++r[k];
  return r;
};
inline constexpr auto drop_first = [](dims const& sizes) {
  dims r = sizes;
  return r.erase(0);
};
template <class R, class V>
constexpr auto rank_fact(V const& v, int less) {
  if constexpr (is_ints<R>) return ints<R::size()>{};
  else return dims{rank_of(v) - less};
}
} // namespace detail

/// Returns the rank of an operand without the mapped dimension, as a fact.
template <class V, class F>
constexpr auto logical_rank_fact(operand<V, F> const& o) {
  if constexpr (std::is_same_v<F, bool>) return dims{detail::logical_rank(o)};
  else
    return on_dims([](dims const& s, dims const& b) { return dims{s.n - b[0]}; }, shape_of(o.value),
                   ints<F::value ? 1 : 0>{});
}

/// Inserts dimensions of size 1 after the mapped one, so that the operand broadcasts against others of logical rank
/// `rank`.
template <class V, class F, fact R>
constexpr auto align(operand<V, F> const& o, R const& rank) {
  if constexpr (std::is_same_v<F, bool> && std::is_same_v<R, dims>)
    if (!o.batched || detail::logical_rank(o) >= rank[0]) return V(o.value); // nothing to insert, the common case
  return choose(
      o.batched,
      [&](auto const& v) {
        auto s = on_dims(detail::pad_after_batch, shape_of(v), rank);
        return choose(same_fact(s, shape_of(v)), detail::identity, [&](auto const& w) { return reshape(w, s); }, v);
      },
      detail::identity, o.value);
}

/// Returns the operand with its mapped dimension in front. An operand that is not mapped is repeated `n` times (a view
/// for tensors).
template <class V, class F, fact N>
constexpr auto materialize(operand<V, F> const& o, N const& n) {
  return choose(
      o.batched, detail::identity, [&](auto const& v) { return expand(v, on_dims(detail::prepend, shape_of(v), n)); },
      o.value);
}

} // namespace varve
