// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/calculus.hpp>
#include <varve/composite/ranges.hpp>
#include <varve/op/nonzero.hpp>
#include <varve/sorting/sort.hpp>

#include <vector>

/// @file
/// Distinct elements and histograms. These functions work on tensors only, since the sizes of results depend on data.
/// (They are templates so that unused ones cost nothing.)
namespace varve {

/// Result of `unique`: the distinct elements or slices; for each original one its index in `values`; and how often each
/// distinct one occurs.
template <class T>
struct unique_result {
  T values, inverse, counts;
};

namespace detail {
/// Returns a vector that is true at the first row of a matrix and at each row that differs from the row before.
template <class T>
T begins_run(T const& rows) {
  extent const n = rows.sizes()[0];
  if (n == 0) return reshape(T(ne(rows, rows)), dims{n});
  T const later = slice(rows, 0, 1, end), earlier = slice(rows, 0, 0, n - 1);
  T const differ = any(T(ne(later, earlier)), axis<1>);
  return cat(std::vector<T>{T(ne(new_full(differ, dims{1}, true), false)), differ}, axis<0>);
}
/// Returns the index of the first row of every run of equal rows of a matrix, with the run of each row and the lengths.
template <class T>
unique_result<T> runs_of(T const& rows) {
  T const begins = begins_run(rows);
  T const number = sub(T(cumsum(begins, axis<0>)), 1);
  T const firsts = reshape(T(nonzero(begins)), dims{-1});
  extent const n = firsts.sizes()[0];
  T const counts = scatter_add(zeros(dims{n}, dtype::int64), axis<0>, number, T(ones_like(number)));
  return {firsts, number, counts};
}
/// Returns the indices that sort the rows of a matrix lexicographically.
template <class T>
T order_of_rows(T const& rows) {
  T order = arange(rows.sizes()[0]);
  for (index_t k = index_t(rows.sizes()[1]); k-- > 0;) {
    T const column = gather(T(select(rows, axis<1>, dims{k})), axis<0>, order);
    order = gather(order, axis<0>, T(argsort(column, axis<0>)));
  }
  return order;
}
template <class T>
unique_result<T> unique_rows(T const& rows, bool sort_them) {
  if (!sort_them) return runs_of(rows);
  T const order = order_of_rows(rows);
  unique_result<T> r = runs_of(T(index_select(rows, axis<0>, order)));
  r.inverse = scatter_add(T(zeros_like(order)), axis<0>, order, r.inverse);
  r.values = gather(order, axis<0>, r.values);
  return r;
}
/// Returns the distinct elements, or the distinct slices of an axis.
template <class T>
unique_result<T> unique_along(T const& x, none_t, bool sort_them) {
  T const row = reshape(x, dims{numel(x.sizes())});
  unique_result<T> r = unique_rows(T(reshape(row, dims{numel(x.sizes()), 1})), sort_them);
  return {gather(row, axis<0>, r.values), reshape(r.inverse, x.sizes()), r.counts};
}
template <class T>
unique_result<T> unique_along(T const& x, index_t a, bool sort_them) {
  int const k = wrap_axis(a, x.dim());
  extent const n = x.dim() ? x.sizes()[k] : extent(1);
  T const front = x.dim() ? T(transpose(x, dims{0}, dims{k})) : x;
  if (numel(x.sizes()) == 0 && n != 0)
    refuse::argument_is_invalid("unique", "slices without elements along another axis are all alike");
  T const rows = reshape(front, dims{n, n == 0 ? extent(1) : numel(x.sizes()) / n});
  unique_result<T> const r = unique_rows(rows, sort_them);
  return {index_select(x, dims{k}, r.values), r.inverse, r.counts};
}
} // namespace detail

/// Returns the distinct elements in ascending order (`torch.unique`), or the distinct slices of an axis in
/// lexicographic order. Every NaN is distinct. The sizes depend on data: throws `data_dependent_error` for values
/// without data.
template <class T, class A = none_t>
  requires std::is_same_v<T, tensor>
unique_result<T> unique(T const& x, A const& axis = {}) {
  return detail::unique_along(x, axis, true);
}
/// Returns the first element or slice of every run of equal neighbours, in their order (`torch.unique_consecutive`).
template <class T, class A = none_t>
  requires std::is_same_v<T, tensor>
unique_result<T> unique_consecutive(T const& x, A const& axis = {}) {
  return detail::unique_along(x, axis, false);
}

namespace detail {
/// Returns the least and the greatest element of a vector as float64 of rank 0. If they are equal, the range is widened
/// by `around` on either side. Throws `value_error` if the range is not finite, provided that no transform or trace
/// watches x.
template <class T>
std::pair<T, T> range_of_elements(char const* op, T const& x, double around) {
  T const least = to(T(amin(x)), dtype::float64), most = to(T(amax(x)), dtype::float64);
  if (are_unwatched(&x, 1) && !(T(sub(most, least)).template item<double>() < std::numeric_limits<double>::infinity()))
    refuse::argument_is_invalid(op, "the range of the elements is not finite");
  T const one = where(T(eq(least, most)), around, 0.0);
  return {sub(least, one), add(most, one)};
}
/// Counts the elements of a vector in each of `bins` equal parts of a range, whose bounds are numbers or tensors of
/// rank 0.
template <class T, class N>
T counted_between(T const& row, index_t bins, N const& low, N const& high) {
  T const inside = mul(T(ge(row, low)), T(le(row, high)));
  T const part = div(T(mul(T(sub(T(where(inside, row, low)), low)), static_cast<double>(bins))), sub(high, low));
  T const at = clamp(T(to(T(trunc(part)), dtype::int64)), 0, bins - 1);
  return scatter_add(zeros(dims{bins}, row.dtype()), axis<0>, at, T(to(inside, row.dtype())));
}
} // namespace detail
/// Counts the elements in each of `bins` equal parts of [low, high] (`torch.histc`). Both ends are included, and
/// elements outside are ignored. If the bounds are equal, the range is that of the elements.
template <class T>
  requires std::is_same_v<T, tensor>
T histc(T const& x, index_t bins = 100, double low = 0, double high = 0) {
  if (bins < 1) refuse::argument_is_invalid("histc", "there is at least one bin");
  if (low > high) refuse::argument_is_invalid("histc", "the least bound is greater than the greatest");
  if (is_compact(x.dtype()) && is_floating(x.dtype()))
    return to(T(histc(T(to(x, dtype::float32)), bins, low, high)), x.dtype());
  T const row = reshape(x, dims{-1});
  if (numel(row.sizes()) == 0) return zeros(dims{bins}, x.dtype());
  if (low != high) return detail::counted_between(row, bins, low, high);
  auto const [least, most] = detail::range_of_elements("histc", row, 1);
  return detail::counted_between(row, bins, least, most);
}

/// Returns `bins + 1` edges that divide the range of the elements of a vector into equal parts. If all elements are
/// equal, the range extends by 0.5 on either side.
template <class T>
  requires std::is_same_v<T, tensor>
T edges_of(T const& x, index_t bins) {
  if (bins < 1) refuse::argument_is_invalid("histogram", "there is at least one bin");
  if (numel(x.sizes()) == 0) return linspace(0, 1, bins + 1, x.dtype());
  auto const [low, high] = detail::range_of_elements("histogram", x, 0.5);
  return linspace(low, high, bins + 1, x.dtype());
}
/// Counts the rows of a matrix [n, d] in each box between ascending edges (`torch.histogramdd`). `edges` has one vector
/// per column, and elements equal to the last edge count. With a defined `weight`, sums weights instead. With
/// `density`, divides by the total and the volumes of the boxes.
template <class T>
  requires std::is_same_v<T, tensor>
T histogramdd(T const& x, std::vector<T> const& edges, T const& weight, bool density) {
  varve::detail::needs_real("histogramdd", x, weight);
  if (is_compact(x.dtype()) && is_floating(x.dtype())) {
    auto const single = [](T const& t) { return t.defined() ? T(to(t, dtype::float32)) : t; };
    std::vector<T> all;
    for (T const& e : edges) all.push_back(single(e));
    return to(T(histogramdd(single(x), all, single(weight), density)), x.dtype());
  }
  extent const n = x.sizes()[0];
  T place = zeros(dims{n}, dtype::int64), inside = ne(T(zeros(dims{n}, dtype::int64)), 1), volume;
  dims shape;
  for (std::size_t k = 0; k < edges.size(); ++k) {
    if (edges[k].dim() != 1 || edges[k].sizes()[0] < 2)
      refuse::argument_is_invalid("histogramdd", "edges are vectors of two numbers at least");
    index_t const bins = index_t(edges[k].sizes()[0]) - 1;
    T const column = contiguous(T(select(x, axis<1>, dims{static_cast<index_t>(k)})));
    T const at = sub(T(searchsorted(edges[k], column, ints<1>{})), 1);
    T const last = eq(column, T(select(edges[k], axis<0>, axis<-1>)));
    T const bin = where(last, bins - 1, at);
    inside = mul(inside, T(mul(T(ge(bin, 0)), T(lt(bin, bins)))));
    place = add(T(mul(place, bins)), T(clamp(bin, 0, bins - 1)));
    T const width = sub(T(slice(edges[k], 0, 1, end)), T(slice(edges[k], 0, 0, bins)));
    volume = k ? T(mul(T(unsqueeze(volume, axis<-1>)), width)) : width;
    shape.push_back(bins);
  }
  T const each = weight.defined() ? weight : ones(dims{n}, x.dtype());
  T const counted = where(inside, each, 0);
  T const sums = reshape(T(scatter_add(zeros(dims{numel(shape)}, x.dtype()), axis<0>, place, counted)), shape);
  return density ? T(div(sums, T(mul(T(sum(sums)), volume)))) : sums;
}

/// Result of `histogram`: a count for each bin, and the edges between the bins.
template <class T>
struct histogram_result {
  T counts, edges;
};
/// Counts the elements between ascending edges (`torch.histogram`); the last edge counts as inside. With a `weight` of
/// the same shape, sums weights instead. With `density`, divides by the total and the widths. Refuses integers.
template <class T>
  requires std::is_same_v<T, tensor>
histogram_result<T> histogram(T const& x, T const& edges, T const& weight = {}, bool density = false) {
  if (!is_floating(x.dtype())) refuse::dtype_is_not_supported("histogram", name(x.dtype()));
  if (edges.dtype() != x.dtype()) refuse::dtypes_differ("histogram", name(x.dtype()), name(edges.dtype()));
  if (weight.defined() && weight.dtype() != x.dtype())
    refuse::dtypes_differ("histogram", name(x.dtype()), name(weight.dtype()));
  if (weight.defined() && !(weight.sizes() == x.sizes()))
    refuse::shapes_do_not_match("histogram", x.sizes(), weight.sizes());
  T const each = weight.defined() ? T(reshape(weight, dims{-1})) : weight;
  T const rows = reshape(x, dims{-1, 1});
  return {histogramdd(rows, std::vector<T>{edges}, each, density), edges};
}
/// Returns the histogram with `bins` equal parts of the range of the elements.
template <class T>
  requires std::is_same_v<T, tensor>
histogram_result<T> histogram(T const& x, index_t bins = 100, T const& weight = {}, bool density = false) {
  if (!is_floating(x.dtype())) refuse::dtype_is_not_supported("histogram", name(x.dtype()));
  return histogram(x, T(edges_of(T(reshape(x, dims{-1})), bins)), weight, density);
}

} // namespace varve
