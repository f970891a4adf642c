// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/extent.hpp>
#include <varve/core/type.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace varve {

/// The greatest rank of a value, including batch dimensions of `vmap`.
inline constexpr int max_rank = 8;

/// A short list of integers, stored inline: sizes, strides, axes or another attribute of an operator. Sizes and strides
/// may be symbolic (`extent`); other lists contain numbers only. Usable in constant expressions. More than `max_rank`
/// entries throw `rank_error`.
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
  /// Returns the entries as an array of integers, for kernels. All entries must be numbers, as they are for values with
  /// memory. In constant expressions use `extent::number()` instead.
  index_t const* numbers() const { return reinterpret_cast<index_t const*>(v); }
  /// Returns the entries as numbers. A symbolic size is specialized: its environment fixes its number from now on.
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
  /// Inserts `i` before position `at`.
  constexpr dims& insert(int at, extent i) {
    push_back(0);
    for (int k = n - 1; k > at; --k) v[k] = v[k - 1];
    v[at] = i;
    return *this;
  }
  /// Removes the entry at position `at`.
  constexpr dims& erase(int at) {
    for (int k = at; k + 1 < n; ++k) v[k] = v[k + 1];
    v[--n] = 0;
    return *this;
  }
  /// Returns the entries [from, to).
  constexpr dims sub(int from, int to) const {
    dims r;
    for (int k = from; k < to; ++k) r.push_back(v[k]);
    return r;
  }
  /// True if the number `i` is among the entries. A symbolic size never matches.
  constexpr bool contains(index_t i) const {
    for (int k = 0; k < n; ++k)
      if (v[k].bits == i) return true;
    return false;
  }
  /// True if both lists have identical entries. Symbolic sizes are compared as expressions; no environment decides
  /// anything.
  friend constexpr bool known_equal(dims const& a, dims const& b) {
    if (a.n != b.n) return false;
    for (int k = 0; k < a.n; ++k)
      if (!known_equal(a.v[k], b.v[k])) return false;
    return true;
  }
  /// True if all sizes are equal. If symbolic sizes could be equal or not, their environment decides and remembers the
  /// result.
  friend constexpr bool operator==(dims const& a, dims const& b) {
    if (a.n != b.n) return false;
    for (int k = 0; k < a.n; ++k)
      if (!known_equal(a.v[k], b.v[k]) && a.v[k] != b.v[k]) return false;
    return true;
  }
};

/// A list of sizes that are all numbers (`on_sizes`).
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
/// Calls `f` with symbolic sizes. Out of line, so that calls with numbers pay only for the check.
template <class... S, class F>
VARVE_COLD constexpr auto of_symbols(F f, size_argument<S>... s) {
  return f(s...);
}
constexpr index_t as_numbers(extent e) { return e.bits; }
constexpr number_list as_numbers(dims const& d) { return {d.v, d.n}; }
} // namespace detail
/// Calls `f` with sizes and lists of sizes. `f` is also compiled for plain numbers (`index_t`, `number_list`) and
/// receives these if all sizes are numbers: one check replaces a check in each operation. `f` should capture by value,
/// so that its captures need not lie in memory.
template <class F, class... S>
VARVE_INLINE constexpr auto on_sizes(F f, S const&... s) {
  if (!extent::any_symbol((detail::all_bits(s) | ...)) || (detail::are_numbers(s) && ...)) [[likely]]
    return f(detail::as_numbers(s)...);
  return detail::of_symbols<S...>(f, s...);
}

