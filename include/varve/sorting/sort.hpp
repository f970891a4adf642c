// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/counted.hpp>
#include <varve/composite/flatten.hpp>
#include <varve/composite/logical.hpp>
#include <varve/core/list.hpp>
#include <varve/op/argmax.hpp>
#include <varve/sorting/scans.hpp>
#include <varve/special/rounding.hpp>

#include <algorithm>

/// @file
/// Sorts, selections, medians and quantiles along an axis. Gradients flow to the chosen elements. NaN counts as greater
/// than every number.
namespace varve {

/// Indices (int64) that sort the elements along an axis in ascending or descending order (`torch.argsort`). The sort is
/// stable. O(n log n). Attributes {axis}, {descending}, {how many indices to return, or -1 for all}.
inline constexpr struct argsort_t {
  static constexpr auto op_name = "argsort";
  template <value X, class A = ints<-1>, class D = ints<0>>
  constexpr auto operator()(X const& x, A const& axis = {}, D const& descending = {}) const {
    return detail::along_axis(x, axis, [&](auto const& v, auto const& a) {
      return bind<argsort_t>(a, detail::as_fact(descending), ints<-1>{})(v);
    });
  }
} argsort{};

namespace detail {
/// Sorts `n` items by a stable merge sort that alternates between two buffers. Returns the buffer with the result.
/// Threads share the runs of one length.
template <class E, class Before>
constexpr E* merge_sorted(E* from, E* to, index_t n, Before const& before) {
  constexpr index_t run = 16;
  auto const each_of_length = [n](index_t length, auto const& f) { // calls f(begin, end); a thread has adjacent runs
    fusion::share((n + length - 1) / length, 1, 4 * n, [&](index_t first, index_t last) {
      for (; first < last; ++first) f(first * length, (first + 1) * length < n ? (first + 1) * length : n);
    });
  };
  each_of_length(run, [&](index_t begin, index_t stop) { // insertion sort
    for (index_t k = begin + 1; k < stop; ++k) {
      E const e = from[k];
      index_t j = k;
      for (; j > begin && before(e, from[j - 1]); --j) from[j] = from[j - 1];
      from[j] = e;
    }
  });
  for (index_t width = run; width < n; width *= 2) {
    each_of_length(2 * width, [&](index_t begin, index_t stop) {
      index_t const middle = begin + width < n ? begin + width : n;
      index_t i = begin, j = middle;
      for (index_t k = begin; k < stop; ++k)
        to[k] = j >= stop || (i < middle && !before(from[j], from[i])) ? from[i++] : from[j++];
    });
    std::swap(from, to);
  }
  return from;
}
} // namespace detail

template <>
struct rules<argsort_t> : detail::places_along<argsort_t> {
  static constexpr auto schema = "(Tensor self, int dim=-1, bool descending=False, int count=-1) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    attributes r = places_along<argsort_t>::checked(at, in);
    r.fact[r.count++] = at.count > 2 && at[2].n > 0 ? at[2] : dims{-1};
    return r;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    meta r = places_along<argsort_t>::shape(at, in, n);
    if (!known_equal(at[2][0], -1)) r.sizes[static_cast<int>(at[0][0])] = at[2][0];
    return r;
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<argsort_t>(on_dims(detail::shifted, op.a), op.b, op.c)(o.value);
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    struct element {
      T v{};
      std::int64_t at = 0;
    };
    int const axis = static_cast<int>(at[0][0]);
    index_t const n = x.sizes[axis], count = out.sizes[axis], sx = x.strides[axis], so = out.strides[axis];
    bool const descending = at[1][0] != 0;
    auto const up = [](element const& a, element const& b) { return a.v < b.v || (b.v != b.v && a.v == a.v); };
    auto const down = [&](element const& a, element const& b) { return up(b, a); };
    bool const some = count < n / 2; // partial sort; equal elements keep their order by index
    auto const first = [&](element const& a, element const& b) {
      return (descending ? down(a, b) : up(a, b)) || (!(descending ? down(b, a) : up(b, a)) && a.at < b.at);
    };
    detail::for_each_line(
        out.sizes, axis, 16,
        [&, row = list<element>(static_cast<std::size_t>(2 * n), element{})](R* y, T const* p) mutable {
          element* const e = row.data();
          for (index_t k = 0; k < n; ++k) e[k] = {p[k * sx], k};
          if (some) {
            std::partial_sort(e, e + count, e + n, first);
            for (index_t k = 0; k < count; ++k) y[k * so] = e[k].at;
            return;
          }
          element const* const r =
              descending ? detail::merge_sorted(e, e + n, n, down) : detail::merge_sorted(e, e + n, n, up);
          for (index_t k = 0; k < count; ++k) y[k * so] = r[k].at;
        },
        out, x);
  }
};

