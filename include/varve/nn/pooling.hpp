// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/composite/windows.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/dispatch/whole_call.hpp>
#include <varve/kernel/pool.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/matmul.hpp>

/// @file
/// Pooling of `torch.nn.functional`, over the last one to three dimensions of [channels, ...] or [n, channels, ...].
/// Sizes, steps and margins are one number, or one for each of these dimensions.
namespace varve {

namespace detail {
/// The attributes of a pool, one for each of `N` dimensions: window size, step, margin, dilation, and whether the last
/// window may lie partly outside.
template <int N>
struct pool_facts {
  dims size, step, margin, dilation;
  bool ceil;
  static constexpr dims wide(dims const& d) {
    dims r = d;
    if (r.n == 1)
      while (r.n < N) r.push_back(d[0]);
    if (r.n != N) refuse::argument_is_invalid("pooling", "there is one number, or one for each spatial dimension");
    return r;
  }
  constexpr pool_facts(dims const& k, dims const& s, dims const& p, dims const& d, dims const& up)
      : size(wide(k)), step(s.n ? wide(s) : size), margin(wide(p)), dilation(wide(d)), ceil(up[0] != 0) {
    for (int a = 0; a < N; ++a) {
      if (size[a] < 1 || step[a] < 1 || dilation[a] < 1)
        refuse::argument_is_invalid("pooling", "sizes, steps and dilations must be positive");
      if (margin[a] < 0 || margin[a] * 2 > size[a])
        refuse::argument_is_invalid("pooling", "a margin is at most half of the window");
    }
  }
  /// The extent of a window along axis `a`. `count` returns the number of windows over `n` elements.
  constexpr extent reach(int a) const { return dilation[a] * (size[a] - 1) + 1; }
  constexpr extent count(int a, extent n) const {
    extent const room = n + margin[a] * 2 - reach(a);
    if (room < 0) refuse::argument_is_invalid("pooling", "a window is larger than its dimension");
    extent r = (room + (ceil ? step[a] - 1 : extent(0))) / step[a] + 1;
    if (ceil && (r - 1) * step[a] >= n + margin[a]) r = r - 1;
    return r;
  }
  /// Returns the margin after the elements that completes the last window.
  constexpr extent behind(int a, extent n) const {
    extent const more = (count(a, n) - 1) * step[a] + reach(a) - n - margin[a];
    return more < margin[a] ? margin[a] : more;
  }
};
inline constexpr auto require_pooled = []<int N>(std::integral_constant<int, N>, dims const& s) {
  if (s.n != N + 1 && s.n != N + 2)
    refuse::argument_is_invalid("pooling", "the input has the spatial dimensions, channels, and maybe samples");
  for (int k = s.n - N - 1; k < s.n; ++k)
    if (s[k] == 0) refuse::argument_is_invalid("pooling", "only the number of samples may be 0");
};
template <int N>
inline constexpr auto pool_margins =
    [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d, dims const& up) {
      pool_facts<N> const f(k, t, p, d, up);
      dims r;
      for (int a = N - 1; a >= 0; --a) r.push_back(f.margin[a]).push_back(f.behind(a, s[s.n - N + a]));
      return r;
    };
/// Returns the margins that may count as elements in a mean (`Own`), or those that only complete the last window.
template <int N, bool Own>
inline constexpr auto pool_margins_apart = [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d,
                                              dims const& up) {
  pool_facts<N> const f(k, t, p, d, up);
  dims r;
  for (int a = N - 1; a >= 0; --a)
    r.push_back(Own ? f.margin[a] : extent(0)).push_back(Own ? f.margin[a] : f.behind(a, s[s.n - N + a]) - f.margin[a]);
  return r;
};
template <int N>
inline constexpr auto pool_window_sizes = [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d,
                                             dims const& up) { // the sizes before margins were added
  pool_facts<N> const f(k, t, p, d, up);
  dims r = s.sub(0, s.n - N);
  for (int a = 0; a < N; ++a) r.push_back(f.count(a, s[s.n - N + a]));
  for (int a = 0; a < N; ++a) r.push_back(f.size[a]);
  return r;
};
template <int N>
inline constexpr auto pool_window_strides =
    [](dims const& padded, dims const& k, dims const& t, dims const& p, dims const& d, dims const& up) {
      pool_facts<N> const f(k, t, p, d, up);
      dims const all = contiguous_strides(padded);
      dims r = all.sub(0, all.n - N);
      for (int a = 0; a < N; ++a) r.push_back(all[all.n - N + a] * f.step[a]);
      for (int a = 0; a < N; ++a) r.push_back(all[all.n - N + a] * f.dilation[a]);
      return r;
    };
template <int N>
inline constexpr auto joined_windows = [](dims const& s) {
  dims r = s.sub(0, s.n - N);
  extent n = 1;
  for (int a = s.n - N; a < s.n; ++a) n *= s[a];
  return r.push_back(n);
};
/// Returns the windows of a value that already has its margins: [.., windows..., elements of a window].
template <int N, value X, class S, class K, class T, class P, class D, class C>
constexpr auto pool_windows(X const& padded, S const& before, K const& k, T const& t, P const& p, D const& d,
                            C const& up) {
  auto const w = as_strided(contiguous(padded), on_dims(pool_window_sizes<N>, before, k, t, p, d, up),
                            on_dims(pool_window_strides<N>, shape_of(padded), k, t, p, d, up), ints<0>{});
  return reshape(w, on_dims(joined_windows<N>, shape_of(w)));
}

/// Joins batch and channels into one dimension, so that windows fit into the greatest rank. `lead_as_before` restores
/// them.
template <int N>
inline constexpr auto lead_as_one = [](dims const& s) {
  require_pooled(std::integral_constant<int, N>{}, s);
  dims r{1};
  for (int k = 0; k + N < s.n; ++k) r[0] = r[0] * s[k];
  for (int k = s.n - N; k < s.n; ++k) r.push_back(s[k]);
  return r;
};
template <int N>
inline constexpr auto lead_as_before = [](dims const& y, dims const& s) {
  dims r = s.sub(0, s.n - N);
  for (int k = 1; k < y.n; ++k) r.push_back(y[k]);
  return r;
};
template <int N, value Y, class S>
constexpr auto with_lead_of(Y const& y, S const& sizes) {
  return reshape(y, on_dims(lead_as_before<N>, shape_of(y), sizes));
}
template <int N, value X>
constexpr auto with_one_lead(X const& x) {
  return reshape(x, on_dims(lead_as_one<N>, shape_of(x)));
}

/// Returns the windows of a pool over a value; `sizes` become those of the result.
template <int N>
kernel::pool_windows windows_in_memory(pool_facts<N> const& f, dims& sizes) {
  kernel::pool_windows w;
  for (int a = 0; a < N; ++a) {
    int const k = 3 - N + a;
    extent& size = sizes[sizes.n - N + a];
    w.in[k] = size.number(), w.size[k] = f.size[a].number(), w.step[k] = f.step[a].number();
    w.margin[k] = f.margin[a].number(), w.dilation[k] = f.dilation[a].number();
    size = f.count(a, size);
    w.out[k] = size.number();
  }
  return w;
}
/// Returns the sums of windows, computed in one pass over memory. Returns an undefined tensor if observers need the
/// composing operators.
template <int N, class T>
VARVE_NOINLINE T summed_at_once(T const& in, pool_facts<N> const& f) {
  if (!are_unwatched(&in, 1) || !in.has_data() || !are_built_in<as_strided_t, sum_t>() || !is_floating(in.dtype()) ||
      is_compact(in.dtype()))
    return {};
  dims sizes = in.sizes();
  kernel::pool_windows const w = windows_in_memory(f, sizes);
  T const x = in.is_contiguous() ? in : contiguous_copy(in), sums = T::empty(sizes, in.dtype());
  on_floats(in.dtype(), [&]<class E>() {
    kernel::sum_pool(numel(sizes.sub(0, sizes.n - N)).number(), w, static_cast<E const*>(x.raw()),
                     static_cast<E*>(sums.raw()));
  });
  return sums;
}

/// Returns greatest elements and their indices, computed in one pass over memory. This needs operands without
/// observers, or with a single recorder, which then records a `gather`. Returns undefined tensors otherwise, or if a
/// window lies entirely in a margin.
template <int N, class T>
VARVE_NOINLINE std::pair<T, T> pooled_at_once(T const& in, pool_facts<N> const& f) {
  tensor const* below[] = {&in};
  bool const unwatched = are_unwatched(&in, 1);
  if (!in.defined() || !are_built_in<as_strided_t, argmax_t, gather_t>()) return {};
  if (!unwatched && !opened_for_one_recorder(below, 1)) return {};
  dtype const type = in.dtype();
  if (is_compact(type) || type == dtype::bool_) return {};
  tensor const x = below[0]->is_contiguous() ? *below[0] : contiguous_copy(*below[0]);
  dims sizes = in.sizes(), rows = in.sizes();
  int const first = sizes.n - N;
  kernel::pool_windows const w = windows_in_memory(f, sizes);
  for (int k = 3 - N; k < 3; ++k)
    if (!w.reach_inside(k)) return {};
  T const values = T::empty(sizes, type), places = T::empty(sizes, dtype::int64);
  on_dtype(type, "max_pool", [&]<class E>() {
    if constexpr (!std::is_same_v<E, bool>)
      kernel::max_pool(numel(sizes.sub(0, first)).number(), w, static_cast<E const*>(x.raw()),
                       static_cast<E*>(values.raw()), static_cast<std::int64_t*>(places.raw()));
  });
  if (unwatched) return {values, places};
  dims flat = rows.sub(0, first), at = flat;
  flat.push_back(w.elements()), at.push_back(w.count());
  return {reshape(gather(reshape(in, flat), axis<-1>, reshape(places, at)), sizes), places};
}

/// Calls a pool with sizes, steps and margins in braces: `max_pool2d(x, {2, 2}, {2, 1})`.
template <class Pool>
struct pool_of_braces {
  template <value X, class... A>
  constexpr auto operator()(X const& in, braces size, A const&... more) const {
    return pool()(in, dims_in(size), more...);
  }
  template <value X, class... A>
  constexpr auto operator()(X const& in, braces size, braces step, A const&... more) const {
    return pool()(in, dims_in(size), dims_in(step), more...);
  }
  template <value X, class... A>
  constexpr auto operator()(X const& in, braces size, braces step, braces margin, A const&... more) const {
    return pool()(in, dims_in(size), dims_in(step), dims_in(margin), more...);
  }

private:
  constexpr Pool const& pool() const { return static_cast<Pool const&>(*this); }
};
/// Returns the greatest elements and their indices among the spatial elements.
template <int N>
struct max_pool_of : pool_of_braces<max_pool_of<N>> {
  using pool_of_braces<max_pool_of>::operator();
  template <value X, class K, class T = ints<>, class P = ints<0>, class D = ints<1>, class C = ints<0>>
  constexpr auto operator()(X const& in, K const& size, T const& step = {}, P const& margin = {},
                            D const& dilation = {}, C const& ceil = {}) const {
    if constexpr (std::is_same_v<X, tensor>) {
      require_pooled(std::integral_constant<int, N>{}, in.sizes());
      pool_facts<N> const f(to_dims(as_fact(size)), to_dims(as_fact(step)), to_dims(as_fact(margin)),
                            to_dims(as_fact(dilation)), to_dims(as_fact(ceil)));
      if (auto r = pooled_at_once<N>(in, f); r.first.defined()) return r;
    }
    auto const x = with_one_lead<N>(in);
    auto const k = as_fact(size);
    auto const t = as_fact(step);
    auto const p = as_fact(margin);
    auto const d = as_fact(dilation);
    auto const up = as_fact(ceil);
    auto const s = shape_of(x);
    auto const pad = on_dims(pool_margins<N>, s, k, t, p, d, up);
    auto const padded = choose(
        is_floating_fact(x),
        [&](auto const& v) { return constant_pad_nd(v, pad, -std::numeric_limits<double>::infinity()); },
        [&](auto const& v) { return constant_pad_nd(v, pad, least_of_dtype(dtype_of(v))); }, x);
    auto const windows = pool_windows<N>(padded, s, k, t, p, d, up);
    auto const spatial = on_dims([](dims const& z) { return z.sub(z.n - N, z.n); }, s);
    auto const n = on_dims([](dims const& z) { return dims{numel(z)}; }, spatial);
    auto const places = constant_pad_nd(reshape(counted(n, x), spatial), pad, 0);
    auto const at = pool_windows<N>(places, spatial, k, t, p, d, up);
    auto const [values, first] = max_along(windows, axis<-1>, keepdim);
    auto const index = gather(expand(at, shape_of(windows)), axis<-1>, first);
    auto const shape = on_dims([](dims const& z) { return z.sub(0, z.n - 1); }, shape_of(windows));
    auto const all = shape_of(in);
    return std::pair(with_lead_of<N>(reshape(values, shape), all), with_lead_of<N>(reshape(index, shape), all));
  }

private:
  static constexpr index_t least_of_dtype(dtype t) { return t == dtype::bool_ ? 0 : least_of(t); }
};
/// Returns means of windows; half-precision floats are computed in float32.
template <int N>
struct avg_pool_of : pool_of_braces<avg_pool_of<N>> {
  using pool_of_braces<avg_pool_of>::operator();
  template <value X, class K, class T = ints<>, class P = ints<0>, class C = ints<0>>
  constexpr auto operator()(X const& in, K const& size, T const& step = {}, P const& margin = {}, C const& ceil = {},
                            bool count_margin = true, index_t divisor = 0) const {
    auto const means = [&](auto const& v) { return of(v, size, step, margin, ceil, count_margin, divisor); };
    return halves_in_float(means, in);
  }

private:
  template <value X, class K, class T, class P, class C>
  static constexpr auto of(X const& in, K const& size, T const& step, P const& margin, C const& ceil, bool count_margin,
                           index_t divisor) {
    auto const x = with_one_lead<N>(in);
    auto const k = as_fact(size);
    auto const t = as_fact(step);
    auto const p = as_fact(margin);
    constexpr ints<1> d{};
    auto const up = as_fact(ceil);
    auto const s = shape_of(x);
    auto const pad = on_dims(pool_margins<N>, s, k, t, p, d, up);
    auto const sums = [&] {
      if constexpr (std::is_same_v<X, tensor>)
        if (X r = summed_at_once(x, pool_facts<N>(to_dims(k), to_dims(t), to_dims(p), dims{1}, to_dims(up)));
            r.defined())
          return r;
      return varve::sum(pool_windows<N>(constant_pad_nd(x, pad), s, k, t, p, d, up), axis<-1>);
    }();
    auto const over = [&](auto const& counts) { // truncated for integers
      return with_lead_of<N>(to(div(sums, expand(counts, shape_of(sums))), type_fact(x)), shape_of(in));
    };
    if (divisor != 0) return over(new_full(detach(sums), ints<>{}, divisor));
    auto const spatial = on_dims([](dims const& z) { return z.sub(z.n - N, z.n); }, s);
    auto const ones_there = new_full(detach(x), spatial, 1);
    auto const own =
        constant_pad_nd(ones_there, on_dims(pool_margins_apart<N, true>, s, k, t, p, d, up), count_margin ? 1 : 0);
    auto const all = constant_pad_nd(own, on_dims(pool_margins_apart<N, false>, s, k, t, p, d, up));
    auto const counts = varve::sum(pool_windows<N>(all, spatial, k, t, p, d, up), axis<-1>);
    return over(counts);
  }
};

/// Returns nonnegative integers divided by n, rounded down.
template <value O>
constexpr auto whole_quotient(O const& o, index_t n) {
  auto const q = div(to(o, ints<static_cast<index_t>(dtype::float64)>{}), static_cast<double>(n));
  return to(q, ints<static_cast<index_t>(dtype::int64)>{});
}
/// Returns the start of window o of n windows that cover `size` elements; `adaptive_end` returns its end.
template <value O>
constexpr auto adaptive_start(O const& o, index_t size, index_t n) {
  return whole_quotient(mul(o, size), n);
}
template <value O>
constexpr auto adaptive_end(O const& o, index_t size, index_t n) {
  return whole_quotient(add(mul(add(o, 1), size), n - 1), n);
}
/// Returns the requested sizes, where -1 keeps that of the value.
template <int N>
inline constexpr auto adaptive_sizes = [](dims const& s, dims const& wanted) {
  require_pooled(std::integral_constant<int, N>{}, s);
  dims r = wanted;
  if (r.n == 1)
    while (r.n < N) r.push_back(wanted[0]);
  if (r.n != N) refuse::argument_is_invalid("pooling", "there is one size, or one for each spatial dimension");
  for (int a = 0; a < N; ++a) {
    if (known_equal(r[a], -1)) r[a] = s[s.n - N + a];
    if (r[a] < 0) refuse::argument_is_invalid("pooling", "sizes must not be negative");
  }
  return r;
};
/// Returns the length of the longest of n windows that cover `size` elements.
inline constexpr auto longest_window = [](dims const& size, dims const& n) {
  extent most = 1;
  for (index_t o = 0; o < index_t(n[0]); ++o) {
    extent const from = size[0] * o / n[0], to = (size[0] * (o + 1) + n[0] - 1) / n[0];
    if (to - from > most) most = to - from;
  }
  return dims{most};
};
template <int N>
struct adaptive_avg_pool_of {
  template <value X>
  constexpr auto operator()(X const& in, braces sizes) const {
    return (*this)(in, dims_in(sizes));
  }
  template <value X, class S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    if (!has_derivatives(dtype_of(x))) refuse::dtype_is_not_supported("adaptive_avg_pool", name(dtype_of(x)));
    return along<0>(x, on_dims(adaptive_sizes<N>, shape_of(x), as_fact(sizes)));
  }

private:
  /// Sums windows of equal length. Shorter windows repeat their last element, which then counts as 0; no element
  /// outside a window is read.
  template <int A, class X, class S>
  static constexpr auto along(X const& x, S const& sizes) {
    if constexpr (A == N) return x;
    else {
      auto const place = on_dims([](dims const& s) { return dims{s.n - N + A}; }, shape_of(x));
      auto const have = on_dims([](dims const& s) { return dims{s[s.n - N + A]}; }, shape_of(x));
      auto const want = on_dims([](dims const& s) { return dims{s[A]}; }, sizes);
      auto const longest = on_dims(longest_window, have, want);
      index_t const size = to_dims(have)[0], n = to_dims(want)[0];
      auto const o = reshape(counted(want, x), on_dims([](dims const& s) { return dims{s[0], 1}; }, want));
      auto const start = adaptive_start(o, size, n), stop = adaptive_end(o, size, n);
      auto const k = add(start, counted(longest, x));
      auto const read = index_select(x, place, ravel(minimum(k, sub(stop, 1))));
      auto const windows = reshape(read, on_dims(apart, shape_of(read), place, want, longest));
      auto const inside = reshape(lt(k, stop), on_dims(above<2>, shape_of(windows), place));
      auto const next = on_dims([](dims const& at) { return dims{at[0] + 1}; }, place);
      auto const sums = varve::sum(where(inside, windows, 0), next);
      auto const counts = reshape(sub(stop, start), on_dims(above<1>, shape_of(sums), place));
      return along<A + 1>(div(sums, to(counts, type_fact(x))), sizes);
    }
  }
  static constexpr auto apart = [](dims const& s, dims const& at, dims const& n, dims const& longest) {
    dims r;
    for (int k = 0; k < s.n; ++k)
      if (k == static_cast<int>(at[0])) r.push_back(n[0]).push_back(longest[0]);
      else r.push_back(s[k]);
    return r;
  };
  /// The shape of a value that varies along `Count` axes from an axis on.
  template <int Count>
  static constexpr auto above = [](dims const& s, dims const& at) {
    dims r;
    for (int k = static_cast<int>(at[0]); k < s.n; ++k)
      r.push_back(k < static_cast<int>(at[0]) + Count ? s[k] : extent(1));
    return r;
  };
};
template <int N>
struct adaptive_max_pool_of {
  template <value X>
  constexpr auto operator()(X const& in, braces sizes) const {
    return (*this)(in, dims_in(sizes));
  }
  template <value X, class S>
  constexpr auto operator()(X const& in, S const& sizes) const {
    auto const x = with_one_lead<N>(in);
    auto const want = on_dims(adaptive_sizes<N>, shape_of(x), as_fact(sizes));
    auto const spatial = on_dims([](dims const& z) { return z.sub(z.n - N, z.n); }, shape_of(x));
    auto const n = on_dims([](dims const& z) { return dims{numel(z)}; }, spatial);
    auto const places = reshape(counted(n, x), spatial);
    auto const windows = joined(spread<0>(x, want), want);
    auto const at = joined(spread<0>(places, want), want);
    auto const [values, first] = max_along(windows, axis<-1>, keepdim);
    auto const index = gather(expand(at, shape_of(windows)), axis<-1>, first);
    auto const shape = on_dims([](dims const& z) { return z.sub(0, z.n - 1); }, shape_of(windows));
    auto const all = shape_of(in);
    return std::pair(with_lead_of<N>(reshape(values, shape), all), with_lead_of<N>(reshape(index, shape), all));
  }

private:
  /// Lays out the windows of each axis one after the other, with equal lengths. Shorter windows repeat their last
  /// element.
  template <int A, class X, class S>
  static constexpr auto spread(X const& x, S const& want) {
    if constexpr (A == N) return x;
    else {
      auto const place = on_dims([](dims const& s) { return dims{s.n - N + A}; }, shape_of(x));
      auto const have = on_dims([](dims const& s) { return dims{s[s.n - N + A]}; }, shape_of(x));
      auto const n = on_dims([](dims const& s) { return dims{s[A]}; }, want);
      auto const longest = on_dims(longest_window, have, n);
      auto const o = reshape(counted(n, x), on_dims([](dims const& s) { return dims{s[0], 1}; }, n));
      index_t const size = to_dims(have)[0], count = to_dims(n)[0];
      auto const k = add(adaptive_start(o, size, count), counted(longest, x));
      auto const last = sub(adaptive_end(o, size, count), 1);
      return spread<A + 1>(index_select(x, place, ravel(minimum(k, last))), want);
    }
  }
  template <class X, class S>
  static constexpr auto joined(X const& x, S const& want) {
    auto const apart = [](dims const& s, dims const& n) {
      dims r = s.sub(0, s.n - N);
      for (int a = 0; a < N; ++a) r.push_back(n[a]).push_back(n[a] == 0 ? extent(1) : s[s.n - N + a] / n[a]);
      return r;
    };
    auto const order = [](dims const& s) {
      dims r;
      int const lead = s.n - 2 * N;
      for (int k = 0; k < lead; ++k) r.push_back(k);
      for (int a = 0; a < N; ++a) r.push_back(lead + 2 * a);
      for (int a = 0; a < N; ++a) r.push_back(lead + 2 * a + 1);
      return r;
    };
    auto const parts = reshape(x, on_dims(apart, shape_of(x), want));
    auto const turned = permute(parts, on_dims(order, shape_of(parts)));
    return reshape(turned, on_dims(joined_windows<N>, shape_of(turned)));
  }
};
} // namespace detail

