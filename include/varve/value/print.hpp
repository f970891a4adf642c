// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/number_text.hpp>
#include <varve/value/seen.hpp>
#include <varve/value/tensor.hpp>

#include <iosfwd>
#include <limits>
#include <string>

namespace varve {

namespace detail {
void print_element(std::string& to, tensor const& t, index_t offset);
/// Appends the elements along an axis. A long dimension shows its first and last three elements.
void print_elements(std::string& to, tensor const& t, int axis, index_t offset);
} // namespace detail

/// Returns the text that PyTorch prints for a tensor. For a value seen through transforms it names each with its level,
/// the innermost transform first: `grad(level=2, value=vmap(level=1, dim=0, value=tensor([1, 2], dtype=float64)))`. A
/// tensor with a history shows the call that made it: `grad_fn=<AddBackward0>`.
std::string to_string(tensor const& t);

/// Returns the text of an array: `array([1, 2], dtype=float64)`.
template <class T, index_t... D>
std::string to_string(array<T, D...> const& a) {
  std::string r = "array(" + to_string(tensor(a)).substr(7);
  for (std::size_t k = 0; k < r.size(); ++k)
    if (r[k] == '\n') r.erase(k + 1, 1); // "array" is one letter shorter than "tensor"
  return r;
}
/// Returns the text of a static value seen through transforms, the innermost transform first, as for tensors.
template <class I, class V, class E>
std::string to_string(seen<I, V, E> const& x) {
  std::string r = std::string(I::kind) + "(level=" + std::to_string(I::level) + ", value=";
  if constexpr (number<V>) r += detail::number_text(static_cast<double>(x.value), 10);
  else r += to_string(x.value);
  return r + ")";
}

/// Prints a tensor: `std::cout << t`.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, tensor const& t) {
  out << to_string(t).c_str();
  return out;
}
template <class Traits, class V>
  requires is_array<V> || is_seen<V>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, V const& v) {
  out << to_string(v).c_str();
  return out;
}
/// Prints shapes and dtypes: `std::cout << x.sizes() << x.dtype()`.
template <class Traits, class V>
  requires std::is_same_v<V, dims> || is_ints<V>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, V const& v) {
  out << to_string(to_dims(v)).c_str();
  return out;
}
template <class Traits, class V>
  requires std::is_same_v<V, dtype>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, V v) {
  out << name(v);
  return out;
}

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
/// Removes the sign of a NaN, which depends on the processor (for example for 0 / 0) and has no meaning.
inline double without_sign_of_nan(double x) { return x == x ? x : std::numeric_limits<double>::quiet_NaN(); }
VARVE_LIBRARY void print_element(std::string& to, tensor const& t, index_t offset) {
  if (is_complex(t.dtype())) { // 1+2j
    bool const single = t.dtype() == dtype::complex64;
    auto const part = [&](int k) {
      return without_sign_of_nan(single ? static_cast<double>(static_cast<float const*>(t.raw())[2 * offset + k])
                                        : static_cast<double const*>(t.raw())[2 * offset + k]);
    };
    int const digits = single ? 6 : 10;
    std::string const imaginary = number_text(part(1), digits);
    to += number_text(part(0), digits) + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
    return;
  }
  on_stored_dtype(t.dtype(), "to_string", [&]<class T>() {
    T const v = static_cast<T const*>(t.raw())[offset];
    if constexpr (std::is_same_v<T, bool>) to += v ? "true" : "false";
    else if constexpr (std::is_integral_v<T>) to += std::to_string(static_cast<long long>(v));
    else {
      int const digits = sizeof(T) == 8 ? 10 : sizeof(T) == 4 ? 6 : 4;
      to += number_text(without_sign_of_nan(static_cast<double>(v)), digits);
    }
  });
}
VARVE_LIBRARY void print_elements(std::string& to, tensor const& t, int axis, index_t offset) {
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
} // namespace varve::detail

namespace varve {
VARVE_LIBRARY std::string to_string(tensor const& t) {
  if (!t.defined()) return "tensor(undefined)";
  if (t.is_wrapped()) {
    bool const mapped = !t.state() && !(t.sizes() == t.inner().sizes());
    std::string const kind = t.state()             ? "functional"
                             : t.history()         ? "grad"
                             : mapped              ? "vmap"
                             : t.extra().defined() ? "jvp"
                                                   : "constant";
    std::string r =
        kind + "(level=" + std::to_string(t.level()) + (mapped ? ", dim=0" : "") + ", value=" + to_string(t.current());
    if (kind == "jvp") r += ", tangent=" + to_string(t.extra());
    return r + ")";
  }
  if (t.object()) {
    std::string r = std::string(t.object()->type().name) + "(";
    if (t.object()->inner_count() == 0)
      r += "..., size=" + to_string(t.sizes()) + ", dtype=" + std::string(name(t.dtype()));
    for (int k = 0; k < t.object()->inner_count(); ++k) r += (k ? ", " : "") + to_string(t.object()->inner(k));
    return r + ")";
  }
  std::string r = "tensor(";
  if (!t.has_data()) r += "..., device=meta, size=" + to_string(t.sizes());
  else detail::print_elements(r, t, 0, 0);
  if (t.dtype() != default_dtype && t.dtype() != dtype::int64 && t.dtype() != dtype::bool_)
    r += std::string(", dtype=") + name(t.dtype());
  if (grad_node const* const n = t.history().to()) {
    char fn[64];
    n->type->name(*n, fn);
    r += n->type->is_leaf ? ", requires_grad=true" : ", grad_fn=<" + std::string(fn) + ">";
  }
  return r + ")";
}
} // namespace varve
#endif
