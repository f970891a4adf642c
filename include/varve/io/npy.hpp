// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/io/csv.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/permute.hpp>

#include <cstring>

/// @file
/// Arrays of NumPy in files: `.npy`, versions 1 to 3, little-endian.
namespace varve {

namespace detail {
struct npy_type {
  char const* name;
  dtype type;
};
inline constexpr npy_type npy_types[] = {{"|b1", dtype::bool_}, {"|u1", dtype::uint8},   {"<i4", dtype::int32},
                                         {"<i8", dtype::int64}, {"<f4", dtype::float32}, {"<f8", dtype::float64},
                                         {"|i1", dtype::int8},  {"<i2", dtype::int16},   {"<f2", dtype::float16}};
[[noreturn]] inline void refuse_npy(std::string const& what) { throw value_error(("varve: npy: " + what).c_str()); }
/// The text behind `'key':` in a header, without leading blanks.
inline std::string_view npy_field(std::string_view header, char const* key) {
  std::size_t const at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) refuse_npy(std::string("the header has no '") + key + "'");
  std::string_view rest = header.substr(at + std::strlen(key) + 3);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}
inline dims npy_shape(std::string_view s) {
  if (s.empty() || s.front() != '(') refuse_npy("the shape is no tuple");
  s.remove_prefix(1);
  dims r;
  while (!s.empty() && s.front() != ')') {
    if (s.front() == ' ' || s.front() == ',') {
      s.remove_prefix(1);
      continue;
    }
    index_t n = 0;
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || n < 0) refuse_npy("a size is no number");
    r.push_back(n);
    s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  }
  if (s.empty()) refuse_npy("the shape has no end");
  return r;
}
} // namespace detail

/// A tensor of the bytes of a `.npy` file. `value_error` with what is wrong with them; nothing is allocated beyond
/// their size. Bool, integers of 8 (signed or not), 16, 32 and 64 bits, and floats of 16, 32 and 64 are read, others
/// are `dtype_error`.
template <class T = tensor>
T from_npy(std::string_view bytes) {
  auto const byte = [&](std::size_t k) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[k])); };
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") detail::refuse_npy("the file does not begin as one");
  std::size_t const wide = byte(6) >= 2 ? 4 : 2, from = 8 + wide;
  if (bytes.size() < from) detail::refuse_npy("the file ends in its header");
  std::size_t length = 0;
  for (std::size_t k = wide; k-- > 0;) length = length << 8 | byte(8 + k);
  if (length > bytes.size() - from)
    detail::refuse_npy("the header has " + std::to_string(length) + " bytes, and the file " +
                       std::to_string(bytes.size()));
  std::string_view const header = bytes.substr(from, length), data = bytes.substr(from + length);
  std::string_view const type = detail::npy_field(header, "descr"), order = detail::npy_field(header, "fortran_order");
  dims sizes = detail::npy_shape(detail::npy_field(header, "shape"));
  for (auto const& known : detail::npy_types) {
    if (type.substr(1, 3) != known.name) continue;
    bool const columns = order.substr(0, 4) == "True";
    if (columns)
      for (int k = 0; k < sizes.n / 2; ++k) std::swap(sizes[k], sizes[sizes.n - 1 - k]);
    std::size_t count = static_cast<std::size_t>(itemsize(known.type));
    bool fits = true;
    for (extent n : sizes) fits = fits && !__builtin_mul_overflow(count, static_cast<std::size_t>(n.number()), &count);
    if (!fits || count != data.size())
      detail::refuse_npy("the shape " + to_string(sizes) + " wants other than the " + std::to_string(data.size()) +
                         " bytes that follow");
    T const t = T::empty(sizes, known.type);
    if (count) std::memcpy(t.raw(), data.data(), count);
    if (!columns) return t;
    dims axes;
    for (int k = sizes.n; k-- > 0;) axes.push_back(k);
    return contiguous(permute(t, axes));
  }
  throw dtype_error(("varve: npy: elements of type " + std::string(type.substr(0, 5)) + " are not read").c_str());
}
/// The bytes of a `.npy` file, version 1.0, of a tensor.
template <class T = tensor>
std::string to_npy(T const& x) {
  T const t = contiguous(T(x.detach()));
  char const* type = nullptr;
  for (auto const& known : detail::npy_types)
    if (known.type == t.dtype()) type = known.name;
  if (!type) throw dtype_error((std::string("varve: npy: ") + name(t.dtype()) + " is not written").c_str());
  std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (";
  for (int k = 0; k < t.dim(); ++k) header += std::to_string(t.size(k)) + (k + 1 < t.dim() || k == 0 ? "," : "");
  header += "), }";
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::string r("\x93NUMPY\x01\x00", 8);
  r += static_cast<char>(header.size() & 255);
  r += static_cast<char>(header.size() >> 8);
  r += header;
  std::size_t const bytes = static_cast<std::size_t>(t.numel() * itemsize(t.dtype()));
  if (bytes) r.append(static_cast<char const*>(t.raw()), bytes);
  return r;
}
/// `load_npy(path)`, `save_npy(path, x)`.
template <class T = tensor>
T load_npy(std::string const& path) {
  return from_npy<T>(detail::text_of_file("load_npy", path));
}
template <class T>
void save_npy(std::string const& path, T const& x) {
  detail::write_text_file("save_npy", path, to_npy<tensor>(x));
}

} // namespace varve
