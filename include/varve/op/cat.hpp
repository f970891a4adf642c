// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/whole_call.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/slice.hpp>
#include <varve/rule/moving.hpp>

#include <array>
#include <initializer_list>
#include <tuple>
#include <vector>

namespace varve {

namespace detail {
constexpr void require_an_axis(bool there) {
  if (!there) refuse::argument_is_invalid("cat", "values of rank 0 have no axis to be joined along; stack them");
}
} // namespace detail

/// Two values joined along an axis. Longer lists are joined as a balanced tree. Attribute {axis}.
template <>
struct rules<cat_t> {
  static constexpr operator_class planned_as = operator_class::cat;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr op_kind kind = op_kind::join;
  static constexpr bool moves_elements = true;
  static constexpr auto schema = "(Tensor first, Tensor second, int dim=0) -> Tensor";
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    detail::require_an_axis(in[0].sizes.n > 0 && in[1].sizes.n > 0);
    if (in[0].type != in[1].type) refuse::dtypes_differ("cat", name(in[0].type), name(in[1].type));
    return attributes(dims{wrap_axis(at.count > 0 && at[0].n > 0 ? at[0][0] : extent(0), in[0].sizes.n)});
  }
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    int const a = static_cast<int>(at[0][0]);
    dims x = in[0].sizes, y = in[1].sizes;
    detail::require_an_axis(x.n && y.n);
    bool fits = x.n == y.n;
    for (int k = 0; fits && k < x.n; ++k) fits = k == a || x[k] == y[k];
    if (!fits) refuse::shapes_do_not_match("cat", x, y);
    x[a] += y[a];
    return {promote_types(in[0].type, in[1].type), x};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<T const> y) {
    index_t const shift = x.sizes[static_cast<int>(at[0][0])] * out.strides[static_cast<int>(at[0][0])];
    detail::assign(out, x);
    if (numel(y.sizes)) detail::assign(strided<R>{out.data + shift, y.sizes, out.strides}, y);
  }
  /// Returns the range {axis, start, stop, 1} of the first or second part.
  static constexpr auto part(arg_t<0>, auto const& axis, auto const& x, auto const&) {
    return on_dims([](dims const& a, dims const& s) { return dims{a[0], 0, s[static_cast<int>(a[0])], 1}; }, axis,
                   shape_of(x));
  }
  static constexpr auto part(arg_t<1>, auto const& axis, auto const& x, auto const& y) {
    auto f = [](dims const& a, dims const& s, dims const& t) {
      int const k = static_cast<int>(a[0]);
      return dims{k, s[k], s[k] + t[k], 1};
    };
    return on_dims(f, axis, shape_of(x), shape_of(y));
  }
  template <std::size_t I, class Op>
  static constexpr auto jvp(arg_t<I> i, Op const& op, value auto const& d, value auto const& r, value auto const& x,
                            value auto const& y) {
    return slice_backward(to(d, type_fact(r)), shape_of(r), part(i, op.a, x, y));
  }
  template <std::size_t I, class Op>
  static constexpr auto vjp(arg_t<I> i, Op const& op, value auto const& g, value auto const&, value auto const& x,
                            value auto const& y) {
    return to(bind<slice_t>(part(i, op.a, x, y))(g), type_fact(nth<I>(x, y)));
  }
  template <class Op, class N, class X, class Y>
  static constexpr auto batch(Op const& op, N const& n, X const& x, Y const& y) {
    auto const behind_lanes = [](dims const& a, dims const& rank_of_x, dims const& rank_of_y) {
      detail::require_an_axis(rank_of_x[0] > 0 && rank_of_y[0] > 0);
      return detail::shifted(a);
    };
    return bind<cat_t>(on_dims(behind_lanes, op.a, logical_rank_fact(x), logical_rank_fact(y)))(materialize(x, n),
                                                                                                materialize(y, n));
  }
};

