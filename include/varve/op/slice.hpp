// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/reshape.hpp>
#include <varve/rule/moving.hpp>
#include <varve/rule/reduction.hpp>

namespace varve {

/// Start, stop and step as compile-time constants: `slice(x, axis<0>, range<1, 5>)`, `range<0, end, 2>`.
template <index_t... I>
inline constexpr ints<I...> range{};
/// A bound of a range: the end of the axis, whatever its size.
inline constexpr index_t end = INT64_MAX;

namespace detail {
/// Returns {axis, start, stop, step} with negative bounds resolved and bounds clamped, as in Python slices.
inline constexpr auto normalize_slice = [](dims const& axis, dims const& range,
                                           dims const& sizes) __attribute__((always_inline)) {
  if (sizes.n == 0) refuse::argument_is_invalid("slice", "a rank-0 value cannot be sliced");
  int const a = wrap_axis(axis[0].bits, sizes.n);
  auto const bounds = [a](auto n, auto from, auto to, index_t step) {
    if (step < 1) refuse::argument_is_invalid("slice", "the step must be positive");
    auto const bound = [n](auto i) { return i < 0 ? (i + n < 0 ? decltype(n)(0) : i + n) : i > n ? n : i; };
    auto const start = bound(from), stop = bound(to);
    return dims{a, start, stop < start ? start : stop, step};
  };
  extent const n = sizes[a];
  return on_sizes(bounds, n, range.n > 0 ? range[0] : extent(0),
                  range.n > 1 && !known_equal(range[1], end) ? range[1] : n, range.n > 2 ? range[2] : extent(1));
};
inline constexpr auto count_of_slice = [](auto start, auto stop, auto step) {
  return (stop - start + step - 1) / step;
};
constexpr extent slice_count(dims const& r) { return count_of_slice(r[1], r[2], r[3]); }
inline constexpr auto next_axis = [](dims const& r) { return dims{r[0] + 1, r[1], r[2], r[3]}; };
} // namespace detail

/// Every step-th element of one axis from start to stop. A view. Attribute {axis, start, stop, step}.
template <>
struct rules<slice_t> : rule::view {
  static constexpr operator_class planned_as = operator_class::slice;
  static constexpr auto schema = "(Tensor(a) self, int[4] dim_start_end_step) -> Tensor(a)";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n < 1) refuse::argument_is_invalid("slice", "the axis is missing");
    return attributes(detail::normalize_slice(dims{at[0][0]}, at[0].sub(1, at[0].n), in[0].sizes));
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) { return detail::view_shape<rules>(at, in); }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    dims const& r = at[0];
    int const a = static_cast<int>(r[0].bits);
    struct placed {
      extent count, stride, offset;
    };
    auto const part = [](auto start, auto stop, auto step, auto stride, auto offset) {
      return placed{detail::count_of_slice(start, stop, step), stride * step, offset + start * stride};
    };
    placed const p = on_sizes(part, r[1], r[2], r[3], in.strides[a], in.offset);
    layout l = in;
    l.sizes[a] = p.count;
    l.strides[a] = p.stride;
    l.offset = p.offset;
    return l;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return slice_backward(g, shape_of(x), op.a);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<slice_t>(on_dims(detail::next_axis, op.a))(o.value);
  }
};

/// Zeros of a shape, with the operand written at a slice. Attributes {shape, {axis, start, stop, step}}.
template <>
struct rules<slice_backward_t> : rule::linear {
  static constexpr operator_class planned_as = operator_class::slice_backward;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor grad_output, int[] input_sizes, int[4] dim_start_end_step) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    detail::require_sizes("slice_backward", at[0]);
    meta const whole{in[0].type, at[0]};
    attributes const r(at[0], rules<slice_t>::checked(attributes(at[1]), &whole)[0]);
    dims part = r[0];
    part[static_cast<int>(r[1][0])] = detail::slice_count(r[1]);
    if (!(part == in[0].sizes)) refuse::shapes_do_not_match("slice_backward", in[0].sizes, part);
    return r;
  }
  static constexpr op_kind kind = op_kind::join;
  static constexpr bool moves_elements = true;
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> g) {
    detail::clear(out);
    layout const l = rules<slice_t>::layout_of(attributes(at[1]), {out.sizes, out.strides, 0, true});
    if (numel(g.sizes)) detail::assign(strided<R>{out.data + l.offset, l.sizes, l.strides}, g);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&) {
    return bind<slice_t>(op.b)(g);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return bind<slice_backward_t>(on_dims(detail::prepend, op.a, n), on_dims(detail::next_axis, op.b))(o.value);
  }
};

