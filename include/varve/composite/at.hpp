// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/flatten.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/index.hpp>
#include <varve/op/nonzero.hpp>
#include <varve/op/slice.hpp>

#include <tuple>
#include <vector>

/// @file
/// Python-style indexing: `x.at(slice(1, 5), none, ellipsis, t)` is Python's `x[1:5, None, ..., t]`.
namespace varve {

/// An index that stands for all axes that the other indices do not use: `x.at(ellipsis, 0)`.
struct ellipsis_t {};
inline constexpr ellipsis_t ellipsis{};

namespace detail {
template <class I>
inline constexpr bool is_ellipsis = std::is_same_v<I, ellipsis_t>;
template <class I>
concept number_index = one_size<I>;
template <class I>
concept value_index = varve_value<I>;
template <class I>
consteval bool is_one_position() {
  if constexpr (is_ints<I>) return I::size() == 1;
  else return number_index<I>;
}
/// How many axes an index produces in the result. Indices that are values are counted as one axis here and applied
/// later.
template <class I>
inline constexpr int axes_left = is_one_position<I>() ? 0 : 1;

/// Returns an index in usable form. `index<2>` is a function and is called.
template <class I>
constexpr auto plain_index(I const& i) {
  if constexpr (std::is_function_v<I>) return i();
  else if constexpr (memory_ref<I>) return viewed(i);
  else return i;
}
template <class X>
inline constexpr bool has_typed_shape = is_ints<std::remove_cvref_t<decltype(shape_of(std::declval<X const&>()))>>;

/// Returns the row of a static value at a run-time index.
template <class X, class A>
constexpr auto row_at(X const& x, A const& axis, index_t i) {
  auto const n = on_dims([](dims const& s, dims const& a) { return dims{s[wrap_axis(a[0], s.n)]}; }, shape_of(x), axis);
  index_t const size = to_dims(n)[0];
  if (i < -size || i >= size) refuse::index_out_of_range("at", i, size);
  auto const row = index_select(x, axis, array<std::int64_t, 1>{i < 0 ? i + size : i});
  return squeeze(row, axis);
}
/// Applies one index at an axis. Indices that are values are applied later.
template <class X, class A, class I>
constexpr auto indexed_axis(X const& x, A const& axis, I const& i) {
  if constexpr (is_none<I>) {
    return unsqueeze(x, axis);
  } else if constexpr (std::is_same_v<I, slice_index>) {
    static_assert(!has_typed_shape<X>, "varve: at: the size of a static value is part of its type; write range<1, 5> "
                                       "for slice(1, 5), which only a run tells");
    if constexpr (has_typed_shape<X>) return x;
    else return slice(x, axis, i.range[0], i.range[1], i.range.n > 2 ? i.range[2] : extent(1));
  } else if constexpr (is_one_position<I>()) {
    if constexpr (has_typed_shape<X> && number_index<I>) return row_at(x, axis, static_cast<index_t>(i));
    else return select(x, axis, i);
  } else if constexpr (is_ints<I>) {
    return slice(x, axis, i);
  } else {
    static_assert(value_index<I>,
                  "varve: at: an index is a number, index<2>, slice(1, 5), range<1, 5>, none, ellipsis, "
                  "or a tensor or array of integers or truth values");
    return x;
  }
}
/// Applies the indices after an ellipsis, from the last one on. Axes count from the end.
template <int K, int Axis, int Ellipsis, class X, class T>
constexpr auto indexed_behind(X const& x, T const& indices) {
  using I = std::tuple_element_t<static_cast<std::size_t>(K), T>;
  if constexpr (K == Ellipsis) return x;
  else
    return indexed_behind<K - 1, Axis - axes_left<I>, Ellipsis>(
        indexed_axis(x, ints<Axis>{}, std::get<static_cast<std::size_t>(K)>(indices)), indices);
}
template <int K, int Axis, class X, class T>
constexpr auto indexed_from(X const& x, T const& indices) {
  constexpr int count = static_cast<int>(std::tuple_size_v<T>);
  if constexpr (K == count) {
    return x;
  } else {
    using I = std::tuple_element_t<static_cast<std::size_t>(K), T>;
    if constexpr (is_ellipsis<I>) return indexed_behind<count - 1, -1, K>(x, indices);
    else
      return indexed_from<K + 1, Axis + axes_left<I>>(
          indexed_axis(x, ints<Axis>{}, std::get<static_cast<std::size_t>(K)>(indices)), indices);
  }
}

/// Returns the axes to which indices that are values apply, after the other indices were applied.
template <class... I>
consteval dims axes_of_values() {
  constexpr int count = sizeof...(I);
  bool const is_value[] = {value_index<I>..., false}, is_gap[] = {is_ellipsis<I>..., false};
  int const left[] = {axes_left<I>..., 0};
  int gap = count;
  for (int k = 0; k < count; ++k)
    if (is_gap[k]) gap = k;
  dims r;
  for (int k = 0, axis = 0; k < gap; axis += left[k++])
    if (is_value[k]) r.push_back(axis);
  for (int k = gap + 1; k < count; ++k) {
    int behind = 0;
    for (int j = k; j < count; ++j) behind += left[j];
    if (is_value[k]) r.push_back(-behind);
  }
  return r;
}
template <class... I>
struct value_axes {
  constexpr dims operator()() const { return axes_of_values<I...>(); }
};

/// Returns the position in the result of the axes that are indexed by values: their own if they are adjacent, otherwise
/// the first.
inline constexpr auto joined_axis = [](dims const& s, dims const& axes) {
  int const first = wrap_axis(axes[0], s.n);
  bool together = true;
  for (int k = 0; k < axes.n; ++k) together = together && wrap_axis(axes[k], s.n) == first + k;
  return dims{together ? first : 0};
};
/// Returns the order of axes that makes the axes indexed by values adjacent, at the position `joined_axis`.
inline constexpr auto joined_order = [](dims const& s, dims const& axes) {
  int const at = static_cast<int>(joined_axis(s, axes)[0]);
  dims indexed, r;
  for (int k = 0; k < axes.n; ++k) indexed.push_back(wrap_axis(axes[k], s.n));
  for (int k = 0; k < s.n; ++k) {
    if (r.n == at)
      for (int j = 0; j < indexed.n; ++j) r.push_back(indexed[j]);
    if (!indexed.contains(k)) r.push_back(k);
  }
  if (r.n == at)
    for (int j = 0; j < indexed.n; ++j) r.push_back(indexed[j]);
  return r;
};
inline constexpr auto joined_shape = [](dims const& s, dims const& at, dims const& axes) {
  dims r = s.sub(0, static_cast<int>(at[0]));
  r.push_back(numel(s.sub(static_cast<int>(at[0]), static_cast<int>(at[0]) + axes.n)));
  for (int k = static_cast<int>(at[0]) + axes.n; k < s.n; ++k) r.push_back(s[k]);
  return r;
};
/// Returns a shape with one axis replaced by several.
inline constexpr auto opened_shape = [](dims const& s, dims const& at, dims const& axes) {
  dims r = s.sub(0, static_cast<int>(at[0]));
  for (extent e : axes) r.push_back(e);
  for (int k = static_cast<int>(at[0]) + 1; k < s.n; ++k) r.push_back(s[k]);
  return r;
};
template <class I>
constexpr void require_integers(I const& i) {
  if constexpr (has_typed_shape<I>)
    static_assert(category(static_cast<dtype>(decltype(type_fact(i))::to_dims()[0])) == 1,
                  "varve: at: the indices of static values are integers; instead of a mask use where(mask, x, y)");
  else require_index("at", i, true);
}
/// Returns the elements at integer values along axes. The common shape of the values replaces these axes.
template <class X, class A, class I, class... R>
constexpr auto at_values(X const& x, A const& axes, I const& i, R const&... rest) {
  (require_integers(i), ..., require_integers(rest));
  auto const at = on_dims(joined_axis, shape_of(x), axes);
  auto const ordered = permute(x, on_dims(joined_order, shape_of(x), axes));
  auto const row = reshape(ordered, on_dims(joined_shape, shape_of(ordered), at, axes));
  int const axis = static_cast<int>(to_dims(at)[0].number());
  auto const place = place_in_row(ordered, axis + 1, index_from_front(ordered, axis, i), rest...);
  return reshape_to(index_select(row, at, ravel(place)), on_dims(opened_shape, shape_of(row), at, shape_of(place)));
}

/// Returns an index tensor as integers. A one-dimensional mask becomes the indices of its true elements.
template <class T>
T places_of(T const& i) {
  if (i.dtype() != dtype::bool_) return i;
  if (i.dim() != 1)
    refuse::argument_is_invalid("at", "a mask of other than one dimension must be the only index, as in x.at(mask)");
  T const n = nonzero(i);
  return reshape(n, dims{n.sizes()[0]});
}
/// Flattens the leading axes that a mask covers into one.
template <class T>
T masked_rows(T const& x, T const& mask) {
  if (mask.dim() == 0 || mask.dim() > x.dim() || !(x.sizes().sub(0, mask.dim()) == mask.sizes()))
    refuse::shapes_do_not_match("at (a value and its mask)", x.sizes(), mask.sizes());
  return reshape(x, joined_shape(x.sizes(), dims{0}, mask.sizes()));
}
template <class T>
bool is_mask(T const& i) {
  return i.dtype() == dtype::bool_ && i.dim() != 1;
}
template <class T, class A>
T read_at(T const& x, A const& axes, T const& i) {
  if (is_mask(i) && to_dims(axes)[0] == 0) return at_values(masked_rows(x, i), axes, places_of(T(ravel(i))));
  return at_values(x, axes, places_of(i));
}
template <class T, class A, class... R>
T read_at(T const& x, A const& axes, R const&... i) {
  return at_values(x, axes, places_of(i)...);
}

/// Writes `y` at the indices that integer tensors specify, one after the other. If indices repeat, the last write wins.
template <class T, class Y>
void write_rows(T const& x, dims const& axes, std::vector<T> const& indices, Y const& y) {
  dims common;
  for (T const& i : indices) {
    if (i.is_wrapped() || !i.has_data())
      refuse::argument_is_invalid("at", "the places that are written are read as numbers, which a transform or a trace "
                                        "does not have; use where, scatter, or index_put of varve/indexing.hpp");
    common = broadcast(common, i.sizes());
  }
  std::vector<std::vector<std::int64_t>> places;
  for (T const& i : indices) places.push_back(T(expand(i, common)).template to_vector<std::int64_t>());
  int const at = static_cast<int>(joined_axis(x.sizes(), axes)[0].number());
  dims const joined = joined_shape(T(permute(x, joined_order(x.sizes(), axes))).sizes(), dims{at}, axes);
  T source;
  if constexpr (!number<Y>) {
    dims flat = joined;
    flat[at] = numel(common);
    source = reshape(expand(viewed(y), opened_shape(joined, dims{at}, common)), flat);
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(index_t(numel(common))); ++k) {
    T row = x;
    for (int a = axes.n; a-- > 0;) row = select(row, wrap_axis(axes[a], x.dim()), places[std::size_t(a)][k]);
    if constexpr (number<Y>) copy_(row, y);
    else copy_(row, select(source, at, static_cast<index_t>(k)));
  }
}
} // namespace detail

/// The result of `x.at(t)` for tensors, where t is a tensor. It is a tensor with a copy of the selected elements; an
/// assignment `x.at(t) = y` writes into x.
template <class... I>
class indexed_tensor : public tensor {
public:
  using tensor_type = tensor;
  using as_result = tensor; // the type that functions return for it
  indexed_tensor(tensor const& elements, tensor const& of, I const&... indices)
      : tensor(elements), of_(of), indices_(indices...) {}
  indexed_tensor(indexed_tensor const&) = default;
  tensor const& view() const { return *this; }