namespace detail {
/// True if no observer records the join of these tensors of one dtype. Then they are copied into the result one by one,
/// without the intermediate results of a tree.
bool joins_at_once(tensor const* values, std::size_t count);
tensor join_at_once(index_t axis, tensor const* values, std::size_t count);
/// Joins up to `saved_values::most` tensors by one call that a single recorder records. Returns an undefined tensor if
/// there are other observers or the dtypes differ. Attributes {axis}, {end of each part}.
template <class T>
T join_recorded(index_t axis, T const* values, std::size_t count);
template <std::size_t From, std::size_t Count, class A, class T>
constexpr auto join_range(A const& axis, T const& values) {
  if constexpr (Count == 1) {
    return std::get<From>(values);
  } else {
    auto x = join_range<From, Count / 2>(axis, values);
    auto y = join_range<From + Count / 2, Count - Count / 2>(axis, values);
    auto type = on_dims(
        [](dims const& a, dims const& b) {
          return dims{static_cast<index_t>(promote_types(static_cast<dtype>(a[0]), static_cast<dtype>(b[0])))};
        },
        type_fact(x), type_fact(y));
    auto a = on_dims([](dims const& d, dims const& s) { return dims{wrap_axis(d[0], s.n)}; }, axis, shape_of(x));
    return bind<cat_t>(a)(to(x, type), to(y, type));
  }
}
/// Returns the join of a single value: a copy, as for several values, so that writing into the result does not change
/// the operand.
template <class A, value X>
constexpr auto joined_alone(A const& axis, X const& x) {
  (void)on_dims(
      [](dims const& d, dims const& s) {
        require_an_axis(s.n > 0);
        return dims{wrap_axis(d[0], s.n)};
      },
      axis, shape_of(x));
  return clone(x);
}
template <class T>
struct whole_join {
  static T value(attributes const& at, T const* const* x) {
    T all[saved_values::most];
    std::size_t const count = static_cast<std::size_t>(at[1].n);
    for (std::size_t k = 0; k < count; ++k) all[k] = *x[k];
    return join_at_once(at[0][0].number(), all, count);
  }
  static T pullback(int i, attributes const& at, T const& g, T const&, boxed_args const&) {
    return bind<slice_t>(dims{at[0][0], i > 0 ? at[1][i - 1] : extent(0), at[1][i], 1})(g);
  }
  template <int Count>
  static constexpr op_table table = whole_table("cat", Count, saved_values::nothing(), &pullback);
  static constexpr op_table const* tables[] = {&table<3>, &table<4>, &table<5>, &table<6>, &table<7>, &table<8>};
};
template <class T>
T join_recorded(index_t axis, T const* values, std::size_t count) {
  int const rank = values[0].defined() ? values[0].dim() : 0;
  if (rank == 0 || axis < -rank || axis >= rank || !are_built_in<cat_t>()) return {};
  int const a = wrap_axis(axis, rank);
  T const* all[saved_values::most];
  dims ends;
  for (std::size_t k = 0; k < count; ++k) {
    T const& v = *(all[k] = &values[k]);
    if (!v.defined() || v.dim() != rank || v.dtype() != values[0].dtype() || is_symbol(v.sizes()[a])) return {};
    ends.push_back((k > 0 ? ends[ends.n - 1] : extent(0)) + v.sizes()[a]);
  }
  return whole_call(*whole_join<T>::tables[count - 3], attributes(dims{a}, ends), all, static_cast<int>(count),
                    &whole_join<T>::value);
}
/// Joins values [from, from + count) of a sequence of one type (tensors or traced values).
template <class A, class T>
constexpr auto join_sequence(A const& axis, T const& values, std::size_t from, std::size_t count) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(values[0])>, tensor>) {
    if (count > 2 && detail::joins_at_once(values.data() + from, count))
      return detail::join_at_once(axis[0], values.data() + from, count);
    if (count > 2 && count <= saved_values::most)
      if (auto y = detail::join_recorded(axis[0].number(), values.data() + from, count); y.defined()) return y;
  }
  if (count == 1) return values[from];
  auto x = join_sequence(axis, values, from, count / 2);
  auto y = join_sequence(axis, values, from + count / 2, count - count / 2);
  auto type = dims{static_cast<index_t>(promote_types(dtype_of(x), dtype_of(y)))};
  return bind<cat_t>(dims{wrap_axis(axis[0], rank_of(x))})(to(x, type), to(y, type));
}
/// Returns the values without those of shape [0], which `cat` ignores as PyTorch does; if all have this shape, the
/// first remains. The first returned value has the promoted dtype of all.
template <class T>
constexpr std::vector<T> without_empty_vectors(T const* values, std::size_t count) {
  std::vector<T> kept;
  dtype type = dtype_of(values[0]);
  for (std::size_t k = 0; k < count; ++k) {
    type = promote_types(type, dtype_of(values[k]));
    dims const s = to_dims(shape_of(values[k]));
    if (!(s.n == 1 && s[0] == 0)) kept.push_back(values[k]);
  }
  if (kept.empty()) kept.push_back(values[0]);
  kept[0] = to(kept[0], dims{static_cast<index_t>(type)});
  return kept;
}
/// Joins the values of a tuple. Static values next to traced ones become constants of the trace.
template <class A, class T, std::size_t... K>
constexpr auto join_tuple(A const& axis, T const& values, std::index_sequence<K...>) {
  if constexpr (meets_trace<std::remove_cvref_t<std::tuple_element_t<K, T>>...>) {
    auto const beside = [&](auto const& x) { return beside_trace(x, std::get<K>(values)...); };
    return join_range<0, sizeof...(K)>(axis, std::make_tuple(beside(std::get<K>(values))...));
  } else {
    if constexpr (sizeof...(K) == 1) return joined_alone(axis, std::get<0>(values));
    else if constexpr (sizeof...(K) > 2 &&
                       (std::is_same_v<std::remove_cvref_t<std::tuple_element_t<K, T>>, tensor> && ...))
      return join_sequence(to_dims(axis), std::array{std::get<K>(values)...}, 0, sizeof...(K));
    else return join_range<0, sizeof...(K)>(axis, values);
  }
}
template <class T>
concept tuple_like = requires { std::tuple_size<T>::value; };
template <class X>
constexpr void refuse_values_apart() {
  static_assert(never<X>, "varve: stack and cat take their values as one tuple or vector: stack(std::tuple{a, b})");
}
/// Handles `join({a, b}, 0)`. The number of values in the braces is known at run time only, so static values are
/// refused.
template <class Join, class X, class A>
constexpr auto of_braces(Join const& join, std::initializer_list<X> values, A const& axis) {
  constexpr bool counted_by_a_run = std::is_base_of_v<tensor, X> || is_proxy_base<base_of<X>>;
  static_assert(counted_by_a_run, "varve: stack and cat take static values as one tuple: stack(std::tuple{a, b})");
  if constexpr (!counted_by_a_run) return *values.begin();
  else return join(std::vector<X>(values), axis);
}
} // namespace detail

