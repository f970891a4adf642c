// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/io/mapped.hpp>
#include <varve/io/npy_header.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/permute.hpp>

#include <cstring>

/// @file
/// NumPy arrays in files: `.npy`, versions 1 to 3, little-endian.
namespace varve {

namespace detail {
/// Returns the tensor of a file; `make` creates it from its bytes (see `copy_of_bytes`).
template <class Make>
auto npy_tensor(std::string_view bytes, std::string const& place, Make const& make) {
  auto const byte = [&](std::size_t k) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[k])); };
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") refuse_npy(place, "the file does not begin as one");
  if (byte(6) < 1 || byte(6) > 3)
    refuse_npy(place, "the file is of version " + std::to_string(byte(6)) + ", and versions 1 to 3 are read");
  std::size_t const wide = byte(6) >= 2 ? 4 : 2, from = 8 + wide;
  if (bytes.size() < from) refuse_npy(place, "the file ends in its header");
  std::size_t length = 0;
  for (std::size_t k = wide; k-- > 0;) length = length << 8 | byte(8 + k);
  if (length > bytes.size() - from)
    refuse_npy(place,
               "the header has " + std::to_string(length) + " bytes, and the file " + std::to_string(bytes.size()));
  npy_header header = npy_header_reader(place, bytes.substr(from, length)).read();
  std::string_view const data = bytes.substr(from + length);
  dims& sizes = header.sizes;
  if (header.columns)
    for (int k = 0; k < sizes.n / 2; ++k) std::swap(sizes[k], sizes[sizes.n - 1 - k]);
  std::size_t count = static_cast<std::size_t>(itemsize(header.type));
  bool fits = true;
  for (extent n : sizes) fits = fits && !__builtin_mul_overflow(count, static_cast<std::size_t>(n.number()), &count);
  if (!fits || count > data.size())
    refuse_npy(place, "the shape " + to_string(sizes) + " wants more than the " + std::to_string(data.size()) +
                          " bytes that follow");
  auto const t = make(data.substr(0, count), sizes, header.type); // another array may follow
  if (!header.columns) return t;
  dims axes;
  for (int k = sizes.n; k-- > 0;) axes.push_back(k);
  auto const rows = permute(t, axes);
  return Make::in_place ? rows : contiguous(rows);
}
} // namespace detail

/// Returns the first array in the bytes of a `.npy` file. Throws `value_error` with a description if they are
/// malformed; never allocates more than their size. Supports bool, integers of 8 (signed or unsigned), 16, 32 and 64
/// bits, and floats of 16, 32 and 64 bits. Throws `dtype_error` for other types.
template <class T = tensor>
T from_npy(std::string_view bytes) {
  return detail::npy_tensor(bytes, "", detail::copy_of_bytes<T>{});
}
/// Returns a tensor as the bytes of a `.npy` file, version 1.0. Throws `dtype_error` for bfloat16 and complex tensors.
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
/// Loads the first array of a `.npy` file: `load_npy(path)`.
template <class T = tensor>
T load_npy(std::string const& path) {
  return from_npy<T>(detail::bytes_of_file("load_npy", path));
}
/// Loads an array as a tensor on the mapped file (`mapped_t`): `load_npy(path, mapped)`.
template <class T = tensor>
T load_npy(std::string const& path, mapped_t) {
  detail::mapped_file const file("load_npy", path);
  return detail::npy_tensor(file.bytes(), "", file);
}
/// Writes a value to a `.npy` file: `save_npy(path, x)`.
template <class T>
void save_npy(std::string const& path, T const& x) {
  detail::write_file("save_npy", path, to_npy<tensor>(x));
}

} // namespace varve

#pragma GCC diagnostic pop