/// Index of the k-th smallest element (k counts from 0) of each row along an axis, which then has size 1. It is the
/// index that `argsort` has at k, computed in O(n). Attributes {axis}, {k}.
inline constexpr struct kth_place_t {
  static constexpr auto op_name = "kth_place";
  template <value X, class A, class K>
  constexpr auto operator()(X const& x, A const& axis, K const& k) const {
    return bind<kth_place_t>(on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x)), detail::as_fact(k))(x);
  }
} kth_place{};
template <>
struct rules<kth_place_t> : detail::places_along<kth_place_t> {
  static constexpr char const* part_of = "median and kthvalue";
  static constexpr auto schema = "(Tensor self, int dim, int k) -> Tensor";
  static constexpr int least_attributes = 2;
  static constexpr attributes checked(attributes const& at, meta const* in) {
    attributes const r = places_along<kth_place_t>::checked(at, in);
    return attributes(r[0], at[1]);
  }
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    meta r = places_along<kth_place_t>::shape(at, in, n);
    extent& size = r.sizes[static_cast<int>(at[0][0])];
    if (at[1][0] < 0 || at[1][0] >= size) refuse::argument_is_invalid("kth_place", "there are not so many elements");
    size = 1;
    return r;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    int const axis = static_cast<int>(at[0][0]);
    index_t const n = x.sizes[axis], k = at[1][0], step = x.strides[axis];
    detail::for_each_line(
        out.sizes, axis, n * 4,
        [&, row = list<index_t>(static_cast<std::size_t>(n), 0)](R* y, T const* p) mutable {
          index_t* const places = row.data();
          for (index_t j = 0; j < n; ++j) places[j] = j;
          std::nth_element(places, places + k, places + n, [&](index_t i, index_t j) {
            T const a = p[i * step], b = p[j * step];
            if (a < b || (b != b && a == a)) return true;
            return !(b < a || (a != a && b == b)) && i < j;
          });
          *y = places[k];
        },
        out, x);
  }
};

/// Elements sorted along an axis and the indices where they were, as a pair (`torch.sort`, always stable).
inline constexpr struct sort_t {
  template <value X, class A = ints<-1>, class D = ints<0>>
  constexpr auto operator()(X const& x, A const& axis = {}, D const& descending = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const at = argsort(x, a, descending);
    return std::pair(gather(x, a, at), at);
  }
} sort{};
/// Elements sorted along the first axis (`torch.msort`).
inline constexpr struct msort_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return sort(x, ints<0>{}).first;
  }
} msort{};

/// The k greatest (or smallest) elements along an axis, sorted, and their indices, as a pair (`torch.topk`).
inline constexpr struct topk_t {
  template <value X, class K, class A = ints<-1>, class L = ints<1>>
  constexpr auto operator()(X const& x, K const& k, A const& axis = {}, L const& largest = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const checked = [](dims const& count, dims const& s, dims const& at) {
      extent const n = s.n ? s[static_cast<int>(at[0])] : extent(1);
      if (count[0] < 0 || count[0] > n)
        refuse::argument_is_invalid("topk", "there are not so many elements along the axis");
      return count;
    };
    auto const n = on_dims(checked, detail::as_fact(k), shape_of(x), a);
    auto const some = [](dims const& s, dims const& count) { return s.n ? s : dims{count[0]}; };
    auto const v = detail::of_rank_one(x);
    auto const at = bind<argsort_t>(a, detail::as_fact(largest), n)(v);
    auto const shape = on_dims([](dims const& s, dims const& w) { return s.n ? w : dims{}; }, shape_of(x),
                               on_dims(some, shape_of(at), n));
    return std::pair(detail::reshape_to(gather(v, a, at), shape), detail::reshape_to(at, shape));
  }
} topk{};

namespace detail {
/// Returns the elements at one index of every row along an axis, and the indices. `at` has size 1 on that axis.
template <value V, value I, class A, class S, class K>
constexpr auto chosen_of_rows(V const& v, I const& at, A const& a, S const& shape, K const& keep) {
  auto const reduced = on_dims(
      [](dims const& w, dims const& s, dims const& axis, dims const& k) {
        dims r = w;
        if (s.n == 0) return dims{};
        if (k[0] == 0) r.erase(static_cast<int>(axis[0]));
        return r;
      },
      shape_of(at), shape, a, keep);
  return std::pair(reshape_to(gather(v, a, at), reduced), reshape_to(at, reduced));
}
template <class Tag, value V, class A>
constexpr void needs_elements(V const& v, A const& a) {
  (void)on_dims(
      [](dims const& s, dims const& axis) {
        if (s[static_cast<int>(axis[0])] == 0)
          refuse::argument_is_invalid(Tag::op_name, "an axis of size 0 has no element to choose");
        return dims{};
      },
      shape_of(v), a);
}
} // namespace detail

