// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace varve {

/// A size, stride, axis or index.
using index_t = std::int64_t;

/// Greatest rank of a value, batch dimensions of `vmap` included.
inline constexpr int max_rank = 8;

/// A short list of integers held in place: sizes, strides, axes or any other attribute of an operator, as data.
/// Usable in constant expressions; more than `max_rank` entries are refused with `rank_error`.
struct dims {
  index_t v[max_rank]{};
  int n = 0;

  constexpr dims() = default;
  template <class... I>
    requires(sizeof...(I) > 0 && (std::is_convertible_v<I, index_t> && ...))
  constexpr dims(I... i) {
    (push_back(static_cast<index_t>(i)), ...);
  }

  constexpr int size() const { return n; }
  constexpr bool empty() const { return n == 0; }
  constexpr index_t operator[](int i) const { return v[i]; }
  constexpr index_t& operator[](int i) { return v[i]; }
  constexpr index_t const* begin() const { return v; }
  constexpr index_t const* end() const { return v + n; }
  constexpr index_t back() const { return v[n - 1]; }

  constexpr dims& push_back(index_t i) {
    if (n == max_rank) refuse::rank_exceeds_eight_dimensions(n + 1);
    v[n++] = i;
    return *this;
  }
  /// Puts `i` before position `at`.
  constexpr dims& insert(int at, index_t i) {
    push_back(0);
    for (int k = n - 1; k > at; --k) v[k] = v[k - 1];
    v[at] = i;
    return *this;
  }
  /// Removes position `at`.
  constexpr dims& erase(int at) {
    for (int k = at; k + 1 < n; ++k) v[k] = v[k + 1];
    v[--n] = 0;
    return *this;
  }
  /// The entries [from, to).
  constexpr dims sub(int from, int to) const {
    dims r;
    for (int k = from; k < to; ++k) r.push_back(v[k]);
    return r;
  }
  constexpr bool contains(index_t i) const {
    for (int k = 0; k < n; ++k)
      if (v[k] == i) return true;
    return false;
  }
  friend constexpr bool operator==(dims const& a, dims const& b) {
    if (a.n != b.n) return false;
    for (int k = 0; k < a.n; ++k)
      if (a.v[k] != b.v[k]) return false;
    return true;
  }
};

/// Product of the sizes: the number of elements (1 for rank 0). Products of symbolic sizes wrap around; equal products
/// have equal numbers.
constexpr index_t numel(dims const& s) {
  std::uint64_t p = 1;
  for (int k = 0; k < s.n; ++k) p *= static_cast<std::uint64_t>(s.v[k]);
  return static_cast<index_t>(p);
}
/// How many elements of sizes `from` there are for each of sizes `to`; 1 where there is none of the latter, so that the
/// compiler need not divide by 0.
constexpr double numel_per(dims const& from, dims const& to) {
  return numel(to) ? static_cast<double>(numel(from)) / static_cast<double>(numel(to)) : 1;
}

/// The name of a symbolic size, as `dim<"n">` in a spec: up to 7 characters, which lie in the number itself
/// (`extent::is_name`).
constexpr index_t symbol(char const* name) {
  std::uint64_t r = 0;
  for (int k = 0; k < 7; ++k) r = (r << 8) | static_cast<unsigned char>(*name ? *name++ : 0);
  return static_cast<index_t>((std::uint64_t{3} << 61) | r);
}
/// Is a size no number: the name of a symbol, or in a graph an expression of symbols (`extent`)? `INT64_MAX` is one.
constexpr bool is_symbol(index_t size) { return size >= (index_t{1} << 62) && size != INT64_MAX; }

/// Row-major strides, in elements, of a shape.
constexpr dims contiguous_strides(dims const& s) {
  dims r = s;
  std::uint64_t p = 1;
  for (int k = s.n - 1; k >= 0; --k) {
    r.v[k] = static_cast<index_t>(p);
    p *= static_cast<std::uint64_t>(s.v[k] > 0 ? s.v[k] : 1);
  }
  return r;
}