namespace detail {
/// Returns a bound as attributes store it. Numbers beyond any size, whose bits symbols use, become `end`.
template <class R>
constexpr extent slice_bound(R const& r) {
  if constexpr (std::is_integral_v<R>) return r >= index_t{1} << 62 ? index_t(end) : static_cast<index_t>(r);
  else return r;
}
/// Returns {start, stop, step} of a call, as far as they are given.
template <class... R>
constexpr dims bounds_of(R const&... r) {
  if constexpr (sizeof...(R) == 1 && (is_ints<R> && ...)) return to_dims(r...);
  else return dims{slice_bound(r)...};
}
/// True if bounds would be clamped to a size that is symbolic in a trace.
template <class X>
constexpr bool is_beyond_a_symbol(X const& x, dims const& axis, dims const& range) {
  dims const sizes = to_dims(shape_of(x));
  if (sizes.n == 0) return false;
  index_t const n = sizes[wrap_axis(axis[0], sizes.n)];
  bool beyond = false;
  for (int k = 0; k < range.n && k < 2; ++k) beyond |= range[k] != end && (range[k] > n || range[k] < -n);
  return beyond && backend<typename decltype(base_tag<X>())::type>::may_be_symbolic(base_value(x), n);
}
} // namespace detail

template <value X, class A, class... R>
  requires(!detail::slice_bound_type<X>)
constexpr auto slice_t::operator()(X const& x, A const& axis, R const&... r) const {
  if constexpr (traced_value<X>)
    if (detail::is_beyond_a_symbol(x, to_dims(detail::as_fact(axis)), detail::bounds_of(r...)))
      refuse::bound_lies_beyond_what_a_symbolic_size_is_while_traced("slice");
  if constexpr (sizeof...(R) == 1 && (is_ints<R> && ...))
    return bind<slice_t>(on_dims(detail::normalize_slice, detail::as_fact(axis), r..., shape_of(x)))(x);
  else
    return bind<slice_t>(on_dims(detail::normalize_slice, detail::as_fact(axis), detail::bounds_of(r...), shape_of(x)))(
        x);
}
template <value G, class S, class R>
constexpr auto slice_backward_t::operator()(G const& g, S const& sizes, R const& r) const {
  return bind<slice_backward_t>(detail::as_fact(sizes), detail::as_fact(r))(g);
}

/// The elements at one index of an axis, without that axis.
inline constexpr struct select_t : composite_operator<select_t> {
  static constexpr bool gives_view = true;
  static constexpr auto op_name = "select";
  template <value X, class A, class I>
  static constexpr auto body(X const& x, A const& axis, I const& index) {
    auto at = [](dims const& axis, dims const& i, dims const& sizes) {
      if (sizes.n == 0) refuse::a_value_of_rank_0_has_no_axis("select");
      int const a = wrap_axis(axis[0], sizes.n);
      if (i[0] < -sizes[a] || i[0] >= sizes[a]) refuse::index_out_of_range("select", i[0], sizes[a]);
      extent const k = i[0] < 0 ? i[0] + sizes[a] : i[0];
      return dims{a, k, k + 1, 1};
    };
    auto r = on_dims(at, detail::as_fact(axis), detail::as_fact(index), shape_of(x));
    auto without = [](dims const& s, dims const& r) {
      dims d = s;
      return d.erase(static_cast<int>(r[0]));
    };
    auto part = bind<slice_t>(r)(x);
    return reshape(part, on_dims(without, shape_of(part), r));
  }
} select{};

} // namespace varve