namespace detail {
/// Returns the product of two sizes. Products of numbers wrap around instead of overflowing; shapes that are too large
/// are refused elsewhere.
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
/// Returns the product of the sizes: the number of elements (1 for rank 0).
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
/// Returns how many elements of shape `from` there are for each element of shape `to`. If `to` has no elements, returns
/// 1, or 0 if `from` has none either. It never divides by 0.
constexpr double numel_per(dims const& from, dims const& to) {
  if (extent const all = numel(from), some = numel(to), each = all / (known_equal(some, 0) ? extent(1) : some);
      each.is_number() && known_equal(some * each, all))
    return static_cast<double>(each.number());
  index_t const all = numel(from), some = numel(to);
  return some ? static_cast<double>(all) / static_cast<double>(some) : 1;
}

/// Returns the name of a symbolic size, as in `dim<"n">` in a spec, as an integer. The integer itself contains the
/// characters, of which it keeps the first 7 (`extent::is_name`).
constexpr index_t symbol(char const* name) {
  std::uint64_t r = 0;
  for (int k = 0; k < 7; ++k) r = (r << 8) | static_cast<unsigned char>(*name ? *name++ : 0);
  return static_cast<index_t>((std::uint64_t{3} << 61) | r);
}
/// True if a size is not a number: it is the name of a symbol or, in a graph, an expression of symbols (`extent`).
/// `INT64_MAX` is a number.
constexpr bool is_symbol(extent size) { return !size.is_number(); }

/// Returns the row-major strides of a shape, in elements. Symbolic sizes are assumed to be greater than 0.
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

/// Returns an axis of a value of rank `rank` as a number from 0; negative axes count from the end. Throws `index_error`
/// if the axis is out of range. Rank 0 admits the axes -1 and 0, as in PyTorch.
constexpr int wrap_axis(index_t axis, int rank) {
  int const r = rank > 0 ? rank : 1;
  if (axis < -r || axis >= r) refuse::axis_out_of_range(axis, rank);
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

/// True if shape `from` broadcasts to shape `to` without changing `to`.
constexpr bool is_expandable(dims const& from, dims const& to) {
  bool fits = from.n <= to.n;
  for (int k = 1; fits && k <= from.n; ++k) {
    extent const x = from[from.n - k], y = to[to.n - k];
    fits = known_equal(x, 1) || x == y || x == 1;
  }
  return fits;
}
/// Returns the common shape of two shapes aligned at the right (PyTorch: broadcasting semantics). Sizes must agree or
/// be 1; otherwise throws `shape_error`.
constexpr dims broadcast(dims const& a, dims const& b) {
  dims const& longer = a.n >= b.n ? a : b;
  dims const& shorter = a.n >= b.n ? b : a;
  dims r = longer;
  int const shift = longer.n - shorter.n;
  for (int k = 0; k < shorter.n; ++k) {
    extent const x = longer.v[k + shift], y = shorter.v[k];
    if (known_equal(x, y) || known_equal(y, 1)) continue;
    if (!known_equal(x, 1)) { // only symbolic sizes can still prove equal
      if (x == y || y == 1) continue;
      if (x != 1) refuse::shapes_do_not_broadcast(a, b); // varve: sizes of two operands differ, and neither is 1
    }
    r.v[k + shift] = y;
  }
  return r;
}

/// A list of integers known at compile time: the type form of `dims`. `shape<2, 3>` and `axis<1>` are objects of such
/// types.
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

/// A shape known at compile time: `reshape(x, shape<2, 3>)`.
template <index_t... I>
inline constexpr ints<I...> shape{};
/// One or several axes known at compile time: `sum(x, axis<1>)`.
template <index_t... I>
inline constexpr ints<I...> axis{};

/// True if a type is a list of integers known at compile time, `ints<...>`.
template <class T>
inline constexpr bool is_ints = false;
template <index_t... I>
inline constexpr bool is_ints<ints<I...>> = true;
template <index_t... I>
inline constexpr bool is_ints<ints<I...> const> = true;

/// A *fact*: an integer list that is a type (`ints<...>`) for static values and data (`dims`) for run-time values.
template <class T>
concept fact = is_ints<T> || std::is_same_v<T, dims>;

/// Returns a list of integers, in either form, as data.
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

namespace detail {
/// A size, axis or index as an argument of its own: an integer or a symbolic size.
template <class I>
concept one_size = (std::is_integral_v<I> && !std::is_same_v<I, bool>) || std::is_same_v<I, extent>;
/// An entry of a list in braces, which is no fraction.
struct list_entry {
  extent v;
  template <one_size I>
  constexpr list_entry(I i) : v(static_cast<extent>(i)) {}
};
/// A list of integers that was written in braces. A parameter of this type accepts nothing else, so that it competes
/// with no other overload.
using braces = std::initializer_list<list_entry>;
constexpr dims dims_in(braces const& list) {
  dims r;
  for (list_entry const& e : list) r.push_back(e.v);
  return r;
}
} // namespace detail

/// True if `C::compute()` is a constant expression. The code that tests it reports the error.
template <class C>
concept evaluates = requires { typename std::bool_constant<(C::compute(), true)>; };

/// Computes a fact from facts. `f` maps `dims...` to `dims` and captures nothing. The result is a type if all arguments
/// are types; otherwise it is data.
template <class F, fact... A>
constexpr auto on_dims(F f, A const&... a) {
  if constexpr ((is_ints<A> && ...) && sizeof...(A) > 0) {
    using result = detail::computed<F, A...>;
    if constexpr (!evaluates<result>) {
      static_assert(never<F, A...>, "varve: these attributes or operands do not fit these shapes; the refusal named "
                                    "below says which");
      static_assert((F{}(A::to_dims()...), true)); // the compiler reports why, and continues
      return ints<>{};
    } else return detail::ints_from<result{}>(std::make_index_sequence<static_cast<std::size_t>(result::value.n)>{});
  } else {
    return f(to_dims(a)...);
  }
}

} // namespace varve