/// Wraps a negative axis of a value of rank `rank`; out of range is `index_error`. Rank 0 admits axes -1 and 0, as
/// PyTorch does.
constexpr int wrap_axis(index_t axis, int rank) {
  int const r = rank > 0 ? rank : 1;
  if (axis < -r || axis >= r) refuse::axis_out_of_range(axis, rank);
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

/// Does `from` broadcast to `to`, without changing that?
constexpr bool is_expandable(dims const& from, dims const& to) {
  bool fits = from.n <= to.n;
  for (int k = 1; fits && k <= from.n; ++k) fits = from[from.n - k] == 1 || from[from.n - k] == to[to.n - k];
  return fits;
}
/// Common shape of two shapes aligned at the right; sizes must agree or be 1 (`shape_error` otherwise). PyTorch:
/// broadcasting semantics.
constexpr dims broadcast(dims const& a, dims const& b) {
  dims const& longer = a.n >= b.n ? a : b;
  dims const& shorter = a.n >= b.n ? b : a;
  dims r = longer;
  int const shift = longer.n - shorter.n;
  for (int k = 0; k < shorter.n; ++k) {
    index_t const x = longer.v[k + shift], y = shorter.v[k];
    if (x == y || y == 1) continue;
    if (x != 1) refuse::shapes_do_not_broadcast(a, b);
    r.v[k + shift] = y;
  }
  return r;
}

/// A list of integers known to the compiler: the type form of `dims`. `shape<2, 3>`, `axis<1>` are objects of it.
template <index_t... I>
struct ints {
  static constexpr int size() { return sizeof...(I); }
  constexpr operator dims() const { return to_dims(); }
  static constexpr dims to_dims() {
    dims r;
    (r.push_back(I), ...);
    return r;
  }
};

/// A shape known to the compiler: `reshape(x, shape<2, 3>)`.
template <index_t... I>
inline constexpr ints<I...> shape{};
/// One or several axes known to the compiler: `sum(x, axis<1>)`.
template <index_t... I>
inline constexpr ints<I...> axis{};

template <class T>
inline constexpr bool is_ints = false;
template <index_t... I>
inline constexpr bool is_ints<ints<I...>> = true;
template <index_t... I>
inline constexpr bool is_ints<ints<I...> const> = true;

/// A *fact* is an integer list under one spelling in both worlds: a type (`ints<...>`) for static values, data (`dims`)
/// for run-time ones.
template <class T>
concept fact = is_ints<T> || std::is_same_v<T, dims>;

template <index_t... I>
constexpr dims to_dims(ints<I...>) {
  return ints<I...>::to_dims();
}
constexpr dims const& to_dims(dims const& d) { return d; }
constexpr dims to_dims(dims&& d) { return d; } // a temporary does not outlive the call

namespace detail {
template <auto Compute, std::size_t... K>
constexpr auto ints_from(std::index_sequence<K...>) {
  return ints<Compute()[K]...>{};
}
template <class F, class... A>
struct computed {
  static constexpr dims compute() { return F{}(A::to_dims()...); }
  static constexpr dims value = compute();
  constexpr dims operator()() const { return value; }
};
} // namespace detail

/// Is `C::compute()` a constant expression? What is not is told once, by the one who asks.
template <class C>
concept evaluates = requires { typename std::bool_constant<(C::compute(), true)>; };

/// Computes a fact from facts: `f` maps `dims...` to `dims` and captures nothing. All arguments types: the result is a
/// type; otherwise it is data.
template <class F, fact... A>
constexpr auto on_dims(F f, A const&... a) {
  if constexpr ((is_ints<A> && ...) && sizeof...(A) > 0) {
    using result = detail::computed<F, A...>;
    if constexpr (!evaluates<result>) {
      static_assert((result::compute(), true),
                    "varve: these attributes do not fit these shapes"); // the compiler tells why, and goes on
      return ints<>{};
    } else return detail::ints_from<result{}>(std::make_index_sequence<static_cast<std::size_t>(result::value.n)>{});
  } else {
    return f(to_dims(a)...);
  }
}

} // namespace varve
