// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/tree_names.hpp>
#include <varve/io/safetensors.hpp>
#include <varve/op/to.hpp>

/// @file
/// Trees of parameters in safetensors files, in which each leaf is stored by its name (`tree_names`).
namespace varve {

namespace detail {
template <class V>
tensor leaf_tensor(V const& v) {
  if constexpr (std::is_same_v<V, tensor>) return v;
  else if constexpr (number<V>) return tensor(array<V>{v});
  else if constexpr (is_array<V>) return tensor(v);
  else return {};
}
template <class V>
V leaf_of(std::string const& reader, V const& like, tensor const& t, std::string const& name) {
  if (!(t.sizes() == to_dims(shape_of(like))) || t.dtype() != dtype_of(like))
    refuse::with<shape_error>(("varve: " + reader + ": " + name + " is " + varve::name(t.dtype()) +
                               to_string(t.sizes()) + " in the file, and " + varve::name(dtype_of(like)) +
                               to_string(to_dims(shape_of(like))) + " in the tree")
                                  .c_str());
  if constexpr (std::is_same_v<V, tensor>) return t;
  else if constexpr (number<V>) return t.template item<V>();
  else {
    V r;
    auto const all = t.template to_vector<typename V::value_type>();
    for (std::size_t k = 0; k < all.size(); ++k) r.data[k] = all[k];
    return r;
  }
}
/// Returns the tensors, arrays and numbers of a tree with their names; other leaves are omitted.
template <class Tree>
named_tensors named_leaves(Tree const& tree) {
  named_tensors all;
  tree_for_each_named(
      [&](std::string const& name, auto const& v) {
        if (tensor const t = leaf_tensor(v); t.defined()) all.emplace_back(name.empty() ? "value" : name, t);
      },
      tree);
  return all;
}
/// Returns a tree like `like` whose leaves are taken from `all` by name.
template <class Tree>
Tree tree_of_names(std::string const& reader, std::string const& path, named_tensors const& all, Tree const& like) {
  std::vector<std::string> const names = tree_names(like);
  std::size_t k = 0;
  return tree_map(
      [&](auto const& v) {
        std::string const name = names[k].empty() ? "value" : names[k];
        ++k;
        if constexpr (value<std::remove_cvref_t<decltype(v)>>) {
          for (auto const& [known, t] : all)
            if (known == name) return leaf_of(reader, v, t, name);
          refuse::with<value_error>(("varve: " + reader + ": the file " + path + " has no " + name).c_str());
        } else return v;
      },
      like);
}
} // namespace detail

/// Writes the tensors, arrays and numbers of a tree to a file; other leaves are omitted.
template <class Tree>
void save_tree(std::string const& path, Tree const& tree) {
  detail::write_file("save_tree", path, to_safetensors(detail::named_leaves(tree)));
}
/// Loads a tree like `like` from a file. Throws `value_error` if the file lacks a leaf, and `shape_error` if a leaf has
/// another shape or dtype; both name the leaf.
template <class Tree>
Tree load_tree(std::string const& path, Tree const& like) {
  return detail::tree_of_names("load_tree", path, from_safetensors(detail::bytes_of_file("load_tree", path)), like);
}
/// Loads a tree whose tensors lie on the mapped file (`mapped_t`): `load_tree(path, like, mapped)`.
template <class Tree>
Tree load_tree(std::string const& path, Tree const& like, mapped_t) {
  detail::mapped_file const file("load_tree", path);
  return detail::tree_of_names("load_tree", path, detail::read_safetensors(file.bytes(), file), like);
}

} // namespace varve

#pragma GCC diagnostic pop
