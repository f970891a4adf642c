// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/composite/diagonals.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/composite/products.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/cat.hpp>

/// @file
/// Finite differences, the trapezoidal rule, and products of vectors and matrices along axes.
namespace varve {

/// Differences of adjacent elements along an axis (`torch.diff`). bool yields whether they differ.
inline constexpr struct diff_t : composite_operator<diff_t> {
  static constexpr auto op_name = "diff";
  template <value X, class A = ints<-1>>
  static constexpr auto body(X const& x, A const& axis = {}) {
    auto const a = detail::as_fact(axis);
    auto const less = [](dims const& s, dims const& at) {
      if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis");
      extent const n = s[wrap_axis(at[0], s.n)];
      return dims{n < 1 ? extent(0) : n - 1};
    };
    auto const n = on_dims(less, shape_of(x), a);
    auto const first =
        on_dims([](dims const& s, dims const& at) { return dims{s[wrap_axis(at[0], s.n)] > 0}; }, shape_of(x), a);
    auto const later = narrow(x, a, first, n), earlier = narrow(x, a, ints<0>{}, n);
    auto const of_truth = [](auto const& u, auto const& v) { return ne(u, v); };
    return choose(same_fact(type_fact(x), ints<static_cast<index_t>(dtype::bool_)>{}), of_truth, sub, later, earlier);
  }
} diff{};

/// Derivatives along an axis by finite differences of elements with spacing `h` (`torch.gradient` of one axis). Inner
/// elements use central differences; the ends use one neighbour, or two if `edge` is 2.
inline constexpr struct gradient_along_t : composite_operator<gradient_along_t> {
  static constexpr auto op_name = "gradient";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis, double h = 1, int edge = 1) {
    if (edge != 1 && edge != 2) refuse::argument_is_invalid(op_name, "the order at the edges is 1 or 2");
    auto const a = detail::as_fact(axis);
    auto const v = detail::as_floating(x);
    auto const inner = [](dims const& s, dims const& at) {
      extent const n = s.n ? s[wrap_axis(at[0], s.n)] : extent(0);
      if (n < 2) refuse::argument_is_invalid(op_name, "an axis has fewer elements than its edges need");
      return dims{n - 2};
    };
    auto const n = on_dims(inner, shape_of(v), a);
    if (edge == 2 && to_dims(n)[0] < 1)
      refuse::argument_is_invalid(op_name, "an axis has fewer elements than its edges need");
    auto const from_end = [](dims const& m, dims const& k) { return dims{m[0] + 2 - k[0]}; };
    auto const at = [&](auto const& k) { return narrow(v, a, k, ints<1>{}); };
    auto const back = [&](auto const& k) { return at(on_dims(from_end, n, k)); };
    auto const middle = mul(sub(narrow(v, a, ints<2>{}, n), narrow(v, a, ints<0>{}, n)), 0.5 / h);
    auto const two_points = [&](auto const& u, auto const& w) { return mul(sub(w, u), 1 / h); };
    auto const ends = [&](auto const& first, auto const& last) { return cat(std::make_tuple(first, middle, last), a); };
    if (edge == 1) return ends(two_points(at(ints<0>{}), at(ints<1>{})), two_points(back(ints<2>{}), back(ints<1>{})));
    auto const three_points = [&](auto const& f0, auto const& f1, auto const& f2, double sign) {
      return mul(sub(mul(f1, 2), add(mul(f0, 1.5), mul(f2, 0.5))), sign / h);
    };
    auto const third = on_dims([](dims const& m) { return dims{m[0] < 1 ? extent(1) : extent(2)}; }, n);
    auto const third_back = on_dims([](dims const& m) { return dims{m[0] < 1 ? extent(0) : m[0] - 1}; }, n);
    return ends(three_points(at(ints<0>{}), at(ints<1>{}), at(third), 1),
                three_points(back(ints<1>{}), back(ints<2>{}), at(third_back), -1));
  }
} gradient_along{};

