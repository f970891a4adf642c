// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/add.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/full_like.hpp>
#include <varve/rule/linear.hpp>
#include <varve/rule/moving.hpp>

namespace varve {

namespace detail {
inline constexpr auto prepend_numel = [](dims const& strides, dims const& sizes) {
  dims r = strides;
  return r.insert(0, numel(sizes));
};
inline constexpr auto prepend_step = [](dims const& strides, dims const& batched_sizes) {
  dims r = strides;
  return r.insert(0, numel(batched_sizes) / (known_equal(batched_sizes[0], 0) ? extent(1) : batched_sizes[0]));
};
inline constexpr auto check_region = [](dims const& sizes, dims const& strides, dims const& offset, dims const& from) {
  extent last = offset[0];
  bool fits = sizes.n == strides.n && last.is_size() && last >= 0;
  for (int k = 0; fits && k < sizes.n; ++k) {
    extent const size = sizes[k], stride = strides[k];
    fits = size.is_size() && stride.is_size() && size >= 0 && stride >= 0;
    if (index_t step = 0; fits && are_numbers(dims{last, size, stride})) // overflow means that it lies outside
      fits = !__builtin_mul_overflow(size.number() - 1, stride.number(), &step) &&
             !__builtin_add_overflow(last.number(), step, &last.bits) && last.is_number();
    else if (fits) last += (size - 1) * stride;
  }
  if (fits) require_sizes("as_strided", sizes);
  if (!fits || (numel(sizes) > 0 && last >= numel(from)))
    refuse::argument_is_invalid("as_strided",
                                "the region lies outside of the value, or sizes and strides differ in number");
  return sizes;
};
/// Returns the number of leading axes over which the region is the same for each index, as for slices that `vmap`s map;
/// 0 if there are none. The rows under these axes must be contiguous, but need not be adjacent.
constexpr int axes_of_rows(attributes const& at, layout const& in) {
  dims const &sizes = at[0], &strides = at[1];
  for (int k = 1; k <= in.sizes.n && k <= sizes.n; ++k) {
    layout const row{in.sizes.sub(k, in.sizes.n), in.strides.sub(k, in.sizes.n), 0, true};
    extent const length = numel(row.sizes);
    if (in.sizes[k - 1] == 0 || sizes[k - 1] != in.sizes[k - 1] || strides[k - 1] != length) return 0;
    extent last = at[2][0];
    for (int j = k; j < sizes.n; ++j) last += (sizes[j] - 1) * strides[j];
    if (row.contiguous() && (last < length || numel(sizes) == 0)) return k;
  }
  return 0;
}
/// True if the region of a value with any strides follows its axes and exceeds none. Then `r` is its layout.
constexpr bool goes_along_axes(attributes const& at, layout const& in, layout& r) {
  for (dims const& d : {at[0], at[1], at[2], in.sizes, in.strides})
    if (!are_numbers(d)) return false;
  dims const rows = contiguous_strides(in.sizes);
  dims last; // indices of the last element
  last.n = in.sizes.n;
  auto const step = [&](extent length, extent times) {
    extent to = 0;
    for (int k = 0; k < rows.n; ++k) {
      extent const along = length / rows[k];
      length -= along * rows[k], last[k] += times * along, to += along * in.strides[k];
    }
    return to;
  };
  bool const empty = numel(at[0]) == 0;
  r.offset = in.offset + step(at[2][0], 1);
  for (int j = 0; j < r.sizes.n; ++j) r.strides[j] = step(at[1][j], empty ? extent(0) : at[0][j] - 1);
  for (int k = 0; k < rows.n; ++k)
    if (last[k] >= in.sizes[k]) return false;
  return true;
}
} // namespace detail

/// A region of the row-major value `x`: the elements at `offset + sum of index * stride`, as a view
/// (`torch.as_strided`). Offsets count from the first element of x. The gradient of an element that occurs twice is the
/// sum. x must be contiguous (`value_error`), and the region must lie within it.
///
/// `detail::strided_region` accepts other values, too. It returns a view if each step follows their axes, otherwise a
/// view of a copy.
template <>
struct rules<as_strided_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[] size, int[] stride, int storage_offset) -> Tensor(a)";
  static constexpr int least_attributes = 2;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    dims const offset = at.count > 2 && at[2].n > 0 ? at[2] : dims{0};
    return attributes(detail::check_region(at[0], at[1], offset, in[0].sizes), at[1], offset);
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    layout r{at[0], at[1], in.offset + at[2][0], in.contiguous()};
    int const axes = r.expressible ? 0 : detail::axes_of_rows(at, in);
    for (int k = 0; k < axes; ++k) r.strides[k] = in.strides[k], r.expressible = true;
    if (layout along = r; !r.expressible && detail::goes_along_axes(at, in, along))
      return along.expressible = true, along;
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return bind<as_strided_backward_t>(shape_of(x), op.b, op.c)(g);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return bind<as_strided_t>(on_dims(detail::prepend, op.a, n), on_dims(detail::prepend_step, op.b, shape_of(o.value)),
                              op.c)(o.value);
  }
};

