// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/io/npy.hpp>
#include <varve/io/tree_file.hpp>
#include <varve/io/zip.hpp>

/// @file
/// Several NumPy arrays in one file, `.npz`: an archive of `.npy` files, which `numpy.load` reads and `numpy.savez`
/// writes. To read and write compressed archives (`numpy.savez_compressed`), pass `vv::zlib{}` of `io/zlib.hpp`.
namespace varve {

namespace detail {
/// Returns the tensors of an archive; `make` creates each from its bytes (see `copy_of_bytes`).
template <class Codec, class Make>
named_tensors read_npz(std::string_view bytes, Codec const& codec, Make const& make) {
  zip_reader const archive(bytes);
  named_tensors r;
  for (zip_entry const& e : archive.entries()) {
    std::string name = e.name, buffer;
    if (name.size() < 4 || name.compare(name.size() - 4, 4, ".npy") != 0)
      refuse::with<value_error>(("varve: npz: " + name + " is no .npy file").c_str());
    name.resize(name.size() - 4);
    for (auto const& known : r)
      if (known.first == name) refuse::with<value_error>(("varve: npz: two arrays have the name " + name).c_str());
    std::string_view const data = archive.unchecked(e, buffer, codec);
    bool looked_at = true; // a checksum would read data that should stay unread in the file
    if constexpr (Make::in_place) looked_at = !make.holds(data.data());
    if (looked_at) archive.check(e, data);
    r.emplace_back(name, npy_tensor(data, e.name + ": ", make));
    if constexpr (Make::in_place)
      if (!looked_at && !make.holds(r.back().second.raw())) archive.check(e, data);
  }
  return r;
}
} // namespace detail

/// Returns the named tensors of the bytes of a `.npz` file, in the order of the file. Throws `value_error` with the
/// name and place of an error.
template <class Codec = stored>
named_tensors from_npz(std::string_view bytes, Codec const& codec = {}) {
  return detail::read_npz(bytes, codec, detail::copy_of_bytes<tensor>{});
}
/// Returns named tensors as the bytes of a `.npz` file. Throws `value_error` if two have the same name.
template <class Codec = stored>
std::string to_npz(named_tensors const& tensors, Codec const& codec = {}) {
  detail::zip_writer archive;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j)
      if (tensors[j].first == tensors[k].first)
        refuse::with<value_error>(("varve: npz: two arrays have the name " + tensors[k].first).c_str());
    archive.add(tensors[k].first + ".npy", to_npy<tensor>(tensors[k].second), codec);
  }
  return std::move(archive).finish();
}
/// Loads the named tensors of a file: `load_npz("data.npz")`.
inline named_tensors load_npz(std::string const& path) { return from_npz(detail::bytes_of_file("load_npz", path)); }
/// Loads named tensors on the mapped file (`mapped_t`). An array is mapped if it is stored at a multiple of its element
/// size, as `save_npz` stores it; others are copied. The checksums of mapped arrays are not verified, because that
/// would read them. Throws `value_error` for compressed arrays.
inline named_tensors load_npz(std::string const& path, mapped_t) {
  detail::mapped_file const file("load_npz", path);
  return detail::read_npz(file.bytes(), stored{}, file);
}
/// Loads a file into a tree like `like`, by the names of its leaves (`tree_names`). Throws `value_error` if the file
/// lacks a leaf, and `shape_error` if a leaf has another shape or dtype; both name the leaf. `codec` decompresses the
/// archive.
template <class Tree, class Codec = stored>
Tree load_npz(std::string const& path, Tree const& like, Codec const& codec = {}) {
  return detail::tree_of_names("load_npz", path, from_npz(detail::bytes_of_file("load_npz", path), codec), like);
}
/// Loads a tree whose tensors lie on the mapped file: `load_npz(path, like, mapped)`.
template <class Tree>
Tree load_npz(std::string const& path, Tree const& like, mapped_t) {
  return detail::tree_of_names("load_npz", path, load_npz(path, mapped), like);
}
/// Writes named tensors, or the tensors, arrays and numbers of a tree: `save_npz("model.npz", parameters)`.
template <class Tree = named_tensors, class Codec = stored>
void save_npz(std::string const& path, Tree const& tree, Codec const& codec = {}) {
  if constexpr (std::is_convertible_v<Tree const&, named_tensors>)
    detail::write_file("save_npz", path, to_npz(tree, codec));
  else detail::write_file("save_npz", path, to_npz(detail::named_leaves(tree), codec));
}

} // namespace varve

#pragma GCC diagnostic pop