  template <value Y>
  void operator=(Y const& y) && {
    write(y);
  }
  void operator=(indexed_tensor const& y) && { write(y); }
  template <value Y>
  void operator+=(Y const& y) && {
    write(varve::add(view(), y));
  }
  template <value Y>
  void operator-=(Y const& y) && {
    write(varve::sub(view(), y));
  }
  template <value Y>
  void operator*=(Y const& y) && {
    write(varve::mul(view(), y));
  }
  template <value Y>
  void operator/=(Y const& y) && {
    write(varve::div(view(), y));
  }

private:
  template <class Y>
  void write(Y const& y) const {
    constexpr dims axes = detail::axes_of_values<I...>();
    detail::require_element("at", y, of_.dtype());
    std::vector<tensor> values;
    auto const take = [&](auto const& i) {
      if constexpr (detail::value_index<std::remove_cvref_t<decltype(i)>>) values.push_back(i);
    };
    std::apply([&](auto const&... i) { (take(i), ...); }, indices_);
    using T = dependent<tensor, Y>;
    T const x = detail::indexed_from<0, 0>(T(of_), indices_);
    if (values.size() == 1 && axes[0] == 0 && values[0].dtype() == dtype::bool_) {
      T const mask = values[0];
      T const rows = detail::masked_rows(x, mask);
      dims wide = mask.sizes();
      while (wide.n < x.dim()) wide.push_back(1);
      if constexpr (number<Y>) varve::copy_(x, varve::where(varve::reshape(mask, wide), y, x));
      else if (rank_of(y) == 0) varve::copy_(x, varve::where(varve::reshape(mask, wide), y, x));
      else write_where(x, mask, y);
      return;
    }
    for (tensor& i : values) i = detail::places_of(T(i));
    detail::write_rows<T>(x, axes, values, y);
  }
  /// Writes one value for each position where a mask is true.
  template <class T, class Y>
  static void write_where(T const& x, T const& mask, Y const& y) {
    T const all = varve::nonzero(mask);
    std::vector<T> places;
    dims axes;
    for (int k = 0; k < mask.dim(); ++k) {
      places.push_back(varve::select(all, 1, k));
      axes.push_back(k);
    }
    detail::write_rows<T>(x, axes, places, y);
  }
  tensor of_;
  std::tuple<I...> indices_;
};
template <class... I>
struct traits<indexed_tensor<I...>> : traits<tensor> {};

/// Returns the part of x that indices select, one for each axis from the front: `x.at(i...)` and `x[i]` (PyTorch's
/// tensor indexing).
///
/// A number selects one position and removes the axis. `slice(1, 5)` selects a range. `none` adds an axis of size 1,
/// and `ellipsis` stands for all axes that the other indices do not use. An integer tensor selects by its elements;
/// several of them broadcast. A bool tensor selects where it is true.
///
/// For static values, write `index<2>` and `range<1, 5>` for compile-time positions; a plain number uses `gather`.
/// Parts of tensors are views if no index is a tensor, so that `x.at(0) = y` writes into x. An index out of range
/// throws `index_error`.
struct at_t {
  template <value X, class... I>
  constexpr auto operator()(X const& x, I const&... i) const {
    static_assert((0 + ... + detail::is_ellipsis<I>) < 2, "varve: at: there may be one ellipsis");
    return part(detail::plain(x), detail::plain_index(i)...);
  }

private:
  template <class X, class... I>
  static constexpr auto part(X const& x, I const&... i) {
    std::tuple<I...> const all(i...);
    auto const found = detail::indexed_from<0, 0>(x, all);
    if constexpr (!(detail::value_index<I> || ...)) {
      return found;
    } else {
      auto const axes = detail::ints_from<detail::value_axes<I...>{}>(
          std::make_index_sequence<static_cast<std::size_t>(detail::axes_of_values<I...>().n)>{});
      auto const read = [&](auto const&... values) {
        if constexpr (std::is_same_v<X, tensor>)
          return indexed_tensor<I...>(detail::read_at<X>(found, axes, values...), x, i...);
        else return detail::at_values(found, axes, values...);
      };
      return std::apply(read, std::tuple_cat(value_alone(i)...));
    }
  }
  template <class I>
  static constexpr auto value_alone(I const& i) {
    if constexpr (detail::value_index<I>) return std::tuple<I>(i);
    else return std::tuple<>();
  }
};

} // namespace varve
