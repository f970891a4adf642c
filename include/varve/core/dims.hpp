// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/extent.hpp>
#include <varve/core/type.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace varve {

/// Greatest rank of a value, batch dimensions of `vmap` included.
inline constexpr int max_rank = 8;

/// A short list of integers held in place: sizes, strides, axes or any other attribute of an operator, as data. Sizes
/// and strides may be symbolic (`extent`); the other lists are numbers. Usable in constant expressions; more than
/// `max_rank` entries are refused with `rank_error`.
struct dims {
  extent v[max_rank]{};
  int n = 0;

  constexpr dims() = default;
  template <class... I>
    requires(sizeof...(I) > 0 && (std::is_convertible_v<I, index_t> && ...))
  constexpr dims(I... i) {
    (push_back(static_cast<extent>(i)), ...);
  }

  constexpr int size() const { return n; }
  constexpr bool empty() const { return n == 0; }
  constexpr extent operator[](int i) const { return v[i]; }
  constexpr extent& operator[](int i) { return v[i]; }
  constexpr extent const* begin() const { return v; }
  constexpr extent const* end() const { return v + n; }
  constexpr extent back() const { return v[n - 1]; }
  /// The entries as kernels read them, of a value with memory: all of them are numbers then. Not in constant
  /// expressions, where an extent is asked for its `number()`.
  index_t const* numbers() const { return reinterpret_cast<index_t const*>(v); }
  /// The numbers that the entries are, or are taken for.
  constexpr dims as_numbers() const {
    dims r = *this;
    for (int k = 0; k < n; ++k) r.v[k] = static_cast<index_t>(v[k]);
    return r;
  }