/// The k-th smallest element along an axis (k counts from 1) and its index, as a pair (`torch.kthvalue`).
inline constexpr struct kthvalue_t {
  static constexpr auto op_name = "kthvalue";
  template <value X, class K, class A = ints<-1>, class P = ints<0>>
  constexpr auto operator()(X const& x, K const& k, A const& axis = {}, P const& keep = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const v = detail::of_rank_one(x);
    auto const checked = [](dims const& count, dims const& s, dims const& at) {
      if (count[0] < 1 || count[0] > s[static_cast<int>(at[0])])
        refuse::argument_is_invalid(op_name, "k is from 1 to the size of the axis");
      return dims{count[0] - 1};
    };
    auto const n = on_dims(checked, detail::as_fact(k), shape_of(v), a);
    return detail::chosen_of_rows(v, kth_place(v, a, n), a, shape_of(x), detail::as_fact(keep));
  }
} kthvalue{};

/// Median along an axis and its index, as a pair (`torch.median`). For an even number of elements it is the lower of
/// the two middle ones. If any element is NaN, the result is NaN. Without an axis: the median of all elements, without
/// an index.
inline constexpr struct median_t {
  static constexpr auto op_name = "median";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return (*this)(ravel(x), axis<0>).first;
  }
  template <value X, class A, class P = ints<0>>
  constexpr auto operator()(X const& x, A const& axis, P const& keep = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const v = detail::of_rank_one(x);
    detail::needs_elements<median_t>(v, a);
    auto const middle = on_dims(
        [](dims const& s, dims const& at) { return dims{(s[static_cast<int>(at[0])] - 1) / 2}; }, shape_of(v), a);
    auto const at = kth_place(v, a, middle);
    auto const nan = ne(v, v);
    auto const first = bind<argmax_t>(a, keepdim)(nan);
    return detail::chosen_of_rows(v, where(gather(nan, a, first), first, at), a, shape_of(x), detail::as_fact(keep));
  }
} median{};
/// Median of the elements that are not NaN, and its index, as a pair (`torch.nanmedian`). The result is NaN if all
/// elements are. Without an axis: the median of all elements, without an index.
inline constexpr struct nanmedian_t {
  static constexpr auto op_name = "nanmedian";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return (*this)(ravel(x), axis<0>).first;
  }
  template <value X, class A, class P = ints<0>>
  constexpr auto operator()(X const& x, A const& axis, P const& keep = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const v = detail::of_rank_one(x);
    detail::needs_elements<nanmedian_t>(v, a);
    auto const n = bind<sum_t>(a, keepdim)(eq(v, v));
    auto const middle = floor_divide(sub(maximum(n, 1), 1), 2);
    return detail::chosen_of_rows(v, gather(argsort(v, a), a, middle), a, shape_of(x), detail::as_fact(keep));
  }
} nanmedian{};

/// The most frequent element along an axis, the smallest if there are several, and its last index, as a pair
/// (`torch.mode`).
inline constexpr struct mode_t {
  static constexpr auto op_name = "mode";
  template <value X, class A = ints<-1>, class P = ints<0>>
  constexpr auto operator()(X const& x, A const& axis = {}, P const& keep = {}) const {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    auto const v = detail::of_rank_one(x);
    detail::needs_elements<mode_t>(v, a);
    auto const [sorted, place] = sort(v, a);
    // 0 marks the first element, which continues no run
    auto const before = detail::previous(add(place, 1), a, ints<0>{});
    auto const same = mul(eq(sorted, detail::previous(sorted, a, ints<0>{})), gt(before, 0));
    // the recurrence computes the length of each run so far
    auto const of_run = to(same, ints<static_cast<index_t>(dtype::int64)>{});
    auto const last = bind<argmax_t>(a, keepdim)(recurrence(of_run, detail::ones_beside(of_run), a));
    return detail::chosen_of_rows(v, gather(place, a, last), a, shape_of(x), detail::as_fact(keep));
  }
} mode{};

/// How a quantile that lies between two elements is computed from them.
enum class quantile_method { linear, lower, higher, midpoint, nearest };

