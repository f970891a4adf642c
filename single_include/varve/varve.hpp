// SPDX-License-Identifier: BSL-1.0
// varve in one file. Written by single_include/amalgamate.cmake from include/varve: do not edit.
#pragma once

// ---- varve/varve.hpp
/// @file
/// Everything but the optional adapters of `interop/`.

// ---- varve/autograd/allow_mutation.hpp
#include <memory>
#include <vector>

// ---- varve/interpreter/recorded_call.hpp
#include <cstring>
#include <string>

// ---- varve/config.hpp
/// @file
/// Version and build switches: the only header of varve that defines macros.

/// Version of the library, read by CMake and by users: major.minor.patch.
#define VARVE_VERSION_MAJOR 0
#define VARVE_VERSION_MINOR 1
#define VARVE_VERSION_PATCH 0

/// 1 when the SIMD kernels of xsimd are used, 0 for the scalar path. The CMake target decides it; without a decision the header is looked for.
#ifndef VARVE_USE_XSIMD
#if defined(__has_include)
#if __has_include(<xsimd/xsimd.hpp>)
#define VARVE_USE_XSIMD 1
#endif
#endif
#endif
#ifndef VARVE_USE_XSIMD
#define VARVE_USE_XSIMD 0
#endif

/// 1 when blocks of tensors are recycled through a per-thread list; 0 under the address sanitizer, which could not see stale reads otherwise.
#ifndef VARVE_RECYCLE_BLOCKS
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VARVE_RECYCLE_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VARVE_RECYCLE_BLOCKS 0
#endif
#endif
#endif
#ifndef VARVE_RECYCLE_BLOCKS
#define VARVE_RECYCLE_BLOCKS 1
#endif

/// Forces inlining where a kernel's speed depends on it. Without the optimizer nothing does, and fused programs would take gigabytes to compile.
#if defined(__OPTIMIZE__)
#define VARVE_INLINE inline __attribute__((always_inline))
#else
#define VARVE_INLINE inline
#endif
/// Keeps error paths and drivers out of the callers' code.
#define VARVE_COLD __attribute__((noinline, cold))
/// Keeps a driver out of its callers' code.
#define VARVE_NOINLINE __attribute__((noinline))

// ---- varve/core/dims.hpp
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// ---- varve/core/error.hpp
#include <exception>

namespace varve {

struct dims;

/// Base of every exception varve throws. The text is owned by the exception; values, version counters and stacks are as they were before the refused call.
class error : public std::exception {
public:
  explicit error(char const* text) noexcept;
  error(error const& other) noexcept;
  error& operator=(error const& other) noexcept;
  ~error() override;
  char const* what() const noexcept override { return text_ ? text_ : "varve: error"; }

private:
  char* text_;
};

/// Shapes do not fit together; the text holds both.
struct shape_error : error {
  using error::error;
};
/// An element type is not supported or does not fit; the text names the operator and the types.
struct dtype_error : error {
  using error::error;
};
/// An axis or index lies outside its range; the text holds the range.
struct index_error : error {
  using error::error;
};
/// More dimensions than `max_rank`.
struct rank_error : error {
  using error::error;
};
/// An operator lacks the rule that an interpreter asks for; the text names both.
struct missing_rule : error {
  using error::error;
};
/// The dispatcher cannot choose: ambiguous kernels, a mode or subclass that no candidate accepts, an infra slot taken twice, a faulty registration.
struct dispatch_error : error {
  using error::error;
};
/// A transform was used wrongly: unequal mapped sizes, a result that is no scalar, an escaped value.
struct transform_error : error {
  using error::error;
};
/// Reverse mode was asked for what it cannot give: a value overtaken by an in-place operator, a graph already freed, a leaf written to.
struct autograd_error : error {
  using error::error;
};
/// An argument has a value the operator does not accept.
struct value_error : error {
  using error::error;
};

/// Functions that are *not* usable in constant expressions, named so that the compiler's message is the remedy; at run time they throw.
namespace refuse {
[[noreturn]] void shapes_do_not_broadcast(dims const& a, dims const& b);
[[noreturn]] void shapes_do_not_match(char const* op, dims const& a, dims const& b);
[[noreturn]] void rank_exceeds_eight_dimensions(int rank);
[[noreturn]] void axis_out_of_range(std::int64_t axis, int rank);
[[noreturn]] void index_out_of_range(char const* op, std::int64_t index, std::int64_t size);
[[noreturn]] void argument_is_invalid(char const* op, char const* what);
[[noreturn]] void grad_of_a_function_that_does_not_return_a_scalar(dims const& sizes);
[[noreturn]] void mapped_sizes_differ(dims const& a, dims const& b);
[[noreturn]] void trees_differ_in_size(std::size_t a, std::size_t b);
[[noreturn]] void result_is_mapped_but_out_dims_says_none();
[[noreturn]] void dtype_is_not_supported(char const* op, char const* dtype);
} // namespace refuse

} // namespace varve

// ---- varve/core/dims.hpp
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

/// Product of the sizes: the number of elements (1 for rank 0). Products of symbolic sizes wrap around; equal products have equal numbers.
constexpr index_t numel(dims const& s) {
  std::uint64_t p = 1;
  for (int k = 0; k < s.n; ++k) p *= static_cast<std::uint64_t>(s.v[k]);
  return static_cast<index_t>(p);
}

/// A size known by name only while tracing: the name, up to 7 characters, lies in the number itself, above every real size.
constexpr index_t symbol(char const* name) {
  std::uint64_t r = 1;
  for (int k = 0; k < 7 && *name; ++k, ++name) r = (r << 8) | static_cast<unsigned char>(*name);
  while (r < (std::uint64_t{1} << 56)) r <<= 8;
  return static_cast<index_t>((std::uint64_t{1} << 62) | (r & ((std::uint64_t{1} << 56) - 1)));
}
constexpr bool is_symbol(index_t size) { return size >= (index_t{1} << 62); }

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

/// Wraps a negative axis of a value of rank `rank`; out of range is `index_error`. Rank 0 admits axes -1 and 0, as PyTorch does.
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
/// Common shape of two shapes aligned at the right; sizes must agree or be 1 (`shape_error` otherwise). PyTorch: broadcasting semantics.
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

/// A *fact* is an integer list under one spelling in both worlds: a type (`ints<...>`) for static values, data (`dims`) for run-time ones.
template <class T>
concept fact = is_ints<T> || std::is_same_v<T, dims>;

template <index_t... I>
constexpr dims to_dims(ints<I...>) {
  return ints<I...>::to_dims();
}
constexpr dims const& to_dims(dims const& d) { return d; }

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

/// Computes a fact from facts: `f` maps `dims...` to `dims` and captures nothing. All arguments types: the result is a type; otherwise it is data.
template <class F, fact... A>
constexpr auto on_dims(F f, A const&... a) {
  if constexpr ((is_ints<A> && ...) && sizeof...(A) > 0) {
    using result = detail::computed<F, A...>;
    if constexpr (!evaluates<result>) {
      static_assert((result::compute(), true), "varve: these attributes do not fit these shapes"); // the compiler tells why, and goes on
      return ints<>{};
    } else return detail::ints_from<result{}>(std::make_index_sequence<static_cast<std::size_t>(result::value.n)>{});
  } else {
    return f(to_dims(a)...);
  }
}

} // namespace varve

// ---- varve/core/attributes.hpp
namespace varve {

/// The attributes of one call as data, whatever the operator: axes, sizes, flags, dtypes, each an integer list.
/// What a graph node, a boxed operator and a printer hold; the typed form is the pack of facts inside `bound`.
struct attributes {
  static constexpr int capacity = 3;
  dims fact[capacity]{};
  int count = 0;

  constexpr attributes() = default;
  template <class... F>
    requires(sizeof...(F) > 0 && (std::is_convertible_v<F const&, dims> && ...))
  constexpr explicit attributes(F const&... f) : fact{dims(f)...}, count(sizeof...(F)) {}

  constexpr dims const& operator[](int i) const { return fact[i]; }
  friend constexpr bool operator==(attributes const& a, attributes const& b) {
    if (a.count != b.count) return false;
    for (int k = 0; k < a.count; ++k)
      if (!(a.fact[k] == b.fact[k])) return false;
    return true;
  }
};

/// The attributes of operators that have none.
inline constexpr attributes no_attributes{};

} // namespace varve

// ---- varve/core/dtype.hpp
namespace varve {

/// Element types, ordered by promotion within their category; names and order of PyTorch. The 16-bit and complex types have a place but no kernels yet.
enum class dtype : std::uint8_t { bool_, uint8, int32, int64, float16, bfloat16, float32, float64, complex64, complex128 };

/// PyTorch's name of a dtype.
constexpr char const* name(dtype t) {
  constexpr char const* names[] = {"bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return names[static_cast<int>(t)];
}
/// Bytes of one element.
constexpr int itemsize(dtype t) {
  constexpr int sizes[] = {1, 1, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(t)];
}
/// 0 bool, 1 integer, 2 floating, 3 complex: a value of lower rank or a plain number only raises the dtype when its category is higher.
constexpr int category(dtype t) { return t == dtype::bool_ ? 0 : t <= dtype::int64 ? 1 : t <= dtype::float64 ? 2 : 3; }
constexpr bool is_floating(dtype t) { return category(t) == 2; }

/// Dtype of a factory that names none (`torch.get_default_dtype`).
inline constexpr dtype default_dtype = dtype::float32;

/// Smallest dtype both convert to without losing their category (`torch.promote_types`).
constexpr dtype promote_types(dtype a, dtype b) {
  if (a == b) return a;
  if ((a == dtype::float16 && b == dtype::bfloat16) || (a == dtype::bfloat16 && b == dtype::float16)) return dtype::float32;
  if ((a == dtype::complex64 && b == dtype::float64) || (a == dtype::float64 && b == dtype::complex64)) return dtype::complex128;
  return a > b ? a : b;
}

/// dtype of a C++ element type. Integers of other widths than 8, 32 and 64 bits are refused.
template <class T>
constexpr dtype dtype_of_type() {
  if constexpr (std::is_same_v<T, bool>) return dtype::bool_;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return dtype::uint8;
  else if constexpr (std::is_same_v<T, float>) return dtype::float32;
  else if constexpr (std::is_same_v<T, double>) return dtype::float64;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return dtype::int32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return dtype::int64;
  else {
    static_assert(!sizeof(T*), "varve: this element type has no dtype; use bool, uint8_t, int32_t, int64_t, float or double");
    return dtype::float32;
  }
}

namespace detail {
template <dtype D>
struct dtype_element;
template <> struct dtype_element<dtype::bool_> { using type = bool; };
template <> struct dtype_element<dtype::uint8> { using type = std::uint8_t; };
template <> struct dtype_element<dtype::int32> { using type = std::int32_t; };
template <> struct dtype_element<dtype::int64> { using type = std::int64_t; };
template <> struct dtype_element<dtype::float32> { using type = float; };
template <> struct dtype_element<dtype::float64> { using type = double; };
} // namespace detail

/// C++ element type of a dtype.
template <dtype D>
using type_of = typename detail::dtype_element<D>::type;

/// Calls `f.template operator()<T>()` with the element type of `t`; dtypes without kernels are `dtype_error` naming `op`.
template <class F>
constexpr decltype(auto) on_dtype(dtype t, char const* op, F&& f) {
  switch (t) {
  case dtype::bool_: return f.template operator()<bool>();
  case dtype::uint8: return f.template operator()<std::uint8_t>();
  case dtype::int32: return f.template operator()<std::int32_t>();
  case dtype::int64: return f.template operator()<std::int64_t>();
  case dtype::float32: return f.template operator()<float>();
  case dtype::float64: return f.template operator()<double>();
  default: refuse::dtype_is_not_supported(op, name(t));
  }
}

/// What the compiler or a trace knows of a value without its data.
struct meta {
  dtype type = dtype::float32;
  dims sizes{};
  /// A plain C++ number: it raises a dtype only by category (PyTorch's wrapped numbers).
  bool number = false;
  friend constexpr bool operator==(meta const& a, meta const& b) { return a.type == b.type && a.sizes == b.sizes; }
};

namespace detail {
constexpr int promotion_class(meta const& m) { return m.number ? 0 : m.sizes.n == 0 ? 1 : 2; }
} // namespace detail

/// Result dtype of operands (`torch.result_type`): dimensioned values decide before rank-0 values, these before plain numbers, unless a later class has a higher category.
template <class... M>
constexpr dtype result_type(M const&... m) {
  dtype best[3]{};
  bool any[3]{};
  auto add = [&](meta const& x) {
    int const c = detail::promotion_class(x);
    dtype t = x.type;
    if (x.number && t == dtype::float64) t = default_dtype; // a number raises integers to the default dtype only
    if (x.number && category(t) == 1) t = dtype::int64; // and bool to int64
    best[c] = any[c] ? promote_types(best[c], t) : t;
    any[c] = true;
  };
  (add(m), ...);
  dtype r{};
  bool have = false;
  for (int c = 2; c >= 0; --c) {
    if (!any[c]) continue;
    if (!have) r = best[c];
    else if (category(best[c]) > category(r)) r = best[c];
    have = true;
  }
  if (!any[2] && !any[1]) { // numbers only: C++'s own rule, so that static scalars keep their precision
    have = false;
    ((r = have ? promote_types(r, m.type) : m.type, have = true), ...);
  }
  return r;
}

} // namespace varve

// ---- varve/core/type.hpp
#include <concepts>
namespace varve {

/// Absence as a type: no tangent, no cotangent, not mapped (`in_dims<none, 0>`).
struct none_t {
  friend constexpr bool operator==(none_t, none_t) { return true; }
};
inline constexpr none_t none{};

template <class T>
inline constexpr bool is_none = std::is_same_v<std::remove_cvref_t<T>, none_t>;

/// Names an operand by position in rules: `jvp(arg<1>, ...)` is the rule of the second.
template <std::size_t I>
struct arg_t {};
template <std::size_t I>
inline constexpr arg_t<I> arg{};

/// The partial derivatives 1 and -1, so that linear operators multiply nothing.
struct one_t {};
struct minus_one_t {};
inline constexpr one_t one{};
inline constexpr minus_one_t minus_one{};

/// The K-th of several arguments.
template <std::size_t K, class X, class... R>
constexpr auto const& nth(X const& x, R const&... r) {
  if constexpr (K == 0) return x;
  else return nth<K - 1>(r...);
}

/// The name of a type as the compiler spells it: for run-time messages.
template <class T>
constexpr auto type_name() {
  struct text {
    char v[128]{};
    constexpr char const* c_str() const { return v; }
  } r;
  char const* p = __PRETTY_FUNCTION__;
  while (*p && !(p[0] == 'T' && p[1] == ' ' && p[2] == '=')) ++p;
  if (*p) p += 4;
  for (int k = 0; k < 127 && *p && *p != ']' && *p != ';'; ++k) r.v[k] = *p++;
  return r;
}
template <class T>
inline constexpr auto name_of_type = type_name<T>();

namespace detail {
template <class T, class...>
struct depends {
  using type = T;
};
} // namespace detail
/// The type `T`, known only when `On` is: what is written in it inside of a template is instantiated when the template is used, and not before.
template <class T, class... On>
using dependent = typename detail::depends<T, On...>::type;

/// False for every type: for `static_assert` in branches that may not be instantiated.
template <class...>
inline constexpr bool never = false;

/// Runs one of two generic lambdas that take the same values; both must give one type when the flag is data, only the chosen one is instantiated when it is a type.
template <class Flag, class F, class G, class... V>
constexpr auto choose(Flag flag, F const& f, G const& g, V const&... v) {
  if constexpr (std::is_same_v<Flag, bool>) {
    if (flag) return f(v...);
    return g(v...);
  } else if constexpr (Flag::value) {
    return f(v...);
  } else {
    return g(v...);
  }
}

} // namespace varve

// ---- varve/value/traits.hpp
namespace varve {

/// What the library knows of a value type. Specialized for scalars, `array`, `proxy`, `tensor` and `seen`:
/// `base` (the type under all interpreters), `level` (0 for values seen through none), `shape(v)` and `type(v)` as facts.
template <class V>
struct traits {};

template <class V>
  requires std::is_arithmetic_v<V>
struct traits<V> {
  using base = V;
  static constexpr int level = 0;
  static constexpr ints<> shape(V const&) { return {}; }
  static constexpr auto type(V const&) { return ints<static_cast<index_t>(dtype_of_type<V>())>{}; }
};

/// What operators take and return.
template <class V>
concept value = requires { traits<std::remove_cvref_t<V>>::level; };

/// A plain C++ number.
template <class V>
concept number = std::is_arithmetic_v<std::remove_cvref_t<V>>;

/// A value that is varve's own, so that expressions with it mean varve's operators.
template <class V>
concept varve_value = value<V> && !number<V>;

template <class V>
using base_of = typename traits<std::remove_cvref_t<V>>::base;
template <class V>
inline constexpr int level_of = traits<std::remove_cvref_t<V>>::level;

/// The logical shape of a value, as a fact: a type for static values, data for `tensor` and `proxy`.
template <value V>
constexpr auto shape_of(V const& v) {
  return traits<V>::shape(v);
}
/// The dtype of a value as a fact of one entry.
template <value V>
constexpr auto type_fact(V const& v) {
  return traits<V>::type(v);
}
/// The dtype of a value.
template <value V>
constexpr dtype dtype_of(V const& v) {
  return static_cast<dtype>(to_dims(traits<V>::type(v))[0]);
}
/// Number of dimensions.
template <value V>
constexpr int rank_of(V const& v) {
  return to_dims(traits<V>::shape(v)).n;
}
/// dtype and shape as data.
template <value V>
constexpr meta meta_of(V const& v) {
  return {dtype_of(v), to_dims(shape_of(v)), number<V>};
}

} // namespace varve

// ---- varve/value/array.hpp
namespace varve {

/// A row-major array of fixed shape: an aggregate usable in constant expressions. `array<float, 2, 3>{1, 2, 3, 4, 5, 6}`.
/// `array<double>` has rank 0 and converts to and from `double`. Elements are not initialized unless braces are given.
template <class T, index_t... D>
struct array {
  using value_type = T;
  static constexpr index_t count = (D * ... * 1);
  T data[count > 0 ? count : 1];

  static constexpr index_t size() { return count; }
  /// Element by flat row-major position.
  constexpr T& operator[](index_t i) { return data[i]; }
  constexpr T const& operator[](index_t i) const { return data[i]; }
  /// Element by one index per dimension.
  template <class... I>
    requires(sizeof...(I) == sizeof...(D))
  constexpr T const& operator()(I... i) const {
    return data[flat(i...)];
  }
  template <class... I>
    requires(sizeof...(I) == sizeof...(D))
  constexpr T& operator()(I... i) {
    return data[flat(i...)];
  }
  constexpr T* begin() { return data; }
  constexpr T* end() { return data + count; }
  constexpr T const* begin() const { return data; }
  constexpr T const* end() const { return data + count; }
  constexpr operator T() const
    requires(sizeof...(D) == 0)
  {
    return data[0];
  }

private:
  template <class... I>
  static constexpr index_t flat(I... i) {
    index_t r = 0;
    ((r = r * D + static_cast<index_t>(i)), ...);
    return r;
  }
};

template <class T, index_t... D>
struct traits<array<T, D...>> {
  using base = array<T, D...>;
  static constexpr int level = 0;
  static constexpr ints<D...> shape(array<T, D...> const&) { return {}; }
  static constexpr auto type(array<T, D...> const&) { return ints<static_cast<index_t>(dtype_of_type<T>())>{}; }
};

template <class V>
inline constexpr bool is_array = false;
template <class T, index_t... D>
inline constexpr bool is_array<array<T, D...>> = true;

/// A function that makes a value may stand for it: `arange<double, 6>`.
template <class V>
  requires(!std::is_void_v<V>)
struct traits<V()> {
  using base = V;
  static constexpr int level = 0;
  static constexpr auto shape(V (&)()) { return decltype(traits<V>::shape(std::declval<V const&>())){}; }
  static constexpr auto type(V (&)()) { return decltype(traits<V>::type(std::declval<V const&>())){}; }
};

namespace detail {
template <class T, class S>
struct static_value_of;
template <class T, index_t... D>
struct static_value_of<T, ints<D...>> {
  using type = array<T, D...>;
};
template <class T>
struct static_value_of<T, ints<>> {
  using type = T;
};
} // namespace detail

/// The static value of an element type and a shape: an `array`, or the plain number when the rank is 0.
template <class T, class Shape>
using static_value = typename detail::static_value_of<T, Shape>::type;

/// First element of a static value.
template <class T, index_t... D>
constexpr T* data_of(array<T, D...>& a) {
  return a.data;
}
template <class T, index_t... D>
constexpr T const* data_of(array<T, D...> const& a) {
  return a.data;
}
template <number T>
constexpr T* data_of(T& a) {
  return &a;
}
template <number T>
constexpr T const* data_of(T const& a) {
  return &a;
}

namespace detail {
template <class V>
struct element {
  using type = V;
};
template <class T, index_t... D>
struct element<array<T, D...>> {
  using type = T;
};
} // namespace detail
/// Element type of a static value.
template <class V>
using element_of = typename detail::element<V>::type;

} // namespace varve

// ---- varve/value/seen.hpp
namespace varve {

/// A static value `V` seen through interpreter `I`: a dual number, a batched, tracked or logged value. Any `V` may be inside, so stacks nest.
/// `I` carries the level, the tag of the transform and its state (batch size, mode, tape); `Extra` is the interpreter's payload (a tangent, a cotangent slot).
template <class I, class V, class Extra = none_t>
struct seen {
  using interpreter = I;
  V value;
  [[no_unique_address]] I in;
  [[no_unique_address]] Extra extra;

  /// Only a plain truth value can steer C++ control flow.
  constexpr explicit operator bool() const {
    static_assert(never<V>, "varve: a batched value has no single truth value; use `where`, `cond` or `while_loop` instead of `if`");
    return false;
  }
};

template <class I, class V, class E>
struct traits<seen<I, V, E>> {
  using base = base_of<V>;
  static constexpr int level = I::level;
  static constexpr auto shape(seen<I, V, E> const& s) { return I::logical_shape(shape_of(s.value)); }
  static constexpr auto type(seen<I, V, E> const& s) { return type_fact(s.value); }
};

template <class V>
inline constexpr bool is_seen = false;
template <class I, class V, class E>
inline constexpr bool is_seen<seen<I, V, E>> = true;

/// Is `V` seen through the interpreter of level `N`?
template <class V, int N>
inline constexpr bool at_level = is_seen<V> && level_of<V> == N;

} // namespace varve

// ---- varve/dispatch/operator.hpp
namespace varve {

/// What a graph needs to know of an operator's nature to transform and fuse it.
enum class op_kind : unsigned char { placeholder, constant, pointwise, convert, reduction, contraction, view, join, indexing, factory, random, mutation, hop };

/// The values that an operator's `vjp` reads, for each operand it is asked of: a bit per operand, and `result`. What is not kept cannot be overtaken by an in-place operator,
/// and costs no memory (derivatives.yaml). Rules say `static constexpr saved_values saved{...}`; without a word all is kept.
struct saved_values {
  static constexpr int most = 8;
  static constexpr std::uint16_t result = 1 << 15;
  static constexpr std::uint16_t operand(int i) { return static_cast<std::uint16_t>(1 << i); }
  std::uint16_t of[most] = {0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF};
  static constexpr saved_values nothing() { return {{0, 0, 0, 0, 0, 0, 0, 0}}; }
};

/// How the dtypes of operands give the dtype of a pointwise operator's kernel and result.
enum class promotion : unsigned char {
  /// result_type of the operands (add, maximum)
  arithmetic,
  /// as above, integers and bool become the default floating dtype (sin, div)
  floating,
  /// computed in result_type, the result is bool (lt)
  comparison
};

/// Every rule of an operator, in one specialization per operator tag: `shape`, `eval` (or what its family needs for it), `jvp`, `vjp`, `batch`.
/// A user's operator is the same specialization in the user's file.
template <class Tag>
struct rules;

/// An operator with its attributes: what interpreters process and call. A, B, C are facts (types for static values, data otherwise).
/// Calling it on values dispatches; inside an interpreter's `process`, calling it on opened values *is* lowering.
template <class Tag, class A = none_t, class B = none_t, class C = none_t>
struct bound {
  using tag = Tag;
  static constexpr int facts = !is_none<A> + !is_none<B> + !is_none<C>;
  static constexpr bool typed = !std::is_same_v<A, dims> && !std::is_same_v<B, dims> && !std::is_same_v<C, dims>;
  [[no_unique_address]] A a{};
  [[no_unique_address]] B b{};
  [[no_unique_address]] C c{};

  /// PyTorch's name of the operator.
  static constexpr char const* name() { return Tag::op_name; }
  template <class... X>
  constexpr auto operator()(X const&... x) const;
  /// The attributes as data.
  constexpr attributes boxed() const {
    if constexpr (facts == 0) return {};
    else if constexpr (facts == 1) return attributes(to_dims(a));
    else if constexpr (facts == 2) return attributes(to_dims(a), to_dims(b));
    else return attributes(to_dims(a), to_dims(b), to_dims(c));
  }
};

/// One operand of a batch rule. When `batched` holds (a type for static values, a flag otherwise) dimension 0 of `value` is the mapped one.
template <class V, class Flag>
struct operand {
  V value;
  [[no_unique_address]] Flag batched;
};

/// Binds attributes to an operator: `bind<sum_t>(axes, keepdim)`.
template <class Tag, class... F>
constexpr auto bind(F const&... f) {
  return bound<Tag, F...>{f...};
}

/// The K-th attribute of a bound operator.
template <int K, class Op>
constexpr auto const& fact_of(Op const& op) {
  if constexpr (K == 0) return op.a;
  else if constexpr (K == 1) return op.b;
  else return op.c;
}

namespace detail {
/// A value in the form rules see: rank-0 arrays are numbers, views are loaded, `arange<double, 6>` (a function that makes a value) is called.
template <class X>
constexpr decltype(auto) plain(X const& x) {
  if constexpr (std::is_function_v<X>) return x();
  else if constexpr (requires { typename X::array_type; }) return x.load();
  else if constexpr (requires { typename X::tensor_type; }) return x.view();
  else if constexpr (is_array<X> && std::is_same_v<X, array<element_of<X>>>) return x.data[0];
  else return (x);
}

struct rule_names {
  int shape, eval, jvp, vjp, batch, partial, kernel;
};
template <class R>
struct probe : R, rule_names {}; // a name found in both bases is ambiguous: then R has it
} // namespace detail

/// Does the operator have the rule of that name? Asked by name, so that an error inside a rule is not mistaken for its absence.
template <class Tag>
concept has_jvp = !requires { &detail::probe<rules<Tag>>::jvp; };
template <class Tag>
concept has_vjp = !requires { &detail::probe<rules<Tag>>::vjp; };
template <class Tag>
concept has_batch = !requires { &detail::probe<rules<Tag>>::batch; };
template <class Tag>
concept has_eval = !requires { &detail::probe<rules<Tag>>::eval; };

/// An operator no derivative passes through (comparisons, `argmax`): its result is a constant to `grad` and `jvp`.
template <class Tag>
concept constant_to_derivatives = requires { requires !rules<Tag>::differentiable; };

namespace detail {
template <class... X>
constexpr dtype promoted_number() {
  auto meta_of_type = []<class V>(std::type_identity<V>) {
    if constexpr (number<V>) return meta{dtype_of_type<V>(), {}, true};
    else return meta{static_cast<dtype>(decltype(traits<V>::type(std::declval<V const&>()))::to_dims()[0]),
                     decltype(traits<V>::shape(std::declval<V const&>()))::to_dims(), false};
  };
  return result_type(meta_of_type(std::type_identity<X>{})...);
}
template <class V>
concept static_varve_value = varve_value<V> && is_ints<decltype(traits<V>::type(std::declval<V const&>()))>;
/// What an operand is on entry: rank-0 arrays are numbers, and a plain number beside a varve value takes the dtype that value decides (PyTorch's wrapped numbers).
template <class... All, class X>
constexpr decltype(auto) front(X const& x) {
  if constexpr (number<X> && (static_varve_value<All> || ...) && ((number<All> || static_varve_value<All>) && ...))
    return static_cast<type_of<promoted_number<All...>()>>(x);
  else return (x);
}
} // namespace detail

/// Base of operator tags whose operands promote to one dtype and which take no attributes: the objects `add`, `sin`, `where`.
template <class Tag>
struct promoting_operator {
  template <value... X>
  constexpr auto operator()(X const&... x) const {
    return bound<Tag>{}(detail::front<X...>(x)...);
  }
};

/// Higher-order operators carry functions; interpreters treat them by rules of their own.
template <class Op>
inline constexpr bool is_hop = false;

} // namespace varve

// ---- varve/dispatch/resolve.hpp
#include <initializer_list>

// ---- varve/core/dispatch_key.hpp
#include <bit>
namespace varve {

/// What may happen to a call on its way to a kernel, lowest priority first: the order in which keys are tried, highest first (DK-1). Names are PyTorch's where it has them.
/// `dense` and autograd exist once per backend: their keys are the product of one functionality and one backend (DK-3).
enum class dispatch_key : std::uint8_t {
  undefined,
  cpu,         ///< kernels on memory of this process
  other,       ///< a backend without an autograd key of its own
  private_use, ///< a backend that a program registers
  meta,        ///< shapes and dtypes without data
  subclass,       ///< wrapper types with their own `dispatch`
  dispatch_mode,  ///< user modes, then the infra modes
  transform_back, ///< on while a transform hands a call down
  functionalize,
  inplace_or_view, ///< version counters and view metadata (DK-11)
  autograd_cpu,
  autograd_other,
  autograd_private_use,
  autograd_meta,
  autocast,
  transform,     ///< the dynamic layer stack: `grad`, `jvp`, `vmap`, ... (FS-2)
  pre_dispatch,  ///< the mode stack above transforms and autograd (MD-18)
  function_mode, ///< modes that see public calls, composites included (MD-22)
  // Functionalities without a backend: in sets only.
  dense,
  autograd_functionality,
  // Aliases: expand to several keys when a kernel is registered (DK-4).
  autograd,
  composite_implicit,
  composite_explicit,
  composite_explicit_non_functional
};

/// Number of keys that have a place in a dispatch table.
inline constexpr int dispatch_key_count = static_cast<int>(dispatch_key::function_mode) + 1;

constexpr char const* name(dispatch_key k) {
  constexpr char const* names[] = {"undefined", "cpu", "other", "private_use", "meta", "subclass", "dispatch_mode", "transform_back", "functionalize", "inplace_or_view",
                                   "autograd_cpu", "autograd_other", "autograd_private_use", "autograd_meta", "autocast", "transform", "pre_dispatch", "function_mode", "dense",
                                   "autograd_functionality", "autograd", "composite_implicit", "composite_explicit", "composite_explicit_non_functional"};
  return names[static_cast<int>(k)];
}
/// Does the key only stand for others?
constexpr bool is_alias(dispatch_key k) { return k >= dispatch_key::autograd; }
/// Is it the product of `dense` and a backend?
constexpr bool is_backend(dispatch_key k) { return k >= dispatch_key::cpu && k <= dispatch_key::meta; }
constexpr bool is_autograd(dispatch_key k) { return k >= dispatch_key::autograd_cpu && k <= dispatch_key::autograd_meta; }

/// A set of functionalities and a set of backends, as bits of one word: usable in constant expressions.
struct dispatch_key_set {
  /// Bits 0-3: cpu, other, private_use, meta. From bit 4: dense, subclass, ..., function_mode. Bit 15 is no key: a tensor that has a history, or shares one, stops at autograd.
  std::uint16_t bits = 0;

  constexpr dispatch_key_set() = default;
  /// The set of one key: for a product, its functionality and its backend; for an alias, what it expands to.
  constexpr dispatch_key_set(dispatch_key k) : bits(bits_of(k)) {} // NOLINT: a key is a set
  template <class... K>
    requires(sizeof...(K) > 1)
  constexpr dispatch_key_set(K... k) : bits(static_cast<std::uint16_t>((bits_of(k) | ...))) {}
  static constexpr dispatch_key_set of_bits(unsigned b) {
    dispatch_key_set s;
    s.bits = static_cast<std::uint16_t>(b);
    return s;
  }
  static constexpr dispatch_key_set full() { return of_bits(all_bits); }
  static constexpr std::uint16_t history_bit = 0x8000;
  constexpr bool may_have_history() const { return bits & history_bit; }

  constexpr bool empty() const { return bits == 0; }
  /// Are the functionality and the backend of the key there?
  constexpr bool has(dispatch_key k) const { return k != dispatch_key::undefined && (bits & bits_of(k)) == bits_of(k); }
  constexpr bool has_any(dispatch_key_set s) const { return (*this & s).bits & functionality_bits; }

  friend constexpr bool operator==(dispatch_key_set, dispatch_key_set) = default;
  friend constexpr dispatch_key_set operator|(dispatch_key_set a, dispatch_key_set b) { return of_bits(a.bits | b.bits); }
  friend constexpr dispatch_key_set operator&(dispatch_key_set a, dispatch_key_set b) { return of_bits(a.bits & b.bits); }
  /// Removes functionalities; backends stay, so that excluding `autograd_cpu` does not exclude the CPU (DK-3).
  friend constexpr dispatch_key_set operator-(dispatch_key_set a, dispatch_key_set b) { return of_bits(a.bits & (backend_bits | ~b.bits)); }
  constexpr dispatch_key_set& operator|=(dispatch_key_set b) { return *this = *this | b; }
  constexpr dispatch_key_set& operator-=(dispatch_key_set b) { return *this = *this - b; }
  /// Removes the backend of a key, whatever functionality is there.
  constexpr dispatch_key_set without_backend(dispatch_key k) const { return of_bits(bits & ~(bits_of(k) & backend_bits)); }
  /// Keys of strictly lower priority, all backends: where a redispatch goes on (DK-8).
  constexpr dispatch_key_set below(dispatch_key k) const {
    unsigned const f = bits_of(k) & functionality_bits;
    return of_bits(bits & (history_bit | backend_bits | (f ? std::bit_floor(f) - 1 : 0)));
  }
  /// Keys of strictly higher priority.
  constexpr dispatch_key_set above(dispatch_key k) const {
    unsigned const f = bits_of(k) & functionality_bits;
    return of_bits(bits & functionality_bits & ~(std::bit_floor(f) * 2 - 1));
  }
  /// The key that is tried first: the highest functionality, with the highest backend where it has one per backend.
  constexpr dispatch_key highest() const {
    unsigned const f = bits & functionality_bits;
    if (!f) return dispatch_key::undefined;
    int const bit = std::bit_width(f) - 1;
    if (bit != dense_bit && bit != autograd_bit)
      return static_cast<dispatch_key>(bit < autograd_bit ? static_cast<int>(dispatch_key::subclass) + bit - dense_bit - 1
                                                          : static_cast<int>(dispatch_key::autocast) + bit - autograd_bit - 1);
    unsigned const b = bits & backend_bits;
    if (!b) return dispatch_key::undefined;
    return static_cast<dispatch_key>((bit == dense_bit ? static_cast<int>(dispatch_key::cpu) : static_cast<int>(dispatch_key::autograd_cpu)) + std::bit_width(b) - 1);
  }

private:
  static constexpr int dense_bit = 4, autograd_bit = 10;
  static constexpr unsigned backend_bits = 0xF, all_bits = 0x7FFF, functionality_bits = all_bits & ~backend_bits;
  static constexpr std::uint16_t bits_of(dispatch_key k) {
    unsigned const v = static_cast<unsigned>(k);
    auto const bit = [](unsigned n) { return static_cast<std::uint16_t>(1u << n); };
    if (k == dispatch_key::undefined) return 0;
    if (is_backend(k)) return static_cast<std::uint16_t>(bit(dense_bit) | bit(v - 1));
    if (k < dispatch_key::autograd_cpu) return bit(dense_bit + 1 + v - static_cast<unsigned>(dispatch_key::subclass));
    if (is_autograd(k)) return static_cast<std::uint16_t>(bit(autograd_bit) | bit(v - static_cast<unsigned>(dispatch_key::autograd_cpu)));
    if (k < dispatch_key::dense) return bit(autograd_bit + 1 + v - static_cast<unsigned>(dispatch_key::autocast));
    if (k == dispatch_key::dense) return bit(dense_bit);
    if (k == dispatch_key::autograd_functionality) return bit(autograd_bit);
    return static_cast<std::uint16_t>(backend_bits | (k == dispatch_key::autograd ? bit(autograd_bit) : bit(dense_bit)));
  }
};

/// Keys of an ordinary tensor in this process's memory: its kernel, view bookkeeping and autograd.
inline constexpr dispatch_key_set default_keys{dispatch_key::cpu, dispatch_key::inplace_or_view, dispatch_key::autograd_cpu};

} // namespace varve

// ---- varve/dispatch/resolve.hpp
namespace varve {

/// Which kernels an operator (or, for fallbacks, every operator) has: registered for single keys, for aliases, or as fallthrough.
struct kernel_inventory {
  std::uint32_t direct = 0; ///< bit k: a kernel for runtime key k
  std::uint32_t fallthrough = 0;
  bool autograd = false, composite_implicit = false, composite_explicit = false, composite_explicit_non_functional = false;

  static constexpr std::uint32_t bit(dispatch_key k) { return 1u << static_cast<int>(k); }
  constexpr bool has(dispatch_key k) const { return direct & bit(k); }
  constexpr bool skips(dispatch_key k) const { return fallthrough & bit(k); }
  constexpr bool has_backend_kernel() const {
    return direct & (bit(dispatch_key::cpu) | bit(dispatch_key::other) | bit(dispatch_key::private_use) | bit(dispatch_key::meta));
  }
  /// Notes a kernel for a key, aliases included.
  constexpr kernel_inventory& add(dispatch_key k) {
    if (k == dispatch_key::autograd) autograd = true;
    else if (k == dispatch_key::composite_implicit) composite_implicit = true;
    else if (k == dispatch_key::composite_explicit) composite_explicit = true;
    else if (k == dispatch_key::composite_explicit_non_functional) composite_explicit_non_functional = true;
    else direct |= bit(k);
    return *this;
  }
  constexpr kernel_inventory& skip(dispatch_key k) { return fallthrough |= bit(k), *this; }
  constexpr bool operator==(kernel_inventory const&) const = default;
};

/// Where the kernel of an operator for one key comes from.
enum class resolution : std::uint8_t {
  missing,
  direct,
  composite_explicit_non_functional,
  composite_explicit,
  composite_implicit,
  autograd,
  fallback,    ///< the kernel that all operators share at the key
  fallthrough, ///< none: the key is passed over
  ambiguous    ///< `autograd_other` with a composite and a backend kernel: neither is right for all (DK-6)
};

/// The one rule by which a kernel is found, for static stacks and for tables of tensors alike (DK-5).
constexpr resolution resolve(kernel_inventory const& op, kernel_inventory const& fallbacks, dispatch_key k) {
  if (op.skips(k)) return resolution::fallthrough;
  if (op.has(k)) return resolution::direct;
  if (is_backend(k)) {
    if (op.composite_explicit_non_functional) return resolution::composite_explicit_non_functional;
    if (op.composite_explicit) return resolution::composite_explicit;
  }
  if (is_backend(k) || is_autograd(k)) {
    // An autograd key takes the composite when the backend beneath has no kernel of its own, whose gradient another would be.
    dispatch_key const beneath = is_backend(k) ? k : static_cast<dispatch_key>(static_cast<int>(dispatch_key::cpu) + static_cast<int>(k) - static_cast<int>(dispatch_key::autograd_cpu));
    if (op.composite_implicit && k == dispatch_key::autograd_other && op.has_backend_kernel()) return resolution::ambiguous;
    if (op.composite_implicit && !op.has(beneath) && !op.composite_explicit && !op.composite_explicit_non_functional) return resolution::composite_implicit;
  }
  if (is_autograd(k) && op.autograd) return resolution::autograd;
  if (fallbacks.has(k)) return resolution::fallback;
  if (fallbacks.skips(k)) return resolution::fallthrough;
  return resolution::missing;
}

/// Keys at which a call of the operator stops: all but its fallthroughs (DK-7).
constexpr dispatch_key_set stops_of(kernel_inventory const& op, kernel_inventory const& fallbacks) {
  dispatch_key_set s;
  for (int k = 1; k < dispatch_key_count; ++k)
    if (resolve(op, fallbacks, static_cast<dispatch_key>(k)) != resolution::fallthrough) s |= static_cast<dispatch_key>(k);
  return s;
}

/// What every operator has without registration: nothing happens at these keys.
inline constexpr kernel_inventory built_in_fallbacks = [] {
  kernel_inventory f;
  for (dispatch_key k : {dispatch_key::functionalize, dispatch_key::inplace_or_view, dispatch_key::autograd_cpu, dispatch_key::autograd_other,
                         dispatch_key::autograd_private_use, dispatch_key::autograd_meta, dispatch_key::autocast})
    f.skip(k);
  for (dispatch_key k : {dispatch_key::subclass, dispatch_key::dispatch_mode, dispatch_key::transform_back, dispatch_key::transform, dispatch_key::pre_dispatch, dispatch_key::function_mode}) f.add(k);
  return f;
}();
/// The kernels of an operator that is defined by its rules.
inline constexpr kernel_inventory built_in_kernels = kernel_inventory{}.add(dispatch_key::cpu).add(dispatch_key::meta);

/// The key a call stops at: (keys of the arguments and of the thread, less those excluded), fallthroughs left out, the highest (DK-2).
constexpr dispatch_key key_of_call(dispatch_key_set arguments, dispatch_key_set included, dispatch_key_set excluded, dispatch_key_set stops) {
  return (((arguments | included) - excluded) & stops).highest();
}

} // namespace varve

// ---- varve/value/strided.hpp
namespace varve {

/// Where the elements of a value lie: sizes, strides in elements, offset of the first. View operators are functions on it, in both worlds.
struct layout {
  dims sizes{};
  dims strides{};
  index_t offset = 0;
  /// False when no strides express the requested shape: the elements must be copied to row-major order first.
  bool expressible = true;
  /// Elements follow one another in row-major order.
  constexpr bool contiguous() const {
    index_t expected = 1;
    for (int k = sizes.n - 1; k >= 0; --k) {
      if (sizes[k] != 1 && strides[k] != expected) return numel(sizes) == 0;
      expected = static_cast<index_t>(static_cast<std::uint64_t>(expected) * static_cast<std::uint64_t>(sizes[k]));
    }
    return true;
  }
};

/// Row-major layout of a shape.
constexpr layout contiguous_layout(dims const& sizes) { return {sizes, contiguous_strides(sizes), 0, true}; }

/// A pointer with a layout: how kernels of non-pointwise operators see their operands, static or dynamic.
template <class T>
struct strided {
  T* data;
  dims sizes;
  dims strides;

  constexpr T& at(dims const& index) const {
    index_t o = 0;
    for (int k = 0; k < sizes.n; ++k) o += index[k] * strides[k];
    return data[o];
  }
};

/// Calls `f(index)` for every index of a shape in row-major order.
template <class F>
constexpr void for_each_index(dims const& sizes, F&& f) {
  for (int k = 0; k < sizes.n; ++k)
    if (sizes[k] == 0) return;
  dims index = sizes;
  for (int k = 0; k < index.n; ++k) index[k] = 0;
  while (true) {
    f(static_cast<dims const&>(index));
    int k = sizes.n - 1;
    for (; k >= 0; --k) {
      if (++index[k] < sizes[k]) break;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

/// Strides that make `in` iterate over the broadcast shape `to`: 0 where it is repeated.
constexpr dims broadcast_strides(dims const& sizes, dims const& strides, dims const& to) {
  dims r = to;
  int const shift = to.n - sizes.n;
  for (int k = 0; k < to.n; ++k) r[k] = k < shift || sizes[k - shift] == 1 ? 0 : strides[k - shift];
  return r;
}

} // namespace varve

// ---- varve/dispatch/static_eval.hpp
namespace varve {

namespace detail {
template <class V>
struct static_meta_of;
template <number T>
struct static_meta_of<T> {
  static constexpr meta value{dtype_of_type<T>(), {}, true};
};
template <class T, index_t... D>
struct static_meta_of<array<T, D...>> {
  static constexpr meta value{dtype_of_type<T>(), ints<D...>::to_dims(), false};
};
template <class Op, class... X>
struct static_shape {
  static constexpr meta compute() {
    meta const in[] = {static_meta_of<X>::value..., meta{}};
    return rules<typename Op::tag>::shape(Op{}.boxed(), in, sizeof...(X));
  }
};
template <class Op, class... X>
struct static_result {
  static constexpr meta value = static_shape<Op, X...>::compute();
  struct sizes {
    constexpr dims operator()() const { return value.sizes; }
  };
  using shape = decltype(ints_from<sizes{}>(std::make_index_sequence<static_cast<std::size_t>(value.sizes.n)>{}));
  using element = type_of<value.type>;
  using type = static_value<element, shape>;
};
} // namespace detail

/// Type of the result of an operator on static values: its `shape` rule evaluated by the compiler.
template <class Op, class... X>
using static_result = detail::static_result<Op, X...>;

namespace detail {
template <class R>
concept has_kernel = !requires { &probe<R>::kernel; };
template <class R>
concept has_layout = requires(attributes at, layout l) { R::layout_of(at, l); };

template <class V>
constexpr auto strided_of(V const& v) {
  using S = static_meta_of<V>;
  return strided<element_of<V> const>{data_of(v), S::value.sizes, contiguous_strides(S::value.sizes)};
}
template <class V>
constexpr auto strided_of(V& v) {
  using S = static_meta_of<V>;
  return strided<element_of<V>>{data_of(v), S::value.sizes, contiguous_strides(S::value.sizes)};
}

/// Element `i` of an operand that is repeated when it has only one.
template <class V>
constexpr auto flat_element(V const& v, index_t i) {
  if constexpr (number<V>) return v;
  else return v.data[V::count == 1 ? 0 : i];
}

template <class Op, class... X>
constexpr auto evaluate_pointwise(X const&... x) {
  using R = rules<typename Op::tag>;
  using result = static_result<Op, X...>;
  constexpr meta metas[] = {static_meta_of<X>::value...};
  using C = type_of<R::compute_type(metas, sizeof...(X))>;
  typename result::type r;
  auto* out = data_of(r);
  auto kernel = [](auto const&... e) { return static_cast<typename result::element>(R::kernel(static_cast<C>(e)...)); };
  constexpr bool flat = ((static_meta_of<X>::value.sizes == result::value.sizes || numel(static_meta_of<X>::value.sizes) == 1) && ...);
  if constexpr (flat) {
    for (index_t i = 0; i < numel(result::value.sizes); ++i) out[i] = kernel(flat_element(x, i)...);
  } else {
    index_t k = 0;
    for_each_index(result::value.sizes, [&](dims const& i) {
      auto element = [&](auto const& s) {
        auto const at = broadcast_strides(s.sizes, s.strides, result::value.sizes);
        index_t o = 0;
        for (int d = 0; d < i.n; ++d) o += i[d] * at[d];
        return s.data[o];
      };
      out[k++] = kernel(element(strided_of(x))...);
    });
  }
  return r;
}
} // namespace detail

/// Computes an operator on static values, in constant expressions or at run time: elementwise operators by their `kernel`, views by copying along their `layout_of`,
/// all others by `compute(attributes, result, operands...)`.
template <class Op, class... X>
constexpr auto evaluate_static(Op const&, X const&... x) {
  using R = rules<typename Op::tag>;
  if constexpr (!evaluates<detail::static_shape<Op, X...>>) {
    static_assert((detail::static_shape<Op, X...>::compute(), true), "varve: these operands do not fit this operator"); // the compiler tells why, and goes on with what it has
    return nth<0>(x...);
  } else if constexpr (R::kind == op_kind::pointwise) {
    return detail::evaluate_pointwise<Op>(x...);
  } else {
    using result = static_result<Op, X...>;
    constexpr attributes at = Op{}.boxed();
    typename result::type r;
    if constexpr (detail::has_layout<R>) {
      auto const& v = nth<0>(x...);
      constexpr layout l = R::layout_of(at, contiguous_layout(detail::static_meta_of<std::remove_cvref_t<decltype(v)>>::value.sizes));
      auto const* in = data_of(v) + l.offset;
      auto* out = data_of(r);
      if constexpr (l.contiguous()) {
        for (index_t i = 0; i < numel(l.sizes); ++i) out[i] = in[i];
      } else {
        strided<element_of<std::remove_cvref_t<decltype(v)>> const> const s{in, l.sizes, l.strides};
        for_each_index(l.sizes, [&, k = index_t{0}](dims const& i) mutable { out[k++] = s.at(i); });
      }
    } else if constexpr (R::kind == op_kind::convert) {
      for (index_t i = 0; i < numel(result::value.sizes); ++i) data_of(r)[i] = static_cast<typename result::element>(data_of(nth<0>(x...))[i]);
    } else {
      R::compute(at, detail::strided_of(r), detail::strided_of(x)...);
    }
    return r;
  }
}

} // namespace varve

// ---- varve/dispatch/dispatch.hpp
namespace varve {

/// Where a call goes when no static interpreter is left: specialized for plain static values here, for `proxy` and `tensor` beside these.
template <class Base>
struct backend;

/// A value whose shape and dtype are data while tracing.
template <class V>
inline constexpr bool is_proxy_base = false;
/// A value whose shape and dtype are data at run time.
template <class V>
inline constexpr bool is_tensor_base = false;

/// Values of the dynamic world: operators on them consult the thread's stack.
template <class V>
concept dynamic_value = value<V> && is_tensor_base<base_of<V>>;
/// Values of a trace.
template <class V>
concept traced_value = value<V> && is_proxy_base<base_of<V>>;

/// Greatest level among values.
template <class... X>
inline constexpr int top_level = [] {
  int r = 0;
  ((r = level_of<X> > r ? level_of<X> : r), ...);
  return r;
}();

namespace detail {
template <int N, class X, class... R>
constexpr auto interpreter_type() {
  if constexpr (at_level<X, N>) return std::type_identity<typename X::interpreter>{};
  else return interpreter_type<N, R...>();
}
} // namespace detail

/// Type of the innermost interpreter among values, which processes their operators.
template <class... X>
using innermost_t = typename decltype(detail::interpreter_type<top_level<X...>, X...>())::type;

namespace detail {
/// Do all values of the top level belong to one transform?
template <class... X>
inline constexpr bool one_transform = ([] {
  if constexpr (at_level<X, top_level<X...>>) return std::is_same_v<typename X::interpreter, innermost_t<X...>>;
  else return true;
}() && ...);
template <class... X>
constexpr void refuse_confusion() {
  static_assert(one_transform<X...>, "varve: values of two different transforms meet at one level (perturbation confusion); pass the outer value as an argument or through "
                                     "closure(f, captured...)");
}
} // namespace detail

namespace detail {
/// Few functions and no closures: every function of this door is instantiated for every operator of every transformed program.
template <int Level, class I, class X, class... Rest>
VARVE_INLINE constexpr void look(I const*& found, X const& x, Rest const&... rest) {
  if constexpr (at_level<X, Level>)
    if (!found || !found->alive()) found = &x.in;
  if constexpr ((at_level<Rest, Level> || ...)) look<Level>(found, rest...);
}
} // namespace detail

/// The innermost interpreter of some values, with the state (tape, mode, batch size) of an operand that has it.
template <class... X>
constexpr auto innermost(X const&... x) {
  static_assert((detail::refuse_confusion<X...>(), true)); // leaves no call behind
  innermost_t<X...> const* found = nullptr;
  detail::look<top_level<X...>>(found, x...);
  return *found;
}

namespace detail {
/// The key of one interpreter of a static stack.
template <class I>
inline constexpr dispatch_key key_of_interpreter = requires { I::watches; } ? dispatch_key::dispatch_mode : dispatch_key::transform;
template <class V>
constexpr dispatch_key_set keys_of_value() {
  if constexpr (is_seen<V>) return keys_of_value<decltype(V::value)>() | key_of_interpreter<typename V::interpreter>;
  else return is_proxy_base<V> ? dispatch_key_set(dispatch_key::meta) : default_keys;
}
template <class... X>
constexpr dispatch_key_set keys_at_top() {
  if constexpr (top_level<X...> > 0) return default_keys | key_of_interpreter<innermost_t<X...>>;
  else return ((is_proxy_base<base_of<X>> ? dispatch_key_set(dispatch_key::meta) : default_keys) | ... | dispatch_key_set());
}
inline constexpr dispatch_key_set built_in_stops = stops_of(built_in_kernels, built_in_fallbacks);
} // namespace detail

/// The dispatch keys of a value as its type tells them: one for each interpreter it is seen through, and those of what is inside.
template <class V>
inline constexpr dispatch_key_set keys_of = detail::keys_of_value<std::remove_cvref_t<V>>();
/// The key at which a call on static values stops, by the resolution that tables of tensors are made with. Their stack is ordered by levels: only the innermost
/// interpreter's key is there, lowering removes it.
template <class... X>
inline constexpr dispatch_key static_key = key_of_call(detail::keys_at_top<X...>(), {}, {}, detail::built_in_stops);

namespace detail {
struct static_base;
struct traced_base;
struct tensor_base;
template <class... X>
constexpr auto base_tag() {
  if constexpr ((is_tensor_base<base_of<X>> || ...)) {
    static_assert(!(is_proxy_base<base_of<X>> || ...), "varve: a tensor and a traced value meet; pass the tensor as an argument of the traced function");
    return std::type_identity<tensor_base>{};
  } else if constexpr ((is_proxy_base<base_of<X>> || ...)) {
    return std::type_identity<traced_base>{};
  } else {
    return std::type_identity<static_base>{};
  }
}
} // namespace detail

namespace detail {
/// A static value that rules cannot compute with beside values of a trace, whose shapes are data: an array, or whatever is seen through a transform. Plain numbers can stay.
template <class X>
constexpr bool yields_to_trace() {
  if constexpr (value<X>) return !dynamic_value<X> && !traced_value<X> && (is_seen<X> || !number<base_of<X>>);
  else return false;
}
template <class... X>
inline constexpr bool meets_trace = (traced_value<X> || ...) && (yields_to_trace<X>() || ...);
template <class X, class V, class E>
constexpr auto reseen(X const& x, V const& v, E const& e) {
  return seen<typename X::interpreter, V, E>{v, x.in, e};
}
/// A static value, plain numbers included, as a constant of the trace that some of `others` belong to.
template <class X, class... O>
constexpr auto as_traced(X const& x, O const&... others) {
  return backend<dependent<traced_base, X>>::lift(x, others...);
}
/// ... unless it is no such value, or can stay what it is.
template <class X, class... O>
constexpr decltype(auto) beside_trace(X const& x, O const&... others) {
  if constexpr (yields_to_trace<X>()) return as_traced(x, others...);
  else return (x);
}
} // namespace detail

/// The one door of every operator call: the innermost static interpreter processes it; without one, the backend of the values does.
template <class Op, class... X>
constexpr auto dispatch(Op const& op, X const&... x) {
  if constexpr (top_level<X...> > 0 && detail::meets_trace<X...>) return dispatch(op, detail::beside_trace(x, x...)...);
  else if constexpr (static_key<X...> == dispatch_key::transform || static_key<X...> == dispatch_key::dispatch_mode) {
    if constexpr (detail::one_transform<X...>) return innermost(x...).process(op, x...);
    else return detail::refuse_confusion<X...>(), nth<0>(x...); // nothing more is instantiated after the message
  } else return backend<typename decltype(detail::base_tag<X...>())::type>::call(op, x...);
}

template <class Tag, class A, class B, class C>
template <class... X>
constexpr auto bound<Tag, A, B, C>::operator()(X const&... x) const {
  return dispatch(*this, detail::plain(x)...);
}

/// Static values are computed at once: in constant expressions, or in registers.
template <>
struct backend<detail::static_base> {
  /// A constant of a shape and dtype.
  template <fact S, fact T, number N>
  static constexpr auto full(S const&, T const&, N v) {
    using E = type_of<static_cast<dtype>(T::to_dims()[0])>;
    static_value<E, S> r{};
    for (index_t k = 0; k < numel(S::to_dims()); ++k) data_of(r)[k] = static_cast<E>(v);
    return r;
  }
  template <class Op, class... X>
  static constexpr auto call(Op const& op, X const&... x) {
    static_assert(Op::typed, "varve: attributes of static values are types: write axis<1> or shape<2, 3> instead of run-time numbers");
    if constexpr (Op::typed) return evaluate_static(op, x...);
  }
};

} // namespace varve

// ---- varve/dispatch/dispatch_table.hpp
#include <atomic>

// ---- varve/core/message.hpp
#include <cstdlib>
/// @file
/// Texts of the exceptions: kept apart from `error.hpp` so that constant-expression code pays for no string.
namespace varve {

namespace detail {
VARVE_COLD inline char* copy_text(char const* text) noexcept {
  if (!text) return nullptr;
  std::size_t const n = std::strlen(text) + 1;
  auto* p = static_cast<char*>(std::malloc(n));
  if (p) std::memcpy(p, text, n);
  return p;
}
} // namespace detail

inline error::error(char const* text) noexcept : text_(detail::copy_text(text)) {}
inline error::error(error const& other) noexcept : std::exception(other), text_(detail::copy_text(other.text_)) {}
inline error& error::operator=(error const& other) noexcept {
  if (this != &other) {
    std::free(text_);
    text_ = detail::copy_text(other.text_);
  }
  return *this;
}
inline error::~error() { std::free(text_); }

/// A shape as PyTorch prints it: `[2, 3]`, `[]` for rank 0.
VARVE_COLD inline std::string to_string(dims const& d) {
  std::string s = "[";
  for (int k = 0; k < d.n; ++k) {
    if (k) s += ", ";
    s += std::to_string(d.v[k]);
  }
  return s += "]";
}

namespace refuse {
VARVE_COLD inline void shapes_do_not_broadcast(dims const& a, dims const& b) {
  throw shape_error(("varve: shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast").c_str());
}
VARVE_COLD inline void shapes_do_not_match(char const* op, dims const& a, dims const& b) {
  throw shape_error(("varve: " + std::string(op) + ": shapes " + to_string(a) + " and " + to_string(b) + " do not fit").c_str());
}
VARVE_COLD inline void rank_exceeds_eight_dimensions(int rank) {
  throw rank_error(("varve: rank " + std::to_string(rank) + " exceeds the " + std::to_string(max_rank) + " dimensions a value may have").c_str());
}
VARVE_COLD inline void axis_out_of_range(std::int64_t axis, int rank) {
  int const r = rank > 0 ? rank : 1;
  throw index_error(("varve: axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank) + ": expected " + std::to_string(-r) +
                     " to " + std::to_string(r - 1))
                        .c_str());
}
VARVE_COLD inline void index_out_of_range(char const* op, std::int64_t index, std::int64_t size) {
  throw index_error(("varve: " + std::string(op) + ": index " + std::to_string(index) + " is out of range for size " + std::to_string(size)).c_str());
}
VARVE_COLD inline void argument_is_invalid(char const* op, char const* what) {
  throw value_error(("varve: " + std::string(op) + ": " + what).c_str());
}
VARVE_COLD inline void grad_of_a_function_that_does_not_return_a_scalar(dims const& sizes) {
  throw transform_error(("varve: grad: the function must return a scalar (rank 0), not shape " + to_string(sizes) + "; reduce its result, for example by sum").c_str());
}
VARVE_COLD inline void trees_differ_in_size(std::size_t a, std::size_t b) {
  throw shape_error(("varve: two trees of values differ: a vector of " + std::to_string(a) + " meets one of " + std::to_string(b)).c_str());
}
VARVE_COLD inline void mapped_sizes_differ(dims const& a, dims const& b) {
  throw transform_error(("varve: vmap: the mapped dimensions of the arguments have different sizes: " + to_string(a) + " and " + to_string(b)).c_str());
}
VARVE_COLD inline void result_is_mapped_but_out_dims_says_none() {
  throw transform_error("varve: vmap: a result is mapped although out_dims says none; give it a dimension");
}
VARVE_COLD inline void dtype_is_not_supported(char const* op, char const* dtype) {
  throw dtype_error(("varve: " + std::string(op) + ": dtype " + dtype + " is not supported").c_str());
}
} // namespace refuse

} // namespace varve

// ---- varve/value/storage.hpp
#include <new>
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#endif

namespace varve {

namespace detail {
/// A process with one thread pays for no locked instruction (glibc tells when a second one was started).
inline bool single_threaded() {
#if defined(__GLIBC__) && __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

/// Count of owners, shared between threads.
struct reference_count {
  std::atomic<std::uint32_t> n{1};
  VARVE_INLINE void add() {
    if (single_threaded()) n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else n.fetch_add(1, std::memory_order_relaxed);
  }
  /// True when the last owner has gone.
  bool drop() {
    if (single_threaded()) {
      auto const left = n.load(std::memory_order_relaxed) - 1;
      n.store(left, std::memory_order_relaxed);
      return left == 0;
    }
    return n.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
};

/// Bytes of a tensor's block; small tensors keep their data inside.
inline constexpr std::size_t block_bytes = 320;

/// Blocks of one size given back by this thread, for its next ones. Trivially destructible, so that reading it needs no guard.
struct block_list {
  static constexpr int most = 4096;
  void* first = nullptr;
  int room = 0; // for how many more; none before the list is adopted, and when the thread is ending
  bool adopted = false; // its end gives the blocks back
};
template <std::size_t Bytes>
inline constinit thread_local block_list free_blocks{};

/// Tensors' blocks hold data for SIMD kernels; smaller ones need no more than what `new` gives.
template <std::size_t Bytes>
void* new_block() {
  if constexpr (Bytes == block_bytes) return ::operator new(Bytes, std::align_val_t{64});
  else return ::operator new(Bytes);
}
template <std::size_t Bytes>
void delete_block(void* b) {
  if constexpr (Bytes == block_bytes) ::operator delete(b, std::align_val_t{64});
  else ::operator delete(b);
}
/// Gives the blocks back when the thread ends.
template <std::size_t Bytes>
struct block_list_owner {
  ~block_list_owner() {
    block_list& l = free_blocks<Bytes>;
    l.room = 0;
    while (l.first) {
      void* next = *static_cast<void**>(l.first);
      delete_block<Bytes>(l.first);
      l.first = next;
    }
  }
};

template <std::size_t Bytes>
VARVE_COLD void adopt_block_list() {
  thread_local block_list_owner<Bytes> owner;
  (void)owner;
  free_blocks<Bytes>.adopted = true;
  free_blocks<Bytes>.room = block_list::most;
}

template <std::size_t Bytes = block_bytes>
inline void* take_block() {
  block_list& l = free_blocks<Bytes>;
  if (l.first) {
    void* b = l.first;
    l.first = *static_cast<void**>(b);
    ++l.room;
    return b;
  }
  return new_block<Bytes>();
}

template <std::size_t Bytes = block_bytes>
inline void give_block(void* b) {
  block_list& l = free_blocks<Bytes>;
  if (l.room <= 0) [[unlikely]] {
    if (!VARVE_RECYCLE_BLOCKS || l.adopted) return delete_block<Bytes>(b);
    adopt_block_list<Bytes>();
  }
  *static_cast<void**>(b) = l.first;
  l.first = b;
  --l.room;
}
} // namespace detail

/// Told of the memory of tensors: of what a thread allocates while it is the thread's, and of the freeing of that, by whichever thread. `memory_tracker_mode` hangs in here.
struct storage_observer {
  void (*allocated)(storage_observer& self, std::size_t bytes) = nullptr;
  void (*freed)(storage_observer& self, std::size_t bytes) = nullptr;
};
inline constinit thread_local storage_observer* this_thread_storage_observer = nullptr;

/// Is this thread in inference mode? What it makes has neither version counter nor history, for ever (AG-20).
inline constinit thread_local bool this_thread_inference = false;

/// Memory shared by a tensor and its views, with their version counter that in-place operators raise (DT-1, DT-2).
struct storage {
  detail::reference_count refs;
  std::uint32_t version = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
  /// Lies inside a tensor's block, which lives as long as the storage.
  bool embedded = false;
  /// Belongs to somebody else, who frees it.
  bool borrowed = false;
  /// Who wants to know when it is freed; null as a rule.
  storage_observer* observer = nullptr;

  void allocate(std::size_t n) {
    data = ::operator new(n, std::align_val_t{64});
    bytes = n;
  }
};

namespace detail {
inline void tell_allocated(storage* s) {
  if (!this_thread_storage_observer) [[likely]]
    return;
  s->observer = this_thread_storage_observer;
  s->observer->allocated(*s->observer, s->bytes);
}
inline void tell_freed(storage* s) {
  if (s->observer) [[unlikely]]
    s->observer->freed(*s->observer, s->bytes);
}
} // namespace detail

} // namespace varve

// ---- varve/value/grad_node.hpp
/// @file
/// The graph that reverse mode records on tensors: nodes, which are recorded calls, and edges to the nodes that made their operands. One graph serves the levels of
/// `grad` and eager autograd; `interpreter/engine.hpp` runs it.
namespace varve {

class boxed_args;
class tensor;
struct grad_node;

/// What a kind of node can do.
struct grad_node_type {
  /// Cotangents of the results to cotangents of the operands, one for each edge. `wanted(k)` tells which are asked for; undefined ones stand for zeros.
  boxed_args (*backward)(grad_node& self, boxed_args& g, bool const* wanted);
  /// Frees what was saved for the backward pass.
  void (*release)(grad_node& self);
  void (*destroy)(grad_node* self);
  /// Name without attributes ("AddBackward0"), written into a buffer of 64 characters.
  void (*name)(grad_node const& self, char* out);
  /// Is it where gradients are collected, and no recorded call?
  bool is_leaf = false;
  /// What was saved for the backward pass, as that would find it; null where a kind saves nothing.
  boxed_args (*saved)(grad_node& self) = nullptr;
};

/// Where a cotangent goes: result `nr` of a node. Null for a constant. It owns a share of the node.
class edge {
public:
  constexpr edge() noexcept = default;
  edge(grad_node* to, std::uint32_t nr) noexcept;
  edge(edge const& o) noexcept : edge(o.to_, o.nr_) {}
  edge(edge&& o) noexcept : to_(o.to_), nr_(o.nr_) { o.to_ = nullptr; }
  edge& operator=(edge o) noexcept {
    auto* const t = to_;
    to_ = o.to_;
    nr_ = o.nr_;
    o.to_ = t;
    return *this;
  }
  ~edge();
  grad_node* to() const noexcept { return to_; }
  std::uint32_t nr() const noexcept { return nr_; }
  explicit operator bool() const noexcept { return to_; }
  /// An edge that takes over a share.
  static edge taking(grad_node* to, std::uint32_t nr) noexcept {
    edge e;
    e.to_ = to;
    e.nr_ = nr;
    return e;
  }
  /// Gives up the share without ending it: it is the caller's.
  grad_node* release() noexcept {
    auto* const t = to_;
    to_ = nullptr;
    return t;
  }
  friend bool operator==(edge const& a, edge const& b) noexcept { return a.to_ == b.to_ && a.nr_ == b.nr_; }

private:
  grad_node* to_ = nullptr;
  std::uint32_t nr_ = 0;
};

/// What is attached to a node: hooks, retained gradients, the call that made it.
struct grad_node_extra {
  virtual ~grad_node_extra() = default;
  /// In the order of a run (AG-9): hooks of the results and retained gradients; the node's pre-hooks; after the node its post-hooks.
  virtual void arrived(grad_node&, boxed_args& g) = 0;
  virtual void before(grad_node&, boxed_args& g) = 0;
  virtual void after(grad_node&, boxed_args& out, boxed_args const& g) = 0;
  /// Gives up the gradient of a result that was to be retained; was it?
  virtual bool release_retained(std::uint32_t nr) = 0;
  /// That gradient; null when it is not retained.
  virtual tensor const* retained_at(std::uint32_t nr) const = 0;
  /// The call that recorded the node, for messages; empty when nobody asked for it.
  virtual char const* call() const = 0;
};

/// One recorded call (`grad_fn`), counted by those who refer to it. `next` are the edges of its operands.
struct grad_node {
  detail::reference_count refs;
  std::uint16_t count = 0;
  /// Number of results, that is of cotangents it takes.
  std::uint16_t results = 1;
  grad_node_type const* type;
  edge* next = nullptr;
  /// Nodes of a thread are numbered as they are made: the engine runs later ones first (AG-5). While the node is being freed: the next one to be.
  std::uint64_t sequence = 0;
  /// Where the engine's run keeps it.
  std::atomic<std::uint32_t> mark{0};
  /// A second backward pass is refused: what it needs was freed (AG-4).
  bool released = false;
  /// Hooks, retained gradients, metadata; null as a rule.
  grad_node_extra* extra = nullptr;

  explicit grad_node(grad_node_type const* t) : type(t) {}
  grad_node(grad_node const&) = delete;
  grad_node& operator=(grad_node const&) = delete;
};

namespace detail {
inline constinit thread_local grad_node* dying_nodes = nullptr;
inline constinit thread_local bool nodes_are_dying = false;
inline void drop_extra(grad_node_extra* e) { delete e; }

/// Gives a share back. A chain of any length is freed without recursion.
VARVE_NOINLINE inline void free_nodes(grad_node* n) {
  n->sequence = reinterpret_cast<std::uintptr_t>(dying_nodes);
  dying_nodes = n;
  if (nodes_are_dying) return;
  nodes_are_dying = true;
  while (grad_node* const next = dying_nodes) {
    dying_nodes = reinterpret_cast<grad_node*>(static_cast<std::uintptr_t>(next->sequence));
    next->type->destroy(next);
  }
  nodes_are_dying = false;
}
inline void drop_node(grad_node* n) {
  if (n->refs.drop()) free_nodes(n);
}
} // namespace detail

inline edge::edge(grad_node* to, std::uint32_t nr) noexcept : to_(to), nr_(nr) {
  if (to_) to_->refs.add();
}
inline edge::~edge() {
  if (to_) detail::drop_node(to_);
}

} // namespace varve

// ---- varve/value/tensor.hpp
namespace varve {

class tensor;
class subclass_object;
class hook_handle;
namespace autograd {
class node;
}

namespace detail {
struct tensor_block;
/// What a tensor's handle leads to: memory, a value seen through a transform, the object of a subclass, or a shape alone (`meta`).
enum class payload : unsigned char { memory, seen, subclass, nothing };
/// How a view came about, where that forbids writing into it (AG-16).
enum class view_origin : unsigned char { usual, no_grad, inference, many, custom };
/// Is a transform still there to process its values, on this thread? (dispatch/thread_state.hpp)
bool is_at_work(std::uint64_t layer);
[[noreturn]] VARVE_COLD inline void refuse_data(payload p) {
  if (p == payload::seen) throw transform_error("varve: data of a tensor seen through a transform was asked for; read it after the transform has returned");
  if (p == payload::subclass) throw transform_error("varve: data of a tensor subclass was asked for, which has none of its own; unwrap it first");
  throw transform_error("varve: data of a meta tensor was asked for, which has a shape and a dtype only");
}
} // namespace detail

/// The dynamic value: a reference-counted handle to strided memory with run-time dtype and shape. Copies share the data; a null handle is "absent".
/// Operators on tensors consult the calling thread's stack of transforms and modes. One allocation for small tensors, from a per-thread list.
class tensor {
public:
  constexpr tensor() noexcept = default;
  tensor(tensor const& o) noexcept;
  tensor(tensor&& o) noexcept : block_(o.block_) { o.block_ = nullptr; }
  tensor& operator=(tensor const& o) noexcept;
  tensor& operator=(tensor&& o) noexcept {
    auto* b = block_;
    block_ = o.block_;
    o.block_ = b;
    return *this;
  }
  ~tensor();

  /// Fresh row-major memory, not initialized.
  static tensor empty(dims const& sizes, varve::dtype type);
  /// A rank-0 tensor of a plain number, which raises dtypes only by category.
  template <number T>
  static tensor from_number(T v);
  /// Copies `numel(sizes)` elements from row-major memory.
  template <class T>
  static tensor from_data(T const* data, dims const& sizes);
  /// A tensor on memory of somebody else, who keeps it alive and frees it (`torch.from_blob`).
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type);
  /// `tensor{{1.0, 2.0}}`, with a shape `tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}`.
  template <class T, std::size_t N>
  explicit tensor(T const (&values)[N], dims const& sizes = {static_cast<index_t>(N)}) : tensor(from_data(values, check_count(N, sizes))) {}

  bool defined() const noexcept { return block_ != nullptr; }
  varve::dtype dtype() const;
  dims const& sizes() const;
  dims const& strides() const;
  index_t size(index_t axis) const { return sizes()[wrap_axis(axis, dim())]; }
  int dim() const { return sizes().n; }
  index_t numel() const { return varve::numel(sizes()); }
  bool is_contiguous() const;
  /// Made from a plain C++ number.
  bool is_number() const;
  void mark_number();
  /// Version counter, shared with views and detached values and raised once per in-place operator (DT-1, DT-2); `autograd_error` for inference tensors, which have none.
  std::uint32_t version() const;
  void bump_version() const;
  /// Lowers or raises it by hand: `preserve_version_counter` and tests.
  void set_version(std::uint32_t v) const;
  /// Made in inference mode: it has no version counter, and no history ever (DT-2, AG-20).
  bool is_inference() const;
  /// Does nobody else hold it or its memory?
  bool is_unique() const;
  /// Do two tensors share memory?
  bool shares_storage(tensor const& o) const;

  /// Pointer to the first element; the element type must be `T`. Values seen through a transform have none while it is at work: `transform_error`.
  template <class T>
  T* data() const;
  /// Pointer to the first element, untyped; faster for who knows the bytes of an element.
  void* raw() const;
  void* raw(index_t item) const;
  void* raw_inside(index_t item) const;
  /// The only element, converted to `T`.
  template <class T>
  T item() const;

  /// The truth of the only element, through transforms that keep it single; mapped by `vmap` it has none (`transform_error`).
  explicit operator bool() const;

  /// A tensor on the same storage with another layout (elements; the offset is relative to the storage). A view shares the history that in-place operators on its base get later.
  tensor with_layout(layout const& l, bool is_view = true) const;
  /// The same memory and version counter without history: not a view (DT-4).
  tensor alias() const;
  layout where() const;

  /// Its dispatch keys: what the dispatcher reads of it (DK-2).
  dispatch_key_set keys() const noexcept;
  /// The same memory, or shape, under other keys: how a registered backend makes its tensors of memory, and reads them as memory again.
  tensor with_keys(dispatch_key_set keys) const;
  /// A shape and a dtype without data (`device='meta'`).
  static tensor meta(dims const& sizes, varve::dtype type);
  bool has_data() const noexcept;
  /// Does no other tensor share its memory?
  bool has_own_memory() const noexcept;
  /// A tensor that stands for the object of a subclass. Use `make_subclass`.
  static tensor of_object(subclass_object* object, dims const& sizes, dims const& strides, varve::dtype type, dispatch_key_set keys);
  /// The object of a subclass, or null.
  subclass_object* object() const noexcept;
  /// Shares the storage of another tensor from now on: the aliasing of views, for subclasses (MD-16).
  void alias_storage_of(tensor const& o) const;

  // Values seen through a run-time transform (design: the payload hangs off the handle).
  bool is_wrapped() const noexcept;
  static tensor wrap(tensor value, std::uint64_t layer, int level, tensor extra, edge history, dims const& logical);
  std::uint64_t layer() const;
  int level() const;
  tensor const& inner() const;
  tensor const& extra() const;
  void set_extra(tensor const& t) const;
  /// The recorded call that made it, at the level it is seen at. Of a view that an in-place operator may have overtaken, ask `gradient_edge`.
  edge const& history() const;
  void set_history(edge e) const;
  /// The tensor that this is a view of; undefined when it is none.
  tensor const& base() const;
  /// Says of a value seen through a transform that it is a view, at its level (AG-15).
  void set_base(tensor const& base, detail::view_origin o) const;
  /// Was the base of this view written into since its history, or tangent, was found?
  bool is_overtaken() const;
  detail::view_origin origin() const;
  void set_origin(detail::view_origin o) const;

  // Eager autograd: autograd/*.hpp.
  /// Does a gradient flow to it, as to a leaf of the user or through recorded operators?
  bool requires_grad() const;
  /// Asks for the gradient of a leaf, or gives that up (AG-19).
  template <class T = bool>
  tensor const& requires_grad_(T on = true) const;
  /// Was it made by the user, or by operators that recorded nothing?
  bool is_leaf() const;
  /// The collected gradient: undefined before `backward`.
  tensor grad() const;
  void set_grad(tensor const& g) const;
  /// Forgets the gradient.
  void zero_grad() const { set_grad(tensor()); }
  /// Keeps the gradient of a value that is no leaf.
  template <class T = tensor>
  void retain_grad() const;
  /// What recorded it; null for a leaf and for a constant.
  template <class T = autograd::node>
  T grad_fn() const;
  /// Which result of that it is.
  int output_nr() const;
  /// `f(gradient)` is called when its gradient is known, and may return another in its place (AG-9). The handle removes it.
  template <class F>
  hook_handle register_hook(F f) const;
  /// `f(leaf)` is called after a gradient was added to this leaf (AG-11).
  template <class F>
  hook_handle register_post_accumulate_grad_hook(F f) const;
  /// Is it a view of another tensor?
  bool is_view() const;
  /// Gradients of this value with respect to the leaves it was made of, added to theirs. `gradient` may be left out for a scalar (AG-1).
  template <class T = tensor>
  void backward(T const& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// The same memory and version counter, without history (DT-4); in place (DT-17).
  template <class T = tensor>
  T detach() const;
  tensor const& detach_() const;
  /// The same memory without history and with a counter of its own (DT-3): what is written through it, autograd does not see.
  tensor data() const;
  /// x keeps its identity, counter and hooks; memory, shape and dtype become those of y (DT-5, DT-6).
  void set_data(tensor const& y) const;
  /// Its parts: a counter of its own, and memory, shape and dtype of another tensor.
  void own_version() const;
  void take_memory_of(tensor const& y) const;

  /// The very same handle.
  bool is(tensor const& o) const noexcept { return block_ == o.block_; }
  detail::tensor_block const* id() const noexcept { return block_; }

private:
  static dims const& check_count(std::size_t n, dims const& sizes) {
    if (static_cast<index_t>(n) != varve::numel(sizes)) refuse::shapes_do_not_match("tensor", dims{static_cast<index_t>(n)}, sizes);
    return sizes;
  }
  explicit tensor(detail::tensor_block* b) noexcept : block_(b) {}
  static detail::tensor_block* make(dims const& sizes, varve::dtype type);
  detail::tensor_block* block_ = nullptr;
};

template <>
struct traits<tensor> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor const& t) { return t.sizes(); }
  static dims type(tensor const& t) { return dims{static_cast<index_t>(t.dtype())}; }
};

/// dtype and shape of a tensor as data, with its being a plain number.
inline meta meta_of(tensor const& t) { return {t.dtype(), t.sizes(), t.is_number()}; }

} // namespace varve


// ---- varve/value/subclass.hpp
namespace varve {

class tensor;
class subclass_object;
struct dims;
struct boxed_op;
class boxed_args;

namespace detail {
void keep_object(subclass_object* o) noexcept;
void drop_object(subclass_object* o) noexcept;
} // namespace detail


/// A type of wrapper tensors, as data: its name, the type it extends, what it does with operators. Its address is its identity.
struct subclass_type {
  char const* name;
  /// The subclass it derives from, or null: the more derived is asked first (MD-10).
  subclass_type const* base;
  /// Its handler; an undefined tensor declines (`not_implemented`).
  tensor (*dispatch)(boxed_op const& op, boxed_args const& args);

  /// Is it `o`, or derived from it?
  bool derives_from(subclass_type const* o) const {
    for (auto const* t = this; t; t = t->base)
      if (t == o) return true;
    return false;
  }
};

/// Base of the objects that wrapper tensors stand for: shared by the handles, deleted with the last.
class subclass_object {
public:
  subclass_object() = default;
  subclass_object(subclass_object const&) = delete;
  subclass_object& operator=(subclass_object const&) = delete;
  virtual ~subclass_object() = default;
  virtual subclass_type const& type() const = 0;
  /// The user's value.
  virtual void const* address() const = 0;
  /// Number of tensors inside, and the i-th: the flatten protocol. Rebuilding is `rebuilt`.
  virtual int inner_count() const = 0;
  virtual tensor const& inner(int i) const = 0;
  /// Sizes and strides that the object computes when asked, in place of those given when it was made; null: it computes none (MD-20).
  virtual dims const* sizes() const { return nullptr; }
  virtual dims const* strides() const { return nullptr; }
  /// An object with the same context around other tensors, as a tensor.
  virtual tensor rebuilt(tensor const* inner) const = 0;

private:
  friend void detail::keep_object(subclass_object*) noexcept;
  friend void detail::drop_object(subclass_object*) noexcept;
  detail::reference_count refs_;
};

namespace detail {
inline void keep_object(subclass_object* o) noexcept {
  if (o) o->refs_.add();
}
inline void drop_object(subclass_object* o) noexcept {
  if (o && o->refs_.drop()) delete o;
}
} // namespace detail

} // namespace varve

// ---- varve/value/tensor_block.hpp
/// @file
/// What a tensor's handle leads to, and the members of `tensor` that look into it.
namespace varve {

namespace detail {
/// What a tensor seen through a transform holds instead of memory.
struct wrapping {
  tensor value;
  tensor extra;
  std::uint64_t layer = 0;
  int level = 0;
};

struct alignas(64) tensor_block {
  reference_count refs;
  dispatch_key_set keys = default_keys;
  varve::dtype type;
  payload kind = payload::memory;
  bool number = false;
  bool contiguous = true;
  bool custom = false; // the object computes sizes or strides
  view_origin origin = view_origin::usual;
  bool inference = false; // made in inference mode: no version counter, no history
  index_t offset = 0;
  varve::storage* store = nullptr;
  varve::storage* counter = nullptr; // whose version counter it uses, when not that of its memory (DT-3, DT-5)
  edge history;
  tensor base;
  std::atomic<std::uint32_t> seen_version{0}; // of the base, when the history of a view was found; stored after that
  dims sizes, strides;
  varve::storage own;
  union {
    alignas(64) unsigned char bytes[64];
    wrapping seen;
    subclass_object* object;
  };
  tensor_block(dims const& s, varve::dtype t) : type(t), sizes(s) {}
  /// Its memory is the bytes inside of it.
  void embed(std::size_t n) {
    store = &own;
    own.embedded = true;
    own.bytes = n;
    own.data = bytes;
  }
  ~tensor_block() {}
};
static_assert(sizeof(tensor_block) <= block_bytes);

inline void drop_storage(storage* s) {
  if (!s->refs.drop()) return;
  tell_freed(s);
  if (s->embedded) give_block(reinterpret_cast<unsigned char*>(s) - offsetof(tensor_block, own));
  else {
    if (!s->borrowed) ::operator delete(s->data, std::align_val_t{64});
    delete s;
  }
}
inline void drop_block(tensor_block* b) {
  if (!b->refs.drop()) return;
  if (b->history) drop_node(b->history.release());
  // An ordinary small tensor: its memory lies inside, and nothing else hangs on it.
  if (!b->base.defined() && !b->counter && b->kind == payload::memory && b->own.embedded && b->store == &b->own) [[likely]] {
    if (b->own.refs.drop()) {
      tell_freed(&b->own);
      give_block(b);
    }
    return;
  }
  if (b->base.defined()) b->base = tensor();
  if (b->kind == payload::seen) {
    b->seen.~wrapping();
    if (!b->store && !b->counter) [[likely]]
      return give_block(b);
  }
  if (b->kind == payload::subclass) drop_object(b->object);
  // The block has a share of the storage inside of it, if that was ever used, for as long as it lives: the last share gives the block back.
  storage *const s = b->store, *const c = b->counter, *const inside = &b->own;
  if (!b->own.embedded) {
    give_block(b);
  } else if (inside->refs.drop()) {
    tell_freed(inside);
    give_block(b);
  }
  if (s && s != inside) drop_storage(s);
  if (c && c != inside) [[unlikely]]
    drop_storage(c);
}
} // namespace detail

inline tensor::tensor(tensor const& o) noexcept : block_(o.block_) {
  if (block_) block_->refs.add();
}
inline tensor& tensor::operator=(tensor const& o) noexcept {
  auto* const old = block_;
  block_ = o.block_; // read before the old block goes: o may lie inside of it
  if (block_) block_->refs.add();
  if (old) detail::drop_block(old);
  return *this;
}
inline tensor::~tensor() {
  if (block_) detail::drop_block(block_);
}
inline detail::tensor_block* tensor::make(dims const& sizes, varve::dtype type) { return new (detail::take_block()) detail::tensor_block(sizes, type); }

namespace detail {
/// Gives a tensor memory that lies apart, or is observed.
VARVE_NOINLINE inline tensor allocated(tensor r, tensor_block* b, std::size_t bytes) {
  if (bytes <= sizeof b->bytes) b->embed(bytes);
  else (b->store = new storage)->allocate(bytes);
  tell_allocated(b->store);
  return r;
}
} // namespace detail

inline tensor tensor::empty(dims const& sizes, varve::dtype type) {
  auto* b = make(sizes, type);
  index_t step = 1, count = 1;
  b->strides.n = sizes.n;
  for (int k = sizes.n - 1; k >= 0; --k) {
    b->strides.v[k] = step;
    step *= sizes.v[k] > 0 ? sizes.v[k] : 1;
    count *= sizes.v[k];
  }
  std::size_t const bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(itemsize(type));
  b->inference = this_thread_inference;
  if (bytes <= sizeof b->bytes && !this_thread_storage_observer) [[likely]] {
    b->embed(bytes);
    return tensor(b);
  }
  return detail::allocated(tensor(b), b, bytes);
}
inline varve::dtype tensor::dtype() const { return block_->type; }
VARVE_INLINE dims const& tensor::sizes() const {
  if (block_->custom) [[unlikely]]
    if (dims const* d = block_->object->sizes()) return *d;
  return block_->sizes;
}
inline dims const& tensor::strides() const {
  if (is_wrapped() && dim() == inner().dim()) return inner().strides();
  if (block_->custom) [[unlikely]]
    if (dims const* d = block_->object->strides()) return *d;
  return block_->strides;
}
inline bool tensor::is_contiguous() const { return block_->contiguous; }
inline bool tensor::is_number() const { return block_->number; }
inline void tensor::mark_number() { block_->number = true; }
inline layout tensor::where() const { return {block_->sizes, block_->strides, block_->offset, true}; }
inline bool tensor::is_wrapped() const noexcept { return block_->kind == detail::payload::seen; }
inline std::uint64_t tensor::layer() const { return is_wrapped() ? block_->seen.layer : 0; }
inline int tensor::level() const { return is_wrapped() ? block_->seen.level : 0; }
inline tensor const& tensor::inner() const { return block_->seen.value; }
inline tensor const& tensor::extra() const { return block_->seen.extra; }
inline void tensor::set_extra(tensor const& t) const {
  block_->seen.extra = t;
  if (block_->base.defined()) block_->seen_version.store(version(), std::memory_order_release);
}
inline bool tensor::has_own_memory() const noexcept { return block_->store->refs.n.load(std::memory_order_relaxed) == 1; }
inline bool tensor::shares_storage(tensor const& o) const {
  if (is_wrapped()) return inner().shares_storage(o);
  return o.is_wrapped() ? shares_storage(o.inner()) : block_->store == o.block_->store;
}
VARVE_INLINE void* tensor::raw(index_t item) const {
  if (block_->kind != detail::payload::memory) [[unlikely]]
    return raw_inside(item);
  return static_cast<unsigned char*>(block_->store->data) + block_->offset * item;
}
/// What a transform that has ended left is read through (FS-10).
VARVE_COLD inline void* tensor::raw_inside(index_t item) const {
  if (!is_wrapped() || !(sizes() == inner().sizes()) || detail::is_at_work(layer())) detail::refuse_data(block_->kind);
  return inner().raw(item);
}
inline void* tensor::raw() const { return raw(itemsize(block_->type)); }
template <class T>
T* tensor::data() const {
  if (dtype_of_type<T>() != block_->type)
    throw dtype_error((std::string("varve: data: the tensor holds ") + name(block_->type) + ", not " + name(dtype_of_type<T>())).c_str());
  return static_cast<T*>(raw());
}
template <number T>
tensor tensor::from_number(T v) {
  tensor r = empty({}, dtype_of_type<T>());
  std::memcpy(r.block_->bytes, &v, sizeof v);
  r.block_->number = true;
  return r;
}
template <class T>
tensor tensor::from_data(T const* data, dims const& sizes) {
  tensor r = empty(sizes, dtype_of_type<T>());
  if (r.numel() > 0) std::memcpy(r.raw(), data, sizeof(T) * static_cast<std::size_t>(r.numel()));
  return r;
}
inline tensor tensor::from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type) {
  auto* b = make(sizes, type);
  tensor r(b);
  auto* s = b->store = new storage;
  s->data = data;
  s->borrowed = true;
  layout const l{sizes, strides, 0, true};
  b->strides = strides;
  b->contiguous = l.contiguous();
  return r;
}
template <class T>
T tensor::item() const {
  if (numel() != 1) refuse::argument_is_invalid("item", "the tensor must have exactly one element");
  return on_dtype(block_->type, "item", [&]<class E>() { return static_cast<T>(*static_cast<E const*>(raw())); });
}
inline tensor::operator bool() const {
  tensor const* t = this;
  while (t->is_wrapped()) {
    if (!(t->sizes() == t->inner().sizes()))
      throw transform_error("varve: a value mapped by vmap has no single truth value; use where, cond or while_loop instead of if");
    t = &t->inner();
  }
  return t->item<bool>();
}
inline tensor tensor::with_layout(layout const& l, bool is_view) const {
  tensor r = alias();
  auto* b = r.block_;
  b->sizes = l.sizes;
  b->strides = l.strides;
  b->offset = l.offset;
  b->contiguous = l.contiguous();
  if (is_view && b->kind == detail::payload::memory && !block_->inference) {
    b->base = block_->base.defined() ? block_->base : *this;
    b->origin = block_->origin;
    b->keys = dispatch_key_set::of_bits(b->keys.bits | dispatch_key_set::history_bit);
    b->seen_version.store(version(), std::memory_order_relaxed);
  }
  return r;
}
inline tensor tensor::alias() const {
  layout const l = where();
  auto* b = make(l.sizes, block_->type);
  b->strides = l.strides;
  b->offset = l.offset;
  b->contiguous = block_->contiguous;
  b->keys = dispatch_key_set::of_bits(block_->keys.bits & ~dispatch_key_set::history_bit);
  b->inference = block_->inference;
  if ((b->counter = block_->counter)) b->counter->refs.add();
  b->kind = block_->kind;
  if (b->kind == detail::payload::subclass) detail::keep_object(b->object = block_->object);
  b->store = block_->store;
  b->store->refs.add();
  return tensor(b);
}
VARVE_INLINE tensor tensor::wrap(tensor value, std::uint64_t layer, int level, tensor extra, edge history, dims const& logical) {
  auto* b = make(logical, value.dtype());
  b->number = value.is_number();
  b->contiguous = value.is_contiguous();
  b->kind = detail::payload::seen;
  b->keys = dispatch_key::transform;
  b->history = static_cast<edge&&>(history);
  new (&b->seen) detail::wrapping{static_cast<tensor&&>(value), static_cast<tensor&&>(extra), layer, level};
  return tensor(b);
}

inline dispatch_key_set tensor::keys() const noexcept { return block_->keys; }
inline bool tensor::has_data() const noexcept { return block_->kind == detail::payload::memory; }
inline subclass_object* tensor::object() const noexcept { return block_->kind == detail::payload::subclass ? block_->object : nullptr; }
inline tensor tensor::with_keys(dispatch_key_set keys) const {
  tensor r = alias();
  r.block_->keys = keys;
  return r;
}
inline tensor tensor::meta(dims const& sizes, varve::dtype type) {
  tensor r = of_object(nullptr, sizes, {}, type, {dispatch_key::meta, dispatch_key::inplace_or_view, dispatch_key::autograd_meta});
  r.block_->kind = detail::payload::nothing;
  return r;
}
inline tensor tensor::of_object(subclass_object* object, dims const& sizes, dims const& strides, varve::dtype type, dispatch_key_set keys) {
  auto* b = make(sizes, type);
  tensor r(b);
  layout const l = strides.n == sizes.n && sizes.n ? layout{sizes, strides, 0, true} : contiguous_layout(sizes);
  b->strides = l.strides;
  b->contiguous = l.contiguous();
  b->keys = keys;
  b->store = &b->own;
  b->own.embedded = true;
  b->kind = detail::payload::subclass;
  b->object = object;
  b->custom = object && (object->sizes() || object->strides());
  return r;
}
inline void tensor::alias_storage_of(tensor const& o) const {
  if (block_->store == o.block_->store || is_wrapped() || o.is_wrapped()) return;
  auto* const old = block_->store;
  block_->store = o.block_->store;
  block_->store->refs.add();
  if (old != &block_->own) detail::drop_storage(old);
}

} // namespace varve


// ---- varve/value/tensor_history.hpp
/// @file
/// The members of `tensor` that deal with histories, versions and memory that tensors share.
namespace varve {

inline edge const& tensor::history() const { return block_->history; }
inline void tensor::set_history(edge e) const {
  block_->history = static_cast<edge&&>(e);
  bool const is_view = block_->base.defined();
  if (!is_wrapped()) {
    bool const any = block_->history || is_view;
    auto const keys = dispatch_key_set::of_bits(any ? block_->keys.bits | dispatch_key_set::history_bit : block_->keys.bits & ~dispatch_key_set::history_bit);
    if (!(keys == block_->keys)) block_->keys = keys; // other threads may read them while a view's history is found
  }
  if (is_view) block_->seen_version.store(version(), std::memory_order_release);
}
inline void tensor::set_base(tensor const& base, detail::view_origin o) const {
  tensor const* inside = this;
  while (inside->is_wrapped()) inside = &inside->inner();
  if (inside->is_inference()) return; // nothing would tell that it was written into
  block_->base = base;
  block_->origin = o;
  block_->seen_version.store(version(), std::memory_order_release);
}
inline tensor const& tensor::base() const { return block_->base; }
inline bool tensor::is_overtaken() const { return block_->seen_version.load(std::memory_order_acquire) != version(); }
inline detail::view_origin tensor::origin() const { return block_->origin; }
inline void tensor::set_origin(detail::view_origin o) const { block_->origin = o; }
inline bool tensor::requires_grad() const {
  // The base first: another thread may just be finding the history of a view.
  if (block_->base.defined() && !is_wrapped() && block_->base.block_->history) return true;
  if (block_->history) return true;
  return is_wrapped() && inner().requires_grad();
}
inline std::uint32_t tensor::version() const {
  if (is_wrapped()) return inner().version();
  if (block_->inference) [[unlikely]]
    throw autograd_error("varve: version: a tensor made in inference mode has no version counter");
  return (block_->counter ? block_->counter : block_->store)->version;
}
inline void tensor::set_version(std::uint32_t v) const { (block_->counter ? block_->counter : block_->store)->version = v; }
inline void tensor::bump_version() const {
  if (!block_->inference) set_version(version() + 1);
}
inline bool tensor::is_view() const { return block_->base.defined(); }
inline bool tensor::is_inference() const { return block_->inference; }
inline bool tensor::is_unique() const { return block_->refs.n.load(std::memory_order_relaxed) == 1 && (is_wrapped() || block_->store->refs.n.load(std::memory_order_relaxed) == 1); }
inline void tensor::own_version() const {
  auto* const fresh = new storage;
  if (block_->counter) detail::drop_storage(block_->counter);
  block_->counter = fresh;
}
inline void tensor::take_memory_of(tensor const& y) const {
  auto *const b = block_, *const from = y.block_;
  if (b == from) return;
  auto* const old = b->store;
  bool const inside = old == &b->own;
  if (!b->counter) {
    // The counter stays that of the old memory, which aliases of that share.
    b->counter = old;
    if (!inside) old->refs.add();
  }
  b->store = from->store;
  b->store->refs.add();
  b->sizes = from->sizes;
  b->strides = from->strides;
  b->offset = from->offset;
  b->contiguous = from->contiguous;
  b->type = from->type;
  if (b->base.defined()) b->base = tensor();
  if (!inside) detail::drop_storage(old);
}
} // namespace varve

// ---- varve/dispatch/boxed.hpp
namespace varve {

/// The operands of one dynamic call. Up to four lie in place.
class boxed_args {
public:
  boxed_args() = default;
  template <class... X>
    requires(sizeof...(X) > 0 && (std::is_same_v<std::remove_cvref_t<X>, tensor> && ...))
  explicit boxed_args(X&&... x) {
    if constexpr (sizeof...(X) <= in_place) {
      (new (data_ + size_++) tensor(static_cast<X&&>(x)), ...);
    } else {
      (push_back(static_cast<X&&>(x)), ...);
    }
  }
  boxed_args(boxed_args const& o) {
    for (auto const& t : o) push_back(t);
  }
  boxed_args(boxed_args&& o) noexcept { take(o); }
  boxed_args& operator=(boxed_args o) noexcept {
    clear();
    take(o);
    return *this;
  }
  ~boxed_args() { clear(); }

  void push_back(tensor const& t) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    new (data_ + size_++) tensor(t);
  }
  void push_back(tensor&& t) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    new (data_ + size_++) tensor(static_cast<tensor&&>(t));
  }
  int size() const { return size_; }
  tensor const& operator[](int i) const { return data_[i]; }
  tensor& operator[](int i) { return data_[i]; }
  tensor const* begin() const { return data_; }
  tensor const* end() const { return data_ + size_; }

private:
  tensor* place() { return reinterpret_cast<tensor*>(place_); }
  /// A tensor is one pointer: its bytes move without its constructor.
  void take(boxed_args& o) noexcept {
    if (o.data_ != o.place()) {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.place();
      o.capacity_ = in_place;
    } else {
      std::memcpy(place_, o.place_, sizeof place_);
    }
    size_ = o.size_;
    o.size_ = 0;
  }
  void clear() {
    for (int k = 0; k < size_; ++k) data_[k].~tensor();
    size_ = 0;
    if (data_ != place()) [[unlikely]] {
      ::operator delete(data_);
      data_ = place();
      capacity_ = in_place;
    }
  }
  VARVE_COLD void grow() {
    auto* wide = static_cast<tensor*>(::operator new(sizeof(tensor) * static_cast<std::size_t>(capacity_) * 2));
    std::memcpy(static_cast<void*>(wide), static_cast<void const*>(data_), sizeof(tensor) * static_cast<std::size_t>(size_));
    if (data_ != place()) ::operator delete(data_);
    data_ = wide;
    capacity_ *= 2;
  }
  static constexpr int in_place = 4;
  alignas(tensor) unsigned char place_[sizeof(tensor) * in_place];
  tensor* data_ = place();
  int size_ = 0;
  int capacity_ = in_place;
};

/// The operands of a call where they lie, borrowed.
struct operand_list {
  tensor const* const* at;
  int count;
  int size() const { return count; }
  tensor const& operator[](int i) const { return *at[i]; }
};

struct op_handle;
struct boxed_hop;
struct dispatch_table;
namespace detail {
struct kernels_below;
}

/// The rules of one operator for tensors, erased: made when the operator is first used on tensors in a program.
struct op_table {
  char const* name;
  /// Argument names, defaults and aliasing in PyTorch's notation, without the name; empty when the rules give none.
  char const* schema;
  int arity;
  bool differentiable;
  tensor (*eval)(attributes const& at, boxed_args const& x);
  tensor (*jvp)(int i, attributes const& at, tensor const& d, tensor const& y, boxed_args const& x);
  tensor (*vjp)(int i, attributes const& at, tensor const& g, tensor const& y, boxed_args const& x);
  tensor (*batch)(attributes const& at, index_t n, boxed_args const& x, bool const* batched);
  op_handle const* (*handle)();
  /// Shape, dtype and view layout of the result without data: the kernel of the `meta` backend.
  tensor (*meta)(attributes const& at, boxed_args const& x);
  /// The kernels registered at run time; null while there are none.
  std::atomic<dispatch_table const*>* registered;
  /// What is kept for `vjp`, by operand.
  saved_values saved{};
  op_kind kind = op_kind::placeholder;
};

/// An operator with attributes in the dynamic world: what run-time interpreters and modes process. It borrows the attributes of the call.
struct boxed_op {
  op_table const* table;
  attributes const* at;
  /// Not null while a transform does what stands at its own key: kernels of a library below that key come first when it lowers.
  detail::kernels_below const* below = nullptr;
  char const* name() const { return table->name; }
  char const* schema() const { return table->schema; }
  /// Lowers: hands the call to the next interpreter of the thread.
  tensor operator()(boxed_args const& x) const;
};

/// Operators by name. An operator is known once the program contains a call of it on tensors.
struct ops {
  /// Null when no operator of that name is known. Those of varve are also found as `aten::name`, those of a `library` as `library::name`.
  static op_table const* find(char const* name);
  /// Calls an operator by name: tensors and numbers are operands, `dims` are attributes. Unknown names and wrong counts are `dispatch_error`.
  template <class... X>
  static tensor call(char const* name, X const&... x);
};

} // namespace varve

// ---- varve/dispatch/thread_state.hpp
namespace varve {

/// What a random operator does under `vmap`: it is refused, all slices see the same numbers, or each its own.
enum class random_policy : unsigned char { error, same, different };
/// The policy as a type, for `vmap(f, randomness::different)` (`torch.vmap`'s `randomness`).
template <random_policy P>
struct randomness_t {};
struct randomness {
  static constexpr randomness_t<random_policy::error> error{};
  static constexpr randomness_t<random_policy::same> same{};
  static constexpr randomness_t<random_policy::different> different{};
};

/// One interpreter on the thread's stack: it lives on the C++ stack of the transform or `mode_guard` that pushed it and links to the one below.
struct layer {
  layer* below = nullptr;
  /// Position in its stack, from 1.
  int level = 0;
  /// Never reused: tells values of this layer from those of an earlier one at the same level.
  std::uint64_t id = 0;
  /// "grad", "jvp", "vmap", "mode", or what a mode calls itself: for messages and rules.
  char const* kind = "";
  tensor (*process)(layer& self, boxed_op const& op, boxed_args const& args) = nullptr;
  /// Of `grad`: writes down a call that is done already on what its operands hold one level below: the result `y` of that becomes a value of the level. Null of others.
  void (*record)(layer& self, boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below, int operands) = nullptr;
  /// What it does with a higher-order operator; null: it has no rule for any.
  boxed_args (*process_hop)(layer& self, boxed_hop const& op, boxed_args const& args) = nullptr;
  /// What it works for: the user's mode, or the `dynamic_level` of a transform.
  void* object = nullptr;
  /// Of a transform: the keys at which kernels that a program registered are part of what it does (`transform_keys`).
  dispatch_key_set keys;
  /// Identity of the type of a mode, for rules registered for it.
  void const* type = nullptr;
  /// Of `grad`: were operators recorded when it was entered? If not, they are not at the levels below (FS-8).
  bool outer_grad_mode = true;
  /// ... and are they at its own? Of the thread that took it off its stack last.
  bool grad_mode = true;
  /// A `dual_level`: not a transform of a function, eager autograd goes on as if it were not there.
  bool is_dual_level = false;
  /// Does it write down what it sees (`grad`, `make_fx`)? Then its operators must come from one thread.
  bool records = false;
  /// Size of the mapped dimension of a `vmap`, and what random operators do under it.
  index_t batch_size = 0;
  random_policy random = random_policy::error;
};

/// A stack of layers, and the key that is included while it holds one (FS-2, MD-7).
struct layer_stack {
  layer* top = nullptr;
  dispatch_key key;
};

/// What replaces the values that eager nodes keep: the innermost scope of `saved_tensors_hooks` (AG-23).
struct packed_value {
  virtual ~packed_value() = default;
  virtual tensor unpack() = 0;
};
struct saved_hooks_scope {
  saved_hooks_scope* below = nullptr;
  virtual packed_value* pack(tensor const& t) = 0;

protected:
  ~saved_hooks_scope() = default;
};

/// The slots of the modes that are no user's, from the one asked first: a call reaches them after all user modes, whatever was entered first (MD-5).
enum class infra_mode : unsigned char { functional, proxy, fake };

/// Everything the dynamic world keeps per thread: one trivially destructible `constinit` struct, so that reading it costs one load.
struct thread_state {
  dispatch_key_set included, excluded;
  /// Transforms (`grad`, `vmap`, ...), innermost first. They process a call before any mode does.
  layer_stack transforms{nullptr, dispatch_key::transform};
  /// Modes switched on by `mode_guard`, last first; below them the infra slots.
  layer_stack modes{nullptr, dispatch_key::dispatch_mode};
  layer_stack infra[3]{{nullptr, dispatch_key::dispatch_mode}, {nullptr, dispatch_key::dispatch_mode}, {nullptr, dispatch_key::dispatch_mode}};
  /// Modes above transforms and autograd (MD-18), and modes that see public calls (MD-22).
  layer_stack pre_dispatch{nullptr, dispatch_key::pre_dispatch};
  layer_stack functions{nullptr, dispatch_key::function_mode};
  /// An `enable_mode` is on: it refuses a second one (MD-1).
  bool single_mode = false;
  /// What factories give when no dtype is named: set by `default_dtype_mode`.
  dtype default_type = default_dtype;
  std::uint64_t next_id = 0;
  /// Are operators recorded (`torch.is_grad_enabled`)?
  bool grad_mode = true;
  saved_hooks_scope* saved_hooks = nullptr;
  /// Every node keeps the name of the call that made it, and gradients are looked at (`anomaly_mode`).
  bool anomaly = false, check_nan = false;
  /// Number of the next node that this thread records.
  std::uint64_t next_node = 1;

  bool quiet() const { return !(included.bits | excluded.bits); }
  /// The stack whose top mode is asked next: the user's, else the first infra slot taken, else null (MD-6).
  layer_stack* next_mode() {
    if (modes.top) return &modes;
    for (layer_stack& slot : infra)
      if (slot.top) return &slot;
    return nullptr;
  }
};
inline constinit thread_local thread_state this_thread_state{};

/// Dtype of a factory of this thread that names none (`torch.get_default_dtype`).
inline dtype get_default_dtype() { return this_thread_state.default_type; }

/// An identity that no layer of any thread had before. Threads draw blocks of them.
inline std::uint64_t next_layer_id() {
  constexpr int block_bits = 20;
  static std::atomic<std::uint64_t> blocks{0};
  std::uint64_t& next = this_thread_state.next_id;
  if ((next & ((std::uint64_t{1} << block_bits) - 1)) == 0) next = (blocks.fetch_add(1, std::memory_order_relaxed) << block_bits) + 1;
  return next++;
}

/// Is a transform at work on this thread?
inline bool inside_transform() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (!l->is_dual_level) return true;
  return false;
}

namespace detail {
VARVE_COLD inline bool is_at_work(std::uint64_t id) {
  layer const* l = this_thread_state.transforms.top;
  while (l && l->id != id) l = l->below;
  return l;
}
/// Makes a layer the top of a stack of this thread, and the key of the stack included as long as there is one.
inline void set_top(layer_stack& stack, layer* l) {
  thread_state& s = this_thread_state;
  stack.top = l;
  bool const any = stack.key == dispatch_key::dispatch_mode ? s.modes.top || s.infra[0].top || s.infra[1].top || s.infra[2].top : l != nullptr;
  s.included = any ? s.included | stack.key : s.included - dispatch_key_set(stack.key);
}
} // namespace detail

/// Takes the top of a stack away while it runs, and puts it back on every exit (MD-8: pop, not key-juggling).
class popped {
public:
  explicit popped(layer_stack& stack) : stack_(stack), saved_(stack.top), grad_mode_(this_thread_state.grad_mode) {
    detail::set_top(stack_, saved_->below);
    if (saved_->records) saved_->grad_mode = grad_mode_;
    this_thread_state.grad_mode = grad_mode_ && saved_->outer_grad_mode;
  }
  popped(popped const&) = delete;
  popped& operator=(popped const&) = delete;
  ~popped() {
    detail::set_top(stack_, saved_);
    this_thread_state.grad_mode = grad_mode_;
  }
  layer& top() const { return *saved_; }

private:
  layer_stack& stack_;
  layer* saved_;
  bool grad_mode_;
};

/// Takes a whole stack away for the life of the object.
class emptied {
public:
  explicit emptied(layer_stack& stack) : stack_(stack), saved_(stack.top) { detail::set_top(stack_, nullptr); }
  emptied(emptied const&) = delete;
  emptied& operator=(emptied const&) = delete;
  ~emptied() { detail::set_top(stack_, saved_); }

private:
  layer_stack& stack_;
  layer* saved_;
};

/// Puts a layer on a stack for the life of the object.
class pushed {
public:
  pushed(layer_stack& stack, layer& l) : stack_(stack), saved_(stack.top) {
    name(l, stack);
    detail::set_top(stack_, &l);
  }
  /// Gives a layer its place and identity ahead of being pushed.
  static void name(layer& l, layer_stack const& stack) {
    l.below = stack.top;
    l.level = stack.top ? stack.top->level + 1 : 1;
    if (!l.id) l.id = next_layer_id();
  }
  pushed(pushed const&) = delete;
  pushed& operator=(pushed const&) = delete;
  ~pushed() { detail::set_top(stack_, saved_); }

private:
  layer_stack& stack_;
  layer* saved_;
};

/// Sets the included and excluded keys of the thread for the life of the object; on every exit they are as before (DK-9).
class key_guard {
public:
  key_guard(dispatch_key_set include, dispatch_key_set exclude) : included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    this_thread_state.included = include;
    this_thread_state.excluded = exclude;
  }
  key_guard(key_guard const&) = delete;
  key_guard& operator=(key_guard const&) = delete;
  ~key_guard() {
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

private:
  dispatch_key_set included_, excluded_;
};
/// Calls of this thread have the keys, whatever their arguments: a key `private_use` makes factories allocate there.
struct include_keys : key_guard {
  explicit include_keys(dispatch_key_set k) : key_guard(this_thread_state.included | k, this_thread_state.excluded) {}
};
/// Calls of this thread pass over the keys.
struct exclude_keys : key_guard {
  explicit exclude_keys(dispatch_key_set k) : key_guard(this_thread_state.included, this_thread_state.excluded | k) {}
};
/// Neither modes nor subclasses see the calls of this scope (MD-13).
struct no_dispatch : exclude_keys {
  no_dispatch() : exclude_keys({dispatch_key::dispatch_mode, dispatch_key::subclass}) {}
};

} // namespace varve

// ---- varve/dispatch/dispatch_table.hpp
namespace varve {

/// A kernel for boxed calls, with what it was made of. It is given the keys of the call, so that it may redispatch to lower ones.
struct boxed_kernel {
  tensor (*call)(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) = nullptr;
  void* self = nullptr;
  constexpr bool operator==(boxed_kernel const&) const = default;
};
/// A rule of one operator for one kind of interpreter (FS-14), with what it was made of.
struct interpreter_rule {
  tensor (*call)(void* self, layer& in, boxed_op const& op, boxed_args const& x) = nullptr;
  void* self = nullptr;
  char const* kind = "";
  constexpr bool operator==(interpreter_rule const&) const = default;
};

/// Kernels of one operator by key, as `resolve` chose them; none where it falls through. It never changes: registering makes another.
struct dispatch_table {
  dispatch_key_set stops;
  kernel_inventory kernels;
  boxed_kernel at[dispatch_key_count];
  static constexpr int most_rules = 6;
  interpreter_rule rules[most_rules];
  /// The kernel that runs under a transform in place of rules, for an operator that is only a composite.
  boxed_kernel composite;
  constexpr bool operator==(dispatch_table const&) const = default;
};

namespace detail {
VARVE_COLD inline std::string names_of(dispatch_key_set s) {
  std::string r;
  for (int k = dispatch_key_count - 1; k > 0; --k)
    if (s.has(static_cast<dispatch_key>(k))) r += (r.empty() ? "" : ", ") + std::string(name(static_cast<dispatch_key>(k)));
  return r.empty() ? "none" : r;
}
VARVE_COLD inline std::string kernels_of(kernel_inventory const& i) {
  std::string r;
  auto const say = [&](bool has, char const* what) {
    if (has) r += (r.empty() ? "" : ", ") + std::string(what);
  };
  for (int k = 1; k < dispatch_key_count; ++k) say(i.has(static_cast<dispatch_key>(k)), name(static_cast<dispatch_key>(k)));
  say(i.autograd, "autograd");
  say(i.composite_implicit, "composite_implicit");
  say(i.composite_explicit, "composite_explicit");
  say(i.composite_explicit_non_functional, "composite_explicit_non_functional");
  return r.empty() ? "none" : r;
}
// The kernels that all operators share; they stand below, in tensor_dispatch.hpp and in subclass.hpp.
tensor no_kernel(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const&);
tensor call_kernel(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);
tensor call_meta(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);
tensor call_transform(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_transform_back(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_mode(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_subclass(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
template <layer_stack thread_state::* Stack>
tensor call_stack(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

/// Eager autograd, which stands above: what happens at the autograd key to tensors with a history, and to the histories of views that were written into. Null until the
/// program asks for a first gradient.
struct autograd_hooks {
  tensor (*call)(boxed_op const& op, dispatch_key_set below, boxed_args const& x);
  /// Writes down a call that is done already; `y` is its result.
  void (*record)(boxed_op const& op, tensor const& y, operand_list x);
  edge (*history_of_view)(tensor const& base, tensor const& view);
  edge (*history_of_base)(tensor const& base, edge const& old, tensor const& view, grad_node* written, int target);
  /// Keeps the gradient of a result of a node.
  void (*retain)(edge const& e);
  /// Writes into a node where it was recorded (`anomaly_mode`).
  void (*note)(grad_node& n);
};
inline constinit std::atomic<autograd_hooks const*> autograd_kernels{nullptr};
tensor call_autograd(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_layer(layer& top, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

constexpr void place(dispatch_table& t, dispatch_key k, boxed_kernel const& f) { t.at[static_cast<int>(k)] = f; }
/// The kernels every operator has unless others are registered.
constexpr dispatch_table built_in_table() {
  dispatch_table t;
  t.kernels = built_in_kernels;
  t.stops = stops_of(built_in_kernels, built_in_fallbacks);
  for (int k = 0; k < dispatch_key_count; ++k)
    if (k == 0 || resolve(built_in_kernels, built_in_fallbacks, static_cast<dispatch_key>(k)) != resolution::fallthrough) t.at[k].call = &no_kernel;
  place(t, dispatch_key::cpu, {&call_kernel});
  place(t, dispatch_key::meta, {&call_meta});
  place(t, dispatch_key::transform, {&call_transform});
  place(t, dispatch_key::transform_back, {&call_transform_back});
  place(t, dispatch_key::dispatch_mode, {&call_mode});
  place(t, dispatch_key::subclass, {&call_subclass});
  place(t, dispatch_key::pre_dispatch, {&call_stack<&thread_state::pre_dispatch>});
  place(t, dispatch_key::function_mode, {&call_stack<&thread_state::functions>});
  return t;
}
/// The table of operators nobody registered anything for.
inline constexpr dispatch_table unregistered = built_in_table();

inline dispatch_table const& table_of(boxed_op const& op) {
  dispatch_table const* t = op.table->registered->load(std::memory_order_acquire);
  return t ? *t : unregistered;
}

/// What stands in a table where `resolve` found nothing, or two.
VARVE_COLD inline tensor no_kernel(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const&) {
  dispatch_table const& t = table_of(op);
  std::string const op_name = "varve: operator " + std::string(op.name());
  dispatch_key const k = (keys & t.stops).highest();
  if (k == dispatch_key::autograd_other && t.kernels.composite_implicit && t.kernels.has_backend_kernel())
    throw dispatch_error((op_name + " is ambiguous at autograd_other: it has a composite_implicit kernel and kernels for backends (" + kernels_of(t.kernels) +
                          "); register one for autograd_other")
                             .c_str());
  throw missing_rule((op_name + " has no kernel for " + name(k) + "; it has: " + kernels_of(t.kernels) + "; register one with library::impl(\"" + op.name() +
                      "\", dispatch_key::" + name(k) + ", kernel)")
                         .c_str());
}
} // namespace detail

tensor redispatch(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
namespace detail {
/// Autograd: of the transform that kernels of a library work for, else eager.
VARVE_NOINLINE inline tensor call_autograd(boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  if (this_thread_state.included.has(dispatch_key::transform_back) && this_thread_state.transforms.top) [[unlikely]]
    return call_layer(*this_thread_state.transforms.top, op, keys, x);
  dispatch_key_set const below = keys.below(dispatch_key::autograd_functionality);
  autograd_hooks const* const h = autograd_kernels.load(std::memory_order_acquire);
  return h ? h->call(op, below, x) : redispatch(op, below, x);
}
} // namespace detail

/// Goes on with a call at the highest of some keys: a kernel that adds to an operator hands the call on by `redispatch(op, keys.below(its key), args)`, whereas calling
/// `op(args)` starts from the top (DK-8).
inline tensor redispatch(boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  dispatch_table const& t = detail::table_of(op);
  dispatch_key_set const stops = keys.may_have_history() ? t.stops | dispatch_key::autograd_functionality : t.stops;
  while (true) {
    dispatch_key const k = (keys & stops).highest();
    boxed_kernel const& f = t.at[static_cast<int>(k)];
    if (f.call) [[likely]]
      return f.call(f.self, op, keys, x);
    if (keys.may_have_history() && is_autograd(k)) return detail::call_autograd(op, keys, x);
    keys = keys.below(k); // stops at the autograd of another backend only
  }
}

} // namespace varve

// ---- varve/core/spin_lock.hpp
namespace varve::detail {

/// Keeps threads apart for the few instructions that a list is read or a table replaced: one byte, and no `<mutex>` in every unit. A copy is a lock
/// of its own, so that what holds one can be copied. In constant expressions nothing is done.
class spin_lock {
public:
  constexpr spin_lock() = default;
  constexpr spin_lock(spin_lock const&) noexcept {}
  constexpr spin_lock& operator=(spin_lock const&) noexcept { return *this; }

  /// Holds the lock for the life of the object.
  class held {
  public:
    constexpr explicit held(spin_lock& l) : lock_(l) {
      if (!std::is_constant_evaluated()) lock_.acquire();
    }
    held(held const&) = delete;
    held& operator=(held const&) = delete;
    constexpr ~held() {
      if (!std::is_constant_evaluated()) lock_.busy_.clear(std::memory_order_release);
    }

  private:
    spin_lock& lock_;
  };
  /// Runs `f` with the lock held.
  template <class F>
  constexpr void operator()(F const& f) {
    held const on(*this);
    f();
  }

private:
  void acquire() {
    while (busy_.test_and_set(std::memory_order_acquire))
      while (busy_.test(std::memory_order_relaxed)) {} // waiting threads read only, which leaves the line to the one that holds it
  }
  std::atomic_flag busy_{};
};

} // namespace varve::detail

// ---- varve/kernel/convert.hpp
#include <limits>

// ---- varve/kernel/batch.hpp
#include <cmath>
#if VARVE_USE_XSIMD
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized" // g++ 12 warns of its own AVX-512 header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#endif
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// SIMD batches: the only header that includes xsimd, and the only one that knows its versions (8.1 to 14). Without xsimd a batch is one scalar.
/// Users include `simd.hpp`, which adds what is common to both.
namespace varve::kernel {

/// Element types that have batches; `bool` and `uint8` go through plain loops, which the compiler vectorizes.
template <class T>
concept lane = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

#if VARVE_USE_XSIMD

#if XSIMD_VERSION_MAJOR < 9 && defined(__AVX512F__) && !defined(__OPTIMIZE__)
/// Instruction set of the batches. xsimd 8.1 passes run-time shift counts where AVX-512 wants constants: AVX2 without optimization.
using arch = xsimd::fma3<xsimd::avx2>;
#else
/// Instruction set of the batches: what the compiler's flags say.
using arch = xsimd::default_arch;
#endif

/// Several elements of type `T` (float, double, int32, int64) in one register.
template <class T>
using batch = xsimd::batch<T, arch>;
/// Lanes chosen by a comparison of two batches.
template <class T>
using mask = xsimd::batch_bool<T, arch>;

namespace detail {
template <class V>
struct element {
  using type = V;
  static constexpr bool is_batch = false;
};
template <class T, class A>
struct element<xsimd::batch<T, A>> {
  using type = T;
  static constexpr bool is_batch = true;
};
} // namespace detail

/// Loads a whole batch from any address.
template <lane T>
VARVE_INLINE batch<T> load(T const* p) {
  return batch<T>::load_unaligned(p);
}
/// Stores a whole batch to any address.
template <lane T>
VARVE_INLINE void store(T* p, batch<T> const& v) {
  v.store_unaligned(p);
}
/// Lanes of `a` where `m` holds, of `b` elsewhere.
template <lane T>
VARVE_INLINE batch<T> select(mask<T> const& m, batch<T> const& a, batch<T> const& b) {
  return xsimd::select(m, a, b);
}
/// Whether a comparison holds in any lane.
template <lane T>
VARVE_INLINE bool any(mask<T> const& m) {
  return xsimd::any(m);
}
/// a != b, true for NaN. (xsimd 8.1 has the ordered comparison there.)
template <lane T>
VARVE_INLINE mask<T> differ(batch<T> const& a, batch<T> const& b) {
  return !(a == b);
}
/// a * b + c, rounded once where the hardware can. (xsimd 8.1 does not use that instruction of AVX-512.)
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fmadd_pd(a, b, c);
  else
#endif
    return xsimd::fma(a, b, c);
}
/// c - a * b, rounded once where the hardware can.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fnmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fnmadd_pd(a, b, c);
  else
#endif
    return xsimd::fnma(a, b, c);
}
/// -a, whose zeros have signs. (xsimd computes 0 - a with AVX-512.)
template <lane T>
VARVE_INLINE batch<T> negate(batch<T> const& a) {
#ifdef __AVX512F__
  if constexpr (std::is_floating_point_v<T> && sizeof(batch<T>) == 64) return batch<T>(-a.data);
  else
#endif
    return -a;
}
namespace detail {
/// The bits of a batch as a batch of `To` (the library's own function changed its template arguments between versions).
template <class To, class From>
VARVE_INLINE batch<To> bits(batch<From> const& v) {
  return std::bit_cast<batch<To>>(v);
}
/// The bits of a batch as unsigned integers, which shift and wrap everywhere.
template <class T>
VARVE_INLINE auto raw_bits(batch<T> const& v) {
  return detail::bits<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(v);
}
template <class T, class U>
VARVE_INLINE batch<T> from_raw_bits(batch<U> const& v) {
  return detail::bits<T>(v);
}
/// The number whose bits are those of `one` plus the bits of `v` shifted left: builds powers of two.
template <int N, class I, class T>
VARVE_INLINE batch<T> shift_left(batch<T> const& v, batch<T> const& one) {
  return detail::bits<T>((detail::bits<I>(v) << N) + detail::bits<I>(one));
}
template <class T>
VARVE_INLINE T lane_sum(batch<T> const& v) {
  if constexpr (requires { reduce_add(v); }) return reduce_add(v);
  else return hadd(v); // 8.1
}
} // namespace detail

/// The functions of xsimd that `math.hpp` builds on, one name for xsimd and the scalar path.
namespace library {
using xsimd::abs, xsimd::ceil, xsimd::copysign, xsimd::cos, xsimd::erf, xsimd::floor, xsimd::log1p, xsimd::nearbyint, xsimd::sin, xsimd::sqrt,
    xsimd::tan, xsimd::trunc;
} // namespace library

#else // the scalar path

/// One element that behaves as a batch of width 1; integers wrap, as in registers.
template <class T>
struct batch {
  using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>, std::type_identity<T>>::type;
  T v;
  batch() = default;
  constexpr batch(T x) : v(x) {}
  friend constexpr batch operator+(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) + static_cast<W>(b.v)); }
  friend constexpr batch operator-(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) - static_cast<W>(b.v)); }
  friend constexpr batch operator*(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) * static_cast<W>(b.v)); }
  friend constexpr batch operator/(batch a, batch b) { return static_cast<T>(a.v / b.v); }
  friend constexpr batch operator-(batch a) { return static_cast<T>(-static_cast<W>(a.v)); }
  constexpr batch& operator+=(batch b) { return *this = *this + b; }
  constexpr batch& operator-=(batch b) { return *this = *this - b; }
  constexpr batch& operator*=(batch b) { return *this = *this * b; }
  constexpr batch& operator/=(batch b) { return *this = *this / b; }
  friend constexpr bool operator<(batch a, batch b) { return a.v < b.v; }
  friend constexpr bool operator>(batch a, batch b) { return a.v > b.v; }
  friend constexpr bool operator<=(batch a, batch b) { return a.v <= b.v; }
  friend constexpr bool operator>=(batch a, batch b) { return a.v >= b.v; }
  friend constexpr bool operator==(batch a, batch b) { return a.v == b.v; }
  friend constexpr bool operator!=(batch a, batch b) { return a.v != b.v; }
};
/// Result of a comparison of two batches.
template <class T>
using mask = bool;

namespace detail {
template <class V>
struct element {
  using type = V;
  static constexpr bool is_batch = false;
};
template <class T>
struct element<batch<T>> {
  using type = T;
  static constexpr bool is_batch = true;
};
} // namespace detail

/// Loads a batch.
template <lane T>
VARVE_INLINE batch<T> load(T const* p) {
  return *p;
}
/// Stores a batch.
template <lane T>
VARVE_INLINE void store(T* p, batch<T> const& v) {
  *p = v.v;
}
/// `a` if `m` holds, else `b`.
template <lane T>
VARVE_INLINE batch<T> select(bool m, batch<T> const& a, batch<T> const& b) {
  return m ? a : b;
}
/// Whether a comparison holds.
template <lane T>
VARVE_INLINE bool any(bool m) {
  return m;
}
/// a != b, true for NaN.
template <lane T>
VARVE_INLINE bool differ(batch<T> const& a, batch<T> const& b) {
  return a.v != b.v;
}
/// a * b + c; rounded twice where the hardware has no such instruction, since the library's exact version is slow there.
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return a * b + c;
}
/// c - a * b.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return c - a * b;
}
/// -a.
template <lane T>
VARVE_INLINE batch<T> negate(batch<T> const& a) {
  return -a;
}
namespace detail {
template <class T>
VARVE_INLINE auto raw_bits(batch<T> const& v) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(v.v);
}
template <class T, class U>
VARVE_INLINE batch<T> from_raw_bits(U v) {
  return std::bit_cast<T>(v);
}
template <int N, class I, class T>
VARVE_INLINE batch<T> shift_left(batch<T> const& v, batch<T> const& one) {
  using U = std::make_unsigned_t<I>;
  return std::bit_cast<T>(static_cast<U>((std::bit_cast<U>(v.v) << N) + std::bit_cast<U>(one.v)));
}
template <class T>
VARVE_INLINE T lane_sum(batch<T> const& v) {
  return v.v;
}
} // namespace detail

/// The functions that `math.hpp` builds on.
namespace library {
template <class T> VARVE_INLINE batch<T> abs(batch<T> x) { return x.v < 0 ? -x : x.v == 0 ? batch<T>(T(0)) : x; }
template <class T> VARVE_INLINE batch<T> ceil(batch<T> x) { return std::ceil(x.v); }
template <class T> VARVE_INLINE batch<T> copysign(batch<T> x, batch<T> y) { return std::copysign(x.v, y.v); }
template <class T> VARVE_INLINE batch<T> cos(batch<T> x) { return std::cos(x.v); }
template <class T> VARVE_INLINE batch<T> erf(batch<T> x) { return std::erf(x.v); }
template <class T> VARVE_INLINE batch<T> floor(batch<T> x) { return std::floor(x.v); }
template <class T> VARVE_INLINE batch<T> log1p(batch<T> x) { return std::log1p(x.v); }
template <class T> VARVE_INLINE batch<T> nearbyint(batch<T> x) { return std::nearbyint(x.v); }
template <class T> VARVE_INLINE batch<T> sin(batch<T> x) { return std::sin(x.v); }
template <class T> VARVE_INLINE batch<T> sqrt(batch<T> x) { return std::sqrt(x.v); }
template <class T> VARVE_INLINE batch<T> tan(batch<T> x) { return std::tan(x.v); }
template <class T> VARVE_INLINE batch<T> trunc(batch<T> x) { return std::trunc(x.v); }
} // namespace library

#endif

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// ---- varve/kernel/simd.hpp
/// @file
/// What all batches have in common: traits, partial loads and stores, horizontal folds, conditions as lanes, transposition.
namespace varve::kernel {

/// Whether `V` is a batch.
template <class V>
inline constexpr bool is_batch = detail::element<V>::is_batch;
/// Element type of a batch; a scalar is its own element.
template <class V>
using element_t = typename detail::element<V>::type;
/// Elements in one batch of `T`.
template <class T>
inline constexpr std::size_t lanes = sizeof(batch<T>) / sizeof(T);

/// A value `V` (scalar or batch) with `x` in every lane.
template <class V>
constexpr V broadcast(element_t<V> x) {
  return V(x);
}

namespace detail {
/// Copies the first `n` < lanes elements in pieces of constant size.
template <class T>
VARVE_INLINE void copy_first(T* to, T const* from, std::size_t n) {
#pragma GCC unroll 4
  for (std::size_t piece = lanes<T> / 2; piece > 0; piece /= 2)
    if ((n & piece) != 0) {
      std::memcpy(to, from, piece * sizeof(T));
      to += piece, from += piece;
    }
}
/// Read from element 8 - n on: a mask of n lanes.
inline constexpr std::int32_t mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
} // namespace detail

/// Loads the first `n` < lanes elements; the others become 0 and their memory is not touched.
template <lane T>
VARVE_INLINE batch<T> load_first(T const* p, std::size_t n) {
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  if constexpr (sizeof(batch<T>) == 64) {
    if constexpr (std::is_same_v<T, float>) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
    else if constexpr (std::is_same_v<T, double>) return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
    else if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1), p);
    else return _mm512_maskz_loadu_epi64(static_cast<__mmask8>((1u << n) - 1), p);
  } else
#endif
#if VARVE_USE_XSIMD && defined(__AVX2__)
  if constexpr (sizeof(batch<T>) == 32) {
    __m256i const m = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(detail::mask_bits + 8 - n * (sizeof(T) / 4)));
    if constexpr (std::is_same_v<T, float>) return _mm256_maskload_ps(p, m);
    else if constexpr (std::is_same_v<T, double>) return _mm256_maskload_pd(p, m);
    else if constexpr (sizeof(T) == 4) return _mm256_maskload_epi32(p, m);
    else return _mm256_maskload_epi64(reinterpret_cast<long long const*>(p), m);
  } else
#endif
  {
    T first[lanes<T>]{};
    detail::copy_first(first, p, n);
    return kernel::load(first);
  }
}
/// Loads the first 0 < `n` < lanes elements; the others are copies of the first, so that no function sees a value that is not the caller's.
template <lane T>
VARVE_INLINE batch<T> load_filled(T const* p, std::size_t n) {
  static_assert(lanes<T> <= 16);
  constexpr T index[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  T first;
  std::memcpy(&first, p, sizeof(T)); // the memory may hold another type of this size
  return kernel::select<T>(kernel::load(index) < batch<T>(static_cast<T>(n)), kernel::load_first(p, n), batch<T>(first));
}
/// Stores the first `n` < lanes elements; the memory of the others is not touched.
template <lane T>
VARVE_INLINE void store_first(T* p, std::size_t n, batch<T> const& v) {
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  if constexpr (sizeof(batch<T>) == 64) {
    if constexpr (std::is_same_v<T, float>) _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
    else if constexpr (std::is_same_v<T, double>) _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
    else if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1u << n) - 1), v);
    else _mm512_mask_storeu_epi64(p, static_cast<__mmask8>((1u << n) - 1), v);
  } else
#endif
  { // not the masked store of AVX2, which is slow on some processors
    T first[lanes<T>];
    kernel::store(first, v);
    detail::copy_first<T>(p, first, n);
  }
}

/// Sum of all lanes.
template <lane T>
VARVE_INLINE T reduce_sum(batch<T> const& v) {
  return detail::lane_sum<T>(v);
}
/// Combines all lanes by `f(T, T)`, in order. (xsimd 8.1 has no horizontal maximum.)
template <lane T, class F>
VARVE_INLINE T reduce_lanes(batch<T> const& v, F f) {
  T all[lanes<T>];
  kernel::store(all, v);
  T r = all[0];
  for (std::size_t i = 1; i < lanes<T>; ++i) r = f(r, all[i]);
  return r;
}

namespace detail {
/// Interleaves the low (High = 0) or high halves of two batches. Not xsimd's zip: that of 8.1 works within 128-bit parts.
template <std::size_t High, class T, std::size_t... I>
VARVE_INLINE batch<T> interleave(batch<T> const& a, batch<T> const& b, std::index_sequence<I...>) {
  constexpr std::size_t L = lanes<T>;
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(__builtin_shufflevector(std::bit_cast<native>(a), std::bit_cast<native>(b), (I / 2 + High * L / 2 + I % 2 * L)...));
}
} // namespace detail
/// Rows of a square of lanes x lanes elements become its columns, in registers.
template <lane T>
VARVE_INLINE void transpose(batch<T>* r) {
  constexpr std::size_t L = lanes<T>;
  if constexpr (L > 1) {
#pragma GCC unroll 4
    for (std::size_t stage = 1; stage < L; stage *= 2) {
      batch<T> s[L];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < L / 2; ++i) {
        s[2 * i] = detail::interleave<0>(r[i], r[i + L / 2], std::make_index_sequence<L>{});
        s[2 * i + 1] = detail::interleave<1>(r[i], r[i + L / 2], std::make_index_sequence<L>{});
      }
#pragma GCC unroll 16
      for (std::size_t i = 0; i < L; ++i) r[i] = s[i];
    }
  }
}

/// 1 where `m` holds, else 0: in fused code a boolean lives in the lane type.
template <lane T>
VARVE_INLINE batch<T> from_mask(mask<T> const& m) {
  return kernel::select<T>(m, batch<T>(T(1)), batch<T>(T(0)));
}
/// The lanes that are not 0.
template <lane T>
VARVE_INLINE mask<T> to_mask(batch<T> const& v) {
  return kernel::differ(v, batch<T>(T(0)));
}

/// Applies a scalar function lane by lane: for what has no vector instruction (integer division, `fmod`).
template <lane T, class F, class... B>
VARVE_INLINE batch<T> lanewise(F f, batch<T> const& a, B const&... b) {
  T x[1 + sizeof...(B)][lanes<T>];
  kernel::store(x[0], a);
  [[maybe_unused]] std::size_t k = 0;
  (kernel::store(x[++k], b), ...);
  for (std::size_t i = 0; i < lanes<T>; ++i) {
    if constexpr (sizeof...(B) == 0) x[0][i] = f(x[0][i]);
    else if constexpr (sizeof...(B) == 1) x[0][i] = f(x[0][i], x[1][i]);
    else x[0][i] = f(x[0][i], x[1][i], x[2][i]);
  }
  return kernel::load(x[0]);
}

} // namespace varve::kernel

// ---- varve/kernel/strided.hpp
/// @file
/// Walking over strided memory without knowing its element type: dimensions sorted and merged, rows gathered, and the copy.
namespace varve::kernel {

/// Memory of a value: its first element, strides in elements aligned with the sizes it is used with (0 = broadcast), and bytes of one element.
struct operand {
  void* data;
  index_t const* strides;
  int itemsize;
  operand() = default;
  operand(void* d, index_t const* s, int bytes) : data(d), strides(s), itemsize(bytes) {}
  /// An input: only read, though held as one kind of pointer with the output.
  operand(void const* d, index_t const* s, int bytes) : data(const_cast<void*>(d)), strides(s), itemsize(bytes) {}
};

namespace detail {
inline constexpr int max_operands = 9; // an output and eight inputs

inline bool is_contiguous(dims const& sizes, index_t const* strides) {
  index_t expected = 1;
  for (int d = sizes.n - 1; d >= 0; --d) {
    if (sizes.v[d] != 1 && strides[d] != expected) return false;
    expected *= sizes.v[d];
  }
  return true;
}

template <int Bytes>
inline void gather_items(char* to, index_t to_stride, char const* from, index_t from_stride, index_t n) {
  if (to_stride == Bytes && from_stride == Bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(n * Bytes));
    return;
  }
  index_t i = 0;
  if constexpr (Bytes >= 4)
    if (to_stride == Bytes && from_stride == 0) { // one element repeated
      using T = std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>;
      T x;
      std::memcpy(&x, from, Bytes);
      for (constexpr index_t L = lanes<T>; i + L <= n; i += L) {
        batch<T> const v(x);
        std::memcpy(to + i * Bytes, &v, sizeof(v));
      }
    }
  to += i * to_stride;
  from += i * from_stride;
  for (; i < n; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, Bytes);
}
/// Copies `n` items of 1, 2, 4 or 8 bytes between strides in bytes.
VARVE_NOINLINE inline void gather(void* to, index_t to_stride, void const* from, index_t from_stride, index_t n, int itemsize) {
  auto* const t = static_cast<char*>(to);
  auto const* const s = static_cast<char const*>(from);
  if (itemsize == 4) detail::gather_items<4>(t, to_stride, s, from_stride, n);
  else if (itemsize == 8) detail::gather_items<8>(t, to_stride, s, from_stride, n);
  else if (itemsize == 2) detail::gather_items<2>(t, to_stride, s, from_stride, n);
  else detail::gather_items<1>(t, to_stride, s, from_stride, n);
}

/// The rows of an output and its inputs: dimensions sorted so that the output's smallest strides are innermost, neighbours merged where every operand allows.
struct walk {
  int rank = 0, count = 0;
  index_t size[max_rank]{}, at[max_rank]{};
  index_t stride[max_rank][max_operands]; // in bytes; operand 0 is the output
  char* data[max_operands];               // the current row
  int itemsize[max_operands];

  VARVE_NOINLINE walk(dims const& sizes, operand const& out, operand const* in, int inputs) : count(inputs + 1) {
    for (int k = 0; k < count; ++k) {
      operand const& o = k == 0 ? out : in[k - 1];
      data[k] = static_cast<char*>(o.data);
      itemsize[k] = o.itemsize;
    }
    for (int d = 0; d < sizes.n; ++d) {
      if (sizes.v[d] == 1) continue;
      index_t s[max_operands];
      for (int k = 0; k < count; ++k) s[k] = (k == 0 ? out : in[k - 1]).strides[d] * itemsize[k];
      int place = rank;
      while (place > 0 && is_outer(s, stride[place - 1])) --place;
      for (int e = rank; e > place; --e) move(e, e - 1);
      size[place] = sizes.v[d];
      for (int k = 0; k < count; ++k) stride[place][k] = s[k];
      ++rank;
    }
    merge();
    if (rank == 0) {
      size[0] = rank = 1;
      for (int k = 0; k < count; ++k) stride[0][k] = itemsize[k];
    }
  }

  /// Moves to the next row; false after the last, when everything is back at the first.
  bool next() {
    for (int d = rank - 2; d >= 0; --d) {
      bool const wraps = ++at[d] == size[d];
      if (wraps) at[d] = 0;
      for (int k = 0; k < count; ++k) data[k] += wraps ? -stride[d][k] * (size[d] - 1) : stride[d][k];
      if (!wraps) return true;
    }
    return false;
  }
  /// Whether an operand's elements follow each other in the order of the walk.
  bool adjacent(int k) const {
    index_t expected = itemsize[k];
    for (int d = rank - 1; d >= 0; expected *= size[d--])
      if (stride[d][k] != expected) return false;
    return true;
  }
  /// Whether an operand is one element, broadcast.
  bool constant(int k) const {
    for (int d = 0; d < rank; ++d)
      if (stride[d][k] != 0) return false;
    return true;
  }

private:
  static index_t magnitude(index_t x) { return x < 0 ? -x : x; }
  /// Whether a dimension of strides `a` belongs outside one of strides `b`: the first operand that is broadcast in neither decides.
  bool is_outer(index_t const* a, index_t const* b) const {
    for (int k = 0; k < count; ++k)
      if (a[k] != 0 && b[k] != 0 && magnitude(a[k]) != magnitude(b[k])) return magnitude(a[k]) > magnitude(b[k]);
    return false;
  }
  void move(int to, int from) {
    size[to] = size[from];
    for (int k = 0; k < count; ++k) stride[to][k] = stride[from][k];
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool fits = true;
      for (int k = 0; k < count; ++k) fits = fits && stride[last][k] == stride[d][k] * size[d];
      index_t const n = fits ? size[last] * size[d] : size[d];
      if (!fits) ++last;
      move(last, d);
      size[last] = n;
    }
    if (rank > 0) rank = last + 1;
  }
};

/// A transposition: the input is adjacent along the rows, the output (mostly) along the columns. Squares are turned in registers, the rest goes in tiles, so that
/// neither side leaves the first cache between uses of one of its lines.
template <int Bytes>
VARVE_NOINLINE void copy_tiles(char* to, index_t to_row, index_t to_col, char const* from, index_t from_row, index_t from_col, index_t rows, index_t cols) {
  constexpr index_t tile = 32;
  for (index_t r = 0; r < rows; r += tile)
    for (index_t c = 0; c < cols; c += tile) {
      index_t const h = rows - r < tile ? rows - r : tile, w = cols - c < tile ? cols - c : tile;
      char* const t = to + r * to_row + c * to_col;
      char const* const f = from + r * from_row + c * from_col;
      if constexpr (Bytes >= 4)
        if (h == tile && w == tile && to_col == Bytes && from_row == Bytes) {
          using T = std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>;
          constexpr index_t L = lanes<T>;
          for (index_t i = 0; i < tile; i += L)
            for (index_t j = 0; j < tile; j += L) {
              batch<T> square[lanes<T>];
              for (index_t k = 0; k < L; ++k) std::memcpy(&square[k], f + i * Bytes + (j + k) * from_col, sizeof(batch<T>));
              kernel::transpose<T>(square);
              for (index_t k = 0; k < L; ++k) std::memcpy(t + (i + k) * to_row + j * Bytes, &square[k], sizeof(batch<T>));
            }
          continue;
        }
      for (index_t i = 0; i < h; ++i) detail::gather_items<Bytes>(t + i * to_row, to_col, f + i * from_row, from_col, w);
    }
}
} // namespace detail

/// Copies elements of one type between any strides; a stride 0 of the input broadcasts. The memories may not overlap.
VARVE_NOINLINE inline void copy_strided(dims const& sizes, operand out, operand in) {
  index_t const n = numel(sizes);
  if (n == 0) return;
  if (detail::is_contiguous(sizes, out.strides) && detail::is_contiguous(sizes, in.strides)) {
    std::memcpy(out.data, in.data, static_cast<std::size_t>(n * in.itemsize));
    return;
  }
  detail::walk w(sizes, out, &in, 1);
  int const inner = w.rank - 1;
  int across = -1; // the dimension along which the input is adjacent, when it is not the inner one
  for (int d = 0; d < inner; ++d)
    if (w.stride[d][1] == in.itemsize && w.stride[inner][1] != 0) across = d;
  if (across < 0) {
    do detail::gather(w.data[0], w.stride[inner][0], w.data[1], w.stride[inner][1], w.size[inner], in.itemsize);
    while (w.next());
    return;
  }
  index_t const rows = w.size[across], to_row = w.stride[across][0], from_row = w.stride[across][1];
  w.size[across] = 1; // the walk stays on the other dimensions
  do {
    auto const tiles = in.itemsize == 4 ? detail::copy_tiles<4> : in.itemsize == 8 ? detail::copy_tiles<8> : in.itemsize == 2 ? detail::copy_tiles<2> : detail::copy_tiles<1>;
    tiles(w.data[0], to_row, w.stride[inner][0], w.data[1], from_row, w.stride[inner][1], rows, w.size[inner]);
  } while (w.next());
}

} // namespace varve::kernel

// ---- varve/kernel/pointwise.hpp
/// @file
/// Pointwise kernels on memory: a typed loop over contiguous elements per operator, and one untyped driver for shapes, strides and broadcasting.
namespace varve::kernel {

/// A kernel over `n` contiguous elements: `in` points to as many inputs as the operator has. `out` may be one of the inputs.
using loop = void (*)(std::size_t n, void* out, void const* const* in);

/// A functor may say `static constexpr bool scalar_only = true` when its body cannot be instantiated for batches.
template <class F>
concept scalar_only = requires { requires F::scalar_only; };

namespace detail {
template <class V, std::size_t>
using same = V;
template <class F, class V, std::size_t... I>
constexpr bool maps_batches(std::index_sequence<I...>) {
  return requires(F const& f, same<V, I> const&... x) {
    { f(x...) } -> std::convertible_to<V>;
  };
}
/// Whether `F` is run on batches of `In`.
template <class Out, class In, class F, int Arity>
constexpr bool vectorized() {
  if constexpr (!std::is_same_v<Out, In> || !lane<In> || scalar_only<F>) return false;
  else return detail::maps_batches<F, batch<In>>(std::make_index_sequence<Arity>{});
}
/// A length that is no multiple of the lanes: the last batch overlaps the one before it, and is computed first, since the output may be an input. Too few
/// elements are filled up to a batch. `T` is any type of the operands' item size, so that few of these functions exist.
template <class T, int Arity>
VARVE_NOINLINE void run_uneven(loop f, std::size_t n, T* out, void const* const* in) {
  constexpr std::size_t L = lanes<T>;
  T last[L], filled[Arity][L];
  void const* p[Arity];
  if (n > L) {
#pragma GCC unroll 4
    for (int k = 0; k < Arity; ++k) p[k] = static_cast<T const*>(in[k]) + (n - L);
    f(L, last, p);
    f(n - n % L, out, in);
    std::memcpy(out + (n - L), last, sizeof(last));
    return;
  }
#pragma GCC unroll 4
  for (int k = 0; k < Arity; ++k) {
    kernel::store(filled[k], kernel::load_filled(static_cast<T const*>(in[k]), n));
    p[k] = filled[k];
  }
  f(L, last, p);
  detail::copy_first(out, last, n);
}
template <class T>
using item = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Do registers load and store part of themselves by a mask? Then the last elements need no detour.
template <class Out, class In>
inline constexpr bool masked = [] {
  if constexpr (VARVE_USE_XSIMD && std::is_same_v<Out, In> && std::is_floating_point_v<In>) return sizeof(batch<In>) == 64;
  else return false;
}();

// The inputs are parameters, not an array: a store of a batch might change the array, so that it would be read again for each.
template <class Out, class In, class F, class... P>
VARVE_INLINE void run(std::size_t n, Out* out, P... in) {
  F const f{};
  if constexpr (detail::vectorized<Out, In, F, sizeof...(P)>() && masked<Out, In>)
    for (std::size_t i = 0; i < n; i += lanes<In>) {
      std::size_t const left = n - i < lanes<In> ? n - i : lanes<In>;
      kernel::store_first<In>(out + i, left, batch<In>(f(kernel::load_first(in + i, left)...)));
    }
  else if constexpr (detail::vectorized<Out, In, F, sizeof...(P)>())
    for (std::size_t i = 0; i < n; i += lanes<In>) kernel::store(out + i, batch<In>(f(kernel::load(in + i)...)));
  else
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(in[i]...));
}
template <class Out, class In, class F, std::size_t... I>
VARVE_INLINE void spread(std::size_t n, void* out, void const* const* in, std::index_sequence<I...>) {
  detail::run<Out, In, F>(n, static_cast<Out*>(out), static_cast<In const*>(in[I])...);
}
} // namespace detail

/// The contiguous kernel (a `loop`) of a stateless functor `F` on `Arity` inputs of element type `In`, with results of type `Out`: in batches when `F`
/// takes them and `Out` is `In`; otherwise element by element. (Flattened, so that the body of `F` is inlined and its constants stay in registers.)
template <class Out, class In, class F, int Arity>
__attribute__((flatten)) void contiguous(std::size_t n, void* out, void const* const* in) {
  if constexpr (detail::vectorized<Out, In, F, Arity>() && !detail::masked<Out, In>)
    if (n % lanes<In> != 0) return detail::run_uneven<detail::item<In>, Arity>(contiguous<Out, In, F, Arity>, n, static_cast<detail::item<In>*>(out), in);
  detail::spread<Out, In, F>(n, out, in, std::make_index_sequence<Arity>{});
}

namespace detail {
inline constexpr index_t block = 256; // elements packed at a time: 2 KiB an operand stays in the first cache

/// Rows long enough to be calls of their own. Operands whose elements are not adjacent go through blocks.
VARVE_NOINLINE inline void pointwise_rows(walk& w, loop f) {
  alignas(64) unsigned char packed[max_operands][block * 8];
  char const* repeated[max_operands]{}; // where a broadcast operand's block was filled from
  index_t const n = w.size[w.rank - 1];
  index_t const* stride = w.stride[w.rank - 1];
  bool direct = true;
  for (int k = 0; k < w.count; ++k) direct = direct && stride[k] == w.itemsize[k];
  do {
    for (index_t i = 0; i < n; i += direct ? n : block) {
      index_t const m = direct || n - i < block ? n - i : block;
      void* p[max_operands];
      for (int k = 0; k < w.count; ++k) {
        char* const source = w.data[k] + i * stride[k];
        p[k] = stride[k] == w.itemsize[k] ? static_cast<void*>(source) : packed[k];
        if (k == 0 || p[k] == source || repeated[k] == source) continue;
        bool const broadcast = stride[k] == 0;
        detail::gather(packed[k], w.itemsize[k], source, stride[k], broadcast ? (n < block ? n : block) : m, w.itemsize[k]);
        repeated[k] = broadcast ? source : nullptr;
      }
      f(static_cast<std::size_t>(m), p[0], p + 1);
      if (p[0] == packed[0]) detail::gather(w.data[0] + i * stride[0], stride[0], packed[0], w.itemsize[0], m, w.itemsize[0]);
    }
  } while (w.next());
}

/// Short rows: as many as fit are packed together.
VARVE_NOINLINE inline void pointwise_short_rows(walk& w, loop f) {
  alignas(64) unsigned char packed[max_operands][block * 8];
  char* target[block];
  index_t const n = w.size[w.rank - 1], rows = block / n;
  index_t const* stride = w.stride[w.rank - 1];
  bool adjacent[max_operands], constant[max_operands];
  char* start[max_operands];
  for (int k = 0; k < w.count; ++k) {
    adjacent[k] = w.adjacent(k);
    constant[k] = k > 0 && w.constant(k);
    start[k] = w.data[k];
    if (constant[k]) detail::gather(packed[k], w.itemsize[k], w.data[k], 0, block, w.itemsize[k]);
  }
  for (bool more = true; more;) {
    index_t r = 0;
    for (; more && r < rows; ++r) {
      target[r] = w.data[0];
      for (int k = 1; k < w.count; ++k)
        if (!adjacent[k] && !constant[k]) detail::gather(packed[k] + r * n * w.itemsize[k], w.itemsize[k], w.data[k], stride[k], n, w.itemsize[k]);
      more = w.next();
    }
    void* p[max_operands];
    for (int k = 0; k < w.count; ++k) {
      p[k] = adjacent[k] ? static_cast<void*>(start[k]) : packed[k];
      start[k] += r * n * w.itemsize[k];
    }
    f(static_cast<std::size_t>(r * n), p[0], p + 1);
    if (!adjacent[0])
      for (index_t i = 0; i < r; ++i) detail::gather(target[i], stride[0], packed[0] + i * n * w.itemsize[0], w.itemsize[0], n, w.itemsize[0]);
  }
}
} // namespace detail

/// Runs a contiguous kernel over operands of common `sizes` with any strides: 0 broadcasts an input, negative ones are fine, rank 0 is one element, an
/// empty shape does nothing. At most 8 inputs. `out` may be strided and may be the same memory as an input; it may not overlap one otherwise, nor itself.
VARVE_NOINLINE inline void pointwise(dims const& sizes, operand out, operand const* in, int count, loop f) {
  index_t const n = numel(sizes);
  if (n == 0) return;
  bool contiguous = detail::is_contiguous(sizes, out.strides);
  for (int k = 0; k < count && contiguous; ++k) contiguous = detail::is_contiguous(sizes, in[k].strides);
  if (contiguous) {
    void const* p[detail::max_operands];
    for (int k = 0; k < count; ++k) p[k] = in[k].data;
    return f(static_cast<std::size_t>(n), out.data, p);
  }
  detail::walk w(sizes, out, in, count);
  if (w.rank == 1 || w.size[w.rank - 1] >= 32) detail::pointwise_rows(w, f);
  else detail::pointwise_short_rows(w, f);
}

} // namespace varve::kernel

// ---- varve/kernel/convert.hpp
/// @file
/// Conversion between the six element types.
namespace varve::kernel {

/// Converts one element: anything to bool is `!= 0`, floating to integer truncates (what does not fit becomes the smallest integer of 32 or 64 bits, as
/// x86 has it; uint8 takes the low bits of that), integers wrap.
template <class To, class From>
constexpr To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using W = std::conditional_t<sizeof(To) == 4, std::int32_t, std::int64_t>;
    constexpr From bound = -static_cast<From>(std::numeric_limits<W>::min());
    return static_cast<To>(x >= -bound && x < bound ? static_cast<W>(x) : std::numeric_limits<W>::min());
  } else return static_cast<To>(x);
}

namespace detail {
template <class To, class From>
struct cast_element {
  To operator()(From x) const { return kernel::cast<To>(x); }
};
template <class To>
loop convert_from(dtype from) {
  return on_dtype(from, "convert", []<class From>() -> loop { return contiguous<To, From, cast_element<To, From>, 1>; });
}
} // namespace detail

/// The contiguous kernel that converts one dtype to another; `dtype_error` for those without kernels. (A template only to cost nothing unless used.)
template <class = void>
VARVE_NOINLINE loop convert_loop(dtype to, dtype from) {
  return on_dtype(to, "convert", [from]<class To>() -> loop { return detail::convert_from<To>(from); });
}
/// Converts strided elements; equal dtypes are copied. `out` and `in` may not overlap. The item sizes of the operands must be those of the dtypes.
template <class = void>
void convert(dims const& sizes, operand out, dtype to, operand in, dtype from) {
  if (to == from) kernel::copy_strided(sizes, out, in);
  else kernel::pointwise(sizes, out, &in, 1, kernel::convert_loop<>(to, from));
}

} // namespace varve::kernel

// ---- varve/dispatch/tensor_eval.hpp
namespace varve {

namespace detail {
/// How the elements of a tensor are laid out, for kernels that walk over a broadcast shape.
inline kernel::operand operand_of(tensor const& t, index_t const* strides) { return {t.raw(), strides, itemsize(t.dtype())}; }

/// A copy in another dtype, contiguous. (A template, like its callers, only to cost nothing unless used: it needs the conversions of all pairs of dtypes.)
template <class = void>
VARVE_NOINLINE tensor converted(tensor const& t, dtype type) {
  tensor r = tensor::empty(t.sizes(), type);
  kernel::convert<>(t.sizes(), operand_of(r, r.strides().v), type, operand_of(t, t.strides().v), t.dtype());
  return r;
}
/// The tensor itself when its elements follow one another, else a copy.
VARVE_NOINLINE inline tensor contiguous_copy(tensor const& t) {
  tensor r = tensor::empty(t.sizes(), t.dtype());
  kernel::copy_strided(t.sizes(), operand_of(r, r.strides().v), operand_of(t, t.strides().v));
  return r;
}

/// What the driver of elementwise operators needs to know of one, so that it exists once for all.
struct pointwise_info {
  char const* name;
  int arity;
  int conditions;
  bool floating, comparison;
  /// Contiguous kernels by computing dtype; null where there is none.
  kernel::loop loops[10];
};

template <class Tag>
struct pointwise_functor {
  template <class... V>
  VARVE_INLINE constexpr auto operator()(V const&... v) const {
    return rules<Tag>::kernel(v...);
  }
};
template <class Tag, class T>
constexpr kernel::loop pointwise_loop() {
  using R = rules<Tag>;
  if constexpr (R::promote == promotion::floating && !std::is_floating_point_v<T>) return nullptr;
  else if constexpr (std::is_same_v<T, bool> && requires { requires !R::accepts_bool; }) return nullptr;
  else if constexpr (R::promote == promotion::comparison) return &kernel::contiguous<bool, T, pointwise_functor<Tag>, R::arity>;
  else return &kernel::contiguous<T, T, pointwise_functor<Tag>, R::arity>;
}
template <class Tag>
inline constexpr pointwise_info info_of{Tag::op_name,
                                        rules<Tag>::arity,
                                        rules<Tag>::conditions,
                                        rules<Tag>::promote == promotion::floating,
                                        rules<Tag>::promote == promotion::comparison,
                                        {pointwise_loop<Tag, bool>(), pointwise_loop<Tag, std::uint8_t>(), pointwise_loop<Tag, std::int32_t>(),
                                         pointwise_loop<Tag, std::int64_t>(), nullptr, nullptr, pointwise_loop<Tag, float>(), pointwise_loop<Tag, double>(), nullptr, nullptr}};

VARVE_NOINLINE inline dtype pointwise_type(pointwise_info const& f, tensor const* const* x) {
  meta const first = meta_of(*x[f.conditions]);
  dtype t = first.type;
  if (f.arity - f.conditions == 2) t = result_type(first, meta_of(*x[f.conditions + 1]));
  if (f.arity - f.conditions == 3) t = result_type(first, meta_of(*x[f.conditions + 1]), meta_of(*x[f.conditions + 2]));
  return f.floating && category(t) < 2 ? default_dtype : t;
}

/// The general case: operands of other dtypes are converted, shapes broadcast.
template <class = void>
VARVE_NOINLINE tensor run_pointwise_general(pointwise_info const& f, tensor const* const* x) {
  constexpr int most = 4;
  tensor const* in[most];
  tensor copies[most];
  dtype const t = pointwise_type(f, x);
  bool number = true;
  dims sizes;
  for (int k = 0; k < f.arity; ++k) {
    in[k] = x[k];
    number = number && x[k]->is_number();
    if (x[k]->dtype() != t) {
      copies[k] = converted(*x[k], t);
      in[k] = &copies[k];
    }
    sizes = k ? broadcast(sizes, x[k]->sizes()) : x[k]->sizes();
  }
  kernel::loop const loop = f.loops[static_cast<int>(t)];
  if (!loop) refuse::dtype_is_not_supported(f.name, name(t));
  tensor out = tensor::empty(sizes, f.comparison ? dtype::bool_ : t);
  dims strides[most];
  kernel::operand o[most];
  for (int k = 0; k < f.arity; ++k) {
    strides[k] = broadcast_strides(in[k]->sizes(), in[k]->strides(), sizes);
    o[k] = operand_of(*in[k], strides[k].v);
  }
  kernel::pointwise(sizes, operand_of(out, out.strides().v), o, f.arity, loop);
  if (number) out.mark_number();
  return out;
}
/// Is every element of a tensor the same one: a plain number, or one expanded? `sizes` are those of the other operand.
inline bool repeats_one_element(tensor const& t, tensor const& other) {
  if (t.is_number()) return t.dim() == 0;
  if (t.dtype() != other.dtype() || !(t.sizes() == other.sizes())) return false;
  for (index_t s : t.strides())
    if (s != 0) return false;
  return t.numel() > 0;
}
/// A small floating tensor beside one element: it is repeated in a buffer, and the kernel called once. Undefined when that does not fit.
template <class = void>
VARVE_NOINLINE tensor run_beside_one_element(pointwise_info const& f, tensor const* const* x) {
  constexpr index_t most = 512; // bytes
  for (int at = 1; at >= 0; --at) {
    tensor const &one = *x[at], &other = *x[1 - at];
    dtype const t = other.dtype();
    index_t const n = other.numel();
    kernel::loop const loop = f.loops[static_cast<int>(t)];
    if (!(t == dtype::float32 || t == dtype::float64) || n * itemsize(t) > most || other.is_number() || !other.is_contiguous() || !loop || !repeats_one_element(one, other)) continue;
    alignas(64) unsigned char repeated[most];
    double const v = one.is_number() ? one.item<double>() : t == dtype::float32 ? static_cast<double>(*static_cast<float const*>(one.raw())) : *static_cast<double const*>(one.raw());
    for (index_t k = 0; k < n; ++k) {
      if (t == dtype::float32) reinterpret_cast<float*>(repeated)[k] = static_cast<float>(v);
      else reinterpret_cast<double*>(repeated)[k] = v;
    }
    void const* p[2];
    p[at] = repeated;
    p[1 - at] = other.raw();
    tensor out = tensor::empty(other.sizes(), f.comparison ? dtype::bool_ : t);
    if (n) loop(static_cast<std::size_t>(n), out.raw(), p);
    return out;
  }
  return {};
}
/// Runs an elementwise operator. Operands of one dtype and shape that are contiguous take one call of the kernel.
template <class = void>
VARVE_NOINLINE tensor run_pointwise(pointwise_info const& f, tensor const* const* x) {
  tensor const& first = *x[0];
  dtype const t = first.dtype();
  dims const& sizes = first.sizes();
  bool flat = first.is_contiguous() && !f.conditions && !first.is_number();
  for (int k = 1; flat && k < f.arity; ++k) flat = x[k]->dtype() == t && x[k]->is_contiguous() && x[k]->sizes() == sizes && !x[k]->is_number();
  kernel::loop const loop = f.loops[static_cast<int>(t)];
  if (!flat && f.arity == 2) {
    tensor r = run_beside_one_element<>(f, x);
    if (r.defined()) return r;
  }
  if (!flat || !loop) [[unlikely]]
    return run_pointwise_general(f, x);
  tensor out = tensor::empty(sizes, f.comparison ? dtype::bool_ : t);
  void const* p[4];
  index_t const item = itemsize(t);
  for (int k = 0; k < f.arity; ++k) p[k] = x[k]->raw(item);
  if (index_t const n = out.numel()) loop(static_cast<std::size_t>(n), out.raw(0), p);
  return out;
}

template <class T>
strided<T> strided_of(tensor const& t) {
  return {static_cast<T*>(t.raw()), t.sizes(), t.strides()};
}
template <class R, class T, std::size_t K>
struct operand_element {
  using type = T;
};
template <class R, class T, std::size_t K>
  requires(R::kind == op_kind::indexing && R::arity > 1 && K == 1)
struct operand_element<R, T, K> {
  using type = std::int64_t;
};
template <class R, class T>
struct result_element {
  using type = T;
};
template <class R, class T>
  requires requires { typename R::template result<T>; }
struct result_element<R, T> {
  using type = typename R::template result<T>;
};

template <class Tag, class... X>
VARVE_NOINLINE tensor compute_tensor(attributes const& at, X const&... x) {
  using R = rules<Tag>;
  meta const in[] = {meta_of(x)..., meta{}};
  meta const m = R::shape(at, in, sizeof...(X));
  tensor out = tensor::empty(m.sizes, m.type);
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    on_dtype(nth<0>(x...).dtype(), Tag::op_name, [&]<class T>() {
      R::compute(at, strided_of<typename result_element<R, T>::type>(out), strided_of<typename operand_element<R, T, K>::type const>(x)...);
    });
    return out;
  }(std::index_sequence_for<X...>{});
}
} // namespace detail

/// Computes an operator on tensors that no transform or mode watches: elementwise operators by their kernels, views by sharing storage, all others by `compute`.
template <class Op, class... X>
tensor evaluate_tensor(Op const& op, X const&... x) {
  using tag = typename Op::tag;
  using R = rules<tag>;
  if constexpr (requires { R::make(op.boxed(), x...); }) {
    return R::make(op.boxed(), x...);
  } else if constexpr (R::kind == op_kind::pointwise) {
    tensor const* in[] = {&x...};
    return detail::run_pointwise(detail::info_of<tag>, in);
  } else if constexpr (detail::has_layout<R>) {
    attributes const at = op.boxed();
    auto const& v = nth<0>(x...);
    layout l = R::layout_of(at, v.where());
    constexpr bool is_view = !constant_to_derivatives<tag>; // `detach` gives none
    if (l.expressible) return v.with_layout(l, is_view);
    tensor const copy = detail::contiguous_copy(v);
    return copy.with_layout(R::layout_of(at, copy.where()), false);
  } else if constexpr (R::kind == op_kind::convert) {
    return detail::converted(nth<0>(x...), static_cast<dtype>(to_dims(op.a)[0]));
  } else {
    return detail::compute_tensor<tag>(op.boxed(), x...);
  }
}

} // namespace varve

// ---- varve/dispatch/handle.hpp
namespace varve {

/// One operator as data usable in constant expressions: what graph nodes point to. Its address is its identity.
/// The lane kernels evaluate a pointwise operator on scalars or SIMD registers: `a[k]` is the k-th operand; booleans are 0 and 1.
struct op_handle {
  char const* name;
  op_kind kind;
  /// Number of operands; -1 for any number.
  int arity;
  /// Dtype and shape of the result; refuses what does not fit.
  meta (*shape)(attributes const& at, meta const* in, int count);
  float (*lane_f32)(float const* a) = nullptr;
  double (*lane_f64)(double const* a) = nullptr;
  kernel::batch<float> (*simd_f32)(kernel::batch<float> const* a) = nullptr;
  kernel::batch<double> (*simd_f64)(kernel::batch<double> const* a) = nullptr;
};

namespace detail {
template <class T>
struct lane {
  template <class R, class V, std::size_t... K>
  static constexpr V call(V const* a, std::index_sequence<K...>) {
    return static_cast<V>(R::kernel(a[K]...));
  }
  template <class R, class V>
  static constexpr V run(V const* a) {
    return call<R, V>(a, std::make_index_sequence<static_cast<std::size_t>(R::arity)>{});
  }
};

template <class Tag>
constexpr op_handle make_handle() {
  using R = rules<Tag>;
  op_handle h{Tag::op_name, R::kind, R::arity, &R::shape};
  if constexpr (R::kind == op_kind::pointwise) {
    h.lane_f32 = &lane<float>::run<R, float>;
    h.lane_f64 = &lane<double>::run<R, double>;
    h.simd_f32 = &lane<float>::run<R, kernel::batch<float>>;
    h.simd_f64 = &lane<double>::run<R, kernel::batch<double>>;
  }
  return h;
}
} // namespace detail

/// The operator of a tag as data; its address is its identity in graphs.
template <class Tag>
inline constexpr op_handle handle = detail::make_handle<Tag>();

} // namespace varve

// ---- varve/dispatch/table.hpp
namespace varve {

namespace detail {
template <class Tag, int Facts>
auto rebound(attributes const& at) {
  if constexpr (Facts == 0) return bound<Tag>{};
  else if constexpr (Facts == 1) return bound<Tag, dims>{at[0], {}, {}};
  else if constexpr (Facts == 2) return bound<Tag, dims, dims>{at[0], at[1], {}};
  else return bound<Tag, dims, dims, dims>{at[0], at[1], at[2]};
}
[[noreturn]] VARVE_COLD inline void no_rule(char const* op, char const* interpreter) {
  throw missing_rule((std::string("varve: operator ") + op + " has no rule for " + interpreter + "; add it to its rules<>, or register a rule or a composite_implicit kernel with library::impl").c_str());
}

/// The rules of an operator instantiated on tensors: the same text as for static values.
template <class Tag, int Facts>
struct erased {
  using R = rules<Tag>;
  static constexpr std::size_t arity = static_cast<std::size_t>(R::arity);
  using all = std::make_index_sequence<arity>;

  static tensor eval(attributes const& at, boxed_args const& x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return evaluate_tensor(rebound<Tag, Facts>(at), x[static_cast<int>(K)]...); }(all{});
  }
  template <std::size_t I, std::size_t... K>
  static tensor jvp_at(attributes const& at, tensor const& d, tensor const& y, boxed_args const& x, std::index_sequence<K...>) {
    if constexpr (requires { R::jvp(arg<I>, rebound<Tag, Facts>(at), d, y, x[static_cast<int>(K)]...); }) return R::jvp(arg<I>, rebound<Tag, Facts>(at), d, y, x[static_cast<int>(K)]...);
    else no_rule(Tag::op_name, "jvp");
  }
  template <std::size_t I, std::size_t... K>
  static tensor vjp_at(attributes const& at, tensor const& g, tensor const& y, boxed_args const& x, std::index_sequence<K...>) {
    if constexpr (requires { R::vjp(arg<I>, rebound<Tag, Facts>(at), g, y, x[static_cast<int>(K)]...); }) return R::vjp(arg<I>, rebound<Tag, Facts>(at), g, y, x[static_cast<int>(K)]...);
    else no_rule(Tag::op_name, "grad");
  }
  VARVE_COLD static tensor jvp(int i, attributes const& at, tensor const& d, tensor const& y, boxed_args const& x) {
    if constexpr (!constant_to_derivatives<Tag> && has_jvp<Tag>) {
      tensor r;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (void)((static_cast<int>(I) == i && (r = jvp_at<I>(at, d, y, x, all{}), true)) || ...);
      }(all{});
      return r;
    } else {
      no_rule(Tag::op_name, "jvp");
    }
  }
  VARVE_COLD static tensor vjp(int i, attributes const& at, tensor const& g, tensor const& y, boxed_args const& x) {
    if constexpr (!constant_to_derivatives<Tag> && has_vjp<Tag>) {
      tensor r;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (void)((static_cast<int>(I) == i && (r = vjp_at<I>(at, g, y, x, all{}), true)) || ...);
      }(all{});
      return r;
    } else {
      no_rule(Tag::op_name, "grad");
    }
  }
  VARVE_COLD static tensor batch(attributes const& at, index_t n, boxed_args const& x, bool const* batched) {
    if constexpr (has_batch<Tag>) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return R::batch(rebound<Tag, Facts>(at), dims{n}, operand<tensor, bool>{x[static_cast<int>(K)], batched[K]}...);
      }(all{});
    } else {
      no_rule(Tag::op_name, "vmap");
    }
  }
  VARVE_COLD static tensor meta_of_result(attributes const& at, boxed_args const& x) {
    constexpr int most = 8;
    meta in[most];
    for (int k = 0; k < x.size() && k < most; ++k) in[k] = meta_of(x[k]);
    if constexpr (has_layout<R> && R::kind == op_kind::view) {
      layout const l = R::layout_of(at, x[0].where());
      if (l.expressible) return x[0].with_layout(l);
    }
    if constexpr (R::kind == op_kind::mutation) {
      (void)R::shape(at, in, x.size());
      return x[0];
    } else {
      varve::meta const m = R::shape(at, in, x.size());
      return tensor::meta(m.sizes, m.type);
    }
  }
  static op_handle const* handle_of() { return &handle<Tag>; }
};

template <class R>
constexpr saved_values saved_of() {
  if constexpr (requires { R::saved; }) return R::saved;
  else return {};
}
template <class R>
constexpr char const* schema_of() {
  if constexpr (requires { R::schema; }) return R::schema;
  else return "";
}

/// The kernels registered at run time for an operator; null while there are none.
template <class Tag>
inline constinit std::atomic<dispatch_table const*> registered{nullptr};

/// Tables register themselves by name when a program first contains them.
struct table_entry {
  op_table const* table;
  table_entry* next;
};
inline table_entry*& first_table() {
  static table_entry* first = nullptr;
  return first;
}
/// Held while the list of tables, or what is registered for them, is read or changed.
inline constinit spin_lock lock_of_tables;
struct table_registration {
  table_entry entry;
  explicit table_registration(op_table const* t) : entry{t, nullptr} {
    spin_lock::held const on(lock_of_tables);
    entry.next = first_table();
    first_table() = &entry;
  }
};
} // namespace detail

/// The rules of an operator for tensors.
template <class Tag, int Facts>
inline constexpr op_table table{Tag::op_name,
                                detail::schema_of<rules<Tag>>(),
                                rules<Tag>::arity,
                                !constant_to_derivatives<Tag>,
                                &detail::erased<Tag, Facts>::eval,
                                &detail::erased<Tag, Facts>::jvp,
                                &detail::erased<Tag, Facts>::vjp,
                                &detail::erased<Tag, Facts>::batch,
                                &detail::erased<Tag, Facts>::handle_of,
                                &detail::erased<Tag, Facts>::meta_of_result,
                                &detail::registered<Tag>,
                                detail::saved_of<rules<Tag>>(),
                                rules<Tag>::kind};

namespace detail {
template <class Tag, int Facts>
inline table_registration const registration{&table<Tag, Facts>};
/// The table of an operator, known to `ops::find` from the start of the program that contains it.
template <class Tag, int Facts>
op_table const* registered_table() {
  (void)&registration<Tag, Facts>;
  return &table<Tag, Facts>; // not what the registration holds: it may be initialized after a caller at namespace scope
}
/// The lock must be held.
inline op_table const* table_named(char const* name) {
  if (std::strncmp(name, "aten::", 6) == 0) name += 6;
  for (auto* e = first_table(); e; e = e->next)
    if (std::strcmp(e->table->name, name) == 0) return e->table;
  return nullptr;
}
} // namespace detail

inline op_table const* ops::find(char const* name) {
  detail::spin_lock::held const on(detail::lock_of_tables);
  return detail::table_named(name);
}

} // namespace varve

// ---- varve/dispatch/transform_keys.hpp
namespace varve {

/// The kinds of transform that a rule can be registered for (FS-16).
enum class transform_type : unsigned char { grad, jvp, vmap, functionalize };
constexpr char const* name(transform_type t) {
  constexpr char const* names[] = {"grad", "jvp", "vmap", "functionalize"};
  return names[static_cast<int>(t)];
}

/// The keys between `transform` and `transform_back` that implement a kind of transform: a kernel that a program registers there is part of what the transform does, and sees each
/// call at each such layer (FS-3). `vmap` has none: its kernels are the `batch` rules. Functionalities only, whatever the backend. Constant time, usable in constant expressions.
constexpr dispatch_key_set transform_keys(transform_type t) {
  switch (t) {
  case transform_type::grad:
  case transform_type::jvp:
    return {dispatch_key::autograd_functionality, dispatch_key::inplace_or_view};
  case transform_type::functionalize:
    return dispatch_key::functionalize;
  default:
    return {};
  }
}
/// Keys that a call passes over while a layer processes it: all between `transform` and `transform_back` but the layer's own, and autocast, which every layer leaves on.
constexpr dispatch_key_set passed_over(dispatch_key_set own) {
  return dispatch_key_set::full().below(dispatch_key::transform).above(dispatch_key::transform_back) - own - dispatch_key_set(dispatch_key::autocast);
}

namespace detail {
/// Of the keys of a layer the one whose kernel the layer itself is, unless a program registers another: autograd, functionalize.
constexpr dispatch_key_set implementing(dispatch_key_set own) { return own - dispatch_key_set(dispatch_key::inplace_or_view); }

/// Stands for a layer on the stack while a kernel that a program registered works for it, and keeps the keys that the caller included and excluded: what the layer hands down meets
/// these again (FS-4). Only calls that have such a kernel make one.
class processing_layer : layer {
public:
  explicit processing_layer(layer& l) : layer(l), of_(l), included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    process = &run;
    record = nullptr; // calls go the long way
    if (records) grad_mode = of_.grad_mode = this_thread_state.grad_mode;
    set_top(this_thread_state.transforms, this);
    this_thread_state.included |= dispatch_key::transform_back;
    this_thread_state.excluded = (excluded_ - keys) | passed_over(keys); // its own are on even where the caller excluded them (FS-19)
  }
  processing_layer(processing_layer const&) = delete;
  processing_layer& operator=(processing_layer const&) = delete;
  ~processing_layer() {
    set_top(this_thread_state.transforms, &of_);
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

  /// Null when none stands for the layer.
  static processing_layer const* of(layer const& l) { return l.process == &run ? static_cast<processing_layer const*>(&l) : nullptr; }
  /// The caller's keys, but those of stacks, which are as full as they are now.
  dispatch_key_set included() const {
    constexpr dispatch_key_set stacks{dispatch_key::transform, dispatch_key::dispatch_mode, dispatch_key::pre_dispatch, dispatch_key::function_mode};
    return (included_ - stacks) | (this_thread_state.included & stacks);
  }
  dispatch_key_set excluded() const { return excluded_; }
  layer& working_for() const { return of_; }
  /// The rest of a call, with the layer off the stack: what it does without kernels, or, when one has taken the place of its own, nothing but lowering.
  tensor finish(boxed_op const& op, boxed_args const& x, bool replaced) const;

private:
  static tensor run(layer& self, boxed_op const& op, boxed_args const& x) {
    auto const& here = static_cast<processing_layer const&>(self);
    return here.finish(op, x, this_thread_state.excluded.has_any(implementing(here.keys)));
  }
  layer& of_;
  dispatch_key_set included_, excluded_;
};
} // namespace detail

/// Takes the top transform off the stack, with the keys of the thread as they were when it was given the call (FS-4); on every exit all is put back (FS-5).
class lowered {
public:
  lowered() : lowered(detail::processing_layer::of(*this_thread_state.transforms.top)) {}
  layer& top() const { return off_.top(); }

private:
  explicit lowered(detail::processing_layer const* p) : keys_(p ? p->included() : this_thread_state.included, p ? p->excluded() : this_thread_state.excluded), off_(this_thread_state.transforms) {}
  key_guard keys_;
  popped off_;
};

} // namespace varve

// ---- varve/dispatch/transform_dispatch.hpp
/// @file
/// What happens to a boxed call at the keys `transform` and `transform_back`: the innermost transform of the thread processes it.
namespace varve::detail {

tensor call_boxed(boxed_op const& op, boxed_args const& x);
struct kernels_below;
tensor call_kernels_below(boxed_op const& op, kernels_below const& rest);

/// Does a value belong to a transform that is still there to process it?
inline bool is_alive(layer const* transforms, tensor const& t) {
  while (transforms && transforms->id != t.layer()) transforms = transforms->below;
  return transforms;
}
/// A value of a transform that has ended behaves like what it holds, but a mapped one lost its dimension: `transform_error` (FS-10).
VARVE_COLD inline tensor unwrap_dead(layer const* transforms, tensor t) {
  while (t.defined() && t.is_wrapped() && !is_alive(transforms, t)) {
    if (!(t.sizes() == t.inner().sizes()))
      throw transform_error("varve: a value mapped by vmap was used after its vmap had returned; return it from the mapped function instead of storing it");
    t = tensor(t.inner());
  }
  return t;
}

/// An operator of a `library` with neither rules nor a composite kernel passes a transform that has no part in it, and is refused by one that has.
VARVE_COLD inline tensor call_without_rules(layer const& in, boxed_op const& op, boxed_args const& x) {
  for (auto const& t : x)
    if (t.defined() && t.is_wrapped() && t.layer() == in.id) no_rule(op.name(), in.kind);
  return op(x);
}

inline tensor processing_layer::finish(boxed_op const& op, boxed_args const& x, bool replaced) const {
  key_guard const callers(included(), excluded());
  if (records) of_.grad_mode = grad_mode;
  if (!replaced) return op.table->eval ? of_.process(of_, op, x) : call_without_rules(*this, op, x);
  auto const mine = [&](tensor const& t) { return t.defined() && t.is_wrapped() && t.layer() == id; };
  bool const writes = x.size() && (op.table->kind == op_kind::mutation || std::strchr(op.schema(), '!'));
  boxed_args inside;
  for (auto const& t : x) {
    // What the layer itself would refuse (FS-7), a kernel in its place may not do either.
    if (writes && mine(t) && !mine(x[0])) throw transform_error((std::string("varve: ") + kind + ": " + op.name() + ": a captured tensor cannot be written with a value of the transform; pass it as an argument").c_str());
    inside.push_back(mine(t) ? t.inner() : t);
  }
  if (writes && mine(x[0]) && x[0].history() && x[0].history().to()->type->is_leaf)
    throw autograd_error((std::string("varve: ") + op.name() + ": an argument of " + kind + " is a leaf and cannot be written into; write into a value computed from it").c_str());
  tensor const y = op(inside);
  return writes ? x[0] : y;
}
/// Keys of a call at a transform: those of what its operands hold at the bottom, and of the layer, less what it passes over (FS-3). The bit of a history says that autograd is the
/// layer's own, so that the call stops there.
VARVE_COLD inline dispatch_key_set keys_at(layer const& l, boxed_op const& op, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  dispatch_key_set keys = s.included | l.keys;
  for (auto const& t : x) {
    if (!t.defined()) continue;
    tensor const* base = &t;
    while (base->is_wrapped()) base = &base->inner();
    keys |= base->keys();
  }
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  if ((keys & backends).empty()) keys |= default_keys;
  dispatch_key_set const excluded = processing_layer::of(l) ? s.excluded : (s.excluded - l.keys) | passed_over(l.keys);
  keys = ((keys.below(dispatch_key::transform) | dispatch_key::transform_back) - excluded) & dispatch_key_set::full();
  bool const own = op.table->eval && keys.has_any(l.keys & dispatch_key_set(dispatch_key::autograd_functionality));
  return own ? keys | dispatch_key_set::of_bits(dispatch_key_set::history_bit) : keys;
}

/// What is left of a call when a transform has done its own: kernels below its key, then the layers below.
struct kernels_below {
  layer& of;
  dispatch_key_set keys;
  boxed_args const& x;
};
/// A call at the key that the layer itself implements. Kernels below that key see the call as part of it, as below autograd for eager tensors: what they do is not recorded.
VARVE_COLD inline tensor call_layer(layer& top, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  processing_layer const* const here = processing_layer::of(top);
  kernels_below const rest{here->working_for(), keys.below(dispatch_key::autograd_functionality) & dispatch_key_set::full(), x};
  bool const any = table_of(op).stops.has_any(rest.keys.above(dispatch_key::transform_back));
  popped const off(this_thread_state.transforms);
  return here->finish({op.table, op.at, any ? &rest : nullptr}, x, false);
}
VARVE_COLD inline tensor call_kernels_below(boxed_op const& op, kernels_below const& rest) {
  thread_state& s = this_thread_state;
  pushed const back(s.transforms, rest.of);
  bool const outer = s.grad_mode;
  if (rest.of.records) s.grad_mode = rest.of.grad_mode;
  struct restored {
    bool& mode;
    bool value;
    ~restored() { mode = value; }
  } const grad_mode{s.grad_mode, outer};
  processing_layer const here(rest.of);
  exclude_keys const off(dispatch_key::autograd_functionality);
  tensor const y = redispatch(op, rest.keys, rest.x);
  return y.defined() && y.is_wrapped() && y.layer() == rest.of.id ? y.inner() : y;
}
/// The end of the kernels of a transform: nothing but lowering is left when its own key was passed, by itself or by a kernel in its place; else all of it.
VARVE_COLD inline tensor call_transform_back(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  layer* const top = this_thread_state.transforms.top;
  processing_layer const* const here = top ? processing_layer::of(*top) : nullptr;
  if (!here) return redispatch(op, keys.below(dispatch_key::transform_back), x);
  dispatch_table const& t = table_of(op);
  if (t.composite.call) return t.composite.call(t.composite.self, op, keys, x);
  dispatch_key_set const own = implementing(top->keys);
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  bool const passed = !own.empty() && !keys.has_any(own);
  // Without rules the layer has nothing of its own to do: only a kernel can have done it.
  bool const replaced = passed && (op.table->eval || t.at[static_cast<int>(((keys & backends) | own).highest())].call || this_thread_state.excluded.has_any(own));
  popped const off(this_thread_state.transforms);
  return here->finish(op, x, replaced);
}

/// The innermost transform processes a call: by the rule registered for it, by kernels registered between `transform` and `transform_back` as far as they concern it, by the composite
/// that the operator is, or by the operator's rules (FS-3, FS-14).
VARVE_NOINLINE inline tensor call_transform(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  bool dead = false;
  for (auto const& t : x) dead = dead || (t.defined() && t.is_wrapped() && !is_alive(s.transforms.top, t));
  if (dead) {
    boxed_args plain;
    for (auto const& t : x) plain.push_back(unwrap_dead(s.transforms.top, t));
    return call_boxed(op, plain);
  }
  if (!s.transforms.top) return redispatch(op, keys.below(dispatch_key::transform), x);
  if (dispatch_table const& t = table_of(op); &t != &unregistered) [[unlikely]] {
    for (auto const& r : t.rules)
      if (r.call && std::strcmp(r.kind, s.transforms.top->kind) == 0) return r.call(r.self, *s.transforms.top, op, x);
    if (dispatch_key_set const at = keys_at(*s.transforms.top, op, x); t.stops.has_any(at.above(dispatch_key::transform_back))) {
      if (processing_layer::of(*s.transforms.top)) return redispatch(op, at, x);
      processing_layer const here(*s.transforms.top);
      return redispatch(op, at, x);
    }
    if (t.composite.call) return t.composite.call(t.composite.self, op, keys, x);
    if (!op.table->eval) {
      lowered const off;
      return call_without_rules(off.top(), op, x);
    }
  }
  popped const p(s.transforms);
  return p.top().process(p.top(), op, x);
}

} // namespace varve::detail

// ---- varve/dispatch/tensor_dispatch.hpp
namespace varve {

template <>
inline constexpr bool is_tensor_base<tensor> = true;

namespace detail {
/// An operand as a tensor: plain numbers and arrays are boxed.
inline tensor const& as_tensor(tensor const& t) { return t; }
template <number T>
tensor as_tensor(T v) {
  return tensor::from_number(v);
}
template <class T, index_t... D>
tensor as_tensor(array<T, D...> const& a) {
  return tensor::from_data(a.data, ints<D...>::to_dims());
}

/// Keys of a call: those of its operands and of the thread. Without any backend it is one of this process's memory, as a factory's.
inline dispatch_key_set keys_of_call(boxed_args const& x) {
  thread_state const& s = this_thread_state;
  dispatch_key_set keys = s.included;
  for (auto const& t : x)
    if (t.defined()) keys |= t.keys();
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  if ((keys & backends).empty()) keys |= default_keys;
  return keys - s.excluded;
}
/// The slow door: the highest key of the call decides.
VARVE_NOINLINE inline tensor call_boxed(boxed_op const& op, boxed_args const& x) {
  // What nothing watches goes straight to its kernel: the last step of every lowered call.
  if (this_thread_state.quiet() && op.table->eval && !op.table->registered->load(std::memory_order_relaxed)) {
    unsigned keys = 0;
    for (auto const& t : x) keys |= t.defined() ? t.keys().bits : 0u;
    if (!(keys & static_cast<std::uint16_t>(~default_keys.bits))) [[likely]]
      return op.table->eval(*op.at, x);
  }
  return redispatch(op, keys_of_call(x), x);
}

/// Keys that the fast path may pass over, since no operator stops at them unless a kernel was registered.
inline constexpr unsigned watched = static_cast<std::uint16_t>(~default_keys.bits);

/// Is there, of all that could watch a call, only one that writes it down: eager autograd, or a single level of `grad`? Then the kernel may run at once on what the operands hold
/// below it, which `x` becomes.
VARVE_NOINLINE inline bool opened_for_one_recorder(tensor const** x, int n) {
  thread_state const& s = this_thread_state;
  constexpr unsigned history = dispatch_key_set::history_bit;
  if (s.excluded.bits) return false;
  if (!s.included.bits) {
    for (int i = 0; i < n; ++i)
      if (x[i]->keys().bits & watched & ~history) return false;
    return true;
  }
  layer const* const l = s.transforms.top;
  if (s.included.bits != dispatch_key_set(dispatch_key::transform).bits || !l->record || l->below) return false;
  for (int i = 0; i < n; ++i) {
    if (x[i]->is_wrapped() && x[i]->layer() == l->id) x[i] = &x[i]->inner();
    unsigned const k = x[i]->keys().bits & watched;
    if (k && ((k & ~history) || x[i]->requires_grad())) return false;
  }
  return true;
}
/// Has the one recorder write down what was done.
VARVE_INLINE void record_done(boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below, int n) {
  if (!this_thread_state.included.bits) return autograd_kernels.load(std::memory_order_acquire)->record(op, y, {of, n});
  layer& l = *this_thread_state.transforms.top;
  l.record(l, op, y, of, below, n);
}

/// The kernel proper.
VARVE_NOINLINE inline tensor call_kernel(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) { return op.table->eval(*op.at, x); }
VARVE_NOINLINE inline tensor call_meta(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) { return op.table->meta(*op.at, x); }

/// Asks the modes from the top down, each off the stack while it and those below it run, until one accepts (MD-8, MD-10). Undefined when all decline.
inline tensor ask_modes(boxed_op const& op, boxed_args const& x) {
  layer_stack* const stack = this_thread_state.next_mode();
  if (!stack) return {};
  popped const p(*stack);
  tensor y = p.top().process(p.top(), op, x);
  if (y.defined()) [[likely]]
    return y;
  return ask_modes(op, x);
}
[[noreturn]] VARVE_COLD inline void refuse_all_declined(boxed_op const& op) {
  thread_state const& s = this_thread_state;
  std::string tried;
  auto const add = [&](layer_stack const& stack) {
    for (layer const* l = stack.top; l; l = l->below) tried += (tried.empty() ? "" : ", ") + std::string(l->kind);
  };
  add(s.modes);
  for (layer_stack const& slot : s.infra) add(slot);
  throw dispatch_error(("varve: " + std::string(op.name()) + ": all modes declined (" + tried + "), and no operand is of a subclass that could accept; let the process of one of them return a tensor, for instance op(args)").c_str());
}
/// The modes process a call; what lies above them is off meanwhile (MD-9). What all decline is left to the subclasses among the operands, who find all modes back (MD-10, MD-11).
VARVE_NOINLINE inline tensor call_mode(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  if (!s.next_mode()) return redispatch(op, keys.below(dispatch_key::dispatch_mode), x); // MD-14
  {
    constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) - dispatch_key_set(dispatch_key::transform);
    key_guard const off(s.included, s.excluded | above);
    tensor y = ask_modes(op, x);
    if (y.defined()) [[likely]]
      return y;
  }
  if (keys.has(dispatch_key::subclass)) return redispatch(op, keys.below(dispatch_key::dispatch_mode), x);
  refuse_all_declined(op);
}

/// Modes on a stack of their own: pre-dispatch and function modes. One that declines is passed over.
template <layer_stack thread_state::* Stack>
VARVE_NOINLINE tensor call_stack(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  layer_stack& stack = s.*Stack;
  if (!stack.top) return redispatch(op, keys.below(stack.key), x);
  popped const p(stack);
  tensor y = p.top().process(p.top(), op, x);
  return y.defined() ? y : op(x);
}

/// The subclasses among the operands, the more derived first, then from left to right (MD-10).
VARVE_NOINLINE inline tensor call_subclass(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  constexpr int most = 8;
  subclass_type const* order[most];
  int n = 0;
  for (auto const& t : x) {
    if (!t.defined() || !t.object()) continue;
    subclass_type const* const type = &t.object()->type();
    int at = 0;
    bool known = false;
    for (int k = 0; k < n; ++k) known = known || order[k] == type;
    if (known || n == most) continue;
    while (at < n && !type->derives_from(order[at])) ++at;
    for (int k = n++; k > at; --k) order[k] = order[k - 1];
    order[at] = type;
  }
  if (!n) return redispatch(op, keys.below(dispatch_key::subclass), x);
  for (int k = 0; k < n; ++k) {
    thread_state const& s = this_thread_state;
    constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) - dispatch_key_set(dispatch_key::transform);
    key_guard const off(s.included, s.excluded | above);
    tensor y = order[k]->dispatch(op, x);
    if (y.defined()) return y;
  }
  std::string tried;
  for (int k = 0; k < n; ++k) tried += (k ? ", " : "") + std::string(order[k]->name);
  throw dispatch_error(("varve: " + std::string(op.name()) + ": no implementation found; these subclasses declined: " + tried + "; let the dispatch of one of them return a tensor").c_str());
}
} // namespace detail

inline tensor boxed_op::operator()(boxed_args const& x) const {
  if (below) [[unlikely]]
    return detail::call_kernels_below({table, at}, *below);
  return detail::call_boxed(*this, x);
}

/// Tensors go straight to their kernel when nothing watches; otherwise boxed through the table of the operator.
template <>
struct backend<detail::tensor_base> {
  template <class Op, class... X>
  static tensor call(Op const& op, X const&... x) {
    return enter(op, detail::as_tensor(x)...);
  }
  template <class S, class T, number N>
  static tensor full(S const& sizes, T const& type, N v);
  /// ... with the dtype of another tensor, on its backend.
  template <number N>
  static tensor full_on(tensor const& like, dims const& sizes, N v) {
    tensor const* base = &like;
    while (base->is_wrapped()) base = &base->inner();
    constexpr dispatch_key_set elsewhere{dispatch_key::private_use, dispatch_key::other, dispatch_key::meta};
    if (!(base->keys().bits & elsewhere.bits & 0xF)) [[likely]]
      return full(sizes, dims{static_cast<index_t>(like.dtype())}, v);
    include_keys const there(base->keys() & elsewhere);
    return full(sizes, dims{static_cast<index_t>(like.dtype())}, v);
  }
  /// 0, 1, ..., n - 1 as int64.
  template <class = void>
  static tensor arange(tensor const& like, dims const& n);

private:
  /// The call of an operator with its attributes in the form tables take.
  template <class Op, class F>
  static auto with_boxed(Op const& op, F const& call) {
    op_table const* const t = detail::registered_table<typename Op::tag, Op::facts>();
    if constexpr (Op::facts == 0) {
      return call(boxed_op{t, &no_attributes});
    } else {
      attributes const at = op.boxed();
      return call(boxed_op{t, &at});
    }
  }
  template <class Op, class... X>
  static tensor enter(Op const& op, X const&... x) {
    using tag = typename Op::tag;
    unsigned const seen = (x.keys().bits | ... | 0u) & detail::watched;
    bool const built_in = !detail::registered<tag>.load(std::memory_order_relaxed);
    if (this_thread_state.quiet() && !(seen & ~unsigned{dispatch_key_set::history_bit}) && built_in) [[likely]]
      if (!seen || !(x.requires_grad() || ...)) return evaluate_tensor(op, x...);
    if constexpr (rules<tag>::kind != op_kind::mutation && sizeof...(X) > 0) {
      tensor const* below[] = {&x...};
      if (built_in && detail::opened_for_one_recorder(below, sizeof...(X))) {
        tensor const* const of[] = {&x...};
        constexpr int n = sizeof...(X);
        tensor y = [&]<std::size_t... K>(std::index_sequence<K...>) { return evaluate_tensor(op, *below[K]...); }(std::index_sequence_for<X...>{});
        with_boxed(op, [&](boxed_op const& b) { detail::record_done(b, y, of, below, n); });
        return y;
      }
    }
    return with_boxed(op, [&](boxed_op const& b) {
      if constexpr (sizeof...(X) > 0) return detail::call_boxed(b, boxed_args(x...));
      else return detail::call_boxed(b, boxed_args());
    });
  }
};

} // namespace varve

// ---- varve/interpreter/recorded_call.hpp
namespace varve::detail {

/// A tensor that a node keeps for its backward pass, and the version it had then (DT-18).
struct saved_value {
  static constexpr std::uint8_t result = 15;
  tensor value;
  std::uint32_t version;
  std::uint8_t of;      // the operand, or `result`
  bool checked;         // its elements will be read
  bool recorded = false; // an operator made it, and its history leads there
  packed_value* packed = nullptr;
};

[[noreturn]] VARVE_COLD inline void refuse_released(char const* name) {
  throw autograd_error((std::string("varve: ") + name + ": trying to run backward through the graph a second time; its saved values were freed by the first. Say retain_graph there").c_str());
}
[[noreturn]] VARVE_COLD inline void refuse_stale(tensor const& t, char const* name, std::uint32_t saved) {
  throw autograd_error((std::string("varve: a value needed for a gradient was modified by an in-place operator: a tensor of ") + varve::name(t.dtype()) + to_string(t.sizes()) + ", operand or result of " + name +
                        ", is at version " + std::to_string(t.version()) + "; expected version " + std::to_string(saved) + ". anomaly_mode names the call; clone the value, or use the functional operator")
                           .c_str());
}

[[noreturn]] VARVE_COLD inline void refuse_detached(char const* name) {
  throw autograd_error((std::string("varve: ") + name + ": an operand that is needed for a gradient was detached in place, by detach_; use detach").c_str());
}

/// The version a saved value is checked against. Tensors made in inference mode have none; transforms may save them.
inline std::uint32_t version_of(tensor const& t) {
  tensor const* in = &t;
  while (in->is_wrapped()) in = &in->inner();
  return in->is_inference() ? 0 : in->version();
}
/// Eager autograd may not save a tensor made in inference mode: nothing would tell that it was written into (AG-20).
inline void refuse_inference(tensor const& t, char const* name) {
  if (t.defined() && t.is_inference()) [[unlikely]]
    throw autograd_error((std::string("varve: ") + name + ": a tensor made in inference mode cannot be saved for backward; clone it outside of inference mode first").c_str());
}

/// The level of `grad` whose graph this thread runs while it records: what its nodes kept, from one level below, is seen at the level again. Its identity is 0 when there is none.
struct level_seen_again {
  std::uint64_t layer = 0;
  int level = 0;
};
inline constinit thread_local level_seen_again this_thread_sees_again{};

/// One operator on tensors as a node: it keeps what the `vjp` rules of its tracked operands read, and of the others at most a shape. Behind it in memory lie its edges, what it
/// keeps, and its attributes: for each its length and entries.
struct operator_node : grad_node {
  op_table const* table;
  std::uint8_t kept = 0, operands, facts;
  bool eager;
  std::uint32_t bytes;

  static grad_node_type const type_;
  operator_node(op_table const* t, int n, int f, bool e, std::size_t b)
      : grad_node(&type_), table(t), operands(static_cast<std::uint8_t>(n)), facts(static_cast<std::uint8_t>(f)), eager(e), bytes(static_cast<std::uint32_t>(b)) {
    count = static_cast<std::uint16_t>(n);
    next = reinterpret_cast<edge*>(this + 1);
    sequence = this_thread_state.next_node++;
  }
  saved_value* saved() { return reinterpret_cast<saved_value*>(next + operands); }

  static constexpr std::size_t small = 128, medium = 192;
  static void* take(std::size_t n) { return n <= small ? take_block<small>() : n <= medium ? take_block<medium>() : n <= block_bytes ? take_block<>() : ::operator new(n); }

  /// Records a call: `edge_of(i)` is the edge of operand i, null where none is tracked (or they stand in an array). `x` are the operands one level below, `y` the result there.
  template <class X, class EdgeOf>
  static operator_node* make(boxed_op const& op, tensor const& y, X const& x, EdgeOf const& edge_of, bool eager = false) {
    op_table const& t = *op.table;
    int const n = x.size();
    edge const* found[saved_values::most];
    edge const* const* edges = found;
    if constexpr (std::is_pointer_v<EdgeOf>) edges = edge_of;
    else
      for (int i = 0; i < n; ++i) found[i] = edge_of(i);
    unsigned reads = 0;
    for (int i = 0; i < n; ++i)
      if (edges[i]) reads |= t.saved.of[i];
    int count = static_cast<int>(reads >> saved_value::result & 1);
    unsigned stands_in = 0; // operands whose shape the cotangent has as well
    dims const& sizes = y.sizes();
    for (int i = 0; i < n; ++i) {
      if (!(reads >> i & 1) && x[i].dtype() == y.dtype() && x[i].sizes() == sizes) stands_in |= 1u << i;
      else ++count;
    }
    std::size_t words = 0;
    for (int k = 0; k < op.at->count; ++k) words += static_cast<std::size_t>(op.at->fact[k].n) + 1;
    std::size_t const all = sizeof(operator_node) + sizeof(edge) * static_cast<std::size_t>(n) + sizeof(saved_value) * static_cast<std::size_t>(count) + sizeof(index_t) * words;
    auto* const r = new (take(all)) operator_node(&t, n, op.at->count, eager, all);
    for (int i = 0; i < n; ++i) {
      if (edges[i]) new (r->next + i) edge(*edges[i]);
      else new (r->next + i) edge();
    }
    struct unfinished {
      operator_node* n;
      ~unfinished() {
        if (n) destroy(n);
      }
    } guard{r}; // hooks of saved tensors may throw
    for (int i = 0; count && i < n; ++i) {
      if (stands_in >> i & 1) continue;
      // Of an operand that is not read the shape is kept apart: the operand itself may come to have a history that leads here, when it is written in place. Plain numbers are not.
      bool const read = reads >> i & 1;
      r->keep(read || x[i].is_number() ? x[i] : tensor::meta(x[i].sizes(), x[i].dtype()), i, read, edges[i] && !edges[i]->to()->type->is_leaf);
    }
    if (reads >> saved_value::result & 1) r->keep(eager ? y.alias() : y, saved_value::result, true); // not y itself, which will own the node
    auto* w = reinterpret_cast<index_t*>(r->saved() + r->kept);
    for (int k = 0; k < op.at->count; ++k) {
      dims const& d = op.at->fact[k];
      *w++ = d.n;
      for (index_t i : d) *w++ = i;
    }
    guard.n = nullptr;
    return r;
  }
  void keep(tensor const& t, int of, bool checked, bool recorded = false) {
    std::uint32_t const version = checked ? version_of(t) : 0;
    auto* const hooks = checked && !t.is_wrapped() ? this_thread_state.saved_hooks : nullptr;
    packed_value* const p = hooks ? pack(*hooks, t) : nullptr;
    new (saved() + kept++) saved_value{p ? tensor() : t, version, static_cast<std::uint8_t>(of), checked, recorded, p};
  }
  VARVE_COLD static packed_value* pack(saved_hooks_scope& hooks, tensor const& t) {
    std::uint32_t const before = t.version();
    saved_hooks_scope* const outer = this_thread_state.saved_hooks;
    this_thread_state.saved_hooks = nullptr; // what packing records is kept as it is
    struct restore {
      saved_hooks_scope* s;
      ~restore() { this_thread_state.saved_hooks = s; }
    } const after{outer};
    packed_value* const p = hooks.pack(t);
    if (t.version() != before) {
      delete p;
      throw autograd_error("varve: saved_tensors_hooks: the pack hook modified its input in place");
    }
    return p;
  }

  attributes attributes_of() const {
    attributes at;
    auto const* w = reinterpret_cast<index_t const*>(const_cast<operator_node*>(this)->saved() + kept);
    for (int k = 0; k < facts; ++k) {
      dims& d = at.fact[at.count++];
      d.n = static_cast<int>(*w++);
      for (int i = 0; i < d.n; ++i) d.v[i] = *w++;
    }
    return at;
  }
  /// A saved value as it was, or an error that says what overtook it.
  tensor unpacked(saved_value const& s) {
    if (s.packed) [[unlikely]] {
      // What hooks give back has the history that the value had.
      tensor t = s.packed->unpack();
      if (!this_thread_state.grad_mode || !is_floating(t.dtype()) || t.is_wrapped()) return t;
      edge e = s.of == saved_value::result ? edge(this, 0) : next[s.of];
      t = t.alias();
      if (e) t.set_history(static_cast<edge&&>(e));
      return t;
    }
    if (s.checked && version_of(s.value) != s.version) refuse_stale(s.value, table->name, s.version);
    if (s.checked && s.recorded && eager && !s.value.history()) refuse_detached(table->name);
    if (!eager && this_thread_sees_again.layer) [[unlikely]]
      return seen_again(s);
    if (s.of != saved_value::result || !eager || !this_thread_state.grad_mode) return s.value;
    tensor y = s.value.alias();
    y.set_history(edge(this, 0));
    return y;
  }
  /// A saved value as the level saw it: with the history that it had there.
  VARVE_COLD tensor seen_again(saved_value const& s) {
    edge e = s.of == saved_value::result ? edge(this, 0) : next[s.of];
    if (!e || !s.checked || !this_thread_state.grad_mode) return s.value;
    return tensor::wrap(s.value, this_thread_sees_again.layer, this_thread_sees_again.level, {}, static_cast<edge&&>(e), s.value.sizes());
  }
  static boxed_args saved_of(grad_node& n) {
    auto& self = static_cast<operator_node&>(n);
    boxed_args r;
    for (int k = 0; k < self.kept; ++k) {
      saved_value const& s = self.saved()[k];
      if (!s.checked) continue;
      if (self.released) refuse_released(self.table->name);
      r.push_back(self.unpacked(s));
    }
    return r;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<operator_node&>(n);
    boxed_args r;
    if (!g[0].defined()) {
      for (int i = 0; i < self.operands; ++i) r.push_back(tensor());
      return r;
    }
    for (int k = 0; self.released && k < self.kept; ++k)
      if (self.saved()[k].checked) refuse_released(self.table->name);
    boxed_args x;
    saved_value const* s = self.saved();
    saved_value const* const end = s + self.kept;
    for (int i = 0; i < self.operands; ++i) x.push_back(s != end && s->of == i ? self.unpacked(*s++) : g[0]);
    tensor const y = s != end ? self.unpacked(*s) : g[0];
    auto const pull = [&](attributes const& at) {
      for (int i = 0; i < self.operands; ++i) r.push_back(wanted[i] ? self.table->vjp(i, at, g[0], y, x) : tensor());
    };
    if (self.facts) pull(self.attributes_of());
    else pull(no_attributes);
    return r;
  }
  static void release(grad_node& n) {
    auto& self = static_cast<operator_node&>(n);
    if (self.released) return;
    self.released = true;
    for (int k = 0; k < self.kept; ++k) {
      saved_value& s = self.saved()[k];
      if (!s.checked) continue; // a shape alone may serve again (AG-4)
      s.value = tensor();
      delete s.packed;
      s.packed = nullptr;
    }
  }
  static void destroy(grad_node* n) {
    auto* self = static_cast<operator_node*>(n);
    for (int k = 0; k < self->kept; ++k) {
      delete self->saved()[k].packed;
      self->saved()[k].~saved_value();
    }
    for (int i = 0; i < self->operands; ++i) self->next[i].~edge();
    if (self->extra) drop_extra(self->extra);
    std::size_t const n_bytes = self->bytes;
    self->~operator_node();
    if (n_bytes <= small) give_block<small>(n);
    else if (n_bytes <= medium) give_block<medium>(n);
    else if (n_bytes <= block_bytes) give_block<>(n);
    else ::operator delete(static_cast<void*>(n));
  }
  /// "AddBackward0" of "add".
  static void name_of(grad_node const& n, char* out) {
    char const* s = static_cast<operator_node const&>(n).table->name;
    int k = 0;
    bool upper = true;
    for (; *s && k < 50; ++s) {
      if (*s == '_' || *s == ':') upper = true;
      else out[k++] = upper && *s >= 'a' && *s <= 'z' ? static_cast<char>(*s - 'a' + 'A') : *s, upper = false;
    }
    std::strcpy(out + k, "Backward0");
  }
};
inline constexpr grad_node_type operator_node::type_{&operator_node::backward, &operator_node::release, &operator_node::destroy, &operator_node::name_of, false, &operator_node::saved_of};

/// An edge to a node that was just made: it takes the maker's share.
inline edge edge_to(grad_node* fresh, std::uint32_t nr = 0) {
  return edge::taking(fresh, nr);
}

} // namespace varve::detail

// ---- varve/autograd/saved_tensors_hooks.hpp
namespace varve {

/// In this scope every tensor that eager nodes keep for their backward pass goes through `pack(tensor)`, whose result, of any type, is kept in its place; `unpack(result)`
/// gives the tensor back when it is needed, each time it is (AG-23). The innermost scope counts. Not inside or around `grad`, `vjp`, `jacrev`: `transform_error` (TR-25).
template <class Pack, class Unpack>
class saved_tensors_hooks final : public saved_hooks_scope {
public:
  saved_tensors_hooks(Pack pack, Unpack unpack) : pack_(std::move(pack)), unpack_(std::move(unpack)) {
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->records) throw transform_error("varve: saved tensor hooks were switched on inside of grad, vjp or jacrev, which do not support them (TR-25)");
    below = this_thread_state.saved_hooks;
    this_thread_state.saved_hooks = this;
  }
  saved_tensors_hooks(saved_tensors_hooks const&) = delete;
  saved_tensors_hooks& operator=(saved_tensors_hooks const&) = delete;
  ~saved_tensors_hooks() { this_thread_state.saved_hooks = below; }

  packed_value* pack(tensor const& t) override {
    using P = decltype(pack_(t));
    struct kept final : packed_value {
      P value;
      Unpack unpack_fn;
      kept(P&& v, Unpack const& u) : value(static_cast<P&&>(v)), unpack_fn(u) {}
      tensor unpack() override { return unpack_fn(value); }
    };
    return new kept(pack_(t), unpack_);
  }

private:
  Pack pack_;
  Unpack unpack_;
};
/// The hooks of this thread are off: values are kept as they are.
class disable_saved_tensors_hooks {
public:
  disable_saved_tensors_hooks() : before_(this_thread_state.saved_hooks) { this_thread_state.saved_hooks = nullptr; }
  disable_saved_tensors_hooks(disable_saved_tensors_hooks const&) = delete;
  disable_saved_tensors_hooks& operator=(disable_saved_tensors_hooks const&) = delete;
  ~disable_saved_tensors_hooks() { this_thread_state.saved_hooks = before_; }

private:
  saved_hooks_scope* before_;
};

} // namespace varve

// ---- varve/dispatch/boxed_function.hpp
namespace varve {

template <class Signature>
class shared_function;
/// A function of one signature. Anything that can be called so converts to it; copies share it. (`std::function` would cost every unit that includes this, used or not.)
template <class R, class... A>
class shared_function<R(A...)> {
public:
  shared_function() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, shared_function> && std::is_invocable_r_v<R, std::decay_t<F>&, A...>) shared_function(F&& f)
      : body_(new holder<std::decay_t<F>>(static_cast<F&&>(f))) {}
  shared_function(shared_function const& o) noexcept : body_(o.body_) {
    if (body_) body_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  shared_function(shared_function&& o) noexcept : body_(o.body_) { o.body_ = nullptr; }
  shared_function& operator=(shared_function o) noexcept {
    body* const b = body_;
    body_ = o.body_;
    o.body_ = b;
    return *this;
  }
  ~shared_function() {
    if (body_ && body_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) body_->destroy(body_);
  }

  /// Is there a function?
  explicit operator bool() const { return body_; }
  R operator()(A... x) const { return body_->call(body_, static_cast<A>(x)...); }

private:
  struct body {
    R (*call)(body*, A...);
    void (*destroy)(body*);
    std::atomic<int> owners{1};
  };
  template <class F>
  struct holder : body {
    F f;
    template <class G>
    explicit holder(G&& g) : body{&run, &end}, f(static_cast<G&&>(g)) {}
    static R run(body* b, A... x) { return static_cast<holder*>(b)->f(static_cast<A>(x)...); }
    static void end(body* b) { delete static_cast<holder*>(b); }
  };
  body* body_ = nullptr;
};

/// A function among the operands of a higher-order operator: tensors to tensors.
using boxed_function = shared_function<boxed_args(boxed_args const&)>;

} // namespace varve

// ---- varve/dispatch/schema.hpp
#include <string_view>
namespace varve {

/// One argument or result of an operator in PyTorch's notation: `Tensor(a!) self`, `int[] dim`, `bool keepdim=False`.
struct schema_argument {
  std::string type, name, default_value;
  /// The alias set, `a` in `Tensor(a!)`; empty for fresh values.
  std::string alias;
  bool mutated = false, keyword_only = false;

  bool is_tensor() const { return type.rfind("Tensor", 0) == 0; }
};

/// What an operator takes and gives: `name(arguments) -> results`, as PyTorch writes it.
struct operator_schema {
  std::string name;
  std::vector<schema_argument> arguments, results;

  /// Reads a schema; `value_error` shows what was expected where.
  template <class S = operator_schema>
  static S parse(std::string_view text);
  /// Number of tensor arguments, which are operands, and of others, which are attributes.
  int operands() const {
    int n = 0;
    for (auto const& a : arguments) n += a.is_tensor();
    return n;
  }
  int attributes() const { return static_cast<int>(arguments.size()) - operands(); }
  bool mutates() const {
    for (auto const& a : arguments)
      if (a.mutated) return true;
    return false;
  }
  /// Index among the operands of the one whose memory result r shares, or -1.
  int aliased_operand(int r) const {
    std::string const& set = results[static_cast<std::size_t>(r)].alias;
    int k = 0;
    for (auto const& a : arguments) {
      if (!a.is_tensor()) continue;
      if (!set.empty() && a.alias == set) return k;
      ++k;
    }
    return -1;
  }
};
/// The text that `operator_schema::parse` reads back. (Like it a template only to cost nothing unless used.)
template <class = void>
std::string to_string(operator_schema const& s);

namespace detail {
template <class S>
class schema_reader {
public:
  explicit schema_reader(std::string_view text) : text_(text) {}
  S read() {
    S s;
    s.name = word("the operator's name", ":.");
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        if (accept("*")) {
          keyword_only = true;
          continue;
        }
        s.arguments.push_back(argument(true));
        s.arguments.back().keyword_only = keyword_only;
      } while (accept(","));
      expect(")");
    }
    expect("->");
    if (accept("(")) {
      if (!accept(")")) {
        do s.results.push_back(argument(false));
        while (accept(","));
        expect(")");
      }
    } else {
      s.results.push_back(argument(false));
    }
    if (skip(); at_ != text_.size()) fail("the end");
    return s;
  }

private:
  static bool letter(char c, std::string_view more) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || more.find(c) != more.npos; }
  [[noreturn]] void fail(char const* expected) const {
    throw value_error(("varve: schema \"" + std::string(text_) + "\": expected " + expected + " at column " + std::to_string(at_ + 1)).c_str());
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view s) {
    skip();
    if (text_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }
  void expect(char const* s) {
    if (!accept(s)) fail(s);
  }
  std::string word(char const* expected, std::string_view more = "") {
    skip();
    std::size_t const from = at_;
    while (at_ < text_.size() && letter(text_[at_], more)) ++at_;
    if (at_ == from) fail(expected);
    return std::string(text_.substr(from, at_ - from));
  }
  schema_argument argument(bool named) {
    schema_argument a;
    a.type = word("a type");
    if (accept("(")) {
      a.alias = word("an alias set");
      a.mutated = accept("!");
      expect(")");
    }
    if (accept("[")) {
      a.type += "[" + (accept("]") ? "]" : word("a count") + "]");
      if (a.type.back() != ']' || a.type[a.type.size() - 2] != '[') expect("]");
    }
    if (accept("?")) a.type += "?";
    if (named) a.name = word("the argument's name");
    else if (skip(); at_ < text_.size() && letter(text_[at_], "")) a.name = word("a name");
    if (named && accept("=")) a.default_value = word("a default", "-.[]");
    return a;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};
} // namespace detail

template <class S>
S operator_schema::parse(std::string_view text) {
  return detail::schema_reader<S>(text).read();
}

template <class>
std::string to_string(operator_schema const& s) {
  auto const one = [](schema_argument const& a) {
    std::string t = a.type.substr(0, a.type.find_first_of("[?"));
    if (!a.alias.empty()) t += "(" + a.alias + (a.mutated ? "!)" : ")");
    t += a.type.substr(t.find('(') == t.npos ? t.size() : t.find('('));
    if (!a.name.empty()) t += " " + a.name;
    return a.default_value.empty() ? t : t + "=" + a.default_value;
  };
  std::string r = s.name + "(";
  bool keyword_only = false;
  for (std::size_t k = 0; k < s.arguments.size(); ++k) {
    if (k) r += ", ";
    if (s.arguments[k].keyword_only && !keyword_only) {
      r += "*, ";
      keyword_only = true;
    }
    r += one(s.arguments[k]);
  }
  r += ") -> ";
  if (s.results.size() == 1) return r + one(s.results[0]);
  r += "(";
  for (std::size_t k = 0; k < s.results.size(); ++k) r += (k ? ", " : "") + one(s.results[k]);
  return r + ")";
}

} // namespace varve

// ---- varve/dispatch/registry.hpp
namespace varve::detail {

/// A function that a library registered, erased: kept by the registry.
struct kept_function {
  void const* type;
  void (*destroy)(kept_function*);
  /// Would registering the other one again be the same as keeping this one? Null for types whose values cannot be compared.
  bool (*equals)(kept_function const*, kept_function const*);
};
template <class F>
inline constexpr char type_of_function = 0; // its address tells types apart
template <class F>
struct kept_function_of : kept_function {
  F f;
  kept_function_of(F&& g, bool changes) : kept_function{&type_of_function<F>, [](kept_function* k) { delete static_cast<kept_function_of*>(k); }, nullptr}, f(std::move(g)) {
    if constexpr (std::is_trivially_copyable_v<F>)
      if (std::is_empty_v<F> || !changes)
        equals = [](kept_function const* a, kept_function const* b) {
          return std::is_empty_v<F> || std::memcmp(&static_cast<kept_function_of const*>(a)->f, &static_cast<kept_function_of const*>(b)->f, sizeof(F)) == 0;
        };
  }
  static F& of(void* self) { return static_cast<kept_function_of*>(static_cast<kept_function*>(self))->f; }
};
struct end_of_function {
  void operator()(kept_function* k) const { k->destroy(k); }
};
using function_owner = std::unique_ptr<kept_function, end_of_function>;

/// One kernel, fallthrough, fallback or rule that a library registered. `kernel` without a call means fallthrough.
struct registration_record {
  void const* library = nullptr;
  dispatch_key key = dispatch_key::undefined;
  boxed_kernel kernel;
  interpreter_rule rule;
};

/// An operator that a library defined: it has a name and a schema, all else is registered.
struct defined_operator {
  std::string name, schema;
  void const* library = nullptr; // null: it has ended
  std::atomic<dispatch_table const*> registered{nullptr};
  op_table table;
  table_entry entry;

  defined_operator(std::string const& n, std::string const& s, int operands)
      : name(n), schema(s), table{name.c_str(), schema.c_str(), operands, true, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &registered}, entry{&table, nullptr} {}
};

/// What all libraries of the process registered, and the tables made of it.
///
/// Calls read tables without a lock and without leaving a trace, so nobody can know when the last reader of a table or the last call in a kernel has
/// gone. Therefore nothing that was published is changed (DK-13) or freed; instead it is found again. Kept until the process ends are
/// - every table once: operators with the same kernels share it, and registering the same again finds it;
/// - every function once: those of equal type and bytes are one. Those that are not trivially copyable, or that calls change, are kept each time they
/// are registered;
/// - every operator that was defined, once per name and schema: defining it again revives it.
/// So a program that registers and takes back the same things in a loop does not grow. An operator without a registration has no table, and keeps its
/// fast path.
///
/// (A template only to cost nothing unless used.)
template <class T = void>
class registry {
public:
  static registry& instance() {
    static registry* const r = new registry; // outlives every library, whatever the order of destruction
    return *r;
  }
  /// How much is kept: for tests.
  struct counts {
    std::size_t tables, functions, operators;
    bool operator==(counts const&) const = default;
  };
  counts kept() {
    spin_lock::held const on(lock_of_tables);
    return {tables_.size(), functions_.size() + single_functions_.size(), definitions_.size()};
  }

  /// Defines an operator; null when there is one of that name. Nobody else can define it in between.
  op_table const* define(void const* library, std::string const& name, operator_schema const& s) {
    std::string schema = to_string(s);
    schema.erase(0, schema.find('('));
    spin_lock::held const on(lock_of_tables);
    if (table_named(name.c_str())) return nullptr;
    defined_operator* d = nullptr;
    for (auto const& o : definitions_)
      if (!o->library && o->name == name && o->schema == schema) d = o.get();
    if (!d) {
      definitions_.push_back(std::make_unique<defined_operator>(name, schema, s.operands()));
      d = definitions_.back().get();
      of(&d->registered).defined = true;
    }
    d->library = library;
    rebuild(of(&d->registered));
    d->entry.next = first_table();
    first_table() = &d->entry;
    return &d->table;
  }
  /// Registers a kernel, fallthrough or rule of an operator.
  void add(op_table const* op, registration_record r, function_owner f = nullptr) {
    spin_lock::held const on(lock_of_tables);
    entry& e = of(op->registered);
    int rules = 0;
    for (auto const& o : e.records) {
      rules += o.rule.call != nullptr;
      if (r.rule.call ? o.rule.call && std::strcmp(o.rule.kind, r.rule.kind) == 0 : !o.rule.call && o.key == r.key)
        throw dispatch_error((std::string("varve: operator ") + op->name + " has a " + (r.rule.call ? "rule" : "kernel") + " registered for " +
                              (r.rule.call ? r.rule.kind : name(r.key)) + " already; the library that registered it must end first")
                                 .c_str());
    }
    if (r.rule.call && rules == dispatch_table::most_rules)
      throw dispatch_error((std::string("varve: operator ") + op->name + " has rules for " + std::to_string(rules) + " kinds of transform, and no room for " + r.rule.kind +
                            "; process it by a kernel for dispatch_key::transform")
                               .c_str());
    keep(r, f);
    e.records.push_back(r);
    rebuild(e);
  }
  void add_fallback(registration_record r, function_owner f = nullptr) {
    spin_lock::held const on(lock_of_tables);
    for (auto const& f : fallbacks_)
      if (f.key == r.key)
        throw dispatch_error((std::string("varve: a fallback for ") + name(r.key) + " is registered already; the library that registered it must end first").c_str());
    keep(r, f);
    fallbacks_.push_back(r);
    rebuild_all();
  }
  /// Takes back what a library registered. What holds the handle of an operator that it defined may still call it, and is told that it has no kernel.
  void remove(void const* library) {
    spin_lock::held const on(lock_of_tables);
    for (table_entry** t = &first_table(); *t;) {
      defined_operator* const d = definition((*t)->table);
      if (d && d->library == library) *t = (*t)->next;
      else t = &(*t)->next;
    }
    for (auto const& d : definitions_)
      if (d->library == library) d->library = nullptr;
    auto const mine = [&](registration_record const& r) { return r.library == library; };
    bool const all = std::erase_if(fallbacks_, mine);
    for (auto const& e : entries_)
      if (std::erase_if(e->records, mine) && !all) rebuild(*e);
    if (all) rebuild_all();
  }

private:
  template <class X, class>
  struct dependent {
    using type = X;
  };
  template <class X>
  using many = std::vector<typename dependent<X, T>::type>; // else compilers instantiate it, used or not
  using slot = std::atomic<dispatch_table const*>*;
  /// The registrations of one operator, by the slot that all its tables share.
  struct entry {
    slot table;
    bool defined; // by a library: nothing is built in
    many<registration_record> records;
  };

  entry& of(slot s) {
    for (auto const& e : entries_)
      if (e->table == s) return *e;
    entries_.push_back(std::unique_ptr<entry>(new entry{s, false, {}}));
    return *entries_.back();
  }
  defined_operator* definition(op_table const* t) {
    for (auto const& d : definitions_)
      if (&d->table == t) return d.get();
    return nullptr;
  }
  /// Keeps the function of a record: the one given, or an equal one that is there already.
  void keep(registration_record& r, function_owner& f) {
    if (!f) return;
    void*& self = r.rule.call ? r.rule.self : r.kernel.self;
    if (f->equals)
      for (auto const& k : functions_)
        if (k->type == f->type && k->equals(k.get(), f.get())) {
          self = k.get();
          return;
        }
    self = f.get();
    (f->equals ? functions_ : single_functions_).push_back(std::move(f));
  }
  /// The table of that content, for ever.
  dispatch_table const* shared(dispatch_table const& t) {
    for (auto const& k : tables_)
      if (*k == t) return k.get();
    tables_.push_back(std::make_unique<dispatch_table const>(t));
    return tables_.back().get();
  }
  void rebuild_all() {
    for (table_entry* t = first_table(); t; t = t->next) (void)of(t->table->registered);
    for (auto const& e : entries_) rebuild(*e);
  }
  void rebuild(entry& e) {
    bool const nothing = !e.defined && e.records.empty() && fallbacks_.empty();
    e.table->store(nothing ? nullptr : shared(table_of_records(e)), std::memory_order_release);
  }
  dispatch_table table_of_records(entry const& e) const {
    dispatch_table t;
    kernel_inventory fallbacks = built_in_fallbacks;
    for (auto const& f : fallbacks_) {
      fallbacks.fallthrough &= ~kernel_inventory::bit(f.key);
      fallbacks.direct &= ~kernel_inventory::bit(f.key);
      f.kernel.call ? fallbacks.add(f.key) : fallbacks.skip(f.key);
    }
    if (!e.defined) t.kernels = built_in_kernels;
    int rules = 0;
    for (auto const& r : e.records) {
      if (r.rule.call) t.rules[rules++] = r.rule;
      else if (r.kernel.call) t.kernels.add(r.key);
      else t.kernels.skip(r.key);
    }
    // varve's own operators have a gradient: fallbacks at autograd are for those of libraries.
    if (!e.defined && !t.kernels.autograd && !t.kernels.composite_implicit)
      for (int i = 1; i < dispatch_key_count; ++i)
        if (auto const k = static_cast<dispatch_key>(i); is_autograd(k) && !t.kernels.has(k)) t.kernels.skip(k);
    auto const registered_for = [&](dispatch_key k) -> boxed_kernel const* {
      for (auto const& r : e.records)
        if (r.key == k && r.kernel.call) return &r.kernel;
      return nullptr;
    };
    auto const fallback_for = [&](dispatch_key k) {
      for (auto const& f : fallbacks_)
        if (f.key == k) return f.kernel;
      return unregistered.at[static_cast<int>(k)];
    };
    for (int i = 1; i < dispatch_key_count; ++i) {
      auto const k = static_cast<dispatch_key>(i);
      boxed_kernel& f = t.at[i];
      switch (resolve(t.kernels, fallbacks, k)) {
      case resolution::direct:
        f = registered_for(k) ? *registered_for(k) : unregistered.at[i];
        break;
      case resolution::composite_explicit_non_functional:
        f = *registered_for(dispatch_key::composite_explicit_non_functional);
        break;
      case resolution::composite_explicit:
        f = *registered_for(dispatch_key::composite_explicit);
        break;
      case resolution::composite_implicit:
        f = *registered_for(dispatch_key::composite_implicit);
        break;
      case resolution::autograd:
        f = *registered_for(dispatch_key::autograd);
        break;
      case resolution::fallback:
        f = fallback_for(k);
        break;
      case resolution::fallthrough:
        f = {};
        break;
      default:
        f = {&no_kernel};
        break;
      }
    }
    t.at[0] = {&no_kernel};
    t.stops = stops_of(t.kernels, fallbacks);
    if (boxed_kernel const* c = registered_for(dispatch_key::composite_implicit); c && e.defined) t.composite = *c;
    return t;
  }

  many<std::unique_ptr<entry>> entries_;
  many<std::unique_ptr<defined_operator>> definitions_;
  many<registration_record> fallbacks_;
  many<function_owner> functions_, single_functions_; // those that can be compared, and the others
  many<std::unique_ptr<dispatch_table const>> tables_;
};

} // namespace varve::detail

// ---- varve/dispatch/library.hpp
namespace varve {

class interpreter;
namespace detail {
template <class F>
struct unboxed_parameters : unboxed_parameters<decltype(&F::operator())> {};
template <class R, class... A>
struct unboxed_parameters<R (*)(A...)> {
  static constexpr int tensors = (0 + ... + std::is_same_v<std::remove_cvref_t<A>, tensor>);
  static constexpr int facts = (0 + ... + std::is_same_v<std::remove_cvref_t<A>, dims>);
  static_assert(tensors + facts == sizeof...(A), "varve: a kernel takes tensors, then attributes as dims");
  static_assert(std::is_convertible_v<R, tensor>, "varve: a kernel returns a tensor");
  template <class F>
  static tensor call(F& f, boxed_op const& op, boxed_args const& x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const at = [&]<int I>(std::integral_constant<int, I>) -> decltype(auto) {
        if constexpr (I < tensors) return (x[I]);
        else return (op.at->fact[I - tensors]);
      };
      return static_cast<tensor>(f(at(std::integral_constant<int, static_cast<int>(K)>{})...));
    }(std::make_index_sequence<sizeof...(A)>{});
  }
};
template <class R, class C, class... A>
struct unboxed_parameters<R (C::*)(A...)> : unboxed_parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct unboxed_parameters<R (C::*)(A...) const> : unboxed_parameters<R (*)(A...)> {};

template <class M>
inline constexpr bool is_const_member = false;
template <class R, class C, class... A>
inline constexpr bool is_const_member<R (C::*)(A...) const> = true;
template <class R, class C, class... A>
inline constexpr bool is_const_member<R (C::*)(A...) const noexcept> = true;

template <class F>
concept keyed_kernel = requires(F& f, boxed_op const& op, dispatch_key_set k, boxed_args const& x) { static_cast<tensor>(f(op, k, x)); };
template <class F>
concept simple_boxed_kernel = requires(F& f, boxed_op const& op, boxed_args const& x) { static_cast<tensor>(f(op, x)); };

/// May a call change the function itself?
template <class F>
constexpr bool changed_by_calls() {
  if constexpr (std::is_pointer_v<F> || keyed_kernel<F const> || simple_boxed_kernel<F const>) return false;
  else if constexpr (requires { &F::operator(); }) return !is_const_member<decltype(&F::operator())>;
  else return true;
}

template <class F>
tensor run_kernel(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  F& f = kept_function_of<F>::of(self);
  if constexpr (keyed_kernel<F>) return f(op, keys, x);
  else if constexpr (simple_boxed_kernel<F>) return (void)keys, f(op, x);
  else return (void)keys, unboxed_parameters<F>::call(f, op, x);
}
/// ... at autograd, or in-place or view: in inference mode eager tensors have neither (DK-11).
template <class F>
tensor run_unless_inference(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  if (this_thread_inference && !keys.has(dispatch_key::transform_back)) return redispatch(op, keys.below(dispatch_key::inplace_or_view), x);
  return run_kernel<F>(self, op, keys, x);
}
} // namespace detail

/// Operators and kernels that a program registers, for as long as the object lives (`torch.library.Library`): on destruction all of it is taken back.
/// Names without `::` belong to the library's own namespace, or to varve's operators when that is "aten". Registration is safe against calls on other
/// threads; a call under way may end in the kernel it found, so kernels are kept (`detail::registry` says how) and what they refer to must outlive
/// such calls.
class library {
public:
  explicit library(std::string name) : name_(std::move(name)) {}
  library(library const&) = delete;
  library& operator=(library const&) = delete;
  ~library() {
    if (take_back_) take_back_(this);
  }

  /// Defines an operator, with its arguments in PyTorch's notation: `def("foo(Tensor x, int[] dim) -> Tensor")`. Kernels come by `impl`.
  template <class T = void>
  op_table const* def(std::string_view schema) {
    operator_schema const s = operator_schema::parse(schema);
    std::string const full = qualified(s.name);
    if (s.operands() > 8 || s.attributes() > attributes::capacity) throw value_error(("varve: operator " + full + " has more than 8 operands or 3 attributes").c_str());
    op_table const* const t = all<T>().define(this, full, s);
    if (!t) throw dispatch_error(("varve: operator " + full + " is defined already; add kernels to it by impl").c_str());
    return t;
  }
  /// Registers a kernel for a key or an alias of keys. It takes either tensors and, after them, `dims`; or `(boxed_op const&, boxed_args const&)`; or
  /// `(boxed_op const&, dispatch_key_set, boxed_args const&)`, for those that redispatch. `dispatch_error` when the operator is unknown, when another
  /// kernel is registered for the key, or when the kernel's parameters are not those of the schema.
  template <class F, class T = void>
  void impl(std::string_view op, dispatch_key key, F kernel) {
    op_table const* const t = known(op);
    if constexpr (!detail::keyed_kernel<F> && !detail::simple_boxed_kernel<F>) {
      using P = detail::unboxed_parameters<F>;
      operator_schema const s = operator_schema::parse(std::string(t->name) + t->schema);
      if (P::tensors != t->arity || P::facts > s.attributes())
        throw dispatch_error(("varve: a kernel for " + to_string(s) + " must take its " + std::to_string(t->arity) + " tensors and at most " + std::to_string(s.attributes()) +
                              " attributes as dims, but it takes " + std::to_string(P::tensors) + " tensors and " + std::to_string(P::facts) + " attributes")
                                 .c_str());
    }
    all<T>().add(t, kernel_record<F>(key), keep(std::move(kernel), detail::changed_by_calls<F>()));
  }
  /// Calls of the operator pass over the key.
  template <class T = void>
  void fallthrough(std::string_view op, dispatch_key key) {
    all<T>().add(known(op), {this, key, {}, {}});
  }
  /// Registers what a kind of transform does with the operator: `rule(interpreter, boxed_op const&, boxed_args const&)`, called with the transform
  /// still on the stack.
  template <class F, class I = interpreter, class T = void>
  void impl(std::string_view op, transform_type type, F rule) {
    interpreter_rule const r{[](void* self, layer& l, boxed_op const& o, boxed_args const& x) -> tensor { return detail::kept_function_of<F>::of(self)(I(l), o, x); }, nullptr,
                             varve::name(type)};
    all<T>().add(known(op), {this, dispatch_key::undefined, {}, r}, keep(std::move(rule), !std::is_invocable_v<F const&, I, boxed_op const&, boxed_args const&>));
  }
  /// Registers a boxed kernel for all operators that have none at the key.
  template <class F, class T = void>
  void fallback(dispatch_key key, F kernel) {
    static_assert(detail::keyed_kernel<F> || detail::simple_boxed_kernel<F>, "varve: a fallback is boxed: (boxed_op const&, dispatch_key_set, boxed_args const&)");
    all<T>().add_fallback(kernel_record<F>(key), keep(std::move(kernel), detail::changed_by_calls<F>()));
  }
  template <class T = void>
  void fallthrough(dispatch_key key) {
    all<T>().add_fallback({this, key, {}, {}});
  }

private:
  /// The registry; from now on there may be something to take back.
  template <class T>
  detail::registry<T>& all() {
    take_back_ = [](library const* l) { detail::registry<T>::instance().remove(l); };
    return detail::registry<T>::instance();
  }
  std::string qualified(std::string_view op) const {
    if (op.find("::") != op.npos || name_ == "aten") return std::string(op);
    return name_ + "::" + std::string(op);
  }
  op_table const* known(std::string_view op) const {
    op_table const* t = ops::find(qualified(op).c_str());
    if (!t) throw dispatch_error(("varve: there is no operator " + qualified(op) + "; define it first, or call it once so that the program contains it").c_str());
    return t;
  }
  template <class F>
  static detail::function_owner keep(F&& f, bool changes) {
    return detail::function_owner(new detail::kept_function_of<F>(std::move(f), changes));
  }
  template <class F>
  detail::registration_record kernel_record(dispatch_key key) const {
    bool const eager = dispatch_key_set(key).has_any({dispatch_key::autograd_functionality, dispatch_key::inplace_or_view});
    return {this, key, {eager ? &detail::run_unless_inference<F> : &detail::run_kernel<F>, nullptr}, {}};
  }
  std::string name_;
  void (*take_back_)(library const*) = nullptr;
};

template <class... X>
tensor ops::call(char const* name, X const&... x) {
  op_table const* const t = find(name);
  if (!t) throw dispatch_error((std::string("varve: there is no operator ") + name + "; define it in a library, or call it once so that the program contains it").c_str());
  boxed_args args;
  attributes at;
  auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, dims>) {
      if (at.count == attributes::capacity)
        throw dispatch_error((std::string("varve: ") + name + t->schema + " was called with more than three attributes; an operator has three at most").c_str());
      at.fact[at.count++] = v;
    } else {
      args.push_back(detail::as_tensor(v));
    }
  };
  (take(x), ...);
  if (args.size() != t->arity)
    throw dispatch_error(
        (std::string("varve: ") + name + t->schema + " was called with " + std::to_string(args.size()) + " operands; it takes " + std::to_string(t->arity)).c_str());
  return boxed_op{t, &at}(args);
}

} // namespace varve

// ---- varve/dispatch/higher_order.hpp
namespace varve {

class higher_order_operator;

/// A call of a higher-order operator in the dynamic world: what layers, modes and rules are given. It owns its functions (HO-19: results are flat).
struct boxed_hop {
  higher_order_operator* op;
  std::vector<boxed_function> functions;
  attributes at{};
  char const* name() const;
  /// The same call of other functions.
  template <class = void>
  boxed_hop with(std::vector<boxed_function> f) const {
    return {op, std::move(f), at};
  }
  /// Lowers: hands the call to the next interpreter of the thread.
  template <class = void>
  boxed_args operator()(boxed_args const& x) const;
};

/// A higher-order operator of the dynamic world: a name and one rule per dispatch key, kind of transform, type of mode, and type of subclass (HO-3).
/// What has no rule refuses the call with an error that names both. Registering is safe against calls on other threads: rules are a list that only
/// grows in front. The operator must outlive its calls. (What is a template without need costs nothing unless used.)
class higher_order_operator {
public:
  explicit higher_order_operator(char const* name) : name_(name) {
    operators& all = list();
    detail::spin_lock::held const on(all.lock);
    next_ = all.first;
    all.first = this;
  }
  higher_order_operator(higher_order_operator const&) = delete;
  higher_order_operator& operator=(higher_order_operator const&) = delete;
  ~higher_order_operator() {
    {
      operators& all = list();
      detail::spin_lock::held const on(all.lock);
      for (higher_order_operator** o = &all.first; *o; o = &(*o)->next_)
        if (*o == this) {
          *o = next_;
          break;
        }
    }
    for (rule* r = rules_.load(std::memory_order_acquire); r;) {
      rule* const next = r->next;
      r->destroy(r);
      r = next;
    }
  }

  char const* name() const { return name_; }
  /// Null when there is none of that name.
  static higher_order_operator* find(char const* name) {
    operators& all = list();
    detail::spin_lock::held const on(all.lock);
    for (auto* o = all.first; o; o = o->next_)
      if (std::strcmp(o->name_, name) == 0) return o;
    return nullptr;
  }

  /// A kernel `(boxed_hop const&, boxed_args const&)` for a key; `composite_explicit` serves every backend.
  template <class F>
  void impl(dispatch_key key, F f) {
    add({key, nullptr, varve::name(key)}, [f = std::move(f)](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); });
  }
  /// A rule `(interpreter, boxed_hop const&, boxed_args const&)` for a kind of transform, named as `layer::kind`; the transform is on the stack while
  /// it runs: `lower` hides it.
  template <class F, class I = interpreter>
  void impl(char const* kind, F f) {
    add({dispatch_key::transform, nullptr, kind},
        [f = std::move(f)](void* l, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(I(*static_cast<layer*>(l)), op, x); });
  }
  template <class F>
  void impl(transform_type type, F f) {
    impl(varve::name(type), std::move(f));
  }
  /// A rule `(Mode&, boxed_hop const&, boxed_args const&)` for modes of exactly one type, called with the mode off the stack (HO-5).
  template <class Mode, class F>
  void impl_mode(F f) {
    add({dispatch_key::dispatch_mode, &name_of_type<Mode>, name_of_type<Mode>.c_str()},
        [f = std::move(f)](void* m, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(*static_cast<Mode*>(m), op, x); });
  }
  /// A rule `(boxed_hop const&, boxed_args const&)` for operands of a subclass (HO-6).
  template <class F>
  void impl_subclass(subclass_type const& type, F f) {
    add({dispatch_key::subclass, &type, type.name}, [f = std::move(f)](void*, boxed_hop const& op, boxed_args const& x) mutable -> boxed_args { return f(op, x); });
  }
  /// Says that the operator writes into some of its operands: it is refused where a gradient would be recorded.
  void mark_written() { written_ = true; }
  /// Keys that a call passes over unless something is registered for them (HO-2).
  static constexpr dispatch_key_set default_fallthrough{dispatch_key::inplace_or_view, dispatch_key::autocast, dispatch_key::transform_back};
  bool has(dispatch_key key) const { return search({key, nullptr, varve::name(key)}); }

  template <class = void>
  boxed_args operator()(std::vector<boxed_function> functions, boxed_args const& x, attributes const& at = {}) {
    return call({this, std::move(functions), at}, x);
  }
  /// The call settles through function modes, pre-dispatch modes, transforms, modes, subclasses and the backend; each is given it as one call (HO-4).
  template <class = void>
  boxed_args call(boxed_hop const& op, boxed_args const& x) {
    return redispatch(op, detail::keys_of_call(x), x);
  }
  /// ... from the highest of some keys on.
  template <class = void>
  boxed_args redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x);

private:
  /// Whom a rule is for: a key, and beside it a kind of transform by name, or a mode or subclass by the identity of its type.
  struct asker {
    dispatch_key key;
    void const* type;
    char const* name;
    bool is(asker const& o) const { return key == o.key && type == o.type && (type || std::strcmp(name, o.name) == 0); }
  };
  struct rule {
    asker whom;
    boxed_args (*call)(rule*, void* who, boxed_hop const&, boxed_args const&);
    void (*destroy)(rule*);
    rule* next;
    boxed_args operator()(void* who, boxed_hop const& op, boxed_args const& x) { return call(this, who, op, x); }
  };
  template <class F>
  struct rule_of : rule {
    F f;
    rule_of(asker const& a, F&& g) : rule{a, &run, &end, nullptr}, f(std::move(g)) {}
    static boxed_args run(rule* r, void* who, boxed_hop const& op, boxed_args const& x) { return static_cast<rule_of*>(r)->f(who, op, x); }
    static void end(rule* r) { delete static_cast<rule_of*>(r); }
  };
  struct operators {
    detail::spin_lock lock;
    higher_order_operator* first = nullptr;
  };
  static operators& list() {
    static operators* const l = new operators; // outlives every operator
    return *l;
  }
  template <class F>
  void add(asker const& whom, F f) {
    if (rule* const r = new rule_of<F>(whom, std::move(f)); !publish(r)) {
      r->destroy(r);
      throw dispatch_error((std::string("varve: the higher-order operator ") + name_ + " has a rule for " + whom.name + " already; a call can follow one only").c_str());
    }
  }
  bool publish(rule* r) {
    detail::spin_lock::held const on(lock_);
    if (search(r->whom)) return false;
    r->next = rules_.load(std::memory_order_relaxed);
    rules_.store(r, std::memory_order_release);
    return true;
  }
  rule* search(asker const& whom) const {
    rule* r = rules_.load(std::memory_order_acquire);
    while (r && !r->whom.is(whom)) r = r->next;
    return r;
  }
  [[noreturn]] VARVE_COLD void refuse(char const* what, char const* who, std::string const& remedy) const {
    throw missing_rule((std::string("varve: no rule registered for the higher-order operator ") + name_ + " and the " + what + " " + who + "; " + remedy).c_str());
  }
  template <class = void>
  boxed_args call_transform(boxed_hop const& op, boxed_args const& x);
  template <class = void>
  boxed_args call_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x);
  template <class = void>
  boxed_args call_subclass(boxed_hop const& op, boxed_args const& x);

  char const* name_;
  bool written_ = false;
  higher_order_operator* next_ = nullptr;
  detail::spin_lock lock_; // of those who add rules
  std::atomic<rule*> rules_{nullptr};
};

inline char const* boxed_hop::name() const { return op->name(); }
template <class>
boxed_args boxed_hop::operator()(boxed_args const& x) const {
  return op->call(*this, x);
}

namespace detail {
/// Puts a layer back on its stack around a function that it handed down, as it stood before.
class reentered {
public:
  reentered(layer_stack& stack, layer& l) : stack_(stack), layer_(l), top_(stack.top), below_(l.below) {
    if (l.below != stack.top) l.below = stack.top; // another thread may be reading it
    set_top(stack_, &l);
  }
  reentered(reentered const&) = delete;
  reentered& operator=(reentered const&) = delete;
  ~reentered() {
    if (layer_.below != below_) layer_.below = below_;
    set_top(stack_, top_);
  }

private:
  layer_stack& stack_;
  layer& layer_;
  layer *top_, *below_;
};
} // namespace detail

template <class>
boxed_args higher_order_operator::call_transform(boxed_hop const& op, boxed_args const& x) {
  layer& top = *this_thread_state.transforms.top;
  boxed_args alive;
  for (auto const& t : x) alive.push_back(detail::unwrap_dead(&top, t));
  if (rule* const r = search({dispatch_key::transform, nullptr, top.kind})) return (*r)(&top, op, alive);
  refuse("transform", top.kind, std::string("register one with op.impl(\"") + top.kind + "\", rule)");
}

template <class>
boxed_args higher_order_operator::call_mode(boxed_hop const& op, layer_stack& stack, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) - dispatch_key_set(dispatch_key::transform);
  key_guard const off(s.included, stack.key == dispatch_key::dispatch_mode ? s.excluded | above : s.excluded);
  popped const p(stack);
  layer& mode = p.top();
  if (rule* const r = search({dispatch_key::dispatch_mode, mode.type, ""})) return (*r)(mode.object, op, x);
  if (!mode.process_hop) refuse("mode", mode.kind, "register one with op.impl_mode<mode>(rule), or let the mode say supports_higher_order_operators");
  // What the functions do is seen by the mode as well, as on static values.
  std::vector<boxed_function> inside;
  for (auto const& f : op.functions)
    inside.push_back([f, &stack, &mode](boxed_args const& a) {
      detail::reentered const on(stack, mode);
      return f(a);
    });
  return mode.process_hop(mode, op.with(std::move(inside)), x);
}

template <class>
boxed_args higher_order_operator::call_subclass(boxed_hop const& op, boxed_args const& x) {
  char const* tried = "";
  for (auto const& t : x) {
    if (!t.defined() || !t.object()) continue;
    for (auto const* type = &t.object()->type(); type; type = type->base)
      if (rule* const r = search({dispatch_key::subclass, type, ""})) return (*r)(nullptr, op, x);
    tried = t.object()->type().name;
  }
  refuse("subclass", tried, "register one with op.impl_subclass(type, rule)");
}

template <class>
boxed_args higher_order_operator::redispatch(boxed_hop const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  auto const rule_for = [&](dispatch_key k) { return search({k, nullptr, varve::name(k)}); };
  while (true) {
    dispatch_key const k = keys.highest();
    if (k == dispatch_key::undefined) refuse("backend", varve::name(k), "no key of the call is left: redispatch to lower keys only");
    layer_stack* const stack = k == dispatch_key::function_mode   ? &s.functions
                               : k == dispatch_key::pre_dispatch  ? &s.pre_dispatch
                               : k == dispatch_key::dispatch_mode ? s.next_mode()
                                                                  : nullptr;
    if (stack && stack->top && (k == dispatch_key::dispatch_mode || stack->top->process_hop)) return call_mode(op, *stack, x);
    if (k == dispatch_key::transform) {
      bool wrapped = false;
      for (auto const& t : x) wrapped = wrapped || (t.defined() && t.is_wrapped());
      if (s.transforms.top) return call_transform(op, x);
      if (wrapped) {
        boxed_args plain;
        for (auto const& t : x) plain.push_back(detail::unwrap_dead(nullptr, t));
        return call(op, plain);
      }
    }
    if (k == dispatch_key::subclass) return call_subclass(op, x);
    if (is_autograd(k)) {
      // The rule is for calls that have a gradient to record; all others pass (HO-9).
      bool recorded = false;
      for (auto const& t : x) recorded = recorded || (s.grad_mode && t.defined() && t.requires_grad());
      if (recorded && written_)
        throw autograd_error((std::string("varve: ") + name_ + " writes into operands, which cannot be recorded; call it under no_grad (HO-10)").c_str());
      rule* r = recorded ? rule_for(k) : nullptr;
      if (recorded && !r) r = rule_for(dispatch_key::autograd);
      if (r) return (*r)(nullptr, op, x);
      keys = keys.below(k);
      continue;
    }
    if (rule* const r = rule_for(k)) return (*r)(nullptr, op, x);
    if (is_backend(k)) {
      if (rule* const r = rule_for(dispatch_key::composite_explicit)) return (*r)(nullptr, op, x);
      refuse("backend", varve::name(k),
             std::string("register one with op.impl(dispatch_key::") + varve::name(k) + ", rule), or for all backends with dispatch_key::composite_explicit");
    }
    keys = keys.below(k);
  }
}

} // namespace varve

// ---- varve/fwd.hpp
/// @file
/// The index of operators: every tag and object, by family. Rules stand in `op/<name>.hpp`. Names, argument order and defaults are those of `torch.*`.
namespace varve {

// --- pointwise: shapes broadcast, dtypes promote (torch.result_type) --------------------------------------------------------------
inline constexpr struct add_t : promoting_operator<add_t> { static constexpr auto op_name = "add"; } add{};
inline constexpr struct sub_t : promoting_operator<sub_t> { static constexpr auto op_name = "sub"; } sub{};
inline constexpr struct mul_t : promoting_operator<mul_t> { static constexpr auto op_name = "mul"; } mul{};
inline constexpr struct div_t : promoting_operator<div_t> { static constexpr auto op_name = "div"; } div{};
inline constexpr struct pow_t : promoting_operator<pow_t> { static constexpr auto op_name = "pow"; } pow{};
inline constexpr struct neg_t : promoting_operator<neg_t> { static constexpr auto op_name = "neg"; } neg{};
inline constexpr struct abs_t : promoting_operator<abs_t> { static constexpr auto op_name = "abs"; } abs{};
inline constexpr struct sign_t : promoting_operator<sign_t> { static constexpr auto op_name = "sign"; } sign{};
inline constexpr struct exp_t : promoting_operator<exp_t> { static constexpr auto op_name = "exp"; } exp{};
inline constexpr struct log_t : promoting_operator<log_t> { static constexpr auto op_name = "log"; } log{};
inline constexpr struct sqrt_t : promoting_operator<sqrt_t> { static constexpr auto op_name = "sqrt"; } sqrt{};
inline constexpr struct sin_t : promoting_operator<sin_t> { static constexpr auto op_name = "sin"; } sin{};
inline constexpr struct cos_t : promoting_operator<cos_t> { static constexpr auto op_name = "cos"; } cos{};
inline constexpr struct tanh_t : promoting_operator<tanh_t> { static constexpr auto op_name = "tanh"; } tanh{};
inline constexpr struct sigmoid_t : promoting_operator<sigmoid_t> { static constexpr auto op_name = "sigmoid"; } sigmoid{};
inline constexpr struct relu_t : promoting_operator<relu_t> { static constexpr auto op_name = "relu"; } relu{};
inline constexpr struct maximum_t : promoting_operator<maximum_t> { static constexpr auto op_name = "maximum"; } maximum{};
inline constexpr struct minimum_t : promoting_operator<minimum_t> { static constexpr auto op_name = "minimum"; } minimum{};
inline constexpr struct where_t : promoting_operator<where_t> { static constexpr auto op_name = "where"; } where{};
inline constexpr struct lt_t : promoting_operator<lt_t> { static constexpr auto op_name = "lt"; } lt{};
inline constexpr struct le_t : promoting_operator<le_t> { static constexpr auto op_name = "le"; } le{};
inline constexpr struct gt_t : promoting_operator<gt_t> { static constexpr auto op_name = "gt"; } gt{};
inline constexpr struct ge_t : promoting_operator<ge_t> { static constexpr auto op_name = "ge"; } ge{};
inline constexpr struct eq_t : promoting_operator<eq_t> { static constexpr auto op_name = "eq"; } eq{};
inline constexpr struct ne_t : promoting_operator<ne_t> { static constexpr auto op_name = "ne"; } ne{};

// --- dtype -------------------------------------------------------------------------------------------------------------------------
/// `to(x, type<float>)`, on tensors and proxies also `to(x, dtype::float32)`: converts the elements; x itself when nothing changes.
inline constexpr struct to_t {
  static constexpr auto op_name = "to";
  template <value X, class T>
  constexpr auto operator()(X const& x, T const& type) const;
} to{};

// --- reductions ---------------------------------------------------------------------------------------------------------------------
/// `sum(x)`, `sum(x, axis<1>)`, `sum(x, axis<0, 1>, keepdim)`; bool and integers sum to int64.
inline constexpr struct sum_t {
  static constexpr auto op_name = "sum";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
} sum{};
/// Greatest element along axes; the gradient is shared evenly among equals, NaN wins.
inline constexpr struct amax_t {
  static constexpr auto op_name = "amax";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
} amax{};
/// Smallest element along axes; the gradient is shared evenly among equals, NaN wins.
inline constexpr struct amin_t {
  static constexpr auto op_name = "amin";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
} amin{};
/// Position (int64) of the first greatest element, over all elements or along one axis.
inline constexpr struct argmax_t {
  static constexpr auto op_name = "argmax";
  template <value X, class... A>
  constexpr auto operator()(X const& x, A const&... at) const;
} argmax{};

// --- contractions --------------------------------------------------------------------------------------------------------------------
/// The matrix product behind `matmul`: operands of equal rank >= 2 and equal leading sizes; two flags say whether an operand is stored transposed.
inline constexpr struct mm_t {
  static constexpr auto op_name = "mm";
  template <value A, value B, class... F>
  constexpr auto operator()(A const& a, B const& b, F const&... flags) const;
} mm{};

// --- views ---------------------------------------------------------------------------------------------------------------------------
inline constexpr struct reshape_t {
  static constexpr auto op_name = "reshape";
  template <value X, class S>
  constexpr auto operator()(X const& x, S const& sizes) const;
} reshape{};
inline constexpr struct permute_t {
  static constexpr auto op_name = "permute";
  template <value X, class S>
  constexpr auto operator()(X const& x, S const& axes) const;
} permute{};
inline constexpr struct expand_t {
  static constexpr auto op_name = "expand";
  template <value X, class S>
  constexpr auto operator()(X const& x, S const& sizes) const;
} expand{};
/// `slice(x, axis, start, stop, step)`, for static values `slice(x, axis<0>, range<1, 5>)`.
inline constexpr struct slice_t {
  static constexpr auto op_name = "slice";
  template <value X, class A, class... R>
  constexpr auto operator()(X const& x, A const& axis, R const&... range) const;
} slice{};
/// Zeros of a shape with `g` put at the slice: the transpose of `slice` (aten::slice_backward).
inline constexpr struct slice_backward_t {
  static constexpr auto op_name = "slice_backward";
  template <value G, class S, class R>
  constexpr auto operator()(G const& g, S const& sizes, R const& range) const;
} slice_backward{};

/// `as_strided(x, size, stride, storage_offset)`: any region of a row-major value; its transpose; and the value with such a region replaced.
inline constexpr struct as_strided_t {
  static constexpr auto op_name = "as_strided";
  template <value X, class S, class T, class O = ints<0>>
  constexpr auto operator()(X const& x, S const& size, T const& stride, O const& storage_offset = {}) const;
} as_strided{};
inline constexpr struct as_strided_backward_t {
  static constexpr auto op_name = "as_strided_backward";
  template <value G, class S, class T, class O = ints<0>>
  constexpr auto operator()(G const& g, S const& input_size, T const& stride, O const& storage_offset = {}) const;
} as_strided_backward{};
inline constexpr struct as_strided_scatter_t {
  static constexpr auto op_name = "as_strided_scatter";
  template <value X, value S, class T, class O = ints<0>>
  constexpr auto operator()(X const& x, S const& src, T const& stride, O const& storage_offset = {}) const;
} as_strided_scatter{};

// --- joins, indexing --------------------------------------------------------------------------------------------------------------------
inline constexpr struct cat_t {
  static constexpr auto op_name = "cat";
  template <class X, class A>
  constexpr auto operator()(X const& values, A const& axis) const;
  template <class X>
  constexpr auto operator()(X const& values) const;
} cat{};
inline constexpr struct gather_t {
  static constexpr auto op_name = "gather";
  template <value X, class A, value I>
  constexpr auto operator()(X const& x, A const& axis, I const& index) const;
} gather{};
inline constexpr struct scatter_add_t {
  static constexpr auto op_name = "scatter_add";
  template <value X, class A, value I, value S>
  constexpr auto operator()(X const& x, A const& axis, I const& index, S const& source) const;
} scatter_add{};
inline constexpr struct one_hot_t {
  static constexpr auto op_name = "one_hot";
  template <value X, class N>
  constexpr auto operator()(X const& x, N const& num_classes) const;
} one_hot{};

/// The dtype of an element type as a fact, for `to(x, type<double>)` and factories.
template <class T>
inline constexpr ints<static_cast<index_t>(dtype_of_type<T>())> type{};
/// Keeps reduced dimensions with size 1: `sum(x, axis<1>, keepdim)`.
inline constexpr ints<1> keepdim{};

} // namespace varve

// ---- varve/rule/broadcasting.hpp
namespace varve {

/// Equality of two facts as a fact: a type when both are types, else a `bool`.
template <fact A, fact B>
constexpr auto same_fact(A const& a, B const& b) {
  if constexpr (is_ints<A> && is_ints<B>) return std::bool_constant<(A::to_dims() == B::to_dims())>{};
  else return to_dims(a) == to_dims(b);
}

namespace detail {
/// An attribute given by a user as a fact: `axis<1>`, an integer, a list, a flag, a dtype.
template <class T>
constexpr auto as_fact(T const& t) {
  if constexpr (fact<T>) return t;
  else if constexpr (std::is_enum_v<T>) return dims{static_cast<index_t>(t)};
  else return dims(t);
}
inline constexpr auto identity = [](auto const& v) { return v; };

/// Axes of `from` that a broadcast from `to` repeated, leading ones included.
inline constexpr auto repeated_axes = [](dims const& from, dims const& to) {
  dims r;
  int const shift = from.n - to.n;
  for (int k = 0; k < from.n; ++k)
    if (k < shift || (to[k - shift] == 1 && from[k] != 1)) r.push_back(k);
  return r;
};
} // namespace detail

/// Sums a value to a shape that broadcasts to its own (`Tensor.sum_to_size`): the transpose of broadcasting.
inline constexpr struct sum_to_size_t {
  template <value G, fact S>
  constexpr auto operator()(G const& g, S const& sizes) const {
    return choose(
        same_fact(shape_of(g), sizes), detail::identity,
        [&](auto const& v) { return reshape(sum(v, on_dims(detail::repeated_axes, shape_of(v), sizes), keepdim), sizes); }, g);
  }
} sum_to_size{};

/// Repeats a value to a shape unless it has it already.
inline constexpr struct broadcast_to_t {
  template <value X, fact S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    return choose(
        same_fact(shape_of(x), sizes), detail::identity, [&](auto const& v) { return expand(v, sizes); }, x);
  }
} broadcast_to{};

namespace detail {
/// Two tensors of one dtype and shape, which is the common case: found without a copy of either.
template <class A, class B>
concept both_tensors = std::is_same_v<A, tensor> && std::is_same_v<B, tensor>;
template <class A, class B>
bool alike(A const& a, B const& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes();
}
/// Gives a tangent the dtype and shape of the result it belongs to.
template <value D, value Y>
constexpr auto match(D const& d, Y const& y) {
  if constexpr (both_tensors<D, Y>) {
    if (alike(d, y)) return d;
  }
  return broadcast_to(to(d, type_fact(y)), shape_of(y));
}
/// Brings a cotangent back to the dtype and shape of the operand it belongs to.
template <value G, value X>
constexpr auto unmatch(G const& g, X const& x) {
  if constexpr (both_tensors<G, X>) {
    if (alike(g, x)) return g;
  }
  return to(sum_to_size(g, shape_of(x)), type_fact(x));
}
} // namespace detail

namespace detail {
/// Rank of an operand as its rule sees it.
template <class V, class F>
constexpr int logical_rank(operand<V, F> const& o) {
  return rank_of(o.value) - static_cast<int>(static_cast<bool>(o.batched));
}
inline constexpr auto pad_after_batch = [](dims const& sizes, dims const& rank) {
  dims r{sizes[0]};
  for (index_t k = sizes.n - 1; k < rank[0]; ++k) r.push_back(1);
  for (int k = 1; k < sizes.n; ++k) r.push_back(sizes[k]);
  return r;
};
inline constexpr auto prepend = [](dims const& sizes, dims const& n) {
  dims r = sizes;
  return r.insert(0, n[0]);
};
/// Axes of a value whose mapped dimension came in front.
inline constexpr auto shifted = [](dims const& axes) {
  dims r = axes;
  for (int k = 0; k < r.n; ++k) ++r[k];
  return r;
};
inline constexpr auto drop_first = [](dims const& sizes) {
  dims r = sizes;
  return r.erase(0);
};
template <class R, class V>
constexpr auto rank_fact(V const& v, int less) {
  if constexpr (is_ints<R>) return ints<R::size()>{};
  else return dims{rank_of(v) - less};
}
} // namespace detail

/// Rank without the mapped dimension, as a fact.
template <class V, class F>
constexpr auto logical_rank_fact(operand<V, F> const& o) {
  if constexpr (std::is_same_v<F, bool>) return dims{detail::logical_rank(o)};
  else return on_dims([](dims const& s, dims const& b) { return dims{s.n - b[0]}; }, shape_of(o.value), ints<F::value ? 1 : 0>{});
}

/// Inserts dimensions of size 1 behind the mapped one, so that the operand broadcasts against others of logical rank `rank`.
template <class V, class F, fact R>
constexpr auto align(operand<V, F> const& o, R const& rank) {
  return choose(
      o.batched, [&](auto const& v) { auto s = on_dims(detail::pad_after_batch, shape_of(v), rank);
        return choose(same_fact(s, shape_of(v)), detail::identity, [&](auto const& w) { return reshape(w, s); }, v); },
      detail::identity, o.value);
}

/// The operand with its mapped dimension in front; one that is not mapped is repeated `n` times (a view for tensors).
template <class V, class F, fact N>
constexpr auto materialize(operand<V, F> const& o, N const& n) {
  return choose(
      o.batched, detail::identity, [&](auto const& v) { return expand(v, on_dims(detail::prepend, shape_of(v), n)); }, o.value);
}

} // namespace varve

// ---- varve/rule/pointwise.hpp
namespace varve::rule {

/// Family of operators that compute each element from the elements at the same place. The operator gives
/// `kernel(x...)` on scalars or SIMD lanes and `partial(arg<I>, y, x...)`, the derivative of the result by the I-th operand
/// (`one` and `minus_one` cost nothing); shape, jvp, vjp and batch follow.
template <int Arity, promotion P = promotion::arithmetic, int Conditions = 0>
struct pointwise {
  static constexpr op_kind kind = op_kind::pointwise;
  static constexpr auto schema = Conditions ? "(Tensor condition, Tensor self, Tensor other) -> Tensor" : Arity == 1 ? "(Tensor self) -> Tensor" : Arity == 2 ? "(Tensor self, Tensor other) -> Tensor" : "(Tensor self, Tensor other, Tensor third) -> Tensor";
  static constexpr int arity = Arity;
  static constexpr promotion promote = P;
  /// Number of leading operands that are truth values and take no part in promotion (`where`).
  static constexpr int conditions = Conditions;
  static constexpr bool differentiable = P != promotion::comparison;

  /// dtype the kernel computes in.
  static constexpr dtype compute_type(meta const* in, int) {
    dtype t{};
    if constexpr (Arity - Conditions == 1) t = in[Conditions].type;
    else if constexpr (Arity - Conditions == 2) t = result_type(in[Conditions], in[Conditions + 1]);
    else t = result_type(in[Conditions], in[Conditions + 1], in[Conditions + 2]);
    if (P == promotion::floating && category(t) < 2) t = default_dtype;
    return t;
  }
  static constexpr meta shape(attributes const&, meta const* in, int count) {
    dims s = in[0].sizes;
    bool numbers = in[0].number;
    for (int k = 1; k < Arity; ++k) {
      s = broadcast(s, in[k].sizes);
      numbers = numbers && in[k].number;
    }
    return {P == promotion::comparison ? dtype::bool_ : compute_type(in, count), s, numbers};
  }

  template <std::size_t I, class Op, value D, value Y, value... X>
  static constexpr auto jvp(arg_t<I> a, Op const&, D const& d, Y const& y, X const&... x) {
    using R = rules<typename Op::tag>;
    using partial = decltype(R::partial(a, y, x...));
    if constexpr (std::is_same_v<partial, one_t>) return detail::match(d, y);
    else if constexpr (std::is_same_v<partial, minus_one_t>) return detail::match(neg(d), y);
    else return detail::match(mul(R::partial(a, y, x...), d), y);
  }
  template <std::size_t I, class Op, value G, value Y, value... X>
  static constexpr auto vjp(arg_t<I> a, Op const&, G const& g, Y const& y, X const&... x) {
    using R = rules<typename Op::tag>;
    using partial = decltype(R::partial(a, y, x...));
    auto const& operand = nth<I>(x...);
    if constexpr (std::is_same_v<partial, one_t>) return detail::unmatch(g, operand);
    else if constexpr (std::is_same_v<partial, minus_one_t>) return detail::unmatch(neg(g), operand);
    else return detail::unmatch(mul(g, R::partial(a, y, x...)), operand);
  }
  template <class Op, class N, class... O>
  static constexpr auto batch(Op const& op, N const&, O const&... o) {
    auto rank = on_dims([](auto const&... r) { dims m{0}; ((m[0] = r[0] > m[0] ? r[0] : m[0]), ...); return m; }, logical_rank_fact(o)...);
    return op(align(o, rank)...);
  }
};

} // namespace varve::rule

// ---- varve/op/add.hpp
namespace varve {

/// x + y. Linear in both operands.
template <>
struct rules<add_t> : rule::pointwise<2> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto kernel(auto x, auto y) { return x + y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return one; }
};

namespace detail {
/// Truth values have no negative (as in PyTorch: use `eq`, `ne` or convert first).
template <class Tag, int Arity>
struct no_bool : rule::pointwise<Arity> {
  static constexpr bool accepts_bool = false;
  static constexpr meta shape(attributes const& at, meta const* in, int count) {
    meta const m = rule::pointwise<Arity>::shape(at, in, count);
    if (m.type == dtype::bool_) refuse::dtype_is_not_supported(Tag::op_name, "bool");
    return m;
  }
};
} // namespace detail

/// x - y. Linear in both operands.
template <>
struct rules<sub_t> : detail::no_bool<sub_t, 2> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto kernel(auto x, auto y) { return x - y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return minus_one; }
};

/// -x.
template <>
struct rules<neg_t> : detail::no_bool<neg_t, 1> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto kernel(auto x) { return -x; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&) { return minus_one; }
};

} // namespace varve

// ---- varve/dispatch/composite.hpp
namespace varve {

namespace detail {
/// Does a mode watch public calls on tensors: a function mode or one of the pre-dispatch stack?
inline bool public_calls_are_watched() {
  thread_state const& s = this_thread_state;
  return (s.included - s.excluded).has_any({dispatch_key::function_mode, dispatch_key::pre_dispatch});
}

template <class A>
inline constexpr bool is_dynamic_operand = [] {
  if constexpr (value<A>) return is_tensor_base<base_of<A>> && level_of<A> == 0;
  else return false;
}();

/// A public call with all its arguments, in the guise of an operator: the modes that watch such calls see it whole, below them its body runs.
template <class Tag, class... A>
struct public_call : op_table {
  std::tuple<A const&...> arguments;

  template <std::size_t K>
  using argument = std::tuple_element_t<K, std::tuple<A...>>;
  explicit public_call(A const&... a) : op_table{Tag::op_name, "", 0, true, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &slot}, arguments(a...) { arity = (0 + ... + is_dynamic_operand<A>); }

  tensor run() {
    boxed_args x;
    attributes at;
    auto const take = [&](auto const& v) {
      if constexpr (is_dynamic_operand<std::remove_cvref_t<decltype(v)>>) x.push_back(v);
      else if constexpr (requires { dims(to_dims(v)); } || std::is_integral_v<std::remove_cvref_t<decltype(v)>>) {
        if (at.count < attributes::capacity) at.fact[at.count++] = to_dims(v);
      }
    };
    std::apply([&](auto const&... v) { (take(v), ...); }, arguments);
    return call_boxed({this, &at}, x);
  }

private:
  /// The operands may have been replaced by a mode; what is no operand stays as it was written.
  static tensor body(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) {
    auto const* self = static_cast<public_call const*>(op.table);
    int k = 0;
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const at = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) -> decltype(auto) {
        if constexpr (is_dynamic_operand<argument<I>>) return (x[k++]);
        else return std::get<I>(self->arguments);
      };
      std::tuple<decltype(at(std::integral_constant<std::size_t, K>{}))...> const in{at(std::integral_constant<std::size_t, K>{})...}; // braces: in order
      return static_cast<tensor>(Tag::body(std::get<K>(in)...));
    }(std::index_sequence_for<A...>{});
  }
  static constexpr dispatch_table make_table() {
    dispatch_table t = unregistered;
    for (auto& f : t.at) f = {&body};
    place(t, dispatch_key::pre_dispatch, unregistered.at[static_cast<int>(dispatch_key::pre_dispatch)]);
    place(t, dispatch_key::function_mode, unregistered.at[static_cast<int>(dispatch_key::function_mode)]);
    t.stops = dispatch_key_set::full();
    return t;
  }
  static constexpr dispatch_table kernels = make_table();
  static inline constinit std::atomic<dispatch_table const*> slot{&kernels};
};
} // namespace detail

/// Base of composites: operators that are only a `body` written in others (CompositeImplicit). Interpreters see what the body calls; function modes see the call itself (MD-22).
template <class Tag>
struct composite_operator {
  template <class... A>
  constexpr auto operator()(A const&... a) const {
    if constexpr ((detail::is_dynamic_operand<A> || ...))
      if (detail::public_calls_are_watched()) [[unlikely]]
        return static_cast<decltype(Tag::body(a...))>(detail::public_call<Tag, A...>(a...).run());
    if constexpr (detail::meets_trace<A...>) return Tag::body(detail::beside_trace(a, a...)...);
    else return Tag::body(a...);
  }
};

} // namespace varve

// ---- varve/rule/linear.hpp
namespace varve::rule {

/// Family of operators linear in their one operand: the tangent goes through the operator itself. The operator gives `shape`, `compute`, `vjp` and `batch`.
struct linear {
  static constexpr int arity = 1;
  template <class Op, value D, value Y, value X>
  static constexpr auto jvp(arg_t<0>, Op const& op, D const& d, Y const&, X const&) {
    return op(d);
  }
};

/// Family of operators linear in each of two operands (`mm`). The operator gives `shape`, `compute`, `vjp` and `batch`.
struct bilinear {
  static constexpr int arity = 2;
  template <class Op, value D, value Y, value A, value B>
  static constexpr auto jvp(arg_t<0>, Op const& op, D const& d, Y const&, A const&, B const& b) {
    return op(d, b);
  }
  template <class Op, value D, value Y, value A, value B>
  static constexpr auto jvp(arg_t<1>, Op const& op, D const& d, Y const&, A const& a, B const&) {
    return op(a, d);
  }
};

/// Family of operators that only change where elements are looked up. The operator gives `layout_of(at, layout)`: static values copy along it, tensors share storage,
/// traces take its shape. Linear; the operator gives `vjp` and `batch`.
struct view : linear {
  static constexpr op_kind kind = op_kind::view;
  static constexpr saved_values saved = saved_values::nothing();
};

} // namespace varve::rule

namespace varve::detail {
/// The shape rule of a view operator: the sizes of its layout.
template <class Rules>
constexpr meta view_shape(attributes const& at, meta const* in) {
  return {in[0].type, Rules::layout_of(at, contiguous_layout(in[0].sizes)).sizes, in[0].number};
}
} // namespace varve::detail

// ---- varve/op/to.hpp
namespace varve {

/// Converts the dtype; floating to integer truncates toward zero, anything to bool is `!= 0`. Attribute {dtype}.
template <>
struct rules<to_t> : rule::linear {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr op_kind kind = op_kind::convert;
  static constexpr auto schema = "(Tensor self, ScalarType dtype) -> Tensor";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {static_cast<dtype>(at[0][0]), in[0].sizes, in[0].number}; }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return to(g, type_fact(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

template <value X, class T>
constexpr auto to_t::operator()(X const& x, T const& type) const {
  auto t = detail::as_fact(type);
  return choose(
      same_fact(type_fact(x), t), detail::identity, [&](auto const& v) { return bind<to_t>(t)(v); }, x);
}

} // namespace varve

// ---- varve/op/reshape.hpp
namespace varve {

namespace detail {
/// Strides that show `from` under another shape without moving elements. Dimensions adjacent in memory form chunks; each new dimension must lie within one.
constexpr layout reshaped(layout const& from, dims const& sizes) {
  layout r = contiguous_layout(sizes);
  r.offset = from.offset;
  if (numel(sizes) == 0 || from.contiguous()) return r;
  int t = sizes.n - 1;
  index_t chunk = 1, filled = 1, step = from.strides.back();
  for (int f = from.sizes.n - 1; f >= 0; --f) {
    chunk *= from.sizes[f];
    if (f > 0 && (from.sizes[f - 1] == 1 || from.strides[f - 1] == chunk * step)) continue;
    for (; t >= 0 && (filled < chunk || sizes[t] == 1); --t) {
      r.strides[t] = filled * step;
      filled *= sizes[t];
    }
    if (filled != chunk) {
      r.expressible = false;
      return r;
    }
    if (f > 0) step = from.strides[f - 1];
    chunk = filled = 1;
  }
  return r;
}

/// Replaces the one -1 of a requested shape; refuses what does not hold the same number of elements.
inline constexpr auto resolve_shape = [](dims const& sizes, dims const& from) {
  dims r = sizes;
  int unknown = -1;
  index_t known = 1;
  for (int k = 0; k < r.n; ++k) {
    if (r[k] < -1) refuse::shapes_do_not_match("reshape", from, sizes);
    if (r[k] != -1) known *= r[k];
    else if (unknown >= 0) refuse::argument_is_invalid("reshape", "only one size may be -1");
    else unknown = k;
  }
  if (unknown >= 0) {
    if (known == 0 || numel(from) % known != 0) refuse::shapes_do_not_match("reshape", from, sizes);
    r[unknown] = numel(from) / known;
  }
  if (numel(r) != numel(from)) refuse::shapes_do_not_match("reshape", from, sizes);
  return r;
};
} // namespace detail

/// The same elements in row-major order under another shape; a view where strides allow it. Attribute {shape}.
template <>
struct rules<reshape_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[] shape) -> Tensor(a)";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0], in[0].number}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) { return detail::reshaped(in, at[0]); }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return reshape(g, shape_of(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return reshape(o.value, on_dims(detail::prepend, op.a, n));
  }
};

template <value X, class S>
constexpr auto reshape_t::operator()(X const& x, S const& sizes) const {
  return bind<reshape_t>(on_dims(detail::resolve_shape, detail::as_fact(sizes), shape_of(x)))(x);
}

namespace detail {
/// Reshapes unless the shape is there already.
inline constexpr auto reshape_to = [](auto const& x, auto const& sizes) {
  return choose(
      same_fact(shape_of(x), sizes), identity, [&](auto const& v) { return reshape(v, sizes); }, x);
};
} // namespace detail

/// Adds a dimension of size 1 at an axis in [-rank-1, rank].
inline constexpr struct unsqueeze_t : composite_operator<unsqueeze_t> {
  static constexpr auto op_name = "unsqueeze";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    auto with = [](dims const& s, dims const& a) {
      dims r = s;
      return r.insert(wrap_axis(a[0], s.n + 1), 1);
    };
    return reshape(x, on_dims(with, shape_of(x), detail::as_fact(axis)));
  }
} unsqueeze{};

/// Removes dimensions of size 1: all, or those of the named axes that have size 1.
inline constexpr struct squeeze_t : composite_operator<squeeze_t> {
  static constexpr auto op_name = "squeeze";
  template <value X, class A = ints<>>
  static constexpr auto body(X const& x, A const& axes = {}) {
    auto without = [](dims const& s, dims const& a) {
      dims gone, r;
      for (int k = 0; k < a.n; ++k) gone.push_back(wrap_axis(a[k], s.n));
      for (int k = 0; k < s.n; ++k)
        if (s[k] != 1 || (a.n > 0 && !gone.contains(k))) r.push_back(s[k]);
      return r;
    };
    return reshape(x, on_dims(without, shape_of(x), detail::as_fact(axes)));
  }
} squeeze{};

} // namespace varve

// ---- varve/kernel/constant_math.hpp
/// @file
/// Elementary functions for constant expressions. The standard's are not constexpr in C++20 (g++ folds them, clang does not), so these are computed
/// from reductions and series in `long double` and rounded once: within 1 ulp of double where `long double` is wider, 2 elsewhere.
/// No step overflows or makes a NaN by arithmetic, which a constant expression may not. Not meant for run time: `math.hpp` calls `std::` there.
namespace varve::kernel::constant {

using wide = long double;
inline constexpr double infinity = __builtin_huge_val(), nan = __builtin_nan("");
inline constexpr wide ln2 = 0x1.62e42fefa39ef35793c7673007e6p-1L;

/// Rounds to `T`; what is too large becomes an infinity (a plain conversion would be undefined).
template <class T>
constexpr T narrow(wide x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr wide greatest = single ? static_cast<wide>(0x1.fffffep127) : static_cast<wide>(0x1.fffffffffffffp1023);
  constexpr wide half_ulp = single ? static_cast<wide>(0x1p103) : static_cast<wide>(0x1p970);
  if (x != x) return static_cast<T>(nan);
  wide const a = x < 0 ? -x : x;
  if (a <= greatest) return static_cast<T>(x);
  T const r = a - greatest < half_ulp ? static_cast<T>(greatest) : static_cast<T>(infinity);
  return x < 0 ? -r : r;
}
/// Whether the sign bit is set, also of zeros and NaN.
constexpr bool negative(double x) { return std::bit_cast<std::uint64_t>(x) >> 63; }
constexpr double magnitude(double x) { return negative(x) ? -x : x; }
constexpr double with_sign(double x, double sign) { return negative(x) == negative(sign) ? x : -x; }

/// 2^n for |n| <= 1022.
constexpr wide power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }
constexpr wide scale(wide x, int n) {
  for (; n > 1000; n -= 1000) x *= power_of_two(1000);
  for (; n < -1000; n += 1000) x *= power_of_two(-1000);
  return x * power_of_two(n);
}
/// Nearest integer, for arguments well inside the range of `long long`.
constexpr long long nearest(wide x) { return static_cast<long long>(x < 0 ? x - 0.5L : x + 0.5L); }

constexpr double trunc(double x) {
  if (!(magnitude(x) < 0x1p52)) return x;
  return with_sign(static_cast<double>(static_cast<long long>(x)), x);
}
constexpr double floor(double x) {
  double const t = constant::trunc(x);
  return t > x ? t - 1 : t;
}
constexpr double ceil(double x) { return -constant::floor(-x); }
/// To the nearest integer, ties to even.
constexpr double round(double x) {
  if (!(magnitude(x) < 0x1p52)) return x;
  double const f = constant::floor(x), d = x - f;
  double const r = d < 0.5 || (d == 0.5 && static_cast<long long>(f) % 2 == 0) ? f : f + 1;
  return with_sign(magnitude(r), x);
}

/// x = m * 2^k with m in [1, 2), for finite x > 0.
struct parts {
  double m;
  int k;
};
constexpr parts split(double x) {
  int k = 0;
  if (x < 0x1p-1022) x *= 0x1p54, k = -54;
  auto const u = std::bit_cast<std::uint64_t>(x);
  return {std::bit_cast<double>((u & 0xfffffffffffffu) | 0x3ff0000000000000u), k + static_cast<int>(u >> 52) - 1023};
}

/// e^x - 1 for |x| <= 0.35, by Taylor's series.
constexpr wide expm1_series(wide r) {
  wide s = 1;
  for (int k = 19; k > 1; --k) s = 1 + r * s / k;
  return r * s;
}
constexpr wide wide_exp(wide x) {
  int const n = static_cast<int>(nearest(x / ln2));
  return scale(1 + expm1_series(x - n * ln2), n);
}
constexpr double exp(double x) {
  if (x != x) return x;
  if (x > 710) return infinity;
  if (x < -746) return 0;
  return narrow<double>(wide_exp(x));
}
constexpr double expm1(double x) {
  if (x != x || x == 0) return x;
  if (x > 710) return infinity;
  if (x < -50) return -1;
  if (x > 50) return narrow<double>(wide_exp(x));
  int const n = static_cast<int>(nearest(x / ln2));
  wide const s = power_of_two(n);
  return narrow<double>(s * expm1_series(x - n * ln2) + (s - 1));
}

/// log((1 + s) / (1 - s)) for |s| <= 0.172.
constexpr wide log_series(wide s) {
  wide const z = s * s;
  wide p = 0;
  for (int k = 27; k >= 1; k -= 2) p = p * z + 1.0L / k;
  return 2 * s * p;
}
constexpr wide wide_log(double x) { // x finite and positive
  parts p = split(x);
  if (p.m > 1.41421356) p.m /= 2, ++p.k;
  return p.k * ln2 + log_series((static_cast<wide>(p.m) - 1) / (static_cast<wide>(p.m) + 1));
}
constexpr double log(double x) {
  if (x != x || x == infinity) return x;
  if (x == 0) return -infinity;
  if (x < 0) return nan;
  return narrow<double>(wide_log(x));
}
constexpr double log1p(double x) {
  if (x != x || x == infinity || x == 0) return x;
  if (x == -1) return -infinity;
  if (x < -1) return nan;
  if (x > -0.29 && x < 0.41) return narrow<double>(log_series(x / (2 + static_cast<wide>(x))));
  if (x > 0x1p60) return constant::log(x);
  wide const u = 1 + static_cast<wide>(x);
  parts const p = split(static_cast<double>(u)); // only its exponent is used: u itself may need more bits than double has
  int const k = p.k + (p.m > 1.41421356);
  wide const m = scale(u, -k);
  return narrow<double>(k * ln2 + log_series((m - 1) / (m + 1)));
}

/// Square root digit by digit, correctly rounded.
constexpr double sqrt(double x) {
  if (x != x || x == 0 || x == infinity) return x;
  if (x < 0) return nan;
  parts p = split(x);
  std::uint64_t m = (std::bit_cast<std::uint64_t>(p.m) & 0xfffffffffffffu) | 0x10000000000000u; // 53 bits
  if (p.k % 2 != 0) m *= 2, --p.k;
  std::uint64_t root = 0, rest = 0;
  for (int bit = 0; bit < 54; ++bit) { // 27 pairs of bits of m, then zeros: a root of 54 bits, the last for rounding
    rest = rest << 2 | (bit < 27 ? m >> (52 - 2 * bit) & 3 : 0);
    std::uint64_t const trial = root << 2 | 1;
    root <<= 1;
    if (rest >= trial) rest -= trial, root |= 1;
  }
  root = (root + 1) / 2; // never a tie: a root of 54 significant bits has a square of more bits than x
  return narrow<double>(scale(static_cast<wide>(root), p.k / 2 - 52));
}

/// x as a remainder r in [-pi/4, pi/4] and a quadrant: exact to double precision for |x| < 1e7, less and less so beyond.
struct quadrant {
  wide r;
  int q;
};
constexpr quadrant reduce_angle(double x) {
  wide y = x;
  if (magnitude(x) > 1e15) { // meaningless digits anyway: only keep the quotient in range
    wide const turn = 0x6.487ed5110b4611a62633145c07p0L;
    for (int n = 1000; n >= 0; --n)
      while (y >= scale(turn, n) || -y >= scale(turn, n)) y -= (y < 0 ? -1 : 1) * scale(turn, n);
  }
  long long const n = nearest(y * 0xa.2f9836e4e44152a00p-4L);
  wide const r = ((y - n * 0x1.921fb54442p0L) - n * 0xd18469898cp-80L) - n * 0xc51701b839a252p-136L; // pi/2 in parts of 41 bits
  return {r, static_cast<int>(n & 3)};
}
constexpr wide sin_series(wide r) {
  wide s = 1;
  for (int k = 20; k > 1; k -= 2) s = 1 - r * r * s / (k * (k + 1));
  return r * s;
}
constexpr wide cos_series(wide r) {
  wide s = 1;
  for (int k = 21; k > 0; k -= 2) s = 1 - r * r * s / (k * (k + 1));
  return s;
}
constexpr wide wide_sin(quadrant a) {
  wide const v = a.q & 1 ? cos_series(a.r) : sin_series(a.r);
  return a.q & 2 ? -v : v;
}
constexpr double sin(double x) {
  if (x != x || x == 0) return x;
  if (magnitude(x) == infinity) return nan;
  return narrow<double>(wide_sin(reduce_angle(x)));
}
constexpr double cos(double x) {
  if (x != x) return x;
  if (magnitude(x) == infinity) return nan;
  quadrant const a = reduce_angle(x);
  return narrow<double>(wide_sin({a.r, (a.q + 1) & 3}));
}
constexpr double tan(double x) {
  if (x != x || x == 0) return x;
  if (magnitude(x) == infinity) return nan;
  quadrant const a = reduce_angle(x);
  return narrow<double>(wide_sin(a) / wide_sin({a.r, (a.q + 1) & 3}));
}

constexpr double tanh(double x) {
  if (x != x || x == 0) return x;
  double const a = magnitude(x);
  if (a > 20) return with_sign(1, x);
  wide const y = 2 * static_cast<wide>(a);
  int const n = static_cast<int>(nearest(y / ln2));
  wide const s = power_of_two(n), t = s * expm1_series(y - n * ln2) + (s - 1);
  return with_sign(narrow<double>(t / (t + 2)), x);
}
/// 1 / (1 + e^-x), through e^-|x| so that nothing overflows.
constexpr double sigmoid(double x) {
  if (x != x) return x;
  if (x < -746) return 0;
  if (x > 50) return 1;
  wide const e = wide_exp(-static_cast<wide>(magnitude(x)));
  return narrow<double>((x < 0 ? e : 1) / (1 + e));
}
/// 2/sqrt(pi) e^(-x^2) (x + 2/3 x^3 + 4/15 x^5 + ...): all terms positive, so nothing cancels.
constexpr double erf(double x) {
  if (x != x || x == 0) return x;
  double const a = magnitude(x);
  if (a > 6) return with_sign(1, x);
  wide const z = static_cast<wide>(a) * a;
  wide term = a, sum = a;
  for (int k = 1; term > sum * 1e-21L; ++k) sum += term *= 2 * z / (2 * k + 1);
  return with_sign(narrow<double>(0x1.20dd750429b6d11ae3a914fed7fep0L * wide_exp(-z) * sum), x);
}

/// Remainder of the truncated quotient, exact.
constexpr double fmod(double x, double y) {
  if (x != x || y != y || magnitude(x) == infinity || y == 0) return nan;
  double r = magnitude(x);
  double const d = magnitude(y);
  if (d == infinity) return x;
  while (r >= d) {
    int k = split(r).k - split(d).k;
    if (scale(d, k) > r) --k;
    r = static_cast<double>(r - scale(d, k));
  }
  return with_sign(r, x);
}

constexpr bool is_integer(double x) { return constant::trunc(x) == x; }
constexpr bool is_odd(double x) { return magnitude(x) < 0x1p53 && is_integer(x) && static_cast<long long>(x) % 2 != 0; }
constexpr double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return nan;
  double const a = magnitude(x), b = magnitude(y);
  bool const flip = negative(x) && is_odd(y);
  if (b == infinity) return a == 1 ? 1 : (a > 1) == (y > 0) ? infinity : 0;
  if (a == 0 || a == infinity) {
    double const r = (a == 0) == (y > 0) ? 0 : infinity;
    return flip ? -r : r;
  }
  if (x < 0 && !is_integer(y)) return nan;
  wide const t = y * wide_log(a);
  wide r = t > 710 ? static_cast<wide>(infinity) : t < -746 ? 0 : wide_exp(t);
  if (b <= 64 && is_integer(y) && t > -700 && t < 700) { // small integers: exact wherever the result is
    r = 1;
    for (int k = 0; k < static_cast<int>(b); ++k) r *= a;
    if (y < 0) r = 1 / r;
  }
  double const v = t > 710 ? infinity : narrow<double>(r);
  return flip ? -v : v;
}

} // namespace varve::kernel::constant

// ---- varve/kernel/arithmetic.hpp
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Arithmetic, rounding, comparison and selection of scalars and batches under one name. Integers wrap around, as in PyTorch. A comparison is `bool` for
/// scalars and 0/1 in the lane type for batches; a condition is true where it is not 0.
namespace varve::kernel {

template <class T>
concept floating = std::is_floating_point_v<T>;
template <class T>
concept integral = std::is_integral_v<T>;
template <class T>
concept arithmetic = std::is_arithmetic_v<T>;
/// An element type with batches that is floating.
template <class T>
concept floating_lane = lane<T> && floating<T>;
/// A scalar of any element type, or a batch.
template <class V>
concept numeric = arithmetic<V> || is_batch<V>;

namespace detail {
/// Type in which integers may overflow; itself for floating types and batches, whose instructions wrap.
template <class T>
struct wrapping {
  using type = T;
};
template <class T>
  requires(integral<T> && sizeof(T) >= 4)
struct wrapping<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
using wrapping_t = typename wrapping<T>::type;
} // namespace detail

/// a + b; logical or for `bool`.
template <numeric V>
constexpr V add(V const& a, V const& b) {
  using W = detail::wrapping_t<V>;
  return static_cast<V>(static_cast<W>(a) + static_cast<W>(b));
}
/// a - b.
template <numeric V>
constexpr V sub(V const& a, V const& b) {
  using W = detail::wrapping_t<V>;
  return static_cast<V>(static_cast<W>(a) - static_cast<W>(b));
}
/// a * b; logical and for `bool`.
template <numeric V>
constexpr V mul(V const& a, V const& b) {
  using W = detail::wrapping_t<V>;
  return static_cast<V>(static_cast<W>(a) * static_cast<W>(b));
}
/// -a.
template <numeric V>
constexpr V neg(V const& a) {
  if constexpr (integral<V>) return kernel::sub<V>(V(0), a);
  else if constexpr (is_batch<V>) return kernel::negate<element_t<V>>(a);
  else return -a;
}
/// |a|; the smallest integer stays.
template <arithmetic T>
constexpr T abs(T a) {
  if constexpr (std::is_unsigned_v<T>) return a;
  else if constexpr (integral<T>) return a < 0 ? kernel::neg(a) : a;
  else return constant::negative(static_cast<double>(a)) ? -a : a;
}
template <lane T>
VARVE_INLINE batch<T> abs(batch<T> const& a) {
  return library::abs(a);
}
/// 1, 0 or -1; 0 for NaN (as `torch.sign`).
template <arithmetic T>
constexpr T sign(T a) {
  if constexpr (std::is_unsigned_v<T>) return a > 0;
  else return static_cast<T>((a > 0) - (a < 0));
}
template <lane T>
VARVE_INLINE batch<T> sign(batch<T> const& a) {
  batch<T> const zero(T(0)), one(T(1));
  return kernel::select<T>(a > zero, one, kernel::select<T>(a < zero, zero - one, zero));
}

/// a < b, and so on: `bool` for scalars, 0/1 lanes for batches.
template <numeric V>
constexpr auto lt(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a < b);
  else return a < b;
}
template <numeric V>
constexpr auto le(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a <= b);
  else return a <= b;
}
template <numeric V>
constexpr auto gt(V const& a, V const& b) {
  return kernel::lt(b, a);
}
template <numeric V>
constexpr auto ge(V const& a, V const& b) {
  return kernel::le(b, a);
}
template <numeric V>
constexpr auto eq(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a == b);
  else return a == b;
}
template <numeric V>
constexpr auto ne(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(kernel::differ<element_t<V>>(a, b));
  else return a != b;
}
/// Whether a value is NaN; false for integers.
template <numeric V>
constexpr auto isnan(V const& a) {
  return kernel::ne(a, a);
}

/// `a` where `c` is not 0, else `b`. Scalars: `c` may be of another type than the values.
template <arithmetic C, arithmetic T>
constexpr T where(C c, T a, T b) {
  return c != C(0) ? a : b;
}
template <lane T>
VARVE_INLINE batch<T> where(batch<T> const& c, batch<T> const& a, batch<T> const& b) {
  return kernel::select<T>(kernel::to_mask(c), a, b);
}
/// The greater value; NaN if either is (`torch.maximum`).
template <numeric V>
constexpr V maximum(V const& a, V const& b) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    V const m = kernel::select<T>(a > b, a, b); // b if either is NaN
    if constexpr (floating<T>) return kernel::select<T>(kernel::differ<T>(a, a), a, m);
    else return m;
  } else return a > b || a != a ? a : b;
}
/// The smaller value; NaN if either is (`torch.minimum`).
template <numeric V>
constexpr V minimum(V const& a, V const& b) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    V const m = kernel::select<T>(a < b, a, b);
    if constexpr (floating<T>) return kernel::select<T>(kernel::differ<T>(a, a), a, m);
    else return m;
  } else return a < b || a != a ? a : b;
}

/// Greatest integer <= x. Integers are returned as they are by all four roundings.
template <arithmetic T>
constexpr T floor(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::floor(x)) : std::floor(x);
}
template <lane T>
VARVE_INLINE batch<T> floor(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::floor(x);
}
/// Smallest integer >= x.
template <arithmetic T>
constexpr T ceil(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::ceil(x)) : std::ceil(x);
}
template <lane T>
VARVE_INLINE batch<T> ceil(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::ceil(x);
}
/// Towards zero.
template <arithmetic T>
constexpr T trunc(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::trunc(x)) : std::trunc(x);
}
template <lane T>
VARVE_INLINE batch<T> trunc(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::trunc(x);
}
/// Nearest integer, ties to even (`torch.round`).
template <arithmetic T>
constexpr T round(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::round(x)) : std::nearbyint(x);
}
template <lane T>
VARVE_INLINE batch<T> round(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::nearbyint(x);
}

/// Remainder with the sign of the dividend (`torch.fmod`). An integer divisor 0 is `value_error`, here and below.
template <arithmetic T>
constexpr T fmod(T a, T b) {
  if constexpr (floating<T>) {
    return std::is_constant_evaluated() ? static_cast<T>(constant::fmod(a, b)) : std::fmod(a, b);
  } else {
    if (b == 0) refuse::argument_is_invalid("fmod", "integer division by zero");
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0; // the smallest integer has no quotient by -1
    return static_cast<T>(a % b);
  }
}
/// Remainder with the sign of the divisor (`torch.remainder`, Python's %).
template <arithmetic T>
constexpr T remainder(T a, T b) {
  T const r = kernel::fmod(a, b);
  if constexpr (std::is_unsigned_v<T>) return r;
  else return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
/// Quotient rounded down (`torch.floor_divide`, Python's //).
template <arithmetic T>
constexpr T floor_divide(T a, T b) {
  if constexpr (floating<T>) {
    if (b == 0) return a / b;
    T const r = kernel::fmod(a, b);
    T q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0) return constant::negative(static_cast<double>(a)) != constant::negative(static_cast<double>(b)) ? -T(0) : T(0);
    T const f = kernel::floor(q); // q is an integer but for rounding
    return q - f > T(0.5) ? f + 1 : f;
  } else {
    if (b == 0) refuse::argument_is_invalid("floor_divide", "integer division by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return kernel::neg(a);
      return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    } else return static_cast<T>(a / b);
  }
}
template <lane T>
VARVE_INLINE batch<T> fmod(batch<T> const& a, batch<T> const& b) {
  return kernel::lanewise([](T x, T y) { return kernel::fmod(x, y); }, a, b);
}
template <lane T>
VARVE_INLINE batch<T> remainder(batch<T> const& a, batch<T> const& b) {
  return kernel::lanewise([](T x, T y) { return kernel::remainder(x, y); }, a, b);
}
template <lane T>
VARVE_INLINE batch<T> floor_divide(batch<T> const& a, batch<T> const& b) {
  return kernel::lanewise([](T x, T y) { return kernel::floor_divide(x, y); }, a, b);
}

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// ---- varve/kernel/reduce_row.hpp
/// @file
/// The typed loops under reductions: a contiguous row into one result, and several rows into a row of results.
namespace varve::kernel {

/// A fold names its result type, its identity and how two values (of a batch or a scalar) combine; `from` makes a result of an element.
struct sum_fold {
  template <class T>
  using result = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  static constexpr bool repeatable = false; // whether an element may be folded in twice
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::add(a, b);
  }
};
/// Product.
struct prod_fold : sum_fold {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::mul(a, b);
  }
};
/// Greatest element; NaN if there is one.
struct max_fold {
  template <class T>
  using result = T;
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  static constexpr bool repeatable = true;
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::maximum(a, b);
  }
};
/// Least element; NaN if there is one.
struct min_fold : max_fold {
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::minimum(a, b);
  }
};
/// Whether any element is not 0.
struct any_fold {
  template <class>
  using result = bool;
  template <class>
  static constexpr bool identity() {
    return false;
  }
  static constexpr bool repeatable = true;
  static constexpr bool combine(bool a, bool b) { return a | b; }
};
/// Whether all elements are not 0.
struct all_fold : any_fold {
  template <class>
  static constexpr bool identity() {
    return true;
  }
  static constexpr bool combine(bool a, bool b) { return a & b; }
};

namespace detail {
template <class Fold, class T>
using result_t = typename Fold::template result<T>;
/// Folds run on batches when elements and results are of one type.
template <class Fold, class T>
inline constexpr bool folds_batches = lane<T> && std::is_same_v<result_t<Fold, T>, T>;
/// A boolean result asks `!= 0`; other results convert.
template <class Fold, class T>
constexpr result_t<Fold, T> to_result(T x) {
  if constexpr (std::is_same_v<result_t<Fold, T>, bool>) return x != T(0);
  else return static_cast<result_t<Fold, T>>(x);
}

template <class Fold, class T>
void clear_results(index_t n, void* results) {
  auto* const r = static_cast<result_t<Fold, T>*>(results);
  for (index_t i = 0; i < n; ++i) r[i] = Fold::template identity<result_t<Fold, T>>();
}

/// Folds a contiguous row of at least one batch in four accumulators.
template <class Fold, class T>
T fold_batches(index_t n, T const* p) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  V const start(Fold::template identity<T>());
  V a = start, b = start, c = start, d = start;
  index_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = Fold::combine(a, kernel::load(p + i));
    b = Fold::combine(b, kernel::load(p + i + L));
    c = Fold::combine(c, kernel::load(p + i + 2 * L));
    d = Fold::combine(d, kernel::load(p + i + 3 * L));
  }
  for (; i + L <= n; i += L) a = Fold::combine(a, kernel::load(p + i));
  if (i < n && Fold::repeatable) b = Fold::combine(b, kernel::load(p + n - L)), i = n;
  a = Fold::combine(Fold::combine(a, b), Fold::combine(c, d));
  T r;
  if constexpr (std::is_same_v<Fold, sum_fold>) {
    if (i < n) a += kernel::load_first(p + i, static_cast<std::size_t>(n - i));
    r = kernel::reduce_sum(a);
  } else {
    r = kernel::reduce_lanes(a, [](T x, T y) { return Fold::combine(x, y); });
    for (; i < n; ++i) r = Fold::combine(r, p[i]);
  }
  return r;
}
/// Halves long rows, so that the rounding error of a floating sum grows with the logarithm of the length.
template <class Fold, class T>
VARVE_NOINLINE T fold_halves(index_t n, T const* p) {
  constexpr index_t leaf = 512 * lanes<T>; // 128 additions in each lane
  if (n <= leaf) return detail::fold_batches<Fold>(n, p);
  index_t const half = (n / 2 + leaf - 1) / leaf * leaf;
  return Fold::combine(detail::fold_halves<Fold>(half, p), detail::fold_halves<Fold>(n - half, p + half));
}

/// Folds `n` contiguous elements into one result.
template <class Fold, class T>
void fold_row(index_t n, void const* in, void* result) {
  auto const* const p = static_cast<T const*>(in);
  auto r = *static_cast<result_t<Fold, T>*>(result);
  if constexpr (folds_batches<Fold, T>) {
    if (n >= static_cast<index_t>(lanes<T>)) {
      *static_cast<T*>(result) = Fold::combine(r, detail::fold_halves<Fold>(n, p));
      return;
    }
  }
  for (index_t i = 0; i < n; ++i) r = Fold::combine(r, detail::to_result<Fold>(p[i]));
  *static_cast<result_t<Fold, T>*>(result) = r;
}

/// r[j] = combine(r[j], the fold of `rows` >= 1 rows at column j).
template <class Fold, class T>
VARVE_NOINLINE void fold_some_rows(index_t rows, index_t stride, index_t cols, T const* p, result_t<Fold, T>* r) {
  index_t j = 0;
  if constexpr (folds_batches<Fold, T>) {
    constexpr index_t L = lanes<T>;
    for (; j + L <= cols; j += L) {
      T const* q = p + j;
      batch<T> v = kernel::load(q);
      for (index_t k = 1; k < rows; ++k) v = Fold::combine(v, kernel::load(q += stride));
      kernel::store(r + j, Fold::combine(kernel::load(r + j), v));
    }
  }
  for (; j < cols; ++j)
    for (index_t k = 0; k < rows; ++k) r[j] = Fold::combine(r[j], detail::to_result<Fold>(p[k * stride + j]));
}
inline constexpr index_t strip = 512; // columns and rows folded at a time: results and partial results stay in the first cache

/// Overwrites up to a strip of results with the fold of `rows` rows; many rows are halved, as long rows are.
template <class Fold, class T>
VARVE_NOINLINE void fold_strip(index_t rows, index_t stride, index_t cols, T const* p, result_t<Fold, T>* r) {
  constexpr index_t some = 8;
  if (rows > strip) {
    result_t<Fold, T> second[strip];
    index_t const half = (rows / 2 + strip - 1) / strip * strip;
    detail::fold_strip<Fold>(half, stride, cols, p, r);
    detail::fold_strip<Fold>(rows - half, stride, cols, p + half * stride, second);
    for (index_t j = 0; j < cols; ++j) r[j] = Fold::combine(r[j], second[j]);
    return;
  }
  detail::clear_results<Fold, T>(cols, r);
  for (index_t i = 0; i < rows; i += some) detail::fold_some_rows<Fold>(rows - i < some ? rows - i : some, stride, cols, p + i * stride, r);
}
/// Folds `rows` rows, `stride` elements apart, into a row of `cols` results. The rows are read in order.
template <class Fold, class T>
void fold_columns(index_t rows, index_t stride, index_t cols, void const* in, void* results) {
  auto* const r = static_cast<result_t<Fold, T>*>(results);
  result_t<Fold, T> part[strip];
  for (index_t j = 0; j < cols; j += strip) {
    index_t const w = cols - j < strip ? cols - j : strip;
    detail::fold_strip<Fold>(rows, stride, w, static_cast<T const*>(in) + j, part);
    for (index_t k = 0; k < w; ++k) r[j + k] = Fold::combine(r[j + k], part[k]);
  }
}
} // namespace detail

} // namespace varve::kernel

// ---- varve/kernel/reduce.hpp
/// @file
/// Reductions over any set of axes of strided memory.
namespace varve::kernel {

/// What `reduce` computes: `max` and `min` propagate NaN; `any` and `all` ask for elements that are not 0.
enum class reduction : std::uint8_t { sum, prod, max, min, any, all };

/// Element type of a result: sums and products of integers and bool are int64, `any` and `all` are bool, otherwise that of the input.
constexpr dtype reduced_dtype(reduction r, dtype in) {
  if (r == reduction::any || r == reduction::all) return dtype::bool_;
  return r <= reduction::prod && category(in) < 2 ? dtype::int64 : in;
}

namespace detail {
/// The typed parts of one reduction; `result` points to results of its type and is folded into, not overwritten.
struct reducer {
  void (*clear)(index_t n, void* result);
  void (*row)(index_t n, void const* in, void* result);
  void (*columns)(index_t rows, index_t stride, index_t cols, void const* in, void* result);
  int itemsize;
};
template <class Fold, class T>
constexpr reducer make_reducer() {
  if constexpr (std::is_same_v<T, bool> && !std::is_same_v<result_t<Fold, int>, bool>) return detail::make_reducer<Fold, std::uint8_t>(); // bytes 0 and 1: the same code
  else return {clear_results<Fold, T>, fold_row<Fold, T>, fold_columns<Fold, T>, static_cast<int>(sizeof(typename Fold::template result<T>))};
}
template <class T>
reducer reducer_of(reduction r) {
  switch (r) {
  case reduction::sum: return detail::make_reducer<sum_fold, T>();
  case reduction::prod: return detail::make_reducer<prod_fold, T>();
  case reduction::max: return detail::make_reducer<max_fold, T>();
  case reduction::min: return detail::make_reducer<min_fold, T>();
  case reduction::any: return detail::make_reducer<any_fold, T>();
  default: return detail::make_reducer<all_fold, T>();
  }
}

/// The sizes and strides of the axes in (or not in) a bit mask.
struct axis_set {
  dims sizes, strides;
  axis_set(dims const& all, index_t const* s, unsigned axes, bool inside) {
    for (int d = 0; d < all.n; ++d)
      if (((axes >> d & 1u) != 0) == inside) sizes.push_back(all.v[d]), strides.push_back(s[d]);
  }
};

VARVE_NOINLINE inline void run_reduction(reducer const& r, dims const& sizes, operand in, unsigned axes, void* out) {
  axis_set const kept(sizes, in.strides, axes, false), reduced(sizes, in.strides, axes, true);
  index_t const results = numel(kept.sizes);
  r.clear(results, out);
  if (numel(sizes) == 0) return;
  dims const out_strides = contiguous_strides(kept.sizes);
  operand const source(in.data, kept.strides.v, in.itemsize);
  walk to(kept.sizes, {out, out_strides.v, r.itemsize}, &source, 1);
  walk from(reduced.sizes, {in.data, reduced.strides.v, in.itemsize}, nullptr, 0);
  index_t const n = from.size[from.rank - 1], step = from.stride[from.rank - 1][0];
  index_t const m = to.size[to.rank - 1], to_step = to.stride[to.rank - 1][0], in_step = to.stride[to.rank - 1][1];
  bool const rows = step == in.itemsize || n == 1;
  if (!rows && in_step == in.itemsize && step % in.itemsize == 0) { // a whole row of results at once
    do {
      from.data[0] = to.data[1];
      do r.columns(n, step / in.itemsize, m, from.data[0], to.data[0]);
      while (from.next());
    } while (to.next());
    return;
  }
  constexpr index_t block = 256;
  alignas(64) unsigned char packed[block * 8];
  do {
    for (index_t j = 0; j < m; ++j) {
      from.data[0] = to.data[1] + j * in_step;
      void* const result = to.data[0] + j * to_step;
      do {
        if (rows) r.row(n, from.data[0], result);
        else
          for (index_t i = 0; i < n; i += block) {
            index_t const k = n - i < block ? n - i : block;
            detail::gather(packed, in.itemsize, from.data[0] + i * step, step, k, in.itemsize);
            r.row(k, packed, result);
          }
      } while (from.next());
    }
  } while (to.next());
}
} // namespace detail

/// Reduces the axes in the bit mask `axes` of an input of dtype `type`; `out` receives the kept axes in order, contiguous, with `reduced_dtype`. An empty
/// reduction gives 0, 1, false or true; for `max` and `min` it is `value_error`. Floating sums are accumulated in blocks, so their error grows slowly.
template <class = void>
VARVE_NOINLINE void reduce(reduction r, dtype type, dims const& sizes, operand in, unsigned axes, void* out) {
  if (r == reduction::max || r == reduction::min)
    for (int d = 0; d < sizes.n; ++d)
      if ((axes >> d & 1u) != 0 && sizes.v[d] == 0) refuse::argument_is_invalid(r == reduction::max ? "max" : "min", "a reduction of no elements has no identity");
  detail::run_reduction(on_dtype(type, "reduce", [r]<class T>() { return detail::reducer_of<T>(r); }), sizes, in, axes, out);
}

namespace detail {
/// Folds `n` more contiguous elements, the first of index `start`, into the position of the first greatest (least) element; NaN wins over all.
template <bool Greatest, class T>
void find_extreme(index_t n, void const* in, index_t start, void* best_value, std::int64_t* best) {
  auto const* p = static_cast<T const*>(in);
  auto& value = *static_cast<T*>(best_value);
  constexpr index_t block = 1024;
  for (index_t i = 0; i < n; i += block) {
    index_t const m = n - i < block ? n - i : block;
    T extreme = p[i];
    if constexpr (Greatest) fold_row<max_fold, T>(m, p + i, &extreme);
    else fold_row<min_fold, T>(m, p + i, &extreme);
    bool const better = start + i == 0 || (value == value && (extreme != extreme || (Greatest ? extreme > value : extreme < value)));
    if (!better) continue;
    index_t k = i;
    if constexpr (lane<T>)
      if (extreme == extreme)
        while (k + static_cast<index_t>(lanes<T>) <= i + m && !kernel::any<T>(kernel::load(p + k) == batch<T>(extreme))) k += lanes<T>;
    while (!(p[k] == extreme || (extreme != extreme && p[k] != p[k]))) ++k;
    value = extreme;
    *best = start + k;
  }
}
template <class T>
auto extreme_finder(bool greatest) {
  return greatest ? find_extreme<true, T> : find_extreme<false, T>;
}
} // namespace detail

/// Index of the first greatest (or least) element along `axis`, NaN counting as such; `axis` -1 is over all elements in row-major order. `out` receives the
/// kept axes in order, contiguous. No elements: `value_error`. (`torch.argmax`, `torch.argmin`)
template <class = void>
VARVE_NOINLINE void arg_reduce(bool greatest, dtype type, dims const& sizes, operand in, int axis, std::int64_t* out) {
  if (axis < 0 ? numel(sizes) == 0 : sizes.n > 0 && sizes.v[axis] == 0)
    refuse::argument_is_invalid(greatest ? "argmax" : "argmin", "a reduction of no elements has no result");
  auto const find = on_dtype(type, "argmax", [greatest]<class T>() { return detail::extreme_finder<T>(greatest); });
  constexpr index_t block = 256;
  alignas(64) unsigned char packed[block * 8];
  alignas(8) unsigned char value[8];
  auto scan = [&](char const* p, index_t n, index_t stride, index_t start, std::int64_t* best) {
    if (stride == in.itemsize || n == 1) return find(n, p, start, value, best);
    for (index_t i = 0; i < n; i += block) {
      index_t const k = n - i < block ? n - i : block;
      detail::gather(packed, in.itemsize, p + i * stride, stride, k, in.itemsize);
      find(k, packed, start + i, value, best);
    }
  };
  // The axes outside the scanned one, counted in row-major order: each position is a result, or continues the only one.
  bool const whole = axis < 0 || sizes.n == 0;
  if (whole && detail::is_contiguous(sizes, in.strides)) return scan(static_cast<char const*>(in.data), numel(sizes), in.itemsize, 0, out);
  int const scanned = whole ? sizes.n - 1 : axis;
  detail::axis_set const outer(sizes, in.strides, 1u << scanned, false);
  index_t const n = sizes.v[scanned], positions = numel(outer.sizes);
  for (index_t k = 0; k < positions; ++k) {
    auto const* p = static_cast<char const*>(in.data);
    index_t rest = k;
    for (int d = outer.sizes.n - 1; d >= 0; rest /= outer.sizes.v[d--]) p += rest % outer.sizes.v[d] * outer.strides.v[d] * in.itemsize;
    scan(p, n, in.strides[scanned] * in.itemsize, whole ? k * n : 0, whole ? out : out + k);
  }
}

} // namespace varve::kernel

// ---- varve/rule/reduction.hpp
namespace varve {

namespace detail {
/// Axes in ascending order without negatives; none given means all. Duplicates are refused.
inline constexpr auto normalize_axes = [](dims const& axes, dims const& sizes) {
  dims r;
  if (axes.n == 0)
    for (int k = 0; k < sizes.n; ++k) r.push_back(k);
  for (int k = 0; k < axes.n; ++k) {
    int const a = wrap_axis(axes[k], sizes.n);
    if (r.contains(a)) refuse::argument_is_invalid("reduction", "an axis is named twice");
    int at = r.n;
    while (at > 0 && r[at - 1] > a) --at;
    if (sizes.n > 0) r.insert(at, a);
  }
  return r;
};
constexpr dims reduced(dims const& sizes, dims const& axes, bool keep) {
  dims r;
  for (int k = 0; k < sizes.n; ++k) {
    if (!axes.contains(k)) r.push_back(sizes[k]);
    else if (keep) r.push_back(1);
  }
  return r;
}
inline constexpr auto kept_shape = [](dims const& sizes, dims const& axes) { return reduced(sizes, axes, true); };
/// Reduces a tensor by a SIMD fold of `kernel/reduce.hpp`.
template <class Tag>
VARVE_NOINLINE tensor reduce_tensor(attributes const& at, tensor const& x, kernel::detail::reducer (*fold)(dtype)) {
  meta const in[] = {meta_of(x)};
  meta const m = rules<Tag>::shape(at, in, 1);
  tensor r = tensor::empty(m.sizes, m.type);
  unsigned axes = 0;
  for (index_t a : at[0]) axes |= 1u << a;
  kernel::detail::run_reduction(fold(x.dtype()), x.sizes(), operand_of(x, x.strides().v), axes, r.raw());
  return r;
}
template <class Fold>
kernel::detail::reducer fold_for(dtype t) {
  return on_dtype(t, "reduction", []<class T>() { return kernel::detail::make_reducer<Fold, T>(); });
}
} // namespace detail

namespace rule {
/// Family of reductions over axes; attributes are {axes ascending, {keepdim}}. The operator gives `compute`, `jvp` and `vjp`.
struct reduction {
  static constexpr op_kind kind = op_kind::reduction;
  static constexpr auto schema = "(Tensor self, int[] dim, bool keepdim=False) -> Tensor";
  static constexpr int arity = 1;
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, detail::reduced(in[0].sizes, at[0], at[1][0] != 0), in[0].number}; }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return bind<typename Op::tag>(on_dims(detail::shifted, fact_of<0>(op)), fact_of<1>(op))(o.value);
  }
};
} // namespace rule

namespace detail {
/// Gives a reduced value its reduced dimensions back, with size 1.
template <class Op, value V, value X>
constexpr auto keep_reduced(Op const& op, V const& v, X const& x) {
  return reshape(v, on_dims(kept_shape, shape_of(x), fact_of<0>(op)));
}
/// Calls `f(result element, element)` for every element of `x`: how reductions without a faster kernel run.
template <class R, class T, class F>
constexpr void for_each_reduced(attributes const& at, strided<R> out, strided<T const> x, F f) {
  dims step = x.sizes; // strides of the result along the operand's dimensions, 0 along reduced ones
  int k_out = 0;
  for (int k = 0; k < x.sizes.n; ++k) {
    bool const gone = at[0].contains(k);
    step[k] = gone ? 0 : out.strides[k_out];
    if (!gone || at[1][0]) ++k_out;
  }
  for_each_index(x.sizes, [&](dims const& i) {
    index_t o = 0;
    for (int k = 0; k < i.n; ++k) o += i[k] * step[k];
    f(out.data[o], static_cast<T const&>(x.at(i)));
  });
}
/// `op(x, axes..., keepdim)`: the common front of reductions.
template <class Tag, value X, class A = ints<>, class K = ints<0>>
constexpr auto reduce(X const& x, A const& axes = {}, K const& keep = {}) {
  return bind<Tag>(on_dims(normalize_axes, as_fact(axes), shape_of(x)), as_fact(keep))(x);
}
} // namespace detail

} // namespace varve

// ---- varve/op/sum.hpp
namespace varve {

/// Sum over axes (all without); attributes {axes, {keepdim}}. Bool and integers sum to int64.
template <>
struct rules<sum_t> : rule::reduction {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr bool sums = true;
  template <class T>
  using result = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    meta m = reduction::shape(at, in, n);
    if (category(m.type) < 2) m.type = dtype::int64;
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = R(0);
    detail::for_each_reduced(at, out, x, [](R& r, T v) { r += static_cast<R>(v); });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) { return detail::reduce_tensor<sum_t>(at, x, &detail::fold_for<kernel::sum_fold>); }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&) {
    return op(d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return broadcast_to(detail::keep_reduced(op, g, x), shape_of(x));
  }
};

template <value X, class... A>
constexpr auto sum_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<sum_t>(x, at...);
}

/// Arithmetic mean over axes; integers are refused as in PyTorch: convert first. Decomposes into `sum` and a product.
inline constexpr struct mean_t : composite_operator<mean_t> {
  static constexpr auto op_name = "mean";
  template <value X, class... A>
  static constexpr auto body(X const& x, A const&... at) {
    if (!is_floating(dtype_of(x))) refuse::dtype_is_not_supported("mean", name(dtype_of(x)));
    auto const s = sum(x, at...);
    dims const sizes = to_dims(shape_of(x));
    for (index_t d : sizes)
      if (is_symbol(d)) refuse::argument_is_invalid("mean", "a symbolic size cannot be divided by; use sum and pass the count");
    auto const count = [](dims const& from, dims const& to) { return static_cast<double>(numel(from)) / static_cast<double>(numel(to)); };
    return div(s, count(sizes, to_dims(shape_of(s))));
  }
} mean{};

} // namespace varve

// ---- varve/op/expand.hpp
namespace varve {

namespace detail {
/// -1 keeps a size; the operand's shape must broadcast to the result.
inline constexpr auto resolve_expand = [](dims const& sizes, dims const& from) {
  dims r = sizes;
  int const shift = sizes.n - from.n;
  if (shift < 0) refuse::shapes_do_not_match("expand", from, sizes);
  for (int k = 0; k < r.n; ++k) {
    if (r[k] == -1 && k >= shift) r[k] = from[k - shift];
    if (r[k] < 0 || (k >= shift && from[k - shift] != 1 && from[k - shift] != r[k])) refuse::shapes_do_not_match("expand", from, sizes);
  }
  return r;
};
} // namespace detail

/// Repeats dimensions of size 1, and adds leading ones, to reach a shape; a view with strides 0. Attribute {shape}.
template <>
struct rules<expand_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[] size) -> Tensor(a)";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0], in[0].number}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) { return {at[0], broadcast_strides(in.sizes, in.strides, at[0]), in.offset, true}; }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return sum_to_size(g, shape_of(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return expand(align(o, on_dims([](dims const& s) { return dims{s.n}; }, op.a)), on_dims(detail::prepend, op.a, n));
  }
};

template <value X, class S>
constexpr auto expand_t::operator()(X const& x, S const& sizes) const {
  return bind<expand_t>(on_dims(detail::resolve_expand, detail::as_fact(sizes), shape_of(x)))(x);
}

} // namespace varve

// ---- varve/op/full_like.hpp
namespace varve {

namespace detail {
/// The value under all interpreters.
template <value X>
constexpr auto const& base_value(X const& x) {
  if constexpr (is_seen<X>) return base_value(x.value);
  else return x;
}
} // namespace detail

/// A value filled with a number, with the shape and dtype of another (`torch.full_like`). It is a constant: seen through no interpreter.
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    using B = backend<typename decltype(detail::base_tag<X>())::type>;
    if constexpr (requires { B::full_on(detail::base_value(x), to_dims(shape_of(x)), v); }) return B::full_on(detail::base_value(x), to_dims(shape_of(x)), v);
    else return of_shape(x, shape_of(x), v);
  }
  /// ... of another shape.
  template <value X, fact S, number N>
  static constexpr auto of_shape(X const& x, S const& sizes, N v) {
    using B = backend<typename decltype(detail::base_tag<X>())::type>;
    if constexpr (requires { B::full_on(detail::base_value(x), to_dims(sizes), v); }) return B::full_on(detail::base_value(x), to_dims(sizes), v);
    else return made(x, B::full(sizes, type_fact(x), v));
  }

private:
  template <class X, class R>
  static constexpr auto made(X const& x, R r) {
    if constexpr (requires { r.made_like(detail::base_value(x)); }) r.made_like(detail::base_value(x));
    return r;
  }
} full_like{};

/// Zeros with the shape and dtype of another value.
inline constexpr struct zeros_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 0);
  }
} zeros_like{};

/// Zeros of a shape, with the dtype of a value (`Tensor.new_zeros`).
inline constexpr struct new_zeros_t {
  template <value X, fact S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    return full_like.of_shape(x, sizes, 0);
  }
} new_zeros{};

/// Ones with the shape and dtype of another value.
inline constexpr struct ones_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 1);
  }
} ones_like{};

} // namespace varve

// ---- varve/interpreter/rule_call.hpp
namespace varve {

/// Names an operator and an interpreter in a compiler's message.
template <class Op, class Interpreter>
struct no_rule_of;

/// A primal with its tangent; `none_t` (static) or a null tensor (dynamic) is no tangent.
template <class P, class T>
struct dual {
  P const& primal;
  T const& tangent;
};

/// Is there something behind a payload? A type-level answer for static values, a flag for tensors.
template <class T>
constexpr auto present(T const&) {
  return std::bool_constant<!is_none<T>>{};
}

/// Sum of two contributions either of which may be absent.
template <class A, class B>
constexpr auto plus(A const& a, B const& b) {
  if constexpr (is_none<A>) return b;
  else if constexpr (is_none<B>) return a;
  else return add(a, b);
}

namespace detail {
template <class Y>
constexpr bool static_and_not_floating() {
  if constexpr (is_ints<decltype(type_fact(std::declval<Y const&>()))>) return !is_floating(static_cast<dtype>(decltype(type_fact(std::declval<Y const&>()))::to_dims()[0]));
  else return false;
}
template <class Op>
concept passes_derivatives = !constant_to_derivatives<typename Op::tag>;

template <std::size_t I, class Op, class Y, class D, class... P>
constexpr auto tangent_of(Op const& op, Y const& y, D const& d, P const&... primal) {
  if constexpr (is_none<D>) {
    return none;
  } else {
    using tag = typename Op::tag;
    static_assert(has_jvp<tag> || never<no_rule_of<Op, struct jvp>>, "varve: this operator has no jvp rule; add `jvp` (or `partial`) to its rules<>");
    if constexpr (has_jvp<tag>) return rules<tag>::jvp(arg<I>, op, d, y, primal...);
    else return none;
  }
}
constexpr none_t fold_plus() { return none; }
template <class A>
constexpr auto fold_plus(A const& a) {
  return a;
}
template <class A, class B, class... R>
constexpr auto fold_plus(A const& a, B const& b, R const&... r) {
  return fold_plus(plus(a, b), r...);
}
} // namespace detail

/// Tangent of an operator's result: the sum of its `jvp` rules over the operands that have a tangent, or `none`.
template <class Op, class Y, class... P, class... T>
constexpr auto tangent(Op const& op, Y const& y, dual<P, T> const&... d) {
  if constexpr (!detail::passes_derivatives<Op> || detail::static_and_not_floating<Y>()) {
    return none;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::fold_plus(detail::tangent_of<I>(op, y, d.tangent, d.primal...)...);
    }(std::index_sequence_for<P...>{});
  }
}

/// Cotangent of operand I.
template <std::size_t I, class Op, class G, class Y, class... X>
constexpr auto cotangent(Op const& op, G const& g, Y const& y, X const&... x) {
  using tag = typename Op::tag;
  static_assert(has_vjp<tag> || never<no_rule_of<Op, struct grad>>, "varve: this operator has no vjp rule; add `vjp` (or `partial`) to its rules<>");
  if constexpr (has_vjp<tag>) return rules<tag>::vjp(arg<I>, op, g, y, x...);
  else return none;
}

/// Result of an operator of which at least one operand is mapped, the mapped dimension in front.
template <class Op, class N, class... V, class... F>
constexpr auto batched(Op const& op, N const& n, operand<V, F> const&... o) {
  using tag = typename Op::tag;
  static_assert(has_batch<tag> || never<no_rule_of<Op, struct vmap>>, "varve: this operator has no batch rule; add `batch` to its rules<>");
  if constexpr (has_batch<tag>) return operand<decltype(rules<tag>::batch(op, n, o...)), std::true_type>{rules<tag>::batch(op, n, o...), {}};
  else return nth<0>(o...); // nothing more is instantiated after the message
}

} // namespace varve

// ---- varve/interpreter/grad.hpp
namespace varve {

/// Reverse mode: runs an operator on the primals and records it with its operands; the tape pulls cotangents through the `vjp` rules afterwards.
template <class Lv>
struct grad_interpreter : Lv {
  static constexpr char const* kind = "grad";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::grad);

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::grad(*this, op, x...);
    } else {
      return [&](auto const&... t) {
        auto y = op(t.primal...);
        return this->record(*this, op, y, t...);
      }(this->open_tracked(x)...);
    }
  }

  /// A constant: tracked by no tape.
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close_tracked(*this, v);
  }
};

} // namespace varve

// ---- varve/interpreter/jvp.hpp
namespace varve {

/// Forward mode: every value is a pair of primal and tangent; an operator's tangent is the sum of its `jvp` rules over the operands that have one.
/// One text for both worlds: `Lv` is a `static_level` or a `dynamic_level`, whose `open_dual` and `close_dual` are all that differs.
template <class Lv>
struct jvp_interpreter : Lv {
  static constexpr char const* kind = "jvp";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::jvp);

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::jvp(*this, op, x...);
    } else {
      return [&](auto const&... d) {
        auto y = op(d.primal...);
        return this->close_dual(*this, y, tangent(op, y, d...));
      }(this->open_dual(x)...);
    }
  }

  /// A constant: its tangent is zeros.
  template <class V>
  constexpr auto lift_with(V const& v, V const& zeros) const {
    return this->close_dual(*this, v, zeros);
  }
};

} // namespace varve

// ---- varve/interpreter/mode.hpp
namespace varve {

/// Base of user-written modes: `struct counting : dispatch_mode<counting> { auto process(auto op, auto const&... args) { ...; return op(args...); } };`
/// `op(args...)` lowers; `op.name()` names the operator; `for_each_value(f, args...)` visits the operands. One `process` serves both worlds: under
/// `with(m, f, x...)` it is resolved by the compiler, `mode_guard on{m}` switches it on for this thread's tensors.
template <class Derived>
struct dispatch_mode {};

/// What a mode or a subclass returns for a call it declines: the next candidate is asked (MD-10). On tensors the handler's return type is `tensor`.
struct not_implemented_t {
  operator tensor() const { return {}; }
};
inline constexpr not_implemented_t not_implemented{};

/// A mode as an interpreter: opens every value, hands the call to the user's `process`, closes the result.
template <class Lv, class M>
struct mode_interpreter : Lv {
  static constexpr char const* kind = "mode";
  static constexpr bool watches = true;
  M* mode = nullptr;

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::mode(*this, op, x...);
    } else {
      using Y = decltype(mode->process(op, this->open_plain(x)...));
      if constexpr (!std::is_same_v<Y, not_implemented_t>) return this->close(*this, mode->process(op, this->open_plain(x)...));
      else if constexpr ((std::is_same_v<X, boxed_args> || ...)) return mode->process(op, this->open_plain(x)...), tensor();
      else return mode->process(op, this->open_plain(x)...), this->close(*this, op(this->open_plain(x)...));
    }
  }
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close(*this, v);
  }
};

/// Calls `f` on every operand of a call, whether they come one by one (static values) or boxed (tensors).
template <class F, class... X>
constexpr void for_each_value(F&& f, X const&... x) {
  auto visit = [&](auto const& v) {
    if constexpr (value<decltype(v)>) f(v);
    else
      for (auto const& t : v) f(t);
  };
  (visit(x), ...);
}

} // namespace varve

// ---- varve/interpreter/vmap.hpp
namespace varve {

/// Vectorization: mapped values carry the mapped dimension in front, unseen by the function; an operator with a mapped operand runs by its `batch` rule, others pass.
/// The batch size is a fact: a type for static values, a number otherwise.
template <class Lv, class N>
struct vmap_interpreter : Lv {
  static constexpr char const* kind = "vmap";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::vmap);
  [[no_unique_address]] N n;

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::vmap(*this, op, x...);
    } else {
      return [&](auto const&... o) { return this->close_batched(*this, batched(op, n, o...)); }(this->open_batched(x)...);
    }
  }

  template <class S>
  static constexpr auto logical_shape(S const& s) {
    return on_dims(detail::drop_first, s);
  }
  /// A constant, repeated over the batch.
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close_batched(*this, operand<decltype(materialize(operand<V, std::false_type>{v, {}}, n)), std::true_type>{materialize(operand<V, std::false_type>{v, {}}, n), {}});
  }
};

} // namespace varve

// ---- varve/interpreter/dynamic_level.hpp
namespace varve {

/// The operands of a boxed call opened by a run-time transform: their inner values, and the payload of each (null where it has none).
struct boxed_dual {
  boxed_args primal;
  boxed_args tangent;
};
struct boxed_tracked {
  boxed_args const* of; // the operands as they came
  boxed_args primal;
  bool any = false;
};
struct boxed_operands {
  boxed_args const* from;
  boxed_args value;
  bool any = false;
  layer const* of = nullptr;
};

/// Boxed forms of the three rule calls (`rule_call.hpp`): the loop over operands is at run time, the rules are the same.
template <class T>
  requires std::is_same_v<T, tensor>
T tangent(boxed_op const& op, T const& y, boxed_dual const& d) {
  T t;
  if (!op.table->differentiable || !is_floating(y.dtype())) return t;
  for (int i = 0; i < d.primal.size(); ++i) {
    if (!d.tangent[i].defined()) continue;
    T const c = op.table->jvp(i, *op.at, d.tangent[i], y, d.primal);
    t = t.defined() ? add(t, c) : c;
  }
  return t;
}
namespace detail {
/// A random operator under `vmap`, by the policy of the layer: attribute 0 is its shape.
VARVE_COLD inline operand<tensor, bool> batched_random(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (o.of->random == random_policy::error)
    throw transform_error((std::string("varve: vmap: ") + op.name() + " is random; say whether all slices see the same numbers: vmap(f, ..., randomness::same) or randomness::different").c_str());
  if (o.of->random == random_policy::same) return {op(o.value), false};
  attributes wide = *op.at;
  wide.fact[0] = wide.fact[0].insert(0, n[0]);
  return {boxed_op{op.table, &wide}(o.value), true};
}
} // namespace detail
inline operand<tensor, bool> batched(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (!o.any) {
    if (op.table->handle && op.table->handle()->kind == op_kind::random) return detail::batched_random(op, n, o);
    return {op(o.value), false};
  }
  bool batched[saved_values::most] = {};
  for (int i = 0; i < o.value.size(); ++i) batched[i] = !o.value[i].is((*o.from)[i]);
  return {op.table->batch(*op.at, n[0], o.value, batched), true};
}

/// How an interpreter opens and closes *tensors*: by the layer their payload names.
struct dynamic_level {
  static constexpr int level = 0;
  layer* self = nullptr;

  /// Finds the payload of a view anew; null where values have none.
  void (*refresh)(tensor const& view) = nullptr;

  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }
  /// A value of this level, with its payload as it is after writes into the memory it is a view of.
  tensor const& fresh(tensor const& t) const {
    if (t.base().defined() && t.is_overtaken()) [[unlikely]]
      refresh(t);
    return t;
  }

  boxed_dual open_dual(boxed_args const& x) const {
    boxed_dual d;
    for (auto const& t : x) {
      d.primal.push_back(mine(t) ? t.inner() : t);
      d.tangent.push_back(mine(t) ? fresh(t).extra() : tensor());
    }
    return d;
  }
  template <class I>
  tensor close_dual(I const&, tensor const& y, tensor const& t) const {
    return t.defined() ? tensor::wrap(y, self->id, self->level, t, {}, y.sizes()) : y;
  }
  /// A result without history or tangent that was made at this level may be written into with values of the level (FS-7): it is one of them. What lies in the memory of an operand is as
  /// that operand is.
  template <class Y, class X>
  VARVE_NOINLINE void make_own(Y& y, X const& of) const {
    if (mine(y) || !is_floating(y.dtype()) || y.is_number() || self->is_dual_level) return;
    for (int i = 0; i < of.size(); ++i)
      if (of[i].defined() && y.shares_storage(of[i])) return;
    y = tracked_value(y, {});
  }

  boxed_operands open_batched(boxed_args const& x) const {
    boxed_operands o{&x, {}, false, self};
    for (auto const& t : x) {
      bool const m = mine(t);
      o.any = o.any || m;
      o.value.push_back(m ? t.inner() : t);
    }
    return o;
  }
  /// Is the one operand of a pack mapped?
  bool is_mapped(boxed_args const& x) const { return mine(x[0]); }
  template <class I, class Flag>
  tensor close_batched(I const&, operand<tensor, Flag> const& y) const {
    if (!y.batched) return y.value;
    dims logical = y.value.sizes();
    return tensor::wrap(y.value, self->id, self->level, {}, {}, logical.erase(0));
  }

  boxed_args const& open_plain(boxed_args const& x) const { return x; }
  template <class I>
  tensor close(I const&, tensor const& y) const {
    return y;
  }

  boxed_tracked open_tracked(boxed_args const& x) const {
    boxed_tracked r{&x, {}, false};
    for (auto const& t : x) {
      bool const m = mine(t);
      if (m && fresh(t).history()) r.any = true;
      r.primal.push_back(m ? t.inner() : t);
    }
    return r;
  }
  template <class I, class Y> // not tensor const& y: compilers instantiate what does not depend on a parameter, used or not
  tensor record(I const&, boxed_op const& op, Y const& y, boxed_tracked const& t) const {
    Y r = y;
    if (t.any && records()) write_down(op, r, *t.of, t.primal);
    return r;
  }
  /// Makes the result of a call that is done a value of this level, given what it was called on and what that held one level below.
  template <class Y, class X, class P>
  VARVE_INLINE void write_down(boxed_op const& op, Y& y, X const& of, P const& below) const {
    if (!op.table->differentiable || !is_floating(y.dtype())) return;
    edge const* edges[saved_values::most];
    edge const* any = nullptr;
    for (int i = 0; i < of.size(); ++i) {
      edges[i] = mine(of[i]) && fresh(of[i]).history() ? &of[i].history() : nullptr;
      if (edges[i]) any = edges[i];
    }
    if (!any) return;
    auto* const n = detail::operator_node::make(op, y, below, static_cast<edge const* const*>(edges));
    dims const& sizes = y.sizes();
    y = tensor::wrap(static_cast<Y&&>(y), self->id, self->level, {}, detail::edge_to(n), sizes);
  }
  /// ... while the level is on the stack (`layer::record`).
  template <class Y>
  static void record_done(layer& l, boxed_op const& op, Y& y, tensor const* const* of, tensor const* const* below, int n) {
    auto const& in = *static_cast<dynamic_level*>(l.object);
    bool const on = this_thread_state.grad_mode;
    if (on) in.write_down(op, y, operand_list{of, n}, operand_list{below, n});
    if (op.table->kind != op_kind::pointwise) in.link(op, y, *of[0], on); // those have memory of their own
    if (!y.is_wrapped()) in.make_own(y, operand_list{of, n});
  }
  /// A result in the memory of an operand remembers what it is a view of. Where nothing is recorded it has no history, and may not be written into where something is (AG-16).
  template <class Y>
  void link(boxed_op const& op, Y& y, tensor const& of, bool recording) const {
    if (!mine(of) || !y.shares_storage(of)) return;
    detail::view_origin origin = of.origin();
    if (!mine(y)) {
      if (!op.table->differentiable || !is_floating(y.dtype())) return;
      y = tracked_value(y, {});
      if (!recording) origin = detail::view_origin::no_grad;
    }
    y.set_base(of.base().defined() ? of.base() : of, origin);
  }
  /// Are operators recorded at this level? The mode of the thread as it was before the level was taken off (FS-8).
  bool records() const { return self->grad_mode; }
  tensor tracked_value(tensor const& y, edge history) const { return tensor::wrap(y, self->id, self->level, {}, static_cast<edge&&>(history), y.sizes()); }
};

} // namespace varve

// ---- varve/interpreter/mode_guard.hpp
namespace varve {

namespace detail {
/// A layer that hands boxed calls to a user's mode.
template <class M>
struct mode_layer : layer {
  mode_interpreter<dynamic_level, M> interpreter{};
  explicit mode_layer(M& m) {
    kind = name_of_type<M>.c_str();
    type = &name_of_type<M>;
    object = &m;
    interpreter.self = this;
    interpreter.mode = &m;
    process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor { return static_cast<mode_layer&>(l).interpreter.process(op, x); };
    if constexpr (requires { requires M::supports_higher_order_operators; })
      process_hop = [](layer& l, boxed_hop const& op, boxed_args const& x) -> boxed_args { return static_cast<mode_layer&>(l).interpreter.mode->process(op, x); };
  }
};
inline layer_stack& free_slot(infra_mode slot) {
  layer_stack& s = this_thread_state.infra[static_cast<int>(slot)];
  constexpr char const* names[] = {"functional", "proxy", "fake"};
  if (s.top) throw dispatch_error((std::string("varve: the ") + names[static_cast<int>(slot)] + " slot of the mode stack is taken by " + s.top->kind + "; end that mode first, or use mode_guard for a user mode").c_str());
  return s;
}
} // namespace detail

/// Switches a mode on for this thread's tensor operators, factories included, until the end of the scope: `mode_guard on{counting};`. Guards nest; while a mode
/// runs it is off the stack (MD-8), so its own operators reach the modes below. Modes see what transforms have made of a call. The mode must outlive the guard.
/// Higher-order operators such as `cond` reach it as one call when it says `static constexpr bool supports_higher_order_operators = true;`, or by a rule registered for it.
/// The same mode may be on twice: then it sees each call twice (MD-12).
template <class M>
class mode_guard {
public:
  explicit mode_guard(M& mode) : mode_guard(mode, this_thread_state.modes) {}
  mode_guard(mode_guard const&) = delete;
  mode_guard& operator=(mode_guard const&) = delete;

protected:
  mode_guard(M& mode, layer_stack& stack) : layer_(mode), on_(stack, layer_) {}

private:
  detail::mode_layer<M> layer_;
  pushed on_;
};
template <class M>
mode_guard(M&) -> mode_guard<M>;

/// Switches a mode on in one of the infra slots, which are asked after all user modes, whatever was entered first. A slot that is taken is `dispatch_error` (MD-5, MD-6).
template <class M>
struct infra_mode_guard : mode_guard<M> {
  infra_mode_guard(infra_mode slot, M& mode) : mode_guard<M>(mode, detail::free_slot(slot)) {}
};
template <class M>
infra_mode_guard(infra_mode, M&) -> infra_mode_guard<M>;

/// Switches a mode on above transforms and autograd: it sees calls as the program makes them (MD-18).
template <class M>
struct pre_dispatch_guard : mode_guard<M> {
  explicit pre_dispatch_guard(M& mode) : mode_guard<M>(mode, this_thread_state.pre_dispatch) {}
};
template <class M>
pre_dispatch_guard(M&) -> pre_dispatch_guard<M>;

/// Switches a mode on that sees the public calls of this thread on tensors, composites such as `softmax` as one (MD-22).
template <class M>
struct function_mode_guard : mode_guard<M> {
  explicit function_mode_guard(M& mode) : mode_guard<M>(mode, this_thread_state.functions) {}
};
template <class M>
function_mode_guard(M&) -> function_mode_guard<M>;

/// No mode of any stack sees the calls of this scope; afterwards all are back in their order, after an exception too (MD-19).
class disable_modes {
  emptied functions_{this_thread_state.functions}, pre_dispatch_{this_thread_state.pre_dispatch}, user_{this_thread_state.modes};
  emptied infra_[3]{emptied(this_thread_state.infra[0]), emptied(this_thread_state.infra[1]), emptied(this_thread_state.infra[2])};
};

/// The modes of this thread from the first to be asked last: infra slots, then user modes in the order they were switched on.
template <class L = layer const> // a template only to cost nothing unless used
std::vector<L*> current_modes() {
  std::vector<L*> r;
  thread_state const& s = this_thread_state;
  for (int k = 2; k >= 0; --k)
    if (s.infra[k].top) r.push_back(s.infra[k].top);
  std::size_t const infra = r.size();
  for (L* l = s.modes.top; l; l = l->below) r.insert(r.begin() + static_cast<std::ptrdiff_t>(infra), l);
  return r;
}
/// Is any mode on, and is any of them a user's? (MD-17)
inline bool is_mode_active() { return this_thread_state.next_mode() != nullptr; }
inline bool is_user_mode_active() { return this_thread_state.modes.top != nullptr; }

/// Inside a mode's or a subclass's handler: operators of this scope see again what lies above modes, as they did at the call (MD-9).
class reentrant_dispatch : key_guard {
public:
  reentrant_dispatch() : key_guard(this_thread_state.included, this_thread_state.excluded - dispatch_key_set::full().above(dispatch_key::dispatch_mode)) {}
};

} // namespace varve

// ---- varve/op/clone.hpp
namespace varve {

/// A copy in row-major order.
inline constexpr struct clone_t {
  static constexpr auto op_name = "clone";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return bound<clone_t>{}(x);
  }
} clone{};

template <>
struct rules<clone_t> : rule::linear {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::view;
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, in[0].sizes}; }
  /// Static values have no memory to share; tensors are copied by `make`.
  static constexpr layout layout_of(attributes const&, layout const& in) { return in; }
  static tensor make(attributes const&, tensor const& x);
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&) {
    return g;
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

/// The value itself when its elements follow one another in row-major order, else a copy.
inline constexpr struct contiguous_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    if constexpr (std::is_same_v<X, tensor>) return !x.is_wrapped() && x.is_contiguous() ? x : tensor(clone(x));
    else return x;
  }
} contiguous{};

} // namespace varve

// ---- varve/autograd/allow_mutation.hpp
namespace varve {

namespace detail {
/// What nodes of one scope saved: each value once for its memory and version.
struct kept_versions {
  struct value {
    tensor at;
    std::uint32_t version;
    bool copied;
  };
  bool open = true;
  std::vector<std::weak_ptr<value>> all;

  std::shared_ptr<value> keep(tensor const& t) {
    std::size_t live = 0;
    std::shared_ptr<value> found;
    for (auto& w : all) {
      auto v = w.lock();
      if (!v) continue;
      all[live++] = w;
      bool const same = !v->copied && v->at.shares_storage(t) && v->version == t.version() && v->at.dtype() == t.dtype() && v->at.sizes() == t.sizes() && v->at.strides() == t.strides() && v->at.where().offset == t.where().offset;
      if (same) found = v;
    }
    all.resize(live);
    if (!found) {
      found = std::make_shared<value>(value{t.alias(), t.version(), false});
      all.push_back(found);
    }
    return found;
  }
  /// What is about to be written over is copied.
  void before_write(tensor const& t) {
    for (auto const& w : all)
      if (auto const v = w.lock(); v && !v->copied && v->at.shares_storage(t)) {
        v->at = contiguous_copy(v->at);
        v->copied = true;
      }
  }
  int copies() const {
    int n = 0;
    for (auto const& w : all)
      if (auto const v = w.lock()) n += v->copied;
    return n;
  }
};
struct copying_mode : dispatch_mode<copying_mode> {
  std::shared_ptr<kept_versions> kept = std::make_shared<kept_versions>();
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    if (op.table->kind == op_kind::mutation && x[0].has_data()) kept->before_write(x[0]);
    return op(x);
  }
};
} // namespace detail

/// In this scope values that were saved for a backward pass may be written into: they are copied first, each once, and the copies live as long as the graphs that need them
/// (`torch.autograd.graph.allow_mutation_on_saved_tensors`, AG-24). The backward pass must run in the scope too (`autograd_error`). Scopes do not nest (`autograd_error`).
/// Memory that is not written into is not copied. (A template, so that the header alone instantiates nothing.)
template <class = void>
class allow_mutation_scope {
public:
  allow_mutation_scope() : on_(prepared()), hooks_(pack{mode_.kept}, unpack{mode_.kept}) { current() = this; }
  allow_mutation_scope(allow_mutation_scope const&) = delete;
  allow_mutation_scope& operator=(allow_mutation_scope const&) = delete;
  ~allow_mutation_scope() {
    mode_.kept->open = false;
    current() = nullptr;
  }
  /// How many values are held as copies.
  int copies() const { return mode_.kept->copies(); }

private:
  using value = std::shared_ptr<detail::kept_versions::value>;
  struct pack {
    std::shared_ptr<detail::kept_versions> kept;
    value operator()(tensor const& t) const { return kept->keep(t); }
  };
  struct unpack {
    std::shared_ptr<detail::kept_versions> kept;
    tensor operator()(value const& v) const {
      if (!kept->open) throw autograd_error("varve: allow_mutation_on_saved_tensors: backward runs outside of the scope in which the graph was recorded");
      return v->at;
    }
  };
  static allow_mutation_scope*& current() {
    static constinit thread_local allow_mutation_scope* c = nullptr;
    return c;
  }
  detail::copying_mode& prepared() {
    if (current()) throw autograd_error("varve: allow_mutation_on_saved_tensors: such scopes do not nest");
    return mode_;
  }
  detail::copying_mode mode_;
  mode_guard<detail::copying_mode> on_;
  saved_tensors_hooks<pack, unpack> hooks_;
};
using allow_mutation_on_saved_tensors = allow_mutation_scope<>;

} // namespace varve

// ---- varve/interpreter/grad_mode.hpp
namespace varve {

/// Are operators of this thread recorded for `backward` (`torch.is_grad_enabled`)?
inline bool is_grad_enabled() { return this_thread_state.grad_mode && !this_thread_inference; }

/// Says whether operators are recorded, for the life of the object (`torch.set_grad_enabled`). Inside of a transform it counts for that level; outside, for the levels below
/// those entered later (FS-8).
class set_grad_enabled {
public:
  explicit set_grad_enabled(bool on) : before_(this_thread_state.grad_mode) { this_thread_state.grad_mode = on; }
  set_grad_enabled(set_grad_enabled const&) = delete;
  set_grad_enabled& operator=(set_grad_enabled const&) = delete;
  ~set_grad_enabled() { this_thread_state.grad_mode = before_; }

private:
  bool before_;
};
/// Operators are not recorded. They still count versions (DT-2).
struct no_grad : set_grad_enabled {
  no_grad() : set_grad_enabled(false) {}
};
/// Operators are recorded, also inside of `no_grad`.
struct enable_grad : set_grad_enabled {
  enable_grad() : set_grad_enabled(true) {}
};
/// As `no_grad`, and what is made has neither history nor version counter for ever (AG-20).
class inference_mode {
public:
  explicit inference_mode(bool on = true) : before_(this_thread_inference) { this_thread_inference = on; }
  inference_mode(inference_mode const&) = delete;
  inference_mode& operator=(inference_mode const&) = delete;
  ~inference_mode() { this_thread_inference = before_; }

private:
  bool before_;
};
inline bool is_inference_mode_enabled() { return this_thread_inference; }

} // namespace varve

// ---- varve/interpreter/watched_backward.hpp
namespace varve::detail {

/// Is there a NaN among the elements? Values seen through transforms are not looked into.
inline bool has_nan(tensor const& t) {
  if (t.is_wrapped() || !t.has_data() || !is_floating(t.dtype())) return false;
  tensor const c = t.is_contiguous() ? t : contiguous_copy(t);
  return on_dtype(c.dtype(), "anomaly_mode", [&]<class E>() {
    if constexpr (std::is_floating_point_v<E>)
      for (index_t k = 0; k < c.numel(); ++k)
        if (E const v = static_cast<E const*>(c.raw())[k]; v != v) return true;
    return false;
  });
}
/// Under `anomaly_mode`: what fails, or gives a NaN, names the call that recorded it.
template <class = void>
VARVE_COLD boxed_args watched_backward(grad_node& n, boxed_args& g, bool const* wanted) {
  char label[64];
  n.type->name(n, label);
  std::string const where = n.extra && n.extra->call()[0] ? std::string("; it was recorded at") + n.extra->call() : std::string("; it was recorded outside of anomaly_mode, so that the call is not known");
  auto const attempt = [&] {
    try {
      return n.type->backward(n, g, wanted);
    } catch (autograd_error const& e) {
      if (std::strstr(e.what(), "recorded")) throw;
      throw autograd_error((e.what() + std::string("; in ") + label + where).c_str());
    }
  };
  boxed_args out = attempt();
  for (int k = 0; k < out.size(); ++k)
    if (out[k].defined() && has_nan(out[k])) throw autograd_error((std::string("varve: ") + label + " returned nan in its " + std::to_string(k) + "th output" + where).c_str());
  return out;
}

} // namespace varve::detail

// ---- varve/kernel/exponential.hpp
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// exp, expm1, tanh and sigmoid of batches from one argument reduction and one polynomial: faster than the library's, within 2 ulp.
/// The polynomials interpolate (e^r - 1 - r) / r^2 at the Chebyshev points of |r| <= ln(2)/2 (errors 8e-9 and 1.2e-17).
namespace varve::kernel::exponential {

template <class T>
struct table;
template <>
struct table<float> {
  using integer = std::int32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr float to_integer = 0x1.8p23f; // added, it leaves the nearest integer in the low bits
  static constexpr float log2_e = 0x1.715476p0f, ln2_high = 0x1.62e4p-1f, ln2_low = 1.4286068203094173e-06f;
  static constexpr float highest = 0x1.62e42ep+6f, lowest = -0x1.5d589ep+6f, one_below = -18, tanh_is_one = 9.5f;
  static constexpr float p[] = {0.5f, 0.16666576986698775f, 0.041666554617204574f, 0.0083631790527225781f, 0.0013926183587713494f};
};
template <>
struct table<double> {
  using integer = std::int64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr double to_integer = 0x1.8p52;
  static constexpr double log2_e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefap-1, ln2_low = 1.6465949582897082e-12;
  static constexpr double highest = 0x1.62e42fefa39efp+9, lowest = -0x1.6232bdd7abcd2p+9, one_below = -38, tanh_is_one = 20;
  static constexpr double p[] = {0.50000000000000011,    0.16666666666666669,    0.041666666666624129,   0.0083333333333300615,  0.0013888888917213717,
                                 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07, 2.510038549551032e-08};
};

/// x = n ln(2) + r: `shifted` holds n in its low bits, `q` is e^r - 1.
template <class T>
struct reduced {
  batch<T> shifted, q;
};
template <class T>
VARVE_INLINE reduced<T> reduce(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
#ifdef __FAST_MATH__ // the compiler would cancel the addition against the subtraction
  V const n = library::nearbyint(x * V(c::log2_e));
  V const shifted = n + V(c::to_integer);
#else
  V const shifted = kernel::fma<T>(x, V(c::log2_e), V(c::to_integer));
  V const n = shifted - V(c::to_integer);
#endif
  V const r = kernel::fma<T>(n, V(-c::ln2_low), kernel::fma<T>(n, V(-c::ln2_high), x));
  constexpr int count = sizeof(c::p) / sizeof(T);
  V p = V(c::p[count - 1]);
  for (int k = count - 2; k >= 0; --k) p = kernel::fma<T>(p, r, V(c::p[k]));
  return {shifted, kernel::fma<T>(r * r, p, r)};
}
/// 2^n from a shifted n, while 2^n is a normal number.
template <class T>
VARVE_INLINE batch<T> power_of_two(batch<T> const& shifted) {
  using c = table<T>;
  return detail::shift_left<c::mantissa_bits, typename c::integer, T>(shifted, batch<T>(T(1)));
}
/// e^x. Results below the smallest normal number are 0.
template <class T>
VARVE_INLINE batch<T> exp(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  auto const y = exponential::reduce<T>(x);
  V const e = detail::shift_left<c::mantissa_bits, typename c::integer, T>(y.shifted, y.q + V(T(1))); // n goes to the exponent: 2^128 alone would overflow
  return kernel::select<T>(x <= V(c::highest), kernel::select<T>(x < V(c::lowest), V(T(0)), e), x * V(std::numeric_limits<T>::max())); // infinity, or NaN
}
/// e^x - 1. One power of two less is built and the result doubled, so that the greatest results do not overflow on the way.
template <class T>
VARVE_INLINE batch<T> expm1(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const low = kernel::select<T>(x < V(c::one_below), V(c::one_below), x);
  auto const y = exponential::reduce<T>(kernel::select<T>(x > V(c::highest + 1), V(c::highest + 1), low));
  V const s = exponential::power_of_two<T>(y.shifted - V(T(1)));
  V const h = kernel::fma<T>(y.q, s, s - V(T(0.5)));
  return kernel::select<T>(x == V(T(0)), x, h + h); // keeps the sign of zero
}
/// t / (t + 2) with t = e^(2|x|) - 1, and the sign of x: nothing cancels, so small x need no case of their own.
template <class T>
VARVE_INLINE batch<T> tanh(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const a = library::abs(x);
  V const b = kernel::select<T>(a > V(c::tanh_is_one), V(c::tanh_is_one), a);
  auto const y = exponential::reduce<T>(b + b);
  V const s = exponential::power_of_two<T>(y.shifted);
  V const t = kernel::fma<T>(y.q, s, s - V(T(1)));
  return library::copysign(t / (t + V(T(2))), x);
}
/// Through e^-|x|, so that nothing overflows; below the smallest normal number 0.
template <class T>
VARVE_INLINE batch<T> sigmoid(batch<T> const& x) {
  using V = batch<T>;
  V const a = -library::abs(x);
  auto const y = exponential::reduce<T>(a);
  V const s = exponential::power_of_two<T>(y.shifted);
  V const e = kernel::select<T>(a < V(table<T>::lowest), V(T(0)), kernel::fma<T>(y.q, s, s));
  return kernel::select<T>(x < V(T(0)), e, V(T(1))) / (e + V(T(1)));
}

} // namespace varve::kernel::exponential

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// ---- varve/kernel/logarithm.hpp
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// log of batches: twice as fast as the library's for double, within 1 ulp. x = 2^k m with m in [sqrt(1/2), sqrt(2)], and with s = (m - 1) / (m + 1) the
/// series 2 s + 2/3 s^3 + 2/5 s^5 + ..., whose coefficients interpolate at Chebyshev points in s^2 (errors 3e-11 and 6e-20).
namespace varve::kernel::logarithm {

template <class T>
struct table;
template <>
struct table<float> {
  using integer = std::uint32_t;
  static constexpr int mantissa_bits = 23, bias = 128;
  static constexpr float integer_bits = 0x1p23f; // an integer below 2^23 placed in its low bits makes it 2^23 + that integer
  static constexpr float sqrt_half = 0.707106781f, ln2_high = 0x1.62e4p-1f, ln2_low = 1.4286068203094173e-06f;
  static constexpr float p[] = {0.66666666554042009f, 0.40000122211810651f, 0.28550778633191964f, 0.23331614471843498f};
};
template <>
struct table<double> {
  using integer = std::uint64_t;
  static constexpr int mantissa_bits = 52, bias = 1024;
  static constexpr double integer_bits = 0x1p52;
  static constexpr double sqrt_half = 0.70710678118654752, ln2_high = 0x1.62e42fefap-1, ln2_low = 1.6465949582897082e-12;
  static constexpr double p[] = {0.66666666666666663, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045,
                                 0.18181795547521137, 0.15386244737621665, 0.13268638369266825, 0.13088034850927555};
};

/// Natural logarithm: -inf at 0, NaN below, denormal numbers included.
template <class T>
VARVE_INLINE batch<T> log(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  using U = typename c::integer;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  auto const tiny = x < V(std::numeric_limits<T>::min());
  V const y = kernel::select<T>(tiny, x * V(c::integer_bits), x);
  auto const shifted = detail::raw_bits<T>(y) - (std::bit_cast<U>(c::sqrt_half) - (U(c::bias) << c::mantissa_bits)); // exponent of m is 0 or -1
  V const exponent = detail::from_raw_bits<T>((shifted >> c::mantissa_bits) | std::bit_cast<U>(c::integer_bits));
  V const k = exponent - kernel::select<T>(tiny, V(c::integer_bits + c::bias + c::mantissa_bits), V(c::integer_bits + c::bias));
  V const m = detail::from_raw_bits<T>((shifted & ((U(1) << c::mantissa_bits) - 1)) + std::bit_cast<U>(c::sqrt_half));
  V const f = m - V(T(1)), s = f / (f + V(T(2))), z = s * s;
  constexpr int count = sizeof(c::p) / sizeof(T);
  V p(c::p[count - 1]);
#pragma GCC unroll 8
  for (int i = count - 2; i >= 0; --i) p = kernel::fma<T>(p, z, V(c::p[i]));
  V const series = f - (s * (f - z * p) - k * V(c::ln2_low)); // 2 s = f - s f, without the error of the quotient
  V const r = kernel::fma<T>(k, V(c::ln2_high), series);
  V const positive = kernel::select<T>(x < V(infinity), r, x);
  return kernel::select<T>(x > V(T(0)), positive, kernel::select<T>(x == V(T(0)), V(-infinity), V(std::numeric_limits<T>::quiet_NaN())));
}

} // namespace varve::kernel::logarithm

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// ---- varve/kernel/math.hpp
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Elementary functions of scalars and batches under one name. Scalars: usable in constant expressions, `std::` at run time. Booleans of batches are 0/1 lanes.
/// Inside `varve::kernel` a bare `exp` is this function; elsewhere in varve it is the operator object: always write `kernel::exp`.
namespace varve::kernel {

/// e^x.
template <floating T>
constexpr T exp(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::exp(x));
  return std::exp(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> exp(batch<T> const& x) {
  return exponential::exp(x);
}
/// e^x - 1 without cancellation near 0.
template <floating T>
constexpr T expm1(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::expm1(x));
  return std::expm1(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> expm1(batch<T> const& x) {
  return exponential::expm1(x);
}
/// Natural logarithm.
template <floating T>
constexpr T log(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::log(x));
  return std::log(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> log(batch<T> const& x) {
  return logarithm::log(x);
}
/// log(1 + x) without cancellation near 0.
template <floating T>
constexpr T log1p(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::log1p(x));
  return std::log1p(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> log1p(batch<T> const& x) {
  return kernel::select<T>(x == batch<T>(T(0)), x, library::log1p(x)); // keeps the sign of zero
}
/// Sine of an angle in radians.
template <floating T>
constexpr T sin(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sin(x));
  return std::sin(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> sin(batch<T> const& x) {
  return library::sin(x);
}
/// Cosine of an angle in radians.
template <floating T>
constexpr T cos(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::cos(x));
  return std::cos(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> cos(batch<T> const& x) {
  return library::cos(x);
}
/// Tangent of an angle in radians.
template <floating T>
constexpr T tan(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::tan(x));
  return std::tan(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> tan(batch<T> const& x) {
  return library::tan(x);
}
/// Hyperbolic tangent.
template <floating T>
constexpr T tanh(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::tanh(x));
  return std::tanh(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> tanh(batch<T> const& x) {
  return exponential::tanh(x);
}
/// 1 / (1 + e^-x), without overflow for any x.
template <floating T>
constexpr T sigmoid(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sigmoid(x));
  T const e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (1 + e);
}
template <floating_lane T>
VARVE_INLINE batch<T> sigmoid(batch<T> const& x) {
  return exponential::sigmoid(x);
}
/// Error function.
template <floating T>
constexpr T erf(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::erf(x));
  return std::erf(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> erf(batch<T> const& x) {
  if constexpr (sizeof(T) == 8) return kernel::lanewise([](T e) { return std::erf(e); }, x); // xsimd's is 70 ulp off
  else return library::erf(x);
}
/// Square root, correctly rounded; NaN below 0.
template <floating T>
constexpr T sqrt(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sqrt(x));
  return std::sqrt(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> sqrt(batch<T> const& x) {
  return library::sqrt(x);
}
/// 1 / x, exactly rounded (unlike the hardware's estimate).
template <floating T>
constexpr T reciprocal(T x) {
  return T(1) / x;
}
template <floating_lane T>
VARVE_INLINE batch<T> reciprocal(batch<T> const& x) {
  return batch<T>(T(1)) / x;
}

/// x to the power y. Integers wrap around; a negative exponent gives 0 unless the base is 1 or -1 (PyTorch).
template <arithmetic T>
constexpr T pow(T x, T y) {
  if constexpr (floating<T>) {
    if (std::is_constant_evaluated()) return constant::narrow<T>(constant::pow(x, y));
    return std::pow(x, y);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (y < 0) return static_cast<T>(x == 1 ? 1 : x == T(-1) ? (y % 2 ? -1 : 1) : 0);
    std::uint64_t r = 1, b = static_cast<std::uint64_t>(x);
    for (auto e = static_cast<std::uint64_t>(y); e != 0; e >>= 1, b *= b)
      if (e & 1) r *= b;
    return static_cast<T>(r);
  }
}
template <lane T>
VARVE_INLINE batch<T> pow(batch<T> const& x, batch<T> const& y) {
  return kernel::lanewise([](T a, T b) { return kernel::pow(a, b); }, x, y);
}

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// ---- varve/op/mul.hpp
namespace varve {

/// x * y.
template <>
struct rules<mul_t> : rule::pointwise<2> {
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static constexpr auto kernel(auto x, auto y) { return x * y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) { return y; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& x, auto const&) { return x; }
};

/// x / y, always floating (torch.true_divide).
template <>
struct rules<div_t> : rule::pointwise<2, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::result | saved_values::operand(1)}};
  static constexpr auto kernel(auto x, auto y) { return x / y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&, auto const& y) { return div(1, y); }
  static constexpr auto partial(arg_t<1>, auto const& q, auto const&, auto const& y) { return neg(div(q, y)); }
};

} // namespace varve

// ---- varve/op/abs.hpp
namespace varve {

/// Magnitude. The derivative at 0 is 0.
template <>
struct rules<abs_t> : rule::pointwise<1> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return kernel::abs(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return sign(x); }
};

/// -1, 0 or 1; constant to derivatives.
template <>
struct rules<sign_t> : rule::pointwise<1> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return kernel::sign(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return mul(sign(x), 0); }
};

} // namespace varve

// ---- varve/op/compare.hpp
namespace varve {

namespace detail {
using comparison = rule::pointwise<2, promotion::comparison>;
} // namespace detail

/// x < y, as bool; false with NaN. Constant to derivatives, like all comparisons.
template <>
struct rules<lt_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::lt(x, y); }
};
/// x <= y.
template <>
struct rules<le_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::le(x, y); }
};
/// x > y.
template <>
struct rules<gt_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::gt(x, y); }
};
/// x >= y.
template <>
struct rules<ge_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::ge(x, y); }
};
/// x == y.
template <>
struct rules<eq_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::eq(x, y); }
};
/// x != y; true with NaN.
template <>
struct rules<ne_t> : detail::comparison {
  static constexpr auto kernel(auto x, auto y) { return kernel::ne(x, y); }
};

} // namespace varve

// ---- varve/op/where.hpp
namespace varve {

/// `where(condition, x, y)`: x where the condition holds, else y. The cotangent of the operand not chosen is 0, not a product with 0.
template <>
struct rules<where_t> : rule::pointwise<3, promotion::arithmetic, 1> {
  static constexpr saved_values saved{{0, saved_values::operand(0), saved_values::operand(0)}};
  static constexpr auto kernel(auto c, auto x, auto y) { return kernel::where(c, x, y); }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& r, value auto const& c, auto const&...) {
    return where(c, detail::match(d, r), 0);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<2>, Op const&, value auto const& d, value auto const& r, value auto const& c, auto const&...) {
    return where(c, 0, detail::match(d, r));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const&, value auto const& r, auto const&...) {
    return mul(r, 0);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const& c, value auto const& x, auto const&) {
    return detail::unmatch(where(c, g, 0), x);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<2>, Op const&, value auto const& g, value auto const&, value auto const& c, auto const&, value auto const& y) {
    return detail::unmatch(where(c, 0, g), y);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& c, auto const&...) {
    return detail::unmatch(mul(g, 0), c);
  }
};

} // namespace varve

// ---- varve/op/clamp.hpp
namespace varve {

/// `clamp(x, min, max)`: x limited to [min, max]; either bound may be `none`. NaN stays; max wins where min > max. The derivative passes inside and at the bounds (torch.clamp).
inline constexpr struct clamp_t : composite_operator<clamp_t> {
  static constexpr auto op_name = "clamp";
  template <value X, class Lo, class Hi = none_t>
  static constexpr auto body(X const& x, Lo const& low, Hi const& high = {}) {
    static_assert(!(is_none<Lo> && is_none<Hi>), "varve: clamp needs at least one of min and max");
    auto raise = [](auto const& v, auto const& lo) { return where(lt(v, lo), lo, v); };
    auto lower = [](auto const& v, auto const& hi) { return where(gt(v, hi), hi, v); };
    if constexpr (is_none<Lo>) return lower(x, high);
    else if constexpr (is_none<Hi>) return raise(x, low);
    else return lower(raise(x, low), high);
  }
} clamp{};

} // namespace varve

// ---- varve/op/exp.hpp
namespace varve {

/// e to the x.
template <>
struct rules<exp_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto kernel(auto x) { return kernel::exp(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return y; }
};

/// Natural logarithm.
template <>
struct rules<log_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return kernel::log(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return div(1, x); }
};

} // namespace varve

// ---- varve/op/relu.hpp
namespace varve {

/// The greater of x and 0; NaN stays. The derivative at 0 is 0, as in PyTorch.
template <>
struct rules<relu_t> : rule::pointwise<1> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto kernel(auto x) { return kernel::maximum(x, decltype(x)(0)); }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& y, value auto const&) {
    return where(gt(y, 0), d, 0);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& y, value auto const&) {
    return where(gt(y, 0), g, 0);
  }
};

} // namespace varve

// ---- varve/op/sigmoid.hpp
namespace varve {

/// 1 / (1 + e^-x).
template <>
struct rules<sigmoid_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto kernel(auto x) { return kernel::sigmoid(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return mul(y, sub(1, y)); }
};

} // namespace varve

// ---- varve/op/sin.hpp
namespace varve {

/// Sine of radians.
template <>
struct rules<sin_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return kernel::sin(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return cos(x); }
};

/// Cosine of radians.
template <>
struct rules<cos_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return kernel::cos(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(sin(x)); }
};

} // namespace varve

// ---- varve/op/sqrt.hpp
namespace varve {

/// Square root; NaN below 0.
template <>
struct rules<sqrt_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto kernel(auto x) { return kernel::sqrt(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return div(0.5, y); }
};

} // namespace varve

// ---- varve/op/tanh.hpp
namespace varve {

/// Hyperbolic tangent.
template <>
struct rules<tanh_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto kernel(auto x) { return kernel::tanh(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return sub(1, mul(y, y)); }
};

} // namespace varve

// ---- varve/op/in_place.hpp
namespace varve {

/// Operators that write into the memory of their first operand, a tensor, and return it. The others broadcast to it; the result's dtype must not have a higher category.
/// The version counter rises once (DT-2). With a gradient recorded, the tensor's history, and that of its base and views, becomes that of what it now holds (AG-15); leaves that
/// require grad are refused. Inside of `grad` and `jvp` what the function computed itself can be written into, under `vmap` what is mapped (FS-7, TR-5).
template <class Tag>
struct in_place {
  template <value... Y>
  tensor const& operator()(tensor const& x, Y const&... y) const {
    bound<Tag>{}(x, y...);
    return x;
  }
};
/// x becomes y, converted.
inline constexpr struct copy__t : in_place<copy__t> { static constexpr auto op_name = "copy_"; } copy_{};
inline constexpr struct add__t : in_place<add__t> { static constexpr auto op_name = "add_"; } add_{};
inline constexpr struct sub__t : in_place<sub__t> { static constexpr auto op_name = "sub_"; } sub_{};
inline constexpr struct mul__t : in_place<mul__t> { static constexpr auto op_name = "mul_"; } mul_{};
inline constexpr struct div__t : in_place<div__t> { static constexpr auto op_name = "div_"; } div_{};
inline constexpr struct neg__t : in_place<neg__t> { static constexpr auto op_name = "neg_"; } neg_{};
inline constexpr struct exp__t : in_place<exp__t> { static constexpr auto op_name = "exp_"; } exp_{};
inline constexpr struct log__t : in_place<log__t> { static constexpr auto op_name = "log_"; } log_{};
inline constexpr struct abs__t : in_place<abs__t> { static constexpr auto op_name = "abs_"; } abs_{};
inline constexpr struct sin__t : in_place<sin__t> { static constexpr auto op_name = "sin_"; } sin_{};
inline constexpr struct cos__t : in_place<cos__t> { static constexpr auto op_name = "cos_"; } cos_{};
inline constexpr struct tanh__t : in_place<tanh__t> { static constexpr auto op_name = "tanh_"; } tanh_{};
inline constexpr struct sqrt__t : in_place<sqrt__t> { static constexpr auto op_name = "sqrt_"; } sqrt_{};
inline constexpr struct sigmoid__t : in_place<sigmoid__t> { static constexpr auto op_name = "sigmoid_"; } sigmoid_{};
inline constexpr struct relu__t : in_place<relu__t> { static constexpr auto op_name = "relu_"; } relu_{};

namespace detail {
/// Refuses what may not be written, before anything is.
VARVE_NOINLINE inline void check_in_place(char const* op, tensor const& x, dims const& sizes, dtype result) {
  if (x.is_inference() && !this_thread_inference)
    throw autograd_error((std::string("varve: ") + op + ": a tensor made in inference mode cannot be written into outside of it; clone it first").c_str());
  if (!(broadcast(x.sizes(), sizes) == x.sizes())) refuse::shapes_do_not_match(op, x.sizes(), sizes);
  if (category(result) > category(x.dtype()))
    throw dtype_error((std::string("varve: ") + op + ": a result of dtype " + name(result) + " cannot be written into " + name(x.dtype())).c_str());
  dims const &s = x.sizes(), &st = x.strides();
  for (int k = 0; k < s.n; ++k)
    if (s[k] > 1 && st[k] == 0) throw value_error((std::string("varve: ") + op + ": the tensor repeats elements (stride 0); clone it first").c_str());
}
template <class = void>
VARVE_NOINLINE tensor write_into(tensor const& x, tensor const& y) {
  tensor const same = y.dtype() == x.dtype() ? y : converted(y, x.dtype());
  tensor const source = same.shares_storage(x) ? contiguous_copy(same) : same; // the kernel forbids overlap
  dims const strides = broadcast_strides(source.sizes(), source.strides(), x.sizes());
  kernel::copy_strided(x.sizes(), operand_of(x, x.strides().v), operand_of(source, strides.v));
  x.bump_version();
  return x;
}
/// Operands of one dtype and shape whose elements follow one another need no memory in between; false when these do not.
VARVE_NOINLINE inline bool write_directly(pointwise_info const& f, tensor const* const* x) {
  tensor const& self = *x[0];
  kernel::loop const loop = f.loops[static_cast<int>(self.dtype())];
  void const* in[4];
  bool alike = loop && self.is_contiguous();
  for (int k = 0; alike && k < f.arity; ++k) {
    alike = x[k]->dtype() == self.dtype() && x[k]->is_contiguous() && x[k]->sizes() == self.sizes() && (!x[k]->shares_storage(self) || x[k]->raw() == self.raw());
    in[k] = x[k]->raw();
  }
  if (!alike) return false;
  if (self.numel() > 0) loop(static_cast<std::size_t>(self.numel()), self.raw(), in);
  self.bump_version();
  return true;
}
/// The rules of an operator that writes what another computes.
template <class Functional>
struct mutation {
  using F = rules<Functional>;
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr int arity = F::arity;
  static constexpr auto schema = arity == 1 ? "(Tensor(a!) self) -> Tensor(a!)" : "(Tensor(a!) self, Tensor other) -> Tensor(a!)";
  static constexpr saved_values saved = F::saved;
  /// The schema: operand 0 is written and returned.
  static constexpr int mutated = 0;
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  /// The operands' derivatives are those of the functional operator, at the values from before.
  template <std::size_t I, class Op, value G, value... X>
  static constexpr auto vjp(arg_t<I> i, Op const&, G const& g, X const&... y_and_x) {
    return F::vjp(i, bound<Functional>{}, g, y_and_x...);
  }
  template <std::size_t I, class Op, value D, value... X>
  static constexpr auto jvp(arg_t<I> i, Op const&, D const& d, X const&... y_and_x) {
    return F::jvp(i, bound<Functional>{}, d, y_and_x...);
  }
  template <class Op, class N, class X, class... O>
  static constexpr auto batch(Op const& op, N const&, X const& x, O const&... o) {
    return op(x.value, align(o, logical_rank_fact(x))...);
  }
  template <class... Y>
  static tensor make(attributes const&, tensor const& x, Y const&... y) {
    meta const in[] = {meta_of(x), meta_of(y)...};
    meta const m = F::shape({}, in, arity);
    check_in_place(Functional::op_name, x, m.sizes, m.type);
    tensor const* const operands[] = {&x, &y...};
    return write_directly(info_of<Functional>, operands) ? x : write_into<>(x, evaluate_tensor(bound<Functional>{}, x, y...));
  }
};
} // namespace detail

template <>
struct rules<copy__t> {
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr auto schema = "(Tensor(a!) self, Tensor src) -> Tensor(a!)";
  static constexpr int arity = 2;
  static constexpr int mutated = 0;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&, value auto const&) {
    return full_like(g, 0);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const&, value auto const& source) {
    return detail::unmatch(g, source);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, auto const&...) {
    return full_like(d, 0);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& y, auto const&...) {
    return detail::match(d, y);
  }
  template <class Op, class N, class X, class O>
  static constexpr auto batch(Op const& op, N const&, X const& x, O const& o) {
    return op(x.value, align(o, logical_rank_fact(x)));
  }
  template <class Y>
  static tensor make(attributes const&, tensor const& x, Y const& y) {
    detail::check_in_place("copy_", x, y.sizes(), dtype::bool_);
    return detail::write_into(x, y);
  }
};
template <>
struct rules<add__t> : detail::mutation<add_t> {};
template <>
struct rules<sub__t> : detail::mutation<sub_t> {};
template <>
struct rules<mul__t> : detail::mutation<mul_t> {};
template <>
struct rules<div__t> : detail::mutation<div_t> {};
template <>
struct rules<neg__t> : detail::mutation<neg_t> {};
template <>
struct rules<exp__t> : detail::mutation<exp_t> {};
template <>
struct rules<log__t> : detail::mutation<log_t> {};
template <>
struct rules<abs__t> : detail::mutation<abs_t> {};
template <>
struct rules<sin__t> : detail::mutation<sin_t> {};
template <>
struct rules<cos__t> : detail::mutation<cos_t> {};
template <>
struct rules<tanh__t> : detail::mutation<tanh_t> {};
template <>
struct rules<sqrt__t> : detail::mutation<sqrt_t> {};
template <>
struct rules<sigmoid__t> : detail::mutation<sigmoid_t> {};
template <>
struct rules<relu__t> : detail::mutation<relu_t> {};

/// Every element becomes one number.
inline constexpr struct fill__t {
  template <number N>
  tensor const& operator()(tensor const& x, N v) const {
    return copy_(x, v);
  }
} fill_{};
inline constexpr struct zero__t {
  template <class T>
  T const& operator()(T const& x) const {
    return copy_(x, 0);
  }
} zero_{};
/// Every element limited to [min, max]; either bound may be `none` (`clamp`).
inline constexpr struct clamp__t {
  template <value X, class Lo, class Hi = none_t>
  X const& operator()(X const& x, Lo const& low, Hi const& high = {}) const {
    return copy_(x, clamp(x, low, high));
  }
} clamp_{};
/// x becomes another handle of y's memory, with its shape, and keeps its identity, history and version counter, which rises by one (`Tensor.set_`, DT-7). The dtypes must be the
/// same (`dtype_error`). It has no derivative: where operators are recorded neither may require gradients (`autograd_error`); inside of transforms it is refused.
inline constexpr struct set__t {
  tensor const& operator()(tensor const& x, tensor const& y) const {
    if (x.is_wrapped() || y.is_wrapped()) throw transform_error("varve: set_ was called inside of a transform, with a value seen through it; use copy_");
    if (!x.has_data() || !y.has_data()) throw dtype_error("varve: set_: both tensors must have memory of their own");
    if (x.dtype() != y.dtype()) throw dtype_error((std::string("varve: set_: a tensor of ") + name(x.dtype()) + " cannot take memory of " + name(y.dtype())).c_str());
    if (this_thread_state.grad_mode && !this_thread_inference && (x.requires_grad() || y.requires_grad()))
      throw autograd_error("varve: set_ has no derivative, and was called with a tensor that requires grad, in grad mode; call it under no_grad, or use copy_");
    if (x.is_inference() && !this_thread_inference) throw autograd_error("varve: set_: a tensor made in inference mode cannot be written into outside of it; clone it first");
    x.take_memory_of(y);
    x.bump_version();
    return x;
  }
} set_{};

inline tensor rules<clone_t>::make(attributes const&, tensor const& x) { return detail::contiguous_copy(x); }

} // namespace varve

// ---- varve/interpreter/engine.hpp
namespace varve {

namespace detail {
/// One run of reverse mode over a recorded graph, from given results to what they were made of: nodes run when all that follow them have, later ones first (AG-5).
/// Runs may nest and may share nodes between threads: what a run knows of a node is its own. (A template, so that the header alone instantiates no operator.)
template <class T = tensor>
class backward_run {
public:
  /// `keep`: saved values are kept for another run.
  explicit backward_run(bool keep) : keep_(keep), owns_marks_(!marks_taken().test_and_set(std::memory_order_acquire)), outer_(current()) {
    current() = this;
    mine_.swap(spare()); // what the thread's last run left; a run inside of another finds it empty
    tasks_.clear();
    ready_.clear();
    open_.clear();
    this_thread_sees_again = {};
  }
  backward_run(backward_run const&) = delete;
  backward_run& operator=(backward_run const&) = delete;
  ~backward_run() {
    current() = outer_;
    this_thread_sees_again = outer_level_;
    if (owns_marks_) marks_taken().clear(std::memory_order_release);
    for (auto& t : tasks_) delete t.rest;
    tasks_.clear();
    if (tasks_.capacity() <= 4096) mine_.swap(spare());
  }

  /// The cotangent of a result joins.
  void seed(edge const& e, T const& g) {
    roots_.push_back(e);
    std::uint32_t const k = discover(e.to());
    give(k, e.nr(), g);
  }
  /// The cotangent that arrives at an edge will be handed out; then only what leads there runs. Returns its number.
  int capture(edge const& e) {
    captures_.push_back({e, {}, false});
    return static_cast<int>(captures_.size()) - 1;
  }
  T const& captured(int k) const { return captures_[static_cast<std::size_t>(k)].value; }
  bool reached(int k) const { return captures_[static_cast<std::size_t>(k)].reached; }

  void run() {
    if (!captures_.empty()) find_needed();
    for (std::uint32_t k = 0; k < tasks_.size(); ++k)
      if (tasks_[k].waiting == 0) make_ready(k);
    while (!ready_.empty()) {
      std::uint32_t const k = take_ready();
      grad_node& n = *tasks_[k].at;
      boxed_args g(static_cast<T&&>(tasks_[k].first));
      if (n.results > 1) take_rest(tasks_[k], g);
      if (n.extra) n.extra->arrived(n, g);
      if (tasks_[k].is_captured) hand_out(n, g);
      boxed_args const out = tasks_[k].needed ? cotangents_of_operands(n, g) : boxed_args();
      for (int i = 0; i < n.count; ++i) {
        if (!n.next[i]) continue;
        std::uint32_t const to = find(n.next[i].to());
        if (i < out.size() && out[i].defined()) give(to, n.next[i].nr(), out[i]);
        if (--tasks_[to].waiting == 0) make_ready(to);
      }
    }
  }

  /// The node that this thread is running; null outside.
  static grad_node*& this_node() {
    static constinit thread_local grad_node* n = nullptr;
    return n;
  }
  /// Will the run of this thread execute a node (AG-6)? False outside of one.
  static bool will_execute(grad_node* n) {
    backward_run* const r = current();
    if (!r) return false;
    std::uint32_t const k = r->find(n);
    return k != none && r->tasks_[k].needed;
  }
  bool keeps() const { return keep_; }
  /// Does a node take part: will gradients arrive there?
  bool reaches(grad_node* n) const {
    std::uint32_t const k = find(n);
    return k != none && tasks_[k].wanted();
  }
  /// Tells this run from all others.
  std::uint64_t id() const { return id_; }
  static backward_run*& current() {
    static constinit thread_local backward_run* r = nullptr;
    return r;
  }

private:
  boxed_args cotangents_of_operands(grad_node& n, boxed_args& g) const {
    constexpr int usual = 16;
    bool few[usual];
    std::unique_ptr<bool[]> const many(n.count > usual ? new bool[n.count] : nullptr);
    bool* const wanted = many ? many.get() : few;
    bool const all = captures_.empty();
    for (int i = 0; i < n.count; ++i) wanted[i] = n.next[i] && (all || tasks_[find(n.next[i].to())].wanted());
    if (n.extra) n.extra->before(n, g);
    grad_node* const above = this_node();
    this_node() = &n;
    struct restore {
      grad_node* n;
      ~restore() { this_node() = n; }
    } const leave{above};
    boxed_args out = this_thread_state.check_nan ? watched_backward<>(n, g, wanted) : n.type->backward(n, g, wanted);
    if (n.extra) n.extra->after(n, out, g);
    if (!keep_) n.type->release(n);
    return out;
  }
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct task {
    grad_node* at;
    T first;                     // the cotangent of result 0
    boxed_args* rest = nullptr;  // of the others, from 1 on
    std::uint32_t waiting = 0;
    bool needed = true, is_captured = false;
    bool wanted() const { return needed || is_captured; }
  };
  struct capture_t {
    edge at;
    T value;
    bool reached;
  };
  /// Held by the one run of the process that finds its tasks by the nodes' marks; others look them up.
  static std::atomic_flag& marks_taken() {
    static std::atomic_flag taken = ATOMIC_FLAG_INIT;
    return taken;
  }
  std::uint32_t find(grad_node* n) const {
    if (owns_marks_) {
      std::uint32_t const k = n->mark.load(std::memory_order_relaxed);
      return k < tasks_.size() && tasks_[k].at == n ? k : none;
    }
    if (index_.empty()) return none;
    return index_[place_of(n)].task;
  }
  std::uint32_t add_task(grad_node* n) {
    auto const k = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back({n, {}});
    if (owns_marks_) n->mark.store(k, std::memory_order_relaxed);
    else insert(n, k);
    return k;
  }
  /// Where a node is, or would be, in the index: open addressing, at most half full.
  std::size_t place_of(grad_node* n) const {
    std::size_t at = (reinterpret_cast<std::uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15u & (index_.size() - 1);
    while (index_[at].at && index_[at].at != n) at = (at + 1) & (index_.size() - 1);
    return at;
  }
  void insert(grad_node* n, std::uint32_t k) {
    if (index_.size() < 2 * tasks_.size()) {
      index_.assign(index_.empty() ? 64 : 2 * index_.size(), {});
      for (std::uint32_t i = 0; i < k; ++i) index_[place_of(tasks_[i].at)] = {tasks_[i].at, i};
    }
    index_[place_of(n)] = {n, k};
  }
  /// Nodes that may run, as a heap: the latest is on top.
  bool earlier(std::size_t a, std::size_t b) const { return tasks_[ready_[a]].at->sequence < tasks_[ready_[b]].at->sequence; }
  void exchange(std::size_t a, std::size_t b) {
    std::uint32_t const k = ready_[a];
    ready_[a] = ready_[b];
    ready_[b] = k;
  }
  void make_ready(std::uint32_t k) {
    ready_.push_back(k);
    for (std::size_t at = ready_.size() - 1; at > 0 && earlier((at - 1) / 2, at); at = (at - 1) / 2) exchange(at, (at - 1) / 2);
  }
  std::uint32_t take_ready() {
    std::uint32_t const k = ready_[0];
    ready_[0] = ready_.back();
    ready_.pop_back();
    for (std::size_t at = 0;;) {
      std::size_t child = 2 * at + 1;
      if (child >= ready_.size()) return k;
      if (child + 1 < ready_.size() && earlier(child, child + 1)) ++child;
      if (!earlier(at, child)) return k;
      exchange(at, child);
      at = child;
    }
  }
  /// Counts for every node what must run before it.
  std::uint32_t discover(grad_node* root) {
    if (std::uint32_t const k = find(root); k != none) return k;
    std::uint32_t const first = add_task(root);
    open_.push_back(root);
    while (!open_.empty()) {
      grad_node* const n = open_.back();
      open_.pop_back();
      for (int i = 0; i < n->count; ++i) {
        grad_node* const to = n->next[i].to();
        if (!to) continue;
        std::uint32_t k = find(to);
        if (k == none) {
          k = add_task(to);
          open_.push_back(to);
        }
        ++tasks_[k].waiting;
      }
    }
    return first;
  }
  /// What leads to a capture, found from the leaves on.
  void find_needed() {
    for (auto& t : tasks_) t.needed = false;
    for (auto& c : captures_)
      if (std::uint32_t const k = find(c.at.to()); k != none) tasks_[k].is_captured = c.reached = true;
    std::vector<std::pair<std::uint32_t, int>> path;
    std::vector<char> seen(tasks_.size(), 0);
    for (auto const& r : roots_) path.push_back({find(r.to()), 0});
    while (!path.empty()) {
      auto& [k, i] = path.back();
      grad_node* const n = tasks_[k].at;
      seen[k] = 1;
      if (i == n->count) {
        std::uint32_t const done = k;
        for (int j = 0; j < n->count; ++j)
          if (n->next[j]) tasks_[done].needed = tasks_[done].needed || tasks_[find(n->next[j].to())].wanted();
        path.pop_back();
        continue;
      }
      grad_node* const to = n->next[i++].to();
      if (!to) continue;
      std::uint32_t const child = find(to);
      if (!seen[child]) path.push_back({child, 0});
    }
  }
  void give(std::uint32_t k, std::uint32_t nr, T const& g) {
    T* sum = &tasks_[k].first;
    if (nr > 0) [[unlikely]] {
      if (!tasks_[k].rest) tasks_[k].rest = new boxed_args;
      while (tasks_[k].rest->size() < static_cast<int>(nr)) tasks_[k].rest->push_back(tensor());
      sum = &(*tasks_[k].rest)[static_cast<int>(nr) - 1];
    }
    if (!sum->defined()) *sum = g;
    else if (sum->is_unique() && is_plain(*sum) && is_plain(g) && sum->is_contiguous() && sum->dtype() == g.dtype() && sum->sizes() == g.sizes()) add_(*sum, g); // nobody else sees it
    else *sum = T(add(static_cast<T const&>(*sum), g));
  }
  static bool is_plain(T const& t) { return !t.is_wrapped() && t.has_data() && !t.requires_grad(); }
  static void take_rest(task& t, boxed_args& g) {
    int const n = t.at->results - 1;
    for (int i = 0; i < n; ++i) g.push_back(t.rest && i < t.rest->size() ? static_cast<tensor&&>((*t.rest)[i]) : tensor());
    delete t.rest;
    t.rest = nullptr;
  }
  void hand_out(grad_node& n, boxed_args& g) {
    for (auto& c : captures_)
      if (c.at.to() == &n) c.value = g[static_cast<int>(c.at.nr())];
  }

  bool keep_, owns_marks_;
  std::uint64_t id_ = next_layer_id();
  backward_run* outer_;
  level_seen_again outer_level_ = this_thread_sees_again;
  /// Memory that the runs of a thread use one after the other.
  struct lists {
    std::vector<task> tasks;
    std::vector<std::uint32_t> ready;
    std::vector<grad_node*> open;
    void swap(lists& o) {
      tasks.swap(o.tasks);
      ready.swap(o.ready);
      open.swap(o.open);
    }
  };
  static lists& spare() {
    thread_local lists l;
    return l;
  }
  lists mine_;
  std::vector<task>& tasks_ = mine_.tasks;
  std::vector<std::uint32_t>& ready_ = mine_.ready;
  std::vector<grad_node*>& open_ = mine_.open;
  struct indexed {
    grad_node* at = nullptr;
    std::uint32_t task = none;
  };
  std::vector<indexed> index_;
  std::vector<edge> roots_;
  std::vector<capture_t> captures_;
};
} // namespace detail

} // namespace varve

// ---- varve/autograd/hooks.hpp
namespace varve {

/// Functions called while gradients flow (AG-9): of a tensor, which may replace its gradient; of a node, before and after it runs; of a leaf, after its gradient was added.
using tensor_hook = shared_function<tensor(tensor const&)>;
using node_pre_hook = shared_function<void(boxed_args& grad_outputs)>;
using node_post_hook = shared_function<void(boxed_args& grad_inputs, boxed_args const& grad_outputs)>;
using leaf_hook = shared_function<void(tensor const& leaf)>;

namespace detail {
/// The hooks of one node, shared with the handles that remove them. (Templates here cost nothing unless used.)
template <class = void>
struct hook_list {
  struct of_tensor {
    std::uint64_t id;
    std::uint32_t nr;
    tensor_hook f;
  };
  template <class F>
  struct of_node {
    std::uint64_t id;
    F f;
  };
  std::uint64_t next = 1;
  std::vector<of_tensor> tensors;
  std::vector<of_node<node_pre_hook>> before;
  std::vector<of_node<node_post_hook>> after;
  std::vector<of_node<shared_function<void(grad_node&)>>> accumulated;

  void remove(std::uint64_t id) {
    auto const is = [id](auto const& h) { return h.id == id; };
    std::erase_if(tensors, is);
    std::erase_if(before, is);
    std::erase_if(after, is);
    std::erase_if(accumulated, is);
  }
};
/// A hook may replace a gradient by another of its shape and dtype (AG-10).
inline void check_replacement(char const* who, tensor const& was, tensor const& now) {
  if (!now.defined() || now.is(was)) return;
  if (!was.defined()) throw autograd_error((std::string("varve: ") + who + ": a gradient that did not arrive, which stands for zeros, cannot be replaced").c_str());
  if (!(now.sizes() == was.sizes())) refuse::shapes_do_not_match((std::string(who) + " (its result and the gradient)").c_str(), now.sizes(), was.sizes());
  if (now.dtype() != was.dtype()) throw dtype_error((std::string("varve: ") + who + ": a gradient of " + name(was.dtype()) + " was replaced by one of " + name(now.dtype())).c_str());
}
/// ... of a node, which is named.
inline void check_replacements(char const* kind, grad_node const& n, boxed_args const& was, boxed_args const& now) {
  char text[64];
  n.type->name(n, text);
  std::string const who = std::string(kind) + " of " + text;
  if (was.size() != now.size())
    throw autograd_error(("varve: " + who + ": the number of gradients was changed from " + std::to_string(was.size()) + " to " + std::to_string(now.size())).c_str());
  for (int k = 0; k < was.size(); ++k) check_replacement(who.c_str(), was[k], now[k]);
}
/// What is attached to a node on need.
template <class = void>
struct node_extra : grad_node_extra {
  std::shared_ptr<hook_list<>> hooks = std::make_shared<hook_list<>>();
  std::vector<tensor> retained;   // by result
  std::vector<bool> retains;
  std::string where;

  static node_extra& of(grad_node& n) {
    if (!n.extra) n.extra = new node_extra;
    return static_cast<node_extra&>(*n.extra);
  }
  void arrived(grad_node&, boxed_args& g) override {
    auto const list = hooks->tensors; // a hook may remove itself
    for (auto const& h : list) {
      tensor& at = g[static_cast<int>(h.nr)];
      if (!at.defined()) continue;
      tensor const r = h.f(at);
      if (!r.defined()) continue;
      check_replacement("tensor hook", at, r);
      at = r;
    }
    for (std::size_t k = 0; k < retains.size(); ++k)
      if (retains[k] && g[static_cast<int>(k)].defined()) retained[k] = g[static_cast<int>(k)];
  }
  void before(grad_node& n, boxed_args& g) override {
    auto const list = hooks->before;
    for (auto const& h : list) {
      boxed_args const was = g;
      h.f(g);
      check_replacements("prehook", n, was, g);
    }
  }
  void after(grad_node& n, boxed_args& out, boxed_args const& g) override {
    auto const done = hooks->accumulated;
    for (auto const& h : done) h.f(n);
    auto const list = hooks->after;
    for (auto const& h : list) {
      boxed_args const was = out;
      h.f(out, g);
      check_replacements("hook", n, was, out);
    }
  }
  void retain(std::uint32_t nr) {
    if (retains.size() <= nr) {
      retains.resize(nr + 1);
      retained.resize(nr + 1);
    }
    retains[nr] = true;
  }
  bool release_retained(std::uint32_t nr) override {
    bool const was = nr < retains.size() && retains[nr];
    if (was) {
      retains[nr] = false;
      retained[nr] = tensor();
    }
    return was;
  }
  tensor const* retained_at(std::uint32_t nr) const override { return nr < retains.size() && retains[nr] ? &retained[nr] : nullptr; }
  char const* call() const override { return where.c_str(); }
};
} // namespace detail

/// Removes a hook when told to; more than once does no harm (AG-13). It may outlive the tensor.
class hook_handle {
public:
  hook_handle() = default;
  hook_handle(std::shared_ptr<detail::hook_list<>> const& list, std::uint64_t id) : list_(list), id_(id) {}
  template <class = void>
  void remove() {
    if (auto const l = list_.lock()) l->remove(id_);
    list_.reset();
  }

private:
  std::weak_ptr<detail::hook_list<>> list_;
  std::uint64_t id_ = 0;
};

namespace autograd {
/// A node of the graph, as users see it (`torch.autograd.graph.Node`): what recorded a tensor, or collects the gradient of a leaf. Null where there is none.
class node {
public:
  node() = default;
  explicit node(grad_node* n) : keep_(n, 0) {}

  explicit operator bool() const { return static_cast<bool>(keep_); }
  /// "MulBackward0", "AccumulateGrad", "CopySlices".
  std::string name() const {
    char text[64];
    keep_.to()->type->name(*keep_.to(), text);
    return text;
  }
  /// Nodes of a thread are numbered in the order they were recorded.
  std::uint64_t sequence_nr() const { return keep_.to()->sequence; }
  /// For every operand the node its gradient goes to, and which result of that; null nodes for constants.
  std::vector<std::pair<node, int>> next_functions() const {
    std::vector<std::pair<node, int>> r;
    for (int k = 0; k < keep_.to()->count; ++k) r.push_back({node(keep_.to()->next[k].to()), static_cast<int>(keep_.to()->next[k].nr())});
    return r;
  }
  /// What the node saved for its backward pass, as that will find it: checked for writes (`autograd_error`, DT-18), and unpacked by the hooks that packed it.
  std::vector<tensor> saved_tensors() const {
    std::vector<tensor> r;
    if (auto* const saved = keep_.to()->type->saved)
      for (auto const& t : saved(*keep_.to())) r.push_back(t);
    return r;
  }
  /// Called with the gradients of the node's results before it runs; it may change them.
  template <class F>
  hook_handle register_prehook(F f) const {
    auto& l = detail::node_extra<>::of(*keep_.to()).hooks;
    l->before.push_back({l->next, node_pre_hook(std::move(f))});
    return {l, l->next++};
  }
  /// Called after the node ran, with the gradients of its operands, which it may change, and those of its results.
  template <class F>
  hook_handle register_hook(F f) const {
    auto& l = detail::node_extra<>::of(*keep_.to()).hooks;
    l->after.push_back({l->next, node_post_hook(std::move(f))});
    return {l, l->next++};
  }
  friend bool operator==(node const& a, node const& b) { return a.keep_.to() == b.keep_.to(); }
  grad_node* get() const { return keep_.to(); }

private:
  edge keep_;
};
/// A place in the graph where a gradient starts or arrives: a node and one of its results. It does without the tensor (AG-3).
struct gradient_edge {
  autograd::node node;
  int output_nr = 0;
};
} // namespace autograd

} // namespace varve

// ---- varve/autograd/anomaly.hpp
#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#endif

namespace varve {

/// In this scope every recorded operator remembers the C++ calls it came from, and a backward pass in such a scope that fails, or finds a NaN while `check_nan`, names the
/// operator and those calls, and the backward passes in which it was recorded itself (AG-22). Function names appear in programs linked with `-rdynamic`; else addresses, for
/// `addr2line`. Slow: for finding a fault.
class anomaly_mode {
public:
  explicit anomaly_mode(bool check_nan = true) : before_{this_thread_state.anomaly, this_thread_state.check_nan} {
    this_thread_state.anomaly = true;
    this_thread_state.check_nan = check_nan;
  }
  anomaly_mode(anomaly_mode const&) = delete;
  anomaly_mode& operator=(anomaly_mode const&) = delete;
  ~anomaly_mode() {
    this_thread_state.anomaly = before_[0];
    this_thread_state.check_nan = before_[1];
  }

private:
  bool before_[2];
};

namespace detail {
/// The calls that led here, a line each.
template <class = void>
std::string call_site() {
  std::string r;
#if defined(__has_include)
#if __has_include(<execinfo.h>)
  void* frames[32];
  int const n = ::backtrace(frames, 32);
  char** const names = ::backtrace_symbols(frames, n);
  for (int k = 1; names && k < n; ++k) r += std::string("\n    ") + names[k];
  std::free(static_cast<void*>(names));
#endif
#endif
  return r.empty() ? std::string(" (unknown on this platform)") : r;
}
/// Writes into a fresh node where it was recorded, and during whose backward pass.
template <class = void>
void note_call(grad_node& n) {
  std::string where = call_site<>();
  if (grad_node const* const parent = backward_run<>::this_node()) {
    where += "\n  while " + autograd::node(const_cast<grad_node*>(parent)).name() + " ran backward";
    if (parent->extra) where += std::string(", which was recorded at") + parent->extra->call();
  }
  node_extra<>::of(n).where = where;
}
} // namespace detail

} // namespace varve

// ---- varve/core/owner_lock.hpp
namespace varve::detail {

/// Keeps threads apart while user code may run: the thread that holds it may take it again, others sleep. One word.
class owner_lock {
public:
  owner_lock() = default;
  owner_lock(owner_lock const&) = delete;
  owner_lock& operator=(owner_lock const&) = delete;

  /// Holds the lock for the life of the object.
  class held {
  public:
    explicit held(owner_lock& l) : lock_(l), first_(l.take()) {}
    held(held const&) = delete;
    held& operator=(held const&) = delete;
    ~held() {
      if (!first_) return;
      lock_.owner_.store(nullptr, std::memory_order_release);
      lock_.owner_.notify_one();
    }

  private:
    owner_lock& lock_;
    bool first_;
  };

private:
  /// Was it free, and not this thread's already?
  bool take() {
    static constinit thread_local char here = 0; // its address is the thread's name
    void const* seen = nullptr;
    while (!owner_.compare_exchange_weak(seen, &here, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (seen == &here) return false;
      if (seen) owner_.wait(seen, std::memory_order_relaxed);
      seen = nullptr;
    }
    return true;
  }
  std::atomic<void const*> owner_{nullptr};
};

} // namespace varve::detail

// ---- varve/interpreter/function_node.hpp
namespace varve::detail {

[[noreturn]] VARVE_COLD inline void refuse_seen_again(char const* name) {
  throw transform_error((std::string("varve: autograd::grad: inside of a transform, create_graph cannot pass ") + name + ", which keeps values from below that transform; call grad of a function there").c_str());
}
/// A node whose pullback is a function: cotangents of the results to cotangents of the operands. One that keeps no values of its own says so by a member `is_linear`.
template <class F>
struct function_node : grad_node {
  F pullback;
  std::vector<edge> edges;
  std::string label;

  static grad_node_type const type_;
  function_node(F f, std::vector<edge> e, std::uint16_t n, char const* l) : grad_node(&type_), pullback(std::move(f)), edges(std::move(e)), label(l) {
    next = edges.data();
    count = static_cast<std::uint16_t>(edges.size());
    results = n;
    sequence = this_thread_state.next_node++;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<function_node&>(n);
    if constexpr (requires { self.pullback.released; }) {
      if (self.released) refuse_released(self.label.c_str());
    }
    if constexpr (!requires { F::is_linear; })
      if (this_thread_sees_again.layer && this_thread_state.grad_mode) [[unlikely]]
        refuse_seen_again(self.label.c_str());
    return self.pullback(g, wanted);
  }
  static boxed_args saved_of([[maybe_unused]] grad_node& n) {
    if constexpr (requires(F const& f) { f.saved(); }) {
      auto& self = static_cast<function_node&>(n);
      if (self.released) refuse_released(self.label.c_str());
      return self.pullback.saved();
    } else {
      return {};
    }
  }
  static void release(grad_node& n) {
    auto& self = static_cast<function_node&>(n);
    self.released = true;
    if constexpr (requires { self.pullback.release(); }) self.pullback.release();
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<function_node*>(n);
  }
  static void name_of(grad_node const& n, char* out) {
    std::strncpy(out, static_cast<function_node const&>(n).label.c_str(), 63);
    out[63] = 0;
  }
};
template <class F>
inline constexpr grad_node_type function_node<F>::type_{&function_node::backward, &function_node::release, &function_node::destroy, &function_node::name_of, false, &function_node::saved_of};
/// Records a function of operands with the given edges; the node is the caller's to share.
template <class F>
grad_node* record_function(F pullback, std::vector<edge> edges, int results, char const* label) {
  return new function_node<F>(std::move(pullback), std::move(edges), static_cast<std::uint16_t>(results), label);
}

} // namespace varve::detail

// ---- varve/interpreter/eager.hpp
namespace varve {

namespace detail {
/// Gives a tensor another history. A gradient that is retained is from then on that of what the tensor now holds (AG-9).
VARVE_NOINLINE inline void change_history(tensor const& t, edge e) {
  edge const& old = t.history();
  bool const retained = old && old.to()->extra && old.to()->extra->release_retained(old.nr());
  t.set_history(static_cast<edge&&>(e));
  if (retained) autograd_kernels.load(std::memory_order_acquire)->retain(t.history());
}
/// Threads that share a view find its history one at a time.
inline constinit spin_lock finding_histories;
VARVE_COLD inline void find_history(tensor const& t) {
  edge old; // let go outside of the lock: what a graph holds may be the user's
  spin_lock::held const on(finding_histories);
  if (!t.is_overtaken()) return;
  old = t.history();
  change_history(t, autograd_kernels.load(std::memory_order_acquire)->history_of_view(t.base(), t));
}
/// An eager tensor's history, found anew when its base was written into since (AG-15). Threads may ask for it at once.
inline edge const& eager_history(tensor const& t) {
  tensor const& base = t.base();
  if (base.defined() && base.history() && !t.is_wrapped() && t.is_overtaken()) [[unlikely]]
    find_history(t);
  return t.history();
}
/// Lowers below autograd: what a recorded call runs. A kernel that returns an operand itself is taken to have returned a view of it, since the operand has a history of its own.
struct below_autograd {
  boxed_op const& op;
  dispatch_key_set keys;
  op_table const* table = op.table;
  attributes const* at = op.at;
  tensor operator()(boxed_args const& x) const {
    tensor y = redispatch(op, keys, x);
    for (auto const& t : x)
      if (t.is(y)) [[unlikely]] {
        y = t.with_layout(t.where(), true);
        if (y.base().defined()) y.set_origin(view_origin::custom);
        break;
      }
    return y;
  }
};
template <class X>
struct eager_tracked {
  X const& primal;
  bool any;
};
} // namespace detail

/// Eager autograd as the outermost level of `grad`: values are seen as they are, their histories hang on themselves.
struct eager_level {
  template <class X>
  detail::eager_tracked<X> open_tracked(X const& x) const {
    bool any = false;
    for (int i = 0; i < x.size(); ++i) any = any || (x[i].defined() && x[i].requires_grad());
    return {x, any};
  }
  template <class I, class Op, class X>
  tensor record(I const&, Op const& op, tensor const& y, detail::eager_tracked<X> const& t) const {
    bool const on = this_thread_state.grad_mode && !this_thread_inference;
    if (!t.any || !on || !op.table->differentiable || !is_floating(y.dtype())) {
      if (y.base().defined() && t.any) y.set_origin(this_thread_inference ? detail::view_origin::inference : detail::view_origin::no_grad);
      return y;
    }
    auto const edge_of = [&](int i) -> edge const* {
      if (t.primal[i].is_inference()) [[unlikely]]
        for (int k = 0; k < t.primal.size(); ++k)
          if (t.primal[k].requires_grad() && op.table->saved.of[k] >> i & 1) detail::refuse_inference(t.primal[i], op.table->name);
      edge const& e = detail::eager_history(t.primal[i]);
      return e ? &e : nullptr;
    };
    auto* const n = detail::operator_node::make({op.table, op.at}, y, t.primal, edge_of, true);
    y.set_history(detail::edge_to(n));
    if (this_thread_state.anomaly) [[unlikely]]
      detail::autograd_kernels.load(std::memory_order_acquire)->note(*n);
    return y;
  }
};

namespace detail {
[[noreturn]] VARVE_COLD inline void refuse_write(char const* op, char const* why) { throw autograd_error((std::string("varve: ") + op + ": " + why).c_str()); }

/// Refuses to write where that would make gradients wrong (AG-14, AG-16).
inline void check_write(char const* op, tensor const& x) {
  bool const leaf = x.history() && x.history().to()->type->is_leaf;
  if (leaf) refuse_write(op, "a leaf tensor that requires grad is used in an in-place operator; write under no_grad, or into a clone");
  if (!x.base().defined()) return;
  if (x.base().history() && x.base().history().to()->type->is_leaf) refuse_write(op, "a view of a leaf tensor that requires grad is used in an in-place operator; write under no_grad, or into a clone");
  switch (x.origin()) {
    case view_origin::no_grad: refuse_write(op, "a view that was made in no_grad mode is written into with grad mode enabled; make the view outside of no_grad, or write inside");
    case view_origin::inference: refuse_write(op, "a view that was made in inference mode is written into in normal mode; clone it first");
    case view_origin::many: refuse_write(op, "a view that is one of several results of an operator is written into; such views cannot be; use the functional operator");
    case view_origin::custom: refuse_write(op, "a view that a custom function returned is written into; clone it in the function's forward");
    default: break;
  }
  tensor const* memory = &x.base();
  while (memory->is_wrapped()) memory = &memory->inner();
  if (!memory->is_contiguous()) refuse_write(op, "a view of memory that is not contiguous is written into with grad mode enabled; clone it first");
}
/// What was written into a tensor, operand `target` of the call, becomes its history, and that of its base and of the base's other views (AG-15). `views` finds these.
template <class Views>
void rebase(Views const& views, tensor const& self, edge const& written, int target = 0) {
  tensor const& base = self.base();
  if (!base.defined()) return change_history(self, written);
  change_history(base, views.history_of_base(base, edge(base.history()), self, written.to(), target));
  change_history(self, views.history_of_view(base, self));
}
/// A recorded call of an operator that writes into its first operand.
VARVE_NOINLINE inline tensor write_recorded(boxed_op const& op, dispatch_key_set below, boxed_args const& x) {
  tensor const& self = x[0];
  bool any = false;
  for (auto const& t : x) any = any || (t.defined() && t.requires_grad());
  bool const on = this_thread_state.grad_mode && !this_thread_inference && any && is_floating(self.dtype());
  if (!on) return redispatch(op, below, x);
  check_write(op.name(), self);
  edge edges[saved_values::most];
  unsigned keep = 0;
  boxed_args before = x;
  for (int i = 0; i < x.size(); ++i) {
    edges[i] = eager_history(x[i]);
    if (edges[i]) keep |= op.table->saved.of[i];
  }
  for (int i = 0; i < x.size(); ++i)
    if (keep >> i & 1) refuse_inference(x[i], op.name());
  for (int i = 0; i < x.size(); ++i)
    if ((keep >> i & 1) && x[i].shares_storage(self)) {
      before[i] = contiguous_copy(x[i]); // what the gradient needs is about to be written over; its own derivative goes on to the history of the original
      if (edges[i]) before[i].set_history(edges[i]);
    }
  tensor const y = redispatch(op, below, x);
  auto* const n = operator_node::make(op, y, before, [&](int i) { return edges[i] ? &edges[i] : nullptr; }, true);
  if (this_thread_state.anomaly) [[unlikely]]
    autograd_kernels.load(std::memory_order_acquire)->note(*n);
  rebase(*autograd_kernels.load(std::memory_order_acquire), self, edge_to(n));
  return y;
}
/// ... a call whose result is there, by the same text.
VARVE_NOINLINE inline void record_eagerly_done(boxed_op const& op, tensor const& y, operand_list x) {
  eager_level const level;
  level.record(level, op, y, level.open_tracked(x));
}
/// What happens at the autograd key: recorded when an operand has a history.
VARVE_NOINLINE inline tensor record_eagerly(boxed_op const& op, dispatch_key_set below, boxed_args const& x) {
  if (op.table->kind == op_kind::mutation) return write_recorded(op, below, x);
  return grad_interpreter<eager_level>{}.process(below_autograd{op, below}, x);
}
} // namespace detail

} // namespace varve

// ---- varve/op/as_strided.hpp
namespace varve {

namespace detail {
inline constexpr auto prepend_numel = [](dims const& strides, dims const& sizes) {
  dims r = strides;
  return r.insert(0, numel(sizes));
};
inline constexpr auto prepend_step = [](dims const& strides, dims const& batched_sizes) {
  dims r = strides;
  return r.insert(0, numel(batched_sizes) / (batched_sizes[0] ? batched_sizes[0] : 1));
};
inline constexpr auto check_region = [](dims const& sizes, dims const& strides, dims const& offset, dims const& from) {
  index_t last = offset[0];
  bool fits = sizes.n == strides.n && offset[0] >= 0;
  for (int k = 0; fits && k < sizes.n; ++k) {
    fits = sizes[k] >= 0 && strides[k] >= 0;
    last += (sizes[k] - 1) * strides[k];
  }
  if (!fits || (numel(sizes) > 0 && last >= numel(from))) refuse::argument_is_invalid("as_strided", "the region lies outside of the value, or sizes and strides differ in number");
  return sizes;
};
} // namespace detail

/// Elements of the row-major value `x` at `offset + sum of index * stride`, of any sizes: a view. Offsets count from the first element of x. The gradient of an element seen
/// twice is the sum. x must be contiguous (`value_error`), the region must lie within (`torch.as_strided`).
template <>
struct rules<as_strided_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[] size, int[] stride, int storage_offset) -> Tensor(a)";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  static constexpr layout layout_of(attributes const& at, layout const& in) { return {at[0], at[1], in.offset + at[2][0], in.contiguous()}; }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return bind<as_strided_backward_t>(shape_of(x), op.b, op.c)(g);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return bind<as_strided_t>(on_dims(detail::prepend, op.a, n), on_dims(detail::prepend_step, op.b, shape_of(o.value)), op.c)(contiguous(o.value));
  }
};

/// The transpose of `as_strided`: zeros of a shape to which elements are added where the region has them.
template <>
struct rules<as_strided_backward_t> : rule::linear {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor grad_output, int[] input_sizes, int[] stride, int storage_offset) -> Tensor";
  static constexpr op_kind kind = op_kind::join;
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> g) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = R(0);
    strided<R> const part{out.data + at[2][0], g.sizes, at[1]};
    for_each_index(g.sizes, [&](dims const& i) { part.at(i) = static_cast<R>(part.at(i) + g.at(i)); });
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x) {
    return bind<as_strided_t>(shape_of(x), op.b, op.c)(contiguous(g));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return bind<as_strided_backward_t>(on_dims(detail::prepend, op.a, n), on_dims(detail::prepend_numel, op.b, op.a), op.c)(o.value);
  }
};

/// The first operand with a region replaced by the second (`torch.as_strided_scatter`); no two elements of the region may be one.
template <>
struct rules<as_strided_scatter_t> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self, Tensor src, int[] stride, int storage_offset) -> Tensor";
  static constexpr op_kind kind = op_kind::join;
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, in[0].sizes}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<T const> source) {
    for_each_index(x.sizes, [&](dims const& i) { out.at(i) = x.at(i); });
    strided<R> const part{out.data + at[1][0], source.sizes, at[0]};
    for_each_index(source.sizes, [&](dims const& i) { part.at(i) = source.at(i); });
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&, value auto const& source) {
    return op(d, full_like(source, 0));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const& op, value auto const& d, value auto const&, value auto const& x, value auto const&) {
    return op(full_like(x, 0), d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&, value auto const& source) {
    return op(g, new_zeros(g, shape_of(source)));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const&, value auto const& source) {
    return bind<as_strided_t>(shape_of(source), op.a, op.b)(contiguous(g));
  }
  template <class Op, class N, class X, class S>
  static constexpr auto batch(Op const& op, N const& n, X const& x, S const& source) {
    auto const wide = materialize(x, n);
    return bind<as_strided_scatter_t>(on_dims(detail::prepend_step, op.a, shape_of(wide)), op.b)(wide, materialize(source, n));
  }
};

template <value X, class S, class T, class O>
constexpr auto as_strided_t::operator()(X const& x, S const& sizes, T const& strides, O const& offset) const {
  if constexpr (std::is_same_v<X, tensor>)
    if (!x.is_wrapped() && !x.is_contiguous()) refuse::argument_is_invalid("as_strided", "the value must be contiguous");
  auto const s = on_dims(detail::check_region, detail::as_fact(sizes), detail::as_fact(strides), detail::as_fact(offset), shape_of(x));
  return bind<as_strided_t>(s, detail::as_fact(strides), detail::as_fact(offset))(x);
}
template <value G, class S, class T, class O>
constexpr auto as_strided_backward_t::operator()(G const& g, S const& sizes, T const& strides, O const& offset) const {
  return bind<as_strided_backward_t>(detail::as_fact(sizes), detail::as_fact(strides), detail::as_fact(offset))(g);
}
template <value X, value S, class T, class O>
constexpr auto as_strided_scatter_t::operator()(X const& x, S const& source, T const& strides, O const& offset) const {
  (void)on_dims(detail::check_region, shape_of(source), detail::as_fact(strides), detail::as_fact(offset), shape_of(x));
  return bind<as_strided_scatter_t>(detail::as_fact(strides), detail::as_fact(offset))(x, source);
}

} // namespace varve

// ---- varve/interpreter/view_history.hpp
/// @file
/// Writing into views: what their histories, and that of their base, become (AG-15).
namespace varve::detail {

/// A view as a region of its base: strides, and the offset of its first element. Of values seen through transforms as slices have it: mapped dimensions stand in front.
inline std::pair<dims, dims> region_of(tensor const& base, tensor const& view) {
  tensor const *b = &base, *v = &view;
  int mapped = 0;
  while (b->is_wrapped() && v->is_wrapped()) {
    mapped += b->inner().dim() - b->dim();
    b = &b->inner();
    v = &v->inner();
  }
  if (!b->is_contiguous()) throw autograd_error("varve: the history of a view is asked for after its base, which is not contiguous, was written into; clone the base first");
  layout const l = v->where();
  dims strides;
  for (int k = mapped; k < l.sizes.n; ++k) strides.push_back(l.strides[k]);
  return {strides, dims{l.offset - b->where().offset}};
}
template <class T = tensor>
edge history_of_view(T const& base, T const& view) {
  auto const [strides, offset] = region_of(base, view);
  attributes const at(view.sizes(), strides, offset);
  boxed_op const op{registered_table<as_strided_t, 3>(), &at};
  auto* const n = operator_node::make(op, view, boxed_args(base), [&](int) { return &base.history(); }, true);
  return edge_to(n);
}
/// The gradient of a base: outside of the region as it was, inside what goes through the operator that wrote there.
template <class T = tensor>
struct copy_slices {
  edge written;
  dims sizes, strides, offset;
  int target; // which operand was written into
  static constexpr bool is_linear = true;
  boxed_args operator()(boxed_args const& g, bool const* wanted) const {
    if (!g[0].defined()) return {};
    T const whole = contiguous(static_cast<T const&>(g[0]));
    boxed_args inside(T(as_strided(whole, sizes, strides, offset)));
    grad_node& n = *written.to();
    boxed_args r = n.type->backward(n, inside, wanted);
    if (wanted[target]) {
      T const part = r.size() > target && r[target].defined() ? T(r[target]) : T(full_like(static_cast<T const&>(inside[0]), 0));
      while (r.size() <= target) r.push_back(tensor());
      r[target] = as_strided_scatter(whole, part, strides, offset);
    }
    return r;
  }
  void release() { written.to()->type->release(*written.to()); }
};
template <class T = tensor>
edge history_of_base(T const& base, edge const& old, T const& view, grad_node* written, int target) {
  auto const [strides, offset] = region_of(base, view);
  std::vector<edge> edges;
  for (int i = 0; i < written->count; ++i) edges.push_back(i == target ? old : written->next[i]);
  // The operator's own edge to the view stays: its gradient is wanted when that of the base is.
  return edge_to(record_function(copy_slices<T>{edge(written, 0), view.sizes(), strides, offset, target}, std::move(edges), 1, "CopySlices"));
}
/// What `rebase` asks, at a level of `grad`; eager autograd has the same behind pointers.
template <class T = tensor>
struct level_views {
  static edge history_of_view(T const& base, T const& view) { return detail::history_of_view<T>(base, view); }
  static edge history_of_base(T const& base, edge const& old, T const& view, grad_node* written, int target) { return detail::history_of_base<T>(base, old, view, written, target); }
};
/// The tangent of a view, from that of its base; and that of the base, after that of a view has changed (AG-28).
template <class T = tensor>
T tangent_of_view(T const& base, T const& view) {
  if (!base.extra().defined()) return {};
  auto const [strides, offset] = region_of(base, view);
  return as_strided(T(contiguous(static_cast<T const&>(base.extra()))), view.sizes(), strides, offset);
}
template <class T = tensor>
void change_tangent(T const& self, T tangent) {
  T const base = self.base();
  bool const known = self.extra().defined() || (base.defined() && base.extra().defined());
  if (!tangent.defined() && !known) return;
  if (!tangent.defined()) tangent = zeros_like(T(self.inner()));
  if (base.defined()) {
    auto const [strides, offset] = region_of(base, self);
    T const whole = base.extra().defined() ? T(contiguous(static_cast<T const&>(base.extra()))) : T(zeros_like(T(base.inner())));
    base.set_extra(as_strided_scatter(whole, tangent, strides, offset));
  }
  self.set_extra(tangent);
}

} // namespace varve::detail

// ---- varve/op/detach.hpp
namespace varve {

/// The same values as constants to every derivative. A view for tensors.
inline constexpr struct detach_t {
  static constexpr auto op_name = "detach";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return bound<detach_t>{}(x);
  }
} detach{};

template <>
struct rules<detach_t> {
  static constexpr auto schema = "(Tensor(a) self) -> Tensor(a)";
  static constexpr op_kind kind = op_kind::view;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static constexpr layout layout_of(attributes const&, layout const& in) { return in; }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

} // namespace varve

// ---- varve/autograd/leaf.hpp
/// @file
/// Leaves: tensors whose gradient a user asked for.
namespace varve {

namespace detail {
/// The node at the end of a graph (AccumulateGrad): here the gradient of a leaf is collected. The leaf owns it, and so do the graphs that lead to it.
struct accumulate_grad : grad_node {
  tensor grad;
  /// The leaf without its history, for hooks that are given it: the leaf owns the node, not the other way round.
  tensor memory;
  owner_lock busy; // backward passes of several threads may arrive here

  static grad_node_type const type_;
  /// How gradients are added; known once there is a leaf.
  static inline constinit std::atomic<void (*)(tensor& sum, tensor const& g)> add_to{nullptr};

  accumulate_grad() : grad_node(&type_) { sequence = ~std::uint64_t{0}; }
  tensor get() {
    owner_lock::held const on(busy);
    return grad;
  }
  void set(tensor g) {
    owner_lock::held const on(busy);
    tensor old = static_cast<tensor&&>(grad);
    grad = static_cast<tensor&&>(g);
    g = static_cast<tensor&&>(old);
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const*) {
    if (!g[0].defined()) return {};
    auto& self = static_cast<accumulate_grad&>(n);
    // Modes may see the addition, and run what they like: it may ask for this gradient, or add to it.
    owner_lock::held const on(self.busy);
    tensor before;
    do {
      before = self.grad;
      tensor sum = before;
      add_to.load(std::memory_order_acquire)(sum, static_cast<tensor const&>(g[0]));
      if (self.grad.is(before)) {
        self.grad = static_cast<tensor&&>(sum);
        return {};
      }
    } while (true);
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<accumulate_grad*>(n);
  }
};
inline constexpr grad_node_type accumulate_grad::type_{&accumulate_grad::backward, [](grad_node&) {}, &accumulate_grad::destroy, [](grad_node const&, char* out) { std::strcpy(out, "AccumulateGrad"); }, true};

inline accumulate_grad* leaf_of(tensor const& t) {
  grad_node* const n = t.history().to();
  return n && n->type == &accumulate_grad::type_ ? static_cast<accumulate_grad*>(n) : nullptr;
}
/// Adds to a leaf's gradient: in place, unless the sum is to have a history (AG-8). A gradient nobody else holds is taken as it is; others are copied, so that no two
/// leaves share one.
template <class T = tensor>
void add_to_gradient(T& sum, T const& g) {
  bool const recorded = this_thread_state.grad_mode;
  if (!sum.defined()) sum = !recorded && g.is_unique() && g.is_contiguous() && !g.requires_grad() ? g : T(clone(recorded ? g : T(g.detach())));
  else if (recorded || sum.requires_grad() || !sum.is_contiguous() || sum.is_wrapped() || g.is_wrapped()) sum = T(add(sum, g));
  else add_(sum, g);
}
/// Eager autograd, switched on by the first leaf.
template <class On>
inline constexpr autograd_hooks eager_autograd{&record_eagerly, &record_eagerly_done, &history_of_view<dependent<tensor, On>>, &history_of_base<dependent<tensor, On>>,
                                               [](edge const& e) { node_extra<dependent<void, On>>::of(*e.to()).retain(e.nr()); }, &note_call<dependent<void, On>>};

[[noreturn]] VARVE_COLD inline void refuse_autograd(char const* what, char const* why) { throw autograd_error((std::string("varve: ") + what + ": " + why).c_str()); }
VARVE_COLD inline void refuse_inside_transform(char const* what, tensor const& t) {
  if (t.is_wrapped())
    throw transform_error((std::string("varve: ") + what + " was called inside of a transform, on a value seen through it; transforms differentiate by grad, vjp and jvp").c_str());
}
} // namespace detail

template <class T>
tensor const& tensor::requires_grad_(T on) const {
  detail::refuse_inside_transform("requires_grad_", *this);
  if (inside_transform()) throw transform_error("varve: requires_grad_ was called inside of a transform; transforms differentiate by grad, vjp and jvp");
  detail::autograd_kernels.store(&detail::eager_autograd<T>, std::memory_order_release);
  detail::accumulate_grad::add_to.store(&detail::add_to_gradient<dependent<tensor, T>>, std::memory_order_release);
  if (!is_leaf()) {
    if (!on) detail::refuse_autograd("requires_grad_", "only leaves can stop to require gradients; use detach for a value that does not");
    return *this;
  }
  if (on == history().operator bool()) return *this;
  if (on && !is_floating(dtype())) throw dtype_error((std::string("varve: requires_grad_: only floating tensors have gradients, not ") + name(dtype())).c_str());
  if (on && is_inference()) detail::refuse_autograd("requires_grad_", "the tensor was made in inference mode; clone it first");
  if (on) set_history(detail::edge_to(new detail::accumulate_grad));
  else set_history({});
  return *this;
}
inline bool tensor::is_leaf() const { return !requires_grad() || detail::eager_history(*this).to()->type->is_leaf; }

template <class T>
void tensor::retain_grad() const {
  detail::refuse_inside_transform("retain_grad", *this);
  if (!requires_grad()) detail::refuse_autograd("retain_grad", "the tensor does not require grad");
  if (is_leaf()) return;
  edge const& e = detail::eager_history(*this);
  detail::node_extra<>::of(*e.to()).retain(e.nr());
}
template <class T>
T tensor::grad_fn() const {
  edge const& e = detail::eager_history(*this);
  return e && !e.to()->type->is_leaf ? T(e.to()) : T();
}
inline int tensor::output_nr() const { return static_cast<int>(detail::eager_history(*this).nr()); }
template <class F>
hook_handle tensor::register_hook(F f) const {
  if (!requires_grad()) detail::refuse_autograd("register_hook", "the tensor does not require grad");
  edge const& e = detail::eager_history(*this);
  auto& l = detail::node_extra<>::of(*e.to()).hooks;
  auto call = [f = std::move(f)](tensor const& g) mutable -> tensor {
    if constexpr (std::is_void_v<decltype(f(g))>) return f(g), tensor();
    else return f(g);
  };
  l->tensors.push_back({l->next, e.nr(), tensor_hook(std::move(call))});
  return {l, l->next++};
}
template <class F>
hook_handle tensor::register_post_accumulate_grad_hook(F f) const {
  auto* const leaf = detail::leaf_of(*this);
  if (!leaf) detail::refuse_autograd("register_post_accumulate_grad_hook", "only leaves that require grad have a gradient that is added to");
  auto& l = detail::node_extra<>::of(*leaf).hooks;
  leaf->memory = alias();
  auto call = [f = std::move(f)](grad_node& n) mutable {
    tensor const self = static_cast<detail::accumulate_grad&>(n).memory.alias();
    self.set_history(edge(&n, 0));
    f(self);
  };
  l->accumulated.push_back({l->next, shared_function<void(grad_node&)>(std::move(call))});
  return {l, l->next++};
}

template <class T>
T tensor::detach() const {
  return varve::detach(T(*this));
}
inline tensor const& tensor::detach_() const {
  if (base().defined()) detail::refuse_autograd("detach_", "a view cannot be detached in place; use detach");
  set_history({});
  return *this;
}
inline tensor tensor::data() const {
  if (is_wrapped()) throw transform_error("varve: data was read inside of a transform, of a value seen through it; use detach");
  tensor r = alias();
  r.own_version();
  return r;
}
inline void tensor::set_data(tensor const& y) const {
  if (is_wrapped() || y.is_wrapped()) throw transform_error("varve: set_data was called inside of a transform, with a value seen through it");
  if (!has_data() || !y.has_data()) throw dtype_error("varve: set_data: incompatible tensor type; both tensors must have memory of their own");
  if (requires_grad() && !is_floating(y.dtype())) throw dtype_error((std::string("varve: set_data: a tensor that requires grad cannot hold ") + name(y.dtype())).c_str());
  auto* const leaf = detail::leaf_of(*this);
  bool const other_type = y.dtype() != dtype();
  take_memory_of(y);
  if (leaf && other_type) {
    // As in PyTorch the accumulator is made anew: graphs recorded before keep the old one.
    auto* const fresh = new detail::accumulate_grad;
    fresh->extra = leaf->extra;
    leaf->extra = nullptr;
    if (leaf->memory.defined()) fresh->memory = alias();
    set_history(detail::edge_to(fresh));
  } else if (leaf && leaf->memory.defined()) {
    leaf->memory = alias();
  }
}

/// Gives `to` the standing of `from`: a leaf that requires grad, or a value with a history, whose gradient nobody may ask for; nothing when `from` requires none (FN-35).
template <class T = tensor>
void mirror_autograd_meta(T const& from, T const& to) {
  if (!from.requires_grad()) return;
  if (from.is_leaf()) {
    to.requires_grad_();
    return;
  }
  auto refuse = [](boxed_args const&, bool const*) -> boxed_args { throw autograd_error("varve: mirror_autograd_meta: backward reached a value that only mirrors another's history"); };
  to.set_history(detail::edge_to(detail::record_function(refuse, std::vector<edge>{}, 1, "Error")));
}

} // namespace varve

// ---- varve/interpreter/write_level.hpp
/// @file
/// Operators that write, on values seen through a run-time transform: the memory inside is written into, and what the transform knows of the value, of the value that it is a view
/// of and of other views changes with it, as eagerly (AG-15). What has no part in the transform cannot take a value of it (FS-7, TR-5): that is refused before anything is written.
namespace varve::detail {

[[noreturn]] VARVE_COLD inline void refuse_write_at_level(boxed_op const& op, char const* kind, char const* why) {
  throw transform_error((std::string("varve: ") + kind + ": " + op.name() + ": " + why).c_str());
}
inline void check_write_at_level(layer const& l, boxed_op const& op, boxed_args const& x) {
  auto const mine = [&](tensor const& t) { return t.is_wrapped() && t.layer() == l.id; };
  if (!mine(x[0])) {
    bool const maps = std::strcmp(l.kind, "vmap") == 0;
    refuse_write_at_level(op, l.kind, maps ? "a value that is not mapped cannot be written with a mapped one; use the functional operator"
                                           : "a captured tensor, which the transform does not see, cannot be written with a value that it does; pass the tensor as an argument, or use the functional operator");
  }
}
/// How the payload of a view is found after its base was written into.
template <class I>
inline constexpr void (*refresh_of)(tensor const&) = nullptr;
template <class Lv>
inline constexpr void (*refresh_of<grad_interpreter<Lv>>)(tensor const&) = [](tensor const& v) { v.set_history(v.base().history() ? level_views<dependent<tensor, Lv>>::history_of_view(v.base(), v) : edge()); };
template <class Lv>
inline constexpr void (*refresh_of<jvp_interpreter<Lv>>)(tensor const&) = [](tensor const& v) { v.set_extra(tangent_of_view<dependent<tensor, Lv>>(v.base(), v)); };

/// The operands as they were before the write, those of them that are asked for.
template <class T = tensor>
boxed_args kept_before(boxed_args const& x, unsigned which = ~0u) {
  boxed_args before = x;
  for (int i = 0; i < x.size(); ++i)
    if ((which >> i & 1) && x[i].shares_storage(x[0])) before[i] = T(clone(static_cast<T const&>(x[i])));
  return before;
}

/// Of a tape: the value's history is the write.
template <class Lv>
tensor write_at(grad_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_tracked const t = in.open_tracked(x);
  bool any = false;
  for (auto const& v : x) any = any || in.mine(v);
  if (!any) return op(t.primal);
  check_write_at_level(*in.self, op, x);
  tensor const& self = x[0];
  for (tensor const* v : {&self, &self.base()})
    if (v->defined() && v->history() && v->history().to()->type->is_leaf)
      throw autograd_error((std::string("varve: ") + op.name() + ": an argument of grad is a leaf; neither it nor a view of it can be written into. Write into a value computed from it, as clone(x)").c_str());
  bool const tracked = t.any || (self.base().defined() && self.base().history());
  if (!tracked || !in.records()) return op(t.primal), self;
  check_write(op.name(), self);
  edge edges[saved_values::most];
  unsigned keep = 0;
  for (int i = 0; i < x.size(); ++i) {
    if (in.mine(x[i])) edges[i] = x[i].history();
    if (edges[i]) keep |= op.table->saved.of[i];
  }
  boxed_args const before = kept_before<>(t.primal, keep);
  tensor const y = op(t.primal);
  rebase(level_views<dependent<tensor, Lv>>{}, self, edge_to(operator_node::make(op, y, before, [&](int i) { return edges[i] ? &edges[i] : nullptr; })));
  return self;
}
/// Of pairs: the tangent changes with the value.
template <class Lv>
tensor write_at(jvp_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_dual const d = in.open_dual(x);
  bool any = false;
  for (auto const& v : x) any = any || in.mine(v);
  if (!any) return op(d.primal);
  check_write_at_level(*in.self, op, x);
  check_write(op.name(), x[0]);
  boxed_dual const before{kept_before<>(d.primal), d.tangent};
  tensor const y = op(d.primal);
  change_tangent<dependent<tensor, Lv>>(x[0], tangent(op, y.is_wrapped() ? y : y.alias(), before));
  return x[0];
}
/// Of slices: the memory of all is written at once.
template <class N>
tensor write_at(vmap_interpreter<dynamic_level, N> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_operands const o = in.open_batched(x);
  if (!o.any) return op(o.value);
  check_write_at_level(*in.self, op, x);
  bool batched_flags[saved_values::most] = {};
  for (int i = 0; i < x.size(); ++i) batched_flags[i] = in.mine(x[i]);
  op.table->batch(*op.at, in.n[0], o.value, batched_flags);
  return x[0];
}

} // namespace varve::detail

// ---- varve/transform/closure.hpp
#include <tuple>

// ---- varve/core/tree.hpp
#include <array>
namespace varve {

/// Is `T` a node of a tree of values: `std::tuple`, `std::pair`, `std::array`, `std::vector`, or an aggregate of up to eight members for which a program says so:
/// `template <> inline constexpr bool varve::is_tree_node<layer> = true;`? Everything else is a leaf. The members of an aggregate keep their types: its leaves are tensors; one
/// that is a template of its leaf type, `layer<T>`, works for static values too.
template <class T>
inline constexpr bool is_tree_node = false;
template <class... T>
inline constexpr bool is_tree_node<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tree_node<std::pair<A, B>> = true;
template <class T, std::size_t N>
inline constexpr bool is_tree_node<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_tree_node<std::vector<T>> = true;

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
concept tuple_node = is_tree_node<T> && requires { std::tuple_size<T>::value; };

struct any_member {
  template <class T>
  operator T() const;
};
template <class T, class... A>
constexpr std::size_t member_count() {
  if constexpr (sizeof...(A) < 9 && requires { T{A{}..., any_member{}}; }) return member_count<T, A..., any_member>();
  else return sizeof...(A);
}
/// Calls `f` with the members of an aggregate.
template <class T, class F>
constexpr decltype(auto) with_members(T& t, F const& f) {
  constexpr std::size_t n = member_count<std::remove_const_t<T>>();
  static_assert(n >= 1 && n <= 8, "varve: a tree node must be an aggregate of one to eight members");
  if constexpr (n == 1) { auto& [a] = t; return f(a); }
  else if constexpr (n == 2) { auto& [a, b] = t; return f(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = t; return f(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = t; return f(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = t; return f(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, g] = t; return f(a, b, c, d, e, g); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, g, h] = t; return f(a, b, c, d, e, g, h); }
  else { auto& [a, b, c, d, e, g, h, i] = t; return f(a, b, c, d, e, g, h, i); }
}
template <class T>
constexpr auto members_of(T const& t) {
  return with_members(t, [](auto const&... m) { return std::tuple<decltype(m)...>(m...); });
}
/// An aggregate of other leaves: itself where the types fit, else its template of the new leaf type.
template <class T, class... M>
struct remade_aggregate {
  using type = T;
};
template <template <class> class A, class U, class First, class... M>
  requires(!requires(First const& f, M const&... m) { A<U>{f, m...}; })
struct remade_aggregate<A<U>, First, M...> {
  using type = A<First>;
};
template <class T>
constexpr auto element_list() {
  if constexpr (is_vector<T>) return std::type_identity<std::tuple<typename T::value_type>>{};
  else if constexpr (tuple_node<T>) return []<std::size_t... K>(std::index_sequence<K...>) { return std::type_identity<std::tuple<std::remove_cvref_t<std::tuple_element_t<K, T>>...>>{}; }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else return []<class... M>(std::type_identity<std::tuple<M...>>) { return std::type_identity<std::tuple<std::remove_cvref_t<M>...>>{}; }(std::type_identity<decltype(members_of(std::declval<T const&>()))>{});
}
/// Types of what a node holds, as a tuple; of a vector its element type.
template <class T>
using elements_of = typename decltype(element_list<T>())::type;
template <class T>
constexpr auto remake(std::type_identity<T>) {
  return std::tuple<>{};
}
template <class T, class First, class... R>
constexpr auto remake(std::type_identity<T>, First const& first, R const&... r) {
  if constexpr (requires { typename T::first_type; }) return std::pair<First, R...>(first, r...);
  else if constexpr (requires { typename T::value_type; } && (std::is_same_v<First, R> && ...)) return std::array<First, 1 + sizeof...(R)>{first, r...};
  else return std::tuple<First, R...>(first, r...);
}
} // namespace detail

/// Applies `f` to every leaf in order, and to the leaves at the same places of further trees of the same structure; gives the tree of the results (arrays stay arrays where the results are of one type).
template <class F, class T, class... R>
constexpr auto tree_map(F const& f, T const& t, R const&... r) {
  if constexpr (detail::is_vector<T>) {
    std::vector<decltype(tree_map(f, t[0], r[0]...))> out;
    ((r.size() == t.size() ? void() : refuse::trees_differ_in_size(t.size(), r.size())), ...);
    for (std::size_t k = 0; k < t.size(); ++k) out.push_back(tree_map(f, t[k], r[k]...));
    return out;
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    auto const leaves = tree_map(f, detail::members_of(t), detail::members_of(r)...);
    return std::apply([]<class... M>(M const&... m) { return typename detail::remade_aggregate<T, M...>::type{m...}; }, leaves);
  } else if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto at = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { return tree_map(f, std::get<I>(t), std::get<I>(r)...); };
      [[maybe_unused]] std::tuple<decltype(at(std::integral_constant<std::size_t, K>{}))...> const leaves{at(std::integral_constant<std::size_t, K>{})...}; // braces: in order
      return detail::remake(std::type_identity<T>{}, std::get<K>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return f(t, r...);
  }
}

/// Applies `f(arg<k>, value)` to a value (k = 0) or to the elements of a flat tuple.
template <class F, class T>
constexpr auto tree_map_indexed(F const& f, T const& t) {
  if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(f(arg_t<K>{}, std::get<K>(t))...); }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return f(arg_t<0>{}, t);
  }
}

namespace detail {
/// `f` of the elements of a tuple: `std::apply` without its layers, which fill a compiler's message.
template <class F, class T, std::size_t... K>
constexpr auto call_with(F const& f, T const& t, std::index_sequence<K...>) {
  return f(std::get<K>(t)...);
}
template <class F, class T>
constexpr auto call_with(F const& f, T const& t) {
  return call_with(f, t, std::make_index_sequence<std::tuple_size_v<T>>{});
}
} // namespace detail

/// Calls `f` on every leaf in order.
template <class F, class T>
constexpr void tree_for_each(F const& f, T const& t) {
  if constexpr (detail::is_vector<T>) {
    for (auto const& e : t) tree_for_each(f, e);
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    detail::with_members(t, [&](auto const&... m) { (tree_for_each(f, m), ...); });
  } else if constexpr (is_tree_node<T>) {
    std::apply([&](auto const&... e) { (tree_for_each(f, e), ...); }, t);
  } else {
    f(t);
  }
}

/// References to every leaf in one flat tuple.
template <class T>
constexpr auto tree_leaves(T const& t) {
  if constexpr (detail::is_vector<T>) return std::tuple<>(); // as many as it has at run time: none that a type could tell of
  else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) return detail::with_members(t, [](auto const&... m) { return std::tuple_cat(tree_leaves(m)...); });
  else if constexpr (is_tree_node<T>) return std::apply([](auto const&... e) { return std::tuple_cat(tree_leaves(e)...); }, t);
  else return std::tuple<T const&>(t);
}

namespace detail {
template <class T>
consteval std::size_t leaf_count() {
  static_assert(!is_vector<T>, "varve: a std::vector has no number of leaves that the compiler knows; use std::array or std::tuple");
  if constexpr (is_tree_node<T>) return []<std::size_t... K>(std::index_sequence<K...>) { return (leaf_count<std::tuple_element_t<K, elements_of<T>>>() + ... + std::size_t{0}); }(std::make_index_sequence<std::tuple_size_v<elements_of<T>>>{});
  else return 1;
}
} // namespace detail

/// The tree of structure `T` whose leaves are the elements of a flat tuple from `First` on: the inverse of `tree_leaves`.
template <class T, std::size_t First = 0, class L>
constexpr auto tree_unflatten(L const& leaves) {
  if constexpr (is_tree_node<T>) {
    using E = detail::elements_of<T>;
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr auto before = []<std::size_t I>(std::integral_constant<std::size_t, I>) {
        return []<std::size_t... J>(std::index_sequence<J...>) { return (detail::leaf_count<std::tuple_element_t<J, E>>() + ... + First); }(std::make_index_sequence<I>{});
      };
      if constexpr (detail::tuple_node<T>) return detail::remake(std::type_identity<T>{}, tree_unflatten<std::tuple_element_t<K, E>, before(std::integral_constant<std::size_t, K>{})>(leaves)...);
      else return [](auto const&... m) { return typename detail::remade_aggregate<T, std::remove_cvref_t<decltype(m)>...>::type{m...}; }(tree_unflatten<std::tuple_element_t<K, E>, before(std::integral_constant<std::size_t, K>{})>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<E>>{});
  } else {
    return std::get<First>(leaves);
  }
}

} // namespace varve

// ---- varve/interpreter/tower.hpp
namespace varve {

namespace detail {
/// Does a value contain the interpreter of level `L`, at any depth, its tangents included?
template <int L, class V>
struct contains_level : std::false_type {};
template <int L, class I, class V, class E>
struct contains_level<L, seen<I, V, E>> : std::bool_constant<I::level == L || contains_level<L, V>::value || contains_level<L, E>::value> {};

/// Is a value seen through a mode, which must see every call?
template <class V>
consteval bool contains_mode() {
  return false;
}
template <class V>
  requires is_seen<V>
consteval bool contains_mode() {
  return requires { V::interpreter::watches; } || contains_mode<decltype(V::value)>();
}

template <int L, class V>
constexpr auto const& find_level(V const& v) {
  if constexpr (V::interpreter::level == L) return v.in;
  else if constexpr (contains_level<L, decltype(v.value)>::value) return find_level<L>(v.value);
  else return find_level<L>(v.extra);
}
template <int L>
constexpr auto interpreter_at() {
  return std::tuple<>{};
}
template <int L, class X, class... R>
constexpr auto interpreter_at(X const& x, R const&... r) {
  if constexpr (contains_level<L, X>::value) return std::make_tuple(find_level<L>(x));
  else return interpreter_at<L>(r...);
}
} // namespace detail

/// The interpreters below a level that occur in some values, from level 1 upward: what a cotangent of any of them may be seen through (the join of the towers).
template <int Below, class... X>
constexpr auto tower_of(X const&... x) {
  return [&]<int... L>(std::integer_sequence<int, L...>) {
    return std::tuple_cat(detail::interpreter_at<L + 1>(x...)...);
  }(std::make_integer_sequence<int, Below - 1>{});
}

/// Gives a value every interpreter of the first `K` of a tower: constants become constants of each transform. Types of cotangents are fixed by it.
template <std::size_t K, class Tower, class V>
constexpr auto lift_to(Tower const& tower, V const& v) {
  if constexpr (K == 0) {
    return v;
  } else {
    using I = std::tuple_element_t<K - 1, Tower>;
    auto const& in = std::get<K - 1>(tower);
    if constexpr (at_level<V, I::level>) {
      auto const inner = lift_to<K - 1>(tower, v.value);
      if constexpr (value<decltype(v.extra)>) return in.close_dual(v.in, inner, lift_to<K - 1>(tower, v.extra));
      else return seen<typename V::interpreter, std::remove_const_t<decltype(inner)>, std::remove_cvref_t<decltype(v.extra)>>{inner, v.in, v.extra};
    } else {
      auto const inner = lift_to<K - 1>(tower, v);
      if constexpr (requires { in.lift_with(inner, inner); }) return in.lift_with(inner, lift_to<K - 1>(tower, zeros_like(v)));
      else return in.lift(inner);
    }
  }
}

/// Lifts through the whole tower.
template <class Tower, class V>
constexpr auto lift_to_all(Tower const& tower, V const& v) {
  return lift_to<std::tuple_size_v<Tower>>(tower, v);
}

} // namespace varve

// ---- varve/transform/closure.hpp
namespace varve {

/// A function with declared captures: `closure(f, c...)(x...)` is `f(x..., c...)`. Static transforms put their level above the captures' levels,
/// which the compiler cannot do for values hidden inside a lambda (perturbation confusion, design section 5).
template <class F, class... C>
struct closure_t {
  [[no_unique_address]] F f;
  [[no_unique_address]] std::tuple<C...> captures;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return detail::call_with([&](auto const&... c) { return f(x..., c...); }, captures);
  }
};
template <class F, class... C>
constexpr auto closure(F f, C const&... c) {
  return closure_t<F, C...>{f, std::tuple<C...>(c...)};
}

namespace detail {
template <class F>
constexpr auto captures_of(F const&) {
  return std::tuple<>{};
}
template <class F, class... C>
constexpr auto captures_of(closure_t<F, C...> const& f) {
  return f.captures;
}
template <class X>
constexpr int leaf_level() {
  if constexpr (is_tree_node<X>) return []<std::size_t... K>(std::index_sequence<K...>) {
    int r = 0;
    using E = elements_of<X>;
    ((r = leaf_level<std::tuple_element_t<K, E>>() > r ? leaf_level<std::tuple_element_t<K, E>>() : r), ...);
    return r;
  }(std::make_index_sequence<std::tuple_size_v<elements_of<X>>>{});
  else if constexpr (value<X>) return level_of<X>;
  else return 0;
}
template <class X>
consteval bool tree_is_dynamic() {
  if constexpr (is_tree_node<X>) return []<std::size_t... K>(std::index_sequence<K...>) {
    return (tree_is_dynamic<std::tuple_element_t<K, elements_of<X>>>() || ...);
  }(std::make_index_sequence<std::tuple_size_v<elements_of<X>>>{});
  else return dynamic_value<X>;
}
/// Is one of these values, or of their leaves, one of a trace?
template <class... X>
consteval bool any_traced() {
  return ([] {
    if constexpr (is_tree_node<X>) return []<class... E>(std::type_identity<std::tuple<E...>>) { return any_traced<E...>(); }(std::type_identity<elements_of<X>>{});
    else return traced_value<X>;
  }() || ...);
}
/// Level of a static transform: one above the greatest among its arguments and declared captures.
template <class F, class... X>
inline constexpr int next_level = 1 + leaf_level<std::tuple<decltype(captures_of(std::declval<F const&>())), X...>>();

template <int Level, class F, class... X>
constexpr auto leaves_tower(F const& f, X const&... x) {
  return std::apply([](auto const&... v) { return tower_of<Level>(v...); }, tree_leaves(std::tuple_cat(captures_of(f), std::tuple<X const&...>(x...))));
}
} // namespace detail

} // namespace varve

// ---- varve/transform/dynamic_scope.hpp
namespace varve {

namespace detail {
/// A layer that runs interpreter `I` on boxed calls: the same `process` that static values use.
template <class I>
struct interpreter_layer : layer {
  I interpreter{};
  explicit interpreter_layer(layer_stack& stack) {
    kind = I::kind;
    keys = I::keys;
    interpreter.self = this;
    object = static_cast<dynamic_level*>(&interpreter);
    interpreter.refresh = refresh_of<I>;
    process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor {
      auto const& in = static_cast<interpreter_layer&>(l).interpreter;
      if (op.table->kind == op_kind::mutation) [[unlikely]]
        return write_at(in, op, x);
      tensor y = in.process(op, x);
      if (!in.refresh) return y;
      if (x.size() > 0) in.link(op, y, x[0], l.grad_mode);
      in.make_own(y, x);
      return y;
    };
    pushed::name(*this, stack);
  }
  interpreter_layer(interpreter_layer const&) = delete;
  interpreter_layer& operator=(interpreter_layer const&) = delete;
};

inline void require_floating(tensor const& t, char const* transform) {
  if (is_floating(t.dtype())) return;
  std::string what(transform);
  what += " of a value that is not floating:"; // g++ 12 warns of the operator +
  refuse::dtype_is_not_supported(what.c_str(), name(t.dtype()));
}
} // namespace detail

namespace detail {
/// Where the gradient of an argument of a transform arrives.
struct argument_node : grad_node {
  tensor gradient;
  static grad_node_type const type_;
  argument_node() : grad_node(&type_) { sequence = ~std::uint64_t{0}; }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const*) {
    static_cast<argument_node&>(n).gradient = g[0];
    return {};
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<argument_node*>(n);
  }
};
inline constexpr grad_node_type argument_node::type_{&argument_node::backward, [](grad_node&) {}, &argument_node::destroy, [](grad_node const&, char* out) { std::strcpy(out, "Argument"); }, true};
} // namespace detail

/// One run of reverse mode on tensors: a layer of the thread's stack while the function runs, and the graph it records. The counterpart of `static_reverse_scope`.
/// (A template, like its siblings, only so that the header alone instantiates no operator.)
template <class On = void>
class dynamic_reverse_scope {
public:
  dynamic_reverse_scope() : layer_(this_thread_state.transforms) {
    if (this_thread_state.saved_hooks) throw transform_error("varve: grad, vjp and jacrev do not support saved tensor hooks; take the transform out of their scope (TR-25)");
    layer_.records = true;
    layer_.record = &dynamic_level::record_done<dependent<tensor, On>>;
    layer_.outer_grad_mode = this_thread_state.grad_mode;
  }

  template <class T>
  auto track(T const& t) {
    return tree_map(
        [&](auto const& v) {
          if constexpr (value<std::remove_cvref_t<decltype(v)>>) {
            tensor const x = detail::as_tensor(detail::plain(v));
            detail::require_floating(x, "grad");
            return tensor::wrap(x, layer_.id, layer_.level, {}, detail::edge_to(new detail::argument_node), x.sizes());
          } else {
            return v;
          }
        },
        t);
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    set_grad_enabled const recorded(true);
    return body();
  }
  template <class Y>
  auto primal(Y const& t) const {
    return tree_map(
        [&](auto const& y) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>) return mine(y) ? tensor(y.inner()) : y;
          else return y;
        },
        t);
  }
  template <class Y>
  void backward_from_scalar(Y const& y) {
    static_assert(value<Y>, "varve: grad: the function must return one scalar value");
    if constexpr (std::is_same_v<Y, tensor>) {
      if (y.dim() != 0) refuse::grad_of_a_function_that_does_not_return_a_scalar(y.sizes());
      detail::require_floating(y, "grad of a function");
      if (!mine(y) || !layer_.interpreter.fresh(y).history()) return;
      detail::backward_run<> pass(false);
      pass.seed(y.history(), ones_like(y.inner()));
      pass.run();
    }
  }
  template <class Y, class G>
  void backward(Y const& t, G const& g) {
    detail::backward_run<> pass(true);
    tree_map(
        [&](auto const& y, auto const& c) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(y)>, tensor>) {
            tensor const cotangent = detail::as_tensor(c);
            if (!(cotangent.sizes() == y.sizes())) refuse::shapes_do_not_match("vjp (cotangent and result)", cotangent.sizes(), y.sizes());
            if (mine(y) && layer_.interpreter.fresh(y).history()) pass.seed(y.history(), cotangent);
          }
          return y;
        },
        t, g);
    pass.run();
  }
  /// The collected cotangents of a tracked tree, handed over; zeros where nothing arrived.
  template <class T>
  auto gradient(T const& t) const {
    return tree_map(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) {
            tensor const c = static_cast<tensor&&>(static_cast<detail::argument_node*>(v.history().to())->gradient);
            return c.defined() ? c : tensor(zeros_like(v.inner()));
          } else {
            return none;
          }
        },
        t);
  }

private:
  bool mine(tensor const& y) const { return layer_.interpreter.mine(y); }
  detail::interpreter_layer<grad_interpreter<dynamic_level>> layer_;
};

/// One run of forward mode on tensors.
template <class = void>
class dynamic_forward_scope {
public:
  dynamic_forward_scope() : layer_(this_thread_state.transforms) {}
  template <class P, class T>
  auto attach(P const& p, T const& t) const {
    return tree_map(
        [&](auto const& v, auto const& d) {
          auto const x = boxed(v);
          auto const dx = boxed(d);
          detail::require_floating(x, "jvp");
          if (!(x.sizes() == dx.sizes())) refuse::shapes_do_not_match("jvp (primal and tangent)", x.sizes(), dx.sizes());
          return tensor::wrap(x, layer_.id, layer_.level, to(dx, x.dtype()), {}, x.sizes());
        },
        p, t);
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  tensor primal(tensor const& y) const { return layer_.interpreter.mine(y) ? y.inner() : y; }
  template <class Y>
    requires std::is_same_v<Y, tensor>
  tensor tangent(Y const& y) const {
    if (!layer_.interpreter.mine(y)) return zeros_like(y);
    Y const& t = layer_.interpreter.fresh(y).extra();
    return t.defined() ? t : Y(zeros_like(Y(y.inner())));
  }
  template <number Y>
  tensor primal(Y y) const {
    return detail::as_tensor(y);
  }
  template <number Y>
  tensor tangent(Y) const {
    return detail::as_tensor(Y(0));
  }

private:
  template <class V>
  static tensor boxed(V const& v) {
    return detail::as_tensor(detail::plain(v));
  }
  detail::interpreter_layer<jvp_interpreter<dynamic_level>> layer_;
};

/// One run of `vmap` on tensors.
template <class = void>
class dynamic_batch_scope {
public:
  explicit dynamic_batch_scope(index_t n, random_policy random) : layer_(this_thread_state.transforms) {
    layer_.interpreter.n = dims{n};
    layer_.batch_size = n;
    layer_.random = random;
  }
  dims size() const { return layer_.interpreter.n; }
  tensor map(tensor const& x) const {
    dims logical = x.sizes();
    return tensor::wrap(x, layer_.id, layer_.level, {}, {}, logical.erase(0));
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, layer_);
    return body();
  }
  bool mapped(tensor const& y) const { return layer_.interpreter.mine(y); }
  tensor unmapped(tensor const& y) const { return y.inner(); }

private:
  detail::interpreter_layer<vmap_interpreter<dynamic_level, dims>> layer_;
};

} // namespace varve

// ---- varve/autograd/backward.hpp
namespace varve {

namespace detail {
/// The edge a gradient of `t` starts from or arrives at.
inline edge const& gradient_edge_of(tensor const& t) {
  for (layer const* l = this_thread_state.transforms.top; l && t.is_wrapped(); l = l->below)
    if (l->id == t.layer()) static_cast<dynamic_level const*>(l->object)->fresh(t);
  return eager_history(t);
}
/// A value that is only the own of levels which did not record it, as seen below them.
inline tensor const& where_recorded(tensor const& t) {
  bool const constant = t.is_wrapped() && !t.history() && !t.extra().defined() && t.dim() == t.inner().dim();
  return constant ? where_recorded(t.inner()) : t;
}
/// Inside of transforms a gradient is asked of one graph: that of a level of `grad` that is still there, as which its results are seen, or the eager one.
template <class Targets>
level_seen_again graph_level_of(Targets const& outputs) {
  level_seen_again r;
  if (!inside_transform()) return r;
  for (auto const& y : outputs) {
    if (!y.value.defined()) throw transform_error("varve: autograd::grad: inside of a transform outputs are given as tensors, not as edges, which do not tell their level");
    if (y.value.is_wrapped() && !is_alive(this_thread_state.transforms.top, y.value)) throw transform_error("varve: autograd::grad: an output is a value of a transform that has ended");
    if (&y != &outputs[0] && y.value.layer() != r.layer) throw transform_error("varve: autograd::grad: the outputs are values of different transforms; ask for their gradients one after the other");
    r = {y.value.layer(), y.value.level()};
  }
  return r;
}

/// Cotangents of the roots: as given, or one for a single element (AG-1).
template <class Run, class Targets, class T>
void seed_roots(Run& run, Targets const& roots, std::vector<T> const& gradients, char const* who) {
  if (!gradients.empty() && gradients.size() != roots.size()) throw value_error((std::string("varve: ") + who + ": as many gradients as roots are needed, or none").c_str());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    auto const& root = roots[k];
    T const y = root.value;
    T g = gradients.empty() ? T() : gradients[k];
    if (!root.at) refuse_autograd(who, "the tensor does not require grad and has no history; call requires_grad_ on what it is made of, outside of no_grad");
    if (!g.defined()) {
      if (!y.defined() || y.numel() != 1)
        refuse_autograd(who, ("a gradient is made up only for a scalar, not for " + (y.defined() ? "shape " + to_string(y.sizes()) : std::string("an edge")) + "; give one").c_str());
      g = ones_like(y);
    } else if (y.defined()) {
      if (!(g.sizes() == y.sizes())) refuse::shapes_do_not_match((std::string(who) + " (mismatch in shape of gradient and value)").c_str(), g.sizes(), y.sizes());
      if (g.dtype() != y.dtype()) throw dtype_error((std::string("varve: ") + who + ": a gradient of " + name(g.dtype()) + " was given for a value of " + name(y.dtype())).c_str());
    }
    run.seed(root.at, g);
  }
}
inline void refuse_backward_inside_transform(char const* who) {
  if (inside_transform())
    throw transform_error((std::string("varve: ") + who + " was called inside of a transform; use grad, vjp or jvp there").c_str());
}
template <class T, class Targets, class Options, class Unused>
std::vector<T> batched_grad(Targets const& outputs, Targets const& inputs, std::vector<T> const& grad_outputs, Options o, Unused allow);
} // namespace detail

namespace autograd {

/// Where a gradient starts from or is asked for: a tensor, or an edge of the graph without its tensor (AG-3).
struct target {
  edge at;
  tensor value;
  target(tensor const& t) : value(detail::where_recorded(t)) { // NOLINT: a tensor is a target
    if (value.requires_grad()) at = detail::gradient_edge_of(value);
  }
  target(gradient_edge const& e) : at(e.node.get(), static_cast<std::uint32_t>(e.output_nr)) {}              // NOLINT
};
/// The edge of a tensor that requires grad (`torch.autograd.graph.get_gradient_edge`).
inline gradient_edge get_gradient_edge(tensor const& t) {
  if (!t.requires_grad()) detail::refuse_autograd("get_gradient_edge", "the tensor does not require grad");
  edge const& e = detail::gradient_edge_of(t);
  return {node(e.to()), static_cast<int>(e.nr())};
}

/// How `backward` and `grad` run.
struct options {
  /// Saved values are kept, so that the graph can be run again.
  bool retain_graph = false;
  /// What is computed is recorded itself, for derivatives of higher order.
  bool create_graph = false;
  /// `grad` only: the gradients of outputs carry a dimension in front, over which the run is mapped.
  bool is_grads_batched = false;
};
/// What `grad` gives for inputs the outputs do not depend on.
enum class unused { error, undefined, zeros };

/// Adds the gradients of `roots`, weighted by `gradients` (one each, or undefined for single elements), to the leaves they were made of: `torch.autograd.backward`.
/// With `inputs`, only to those. Cost: a small multiple of the recorded operators; graphs of any depth. `autograd_error` when a root has no history, when the graph was
/// freed, or when a saved value was overtaken; then some leaves may have their gradient already.
template <class T = tensor>
void backward(std::vector<target> const& roots, std::vector<T> const& gradients = {}, options o = {}, std::vector<T> const& inputs = {}) {
  detail::refuse_backward_inside_transform("backward");
  detail::backward_run<> run(o.retain_graph || o.create_graph);
  set_grad_enabled const recorded(o.create_graph);
  detail::seed_roots(run, roots, gradients, "backward");
  for (auto const& x : inputs) {
    if (!x.requires_grad()) detail::refuse_autograd("backward", "one of the inputs does not require grad");
    if (!detail::leaf_of(x)) detail::refuse_autograd("backward", "one of the inputs is no leaf; ask autograd::grad for its gradient");
    run.capture(detail::gradient_edge_of(x));
  }
  run.run();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T const& g = run.captured(static_cast<int>(k));
    auto* const leaf = detail::leaf_of(inputs[k]);
    bool again = false;
    for (std::size_t i = 0; i < k; ++i) again = again || detail::leaf_of(inputs[i]) == leaf;
    if (!g.defined() || again) continue;
    boxed_args in(g), out;
    leaf->type->backward(*leaf, in, nullptr);
    if (leaf->extra) leaf->extra->after(*leaf, out, in);
  }
}

/// Gradients of `outputs`, weighted by `grad_outputs`, with respect to `inputs`, which need not be leaves: `torch.autograd.grad`. No leaf is changed (AG-2). An input that
/// plays no part is `autograd_error`, unless `allow` says otherwise (`allow_unused`, `materialize_grads`). Inside of `grad` and `vjp` it gives gradients of values seen there, with
/// `create_graph` differentiable ones (FS-S28); higher-order operators and custom functions in between are then refused (`transform_error`).
template <class T = tensor>
std::vector<T> grad(std::vector<target> const& outputs, std::vector<target> const& inputs, std::vector<T> const& grad_outputs = {}, options o = {}, unused allow = unused::error) {
  detail::level_seen_again const level = detail::graph_level_of(outputs);
  if (o.is_grads_batched) return detail::batched_grad<T>(outputs, inputs, grad_outputs, o, allow);
  detail::backward_run<> run(o.retain_graph || o.create_graph);
  detail::this_thread_sees_again = level;
  set_grad_enabled const recorded(o.create_graph);
  detail::seed_roots(run, outputs, grad_outputs, "autograd::grad");
  for (auto const& x : inputs) {
    if (!x.at) detail::refuse_autograd("autograd::grad", "one of the inputs does not require grad");
    run.capture(x.at);
  }
  run.run();
  std::vector<T> r;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T g = run.captured(static_cast<int>(k));
    if (!g.defined() && allow == unused::error)
      detail::refuse_autograd("autograd::grad", ("input " + std::to_string(k) + " plays no part in the outputs; allow it with unused::undefined or unused::zeros").c_str());
    if (!g.defined() && allow == unused::zeros) {
      if (!inputs[k].value.defined()) detail::refuse_autograd("autograd::grad", "an edge has no shape to make zeros of; give its tensor");
      g = zeros_like(T(inputs[k].value.detach()));
    }
    r.push_back(static_cast<T&&>(g));
  }
  return r;
}
} // namespace autograd

/// The same run for each slice of the cotangents, as `vmap` does it.
template <class T, class Targets, class Options, class Unused>
std::vector<T> detail::batched_grad(Targets const& outputs, Targets const& inputs, std::vector<T> const& grad_outputs, Options o, Unused allow) {
  if (grad_outputs.empty() || !grad_outputs[0].defined() || grad_outputs[0].dim() == 0) throw value_error("varve: autograd::grad: batched gradients of the outputs must be given, with the batch in front");
  index_t const n = grad_outputs[0].size(0);
  dynamic_batch_scope<> scope(n, random_policy::error);
  std::vector<T> mapped;
  for (auto const& g : grad_outputs) {
    if (!g.defined() || g.dim() == 0 || g.size(0) != n) throw value_error("varve: autograd::grad: the gradients of outputs must all be given, with batches of one size");
    mapped.push_back(scope.map(g));
  }
  level_seen_again const level = graph_level_of(outputs);
  backward_run<> run(o.retain_graph || o.create_graph);
  this_thread_sees_again = level;
  set_grad_enabled const recorded(o.create_graph);
  scope.run([&] {
    seed_roots(run, outputs, mapped, "autograd::grad");
    for (auto const& x : inputs) run.capture(x.at);
    run.run();
    return 0;
  });
  std::vector<T> r;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    T const g = run.captured(static_cast<int>(k));
    if (!g.defined() && allow == Unused::error) refuse_autograd("autograd::grad", ("input " + std::to_string(k) + " plays no part in the outputs; allow it with unused::undefined or unused::zeros").c_str());
    if (g.defined()) r.push_back(scope.mapped(g) ? T(scope.unmapped(g)) : T(expand(g, [&] { dims s = g.sizes(); return s.insert(0, n); }())));
    else if (allow == Unused::undefined) r.push_back(T());
    else if (!inputs[k].value.defined()) refuse_autograd("autograd::grad", "an edge has no shape to make zeros of; give its tensor");
    else r.push_back(zeros_like(T(expand(T(inputs[k].value.detach()), [&] { dims s = inputs[k].value.sizes(); return s.insert(0, n); }()))));
  }
  return r;
}

template <class T>
void tensor::backward(T const& gradient, bool retain_graph, bool create_graph) const {
  autograd::backward<T>({*this}, {gradient}, {retain_graph, create_graph});
}
inline tensor tensor::grad() const {
  if (auto* const leaf = detail::leaf_of(*this)) return leaf->get();
  if (history() && history().to()->extra)
    if (tensor const* const g = history().to()->extra->retained_at(history().nr())) return *g;
  return {};
}
inline void tensor::set_grad(tensor const& g) const {
  auto* const leaf = detail::leaf_of(*this);
  if (!leaf) detail::refuse_autograd("set_grad", "only leaves that require grad keep a gradient");
  if (g.defined() && !(g.sizes() == sizes())) refuse::shapes_do_not_match("set_grad", g.sizes(), sizes());
  if (g.defined() && g.dtype() != dtype()) throw dtype_error((std::string("varve: set_grad: a gradient of ") + name(g.dtype()) + " for a tensor of " + name(dtype())).c_str());
  leaf->set(g);
}

} // namespace varve

// ---- varve/hop/pack.hpp
/// @file
/// The operands or results of a higher-order operator as one value, so that its rules are one text for both worlds: a tuple of static values, whose
/// counts are constants, or `boxed_args`, whose counts are numbers.
namespace varve {

/// A pack as a flat tree.
template <class F, class... P>
requires(std::is_same_v<P, boxed_args>&&...) boxed_args tree_map(F const& f, boxed_args const& a, P const&... p) {
  boxed_args r;
  ((p.size() == a.size() ? void() : refuse::shapes_do_not_match("higher-order operator (number of values)", dims{a.size()}, dims{p.size()})), ...);
  for (int k = 0; k < a.size(); ++k) r.push_back(f(a[k], p[k]...));
  return r;
}

namespace detail {
/// A number of values that the compiler knows; calculated with as if it were an int.
template <int N>
struct count_t : std::integral_constant<int, N> {};
template <int A, int B>
constexpr count_t<A + B> operator+(count_t<A>, count_t<B>) {
  return {};
}
template <int A, int B>
constexpr count_t<A - B> operator-(count_t<A>, count_t<B>) {
  return {};
}

template <class P>
inline constexpr bool is_pack = std::is_same_v<P, boxed_args>;
template <class... V>
inline constexpr bool is_pack<std::tuple<V...>> = true;

template <class... V>
constexpr std::tuple<V...> pack(V const&... v) {
  return std::tuple<V...>(v...);
}
inline boxed_args const& pack(boxed_args const& x) { return x; }

template <class... V>
constexpr count_t<static_cast<int>(sizeof...(V))> count_of(std::tuple<V...> const&) {
  return {};
}
inline int count_of(boxed_args const& x) { return x.size(); }
template <int N>
constexpr count_t<N / 2> half(count_t<N>) {
  return {};
}
constexpr int half(int n) { return n / 2; }

/// Operands [from, to) of a call.
template <class... V, int From, int To>
constexpr auto part(std::tuple<V...> const& x, count_t<From>, count_t<To>) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) { return pack(std::get<From + K>(x)...); }
  (std::make_index_sequence<static_cast<std::size_t>(To - From)>{});
}
inline boxed_args part(boxed_args const& x, int from, int to) {
  boxed_args r;
  for (int k = from; k < to; ++k) r.push_back(x[k]);
  return r;
}

template <class... A, class... P>
constexpr auto joined(std::tuple<A...> const& x, P const&... y) {
  return std::tuple_cat(x, y...);
}
template <class... P>
requires(std::is_same_v<P, boxed_args>&&...) boxed_args joined(boxed_args x, P const&... y) {
  auto const add = [&](boxed_args const& p) {
    for (auto const& t : p) x.push_back(t);
  };
  (add(y), ...);
  return x;
}

/// A function of the values in a pack.
template <class F, class... V>
constexpr auto spread(F const& f, std::tuple<V...> const& x) {
  return call_with(f, x);
}
template <class F>
boxed_args spread(F const& f, boxed_args const& x) {
  return f(x);
}
} // namespace detail

} // namespace varve

// ---- varve/interpreter/tape.hpp
namespace varve {

/// An operand of a recorded operator: its primal, and where its cotangent is collected (`none_t` or null: nowhere).
template <class P, class S>
struct tracked {
  P const& primal;
  S const& slot;
};

/// Collects the cotangent of one value. Empty at first, so that absent contributions cost nothing.
template <class V>
struct slot {
  V value;
  bool set;
  constexpr slot() : set(false) {
    if (!std::is_constant_evaluated())
      if constexpr (sizeof(V) <= 64) value = V(); // needless, but g++ 14 warns: it does not see that `set` guards the value
  }

  template <class Tower, class G>
  constexpr void add(Tower const& tower, G const& g) {
    if constexpr (!is_none<G>) {
      static_assert(std::is_same_v<decltype(lift_to_all(tower, g)), V>,
                    "varve: a cotangent is seen through a transform that the tape does not know; declare what brings it in: vjp(closure(f, g), x...)");
    }
    if constexpr (!is_none<G> && std::is_same_v<decltype(lift_to_all(tower, g)), V>) {
      if (set) value = lift_to_all(tower, varve::add(value, g));
      else value = lift_to_all(tower, g);
      set = true;
    }
  }
};

/// One recorded operator. Function pointers instead of virtual functions: g++ 12 cannot destroy virtual nodes in constant expressions.
struct tape_node {
  enum action { pull, clear, drop };
  tape_node* previous = nullptr;
  void (*act)(tape_node*, action) = nullptr;
};

/// Memory of a tape: a buffer in place, then blocks from the heap; in constant expressions every node is allocated by itself.
class tape_memory {
public:
  constexpr tape_memory() {}
  tape_memory(tape_memory const&) = delete;
  tape_memory& operator=(tape_memory const&) = delete;
  constexpr ~tape_memory() {
    while (last_) {
      tape_node* n = last_;
      last_ = n->previous;
      n->act(n, tape_node::drop);
    }
    if (!std::is_constant_evaluated() && blocks_) release();
  }

  template <class Node, class... A>
  constexpr Node* make(A const&... a) {
    Node* n;
    if (std::is_constant_evaluated()) n = new Node(a...);
    else n = ::new (allocate(sizeof(Node), alignof(Node))) Node(a...);
    n->previous = last_;
    last_ = n;
    return n;
  }
  /// A copy of trivially destructible data that lives as long as the tape. (Run time only.)
  template <class T>
  T const* keep(T const& t) {
    return ::new (allocate(sizeof(T), alignof(T))) T(t);
  }
  constexpr tape_node* last() const { return last_; }

private:
  struct block {
    block* next;
  };
  VARVE_NOINLINE void* allocate(std::size_t bytes, std::size_t align) {
    std::size_t at = (used_ + align - 1) & ~(align - 1);
    if (at + bytes > size_) {
      std::size_t const want = bytes + align + 64 > 16384 ? bytes + align + 64 : 16384;
      auto* b = static_cast<block*>(::operator new(want, std::align_val_t{64}));
      b->next = blocks_;
      blocks_ = b;
      memory_ = reinterpret_cast<unsigned char*>(b);
      size_ = want;
      at = 64;
    }
    used_ = at + bytes;
    return (memory_ ? memory_ : place_) + at;
  }
  VARVE_COLD void release() {
    while (blocks_) {
      block* b = blocks_;
      blocks_ = b->next;
      ::operator delete(b, std::align_val_t{64});
    }
  }
  tape_node* last_ = nullptr;
  block* blocks_ = nullptr;
  unsigned char* memory_ = nullptr; // the current block; null: the buffer in place
  std::size_t used_ = 0, size_ = in_place;
  static constexpr std::size_t in_place = 2048;
  alignas(64) unsigned char place_[in_place];
};

/// The operators recorded at one level of reverse mode, with the tower its cotangents are seen through.
template <class Tower>
class tape : public tape_memory {
public:
  constexpr explicit tape(Tower const& t) : tower(t) {}
  Tower tower;

  /// Pulls cotangents from the last operator to the first.
  constexpr void pull() const {
    for (tape_node* n = last(); n; n = n->previous) n->act(n, tape_node::pull);
  }
  /// Empties every slot, so that another cotangent can be pulled.
  constexpr void clear() const {
    for (tape_node* n = last(); n; n = n->previous) n->act(n, tape_node::clear);
  }
};

namespace detail {
template <class P, class S>
struct saved {
  P primal;
  [[no_unique_address]] S slot;
};

/// A leaf: a slot without an operator.
template <class S>
struct leaf_node : tape_node {
  S out;
  constexpr leaf_node() { act = &run; }
  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<leaf_node*>(n);
    if (a == clear) self->out.set = false;
    else if (a == drop) destroy(self);
  }
  static constexpr void destroy(leaf_node* self) {
    if (std::is_constant_evaluated()) delete self;
    else self->~leaf_node();
  }
};

template <class Tape, class S, class Op, class Y, class... D>
struct op_node : tape_node {
  S out;
  Tape const* owner;
  [[no_unique_address]] Op op;
  Y y;
  std::tuple<D...> operands;

  constexpr op_node(Tape const* t, Op const& o, Y const& r, D const&... d) : owner(t), op(o), y(r), operands(d...) { act = &run; }

  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<op_node*>(n);
    if (a == pull) {
      if (self->out.set) self->pull_all(std::index_sequence_for<D...>{});
    } else if (a == clear) {
      self->out.set = false;
    } else if (std::is_constant_evaluated()) {
      delete self;
    } else {
      self->~op_node();
    }
  }
  template <std::size_t... I>
  constexpr void pull_all(std::index_sequence<I...>) {
    (pull_one<I>(std::get<I>(operands).slot), ...);
  }
  template <std::size_t I, class T>
  constexpr void pull_one(T const& to) {
    if constexpr (!is_none<T>) {
      if (to) [&]<std::size_t... K>(std::index_sequence<K...>) {
        to->add(owner->tower, cotangent<I>(op, out.value, y, std::get<K>(operands).primal...));
      }(std::index_sequence_for<D...>{});
    }
  }
};
} // namespace detail

} // namespace varve

// ---- varve/interpreter/hop_node.hpp
namespace varve::detail {

template <class Y, class Level>
struct result_slots {
  using type = std::tuple<typename Level::template slot_of<Y>>;
};
template <class... Y, class Level>
struct result_slots<std::tuple<Y...>, Level> {
  using type = std::tuple<typename Level::template slot_of<Y>...>;
};

/// A recorded higher-order operator: a slot per result; the pullback gives the cotangents of all operands at once. `E...` are the operands' slots.
template <class Tape, class Op, class P, class Y, class Level, class X, class... E>
struct hop_node : tape_node {
  typename result_slots<Y, Level>::type out;
  Tape const* owner;
  [[no_unique_address]] Op op;
  P pred;
  Y y;
  X operands;
  std::tuple<E...> slots;

  constexpr hop_node(Tape const* t, Op const& o, P const& p, Y const& r, X const& x, E const&... e) : owner(t), op(o), pred(p), y(r), operands(x), slots(e...) { act = &run; }

  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<hop_node*>(n);
    if (a == pull) {
      if (std::apply([](auto const&... s) { return (s.set || ...); }, self->out)) self->pull_all(std::index_sequence_for<E...>{});
    } else if (a == clear) {
      std::apply([](auto&... s) { ((s.set = false), ...); }, self->out);
    } else if (std::is_constant_evaluated()) {
      delete self;
    } else {
      self->~hop_node();
    }
  }
  template <std::size_t... I>
  constexpr void pull_all(std::index_sequence<I...>) {
    auto const cotangent = [&](auto const& s, auto const& v) { return s.set ? s.value : lift_to_all(owner->tower, zeros_like(v)); };
    auto const gradients = [&]<std::size_t... K>(std::index_sequence<K...>) {
      if constexpr (is_tree_node<Y>) return rules<typename Op::tag>::pull(op, pred, operands, cotangent(std::get<K>(out), std::get<K>(y))...);
      else return rules<typename Op::tag>::pull(op, pred, operands, cotangent(std::get<K>(out), y)...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(out)>>{});
    (give(std::get<I>(slots), std::get<I>(gradients)), ...);
  }
  template <class S, class G>
  constexpr void give(S const& to, G const& g) {
    if constexpr (!is_none<S>)
      if (to) to->add(owner->tower, g);
  }
};

} // namespace varve::detail

// ---- varve/interpreter/static_level.hpp
namespace varve {

/// How an interpreter opens and closes *static* values: by their type. `N` is its level, `Tag` the transform it belongs to (two transforms may not mix at a level).
template <int N, class Tag>
struct static_level {
  static constexpr int level = N;

  static constexpr bool alive() { return true; }
  template <class S>
  static constexpr S logical_shape(S const& s) {
    return s;
  }

  template <class X>
  static constexpr auto open_dual(X const& x) {
    if constexpr (at_level<X, N>) return dual<decltype(x.value), decltype(x.extra)>{x.value, x.extra};
    else return dual<X, none_t>{x, none};
  }
  template <class I, class Y, class T>
  static constexpr auto close_dual(I const& in, Y const& y, T const& t) {
    if constexpr (is_none<T>) return y;
    else return seen<I, Y, T>{y, in, t};
  }

  template <class X>
  static constexpr auto open_batched(X const& x) {
    if constexpr (at_level<X, N>) return operand<decltype(x.value), std::true_type>{x.value, {}};
    else return operand<X, std::false_type>{x, {}};
  }
  template <class X>
  static constexpr auto is_mapped(X const&) {
    return std::bool_constant<at_level<X, N>>{};
  }
  template <class I, class Y, class F>
  static constexpr auto close_batched(I const& in, operand<Y, F> const& y) {
    return seen<I, Y>{y.value, in, {}};
  }

  template <class X>
  static constexpr auto const& open_plain(X const& x) {
    if constexpr (at_level<X, N>) return x.value;
    else return x;
  }
  /// Closes a value whose interpreter has no payload.
  template <class I, class Y>
  static constexpr auto close(I const& in, Y const& y) {
    return seen<I, Y>{y, in, {}};
  }
};

/// The level of a static `grad`: holds the tape, typed by the tower of interpreters that its cotangents may be seen through. Lifted constants have no tape.
template <int N, class Tag, class Tower>
struct static_tape_level : static_level<N, Tag> {
  tape<Tower>* record_on = nullptr;

  template <class V>
  using slot_of = slot<decltype(lift_to_all(std::declval<Tower const&>(), std::declval<V const&>()))>;

  constexpr bool alive() const { return record_on != nullptr; }

  template <class X>
  static constexpr auto open_tracked(X const& x) {
    if constexpr (at_level<X, N>) return tracked<decltype(x.value), decltype(x.extra)>{x.value, x.extra};
    else return tracked<X, none_t>{x, none};
  }
  template <class I, class Y>
  static constexpr auto close_tracked(I const& in, Y const& y) {
    I constant = in;
    constant.record_on = nullptr;
    return seen<I, Y, slot_of<Y>*>{y, constant, nullptr};
  }
  template <class I, class Op, class Y, class... P, class... E>
  constexpr auto record(I const& in, Op const& op, Y const& y, tracked<P, E> const&... t) const {
    if constexpr (!detail::passes_derivatives<Op> || detail::static_and_not_floating<Y>()) {
      return y;
    } else {
      if (!record_on) return close_tracked(in, y);
      using node = detail::op_node<tape<Tower>, slot_of<Y>, Op, Y, detail::saved<std::remove_cvref_t<P>, std::remove_cvref_t<E>>...>;
      auto* n = record_on->template make<node>(record_on, op, y, detail::saved<std::remove_cvref_t<P>, std::remove_cvref_t<E>>{t.primal, t.slot}...);
      return seen<I, Y, slot_of<Y>*>{y, in, &n->out};
    }
  }
  /// Records a higher-order operator: one node with a slot per result, pulled through `rules<tag>::pull`.
  template <class I, class Op, class Y, class P, class... V, class... E>
  constexpr auto record_hop(I const& in, Op const& op, Y const& y, P const& p, tracked<V, E> const&... t) const {
    tree_for_each(
        [](auto const& v) {
          static_assert(level_of<std::remove_cvref_t<decltype(v)>> < N, "varve: a function of this operator captures a value that grad tracks; pass it as an operand or through closure(f, captured...)");
        },
        y);
    using node = detail::hop_node<tape<Tower>, Op, P, Y, static_tape_level, std::tuple<std::remove_cvref_t<V>...>, std::remove_cvref_t<E>...>;
    node* n = record_on ? record_on->template make<node>(record_on, op, p, y, std::tuple<std::remove_cvref_t<V>...>(t.primal...), t.slot...) : nullptr;
    return tree_map_indexed([&]<std::size_t K>(arg_t<K>, auto const& v) {
      using Leaf = std::remove_cvref_t<decltype(v)>;
      if constexpr (detail::static_and_not_floating<Leaf>()) return v;
      else if (n) return seen<I, Leaf, slot_of<Leaf>*>{v, in, &std::get<K>(n->out)};
      else return close_tracked(in, v);
    }, y);
  }
  /// A leaf of the tape.
  template <class I, class V>
  constexpr auto track(I const& in, V const& v) const {
    auto* n = record_on->template make<detail::leaf_node<slot_of<V>>>();
    return seen<I, V, slot_of<V>*>{v, in, &n->out};
  }
};

} // namespace varve

// ---- varve/transform/scope.hpp
namespace varve {

/// Is one of these arguments, or a leaf of one, a dynamic value? Then a transform uses the run-time stack.
template <class... X>
concept any_dynamic = (detail::tree_is_dynamic<X>() || ...) && ((detail::leaf_level<X>() == 0) && ...);

namespace detail {
template <int N, class Y>
inline constexpr bool leaves = level_of<Y> <= N; // a name, so that no compiler explains the comparison
/// Checks what leaves a static transform of level N.
template <int N, class Y>
constexpr void check_exit() {
  static_assert(leaves<N, Y>, "varve: the result is seen through a later level than the transform's own (perturbation confusion through a capture); "
                                  "pass the outer value as an argument or through closure(f, captured...)");
}
/// A value of the trace that some arguments or declared captures belong to; `none` when none does.
template <class V, class... R>
constexpr auto first_traced(V const& v, R const&... r) {
  if constexpr (traced_value<V>) return base_value(v);
  else return first_traced(r...);
}
template <class F, class... X>
constexpr auto traced_among([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_traced<decltype(captures_of(f)), X...>()) return std::apply([](auto const&... v) { return first_traced(v...); }, tree_leaves(std::tuple_cat(captures_of(f), std::tuple<X const&...>(x...))));
  else return none;
}
template <class V, int N>
concept leaf_at_level = value<V> && at_level<V, N>; // a concept, since of a tree the second is not asked
template <class V>
concept differentiable_leaf = value<V> && !static_and_not_floating<V>();
} // namespace detail

/// One run of reverse mode on static values: a tape, and the level its values are seen at.
template <class F, class... X>
class static_reverse_scope {
public:
  static constexpr int level = detail::next_level<F, X...>;
  using tower = decltype(detail::leaves_tower<level>(std::declval<F const&>(), std::declval<X const&>()...));
  using interpreter = grad_interpreter<static_tape_level<level, F, tower>>;

  constexpr explicit static_reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) : tape_(tower_below(f, x...)), like_(detail::traced_among(f, x...)) {}

  template <class T>
  constexpr auto track(T const& t) {
    if constexpr (detail::differentiable_leaf<T>) return track_leaf(t);
    else return tree_map(
        [&](auto const& v) {
          using V = std::remove_cvref_t<decltype(v)>;
          if constexpr (detail::differentiable_leaf<V>) return track_leaf(v);
          else return v;
        },
        t);
  }
  template <class Body>
  constexpr auto run(Body const& body) {
    return body();
  }
  /// Value of a result below this level.
  template <class Y>
  constexpr auto primal(Y const& t) const {
    return tree_map(
        [](auto const& y) {
          using V = std::remove_cvref_t<decltype(y)>;
          if constexpr (value<V>) {
            detail::check_exit<level, V>();
            if constexpr (at_level<V, level>) return y.value;
            else return y;
          } else {
            return y;
          }
        },
        t);
  }
  template <class Y>
  constexpr void backward_from_scalar(Y const& y) {
    static_assert(value<Y>, "varve: grad: the function must return one scalar value");
    if constexpr (value<Y>) {
      detail::check_exit<level, Y>();
      if constexpr (is_ints<decltype(shape_of(y))>) static_assert(decltype(shape_of(y))::size() == 0, "varve: grad: the function must return a scalar (rank 0); reduce its result, for example by sum");
      else if (rank_of(y) != 0) refuse::grad_of_a_function_that_does_not_return_a_scalar(to_dims(shape_of(y)));
      if constexpr (at_level<Y, level>) seed(y, ones_like(y.value));
      tape_.pull();
    }
  }
  /// Pulls a tree of cotangents of the results.
  template <class Y, class G>
  constexpr void backward(Y const& t, G const& g) {
    tape_.clear();
    tree_map(
        [&](auto const& y, auto const& c) {
          using V = std::remove_cvref_t<decltype(y)>;
          if constexpr (at_level<V, level>) seed(y, c);
          return 0;
        },
        t, g);
    tape_.pull();
  }
  /// The collected cotangents of a tracked tree; zeros where nothing arrived.
  template <class T>
  constexpr auto gradient(T const& t) const {
    if constexpr (detail::leaf_at_level<T, level>) {
      if (t.extra->set) return t.extra->value;
      return lift_to_all(tape_.tower, zeros_like(t.value));
    } else return tree_map(
        [&](auto const& v) {
          using V = std::remove_cvref_t<decltype(v)>;
          if constexpr (at_level<V, level>) {
            if (v.extra->set) return v.extra->value;
            return lift_to_all(tape_.tower, zeros_like(v.value));
          } else {
            return none;
          }
        },
        t);
  }

private:
  using like = decltype(detail::traced_among(std::declval<F const&>(), std::declval<X const&>()...));
  /// A leaf of the tape. Beside values of a trace static ones become its constants: their cotangents are values of the trace.
  template <class V>
  constexpr auto track_leaf(V const& v) {
    if constexpr (!is_none<like> && !traced_value<V>) return in().track(in(), detail::as_traced(detail::plain(v), like_));
    else return in().track(in(), detail::plain(v));
  }
  static constexpr tower tower_below([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
    if constexpr (std::is_empty_v<tower>) return tower{};
    else return detail::leaves_tower<level>(f, x...);
  }
  constexpr interpreter in() {
    interpreter i{};
    i.record_on = &tape_;
    return i;
  }
  template <class Y, class G>
  constexpr void seed(Y const& y, G const& g) {
    if constexpr (traced_value<Y> && value<G> && !traced_value<G>) {
      if (!(to_dims(shape_of(g)) == to_dims(shape_of(y)))) refuse::shapes_do_not_match("vjp (cotangent and result)", to_dims(shape_of(g)), to_dims(shape_of(y)));
      if (y.extra) y.extra->add(tape_.tower, to(detail::as_traced(detail::plain(g), y), type_fact(y)));
    } else {
      if (y.extra) y.extra->add(tape_.tower, g);
    }
  }
  tape<tower> tape_;
  [[no_unique_address]] like like_;
};

/// Opens reverse mode for a function and its arguments, in the world their types choose.
template <class F, class... X>
constexpr auto reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_dynamic<X...>) return dynamic_reverse_scope<>();
  else return static_reverse_scope<F, X...>(f, x...);
}

} // namespace varve

// ---- varve/hop/mapped_function.hpp
/// @file
/// `vmap` of a custom function, which is a custom function again (AF-25). One text for both worlds: a batch says how values are closed and opened.
namespace varve::detail {

template <class Y>
constexpr auto as_flat_tuple(Y const& y) {
  if constexpr (is_tree_node<Y>) return std::apply([](auto const&... v) { return std::make_tuple(v...); }, y);
  else return std::tuple<Y>(y);
}
/// The cotangent of an operand, from that which a mapped `backward` gave: for an operand that was not mapped the sum over the batch, for a mapped one with the batch in front.
template <class V, class Flag, class Was, class N>
constexpr auto reduced(operand<V, Flag> const& o, Was const& was, N const& n) {
  if constexpr (is_none<V>) return o.value;
  else return choose(
      was, [&](auto const& v) { return materialize(operand<V, Flag>{v, o.batched}, n); },
      [&](auto const& v) { return choose(o.batched, [](auto const& w) { return sum(w, axis<0>); }, identity, v); }, o.value);
}

/// Forward, context, backward and jvp of a function, each mapped.
template <class F, class Batch>
struct mapped_function {
  [[no_unique_address]] F f;
  Batch batch;

  constexpr auto forward(auto const&... x) const {
    return batch.run([&](auto const& b) { return b.open(spread([&](auto const&... v) { return f.forward(v...); }, b.operands(pack(x...)))); });
  }
  constexpr auto context(auto const& asked, auto const& x, auto const& y) const {
    return batch.run([&](auto const& b) { return b.open_context(f.context(asked, b.operands(x), b.close(y))); });
  }
  constexpr auto backward(auto const& ctx, auto const&... g) const {
    return batch.run([&](auto const& b) {
      auto inner = b.close_context(ctx);
      return b.reduce(f.backward(inner, b.close(g)...));
    });
  }
  constexpr auto jvp(auto const& ctx, auto const&... t) const {
    return batch.run([&](auto const& b) {
      auto inner = b.close_context(ctx);
      return b.open(spread([&](auto const&... v) { return f.jvp(inner, v...); }, b.operands(pack(t...))));
    });
  }
};

/// Static values: by the level that is mapped; flags tell which operands are.
template <class I, class... Flag>
struct static_batch {
  I in;
  constexpr auto run(auto const& body) const { return body(*this); }
  template <class V, class G>
  constexpr auto close_operand(operand<V, G> const& o) const {
    if constexpr (G::value) return in.close_batched(in, o);
    else return o.value;
  }
  template <class... X>
  constexpr auto operands(std::tuple<X...> const& x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(close_operand(operand<X, Flag>{std::get<K>(x), {}})...); }(std::index_sequence_for<X...>{});
  }
  constexpr auto close(auto const& y) const {
    return tree_map([&](auto const& v) { return close_operand(operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}}); }, y);
  }
  constexpr auto open(auto const& y) const {
    return tree_map([&](auto const& v) { return materialize(in.open_batched(v), in.n); }, y);
  }
  constexpr auto open_context(auto const& c) const {
    return c.map([&](auto const& v) { return in.open_batched(v); });
  }
  constexpr auto close_context(auto const& c) const {
    return c.map([&](auto const& o) { return close_operand(o); });
  }
  constexpr auto reduce(auto const& r) const {
    auto const g = as_flat_tuple(r);
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(reduced(in.open_batched(std::get<K>(g)), Flag{}, in.n)...); }(std::index_sequence_for<Flag...>{});
  }
};

} // namespace varve::detail

// ---- varve/hop/custom_function_call.hpp
namespace varve {

/// Tag of the higher-order operator behind custom functions (AF-19): every level of a stack sees the call whole.
struct custom_function_t {
  static constexpr auto op_name = "custom_function_call";
};

/// What `setup_context` is given and returns: the values that `backward` and `jvp` will need, and facts about the results. Each call returns another context:
/// `return ctx.save_for_backward(x, y).mark_non_differentiable<1>();`.
/// `N` operands; S, F: types of what is saved for `backward` and for `jvp`; K: what else is kept; Constant: mask of results without derivative; Dirty: mask of operands written to.
template <int N, class S = std::tuple<>, class F = std::tuple<>, class K = std::tuple<>, unsigned Constant = 0, unsigned Dirty = 0>
struct function_context {
  S saved_values{};
  F forward_values{};
  K kept_values{};
  /// Which arguments of `forward` a derivative is asked for, at this level (AF-10).
  std::array<bool, static_cast<std::size_t>(N)> needs_input_grad{};
  bool materialize = true;
  static constexpr unsigned constant_results = Constant, dirty_operands = Dirty;

  /// Operands and results that `backward` reads; the last call counts (AF-4).
  template <value... V>
  constexpr auto save_for_backward(V const&... v) const {
    return function_context<N, std::tuple<V...>, F, K, Constant, Dirty>{std::tuple<V...>(v...), forward_values, kept_values, needs_input_grad, materialize};
  }
  /// ... and those that `jvp` reads (AF-5).
  template <value... V>
  constexpr auto save_for_forward(V const&... v) const {
    return function_context<N, S, std::tuple<V...>, K, Constant, Dirty>{saved_values, std::tuple<V...>(v...), kept_values, needs_input_grad, materialize};
  }
  /// Anything that is no value of the program: sizes, flags, numbers of iterations.
  template <class... V>
  constexpr auto keep(V const&... v) const {
    return function_context<N, S, F, std::tuple<V...>, Constant, Dirty>{saved_values, forward_values, std::tuple<V...>(v...), needs_input_grad, materialize};
  }
  /// Results, by number, that are constants to derivatives (AF-8).
  template <int... I>
  constexpr auto mark_non_differentiable() const {
    return function_context<N, S, F, K, Constant | ((1u << I) | ... | 0u), Dirty>{saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// Arguments, by number, that `forward` wrote into and returned (AF-6).
  template <int... I>
  constexpr auto mark_dirty() const {
    return function_context<N, S, F, K, Constant, Dirty | ((1u << I) | ... | 0u)>{saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// With `false`, a result that no gradient arrives at gives `backward` an undefined tensor in place of zeros (AF-9).
  constexpr auto set_materialize_grads(bool on) const {
    auto r = *this;
    r.materialize = on;
    return r;
  }
  /// What was saved, as tuples.
  constexpr S const& saved() const { return saved_values; }
  constexpr F const& saved_for_forward() const { return forward_values; }
  constexpr K const& kept() const { return kept_values; }
  /// The same context of saved values mapped by `f`.
  template <class G>
  constexpr auto map(G const& f) const {
    auto const each = [&](auto const& t) { return std::apply([&](auto const&... v) { return std::make_tuple(f(v)...); }, t); };
    auto s = each(saved_values);
    auto w = each(forward_values);
    return function_context<N, decltype(s), decltype(w), K, Constant, Dirty>{s, w, kept_values, needs_input_grad, materialize};
  }
};

namespace detail {
/// The user's function in the form the rules below call: what `vmap` makes of a function has the same.
template <class Derived>
struct written_function {
  static constexpr auto forward(auto const&... x) { return Derived::forward(x...); }
  static constexpr auto context(auto const& ctx, auto const& inputs, auto const& y) {
    constexpr bool has = requires { Derived::setup_context(ctx, inputs, y); };
    static_assert(has, "varve: a custom function used under a transform, or on static values, must override setup_context(ctx, inputs, output); its forward takes no ctx then");
    if constexpr (has) return Derived::setup_context(ctx, inputs, y);
    else return ctx;
  }
  static constexpr auto backward(auto& ctx, auto const&... g) {
    static_assert(requires { Derived::backward(ctx, g...); }, "varve: a custom function that is differentiated must have backward(ctx, g...)");
    return Derived::backward(ctx, g...);
  }
  static constexpr auto jvp(auto& ctx, auto const&... t) {
    static_assert(requires { Derived::jvp(ctx, t...); }, "varve: a custom function under jvp must have jvp(ctx, t...)");
    return Derived::jvp(ctx, t...);
  }
};

/// Does an opened operand have part in the derivative at this level?
template <class O>
constexpr bool is_wanted(O const& o) {
  if constexpr (requires { o.tangent; }) return !is_none<std::remove_cvref_t<decltype(o.tangent)>>;
  else if constexpr (is_none<std::remove_cvref_t<decltype(o.slot)>>) return false;
  else return o.slot != nullptr;
}
/// A cotangent as the operand has it: summed to its shape where it is wider, of its dtype.
template <class D, class V>
constexpr auto fitted(D const& d, V const& v) {
  if constexpr (is_none<D> || !value<V>) return d;
  else return unmatch(d, v);
}
template <class D>
constexpr auto tangent_or_zeros(D const& d) {
  if constexpr (!is_none<std::remove_cvref_t<decltype(d.tangent)>>) return d.tangent;
  else if constexpr (value<std::remove_cvref_t<decltype(d.primal)>>) return zeros_like(d.primal);
  else return none;
}
struct vmap_name {
  int vmap;
};
template <class D>
struct vmap_probe : D, vmap_name {};
/// Does a function bring its own `vmap`? Asked by name.
template <class D>
concept has_own_vmap = !requires { &vmap_probe<D>::vmap; };
template <class D>
concept generates_vmap = requires { requires D::generate_vmap_rule; };
template <class D>
constexpr void check_vmap_support() {
  static_assert(!(has_own_vmap<D> && generates_vmap<D>), "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
  static_assert(has_own_vmap<D> || generates_vmap<D>, "varve: a custom function without vmap support was mapped; give it `static constexpr bool generate_vmap_rule = true;` or a static vmap");
}
} // namespace detail

/// What a function's own `vmap` is told: the size of the batch and what random operators do (AF-24).
struct vmap_info {
  index_t batch_size = 0;
  random_policy randomness = random_policy::error;
};

namespace detail {
template <class R>
inline constexpr bool returns_two = requires { requires std::tuple_size<R>::value == 2; };
template <class R>
constexpr void check_two_returns(R const&) {
  static_assert(returns_two<R>, "varve: vmap of a custom function must have two returns: the pair (results, which of them are mapped)");
}
/// Static results of a function's own `vmap`, each with the batch in front: a flag for all, or one for each, tells by its type, or by being true, which have it already.
template <class Y, class F, class N>
constexpr auto with_batches(Y const& y, F const& mapped, N const& n) {
  if constexpr (is_tree_node<F>) {
    constexpr bool fits = [] {
      if constexpr (is_tree_node<Y>) return std::tuple_size_v<Y> == std::tuple_size_v<F>;
      else return false;
    }();
    static_assert(fits, "varve: vmap of a custom function returned results and flags of incompatible structure; return one flag, or one for each result");
    if constexpr (fits) return tree_map([&](auto const& v, auto const& flag) { return with_batches(v, flag, n); }, y, mapped);
    else return y; // one message is enough
  } else if constexpr (is_tree_node<Y>) {
    return tree_map([&](auto const& v) { return with_batches(v, mapped, n); }, y);
  } else if constexpr (is_none<F> || std::is_same_v<F, std::false_type>) {
    return materialize(operand<Y, std::false_type>{y, {}}, n);
  } else {
    if (!mapped) refuse::argument_is_invalid("vmap of a custom function", "static results without the batch are told by their type: none, or std::false_type");
    return y;
  }
}
} // namespace detail

/// A call of a custom function on static values: what interpreters process, and what the rules below are written in. Tensors have theirs in `boxed_custom_function.hpp`.
template <class Derived, class F>
struct custom_function_call {
  using tag = custom_function_t;
  [[no_unique_address]] F f;
  static constexpr char const* name() { return custom_function_t::op_name; }

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (top_level<X...> > 0) return innermost(x...).process(*this, x...);
    else return f.forward(x...);
  }
  /// What `setup_context` leaves, told of opened operands and bare results.
  template <class Y, class... O>
  constexpr auto context(Y const& y, O const&... o) const {
    function_context<sizeof...(O)> ctx;
    ctx.needs_input_grad = {detail::is_wanted(o)...};
    auto const c = f.context(ctx, std::make_tuple(o.primal...), y);
    static_assert(c.dirty_operands == 0, "varve: a custom function that writes into its operands (mark_dirty) works on tensors only");
    return c;
  }
  template <class I, class C, class Y, class... O>
  constexpr auto record(I const& in, C const& c, Y const& y, O const&... t) const {
    return in.record_hop(in, *this, y, c, t...);
  }
  template <class C, class... O>
  constexpr auto tangent(C const& c, O const&... d) const {
    C mine = c;
    return f.jvp(mine, detail::tangent_or_zeros(d)...);
  }
  /// Results as the caller gets them: those without derivative are bare.
  template <class C, class Y, class Z, class... X>
  static constexpr auto results(C const&, Y const& bare, Z const& closed, X const&...) {
    constexpr unsigned constant = C::constant_results;
    if constexpr (constant == 0) return closed;
    else if constexpr (!is_tree_node<Y>) return bare;
    else return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const pick = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        if constexpr (constant >> I & 1) return std::get<I>(bare);
        else return std::get<I>(closed);
      };
      return std::make_tuple(pick(std::integral_constant<std::size_t, K>{})...);
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  }
  /// The function mapped, of operands with the batch in front where they are mapped; results have it there too.
  template <class I, class... V, class... Flag>
  constexpr auto mapped(I const& in, operand<V, Flag> const&... o) const {
    detail::check_vmap_support<Derived>();
    if constexpr (detail::has_own_vmap<Derived>) {
      auto const r = Derived::vmap(vmap_info{to_dims(in.n)[0]}, std::tuple<Flag...>{}, o.value...);
      detail::check_two_returns(r);
      if constexpr (detail::returns_two<std::remove_const_t<decltype(r)>>) return detail::with_batches(std::get<0>(r), std::get<1>(r), in.n);
      else return r; // one message is enough
    } else {
      using M = detail::mapped_function<F, detail::static_batch<I, Flag...>>;
      return custom_function_call<Derived, M>{M{f, {in}}}(o.value...);
    }
  }
  template <class Y, class Z, class... X>
  static constexpr auto same_objects(Y const&, Z const& closed, X const&...) {
    return closed;
  }
};
template <class D, class F>
inline constexpr bool is_hop<custom_function_call<D, F>> = true;

/// How each interpreter takes a custom function. One text for both worlds: a call says what differs.
template <>
struct rules<custom_function_t> {
  template <class I, class Op, class... X>
  static constexpr auto grad(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... t) {
      auto const y = op(t.primal...);
      auto const c = op.context(y, t...);
      return op.results(c, y, op.record(in, c, y, t...), x...);
    }(in.open_tracked(x)...);
  }
  /// Cotangents of all operands, of their shapes and dtypes (AF-11).
  template <class Op, class C, class... X, class... G>
  static constexpr auto pull(Op const& op, C const& ctx, std::tuple<X...> const& x, G const&... g) {
    C mine = ctx;
    auto const r = detail::as_flat_tuple(op.f.backward(mine, g...));
    constexpr bool fits = std::tuple_size_v<std::remove_const_t<decltype(r)>> == sizeof...(X);
    static_assert(fits, "varve: backward of a custom function must return one gradient for each argument of forward (none for those that have none)");
    if constexpr (fits) return tree_map([](auto const& d, auto const& v) { return detail::fitted(d, v); }, r, x);
    else return x; // one message is enough
  }
  template <class I, class Op, class... X>
  static constexpr auto jvp(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... d) {
      auto const y = op(d.primal...);
      auto const c = op.context(y, d...);
      return op.results(c, y, tree_map([&](auto const& v, auto const& dv) { return in.close_dual(in, v, dv); }, y, op.tangent(c, d...)), x...);
    }(in.open_dual(x)...);
  }
  template <class I, class Op, class... X>
  static constexpr auto vmap(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... o) {
      auto const y = op.mapped(in, o...);
      return op.same_objects(y, tree_map([&](auto const& v) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}}); }, y), x...);
    }(in.open_batched(x)...);
  }
  /// A mode is given the call whole.
  template <class I, class Op, class... X>
  static constexpr auto mode(I const& in, Op const& op, X const&... x) {
    return tree_map([&](auto const& v) { return in.close(in, v); }, in.mode->process(op, in.open_plain(x)...));
  }
};

} // namespace varve

// ---- varve/graph/list.hpp
namespace varve {

/// What of `std::vector` the tracer and the planner need, at a fifth of its price in constant expressions: there every call counts, and an element of a
/// vector is made by a chain of six. An index may be any integer.
template <class T>
class list {
public:
  constexpr list() = default;
  constexpr list(std::size_t n, T const& x) { assign(n, x); }
  constexpr list(T const* from, T const* to) {
    reserve(static_cast<std::size_t>(to - from));
    for (; from != to; ++from) push_back(*from);
  }
  constexpr list(list const& o) : list(o.data_, o.data_ + o.size_) {}
  constexpr list(list&& o) noexcept : data_(o.data_), size_(o.size_), room_(o.room_) {
    o.data_ = nullptr;
    o.size_ = o.room_ = 0;
  }
  constexpr list& operator=(list const& o) {
    if (this != &o) {
      clear();
      reserve(o.size_);
      for (T const& x : o) push_back(x);
    }
    return *this;
  }
  constexpr list& operator=(list&& o) noexcept {
    std::swap(data_, o.data_), std::swap(size_, o.size_), std::swap(room_, o.room_);
    return *this;
  }
  constexpr ~list() { release(); }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr T const* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr T const* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr T const* end() const { return data_ + size_; }
  constexpr T& operator[](std::ptrdiff_t k) { return data_[k]; }
  constexpr T const& operator[](std::ptrdiff_t k) const { return data_[k]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T const& back() const { return data_[size_ - 1]; }

  constexpr void push_back(T const& x) {
    if (size_ == room_) {
      T const copy = x; // may lie in this list
      reserve(room_ ? 2 * room_ : 16);
      put(copy);
    } else {
      put(x);
    }
  }
  constexpr void pop_back() {
    --size_;
    if constexpr (!plain) std::destroy_at(data_ + size_);
  }
  constexpr void clear() {
    if constexpr (plain) size_ = 0;
    else while (size_) pop_back();
  }
  constexpr void assign(std::size_t n, T const& x) {
    clear();
    reserve(n);
    while (size_ < n) put(x);
  }
  constexpr void resize(std::size_t n) {
    while (size_ > n) pop_back();
    reserve(n);
    while (size_ < n) put(T());
  }
  constexpr void reserve(std::size_t n) {
    if (n <= room_) return;
    T* p = nullptr;
    if constexpr (plain) p = new T[n]{};
    else p = std::allocator<T>().allocate(n);
    for (std::size_t k = 0; k < size_; ++k) {
      if constexpr (plain) p[k] = data_[k];
      else std::construct_at(p + k, static_cast<T&&>(data_[k]));
    }
    std::size_t const size = size_;
    release();
    data_ = p, size_ = size, room_ = n;
  }

private:
  static constexpr bool plain = std::is_trivially_default_constructible_v<T>; // zeroed memory costs nothing
  T* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;

  constexpr void put(T const& x) {
    if constexpr (plain) data_[size_] = x;
    else std::construct_at(data_ + size_, x);
    ++size_;
  }
  constexpr void release() {
    if constexpr (plain) {
      delete[] data_;
    } else if (data_) {
      clear();
      std::allocator<T>().deallocate(data_, room_);
    }
  }
};

} // namespace varve

// ---- varve/graph/graph.hpp
namespace varve {

/// One operation of a graph. Operands are the node numbers `graph::edges[first .. first + count)`, always smaller than the node's own.
struct node {
  op_handle const* op = nullptr;
  attributes at{};
  meta out{};
  int first = 0;
  int count = 0;
  /// Value of a rank-0 `constant` node, where the elements of another `constant` begin in `graph::constants`, or the number of a `placeholder`.
  double value = 0;
  /// First and last-but-one subgraph of a higher-order node: `graph::regions[regions_first .. + regions_count)`.
  int regions_first = 0;
  int regions_count = 0;
};

/// A function inside a graph: its nodes are contiguous, its placeholders come first. Region 0 is the whole program.
struct region {
  int node_first = 0, node_count = 0;
  int inputs = 0;
  /// Results are the node numbers `graph::results[result_first .. + result_count)`.
  int result_first = 0, result_count = 0;
};

/// Is a node a constant whose elements lie in `graph::constants`?
constexpr bool is_array_constant(node const& n) { return n.op->kind == op_kind::constant && n.out.sizes.n > 0; }

/// Array sizes of a graph.
struct graph_sizes {
  std::size_t nodes, edges, results, regions, constants;
};

/// A graph of either form, to look at: printing, verifying and comparing are written once.
struct graph_view {
  node const* nodes;
  int const* edges;
  int const* results;
  region const* regions;
  double const* constants;
  graph_sizes sizes;

  constexpr node const* begin() const { return nodes; }
  constexpr node const* end() const { return nodes + sizes.nodes; }
  /// Number of the `k`-th operand of a node.
  constexpr int operand(node const& n, int k) const { return edges[n.first + k]; }
};

/// What every form of a graph `G` answers: `for (node const& n : g)`, `g.count(vv::sigmoid)`, `g.operations()`.
template <class G>
struct graph_questions {
  constexpr node const* begin() const { return static_cast<G const&>(*this).view().begin(); }
  constexpr node const* end() const { return static_cast<G const&>(*this).view().end(); }
  /// Number of nodes of an operator, all functions included.
  template <class Op>
  constexpr int count(Op const&) const {
    int n = 0;
    for (node const& nd : *this) n += nd.op == &varve::handle<Op>;
    return n;
  }
  /// Number of nodes that compute something: neither placeholders nor constants.
  constexpr int operations() const {
    int n = 0;
    for (node const& nd : *this) n += nd.op->kind != op_kind::placeholder && nd.op->kind != op_kind::constant;
    return n;
  }
};

/// The one intermediate representation: a list of operations in execution order, with the functions of higher-order operators as further regions.
/// Usable in constant expressions; `static_graph` is the form that outlives them.
struct graph : graph_questions<graph> {
  list<node> nodes;
  list<int> edges;
  list<int> results;
  list<region> regions;
  /// Elements of the constants of rank > 0, row-major, whatever their dtype. Integers beyond 2^53 have no place here and are refused while tracing.
  list<double> constants;

  constexpr graph_view view() const {
    return {nodes.data(), edges.data(), results.data(), regions.data(), constants.data(), {nodes.size(), edges.size(), results.size(), regions.size(), constants.size()}};
  }
  constexpr operator graph_view() const { return view(); }
};

/// A graph of known size: a value of a constant expression that may be kept, printed, asserted on and executed.
template <graph_sizes S>
struct static_graph : graph_questions<static_graph<S>> {
  node nodes[S.nodes ? S.nodes : 1]{};
  int edges[S.edges ? S.edges : 1]{};
  int results[S.results ? S.results : 1]{};
  region regions[S.regions ? S.regions : 1]{};
  double constants[S.constants ? S.constants : 1]{};
  static constexpr graph_sizes sizes = S;

  constexpr static_graph() = default;
  constexpr explicit static_graph(graph const& g) {
    for (std::size_t k = 0; k < S.nodes; ++k) nodes[k] = g.nodes[k];
    for (std::size_t k = 0; k < S.edges; ++k) edges[k] = g.edges[k];
    for (std::size_t k = 0; k < S.results; ++k) results[k] = g.results[k];
    for (std::size_t k = 0; k < S.regions; ++k) regions[k] = g.regions[k];
    for (std::size_t k = 0; k < S.constants; ++k) constants[k] = g.constants[k];
  }
  constexpr graph_view view() const { return {nodes, edges, results, regions, constants, S}; }
  constexpr operator graph_view() const { return view(); }
  /// The same graph in the form that passes work on.
  constexpr graph thaw() const {
    graph g;
    g.nodes = list<node>(nodes, nodes + S.nodes), g.edges = list<int>(edges, edges + S.edges), g.results = list<int>(results, results + S.results);
    g.regions = list<region>(regions, regions + S.regions), g.constants = list<double>(constants, constants + S.constants);
    return g;
  }
};

namespace detail {
template <class Make>
struct frozen_sizes {
  static constexpr graph_sizes compute() {
    graph const g = Make{}();
    return g.view().sizes;
  }
};
} // namespace detail

/// Freezes the graph that `Make{}()` computes: it is computed twice, once for its sizes.
template <class Make>
constexpr auto freeze(Make) {
  if constexpr (!evaluates<detail::frozen_sizes<Make>>) {
    static_assert((detail::frozen_sizes<Make>::compute(), true), "varve: this function cannot be traced"); // the compiler tells why
    return static_graph<graph_sizes{}>{};
  } else {
    constexpr graph_sizes s = detail::frozen_sizes<Make>::compute();
    return static_graph<s>(Make{}());
  }
}

} // namespace varve

// ---- varve/op/factory.hpp
namespace varve {

/// Static values by function templates: `zeros<float, 2, 3>()`, `ones<double, 4>()`, `full<float, 2>(0.5f)`, `arange<double, 6>`; a template-id of
/// `zeros`, `ones` or `arange` also stands for its value where an operator expects one. The run-time forms (`zeros({2, 3})`) stand in `op/create.hpp`.
template <class T, index_t... D>
constexpr array<T, D...> full(T v) {
  array<T, D...> r{};
  for (index_t k = 0; k < r.size(); ++k) r.data[k] = v;
  return r;
}
template <class T, index_t... D>
constexpr array<T, D...> zeros() {
  return full<T, D...>(T(0));
}
template <class T, index_t... D>
constexpr array<T, D...> ones() {
  return full<T, D...>(T(1));
}
/// 0, 1, ..., N - 1.
template <class T, index_t N>
constexpr array<T, N> arange() {
  array<T, N> r{};
  for (index_t k = 0; k < N; ++k) r.data[k] = static_cast<T>(k);
  return r;
}
/// The N x N identity.
template <class T, index_t N>
constexpr array<T, N, N> eye() {
  array<T, N, N> r{};
  for (index_t k = 0; k < N; ++k) r.data[k * N + k] = T(1);
  return r;
}

} // namespace varve

// ---- varve/op/create.hpp
namespace varve {

/// Uninitialized memory; attributes {shape, {dtype}}.
inline constexpr struct empty_t {
  static constexpr auto op_name = "empty";
  template <class = void>
  tensor operator()(dims const& sizes, dtype type = get_default_dtype()) const;
} empty{};
/// Memory filled with a number; attributes {shape, {dtype}}, the number is an operand.
inline constexpr struct full_t {
  static constexpr auto op_name = "full";
} full_op{};
/// 0, 1, ..., n - 1; attributes {{n}, {dtype}}.
inline constexpr struct arange_t {
  static constexpr auto op_name = "arange";
} arange_op{};

namespace detail {
/// Uninitialized memory for a factory, whose sizes come from the user.
inline tensor fresh(dims const& sizes, dtype type) {
  for (index_t n : sizes)
    if (n < 0) refuse::argument_is_invalid("factory", "a size is negative");
  return tensor::empty(sizes, type);
}
struct factory {
  static constexpr auto schema = "(int[] size, ScalarType dtype) -> Tensor";
  static constexpr op_kind kind = op_kind::factory;
  static constexpr int arity = 0;
  static constexpr bool differentiable = false;
  static constexpr meta shape(attributes const& at, meta const*, int) { return {static_cast<dtype>(at[1][0]), at[0]}; }
};
/// Calls a factory through the thread's stack, though no operand brings it there.
template <class Op, class... X>
tensor create(Op const& op, X const&... x) {
  return backend<tensor_base>::call(op, x...);
}
} // namespace detail

template <>
struct rules<empty_t> : detail::factory {
  static tensor make(attributes const& at) { return detail::fresh(at[0], static_cast<dtype>(at[1][0])); }
};
template <>
struct rules<arange_t> : detail::factory {
  static tensor make(attributes const& at) {
    tensor r = detail::fresh(at[0], static_cast<dtype>(at[1][0]));
    on_dtype(r.dtype(), "arange", [&]<class T>() {
      for (index_t k = 0; k < r.numel(); ++k) static_cast<T*>(r.raw())[k] = static_cast<T>(k);
    });
    return r;
  }
};
template <>
struct rules<full_t> : rule::linear {
  static constexpr auto schema = "(int[] size, Scalar fill_value, ScalarType dtype) -> Tensor";
  static constexpr op_kind kind = op_kind::factory;
  static constexpr meta shape(attributes const& at, meta const*, int) { return {static_cast<dtype>(at[1][0]), at[0]}; }
  /// Static values, made by a `scope`.
  static constexpr void compute(attributes const&, auto const& out, auto const& v) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = static_cast<std::remove_cvref_t<decltype(out.data[k])>>(v.data[0]);
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& v) {
    T r = detail::fresh(at[0], static_cast<dtype>(at[1][0]));
    on_dtype(r.dtype(), "full", [&]<class E>() {
      E const e = v.template item<E>();
      for (index_t k = 0; k < r.numel(); ++k) static_cast<E*>(r.raw())[k] = e;
    });
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return to(sum(g), type_fact(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const& n, O const& o) {
    return expand(to(align(o, dims{op.a.n}), op.b), on_dims(detail::prepend, op.a, n));
  }
};

template <class>
tensor empty_t::operator()(dims const& sizes, dtype type) const { return detail::create(bind<empty_t>(sizes, dims{static_cast<index_t>(type)})); }
/// A tensor filled with a number (`torch.full`; the dtype follows the number: float32, int64 or bool).
template <number N>
tensor full(dims const& sizes, N v, dtype type = std::is_same_v<N, bool> ? dtype::bool_ : std::is_integral_v<N> ? dtype::int64 : get_default_dtype()) {
  return detail::create(bind<full_t>(sizes, dims{static_cast<index_t>(type)}), v);
}
/// A tensor of zeros. (These are templates only to cost nothing unless used.)
template <class = void>
tensor zeros(dims const& sizes, dtype type = get_default_dtype()) { return full(sizes, 0, type); }
/// A tensor of ones.
template <class = void>
tensor ones(dims const& sizes, dtype type = get_default_dtype()) { return full(sizes, 1, type); }
/// 0, 1, ..., n - 1.
template <class = void>
tensor arange(index_t n, dtype type = dtype::int64) { return detail::create(bind<arange_t>(dims{n}, dims{static_cast<index_t>(type)})); }
/// The n x n identity.
template <class T = tensor>
T eye(index_t n, dtype type = get_default_dtype()) {
  T const i = arange(n);
  return to(eq(reshape(i, dims{n, 1}), i), type);
}

template <class>
tensor backend<detail::tensor_base>::arange(tensor const&, dims const& n) { return varve::arange(n[0]); }
template <class S, class T, number N>
tensor backend<detail::tensor_base>::full(S const& sizes, T const& type, N v) {
  return varve::full(to_dims(sizes), v, static_cast<dtype>(to_dims(type)[0]));
}

} // namespace varve

// ---- varve/graph/interpret.hpp
namespace varve {

namespace detail {
/// Runs one region; every operator goes through the thread's stack, so transforms and modes see it.
template <class T = tensor>
boxed_args run_region(graph const& g, int r, boxed_args const& in) {
  region const& f = g.regions[static_cast<std::size_t>(r)];
  if (in.size() != f.inputs) refuse::shapes_do_not_match("graph (number of arguments)", dims{in.size()}, dims{f.inputs});
  std::vector<boxed_args> values(static_cast<std::size_t>(f.node_count));
  auto at = [&](int n) -> boxed_args& { return values[static_cast<std::size_t>(n - f.node_first)]; };
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    boxed_args x;
    for (int k = 0; k < nd.count; ++k) x.push_back(at(g.edges[static_cast<std::size_t>(nd.first + k)])[0]);
    if (nd.op->kind == op_kind::placeholder) {
      tensor const& v = in[static_cast<int>(nd.value)];
      for (int k = 0; k < nd.out.sizes.n || k == 0; ++k)
        if (v.dim() != nd.out.sizes.n || (k < v.dim() && !is_symbol(nd.out.sizes[k]) && v.sizes()[k] != nd.out.sizes[k])) refuse::shapes_do_not_match("graph (argument)", v.sizes(), nd.out.sizes);
      at(n).push_back(v);
    } else if (is_array_constant(nd)) {
      T const c = T::empty(nd.out.sizes, nd.out.type);
      double const* const from = g.constants.data() + static_cast<std::ptrdiff_t>(nd.value);
      on_dtype(c.dtype(), "graph", [&]<class E>() {
        for (index_t e = 0; e < c.numel(); ++e) static_cast<E*>(c.raw())[e] = static_cast<E>(from[e]);
      });
      at(n).push_back(c);
    } else if (nd.op->kind == op_kind::constant) {
      T c = varve::full(dims{}, nd.value, nd.out.type);
      if (!c.is_wrapped()) c.mark_number(); // like the plain number it was written as
      at(n).push_back(c);
    } else if (nd.regions_count) {
      higher_order_operator* const hop = higher_order_operator::find(nd.op->name);
      if (!hop) throw missing_rule((std::string("varve: graph: there is no higher-order operator ") + nd.op->name).c_str());
      std::vector<boxed_function> functions;
      for (int k = 0; k < nd.regions_count; ++k) functions.push_back([&g, region = nd.regions_first + k](boxed_args const& a) { return run_region<T>(g, region, a); });
      at(n) = (*hop)(std::move(functions), x, nd.at);
    } else if (std::strcmp(nd.op->name, "getitem") == 0) {
      at(n).push_back(at(g.edges[static_cast<std::size_t>(nd.first)])[static_cast<int>(nd.at[0][0])]);
    } else {
      op_table const* table = ops::find(nd.op->name);
      if (!table)
        throw missing_rule((std::string("varve: graph: operator ") + nd.op->name + " is not known for tensors; call it on a tensor anywhere in the program").c_str());
      at(n).push_back(boxed_op{table, &nd.at}(x));
    }
  }
  boxed_args y;
  for (int k = 0; k < f.result_count; ++k) y.push_back(at(g.results[static_cast<std::size_t>(f.result_first + k)])[0]);
  return y;
}
} // namespace detail

/// Runs a graph on tensors, operator by operator. Shapes are checked at entry (`shape_error`); symbolic sizes admit any.
template <class T = tensor>
boxed_args interpret(graph const& g, boxed_args const& arguments) {
  return detail::run_region<T>(g, 0, arguments);
}

} // namespace varve

// ---- varve/graph/builder.hpp
namespace varve {

namespace detail {
/// The operators that only graphs have.
constexpr meta no_shape(attributes const&, meta const*, int) { return {}; }
} // namespace detail
inline constexpr op_handle placeholder_handle{"placeholder", op_kind::placeholder, 0, &detail::no_shape};
inline constexpr op_handle constant_handle{"constant", op_kind::constant, 0, &detail::no_shape};

/// One of several results of a higher-order node; attribute {k}.
inline constexpr op_handle getitem_handle{"getitem", op_kind::hop, 1, &detail::no_shape};

namespace detail {
/// Copies the elements of an array constant of `from` into `into`, where `n` finds them from now on.
constexpr void take_constants(graph& into, graph const& from, node& n) {
  auto const first = static_cast<std::ptrdiff_t>(n.value);
  n.value = static_cast<double>(into.constants.size());
  for (index_t e = 0; e < numel(n.out.sizes); ++e) into.constants.push_back(from.constants[first + e]);
}
/// Appends regions [from, to) of `g` with their nodes. Region k >= 1 of `g` gets the number `rest + k - 1`; rest 0 keeps all numbers.
constexpr void append(graph& into, graph const& g, int from, int to, int rest) {
  for (int r = from; r < to; ++r) {
    region g_r = g.regions[static_cast<std::size_t>(r)];
    int const shift = static_cast<int>(into.nodes.size()) - g_r.node_first;
    for (int n = g_r.node_first; n < g_r.node_first + g_r.node_count; ++n) {
      node nd = g.nodes[static_cast<std::size_t>(n)];
      int const edge = static_cast<int>(into.edges.size());
      for (int k = 0; k < nd.count; ++k) into.edges.push_back(g.edges[static_cast<std::size_t>(nd.first + k)] + shift);
      nd.first = edge;
      if (is_array_constant(nd)) take_constants(into, g, nd);
      if (nd.regions_count && rest > 0) nd.regions_first = rest + nd.regions_first - 1;
      into.nodes.push_back(nd);
    }
    int const result = static_cast<int>(into.results.size());
    for (int k = 0; k < g_r.result_count; ++k) into.results.push_back(g.results[static_cast<std::size_t>(g_r.result_first + k)] + shift);
    g_r.node_first += shift;
    g_r.result_first = result;
    into.regions.push_back(g_r);
  }
}
} // namespace detail

/// Writes one function of a graph while it is traced. Builders of the functions inside higher-order operators form a stack; a value of an outer function used in an inner one
/// becomes an extra input of it, once (lifting, SL-3, SL-4).
class graph_builder {
public:
  constexpr explicit graph_builder(graph_builder* outer = nullptr) : outer_(outer), root_(outer ? outer->root_ : this) { root_->current_ = this; }
  graph_builder(graph_builder const&) = delete;
  graph_builder& operator=(graph_builder const&) = delete;
  constexpr ~graph_builder() { root_->current_ = outer_; }

  /// The function being traced now.
  constexpr graph_builder& current() { return *root_->current_; }

  constexpr int input(meta const& m) {
    node n;
    n.op = &placeholder_handle;
    n.out = m;
    n.out.number = false;
    n.value = static_cast<double>(inputs_);
    ++inputs_;
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int constant(dtype type, double v) {
    node n;
    n.op = &constant_handle;
    n.out = {type, {}};
    n.value = v;
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  /// A constant of rank > 0 with these elements.
  template <class T>
  constexpr int constant(dtype type, dims const& sizes, T const* elements) {
    node n;
    n.op = &constant_handle;
    n.out = {type, sizes};
    n.value = static_cast<double>(constants_.size());
    for (index_t e = 0; e < numel(sizes); ++e) constants_.push_back(static_cast<double>(elements[e]));
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int emit(op_handle const* op, attributes const& at, int const* operands, int count, meta const& out) {
    node n;
    n.op = op;
    n.at = at;
    n.out = out;
    n.out.number = false;
    n.first = static_cast<int>(edges_.size());
    n.count = count;
    for (int k = 0; k < count; ++k) edges_.push_back(operands[k]);
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  /// The number here of a node of an outer function: an extra input, made once.
  constexpr int lift(graph_builder const* owner, int id, meta const& m) {
    if (owner == this) return id;
    if (!outer_) refuse::argument_is_invalid("trace", "a value of another trace was used; pass it as an argument");
    int const outer_id = outer_->lift(owner, id, m);
    for (std::size_t k = 0; k < lifted_.size(); k += 2)
      if (lifted_[k] == outer_id) return lifted_[k + 1];
    int const mine = input(m);
    lifted_.push_back(outer_id);
    lifted_.push_back(mine);
    return mine;
  }
  constexpr void result(int id) { results_.push_back(id); }
  /// Ends the tracing of an inner function: further operators belong to the function around it.
  constexpr void close() { root_->current_ = outer_; }

  /// Writes a node with inner functions (closed builders, one or two). What they lifted becomes further operands, the union in order of first use. Results are as those of the first.
  constexpr int emit_functions(op_handle const* op, attributes const& at, int const* operands, int count, graph_builder& a, graph_builder* b = nullptr) {
    list<int> all(operands, operands + count), lifted;
    int const functions = b ? 2 : 1;
    graph_builder* const inner[] = {&a, b};
    for (int q = 0; q < functions; ++q)
      for (std::size_t k = 0; k < inner[q]->lifted_.size(); k += 2) {
        bool known = false;
        for (int id : lifted) known = known || id == inner[q]->lifted_[k];
        if (!known) lifted.push_back(inner[q]->lifted_[k]);
      }
    for (int id : lifted) all.push_back(id);
    for (int q = 0; q < functions; ++q) inner[q]->take_inputs(lifted, *this);
    graph const ga = a.finish();
    int const first = 1 + static_cast<int>(inner_.regions.size()), rest = first + functions, inside_a = static_cast<int>(ga.regions.size());
    detail::append(inner_, ga, 0, 1, rest);
    if (b) { // a named graph: g++ 12 loses temporaries that hold storage
      graph const gb = b->finish();
      int const rest_of_b = rest + inside_a - 1;
      detail::append(inner_, gb, 0, 1, rest_of_b);
      detail::append(inner_, ga, 1, inside_a, rest);
      detail::append(inner_, gb, 1, static_cast<int>(gb.regions.size()), rest_of_b);
    } else {
      detail::append(inner_, ga, 1, inside_a, rest);
    }
    meta const out = ga.results.empty() ? meta{} : ga.nodes[static_cast<std::size_t>(ga.results[0])].out;
    int const id = emit(op, at, all.data(), static_cast<int>(all.size()), out);
    nodes_[static_cast<std::size_t>(id)].regions_first = first;
    nodes_[static_cast<std::size_t>(id)].regions_count = functions;
    several_ = static_cast<int>(ga.results.size());
    return id;
  }
  /// The k-th result of a node just written by `emit_functions`.
  constexpr int result_of(int id, int k, meta const& m) {
    if (several_ == 1) return id;
    return emit(&getitem_handle, attributes(dims{k}), &id, 1, m);
  }

  /// The finished function with its inner functions behind it.
  constexpr graph finish() const {
    graph g;
    g.nodes = nodes_;
    g.edges = edges_;
    g.results = results_;
    g.constants = constants_;
    g.regions.push_back({0, static_cast<int>(nodes_.size()), inputs_, 0, static_cast<int>(results_.size())});
    detail::append(g, inner_, 0, static_cast<int>(inner_.regions.size()), 0);
    return g;
  }

private:
  graph_builder* outer_;
  graph_builder* root_;
  graph_builder* current_ = nullptr; // of the root: the innermost open function
  /// Gives the function one input per lifted value of `outer`, in that order behind its arguments, and puts all inputs before the operators.
  constexpr void take_inputs(list<int> const& lifted, graph_builder const& outer) {
    int const arguments = inputs_ - static_cast<int>(lifted_.size() / 2);
    for (std::size_t u = 0; u < lifted.size(); ++u) {
      int mine = -1;
      for (std::size_t k = 0; k < lifted_.size(); k += 2)
        if (lifted_[k] == lifted[u]) mine = lifted_[k + 1];
      if (mine < 0) mine = input(outer.nodes_[static_cast<std::size_t>(lifted[u])].out);
      nodes_[static_cast<std::size_t>(mine)].value = static_cast<double>(arguments + static_cast<int>(u));
    }
    list<node> sorted;
    list<int> now(nodes_.size(), 0);
    for (int k = 0; k < inputs_; ++k)
      for (std::size_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n].op == &placeholder_handle && static_cast<int>(nodes_[n].value) == k) {
          now[n] = static_cast<int>(sorted.size());
          sorted.push_back(nodes_[n]);
        }
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (nodes_[n].op != &placeholder_handle) {
        now[n] = static_cast<int>(sorted.size());
        sorted.push_back(nodes_[n]);
      }
    for (int& e : edges_) e = now[static_cast<std::size_t>(e)];
    for (int& r : results_) r = now[static_cast<std::size_t>(r)];
    nodes_ = sorted;
  }

  int inputs_ = 0, several_ = 1;
  graph inner_; // finished inner functions; their regions are numbered as in the finished graph
  list<node> nodes_;
  list<int> edges_, results_, lifted_;
  list<double> constants_;
};

} // namespace varve

// ---- varve/interpreter/interpreter.hpp
namespace varve {

/// One layer of this thread's dynamic stack, as rules and users see it (FS-14): what a rule registered for a transform is given. It borrows the layer, which lives as
/// long as its transform runs.
class interpreter {
public:
  explicit interpreter(layer& l) : layer_(&l) {}

  /// "grad", "jvp", "vmap", "trace".
  char const* kind() const { return layer_->kind; }
  /// Position in the stack, from 1; inner transforms have higher levels.
  int level() const { return layer_->level; }
  /// Size of the mapped dimension and policy for random operators; of `vmap` only.
  index_t batch_size() const { return layer_->batch_size; }
  random_policy randomness() const { return layer_->random; }
  /// The keys that implement it: kernels that a `library` registered there see the calls it processes, others between `transform` and `transform_back` do not, but those at
  /// autocast (FS-3). A static interpreter says the same as `grad_interpreter<Lv>::keys`.
  dispatch_key_set keys() const { return layer_->keys; }
  /// The state that decides what calls mean: kind, level, batch size, policy (FS-18).
  friend bool operator==(interpreter const& a, interpreter const& b) {
    return std::strcmp(a.kind(), b.kind()) == 0 && a.level() == b.level() && a.batch_size() == b.batch_size() && a.randomness() == b.randomness();
  }

  /// Runs `body` with this layer off the stack and the keys of the thread as at the call (FS-4), on every exit put back: calls in it go to the next interpreter. The layer must be
  /// the top one.
  template <class F>
  auto lower(F const& body) const {
    layer const* const top = this_thread_state.transforms.top;
    if (!top || top->id != layer_->id) throw transform_error((std::string("varve: interpreter ") + kind() + " is not the innermost one; only that can be lowered").c_str());
    lowered const off;
    return body();
  }
  /// Hands a call to this interpreter's own rules: what happens when nothing is registered for the operator.
  tensor process(boxed_op const& op, boxed_args const& x) const {
    return lower([&] { return layer_->process(*layer_, op, x); });
  }

  /// Is a value seen through this layer: mapped, tracked, with a tangent?
  bool owns(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == layer_->id; }
  /// The value inside. Under `vmap` a mapped value has its mapped dimension in front.
  tensor unwrap(tensor const& t) const { return owns(t) ? tensor(t.inner()) : t; }
  boxed_args unwrap(boxed_args const& x) const {
    boxed_args r;
    for (auto const& t : x) r.push_back(unwrap(t));
    return r;
  }
  /// `vmap`: a value whose dimension 0 is the mapped one, as the mapped function sees it.
  tensor wrap(tensor const& y) const {
    dims logical = y.sizes();
    return tensor::wrap(y, layer_->id, layer_->level, {}, {}, logical.erase(0));
  }
  /// `jvp`: the tangent of a value, undefined where it has none; and a value with a tangent.
  tensor tangent(tensor const& t) const { return owns(t) ? tensor(fresh(t).extra()) : tensor(); }
  tensor wrap(tensor const& y, tensor const& tangent) const { return tangent.defined() ? tensor::wrap(y, layer_->id, layer_->level, tangent, {}, y.sizes()) : y; }
  /// `grad`: records y as a function of operands: `pullback(g)` gives the cotangent of each, undefined where there is none. Operands this layer does not track are
  /// not asked for; without any that it tracks, y comes back as it is.
  template <class F>
  tensor record(tensor const& y, boxed_args const& operands, F pullback) const;

private:
  tensor const& fresh(tensor const& t) const { return t.base().defined() ? static_cast<dynamic_level const*>(layer_->object)->fresh(t) : t; }
  layer* layer_;
};

template <class F>
tensor interpreter::record(tensor const& y, boxed_args const& operands, F pullback) const {
  if (!layer_->records || !layer_->object) throw transform_error((std::string("varve: interpreter ") + kind() + " records no gradients; record is for rules of grad").c_str());
  std::vector<edge> edges;
  bool any = false;
  for (auto const& t : operands) {
    edges.push_back(owns(t) ? fresh(t).history() : edge());
    any = any || edges.back();
  }
  if (!any || !layer_->grad_mode || !is_floating(y.dtype())) return y;
  int const count = static_cast<int>(edges.size());
  auto pull = [pullback = std::move(pullback), count](boxed_args const& g, bool const*) -> boxed_args {
    if (!g[0].defined()) return {};
    auto r = pullback(static_cast<tensor const&>(g[0]));
    if (r.size() != count) throw transform_error(("varve: a pullback gave " + std::to_string(r.size()) + " cotangents for " + std::to_string(count) + " operands").c_str());
    return r;
  };
  return tensor::wrap(y, layer_->id, layer_->level, {}, detail::edge_to(detail::record_function(std::move(pull), std::move(edges), 1, "CustomBackward")), y.sizes());
}

/// The interpreters of this thread's dynamic layer stack, outermost first; empty outside transforms.
template <class I = interpreter> // a template only to cost nothing unless used
std::vector<I> dynamic_layer_stack() {
  std::vector<I> r;
  for (layer* l = this_thread_state.transforms.top; l; l = l->below) r.insert(r.begin(), I(*l));
  return r;
}

/// Takes the innermost `count` transforms of this thread away for the life of the object; they come back in their order (FS-20).
class temporarily_popped {
public:
  explicit temporarily_popped(int count) : saved_(this_thread_state.transforms.top) {
    layer* l = saved_;
    for (int k = 0; k < count; ++k) {
      if (!l) throw transform_error("varve: fewer transforms are at work than are to be popped");
      l = l->below;
    }
    detail::set_top(this_thread_state.transforms, l);
  }
  temporarily_popped(temporarily_popped const&) = delete;
  temporarily_popped& operator=(temporarily_popped const&) = delete;
  ~temporarily_popped() { detail::set_top(this_thread_state.transforms, saved_); }

private:
  layer* saved_;
};

} // namespace varve

// ---- varve/graph/make_fx.hpp
namespace varve {

/// Tracing as a run-time interpreter: every operator is run on the real values and written to the graph. The counterpart of calling operators on proxies; both write by
/// the same `graph_builder`.
struct trace_layer : layer {
  graph_builder builder;
  trace_layer* outer = nullptr;
  /// Where tensors that the function captures are collected: they become inputs behind its arguments. Null: they are refused.
  boxed_args* captures = nullptr;
  /// Layers directly below that see nothing of what the function computes; they stay on the stack, so that values of theirs that it captures are known as such.
  int hidden = 0;

  /// Operators none of whose operands is traced run, and are not written down: their results are constants (captures) of the graph.
  bool folds = false;

  /// The trace of a function inside another traced one, whose values it lifts to inputs.
  explicit trace_layer(trace_layer& around) : trace_layer(&around.builder) {
    outer = &around;
    hidden = around.hidden + 1;
  }
  trace_layer() : trace_layer(static_cast<graph_builder*>(nullptr)) {}
  explicit trace_layer(graph_builder* around) : builder(around) {
    kind = "trace";
    pushed::name(*this, this_thread_state.transforms);
    object = this;
    records = true;
    process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor { return static_cast<trace_layer&>(l).record(op, x); };
  }
  /// A value of the trace: the real tensor with its node number.
  tensor wrap(tensor const& v, int node) const { return tensor::wrap(v, id, level, tensor::from_number(static_cast<std::int64_t>(node)), {}, v.sizes()); }
  int node_of(tensor const& t) {
    if (t.is_wrapped() && t.layer() == id) return static_cast<int>(t.extra().item<std::int64_t>());
    if (t.is_number()) return builder.constant(t.dtype(), t.item<double>());
    if (outer) return builder.lift(&outer->builder, outer->node_of(t), {t.dtype(), t.sizes()});
    if (!captures) refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
    for (std::size_t k = 0; k < captured_.size(); k += 2)
      if ((*captures)[captured_[k]].is(t)) return captured_[k + 1];
    int at = 0;
    while (at < captures->size() && !(*captures)[at].is(t)) ++at;
    if (at == captures->size()) captures->push_back(t);
    captured_.push_back(at);
    captured_.push_back(builder.input({t.dtype(), t.sizes()}));
    return captured_.back();
  }
  /// The real tensor behind a value of this trace or one around it.
  tensor real(tensor const& t) const {
    for (trace_layer const* l = this; l; l = l->outer)
      if (t.is_wrapped() && t.layer() == l->id) return t.inner();
    return t;
  }
  /// Writes a higher-order operator with two functions: each is traced into a region of its own, on the real operands.
  template <class = void>
  boxed_args record_branches(op_handle const* handle, boxed_args const& x, std::vector<boxed_function> const& functions) {
    std::vector<int> ids;
    for (auto const& t : x) ids.push_back(node_of(t));
    std::vector<boxed_args> values;
    auto const trace_into = [&](trace_layer& l, std::size_t k) {
      pushed const on(this_thread_state.transforms, l);
      boxed_args in;
      for (int i = 1; i < x.size(); ++i) in.push_back(l.wrap(real(x[i]), l.builder.input({x[i].dtype(), x[i].sizes()})));
      boxed_args const y = functions[k](in);
      values.emplace_back();
      for (auto const& t : y) {
        l.builder.result(l.node_of(t));
        values.back().push_back(l.real(t));
      }
      l.builder.close();
    };
    trace_layer on_true(*this);
    trace_into(on_true, 0);
    trace_layer on_false(*this);
    trace_into(on_false, 1);
    bool const first = static_cast<bool>(real(x[0]));
    int const node = builder.emit_functions(handle, {}, ids.data(), static_cast<int>(ids.size()), on_true.builder, &on_false.builder);
    boxed_args r;
    for (int k = 0; k < values[0].size(); ++k) {
      tensor const& v = values[first ? 0 : 1][k];
      r.push_back(wrap(v, builder.result_of(node, k, {v.dtype(), v.sizes()})));
    }
    return r;
  }

  /// Indices in `captures` of the inputs behind the arguments, in their order.
  std::vector<int> captured() const {
    std::vector<int> r;
    for (std::size_t k = 0; k < captured_.size(); k += 2) r.push_back(captured_[k]);
    return r;
  }

private:
  std::vector<int> captured_; // pairs of an index in `captures` and its node
  tensor record(boxed_op const& op, boxed_args const& x) {
    if (folds) {
      bool traced = false;
      for (auto const& t : x) traced = traced || (t.defined() && t.is_wrapped() && t.layer() == id);
      if (!traced) {
        temporarily_popped const off(hidden);
        return op(x);
      }
    }
    boxed_args inner;
    std::vector<int> ids;
    for (auto const& t : x) {
      ids.push_back(node_of(t));
      inner.push_back(real(t));
    }
    temporarily_popped const off(hidden);
    tensor const y = op(inner);
    return wrap(y, builder.emit(op.table->handle(), *op.at, ids.data(), static_cast<int>(ids.size()), {y.dtype(), y.sizes()}));
  }
};

/// `make_fx(f)(x...)`: the graph of f at the dtypes and shapes of some tensors, traced at run time below whatever transforms f applies (MX-1, "real" mode).
/// Branches of C++ control flow taken by these values are what the graph holds. Run it by `interpret`.
template <class F>
struct make_fx_function {
  [[no_unique_address]] F f;
  template <class... X>
  graph operator()(X const&... x) const {
    trace_layer l;
    std::tuple const in{l.wrap(x, l.builder.input({x.dtype(), x.sizes()}))...}; // braces: in order
    auto const y = [&] {
      pushed const on(this_thread_state.transforms, l);
      return detail::call_with(f, in);
    }();
    tree_for_each([&](auto const& v) { l.builder.result(l.node_of(v)); }, y);
    return l.builder.finish();
  }
};
template <class F>
constexpr auto make_fx(F f) {
  return make_fx_function<F>{f};
}

} // namespace varve

// ---- varve/hop/boxed_inner_function.hpp
/// @file
/// The functions of higher-order operators on tensors, as run-time interpreters hand them down, and the recording of such calls.
namespace varve {

namespace detail {
/// Runs a function on duals: (primals..., tangents...) to the same of its results. The layer is put back around what runs, so that what it captures of it is alive.
struct boxed_dual_fn {
  layer* self;
  boxed_function f;
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    int const n = x.size() / 2;
    boxed_dual const d = in.open_dual(f(tree_map([&](tensor const& p, tensor const& t) { return in.close_dual(in, p, t); }, part(x, 0, n), part(x, n, 2 * n))));
    lowered const off;
    return joined(d.primal, full(d));
  }
  /// Tangents, zeros where there are none.
  template <class D>
  static boxed_args full(D const& d) {
    return tree_map([](auto const& p, auto const& t) { return t.defined() ? t : tensor(zeros_like(p)); }, d.primal, d.tangent);
  }
};
/// Runs a function on operands some of which are mapped; every result comes out mapped.
struct boxed_batched_fn {
  layer* self;
  boxed_function f;
  std::vector<bool> mapped; // which operands are
  template <class P>
  P operator()(P const& x) const {
    reentered const on(this_thread_state.transforms, *self);
    auto const& in = *static_cast<dynamic_level*>(self->object);
    P closed;
    for (int k = 0; k < x.size(); ++k) closed.push_back(in.close_batched(in, operand<tensor, bool>{x[k], mapped[static_cast<std::size_t>(k)]}));
    P const y = f(closed);
    lowered const off;
    P r;
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (auto const& t : y) r.push_back(materialize(in.mine(t) ? operand<T, bool>{t.inner(), true} : operand<T, bool>{t, false}, dims{self->batch_size}));
    return r;
  }
};
/// (operands, cotangents of the results, of which those of floating ones are read) to the cotangents of the operands, by running the function again in reverse mode.
struct boxed_pull_fn {
  boxed_function f;
  int operands;
  template <class P>
  P operator()(P const& x) const {
    dynamic_reverse_scope<> scope;
    P const in = tree_map([&](tensor const& t) { return is_floating(t.dtype()) ? scope.track(t) : t; }, part(x, 0, operands));
    P const y = scope.run([&] { return f(in); });
    boxed_args floating, g;
    for (int k = 0; k < y.size(); ++k) {
      if (!is_floating(y[k].dtype())) continue;
      floating.push_back(y[k]);
      g.push_back(x[operands + k]);
    }
    scope.backward(floating, g);
    return tree_map([&](auto const& t, auto const& v) { return is_floating(t.dtype()) ? scope.gradient(t) : tensor(zeros_like(v)); }, in, part(x, 0, operands));
  }
};
/// A function as a graph, traced on the operands below the layer that is at work: it keeps nothing of the user's closure, which may be gone when the gradient is taken.
/// What the function captures joins `captures`, which stand behind the operands of the graph's function.
/// `hidden` layers see nothing of it.
template <class = void>
boxed_function traced(boxed_function const& f, boxed_args const& x, boxed_args& captures, int hidden = 1) {
  trace_layer l;
  l.captures = &captures;
  l.hidden = hidden;
  boxed_args in;
  for (auto const& t : x) in.push_back(l.wrap(t, l.builder.input({t.dtype(), t.sizes()})));
  pushed const on(this_thread_state.transforms, l);
  for (auto const& t : f(in)) l.builder.result(l.node_of(t));
  return [g = l.builder.finish(), order = l.captured(), n = x.size()](boxed_args const& all) {
    boxed_args a = part(all, 0, n);
    for (int k : order) a.push_back(all[n + k]);
    return interpret(g, a);
  };
}

/// The pullback of a recorded call: the cotangents of all operands at once (HO-12).
template <class Op, class T = tensor>
struct boxed_hop_pull {
  Op op;
  boxed_args pred, y, operands;

  boxed_args operator()(boxed_args const& out, bool const*) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < y.size(); ++k) {
      any = any || out[k].defined();
      g.push_back(out[k].defined() ? T(out[k]) : T(zeros_like(static_cast<T const&>(y[k]))));
    }
    if (!any) return {};
    return [&](auto const& o) -> boxed_args { return rules<typename Op::tag>::pull(o, pred, operands, g); }(op); // no return type to be deduced here
  }
  void release() { pred = y = operands = boxed_args(); }
  static constexpr bool released = true; // its values are freed
};
/// A run-time `grad` that records such calls.
template <class = void>
struct recording_level : dynamic_level {
  template <class I, class Op, class Y> // not boxed_args const& y: compilers instantiate what does not depend on a parameter, used or not
  boxed_args record_hop(I const&, Op op, Y const& y, boxed_args const& p, boxed_tracked const& t) const {
    if (!t.any || !records()) return y;
    std::vector<edge> edges;
    for (auto const& x : *t.of) edges.push_back(mine(x) ? x.history() : edge());
    op.self = nullptr; // the pull runs when the layer is gone
    edge const n = edge_to(record_function(boxed_hop_pull<Op>{op, p, y, t.primal}, std::move(edges), y.size(), Op::backward_name));
    std::uint32_t k = 0;
    return tree_map([&](tensor const& v) { edge const e(n.to(), k++); return is_floating(v.dtype()) ? tracked_value(v, e) : v; }, y);
  }
};
/// The leaves of a tree as operands.
template <class Y>
boxed_args flatten(Y const& y) {
  boxed_args r;
  tree_for_each([&](auto const& v) { r.push_back(as_tensor(plain(v))); }, y);
  return r;
}
} // namespace detail

} // namespace varve

// ---- varve/graph/proxy.hpp
namespace varve {

/// The value of a trace: a node of the graph being written, with dtype and shape as data, so that one tracer serves all shapes. Without a builder it is a
/// constant whose elements all equal `splat`.
struct proxy {
  graph_builder* builder = nullptr;
  int id = -1;
  meta info{};
  double splat = 0;
  /// The trace that a constant was made in, when it was made like one of its values.
  graph_builder* home = nullptr;

  constexpr void made_like(proxy const& p) { home = p.builder ? p.builder : p.home; }
  constexpr explicit operator bool() const {
    if (id >= -1) a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop();
    return false;
  }

private:
  /// Not usable in a constant expression: the compiler prints its name.
  static void a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop() {
    throw transform_error("varve: a traced value cannot steer C++ control flow; use where, cond or while_loop");
  }
};

template <>
struct traits<proxy> {
  using base = proxy;
  static constexpr int level = 0;
  static constexpr dims shape(proxy const& p) { return p.info.sizes; }
  static constexpr dims type(proxy const& p) { return dims{static_cast<index_t>(p.info.type)}; }
};
template <>
inline constexpr bool is_proxy_base<proxy> = true;
constexpr meta meta_of(proxy const& p) { return p.info; }

namespace detail {
/// Where a constant beside this value belongs: the function being traced now; null when nothing tells.
constexpr graph_builder* trace_of(proxy const& p) {
  graph_builder* const b = p.builder ? p.builder : p.home;
  return b ? &b->current() : nullptr;
}
template <class V>
constexpr graph_builder* trace_of(V const& v) {
  if constexpr (is_seen<V> && is_proxy_base<base_of<V>>) return trace_of(v.value);
  else return nullptr;
}
/// The first trace that some values tell of.
template <class... X>
constexpr graph_builder* trace_of_all(X const&... x) {
  graph_builder* found = nullptr;
  ((found = found ? found : trace_of(x)), ...);
  return found;
}

/// A value as one of the trace. An array whose elements are equal stays a constant that operators on constants compute with; 0, 1, ..., n - 1 becomes an `arange`, other
/// elements a constant, in the function `b`.
constexpr proxy as_proxy(proxy const& p, graph_builder* = nullptr) { return p; }
template <number T>
constexpr proxy as_proxy(T v, graph_builder* b = nullptr) {
  return {nullptr, -1, {dtype_of_type<T>(), {}, true}, static_cast<double>(v), b};
}
/// The very bits: 0 and -0 differ.
template <class T>
constexpr bool same_element(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::bit_cast<std::uint64_t>(static_cast<double>(a)) == std::bit_cast<std::uint64_t>(static_cast<double>(b));
  else return a == b;
}
template <class T, index_t... D>
constexpr proxy as_proxy(array<T, D...> const& a, graph_builder* b = nullptr) {
  meta const m{dtype_of_type<T>(), ints<D...>::to_dims(), false};
  bool equal = true, counts = sizeof...(D) == 1;
  for (index_t k = 0; k < a.size() && (equal || counts); ++k) equal = equal && same_element(a[k], a[0]), counts = counts && same_element(a[k], static_cast<T>(k));
  if (equal) return {nullptr, -1, m, static_cast<double>(a.size() ? a[0] : T(0)), b};
  if (!b) refuse::argument_is_invalid("trace", "an array constant meets no value of the trace; pass it as an argument");
  if (counts) return {b, b->emit(&handle<arange_t>, attributes(m.sizes, dims{static_cast<index_t>(m.type)}), nullptr, 0, m), m, 0};
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    for (index_t k = 0; k < a.size(); ++k)
      if (a[k] > T(1) << 53 || a[k] < -(T(1) << 53)) refuse::argument_is_invalid("trace", "an integer beyond 2^53 in an array constant cannot be traced; pass the array as an argument");
  return {b, b->constant(m.type, m.sizes, a.data), m, 0};
}

/// The node number of a value in the function being traced; constants are written out on first use.
constexpr int node_in(graph_builder& b, proxy const& p) {
  if (p.builder) return b.lift(p.builder, p.id, p.info);
  int c = b.constant(p.info.type, p.splat);
  if (p.info.sizes.n == 0) return c;
  return b.emit(&handle<expand_t>, attributes(p.info.sizes), &c, 1, p.info);
}
} // namespace detail

/// Traced values: every operator becomes a node of the function being traced; operators on constants alone are computed.
template <>
struct backend<detail::traced_base> {
  template <class Op, class... X>
  static constexpr proxy call(Op const& op, X const&... x) {
    graph_builder* near = nullptr;
    if constexpr ((is_array<X> || ...)) near = detail::trace_of_all(x...);
    proxy in[] = {detail::as_proxy(x, near)..., proxy{}};
    return emit<typename Op::tag>(op.boxed(), in, static_cast<int>(sizeof...(X)));
  }
  template <class S, class T, number N>
  static constexpr proxy full(S const& sizes, T const& type, N v) {
    return {nullptr, -1, {static_cast<dtype>(to_dims(type)[0]), to_dims(sizes), false}, static_cast<double>(v)};
  }

  /// A static value, also one seen through transforms, as a value of the trace that some of `others` belong to.
  template <class X, class... O>
  static constexpr auto lift(X const& x, O const&... others) {
    return lifted(detail::trace_of_all(others...), x);
  }

  /// 0, 1, ..., n - 1 as int64, in the function that `like` is traced in.
  static constexpr proxy arange(proxy const& like, dims const& n) {
    meta const out{dtype::int64, n};
    graph_builder* const near = like.builder ? like.builder : like.home;
    if (!near) refuse::argument_is_invalid("trace", "a derivative of a constant was asked for; pass the value as an argument");
    graph_builder& b = near->current();
    return {&b, b.emit(&handle<arange_t>, attributes(n, dims{static_cast<index_t>(dtype::int64)}), nullptr, 0, out), out, 0};
  }

private:
  template <class X>
  static constexpr auto lifted(graph_builder* b, X const& x) {
    if constexpr (is_seen<X>) {
      auto const v = lifted(b, x.value);
      if constexpr (value<decltype(x.extra)>) return detail::reseen(x, v, lifted(b, x.extra));
      else return detail::reseen(x, v, x.extra); // the slot of a tape keeps its type: the tape tells what to do
    } else if constexpr (std::is_same_v<X, proxy>) {
      return x;
    } else {
      return detail::as_proxy(detail::plain(x), b);
    }
  }
  template <class Tag>
  static constexpr proxy emit(attributes const& at, proxy* in, int count) {
    using R = rules<Tag>;
    meta metas[R::arity + 1]{};
    for (int k = 0; k < count; ++k) metas[k] = in[k].info;
    meta const out = R::shape(at, metas, count);
    if constexpr (R::kind == op_kind::pointwise) {
      dtype const t = R::compute_type(metas, count);
      for (int k = 0; k < count; ++k) {
        dtype const want = k < R::conditions ? dtype::bool_ : t;
        if (in[k].info.type == want) continue;
        if (in[k].builder) in[k] = emit<to_t>(attributes(dims{static_cast<index_t>(want)}), in + k, 1);
        else in[k].info.type = want;
      }
    }
    graph_builder *any = nullptr, *home = nullptr;
    for (int k = 0; k < count; ++k) {
      if (in[k].builder) any = in[k].builder;
      if (in[k].home) home = in[k].home;
    }
    if (!any && foldable<R>) {
      proxy r = fold<R>(in, count, out);
      r.home = home;
      return r;
    }
    if (!any) any = home;
    if (!any) refuse::argument_is_invalid("trace", "this operator was called on constants only while tracing; pass one of them as an argument");
    graph_builder& b = any->current();
    int ids[R::arity + 1]{};
    for (int k = 0; k < count; ++k) ids[k] = detail::node_in(b, in[k]);
    return {&b, b.emit(&handle<Tag>, at, ids, count, out), out, 0};
  }
  /// Operators whose result on constants is a constant.
  template <class R>
  static constexpr bool foldable = R::kind == op_kind::pointwise || R::kind == op_kind::view || R::kind == op_kind::convert || (R::kind == op_kind::reduction && requires { requires R::sums; });
  template <class R>
  static constexpr proxy fold(proxy const* in, [[maybe_unused]] int count, meta const& out) {
    double v = in[0].splat;
    if constexpr (R::kind == op_kind::pointwise) {
      double a[R::arity + 1]{};
      for (int k = 0; k < count; ++k) a[k] = in[k].splat;
      v = detail::lane<double>::run<R, double>(a);
    } else if constexpr (R::kind == op_kind::reduction) {
      for (index_t d : in[0].info.sizes)
        if (is_symbol(d)) refuse::argument_is_invalid("trace", "a constant is summed over a symbolic size; pass the count as an argument");
      v = numel(out.sizes) ? v * static_cast<double>(numel(in[0].info.sizes)) / static_cast<double>(numel(out.sizes)) : 0;
    }
    return {nullptr, -1, out, out.type == dtype::bool_ ? v != 0 : is_floating(out.type) ? v : static_cast<double>(static_cast<index_t>(v))};
  }
};

} // namespace varve

// ---- varve/graph/trace.hpp
namespace varve {

/// A name as a template argument: `dim<"n">`.
struct dim_name {
  char text[8]{};
  template <std::size_t N>
  consteval dim_name(char const (&s)[N]) {
    static_assert(N <= 8, "varve: the name of a symbolic dimension has at most 7 characters");
    for (std::size_t k = 0; k + 1 < N; ++k) text[k] = s[k];
  }
};
/// A symbolic size in a `spec`: equal names are equal sizes.
template <dim_name Name>
inline constexpr index_t dim = symbol(Name.text);

/// dtype and shape of an argument to trace with: `spec<float, 8, 3>`, `spec<float>` for a scalar, `spec<float, dim<"n">>` with a symbolic size.
template <class T, index_t... D>
struct spec_t {
  static constexpr meta info() { return {dtype_of_type<T>(), ints<D...>::to_dims(), false}; }
};
template <class T, index_t... D>
inline constexpr spec_t<T, D...> spec{};

/// Traces a function of traced values into a graph, in a constant expression or at run time. Results may be a tree; its leaves become the graph's results in order.
template <class F, class... M>
constexpr graph trace_graph(F const& f, M const&... m) {
  graph_builder b;
  std::tuple const in{proxy{&b, b.input(m), meta{m.type, m.sizes, false}, 0}...}; // braces: in order
  auto const y = detail::call_with(f, in);
  tree_for_each(
      [&](auto const& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        static_assert(value<V>, "varve: trace: the function must return values");
        static_assert(level_of<V> == 0, "varve: trace: the result is seen through a transform (perturbation confusion through a capture); pass the outer value as an argument");
        b.result(detail::node_in(b, detail::as_proxy(v, &b)));
      },
      y);
  return b.finish();
}

/// `constexpr auto g = trace(f, spec<float, 8, 3>, ...);` runs the tracer in the compiler: `f` must capture nothing. The result is a value to assert on, print and execute.
template <class F, class... S>
constexpr auto trace(F, S...) {
  static_assert(std::is_empty_v<F>, "varve: trace: the function captures values, which the compiler cannot see; pass them as arguments");
  if constexpr (std::is_empty_v<F>) return freeze([] { return trace_graph(F{}, S::info()...); });
  else return static_graph<graph_sizes{}>{};
}

} // namespace varve

// ---- varve/graph/region.hpp
namespace varve {

/// The handle of a higher-order operator in graphs.
template <class Tag>
inline constexpr op_handle hop_handle{Tag::op_name, op_kind::hop, -1, &detail::no_shape};

namespace detail {
/// Traces a function of values of the given kinds into an open builder; gives the tree of the kinds of its results.
template <class F, std::size_t... K>
constexpr auto trace_into(graph_builder& b, F const& f, meta const* metas, std::index_sequence<K...>) {
  std::tuple const in{proxy{&b, b.input(metas[K]), meta{metas[K].type, metas[K].sizes, false}, 0}...}; // braces: in order
  auto const y = call_with(f, in);
  tree_for_each([&](auto const& v) { b.result(node_in(b, as_proxy(v, &b))); }, y);
  return tree_map([](auto const& v) { return meta_of(v); }, y);
}
} // namespace detail

/// Traces the two functions of a call into regions of the graph and writes one node with them. What the functions capture of the functions around them become
/// further operands, the union over both, in the same order for both (CD-4, SL-9).
template <class Tag, class Op, class P, class... X>
constexpr auto trace_branches(Tag, Op const& op, P const& p, X const&... x) {
  graph_builder& outer = detail::as_proxy(p).builder->current();
  int const pred = detail::node_in(outer, detail::as_proxy(p));
  meta const metas[] = {meta_of(x)..., meta{}};
  graph_builder on_true(&outer);
  auto const shapes = detail::trace_into(on_true, op.on_true, metas, std::index_sequence_for<X...>{});
  on_true.close();
  graph_builder on_false(&outer);
  auto const other = detail::trace_into(on_false, op.on_false, metas, std::index_sequence_for<X...>{});
  on_false.close();
  static_assert(std::is_same_v<decltype(shapes), decltype(other)>, "varve: cond: both functions must return the same number of values");
  tree_map([](meta const& a, meta const& b) { return a == b ? 0 : (refuse::shapes_do_not_match("cond (results of the branches)", a.sizes, b.sizes), 0); }, shapes, other);
  int operands[1 + sizeof...(X)] = {pred, detail::node_in(outer, detail::as_proxy(x, &outer))...};
  int const id = outer.emit_functions(&hop_handle<Tag>, {}, operands, 1 + static_cast<int>(sizeof...(X)), on_true, &on_false);
  int k = 0;
  return tree_map([&](meta const& m) { return proxy{&outer, outer.result_of(id, k++, m), m, 0}; }, shapes);
}

/// Traces the step of a loop: `op.carried` operands are carried, `op.scanned` walked through along dimension 0, the rest captured. Attributes of the node: {carried, scanned, reverse}, {length}.
template <class Tag, class Op, class... X>
constexpr auto trace_loop(Tag, Op const& op, X const&... x) {
  graph_builder* const near = detail::trace_of_all(x...);
  if (!near) refuse::argument_is_invalid("trace", "a loop over constants alone was met while tracing; pass one of them as an argument");
  graph_builder& outer = *near;
  constexpr int carried = decltype(op.carried)::value, scanned = decltype(op.scanned)::value;
  meta metas[] = {meta_of(x)...};
  index_t const n = to_dims(op.length)[0];
  for (int k = 0; k < static_cast<int>(sizeof...(X)); ++k) {
    metas[k].number = false;
    if (k >= carried && k < carried + scanned) metas[k].sizes.erase(0);
  }
  graph_builder step(&outer);
  auto const shapes = detail::trace_into(step, op.f, metas, std::index_sequence_for<X...>{});
  step.close();
  int at = 0;
  auto const result = tree_map(
      [&](meta const& m) {
        int const k = at++;
        if (k >= carried) {
          meta all = m;
          all.sizes.insert(0, n);
          return all;
        }
        if (!(m.sizes == metas[k].sizes)) refuse::shapes_do_not_match("scan (a carried value before and after a step)", metas[k].sizes, m.sizes);
        if (m.type != metas[k].type) refuse::dtype_is_not_supported("scan (a carried value after a step, of another dtype than before)", name(m.type));
        return metas[k];
      },
      shapes);
  int const operands[] = {detail::node_in(outer, detail::as_proxy(x, &outer))...};
  int const id = outer.emit_functions(&hop_handle<Tag>, attributes(dims{carried, scanned, op.reverse}, dims{n}), operands, static_cast<int>(sizeof...(X)), step);
  int k = 0;
  return tree_map([&](meta const& m) { return proxy{&outer, outer.result_of(id, k++, m), m, 0}; }, result);
}

} // namespace varve

// ---- varve/transform/vjp.hpp
namespace varve {

namespace detail {
/// Owns a pointer; usable in constant expressions.
template <class T>
class owned {
public:
  constexpr explicit owned(T* p) : p_(p) {}
  constexpr owned(owned&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  owned(owned const&) = delete;
  owned& operator=(owned const&) = delete;
  constexpr ~owned() { delete p_; }
  constexpr T* operator->() const { return p_; }

private:
  T* p_;
};
template <class F, class... X>
constexpr auto* new_reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_dynamic<X...>) return new dynamic_reverse_scope<>();
  else return new static_reverse_scope<F, X...>(f, x...);
}
} // namespace detail

/// The second result of `vjp`: maps cotangents of the results to a tuple of cotangents of the arguments. May be called many times.
template <class Scope, class In, class Y>
struct pullback {
  detail::owned<Scope> scope;
  In in;
  Y y;
  template <class G>
  constexpr auto operator()(G const& g) const {
    scope->backward(y, g);
    return scope->gradient(in);
  }
};

/// `auto [y, pull] = vjp(f, x...)`: the value of f and its pullback; `pull(g)` is a tuple with one cotangent per argument, `g` a tree like the result. TR-15.
template <class F, class... X>
constexpr auto vjp(F f, X const&... x) {
  auto* raw = detail::new_reverse_scope(f, x...);
  using Scope = std::remove_pointer_t<decltype(raw)>;
  detail::owned<Scope> scope(raw);
  auto in = scope->track(std::tuple<X...>(x...));
  auto y = scope->run([&] { return detail::call_with(f, in); });
  auto value = scope->primal(y);
  return std::pair(value, pullback<Scope, decltype(in), decltype(y)>{static_cast<detail::owned<Scope>&&>(scope), in, y});
}

} // namespace varve

// ---- varve/hop/inner_function.hpp
/// @file
/// The functions of higher-order operators as interpreters hand them down: on duals, in reverse, on mapped values, with a mode put back around them.
namespace varve::detail {

template <class D>
constexpr auto full_tangent(D const& d) {
  if constexpr (is_none<decltype(d.tangent)>) return zeros_like(d.primal);
  else return d.tangent;
}

/// Do traced values stand beside static ones?
template <class... V>
inline constexpr bool some_traced = (traced_value<V> || ...) && !(traced_value<V> && ...);
/// A static value, numbers included, as a constant of the trace that others belong to.
template <class X, class... O>
constexpr decltype(auto) all_traced(X const& x, O const&... others) {
  if constexpr ((traced_value<O> || ...) && !traced_value<X>) return as_traced(x, others...);
  else return (x);
}

/// Runs a function on duals: (primals..., tangents...) to the pair (primal, tangent) of its result.
template <class I, class F>
struct dual_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K);
      auto const y = f(in.close_dual(in, nth<K>(x...), nth<K + n>(x...))...);
      return std::tuple_cat(as_tuple(tree_map([&](auto const& v) { return in.open_dual(v).primal; }, y)), as_tuple(tree_map([&](auto const& v) { return full_tangent(in.open_dual(v)); }, y)));
    }(std::make_index_sequence<sizeof...(X) / 2>{});
  }
  template <class Y>
  static constexpr auto as_tuple(Y const& y) {
    if constexpr (is_tree_node<Y>) return y;
    else return std::tuple<Y>(y);
  }
};

/// Maps (operands..., cotangents of the results...) to the tuple of cotangents of the operands, by running the function again in reverse mode.
template <std::size_t N, class F>
struct pull_fn {
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return [&]<std::size_t... K, std::size_t... G>(std::index_sequence<K...>, std::index_sequence<G...>) {
      auto const with_captures = closure([&](auto const&... v) { return first<N>(f, v...); }, nth<N + G>(x...)...);
      auto const run = vjp(with_captures, nth<K>(x...)...);
      auto const g = [&] {
        if constexpr (sizeof...(G) == 1 && !is_tree_node<std::remove_cvref_t<decltype(run.first)>>) return (nth<N + G>(x...), ...);
        else return std::make_tuple(nth<N + G>(x...)...);
      }();
      return std::apply([&](auto const&... c) { return std::make_tuple(or_zeros(c, nth<K>(x...))...); }, run.second(g));
    }(std::make_index_sequence<N>{}, std::make_index_sequence<sizeof...(X) - N>{});
  }
  template <std::size_t M, class G, class... V>
  static constexpr auto first(G const& f, V const&... v) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return f(nth<K>(v...)...); }(std::make_index_sequence<M>{});
  }
  template <class C, class X>
  static constexpr auto or_zeros(C const& c, X const& x) {
    if constexpr (is_none<C>) return zeros_like(x);
    else return c;
  }
};

/// Runs a function on values that an interpreter without payload closes, and opens its result: what a mode puts around the functions of a call.
template <class I, class F>
struct reentering_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return tree_map([&](auto const& v) { return in.open_plain(v); }, f(in.close(in, x)...));
  }
};
/// Runs a function on operands some of which are mapped; every result comes out mapped.
template <class I, class F, class... Flag>
struct batched_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    auto const close = [&](auto flag, auto const& v) {
      if constexpr (decltype(flag)::value) return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}});
      else return v;
    };
    return tree_map([&](auto const& v) { return materialize(in.open_batched(all_traced(v, x...)), in.n); }, f(close(Flag{}, x)...));
  }
};

} // namespace varve::detail

// ---- varve/hop/cond.hpp
namespace varve {

/// Tag of the higher-order operator `cond`.
struct cond_t {
  static constexpr auto op_name = "cond";
};

namespace detail {
/// The results of both branches must be of one shape and dtype.
template <class U, class V>
constexpr void require_alike(U const& u, V const& v) {
  if constexpr (is_ints<decltype(shape_of(u))> && is_ints<decltype(shape_of(v))>) {
    static_assert(std::is_same_v<decltype(shape_of(u)), decltype(shape_of(v))> && std::is_same_v<decltype(type_fact(u)), decltype(type_fact(v))>, "varve: cond: both functions must return values of one shape and dtype");
  } else {
    if (!(to_dims(shape_of(u)) == to_dims(shape_of(v)))) refuse::shapes_do_not_match("cond (results of the branches)", to_dims(shape_of(u)), to_dims(shape_of(v)));
    if (dtype_of(u) != dtype_of(v)) refuse::dtype_is_not_supported("cond (results of the branches, of different dtypes)", name(dtype_of(v)));
  }
}
} // namespace detail

/// `cond` with its two functions: what interpreters process. They map the functions and call the operator again one level below (HO-12).
template <class T, class F>
struct cond_call {
  using tag = cond_t;
  [[no_unique_address]] T on_true;
  [[no_unique_address]] F on_false;
  static constexpr char const* name() { return cond_t::op_name; }
  /// The call of other functions.
  template <class A, class B>
  static constexpr auto with(A const& a, B const& b) {
    return cond_call<A, B>{a, b};
  }
  // What the rules below are written in; tensors have their own forms (`boxed_cond.hpp`).
  template <class I, class A>
  static constexpr auto dual_fn(I const& in, A const& f) {
    return detail::dual_fn<I, A>{in, f};
  }
  template <class A, class... V>
  static constexpr auto pull_fn(A const& f, V const&...) {
    return detail::pull_fn<sizeof...(V), A>{f};
  }
  template <class I, class A, class... V, class... Flag>
  static constexpr auto batched_fn(I const& in, A const& f, operand<V, Flag> const&...) {
    return detail::batched_fn<I, A, Flag...>{in, f};
  }
  template <class D>
  static constexpr auto tangent(D const& d) {
    return detail::full_tangent(d);
  }
  template <class P>
  static constexpr auto const& predicate(P const& p) {
    return p;
  }
  template <class A, class... X>
  static constexpr auto spread(A const& f, std::tuple<X...> const& x) {
    return std::apply(f, x);
  }
  /// (values..., tangents...) to the results closed as pairs.
  template <class Y, class A>
  static constexpr auto split_pairs(Y const& y, A const& close) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K);
      if constexpr (n == 1) return close(std::get<0>(y), std::get<1>(y));
      else return std::make_tuple(close(std::get<K>(y), std::get<K + n>(y))...);
    }(std::make_index_sequence<std::tuple_size_v<Y> / 2>{});
  }
  template <value P, value... X>
  constexpr auto operator()(P const& p, X const&... x) const {
    if constexpr (top_level<P, X...> > 0 && detail::meets_trace<P, X...>) return (*this)(detail::beside_trace(p, p, x...), detail::beside_trace(x, p, x...)...);
    else if constexpr (top_level<P, X...> > 0) return innermost(p, x...).process(*this, p, x...);
    else if constexpr (is_proxy_base<base_of<P>>) return trace_branches(cond_t{}, *this, p, x...);
    else return p ? on_true(x...) : on_false(x...);
  }
};
template <class T, class F>
inline constexpr bool is_hop<cond_call<T, F>> = true;

/// How each interpreter takes a `cond` whose predicate it cannot decide. The predicate is operand 0. One text for both worlds: the functions are wrapped by `dual_fn`,
/// `pull_fn` and `batched_fn`, of which tensors have their own forms (`boxed_cond.hpp`).
template <>
struct rules<cond_t> {
  template <class I, class Op, class P, class... X>
  static constexpr auto jvp(I const& in, Op const& op, P const& p, X const&... x) {
    return [&](auto const& pp, auto const&... d) {
      auto const y = op.with(op.dual_fn(in, op.on_true), op.dual_fn(in, op.on_false))(pp.primal, d.primal..., op.tangent(d)...);
      return op.split_pairs(y, [&](auto const& v, auto const& t) { return in.close_dual(in, v, t); });
    }(in.open_dual(p), in.open_dual(x)...);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto grad(I const& in, Op const& op, P const& p, X const&... x) {
    return [&](auto const& pp, auto const&... t) {
      auto const y = op(pp.primal, t.primal...);
      return in.record_hop(in, op, y, pp.primal, t...);
    }(in.open_tracked(p), in.open_tracked(x)...);
  }
  /// Cotangents of all operands at once: the call again, with each branch replaced by its pullback.
  template <class Op, class P, class X, class... G>
  static constexpr auto pull(Op const& op, P const& p, X const& x, G const&... g) {
    return op.spread([&](auto const&... v) { return op.with(op.pull_fn(op.on_true, v...), op.pull_fn(op.on_false, v...))(p, v..., g...); }, x);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto vmap(I const& in, Op const& op, P const& p, X const&... x) {
    return choose(
        in.is_mapped(p), [&](auto const& q) { return tree_map([&](auto const& u, auto const& v) { return detail::require_alike(u, v), where(op.predicate(q), u, v); }, op.on_true(x...), op.on_false(x...)); },
        [&](auto const& q) {
          return [&](auto const&... o) {
            auto const y = op.with(op.batched_fn(in, op.on_true, o...), op.batched_fn(in, op.on_false, o...))(q, o.value...);
            return tree_map([&](auto const& v) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}}); }, y);
          }(in.open_batched(x)...);
        },
        p);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto mode(I const& in, Op const& op, P const& p, X const&... x) {
    using T = detail::reentering_fn<I, decltype(op.on_true)>;
    using F = detail::reentering_fn<I, decltype(op.on_false)>;
    auto const y = in.mode->process(cond_call<T, F>{{in, op.on_true}, {in, op.on_false}}, in.open_plain(p), in.open_plain(x)...);
    return tree_map([&](auto const& v) { return in.close(in, v); }, y);
  }
};

namespace detail {
template <class T, class F, class Tower, class... X>
constexpr auto branch(bool p, T const& t, F const& f, [[maybe_unused]] Tower const& tower, X const&... x) {
  if constexpr (std::is_same_v<decltype(t(x...)), decltype(f(x...))>) {
    return p ? t(x...) : f(x...);
  } else {
    auto const lift = [&](auto const& y) { return tree_map([&](auto const& v) { return lift_to_all(tower, v); }, y); };
    static_assert(std::is_same_v<decltype(lift(t(x...))), decltype(lift(f(x...)))>, "varve: cond: both functions must return values of one shape and dtype");
    return p ? lift(t(x...)) : lift(f(x...));
  }
}
/// The door to the boxed operator: defined in boxed_cond.hpp.
template <class T, class F, class... X>
auto cond_on_tensors(tensor const& pred, T const& true_fn, F const& false_fn, X const&... x);
} // namespace detail

/// `cond(pred, true_fn, false_fn, x...)`: true_fn(x...) or false_fn(x...); pred is a bool or a rank-0 value. A predicate with one value runs one branch; one mapped by
/// `vmap` runs both and selects (CD-16); a traced one becomes a node with two functions, whose captured traced values are inputs (CD-4). Results: a value or a flat tuple
/// of values, of one shape and dtype in both branches. A static `grad` keeps the functions until the gradient is taken: let them capture by value. Equals `pred ? true_fn(x...) : false_fn(x...)`. On tensors every interpreter, mode and subclass is given the call
/// whole; one without a rule for it refuses with `missing_rule`.
template <value P, class T, class F, class... X>
constexpr auto cond(P const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  if constexpr (number<P>) {
    constexpr bool watched = (detail::contains_mode<X>() || ...);
    if constexpr (watched) return cond_call<T, F>{true_fn, false_fn}(pred, x...);
    else return detail::branch(pred, true_fn, false_fn, tower_of<1 + top_level<X...>>(x...), x...);
  } else if constexpr (std::is_same_v<P, tensor>) {
    if (pred.numel() != 1) refuse::shapes_do_not_match("cond (predicate)", pred.sizes(), {});
    return detail::cond_on_tensors(pred, true_fn, false_fn, x...);
  } else {
    return cond_call<T, F>{true_fn, false_fn}(pred, x...);
  }
}

} // namespace varve


// ---- varve/hop/boxed_cond.hpp
/// @file
/// `cond` on tensors: operands come in packs of run-time size and functions are erased, else the rules are those of `rules<cond_t>`.
namespace varve {

namespace detail {
template <class = void>
higher_order_operator& cond_operator();

/// A call with its functions; calling it lowers from the layer `self`.
struct boxed_cond {
  using tag = cond_t;
  static constexpr char const* backward_name = "CondBackward";
  boxed_function on_true, on_false;
  layer* self = nullptr;

  boxed_cond with(boxed_function t, boxed_function f) const { return {std::move(t), std::move(f), self}; }
  template <class I>
  static boxed_function dual_fn(I const& in, boxed_function const& f) {
    return boxed_dual_fn{in.self, f};
  }
  template <class I>
  static boxed_function batched_fn(I const& in, boxed_function const& f, boxed_operands const& o) {
    std::vector<bool> mapped;
    for (int k = 0; k < o.value.size(); ++k) mapped.push_back(!o.value[k].is((*o.from)[k]));
    return boxed_batched_fn{in.self, f, std::move(mapped)};
  }
  template <class P>
  static boxed_function pull_fn(boxed_function const& f, P const& x) {
    return boxed_pull_fn{f, x.size()};
  }
  template <class D>
  static boxed_args tangent(D const& d) {
    return boxed_dual_fn::full(d);
  }
  static tensor const& predicate(boxed_args const& p) { return p[0]; }
  template <class F>
  static auto spread(F const& f, boxed_args const& x) {
    return f(x);
  }
  template <class F>
  static boxed_args split_pairs(boxed_args const& y, F const& close) {
    return tree_map(close, part(y, 0, y.size() / 2), part(y, y.size() / 2, y.size()));
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    boxed_args x = first;
    ((x = joined(std::move(x), packs)), ...);
    boxed_hop const call{&cond_operator<>(), {on_true, on_false}};
    if (!self) return call(x);
    lowered const off;
    return call(x);
  }
};

/// The rules of `cond`, one per interpreter, from the text they share with static values.
template <class = void>
class boxed_cond_operator : public higher_order_operator {
public:
  boxed_cond_operator() : higher_order_operator(cond_t::op_name) {
    using pack = boxed_args;
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, pack const& x) { return c.functions[static_cast<bool>(x[0]) ? 0 : 1](part(x, 1, x.size())); });
    shared("jvp", [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<cond_t>::jvp(in, op, p, x); });
    shared("vmap", [](auto const& in, auto const& op, auto const& p, auto const& x) { return rules<cond_t>::vmap(in, op, p, x); });
    shared("grad", [](auto const& in, auto op, auto const& p, auto const& x) {
      pack captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      op.on_true = traced(op.on_true, primal, captures);
      op.on_false = traced(op.on_false, primal, captures);
      return rules<cond_t>::grad(recording_level<>{in}, op, p, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    boxed_args operator()(layer& l, boxed_hop const& c, boxed_args const& x) const { return static_cast<trace_layer*>(l.object)->record_branches(&hop_handle<cond_t>, x, c.functions); }
  };
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      return r(*static_cast<dynamic_level*>(l.object), boxed_cond{c.functions[0], c.functions[1], &l}, part(x, 0, 1), part(x, 1, x.size()));
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
template <class>
higher_order_operator& cond_operator() {
  static auto* const op = new boxed_cond_operator<>; // outlives every call
  return *op;
}

/// Does anything watch the call but transforms for whom the predicate has one value? Then the branch can run as C++ would run it.
inline bool is_decided(tensor const& p) {
  if (p.is_wrapped()) return p.sizes() == p.inner().sizes() && is_decided(p.inner());
  return p.has_data();
}
inline bool only_transforms_watch() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (std::strcmp(l->kind, "trace") == 0) return false;
  return this_thread_state.excluded.empty() && (this_thread_state.included - dispatch_key_set(dispatch_key::transform)).empty();
}
template <class T, class F, class... X>
auto cond_on_tensors(tensor const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  constexpr bool seen_statically = ((level_of<X> > 0) || ...);
  bool subclass = false;
  auto const look = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) subclass = subclass || v.object();
  };
  (look(x), ...);
  if (seen_statically || (only_transforms_watch() && is_decided(pred) && !subclass)) return static_cast<bool>(pred) ? true_fn(x...) : false_fn(x...);
  if constexpr (seen_statically) {
    return true_fn(x...);
  } else {
    using Y = decltype(true_fn(as_tensor(plain(x))...));
    static_assert(std::is_same_v<Y, decltype(false_fn(as_tensor(plain(x))...))>, "varve: cond: both functions must return the same tree of values");
    auto const box = []<class G>(G const& f) -> boxed_function {
      return [&f](boxed_args const& a) { return [&]<std::size_t... K>(std::index_sequence<K...>) { return flatten(f(a[static_cast<int>(K)]...)); }(std::index_sequence_for<X...>{}); };
    };
    boxed_args const y = cond_operator<>()({box(true_fn), box(false_fn)}, boxed_args(pred, as_tensor(plain(x))...));
    int k = 0;
    return tree_map([&](auto const&) { return y[k++]; }, Y{});
  }
}
} // namespace detail

/// The boxed `cond`: rules for further interpreters, modes and subclasses are registered on it.
template <class = void>
higher_order_operator& cond_operator() {
  return detail::cond_operator<>();
}

} // namespace varve

// ---- varve/hop/boxed_custom_function.hpp
/// @file
/// Custom functions on tensors, erased with their contexts, and mapped.
namespace varve::detail {

/// What `setup_context` left, erased. Its tensors are held apart, so that a mapped level can take them out and put them in again.
struct boxed_context {
  boxed_args saved;
  unsigned constant_results = 0, dirty_operands = 0;
  bool materialize = true, once = false;
  std::vector<meta> operands{};       // dtypes and shapes, as the function saw them
  std::shared_ptr<void const> rest{}; // of a type that the function knows
};
/// A custom function with its arguments that are no tensors, erased.
struct boxed_custom_function {
  virtual ~boxed_custom_function() = default;
  virtual char const* name() const = 0;
  virtual boxed_args forward(boxed_args const& x) const = 0;
  virtual boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const = 0;
  /// Gradients of the operands; tangents of the results.
  virtual boxed_args backward(boxed_context const& c, boxed_args const& g) const = 0;
  virtual boxed_args jvp(boxed_context const& c, boxed_args const& t) const = 0;
  /// Its own `vmap`: operands with the batch in front where `mapped`; results have it there too. Null results: it has none, and asks for the generated rule.
  virtual boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const = 0;
};
using custom_function_ptr = std::shared_ptr<boxed_custom_function const>;
template <class = void>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x);

/// Gradients as the operands have them: summed to the shape of one that was broadcast, of its dtype; another shape is refused (AF-11).
template <class T>
void fit_gradients(char const* name, boxed_context const& c, boxed_args& g) {
  for (int k = 0; k < g.size(); ++k) {
    if (!g[k].defined()) continue;
    meta const& m = c.operands[static_cast<std::size_t>(k)];
    if (!is_expandable(m.sizes, g[k].sizes()))
      throw autograd_error((std::string("varve: ") + name + "Backward: a gradient of shape " + to_string(g[k].sizes()) + " was returned for argument " + std::to_string(k) + "; expected shape " + to_string(m.sizes)).c_str());
    g[k] = to(sum_to_size(static_cast<T const&>(g[k]), m.sizes), m.type);
  }
}
template <class T>
T with_batch(T const& t, index_t n, int rank) {
  return t.dim() > rank ? t : T(expand(t, [&] { dims s = t.sizes(); return s.insert(0, n); }()));
}

/// Tensors of a mapped function: by a level of their own, since a backward pass may come when that of the call has ended.
struct boxed_batch {
  std::vector<bool> mapped; // which operands are
  index_t n;
  random_policy random;
  /// A context outside of the level: that of the slices, and which of its tensors are mapped.
  struct inner_context {
    boxed_context of;
    std::vector<bool> mapped;
  };

  template <class T>
  struct opened {
    boxed_batch const& self;
    dynamic_batch_scope<>& scope;
    T put(T const& t, bool m) const { return m && t.defined() ? scope.map(t) : t; }
    operand<T, bool> take(T const& t) const { return t.defined() && scope.mapped(t) ? operand<T, bool>{scope.unmapped(t), true} : operand<T, bool>{t, false}; }
    boxed_args closed(boxed_args const& x, std::vector<bool> const& flags) const {
      boxed_args r;
      for (int k = 0; k < x.size(); ++k) r.push_back(put(x[k], flags[static_cast<std::size_t>(k)]));
      return r;
    }
    boxed_args operands(boxed_args const& x) const { return closed(x, self.mapped); }
    boxed_args close(boxed_args const& x) const { return closed(x, std::vector<bool>(static_cast<std::size_t>(x.size()), true)); }
    boxed_args open(boxed_args const& y) const {
      return tree_map([&](auto const& t) { return t.defined() ? materialize(take(t), scope.size()) : t; }, y);
    }
    boxed_context open_context(boxed_context const& c) const {
      boxed_context r = c;
      std::vector<bool> flags;
      r.saved = tree_map([&](auto const& t) { auto const o = take(t); return flags.push_back(o.batched), o.value; }, c.saved);
      inner_context in{c, std::move(flags)};
      in.of.saved = boxed_args();
      r.rest = std::make_shared<inner_context const>(std::move(in));
      return r;
    }
    boxed_context close_context(boxed_context const& c) const {
      auto const& in = *static_cast<inner_context const*>(c.rest.get());
      boxed_context r = in.of;
      r.saved = closed(c.saved, in.mapped);
      return r;
    }
    boxed_args reduce(boxed_args const& g) const {
      boxed_args r;
      for (int k = 0; k < g.size(); ++k) r.push_back(g[k].defined() ? T(reduced(take(g[k]), static_cast<bool>(self.mapped[static_cast<std::size_t>(k)]), scope.size())) : g[k]);
      return r;
    }
  };
  template <class Body>
  auto run(Body const& body) const {
    dynamic_batch_scope<> scope(n, random);
    return scope.run([&] { return body(opened<dependent<tensor, Body>>{*this, scope}); });
  }
};
struct custom_function_ref {
  custom_function_ptr f;
  boxed_args forward(boxed_args const& x) const { return f->forward(x); }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const { return f->context(needs, x, y); }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const { return f->backward(c, g); }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const { return f->jvp(c, t); }
};
template <class On = void>
struct mapped_custom_function final : boxed_custom_function {
  mapped_function<custom_function_ref, dependent<boxed_batch, On>> as;
  mapped_custom_function(custom_function_ptr f, boxed_batch b) : as{{std::move(f)}, std::move(b)} {}
  char const* name() const override { return as.f.f->name(); }
  boxed_args forward(boxed_args const& x) const override { return as.forward(x); }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override { return as.context(needs, x, y); }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override { return as.backward(c, g); }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override { return as.jvp(c, t); }
  boxed_args vmap(vmap_info const&, std::vector<bool> const&, boxed_args const&) const override { return {}; }
};

} // namespace varve::detail

// ---- varve/hop/custom_function_node.hpp
/// @file
/// A custom function as a node of the recorded graph, at a level of `grad` or eagerly.
namespace varve::detail {

/// The pullback of a recorded custom function, with zeros for what did not arrive (AF-9) and a history that refuses a second derivative (AF-12).
template <class T = tensor>
struct custom_pull {
  custom_function_ptr f;
  boxed_context context;
  std::vector<meta> results;
  std::vector<std::uint32_t> versions;
  std::string label;
  /// Eagerly, results that were saved are kept without their history, which is this node: it would keep itself alive. For each saved tensor which result it is, or which
  /// operand, or that it is neither.
  std::vector<int> result_of{};
  std::vector<std::shared_ptr<packed_value>> packed{}; // by saved_tensors_hooks
  grad_node* self = nullptr;
  static constexpr bool released = true;
  static constexpr int intermediate = -1, operand = -2; // the k-th: operand - k

  boxed_context unpacked() const {
    boxed_context c = context;
    boxed_args& s = c.saved;
    for (int k = 0; k < s.size(); ++k) {
      auto const at = static_cast<std::size_t>(k);
      if (!packed.empty() && packed[at]) s[k] = packed[at]->unpack();
      else if (s[k].defined() && version_of(s[k]) != versions[at]) refuse_stale(s[k], label.c_str(), versions[at]);
      if (!self || !this_thread_state.grad_mode || !s[k].defined() || !is_floating(s[k].dtype())) continue;
      int const r = result_of[at];
      if (r <= operand && r != intermediate) { // what hooks give back has the history that the argument had
        if (!packed.empty() && packed[at] && self->next[operand - r]) {
          s[k] = s[k].alias();
          s[k].set_history(self->next[operand - r]);
        }
        continue;
      }
      if (r >= 0 && context.constant_results >> r & 1) continue;
      s[k] = s[k].alias();
      s[k].set_history(r >= 0 ? edge(self, static_cast<std::uint32_t>(r)) : refusal("saved a value that is neither an argument nor a result: a derivative of its backward would lack what that depends on; save arguments and results only"));
    }
    return c;
  }
  boxed_args saved() const { return unpacked().saved; }
  /// The history of a value that may not be differentiated.
  edge refusal(char const* why) const {
    auto refuse = [text = "varve: " + label + " " + why](boxed_args const&, bool const*) -> boxed_args { throw autograd_error(text.c_str()); };
    return edge_to(record_function(std::move(refuse), {edge()}, 1, "Error"));
  }

  boxed_args operator()(boxed_args const& out, bool const* wanted) const {
    boxed_args g;
    bool any = false;
    for (int k = 0; k < out.size(); ++k) {
      meta const& m = results[static_cast<std::size_t>(k)];
      any = any || out[k].defined();
      g.push_back(out[k].defined() || !context.materialize ? out[k] : tensor(zeros_of(m)));
    }
    if (!any && context.materialize) return {};
    boxed_args r = [&] {
      if (!context.once) return f->backward(unpacked(), g);
      no_grad const off;
      return f->backward(unpacked(), g);
    }();
    for (int k = 0; k < r.size(); ++k) {
      if (!r[k].defined() || !wanted[k]) continue;
      if (context.once && this_thread_state.grad_mode && [&] { for (auto const& t : g) if (t.defined() && t.requires_grad()) return true; return false; }()) {
        r[k] = r[k].alias();
        r[k].set_history(refusal("is once_differentiable: its backward cannot be differentiated"));
      }
    }
    return r;
  }
  static T zeros_of(meta const& m) {
    return [](auto const& sizes, auto type) { return full(sizes, 0, type); }(m.sizes, m.type);
  }
  void release() {
    context.saved = boxed_args();
    packed.clear();
  }
};

/// An operand that is returned as it is, and not marked dirty, becomes a view of itself: what was saved of it would be neither (AF-7).
inline void refuse_saved_as_is(boxed_custom_function const& f, boxed_context const& c, boxed_args const& x, boxed_args const& y) {
  for (int k = 0; k < y.size(); ++k)
    for (int i = 0; i < x.size(); ++i)
      for (auto const& t : c.saved)
        if (y[k].is(x[i]) && t.is(y[k]) && !(c.dirty_operands >> i & 1))
          throw autograd_error((std::string("varve: ") + f.name() + ": an input that is returned as-is was saved; return a clone or a view of it, or mark_dirty it").c_str());
}
/// Records a call at a level, or eagerly (`E`): `close(y, edge)` makes the value seen there.
template <class T, bool E, class Close>
boxed_args record_custom(custom_function_ptr const& f, boxed_context c, std::vector<edge> edges, boxed_args const& x, boxed_args const& y, Close const& close) {
  std::string const label = std::string(f->name()) + (E ? "Backward" : "GeneratedBackward"); // AF-29
  refuse_saved_as_is(*f, c, x, y);
  std::vector<int> result_of;
  std::vector<std::shared_ptr<packed_value>> packed;
  std::vector<std::uint32_t> versions;
  for (int j = 0; j < c.saved.size(); ++j) {
    tensor& s = c.saved[j];
    versions.push_back(s.defined() ? version_of(s) : 0);
    if (!E) continue;
    refuse_inference(s, f->name());
    int from = custom_pull<T>::intermediate;
    for (int k = 0; k < x.size(); ++k)
      if (s.defined() && s.is(x[k])) from = custom_pull<T>::operand - k;
    for (int k = 0; k < y.size(); ++k)
      if (s.defined() && s.is(y[k])) from = k;
    result_of.push_back(from);
    if (from >= 0) s = s.alias();
    if (auto* const hooks = s.defined() ? this_thread_state.saved_hooks : nullptr) {
      packed.resize(static_cast<std::size_t>(c.saved.size()));
      packed[static_cast<std::size_t>(j)].reset(operator_node::pack(*hooks, s));
      s = tensor();
    }
  }
  std::vector<meta> results;
  for (auto const& t : y) results.push_back(meta_of(t));
  unsigned const constant = c.constant_results;
  edge const n = edge_to(record_function(custom_pull<T>{f, std::move(c), std::move(results), std::move(versions), label, std::move(result_of), std::move(packed)}, std::move(edges), y.size(), label.c_str()));
  if (E) static_cast<function_node<custom_pull<T>>*>(n.to())->pullback.self = n.to();
  if (this_thread_state.anomaly)
    if (auto const* const h = autograd_kernels.load(std::memory_order_acquire)) h->note(*n.to());
  boxed_args r;
  for (int k = 0; k < y.size(); ++k) r.push_back(is_floating(y[k].dtype()) && !(constant >> k & 1) ? close(y[k], edge(n.to(), static_cast<std::uint32_t>(k))) : y[k]);
  return r;
}
template <class T = tensor>
boxed_args call_custom_eagerly(custom_function_ptr const& f, boxed_args const& x) {
  bool any = false;
  for (auto const& t : x) any = any || (t.defined() && t.requires_grad());
  boxed_args const y = [&] {
    no_grad const off; // AF-15
    return f->forward(x);
  }();
  if (!any || !is_grad_enabled()) return y;
  std::vector<edge> edges;
  std::vector<bool> needs;
  for (auto const& t : x) {
    edges.push_back(t.defined() ? edge(eager_history(t)) : edge());
    needs.push_back(static_cast<bool>(edges.back()));
  }
  no_grad const off;
  boxed_context const c = f->context(needs, x, y);
  return record_custom<T, true>(f, c, std::move(edges), x, y, [&](tensor const& v, edge const& e) {
    for (int i = 0; i < x.size(); ++i)
      if (v.is(x[i])) {
        if (!(c.dirty_operands >> i & 1)) break;
        check_write(f->name(), v);
        if (v.base().defined() && y.size() > 1) refuse_write(f->name(), "an operand marked dirty is a view, and the function has several results; give it one, or a tensor that is no view");
        rebase(*autograd_kernels.load(std::memory_order_acquire), v, e, i);
        return v;
      }
    // What came in as it is, and views, get handles of their own; views of operands may not be written into (AF-7, AF-13).
    bool shares = false;
    for (auto const& t : x) shares = shares || (t.defined() && !t.is_wrapped() && !v.is_wrapped() && t.shares_storage(v));
    tensor r = shares ? v.with_layout(v.where()) : v;
    if (shares) r.set_origin(view_origin::custom);
    r.set_history(e);
    return r;
  });
}
} // namespace varve::detail

// ---- varve/hop/boxed_custom_call.hpp
/// @file
/// What each layer of the thread's stack does with a call of a custom function on tensors (AF-19). The rules are those of `rules<custom_function_t>`.
namespace varve::detail {

/// A call on tensors as the rules take it.
template <class T>
struct boxed_custom_call {
  using tag = custom_function_t;
  custom_function_ptr f;
  layer const* self;

  boxed_args operator()(boxed_args const& x) const { return call_custom<>(f, x); }
  boxed_context context(boxed_args const& y, boxed_tracked const& t) const {
    std::vector<bool> needs;
    for (auto const& x : *t.of) needs.push_back(mine(x) && x.history());
    return f->context(needs, t.primal, y);
  }
  boxed_context context(boxed_args const& y, boxed_dual const& d) const {
    std::vector<bool> needs;
    for (auto const& t : d.tangent) needs.push_back(t.defined());
    boxed_context c = f->context(needs, d.primal, y);
    refuse_saved_as_is(*f, c, d.primal, y);
    return c;
  }
  boxed_args record(dynamic_level const& in, boxed_context const& c, boxed_args const& y, boxed_tracked const& t) const {
    if (!self->grad_mode) return y;
    std::vector<edge> edges;
    for (auto const& x : *t.of) edges.push_back(mine(x) ? edge(x.history()) : edge());
    return record_custom<T, false>(f, c, std::move(edges), t.primal, y, [&](tensor const& v, edge const& e) { return in.tracked_value(v, e); });
  }
  boxed_args tangent(boxed_context const& c, boxed_dual const& d) const {
    boxed_args t;
    for (int k = 0; k < d.primal.size(); ++k) t.push_back(d.tangent[k].defined() || !d.primal[k].defined() ? d.tangent[k] : T(zeros_like(static_cast<T const&>(d.primal[k]))));
    return f->jvp(c, t);
  }
  boxed_args results(boxed_context const& c, boxed_args const& y, boxed_args closed, boxed_args const& x) const {
    for (int i = 0; i < x.size(); ++i)
      if ((c.dirty_operands >> i & 1) && !mine(x[i]))
        throw transform_error((std::string("varve: ") + self->kind + ": " + f->name() + ": a captured tensor, which the transform does not see, was marked dirty; pass it as an argument, or return a new value").c_str());
    for (int k = 0; k < y.size(); ++k)
      if (c.constant_results >> k & 1) closed[k] = y[k];
    for (int k = 0; k < y.size(); ++k)
      for (auto const& t : x)
        if (mine(closed[k]) && mine(t) && y[k].shares_storage(t)) closed[k].set_base(t.base().defined() ? t.base() : t, view_origin::custom); // not to be written into (AF-13)
    return same_objects(y, std::move(closed), x, c.dirty_operands);
  }
  boxed_args mapped(dynamic_level const&, boxed_operands const& o) const {
    boxed_batch b{{}, self->batch_size, self->random};
    for (auto const& t : *o.from) b.mapped.push_back(mine(t));
    boxed_args const y = f->vmap({b.n, b.random}, b.mapped, o.value);
    return y.size() > 0 ? y : call_custom<>(std::make_shared<mapped_custom_function<>>(f, std::move(b)), o.value);
  }
  /// An operand that was written into, and returned, is the same object at every level (AF-21).
  boxed_args same_objects(boxed_args const& y, boxed_args closed, boxed_args const& x, unsigned which = ~0u) const {
    for (int k = 0; k < y.size(); ++k)
      for (int i = 0; i < x.size(); ++i)
        if ((which >> i & 1) && mine(x[i]) && y[k].is(x[i].inner())) {
          write_payload(x[i], closed[k], i);
          closed[k] = x[i];
        }
    return closed;
  }

private:
  void write_payload(tensor const& x, tensor const& written, int target) const {
    if (!written.is_wrapped() || written.layer() != self->id) return;
    if (edge const& e = written.history()) {
      check_write(f->name(), x);
      rebase(level_views<T>{}, x, e, target);
    }
    if (written.extra().defined()) change_tangent<T>(x, written.extra());
  }
  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }
};
/// The next interpreter of the thread is given the call.
template <class T>
boxed_args call_custom_on_stack(custom_function_ptr const& f, boxed_args const& given) {
  layer* const top = this_thread_state.transforms.top;
  boxed_args x;
  for (auto const& t : given) x.push_back(t.defined() ? unwrap_dead(top, t) : t);
  if (!top) return call_custom_eagerly<T>(f, x);
  if (std::strcmp(top->kind, "trace") == 0) return f->forward(x);
  bool any = false;
  for (auto const& t : x) any = any || (t.defined() && t.is_wrapped() && t.layer() == top->id);
  auto const& in = *static_cast<dynamic_level*>(top->object);
  lowered const off;
  boxed_custom_call<T> const call{f, top};
  if (!any) return call(x);
  using rule = rules<typename boxed_custom_call<T>::tag>;
  if (std::strcmp(top->kind, "vmap") == 0) return rule::vmap(in, call, x);
  if (std::strcmp(top->kind, "jvp") == 0) return rule::jvp(in, call, x);
  return rule::grad(in, call, x);
}
template <class>
boxed_args call_custom(custom_function_ptr const& f, boxed_args const& x) {
  return call_custom_on_stack<tensor>(f, x);
}

} // namespace varve::detail

// ---- varve/autograd/erased_function.hpp
namespace varve {

/// The context of a function whose `forward(ctx, x...)` fills it itself (AF-2): outside of transforms only. `backward(ctx, g...)` finds the saved tensors in `saved()[k]`.
struct dynamic_function_context {
  std::vector<bool> needs_input_grad;
  void save_for_backward(auto const&... t) { saved_ = boxed_args(tensor(t)...); }
  boxed_args const& saved() const { return saved_; }
  void mark_non_differentiable(auto const&... t) { constants_ = boxed_args(tensor(t)...); }
  void mark_dirty(auto const&... t) { dirty_ = boxed_args(tensor(t)...); }
  void set_materialize_grads(bool on) { materialize_ = on; }

  boxed_args saved_, constants_, dirty_;
  bool materialize_ = true;
};

namespace detail {
inline boxed_args boxed_results(auto const& y) {
  boxed_args r;
  tree_for_each(
      [&](auto const& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        if constexpr (is_none<V>) r.push_back(tensor());
        else if constexpr (std::is_same_v<V, tensor>) r.push_back(v);
        else r.push_back(as_tensor(v));
      },
      y);
  return r;
}
template <class Y>
Y rebuilt(boxed_args const& y) {
  int k = 0;
  if constexpr (is_tree_node<Y>) return tree_map([&](auto const&) { return y[k++]; }, Y{});
  else return y[0];
}
/// Does `forward` take the context? Asked only of one that cannot do without: a variadic `forward` takes anything.
template <class D, class... X>
constexpr bool fills_its_context() {
  if constexpr (requires(X const&... x) { D::forward(x...); }) return false;
  else return requires(dynamic_function_context& c, X const&... x) { D::forward(c, x...); };
}
template <class D, class... X>
auto call_forward(dynamic_function_context& c, X const&... x) {
  if constexpr (fills_its_context<D, X...>()) return D::forward(c, x...);
  else return D::forward(x...);
}
/// A user's function with the arguments of one call, erased. `X` are their types; those that are no tensors stay here.
template <class D, class... X>
class erased_function final : public boxed_custom_function {
  static constexpr std::size_t arity = sizeof...(X);
  using all = std::index_sequence_for<X...>;
  static constexpr bool flat = !(is_tree_node<X> || ...);

public:
  static constexpr bool combined = fills_its_context<D, X...>();
  explicit erased_function(X const&... x) : args_(with_tensors(std::tuple<X...>(x...), [](tensor const&) { return tensor(); })) {}
  char const* name() const override { return name_of_type<D>.c_str(); }

  /// The arguments of a call with other tensors, one after the other.
  std::tuple<X...> arguments(boxed_args const& x) const {
    int k = 0;
    return with_tensors(args_, [&](tensor const&) { return x[k++]; });
  }
  using result_type = decltype(call_forward<D>(std::declval<dynamic_function_context&>(), std::declval<X const&>()...));

  boxed_args forward(boxed_args const& x) const override {
    return boxed_results(std::apply([&](auto const&... a) { return call_forward<D>(combined_, a...); }, arguments(x)));
  }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    boxed_context c;
    c.once = once();
    for (auto const& t : x) c.operands.push_back(t.defined() ? meta_of(t) : meta{});
    std::array<bool, arity> const asked = per_argument(needs);
    if constexpr (combined) {
      auto rest = std::make_shared<dynamic_function_context>(std::exchange(combined_, {}));
      rest->needs_input_grad.assign(asked.begin(), asked.end());
      c.saved = rest->saved_;
      c.materialize = rest->materialize_;
      for (int k = 0; k < y.size(); ++k)
        for (auto const& t : rest->constants_) c.constant_results |= y[k].is(t) ? 1u << k : 0u;
      for (int k = 0; k < x.size(); ++k)
        for (auto const& t : rest->dirty_) c.dirty_operands |= x[k].is(t) ? 1u << k : 0u;
      require_returned(y, rest->dirty_);
      rest->saved_ = rest->constants_ = rest->dirty_ = boxed_args();
      c.rest = std::move(rest);
    } else if constexpr (!has_context<arity>) {
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " is differentiated and must override setup_context(ctx, inputs, output)").c_str());
    } else {
      blank_context ctx;
      ctx.needs_input_grad = asked;
      auto const typed = D::setup_context(ctx, arguments(x), rebuilt<result_type>(y));
      using C = std::remove_const_t<decltype(typed)>;
      c.saved = joined(boxed_results(typed.saved_values), boxed_results(typed.forward_values));
      c.constant_results = C::constant_results;
      boxed_args dirty;
      for (int k = 0; k < x.size(); ++k)
        if (C::dirty_operands >> argument_of(k) & 1) {
          c.dirty_operands |= 1u << k;
          dirty.push_back(x[k]);
        }
      require_returned(y, dirty);
      c.materialize = typed.materialize;
      c.rest = std::make_shared<decltype(filled_context(c))>(typed.map(forgotten{}));
    }
    return c;
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override {
    auto filled = filled_context(c);
    auto const call = [&](auto const&... v) {
      if constexpr (requires { D::backward(filled, v...); }) return D::backward(filled, v...);
      else return throw missing_rule((std::string("varve: ") + name_of_type<D>.c_str() + " has no backward(ctx, g...) for its results; grad needs it").c_str()), tensor();
    };
    auto const r = [&]<std::size_t... K>(std::index_sequence<K...>) { return as_flat_tuple(call(g[static_cast<int>(K)]...)); }(std::make_index_sequence<results>{});
    constexpr std::size_t given = std::tuple_size_v<std::remove_const_t<decltype(r)>>;
    bool too_many = false; // nothing for arguments that there are not is no harm (AF-10)
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const check = [&](std::size_t k, auto const& v) {
        if (k >= arity)
          for (auto const& t : boxed_results(v)) too_many = too_many || t.defined();
      };
      (check(K, std::get<K>(r)), ...);
    }(std::make_index_sequence<given>{});
    if (given < arity || too_many)
      throw autograd_error((std::string("varve: ") + name_of_type<D>.c_str() + ": backward returned an incorrect number of gradients: expected " + std::to_string(arity) + ", got " + std::to_string(given)).c_str());
    boxed_args t; // of the gradients of all arguments those of the tensors
    if constexpr (given >= arity) [&]<std::size_t... K>(std::index_sequence<K...>) { (take_gradient(t, std::get<K>(args_), std::get<K>(r)), ...); }(all{});
    fit_gradients<dependent<tensor, D>>(name_of_type<D>.c_str(), c, t);
    return t;
  }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override {
    auto filled = filled_context(c);
    boxed_args const r = [&]<std::size_t... K>(std::index_sequence<K...>) -> boxed_args {
      int k = 0;
      auto const d = with_tensors(args_, [&](tensor const&) { return t[k++]; }, none);
      if constexpr (requires { D::jvp(filled, std::get<K>(d)...); }) return boxed_results(D::jvp(filled, std::get<K>(d)...));
      else throw missing_rule((std::string("varve: ") + name_of_type<D>.c_str() + " has no jvp(ctx, t...); forward mode needs it").c_str());
    }(all{});
    if (r.size() != static_cast<int>(results))
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + ": jvp returned " + std::to_string(r.size()) + " tangents for " + std::to_string(results) + " results").c_str());
    return r;
  }
  boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const override {
    if constexpr (has_own_vmap<D>) {
      static_assert(!generates_vmap<D>, "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto const a = arguments(x);
        auto const flags = flags_of(mapped);
        auto const r = D::vmap(info, flags, std::get<K>(a)...);
        check_two_returns(r);
        if constexpr (returns_two<std::remove_const_t<decltype(r)>>) return with_batches(std::get<0>(r), std::get<1>(r), info.batch_size);
        else return boxed_args();
      }(all{});
    } else if constexpr (generates_vmap<D>) {
      return {};
    } else {
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " has no vmap support; give it `static constexpr bool generate_vmap_rule = true;` or a static vmap").c_str());
    }
  }

private:
  /// The tree of arguments with f of each tensor; what is none is kept, or replaced.
  template <class F, class... Other>
  static auto with_tensors(std::tuple<X...> const& x, F const& f, Other const&... other) {
    return tree_map(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return f(v);
          else if constexpr (sizeof...(Other) > 0) return (other, ...);
          else return v;
        },
        x);
  }
  /// Which arguments were mapped: a flag for each, or, where there are lists among them, a tree of flags (AF-24).
  auto flags_of(std::vector<bool> const& mapped) const {
    std::size_t k = 0;
    if constexpr (flat) return per_argument(mapped);
    else return with_tensors(args_, [&](tensor const&) { return static_cast<bool>(mapped[k++]); }, false);
  }
  /// A flag of each tensor as one of each argument.
  std::array<bool, arity> per_argument(std::vector<bool> const& of_tensors) const {
    std::array<bool, arity> r{};
    for (std::size_t k = 0; k < of_tensors.size(); ++k)
      if (of_tensors[k]) r[static_cast<std::size_t>(argument_of(static_cast<int>(k)))] = true;
    return r;
  }
  /// The argument that a tensor is, or lies in.
  int argument_of(int tensor_nr) const {
    int k = 0, before = 0, at = -1;
    auto const count = [&](auto const& a) {
      tree_for_each([&]<class V>(V const&) { before += std::is_same_v<V, tensor>; }, a);
      if (at < 0 && tensor_nr < before) at = k;
      ++k;
    };
    std::apply([&](auto const&... a) { (count(a), ...); }, args_);
    return at;
  }
  /// The gradients of one argument's tensors, from what `backward` returned for it: a gradient, a tree of them, or none.
  template <class A, class G>
  static void take_gradient(boxed_args& to, A const& argument, G const& g) {
    boxed_args const given = boxed_results(g);
    int k = 0;
    tree_for_each(
        [&]<class V>(V const&) {
          if constexpr (is_tree_node<A> && is_none<G>) {
            if constexpr (std::is_same_v<V, tensor>) to.push_back(tensor());
          } else {
            if (std::is_same_v<V, tensor>) to.push_back(k < given.size() ? given[k] : tensor());
            ++k;
          }
        },
        argument);
  }
  static constexpr bool once() {
    if constexpr (requires { D::once_differentiable; }) return D::once_differentiable;
    else return false;
  }
  static void require_returned(boxed_args const& y, boxed_args const& dirty) {
    for (auto const& t : dirty) {
      bool found = false;
      for (auto const& v : y) found = found || v.is(t);
      if (!found) throw autograd_error((std::string("varve: ") + name_of_type<D>.c_str() + ": every operand marked dirty must be returned by forward; under vmap such a function needs a vmap of its own").c_str());
    }
  }
  /// Results of the function's own `vmap`, each with the batch in front: `mapped` tells which have it already, one flag for all or one for each.
  template <class Y, class F>
  static boxed_args with_batches(Y const& y, F const& mapped, index_t n) {
    boxed_args r;
    if constexpr (std::is_convertible_v<F, bool> || is_none<F>) {
      for (auto const& t : boxed_results(y)) r.push_back(as_batched(t, mapped, n));
    } else {
      boxed_args const all = boxed_results(y);
      boxed_args given;
      tree_for_each(
          [&](auto const& flag) {
            if (given.size() < all.size()) given.push_back(as_batched(all[given.size()], flag, n));
            else given.push_back(tensor());
          },
          mapped);
      if (given.size() != all.size())
        throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + ": vmap returned " + std::to_string(all.size()) + " results and " + std::to_string(given.size()) +
                               " flags of which are mapped, which is an incompatible structure; return one flag, or one for each result")
                                  .c_str());
      r = given;
    }
    return r;
  }
  template <class F>
  static tensor as_batched(tensor const& t, F const& mapped, index_t n) {
    using T = dependent<tensor, F>;
    if constexpr (is_none<F>) return with_batch<T>(t, n, t.dim());
    else return static_cast<bool>(mapped) ? t : with_batch<T>(t, n, t.dim());
  }
  static constexpr std::size_t results = [] {
    if constexpr (is_tree_node<result_type>) return std::tuple_size_v<result_type>;
    else return std::size_t{1};
  }();
  using blank_context = function_context<static_cast<int>(arity)>;
  template <std::size_t N>
  static constexpr bool has_context = requires(function_context<static_cast<int>(N)> c, std::tuple<X...> in, result_type out) { D::setup_context(c, in, out); };
  /// In place of a saved value, which the graph keeps.
  struct forgotten {
    template <class V>
    tensor operator()(V const&) const {
      return {};
    }
  };
  /// The user's context with what it saved in its places.
  static auto filled_context(boxed_context const& from) {
    if constexpr (combined) {
      auto c = *static_cast<dynamic_function_context const*>(from.rest.get());
      c.saved_ = from.saved;
      return c;
    } else if constexpr (!has_context<arity>) {
      return blank_context();
    } else {
      using C = decltype(D::setup_context(std::declval<blank_context>(), std::declval<std::tuple<X...>>(), std::declval<result_type>()).map(forgotten{}));
      C c = *static_cast<C const*>(from.rest.get());
      int k = 0;
      std::apply([&](auto&... v) { ((v = from.saved[k++]), ...); }, c.saved_values);
      std::apply([&](auto&... v) { ((v = from.saved[k++]), ...); }, c.forward_values);
      return c;
    }
  }
  std::tuple<X...> args_; // without their tensors: the graph keeps the function
  mutable dynamic_function_context combined_;
};
} // namespace detail

} // namespace varve

// ---- varve/autograd/function.hpp
namespace varve {

namespace detail {
/// Is a type `tensor`, or a tree with tensors?
template <class X>
constexpr bool holds_tensors() {
  if constexpr (std::is_same_v<X, tensor>) return true;
  else if constexpr (is_tree_node<X>) return []<class... E>(std::type_identity<std::tuple<E...>>) { return (holds_tensors<E>() || ...); }(std::type_identity<elements_of<X>>{});
  else return false;
}
template <class D, class... X>
auto apply_to_tensors(X const&... x) {
  using F = erased_function<D, X...>;
  if constexpr (F::combined)
    if (layer const* l = this_thread_state.transforms.top; l && std::strcmp(l->kind, "trace") != 0)
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " is used under a transform and must override setup_context; its forward takes no ctx then").c_str());
  boxed_args tensors;
  auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) tensors.push_back(v);
  };
  (tree_for_each(take, x), ...);
  return rebuilt<typename F::result_type>(call_custom<>(std::make_shared<F>(x...), tensors));
}
} // namespace detail

/// Base of functions with derivatives of their own (`torch.autograd.Function`), for scalars, arrays and tensors alike:
///
///     struct my_exp : function<my_exp> {
///       static constexpr auto forward(auto x) { return exp(x); }
///       static constexpr auto setup_context(auto ctx, auto const&, auto const& output) { return ctx.save_for_backward(output); }
///       static constexpr auto backward(auto& ctx, auto g) { auto [y] = ctx.saved(); return mul(g, y); }
///     };
///     auto y = my_exp::apply(x);
///
/// `forward` returns a value or a tuple of values; `backward(ctx, g...)`, given a gradient for each result, returns one gradient or a tuple, one for each argument of
/// `forward` (`none` for those that have none); `jvp(ctx, t...)` returns a tangent for each result. Under `vmap` it needs `static constexpr bool generate_vmap_rule = true;` or
/// `vmap(info, mapped, x...)`, which is given operands with the batch in front where `mapped` says so, and returns the pair (results, which have the batch in front).
/// `static constexpr bool once_differentiable = true;` refuses derivatives of `backward`. Arguments that are no values (flags, sizes) are passed through;
/// tensors may lie in trees (`std::vector<tensor>`), whose gradient is such a tree. AF-1..32.
template <class Derived>
struct function {
  template <class... X>
  static constexpr auto apply(X const&... x) {
    if constexpr ((detail::holds_tensors<X>() || ...)) return detail::apply_to_tensors<Derived>(x...);
    else return custom_function_call<Derived, detail::written_function<Derived>>{}(detail::plain(x)...);
  }
};

} // namespace varve

// ---- varve/kernel/random.hpp
/// @file
/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; SC 2011). Element `i` of a stream
/// depends on nothing but the seed and `i`: batches, threads and the compiler agree.
namespace varve::kernel {

/// Four random words.
struct philox_block {
  std::uint32_t v[4];
};

/// Block number `offset` of the stream `seed` (word 2 and 3 of the counter hold `stream`, for independent uses of one seed).
constexpr philox_block philox(std::uint64_t seed, std::uint64_t offset, std::uint64_t stream = 0) {
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::uint32_t c0 = low(offset), c1 = high(offset), c2 = low(stream), c3 = high(stream), k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const p = std::uint64_t{0xD2511F53u} * c0, q = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = high(q) ^ c1 ^ k0;
    c2 = high(p) ^ c3 ^ k1;
    c1 = low(q);
    c3 = low(p);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Numbers one block gives: four floats or two doubles.
template <floating T>
inline constexpr int per_block = sizeof(T) == 4 ? 4 : 2;

/// Number `i` of a block, uniform in [0, 1): multiples of 2^-24 (float) or 2^-53 (double).
template <floating T>
constexpr T uniform(philox_block const& b, int i) {
  if constexpr (sizeof(T) == 4) return static_cast<T>(b.v[i] >> 8) * T(0x1p-24);
  else return static_cast<T>((std::uint64_t{b.v[2 * i]} << 32 | b.v[2 * i + 1]) >> 11) * T(0x1p-53);
}
/// Number `i` of a block, of the standard normal distribution: pairs of uniform numbers by Box and Muller.
template <floating T>
constexpr T normal(philox_block const& b, int i) {
  T const u = T(1) - kernel::uniform<T>(b, i & ~1); // in (0, 1]: its logarithm is finite
  T const angle = T(6.283185307179586476925L) * kernel::uniform<T>(b, i | 1);
  T const radius = kernel::sqrt(T(-2) * kernel::log(u));
  return radius * (i & 1 ? kernel::sin(angle) : kernel::cos(angle));
}

/// Fills `n` contiguous elements with uniform numbers of the stream; returns the number of blocks used, by which the caller advances its offset.
template <floating T>
constexpr std::uint64_t fill_uniform(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t used = 0;
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < per_block<T> && i < n; ++j) out[i++] = kernel::uniform<T>(b, j);
  }
  return used;
}
/// The same with normal numbers.
template <floating T>
constexpr std::uint64_t fill_normal(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t used = 0;
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < per_block<T> && i < n; ++j) out[i++] = kernel::normal<T>(b, j);
  }
  return used;
}
/// The same with integers in [low, high): the remainder of 64 random bits, whose bias is below 2^-32 for 32-bit ranges.
template <integral T>
constexpr std::uint64_t fill_integers(index_t n, T* out, std::int64_t low, std::int64_t high, std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t used = 0;
  auto const range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < 2 && i < n; ++j) {
      std::uint64_t const bits = std::uint64_t{b.v[2 * j]} << 32 | b.v[2 * j + 1];
      out[i++] = static_cast<T>(static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bits % range));
    }
  }
  return used;
}

} // namespace varve::kernel

// ---- varve/op/randn.hpp
namespace varve {

/// A counter-based stream of random numbers (Philox 4x32-10): element i depends on the seed and i alone, so that the compiler, threads and batches agree.
/// Static values draw from one of their own: `generator g{42}; auto w = randn<float, 64, 32>(g);`
struct generator {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

/// The generator behind this thread's `randn({n})` (`torch.manual_seed` sets it; threads are independent).
inline constinit thread_local generator default_generator{};
/// Starts this thread's random numbers anew.
inline void manual_seed(std::uint64_t seed) { default_generator = {seed, 0}; }

/// Standard normal numbers; attributes {shape, {dtype}}. Draws from `default_generator`.
inline constexpr struct randn_t {
  static constexpr auto op_name = "randn";
} randn_op{};

template <>
struct rules<randn_t> : detail::factory {
  static constexpr op_kind kind = op_kind::random;
  static tensor make(attributes const& at) {
    auto const type = static_cast<dtype>(at[1][0]);
    if (!is_floating(type)) refuse::dtype_is_not_supported("randn", name(type));
    tensor r = detail::fresh(at[0], type);
    generator& g = default_generator;
    on_dtype(type, "randn", [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) g.offset += kernel::fill_normal(r.numel(), static_cast<T*>(r.raw()), g.seed, g.offset);
    });
    return r;
  }
};

/// A tensor of standard normal numbers.
template <class = void>
tensor randn(dims const& sizes, dtype type = get_default_dtype()) {
  return detail::create(bind<randn_t>(sizes, dims{static_cast<index_t>(type)}));
}
/// A static array of standard normal numbers; advances the generator. The same seed gives the numbers that `manual_seed` and the tensor form give.
template <class T, index_t... D>
constexpr array<T, D...> randn(generator& g) {
  array<T, D...> r{};
  g.offset += kernel::fill_normal(r.size(), r.data, g.seed, g.offset);
  return r;
}

} // namespace varve

// ---- varve/transform/jvp.hpp
namespace varve {

namespace detail {
/// A static value beside one of a trace, as a constant of that.
template <class X, class Y>
constexpr auto in_world_of(X const& x, Y const& y) {
  if constexpr (traced_value<Y> && value<X> && !traced_value<X>) return as_traced(x, y);
  else return x;
}
/// Arguments with tangents at a static level.
template <int N, class Tag>
struct static_forward_scope {
  using interpreter = jvp_interpreter<static_level<N, Tag>>;
  template <class P, class T>
  static constexpr auto attach(P const& p, T const& t) {
    return tree_map(
        [](auto const& v, auto const& d) {
          auto const x = in_world_of(plain(v), d);
          auto const dx = in_world_of(plain(d), v);
          static_assert(value<decltype(x)>, "varve: jvp: primals must be values");
          if constexpr (static_and_not_floating<std::remove_cvref_t<decltype(x)>>()) {
            static_assert(never<decltype(x)>, "varve: jvp: primals must be floating; pass others through closure(f, captured...)");
            return x;
          } else {
            auto const same = same_fact(shape_of(x), shape_of(dx));
            if constexpr (!std::is_same_v<std::remove_const_t<decltype(same)>, bool>) static_assert(decltype(same)::value, "varve: jvp: a tangent must have the shape of its primal");
            auto const tangent = to(dx, type_fact(x));
            return seen<interpreter, std::remove_const_t<decltype(x)>, std::remove_const_t<decltype(tangent)>>{x, {}, tangent};
          }
        },
        p, t);
  }
  template <class Body>
  static constexpr auto run(Body const& body) {
    return body();
  }
  template <class Y>
  static constexpr auto primal(Y const& y) {
    check_exit<N, Y>();
    if constexpr (at_level<Y, N>) return y.value;
    else return y;
  }
  template <class Y>
  static constexpr auto tangent(Y const& y) {
    if constexpr (at_level<Y, N>) return y.extra;
    else return zeros_like(y);
  }
};
template <class F, class... X>
constexpr auto forward_scope() {
  if constexpr (any_dynamic<X...>) return dynamic_forward_scope<>();
  else return static_forward_scope<next_level<F, X...>, F>{};
}
} // namespace detail

/// `jvp(f, std::tuple{x...}, std::tuple{dx...})`: the pair (f(x...), derivative along dx...) by forward mode, in one run. Results may be trees; a result that does not
/// depend on the arguments has tangent zeros. TR-17.
template <class F, class... P, class... T>
constexpr auto jvp(F f, std::tuple<P...> const& primals, std::tuple<T...> const& tangents) {
  static_assert(sizeof...(P) == sizeof...(T) && sizeof...(P) > 0, "varve: jvp: primals and tangents must be tuples of the same, positive size");
  auto scope = detail::forward_scope<F, P..., T...>();
  auto const in = scope.attach(primals, tangents);
  auto const y = scope.run([&] { return detail::call_with(f, in); });
  return std::pair(tree_map([&](auto const& v) { return scope.primal(v); }, y), tree_map([&](auto const& v) { return scope.tangent(v); }, y));
}

} // namespace varve

// ---- varve/autograd/checkpoint.hpp
namespace varve {

namespace detail {
inline constinit thread_local bool checkpoint_stops_early = true;
}
/// Says whether checkpoints of this scope stop recomputing with the last value that is needed, as they do by default (CK-2). One that does not notices a function that goes on to
/// save more than the first time.
class set_checkpoint_early_stop {
public:
  explicit set_checkpoint_early_stop(bool on) : before_(detail::checkpoint_stops_early) { detail::checkpoint_stops_early = on; }
  set_checkpoint_early_stop(set_checkpoint_early_stop const&) = delete;
  set_checkpoint_early_stop& operator=(set_checkpoint_early_stop const&) = delete;
  ~set_checkpoint_early_stop() { detail::checkpoint_stops_early = before_; }

private:
  bool before_;
};
/// Modes for `checkpoint`: `forward` is on while the function runs, `again` while it is run again; either may be `none` (CK-6). `selective_checkpoint` makes such a pair.
template <class Forward, class Again>
struct checkpoint_contexts {
  Forward forward;
  Again again;
};
template <class Forward, class Again>
checkpoint_contexts(Forward, Again) -> checkpoint_contexts<Forward, Again>;

namespace detail {
/// A mode that is on, or none.
template <class M>
struct context_guard : mode_guard<M> {
  explicit context_guard(M& m) : mode_guard<M>(m) {}
};
template <>
struct context_guard<none_t const> {
  explicit context_guard(none_t const&) {}
};
template <>
struct context_guard<none_t> : context_guard<none_t const> {
  using context_guard<none_t const>::context_guard;
};
/// `checkpoint` on static values, and on tensors under transforms: a custom function that saves its arguments, and in its backward runs again.
template <class F>
struct recomputed_function {
  [[no_unique_address]] F f;
  constexpr auto forward(auto const&... x) const { return f(x...); }
  static constexpr auto context(auto const& ctx, auto const& inputs, auto const&) {
    return std::apply([&](auto const&... x) { return ctx.save_for_backward(x...).save_for_forward(x...); }, inputs);
  }
  template <class... G>
  constexpr auto backward(auto& ctx, G const&... g) const {
    auto const run = std::apply([&](auto const&... x) { return varve::vjp(f, x...); }, ctx.saved());
    if constexpr (is_tree_node<std::remove_cvref_t<decltype(run.first)>>) return run.second(std::make_tuple(g...));
    else return run.second((g, ...));
  }
  constexpr auto jvp(auto& ctx, auto const&... t) const {
    return varve::jvp(f, ctx.saved_for_forward(), std::make_tuple(t...)).second;
  }
};
struct recomputed {
  static constexpr bool generate_vmap_rule = true;
};

/// The generator of random numbers as it was: recomputation draws the same ones (CK-3).
class generator_guard {
public:
  explicit generator_guard(generator const& g) : before_(default_generator) { default_generator = g; }
  generator_guard(generator_guard const&) = delete;
  generator_guard& operator=(generator_guard const&) = delete;
  ~generator_guard() { default_generator = before_; }

private:
  generator before_;
};
/// One checkpointed call: what its forward pass would have kept, made again at the first need.
struct checkpoint_region {
  struct place {
    dtype type;
    dims sizes;
  };
  std::vector<place> places;
  std::vector<tensor> values; // made again; each is given out once
  std::uint64_t run = 0;      // of the backward pass they were made for
  generator random;
  bool stops_early = checkpoint_stops_early;
  virtual ~checkpoint_region() = default;
  virtual void run_again() = 0;

  tensor value(std::size_t k) {
    auto* const pass = backward_run<>::current();
    std::uint64_t const now = pass ? pass->id() : 0;
    if (values.empty() || run != now || !values[k].defined()) {
      values.clear();
      recompute();
      run = now;
    }
    tensor t = values[k];
    if (!pass || !pass->keeps()) values[k] = tensor();
    return t;
  }

private:
  struct enough {};
  void recompute() {
    auto keep = [this](tensor const& t) -> int {
      std::size_t const k = values.size();
      if (k == places.size() && stops_early) throw enough{};
      if (k == places.size())
        throw autograd_error(("varve: checkpoint: the recomputation is trying to save more values than the " + std::to_string(k) + " of the forward pass; the function must do the same each time").c_str());
      if (t.dtype() != places[k].type || !(t.sizes() == places[k].sizes))
        throw autograd_error(("varve: checkpoint: the recomputed value " + std::to_string(k) + " is " + name(t.dtype()) + to_string(t.sizes()) + ", but was " + name(places[k].type) + to_string(places[k].sizes) +
                              " in the forward pass; the function must do the same each time")
                                 .c_str());
      values.push_back(t.alias());
      if (values.size() == places.size() && stops_early) throw enough{}; // CK-2
      return 0;
    };
    try {
      generator_guard const same(random);
      set_grad_enabled const on(true);
      saved_tensors_hooks const hooks(keep, [](int) { return tensor(); });
      run_again();
    } catch (enough const&) {
    }
    if (values.size() != places.size())
      throw autograd_error(("varve: checkpoint: a different number of values was saved in the recomputation: " + std::to_string(values.size()) + ", but " + std::to_string(places.size()) + " in the forward pass").c_str());
  }
};
/// A call with its arguments, whose versions tell whether they are as they were.
template <class C, class F, class... X>
struct checkpointed_call final : checkpoint_region {
  C contexts;
  F f;
  std::tuple<X...> args;
  std::vector<std::uint32_t> versions;
  checkpointed_call(C const& c, F const& g, X const&... v) : contexts(c), f(g), args(v...) {
    tensors([&](tensor const& t) { versions.push_back(version_of(t)); });
  }
  template <class G>
  void tensors(G const& g) const {
    tree_for_each(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) g(v);
        },
        args);
  }
  void run_again() override {
    std::size_t k = 0;
    tensors([&](tensor const& t) {
      if (std::uint32_t const v = versions[k++]; version_of(t) != v) refuse_stale(t, "checkpoint", v);
    });
    if constexpr (requires { contexts.again.start(); }) contexts.again.start();
    context_guard<decltype(contexts.again)> const on(contexts.again);
    (void)std::apply(f, args);
  }
};
} // namespace detail

template <class A, class B, class F, class... X>
auto checkpoint(checkpoint_contexts<A, B> const& contexts, F const& f, X const&... x);

/// `checkpoint(f, x...)` is f(x...), but nothing that f computes is kept for the backward pass: f runs again then, up to the last value needed, with the same random numbers
/// (CK-1..5). On tensors it is f itself that must do the same each time (`autograd_error` otherwise); it may capture leaves. Nests to any depth, and works under `vmap`, `jvp`
/// and, as a custom function, under `grad` and on static values. Memory: that of the arguments; time: f once more.
template <class F, class... X>
constexpr auto checkpoint(F const& f, X const&... x) {
  if constexpr ((std::is_same_v<X, tensor> || ...)) {
    return checkpoint(checkpoint_contexts{none, none}, f, x...);
  } else {
    using R = detail::recomputed_function<F>;
    return custom_function_call<detail::recomputed, R>{R{f}}(detail::plain(x)...);
  }
}
/// ... with modes that are on in either run. (Tensors only; without a backward pass to come f runs without them.)
template <class A, class B, class F, class... X>
auto checkpoint(checkpoint_contexts<A, B> const& contexts, F const& f, X const&... x) {
  static_assert((std::is_same_v<X, tensor> || ...), "varve: checkpoint with modes is for tensors");
  if (!is_grad_enabled()) return f(x...);
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (l->records) return f(x...); // a level of grad keeps what it needs
  auto const r = std::make_shared<detail::checkpointed_call<checkpoint_contexts<A, B>, F, X...>>(contexts, f, x...);
  r->random = default_generator;
  auto pack = [r](tensor const& t) {
    r->places.push_back({t.dtype(), t.sizes()});
    return r->places.size() - 1;
  };
  saved_tensors_hooks const hooks(pack, [r](std::size_t k) { return r->value(k); });
  detail::context_guard<A> const on(r->contexts.forward);
  return f(x...);
}

} // namespace varve

// ---- varve/autograd/forward_ad.hpp
/// @file
/// Forward-mode derivatives of tensors without a function to transform (`torch.autograd.forward_ad`): the level of a `jvp` that lasts for a scope.
namespace varve::forward_ad {

/// In this scope tensors may be dual: `make_dual` gives them tangents, operators compute tangents along. One scope at a time: a second is `transform_error` (AG-26). Values that
/// leave the scope lose their tangents. Eager autograd goes on: primals and tangents may require gradients (AG-29).
template <class = void>
class dual_level_scope {
public:
  dual_level_scope() : layer_(prepared()), on_(this_thread_state.transforms, layer_) {
    layer_.is_dual_level = true;
    layer_.keys = {}; // part of eager autograd, whose kernels see a call once
    current() = &layer_;
  }
  dual_level_scope(dual_level_scope const&) = delete;
  dual_level_scope& operator=(dual_level_scope const&) = delete;
  ~dual_level_scope() { current() = nullptr; }

  static layer*& current() {
    static constinit thread_local layer* level = nullptr;
    return level;
  }

private:
  static layer_stack& prepared() {
    if (current()) throw transform_error("varve: dual_level: nested forward mode AD is not supported; use jvp for derivatives of higher order");
    return this_thread_state.transforms;
  }
  detail::interpreter_layer<jvp_interpreter<dynamic_level>> layer_;
  pushed on_;
};
using dual_level = dual_level_scope<>;

namespace detail {
inline layer& level_of(char const* who) {
  if (!dual_level::current()) throw transform_error((std::string("varve: ") + who + ": no dual_level is there; dual tensors live in the scope of one").c_str());
  return *dual_level::current();
}
} // namespace detail

/// A tensor with a tangent: the same memory and version counter as `primal`. Both must be floating (`value_error`), of one shape (`shape_error`) and dtype.
template <class T = tensor>
T make_dual(T const& primal, T const& tangent) {
  layer& l = detail::level_of("make_dual");
  if (!is_floating(primal.dtype())) throw value_error((std::string("varve: make_dual: the primal must be floating, not ") + name(primal.dtype())).c_str());
  if (!is_floating(tangent.dtype())) throw value_error((std::string("varve: make_dual: the tangent must be floating, not ") + name(tangent.dtype())).c_str());
  if (!(primal.sizes() == tangent.sizes())) refuse::shapes_do_not_match("make_dual (primal and tangent)", primal.sizes(), tangent.sizes());
  if (primal.dtype() != tangent.dtype()) throw value_error("varve: make_dual: primal and tangent must be of one dtype");
  if (primal.is_wrapped() && primal.layer() == l.id) throw value_error("varve: make_dual: the primal is dual already; unpack_dual it first");
  return tensor::wrap(primal, l.id, l.level, tangent, {}, primal.sizes());
}
/// What a dual tensor is made of. `tangent` is undefined where there is none.
struct unpacked_dual {
  tensor primal, tangent;
};
inline unpacked_dual unpack_dual(tensor const& t) {
  layer const& l = detail::level_of("unpack_dual");
  if (t.is_wrapped() && t.layer() == l.id) return {t.inner(), static_cast<dynamic_level const*>(l.object)->fresh(t).extra()};
  return {t, {}};
}

} // namespace varve::forward_ad

// ---- varve/autograd/gradcheck.hpp
namespace varve {

/// A gradient that does not agree with differences; the text holds both.
struct gradcheck_error : error {
  using error::error;
};
struct gradcheck_options {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
  /// Throw `gradcheck_error`; otherwise the result tells.
  bool raise_exception = true;
};

namespace detail {
template <class Y>
std::vector<tensor> outputs_of(Y const& y) {
  std::vector<tensor> r;
  if constexpr (std::is_same_v<Y, std::vector<tensor>>) r = y;
  else tree_for_each([&](auto const& v) { r.push_back(v); }, y);
  return r;
}
inline bool fail_gradcheck(gradcheck_options const& o, std::string const& text) {
  if (o.raise_exception) throw gradcheck_error(("varve: gradcheck: " + text).c_str());
  return false;
}
} // namespace detail

/// Do the gradients that eager autograd gives agree with central differences? For every element of every input that requires grad (float64), and every floating element of the
/// results of `f(inputs...)`, a value or a tree of values (AG-31). Inputs are changed while it runs and are as before afterwards, exceptions included.
template <class T = tensor, class F>
bool gradcheck(F const& f, std::vector<T> const& inputs, gradcheck_options o = {}) {
  bool any = false;
  for (auto const& x : inputs) {
    if (!x.requires_grad()) continue;
    any = true;
    if (x.dtype() != dtype::float64) throw dtype_error("varve: gradcheck: inputs that require grad must be float64; differences of less are noise");
    if (!x.is_contiguous()) throw value_error("varve: gradcheck: inputs must be contiguous; clone them first");
  }
  if (!any) throw value_error("varve: gradcheck: at least one input must require grad");
  auto const call = [&] { return detail::outputs_of(f(inputs)); };
  std::vector<T> const y = call();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_floating(y[i].dtype())) continue;
    for (index_t e = 0; e < y[i].numel(); ++e) {
      std::vector<T> analytic(inputs.size());
      if (y[i].requires_grad()) {
        T const g = zeros_like(T(y[i].detach()));
        g.template data<double>()[e] = 1;
        std::vector<autograd::target> wanted;
        std::vector<std::size_t> at;
        for (std::size_t k = 0; k < inputs.size(); ++k)
          if (inputs[k].requires_grad()) wanted.push_back(inputs[k]), at.push_back(k);
        auto const r = autograd::grad<T>({y[i]}, wanted, {g}, {.retain_graph = true}, autograd::unused::zeros);
        for (std::size_t k = 0; k < at.size(); ++k) analytic[at[k]] = contiguous(T(r[k].detach()));
      }
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k].requires_grad()) continue;
        double* const x = inputs[k].template data<double>();
        for (index_t j = 0; j < inputs[k].numel(); ++j) {
          double const kept = x[j];
          struct restore {
            double& at;
            double value;
            ~restore() { at = value; }
          } const after{x[j], kept};
          no_grad const off;
          auto const at = [&](double v) {
            x[j] = v;
            return T(contiguous(T(call()[i]))).template data<double>()[e];
          };
          double const numeric = (at(kept + o.eps) - at(kept - o.eps)) / (2 * o.eps);
          double const exact = analytic[k].defined() ? analytic[k].template data<double>()[j] : 0;
          if (!(std::abs(numeric - exact) <= o.atol + o.rtol * std::abs(numeric)))
            return detail::fail_gradcheck(o, "output " + std::to_string(i) + " element " + std::to_string(e) + " with respect to input " + std::to_string(k) + " element " + std::to_string(j) + ": numeric " +
                                                 std::to_string(numeric) + ", analytic " + std::to_string(exact));
        }
      }
    }
  }
  return true;
}
/// ... and the gradients of the gradients: `gradcheck` of the gradient of f weighted by fixed numbers.
template <class T = tensor, class F>
bool gradgradcheck(F const& f, std::vector<T> const& inputs, gradcheck_options o = {}) {
  auto const gradient = [&](std::vector<T> const& x) {
    set_grad_enabled const on(true);
    std::vector<autograd::target> y, wanted;
    std::vector<T> weights;
    for (auto const& v : detail::outputs_of(f(x))) {
      if (!is_floating(v.dtype()) || !v.requires_grad()) continue;
      T const w = ones_like(T(v.detach()));
      for (index_t k = 0; k < w.numel(); ++k) w.template data<double>()[k] = 1 + 0.37 * static_cast<double>(k % 5);
      y.push_back(v);
      weights.push_back(w);
    }
    for (auto const& v : x)
      if (v.requires_grad()) wanted.push_back(v);
    return autograd::grad<T>(y, wanted, weights, {.create_graph = true}, autograd::unused::zeros);
  };
  return gradcheck<T>([&](std::vector<T> const& x) { return gradient(x); }, inputs, o);
}

} // namespace varve

// ---- varve/autograd/multi_grad_hook.hpp
namespace varve::autograd {

/// When a hook of several tensors is called: once all gradients that a backward pass will bring are there, or with the first.
enum class multi_grad_hook_mode { all, any };

/// Removes the hooks of several tensors.
class multi_hook_handle {
public:
  explicit multi_hook_handle(std::vector<hook_handle> h) : handles_(std::move(h)) {}
  template <class = void>
  void remove() {
    for (auto& h : handles_) h.template remove<>();
  }

private:
  std::vector<hook_handle> handles_;
};

/// Calls `f` once in every backward pass that reaches one of the tensors: with the list of their gradients, undefined for those that it will not reach
/// (`multi_grad_hook_mode::all`), or with the first gradient that comes (`any`, f takes a tensor). Not at all when the pass fails before (AG-12).
template <class T = tensor, class F>
multi_hook_handle register_multi_grad_hook(std::vector<T> const& tensors, F f, multi_grad_hook_mode mode = multi_grad_hook_mode::all) {
  struct pass {
    std::uint64_t run = 0;
    std::size_t expected = 0, arrived = 0;
    std::vector<T> gradients;
  };
  struct state {
    detail::spin_lock lock;
    std::vector<pass> passes;
    std::vector<edge> at;
    F f;
    explicit state(F g) : f(std::move(g)) {}
  };
  auto const s = std::make_shared<state>(std::move(f));
  // Nodes are known by address only: the hooks hang on them, so that they live as long.
  std::vector<grad_node*> nodes;
  for (auto const& t : tensors) {
    if (!t.requires_grad()) detail::refuse_autograd("register_multi_grad_hook", "every tensor must require grad");
    nodes.push_back(detail::gradient_edge_of(t).to());
  }
  std::vector<hook_handle> handles;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    handles.push_back(tensors[k].register_hook([s, k, nodes, mode](tensor const& g) -> tensor {
      auto* const run = detail::backward_run<>::current();
      std::vector<T> complete;
      {
        detail::spin_lock::held const on(s->lock);
        pass* p = nullptr;
        for (auto& q : s->passes)
          if (q.run == run->id()) p = &q;
        if (!p) {
          if (s->passes.size() > 16) s->passes.erase(s->passes.begin()); // of passes that failed
          s->passes.push_back({run->id(), 0, 0, std::vector<T>(nodes.size())});
          p = &s->passes.back();
          for (auto* const n : nodes) p->expected += run->reaches(n);
        }
        p->gradients[k] = g;
        ++p->arrived;
        bool const now = mode == multi_grad_hook_mode::any ? p->arrived == 1 : p->arrived == p->expected;
        if (!now) return {};
        complete = p->gradients;
        if (mode == multi_grad_hook_mode::all) std::erase_if(s->passes, [&](auto const& q) { return q.run == run->id(); });
      }
      if constexpr (std::is_invocable_v<F&, std::vector<T> const&>) s->f(complete);
      else s->f(g);
      return {};
    }));
  return multi_hook_handle(std::move(handles));
}

/// Will the backward pass that runs on this thread execute a node? Asked inside of hooks (AG-6).
inline bool will_engine_execute_node(node const& n) {
  if (!detail::backward_run<>::current()) detail::refuse_autograd("will_engine_execute_node", "no backward pass runs on this thread");
  return detail::backward_run<>::will_execute(n.get());
}

} // namespace varve::autograd

// ---- varve/autograd/selective_checkpoint.hpp
namespace varve {

namespace detail {
/// Results of chosen operators, in the order of their calls.
struct kept_results {
  struct result {
    std::string op;
    tensor value;
    std::uint32_t version;
  };
  std::vector<result> all;
  std::size_t next = 0;
};
/// Views and what writes have no result of their own to keep.
inline bool may_be_kept(boxed_op const& op) { return op.table->kind != op_kind::view && op.table->kind != op_kind::mutation; }

template <class Policy>
struct keeping_mode : dispatch_mode<keeping_mode<Policy>> {
  Policy policy;
  std::shared_ptr<kept_results> kept;
  keeping_mode(Policy p, std::shared_ptr<kept_results> k) : policy(std::move(p)), kept(std::move(k)) {}
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    tensor y = op(x);
    if (may_be_kept(op) && policy(op.name())) kept->all.push_back({op.name(), y.alias(), version_of(y)});
    return y;
  }
};
template <class Policy>
struct reusing_mode : dispatch_mode<reusing_mode<Policy>> {
  Policy policy;
  std::shared_ptr<kept_results> kept;
  reusing_mode(Policy p, std::shared_ptr<kept_results> k) : policy(std::move(p)), kept(std::move(k)) {}
  void start() { kept->next = 0; }
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    if (!may_be_kept(op) || !policy(op.name())) return op(x);
    if (kept->next == kept->all.size() || kept->all[kept->next].op != op.name())
      throw autograd_error((std::string("varve: selective_checkpoint: ") + op.name() + " was not called at this place in the forward pass; the function must do the same each time").c_str());
    auto const& r = kept->all[kept->next++];
    if (version_of(r.value) != r.version) refuse_stale(r.value, op.name(), r.version);
    return r.value.alias();
  }
};
} // namespace detail

/// Modes for `checkpoint` that keep the results of the operators for which `policy(name)` is true, so that only the others run again (CK-6):
/// `checkpoint(selective_checkpoint([](std::string_view op) { return op == "matmul_op"; }), f, x)`. A kept result that is written into is found at the backward pass
/// (`autograd_error`). Views are made again. For one call of `checkpoint`.
template <class Policy>
auto selective_checkpoint(Policy policy) {
  auto const kept = std::make_shared<detail::kept_results>();
  return checkpoint_contexts{detail::keeping_mode<Policy>(policy, kept), detail::reusing_mode<Policy>(policy, kept)};
}

} // namespace varve

// ---- varve/autograd/version.hpp
namespace varve {

/// What writes into the tensors in this scope does not count as a change of their version: on every exit their counters are what they were (DT-8).
class preserve_version_counter {
public:
  preserve_version_counter(std::initializer_list<tensor> tensors) {
    for (auto const& t : tensors) saved_.push_back({t, t.version()});
  }
  explicit preserve_version_counter(tensor const& t) : preserve_version_counter({t}) {}
  preserve_version_counter(preserve_version_counter const&) = delete;
  preserve_version_counter& operator=(preserve_version_counter const&) = delete;
  ~preserve_version_counter() {
    for (auto const& s : saved_) s.value.set_version(s.version);
  }

private:
  struct saved {
    tensor value;
    std::uint32_t version;
  };
  std::vector<saved> saved_;
};
/// Sets a version counter by hand; a negative number is `value_error`.
inline void unsafe_set_version_counter(tensor const& t, index_t version) {
  if (version < 0) throw value_error(("varve: unsafe_set_version_counter: a version cannot be negative, as " + std::to_string(version) + " is").c_str());
  (void)t.version();
  t.set_version(static_cast<std::uint32_t>(version));
}
/// Counts a change that no operator made; tensors made in inference mode count none (DT-9).
inline void increment_version(tensor const& t) { t.bump_version(); }

} // namespace varve

// ---- varve/dispatch/thread_snapshot.hpp
namespace varve {

/// Everything the dispatcher keeps of a thread, taken where it is made and put in place on another by `restored` (`ThreadLocalState`, DK-10): included and excluded keys,
/// transforms, modes of all stacks, grad and inference mode. It borrows the layers: the transforms and guards it was taken under must outlive its use. Identities of new layers stay the other
/// thread's own.
class thread_snapshot {
public:
  thread_snapshot() : state_(this_thread_state) {}

  /// Is a transform at work that writes down what it sees, so that its operators must come from one thread?
  bool records() const {
    for (layer const* l = state_.transforms.top; l; l = l->below)
      if (l->records) return true;
    return false;
  }

private:
  friend class restored;
  thread_state state_;
  bool inference_ = this_thread_inference;
};

/// Puts a snapshot in place on this thread for the life of the object; afterwards all is as before, after an exception too.
class restored {
public:
  explicit restored(thread_snapshot const& s) : saved_(this_thread_state) {
    put(s.state_);
    this_thread_inference = s.inference_;
  }
  restored(restored const&) = delete;
  restored& operator=(restored const&) = delete;
  ~restored() {
    put(saved_);
    this_thread_inference = inference_;
  }

private:
  /// Numbers of layers and nodes go on.
  static void put(thread_state const& s) {
    std::uint64_t const id = this_thread_state.next_id, number = this_thread_state.next_node;
    this_thread_state = s;
    this_thread_state.next_id = id;
    this_thread_state.next_node = number;
  }
  thread_state saved_;
  bool inference_ = this_thread_inference;
};

/// A function that runs under the state of the thread that called `carry`, wherever it is called: for callbacks and `std::async`.
template <class F>
auto carry(F f) {
  return [f = static_cast<F&&>(f), s = thread_snapshot()](auto&&... x) mutable -> decltype(auto) {
    restored const here(s);
    return f(static_cast<decltype(x)&&>(x)...);
  };
}

} // namespace varve

// ---- varve/graph/equal.hpp
namespace varve {

namespace detail {
/// State of `equal`: the numbers that nodes of one graph have in the other, as far as they are known.
struct matching {
  graph_view const &a, &b;
  list<int> to, from, todo{};

  constexpr matching(graph_view const& x, graph_view const& y) : a(x), b(y), to(x.sizes.nodes, -1), from(y.sizes.nodes, -1) {}

  /// Takes two nodes for one; false when one of them has another partner already.
  constexpr bool pair(int x, int y) {
    int &p = to[x], &q = from[y];
    if (p >= 0 || q >= 0) return p == y && q == x;
    p = y, q = x;
    todo.push_back(x);
    return true;
  }
  static constexpr bool same_operator(op_handle const& x, op_handle const& y) {
    return &x == &y || (x.kind == y.kind && x.arity == y.arity && std::string_view(x.name) == y.name);
  }
  static constexpr bool same_bits(double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); }

  /// Two nodes without what they are computed from, which is paired.
  constexpr bool alike(node const& x, node const& y) {
    if (!same_operator(*x.op, *y.op) || !(x.out == y.out) || !(x.at == y.at) || x.count != y.count || x.regions_count != y.regions_count) return false;
    if (is_array_constant(x)) {
      double const *const p = a.constants + static_cast<std::ptrdiff_t>(x.value), *const q = b.constants + static_cast<std::ptrdiff_t>(y.value);
      for (index_t e = 0; e < numel(x.out.sizes); ++e)
        if (!same_bits(p[e], q[e])) return false;
    } else if (!same_bits(x.value, y.value)) {
      return false;
    }
    for (int k = 0; k < x.count; ++k)
      if (!pair(a.operand(x, k), b.operand(y, k))) return false;
    for (int k = 0; k < x.regions_count; ++k)
      if (!functions(a.regions[x.regions_first + k], b.regions[y.regions_first + k])) return false;
    return true;
  }
  constexpr bool functions(region const& f, region const& g) {
    if (f.inputs != g.inputs || f.result_count != g.result_count || f.node_count != g.node_count) return false;
    for (int k = 0; k < f.inputs; ++k)
      if (!pair(f.node_first + k, g.node_first + k)) return false;
    for (int k = 0; k < f.result_count; ++k)
      if (!pair(a.results[f.result_first + k], b.results[g.result_first + k])) return false;
    return true;
  }
  constexpr bool follow() {
    while (!todo.empty()) {
      int const x = todo.back();
      todo.pop_back();
      if (!alike(a.nodes[x], b.nodes[to[x]])) return false;
    }
    return true;
  }
};
} // namespace detail

/// Are two graphs, of either form, one up to the numbers of their nodes: the same operations with the same attributes, dtypes, shapes, constants and functions inside, on the same
/// operands in the same order, from the same inputs to the same results? Shared and repeated operations differ (`cse` makes them one). Operations that no result depends on are
/// compared in their order. Linear in the size of the graphs.
constexpr bool equal(graph_view const& g, graph_view const& h) {
  if (g.sizes.nodes != h.sizes.nodes || g.sizes.regions != h.sizes.regions) return false;
  detail::matching m(g, h);
  if (g.sizes.regions && !m.functions(g.regions[0], h.regions[0])) return false;
  if (!m.follow()) return false;
  for (std::size_t x = g.sizes.nodes, y = h.sizes.nodes;;) { // what no result depends on, the last first
    while (x > 0 && m.to[static_cast<std::ptrdiff_t>(x) - 1] >= 0) --x;
    while (y > 0 && m.from[static_cast<std::ptrdiff_t>(y) - 1] >= 0) --y;
    if (x == 0 || y == 0) return x == y;
    if (!m.pair(static_cast<int>(x) - 1, static_cast<int>(y) - 1) || !m.follow()) return false;
  }
}

} // namespace varve

// ---- varve/graph/known.hpp
namespace varve {

/// The operators that passes, planning and emission know by name. `data` is a constant of rank > 0. Every other pointwise operator is `pointwise`: its lane kernels say all there is to know.
enum class known : unsigned char {
  placeholder, constant, data, pointwise, add, sub, mul, div, neg, cheap, convert,
  sum, amax, amin, argmax, mm, reshape, permute, expand, slice, slice_backward, cat,
  gather, scatter_add, one_hot, arange, cond, scan, getitem, other
};

namespace detail {
struct known_name {
  std::string_view name;
  known what;
};
inline constexpr known_name known_pointwise[] = {
    {"add", known::add}, {"sub", known::sub}, {"mul", known::mul}, {"div", known::div}, {"neg", known::neg}, {"abs", known::cheap},
    {"maximum", known::cheap}, {"minimum", known::cheap}, {"where", known::cheap}, {"sign", known::cheap}, {"relu", known::cheap},
    {"square", known::cheap}, {"lt", known::cheap}, {"le", known::cheap}, {"gt", known::cheap}, {"ge", known::cheap}, {"eq", known::cheap},
    {"ne", known::cheap}};
/// `clone` and `detach` are expansions that expand nothing.
inline constexpr known_name known_others[] = {
    {"sum", known::sum}, {"amax", known::amax}, {"amin", known::amin}, {"argmax", known::argmax}, {"mm", known::mm}, {"reshape", known::reshape},
    {"permute", known::permute}, {"expand", known::expand}, {"slice", known::slice}, {"slice_backward", known::slice_backward}, {"cat", known::cat},
    {"gather", known::gather}, {"scatter_add", known::scatter_add}, {"one_hot", known::one_hot}, {"arange", known::arange}, {"cond", known::cond}, {"scan", known::scan}, {"getitem", known::getitem},
    {"clone", known::expand}, {"detach", known::expand}};
} // namespace detail

/// Which operator a handle is.
constexpr known identify(op_handle const& op) {
  if (op.kind == op_kind::placeholder) return known::placeholder;
  if (op.kind == op_kind::constant) return known::constant;
  if (op.kind == op_kind::convert) return known::convert;
  std::string_view const name = op.name;
  if (op.kind == op_kind::pointwise) {
    for (auto const& k : detail::known_pointwise)
      if (k.name == name) return k.what;
    return known::pointwise;
  }
  for (auto const& k : detail::known_others)
    if (k.name == name) return k.what;
  return known::other;
}

/// `identify` for every node of a graph, each distinct operator looked up once.
constexpr list<known> identify(graph const& g) {
  list<op_handle const*> seen;
  list<known> what, all;
  all.reserve(g.nodes.size());
  for (node const& n : g.nodes) {
    std::size_t k = 0;
    while (k < seen.size() && seen[k] != n.op) ++k;
    if (k == seen.size()) {
      seen.push_back(n.op);
      what.push_back(identify(*n.op));
    }
    all.push_back(what[k] == known::constant && is_array_constant(n) ? known::data : what[k]);
  }
  return all;
}

/// Does a node's value lie in memory before the program runs?
constexpr bool is_given(known k) { return k == known::placeholder || k == known::data; }
constexpr bool is_pointwise(known k) { return k >= known::pointwise && k <= known::cheap; }
constexpr bool is_reduction(known k) { return k >= known::sum && k <= known::amin; }
constexpr bool is_view(known k) { return k >= known::reshape && k <= known::cat; }

} // namespace varve

// ---- varve/graph/program.hpp
/// @file
/// What planning makes of a graph: a list of stages (loops and calls) over typed buffers, all of it data.
/// `plan.hpp` produces it, `emit.hpp` turns it into machine code. The small structures have no default values, so that an array of zeros costs the compiler
/// nothing, however large; each has its `blank_` instead.
namespace varve::loop {

/// Where a buffer lives.
enum class place : unsigned char { argument, result, arena, constant };
/// A contiguous row-major array: the `number`-th argument or result, `number` bytes into the arena, or from element `number` of the constants on.
struct buffer {
  place where;
  dtype type;
  index_t number;
  index_t elements;
};

/// Affine address in a buffer: `offset + sum(stride[l] * i[l])` over the loops, outermost first.
struct access {
  int buffer;
  index_t offset;
  index_t stride[max_rank];
};
inline constexpr access blank_access{-1, 0, {}};

/// One value computed in a loop body.
enum class step_kind : unsigned char {
  load,     // from memory
  records,  // 16 bytes of neighbours of a strided load, into as many slots
  none,     // a slot that `records` fills
  constant, // `value`
  index,    // an affine function of the loop indices
  op,       // a lane kernel
  add,      // and so on: operators of which no kernel is needed
  sub,
  mul,
  div,
  convert,  // to `type` from `from`
  sum,      // of all operands
  greatest, // of all operands
  least,    // of all operands
  dot,      // sum of products of operand pairs
  fma,      // a * b + c
  fnma      // c - a * b
};
/// Operands are slots: `s >= 0` is a value of this iteration, `~s` one computed before the innermost loop.
struct step {
  step_kind kind;
  dtype type, from;
  op_handle const* op;
  bool wide; // rounded to `type` in a body of doubles
  double value;
  int access;
  int args, count; // operands: `slots[args .. + count)`
  int in[3];       // the first of them
  int slot;
};
inline constexpr step blank_step{step_kind::load, dtype::float32, dtype::float32, nullptr, false, 0, -1, 0, 0, {}, 0};

/// What a loop body leaves behind.
enum class sink_kind : unsigned char { store, sum, greatest, least };
/// A sum may be one of products (`b` is a slot then): `acc += a * b`.
struct sink {
  sink_kind kind;
  bool product;
  /// The buffer already holds a partial result.
  bool accumulate;
  int a, b;
  int access;
  /// The accumulator lives in a register while the loops from this one inwards run; -1: in memory.
  int level;
};
inline constexpr sink blank_sink{sink_kind::store, false, false, 0, 0, -1, -1};

/// Registers a body computes in; `wide` is double with every step rounded to its own dtype.
enum class lane : unsigned char { f32, f64, wide };
/// A nest of loops with one straight-line body. `vector` is the loop that runs in SIMD registers, -1 for none.
struct body {
  lane type;
  int rank;
  index_t extent[max_rank];
  int vector;
  int unroll;
  bool paired; // two vectors step by step
  int fixed_first, fixed_count; // steps before the innermost loop
  int step_first, step_count;
  int sink_first, sink_count;
};
inline constexpr body blank_body{lane::f32, 0, {}, -1, 1, false, 0, 0, 0, 0, 0, 0};

/// One unit of execution.
enum class stage_kind : unsigned char { loops, fill, matmul, call, branch, scan };
/// `loops`: body `number`. `fill`: buffer `out` with `value`. `matmul`, `call`: call `number` on the buffers `in`.
/// `branch`: predicate `in[0]`; the buffers of operands and results are the slots from `in[1]` and `in[2]` on.
/// `scan`: likewise without a predicate; behind the results come second buffers of what is carried.
struct stage {
  stage_kind kind;
  int number;
  int out;
  int in[3];
  double value;
};
inline constexpr stage blank_stage{stage_kind::loops, 0, -1, {-1, -1, -1}, 0};

/// What a `matmul` or `call` stage does: the operator and what is known of its operands.
struct call_info {
  known what = known::other;
  meta in[3]{}, out{};
  attributes at{};
  int region = 0, operands = 0, results = 0; // of a branch: the functions are regions `region` and `region + 1`; of a scan `region`
};

/// A planned graph while it is being made.
struct program {
  list<buffer> buffers;
  list<access> accesses;
  list<step> steps;
  list<int> slots;
  list<sink> sinks;
  list<body> bodies;
  list<stage> stages;
  list<call_info> calls;
  list<meta> results;
  list<double> constants;
  index_t workspace = 0;
};

/// Array sizes of a frozen program.
struct program_sizes {
  std::size_t buffers, accesses, steps, slots, sinks, bodies, stages, calls, results, constants;
  static constexpr program_sizes of(program const& p) {
    return {p.buffers.size(), p.accesses.size(), p.steps.size(), p.slots.size(), p.sinks.size(), p.bodies.size(), p.stages.size(),
            p.calls.size(), p.results.size(), p.constants.size()};
  }
  constexpr bool holds(program_sizes const& o) const {
    return buffers >= o.buffers && accesses >= o.accesses && steps >= o.steps && slots >= o.slots && sinks >= o.sinks && bodies >= o.bodies &&
           stages >= o.stages && calls >= o.calls && results >= o.results && constants >= o.constants;
  }
};

/// A planned graph as a constant. Its arrays may be larger than what is used; `used` says how much is.
template <program_sizes S>
struct static_program {
  buffer buffers[S.buffers + 1]{};
  access accesses[S.accesses + 1]{};
  step steps[S.steps + 1]{};
  int slots[S.slots + 1]{};
  sink sinks[S.sinks + 1]{};
  body bodies[S.bodies + 1]{};
  stage stages[S.stages + 1]{};
  call_info calls[S.calls + 1]{};
  meta results[S.results + 1]{};
  double constants[S.constants + 1]{};
  program_sizes used{};
  index_t workspace = 0;
  static constexpr program_sizes sizes = S;

  /// Copies what fits; whether all did is `sizes.holds(used)`.
  constexpr explicit static_program(program const& p) : used(program_sizes::of(p)), workspace(p.workspace) {
    if (!S.holds(used)) return;
    copy(buffers, p.buffers), copy(accesses, p.accesses), copy(steps, p.steps), copy(slots, p.slots), copy(sinks, p.sinks);
    copy(bodies, p.bodies), copy(stages, p.stages), copy(calls, p.calls), copy(results, p.results), copy(constants, p.constants);
  }

private:
  template <class T>
  static constexpr void copy(T* to, list<T> const& from) {
    for (T const& x : from) *to++ = x;
  }
};

} // namespace varve::loop

// ---- varve/graph/transpose.hpp
/// @file
/// Loads of records: arrays whose elements are short rows.
namespace varve::loop {

/// Neighbours that `load_fields` takes from each record: 16 bytes of them.
template <class T>
inline constexpr int fields_at_once = 16 / static_cast<int>(sizeof(T));

namespace detail {
template <class T, int Bytes>
struct native {
  typedef T type __attribute__((vector_size(Bytes)));
};
/// One vector after the other.
template <class V, int... I>
VARVE_INLINE auto joined(V const& a, V const& b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
/// 16 bytes each from `p`, `p + step`, ... in one register of `Bytes`. In instructions that load and insert at once, which compilers do not always find.
template <int Bytes>
VARVE_INLINE auto pieces(float const* p, index_t step) {
  using V = typename native<float, Bytes>::type;
  if constexpr (Bytes == 16) {
    V r;
    std::memcpy(&r, p, sizeof r);
    return r;
#if VARVE_USE_XSIMD && defined(__AVX__)
  } else if constexpr (Bytes == 32) {
    return std::bit_cast<V>(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1));
#endif
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  } else if constexpr (Bytes == 64) {
    __m512 const half = _mm512_castps256_ps512(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1));
    return std::bit_cast<V>(_mm512_insertf32x4(_mm512_insertf32x4(half, _mm_loadu_ps(p + 2 * step), 2), _mm_loadu_ps(p + 3 * step), 3));
#endif
  } else {
    return detail::joined(detail::pieces<Bytes / 2>(p, step), detail::pieces<Bytes / 2>(p + Bytes / 32 * step, step), std::make_integer_sequence<int, Bytes / 4>{});
  }
}
/// From every 16 bytes of `a` and `b` the low (High = 0) or the high halves, in turns of `Group` elements.
template <int High, int Group, class T, class V, int... I>
VARVE_INLINE V alternate(V const& a, V const& b, std::integer_sequence<int, I...>) {
  constexpr int n = fields_at_once<T>, all = sizeof...(I);
  return __builtin_shufflevector(a, b, (I / n * n + High * n / 2 + I % n / (2 * Group) * Group + I % Group + I / Group % 2 * all)...);
}
} // namespace detail

/// `out[k]` becomes field `k` of as many records as a register has lanes, `stride` elements apart: 16 bytes of each are loaded and transposed, all shuffles within 16 bytes.
template <class T>
VARVE_INLINE void load_fields(T const* p, index_t stride, kernel::batch<T>* out) {
  constexpr int n = fields_at_once<T>, bytes = static_cast<int>(sizeof(kernel::batch<T>));
  using V = typename detail::native<T, bytes>::type;
  constexpr std::make_integer_sequence<int, bytes / static_cast<int>(sizeof(T))> every{};
  constexpr index_t floats = static_cast<index_t>(sizeof(T) / sizeof(float));
  V r[n];
#pragma GCC unroll 4
  for (int k = 0; k < n; ++k) r[k] = std::bit_cast<V>(detail::pieces<bytes>(reinterpret_cast<float const*>(p + k * stride), floats * n * stride));
  auto put = [out](int k, V const& v) { out[k] = std::bit_cast<kernel::batch<T>>(v); };
  if constexpr (n == 2) {
    put(0, detail::alternate<0, 1, T>(r[0], r[1], every)), put(1, detail::alternate<1, 1, T>(r[0], r[1], every));
  } else {
    V const a = detail::alternate<0, 1, T>(r[0], r[1], every), b = detail::alternate<0, 1, T>(r[2], r[3], every);
    V const c = detail::alternate<1, 1, T>(r[0], r[1], every), d = detail::alternate<1, 1, T>(r[2], r[3], every);
    put(0, detail::alternate<0, 2, T>(a, b, every)), put(1, detail::alternate<1, 2, T>(a, b, every));
    put(2, detail::alternate<0, 2, T>(c, d, every)), put(3, detail::alternate<1, 2, T>(c, d, every));
  }
}

} // namespace varve::loop

// ---- varve/graph/emit.hpp
/// @file
/// Emission of one step: every index, stride and kernel is a constant, so that nothing is left of it but its instruction.
/// `P` is a type with `static constexpr auto value`, a `static_program`.
namespace varve::loop {

/// Addresses of arguments, results and the arena while a program runs.
template <int Arguments, int Results>
struct memory {
  void const* argument[Arguments ? Arguments : 1];
  void* result[Results ? Results : 1];
  std::byte* arena;
};

/// The elements of a constant of program `P`, with their type: read-only data of the executable.
template <class P, int Buffer>
struct table {
  static constexpr buffer b = P::value.buffers[Buffer];
  type_of<b.type> elements[b.elements > 0 ? b.elements : 1];
  constexpr table() : elements{} {
    for (index_t k = 0; k < b.elements; ++k) elements[k] = static_cast<type_of<b.type>>(P::value.constants[b.number + k]);
  }
};
template <class P, int Buffer>
alignas(64) inline constexpr table<P, Buffer> table_of{};

/// First element of a buffer, with its type.
template <class P, int Buffer>
VARVE_INLINE auto* address(auto const& mem) {
  constexpr buffer b = P::value.buffers[Buffer];
  using T = type_of<b.type>;
  if constexpr (b.where == place::argument) return static_cast<T const*>(mem.argument[b.number]);
  else if constexpr (b.where == place::result) return static_cast<T*>(mem.result[b.number]);
  else if constexpr (b.where == place::constant) return static_cast<T const*>(table_of<P, Buffer>.elements);
  else return reinterpret_cast<T*>(mem.arena + b.number);
}

/// Which lanes of a vector count: `Live` first lanes are in memory, those before `First` were done already.
template <int Live, int First = 0>
struct lanes_in_use {
  static constexpr int live = Live, first = First;
};

namespace detail {
template <class P, int A, std::size_t... L>
VARVE_INLINE index_t position(index_t const* i, std::index_sequence<L...>) {
  constexpr access a = P::value.accesses[A];
  return (a.offset + ... + (a.stride[L] != 0 ? a.stride[L] * i[L] : 0));
}
template <class P, int A>
VARVE_INLINE index_t position(index_t const* i) {
  return position<P, A>(i, std::make_index_sequence<max_rank>{});
}

/// Elements `p[0], p[Stride], ...` as a value of the lane type.
template <class V, class M, index_t Stride, class T>
VARVE_INLINE V load_lanes(T const* p) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V>) {
    return static_cast<V>(*p);
  } else if constexpr (Stride == 0) {
    return V(static_cast<E>(*p));
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    if constexpr (M::live == kernel::lanes<E>) return kernel::load(p);
    else return kernel::load_first(p, M::live);
  } else {
    alignas(64) E all[kernel::lanes<E>]{};
    for (int l = 0; l < M::live; ++l) all[l] = static_cast<E>(p[l * Stride]);
    return kernel::load(all);
  }
}

template <class T, class E>
VARVE_INLINE T narrow(E x) {
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else if constexpr (std::is_integral_v<T> && sizeof(T) < 8) return static_cast<T>(static_cast<std::int64_t>(x));
  else return static_cast<T>(x);
}
template <class M, index_t Stride, class T, class V>
VARVE_INLINE void store_lanes(T* p, V const& v) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V>) {
    *p = narrow<T>(v);
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    if constexpr (M::live == kernel::lanes<E>) kernel::store(p, v);
    else kernel::store_first(p, M::live, v);
  } else {
    alignas(64) E all[kernel::lanes<E>];
    kernel::store(all, v);
    for (int l = 0; l < M::live; ++l) p[l * Stride] = narrow<T>(all[l]);
  }
}

/// 0, 1, 2, ... times `step`.
template <class V>
VARVE_INLINE V ramp(kernel::element_t<V> step) {
  using E = kernel::element_t<V>;
  if constexpr (kernel::is_batch<V>) {
    alignas(64) E all[kernel::lanes<E>];
    for (int l = 0; l < static_cast<int>(kernel::lanes<E>); ++l) all[l] = static_cast<E>(l) * step;
    return kernel::load(all);
  } else {
    return V(0);
  }
}

template <class V>
VARVE_INLINE V pick_greatest(V const& a, V const& b) {
  if constexpr (kernel::is_batch<V>) return kernel::maximum(a, b);
  else return a > b || a != a ? a : b;
}
template <class V>
VARVE_INLINE V pick_least(V const& a, V const& b) {
  if constexpr (kernel::is_batch<V>) return kernel::minimum(a, b);
  else return a < b || a != a ? a : b;
}
template <class V>
VARVE_INLINE V multiply_add(V const& a, V const& b, V const& c) {
  if constexpr (kernel::is_batch<V>) return kernel::fma<kernel::element_t<V>>(a, b, c);
  else return a * b + c;
}
/// c - a * b
template <class V>
VARVE_INLINE V subtract_product(V const& a, V const& b, V const& c) {
  if constexpr (kernel::is_batch<V>) return kernel::fnma<kernel::element_t<V>>(a, b, c);
  else return c - a * b;
}
/// Rounds a double to the dtype it stands for.
template <dtype D>
VARVE_INLINE double rounded(double x) {
  if constexpr (D == dtype::float64) return x;
  else return static_cast<double>(narrow<type_of<D>>(x));
}
template <dtype To, dtype From, class V>
VARVE_INLINE V converted(V const& x) {
  using E = kernel::element_t<V>;
  if constexpr (To == From || From == dtype::bool_ || (is_floating(To) && !std::is_same_v<E, double>)) {
    return x;
  } else if constexpr (To == dtype::bool_) {
    if constexpr (kernel::is_batch<V>) return kernel::from_mask<E>(kernel::differ<E>(x, V(E(0))));
    else return x != 0 ? E(1) : E(0);
  } else if constexpr (kernel::is_batch<V>) {
    if constexpr (To == dtype::float64) return x;
    else return kernel::lanewise<E>([](E e) { return static_cast<E>(narrow<type_of<To>>(e)); }, x);
  } else {
    return static_cast<E>(narrow<type_of<To>>(x));
  }
}
} // namespace detail

namespace detail {
/// An operand: a value of this iteration, or one computed before the innermost loop. A function of little, since a step is written thousands of times.
template <class V>
VARVE_INLINE V const& pick(V const* fixed, V const* now, int slot) {
  return slot >= 0 ? now[slot] : fixed[~slot];
}
/// Arithmetic without the way through the operator's kernel, which the compiler would have to inline each time.
template <step_kind Kind, class V>
VARVE_INLINE V arithmetic(V const& a, V const& b) {
#if VARVE_USE_XSIMD && (defined(__x86_64__) || defined(__aarch64__))
  if constexpr (kernel::is_batch<V>) {
    if constexpr (Kind == step_kind::add) return V(a.data + b.data);
    else if constexpr (Kind == step_kind::sub) return V(a.data - b.data);
    else if constexpr (Kind == step_kind::mul) return V(a.data * b.data);
    else return V(a.data / b.data);
  } else
#endif
  {
    if constexpr (Kind == step_kind::add) return a + b;
    else if constexpr (Kind == step_kind::sub) return a - b;
    else if constexpr (Kind == step_kind::mul) return a * b;
    else return a / b;
  }
}
/// The kernel of an operator on the lane type.
template <class V>
constexpr auto kernel_of(op_handle const& op) {
  if constexpr (std::is_same_v<V, float>) return op.lane_f32;
  else if constexpr (std::is_same_v<V, double>) return op.lane_f64;
  else if constexpr (std::is_same_v<kernel::element_t<V>, float>) return op.simd_f32;
  else return op.simd_f64;
}
/// Operand `K` of a step with many.
template <class P, int S, int K, class V>
VARVE_INLINE V const& term(V const* fixed, V const* now) {
  constexpr int slot = P::value.slots[P::value.steps[S].args + K];
  if constexpr (slot >= 0) return now[slot];
  else return fixed[~slot];
}
/// An operator by its lane kernel.
template <class P, int S, class V, int... K>
VARVE_INLINE V apply([[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now, std::integer_sequence<int, K...>) {
  constexpr step s = P::value.steps[S];
  if constexpr (s.wide && s.from == dtype::float32) {
    constexpr auto k = s.op->lane_f32;
    float const a[] = {static_cast<float>(term<P, S, K>(fixed, now))..., 0.0f};
    return k(a);
  } else {
    constexpr auto k = kernel_of<V>(*s.op);
    V const a[] = {term<P, S, K>(fixed, now)..., V(kernel::element_t<V>(0))};
    if constexpr (s.wide) return rounded<s.type>(k(a));
    else return k(a);
  }
}
/// One of many terms goes to one of two partial results: half the latency.
template <step_kind Kind, int K, class V>
VARVE_INLINE void take(V* r, V const& x) {
  if constexpr (K < 2) r[K] = x;
  else if constexpr (Kind == step_kind::sum) r[K % 2] = r[K % 2] + x;
  else if constexpr (Kind == step_kind::greatest) r[K % 2] = pick_greatest(r[K % 2], x);
  else r[K % 2] = pick_least(r[K % 2], x);
}
template <int K, class V>
VARVE_INLINE void take_product(V* r, V const& a, V const& b) {
  if constexpr (K < 2) r[K] = a * b;
  else r[K % 2] = multiply_add<V>(a, b, r[K % 2]);
}
template <class P, int S, class V, int... K>
VARVE_INLINE V gathered([[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now, std::integer_sequence<int, K...>) {
  constexpr step_kind kind = P::value.steps[S].kind;
  V r[2];
  if constexpr (kind == step_kind::dot) (take_product<K>(r, term<P, S, 2 * K>(fixed, now), term<P, S, 2 * K + 1>(fixed, now)), ...);
  else (take<kind, K>(r, term<P, S, K>(fixed, now)), ...);
  if constexpr (sizeof...(K) > 1) {
    if constexpr (kind == step_kind::sum || kind == step_kind::dot) return r[0] + r[1];
    else if constexpr (kind == step_kind::greatest) return pick_greatest(r[0], r[1]);
    else return pick_least(r[0], r[1]);
  } else {
    return r[0];
  }
}
} // namespace detail

/// Computes step `S` into `now[Slot]` from the values before the loop (`fixed`) and of this iteration (`now`).
template <class P, int S, int Slot, int Vector, class M, class V>
VARVE_INLINE void compute([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i, V const* fixed, V* now) {
  constexpr step s = P::value.steps[S];
  using E = kernel::element_t<V>;
  if constexpr (s.kind == step_kind::none) {
  } else if constexpr (s.kind >= step_kind::add && s.kind <= step_kind::div) {
    now[Slot] = detail::arithmetic<s.kind>(detail::pick(fixed, now, s.in[0]), detail::pick(fixed, now, s.in[1]));
  } else if constexpr (s.kind == step_kind::fma) {
    now[Slot] = detail::multiply_add<V>(detail::pick(fixed, now, s.in[0]), detail::pick(fixed, now, s.in[1]), detail::pick(fixed, now, s.in[2]));
  } else if constexpr (s.kind == step_kind::fnma) {
    now[Slot] = detail::subtract_product<V>(detail::pick(fixed, now, s.in[0]), detail::pick(fixed, now, s.in[1]), detail::pick(fixed, now, s.in[2]));
  } else if constexpr (s.kind == step_kind::op && s.count == 1 && !s.wide) {
    constexpr auto k = detail::kernel_of<V>(*s.op);
    now[Slot] = k(&detail::pick(fixed, now, s.in[0]));
  } else if constexpr (s.kind == step_kind::op && s.count == 2 && !s.wide) {
    constexpr auto k = detail::kernel_of<V>(*s.op);
    V const a[] = {detail::pick(fixed, now, s.in[0]), detail::pick(fixed, now, s.in[1])};
    now[Slot] = k(a);
  } else if constexpr (s.kind == step_kind::op) {
    now[Slot] = detail::apply<P, S>(fixed, now, std::make_integer_sequence<int, s.count>{});
  } else if constexpr (s.kind == step_kind::load) {
    constexpr access a = P::value.accesses[s.access];
    constexpr index_t stride = Vector >= 0 ? a.stride[Vector >= 0 ? Vector : 0] : 0;
    now[Slot] = detail::load_lanes<V, M, stride>(address<P, a.buffer>(mem) + detail::position<P, s.access>(i));
  } else if constexpr (s.kind == step_kind::records) {
    constexpr access a = P::value.accesses[s.access];
    E const* p = address<P, a.buffer>(mem) + detail::position<P, s.access>(i);
    load_fields<E>(p, a.stride[Vector], now + Slot);
  } else if constexpr (s.kind == step_kind::index) {
    constexpr access a = P::value.accesses[s.access];
    constexpr index_t stride = Vector >= 0 ? a.stride[Vector >= 0 ? Vector : 0] : 0;
    V x = V(static_cast<E>(detail::position<P, s.access>(i)));
    if constexpr (stride != 0) x = x + detail::ramp<V>(static_cast<E>(stride));
    if constexpr (s.count == 0) now[Slot] = x;
    else if constexpr (kernel::is_batch<V>) now[Slot] = kernel::from_mask<E>(detail::pick(fixed, now, s.in[0]) == x);
    else now[Slot] = detail::pick(fixed, now, s.in[0]) == x ? V(1) : V(0);
  } else if constexpr (s.kind == step_kind::constant) {
    now[Slot] = V(static_cast<E>(s.value));
  } else if constexpr (s.kind == step_kind::convert) {
    now[Slot] = detail::converted<s.type, s.from>(detail::pick(fixed, now, s.in[0]));
  } else {
    now[Slot] = detail::gathered<P, S>(fixed, now, std::make_integer_sequence<int, (s.kind == step_kind::dot ? s.count / 2 : s.count)>{});
  }
}

} // namespace varve::loop

// ---- varve/kernel/matmul_block.hpp
/// @file
/// The register block of every matrix product: a few rows of C by one or two batches, accumulated in registers over the inner dimension.
namespace varve::kernel {

namespace detail {
/// Vector registers of the machine: 32 for AVX-512 and 64-bit ARM, else 16.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif
/// Rows of a block of two batches: the accumulators leave room for a row of B and an element of A.
inline constexpr int block_rows = registers == 32 ? 12 : 6;
/// Columns of a block.
template <class T>
inline constexpr index_t block_cols = 2 * static_cast<index_t>(lanes<T>);

/// Copies or adds the valid columns of a block.
template <class T>
VARVE_NOINLINE void merge_tile(index_t rows, index_t cols, T const* tile, index_t tile_row, T* c, index_t c_row, bool accumulate) {
  constexpr index_t L = lanes<T>;
  for (; rows > 0; --rows, tile += tile_row, c += c_row) {
    index_t j = 0;
    for (; j + L <= cols; j += L) kernel::store(c + j, accumulate ? batch<T>(kernel::load(c + j) + kernel::load(tile + j)) : kernel::load(tile + j));
    for (; j < cols; ++j) c[j] = accumulate ? c[j] + tile[j] : tile[j];
  }
}

/// c[i, j] = sum_p a[i, p] b[p, j] (added to c if `accumulate`) for `Rows` rows and `cols` <= Batches * lanes columns. All the columns of `b` are read.
template <class T, int Rows, int Batches>
VARVE_INLINE void multiply_block(index_t k, T const* a, index_t a_row, index_t a_col, T const* b, index_t b_row, T* c, index_t c_row, index_t cols,
                                 bool accumulate) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  V sum[Rows][Batches];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) sum[i][j] = V(T(0));
  for (index_t p = 0; p < k; ++p) {
    V row[Batches];
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) row[j] = kernel::load(b + j * L);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      V const x(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < Batches; ++j) sum[i][j] = kernel::fma<T>(x, row[j], sum[i][j]);
    }
    a += a_col;
    b += b_row;
  }
  bool const whole = cols == Batches * L && !accumulate;
  alignas(64) T tile[Rows * Batches * L];
  T* const to = whole ? c : tile;
  index_t const to_row = whole ? c_row : Batches * L;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) kernel::store(to + i * to_row + j * L, sum[i][j]);
  if (!whole) detail::merge_tile(Rows, cols, tile, Batches * L, c, c_row, accumulate);
}
} // namespace detail

} // namespace varve::kernel

// ---- varve/kernel/matmul.hpp
/// @file
/// Matrix products of run-time size with any strides.
namespace varve::kernel {

/// One matrix operand: element (i, j) is data[i * row + j * col]. A transpose is an exchange of the strides.
template <class T>
struct matrix {
  T* data;
  index_t row, col;
  matrix at(index_t i, index_t j) const
    requires(!std::is_void_v<T>)
  {
    return {data + i * row + j * col, row, col};
  }
  matrix transposed() const { return {data, col, row}; }
};

namespace detail {
/// Inner dimension, and rows of A, taken at a time: a panel of B stays in the first cache, a block of A in the second.
inline constexpr index_t inner_block = 256, outer_block = 240;

/// Blocks of `Rows` rows from row `i` on, as long as they fit; returns the first row left over.
template <class T, int Rows>
VARVE_NOINLINE index_t multiply_rows(index_t i, index_t m, index_t k, matrix<T const> a, T const* b, index_t b_row, matrix<T> c, index_t cols, bool accumulate) {
  for (; i + Rows <= m; i += Rows) detail::multiply_block<T, Rows, 2>(k, a.data + i * a.row, a.row, a.col, b, b_row, c.data + i * c.row, c.row, cols, accumulate);
  return i;
}
/// The same with A packed: the rows of a block lie side by side.
template <class T>
VARVE_NOINLINE index_t multiply_packed_rows(index_t m, index_t k, T const* a, T const* b, index_t b_row, matrix<T> c, index_t cols, bool accumulate) {
  index_t i = 0;
  for (; i + block_rows <= m; i += block_rows)
    detail::multiply_block<T, block_rows, 2>(k, a + i * k, 1, block_rows, b, b_row, c.data + i * c.row, c.row, cols, accumulate);
  return i;
}
template <class T>
VARVE_NOINLINE void pack_rows(index_t m, index_t k, matrix<T const> a, T* to) {
  for (index_t i = 0; i + block_rows <= m; i += block_rows, to += block_rows * k)
    for (index_t p = 0; p < k; ++p)
      for (int r = 0; r < block_rows; ++r) to[p * block_rows + r] = a.data[(i + r) * a.row + p * a.col];
}
/// A panel of B, its rows side by side, missing columns 0.
template <class T>
VARVE_NOINLINE void pack_panel(index_t k, index_t cols, matrix<T const> b, T* to) {
  constexpr index_t W = block_cols<T>, L = lanes<T>;
  if (b.col == 1) {
    for (index_t p = 0; p < k; ++p)
      for (index_t j = 0; j < W; j += L) {
        T const* const from = b.data + p * b.row + j;
        kernel::store(to + p * W + j, cols - j >= L ? kernel::load(from) : cols > j ? kernel::load_first(from, static_cast<std::size_t>(cols - j)) : batch<T>(T(0)));
      }
    return;
  }
  index_t p = 0;
  if (b.row == 1 && cols == W) // squares transposed in registers
    for (; p + L <= k; p += L)
      for (index_t j = 0; j < W; j += L) {
        batch<T> r[lanes<T>];
        for (index_t i = 0; i < L; ++i) r[i] = kernel::load(b.data + p + (j + i) * b.col);
        kernel::transpose<T>(r);
        for (index_t i = 0; i < L; ++i) kernel::store(to + (p + i) * W + j, r[i]);
      }
  for (index_t j = 0; j < W; ++j)
    for (index_t q = p; q < k; ++q) to[q * W + j] = j < cols ? b.data[q * b.row + j * b.col] : T(0);
}

/// y[i] (+)= sum_p a[i, p] x[p].
template <class T>
VARVE_NOINLINE void multiply_vector(index_t m, index_t k, matrix<T const> a, T const* x, index_t x_step, T* y, index_t y_step, bool accumulate) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  index_t i = 0;
  if (a.row == 1 && y_step == 1) { // columns are contiguous: combine them
    constexpr index_t W = 4 * L;
    for (; i + W <= m; i += W) {
      V s[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
      for (index_t p = 0; p < k; ++p)
        for (int j = 0; j < 4; ++j) s[j] = kernel::fma<T>(V(x[p * x_step]), kernel::load(a.data + i + j * L + p * a.col), s[j]);
      for (int j = 0; j < 4; ++j) kernel::store(y + i + j * L, accumulate ? V(kernel::load(y + i + j * L) + s[j]) : s[j]);
    }
    for (; i < m; i += L) {
      auto const n = static_cast<std::size_t>(m - i < L ? m - i : L);
      bool const whole = n == lanes<T>;
      V s(T(0));
      for (index_t p = 0; p < k; ++p) {
        T const* const from = a.data + i + p * a.col;
        s = kernel::fma<T>(V(x[p * x_step]), whole ? kernel::load(from) : kernel::load_first(from, n), s);
      }
      if (whole) kernel::store(y + i, accumulate ? V(kernel::load(y + i) + s) : s);
      else kernel::store_first(y + i, n, accumulate ? V(kernel::load_first(y + i, n) + s) : s);
    }
    return;
  }
  bool const rows = a.col == 1 && x_step == 1;
  for (; i < m; ++i) {
    T const* const p = a.data + i * a.row;
    V s(T(0)), t(T(0));
    index_t j = 0;
    if (rows) {
      for (; j + 2 * L <= k; j += 2 * L) {
        s = kernel::fma<T>(kernel::load(p + j), kernel::load(x + j), s);
        t = kernel::fma<T>(kernel::load(p + j + L), kernel::load(x + j + L), t);
      }
      for (; j + L <= k; j += L) s = kernel::fma<T>(kernel::load(p + j), kernel::load(x + j), s);
      if (j < k) t = kernel::fma<T>(kernel::load_first(p + j, static_cast<std::size_t>(k - j)), kernel::load_first(x + j, static_cast<std::size_t>(k - j)), t), j = k;
    }
    T r = kernel::reduce_sum(V(s + t));
    for (; j < k; ++j) r += p[j * a.col] * x[j * x_step];
    y[i * y_step] = accumulate ? y[i * y_step] + r : r;
  }
}

template <class T>
VARVE_NOINLINE void multiply_blocked(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c, bool accumulate) {
  constexpr index_t W = block_cols<T>;
  alignas(64) T panel[inner_block * W];
  bool const pack = m * k > 128 * 1024 && m >= block_rows; // beyond, A no longer stays in the second cache beside B
  T* const packed = pack ? static_cast<T*>(std::malloc(sizeof(T) * static_cast<std::size_t>(outer_block * inner_block))) : nullptr;
  for (index_t p = 0; p < k; p += inner_block) {
    index_t const kb = k - p < inner_block ? k - p : inner_block;
    bool const add = accumulate || p > 0;
    index_t const step = packed ? outer_block : m;
    for (index_t i = 0; i < m; i += step) {
      index_t const mb = m - i < step ? m - i : step;
      matrix<T const> const rows = a.at(i, p);
      if (packed) detail::pack_rows(mb, kb, rows, packed);
      for (index_t j = 0; j < n; j += W) {
        index_t const cols = n - j < W ? n - j : W;
        matrix<T const> const from = b.at(p, j);
        bool const direct = from.col == 1 && cols == W && mb <= 2 * block_rows; // too few rows to repay a copy
        if (!direct) detail::pack_panel(kb, cols, from, panel);
        T const* const q = direct ? from.data : panel;
        index_t const q_row = direct ? from.row : W;
        matrix<T> const to = c.at(i, j);
        index_t r = packed ? detail::multiply_packed_rows(mb, kb, packed, q, q_row, to, cols, add)
                           : detail::multiply_rows<T, block_rows>(0, mb, kb, rows, q, q_row, to, cols, add);
        r = detail::multiply_rows<T, block_rows / 3>(r, mb, kb, rows, q, q_row, to, cols, add);
        detail::multiply_rows<T, 1>(r, mb, kb, rows, q, q_row, to, cols, add);
      }
    }
  }
  std::free(packed);
}
/// A few dozen products, for which a block is too much.
template <class T>
VARVE_NOINLINE void multiply_tiny(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c, bool accumulate) {
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      T s(0);
      for (index_t p = 0; p < k; ++p) s += a.data[i * a.row + p * a.col] * b.data[p * b.row + j * b.col];
      T& to = c.data[i * c.row + j * c.col];
      to = accumulate ? to + s : s;
    }
}
template <class T>
void multiply_simple(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c, bool accumulate) {
  for (index_t i = 0; i < m; ++i) {
    T* const row = c.data + i * c.row;
    for (index_t j = 0; j < n && !accumulate; ++j) row[j * c.col] = T(0);
    for (index_t p = 0; p < k; ++p)
      for (index_t j = 0; j < n; ++j) row[j * c.col] = kernel::add(row[j * c.col], kernel::mul(a.data[i * a.row + p * a.col], b.data[p * b.row + j * b.col]));
  }
}
} // namespace detail

/// c[m, n] = a[m, k] b[k, n], or added to c if `accumulate`. Any strides; `c` may not overlap the inputs. k = 0 gives zeros. Floating products are blocked for
/// registers and caches (scratch: a panel on the stack, beyond 128 Ki elements of A also 240 KiB on the heap, without which it goes on); integers wrap.
template <class T>
void matmul(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c, bool accumulate = false) {
  if (m == 0 || n == 0) return;
  if constexpr (!floating_lane<T>) detail::multiply_simple(m, n, k, a, b, c, accumulate);
  else {
    if (m * n * k <= 64) return detail::multiply_tiny(m, n, k, a, b, c, accumulate);
    if (n == 1) return detail::multiply_vector<T>(m, k, a, b.data, b.row, c.data, c.row, accumulate);
    if (m == 1) return detail::multiply_vector<T>(n, k, b.transposed(), a.data, a.col, c.data, c.col, accumulate);
    if (k == 0 || (c.col != 1 && c.row != 1)) return detail::multiply_simple(m, n, k, a, b, c, accumulate);
    if (c.col != 1) return detail::multiply_blocked<T>(n, m, k, b.transposed(), a.transposed(), c.transposed(), accumulate); // (a b)^T = b^T a^T
    detail::multiply_blocked<T>(m, n, k, a, b, c, accumulate);
  }
}

/// The same by dtype (`dtype_error` for bool and the dtypes without kernels); strides in elements.
template <class = void>
VARVE_NOINLINE void matmul(dtype type, index_t m, index_t n, index_t k, matrix<void const> a, matrix<void const> b, matrix<void> c, bool accumulate = false) {
  if (type == dtype::bool_) refuse::dtype_is_not_supported("matmul", name(type));
  on_dtype(type, "matmul", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      kernel::matmul<T>(m, n, k, {static_cast<T const*>(a.data), a.row, a.col}, {static_cast<T const*>(b.data), b.row, b.col}, {static_cast<T*>(c.data), c.row, c.col},
                        accumulate);
  });
}

} // namespace varve::kernel

// ---- varve/kernel/matmul_fixed.hpp
/// @file
/// Matrix products whose sizes the compiler knows: straight register blocks, no heap, no packing but a transposition of B through registers.
namespace varve::kernel {

namespace detail {
/// Rows of a block of `Batches` batches that fill the registers but for a row of B and an element of A.
constexpr int fixed_rows(int batches) { return (registers - 2 - batches) / batches; }

/// A product at a column of C, with at most four batches; `b` may be read up to `b_end`.
template <class T, index_t M, index_t K, index_t A_row, index_t A_col, index_t B_row, index_t C_row, int Rows, int Batches, index_t Cols>
VARVE_INLINE void fixed_block(T const* a, T const* b, T const* b_end, T* c) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  constexpr index_t rest = Cols % L; // columns of the last batch when it is not full
  V sum[Rows][Batches];
#pragma GCC unroll 32
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) sum[i][j] = V(T(0));
  // A row of B whose last batch would end past the matrix is loaded in part; elsewhere the surplus lanes see the next row and are dropped in the end.
  auto step = [&](index_t p, bool partial) __attribute__((always_inline)) {
    V row[Batches];
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j)
      row[j] = rest != 0 && j == Batches - 1 && partial ? kernel::load_first(b + p * B_row + j * L, static_cast<std::size_t>(rest)) : kernel::load(b + p * B_row + j * L);
#pragma GCC unroll 32
    for (int i = 0; i < Rows; ++i) {
      V const x(a[i * A_row + p * A_col]);
#pragma GCC unroll 4
      for (int j = 0; j < Batches; ++j) sum[i][j] = kernel::fma<T>(x, row[j], sum[i][j]);
    }
  };
  index_t p = 0;
  if constexpr (rest == 0) {
    for (; p < K; ++p) step(p, false);
  } else {
    index_t const safe = (b_end - b) - Batches * L; // greatest distance at which whole rows may be read
    for (; p < K && p * B_row <= safe; ++p) step(p, false);
    for (; p < K; ++p) step(p, true);
  }
#pragma GCC unroll 32
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) {
      if (rest != 0 && j == Batches - 1) kernel::store_first(c + i * C_row + j * L, static_cast<std::size_t>(rest), sum[i][j]);
      else kernel::store(c + i * C_row + j * L, sum[i][j]);
    }
}
/// All rows of C at up to `Batches` batches of columns.
template <class T, index_t M, index_t K, index_t A_row, index_t A_col, index_t B_row, index_t C_row, index_t Cols>
VARVE_INLINE void fixed_columns(T const* a, T const* b, T const* b_end, T* c) {
  constexpr int batches = static_cast<int>((Cols + lanes<T> - 1) / lanes<T>);
  constexpr index_t most = fixed_rows(batches), blocks = (M + most - 1) / most, rows = (M + blocks - 1) / blocks; // blocks of nearly equal size
  constexpr index_t rest = M % rows;
  index_t i = 0;
  for (; i + rows <= M; i += rows)
    fixed_block<T, M, K, A_row, A_col, B_row, C_row, static_cast<int>(rows), batches, Cols>(a + i * A_row, b, b_end, c + i * C_row);
  if constexpr (rest != 0) fixed_block<T, M, K, A_row, A_col, B_row, C_row, static_cast<int>(rest), batches, Cols>(a + i * A_row, b, b_end, c + i * C_row);
}
/// B row-major with rows `B_row` apart.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col, index_t B_row>
VARVE_INLINE void fixed_product(T const* a, T const* b, T const* b_end, T* c) {
  constexpr index_t W = 2 * static_cast<index_t>(lanes<T>), rest = N % W;
  index_t j = 0;
  for (; j + W <= N; j += W) fixed_columns<T, M, K, A_row, A_col, B_row, N, W>(a, b + j, b_end, c + j);
  if constexpr (rest != 0) fixed_columns<T, M, K, A_row, A_col, B_row, N, rest>(a, b + j, b_end, c + j);
}
/// Sums of products of contiguous rows of A and of the transpose of B: for few rows of A, where a transposition would not pay.
template <class T, index_t M, index_t K, index_t N, index_t C_row, index_t C_col>
VARVE_INLINE void fixed_dots(T const* a, T const* b, T* c) {
  constexpr index_t L = lanes<T>;
  constexpr auto rest = static_cast<std::size_t>(K % L);
  for (index_t j = 0; j < N; ++j)
    for (index_t i = 0; i < M; ++i) {
      batch<T> s(T(0)), t(T(0));
      index_t p = 0;
      for (; p + 2 * L <= K; p += 2 * L) {
        s = kernel::fma<T>(kernel::load(a + i * K + p), kernel::load(b + j * K + p), s);
        t = kernel::fma<T>(kernel::load(a + i * K + p + L), kernel::load(b + j * K + p + L), t);
      }
      if constexpr (K % (2 * L) >= L) s = kernel::fma<T>(kernel::load(a + i * K + p), kernel::load(b + j * K + p), s), p += L;
      if constexpr (rest != 0) t = kernel::fma<T>(kernel::load_first(a + i * K + p, rest), kernel::load_first(b + j * K + p, rest), t);
      c[i * C_row + j * C_col] = kernel::reduce_sum(batch<T>(s + t));
    }
}
/// to[p, j] = b[j, p]: squares in registers, the edges element by element.
template <class T, index_t K, index_t N, index_t Row>
VARVE_INLINE void fixed_transpose(T const* b, T* to) {
  constexpr index_t L = lanes<T>, whole_k = K / L * L, whole_n = N / L * L;
  for (index_t j = 0; j < whole_n; j += L)
    for (index_t p = 0; p < whole_k; p += L) {
      batch<T> r[lanes<T>];
#pragma GCC unroll 16
      for (index_t i = 0; i < L; ++i) r[i] = kernel::load(b + (j + i) * K + p);
      kernel::transpose<T>(r);
#pragma GCC unroll 16
      for (index_t i = 0; i < L; ++i) kernel::store(to + (p + i) * Row + j, r[i]);
    }
  for (index_t j = 0; j < N; ++j)
    for (index_t p = j < whole_n ? whole_k : 0; p < K; ++p) to[p * Row + j] = b[j * K + p];
}
/// Sizes below a batch: rows of C as vectors of just their width.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col>
VARVE_INLINE void narrow_product(T const* a, T const* b, T* c) {
  typedef T row __attribute__((vector_size(N * sizeof(T))));
#pragma GCC unroll 8
  for (index_t i = 0; i < M; ++i) {
    row s{};
#pragma GCC unroll 8
    for (index_t p = 0; p < K; ++p) {
      row r;
      std::memcpy(&r, b + p * N, sizeof(row));
      s += a[i * A_row + p * A_col] * r;
    }
    std::memcpy(c + i * N, &s, sizeof(row));
  }
}
/// A few dozen products: plain loops that the compiler unrolls.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col, index_t B_row, index_t B_col>
VARVE_INLINE void tiny_product(T const* a, T const* b, T* c) {
  T s[M * N];
#pragma GCC unroll 16
  for (index_t i = 0; i < M; ++i)
#pragma GCC unroll 16
    for (index_t j = 0; j < N; ++j) {
      T sum = a[i * A_row] * b[j * B_col];
#pragma GCC unroll 16
      for (index_t p = 1; p < K; ++p) sum += a[i * A_row + p * A_col] * b[p * B_row + j * B_col];
      s[i * N + j] = sum;
    }
  std::memcpy(c, s, sizeof(s));
}
} // namespace detail

/// c[M, N] = a b, all row-major and contiguous: `a` is [M, K], or [K, M] if TA; `b` is [K, N], or [N, K] if TB. float or double. `c` may not overlap the inputs.
template <floating_lane T, index_t M, index_t K, index_t N, bool TA = false, bool TB = false>
void matmul_fixed(T const* a, T const* b, T* c) {
  constexpr index_t a_row = TA ? 1 : K, a_col = TA ? M : 1, L = lanes<T>;
  if constexpr (M == 0 || N == 0) return;
  else if constexpr (K == 0) {
    for (index_t i = 0; i < M * N; ++i) c[i] = T(0);
  } else if constexpr (N < L && N > 1 && (N & (N - 1)) == 0 && !TB) {
    detail::narrow_product<T, M, K, N, a_row, a_col>(a, b, c);
  } else if constexpr (N < L && M * K * N <= 128) {
    detail::tiny_product<T, M, K, N, a_row, a_col, TB ? 1 : N, TB ? K : 1>(a, b, c);
  } else if constexpr (N == 1 && TA) { // a column of results: combine the contiguous rows of the transpose of a
    detail::fixed_product<T, 1, K, M, 0, 1, M>(b, a, a + M * K, c);
  } else if constexpr ((N == 1 || TB) && !TA && (M <= 2 || N <= 2)) {
    detail::fixed_dots<T, M, K, N, N, 1>(a, b, c);
  } else if constexpr (TB) {
    constexpr index_t row = (N + L - 1) / L * L; // rows padded to whole batches
    alignas(64) T t[K * row];
    detail::fixed_transpose<T, K, N, row>(b, t);
    detail::fixed_product<T, M, K, N, a_row, a_col, row>(a, t, t + K * row, c);
  } else {
    detail::fixed_product<T, M, K, N, a_row, a_col, N>(a, b, b + K * N, c);
  }
}

} // namespace varve::kernel

// ---- varve/graph/call.hpp
/// @file
/// Operators with loops of their own: products of matrices, and what addresses memory by values.
namespace varve::loop {

namespace detail {
/// Start of a slice of one axis: sizes before, of and after the axis.
struct split_axis {
  index_t outer = 1, size = 1, inner = 1;
  constexpr split_axis(dims const& s, index_t axis) {
    for (int k = 0; k < s.n; ++k) (k < axis ? outer : k == axis ? size : inner) *= s.v[k];
  }
};
} // namespace detail

/// c[M, N] = a b for sizes known to the compiler; `TA`, `TB`: the operand is stored transposed. Large products go to the blocked kernel.
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB>
VARVE_NOINLINE void multiply(T const* a, T const* b, T* c) {
  static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  if constexpr (!std::is_floating_point_v<T> || M * K * N > 1 << 18) kernel::matmul<T>(M, N, K, {a, TA ? 1 : K, TA ? M : 1}, {b, TB ? 1 : N, TB ? K : 1}, {c, N, 1});
  else kernel::matmul_fixed<T, M, K, N, TA, TB>(a, b, c);
}

/// Executes the call stage `S` of program `P`.
template <class P, int S>
VARVE_INLINE void call(auto const& mem) {
  constexpr stage s = P::value.stages[S];
  constexpr call_info c = P::value.calls[s.number];
  auto* out = address<P, s.out>(mem);
  using T = std::remove_reference_t<decltype(*out)>;
  auto const* a = address<P, s.in[0]>(mem);
  constexpr index_t total = numel(c.out.sizes);
  if constexpr (c.what == known::mm) {
    constexpr bool ta = c.at[0][0] != 0, tb = c.at[0][1] != 0;
    constexpr int r = c.out.sizes.n;
    constexpr index_t m = c.out.sizes[r - 2], n = c.out.sizes[r - 1], k = c.in[0].sizes[r - (ta ? 2 : 1)];
    auto const* b = address<P, s.in[1]>(mem);
    for (index_t e = 0; e < (m * n > 0 ? total / (m * n) : 0); ++e) multiply<T, m, k, n, ta, tb>(a + e * m * k, b + e * k * n, out + e * m * n);
  } else if constexpr (c.what == known::slice_backward) {
    constexpr detail::split_axis x(c.out.sizes, c.at[1][0]);
    constexpr index_t start = c.at[1][1], step = c.at[1][3], count = c.in[0].sizes[static_cast<int>(c.at[1][0])];
    for (index_t e = 0; e < total; ++e) out[e] = T(0);
    for (index_t o = 0; o < x.outer; ++o)
      for (index_t q = 0; q < count; ++q)
        for (index_t i = 0; i < x.inner; ++i) out[(o * x.size + start + q * step) * x.inner + i] = a[(o * count + q) * x.inner + i];
  } else if constexpr (c.what == known::gather) {
    constexpr detail::split_axis from(c.in[0].sizes, c.at[0][0]);
    auto const* index = address<P, s.in[1]>(mem);
    constexpr dims in_stride = contiguous_strides(c.in[0].sizes), out_stride = contiguous_strides(c.out.sizes);
    for (index_t e = 0; e < total; ++e) {
      index_t at = static_cast<index_t>(index[e]) * in_stride[static_cast<int>(c.at[0][0])];
      for (int d = 0; d < c.out.sizes.n; ++d)
        if (d != c.at[0][0]) at += e / out_stride[d] % c.out.sizes[d] * in_stride[d];
      out[e] = a[at];
    }
  } else if constexpr (c.what == known::scatter_add) {
    auto const* index = address<P, s.in[1]>(mem);
    auto const* src = address<P, s.in[2]>(mem);
    constexpr dims out_stride = contiguous_strides(c.out.sizes), src_stride = contiguous_strides(c.in[1].sizes);
    constexpr dims full = contiguous_strides(c.in[2].sizes);
    for (index_t e = 0; e < total; ++e) out[e] = a[e];
    for (index_t e = 0; e < numel(c.in[1].sizes); ++e) {
      index_t at = static_cast<index_t>(index[e]) * out_stride[static_cast<int>(c.at[0][0])], from = 0;
      for (int d = 0; d < c.in[1].sizes.n; ++d) {
        index_t const q = e / src_stride[d] % c.in[1].sizes[d];
        from += q * full[d];
        if (d != c.at[0][0]) at += q * out_stride[d];
      }
      out[at] += src[from];
    }
  } else if constexpr (c.what == known::argmax) {
    constexpr detail::split_axis x(c.in[0].sizes, c.at[0][0]);
    for (index_t o = 0; o < x.outer; ++o)
      for (index_t i = 0; i < x.inner; ++i) {
        index_t best = 0;
        auto const* p = a + o * x.size * x.inner + i;
        for (index_t q = 1; q < x.size; ++q) { // the first greatest; NaN is greatest
          auto const v = p[q * x.inner], w = p[best * x.inner];
          if (v > w || (v != v && w == w)) best = q;
        }
        out[o * x.inner + i] = static_cast<T>(best);
      }
  } else {
    static_assert(c.what == known::mm, "varve: fuse: this operator has no emission; use it outside of fuse");
  }
}

} // namespace varve::loop

// ---- varve/graph/nest.hpp
namespace varve::loop {

/// Emission of loop nest `B` of program `P`: loops with constant bounds around one straight-line body.
template <class P, int B>
struct nest {
  static constexpr body b = P::value.bodies[B];
  using T = std::conditional_t<b.type == lane::f32, float, double>;
  using V = std::conditional_t<(b.vector >= 0), kernel::batch<T>, T>;
  static constexpr int width = b.vector >= 0 ? static_cast<int>(kernel::lanes<T>) : 1;
  static constexpr int sinks = b.sink_count;
  static constexpr int inner = b.rank - 1;
  static constexpr bool vector_inside = b.vector >= 0 && b.vector == inner;
  /// Vectors computed side by side: hides the latency of accumulators and short dependency chains.
  static constexpr int side_by_side = vector_inside && b.extent[inner >= 0 ? inner : 0] >= 2 * width * b.unroll ? b.unroll : 1;
  /// Two vectors computed step by step, with accumulators in common: hides the latency of long dependency chains.
  static constexpr bool paired = vector_inside && b.paired && b.extent[inner >= 0 ? inner : 0] >= 2 * width;

  template <class Mem>
  static VARVE_INLINE void run(Mem const& mem) {
    index_t i[max_rank];
    for (index_t& x : i) x = 0;
    V sum[side_by_side * sinks];
    V fixed[b.fixed_count + 1];
    level<0, lanes_in_use<width>>(mem, i, sum, fixed);
  }

private:
  template <int S>
  static constexpr sink sink_at = P::value.sinks[b.sink_first + S];
  template <int S>
  static constexpr access target = P::value.accesses[sink_at<S>.access];
  template <int S>
  static constexpr index_t target_stride = b.vector >= 0 ? target<S>.stride[b.vector >= 0 ? b.vector : 0] : 0;

  template <int L, int S>
  static constexpr bool accumulates = sink_at<S>.kind != sink_kind::store && sink_at<S>.level == L;
  using every_sink = std::make_integer_sequence<int, sinks>;

  template <int L, class M, class Mem>
  static VARVE_INLINE void level(Mem const& mem, index_t* i, V* sum, V* fixed) {
    start_all<L>(sum, every_sink{});
    if constexpr (L == inner) steps<b.fixed_first, b.fixed_count, M>(mem, i, fixed, fixed);
    if constexpr (L == b.rank) {
      point<M>(mem, i, sum, fixed);
    } else if constexpr (L == b.vector) {
      constexpr index_t n = b.extent[L];
      constexpr index_t whole = n / width * width, block = width * (paired ? 2 : side_by_side), blocks = whole / block * block;
      if constexpr (blocks > 0)
        for (i[L] = 0; i[L] < blocks; i[L] += block) {
          if constexpr (paired) pair<M>(mem, i, sum, fixed);
          else for_each_vector<L, M>(mem, i, sum, fixed, std::make_integer_sequence<int, side_by_side>{});
        }
      if constexpr (block > width && blocks < whole)
        for (i[L] = blocks; i[L] < whole; i[L] += width) level<L + 1, M>(mem, i, sum, fixed);
      if constexpr (whole < n && n < width) {
        i[L] = 0;
        level<L + 1, lanes_in_use<static_cast<int>(n)>>(mem, i, sum, fixed);
      } else if constexpr (whole < n) { // the last vector overlaps the one before
        i[L] = n - width;
        level<L + 1, lanes_in_use<width, static_cast<int>(width - (n - whole))>>(mem, i, sum, fixed);
      }
      i[L] = 0;
    } else {
      for (i[L] = 0; i[L] < b.extent[L]; ++i[L]) level<L + 1, M>(mem, i, sum, fixed);
      i[L] = 0;
    }
    finish_all<L, M>(mem, i, sum, every_sink{});
  }
  template <int L, class M, class Mem, int... U>
  static VARVE_INLINE void for_each_vector([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t* i, [[maybe_unused]] V* sum, [[maybe_unused]] V* fixed, std::integer_sequence<int, U...>) {
    index_t const start = i[L];
    ((i[L] = start + U * width, level<L + 1, M>(mem, i, sum + U * sinks, fixed)), ...);
    i[L] = start;
  }

  /// One point of the iteration space, or one vector of points.
  template <class M, class Mem>
  static VARVE_INLINE void point(Mem const& mem, index_t const* i, V* sum, V const* fixed) {
    V now[b.step_count + 1];
    steps<b.step_first, b.step_count, M>(mem, i, fixed, now);
    leave_all<M>(mem, i, sum, fixed, now, every_sink{});
  }
  template <class M, class Mem>
  static VARVE_INLINE void pair(Mem const& mem, index_t const* i, V* sum, V const* fixed) {
    V now[b.step_count + 1], next[b.step_count + 1];
    index_t j[max_rank];
    for (int l = 0; l < max_rank; ++l) j[l] = i[l] + (l == inner ? width : 0);
    pair_steps<M>(mem, i, j, fixed, now, next, std::make_integer_sequence<int, b.step_count>{});
    leave_all<M>(mem, i, sum, fixed, now, every_sink{});
    leave_all<M>(mem, j, sum, fixed, next, every_sink{});
  }
  template <class M, class Mem, int... K>
  static VARVE_INLINE void pair_steps(Mem const& mem, index_t const* i, index_t const* j, V const* fixed, V* now, V* next, std::integer_sequence<int, K...>) {
    ((compute<P, b.step_first + K, K, b.vector, M>(mem, i, fixed, now), compute<P, b.step_first + K, K, b.vector, M>(mem, j, fixed, next)), ...);
  }
  template <class M, class Mem, int... S>
  static VARVE_INLINE void leave_all([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, [[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now, std::integer_sequence<int, S...>) {
    (leave<S, M>(mem, i, sum, fixed, now), ...);
  }
  /// Stores or accumulates one value of the body.
  template <int S, class M, class Mem>
  static VARVE_INLINE void leave(Mem const& mem, index_t const* i, V* sum, V const* fixed, V const* now) {
    constexpr sink s = sink_at<S>;
    V const& a = s.a >= 0 ? now[s.a >= 0 ? s.a : 0] : fixed[s.a >= 0 ? 0 : ~s.a];
    if constexpr (s.kind == sink_kind::store) {
      detail::store_lanes<M, target_stride<S>>(address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(i), a);
    } else {
      V const& c = s.product ? (s.b >= 0 ? now[s.b >= 0 ? s.b : 0] : fixed[s.b >= 0 ? 0 : ~s.b]) : a;
      if constexpr (s.level >= 0) {
        sum[S] = masked<M, (b.vector >= s.level)>(combine<S>(sum[S], a, c), sum[S]);
      } else {
        auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(i);
        if constexpr (b.vector >= 0 && target_stride<S> == 0) {
          V const zero = V(neutral<S>());
          *p = detail::narrow<std::remove_reference_t<decltype(*p)>>(merge<S>(static_cast<T>(*p), across<S>(masked<M, true>(combine<S>(zero, a, c), zero))));
        } else {
          V const old = detail::load_lanes<V, M, target_stride<S>>(p);
          detail::store_lanes<M, target_stride<S>>(p, masked<M, true>(combine<S>(old, a, c), old));
        }
      }
    }
  }
  template <int L, int... S>
  static VARVE_INLINE void start_all([[maybe_unused]] V* sum, std::integer_sequence<int, S...>) {
    (start<L, S>(sum), ...);
  }
  template <int L, int S>
  static VARVE_INLINE void start(V* sum) {
    if constexpr (accumulates<L, S>)
      for (int u = 0; u < side_by_side; ++u) sum[u * sinks + S] = V(neutral<S>());
  }
  template <int L, class M, class Mem, int... S>
  static VARVE_INLINE void finish_all([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* sum, std::integer_sequence<int, S...>) {
    (finish_at<L, S, M>(mem, i, sum), ...);
  }
  template <int L, int S, class M, class Mem>
  static VARVE_INLINE void finish_at(Mem const& mem, index_t const* i, V* sum) {
    if constexpr (accumulates<L, S>) finish<S, M>(mem, i, sum);
  }
  template <int S, class M, class Mem>
  static VARVE_INLINE void finish(Mem const& mem, index_t const* i, V* sum) {
    constexpr sink s = sink_at<S>;
    V total = sum[S];
    for (int u = 1; u < side_by_side; ++u) total = merge<S>(total, sum[u * sinks + S]);
    auto* p = address<P, target<S>.buffer>(mem) + detail::position<P, s.access>(i);
    if constexpr (b.vector >= s.level) {
      T r = across<S>(total);
      if constexpr (s.accumulate) r = merge<S>(static_cast<T>(*p), r);
      *p = detail::narrow<std::remove_reference_t<decltype(*p)>>(r);
    } else {
      if constexpr (s.accumulate) total = merge<S>(detail::load_lanes<V, M, target_stride<S>>(p), total);
      detail::store_lanes<M, target_stride<S>>(p, total);
    }
  }

  template <int First, int Count, class M, class Mem>
  static VARVE_INLINE void steps(Mem const& mem, index_t const* i, V const* fixed, V* now) {
    if constexpr (Count > 0) blocks<First, Count, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count + 63) / 64>{});
  }
  template <int First, int Count, class M, class Mem, int... C>
  static VARVE_INLINE void blocks([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now, std::integer_sequence<int, C...>) { // folds are limited to 256 elements
    (block<First, C * 64, M>(mem, i, fixed, now, std::make_integer_sequence<int, (Count - C * 64 < 64 ? Count - C * 64 : 64)>{}), ...);
  }
  template <int First, int From, class M, class Mem, int... K>
  static VARVE_INLINE void block([[maybe_unused]] Mem const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V const* fixed, [[maybe_unused]] V* now, std::integer_sequence<int, K...>) {
    (compute<P, First + From + K, From + K, b.vector, M>(mem, i, fixed, now), ...);
  }
  template <int S>
  static constexpr T neutral() {
    constexpr auto k = sink_at<S>.kind;
    return k == sink_kind::sum ? T(0) : k == sink_kind::greatest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  template <int S, class X>
  static VARVE_INLINE X merge(X const& r, X const& x) {
    if constexpr (sink_at<S>.kind == sink_kind::sum) return r + x;
    else if constexpr (sink_at<S>.kind == sink_kind::greatest) return detail::pick_greatest(x, r);
    else return detail::pick_least(x, r);
  }
  template <int S>
  static VARVE_INLINE V combine(V const& r, V const& a, V const& c) {
    if constexpr (sink_at<S>.product) return detail::multiply_add<V>(a, c, r);
    else return merge<S>(r, a);
  }
  template <int S>
  static VARVE_INLINE T across(V const& x) {
    if constexpr (!kernel::is_batch<V>) return x;
    else if constexpr (sink_at<S>.kind == sink_kind::sum) return kernel::reduce_sum<T>(x);
    else return kernel::reduce_lanes<T>(x, [](T p, T q) { return merge<S>(p, q); });
  }
  /// `x` in the lanes that count, `old` in the others.
  template <class M, bool Apply>
  static VARVE_INLINE V masked(V const& x, V const& old) {
    if constexpr (!kernel::is_batch<V> || !Apply || (M::live == width && M::first == 0)) {
      return x;
    } else {
      V const lane = detail::ramp<V>(T(1));
      if constexpr (M::first > 0) return kernel::select<T>(lane >= V(T(M::first)), x, old);
      else return kernel::select<T>(lane < V(T(M::live)), x, old);
    }
  }
};

} // namespace varve::loop

// ---- varve/graph/rewrite.hpp
namespace varve {

/// The frame of every pass: copies a graph region by region and node by node into `to`; `now[n]` is the new number of node `n`, -1 when it was dropped.
struct rewriter {
  graph const& from;
  graph to{};
  list<int> now{};

  constexpr explicit rewriter(graph const& g) : from(g), now(g.nodes.size(), -1) {
    to.nodes.reserve(g.nodes.size()), to.edges.reserve(g.edges.size()), to.results.reserve(g.results.size()), to.regions.reserve(g.regions.size());
  }
  /// Number of the `k`-th operand of an old node in the new graph.
  constexpr int operand(node const& n, int k) const { return now[static_cast<std::size_t>(from.edges[static_cast<std::size_t>(n.first + k)])]; }
  /// Appends `n` with operands given as new numbers. The elements of an array constant are in `to` already.
  constexpr int append(node n, int const* in) {
    n.first = static_cast<int>(to.edges.size());
    for (int k = 0; k < n.count; ++k) to.edges.push_back(in[k]);
    to.nodes.push_back(n);
    return static_cast<int>(to.nodes.size()) - 1;
  }
  /// Appends an old node as it is.
  constexpr int copy(node n) {
    int const first = n.first;
    n.first = static_cast<int>(to.edges.size());
    for (int k = 0; k < n.count; ++k) to.edges.push_back(now[static_cast<std::size_t>(from.edges[static_cast<std::size_t>(first + k)])]);
    if (is_array_constant(n)) detail::take_constants(to, from, n);
    to.nodes.push_back(n);
    return static_cast<int>(to.nodes.size()) - 1;
  }
  /// Calls `each(old number)`, which returns a new number or -1, for every node of every region; `start()` at the beginning of a region.
  template <class Each, class Start>
  constexpr graph run(Each each, Start start) {
    for (region r : from.regions) {
      int const first = static_cast<int>(to.nodes.size()), result = static_cast<int>(to.results.size());
      start();
      for (int n = r.node_first; n < r.node_first + r.node_count; ++n) now[static_cast<std::size_t>(n)] = each(n);
      for (int k = 0; k < r.result_count; ++k)
        to.results.push_back(now[static_cast<std::size_t>(from.results[static_cast<std::size_t>(r.result_first + k)])]);
      r.node_first = first, r.node_count = static_cast<int>(to.nodes.size()) - first, r.result_first = result;
      to.regions.push_back(r);
    }
    return static_cast<graph&&>(to);
  }
};

} // namespace varve

// ---- varve/graph/cse.hpp
namespace varve {

/// Common subexpression elimination: one node for equal operators, attributes and operands, and for equal constants. Random, mutating and higher-order operators are left alone.
/// Equal nodes are found by hash: expected constant work per node.
constexpr graph cse(graph const& g) {
  rewriter w(g);
  std::size_t slots = 16;
  while (slots < 2 * g.nodes.size()) slots *= 2;
  list<int> table(slots, -1);
  list<std::size_t> used;
  list<known> const what = identify(g);
  auto mix = [](std::uint64_t h, std::uint64_t x) { return (h ^ x) * 0x9E3779B97F4A7C15u ^ (h >> 29); };
  auto same_bits = [](double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); };
  auto start = [&] { // operations of one region are not visible in another
    for (std::size_t s : used) table[s] = -1;
    used.clear();
  };
  auto each = [&](int n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    op_kind const kind = nd.op->kind;
    if (kind == op_kind::placeholder || kind == op_kind::random || kind == op_kind::mutation || kind == op_kind::hop) return w.copy(nd);
    bool const data = what[static_cast<std::size_t>(n)] == known::data;
    double const* const elements = g.constants.data() + (data ? static_cast<std::ptrdiff_t>(nd.value) : 0);
    index_t const count = data ? numel(nd.out.sizes) : 0;
    std::uint64_t h = (data ? 0 : std::bit_cast<std::uint64_t>(nd.value)) + static_cast<std::uint64_t>(nd.out.type);
    for (index_t e = 0; e < count; ++e) h = mix(h, std::bit_cast<std::uint64_t>(elements[e]));
    for (char const* c = nd.op->name; *c; ++c) h = mix(h, static_cast<unsigned char>(*c));
    known const k_ = what[static_cast<std::size_t>(n)];
    bool const commutes = k_ == known::add || k_ == known::mul;
    bool const swap = commutes && w.operand(nd, 0) > w.operand(nd, 1);
    auto operand = [&](int k) { return w.operand(nd, swap ? 1 - k : k); };
    for (int k = 0; k < nd.count; ++k) h = mix(h, static_cast<std::uint64_t>(operand(k)));
    for (int k = 0; k < nd.at.count; ++k)
      for (index_t a : nd.at[k]) h = mix(h, static_cast<std::uint64_t>(a));
    std::size_t s = static_cast<std::size_t>(h ^ (h >> 32)) & (slots - 1);
    for (; table[s] >= 0; s = (s + 1) & (slots - 1)) {
      node const& o = w.to.nodes[static_cast<std::size_t>(table[s])];
      bool same = o.op == nd.op && o.count == nd.count && (data || same_bits(o.value, nd.value)) && o.out == nd.out && o.at == nd.at;
      for (index_t e = 0; e < count && same; ++e) same = same_bits(w.to.constants[static_cast<std::ptrdiff_t>(o.value) + e], elements[e]);
      int const* in = w.to.edges.data() + o.first;
      if (commutes && same) same = (in[0] == operand(0) && in[1] == operand(1)) || (in[1] == operand(0) && in[0] == operand(1));
      else for (int k = 0; same && k < nd.count; ++k) same = in[k] == operand(k);
      if (same) return table[s];
    }
    used.push_back(s);
    return table[s] = w.copy(nd);
  };
  return w.run(each, start);
}

} // namespace varve

// ---- varve/graph/dce.hpp
namespace varve {

/// Dead code elimination: drops every operation no result depends on. Placeholders, mutations and the regions stay.
constexpr graph dce(graph const& g) {
  list<char> live(g.nodes.size(), 0);
  for (int r : g.results) live[static_cast<std::size_t>(r)] = 1;
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    node const& nd = g.nodes[n];
    if (nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::mutation) live[n] = 1;
    if (live[n])
      for (int k = 0; k < nd.count; ++k) live[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])] = 1;
  }
  rewriter w(g);
  return w.run([&](int n) { return live[static_cast<std::size_t>(n)] ? w.copy(g.nodes[static_cast<std::size_t>(n)]) : -1; }, [] {});
}

} // namespace varve

// ---- varve/graph/fold.hpp
namespace varve {
namespace detail {

/// State of `fold`: what is known of the nodes made so far.
struct folder {
  graph const& g;
  rewriter w;
  list<known> what;       // of the old nodes
  list<known> made{};     // of the new nodes
  list<char> splat{};     // every element of the new node is `value`
  list<double> value{};
  op_handle const* expand = nullptr;
  op_handle const *add_ = nullptr, *sub_ = nullptr, *neg_ = nullptr; // operators to write with, when the graph has them

  constexpr explicit folder(graph const& graph_) : g(graph_), w(graph_), what(identify(graph_)) {
    for (std::size_t n = 0; n < what.size(); ++n) {
      if (what[n] == known::add) add_ = g.nodes[n].op;
      if (what[n] == known::sub) sub_ = g.nodes[n].op;
      if (what[n] == known::neg) neg_ = g.nodes[n].op;
      if (what[n] == known::expand && g.nodes[n].at.count == 1) expand = g.nodes[n].op;
    }
  }
  static constexpr double round_to(dtype t, double x) { return t == dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x; }
  constexpr node const& at(int n) const { return w.to.nodes[static_cast<std::size_t>(n)]; }
  constexpr int input(int n, int k) const { return w.to.edges[static_cast<std::size_t>(at(n).first + k)]; }
  constexpr known kind(int n) const { return made[static_cast<std::size_t>(n)]; }
  constexpr bool is_splat(int n) const { return splat[static_cast<std::size_t>(n)] != 0; }
  /// The very bits: 0 and -0 differ.
  constexpr bool is_splat(int n, double x) const { return is_splat(n) && std::bit_cast<std::uint64_t>(value[static_cast<std::size_t>(n)]) == std::bit_cast<std::uint64_t>(x); }

  constexpr int add(node const& n, int const* in, known k) {
    int const id = w.append(n, in);
    made.push_back(k);
    bool const constant_ = k == known::constant, same = (k >= known::reshape && k <= known::slice) && is_splat(in[0]);
    splat.push_back(constant_ || same);
    value.push_back(constant_ ? n.value : same ? value[static_cast<std::size_t>(in[0])] : 0.0);
    return id;
  }
  /// A constant of the given meta; -1 when the graph offers no operator to write it with.
  constexpr int splatted(meta const& m, double x) {
    if (m.sizes.n > 0 && !expand) return -1;
    node c;
    c.op = &constant_handle, c.out = {m.type, {}}, c.value = x;
    int const id = add(c, nullptr, known::constant);
    if (m.sizes.n == 0) return id;
    node e;
    e.op = expand, e.out = m, e.at = attributes(m.sizes), e.count = 1;
    return add(e, &id, known::expand);
  }
  /// A binary operator in place of `nd`.
  constexpr int pair(op_handle const* op, known k, node nd, int a, int b) {
    int const in[] = {a, b};
    nd.op = op, nd.count = 2;
    return add(nd, in, k);
  }
  /// Whether two nodes are one or will be: the same operator on the same operands.
  constexpr bool equal(int a, int b) const {
    if (a == b) return true;
    bool same = is_pointwise(kind(a)) && at(a).op == at(b).op && at(a).count == at(b).count && at(a).out == at(b).out && at(a).at == at(b).at;
    for (int e = 0; same && e < at(a).count; ++e) same = input(a, e) == input(b, e);
    return same;
  }
  constexpr int negated(node nd, int a) {
    nd.op = neg_, nd.count = 1;
    return add(nd, &a, known::neg);
  }
  constexpr int visit(int n);
  constexpr int arithmetic(node const& nd, known k, int const* in);
  constexpr int view(node nd, known k, int const* in);

  static constexpr index_t few = 64; // elements of a constant that the compiler computes
  constexpr bool evaluates(node const& nd, known k, int const* in) const;
  constexpr int evaluated(node const& nd, known k, int const* in);
};

/// Is a node an operator on constants, one of them an array, and little work?
constexpr bool folder::evaluates(node const& nd, known k, int const* in) const {
  bool const elementwise = (k >= known::add && k <= known::convert) && (is_floating(nd.out.type) || k >= known::cheap);
  if (!elementwise && k != known::reshape && k != known::permute && k != known::slice) return false;
  bool any = false;
  for (int e = 0; e < nd.count; ++e) {
    if (kind(in[e]) == known::data) any = true;
    else if (!is_splat(in[e])) return false;
  }
  if (!any || nd.count > 3) return false;
  for (index_t d : nd.out.sizes)
    if (is_symbol(d)) return false;
  return numel(nd.out.sizes) <= few;
}
/// The result of such an operator as a constant; -1 when an element would overflow, which no constant expression may.
constexpr int folder::evaluated(node const& nd, known k, int const* in) {
  dims const& s = nd.out.sizes;
  dims const strides = contiguous_strides(s);
  list<double> result;
  bool same = true;
  for (index_t e = 0; e < numel(s); ++e) {
    double x[4]{};
    for (int q = 0; q < nd.count; ++q) {
      dims const& a = at(in[q]).out.sizes;
      dims const as = contiguous_strides(a);
      index_t from = k == known::reshape ? e : 0;
      for (int d = 0; d < s.n && k != known::reshape; ++d) {
        index_t const i = e / strides[d] % s[d];
        if (k == known::permute) from += i * as[static_cast<int>(nd.at[0][d])];
        else if (k == known::slice) from += (d == nd.at[0][0] ? nd.at[0][1] + nd.at[0][3] * i : i) * as[d];
        else if (int const own = d - (s.n - a.n); own >= 0 && a[own] != 1) from += i * as[own];
      }
      x[q] = is_splat(in[q]) ? value[static_cast<std::size_t>(in[q])] : w.to.constants[static_cast<std::ptrdiff_t>(at(in[q]).value) + from];
      if (k <= known::convert && !(x[q] > -1e15 && x[q] < 1e15)) return -1;
    }
    double y = x[0];
    if (k == known::add) y = x[0] + x[1];
    else if (k == known::sub) y = x[0] - x[1];
    else if (k == known::mul) y = x[0] * x[1];
    else if (k == known::neg) y = -x[0];
    else if (k == known::cheap) y = nd.op->lane_f64(x);
    else if (k == known::div) {
      if (x[1] > -1e-15 && x[1] < 1e-15) return -1;
      y = x[0] / x[1];
    }
    if (k <= known::convert) {
      if (nd.out.type == dtype::bool_) y = y != 0;
      else if (is_floating(nd.out.type)) y = round_to(nd.out.type, y);
      else if (!(y > (nd.out.type == dtype::uint8 ? -1 : -2e9) && y < (nd.out.type == dtype::uint8 ? 256 : 2e9))) return -1;
      else y = static_cast<double>(static_cast<index_t>(y));
    }
    result.push_back(y);
    same = same && std::bit_cast<std::uint64_t>(y) == std::bit_cast<std::uint64_t>(result[0]);
  }
  if (same && !result.empty())
    if (int const id = splatted(nd.out, result[0]); id >= 0) return id;
  node c;
  c.op = &constant_handle, c.out = {nd.out.type, s}, c.value = static_cast<double>(w.to.constants.size());
  for (double y : result) w.to.constants.push_back(y);
  return add(c, nullptr, known::data);
}

/// Simplifications that keep every IEEE result; -1 for none.
constexpr int folder::arithmetic(node const& nd, known k, int const* in) {
  auto keeps = [&](int a) { return at(a).out == nd.out; };
  int const a = in[0], b = nd.count > 1 ? in[1] : in[0];
  bool const number = is_floating(nd.out.type);
  if (is_splat(a) && is_splat(b) && number) {
    double const x = value[static_cast<std::size_t>(a)], y = value[static_cast<std::size_t>(b)];
    auto moderate = [](double z) { return z > -1e15 && z < 1e15; }; // an overflow is not a constant expression
    if (!moderate(x) || !moderate(y) || (k == known::div && y > -1e-15 && y < 1e-15)) return -1;
    if (k == known::add) return splatted(nd.out, round_to(nd.out.type, x + y));
    if (k == known::sub) return splatted(nd.out, round_to(nd.out.type, x - y));
    if (k == known::mul) return splatted(nd.out, round_to(nd.out.type, x * y));
    if (k == known::div) return splatted(nd.out, round_to(nd.out.type, x / y));
    if (k == known::neg) return splatted(nd.out, -x);
  }
  if (k == known::mul && is_splat(b, 1) && keeps(a)) return a;
  if (k == known::mul && is_splat(a, 1) && keeps(b)) return b;
  if (k == known::div && is_splat(b, 1) && keeps(a)) return a;
  if (k == known::sub && is_splat(b, 0.0) && keeps(a)) return a;                   // x - 0 is x, x + -0 is x, x + 0 is not when x is -0
  if (k == known::add && (is_splat(b, -0.0) || (!number && is_splat(b, 0.0))) && keeps(a)) return a;
  if (k == known::add && (is_splat(a, -0.0) || (!number && is_splat(a, 0.0))) && keeps(b)) return b;
  if (k == known::neg && kind(a) == known::neg) return input(a, 0);
  // Signs move outwards, where they vanish into additions: exact, zeros included.
  if (k == known::add && kind(a) == known::neg && kind(b) == known::neg && equal(input(a, 0), input(b, 0)))
    return negated(nd, pair(nd.op, k, nd, input(a, 0), input(a, 0)));
  if (k == known::add && kind(b) == known::neg && sub_) return pair(sub_, known::sub, nd, a, input(b, 0));
  if (k == known::add && kind(a) == known::neg && sub_) return pair(sub_, known::sub, nd, b, input(a, 0));
  if (k == known::sub && kind(b) == known::neg && add_) return pair(add_, known::add, nd, a, input(b, 0));
  if (k == known::mul && kind(a) == known::neg && kind(b) == known::neg) return pair(nd.op, k, nd, input(a, 0), input(b, 0));
  if ((k == known::mul || k == known::div) && kind(a) == known::neg && neg_) return negated(nd, pair(nd.op, k, nd, input(a, 0), b));
  if ((k == known::mul || k == known::div) && kind(b) == known::neg && neg_) return negated(nd, pair(nd.op, k, nd, a, input(b, 0)));
  return -1;
}

/// Views of views, and views that change nothing; -1 for none.
constexpr int folder::view(node nd, known k, int const* in) {
  int const a = in[0];
  if (k == known::permute) {
    dims perm = nd.at[0];
    int from = a;
    if (kind(a) == known::permute) {
      for (int d = 0; d < perm.n; ++d) perm[d] = at(a).at[0][static_cast<int>(nd.at[0][d])];
      from = input(a, 0);
    }
    bool same = true;
    for (int d = 0; d < perm.n; ++d) same = same && perm[d] == d;
    if (same) return from;
    if (from == a) return -1;
    nd.at = attributes(perm);
    return add(nd, &from, k);
  }
  if (k == known::slice) {
    dims const& s = nd.at[0];
    return s[3] == 1 && at(a).out.sizes == nd.out.sizes ? a : -1;
  }
  if (at(a).out.sizes == nd.out.sizes) return a; // expand and reshape
  if (kind(a) == k) {
    int const from = input(a, 0);
    if (at(from).out.sizes == nd.out.sizes) return from;
    return add(nd, &from, k);
  }
  if (k == known::reshape && is_splat(a)) return splatted(nd.out, value[static_cast<std::size_t>(a)]);
  return -1;
}

constexpr int folder::visit(int n) {
  node nd = g.nodes[static_cast<std::size_t>(n)];
  known const k = what[static_cast<std::size_t>(n)];
  list<int> in;
  in.reserve(static_cast<std::size_t>(nd.count) + 1);
  for (int e = 0; e < nd.count; ++e) in.push_back(w.operand(nd, e));
  int same = -1;
  if (k == known::data) take_constants(w.to, g, nd);
  else if (evaluates(nd, k, in.data())) same = evaluated(nd, k, in.data());
  if (same >= 0) return same;
  if (is_pointwise(k)) {
    same = arithmetic(nd, k, in.data());
    if (same >= 0) return same;
    for (int e = 0; e < nd.count && nd.count > 1; ++e) { // the operator broadcasts by itself, when another operand has the shape
      int& o = in[static_cast<std::size_t>(e)];
      if (kind(o) != known::expand) continue;
      dims shape = at(input(o, 0)).out.sizes;
      for (int q = 0; q < nd.count; ++q)
        if (q != e) shape = broadcast(shape, at(in[static_cast<std::size_t>(q)]).out.sizes);
      if (shape == nd.out.sizes) o = input(o, 0);
    }
  } else if (k == known::convert) {
    if (at(in[0]).out.type == nd.out.type) return in[0];
    if (is_splat(in[0]) && is_floating(nd.out.type)) same = splatted(nd.out, round_to(nd.out.type, value[static_cast<std::size_t>(in[0])]));
  } else if (k >= known::reshape && k <= known::slice) {
    same = view(nd, k, in.data());
  } else if (k == known::mm) { // a transposed operand is read transposed
    dims flags = nd.at[0];
    for (int e = 0; e < 2; ++e) {
      int& o = in[static_cast<std::size_t>(e)];
      if (kind(o) != known::permute) continue;
      dims const& p = at(o).at[0];
      bool swaps = p.n >= 2 && p[p.n - 1] == p.n - 2 && p[p.n - 2] == p.n - 1;
      for (int d = 0; d + 2 < p.n; ++d) swaps = swaps && p[d] == d;
      if (!swaps) continue;
      o = input(o, 0);
      flags[e] = !flags[e];
    }
    nd.at = attributes(flags);
  }
  return same >= 0 ? same : add(nd, in.data(), k);
}
} // namespace detail

/// Folds constants (also splatted ones) and simplifies where no IEEE result changes: x * 1, x / 1, x - 0, x + -0, neg(neg x), signs into additions, views of views,
/// views that change nothing, transposes into `mm`, expansions that a pointwise operator does by itself. Kept: x + 0, which turns -0 into 0; x * 0, which is NaN for infinite x;
/// unless both operands are known. Arithmetic, comparisons, conversions and views of array constants are computed up to 64 elements. One bounded visit per node.
constexpr graph fold(graph const& g) {
  detail::folder f(g);
  return f.w.run([&](int n) { return f.visit(n); }, [] {});
}

} // namespace varve

// ---- varve/graph/optimize.hpp
namespace varve {

/// The fixed sequence of passes before planning: fold, merge equal operations, fold what became equal, drop the dead.
constexpr graph optimize(graph const& g) {
  graph const live = dce(g);
  graph const folded = fold(live);
  graph const merged = cse(folded);
  return dce(merged);
}

} // namespace varve

// ---- varve/graph/arena.hpp
namespace varve::loop {

/// Places the temporaries of a program in one arena: two buffers share bytes when their lifetimes, in stages, do not meet.
constexpr void place_in_arena(program& p) {
  struct life {
    int from = -1, to = -1;
    index_t begin = 0, end = 0;
  };
  list<life> lives(p.buffers.size(), life{});
  auto touch = [&](int b, int s) {
    if (b < 0) return;
    life& l = lives[static_cast<std::size_t>(b)];
    if (l.from < 0) l.from = s;
    l.to = s;
  };
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    stage const& st = p.stages[s];
    int const now = static_cast<int>(s);
    touch(st.out, now);
    if (st.kind == stage_kind::branch || st.kind == stage_kind::scan) {
      call_info const& c = p.calls[static_cast<std::size_t>(st.number)];
      int const results = c.results + (st.kind == stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0);
      touch(st.in[0], now);
      for (int k = 0; k < c.operands; ++k) touch(p.slots[static_cast<std::size_t>(st.in[1] + k)], now);
      for (int k = 0; k < results; ++k) touch(p.slots[static_cast<std::size_t>(st.in[2] + k)], now);
      continue;
    }
    for (int b : st.in) touch(b, now);
    if (st.kind != stage_kind::loops) continue;
    body const& b = p.bodies[static_cast<std::size_t>(st.number)];
    for (int part = 0; part < 2; ++part) {
      int const first = part ? b.step_first : b.fixed_first, count = part ? b.step_count : b.fixed_count;
      for (int k = first; k < first + count; ++k)
        if (int const a = p.steps[static_cast<std::size_t>(k)].access; a >= 0) touch(p.accesses[static_cast<std::size_t>(a)].buffer, now);
    }
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
      touch(p.accesses[static_cast<std::size_t>(p.sinks[static_cast<std::size_t>(k)].access)].buffer, now);
  }
  p.workspace = 0;
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer& b = p.buffers[k];
    life& mine = lives[k];
    if (b.where != place::arena || mine.from < 0) continue;
    index_t const bytes = b.elements * itemsize(b.type), unit = bytes >= 64 ? 64 : 16;
    mine.begin = 0;
    for (bool moved = true; moved;) {
      moved = false;
      mine.begin = (mine.begin + unit - 1) / unit * unit;
      mine.end = mine.begin + bytes;
      for (std::size_t o = 0; o < p.buffers.size(); ++o) {
        life const& other = lives[o];
        bool const meets = o < k && p.buffers[o].where == place::arena && other.from >= 0 && other.from <= mine.to && mine.from <= other.to;
        if (meets && other.begin < mine.end && mine.begin < other.end) mine.begin = other.end, moved = true;
        if (moved) break;
      }
    }
    b.number = mine.begin;
    if (mine.end > p.workspace) p.workspace = mine.end;
  }
}

} // namespace varve::loop

// ---- varve/graph/unfold.hpp
/// @file
/// Unfolding: which values, at which indices, one point of an iteration space needs. Views vanish into index maps here, and
/// `slice_backward` and `cat` are resolved by splitting the space into boxes in each of which they are a plain shift or zero.
namespace varve::loop {

/// Index of one axis of a value: `offset + coef * i[dim]`, or just `offset` when `dim` is -1.
struct axis_index {
  int dim;
  index_t offset, coef;
  friend constexpr bool operator==(axis_index const& a, axis_index const& b) { return a.dim == b.dim && a.offset == b.offset && a.coef == b.coef; }
};

/// One node at one index map.
struct instance {
  enum class form : unsigned char { value, alias, zero, load } as;
  int node;
  int map;  // first axis_index
  int next; // further instance of the node
  int args, count;
};

/// Part of an iteration space.
struct box {
  index_t lo[max_rank]{}, hi[max_rank]{};
};

/// Sizes without the ones: what an iteration space is.
constexpr dims squeeze(dims const& s) {
  dims r;
  for (int k = 0; k < s.n; ++k)
    if (s.v[k] != 1) r.push_back(s.v[k]);
  return r;
}

/// What unfolding asks of the planner: nodes whose values are found in memory.
struct facts {
  graph const& g;
  list<known> const& what;
  list<char> const& stored;     // the node has a buffer
  list<char> const& opaque;     // the node is never computed in a loop
  list<int> const& group;       // of a stored node
};

struct unfolding {
  facts const& f;
  int group;      // stored nodes of this group are computed, not loaded
  bool explore;   // follow all branches, without boxes
  int self = -1;  // while exploring: the root itself
  box range{};
  list<int> head{};
  list<axis_index> maps{};
  list<instance> all{};
  list<int> args{};
  int highest = -1;
  int cut_dim = -1; // set when the box must be split at cut_at
  index_t cut_at = 0;

  constexpr explicit unfolding(facts const& facts_, int group_, bool explore_) : f(facts_), group(group_), explore(explore_), head(facts_.g.nodes.size(), -1) {}

  constexpr void clear() {
    for (instance const& i : all) head.data()[i.node] = -1;
    maps.clear(), all.clear(), args.clear();
    highest = cut_dim = -1;
  }
  constexpr dims const& sizes(int n) const { return f.g.nodes[static_cast<std::size_t>(n)].out.sizes; }

  /// The instance of `n` at the map in `m`; made when missing. Axes of size 1 are normalized to index 0.
  constexpr int demand(int n, axis_index const* m) {
    dims const& s = f.g.nodes.data()[n].out.sizes;
    axis_index mine[max_rank];
    for (int k = 0; k < s.n; ++k)
      if (s.v[k] != 1) mine[k] = m[k];
      else mine[k] = {-1, 0, 0};
    instance const* const known_ones = all.data(); // plain pointers: each call saved is saved a thousand times in the compiler
    for (int i = head.data()[n]; i >= 0; i = known_ones[i].next) {
      axis_index const* const at = maps.data() + known_ones[i].map;
      bool same = true;
      for (int k = 0; k < s.n && same; ++k) same = at[k].dim == mine[k].dim && at[k].offset == mine[k].offset && at[k].coef == mine[k].coef;
      if (same) return i;
    }
    int const id = static_cast<int>(all.size());
    all.push_back({instance::form::value, n, static_cast<int>(maps.size()), head.data()[n], 0, 0});
    for (int k = 0; k < s.n; ++k) maps.push_back(mine[k]);
    head.data()[n] = id;
    if (n > highest) highest = n;
    return id;
  }
  /// The identity map of a value of sizes `s` over the space `squeeze(s)`.
  static constexpr void identity(dims const& s, axis_index* m) {
    int d = 0;
    for (int k = 0; k < s.n; ++k) {
      if (s.v[k] != 1) m[k] = {d++, 0, 1};
      else m[k] = {-1, 0, 0};
    }
  }
  constexpr bool is_identity(instance const& i, dims const& space) const {
    dims const& s = sizes(i.node);
    if (!(squeeze(s) == space)) return false;
    axis_index m[max_rank]{};
    identity(s, m);
    for (int k = 0; k < s.n; ++k)
      if (!(m[k] == maps[static_cast<std::size_t>(i.map + k)])) return false;
    return true;
  }
  constexpr bool is_leaf(int n) const {
    auto const k = static_cast<std::size_t>(n);
    if (is_given(f.what[k]) || f.opaque[k]) return true;
    return f.stored[k] && (explore ? n != self : f.group[k] != group);
  }

  /// Resolves everything demanded so far down to loads and constants, in one sweep from high to low node numbers.
  constexpr void run() {
    for (int n = highest; n >= 0 && cut_dim < 0; --n)
      for (int i = head.data()[n]; i >= 0 && cut_dim < 0; i = all.data()[i].next) expand(i);
  }

private:
  constexpr void operand(int i, int n, axis_index const* m) {
    int const a = demand(n, m);
    args.push_back(a);
    ++all.data()[i].count;
  }
  constexpr void expand(int i);
  /// Whether index `x` lies in [from, to) everywhere in the box: 1 yes, 0 nowhere, -1 the box must be split.
  constexpr int inside(axis_index const& x, index_t from, index_t to) {
    if (x.dim < 0 || x.coef == 0) return x.offset >= from && x.offset < to;
    index_t const lo = range.lo[x.dim], hi = range.hi[x.dim];
    index_t const first = x.offset + x.coef * lo, last = x.offset + x.coef * (hi - 1);
    if (first >= from && last < to) return 1;
    if (last < from || first >= to) return 0;
    index_t const edge = first < from ? from : to; // first index beyond it starts the next box
    cut_dim = x.dim;
    cut_at = (edge - x.offset + x.coef - 1) / x.coef;
    return -1;
  }
};

constexpr void unfolding::expand(int i) {
  int const n = all.data()[i].node;
  node const& nd = f.g.nodes.data()[n];
  int const* const in = f.g.edges.data() + nd.first;
  auto input = [&](int k) { return in[k]; };
  axis_index m[max_rank], o[max_rank];
  axis_index const* const mine = maps.data() + all.data()[i].map;
  for (int k = 0; k < nd.out.sizes.n; ++k) m[k] = mine[k];
  int const rank = nd.out.sizes.n;
  all.data()[i].args = static_cast<int>(args.size());
  auto form = [&](instance::form x) { all.data()[i].as = x; };
  if (is_leaf(n)) return form(instance::form::load);
  known const what = f.what[static_cast<std::size_t>(n)];
  switch (what) {
  case known::constant:
  case known::arange: return;
  case known::permute:
    for (int k = 0; k < rank; ++k) o[nd.at[0][k]] = m[k];
    operand(i, input(0), o);
    return form(instance::form::alias);
  case known::reshape: {
    dims const& s = sizes(input(0));
    if (!(squeeze(s) == squeeze(nd.out.sizes))) return form(instance::form::load); // a linear load of the operand's buffer
    int at = 0;
    for (int k = 0; k < s.n; ++k) {
      if (s.v[k] == 1) continue;
      while (nd.out.sizes.v[at] == 1) ++at;
      o[k] = m[at++];
    }
    operand(i, input(0), o);
    return form(instance::form::alias);
  }
  case known::slice: {
    dims const& a = nd.at[0];
    for (int k = 0; k < rank; ++k) o[k] = m[k];
    o[a[0]].offset = a[1] + a[3] * m[a[0]].offset;
    o[a[0]].coef *= a[3];
    operand(i, input(0), o);
    return form(instance::form::alias);
  }
  case known::slice_backward: {
    dims const& a = nd.at[1];
    int const in = explore ? 1 : inside(m[a[0]], a[1], a[2]);
    if (in == 0) return form(instance::form::zero);
    if (in < 0) return;
    m[a[0]].offset -= a[1];
    operand(i, input(0), m);
    return form(instance::form::alias);
  }
  case known::cat: {
    int const axis = static_cast<int>(nd.at[0][0]);
    index_t at = 0;
    for (int k = 0; k < nd.count; ++k) {
      index_t const size = sizes(input(k))[axis];
      int const within = explore ? 1 : inside(m[axis], at, at + size);
      if (within < 0) return;
      if (within) {
        for (int q = 0; q < rank; ++q) o[q] = m[q];
        o[axis].offset -= at;
        operand(i, input(k), o);
        if (!explore) return form(instance::form::alias);
      }
      at += size;
    }
    return form(instance::form::alias);
  }
  case known::sum:
  case known::amax:
  case known::amin: { // few elements: unrolled
    dims const& s = sizes(input(0));
    bool const keep = nd.at[1][0] != 0;
    dims count;
    int at = 0;
    int axes[max_rank]{};
    for (int k = 0; k < s.n; ++k) {
      if (nd.at[0].contains(k)) {
        axes[count.n] = k;
        count.push_back(s.v[k]);
        at += keep;
      } else {
        o[k] = m[at++];
      }
    }
    for (index_t e = 0; e < numel(count); ++e) {
      index_t r = e;
      for (int k = count.n - 1; k >= 0; --k) {
        o[axes[k]] = {-1, r % count[k], 0};
        r /= count[k];
      }
      operand(i, input(0), o);
    }
    return;
  }
  case known::mm: { // short inner dimension: unrolled
    bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
    dims const& s = sizes(input(0));
    index_t const inner = s[s.n - (ta ? 2 : 1)];
    axis_index const row = m[rank - 2], col = m[rank - 1];
    for (index_t e = 0; e < inner; ++e) {
      axis_index const c{-1, e, 0};
      m[rank - 2] = ta ? c : row, m[rank - 1] = ta ? row : c;
      operand(i, input(0), m);
      m[rank - 2] = tb ? col : c, m[rank - 1] = tb ? c : col;
      operand(i, input(1), m);
    }
    return;
  }
  case known::one_hot: // compares the operand with the last index
    operand(i, input(0), m);
    return;
  default: break;
  }
  for (int k = 0; k < nd.count; ++k) { // pointwise, convert and expand: broadcasting
    dims const& s = sizes(input(k));
    int const shift = rank - s.n;
    for (int q = 0; q < s.n; ++q) o[q] = m[q + shift];
    operand(i, input(k), o);
  }
  if (what == known::expand) form(instance::form::alias);
}

} // namespace varve::loop

// ---- varve/graph/role.hpp
namespace varve::loop {

/// How a node is executed: computed where it is used, summed over a loop, or by a call of its own.
enum class role : unsigned char { source, inlined, reduction, product, call };

/// Roles and costs of all nodes of a graph.
struct role_table {
  graph const& g;
  list<known> const& what;
  list<role> of{};
  list<index_t> weight{}; // cost of computing one element with all that is inlined; a cheap operator is 1
  list<index_t> dense{};  // the part of it that varies with every element

  static constexpr index_t few = 16; // loops up to this length are unrolled
  /// Cost of one operator without its operands.
  static constexpr index_t own(known k) {
    if (k == known::pointwise || k == known::div) return 8;
    return (k >= known::add && k <= known::cheap) ? 1 : 0;
  }

  constexpr role_table(graph const& graph_, list<known> const& what_) : g(graph_), what(what_) {
    std::size_t const n = g.nodes.size();
    of.reserve(n), weight.reserve(n), dense.reserve(n);
    for (std::size_t k = 0; k < n; ++k) classify(g.nodes[k], what[k]);
  }
  constexpr dims const& sizes(int n) const { return g.nodes[static_cast<std::size_t>(n)].out.sizes; }
  constexpr int input(node const& n, int k) const { return g.edges[static_cast<std::size_t>(n.first + k)]; }

  /// Whether the results of a reduction are accumulated side by side in one loop over what is reduced.
  constexpr bool unrolls(int n) const {
    if (n < 0) return false;
    auto const k = static_cast<std::size_t>(n);
    node const& nd = g.nodes[k];
    if (of[k] == role::product) {
      index_t const kept = numel(nd.out.sizes);
      return kept > 1 && kept <= few && inner(nd) >= 2 * kept;
    }
    if (of[k] != role::reduction) return false;
    dims const& s = sizes(input(nd, 0));
    index_t const kept = numel(nd.out.sizes), last = s.n - 1;
    return kept > 1 && kept <= few && numel(s) >= 4 * kept * kept && !nd.at[0].contains(last) && s[static_cast<int>(last)] > 1 &&
           dense[static_cast<std::size_t>(input(nd, 0))] * kept <= 64;
  }
  /// The iteration space of a stored node.
  constexpr dims space(int n) const {
    auto const k = static_cast<std::size_t>(n);
    node const& nd = g.nodes[k];
    if (of[k] == role::product) {
      dims const& b = sizes(input(nd, 1));
      dims const& a = sizes(input(nd, 0));
      if (unrolls(n)) return squeeze(dims(inner(nd)));
      return squeeze(numel(a) > numel(b) ? a : b);
    }
    if (of[k] != role::reduction) return squeeze(nd.out.sizes);
    dims const& s = sizes(input(nd, 0));
    if (!unrolls(n)) return squeeze(s);
    dims r;
    for (int d = 0; d < s.n; ++d)
      if (nd.at[0].contains(d) && s[d] != 1) r.push_back(s[d]);
    return r;
  }

private:
  constexpr index_t inner(node const& nd) const {
    dims const& a = sizes(input(nd, 0));
    return a[a.n - (nd.at[0][0] != 0 ? 2 : 1)];
  }
  constexpr void classify(node const& nd, known k) {
    role r = role::inlined;
    index_t w = own(k), d = w, times = 1;
    index_t const size = numel(nd.out.sizes);
    switch (k) {
    case known::placeholder:
    case known::data:
    case known::constant: r = role::source; break;
    case known::sum:
    case known::amax:
    case known::amin: {
      index_t const reduced = numel(sizes(input(nd, 0))) / (size > 0 ? size : 1);
      auto const a = static_cast<std::size_t>(input(nd, 0));
      if (reduced <= few && dense[a] * reduced <= 64 && reduced > 0) times = reduced, w = d = reduced;
      else r = role::reduction;
      break;
    }
    case known::mm: {
      index_t const in = inner(nd);
      dims const& s = nd.out.sizes;
      bool const vector = s[s.n - 1] == 1 || s[s.n - 2] == 1;
      if (in == 0 || !is_floating(nd.out.type)) r = role::call;
      else if (in == 1 || (vector && in <= few && (size >= 8 || in <= 4)) || (in <= 4 && size <= 16)) times = in, w = d = in;
      else r = vector && s.n == 2 ? role::product : role::call;
      break;
    }
    case known::slice_backward: r = nd.at[1][3] == 1 ? role::inlined : role::call; break;
    case known::gather:
    case known::scatter_add:
    case known::argmax:
    case known::cond:
    case known::scan:
    case known::getitem:
    case known::other: r = role::call; break;
    default: break;
    }
    if (r == role::inlined)
      for (int e = 0; e < nd.count; ++e) {
        auto const o = static_cast<std::size_t>(input(nd, e));
        if (of[o] != role::inlined) continue;
        w += weight[o] * times;
        if (numel(g.nodes[o].out.sizes) >= size && (size > 1 || times > 1)) d += dense[o] * times;
      }
    else w = d = 0;
    of.push_back(r);
    weight.push_back(w < 100000 ? w : 100000);
    dense.push_back(d < 100000 ? d : 100000);
  }
};

} // namespace varve::loop

// ---- varve/graph/root.hpp
/// @file
/// What the members of a loop leave behind, and the costs by which a loop nest chooses its form.
namespace varve::loop {

/// What a loop leaves behind, over the iteration space: `at` is the affine address in the buffer.
struct root {
  sink_kind kind = sink_kind::store;
  bool product = false, accumulate = false;
  int a = -1, b = -1; // instances
  access at = blank_access;
};

namespace detail {
constexpr bool is_integer(dtype t) { return category(t) == 1; }

/// Lowest register type that holds every value: floats and booleans, doubles with anything but float, or a mixture.
constexpr lane lanes_for(unfolding const& u) {
  bool f32 = false, f64 = false, integers = false;
  for (instance const& i : u.all) {
    if (i.as == instance::form::alias || i.as == instance::form::zero) continue;
    dtype const t = u.f.g.nodes[i.node].out.type;
    f32 |= t == dtype::float32, f64 |= t == dtype::float64, integers |= is_integer(t);
  }
  return f32 && (f64 || integers) ? lane::wide : f64 || integers ? lane::f64 : lane::f32;
}

/// Cost of vectorizing loop `d`, per element: steps and memory accesses, with the waste of the last partial vector.
constexpr double vector_cost(body const& b, list<access> const& acc, int d, int steps, int width) {
  double cost = steps;
  for (access const& a : acc)
    if (a.buffer >= 0) cost += a.stride[d] == 0 ? 0.3 : a.stride[d] == 1 ? 1.0 : width * 1.2;
  index_t const n = b.extent[d], vectors = (n + width - 1) / width;
  return cost * static_cast<double>(vectors) / static_cast<double>(n);
}
} // namespace detail

/// Appends a stage that fills a buffer with the neutral element of a reduction.
constexpr void fill(program& p, int buffer, sink_kind kind) {
  stage s = blank_stage;
  s.kind = stage_kind::fill;
  s.out = buffer;
  double const inf = std::numeric_limits<double>::infinity();
  s.value = kind == sink_kind::sum ? 0.0 : kind == sink_kind::greatest ? -inf : inf;
  p.stages.push_back(s);
}

} // namespace varve::loop

// ---- varve/graph/lower.hpp
/// @file
/// Lowering: from the instances of an unfolding to the steps of one loop nest, its loop order and its SIMD dimension.
namespace varve::loop {

/// Appends the loop nest that computes `roots` over `u.range` to `p`. `buffer_of` gives the buffer of every stored node.
constexpr void lower(unfolding const& u, int rank, list<root> const& roots, list<int> const& buffer_of, program& p) {
  graph const& g = u.f.g;
  // Plain pointers: each call saved is saved a thousand times in the compiler.
  instance const* const all = u.all.data();
  axis_index const* const maps = u.maps.data();
  int const *const args = u.args.data(), *const edges = g.edges.data(), *const head = u.head.data(), *const buffer_of_ = buffer_of.data();
  node const* const nodes = g.nodes.data();
  known const* const what_of = u.f.what.data();
  int const count = static_cast<int>(u.all.size());
  body b = blank_body;
  b.type = detail::lanes_for(u);

  // Affine addresses over the iteration space: loads first, then sinks.
  list<access> acc;
  list<int> access_numbers(static_cast<std::size_t>(count), -1);
  int* const access_of = access_numbers.data();
  int steps = 0;
  for (int i = 0; i < count; ++i) {
    instance const& in = all[i];
    if (in.as == instance::form::alias || in.as == instance::form::zero) continue;
    node const& nd = nodes[in.node];
    known const what = what_of[in.node];
    bool const index = what == known::arange || what == known::one_hot;
    if (in.as == instance::form::value && !index) {
      steps += 1;
      continue;
    }
    access a = blank_access;
    dims const stride = contiguous_strides(nd.out.sizes);
    for (int k = 0; k < nd.out.sizes.n; ++k) {
      if (index && k + 1 < nd.out.sizes.n) continue; // the last index is the value
      axis_index const& x = maps[in.map + k];
      index_t const s = index ? 1 : stride[k];
      a.offset += x.offset * s;
      if (x.dim >= 0) a.stride[x.dim] += x.coef * s;
    }
    if (!index) {
      int from = in.node;
      if (what_of[from] == known::reshape && buffer_of_[from] < 0) from = edges[nd.first];
      a.buffer = buffer_of_[from];
    }
    access_of[i] = static_cast<int>(acc.size());
    acc.push_back(a);
  }
  int const first_sink = static_cast<int>(acc.size());
  for (root const& r : roots) acc.push_back(r.at);
  for (access& a : acc)
    for (int d = 0; d < rank; ++d) a.offset += a.stride[d] * u.range.lo[d];

  // Loops: extent 1 dropped, adjacent ones that every access walks as one merged.
  for (int d = 0; d < rank; ++d) {
    index_t const n = u.range.hi[d] - u.range.lo[d];
    if (n == 1) continue;
    int const l = b.rank;
    bool merge = l > 0;
    for (access const& a : acc) merge = merge && a.stride[l - 1] == n * a.stride[d];
    if (merge) {
      for (access& a : acc) a.stride[l - 1] = a.stride[d];
      b.extent[l - 1] *= n;
    } else {
      for (access& a : acc) a.stride[l] = a.stride[d];
      b.extent[l] = n;
      ++b.rank;
    }
  }
  for (access& a : acc)
    for (int d = b.rank; d < max_rank; ++d) a.stride[d] = 0;

  // Loop order: what all reductions keep goes outside, so that they accumulate in registers; unless that would walk a large input in columns.
  index_t volume = 1;
  for (int d = 0; d < b.rank; ++d) volume *= b.extent[d];
  int order[max_rank]{}, placed = 0;
  bool reduces = false;
  for (root const& r : roots) reduces |= r.kind != sink_kind::store;
  auto kept = [&](int d) {
    for (std::size_t r = 0; r < roots.size(); ++r)
      if (roots[r].kind != sink_kind::store && acc[static_cast<std::size_t>(first_sink) + r].stride[d] == 0) return false;
    return true;
  };
  bool const reorder = reduces && volume <= 16384;
  for (int pass = reorder ? 0 : 1; pass < 2; ++pass)
    for (int d = 0; d < b.rank; ++d)
      if (reorder ? kept(d) == (pass == 0) : true) order[placed++] = d;
  {
    list<access> const old = acc;
    body const before = b;
    for (int l = 0; l < b.rank; ++l) {
      b.extent[l] = before.extent[order[l]];
      for (std::size_t k = 0; k < acc.size(); ++k) acc[k].stride[l] = old[k].stride[order[l]];
    }
  }
  if (b.type != lane::wide && b.rank > 0) {
    int const lanes = static_cast<int>(b.type == lane::f32 ? kernel::lanes<float> : kernel::lanes<double>);
    double best = 1e300;
    for (int d = b.rank - 1; d >= 0; --d) {
      double const c = detail::vector_cost(b, acc, d, steps, lanes);
      if (c < best) best = c, b.vector = d;
    }
    if (lanes == 1) b.vector = -1;
    int sums = 0;
    for (root const& r : roots) sums += r.kind != sink_kind::store;
    b.paired = sums > 4;
    b.unroll = sums > 4 || steps > 24 ? 1 : sums > 2 || steps > 6 ? 2 : 4; // accumulators stay in registers
  }
  int const inner = b.rank - 1;

  // Steps, in the order of the nodes; those that do not change in the innermost loop apart.
  list<int> by_node(static_cast<std::size_t>(count), 0);
  {
    std::size_t k = 0;
    for (std::size_t n = 0; n < u.head.size() && static_cast<int>(n) <= u.highest; ++n)
      for (int i = u.head[n]; i >= 0; i = all[i].next) by_node[k++] = i;
  }
  list<int> slots(static_cast<std::size_t>(count), 0), targets(static_cast<std::size_t>(count), 0), step_numbers(static_cast<std::size_t>(count), -1);
  int *const slot = slots.data(), *const resolved = targets.data(), *const step_of = step_numbers.data();
  list<char> exact(static_cast<std::size_t>(count), 0);
  char* const rounded = exact.data(); // used by more than additions: the product itself is needed
  for (int i : by_node) {
    instance const& in = all[i];
    resolved[i] = in.as == instance::form::alias ? resolved[args[in.args]] : i;
  }
  auto is_product = [&](int i) { return all[i].as == instance::form::value && what_of[all[i].node] == known::mul; };
  auto sums_products = [&](instance const& in) { // then it is a dot product
    bool all_are = b.vector >= 0 && what_of[in.node] == known::sum && in.count > 1;
    for (int k = 0; k < in.count && all_are; ++k) all_are = is_product(resolved[args[in.args + k]]);
    return all_are;
  };
  for (int i = 0; i < count; ++i) {
    instance const& in = all[i];
    if (in.as != instance::form::value) continue;
    known const what = what_of[in.node];
    if (sums_products(in)) continue;
    for (int k = 0; k < in.count; ++k) {
      int const a = resolved[args[in.args + k]];
      int const other = (what == known::add || what == known::sub) ? resolved[args[in.args + 1 - k]] : a;
      bool const sum_of_products = other != a && (k == 1 || what_of[all[other].node] != known::mul);
      if (!(sum_of_products && (what == known::add || k == 1))) rounded[a] = 1;
    }
  }
  for (root const& r : roots) {
    if (r.kind != sink_kind::sum || r.product || b.vector < 0) rounded[resolved[r.a]] = 1;
    if (r.product) rounded[resolved[r.b]] = 1;
  }
  list<step> fixed, varying;
  int const access_base = static_cast<int>(p.accesses.size());
  int const width = static_cast<int>(b.type == lane::f32 ? kernel::lanes<float> : kernel::lanes<double>);
  int const at_once = b.type == lane::f32 ? fields_at_once<float> : fields_at_once<double>;
  // Strided loads of neighbours (the fields of a record) come 16 bytes of a record at a time, which are transposed in registers.
  auto records = [&](int first) {
    list<int> fields;
    access const& like = acc[access_of[first]];
    for (int i = first; i >= 0; i = all[i].next) {
      access const& a = acc[access_of[i]];
      bool same = a.buffer == like.buffer;
      for (int l = 0; l < b.rank; ++l) same = same && a.stride[l] == like.stride[l];
      if (same) fields.push_back(i);
    }
    for (std::size_t k = 1; k < fields.size(); ++k) // by address; they come nearly sorted
      for (std::size_t q = k; q > 0 && acc[access_of[fields[q]]].offset < acc[access_of[fields[q - 1]]].offset; --q) std::swap(fields[q], fields[q - 1]);
    int const n = static_cast<int>(fields.size());
    if (n < at_once || acc[access_of[fields.back()]].offset - acc[access_of[fields[0]]].offset != n - 1) return;
    for (int k = 0; k < n; k += at_once) {
      int const start = k + at_once <= n ? k : n - at_once; // the last ones overlap
      for (int q = 0; q < at_once; ++q) {
        step s = blank_step;
        s.kind = q ? step_kind::none : step_kind::records;
        s.type = nodes[all[first].node].out.type;
        s.access = access_base + access_of[fields[static_cast<std::size_t>(start + q)]];
        s.slot = static_cast<int>(varying.size());
        if (start + q >= k) slot[fields[static_cast<std::size_t>(start + q)]] = s.slot, step_of[fields[static_cast<std::size_t>(start + q)]] = s.slot;
        varying.push_back(s);
      }
    }
  };
  auto factor = [&](int m, int k) { return slot[resolved[args[all[m].args + k]]]; };
  auto vanish = [&](int m) { // a product whose users multiply by themselves
    if (step_of[m] >= 0 && !rounded[m]) varying[step_of[m]].kind = step_kind::none;
  };
  for (int i : by_node) {
    instance const& in = all[i];
    if (in.as == instance::form::alias || step_of[i] >= 0) continue;
    if (in.as == instance::form::load && b.vector >= 0 && b.vector == inner && width > 1 && b.extent[inner] >= width) {
      dtype const t = nodes[in.node].out.type;
      if (acc[access_of[i]].stride[inner] > 1 && (t == dtype::float32) == (b.type == lane::f32) && is_floating(t) && i == head[in.node]) records(i);
      if (step_of[i] >= 0) continue;
    }
    node const& nd = nodes[in.node];
    known const what = what_of[in.node];
    step s = blank_step;
    s.type = nd.out.type, s.wide = b.type == lane::wide;
    s.args = static_cast<int>(p.slots.size());
    if (in.as == instance::form::zero) s.kind = step_kind::constant;
    else if (in.as == instance::form::load) s.kind = step_kind::load;
    else if (what == known::constant) s.kind = step_kind::constant, s.value = nd.value;
    else if (what == known::arange || what == known::one_hot) s.kind = step_kind::index;
    else if (what == known::convert) s.kind = step_kind::convert, s.from = nodes[edges[nd.first]].out.type;
    else if (what == known::sum) s.kind = step_kind::sum;
    else if (what == known::amax) s.kind = step_kind::greatest;
    else if (what == known::amin) s.kind = step_kind::least;
    else if (what == known::mm) s.kind = step_kind::dot;
    else s.kind = step_kind::op, s.op = nd.op, s.from = nd.count ? nodes[edges[nd.first + nd.count - 1]].out.type : s.type;
    bool invariant = true;
    if (int const a = access_of[i]; a >= 0) {
      s.access = access_base + a;
      invariant = inner < 0 || acc[a].stride[inner] == 0;
    }
    auto take = [&](int a) {
      p.slots.push_back(a);
      if (s.count < 3) s.in[s.count] = a;
      invariant = invariant && a < 0;
      ++s.count;
    };
    if (sums_products(in)) {
      s.kind = step_kind::dot;
      for (int k = 0; k < in.count; ++k) {
        int const m = resolved[args[in.args + k]];
        take(factor(m, 0)), take(factor(m, 1));
        vanish(m);
      }
    } else if (in.as == instance::form::value) {
      for (int k = 0; k < in.count; ++k) take(slot[resolved[args[in.args + k]]]);
    }
    // a * b + c in one instruction, when the product is used in sums only
    if ((what == known::add || what == known::sub) && s.kind == step_kind::op && !invariant && b.vector >= 0) {
      for (int k = 1; k >= (what == known::sub ? 1 : 0); --k) {
        int const m = resolved[args[in.args + k]], other = slot[resolved[args[in.args + 1 - k]]];
        if (step_of[m] < 0 || rounded[m] || !is_product(m)) continue;
        s.kind = what == known::sub ? step_kind::fnma : step_kind::fma;
        s.in[0] = factor(m, 0), s.in[1] = factor(m, 1), s.in[2] = other;
        s.count = 3;
        vanish(m);
        break;
      }
    }
    if (s.kind == step_kind::op && !s.wide && what >= known::add && what <= known::div)
      s.kind = what == known::add ? step_kind::add : what == known::sub ? step_kind::sub : what == known::mul ? step_kind::mul : step_kind::div;
    if (b.rank == 0) invariant = false;
    s.slot = static_cast<int>(invariant ? fixed.size() : varying.size());
    slot[i] = invariant ? ~s.slot : s.slot;
    step_of[i] = invariant ? -1 : s.slot;
    (invariant ? fixed : varying).push_back(s);
  }
  auto multiplies = [&](root const& r) { return r.kind == sink_kind::sum && !r.product && b.vector >= 0 && is_product(resolved[r.a]) && !rounded[resolved[r.a]]; };
  for (root const& r : roots)
    if (multiplies(r)) vanish(resolved[r.a]);
  b.fixed_first = static_cast<int>(p.steps.size()), b.fixed_count = static_cast<int>(fixed.size());
  for (step const& s : fixed) p.steps.push_back(s);
  b.step_first = static_cast<int>(p.steps.size()), b.step_count = static_cast<int>(varying.size());
  for (step const& s : varying) p.steps.push_back(s);
  b.paired = b.paired && b.step_count <= 128;

  b.sink_first = static_cast<int>(p.sinks.size()), b.sink_count = static_cast<int>(roots.size());
  for (std::size_t r = 0; r < roots.size(); ++r) {
    sink s = blank_sink;
    s.kind = roots[r].kind, s.product = roots[r].product, s.accumulate = roots[r].accumulate;
    s.a = slot[resolved[roots[r].a]];
    if (s.product) s.b = slot[resolved[roots[r].b]];
    else if (multiplies(roots[r])) s.product = true, s.a = factor(resolved[roots[r].a], 0), s.b = factor(resolved[roots[r].a], 1);
    s.access = access_base + first_sink + static_cast<int>(r);
    if (s.kind != sink_kind::store) {
      int level = b.rank;
      while (level > 0 && acc[first_sink + static_cast<int>(r)].stride[level - 1] == 0) --level;
      s.level = level < b.rank || b.rank == 0 ? level : -1;
      bool again = s.level < 0; // an outer loop comes back to the same element
      for (int l = 0; l < level; ++l) again = again || acc[first_sink + static_cast<int>(r)].stride[l] == 0;
      if (again && !s.accumulate) {
        fill(p, roots[r].at.buffer, s.kind);
        s.accumulate = true;
      }
    }
    p.sinks.push_back(s);
  }
  for (access const& a : acc) p.accesses.push_back(a);
  stage st = blank_stage;
  st.number = static_cast<int>(p.bodies.size());
  p.bodies.push_back(b);
  p.stages.push_back(st);
}

} // namespace varve::loop

// ---- varve/graph/seed.hpp
namespace varve::loop {

/// A node that a loop computes, or a copy of its value.
struct member {
  int node;
  int copy_to; // result buffer of a copy, -1 for the node's own
};

/// Demands from an unfolding what a member of a loop needs at one point of the space, and tells where it leaves its value.
constexpr void seed(unfolding& u, role_table const& roles, list<int> const& buffer_of, member const& m, list<root>& roots) {
  graph const& g = roles.g;
  node const& nd = g.nodes[m.node];
  axis_index map[max_rank]{};
  role const kind = m.copy_to < 0 ? roles.of[m.node] : role::inlined;
  root r;
  r.at.buffer = m.copy_to < 0 ? buffer_of[m.node] : m.copy_to;
  dims const out = contiguous_strides(nd.out.sizes);
  if (kind == role::inlined || kind == role::source) {
    unfolding::identity(nd.out.sizes, map);
    r.a = u.demand(m.node, map);
    for (int k = 0; k < nd.out.sizes.n; ++k)
      if (map[k].dim >= 0) r.at.stride[map[k].dim] = out[k];
    roots.push_back(r);
    return;
  }
  bool const unrolled = roles.unrolls(m.node);
  int const a = roles.input(nd, 0);
  dims const& s = g.nodes[a].out.sizes;
  if (kind == role::product) { // mm with one row or column
    bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
    int const b = roles.input(nd, 1);
    index_t const rows = s[ta ? 1 : 0], inner = s[ta ? 0 : 1], cols = g.nodes[b].out.sizes[tb ? 0 : 1];
    r.kind = sink_kind::sum, r.product = true;
    bool const inner_first = rows > 1 ? ta : !tb; // the layout of the larger operand
    index_t const free = rows > 1 ? rows : cols;
    for (index_t e = 0; e < (unrolled ? free : 1); ++e) {
      axis_index const k{inner == 1 ? -1 : unrolled || inner_first || free == 1 ? 0 : 1, 0, inner == 1 ? 0 : 1};
      axis_index const f = unrolled ? axis_index{-1, e, 0} : free == 1 ? axis_index{-1, 0, 0} : axis_index{inner_first && inner > 1 ? 1 : 0, 0, 1};
      axis_index const row = rows > 1 ? f : axis_index{-1, 0, 0}, col = rows > 1 ? axis_index{-1, 0, 0} : f;
      map[0] = ta ? k : row, map[1] = ta ? row : k;
      r.a = u.demand(a, map);
      map[0] = tb ? col : k, map[1] = tb ? k : col;
      r.b = u.demand(b, map);
      r.at.offset = unrolled ? e : 0;
      if (f.dim >= 0) r.at.stride[f.dim] = 1;
      roots.push_back(r);
    }
    return;
  }
  r.kind = roles.what[m.node] == known::sum ? sink_kind::sum : roles.what[m.node] == known::amax ? sink_kind::greatest : sink_kind::least;
  bool const keep = nd.at[1][0] != 0;
  dims stride; // of the result, per axis of the operand
  for (int k = 0, o = 0; k < s.n; ++k) {
    bool const reduced = nd.at[0].contains(k);
    stride.push_back(reduced ? 0 : out[o]);
    o += !reduced || keep;
  }
  index_t const copies_ = unrolled ? numel(nd.out.sizes) : 1;
  for (index_t e = 0; e < copies_; ++e) {
    int d = 0;
    r.at.offset = e;
    for (int k = 0; k < s.n; ++k) {
      map[k] = {-1, 0, 0};
      if (s[k] == 1) continue;
      bool const reduced = nd.at[0].contains(k);
      if (unrolled && !reduced) map[k] = {-1, e / stride[k] % s[k], 0};
      else map[k] = {d, 0, 1}, r.at.stride[d++] = stride[k];
    }
    r.a = u.demand(a, map);
    roots.push_back(r);
  }
}

} // namespace varve::loop

// ---- varve/graph/plan.hpp
/// @file
/// Planning: which values are stored, which loops compute them, in which order.
namespace varve::loop {

/// Plans a graph (region 0). Work is bounded by the number of loops times the number of nodes.
class planner {
public:
  constexpr explicit planner(graph const& graph_) : g(graph_), what(identify(graph_)), roles(graph_, what) {
    std::size_t const n = g.nodes.size();
    stored.assign(n, 0), group.assign(n, -1), buffer_of.assign(n, -1);
    for (std::size_t k = 0; k < n; ++k) opaque.push_back(roles.of[k] == role::call);
  }
  constexpr program run() {
    results();
    auto const own = static_cast<std::size_t>(g.regions[0].node_count);
    for (std::size_t k = 0; k < own; ++k) {
      if (roles.of[k] != role::inlined && roles.of[k] != role::source) stored[k] = 1;
      if (roles.of[k] == role::call)
        for (int e = 0; e < g.nodes[k].count; ++e) store(base(input(g.nodes[k], e)));
    }
    for (int round = 0; round < 12 && !arrange(); ++round) {}
    for (std::size_t k = 0; k < own; ++k)
      if (stored[k] && buffer_of[k] < 0) buffer_of[k] = new_buffer(g.nodes[k], place::arena, 0);
    for (std::size_t k = 0; k < groups.size(); ++k) {
      if (groups[k].call >= 0) call(groups[k].call);
      else boxes(static_cast<int>(k));
    }
    place_in_arena(p);
    return static_cast<program&&>(p);
  }

private:
  struct one_group {
    dims space;
    int call = -1;
    list<member> members{};
  };
  graph const& g;
  list<known> what;
  role_table roles;
  list<char> stored{}, opaque{};
  list<int> group{}, buffer_of{};
  list<member> copies{};
  list<one_group> groups{};
  program p{};

  constexpr int input(node const& n, int k) const { return g.edges[n.first + k]; }
  constexpr void store(int n) {
    if (!is_given(what[n])) stored[n] = 1;
  }
  /// The node whose buffer holds the elements of `n`: reshapes are free.
  constexpr int base(int n) const {
    while (what[n] == known::reshape && !stored[n]) n = input(g.nodes[n], 0);
    return n;
  }
  constexpr int new_buffer(meta const& m, index_t rows) {
    p.buffers.push_back({place::arena, m.type, 0, numel(m.sizes) * rows});
    return static_cast<int>(p.buffers.size()) - 1;
  }
  constexpr int new_buffer(node const& n, place where, index_t number) {
    p.buffers.push_back({where, n.out.type, number, numel(n.out.sizes)});
    return static_cast<int>(p.buffers.size()) - 1;
  }
  /// The buffer of an array constant.
  constexpr int constants(node const& n) {
    auto const first = static_cast<std::ptrdiff_t>(n.value);
    int const buffer = new_buffer(n, place::constant, static_cast<index_t>(p.constants.size()));
    for (index_t e = 0; e < numel(n.out.sizes); ++e) p.constants.push_back(g.constants[first + e]);
    return buffer;
  }
  constexpr void results() {
    region const& r = g.regions[0];
    for (int k = 0; k < r.inputs; ++k) buffer_of[r.node_first + k] = new_buffer(g.nodes[r.node_first + k], place::argument, k);
    for (int k = 0; k < r.node_count; ++k)
      if (what[r.node_first + k] == known::data) buffer_of[r.node_first + k] = constants(g.nodes[r.node_first + k]);
    for (int k = 0; k < r.result_count; ++k) {
      int const n = g.results[r.result_first + k], b = base(n);
      int const buffer = new_buffer(g.nodes[n], place::result, k);
      p.results.push_back(g.nodes[n].out);
      if (is_given(what[b]) || stored[b]) copies.push_back({n, buffer});
      else stored[b] = 1, buffer_of[b] = buffer;
    }
  }
  /// Assigns every stored node to a loop or a call. False when more values turned out to need storing.
  constexpr bool arrange() {
    groups.clear();
    bool stable = true;
    list<int> seen(g.nodes.size(), -1);
    for (std::size_t k = 0; k < g.nodes.size() && static_cast<int>(k) < g.regions[0].node_count; ++k) {
      if (!stored[k]) continue;
      if (opaque[k]) {
        int after = -1;
        for (int e = 0; e < g.nodes[k].count; ++e) {
          int const b = base(input(g.nodes[k], e));
          store(b);
          if (group[b] > after) after = group[b];
        }
        if (what[k] == known::getitem) { // written by its operand
          group[k] = after;
          continue;
        }
        group[k] = static_cast<int>(groups.size()); // always after its operands: groups are executed in order
        groups.push_back({dims{}, static_cast<int>(k)});
      } else {
        stable = join({static_cast<int>(k), -1}, seen) && stable;
      }
    }
    for (member const& c : copies) stable = join(c, seen) && stable;
    return stable;
  }
  constexpr bool join(member const& m, list<int>& seen) {
    dims const space = m.copy_to < 0 ? roles.space(m.node) : squeeze(g.nodes[m.node].out.sizes);
    facts const f{g, what, stored, opaque, group};
    unfolding u(f, -1, true);
    u.self = m.copy_to < 0 ? m.node : -1;
    list<root> none;
    seed(u, roles, buffer_of, m, none);
    std::size_t const seeds = u.all.size();
    u.run();
    int earliest = 0;
    bool stable = true;
    for (instance const& i : u.all) {
      int n = i.node;
      if (i.as != instance::form::load || is_given(what[n])) continue;
      bool const linear = !u.is_leaf(n);
      if (linear) n = base(input(g.nodes[n], 0));
      if (is_given(what[n])) continue;
      if (!stored[n]) {
        stored[n] = 1;
        stable = false;
        continue;
      }
      bool const together = !linear && roles.of[n] == role::inlined && u.is_identity(i, space);
      int const after = group[n] + (together ? 0 : 1);
      if (after > earliest) earliest = after;
    }
    int j = earliest;
    while (j < static_cast<int>(groups.size()) && (groups[j].call >= 0 || !(groups[j].space == space))) ++j;
    // Values that would be computed too often are stored: in descending order, since what a stored value needs is then not needed here.
    list<char> needed(u.all.size(), 0);
    for (std::size_t i = 0; i < seeds; ++i) needed[i] = 1;
    index_t const volume = numel(space);
    list<index_t> again(static_cast<std::size_t>(u.highest) + 1, 0); // cost of what is computed at several indices
    for (int n = 0; n <= u.highest; ++n) {
      int const h = u.head[n];
      if (h < 0 || u.all[h].next < 0 || u.all[h].as != instance::form::value) continue;
      node const& nd = g.nodes[n];
      index_t c = role_table::own(what[n]);
      for (int k = 0; k < nd.count; ++k) c += again[input(nd, k)];
      again[n] = c;
    }
    int const own = m.copy_to < 0 ? m.node : -1;
    for (int n = u.highest; n >= 0; --n) {
      int const h = u.head[n];
      if (h < 0) continue;
      int maps = 0;
      for (int i = h; i >= 0; i = u.all[i].next) maps += needed[i];
      if (!maps) continue;
      bool keep = false;
      if (n != own && u.all[h].as == instance::form::value && what[n] != known::constant && what[n] != known::arange) {
        index_t const size = numel(g.nodes[n].out.sizes), w = roles.weight[n];
        bool const repeated = size == 1 ? volume > 1 && w >= 1 : size * 2 <= volume && w >= 2 && !roles.unrolls(own);
        keep = repeated || (again[n] >= 8 && 2 * maps * volume > 3 * size) || (w >= 8 && seen[n] >= 0 && seen[n] != j);
        seen[n] = j;
      }
      if (keep) {
        stored[n] = 1;
        stable = false;
        continue;
      }
      for (int i = h; i >= 0; i = u.all[i].next)
        for (int k = 0; k < u.all[i].count; ++k) needed[u.args[u.all[i].args + k]] = 1;
    }
    if (j == static_cast<int>(groups.size())) groups.push_back({space});
    groups[j].members.push_back(m);
    if (m.copy_to < 0) group[m.node] = j;
    return stable;
  }
  /// A branch, whose operand 0 is the predicate, or a scan.
  constexpr void higher_order(int n) {
    node const& nd = g.nodes[n];
    region const& r = g.regions[nd.regions_first];
    bool const loop = what[n] == known::scan;
    int const first = loop ? 0 : 1;
    stage s = blank_stage;
    s.kind = loop ? stage_kind::scan : stage_kind::branch;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.region = nd.regions_first, c.operands = nd.count - first, c.results = r.result_count, c.at = nd.at;
    if (!loop) s.in[0] = buffer_of[base(input(nd, 0))];
    s.in[1] = static_cast<int>(p.slots.size());
    for (int k = first; k < nd.count; ++k) p.slots.push_back(buffer_of[base(input(nd, k))]);
    s.in[2] = static_cast<int>(p.slots.size());
    for (int k = 0; k < c.results; ++k) p.slots.push_back(c.results == 1 ? buffer_of[n] : -1);
    for (int m = n + 1; m < g.regions[0].node_count; ++m)
      if (node const& item = g.nodes[m]; what[m] == known::getitem && input(item, 0) == n)
        p.slots[s.in[2] + static_cast<int>(item.at[0][0])] = buffer_of[m];
    index_t const carried = loop ? nd.at[0][0] : c.results;
    for (int k = 0; k < c.results; ++k) // results nobody uses are written all the same
      if (p.slots[s.in[2] + k] < 0) p.slots[s.in[2] + k] = new_buffer(g.nodes[g.results[r.result_first + k]].out, k < carried ? 1 : nd.at[1][0]);
    for (int k = 0; loop && k < carried; ++k) p.slots.push_back(new_buffer(g.nodes[input(nd, k)].out, 1));
    p.calls.push_back(c);
    p.stages.push_back(s);
  }
  constexpr void call(int n) {
    if (what[n] == known::cond || what[n] == known::scan) return higher_order(n);
    node const& nd = g.nodes[n];
    stage s = blank_stage;
    s.kind = what[n] == known::mm ? stage_kind::matmul : stage_kind::call;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.what = what[n], c.out = nd.out, c.at = nd.at;
    for (int k = 0; k < nd.count && k < 3; ++k) c.in[k] = g.nodes[input(nd, k)].out;
    p.calls.push_back(c);
    s.out = buffer_of[n];
    for (int k = 0; k < nd.count && k < 3; ++k) s.in[k] = buffer_of[base(input(nd, k))];
    p.stages.push_back(s);
  }
  /// Emits the loops of a group: one, or several over boxes when pieces of the space differ.
  constexpr void boxes(int j) {
    one_group const& gr = groups[j];
    facts const f{g, what, stored, opaque, group};
    unfolding u(f, j, false);
    list<box> todo(1, box{});
    for (int d = 0; d < gr.space.n; ++d) todo[0].hi[d] = gr.space[d];
    bool split = false;
    while (!todo.empty()) {
      u.clear();
      u.range = todo.back();
      todo.pop_back();
      list<root> roots;
      for (member const& m : gr.members) seed(u, roles, buffer_of, m, roots);
      u.run();
      if (u.cut_dim >= 0) {
        if (!split)
          for (root const& r : roots)
            if (r.kind != sink_kind::store) fill(p, r.at.buffer, r.kind);
        split = true;
        box left = u.range, right = u.range;
        left.hi[u.cut_dim] = right.lo[u.cut_dim] = u.cut_at;
        todo.push_back(right), todo.push_back(left);
        continue;
      }
      for (root& r : roots) r.accumulate = split && r.kind != sink_kind::store;
      lower(u, gr.space.n, roots, buffer_of, p);
    }
  }
};

/// The stages that compute region 0 of an (optimized) graph.
constexpr program plan(graph const& g) { return planner(g).run(); }

} // namespace varve::loop

// ---- varve/graph/run.hpp
namespace varve::loop {

template <class Make>
struct compiled;

/// Region `R` of the optimized graph of `Make`, as a program of its own.
template <class Make, int R>
struct region_of {
  constexpr graph operator()() const {
    graph const traced = Make{}();
    graph const g = optimize(traced);
    graph out;
    varve::detail::append(out, g, R, R + 1, 0);
    varve::detail::append(out, g, 1, static_cast<int>(g.regions.size()), 0); // keeps the numbers of branches within
    return out;
  }
};

template <class P, int Arguments, int Results>
void run(memory<Arguments, Results> mem);

namespace detail {
template <class P, int S, int R, int... A, int... Q>
VARVE_INLINE void run_region(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  using sub = compiled<region_of<typename P::make, R>>;
  loop::run<sub, sizeof...(A), sizeof...(Q)>({{address<P, P::value.slots[s.in[1] + A]>(mem)...}, {address<P, P::value.slots[s.in[2] + Q]>(mem)...}, nullptr});
}
} // namespace detail

namespace detail {
/// A loop: what is walked through and put out moves on by one row from step to step; what is carried lies in two places in turn.
template <class P, int S, int... A, int... Q>
VARVE_INLINE void run_scan(auto const& mem, std::integer_sequence<int, A...>, std::integer_sequence<int, Q...>) {
  constexpr stage s = P::value.stages[S];
  constexpr call_info c = P::value.calls[s.number];
  constexpr int carried = static_cast<int>(c.at[0][0]), walked = carried + static_cast<int>(c.at[0][1]), results = static_cast<int>(sizeof...(Q));
  constexpr index_t n = c.at[1][0];
  using sub = compiled<region_of<typename P::make, c.region>>;
  constexpr auto bytes = [](int slot) { return P::value.buffers[P::value.slots[slot]].elements * itemsize(P::value.buffers[P::value.slots[slot]].type); };
  constexpr index_t argument_step[] = {(A >= carried && A < walked ? bytes(s.in[1] + A) / (n ? n : 1) : 0)...};
  constexpr index_t result_step[] = {(Q >= carried ? bytes(s.in[2] + Q) / (n ? n : 1) : 0)...};
  memory<sizeof...(A), sizeof...(Q)> const all{{address<P, P::value.slots[s.in[1] + A]>(mem)...}, {address<P, P::value.slots[s.in[2] + Q]>(mem)...}, nullptr};
  void* here[] = {address<P, P::value.slots[s.in[2] + (Q < carried ? Q : 0)]>(mem)...};
  void* there[] = {address<P, P::value.slots[s.in[2] + (Q < carried ? results + Q : 0)]>(mem)...};
  if constexpr (n % 2) std::swap(here, there); // the last step leaves it where it is wanted
  ((A < carried ? void(std::memcpy(here[A < carried ? A : 0], all.argument[A], static_cast<std::size_t>(bytes(s.in[1] + A)))) : void()), ...);
  for (index_t k = 0; k < n; ++k) {
    index_t const row = c.at[0][2] ? n - 1 - k : k;
    loop::run<sub, sizeof...(A), sizeof...(Q)>(
        {{(A < carried ? here[A < carried ? A : 0] : static_cast<std::byte const*>(all.argument[A]) + row * argument_step[A])...},
         {(Q < carried ? there[Q] : static_cast<std::byte*>(all.result[Q]) + row * result_step[Q])...},
         nullptr});
    std::swap(here, there);
  }
}
} // namespace detail

/// Executes stage `S` of program `P`.
template <class P, int S>
VARVE_INLINE void run_stage(auto const& mem) {
  constexpr stage s = P::value.stages[S];
  if constexpr (s.kind == stage_kind::loops) {
    nest<P, s.number>::run(mem);
  } else if constexpr (s.kind == stage_kind::fill) {
    auto* p = address<P, s.out>(mem);
    for (index_t k = 0; k < P::value.buffers[s.out].elements; ++k) p[k] = static_cast<std::remove_reference_t<decltype(*p)>>(s.value);
  } else if constexpr (s.kind == stage_kind::branch) {
    constexpr call_info c = P::value.calls[s.number];
    using operands = std::make_integer_sequence<int, c.operands>;
    using results = std::make_integer_sequence<int, c.results>;
    if (*address<P, s.in[0]>(mem)) detail::run_region<P, S, c.region>(mem, operands{}, results{});
    else detail::run_region<P, S, c.region + 1>(mem, operands{}, results{});
  } else if constexpr (s.kind == stage_kind::scan) {
    constexpr call_info c = P::value.calls[s.number];
    detail::run_scan<P, S>(mem, std::make_integer_sequence<int, c.operands>{}, std::make_integer_sequence<int, c.results>{});
  } else {
    call<P, S>(mem);
  }
}

namespace detail {
template <class P, int From, class Mem, int... K>
VARVE_INLINE void run_stages([[maybe_unused]] Mem const& mem, std::integer_sequence<int, K...>) {
  (run_stage<P, From + K>(mem), ...);
}
template <class P, int Stages, class Mem, int... C>
VARVE_INLINE void run_blocks([[maybe_unused]] Mem const& mem, std::integer_sequence<int, C...>) { // folds are limited to 256 elements
  (run_stages<P, C * 64>(mem, std::make_integer_sequence<int, (Stages - C * 64 < 64 ? Stages - C * 64 : 64)>{}), ...);
}
} // namespace detail

/// Executes program `P` on the addresses of its arguments and results; temporaries live on the stack.
template <class P, int Arguments, int Results>
VARVE_INLINE void run(memory<Arguments, Results> mem) {
  constexpr int stages = static_cast<int>(P::value.used.stages);
  constexpr index_t bytes = P::value.workspace;
  alignas(64) std::byte arena[bytes > 0 ? bytes : 1];
  mem.arena = arena;
  detail::run_blocks<P, stages>(mem, std::make_integer_sequence<int, (stages + 63) / 64>{});
}

namespace detail {
/// The program in arrays of size `S`.
template <class Make, program_sizes S>
struct built {
  static constexpr static_program<S> build() { // every graph a named object: g++ 12 loses temporaries that hold storage
    graph const traced = Make{}();
    graph const better = optimize(traced);
    program const p = plan(better);
    return static_program<S>(p);
  }
  static constexpr auto value = build();
};
inline constexpr program_sizes usual{256, 1024, 4096, 8192, 256, 256, 256, 12, 16, 256};
template <class Make, class First = built<Make, usual>>
using built_once_or_twice = std::conditional_t<usual.holds(First::value.used), First, built<Make, First::value.used>>;
} // namespace detail

/// The program of the graph that `Make{}()` computes, as a constant `value`. It is computed once when it fits a usual size, else twice; what is not used of
/// the size is zeros, which cost nothing.
template <class Make>
struct compiled : detail::built_once_or_twice<Make> {
  using make = Make;
};

} // namespace varve::loop

// ---- varve/value/tensor_ref.hpp
namespace varve {

/// A view of row-major memory with an element type and shape known to the compiler: the door through which run-time memory (a `tensor`, a buffer, a span)
/// enters compile-time programs. It owns nothing. Operators read it as an `array`; fused functions read and write the memory itself.
template <class T, index_t... D>
class tensor_ref {
public:
  using element = std::remove_const_t<T>;
  using array_type = array<element, D...>;

  /// Views memory of at least `numel` elements.
  constexpr explicit tensor_ref(T* data) : data_(data) {}
  /// Views anything with `data()` and `size()`, whose size must be right: `shape_error`.
  template <class R>
    requires requires(R& r) {
      { r.data() } -> std::convertible_to<T*>;
      r.size();
    }
  constexpr explicit tensor_ref(R& range) : data_(range.data()) {
    if (static_cast<index_t>(range.size()) != array_type::count) refuse::shapes_do_not_match("tensor_ref", dims{static_cast<index_t>(range.size())}, ints<D...>::to_dims());
  }
  /// Views a tensor of this dtype and shape (`dtype_error`, `shape_error`), whose elements lie in row-major order (`value_error` otherwise). The tensor must outlive the view.
  explicit tensor_ref(tensor const& t) : data_(t.data<element>()) {
    if (!(t.sizes() == ints<D...>::to_dims())) refuse::shapes_do_not_match("tensor_ref", t.sizes(), ints<D...>::to_dims());
    if (!t.is_contiguous()) refuse::argument_is_invalid("tensor_ref", "the tensor is not contiguous; pass contiguous(t)");
  }

  constexpr T* data() const { return data_; }
  static constexpr index_t size() { return array_type::count; }
  constexpr T& operator[](index_t i) const { return data_[i]; }
  /// A copy of the elements.
  constexpr array_type load() const {
    array_type r{};
    for (index_t k = 0; k < size(); ++k) r.data[k] = data_[k];
    return r;
  }

private:
  T* data_;
};

/// An extent of a `tensor_ref` that is known at run time only.
inline constexpr index_t dyn = -1;

/// ... of which some extents are known at run time only: `tensor_ref<float const, dyn, 3>`. Operators take it as a `tensor` on that memory, without a copy; strides are kept.
template <class T, index_t... D>
  requires((D == dyn) || ...)
class tensor_ref<T, D...> {
public:
  using element = std::remove_const_t<T>;
  using tensor_type = tensor;

  /// Views row-major memory of these sizes; `shape_error` where they differ from the extents.
  tensor_ref(T* data, dims const& sizes) : tensor_ref(data, sizes, contiguous_strides(sizes)) {}
  tensor_ref(T* data, dims const& sizes, dims const& strides) : data_(data), sizes_(sizes), strides_(strides) {
    dims const extents{D...};
    bool fits = sizes.n == extents.n && strides.n == extents.n;
    for (int k = 0; fits && k < extents.n; ++k) fits = extents[k] == dyn ? sizes[k] >= 0 : extents[k] == sizes[k];
    if (!fits) refuse::shapes_do_not_match("tensor_ref", sizes, extents);
  }
  /// Views anything with `data()` and `size()` as a vector.
  template <class R>
    requires(sizeof...(D) == 1 && requires(R& r) {
      { r.data() } -> std::convertible_to<T*>;
      r.size();
    })
  explicit tensor_ref(R& range) : tensor_ref(range.data(), dims{static_cast<index_t>(range.size())}) {}
  /// Views a tensor of this dtype (`dtype_error`), in whatever order its elements lie. The tensor must outlive the view.
  explicit tensor_ref(tensor const& t) : tensor_ref(t.data<element>(), t.sizes(), t.strides()) {}

  T* data() const { return data_; }
  index_t size() const { return numel(sizes_); }
  dims const& sizes() const { return sizes_; }
  /// A tensor on the memory.
  tensor view() const { return tensor::from_blob(const_cast<element*>(data_), sizes_, strides_, dtype_of_type<element>()); }

private:
  T* data_;
  dims sizes_, strides_;
};

template <class T, index_t... D>
  requires((D == dyn) || ...)
struct traits<tensor_ref<T, D...>> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor_ref<T, D...> const& x) { return x.sizes(); }
  static dims type(tensor_ref<T, D...> const&) { return dims{static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())}; }
};
template <class T, index_t... D>
struct traits<tensor_ref<T, D...>> {
  using base = array<std::remove_const_t<T>, D...>;
  static constexpr int level = 0;
  static constexpr ints<D...> shape(tensor_ref<T, D...> const&) { return {}; }
  static constexpr auto type(tensor_ref<T, D...> const&) { return ints<static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())>{}; }
};

/// First element of the memory behind a view.
template <class T, index_t... D>
  requires((D != dyn) && ...)
constexpr T* data_of(tensor_ref<T, D...> const& x) {
  return x.data();
}

} // namespace varve

// ---- varve/graph/fuse.hpp
namespace varve {
namespace loop {

/// The compiler's knowledge of a static argument: a number or an `array`.
template <class A>
inline constexpr meta meta_of{dtype_of_type<A>(), {}, true};
template <class T, index_t... D>
inline constexpr meta meta_of<array<T, D...>>{dtype_of_type<T>(), ints<D...>::to_dims(), false};

/// The static value that an argument of a fused function is: itself, or what a `tensor_ref` of static extents views. `none_t` for all else.
template <class A>
struct argument_type {
  using type = std::conditional_t<std::is_arithmetic_v<A> || is_array<A>, A, none_t>;
};
template <class T, index_t... D>
  requires((D != dyn) && ...)
struct argument_type<tensor_ref<T, D...>> {
  using type = static_value<std::remove_const_t<T>, ints<D...>>;
};
template <class A>
using argument = typename argument_type<A>::type;
template <class A>
inline constexpr bool can_fuse = !is_none<argument<A>>;

template <class... A>
constexpr bool accept_arguments() {
  static_assert((can_fuse<A> && ...), "varve: fuse: arguments are numbers, vv::array, and tensor_ref with extents known to the compiler; for tensors declare specs: fuse<spec<float, 3, 4>>(f)");
  return (can_fuse<A> && ...);
}

/// The static value that is written through what `into` was given: a variable, or the memory that a `tensor_ref` views. `none_t` for all else.
template <class R>
consteval auto target_of() {
  using X = std::remove_cvref_t<R>;
  if constexpr (!can_fuse<X>) return none;
  else if constexpr (!std::is_same_v<argument<X>, X>) {
    using pointee = std::remove_pointer_t<decltype(data_of(std::declval<X const&>()))>;
    return std::type_identity<std::conditional_t<std::is_const_v<pointee>, none_t, argument<X>>>{};
  } else return std::type_identity<std::conditional_t<std::is_lvalue_reference_v<R> && !std::is_const_v<std::remove_reference_t<R>>, X, none_t>>{};
}
template <class R, class Result>
inline constexpr bool can_take = std::is_same_v<std::remove_const_t<decltype(target_of<R>())>, std::type_identity<Result>>;

/// The graph of `F` for arguments `A...`, for `compiled`.
template <class F, class... A>
struct traced {
  constexpr graph operator()() const { return trace_graph(F{}, meta_of<A>...); } // found by argument-dependent lookup: the tracer is above this layer
};

/// Type of the `K`-th result of a program.
template <class P, int K>
struct result_type_of {
  static constexpr meta m = P::value.results[K];
  template <std::size_t... D>
  static auto type(std::index_sequence<D...>) -> static_value<type_of<m.type>, ints<m.sizes.v[D]...>>;
  using result = decltype(type(std::make_index_sequence<static_cast<std::size_t>(m.sizes.n)>{}));
};

template <class P, class K>
struct result_pack;
template <class P, std::size_t... K>
struct result_pack<P, std::index_sequence<K...>> {
  using tuple = std::tuple<typename result_type_of<P, static_cast<int>(K)>::result...>;
  template <class... A>
  static VARVE_INLINE auto call(A const&... a) {
    if constexpr (sizeof...(K) == 1) return one(a...);
    else return several(a...);
  }

private: // the result is declared in the outermost block: elsewhere g++ 12 would copy it
  template <class... A>
  static VARVE_INLINE auto one(A const&... a) {
    typename result_type_of<P, 0>::result r;
    run<P, sizeof...(A), 1>({{data_of(a)...}, {data_of(r)}, nullptr});
    return r;
  }
  template <class... A>
  static VARVE_INLINE tuple several(A const&... a) {
    tuple r; // zeroed, as std::tuple does: into(...) writes large results without that pass
    run<P, sizeof...(A), sizeof...(K)>({{data_of(a)...}, {data_of(std::get<K>(r))...}, nullptr});
    return r;
  }
};

/// Results to be written, waiting for the arguments.
template <class F, class... R>
struct writer {
  std::tuple<R...> out; // references to variables; views by value
  template <class... A>
  void operator()(A const&... a) const {
    if constexpr (std::is_empty_v<F> && accept_arguments<A...>()) {
      using P = compiled<traced<F, argument<A>...>>;
      static_assert(P::value.used.results == sizeof...(R), "varve: fuse: into(...) needs as many values as the function has results");
      write<P>(std::index_sequence_for<R...>{}, a...);
    }
  }

private:
  template <class P, std::size_t... K, class... A>
  VARVE_INLINE void write(std::index_sequence<K...>, A const&... a) const {
    static_assert((can_take<R, typename result_type_of<P, static_cast<int>(K)>::result> && ...),
                  "varve: fuse: into(...) needs variables, or tensor_ref, of the shapes and element types of the function's results");
    run<P, sizeof...(A), sizeof...(R)>({{data_of(a)...}, {data_of(std::get<K>(out))...}, nullptr});
  }
};
} // namespace loop

/// A function compiled as a whole: see `fuse`.
template <class F>
struct fused {
  static_assert(std::is_empty_v<F>, "varve: fuse: the function must capture nothing; pass the values as arguments");

  /// The program for arguments of the given types: its stages, its workspace, as a constant.
  template <class... A>
  using program = loop::compiled<loop::traced<F, loop::argument<A>...>>;
  /// Bytes of stack that temporaries need; 0 for purely pointwise functions and reductions.
  template <class... A>
  static constexpr index_t workspace_bytes = program<A...>::value.workspace;

  /// Runs on numbers, arrays, and memory that a `tensor_ref` of static extents views, in place. A result of rank 0 is a plain number, others are arrays, several a `std::tuple`;
  /// for several large ones prefer `into`.
  template <class... A>
  auto operator()(A const&... a) const {
    if constexpr (std::is_empty_v<F> && loop::accept_arguments<A...>()) { // after a message nothing more is instantiated
      using P = program<A...>;
      return loop::result_pack<P, std::make_index_sequence<P::value.used.results>>::call(a...);
    }
  }
  /// `f.into(r...)(x...)` writes the results to `r...`, variables or `tensor_ref`s: no copies of large arrays. No result may overlap an argument.
  template <class... R>
  constexpr loop::writer<F, R...> into(R&&... r) const {
    return {{static_cast<R&&>(r)...}};
  }
};

/// Compiles a function of numbers, arrays and `tensor_ref`s of static extents (over tensors, vectors, spans, pointers), for each set of argument types: traced, optimized and planned
/// by the compiler, then emitted as loops over SIMD registers without heap, thread-local state or indirect calls. What is constant in the function, arrays included, becomes part of
/// the program. `constexpr auto step = fuse(grad(loss)); auto g = step(w, x);`. `fuse<spec<float, 3, 4>>(f)` takes tensors (`fuse_tensors.hpp`).
template <class F>
constexpr fused<F> fuse(F const&) {
  return {};
}

} // namespace varve

// ---- varve/graph/fuse_tensors.hpp
/// @file
/// Fused functions of tensors: dtypes and sizes are declared, and checked once per call.
namespace varve {
namespace loop {

template <class S>
inline constexpr bool is_spec = false;
template <class T, index_t... D>
inline constexpr bool is_spec<spec_t<T, D...>> = true;
template <auto... S>
concept specs = (is_spec<std::remove_cvref_t<decltype(S)>> && ...);

/// The static value that a spec declares.
template <class S>
struct declared_type;
template <class T, index_t... D>
struct declared_type<spec_t<T, D...>> {
  static constexpr bool fixed = (!is_symbol(D) && ...);
  using element = T;
  using type = static_value<T, ints<D...>>;
};
template <class S>
using declared = typename declared_type<S>::type;

/// Names a tensor in a message: the `number`-th argument or result, and what was declared.
struct tensor_role {
  char const* kind;
  int number;
  meta expected;
};
VARVE_COLD inline std::string text_of(meta const& m) { return name(m.type) + to_string(m.sizes); }
VARVE_COLD inline std::string text_of(tensor_role const& r) { return std::string("varve: fuse: ") + r.kind + " " + std::to_string(r.number) + " "; }
[[noreturn]] VARVE_COLD inline void refuse_tensor(tensor_role const& r, tensor const& t) {
  std::string const start = text_of(r), end = ", expected " + text_of(r.expected);
  if (!t.defined()) throw value_error((start + "is an undefined tensor" + end).c_str());
  if (t.is_wrapped()) throw transform_error((start + "is seen through a transform, which cannot look into a fused function; fuse the transformed function: fuse<...>(grad(f))").c_str());
  if (!t.has_data()) throw transform_error((start + "is a meta tensor or a subclass, which has no memory of its own; unwrap it first").c_str());
  if (!t.keys().has(dispatch_key::cpu)) throw dispatch_error((start + "belongs to another backend than the cpu; copy it there first").c_str());
  std::string const found = "is " + text_of(meta{t.dtype(), t.sizes()});
  if (t.dtype() != r.expected.type) throw dtype_error((start + found + end).c_str());
  if (!(t.sizes() == r.expected.sizes)) throw shape_error((start + found + end).c_str());
  throw autograd_error((start + "requires grad, which a fused function does not record; pass x.detach(), call it under no_grad, or fuse<...>(grad(f)) for its gradient").c_str());
}
/// ... a tensor that is as declared, but cannot be written to.
[[noreturn]] VARVE_COLD inline void refuse_target(tensor_role const& r, tensor const& t) {
  if (!t.is_contiguous()) throw value_error((text_of(r) + "is not contiguous; write to a contiguous tensor and copy").c_str());
  throw autograd_error((text_of(r) + "was made in inference mode and cannot be written into outside of it; clone it first").c_str());
}
[[noreturn]] VARVE_COLD inline void refuse_overlap(tensor_role const& r, char const* kind, int number) {
  throw value_error((text_of(r) + "overlaps " + kind + " " + std::to_string(number) + "; write to memory of its own").c_str());
}
/// Checks what a tensor must be before its memory is touched.
VARVE_INLINE void check_tensor(tensor_role const& r, tensor const& t) {
  if (!t.defined() || t.is_wrapped() || !t.has_data() || !t.keys().has(dispatch_key::cpu) || t.dtype() != r.expected.type || !(t.sizes() == r.expected.sizes) ||
      (t.requires_grad() && is_grad_enabled())) [[unlikely]]
    refuse_tensor(r, t);
}

/// The bytes of a row-major value.
struct memory_range {
  std::uintptr_t from, to;
  constexpr bool overlaps(memory_range const& o) const { return from < o.to && o.from < to; }
};
inline memory_range range_of(void const* data, meta const& m) {
  auto const from = reinterpret_cast<std::uintptr_t>(data);
  return {from, from + static_cast<std::uintptr_t>(numel(m.sizes) * itemsize(m.type))};
}

/// The `K`-th argument, checked against its spec `S`: memory, or a number that was converted.
template <class S, int K>
struct checked_argument {
  using element = typename declared_type<S>::element;
  static constexpr meta expected = S::info();
  static constexpr tensor_role role{"argument", K, expected};

  explicit checked_argument(tensor const& t) {
    check_tensor(role, t);
    if (!t.is_contiguous()) [[unlikely]]
      copy_ = in_row_major_order(t);
    memory_ = copy_.defined() ? copy_.raw() : t.raw();
  }
  template <class X>
    requires(!std::is_same_v<X, tensor>)
  explicit checked_argument(X const& x) {
    constexpr bool number = std::is_arithmetic_v<X> && expected.sizes.n == 0;
    static_assert(number || std::is_same_v<argument<X>, declared<S>>, "varve: fuse: an argument is neither a tensor nor a static value of the element type and shape of its spec");
    if constexpr (number) number_ = static_cast<element>(x);
    else if constexpr (std::is_same_v<argument<X>, declared<S>>) memory_ = data_of(x);
  }
  void const* data() const { return memory_ ? memory_ : &number_; }
  memory_range range() const { return range_of(data(), expected); }

private:
  /// By hand: the operator would be seen by modes.
  VARVE_NOINLINE static tensor in_row_major_order(tensor const& t) {
    tensor r = tensor::empty(t.sizes(), t.dtype());
    auto* out = static_cast<element*>(r.raw());
    strided<element const> const from{static_cast<element const*>(t.raw()), t.sizes(), t.strides()};
    for_each_index(t.sizes(), [&](dims const& i) { *out++ = from.at(i); });
    return r;
  }
  void const* memory_ = nullptr;
  element number_{};
  tensor copy_;
};

/// The arguments of one call, checked in order.
template <class Numbers, class... S>
struct checked_arguments;
template <int... K, class... S>
struct checked_arguments<std::integer_sequence<int, K...>, S...> {
  std::tuple<checked_argument<S, K>...> all;
  template <class... X>
  explicit checked_arguments(X const&... x) : all{x...} {}
};

/// Runs program `P` on checked arguments into the memory `out...`.
template <class P, class... A, class... R>
VARVE_INLINE void run_checked(std::tuple<A...> const& in, R*... out) {
  std::apply([&](auto const&... a) { run<P, sizeof...(A), sizeof...(R)>({{a.data()...}, {out...}, nullptr}); }, in);
}

template <class P, int K>
inline constexpr tensor_role result_role{"result", K, P::value.results[K]};

/// Tensors to be written, waiting for the arguments: variables by reference.
template <class P, class Specs, class... R>
struct tensor_writer;
template <class P, class... S, class... R>
struct tensor_writer<P, std::tuple<S...>, R...> {
  std::tuple<R...> out;
  template <class... X>
  void operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (sizeof...(X) == sizeof...(S)) write(std::index_sequence_for<R...>{}, checked_arguments<std::make_integer_sequence<int, sizeof...(S)>, S...>(x...).all);
  }

private:
  template <std::size_t... K>
  void write(std::index_sequence<K...>, auto const& in) const {
    (check<K>(in, std::make_index_sequence<K>{}), ...);
    run_checked<P>(in, std::get<K>(out).raw()...);
    (std::get<K>(out).bump_version(), ...);
  }
  template <std::size_t N, std::size_t... Before>
  void check(auto const& in, std::index_sequence<Before...>) const {
    constexpr tensor_role const& role = result_role<P, static_cast<int>(N)>;
    tensor const& t = std::get<N>(out);
    check_tensor(role, t);
    if (!t.is_contiguous() || (t.is_inference() && !is_inference_mode_enabled())) [[unlikely]]
      refuse_target(role, t);
    memory_range const mine = range_of(t.raw(), role.expected);
    auto const apart = [&](memory_range const& other, char const* kind, int number) {
      if (mine.overlaps(other)) [[unlikely]]
        refuse_overlap(role, kind, number);
    };
    std::apply([&, number = 0](auto const&... a) mutable { (apart(a.range(), "argument", number++), ...); }, in);
    (apart(range_of(std::get<Before>(out).raw(), P::value.results[Before]), "result", static_cast<int>(Before)), ...);
  }
};
} // namespace loop

/// A function compiled as a whole for declared arguments: see `fuse<spec<...>...>`.
template <class F, class... S>
struct fused_for {
  static_assert(std::is_empty_v<F>, "varve: fuse: the function must capture nothing; pass the values as arguments");
  static_assert((loop::declared_type<S>::fixed && ...), "varve: fuse: the sizes of a spec must be numbers here; symbolic ones are for trace");

  /// The program, as a constant.
  using program = loop::compiled<loop::traced<F, loop::declared<S>...>>;
  /// Bytes of stack that temporaries need.
  static constexpr index_t workspace_bytes = program::value.workspace;

  /// Runs on tensors; where a spec has rank 0 a number may stand for one, and static values (`array`, `tensor_ref`) of the declared types for any. Results are fresh tensors,
  /// several a `std::tuple`. Tensors whose elements are not in row-major order are copied first. Errors: `dtype_error`, `shape_error` (number of the argument, expected and found),
  /// `transform_error` for values seen through a transform, `autograd_error` for those that require grad while it is enabled.
  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (std::is_empty_v<F> && sizeof...(X) == sizeof...(S) && (loop::declared_type<S>::fixed && ...)) {
      loop::checked_arguments<std::make_integer_sequence<int, sizeof...(S)>, S...> const in(x...);
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto made = [](meta const& m) { return tensor::empty(m.sizes, m.type); };
        if constexpr (sizeof...(K) == 1) {
          tensor r = made(program::value.results[0]);
          loop::run_checked<program>(in.all, r.raw());
          return r;
        } else {
          tensor r[] = {made(program::value.results[K])...};
          loop::run_checked<program>(in.all, r[K].raw()...);
          return std::tuple{static_cast<tensor&&>(r[K])...};
        }
      }(std::make_index_sequence<program::value.used.results>{});
    }
  }
  /// `f.into(r...)(x...)` writes to tensors: checked as the arguments are (dtype, shape), and that they are contiguous and overlap neither an argument nor each other (`value_error`).
  /// Nothing is written when a check fails. Their version counters go up by one.
  template <class... R>
    requires(std::is_same_v<std::remove_cvref_t<R>, tensor> && ...)
  auto into(R&&... r) const {
    static_assert(program::value.used.results == sizeof...(R), "varve: fuse: into(...) needs as many tensors as the function has results");
    return loop::tensor_writer<program, std::tuple<S...>, R...>{{static_cast<R&&>(r)...}};
  }
};

/// Compiles a function for tensors: `constexpr auto step = fuse<spec<float, 8, 3>, spec<float>>(f); tensor y = step(x, 0.5);`. dtype, rank and sizes of each argument are checked
/// once at entry; then the program of `fuse` runs on the memory itself: no dispatch, no heap but for the results (and for copies of what is not contiguous).
template <auto First, auto... Rest, class F>
  requires loop::specs<First, Rest...>
constexpr fused_for<F, std::remove_cvref_t<decltype(First)>, std::remove_cvref_t<decltype(Rest)>...> fuse(F const&) {
  return {};
}

} // namespace varve

// ---- varve/graph/linearize.hpp
namespace varve {

/// The second result of `linearize`: a graph of the operators that are linear in the tangents, and the constants they need.
template <class Y>
class linear_map {
public:
  linear_map(graph g, boxed_args constants, std::vector<meta> primals) : graph_(std::move(g)), constants_(std::move(constants)), primals_(std::move(primals)) {}

  /// The derivative along tangents, which must have the number, shapes and dtypes of the primals.
  template <class... T>
  Y operator()(T const&... t) const {
    boxed_args x(t...);
    if (x.size() != static_cast<int>(primals_.size()))
      throw value_error(("varve: linearize: " + std::to_string(x.size()) + " tangents were given for " + std::to_string(primals_.size()) + " primals").c_str());
    for (int k = 0; k < x.size(); ++k) {
      meta const& m = primals_[static_cast<std::size_t>(k)];
      if (!(x[k].sizes() == m.sizes)) refuse::shapes_do_not_match("linearize (tangent and primal)", x[k].sizes(), m.sizes);
      if (x[k].dtype() != m.type) throw dtype_error((std::string("varve: linearize: a tangent of ") + name(x[k].dtype()) + " for a primal of " + name(m.type)).c_str());
    }
    for (auto const& c : constants_) x.push_back(c);
    boxed_args const r = interpret(graph_, x);
    int k = 0;
    if constexpr (is_tree_node<Y>) return tree_map([&](auto const&) { return r[k++]; }, Y{});
    else return r[0];
  }
  graph const& program() const { return graph_; }

private:
  graph graph_;
  boxed_args constants_;
  std::vector<meta> primals_;
};

/// `auto [y, df] = linearize(f, x...)`: f(x...) and its derivative there as a function: `df(t...)` equals `jvp(f, x, t).second` but runs only what is linear in the tangents.
/// f runs once for y and once while it is traced. Tensors only. TR-20.
template <class F, class... X>
auto linearize(F f, X const&... x) {
  static_assert((std::is_same_v<X, tensor> && ...), "varve: linearize: primals must be tensors");
  auto y = f(x...);
  trace_layer l;
  boxed_args constants;
  l.captures = &constants;
  l.folds = true;
  std::tuple const tangents{l.wrap(zeros_like(x), l.builder.input({x.dtype(), x.sizes()}))...}; // braces: in order
  {
    pushed const on(this_thread_state.transforms, l);
    auto const dy = jvp(f, std::tuple(x...), tangents).second;
    tree_for_each([&](auto const& v) { l.builder.result(l.node_of(v)); }, dy);
  }
  graph g = l.builder.finish();
  boxed_args ordered;
  for (int k : l.captured()) ordered.push_back(constants[k]);
  return std::pair(y, linear_map<decltype(y)>(std::move(g), std::move(ordered), {meta{x.dtype(), x.sizes()}...}));
}

} // namespace varve

// ---- varve/graph/print.hpp
#include <cstdio>
namespace varve {
namespace detail {

/// A number as short as it can be read back.
VARVE_COLD inline std::string number_text(double x) {
  if (x == static_cast<double>(static_cast<long long>(x > -1e15 && x < 1e15 ? x : 0)) && x > -1e15 && x < 1e15) return std::to_string(static_cast<long long>(x));
  char text[40];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  return text;
}

/// `float32[8, 3]`; a plain `float32` for rank 0.
VARVE_COLD inline std::string meta_text(meta const& m) { return std::string(name(m.type)) + (m.sizes.n ? to_string(m.sizes) : ""); }

/// The number in a placeholder or constant; of an array constant the elements, of many the first.
VARVE_COLD inline std::string leaf_text(graph_view const& g, node const& n) {
  if (!is_array_constant(n)) return number_text(n.value);
  constexpr index_t shown = 16;
  std::string s = "[";
  index_t const count = numel(n.out.sizes);
  for (index_t e = 0; e < count && e < shown; ++e) s += (e ? ", " : "") + number_text(g.constants[static_cast<std::ptrdiff_t>(n.value) + e]);
  return s += count > shown ? ", ...]" : "]";
}

/// The right-hand side of a node: `mul(%1, %2)`, `sum(%4, [0], [0])`, `constant(2)`, `constant([1, 2])`, `placeholder(0)`.
VARVE_COLD inline std::string call_text(graph_view const& g, node const& n) {
  std::string s = n.op->name;
  s += '(';
  char const* comma = "";
  if (n.op->kind == op_kind::placeholder || n.op->kind == op_kind::constant) s += leaf_text(g, n);
  for (int k = 0; k < n.count; ++k, comma = ", ") s += comma + ("%" + std::to_string(g.operand(n, k)));
  for (int k = 0; k < n.at.count; ++k, comma = ", ") s += comma + to_string(n.at[k]);
  return s += ')';
}

VARVE_COLD inline void print_region(std::string& s, graph_view const& g, int r, std::string const& indent) {
  region const& f = g.regions[r];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    s += indent + "%" + std::to_string(n) + ": " + meta_text(g.nodes[n].out) + " = " + call_text(g, g.nodes[n]);
    if (g.nodes[n].regions_count) s += " {";
    s += '\n';
    for (int k = 0; k < g.nodes[n].regions_count; ++k) {
      if (k) s += indent + "} {\n";
      print_region(s, g, g.nodes[n].regions_first + k, indent + "  ");
    }
    if (g.nodes[n].regions_count) s += indent + "}\n";
  }
  s += indent + "return";
  for (int k = 0; k < f.result_count; ++k) s += std::string(k ? ", %" : " %") + std::to_string(g.results[f.result_first + k]);
  s += '\n';
}

VARVE_COLD inline void dot_region(std::string& s, graph_view const& g, int r, std::string const& indent) {
  region const& f = g.regions[r];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[n];
    bool const leaf = nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::constant;
    s += indent + "n" + std::to_string(n) + " [label=\"" + nd.op->name + (leaf ? " " + leaf_text(g, nd) : "");
    for (int k = 0; k < nd.at.count; ++k) s += " " + to_string(nd.at[k]);
    s += "\\n" + meta_text(nd.out) + "\"" + (leaf ? ", shape=box" : "") + "];\n";
    for (int k = 0; k < nd.count; ++k) s += indent + "n" + std::to_string(g.operand(nd, k)) + " -> n" + std::to_string(n) + ";\n";
    for (int k = 0; k < nd.regions_count; ++k) {
      int const sub = nd.regions_first + k;
      s += indent + "subgraph cluster_" + std::to_string(sub) + " {\n" + indent + "  label=\"" + nd.op->name + " " + std::to_string(k) + "\";\n";
      dot_region(s, g, sub, indent + "  ");
      s += indent + "}\n";
    }
  }
  for (int k = 0; k < f.result_count; ++k) {
    std::string const id = "r" + std::to_string(r) + "_" + std::to_string(k);
    s += indent + id + " [label=\"result " + std::to_string(k) + "\", shape=ellipse, style=bold];\n";
    s += indent + "n" + std::to_string(g.results[f.result_first + k]) + " -> " + id + ";\n";
  }
}
} // namespace detail

/// A graph of either form as text that reads like code: one line `%3: float32[8, 3] = mul(%1, %2)` per operation, the functions of higher-order operators indented under it, `return` last.
VARVE_COLD inline std::string to_string(graph_view const& g) {
  std::string s;
  if (g.sizes.regions) detail::print_region(s, g, 0, "");
  return s;
}

/// A graph of either form in the DOT language of Graphviz; the functions of higher-order operators are clusters.
VARVE_COLD inline std::string to_dot(graph_view const& g) {
  std::string s = "digraph varve {\n  node [shape=plaintext];\n";
  if (g.sizes.regions) detail::dot_region(s, g, 0, "  ");
  return s + "}\n";
}

} // namespace varve

// ---- varve/graph/verify.hpp
namespace varve {

/// What is wrong with a graph; `fine` converts to true.
enum class flaw : unsigned char { fine, operator_missing, operand_out_of_range, operand_count, operand_of_another_region, placeholder_after_operation, meta_differs, result_out_of_range, region_out_of_range, constant_out_of_range };

/// Verdict on a graph: the flaw and the node it was found at.
struct verdict {
  flaw what = flaw::fine;
  int node = -1;
  constexpr explicit operator bool() const { return what == flaw::fine; }
};

/// Checks a graph of either form: operands come before their users and belong to the same region, arities fit, every operator's own shape rule agrees with the recorded meta, placeholders come first, constants have elements.
/// `static_assert(verify(g))` is an ordinary test.
constexpr verdict verify(graph_view g) {
  int const nodes = static_cast<int>(g.sizes.nodes);
  list<meta> in;
  for (region const* at = g.regions; at != g.regions + g.sizes.regions; ++at) {
    region const& r = *at;
    if (r.node_first < 0 || r.node_first + r.node_count > nodes || r.result_first < 0 || r.result_first + r.result_count > static_cast<int>(g.sizes.results))
      return {flaw::region_out_of_range, -1};
    for (int n = r.node_first; n < r.node_first + r.node_count; ++n) {
      node const& nd = g.nodes[n];
      if (!nd.op) return {flaw::operator_missing, n};
      bool const input = n < r.node_first + r.inputs;
      if (input != (nd.op->kind == op_kind::placeholder)) return {flaw::placeholder_after_operation, n};
      if (nd.op->arity >= 0 && nd.op->kind != op_kind::hop && nd.count != nd.op->arity) return {flaw::operand_count, n};
      if (nd.first < 0 || nd.count < 0 || nd.first + nd.count > static_cast<int>(g.sizes.edges)) return {flaw::operand_out_of_range, n};
      in.clear();
      for (int k = 0; k < nd.count; ++k) {
        int const o = g.operand(nd, k);
        if (o < 0 || o >= n) return {flaw::operand_out_of_range, n};
        if (o < r.node_first) return {flaw::operand_of_another_region, n};
        in.push_back(g.nodes[o].out);
      }
      if (nd.regions_count < 0 || nd.regions_first + nd.regions_count > static_cast<int>(g.sizes.regions)) return {flaw::region_out_of_range, n};
      if (is_array_constant(nd) && !(nd.value >= 0 && nd.value + static_cast<double>(numel(nd.out.sizes)) <= static_cast<double>(g.sizes.constants))) return {flaw::constant_out_of_range, n};
      op_kind const k = nd.op->kind;
      if (nd.op->shape && k != op_kind::placeholder && k != op_kind::constant && k != op_kind::hop && !(nd.op->shape(nd.at, in.data(), nd.count) == nd.out))
        return {flaw::meta_differs, n};
    }
    for (int k = 0; k < r.result_count; ++k) {
      int const o = g.results[r.result_first + k];
      if (o < r.node_first || o >= r.node_first + r.node_count) return {flaw::result_out_of_range, o};
    }
  }
  return {};
}

} // namespace varve

// ---- varve/op/permute.hpp
namespace varve {

namespace detail {
inline constexpr auto inverse_permutation = [](dims const& p) {
  dims r = p;
  for (int k = 0; k < p.n; ++k) r[static_cast<int>(p[k])] = k;
  return r;
};
inline constexpr auto batched_permutation = [](dims const& p) {
  dims r{0};
  for (int k = 0; k < p.n; ++k) r.push_back(p[k] + 1);
  return r;
};
inline constexpr auto normalize_permutation = [](dims const& p, dims const& sizes) {
  dims r;
  for (int k = 0; k < p.n; ++k) {
    int const a = wrap_axis(p[k], sizes.n);
    if (r.contains(a)) refuse::argument_is_invalid("permute", "an axis is named twice");
    r.push_back(a);
  }
  if (p.n != sizes.n) refuse::argument_is_invalid("permute", "every axis must be named once");
  return r;
};
} // namespace detail

/// Reorders dimensions: result dimension k is operand dimension axes[k]. A view. Attribute {axes}.
template <>
struct rules<permute_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[] dims) -> Tensor(a)";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return detail::view_shape<rules>(at, in); }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    layout r = in;
    for (int k = 0; k < at[0].n; ++k) {
      r.sizes[k] = in.sizes[static_cast<int>(at[0][k])];
      r.strides[k] = in.strides[static_cast<int>(at[0][k])];
    }
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&) {
    return permute(g, on_dims(detail::inverse_permutation, op.a));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return permute(o.value, on_dims(detail::batched_permutation, op.a));
  }
};

template <value X, class S>
constexpr auto permute_t::operator()(X const& x, S const& axes) const {
  return bind<permute_t>(on_dims(detail::normalize_permutation, detail::as_fact(axes), shape_of(x)))(x);
}

/// Exchanges two dimensions; `transpose(x)` exchanges the last two.
inline constexpr struct transpose_t : composite_operator<transpose_t> {
  static constexpr auto op_name = "transpose";
  template <value X, class A = ints<-2>, class B = ints<-1>>
  static constexpr auto body(X const& x, A const& first = {}, B const& second = {}) {
    auto exchange = [](dims const& s, dims const& a, dims const& b) {
      dims r = s;
      for (int k = 0; k < s.n; ++k) r[k] = k;
      if (s.n == 0) return r;
      int const i = wrap_axis(a[0], s.n), j = wrap_axis(b[0], s.n);
      r[i] = j;
      r[j] = i;
      return r;
    };
    return permute(x, on_dims(exchange, shape_of(x), detail::as_fact(first), detail::as_fact(second)));
  }
} transpose{};

} // namespace varve

// ---- varve/hop/flat_step.hpp
/// @file
/// Between the trees that users write loops with and the flat values that interpreters see.
namespace varve {

/// A number of steps, for a `scan` that walks through nothing: `scan(f, init, steps<100>)` calls `f(carried)`.
template <index_t N>
struct steps_t {};
template <index_t N>
inline constexpr steps_t<N> steps{};

/// ... known at run time only.
struct step_count {
  constexpr explicit step_count(index_t k) : n(k) {}
  index_t n;
};

namespace detail {
template <class X>
inline constexpr bool is_steps = std::is_same_v<X, step_count>;
template <index_t N>
inline constexpr bool is_steps<steps_t<N>> = true;
template <index_t N>
constexpr ints<N> length_of(steps_t<N>) {
  return {};
}
constexpr dims length_of(step_count const& s) { return dims{s.n}; }

inline constexpr auto walked_size = [](dims const& s) {
  if (s.n == 0) refuse::argument_is_invalid("scan", "a value of rank 0 has no dimension to walk through");
  return dims{s[0]};
};
inline constexpr auto axis_to_front = [](dims const& s, dims const& axis) {
  dims r{wrap_axis(axis[0], s.n)};
  for (int k = 0; k < s.n; ++k)
    if (k != r[0]) r.push_back(k);
  return r;
};

inline constexpr auto without_first = [](dims const& s, dims const& drop) { return s.sub(static_cast<int>(drop[0]), s.n); };
/// A static value of the logical shape and dtype of another, without the first dimension when it is a row: as types, to ask a step for the structure
/// of its result. (Functions, since clang 14 does not survive lambdas within decltype.)
template <bool Row, class V>
constexpr auto alike(V const& v) {
  if constexpr (is_ints<decltype(shape_of(v))>) {
    using S = decltype(on_dims(without_first, shape_of(v), ints<Row>{}));
    return static_value<type_of<static_cast<dtype>(decltype(type_fact(v))::to_dims()[0])>, S>{};
  } else {
    return base_of<V>{};
  }
}
template <bool Row, class T>
constexpr auto all_alike(T const& t) {
  return tree_map([](auto const& v) { return alike<Row>(v); }, t);
}
template <bool Row, class T>
using tree_alike = decltype(all_alike<Row>(std::declval<T const&>()));

template <class N, class... V>
constexpr void same_lengths(N const& n, std::tuple<V...> const& rows) {
  index_t const length = to_dims(n)[0];
  if (sizeof...(V) && length == 0) refuse::argument_is_invalid("scan", "there is nothing to walk through: the length is 0");
  tree_for_each(
      [&](auto const& v) {
        if (walked_size(to_dims(shape_of(v)))[0] != length)
          refuse::shapes_do_not_match("scan (lengths of what is walked through)", dims{length}, to_dims(shape_of(v)));
      },
      rows);
}
template <class F>
constexpr F const& without_captures(F const& f) {
  return f;
}
template <class F, class... C>
constexpr F const& without_captures(closure_t<F, C...> const& f) {
  return f.f;
}

/// A step of the user's as one of flat values.
template <class F, class Init, class Xs, class Captures>
struct flat_step {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y = call(std::tie(v...));
    return copied(std::tuple_cat(tree_leaves(y.first), leaves_of_output(y.second)));
  }
  template <class L>
  constexpr auto call(L const& leaves) const {
    constexpr std::size_t c = leaf_count<Init>();
    auto const apply = [&](auto const&... captured) {
      if constexpr (is_steps<Xs>) return f(tree_unflatten<Init>(leaves), captured...);
      else return f(tree_unflatten<Init>(leaves), tree_unflatten<Xs, c>(leaves), captured...);
    };
    if constexpr (is_steps<Xs>) return call_with(apply, tree_unflatten<Captures, c>(leaves));
    else return call_with(apply, tree_unflatten<Captures, c + leaf_count<Xs>()>(leaves));
  }

private:
  template <class Y>
  static constexpr auto leaves_of_output(Y const& y) {
    if constexpr (is_none<Y>) return std::tuple<>{};
    else return tree_leaves(y);
  }
  template <class... V>
  static constexpr std::tuple<V...> copied(std::tuple<V const&...> const& t) {
    return t;
  }
};
} // namespace detail

} // namespace varve

// ---- varve/hop/scan_step.hpp
/// @file
/// The step functions that the rules of `scan` make of a step: all take packs in the order (carried, rows, captured) and give them in the order
/// (carried, outputs).
namespace varve::detail {

/// ... which also gives the carried values it was called with.
template <class F, class C>
struct scan_saving {
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    return joined(spread(f, p), part(p, carried - carried, carried));
  }
};
/// ... on values and tangents side by side; `f` takes and gives first all values, then all tangents.
template <class F, class C, class X>
struct scan_dual {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const p = pack(v...);
    auto const c = carried;
    auto const x = rows;
    auto const zero = c - c;
    auto const n = count_of(p);
    auto const at = c + c;
    auto const captured = at + x + x;
    auto const half_of_captured = half(n - captured);
    auto const y = spread(f, joined(part(p, zero, c), part(p, at, at + x), part(p, captured, captured + half_of_captured), part(p, c, at),
                                    part(p, at + x, captured), part(p, captured + half_of_captured, n)));
    auto const m = half(count_of(y));
    return joined(part(y, zero, c), part(y, m, m + c), part(y, c, m), part(y, m + c, m + m));
  }
};
/// ... backwards: carried are the cotangents of what is carried and those of what is captured, rows the carried values before each step, the rows and
/// the cotangents of the outputs. `f` takes operands and cotangents of the results, and gives cotangents of the operands.
template <class F, class C, class X, class V>
struct scan_pull {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  [[no_unique_address]] V captured;
  template <class... P>
  constexpr auto operator()(P const&... a) const {
    auto const p = pack(a...);
    auto const c = carried;
    auto const x = rows;
    auto const zero = c - c;
    auto const n = count_of(p);
    auto const at = c + captured;
    auto const outputs = at + c + x;
    auto const end = n - captured;
    auto const d = spread(f, joined(part(p, at, outputs), part(p, end, n), part(p, zero, c), part(p, outputs, end)));
    auto const sums = tree_map([](auto const& sum, auto const& g) { return add(sum, g); }, part(p, c, at), part(d, c + x, c + x + captured));
    return joined(part(d, zero, c), sums, part(d, c, c + x));
  }
};

} // namespace varve::detail

// ---- varve/hop/scan.hpp
namespace varve {

/// Tag of the higher-order operator `scan`.
struct scan_t {
  static constexpr auto op_name = "scan";
};

/// How each interpreter takes a `scan`: each hands down another `scan`, of more values. One text for both worlds. Operands: what is carried, what is
/// walked through (dimension 0), what the step captures. Results: what was carried at the end, and the outputs of all steps.
template <>
struct rules<scan_t> {
  template <class I, class Op, class... V>
  static constexpr auto jvp(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... d) {
      auto const p = detail::pack(d.primal...);
      auto const t = op.tangents(d...);
      auto const c = op.carried;
      auto const x = op.scanned;
      auto const zero = c - c;
      auto const n = detail::count_of(p);
      auto const dual = detail::scan_dual<decltype(op.dual_fn(in)), decltype(op.carried), decltype(op.scanned)>{op.dual_fn(in), c, x};
      auto const y = op.with(dual, c + c, x + x, op.reverse)(detail::part(p, zero, c), detail::part(t, zero, c), detail::part(p, c, c + x),
                                                             detail::part(t, c, c + x), detail::part(p, c + x, n), detail::part(t, c + x, n));
      auto const at = c + c;
      auto const outputs = detail::half(detail::count_of(y) - at);
      auto const end = at + outputs;
      return tree_map([&](auto const& u, auto const& du) { return op.is_differentiable(u, [&](auto const& w) { return in.close_dual(in, w, du); }); },
                      detail::joined(detail::part(y, zero, c), detail::part(y, at, end)),
                      detail::joined(detail::part(y, c, at), detail::part(y, end, end + outputs)));
    }(in.open_dual(v)...);
  }
  /// The carried values before each step are kept.
  template <class I, class Op, class... V>
  static constexpr auto grad(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... t) {
      auto const saving = detail::scan_saving<decltype(op.f), decltype(op.carried)>{op.f, op.carried};
      auto const y = op.with(saving, op.carried, op.scanned, op.reverse)(detail::pack(t.primal...));
      auto const zero = op.carried - op.carried;
      auto const n = detail::count_of(y);
      auto const results = n - op.carried;
      return in.record_hop(in, op, detail::part(y, zero, results), detail::part(y, results, n), t...);
    }(in.open_tracked(v)...);
  }
  /// Cotangents of all operands: a scan the other way.
  template <class Op, class S, class P, class... G>
  static constexpr auto pull(Op const& op, S const& saved, P const& operands, G const&... g) {
    auto const all = detail::pack(g...);
    auto const c = op.carried;
    auto const x = op.scanned;
    auto const zero = c - c;
    auto const n = detail::count_of(operands);
    auto const v = n - c - x;
    auto const results = detail::count_of(all);
    auto const captured = detail::part(operands, c + x, n);
    auto const sums = tree_map([](auto const& t) { return zeros_like(t); }, captured);
    using pull_t = detail::scan_pull<decltype(op.pull_fn(operands)), decltype(op.carried), decltype(op.scanned), std::remove_const_t<decltype(v)>>;
    auto const r = op.with(pull_t{op.pull_fn(operands), c, x, v}, c + v, x + results, !op.reverse)(
        detail::part(all, zero, c), sums, saved, detail::part(operands, c, c + x), detail::part(all, c, results), captured);
    return detail::joined(detail::part(r, zero, c), detail::part(r, c + v, c + v + x), detail::part(r, c, c + v));
  }
  /// Whatever is carried becomes mapped; the mapped dimension of what is walked through goes behind the one that is walked.
  template <class I, class Op, class... V>
  static constexpr auto vmap(I const& in, Op const& op, V const&... v) {
    return [&](auto const&... o) {
      auto const y = op.mapped(in, o...);
      auto const close = [&](auto const& u) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(u)>, std::true_type>{u, {}}); };
      auto const c = op.carried;
      auto const zero = c - c;
      return detail::joined(
          tree_map(close, detail::part(y, zero, c)),
          tree_map([&](auto const& u) { return close(transpose(u, ints<0>{}, ints<1>{})); }, detail::part(y, c, detail::count_of(y))));
    }(in.open_batched(v)...);
  }
  template <class I, class Op, class... V>
  static constexpr auto mode(I const& in, Op const& op, V const&... v) {
    auto const inside = detail::reentering_fn<I, decltype(op.f)>{in, op.f};
    auto const y = in.mode->process(op.with(inside, op.carried, op.scanned, op.reverse), in.open_plain(v)...);
    return tree_map([&](auto const& u) { return in.close(in, u); }, y);
  }
};

namespace detail {
template <class A>
struct rows_of;
template <class T, index_t N, index_t... D>
struct rows_of<array<T, N, D...>> {
  using row = static_value<T, ints<D...>>;
  static constexpr row get(array<T, N, D...> const& a, index_t i) {
    row r{};
    for (index_t k = 0; k < array<T, D...>::count; ++k) data_of(r)[k] = a.data[i * array<T, D...>::count + k];
    return r;
  }
  static constexpr void set(array<T, N, D...>& a, index_t i, row const& r) {
    for (index_t k = 0; k < array<T, D...>::count; ++k) a.data[i * array<T, D...>::count + k] = data_of(r)[k];
  }
};
/// `N` rows like a value.
template <index_t N, class V>
struct stack_of_rows {
  using type = array<V, N>;
};
template <index_t N, class T, index_t... D>
struct stack_of_rows<N, array<T, D...>> {
  using type = array<T, N, D...>;
};
} // namespace detail

/// `scan` of static values and traced ones, as interpreters process it. `f` maps (carried..., rows..., captured...) to the tuple (carried...,
/// outputs...).
template <class F, class C, class X, class N>
struct scan_call {
  using tag = scan_t;
  [[no_unique_address]] F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X scanned;
  [[no_unique_address]] N length;
  bool reverse = false;
  static constexpr char const* name() { return scan_t::op_name; }

  template <class G, class C2, class X2>
  constexpr auto with(G const& g, C2 const& c, X2 const& x, bool backwards) const {
    return scan_call<G, C2, X2, N>{g, c, x, length, backwards};
  }
  // What the rules are written in; tensors have their own forms.
  template <class I>
  constexpr auto dual_fn(I const& in) const {
    return detail::dual_fn<I, F>{in, f};
  }
  template <class... V>
  constexpr auto pull_fn(std::tuple<V...> const&) const {
    return detail::pull_fn<sizeof...(V), F>{f};
  }
  template <class... D>
  static constexpr auto tangents(D const&... d) {
    return detail::pack(detail::full_tangent(d)...);
  }
  template <class V, class A>
  static constexpr auto is_differentiable(V const& v, A const& close) {
    if constexpr (detail::static_and_not_floating<V>()) return v;
    else return close(v);
  }
  template <class I, class... V, class... Flag>
  constexpr auto mapped(I const& in, operand<V, Flag> const&... o) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t c = C::value, end = C::value + X::value;
      auto const value = [&]<std::size_t Q, class W, class G>(std::integral_constant<std::size_t, Q>, operand<W, G> const& w) {
        if constexpr (Q < c) return materialize(w, in.n);
        else if constexpr (Q < end && G::value) return transpose(w.value, ints<0>{}, ints<1>{});
        else return w.value;
      };
      using inner = detail::batched_fn<I, F, std::bool_constant<(K < c) || Flag::value>...>;
      return with(inner{in, f}, carried, scanned, reverse)(value(std::integral_constant<std::size_t, K>{}, o)...);
    }
    (std::index_sequence_for<V...>{});
  }

  template <class First, class... V>
  constexpr auto operator()(First const& first, V const&... v) const {
    if constexpr (detail::is_pack<First>) return detail::spread(*this, detail::joined(first, v...));
    else if constexpr (detail::some_traced<First, V...>) return (*this)(detail::all_traced(first, first, v...), detail::all_traced(v, first, v...)...);
    else if constexpr (top_level<First, V...> > 0) return innermost(first, v...).process(*this, first, v...);
    else if constexpr (is_proxy_base<base_of<First>> || (is_proxy_base<base_of<V>> || ...)) return trace_loop(scan_t{}, *this, first, v...);
    else return run(detail::pack(detail::plain(first), detail::plain(v)...));
  }

private:
  template <class P>
  constexpr auto run(P const& p) const {
    constexpr detail::count_t<0> zero{};
    constexpr index_t n = N::to_dims()[0];
    auto now = detail::part(p, zero, carried);
    auto const walked = detail::part(p, carried, carried + scanned);
    auto const captured = detail::part(p, carried + scanned, detail::count_of(p));
    auto const step = [&](auto const& c, index_t i) {
      auto const rows = tree_map([&]<class A>(A const& a) { return detail::rows_of<A>::get(a, i); }, walked);
      return tree_map([](auto const& v) { return static_cast<std::remove_cvref_t<decltype(detail::plain(v))>>(detail::plain(v)); },
                      detail::spread(f, detail::joined(c, rows, captured)));
    };
    using result = decltype(step(now, 0));
    using carry = decltype(detail::part(std::declval<result>(), zero, carried));
    static_assert(
        std::is_same_v<carry, decltype(now)>,
        "varve: scan: the step must give carried values of the shapes and dtypes that it took; convert what init holds, or what the step gives");
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::tuple<typename detail::stack_of_rows<n, std::tuple_element_t<C::value + K, result>>::type...> out{};
      for (index_t k = 0; k < n; ++k) {
        index_t const i = reverse ? n - 1 - k : k;
        auto const y = step(now, i);
        now = detail::part(y, zero, carried);
        (detail::rows_of<std::remove_cvref_t<decltype(std::get<K>(out))>>::set(std::get<K>(out), i, std::get<C::value + K>(y)), ...);
      }
      return detail::joined(now, out);
    }
    (std::make_index_sequence<std::tuple_size_v<result> - C::value>{});
  }
};
template <class F, class C, class X, class N>
inline constexpr bool is_hop<scan_call<F, C, X, N>> = true;

namespace detail {
template <int Dim, class F, class Init, class Xs>
constexpr auto scan_of_values(F const& f, Init const& init, Xs const& xs, bool reverse) {
  using captures = std::remove_cvref_t<decltype(captures_of(f))>;
  auto const flat = [](auto const& tree) {
    return std::apply([](auto const&... v) { return std::tuple<std::remove_cvref_t<decltype(plain(v))>...>(plain(v)...); }, tree_leaves(tree));
  };
  auto const front = [&] {
    if constexpr (is_steps<Xs>) return std::tuple<>{};
    else if constexpr (Dim == 0) return flat(xs);
    else return tree_map([](auto const& v) { return permute(v, on_dims(axis_to_front, shape_of(v), ints<Dim>{})); }, flat(xs));
  }();
  auto const carried = flat(init);
  auto const captured = flat(captures_of(f));
  auto const& bare = without_captures(f);
  using step = flat_step<std::remove_cvref_t<decltype(bare)>, Init, Xs, captures>;
  auto const length = [&] {
    if constexpr (is_steps<Xs>) return length_of(xs);
    else return on_dims(walked_size, shape_of(std::get<0>(front)));
  }();
  same_lengths(length, front);
  using C = count_t<static_cast<int>(std::tuple_size_v<decltype(carried)>)>;
  using X = count_t<static_cast<int>(std::tuple_size_v<decltype(front)>)>;
  static_assert(C::value > 0, "varve: scan: init holds no value; a step must carry one at least");
  auto const y = scan_call<step, C, X, std::remove_const_t<decltype(length)>>{step{bare}, {}, {}, length, reverse}(carried, front, captured);
  using structure =
      decltype(step{bare}.call(std::tuple_cat(std::declval<tree_alike<false, decltype(carried)>>(), std::declval<tree_alike<true, decltype(front)>>(),
                                              std::declval<tree_alike<false, decltype(captured)>>())));
  using output = typename structure::second_type;
  if constexpr (is_none<output>) return std::pair(tree_unflatten<Init>(y), none);
  else return std::pair(tree_unflatten<Init>(y), tree_unflatten<output, static_cast<std::size_t>(C::value)>(y));
}

/// ... in segments: defined in scan_in_segments.hpp.
template <index_t Segment, class F, class Init, class Xs>
constexpr auto scan_in_segments(F const& f, Init const& init, Xs const& xs, bool reverse);
/// The door to the boxed operator: defined in boxed_scan.hpp.
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse);
} // namespace detail

/// The number of steps in a segment of a `scan` chosen as the root of the number of all.
inline constexpr index_t sqrt_segments = -1;

/// `auto [carry, ys] = scan(f, init, xs)`: walks through dimension `Dim` of the values of the tree `xs`, calling `f(carry, x)` with what is carried,
/// at first `init`, and one row of each; f gives the pair of what is carried on, a tree of the structure, shapes and dtypes of `init`, and a tree of
/// outputs (or `none`), which are stacked along a new dimension 0. `reverse` walks from the end; outputs then stand where their rows do. `steps<n>`
/// for `xs` only counts (`step_count(n)` on tensors). Every interpreter is given the call whole; under reverse mode the carried values of all steps are
/// kept, and a scan the other way pulls through them. With `Segment` = k, those before every k-th step only, and each segment is run again when the
/// gradient comes to it: n / k + k of them at once; `sqrt_segments` chooses k = √n. Values of transforms that f captures come in by `closure(f,
/// captured...)`. Traced, it is one node with one function; `fuse` makes it a loop. Errors: a step that gives other structures, shapes or dtypes than it
/// took, lengths that differ or are 0, on tensors also a step that writes into its operands. (SC-1..4)
template <int Dim = 0, index_t Segment = 0, class F, class Init, class Xs>
constexpr auto scan(F const& f, Init const& init, Xs const& xs, bool reverse = false) {
  using captures = std::remove_cvref_t<decltype(detail::captures_of(f))>;
  if constexpr (Segment != 0 && !detail::is_steps<Xs> && Dim != 0)
    return detail::scan_in_segments<Segment>(
        f, init, tree_map([](auto const& v) { return permute(v, on_dims(detail::axis_to_front, shape_of(v), ints<Dim>{})); }, xs), reverse);
  else if constexpr (Segment != 0) return detail::scan_in_segments<Segment>(f, init, xs, reverse);
  else if constexpr (detail::tree_is_dynamic<Init>() || detail::tree_is_dynamic<Xs>() || detail::tree_is_dynamic<captures>())
    return detail::scan_on_tensors<Dim>(f, init, xs, reverse);
  else return detail::scan_of_values<Dim>(f, init, xs, reverse);
}

} // namespace varve


// ---- varve/op/slice.hpp
namespace varve {

/// Start, stop and step known to the compiler: `slice(x, axis<0>, range<1, 5>)`, `range<0, end, 2>`.
template <index_t... I>
inline constexpr ints<I...> range{};
/// "To the end of the axis", whatever its size.
inline constexpr index_t end = INT64_MAX;

namespace detail {
/// {axis, start, stop, step} with negatives resolved and bounds clamped, as Python slices.
inline constexpr auto normalize_slice = [](dims const& axis, dims const& range, dims const& sizes) {
  if (sizes.n == 0) refuse::argument_is_invalid("slice", "a rank-0 value cannot be sliced");
  int const a = wrap_axis(axis[0], sizes.n);
  index_t const n = sizes[a], step = range.n > 2 ? range[2] : 1;
  if (step < 1) refuse::argument_is_invalid("slice", "the step must be positive");
  auto bound = [n](index_t i) { return i < 0 ? (i + n < 0 ? 0 : i + n) : i > n ? n : i; };
  index_t const start = bound(range.n > 0 ? range[0] : 0);
  index_t const stop = bound(range.n > 1 ? range[1] : end);
  return dims{a, start, stop < start ? start : stop, step};
};
constexpr index_t slice_count(dims const& r) { return (r[2] - r[1] + r[3] - 1) / r[3]; }
inline constexpr auto next_axis = [](dims const& r) { return dims{r[0] + 1, r[1], r[2], r[3]}; };
} // namespace detail

/// Every step-th element of one axis from start to stop. A view. Attribute {axis, start, stop, step}.
template <>
struct rules<slice_t> : rule::view {
  static constexpr auto schema = "(Tensor(a) self, int[4] dim_start_end_step) -> Tensor(a)";
  static constexpr meta shape(attributes const& at, meta const* in, int) { return detail::view_shape<rules>(at, in); }
  static constexpr layout layout_of(attributes const& at, layout const& in) {
    dims const& r = at[0];
    layout l = in;
    int const a = static_cast<int>(r[0]);
    l.sizes[a] = detail::slice_count(r);
    l.strides[a] = in.strides[a] * r[3];
    l.offset = in.offset + r[1] * in.strides[a];
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

/// Zeros with the operand put at a slice; attributes {shape, {axis, start, stop, step}}.
template <>
struct rules<slice_backward_t> : rule::linear {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor grad_output, int[] input_sizes, int[4] dim_start_end_step) -> Tensor";
  static constexpr op_kind kind = op_kind::join;
  static constexpr meta shape(attributes const& at, meta const* in, int) { return {in[0].type, at[0]}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> g) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = R(0);
    layout const l = rules<slice_t>::layout_of(attributes(at[1]), {out.sizes, out.strides, 0, true});
    strided<R> const part{out.data + l.offset, l.sizes, l.strides};
    for_each_index(g.sizes, [&](dims const& i) { part.at(i) = g.at(i); });
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

template <value X, class A, class... R>
constexpr auto slice_t::operator()(X const& x, A const& axis, R const&... r) const {
  if constexpr (sizeof...(R) == 1 && (is_ints<R> && ...)) return bind<slice_t>(on_dims(detail::normalize_slice, detail::as_fact(axis), r..., shape_of(x)))(x);
  else return bind<slice_t>(on_dims(detail::normalize_slice, detail::as_fact(axis), dims(r...), shape_of(x)))(x);
}
template <value G, class S, class R>
constexpr auto slice_backward_t::operator()(G const& g, S const& sizes, R const& r) const {
  return bind<slice_backward_t>(detail::as_fact(sizes), detail::as_fact(r))(g);
}

/// The values at one index of an axis; the axis goes.
inline constexpr struct select_t : composite_operator<select_t> {
  static constexpr auto op_name = "select";
  template <value X, class A, class I>
  static constexpr auto body(X const& x, A const& axis, I const& index) {
    auto at = [](dims const& axis, dims const& i, dims const& sizes) {
      int const a = wrap_axis(axis[0], sizes.n);
      if (sizes.n == 0 || i[0] < -sizes[a] || i[0] >= sizes[a]) refuse::index_out_of_range("select", i[0], sizes.n ? sizes[a] : 0);
      index_t const k = i[0] < 0 ? i[0] + sizes[a] : i[0];
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

// ---- varve/op/cat.hpp
namespace varve {

/// Two values one after the other along an axis; longer lists are joined as a balanced tree. Attribute {axis}.
template <>
struct rules<cat_t> {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr op_kind kind = op_kind::join;
  static constexpr auto schema = "(Tensor first, Tensor second, int dim=0) -> Tensor";
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    int const a = static_cast<int>(at[0][0]);
    dims x = in[0].sizes, y = in[1].sizes;
    bool fits = x.n == y.n && x.n > 0;
    for (int k = 0; fits && k < x.n; ++k) fits = k == a || x[k] == y[k];
    if (!fits) refuse::shapes_do_not_match("cat", x, y);
    x[a] += y[a];
    return {promote_types(in[0].type, in[1].type), x};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<T const> y) {
    index_t const shift = x.sizes[static_cast<int>(at[0][0])] * out.strides[static_cast<int>(at[0][0])];
    for_each_index(x.sizes, [&](dims const& i) { out.at(i) = x.at(i); });
    strided<R> const rest{out.data + shift, y.sizes, out.strides};
    for_each_index(y.sizes, [&](dims const& i) { rest.at(i) = y.at(i); });
  }
  /// {axis, start, stop, 1} of the first or second part.
  static constexpr auto part(arg_t<0>, auto const& axis, auto const& x, auto const&) {
    return on_dims([](dims const& a, dims const& s) { return dims{a[0], 0, s[static_cast<int>(a[0])], 1}; }, axis, shape_of(x));
  }
  static constexpr auto part(arg_t<1>, auto const& axis, auto const& x, auto const& y) {
    auto f = [](dims const& a, dims const& s, dims const& t) {
      int const k = static_cast<int>(a[0]);
      return dims{k, s[k], s[k] + t[k], 1};
    };
    return on_dims(f, axis, shape_of(x), shape_of(y));
  }
  template <std::size_t I, class Op>
  static constexpr auto jvp(arg_t<I> i, Op const& op, value auto const& d, value auto const& r, value auto const& x, value auto const& y) {
    return slice_backward(to(d, type_fact(r)), shape_of(r), part(i, op.a, x, y));
  }
  template <std::size_t I, class Op>
  static constexpr auto vjp(arg_t<I> i, Op const& op, value auto const& g, value auto const&, value auto const& x, value auto const& y) {
    return to(bind<slice_t>(part(i, op.a, x, y))(g), type_fact(nth<I>(x, y)));
  }
  template <class Op, class N, class X, class Y>
  static constexpr auto batch(Op const& op, N const& n, X const& x, Y const& y) {
    return bind<cat_t>(on_dims(detail::shifted, op.a))(materialize(x, n), materialize(y, n));
  }
};

namespace detail {
template <std::size_t From, std::size_t Count, class A, class T>
constexpr auto join_range(A const& axis, T const& values) {
  if constexpr (Count == 1) {
    return std::get<From>(values);
  } else {
    auto x = join_range<From, Count / 2>(axis, values);
    auto y = join_range<From + Count / 2, Count - Count / 2>(axis, values);
    auto type = on_dims([](dims const& a, dims const& b) { return dims{static_cast<index_t>(promote_types(static_cast<dtype>(a[0]), static_cast<dtype>(b[0])))}; },
                        type_fact(x), type_fact(y));
    auto a = on_dims([](dims const& d, dims const& s) { return dims{wrap_axis(d[0], s.n)}; }, axis, shape_of(x));
    return bind<cat_t>(a)(to(x, type), to(y, type));
  }
}
/// Joins [from, from + count) of a sequence of values of one type (tensors).
template <class A, class T>
auto join_sequence(A const& axis, T const& values, std::size_t from, std::size_t count) {
  if (count == 1) return values[from];
  auto x = join_sequence(axis, values, from, count / 2);
  auto y = join_sequence(axis, values, from + count / 2, count - count / 2);
  auto type = dims{static_cast<index_t>(promote_types(dtype_of(x), dtype_of(y)))};
  return bind<cat_t>(dims{wrap_axis(axis[0], rank_of(x))})(to(x, type), to(y, type));
}
/// The values that are no empty vectors, which `cat` passes over beside others for PyTorch's sake; all when only such are there. The first gets the promoted dtype.
template <class T>
std::vector<T> without_empty_vectors(T const* values, std::size_t count) {
  std::vector<T> kept;
  dtype type = dtype_of(values[0]);
  for (std::size_t k = 0; k < count; ++k) {
    type = promote_types(type, dtype_of(values[k]));
    dims const s = to_dims(shape_of(values[k]));
    if (!(s.n == 1 && s[0] == 0)) kept.push_back(values[k]);
  }
  if (kept.empty()) kept.push_back(values[0]);
  kept[0] = to(kept[0], dims{static_cast<index_t>(type)});
  return kept;
}
/// Joins the values of a tuple; static ones beside traced ones become constants of the trace.
template <class A, class T, std::size_t... K>
constexpr auto join_tuple(A const& axis, T const& values, std::index_sequence<K...>) {
  if constexpr (meets_trace<std::remove_cvref_t<std::tuple_element_t<K, T>>...>) {
    auto const beside = [&](auto const& x) { return beside_trace(x, std::get<K>(values)...); };
    return join_range<0, sizeof...(K)>(axis, std::make_tuple(beside(std::get<K>(values))...));
  } else {
    return join_range<0, sizeof...(K)>(axis, values);
  }
}
template <class T>
concept tuple_like = requires { std::tuple_size<T>::value; };
} // namespace detail

/// `cat(std::tuple{a, b, c}, axis<0>)`, for tensors also `cat(std::vector{a, b}, 0)`: values joined along an axis; dtypes promote.
template <class X, class A>
constexpr auto cat_t::operator()(X const& values, A const& axis) const {
  if constexpr (detail::tuple_like<X>) return detail::join_tuple(detail::as_fact(axis), values, std::make_index_sequence<std::tuple_size<X>::value>{});
  else {
    if (values.size() == 0) refuse::argument_is_invalid("cat", "at least one value is needed");
    auto const kept = detail::without_empty_vectors(std::data(values), values.size());
    return detail::join_sequence(to_dims(detail::as_fact(axis)), kept, 0, kept.size());
  }
}
template <class X>
constexpr auto cat_t::operator()(X const& values) const {
  return (*this)(values, varve::axis<0>);
}

/// Values of one shape joined along a new axis: `stack(std::tuple{a, b}, axis<0>)`.
inline constexpr struct stack_t {
  template <class X, class A = ints<0>>
  constexpr auto operator()(X const& values, A const& axis = {}) const {
    if constexpr (detail::tuple_like<X>) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return cat(std::make_tuple(unsqueeze(std::get<K>(values), axis)...), axis);
      }(std::make_index_sequence<std::tuple_size<X>::value>{});
    } else {
      auto wide = values;
      for (auto& v : wide) v = unsqueeze(v, axis);
      return cat(wide, axis);
    }
  }
} stack{};

} // namespace varve

// ---- varve/hop/boxed_scan.hpp
/// @file
/// `scan` on tensors: operands come in packs of run-time size and the step is erased, else the rules are those of `rules<scan_t>`.
namespace varve {

namespace detail {
template <class = void>
higher_order_operator& scan_operator();

/// A call with its step; calling it lowers from the layer `self`.
struct boxed_scan {
  using tag = scan_t;
  static constexpr char const* backward_name = "ScanBackward";
  boxed_function f;
  int carried, scanned;
  index_t length;
  bool reverse;
  layer* self = nullptr;

  static boxed_scan of(boxed_hop const& c, layer* self) {
    return {c.functions[0], static_cast<int>(c.at[0][0]), static_cast<int>(c.at[0][1]), c.at[1][0], c.at[0][2] != 0, self};
  }
  attributes at() const { return attributes(dims{carried, scanned, reverse}, dims{length}); }
  boxed_scan with(boxed_function g, int c, int x, bool backwards) const { return {std::move(g), c, x, length, backwards, self}; }
  template <class I>
  boxed_function dual_fn(I const& in) const {
    return boxed_dual_fn{in.self, f};
  }
  template <class P>
  boxed_function pull_fn(P const& operands) const {
    return boxed_pull_fn{f, operands.size()};
  }
  template <class D>
  static boxed_args tangents(D const& d) {
    return boxed_dual_fn::full(d);
  }
  template <class V, class A>
  static V is_differentiable(V const& v, A const& close) {
    return is_floating(v.dtype()) ? V(close(v)) : v;
  }
  template <class I, class O>
  boxed_args mapped(I const& in, O const& o) const {
    boxed_args x;
    std::vector<bool> flags;
    for (int k = 0; k < o.value.size(); ++k) {
      bool const is = !o.value[k].is((*o.from)[k]);
      auto const& v = o.value[k];
      using T = std::remove_cvref_t<decltype(v)>;
      if (k < carried) x.push_back(T(materialize(operand<T, bool>{v, is}, dims{in.self->batch_size})));
      else if (k < carried + scanned && is) x.push_back(T(transpose(v, ints<0>{}, ints<1>{})));
      else x.push_back(v);
      flags.push_back(is || k < carried);
    }
    return with(boxed_batched_fn{in.self, f, std::move(flags)}, carried, scanned, reverse)(x);
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    boxed_hop const call{&scan_operator<>(), {f}, at()};
    boxed_args const x = joined(first, packs...);
    if (!self) return call(x);
    lowered const off;
    return call(x);
  }

  /// The operands of one step.
  template <class P>
  P operands_of_step(P const& x, index_t row) const {
    P r = part(x, 0, carried);
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (int k = carried; k < x.size(); ++k) r.push_back(k < carried + scanned ? T(select(static_cast<T const&>(x[k]), 0, row)) : T(x[k]));
    return r;
  }
  /// The loop itself.
  template <class P>
  P run(P const& x) const {
    using T = std::remove_cvref_t<decltype(x[0])>;
    P now = part(x, 0, carried);
    std::vector<P> outputs;
    for (index_t k = 0; k < length; ++k) {
      index_t const row = reverse ? length - 1 - k : k;
      P step = operands_of_step(x, row);
      for (int q = 0; q < carried; ++q) step[q] = now[q];
      std::vector<std::uint32_t> versions;
      for (auto const& t : step) versions.push_back(version_of(t));
      P const y = f(step);
      for (int q = 0; q < step.size(); ++q)
        if (version_of(step[q]) != versions[static_cast<std::size_t>(q)])
          throw transform_error("varve: scan: the step writes into one of its operands; use functional operators");
      if (y.size() < carried) refuse::argument_is_invalid("scan", "the step gave fewer values than are carried");
      if (outputs.empty()) outputs.resize(static_cast<std::size_t>(y.size() - carried));
      for (int q = 0; q < carried; ++q) {
        if (!(y[q].sizes() == now[q].sizes()))
          refuse::shapes_do_not_match("scan (a carried value before and after a step)", now[q].sizes(), y[q].sizes());
        if (y[q].dtype() != now[q].dtype())
          refuse::dtype_is_not_supported("scan (a carried value after a step, of another dtype than before)", name(y[q].dtype()));
      }
      now = part(y, 0, carried);
      for (int q = carried; q < y.size(); ++q) outputs[static_cast<std::size_t>(q - carried)].push_back(y[q]);
    }
    P r;
    for (auto const& t : now) { // no result is an operand
      bool alias = false;
      for (auto const& o : x) alias = alias || t.shares_storage(o);
      r.push_back(alias ? T(clone(t)) : t);
    }
    for (auto& rows : outputs) {
      std::vector<T> all;
      for (index_t k = 0; k < length; ++k) all.push_back(rows[static_cast<int>(reverse ? length - 1 - k : k)]);
      r.push_back(stack(all, 0));
    }
    return r;
  }
};

/// The rules of `scan`, one per interpreter, from the text they share with static values.
template <class = void>
class boxed_scan_operator : public higher_order_operator {
public:
  boxed_scan_operator() : higher_order_operator(scan_t::op_name) {
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, auto const& x) { return boxed_scan::of(c, nullptr).run(x); });
    shared("jvp", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::jvp(in, op, x); });
    shared("vmap", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::vmap(in, op, x); });
    shared("grad", [](auto const& in, auto op, auto const& x) {
      std::remove_cvref_t<decltype(x)> captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      {
        lowered const off;
        primal = op.operands_of_step(primal, 0);
      }
      op.f = traced(op.f, primal, captures);
      return rules<scan_t>::grad(recording_level<>{in}, op, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      auto& around = *static_cast<trace_layer*>(l.object);
      auto op = boxed_scan::of(c, nullptr);
      P real, captures;
      for (auto const& t : x) real.push_back(around.real(t));
      auto const below = [&](auto const& body) {
        lowered const off;
        temporarily_popped const further(around.hidden);
        return body();
      };
      P const first = below([&] { return op.operands_of_step(real, 0); });
      op.f = traced(op.f, first, captures, around.hidden + 1);
      P all = x, step_in = first;
      for (auto const& t : captures) {
        all.push_back(t);
        real.push_back(around.real(t));
        step_in.push_back(around.real(t));
      }
      std::vector<int> ids;
      for (auto const& t : all) ids.push_back(around.node_of(t));
      trace_layer step(around);
      {
        pushed const on(this_thread_state.transforms, step);
        P in;
        for (auto const& t : step_in) in.push_back(step.wrap(t, step.builder.input({t.dtype(), t.sizes()})));
        for (auto const& t : op.f(in)) step.builder.result(step.node_of(t));
        step.builder.close();
      }
      P const y = below([&] { return op(real); });
      int const node = around.builder.emit_functions(&hop_handle<scan_t>, op.at(), ids.data(), static_cast<int>(ids.size()), step.builder);
      P r;
      for (int k = 0; k < y.size(); ++k) r.push_back(around.wrap(y[k], around.builder.result_of(node, k, {y[k].dtype(), y[k].sizes()})));
      return r;
    }
  };
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) { return r(*static_cast<dynamic_level*>(l.object), boxed_scan::of(c, &l), x); };
    impl<decltype(f), layer&>(kind, f);
  }
};
template <class>
higher_order_operator& scan_operator() {
  static auto* const op = new boxed_scan_operator<>; // outlives every call
  return *op;
}

/// A tree like another, with leaves taken from a pack.
template <class T>
auto filled(T const& like, boxed_args const& leaves, int& at) {
  return tree_map([&](auto const&) { return leaves[at++]; }, like);
}
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse) {
  static_assert(leaf_level<Init>() == 0 && leaf_level<Xs>() == 0,
                "varve: scan: tensors and values of a static transform cannot be mixed; pass tensors alone");
  auto const tensors = [](auto const& tree) { return tree_map([](auto const& v) { return tensor(as_tensor(plain(v))); }, tree); };
  auto const carried = tensors(init);
  auto const call = [&](auto const& c, auto const& x) {
    if constexpr (is_steps<Xs>) return f(c);
    else return f(c, x);
  };
  auto const walked = [&] {
    if constexpr (is_steps<Xs>) return none;
    else if constexpr (Dim == 0) return tensors(xs);
    else return tree_map([](auto const& v) { return permute(v, axis_to_front(v.sizes(), dims{Dim})); }, tensors(xs));
  }();
  using Y = decltype(call(carried, walked));
  static_assert(
      requires(Y y) { y.first, y.second; }, "varve: scan: the step must give a std::pair: what is carried on, and the outputs (or varve::none)");
  typename Y::second_type outputs{}; // what the step gave last: the structure of the outputs
  boxed_args x = flatten(carried);
  int const c = x.size();
  if constexpr (!is_steps<Xs>) x = joined(x, flatten(walked));
  index_t length = 0;
  if constexpr (is_steps<Xs>) length = to_dims(length_of(xs))[0];
  else if (x.size() > c) length = walked_size(x[c].sizes())[0];
  for (int k = c; k < x.size(); ++k)
    if (walked_size(x[k].sizes())[0] != length) refuse::shapes_do_not_match("scan (lengths of what is walked through)", dims{length}, x[k].sizes());
  if (c == 0) refuse::argument_is_invalid("scan", "init holds no value; a step must carry one at least");
  if (length <= 0) refuse::argument_is_invalid("scan", "there is nothing to walk through: the length is 0");
  boxed_function const step = [&](boxed_args const& a) {
    int at = 0;
    auto const now = filled(carried, a, at);
    Y const y = [&] {
      if constexpr (is_steps<Xs>) return call(now, none);
      else return call(now, filled(walked, a, at));
    }();
    outputs = y.second;
    boxed_args r = flatten(y.first);
    if constexpr (!is_none<typename Y::second_type>) r = joined(r, flatten(y.second));
    return r;
  };
  boxed_scan const op{step, c, x.size() - c, length, reverse};
  boxed_args const y = op(x);
  int at = 0;
  auto const last = filled(carried, y, at);
  if constexpr (is_none<typename Y::second_type>) return std::pair(last, none);
  else return std::pair(last, filled(outputs, y, at));
}
} // namespace detail

} // namespace varve

// ---- varve/hop/scan_in_segments.hpp
/// @file
/// A long `scan` as a scan of scans: reverse mode keeps what is carried between segments, and runs a segment again when it comes to it.
namespace varve {

namespace detail {
/// {rows before the first whole segment, segments, steps in each}.
inline constexpr auto segments_of = [](dims const& length, dims const& steps) {
  index_t const n = length[0];
  index_t k = steps[0];
  if (k <= 0)
    for (k = 1; k * k < n;) ++k;
  if (k > n && n > 0) k = n;
  return dims{n % k, n / k, k};
};
inline constexpr auto entry = [](dims const& s, dims const& k) { return dims{s[static_cast<int>(k[0])]}; };
template <index_t N>
constexpr steps_t<N> steps_of(ints<N>) {
  return {};
}
constexpr step_count steps_of(dims const& n) { return step_count(n[0]); }

/// One segment as a step.
template <class F>
struct segment_step {
  [[no_unique_address]] F f;
  bool reverse;
  template <class C, class X, class... V>
  constexpr auto operator()(C const& carried, X const& rows, V const&... captured) const {
    return scan(closure(f, captured...), carried, rows, reverse);
  }
};
/// ... that walks through nothing.
template <class F, class N>
struct counted_segment_step {
  [[no_unique_address]] F f;
  [[no_unique_address]] N steps;
  template <class C, class... V>
  constexpr auto operator()(C const& carried, V const&... captured) const {
    return scan(closure(f, captured...), carried, steps);
  }
};
template <class G, class T>
constexpr auto capturing(G const& g, T const& captures) {
  return call_with([&](auto const&... c) { return closure(g, c...); }, captures);
}
/// `f(tree)` for trees of outputs; none stays none.
template <class F, class T, class... R>
constexpr auto map_outputs(F const& f, T const& t, R const&... r) {
  if constexpr (is_none<T>) return none;
  else return tree_map(f, t, r...);
}

template <index_t Segment, class F, class Init, class Xs>
constexpr auto scan_in_segments(F const& f, Init const& init, Xs const& xs, bool reverse) {
  auto const length = [&] {
    if constexpr (is_steps<Xs>) return length_of(xs);
    else return on_dims(walked_size, shape_of(std::get<0>(tree_leaves(xs))));
  }();
  auto const split = on_dims(segments_of, length, ints<Segment>{});
  auto const& bare = without_captures(f);
  using bare_t = std::remove_cvref_t<decltype(bare)>;
  auto const rest = [&](auto const& carried) { // the rows before the first whole segment
    if constexpr (is_steps<Xs>) return scan(f, carried, steps_of(on_dims(entry, split, ints<0>{})));
    else
      return scan(f, carried,
                  tree_map(
                      [&](auto const& x) {
                        return bind<slice_t>(on_dims([](dims const& s) { return dims{0, 0, s[0], 1}; }, split))(x);
                      },
                      xs),
                  reverse);
  };
  auto const whole = [&](auto const& carried) {
    auto const y = [&] {
      if constexpr (is_steps<Xs>) {
        auto const k = steps_of(on_dims(entry, split, ints<2>{}));
        return scan(capturing(counted_segment_step<bare_t, std::remove_const_t<decltype(k)>>{bare, k}, captures_of(f)), carried,
                    steps_of(on_dims(entry, split, ints<1>{})));
      } else {
        auto const rows = tree_map(
            [&](auto const& x) {
              auto const bounds = on_dims([](dims const& s, dims const& n) { return dims{0, s[0], n[0], 1}; }, split, length);
              auto const part = bind<slice_t>(bounds)(x);
              auto const cut = [](dims const& s, dims const& sizes) {
                dims r{s[1], s[2]};
                for (int k = 1; k < sizes.n; ++k) r.push_back(sizes[k]);
                return r;
              };
              return reshape(part, on_dims(cut, split, shape_of(part)));
            },
            xs);
        return scan(capturing(segment_step<bare_t>{bare, reverse}, captures_of(f)), carried, rows, reverse);
      }
    }();
    auto const join = [](dims const& sizes) {
      dims r{sizes[0] * sizes[1]};
      for (int k = 2; k < sizes.n; ++k) r.push_back(sizes[k]);
      return r;
    };
    return std::pair(y.first, map_outputs([&](auto const& v) { return reshape(v, on_dims(join, shape_of(v))); }, y.second));
  };
  auto const both = [&] {
    auto const joined = [](auto const& last, auto const& a, auto const& b) {
      return std::pair(last, map_outputs([](auto const& u, auto const& v) { return cat(std::tuple{u, v}, ints<0>{}); }, a, b));
    };
    if (reverse) {
      auto const b = whole(init);
      auto const a = rest(b.first);
      return joined(a.first, a.second, b.second);
    }
    auto const a = rest(init);
    auto const b = whole(a.first);
    return joined(b.first, a.second, b.second);
  };
  if constexpr (is_ints<decltype(split)>) {
    if constexpr (std::remove_const_t<decltype(split)>::to_dims()[0] > 0) return both();
    else return whole(init);
  } else {
    if (split[0] > 0) return both();
    return whole(init);
  }
}
} // namespace detail

} // namespace varve

// ---- varve/interpreter/enable_mode.hpp
namespace varve {

/// A type with a static `dispatch(op, args)`: what `enable_mode` takes, and what wrapper types are.
template <class T>
concept handler_type = requires(boxed_op const& op, boxed_args const& x) {
  { T::dispatch(op, x) } -> std::convertible_to<tensor>;
};

/// The single-slot mode (the first "python mode", MD-1): while it lives, every operator of this thread on tensors, factories included, is handled by `T::dispatch`, so that
/// `empty({})` can return a `T`. It beats every operand (MD-2); tensors made from data are not intercepted (MD-3). While the handler runs the mode is off. A second
/// one of this form is refused with `dispatch_error`; `mode_guard` nests.
template <handler_type T>
class enable_mode {
  struct mode {
    tensor process(boxed_op const& op, boxed_args const& x) const { return T::dispatch(op, x); }
  };
  struct slot {
    slot() {
      if (this_thread_state.single_mode) throw dispatch_error((std::string("varve: enable_mode<") + name_of_type<T>.c_str() + ">: a mode of this form is on already, and they do not nest; use mode_guard").c_str());
      this_thread_state.single_mode = true;
    }
    slot(slot const&) = delete;
    slot& operator=(slot const&) = delete;
    ~slot() { this_thread_state.single_mode = false; }
  };
  slot slot_;
  mode mode_;
  mode_guard<mode> on_{mode_};

public:
  enable_mode() = default;
};

} // namespace varve

// ---- varve/interpreter/stack_of.hpp
#include <boost/hana/equal.hpp>
#include <boost/hana/prepend.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
namespace varve {

namespace detail {
template <class V>
constexpr auto stack_of_type() {
  if constexpr (is_seen<V>) return boost::hana::prepend(stack_of_type<decltype(V::value)>(), boost::hana::type_c<typename V::interpreter>);
  else return boost::hana::tuple<>{};
}
} // namespace detail

/// The type-level stack of interpreters a value is seen through, innermost transform first, as a `boost::hana::tuple` of `hana::type`s: Hana's algorithms work on it.
/// `static_assert(hana::size(stack_of<V>) == hana::size_c<2>)`.
template <class V>
inline constexpr auto stack_of = detail::stack_of_type<std::remove_cvref_t<V>>();

/// The word of an interpreter: "grad", "jvp", "vmap", "mode".
template <class I>
inline constexpr char const* kind_of = I::kind;

} // namespace varve

// ---- varve/interpreter/subclass.hpp
namespace varve {

/// Base of tensor subclasses: wrapper types with their own meaning of every operator.
///
///   struct logged : tensor_subclass<logged> {
///     tensor value;
///     auto parts() const { return std::tie(value); }                    // the tensors inside: flatten
///     logged with_parts(tensor v) const { return {{}, v}; }              // the same around others: unflatten
///     static tensor dispatch(boxed_op const& op, boxed_args const& x) { ...; return wrap_like(x, op(unwrap_all<logged>(x))); }
///   };
///
/// A value that computes its metadata gives `dims const& sizes() const` or `strides()`, which are asked each time (MD-20).
/// `make_subclass(logged{{}, v})` is a tensor of v's shape and dtype that stands for it. A subclass of a subclass says `using base_subclass = logged;` and is asked before it.
template <class Derived>
struct tensor_subclass {};

namespace detail {
template <class T>
constexpr subclass_type const* base_of_subclass();
template <class T>
inline constexpr subclass_type subclass_type_of{name_of_type<T>.c_str(), base_of_subclass<T>(), &T::dispatch};
template <class T>
constexpr subclass_type const* base_of_subclass() {
  if constexpr (requires { typename T::base_subclass; }) return &subclass_type_of<typename T::base_subclass>;
  else return nullptr;
}

template <class T>
tensor box_subclass(T value, dims const& sizes, dims const& strides, dtype type, dispatch_key_set extra);

/// The object behind the handle: the user's value.
template <class T>
struct held_subclass final : subclass_object {
  T value;
  explicit held_subclass(T v) : value(std::move(v)) {}
  subclass_type const& type() const override { return subclass_type_of<T>; }
  void const* address() const override { return &value; }
  int inner_count() const override { return static_cast<int>(std::tuple_size_v<decltype(value.parts())>); }
  tensor const& inner(int i) const override {
    return std::apply(
        [&](auto const&... p) -> tensor const& {
          tensor const* const at[] = {&p...};
          return *at[i];
        },
        value.parts());
  }
  dims const* sizes() const override {
    if constexpr (requires { value.sizes(); }) return &value.sizes();
    else return nullptr;
  }
  dims const* strides() const override {
    if constexpr (requires { value.strides(); }) return &value.strides();
    else return nullptr;
  }
  tensor rebuilt(tensor const* inner) const override {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return box_subclass(value.with_parts(inner[K]...), inner[0].sizes(), inner[0].has_data() ? inner[0].strides() : dims{}, inner[0].dtype(), {});
    }(std::make_index_sequence<std::tuple_size_v<decltype(value.parts())>>{});
  }
};
template <class T>
tensor box_subclass(T value, dims const& sizes, dims const& strides, dtype type, dispatch_key_set extra) {
  auto object = std::make_unique<held_subclass<T>>(std::move(value));
  tensor r = tensor::of_object(object.get(), sizes, strides, type, dispatch_key_set(dispatch_key::subclass, dispatch_key::cpu) | extra);
  (void)object.release();
  return r;
}
} // namespace detail

/// A tensor that stands for a subclass value, with the sizes, strides and dtype of its first part and, if wished, further dispatch keys (MD-20).
template <class T>
tensor make_subclass(T value, dispatch_key_set extra = {}) {
  tensor const first = std::get<0>(value.parts());
  return detail::box_subclass(std::move(value), first.sizes(), first.is_wrapped() ? dims{} : first.strides(), first.dtype(), extra);
}
/// ... with sizes, strides and dtype of its own (`_make_wrapper_subclass`).
template <class T>
tensor make_subclass(T value, dims const& sizes, dtype type, dims const& strides = {}, dispatch_key_set extra = {}) {
  return detail::box_subclass(std::move(value), sizes, strides, type, extra);
}

/// Does a tensor stand for a `T`, or for a subclass derived from it?
template <class T>
bool is(tensor const& t) {
  return t.defined() && t.object() && t.object()->type().derives_from(&detail::subclass_type_of<T>);
}
/// The value a tensor stands for; `dispatch_error` when it stands for no `T`.
template <class T>
T const& unwrap(tensor const& t) {
  if (!t.defined() || !t.object() || &t.object()->type() != &detail::subclass_type_of<T>)
    throw dispatch_error((std::string("varve: unwrap: the tensor is no ") + name_of_type<T>.c_str() + "; ask by is<> first").c_str());
  return *static_cast<T const*>(t.object()->address());
}

/// The parts of all `T` among some operands, the others as they are: for handlers that compute on what is inside. `part` numbers the part.
template <class T>
boxed_args unwrap_all(boxed_args const& x, int part = 0) {
  boxed_args r;
  for (auto const& t : x) r.push_back(is<T>(t) ? t.object()->inner(part) : t);
  return r;
}

/// Makes a handler's result alias what the schema says: a mutated operand is returned itself, a view shares the storage of the operand it views (MD-16).
/// `dispatch_error` for a schema that mixes fresh results with aliases.
template <class = void>
tensor return_and_correct_aliasing(boxed_op const& op, boxed_args const& x, tensor const& y) {
  operator_schema const s = operator_schema::parse(std::string(op.name()) + op.schema());
  int aliased = 0;
  for (std::size_t r = 0; r < s.results.size(); ++r) aliased += s.aliased_operand(static_cast<int>(r)) >= 0;
  if (aliased && aliased != static_cast<int>(s.results.size())) throw dispatch_error(("varve: " + to_string(s) + " mixes fresh results and aliases; its aliasing cannot be corrected; let the handler return what its results alias").c_str());
  if (!aliased) return y;
  int const k = s.aliased_operand(0);
  if (s.results[0].mutated) return x[k];
  if (y.defined() && !y.is_wrapped() && y.object() && !x[k].is_wrapped()) y.alias_storage_of(x[k]);
  return y;
}

} // namespace varve

// ---- varve/op/all.hpp
/// @file
/// Every operator.

// ---- varve/op/amax.hpp
namespace varve {

namespace detail {
template <class Tag>
struct extremum : rule::reduction {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    for (int k = 0; k < at[0].n; ++k)
      if (in[0].sizes[static_cast<int>(at[0][k])] == 0) refuse::argument_is_invalid(Tag::op_name, "an axis of size 0 has no extremum");
    return reduction::shape(at, in, n);
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    dims first = x.sizes;
    for (int k = 0; k < first.n; ++k)
      if (at[0].contains(k)) first[k] = 1;
    if (numel(x.sizes) == 0) return;
    for_each_reduced(at, out, strided<T const>{x.data, first, x.strides}, [](R& r, T v) { r = v; });
    for_each_reduced(at, out, x, [](R& r, T v) {
      if (v != v || rules<Tag>::better(v, r)) r = v;
    });
  }
  /// Weights that spread a derivative evenly over the elements equal to the extremum.
  template <class Op, value Y, value X>
  static constexpr auto weights(Op const& op, Y const& y, X const& x) {
    auto const hit = to(eq(x, keep_reduced(op, y, x)), type_fact(x));
    return div(hit, bind<sum_t>(fact_of<0>(op), keepdim)(hit)); // not sum(hit, axes): a batch of rank-0 values has no axes to reduce
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& y, value auto const& x) {
    return bind<sum_t>(fact_of<0>(op), fact_of<1>(op))(mul(weights(op, y, x), d));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& y, value auto const& x) {
    return mul(weights(op, y, x), keep_reduced(op, g, x));
  }
};
} // namespace detail

/// Greatest element along axes.
template <>
struct rules<amax_t> : detail::extremum<amax_t> {
  static constexpr bool better(auto v, auto r) { return v > r; }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) { return detail::reduce_tensor<amax_t>(at, x, &detail::fold_for<kernel::max_fold>); }
};
/// Smallest element along axes.
template <>
struct rules<amin_t> : detail::extremum<amin_t> {
  static constexpr bool better(auto v, auto r) { return v < r; }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) { return detail::reduce_tensor<amin_t>(at, x, &detail::fold_for<kernel::min_fold>); }
};

template <value X, class... A>
constexpr auto amax_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<amax_t>(x, at...);
}
template <value X, class... A>
constexpr auto amin_t::operator()(X const& x, A const&... at) const {
  return detail::reduce<amin_t>(x, at...);
}

} // namespace varve

// ---- varve/op/argmax.hpp
namespace varve {

/// Position of the first greatest element along one axis, int64; NaN counts as greatest. Attributes {{axis}, {keepdim}}.
template <>
struct rules<argmax_t> : rule::reduction {
  static constexpr bool differentiable = false;
  static constexpr auto schema = "(Tensor self, int dim, bool keepdim=False) -> Tensor";
  template <class T>
  using result = std::int64_t;
  static constexpr meta shape(attributes const& at, meta const* in, int n) {
    if (at[0].n > 0 && in[0].sizes[static_cast<int>(at[0][0])] == 0) refuse::argument_is_invalid("argmax", "an axis of size 0 has no greatest element");
    meta m = reduction::shape(at, in, n);
    m.type = dtype::int64;
    return m;
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = 0;
    if (at[0].n == 0) return; // rank 0, or a batch of such
    int const a = static_cast<int>(at[0][0]);
    dims first = x.sizes;
    first[a] = 1;
    auto greater = [](T v, T r) { return v > r || (v != v && r == r); };
    detail::for_each_reduced(at, out, strided<T const>{x.data, first, x.strides}, [&](R& r, T const& v) {
      T const* p = &v;
      for (index_t k = 1; k < x.sizes[a]; ++k)
        if (greater(p[k * x.strides[a]], p[r * x.strides[a]])) r = k;
    });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x) {
    meta const in[] = {meta_of(x)};
    T r = tensor::empty(shape(at, in, 1).sizes, dtype::int64);
    auto* out = static_cast<std::int64_t*>(r.raw());
    if (at[0].n == 0)
      for (index_t k = 0; k < r.numel(); ++k) out[k] = 0;
    else kernel::arg_reduce<>(true, x.dtype(), x.sizes(), detail::operand_of(x, x.strides().v), static_cast<int>(at[0][0]), out);
    return r;
  }
};

template <value X, class... A>
constexpr auto argmax_t::operator()(X const& x, A const&... at) const {
  if constexpr (sizeof...(A) == 0) return detail::reduce<argmax_t>(reshape(x, shape<-1>), axis<0>);
  else return detail::reduce<argmax_t>(x, at...);
}

} // namespace varve

// ---- varve/op/gather.hpp
namespace varve {

namespace detail {
inline constexpr auto one_axis = [](dims const& axis, dims const& sizes) { return dims{wrap_axis(axis[0], sizes.n)}; };
constexpr void check_index(char const* op, dims const& axis, dims const& x, dims const& index) {
  bool fits = x.n == index.n;
  for (int k = 0; fits && k < x.n; ++k) fits = k == axis[0] || index[k] <= x[k];
  if (!fits) refuse::shapes_do_not_match(op, x, index);
}
} // namespace detail

/// `out[i][j] = x[index[i][j]][j]` for axis 0, and so for others; ranks are equal. Attribute {axis}.
template <>
struct rules<gather_t> {
  static constexpr saved_values saved{{saved_values::operand(1)}};
  static constexpr auto schema = "(Tensor self, int dim, Tensor index) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 2;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::check_index("gather", at[0], in[0].sizes, in[1].sizes);
    if (in[1].type != dtype::int64) refuse::dtype_is_not_supported("gather index (int64 expected):", name(in[1].type));
    return {in[0].type, in[1].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<std::int64_t const> index) {
    int const a = static_cast<int>(at[0][0]);
    for_each_index(index.sizes, [&](dims const& i) {
      dims from = i;
      if (i.n) {
        from[a] = index.at(i);
        if (from[a] < 0 || from[a] >= x.sizes[a]) refuse::index_out_of_range("gather", from[a], x.sizes[a]);
      }
      out.at(i) = x.at(from);
    });
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const&, value auto const& index) {
    return op(d, index);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x, value auto const& index) {
    return bind<scatter_add_t>(op.a)(new_zeros(g, shape_of(x)), index, g);
  }
  template <class Op, class N, class X, class I>
  static constexpr auto batch(Op const& op, N const& n, X const& x, I const& index) {
    return bind<gather_t>(on_dims(detail::shifted, op.a))(materialize(x, n), materialize(index, n));
  }
};

/// `x` with `source[i][j]` added at `[index[i][j]][j]` for axis 0; repeated indices accumulate. Attribute {axis}.
template <>
struct rules<scatter_add_t> {
  static constexpr saved_values saved{{0, 0, saved_values::operand(1)}};
  static constexpr auto schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 3;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::check_index("scatter_add", at[0], in[0].sizes, in[1].sizes);
    if (in[1].type != dtype::int64) refuse::dtype_is_not_supported("scatter_add index (int64 expected):", name(in[1].type));
    if (in[0].type != in[2].type) refuse::dtype_is_not_supported("scatter_add of two dtypes:", name(in[2].type));
    for (int k = 0; k < in[1].sizes.n; ++k)
      if (in[1].sizes.n != in[2].sizes.n || in[1].sizes[k] > in[2].sizes[k]) refuse::shapes_do_not_match("scatter_add", in[1].sizes, in[2].sizes);
    return {in[0].type, in[0].sizes};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<std::int64_t const> index, strided<T const> source) {
    int const a = static_cast<int>(at[0][0]);
    for_each_index(x.sizes, [&](dims const& i) { out.at(i) = x.at(i); });
    for_each_index(index.sizes, [&](dims const& i) {
      dims to = i;
      if (i.n) {
        to[a] = index.at(i);
        if (to[a] < 0 || to[a] >= x.sizes[a]) refuse::index_out_of_range("scatter_add", to[a], x.sizes[a]);
      }
      out.at(to) = static_cast<R>(out.at(to) + source.at(i));
    });
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, auto const&...) {
    return d;
  }
  template <class Op>
  static constexpr auto jvp(arg_t<2>, Op const& op, value auto const& d, value auto const& y, value auto const&, value auto const& index, value auto const&) {
    return op(full_like(y, 0), index, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, auto const&...) {
    return g;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<2>, Op const& op, value auto const& g, value auto const&, value auto const&, value auto const& index, value auto const&) {
    return bind<gather_t>(op.a)(g, index); // as in PyTorch, defined for equal shapes of index and source
  }
  template <class Op, class N, class X, class I, class S>
  static constexpr auto batch(Op const& op, N const& n, X const& x, I const& index, S const& source) {
    return bind<scatter_add_t>(on_dims(detail::shifted, op.a))(materialize(x, n), materialize(index, n), materialize(source, n));
  }
};

template <value X, class A, value I>
constexpr auto gather_t::operator()(X const& x, A const& axis, I const& index) const {
  return bind<gather_t>(on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x)))(x, index);
}
template <value X, class A, value I, value S>
constexpr auto scatter_add_t::operator()(X const& x, A const& axis, I const& index, S const& source) const {
  return bind<scatter_add_t>(on_dims(detail::one_axis, detail::as_fact(axis), shape_of(x)))(x, index, source);
}

} // namespace varve

// ---- varve/op/matmul.hpp
namespace varve {

/// Matrix product of operands of equal rank >= 2 and equal leading sizes; attribute {ta, tb}: a is stored [.., k, m] when ta, b [.., n, k] when tb.
template <>
struct rules<mm_t> : rule::bilinear {
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr auto schema = "(Tensor self, Tensor mat2, bool[2] transposed=False) -> Tensor";
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    dims const &a = in[0].sizes, &b = in[1].sizes;
    if (a.n < 2 || a.n != b.n || !(a.sub(0, a.n - 2) == b.sub(0, b.n - 2)) || a[a.n - (at[0][0] ? 2 : 1)] != b[b.n - (at[0][1] ? 1 : 2)])
      refuse::shapes_do_not_match("matmul", a, b);
    if (in[0].type != in[1].type) refuse::dtype_is_not_supported("matmul of two dtypes:", name(in[1].type));
    dims s = a.sub(0, a.n - 2);
    s.push_back(a[a.n - (at[0][0] ? 1 : 2)]).push_back(b[b.n - (at[0][1] ? 2 : 1)]);
    return {in[0].type, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> b) {
    int const r = out.sizes.n;
    index_t const m = out.sizes[r - 2], n = out.sizes[r - 1], k = a.sizes[r - (at[0][0] ? 2 : 1)];
    index_t const am = a.strides[r - (at[0][0] ? 1 : 2)], ak = a.strides[r - (at[0][0] ? 2 : 1)];
    index_t const bk = b.strides[r - (at[0][1] ? 1 : 2)], bn = b.strides[r - (at[0][1] ? 2 : 1)];
    for_each_index(out.sizes.sub(0, r - 2), [&](dims const& i) {
      index_t oa = 0, ob = 0, oc = 0;
      for (int d = 0; d < i.n; ++d) oa += i[d] * a.strides[d], ob += i[d] * b.strides[d], oc += i[d] * out.strides[d];
      for (index_t x = 0; x < m; ++x)
        for (index_t y = 0; y < n; ++y) {
          R acc{};
          for (index_t z = 0; z < k; ++z) acc = static_cast<R>(acc + a.data[oa + x * am + z * ak] * b.data[ob + z * bk + y * bn]);
          out.data[oc + x * out.strides[r - 2] + y * out.strides[r - 1]] = acc;
        }
    });
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& a, T const& b) {
    meta const in[] = {meta_of(a), meta_of(b)};
    meta const m = shape(at, in, 2);
    T c = tensor::empty(m.sizes, m.type);
    int const r = m.sizes.n;
    auto matrix = [r](T const& t, bool transposed, index_t offset) {
      char* const p = static_cast<char*>(t.raw()) + offset * itemsize(t.dtype());
      index_t const row = t.strides()[r - (transposed ? 1 : 2)], col = t.strides()[r - (transposed ? 2 : 1)];
      return kernel::matrix<void>{p, row, col};
    };
    for_each_index(m.sizes.sub(0, r - 2), [&](dims const& i) {
      index_t oa = 0, ob = 0, oc = 0;
      for (int d = 0; d < i.n; ++d) oa += i[d] * a.strides()[d], ob += i[d] * b.strides()[d], oc += i[d] * c.strides()[d];
      auto const x = matrix(a, at[0][0] != 0, oa);
      auto const y = matrix(b, at[0][1] != 0, ob);
      kernel::matmul<>(m.type, m.sizes[r - 2], m.sizes[r - 1], a.sizes()[r - (at[0][0] ? 2 : 1)], {x.data, x.row, x.col}, {y.data, y.row, y.col}, matrix(c, false, oc));
    });
    return c;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const&, value auto const& b) {
    auto const& f = op.a;
    return flagged(
        on_dims([](dims const& d) { return dims{d[0]}; }, f), [&](auto const& u, auto const& v) { return mm(v, u, on_dims([](dims const& d) { return dims{d[1], 1}; }, f)); },
        [&](auto const& u, auto const& v) { return mm(u, v, on_dims([](dims const& d) { return dims{0, !d[1]}; }, f)); }, g, b);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& a, value auto const&) {
    auto const& f = op.a;
    return flagged(
        on_dims([](dims const& d) { return dims{d[1]}; }, f), [&](auto const& u, auto const& v) { return mm(u, v, on_dims([](dims const& d) { return dims{1, d[0]}; }, f)); },
        [&](auto const& u, auto const& v) { return mm(v, u, on_dims([](dims const& d) { return dims{!d[0], 0}; }, f)); }, g, a);
  }
  template <class Op, class N, class A, class B>
  static constexpr auto batch(Op const& op, N const& n, A const& a, B const& b) {
    return op(materialize(a, n), materialize(b, n));
  }

private:
  template <class Flag, class F, class G, class... V>
  static constexpr auto flagged(Flag const& flag, F const& f, G const& g, V const&... v) {
    if constexpr (is_ints<Flag>) return choose(std::bool_constant<(Flag::to_dims()[0] != 0)>{}, f, g, v...);
    else return choose(flag[0] != 0, f, g, v...);
  }
};

template <value A, value B, class... F>
constexpr auto mm_t::operator()(A const& a, B const& b, F const&... flags) const {
  if constexpr (sizeof...(F) == 0) return bind<mm_t>(ints<0, 0>{})(a, b);
  else return bind<mm_t>(flags...)(a, b);
}

namespace detail {
inline constexpr auto matrix_shape_left = [](dims const& a) { return a.n == 1 ? dims{1, a[0]} : a; };
inline constexpr auto matrix_shape_right = [](dims const& b) { return b.n == 1 ? dims{b[0], 1} : b; };
inline constexpr auto batch_shape = [](dims const& mine, dims const& a, dims const& b) {
  dims s = broadcast(a.sub(0, a.n - 2), b.sub(0, b.n - 2));
  return s.push_back(mine[mine.n - 2]).push_back(mine[mine.n - 1]);
};
inline constexpr auto product_shape = [](dims const& c, dims const& a, dims const& b) {
  dims s = c;
  if (b.n == 1) s.erase(s.n - 1);
  if (a.n == 1) s.erase(s.n - (b.n == 1 ? 1 : 2));
  return s;
};
inline constexpr auto check_matmul = [](dims const& a, dims const& b) {
  if (a.n == 0 || b.n == 0 || a[a.n - 1] != b[b.n == 1 ? 0 : b.n - 2]) refuse::shapes_do_not_match("matmul", a, b);
  return dims{1};
};
} // namespace detail

/// Matrix product with PyTorch's rules: 1-D operands are vectors, leading dimensions broadcast. Decomposes into reshapes and `mm`.
inline constexpr struct matmul_t : composite_operator<matmul_t> {
  static constexpr auto op_name = "matmul";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const sa = shape_of(a);
    auto const sb = shape_of(b);
    auto const fits = on_dims(detail::check_matmul, sa, sb);
    if constexpr (std::is_same_v<decltype(fits), ints<> const>) {
      return a; // refused: nothing more is instantiated
    } else {
      auto const ma = detail::reshape_to(a, on_dims(detail::matrix_shape_left, sa));
      auto const mb = detail::reshape_to(b, on_dims(detail::matrix_shape_right, sb));
      auto const ba = on_dims(detail::batch_shape, shape_of(ma), shape_of(ma), shape_of(mb));
      auto const bb = on_dims(detail::batch_shape, shape_of(mb), shape_of(ma), shape_of(mb));
      auto const c = mm(broadcast_to(ma, ba), broadcast_to(mb, bb));
      return detail::reshape_to(c, on_dims(detail::product_shape, shape_of(c), sa, sb));
    }
  }
} matmul{};

/// Sum of products of two vectors of equal length.
inline constexpr struct dot_t : composite_operator<dot_t> {
  static constexpr auto op_name = "dot";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto check = [](dims const& x, dims const& y) {
      if (x.n != 1 || !(x == y)) refuse::shapes_do_not_match("dot", x, y);
      return dims{};
    };
    (void)on_dims(check, shape_of(a), shape_of(b));
    return sum(mul(a, b));
  }
} dot{};

} // namespace varve

// ---- varve/op/maximum.hpp
namespace varve {

namespace detail {
/// The share of a tangent or cotangent `v` that an operand gets: all where it was chosen, half where both are equal.
constexpr auto share(value auto const& chosen, value auto const& x, value auto const& y, value auto const& v) {
  return where(eq(x, y), mul(v, 0.5), where(chosen, v, 0));
}
struct selecting : rule::pointwise<2> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::operand(1), saved_values::operand(0) | saved_values::operand(1)}};
  template <std::size_t I, class Op>
  static constexpr auto jvp(arg_t<I> a, Op const&, value auto const& d, value auto const& r, value auto const& x, value auto const& y) {
    return share(rules<typename Op::tag>::chosen(a, x, y), x, y, match(d, r));
  }
  template <std::size_t I, class Op>
  static constexpr auto vjp(arg_t<I> a, Op const&, value auto const& g, value auto const&, value auto const& x, value auto const& y) {
    return unmatch(share(rules<typename Op::tag>::chosen(a, x, y), x, y, g), nth<I>(x, y));
  }
};
} // namespace detail

/// The greater element; NaN wins. Equal operands share the derivative, as in PyTorch.
template <>
struct rules<maximum_t> : detail::selecting {
  static constexpr auto kernel(auto x, auto y) { return kernel::maximum(x, y); }
  static constexpr auto chosen(arg_t<0>, auto const& x, auto const& y) { return gt(x, y); }
  static constexpr auto chosen(arg_t<1>, auto const& x, auto const& y) { return lt(x, y); }
};

/// The smaller element; NaN wins. Equal operands share the derivative, as in PyTorch.
template <>
struct rules<minimum_t> : detail::selecting {
  static constexpr auto kernel(auto x, auto y) { return kernel::minimum(x, y); }
  static constexpr auto chosen(arg_t<0>, auto const& x, auto const& y) { return lt(x, y); }
  static constexpr auto chosen(arg_t<1>, auto const& x, auto const& y) { return gt(x, y); }
};

} // namespace varve

// ---- varve/op/one_hot.hpp
namespace varve {

/// A new last axis of size `num_classes` that is 1 at the index and 0 elsewhere (int64, as in PyTorch). Attribute {num_classes}.
template <>
struct rules<one_hot_t> {
  static constexpr auto schema = "(Tensor self, int num_classes) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    if (in[0].type != dtype::int64) refuse::dtype_is_not_supported("one_hot (int64 expected):", name(in[0].type));
    dims s = in[0].sizes;
    return {dtype::int64, s.push_back(at[0][0])};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    for (index_t k = 0; k < numel(out.sizes); ++k) out.data[k] = R(0);
    for_each_index(x.sizes, [&](dims const& i) {
      auto const c = static_cast<index_t>(x.at(i));
      if (c < 0 || c >= at[0][0]) refuse::index_out_of_range("one_hot", c, at[0][0]);
      dims to = i;
      out.at(to.push_back(c)) = R(1);
    });
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

template <value X, class N>
constexpr auto one_hot_t::operator()(X const& x, N const& num_classes) const {
  return bind<one_hot_t>(detail::as_fact(num_classes))(x);
}

} // namespace varve

// ---- varve/op/operators.hpp
/// @file
/// C++ operators on varve's values; at least one side is one. Comparisons are elementwise, as in PyTorch: `equal(a, b)` asks for a single answer.
namespace varve {

namespace detail {
template <class A, class B>
concept operands = value<A> && value<B> && (varve_value<A> || varve_value<B>);
} // namespace detail

template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator+(A const& a, B const& b) {
  return add(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator-(A const& a, B const& b) {
  return sub(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator*(A const& a, B const& b) {
  return mul(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator/(A const& a, B const& b) {
  return div(a, b);
}
template <varve_value A>
constexpr auto operator-(A const& a) {
  return neg(a);
}
template <varve_value A>
constexpr auto operator+(A const& a) {
  return a;
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator<(A const& a, B const& b) {
  return lt(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator<=(A const& a, B const& b) {
  return le(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator>(A const& a, B const& b) {
  return gt(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator>=(A const& a, B const& b) {
  return ge(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator==(A const& a, B const& b) {
  return eq(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator!=(A const& a, B const& b) {
  return ne(a, b);
}
/// `x += y` makes a new value; to write into the memory of a tensor use `add_(x, y)`.
template <varve_value A, value B>
constexpr A& operator+=(A& a, B const& b) {
  return a = add(a, b);
}
template <varve_value A, value B>
constexpr A& operator-=(A& a, B const& b) {
  return a = sub(a, b);
}
template <varve_value A, value B>
constexpr A& operator*=(A& a, B const& b) {
  return a = mul(a, b);
}
template <varve_value A, value B>
constexpr A& operator/=(A& a, B const& b) {
  return a = div(a, b);
}

/// Do two static values have the same shape, dtype and elements?
template <class T, index_t... D, class U, index_t... E>
constexpr bool equal(array<T, D...> const& a, array<U, E...> const& b) {
  if constexpr (!std::is_same_v<array<T, D...>, array<U, E...>>) {
    return false;
  } else {
    for (index_t k = 0; k < a.size(); ++k)
      if (!(a[k] == b[k])) return false;
    return true;
  }
}
template <number A, number B>
constexpr bool equal(A a, B b) {
  return a == b;
}

} // namespace varve

// ---- varve/op/out.hpp
namespace varve {

namespace detail {
[[noreturn]] VARVE_COLD inline void refuse_out(char const* op) {
  throw autograd_error((std::string("varve: ") + op + ": functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad; use the result of the operator, or no_grad").c_str());
}
/// The tensor that results are written to.
class out_argument {
public:
  explicit out_argument(tensor const& t) : out_(t) {}
  template <class Op, class... X>
  tensor operator()(Op const& op, X const&... x) const {
    using T = dependent<tensor, Op>;
    constexpr char const* name = Op::op_name;
    auto const tracked = [](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return v.requires_grad();
      else return false;
    };
    if (this_thread_state.grad_mode && !this_thread_inference && (tracked(out_) || ... || tracked(x))) refuse_out(name);
    T const y = op(x...);
    T const to = out_;
    if (!(to.sizes() == y.sizes()) && to.numel() != 0) refuse::shapes_do_not_match(name, to.sizes(), y.sizes());
    if (category(y.dtype()) > category(to.dtype()))
      throw dtype_error((std::string("varve: ") + name + ": a result of dtype " + varve::name(y.dtype()) + " cannot be written into " + varve::name(to.dtype())).c_str());
    if (to.sizes() == y.sizes()) copy_(to, y);
    else set_(to, T(varve::to(y, to.dtype())));
    return to;
  }

private:
  tensor out_;
};
} // namespace detail

/// Writes what an operator gives into a tensor that is there, and returns it: `out(y)(mul, a, b)` is `torch.mul(a, b, out=y)`. An empty `y` takes the result's shape. Shape and dtype
/// are as of in-place operators; `autograd_error` when gradients are recorded and an argument or `y` requires one (AG-17).
inline detail::out_argument out(tensor const& y) { return detail::out_argument(y); }

} // namespace varve

// ---- varve/op/pow.hpp
namespace varve {

/// x to the power y. Derivatives as in PyTorch: that of x is 0 where y is 0; that of y is 0 where x is 0 and y is not negative.
template <>
struct rules<pow_t> : rule::pointwise<2> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::operand(1), saved_values::result | saved_values::operand(0) | saved_values::operand(1)}};
  static constexpr auto kernel(auto x, auto y) { return kernel::pow(x, y); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x, auto const& y) { return where(eq(y, 0), 0, mul(y, pow(x, sub(y, 1)))); }
  static constexpr auto partial(arg_t<1>, auto const& r, auto const& x, auto const& y) {
    return where(eq(x, 0), where(ge(y, 0), 0, mul(r, log(x))), mul(r, log(x)));
  }
};

} // namespace varve

// ---- varve/op/softmax.hpp
namespace varve {

namespace detail {
/// Greatest elements along axes as constants, 0 where they are infinite, so that subtracting them makes exponentials safe.
template <class X, class A>
constexpr auto safe_maximum(X const& x, A const& axes) {
  auto const m = amax(detach(x), axes, keepdim);
  return where(eq(abs(m), std::numeric_limits<double>::infinity()), 0, m);
}
/// `f(x)`, or `g(x)` where x has no elements: nothing has no maximum.
template <class X, class F, class G>
constexpr auto unless_empty(X const& x, F const& f, G const& g) {
  return choose(same_fact(on_dims([](dims const& s) { return dims{numel(s) == 0}; }, shape_of(x)), ints<1>{}), g, f, x);
}
} // namespace detail

/// log(sum(exp(x))) along axes without overflow (`torch.logsumexp`); -inf for axes of -inf only.
inline constexpr struct logsumexp_t : composite_operator<logsumexp_t> {
  static constexpr auto op_name = "logsumexp";
  template <value X, class A, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axes, K const& keep = {}) {
    auto const shifted = [&](auto const& v) {
      auto const m = detail::safe_maximum(v, axes);
      auto const s = sum(exp(sub(v, m)), axes, keep);
      return add(log(s), detail::reshape_to(m, shape_of(s)));
    };
    return detail::unless_empty(x, shifted, [&](auto const& v) { return log(sum(exp(v), axes, keep)); });
  }
} logsumexp{};

/// exp(x) / sum(exp(x)) along one axis.
inline constexpr struct softmax_t : composite_operator<softmax_t> {
  static constexpr auto op_name = "softmax";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    auto const shifted = [&](auto const& v) {
      auto const e = exp(sub(v, amax(detach(v), axis, keepdim)));
      return div(e, sum(e, axis, keepdim));
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} softmax{};

/// Logarithm of `softmax`, without overflow or loss.
inline constexpr struct log_softmax_t : composite_operator<log_softmax_t> {
  static constexpr auto op_name = "log_softmax";
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    auto const shifted = [&](auto const& v) {
      auto const z = sub(v, amax(detach(v), axis, keepdim));
      return sub(z, log(sum(exp(z), axis, keepdim)));
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} log_softmax{};

} // namespace varve

// ---- varve/op/unbind.hpp
/// @file
/// Views that come several at a time. Writing into one of a tensor's is refused where gradients are recorded (AG-16).
namespace varve {

namespace detail {
template <class V>
constexpr V one_of_several(V const& v) {
  if constexpr (std::is_same_v<V, tensor>)
    if (v.base().defined() && v.origin() == view_origin::usual && this_thread_state.grad_mode) v.set_origin(view_origin::many);
  return v;
}
/// Are the sizes of a value types, so that parts of several shapes have a type each?
template <class X, class... Fact>
inline constexpr bool parts_are_types = is_ints<std::remove_cvref_t<decltype(shape_of(std::declval<X const&>()))>> && (is_ints<Fact> && ...);
/// Parts [k * size, (k + 1) * size) of an axis; the last may be smaller.
inline constexpr auto part_range = [](dims const& axis, dims const& k, dims const& size, dims const& sizes) {
  index_t const n = sizes[wrap_axis(axis[0], sizes.n)], from = k[0] * size[0], to = from + size[0];
  return dims{from, to < n ? to : n};
};
inline constexpr auto part_count = [](dims const& axis, dims const& size, dims const& sizes) {
  if (size[0] < 1) refuse::argument_is_invalid("split", "the size of a part must be positive");
  if (sizes.n == 0) refuse::argument_is_invalid("split", "a rank-0 value has no axis");
  index_t const n = sizes[wrap_axis(axis[0], sizes.n)];
  return dims{n == 0 ? 1 : (n + size[0] - 1) / size[0]};
};
inline constexpr auto chunk_extent = [](dims const& axis, dims const& n, dims const& sizes) {
  if (n[0] < 1) refuse::argument_is_invalid("chunk", "the number of parts must be positive");
  if (sizes.n == 0) refuse::argument_is_invalid("chunk", "a rank-0 value has no axis");
  index_t const all = sizes[wrap_axis(axis[0], sizes.n)];
  return dims{all == 0 ? 1 : (all + n[0] - 1) / n[0]};
};
inline constexpr auto extent_of = [](dims const& axis, dims const& sizes) {
  if (sizes.n == 0) refuse::argument_is_invalid("unbind", "a rank-0 value has no axis");
  return dims{sizes[wrap_axis(axis[0], sizes.n)]};
};
} // namespace detail

/// The values along an axis, which goes: as many views as it is long, in a `std::array` for static values, else a `std::vector` (`torch.unbind`).
inline constexpr struct unbind_t {
  template <value X, class A = ints<0>>
  constexpr auto operator()(X const& x, A const& axis = {}) const {
    using fact_t = decltype(detail::as_fact(axis));
    auto const n = on_dims(detail::extent_of, detail::as_fact(axis), shape_of(x));
    if constexpr (detail::parts_are_types<X, fact_t>) {
      constexpr auto count = static_cast<std::size_t>(decltype(n)::to_dims()[0]);
      return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::array{select(x, axis, ints<static_cast<index_t>(K)>{})...}; }(std::make_index_sequence<count>{});
    } else {
      std::vector<std::remove_cvref_t<decltype(select(x, axis, 0))>> r;
      for (index_t k = 0; k < to_dims(n)[0]; ++k) r.push_back(detail::one_of_several(select(x, axis, k)));
      return r;
    }
  }
} unbind{};

/// Parts of `size` elements of an axis, the last of what remains: views, in a tuple for static values, else a `std::vector` (`torch.split`). `split(x, axis<2>, axis<0>)`: static sizes are types.
inline constexpr struct split_t {
  template <value X, class S, class A = ints<0>>
  constexpr auto operator()(X const& x, S const& size, A const& axis = {}) const {
    auto const a = detail::as_fact(axis);
    auto const s = detail::as_fact(size);
    auto const n = on_dims(detail::part_count, a, s, shape_of(x));
    if constexpr (detail::parts_are_types<X, decltype(a), decltype(s)>) {
      constexpr auto count = static_cast<std::size_t>(decltype(n)::to_dims()[0]);
      auto const part = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) { return slice(x, axis, on_dims(detail::part_range, a, ints<static_cast<index_t>(K)>{}, s, shape_of(x))); };
      return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(part(std::integral_constant<std::size_t, K>{})...); }(std::make_index_sequence<count>{});
    } else {
      std::vector<std::remove_cvref_t<decltype(slice(x, axis, 0, 1))>> r;
      for (index_t k = 0; k < to_dims(n)[0]; ++k) {
        dims const range = detail::part_range(to_dims(a), dims{k}, to_dims(s), to_dims(shape_of(x)));
        r.push_back(detail::one_of_several(slice(x, axis, range[0], range[1])));
      }
      return r;
    }
  }
} split{};

/// At most `n` parts of an axis, alike but for the last: `split` by the rounded up share (`torch.chunk`).
inline constexpr struct chunk_t {
  template <value X, class N, class A = ints<0>>
  constexpr auto operator()(X const& x, N const& n, A const& axis = {}) const {
    return split(x, on_dims(detail::chunk_extent, detail::as_fact(axis), detail::as_fact(n), shape_of(x)), axis);
  }
} chunk{};

} // namespace varve

// ---- varve/transform/vmap.hpp
namespace varve {

/// Which dimension of each argument is mapped: `in_dims<none, 0, 1>`; one entry serves all arguments. Negative numbers count from the last dimension.
template <auto... D>
struct in_dims_t {};
template <auto... D>
inline constexpr in_dims_t<D...> in_dims{};
/// Where the mapped dimension of each result goes; one entry serves all results.
template <auto... D>
struct out_dims_t {};
template <auto... D>
inline constexpr out_dims_t<D...> out_dims{};

namespace detail {
template <std::size_t I, auto First, auto... Rest>
constexpr auto dim_at() {
  if constexpr (sizeof...(Rest) == 0 || I == 0) return First;
  else return dim_at<I - 1, Rest...>();
}
inline constexpr auto to_front = [](dims const& s, dims const& axis) {
  int const a = wrap_axis(axis[0], s.n);
  if (s.n == 0) refuse::axis_out_of_range(axis[0], 0);
  dims p{a};
  for (int k = 0; k < s.n; ++k)
    if (k != a) p.push_back(k);
  return p;
};
inline constexpr auto from_front = [](dims const& s, dims const& axis) {
  int const a = wrap_axis(axis[0], s.n);
  dims p;
  for (int k = 1; k < s.n; ++k) p.push_back(k);
  return p.insert(a, 0);
};
inline constexpr auto already_ordered = [](dims const& p) {
  for (int k = 0; k < p.n; ++k)
    if (p[k] != k) return dims{0};
  return dims{1};
};
/// Permutes unless the order is there already.
inline constexpr auto permute_to = [](auto const& x, auto const& p) {
  return choose(
      same_fact(on_dims(already_ordered, p), ints<1>{}), identity, [&](auto const& v) { return permute(v, p); }, x);
};
inline constexpr auto first_size = [](dims const& s) { return dims{s[0]}; };

/// Sizes of the mapped dimensions of one argument, as a tuple of facts.
template <auto D, class T>
constexpr auto mapped_sizes(T const& t) {
  if constexpr (is_none<decltype(D)>) {
    return std::tuple<>{};
  } else if constexpr (is_vector<T>) {
    static_assert(tree_is_dynamic<T>(), "varve: vmap: a vector of static values cannot be mapped; use std::array");
    dims n;
    bool first = true;
    tree_for_each(
        [&](auto const& v) {
          if (v.dim() == 0) refuse::axis_out_of_range(D, 0);
          dims const m{v.size(D)};
          if (!first && !(m == n)) refuse::mapped_sizes_differ(n, m);
          first = false;
          n = m;
        },
        t);
    return std::make_tuple(n);
  } else if constexpr (is_tree_node<T> && !tuple_node<T>) {
    return mapped_sizes<D>(members_of(t));
  } else if constexpr (is_tree_node<T>) {
    return std::apply([](auto const&... e) { return std::tuple_cat(mapped_sizes<D>(e)...); }, t);
  } else {
    static_assert(value<T>, "varve: vmap: an argument that is not a value cannot be mapped; give it in_dims none");
    auto size = [](dims const& s, dims const& a) {
      if (s.n == 0) refuse::axis_out_of_range(a[0], 0);
      return dims{s[wrap_axis(a[0], s.n)]};
    };
    return std::make_tuple(on_dims(size, shape_of(t), ints<D>{}));
  }
}
/// Are the mapped sizes equal, as far as they are known to the compiler?
template <class S>
inline constexpr bool sizes_agree = false;
template <class N, class... M>
inline constexpr bool sizes_agree<std::tuple<N, M...>> = !(is_ints<N> && (is_ints<M> && ...)) || (std::is_same_v<N, M> && ...);

template <class N, class... M>
constexpr auto common_size(std::tuple<N, M...> const& sizes) {
  if constexpr (is_ints<N> && (is_ints<M> && ...)) {
    return N{};
  } else {
    dims const n = to_dims(std::get<0>(sizes));
    std::apply([&](auto const&... s) { ((to_dims(s) == n ? void() : refuse::mapped_sizes_differ(n, to_dims(s))), ...); }, sizes);
    return n;
  }
}

/// Mapped arguments at a static level.
template <int N, class Tag, class Size>
struct static_batch_scope {
  using interpreter = vmap_interpreter<static_level<N, Tag>, Size>;
  Size n;
  constexpr Size size() const { return n; }
  template <class V>
  constexpr auto map(V const& v) const {
    interpreter in{};
    in.n = n;
    return seen<interpreter, V>{v, in, {}};
  }
  template <class Body>
  constexpr auto run(Body const& body) const {
    return body();
  }
  template <class Y>
  static constexpr auto mapped(Y const&) {
    check_exit<N, Y>();
    return std::bool_constant<at_level<Y, N>>{};
  }
  template <class Y>
  static constexpr auto unmapped(Y const& y) {
    return y.value;
  }
};
template <class F, class Size, class... X>
constexpr auto batch_scope([[maybe_unused]] F const& f, Size const& n, [[maybe_unused]] random_policy random) {
  if constexpr (any_dynamic<X...>) return dynamic_batch_scope<>(to_dims(n)[0], random);
  else return static_batch_scope<next_level<F, X...>, F, Size>{n};
}

template <auto D, class Scope, class T>
constexpr auto map_tree(Scope const& scope, T const& t) {
  if constexpr (is_none<decltype(D)>) return t;
  else return tree_map([&](auto const& v) { return scope.map(permute_to(plain(v), on_dims(to_front, shape_of(v), ints<D>{}))); }, t);
}
template <auto D, class Scope, class Y>
constexpr auto collect(Scope const& scope, Y const& y) {
  static_assert(value<Y>, "varve: vmap: the mapped function must return values");
  if constexpr (is_none<decltype(D)>) {
    auto const mapped = scope.mapped(y);
    if constexpr (std::is_same_v<std::remove_const_t<decltype(mapped)>, bool>) {
      if (mapped) refuse::result_is_mapped_but_out_dims_says_none();
    } else {
      static_assert(!decltype(mapped)::value, "varve: vmap: a result is mapped although out_dims says none; give it a dimension");
    }
    return y;
  } else {
    auto const front = choose(
        scope.mapped(y), [&](auto const& v) { return scope.unmapped(v); },
        [&](auto const& v) { return expand(v, on_dims(prepend, shape_of(v), scope.size())); }, y);
    return permute_to(front, on_dims(from_front, shape_of(front), ints<D>{}));
  }
}
template <auto... D, class Scope, class Y>
constexpr auto collect_tree(Scope const& scope, Y const& y) {
  if constexpr (is_tree_node<Y> && !tuple_node<Y>) {
    return tree_map([&](auto const& v) { return collect<dim_at<0, D...>()>(scope, v); }, y);
  } else if constexpr (is_tree_node<Y>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return remake(std::type_identity<Y>{}, collect_tree<dim_at<K, D...>()>(scope, std::get<K>(y))...); }(
        std::make_index_sequence<std::tuple_size_v<Y>>{});
  } else {
    return collect<dim_at<0, D...>()>(scope, y);
  }
}
} // namespace detail

/// The function object of `vmap`.
template <class F, class In, class Out, random_policy R = random_policy::error>
struct vmap_function;
template <class F, auto... In, auto... Out, random_policy R>
struct vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> {
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr bool counted = sizeof...(In) == 1 || sizeof...(In) == sizeof...(X);
    static_assert(counted, "varve: vmap: in_dims must have one entry, or one per argument");
    if constexpr (counted) return call(std::index_sequence_for<X...>{}, x...);
    else return none;
  }

private:
  template <std::size_t... K, class... X>
  constexpr auto call(std::index_sequence<K...>, X const&... x) const {
    auto sizes = std::tuple_cat(detail::mapped_sizes<detail::dim_at<K, In...>()>(x)...);
    using S = decltype(sizes);
    static_assert(std::tuple_size_v<S> != 0, "varve: vmap: at least one argument must be mapped");
    static_assert(std::tuple_size_v<S> == 0 || detail::sizes_agree<S>, "varve: vmap: the mapped dimensions of the arguments have different sizes");
    if constexpr (detail::sizes_agree<S>) {
      auto scope = detail::batch_scope<F, decltype(detail::common_size(sizes)), X...>(f, detail::common_size(sizes), R);
      auto const in = std::make_tuple(detail::map_tree<detail::dim_at<K, In...>()>(scope, x)...);
      auto const y = scope.run([&] { return detail::call_with(f, in); });
      return detail::collect_tree<Out...>(scope, y);
    } else {
      return none; // nothing more is instantiated after the message
    }
  }
};

/// `vmap(f)(x...)`: f over slices of its arguments, as one batched program; results are stacked. Laws: equals the loop over slices. Errors: unequal mapped sizes, a result
/// that is mapped although out_dims says none. TR-1..4. Random operators on tensors inside are refused unless `randomness` says what they do.
template <class F, auto... In, auto... Out, random_policy R = random_policy::error>
constexpr auto vmap(F f, in_dims_t<In...>, out_dims_t<Out...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R>{f};
}
template <class F, auto... In, random_policy R = random_policy::error>
constexpr auto vmap(F f, in_dims_t<In...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<In...>, out_dims_t<0>, R>{f};
}
template <class F, auto... Out, random_policy R = random_policy::error>
constexpr auto vmap(F f, out_dims_t<Out...>, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<0>, out_dims_t<Out...>, R>{f};
}
template <random_policy R = random_policy::error, class F>
constexpr auto vmap(F f, randomness_t<R> = {}) {
  return vmap_function<F, in_dims_t<0>, out_dims_t<0>, R>{f};
}

} // namespace varve

// ---- varve/transform/jacobian.hpp
namespace varve {

namespace detail {
/// The unit vectors of a value's space: shape [numel, shape...].
template <value X>
constexpr auto basis(X const& x) {
  auto const sizes = shape_of(x);
  auto const n = on_dims([](dims const& s) { return dims{numel(s)}; }, sizes);
  auto const wide = on_dims([](dims const& s) { dims r = s; return r.insert(0, numel(s)); }, sizes);
  if constexpr (is_ints<decltype(n)> && !dynamic_value<X> && is_ints<decltype(type_fact(x))>) {
    using T = type_of<static_cast<dtype>(decltype(type_fact(x))::to_dims()[0])>;
    return reshape(eye<T, decltype(n)::to_dims()[0]>(), wide);
  } else {
    auto const k = backend<typename decltype(base_tag<X>())::type>::arange(base_value(x), to_dims(n));
    return reshape(to(eq(reshape(k, dims{to_dims(n)[0], 1}), k), type_fact(x)), wide);
  }
}
inline constexpr auto concat = [](dims const& a, dims const& b) {
  dims r = a;
  for (int k = 0; k < b.n; ++k) r.push_back(b[k]);
  return r;
};
/// Tangents along the unit vectors of x, stacked last, as Jacobians.
template <class Y, class X>
constexpr auto as_columns(Y const& tangents, X const& x) {
  return tree_map(
      [&](auto const& c) {
        auto const rows = on_dims([](dims const& s) { return s.sub(0, s.n - 1); }, shape_of(c));
        return reshape_to(c, on_dims(concat, rows, shape_of(x)));
      },
      tangents);
}
} // namespace detail

/// `jacfwd(f)(x, rest...)`: the Jacobian by forward mode, shape [result..., x...]: `vmap` of `jvp` over unit vectors. One pass per element of x. TR-19.
template <class F>
struct jacfwd_function {
  [[no_unique_address]] F f;
  template <class X, class... R>
  constexpr auto operator()(X const& x, R const&... rest) const {
    auto const column = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
      auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
      return jvp(closure(along, known, r...), std::tuple(at), std::tuple(e)).second;
    };
    auto const columns = vmap(closure(column, x, detail::captures_of(f), rest...), out_dims<-1>)(detail::basis(x));
    return detail::as_columns(columns, x);
  }
};
template <class F>
constexpr auto jacfwd(F f) {
  return jacfwd_function<F>{f};
}

/// `jacrev(f)(x, rest...)`: the same Jacobian by reverse mode: `vmap` of the pullback over unit vectors of the result. One pass per element of the result. TR-18.
template <class F>
struct jacrev_function {
  [[no_unique_address]] F f;
  template <class X, class... R>
  constexpr auto operator()(X const& x, R const&... rest) const {
    auto const y = f(x, rest...);
    static_assert(value<std::remove_cvref_t<decltype(y)>>, "varve: jacrev: the function must return one value");
    // Static tapes know the types of their cotangents when they record, hence the recording inside the mapped function; it runs once in either world.
    auto const row = [&](auto const& e, auto const& at, auto const& known, auto const&... r) {
      auto const along = [&](auto const& v, auto const&...) { return f(v, r...); };
      return std::get<0>(vjp(closure(along, e, known, r...), at).second(e));
    };
    auto const rows = vmap(closure(row, x, detail::captures_of(f), rest...))(detail::basis(y));
    return detail::reshape_to(rows, on_dims(detail::concat, shape_of(y), shape_of(x)));
  }
};
template <class F>
constexpr auto jacrev(F f) {
  return jacrev_function<F>{f};
}

/// `hessian(f)(x, rest...)`: second derivatives of a function of x, `jacfwd(jacrev(f))`, shape [result..., x..., x...].
template <class F>
constexpr auto hessian(F f) {
  return jacfwd(jacrev(f));
}

} // namespace varve

// ---- varve/transform/chunked.hpp
namespace varve {

/// How many slices `vmap`, rows `jacrev`, or columns `jacfwd` and `hessian`, work on at once: `vmap(f, chunk_size{64})`. Bounds memory; the result is the same (TR-9, TR-18). Tensors only.
struct chunk_size {
  index_t n;
  explicit chunk_size(index_t size) : n(size) {
    if (size < 1) throw value_error(("varve: chunk_size must be positive, not " + std::to_string(size)).c_str());
  }
};

namespace detail {
/// A part of the mapped dimension of an argument's leaves.
template <auto D, class X>
X part_of(X const& x, index_t from, index_t to) {
  if constexpr (is_none<decltype(D)>) return x;
  else return tree_map([&](auto const& v) { return slice(v, D, from, to); }, x);
}
template <auto... D, class Y>
Y joined_parts(std::vector<Y> const& parts) {
  if constexpr (tuple_node<Y>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        std::vector<std::tuple_element_t<I, Y>> p;
        for (auto const& y : parts) p.push_back(std::get<I>(y));
        return joined_parts<dim_at<I, D...>()>(p);
      };
      return Y{one(std::integral_constant<std::size_t, K>{})...};
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  } else if constexpr (is_none<decltype(dim_at<0, D...>())>) {
    return parts[0];
  } else {
    return cat(parts, dim_at<0, D...>());
  }
}
} // namespace detail

/// The function object of `vmap` with a `chunk_size`.
template <class F, class In, class Out, random_policy R>
struct chunked_vmap_function;
template <class F, auto... In, auto... Out, random_policy R>
struct chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> {
  vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R> f;
  index_t chunk;

  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(any_dynamic<X...>, "varve: vmap: chunk_size is for tensors; static values are mapped as a whole");
    return call(std::index_sequence_for<X...>{}, x...);
  }

private:
  template <std::size_t... K, class... X>
  auto call(std::index_sequence<K...>, X const&... x) const {
    auto const sizes = std::tuple_cat(detail::mapped_sizes<detail::dim_at<K, In...>()>(x)...);
    index_t const n = to_dims(detail::common_size(sizes))[0];
    auto const run = [&](index_t from, index_t to) { return f(detail::part_of<detail::dim_at<K, In...>()>(x, from, to)...); };
    if (n <= chunk) return f(x...);
    // "same": every part sees the numbers that the first one saw (TR-9).
    generator const start = default_generator;
    std::vector<decltype(run(0, 0))> parts;
    for (index_t from = 0; from < n; from += chunk) {
      if constexpr (R == random_policy::same) default_generator = start;
      parts.push_back(run(from, from + chunk < n ? from + chunk : n));
    }
    return detail::joined_parts<Out...>(parts);
  }
};
template <random_policy R = random_policy::error, class F>
auto vmap(F f, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<0>, out_dims_t<0>, R>{{f}, c.n};
}
template <class F, auto... In, random_policy R = random_policy::error>
auto vmap(F f, in_dims_t<In...>, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<0>, R>{{f}, c.n};
}
template <class F, auto... In, auto... Out, random_policy R = random_policy::error>
auto vmap(F f, in_dims_t<In...>, out_dims_t<Out...>, chunk_size c, randomness_t<R> = {}) {
  return chunked_vmap_function<F, in_dims_t<In...>, out_dims_t<Out...>, R>{{f}, c.n};
}

/// `jacrev(f, chunk_size{k})`: the pullback is mapped over k unit vectors at a time.
template <class F>
auto jacrev(F f, chunk_size c) {
  return [f, c](auto const& x, auto const&... rest) {
    auto const run = vjp([&](auto const& v) { return f(v, rest...); }, x);
    auto const rows = vmap([&](auto const& e) { return std::get<0>(run.second(e)); }, c)(detail::basis(run.first));
    return detail::reshape_to(rows, detail::concat(run.first.sizes(), x.sizes()));
  };
}

/// `jacfwd(f, chunk_size{k})`: f is pushed forward along k unit vectors at a time (TR-19).
template <class F>
auto jacfwd(F f, chunk_size c) {
  return [f, c](auto const& x, auto const&... rest) {
    auto const column = [&](auto const& e) { return jvp([&](auto const& v) { return f(v, rest...); }, std::tuple(x), std::tuple(e)).second; };
    return detail::as_columns(vmap(column, in_dims<0>, out_dims<-1>, c)(detail::basis(x)), x);
  };
}
/// `hessian(f, chunk_size{k})`: `jacfwd(jacrev(f, k), k)`.
template <class F>
auto hessian(F f, chunk_size c) {
  return jacfwd(jacrev(f, c), c);
}

} // namespace varve

// ---- varve/transform/functional_call.hpp
namespace varve {

/// Tensors by name, in an order.
using parameter_dict = std::vector<std::pair<std::string, tensor>>;

/// Base of structures that have parameters and are called: `struct linear : module { tensor w; linear() { register_parameter("w", w); } tensor operator()(tensor const& x); };`
/// Parts of them are registered by name and found as "part.w". One tensor registered under two names is tied: both follow a substitution.
class module {
public:
  module() = default;
  module(module const&) = delete; // registered members would be another's
  module& operator=(module const&) = delete;

  /// Every parameter with its full name, parts included, in the order of registration.
  parameter_dict named_parameters() const {
    parameter_dict r;
    for (auto const& s : slots("")) r.push_back({s.first, *s.second});
    return r;
  }

protected:
  ~module() = default;
  void register_parameter(std::string name, tensor& t) { own_.push_back({std::move(name), &t}); }
  void register_module(std::string name, module& m) { parts_.push_back({std::move(name), &m}); }

private:
  template <class M, class... X>
  friend auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights, X const&... x);
  std::vector<std::pair<std::string, tensor*>> slots(std::string const& prefix) const {
    std::vector<std::pair<std::string, tensor*>> r;
    for (auto const& p : own_) r.push_back({prefix + p.first, p.second});
    for (auto const& m : parts_)
      for (auto& s : m.second->slots(prefix + m.first + ".")) r.push_back(std::move(s));
    return r;
  }
  std::vector<std::pair<std::string, tensor*>> own_;
  std::vector<std::pair<std::string, module*>> parts_;
};

/// Calls `m(x...)` with other tensors in place of its parameters, which are back afterwards, exceptions included (TR-21). Tied parameters follow one another unless
/// `tie_weights` is off. A name in two dicts, or one that there is none of, is `value_error`; with `strict` so is a parameter that no dict names.
template <class M, class... X>
auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights, X const&... x) {
  static_assert(std::is_base_of_v<module, M>, "varve: functional_call: the structure must derive from module");
  auto const slots = static_cast<module const&>(m).slots("");
  auto const refuse = [](std::string const& text) { throw value_error(("varve: functional_call: " + text).c_str()); };
  struct substitution {
    tensor* at;
    tensor value;
  };
  std::vector<substitution> wanted;
  std::vector<std::string> seen;
  for (auto const& d : dicts)
    for (auto const& [name, value] : d) {
      for (auto const& s : seen)
        if (s == name) refuse(name + " appears in two dictionaries");
      seen.push_back(name);
      tensor* at = nullptr;
      for (auto const& s : slots)
        if (s.first == name) at = s.second;
      if (!at) refuse("there is no parameter " + name);
      tensor const original = *at;
      for (auto const& s : slots)
        if (s.second == at || (tie_weights && s.second->is(original))) wanted.push_back({s.second, value});
    }
  if (strict)
    for (auto const& s : slots) {
      bool named = false;
      for (auto const& w : wanted) named = named || w.at == s.second;
      if (!named) refuse("no dictionary names the parameter " + s.first);
    }
  struct restore {
    std::vector<substitution> before;
    ~restore() {
      for (std::size_t k = before.size(); k-- > 0;) *before[k].at = before[k].value;
    }
  } back;
  for (auto const& w : wanted) {
    back.before.push_back({w.at, *w.at});
    *w.at = w.value;
  }
  return m(x...);
}
template <class M, class... X>
auto functional_call(M& m, parameter_dict const& parameters, X const&... x) {
  return functional_call(m, std::vector<parameter_dict>{parameters}, false, true, x...);
}

/// Parameters of several modules of one structure, stacked along a new dimension in front: what `vmap` of `functional_call` runs as an ensemble (TR-22). Leaves that require
/// grad stay such.
template <class M, class T = tensor>
parameter_dict stack_module_state(std::vector<M*> const& models) {
  if (models.empty()) throw value_error("varve: stack_module_state: at least one model is needed");
  std::vector<parameter_dict> all;
  for (auto const* m : models) all.push_back(m->named_parameters());
  parameter_dict r;
  for (std::size_t k = 0; k < all[0].size(); ++k) {
    std::vector<T> values;
    bool grad = true;
    for (auto const& d : all) {
      if (d.size() != all[0].size() || d[k].first != all[0][k].first) throw value_error("varve: stack_module_state: the models differ in their parameters");
      values.push_back(static_cast<T const&>(d[k].second).detach());
      grad = grad && d[k].second.requires_grad() && d[k].second.is_leaf();
    }
    T const s = stack(values);
    if (grad) s.requires_grad_();
    r.push_back({all[0][k].first, s});
  }
  return r;
}

} // namespace varve

// ---- varve/transform/grad.hpp
namespace varve {

/// Which arguments to differentiate: `grad(f, argnums<0, 2>)`. Negative numbers count from the last.
template <int... A>
struct argnums_t {};
template <int... A>
inline constexpr argnums_t<A...> argnums{};

/// The function returns the pair (value, anything else): `grad(f, has_aux)` gives (gradient, anything else), `value_and_grad(f, has_aux)` ((value, anything else), gradient).
struct has_aux_t {};
inline constexpr has_aux_t has_aux{};

namespace detail {
constexpr int wrap_argnum(int a, int count) { return a < 0 ? a + count : a; }
template <int Count, int... A>
constexpr bool argnums_are_valid() {
  int const n[] = {wrap_argnum(A, Count)...};
  for (int i = 0; i < static_cast<int>(sizeof...(A)); ++i) {
    if (n[i] < 0 || n[i] >= Count) return false;
    for (int j = 0; j < i; ++j)
      if (n[i] == n[j]) return false;
  }
  return true;
}
} // namespace detail

/// The function object of `grad` and `value_and_grad`.
template <bool WithValue, bool Aux, class F, int... A>
struct grad_function {
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr int count = sizeof...(X);
    static_assert(detail::argnums_are_valid<count, A...>(), "varve: grad: argnums must be distinct and name existing arguments");
    if constexpr (detail::argnums_are_valid<count, A...>()) {
      auto scope = reverse_scope<F, X...>(f, x...);
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto track = [&]<std::size_t I>(std::integral_constant<std::size_t, I>, auto const& v) {
          if constexpr (((detail::wrap_argnum(A, count) == static_cast<int>(I)) || ...)) return scope.track(v);
          else return v;
        };
        auto const in = std::make_tuple(track(std::integral_constant<std::size_t, K>{}, x)...);
        auto const out = scope.run([&] { return detail::call_with(f, in); });
        if constexpr (Aux) static_assert(requires { out.first; out.second; }, "varve: grad with has_aux: the function must return a pair of its value and anything else");
        auto const& y = result(out);
        scope.backward_from_scalar(y);
        auto gradients = [&] {
          if constexpr (sizeof...(A) == 1) return (scope.gradient(std::get<static_cast<std::size_t>(detail::wrap_argnum(A, count))>(in)), ...);
          else return std::make_tuple(scope.gradient(std::get<static_cast<std::size_t>(detail::wrap_argnum(A, count))>(in))...);
        };
        if constexpr (WithValue) return std::pair(scope.primal(out), gradients());
        else if constexpr (Aux) return std::pair(gradients(), scope.primal(out.second));
        else return gradients();
      }(std::index_sequence_for<X...>{});
    }
  }

private:
  static constexpr auto const& result(auto const& out) {
    if constexpr (Aux) return out.first;
    else return out;
  }
};

/// `grad(f)(x...)`: derivatives of a scalar function by reverse mode with respect to argument 0, or to `grad<0, 2>(f)` / `grad(f, argnums<0, 2>)` as a tuple.
/// Arguments may be trees (`std::tuple`, `std::pair`, `std::array`); unrelated arguments get zeros. Nests to any order. Cost: a small multiple of f. TR-12..14.
template <int... A, class F>
constexpr auto grad(F f) {
  if constexpr (sizeof...(A) == 0) return grad_function<false, false, F, 0>{f};
  else return grad_function<false, false, F, A...>{f};
}
template <class F, int... A>
constexpr auto grad(F f, argnums_t<A...>) {
  return grad_function<false, false, F, A...>{f};
}

template <int... A, class F>
constexpr auto grad(F f, has_aux_t) {
  if constexpr (sizeof...(A) == 0) return grad_function<false, true, F, 0>{f};
  else return grad_function<false, true, F, A...>{f};
}

/// As `grad`, but gives the pair (value, gradient).
template <int... A, class F>
constexpr auto value_and_grad(F f) {
  if constexpr (sizeof...(A) == 0) return grad_function<true, false, F, 0>{f};
  else return grad_function<true, false, F, A...>{f};
}
template <class F, int... A>
constexpr auto value_and_grad(F f, argnums_t<A...>) {
  return grad_function<true, false, F, A...>{f};
}

template <int... A, class F>
constexpr auto value_and_grad(F f, has_aux_t) {
  if constexpr (sizeof...(A) == 0) return grad_function<true, true, F, 0>{f};
  else return grad_function<true, true, F, A...>{f};
}

} // namespace varve

// ---- varve/transform/with.hpp
namespace varve {

/// Static factories that modes see: `with(m, [](auto s, auto x) { return x + s.ones(shape<3>); }, scope(), x)`. A bare `ones<float, 3>()` has no argument whose type could
/// carry the stack; a scope carries the modes it was handed through, the outermost first. On tensors factories need none.
template <class... I>
struct scope {
  [[no_unique_address]] std::tuple<I...> stack{};

  /// An array of a shape filled with a number, of the number's type: an operator `full` to every mode of the scope.
  template <index_t... D, number N>
  constexpr auto full(ints<D...> const& sizes, N v) const {
    return bound<full_t, ints<D...>, ints<static_cast<index_t>(dtype_of_type<N>())>>{sizes, {}, {}}(lift_to_all(stack, v));
  }
  /// `zeros(shape<2, 3>, type<double>)`
  template <index_t... D, index_t T = static_cast<index_t>(default_dtype)>
  constexpr auto zeros(ints<D...> const& sizes, ints<T> const& = {}) const {
    return full(sizes, type_of<static_cast<dtype>(T)>(0));
  }
  template <index_t... D, index_t T = static_cast<index_t>(default_dtype)>
  constexpr auto ones(ints<D...> const& sizes, ints<T> const& = {}) const {
    return full(sizes, type_of<static_cast<dtype>(T)>(1));
  }
};
namespace detail {
template <class T>
inline constexpr bool is_scope = false;
template <class... I>
inline constexpr bool is_scope<scope<I...>> = true;
/// The scope inside one more mode.
template <class In, class... I>
constexpr auto within(scope<I...> const& s, In const& in) {
  return scope<I..., In>{std::tuple_cat(s.stack, std::make_tuple(in))};
}
} // namespace detail

/// `with(mode, f, x...)`: f(x...) with every operator on values that come from x handed to the mode first, resolved by the compiler. The mode sits above the
/// transforms already around it and below those that f applies. On tensors it is a `mode_guard` around the call.
template <class M, class F, class... X>
  requires(sizeof...(X) > 0)
constexpr auto with(M& mode, F const& f, X const&... x) {
  if constexpr (any_dynamic<X...>) {
    mode_guard const on{mode};
    return f(x...);
  } else {
    using I = mode_interpreter<static_level<detail::next_level<F, X...>, F>, M>;
    I in{};
    in.mode = &mode;
    auto const close = [&](auto const& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (value<V>) return seen<I, std::remove_cvref_t<decltype(detail::plain(v))>>{detail::plain(v), in, {}};
      else if constexpr (detail::is_scope<V>) return detail::within(v, in);
      else return v;
    };
    auto const open = [](auto const& y) {
      using Y = std::remove_cvref_t<decltype(y)>;
      if constexpr (value<Y>) detail::check_exit<I::level, Y>();
      if constexpr (at_level<Y, I::level>) return y.value;
      else return y;
    };
    return tree_map(open, f(tree_map(close, x)...));
  }
}

/// The function object of `with(mode, f)`.
template <class M, class F>
struct with_function {
  M* mode;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (sizeof...(X) > 0) {
      return with(*mode, f, x...);
    } else { // nothing but factories of tensors can be inside
      mode_guard const on{*mode};
      return f();
    }
  }
};
/// `with(mode, f)`: f under the mode, as a function to be transformed further: `with(m1, with(m2, f))(x)`, `grad(with(m, f))(x)`. The mode must outlive it.
template <class M, class F>
constexpr auto with(M& mode, F f) {
  return with_function<M, F>{&mode, f};
}

} // namespace varve

// ---- varve/value/print.hpp
#include <iosfwd>
namespace varve {

namespace detail {
inline void print_element(std::string& to, tensor const& t, index_t offset) {
  char text[40];
  on_dtype(t.dtype(), "to_string", [&]<class T>() {
    T const v = static_cast<T const*>(t.raw())[offset];
    if constexpr (std::is_same_v<T, bool>) std::snprintf(text, sizeof text, "%s", v ? "true" : "false");
    else if constexpr (std::is_integral_v<T>) std::snprintf(text, sizeof text, "%lld", static_cast<long long>(v));
    else std::snprintf(text, sizeof text, "%.*g", sizeof(T) == 4 ? 6 : 10, static_cast<double>(v));
  });
  to += text;
}
/// Longer dimensions show their first and last three elements.
inline void print_elements(std::string& to, tensor const& t, int axis, index_t offset) {
  if (axis == t.dim()) return print_element(to, t, offset);
  index_t const n = t.sizes()[axis], shown = t.numel() > 1000 && n > 6 ? 3 : n;
  to += '[';
  for (index_t k = 0; k < n; ++k) {
    if (k) to += axis + 1 < t.dim() ? ",\n" + std::string(static_cast<std::size_t>(axis + 8), ' ') : ", ";
    if (k == shown && shown < n) {
      to += "..., ";
      k = n - shown;
    }
    print_elements(to, t, axis + 1, offset + k * t.strides()[axis]);
  }
  to += ']';
}
} // namespace detail

/// A tensor as PyTorch prints it. A value seen through transforms shows each, the innermost transform outside, with its level (FS-13):
/// `grad(level=2, value=vmap(level=1, dim=0, value=tensor([1, 2], dtype=float64)))`. A tensor with a history names what made it: `grad_fn=<AddBackward0>`.
inline std::string to_string(tensor const& t) {
  if (!t.defined()) return "tensor(undefined)";
  if (t.is_wrapped()) {
    bool const mapped = !(t.sizes() == t.inner().sizes());
    std::string const kind = t.history() ? "grad" : mapped ? "vmap" : t.extra().defined() ? "jvp" : "constant";
    std::string r = kind + "(level=" + std::to_string(t.level()) + (mapped ? ", dim=0" : "") + ", value=" + to_string(t.inner());
    if (kind == "jvp") r += ", tangent=" + to_string(t.extra());
    return r + ")";
  }
  if (t.object()) {
    std::string r = std::string(t.object()->type().name) + "(";
    for (int k = 0; k < t.object()->inner_count(); ++k) r += (k ? ", " : "") + to_string(t.object()->inner(k));
    return r + ")";
  }
  std::string r = "tensor(";
  if (!t.has_data()) r += "..., device=meta, size=" + to_string(t.sizes());
  else detail::print_elements(r, t, 0, 0);
  if (t.dtype() != default_dtype && t.dtype() != dtype::int64 && t.dtype() != dtype::bool_) r += std::string(", dtype=") + name(t.dtype());
  if (grad_node const* const n = t.history().to()) {
    char fn[64];
    n->type->name(*n, fn);
    r += n->type->is_leaf ? ", requires_grad=true" : ", grad_fn=<" + std::string(fn) + ">";
  }
  return r + ")";
}

/// `std::cout << t`.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, tensor const& t) {
  out << to_string(t).c_str();
  return out;
}

} // namespace varve
