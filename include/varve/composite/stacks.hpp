// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/flatten.hpp>
#include <varve/composite/windows.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/unbind.hpp>

/// @file
/// Joins and splits with NumPy's names. Values are passed as to `cat`: in a tuple or a `std::vector`. The parts of a
/// static value are returned as a tuple.
namespace varve {

namespace detail {
/// Applies `f` to each value of a tuple or sequence.
template <class V, class F>
constexpr auto each(V const& values, F const& f) {
  if constexpr (tuple_like<V>) {
    return std::apply([&](auto const&... v) { return std::make_tuple(f(v)...); }, values);
  } else {
    if (values.size() == 0) refuse::argument_is_invalid("stack", "at least one value is needed");
    std::vector<std::remove_cvref_t<decltype(f(values[0]))>> r;
    for (auto const& v : values) r.push_back(f(v));
    return r;
  }
}
template <class V>
constexpr int rank_of_first(V const& values) {
  if constexpr (tuple_like<V>) return rank_of(std::get<0>(values));
  else return values.size() == 0 ? 0 : rank_of(values[0]);
}
} // namespace detail

/// Joins values along axis 1, or vectors along axis 0 (`torch.hstack`).
inline constexpr struct hstack_t {
  template <class V>
  constexpr auto operator()(V const& values) const {
    auto const rows = detail::each(values, atleast_1d);
    if constexpr (detail::tuple_like<V>) {
      if constexpr (is_ints<std::remove_cvref_t<decltype(shape_of(std::get<0>(rows)))>>)
        return cat(rows, ints<(decltype(shape_of(std::get<0>(rows)))::to_dims().n > 1)>{});
      else return cat(rows, dims{detail::rank_of_first(rows) > 1});
    } else return cat(rows, dims{detail::rank_of_first(rows) > 1});
  }
} hstack{};
/// Joins values along axis 0, with vectors as rows (`torch.vstack`).
inline constexpr struct vstack_t {
  template <class V>
  constexpr auto operator()(V const& values) const {
    return cat(detail::each(values, atleast_2d), axis<0>);
  }
} vstack{};
/// Joins values along axis 2 (`torch.dstack`).
inline constexpr struct dstack_t {
  template <class V>
  constexpr auto operator()(V const& values) const {
    return cat(detail::each(values, atleast_3d), axis<2>);
  }
} dstack{};
/// Joins matrices, and vectors as columns, along axis 1 (`torch.column_stack`).
inline constexpr struct column_stack_t {
  template <class V>
  constexpr auto operator()(V const& values) const {
    auto const column = [](auto const& v) {
      auto const as_column = [](dims const& s) { return s.n < 2 ? dims{numel(s), 1} : s; };
      return detail::reshape_to(v, on_dims(as_column, shape_of(v)));
    };
    return cat(detail::each(values, column), axis<1>);
  }
} column_stack{};

namespace detail {
/// Returns the margins of block K: the columns of the blocks before it and of those after it.
template <int K>
inline constexpr auto columns_beside = [](auto const&... shapes) {
  extent const own[] = {shapes[1]...};
  dims r{0, 0};
  for (int k = 0; k < static_cast<int>(sizeof...(shapes)); ++k)
    if (k != K) r[k > K] += own[k];
  return r;
};
inline constexpr auto as_block = [](auto const& v) {
  if (rank_of(v) > 2) refuse::argument_is_invalid("block_diag", "a block has two dimensions at most");
  return atleast_2d(v);
};
template <class V>
constexpr auto blocks_of_tuple(V const& values) {
  return std::apply(
      [](auto const&... v) {
        auto const type = common_type(v...);
        auto const blocks = std::make_tuple(as_block(to(v, type))...);
        return [&]<std::size_t... K>(std::index_sequence<K...>) {
          auto const margins = [&](auto k) {
            return on_dims(columns_beside<decltype(k)::value>, shape_of(std::get<K>(blocks))...);
          };
          return cat(std::make_tuple(constant_pad_nd(std::get<K>(blocks),
                                                     margins(std::integral_constant<int, static_cast<int>(K)>{}))...),
                     axis<0>);
        }(std::index_sequence_for<decltype(v)...>{});
      },
      values);
}
template <class V>
constexpr auto blocks_of_sequence(V const& values) {
  dtype_sum types;
  for (auto const& v : values) types.add(dtype_of(v), rank_of(v) == 0 ? 1 : 2);
  dims const type{static_cast<index_t>(types.result())};
  auto blocks = each(values, [&](auto const& v) { return as_block(to(v, type)); });
  extent all = 0, before = 0;
  for (auto const& b : blocks) all += to_dims(shape_of(b))[1];
  for (auto& b : blocks) {
    extent const own = to_dims(shape_of(b))[1];
    b = constant_pad_nd(b, dims{before, all - before - own});
    before += own;
  }
  return cat(blocks, dims{0});
}
} // namespace detail
/// Matrices as blocks on a diagonal, with zeros elsewhere (`torch.block_diag`). A vector is a row, a number one
/// element.
inline constexpr struct block_diag_t {
  template <class V>
  constexpr auto operator()(V const& values) const {
    if constexpr (detail::tuple_like<V>) return detail::blocks_of_tuple(values);
    else return detail::blocks_of_sequence(values);
  }
} block_diag{};

namespace detail {
/// Returns parts [b[k], b[k + 1]) of an axis; `b` has all bounds.
template <class X, class A, class B>
constexpr auto parts_between(X const& x, A const& axis, B const& bounds) {
  auto const range = [](dims const& s, dims const& a, dims const& b, dims const& k) {
    int const i = static_cast<int>(k[0]);
    return dims{wrap_axis(a[0], s.n), b[i], b[i + 1] < b[i] ? b[i] : b[i + 1], 1};
  };
  if constexpr (parts_are_types<X, A, B>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::make_tuple(bind<slice_t>(on_dims(range, shape_of(x), axis, bounds, ints<index_t(K)>{}))(x)...);
    }(std::make_index_sequence<std::size_t(B::to_dims().n - 1)>{});
  } else {
    std::vector<std::remove_cvref_t<decltype(slice(x, axis, 0, 1))>> r;
    for (index_t k = 0; k + 1 < to_dims(bounds).n; ++k)
      r.push_back(
          one_of_several(bind<slice_t>(range(to_dims(shape_of(x)), to_dims(axis), to_dims(bounds), dims{k}))(x)));
    return r;
  }
}
inline constexpr auto bounds_of_sizes = [](dims const& s, dims const& a, dims const& sizes) {
  if (s.n == 0) refuse::argument_is_invalid("split_with_sizes", "a rank-0 value has no axis");
  dims r{0};
  for (extent n : sizes) {
    if (n < 0) refuse::argument_is_invalid("split_with_sizes", "sizes must not be negative");
    r.push_back(r.back() + n);
  }
  if (r.back() != s[wrap_axis(a[0], s.n)]) refuse::shapes_do_not_match("split_with_sizes", s, sizes);
  return r;
};
inline constexpr auto bounds_of_sections = [](dims const& s, dims const& a, dims const& n) {
  if (s.n == 0) refuse::argument_is_invalid("tensor_split", "a rank-0 value has no axis");
  if (n[0] < 1) refuse::argument_is_invalid("tensor_split", "the number of parts must be positive");
  extent const all = s[wrap_axis(a[0], s.n)], least = all / n[0], more = all % n[0];
  dims r{0};
  for (index_t k = 0; k < n[0]; ++k) r.push_back(r.back() + least + (more > k ? 1 : 0));
  return r;
};
inline constexpr auto bounds_of_indices = [](dims const& s, dims const& a, dims const& at) {
  if (s.n == 0) refuse::argument_is_invalid("tensor_split", "a rank-0 value has no axis");
  extent const n = s[wrap_axis(a[0], s.n)];
  dims r{0};
  for (extent i : at) {
    extent const from = i < 0 ? (i + n < 0 ? extent(0) : i + n) : i;
    r.push_back(from > n ? n : from);
  }
  return r.push_back(n);
};
} // namespace detail