  constexpr dims& push_back(extent i) {
    if (n == max_rank) refuse::rank_exceeds_eight_dimensions(n + 1);
    v[n++] = i;
    return *this;
  }
  /// Puts `i` before position `at`.
  constexpr dims& insert(int at, extent i) {
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
  /// Is a number among the entries? A symbolic size is none.
  constexpr bool contains(index_t i) const {
    for (int k = 0; k < n; ++k)
      if (v[k].bits == i) return true;
    return false;
  }
  /// The same entries, whatever they stand for: asks nobody.
  friend constexpr bool known_equal(dims const& a, dims const& b) {
    if (a.n != b.n) return false;
    for (int k = 0; k < a.n; ++k)
      if (!known_equal(a.v[k], b.v[k])) return false;
    return true;
  }
  /// Equal sizes; where symbols could be either, this decides it.
  friend constexpr bool operator==(dims const& a, dims const& b) {
    if (a.n != b.n) return false;
    for (int k = 0; k < a.n; ++k)
      if (!known_equal(a.v[k], b.v[k]) && a.v[k] != b.v[k]) return false;
    return true;
  }
};

/// A list of sizes that are numbers, read as such (`on_sizes`).
struct number_list {
  extent const* v;
  int n;
  constexpr index_t operator[](int i) const { return v[i].bits; }
};
namespace detail {
constexpr index_t all_bits(extent e) { return e.bits; }
constexpr index_t all_bits(dims const& d) {
  index_t r = 0;
  for (int k = 0; k < d.n; ++k) r |= d.v[k].bits;
  return r;
}
constexpr bool are_numbers(extent e) { return e.is_small(); }
constexpr bool are_numbers(dims const& d) {
  bool r = true;
  for (int k = 0; k < d.n; ++k) r &= d.v[k].is_small();
  return r;
}
template <class S>
using size_argument = std::conditional_t<std::is_same_v<S, extent>, extent, S const&>;
/// Out of line, so that who has numbers pays for no more than the question.
template <class... S, class F>
VARVE_COLD constexpr auto of_symbols(F f, size_argument<S>... s) {
  return f(s...);
}
constexpr index_t as_numbers(extent e) { return e.bits; }
constexpr number_list as_numbers(dims const& d) { return {d.v, d.n}; }
} // namespace detail
/// `f` of sizes and lists of sizes. It is compiled for numbers, too (`index_t`, `number_list`), and is given these
/// where all are some: one question in the place of one for each operation. What `f` captures it has better as a copy,
/// so that it need not lie in memory.
template <class F, class... S>
VARVE_INLINE constexpr auto on_sizes(F f, S const&... s) {
  if (!extent::any_symbol((detail::all_bits(s) | ...)) || (detail::are_numbers(s) && ...)) [[likely]]
    return f(detail::as_numbers(s)...);
  return detail::of_symbols<S...>(f, s...);
}

namespace detail {
/// A product of two sizes, of which numbers wrap around instead of overflowing: shapes that are too large are refused
/// by others.
constexpr index_t wrapping_product(index_t a, index_t b) {
  return static_cast<index_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr extent wrapping_product(extent a, extent b) {
  return a.is_number() && b.is_number() ? extent(wrapping_product(a.bits, b.bits)) : a * b;
}
VARVE_COLD constexpr extent product_of_symbols(dims const& s) {
  extent p = 1;
  for (int k = 0; k < s.n; ++k) p = wrapping_product(p, s.v[k]);
  return p;
}
} // namespace detail
/// Product of the sizes: the number of elements (1 for rank 0).
constexpr extent numel(dims const& s) {
  index_t p = 1, all = 0;
  for (int k = 0; k < s.n; ++k) all |= s.v[k].bits, p = detail::wrapping_product(p, s.v[k].bits);
  if (extent::any_symbol(all)) [[unlikely]]
    return detail::product_of_symbols(s);
  return p;
}
constexpr index_t numel(number_list const& s) {
  index_t p = 1;
  for (int k = 0; k < s.n; ++k) p = detail::wrapping_product(p, s[k]);
  return p;
}
/// How many elements of sizes `from` there are for each of sizes `to`; 1 where there is none of the latter, so that the
/// compiler need not divide by 0.
constexpr double numel_per(dims const& from, dims const& to) {
  if (extent const all = numel(from), some = numel(to), each = all / (known_equal(some, 0) ? extent(1) : some);
      each.is_number() && known_equal(some * each, all))
    return static_cast<double>(each.number());
  index_t const all = numel(from), some = numel(to);
  return some ? static_cast<double>(all) / static_cast<double>(some) : 1;
}

/// The name of a symbolic size, as `dim<"n">` in a spec: up to 7 characters, which lie in the number itself
/// (`extent::is_name`).
constexpr index_t symbol(char const* name) {
  std::uint64_t r = 0;
  for (int k = 0; k < 7; ++k) r = (r << 8) | static_cast<unsigned char>(*name ? *name++ : 0);
  return static_cast<index_t>((std::uint64_t{3} << 61) | r);
}
/// Is a size no number: the name of a symbol, or in a graph an expression of symbols (`extent`)? `INT64_MAX` is one.
constexpr bool is_symbol(extent size) { return !size.is_number(); }

/// Row-major strides, in elements, of a shape. Symbolic sizes are taken for greater than 0.
constexpr dims contiguous_strides(dims const& s) {
  auto const strides = [](auto const& sizes) {
    dims r;
    r.n = sizes.n;
    std::remove_cvref_t<decltype(sizes[0])> p = 1;
    for (int k = sizes.n - 1; k >= 0; --k) {
      r.v[k] = p;
      if (is_symbol(sizes[k]) || sizes[k] > 0) p = detail::wrapping_product(p, sizes[k]);
    }
    return r;
  };
  return on_sizes(strides, s);
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
  for (int k = 1; fits && k <= from.n; ++k) {
    extent const x = from[from.n - k], y = to[to.n - k];
    fits = known_equal(x, 1) || x == y || x == 1;
  }
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
    extent const x = longer.v[k + shift], y = shorter.v[k];
    if (known_equal(x, y) || known_equal(y, 1)) continue;
    if (!known_equal(x, 1)) { // of numbers nothing is left to ask
      if (x == y || y == 1) continue;
      if (x != 1) refuse::shapes_do_not_broadcast(a, b); // varve: sizes of two operands differ, and neither is 1
    }
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

/// Is a type a list of integers known to the compiler, `ints<...>`?
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

/// A list of integers as data, whichever of the two it is.
template <index_t... I>
constexpr dims to_dims(ints<I...>) {
  return ints<I...>::to_dims();
}
constexpr dims const& to_dims(dims const& d) { return d; }
constexpr dims to_dims(dims&& d) { return d; } // a temporary does not outlive the call

namespace detail {
template <auto Compute, std::size_t... K>
constexpr auto ints_from(std::index_sequence<K...>) {
  return ints<Compute()[K].number()...>{};
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
      static_assert(never<F, A...>, "varve: these attributes or operands do not fit these shapes; the refusal named "
                                    "below says which");
      static_assert((F{}(A::to_dims()...), true)); // the compiler tells why, and goes on
      return ints<>{};
    } else return detail::ints_from<result{}>(std::make_index_sequence<static_cast<std::size_t>(result::value.n)>{});
  } else {
    return f(to_dims(a)...);
  }
}

} // namespace varve
