// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/safetensors.hpp>
#include <varve/io/mapped.hpp>

/// @file
/// Files of named tensors as safetensors; trees of parameters: `io/tree_file.hpp`.
namespace varve {

/// `load_safetensors("model.safetensors")`: the tensors of a file by name, in the order of its header. `value_error`
/// with the place of what is wrong.
inline named_tensors load_safetensors(std::string const& path) {
  return from_safetensors(detail::bytes_of_file("load_safetensors", path));
}
/// ... on the mapped file (`mapped_t`): `load_safetensors(path, mapped)`.
inline named_tensors load_safetensors(std::string const& path, mapped_t) {
  detail::mapped_file const file("load_safetensors", path);
  return detail::read_safetensors(file.bytes(), file);
}
/// Writes tensors by name.
inline void save_safetensors(std::string const& path, named_tensors const& tensors) {
  detail::write_file("save_safetensors", path, to_safetensors(tensors));
}

} // namespace varve

#pragma GCC diagnostic pop