/// Splits an axis into parts of the given sizes, which add up to its size (`torch.split_with_sizes`). Returns at most 7
/// views.
inline constexpr struct split_with_sizes_t {
  template <value X, class S, class A = ints<0>>
  constexpr auto operator()(X const& x, S const& sizes, A const& axis = {}) const {
    auto const a = detail::as_fact(axis);
    return detail::parts_between(x, a, on_dims(detail::bounds_of_sizes, shape_of(x), a, detail::as_fact(sizes)));
  }
} split_with_sizes{};
/// Splits an axis into the given number of parts, at most 7 (`torch.tensor_split`). Sizes are as equal as possible; the
/// first parts are larger by one.
inline constexpr struct tensor_split_t {
  template <value X, class N, class A = ints<0>>
  constexpr auto operator()(X const& x, N const& sections, A const& axis = {}) const {
    auto const a = detail::as_fact(axis);
    return detail::parts_between(x, a, on_dims(detail::bounds_of_sections, shape_of(x), a, detail::as_fact(sections)));
  }
} tensor_split{};
/// Splits an axis at indices, which may count from the end (`torch.tensor_split` with a list).
inline constexpr struct split_at_t {
  template <value X, class I, class A = ints<0>>
  constexpr auto operator()(X const& x, I const& indices, A const& axis = {}) const {
    auto const a = detail::as_fact(axis);
    return detail::parts_between(x, a, on_dims(detail::bounds_of_indices, shape_of(x), a, detail::as_fact(indices)));
  }
} split_at{};

} // namespace varve