/// `max_pool1d(x, size, step = size, margin = 0, dilation = 1, ceil = 0)`: the greatest element of each window and its
/// index among the spatial elements, as a pair. All of the derivative goes to that element. Margins contain no
/// elements. With `ceil` the last window may lie partly outside.
inline constexpr detail::max_pool_of<1> max_pool1d{};
/// `max_pool1d` with two spatial dimensions.
inline constexpr detail::max_pool_of<2> max_pool2d{};
/// `max_pool1d` with three spatial dimensions.
inline constexpr detail::max_pool_of<3> max_pool3d{};
/// `avg_pool1d(x, size, step = size, margin = 0, ceil = 0, count_margin = true, divisor = 0)`: the mean of each window.
/// Margins are zeros, which count as elements if `count_margin` is true. A nonzero `divisor` replaces the count.
inline constexpr detail::avg_pool_of<1> avg_pool1d{};
/// `avg_pool1d` with two spatial dimensions.
inline constexpr detail::avg_pool_of<2> avg_pool2d{};
/// `avg_pool1d` with three spatial dimensions.
inline constexpr detail::avg_pool_of<3> avg_pool3d{};
/// `adaptive_avg_pool1d(x, sizes)`: the means of as many windows as the result has elements. The windows cover the
/// input. A size of -1 keeps that of the input.
inline constexpr detail::adaptive_avg_pool_of<1> adaptive_avg_pool1d{};
/// `adaptive_avg_pool1d` with two spatial dimensions.
inline constexpr detail::adaptive_avg_pool_of<2> adaptive_avg_pool2d{};
/// `adaptive_avg_pool1d` with three spatial dimensions.
inline constexpr detail::adaptive_avg_pool_of<3> adaptive_avg_pool3d{};
/// `adaptive_max_pool1d(x, sizes)`: the greatest elements of the windows of `adaptive_avg_pool1d`, and their indices,
/// as a pair.
inline constexpr detail::adaptive_max_pool_of<1> adaptive_max_pool1d{};
/// `adaptive_max_pool1d` with two spatial dimensions.
inline constexpr detail::adaptive_max_pool_of<2> adaptive_max_pool2d{};
/// `adaptive_max_pool1d` with three spatial dimensions.
inline constexpr detail::adaptive_max_pool_of<3> adaptive_max_pool3d{};

