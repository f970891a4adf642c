// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/slice.hpp>
#include <varve/op/to.hpp>
#include <varve/op/where.hpp>
#include <varve/rule/linear.hpp>
#include <varve/rule/moving.hpp>

namespace varve {

namespace detail {
inline constexpr auto one_axis = [](dims const& axis, dims const& sizes) { return dims{wrap_axis(axis[0], sizes.n)}; };
constexpr void check_index(char const* op, dims const& axis, dims const& x, dims const& index) {
  bool fits = x.n == index.n;
  for (int k = 0; fits && k < x.n; ++k) fits = k == axis[0] || index[k] <= x[k];
  if (!fits) refuse::shapes_do_not_match(op, x, index);
}
/// The number of indices checked in advance, so that the processor can load the next ones while it moves elements.
inline constexpr index_t indices_at_once = 64;
/// Refuses the first of a few indices that is out of range.
constexpr void check_row(char const* op, index_t n, row_of<std::int64_t const> index, index_t size) {
  std::int64_t signs = 0; // stays nonnegative while all are in range
  if (n == indices_at_once && index.step == 1)
    for (index_t i = 0; i < indices_at_once; ++i) signs |= index.data[i] | (size - 1 - (index.data[i] & INT64_MAX));
  else
    for (index_t i = 0; i < n; ++i) signs |= index[i] | (size - 1 - (index[i] & INT64_MAX));
  if (signs >= 0) return;
  index_t i = 0;
  while (index[i] >= 0 && index[i] < size) ++i;
  refuse::index_out_of_range(op, index[i], size);
}
/// Calls `f(first, n)` for parts of a row whose indices were checked. Indices with step 0 are checked once.
template <class F>
constexpr void for_checked_indices(char const* op, index_t n, row_of<std::int64_t const> at, index_t size, F const& f) {
  if (at.step == 0) {
    detail::check_row(op, 1, at, size);
    return f(index_t{0}, n);
  }
  for (index_t i = 0; i < n; i += indices_at_once) {
    index_t const m = n - i < indices_at_once ? n - i : indices_at_once;
    detail::check_row(op, m, at.from(i), size);
    f(i, m);
  }
}
/// Returns an operand with stride 0 along the axis, because the index determines the position there.
template <class T>
constexpr strided<T> without_axis(strided<T> x, int axis) {
  if (x.sizes.n > 0) x.strides[axis] = 0;
  return x;
}
/// Gathers a row of elements. Each index selects an element at a multiple of `step`.
template <class R>
constexpr void gather_row(index_t n, row_of<R> to, row_of<R const> from, row_of<std::int64_t const> at, index_t step) {
  R* const out = to.data;
  R const* const x = from.data;
  std::int64_t const* const k = at.data;
  bool const plain = to.step == 1 && at.step == 1;
  if (at.step == 0) detail::assign_row<R>(n, to, {x + *k * step, from.step});
  else if (plain && from.step == 0 && step == 1)
    for (index_t i = 0; i < n; ++i) out[i] = x[k[i]];
  else if (plain && from.step == 1)
    for (index_t i = 0; i < n; ++i) out[i] = x[i + k[i] * step];
  else
    for (index_t i = 0; i < n; ++i) out[i * to.step] = x[i * from.step + k[i * at.step] * step];
}
/// Adds a row of elements one by one at the positions that a row of indices selects, in multiples of `step`.
template <class R>
constexpr void scatter_row(index_t n, row_of<R> to, row_of<R const> from, row_of<std::int64_t const> at, index_t step) {
  R* const out = to.data;
  R const* const x = from.data;
  std::int64_t const* const k = at.data;
  auto const add = [](R& sum, R const& v) { sum = kernel::add<R>(sum, v); };
  bool const plain = from.step == 1 && at.step == 1;
  if (at.step == 0) detail::add_row<R>(n, {out + *k * step, to.step}, from);
  else if (plain && to.step == 0 && step == 1)
    for (index_t i = 0; i < n; ++i) add(out[k[i]], x[i]);
  else if (plain && to.step == 1)
    for (index_t i = 0; i < n; ++i) add(out[i + k[i] * step], x[i]);
  else
    for (index_t i = 0; i < n; ++i) add(out[i * to.step + k[i * at.step] * step], x[i * from.step]);
}
/// Calls `Row(n, to, from, at, step)` for parts of the rows of an index and both operands, after checking the indices
/// of each part. Threads may share the rows if each row writes separate elements.
template <auto Row, bool Shared = false, class R>
constexpr void for_indexed_rows(char const* op, index_t size, index_t step, strided<R> const& out,
                                strided<R const> const& x, strided<std::int64_t const> const& index) {
  auto const row = [&](index_t n, auto to, auto from, auto at) {
    detail::for_checked_indices(op, n, at, size,
                                [=](index_t i, index_t m) { Row(m, to.from(i), from.from(i), at.from(i), step); });
  };
  if constexpr (Shared) for_each_shared_row(index.sizes, 2, row, out, x, index);
  else for_each_row(index.sizes, row, out, x, index);
}
/// Size of the axis and stride along it. A value of rank 0 has one element, as in PyTorch.
template <class T>
constexpr index_t size_along(strided<T> const& x, int axis) {
  return x.sizes.n > 0 ? x.sizes[axis].bits : 1;
}
template <class T>
constexpr index_t step_along(strided<T> const& x, int axis) {
  return x.sizes.n > 0 ? x.strides[axis].bits : 0;
}
} // namespace detail

/// For axis 0 `out[i][j] = x[index[i][j]][j]`, and likewise for other axes. The ranks must be equal, where rank 0
/// counts as 1. An index without elements may have any dtype and rank. Attribute {axis}.
template <>
struct rules<gather_t> {
  static constexpr operator_class planned_as = operator_class::gather;
  static constexpr saved_values saved{{saved_values::operand(1)}};
  static constexpr auto schema = "(Tensor self, int dim, Tensor index) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n != 1 || in[0].sizes.n == 0)
      refuse::argument_is_invalid("gather", "one axis of a value with dimensions is needed");
    return attributes(detail::one_axis(at[0], in[0].sizes));
  }
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr bool moves_elements = true;
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::check_index("gather", at[0], in[0].sizes, in[1].sizes);
    if (in[1].type != dtype::int64) refuse::dtype_is_not_supported("gather index (int64 expected):", name(in[1].type));
    return {in[0].type, in[1].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x,
                                strided<std::int64_t const> index) {
    int const a = static_cast<int>(at[0][0]);
    index_t const size = detail::size_along(x, a), step = detail::step_along(x, a);
    detail::for_indexed_rows<detail::gather_row<R>, true>("gather", size, step, out, detail::without_axis(x, a), index);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&,
                            value auto const& index) {
    return op(d, index);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x,
                            value auto const& index) {
    return bind<scatter_add_t>(op.a)(detail::constant_like(g, shape_of(x), 0), index, g);
  }
  /// If all lanes share one row, all their indices read it at once, so that its cotangent is also one row.
  template <class Op, class N, class X, class I>
  static constexpr auto batch(Op const& op, N const& n, X const& x, I const& index) {
    auto const by_lane = [&](auto const&...) {
      return bind<gather_t>(on_dims(detail::shifted, op.a))(materialize(x, n), materialize(index, n));
    };
    auto const at_once = [&](auto const& row, auto const& at) {
      auto const all = on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(at));
      return reshape(bind<gather_t>(ints<0>{})(row, reshape(at, all)), shape_of(at));
    };
    return choose(is_one_row(x), at_once, by_lane, x.value, index.value);
  }

