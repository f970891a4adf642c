// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/cat.hpp>
#include <varve/op/randn.hpp>
#include <varve/op/slice.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/vmap.hpp>

namespace varve {

/// The number of slices that `vmap` processes at once, as in `vmap(f, chunk_size{64})`. For `jacrev` it is the number
/// of rows, for `jacfwd` and `hessian` the number of columns. It bounds memory and does not change the result. Works on
/// tensors only. Throws `value_error` unless positive.
struct chunk_size {
  index_t n;
  explicit chunk_size(index_t size) : n(size) {
    if (size < 1)
      refuse::with<value_error>(("varve: chunk_size must be positive, not " + std::to_string(size)).c_str());
  }
};

namespace detail {
/// Returns the elements from `from` to `to` along the mapped dimension of each leaf of an argument.
template <auto D, class X>
X part_of(X const& x, index_t from, index_t to) {
  if constexpr (is_none<decltype(D)>) return x;
  else return tree_map([&](auto const& v) { return slice(v, D, from, to); }, x);
}
template <auto... D, class Y>
Y joined_parts(std::vector<Y> const& parts) {
  if constexpr (tuple_node<Y>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        std::vector<std::tuple_element_t<I, Y>> p;
        for (auto const& y : parts) p.push_back(std::get<I>(y));
        return joined_parts<dim_at<I, D...>()>(p);
      };
      return Y{one(std::integral_constant<std::size_t, K>{})...};
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  } else if constexpr (is_none<decltype(dim_at<0, D...>())>) {
    return parts[0];
  } else if constexpr (is_tree_node<Y>) { // a vector or an aggregate: one entry of out_dims serves all its leaves
    std::vector<std::vector<tensor>> leaves;
    for (auto const& y : parts) {
      std::size_t k = 0;
      tree_for_each(
          [&](tensor const& v) {
            if (k == leaves.size()) leaves.emplace_back();
            leaves[k++].push_back(v);
          },
          y);
    }
    std::size_t k = 0;
    return tree_map([&](tensor const&) { return cat(leaves[k++], dim_at<0, D...>()); }, parts[0]);
  } else {
    return cat(parts, dim_at<0, D...>());
  }
}
} // namespace detail

/// The function object that `vmap` returns for a `chunk_size`.
template <class F, class In, class Out, random_policy R>
struct chunked_vmap_function;
template <class F, auto... In, auto... Out, random_policy R>
struct chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> {
  vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> f;
  index_t chunk;

  chunked_vmap_function(F g, index_t n) : f{static_cast<F&&>(g)}, chunk(n) {} // clang 18 does not compile the aggregate

  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(any_dynamic<X...>, "varve: vmap: chunk_size is for tensors; static values are mapped as a whole");
    return call(std::index_sequence_for<X...>{}, x...);
  }

private:
  template <std::size_t... K, class... X>
  auto call(std::index_sequence<K...>, X const&... x) const {
    auto const sizes = detail::joined(detail::mapped_sizes<detail::dim_at<K, In...>()>(x)...);
    index_t const n = to_dims(detail::common_size(sizes))[0];
    auto const run = [&](index_t from, index_t to) {
      return f(detail::part_of<detail::dim_at<K, In...>()>(x, from, to)...);
    };
    if (n <= chunk) return f(x...);
    // With `randomness::same`, every chunk starts from the same generator state and so draws the same numbers.
    generator const start = default_generator;
    std::vector<decltype(run(0, 0))> parts;
    for (index_t from = 0; from < n; from += chunk) {
      if constexpr (R == random_policy::same) default_generator = start;
      parts.push_back(run(from, from + chunk < n ? from + chunk : n));
    }
    return detail::joined_parts<Out...>(parts);
  }
};
template <random_policy R = random_policy::error, class F>
auto vmap(F f, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<0>, out_dims_t<0>, R>(static_cast<F&&>(f), c.n);
}
template <class F, auto... In, random_policy R = random_policy::error>
auto vmap(F f, in_dims_t<In...>, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<0>, R>(static_cast<F&&>(f), c.n);
}
template <class F, auto... In, auto... Out, random_policy R = random_policy::error>
auto vmap(F f, in_dims_t<In...>, out_dims_t<Out...>, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R>(static_cast<F&&>(f), c.n);
}

namespace detail {
/// Calls `f` on one row of the basis after the other and stacks the results.
template <class F, class B>
auto row_by_row(F const& f, B const& basis) {
  std::vector<std::remove_cvref_t<decltype(f(basis))>> rows;
  for (index_t k = 0, n = basis.sizes()[0]; k < n; ++k) rows.push_back(f(select(basis, 0, k)));
  return stack(rows);
}
} // namespace detail

/// Returns the function `jacrev(f)` that maps the pullback over k unit vectors at a time, for `jacrev(f,
/// chunk_size{k})`. With k = 1 it calls the pullback once per unit vector, without `vmap`, so that backward may use
/// operations that `vmap` refuses.
template <class F>
auto jacrev(F f, chunk_size c) {
  return [f, c](auto const& x, auto const&... rest) {
    auto const run = vjp([&](auto const& v) { return f(v, rest...); }, x);
    auto const row = [&](auto const& e) { return std::get<0>(run.second(e)); };
    auto const basis = detail::basis(run.first);
    auto const rows = c.n == 1 && basis.sizes()[0] > 0 ? detail::row_by_row(row, basis) : vmap(row, c)(basis);
    return detail::reshape_to(rows, detail::concat(run.first.sizes(), x.sizes()));
  };
}

/// Returns the function `jacfwd(f)` that pushes f forward along k unit vectors at a time, for `jacfwd(f,
/// chunk_size{k})`.
template <class F>
auto jacfwd(F f, chunk_size c) {
  return [f, c](auto const& x, auto const&... rest) {
    auto const column = [&](auto const& e) {
      return jvp([&](auto const& v) { return f(v, rest...); }, std::tuple(x), std::tuple(e)).second;
    };
    return detail::as_columns(vmap(column, in_dims<0>, out_dims<-1>, c)(detail::basis(x)), x);
  };
}
/// Returns `jacfwd(jacrev(f, c), c)`, the function `hessian(f)` that works in chunks.
template <class F>
auto hessian(F f, chunk_size c) {
  return jacfwd(jacrev(f, c), c);
}

} // namespace varve