/// Derivatives along an axis by finite differences of elements at `places`, a vector of ascending coordinates
/// (`torch.gradient` with coordinates). Inside, they are exact for parabolas; at the ends for lines, or for parabolas
/// if `edge` is 2.
inline constexpr struct gradient_over_t : composite_operator<gradient_over_t> {
  static constexpr auto op_name = "gradient";
  template <value X, class A, value P>
  static constexpr auto body(X const& x, A const& axis, P const& places, int edge = 1) {
    if (edge != 1 && edge != 2) refuse::argument_is_invalid(op_name, "the order at the edges is 1 or 2");
    auto const a = detail::as_fact(axis);
    auto const v = detail::as_floating(x);
    auto const column = [](dims const& s, dims const& at, dims const& t) {
      extent const n = s.n ? s[wrap_axis(at[0], s.n)] : extent(0);
      if (t.n != 1 || n != t[0]) refuse::shapes_do_not_match(op_name, s, t);
      if (n < 2) refuse::argument_is_invalid(op_name, "an axis has fewer elements than its edges need");
      dims r = s;
      for (int k = 0; k < r.n; ++k) r[k] = 1;
      r[wrap_axis(at[0], s.n)] = n;
      return r;
    };
    auto const h = diff(reshape(to(places, type_fact(v)), on_dims(column, shape_of(v), a, shape_of(places))), a);
    auto const n = on_dims([](dims const& s, dims const& at) { return dims{s[wrap_axis(at[0], s.n)] - 1}; },
                           shape_of(v), a); // the number of differences
    if (edge == 2 && to_dims(n)[0] < 2)
      refuse::argument_is_invalid(op_name, "an axis has fewer elements than its edges need");
    auto const less = [](dims const& m, dims const& k) { return dims{m[0] < k[0] ? extent(0) : m[0] - k[0]}; };
    auto const inner = on_dims(less, n, ints<1>{});
    auto const part = [&](auto const& u, auto const& from, auto const& count) { return narrow(u, a, from, count); };
    auto const first = part(h, ints<0>{}, inner), second = part(h, on_dims(less, n, inner), inner);
    auto const middle = add(mul(part(v, ints<0>{}, inner), neg(div(second, mul(first, add(first, second))))),
                            add(mul(part(v, ints<1>{}, inner), div(sub(second, first), mul(first, second))),
                                mul(part(v, ints<2>{}, inner), div(first, mul(second, add(first, second))))));
    auto const one = [&](auto const& u, auto const& from) { return part(u, from, ints<1>{}); };
    auto const last = on_dims(less, n, ints<1>{});
    auto const before = on_dims(less, n, ints<2>{});
    auto const slope = [&](auto const& from, auto const& to, auto const& at) {
      return div(sub(one(v, to), one(v, from)), one(h, at));
    };
    auto const ends = [&](auto const& u, auto const& w) { return cat(std::make_tuple(u, middle, w), a); };
    auto const front = slope(ints<0>{}, ints<1>{}, ints<0>{}), back = slope(last, n, last);
    if (edge == 1) return ends(front, back);
    auto const bent = [&](auto const& s, auto const& t, auto const& d, auto const& e) { // s + (s - t) d / (d + e)
      return add(s, mul(sub(s, t), div(d, add(d, e))));
    };
    // with two elements the edges are lines; indices are limited so that no missing element is read
    auto const at_most = [](dims const& m, dims const& k) { return dims{m[0] < k[0] ? m[0] : k[0]}; };
    auto const second_step = on_dims(at_most, last, ints<1>{});
    auto const third = on_dims(at_most, n, ints<2>{});
    auto const next = slope(ints<1>{}, third, second_step), previous = slope(before, last, before);
    return ends(bent(front, next, one(h, ints<0>{}), one(h, second_step)),
                bent(back, previous, one(h, last), one(h, before)));
  }
} gradient_over{};

/// The integral along an axis by the trapezoidal rule, for elements with spacing `dx` (`torch.trapezoid`).
inline constexpr struct trapezoid_t : composite_operator<trapezoid_t> {
  static constexpr auto op_name = "trapezoid";
  template <value Y, class A = ints<-1>, value X = double>
  static constexpr auto body(Y const& y, A const& axis = {}, X const& dx = 1.0) {
    auto const a = detail::as_fact(axis);
    auto const less = [](dims const& s, dims const& at) {
      if (s.n == 0) refuse::argument_is_invalid(op_name, "a value of rank 0 has no axis");
      extent const n = s[wrap_axis(at[0], s.n)];
      return dims{n < 1 ? extent(0) : n - 1};
    };
    auto const n = on_dims(less, shape_of(y), a);
    auto const first =
        on_dims([](dims const& s, dims const& at) { return dims{s[wrap_axis(at[0], s.n)] > 0}; }, shape_of(y), a);
    return mul(sum(mul(add(narrow(y, a, first, n), narrow(y, a, ints<0>{}, n)), dx), a), 0.5);
  }
} trapezoid{};

