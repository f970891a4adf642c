// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

#include <cstdint>
#include <type_traits>

namespace varve {

/// The element types, with PyTorch's names. Compact ones (`is_compact`) are stored in fewer bytes than they are
/// computed in. Any program can move the elements of complex tensors; computing with them requires `varve/complex.hpp`.
/// Program files contain the numbers of the enumerators, which therefore must not change.
enum class dtype : std::uint8_t {
  bool_,
  uint8,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
  int8,
  int16
};

/// Returns PyTorch's name of a dtype.
constexpr char const* name(dtype t) {
  constexpr char const* names[] = {"bool",    "uint8",   "int32",     "int64",      "float16", "bfloat16",
                                   "float32", "float64", "complex64", "complex128", "int8",    "int16"};
  return names[static_cast<int>(t)];
}
namespace detail {
// not in the function, where it would be copied at each call
inline constexpr std::uint8_t item_sizes[] = {1, 1, 4, 8, 2, 2, 4, 8, 8, 16, 1, 2};
} // namespace detail
/// Returns the number of bytes of one element.
constexpr int itemsize(dtype t) { return detail::item_sizes[static_cast<int>(t)]; }
/// Returns the category of a dtype: 0 bool, 1 integer, 2 floating, 3 complex. A value of lower rank or a plain number
/// raises the dtype of a result only if its category is higher.
constexpr int category(dtype t) {
  return t == dtype::bool_ ? 0 : t <= dtype::int64 || t >= dtype::int8 ? 1 : t <= dtype::float64 ? 2 : 3;
}
constexpr bool is_floating(dtype t) { return category(t) == 2; }
constexpr bool is_complex(dtype t) { return t == dtype::complex64 || t == dtype::complex128; }
/// True if values of this dtype have derivatives: floating and complex ones.
constexpr bool has_derivatives(dtype t) { return category(t) >= 2; }
/// Returns the dtype of the real and imaginary parts of a complex dtype; other dtypes are returned unchanged.
constexpr dtype part_type(dtype t) {
  return t == dtype::complex64 ? dtype::float32 : t == dtype::complex128 ? dtype::float64 : t;
}
/// Returns the complex dtype whose parts have dtype `t`: complex128 for float64, else complex64. complex128 is returned
/// unchanged.
constexpr dtype complex_type(dtype t) {
  return t == dtype::float64 || t == dtype::complex128 ? dtype::complex128 : dtype::complex64;
}

/// True if the dtype is stored in fewer bytes than it is computed in.
constexpr bool is_compact(dtype t) {
  return t == dtype::float16 || t == dtype::bfloat16 || t == dtype::int8 || t == dtype::int16;
}
/// Returns the dtype in which operators compute elements of dtype `t`: float32 for float16 and bfloat16, int32 for int8
/// and int16, else `t` itself.
constexpr dtype computed_in(dtype t) { return !is_compact(t) ? t : is_floating(t) ? dtype::float32 : dtype::int32; }

/// The dtype of results of factories that are called without a dtype (`torch.get_default_dtype`).
inline constexpr dtype default_dtype = dtype::float32;

/// Returns the smallest dtype to which both convert without losing their category (`torch.promote_types`).
constexpr dtype promote_types(dtype a, dtype b) {
  if (a == b) return a;
  if ((a == dtype::float16 && b == dtype::bfloat16) || (a == dtype::bfloat16 && b == dtype::float16))
    return dtype::float32;
  if ((a == dtype::complex64 && b == dtype::float64) || (a == dtype::float64 && b == dtype::complex64))
    return dtype::complex128;
  if ((a == dtype::uint8 && b == dtype::int8) || (a == dtype::int8 && b == dtype::uint8)) return dtype::int16;
  constexpr std::uint8_t rank[] = {0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3}; // uint8, int8, int16, int32, ...
  return rank[static_cast<int>(a)] > rank[static_cast<int>(b)] ? a : b;
}

/// Returns the dtype of a C++ element type: bool, uint8_t, float, double, or an integer of 32 or 64 bits. Other types
/// are refused at compile time.
template <class T>
constexpr dtype dtype_of_type() {
  if constexpr (std::is_same_v<T, bool>) return dtype::bool_;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return dtype::uint8;
  else if constexpr (std::is_same_v<T, float>) return dtype::float32;
  else if constexpr (std::is_same_v<T, double>) return dtype::float64;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return dtype::int32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return dtype::int64;
  else {
    static_assert(!sizeof(T*),
                  "varve: this element type has no dtype; use bool, uint8_t, int32_t, int64_t, float or double");
    return dtype::float32;
  }
}

namespace detail {
/// Refuses an attribute that is not a dtype.
constexpr void require_dtype(char const* op, dims const& type) {
  bool const known = type.n == 1 && type[0] >= 0 && type[0] <= static_cast<index_t>(dtype::int16);
  if (!known) refuse::argument_is_invalid(op, "this number names no dtype");
}
template <dtype D>
struct dtype_element;
template <>
struct dtype_element<dtype::bool_> {
  using type = bool;
};
template <>
struct dtype_element<dtype::uint8> {
  using type = std::uint8_t;
};
template <>
struct dtype_element<dtype::int32> {
  using type = std::int32_t;
};
template <>
struct dtype_element<dtype::int64> {
  using type = std::int64_t;
};
template <>
struct dtype_element<dtype::float32> {
  using type = float;
};
template <>
struct dtype_element<dtype::float64> {
  using type = double;
};
} // namespace detail

/// The C++ element type of a dtype.
template <dtype D>
using type_of = typename detail::dtype_element<D>::type;

/// Calls `f.template operator()<T>()` with the element type of `t`. Throws `dtype_error`, which names `op`, for dtypes
/// without kernels.
template <class F>
constexpr decltype(auto) on_dtype(dtype t, char const* op, F&& f) {
  switch (t) {
  case dtype::bool_:
    return f.template operator()<bool>();
  case dtype::uint8:
    return f.template operator()<std::uint8_t>();
  case dtype::int32:
    return f.template operator()<std::int32_t>();
  case dtype::int64:
    return f.template operator()<std::int64_t>();
  case dtype::float32:
    return f.template operator()<float>();
  case dtype::float64:
    return f.template operator()<double>();
  default:
    refuse::dtype_is_not_supported(op, name(t));
  }
}

/// The dtype and shape of a value: what the compiler or a trace knows without the data.
struct meta {
  dtype type = dtype::float32;
  dims sizes{};
  /// True for a plain C++ number, which raises a dtype only if its category is higher (PyTorch's wrapped numbers).
  bool number = false;
  friend constexpr bool operator==(meta const& a, meta const& b) {
    return a.type == b.type && known_equal(a.sizes, b.sizes);
  }
};

namespace detail {
constexpr int promotion_class(meta const& m) { return m.number ? 0 : m.sizes.n == 0 ? 1 : 2; }
} // namespace detail

namespace detail {
/// The combined dtype of operands. Each is added with its class: 0 for a plain number, 1 for rank 0, 2 for a value with
/// dimensions.
class dtype_sum {
public:
  constexpr void add(dtype t, int c) {
    if (c == 0) {
      numbers_ = any_[0] ? promote_types(numbers_, t) : t;
      if (t == dtype::float64) t = default_dtype; // a number raises integers to the default dtype only
      if (category(t) == 1) t = dtype::int64;     // a number raises bool to int64 only
      if (is_complex(t)) t = dtype::complex64;
    }
    best_[c] = any_[c] ? promote_types(best_[c], t) : t;
    any_[c] = true;
  }
  constexpr dtype result() const {
    if (!any_[2] && !any_[1]) return numbers_; // C++'s own rule, so that static scalars keep their precision
    dtype r = any_[2] ? best_[2] : best_[1];
    for (int c = any_[2] ? 1 : 0; c >= 0; --c)
      if (any_[c] && category(best_[c]) > category(r))
        r = is_complex(best_[c]) && is_floating(r) ? complex_type(r) : best_[c];
    return r;
  }

private:
  dtype best_[3]{}, numbers_{};
  bool any_[3]{};
};
} // namespace detail

/// Returns the result dtype of operands (`torch.result_type`). Values with dimensions decide before values of rank 0,
/// and these before plain numbers, unless a later class has a higher category.
template <class... M>
constexpr dtype result_type(M const&... m) {
  detail::dtype_sum r;
  (r.add(m.type, detail::promotion_class(m)), ...);
  return r.result();
}

} // namespace varve