private:
  template <class V, class F>
  static constexpr auto is_one_row(operand<V, F> const& x) {
    auto const is_row = [](dims const& s) { return dims{s.n == 1}; };
    if constexpr (std::is_same_v<F, std::true_type>) return std::false_type{};
    else if constexpr (std::is_same_v<F, std::false_type>)
      return same_fact(on_dims(is_row, shape_of(x.value)), ints<1>{});
    else return !x.batched && rank_of(x.value) == 1;
  }
};

/// Returns x with `source[i][j]` added at `[index[i][j]][j]` for axis 0, and likewise for other axes. Repeated indices
/// accumulate. The source may be larger than the index; its gradient is zero in the unused part. Attribute {axis}.
template <>
struct rules<scatter_add_t> {
  static constexpr operator_class planned_as = operator_class::scatter_add;
  static constexpr complex_rule of_complex = complex_rule::by_parts_but_operand_1;
  static constexpr saved_values saved{{0, 0, saved_values::operand(1)}};
  static constexpr auto schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) { return rules<gather_t>::checked(at, in); }
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 3;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::check_index("scatter_add", at[0], in[0].sizes, in[1].sizes);
    if (in[1].type != dtype::int64)
      refuse::dtype_is_not_supported("scatter_add index (int64 expected):", name(in[1].type));
    if (in[0].type != in[2].type) refuse::dtypes_differ("scatter_add", name(in[0].type), name(in[2].type));
    for (int k = 0; k < in[1].sizes.n; ++k)
      if (in[1].sizes.n != in[2].sizes.n || in[1].sizes[k] > in[2].sizes[k])
        refuse::shapes_do_not_match("scatter_add", in[1].sizes, in[2].sizes);
    return {in[0].type, in[0].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x,
                                strided<std::int64_t const> index, strided<T const> source) {
    int const a = static_cast<int>(at[0][0]);
    detail::assign(out, x);
    index_t const size = detail::size_along(x, a), step = detail::step_along(out, a);
    detail::for_indexed_rows<detail::scatter_row<R>>("scatter_add", size, step, detail::without_axis(out, a), source,
                                                     index);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, auto const&...) {
    return d;
  }
  template <class Op>
  static constexpr auto jvp(arg_t<2>, Op const& op, value auto const& d, value auto const& y, value auto const&,
                            value auto const& index, value auto const&) {
    return op(detail::constant_zeros(y), index, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, auto const&...) {
    return g;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<2>, Op const& op, value auto const& g, value auto const&, value auto const&,
                            value auto const& index, value auto const&) {
    return bind<gather_t>(op.a)(g, index); // of the part of the source that is read; the public function cuts it
  }
  template <class Op, class N, class X, class I, class S>
  static constexpr auto batch(Op const& op, N const& n, X const& x, I const& index, S const& source) {
    return bind<scatter_add_t>(on_dims(detail::shifted, op.a))(materialize(x, n), materialize(index, n),
                                                               materialize(source, n));
  }
};

