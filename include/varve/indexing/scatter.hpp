// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/sum.hpp>
#include <varve/sorting/scans.hpp>
#include <varve/special/rounding.hpp>

/// @file
/// Writing by index, beyond `scatter_add`. Indices are int64; `index_add` and `index_reduce` accept int32, too. Indices
/// out of range throw `index_error`.
namespace varve {

/// How several elements written to the same index combine: the last one stays (`write`), their product, or an extremum.
enum class scatter_rule : unsigned char { write, multiply, greatest, least };

/// Copy of x in which `source[i][j]` is combined into element `[index[i][j]][j]` (for axis 0) by a static rule, see
/// `by_rule`. The source overwrites the element, is multiplied with it, or the greater or smaller of both is stored. If
/// an element is written more than once, the last source stays, but all of these sources receive its gradient, as in
/// PyTorch.
inline constexpr struct scatter_by_t {
  static constexpr auto op_name = "scatter_by";
  template <value X, class A, value I, value S, class R>
  constexpr auto operator()(X const& x, A const& axis, I const& index, S const& source, R const& rule) const;
} scatter_by{};
/// A `scatter_rule` as the static argument that `scatter_by` expects.
template <scatter_rule R>
inline constexpr ints<static_cast<index_t>(R)> by_rule{};

namespace detail {
/// Combines an element and a source. Extrema use no branches, because a processor cannot predict which one is greater.
template <scatter_rule Rule, class R>
constexpr R put_together(R place, R v) {
  if constexpr (Rule == scatter_rule::write) return v;
  else if constexpr (Rule == scatter_rule::multiply) return kernel::mul<R>(place, v);
  else {
    R const r = Rule == scatter_rule::greatest ? (place > v ? place : v) : (place < v ? place : v); // v if v is NaN
    return place == place ? r : place;
  }
}
/// Combines the elements of a row, one after the other, with the elements at a row of indices.
template <scatter_rule Rule, class R>
constexpr void put_row(index_t n, row_of<R> to, row_of<R const> from, row_of<std::int64_t const> at, index_t step) {
  R* const out = to.data;
  R const* const x = from.data;
  std::int64_t const* const k = at.data;
  auto const put = [](R& place, R const& v) { place = put_together<Rule, R>(place, v); };
  bool const plain = from.step == 1 && at.step == 1;
  if (plain && to.step == 0 && step == 1)
    for (index_t i = 0; i < n; ++i) put(out[k[i]], x[i]);
  else if (plain && to.step == 1)
    for (index_t i = 0; i < n; ++i) put(out[i + k[i] * step], x[i]);
  else
    for (index_t i = 0; i < n; ++i) put(out[i * to.step + k[i * at.step] * step], x[i * from.step]);
}
template <scatter_rule R, class Op>
constexpr auto has_rule(Op const& op) {
  return same_fact(op.b, by_rule<R>);
}
template <value X>
constexpr auto is_zero(X const& x) {
  return to(eq(x, 0), type_fact(x));
}
} // namespace detail

/// Rules of `scatter_by`. Attributes {axis}, {rule}.
template <>
struct rules<scatter_by_t> {
  static constexpr char const* part_of = "scatter, scatter_reduce, index_put, index_copy and index_reduce";
  static constexpr operator_reach reach = operator_reach::scattered;
  static constexpr auto schema = "(Tensor self, int dim, Tensor index, Tensor src, int rule) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    if (at[1].n != 1 || at[1][0] < 0 || at[1][0] > 3)
      refuse::argument_is_invalid("scatter_by", "the rule is 0 (write), 1 (multiply), 2 (greatest) or 3 (least)");
    return attributes(rules<gather_t>::checked(attributes(at[0]), in)[0], at[1]);
  }
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 3;
  /// The derivatives of `write` need only the index.
  static constexpr saved_values saved_by(attributes const& at) {
    constexpr auto index = saved_values::operand(1);
    if (static_cast<scatter_rule>(index_t(at[1][0])) == scatter_rule::write) return {{index, 0, index}};
    return {};
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::check_index("scatter", at[0], in[0].sizes, in[1].sizes);
    if (in[1].type != dtype::int64) refuse::dtype_is_not_supported("scatter index (int64 expected):", name(in[1].type));
    if (in[0].type != in[2].type) refuse::dtypes_differ("scatter", name(in[0].type), name(in[2].type));
    if (!(in[1].sizes == in[2].sizes)) refuse::shapes_do_not_match("scatter", in[1].sizes, in[2].sizes);
    return {in[0].type, in[0].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x,
                                strided<std::int64_t const> index, strided<T const> source) {
    detail::assign(out, x);
    auto const run = [&]<scatter_rule Rule>(std::integral_constant<scatter_rule, Rule>) {
      int const a = static_cast<int>(at[0][0]);
      index_t const size = detail::size_along(x, a), step = detail::step_along(out, a);
      detail::for_indexed_rows<detail::put_row<Rule, R>>("scatter", size, step, detail::without_axis(out, a), source,
                                                         index);
    };
    using enum scatter_rule;
    switch (static_cast<scatter_rule>(index_t(at[1][0]))) {
    case write:
      return run(std::integral_constant<scatter_rule, write>{});
    case multiply:
      return run(std::integral_constant<scatter_rule, multiply>{});
    case greatest:
      return run(std::integral_constant<scatter_rule, greatest>{});
    case least:
      return run(std::integral_constant<scatter_rule, least>{});
    }
  }
  template <class Op, class D, class Y, class X, class I, class S>
  static constexpr auto jvp(arg_t<0>, Op const& op, D const& d, Y const& y, X const& x, I const& index, S const& s) {
    auto const zeros = [&] { return detail::constant_zeros(s); };
    return by_kind(
        op, [&](auto const& v) { return op(v, index, zeros()); },
        [&](auto const& v) { return mul(v, factor_of_self(op, x, index, s)); },
        [&](auto const& v) { return mul(v, shares(op, y, x, index, s).first); }, d);
  }
  template <class Op, class D, class Y, class X, class I, class S>
  static constexpr auto jvp(arg_t<2>, Op const& op, D const& d, Y const& y, X const& x, I const& index, S const& s) {
    auto const none = detail::constant_zeros(y);
    auto const put = [&](auto const& v) { return bind<scatter_add_t>(op.a)(none, index, v); };
    return by_kind(
        op, [&](auto const& v) { return op(none, index, v); },
        [&](auto const& v) { return put(mul(v, factor_of_source(op, y, x, index, s))); },
        [&](auto const& v) { return put(mul(v, shares(op, y, x, index, s).second)); }, d);
  }
  template <class Op, class G, class Y, class X, class I, class S>
  static constexpr auto vjp(arg_t<0>, Op const& op, G const& g, Y const& y, X const& x, I const& index, S const& s) {
    return by_kind(
        op, [&](auto const& v) { return op(v, index, detail::constant_like(v, shape_of(s), 0)); },
        [&](auto const& v) { return mul(v, factor_of_self(op, x, index, s)); },
        [&](auto const& v) { return mul(v, shares(op, y, x, index, s).first); }, g);
  }
  template <class Op, class G, class Y, class X, class I, class S>
  static constexpr auto vjp(arg_t<2>, Op const& op, G const& g, Y const& y, X const& x, I const& index, S const& s) {
    auto const got = [&](auto const& v) { return bind<gather_t>(op.a)(v, index); };
    return by_kind(
        op, got, [&](auto const& v) { return mul(got(v), factor_of_source(op, y, x, index, s)); },
        [&](auto const& v) { return mul(got(v), shares(op, y, x, index, s).second); }, g);
  }
  template <class Op, class N, class X, class I, class S>
  static constexpr auto batch(Op const& op, N const& n, X const& x, I const& index, S const& source) {
    return bind<scatter_by_t>(on_dims(detail::shifted, op.a), op.b)(materialize(x, n), materialize(index, n),
                                                                    materialize(source, n));
  }

private:
  template <class Op, class F, class G, class H, value V>
  static constexpr auto by_kind(Op const& op, F const& written, G const& multiplied, H const& extreme, V const& v) {
    using enum scatter_rule;
    auto const rest = [&](auto const& u) { return choose(detail::has_rule<multiply>(op), multiplied, extreme, u); };
    return choose(detail::has_rule<write>(op), written, rest, v);
  }
  /// Returns the product of the sources for each element of x.
  template <class Op, class X, class I, class S>
  static constexpr auto factor_of_self(Op const& op, X const& x, I const& index, S const& s) {
    return op(detail::constant_ones(x), index, s);
  }
  /// Returns, for each source, the product of the other factors of its element, which is also exact for zeros. With two
  /// zeros this product is 0, but it is computed from the other zero and therefore has the right derivative.
  template <class Op, class Y, class X, class I, class S>
  static constexpr auto factor_of_source(Op const& op, Y const& y, X const& x, I const& index, S const& s) {
    auto const got = [&](auto const& v) { return bind<gather_t>(op.a)(v, index); };
    auto const zero = eq(s, 0);
    auto const known = where(zero, 1, s);
    auto const zeros = bind<scatter_add_t>(op.a)(detail::is_zero(x), index, detail::is_zero(s));
    auto const others = op(where(eq(x, 0), 1, x), index, known); // without zeros
    auto const nothing = bind<scatter_add_t>(op.a)(where(eq(x, 0), x, 0), index, where(zero, s, 0));
    auto const by_other = mul(got(others), sub(got(nothing), where(zero, s, 0)));
    auto const count = got(zeros);
    auto const at_zero = where(eq(count, 1), got(others), where(eq(count, 2), by_other, 0));
    return where(zero, at_zero, div(got(y), known));
  }
  /// Returns the share of the derivative of x and of the source: elements equal to the extremum share equally.
  template <class Op, class Y, class X, class I, class S>
  static constexpr auto shares(Op const& op, Y const& y, X const& x, I const& index, S const& s) {
    auto const got = [&](auto const& v) { return bind<gather_t>(op.a)(v, index); };
    auto const self = to(eq(x, y), type_fact(x)), source = to(eq(s, got(y)), type_fact(s));
    auto const count = bind<scatter_add_t>(op.a)(self, index, source);
    auto const each = where(eq(count, 0), 0, div(1, count));
    return std::pair(mul(self, each), mul(source, got(each)));
  }
};

template <value X, class A, value I, value S, class R>
constexpr auto scatter_by_t::operator()(X const& x, A const& axis, I const& index, S const& source,
                                        R const& rule) const {
  auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
  auto const op = bind<scatter_by_t>(a, detail::as_fact(rule));
  return detail::unless_index_is_empty(
      x, index,
      [&](auto const& v) {
        auto const at = detail::of_rank_one(index);
        auto const put = detail::part_to_read(detail::of_rank_one(source), shape_of(at));
        return detail::reshape_to(op(detail::of_rank_one(v), at, put), shape_of(v));
      },
      [&](auto const& v) { // writes nothing; the gradient of the source is 0
        auto const none = on_dims(detail::no_element_of_rank, shape_of(v));
        auto const at = detail::nothing_of(to(index, ints<static_cast<index_t>(dtype::int64)>{}), none);
        auto const put = detail::nothing_of(to(source, type_fact(v)), none);
        return detail::reshape_to(op(detail::of_rank_one(v), at, put), shape_of(v));
      });
}

/// Copy of x with `source[i][j]` written to `[index[i][j]][j]` for axis 0 (`torch.scatter`). The source may be a plain
/// number.
inline constexpr struct scatter_t : composite_operator<scatter_t> {
  static constexpr auto op_name = "scatter";
  template <value X, class A, value I, value S>
  static constexpr auto body(X const& x, A const& axis, I const& index, S const& source) {
    detail::require_element(op_name, source, dtype_of(x));
    if constexpr (number<S>)
      return scatter_by(x, axis, index, expand(detail::constant_like(x, ints<>{}, source), shape_of(index)),
                        by_rule<scatter_rule::write>);
    else return scatter_by(x, axis, index, source, by_rule<scatter_rule::write>);
  }
} scatter{};

/// How a reduction by index combines several elements.
enum class index_reduction : unsigned char { sum, prod, mean, amax, amin };

namespace detail {
/// Returns the neutral element of a reduction in a dtype.
constexpr double neutral_number(index_reduction r, dtype t) {
  if (r == index_reduction::prod) return 1;
  if (r == index_reduction::sum || r == index_reduction::mean) return 0;
  double const infinity = std::numeric_limits<double>::infinity();
  if (is_floating(t)) return r == index_reduction::amax ? -infinity : infinity;
  return static_cast<double>(r == index_reduction::amax ? least_of(t) : greatest_of(t));
}
/// Returns x; unless x is included, the elements that the index names are replaced by the neutral element.
template <value X, class A, value I, value S>
constexpr auto base_of_reduction(X const& x, A const& a, I const& index, S const& s, index_reduction how,
                                 bool include_self) {
  if (include_self) return identity(x);
  auto const neutral = to(add(detail::constant_like(s, ints<>{}, 0), 0), type_fact(x));
  bool const extreme = how == index_reduction::amax || how == index_reduction::amin;
  auto const fill = [&](auto const& v) -> std::remove_cvref_t<decltype(identity(v))> {
    if (extreme && !is_floating(dtype_of(v))) { // no double holds all extrema of integers
      bool const greatest = how == index_reduction::amax, truth = dtype_of(v) == dtype::bool_;
      std::int64_t const n = greatest ? (truth ? 0 : least_of(dtype_of(v))) : truth ? 1 : greatest_of(dtype_of(v));
      return scatter(v, a, index, expand(to(add(neutral, n), type_fact(v)), shape_of(index)));
    }
    return scatter(v, a, index,
                   expand(to(add(neutral, neutral_number(how, dtype_of(v))), type_fact(v)), shape_of(index)));
  };
  return fill(x);
}
} // namespace detail

/// Copy of x with the elements of `source` reduced into the elements that the index names, with the old ones included
/// or not (`torch.scatter_reduce`). Means of integers are rounded down. Derivatives are those of sums, products and
/// extrema.
inline constexpr struct scatter_reduce_t : composite_operator<scatter_reduce_t> {
  static constexpr auto op_name = "scatter_reduce";
  template <value X, class A, value I, value S>
  static constexpr auto body(X const& x, A const& axis, I const& index, S const& source, index_reduction how,
                             bool include_self = true) {
    auto const base = detail::base_of_reduction(x, axis, index, source, how, include_self);
    if (how == index_reduction::prod) return scatter_by(base, axis, index, source, by_rule<scatter_rule::multiply>);
    if (how == index_reduction::amax) return scatter_by(base, axis, index, source, by_rule<scatter_rule::greatest>);
    if (how == index_reduction::amin) return scatter_by(base, axis, index, source, by_rule<scatter_rule::least>);
    auto const sums = scatter_add(base, axis, index, source);
    if (how == index_reduction::sum) return sums;
    auto const one = expand(detail::constant_like(x, ints<>{}, 1), shape_of(x));
    auto const self = detail::base_of_reduction(one, axis, index, source, how, include_self);
    auto const count = scatter_add(self, axis, index, expand(detail::constant_like(x, ints<>{}, 1), shape_of(index)));
    return choose(detail::is_floating_fact(x), div, floor_divide, sums, maximum(count, 1));
  }
} scatter_reduce{};

/// Copy of x with the slices of `source` added to the slices that a vector of indices names (`torch.index_add`).
inline constexpr struct index_add_t : composite_operator<index_add_t> {
  static constexpr auto op_name = "index_add";
  template <value X, class A, value I, value S>
  static constexpr auto body(X const& x, A const& axis, I const& index, S const& source) {
    auto const a = detail::as_fact(axis);
    return scatter_add(x, a, detail::index_of_slices(op_name, source, index, a), source);
  }
} index_add{};
/// Copy of x with the slices that a vector of indices names replaced by those of `source` (`torch.index_copy`).
inline constexpr struct index_copy_t : composite_operator<index_copy_t> {
  static constexpr auto op_name = "index_copy";
  template <value X, class A, value I, value S>
  static constexpr auto body(X const& x, A const& axis, I const& index, S const& source) {
    auto const a = detail::as_fact(axis);
    return scatter(x, a, detail::index_of_slices(op_name, source, index, a, false), source);
  }
} index_copy{};
/// Copy of x with the slices of `source` reduced into the slices that a vector of indices names (`torch.index_reduce`).
inline constexpr struct index_reduce_t : composite_operator<index_reduce_t> {
  static constexpr auto op_name = "index_reduce";
  template <value X, class A, value I, value S>
  static constexpr auto body(X const& x, A const& axis, I const& index, S const& source, index_reduction how,
                             bool include_self = true) {
    auto const a = detail::as_fact(axis);
    return scatter_reduce(x, a, detail::index_of_slices(op_name, source, index, a), source, how, include_self);
  }
} index_reduce{};

/// Copy of x with elements written (or added) at indices into the flattened x; negative ones count from the end
/// (`torch.put`).
inline constexpr struct put_t : composite_operator<put_t> {
  static constexpr auto op_name = "put";
  template <value X, value I, value S>
  static constexpr auto body(X const& x, I const& index, S const& source, bool accumulate = false) {
    detail::require_index(op_name, index);
    auto const row = ravel(x);
    auto const n = index_t(to_dims(shape_of(row))[0]);
    auto const at = ravel(where(lt(index, 0), add(index, n), index));
    auto const from = ravel(source);
    if (!(to_dims(shape_of(at)) == to_dims(shape_of(from))))
      refuse::shapes_do_not_match(op_name, to_dims(shape_of(index)), to_dims(shape_of(source)));
    auto const y = accumulate ? scatter_add(row, ints<0>{}, at, from) : scatter(row, ints<0>{}, at, from);
    return detail::reshape_to(y, shape_of(x));
  }
} put{};

/// Copy of x with consecutive elements of `source` written where a bool mask is true (`torch.masked_scatter`). x and
/// the mask broadcast. Throws `index_error` if the source has too few elements.
inline constexpr struct masked_scatter_t : composite_operator<masked_scatter_t> {
  static constexpr auto op_name = "masked_scatter";
  template <value X, value M, value S>
  static constexpr auto body(X const& x, M const& mask, S const& source) {
    if (dtype_of(mask) != dtype::bool_)
      refuse::dtype_is_not_supported("masked_scatter (a bool mask):", name(dtype_of(mask)));
    if (dtype_of(x) != dtype_of(source))
      refuse::dtypes_differ("masked_scatter", name(dtype_of(x)), name(dtype_of(source)));
    auto const shape =
        on_dims([](dims const& s, dims const& m) { return broadcast(s, m); }, shape_of(x), shape_of(mask));
    auto const where_to = expand(mask, shape);
    auto const place = sub(cumsum(ravel(where_to), ints<0>{}), 1);
    auto const at = where(ravel(where_to), place, 0);
    return where(where_to, reshape(gather(ravel(source), ints<0>{}, at), shape), x);
  }
} masked_scatter{};

} // namespace varve