/// `im2col(x, size, dilation = 1, margin = 0, step = 1)`: the windows of an image [n, channels, height, width] or
/// [channels, height, width] as columns (`torch.nn.functional.unfold`). The result is [n, channels * elements of a
/// window, windows].
inline constexpr struct im2col_t : composite_operator<im2col_t> {
  static constexpr auto op_name = "im2col";
  template <value X, class K, class D = ints<1>, class P = ints<0>, class S = ints<1>>
  static constexpr auto body(X const& x, K const& size, D const& dilation = {}, P const& margin = {},
                             S const& step = {}) {
    auto const k = detail::as_fact(size);
    auto const d = detail::as_fact(dilation);
    auto const p = detail::as_fact(margin);
    auto const t = detail::as_fact(step);
    auto const s = shape_of(x);
    auto const padded = constant_pad_nd(x, on_dims(margins, s, k, t, p, d));
    auto const w = as_strided(contiguous(padded), on_dims(window_sizes, s, k, t, p, d),
                              on_dims(window_strides, shape_of(padded), k, t, p, d), ints<0>{});
    return reshape(w, on_dims(columns, s, k, t, p, d));
  }

private:
  struct facts {
    dims size, step, margin, dilation, count;
    constexpr facts(dims const& s, dims const& k, dims const& t, dims const& p, dims const& d)
        : size(wide(k)), step(wide(t)), margin(wide(p)), dilation(wide(d)) {
      if (s.n != 3 && s.n != 4) refuse::argument_is_invalid(op_name, "images have channels, height and width");
      for (int a = 0; a < 2; ++a) {
        if (size[a] < 1 || step[a] < 1 || dilation[a] < 1 || margin[a] < 0)
          refuse::argument_is_invalid(op_name, "sizes, steps and dilations must be positive");
        extent const room = s[s.n - 2 + a] + margin[a] * 2 - (dilation[a] * (size[a] - 1) + 1);
        if (room < 0) refuse::argument_is_invalid(op_name, "a window is larger than the image");
        count.push_back(room / step[a] + 1);
      }
    }
    static constexpr dims wide(dims const& v) { return v.n == 1 ? dims{v[0], v[0]} : v; }
  };
  static constexpr auto margins = [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d) {
    facts const f(s, k, t, p, d);
    return dims{f.margin[1], f.margin[1], f.margin[0], f.margin[0]};
  };
  static constexpr auto window_sizes = [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d) {
    facts const f(s, k, t, p, d);
    dims r = s.sub(0, s.n - 2);
    return r.push_back(f.size[0]).push_back(f.size[1]).push_back(f.count[0]).push_back(f.count[1]);
  };
  static constexpr auto window_strides = [](dims const& padded, dims const& k, dims const& t, dims const&,
                                            dims const& d) {
    dims const step = facts::wide(t), dilation = facts::wide(d), all = contiguous_strides(padded);
    (void)k;
    dims r = all.sub(0, all.n - 2);
    extent const row = all[all.n - 2], column = all[all.n - 1];
    r.push_back(row * dilation[0]).push_back(column * dilation[1]);
    return r.push_back(row * step[0]).push_back(column * step[1]);
  };
  static constexpr auto columns = [](dims const& s, dims const& k, dims const& t, dims const& p, dims const& d) {
    facts const f(s, k, t, p, d);
    dims r = s.sub(0, s.n - 2);
    r[r.n - 1] = r[r.n - 1] * f.size[0] * f.size[1];
    return r.push_back(f.count[0] * f.count[1]);
  };
} im2col{};

} // namespace varve