/// Cross products of vectors of three elements along an axis, which broadcast (`torch.linalg.cross`).
inline constexpr struct cross_t : composite_operator<cross_t> {
  static constexpr auto op_name = "linalg_cross";
  template <value X, value Y, class A = ints<-1>>
  static constexpr auto body(X const& x, Y const& y, A const& axis = {}) {
    auto const a = detail::as_fact(axis);
    auto const check = [](dims const& s, dims const& t, dims const& at) {
      if (s.n != t.n || s.n == 0 || s[wrap_axis(at[0], s.n)] != 3 || t[wrap_axis(at[0], s.n)] != 3)
        refuse::shapes_do_not_match(op_name, s, t);
      return dims{};
    };
    (void)on_dims(check, shape_of(x), shape_of(y), a);
    auto const turned = [&](auto const& v, auto const& first) { // the components rotated, starting with `first`
      return cat(std::make_tuple(narrow(v, a, first, on_dims([](dims const& k) { return dims{3 - k[0]}; }, first)),
                                 narrow(v, a, ints<0>{}, first)),
                 a);
    };
    return sub(mul(turned(x, ints<1>{}), turned(y, ints<2>{})), mul(turned(x, ints<2>{}), turned(y, ints<1>{})));
  }
} cross{};

/// Sums of products over pairs of axes (`torch.tensordot`). Axis k of `x_axes` in x is paired with axis k of `y_axes`
/// in y.
inline constexpr struct tensordot_t : composite_operator<tensordot_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "tensordot";
  template <value X, value Y, class A, class B>
  static constexpr auto body(X const& x, Y const& y, A const& x_axes, B const& y_axes) {
    auto const a = detail::as_fact(x_axes);
    auto const b = detail::as_fact(y_axes);
    auto const check = [](dims const& s, dims const& t, dims const& i, dims const& j) {
      bool fits = i.n == j.n;
      for (int k = 0; fits && k < i.n; ++k) fits = s[wrap_axis(i[k], s.n)] == t[wrap_axis(j[k], t.n)];
      if (!fits) refuse::shapes_do_not_match(op_name, s, t);
      dims r;
      for (int k = 0; k < s.n; ++k)
        if (!is_named(i, k, s.n)) r.push_back(s[k]);
      for (int k = 0; k < t.n; ++k)
        if (!is_named(j, k, t.n)) r.push_back(t[k]);
      return r;
    };
    auto const shape = on_dims(check, shape_of(x), shape_of(y), a, b);
    auto const left = reshape(permute(x, on_dims(named_last, shape_of(x), a)), on_dims(rows_of, shape_of(x), a));
    auto const right = reshape(permute(y, on_dims(named_last, shape_of(y), b)), on_dims(rows_of, shape_of(y), b));
    return reshape(mm(left, right, ints<0, 1>{}), shape);
  }

private:
  static constexpr bool is_named(dims const& axes, int k, int rank) {
    for (extent e : axes)
      if (wrap_axis(e, rank) == k) return true;
    return false;
  }
  static constexpr auto named_last = [](dims const& s, dims const& axes) {
    dims r;
    for (int k = 0; k < s.n; ++k)
      if (!is_named(axes, k, s.n)) r.push_back(k);
    for (extent e : axes) r.push_back(wrap_axis(e, s.n));
    return r;
  };
  static constexpr auto rows_of = [](dims const& s, dims const& axes) {
    extent rows = 1, columns = 1;
    for (int k = 0; k < s.n; ++k) (is_named(axes, k, s.n) ? columns : rows) *= s[k];
    return dims{rows, columns};
  };
} tensordot{};

