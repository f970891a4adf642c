// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/logical.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

/// @file
/// Running sums, products and extrema along an axis. Here and in `sorting/sort.hpp`, a value of rank 0 counts as one
/// element.
namespace varve {

/// Linear recurrence y_k = a_k y_{k-1} + b_k along an axis, from index 0 or, in reverse, from the end:
/// `recurrence(a, b, axis, reverse)`. The shapes of a and b are equal, and so are their dtypes. Running sums, running
/// products and their derivatives of any order are recurrences. O(n).
inline constexpr struct recurrence_t {
  static constexpr auto op_name = "recurrence";
  template <value A, value B, class D, class R = ints<0>>
  constexpr auto operator()(A const& a, B const& b, D const& axis, R const& reverse = {}) const {
    return bind<recurrence_t>(on_dims(detail::one_axis, detail::as_fact(axis), shape_of(a)),
                              detail::as_fact(reverse))(a, b);
  }
} recurrence{};

namespace detail {
/// Calls `f(row...)` for every row along an axis, with a pointer to the row's first element in each operand. Threads
/// share the rows if `cost` times the number of elements is large enough; each thread then has its own copy of `f`.
template <class F, class... T>
constexpr void for_each_line(dims const& sizes, int axis, index_t cost, F&& f, strided<T> const&... s) {
  dims first = sizes;
  if (numel(sizes) == 0) return;
  first[axis] = 1;
  if constexpr (fusion::threaded) {
    int longest = 0;
    for (int k = 1; k < first.n; ++k)
      if (first[k].bits > first[longest].bits) longest = k;
    return fusion::share(first[longest].bits, 1, cost * numel(sizes).bits, [&](index_t from, index_t to) {
      std::decay_t<F> own = f;
      dims part = first;
      part[longest] = to - from;
      for_each_index(part, [&](dims i) {
        i[longest] = i[longest].bits + from;
        own(&s.at(i)...);
      });
    });
  }
  for_each_index(first, [&](dims const& i) { f(&s.at(i)...); });
}
/// Returns the slice {axis, start, stop, step} of all indices of an axis but the last or, if `later`, but the first.
inline constexpr auto all_but_one = [](dims const& s, dims const& axis, dims const& later) {
  extent const n = s[static_cast<int>(axis[0])];
  bool const none = n < 1;
  if (later[0] != 0) return dims{axis[0], none ? extent(0) : extent(1), n, 1};
  return dims{axis[0], 0, none ? extent(0) : n - 1, 1};
};
inline constexpr auto turned_flag = [](dims const& r) { return dims{r[0] == 0}; };
/// Returns, for each element, its predecessor in the direction of a recurrence, and 0 for the first.
template <value X, class A, class R>
constexpr auto previous(X const& x, A const& axis, R const& reverse) {
  auto const s = shape_of(x);
  auto const from = on_dims(all_but_one, s, axis, reverse);
  auto const to = on_dims(all_but_one, s, axis, on_dims(turned_flag, reverse));
  return bind<slice_backward_t>(s, to)(bind<slice_t>(from)(x));
}
} // namespace detail

/// Rules of `recurrence`. Attributes {axis}, {reverse}.
template <>
struct rules<recurrence_t> {
  static constexpr operator_reach reach = operator_reach::earlier;
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result, saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor factor, Tensor self, int dim, bool reverse=False) -> Tensor";
  static constexpr int least_attributes = 1;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n != 1 || in[0].sizes.n == 0)
      refuse::argument_is_invalid("recurrence", "one axis of a value with dimensions is needed");
    return attributes(detail::one_axis(at[0], in[0].sizes), dims{at.count > 1 && at[1].n > 0 && at[1][0] != 0});
  }
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    if (in[0].sizes.n == 0 || !(in[0].sizes == in[1].sizes))
      refuse::shapes_do_not_match("recurrence", in[0].sizes, in[1].sizes);
    if (in[0].type != in[1].type) refuse::dtypes_differ("recurrence", name(in[0].type), name(in[1].type));
    return {in[1].type, in[1].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> b) {
    int const axis = static_cast<int>(at[0][0]);
    index_t const n = out.sizes[axis], sa = a.strides[axis], sb = b.strides[axis], so = out.strides[axis];
    bool const reverse = at[1][0] != 0;
    detail::for_each_line(
        out.sizes, axis, 4,
        [&](R* y, T const* p, T const* q) {
          R last{};
          for (index_t j = 0; j < n; ++j) {
            index_t const k = reverse ? n - 1 - j : j;
            last = j == 0 ? static_cast<R>(q[k * sb])
                          : kernel::add<R>(kernel::mul<R>(static_cast<R>(p[k * sa]), last), static_cast<R>(q[k * sb]));
            y[k * so] = last;
          }
        },
        out, a, b);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& y, value auto const& a,
                            value auto const&) {
    return op(a, mul(d, detail::previous(y, op.a, op.b)));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const& op, value auto const& d, value auto const&, value auto const& a,
                            value auto const&) {
    return op(a, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& y, value auto const& a,
                            value auto const&) {
    return mul(back(op, g, a), detail::previous(y, op.a, op.b));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& a,
                            value auto const&) {
    return back(op, g, a);
  }
  template <class Op, class N, class A, class B>
  static constexpr auto batch(Op const& op, N const& n, A const& a, B const& b) {
    return bind<recurrence_t>(on_dims(detail::shifted, op.a), op.b)(materialize(a, n), materialize(b, n));
  }

private:
  /// Transposes the recurrence: it runs in the other direction, with the factors shifted by one step.
  template <class Op, value G, value A>
  static constexpr auto back(Op const& op, G const& g, A const& a) {
    auto const turned = on_dims(detail::turned_flag, op.b);
    return bind<recurrence_t>(op.a, turned)(detail::previous(a, op.a, turned), g);
  }
};