/// Joins values along an axis: `cat(std::tuple{a, b, c}, axis<0>)`. Tensors and traced values can also be in braces,
/// `cat({a, b}, 0)`, or in a vector. dtypes promote.
template <class X, class A>
constexpr auto cat_t::operator()(X const& values, A const& axis) const {
  if constexpr (value<X>) return detail::refuse_values_apart<X>(), values;
  else if constexpr (detail::tuple_like<X>)
    return detail::join_tuple(detail::as_fact(axis), values, std::make_index_sequence<std::tuple_size<X>::value>{});
  else {
    if (values.size() == 0) refuse::argument_is_invalid("cat", "at least one value is needed");
    auto const kept = detail::without_empty_vectors(std::data(values), values.size());
    dims const a = to_dims(detail::as_fact(axis));
    return kept.size() == 1 ? detail::joined_alone(a, kept[0]) : detail::join_sequence(a, kept, 0, kept.size());
  }
}
template <class X>
constexpr auto cat_t::operator()(X const& values) const {
  return (*this)(values, varve::axis<0>);
}

template <value X, class A>
constexpr auto cat_t::operator()(std::initializer_list<X> values, A const& axis) const {
  return detail::of_braces(*this, values, axis);
}

/// Joins values of one shape along a new axis: `stack(std::tuple{a, b}, axis<0>)`, for tensors also `stack({a, b}, 0)`.
inline constexpr struct stack_t {
  template <value X, class A = ints<0>>
  constexpr auto operator()(std::initializer_list<X> values, A const& axis = {}) const {
    return detail::of_braces(*this, values, axis);
  }
  template <class X, class A = ints<0>>
  constexpr auto operator()(X const& values, A const& axis = {}) const {
    if constexpr (value<X>) {
      return detail::refuse_values_apart<X>(), values;
    } else if constexpr (detail::tuple_like<X>) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return cat(std::make_tuple(unsqueeze(std::get<K>(values), axis)...), axis);
      }(std::make_index_sequence<std::tuple_size<X>::value>{});
    } else {
      auto wide = values;
      for (auto& v : wide) v = unsqueeze(v, axis);
      return cat(wide, axis);
    }
  }
  template <value X, class... Y>
    requires(sizeof...(Y) > 1)
  constexpr auto operator()(X const& x, Y const&...) const {
    return detail::refuse_values_apart<X>(), x;
  }
} stack{};

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_LIBRARY bool joins_at_once(tensor const* values, std::size_t count) {
  if (!are_built_in<cat_t>() || !are_unwatched(values, count)) return false;
  for (std::size_t k = 1; k < count; ++k)
    if (values[k].dtype() != values[0].dtype()) return false;
  return true;
}
VARVE_LIBRARY tensor join_at_once(index_t axis, tensor const* values, std::size_t count) {
  meta m = meta_of(values[0]);
  require_an_axis(m.sizes.n > 0);
  require_dtype("cat", dims{static_cast<index_t>(m.type)});
  int const a = wrap_axis(axis, m.sizes.n);
  for (std::size_t k = 1; k < count; ++k) {
    meta const in[] = {m, meta_of(values[k])};
    m = rules<cat_t>::shape(attributes(dims{a}), in, 2);
  }
  tensor out = tensor::empty(m.sizes, m.type);
  int const bytes = itemsize(m.type);
  index_t const step = out.strides()[a] * bytes;
  auto* to = static_cast<unsigned char*>(out.raw());
  for (std::size_t k = 0; k < count; to += values[k++].sizes()[a] * step)
    kernel::copy_strided(values[k].sizes(), {static_cast<void*>(to), out.strides().numbers(), bytes},
                         operand_of(values[k], values[k].strides().numbers()));
  return out;
}
} // namespace varve::detail
#endif