/// Covariances of variables (rows) over observations (columns) (`torch.cov`). Observations can have weights: `counts`,
/// how often each was made, and `weights`; `none` omits them. For one variable the result is a number.
inline constexpr struct cov_t : composite_operator<cov_t> {
  static constexpr auto op_name = "cov";
  template <value X, class F = none_t, class W = none_t>
  static constexpr auto body(X const& x, double correction = 1, F const& counts = {}, W const& weights = {}) {
    auto const rows = [](dims const& s) {
      if (s.n > 2) refuse::argument_is_invalid(op_name, "at most two dimensions are expected");
      return s.n == 2 ? s : s.n == 1 ? dims{1, s[0]} : dims{1, 1};
    };
    auto const v = detail::as_floating(reshape(x, on_dims(rows, shape_of(x))));
    auto const shape =
        on_dims([](dims const& s) { return s.n == 2 && s[0] != 1 ? dims{s[0], s[0]} : dims{}; }, shape_of(x));
    auto const w = [&] {
      if constexpr (is_none<F> && is_none<W>) return ones_like(select(detach(v), ints<0>{}, ints<0>{}));
      else if constexpr (is_none<W>) return to(counts, type_fact(v));
      else if constexpr (is_none<F>) return to(weights, type_fact(v));
      else return mul(to(counts, type_fact(v)), to(weights, type_fact(v)));
    }();
    auto const total = sum(w);
    auto const d = sub(v, div(sum(mul(v, w), axis<1>, keepdim), total));
    auto const less = [&] { // the correction to the total
      if constexpr (is_none<W>) return mul(new_full(detach(total), ints<>{}, 1), correction);
      else return mul(div(sum(mul(w, to(weights, type_fact(v)))), total), correction);
    }();
    auto const n = maximum(sub(total, less), 0.0);
    return reshape(div(mm(mul(d, w), d, ints<0, 1>{}), n), shape);
  }
} cov{};
/// Correlation coefficients: covariances divided by the standard deviations, in [-1, 1] (`torch.corrcoef`).
inline constexpr struct corrcoef_t : composite_operator<corrcoef_t> {
  static constexpr auto op_name = "corrcoef";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const c = cov(x);
    auto const matrix = [](auto const& v) {
      auto const deviation = sqrt(diagonal(v));
      auto const column = on_dims([](dims const& s) { return dims{s[0], 1}; }, shape_of(deviation));
      return clamp(div(div(v, reshape(deviation, column)), deviation), -1, 1);
    };
    auto const number = on_dims([](dims const& s) { return dims{s.n == 0}; }, shape_of(c));
    return choose(same_fact(number, ints<1>{}), [](auto const& v) { return div(v, v); }, matrix, c);
  }
} corrcoef{};

/// Powers 0 to n - 1 of the elements, along a new last axis (`torch.linalg.vander`).
inline constexpr struct vander_t : composite_operator<vander_t> {
  static constexpr auto op_name = "linalg_vander";
  template <value X, class N>
  static constexpr auto body(X const& x, N const& n) {
    auto const count = detail::as_fact(n);
    if (to_dims(count)[0] < 2) refuse::argument_is_invalid(op_name, "at least two powers are expected");
    auto const column = unsqueeze(x, ints<-1>{});
    return more<1>(cat(std::make_tuple(new_full(detach(column), shape_of(column), 1), column), ints<-1>{}), column,
                   count);
  }

private:
  /// Doubles the number of powers at each step by multiplying the existing ones with the next power.
  template <int Step, class Y, class X, class N>
  static constexpr auto more(Y const& y, X const& x, N const& n) {
    auto const have = on_dims([](dims const& s) { return dims{s[s.n - 1]}; }, shape_of(y));
    auto const grow = [&](auto const& v) {
      if constexpr (Step > 20) return v;
      else {
        auto const last = on_dims([](dims const& h) { return dims{h[0] - 1}; }, have);
        auto const next = mul(narrow(v, ints<-1>{}, last, ints<1>{}), x);
        auto const take = on_dims(
            [](dims const& h, dims const& m) { return dims{m[0] - h[0] < h[0] ? m[0] - h[0] : h[0]}; }, have, n);
        return more<Step + 1>(cat(std::make_tuple(v, mul(narrow(v, ints<-1>{}, ints<0>{}, take), next)), ints<-1>{}), x,
                              n);
      }
    };
    return choose(
        same_fact(on_dims([](dims const& h, dims const& m) { return dims{h[0] < m[0]}; }, have, n), ints<1>{}), grow,
        detail::identity, y);
  }
} vander{};

/// Implements `searchsorted` for operands of one dtype. Attribute {right}: whether to insert after equal elements.
struct places_in_order_t {
  static constexpr auto op_name = "searchsorted";
};
template <>
struct rules<places_in_order_t> {
  static constexpr auto schema = "(Tensor sorted_sequence, Tensor self, bool right) -> Tensor";
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr int arity = 2;
  static constexpr bool differentiable = false;
  template <class>
  using result = std::int64_t;
  static constexpr attributes checked(attributes const& at, meta const*) { return at; }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const &s = in[0].sizes, &v = in[1].sizes;
    if (s.n == 0) refuse::argument_is_invalid("searchsorted", "the boundaries have at least one dimension");
    if (s.n > 1 && (s.n != v.n || !(s.sub(0, s.n - 1) == v.sub(0, v.n - 1))))
      refuse::shapes_do_not_match("searchsorted", s, v);
    if (in[0].type != in[1].type) refuse::dtypes_differ("searchsorted", name(in[0].type), name(in[1].type));
    return {dtype::int64, v};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> sorted, strided<T const> x) {
    bool const right = at[0][0] != 0;
    index_t const n = sorted.sizes[sorted.sizes.n - 1], step = sorted.strides[sorted.sizes.n - 1];
    strided<T const> first{sorted.data, x.sizes, x.sizes}; // where the row of an element begins
    for (int k = 0; k < x.sizes.n; ++k)
      first.strides[k] = sorted.sizes.n > 1 && k + 1 < sorted.sizes.n ? sorted.strides[k] : extent(0);
    for_each_row(
        out.sizes,
        [=](index_t count, auto to, auto v, auto row) {
          for (index_t k = 0; k < count; ++k) to[k] = place(&row[k], n, step, v[k], right);
        },
        out, x, first);
  }
  /// Treats separate boundaries for each lane as rows of a matrix.
  template <class Op, class N, class S, class V>
  static constexpr auto batch(Op const& op, N const& n, S const& sorted, V const& x) {
    auto const all = materialize(x, n), rows = materialize(sorted, n);
    auto const flat = on_dims(
        [](dims const& s, dims const& v) {
          extent each = 1;
          for (int k = 1; k < v.n; ++k) each *= v[k];
          return s.n == 2 ? dims{v[0], each} : v;
        },
        shape_of(rows), shape_of(all));
    return reshape(op(rows, reshape(all, flat)), shape_of(all));
  }