/// Index of the greatest (or smallest) element so far along an axis, the last one if several are equal. NaN counts as
/// the extremum.
inline constexpr struct running_place_t {
  static constexpr auto op_name = "running_place";
  template <value X, class A, class L = ints<0>>
  constexpr auto operator()(X const& x, A const& axis, L const& least = {}) const {
    return bind<running_place_t>(on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x)),
                                 detail::as_fact(least))(x);
  }
} running_place{};

namespace detail {
/// Base of operators that compute an index (int64) for every element of rows along an axis. Attributes {axis},
/// {a flag}.
template <class Tag>
struct places_along {
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  template <class>
  using result = std::int64_t;
  static constexpr int least_attributes = 1;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[0].n != 1 || in[0].sizes.n == 0)
      refuse::argument_is_invalid(Tag::op_name, "one axis of a value with dimensions is needed");
    return attributes(one_axis(at[0], in[0].sizes), dims{at.count > 1 && at[1].n > 0 && at[1][0] != 0});
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    if (in[0].sizes.n == 0) refuse::argument_is_invalid(Tag::op_name, "a value of rank 0 has no axis");
    return {dtype::int64, in[0].sizes};
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<Tag>(on_dims(shifted, op.a), op.b)(o.value);
  }
};
} // namespace detail

template <>
struct rules<running_place_t> : detail::places_along<running_place_t> {
  static constexpr char const* part_of = "cummax, cummin and logcumsumexp";
  static constexpr auto schema = "(Tensor self, int dim, bool least=False) -> Tensor";
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    int const axis = static_cast<int>(at[0][0]);
    index_t const n = out.sizes[axis], sx = x.strides[axis], so = out.strides[axis];
    bool const least = at[1][0] != 0;
    detail::for_each_line(
        out.sizes, axis, 4,
        [&](R* y, T const* p) {
          index_t best = 0;
          T b = p[0];
          for (index_t k = 0; k < n; ++k) {
            T const v = p[k * sx];
            bool const now = (v != v) | ((b == b) & (least ? v <= b : v >= b));
            best = now ? k : best;
            b = now ? v : b;
            y[k * so] = best;
          }
        },
        out, x);
  }
};

namespace detail {
/// Returns `f(x with at least one dimension, axis)`, reshaped to the shape of x.
template <value X, class A, class F>
constexpr auto along_axis(X const& x, A const& axis, F const& f) {
  auto const a = on_dims(one_axis, as_fact(axis), shape_of(x));
  return reshape_to(f(of_rank_one(x), a), shape_of(x));
}
/// Converts integers and bool to int64, in which they are summed.
template <value X>
constexpr auto to_be_summed(X const& x) {
  return choose(
      is_floating_fact(x), identity, [](auto const& v) { return to(v, ints<static_cast<index_t>(dtype::int64)>{}); },
      x);
}
template <value X>
constexpr auto ones_beside(X const& x) {
  return expand(constant_like(x, ints<>{}, 1), shape_of(x));
}
} // namespace detail