/// The transpose of `as_strided`: zeros of a shape, to which each element is added at its position in the region.
template <>
struct rules<as_strided_backward_t> : rule::linear {
  static constexpr complex_rule of_complex = complex_rule::by_parts;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor grad_output, int[] input_sizes, int[] stride, int storage_offset) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    detail::require_sizes("as_strided_backward", at[0]);
    if (at[2].n != 1) refuse::argument_is_invalid("as_strided_backward", "the offset is one number");
    return detail::check_region(in[0].sizes, at[1], at[2], at[0]), at;
  }
  static constexpr op_kind kind = op_kind::join;
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> g) {
    detail::clear(out);
    if (numel(g.sizes))
      for_each_row(
          g.sizes, [](index_t n, auto to, auto from) { detail::add_row<R>(n, to, from); },
          strided<R>{out.data + at[2][0], g.sizes, at[1]}, g);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return bind<as_strided_t>(shape_of(x), op.b, op.c)(contiguous(g));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return bind<as_strided_backward_t>(on_dims(detail::prepend, op.a, n), on_dims(detail::prepend_numel, op.b, op.a),
                                       op.c)(o.value);
  }
};

/// The first operand with a region replaced by the second (`torch.as_strided_scatter`). The elements of the region must
/// be distinct.
template <>
struct rules<as_strided_scatter_t> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self, Tensor src, int[] stride, int storage_offset) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[1].n != 1) refuse::argument_is_invalid("as_strided_scatter", "the offset is one number");
    require_one_dtype(in);
    return detail::check_region(in[1].sizes, at[0], at[1], in[0].sizes), at;
  }
  static constexpr op_kind kind = op_kind::join;
  static constexpr bool moves_elements = true;
  static constexpr int arity = 2;
  static constexpr void require_one_dtype(meta const* in) {
    if (in[0].type != in[1].type) refuse::dtypes_differ("as_strided_scatter", name(in[0].type), name(in[1].type));
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    require_one_dtype(in);
    return {in[0].type, in[0].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<T const> source) {
    detail::assign(out, x);
    if (numel(source.sizes)) detail::assign(strided<R>{out.data + at[1][0], source.sizes, at[0]}, source);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&,
                            value auto const& source) {
    return op(d, detail::constant_zeros(source));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const& op, value auto const& d, value auto const&, value auto const& x,
                            value auto const&) {
    return op(detail::constant_zeros(x), d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&,
                            value auto const& source) {
    return op(g, detail::constant_like(g, shape_of(source), 0));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const&,
                            value auto const& source) {
    return bind<as_strided_t>(shape_of(source), op.a, op.b)(contiguous(g));
  }
  template <class Op, class N, class X, class S>
  static constexpr auto batch(Op const& op, N const& n, X const& x, S const& source) {
    auto const wide = materialize(x, n);
    return bind<as_strided_scatter_t>(on_dims(detail::prepend_step, op.a, shape_of(wide)),
                                      op.b)(wide, materialize(source, n));
  }
};

namespace detail {
/// Returns a strided region of a value in any memory order.
template <value X, class S, class T, class O>
constexpr auto strided_region(X const& x, S const& sizes, T const& strides, O const& offset) {
  auto const s = on_dims(check_region, as_fact(sizes), as_fact(strides), as_fact(offset), shape_of(x));
  return bind<as_strided_t>(s, as_fact(strides), as_fact(offset))(x);
}
} // namespace detail

template <value X, class S, class T, class O>
constexpr auto as_strided_t::operator()(X const& x, S const& sizes, T const& strides, O const& offset) const {
  if constexpr (std::is_same_v<X, tensor>)
    if (!(x.is_wrapped() ? detail::memory_layout(x).contiguous() : x.is_contiguous()))
      refuse::argument_is_invalid("as_strided", "the value must be contiguous");
  return detail::strided_region(x, sizes, strides, offset);
}
template <value G, class S, class T, class O>
constexpr auto as_strided_backward_t::operator()(G const& g, S const& sizes, T const& strides, O const& offset) const {
  return bind<as_strided_backward_t>(detail::as_fact(sizes), detail::as_fact(strides), detail::as_fact(offset))(g);
}
template <value X, value S, class T, class O>
constexpr auto as_strided_scatter_t::operator()(X const& x, S const& source, T const& strides, O const& offset) const {
  (void)on_dims(detail::check_region, shape_of(source), detail::as_fact(strides), detail::as_fact(offset), shape_of(x));
  return bind<as_strided_scatter_t>(detail::as_fact(strides), detail::as_fact(offset))(x, source);
}

} // namespace varve