private:
  /// Finds the position by bisection. NaN is inserted at the end.
  template <class T>
  static constexpr index_t place(T const* row, index_t n, index_t step, T v, bool right) {
    if (v != v) return n;
    index_t first = 0;
    for (index_t left = n; left > 0;) { // without a branch on the comparison
      index_t const half = left / 2;
      T const m = row[(first + half) * step];
      bool const before = right ? m <= v : m < v; // NaN boundaries come after all others
      first = before ? first + half + 1 : first;
      left = before ? left - half - 1 : half;
    }
    return first;
  }
};

/// The indices at which elements would be inserted into ascending boundaries along the last axis
/// (`torch.searchsorted`). An element goes before equal boundaries, or after them if `right`; NaN goes to the end.
///
/// One-dimensional boundaries serve all elements. Boundaries of more dimensions have the rank of the elements and one
/// row for each row of elements. Operands of different dtypes are compared in their common dtype. Tensors take O(log n)
/// for each element; static values compare all pairs, which can be fused.
inline constexpr struct searchsorted_t : composite_operator<searchsorted_t> {
  static constexpr auto op_name = "searchsorted";
  template <value S, value V, class R = ints<0>>
  static constexpr auto body(S const& sorted, V const& values, R const& right = {}) {
    if constexpr (detail::is_dynamic_operand<S> && detail::is_dynamic_operand<V>) {
      auto const type = dims{static_cast<index_t>(promote_types(dtype_of(sorted), dtype_of(values)))};
      return bind<places_in_order_t>(to_dims(detail::as_fact(right)))(to(sorted, type), to(values, type));
    } else if constexpr (detail::is_dynamic_operand<S> && number<V>) {
      // an integer may be outside the range of the boundaries' integer dtype
      dtype const own = dtype_of(sorted);
      S const s = to(sorted, is_floating(own) ? own : std::is_floating_point_v<V> ? default_dtype : dtype::int64);
      return bind<places_in_order_t>(to_dims(detail::as_fact(right)))(s, S(detail::constant_like(s, dims{}, values)));
    } else return by_pairs(sorted, values, detail::as_fact(right));
  }

private:
  template <value S, value V, class R>
  static constexpr auto by_pairs(S const& sorted, V const& values, R const& right) {
    auto const rows = [](dims const& s, dims const& v) {
      meta const in[] = {{dtype::int64, s}, {dtype::int64, v}};
      (void)rules<places_in_order_t>::shape({}, in, 2);
      dims r = s;
      if (s.n == 1) return r;
      return r.insert(s.n - 1, 1);
    };
    auto const columns = [](dims const& v) {
      dims r = v;
      return r.push_back(1);
    };
    auto const a = reshape(sorted, on_dims(rows, shape_of(sorted), shape_of(values)));
    auto const b = reshape(values, on_dims(columns, shape_of(values)));
    auto const before = choose(same_fact(right, ints<1>{}), le, lt, a, b);
    return sum(logical_or(before, ne(b, b)), axis<-1>);
  }
} searchsorted{};

/// Whether each element is among `others` (`torch.isin`). It compares all pairs.
inline constexpr struct isin_t : composite_operator<isin_t> {
  static constexpr auto op_name = "isin";
  template <value X, value T>
  static constexpr auto body(X const& elements, T const& others) {
    auto const column = on_dims(
        [](dims const& s) {
          dims r = s;
          return r.push_back(1);
        },
        shape_of(elements));
    return any(eq(reshape(elements, column), ravel(others)), axis<-1>);
  }
} isin{};

} // namespace varve