/// Cumulative sum along an axis (`torch.cumsum`); bool and integers sum to int64.
inline constexpr struct cumsum_t : composite_operator<cumsum_t> {
  static constexpr auto op_name = "cumsum";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    return detail::along_axis(detail::to_be_summed(x), axis,
                              [](auto const& v, auto const& a) { return recurrence(detail::ones_beside(v), v, a); });
  }
} cumsum{};
/// Cumulative product along an axis (`torch.cumprod`). Derivatives are exact also where elements are 0.
inline constexpr struct cumprod_t : composite_operator<cumprod_t> {
  static constexpr auto op_name = "cumprod";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    return detail::along_axis(detail::to_be_summed(x), axis, [](auto const& v, auto const& a) {
      auto const s = shape_of(v);
      auto const rest = on_dims(detail::all_but_one, s, a, ints<1>{});
      auto const first = on_dims([](dims const& r) { return dims{r[0], 0, r[1], 1}; }, rest);
      auto const part = [&](auto const& range) { return bind<slice_backward_t>(s, range)(bind<slice_t>(range)(v)); };
      return recurrence(part(rest), part(first), a);
    });
  }
} cumprod{};

namespace detail {
template <value X, class A, class L>
constexpr auto running_extremum(X const& x, A const& axis, L const& least) {
  auto const a = on_dims(one_axis, as_fact(axis), shape_of(x));
  auto const v = of_rank_one(x);
  auto const at = running_place(v, a, least);
  return std::pair(reshape_to(gather(v, a, at), shape_of(x)), reshape_to(at, shape_of(x)));
}
} // namespace detail
/// Cumulative maximum along an axis, with the indices of the maxima, as a pair (`torch.cummax`).
inline constexpr struct cummax_t {
  template <value X, class A>
  constexpr auto operator()(X const& x, A const& axis) const {
    return detail::running_extremum(x, axis, ints<0>{});
  }
} cummax{};
/// Cumulative minimum along an axis, with the indices of the minima, as a pair (`torch.cummin`).
inline constexpr struct cummin_t {
  template <value X, class A>
  constexpr auto operator()(X const& x, A const& axis) const {
    return detail::running_extremum(x, axis, ints<1>{});
  }
} cummin{};

/// Logarithm of the cumulative sum of e^x along an axis, without overflow (`torch.logcumsumexp`).
inline constexpr struct logcumsumexp_t : composite_operator<logcumsumexp_t> {
  static constexpr auto op_name = "logcumsumexp";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    detail::needs_floating<logcumsumexp_t>(x);
    return detail::along_axis(x, axis, [](auto const& v, auto const& a) {
      auto const top = detach(cummax(v, a).first); // a scale that changes along the axis
      auto const scale = where(isfinite(top), top, 0);
      auto const less = exp(sub(detail::previous(scale, a, ints<0>{}), scale));
      return add(log(recurrence(less, exp(sub(v, scale)), a)), scale);
    });
  }
} logcumsumexp{};

/// Cumulative integral along an axis by the trapezoidal rule, for samples at distance `dx`
/// (`torch.cumulative_trapezoid`).
inline constexpr struct cumulative_trapezoid_t : composite_operator<cumulative_trapezoid_t> {
  static constexpr auto op_name = "cumulative_trapezoid";
  template <value Y, class A = ints<-1>, value X = double>
  static constexpr auto body(Y const& y, A const& axis = {}, X const& dx = 1.0) {
    auto const checked = [](dims const& at, dims const& s) {
      if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis");
      return detail::one_axis(at, s);
    };
    auto const a = on_dims(checked, detail::as_fact(axis), shape_of(y));
    auto const part = [&](auto const& later) {
      return bind<slice_t>(on_dims(detail::all_but_one, shape_of(y), a, later))(y);
    };
    return mul(cumsum(mul(add(part(ints<1>{}), part(ints<0>{})), dx), a), 0.5);
  }
} cumulative_trapezoid{};

} // namespace varve
