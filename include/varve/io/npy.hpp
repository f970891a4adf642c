// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/io/csv.hpp>
#include <varve/io/mapped.hpp>
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
/// `place` names the part of a file that is read, as "w.npy: ", or is empty.
[[noreturn]] inline void refuse_npy(std::string const& place, std::string const& what) {
  refuse::with<value_error>(("varve: npy: " + place + what).c_str());
}
/// The text behind `'key':` in a header, without leading blanks.
inline std::string_view npy_field(std::string const& place, std::string_view header, char const* key) {
  std::size_t const at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) refuse_npy(place, std::string("the header has no '") + key + "'");
  std::string_view rest = header.substr(at + std::strlen(key) + 3);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty()) refuse_npy(place, std::string("the header ends behind '") + key + "'");
  return rest;
}
inline dims npy_shape(std::string const& place, std::string_view s) {
  constexpr index_t most = index_t{1} << 60; // beyond any memory, and below what symbols have as bits
  if (s.empty() || s.front() != '(') refuse_npy(place, "the shape is no tuple");
  s.remove_prefix(1);
  dims r;
  while (!s.empty() && s.front() != ')') {
    if (s.front() == ' ' || s.front() == ',') {
      s.remove_prefix(1);
      continue;
    }
    index_t n = 0;
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || n < 0 || n > most) refuse_npy(place, "a size is no number");
    if (r.n == max_rank) refuse_npy(place, "the shape has more sizes than a tensor can have");
    r.push_back(n);
    s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  }
  if (s.empty()) refuse_npy(place, "the shape has no end");
  return r;
}
/// The tensor of a file, made of its elements by `make` (`copy_of_bytes`).
template <class Make>
auto npy_tensor(std::string_view bytes, std::string const& place, Make const& make) {
  auto const byte = [&](std::size_t k) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[k])); };
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") refuse_npy(place, "the file does not begin as one");
  std::size_t const wide = byte(6) >= 2 ? 4 : 2, from = 8 + wide;
  if (bytes.size() < from) refuse_npy(place, "the file ends in its header");
  std::size_t length = 0;
  for (std::size_t k = wide; k-- > 0;) length = length << 8 | byte(8 + k);
  if (length > bytes.size() - from)
    refuse_npy(place,
               "the header has " + std::to_string(length) + " bytes, and the file " + std::to_string(bytes.size()));
  std::string_view const header = bytes.substr(from, length), data = bytes.substr(from + length);
  std::string_view const type = npy_field(place, header, "descr"), order = npy_field(place, header, "fortran_order");
  dims sizes = npy_shape(place, npy_field(place, header, "shape"));
  for (auto const& known : npy_types) {
    if (type.substr(1, 4) != known.name + std::string(1, type.front())) continue; // in its quotes
    bool const columns = order.substr(0, 4) == "True";
    if (!columns && order.substr(0, 5) != "False") refuse_npy(place, "'fortran_order' is neither True nor False");
    if (columns)
      for (int k = 0; k < sizes.n / 2; ++k) std::swap(sizes[k], sizes[sizes.n - 1 - k]);
    std::size_t count = static_cast<std::size_t>(itemsize(known.type));
    bool fits = true;
    for (extent n : sizes) fits = fits && !__builtin_mul_overflow(count, static_cast<std::size_t>(n.number()), &count);
    if (!fits || count != data.size())
      refuse_npy(place, "the shape " + to_string(sizes) + " wants other than the " + std::to_string(data.size()) +
                            " bytes that follow");
    auto const t = make(data, sizes, known.type);
    if (!columns) return t;
    dims axes;
    for (int k = sizes.n; k-- > 0;) axes.push_back(k);
    auto const rows = permute(t, axes);
    return Make::in_place ? rows : contiguous(rows);
  }
  refuse::with<dtype_error>(
      ("varve: npy: " + place + "elements of type " + std::string(type.substr(0, 5)) + " are not read").c_str());
}
} // namespace detail

/// A tensor of the bytes of a `.npy` file. `value_error` with what is wrong with them; nothing is allocated beyond
/// their size. Bool, integers of 8 (signed or not), 16, 32 and 64 bits, and floats of 16, 32 and 64 are read, others
/// are `dtype_error`.
template <class T = tensor>
T from_npy(std::string_view bytes) {
  return detail::npy_tensor(bytes, "", detail::copy_of_bytes<T>{});
}
/// The bytes of a `.npy` file, version 1.0, of a tensor.
template <class T = tensor>
std::string to_npy(T const& x) {
  T const t = contiguous(T(x.detach()));
  char const* type = nullptr;
  for (auto const& known : detail::npy_types)
    if (known.type == t.dtype()) type = known.name;
  if (!type) refuse::with<dtype_error>((std::string("varve: npy: ") + name(t.dtype()) + " is not written").c_str());
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
  return from_npy<T>(detail::bytes_of_file("load_npy", path));
}
/// ... on the mapped file (`mapped_t`): `load_npy(path, mapped)`.
template <class T = tensor>
T load_npy(std::string const& path, mapped_t) {
  detail::mapped_file const file("load_npy", path);
  return detail::npy_tensor(file.bytes(), "", file);
}
/// Writes a value as a file of numpy's.
template <class T>
void save_npy(std::string const& path, T const& x) {
  detail::write_file("save_npy", path, to_npy<tensor>(x));
}

} // namespace varve

#pragma GCC diagnostic pop