namespace detail {
inline constexpr auto shape_of_rank_one = [](dims const& s) { return s.n ? s : dims{1}; };
/// Returns a value of rank 0 as one of rank 1, as PyTorch treats it here.
template <value X>
constexpr auto of_rank_one(X const& x) {
  return reshape_to(x, on_dims(shape_of_rank_one, shape_of(x)));
}
/// Returns as many sizes of 0 as the shape has dimensions, but at least one.
inline constexpr auto no_element_of_rank = [](dims const& s) {
  dims r = s.n ? s : dims{0};
  for (int k = 0; k < r.n; ++k) r[k] = 0;
  return r;
};
/// Returns the sizes of the part of a source that a smaller index reads: the first elements along every axis.
inline constexpr auto sizes_to_read = [](dims const& source, dims const& index) {
  bool fits = source.n == index.n;
  for (int k = 0; fits && k < index.n; ++k) fits = index[k] <= source[k];
  return fits ? index : source;
};
template <value S, class I>
constexpr auto part_to_read(S const& source, I const& index) {
  auto const sizes = on_dims(sizes_to_read, shape_of(source), index);
  auto const first = [&](auto const& v) {
    return as_strided(contiguous(v), sizes, on_dims([](dims const& s) { return contiguous_strides(s); }, shape_of(v)),
                      ints<0>{});
  };
  return choose(same_fact(sizes, shape_of(source)), identity, first, source);
}
/// Returns no element of `x`: an empty shape, with its own memory.
template <value X, class S>
constexpr auto nothing_of(X const& x, S const& shape) {
  auto const all = on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(x));
  return clone(reshape(slice(reshape(x, all), ints<0>{}, ints<0, 0>{}), shape));
}
inline constexpr auto has_no_elements = [](dims const& s) { return dims{numel(s) == 0}; };
/// Returns `f(x)`, or `g(x)` for an index without elements, which may have any dtype and rank.
template <value X, value I, class F, class G>
constexpr auto unless_index_is_empty(X const& x, I const& index, F const& f, G const& g) {
  return choose(same_fact(on_dims(has_no_elements, shape_of(index)), ints<1>{}), g, f, x);
}
} // namespace detail

template <value X, class A, value I>
constexpr auto gather_t::operator()(X const& x, A const& axis, I const& index) const {
  auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
  return detail::unless_index_is_empty(
      x, index,
      [&](auto const& v) {
        return detail::reshape_to(bind<gather_t>(a)(detail::of_rank_one(v), detail::of_rank_one(index)),
                                  shape_of(index));
      },
      [&](auto const& v) {
        auto const none = detail::nothing_of(v, shape_of(index));
        // wrapped by the same interpreters as a selection by the index
        if constexpr (is_seen<I>) return where(eq(index, index), none, none);
        else return none;
      });
}
template <value X, class A, value I, value S>
constexpr auto scatter_add_t::operator()(X const& x, A const& axis, I const& index, S const& source) const {
  auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
  return detail::unless_index_is_empty(
      x, index,
      [&](auto const& v) {
        auto const at = detail::of_rank_one(index);
        auto const added = detail::part_to_read(detail::of_rank_one(source), shape_of(at));
        return detail::reshape_to(bind<scatter_add_t>(a)(detail::of_rank_one(v), at, added), shape_of(v));
      },
      [&](auto const& v) { // adds nothing, and the source has a gradient of zeros
        auto const none = on_dims(detail::no_element_of_rank, shape_of(v));
        auto const at = detail::nothing_of(to(index, ints<static_cast<index_t>(dtype::int64)>{}), none);
        auto const added = detail::nothing_of(to(source, type_fact(v)), none);
        return detail::reshape_to(bind<scatter_add_t>(a)(detail::of_rank_one(v), at, added), shape_of(v));
      });
}

} // namespace varve
