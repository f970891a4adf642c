// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/safetensors.hpp>
#include <varve/io/mapped.hpp>

/// @file
/// Files of named tensors in the safetensors format. For trees of parameters see `io/tree_file.hpp`.
namespace varve {

/// Loads the named tensors of a file, in the order of its header: `load_safetensors("model.safetensors")`. Throws
/// `value_error` with the place of an error.
inline named_tensors load_safetensors(std::string const& path) {
  return from_safetensors(detail::bytes_of_file("load_safetensors", path));
}
/// Loads named tensors on the mapped file (`mapped_t`): `load_safetensors(path, mapped)`.
inline named_tensors load_safetensors(std::string const& path, mapped_t) {
  detail::mapped_file const file("load_safetensors", path);
  return detail::read_safetensors(file.bytes(), file);
}
/// Writes named tensors to a file.
inline void save_safetensors(std::string const& path, named_tensors const& tensors) {
  detail::write_file("save_safetensors", path, to_safetensors(tensors));
}

} // namespace varve

#pragma GCC diagnostic pop