namespace detail {
/// Interpolates between the elements of sorted rows at indices that need not be integers.
template <value V, value R, class A>
constexpr auto at_rank(V const& sorted, R const& rank, A const& a, quantile_method how) {
  auto const low = floor(rank), high = ceil(rank);
  auto const at = [&](auto const& r) { return gather(sorted, a, to(r, ints<static_cast<index_t>(dtype::int64)>{})); };
  if (how == quantile_method::lower) return at(low);
  if (how == quantile_method::higher) return at(high);
  if (how == quantile_method::nearest) return at(round_half_even(rank));
  auto const u = at(low), w = at(high);
  auto const share = how == quantile_method::midpoint ? mul(sub(high, low), 0.5) : sub(rank, low);
  auto const d = sub(w, u);
  return where(lt(share, 0.5), add(u, mul(share, d)), sub(w, mul(d, sub(1, share))));
}
} // namespace detail
/// Quantiles at the fractions `q` (a vector) along an axis: in the result the size of the axis is the number of
/// fractions. With `skip_nan`, NaN elements are ignored; otherwise a row with NaN has the quantile NaN. q has the dtype
/// of x.
inline constexpr struct quantiles_along_t {
  static constexpr auto op_name = "quantile";
  template <value X, value Q, class A>
  constexpr auto operator()(X const& x, Q const& q, A const& axis, quantile_method how, bool skip_nan) const {
    detail::needs_floating<quantiles_along_t>(x);
    if (rank_of(x) == 0 || rank_of(q) > 1)
      refuse::argument_is_invalid(op_name, "a value with dimensions, and a vector of fractions, are expected");
    if (dtype_of(x) != dtype_of(q)) refuse::dtype_is_not_supported("quantile (q of another dtype):", name(dtype_of(q)));
    return detail::halves_in_float([&](auto const& v, auto const& r) { return of(v, r, axis, how, skip_nan); }, x, q);
  }

private:
  template <value X, value Q, class A>
  static constexpr auto of(X const& x, Q const& q, A const& axis, quantile_method how, bool skip_nan) {
    auto const a = on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x));
    detail::needs_elements<quantiles_along_t>(x, a);
    auto const row = [](dims const& s, dims const& at, dims const& n) {
      dims r = s;
      for (int k = 0; k < r.n; ++k) r[k] = 1;
      r[static_cast<int>(at[0])] = numel(n);
      return r;
    };
    auto const wide = [](dims const& s, dims const& at, dims const& n) {
      dims r = s;
      r[static_cast<int>(at[0])] = numel(n);
      return r;
    };
    auto const sorted = sort(x, a).first;
    auto const n = bind<sum_t>(a, keepdim)(to(eq(x, x), type_fact(x)));
    auto const last = skip_nan ? maximum(sub(n, 1), 0) : sub(bind<sum_t>(a, keepdim)(ones_of(x)), 1);
    auto const part = reshape(q, on_dims(row, shape_of(x), a, shape_of(q)));
    auto const rank = expand(mul(part, last), on_dims(wide, shape_of(x), a, shape_of(q)));
    if (skip_nan) return detail::at_rank(sorted, rank, a, how);
    auto const whole = eq(n, add(last, 1)); // no NaN
    return detail::at_rank(sorted, where(whole, rank, last), a, how);
  }
  template <value X>
  static constexpr auto ones_of(X const& x) {
    return expand(detail::constant_like(x, ints<>{}, 1), shape_of(x));
  }
} quantiles_along{};
/// Quantiles (`torch.quantile`): `quantile(x, 0.5)` of all elements, `quantile(x, 0.9, 1)` along an axis, which is
/// removed. A vector of fractions adds a first axis for them. The result is NaN if an element is. Throws `value_error`
/// for a plain number outside of [0, 1].
inline constexpr struct quantile_t {
  static constexpr auto op_name = "quantile";
  template <value X, value Q>
  constexpr auto operator()(X const& x, Q const& q) const {
    return (*this)(ravel(x), q, axis<0>);
  }
  template <value X, value Q, class A>
  constexpr auto operator()(X const& x, Q const& q, A const& axis,
                            quantile_method how = quantile_method::linear) const {
    if constexpr (number<Q>) {
      if (!(q >= 0 && q <= 1)) refuse::argument_is_invalid(op_name, "a fraction is in [0, 1]");
      return squeeze(quantiles_along(x, detail::constant_like(x, ints<>{}, q), axis, how, false), axis);
    } else {
      if (rank_of(q) != 1) refuse::argument_is_invalid(op_name, "fractions are a plain number or a vector");
      return movedim(quantiles_along(x, to(q, type_fact(x)), axis, how, false), axis, ints<0>{});
    }
  }
} quantile{};

} // namespace varve
