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
/// Several arrays of NumPy in one file, `.npz`: an archive of `.npy` files, which `numpy.load` reads and `numpy.savez`
/// writes. Compressed ones (`numpy.savez_compressed`) are read and written by `vv::zlib{}` of `io/zlib.hpp`.
namespace varve {

/// Tensors by name of the bytes of a `.npz` file, in its order. `value_error` with the name and place of what is wrong.
template <class Codec = stored>
named_tensors from_npz(std::string_view bytes, Codec const& codec = {}) {
  detail::zip_reader const archive(bytes);
  named_tensors r;
  for (detail::zip_entry const& e : archive.entries()) {
    std::string name = e.name, buffer;
    if (name.size() < 4 || name.compare(name.size() - 4, 4, ".npy") != 0)
      refuse::with<value_error>(("varve: npz: " + name + " is no .npy file").c_str());
    name.resize(name.size() - 4);
    for (auto const& known : r)
      if (known.first == name) refuse::with<value_error>(("varve: npz: two arrays have the name " + name).c_str());
    r.emplace_back(name, detail::npy_tensor<tensor>(archive.read(e, buffer, codec), e.name + ": "));
  }
  return r;
}
/// The bytes of a `.npz` file of tensors by name; two of one name are `value_error`.
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
/// `load_npz("data.npz")`: the tensors of a file by name.
inline named_tensors load_npz(std::string const& path) { return from_npz(detail::text_of_file("load_npz", path)); }
/// ... or a tree like `like` with the values of a file, by the names of its leaves (`tree_names`). `value_error` for a
/// leaf that the file has not, `shape_error` for one of another shape or dtype; both name it. Last an archive's codec.
template <class Tree, class Codec = stored>
Tree load_npz(std::string const& path, Tree const& like, Codec const& codec = {}) {
  return detail::tree_of_names("load_npz", path, from_npz(detail::text_of_file("load_npz", path), codec), like);
}
/// `save_npz("model.npz", parameters)`: tensors by name, or the tensors, arrays and numbers of a tree.
template <class Tree, class Codec = stored>
void save_npz(std::string const& path, Tree const& tree, Codec const& codec = {}) {
  if constexpr (std::is_same_v<Tree, named_tensors>) detail::write_text_file("save_npz", path, to_npz(tree, codec));
  else detail::write_text_file("save_npz", path, to_npz(detail::named_leaves(tree), codec));
}

} // namespace varve

#pragma GCC diagnostic pop
